"""Process-based detection after PROBE: claims, evidence, verdicts and spans, each step usable alone, and its judges."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

from deep import prompt_pool
from deep._util.files import read_asset
from deep.judges import LLMJudge, LLMReply, Program, Question
from deep.prompt_pool import Span, commonest, merge_spans, usage_of
from deep.records import ABSTAIN, Example, Judgment, Reason

# Openings of an object that are tried, which bounds the work that a hostile reply can cause.
MOST_ATTEMPTS = 200

# Where an object of JSON may begin: a brace and its first key.
_OPENING = re.compile(r'\{\s*"')
# The form of a verdict on one excerpt, which has labels and no scale.
_VERDICT = prompt_pool.AnswerForm("verdict", "json", {"PASS": 1, "FAIL": 0}, None, 0.5)


def read_list(reply: LLMReply | None, key: str, *shown: str) -> list[Any] | Reason:
    r"""Return the list under `key` in the last object of a reply that has one.

    Reasoning before the object, a fence around it and words behind it do no harm. An object that stands in one of
    the texts `shown` to the judge is an echo, not an answer.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep.experiments.stepwise import read_list
    >>> said = 'Well.\n```json\n{"evidence": ["It rained."]}\n```'
    >>> reply = SimpleNamespace(text=said, finish_reason="stop", refusal=None)
    >>> read_list(reply, "evidence"), read_list(reply, "claims"), read_list(None, "claims")
    (['It rained.'], 'unparsable', 'failed')
    """
    reason = prompt_pool.why_unusable(reply)
    if reply is None or reason in ("failed", "refused"):
        return reason or "failed"
    text = reply.text if isinstance(reply.text, str) else ""
    cut = reason == "truncated"
    echo = prompt_pool.Material("\n".join(shown), "")
    result = [(fields[key], end) for fields, end in _objects(text, key) if not echo.repeats(fields)]
    if not result or (cut and text[result[-1][1] :].strip("` \n")):
        return prompt_pool.why_none(text, cut)
    value: list[Any] = result[-1][0]
    return value


def _objects(text: str, key: str) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield each outermost object that has a list under `key`, and where it ends; a key said twice says nothing."""
    at = 0
    for _ in range(MOST_ATTEMPTS):
        match = _OPENING.search(text, at)
        if match is None:
            return
        try:
            fields, at = json.JSONDecoder(object_pairs_hook=prompt_pool.unique_pairs).raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        if isinstance(fields.get(key), list):
            yield fields, at


def read_verdict(reply: LLMReply | None, *shown: str) -> Judgment:
    """Return the vote on one excerpt: 1 PASS, 0 FAIL, -1 with a reason where the reply says neither."""
    if reply is None:
        return Judgment(vote=ABSTAIN, reason="failed")
    return _VERDICT.judge(
        reply.text,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        material=prompt_pool.Material("\n".join(shown), ""),
        logprobs=None,
    )


def strings(values: Sequence[Any]) -> list[str] | None:
    """Return the strings that are not blank; None where something else is among them."""
    if not all(isinstance(value, str) for value in values):
        return None
    return [value for value in values if value.strip()]


# Characters of the source on either side of an excerpt that are shown for understanding.
CONTEXT_MARGIN = 500

_STRING = {"type": "string"}
STRINGS = {"type": "array", "items": _STRING}


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return the JSON schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


# The JSON schema of the reply to each step.
SCHEMAS: Mapping[str, dict[str, Any]] = {
    "decompose": object_schema(claims={"type": "array", "items": object_schema(segment=_STRING, claim=_STRING)}),
    "find": object_schema(reasoning=_STRING, evidence=STRINGS),
    "evaluate": object_schema(reasoning=_STRING, verdict={"type": "string", "enum": ["PASS", "FAIL"]}),
    "direct": object_schema(reasoning=_STRING, unsupported=STRINGS),
}


def prompts() -> Mapping[str, Any]:
    """Return system message, user message and parameters of each step."""
    return read_asset(__package__, "prompts.toml")


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of a response.

    Parameters
    ----------
    text : str
        The claim, understandable alone.
    segment : str
        The passage of the response that it came from, as the judge quoted it.
    span : (int, int) or None
        Where the segment stands in the response; None where it is not found there.
    """

    text: str
    segment: str
    span: prompt_pool.Span | None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A passage that a judge quoted from a source.

    Parameters
    ----------
    text : str
        The words of the source; where they are not found there, the judge's own.
    span : (int, int) or None
        Where they stand in the source; None where the excerpt is not verbatim.
    """

    text: str
    span: prompt_pool.Span | None


