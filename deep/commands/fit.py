"""Learn a chain of voters, ensembler and calibrator from labeled votes, and write its model file.

For instance:

  deep fit votes.parquet --out model.json
      learn the best single chain from every labeled dataset
  deep fit votes.parquet lexical.parquet --out model.json --exclude mine --sizes 3,5
      from two files of votes, and from all datasets but one
  deep fit votes.csv --out model.json --ensembler LogisticRegression --calibrator platt
      a chain that you name; the best subset of voters is still searched for
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from deep import datasets, model
from deep._files import check_out
from deep.console import (
    SCHEMA,
    SEVERAL,
    UNCALIBRATED,
    CommandParser,
    Results,
    add_options,
    check_jobs,
    numbers_of_voters,
    parallel_map,
    percent,
    print_result,
    progress_bars,
    read_training_votes,
)
from deep.datasets import benchmarks
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import ExitStatus

MAX_LISTED = 50
"""Training datasets that have a line in print."""


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("votes", metavar="VOTES", nargs="*", help="tables of votes (CSV, Parquet); none: simulated")
    parser.add_argument("--out", type=Path, default=Path("model.json"), metavar="FILE", help="the model")
    add_options(parser, "recipe", "sizes", "ensembler", "calibrator", "selector", "ignore")
    parser.add_argument("--exclude", **SEVERAL, metavar="DATASET", help="datasets to leave out")
    parser.add_argument("--only", **SEVERAL, metavar="DATASET", help="datasets to learn from, and no other")
    add_options(parser, "max-failure-rate", "seed", "jobs", "json")


def run(args: argparse.Namespace) -> int:
    """Fit, write and report."""
    out, n_jobs = check_out(args.out, [".json"]), check_jobs(args.jobs)
    votes = datasets.choose_datasets(read_training_votes(args), only=args.only, exclude=args.exclude)
    with progress_bars() as progress:
        fitted = model.fit(
            votes,
            recipe=args.recipe,
            sizes=numbers_of_voters(args.sizes, votes.shape[1]),
            ensembler=args.ensembler or None,
            calibrator=args.calibrator or None,
            selector=args.selector,
            random_state=args.seed,
            provenance={
                "votes": [Path(path).name for path in args.votes] or "simulated",
                "voters": datasets.vote_details(args.votes),
                "licences": benchmarks.licence_terms(votes.dataset_names),
            },
            run=parallel_map(n_jobs, progress, "fit", ensemblers=args.ensembler or ENSEMBLER_NAMES),
        )
    fitted.save(out)
    results = SCHEMA | _summary(fitted) | {"model": str(out)}
    notice = [] if args.votes else ["These votes are SIMULATED; no LLM was called. Give your own."]
    print_result(results, [*_lines(results), *notice], as_json=args.json)
    return ExitStatus.DONE


def _summary(fitted: "model.Model") -> dict[str, object]:
    """Return the chain that was chosen, its training data, and its scores there."""
    spec, report = fitted.spec, fitted.report
    chain = {"ensembler": spec.ensembler, "params": dict(spec.params), "calibrator": spec.calibrator}
    kept = {name: report[name] for name in ("selector", "inner", "left_out", "training_datasets", "notes")}
    return {"voters": list(fitted.voter_names), **chain, "recipe": spec.recipe, **kept}


def _lines(found: Results) -> Iterator[str]:
    params = ", ".join(f"{name}={value}" for name, value in found["params"].items())
    yield (
        f"{found['ensembler']}{f' ({params})' if params else ''}, calibrator {found['calibrator'] or UNCALIBRATED}, on "
        f"{len(found['voters'])} voters ({found['selector']}):"
    )
    yield from (f"  {name}" for name in found["voters"])
    inner, left_out, training = found["inner"], found["left_out"], found["training_datasets"]
    accuracy = percent(inner["balanced_accuracy"])
    yield f"inner scores: log loss {inner['log_loss']:.4f}, balanced accuracy {accuracy}"
    yield f"learned from {len(training)} datasets:"
    width = max(map(len, training))
    for name, row in list(training.items())[:MAX_LISTED]:
        scores = left_out["datasets"].get(name)
        shown = f"   left out: {_scores(scores)}" if scores else ""
        yield f"  {name:<{width}}  {row['n']:>6} rows, {percent(row['prior'])} consistent{shown}"
    rest = list(training)[MAX_LISTED:]
    if rest:
        yield f"  and {len(rest):,} others, all of them in the model file"
    if left_out["mean"]:
        yield f"mean over datasets left out in turn: {_scores(left_out['mean'])}"
    yield from sorted({f"licence: {row['licence']}" for row in training.values() if row["licence"]})
    yield from found["notes"]
    yield f"model: {found['model']}"


def _scores(row: Results) -> str:
    accuracy, error, floor = (percent(row[name]) for name in ("balanced_accuracy", "ece", "ece_floor"))
    return f"balanced accuracy {accuracy}, ECE {error} (noise floor {floor})"
