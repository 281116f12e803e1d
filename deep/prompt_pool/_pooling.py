"""Several judgments or replies as one: the majority's vote, the mean score, the sums of tokens and dollars."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from deep.judge import LLMReply
from deep.records import ABSTAIN, Judgment, Reason


class Usage(TypedDict):
    """The fields of a judgment that say what its replies were and cost."""

    raw_text: str | None
    model: str | None
    tokens: Mapping[str, int]
    cost: float | None
    seconds: float | None


def pool_judgments(judgments: Sequence[Judgment]) -> Judgment:
    """Return the majority's vote and the mean score of several judgments of one example; a single one as it is.

    The score is the share of the judge's own opinion that finds the claim consistent, after self-consistency [1]_. A
    tie abstains; a judgment without a vote counts for neither side. Tokens, costs and seconds of the answers that came
    are summed; the cost is None where one is unknown. Without a single vote the commonest reason is given.

    References
    ----------
    .. [1] Wang et al., ICLR 2023. https://arxiv.org/abs/2203.11171
    """
    if len(judgments) == 1:
        return judgments[0]
    voted = [judgment for judgment in judgments if judgment.vote != ABSTAIN]
    vote, reason = _majority(voted, judgments)
    chosen = next((judgment for judgment in voted if judgment.vote == vote), judgments[0])
    return Judgment(
        vote=vote,
        reason=reason,
        score=_mean([_soft(judgment) for judgment in voted]),
        rationale=chosen.rationale,
        evidence=chosen.evidence,
        samples=tuple(judgment.vote for judgment in judgments),
        repaired=any(judgment.repaired for judgment in voted),
        **sums([judgment.raw_text for judgment in judgments], judgments),
    )


def repaired_judgment(first: Judgment, second: Judgment | None) -> Judgment:
    """Return the judgment of a reply that could not be read and of the repair turn that followed it.

    The answer is the second one's where that has one. Both replies are kept, and tokens, dollars and seconds summed.
    """
    if second is None:
        return first
    usage = sums([first.raw_text, second.raw_text], [first, second])
    if second.vote == ABSTAIN and second.reason != "abstained":
        return replace(first, **usage)
    rationale = second.rationale or (first.raw_text or "").strip() or None
    return replace(second, repaired=True, rationale=rationale, **usage)


def usage_of(log: Sequence[LLMReply | None]) -> Usage:
    """Return the replies of a program as a JSON list, their LLMs, and the sums of tokens, dollars and seconds."""
    replies = [reply for reply in log if reply is not None]
    return sums([reply.text for reply in replies], replies)


def sums(texts: Sequence[str | None], parts: Sequence[LLMReply] | Sequence[Judgment]) -> Usage:
    tokens: Counter[str] = Counter()
    answered = [part for part in parts if getattr(part, "reason", None) != "failed"]
    for part in answered:
        tokens.update(part.tokens)
    return {
        "raw_text": json.dumps(list(texts), ensure_ascii=False) if texts else None,
        "model": ", ".join(dict.fromkeys(part.model for part in answered if part.model)) or None,
        "tokens": dict(tokens),
        "cost": _total([getattr(part, "cost", None) for part in answered]),
        "seconds": _total([getattr(part, "seconds", None) for part in answered]),
    }


def _majority(voted: Sequence[Judgment], judgments: Sequence[Judgment]) -> tuple[int, Reason | None]:
    if not voted:
        return ABSTAIN, commonest(judgment.reason for judgment in judgments)
    balance = sum(2 * judgment.vote - 1 for judgment in voted)
    return (ABSTAIN, "abstained") if balance == 0 else (int(balance > 0), None)


def _soft(judgment: Judgment) -> float:
    return float(judgment.vote) if judgment.score is None else judgment.score


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _total(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def commonest(reasons: Iterable[Reason | None]) -> Reason:
    """Return the reason that comes most often, the first by name of those that tie; None does not count."""
    return Counter(sorted(reason for reason in reasons if reason is not None)).most_common(1)[0][0]
