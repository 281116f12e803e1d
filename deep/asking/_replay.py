"""Programs replayed against a ledger: their next questions, and in the end their values."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from deep.asking._options import AskOptions
from deep.judges import LLMReply, Question, VoteQuestion
from deep.llm import Request
from deep.prompt_pool import repair_of, reply_schema, why_unusable
from deep.records import Judgment

if TYPE_CHECKING:
    from deep.llm import Answer, History, Reply

T = TypeVar("T")

# So many rows are read or written together: enough that a query pays, too few to fill the memory.
ROWS_AT_ONCE = 1000


def chunks(values: Iterable[T], size: int = ROWS_AT_ONCE) -> Iterator[list[T]]:
    """Yield lists of at most `size` values."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


# So many programs are replayed side by side: their questions are looked up by one query.
PROGRAMS_AT_ONCE = 256

# In place of a prompt's hash in the key of a request, so that whoever asks the same question shares its answer.
SHARED_PROMPT_HASH = "program"


@dataclass(frozen=True, slots=True)
class ProgramId:
    """The identity of a program.

    Parameters
    ----------
    voter : str
        The judge or the builder, as reports name it.
    dataset, item : str
        The row that it works on; unique together with `voter`.
    """

    voter: str
    dataset: str
    item: str


RequestProgram = Generator[Sequence[Request], Sequence[LLMReply | None], T]
"""A program whose questions are requests already."""

# A program that may also yield requests, which are asked as they are.
AskingProgram = Generator[Sequence[Question | Request], Sequence[LLMReply | None], T]

ProgramEntry = tuple[ProgramId, str, AskingProgram[Any]]
"""A program's identity, the LLM that it asks, and the program."""


def as_requests(program: AskingProgram[T], identity: ProgramId, llm: str, endpoint: str) -> RequestProgram[T]:
    """Return a program whose questions are requests, so that it can be a part of another one; it yields no empty list.

    Requests that it yields itself are asked as they are.
    """
    number, replies = 0, None
    while True:
        try:
            questions = next(program) if replies is None else program.send(replies)
        except StopIteration as end:
            value: T = end.value
            return value
        requests = [
            one if isinstance(one, Request) else _request_of_question(one, identity, llm, endpoint, number + i)
            for i, one in enumerate(questions)
        ]
        number += len(requests)
        replies = (yield requests) if requests else []


def _request_of_question(question: Question, identity: ProgramId, llm: str, endpoint: str, number: int) -> Request:
    """Return a question as the ledger keeps it: a vote by its voter and item, a step by its number besides."""
    body = {"model": llm, "messages": question.messages, **question.parameters}
    if question.schema is not None:
        body["response_format"] = reply_schema("answer", dict(question.schema))
    if question.choice is not None:
        body |= question.choice.fields
    votes = isinstance(question, VoteQuestion)
    step = "" if votes and not is_repair(question) else f"#{question.step}"
    group = question.group if isinstance(question, VoteQuestion) else None
    return Request(
        body=body,
        endpoint=endpoint,
        prompt=f"{identity.voter.partition('@')[0]}{step}",
        prompt_hash=question.version if isinstance(question, VoteQuestion) else SHARED_PROMPT_HASH,
        voter=f"{identity.voter}{step}",
        dataset=identity.dataset,
        item=f"{identity.item}{_item_suffix(question, number)}",
        sample=question.sample,
        # Two LLMs share no cache of prefixes.
        group=None if group is None else f"{llm} {group}",
        context=question,
        choice=question.choice,
    )


def is_repair(question: object) -> bool:
    """Return whether a question asks once more for the answer that an earlier reply lacks."""
    return isinstance(question, VoteQuestion) and question.is_repair


def offers_repair(request: Request) -> bool:
    """Return whether a repair turn may follow the reply to a request."""
    return isinstance(request.context, VoteQuestion) and request.context.repair is not None


def repair_request(request: Request, text: str | None) -> Request:
    """Return the request that asks once more for the answer, given the reply to `request` in which there is none."""
    identity = ProgramId(request.voter, request.dataset, request.item)
    return _request_of_question(repair_of(request.context, text), identity, request.model, request.endpoint, 0)


