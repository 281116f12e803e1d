"""Turn examples into a vote matrix by asking LLMs, or by judges that need no key.

Run again, it asks only what is missing. Exit status: 0 done, 1 a prompt fails too often, 2 an error, 3 the budget is
reached, 130 interrupted.
"""

import argparse
from pathlib import Path

from deep import asking
from deep._files import check_out
from deep.console import (
    LEVELS,
    SEVERAL,
    CommandParser,
    Subcommand,
    add_call_options,
    add_example_options,
    add_offline_options,
    add_options,
    ask_options,
    check_least,
    check_models,
    endpoint_of,
    examples_from,
    live_progress,
    offline_judges,
    print_result,
    run_subcommand,
)
from deep.exceptions import ExitStatus, InputError

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
examples:
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --dry-run
      how many calls, tokens and dollars it would take; nothing is sent
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --budget 5.00 --out votes.parquet
      ask, and stop before the bill can pass five dollars; run again, it asks only what is missing
  deep votes summedits --lexical all --out votes.parquet
      judge by words alone: no model, no key, no cost
  deep votes report votes.ledger.sqlite
      votes, failures, cost and latency by prompt, dataset and model

Keys come from the environment only.
"""


def add_arguments(parser: CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        Subcommand("ask", "judge examples", _add_ask, _ask),
        Subcommand("report", "print the contents of a ledger, by prompt, dataset and model", _add_report, _report),
        standard="ask",
    )


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    return run_subcommand(args)


def _add_report(parser: CommandParser) -> None:
    parser.add_argument("ledger", metavar="LEDGER", help="a ledger file or a postgresql+psycopg:// URL")
    add_options(parser, "max-failure-rate", "json", max_failure_rate={"help": "call out voters that fail more often"})


def _report(args: argparse.Namespace) -> int:
    results = asking.ledger_report(args.ledger, max_failure_rate=args.max_failure_rate)
    print_result(results, asking.ledger_lines(results), as_json=args.json)
    return ExitStatus.DONE


def _add_ask(parser: CommandParser) -> None:
    add = parser.add_argument
    add("examples", metavar="EXAMPLES", help="a benchmark, or CSV, JSONL or Parquet with the columns source and claim")
    add("--pool", **SEVERAL, metavar="NAME", help="pools of prompts, or folders of TOML prompts")
    add("--prompt", **SEVERAL, metavar="ID", help="prompts by id, or TOML files")
    add("--judge", **SEVERAL, metavar="NAME", help="judges that need several calls for one example")
    add("--level", choices=LEVELS, help="of the judge tiered: what a cognitive statement must be (default grounded)")
    add_offline_options(parser)
    add_call_options(parser)
    add("--samples", type=int, default=1, metavar="M", help="answers to each question")
    add("--soft", action="store_true", help="ask for log-probabilities, for soft votes beside the hard ones")
    add("--temperature", type=float, metavar="T", help="in place of the prompts' own")
    add("--max-tokens", type=int, metavar="N", help="in place of the prompts' own limit of the answer")
    add("--out", type=Path, default=Path("votes.parquet"), metavar="FILE", help="the vote matrix")
    add("--dry-run", action="store_true", help="print calls, tokens and cost, and send nothing")
    add_options(parser, "max-failure-rate", "json", max_failure_rate={"help": "above it the status is 1"})
    add_example_options(parser)


def _ask(args: argparse.Namespace) -> int:
    plan = _plan(args)
    options = ask_options(args, args.out) if plan.asks else None
    if args.dry_run:
        asking.print_estimate(plan, options, as_json=args.json)
        return ExitStatus.DONE
    out = check_out(args.out, [".parquet"])
    with live_progress() as progress:
        outcome = asking.run_plan(plan, options, progress)
        if outcome.stopped is None:
            asking.write_votes(plan, options, out, outcome.tally, progress)
    rates = {voter: outcome.tally.failure_rate(voter) for voter in plan.voters if voter in outcome.tally.by_voter}
    failing = {voter: rate for voter, rate in rates.items() if rate > args.max_failure_rate}
    written = out if outcome.stopped is None else None
    results = asking.summary(outcome, options, written, failing, plan.n_examples)
    print_result(results, [asking.summary_text(results)], as_json=args.json)
    if outcome.stopped is not None:
        return ExitStatus.of_stop(outcome.stopped)
    return ExitStatus.FOUND if failing else ExitStatus.DONE


def _plan(args: argparse.Namespace) -> "asking.Plan":
    if args.level is not None and "tiered" not in args.judge:
        raise InputError(f"`level` must be given with the judge tiered. Got {args.level!r}.")
    check_least(args, samples=1)
    sampling = asking.Sampling(args.samples, args.temperature, args.max_tokens, args.soft)
    staged = [f"tiered:{args.level}" if args.level and name == "tiered" else name for name in args.judge]
    prompts = [*asking.judges_of("pool", args.pool, sampling), *asking.judges_of("prompt", args.prompt, sampling)]
    asked = [*prompts, *asking.judges_of("judge", staged)]
    if not (asked or args.lexical or args.encoder or args.embedding):
        raise InputError("`embedding`, `encoder`, `judge`, `lexical`, `pool` or `prompt` must be given. Got none.")
    return asking.Plan(
        examples=examples_from(args, args.examples),
        columns=asking.planned_voters([*asked, *offline_judges(args)], check_models(args) if asked else ()),
        endpoint=endpoint_of(args) if asked else "",
    )
