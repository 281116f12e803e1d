"""A model's output at each step of the pipeline, on gold input or on its own."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from deep.experiments.probe._records import GoldClaim, Sample
from deep.experiments.stepwise import (
    CheckedClaim,
    Claim,
    Excerpt,
    check_claims,
    decompose,
    evaluate_evidence,
    find_evidence,
    find_unsupported,
    unsupported_spans,
)
from deep.judge import Program
from deep.prompt_pool import Span, merge_spans
from deep.records import Judgment, Reason

STAGES = ("decompose", "find", "evaluate", "locate", "all")

Pair = tuple[str, Excerpt]


@dataclass(slots=True)
class Observed:
    """The output of a model on one sample.

    Parameters
    ----------
    claims : list of Claim, or str
        From the decomposition; the gold claims where a later stage runs alone; a reason where there are none.
    found : dict of str to list of Excerpt, or to str
        By claim: the evidence, or why there is none.
    verdicts : dict of (str, Excerpt) to Judgment
    checked : list of CheckedClaim
    direct : list of (int, int), or str
        Spans that the direct prompt gives; a reason where there is no answer, None where it was not asked.
    alike : mapping of (str, str) to float
        Similarity, in (0, 1], of a predicted and a gold claim that say the same in other words.
    match_asked, match_failed : int
        Questions to an LLM whether claims say the same, and those without a usable answer.
    """

    claims: list[Claim] | Reason = field(default_factory=list)
    found: Mapping[str, list[Excerpt] | Reason] = field(default_factory=dict)
    verdicts: Mapping[Pair, Judgment] = field(default_factory=dict)
    checked: Sequence[CheckedClaim] = ()
    direct: list[Span] | Reason | None = None
    alike: Mapping[tuple[str, str], float] = field(default_factory=dict)
    match_asked: int = 0
    match_failed: int = 0

    @property
    def located(self) -> list[Span]:
        """The spans of the response that hold claims without support."""
        return unsupported_spans(self.checked)


def stage_program(stage: str, sample: Sample) -> Program[Observed]:
    """Return the program of one stage on gold input, or of all on the model's own.

    `find` asks for evidence of the truth claims, `evaluate` about their accepted evidence and about every excerpt
    found for hallucinated claims, and `locate` asks nothing.
    """
    if stage == "decompose":
        return Observed((yield from decompose(sample.response, [])))
    if stage == "find":
        texts = [claim.text for claim in sample.labeled("truth")]
        return Observed(_given(sample), found=(yield from find_evidence(sample.source, texts, [])))
    if stage == "evaluate":
        pairs = [(claim.text, excerpt) for claim in sample.claims for excerpt in known_excerpts(claim)]
        return Observed(_given(sample), verdicts=(yield from evaluate_evidence(sample.source, pairs, [])))
    if stage == "locate":
        return Observed(_given(sample), checked=gold_checked(sample))
    return (yield from _all(sample))


def _all(sample: Sample) -> Program[Observed]:
    claims = yield from decompose(sample.response, [])
    if isinstance(claims, str):
        return Observed(claims)
    checked, found, verdicts = yield from check_claims(sample.source, claims, [])
    return Observed(claims, found, verdicts, checked)


def direct_program(sample: Sample) -> Program[list[Span] | Reason]:
    """Return the program of the baseline; quotations that are not in the response are no localization."""
    passages = yield from find_unsupported(sample.source, sample.response, [])
    if isinstance(passages, str):
        return passages
    spans = merge_spans(passage.span for passage in passages if passage.span is not None)
    return "unparsable" if passages and not spans else spans


def known_excerpts(claim: GoldClaim) -> list[Excerpt]:
    """Return the excerpts whose verdict is known: accepted ones of a truth claim, all of a hallucinated one."""
    if claim.label == "hallucinated":
        return [candidate.excerpt for candidate in claim.candidates]
    return claim.evidence if claim.label == "truth" else []


def _given(sample: Sample) -> list[Claim]:
    return [Claim(claim.text, claim.segment, claim.span) for claim in sample.claims]


def gold_checked(sample: Sample) -> list[CheckedClaim]:
    """Return the gold claims as a perfect judge would have checked them."""
    states = {"hallucinated": "unsupported", "truth": "supported"}
    given = zip(_given(sample), sample.claims, strict=True)
    return [CheckedClaim(claim, states.get(gold.label, "undecided")) for claim, gold in given]


def normalise(text: str) -> str:
    """Return a claim without case, punctuation and repeated white space.

    Examples
    --------
    >>> from deep.experiments.probe._observe import normalise
    >>> normalise("The bridge  fell, in 1902.")
    'the bridge fell in 1902'
    """
    return " ".join(re.findall(r"\w+", text.casefold()))
