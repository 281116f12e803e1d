"""A program that asks the questions of its steps in a paper's words, and reads the replies in the paper's forms."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from deep._util.files import read_toml
from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.experiments.stepwise import TextQuestion
from deep.experiments.tiered import LabelTally, SentenceJudge, SentenceVerdict, TurnReading, read_tags, sample_questions
from deep.judges import LLMReply, Program, Question
from deep.prompt_pool import PLACEHOLDER, Material, clean, render, why_unusable
from deep.records import Example


@dataclass(frozen=True, slots=True)
class PrintedSteps:
    """The prompts of a judge's or a builder's steps, as a paper prints them.

    Parameters
    ----------
    id : str
        The file's `id`, else its name without suffix; a judge of it is ``printed:`` and the id.
    follows : str
        The paper and where in it they stand, and whether they were verified.
    steps : mapping of str to mapping
        By step: ``user``, ``reply`` (the form of the reply), and ``system`` where there is one.
    hash : str
        SHA-256 of all that is asked.
    """

    id: str
    follows: str
    steps: Mapping[str, Mapping[str, str]]
    hash: str

    def messages(self, step: str, **texts: str) -> list[dict[str, str]]:
        """Return the chat messages of a step; the texts stand in them without tags, as the paper has it."""
        cleaned = {name: clean(text, name) for name, text in texts.items()}
        templates = self.steps[step]
        return [
            {"role": role, "content": render(templates[role], cleaned).strip()}
            for role in ("system", "user")
            if role in templates
        ]


def load_steps(path: str | Path, wanted: Mapping[str, Sequence[str]], *, some: bool = False) -> PrintedSteps:
    """Return the steps of a file that ``deep prompts import`` wrote.

    Parameters
    ----------
    path : str or Path
        Path of the TOML file.
    wanted : mapping of str to sequence of str
        The steps that the file must hold, each with the placeholders that its messages may and must hold.
    some : bool, default=False
        One of them will do.

    Raises
    ------
    InputError
        The file cannot be read, or lacks a step, a message or a placeholder.
    """
    values = read_toml(path, "prompt")
    if some and not any(step in values for step in wanted):
        raise InputError(f"`prompt` must hold one of the steps {', '.join(wanted)}. Got none in {path!r}.")
    wanted = {step: names for step, names in wanted.items() if step in values or not some}
    for step, names in wanted.items():
        table = values.get(step)
        if not isinstance(table, dict) or not all(isinstance(table.get(key), str) for key in ("user", "reply")):
            raise InputError(f"`prompt` must have `user` and `reply` in a table [{step}]. Got none in {str(path)!r}.")
        result = PLACEHOLDER.findall(str(table.get("system", "")) + table["user"])
        if set(result) != set(names):
            raise InputError(
                f"`prompt` must hold the placeholders {', '.join(sorted(names))} in [{step}], and no others. "
                f"Got {', '.join(sorted(set(result))) or 'none'} in {str(path)!r}."
            )
    steps = {step: {key: str(text) for key, text in values[step].items()} for step in wanted}
    content = repr(sorted((step, sorted(texts.items())) for step, texts in steps.items()))
    return PrintedSteps(
        str(values.get("id") or Path(path).stem),
        str(values.get("follows") or "own design"),
        steps,
        sha256(content.encode()).hexdigest(),
    )


T = TypeVar("T")

# What a reasoning model writes before its reply.
_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL | re.IGNORECASE)
# The words below which a printed prompt asks for the evidence.
_FINAL = re.compile(r"FINAL\s+OUTPUT\W*?:[*_ ]*", re.IGNORECASE)
# How a line of a list begins: a bullet, a number, or "Segment 1:".
_BULLET = re.compile(r"\A\s*(?:[-*•]\s+|\d{1,2}[.)]\s+|\**Segment\s*#?\d*\**\s*:?\**\s*)", re.IGNORECASE)
# A line that says that there is no evidence.
_NOTHING = re.compile(r"\W*(?:none|n/?a|no (?:relevant )?(?:segments?|sentences?|evidence)\b.*)\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _TranslatedReply:
    """A reply whose text stands in the form that a step's reader expects; all else is the reply's own."""

    original: LLMReply
    text: str

    def __getattr__(self, name: str) -> object:
        return getattr(self.original, name)


def reworded(program: Program[T], printed: PrintedSteps) -> Program[T]:
    """Ask the questions of a program in printed words, as far as the prompts hold their steps; the others as they are.

    Parameters
    ----------
    program : generator
        Its questions are of :class:`TextQuestion`, whose texts the printed prompts are filled with.
    printed : PrintedSteps
        The prompts of the steps that are asked in place of deep's own words.

    Returns
    -------
    object
        The value of the program.
    """
    replies = None
    while True:
        try:
            questions = next(program) if replies is None else program.send(replies)
        except StopIteration as end:
            value: T = end.value
            return value
        pairs = [_in_print(question, printed) for question in questions]
        answers = yield [question for question, _ in pairs]
        replies = [_translated(reply, form) for reply, (_, form) in zip(answers, pairs, strict=True)]


def _in_print(question: Question, printed: PrintedSteps) -> tuple[Question, str | None]:
    """Return a question in printed words with the form of its reply; as it is, and None, where none is printed."""
    if not isinstance(question, TextQuestion):
        return question, None
    name = question.texts.get("manner_of")
    step = question.step if name is None else f"{question.step}-{name}"
    if step not in printed.steps:
        return question, None
    return replace(question, messages=printed.messages(step, **question.texts), schema=None), printed.steps[step][
        "reply"
    ]


def _translated(reply: LLMReply | None, form: str | None) -> LLMReply | None:
    """Return a reply in the form that the step's reader expects; one that is cut off or withheld as it is."""
    if reply is None or form is None or form not in _FORMS or why_unusable(reply) is not None or reply.text is None:
        return reply
    result = _FORMS[form](_THINKING.sub("", reply.text))
    return reply if result is None else _TranslatedReply(reply, json.dumps(result, ensure_ascii=False))  # type: ignore[return-value]


