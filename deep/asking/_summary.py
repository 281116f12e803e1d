"""The summary that `deep votes` prints at its end."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from deep._util.names import table
from deep.asking._options import AskOptions, money
from deep.asking._run import RunOutcome, doubt_lines
from deep.asking._vote_files import output_paths
from deep.exceptions import InputError
from deep.judges import REPAIR
from deep.llm import History, ReportRow, describe_ledger

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


def summary(
    outcome: RunOutcome, options: AskOptions | None, out: Path | None, failing: dict[str, float], n_examples: int
) -> dict[str, Any]:
    """Return the summary that `--json` prints; `out` is None where no votes were written."""
    tally = outcome.tally
    voters = [
        {
            "voter": voter,
            **{kind: counts[kind] for kind in ("done", "votes", "answers", *REASONS, "repairs", "repaired")},
            "failure_rate": tally.failure_rate(voter),
            "failing": voter in failing,
        }
        for voter, counts in sorted(tally.by_voter.items())
    ]
    paths = {} if out is None else {kind: str(p) for kind, p in output_paths(out).items() if p.exists()}
    return {
        "schema_version": 1,
        "examples": n_examples,
        "requests": tally.total,
        "found": tally.found,
        "answered": tally.answered,
        "failed": tally.failed,
        "attempts": tally.attempts,
        "in_doubt": tally.in_doubt,
        "unknown": outcome.unknown,
        "in_doubt_twice": outcome.in_doubt_twice,
        "asked_again": 0 if options is None or options.at_most_once else outcome.unknown,
        "cost": None if tally.unpriced and not tally.cost else tally.cost,
        "unpriced": tally.unpriced,
        "seconds": tally.seconds,
        "stopped": outcome.stopped,
        "answered_by_another": other_models(tally.other_models),
        "quirks": [asdict(quirk) for quirk in outcome.quirks],
        "too_long": tally.too_long,
        "asked_longer": tally.longer,
        "saved": tally.saved,
        "lines_passed_over": tally.lines_passed_over,
        "contradictions": tally.contradictions,
        "voters": voters,
        "ledger": None if options is None else describe_ledger(options.ledger),
        "outputs": paths,
    }


def summary_text(values: dict[str, Any]) -> str:
    """Return the summary for people."""
    lines = [_voter_line(voter) for voter in values["voters"]]
    if values["ledger"] is None and not values["answered"] + values["failed"] + values["found"]:
        lines.append(f"{values['examples']} examples judged in {values['seconds']:.1f} s; no LLM was asked")
    else:
        lines.append(
            f"{values['answered']} answered, {values['failed']} failed, {values['found']} settled before, "
            f"in {values['attempts']} attempts and {values['seconds']:.1f} s"
        )
    lines.append(f"cost of this run: {money(values['cost'], values['unpriced'])}")
    lines += [*other_model_lines(values["answered_by_another"]), *quirk_lines(values["quirks"])]
    if values["in_doubt"]:
        lines.append(
            f"{values['in_doubt']} attempts ended without an answer that may have been given (a timeout, a broken "
            "connection or reply), and may be on the bill as well"
        )
    if values["asked_longer"]:
        lines.append(
            f"{values['asked_longer']} replies were cut off at their length limit and asked for again with four times "
            f"the limit: {values['saved']} saved"
        )
    if values["too_long"]:
        lines.append(
            f"{values['too_long']} requests do not fit into the context of their LLM; --chunk SIZE:OVERLAP cuts long "
            "sources into windows"
        )
    if values["lines_passed_over"]:
        lines.append(
            f"{values['lines_passed_over']} lines of batches were no result of a request, and were passed over"
        )
    if values["contradictions"]:
        lines.append(
            f"{values['contradictions']} requests have two results in a batch that contradict each other, "
            "and so no vote; --retry-failed broken asks them again"
        )
    lines += doubt_lines(values["unknown"], values["in_doubt_twice"], asked_again=bool(values["asked_again"]))
    lines += [called_out(voter["voter"], voter["failure_rate"]) for voter in values["voters"] if voter["failing"]]
    if values["stopped"]:
        why = "the budget is reached" if values["stopped"] == "budget" else "interrupted"
        lines.append(f"stopped: {why}. No votes were written; the same command again asks what is missing.")
    lines += [f"{kind}: {path}" for kind, path in sorted(values["outputs"].items())]
    lines += [f"ledger: {values['ledger']}"] if values["ledger"] else []
    return "\n".join([*lines, ""])


def _voter_line(voter: dict[str, Any]) -> str:
    reasons = ", ".join(f"{voter[reason]} {reason}" for reason in REASONS if voter[reason])
    said = f"{voter['answers']} answers" if voter["answers"] else f"{voter['votes']} votes"
    repaired = f"{voter['repaired']} of {voter['repairs']} repair turns gave an answer" if voter["repairs"] else ""
    return f"{voter['voter']}: " + ", ".join(part for part in (said, reasons, repaired) if part)
