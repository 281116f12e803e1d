"""Asking what a plan still lacks, with a live count, a budget and a way to stop."""

import asyncio
import signal
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Protocol, cast

from deep import llm  # its names are loaded as they are used: most of it is SQLAlchemy's
from deep._util.entry_points import load_part
from deep._util.names import short_names
from deep.asking._functions import SECONDS_BETWEEN_LOOKS, import_legacy_answers, legacy_answers_file, wait_in_loop
from deep.asking._options import AskOptions, AskProgress, ProgressCallback, pace_text, quirk_lines
from deep.asking._plan import Plan
from deep.asking._replay import ProgramEntry, Replay, chunks, is_repair, may_repair, read_answer, repair_requests
from deep.exceptions import InputError, note, printable
from deep.records import ABSTAIN, Judgment


class RequestRunner(Protocol):
    """Takes requests to their answers, side by side."""

    @property
    def stopped(self) -> "llm.StopReason | None":
        """Why the run ended before its end."""

    async def run(self, requests: "Callable[[], Iterable[llm.Request]]") -> None:
        """Bring all requests to their end; called once for each wave of them."""


class StoppableRunner(RequestRunner, Protocol):
    """Calls of the endpoint, or the Batch API, which is a guest."""

    def stop(self, why: "llm.StopReason") -> None:
        """End the run cleanly."""


# Replies of a judge, and the share of them that cannot be read above which people are told. Half of ten tells early; a
# twentieth takes fifty replies. Chosen; no measurement is known.
LOSS_LIMITS = ((10, 0.5), (50, 0.05))

# Three endings show what a model does wrong, each on one line of a terminal.
MAX_ENDINGS_SHOWN = 3
# The most characters of such an ending: a line of a terminal.
LONGEST_ENDING = 80


