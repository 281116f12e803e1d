"""Functions as judges: how one is called on an example, and calls side by side, each answer kept as it comes."""

import asyncio
import hashlib
import inspect
import json
import re
import sqlite3
import sys
import time
import weakref
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, partial, update_wrapper
from itertools import islice
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload
from uuid import uuid4

from deep._util import sqlite_log
from deep.asking._options import NOT_ASKED, AskProgress, ProgressCallback
from deep.exceptions import InputError, printable
from deep.judges import OfflineJudge, voter_name
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    from deep.asking._plan import PlannedVoter
    from deep.llm import Tally

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

AnyFunction = Callable[..., object]
"""A function that judges; see :func:`judge`."""

SOURCE = "source"
WORKERS = 16

_NAME = re.compile(r"\w[\w.-]*")
_ORDER = {1: ("example",), 2: ("source", "claim"), 3: ("question", "source", "claim")}
"""The values that parameters of names of their own stand for, by their number."""

_TEXTS = _ORDER[3]
_FIELDS = tuple(field.name for field in fields(Judgment))
_VALUES = attrgetter(*_FIELDS)
_NUMBERS = (int, float)
_TAKEN = "True or False, None, a number from 0 to 1, (vote, rationale), a mapping with `vote`, or a Judgment"


class FunctionJudge(OfflineJudge, Generic[P, R]):
    """A function that judges; called, it is that function. See :func:`judge` for the parameters."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        version: str | None = SOURCE,
        cost: float | None = None,
        workers: int | None = None,
    ) -> None:
        self.name = str(name or getattr(function, "__name__", type(function).__name__))
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"`name` must be letters, digits and .-_ for a judge. Got {self.name!r}. Give one: judge(name=...)."
            )
        if cost is not None and not 0 <= cost < float("inf"):
            raise InputError(f"`cost` must be 0 or more dollars a call. Got {cost!r}.")
        if workers is not None and workers < 1:
            raise InputError(f"`workers` must be 1 or more. Got {workers!r}.")
        self._function, self._roles = function, _roles(function, self.name).items()
        roles = {role for _, role in self._roles}
        self._texts = [text for text in _TEXTS if text in roles or "example" in roles]
        self.cost, self.workers = cost, workers
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        said = _source(function) if version == SOURCE else version
        self.is_kept = said is not None
        self.version = hashlib.sha256(f"{self.name}\0{said if said is not None else uuid4()}".encode()).hexdigest()
        update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as it is."""
        return self._function(*args, **kwargs)

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        version = self.version if self.is_kept else None
        return {"kind": "function", "judge": self.name, "version": version, "model": None, "cost": self.cost}

    def voter(self, llm: str = "") -> str:  # noqa: ARG002  it knows itself whom to ask
        """Return the name of its column: name and 8 digits of the version, the name alone where it has none."""
        return voter_name(self.name, self.version) if self.is_kept else self.name

    def key(self, example: Example) -> str:
        """Return the key of an answer: of name, version and the texts that the function is called with."""
        texts = [getattr(example, text, None) for text in self._texts]
        return hashlib.sha256(json.dumps([self.version, *texts]).encode()).hexdigest()

    async def judged(self, example: Example) -> Judgment:
        """Judge one example, in the loop of all functions; raise where the function does, or returns no vote."""
        started = time.monotonic()
        values: dict[str, Any] = {n: example if r == "example" else getattr(example, r, None) for n, r in self._roles}
        by_place = [values.pop(name) for name in [*values] if name.startswith("/")]
        call = partial[Any](self._function, *by_place, **values)
        try:
            said = call() if self._is_async else await asyncio.get_running_loop().run_in_executor(None, _called, call)
            said = await said if inspect.isawaitable(said) else said
        except BaseException as error:  # one that is no Exception would end the loop of all functions
            task = asyncio.current_task()
            if isinstance(error, Exception | GeneratorExit) or (task is not None and task.cancelling()):
                raise
            raise RuntimeError(_said(error)) from error
        return judgment_of(said, cost=self.cost, seconds=time.monotonic() - started)

    def label(self, example: Example) -> Judgment:
        """Judge one example; where the function raises, so does this."""
        return run_in_loop(self.judged(example)).result()


