"""Base content, invented facts and their insertion: what a response of the benchmark is made of."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TypeVar

from deep._util.files import JsonObject, read_asset
from deep.experiments import stepwise
from deep.experiments.probe._records import Article, FoundExcerpt, GoldClaim, Insertion, Sample
from deep.judges import LLMReply, Program, Question
from deep.prompt_pool import SearchableText, Span, n_covered, why_unusable

T = TypeVar("T")

STYLES = ("blog", "lecture_notes", "faq", "textbook")
# At temperature 1 another sample of the same question is another answer.
PARAMETERS: JsonObject = {"temperature": 1.0, "max_tokens": 4096}

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"\A```[a-z]*\n(?P<inside>.*)\n```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rejected:
    """The reason why content from a model cannot be used.

    Parameters
    ----------
    step : str
        The step that failed, such as ``invent``, ``insert`` or ``decompose``.
    why : str
        A few words, the same for the same cause.
    """

    step: str
    why: str


class GivenUpError(Exception):
    """A step gave nothing usable in as many attempts as it has."""


def prompts() -> JsonObject:
    """Return the prompts of the builder, its styles and its levels."""
    return read_asset(__package__, "prompts.toml")


def _question(step: str, texts: Mapping[str, str], **words: str) -> Question:
    messages = stepwise.fenced_messages(prompts()[step], texts, **words)
    schema = stepwise.object_schema(facts=stepwise.STRINGS) if step == "invent" else None
    values = {**texts, **{name: words[name] for name in ("manner_of",) if name in words}}
    values |= {"count": words["count"].partition(" ")[0]} if "count" in words else {}
    return stepwise.TextQuestion(step=step, messages=messages, schema=schema, parameters=dict(PARAMETERS), texts=values)


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
    question = None
    if task == "question_answering":
        question = yield from _text("ask", {"source": article.text}, attempts, log)
    response = yield from _base(article, task, style, question, attempts, log)
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
        question=question,
        insertions=insertions,
    )


def _base(
    article: Article, task: str, style: str, question: str | None, attempts: int, log: list[Rejected]
) -> Program[str]:
    texts = {"source": article.text}
    if question is not None:
        return (yield from _text("answer", {**texts, "question": question}, attempts, log))
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
    document = SearchableText(article.text)
    facts = yield from ask_again(question, lambda reply: _read_facts(reply, complexity, document), attempts, log)
    listed = "\n".join(f"{number}. {fact}" for number, fact in enumerate(facts, start=1))
    question = _question("insert", {"response": base, "facts": listed}, manner=level["insert"])
    code = stepwise.fence_code(base, listed)

    def read_edited(reply: LLMReply | None) -> tuple[str, list[Span]] | Rejected:
        text = _read_text("insert", reply)
        return text if isinstance(text, Rejected) else read_insertions(text, base, code, complexity)

    text, spans = yield from ask_again(question, read_edited, attempts, log)
    return text, tuple(Insertion(fact, span) for fact, span in zip(facts, spans, strict=True))


def _read_facts(reply: LLMReply | None, count: int, document: SearchableText) -> list[str] | Rejected:
    items = stepwise.read_list(reply, "facts", document.text)
    if isinstance(items, str):
        return Rejected("invent", items)
    facts = [" ".join(item.split()) for item in items if isinstance(item, str) and any(map(str.isalnum, item))]
    if len(facts) != len(items) or len(set(facts)) != count:
        return Rejected("invent", "fewer facts than requested")
    if any(document.find(fact) is not None for fact in facts):
        return Rejected("invent", "a fact occurs in the article")
    return facts


def read_insertions(edited: str, base: str, code: str, count: int) -> tuple[str, list[Span]] | Rejected:
    """Take the tags out of an edited text, and return it with the spans that they enclosed.

    Parameters
    ----------
    edited : str
        With each addition between ``<added-N-CODE>`` and ``</added-N-CODE>``.
    base : str
        What must remain without the additions, but for white space.
    code : str
        Letters and digits behind the number in each tag, such as ``0a``; they stand in none of the texts.
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


# Parts of the benchmark, each a file.
SPLITS = ("train", "evaluation")

# Each article serves one task, as in the paper; or every article serves all.
ARTICLES_BY = ("task", "all")

# The tasks that each article serves, by the article's id.
TasksByArticle = Mapping[str, tuple[str, ...]]


