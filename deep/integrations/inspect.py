"""Inspect: a scorer that runs a model file of deep, and votes from the scores of several graders in Inspect's logs.

Needs ``deep-judges[inspect]``; docs/integrations/inspect.md has an example. An entry point makes the scorer known as
``deep/consistency``.
"""

from functools import partial
from pathlib import Path

from deep.exceptions import needs_extra
from deep.integrations._inspect_logs import LogVotes, votes_from_logs
from deep.integrations._verdict import Verdict, text_of, text_scorer

with needs_extra("inspect"):
    from anyio import to_thread
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import TaskState

__all__ = ["LogVotes", "consistency", "votes_from_logs"]

REASONS = {"error": "scoring_failed", "skipped": "no_vote"}

# Inspect puts the name of the package before that of its scorer, but not where it is installed to be edited.
NAME = "consistency" if "site-packages" in Path(__file__).parts else "deep/consistency"


@scorer(metrics=[mean(), stderr()], name=NAME)
def consistency(model: str, source: str = "source", ledger: str | None = None) -> Scorer:
    """Score whether a sample's output is consistent with its source, by a model file of deep.

    The value is P(consistent), the explanation the judges' votes and words; metadata have interval, decision and
    votes. Where no judge gave a vote, one failed, or there is no output, the sample is unscored with the reason.

    Parameters
    ----------
    model : str
        The model file.
    source : str, default='source'
        The key of the sample's metadata that holds the source, text or a list of passages; the sample's input where
        metadata have none.
    ledger : str, optional
        The file of answers, where judges ask an LLM.

    Raises
    ------
    InputError
        The model cannot be read or its judges cannot be run.
    """
    texts = text_scorer(model, ledger)

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  deep needs no target
        claim = state.output.completion
        if not claim.strip():
            return Score.unscored(reason="no_response")
        given = text_of(state.metadata[source]) if source in state.metadata else state.input_text
        verdict = await to_thread.run_sync(Verdict.from_call, partial(texts.score, given, claim))
        return _score(verdict)

    return score


def _score(verdict: Verdict) -> Score:
    """Return a verdict as Inspect keeps it."""
    more = {"explanation": verdict.rationale, "metadata": verdict.metadata()}
    if verdict.status != "scored":
        return Score.unscored(reason=REASONS[verdict.status], **more)
    return Score(value=verdict.p, answer="consistent" if verdict.decision else "inconsistent", **more)
