"""The options of `deep serve`, and its run."""

import argparse
from dataclasses import replace
from pathlib import Path

from deep import console, model
from deep._util.options import argument, topic_values
from deep.exceptions import InputError
from deep.integrations.serve import CheckOptions, ServerOptions, create_app, find_token, run_server

add_arguments = console.adder(
    argument("model_file", "MODEL.json", "a model file"),
    "prior",
    *(
        ServerOptions,
        CheckOptions,
        console.OwnJudges,
        "decide",
        "share",
        "allow-mismatch",
        "otel",
        *console.PROMPT_TOPICS,
    ),
    argument(
        "token_file",
        "FILE",
        "file of the token that clients must send; default: DEEP_TOKEN, or a new token if others can reach the server",
        flags=["--token-file"],
        type=Path,
    ),
    prior={"help": "share of consistent texts; default: the training mean"},
)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if len(args.llm) > 1:
        raise InputError(
            f"`llm` must name one LLM to ask in place of the fitted ones. Got {len(args.llm)}. Leave it out to ask the "
            "LLMs of the model."
        )
    console.check_one_share(args)
    fitted = console.load_model(args.model_file, args.decide, args.share)
    prior = None if args.prior is None else model.check_prior(args.prior)
    served = CheckOptions(
        **topic_values(CheckOptions, args),
        score=model.ScoreOptions(args.allow_mismatch, prior=prior),
        finder=console.finder_of(args),
        ask=console.ask_options(args, Path(args.model_file)),
        endpoint=console.endpoint_of(args),
        model_file=Path(args.model_file),
    )
    server = ServerOptions(**topic_values(ServerOptions, args), token=find_token(args.token_file, args.host))
    with console.evaluation_events(on=args.otel) as events:
        return run_server(create_app(fitted, replace(served, on_scored=events)), server)
