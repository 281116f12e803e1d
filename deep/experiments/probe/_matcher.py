"""Who says when two claims are the same: their form, an encoder, or an LLM."""

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deep.exceptions import InputError
from deep.experiments.probe._match_encoder import ENCODER, installed_encoder

if TYPE_CHECKING:
    from deep.features.encoders import EmbeddingJudge


@dataclass(frozen=True, slots=True)
class Matcher:
    """The means by which the claims of a run are compared with those of the benchmark.

    Parameters
    ----------
    name : str
        As a report calls it; empty where the stage compares none.
    encoder : EmbeddingJudge, optional
        Compares by similarity.
    asks : bool, default=False
        Whether an LLM compares.
    """

    name: str
    encoder: "EmbeddingJudge | None" = None
    asks: bool = False


def choose_matcher(args: argparse.Namespace) -> Matcher:
    """Return the means that the options ask for; of semantic matching an encoder where one is known, else an LLM.

    Raises
    ------
    InputError
        The options contradict one another, or the encoder cannot be loaded.
    """
    named = {name: getattr(args, name) for name in ("match_encoder", "match_llm") if getattr(args, name) is not None}
    if named and (args.match != "semantic" or len(named) > 1):
        name, value = next(iter(named.items()))
        raise InputError(
            f"`{name}` must be given where `match` is semantic, without the other of its kind. Got {value!r}."
        )
    if not 0 < args.match_similarity <= 1:
        raise InputError(f"`match_similarity` must lie in (0, 1]. Got {args.match_similarity!r}.")
    if args.stage not in ("decompose", "all"):
        return Matcher("")
    if args.match != "semantic":
        return Matcher(f"their form ({args.match})")
    if args.match_encoder is not None:
        return _encoder(args.match_encoder, None, args.match_similarity)
    installed = None if named else installed_encoder()
    return _llm(args.match_llm) if installed is None else _encoder(installed, ENCODER, args.match_similarity)


def _encoder(place: str, name: str | None, similar: float) -> Matcher:
    from deep.features.encoders import load_embedding

    encoder = load_embedding(place, model_id=name)
    return Matcher(f"the encoder {encoder.model_id} (cosine of {similar:g} or more)", encoder)


def _llm(name: str | None) -> Matcher:
    return Matcher(
        "the LLM that is measured, as no encoder is installed" if name is None else f"the LLM {name}", asks=True
    )
