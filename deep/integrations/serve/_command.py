"""The options of `deep serve`, and its run."""

import argparse
from dataclasses import replace
from pathlib import Path

from deep import console, model
from deep.exceptions import InputError
from deep.integrations.serve import CheckOptions, ServerOptions, create_app, find_token, run_server


def add_arguments(parser: console.CommandParser) -> None:
    """Add the options."""
    parser.add_argument("model_file", metavar="MODEL.json", help="a model file")
    where = parser.add_argument_group("where, and for whom")
    where.add_argument("--host", default="127.0.0.1", help="the address to listen at; any but loopback needs a token")
    where.add_argument("--port", type=int, default=8000, metavar="N", help="0: any that is free")
    token = "what clients must send; default: DEEP_TOKEN, or where others can reach the server a new one, printed once"
    where.add_argument("--token-file", type=Path, metavar="FILE", help=token)
    names = "further names by which the server may be called, behind a proxy say"
    where.add_argument("--allow-name", **console.SEVERAL, metavar="NAME", help=names)
    where.add_argument("--mcp", action="store_true", help="tools for agents at /mcp (Model Context Protocol)")
    limits = parser.add_argument_group("limits")
    limits.add_argument("--max-body", type=int, default=1 << 22, metavar="BYTES", help="of one request")
    limits.add_argument("--max-pairs", type=int, default=1000, metavar="N", help="of one request")
    limits.add_argument("--max-requests", type=int, default=256, metavar="N", help="answered side by side")
    limits.add_argument("--rate", type=float, metavar="N", help="requests a second from one address")
    limits.add_argument("--read-timeout", type=float, default=20.0, metavar="S", help="seconds for a request to come")
    limits.add_argument("--cache-bytes", type=int, default=1 << 23, metavar="N", help="answers kept for repeated pairs")
    limits.add_argument("--no-text", action="store_true", help="keep no text; judges that ask LLMs are refused")
    parser.add_argument(
        "--prior", type=float, metavar="P", help="share of consistent texts; default: the training mean"
    )
    console.add_own_judges(parser)
    console.add_options(parser, "decide", "share", "allow-mismatch")
    console.add_prompt_options(parser)
    console.add_otel(parser)


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
