"""Drift: which judge, or the panel as a whole, no longer votes as it did on the training datasets; without labels."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deep._checks import Floats, Votes
from deep.datasets import Failures
from deep.evaluate._frames import null_if_nan
from deep.exceptions import InputError
from deep.model import DriftRow, Model, compare_votes, false_alarms, match_columns
from deep.records import VoteMatrix

FEWEST_DATASETS = 3
"""Training datasets from which on one can be held beside the others."""


@dataclass(frozen=True)
class DriftReport:
    """How new votes differ from those that a model was fitted on.

    Parameters
    ----------
    stale : bool
        Whether anything moved.
    moved : list of str
        Judges that were renamed, fail too often, or moved beyond chance; ``(panel)`` for all of them together.
    other_version_or_model : dict of str to str
        By voter of the model: the column of another version or LLM that stands for it.
    failing : dict of str to float
        By voter: its share of items without a usable answer, where that is too large.
    n : int
        New rows.
    statistics : list of DriftRow
    training_datasets, false_alarms_on_training : list of str
        The latter would be called stale beside the others.
    """

    stale: bool
    moved: list[str]
    other_version_or_model: dict[str, str]
    failing: dict[str, float]
    n: int
    statistics: list[DriftRow]
    training_datasets: list[str]
    false_alarms_on_training: list[str]

    def as_dict(self) -> dict[str, object]:
        """Return JSON values; a statistic without a value is null."""
        rows = [{**asdict(row), "now": null_if_nan(row.now)} for row in self.statistics]
        return {**asdict(self), "statistics": rows}

    def sentences(self) -> list[str]:
        """Return sentences on it for a page."""
        verdict = f"Moved: {', '.join(self.moved)}." if self.stale else "Nothing moved beyond chance."
        n = len(self.training_datasets)
        says = [f"{self.n:,} new rows beside those of {n} training dataset{'' if n == 1 else 's'}. {verdict}"]
        if n >= FEWEST_DATASETS:
            alarms = ", ".join(self.false_alarms_on_training) or "none"
            says.append(f"Training datasets that would be called moved beside the others: {alarms}.")
        renamed = self.other_version_or_model
        return says + [f"{name}: the votes are of another version or LLM, {now}." for name, now in renamed.items()]


def drift_report(
    model: Model,
    votes: VoteMatrix,
    failures: Sequence[Failures] = (),
    *,
    alpha: float = 0.05,
    max_failure_rate: float = 0.05,
) -> DriftReport:
    """Compare new votes with those that a model was fitted on.

    Parameters
    ----------
    model : Model
    votes : VoteMatrix
        Columns of another version or LLM of a judge stand for it, and are reported.
    failures : sequence of Failures
        Why votes are missing (:func:`deep.datasets.read_reasons`).
    alpha : float, default=0.05
        Chance of a false alarm, over all judges and statistics.
    max_failure_rate : float, default=0.05
        Above it a judge is called failing.

    Raises
    ------
    InputError
        `max_failure_rate` is not in [0, 1], or a voter of the model has no column.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import drift_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> drift_report(model, votes).stale
    False
    """
    if not 0 <= max_failure_rate <= 1:
        raise InputError(f"`max_failure_rate` must lie in [0, 1]. Got {max_failure_rate!r}.")
    columns = match_columns(model.voters, votes.voter_names, allow_mismatch=True)
    present = {
        voter.name: votes.voter_names[column]
        for voter, column in zip(model.voters, columns, strict=True)
        if column is not None
    }
    renamed = {name: now for name, now in present.items() if now != name}
    predict = _predict(model)
    rows = compare_votes(model.cells, model.select(votes, allow_mismatch=True), predict, alpha=alpha)
    used = set(present.values())
    failing = {each.voter: each.rate for each in failures if each.voter in used and each.rate > max_failure_rate}
    moved = list(dict.fromkeys([*renamed, *failing, *(row.judge for row in rows if row.moved)]))
    return DriftReport(
        stale=bool(moved),
        moved=moved,
        other_version_or_model=renamed,
        failing=failing,
        n=len(votes.votes),
        statistics=rows,
        training_datasets=list(model.cells.groups),
        false_alarms_on_training=false_alarms(model.cells, predict, alpha=alpha),
    )


def _predict(model: Model) -> Callable[[Votes], Floats]:
    """Return P of patterns of votes; where the model knows soft scores too, P of rows that have none."""
    n = len(model.score_names)
    return lambda patterns: model.predict(patterns, np.full((len(patterns), n), np.nan) if n else None)
