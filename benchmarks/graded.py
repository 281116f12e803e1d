"""Judges that give grades or scores: log loss of deep beside the same fit on votes cut from them, and a regression.

    python benchmarks/graded.py [--draws 20] [--part own|none|few|unit] [--data "$DEEP_DATA_HOME"] [--out FILE.json]

Real answers: nine LLMs that grade the summaries of SummEval from 1 to 5, the detectors of FaithBench and of
LLM-AggreFact, whose scores lie in [0, 1]. A draw is a random sample of labels (own), or of K training datasets and one
target (few); all ways see the same draw, and differences are paired, with the standard error of their mean. The rival
is logistic regression on standardised grades, with C chosen in five folds among .03, .1, .3 and 1. What was chosen was
chosen on draws 100 to 115; draws 0 to 19 check it.
"""

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import deep
from deep import VoteMatrix
from deep.calibration import expected_calibration_error

PEOPLE = ["expert_mean", *(f"expert_{i}" for i in (1, 2, 3)), *(f"turker_{i}" for i in range(1, 6))]
CUTS = {"cut at 2": 0.25, "cut at 3": 0.5, "cut at 4": 0.75, "cut at 5": 1.0}
Losses = dict[str, list[float]]


def summeval(data: Path) -> VoteMatrix:
    """Return the grades of SummEval, by document."""
    votes = deep.read_votes(data / "summeval_llm" / "scores.csv", ignore=PEOPLE)
    documents = np.array([item.rpartition("|")[2] for item in votes.item_ids], dtype=object)
    return votes.with_columns(document_ids=documents)


def scored(data: Path, name: str) -> VoteMatrix:
    """Return a panel of scores in [0, 1]."""
    votes, table = (deep_read(data / name / f"{what}.parquet") for deep_read, what in READERS)
    return votes.with_answers(deep.datasets.join_scores(votes, table).scores, table.score_names)


READERS: list[tuple[Callable[[Path], object], str]] = [(deep.read_votes, "votes"), (deep.read_scores, "scores")]


def cut(votes: VoteMatrix, place: float = 0.5) -> VoteMatrix:
    """Return votes of 1 from a place of the scale on."""
    cells = np.where(np.isnan(votes.answers), -1, votes.answers >= place).astype(np.int8)
    return votes.with_columns(votes=cells, answers=None, scales=None)


def as_one(votes: VoteMatrix) -> VoteMatrix:
    """Return all rows as one dataset."""
    return votes.with_columns(datasets=np.full(len(votes.labels), "all", dtype=object))


def with_labels(votes: VoteMatrix, rows: np.ndarray) -> VoteMatrix:
    """Return rows of which some alone are labeled."""
    labels = np.full(len(votes.labels), -1, dtype=np.int8)
    labels[rows] = votes.labels[rows]
    return votes.with_columns(labels=labels)


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    """Return the mean log loss."""
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return float(-np.mean(np.where(y == 1, np.log(p), np.log(1 - p))))


