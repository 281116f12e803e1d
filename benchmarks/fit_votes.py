"""Fit the embedded votes to half of the cells of the DEEP paper's Tables 2, 4 and 5.

    python benchmarks/fit_votes.py --moves 60000 --seed 0 --jobs 2

How often each pattern of ten votes occurs among the consistent and among the inconsistent items of a dataset is sought,
with every voter's counts as Table 1 has them. One dataset after the other is held out: the ensemblers are fitted to the
other three by the paper's recipe, exactly as `deep paper` does it, which gives P of all 1,024 patterns; then votes are
swapped between items of one class (so that all counts stay) until balanced accuracies and calibration errors come close
to the printed ones. As each dataset is training data for the others, rounds follow.

Half of the cells (`kept_out`, by a checksum of the cell's name) take no part, but for LabelModel and the majority of
Table 2. Three things that the paper says in words are asked for as well: LabelModel is above the majority everywhere,
it leads in the columns in which the paper has it lead, and Platt scaling lowers the error in every cell of Table 4.

The start is a Gaussian copula with one correlation a dataset; swaps away from it cost (`STAY`).
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from deep import VoteMatrix
from deep.datasets import OperatingPoint, PublishedDataset, published_datasets, published_points
from deep.datasets import _simulate as simulated
from deep.ensembles import default_ensemblers
from deep.experiments.paper import PublishedFigure, kept_out, published_table
from deep.model import RECIPES, ChainCandidate, ChainTask, chain_tasks, training_set

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
"""Items by pattern and label, shape (1024, 2)."""

OUT = Path(simulated.__file__).with_name("simulated_votes.json")
VOTERS = simulated.voters()
BITS = 1 << np.arange(len(VOTERS))
PATTERNS = ((np.arange(1024)[:, None] & BITS) > 0).astype(np.int8)
DATASETS = published_datasets()
ORDER = (1, 2, 3, 0)
"""The largest first, for it weighs most as training data; Table 4's last."""

CORRELATION = dict(zip((d.name for d in DATASETS), (0.5, 0.8, 0.6, 0.4), strict=True))
"""Of two voters' latent judgments given the label, where the search starts."""

N_BINS = 8
SCALE = {"balanced_accuracy": 1.0, "ece": 1.0}
"""Points that count as one."""

LEAST = {"above majority": 0.6, "lead": 0.3, "platt": 0.3}
"""Points by which what the paper says in words must hold, so that refits do not undo it."""

HARD = (15.0, 15.0, 15.0, 15.0, 200.0)
"""Weight of these, by round."""

STAY = (0.02, 0.2, 1.0, 4.0, 4.0)
"""What an item moved away from where the round began costs, by round (as a share of those with its pattern): datasets
are training data for each other, so later rounds mend, and move less and less."""

COOLEST, HOTTEST = 0.001, 0.5

HALF_DIGIT = 0.0005 + 1e-9
"""A figure printed in percent with one decimal stands for an interval of this half width."""


class WholeCounts(NamedTuple):
    """Votes for consistent behind a cell of Table 1, in whole items."""

    true_positives: int
    false_positives: int
    reproduces: bool
    """Whether these counts give all three printed figures, to their last digit."""


def _whole_within(rate: float, half: float, n: int) -> npt.NDArray[np.intp]:
    """Return the whole numbers k of `n` whose share k / n is within `half` of `rate`."""
    k = np.arange(n + 1)
    return k[np.abs(k / n - rate) <= half]


