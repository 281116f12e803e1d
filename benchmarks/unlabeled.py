"""Accuracy on real panels of what is fitted to votes alone, one fit a table and one fit a dataset.

DEEP_DATA_HOME=... python benchmarks/unlabeled.py
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from deep import VoteMatrix
from deep._util.odds import at_prior, expit
from deep.base import BaseEnsembler
from deep.datasets import read_votes
from deep.ensembles import DawidSkene, LabelModel, MajorityLabelVoter
from deep.model import Unlabeled, fit_unlabeled

PANELS = (
    "crowd/votes_RTE.csv",
    "crowd/votes_bluebirds_duck.csv",
    "alttest/votes.parquet",
    "umass_triviaqa/votes.parquet",
    "llmbar/votes.parquet",
    "css_binary/votes.parquet",
    "summeval_llm/votes_ge5.csv",
    "llm_aggrefact/votes.parquet",
)
COPIES = 5
DRAWS = 500


def ensembler(make: Callable[[], BaseEnsembler]) -> Callable[[np.ndarray], np.ndarray]:
    """Return what fits an ensembler to votes and gives their P."""
    return lambda votes: make().fit(votes).predict_proba(votes)[:, 1]


def unlabeled(votes: np.ndarray) -> np.ndarray:
    """Return P at the estimated prior."""
    return p_of(fit_unlabeled(votes), votes)


def p_of(found: Unlabeled, votes: np.ndarray) -> np.ndarray:
    """Return P of rows at the estimated prior."""
    return at_prior(expit(found.linear.log_odds(votes)), found.prior.estimate)


RIVALS = {
    "majority": ensembler(MajorityLabelVoter),
    "Dawid-Skene": ensembler(DawidSkene),
    "LabelModel": ensembler(LabelModel),
    "fit_unlabeled": unlabeled,
}


def parts(panel: VoteMatrix, by_dataset: bool) -> Iterator[np.ndarray]:
    """Yield the rows of each fit."""
    names = np.asarray(panel.datasets)
    yield from ([names == name for name in np.unique(names)] if by_dataset else [np.full(len(names), True)])


def right(panel: VoteMatrix, predict: Callable[[np.ndarray], np.ndarray], by_dataset: bool) -> np.ndarray:
    """Return 1 for each row that is decided right, ties for 1."""
    found = np.zeros(len(panel.labels))
    for rows in parts(panel, by_dataset):
        votes = panel.votes[rows]
        votes = votes[:, (votes >= 0).any(axis=0)]
        found[rows] = (predict(votes) >= 0.5) == panel.labels[rows]
    return found


def dataset_means(panel: VoteMatrix, values: np.ndarray) -> np.ndarray:
    """Return the mean of each dataset."""
    return np.array([values[rows].mean() for rows in parts(panel, by_dataset=True)])


def error(panel: VoteMatrix, gain: np.ndarray) -> float:
    """Return the standard error of the mean gain, by bootstrap over datasets and the rows in them."""
    rng = np.random.default_rng(0)
    groups = [gain[rows] for rows in parts(panel, by_dataset=True)]
    draws = [
        np.mean([rng.choice(groups[i], len(groups[i])).mean() for i in rng.integers(len(groups), size=len(groups))])
        for _ in range(DRAWS)
    ]
    return float(np.std(draws))


def covered(panel: VoteMatrix, by_dataset: bool) -> str:
    """Return in how many fits the interval of the prior holds the share of consistent rows, and its mean width."""
    held, width = [], []
    for rows in parts(panel, by_dataset):
        prior = fit_unlabeled(panel.votes[rows]).prior
        held.append(prior.low <= panel.labels[rows].mean() <= prior.high)
        width.append(prior.high - prior.low)
    return f"prior covered {sum(held)}/{len(held)}, width {np.mean(width):.2f}"


def worst_copy(panel: VoteMatrix) -> float:
    """Return the largest change of accuracy, in points, when one judge is there five times more."""
    before = (unlabeled(panel.votes) >= 0.5) == panel.labels
    changes = []
    for judge in range(0, panel.votes.shape[1], max(panel.votes.shape[1] // 20, 1)):
        more = np.hstack([panel.votes, np.repeat(panel.votes[:, [judge]], COPIES, axis=1)])
        changes.append(((unlabeled(more) >= 0.5) == panel.labels).mean() - before.mean())
    return float(100 * np.abs(changes).max())


def main() -> None:
    """Print the accuracies of each panel, mean over its datasets, and the gain of `fit_unlabeled` on the majority."""
    folder = Path(os.environ.get("DEEP_DATA_HOME", "../shared/data"))
    for path in PANELS:
        panel = read_votes([folder / path])
        for by_dataset in (False, True):
            found = {name: right(panel, predict, by_dataset) for name, predict in RIVALS.items()}
            gain = found["fit_unlabeled"] - found["majority"]
            figures = "  ".join(f"{name} {100 * dataset_means(panel, hits).mean():.1f}" for name, hits in found.items())
            fits = "a fit a dataset" if by_dataset else "one fit"
            sys.stdout.write(
                f"{path.split('/')[0]}, {fits}: {figures}  gain {100 * dataset_means(panel, gain).mean():+.1f} "
                f"+- {100 * error(panel, gain):.1f}  {covered(panel, by_dataset)}\n"
            )
        sys.stdout.write(f"  {COPIES} copies of a judge move accuracy by at most {worst_copy(panel):.2f} points\n")


if __name__ == "__main__":
    main()
