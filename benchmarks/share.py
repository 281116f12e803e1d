"""The share of consistent items, what a user believes of it, and A against B, beside PPI++ and the labels alone.

    DEEP_DATA_HOME=... python benchmarks/share.py [--draws 40] [--jobs 2] [--training all] [--only items compare]

Each panel's datasets are targets in turn, of a model fitted on the others (`--training 2`: on two drawn of them).
Labels are drawn at random from its items. `--of system`: documents are drawn with replacement first, and the truth is
the share of all items. A against B: ten systems of FaithBench, 50 labels of each; alike are random halves of one
system's documents. PPI++ is written out below, its power tuned on each sample, with normal intervals.

`stream`: items of one dataset are drawn with replacement, 1,000 as reference and 300 a week, and a drift is planted:
of every judge's votes of 0 so many are turned that it says 1 more often by some points. `family`: items are given at
random to a judge's own family of LLMs or to another, 50 of 600 have a label, and half of the judge's votes of 0 on its
own are turned.
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from few_datasets import PANELS

from deep.calibration import expected_calibration_error, log_loss
from deep.console import parallel_map, progress_bars
from deep.datasets import read_votes
from deep.evaluate import Target, compare_systems, drift_report, own_families, stream_rates
from deep.exceptions import InputError
from deep.model import Belief, canary, changed_rates, estimate_share, fit
from deep.records import VoteMatrix

STUDIES = ("belief", "items", "system", "compare", "stream", "family")
LABELS = (10, 30, 100)
MOST = 3000
"""Items of a target that are used: shares of more need no estimate."""

OFTEN = 5
"""Draws of labels of items by one of the others: of 69 intervals that cover in 90 %, the worst covers in 77 % of 40
draws by chance, in 85 % of 200."""

REFERENCE, WEEK, WEEKS, ONSET = 1000, 300, 52, 20
POINTS = (0.05, 0.1)
"""By which judges are made to say 1 more often, from week `ONSET` on."""

TARGETS = 2
"""Datasets of each panel that a stream is drawn from, and whose judges favour a family."""

APART, EACH = 0.12, 50
FAITHBENCH = "faithbench"
RULE = "powered where check has p < .05"

Row = tuple[Any, ...]
Peer = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, float, float] | None]
"""Of P, labels (-1 for none) and votes: a share and its interval; None where the method is not to be had."""


@dataclass(frozen=True)
class Task:
    """A target, and the datasets that its model is fitted on."""

    panel: str
    target: tuple[str, ...]
    others: tuple[str, ...]
    draw: int = 0


def ppi(p: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Return the estimate of PPI++ and its standard error."""
    known = labels >= 0
    y, f, rest = labels[known], p[known], p[~known]
    n = len(y)
    variance = max(float(np.var(p, ddof=1)), 1e-12)
    tuned = np.clip(np.cov(y, f)[0, 1] / variance / (1 + n / len(rest)), 0, 1)
    errors = y - tuned * f
    return float(tuned * rest.mean() + errors.mean()), float(
        np.sqrt(errors.var(ddof=1) / n + tuned**2 * rest.var(ddof=1) / len(rest))
    )


