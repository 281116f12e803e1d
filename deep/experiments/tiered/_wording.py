"""What the tiered judge says: its tasks, the labels of each, and examples of a right label beside a wrong one."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

from deep._util.files import read_asset, read_toml
from deep.exceptions import InputError
from deep.judges import LLMReply
from deep.prompt_pool import Material, Span, commonest, render, usage_of
from deep.records import ABSTAIN, Judgment, Reason

# The least similarity, from 0 to 1, at which reworded text is still taken for the sentence.
MIN_SIMILARITY = 0.6

# More tags than this are no markup of a turn; the bound keeps the work small, whatever a reply holds.
TAGS_A_SENTENCE = 8

_TAG = r"<\s*(/?)\s*({names})"
_TAG_REST = r"(?:\s[^<>]{0,300})?>"
# Characters beside a tag by which a copy out of the document is known.
_TOLD_BY = 40

# The words by which sentences are likened.
_WORD = re.compile(r"\w+")
# What a reasoning model writes before its reply.
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class TagReading:
    """The labels that tags gave to each sentence.

    Parameters
    ----------
    labels : tuple of (str or None)
        One a sentence: its label, None where no tag stood at it, or several that differ.
    unaligned : tuple of str
        Tags whose text is none of the sentences, as ``label: text``.
    """

    labels: tuple[str | None, ...]
    unaligned: tuple[str, ...] = ()


@dataclass(slots=True)
class _TextPiece:
    """Text without a tag in it, the labels of the tags that open right before it and of those that close behind it."""

    text: str
    opened: list[str | None]
    closed: list[str | None] = field(default_factory=list)


def mark_spans(text: str, marks: Mapping[Span, str]) -> str:
    """Return `text` with a tag around each span: its name opens, its name behind a slash closes.

    Examples
    --------
    >>> from deep.experiments.tiered._wording import mark_spans
    >>> mark_spans("It rained. Why?", {(0, 10): "factual"})
    '<factual>It rained.</factual> Why?'
    """
    parts, end = [], 0
    for (start, stop), name in sorted(marks.items()):
        parts += [text[end:start], f"<{name}>", text[start:stop], f"</{name}>"]
        end = stop
    return "".join([*parts, text[end:]])


def holds_tag(material: Material, names: Iterable[str]) -> bool:
    """Tell whether a source or a claim holds the beginning of a tag of one of some names, also once decoded."""
    pattern = re.compile(_TAG.format(names="|".join(map(re.escape, names))), re.IGNORECASE)
    return any(map(pattern.search, material.texts))


def read_tags(
    reply: str,
    sentences: Sequence[str],
    labels: Collection[str],
    *,
    marks: Collection[str] = (),
    code: str = "",
    shown: Material | None = None,
) -> TagReading:
    """Return the label that a reply gives to each sentence; never raises, whatever the reply holds.

    Parameters
    ----------
    reply : str
        The text with tags in it. Tags may be lost, nested or in another order, and the wording may differ.
    sentences : sequence of str
        All that are to be labeled, in their order; each gets a label or None.
    labels : collection of str
        The names of the tags that count.
    marks : collection of str, optional
        The names of tags that may be left over from the question and say nothing.
    code : str, optional
        What the names must carry behind a hyphen.
    shown : Material, optional
        The texts that the judge saw, where the names carry no code: a tag that stands there beside the same words is
        a copy, and says nothing.

    Returns
    -------
    TagReading
        An opening tag labels the first sentence behind it, a closing tag the last sentence before it, so that a
        lost tag neither takes a label from a neighbour nor gives it one.

    Examples
    --------
    >>> from deep.experiments.tiered._wording import read_tags
    >>> reply = "<good>It rained. <bad>The wind blew very hard.</bad> <good>Dogs bark.</good>"
    >>> reading = read_tags(reply, ["It rained.", "The wind blew hard.", "Nobody came."], ["good", "bad"])
    >>> reading.labels, reading.unaligned
    (('good', 'bad', None), ('good: Dogs bark.',))
    """
    suffix = f"-{code}" if code else ""
    forms = {f"{name}{suffix}".casefold(): name for name in labels} | dict.fromkeys((f"{m}{suffix}" for m in marks), "")
    texts = [fold_text(sentence) for sentence in sentences]
    labels_at: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    unaligned = []
    for number, piece in enumerate(_pieces(_THOUGHT.sub(" ", reply), forms, TAGS_A_SENTENCE * (len(texts) + 2))):
        for tags, last in ((piece.opened, False), (piece.closed, True)):
            for label in filter(None, tags):
                text = fold_text(piece.text)
                beside = f"{text[-_TOLD_BY:]}</{label}>" if last else f"<{label}>{text[:_TOLD_BY]}"
                if shown is not None and shown.holds(beside):
                    continue
                position = closest_sentence(text, texts, last=last)
                if position is None:
                    unaligned.append(f"{label}: {' '.join(piece.text.split())[:200]}")
                    continue
                # Two sentences of the same words in one piece are told apart by its ends.
                second = last and 2 * len(text) >= 3 * len(texts[position])
                labels_at[texts[position]][2 * number + second].add(label)
    return TagReading(_by_position(texts, labels_at), tuple(dict.fromkeys(unaligned)))


def _pieces(reply: str, tags: Mapping[str, str], most_tags: int) -> list[_TextPiece]:
    """Cut a reply at its tags; an element with nothing in it is passed over."""
    names = "|".join(map(re.escape, tags))
    tag = re.compile(_TAG.format(names=names) + _TAG_REST, re.IGNORECASE)
    pieces: list[_TextPiece] = []
    waiting: list[str | None] = []
    start = 0
    for match in [*islice(tag.finditer(reply), most_tags), None]:
        text = reply[start : len(reply) if match is None else match.start()]
        if text.strip():
            pieces.append(_TextPiece(text, waiting))
            waiting = []
        if match is None:
            break
        start = match.end()
        label = tags.get(match[2].casefold()) or None
        if not match[1]:
            waiting.append(label)
        elif waiting:
            waiting.pop()
        elif pieces:
            pieces[-1].closed.append(label)
    return pieces


def fold_text(text: str) -> str:
    """Return a text in lower case and with single blanks."""
    return " ".join(text.casefold().split())


def closest_sentence(text: str, sentences: Sequence[str], *, last: bool = False) -> int | None:
    """Return the position of the sentence that a text is, or begins with; None where there is none.

    Parameters
    ----------
    text : str
        In lower case and with single blanks, as are the sentences.
    sentences : sequence of str
        Those to choose from.
    last : bool, default=False
        Look for the sentence that it ends with.

    Returns
    -------
    int or None
        The first of equal ones: the sentence itself, else the longest that stands whole at the end in question, else
        the most similar one, if no other is as similar.

    Examples
    --------
    >>> from deep.experiments.tiered._wording import closest_sentence
    >>> sentences = ["it rained.", "why?", "nobody came."]
    >>> [closest_sentence(text, sentences) for text in ("why? it rained.", "nobody ever came", "no")]
    [1, 2, None]
    """
    if text in sentences:
        return sentences.index(text)
    stands = str.endswith if last else str.startswith
    whole = [i for i, sentence in enumerate(sentences) if sentence and stands(text, sentence)]
    if whole:
        return max(whole, key=lambda i: (len(sentences[i]), -i))
    words = _WORD.findall(text)
    scores = {i: _similarity(words, _WORD.findall(sentence), last) for i, sentence in enumerate(sentences)}
    best = max(scores.values(), default=0.0)
    winners = [i for i, score in scores.items() if score == best]
    if best < MIN_SIMILARITY or len({sentences[i] for i in winners}) > 1:
        return None
    return winners[0]


def _similarity(words: Sequence[str], sentence: Sequence[str], last: bool) -> float:
    """Return how alike a sentence and a text, or the end of the text in question, are: from 0 to 1."""
    if not sentence or not words:
        return 0.0
    part = words[-len(sentence) :] if last else words[: len(sentence)]
    matcher = SequenceMatcher(None, b=sentence, autojunk=False)
    best = 0.0
    for other in (part, words) if len(words) <= 3 * len(sentence) else (part,):
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= MIN_SIMILARITY and matcher.quick_ratio() >= MIN_SIMILARITY:
            best = max(best, matcher.ratio())
    return best


def _by_position(texts: Sequence[str], labels_at: Mapping[str, Mapping[int, set[str]]]) -> tuple[str | None, ...]:
    """Return each sentence's label, None where several conflict; of sentences alike, the first tagged is the first."""
    result: list[str | None] = [None] * len(texts)
    for text, places in labels_at.items():
        positions = [i for i, other in enumerate(texts) if other == text]
        labels = [places[place] for place in sorted(places)]
        if len(labels) != len(positions):
            # A sentence written out several times; or fewer tagged than there are, and no telling which.
            labels = [set().union(*labels)] * len(positions) if len(labels) > len(positions) else []
        for position, several in zip(positions, labels, strict=False):
            if len(several) == 1:
                result[position] = next(iter(several))
    return tuple(result)


