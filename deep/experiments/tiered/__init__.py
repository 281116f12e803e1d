"""Staged judges after CogniBench: a label of each sentence, task by task (`tiered`), in two prompts or as a list."""

import json
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from itertools import chain

from deep._util.checks import check_choice
from deep._util.names import sentence_spans
from deep.experiments.stepwise import STRINGS, object_schema, read_list, strings
from deep.experiments.tiered import _wording
from deep.experiments.tiered._wording import CRITERIA as CRITERIA
from deep.experiments.tiered._wording import TIERS as TIERS
from deep.experiments.tiered._wording import Contrast as Contrast
from deep.experiments.tiered._wording import LabelTally as LabelTally
from deep.experiments.tiered._wording import SentenceVerdict as SentenceVerdict
from deep.experiments.tiered._wording import TurnReading as TurnReading
from deep.experiments.tiered._wording import load_contrasts as load_contrasts
from deep.experiments.tiered._wording import read_tags as read_tags
from deep.judges import LLMJudge, LLMReply, Program, Question
from deep.prompt_pool import Material, Span, why_unusable
from deep.records import Example, Judgment, Reason

# The labels of the task `check`, good and bad, by the type of a statement.
CHECKED = {"factual": ("faithful", "invented"), "cognitive": ("rational", "misleading")}

# The labels that a sentence may get, by task.
TaskLabels = Mapping[str, tuple[str, ...]]


def sample_questions(
    step: str, messages: list[dict[str, str]], samples: int, max_tokens: int, schema: Mapping[str, object] | None = None
) -> list[Question]:
    """Return one question as often as it is to be asked; more than one sample is drawn at temperature 1."""
    parameters = {"temperature": float(samples > 1), "max_tokens": max_tokens}
    question = Question(step=step, messages=messages, schema=schema, parameters=parameters)
    return [replace(question, sample=sample) for sample in range(samples)]


