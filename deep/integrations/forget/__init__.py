"""Delete what a ledger holds about some items: prompts, replies and votes, as a customer may ask.

For instance:

  deep data forget votes.ledger.sqlite --item 'customer-17-*' --dry-run
      count the requests; nothing is deleted
  deep data forget votes.ledger.sqlite --item 'customer-17-*'
      delete them; if the items are in a file that you ask about again, they are asked and paid for again
"""

import argparse
import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import MISSING, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import sqlalchemy as sa

from deep import console
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError
from deep.llm import History, Ledger, describe_ledger, schema

# Keys that one statement names: SQLite takes no more than 32,766 values, older ones 999.
AT_ONCE = 500


@dataclass(frozen=True)
class _ForgetArgs:
    """Options of the command.

    Parameters
    ----------
    ledger : str
        A ledger file or a postgresql+psycopg:// URL.
    item : tuple of str
        item_ids, or patterns of them such as 'customer-17-*'.
    dataset : str, optional
        Only items of this dataset.
    dry_run : bool
        Count, and delete nothing.
    """

    ledger: str = option(MISSING, "LEDGER", flags=["ledger"])
    item: tuple[str, ...] = option(MISSING, "ID", nargs="+")
    dataset: str | None = option(None, "NAME")
    dry_run: bool = option(False)


add_arguments = console.adder(_ForgetArgs)


def run(args: argparse.Namespace) -> int:
    """Find the requests, delete them and report."""
    name = describe_ledger(args.ledger)
    with History(args.ledger) as history:
        items, keys = _requests(history, args.item, args.dataset)
        # Requests that no item has any more: its text was changed, and asked about again.
        is_orphan = schema.requests.c.key.not_in(sa.select(schema.items.c.key))
        texts = {row["key"] for row in history.select(sa.select(schema.requests.c.key).where(is_orphan))}
    if not items:
        patterns = ", ".join(map(repr, args.item))
        raise InputError(f"`item` must match items of the ledger. Got {patterns}, and none of {name!r} is named so.")
    keys |= texts
    if not args.dry_run:
        asyncio.run(_delete(args.ledger, keys))
        if not _is_url(args.ledger):
            with closing(sqlite3.connect(args.ledger)) as connection:  # what is deleted stays in free pages until then
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    beside = [] if _is_url(args.ledger) else sorted(str(path) for path in _others(Path(args.ledger)))
    done = "would be deleted" if args.dry_run else "deleted"
    lines = [f"{len(items):,} items, {len(keys):,} requests {done}: {name}"]
    if texts:
        lines.append(f"Of these requests {len(texts):,} held earlier texts of items; whose, the ledger does not say.")
    lines.append(f"Delete these too, or make them anew: {', '.join([*beside, 'reports', 'your examples'])}")
    results = {"items": len(items), "requests": len(keys), "deleted": not args.dry_run, "beside": beside}
    console.print_result(console.SCHEMA | results, lines, as_json=args.json)
    return ExitStatus.DONE


def _is_url(ledger: str) -> bool:
    return "://" in ledger


def _requests(
    history: History, patterns: tuple[str, ...], dataset: str | None
) -> tuple[set[tuple[str, str]], set[str]]:
    """Return the items that match, and the keys of the requests about them."""
    item = schema.items.c
    items, keys = set(), set()
    for row in history.select(sa.select(item.dataset, item.item, item.key)):
        # A window of a long source is called ITEM#1.
        names = {row["item"], row["item"].rpartition("#")[0]} - {""}
        same = dataset is None or row["dataset"] == dataset
        if same and any(fnmatchcase(one, pattern) for one in names for pattern in patterns):
            items.add((row["dataset"], row["item"]))
            keys.add(row["key"])
    return items, keys


async def _delete(target: str, keys: set[str]) -> None:
    """Delete requests with their attempts and items, while no other run writes to a file."""

    def delete(connection: sa.Connection) -> None:
        every = sorted(keys)
        for at in range(0, len(every), AT_ONCE):
            for table in (schema.items, schema.attempts, schema.requests):
                connection.execute(sa.delete(table).where(table.c.key.in_(every[at : at + AT_ONCE])))

    async with Ledger(target, options={"forget": len(keys)}) as ledger:
        await ledger.call(delete)


def _others(ledger: Path) -> Iterator[Path]:
    """Yield the files beside a ledger that may hold the texts too: rationales, and what was set aside of the ledger."""
    yield from ledger.parent.glob(f"{ledger.name}*.aside*")
    yield from ledger.parent.glob(f"{ledger.name}.kept-*")
    yield from ledger.parent.glob(f"{ledger.name.partition('.')[0]}.judgments.parquet")
