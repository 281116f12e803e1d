"""Results of batches, and batches in the ledger: lines found by their request and checked, and who waits for them."""

import json
import math
import sqlite3
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, NamedTuple, TypedDict, cast

from sqlalchemy import Connection, case, func, select, update

from deep._util.files import check_regular
from deep._util.names import is_storable
from deep.asking import chunks
from deep.llm import (
    EXPORT_STATES,
    MOST_VALUES,
    NO_OWNER,
    UNFINISHED_STATES,
    CallError,
    Job,
    Quirk,
    Redactor,
    Reply,
    RequestState,
    Session,
    WriteFuture,
    checked_reply,
    is_shallow,
    json_text,
    known_requests,
    release_batch,
    reply_error,
    schema,
)
from deep.llm.schema import RequestRow
from deep.records import Judgment

# Bytes of a line that can be a result, as of any reply.
LONGEST_LINE = 8 << 20


class BatchResponse(TypedDict, total=False):
    """The reply inside a line: its HTTP status and its body."""

    status_code: int
    body: object


class BatchLine(TypedDict, total=False):
    """One line of a result file."""

    custom_id: str
    response: BatchResponse | None
    error: dict[str, object] | None


def line_at(file: IO[bytes], at: int, redact: Redactor) -> "BatchLine":
    """Return the line at a place where one could be read before, without secrets."""
    file.seek(at)
    line = read_line(redact(file.readline(LONGEST_LINE).decode("utf-8-sig", errors="replace")))
    assert line is not None, "a line that was readable before"
    return line


