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
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import asking, console, evaluate, model
from deep._util.entry_points import load_part
from deep._util.options import option
from deep._util.scales import BINARY, Scale
from deep.exceptions import InputError, StoppedError

run = console.run_subcommand


@dataclass(frozen=True)
class _Score:
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
        console.Subcommand.of("explain", _explain, EXPLAIN),
        standard="items",
    )


def _add_items(parser: console.CommandParser) -> None:
    names = ("share", "decide", "dataset", "allow-mismatch", "allow-missing", "json")
    texts = (console.OwnJudges, console.Turns, *console.PROMPT_TOPICS, console.ExampleColumns)
    rare = {"rare": True}
    console.add_options(
        parser, _Score, console.ScoreInput, *names, *texts, few_shot=rare, dataset=rare, allow_missing=rare
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
        more = console.told_of_texts(fitted, options)
        console.print_scored(args, batches, model.ITEM_COLUMNS | model.SCORE_COLUMNS, more)
    return None


@dataclass(frozen=True)
class _Explain:
    """Options of the command.

    Parameters
    ----------
    item : str, optional
        The item_id of one row.
    dataset : str, optional
        Its dataset, if two datasets have this item_id.
    vote : tuple of str
        A vote: 1, 0 or none, or a grade; NAME in full, or its id.
    """

    item: str | None = option(None, "ID")
    dataset: str | None = option(None, "NAME")
    vote: tuple[str, ...] = option((), "NAME=VOTE", action="append", nargs=None)


EXPLAIN = console.adder(
    console.MODEL, "votes", _Explain, "allow-mismatch", "allow-missing", "json", votes={"help": "tables of votes"}
)


def _explain(args: argparse.Namespace) -> None:
    """Show how much each vote adds to the log-odds of P(consistent).

    For instance:

      deep score explain model.json --votes votes.parquet --item a17
          the log-odds that each vote on one item adds to the P that `deep score` gives it in this table
      deep score explain model.json --vote lexical-numbers=0 --vote lexical-entities=1
          the same for votes given by hand, as of a text by itself; voters that are not named have no vote
    """
    if bool(args.votes) == bool(args.vote) or bool(args.votes) != (args.item is not None):
        raise InputError(
            "`votes` with `item`, or `vote`, must be given. Got neither, both or half. Give --votes FILE --item ID, or "
            "--vote NAME=1 for each vote."
        )
    fitted = model.load(args.model)
    if args.votes:
        matching = {"allow_mismatch": args.allow_mismatch, "allow_missing": args.allow_missing}
        table = evaluate.votes_for(fitted, args.votes)
        row = evaluate.item_row(table, args.item, dataset=args.dataset)
        fitted, votes = evaluate.model_at(fitted, table, row, **matching)
    else:
        votes = _votes_by_hand(fitted, args.vote)
    results = console.SCHEMA | evaluate.explanation(fitted, votes)
    console.print_result(results, _explained(results), as_json=args.json)


def _votes_by_hand(fitted: model.Model, words: Sequence[str]) -> dict[str, float]:
    """Return the answers that were given by hand, by voter."""
    votes: dict[str, float] = {}
    for word in words:
        name, _, value = word.rpartition("=")
        # The short name will do, but a whole name wins: it may be another judge's short one.
        voters = [v.name for v in fitted.voters if v.name == name] or [v.name for v in fitted.voters if v.id == name]
        answer = _answer(value, fitted.scales.get(voters[0], BINARY)) if len(voters) == 1 else None
        if answer is None:
            raise InputError(
                f"`vote` must be a voter of the model, {', '.join(sorted(fitted.voter_names))}, followed by =0, =1, "
                f"=none or a grade of its scale. Got {word!r}."
            )
        if voters[0] in votes:
            raise InputError(f"`vote` must name each voter once. Got {voters[0]!r} twice.")
        votes[voters[0]] = answer
    return {name: answer for name, answer in votes.items() if answer == answer}


def _answer(value: str, scale: Scale) -> float | None:
    """Return the number of an answer on a scale, NaN for none; None where it is none of the scale's."""
    try:
        number = scale.read(value if value in scale.words else float(value))
    except ValueError:
        number = float("nan")
    return None if number != number and value != "none" else number


def _explained(results: console.Results) -> Iterator[str]:
    bounds = f"90 % interval {results['p_low']:.3f} to {results['p_high']:.3f}"
    width = max(len(row["voter"]) for row in results["contributions"])
    yield f"P(consistent) = {results['p_consistent']:.4f} ({bounds}); {results['p_without_votes']:.4f} without any vote"
    yield f"  {'voter':<{width}}  vote   shapley  removed"
    for row in results["contributions"]:
        vote = "none" if row["vote"] is None else f"{row['vote']:.3g}"
        parts = ["" if value is None else f"{value:+.3f}" for value in (row["shapley"], row["without"])]
        yield f"  {row['voter']:<{width}}  {vote:>4}  {parts[0]:>8}  {parts[1]:>8}"
    yield "in log-odds; shapley: averaged over all orders of the votes, summing to the difference from no votes;"
    yield "removed: the change if only this vote is taken away"