def _segments(text: str) -> Mapping[str, object] | None:
    """Return the claims of a list of segments behind ``>``, each with its assertions in the lines below it."""
    claims = []
    segment = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith(">"):
            segment = line.lstrip("> ").strip()
        elif segment:
            claims.append({"segment": segment, "claim": _BULLET.sub("", line)})
    return {"claims": claims} if claims else None


def _final_output(text: str) -> Mapping[str, object] | None:
    """Return the evidence below the last ``FINAL OUTPUT:``, a passage a line."""
    *_, last = (None, *_FINAL.finditer(text))
    if last is None:
        return None
    return {"evidence": [line for line in _lines(text[last.end() :]) if not _NOTHING.fullmatch(line)]}


def _facts(text: str) -> Mapping[str, object] | None:
    return {"facts": list(_lines(text))} if text.strip() else None


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a list without bullets, numbers and the quotes around them."""
    for line in text.splitlines():
        bare = _BULLET.sub("", line).strip().strip('"“”').strip()
        if any(map(str.isalnum, bare)):
            yield bare


# The forms that need another reader than a step has; text and a verdict are read as they stand.
_FORMS: Mapping[str, Callable[[str], Mapping[str, object] | None]] = {
    "segments": _segments,
    "final-output": _final_output,
    "lines": _facts,
}


# The one step of a printed judge of tags.
STEP = "tag"
# The tags that it puts around sentences.
LABELS = ("faithful", "hallu", "irrelevant")


@dataclass(frozen=True, kw_only=True)
class PrintedTagJudge(SentenceJudge):
    """Asks one printed prompt, several times, for a tag around each sentence, which decides on it.

    Parameters
    ----------
    printed : PrintedSteps
        With the step ``tag``; :func:`load_tag_judge` reads it from a file.
    samples : int, default=5
        Replies; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence is hallucinated where so many samples say so. Default: the majority.

    Attributes
    ----------
    name : str
        ``printed:`` and the id of the prompt.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.
    """

    printed: PrintedSteps

    @property
    def name(self) -> str:
        """``printed:`` and the id of the prompt."""
        return f"printed:{self.printed.id}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {"reading": 1, "prompt": self.printed.hash}

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the question about one reply, as a program that ends with a verdict for each sentence."""
        texts = [claim[start:end] for start, end in sentence_spans(claim)] if sentences is None else list(sentences)
        texts = [clean(text, "claim").strip() for text in texts]
        if not texts:
            return TurnReading(())
        claims = " ".join(f"<>{text}</>" for text in texts)
        messages = self.printed.messages(STEP, source=source, claims=claims)
        replies = yield sample_questions(STEP, messages, self.samples, 512 + len(claims) // 2)
        shown = Material(source, claim) if sentences is None else Material(source, " ".join(texts))
        tallies = [LabelTally(self.samples) for _ in texts]
        unaligned: list[str] = []
        for sample, reply in enumerate(replies):
            readable = reply is not None and why_unusable(reply) in (None, "truncated")
            tags = read_tags((reply.text or "") if reply and readable else "", texts, LABELS, marks=("",), shown=shown)
            unaligned += [f"{STEP}, sample {sample + 1}, {text}" for text in tags.unaligned]
            for tally, label in zip(tallies, tags.labels, strict=True):
                if label:
                    tally.labels[label] += 1
                else:
                    tally.reasons[why_unusable(reply) or "unparsable"] += 1
        verdicts = (self._verdict(text, tally) for text, tally in zip(texts, tallies, strict=True))
        return TurnReading(tuple(verdicts), tuple(unaligned), tuple(replies))

    def _verdict(self, text: str, tally: LabelTally) -> SentenceVerdict:
        votes = dict(sorted(tally.labels.items()))
        if 2 * tally.labels["irrelevant"] > self.samples:
            return SentenceVerdict(text, "irrelevant", "irrelevant", votes=votes)
        consistent = tally.passes(("faithful", "irrelevant"), "hallu", self._threshold)
        verdict = {True: "consistent", False: "hallucinated", None: None}[consistent]
        reason = tally.reason if consistent is None else None
        return SentenceVerdict(text, None, verdict, consistent, votes, reason)


def load_tag_judge(path: str | Path, *, samples: int = 5, threshold: int | None = None) -> PrintedTagJudge:
    """Return the judge of a file that ``deep prompts import --paper cognibench`` wrote.

    Raises
    ------
    InputError
        The file cannot be read, or lacks the step ``tag`` or one of its placeholders.
    """
    printed = load_steps(path, {STEP: ("claims", "source")})
    return PrintedTagJudge(printed=printed, samples=samples, threshold=threshold)