CRITERIA = ("rational", "grounded", "irrefutable")
"""The criteria of a cognitive statement, in the order in which they are asked."""

TIERS = ("misleading", "speculative", "reliable", "irrefutable")
"""What a cognitive statement is by the number of criteria, in that order, that it meets."""

# Types of statement; of two that as many samples name, the first, as more is asked of it.
KINDS = ("cognitive", "factual", "irrelevant")


# Verdicts that mean the same at every level.
IS_HALLUCINATED = {"irrelevant": False, "faithful": False, "consistent": False, "invented": True, "hallucinated": True}


def check_samples(samples: object, threshold: object) -> None:
    """Raise unless both are whole numbers, the threshold no more than the samples, or None."""
    if type(samples) is not int or samples < 1:
        raise InputError(f"`samples` must be a whole number of at least 1. Got {samples!r}.")
    if threshold is not None and threshold not in range(1, samples + 1):
        raise InputError(f"`threshold` must be a whole number from 1 to {samples}. Got {threshold!r}.")


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """A judge's verdict on one sentence.

    Parameters
    ----------
    text : str
        The sentence, word for word.
    kind : {'cognitive', 'factual', 'irrelevant', None}
        None where the judge does not say or the samples leave it open.
    verdict : str or None
        irrelevant, faithful, invented, misleading, speculative, reliable or irrefutable; ``at least speculative``
        and ``at least reliable`` where the next criterion was not asked or not answered; None where nothing is known.
    consistent : bool or None
        Whether it meets the level asked for; None where it is irrelevant or undecided.
    votes : mapping of str to int
        Samples by label, over all tasks.
    reason : str or None
        Why nothing more is known, where an answer was missing.
    """

    text: str
    kind: str | None = None
    verdict: str | None = None
    consistent: bool | None = None
    votes: Mapping[str, int] = field(default_factory=dict)
    reason: Reason | None = None

    @property
    def words(self) -> int:
        """Words, as white space parts them."""
        return len(self.text.split())

    def hallucinated(self, level: str) -> bool | None:
        """Return whether it is invented, or a cognitive statement below a level; None where that is left open.

        Raises
        ------
        KeyError
            Its verdict is none.
        """
        if self.verdict is None or self.verdict in IS_HALLUCINATED:
            return IS_HALLUCINATED.get(self.verdict or "")
        tier = self.verdict.removeprefix("at least ")
        if tier not in TIERS:
            raise KeyError(self.verdict)
        fails = TIERS.index(tier) <= CRITERIA.index(level)
        return None if fails and tier != self.verdict else fails


