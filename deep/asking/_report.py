"""`deep votes report`: what a ledger holds, per prompt, dataset and model."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict

from deep.asking._progress import money
from deep.llm import History, Quirk, ReportRow

__all__ = ["report"]

REASONS = ("abstained", "unparsable", "truncated", "refused", "failed")


def report(argv: Sequence[str]) -> int:
    """Print the report of a ledger."""
    args = _parser().parse_args(argv)
    with History(args.ledger) as history:
        rows, quirks, lost, (dollars, unpriced) = history.report(), history.quirks(), history.lost(), history.cost()
    failing = {voter: rate for voter, rate in _failure_rates(rows).items() if rate > args.max_failure_rate}
    if args.json:
        summary = {
            "schema_version": 1,
            "rows": [row.as_dict() for row in rows],
            "quirks": [asdict(quirk) for quirk in quirks],
            "cost": dollars,
            "unpriced": unpriced,
            "lost_attempts": lost,
            "failing": failing,
        }
        sys.stdout.write(json.dumps(summary, indent=2) + "\n")
    else:
        sys.stdout.write(_text(rows, quirks, money(dollars, unpriced)))
        sys.stdout.writelines(f"{n} attempts were lost in crashes, and may be paid twice\n" for n in [lost] if n)
        sys.stdout.writelines(f"{called_out(voter, rate)}\n" for voter, rate in failing.items())
    return 0


def _failure_rates(rows: Sequence[ReportRow]) -> dict[str, float]:
    """Return each voter's share of settled requests without a usable answer, over all datasets."""
    settled: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for row in rows:
        settled[row.voter] += row.settled
        lost[row.voter] += row.without_answer
    return {voter: lost[voter] / n for voter, n in sorted(settled.items()) if n}


def called_out(voter: str, rate: float) -> str:
    """Return the sentence about a voter that fails too often."""
    return f"{voter} has no usable answer to {rate:.1%} of its requests: too many to be fitted without a second look."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="deep votes report", description="Print what a ledger of votes holds.")
    parser.add_argument("ledger", metavar="LEDGER", help="a ledger file or a postgresql+psycopg:// URL")
    parser.add_argument("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="default 0.05")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return parser


def _text(rows: Sequence[ReportRow], quirks: Sequence[Quirk], cost: str) -> str:
    header = [
        "voter",
        "dataset",
        "asked",
        "votes",
        *REASONS,
        "waiting",
        "unknown",
        "attempts",
        "cost",
        "median s",
        "p95 s",
    ]
    table = [header, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in table]
    lines += [
        f"failed, by class, {row.voter} on {row.dataset}: {_counts(row.failures)}" for row in rows if row.failures
    ]
    lines += [f"{q.model} at {q.endpoint}: {q.parameter} {q.action} ({q.message})" for q in quirks]
    return "\n".join([*lines, f"cost: {cost}", ""])


def _cells(row: ReportRow) -> list[str]:
    reasons = [str(row.reasons.get(reason, 0)) for reason in REASONS]
    seconds = ["" if value is None else f"{value:.2f}" for value in (row.seconds_median, row.seconds_p95)]
    counts = [str(n) for n in (row.waiting, row.unknown, row.attempts)]
    cost = money(row.cost, row.unpriced).partition(" ")[0]
    said = f"{row.answers} answers" if row.answers else str(row.votes)
    return [row.voter, row.dataset, str(row.asked), said, *reasons, *counts, cost, *seconds]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))
