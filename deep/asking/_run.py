"""Asking what a plan still lacks, with a live line, a budget and a way to stop."""

import asyncio
import math
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from deep.asking._plan import Plan, read_answer
from deep.asking._progress import live_line
from deep.asking._replay import Entry, ProgramId, Replay
from deep.asking._vote_files import Outputs, Row, chunks
from deep.console import progress_bars
from deep.exceptions import InputError
from deep.llm import (
    BatchRunner,
    Budget,
    Caller,
    Client,
    ConcurrencyLimit,
    History,
    Ledger,
    ModelGate,
    PriceBook,
    Request,
    RetryPolicy,
    Runner,
    Tally,
    Terms,
    Throttle,
)
from deep.prompt_pool import pool_judgments
from deep.records import Example, Judgment

__all__ = ["Outcome", "Settings", "api_key", "run_plan", "unknown_line", "write_votes"]

OPENAI_URL = "https://api.openai.com/v1"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a plan is to be carried out; the options of the command, checked."""

    base_url: str
    key_variable: str
    ledger: str
    prices: PriceBook
    options: dict[str, Any]
    concurrency: str = "auto"
    rpm: float | None = None
    tpm: float | None = None
    budget: float | None = None
    timeout: float = 120.0
    backoff: float = 0.5
    max_attempts: int = 10
    at_most_once: bool = False
    retry_failed: tuple[str, ...] = ()
    batch: bool = False
    poll: float = 30.0
    max_failure_rate: float = 0.05

    def __post_init__(self) -> None:
        ConcurrencyLimit.parse(self.concurrency)
        for name in ("rpm", "tpm", "timeout", "max_attempts", "poll"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InputError(f"`{name}` must be above 0. Got {value!r}.")
        for name, most in (("backoff", math.inf), ("budget", math.inf), ("max_failure_rate", 1.0)):
            value = getattr(self, name)
            if (value is not None and not 0 <= value <= most) or value == math.inf:
                raise InputError(f"`{name}` must be 0 or more{', up to 1' if most == 1 else ''}. Got {value!r}.")


@dataclass(slots=True)
class Outcome:
    """What a run did.

    Parameters
    ----------
    tally : Tally
    stopped : str or None
        ``budget`` or ``interrupted``; None where the run came to its end.
    unknown : int
        Requests that were in flight when an earlier run died.
    """

    tally: Tally
    stopped: str | None
    unknown: int


def api_key(variable: str, base_url: str) -> str | None:
    """Return the key from the environment; None where there is none and the endpoint is not OpenAI's own.

    Raises
    ------
    InputError
        A key is needed or is not printable ASCII. The message never holds what was given.
    """
    if not variable.isidentifier():
        raise InputError("`api_key_env` must be the name of an environment variable. Got something else.")
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise InputError(f"`{variable}` must hold a key of printable ASCII characters. Got something else.")
    if not key and base_url == OPENAI_URL:
        raise InputError(
            f"`{variable}` must hold the API key for {OPENAI_URL}. Got nothing. Set it, or give `base_url`."
        )
    return key or None


def run_plan(plan: Plan, settings: Settings | None) -> Outcome:
    """Ask what the ledger lacks of a plan; where it asks nobody, there are no settings and nothing to do."""
    if settings is None:
        return Outcome(Tally(0), None, 0)
    total = None if plan.judges else plan.n_requests
    return ask(settings, endpoint=plan.endpoint, requests=plan.requests, programs=plan.programs, total=total)


def ask(
    settings: Settings,
    *,
    endpoint: str,
    requests: Callable[[], Iterable[Request]] = tuple,
    programs: Callable[[], Iterable[Entry]] = tuple,
    total: int | None = None,
) -> Outcome:
    """Ask what the ledger lacks of some requests, and of what programs ask, until no program asks anything more."""
    return asyncio.run(_ask(settings, endpoint, requests, programs, total))


async def _ask(
    settings: Settings,
    endpoint: str,
    requests: Callable[[], Iterable[Request]],
    programs: Callable[[], Iterable[Entry]],
    total: int | None,
) -> Outcome:
    concurrency = ConcurrencyLimit.parse(settings.concurrency)
    tally = Tally(total)
    client = Client(
        settings.base_url,
        api_key(settings.key_variable, settings.base_url),
        timeout=settings.timeout,
        max_connections=concurrency.maximum + 8,
    )
    ledger = Ledger(
        settings.ledger,
        options=settings.options,
        at_most_once=settings.at_most_once,
        retry=settings.retry_failed,
    )
    try:
        async with ledger:
            terms = await _terms(settings, concurrency, ledger)
            runner = await _runner(endpoint, settings, ledger, client, terms, tally)
            unknown = ledger.unknown
            if unknown:
                sys.stderr.write(f"{unknown_line(unknown, asked_again=not settings.at_most_once)}\n")
            with _stop_on_signal(runner), live_line(tally):
                await _run_waves(runner, settings, endpoint, ledger.run, requests, programs)
    finally:
        await client.close()
    return Outcome(tally, runner.stopped, unknown)


async def _run_waves(
    runner: Runner | BatchRunner,
    settings: Settings,
    endpoint: str,
    run: int,
    requests: Callable[[], Iterable[Request]],
    programs: Callable[[], Iterable[Entry]],
) -> None:
    """Ask everything that can be asked at once, and again what the answers lead programs to ask."""
    with History(settings.ledger) as history:
        options: Any = {"run": run, "at_most_once": settings.at_most_once, "retry": settings.retry_failed}
        replay = Replay(programs, endpoint, history, **options)
        await runner.run(lambda: chain(requests(), replay.requests()))
        while replay.n_open and runner.stopped is None:
            replay.n_open = 0
            await runner.run(replay.requests)


def unknown_line(n: int, *, asked_again: bool) -> str:
    """Return the sentence about requests whose answer may have been lost, and paid."""
    fate = "are asked again, so each may be paid twice" if asked_again else "are left without a vote"
    return f"{n} requests were in flight when an earlier run ended; their outcome is unknown, and they {fate}."


async def _runner(
    endpoint: str, settings: Settings, ledger: Ledger, client: Client, terms: Terms, tally: Tally
) -> Runner | BatchRunner:
    gate = ModelGate(await ledger.known_quirks())
    if settings.batch:
        runner = partial(BatchRunner, endpoint=endpoint, poll=settings.poll)
        return runner(ledger, client, read_answer, terms, gate, tally)
    waiting = await ledger.open_batches(endpoint)
    if waiting:
        n = sum(batch.size for batch in waiting)
        raise InputError(f"`batch` must be given: {n} requests wait in a batch. Got a run without. Collect them first.")
    caller = Caller(ledger, client, read_answer, terms, gate, tally)
    return Runner(ledger, caller, tally, workers=terms.concurrency.maximum)


async def _terms(settings: Settings, concurrency: ConcurrencyLimit, ledger: Ledger) -> Terms:
    before = 0.0 if settings.budget is None else await ledger.spent_by_others()
    return Terms(
        prices=settings.prices,
        concurrency=concurrency,
        requests_per_minute=Throttle(settings.rpm),
        tokens_per_minute=Throttle(settings.tpm),
        retry=RetryPolicy(
            attempts=settings.max_attempts,
            wait_initial=settings.backoff,
            jitter=settings.backoff,
            at_most_once=settings.at_most_once,
        ),
        budget=Budget(settings.budget, before),
    )


@contextmanager
def _stop_on_signal(runner: Runner | BatchRunner) -> Iterator[None]:
    """Let Ctrl-C and a plain kill end the run cleanly; the second one does not wait for what is in flight."""
    loop = asyncio.get_running_loop()
    handled = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, runner.stop, "interrupted")
            handled.append(number)
        except (NotImplementedError, RuntimeError, ValueError):
            continue  # not the main thread, or a system without signals
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


def write_votes(plan: Plan, settings: Settings | None, out: Path, tally: Tally) -> None:
    """Write the votes of a plan: those that were asked for from the ledger alone, the others as they are made.

    Counts those of staged judges and of judges that ask nobody.
    """
    documents = any(example.document_id is not None for example in plan.examples)
    asked = {} if settings is None else {"max_failure_rate": settings.max_failure_rate}
    outputs = Outputs(
        out,
        plan.voters,
        soft=plan.soft_voters,
        metadata={**plan.metadata(None if settings is None else settings.base_url), **asked},
        documents=documents,
        evidence=bool(plan.judges),
    )
    with ExitStack() as stack:
        history = None if settings is None else stack.enter_context(History(settings.ledger))
        rows = _rows(plan, history, tally)
        if plan.offline:
            step = stack.enter_context(progress_bars())("judging", plan.n_examples)
            rows = _counted(rows, step)
        outputs.write(rows)


def _counted(rows: Iterable[Row], step: Callable[[], None]) -> Iterator[Row]:
    for row in rows:
        yield row
        step()


def _rows(plan: Plan, history: History | None, tally: Tally) -> Iterator[Row]:
    for examples in chunks(plan.examples):
        rows = [Row(example) for example in examples]
        if history is not None:
            _enter_asked(plan, rows, history, tally)
        for row, judgments in zip(rows, plan.offline.judge(examples), strict=True):
            for voter, judgment in judgments.items():
                tally.judge(voter, judgment)
                _enter(row, voter, [judgment])
        yield from rows


def _enter_asked(plan: Plan, rows: Sequence[Row], history: History, tally: Tally) -> None:
    """Enter what prompts and staged judges say, which is all in the ledger."""
    voters, examples = plan.prompt_voters, [row.example for row in rows]
    found: dict[tuple[str, str, str], Any] = {}
    for dataset in dict.fromkeys(str(example.dataset) for example in examples):
        items = [example.example_id for example in examples if example.dataset == dataset]
        said = history.judgments(plan.endpoint, dataset, items, voters, plan.samples)
        found |= {(dataset, item, voter): judgments for (item, voter), judgments in said.items()}
    staged = _staged(plan, examples, history, tally)
    for row in rows:
        identity = str(row.example.dataset), row.example.example_id
        for voter in voters:
            _enter(row, voter, found[(*identity, voter)])
        for voter, judgment in staged.get(identity, ()):
            _enter(row, voter, [judgment])
            row.evidence[voter] = judgment.evidence


def _staged(
    plan: Plan, examples: Sequence[Example], history: History, tally: Tally
) -> dict[tuple[str, str], list[tuple[str, Judgment]]]:
    """Return what the staged judges say, by dataset and item."""
    said: dict[tuple[str, str], list[tuple[str, Judgment]]] = {}
    replay = Replay(lambda: plan.programs(examples), plan.endpoint, history)
    for identity, value in replay.values():
        judgment = value if isinstance(value, Judgment) else _broken(identity, value)
        tally.judge(identity.voter, judgment)
        said.setdefault((identity.dataset, identity.item), []).append((identity.voter, judgment))
    return said


def _broken(identity: ProgramId, value: object) -> Judgment:
    """Return that a judge came to no judgment; its answers are paid for, and those of all other examples are good."""
    sys.stderr.write(f"{identity.voter} broke on {identity.item!r} of {identity.dataset!r}: {value!r}\n")
    return Judgment(vote=-1, reason="unparsable")


def _enter(row: Row, voter: str, judgments: Sequence[Judgment]) -> None:
    judgment = judgments[0] if len(judgments) == 1 else pool_judgments(judgments)
    if judgment.reason is None:
        row.votes[voter] = judgment.vote
    else:
        row.reasons[voter] = judgment.reason
    if judgment.score is not None:
        row.scores[voter] = judgment.score
