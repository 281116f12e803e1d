"""The Batch API, and batch files that other engines run: requests that are answered hours later, in the same ledger."""

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from deep import console, llm
from deep._util.names import check_name
from deep.asking import (
    AskOptions,
    AskProgress,
    Engine,
    Plan,
    ProgressCallback,
    Replay,
    check_outputs,
    read_answer,
    run_plan,
    usd_text,
    write_votes,
)
from deep.exceptions import ExitStatus, InputError
from deep.integrations.batch._api import BatchRunner as BatchRunner
from deep.integrations.batch._files import SHARD_BYTES as SHARD_BYTES
from deep.integrations.batch._files import SHARD_REQUESTS as SHARD_REQUESTS
from deep.integrations.batch._files import BatchExporter as BatchExporter
from deep.integrations.batch._files import BatchImporter as BatchImporter
from deep.integrations.batch._results import FileResults as FileResults

# Requests between two calls of a progress callback.
LOOK_EVERY = 500


# What came of an export or an import, as ``--json`` prints it.
Account = dict[str, Any]


def export_plan(
    plan: Plan,
    options: AskOptions,
    folder: Path,
    limits: tuple[int, int] = (SHARD_REQUESTS, SHARD_BYTES),
    progress: ProgressCallback | None = None,
) -> Account:
    """Write the requests that the ledger lacks to OpenAI batch files, one LLM a file, those of a document together.

    Nothing is sent. The ledger holds the requests as sent, so that no run asks them too.

    Parameters
    ----------
    plan : Plan
        The requests are those that ``deep ask`` would send for it.
    options : AskOptions
        With the class ``exported`` in `retry_failed`, requests of earlier files are given up on first.
    folder : Path
        Made where there is none; files that are there stay.
    limits : (int, int)
        The most requests and the most bytes of one file; a request larger than that has a file of its own.
    progress : callable, optional
        Called with an :class:`deep.asking.AskProgress` at every 500th request.

    Returns
    -------
    dict
        JSON values: the requests written and their `shards`; those settled or exported before, and those `released`;
        whether staged judges may ask more once they have these answers; why it `stopped`.

    Raises
    ------
    InputError
        A limit is below 1, or the folder cannot be written to.
    """
    if min(limits) < 1:
        raise InputError(f"`limits` must be 1 or more each. Got {limits!r}.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"`batch_out` must be a folder. Got the file {str(folder)!r}.")
    return asyncio.run(_export(plan, plan.with_providers(replace(options, batch=True)), folder, limits, progress))


def import_results(
    plan: Plan, options: AskOptions, folder: Path, progress: ProgressCallback | None = None
) -> tuple[Account, llm.Tally]:
    """Enter the results in the JSONL files of a folder: some or all, in any order, and as often as wanted.

    Parameters
    ----------
    plan : Plan
        The one whose requests were exported; results of other requests are counted and left.
    options : AskOptions
        Ledger, endpoint, prices and `retry_failed`; nothing is asked.
    folder : Path
        Looked through, with all folders in it, for ``.jsonl`` files of results.
    progress : callable, optional
        Called with an :class:`deep.asking.AskProgress` at every 500th request.

    Returns
    -------
    account : dict
        JSON values: `files` with results, `lines` in them, those that are `broken` or `repeated`; requests whose
        results were `entered` now or `before`, that are `waiting` in files or `open` to be asked; ids that are
        `strange`; whether all is `complete`.
    tally : Tally

    Raises
    ------
    InputError
        There is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"`batch_in` must be a folder of results. Got {str(folder)!r}, which is none.")
    return asyncio.run(_import(plan, plan.with_providers(replace(options, batch=True)), folder, progress))


@asynccontextmanager
async def _session(plan: Plan, options: AskOptions) -> AsyncIterator[tuple[llm.Caller, llm.Client, llm.Tally, Replay]]:
    """Yield the parts of a run that asks nobody; its caller has no client of its own."""
    client = llm.Client(options.base_url, os.environ.get(options.api_key_env, "").strip() or None)
    once, retry = options.at_most_once, options.retry_failed
    tally = llm.Tally(None if plan.staged else plan.n_requests)
    try:
        async with Engine.opened(options, tally, asks=False) as engine:
            caller, history, run = engine.caller, engine.history, engine.caller.ledger.run
            replay = Replay(plan.programs, plan.endpoint, history, run=run, at_most_once=once, retry=retry)
            yield caller, client, tally, replay
    finally:
        await client.close()


async def _export(
    plan: Plan, options: AskOptions, folder: Path, limits: tuple[int, int], progress: ProgressCallback | None
) -> Account:
    """Write the batch files, and return the counts."""
    async with _session(plan, options) as (caller, client, tally, replay):
        give_up = "exported" in options.retry_failed
        released = await caller.ledger.call(llm.release_exports, plan.endpoint) if give_up else 0
        session = caller.ledger, client, read_answer, caller.terms, caller.gate, tally
        exporter = BatchExporter(*session, plan.endpoint, folder, *limits)
        await exporter.run(_report_progress(chain(plan.requests(), replay.requests()), tally, progress))
        return {
            "schema_version": 1,
            "requests": exporter.exported,
            "shards": [str(path) for path in exporter.shards],
            "settled_before": tally.found,
            "exported_before": exporter.waiting,
            "released": released,
            "stages_follow": bool(replay.n_open),
            "stopped": "budget" if exporter.stopped else None,
            "folder": str(folder),
            "endpoint": options.public_url,
            "ledger": llm.describe_ledger(options.ledger),
        }


async def _import(
    plan: Plan, options: AskOptions, folder: Path, progress: ProgressCallback | None
) -> tuple[Account, llm.Tally]:
    """Enter the results in the files, and return the counts and the tally."""
    async with _session(plan, options) as (caller, client, tally, replay):
        with FileResults(folder, client.redact) as results:
            session = caller.ledger, client, read_answer, caller.terms, caller.gate, tally
            importer = BatchImporter(*session, results)
            await importer.run(_report_progress(plan.requests(), tally, progress))
            await _stages(importer, lambda: _report_progress(replay.requests(), tally, progress), replay)
            strange, first = results.unknown_ids()
            tally.lines_passed_over = results.broken + strange
            account = {
                "schema_version": 1,
                **{name: getattr(results, name) for name in ("files", "lines", "broken", "repeated")},
                **{name: getattr(importer, name) for name in ("entered", "before", "waiting", "open")},
                "strange": strange,
                "complete": not (importer.waiting or importer.open),
                "strange_ids": list(map(_printable, first)),
                "answered": tally.answered,
                "failed": tally.failed,
                "contradictions": tally.contradictions,
                "cost": None if tally.unpriced and not tally.cost else tally.cost,
                "unpriced": tally.unpriced,
                "stopped": None,
                "ledger": llm.describe_ledger(options.ledger),
            }
            return account, tally


async def _stages(importer: BatchImporter, requests: Callable[[], Iterator[llm.Request]], replay: Replay) -> None:
    """Enter the results of programs, whose answers lead to more questions, until no more are found."""
    waiting, open_ = importer.waiting, importer.open
    entered = -1
    while importer.entered > entered:
        entered, replay.n_open = importer.entered, 0
        importer.waiting, importer.open = waiting, open_
        await importer.run(requests())


def _report_progress(
    requests: Iterable[llm.Request], tally: llm.Tally, progress: ProgressCallback | None
) -> Iterator[llm.Request]:
    """Yield requests, and tell now and then how far they have come."""
    for number, request in enumerate(requests):
        if progress is not None and number % LOOK_EVERY == 0:
            progress(AskProgress(tally))
        yield request


SHARD_MB = SHARD_BYTES / 1024**2


def check_file_options(args: argparse.Namespace) -> tuple[int, int]:
    """Return the most requests and bytes of a batch file, once the options of `deep ask` make sense together.

    Raises
    ------
    InputError
        They do not.
    """
    if args.batch_out is not None and args.batch_in is not None:
        raise InputError("`batch_in` and `batch_out` must be given one at a time. Got both. Enter results first.")
    files = args.batch_out is not None or args.batch_in is not None
    other = next((name for name in ("batch", "dry_run") if getattr(args, name)), None)
    if files and other is not None:
        raise InputError(f"`{other}` must not be given with batch files. Got both. Leave one out.")
    limits = {"shard_requests": SHARD_REQUESTS, "shard_mb": SHARD_MB}
    own = {name: getattr(args, name) for name in limits if getattr(args, name) is not None}
    if own and args.batch_out is None:
        raise InputError(f"`{next(iter(own))}` must be given with `batch_out`. Got it without.")
    requests, mebibytes = (own.get(name, limit) for name, limit in limits.items())
    if not (requests >= 1 and 0 < mebibytes < 1e6):
        raise InputError(f"`shard_requests` and `shard_mb` must be above 0. Got {requests!r} and {mebibytes!r}.")
    return int(requests), max(int(mebibytes * 1024**2), 1)


def votes_by_files(args: argparse.Namespace, plan: Plan, options: AskOptions | None) -> int:
    """Export the plan of `deep ask`, or enter results and write the votes once nothing is missing."""
    limits, out = check_file_options(args), check_outputs(args.out, plan.voters)
    if options is None:
        raise InputError("`batch_in` and `batch_out` must be given with judges that ask an LLM. Got none.")
    with console.live_progress() as progress:
        if args.batch_in is None:
            results = export_plan(plan, options, args.batch_out, limits, progress)
            lines = _export_lines(results)
        else:
            results, tally = import_results(plan, options, args.batch_in, progress)
            if results["complete"]:
                calls = replace(plan, columns=tuple(column for column in plan.columns if column.caller))
                stopped = run_plan(calls, options if calls.columns else None, progress).stopped
                write_votes(plan, options, out, tally, progress, stopped=stopped)
            results["out"] = str(out) if results["complete"] else None
            lines = _import_lines(results)
    console.print_result(results, lines, as_json=args.json)
    return ExitStatus.of_stop(results["stopped"])


def _export_lines(values: Account) -> Iterator[str]:
    """Yield the lines of an export for people."""
    if values["released"]:
        yield (
            f"{values['released']} requests of earlier files were given up and are exported again. A late answer "
            "still counts, and is paid too."
        )
    yield (
        f"{values['requests']} requests in {len(values['shards'])} files in {values['folder']}; nothing was sent, "
        f"and nothing is paid until they run; {values['settled_before']} settled before"
    )
    if values["exported_before"]:
        yield (
            f"{values['exported_before']} requests are in earlier exports or asked elsewhere, and were not exported "
            "again. To give up those files: --retry-failed exported"
        )
    if values["stages_follow"]:
        yield "staged judges need these answers first: after --batch-in, --batch-out exports their next questions"
    if values["stopped"]:
        yield "stopped: the budget does not cover more requests"
    yield f"they are for {values['endpoint']} (change: --base-url); give the same address with --batch-in FOLDER"
    yield (
        "if many replies are unparsable, run the same command without batch files and with --repair; ledger: "
        f"{values['ledger']}"
    )


def _import_lines(values: Account) -> Iterator[str]:
    """Yield the lines of an import for people."""
    yield (
        f"{values['entered']} results entered of {values['lines']} in {values['files']} files: {values['answered']} "
        f"answers, {values['failed']} failures; {values['before']} requests were entered before"
    )
    yield f"cost of these answers: {usd_text(values['cost'], values['unpriced'])}"
    if values["broken"]:
        yield f"{values['broken']} lines match no request and were skipped"
    if values["repeated"]:
        yield f"{values['repeated']} results repeat another one"
    if values["strange"]:
        ids = ", ".join(map(repr, values["strange_ids"]))
        yield f"{values['strange']} ids match no request of this run and were ignored: {ids}"
    if values["contradictions"]:
        yield (
            f"{values['contradictions']} requests have contradictory answers. Two answers in the files give no vote "
            "(--retry-failed broken asks again); an answer in the ledger is kept."
        )
    if values["waiting"]:
        yield f"{values['waiting']} requests have no result yet: use --batch-in again, or --retry-failed exported"
    if values["open"]:
        yield f"{values['open']} requests can be asked now: --batch-out exports them; a run without it asks them"
    yield "no votes were written yet" if values["out"] is None else f"votes: {values['out']}"
    yield f"ledger: {values['ledger']}"


def _printable(name: str) -> str:
    """Return an id from a file as it may be shown: cut, and without what moves a cursor."""
    try:
        return check_name(name[:80], "custom_id")
    except InputError:
        return ascii(name[:40])
