"""What several samples of a labeled turn come to: a type, criteria passed or failed, a verdict a sentence."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from deep.exceptions import InputError
from deep.judge import LLMReply
from deep.prompt_pool import commonest, usage_of
from deep.records import ABSTAIN, Judgment, Reason

CRITERIA = ("rational", "grounded", "irrefutable")
"""The criteria of a cognitive statement, in the order in which they are asked."""

TIERS = ("misleading", "speculative", "reliable", "irrefutable")
"""What a cognitive statement is by the number of criteria, in that order, that it meets."""

KINDS = ("cognitive", "factual", "irrelevant")
"""Types of statement; of two that as many samples name, the first, as more is asked of it."""


def check_samples(samples: object, threshold: object) -> None:
    """Raise unless both are whole numbers, the threshold no more than the samples, or None."""
    if type(samples) is not int or samples < 1:
        raise InputError(f"`samples` must be a whole number of at least 1. Got {samples!r}.")
    if threshold is not None and threshold not in range(1, samples + 1):
        raise InputError(f"`threshold` must be a whole number from 1 to {samples}. Got {threshold!r}.")


def majority_of(samples: int) -> int:
    """Return the least number of samples that are more than half of all."""
    return samples // 2 + 1


@dataclass(frozen=True, slots=True)
class SentenceVerdict:
    """A judge's verdict on one sentence.

    Parameters
    ----------
    text : str
    kind : {'cognitive', 'factual', 'irrelevant', None}
        None where the judge does not say or the samples leave it open.
    verdict : str or None
        irrelevant, faithful, invented, misleading, speculative, reliable or irrefutable; ``at least speculative``
        and ``at least reliable`` where the next criterion was not asked or not answered; None where nothing is known.
    consistent : bool or None
        Whether it meets the level asked for; None where it is irrelevant or undecided.
    votes : mapping of str to int
        Samples by label, over all tasks.
    reason : str or None
        Why nothing more is known, where an answer was missing.
    """

    text: str
    kind: str | None = None
    verdict: str | None = None
    consistent: bool | None = None
    votes: Mapping[str, int] = field(default_factory=dict)
    reason: Reason | None = None


@dataclass(slots=True)
class LabelTally:
    """The labels that the samples of one task gave to one sentence, and why others gave none."""

    n_samples: int
    labels: Counter[str] = field(default_factory=Counter)
    reasons: Counter[Reason] = field(default_factory=Counter)

    def kind(self) -> str | None:
        """Return the commonest type; None where the missing samples could have made another one commoner."""
        first, second, *_ = sorted(KINDS, key=lambda kind: -self.labels[kind])
        missing = self.reasons.total()
        return first if not missing or self.labels[first] - self.labels[second] > missing else None

    def passes(self, good: str, bad: str, threshold: int) -> bool | None:
        """Return False where `threshold` samples say `bad`, True where no more than the others could; else None."""
        if self.labels[bad] >= threshold:
            return False
        return True if self.labels[good] > self.n_samples - threshold else None

    def relabeled(self, labels: Mapping[str, int]) -> "LabelTally":
        """Return the tally with its samples counted under other labels."""
        return LabelTally(self.n_samples, Counter(labels), self.reasons)

    @property
    def reason(self) -> Reason | None:
        """The commonest reason for a missing label."""
        return commonest(self.reasons.elements()) if self.reasons else None


@dataclass(frozen=True, slots=True)
class TurnReading:
    """A judge's verdicts on the sentences of one turn.

    Parameters
    ----------
    sentences : tuple of SentenceVerdict
        One a sentence, in order.
    unaligned : tuple of str
        What replies said of text that is none of the sentences.
    replies : tuple of (LLMReply or None)
        All replies, None where a call failed for good.
    """

    sentences: tuple[SentenceVerdict, ...]
    unaligned: tuple[str, ...] = ()
    replies: tuple[LLMReply | None, ...] = ()

    def judgment(self) -> Judgment:
        """Return the vote on the whole: 1 where every sentence that is not irrelevant meets the level.

        One sentence that surely fails makes it 0; short of that, one that is undecided leaves it without a vote.
        """
        checked = [sentence for sentence in self.sentences if sentence.kind != "irrelevant"]
        undecided = [sentence.reason for sentence in checked if sentence.consistent is None]
        vote: int = 1
        reason: Reason | None = None
        if any(sentence.consistent is False for sentence in checked):
            vote = 0
        elif undecided:
            vote, reason = ABSTAIN, commonest(undecided)
        elif not checked:
            vote, reason = ABSTAIN, "abstained"
        return Judgment(
            vote=vote,
            reason=reason,
            rationale="\n".join(f"not aligned: {text}" for text in self.unaligned) or None,
            evidence=tuple(map(_as_evidence, self.sentences)),
            **usage_of(self.replies),
        )


def _as_evidence(sentence: SentenceVerdict) -> str:
    known = {True: "consistent", False: "hallucinated", None: f"undecided ({sentence.reason})"}
    return f"{sentence.verdict or known[sentence.consistent]}: {sentence.text}"