@dataclass(frozen=True, kw_only=True)
class TextQuestion(Question):
    """A question with the texts that it was made of, so that it can be asked in other words.

    Parameters
    ----------
    texts : mapping of str to str
        By the name of their placeholder; `manner_of` names the kind of a step that has several.
    """

    texts: Mapping[str, str] = field(default_factory=dict)


def fence_code(first: str, *others: str) -> str:
    """Return the code of the tags around texts: 8 hexadecimal digits that stand in none of them."""
    return prompt_pool.Material(first, "\n".join(others)).code


def fenced_messages(prompt: Mapping[str, Any], texts: Mapping[str, str], **words: str) -> list[dict[str, str]]:
    """Return the messages of a prompt.

    Parameters
    ----------
    prompt : mapping
        `system` and `user`, with placeholders such as ``{{source}}`` in `user`.
    texts : mapping of str to str
        What others wrote: each goes between tags that carry a code which stands in none of them. The code itself
        is at ``{{code}}``.
    words : str
        What we wrote: goes in as it is.
    """
    code = fence_code(*texts.values())
    fenced = {
        name: f"<{name}-{code}>\n{prompt_pool.clean(text, name)}\n</{name}-{code}>" for name, text in texts.items()
    }
    values = {**words, **fenced, "code": code}
    return [{"role": role, "content": prompt_pool.render(prompt[role], values).strip()} for role in ("system", "user")]


def _question(step: str, texts: Mapping[str, str], *, model: str | None = None) -> Question:
    prompt = prompts()[step]
    parameters = dict(prompt["parameters"]) | ({} if model is None else {"model": model})
    messages = fenced_messages(prompt, texts)
    return TextQuestion(step=step, messages=messages, schema=SCHEMAS[step], parameters=parameters, texts=texts)


def decomposition_question(response: str, *, model: str | None = None) -> Question:
    """Return the question that takes a response apart into claims; `model` in place of the program's own."""
    return _question("decompose", {"response": response}, model=model)


def finding_question(source: str, claim: str, *, model: str | None = None) -> Question:
    """Return the question that finds evidence for one claim; `model` in place of the program's own."""
    return _question("find", {"source": source, "claim": claim}, model=model)


def evaluation_question(source: str, claim: str, excerpt: Excerpt, *, model: str | None = None) -> Question:
    """Return the question that weighs one excerpt alone; what surrounds it in the source is there for understanding."""
    context = excerpt.text if excerpt.span is None else prompt_pool.text_around(source, excerpt.span, CONTEXT_MARGIN)
    return _question("evaluate", {"context": context, "excerpt": excerpt.text, "claim": claim}, model=model)


def decompose(response: str, log: list[LLMReply | None]) -> Program[list[Claim] | Reason]:
    """Take a response apart into claims.

    Parameters
    ----------
    response : str
        The text that is taken apart.
    log : list
        The reply is appended to it.

    Returns
    -------
    list of Claim, or str
        At least one claim, in the order of the reply; else the reason why there is none.
    """
    (reply,) = yield [decomposition_question(response)]
    log.append(reply)
    return read_claims(reply, prompt_pool.SearchableText(response))


def read_claims(reply: LLMReply | None, response: prompt_pool.SearchableText) -> list[Claim] | Reason:
    """Return the claims that a reply lists, at least one; else the reason why there is none."""
    items = read_list(reply, "claims", response.text)
    if isinstance(items, str):
        return items
    claims: list[Claim] = []
    start = 0
    for item in items:
        values = [item.get("claim"), item.get("segment")] if isinstance(item, dict) else [None]
        texts = strings(values)
        if texts is None or len(texts) < 2:
            return "unparsable"
        span = response.find(texts[1], start)
        start = start if span is None else span[0]
        claims.append(
            Claim(prompt_pool.clean(texts[0], "claim").strip(), prompt_pool.clean(texts[1], "segment").strip(), span)
        )
    return claims or "unparsable"


def find_evidence(
    source: str, claims: Sequence[str], log: list[LLMReply | None]
) -> Program[dict[str, list[Excerpt] | Reason]]:
    """Find the passages of a source that speak to each claim, one question a claim.

    Returns
    -------
    dict of str to list of Excerpt, or to str
        By claim: the excerpts, none twice; else the reason why nothing is known.
    """
    distinct = list(dict.fromkeys(claims))
    if not distinct:
        return {}
    replies = yield [finding_question(source, claim) for claim in distinct]
    log.extend(replies)
    text = prompt_pool.SearchableText(source)
    return {claim: read_evidence(reply, claim, text) for claim, reply in zip(distinct, replies, strict=True)}