def _item_suffix(question: Question, number: int) -> str:
    """Return the ending of an item's name in the ledger that tells its questions apart; none where there is one."""
    if isinstance(question, VoteQuestion):
        return "" if question.part is None else f"#{question.part}"
    return f"#{number}"


def read_answer(request: Request, reply: "Reply") -> Judgment | None:
    """Return the vote of a reply; None where it is a step of a program, which makes no vote alone."""
    if isinstance(request.context, VoteQuestion):
        return request.context.read(reply)
    reason = why_unusable(reply)
    return None if reason is None else Judgment(vote=-1, reason=reason)


class _RunningProgram:
    """A program on its way: the requests it has made, those it waits for, and in the end its value."""

    def __init__(self, entry: ProgramEntry, endpoint: str) -> None:
        self.id, model, program = entry
        self._program = as_requests(program, self.id, model, endpoint)
        self.requests: list[Request] = []
        self.pending: Sequence[Request] = []
        self.open: set[int] = set()
        self.owners: set[int] = set()
        self.declined: set[int] = set()
        self.is_over = False
        self.value: Any = None
        self.error: Exception | None = None
        self.advance(None)

    def advance(self, replies: Sequence[LLMReply | None] | None) -> None:
        """Hand over the replies to what is pending, until the program asks something or ends."""
        try:
            self.pending = next(self._program) if replies is None else self._program.send(replies)
        except StopIteration as end:
            self.pending, self.is_over, self.value = [], True, end.value
        # A judge that breaks must not end the others; whoever reads the values gets its error.
        except Exception as error:
            self.pending, self.is_over, self.error = [], True, error
        self.requests += self.pending


@dataclass(eq=False)
class Replay:
    """All programs of a run, run anew from the answers in the ledger as often as needed.

    Parameters
    ----------
    programs : callable
        Returns the same programs every time, fresh and lazily.
    endpoint : str
        The endpoint's name in the ledger.
    history : History or None
        The ledger; None where there is none yet.
    run : int
        The run that is asking; what it has asked once is not asked again.
    at_most_once : bool
        Leave requests alone whose answer may have been lost.
    retry : collection of str
        Classes of failure to ask again.
    repairs : callable
        Whether repair turns may be asked about the replies of a run.

    Attributes
    ----------
    n_open : int
        Questions without an answer that :meth:`requests` has yielded since this was last set to 0.
    not_asked : set of ProgramId
        Programs of which :meth:`values` has yielded a value though a question of theirs was never asked.
    """

    programs: Callable[[], Iterable[ProgramEntry]]
    endpoint: str
    history: "History | None"
    _: KW_ONLY
    run: int = 0
    at_most_once: bool = False
    retry: Collection[str] = ()
    repairs: Callable[[int], bool] = lambda _: False
    n_open: int = field(default=0, init=False)
    not_asked: set[ProgramId] = field(default_factory=set, init=False)
    _n_seen: dict[ProgramId, int] = field(default_factory=dict, init=False)

    def requests(self) -> Iterator[Request]:
        """Yield every question that can be asked now, and once each that has its answer already."""
        for running in self._replay_programs():
            n_seen = self._n_seen.get(running.id, 0)
            self._n_seen[running.id] = max(n_seen, len(running.requests))
            n_settled = len(running.requests) - len(running.pending)
            for number, request in enumerate(running.requests):
                if number in running.declined:
                    continue
                is_open = number - n_settled in running.open
                self.n_open += is_open
                # One that has its answer is yielded once, to be counted.
                if is_open or number >= n_seen:
                    yield request

    def values(self) -> Iterator[tuple[ProgramId, Any]]:
        """Yield the value of each program; a question that was never answered counts as failed.

        An error that a program raises is yielded in place of its value.
        """
        for running in self._replay_programs(final=True):
            yield running.id, running.value if running.error is None else running.error

    def _replay_programs(self, *, final: bool = False) -> Iterator[_RunningProgram]:
        for entries in chunks(self.programs(), PROGRAMS_AT_ONCE):
            batch = [_RunningProgram(entry, self.endpoint) for entry in entries]
            waiting = [running for running in batch if not running.is_over]
            while waiting:
                waiting = self._advance(waiting, final=final)
            yield from batch

    def _advance(self, waiting: Sequence[_RunningProgram], *, final: bool) -> list[_RunningProgram]:
        """Give programs their replies, and return those that have more to ask."""
        keys = [[request.key for request in running.pending] for running in waiting]  # each is a hash of the texts
        # Programs that ask the same question share its answer.
        unique_keys = list(dict.fromkeys(chain.from_iterable(keys)))
        answers = {} if self.history is None else self.history.answers(unique_keys)
        advanced = []
        for running, own_keys in zip(waiting, keys, strict=True):
            result = [answers.get(key) for key in own_keys]
            unanswered = set() if final else {i for i, answer in enumerate(result) if self._is_open(answer)}
            for request, answer in zip(running.pending, result, strict=True) if final else ():
                waits = answer is None or answer.state in ("queued", "sent")
                if waits and not is_repair(request.context):  # a repair turn is more than was asked for
                    self.not_asked.add(running.id)
            # A repair turn is asked about the replies of some runs only; the other ones count as declined.
            may_repair_all = all(map(self.repairs, running.owners))
            running.open = {i for i in unanswered if may_repair_all or not is_repair(running.pending[i].context)}
            n_settled = len(running.requests) - len(running.pending)
            running.declined |= {n_settled + i for i in unanswered - running.open}
            if not running.open:
                running.owners = {answer.owner for answer in result if answer is not None}
                running.advance([None if answer is None else answer.reply for answer in result])
                advanced.append(running)
        return [running for running in advanced if not running.is_over]

    def _is_open(self, answer: "Answer | None") -> bool:
        if answer is None or answer.state in ("queued", "sent"):
            return True
        # Once in a run: what failed in it is not asked again by the next wave.
        if answer.owner == self.run:
            return False
        return not self.at_most_once if answer.state == "unknown" else answer.failure in self.retry


