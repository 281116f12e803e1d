"""Judges whose replies cannot be read, told while a run goes on."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from deep.asking._replay import is_repair, read_answer
from deep.records import Judgment

if TYPE_CHECKING:
    from deep.llm import Reply, Request

FROM = 50
"""The reply from which on a loss is told."""

TOLERATED = 0.05
ENDINGS = 3
LONGEST_ENDING = 80


class LossWatch:
    """Counts the replies of each judge that cannot be read, and tells once of one that loses more than 5 %.

    Parameters
    ----------
    tell : callable
        Called with a line for a judge, and one for each of three endings.

    Examples
    --------
    >>> from deep.asking._losses import LossWatch
    >>> watch = LossWatch(print)
    >>> for number in range(50):
    ...     watch.count("strict@1a2b/tiny", lost=number % 5 == 0, text="The claim may well hold.")
    strict@1a2b/tiny: 10 of 50 replies cannot be read. They end so:
      The claim may well hold.
      The claim may well hold.
      The claim may well hold.
    """

    def __init__(self, tell: Callable[[str], object]) -> None:
        self._tell = tell
        self._seen: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._endings: dict[str, list[str]] = defaultdict(list)
        self._told: set[str] = set()

    def read(self, request: "Request", reply: "Reply") -> Judgment | None:
        """Return the vote of a reply, and count it; a repair turn is not counted again."""
        judgment = read_answer(request, reply)
        if judgment is not None and not is_repair(request.context):
            self.count(request.voter, lost=judgment.reason == "unparsable", text=reply.text or "")
        return judgment

    def count(self, voter: str, *, lost: bool, text: str) -> None:
        """Count a reply of a judge; tell of it where it is the first from the 50th on above the tolerated share."""
        self._seen[voter] += 1
        self._lost[voter] += lost
        if lost and len(self._endings[voter]) < ENDINGS:
            self._endings[voter].append(" ".join(text.split())[-LONGEST_ENDING:])
        if self._seen[voter] >= FROM and voter not in self._told and self._lost[voter] > TOLERATED * self._seen[voter]:
            self._told.add(voter)
            self._tell(f"{voter}: {self._lost[voter]} of {self._seen[voter]} replies cannot be read. They end so:")
            for ending in self._endings[voter]:
                self._tell(f"  {ending}")