def hidden(y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return labels of n items drawn at random."""
    labels = np.full(len(y), -1)
    known = rng.choice(len(y), n, replace=False)
    labels[known] = y[known]
    return labels


def fitted(votes: VoteMatrix, task: Task) -> tuple[Any, VoteMatrix]:
    """Return the model of a task, and the rows of its target."""
    warnings.simplefilter("ignore")
    model = fit(votes.rows(np.isin(votes.datasets.astype(str), task.others)))
    return model, votes.rows(np.isin(votes.datasets.astype(str), task.target))


def of_belief(votes: VoteMatrix, task: Task) -> Iterator[Row]:
    """Yield ECE and log loss without a belief and with beliefs of 10 points to either side."""
    model, mine = fitted(votes, task)
    y = mine.labels
    for off in (None, 0.0, 0.08, -0.08):
        bounds = np.clip(y.mean() + (off or 0.0) + np.array([-0.1, 0.1]), 0.005, 0.995)
        p = model.believing(None if off is None else Belief(*bounds)).score(mine)
        yield len(task.others), off, task.panel, expected_calibration_error(y, p, n_bins=8), log_loss(y, p)


def of_share(
    votes: VoteMatrix, task: Task, of: str, draws: int, peers: Mapping[str, Peer] = MappingProxyType({})
) -> Iterator[Row]:
    """Yield the error of each method's share, whether its interval holds the truth, and its width."""
    model, mine = fitted(votes, task)
    rng = np.random.default_rng([task.draw, draws])
    every, y = model.score(mine), mine.labels
    documents = np.arange(len(y)) if mine.document_ids is None else np.unique(mine.document_ids, return_inverse=True)[1]
    for n in LABELS:
        for _ in range(draws if len(y) >= 3 * n else 0):
            rows, names = _drawn(documents, of, rng)
            labels, p, truth = (
                hidden(y[rows], n, rng),
                every[rows],
                float(y[rows if of == "items" else slice(None)].mean()),
            )
            given = None if mine.document_ids is None else names
            result = {
                one.method: (one.estimate, one.low, one.high)
                for one in estimate_share(p, labels, misfit=model.misfit, documents=given, of=of)[:3]
            }
            p_value = canary(p, labels, misfit=model.misfit, documents=given, n_draws=200).p_value
            result[RULE] = result["prediction-powered" if p_value < 0.05 else "corrected model"]
            estimate, error = ppi(p, labels)
            result["PPI++"] = estimate, estimate - 1.645 * error, estimate + 1.645 * error
            told = {name: peer(p, labels, mine.votes[rows]) for name, peer in peers.items()}
            result |= {name: share for name, share in told.items() if share is not None}
            for method, (estimate, low, high) in result.items():
                yield n, method, task.panel, task.target[0], estimate - truth, low <= truth <= high, high - low


def _drawn(documents: np.ndarray, of: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return rows of a target and their documents: at most `MOST`, or those of documents drawn with replacement."""
    if of == "items":
        rows = rng.choice(len(documents), min(MOST, len(documents)), replace=False)
        return rows, documents[rows]
    by_document = np.split(np.argsort(documents, kind="stable"), np.cumsum(np.bincount(documents))[:-1])
    most = max(int(len(by_document) * min(1.0, MOST / len(documents))), 1)
    chosen = rng.integers(len(by_document), size=most)
    parts = [by_document[i] for i in chosen]
    return np.concatenate(parts), np.repeat(np.arange(most), [len(part) for part in parts])


def of_pairs(
    votes: VoteMatrix, task: Task, draws: int, peers: Mapping[str, Callable[..., bool]] = MappingProxyType({})
) -> Iterator[Row]:
    """Yield whether each method tells two systems apart: two of them, or halves of the documents of one."""
    model, mine = fitted(votes, task)
    rng, alike, k = np.random.default_rng(task.draw), len(task.target) == 1, len(task.others)
    for _ in range(draws):
        system = np.unique(mine.datasets.astype(str), return_inverse=True)[1]
        if alike:
            documents = np.unique(mine.document_ids)
            system = np.isin(mine.document_ids, rng.permutation(documents)[: len(documents) // 2]).astype(int)
        if np.bincount(system).min() < EACH:
            continue
        labels = np.full(len(system), -1)
        for one in (0, 1):
            labels[system == one] = hidden(mine.labels[system == one], EACH, rng)
        together = mine.with_columns(datasets=np.full(len(system), "all", dtype=object), labels=labels)
        result = compare_systems(model, Target(together), [f"system {one}" for one in system])
        p = model.score(together)
        (a, of_a), (b, of_b) = (ppi(p[system == one], labels[system == one]) for one in (0, 1))
        means = [labels[(system == one) & (labels >= 0)].mean() for one in (0, 1)]
        plain = np.sqrt(sum(mean * (1 - mean) / EACH for mean in means)) or 1.0
        row = "alarms" if alike else "power"
        yield k > 1, row, "deep", result.pairs[0].p_value < 0.1
        yield k > 1, row, "PPI++", abs(a - b) > 1.645 * np.hypot(of_a, of_b)
        yield k > 1, row, "labels alone", abs(means[0] - means[1]) > 1.645 * plain
        for name, peer in peers.items():
            yield k > 1, row, name, peer(p, labels, system, mine.document_ids)


def _batch(votes: VoteMatrix, n: int, points: float, rng: np.random.Generator) -> VoteMatrix:
    """Return items drawn with replacement, every judge of which says 1 more often by some points."""
    result = votes.rows(rng.integers(len(votes.votes), size=n)).votes.copy()
    zeros = np.maximum((votes.votes == 0).sum(axis=0) / np.maximum((votes.votes >= 0).sum(axis=0), 1), 1e-9)
    result[(result == 0) & (rng.random(result.shape) < points / zeros)] = 1
    return VoteMatrix(result, list(map(str, range(n))), votes.voter_names, ["stream"] * n, [-1] * n)


def of_stream(votes: VoteMatrix, task: Task, draws: int) -> Iterator[Row]:
    """Yield whether a batch beside a reference and a year of weeks alarm, and after how many weeks a drift is found."""
    mine = votes.rows(votes.datasets == task.target[0])
    model, rng = fit(mine.with_columns(labels=np.full(len(mine.labels), -1))), np.random.default_rng([draws, task.draw])

    def week(points: float) -> Mapping[str, Any]:
        return stream_rates(model, _batch(mine, WEEK, points, rng))

    for _ in range(draws):
        before = _batch(mine, REFERENCE, 0.0, rng)
        for points in (0.0, *POINTS):
            report = drift_report(model, _batch(mine, WEEK, points, rng), reference=before)
            yield f"a batch, {100 * points:.0f} points", task.panel, report.stale
        stream = [stream_rates(model, before), *(week(0.0) for _ in range(WEEKS))]
        yield "a year without change", task.panel, bool(changed_rates(stream, alpha=0.025))
        for points in POINTS:
            later, result = stream[:ONSET], 0
            while not result and len(later) < WEEKS:
                later = [*later, week(points)]
                result = len(later) - ONSET if changed_rates(later, alpha=0.025) else 0
            yield f"weeks to find {100 * points:.0f} points", task.panel, result or WEEKS - ONSET


def of_family(votes: VoteMatrix, task: Task, draws: int) -> Iterator[Row]:
    """Yield whether the bias of a judge is found with fifty labels, and whether one is that is not there."""
    mine, rng = votes.rows(votes.datasets == task.target[0]), np.random.default_rng([draws, task.draw])
    for column in range(mine.shape[1])[:: max(mine.shape[1] // 10, 1)]:
        name = mine.voter_names[column]
        for favour in (0.0, 0.5):
            drawn = mine.rows(rng.integers(len(mine.votes), size=600))
            own, cast = rng.random(600) < 0.5, drawn.votes.copy()
            turned = own & (cast[:, column] == 0) & (rng.random(600) < favour)
            cast[turned, column] = 1
            labels, ids = hidden(drawn.labels, 50, rng), list(map(str, range(600)))
            table = VoteMatrix(cast, ids, mine.voter_names, ["one"] * 600, labels)
            result = [one for one in own_families(table, np.where(own, name, "zz").tolist()) if one.judge == name]
            for one in result:
                alarm = one.bias_ci[0] > 0 or (not favour and one.bias_ci[1] < 0)
                yield "favoured" if favour else "not favoured", task.panel, alarm, turned.sum() / own.sum()


def tasks_of(study: str, panels: Mapping[str, VoteMatrix], training: str, draws: int) -> list[Task]:
    """Return the fits that a study takes."""
    rng, result = np.random.default_rng(0), []
    for name, votes in panels.items():
        names = list(votes.dataset_names)
        if study == "compare":
            result += list(_pairs(votes, names)) if name == FAITHBENCH else []
        elif study == "belief":
            for k in [k for k in (1, 2) if k < len(names)]:
                for i in range(draws):
                    target = names[i % len(names)]
                    others = rng.choice([one for one in names if one != target], k, replace=False)
                    result.append(Task(name, (target,), tuple(others), i))
        elif study in ("stream", "family"):
            result += [Task(name, (str(target),), (), i) for i, target in enumerate(names[:TARGETS])]
        elif study == "items" or votes.document_ids is not None:
            for i, target in enumerate(names):
                others = [one for one in names if one != target]
                k = len(others) if training == "all" else min(int(training), len(others))
                result.append(Task(name, (target,), tuple(rng.choice(others, k, replace=False)), i))
    return result


def _pairs(votes: VoteMatrix, names: Sequence[str]) -> Iterator[Task]:
    """Yield pairs of systems, and each system alone, of models fitted on all others and on a single one."""
    share = {name: votes.labels[votes.datasets == name].mean() for name in names}
    far = [pair for pair in combinations(names, 2) if abs(share[pair[0]] - share[pair[1]]) >= APART]
    for i, target in enumerate([*far, *((name,) for name in names)]):
        others = [name for name in names if name not in target]
        yield Task(FAITHBENCH, target, tuple(others), i)
        yield Task(FAITHBENCH, target, (others[i % len(others)],), i)


def run(study: str, panels: Mapping[str, VoteMatrix], draws: int, task: Task) -> list[Row]:
    """Return the rows of one task."""
    of: dict[str, Callable[[], Iterator[Row]]] = {
        "belief": lambda: of_belief(panels[task.panel], task),
        "items": lambda: of_share(panels[task.panel], task, "items", OFTEN * draws),
        "system": lambda: of_share(panels[task.panel], task, "system", draws),
        "compare": lambda: of_pairs(panels[task.panel], task, draws),
        "stream": lambda: of_stream(panels[task.panel], task, draws),
        "family": lambda: of_family(panels[task.panel], task, draws),
    }
    return list(of[study]())


def told(study: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the table of a study."""
    of = {"belief": _belief_table, "compare": _pair_table, "stream": _rate_table, "family": _rate_table}.get(
        study, partial(_share_table, study)
    )
    yield ""
    yield from of(rows)


def _belief_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| K | belief | ECE | log loss | change of ECE | worst panel |"
    yield "|---|---|---|---|---|---|"
    for k in (1, 2):
        by = {off: _by_panel([row for row in rows if row[:2] == (k, off)]) for off in (None, 0.0, 0.08, -0.08)}
        for off, panel in by.items():
            change = {name: panel[name][0] - by[None][name][0] for name in panel}
            worst = max(change, key=lambda name: change[name])
            ece, loss = np.mean(list(panel.values()), axis=0)
            off_by = "none" if off is None else f"{100 * off:+.0f} points off"
            moved = f"{100 * np.mean(list(change.values())):+.1f} | {worst} {100 * change[worst]:+.1f}"
            yield f"| {k} | {off_by} | {100 * ece:.1f} | {loss:.3f} | {moved} |"


def _pair_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| training datasets | | deep | PPI++ | labels alone |"
    yield "|---|---|---|---|---|"
    for many, what in product((True, False), ("alarms", "power")):
        cells = [[r[3] for r in rows if r[:3] == (many, what, m)] for m in ("deep", "PPI++", "labels alone")]
        shown = " | ".join(f"{100 * np.mean(cell):.1f}" for cell in cells)
        yield f"| {'all others' if many else 'one'} | {what}, n = {len(cells[0])} | {shown} |"


def _share_table(study: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"| --of {study} | labels | datasets | RMSE | coverage | worst dataset | width |"
    yield "|---|---|---|---|---|---|---|"
    for method, n in product(dict.fromkeys(row[1] for row in rows), LABELS):
        by_dataset: dict[Row, list[Row]] = {}
        for row in rows:
            if row[:2] == (n, method):
                by_dataset.setdefault(row[2:4], []).append((row[4] ** 2, row[5], row[6]))
        if by_dataset:
            one = 100 * np.array([np.mean(values, axis=0) for values in by_dataset.values()])
            rmse = 10 * np.sqrt(one[:, 0]).mean()
            figures = f"{rmse:.1f} | {one[:, 1].mean():.1f} | {one[:, 1].min():.0f} | {one[:, 2].mean():.1f}"
            yield f"| {method} | {n} | {len(one)} | {figures} |"


def _rate_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| | draws | mean over panels | least | most |"
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == name]
        means = [float(np.mean([row[2] for row in mine if row[1] == panel])) for panel in {row[1] for row in mine}]
        planted = f", {100 * np.mean([row[3] for row in mine]):.0f} points" if len(mine[0]) > 3 else ""
        unit = 1 if name.startswith("weeks") else 100
        figures = " | ".join(f"{unit * value:.1f}" for value in (np.mean(means), min(means), max(means)))
        yield f"| {name}{planted} | {len(mine)} | {figures} |"


def _by_panel(rows: Sequence[Row]) -> dict[str, np.ndarray]:
    return {
        name: np.mean([row[3:] for row in rows if row[2] == name], axis=0) for name in dict.fromkeys(r[2] for r in rows)
    }


def main() -> None:
    """Run the studies and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", nargs="+", choices=PANELS, default=list(PANELS))
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES))
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--training", default="all", metavar="K", help="datasets to fit on, for the shares; or all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file of the tables")
    args = parser.parse_args()
    if args.training != "all" and not args.training.isdecimal():
        raise InputError(f"`training` must be a number or all. Got {args.training!r}.")
    data, tables = Path(os.environ.get("DEEP_DATA_HOME", "../shared/data")), {}
    panels = {name: read_votes([str(data / name / PANELS[name])]) for name in args.panels}
    for study in args.only:
        started = time.perf_counter()
        tasks = tasks_of(study, panels, args.training, args.draws)
        with progress_bars() as progress:
            result = parallel_map(args.jobs, progress, study)(partial(run, study, panels, args.draws), tasks)
            rows = [row for part in result for row in part]
        tables[study] = [*told(study, rows), "", f"{time.perf_counter() - started:.0f} s"]
        sys.stdout.write("\n".join(tables[study]) + "\n")
        sys.stdout.flush()
    if args.out is not None:
        args.out.write_text(json.dumps(tables, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
