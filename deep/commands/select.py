"""`deep select`: decide only where confident enough, so that decisions are right as often as wanted."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._files import check_out, to_json, whole_file
from deep._odds import DECISION, at_prior
from deep.calibration import risk_coverage, selective_threshold
from deep.console import HelpFormatter, Values, guarded
from deep.datasets import read_votes
from deep.evaluate import null_if_nan
from deep.exceptions import InputError
from deep.model import Model, load, other_columns
from deep.records import VoteMatrix

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep select model.json --votes mine.parquet --accuracy 0.9 --out decisions.csv
      without labels: a confidence that kept 90 % on the training datasets, which guarantees nothing here
  deep select mine.json --votes mine.parquet --labels mine-labeled.csv --accuracy 0.9 --out decisions.csv
      with labels of a random sample: a guarantee at 90 %
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep select",
        description="Decide where P is far enough from one half, and abstain elsewhere.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+"}
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--votes", metavar="FILE", required=True, **several, help="votes of one dataset to decide on")
    p.add_argument("--labels", metavar="FILE", default=[], **several, help="votes of a labeled random sample of it")
    p.add_argument("--accuracy", type=float, default=0.9, metavar="SHARE", help="wanted share of right decisions")
    p.add_argument("--delta", type=float, default=0.1, metavar="P", help="allowed chance that the guarantee fails")
    p.add_argument("--out", type=Path, metavar="FILE", help="decisions: a .csv with 1, 0 or nothing")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def _read(model: Model, paths: Sequence[str]) -> VoteMatrix:
    votes = read_votes(paths, ignore=other_columns(model, paths))
    if len(votes.dataset_names) > 1:
        raise InputError(f"`votes` must be of one dataset. Got {', '.join(votes.dataset_names)}.")
    return votes


def guaranteed(model: Model, labeled: VoteMatrix, prior: float | None, accuracy: float, delta: float) -> dict[str, Any]:
    """Return the confidence that a labeled random sample guarantees."""
    known = labeled.rows(labeled.labels >= 0)
    if not len(known.labels):
        raise InputError("`labels` must have rows with a label of 0 or 1. Got none.")
    found = selective_threshold(known.labels, model.score(known, prior=prior), accuracy, delta=delta)
    values = {name: null_if_nan(value) for name, value in vars(found).items()}
    return {"guaranteed": found.confidence is not None, "labels": len(known.labels), **values}


def transferred(model: Model, accuracy: float) -> dict[str, Any]:
    """Return the least confidence at which decisions on left-out training datasets were right often enough.

    Each dataset is scored by the chain without it, at the prior that its votes suggest; the mean over datasets is
    held to the wanted accuracy.
    """
    cells, adaptation = model.cells, model.adaptation
    if adaptation is None or model.correction is not None:
        raise InputError("`labels` must be given: without them this model has no datasets to learn a confidence from.")
    curves = []
    for column in range(len(cells.groups)):
        raw = model.chains_left_out[model.kept.units[column]].predict(cells.patterns)
        rows = cells.counts[:, column]
        estimate = adaptation.estimate(raw, rows.sum(axis=1).astype(float)).estimate
        curves.append(_curve(at_prior(raw, estimate), rows))
    levels = np.unique(np.concatenate([confidence for confidence, _, _ in curves]))
    held = np.array([[_accuracy(level, *curve) for level in levels] for curve in curves])
    decided = np.isfinite(held)
    mean = np.where(decided, held, 0.0).sum(axis=0) / np.maximum(decided.sum(axis=0), 1)
    enough = np.flatnonzero(mean >= accuracy)
    if not len(enough):
        return {"guaranteed": False, "confidence": None, "datasets_held": 0, "datasets": len(curves)}
    first = enough[0]
    kept = held[:, first]
    return {
        "guaranteed": False,
        "confidence": float(levels[first]),
        "datasets_held": int((kept >= accuracy).sum()),
        "datasets": int(np.isfinite(kept).sum()),
        "lowest_accuracy": float(np.nanmin(kept)),
    }


def _curve(p: Floats, rows: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Return confidence of each pattern, its rows, and how many of them are decided rightly."""
    right = np.where(p >= DECISION, rows[:, 1], rows[:, 0]).astype(float)
    return np.maximum(p, 1 - p), rows.sum(axis=1).astype(float), right


def _accuracy(level: float, confidence: Floats, n: Floats, right: Floats) -> float:
    kept = confidence >= level
    total = n[kept].sum()
    return float(right[kept].sum() / total) if total else float("nan")


def run(argv: Sequence[str] | None) -> int:
    """Read the options, find the confidence, decide and report."""
    args = parser().parse_args(argv)
    for name in ("accuracy", "delta"):
        if not 0 < getattr(args, name) < 1:
            raise InputError(f"`{name}` must lie strictly between 0 and 1. Got {getattr(args, name)!r}.")
    if args.out is not None:
        check_out(args.out, [".csv"])
    model = load(args.model)
    votes = _read(model, args.votes)
    prior = None if model.correction is not None or model.adaptation is None else model.estimate_prior(votes).estimate
    if args.labels:
        found = guaranteed(model, _read(model, args.labels), prior, args.accuracy, args.delta)
    else:
        found = transferred(model, args.accuracy)
    p = model.score(votes, prior=prior)
    decided = (
        np.zeros(len(p), dtype=bool) if found["confidence"] is None else np.maximum(p, 1 - p) >= found["confidence"]
    )
    found |= {"schema_version": 1, "dataset": votes.dataset_names[0], "n": len(p), "decided": int(decided.sum())}
    known = votes.labels >= 0
    if known.any():
        found["risk_coverage"] = risk_coverage(votes.labels[known], p[known]).to_dict("list")
    if args.out is not None:
        write(votes, p, decided, args.out)
    sys.stdout.write(to_json(found) if args.json else "\n".join([*lines(found, args), ""]))
    return 0


def write(votes: VoteMatrix, p: Floats, decided: npt.NDArray[np.bool_], out: Path) -> None:
    """Write the decisions; an empty cell is an abstention."""
    import pandas as pd

    decision = pd.Series((p >= 0.5).astype(int)).astype("Int8").where(decided)
    frame = pd.DataFrame(
        {"dataset": votes.datasets, "item_id": votes.example_ids, "decision": decision, "p_consistent": p}
    )
    with whole_file(out) as scratch:
        frame.to_csv(scratch, index=False, lineterminator="\n")


def lines(found: dict[str, Any], args: argparse.Namespace) -> list[str]:
    """Return what a person should be told."""
    if found["confidence"] is None:
        shown = "the labels show" if args.labels else "the training datasets show"
        return [f"nothing is decided: no confidence of which {shown} {args.accuracy:.0%} right decisions"]
    share = found["decided"] / found["n"]
    text = [
        f"{found['decided']} of {found['n']} items decided ({share:.1%}), at a confidence of {found['confidence']:.3f}"
    ]
    if found["guaranteed"]:
        text.append(
            f"guaranteed: decisions are right at least {args.accuracy:.0%} of the time on items drawn like the "
            f"{found['labels']} labeled ones, with probability {1 - args.delta:.0%} over their draw"
        )
    else:
        text.append(
            f"NOT guaranteed under shift: on {found['datasets_held']} of {found['datasets']} training datasets, each "
            f"left out, this kept {args.accuracy:.0%}; the lowest was {found['lowest_accuracy']:.1%}"
        )
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