@dataclass(slots=True)
class ReviewedTurn:
    """One reply under examination, and what has been said of it so far.

    Parameters
    ----------
    material : Material
        Source and reply, made safe to stand in a prompt.
    spans : list of Span
        Where each sentence stands in the reply.
    texts : list of str
        The sentences.
    labels : mapping of str to tuple of str
        The labels that a sentence may get, by task.
    code : str
        What the names of our tags end in where the texts hold tags like ours; empty else.
    replies : list of LLMReply or None
        Those to all questions so far.
    unaligned : list of str
        What replies gave a label to that is no sentence.
    tallies : list of dict of int to LabelTally
        Of each question so far, the labels by sentence.
    """

    material: Material
    spans: list[Span]
    texts: list[str]
    labels: TaskLabels
    code: str
    replies: list[LLMReply | None]
    unaligned: list[str]
    tallies: list[dict[int, LabelTally]]

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
        alike = _wording.holds_tag(material, {*chain(*labels.values()), _wording.UNLABELED_MARK})
        return cls(material, spans, texts, labels, material.code if alike else "", [], [], [])

    def label(
        self, task: str, names: Mapping[int, str], contrasts: Sequence[Contrast], samples: int
    ) -> Program[dict[int, LabelTally]]:
        """Ask for the labels of some sentences, and return what the samples say of each."""
        if not names:
            return {}
        marks = {self.spans[i]: name for i, name in names.items()}
        messages = _wording.messages_of(task, self.material, marks, contrasts, self.code)
        replies = yield sample_questions(task, messages, samples, 512 + len(self.material.claim) // 2)
        return self.count(task, names, replies)

    def count(self, task: str, names: Mapping[int, str], replies: Sequence[LLMReply | None]) -> dict[int, LabelTally]:
        """Count the labels that several replies to one question give to each sentence asked about."""
        self.replies += replies
        tallies = {i: LabelTally(len(replies)) for i in names}
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
        reading = read_tags(
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
        """Return the samples by label of one sentence, and the reason of the latest question that has too few."""
        own_tallies = [tallies[i] for tallies in self.tallies if i in tallies]
        votes = {label: n for tally in own_tallies for label, n in sorted(tally.labels.items())}
        return votes, next((tally.reason for tally in reversed(own_tallies) if tally.reason), None)

    def verdict(self, i: int, kind: str | None, met: Sequence[bool | None], level: str) -> SentenceVerdict:
        """Return the verdict on one sentence from its type and the criteria that it meets, in their order."""
        votes, reason = self.said(i)
        verdict, consistent = kind if kind == "irrelevant" else None, None
        if kind == "factual" and met[0] is not None:
            verdict, consistent = CHECKED[kind][not met[0]], met[0]
        elif kind == "cognitive":
            n_met = sum(passed is True for passed in met)
            needed = CRITERIA.index(level) + 1
            if False in met or n_met == len(CRITERIA):
                verdict = TIERS[n_met]
            elif n_met:
                verdict = f"at least {TIERS[n_met]}"
            consistent = True if n_met >= needed else (False if False in met else None)
        settled = consistent is not None or kind == "irrelevant"
        return SentenceVerdict(self.texts[i], kind, verdict, consistent, votes, None if settled else reason)


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
        return self.samples // 2 + 1 if self.threshold is None else self.threshold

    @abstractmethod
    def most_calls(self, example: Example) -> int:
        """Return the most calls that one example can take."""

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""
        reading = yield from self.read(example.source, example.claim)
        return reading.judgment()

    @abstractmethod
    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
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


# Raised when the same replies come to mean something else.
READING = 1

_OUTCOMES = {"grounded": ("grounded", "ungrounded"), "irrefutable": ("irrefutable", "debatable")}


@dataclass(frozen=True, kw_only=True)
class _LevelJudge(SentenceJudge):
    """A judge that decides at a level, and shows examples of right labels beside wrong ones."""

    level: str = "grounded"
    contrasts: tuple[Contrast, ...] | None = None

    def __post_init__(self) -> None:
        check_choice(self.level, CRITERIA, "level")
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class TieredJudge(_LevelJudge):
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
    >>> from deep.judges import run_program
    >>> from deep.experiments.tiered import TieredJudge
    >>> said = {"type": "factual", "check": "invented"}
    >>> def ask(question):
    ...     label = said[question.step]
    ...     return SimpleNamespace(text=f"<{label}>It snowed.</{label}>", finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> judgment = run_program(TieredJudge().program(Example("It rained.", "It snowed.", "1")), ask)
    >>> judgment.vote, judgment.evidence
    (0, ('invented: It snowed.',))
    """

    tiers: bool = True

    @property
    def name(self) -> str:
        """``tiered:`` and the level."""
        return f"tiered:{self.level}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {
            "reading": READING,
            "labels": _wording.LABELS_BY_TASK,
            "level": self.level,
            "tiers": self.tiers,
            "texts": {name: text for name, text in _wording.wording().items() if name != "examples"},
            "contrasts": [asdict(contrast) for contrast in self._contrasts],
        }

    @property
    def _contrasts(self) -> tuple[Contrast, ...]:
        return _wording.own_contrasts() if self.contrasts is None else self.contrasts

    @property
    def _criteria(self) -> tuple[str, ...]:
        """The criteria that are asked about."""
        return CRITERIA if self.tiers else CRITERIA[: CRITERIA.index(self.level) + 1]

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples * (1 + len(self._criteria))

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence."""
        turn = ReviewedTurn.of(source, claim, sentences, _wording.LABELS_BY_TASK)

        def label(task: str, names: Mapping[int, str]) -> Program[dict[int, LabelTally]]:
            return turn.label(task, names, self._contrasts, self.samples)

        typed = yield from label("type", dict.fromkeys(range(len(turn.spans)), _wording.UNLABELED_MARK))
        kinds = {i: tally.kind() for i, tally in typed.items()}
        checked = yield from label("check", {i: k for i, k in kinds.items() if k in CHECKED and k})
        outcomes: dict[int, list[bool | None]] = {
            i: [tally.passes(*CHECKED[str(kinds[i])], self._threshold)] for i, tally in checked.items()
        }
        for criterion in self._criteria[1:]:
            # All criteria so far, and only cognitive statements have more than the first.
            live = [i for i, passed in outcomes.items() if kinds[i] == "cognitive" and all(passed)]
            tallies = yield from label(criterion, dict.fromkeys(live, _wording.UNLABELED_MARK))
            for i, tally in tallies.items():
                outcomes[i].append(tally.passes(*_OUTCOMES[criterion], self._threshold))
        verdicts = (turn.verdict(i, kinds.get(i), outcomes.get(i, []), self.level) for i in range(len(turn.spans)))
        return TurnReading(tuple(verdicts), tuple(turn.unaligned), tuple(turn.replies))


tiered_irrefutable = partial(TieredJudge, level="irrefutable")
tiered_rational = partial(TieredJudge, level="rational")


ASKED_LABELS: Mapping[str, tuple[str, ...]] = {"type": _wording.LABELS_BY_TASK["type"], **_wording.AUTO_LABELS}


@dataclass(frozen=True, kw_only=True)
class AutoLabelJudge(_LevelJudge):
    """Labels a reply sentence by sentence as the pipeline of CogniBench-L does: a classifier, then two prompts.

    Each sentence is typed factual or cognitive once. One prompt then asks of all sentences whether they are faithful,
    hallucinated or irrelevant, and decides on the factual ones; another asks for the tier of the cognitive ones, which
    decides on these. Both prompts are asked several times. Strategy after [1]_; the wording is deep's own. The
    annotators' protocol, with a question for each criterion, is :class:`TieredJudge`.

    Parameters
    ----------
    level : {'grounded', 'irrefutable', 'rational'}, default='grounded'
        The criterion that cognitive statements must meet for the reply to be consistent.
    samples : int, default=5
        Replies to each of the two prompts; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so. Default: the majority.
    contrasts : tuple of Contrast, optional
        Examples to show; default: those that come with deep.

    Attributes
    ----------
    name : str
        ``auto:`` and the level.
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
    >>> from deep.judges import run_program
    >>> from deep.experiments.tiered import AutoLabelJudge
    >>> said = {"type": "cognitive", "support": "hallucinated", "tier": "speculative"}
    >>> def ask(question):
    ...     label = said[question.step]
    ...     return SimpleNamespace(text=f"<{label}>Skiers will be glad.</{label}>", finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> judgment = run_program(AutoLabelJudge().program(Example("It snowed.", "Skiers will be glad.", "1")), ask)
    >>> judgment.vote, judgment.evidence
    (0, ('speculative: Skiers will be glad.',))
    """

    @property
    def name(self) -> str:
        """``auto:`` and the level."""
        return f"auto:{self.level}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {
            "reading": 1,
            "labels": ASKED_LABELS,
            "level": self.level,
            "texts": [_wording.wording()["system"], _wording.wording()["form"], *map(_wording.task_text, ASKED_LABELS)],
            "contrasts": [asdict(contrast) for contrast in self._contrasts],
        }

    @property
    def _contrasts(self) -> tuple[Contrast, ...]:
        return _wording.auto_contrasts() if self.contrasts is None else self.contrasts

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return 1 + 2 * self.samples

    def read(
        self, source: str, claim: str, sentences: Sequence[str] | None = None, kinds: Sequence[str] | None = None
    ) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence.

        Parameters
        ----------
        source : str
            The material that the reply was written from.
        claim : str
            The reply. Not used where `sentences` are given.
        sentences : sequence of str, optional
            The sentences that the reply consists of; default: those that its text is split into.
        kinds : sequence of str, optional
            Their types, factual or cognitive, as a classifier gave them; default: the LLM is asked, once.
        """
        turn = ReviewedTurn.of(source, claim, sentences, ASKED_LABELS)
        every = dict.fromkeys(range(len(turn.spans)), _wording.UNLABELED_MARK)
        if kinds is None:
            typed = yield from turn.label("type", every, self._contrasts, 1)
            kind_of = {i: tally.kind() for i, tally in typed.items()}
        else:
            kind_of = dict(enumerate(kinds))
        relevant = {i: _wording.UNLABELED_MARK for i in every if kind_of[i] != "irrelevant"}
        support = yield from turn.label("support", relevant, self._contrasts, self.samples)
        for i, tally in support.items():
            kind_of[i] = "irrelevant" if 2 * tally.labels["irrelevant"] > self.samples else kind_of[i]
        cognitive = {i: _wording.UNLABELED_MARK for i in every if kind_of[i] == "cognitive"}
        tiers = yield from turn.label("tier", cognitive, self._contrasts, self.samples)
        # A sample that calls a factual sentence irrelevant does not object to it.
        good = ("faithful", "irrelevant")
        outcomes = {i: [tally.passes(good, "hallucinated", self._threshold)] for i, tally in support.items()}
        outcomes |= {i: self._criteria_met(tally) for i, tally in tiers.items()}
        verdicts = (turn.verdict(i, kind_of[i], outcomes.get(i, []), self.level) for i in every)
        return TurnReading(tuple(verdicts), tuple(turn.unaligned), tuple(turn.replies))

    def _criteria_met(self, tally: LabelTally) -> list[bool | None]:
        """Return the criteria that a cognitive sentence meets; none is looked at behind one that it fails."""
        outcomes: list[bool | None] = []
        for below in range(1, len(TIERS)):
            outcomes.append(tally.passes(TIERS[below:], TIERS[:below], self._threshold))
            if not outcomes[-1]:
                break
        return outcomes


auto_irrefutable = partial(AutoLabelJudge, level="irrefutable")
auto_rational = partial(AutoLabelJudge, level="rational")


KEY = "hallucinated"

SCHEMA = object_schema(**{KEY: STRINGS})


@dataclass(frozen=True, kw_only=True)
class ListJudge(SentenceJudge):
    """Judges a reply by asking for the list of its hallucinated sentences, without labels, steps or examples.

    The baseline of the tiered judge, and the form of answer that a fine-tuned detector is trained to give.

    Parameters
    ----------
    samples : int, default=1
        Replies to the question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence is hallucinated where so many samples list it. Default: the majority.

    Attributes
    ----------
    name : str
        ``listed``.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.

    Raises
    ------
    InputError
        A parameter is out of range.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judges import run_program
    >>> from deep.experiments.tiered import ListJudge
    >>> def ask(question):
    ...     return SimpleNamespace(text='{"hallucinated": ["Snow fell."]}', finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> run_program(ListJudge().program(Example("It rained.", "It rained. Snow fell.", "1")), ask).evidence
    ('consistent: It rained.', 'hallucinated: Snow fell.')
    """

    samples: int = 1

    @property
    def name(self) -> str:
        """``listed``."""
        return "listed"

    @property
    def _content(self) -> Mapping[str, object]:
        texts = _wording.wording()
        return {"reading": 2, "texts": [texts["system"], texts["tasks"]["list"]]}

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples

    def messages(self, source: str, claim: str) -> list[dict[str, str]]:
        """Return the chat messages that ask about one reply."""
        return _wording.messages_of("list", Material(source, claim), {}, (), "")

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the question about one reply, as a program that ends with a verdict for each sentence."""
        parts = [claim[start:end] for start, end in sentence_spans(claim)] if sentences is None else list(sentences)
        if not parts:
            return TurnReading(())
        messages = self.messages(source, claim)
        replies = yield sample_questions("list", messages, self.samples, 256 + len(claim) // 2, SCHEMA)
        tallies = [LabelTally(self.samples) for _ in parts]
        unaligned: list[str] = []
        for sample, reply in enumerate(replies):
            unaligned += [
                f"list, sample {sample + 1}, {text}" for text in _count(reply, (source, claim), parts, tallies)
            ]
        verdicts = (self._verdict(text, tally) for text, tally in zip(parts, tallies, strict=True))
        return TurnReading(tuple(verdicts), tuple(unaligned), tuple(replies))

    def _verdict(self, text: str, tally: LabelTally) -> SentenceVerdict:
        consistent = tally.passes("left out", "listed", self._threshold)
        reason = tally.reason if consistent is None else None
        return SentenceVerdict(text, consistent=consistent, votes=dict(sorted(tally.labels.items())), reason=reason)


def list_text(sentences: Sequence[str]) -> str:
    """Return the answer that lists some sentences."""
    return json.dumps({KEY: list(sentences)}, ensure_ascii=False)


def _count(
    reply: LLMReply | None, shown: Sequence[str], sentences: Sequence[str], tallies: Sequence[LabelTally]
) -> list[str]:
    """Count one reply about the texts that were shown, and return what it lists that is none of the sentences."""
    items = read_list(reply, KEY, *shown)
    listed = None if isinstance(items, str) else strings(items)
    reason: Reason = items if isinstance(items, str) else "unparsable"
    texts = [_wording.fold_text(sentence) for sentence in sentences]
    result: Counter[int] = Counter()
    unaligned = []
    for item in listed or []:
        position = _wording.closest_sentence(_wording.fold_text(item), texts)
        if position is None:
            unaligned.append(" ".join(item.split())[:200])
        else:
            result.update({position, *(i for i, text in enumerate(texts) if text and text in _wording.fold_text(item))})
    for i, tally in enumerate(tallies):
        if i in result:
            tally.labels["listed"] += 1
        elif listed is None or unaligned:
            # What could not be found again may have meant any of the others.
            tally.reasons[reason] += 1
        else:
            tally.labels["left out"] += 1
    return unaligned
