"""`deep votes`: turn examples into a vote matrix by asking LLMs.

::

    deep votes examples.csv --pool deep-9 --model gpt-4o-mini --out votes.parquet --budget 5.00
    deep votes report votes.ledger.sqlite

The same command again asks only what is missing. Exit status: 0 done, 1 a prompt fails too often, 2 an error,
3 the budget is reached, 130 interrupted.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from deep.exceptions import DeepError, InputError
from deep.experiments._options import Values

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --dry-run
      how many calls, tokens and dollars it would take; nothing is sent
  deep votes claims.csv --pool deep-9 --model gpt-4o-mini --budget 5.00 --out votes.parquet
      ask, and stop before the bill can pass five dollars; again, it asks only what is missing
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
            from deep.experiments._votes_report import report

            return report(words[1:])
        return _votes(_parser().parse_args(words))
    except DeepError as error:
        sys.stderr.write(f"error: {error}\n")
        return ERROR
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; the same command again asks what is missing\n")
        return INTERRUPTED


def _votes(args: argparse.Namespace) -> int:
    from deep.experiments._votes_run import run_plan, write_votes

    plan, settings = _plan(args), _settings(args)
    n_examples = plan.n_examples
    if args.dry_run:
        return _dry_run(args, plan, settings)
    out = _check_out(args.out)
    outcome = run_plan(plan, settings)
    if outcome.stopped is None:
        write_votes(plan, settings, out)
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
    from deep.experiments._votes_io import ExampleFile, is_storable
    from deep.experiments._votes_plan import Plan
    from deep.prompt_pool import load_pool, load_prompt

    prompts = [prompt for name in args.pool for prompt in load_pool(name)]
    prompts += [load_prompt(name) for name in args.prompt]
    models = args.model
    if not prompts:
        raise InputError("`pool` or `prompt` must be given. Got neither.")
    if not models:
        raise InputError("`model` must be given. Got none.")
    wrong = [name for name in (*models, args.endpoint_name or "") if not is_storable(name)]
    if wrong:
        raise InputError(f"`model` and `endpoint_name` must be text without NUL. Got {wrong[0]!r}.")
    if args.samples < 1:
        raise InputError(f"`samples` must be 1 or more. Got {args.samples}.")
    return Plan(
        examples=ExampleFile(args.examples),
        prompts=tuple(prompts),
        models=tuple(models),
        endpoint=args.endpoint_name or _base_url(args),
        samples=args.samples,
        soft=args.soft,
        temperature=args.temperature,
        max_tokens=args.max_tokens,
    )


def _base_url(args: argparse.Namespace) -> str:
    from deep.experiments._votes_run import OPENAI_URL
    from deep.llm import check_base_url

    return check_base_url(args.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)


def _settings(args: argparse.Namespace) -> Any:
    from deep.experiments._votes_run import Settings
    from deep.llm import FAILURES, PriceBook, describe_ledger

    base_url = _base_url(args)
    retry = args.retry_failed
    allowed = sorted({*FAILURES, "refused", "truncated", "unparsable"})
    wrong = [name for name in retry if name not in allowed]
    if wrong:
        raise InputError(f"`retry_failed` must be one of {', '.join(allowed)}. Got {wrong[0]!r}.")
    ledger = args.ledger or str(args.out.with_suffix(".ledger.sqlite"))
    options = {**vars(args), "ledger": describe_ledger(ledger), "base_url": base_url, "out": str(args.out)}
    return Settings(
        base_url=base_url,
        key_variable=args.api_key_env,
        ledger=ledger,
        prices=PriceBook.from_file(base_url, args.prices),
        options=options,
        concurrency=args.concurrency,
        rpm=args.rpm,
        tpm=args.tpm,
        budget=args.budget,
        timeout=args.timeout,
        backoff=args.backoff,
        max_attempts=args.max_attempts,
        at_most_once=args.at_most_once,
        retry_failed=tuple(retry),
        batch=args.batch,
        poll=args.poll,
        max_failure_rate=args.max_failure_rate,
    )


def _dry_run(args: argparse.Namespace, plan: Any, settings: Any) -> int:
    from deep.experiments._votes_progress import money
    from deep.llm import History

    exists = "://" in settings.ledger or Path(settings.ledger).is_file()
    history = History(settings.ledger) if exists else None
    estimate = plan.estimate(settings.prices, history, batch=settings.batch)
    if args.json:
        sys.stdout.write(json.dumps({"schema_version": 1, "dry_run": True, **estimate.as_dict()}, indent=2) + "\n")
        return DONE
    output = "no limit" if estimate.output_tokens is None else f"at most {estimate.output_tokens:,}"
    lines = [
        f"{estimate.calls:,} calls to make, {estimate.settled:,} settled already",
        f"{estimate.input_tokens:,} input tokens (about), {output} output tokens",
        f"cost: about {money(estimate.dollars)}, at most {money(estimate.dollars_at_most)}",
    ]
    lines += [f"no price is known for {model}; give one with --prices" for model in sorted(estimate.unpriced_models)]
    sys.stdout.write("\n".join([*lines, "nothing was sent", ""]))
    return DONE


def _print_summary(
    args: argparse.Namespace, outcome: Any, settings: Any, failing: dict[str, float], n_examples: int
) -> None:
    from deep.experiments._votes_summary import summary, summary_text

    written = outcome.stopped is None
    values = summary(outcome, settings, args.out if written else None, failing, n_examples)
    if args.json:
        sys.stdout.write(json.dumps(values, indent=2) + "\n")
    else:
        sys.stdout.write(summary_text(values))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deep votes",
        description="Turn examples into a vote matrix by asking LLMs. Asked again, it asks only what is missing.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    several: Any = {"action": Values, "nargs": "+", "default": []}
    add = parser.add_argument
    add("examples", metavar="EXAMPLES", help="CSV, JSONL or Parquet with the columns source and claim")
    add("--pool", **several, metavar="NAME", help="pools of prompts, or folders of TOML prompts")
    add("--prompt", **several, metavar="ID", help="prompts by id, or TOML files")
    add("--model", **several, metavar="NAME", help="models, as the endpoint names them")
    add("--base-url", metavar="URL", help="an OpenAI-compatible endpoint (default: OPENAI_BASE_URL, or OpenAI)")
    add("--endpoint-name", metavar="NAME", help="its name in the ledger, if its address may change")
    add("--api-key-env", default="OPENAI_API_KEY", metavar="VARIABLE", help="where the key is (default OPENAI_API_KEY)")
    add("--samples", type=int, default=1, metavar="M", help="answers to each question (default 1)")
    add("--soft", action="store_true", help="ask for log-probabilities, for soft votes beside the hard ones")
    add("--temperature", type=float, metavar="T", help="in place of the prompts' own")
    add("--max-tokens", type=int, metavar="N", help="in place of the prompts' own limit of the answer")
    add("--out", type=Path, default=Path("votes.parquet"), metavar="FILE", help="default votes.parquet")
    add("--ledger", metavar="FILE|URL", help="default: OUT with .ledger.sqlite for its ending")
    add("--concurrency", default="auto", metavar="auto|N", help="requests in flight (default auto: 20, then by trial)")
    add("--rpm", type=float, metavar="N", help="requests a minute")
    add("--tpm", type=float, metavar="N", help="tokens a minute")
    add("--budget", type=float, metavar="USD", help="stop before the ledger's total can pass this")
    add("--prices", metavar="FILE", help="TOML of dollars per million tokens, before the published prices")
    add("--dry-run", action="store_true", help="print calls, tokens and cost, and send nothing")
    add("--batch", action="store_true", help="use the Batch API")
    add("--poll", type=float, default=30.0, metavar="S", help="seconds between looks at a batch (default 30)")
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds for one attempt (default 120)")
    add("--max-attempts", type=int, default=10, metavar="N", help="attempts at one request (default 10)")
    add("--backoff", type=float, default=0.5, metavar="S", help="first wait before a retry, then doubled (default 0.5)")
    add("--retry-failed", **several, metavar="CLASS", help="ask again what failed like this")
    add("--at-most-once", action="store_true", help="never repeat a request whose answer may have been lost")
    add("--max-failure-rate", type=float, default=0.05, metavar="SHARE", help="above it the status is 1 (default 0.05)")
    add("--json", action="store_true", help="print a JSON summary and nothing else")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
