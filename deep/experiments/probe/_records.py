"""The benchmark on disk: one JSON object a line, which `deep ask` reads as an example too; and chats of it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from deep._util.files import JsonObject
from deep._util.names import is_storable
from deep.datasets import read_rows
from deep.evaluate import Row, as_frame
from deep.exceptions import InputError
from deep.experiments.stepwise import Claim, Excerpt, evaluation_question, finding_question
from deep.judges import Question
from deep.prompt_pool import Span

TASKS = ("summarization", "question_answering", "style_transfer")
COMPLEXITIES = (0, 1, 2, 3)
# Labels of a claim: from an insertion; partly from one; of the base content with accepted evidence; without it.
LABELS = ("hallucinated", "mixed", "truth", "unverified")


@dataclass(frozen=True, slots=True)
class Article:
    """A source document, and the one task that it serves where its file says so."""

    article_id: str
    text: str
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Insertion:
    """An invented fact, and the span of the response that states it."""

    fact: str
    span: Span


@dataclass(frozen=True, slots=True)
class FoundExcerpt:
    """An excerpt that a model found for a claim.

    Parameters
    ----------
    excerpt : Excerpt
        Verbatim, with its span in the source.
    passes : int or None
        How many models judged that it establishes the claim; None where they were not asked.
    accepted : bool
        Whether they were enough.
    """

    excerpt: Excerpt
    passes: int | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class GoldClaim(Claim):
    """A claim of a response with its label, one of `LABELS`, and the excerpts that were found for it."""

    span: Span
    label: str
    candidates: tuple[FoundExcerpt, ...] = ()

    @property
    def evidence(self) -> list[Excerpt]:
        """The accepted excerpts."""
        return [candidate.excerpt for candidate in self.candidates if candidate.accepted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One response of the benchmark.

    Parameters
    ----------
    article_id, source : str
        Id of the article, and its text.
    task : str
        One of `TASKS`.
    complexity : int
        0 for clean base content, else the number of invented facts worked in.
    response : str
        A summary, an answer or a text in another style, with the invented facts in it.
    style, question : str, optional
        Of style transfer, and of question answering.
    insertions : tuple of Insertion
        The invented facts, each with its span of the response; as many as `complexity`.
    claims : tuple of GoldClaim
        The claims of the response, each with one of `LABELS` and its excerpts.
    """

    article_id: str
    source: str
    task: str
    complexity: int
    response: str
    style: str | None = None
    question: str | None = None
    insertions: tuple[Insertion, ...] = ()
    claims: tuple[GoldClaim, ...] = ()

    @property
    def example_id(self) -> str:
        """The sample's name, unique within its task."""
        return f"{self.article_id}/{self.complexity}"

    def labeled(self, *labels: str) -> list[GoldClaim]:
        """Return the claims with one of these labels."""
        return [claim for claim in self.claims if claim.label in labels]

    def to_row(self) -> JsonObject:
        """Return the sample as it is written; the keys of an example come first."""
        return {
            "source": self.source,
            "claim": self.response,
            "example_id": self.example_id,
            "label": int(self.complexity == 0),
            "dataset": f"probe-{self.task}",
            "document_id": self.article_id,
            "task": self.task,
            "complexity": self.complexity,
            "style": self.style,
            "question": self.question,
            "insertions": [
                {"fact": insertion.fact, **_located(self.response, insertion.span)} for insertion in self.insertions
            ],
            "claims": [self._claim_row(claim) for claim in self.claims],
        }

    def _claim_row(self, claim: GoldClaim) -> JsonObject:
        excerpts = [
            {**_located(self.source, c.excerpt.span), "passes": c.passes, "accepted": c.accepted}
            for c in claim.candidates
        ]
        place = {"start": claim.span[0], "end": claim.span[1]}
        return {"claim": claim.text, "segment": claim.segment, **place, "label": claim.label, "evidence": excerpts}