@dataclass(slots=True)
class LabelTally:
    """The labels that the samples of one task gave to one sentence, and why others gave none."""

    n_samples: int
    labels: Counter[str] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)

    def kind(self) -> str | None:
        """Return the commonest type; None where the missing samples could have made another one commoner."""
        first, second, *_ = sorted(KINDS, key=lambda kind: -self.labels[kind])
        missing = self.reasons.total()
        return first if not missing or self.labels[first] - self.labels[second] > missing else None

    def passes(self, good: str | Collection[str], bad: str | Collection[str], threshold: int) -> bool | None:
        """Return False where `threshold` samples say a bad label, True where so many no longer can; else None."""
        if self._n(bad) >= threshold:
            return False
        return True if self._n(good) > self.n_samples - threshold else None

    def _n(self, labels: str | Collection[str]) -> int:
        return self.labels[labels] if isinstance(labels, str) else sum(self.labels[label] for label in labels)

    @property
    def reason(self) -> Reason | None:
        """The commonest reason for a missing label."""
        return commonest(self.reasons.elements()) if self.reasons else None


@dataclass(frozen=True, slots=True)
class TurnReading:
    """A judge's verdicts on the sentences of one turn.

    Parameters
    ----------
    sentences : tuple of SentenceVerdict
        One a sentence, in order.
    unaligned : tuple of str
        What replies said of text that is none of the sentences.
    replies : tuple of (LLMReply or None)
        All replies, None where a call failed for good.
    """

    sentences: tuple[SentenceVerdict, ...]
    unaligned: tuple[str, ...] = ()
    replies: tuple[LLMReply | None, ...] = ()

    def judgment(self) -> Judgment:
        """Return the vote on the whole: 1 where every sentence that is not irrelevant meets the level.

        One sentence that surely fails makes it 0; short of that, one that is undecided leaves it without a vote.
        """
        checked = [sentence for sentence in self.sentences if sentence.kind != "irrelevant"]
        undecided = [sentence.reason for sentence in checked if sentence.consistent is None]
        vote: int = 1
        reason: Reason | None = None
        if any(sentence.consistent is False for sentence in checked):
            vote = 0
        elif undecided:
            vote, reason = ABSTAIN, commonest(undecided)
        elif not checked:
            vote, reason = ABSTAIN, "abstained"
        plain: dict[bool | None, str] = {True: "consistent", False: "hallucinated"}
        verdicts = (s.verdict or plain.get(s.consistent, f"undecided ({s.reason})") for s in self.sentences)
        return Judgment(
            vote=vote,
            reason=reason,
            rationale="\n".join(f"not aligned: {text}" for text in self.unaligned) or None,
            evidence=tuple(f"{verdict}: {s.text}" for verdict, s in zip(verdicts, self.sentences, strict=True)),
            **usage_of(self.replies),
        )