def regression(votes: VoteMatrix, rows: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return P by the rival, which has no answer as the mean."""
    X = np.where(np.isnan(votes.answers), np.nanmean(votes.answers[rows], axis=0), votes.answers)
    grid = {"Cs": [0.03, 0.1, 0.3, 1.0], "l1_ratios": (0,), "cv": 5, "scoring": "neg_log_loss", "max_iter": 2000}
    fit = LogisticRegressionCV(**grid, use_legacy_attributes=False)
    return make_pipeline(StandardScaler(), fit).fit(X[rows], votes.labels[rows]).predict_proba(X[rest])[:, 1]


def own(data: Path, draws: range) -> Iterator[tuple[str, Losses]]:
    """Yield the losses with labels of one's own."""
    votes = as_one(summeval(data))
    for n in (30, 100):
        losses: Losses = defaultdict(list)
        for draw in draws:
            rows, rest = np.split(np.random.default_rng(draw).permutation(len(votes.labels)), [n])
            y = votes.labels[rest]
            for name, panel in (("deep", votes), ("cut at 5", cut(votes, 1.0)), ("cut at 3", cut(votes))):
                losses[name].append(log_loss(deep.fit(with_labels(panel, rows)).score(panel)[rest], y))
            losses["regression"].append(log_loss(regression(votes, rows, rest), y))
        yield f"SummEval, {n} labels of its own", losses


def none(data: Path, draws: range) -> Iterator[tuple[str, Losses]]:  # noqa: ARG001 - there is nothing to draw
    """Yield the losses without any label."""
    votes = as_one(summeval(data))
    losses = {
        name: [log_loss(deep.fit(with_labels(panel, np.arange(0))).score(panel), votes.labels)]
        for name, panel in {"deep": votes, **{name: cut(votes, place) for name, place in CUTS.items()}}.items()
    }
    yield "SummEval, no label", losses


def few(data: Path, draws: range) -> Iterator[tuple[str, Losses]]:
    """Yield the losses with K labeled datasets, on another one."""
    panels = {"SummEval": summeval(data), "FaithBench": scored(data, "faithbench")}
    panels["LLM-AggreFact"] = scored(data, "llm_aggrefact")
    for name, votes in panels.items():
        for k in (1, 2, 3) if name == "SummEval" else (1, 2):
            losses: Losses = defaultdict(list)
            for draw in draws:
                names = np.random.default_rng(draw).permutation(votes.dataset_names)
                train, test = np.isin(votes.datasets.astype(str), names[:k]), votes.datasets == names[k]
                for way, panel in (("deep", votes), ("cut at middle", cut(votes))):
                    fitted = deep.fit(panel.rows(train), random_state=draw)
                    losses[way].append(log_loss(fitted.score(panel.rows(test)), votes.labels[test]))
            yield f"{name}, K = {k}", losses


def unit(data: Path, draws: range) -> Iterator[tuple[str, Losses]]:
    """Yield calibration errors, in points, of one judge's score made steeper, flatter and shifted, with 30 labels."""
    votes = scored(data, "llm_aggrefact").judges([0])
    score = np.clip(votes.answers, 1e-6, 1 - 1e-6)
    z = np.log(score / (1 - score))
    for name, bent in {"as it is": z, "steeper": 3 * z, "flatter": z / 3, "shifted": z + 2}.items():
        errors: Losses = defaultdict(list)
        for draw in draws:
            dataset = votes.dataset_names[draw % len(votes.dataset_names)]
            of = np.flatnonzero(votes.datasets == dataset)
            rows, rest = np.split(np.random.default_rng(draw).permutation(len(of)), [30])
            panel = votes.rows(of).with_columns(answers=1 / (1 + np.exp(-bent[of])))
            y = panel.labels
            if min(np.bincount(y[rows], minlength=2)) == 0:
                continue
            platt = LogisticRegression(C=1e6).fit(bent[of][rows], y[rows]).predict_proba(bent[of][rest])[:, 1]
            p = deep.fit(with_labels(panel, rows)).score(panel)[rest]
            for way, result in (("deep", p), ("Platt", platt)):
                errors[way].append(100 * expected_calibration_error(y[rest], result, n_bins=10))
        yield f"one judge, {name}: ECE", errors


PARTS = {"own": own, "none": none, "few": few, "unit": unit}


def main() -> None:
    """Print a table, and write its numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--part", choices=sorted(PARTS), nargs="*", default=sorted(PARTS))
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("DEEP_DATA_HOME", "../shared/data")))
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = {}
    for part in args.part:
        for name, losses in PARTS[part](args.data, range(args.first, args.first + args.draws)):
            result[name] = losses
            sys.stdout.write(f"{name} ({len(losses['deep'])} draws)\n")
            for way, values in losses.items():
                apart = np.subtract(losses["deep"], values)
                error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
                beside = "" if way == "deep" else f"   deep less it {apart.mean():+.4f} ± {error:.4f}"
                sys.stdout.write(f"  {way:<14}{np.mean(values):8.4f}{beside}\n")
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
