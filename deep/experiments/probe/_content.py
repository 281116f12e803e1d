"""Base content, invented facts and their insertion: what a response of the benchmark is made of."""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from typing import TypeVar

from deep._files import JsonObject
from deep.experiments.probe._records import Article, Insertion, Sample
from deep.experiments.stepwise import TextQuestion, fence_code, fenced_messages, read_list
from deep.judge import LLMReply, Program, Question
from deep.prompt_pool import SearchableText, Span, why_unusable

T = TypeVar("T")

STYLES = ("blog", "lecture_notes", "faq", "textbook")
PARAMETERS: JsonObject = {"temperature": 1.0, "max_tokens": 4096}
"""At temperature 1 another sample of the same question is another answer."""

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```[a-z]*\n(?P<inside>.*)\n```\Z", re.DOTALL)
_FACTS_SCHEMA = {
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "string"}}},
    "required": ["facts"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Rejected:
    """Why what a model made cannot be used.

    Parameters
    ----------
    step : str
    why : str
        A few words, the same for the same cause.
    """

    step: str
    why: str


class GivenUpError(Exception):
    """A step gave nothing usable in as many attempts as it has."""


@cache
def prompts() -> JsonObject:
    """Return the prompts of the builder, its styles and its levels."""
    return tomllib.loads(files(__package__).joinpath("prompts.toml").read_text(encoding="utf-8"))


def _question(step: str, texts: Mapping[str, str], **words: str) -> Question:
    messages = fenced_messages(prompts()[step], texts, **words)
    schema = _FACTS_SCHEMA if step == "invent" else None
    known = {**texts, **{name: words[name] for name in ("manner_of",) if name in words}}
    known |= {"count": words["count"].partition(" ")[0]} if "count" in words else {}
    return TextQuestion(step=step, messages=messages, schema=schema, parameters=dict(PARAMETERS), texts=known)


def ask_again(
    question: Question, read: Callable[[LLMReply | None], T | Rejected], attempts: int, log: list[Rejected]
) -> Program[T]:
    """Ask a question until its answer can be used, each time for another sample, from the second on at temperature 1.

    Returns
    -------
    object
        The first usable reply as `read` returns it.

    Raises
    ------
    GivenUpError
        None of `attempts` replies was usable.
    """
    freely = {**question.parameters, "temperature": 1.0}
    for sample in range(attempts):
        (reply,) = yield [replace(question, parameters=freely, sample=sample) if sample else question]
        value = read(reply)
        if not isinstance(value, Rejected):
            return value
        log.append(value)
    raise GivenUpError


def _read_text(step: str, reply: LLMReply | None) -> str | Rejected:
    """Return a reply of plain text without a thinking block and a fence around it."""
    why = why_unusable(reply)
    if reply is None or why is not None:
        return Rejected(step, why or "failed")
    text = _THINKING.sub("", reply.text or "").strip()
    fenced = _FENCE.match(text)
    text = fenced["inside"].strip() if fenced else text
    return text if any(map(str.isalnum, text)) else Rejected(step, "unparsable")


def write_sample(
    article: Article, task: str, style: str, complexity: int, *, attempts: int, log: list[Rejected]
) -> Program[Sample]:
    """Write one response, without its claims: the base content, and `complexity` inventions worked in."""
    asked = None
    if task == "question_answering":
        asked = yield from _text("ask", {"source": article.text}, attempts, log)
    response = yield from _base(article, task, style, asked, attempts, log)
    insertions: tuple[Insertion, ...] = ()
    if complexity:
        response, insertions = yield from _poison(article, response, complexity, attempts, log)
    return Sample(
        article_id=article.article_id,
        source=article.text,
        task=task,
        complexity=complexity,
        response=response,
        style=style if task == "style_transfer" else None,
        question=asked,
        insertions=insertions,
    )


def _base(
    article: Article, task: str, style: str, asked: str | None, attempts: int, log: list[Rejected]
) -> Program[str]:
    texts = {"source": article.text}
    if asked is not None:
        return (yield from _text("answer", {**texts, "question": asked}, attempts, log))
    if task == "summarization":
        return (yield from _text("summarize", texts, attempts, log))
    return (yield from _text("restyle", texts, attempts, log, style=prompts()["styles"][style], manner_of=style))


def _text(step: str, texts: Mapping[str, str], attempts: int, log: list[Rejected], **words: str) -> Program[str]:
    question = _question(step, texts, **words)
    return (yield from ask_again(question, lambda reply: _read_text(step, reply), attempts, log))


def _poison(
    article: Article, base: str, complexity: int, attempts: int, log: list[Rejected]
) -> Program[tuple[str, tuple[Insertion, ...]]]:
    """Invent facts and work them into base content; return the new text with the spans of the facts."""
    level = prompts()["level"][str(complexity)]
    question = _question("invent", {"source": article.text}, count=level["count"], manner=level["invent"])
    known = SearchableText(article.text)
    facts = yield from ask_again(question, lambda reply: _read_facts(reply, complexity, known), attempts, log)
    listed = "\n".join(f"{number}. {fact}" for number, fact in enumerate(facts, start=1))
    question = _question("insert", {"response": base, "facts": listed}, manner=level["insert"])
    code = fence_code(base, listed)
    read = partial(_read_edited, base=base, code=code, count=complexity)
    text, spans = yield from ask_again(question, read, attempts, log)
    return text, tuple(Insertion(fact, span) for fact, span in zip(facts, spans, strict=True))


def _read_facts(reply: LLMReply | None, count: int, known: SearchableText) -> list[str] | Rejected:
    items = read_list(reply, "facts", known.text)
    if isinstance(items, str):
        return Rejected("invent", items)
    facts = [" ".join(item.split()) for item in items if isinstance(item, str) and any(map(str.isalnum, item))]
    if len(facts) != len(items) or len(set(facts)) != count:
        return Rejected("invent", "not as many facts as asked for")
    if any(known.find(fact) is not None for fact in facts):
        return Rejected("invent", "a fact stands in the article")
    return facts


def _read_edited(reply: LLMReply | None, base: str, code: str, count: int) -> tuple[str, list[Span]] | Rejected:
    text = _read_text("insert", reply)
    return text if isinstance(text, Rejected) else read_insertions(text, base, code, count)


def read_insertions(edited: str, base: str, code: str, count: int) -> tuple[str, list[Span]] | Rejected:
    """Take the tags out of an edited text, and return it with the spans that they enclosed.

    Parameters
    ----------
    edited : str
        With each addition between ``<added-N-CODE>`` and ``</added-N-CODE>``.
    base : str
        What must remain without the additions, but for white space.
    code : str
    count : int
        How many additions there must be.

    Returns
    -------
    (str, list of (int, int)) or Rejected
        Spans in the order of their numbers, without white space at their ends.

    Examples
    --------
    >>> from deep.experiments.probe._content import read_insertions
    >>> text, (span,) = read_insertions("It fell<added-1-0a>, in a storm</added-1-0a>.", "It fell.", "0a", 1)
    >>> text, text[slice(*span)]
    ('It fell, in a storm.', ', in a storm')
    >>> read_insertions("It sank<added-1-0a>, in a storm</added-1-0a>.", "It fell.", "0a", 1).why
    'the rest was altered'
    """
    pieces = list(re.finditer(rf"<added-(\d{{1,3}})-{code}>(.*?)</added-\1-{code}>", edited, re.DOTALL))
    numbers = [int(piece[1]) for piece in pieces]
    if sorted(numbers) != list(range(1, count + 1)) or edited.count(f"-{code}>") != 2 * count:
        return Rejected("insert", "an addition cannot be located")
    text, rest, at = "", "", 0
    spans: dict[int, Span] = {}
    for number, piece in zip(numbers, pieces, strict=True):
        between = edited[at : piece.start()]
        rest += between
        text += between
        added = piece[2]
        start = len(text) + len(added) - len(added.lstrip())
        spans[number] = (start, start + len(added.strip()))
        text += added
        at = piece.end()
    text, rest = text + edited[at:], rest + edited[at:]
    if not all(any(map(str.isalnum, text[slice(*span)])) for span in spans.values()):
        return Rejected("insert", "an addition is empty")
    if "".join(rest.split()) != "".join(base.split()):
        return Rejected("insert", "the rest was altered")
    lead = len(text) - len(text.lstrip())
    return text.strip(), [(spans[n][0] - lead, spans[n][1] - lead) for n in sorted(spans)]
