"""A reply under examination: its sentences, the labels that samples gave them, and the verdicts these come to."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain

from deep._util.names import sentence_spans
from deep.experiments.tiered import _wording
from deep.judges import LLMJudge, LLMReply, Program, Question
from deep.prompt_pool import Material, Span, why_unusable
from deep.records import Example, Judgment, Reason

CHECKED = {"factual": ("faithful", "invented"), "cognitive": ("rational", "misleading")}
"""The labels of the task `check`, good and bad, by the type of a statement."""

TaskLabels = Mapping[str, tuple[str, ...]]
"""The labels that a sentence may get, by task."""


def sampled(
    step: str,
    messages: list[dict[str, str]],
    samples: int,
    max_tokens: int,
    schema: Mapping[str, object] | None = None,
) -> list[Question]:
    """Return one question as often as it is to be asked; above once its answers are drawn at temperature 1."""
    parameters = {"temperature": float(samples > 1), "max_tokens": max_tokens}
    question = Question(step=step, messages=messages, schema=schema, parameters=parameters)
    return [replace(question, sample=sample) for sample in range(samples)]


@dataclass(slots=True)
class ReviewedTurn:
    """One reply under examination, and what has been said of it so far."""

    material: Material
    spans: list[Span]
    texts: list[str]
    labels: TaskLabels
    code: str
    replies: list[LLMReply | None]
    unaligned: list[str]
    tallies: list[dict[int, _wording.LabelTally]]

    @classmethod
    def of(cls, source: str, claim: str, sentences: Sequence[str] | None, labels: TaskLabels) -> "ReviewedTurn":
        """Return a turn whose reply has been made safe to stand in a prompt, and split."""
        if sentences is None:
            material = Material(source, claim)
            spans = sentence_spans(material.claim)
        else:
            parts = [Material("", sentence).claim.strip() for sentence in sentences]
            material = Material(source, "\n".join(parts))
            ends = [sum(map(len, parts[: i + 1])) + i for i in range(len(parts))]
            spans = [(end - len(part), end) for part, end in zip(parts, ends, strict=True)]
        texts = [material.claim[start:end] for start, end in spans]
        # Where the texts hold a tag like ours, ours carry the code, so that a quoted one says nothing.
        alike = _wording.holds_tag(material, {*chain(*labels.values()), _wording.UNMARKED})
        return cls(material, spans, texts, labels, material.code if alike else "", [], [], [])

    def label(
        self, task: str, names: Mapping[int, str], contrasts: Sequence[_wording.Contrast], samples: int
    ) -> Program[dict[int, _wording.LabelTally]]:
        """Ask for the labels of some sentences, and return what the samples say of each."""
        if not names:
            return {}
        marks = {self.spans[i]: name for i, name in names.items()}
        messages = _wording.messages_of(task, self.material, marks, contrasts, self.code)
        replies = yield sampled(task, messages, samples, 512 + len(self.material.claim) // 2)
        return self.count(task, names, replies)

    def count(
        self, task: str, names: Mapping[int, str], replies: Sequence[LLMReply | None]
    ) -> dict[int, _wording.LabelTally]:
        """Count the labels that several replies to one question give to each sentence asked about."""
        self.replies += replies
        tallies = {i: _wording.LabelTally(len(replies)) for i in names}
        for sample, reply in enumerate(replies):
            labels = self._read(task, sample, set(names.values()), reply)
            for i, name in names.items():
                # A label of the other type of statement is no answer to what was asked.
                allowed = CHECKED[name] if task == "check" else self.labels[task]
                if labels[i] in allowed:
                    tallies[i].labels[str(labels[i])] += 1
                else:
                    tallies[i].reasons[why_unusable(reply) or "unparsable"] += 1
        self.tallies.append(tallies)
        return tallies

    def _read(self, task: str, sample: int, marks: set[str], reply: LLMReply | None) -> Sequence[str | None]:
        readable = reply is not None and why_unusable(reply) in (None, "truncated")
        reading = _wording.read_tags(
            (reply.text or "") if reply and readable else "",
            self.texts,
            self.labels[task],
            marks=marks,
            code=self.code,
            shown=None if self.code else self.material,
        )
        self.unaligned += [f"{task}, sample {sample + 1}, {text}" for text in reading.unaligned]
        return reading.labels

    def said(self, i: int) -> tuple[dict[str, int], Reason | None]:
        """Return the samples by label of one sentence, and why the last question that has too few has."""
        asked = [tallies[i] for tallies in self.tallies if i in tallies]
        votes = {label: n for tally in asked for label, n in sorted(tally.labels.items())}
        return votes, next((tally.reason for tally in reversed(asked) if tally.reason), None)

    def verdict(self, i: int, kind: str | None, met: Sequence[bool | None], level: str) -> _wording.SentenceVerdict:
        """Return the verdict on one sentence from its type and the criteria that it meets, in their order."""
        votes, reason = self.said(i)
        verdict, consistent = kind if kind == "irrelevant" else None, None
        if kind == "factual" and met[0] is not None:
            verdict, consistent = CHECKED[kind][not met[0]], met[0]
        elif kind == "cognitive":
            n_met = sum(passed is True for passed in met)
            needed = _wording.CRITERIA.index(level) + 1
            if False in met or n_met == len(_wording.CRITERIA):
                verdict = _wording.TIERS[n_met]
            elif n_met:
                verdict = f"at least {_wording.TIERS[n_met]}"
            consistent = True if n_met >= needed else (False if False in met else None)
        settled = consistent is not None or kind == "irrelevant"
        return _wording.SentenceVerdict(self.texts[i], kind, verdict, consistent, votes, None if settled else reason)


@dataclass(frozen=True, kw_only=True)
class SentenceJudge(LLMJudge):
    """A judge that labels a reply sentence by sentence; a subclass has `name`, `read`, `most_calls` and `_content`.

    Parameters
    ----------
    samples : int, default=5
        Replies to a question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so. Default: the majority.

    Raises
    ------
    InputError
        A parameter is out of range.
    """

    samples: int = 5
    threshold: int | None = None

    def __post_init__(self) -> None:
        _wording.check_samples(self.samples, self.threshold)

    @property
    @abstractmethod
    def name(self) -> str:
        """The beginning of the name of its column."""

    @property
    @abstractmethod
    def _content(self) -> Mapping[str, object]:
        """All but the samples that decides what is asked and how it is read."""

    @cached_property
    def version(self) -> str:
        """SHA-256 of all that decides what is asked and how it is read."""
        content = {**self._content, "samples": self.samples, "threshold": self._threshold}
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def _threshold(self) -> int:
        return _wording.majority_of(self.samples) if self.threshold is None else self.threshold

    @abstractmethod
    def most_calls(self, example: Example) -> int:
        """Return the most calls that one example can take."""

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""
        reading = yield from self.read(example.source, example.claim)
        return reading.judgment()

    @abstractmethod
    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[_wording.TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence.

        Parameters
        ----------
        source : str
            The material that the reply was written from.
        claim : str
            The reply.
        sentences : sequence of str, optional
            Its sentences; default: those that its text is split into.
        """