def _called(call: Callable[[], object]) -> object:
    """Call a function in a thread, where a StopIteration, as of `next`, would never arrive; any other fails as well."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise
        raise RuntimeError(_said(error)) from error


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all functions, which stays: a client that an async function keeps belongs to one loop."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(ThreadPoolExecutor(1024, "deep-function"))  # how many are in use is each judge's affair
    Thread(target=loop.run_forever, name="deep-functions", daemon=True).start()
    return loop


def run_in_loop(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Begin some work in the loop of all functions, from any other thread."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def takes_nothing(made: AnyFunction) -> bool:
    """Return whether something can be called without anything: a class of judges, or what makes one."""
    try:
        inspect.signature(made).bind()
    except (TypeError, ValueError):
        return isinstance(made, type)
    return True


def _roles(function: AnyFunction, name: str) -> dict[str, str]:
    """Return the value that each parameter stands for; a slash before the name of one that is given by its place."""
    known = (*_TEXTS, "example")
    kinds = inspect.Parameter
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"`function` must be a function of (source, claim). Got {function!r:.60}.") from None
    given = [
        parameter
        for parameter in parameters
        if parameter.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        and (parameter.default is kinds.empty or parameter.name in known)
    ]
    order = _ORDER.get(len(given), ())
    left = [role for role in order if role not in {parameter.name for parameter in given}]
    own = [parameter for parameter in given if parameter.name not in known]
    if not given or len(own) > len(left):
        taken = ", ".join(parameter.name for parameter in given) or "nothing"
        raise InputError(
            f"`judges` must be functions of (source, claim), (question, source, claim) or an Example. Got {name}, "
            f"which takes {taken}. Wrap it in one that does."
        )
    roles = {parameter.name: left.pop(0) if parameter in own else parameter.name for parameter in given}
    by_place = {parameter.name for parameter in given if parameter.kind is kinds.POSITIONAL_ONLY}
    return {f"/{name}" if name in by_place else name: role for name, role in roles.items()}


def _source(function: AnyFunction) -> str | None:
    """Return the text of a function, or of the class of a callable object; None where it cannot be found."""
    try:
        return dedent(inspect.getsource(function if hasattr(function, "__name__") else type(function)))
    except (OSError, TypeError):
        return None


def judgment_of(said: object, *, cost: float | None = None, seconds: float | None = None) -> Judgment:
    """Return the judgment that a function's value stands for, with its cost and time where it does not tell them.

    Examples
    --------
    >>> from deep.asking._functions import judgment_of
    >>> judgment_of(True).vote, judgment_of(None).reason, judgment_of(0.25).vote, judgment_of(0.25).score
    (1, 'abstained', 0, 0.25)
    >>> judgment_of((False, "It rose.")).rationale, judgment_of({"vote": 1, "cost": 0.01}).cost
    ('It rose.', 0.01)
    """
    if isinstance(said, Judgment):
        if said.cost is not None and not 0 <= said.cost < float("inf"):
            raise TypeError(f"returned a cost of {said.cost!r}; it is 0 or more dollars")
        own = said.cost if said.cost is not None else cost, said.seconds if said.seconds is not None else seconds
        return replace(said, cost=own[0], seconds=own[1])
    if isinstance(said, Mapping):
        unknown = sorted(map(str, said.keys() - set(_FIELDS)))
        if unknown or not {"vote", "reason"} & said.keys():
            raise TypeError(
                f"returned a mapping with {', '.join(unknown) or 'no vote'}; its keys are {', '.join(_FIELDS)}"
            )
        told = replace(judgment_of(said.get("vote")), **_lists({n: v for n, v in said.items() if n != "vote"}))
        return judgment_of(told, cost=cost, seconds=seconds)
    if isinstance(said, tuple) and len(said) == 2:
        told = judgment_of(said[0], cost=cost, seconds=seconds)
        return replace(told, rationale=None if said[1] is None else str(said[1]))
    value: Any = said.item() if hasattr(said, "item") else said
    if value is None or (type(value) is int and value == ABSTAIN):
        return Judgment(ABSTAIN, "abstained", cost=cost, seconds=seconds)
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise TypeError(f"returned {said!r:.80}; a judge returns {_TAKEN}")
    score = None if value in (0, 1) and not isinstance(value, float) else float(value)
    return Judgment(int(value >= 0.5), score=score, cost=cost, seconds=seconds)


def to_text(judgment: Judgment) -> str:
    """Return a judgment as JSON, without the fields at their defaults."""
    values = zip(_FIELDS, _VALUES(judgment), strict=True)
    # A score or a cost of 0 is a value.
    return json.dumps({name: value for name, value in values if value or type(value) in _NUMBERS})


def from_text(text: str) -> Judgment:
    """Return the judgment of :func:`to_text`."""
    return Judgment(**_lists(json.loads(text)))


def _lists(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(v) if name in ("evidence", "samples") else v for name, v in given.items()}


@overload
def judge(function: Callable[P, R], /) -> FunctionJudge[P, R]: ...
@overload
def judge(
    *, name: str | None = None, version: str | None = SOURCE, cost: float | None = None, workers: int | None = None
) -> Callable[[Callable[P, R]], FunctionJudge[P, R]]: ...
def judge(function: Any = None, /, **options: Any) -> Any:
    """Make a judge of a function of (source, claim), (question, source, claim) or an :class:`deep.Example`.

    It may be async. It returns True or False, None for no vote, a number from 0 to 1 (a vote from 0.5 on, and a
    score), ``(vote, rationale)``, a mapping with the fields of :class:`deep.Judgment`, or that. Where it raises, the
    item has no vote, with the reason ``failed``.

    Parameters
    ----------
    function : callable
        Parameters named question, source, claim or example get these; others get them in the order above.
    name : str, optional
        Of its column. Default: the function's own.
    version : str or None, default='source'
        Raise it when the judge votes otherwise: answers are kept by name, version and texts. ``source`` stands for
        the text of the function itself, not of what it calls; None keeps nothing.
    cost : float, optional
        Dollars a call.
    workers : int, optional
        The most calls side by side. Default: 16.

    Examples
    --------
    >>> import deep
    >>> @deep.judge(name="short", version="1")
    ... def is_short(source, claim):
    ...     return len(claim) < len(source)
    >>> votes = deep.ask([deep.Example("It rained all day.", "It rained.", "a")], is_short)
    >>> votes.voter_names, votes.votes.tolist()
    (('short@8c6cd16e',), [[1]])
    """
    return partial(FunctionJudge, **options) if function is None else FunctionJudge(function, **options)


SECONDS_BETWEEN_LOOKS = 0.5
FAILED = Judgment(-1, "failed")
RECENT_JUDGMENTS = 100_000  # kept in memory as well as on disk

TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, voter TEXT, judgment TEXT, cost REAL) WITHOUT ROWID"


@dataclass(eq=False)
class Calls:
    """Calls functions on examples, and keeps their answers.

    Parameters
    ----------
    ledger : str, optional
        The file beside which the answers are kept; None: they go with this object.
    workers : int, optional
        The most calls of a function side by side. Default: its own number, else 16.
    budget : float, optional
        Dollars that all answers kept may cost.
    """

    ledger: str | None = None
    workers: int | None = None
    budget: float | None = None
    spent: float = field(default=0.0, init=False)
    reserved: float = field(default=0.0, init=False)
    open: dict[str, asyncio.Future[None]] = field(default_factory=dict, init=False)
    _book: sqlite3.Connection | None = field(default=None, init=False)
    _coming: list[tuple[str, str, str, float | None]] = field(default_factory=list, init=False)
    _written: asyncio.Future[None] = field(init=False)
    _due: float = field(default=0.0, init=False)
    _failed: dict[str, Judgment] = field(default_factory=dict, init=False)
    _recent: dict[str, Judgment] = field(default_factory=dict, init=False)
    _told: set[tuple[str, str]] = field(default_factory=set, init=False)
    _rooms: dict[str, asyncio.Semaphore] = field(default_factory=dict, init=False)

    def check(self, columns: "Sequence[PlannedVoter]") -> None:
        """Raise where there is a budget and the cost of a function is not known."""
        unknown = [column.name for column in columns if _function(column).cost is None]
        if self.budget is not None and unknown:
            raise InputError(f"`budget` needs the `cost` of every function. Got {unknown[0]!r} without one.")

    def ask(
        self,
        columns: "Sequence[PlannedVoter]",
        examples: Iterable[Example],
        tally: "Tally",
        progress: ProgressCallback | None = None,
        *,
        alone: bool = False,
    ) -> str | None:
        """Call functions on all examples, save those whose answer is kept; return why it ended early, if it did.

        Parameters
        ----------
        columns : sequence of PlannedVoter
        examples : iterable of Example
            Gone through once a column.
        tally : Tally
        progress : callable, optional
        alone : bool
            Whether no other judge votes, so that nothing is won where all fail.

        Raises
        ------
        InputError
            All fail on the first example, and `alone`.
        LedgerError
            The answers cannot be kept.
        """
        asked = _Round(self, tally)
        future = run_in_loop(asked.all(columns, examples, alone=alone))
        try:
            while not wait([future], SECONDS_BETWEEN_LOOKS).done:
                if progress is not None:
                    progress(AskProgress(tally))
        except KeyboardInterrupt:
            asked.stopped = "interrupted"  # what is in flight is waited for, unless it is pressed again
            future.result()
        future.result()
        if progress is not None:
            progress(AskProgress(tally))
        return asked.stopped

    def submit(self, columns: "Sequence[PlannedVoter]", examples: Sequence[Example]) -> "Future[str | None]":
        """Begin to call functions on examples, side by side with others; the result is why that ended early."""
        from deep.llm import Tally

        return run_in_loop(_Round(self, Tally()).all(columns, examples))

    def judgments(
        self, columns: "Sequence[PlannedVoter]", examples: Sequence[Example], *, call: bool
    ) -> list[dict[str, Judgment]]:
        """Return the judgments of each example by voter, with `call` after the calls that were never made."""
        if not columns:
            return [{} for _ in examples]
        found = run_in_loop(self._read(columns, examples)).result()
        if call and any(None in row.values() for row in found):
            self.submit(columns, examples).result()
            found = run_in_loop(self._read(columns, examples)).result()
        none = FAILED if call else NOT_ASKED
        return [{voter: judgment or none for voter, judgment in row.items()} for row in found]

    async def _read(
        self, columns: "Sequence[PlannedVoter]", examples: Sequence[Example]
    ) -> list[dict[str, Judgment | None]]:
        keys = [{column.name: _function(column).key(example) for column in columns} for example in examples]
        return [
            {voter: self._recent.get(key) or self.known(key) or self._failed.get(key) for voter, key in row.items()}
            for row in keys
        ]

    def left(self, columns: "Sequence[PlannedVoter]", examples: Iterable[Example]) -> Iterator[float | None]:
        """Yield the dollars of each call that is still to be made, of the same texts once; nothing is called."""
        for column in columns:
            judge, keys = _function(column), set[str]()
            for example in filter(attrgetter("has_texts"), examples):
                key = judge.key(example)
                if key not in keys and (not Path(self._path).is_file() or self.known(key) is None):
                    yield judge.cost
                keys.add(key)

    def known(self, key: str) -> Judgment | None:
        """Return the answer that is kept under a key; None for one that is no judgment, which is asked again."""
        try:
            row = self._opened().execute("SELECT judgment FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise self._unusable(error) from None
        with suppress(AttributeError, TypeError, ValueError):
            return None if row is None else from_text(row[0])
        return None

    async def keep(self, key: str, voter: str, judgment: Judgment, text: str) -> None:
        """Keep an answer, on disk when this returns, with those that come at the same moment; a failure in memory."""
        if judgment.reason == "failed":
            self._failed[key] = judgment
            return
        self._recent[key] = judgment
        while len(self._recent) > RECENT_JUDGMENTS:
            del self._recent[next(iter(self._recent))]
        self.spent += judgment.cost or 0.0
        if not self._coming:
            loop = asyncio.get_running_loop()
            self._written = loop.create_future()
            loop.call_soon(self._write, self._written)
        self._coming.append((key, voter, text, judgment.cost))
        await asyncio.shield(self._written)  # one that is cancelled cancels no other

    def _write(self, written: asyncio.Future[None]) -> None:
        """Write the answers that have come, as one transaction."""
        rows, self._coming = self._coming, []
        try:
            with sqlite_log.transaction(self._opened()) as book:  # all or none of them
                book.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            written.set_exception(self._unusable(error))
        else:
            written.set_result(None)
            loop, wait = asyncio.get_running_loop(), sqlite_log.SECONDS_OUTSIDE
            if loop.time() >= self._due:
                loop.call_later(wait, sqlite_log.move_log_into_file, book)
                self._due = loop.time() + wait

    def _opened(self) -> sqlite3.Connection:
        """Return the answers, opened by the loop's thread, the only one to use them."""
        if self._book is None:
            try:
                book = sqlite_log.opened(self._path, TABLE)
                weakref.finalize(self, sqlite_log.close, book)
                self.spent = book.execute("SELECT total(cost) FROM answers").fetchone()[0]
            except sqlite3.Error as error:
                raise self._unusable(error) from None
            self._book = book
        return self._book

    @property
    def _path(self) -> str:
        """The file of answers; SQLite keeps those without a name in a file that goes with the connection."""
        if self.ledger is None:
            return ""
        if "://" in self.ledger:
            raise InputError("`ledger` must be a file where functions are judges. Got a URL. Ask them in another run.")
        path = Path(self.ledger)
        return str(path.with_name(f"{path.stem}.functions{path.suffix or '.sqlite'}"))

    def _unusable(self, error: sqlite3.Error) -> Exception:
        from deep.llm import LedgerError

        return LedgerError(f"`ledger` {self._path} cannot be used for the answers of functions: {error}.")

    def tell(self, voter: str, example: Example, error: BaseException) -> None:
        """Tell on standard error of the first failure of each kind."""
        kind = voter, type(error).__name__
        if kind not in self._told:
            self._told.add(kind)
            sys.stderr.write(f"{printable(f'{voter} failed on {_item(example)}: {_said(error)}')}\n")

    def room(self, column: "PlannedVoter") -> tuple[int, asyncio.Semaphore]:
        """Return how many calls of a function there may be side by side, and what counts them."""
        most = [n for n in (_function(column).workers, self.workers) if n is not None]
        n = min(most, default=WORKERS)
        return n, self._rooms.setdefault(column.name, asyncio.Semaphore(n))


