"""Judges made of prompts: a question a sample, long sources in windows, and how several judgments become one."""

import json
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from typing import TypedDict, get_args

from deep._util.checks import check_choice
from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.judges import REPAIR, Judge, LLMJudge, LLMReply, Program, Question, VoteQuestion
from deep.prompt_pool._answer_form import Constraint, reply_schema
from deep.prompt_pool._locate import Span
from deep.prompt_pool._material import FewShot
from deep.prompt_pool._prompt import Prompt, Rule
from deep.records import ABSTAIN, Example, Judgment, Reason


class Usage(TypedDict):
    """The fields of a judgment that say what its replies were and cost."""

    raw_text: str | None
    model: str | None
    tokens: Mapping[str, int]
    cost: float | None
    seconds: float | None


def pool_judgments(judgments: Sequence[Judgment]) -> Judgment:
    """Return the majority's vote and the mean score of several judgments of one example; a single one as it is.

    The score is the share of the judge's own opinion that finds the claim consistent, after self-consistency [1]_. A
    tie abstains; a judgment without a vote counts for neither side. Tokens, costs and seconds of the answers that came
    are summed; the cost is None where one is unknown. Without a single vote the commonest reason is given.

    References
    ----------
    .. [1] Wang et al., ICLR 2023. https://arxiv.org/abs/2203.11171
    """
    if len(judgments) == 1:
        return judgments[0]
    votes = [judgment for judgment in judgments if judgment.vote != ABSTAIN]
    # A tie of the samples is no vote: either way would invent one.
    balance = sum(2 * judgment.vote - 1 for judgment in votes)
    vote = int(balance > 0) if balance else ABSTAIN
    reason: Reason | None = None if balance else "abstained" if votes else commonest(one.reason for one in judgments)
    scores = [float(judgment.vote) if judgment.score is None else judgment.score for judgment in votes]
    source = next((judgment for judgment in votes if judgment.vote == vote), judgments[0])
    return Judgment(
        vote=vote,
        reason=reason,
        score=sum(scores) / len(scores) if scores else None,
        rationale=source.rationale,
        evidence=source.evidence,
        samples=tuple(judgment.vote for judgment in judgments),
        repaired=any(judgment.repaired for judgment in votes),
        **sum_usage([judgment.raw_text for judgment in judgments], judgments),
    )


def repaired_judgment(first: Judgment, second: Judgment | None) -> Judgment:
    """Return the judgment of a reply that could not be read and of the repair turn that followed it.

    The answer is the second one's where that has one. Both replies are kept, and tokens, dollars and seconds summed.
    """
    if second is None:
        return first
    usage = sum_usage([first.raw_text, second.raw_text], [first, second])
    if second.vote == ABSTAIN and second.reason != "abstained":
        return replace(first, **usage)
    rationale = second.rationale or (first.raw_text or "").strip() or None
    return replace(second, repaired=True, rationale=rationale, **usage)


def usage_of(log: Sequence[LLMReply | None]) -> Usage:
    """Return the replies of a program as a JSON list, their LLMs, and the sums of tokens, dollars and seconds."""
    replies = [reply for reply in log if reply is not None]
    return sum_usage([reply.text for reply in replies], replies)


def sum_usage(texts: Sequence[str | None], parts: Sequence[LLMReply] | Sequence[Judgment]) -> Usage:
    tokens: Counter[str] = Counter()
    # A call that failed has neither tokens nor a price.
    answers = [part for part in parts if getattr(part, "reason", None) != "failed"]
    for part in answers:
        tokens.update(part.tokens)
    return {
        "raw_text": json.dumps(list(texts), ensure_ascii=False) if texts else None,
        "model": ", ".join(dict.fromkeys(part.model for part in answers if part.model)) or None,
        "tokens": dict(tokens),
        "cost": _total([getattr(part, "cost", None) for part in answers]),
        "seconds": _total([getattr(part, "seconds", None) for part in answers]),
    }


