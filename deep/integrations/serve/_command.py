"""The options of `deep serve`, and its run."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from deep import console, model
from deep._util.options import argument, option
from deep.exceptions import InputError
from deep.integrations.serve import CheckOptions, ServerOptions, create_app, find_token, run_server


@dataclass(frozen=True)
class _Where:
    """Where it is served, and for whom.

    Parameters
    ----------
    host : str, default='127.0.0.1'
        The address to listen at; any but loopback needs a token.
    port : int, default=8000
        0: any that is free.
    token_file : Path, optional
        What clients must send; default: DEEP_TOKEN, or where others can reach the server a new one, printed once.
    allow_name : tuple of str
        Further names by which the server may be called, behind a proxy say.
    mcp : bool, default=False
        Tools for agents at /mcp (Model Context Protocol).
    """

    heading: ClassVar[str] = "where, and for whom"

    host: str = option("127.0.0.1")
    port: int = option(8000, "N")
    token_file: Path | None = option(None, "FILE")
    allow_name: tuple[str, ...] = option((), "NAME")
    mcp: bool = option(False)


@dataclass(frozen=True)
class _Limits:
    """Limits of requests and of what is kept of them.

    Parameters
    ----------
    max_body : int
        Of one request.
    max_pairs : int
        Of one request.
    max_requests : int
        Answered side by side.
    rate : float, optional
        Requests a second from one address.
    read_timeout : float
        Seconds for a request to come.
    cache_bytes : int
        Answers kept for repeated pairs.
    no_text : bool
        Keep no text; judges that ask LLMs are refused.
    """

    heading: ClassVar[str] = "limits"

    max_body: int = option(1 << 22, "BYTES", rare=True)
    max_pairs: int = option(1000, "N", rare=True)
    max_requests: int = option(256, "N", rare=True)
    rate: float | None = option(None, "N")
    read_timeout: float = option(20.0, "S", rare=True)
    cache_bytes: int = option(1 << 23, "N", rare=True)
    no_text: bool = option(False)


add_arguments = console.adder(
    argument("model_file", "MODEL.json", "a model file"),
    "prior",
    *(_Where, _Limits, console.OwnJudges, "decide", "share", "allow-mismatch", "otel", *console.PROMPT_TOPICS),
    prior={"help": "share of consistent texts; default: the training mean"},
)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if len(args.llm) > 1:
        raise InputError(f"`llm` must name one LLM to ask in place of the fitted ones. Got {len(args.llm)}.")
    console.check_one_share(args)
    fitted = console.load_model(args.model_file, args.decide, args.share)
    prior = None if args.prior is None else model.check_prior(args.prior)
    served = CheckOptions(
        score=model.ScoreOptions(args.allow_mismatch, prior=prior),
        finder=console.finder_of(args),
        ask=console.ask_options(args, Path(args.model_file)),
        endpoint=console.endpoint_of(args),
        most_pairs=args.max_pairs,
        cache_bytes=args.cache_bytes,
        no_text=args.no_text,
        model_file=Path(args.model_file),
        mcp=args.mcp,
    )
    server = ServerOptions(
        host=args.host,
        port=args.port,
        token=find_token(args.token_file, args.host),
        names=tuple(args.allow_name),
        largest_body=args.max_body,
        at_once=args.max_requests,
        rate=args.rate,
        read_timeout=args.read_timeout,
    )
    with console.evaluation_events(on=args.otel) as events:
        return run_server(create_app(fitted, replace(served, on_scored=events)), server)