def recover_counts(point: OperatingPoint, dataset: PublishedDataset) -> WholeCounts:
    """Return the whole counts of votes behind an operating point.

    Parameters
    ----------
    point : OperatingPoint
    dataset : PublishedDataset
        The one that `point` was measured on.

    Returns
    -------
    WholeCounts
        The counts that reproduce balanced accuracy, precision and recall to their last printed digit, the
        closest where there are several. Where none do, the whole numbers nearest to TPR times the
        consistent and FPR times the inconsistent items.

    """
    tp = _whole_within(point.tpr, HALF_DIGIT, dataset.n_consistent)[:, None]
    # The rate is 2 balanced accuracy - recall, so that the rounding of the one counts twice, and of the other once.
    fp = _whole_within(1.0 - point.tnr, 3.0 * HALF_DIGIT, dataset.n_inconsistent)[None, :]
    # The squared distance of counts from the printed figures, infinite where one is not reproduced.
    recall = tp / dataset.n_consistent
    balanced, precision = (recall + 1.0 - fp / dataset.n_inconsistent) / 2.0, tp / (tp + fp)
    printed = np.array([point.recall, point.balanced_accuracy, point.precision])
    gaps = np.stack(np.broadcast_arrays(recall, balanced, precision), axis=-1) - printed
    error = np.where(np.abs(gaps).max(axis=-1) <= HALF_DIGIT, (gaps**2).sum(axis=-1), np.inf)
    if error.size and np.isfinite(error.min()):
        i, j = np.unravel_index(error.argmin(), error.shape)
        return WholeCounts(int(tp[i, 0]), int(fp[0, j]), reproduces=True)
    n_true_negatives = round(point.tnr * dataset.n_inconsistent)
    return WholeCounts(
        round(point.tpr * dataset.n_consistent), dataset.n_inconsistent - n_true_negatives, reproduces=False
    )


def start() -> dict[str, Counts]:
    """Return the counts of a Gaussian copula with one correlation a dataset, every voter's counts as in Table 1."""
    rng = np.random.default_rng(0)
    return {dataset.name: _copula(dataset, rng) for dataset in DATASETS}


def _copula(dataset: PublishedDataset, rng: np.random.Generator) -> Counts:
    points = {point.voter: point for point in published_points() if point.dataset == dataset.name}
    counts = [recover_counts(points[voter], dataset) for voter in VOTERS]
    result = np.zeros((1024, 2), dtype=np.int64)
    for label, n in ((0, dataset.n_inconsistent), (1, dataset.n_consistent)):
        r = CORRELATION[dataset.name]
        latent = np.sqrt(r) * rng.standard_normal((n, 1)) + np.sqrt(1 - r) * rng.standard_normal((n, len(VOTERS)))
        positive = np.array([count[1 - label] for count in counts])
        votes = latent >= np.sort(latent, axis=0)[n - positive, np.arange(len(VOTERS))]
        result[:, label] = np.bincount(votes @ BITS, minlength=1024)
    return result


CALIBRATORS = ("platt", "bbq", "histogram", "isotonic")


def tables_of(
    votes: VoteMatrix, dataset: str, jobs: int, calibrators: Sequence[str] = CALIBRATORS
) -> dict[tuple[str, int, str | None], Floats]:
    """Return P of all patterns by each chain fitted to the other datasets, by ensembler, size and calibrator."""
    training = training_set(votes.rows(votes.datasets != dataset), RECIPES["paper"])
    options = {"sizes": (3, 5, 9), "ensemblers": default_ensemblers("paper"), "calibrators": ("none", *calibrators)}
    tasks = chain_tasks(training, RECIPES["paper"], **options)
    with ProcessPoolExecutor(jobs) as pool:
        result = [candidate for some in pool.map(_run, tasks) for candidate in some]
    return {(one.ensembler, len(one.subset.columns), one.calibrator): one.p for one in result}


def _run(task: ChainTask) -> list[ChainCandidate]:
    return task.run(PATTERNS).candidates


