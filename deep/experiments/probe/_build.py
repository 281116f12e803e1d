"""Claims of a response with their evidence, by the union of several models' finds and their vote."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from deep.experiments.probe._content import GivenUpError, Rejected, ask_again, write_sample
from deep.experiments.probe._records import Article, FoundExcerpt, GoldClaim, Sample
from deep.experiments.stepwise import (
    Claim,
    Excerpt,
    decomposition_question,
    evaluation_question,
    finding_question,
    read_claims,
    read_evidence,
    read_verdict,
)
from deep.judge import LLMReply, Program, Question
from deep.prompt_pool import SearchableText, Span, covered

MIXED_BELOW = 0.5
"""A claim whose segment lies in insertions by at least this share is hallucinated, by less it is mixed."""


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
        gold = yield from _with_votes(sample.source, gold, recipe)
        result.sample = replace(sample, claims=tuple(_named(claim) for claim in gold))
    return result


def _decompose(sample: Sample, recipe: BuildOptions, log: list[Rejected]) -> Program[list[Claim]]:
    text = SearchableText(sample.response)

    def read(reply: LLMReply | None) -> list[Claim] | Rejected:
        claims = read_claims(reply, text)
        if isinstance(claims, str):
            return Rejected("decompose", claims)
        located = any(claim.span is not None for claim in claims)
        return claims if located else Rejected("decompose", "no segment stands in the response")

    question = decomposition_question(sample.response, model=recipe.decomposer)
    return (yield from ask_again(question, read, recipe.attempts, log))


def _label(sample: Sample, claims: Sequence[Claim], counts: Counter[str]) -> list[GoldClaim]:
    """Label claims by the share of their segments in insertions; those of the base content are unverified so far."""
    inserted = [insertion.span for insertion in sample.insertions]
    gold: list[GoldClaim] = []
    for claim in claims:
        if claim.span is None:
            counts["claims whose segment is not in the response"] += 1
            continue
        share = covered(claim.span, by=inserted) / (claim.span[1] - claim.span[0])
        label = "unverified" if not share else "hallucinated" if share >= MIXED_BELOW else "mixed"
        gold.append(GoldClaim(claim.text, sample.response[slice(*claim.span)], claim.span, label))
    return gold


def _with_candidates(
    source: str, gold: Sequence[GoldClaim], recipe: BuildOptions, counts: Counter[str]
) -> Program[list[GoldClaim]]:
    """Give each claim the union of the verbatim excerpts that the verifiers find for it, in the order of the source."""
    texts = list(dict.fromkeys(claim.text for claim in gold))
    asked = [(text, finding_question(source, text, model=model)) for text in texts for model in recipe.verifiers]
    replies = yield [question for _, question in asked]
    document = SearchableText(source)
    union: dict[str, set[Span]] = {text: set() for text in texts}
    for (text, _), reply in zip(asked, replies, strict=True):
        found = read_evidence(reply, text, document)
        if isinstance(found, str):
            counts["evidence replies without an answer"] += 1
            continue
        counts["excerpts not verbatim in the article"] += sum(excerpt.span is None for excerpt in found)
        union[text] |= {excerpt.span for excerpt in found if excerpt.span is not None}
    candidates = {
        text: tuple(FoundExcerpt(Excerpt(source[slice(*span)], span), None, accepted=False) for span in sorted(spans))
        for text, spans in union.items()
    }
    return [replace(claim, candidates=candidates[claim.text]) for claim in gold]


def _with_votes(source: str, gold: Sequence[GoldClaim], recipe: BuildOptions) -> Program[list[GoldClaim]]:
    """Let all verifiers vote on each excerpt for a claim of the base content; no verdict is no pass."""
    pairs = [(c.text, each.excerpt) for c in gold if c.label == "unverified" for each in c.candidates]
    asked = [(pair, model) for pair in dict.fromkeys(pairs) for model in recipe.verifiers]
    questions: list[Question] = [evaluation_question(source, *pair, model=model) for pair, model in asked]
    replies = yield questions
    passes: Counter[tuple[str, Excerpt]] = Counter()
    for (pair, _), reply in zip(asked, replies, strict=True):
        passes[pair] += read_verdict(reply, source, pair[0]).vote == 1
    needed = recipe.consensus * len(recipe.verifiers) - 1e-9
    return [
        claim if claim.label != "unverified" else replace(claim, candidates=_voted(claim, passes, needed))
        for claim in gold
    ]


def _voted(claim: GoldClaim, passes: Counter[tuple[str, Excerpt]], needed: float) -> tuple[FoundExcerpt, ...]:
    counted = [(each.excerpt, passes[claim.text, each.excerpt]) for each in claim.candidates]
    return tuple(FoundExcerpt(excerpt, n, accepted=n >= needed) for excerpt, n in counted)


def _named(claim: GoldClaim) -> GoldClaim:
    return replace(claim, label="truth") if claim.label == "unverified" and claim.evidence else claim
