"""Plans by way of files: requests out as batch shards, results in, and the ledger between them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from deep.asking._options import AskOptions
from deep.asking._plan import Plan
from deep.asking._progress import AskProgress, ProgressCallback
from deep.asking._replay import Replay, read_answer
from deep.exceptions import InputError
from deep.llm import (
    SHARD_BYTES,
    SHARD_REQUESTS,
    BatchExporter,
    BatchImporter,
    Client,
    FileResults,
    History,
    Ledger,
    ModelGate,
    Request,
    Tally,
    Terms,
)

LOOK_EVERY = 500
"""Requests between two calls of a progress callback."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """Requests that were written to batch files.

    Parameters
    ----------
    tally : Tally
        Counts what the ledger has settled.
    shards : tuple of Path
    n : int
        Requests in them.
    waiting : int
        Requests that were in files, or being asked, before.
    released : int
        Requests of earlier files that were given up on.
    stopped : bool
        Whether the budget has no room for the rest.
    more_follow : bool
        Whether staged judges may ask more once they have these answers.
    """

    tally: Tally
    shards: tuple[Path, ...]
    n: int
    waiting: int
    released: int
    stopped: bool
    more_follow: bool


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Results of batch files that were entered in the ledger.

    Parameters
    ----------
    tally : Tally
    files, lines, broken, repeated : int
        Files with results, results in them, lines that are none, and results that come twice.
    entered, before : int
        Requests whose results were entered now, and before.
    waiting, open : int
        Requests that have not come back, and those that can be exported or asked.
    strange : int
        Ids of no request of the plan.
    strange_ids : tuple of str
        The first of them.
    """

    tally: Tally
    files: int
    lines: int
    broken: int
    repeated: int
    entered: int
    before: int
    waiting: int
    open: int
    strange: int
    strange_ids: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every request of the plan is settled."""
        return not (self.waiting or self.open)


def export_plan(
    plan: Plan,
    options: AskOptions,
    folder: Path,
    limits: tuple[int, int] = (SHARD_REQUESTS, SHARD_BYTES),
    progress: ProgressCallback | None = None,
) -> Exported:
    """Write the requests that the ledger lacks to OpenAI batch files, one LLM a file, those of a document together.

    Nothing is sent. The ledger holds the requests as sent, so that no run asks them too.

    Parameters
    ----------
    plan : Plan
    options : AskOptions
        With the class ``exported`` in `retry_failed`, requests of earlier files are given up on first.
    folder : Path
        Made where there is none; files that are there stay.
    limits : (int, int)
        The most requests and the most bytes of one file; a request larger than that has a file of its own.
    progress : callable, optional

    Raises
    ------
    InputError
        A limit is below 1, or the folder cannot be written to.
    """
    if min(limits) < 1:
        raise InputError(f"`limits` must be 1 or more each. Got {limits!r}.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"`batch_out` must be a folder. Got the file {str(folder)!r}.")
    return asyncio.run(_export(plan, replace(options, batch=True), folder, limits, progress))


def import_results(plan: Plan, options: AskOptions, folder: Path, progress: ProgressCallback | None = None) -> Imported:
    """Enter the results in the JSONL files of a folder: some or all, in any order, and as often as wanted.

    Parameters
    ----------
    plan : Plan
        The one whose requests were exported; results of other requests are counted and left.
    options : AskOptions
    folder : Path
    progress : callable, optional

    Raises
    ------
    InputError
        There is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"`batch_in` must be a folder of results. Got {str(folder)!r}, which is none.")
    return asyncio.run(_import(plan, replace(options, batch=True), folder, progress))


class _Desk(NamedTuple):
    """The parts of a run that asks nobody."""

    ledger: Ledger
    client: Client
    terms: Terms
    gate: ModelGate
    tally: Tally
    replay: Replay


@asynccontextmanager
async def _desk(plan: Plan, options: AskOptions) -> AsyncIterator[_Desk]:
    client = Client(options.base_url, os.environ.get(options.api_key_env, "").strip() or None)
    once, retry = options.at_most_once, options.retry_failed
    try:
        async with Ledger(options.ledger, options=options.record, at_most_once=once, retry=retry) as ledger:
            terms = options.terms(0.0 if options.budget is None else await ledger.spent_by_others())
            gate = ModelGate(await ledger.known_quirks())
            with History(options.ledger) as history:
                replay = Replay(plan.programs, plan.endpoint, history, run=ledger.run, at_most_once=once, retry=retry)
                tally = Tally(None if plan.staged else plan.n_requests)
                yield _Desk(ledger, client, terms, gate, tally, replay)
    finally:
        await client.close()


async def _export(
    plan: Plan, options: AskOptions, folder: Path, limits: tuple[int, int], progress: ProgressCallback | None
) -> Exported:
    async with _desk(plan, options) as desk:
        ledger, client, terms, gate, tally, replay = desk
        released = await ledger.release_exports(plan.endpoint) if "exported" in options.retry_failed else 0
        exporter = BatchExporter(ledger, client, read_answer, terms, gate, tally, plan.endpoint, folder, *limits)
        await exporter.run(_watched(chain(plan.requests(), replay.requests()), tally, progress))
        return Exported(
            tally=tally,
            shards=tuple(exporter.shards),
            n=exporter.exported,
            waiting=exporter.waiting,
            released=released,
            stopped=exporter.stopped,
            more_follow=bool(replay.n_open),
        )


async def _import(plan: Plan, options: AskOptions, folder: Path, progress: ProgressCallback | None) -> Imported:
    async with _desk(plan, options) as desk:
        ledger, client, terms, gate, tally, replay = desk
        with FileResults(folder, client.redact) as results:
            importer = BatchImporter(ledger, client, read_answer, terms, gate, tally, results)
            await importer.run(_watched(plan.requests(), tally, progress))
            await _stages(importer, lambda: _watched(replay.requests(), tally, progress), replay)
            strange, first = results.strange()
            tally.lines_passed_over = results.broken + strange
            return Imported(
                tally=tally,
                **{name: getattr(results, name) for name in ("files", "lines", "broken", "repeated")},
                **{name: getattr(importer, name) for name in ("entered", "before", "waiting", "open")},
                strange=strange,
                strange_ids=tuple(first),
            )


async def _stages(importer: BatchImporter, requests: Callable[[], Iterator[Request]], replay: Replay) -> None:
    """Enter the results of programs, whose answers lead to more questions, until no more are found."""
    waiting, open_ = importer.waiting, importer.open
    entered = -1
    while importer.entered > entered:
        entered, replay.n_open = importer.entered, 0
        importer.waiting, importer.open = waiting, open_
        await importer.run(requests())


def _watched(requests: Iterable[Request], tally: Tally, progress: ProgressCallback | None) -> Iterator[Request]:
    """Yield requests, and tell now and then how far they have come."""
    for number, request in enumerate(requests):
        if progress is not None and number % LOOK_EVERY == 0:
            progress(AskProgress(tally))
        yield request
