"""How many items of a dataset are consistent: the share with its interval, and which of several systems does better.

Labels are those of `--labels`, of items or documents drawn at random; labels beside the votes are not used, nor are
labels used twice that the model was fitted on.

For instance:

  deep estimate model.json --votes mine.parquet
      the share of consistent items that the system behind each dataset writes, from votes alone
  deep estimate model.json --votes mine.parquet --share 60-80%
      joined to what you believe of it
  deep estimate model.json --votes mine.parquet --labels fifty.csv --of items --level 0.95
      by every method, the best first, of these very items; the intervals hold in 95 % of draws
  deep estimate model.json --votes mine.parquet --labels fifty.csv --compare generator
      the systems that the column `generator` names: ranks, the difference of every pair with interval and p-value
  deep estimate model.json --votes a.parquet b.parquet --compare file --tell 0.05
      each table a system; how many labels would tell a difference of five points
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from deep import console, evaluate, model
from deep._util.options import option
from deep.exceptions import InputError


@dataclass(frozen=True)
class _EstimateArgs:
    """Options of the command.

    Parameters
    ----------
    of : str, default='system'
        Share of the system that wrote the items (default), or of these items only.
    level : float, default=model.LEVEL
        Level of the intervals (default 0.9).
    tell : float, optional
        With --compare: how many labels detect a difference of D (default 0.1).
    """

    of: str = option("system", choices=model.SHARE_TARGETS)
    level: float = option(model.LEVEL, "L")
    tell: float | None = option(None, "D")


add_arguments = console.adder(console.MODEL_ARG, console.add_target_options, _EstimateArgs, "compare", "share", "json")


def run(args: argparse.Namespace) -> None:
    """Estimate and report."""
    fitted = model.load(args.model).believing(args.share)
    # An option without effect is refused: its user believes that it has one.
    if args.tell is not None and args.compare is None:
        raise InputError(f"`tell` must be given with `compare`. Got {args.tell!r} without.")
    if args.compare is not None:
        _compare(fitted, args)
        return
    targets = evaluate.read_targets(fitted, args.votes, args.labels, args.scores)
    result = [evaluate.share_report(fitted, target, of=args.of, level=args.level) for target in targets]
    console.print_result(
        console.SCHEMA | {"datasets": result}, [line for row in result for line in _lines(row)], as_json=args.json
    )


def _compare(fitted: "model.Model", args: argparse.Namespace) -> None:
    target = evaluate.read_together(fitted, args.votes, args.labels, args.scores)
    systems = evaluate.read_systems(args.votes, target, args.compare)
    # The default is that of the function.
    tell = {} if args.tell is None else {"tell": args.tell}
    result = evaluate.compare_systems(fitted, target, systems, of=args.of, level=args.level, **tell)
    console.print_result(console.SCHEMA | result.as_dict(), result.lines(), as_json=args.json)


def _lines(results: console.Results) -> Iterator[str]:
    labels = f", {results['labels']} of them labeled" if results["labels"] else ""
    whose = "of these items" if results["of"] == "items" else "of the system that wrote them"
    interval = f"{console.level(results['level'])} interval"
    yield f"{results['dataset']}: {results['n']} items{labels}; share of consistent ones {whose}, {interval}:"
    for share in results["shares"]:
        bounds = f"({console.percent(share['low'])} to {console.percent(share['high'])})"
        interval_words = bounds if results["measured"] else "(no interval)"
        yield f"  {share['method']:<18}  {console.percent(share['estimate']):>7}  {interval_words}  {share['how']}"
    yield from (f"  {note}" for note in (results["note"], results["prior"]["warning"]) if note)
