"""The measures of every step, as counts: how many of how many."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from deep._util.files import JsonObject
from deep.experiments.probe._records import TASKS, GoldClaim, Sample
from deep.experiments.stepwise import (
    CheckedClaim,
    Claim,
    Excerpt,
    check_claims,
    decompose,
    evaluate_evidence,
    find_evidence,
    find_unsupported,
    unsupported_spans,
)
from deep.judge import Program
from deep.prompt_pool import Span, covered, merge_spans
from deep.records import Judgment, Reason

STAGES = ("decompose", "find", "evaluate", "locate", "all")

Pair = tuple[str, Excerpt]


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
    checked : list of CheckedClaim
    direct : list of (int, int), or str
        Spans that the direct prompt gives; a reason where there is no answer, None where it was not asked.
    alike : mapping of (str, str) to float
        Similarity, in (0, 1], of a predicted and a gold claim that say the same in other words.
    match_asked, match_failed : int
        Questions to an LLM whether claims say the same, and those without a usable answer.
    """

    claims: list[Claim] | Reason = field(default_factory=list)
    found: Mapping[str, list[Excerpt] | Reason] = field(default_factory=dict)
    verdicts: Mapping[Pair, Judgment] = field(default_factory=dict)
    checked: Sequence[CheckedClaim] = ()
    direct: list[Span] | Reason | None = None
    alike: Mapping[tuple[str, str], float] = field(default_factory=dict)
    match_asked: int = 0
    match_failed: int = 0

    @property
    def located(self) -> list[Span]:
        """The spans of the response that hold claims without support."""
        return unsupported_spans(self.checked)


def stage_program(stage: str, sample: Sample) -> Program[Observed]:
    """Return the program of one stage on gold input, or of all on the model's own.

    `find` asks for evidence of the truth claims, `evaluate` about their accepted evidence and about every excerpt
    found for hallucinated claims, and `locate` asks nothing.
    """
    if stage == "decompose":
        return Observed((yield from decompose(sample.response, [])))
    if stage == "find":
        texts = [claim.text for claim in sample.labeled("truth")]
        return Observed(_given(sample), found=(yield from find_evidence(sample.source, texts, [])))
    if stage == "evaluate":
        pairs = [(claim.text, excerpt) for claim in sample.claims for excerpt in known_excerpts(claim)]
        return Observed(_given(sample), verdicts=(yield from evaluate_evidence(sample.source, pairs, [])))
    if stage == "locate":
        return Observed(_given(sample), checked=gold_checked(sample))
    return (yield from _all(sample))


def _all(sample: Sample) -> Program[Observed]:
    claims = yield from decompose(sample.response, [])
    if isinstance(claims, str):
        return Observed(claims)
    checked, found, verdicts = yield from check_claims(sample.source, claims, [])
    return Observed(claims, found, verdicts, checked)


def direct_program(sample: Sample) -> Program[list[Span] | Reason]:
    """Return the program of the baseline; quotations that are not in the response are no localization."""
    passages = yield from find_unsupported(sample.source, sample.response, [])
    if isinstance(passages, str):
        return passages
    spans = merge_spans(passage.span for passage in passages if passage.span is not None)
    return "unparsable" if passages and not spans else spans


def known_excerpts(claim: GoldClaim) -> list[Excerpt]:
    """Return the excerpts whose verdict is known: accepted ones of a truth claim, all of a hallucinated one."""
    if claim.label == "hallucinated":
        return [candidate.excerpt for candidate in claim.candidates]
    return claim.evidence if claim.label == "truth" else []


def _given(sample: Sample) -> list[Claim]:
    return [Claim(claim.text, claim.segment, claim.span) for claim in sample.claims]


def gold_checked(sample: Sample) -> list[CheckedClaim]:
    """Return the gold claims as a perfect judge would have checked them."""
    states = {"hallucinated": "unsupported", "truth": "supported"}
    given = zip(_given(sample), sample.claims, strict=True)
    return [CheckedClaim(claim, states.get(gold.label, "undecided")) for claim, gold in given]


def normalise(text: str) -> str:
    """Return a claim without case, punctuation and repeated white space.

    Examples
    --------
    >>> from deep.experiments.probe._measures import normalise
    >>> normalise("The bridge  fell, in 1902.")
    'the bridge fell in 1902'
    """
    return " ".join(re.findall(r"\w+", text.casefold()))


MATCHES = ("semantic", "normalised", "exact")
SIMILAR = 0.65
"""The least cosine of two claims that say the same. It was set on pairs of sentences of our own, which a test holds:
restatements have 0.698 and more by the encoder in the extra `test`, and other claims about the same thing 0.34 to 0.84,
of which those above 0.65 but one differ in a number, a name or a denial."""

COVERED = 0.5
"""A passage counts as found where at least this share of its characters is covered."""

Alike = Callable[[str, str], float]
"""How far a predicted claim is the gold claim, from 0, not at all, to 1."""

Counted = tuple[str, str, int, int]
"""Step, measure, hits and total."""

