"""Compare the results of two runs, number by number, to see that a change of the code changed nothing.

    python benchmarks/compare_runs.py OLD NEW [--tolerance 1e-12] [--skip GLOB ...]

OLD and NEW are folders that the same commands wrote into, for instance::

    git worktree add ../before main
    (cd ../before && PYTHONPATH=. python -m deep loo --test all --out "$OLDPWD/runs/old/loo")
    PYTHONPATH=. python -m deep loo --test all --out runs/new/loo
    python benchmarks/compare_runs.py runs/old runs/new

Every file is read as what it holds: JSON and JSON lines by key path, CSV and Parquet cell by cell (of Parquet the types
and deep's metadata too), ledgers row by row, other text line by line, anything else byte by byte. Numbers may differ by
the tolerance, above 1 in proportion to the old one, in text too; whole numbers and all else must be equal. What cannot
be the same in two runs is passed over: `IGNORED_KEYS` as a key or a column, `IGNORED_COLUMNS` in a ledger, and
`IGNORED_TEXT` inside text. One line a difference says file, place, old and new. The status is 0 where nothing differs,
1 where something does, 2 where there is nothing to compare.
"""

import argparse
import csv
import hashlib
import json
import math
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from fnmatch import fnmatch
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SHOWN = 20
"""Differences of one file that are printed."""

IGNORED_KEYS = {
    "base_url": "a test server has another port each time",
    "checksum": "of a model file, over its date",
    "created": "when a model was fitted",
    "seconds": "how long something took",
    "seconds_median": "the same",
    "seconds_p95": "the same",
    "versions": "the libraries installed, in a model file",
}
"""Keys of JSON and columns of tables that are passed over, with all below them, and why."""

IGNORED_COLUMNS = {
    "attempts": {"started", "seconds"},
    "batches": {"id", "created"},
    "quirks": {"noticed"},
    "requests": {"queued", "finished", "batch"},
    "runs": {"started", "ended", "options"},
}
"""Columns of a ledger's tables that are passed over: times, random names of batches, and how a command was called."""

IGNORED_TEXT = {
    r"(?<=127\.0\.0\.1:)\d+": "the port of a test server",
    r"\b\d+(\.\d+)? (ms|s|seconds)(?=$|[\s,.;:)|])": "how long something took",
    r"((?<=\$\d\.\d{4})|(?<=unknown)) +\d+\.\d\d +\d+\.\d\d *$": "how long answers took, in `deep votes report`",
}
"""Patterns in text that are passed over, and why."""

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
PASSED_OVER = re.compile("|".join(IGNORED_TEXT))
TEXTS = {".csv", ".err", ".json", ".jsonl", ".log", ".md", ".out", ".sql", ".status", ".svg", ".toml", ".txt"}

Leaf = tuple[str, Any]
"""A place in a file, and the single value there."""


def leaves(value: Any, where: str = "") -> Iterator[Leaf]:
    """Yield what a value holds, by its path; text that is JSON is read as such."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            yield where, value
            return
    if isinstance(value, dict):
        yield f"{where} keys", sorted(map(str, value))
        for key, inner in value.items():
            if key not in IGNORED_KEYS:
                yield from leaves(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        yield f"{where} length", len(value)
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{where}[{number}]")
    else:
        yield where, value


def read_text(path: Path) -> Iterator[Leaf]:
    """Yield the values of JSON, or the lines, each as JSON where it is."""
    text = path.read_text(encoding="utf-8")
    try:
        yield from leaves(json.loads(text), "$")
    except ValueError:
        lines = text.split("\n")
        yield "lines", len(lines)
        for number, line in enumerate(lines, start=1):
            yield from leaves(line, f"line {number}")


def read_csv(path: Path) -> Iterator[Leaf]:
    """Yield every cell, by row and column."""
    header, *rows = csv.reader(StringIO(path.read_text(encoding="utf-8"), newline=""))
    yield from leaves(header, "columns")
    yield "rows", len(rows)
    for number, row in enumerate(rows, start=1):
        for name, cell in zip(header, row, strict=True):
            if name not in IGNORED_KEYS:
                yield from leaves(cell, f"row {number}, {name}")


def read_parquet(path: Path) -> Iterator[Leaf]:
    """Yield types, deep's metadata and every cell."""
    table = pq.read_table(path)
    yield from leaves([f"{field.name}: {field.type}" for field in table.schema], "schema")
    yield from leaves((table.schema.metadata or {}).get(b"deep", b"").decode(), "metadata")
    yield "rows", table.num_rows
    for name in table.column_names:
        if name not in IGNORED_KEYS:
            for number, cell in enumerate(table[name].to_pylist()):
                yield from leaves(cell, f"row {number}, {name}")


