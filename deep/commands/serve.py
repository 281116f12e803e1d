"""Serve a model over HTTP: POST a source and a claim to /v1/check, get P(consistent) and each judge's vote.

For instance:

  deep serve model.json
      at http://127.0.0.1:8000, for programs of this machine alone
  curl localhost:8000/v1/check -H 'Content-Type: application/json' -d '{"source": "It rained.", "claim": "It was dry."}'
      one pair; a list of pairs gives a list of results
  deep serve model.json --host 0.0.0.0 --token-file token.txt
      for other machines, which must send the token
"""

import argparse

from deep import model
from deep.console import CommandParser, add_otel, evaluation_events
from deep.serve import CheckOptions, ServerOptions, create_app, run_server


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("model_file", metavar="MODEL.json", help="a model file")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at; any but loopback needs a token")
    parser.add_argument("--port", type=int, default=8000, metavar="N", help="0: any that is free")
    add_otel(parser)


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    fitted = model.load(args.model_file)
    with evaluation_events(on=args.otel) as events:
        app = create_app(fitted, CheckOptions(on_scored=events))
        return run_server(app, ServerOptions(host=args.host, port=args.port))