Cell = tuple[str, str, str]
"""Step, measure and task."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A share of one step on one task.

    Parameters
    ----------
    step, name, task : str
    hits, total : int
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
    >>> from deep.experiments.probe._measures import match_claims
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
    known = [(claims[i], gold) for i, gold in gold_of.items()]
    if "find" in steps:
        yield from _finding(known, observed)
    if "evaluate" in steps:
        yield from _evaluation(known, observed)
    if "locate" in steps:
        yield from _localization(sample, observed, gold_of)
    if stage == "all":
        yield from _undecided(observed)
        yield from _detection(sample, observed)


def _decomposition(sample: Sample, observed: Observed, matched: int) -> Iterator[Counted]:
    failed = isinstance(observed.claims, str)
    yield "decompose", "precision", matched, 0 if failed else len(observed.claims)
    yield "decompose", "recall", matched, 0 if failed else len(sample.claims)
    yield "decompose", "no_answer", int(failed), 1
    if observed.match_asked:
        yield "decompose", "match_no_answer", observed.match_failed, observed.match_asked


def _finding(known: Sequence[tuple[Claim, GoldClaim]], observed: Observed) -> Iterator[Counted]:
    """Count the truth claims with some, and with all, of their evidence; those without an answer leave both."""
    partial = complete = answered = 0
    truths = [(claim, gold) for claim, gold in known if gold.label == "truth"]
    for claim, gold in truths:
        excerpts = observed.found.get(claim.text, "unparsable")
        if isinstance(excerpts, str):
            continue
        hits = [_is_found(wanted, excerpts) for wanted in gold.evidence]
        answered += 1
        partial += any(hits)
        complete += all(hits)
    yield "find", "partial", partial, answered
    yield "find", "complete", complete, answered
    yield "find", "no_answer", len(truths) - answered, len(truths)


def _is_found(wanted: Excerpt, excerpts: Iterable[Excerpt]) -> bool:
    return _is_covered(wanted.span, (excerpt.span for excerpt in excerpts))


def _is_covered(span: Span | None, by: Iterable[Span | None]) -> bool:
    if span is None:
        return False
    return covered(span, [other for other in by if other is not None]) >= COVERED * (span[1] - span[0])


def _evaluation(known: Sequence[tuple[Claim, GoldClaim]], observed: Observed) -> Iterator[Counted]:
    """Count verdicts that are right: PASS on true evidence of truth claims, FAIL on any of hallucinated claims."""
    votes: dict[str, list[int]] = {"truth": [], "hallucinated": []}
    for claim, gold in known:
        verdicts = ((excerpt, given.vote) for (text, excerpt), given in observed.verdicts.items() if text == claim.text)
        if gold.label in votes:
            votes[gold.label] += [vote for excerpt, vote in verdicts if _is_known(excerpt, gold)]
    right = {"truth": votes["truth"].count(1), "hallucinated": votes["hallucinated"].count(0)}
    given = {label: sum(vote >= 0 for vote in cast) for label, cast in votes.items()}
    yield "evaluate", "accuracy", sum(right.values()), sum(given.values())
    for label in ("truth", "hallucinated"):
        yield "evaluate", f"accuracy_{label}", right[label], given[label]
    asked = sum(map(len, votes.values()))
    yield "evaluate", "no_answer", asked - sum(given.values()), asked


def _is_known(excerpt: Excerpt, gold: GoldClaim) -> bool:
    """Return whether the right verdict is known: nothing backs a hallucinated claim, accepted evidence a true one."""
    if gold.label == "hallucinated":
        return True
    return any(_is_covered(wanted.span, [excerpt.span]) for wanted in known_excerpts(gold))


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
    unclear = _characters(claim.span for claim in sample.labeled("mixed", "unverified")) - inserted
    predicted = _characters(observed.located) - unclear
    yield from _scores("character", len(predicted & inserted), len(predicted), len(inserted))


def _undecided(observed: Observed) -> Iterator[Counted]:
    undecided = sum(checked.state == "undecided" for checked in observed.checked)
    yield "locate", "no_answer", undecided, len(observed.checked)


def _scores(unit: str, right: int, called: int, true: int) -> Iterator[Counted]:
    yield "locate", f"{unit}_precision", right, called
    yield "locate", f"{unit}_recall", right, true
    yield "locate", f"{unit}_f1", 2 * right, called + true


def _characters(spans: Iterable[Span]) -> set[int]:
    return set().union(*(range(*span) for span in spans))


def _detection(sample: Sample, observed: Observed) -> Iterator[Counted]:
    """Count hallucinated claims that the spans of each method cover, and responses that it calls unsupported.

    A method that gave no answer has found nothing.
    """
    direct = [] if observed.direct is None or isinstance(observed.direct, str) else observed.direct
    hallucinated = sample.labeled("hallucinated")
    kind = "false_alarms" if sample.complexity == 0 else "response_recall"
    for method, spans in (("direct", direct), ("stepwise", observed.located)):
        caught = sum(_is_covered(claim.span, spans) for claim in hallucinated)
        yield "detect", f"{method}_recall", caught, len(hallucinated)
        yield "detect", f"{method}_{kind}", int(bool(spans)), 1
    yield "detect", "direct_no_answer", int(isinstance(observed.direct, str)), 1
