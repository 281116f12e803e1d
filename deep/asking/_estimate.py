"""What `--dry-run` says of a plan."""

import json
import sys
from pathlib import Path

from deep.asking._plan import Estimate, Plan
from deep.asking._progress import money
from deep.asking._run import Settings
from deep.llm import History

__all__ = ["print_estimate"]


def print_estimate(plan: Plan, settings: Settings | None, *, as_json: bool) -> None:
    """Print how many calls, tokens and dollars a plan takes beyond what the ledger holds; nothing is sent."""
    estimate = Estimate(plan.n_offline) if settings is None else _estimate(plan, settings)
    if as_json:
        sys.stdout.write(json.dumps({"schema_version": 1, "dry_run": True, **estimate.as_dict()}, indent=2) + "\n")
        return
    output = "no limit" if estimate.output_tokens is None else f"at most {estimate.output_tokens:,}"
    lines = [
        f"{estimate.calls:,} calls to make, {estimate.settled:,} settled already",
        f"{estimate.input_tokens:,} input tokens (about), {output} output tokens",
        f"cost: about {money(estimate.dollars)}, at most {money(estimate.dollars_at_most)}",
    ]
    if estimate.offline_judgments:
        lines.append(f"{estimate.offline_judgments:,} judgments that ask nobody, $0.00")
    lines += _what_follows(estimate)
    lines += [f"no price is known for {model}; give one with --prices" for model in sorted(estimate.unpriced_models)]
    sys.stdout.write("\n".join([*lines, "nothing was sent", ""]))


def _estimate(plan: Plan, settings: Settings) -> Estimate:
    exists = "://" in settings.ledger or Path(settings.ledger).is_file()
    history = History(settings.ledger) if exists else None
    return plan.estimate(settings.prices, history, batch=settings.batch)


def _what_follows(estimate: Estimate) -> list[str]:
    if not estimate.more_follow:
        return []
    most = "" if estimate.calls_at_most is None else f"; at most {estimate.calls_at_most:,} calls of theirs in all"
    return [f"the staged judges then ask what depends on these answers, which nobody can count before{most}"]