def read_ledger(path: Path) -> Iterator[Leaf]:
    """Yield every cell of every table, by primary key where it is no random name."""
    # Where nothing waits to be merged, the file is read without leaving any beside it.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        yield "tables", sorted(tables)
        for table in tables:
            ignored = IGNORED_COLUMNS.get(table, set())
            known = database.execute(f'PRAGMA table_info("{table}")').fetchall()
            keys = [name for _, name, *_, position in known if position and name not in ignored]
            found = database.execute(f'SELECT * FROM "{table}"')
            names = [name for name, *_ in found.description]
            rows = found.fetchall()
            yield f"{table} rows", len(rows)
            for number, row in enumerate(rows):
                cells = dict(zip(names, row, strict=True))
                place = " ".join(str(cells[key]) for key in keys) or number
                for name, cell in cells.items():
                    if name not in ignored:
                        yield from leaves(cell, f"{table}[{place}].{name}")


def read_bytes(path: Path) -> Iterator[Leaf]:
    """Yield one value that stands for the whole file."""
    yield "SHA-256", hashlib.sha256(path.read_bytes()).hexdigest()


def reader_of(path: Path) -> Callable[[Path], Iterator[Leaf]]:
    """Return what reads a file of this name."""
    special = {".csv": read_csv, ".parquet": read_parquet, ".sqlite": read_ledger}
    return special.get(path.suffix, read_text if path.suffix in TEXTS else read_bytes)


def close(old: float, new: float, tolerance: float) -> bool:
    """Tell whether two numbers are the same but for the tolerance."""
    if not (math.isfinite(old) and math.isfinite(new)):
        return old == new or (math.isnan(old) and math.isnan(new))
    return abs(old - new) <= tolerance * max(1.0, abs(old))


def same_text(old: str, new: str, tolerance: float) -> bool:
    """Tell whether two texts are the same but for what is passed over, and for numbers that are close."""
    if old == new:
        return True
    parts = [NUMBER.split(PASSED_OVER.sub("_", text)) for text in (old, new)]
    if len(parts[0]) != len(parts[1]):
        return False
    for ours, theirs in zip(*parts, strict=True):
        if ours == theirs:
            continue
        if not (NUMBER.fullmatch(ours) and NUMBER.fullmatch(theirs)) or (_is_whole(ours) and _is_whole(theirs)):
            return False
        if not close(float(ours), float(theirs), tolerance) or not math.isfinite(float(ours)):
            return False  # digits of a hash can look like a number beyond all bounds
    return True


def _is_whole(number: str) -> bool:
    return number.lstrip("-").isdigit()


def same(old: Any, new: Any, tolerance: float) -> bool:
    """Tell whether two values are the same."""
    if isinstance(old, str) and isinstance(new, str):
        return same_text(old, new, tolerance)
    if isinstance(old, float) or isinstance(new, float):
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new))
        return numbers and close(float(old), float(new), tolerance)
    return type(old) is type(new) and bool(old == new)


def differences(old: Path, new: Path, tolerance: float) -> Iterator[str]:
    """Yield a line for every difference of two files: where, old, new."""
    read = reader_of(old)
    try:
        before, after = dict(read(old)), dict(read(new))
    except (ValueError, OSError, sqlite3.DatabaseError):  # not what its name says
        before, after = dict(read_bytes(old)), dict(read_bytes(new))
    for where in before | after:
        if where not in after:
            yield f"{where}: {_shown(before[where])} -> nothing"
        elif where not in before:
            yield f"{where}: nothing -> {_shown(after[where])}"
        elif not same(before[where], after[where], tolerance):
            yield f"{where}: {_shown(before[where])} -> {_shown(after[where])}"


def _shown(value: Any, limit: int = 160) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def files_of(folder: Path, skip: list[str]) -> set[Path]:
    """Return the files below a folder, relative to it, less those that are to be left out and SQLite's own."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    left_out = [*skip, "*.sqlite-shm", "*.sqlite-wal"]
    return {path for path in found if not any(fnmatch(path.as_posix(), pattern) for pattern in left_out)}


def main() -> int:
    """Compare, print the differences, and return the status."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", type=Path, metavar="OLD", help="folder of results")
    p.add_argument("new", type=Path, metavar="NEW", help="folder of results, named alike")
    p.add_argument("--tolerance", type=float, default=1e-12, help="of floating-point numbers (default: 1e-12)")
    p.add_argument("--skip", nargs="+", default=[], metavar="GLOB", help="files to leave out, such as 'help/*'")
    args = p.parse_args()
    ours, theirs = files_of(args.old, args.skip), files_of(args.new, args.skip)
    differing = 0
    for path in sorted(ours | theirs):
        if path in ours & theirs:
            found = differences(args.old / path, args.new / path, args.tolerance)
        else:
            found = iter([f"only in {args.old if path in ours else args.new}"])
        shown = list(islice(found, SHOWN))
        more = sum(1 for _ in found)
        differing += bool(shown)
        lines = [f"{path}: {line}\n" for line in shown] + ([f"{path}: {more} more\n"] if more else [])
        sys.stdout.writelines(lines)
    sys.stdout.write(f"{len(ours | theirs)} files compared, {differing} differ\n")
    return 2 if not ours | theirs else int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
