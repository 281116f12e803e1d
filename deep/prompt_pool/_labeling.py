"""Labeling functions made of prompts: one reply, or the mean of several."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from deep.exceptions import InputError
from deep.prompt_pool._prompt import Prompt
from deep.records import ABSTAIN, Example, Judgment

__all__ = ["PromptLabelingFunction", "Reply", "SampledLabelingFunction"]


class Reply(Protocol):
    """What a call layer hands back for one request; its `cost`, `seconds` and `logprobs` are used where it has them."""

    @property
    def text(self) -> str | None:
        """What the judge said."""

    @property
    def finish_reason(self) -> str | None:
        """Why it stopped."""

    @property
    def refusal(self) -> str | None:
        """What came in place of an answer."""

    @property
    def model(self) -> str | None:
        """The model that answered."""

    @property
    def tokens(self) -> Mapping[str, int]:
        """Usage by kind: input, cached, output, reasoning."""


Ask = Callable[..., Reply | None]
"""Called with messages, schema and parameters (and `sample=i` by a sampled function); None where the call failed."""


def _judge(prompt: Prompt, example: Example, reply: Reply | None) -> Judgment:
    if reply is None:
        return Judgment(vote=ABSTAIN, reason="failed")
    judgment = prompt.parse(
        reply.text,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        source=example.source,
        claim=example.claim,
        logprobs=getattr(reply, "logprobs", None),
    )
    cost, seconds = getattr(reply, "cost", None), getattr(reply, "seconds", None)
    return replace(judgment, model=reply.model, tokens=dict(reply.tokens), cost=cost, seconds=seconds)


@dataclass(frozen=True)
class PromptLabelingFunction:
    r"""Judges an example by one reply to one prompt.

    Parameters
    ----------
    prompt : Prompt
    ask : callable
        Called as ``ask(messages, schema, parameters)``; returns a :class:`Reply`, or None where the call failed
        for good. An error that it raises is passed on.

    Attributes
    ----------
    name, version : str
        The prompt's id and its hash.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.prompt_pool import PromptLabelingFunction, load_prompt
    >>> def ask(messages, schema, parameters):
    ...     return SimpleNamespace(text="The rain is not mentioned.\nVERDICT: NOT SUPPORTED", finish_reason="stop",
    ...                            refusal=None, model="tiny", tokens={"output": 12})
    >>> judge = PromptLabelingFunction(load_prompt("deep-strict-steps"), ask)
    >>> judge.label(Example("The sun shone.", "It rained.", "1")).vote
    0
    """

    prompt: Prompt
    ask: Ask
    name: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.prompt.id)
        object.__setattr__(self, "version", self.prompt.hash)

    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""
        messages = self.prompt.render(example.source, example.claim)
        return _judge(self.prompt, example, self.ask(messages, self.prompt.schema(), dict(self.prompt.parameters)))


@dataclass(frozen=True)
class SampledLabelingFunction:
    """Judges an example by several replies to one prompt.

    The vote is the majority's; a tie abstains. The score, kept beside it, is the mean of the replies' votes
    (of their scores, where the prompt asks for a score): the share of the judge's own opinion that finds the
    claim consistent, after self-consistency [1]_. A reply without a vote counts for neither.

    Parameters
    ----------
    prompt : Prompt
    ask : callable
        Called as ``ask(messages, schema, parameters, sample=i)`` with i from 0; a call layer that stores replies
        must tell the samples apart by it.
    samples : int, default=5
    temperature : float, default=1.0
        In place of the prompt's own: at 1 the replies are draws from the judge's own distribution, at 0 they
        would be one reply several times over.

    Attributes
    ----------
    name, version : str
        The prompt's id; its hash with the number of samples and the temperature.

    References
    ----------
    .. [1] Wang et al., ICLR 2023. https://arxiv.org/abs/2203.11171
    """

    prompt: Prompt
    ask: Ask
    samples: int = 5
    temperature: float = 1.0
    name: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise InputError(f"`samples` must be at least 1. Got {self.samples!r}.")
        if not 0 < self.temperature <= 2:
            raise InputError(f"`temperature` must lie in (0, 2]. Got {self.temperature!r}.")
        object.__setattr__(self, "name", self.prompt.id)
        object.__setattr__(self, "version", f"{self.prompt.hash}x{self.samples}t{self.temperature:g}")

    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""
        messages = self.prompt.render(example.source, example.claim)
        parameters = {**self.prompt.parameters, "temperature": self.temperature}
        schema = self.prompt.schema()
        replies = (self.ask(messages, schema, parameters, sample=i) for i in range(self.samples))
        return pool_judgments([_judge(self.prompt, example, reply) for reply in replies])


def pool_judgments(judgments: Sequence[Judgment]) -> Judgment:
    """Return the majority's vote and the mean score of several judgments of one example.

    Tokens, costs and seconds are summed; the cost is None where one is unknown. Without a single vote the
    commonest reason is given.
    """
    voted = [judgment for judgment in judgments if judgment.vote != ABSTAIN]
    vote, reason = _majority(voted, judgments)
    said = next((judgment for judgment in voted if judgment.vote == vote), judgments[0])
    return Judgment(
        vote=vote,
        reason=reason,
        score=_mean([_soft(judgment) for judgment in voted]),
        rationale=said.rationale,
        evidence=said.evidence,
        **add_up([judgment.raw_text for judgment in judgments], judgments),
    )


def add_up(texts: Sequence[str | None], said: Sequence[Any]) -> dict[str, Any]:
    """Return what several replies or judgments come to together: fields of a judgment.

    Returns
    -------
    dict
        The texts as a JSON list, models, tokens, cost and seconds; None where one is unknown.
    """
    tokens: Counter[str] = Counter()
    for one in said:
        tokens.update(one.tokens)
    models = dict.fromkeys(one.model for one in said if one.model)
    return {
        "raw_text": json.dumps(list(texts), ensure_ascii=False) if texts else None,
        "model": ", ".join(models) or None,
        "tokens": dict(tokens),
        **{name: _total([getattr(one, name, None) for one in said]) for name in ("cost", "seconds")},
    }


def _majority(voted: Sequence[Judgment], judgments: Sequence[Judgment]) -> tuple[int, Any]:
    if not voted:
        reasons = Counter(sorted(str(judgment.reason) for judgment in judgments))
        return ABSTAIN, reasons.most_common(1)[0][0]
    balance = sum(2 * judgment.vote - 1 for judgment in voted)
    return (ABSTAIN, "abstained") if balance == 0 else (int(balance > 0), None)


def _soft(judgment: Judgment) -> float:
    return float(judgment.vote) if judgment.score is None else judgment.score


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
