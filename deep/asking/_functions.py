"""Functions as judges: how one is called on an example, and its call as a request like any other."""

import asyncio
import hashlib
import inspect
import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import cache, partial, update_wrapper
from operator import attrgetter
from pathlib import Path
from textwrap import dedent
from threading import Thread, current_thread
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, overload
from uuid import uuid4

from deep import llm  # its names are loaded as they are used: most of it is SQLAlchemy's
from deep._util import sqlite_log
from deep._util.scales import Scale
from deep.exceptions import InputError, note
from deep.judges import LLMReply, OfflineJudge, VoteQuestion, parse_voter, voter_name
from deep.llm import RAISED, CallError, LedgerError, Reply, Request, json_text
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from deep.llm import Announce, Failed, Ledger, Terms

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

AnyFunction = Callable[..., object]
"""A function that judges; see :func:`judge`."""

SOURCE = "source"

# Calls of a function side by side, unless the function says another number. More help functions that wait for a
# service, and may flood it. Chosen; no measurement is known.
DEFAULT_WORKERS = 16

# The name of the thread in which all is asked.
LOOP_THREAD_NAME = "deep-functions"

# Seconds between two looks at a run, to show its progress and to hear Ctrl-C. Chosen; no measurement is known.
SECONDS_BETWEEN_LOOKS = 0.5

# Answers kept at hand for whoever reads the votes after a run: to read them from the ledger takes longer. The rest of a
# longer run is read from the ledger, so that memory does not grow with the rows.
MOST_ANSWERS = 1 << 16

# Answers of an earlier file that are entered in one transaction. Fewer would cost a commit each; more would hold the
# ledger longer.
ENTERED_AT_ONCE = 1000

_JUDGE_NAME = re.compile(r"\w[\w.-]*")
# The values that parameters of names of their own stand for, by their number.
_PARAMETERS_BY_COUNT = {1: ("example",), 2: ("source", "claim"), 3: ("question", "source", "claim")}

_TEXT_PARAMETERS = _PARAMETERS_BY_COUNT[3]
_JUDGMENT_FIELDS = tuple(field.name for field in fields(Judgment))
_judgment_values = attrgetter(*_JUDGMENT_FIELDS)
_NUMBER_TYPES = (int, float)

# What a function may return, for the message on anything else.
_ACCEPTED_ANSWERS = "True or False, None, a number from 0 to 1, (vote, rationale), a mapping with `vote`, or a Judgment"


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
        scale: str | None = None,
    ) -> None:
        self.name = str(name or getattr(function, "__name__", type(function).__name__))
        if not _JUDGE_NAME.fullmatch(self.name):
            raise InputError(
                f"`name` must be letters, digits and .-_ for a judge. Got {self.name!r}. Give one: judge(name=...)."
            )
        if cost is not None and not 0 <= cost < float("inf"):
            raise InputError(f"`cost` must be 0 or more dollars a call. Got {cost!r}.")
        if workers is not None and workers < 1:
            raise InputError(f"`workers` must be 1 or more. Got {workers!r}.")
        self._function, self._roles = function, _parameter_roles(function, self.name).items()
        roles = {role for _, role in self._roles}
        self._texts = [text for text in _TEXT_PARAMETERS if text in roles or "example" in roles]
        self.cost, self.workers = cost, workers
        self.scale = None if scale in (None, "binary") else Scale.parse(scale)
        self._is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
        source = _source_code(function) if version == SOURCE else version
        self.is_kept = source is not None
        identity = [self.name, source if source is not None else str(uuid4()), *([] if scale is None else [scale])]
        self.version = hashlib.sha256("\0".join(identity).encode()).hexdigest()
        update_wrapper(self, function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as it is."""
        return self._function(*args, **kwargs)

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        version = self.version if self.is_kept else None
        scale = {} if self.scale is None else {"scale": str(self.scale)}
        return {"kind": "function", "judge": self.name, "version": version, "model": None, "cost": self.cost} | scale

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
            value = call() if self._is_async else await asyncio.get_running_loop().run_in_executor(None, _call, call)
            value = await value if inspect.isawaitable(value) else value
        except BaseException as error:  # one that is no Exception would end the loop of all functions
            task = asyncio.current_task()
            if isinstance(error, Exception | GeneratorExit) or (task is not None and task.cancelling()):
                raise
            raise RuntimeError(describe_error(error)) from error
        return judgment_of(value, cost=self.cost, seconds=time.monotonic() - started, scale=self.scale)

    def label(self, example: Example) -> Judgment:
        """Judge one example; where the function raises, so does this."""
        return run_in_loop(self.judged(example)).result()


def _call(call: Callable[[], object]) -> object:
    """Call a function in a thread, where a StopIteration, as of `next`, would never arrive; any other fails as well."""
    try:
        return call()
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            raise
        raise RuntimeError(describe_error(error)) from error


@cache
def _function_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of all functions, which stays: a client that an async function keeps belongs to one loop."""
    loop = asyncio.new_event_loop()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_function_loop.cache_clear)  # a forked process has no such thread
    loop.set_default_executor(ThreadPoolExecutor(1024, "deep-function"))  # how many are in use is each judge's affair
    Thread(target=loop.run_forever, name=LOOP_THREAD_NAME, daemon=True).start()
    return loop


