"""A judge made of a prompt: one question a sample, each reply a vote, their majority the judgment."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256

from deep.exceptions import InputError
from deep.judges import REPAIR, Choice, LLMJudge, LLMReply, Program, VoteQuestion
from deep.prompt_pool import _windows
from deep.prompt_pool._answer_form import check_constraint
from deep.prompt_pool._material import FewShot
from deep.prompt_pool._prompt import Prompt
from deep.records import ABSTAIN, Example, Judgment

LOGPROBS: Mapping[str, object] = {"logprobs": True, "top_logprobs": 5}
"""Five alternatives are what every server that has log-probabilities allows."""


@dataclass(frozen=True)
class PromptJudge(LLMJudge):
    r"""Judges an example by one reply to a prompt, or by the majority of several.

    Parameters
    ----------
    prompt : Prompt
    samples : int, default=1
        Replies to the question; above 1 they are drawn at `temperature`, 1.0 where none is given: draws from the
        judge's own distribution, where at 0 they would be one reply several times over.
    temperature : float, optional
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
    chunk: _windows.Chunking | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(f"`samples` must be 1 or more. Got {self.samples}.")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise InputError(f"`temperature` must be a number of at least 0. Got {self.temperature!r}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"`max_tokens` must be at least 1. Got {self.max_tokens}.")
        check_constraint(self.constrain)
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
        said = {"kind": "prompt", "prompt": self.prompt.id, "prompt_hash": self.prompt.hash}
        coded = {"coded": True} if self.prompt.coded else {}
        shown = self.few_shot and {"few_shot": {"shots": self.few_shot.shots, "hash": self.few_shot.version}}
        return {**said, **coded, **(shown or {}), **_windows.chunk_details(self.chunk), "parameters": self.parameters}

    @property
    def gives_scores(self) -> bool:
        """Whether its judgments have a soft vote beside the vote."""
        return self.soft or self.samples > 1 or self.prompt.kind == "score"

    @cached_property
    def parameters(self) -> dict[str, object]:
        """The parameters that go along with the prompt's messages."""
        temperature = 1.0 if self.samples > 1 and self.temperature is None else self.temperature
        own = {"temperature": temperature, "max_tokens": self.max_tokens}
        chosen = {**self.prompt.parameters, **{name: value for name, value in own.items() if value is not None}}
        schema = self.prompt.schema()
        if schema is not None:
            chosen["response_format"] = _layout(self.prompt.kind, schema)
        return {**chosen, **(LOGPROBS if self.soft else {})}

    def n_questions(self, example: Example) -> int:
        """Return the number of samples, of all windows where the source is cut."""
        return self.samples * len(_windows.window_spans(self.chunk, example))

    def most_calls(self, example: Example, /) -> int:
        """Return the number of questions, twice where each may be followed by a repair turn."""
        return self.n_questions(example) * (1 + self.repair)

    def program(self, example: Example, /) -> Program[Judgment]:
        """Ask about one example, all samples and windows at once, and once more where there is no answer to be read."""
        shots = () if self.few_shot is None else self.few_shot.choose(example)
        ask = partial(self._ask, shots=shots)
        return _windows.over_windows(ask, example, _windows.window_spans(self.chunk, example), self.prompt.windows)

    def _ask(self, example: Example, shots: Sequence[Example]) -> Program[Judgment]:
        """Ask about one example, or about one window of it."""
        first = self._question(example, shots)
        questions = [first if i == 0 else replace(first, sample=i) for i in range(self.samples)]
        replies = yield questions
        judgments = [self.read(example, reply) for reply in replies]
        if self.repair:
            judgments = yield from self._repaired(questions, judgments)
        return _windows.pool_judgments(judgments)

    def _question(self, example: Example, shots: Sequence[Example]) -> VoteQuestion:
        return VoteQuestion(
            step=self.prompt.kind,
            messages=self.prompt.render(example.source, example.claim, shots, question=example.question),
            parameters=self._asked_with(example),
            version=self.version,
            read=partial(self.read, example),
            group=sha256(example.source.encode(errors="replace")).hexdigest()[:16]
            if self.prompt.document_first
            else None,
            choice=self._choice(example),
            repair=partial(self._repair_question, example, shots) if self.repair else None,
        )

    def _choice(self, example: Example, *, again: bool = False) -> Choice | None:
        if not self.prompt.is_direct:
            return None
        return self.prompt.choice(example.source, example.claim, self.constrain, question=example.question, again=again)

    def _asked_with(self, example: Example) -> dict[str, object]:
        """Return the parameters of a question: the schema of a coded prompt is that of its example."""
        schema = self.prompt.schema(example.source, example.claim, example.question) if self.prompt.coded else None
        return {**self.parameters, **({} if schema is None else {"response_format": _layout(self.prompt.kind, schema)})}

    def _repair_question(self, example: Example, shots: Sequence[Example], text: str) -> VoteQuestion:
        """Return the question that quotes a reply without an answer and asks for the answer alone."""
        return VoteQuestion(
            step=REPAIR,
            messages=self.prompt.render_repair(example.source, example.claim, text, shots, question=example.question),
            parameters={name: value for name, value in self.parameters.items() if name != "response_format"},
            version=self.version,
            read=partial(self.read, example),
            choice=self._choice(example, again=True),
        )

    def _repaired(self, questions: Sequence[VoteQuestion], judgments: Sequence[Judgment]) -> Program[list[Judgment]]:
        """Ask once more about every sample that is unparsable; what stays unanswered stays as it is."""
        unread = {i: judgment for i, judgment in enumerate(judgments) if judgment.reason == "unparsable"}
        if not unread:
            return list(judgments)
        asked = [repair_of(questions[i], judgment.raw_text) for i, judgment in unread.items()]
        replies = yield asked
        second = {
            i: None if reply is None else question.read(reply)
            for i, question, reply in zip(unread, asked, replies, strict=True)
        }
        return [_windows.repaired_judgment(judgment, second.get(i)) for i, judgment in enumerate(judgments)]

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


def _layout(name: str, schema: Mapping[str, object]) -> dict[str, object]:
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def repair_of(question: VoteQuestion, text: str | None) -> VoteQuestion:
    """Return the repair turn of a question that has one, given the text of its reply."""
    if question.repair is None:
        raise TypeError("A question must have a repair turn. Got one without.")
    return replace(question.repair(text or ""), sample=question.sample)
