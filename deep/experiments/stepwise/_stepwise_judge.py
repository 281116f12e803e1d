"""Judges that say which part of a response is unsupported: step by step, and at once."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import ClassVar

from deep.experiments.stepwise import _steps
from deep.experiments.stepwise._steps import Claim, Excerpt
from deep.judges import LLMJudge, LLMReply, Program
from deep.prompt_pool import Span, commonest, merge_spans, usage_of
from deep.records import ABSTAIN, Example, Judgment, Reason

RENDERING = 1
"""Counts changes of the code that alter what is asked or how a reply is read."""

ClaimEvidence = Mapping[str, list[Excerpt] | Reason]
Verdicts = Mapping[tuple[str, Excerpt], Judgment]


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim of a response and its state, with the reason and the evidence.

    Parameters
    ----------
    claim : Claim
    state : {'supported', 'undecided', 'unsupported'}
        Supported: an excerpt that stands in the source passed. Unsupported: there is no evidence, or every excerpt
        stands in the source and failed. Undecided: anything else.
    reason : str, optional
        Why it is undecided.
    evidence : tuple of (Excerpt, str or None)
        Each excerpt with PASS, FAIL, or why it has no verdict (None where it was not asked for).
    """

    claim: Claim
    state: str
    reason: Reason | None = None
    evidence: tuple[tuple[Excerpt, str | None], ...] = ()

    def to_json(self) -> str:
        """Return the record as one line of JSON; an excerpt that is not in the source is marked `not verbatim`."""
        excerpts = [
            {
                "excerpt": excerpt.text,
                "span": excerpt.span,
                "found": "not verbatim" if excerpt.span is None else "verbatim",
                "verdict": verdict,
            }
            for excerpt, verdict in self.evidence
        ]
        record = {
            "claim": self.claim.text,
            "segment": self.claim.segment,
            "span": self.claim.span,
            "state": self.state,
            "reason": self.reason,
            "evidence": excerpts,
        }
        return json.dumps(record, ensure_ascii=False)


def unsupported_spans(claims: Sequence[CheckedClaim]) -> list[Span]:
    """Return the spans of the response that hold unsupported claims, in order, merged where they touch."""
    return merge_spans(
        checked.claim.span for checked in claims if checked.state == "unsupported" and checked.claim.span
    )


class _PassageJudge(LLMJudge):
    """The identity that both judges of passages have: their steps, the schemas and the rendering."""

    name: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]

    @cached_property
    def version(self) -> str:
        """SHA-256 of what is asked and how it is read, 64 hexadecimal digits."""
        asked = {step: [_steps.prompts()[step], _steps.SCHEMAS[step]] for step in self.steps}
        content = {"asked": asked, "margin": _steps.CONTEXT_MARGIN, "rendering": RENDERING}
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


class StepwiseJudge(_PassageJudge):
    """Checks a response claim by claim [1]_.

    The response is taken apart into claims; for each of them evidence is looked up in the source; each excerpt is
    weighed alone; and the segments of the claims that no excerpt establishes are located in the response.

    The vote is 0 where a claim is unsupported, 1 where all are supported. Otherwise a claim is undecided because a
    reply is missing or cannot be used, a segment is not in the response or an excerpt not in the source, and there is
    no vote but the commonest reason. `score` is the share of supported claims where all are decided; `evidence` holds
    one line of JSON a claim, as :meth:`CheckedClaim.to_json` writes it.

    Attributes
    ----------
    name, version : str

    References
    ----------
    .. [1] Zhang et al., PROBE: PROcess-Based BEnchmark for Hallucination Detection.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judges import run_program
    >>> from deep.experiments.stepwise import StepwiseJudge
    >>> answers = {
    ...     "decompose": '{"claims": [{"segment": "It fell in 1902", "claim": "The bridge fell in 1902."}]}',
    ...     "find": '{"reasoning": "", "evidence": ["The bridge fell in 1903."]}',
    ...     "evaluate": '{"reasoning": "Another year.", "verdict": "FAIL"}',
    ... }
    >>> def ask(question):
    ...     told = answers[question.step]
    ...     return SimpleNamespace(text=told, finish_reason="stop", refusal=None, model="m", tokens={})
    >>> example = Example("The bridge fell in 1903.", "It fell in 1902.", "1")
    >>> judgment = run_program(StepwiseJudge().program(example), ask)
    >>> judgment.vote, judgment.rationale
    (0, '1 of 1 claims unsupported, 0 undecided')
    """

    name = "stepwise"
    steps = ("decompose", "find", "evaluate")

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""
        log: list[LLMReply | None] = []
        claims = yield from _steps.decompose(example.claim, log)
        if isinstance(claims, str):
            return _judgment([], claims, log)
        checked, _, _ = yield from check_claims(example.source, claims, log)
        return _judgment(checked, None, log)


