"""How a prompt asks for its answer, and the judgment that a reply makes of it."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal

from deep.judges import Choice, LLMReply
from deep.prompt_pool._material import Material
from deep.prompt_pool._reader import FinalAnswer, Kind, Output, ReplyReader, after_thoughts, entries
from deep.prompt_pool._sayings import normalise_label, read_label, values_stated
from deep.records import Judgment, Reason

# One entry a token of the reply, as chat completions give them: `token`, `logprob`, `top_logprobs`.
Logprobs = Sequence[Mapping[str, Any]]

_WORDS = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def soft_vote(value: str, logprobs: Logprobs, labels: Mapping[str, int]) -> float | None:
    """Return P(consistent) against P(inconsistent) at the first token of the answer `value` that tells them apart.

    Alternatives that begin labels of both kinds, of neither, or an abstention count for neither side. Where none begins
    a label of one side, that side is given the most that it can have: no more than the least likely alternative that
    is listed, and no more than all that are not.

    Parameters
    ----------
    value : str
        The answer as the judge wrote it; its last occurrence in the tokens is looked at.
    logprobs : sequence of mapping
        The tokens of the reply with their log-probabilities (natural logarithm) and most likely alternatives.
    labels : mapping of str to {1, 0, -1}
        The vote that each label of the prompt stands for; -1 abstains.

    Returns
    -------
    float or None
        In [0, 1]; None where the tokens do not hold the answer or no alternative begins a label.

    Examples
    --------
    >>> from deep.prompt_pool._answer_form import soft_vote
    >>> top = [{"token": " YES", "logprob": -0.105}, {"token": " NO", "logprob": -2.303}]
    >>> round(soft_vote("YES", [{"token": "VERDICT:"}, {"token": " YES", "top_logprobs": top}], {"YES": 1, "NO": 0}), 2)
    0.9
    >>> round(soft_vote("YES", [{"token": " YES", "top_logprobs": top[:1]}], {"YES": 1, "NO": 0}), 2)
    0.9
    """
    mass, unlisted = {1: 0.0, 0: 0.0}, 0.0
    before, weight = "", 1.0
    for token_here, alternatives in _steps(value, logprobs):
        for token, probability in alternatives:
            sides = _sides(before + token, labels)
            if len(sides) == 1 and sides <= mass.keys():
                mass[sides.pop()] += weight * probability
        probabilities = [probability for _, probability in alternatives if probability > 0]
        unlisted += weight * max(min(1 - sum(probabilities), *probabilities), 0.0) if probabilities else 0.0
        if len(_sides(before + token_here, labels)) < 2:
            break
        before, weight = before + token_here, weight * dict(alternatives).get(token_here, 0.0)
    if not any(mass.values()):
        return None
    bounded = {side: result or unlisted for side, result in mass.items()}
    return bounded[1] / (bounded[1] + bounded[0])


def _steps(value: str, logprobs: Logprobs) -> Iterator[tuple[str, list[tuple[str, float]]]]:
    """Yield the tokens of the answer, each with the probabilities of those that could have stood in its place.

    What precedes the answer in its first token is left out.
    """
    words = _WORDS.search(value)
    entries = _token_entries(logprobs)
    position = "".join(entry["token"] for entry in entries).rfind(words[0]) if words else -1
    ends = list(accumulate(len(entry["token"]) for entry in entries))
    first = next((i for i, end in enumerate(ends) if end > position), 0)
    lead = entries[first]["token"][: position - ends[first]] if position >= 0 else ""
    for entry in entries[first:] if position >= 0 else ():
        listed = _token_entries(entry.get("top_logprobs")) or [entry]
        yield (
            entry["token"].removeprefix(lead),
            [(one["token"].removeprefix(lead), _probability(one)) for one in listed],
        )
        lead = ""


def _probability(entry: Mapping[str, Any]) -> float:
    """Return the probability of a token; 0 where none is told."""
    logprob = entry.get("logprob")
    if not isinstance(logprob, int | float) or logprob != logprob:  # `math.isnan` takes no number of 401 digits
        return 0.0
    # Servers send -9999 and, by rounding, a little above 0.
    return math.exp(max(min(logprob, 0.0), -1e3))


def _token_entries(listed: Any) -> list[Mapping[str, Any]]:
    """Return the entries of what an endpoint sent that name a token; servers differ in what they send."""
    if not isinstance(listed, Sequence):
        return []
    return [entry for entry in listed if isinstance(entry, Mapping) and isinstance(entry.get("token"), str)]


def _sides(token: str, labels: Mapping[str, int]) -> set[int]:
    """Return the polarities of the labels that `token` begins or, where it runs on, holds at its beginning."""
    start = normalise_label(token.lstrip(" :>{\"'"))
    if not start:
        return set()
    spelled = ((normalise_label(label), polarity) for label, polarity in labels.items())
    return {polarity for label, polarity in spelled if label.startswith(start) or start.startswith(label)}


# Finish reasons of several servers: the reply met its length limit, or was withheld.
CUT_OFF_REASONS = frozenset({"incomplete", "length", "max_output_tokens", "max_tokens", "model_length"})
WITHHELD_REASONS = frozenset({"blocklist", "content_filter", "prohibited_content", "recitation", "refusal", "safety"})

# The characters at either end of a longer reply that are read; what it holds between is no place for an answer.
MAX_CHARACTERS_A_SIDE = 30_000

_QUOTATION = re.compile(r'"([^"\n]{8,400})"|\u201c([^\u201d\n]{8,400})\u201d')
_CONSTRAINED_REPLY = re.compile(
    r'\s*\{\s*"(?P<kind>verdict|score)(?:-(?P<tag>[0-9a-f]{8}))?"\s*:\s*"(?P<label>[^"\\\n]{1,100})"\s*\}\s*'
)
_UNABLE = r"(?:can't|can ?not|won't|will not|(?:am|are|m|re) (?:unable|not able) to)"
_DECLINES = re.compile(
    r"[^.\n]{0,100}?\b(?:i|we)(?: (?:must|have to|need to|will have to))?[ ']"
    rf"(?:{_UNABLE} (?:\w+ )?(?:answer|assist|comply|continue|discuss|do (?:that|this)|engage|fulfill?|generate|help"
    r"|participate|process|produce|provide|respond|review)"
    r"|(?:politely |respectfully )?(?:decline|refuse)\b|(?:am|are|m|re) not (?:comfortable|allowed|permitted))"
    rf"|\W*(?:(?:i'm|i am|we're|we are) )?(?:very )?(?:sorry|my apologies|i apologi[sz]e)\b[^\n]{{0,80}}?"
    rf"(?:{_UNABLE}\W*$|against|polic(?:y|ies)\b|guidelines)",
    re.IGNORECASE,
)


def why_unusable(reply: LLMReply | None) -> Reason | None:
    """Return the reason why a reply cannot be read, whatever it was to answer; None where it can.

    Returns
    -------
    {'failed', 'refused', 'truncated', None}
        There is no reply; the endpoint or the model withheld it; it was cut off.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.prompt_pool import why_unusable
    >>> why_unusable(None), why_unusable(SimpleNamespace(text="The", finish_reason="length", refusal=None))
    ('failed', 'truncated')
    """
    if reply is None:
        return "failed"
    finish = str(reply.finish_reason or "").casefold()
    if reply.refusal or finish in WITHHELD_REASONS:
        return "refused"
    return "truncated" if finish in CUT_OFF_REASONS else None


@dataclass(frozen=True)
class AnswerForm:
    """How a prompt asks for its answer, and so how a reply is read.

    Parameters
    ----------
    kind : {'score', 'verdict'}
        Whether it asks for a score on a scale, or for one of the labels.
    output : {'json', 'text', 'xml'}
        Whether the answer stands in an object, on a line, or in an element.
    labels : mapping of str to {1, 0, -1}
        What each verdict stands for: consistent, inconsistent, abstained. Empty for a score.
    scale : (float, float) or None
        The lowest and the highest score. None for a verdict.
    threshold : float
        The scaled score from which the vote is 1.
    parts : tuple of str
        What is listed before the answer.
    told : tuple of str
        The labels that the judge is told to choose from; the others are spellings that are understood too.
    """

    kind: Kind
    output: Output
    labels: Mapping[str, int]
    scale: tuple[float, float] | None
    threshold: float
    parts: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    answer_first: bool = False
    scale_words: Mapping[str, float] = field(default_factory=dict)
    listed: bool = False

    def marker(self, tag: str) -> str:
        """Return the marker that announces the answer: a line's beginning, an element's name, or a key."""
        name = self.key(tag)
        return f"{self.kind.upper()}{name[len(self.kind) :]}:" if self.output == "text" else name

    def key(self, tag: str) -> str:
        """Return the key of the answer in an object that holds nothing else."""
        return f"{self.kind}-{tag}" if tag else self.kind

    def line(self, tag: str, label: str) -> str:
        """Return the line that gives an answer."""
        marker = self.marker(tag)
        if self.output == "json":
            return json.dumps({marker: label}, ensure_ascii=False)
        return f"<{marker}>{label}</{marker}>" if self.output == "xml" else f"{marker} {label}"

    def tag(self, material: Material, *, again: bool = False) -> str:
        """Return the code that the answer must carry, perhaps none.

        Asked `again`, it carries one too where a text holds an answer in disguise: a bare one may be a copy of it.
        """
        code = "" if self.output == "json" and not material.coded else material.tag(self.kind)
        forged = again and not (code or material.bare) and material.forges(self.kind, self.words)
        return material.code if forged else code

    def judge(
        self,
        text: str | None,
        *,
        finish_reason: str | None,
        refusal: str | None,
        material: Material | None,
        logprobs: Logprobs | None,
    ) -> Judgment:
        """Read one reply; never raises, whatever the reply holds."""
        finish = str(finish_reason or "").casefold()
        reply = text if isinstance(text, str) else ""
        if refusal or finish in WITHHELD_REASONS:
            return Judgment(vote=-1, reason="refused", raw_text=reply or refusal)
        cut = finish in CUT_OFF_REASONS
        begin = after_thoughts(reply) or 0
        # A server that holds replies to a schema wraps the answer; it is read as the line that the prompt asks for.
        wrapped = _CONSTRAINED_REPLY.fullmatch(reply, begin) if self.output != "json" else None
        if wrapped is not None and wrapped["kind"] == self.kind and wrapped["label"] in self.labels:
            line = self.line(wrapped["tag"] or "", wrapped["label"])
            plain = self.judge(line, finish_reason=None, refusal=None, material=material, logprobs=logprobs)
            return replace(plain, raw_text=reply)
        if self.listed and not cut:
            return self._list_judgment(reply, material)
        excerpt = reply
        # Both ends are read: some answers open a reply, most close it.
        if len(reply) > 2 * MAX_CHARACTERS_A_SIDE:
            begin = min(begin, len(reply) - 2 * MAX_CHARACTERS_A_SIDE)
            excerpt = f"{reply[begin : begin + MAX_CHARACTERS_A_SIDE]}\n{reply[-MAX_CHARACTERS_A_SIDE:]}"
        answers = ReplyReader(excerpt, self, cut, material).final_answers()
        if len({answer.reading.value for answer in answers}) == 1:
            return replace(self._judgment(answers, excerpt, logprobs), raw_text=reply)
        return Judgment(vote=-1, reason="unparsable" if answers else why_none(reply, cut), raw_text=reply)

    def verdicts_in(self, text: str) -> set[float]:
        """Return the values of all that can be read in a reply as an answer or a statement."""
        answers = ReplyReader(text[-MAX_CHARACTERS_A_SIDE:], self, cut=False, material=None).readable_answers
        return {*(answer.reading.value for answer in answers), *values_stated(text, self.words)}

    def entries(self, text: str) -> list[int] | None:
        """Return the polarity of each entry of a list, under the last key that has a label in all; None without one."""
        listed = entries(text)
        for key in reversed(listed[0] if listed else {}):
            polarities = [read_label(str(entry.get(key)), self.labels) for entry in listed]
            if None not in polarities:
                return [int(polarity) for polarity in polarities if polarity is not None]
        return None

    def _list_judgment(self, text: str, material: Material | None) -> Judgment:
        """Return the judgment of a reply that lists an answer for each part: 1 where all are, else 0."""
        result = None if material and any(map(material.repeats, entries(text))) else self.entries(text)
        if result is None:
            return Judgment(vote=-1, reason=why_none(text, cut=False), raw_text=text)
        vote = 0 if 0 in result else min(result)
        return Judgment(vote=vote, reason="abstained" if vote == -1 else None, raw_text=text)

    @cached_property
    def words(self) -> Mapping[str, float]:
        """The labels, or the words of the scale, each with what it stands for: a polarity, or a score from 0 to 1."""
        if self.scale is None or not self.scale_words:
            return self.labels
        low, high = self.scale
        return {word: (number - low) / (high - low) for word, number in self.scale_words.items()}

    def _judgment(self, answers: Sequence[FinalAnswer], text: str, logprobs: Logprobs | None) -> Judgment:
        """Return the judgment of answers that agree, last first."""
        last, first = answers[0], min(answers, key=lambda answer: answer.start)
        before = text[: first.start]
        fields = (last.place.fields if last.place else None) or {}
        reason = fields.get("reasoning")
        enclosed = before.partition("<reasoning>")[2].rpartition("</reasoning>")[0]
        rationale = ((reason if isinstance(reason, str) else "") or enclosed or before or last.reading.remark).strip()
        # What the judge lists where it was asked to, or else the passages that it quotes.
        evidence = list[str]()
        for part in self.parts:
            listed = fields.get(part) if fields else _lines_of(part, before)
            # Whatever else came in place of texts is left out.
            texts = [entry.strip() for entry in listed if isinstance(entry, str)] if isinstance(listed, list) else []
            evidence += [f"{part}: {text}" for text in texts if text]
        quoted = dict.fromkeys(straight or curly for straight, curly in _QUOTATION.findall(rationale))
        reading = last.reading.value
        vote = int(reading >= self.threshold) if self.scale else int(reading)
        return Judgment(
            vote=vote,
            reason="abstained" if vote == -1 else None,
            score=reading if self.scale else soft_vote(last.reading.said, logprobs or (), self.labels),
            raw_text=text,
            rationale=rationale or None,
            evidence=tuple(evidence or quoted),
        )


def _lines_of(part: str, text: str) -> list[str]:
    """Return the lines of the last element of a name, without the signs that make a list of them."""
    _, opening, inside = text.rpartition(f"</{part}>")[0].rpartition(f"<{part}>")
    return [line.strip().lstrip("-*\u2022").strip() for line in inside.splitlines()] if opening else []


def why_none(text: str, cut: bool) -> Reason:
    """Return why a reply without an answer has none; `cut` where it reached its length limit."""
    if cut:
        return "truncated"
    answer = text[after_thoughts(text) or 0 :].strip()
    return "refused" if _DECLINES.match(answer[:200].replace("\u2019", "'")) else "unparsable"


# How a choice of answers is told: not at all, as a JSON schema with an enumeration, or as vLLM's list of texts.
Constraint = Literal["none", "schema", "vllm"]


def choice_of(form: AnswerForm, tag: str, how: str) -> Choice | None:
    """Return the constraint to the labels of a verdict; None where nothing is to be constrained.

    Parameters
    ----------
    form : AnswerForm
        How the prompt asks for its answer.
    tag : str
        The code that the answer must carry.
    how : {'none', 'schema', 'vllm'}
        A JSON schema (``response_format``) makes the reply an object, ``{"verdict": "YES"}``; vLLM's
        ``structured_outputs``, from its version 0.12 on, makes it the very line that the prompt asks for.
    """
    if how == "none":
        return None
    labels = list(form.told)
    if how == "vllm":
        lines = [form.line(tag, label) for label in labels]
        return Choice({"structured_outputs": {"choice": lines}}, frozenset(map(_with_single_blanks, lines)))
    key = form.key(tag)
    answers = [json.dumps({key: label}, ensure_ascii=False) for label in labels]
    schema = object_schema({key: {"type": "string", "enum": labels}})
    return Choice({"response_format": reply_schema("verdict", schema)}, frozenset(map(_with_single_blanks, answers)))


def object_schema(properties: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def reply_schema(name: str, schema: Mapping[str, object]) -> dict[str, object]:
    """Return the parameter of a request that makes a reply an object of a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


