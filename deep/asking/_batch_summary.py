"""Batch files in words and as JSON: what was written, what came back, and what to do next."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deep._names import check_name
from deep.asking._batch_files import Exported, Imported, export_plan, import_results
from deep.asking._options import AskOptions
from deep.asking._plan import Plan
from deep.asking._progress import ProgressCallback, money
from deep.asking._write import write_votes
from deep.exceptions import InputError
from deep.llm import describe_ledger


def by_files(
    plan: Plan,
    options: AskOptions | None,
    batch_out: Path | None,
    batch_in: Path | None,
    out: Path,
    limits: tuple[int, int],
    progress: ProgressCallback | None = None,
) -> tuple[dict[str, Any], Iterator[str]]:
    """Export a plan, or enter results and write the votes once nothing is missing.

    Returns
    -------
    results : dict
        The account of it, as `--json` prints it.
    lines : iterator of str
        The same for people.
    """
    options = _asking(options)
    if batch_in is None:
        assert batch_out is not None, "one of the two is given"
        results = export_summary(export_plan(plan, options, batch_out, limits, progress), options, batch_out)
        return results, export_lines(results)
    found = import_results(plan, options, batch_in, progress)
    if found.complete:
        write_votes(plan, options, out, found.tally, progress)
    results = import_summary(found, options, out if found.complete else None)
    return results, import_lines(results)


def _asking(options: AskOptions | None) -> AskOptions:
    if options is None:
        raise InputError("`batch_in` and `batch_out` must be given with judges that ask an LLM. Got none.")
    return options


def export_summary(found: Exported, options: AskOptions, folder: Path) -> dict[str, Any]:
    """Return the account of an export, as `--json` prints it."""
    return {
        "schema_version": 1,
        "requests": found.n,
        "shards": [str(path) for path in found.shards],
        "settled_before": found.tally.found,
        "exported_before": found.waiting,
        "released": found.released,
        "stages_follow": found.more_follow,
        "stopped": "budget" if found.stopped else None,
        "folder": str(folder),
        "ledger": describe_ledger(options.ledger),
    }


def export_lines(values: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an export for people."""
    if values["released"]:
        yield (
            f"{values['released']} requests of earlier files were given up on, and are exported again; an answer that "
            "comes after all is entered all the same, and paid besides"
        )
    yield (
        f"{values['requests']} requests in {len(values['shards'])} files in {values['folder']}; nothing was sent, and "
        f"nothing is paid before they are run; {values['settled_before']} settled before"
    )
    if values["exported_before"]:
        yield (
            f"{values['exported_before']} requests are in files of an earlier export, or being asked elsewhere, and "
            "were not exported again; --retry-failed exported gives up on those files"
        )
    if values["stages_follow"]:
        yield "staged judges go on from these answers: after --batch-in, --batch-out exports their next questions"
    if values["stopped"]:
        yield "stopped: the budget has no room for what more requests may cost"
    yield f"results go in with --batch-in FOLDER; ledger: {values['ledger']}"


def import_summary(found: Imported, options: AskOptions, out: Path | None) -> dict[str, Any]:
    """Return the account of an import, as `--json` prints it; `out` is None where no votes were written."""
    tally = found.tally
    names = ("files", "lines", "broken", "repeated", "entered", "before", "waiting", "open", "strange", "complete")
    return {
        "schema_version": 1,
        **{name: getattr(found, name) for name in names},
        "strange_ids": [_printable(name) for name in found.strange_ids],
        "answered": tally.answered,
        "failed": tally.failed,
        "contradictions": tally.contradictions,
        "cost": None if tally.unpriced and not tally.cost else tally.cost,
        "unpriced": tally.unpriced,
        "stopped": None,
        "ledger": describe_ledger(options.ledger),
        "out": None if out is None else str(out),
    }


def import_lines(values: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of an import for people."""
    yield (
        f"{values['entered']} results entered of {values['lines']} in {values['files']} files: {values['answered']} "
        f"answers, {values['failed']} failures; those of {values['before']} requests were entered before"
    )
    yield f"cost of these answers: {money(values['cost'], values['unpriced'])}"
    if values["broken"]:
        yield f"{values['broken']} lines are no result of a request, and were passed over"
    if values["repeated"]:
        yield f"{values['repeated']} results say again what another one says"
    if values["strange"]:
        ids = ", ".join(map(repr, values["strange_ids"]))
        yield f"{values['strange']} ids are of no request of this run, and were left: {ids}"
    if values["contradictions"]:
        yield (
            f"{values['contradictions']} requests have answers that contradict each other: two in the files make no "
            "vote (--retry-failed broken asks again), and the ledger's own stays; all are kept"
        )
    if values["waiting"]:
        yield f"{values['waiting']} requests have not come back: --batch-in again, or --retry-failed exported"
    if values["open"]:
        yield f"{values['open']} requests can be asked now: --batch-out exports them, a run without it asks them"
    yield "no votes were written yet" if values["out"] is None else f"votes: {values['out']}"
    yield f"ledger: {values['ledger']}"


def _printable(name: str) -> str:
    """Return an id from a file as it may be shown: cut, and without what moves a cursor."""
    try:
        return check_name(name[:80], "custom_id")
    except InputError:
        return ascii(name[:40])