def may_repair(options: AskOptions, history: "History | None", run: int | None = None) -> Callable[[int], bool]:
    """Return whether repair turns may be asked about the replies that a run has bought, for every run.

    Replies of a run without repair turns are read as they are, unless they are asked for by name: an older ledger is
    written out without a call.
    """
    if not options.repairs:
        return lambda _: False
    if options.repair:
        return lambda _: True
    # A run without repairs, or of a version that had none: what it bought is read as it was then.
    repairing = {run, *(() if history is None else history.runs_with("repairs"))}
    return lambda owner: owner in repairing


def repair_requests(
    requests: "Iterable[Request]", history: "History", may: Callable[[int], bool]
) -> "Iterator[Request]":
    """Yield the repair turns of those of `requests` whose reply is unparsable.

    Parameters
    ----------
    requests : iterable of Request
        Questions of prompts.
    history : History
        Open on the ledger that holds the replies.
    may : callable
        Whether the replies that a run has bought may be repaired; a repair turn in the ledger is yielded in any case.
    """
    for chunk in chunks(requests):
        result = list(_possible_repairs(chunk, history))
        # One that was begun is yielded in any case, so that what it cost is counted.
        known_rows = history.rows([request.key for _, request in result])
        yield from (request for owner, request in result if may(owner) or request.key in known_rows)


def _possible_repairs(requests: "Iterable[Request]", history: "History") -> "Iterator[tuple[int, Request]]":
    """Yield the repair turn of each unparsable reply with the run that bought the reply."""
    offering = [(request.key, request) for request in requests if offers_repair(request)]
    rows = history.rows([key for key, _ in offering])
    unread = [(key, request) for key, request in offering if key in rows and rows[key]["reason"] == "unparsable"]
    answers = history.answers([key for key, _ in unread])
    for key, request in unread:
        reply = answers[key].reply
        # It was unparsable when it came; the reader may have learned to read it.
        if reply is not None and request.context.read(reply).reason == "unparsable":
            yield answers[key].owner, repair_request(request, reply.text)
