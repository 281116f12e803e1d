"""The stages at which any judge can be measured by its votes: DEEP's sets, FECT, PROBE and CogniBench."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deep._checks import Floats, Labels, Rows
from deep.datasets import published_datasets
from deep.datasets.benchmarks import BENCHMARKS, BenchmarkExamples, find_folder
from deep.records import ABSTAIN, VoteMatrix

Counts = Floats
"""Shape (..., 5): called inconsistent and is, called and is not, not called and is, not called and is not, no vote."""

PROBE = "probe-"
COGNIBENCH = "cognibench"
COMPLEXITIES = (0, 1, 2, 3)
VERDICTS = ("invented", "misleading", "speculative", "reliable", "irrefutable", "faithful")
"""What a CogniBench sentence can be found to be, the worst first; a response is what its worst sentence is."""


def balanced_accuracy_of(counts: Counts) -> Floats:
    """Return the mean of the shares of both classes that are called rightly, of the items with a vote."""
    hit, false, miss, right, _ = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((hit / (hit + miss) + right / (right + false)) / 2)


def f1_of(counts: Counts) -> Floats:
    """Return F1 with the inconsistent class as the positive one, of the items with a vote."""
    hit, false, miss, _, _ = np.moveaxis(counts, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(2 * hit / (2 * hit + false + miss))


def called_of(counts: Counts) -> Floats:
    """Return the share of all items that is called inconsistent; an item without a vote is not called."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((counts[..., 0] + counts[..., 1]) / counts.sum(axis=-1))


@dataclass(frozen=True, eq=False)
class StageMeasure:
    """One figure of every judge.

    Parameters
    ----------
    stage : {'DEEP', 'FECT', 'PROBE', 'CogniBench'}
    part : str
        The dataset, the complexity or the verdict.
    metric : {'balanced accuracy', 'F1', 'recall', 'false alarms', 'called'}
    dataset : str
        What a model must not have been trained on; a prefix for PROBE.
    rows : ndarray of int, shape (n,)
        The items.
    truth : ndarray of {0, 1}, shape (n,)
        Whether each is consistent.
    """

    stage: str
    part: str
    metric: str
    dataset: str
    rows: Rows
    truth: Labels

    @property
    def formula(self) -> Callable[[Counts], Floats]:
        """The figure as a function of counts."""
        return {"balanced accuracy": balanced_accuracy_of, "F1": f1_of}.get(self.metric, called_of)

    @property
    def title(self) -> str:
        """The head of its column."""
        return f"{self.stage} {self.part} {self.metric}".replace("  ", " ")


@dataclass(frozen=True, slots=True)
class NotMeasured:
    """A stage, or a judge at a stage, without a figure, and why."""

    what: str
    why: str


def stage_measures(
    votes: VoteMatrix, verdicts: Mapping[str, str] | None
) -> tuple[list[StageMeasure], list[NotMeasured]]:
    """Return the figures that the items of some votes allow, and the stages that they do not.

    Parameters
    ----------
    votes : VoteMatrix
        Labels that it lacks are those of the benchmark of the dataset's name, where its files are here.
    verdicts : mapping of str to str, optional
        CogniBench's verdict, of `VERDICTS`, by item.
    """
    every = [*_deep(votes), *_fect(votes), *_probe(votes), *_cognibench(votes, verdicts)]
    measures = [one for one in every if isinstance(one, StageMeasure)]
    return measures, [one for one in every if isinstance(one, NotMeasured)]


Found = Iterator[StageMeasure | NotMeasured]


def _deep(votes: VoteMatrix) -> Found:
    for dataset in published_datasets():
        yield from _labeled(votes, "DEEP", dataset.name, "balanced accuracy", dataset.name)


def _fect(votes: VoteMatrix) -> Found:
    yield from _labeled(votes, "FECT", "", "F1", "fect")


def _labeled(votes: VoteMatrix, stage: str, part: str, metric: str, dataset: str) -> Found:
    rows = np.flatnonzero(votes.datasets == dataset)
    if not len(rows):
        yield NotMeasured(f"{stage} {part}".strip(), f"no votes on the dataset {dataset}: `deep votes {dataset} ...`")
        return
    labels = _labels(votes, rows, dataset)
    known = labels >= 0
    if len(np.unique(labels[known])) < 2:
        why = (
            "both labels are needed, in the votes or in the benchmark's files: `deep data info` says how they get here"
        )
        yield NotMeasured(f"{stage} {part}".strip(), why)
        return
    yield StageMeasure(stage, part, metric, dataset, rows[known], labels[known])


def _labels(votes: VoteMatrix, rows: Rows, dataset: str) -> Labels:
    """Return the labels of some items, those that are not there from the benchmark's own files."""
    labels = votes.labels[rows].copy()
    benchmark = BENCHMARKS.get(dataset)
    folder = None if benchmark is None or (labels >= 0).all() else find_folder(benchmark)
    if benchmark is not None and folder is not None:
        examples = BenchmarkExamples(benchmark, folder, dataset=None, require_source=False)
        known = {example.example_id: example.label for example in examples}
        given = [known.get(item) for item in votes.example_ids[rows]]
        labels = np.array(
            [label if label >= 0 or new is None else new for label, new in zip(labels, given, strict=True)]
        )
    return labels


def _probe(votes: VoteMatrix) -> Found:
    names = [str(name).startswith(PROBE) for name in votes.datasets]
    rows = np.flatnonzero(names)
    if not len(rows):
        yield NotMeasured("PROBE", "no votes on a build of `deep probe build`: `deep votes BUILD/evaluation.jsonl ...`")
        return
    ends = [str(votes.example_ids[row]).rpartition("/")[2] for row in rows]
    for complexity in COMPLEXITIES:
        chosen = rows[[end == str(complexity) for end in ends]]
        metric = "recall" if complexity else "false alarms"
        if len(chosen):
            truth = np.full(len(chosen), int(complexity == 0))
            yield StageMeasure("PROBE", f"complexity {complexity}", metric, PROBE, chosen, truth)
        else:
            yield NotMeasured(f"PROBE complexity {complexity}", "no votes on responses of that complexity")


def _cognibench(votes: VoteMatrix, verdicts: Mapping[str, str] | None) -> Found:
    rows = np.flatnonzero(votes.datasets == COGNIBENCH)
    if not len(rows):
        yield NotMeasured("CogniBench", "no votes on the dataset cognibench: `deep votes cognibench ...`")
        return
    if verdicts is None:
        yield NotMeasured("CogniBench", "the tiers stand in the published files: --cognibench DIR")
        return
    of = [verdicts.get(str(item)) for item in votes.example_ids[rows]]
    bad = VERDICTS[:3]
    for verdict in VERDICTS:
        chosen = rows[[one == verdict for one in of]]
        if len(chosen):
            truth = np.full(len(chosen), int(verdict not in bad))
            metric = "recall" if verdict in bad else "false alarms"
            yield StageMeasure("CogniBench", verdict, metric, COGNIBENCH, chosen, truth)
        else:
            yield NotMeasured(f"CogniBench {verdict}", "no votes on items of that verdict")


def counts_of(votes: Labels, truth: Labels) -> Counts:
    """Return the counts of each item, shape (n, 5)."""
    called, voted = votes == 0, votes != ABSTAIN
    bad = truth == 0
    parts: Sequence[np.ndarray] = (called & bad, called & ~bad, voted & ~called & bad, voted & ~called & ~bad, ~voted)
    return np.column_stack(parts).astype(float)
