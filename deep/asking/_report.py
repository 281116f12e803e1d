"""`deep votes report`: what a ledger holds, per prompt, dataset and model."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from deep._text import table
from deep.asking._progress import money
from deep.exceptions import InputError
from deep.judge import REPAIR
from deep.llm import History, ReportRow

REASONS = ("abstained", "unparsable", "truncated", "refused", "failed")


def ledger_report(ledger: str, *, max_failure_rate: float = 0.05) -> dict[str, Any]:
    """Return the contents of a ledger as JSON values.

    Parameters
    ----------
    ledger : str
        A file, or a postgresql+psycopg:// URL.
    max_failure_rate : float, default=0.05
        Voters without a usable answer to a larger share of their requests are called failing.

    Raises
    ------
    InputError
        `max_failure_rate` is not in [0, 1], or there is no such ledger.
    """
    if not 0 <= max_failure_rate <= 1:
        raise InputError(f"`max_failure_rate` must lie in [0, 1]. Got {max_failure_rate!r}.")
    with History(ledger) as history:
        rows, quirks, lost, (dollars, unpriced) = history.report(), history.quirks(), history.lost(), history.cost()
        others = history.other_models()
    failing = {voter: rate for voter, rate in _failure_rates(rows).items() if rate > max_failure_rate}
    return {
        "schema_version": 1,
        "rows": [row.as_dict() for row in rows],
        "quirks": [asdict(quirk) for quirk in quirks],
        "cost": dollars,
        "unpriced": unpriced,
        "lost_attempts": lost,
        "answered_by_another": other_models(others),
        "failing": failing,
    }


def _failure_rates(rows: Sequence[ReportRow]) -> dict[str, float]:
    """Return each voter's share of settled requests without a usable answer, over all datasets.

    A repair turn with an answer makes up for the reply before it.
    """
    settled: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for row in rows:
        if row.voter.endswith(f"#{REPAIR}"):
            lost[row.voter.removesuffix(f"#{REPAIR}")] -= row.votes + row.reasons.get("abstained", 0)
            continue
        settled[row.voter] += row.settled
        lost[row.voter] += row.without_answer
    return {voter: lost[voter] / n for voter, n in sorted(settled.items()) if n}


def called_out(voter: str, rate: float) -> str:
    """Return the sentence about a voter that fails too often."""
    return f"{voter} has no usable answer to {rate:.1%} of its requests: too many to be fitted without a second look."


def other_models(counts: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """Return JSON values: answers by a model of another name than the one asked."""
    return [{"asked": asked, "answered": name, "answers": n} for (asked, name), n in sorted(counts.items())]


def other_model_lines(counts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each name by which an LLM answered that is not its own."""
    for row in counts:
        yield f"{row['asked']!r} was asked and {row['answered']!r} answered: {row['answers']} answers"


def quirk_lines(quirks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each field of a request that an LLM refuses or ignores."""
    for quirk in quirks:
        yield f"{quirk['model']} at {quirk['endpoint']}: {quirk['parameter']} {quirk['action']} ({quirk['message']})"


def ledger_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report for people."""
    counts = ("waiting", "unknown", "attempts")
    head = ("voter", "dataset", "asked", "votes", *REASONS, *counts, "cost", "median s", "p95 s")
    yield table([head, *(_cells(row) for row in report["rows"])])
    for row in report["rows"]:
        if row["failures"]:
            yield f"failed, by class, {row['voter']} on {row['dataset']}: {_counts(row['failures'])}"
    yield from quirk_lines(report["quirks"])
    yield from other_model_lines(report["answered_by_another"])
    yield f"cost: {money(report['cost'], report['unpriced'])}"
    if report["lost_attempts"]:
        why = "a crash, a timeout, a broken connection or reply"
        yield f"{report['lost_attempts']} attempts have no answer here ({why}) and may be on the bill"
    yield from (called_out(voter, rate) for voter, rate in report["failing"].items())


def _cells(row: Mapping[str, Any]) -> list[str]:
    reasons = [str(row["reasons"].get(reason, 0)) for reason in REASONS]
    seconds = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("seconds_median", "seconds_p95")]
    counts = [str(row[name]) for name in ("waiting", "unknown", "attempts")]
    cost = money(row["cost"], row["unpriced"]).partition(" ")[0]
    votes = f"{row['answers']} answers" if row["answers"] else str(row["votes"])
    return [row["voter"], row["dataset"], str(row["asked"]), votes, *reasons, *counts, cost, *seconds]


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in sorted(counts.items()))
