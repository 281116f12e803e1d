"""`deep calibrate`: correct a model by a few labels of the dataset that it is used on."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deep._files import check_out, to_json
from deep.calibration import CorpDisplay, VennAbers, ece_noise_floor, expected_calibration_error
from deep.console import HelpFormatter, Values, guarded
from deep.datasets import read_votes
from deep.exceptions import InputError
from deep.model import Model, load, other_columns
from deep.records import VoteMatrix

__all__ = ["main"]

N_BINS = 8

EXAMPLES = """\
examples:
  deep label-next model.json --votes mine.parquet --n 50
      which items to label first
  deep calibrate model.json --labels mine-labeled.csv --votes mine.parquet --out mine.json
      a model for this dataset: slope and intercept by its labels, shrunk towards what the training datasets say
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep calibrate",
        description="Correct the probabilities of a model by labels of one dataset.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+"}
    p.add_argument("model", metavar="MODEL", help="a model file")
    p.add_argument("--labels", metavar="FILE", required=True, **several, help="votes of the items that have labels")
    p.add_argument("--votes", metavar="FILE", default=[], **several, help="votes of the whole dataset, labeled or not")
    p.add_argument("--out", type=Path, required=True, metavar="FILE", help="the corrected model, .json")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def labeled_rows(model: Model, paths: Sequence[str]) -> VoteMatrix:
    """Return the labeled rows of votes of one dataset."""
    votes = read_votes(paths, ignore=other_columns(model, paths))
    labeled = votes.rows(votes.labels >= 0)
    if not len(labeled.labels):
        raise InputError(f"`labels` must have rows with a label of 0 or 1. Got none in {', '.join(paths)}.")
    if len(labeled.dataset_names) > 1:
        raise InputError(f"`labels` must be of one dataset. Got {', '.join(labeled.dataset_names)}.")
    return labeled


def errors(model: Model, fresh: Model, labeled: VoteMatrix) -> dict[str, Any]:
    """Return the calibration error on the labels before and after, which the labels themselves flatter."""
    before, after = model.score(labeled), fresh.score(labeled)
    found: dict[str, Any] = {"labels": len(labeled.labels), "consistent": int((labeled.labels == 1).sum())}
    for name, p in (("before", before), ("after", after)):
        found[f"ece_{name}"] = expected_calibration_error(labeled.labels, p, n_bins=N_BINS)
        found[f"ece_floor_{name}"] = ece_noise_floor(p, n_bins=N_BINS).mean
        found[f"miscalibration_{name}"] = CorpDisplay.from_predictions(labeled.labels, p, n_resamples=1).miscalibration
    if len(np.unique(labeled.labels)) == 2:
        low, high = VennAbers().fit(before, labeled.labels).interval(before).T
        found["venn_abers_width"] = float((high - low).mean())
    return found


def run(argv: Sequence[str] | None) -> int:
    """Read the options, correct, write and report."""
    args = parser().parse_args(argv)
    out = check_out(args.out, [".json"])
    model = load(args.model)
    labeled = labeled_rows(model, args.labels)
    everything = read_votes(args.votes, ignore=other_columns(model, args.votes)) if args.votes else labeled
    name = labeled.dataset_names[0]
    if name not in everything.dataset_names:
        raise InputError(f"`votes` must hold the dataset of the labels, {name!r}. Got none of it.")
    whole = everything.rows(everything.datasets == name)
    fresh = model.calibrated(labeled, labeled.labels, everything=whole)
    fresh.save(out)
    assert fresh.correction is not None  # just made
    correction = {part: getattr(fresh.correction, part) for part in ("prior", "intercept", "slope", "n_labels")}
    found = {"schema_version": 1, "dataset": name, "correction": correction, **errors(model, fresh, labeled)}
    sys.stdout.write(
        to_json(found | {"out": str(out)}) if args.json else "\n".join([*lines(found), f"model: {out}", ""])
    )
    return 0


def lines(found: dict[str, Any]) -> list[str]:
    """Return what a person should be told."""
    correction = found["correction"]
    return [
        f"{found['dataset']}: {found['labels']} labels, {found['consistent']} of them consistent",
        f"log-odds are moved by {correction['intercept']:+.2f} and stretched by {correction['slope']:.2f}, "
        f"from an estimated share of {100 * correction['prior']:.1f} % consistent",
        f"ECE on these labels: {100 * found['ece_before']:.1f} % before (noise floor "
        f"{100 * found['ece_floor_before']:.1f} %), {100 * found['ece_after']:.1f} % after (noise floor "
        f"{100 * found['ece_floor_after']:.1f} %); after is flattered, for these labels were learned from",
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