def placed_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, each with its place; of one that is too long for a result, the beginning.

    Between two of them the file may be read elsewhere.
    """
    at = 0
    while file.seek(at) == at and (line := file.readline(LONGEST_LINE)):
        start, rest = at, line
        at += len(line)
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
            at += len(rest)
        if line.strip():
            yield start, line


def read_line(line: str) -> BatchLine | None:
    """Return a line of a result file; None where it is no result of a request."""
    if sum(map(line.count, ",[{")) > MOST_VALUES:
        return None
    try:
        entry = json.loads(line, parse_constant=str, parse_float=_number, parse_int=_whole)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not is_shallow(entry):
        return None
    name = entry.get("custom_id")
    if not isinstance(name, str) or not is_storable(name):
        return None
    response, error = entry.get("response"), entry.get("error")
    if not isinstance(response, dict | None) or not isinstance(error, dict | None):
        return None
    status = (response or {}).get("status_code")
    is_status = isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600
    return cast(BatchLine, entry) if status is None or is_status else None


def _number(digits: str) -> float | str:
    """Return a number; one beyond what a float holds as it is written, since JSON cannot say infinity."""
    number = float(digits)
    return number if math.isfinite(number) else digits


def _whole(digits: str) -> int | str:
    return digits if isinstance(_number(digits), str) else int(digits)


def reply_in(line: BatchLine) -> tuple[Reply, object]:
    """Return the reply in a line, and its body.

    Raises
    ------
    CallError
        It holds none, or an error beside it.
    """
    response, error = line.get("response") or {}, line.get("error") or {}
    body = response.get("body")
    raw = json_text(body)
    if response.get("status_code") != 200:
        raise reply_error(response.get("status_code"), raw, error)
    if error:
        message = reply_error(200, "", error).message
        raise CallError("broken", f"the line has an answer and an error: {message}", status=200, body=raw)
    return checked_reply(body, raw), body


# Lines that are entered in the index, or requests that are looked up, together.
AT_ONCE = 2000

# Files that are kept open to look up their lines.
MOST_OPEN = 32

# Key, number of the attempt, digest, file, position in it, and whether the line is an answer.
ResultLine = tuple[str, int, bytes, int, int, bool]


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
    """Return a digest of the parts of a result in which two lines that say the same agree; ids and times may differ."""
    response = line.get("response") or {}
    body = response.get("body")
    answer = body.get("choices") if isinstance(body, dict) and "choices" in body else body
    text = json.dumps([response.get("status_code"), answer, line.get("error")], sort_keys=True, default=str)
    return sha256(text.encode(errors="surrogatepass")).digest()[:16]


CONTRADICTS = "the batch has two results for this request, which contradict each other"


class FileResults:
    """The results in JSONL files, indexed in a temporary file; only their places are known of them.

    Parameters
    ----------
    source : Path or sequence of open files
        A folder is looked through with all folders in it; batch files of requests, which may lie there too, are passed
        over.
    redact : Redactor
        Takes API keys out of every line that is read.

    Attributes
    ----------
    files, lines : int
        Files with results, and results in them.
    broken : int
        Lines that are no result of a request.
    repeated : int
        Results that say what another one of the same attempt has said.
    """

    def __init__(self, source: Path | Sequence[IO[bytes]], redact: Redactor) -> None:
        self.files = self.lines = self.broken = self.repeated = 0
        self._redact = redact
        self._paths = sorted(source.rglob("*.jsonl")) if isinstance(source, Path) else []
        self._open: dict[int, IO[bytes]] = {} if isinstance(source, Path) else dict(enumerate(source))
        with ExitStack() as stack:
            scratch = stack.enter_context(tempfile.TemporaryDirectory())
            self._index = sqlite3.connect(Path(scratch) / "index.sqlite", check_same_thread=False)
            stack.callback(self._index.close)
            self._index.execute("PRAGMA journal_mode = OFF")
            self._index.execute("PRAGMA synchronous = OFF")
            columns = "key TEXT, number INT, digest BLOB, file INT, at INT, answered INT, met INT DEFAULT 0"
            self._index.execute(f"CREATE TABLE results ({columns}, PRIMARY KEY (key, number, digest)) WITHOUT ROWID")
            for number in range(len(self._paths) or len(self._open)):
                self._add(number)
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
        query = f"SELECT key, number, digest, answered, file, at FROM results WHERE key IN ({marks})"
        result: defaultdict[str, list[FileResult]] = defaultdict(list)
        for key, number, digest, is_answer, file, at in self._index.execute(
            f"{query} ORDER BY key, answered DESC, number, file, at", list(keys)
        ):
            line = line_at(self._file(file), at, self._redact)
            result[key].append(FileResult(number, digest, bool(is_answer), line))
        return dict(result)

    def keys(self) -> set[str]:
        """Return the keys of all requests that have results."""
        return {key for (key,) in self._index.execute("SELECT DISTINCT key FROM results")}

    def get(self, key: str) -> BatchLine:
        """Return the one result of a request, without secrets.

        Raises
        ------
        CallError
            There is none, or there are two that contradict each other.
        """
        result = self.of([key]).get(key, [])
        if len(result) > 1:
            raise CallError("broken", CONTRADICTS)
        if not result and self.broken:
            raise CallError("broken", "the batch has lines that cannot be read, and none for this request")
        if not result:
            raise CallError("expired", "the batch ended without this request", reached=False)
        return result[0].line

    def unknown_ids(self) -> tuple[int, list[str]]:
        """Return how many ids no request has had that :meth:`of` was called with, and the first three of them."""
        (n,) = self._index.execute("SELECT count(DISTINCT key) FROM results WHERE NOT met").fetchone()
        first = self._index.execute("SELECT DISTINCT key FROM results WHERE NOT met ORDER BY key LIMIT 3")
        return n, [key for (key,) in first]

    def _add(self, number: int) -> None:
        before = self.lines
        insert = "INSERT OR IGNORE INTO results (key, number, digest, file, at, answered) VALUES (?, ?, ?, ?, ?, ?)"
        for rows in chunks(self._places(number), AT_ONCE):
            with self._index:
                entered = self._index.executemany(insert, rows).rowcount
            self.lines += len(rows)
            self.repeated += len(rows) - max(entered, 0)
        self.files += self.lines > before

    def _places(self, number: int) -> Iterator[ResultLine]:
        """Yield the key, the attempt, the digest and the place of each result of a file; count broken lines."""
        for start, raw in placed_lines(self._file(number)):
            line = read_line(raw.decode("utf-8-sig", errors="replace"))
            if line is not None and "body" in line and "url" in line:
                continue  # a request, not its result
            if line is None or (line.get("response") is None and line.get("error") is None):
                self.broken += 1
                continue
            key, _, attempt = line["custom_id"].partition(".")
            is_answer = (line.get("response") or {}).get("status_code") == 200
            whole = int(attempt) if attempt.isdecimal() and attempt.isascii() and len(attempt) < 10 else 1
            yield key, whole, result_digest(line), number, start, is_answer

    def _file(self, number: int) -> IO[bytes]:
        if number not in self._open:
            while len(self._open) >= MOST_OPEN:
                self._open.pop(next(iter(self._open))).close()
            check_regular(self._paths[number], "batch-in")
            self._open[number] = self._paths[number].open("rb")
        return self._open[number]


# Returns the runs that are alive, as `Ledger.live_runs` does.
LiveRuns = Callable[[Connection], set[int]]


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch.

    Parameters
    ----------
    id : str
        Our name for it.
    remote : str or None
        The endpoint's name for it; of its file, while it is being made.
    size : int
        The number of its requests.
    state : str
        As the ledger has it.
    """

    id: str
    remote: str | None
    size: int
    state: str

    @property
    def unconfirmed(self) -> bool:
        """Whether the endpoint was asked to make it, and no answer is on record."""
        return self.state != "open" or self.remote is None


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a request stands: its row, whether it is in an exported file, and all answers that were bought.

    Parameters
    ----------
    row : RequestRow
        The request's row in the ledger.
    exported : bool
        Whether it is in an exported file, whose results are waited for.
    replies : list of str
        As JSON; those kept beside the one that counts among them.
    least : int
        The least number of its attempts; below 0 are answers beside the one that counts.
    """

    row: RequestRow
    exported: bool
    replies: list[str]
    least: int

    @property
    def state(self) -> RequestState:
        """The state of the request."""
        return self.row["state"]

    @property
    def attempts(self) -> int:
        """The number of its last attempt."""
        return self.row["attempts"]


def add_batch(connection: Connection, batch: Batch, endpoint: str, run: int) -> None:
    """Enter a batch that is about to be made; one of files that are exported has their name for its remote one."""
    row = {"id": batch.id, "endpoint": endpoint, "owner": run, "state": batch.state, "size": batch.size}
    connection.execute(schema.batches.insert(), {**row, "remote": batch.remote, "created": time.time()})


def mend_exports(connection: Connection, endpoint: str, live_runs: LiveRuns) -> list[tuple[str, str]]:
    """Give back exports of dead runs; return file name and state of every export that no live run is writing.

    The file of a dead run may still bear the name of an unfinished part.
    """
    table = schema.batches
    live = live_runs(connection)
    query = select(table.c.id, table.c.remote, table.c.state, table.c.owner).where(table.c.endpoint == endpoint)
    result = []
    for batch_id, name, state, owner in connection.execute(query.where(table.c.state.in_(EXPORT_STATES))).all():
        if state == "exporting" and owner in live:
            continue
        if state == "exporting":
            release_batch(connection, batch_id, NO_OWNER)
        result.append((str(name), str(state)))
    return result


def standing_of(connection: Connection, keys: Collection[str]) -> dict[str, Standing]:
    """Return where those of `keys` that are in the ledger stand."""
    rows = known_requests(connection, keys)
    attempts, batches = schema.attempts.c, schema.batches.c
    in_files = {row["batch"] for row in rows.values() if row["batch"] is not None}
    query = select(batches.id).where(batches.id.in_(list(in_files)), batches.state.in_(EXPORT_STATES))
    exports = set(connection.execute(query).scalars())
    tried: dict[str, list[tuple[int, str | None]]] = {key: [] for key in rows}
    answer = case((attempts.outcome == "answered", attempts.reply), else_=None)
    for key, number, reply in connection.execute(
        select(attempts.key, attempts.number, answer).where(attempts.key.in_(list(rows)))
    ):
        tried[key].append((number, reply))
    return {
        key: Standing(
            row,
            row["batch"] in exports,
            [reply for _, reply in tried[key] if reply is not None],
            min((number for number, _ in tried[key]), default=0),
        )
        for key, row in rows.items()
    }


def set_batch(connection: Connection, /, batch_id: str, **values: object) -> None:
    """Update the row of a batch."""
    connection.execute(update(schema.batches).where(schema.batches.c.id == batch_id).values(**values))


def take_batches(connection: Connection, endpoint: str, run: int, live_runs: LiveRuns) -> list[Batch]:
    """Make this run the owner of the batches of dead runs, and return its own that are not over, oldest first.

    So a batch is collected by one run: two would each enter its failures, and ask again what the other is asking.
    """
    table = schema.batches
    condition = (table.c.endpoint == endpoint) & table.c.state.in_((*UNFINISHED_STATES, "doubtful"))
    dead = table.c.owner.not_in(live_runs(connection))
    connection.execute(update(table).where(condition, dead).values(owner=run))
    query = select(table.c.id, table.c.remote, table.c.size, table.c.state).where(condition, table.c.owner == run)
    return [Batch(*row) for row in connection.execute(query.order_by(table.c.created))]


def adopt_batch(connection: Connection, batch: Batch, remote: str) -> int:
    """Enter the endpoint's name of a batch that was made after all; return how many requests still wait for it.

    Those that were given up on, and not asked again, wait for it once more.
    """
    requests, attempts = schema.requests, schema.attempts
    is_orphan = (requests.c.state == "unknown") | ((requests.c.state == "failed") & (requests.c.failure == "unknown"))
    mine = (requests.c.batch == batch.id) & is_orphan
    its_last = (attempts.c.key == requests.c.key) & (attempts.c.number == requests.c.attempts)
    result = select(1).where(its_last, mine).exists()
    connection.execute(update(attempts).where(attempts.c.outcome == "unknown", result).values(outcome=None))
    connection.execute(update(requests).where(mine).values(state="sent", failure=None))
    set_batch(connection, batch.id, state="open", remote=remote)
    return n_waiting(connection, batch.id)


def mark_doubtful(connection: Connection, batch_id: str) -> int:
    """Turn the requests of a batch that the endpoint does not list into unknown ones, and return their number."""
    requests, attempts = schema.requests, schema.attempts
    n = n_waiting(connection, batch_id)
    waiting = (requests.c.batch == batch_id) & (requests.c.state == "sent")
    unended = attempts.c.key.in_(select(requests.c.key).where(waiting)) & attempts.c.outcome.is_(None)
    connection.execute(update(attempts).where(unended).values(outcome="unknown"))
    connection.execute(update(requests).where(waiting).values(state="unknown", failure="unknown", owner=NO_OWNER))
    set_batch(connection, batch_id, state="doubtful")
    return n


def numbers_in(connection: Connection, batch_id: str, keys: Collection[str]) -> dict[str, tuple[int, bool]]:
    """Return the number of the attempt in flight of those of `keys` that wait in a batch.

    Beside it stands whether an earlier reply was cut off, so that this attempt has a longer limit.
    """
    table = schema.requests
    waiting = (table.c.batch == batch_id) & (table.c.state == "sent") & table.c.key.in_(list(keys))
    rows = connection.execute(select(table.c.key, table.c.attempts, table.c.reason).where(waiting))
    return {row.key: (row.attempts, row.reason == "truncated") for row in rows}


def may_be_of(connection: Connection, batch_id: str, keys: Iterable[str]) -> bool:
    """Return whether results may be those of a batch: one is of a request that was in it, or none waits there."""
    table = schema.requests
    for some in chunks(keys, AT_ONCE):
        if connection.execute(select(1).where(table.c.batch == batch_id, table.c.key.in_(some)).limit(1)).first():
            return True
    return not n_waiting(connection, batch_id)


def n_waiting(connection: Connection, batch_id: str) -> int:
    """Return how many requests wait in a batch."""
    table = schema.requests
    waiting = select(func.count()).where(table.c.batch == batch_id, table.c.state == "sent")
    return int(connection.execute(waiting).scalar_one())


@dataclass(eq=False)
class BatchSession(Session):
    """Enters the results of batches, one by one."""

    def learn_from(self, job: Job, error: CallError) -> tuple[list[Quirk], bool]:
        """Return the quirks that a refusal in a batch tells of, and whether the request may be sent as they say.

        A longer limit may be refused, and tells of none; all else was answered before.
        """
        if job.longer:
            return [], False
        quirks = self.gate.learn(job.request.endpoint, job.request.body, error)
        return quirks, error.kind == "rejected" and self.body_of(job.request) is not job.request.body

    def enter_answer(
        self, job: Job, reply: Reply, judgment: Judgment | None, message: str | None, *, again: bool
    ) -> WriteFuture:
        """Count a reply out of a batch, and write it down; `again` as in :meth:`Tally.answer`."""
        self.tally.answer(job.request.voter, judgment, reply.cost, again=again, longer=job.longer)
        self.tally.name(job.request.model, reply.model)
        body = self.body_of(job.request)
        self.gate.take(job.request.endpoint, body)
        quirks = self.ignored(job.request, body, reply)
        return self.ledger.answer(job, reply, judgment, message=message, quirks=quirks, again=again)

    def enter_failure(self, job: Job, error: CallError, quirks: Sequence[Quirk], *, again: bool) -> WriteFuture:
        """Count a request of a batch that has no answer, and write down why; with `again` it goes back to the queue."""
        state: RequestState = "queued" if again else "done" if error.kind == "refused" else "failed"
        self.count_end(job, state, error)
        return self.ledger.fail(job, error, state=state, quirks=quirks)
