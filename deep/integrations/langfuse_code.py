"""Langfuse's code evaluators: a model as one file of the standard library with the function that Langfuse calls.

It needs no library; docs/integrations/langfuse.md has an example.
"""

from pathlib import Path

from deep._util.files import whole_file
from deep.exceptions import InputError
from deep.model import Model, python_code

LARGEST = 256_000
"""Bytes of source code that Langfuse takes."""

_FUTURE = "from __future__ import annotations\n\n"

_EVALUATE = '''
def text_in(value, keys):
    """Find a text: the value itself, passages below each other, or the first of some keys of an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return "\\n\\n".join(value)
    if isinstance(value, dict):
        return next((text for text in (text_in(value.get(key), ()) for key in keys) if text), "")
    return ""


def found_in(observation):
    """Score what an observation holds: metadata["votes"], or source and claim."""
    metadata = observation.metadata if isinstance(observation.metadata, dict) else {}
    if metadata.get("votes") is not None:
        return score(metadata["votes"])
    source = text_in(metadata.get("source"), SOURCE_KEYS) or text_in(observation.input, SOURCE_KEYS)
    return score_text(source, text_in(observation.output, CLAIM_KEYS))


SOURCE_KEYS = ("source", "context", "document", "text")  # of metadata or input
CLAIM_KEYS = ("claim", "answer", "output", "text", "content")  # of the output


def evaluate(ctx):
    """Give P(consistent) and the decision of an observation as scores of Langfuse."""
    found = found_in(ctx.observation)
    p, low, high = found["p_consistent"], found["p_low"], found["p_high"]
    said = [f"{judge['judge']}: {judge['rationale']}" for judge in found.get("judges", ()) if judge["vote"] == 0]
    comment = "\\n".join([f"P(consistent) = {p:.3f}, 90 % interval {low:.3f} to {high:.3f}", *said])
    called = ("inconsistent", "consistent")[found["decision"]] if found["n_votes"] else "no vote"
    decision = Score(name="consistency-decision", value=called, data_type="CATEGORICAL", comment=comment)
    metadata = {"p_low": low, "p_high": high, "n_votes": found["n_votes"]}
    numeric = Score(name="consistency", value=p, data_type="NUMERIC", comment=comment, metadata=metadata)
    return EvaluationResult(scores=[numeric, decision] if found["n_votes"] else [decision])
'''

_NO_TEXT = '''
def score_text(source, claim):
    """Refuse texts: the judges of this model run elsewhere."""
    raise ValueError("this model takes votes: put them into the observation's metadata as votes")

'''


def export_evaluator(model: Model, out: Path) -> str | None:
    """Write a model as the source of a code evaluator, as Langfuse's documents have described it since May 2026.

    ``evaluate(ctx)`` reads the source from ``ctx.observation.metadata["source"]`` or the input and the claim from the
    output; of a model of other judges than lexical checks, votes from ``ctx.observation.metadata["votes"]``. What is
    missing raises, which Langfuse shows as an error and not as a score.

    Parameters
    ----------
    model : Model
        As for :func:`deep.model.export_python`.
    out : Path

    Returns
    -------
    str or None
        Why it reads no texts; None where it does.

    Raises
    ------
    InputError
        The model cannot be written down, or is larger than Langfuse takes. Nothing is written then.
    """
    code, why = python_code(model)
    # Langfuse puts its own classes before it, where a __future__ import would be refused.
    code = code.replace(_FUTURE, "", 1).partition("\n\ndef named_once(pairs)")[0].rstrip("\n")
    code = "\n\n".join([code, *([_NO_TEXT.rstrip("\n")] if why else []), _EVALUATE])
    size = len(code.encode())
    if size > LARGEST:
        raise InputError(
            f"`model` must be at most {LARGEST:,} bytes of code for Langfuse. Got {size:,}. Fit one with at most 7 "
            "voters (--sizes), or with more than 10."
        )
    with whole_file(out) as scratch:
        scratch.write_text(code, encoding="utf-8", newline="\n")
    return why