def _total(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    # A sum without one of its terms would be a wrong price; none at all is an honest one.
    return sum(numbers) if numbers and len(numbers) == len(values) else None


def commonest(reasons: Iterable[Reason | None]) -> Reason:
    """Return the reason that comes most often, the first by name of those that tie; None does not count."""
    return Counter(sorted(reason for reason in reasons if reason is not None)).most_common(1)[0][0]


_FORM = re.compile(r"([0-9]{1,9})(?::([0-9]{1,9}))?")
# The vote of one window that is the vote on the whole source; the other one must be every window's.
_DECIDES = {"any": 1, "all": 0}


@dataclass(frozen=True)
class Chunking:
    """How a source is cut that is longer than a window.

    Parameters
    ----------
    size : int
        The most characters of a window, from 200 on; about four are a token in English.
    overlap : int, default=0
        Characters that a window repeats of the one before, at most and in whole sentences; up to half of `size`.

    Raises
    ------
    InputError
        A number is out of range.

    Examples
    --------
    >>> from deep.prompt_pool import Chunking
    >>> Chunking.parse("8000:500")
    Chunking(size=8000, overlap=500)
    >>> text = "It rained all day. " * 20
    >>> Chunking(size=200, overlap=40).spans(text)
    [(0, 189), (152, 341), (304, 379)]
    """

    size: int
    overlap: int = 0

    def __post_init__(self) -> None:
        if self.size < 200 or not 0 <= 2 * self.overlap <= self.size:
            raise InputError(
                "`chunk` must be SIZE:OVERLAP characters, a size of at least 200 and an overlap of at most "
                f"half the size. Got {self}."
            )

    def __str__(self) -> str:
        return f"{self.size}:{self.overlap}"

    @classmethod
    def parse(cls, text: str) -> "Chunking":
        """Return the chunking that ``SIZE`` or ``SIZE:OVERLAP`` names."""
        result = _FORM.fullmatch(text.strip())
        if result is None:
            raise InputError(f"`chunk` must be SIZE or SIZE:OVERLAP in characters, as in 8000:500. Got {text!r}.")
        return cls(int(result[1]), int(result[2] or 0))

    def spans(self, source: str) -> list[Span]:
        """Return (start, end) of each window of a source; the whole source where it fits into one.

        A window ends where a sentence does. A sentence that is longer than a window is cut at white space, and
        where it has none anywhere.
        """
        if len(source) <= self.size:
            return [(0, len(source))]
        pieces = [piece for span in sentence_spans(source) for piece in _cut(source, span, self.size)]
        pieces = pieces or [(0, self.size)]  # nothing but white space
        starts, windows, first = [start for start, _ in pieces], list[Span](), 0
        while True:
            last = first
            while last + 1 < len(pieces) and pieces[last + 1][1] - starts[first] <= self.size:
                last += 1
            end = pieces[last][1]
            windows.append((starts[first], end))
            if last + 1 == len(pieces):
                break
            # What is repeated must leave room for a piece that is new.
            repeated = bisect_left(starts, max(end - self.overlap, pieces[last + 1][1] - self.size))
            first = max(first + 1, min(repeated, last + 1))
        return windows


def _cut(text: str, span: Span, size: int) -> list[Span]:
    """Return the parts of a span, each no longer than `size`, cut at white space where there is any."""
    start, end = span
    parts = []
    while end - start > size:
        blank = max(text.rfind(sign, start + 1, start + size + 1) for sign in " \n\t")
        stop = start + size if blank < 0 else blank
        parts.append((start, stop))
        start = stop if blank < 0 else stop + 1
    return [*parts, (start, end)]


def chunk_details(chunk: Chunking | None) -> dict[str, str]:
    """Return the entry of a chunking in a judge's details; nothing without one."""
    return {} if chunk is None else {"chunk": str(chunk)}


def over_windows(
    ask: Callable[[Example], Program[Judgment]], example: Example, chunk: Chunking | None, rule: Rule
) -> Program[Judgment]:
    """Judge an example window by window, all at once, and combine the judgments; a single window is the example.

    Parameters
    ----------
    ask : callable
        Returns the program of an example whose source is a window.
    example : Example
        The windows are cut from its source.
    chunk : Chunking or None
        How the source is cut.
    rule : {'any', 'all'}
        ``any``: one window's vote of 1 decides; ``all``: one window's vote of 0 does.

    Returns
    -------
    Judgment
        See :func:`combine_windows`.
    """
    spans = [] if chunk is None else chunk.spans(example.source)
    # A source that fits is asked exactly as without windows, under the same key in the ledger (decision 14).
    if len(spans) < 2:
        return (yield from ask(example))
    programs = [ask(window) for window in _windows(example, spans)]
    values: dict[int, Judgment] = {}
    replies: dict[int, Sequence[LLMReply | None] | None] = dict.fromkeys(range(len(programs)))
    while len(values) < len(programs):
        questions_of: dict[int, Sequence[Question]] = {}
        for number, reply in replies.items():
            try:
                questions_of[number] = next(programs[number]) if reply is None else programs[number].send(reply)
            except StopIteration as end:
                values[number] = end.value
        # Questions of all windows go out side by side: one wave, not one a window.
        wave = [
            replace(question, part=f"window {n + 1}") if isinstance(question, VoteQuestion) else question
            for n, questions in questions_of.items()
            for question in questions
        ]
        result = list((yield wave)) if wave else []
        replies = {n: [result.pop(0) for _ in questions] for n, questions in questions_of.items()}
    return combine_windows([values[number] for number in range(len(programs))], spans, rule)


def combine_windows(judgments: Sequence[Judgment], spans: Sequence[Span], rule: Rule) -> Judgment:
    """Return the judgment of a source by those of its windows.

    With the rule ``any``, for judges that look for support, the vote is 1 if that of any window is, and 0 only if all
    windows have voted 0. With ``all``, for judges that look for contradiction, the vote is 0 if that of any window is,
    and 1 only if all windows have voted 1. Else a window without a vote leaves the source without one, for the
    commonest reason of the windows.

    Parameters
    ----------
    judgments : sequence of Judgment
        One a window.
    spans : sequence of (int, int)
        Where the windows stand in the source; the rationale names them.
    rule : {'any', 'all'}
        ``any``: one window's vote of 1 decides; ``all``: one window's vote of 0 does.

    Returns
    -------
    Judgment
        Its score is the highest of the windows' (``any``) or the lowest (``all``); rationale and evidence come from
        the windows that decided, tokens, dollars and seconds from all.

    Examples
    --------
    >>> from deep.prompt_pool import combine_windows
    >>> from deep.records import Judgment
    >>> found, absent, lost = Judgment(vote=1), Judgment(vote=0), Judgment(vote=-1, reason="failed")
    >>> spans = [(0, 900), (800, 1700)]
    >>> [combine_windows(pair, spans, "any").vote for pair in ([found, lost], [absent, absent], [absent, lost])]
    [1, 0, -1]
    >>> [combine_windows(pair, spans, "all").vote for pair in ([found, lost], [found, found], [absent, lost])]
    [-1, 1, 0]
    """
    votes = [judgment.vote for judgment in judgments]
    decisive = _DECIDES[rule]
    # One window decides; the other vote needs all of them, so that a window without an answer leaves it open (decision
    # 14).
    vote = decisive if decisive in votes else ABSTAIN if ABSTAIN in votes else 1 - decisive
    deciding = [(span, judgment) for span, judgment in zip(spans, judgments, strict=True) if judgment.vote == vote]
    scores = [judgment.score for judgment in judgments if judgment.score is not None]
    score = None if vote == ABSTAIN or not scores else max(scores) if rule == "any" else min(scores)
    rationales = [f"Characters {a} to {b}: {j.rationale}" for (a, b), j in deciding if j.rationale]
    return Judgment(
        vote=vote,
        reason=commonest(judgment.reason for judgment in judgments) if vote == ABSTAIN else None,
        score=score,
        rationale="\n".join(rationales) or None,
        evidence=tuple(dict.fromkeys(_shift(e, start) for (start, _), judgment in deciding for e in judgment.evidence)),
        repaired=any(judgment.repaired for _, judgment in deciding),
        **sum_usage([judgment.raw_text for judgment in judgments], judgments),
    )


def _shift(entry: str, start: int) -> str:
    """Return an entry of evidence with its places counted from the beginning of the whole source.

    Excerpts in plain words have no places of their own; a checked claim in JSON has one for each of its excerpts.
    """
    try:
        record = json.loads(entry) if entry.startswith("{") else None
        result = record.get("evidence") if isinstance(record, dict) else None
        if not isinstance(result, list):
            return entry
        for excerpt in result:
            if isinstance(excerpt, dict) and excerpt.get("span"):
                excerpt["span"] = [start + position for position in excerpt["span"]]
    except (ValueError, TypeError, RecursionError):  # JSON of a document, which the judge quotes
        return entry
    return json.dumps(record, ensure_ascii=False)


@dataclass(frozen=True)
class ChunkedJudge(LLMJudge):
    """A staged judge that takes a long source window by window, with the rule ``any``; in its own column.

    Parameters
    ----------
    judge : Judge
        Asked about each window.
    chunk : Chunking
        The most characters of a window, and of what two windows share.
    """

    judge: Judge
    chunk: Chunking

    @property
    def name(self) -> str:
        """The judge's name."""
        return self.judge.name

    @property
    def version(self) -> str:
        """The judge's version; a source that fits into a window is judged as without."""
        return self.judge.version

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        return {**self.judge.details, **chunk_details(self.chunk)}

    def most_calls(self, example: Example, /) -> int | None:
        """Return the most calls of all windows; None where one has no bound."""
        if not isinstance(self.judge, LLMJudge):
            return None
        bounds = [self.judge.most_calls(window) for window in _windows(example, self.chunk.spans(example.source))]
        return None if None in bounds else sum(bound or 0 for bound in bounds)

    def program(self, example: Example, /) -> Program[Judgment]:
        """Return the programs of all windows as one."""
        return over_windows(self.judge.program, example, self.chunk, "any")


def _windows(example: Example, spans: Sequence[Span]) -> list[Example]:
    return [replace(example, source=example.source[start:end]) for start, end in spans]


# Five alternatives are what every server that has log-probabilities allows.
LOGPROBS: Mapping[str, object] = {"logprobs": True, "top_logprobs": 5}


@dataclass(frozen=True)
class PromptJudge(LLMJudge):
    r"""Judges an example by one reply to a prompt, or by the majority of several.

    Parameters
    ----------
    prompt : Prompt
        What is asked, and how the reply is read.
    samples : int, default=1
        Replies to the question; above 1 they are drawn at `temperature`, 1.0 where none is given: draws from the
        judge's own distribution, where at 0 they would be one reply several times over.
    temperature : float, optional
        Default: with one sample the prompt's own, or none is sent where it has none; with several 1.0.
    max_tokens : int, optional
        In place of the prompt's own.
    soft : bool, default=False
        Ask for the log-probabilities of the verdict.
    repair : bool, default=True
        Ask once more, for the answer alone, where a reply is unparsable.
    constrain : {'schema', 'none', 'vllm'}, default='schema'
        How an endpoint is told that a reply which is the verdict alone must be one of the labels: by a JSON schema, not
        at all, or by vLLM's list of texts (from its version 0.12 on).
    few_shot : FewShot, optional
        Labeled examples to show before the question, which make another judge of it.
    chunk : Chunking, optional
        How a long source is cut into windows; a source that fits into one is asked about as without.

    Attributes
    ----------
    name, version : str
        The prompt's id and its hash, with labeled examples a hash of both.

    Raises
    ------
    InputError
        A parameter is out of range.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judges import run_program
    >>> from deep.prompt_pool import PromptJudge, load_prompt
    >>> def ask(question):
    ...     return SimpleNamespace(text="The rain is not mentioned.\nVERDICT: NOT SUPPORTED", finish_reason="stop",
    ...                            refusal=None, model="tiny", tokens={"output": 12})
    >>> judge = PromptJudge(load_prompt("deep-strict-steps"))
    >>> run_program(judge.program(Example("The sun shone.", "It rained.", "1")), ask).vote
    0
    """

    prompt: Prompt
    samples: int = 1
    temperature: float | None = None
    max_tokens: int | None = None
    soft: bool = False
    repair: bool = True
    constrain: str = "schema"
    few_shot: FewShot | None = None
    chunk: Chunking | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(f"`samples` must be 1 or more. Got {self.samples}.")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise InputError(f"`temperature` must be a number of at least 0. Got {self.temperature!r}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"`max_tokens` must be at least 1. Got {self.max_tokens}.")
        check_choice(self.constrain, get_args(Constraint), "constrain")
        if self.few_shot is not None:
            self.prompt.check_few_shot()

    @property
    def name(self) -> str:
        """The prompt's id."""
        return self.prompt.id

    @property
    def version(self) -> str:
        """The prompt's hash; how often, how freely and by which windows it is asked makes no other column."""
        if self.few_shot is None:
            return self.prompt.hash
        return sha256(f"{self.prompt.hash} {self.few_shot.version}".encode()).hexdigest()

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judges.Judge`."""
        identity = {"kind": "prompt", "prompt": self.prompt.id, "prompt_hash": self.prompt.hash}
        coded = {"coded": True} if self.prompt.coded else {}
        examples = self.few_shot and {"few_shot": {"shots": self.few_shot.shots, "hash": self.few_shot.version}}
        return {**identity, **coded, **(examples or {}), **chunk_details(self.chunk), "parameters": self.parameters}

    @cached_property
    def parameters(self) -> dict[str, object]:
        """The parameters that go along with the prompt's messages."""
        # At the prompts' temperature of 0 all samples would be one answer, paid for several times.
        temperature = 1.0 if self.samples > 1 and self.temperature is None else self.temperature
        own = {"temperature": temperature, "max_tokens": self.max_tokens}
        parameters = {**self.prompt.parameters, **{name: value for name, value in own.items() if value is not None}}
        schema = self.prompt.schema()
        if schema is not None:
            parameters["response_format"] = reply_schema(self.prompt.kind, schema)
        return {**parameters, **(LOGPROBS if self.soft else {})}

    def n_questions(self, example: Example) -> int:
        """Return the number of samples, of all windows where the source is cut."""
        return self.samples * (1 if self.chunk is None else len(self.chunk.spans(example.source)))

    def most_calls(self, example: Example, /) -> int:
        """Return the number of questions, twice where each may be followed by a repair turn."""
        return self.n_questions(example) * (1 + self.repair)

    def program(self, example: Example, /) -> Program[Judgment]:
        """Ask about one example, all samples and windows at once, and once more where there is no answer to be read."""
        shots = () if self.few_shot is None else self.few_shot.choose(example)
        return over_windows(partial(self._ask, shots=shots), example, self.chunk, self.prompt.windows)

    def _ask(self, example: Example, shots: Sequence[Example]) -> Program[Judgment]:
        """Ask about one example, or about one window of it."""
        first = self._question(example, shots)
        questions = [first if i == 0 else replace(first, sample=i) for i in range(self.samples)]
        replies = yield questions
        judgments = [self.read(example, reply) for reply in replies]
        if self.repair:
            judgments = yield from self._repair(questions, judgments)
        return pool_judgments(judgments)

    def _question(self, example: Example, shots: Sequence[Example]) -> VoteQuestion:
        """Return the question of one sample about an example."""
        # The schema of a coded prompt is that of its example.
        schema = self.prompt.schema(example.source, example.claim, example.question) if self.prompt.coded else None
        form = {} if schema is None else {"response_format": reply_schema(self.prompt.kind, schema)}
        # Questions that begin with the same document are sent together, while the server's prefix cache has it.
        group = sha256(example.source.encode(errors="replace")).hexdigest()[:16] if self.prompt.document_first else None
        return VoteQuestion(
            step=self.prompt.kind,
            messages=self.prompt.render(example.source, example.claim, shots, question=example.question),
            parameters={**self.parameters, **form},
            version=self.version,
            read=partial(self.read, example),
            group=group,
            choice=self.prompt.choice(example.source, example.claim, self.constrain, question=example.question),
            repair=partial(self._repair_question, example, shots) if self.repair else None,
        )

    def _repair_question(self, example: Example, shots: Sequence[Example], text: str) -> VoteQuestion:
        """Return the question that quotes a reply without an answer and asks for the answer alone."""
        texts, question = (example.source, example.claim), example.question
        return VoteQuestion(
            step=REPAIR,
            messages=self.prompt.render_repair(*texts, text, shots, question=question),
            parameters={name: value for name, value in self.parameters.items() if name != "response_format"},
            version=self.version,
            read=partial(self.read, example),
            choice=self.prompt.choice(*texts, self.constrain, question=question, again=True),
        )

    def _repair(self, questions: Sequence[VoteQuestion], judgments: Sequence[Judgment]) -> Program[list[Judgment]]:
        """Ask once more about every sample that is unparsable; what stays unanswered stays as it is."""
        unread = {i: judgment for i, judgment in enumerate(judgments) if judgment.reason == "unparsable"}
        if not unread:
            return list(judgments)
        turns = [repair_of(questions[i], judgment.raw_text) for i, judgment in unread.items()]
        replies = yield turns
        second = {
            i: None if reply is None else question.read(reply)
            for i, question, reply in zip(unread, turns, replies, strict=True)
        }
        return [repaired_judgment(judgment, second.get(i)) for i, judgment in enumerate(judgments)]

    def read(self, example: Example, reply: LLMReply | None) -> Judgment:
        """Return the judgment of one reply; a missing one is ``failed``."""
        if reply is None:
            return Judgment(vote=ABSTAIN, reason="failed")
        judgment = self.prompt.parse(
            reply.text,
            finish_reason=reply.finish_reason,
            refusal=reply.refusal,
            source=example.source,
            claim=example.claim,
            question=example.question,
            logprobs=getattr(reply, "logprobs", None),
        )
        cost, seconds = getattr(reply, "cost", None), getattr(reply, "seconds", None)
        return replace(judgment, model=reply.model, tokens=dict(reply.tokens), cost=cost, seconds=seconds)


def repair_of(question: VoteQuestion, text: str | None) -> VoteQuestion:
    """Return the repair turn of a question that has one, given the text of its reply."""
    if question.repair is None:
        raise TypeError("A question must have a repair turn. Got one without.")
    return replace(question.repair(text or ""), sample=question.sample)