# The labels that a sentence may get, by task, in the order in which the tasks are asked.
LABELS_BY_TASK: Mapping[str, tuple[str, ...]] = {
    "type": ("irrelevant", "factual", "cognitive"),
    "check": ("faithful", "invented", "rational", "misleading"),
    "grounded": ("grounded", "ungrounded"),
    "irrefutable": ("irrefutable", "debatable"),
}

# The labels of the two prompts of the automatic pipeline.
AUTO_LABELS: Mapping[str, tuple[str, ...]] = {"support": ("faithful", "hallucinated", "irrelevant"), "tier": TIERS}

EVERY_LABEL = {**LABELS_BY_TASK, **AUTO_LABELS}

# The name of the tags around a sentence of which nothing is known yet.
UNLABELED_MARK = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """A sentence with the label that it should get beside one that it should not.

    Parameters
    ----------
    task : {'check', 'grounded', 'irrefutable', 'support', 'tier', 'type'}
        The question of the judge beside which it is shown as an example.
    material : str
        What the sentence is to be judged from.
    sentence : str
        The sentence that `right` is the label of.
    right, wrong : str
        Labels of the task.
    why : str
        What tells them apart.

    Raises
    ------
    InputError
        A task or a label is not known, or a text is empty.
    """

    task: str
    material: str
    sentence: str
    right: str
    wrong: str
    why: str

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, str) or not value.strip():
                raise InputError(f"`{name}` of an example must be text. Got {value!r}.")
        if self.task not in EVERY_LABEL:
            allowed = ", ".join(sorted(EVERY_LABEL))
            raise InputError(f"`task` of an example must be one of {allowed}. Got {self.task!r}.")
        for name in ("right", "wrong"):
            if getattr(self, name) not in EVERY_LABEL[self.task]:
                allowed = ", ".join(sorted(EVERY_LABEL[self.task]))
                raise InputError(f"`{name}` of an example must be one of {allowed}. Got {getattr(self, name)!r}.")
        if self.right == self.wrong:
            raise InputError(f"`wrong` of an example must differ from its `right`. Got {self.wrong!r} for both.")