@dataclass(eq=False)
class _Round:
    """One time of asking, all of it in the loop of functions."""

    calls: Calls
    tally: "Tally"
    stopped: str | None = None
    errors: dict[str, BaseException] = field(default_factory=dict)

    async def all(
        self, columns: "Sequence[PlannedVoter]", examples: Iterable[Example], *, alone: bool = False
    ) -> str | None:
        """Call all functions on all examples; where they are alone, each on the first before all else."""
        begin, first = next(((n, e) for n, e in enumerate(examples, start=1) if alone and e.has_texts), (0, None))
        if first is not None:
            await asyncio.gather(*(self._one(column, first, self.calls.room(column)[1]) for column in columns))
            if len(self.errors) == len(columns):
                said = "; ".join(f"{column.name}: {_said(self.errors[column.name])}" for column in columns)
                raise InputError(
                    f"`judges` must judge the first item, or nothing more is asked. Got failures on {_item(first)}: "
                    f"{printable(said)}. Mend them."
                )
        await _together(self._column(column, islice(iter(examples), begin, None)) for column in columns)
        return self.stopped

    async def _column(self, column: "PlannedVoter", examples: Iterator[Example]) -> None:
        n, room = self.calls.room(column)
        await _together(self._work(column, examples, room) for _ in range(n))

    async def _work(self, column: "PlannedVoter", examples: Iterator[Example], room: asyncio.Semaphore) -> None:
        for example in examples:
            if self.stopped is not None:
                return
            await self._one(column, example, room)

    async def _one(self, column: "PlannedVoter", example: Example, room: asyncio.Semaphore) -> None:
        """Bring one judgment to an end; the same texts, called with at this moment, are waited for."""
        if not example.has_texts:
            return
        calls, judge, voter = self.calls, _function(column), column.name
        key = judge.key(example)
        while key in calls.open:
            await asyncio.wait([calls.open[key]])
        found = calls.known(key)
        if found is not None:
            self.tally.find(voter, {"state": "done", "vote": found.vote, "reason": found.reason})
            return
        calls.open[key] = mine = asyncio.get_running_loop().create_future()
        try:
            async with room:
                if self._afford(judge):
                    await self._call(judge, voter, key, example)
        finally:
            del calls.open[key]
            mine.set_result(None)

    def _afford(self, judge: "FunctionJudge[..., object]") -> bool:
        """Reserve the cost of a call; stop where the budget has no room for it."""
        calls, budget = self.calls, self.calls.budget
        if budget is not None and calls.spent + calls.reserved + (judge.cost or 0.0) > budget:
            self.stopped = self.stopped or "budget"
        return self.stopped is None

    async def _call(self, judge: "FunctionJudge[..., object]", voter: str, key: str, example: Example) -> None:
        """Call a function once, and keep its answer."""
        calls = self.calls
        calls.reserved += judge.cost or 0.0
        self.tally.attempts += 1
        try:
            judgment = await judge.judged(example)
            text = to_text(judgment)
        except Exception as error:
            judgment, text = FAILED, ""
            self.errors[voter] = error
            calls.tell(voter, example, error)
        finally:
            calls.reserved -= judge.cost or 0.0
        await calls.keep(key, voter, judgment, text)
        if judgment.reason == "failed":
            self.tally.fail(voter)
        else:
            self.tally.answer(voter, judgment, judgment.cost)


async def _together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for some work; where one part breaks, end the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _function(column: "PlannedVoter") -> "FunctionJudge[..., object]":
    return cast("FunctionJudge[..., object]", column.judge)


def _item(example: Example) -> str:
    return f"{example.example_id!r} of {example.dataset!r}"


def _said(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # the words of an error are the function's own code too
        text = "(without words)"
    return f"{type(error).__name__}: {' '.join(text.split())[:300]}"
