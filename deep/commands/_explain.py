"""Show how much each vote adds to the log-odds of P(consistent).

For instance:

  deep score explain model.json --votes votes.parquet --item a17
      the log-odds that each vote on one item adds to the P that `deep score` gives it in this table
  deep score explain model.json --vote lexical-numbers=0 --vote lexical-entities=1
      the same for votes given by hand, as of a text by itself; voters that are not named have no vote
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from deep import evaluate, model
from deep._util.options import option
from deep._util.scales import BINARY, Scale
from deep.console import MODEL_ARG, SCHEMA, Results, adder, print_result
from deep.exceptions import InputError


@dataclass(frozen=True)
class _ExplainArgs:
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


add_arguments = adder(
    MODEL_ARG, "votes", _ExplainArgs, "allow-mismatch", "allow-missing", "json", votes={"help": "tables of votes"}
)


def run(args: argparse.Namespace) -> None:
    """Explain and report."""
    if bool(args.votes) == bool(args.vote) or bool(args.votes) != (args.item is not None):
        raise InputError(
            "`votes` with `item`, or `vote`, must be given. Got neither, both or half. Give --votes FILE --item ID, or "
            "--vote NAME=1 for each vote."
        )
    fitted = model.load(args.model)
    if args.votes:
        matching = {"allow_mismatch": args.allow_mismatch, "allow_missing": args.allow_missing}
        table = evaluate.read_votes_for_model(fitted, args.votes)
        row = evaluate.item_row(table, args.item, dataset=args.dataset)
        fitted, votes = evaluate.model_and_answers_at(fitted, table, row, **matching)
    else:
        votes = _votes_by_hand(fitted, args.vote)
    results = SCHEMA | evaluate.explanation(fitted, votes)
    print_result(results, _lines(results), as_json=args.json)


def _votes_by_hand(fitted: "model.Model", words: Sequence[str]) -> dict[str, float]:
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


def _lines(results: Results) -> Iterator[str]:
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
