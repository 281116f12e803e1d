"""Ask judges about examples and write their votes. Run it again to continue.

Exit status: 0 done, 1 a prompt fails too often, 2 an error, 3 the budget is reached, 130 interrupted.

For instance:

  deep ask claims.csv --pool deep-9 --llm gpt-4o-mini --dry-run
      estimate calls, tokens and dollars; nothing is sent
  deep ask claims.csv --pool deep-9 --llm gpt-4o-mini --budget 5.00 --out votes.parquet
      ask, and stop before the bill passes five dollars; run it again to go on
  deep ask summedits --lexical all --out votes.parquet
      lexical checks only: no model, no key, no cost
"""

import argparse

from deep import asking, console
from deep._util.entry_points import load_part
from deep._util.options import argument
from deep.exceptions import ExitStatus, InputError

REPORT = """\
examples:
  deep ask report votes.ledger.sqlite
      votes, failures, cost and latency by prompt, dataset and model
"""
run = console.run_subcommand


add_ask = console.adder(
    argument("examples", "EXAMPLES", "a benchmark, or CSV, JSONL or Parquet with the columns source and claim"),
    *(console.VotesOptions, console.JudgeOptions, console.OfflineJudges, *console.CALL_TOPICS),
    *(console.FewShotOptions, asking.Sampling, console.ExampleColumns, console.IncompleteRows, console.BatchFiles),
    *("otel", "max-failure-rate"),
    max_failure_rate={"help": "warn about voters above it: status 1"},
)


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    failures = {"help": "warn about voters that fail more often", "rare": False}
    ledger = argument("ledger", "LEDGER", "a ledger file or a postgresql+psycopg:// URL")
    of_ledger = console.adder(ledger, "max-failure-rate", max_failure_rate=failures)
    parser.add_subcommands(
        console.Subcommand("ask", "judge examples", add_ask, _ask),
        console.Subcommand("report", "print the contents of a ledger", of_ledger, _report, REPORT),
        standard="ask",
        shared=console.adder("json"),
    )


def _report(args: argparse.Namespace) -> None:
    results = asking.ledger_report(args.ledger, max_failure_rate=args.max_failure_rate)
    console.print_result(results, asking.ledger_lines(results), as_json=args.json)


def _ask(args: argparse.Namespace) -> int:
    """Ask, read again or only estimate, as the options say, and write the votes."""
    # One ledger either way: read alone with --from-ledger, else written too.
    args.ledger = args.from_ledger or args.ledger
    files = [
        name for name in ("batch_in", "batch_out", "shard_mb", "shard_requests") if getattr(args, name) is not None
    ]
    if files:  # what is no limit is refused before anything is read
        load_part("batch").check_file_options(args)
    plan = _plan(args)
    if args.strict:
        plan.examples.check(strict=True)
    plan.check_questions()
    options = console.ask_options(args, args.out) if plan.keeps_answers else None
    if files:
        return int(load_part("batch").votes_by_files(args, plan, options))
    console.note_run(args, plan.voters, {} if options is None else options.prices_of(args.llm))
    if args.dry_run:
        asking.print_estimate(plan, options, as_json=args.json)
        return ExitStatus.DONE
    out = asking.check_outputs(args.out, plan.voters)
    if args.reread:
        changes = asking.reread_votes(plan, options, out)
        console.print_result(changes.results(), changes.lines(), as_json=args.json)
        return ExitStatus.DONE
    with console.evaluation_events(on=args.otel) as events, console.live_progress() as progress:
        outcome = asking.run_plan(plan, options, progress, ask=not args.from_ledger)
        on_judged = events.judged if events and outcome.stopped is None else None  # told once, when they are whole
        out = asking.write_votes(plan, options, out, outcome.tally, progress, on_judged, outcome.stopped)
    high_rates = asking.failing_voters(outcome.tally, args.max_failure_rate)
    results = asking.summary(outcome, options, out, high_rates, plan)
    console.print_result(results, [asking.summary_text(results)], as_json=args.json)
    # A stopped run has a status of its own: what failed in it may still be asked again.
    return ExitStatus.FOUND if high_rates and not results["stopped"] else ExitStatus.of_stop(results["stopped"])


def _plan(args: argparse.Namespace) -> "asking.Plan":
    """Return the judges and examples that the options name, as a plan."""
    console.check_draws(args, "samples")
    sampling = console.sampling_of(args, args.examples)
    kinds: dict[asking.JudgeKind, list[str]] = {"pool": args.pool, "prompt": args.prompt, "judge": args.judge}
    judges = [judge for kind, names in kinds.items() for judge in asking.judges_of(kind, names, sampling)]
    if not (judges or args.lexical or args.encoder or args.embedding):
        raise InputError("`embedding`, `encoder`, `judge`, `lexical`, `pool` or `prompt` must be given. Got none.")
    asks, calls = any(one.needs_llm for one in judges), any(isinstance(one, asking.FunctionJudge) for one in judges)
    if not (asks or calls):
        console.check_nothing_asked(args, "with judges that need no LLM", asking.Sampling)
    models = console.check_models(args) if asks else ()
    return asking.Plan(
        examples=console.examples_from(args, args.examples),
        columns=asking.planned_voters([*judges, *console.offline_judges(args)], models, console.workers_of(args)),
        endpoint=console.endpoint_of(args) if asks else "",
        sample=args.sample,
    )