def read_evidence(reply: LLMReply | None, claim: str, source: prompt_pool.SearchableText) -> list[Excerpt] | Reason:
    """Return the excerpts that a reply quotes from a source, none twice; else the reason why nothing is known."""
    return _quoted(reply, "evidence", source, source.text, claim)


def _quoted(reply: LLMReply | None, key: str, text: prompt_pool.SearchableText, *shown: str) -> list[Excerpt] | Reason:
    """Return the passages of a text that a reply lists under a key, none twice."""
    items = read_list(reply, key, *shown)
    if isinstance(items, str):
        return items
    quoted = strings(items)
    if quoted is None:
        return "unparsable"
    return list(dict.fromkeys(_excerpt(words, text) for words in quoted))


def _excerpt(words: str, source: prompt_pool.SearchableText) -> Excerpt:
    span = source.find(words)
    return Excerpt(prompt_pool.clean(words, "evidence").strip() if span is None else source.text[slice(*span)], span)


def evaluate_evidence(
    source: str, pairs: Sequence[tuple[str, Excerpt]], log: list[LLMReply | None]
) -> Program[dict[tuple[str, Excerpt], Judgment]]:
    """Judge for each claim and excerpt whether the excerpt alone establishes the claim, one question a pair.

    Returns
    -------
    dict of (str, Excerpt) to Judgment
        Vote 1 for PASS, 0 for FAIL, -1 with its reason where there is no verdict.
    """
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return {}
    replies = yield [evaluation_question(source, claim, excerpt) for claim, excerpt in distinct]
    log.extend(replies)
    return {
        (claim, excerpt): read_verdict(reply, source, claim)
        for (claim, excerpt), reply in zip(distinct, replies, strict=True)
    }


def find_unsupported(source: str, response: str, log: list[LLMReply | None]) -> Program[list[Excerpt] | Reason]:
    """Quote in one step the unsupported passages of a response: the baseline.

    Returns
    -------
    list of Excerpt, or str
        Passages of the response; else the reason why nothing is known.
    """
    (reply,) = yield [_question("direct", {"source": source, "response": response})]
    log.append(reply)
    return _quoted(reply, "unsupported", prompt_pool.SearchableText(response), source, response)


# Counts changes of the code that alter what is asked or how a reply is read.
RENDERING = 1

# By claim, the excerpts that were found for it, or why none could be read.
ClaimEvidence = Mapping[str, list[Excerpt] | Reason]
# By claim and excerpt, what was judged.
Verdicts = Mapping[tuple[str, Excerpt], Judgment]


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim of a response and its state, with the reason and the evidence.

    Parameters
    ----------
    claim : Claim
        As it was taken out of the response.
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
        steps = {step: [prompts()[step], SCHEMAS[step]] for step in self.steps}
        content = {"asked": steps, "margin": CONTEXT_MARGIN, "rendering": RENDERING}
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
        claims = yield from decompose(example.claim, log)
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
    result = yield from find_evidence(source, texts, log)
    pairs = [
        (text, excerpt)
        for text, excerpts in result.items()
        if not isinstance(excerpts, str)
        for excerpt in excerpts
        if excerpt.span is not None
    ]
    verdicts = yield from evaluate_evidence(source, pairs, log)
    checked = [_checked_claim(claim, result.get(claim.text, "unparsable"), verdicts) for claim in claims]
    return checked, result, verdicts


def _checked_claim(claim: Claim, excerpts: list[Excerpt] | Reason, verdicts: Verdicts) -> CheckedClaim:
    if claim.span is None or isinstance(excerpts, str):
        return CheckedClaim(claim, "undecided", "unparsable" if isinstance(excerpts, list) else excerpts)
    judgments = [verdicts.get((claim.text, excerpt)) for excerpt in excerpts]
    evidence = tuple((excerpt, _verdict(judgment)) for excerpt, judgment in zip(excerpts, judgments, strict=True))
    if any(judgment is not None and judgment.vote == 1 for judgment in judgments):
        return CheckedClaim(claim, "supported", evidence=evidence)
    reasons = ["unparsable" if judgment is None else judgment.reason for judgment in judgments]
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
        passages = yield from find_unsupported(example.source, example.claim, log)
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