def shuffle(articles: Sequence[Article], seed: int) -> list[Article]:
    """Return the articles in an order that only their ids and the seed decide."""
    return sorted(articles, key=lambda article: sha256(f"{seed} {article.article_id}".encode()).digest())


def deal_tasks(articles: Sequence[Article], tasks: Sequence[str], by: str, seed: int) -> dict[str, tuple[str, ...]]:
    """Return the tasks that each article serves.

    One with a task of its own serves that. The others take turns in shuffled order, or serve all tasks: where `by`
    is ``all``, and where there are fewer of them than tasks.

    Examples
    --------
    >>> from deep.experiments.probe._content import deal_tasks
    >>> from deep.experiments.probe._records import Article
    >>> some = [Article("a", "It rained."), Article("b", "It snowed."), Article("c", "It hailed.", "summarization")]
    >>> deal_tasks(some, ["summarization", "question_answering"], "task", 0)
    {'c': ('summarization',), 'b': ('summarization',), 'a': ('question_answering',)}
    """
    free = [article for article in shuffle(articles, seed) if article.task is None]
    own = {a.article_id: (a.task,) if a.task in tasks else () for a in articles if a.task is not None}
    shared = by == "all" or len(free) < len(tasks)
    return own | {a.article_id: tuple(tasks) if shared else (tasks[i % len(tasks)],) for i, a in enumerate(free)}


def deal_styles(articles: Sequence[Article], dealt: TasksByArticle, seed: int) -> dict[str, str]:
    """Return the style of each article; they take turns over the shuffled articles that serve style transfer."""
    in_turn = sorted(shuffle(articles, seed), key=lambda article: "style_transfer" not in dealt[article.article_id])
    return {article.article_id: STYLES[i % len(STYLES)] for i, article in enumerate(in_turn)}


def split_articles(
    articles: Sequence[Article], dealt: TasksByArticle, samples: Sequence[Sample], *, size: int, share: float, seed: int
) -> dict[str, str]:
    """Return the split of each article.

    Articles that serve the same tasks are taken for evaluation in shuffled order, whole, until there are `size` samples
    of each of these tasks, and no more than `share` of them; of two or more, neither split is empty.
    """
    n_samples = Counter((sample.article_id, sample.task) for sample in samples)
    split = {}
    for tasks in dict.fromkeys(dealt.values()):
        group = [article.article_id for article in shuffle(articles, seed) if dealt[article.article_id] == tasks]
        most = min(max(1, round(share * len(group))), max(1, len(group) - 1))
        have: Counter[str] = Counter()
        for i, name in enumerate(group):
            is_needed = i < most and any(have[task] < size for task in tasks)
            split[name] = SPLITS[is_needed]
            have.update({task: n_samples[name, task] for task in tasks if is_needed})
    return split


