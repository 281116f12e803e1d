"""Counting what happens, for the live line and the summary."""

import time
from collections import Counter
from typing import TYPE_CHECKING

from deep.judge import REPAIR
from deep.records import ABSTAIN, Judgment

if TYPE_CHECKING:
    from deep.llm._schema import RequestRow

TOO_LONG = "too_long"
"""The class of failure of a request that does not fit into the context of its LLM."""


class Tally:
    """Counts by voter, and what the run has cost.

    Parameters
    ----------
    total : int, optional
        Requests in all, where that is known.

    Attributes
    ----------
    by_voter : dict of str to Counter
        Per voter: ``done`` (settled now or before), ``votes``, ``answers`` that are no votes, each reason without
        a vote, and ``failed``; ``repairs`` are repair turns, and ``repaired`` those of them that turned an unparsable
        reply into a vote or an abstention.
    answered, failed, attempts : int
        Of this run: requests answered and given up; attempts in all.
    in_doubt : int
        Attempts of this run that ended without an answer which the endpoint may have given, and may bill.
    found : int
        Requests that were settled before, or were asked already about another item.
    cost : float
        Dollars of the answers of this run with a known price.
    unpriced : int
        Answers of this run without one.
    other_models : Counter of (str, str)
        Answers of this run by a model of another name: the one asked and the one that answered.
    too_long : int
        Requests, of this run or found, that did not fit into the context of their LLM.
    longer, saved : int
        Replies of this run that were cut off at their length limit and asked for again with a longer one, and those of
        them that then came whole and gave a vote, or an answer that is none by itself.
    lines_passed_over, contradictions : int
        Lines of batch files that are no result of a request, and requests with two results that contradict each other.
    """

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.by_voter: dict[str, Counter[str]] = {}
        self.answered = self.failed = self.attempts = self.in_doubt = self.found = self.unpriced = 0
        self.cost = 0.0
        self.other_models: Counter[tuple[str, str]] = Counter()
        self.too_long = self.lines_passed_over = self.contradictions = 0
        self.longer = self.saved = 0
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the tally began."""
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Settled requests a second in this run."""
        return (self.answered + self.failed) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Seconds to go at this rate; None where that cannot be said."""
        settled = self.answered + self.failed
        if self.total is None or not settled:
            return None
        return max(self.total - self.found - settled, 0) / self.rate

    def find(self, voter: str, row: "RequestRow") -> None:
        """Count a request that the ledger has settled already."""
        self.found += 1
        self.too_long += row.get("failure") == TOO_LONG
        if row["state"] != "done":
            self._count(voter, "failed")
        else:
            self._count(voter, "answers" if row["vote"] is None else row["reason"])

    def answer(self, voter: str, judgment: Judgment | None, cost: float | None) -> None:
        """Count an answer; its judgment is None where it has no vote of its own."""
        self.answered += 1
        self.cost += cost or 0.0
        self.unpriced += cost is None
        self._count(voter, "answers" if judgment is None else judgment.reason)

    def cut(self, cost: float | None) -> None:
        """Count a reply that was cut off, and is asked for again: what it has cost, and no answer."""
        self.cost += cost or 0.0
        self.unpriced += cost is None

    def end_longer(self, judgment: Judgment | None) -> None:
        """Count the second reply to a request whose first was cut off."""
        self.longer += 1
        self.saved += judgment is None or judgment.vote != ABSTAIN

    def name(self, asked: str, answered: str | None) -> None:
        """Count an answer by the name of the model that gave it, where that is not the one asked."""
        if answered is not None and answered != asked:
            self.other_models[asked, answered] += 1

    def judge(self, voter: str, judgment: Judgment) -> None:
        """Count a judgment that was made of several answers, each counted already."""
        self._count(voter, judgment.reason)

    def fail(self, voter: str, kind: str | None = None) -> None:
        """Count a request that was given up, for the class of failure `kind`."""
        self.failed += 1
        self.too_long += kind == TOO_LONG
        self._count(voter, "failed")

    def _count(self, voter: str, reason: str | None) -> None:
        if voter.endswith(f"#{REPAIR}"):
            self._count_repair(voter.removesuffix(f"#{REPAIR}"), reason)
            return
        counts = self.by_voter.setdefault(voter, Counter())
        counts["done"] += 1
        counts[reason or "votes"] += 1

    def _count_repair(self, voter: str, reason: str | None) -> None:
        counts = self.by_voter.setdefault(voter, Counter())
        counts["repairs"] += 1
        if reason in (None, "abstained"):
            counts["repaired"] += 1
            counts["unparsable"] -= 1
            counts[reason or "votes"] += 1

    def failure_rate(self, voter: str) -> float:
        """Return the share of a voter's requests without a usable answer; an abstention is usable."""
        counts = self.by_voter[voter]
        lost = sum(counts[kind] for kind in ("failed", "refused", "truncated", "unparsable"))
        return lost / counts["done"]