def check_claims(
    source: str, claims: Sequence[Claim], log: list[LLMReply | None]
) -> Program[tuple[list[CheckedClaim], ClaimEvidence, Verdicts]]:
    """Find and weigh the evidence for claims; one that is not in the response costs no call and stays undecided.

    Returns
    -------
    checked : list of CheckedClaim
        One for each of `claims`.
    found : dict
        As :func:`find_evidence` returns it.
    verdicts : dict
        As :func:`evaluate_evidence` returns it, of verbatim excerpts only.
    """
    texts = [claim.text for claim in claims if claim.span is not None]
    found = yield from _steps.find_evidence(source, texts, log)
    pairs = [
        (text, excerpt)
        for text, excerpts in found.items()
        if not isinstance(excerpts, str)
        for excerpt in excerpts
        if excerpt.span is not None
    ]
    verdicts = yield from _steps.evaluate_evidence(source, pairs, log)
    checked = [_checked(claim, found.get(claim.text, "unparsable"), verdicts) for claim in claims]
    return checked, found, verdicts


def _checked(claim: Claim, excerpts: list[Excerpt] | Reason, verdicts: Verdicts) -> CheckedClaim:
    if claim.span is None or isinstance(excerpts, str):
        return CheckedClaim(claim, "undecided", "unparsable" if isinstance(excerpts, list) else excerpts)
    judged = [verdicts.get((claim.text, excerpt)) for excerpt in excerpts]
    evidence = tuple((excerpt, _verdict(judgment)) for excerpt, judgment in zip(excerpts, judged, strict=True))
    if any(judgment is not None and judgment.vote == 1 for judgment in judged):
        return CheckedClaim(claim, "supported", evidence=evidence)
    reasons = ["unparsable" if judgment is None else judgment.reason for judgment in judged]
    if any(reasons):
        return CheckedClaim(claim, "undecided", commonest(reasons), evidence)
    return CheckedClaim(claim, "unsupported", evidence=evidence)


def _verdict(judgment: Judgment | None) -> str | None:
    if judgment is None:
        return None
    return judgment.reason or ("PASS" if judgment.vote else "FAIL")


def _judgment(claims: Sequence[CheckedClaim], reason: Reason | None, log: Sequence[LLMReply | None]) -> Judgment:
    """Return the judgment of a response from its claims, or from the reason why there are none."""
    states = Counter(checked.state for checked in claims)
    if reason is None and not states["unsupported"] and states["undecided"]:
        reason = commonest(checked.reason for checked in claims)
    vote = ABSTAIN if reason else int(not states["unsupported"])
    rationale = f"{states['unsupported']} of {len(claims)} claims unsupported, {states['undecided']} undecided"
    return Judgment(
        vote=vote,
        reason=reason,
        score=states["supported"] / len(claims) if claims and not states["undecided"] else None,
        rationale=rationale if claims else None,
        evidence=tuple(checked.to_json() for checked in claims),
        **usage_of(log),
    )


class DirectJudge(_PassageJudge):
    """Asks once which passages of a response are unsupported: what stepwise detection is compared with.

    The vote is 1 where none is quoted, 0 where one is that stands in the response; where all that is quoted stands
    nowhere in it, the reply is unparsable. `evidence` has the layout of :class:`StepwiseJudge`, a passage a claim.

    Attributes
    ----------
    name, version : str
    """

    name = "direct"
    steps = ("direct",)

    def program(self, example: Example) -> Program[Judgment]:
        """Return the one question about an example, as a program that ends with a judgment."""
        log: list[LLMReply | None] = []
        passages = yield from _steps.find_unsupported(example.source, example.claim, log)
        if isinstance(passages, str):
            return _judgment([], passages, log)
        if not passages:
            return Judgment(vote=1, score=1.0, **usage_of(log))
        return _judgment([_passage(passage) for passage in passages], None, log)


def _passage(passage: Excerpt) -> CheckedClaim:
    claim = Claim(passage.text, passage.text, passage.span)
    if passage.span is None:
        return CheckedClaim(claim, "undecided", "unparsable")
    return CheckedClaim(claim, "unsupported")