@dataclass
class Held:
    """One dataset's counts and the figures of every chain on them, kept up to date as votes are swapped."""

    counts: Counts
    p: Floats
    """Of all patterns by each chain, shape (n_chains, 1024)."""
    figures: list[tuple[int, str, float]]
    """Chain, metric and printed value (in points; NaN where it takes no part) of each cell."""
    apart: list[tuple[int, int, float]]
    """Cells of which the first must be above the second by so much."""
    stay: float
    hard: float
    first: Counts = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.counts.copy()
        self.bins = np.minimum((self.p * N_BINS).astype(int), N_BINS - 1)
        self.accepts = (self.p >= 0.5).astype(float)
        self.chain = np.array([chain for chain, _, _ in self.figures])
        self.is_ece = np.array([metric == "ece" for _, metric, _ in self.figures])
        self.printed = np.array([value for _, _, value in self.figures])
        self.scale = np.array([SCALE[metric] for _, metric, _ in self.figures])
        above = np.array([(a, b) for a, b, _ in self.apart], dtype=int).reshape(-1, 2)
        self.above, self.below, self.least = above[:, 0], above[:, 1], np.array([least for *_, least in self.apart])
        self.n = self.counts.sum(axis=0).astype(float)
        rows = np.arange(len(self.p))[:, None]
        self.gaps = np.zeros((len(self.p), N_BINS))
        self.accepted = self.accepts @ self.counts
        for label in (0, 1):
            np.add.at(self.gaps, (rows, self.bins), self.counts[:, label] * (label - self.p))
        self.rows = rows
        self.loss = self._loss(self.gaps, self.accepted, self.counts)

    def values(self, gaps: Floats, accepted: Floats) -> Floats:
        """Return the figure of every cell, in points."""
        ece = np.abs(gaps).sum(axis=1) / self.n.sum()
        accuracy = (accepted[:, 1] / self.n[1] + 1 - accepted[:, 0] / self.n[0]) / 2
        return 100 * np.where(self.is_ece, ece[self.chain], accuracy[self.chain])

    def _loss(self, gaps: Floats, accepted: Floats, counts: Counts) -> float:
        result = self.values(gaps, accepted)
        error = np.nan_to_num((result - self.printed) / self.scale)
        lacking = np.maximum(0, result[self.below] - result[self.above] + self.least)
        moved = ((counts - self.first) ** 2 / (self.first + 2)).sum()
        return float((error**2).sum() + self.hard * (lacking**2).sum() + self.stay * moved)

    def swap(self, rng: np.random.Generator, heat: float) -> None:
        """Give a voter's vote for consistent to another item of the class, and keep that where it helps."""
        label, bit = int(rng.integers(2)), int(BITS[rng.integers(len(BITS))])
        here = np.flatnonzero(self.counts[:, label])
        one, other = rng.choice(here[(here & bit) > 0]), rng.choice(here[(here & bit) == 0])
        most = int(min(self.counts[one, label], self.counts[other, label]))
        n = int(min(most, 1 << rng.integers(4)))
        where = np.array([one, other, one ^ bit, other ^ bit])
        change = np.array([-n, -n, n, n])
        counts, accepted, gaps = self.counts.copy(), self.accepted.copy(), self.gaps.copy()
        np.add.at(counts[:, label], where, change)
        accepted[:, label] += self.accepts[:, where] @ change
        np.add.at(gaps, (self.rows, self.bins[:, where]), change * (label - self.p[:, where]))
        loss = self._loss(gaps, accepted, counts)
        if loss < self.loss or rng.random() < np.exp((self.loss - loss) / heat):
            self.counts, self.accepted, self.gaps, self.loss = counts, accepted, gaps, loss


def printed_cells(dataset: str) -> Iterator[PublishedFigure]:
    """Yield the printed figures of a dataset."""
    for number in ("2", "4", "5"):
        yield from (figure for figure in published_table(number) if figure.dataset == dataset)


