"""The base of lexical checks: judges that look at words and abstain where these tell nothing."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import ClassVar

from deep.features.lexical._analysis import LONGEST_CLAIM, LONGEST_SOURCE, Pair, analysed_pair, too_long
from deep.judge import OfflineJudge, voter_name
from deep.records import ABSTAIN, Example, Judgment

ANALYSIS = 2
"""Raised when what all checks share changes: how texts are cut into sentences, words and stems, and aligned."""

EVIDENCE_SHOWN = 10


class LexicalCheck(OfflineJudge):
    """A judge that compares words of the claim with those of the source.

    A subclass says in `look` what it looks at and in `silent` when it abstains, and implements ``_judge(pair)``.

    Attributes
    ----------
    name : str
    version : str
        A hash of the name and the revision, in hex; it changes when a vote may.
    """

    name: ClassVar[str]
    look: ClassVar[str]
    silent: ClassVar[str]
    revision: ClassVar[int] = 1

    @property
    def version(self) -> str:
        """See the class."""
        return sha256(f"lexical {self.name} {self.revision} {ANALYSIS}".encode()).hexdigest()

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judge.Judge`."""
        return {"kind": "lexical", "judge": self.name, "version": self.version, "model": None}

    def voter(self, llm: str = "") -> str:  # noqa: ARG002  no LLM is asked
        """Return the column of a vote matrix, ``lexical-<name>@<first 8 of version>``."""
        return voter_name(f"lexical-{self.name}", self.version)

    def label(self, example: Example, /) -> Judgment:
        """Judge one example; never fails, whatever the text. One that is too long gets the reason ``truncated``."""
        source, claim = example.source, example.claim
        if len(source) > LONGEST_SOURCE or len(claim) > LONGEST_CLAIM:
            return cut_off(str(too_long(source, claim)))
        return self._judge(analysed_pair(source, claim))

    @abstractmethod
    def _judge(self, pair: Pair) -> Judgment:
        """Judge a claim beside its source."""


@lru_cache(maxsize=64)
def abstained(rationale: str) -> Judgment:
    """Return a judgment without a vote, the same for all claims that a check has nothing to say of."""
    return undecided(rationale, None)


def cut_off(rationale: str) -> Judgment:
    """Return a judgment without a vote on a text of which a check would read no more than a part."""
    return Judgment(ABSTAIN, reason="truncated", rationale=rationale)


def undecided(rationale: str, score: float | None) -> Judgment:
    """Return a judgment without a vote."""
    return Judgment(ABSTAIN, reason="abstained", score=score, rationale=rationale)


def graded(share: float, rationale: str, *, below: float, from_: float, evidence: Sequence[str] = ()) -> Judgment:
    """Return 0 where a share is below one limit, 1 from another one on, and no vote between."""
    if below <= share < from_:
        return undecided(rationale, share)
    return Judgment(int(share >= from_), score=share, rationale=rationale, evidence=tuple(evidence))


def found_or_missing(what: str, found: Sequence[str], missing: Sequence[str]) -> Judgment:
    """Return 0 where something is missing from the source, 1 where all is found, no vote where nothing was sought."""
    if missing:
        named = ", ".join(missing[:EVIDENCE_SHOWN])
        rationale = f"The source lacks {what} of the claim: {named}."
        return Judgment(0, score=_share(found, missing), rationale=rationale, evidence=tuple(missing))
    if found:
        return Judgment(1, score=1.0, rationale=f"The source has all {what} of the claim.", evidence=tuple(found))
    return abstained(f"The claim has no {what}.")


def _share(found: Sequence[str], missing: Sequence[str]) -> float:
    return len(found) / (len(found) + len(missing))