def _located(text: str, span: Span | None) -> JsonObject:
    start, end = span or (0, 0)
    return {"text": text[start:end], "start": start, "end": end}


def read_samples(path: Path) -> list[Sample]:
    """Read a file of samples; every span must hold the text that is recorded with it.

    Raises
    ------
    InputError
        There is no such file, a row lacks something, or a span does not fit; the message names the place.
    """
    if path.suffix.lower() != ".jsonl":
        raise InputError(f"`data` must end in .jsonl. Got {str(path)!r}.")
    samples = []
    for at, row in _rows(path, "data"):
        try:
            samples.append(_sample(row, at))
        except (KeyError, TypeError) as error:
            got = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise InputError(f"`data` must hold samples of the benchmark. Got {got} {at}. Build it again.") from None
    if not samples:
        raise InputError(f"`data` must hold at least one sample. Got none in {str(path)!r}.")
    return samples


def _rows(path: Path, name: str) -> Iterator[tuple[str, JsonObject]]:
    for number, (_, row) in enumerate(read_rows(path, ("article_id", "task", "text"), param=name), start=1):
        yield f"in row {number} of {str(path)!r}", dict(row)


def _sample(row: JsonObject, at: str) -> Sample:
    if row["task"] not in TASKS:
        raise InputError(f"`task` must be one of {', '.join(sorted(TASKS))}. Got {row['task']!r} {at}.")
    if row["complexity"] not in COMPLEXITIES:
        raise InputError(f"`complexity` must be 0, 1, 2 or 3. Got {row['complexity']!r} {at}.")
    return Sample(
        article_id=row["document_id"],
        source=row["source"],
        task=row["task"],
        complexity=row["complexity"],
        response=row["claim"],
        style=row["style"],
        question=row["question"],
        insertions=tuple(Insertion(i["fact"], _span(i, row["claim"], i["text"], at)) for i in row["insertions"]),
        claims=tuple(_gold_claim(claim, row, at) for claim in row["claims"]),
    )


def _gold_claim(claim: JsonObject, row: JsonObject, at: str) -> GoldClaim:
    if claim["label"] not in LABELS:
        raise InputError(f"`label` must be one of {', '.join(LABELS)}. Got {claim['label']!r} {at}.")
    candidates = [
        FoundExcerpt(Excerpt(c["text"], _span(c, row["source"], c["text"], at)), c["passes"], c["accepted"])
        for c in claim["evidence"]
    ]
    span = _span(claim, row["claim"], claim["segment"], at)
    return GoldClaim(claim["claim"], claim["segment"], span, claim["label"], tuple(candidates))


def _span(record: JsonObject, text: str, excerpt: str, at: str) -> Span:
    start, end = record["start"], record["end"]
    if text[start:end] != excerpt or not excerpt:
        raise InputError(
            f"`start` and `end` must enclose the text beside them. Got {start}, {end} for {excerpt!r} {at}."
        )
    return start, end


def read_articles(path: Path) -> list[Article]:
    """Read articles: the column `text`, and as wanted `article_id` (default: the row's number) and `task`.

    Raises
    ------
    InputError
        There is none, one is blank, a task is not known, or an id or a text comes twice, which would let a split share
        an article.
    """
    articles: list[Article] = []
    places: dict[str, str] = {}
    for number, (at, row) in enumerate(_rows(path, "articles"), start=1):
        text, name = row.get("text"), row.get("article_id")
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"`text` must be text. Got {text!r} {at}. Fill it in, or drop the row.")
        task = row.get("task") or None
        if task not in (*TASKS, None):
            raise InputError(f"`task` must be one of {', '.join(sorted(TASKS))}. Got {task!r} {at}.")
        article = Article(str(number) if name in (None, "") else str(name), text, task)
        if not (is_storable(text) and is_storable(article.article_id)):
            raise InputError(f"`articles` must be text without NUL. Got something else {at}. Use plain Unicode text.")
        for key, what in ((f"id {article.article_id}", "article_id"), (" ".join(text.split()), "text")):
            if key in places:
                raise InputError(f"`{what}` must be given once. Got the same {at} as in {places[key]}. Drop the row.")
            places[key] = at.removeprefix("in ")
        articles.append(article)
    if not articles:
        raise InputError(f"`articles` must hold at least one row. Got none in {str(path)!r}.")
    return articles