def held(counts: dict[str, Counts], dataset: str, number: int, jobs: int) -> tuple[Held, list[PublishedFigure]]:
    """Return a dataset with what its cells and the paper's words ask for, and the cells."""
    # As `simulate_votes(0)` gives them, in the same order.
    votes = simulated.draw_votes({name: (PATTERNS, result) for name, result in counts.items()}, 0)
    tables = tables_of(votes, dataset, jobs)
    chains = {key: i for i, key in enumerate(tables)}
    cells = [f for f in printed_cells(dataset) if (f.ensembler, f.n_prompts, f.calibrator) in chains]
    place = {(f.table, f.ensembler, f.n_prompts, f.calibrator): i for i, f in enumerate(cells)}
    aims = [
        (
            chains[f.ensembler, f.n_prompts, f.calibrator],
            f.metric,
            np.nan if kept_out(f) else 100 * f.value,
        )
        for f in cells
    ]
    apart: list[tuple[int, int, float]] = []
    for size in (3, 5, 9):
        column = {f.ensembler: f.value for f in cells if f.table == "2" and f.n_prompts == size}
        learned = place["2", "LabelModel", size, None]
        apart.append((learned, place["2", "MajorityLabelVoter", size, None], LEAST["above majority"]))
        if column["LabelModel"] == max(column.values()):
            others = [
                place["2", name, size, None] for name in column if name not in ("LabelModel", "MajorityLabelVoter")
            ]
            apart += [(learned, other, LEAST["lead"]) for other in others]
    for f, i in zip(cells, range(len(cells)), strict=True):
        if f.table == "4" and f.calibrator is None:
            apart.append((i, place["4", f.ensembler, f.n_prompts, "platt"], LEAST["platt"]))
    return Held(counts[dataset].copy(), np.array(list(tables.values())), aims, apart, STAY[number], HARD[number]), cells


def report(found: Held, cells: list[PublishedFigure]) -> str:
    """Return how far the figures are from the printed ones, by whether they take part, and what words lack."""
    values = found.values(found.gaps, found.accepted)
    error = np.abs(values - [100 * f.value for f in cells])
    out = np.array([kept_out(f) for f in cells])
    lacking = [
        f"{cells[a].ensembler} {cells[a].n_prompts} {values[a]:.1f} against {cells[b].ensembler} {values[b]:.1f}"
        for a, b, _ in found.apart
        if values[a] < values[b]
    ]
    moved = np.abs(found.counts - found.first).sum() // 2
    apart = f"fitted {error[~out].mean():.2f}, kept out {error[out].mean():.2f} points off; {moved} items moved; "
    return f"{apart}{len(lacking)} of {len(found.apart)} orders lacking: {'; '.join(lacking[:5])}"


def bounds(found: Held, cells: list[PublishedFigure]) -> Iterator[tuple[str, int, float, float, float]]:
    """Yield how near to the cells kept out, and how far from them, votes can be that fit as well as these do.

    They give every voter the counts of Table 1, are on average as near to the fitted cells, and have no pattern that
    does not occur now. Each bin of a calibration error keeps its sign, which makes all figures linear in the items by
    pattern and label: the bounds are those of a part of such votes, up to whole items.

    Yields
    ------
    tuple
        Table, cells kept out, the mean distance in points of these votes, the least and the most.
    """
    there = np.flatnonzero(found.counts.any(axis=1))
    now, known = found.values(found.gaps, found.accepted), found.counts[there].T.ravel().astype(float)
    blank, ones = np.zeros(len(there)), np.ones(len(there))
    voters = [*PATTERNS[there].T.astype(float), ones]  # the last: all items of the class
    equal = np.array([np.r_[v, blank] for v in voters] + [np.r_[blank, v] for v in voters])
    signs = np.where(found.gaps < 0, -1.0, 1.0)
    rows, held_signs = [], []
    for chain, is_ece in zip(found.chain, found.is_ece, strict=True):
        p, bins = found.p[chain, there], found.bins[chain, there]
        errors, sign = np.r_[-p, 1 - p] * 100 / found.n.sum(), np.tile(signs[chain, bins], 2)
        accuracy = 50 * np.r_[-found.accepts[chain, there] / found.n[0], found.accepts[chain, there] / found.n[1]]
        rows.append(errors * sign if is_ece else accuracy)
        held_signs += [-np.where(np.tile(bins, 2) == b, errors * sign, 0.0) for b in np.unique(bins)] if is_ece else []
    figures, printed = np.array(rows), np.array([100 * figure.value for figure in cells])
    aims = printed - now + figures @ known  # the printed values, as those of the linear part
    out, n_cells = np.array([kept_out(figure) for figure in cells]), len(cells)
    # The unknowns are the items, and the distance of each cell.
    distance = np.eye(n_cells)
    limits = np.vstack(
        [
            np.block([[figures, -distance], [-figures, -distance]]),
            np.hstack([np.reshape(held_signs, (-1, len(known))), np.zeros((len(held_signs), n_cells))]),
            np.r_[np.zeros(len(known)), ~out],
        ]
    )
    most = np.r_[aims, -aims, np.zeros(len(held_signs)), np.abs(now - printed)[~out].sum()]
    same = np.hstack([equal, np.zeros((len(equal), n_cells))]), equal @ known
    for table in ("2", "4", "5"):
        chosen = out & np.array([figure.table == table for figure in cells])
        n, sign = int(chosen.sum()), np.where(now < printed, -1.0, 1.0) * chosen
        if n:
            near = linprog(np.r_[np.zeros(len(known)), chosen / n], limits, most, *same).fun
            far = -linprog(np.r_[-(sign @ figures) / n, np.zeros(n_cells)], limits, most, *same).fun
            yield table, n, float(np.abs(now - printed)[chosen].mean()), near, far - float(sign @ aims) / n


