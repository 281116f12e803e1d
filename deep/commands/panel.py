"""Measure each judge against people, itself and the other judges, and measure the whole panel.

For instance:

  deep panel votes.parquet --labels mine.csv
      how much people agree with each other and with each judge: confusion, kappa, rates with intervals
  deep panel labeled.parquet
      labels beside the votes; which judges to keep, drop or sample twice, and whether the best one is enough
  deep panel votes.csv --labels grades.csv --people ann bob --consistent-from 4
      the columns ann and bob hold people's grades; 4 or more means consistent
"""

import argparse
import math
import sys

from deep import console, datasets, evaluate
from deep._util.files import atomic_file, check_out, to_json
from deep.exceptions import InputError

run = console.run_subcommand


add_card = console.adder(
    console.CardOptions,
    *("votes", "labels", "people", "consistent-from", "ignore", "dataset", "scale", "n-boot", "seed", "json"),
    console.ExampleColumns,
    votes={"help": "the same, as an option"},
    n_boot={"default": 2000},
)


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(console.Subcommand("card", "the card of each judge", add_card, _print_card), standard="card")


def _print_card(args: argparse.Namespace) -> None:
    console.check_minimum(args, limit=0, n_boot=1, seed=0)
    # Before the card is made, which may take minutes.
    out = None if args.out is None else check_out(args.out, [".json"])
    args.votes = [*args.files, *args.votes]
    if (args.people or args.consistent_from is not None) and not args.labels:
        raise InputError("`labels` must be given with `people` and `consistent_from`. Got none.")
    card = _card(args)
    # Texts are looked up of the few items that are shown, not of all.
    items = console.shown_items(card)
    options = {"examples": args.examples, "columns": console.column_map(args)}
    texts = datasets.read_texts(args.votes, items, **options) if args.votes else datasets.FoundTexts()
    results = console.SCHEMA | {"votes": console.origin_of(args)} | card.as_dict() | {"texts": list(texts.notes)}
    if out is not None:
        with atomic_file(out) as partial:
            partial.write_text(to_json(results), encoding="utf-8")
    claims = {item: example.claim for item, example in texts.examples.items()}
    lines = [*console.card_lines(card, claims, texts.notes, full=args.full), *([] if args.votes else [console.NOTICE])]
    console.print_result(results, lines, as_json=args.json)


def _parse_price(word: str) -> tuple[str, float]:
    """Return a judge and the dollars of one of its votes."""
    name, _, price = word.rpartition("=")
    try:
        if name and 0 <= (dollars := float(price)) < math.inf:
            return name, dollars
    except ValueError:
        pass
    raise InputError(f"`prices` must be JUDGE=USD, dollars of one vote, 0 or more. Got {word!r}.")


def _card(args: argparse.Namespace) -> "evaluate.PanelCard":
    # `islice` takes no larger number.
    limit, worth = min(args.limit, sys.maxsize), not args.no_worth
    settings = {"limit": limit, "n_boot": args.n_boot, "random_state": args.seed, "worth": worth}
    settings |= {"prices": dict(map(_parse_price, args.prices))}
    people = {"people": args.people, "consistent_from": args.consistent_from}
    texts = {"examples": args.examples, "columns": console.column_map(args)}
    with console.progress_bars() as progress:
        if args.votes:
            return evaluate.read_panel_card(
                args.votes,
                args.labels,
                ignore=args.ignore,
                exclude_own=args.exclude_own,
                **people,
                **texts,
                **settings,
                progress=progress,
            )
        # Simulated votes have no file, and so no texts and no judgments beside them.
        votes, _ = console.read_votes_and_scores(args)
        people_labels = datasets.read_people(args.labels, votes, **people) if args.labels else None
        return evaluate.panel_card(votes, people_labels, **settings, progress=progress)
