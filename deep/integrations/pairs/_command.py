"""Join the answers of judges to pairs in both orders; show each judge's bias; rank systems.

A judge that names the same text in both orders has a vote: 1, A is better, or 0, B is. A tie and a contradiction are
no vote. The table that is written is one of votes: fit, score, estimate and report take it, and P is that A is better.

For instance:

  deep panel pairs asked.parquet --pairs pairs.csv --out votes.parquet
      judges that were asked in both orders; position and length bias with 90 % intervals
  deep panel pairs votes.parquet --held-out
      P by both orders beside P by one alone, each dataset held out
  deep panel pairs asked.parquet --pairs pairs.csv --rank scores.csv
      systems in order, by P(A is better) that `deep score` gave
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from operator import sub, truediv
from pathlib import Path
from statistics import mean, stdev

from deep import asking, console, datasets, evaluate
from deep._util.files import check_out
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError
from deep.integrations import pairs


@dataclass(frozen=True)
class _Pairs:
    """Options of the command.

    Parameters
    ----------
    votes : tuple of str
        Answers: items ending in @ab and @ba, or judges ending in __ab and __ba.
    pairs : str, optional
        The pairs: their texts and systems.
    rank : str, optional
        P of the pairs, as `deep score` writes it.
    held_out : bool, default=False
        Compare P from both orders with P from one order.
    out : Path, optional
        The joined votes: .parquet.
    """

    votes: tuple[str, ...] = option((), "VOTES", flags=["votes"], nargs="+")
    pairs: str | None = option(None, "FILE")
    rank: str | None = option(None, "SCORES")
    held_out: bool = option(False)
    out: Path | None = option(None, "FILE.parquet")


add_arguments = console.adder(_Pairs, "json")

# What `deep score` writes of each pair.
SCORED = ("dataset", "item_id", "p_consistent")


def run(args: argparse.Namespace) -> int:
    """Join, measure, write and report."""
    if args.rank and not args.pairs:
        raise InputError("`pairs` must be given with `rank`: it has the systems. Got none.")
    out = None if args.out is None else check_out(args.out, [".parquet"])
    panel = pairs.join_orders(datasets.read_votes(args.votes))
    texts = [] if args.pairs is None else pairs.read_pairs(args.pairs)
    cards = pairs.order_cards(panel, texts)
    results = console.SCHEMA | {"pairs": panel.votes.shape[0], "judges": [evaluate.json_value(card) for card in cards]}
    lines = list(_card_lines(cards, panel.votes.shape[0]))
    if args.held_out:
        result = pairs.held_out(panel)
        results["held_out"] = result
        lines += _held_out_lines(result)
    if args.rank:
        rows = [row for _, row in datasets.read_rows(Path(args.rank), SCORED, param="rank")]
        if not {*SCORED} <= {*rows[0]}:
            raise InputError(f"`rank` must have the columns {', '.join(SCORED)}. Got {args.rank!r} without one.")
        scores = {(row["dataset"], row["item_id"]): float(row["p_consistent"]) for row in rows if row["p_consistent"]}
        systems = pairs.rank_systems(texts, scores)
        results["systems"] = [asdict(row) for row in systems]
        lines += _rank_lines(systems)
    if out is not None:
        metadata = {"schema_version": 1, "voters": {name: {"kind": "pairs"} for name in panel.votes.voter_names}}
        asking.write_judged(panel.judgments(), panel.votes.voter_names, out, metadata)
        lines.append(f"votes: {out}")
    console.print_result(results, lines, as_json=args.json)
    return ExitStatus.DONE


def _card_lines(cards: "Sequence[pairs.OrderCard]", n: int) -> Iterator[str]:
    yield f"{n:,} pairs. Position bias: how much more often than 50 % the first text wins, in points (90 % interval)."
    for card in cards:
        if not card.n:
            yield f"  {card.judge}: no pair has answers in both orders"
            continue
        line = f"  {card.judge}: {_points(card.position_bias, card.position_interval)}, "
        line += f"both orders agree on {console.percent(card.agreement)} of {card.n:,}"
        if card.accuracy == card.accuracy:
            line += f", {console.percent(card.accuracy)} of those right"
        if card.length_bias == card.length_bias:
            line += f"; for the longer text {_points(card.length_bias, card.length_interval)}"
        yield line


def _points(bias: float, interval: tuple[float, float]) -> str:
    value, low, high = evaluate.in_percent(bias, "+"), *(evaluate.in_percent(end, "+") for end in interval)
    return f"{value} ({low} to {high})"


def _held_out_lines(results: "Mapping[str, pairs.HeldOut]") -> Iterator[str]:
    yield "Each dataset held out, mean over datasets: balanced accuracy, log loss"
    both_orders = results["both orders"]
    for kind, rows in results.items():
        line = f"  {kind}: {console.percent(mean(rows['balanced_accuracy']))}, {mean(rows['log_loss']):.3f}"
        if rows is not both_orders:
            gains = [*map(sub, rows["log_loss"], both_orders["log_loss"])]
            error = truediv(stdev(gains), sqrt(len(gains)))
            line += f"; log loss higher than with both orders by {mean(gains):.3f} (standard error {error:.3f})"
        yield line


def _rank_lines(systems: "Sequence[pairs.RankedSystem]") -> Iterator[str]:
    yield "Systems by their chance to beat the average system (Bradley-Terry on P; 90 % interval; ranks)"
    for row in systems:
        ends = " to ".join(map(console.percent, row.interval))
        ranks = " to ".join(map(str, dict.fromkeys(row.ranks)))
        yield f"  {row.system}: {console.percent(row.chance)} ({ends}), rank {ranks}, {row.n} pairs"
