"""Results of batch requests in files of any number and order, found by request, with bounded memory."""

import json
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, NamedTuple

from deep._files import check_regular
from deep.llm._batch_lines import LONGEST_LINE, BatchLine, placed_lines, read_line, result_of
from deep.llm._secrets import Redactor

AT_ONCE = 2000
"""Lines that are entered in the index together."""

MOST_OPEN = 32
"""Files that are kept open to look up their lines."""

Place = tuple[str, int, bytes, int, int, bool]
"""Key, number of the attempt, digest, file, position in it, and whether the line is an answer."""


class FileResult(NamedTuple):
    """One result: the number of the attempt that it is of, a digest of what it says, and its line."""

    number: int
    digest: bytes
    answered: bool
    line: BatchLine


def custom_id(key: str, number: int) -> str:
    """Return the id of an attempt at a request: the request's key, and from the second attempt on its number.

    Examples
    --------
    >>> custom_id("0a", 1), custom_id("0a", 3)
    ('0a', '0a.3')
    """
    return key if number == 1 else f"{key}.{number}"


def result_digest(line: BatchLine) -> bytes:
    """Return a digest of the parts of a result in which two lines that say the same agree."""
    text = json.dumps(result_of(line), sort_keys=True, default=str)
    return sha256(text.encode(errors="surrogatepass")).digest()[:16]


class FileResults:
    """The results in the JSONL files of folders, indexed in a temporary file.

    Parameters
    ----------
    folder : Path
        Looked through with all folders in it; batch files of requests, which may lie there too, are passed over.
    redact : Redactor

    Attributes
    ----------
    files, lines : int
        Files with results, and results in them.
    broken : int
        Lines that are no result of a request.
    repeated : int
        Results that say what another one of the same attempt has said.
    """

    def __init__(self, folder: Path, redact: Redactor) -> None:
        self.files = self.lines = self.broken = self.repeated = 0
        self._redact = redact
        self._paths: list[Path] = []
        self._open: dict[int, BinaryIO] = {}
        with ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
            self._index = sqlite3.connect(Path(scratch) / "index.sqlite", check_same_thread=False)
            stack.callback(self._index.close)
            self._index.execute("PRAGMA journal_mode = OFF")
            self._index.execute("PRAGMA synchronous = OFF")
            columns = "key TEXT, number INT, digest BLOB, file INT, at INT, answered INT, met INT DEFAULT 0"
            self._index.execute(f"CREATE TABLE results ({columns}, PRIMARY KEY (key, number, digest)) WITHOUT ROWID")
            for path in sorted(folder.rglob("*.jsonl")):
                check_regular(path, "batch-in")
                self._add(path)
            self._stack = stack.pop_all()

    def __enter__(self) -> "FileResults":
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()
        self._stack.close()

    def of(self, keys: Collection[str]) -> dict[str, list[FileResult]]:
        """Return the results of requests by key, without secrets; answers first, in the order of attempts."""
        marks = ", ".join("?" * len(keys))
        self._index.execute(f"UPDATE results SET met = 1 WHERE key IN ({marks})", list(keys))
        chosen = f"SELECT key, number, digest, answered, file, at FROM results WHERE key IN ({marks})"
        found: defaultdict[str, list[FileResult]] = defaultdict(list)
        for key, number, digest, answered, file, at in self._index.execute(
            f"{chosen} ORDER BY key, answered DESC, number, file, at", list(keys)
        ):
            found[key].append(FileResult(number, digest, bool(answered), self._at(file, at)))
        return dict(found)

    def strange(self, most: int = 3) -> tuple[int, list[str]]:
        """Return how many ids no request has had that :meth:`of` was called with, and the first of them."""
        (n,) = self._index.execute("SELECT count(DISTINCT key) FROM results WHERE NOT met").fetchone()
        first = self._index.execute("SELECT DISTINCT key FROM results WHERE NOT met ORDER BY key LIMIT ?", (most,))
        return n, [key for (key,) in first]

    def _add(self, path: Path) -> None:
        before, number = self.lines, len(self._paths)
        self._paths.append(path)
        gathered: list[Place] = []
        for place in self._places(path, number):
            gathered.append(place)
            if len(gathered) >= AT_ONCE:
                self._enter(gathered)
                gathered = []
        self._enter(gathered)
        self.files += self.lines > before

    def _enter(self, places: Iterable[Place]) -> None:
        rows = list(places)
        with self._index:
            insert = "INSERT OR IGNORE INTO results (key, number, digest, file, at, answered) VALUES (?, ?, ?, ?, ?, ?)"
            entered = self._index.executemany(insert, rows).rowcount
        self.lines += len(rows)
        self.repeated += len(rows) - max(entered, 0)

    def _places(self, path: Path, file_number: int) -> Iterator[Place]:
        with path.open("rb") as file:
            for start, raw in placed_lines(file):
                line = read_line(raw.decode("utf-8-sig", errors="replace"))
                if line is not None and "body" in line and "url" in line:
                    continue  # a request, not its result
                if line is None or (line.get("response") is None and line.get("error") is None):
                    self.broken += 1
                    continue
                key, _, number = line["custom_id"].partition(".")
                answered = (line.get("response") or {}).get("status_code") == 200
                whole = int(number) if number.isdecimal() and number.isascii() and len(number) < 10 else 1
                yield key, whole, result_digest(line), file_number, start, answered

    def _at(self, file_number: int, at: int) -> BatchLine:
        if file_number not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            self._open[file_number] = self._paths[file_number].open("rb")
        file = self._open[file_number]
        file.seek(at)
        line = read_line(self._redact(file.readline(LONGEST_LINE).decode("utf-8-sig", errors="replace")))
        assert line is not None, "a line that could be read before"
        return line