def wording(judge: str = "tiered") -> Mapping[str, Any]:
    """Return the texts of a judge that come with deep, by name."""
    return read_asset(__package__, f"{judge}.toml")


def task_text(task: str) -> str:
    """Return the text of a task."""
    return str(wording("auto" if task in AUTO_LABELS else "tiered")["tasks"][task])


def own_contrasts() -> tuple[Contrast, ...]:
    """Return the contrastive examples of the annotators' protocol."""
    return tuple(Contrast(**fields) for fields in wording()["examples"])


def auto_contrasts() -> tuple[Contrast, ...]:
    """Return the contrastive examples of the automatic pipeline, those of its first step included."""
    own = tuple(Contrast(**fields) for fields in wording("auto")["examples"])
    return (*own, *(contrast for contrast in own_contrasts() if contrast.task == "type"))


def load_contrasts(path: str | Path) -> tuple[Contrast, ...]:
    """Return the contrastive examples of a TOML file: tables ``[[examples]]`` with the fields of :class:`Contrast`.

    Raises
    ------
    InputError
        The file cannot be read, or an example breaks a rule.
    """
    content = read_toml(path, "examples")
    tables = content.get("examples")
    if not isinstance(tables, list) or not tables or set(content) != {"examples"}:
        raise InputError(f"`examples` must hold only tables [[examples]]. Got {str(path)!r}. Add one.")
    return tuple(_contrast(table, number, path) for number, table in enumerate(tables, start=1))


def _contrast(table: Any, number: int, path: str | Path) -> Contrast:
    fields = sorted(Contrast.__annotations__)
    if not isinstance(table, dict) or sorted(table) != fields:
        got = sorted(table) if isinstance(table, dict) else table
        raise InputError(
            f"`examples` must have the fields {', '.join(fields)}. Got {got!r} in example {number} of {str(path)!r}."
        )
    try:
        return Contrast(**table)
    except InputError as error:
        raise InputError(f"{str(error).rstrip('.')} in example {number} of {str(path)!r}.") from None


def messages_of(
    task: str, material: Material, marks: Mapping[Span, str], contrasts: Sequence[Contrast], code: str
) -> list[dict[str, str]]:
    """Return the chat messages that ask for the label of every marked sentence.

    Parameters
    ----------
    task : str
        One of `EVERY_LABEL`, or ``list``, which marks nothing.
    material : Material
        The source, and as its claim the response.
    marks : mapping of (int, int) to str
        Span of the claim to the name of the tags around it.
    contrasts : sequence of Contrast
        Those of the task are shown.
    code : str
        What tags carry behind a hyphen; nothing where it is empty.
    """
    suffix = f"-{code}" if code else ""
    marked = mark_spans(material.claim, {span: name + suffix for span, name in marks.items()})
    parts = (
        material.fenced("source"),
        task_text(task).strip(),
        _shown(task, contrasts),
        _form(task, marks, suffix) if marks else "",
        f"<reply-{material.code}>\n{marked}\n</reply-{material.code}>",
    )
    user = "\n\n".join(part for part in parts if part)
    return [{"role": "system", "content": wording()["system"].strip()}, {"role": "user", "content": user}]


def _form(task: str, marks: Mapping[Span, str], suffix: str) -> str:
    names = sorted({name + suffix for name in marks.values()})
    values = {
        "opened": " or ".join(f"<{name}>" for name in names),
        "closed": " or ".join(f"</{name}>" for name in names),
        "pairs": ", ".join(f"<{label}{suffix}>...</{label}{suffix}>" for label in EVERY_LABEL[task]),
    }
    return render(wording()["form"], values).strip()


def _shown(task: str, contrasts: Sequence[Contrast]) -> str:
    """Return the examples of a task as text."""
    rows = [contrast for contrast in contrasts if contrast.task == task]
    if not rows:
        return ""
    lines = ["Some sentences with the label that is right for them and one that would be wrong:"]
    for contrast in rows:
        lines += [
            f"Material: {json.dumps(contrast.material, ensure_ascii=False)}",
            f"Sentence: {json.dumps(contrast.sentence, ensure_ascii=False)}",
            f"Right: {contrast.right}. Wrong: {contrast.wrong}. {contrast.why}",
        ]
    return "\n".join(lines)