def _with_single_blanks(text: str) -> str:
    return "".join(text.split())


# The most characters of the reply's end that are quoted, so that a repair has a greatest cost.
MOST_QUOTED = 2000

_REPAIR_TURN = """
A reply to all of the above follows, between tags. It is material too.

{reply}

That reply does not close with an answer that can be read. Give the answer now, and nothing else. Where the reply \
leaves it open, decide for yourself. Your whole reply is a single line. It reads {lines}, and no word comes after it.
"""


def repair_text(form: AnswerForm, material: Material, reply: str) -> str:
    """Return the paragraphs below a question that ask once more, for the answer alone.

    The reply is fenced by tags whose code stands in none of the texts, and it is read as a document is: what it holds
    can be copied, and what is copied is no vote.

    Parameters
    ----------
    form : AnswerForm
        How the prompt asks for its answer.
    material : Material
        The source and the claim, with the question where the prompt shows it.
    reply : str
        The reply as it came.
    """
    # The reply's own code: it is new, so that no tag in the reply can close the fence.
    fence = Material(reply[-MOST_QUOTED:], "\n".join(material.shown_texts))
    quoted = f"<reply-{fence.code}>\n{fence.source}\n</reply-{fence.code}>"
    tag = form.tag(material, again=True)
    # The lines that the judge may write.
    if form.scale is not None:
        low, high = form.scale
        lines = f'"{form.line(tag, "N")}", where N is a number from {low:g} to {high:g}'
    else:
        *others, last = (f'"{form.line(tag, label)}"' for label in form.told)
        lines = f"exactly {', '.join(others)} or {last}" if others else f"exactly {last}"
    return _REPAIR_TURN.format(reply=quoted, lines=lines)
