"""What the tests of the call layer share: requests, a parser, and a run against a server."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep.integrations.batch import BatchRunner
from deep.llm import (
    Budget,
    Caller,
    Client,
    ConcurrencyLimit,
    Ledger,
    ModelGate,
    PriceBook,
    Reply,
    Request,
    RetryPolicy,
    Runner,
    Tally,
    Terms,
    Throttle,
)
from deep.records import Judgment

KEY = "sk-live-0123456789abcdef"
PRICES = {"tiny": {"input": 1.0, "output": 10.0}}
GATEWAY = "https://gateway.example/v1"
"""Whose prices count: the server itself, on this machine, costs nothing."""

FAST = RetryPolicy(wait_initial=0.01, wait_max=0.05, jitter=0.01)


def question(item: int, *, model: str = "tiny", endpoint: str = "server", **fields: Any) -> Request:
    """Return one request about item number `item`; names of the request's own fields override them."""
    own = {name: fields.pop(name) for name in ("sample", "group", "dataset", "voter") if name in fields}
    text = f"<source>{item} cats sat</source><claim>{item} dogs sat</claim>"
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 50, **fields}
    row = {"prompt": "p", "prompt_hash": "0a", "voter": f"p@0a/{model}", "dataset": "d", "item": str(item)}
    return Request(body=body, endpoint=endpoint, **{**row, **own})


def questions(n: int, **fields: Any) -> Callable[[], Iterator[Request]]:
    """Return a factory of `n` requests."""
    return lambda: (question(i, **fields) for i in range(n))


def read(_: Request, reply: Reply) -> Judgment:
    """Read the verdict at the end of a reply."""
    if reply.refusal:
        return Judgment(-1, reason="refused")
    if reply.finish_reason == "length":
        return Judgment(-1, reason="truncated")
    for label, vote in (("NOT SUPPORTED", 0), ("SUPPORTED", 1)):
        if reply.text.endswith(label):
            return Judgment(vote)
    return Judgment(-1, reason="unparsable")


@dataclass
class Ran:
    """What a run left behind."""

    tally: Tally
    stopped: str | None
    unknown: int
    in_doubt_twice: int


def run(url: str, ledger: Path | str, requests: Callable[[], Iterable[Request]], **options: Any) -> Ran:
    """Run `requests` against a server, and return what came of it."""
    return asyncio.run(_run(url, str(ledger), requests, **options))


async def _run(
    url: str,
    target: str,
    requests: Callable[[], Iterable[Request]],
    *,
    workers: int = 16,
    timeout: float = 5.0,
    retry: RetryPolicy = FAST,
    budget: float | None = None,
    retry_failed: Sequence[str] = (),
    concurrency: ConcurrencyLimit | None = None,
    rpm: float | None = None,
    batch: bool = False,
    key: str | None = KEY,
    parse: Callable[[Request, Reply], Judgment] = read,
    prices: dict[str, Any] | None = None,
    started: Callable[[Any], None] | None = None,
) -> Ran:
    client = Client(url, key, timeout=timeout)
    tally = Tally()
    try:
        async with Ledger(target, at_most_once=retry.at_most_once, retry=retry_failed) as ledger:
            before = await ledger.spent_by_others()
            terms = Terms(
                PriceBook(GATEWAY, PRICES if prices is None else prices),
                concurrency or ConcurrencyLimit(workers, workers, workers),
                Throttle(rpm),
                retry=retry,
                budget=Budget(budget, before),
            )
            gate = ModelGate(await ledger.known_quirks())
            runner: Any
            if batch:
                runner = BatchRunner(ledger, client, parse, terms, gate, tally, endpoint="server", poll=0.02)
            else:
                runner = Runner(Caller(ledger, client, parse, terms, gate, tally), workers=workers)
            if started is not None:
                started(runner)
            await runner.run(requests)
            return Ran(tally, runner.stopped, ledger.unknown, ledger.in_doubt_twice)
    finally:
        await client.close()


def rows(ledger: Path | str, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """Return the rows of a query on a SQLite ledger."""
    with closing(sqlite3.connect(ledger)) as connection:
        return connection.execute(query, values).fetchall()


def states(ledger: Path | str) -> dict[str, int]:
    """Return the number of requests by state."""
    return dict(rows(ledger, "SELECT state, count(*) FROM requests GROUP BY state"))  # type: ignore[arg-type]


def outcomes(ledger: Path | str) -> dict[str, int]:
    """Return the number of attempts by outcome."""
    return dict(rows(ledger, "SELECT outcome, count(*) FROM attempts GROUP BY outcome"))  # type: ignore[arg-type]


def answers(ledger: Path | str) -> dict[str, tuple[Any, ...]]:
    """Return vote and reason of every request by key."""
    return {row[0]: row[1:] for row in rows(ledger, "SELECT key, vote, reason FROM requests WHERE state = 'done'")}
