"""Compute a calibrated P(consistent) from votes or text, with a model that `deep fit` wrote.

For instance:

  deep score model.json --votes votes.parquet --out scores.parquet
      P(consistent) with its interval for every row of votes, as .csv or .parquet
  deep score model.json --votes votes.parquet --share 60-80% --out scores.parquet
      the same, with your prior for the share
  deep score model.json --source article.txt --claim summary.txt
      run the model's judges on one pair, at the mean share of its training datasets
  deep score model.json --input claims.csv --out scores.jsonl
      the same for a file of examples; run it again to continue
  deep score model.json --input claims.csv --out scores.csv --sequential
      ask judges one by one, and stop when the others cannot change the decision
"""

import argparse
import tempfile
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import asking, console, model
from deep._util.entry_points import load_part
from deep._util.options import option
from deep.commands import _explain
from deep.exceptions import StoppedError

run = console.run_subcommand


@dataclass(frozen=True)
class _ScoreArgs:
    """Options of the command.

    Parameters
    ----------
    model_file : str
        A model file.
    tables : tuple of str
        Tables of votes, as --votes takes them.
    out : Path, optional
        Scores: .csv, .parquet, or of text .jsonl with rationales.
    """

    model_file: str = option(MISSING, "MODEL.json", flags=["model_file"])
    tables: tuple[str, ...] = option((), "VOTES", flags=["tables"], nargs="*")
    out: Path | None = option(None, "FILE")


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        console.Subcommand("items", "give P(consistent) of votes or text", _add_items, _items),
        console.Subcommand.of("explain", _explain),
        standard="items",
    )


def _add_items(parser: console.CommandParser) -> None:
    names = ("share", "decide", "dataset", "allow-mismatch", "allow-missing", "json")
    texts = (console.OwnJudges, console.Turns, *console.PROMPT_TOPICS, console.ExampleColumns)
    rare = {"rare": True}
    console.add_options(
        parser, _ScoreArgs, console.ScoreInput, *names, *texts, few_shot=rare, dataset=rare, allow_missing=rare
    )
    # Behind all options, and only under --help-all: it is a table of a screen.
    columns = model.column_lines([*model.ITEM_COLUMNS.values(), *model.SCORE_COLUMNS.values()])
    parser.details = "\n".join(["", "columns of --out:", *(f"  {line}" for line in columns), ""])


def _items(args: argparse.Namespace) -> int | None:
    args.votes = [*args.tables, *args.votes]
    options = console.score_options(args)
    fitted = console.load_model(args.model_file, args.decide, args.share)
    console.note_run(args, [voter.name for voter in fitted.voters])
    if not args.votes:
        return _score_texts(fitted, args, options)
    console.score_votes(fitted, args, options)
    return None


def _score_texts(fitted: "model.Model", args: argparse.Namespace, options: "model.ScoreOptions") -> int | None:
    """Run the model's judges on text, and score their judgments."""
    console.scores_out(args, [".csv", ".jsonl", ".parquet"])
    examples = console.texts_to_score(args)
    examples.check()
    if args.sequential:
        load_part("sequential").check_sequential(fitted)
    finder, workers = console.finder_of(args, args.input), console.workers_of(args)
    plan = finder.plan(fitted, examples, lambda: console.endpoint_of(args), workers)
    # A pair without --out is asked through a ledger too, which lies beside the output: here, where it goes afterwards.
    with tempfile.TemporaryDirectory() as folder:
        ask = console.ask_options(args, args.out or Path(folder, "one")) if plan.keeps_answers else None
        if args.sequential:
            return int(load_part("sequential").score_one_by_one(fitted, args, plan, ask, options))
        if ask is not None:
            with console.live_progress() as progress:
                outcome = asking.run_plan(plan, ask, progress)
            if outcome.stopped is not None:
                raise StoppedError(outcome.stopped)
        batches = asking.score_examples(fitted, plan, None if ask is None else ask.ledger, options)
        more = console.prior_and_rule_of_texts(fitted, options)
        console.print_scored(args, batches, model.ITEM_COLUMNS | model.SCORE_COLUMNS, more)
    return None