def chats(samples: Iterable[Sample]) -> Iterator[JsonObject]:
    """Yield evidence-finding and evidence-evaluation examples, each distinct one once.

    Finding: the accepted excerpts of each truth claim. Evaluation: PASS for those; FAIL for excerpts of truth claims
    that no model let pass, and for every excerpt found for hallucinated claims. The user's turn is the question of the
    stepwise judge, so that a tuned model can be asked the same way.
    """
    keys: set[str] = set()
    for sample in samples:
        for claim in sample.labeled("truth", "hallucinated"):
            for chat in _of_claim(sample.source, claim):
                key = json.dumps(chat, sort_keys=True)
                if key not in keys:
                    keys.add(key)
                    yield chat


def _of_claim(source: str, claim: GoldClaim) -> Iterator[JsonObject]:
    if claim.label == "truth":
        quoted = [excerpt.text for excerpt in claim.evidence]
        reasoning = f"{len(quoted)} passage{'' if len(quoted) == 1 else 's'} of the source concern the claim."
        yield _chat("find", finding_question(source, claim.text), {"reasoning": reasoning, "evidence": quoted})
    for candidate in claim.candidates:
        verdict = _verdict(claim, candidate)
        if verdict is not None:
            reasoning = f"The excerpt {'establishes' if verdict == 'PASS' else 'does not establish'} the whole claim."
            question = evaluation_question(source, claim.text, candidate.excerpt)
            yield _chat("evaluate", question, {"reasoning": reasoning, "verdict": verdict})


def _verdict(claim: GoldClaim, candidate: FoundExcerpt) -> str | None:
    """Return the right answer; None where the models disagreed too much to know it."""
    if claim.label == "hallucinated":
        return "FAIL"
    if candidate.accepted:
        return "PASS"
    return "FAIL" if candidate.passes == 0 else None


def _chat(step: str, question: Question, answer: JsonObject) -> JsonObject:
    reply = {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}
    return {"messages": [*question.messages, reply], "step": step}


@as_frame
def statistics(samples: Sequence[Sample]) -> Iterator[Row]:
    """Table 1: instances, claims and lengths by task and overall; lengths are in characters.

    A response's hallucination length is that of all its insertions; its mean, its maximum and its mean share of the
    response are over the responses that hold any. `claims` counts those that are hallucinated or truth; unverified
    and mixed ones stand beside them.
    """
    for task in (*TASKS, "overall"):
        task_samples = [sample for sample in samples if task in (sample.task, "overall")]
        if task_samples:
            yield {"task": task, **dict(_figures(task_samples))}


def _figures(samples: Sequence[Sample]) -> Iterator[tuple[str, float | int | None]]:
    labels = [claim.label for sample in samples for claim in sample.claims]
    yield "instances", len(samples)
    yield "claims", labels.count("hallucinated") + labels.count("truth")
    for label in ("hallucinated", "truth", "unverified", "mixed"):
        yield label, labels.count(label)
    lengths = [len(sample.response) for sample in samples]
    added = [sum(end - start for start, end in (i.span for i in sample.insertions)) for sample in samples]
    poisoned = [(n, length) for n, length in zip(added, lengths, strict=True) if n]
    yield "response_length_mean", _mean(lengths)
    yield "response_length_max", max(lengths)
    yield "hallucination_length_mean", _mean([n for n, _ in poisoned])
    yield "hallucination_length_max", max((n for n, _ in poisoned), default=None)
    yield "hallucination_share_of_response", _mean([n / length for n, length in poisoned])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
