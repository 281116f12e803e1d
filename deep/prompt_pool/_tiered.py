"""The tiered judge of CogniBench: sentence by sentence, first typed, then checked against rising criteria."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from itertools import chain
from typing import Any

from deep._checks import check_choice
from deep._text import sentence_spans
from deep.judge import LLMJudge, LLMReply, Program, Question
from deep.prompt_pool._answer import why_unusable
from deep.prompt_pool._material import Material
from deep.prompt_pool._tags import Span, read_tags
from deep.prompt_pool._tiered_reading import (
    CRITERIA,
    TIERS,
    LabelTally,
    SentenceVerdict,
    TurnReading,
    check_samples,
    majority_of,
)
from deep.prompt_pool._tiered_wording import LABELS, UNMARKED, Contrast, messages_of, own_contrasts, wording
from deep.records import Example, Judgment

READING = 1
"""Raised when the same replies come to mean something else."""

_OURS = re.compile(f"</?(?:{'|'.join(chain(*LABELS.values()))}|{re.escape(UNMARKED)})", re.IGNORECASE)

_OUTCOMES = {"grounded": ("grounded", "ungrounded"), "irrefutable": ("irrefutable", "debatable")}
_CHECKED = {"factual": ("faithful", "invented"), "cognitive": ("rational", "misleading")}


@dataclass(frozen=True, kw_only=True)
class TieredJudge(LLMJudge):
    """Judges a reply sentence by sentence, in up to four tasks that each label all sentences in one call.

    Each sentence is typed irrelevant, factual or cognitive; a factual one is then faithful or invented, and a
    cognitive one is held against three criteria, of which a later one is never asked where an earlier one failed:
    rational, grounded, irrefutable. By the number that it meets it is misleading, speculative, reliable or
    irrefutable. Strategy after [1]_; the wording is deep's own.

    Parameters
    ----------
    level : {'grounded', 'irrefutable', 'rational'}, default='grounded'
        The criterion that cognitive statements must meet for the reply to be consistent.
    samples : int, default=5
        Replies to each question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so: the lower, the more is found, the higher, the surer it is.
        Default: the majority.
    tiers : bool, default=True
        Ask for the criteria above `level` too, which tells all four tiers apart.
    contrasts : tuple of Contrast, optional
        Examples to show; default: those that come with deep.

    Attributes
    ----------
    name : str
        ``tiered:`` and the level.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.

    Raises
    ------
    InputError
        A parameter is out of range.

    References
    ----------
    .. [1] "CogniBench: a legal-inspired framework and dataset for assessing cognitive faithfulness of large language
       models", 2025. https://arxiv.org/abs/2505.20767

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judge import run_program
    >>> from deep.prompt_pool import TieredJudge
    >>> said = {"type": "factual", "check": "invented"}
    >>> def ask(question):
    ...     label = said[question.step]
    ...     return SimpleNamespace(text=f"<{label}>It snowed.</{label}>", finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> judgment = run_program(TieredJudge().program(Example("It rained.", "It snowed.", "1")), ask)
    >>> judgment.vote, judgment.evidence
    (0, ('invented: It snowed.',))
    """

    level: str = "grounded"
    samples: int = 5
    threshold: int | None = None
    tiers: bool = True
    contrasts: tuple[Contrast, ...] | None = None

    def __post_init__(self) -> None:
        check_choice(self.level, CRITERIA, "level")
        check_samples(self.samples, self.threshold)

    @property
    def name(self) -> str:
        """``tiered:`` and the level."""
        return f"tiered:{self.level}"

    @cached_property
    def version(self) -> str:
        """SHA-256 of all that decides what is asked and how it is read."""
        texts = {name: text for name, text in wording().items() if name != "examples"}
        content = {
            "reading": READING,
            "labels": LABELS,
            "level": self.level,
            "samples": self.samples,
            "threshold": self._threshold,
            "tiers": self.tiers,
            "texts": texts,
            "contrasts": [asdict(contrast) for contrast in self._contrasts],
        }
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def _threshold(self) -> int:
        return majority_of(self.samples) if self.threshold is None else self.threshold

    @property
    def _contrasts(self) -> tuple[Contrast, ...]:
        return own_contrasts() if self.contrasts is None else self.contrasts

    @property
    def _criteria(self) -> tuple[str, ...]:
        """The criteria that are asked about."""
        return CRITERIA if self.tiers else CRITERIA[: CRITERIA.index(self.level) + 1]

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples * (1 + len(self._criteria))

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""
        reading = yield from self.read(example.source, example.claim)
        return reading.judgment()

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence.

        Parameters
        ----------
        source : str
            The material that the reply was written from.
        claim : str
            The reply. Not used where `sentences` are given.
        sentences : sequence of str, optional
            The sentences that the reply consists of; default: those that its text is split into.
        """
        turn = _ReviewedTurn.of(source, claim, sentences)
        typed = yield from self._label("type", turn, dict.fromkeys(range(len(turn.spans)), UNMARKED))
        kinds = {i: tally.kind() for i, tally in typed.items()}
        checked = yield from self._label("check", turn, {i: k for i, k in kinds.items() if k in _CHECKED and k})
        met: dict[int, list[bool | None]] = {
            i: [tally.passes(*_CHECKED[str(kinds[i])], self._threshold)] for i, tally in checked.items()
        }
        for criterion in self._criteria[1:]:
            # All criteria so far, and only cognitive statements have more than the first.
            live = [i for i, passed in met.items() if kinds[i] == "cognitive" and all(passed)]
            answered = yield from self._label(criterion, turn, dict.fromkeys(live, UNMARKED))
            for i, tally in answered.items():
                met[i].append(tally.passes(*_OUTCOMES[criterion], self._threshold))
        verdicts = (self._verdict(turn, i, kinds.get(i), met.get(i, [])) for i in range(len(turn.spans)))
        return TurnReading(tuple(verdicts), tuple(turn.unaligned), tuple(turn.replies))

    def _label(self, task: str, turn: "_ReviewedTurn", names: Mapping[int, str]) -> Program[dict[int, LabelTally]]:
        """Ask for the labels of some sentences, and return what the samples say of each."""
        if not names:
            return {}
        marks = {turn.spans[i]: name for i, name in names.items()}
        messages = messages_of(task, turn.material, marks, self._contrasts, turn.code)
        parameters = {"temperature": float(self.samples > 1), "max_tokens": 512 + len(turn.material.claim) // 2}
        replies = yield [
            Question(step=task, messages=messages, parameters=parameters, sample=sample)
            for sample in range(self.samples)
        ]
        return turn.count(task, names, replies)

    def _verdict(self, turn: "_ReviewedTurn", i: int, kind: str | None, met: Sequence[bool | None]) -> SentenceVerdict:
        votes, reason = turn.said(i)
        verdict, consistent = kind if kind == "irrelevant" else None, None
        if kind == "factual" and met[0] is not None:
            verdict, consistent = _CHECKED[kind][not met[0]], met[0]
        elif kind == "cognitive":
            n_met = sum(passed is True for passed in met)
            needed = CRITERIA.index(self.level) + 1
            if False in met or n_met == len(CRITERIA):
                verdict = TIERS[n_met]
            elif n_met:
                verdict = f"at least {TIERS[n_met]}"
            consistent = True if n_met >= needed else (False if False in met else None)
        settled = consistent is not None or kind == "irrelevant"
        return SentenceVerdict(turn.texts[i], kind, verdict, consistent, votes, None if settled else reason)


@dataclass(slots=True)
class _ReviewedTurn:
    """One reply under examination, and what has been said of it so far."""

    material: Material
    spans: list[Span]
    texts: list[str]
    code: str
    replies: list[LLMReply | None]
    unaligned: list[str]
    tallies: list[dict[int, LabelTally]]

    @classmethod
    def of(cls, source: str, claim: str, sentences: Sequence[str] | None) -> "_ReviewedTurn":
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
        alike = _OURS.search(material.source) or _OURS.search(material.claim)
        return cls(material, spans, texts, material.code if alike else "", [], [], [])

    def count(self, task: str, names: Mapping[int, str], replies: Sequence[LLMReply | None]) -> dict[int, LabelTally]:
        """Count the labels that several replies to one question give to each sentence asked about."""
        self.replies += replies
        tallies = {i: LabelTally(len(replies)) for i in names}
        for sample, reply in enumerate(replies):
            labels = self._read(task, sample, set(names.values()), reply)
            for i, name in names.items():
                # A label of the other type of statement is no answer to what was asked.
                allowed = _CHECKED[name] if task == "check" else LABELS[task]
                if labels[i] in allowed:
                    tallies[i].labels[str(labels[i])] += 1
                else:
                    tallies[i].reasons[why_unusable(reply) or "unparsable"] += 1
        self.tallies.append(tallies)
        return tallies

    def _read(self, task: str, sample: int, marks: set[str], reply: LLMReply | None) -> Sequence[str | None]:
        readable = reply is not None and why_unusable(reply) in (None, "truncated")
        reading = read_tags(
            (reply.text or "") if reply and readable else "", self.texts, LABELS[task], marks=marks, code=self.code
        )
        self.unaligned += [f"{task}, sample {sample + 1}, {text}" for text in reading.unaligned]
        return reading.labels

    def said(self, i: int) -> tuple[dict[str, int], Any]:
        """Return the samples by label of one sentence, and why its last question has too few."""
        asked = [tallies[i] for tallies in self.tallies if i in tallies]
        votes = {label: n for tally in asked for label, n in sorted(tally.labels.items())}
        return votes, asked[-1].reason if asked else None
