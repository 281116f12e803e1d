"""`deep votes`: turn examples into a vote matrix by asking LLMs, or by judges that need no key.

::

    deep votes examples.csv --pool deep-9 --model gpt-4o-mini --out votes.parquet --budget 5.00
    deep votes examples.csv --lexical all --out votes.parquet
    deep votes report votes.ledger.sqlite

The same command again asks only what is missing. Exit status: 0 done, 1 a prompt fails too often, 2 an error,
3 the budget is reached, 130 interrupted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from deep.asking import add_offline_options, offline_judges
from deep.console import LEVELS, Values, add_call_options, call_settings, check_models, endpoint_of
from deep.exceptions import DeepError, InputError

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --dry-run
      how many calls, tokens and dollars it would take; nothing is sent
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --budget 5.00 --out votes.parquet
      ask, and stop before the bill can pass five dollars; again, it asks only what is missing
  deep votes summedits --lexical all --out votes.parquet
      judge by words alone: no model, no key, no cost
  deep votes report votes.ledger.sqlite
      votes, failures, cost and latency by prompt, dataset and model

Keys come from the environment only.
"""

DONE, FAILING, ERROR, BUDGET, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: list[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    try:
        if words[:1] == ["report"]:
            from deep.asking import report

            return report(words[1:])
        return _votes(_parser().parse_args(words))
    except DeepError as error:
        sys.stderr.write(f"error: {error}\n")
        return ERROR
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command again asks what is missing\n")
        return INTERRUPTED


def _votes(args: argparse.Namespace) -> int:
    from deep.asking import print_estimate, run_plan, write_votes

    plan = _plan(args)
    settings = call_settings(args, args.out, max_failure_rate=args.max_failure_rate) if plan.asks else None
    n_examples = plan.n_examples
    if args.dry_run:
        print_estimate(plan, settings, as_json=args.json)
        return DONE
    out = _check_out(args.out)
    outcome = run_plan(plan, settings)
    if outcome.stopped is None:
        write_votes(plan, settings, out, outcome.tally)
    failing = {v: outcome.tally.failure_rate(v) for v in plan.voters if v in outcome.tally.by_voter}
    failing = {voter: rate for voter, rate in failing.items() if rate > args.max_failure_rate}
    _print_summary(args, outcome, settings, failing, n_examples)
    return _status(outcome.stopped, failing)


def _status(stopped: str | None, failing: dict[str, float]) -> int:
    if stopped is not None:
        return BUDGET if stopped == "budget" else INTERRUPTED
    return FAILING if failing else DONE


def _check_out(out: Path) -> Path:
    if out.suffix != ".parquet":
        raise InputError(f"`out` must end in .parquet. Got {str(out)!r}.")
    if not out.parent.is_dir():
        raise InputError(f"`out` must lie in an existing folder. Got {str(out)!r}.")
    return out


def _plan(args: argparse.Namespace) -> Any:
    from deep.asking import Plan
    from deep.console import examples_from
    from deep.prompt_pool import load_judge, load_pool, load_prompt

    prompts = [prompt for name in args.pool for prompt in load_pool(name)]
    prompts += [load_prompt(name) for name in args.prompt]
    if args.level is not None and "tiered" not in args.judge:
        raise InputError(f"`level` must be given with the judge tiered. Got {args.level!r}.")
    judges = [load_judge(f"tiered:{args.level}" if args.level and name == "tiered" else name) for name in args.judge]
    asks = bool(prompts or judges)
    if not (asks or args.lexical or args.encoder or args.embedding):
        raise InputError("`embedding`, `encoder`, `judge`, `lexical`, `pool` or `prompt` must be given. Got none.")
    if args.samples < 1:
        raise InputError(f"`samples` must be 1 or more. Got {args.samples}.")
    return Plan(
        examples=examples_from(args, args.examples),
        prompts=tuple(prompts),
        models=check_models(args) if asks else (),
        endpoint=endpoint_of(args) if asks else "",
        samples=args.samples,
        soft=args.soft,
        temperature=args.temperature,
        max_tokens=args.max_tokens,
        judges=tuple(judges),
        offline=offline_judges(args),
    )


def _print_summary(
    args: argparse.Namespace, outcome: Any, settings: Any, failing: dict[str, float], n_examples: int
) -> None:
    from deep.asking import summary, summary_text

    written = outcome.stopped is None
    values = summary(outcome, settings, args.out if written else None, failing, n_examples)
    if args.json:
        sys.stdout.write(json.dumps(values, indent=2) + "\n")
    else:
        sys.stdout.write(summary_text(values))


def _parser() -> argparse.ArgumentParser:
    from deep.console import add_example_options

    parser = argparse.ArgumentParser(
        prog="deep votes",
        description="Turn examples into a vote matrix by asking LLMs, or by judges that need no key. Asked again, it "
        "asks only what is missing.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    several: Any = {"action": Values, "nargs": "+", "default": []}
    add = parser.add_argument
    add("examples", metavar="EXAMPLES", help="a benchmark, or CSV, JSONL or Parquet with the columns source and claim")
    add("--pool", **several, metavar="NAME", help="pools of prompts, or folders of TOML prompts")
    add("--prompt", **several, metavar="ID", help="prompts by id, or TOML files")
    add("--judge", **several, metavar="NAME", help="judges that need several calls for one example")
    add("--level", choices=LEVELS, help="of the judge tiered: what a cognitive statement must be (default grounded)")
    add_offline_options(parser)
    add_call_options(parser)
    add("--samples", type=int, default=1, metavar="M", help="answers to each question (default 1)")
    add("--soft", action="store_true", help="ask for log-probabilities, for soft votes beside the hard ones")
    add("--temperature", type=float, metavar="T", help="in place of the prompts' own")
    add("--max-tokens", type=int, metavar="N", help="in place of the prompts' own limit of the answer")
    add("--out", type=Path, default=Path("votes.parquet"), metavar="FILE", help="default votes.parquet")
    add("--dry-run", action="store_true", help="print calls, tokens and cost, and send nothing")
    add("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="above it the status is 1 (default 0.05)")
    add("--json", action="store_true", help="print a JSON summary and nothing else")
    add_example_options(parser)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