def run_in_loop(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Begin some work in the loop of all functions, from any other thread."""
    return asyncio.run_coroutine_threadsafe(work, _function_loop())


def wait_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Do some work in the loop of all functions, and wait for it; what a function asks for there has another loop."""
    if current_thread().name == LOOP_THREAD_NAME:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, work).result()
    future = run_in_loop(work)
    try:
        while not wait([future], SECONDS_BETWEEN_LOOKS).done:
            pass  # some systems see no Ctrl-C in a longer wait
        return future.result()
    except KeyboardInterrupt:  # before anything is asked
        future.cancel()
        raise


def takes_nothing(function: AnyFunction) -> bool:
    """Return whether something can be called without anything: a class of judges, or what makes one."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return isinstance(function, type)
    return True


def _parameter_roles(function: AnyFunction, name: str) -> dict[str, str]:
    """Return the value that each parameter stands for; a slash before the name of one that is given by its place."""
    known_names = (*_TEXT_PARAMETERS, "example")
    kinds = inspect.Parameter
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise InputError(f"`function` must be a function of (source, claim). Got {function!r:.60}.") from None
    required = [
        parameter
        for parameter in parameters
        if parameter.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
        and (parameter.default is kinds.empty or parameter.name in known_names)
    ]
    order = _PARAMETERS_BY_COUNT.get(len(required), ())
    free_roles = [role for role in order if role not in {parameter.name for parameter in required}]
    others = [parameter for parameter in required if parameter.name not in known_names]
    if not required or len(others) > len(free_roles):
        names = ", ".join(parameter.name for parameter in required) or "nothing"
        raise InputError(
            f"`judges` must be functions of (source, claim), (question, source, claim) or an Example. Got {name}, "
            f"which takes {names}. Wrap it in one that does."
        )
    roles = {parameter.name: free_roles.pop(0) if parameter in others else parameter.name for parameter in required}
    by_place = {parameter.name for parameter in required if parameter.kind is kinds.POSITIONAL_ONLY}
    return {f"/{name}" if name in by_place else name: role for name, role in roles.items()}


def _source_code(function: AnyFunction) -> str | None:
    """Return the text of a function, or of the class of a callable object; None where it cannot be found."""
    try:
        return dedent(inspect.getsource(function if hasattr(function, "__name__") else type(function)))
    except (OSError, TypeError):
        return None


def judgment_of(
    answer: object, *, cost: float | None = None, seconds: float | None = None, scale: Scale | None = None
) -> Judgment:
    """Return the judgment that a function's value stands for, with its cost and time where it does not tell them.

    An answer on a scale is a score, and a vote of 1 from the middle of the scale on.

    Examples
    --------
    >>> from deep.asking._functions import judgment_of
    >>> judgment_of(True).vote, judgment_of(None).reason, judgment_of(0.25).vote, judgment_of(0.25).score
    (1, 'abstained', 0, 0.25)
    >>> judgment_of((False, "It rose.")).rationale, judgment_of({"vote": 1, "cost": 0.01}).cost
    ('It rose.', 0.01)
    >>> from deep._util.scales import Scale
    >>> judgment_of(4, scale=Scale.parse("1-5")).score, judgment_of("bad", scale=Scale.parse("bad<good")).vote
    (4.0, 0)
    """
    if isinstance(answer, Judgment):
        if answer.cost is not None and not 0 <= answer.cost < float("inf"):
            raise TypeError(f"returned a cost of {answer.cost!r}; it is 0 or more dollars")
        if scale is not None and answer.vote != ABSTAIN and answer.vote != scale.vote(answer.score):
            raise TypeError(f"returned {answer!r:.80}; vote and score must agree on its scale {scale}")
        if scale is not None and answer.vote == ABSTAIN:
            answer = replace(answer, score=None)  # a grade beside a reason for none is no answer
        own_cost = cost if answer.cost is None else answer.cost
        return replace(answer, cost=own_cost, seconds=seconds if answer.seconds is None else answer.seconds)
    if isinstance(answer, Mapping):
        unknown = sorted(map(str, answer.keys() - set(_JUDGMENT_FIELDS)))
        if unknown or not {"vote", "reason"} & answer.keys():
            raise TypeError(
                f"returned a mapping with {', '.join(unknown) or 'no vote'}; its keys are {', '.join(_JUDGMENT_FIELDS)}"
            )
        own = judgment_of(answer.get("vote"), scale=scale)
        if scale is not None and own.score is not None and answer.get("score", own.score) != own.score:
            raise TypeError(f"returned {answer!r:.80}; vote and score must agree on its scale {scale}")
        judgment = replace(own, **_tuples_as_lists({n: v for n, v in answer.items() if n != "vote"}))
        return judgment_of(judgment, cost=cost, seconds=seconds, scale=scale)
    if isinstance(answer, tuple) and len(answer) == 2:
        judgment = judgment_of(answer[0], cost=cost, seconds=seconds, scale=scale)
        return replace(judgment, rationale=None if answer[1] is None else str(answer[1]))
    return _judgment_of_value(answer.item() if hasattr(answer, "item") else answer, scale, cost, seconds)


def _judgment_of_value(value: Any, scale: Scale | None, cost: float | None, seconds: float | None) -> Judgment:
    """Return the judgment of a vote, a soft vote or a grade."""
    is_none = type(value) is int and value == ABSTAIN and (scale is None or scale.vote(value) == ABSTAIN)
    if value is None or is_none:
        return Judgment(ABSTAIN, "abstained", cost=cost, seconds=seconds)
    if scale is not None:
        number = scale.read(value)
        if number != number:
            raise TypeError(f"returned {value!r:.80}; its scale is {scale}")
        return Judgment(scale.vote(number), score=number, cost=cost, seconds=seconds)
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise TypeError(f"returned {value!r:.80}; a judge returns {_ACCEPTED_ANSWERS}")
    score = None if value in (0, 1) and not isinstance(value, float) else float(value)
    return Judgment(int(value >= 0.5), score=score, cost=cost, seconds=seconds)


def judgment_to_json(judgment: Judgment) -> str:
    """Return a judgment as JSON, without the fields at their defaults."""
    values = zip(_JUDGMENT_FIELDS, _judgment_values(judgment), strict=True)
    # A score or a cost of 0 is a value.
    return json.dumps({name: value for name, value in values if value or type(value) in _NUMBER_TYPES})


def judgment_from_json(text: str) -> Judgment:
    """Return the judgment of :func:`judgment_to_json`."""
    return Judgment(**_tuples_as_lists(json.loads(text)))


def _tuples_as_lists(values: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**values, **{name: tuple(values[name]) for name in ("evidence", "samples") if name in values}}


@overload
def judge(function: Callable[P, R], /) -> FunctionJudge[P, R]: ...
@overload
def judge(
    *,
    name: str | None = None,
    version: str | None = SOURCE,
    cost: float | None = None,
    workers: int | None = None,
    scale: str | None = None,
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
    scale : str, optional
        Of grades, as ``1-5``, ``0-100``, ``A-E`` or ``bad<fair<good``, from the worst to the best: the function returns
        one of them in place of a vote.

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


# The judgment of a call that has no answer.
FAILED_JUDGMENT = Judgment(-1, "failed")
# The name of the endpoint under which the ledger keeps what functions answer.
FUNCTIONS = "functions"


def as_request(key: str, voter: str, dataset: str = "", item: str = "", **details: Any) -> Request:
    """Return a call of a function as the ledger keeps it: by the hash of name, version and texts, not by the texts."""
    body = {"model": voter, "call": key}
    return Request(body, FUNCTIONS, parse_voter(voter).name, FUNCTIONS, voter, dataset, item, **details)


@dataclass(frozen=True, slots=True)
class CallReply(Reply):
    """Answer of a function: the judgment, beside the text that the ledger keeps of it."""

    judgment: Judgment = FAILED_JUDGMENT


def _read_call(reply: LLMReply | None) -> Judgment:
    """Return the judgment that a function has given; without one it has failed."""
    if isinstance(reply, CallReply):
        return reply.judgment  # to read its text again would take as long as all else of a call
    return FAILED_JUDGMENT if reply is None else judgment_from_json(reply.text or "")


def _reply_of(judgment: str) -> str:
    """Return a judgment in the form in which the ledger keeps the answers of all who are asked."""
    return json.dumps({"choices": [{"message": {"content": judgment}, "finish_reason": "stop"}]})


class FunctionCaller:
    """Makes requests of the calls of a function, and carries them out.

    Parameters
    ----------
    judge : FunctionJudge
        The function, with its name and version.
    workers : int, optional
        The most calls of it side by side, where it does not say itself that they are fewer; else 16.

    Attributes
    ----------
    answers : dict of str to Judgment
        Those of this process by their key, each until it is read: a ledger that was asked just now need not be read.
    """

    def __init__(self, judge: "FunctionJudge[..., object]", workers: int | None = None) -> None:
        most = [n for n in (judge.workers, workers) if n is not None]
        self.judge, self.workers, self._voter = judge, min(most, default=DEFAULT_WORKERS), judge.voter()
        self._question = VoteQuestion(step="call", messages=[], version=judge.version, read=_read_call)
        self._room = asyncio.Semaphore(self.workers)
        self._error_kinds: set[str] = set()
        self.answers: dict[str, Judgment] = {}

    def request(self, example: Example) -> Request:
        """Return the call on an example, as the ledger keeps it."""
        key = self.judge.key(example)
        call = partial(self._answer, example, key)
        return as_request(key, self._voter, str(example.dataset), example.example_id, context=self._question, call=call)

    async def _answer(self, example: Example, key: str, terms: "Terms", announce: "Announce") -> "Reply | Failed":
        """Call the function once, as soon as there is room for it, beside its other calls and in the budget."""
        judge, voter, dollars = self.judge, self._voter, 0.0
        async with self._room:
            await terms.budget.admit(judge.cost, voter)
            try:
                await announce(judge.cost)
                dollars, started = judge.cost or 0.0, time.monotonic()
                try:
                    judgment = await judge.judged(example)
                    text = judgment_to_json(judgment)
                except Exception as error:
                    dollars = 0.0
                    self._tell(example, error)
                    return llm.Failed(CallError(RAISED, describe_error(error)), time.monotonic() - started)
                dollars = judgment.cost or 0.0
                if judgment.reason == "failed":  # it says so itself, and is called again like one that raises
                    return llm.Failed(CallError(RAISED, judgment.rationale or "failed"), time.monotonic() - started)
                if len(self.answers) < MOST_ANSWERS:
                    self.answers[key] = judgment
                raw = _reply_of(text)
                return CallReply(text, raw=raw, cost=judgment.cost, seconds=judgment.seconds, judgment=judgment)
            finally:
                terms.budget.settle(judge.cost, dollars, voter)

    def _tell(self, example: Example, error: BaseException) -> None:
        """Tell on standard error of the first failure of each kind."""
        kind = type(error).__name__
        if kind not in self._error_kinds:
            self._error_kinds.add(kind)
            note(f"{self._voter} failed on {example.example_id!r} of {example.dataset!r}: {describe_error(error)}")


def legacy_answers_file(ledger: str) -> Path | None:
    """Return the file beside a ledger in which functions once kept their answers; None where there is none."""
    path = Path(ledger)
    file = path.with_name(f"{path.stem}.functions{path.suffix or '.sqlite'}")
    return file if "://" not in ledger and file.is_file() else None


async def import_legacy_answers(ledger: "Ledger") -> None:
    """Take over the answers of functions from the time when they had a file of their own, which gets another name.

    Raises
    ------
    LedgerError
        It cannot be read.
    """
    file = legacy_answers_file(ledger.target)
    if file is None:
        return
    try:
        sqlite_log.set_aside_foreign_log(str(file))
        with closing(sqlite3.connect(file)) as book:
            rows = book.execute("SELECT key, voter, judgment FROM answers")
            n = 0
            while part := rows.fetchmany(ENTERED_AT_ONCE):
                n += await ledger.call(_import_answers, part)
    except sqlite3.Error as error:
        raise LedgerError(
            f"`ledger` must be able to take what {file} keeps. Got {error}. Move that file away to go on without it."
        ) from None
    entered = file.with_name(f"{file.name}.entered")
    file.rename(entered)
    ledger.entered.append(f"{n} answers of functions that were kept in {file} are in {ledger.name} now ({entered}).")


def _import_answers(connection: "Connection", rows: Sequence[tuple[str, str, str]]) -> int:
    """Write answers of functions as those of a run before all others; return how many."""
    from deep.llm import schema

    now, n = time.time(), 0
    for key, voter, text in rows:
        try:
            call, judgment = as_request(key, voter), judgment_from_json(text)
        except (AttributeError, TypeError, ValueError):  # no judgment: the function is called again
            continue
        n += 1
        request: dict[str, object] = {"key": call.key, "owner": llm.NO_OWNER, "attempts": 1, "state": "done"}
        request |= {"queued": now, "finished": now, "requested_body": json_text(call.body)}
        request |= {"endpoint": FUNCTIONS, "model": voter, "sample": 0, "prompt": call.prompt, "prompt_hash": FUNCTIONS}
        request |= {"vote": judgment.vote, "reason": judgment.reason, "score": judgment.score}
        attempt: dict[str, object] = {"key": call.key, "number": 1, "run": llm.NO_OWNER, "started": now, "status": 200}
        attempt |= {"outcome": "answered", "reply": _reply_of(text), "finish_reason": "stop"}
        attempt |= {"cost": judgment.cost, "seconds": judgment.seconds}
        rows_of = (schema.requests, request), (schema.attempts, attempt)
        schema.write_all(connection, [schema.Write(table, "insert_or_keep", row) for table, row in rows_of])
    return n


def describe_error(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # the words of an error are the function's own code too
        text = "(without words)"
    return f"{type(error).__name__}: {' '.join(text.split())[:300]}"
