"""Accuracy on real panels of what is fitted to votes alone, one fit a table and one fit a dataset.

DEEP_DATA_HOME=... python benchmarks/unlabeled.py [--choose | --ends]

`--choose` prints which constants of `fit_unlabeled` for dense panels the other panels choose for each panel, and what
they give there: the least mean log loss of those by which crowds and WRENCH lose no more than `LOST`, a fit a dataset.
`--ends` prints how many are inconsistent of the tenth with the lowest P and of all, consistent of the highest tenth and
of all, and what the log loss is at other priors; WRENCH, the ZenCrowds and SPADE count as one panel each.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
from scipy.sparse.csgraph import connected_components

from deep import VoteMatrix
from deep._util.odds import expit, shift_prior
from deep.base import BaseEnsembler
from deep.datasets import read_votes
from deep.ensembles import DawidSkene, LabelModel, MajorityLabelVoter
from deep.model import UnlabeledFit, _consensus, _unlabeled, fit_unlabeled

PANELS = (
    *(f"crowd/votes_{name}.csv" for name in ("RTE", "bluebirds_duck")),
    *(f"{name}/votes.parquet" for name in ("alttest", "umass_triviaqa", "llmbar", "css_binary")),
    *("summeval_llm/votes_ge5.csv", "llm_aggrefact/votes.parquet"),
)
WRENCH = tuple(f"wrench/{name}.parquet" for name in ("cdr", "commercial", "imdb", "sms", "tennis", "yelp", "youtube"))
NEW = ("faithbench", "relevance_methods", "span_mt", "relevance_prompts", "ice_code", "hatecheck", "span_d2t")
CROWDS = tuple(f"crowd/votes_ZC_{name}.parquet" for name in ("all", "us", "in"))
SPADE = tuple(f"spade/{name}.parquet" for name in ("codereviews", "lecturesummaries", "sportroutine", "statsbot"))
MORE = (*(f"{name}/votes.parquet" for name in (*NEW, "llm_rubric")), *CROWDS, *SPADE)
GRID = tuple(product((0.4, 0.44, 0.47, 0.5, 0.6, 0.7), (1.2, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5)))
"""The correlation of errors that is assumed of dense panels, and their largest log-odds; those of sparse ones stay."""
BEFORE = (0.4, 2.5)
LOST = {"wrench": 0.005, "crowd": 0.01}
COPIES = 5
DRAWS = 500


def ensembler(make: Callable[[], BaseEnsembler]) -> Callable[[np.ndarray], np.ndarray]:
    """Return what fits an ensembler to votes and gives their P."""
    return lambda votes: make().fit(votes).predict_proba(votes)[:, 1]


def unlabeled(votes: np.ndarray) -> np.ndarray:
    """Return P at the estimated prior."""
    return p_of(fit_unlabeled(votes), votes)


def p_of(found: UnlabeledFit, votes: np.ndarray) -> np.ndarray:
    """Return P of rows at the estimated prior."""
    return shift_prior(expit(found.linear.log_odds(votes)), found.prior.estimate)


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
    result = np.zeros(len(panel.labels))
    for rows in parts(panel, by_dataset):
        votes = panel.votes[rows]
        votes = votes[:, (votes >= 0).any(axis=0)]
        result[rows] = (predict(votes) >= 0.5) == panel.labels[rows]
    return result


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


def fitted(votes: np.ndarray) -> tuple[_consensus.JudgeClusters, _consensus.Panel, float]:
    """Return of a panel what no constant of the grid changes."""
    judges = _consensus.JudgeClusters.of(votes, np.ones(len(votes)))
    alike = _consensus.pairwise_overlap(judges.panel)
    panel = _consensus.count_copies_as_one(judges.panel, alike)
    trust = _unlabeled._compare_halves(
        panel, connected_components(alike > _unlabeled.MIN_COPY_OVERLAP, directed=False)[1], np.random.default_rng(0)
    )
    return judges, panel, trust.weight


def tried(path: str, folder: Path) -> np.ndarray:
    """Return accuracy, log loss and Brier score of a panel by constants of the grid, mean over its datasets."""
    panel, result = read_votes([folder / path]), []
    for rows in parts(panel, by_dataset=True):
        votes, y = panel.votes[rows], panel.labels[rows]
        votes = votes[:, (votes >= 0).any(axis=0)]
        known = fitted(votes[(votes >= 0).any(axis=1)])
        result.append([figures(known, votes, y, constants) for constants in (*GRID, BEFORE)])
    return np.mean(result, axis=0)


def figures(known: tuple[_consensus.JudgeClusters, _consensus.Panel, float], votes, y, constants) -> list[float]:
    """Return accuracy, log loss and Brier score by constants."""
    for name, dense in zip(("ERROR_CORRELATION", "LARGEST"), constants, strict=True):
        setattr(_unlabeled, name, (getattr(_unlabeled, name)[0], dense))
    judges, panel, weight = known
    mixed = judges.expand(_unlabeled._average_log_odds(panel, _consensus.dawid_skene(panel), weight))
    p = np.clip(expit(mixed.log_odds(votes)), 1e-6, 1 - 1e-6)
    return [((p >= 0.5) == y).mean(), -np.log(np.where(y == 1, p, 1 - p)).mean(), ((p - y) ** 2).mean()]


def choose(folder: Path) -> None:
    """Print for each panel the constants that the others choose, and what they change there."""
    paths = (*WRENCH, *PANELS, *MORE)
    all_figures = np.array([tried(path, folder) for path in paths])
    change = all_figures[:, :-1] - all_figures[:, -1:]
    kind = np.array([path.partition("/")[0] for path in paths])
    share = np.where(kind == "wrench", 1 / len(WRENCH), np.where(np.isin(paths, CROWDS), 1 / len(CROWDS), 1.0))
    nested = []
    for i, path in enumerate((*paths, "all")):
        others = np.arange(len(paths)) != i
        lost = np.array([np.average(change[of, :, 1], axis=0, weights=share[of]) > most
                         for name, most in LOST.items() for of in [others & (kind == name)]])  # fmt: skip
        mean = np.average(change[others, :, 1], axis=0, weights=share[others])
        best = int(np.argmin(np.where(lost.any(axis=0), np.inf, mean)))
        gain = np.average(change[:, best], axis=0, weights=share) if path == "all" else change[i, best]
        nested += [] if path == "all" else [change[i, best]]
        now = "" if path == "all" else f", from {np.round(all_figures[i, -1], 3).tolist()}"
        sys.stdout.write(f"{path}: {GRID[best]}, accuracy, log loss, Brier score {np.round(gain, 3).tolist()}{now}\n")
    sys.stdout.write(
        f"chosen by the others, in the mean: {np.average(nested, axis=0, weights=share).round(4).tolist()}\n"
    )


def ends(folder: Path) -> None:
    """Print what is true of the lowest and the highest P of each panel, and its log loss at three priors."""
    by_panel: dict[str, list[list[float]]] = {}
    for path in (*WRENCH, *PANELS, *MORE):
        panel, result = read_votes([folder / path]), []
        for rows in parts(panel, by_dataset=True):
            votes, y = panel.votes[rows], panel.labels[rows]
            fitted, cast = fit_unlabeled(votes), (votes >= 0).sum(axis=1)
            z = fitted.linear.log_odds(votes)
            order, tenth = np.argsort(z, kind="stable"), max(round(len(y) / 10), 1)
            share = ((votes == 1).sum(axis=1) / np.maximum(cast, 1))[cast > 0].mean()
            p = [
                shift_prior(expit(z), prior) for prior in (fitted.prior.estimate, np.clip(share, 0.02, 0.98), y.mean())
            ]
            losses = [-np.log(np.clip(np.where(y == 1, one, 1 - one), 1e-6, 1)).mean() for one in p]
            result.append([1 - y[order[:tenth]].mean(), 1 - y.mean(), y[order[-tenth:]].mean(), y.mean(), *losses])
        name = "crowd/ZC" if path in CROWDS else path.partition("/")[0] if path in (*WRENCH, *SPADE) else path
        by_panel.setdefault(name, []).append(np.mean(result, axis=0).tolist())
    sys.stdout.write(
        "| panel | lowest tenth: 0 | all | highest tenth: 1 | all | log loss | at share of votes | at share |\n"
    )
    table = {name: np.mean(values, axis=0) for name, values in by_panel.items()}
    for name, row in (table | {"mean": np.mean(list(table.values()), axis=0)}).items():
        shares, losses = (" | ".join(f"{value:.{n}f}" for value in of) for of, n in ((row[:4], 2), (row[4:], 3)))
        sys.stdout.write(f"| {name} | {shares} | {losses} |\n")


def main() -> None:
    """Print the accuracies of each panel, mean over its datasets, and the gain of `fit_unlabeled` on the majority."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--ends", action="store_true")
    args, folder = parser.parse_args(), Path(os.environ.get("DEEP_DATA_HOME", "../shared/data"))
    if args.choose or args.ends:
        return choose(folder) if args.choose else ends(folder)
    for path in PANELS:
        panel = read_votes([folder / path])
        for by_dataset in (False, True):
            result = {name: right(panel, predict, by_dataset) for name, predict in RIVALS.items()}
            gain = result["fit_unlabeled"] - result["majority"]
            figures = "  ".join(
                f"{name} {100 * dataset_means(panel, hits).mean():.1f}" for name, hits in result.items()
            )
            fits = "a fit a dataset" if by_dataset else "one fit"
            sys.stdout.write(
                f"{path.split('/')[0]}, {fits}: {figures}  gain {100 * dataset_means(panel, gain).mean():+.1f} "
                f"+- {100 * error(panel, gain):.1f}  {covered(panel, by_dataset)}\n"
            )
        sys.stdout.write(f"  {COPIES} copies of a judge move accuracy by at most {worst_copy(panel):.2f} points\n")
    return None


if __name__ == "__main__":
    main()
