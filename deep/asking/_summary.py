"""The summary that `deep votes` prints at its end."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from deep.asking._options import AskOptions
from deep.asking._progress import money
from deep.asking._report import REASONS, called_out, other_model_lines, other_models, quirk_lines
from deep.asking._run import RunOutcome, doubt_lines
from deep.asking._vote_files import output_paths
from deep.llm import describe_ledger


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
    if values["ledger"] is None:
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
