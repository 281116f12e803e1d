"""Inspect: a scorer that runs a model file of deep, and metrics of a committee.

Needs ``deep-judges[inspect]``; docs/integrations/inspect.md has examples. An entry point makes the scorers known as
``deep/consistency`` and ``deep/committee``, the metrics as ``deep/effective_size``, ``deep/agreement`` and
``deep/calibrated_accuracy``.
"""

import math
from collections.abc import Mapping
from logging import getLogger
from pathlib import Path

from deep.exceptions import needs_extra
from deep.integrations.committee import Verdict, measure, text_of, text_scorer, vote_of, votes_of
from deep.integrations.inspect_files import judgment_of, scores_by_grader
from deep.records import ABSTAIN

with needs_extra("inspect"):
    from anyio import to_thread
    from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, mean, metric, scorer, stderr
    from inspect_ai.solver import TaskState

__all__ = ["agreement", "calibrated_accuracy", "committee", "consistency", "effective_size"]

REASONS = {"error": "scoring_failed", "skipped": "no_vote"}

# Inspect puts the name of the package before those of its parts, but not where it is installed to be edited.
PREFIX = "" if "site-packages" in Path(__file__).parts else "deep/"


@scorer(metrics=[mean(), stderr()], name=f"{PREFIX}consistency")
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
        document = text_of(state.metadata[source]) if source in state.metadata else state.input_text
        verdict = await to_thread.run_sync(Verdict.on, texts, document, claim)
        return _score(verdict)

    return score


def _score(verdict: Verdict) -> Score:
    """Return a verdict as Inspect keeps it."""
    more = {"explanation": verdict.rationale, "metadata": verdict.metadata()}
    if verdict.status != "scored":
        return Score.unscored(reason=REASONS[verdict.status], **more)
    return Score(value=verdict.p, answer="consistent" if verdict.decision else "inconsistent", **more)


@metric(name=f"{PREFIX}effective_size", scores="unreduced")
def effective_size(label: str = "label") -> Metric:
    """Count the independent graders that a committee is worth: `deep panel`'s figure, by the correlation of errors.

    The value of a sample's score is a mapping of grades by grader, or a list with a grade of each (``multi_scorer``
    with the reducer ``collect``); or it is a score of ``deep/consistency``, whose judges are the committee.

    Parameters
    ----------
    label : str, default='label'
        The key of the score's metadata, else of the sample's, that holds the right grade.
    """

    def compute(scores: list[SampleScore]) -> float:
        return _measured("effective_size", scores, label)

    return compute


@metric(name=f"{PREFIX}agreement", scores="unreduced")
def agreement() -> Metric:
    """Return Cohen's kappa of two graders, mean over pairs: `deep panel`'s figure; it needs no label."""

    def compute(scores: list[SampleScore]) -> float:
        return _measured("agreement", scores, None)

    return compute


@metric(name=f"{PREFIX}calibrated_accuracy", scores="unreduced")
def calibrated_accuracy(label: str = "label") -> Metric:
    """Return the balanced accuracy of a committee by its calibrated P, samples held out: `deep panel`'s figure.

    Parameters
    ----------
    label : str, default='label'
        As in :func:`effective_size`.
    """

    def compute(scores: list[SampleScore]) -> float:
        return _measured("calibrated_accuracy", scores, label)

    return compute


def _measured(name: str, scores: list[SampleScore], label: str | None) -> float:
    """Return one figure of the committee that scores are of."""
    grades = [_grades(one.score) for one in scores]
    if not any(grades):
        return math.nan
    several = [len(one.score.value) for one in scores if isinstance(one.score.value, list)]
    if several and min(several) < (size := max(several)):
        getLogger(__name__).warning(
            "%s: left out a sample with fewer than %d grades in its list. Give a mapping of grades by grader, or "
            "use deep/committee.",
            name,
            size,
        )
        grades = [
            {} if isinstance(one.score.value, list) and len(one.score.value) < size else grade
            for one, grade in zip(scores, grades, strict=True)
        ]
    labels = [None if label is None else _label(one, label) for one in scores]
    votes = votes_of(grades, labels, [str(one.sample_id) for one in scores], "samples")
    return measure(votes, name)[name]


def _grades(score: Score) -> Mapping[str, object]:
    """Return the grades of one score by grader."""
    if isinstance(score.value, Mapping):
        return score.value
    if isinstance(score.value, list):
        return {str(number): grade for number, grade in enumerate(score.value, 1)}
    return {row["judge"]: row["vote"] for row in (score.metadata or {}).get("judges", ())}


def _label(one: SampleScore, key: str) -> object:
    """Return the right grade of a sample."""
    own = one.score.metadata or {}
    return own[key] if key in own else (one.sample_metadata or {}).get(key)


@scorer(metrics=[effective_size(), agreement(), calibrated_accuracy()], name=f"{PREFIX}committee")
def committee(label: str = "label") -> Scorer:
    """Put the grades that a sample has so far side by side, and measure the committee of its graders.

    It stands behind the graders in a task, or scores their log with ``inspect score --action append``.

    Parameters
    ----------
    label : str, default='label'
        The grader that is right, such as a person's scores; where there is none of that name, the key of the sample's
        metadata that holds the right grade.
    """

    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001  the label is a grade, no target
        votes = {name: judgment_of(result).vote for name, result in scores_by_grader(state.scores).items()}
        default = vote_of(state.metadata.get(label))
        right = votes.pop(label, default)
        if not votes:
            return Score.unscored(reason="scoring_failed", explanation="No grader scored the sample.")
        metadata = {"committee": True, "label": _grade(right)}
        return Score(value={name: _grade(vote) for name, vote in votes.items()}, metadata=metadata)

    return score


def _grade(vote: int) -> int | None:
    return None if vote == ABSTAIN else vote
