"""A model of lexical checks, one of a judge that asks an LLM, and texts, for the tests of all integrations."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from deep import Example, ask
from deep.asking import AskOptions, TextScorer
from deep.features.lexical import LEXICAL
from deep.model import Model, fit
from deep.prompt_pool import PromptJudge, load_prompt
from deep.records import VoteMatrix
from tests.model.fitted import QUICK, small_votes

ROOT = Path(__file__).resolve().parents[3]
QUIET = "It was a calm day."
"""A claim without a number, of which the judge of numbers says nothing."""


@cache
def texts() -> tuple[Example, ...]:
    """Return the weather of examples/claims.csv."""
    with (ROOT / "examples" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "weather"]
    return tuple(Example(row["source"], row["claim"], row["example_id"], int(row["label"]), "weather") for row in rows)


def model_of(*names: str) -> Model:
    """Return a small model whose voters have these names."""
    votes = small_votes(n_voters=len(names))
    named = VoteMatrix(votes.votes, votes.item_ids, names, votes.datasets, votes.labels)
    return fit(named, **(QUICK | {"sizes": [len(names)]}))


@cache
def lexical_model() -> Model:
    """Return a model of all lexical checks, fitted on the weather."""
    return fit(ask(texts(), "lexical"))


def numbers_model() -> Model:
    """Return a model of two checks that often have nothing to say: numbers and quotations."""
    return model_of(LEXICAL["numbers"]().voter(), LEXICAL["quotes"]().voter())


def asking_scorer(url: str, ledger: Path) -> TextScorer:
    """Return a scorer with a judge that asks the LLM ``tiny`` at an address, and gives up after one attempt."""
    strict = PromptJudge(load_prompt("deep-strict-steps")).voter("tiny")
    options = AskOptions(ledger=str(ledger), base_url=url, max_attempts=1, backoff=0.0)
    return TextScorer(model_of(strict, LEXICAL["numbers"]().voter()), options)


@contextmanager
def collecting(
    handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1", **more: object
) -> Iterator[ThreadingHTTPServer]:
    """Serve on loopback, and yield the server: its ``seen`` is for what the handler keeps."""
    with ThreadingHTTPServer((host, 0), handler) as server:
        vars(server).update(more, seen=[])
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(300)