# A claim whose segment lies in insertions by at least this share is hallucinated, by less it is mixed.
MIXED_BELOW = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of building samples.

    Parameters
    ----------
    writer : str
        The LLM that writes base content, invents facts and works them in.
    decomposer : str
        The LLM that takes responses apart into claims.
    verifiers : tuple of str
        The LLMs that look for evidence and vote on it.
    consensus : float
        The share of the verifiers that must let an excerpt pass.
    attempts : int
        How often each step is asked before its sample is given up.
    """

    writer: str
    decomposer: str
    verifiers: tuple[str, ...]
    consensus: float = 0.75
    attempts: int = 5


@dataclass(slots=True)
class BuiltSample:
    """A sample, or the reasons why there is none.

    Parameters
    ----------
    sample : Sample or None
        None where a step gave nothing usable.
    rejected : list of Rejected
        Every answer that could not be used.
    counts : Counter
        Claims and excerpts that were left out, by cause.
    """

    sample: Sample | None = None
    rejected: list[Rejected] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


def build_sample(
    article: Article, task: str, style: str, complexity: int, recipe: BuildOptions
) -> Program[BuiltSample]:
    """Build one sample of the benchmark, whole."""
    result = BuiltSample()
    attempts, log = recipe.attempts, result.rejected
    with suppress(GivenUpError):
        sample = yield from write_sample(article, task, style, complexity, attempts=attempts, log=log)
        claims = yield from _decompose(sample, recipe, log)
        gold = _label(sample, claims, result.counts)
        gold = yield from _with_candidates(sample.source, gold, recipe, result.counts)
        result.sample = replace(sample, claims=(yield from _with_votes(sample.source, gold, recipe)))
    return result


def _decompose(sample: Sample, recipe: BuildOptions, log: list[Rejected]) -> Program[list[stepwise.Claim]]:
    text = SearchableText(sample.response)

    def read(reply: LLMReply | None) -> list[stepwise.Claim] | Rejected:
        claims = stepwise.read_claims(reply, text)
        if isinstance(claims, str):
            return Rejected("decompose", claims)
        located = any(claim.span is not None for claim in claims)
        return claims if located else Rejected("decompose", "no segment occurs in the response")

    question = stepwise.decomposition_question(sample.response, model=recipe.decomposer)
    return (yield from ask_again(question, read, recipe.attempts, log))


def _label(sample: Sample, claims: Sequence[stepwise.Claim], counts: Counter[str]) -> list[GoldClaim]:
    """Label claims by the share of their segments in insertions; those of the base content are unverified so far."""
    inserted = [insertion.span for insertion in sample.insertions]
    gold: list[GoldClaim] = []
    for claim in claims:
        if claim.span is None:
            counts["claims whose segment is not in the response"] += 1
            continue
        share = n_covered(claim.span, by=inserted) / (claim.span[1] - claim.span[0])
        label = "unverified" if not share else "hallucinated" if share >= MIXED_BELOW else "mixed"
        gold.append(GoldClaim(claim.text, sample.response[slice(*claim.span)], claim.span, label))
    return gold


def _with_candidates(
    source: str, gold: Sequence[GoldClaim], recipe: BuildOptions, counts: Counter[str]
) -> Program[list[GoldClaim]]:
    """Give each claim the union of the verbatim excerpts that the verifiers find for it, in the order of the source."""
    texts = list(dict.fromkeys(claim.text for claim in gold))
    pairs = [
        (text, stepwise.finding_question(source, text, model=model)) for text in texts for model in recipe.verifiers
    ]
    replies = yield [question for _, question in pairs]
    document = SearchableText(source)
    union: dict[str, set[Span]] = {text: set() for text in texts}
    for (text, _), reply in zip(pairs, replies, strict=True):
        result = stepwise.read_evidence(reply, text, document)
        if isinstance(result, str):
            counts["evidence replies without an answer"] += 1
            continue
        counts["excerpts not verbatim in the article"] += sum(excerpt.span is None for excerpt in result)
        union[text] |= {excerpt.span for excerpt in result if excerpt.span is not None}
    candidates = {
        text: tuple(
            FoundExcerpt(stepwise.Excerpt(source[slice(*span)], span), None, accepted=False) for span in sorted(spans)
        )
        for text, spans in union.items()
    }
    return [replace(claim, candidates=candidates[claim.text]) for claim in gold]


def _with_votes(source: str, gold: Sequence[GoldClaim], recipe: BuildOptions) -> Program[tuple[GoldClaim, ...]]:
    """Let all verifiers vote on each excerpt for a claim of the base content; no verdict is no pass."""
    pairs = [(c.text, each.excerpt) for c in gold if c.label == "unverified" for each in c.candidates]
    ballots = [(pair, model) for pair in dict.fromkeys(pairs) for model in recipe.verifiers]
    questions: list[Question] = [stepwise.evaluation_question(source, *pair, model=model) for pair, model in ballots]
    replies = yield questions
    passes: Counter[tuple[str, stepwise.Excerpt]] = Counter()
    for (pair, _), reply in zip(ballots, replies, strict=True):
        passes[pair] += stepwise.read_verdict(reply, source, pair[0]).vote == 1
    needed = recipe.consensus * len(recipe.verifiers) - 1e-9

    def voted(claim: GoldClaim) -> GoldClaim:
        if claim.label != "unverified":
            return claim
        tallies = [(each.excerpt, passes[claim.text, each.excerpt]) for each in claim.candidates]
        candidates = tuple(FoundExcerpt(excerpt, n, accepted=n >= needed) for excerpt, n in tallies)
        accepted = any(each.accepted for each in candidates)
        return replace(claim, candidates=candidates, label="truth" if accepted else "unverified")

    return tuple(map(voted, gold))
