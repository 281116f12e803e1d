"""`deep fit`: learn a chain from labeled votes, and write its model file."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deep._files import check_out
from deep.calibration import CALIBRATORS
from deep.console import HelpFormatter, Values, add_jobs, check_jobs, guarded, parallel_map, progress_bars
from deep.datasets import (
    check_failures,
    read_reasons,
    read_votes,
    resolve_dataset,
    simulate_votes,
    vote_details,
)
from deep.ensembles import ENSEMBLERS
from deep.exceptions import InputError
from deep.model import RECIPES, SELECTOR_NAMES, UNCALIBRATED, Model, fit
from deep.records import VoteMatrix

__all__ = ["main"]

SIMULATED = "simulated"

EXAMPLES = """\
examples:
  deep fit votes.parquet --out model.json
      learn the best single chain from every labeled dataset
  deep fit votes.parquet lexical.parquet --out model.json --exclude mine --sizes 3,5
      from two files of votes, and from all datasets but one
  deep fit votes.csv --out model.json --ensembler LogisticRegression --calibrator platt
      a chain that you name; the best subset of voters is still looked for
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep fit",
        description="Learn a chain of voters, ensembler and calibrator from labeled votes, and write its model file.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
    p.add_argument("votes", metavar="VOTES", nargs="*", help="tables of votes (CSV, Parquet); none: simulated")
    p.add_argument("--out", type=Path, default=Path("model.json"), metavar="FILE", help="the model")
    p.add_argument("--recipe", default="deep", choices=tuple(RECIPES), help="how it is chosen and fitted")
    p.add_argument("--sizes", metavar="N", action=Values, nargs="+", default=["3", "5", "9"], help="numbers of voters")
    p.add_argument("--ensembler", metavar="NAME", **several, help=f"of: {', '.join(ENSEMBLERS)}; default: all")
    p.add_argument(
        "--calibrator",
        metavar="NAME",
        **several,
        help=f"of: {', '.join(CALIBRATORS)}, {UNCALIBRATED}; default: all",
    )
    p.add_argument("--selector", default="auto", choices=SELECTOR_NAMES, help="what picks the voters")
    p.add_argument("--ignore", metavar="COLUMN", **several, help="columns that are no voters")
    p.add_argument("--exclude", metavar="DATASET", **several, help="datasets to leave out")
    p.add_argument("--only", metavar="DATASET", **several, help="datasets to learn from, and no other")
    p.add_argument(
        "--max-failure-rate",
        type=float,
        default=0.05,
        metavar="SHARE",
        help="refuse voters that failed on more of a dataset, by the reasons beside the votes",
    )
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    add_jobs(p)
    p.add_argument("--json", action="store_true", help="print what was chosen as JSON and nothing else")
    return p


def load(args: argparse.Namespace) -> VoteMatrix:
    """Return the votes to learn from."""
    if args.votes:
        votes = read_votes(args.votes, ignore=args.ignore)
        check_failures(read_reasons(args.votes, votes), args.max_failure_rate)
    else:
        votes = simulate_votes(args.seed)
    names = votes.dataset_names
    kept = {resolve_dataset(name, names, param="only") for name in args.only} or set(names)
    kept -= {resolve_dataset(name, names, param="exclude") for name in args.exclude}
    if not kept:
        raise InputError(f"`exclude` must leave a dataset to learn from. Got all of {', '.join(names)}.")
    return votes.rows(np.isin(votes.datasets.astype(str), sorted(kept)))


def size(text: str, n_voters: int) -> int:
    """Return a number of voters; 'all' is all of them."""
    if text != "all" and not text.isdecimal():
        raise InputError(f"`sizes` must hold positive whole numbers or 'all'. Got {text!r}.")
    return n_voters if text == "all" else int(text)


def licences(datasets: Sequence[str]) -> dict[str, str]:
    """Return the licences of training datasets that are known, and whether they allow commercial use."""
    from deep.datasets.benchmarks import BENCHMARKS

    known = {name: b.terms for b in BENCHMARKS.values() for name in b.datasets or (b.name,)}
    return {name: known[name] for name in datasets if name in known}


def summary(model: Model) -> dict[str, Any]:
    """Return what was chosen, on what, and how well it does there."""
    report = model.report
    return {
        "voters": list(model.voter_names),
        "selector": report["selector"],
        "ensembler": model.spec.ensembler,
        "params": dict(model.spec.params),
        "calibrator": model.spec.calibrator,
        "recipe": model.spec.recipe,
        "inner": report["inner"],
        "left_out": report["left_out"],
        "training_datasets": report["training_datasets"],
        "notes": report["notes"],
    }


def lines(model: Model, out: Path) -> list[str]:
    """Return the summary for people."""
    report, spec = model.report, model.spec
    params = ", ".join(f"{name}={value}" for name, value in spec.params.items())
    inner, mean = report["inner"], report["left_out"]["mean"]
    found = [
        f"{spec.ensembler}{f' ({params})' if params else ''}, calibrator {spec.calibrator or UNCALIBRATED}, on "
        f"{len(model.voters)} voters ({report['selector']}):",
        *(f"  {name}" for name in model.voter_names),
        f"inner scores: log loss {inner['log_loss']:.4f}, balanced accuracy {100 * inner['balanced_accuracy']:.1f} %",
        f"learned from {len(report['training_datasets'])} datasets:",
    ]
    width = max(map(len, report["training_datasets"]))
    for name, row in report["training_datasets"].items():
        left = report["left_out"]["datasets"].get(name)
        scores = f"   left out: {_scores(left)}" if left else ""
        found.append(f"  {name:<{width}}  {row['n']:>6} rows, {100 * row['prior']:.1f} % consistent{scores}")
    if mean:
        found.append(f"mean over datasets left out in turn: {_scores(mean)}")
    found += sorted({f"licence: {row['licence']}" for row in report["training_datasets"].values() if row["licence"]})
    return [*found, *report["notes"], f"model: {out}"]


def _scores(row: dict[str, float]) -> str:
    return (
        f"balanced accuracy {100 * row['balanced_accuracy']:.1f} %, "
        f"ECE {100 * row['ece']:.1f} % (noise floor {100 * row['ece_floor']:.1f} %)"
    )


def run(argv: Sequence[str] | None) -> int:
    """Read the options, fit, write and report."""
    args = parser().parse_args(argv)
    out = check_out(args.out, [".json"])
    n_jobs = check_jobs(args.jobs)
    votes = load(args)
    with progress_bars() as progress:
        model = fit(
            votes,
            recipe=args.recipe,
            sizes=[size(text, votes.shape[1]) for text in args.sizes],
            ensembler=args.ensembler or None,
            calibrator=args.calibrator or None,
            selector=args.selector,
            random_state=args.seed,
            provenance={
                "votes": [Path(path).name for path in args.votes] or SIMULATED,
                "voters": vote_details(args.votes),
                "licences": licences(votes.dataset_names),
            },
            run=parallel_map(n_jobs, progress, "fit", ensemblers=args.ensembler or ENSEMBLERS),
        )
    model.save(out)
    if args.json:
        sys.stdout.write(json.dumps({"schema_version": 1, **summary(model), "model": str(out)}, indent=2) + "\n")
        return 0
    sys.stdout.write("\n".join(lines(model, out)) + "\n")
    if not args.votes:
        sys.stdout.write("These votes are SIMULATED; no LLM was called. Give your own.\n")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
