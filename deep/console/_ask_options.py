"""The options that every command that asks LLMs has in common."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._text import is_storable
from deep.console._options import SEVERAL
from deep.exceptions import InputError

if TYPE_CHECKING:
    from deep.asking import Settings

__all__ = ["add_call_options", "call_settings", "check_models", "endpoint_of"]


def add_call_options(parser: argparse.ArgumentParser) -> None:
    """Add where to ask, how fast, for how much, and where the ledger is; `--model` may be repeated."""
    add = parser.add_argument
    add("--model", **SEVERAL, metavar="NAME", help="models, as the endpoint names them")
    add("--base-url", metavar="URL", help="an OpenAI-compatible endpoint (default: OPENAI_BASE_URL, or OpenAI)")
    add("--endpoint-name", metavar="NAME", help="its name in the ledger, if its address may change")
    add("--api-key-env", default="OPENAI_API_KEY", metavar="VARIABLE", help="where the key is (default OPENAI_API_KEY)")
    add("--ledger", metavar="FILE|URL", help="default: OUT with .ledger.sqlite for its ending")
    add("--concurrency", default="auto", metavar="auto|N", help="requests in flight (default auto: 20, then by trial)")
    add("--rpm", type=float, metavar="N", help="requests a minute")
    add("--tpm", type=float, metavar="N", help="tokens a minute")
    add("--budget", type=float, metavar="USD", help="stop before the ledger's total can pass this")
    add("--prices", metavar="FILE", help="TOML of dollars per million tokens, before the published prices")
    add("--batch", action="store_true", help="use the Batch API")
    add("--poll", type=float, default=30.0, metavar="S", help="seconds between looks at a batch (default 30)")
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds for one attempt (default 120)")
    add("--max-attempts", type=int, default=10, metavar="N", help="attempts at one request (default 10)")
    add("--backoff", type=float, default=0.5, metavar="S", help="first wait before a retry, then doubled (default 0.5)")
    add("--retry-failed", **SEVERAL, metavar="CLASS", help="ask again what failed like this")
    add("--at-most-once", action="store_true", help="never repeat a request whose answer may have been lost")


def check_models(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the models, at least one, with names that can be written down."""
    if not args.model:
        raise InputError("`model` must be given. Got none.")
    twice = [name for name in args.model if args.model.count(name) > 1]
    if twice:
        raise InputError(f"`model` must name each model once. Got {twice[0]!r} twice.")
    wrong = [name for name in (*args.model, args.endpoint_name or "") if not is_storable(name)]
    if wrong:
        raise InputError(f"`model` and `endpoint_name` must be text without NUL. Got {wrong[0]!r}.")
    return tuple(args.model)


def base_url_of(args: argparse.Namespace) -> str:
    """Return the address to ask at."""
    from deep.asking import OPENAI_URL
    from deep.llm import check_base_url

    return check_base_url(args.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)


def endpoint_of(args: argparse.Namespace) -> str:
    """Return the endpoint's name in the ledger."""
    return args.endpoint_name or base_url_of(args)


def call_settings(args: argparse.Namespace, out: Path, **more: Any) -> "Settings":
    """Return how to ask.

    Parameters
    ----------
    args : Namespace
        With the options of :func:`add_call_options`.
    out : Path
        What the command writes; the ledger lies beside it unless one is given.
    **more : object
        Other fields of :class:`Settings`.
    """
    from deep.asking import Settings
    from deep.llm import FAILURES, PriceBook, describe_ledger

    base_url = base_url_of(args)
    allowed = sorted({*FAILURES, "refused", "truncated", "unparsable"})
    wrong = [name for name in args.retry_failed if name not in allowed]
    if wrong:
        raise InputError(f"`retry_failed` must be one of {', '.join(allowed)}. Got {wrong[0]!r}.")
    name = out.stem if out.suffix == ".parquet" else out.name
    ledger = args.ledger or str(out.with_name(f"{name}.ledger.sqlite"))
    options = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    return Settings(
        base_url=base_url,
        key_variable=args.api_key_env,
        ledger=ledger,
        prices=PriceBook.from_file(base_url, args.prices),
        options={**options, "ledger": describe_ledger(ledger), "base_url": base_url},
        concurrency=args.concurrency,
        rpm=args.rpm,
        tpm=args.tpm,
        budget=args.budget,
        timeout=args.timeout,
        backoff=args.backoff,
        max_attempts=args.max_attempts,
        at_most_once=args.at_most_once,
        retry_failed=tuple(args.retry_failed),
        batch=args.batch,
        poll=args.poll,
        **more,
    )
