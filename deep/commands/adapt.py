"""Make a model that of one dataset: its votes give the prior and the context, and labels, if any, correct P.

Labels are those of `--labels`, of items drawn at random; labels beside the votes are not used.

For instance:

  deep adapt model.json --votes recent.parquet --out mine.json
      a model for this dataset that scores a single text as one of it, and a table to export
  deep adapt model.json --moments moments.json --out mine.json
      the same of rows that `deep data moments` has counted where they are: no row is read here
  deep label list model.json --votes mine.parquet --n 50 --out to-label.csv
      which items to label
  deep adapt model.json --votes mine.parquet --labels to-label.csv --out mine.json
      the same with slope and intercept by the labels, shrunk towards what the training datasets show
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from deep import evaluate, model
from deep._util.files import check_out
from deep.console import (
    SCHEMA,
    CommandParser,
    Results,
    add_model,
    add_options,
    add_target_options,
    percent,
    points,
    print_result,
)
from deep.exceptions import ExitStatus, InputError


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add_model(parser)
    add_target_options(parser, required=False)
    parser.add_argument("--moments", type=Path, metavar="FILE", help="counts of `deep data moments`, in place of votes")
    parser.add_argument("--dataset", metavar="NAME", help="which one, where the moments are of several")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the model of the dataset, .json")
    add_options(parser, "json")


def run(args: argparse.Namespace) -> int:
    """Adapt the model, write and report."""
    out = check_out(args.out, [".json"])
    _check_given(args)
    fitted = model.load(args.model)
    if args.moments is not None:
        return _by_moments(fitted, args, out)
    target = evaluate.read_target(fitted, args.votes, args.labels, args.scores)
    adapted, report = evaluate.adapt_model(fitted, target)
    adapted.save(out)
    results = SCHEMA | report | {"out": str(out)}
    print_result(results, _lines(results), as_json=args.json)
    return ExitStatus.DONE


def _check_given(args: argparse.Namespace) -> None:
    if bool(args.votes) == (args.moments is not None):
        given = "both" if args.votes else "none"
        raise InputError(f"`votes` or `moments` must be given. Got {given}.")
    other = next((name for name in ("labels", "scores") if getattr(args, name)), None)
    if args.moments is not None and other is not None:
        raise InputError(f"`{other}` must be given with `votes`. Got them with moments, which name no items.")
    if args.moments is None and args.dataset is not None:
        raise InputError(f"`dataset` must be given with `moments`. Got {args.dataset!r} with votes.")


def _by_moments(fitted: "model.Model", args: argparse.Namespace, out: Path) -> int:
    moments = model.read_moments(args.moments)
    adapted = model.adapt_by_moments(fitted, moments, args.dataset)
    adapted.save(out)
    found = {"dataset": adapted.target, "n": moments.datasets[str(adapted.target)].n, "prior": vars(adapted.prior)}
    lines = [*model.prior_lines({str(adapted.target): adapted.prior}), f"{found['n']} items counted; model: {out}"]
    print_result(SCHEMA | found | {"out": str(out)}, lines, as_json=args.json)
    return ExitStatus.DONE


def _lines(found: Results) -> Iterator[str]:
    mean, width, prior = found["p_mean"], found["interval_width"], found["prior"]
    low, high = percent(prior["low"]), percent(prior["high"])
    warning = f" ({prior['warning']})" if prior["warning"] else ""
    yield f"{found['dataset']}: {found['n']} items, {percent(prior['estimate'])} consistent ({low} to {high}){warning}"
    yield (
        f"mean P: {percent(mean['streamed'])} as texts one by one, {percent(mean['adapted'])} adapted; "
        f"P moves by {points(found['p_change'])} points on average"
    )
    correction = found["correction"]
    if correction is None:
        yield "no labels: the context and the prior of the dataset are kept, and P is corrected by nothing else"
    else:
        yield from _corrected(correction, found["labels"])
        yield f"mean width of the 90 % interval: {points(width['before'])} points, {points(width['after'])} with labels"
    if found["table"]:
        yield f"every pattern of votes has its P now: `deep export {found['out']}` writes them as a table"
    yield f"model: {found['out']}"


def _corrected(correction: Results, labels: Results) -> Iterator[str]:
    yield (
        f"{labels['n']} labels, {labels['consistent']} of them consistent, worth {correction['n_effective']:.0f} "
        f"independent ones: log-odds are shifted by {correction['intercept']:+.2f} and multiplied by "
        f"{correction['slope']:.2f}"
    )
    yield (
        f"ECE on these labels: {percent(labels['ece_before'])} before (noise floor "
        f"{percent(labels['ece_floor_before'])}), {percent(labels['ece_after'])} after (noise floor "
        f"{percent(labels['ece_floor_after'])}); the latter is flattered: the correction was learned from these labels"
    )