class LossWatch:
    """Counts the replies of each judge that cannot be read, and tells once of one that loses too many.

    Parameters
    ----------
    tell : callable
        Called with a line for a judge, one for each of three endings, and one that says what to do.

    Examples
    --------
    >>> from deep.asking._run import LossWatch
    >>> watch = LossWatch(print)
    >>> for number in range(50):
    ...     watch.count("strict@1a2b/tiny", lost=number % 5 == 0, text="The claim may well hold.")
    strict@1a2b/tiny: 10 of 50 replies cannot be read. They end so:
      The claim may well hold.
      The claim may well hold.
      The claim may well hold.
      `deep prompts show strict` prints the answer that it asks for. Ctrl-C stops and keeps the answers so far.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._n_replies: Counter[str] = Counter()
        self._n_lost: Counter[str] = Counter()
        self._endings: dict[str, list[str]] = defaultdict(list)
        self._warned_voters: set[str] = set()
        self.first: str | None = None

    def read(self, request: "llm.Request", reply: "llm.Reply") -> Judgment | None:
        """Return the vote of a reply, and count it; a repair turn is not counted again."""
        judgment = read_answer(request, reply)
        if judgment is not None and not is_repair(request.context):
            if self.first is None and judgment.vote != ABSTAIN:
                judge = short_names([request.voter])[request.voter]
                self.first = f"First vote: {judge} gives item {request.item} a {judgment.vote}."
            self.count(request.voter, lost=judgment.reason == "unparsable", text=reply.text or "")
        return judgment

    def count(self, voter: str, *, lost: bool, text: str) -> None:
        """Count a reply of a judge; tell of it once, when more than the tolerated share are lost."""
        self._n_replies[voter] += 1
        self._n_lost[voter] += lost
        if lost and len(self._endings[voter]) < MAX_ENDINGS_SHOWN:
            self._endings[voter].append(" ".join(text.split())[-LONGEST_ENDING:])
        n, n_lost = self._n_replies[voter], self._n_lost[voter]
        if voter not in self._warned_voters and any(n >= least and n_lost > share * n for least, share in LOSS_LIMITS):
            self._warned_voters.add(voter)
            self._tell(f"{voter}: {n_lost} of {n} replies cannot be read. They end so:")
            for ending in self._endings[voter]:
                self._tell(f"  {ending}")
            command = f"`deep prompts show {voter.partition('@')[0]}`"
            self._tell(f"  {command} prints the answer that it asks for. Ctrl-C stops and keeps the answers so far.")


# A run of fewer seconds says nothing of itself. People wait so long without asking what goes on. Chosen; no measurement
# is known.
QUICK_SECONDS = 1.5

# A silence of these seconds is told, and again each time it has doubled. Chosen; no measurement is known. Doubling
# keeps a log of a night short.
FIRST_SILENCE = 20.0

# The answers after which the pace is told, where the seconds to go are more than a few. Fewer answers give no pace, and
# less than two minutes need none. Chosen; no measurement is known.
PACE_FROM, WORTH_SAYING = 5, 120.0


@dataclass(slots=True)
class RunOutcome:
    """The counts of a run, and how it ended.

    Parameters
    ----------
    tally : Tally
        Requests that were answered, given up or found in the ledger, by voter too, and the dollars of this run.
    stopped : str or None
        ``budget``, ``interrupted`` or `FROM_LEDGER`; None where the run came to its end.
    unknown : int
        Requests that were in flight when an earlier run died.
    in_doubt_twice : int
        Those that were so twice, and are left alone.
    quirks : tuple of Quirk
        Fields that LLMs of the endpoint refuse or ignore, as far as the ledger knows.
    """

    tally: "llm.Tally"
    stopped: str | None = None
    unknown: int = 0
    in_doubt_twice: int = 0
    quirks: "tuple[llm.Quirk, ...]" = ()


# Why a run that only reads its ledger has not asked what is missing there.
FROM_LEDGER = "ledger"


def run_plan(
    plan: Plan, options: AskOptions | None, progress: ProgressCallback | None = None, *, ask: bool = True
) -> RunOutcome:
    """Ask what the ledger lacks, and call functions likewise; without options, or not to `ask`, nobody is asked."""
    if not ask:
        return RunOutcome(llm.Tally(0), FROM_LEDGER)
    if options is None:
        return RunOutcome(llm.Tally(0))
    plan.check_costs(options.budget)
    # How much staged judges ask is known only as answers come.
    total = None if plan.staged else plan.n_requests + plan.n_complete * len(plan.functions)
    return _Run(
        plan.with_providers(options),
        plan.endpoint,
        plan.requests,
        plan.programs,
        AskProgress(llm.Tally(total)),
        progress,
        default=plan.asks_default,
        calls=[(f.workers, partial(plan.calls, f)) for f in plan.functions.values()],
        asks=plan.asks,
        alone=len(plan.functions) == len(plan.columns),
        items=0 if plan.staged else plan.n_complete,  # what it is said of is not known for staged judges
    ).run_to_end()


def history_of(ledger: str, plan: Plan) -> "llm.History | None":
    """Open a ledger to read, once it has the answers of an earlier file of functions; None where there is no ledger."""
    if plan.functions and legacy_answers_file(ledger) is not None and not llm.is_read_only(ledger):
        wait_in_loop(_take_over(ledger))
    return llm.History(ledger) if "://" in ledger or Path(ledger).is_file() else None


async def _take_over(target: str) -> None:
    async with llm.Ledger(target) as ledger:
        await import_legacy_answers(ledger)


def ask_requests(
    options: AskOptions,
    *,
    endpoint: str,
    programs: Callable[[], Iterable[ProgramEntry]],
    progress: ProgressCallback | None = None,
    default: bool = True,
) -> RunOutcome:
    """Ask the questions of programs that the ledger lacks, until no program asks anything more."""
    return _Run(options, endpoint, tuple, programs, AskProgress(llm.Tally()), progress, default).run_to_end()


@dataclass(eq=False)
class Engine:
    """An open ledger and all that asks by it, for whoever asks: a command, a server, texts that come one by one.

    Parameters
    ----------
    options : AskOptions
        The ledger, the endpoint, and the limits of a run.
    caller : Caller
        Holds the ledger, the client, the limits, what models lack, and the tally.
    history : History
        Of the same ledger.
    """

    options: AskOptions
    caller: "llm.Caller"
    history: "llm.History"

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        options: AskOptions,
        tally: "llm.Tally",
        read: "Callable[[llm.Request, llm.Reply], Judgment | None]" = read_answer,
        *,
        asks: bool = True,
        default: bool = True,
    ) -> AsyncIterator["Engine"]:
        """Open the ledger and a client; whether an LLM `asks` at all, and the endpoint of `options` by `default`."""
        ledger = llm.Ledger(
            options.ledger,
            options={**options.record, "repairs": options.repairs},
            at_most_once=options.at_most_once,
            retry=options.retry_failed,
        )
        async with AsyncExitStack() as stack:
            # Where no LLM is asked no request reaches it, and to load the library takes longer than many calls.
            client = options.client(default=default) if asks else None
            if client is not None:
                stack.push_async_callback(client.close)
            await stack.enter_async_context(ledger)
            await import_legacy_answers(ledger)
            terms = options.terms(0.0 if options.budget is None else await ledger.spent_by_others())
            gate = llm.ModelGate([*await ledger.known_quirks(), *options.quirks])
            caller = llm.Caller(ledger, cast("llm.Client", client), read, terms, gate, tally)
            # The ledger exists by now; the history only reads it, beside the thread that writes.
            yield cls(options, caller, stack.enter_context(llm.History(options.ledger)))

    async def ask(
        self,
        runner: RequestRunner,
        endpoint: str,
        requests: "Callable[[], Iterable[llm.Request]]",
        programs: Callable[[], Iterable[ProgramEntry]],
        *,
        first: "Callable[[Callable[[], Iterable[llm.Request]]], Awaitable[None]] | None" = None,
        more: "Callable[[Iterable[llm.Request]], Iterable[llm.Request]]" = iter,
    ) -> None:
        """Ask everything that can be asked at once, and again the questions to which the answers lead.

        Parameters
        ----------
        runner : RequestRunner
            Brings requests to their answers, a wave at a time; once it is stopped, no further wave is asked.
        endpoint : str
            The endpoint's name in the ledger.
        requests, programs : callable
            Each returns the same values every time, fresh and lazily.
        first : callable, optional
            Takes the place of the runner for what can be asked at once.
        more : callable
            Looks at the requests that ask once more for the answers that replies lack, one more a reply.
        """
        options, history, run = self.options, self.history, self.caller.ledger.run
        may, once, retry = may_repair(options, history, run), options.at_most_once, options.retry_failed
        replay = Replay(programs, endpoint, history, run=run, at_most_once=once, retry=retry, repairs=may)
        await (first or runner.run)(lambda: chain(requests(), replay.requests()))
        if runner.stopped is None and options.repairs:
            await runner.run(lambda: more(repair_requests(requests(), history, may)))
        while replay.n_open and runner.stopped is None:
            replay.n_open = 0
            await runner.run(replay.requests)


@dataclass(eq=False)
class _Run:
    """One run against the ledger.

    Parameters
    ----------
    options : AskOptions
        Where to ask, how fast and for how much.
    endpoint : str
        The endpoint's name in the ledger.
    requests, programs : callable
        Each returns the same values every time, fresh and lazily.
    state : AskProgress
        Holds the tally.
    progress : callable or None
        Called with `state` as the run goes on.
    default : bool
        Whether the endpoint of `options` is asked, and not those of providers alone.
    calls : sequence of (int, callable)
        For each function how many calls there may be side by side, and all of them, which wait for no other's.
    asks : bool
        Whether an LLM is asked at all.
    alone : bool
        Whether no other judge votes, so that nothing is won where all functions fail.
    items : int
        Examples to ask about; 0 where that is not known.
    """

    options: AskOptions
    endpoint: str
    requests: "Callable[[], Iterable[llm.Request]]"
    programs: Callable[[], Iterable[ProgramEntry]]
    state: AskProgress
    progress: ProgressCallback | None
    default: bool = True
    calls: "Sequence[tuple[int, Callable[[], Iterable[llm.Request]]]]" = ()
    asks: bool = True
    alone: bool = False
    items: int = 0
    stop: Callable[[], object] | None = field(default=None, init=False)
    """Ends the run cleanly, from any thread; None before anything is asked."""
    _watch: LossWatch = field(default_factory=lambda: LossWatch(note), init=False)

    def run_to_end(self) -> RunOutcome:
        """Ask until nothing is open or the run is stopped, in the loop of functions: their clients live on there."""
        # Signals reach the main thread; what they stop runs in the loop of functions.
        with _stop_on_signal(self):
            return wait_in_loop(self._ask())

    async def _ask(self) -> RunOutcome:
        """Open the ledger and a client, ask until nothing is open, and return the counts."""
        options, tally = self.options, self.state.tally
        if llm.is_read_only(options.ledger):
            return self._count_found_answers()
        if options.batch:
            load_part("batch")  # refused before a ledger is made
        async with Engine.opened(options, tally, self._watch.read, asks=self.asks, default=self.default) as engine:
            ledger = engine.caller.ledger
            runner = await self._runner(engine.caller)
            doubts = ledger.unknown, ledger.in_doubt_twice
            for line in (*ledger.entered, *doubt_lines(*doubts, asked_again=not options.at_most_once)):
                note(line)
            self.stop = partial(asyncio.get_running_loop().call_soon_threadsafe, runner.stop, "interrupted")
            async with self._progress_reported(engine.caller.gate):
                await self._ask_to_end(engine, runner)
        return RunOutcome(tally, runner.stopped, *doubts, tuple(engine.caller.gate.quirks(self.endpoint)))

    def _count_found_answers(self) -> RunOutcome:
        """Count the answers in a ledger that cannot be written, where none is missing."""
        options, tally = self.options, self.state.tally
        with llm.History(options.ledger) as history:
            once, retry = options.at_most_once, options.retry_failed
            # A doubtful request that is never to be repeated is as good as settled.
            final = {"done", "failed", "unknown"} if once else {"done", "failed"}
            replay = Replay(self.programs, self.endpoint, history, at_most_once=once, retry=retry)
            calls = chain.from_iterable(requests() for _, requests in self.calls)
            for requests in chunks(chain(calls, self.requests(), replay.requests())):
                rows = history.rows([request.key for request in requests])
                for request in requests:
                    row = rows.get(request.key)
                    if row is None or row["state"] not in final or (row["failure"] or row["reason"]) in retry:
                        raise InputError(
                            "`ledger` must be writable where answers are missing. "
                            f"Got {options.ledger!r}, which is read-only. Copy it to where it can be written."
                        )
                    tally.find(request.voter, row)
            self._find_repairs(history)
        return RunOutcome(tally)

    def _find_repairs(self, history: "llm.History") -> None:
        """Count the repair turns in the ledger, where none may be asked."""
        for requests in chunks(repair_requests(self.requests(), history, lambda _: False)):
            rows = history.rows([request.key for request in requests])
            for request in requests:
                self.state.tally.find(request.voter, rows[request.key])

    async def _runner(self, caller: "llm.Caller") -> "_ParallelRunners":
        """Return the runner of the endpoint and those of the functions; raise where requests wait in batches."""
        options, ledger = self.options, caller.ledger
        lanes = [llm.Runner(caller, workers=workers) for workers, _ in self.calls]
        # What waits in a batch would be paid twice if it were asked one by one as well.
        n = 0 if options.batch else await ledger.call(llm.waiting_in, self.endpoint, llm.UNFINISHED_STATES)
        if n:
            raise InputError(
                f"`batch` must be given: {n} requests wait in a batch. Got a run without. Collect them first."
            )
        if "exported" in options.retry_failed:
            await ledger.call(llm.release_exports, self.endpoint)
        n = await ledger.call(llm.waiting_in, self.endpoint, llm.EXPORT_STATES)
        if n:
            raise InputError(
                f"`batch_in` must be given: {n} requests are in exported files. Got a run that asks. Enter their "
                "results first, or give up on them with `retry_failed` exported."
            )
        if not options.batch:
            return _ParallelRunners(llm.Runner(caller, workers=caller.terms.concurrency.maximum), lanes)
        batch_runner: Callable[..., StoppableRunner] = load_part("batch").BatchRunner
        session = (ledger, caller.client, caller.parse, caller.terms, caller.gate, caller.tally)
        return _ParallelRunners(batch_runner(*session, endpoint=self.endpoint, poll=options.poll), lanes)

    async def _ask_to_end(self, engine: Engine, runner: "_ParallelRunners") -> None:
        if self.alone:
            await self._check_first(runner, engine.history)
        if runner.stopped is None:
            # Where functions judge alone, their first calls are made already.
            calls = [partial(_slice, requests, int(self.alone), None) for _, requests in self.calls]
            first, more = partial(runner.run, calls=calls), self._uncounted_repairs
            await engine.ask(runner, self.endpoint, self.requests, self.programs, first=first, more=more)
        if runner.stopped is None and not self.options.repairs and self._lacks_votes:
            self._find_repairs(engine.history)

    async def _check_first(self, runner: "_ParallelRunners", history: "llm.History") -> None:
        """Call each function on the first item before all else; raise where all fail on it."""
        await runner.run(tuple, [partial(_slice, requests, 0, 1) for _, requests in self.calls])
        first = [request for _, requests in self.calls for request in islice(requests(), 1)]
        rows = history.rows([request.key for request in first])
        failures = [r for r in first if r.key in rows and rows[r.key]["failure"] == llm.RAISED]
        # A function that fails at once is a mistake in its code: nothing is won by a thousand more calls.
        if first and len(failures) == len(first):
            messages = "; ".join(f"{r.voter}: {rows[r.key]['message']}" for r in first)
            raise InputError(
                "`judges` must judge the first item, or nothing more is asked. "
                f"Got failures on {first[0].item!r} of {first[0].dataset!r}: {printable(messages)}. Mend them."
            )

    @property
    def _lacks_votes(self) -> bool:
        """Whether there is a reply that cannot be read."""
        return any(counts["unparsable"] for counts in self.state.tally.by_voter.values())

    def _uncounted_repairs(self, requests: "Iterable[llm.Request]") -> "Iterator[llm.Request]":
        """Yield repair turns, which the total did not count; look for none where every reply can be read."""
        tally = self.state.tally
        for request in requests if self._lacks_votes else ():
            # Progress would pass its own total else.
            tally.total = None if tally.total is None else tally.total + 1
            yield request

    @asynccontextmanager
    async def _progress_reported(self, gate: "llm.ModelGate") -> AsyncIterator[None]:
        """Call the progress callback now and then while the block runs, and once at its end; say what is of note."""
        task = asyncio.create_task(self._report(gate))
        try:
            yield
        finally:
            # The last call comes below, with the final counts.
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            if self.progress is not None:
                self.progress(self.state)

    async def _report(self, gate: "llm.ModelGate") -> None:
        tally, lines = self.state.tally, self._notes(gate)
        while True:
            if self.progress is not None:
                self.progress(self.state)
            # At most one line a look, and the most important one first.
            if tally.seconds > QUICK_SECONDS and (line := next(lines)) is not None:
                note(line)
            await asyncio.sleep(SECONDS_BETWEEN_LOOKS)

    def _notes(self, gate: "llm.ModelGate") -> Iterator[str | None]:
        """Yield at each look what is new of note: first vote, pace, what the server lacks, a silence; else None."""
        tally, n_answered, heard, quiet = self.state.tally, 0, self.state.tally.seconds, FIRST_SILENCE
        told_first = told_pace = told_lacks = False
        while True:
            if tally.answered > n_answered:
                n_answered, heard, quiet = tally.answered, tally.seconds, FIRST_SILENCE
            seconds_left, line = tally.seconds_left, None
            if not told_first and self._watch.first is not None:
                told_first, line = True, self._watch.first
            elif not told_pace and n_answered >= PACE_FROM and seconds_left is not None and tally.total is not None:
                told_pace = True
                if seconds_left > WORTH_SAYING:
                    line = pace_text(tally, self.items if self.options.record.get("sample", 0) is None else 0)
            elif not told_lacks and n_answered >= PACE_FROM and (quirks := gate.quirks(self.endpoint)):
                told_lacks, line = True, "; ".join(quirk_lines(map(asdict, quirks)))
            elif tally.seconds - heard >= quiet:
                line = f"No answer for {llm.span(tally.seconds - heard)}; {tally.attempts:,} attempts so far."
                # Twice as long each time: a server that is down overnight fills no screen.
                quiet *= 2
            yield line


def doubt_lines(unknown: int, twice: int, *, asked_again: bool) -> Iterator[str]:
    """Yield a sentence about the requests whose answer may have been lost, and paid, and one on those left alone."""
    if unknown:
        fate = "are asked again, so each may be paid twice" if asked_again else "are left without a vote"
        yield f"{unknown} requests were in flight when an earlier run ended; their outcome is unknown, and they {fate}."
    if twice:
        yield (
            f"{twice} requests were in flight when two runs ended. Each may be paid twice. They have no vote; "
            "--retry-failed unknown asks them again."
        )


def _slice(requests: "Callable[[], Iterable[llm.Request]]", begin: int, end: int | None) -> "Iterator[llm.Request]":
    return islice(requests(), begin, end)


class _ParallelRunners:
    """Runners of an endpoint and of each function, of which none goes on where one has stopped.

    Parameters
    ----------
    endpoint, lanes : StoppableRunner
        The lanes, one a function.
    """

    def __init__(self, endpoint: StoppableRunner, lanes: Sequence[StoppableRunner]) -> None:
        self._runners = [endpoint, *lanes]

    @property
    def stopped(self) -> "llm.StopReason | None":
        """Why the run ended before its end."""
        return next((runner.stopped for runner in self._runners if runner.stopped is not None), None)

    def stop(self, why: "llm.StopReason") -> None:
        """End the run cleanly."""
        for runner in self._runners:
            runner.stop(why)

    async def run(
        self,
        requests: "Callable[[], Iterable[llm.Request]]",
        calls: "Sequence[Callable[[], Iterable[llm.Request]]]" = (),
    ) -> None:
        """Bring all requests to their end, and with them the calls of each function."""
        works = zip(self._runners, [requests, *calls], strict=False)  # without calls, no lane has any work
        tasks = [asyncio.create_task(runner.run(work)) for runner, work in works]
        try:
            for task in asyncio.as_completed(tasks):
                with suppress(Exception):  # raised below, once what is in flight has been written down
                    await task
                if self.stopped is not None:
                    for runner in self._runners:
                        if runner.stopped is None:
                            runner.stop(self.stopped)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            task.result()


@contextmanager
def _stop_on_signal(run: _Run) -> Iterator[None]:
    """Let Ctrl-C and a plain kill end a run cleanly; the second one does not wait for what is in flight."""

    def stop(*_: object) -> None:
        if run.stop is None:  # nothing is asked yet
            raise KeyboardInterrupt
        run.stop()

    handlers = []
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None or (name == "SIGHUP" and signal.getsignal(number) == signal.SIG_IGN):
            continue  # a system without it; nohup
        try:
            handlers.append((number, signal.signal(number, stop)))
        except ValueError:
            continue  # not the main thread
    try:
        yield
    finally:
        for number, before in handlers:
            signal.signal(number, before)