def bounds_words(table: str, row: Sequence[float]) -> str:
    """Return a line on the cells of a table that were kept out."""
    n, now, near, far = row
    return f"Table {table}: {n} cells kept out, {now:.1f} points off; votes that fit as well: {near:.1f} to {far:.1f}"


def stored() -> dict[str, Counts]:
    """Return the counts of the data file."""
    result = {}
    for name, (patterns, counts) in simulated.fitted_cells().items():
        result[name] = np.zeros((1024, 2), dtype=np.int64)
        result[name][patterns @ BITS] = counts
    return result


def write(counts: dict[str, Counts]) -> None:
    """Write the counts of patterns that occur, one line a dataset."""
    rows = {
        name: {"".join(map(str, PATTERNS[i])): result[i, ::-1].tolist() for i in np.flatnonzero(result.any(axis=1))}
        for name, result in counts.items()
    }
    lines = ",\n".join(f'  "{name}": {json.dumps(row, separators=(",", ":"))}' for name, row in rows.items())
    OUT.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def main() -> None:
    """Fit, round by round, write the data file, and print how near the figures are after each step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="round to begin with; above 0 from the data file")
    parser.add_argument("--moves", type=int, default=60_000, help="swaps tried on each dataset in each round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--bounds", action="store_true", help="print what votes that fit as well can be off, and end")
    args = parser.parse_args()
    if args.bounds:
        every: dict[str, list[tuple[int, ...]]] = {}
        for dataset in DATASETS:
            for table, *row in bounds(*held(stored(), dataset.name, len(STAY) - 1, args.jobs)):
                every.setdefault(table, []).append(row)
                sys.stdout.write(f"{dataset.name}, {bounds_words(table, row)}\n")
        for table, rows in every.items():
            means = np.average(np.array(rows)[:, 1:], axis=0, weights=np.array(rows)[:, 0])
            sys.stdout.write(f"all, {bounds_words(table, (sum(row[0] for row in rows), *means))}\n")
        return
    counts = start() if args.first == 0 else stored()
    for number in range(args.first, len(STAY)):
        rng = np.random.default_rng([args.seed, number])
        for position in ORDER:
            name = DATASETS[position].name
            result, cells = held(counts, name, number, args.jobs)
            sys.stdout.write(f"round {number}, {name}: before: {report(result, cells)}\n")
            for heat in np.geomspace(HOTTEST / 4**number, COOLEST, args.moves >> min(number, 1)):
                result.swap(rng, heat)
            sys.stdout.write(f"round {number}, {name}: after: {report(result, cells)}\n")
            sys.stdout.flush()
            counts[name] = result.counts
            write(counts)


if __name__ == "__main__":
    main()
