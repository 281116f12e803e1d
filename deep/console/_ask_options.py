"""The options that every command that asks LLMs has in common."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._util.text import check_name
from deep.console._names import CONSTRAINTS
from deep.console._options import SEVERAL, add_material_options, chunk_of, few_shot_of, options_given
from deep.exceptions import InputError

if TYPE_CHECKING:
    from deep.asking import AskOptions, Sampling


def add_call_options(parser: argparse.ArgumentParser) -> None:
    """Add where to ask, how fast, for how much, and where the ledger is; `--llm` may be repeated."""
    add = parser.add_argument
    add("--llm", **SEVERAL, metavar="NAME", help="LLMs, as the endpoint names them")
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


def add_prompt_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of :func:`add_call_options`, how prompts come to a readable answer, and what they show."""
    add_call_options(parser)
    repair = (
        "ask once more where a reply to a prompt is unparsable (default: yes, but not with --batch or --at-most-once, "
    )
    repair += "nor for replies of earlier runs without; --repair: for these too)"
    parser.add_argument("--repair", action=argparse.BooleanOptionalAction, help=repair)
    constrain = (
        "how an answer at once is held to the labels: by a JSON schema (default), by structured_outputs of vLLM "
    )
    constrain += "0.12 or later, or not at all"
    parser.add_argument("--constrain", choices=CONSTRAINTS, default="schema", help=constrain)
    add_material_options(parser)


def add_answer_options(parser: argparse.ArgumentParser) -> None:
    """Add how many answers are asked of a prompt, and how they are drawn."""
    add = parser.add_argument
    add("--samples", type=int, default=1, metavar="M", help="answers to each question")
    add("--soft", action="store_true", help="ask for log-probabilities, for soft votes beside the hard ones")
    add("--temperature", type=float, metavar="T", help="in place of the prompts' own")
    add("--max-tokens", type=int, metavar="N", help="in place of the prompts' own limit of the answer")


def check_nothing_asked(
    args: argparse.Namespace, given: str, *adders: Callable[[argparse.ArgumentParser], None]
) -> None:
    """Raise where an option of asking LLMs is given to a run that asks none.

    Parameters
    ----------
    args : Namespace
    given : str
        Why nothing is asked, for the error: with what, or without.
    *adders : callable
        What added further options of the command that matter to LLMs alone.
    """
    for name in options_given(args, add_prompt_options, *adders):
        raise InputError(f"`{name}` must be given where LLMs are asked. Got it {given}.")


def sampling_of(args: argparse.Namespace, examples: str | None = None) -> "Sampling":
    """Return how prompts are asked; options that the command does not have keep their defaults.

    Parameters
    ----------
    args : Namespace
    examples : str, optional
        Where the texts of labeled examples are, if ``--few-shot`` is a table of votes that does not remember them.
    """
    from deep.asking import Sampling

    given = {name: getattr(args, name, None) for name in Sampling._fields}
    given["repair"] = args.repair is not False
    given |= {"few_shot": few_shot_of(args, examples), "chunk": chunk_of(args)}
    return Sampling(**{name: value for name, value in given.items() if value is not None})


def check_models(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the LLMs, at least one, with names that can be written down."""
    if not args.llm:
        raise InputError("`llm` must be given. Got none.")
    twice = [name for name in args.llm if args.llm.count(name) > 1]
    if twice:
        raise InputError(f"`llm` must name each LLM once. Got {twice[0]!r} twice.")
    for name in args.llm:
        check_name(name, "llm")
    if args.endpoint_name:
        check_name(args.endpoint_name, "endpoint_name")
    return tuple(args.llm)


def endpoint_of(args: argparse.Namespace) -> str:
    """Return the endpoint's name in the ledger."""
    from deep.asking import base_url_from
    from deep.llm import public_url

    return args.endpoint_name or public_url(base_url_from(args.base_url))


def ask_options(args: argparse.Namespace, out: Path) -> "AskOptions":
    """Return how to ask, from the options of :func:`add_call_options`; those not given keep their defaults.

    Parameters
    ----------
    args : Namespace
    out : Path
        The file that the command writes; the ledger lies beside it unless one is given.
    """
    from deep.asking import AskOptions, base_url_from
    from deep.llm import describe_ledger, public_url

    name = out.stem if out.suffix == ".parquet" else out.name
    ledger = args.ledger or str(out.parent / f"{name}.ledger.sqlite")
    record = {name: str(value) if isinstance(value, Path) else value for name, value in vars(args).items()}
    record |= {"ledger": describe_ledger(ledger), "base_url": public_url(base_url_from(args.base_url))}
    given: dict[str, Any] = {field.name: getattr(args, field.name, None) for field in fields(AskOptions)}
    given |= {"ledger": ledger, "record": record}
    return AskOptions(**{name: value for name, value in given.items() if value is not None})
