"""How far a run has come, as numbers and in words."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deep.llm import Tally


@dataclass(slots=True)
class AskProgress:
    """How far a run has come.

    Parameters
    ----------
    tally : Tally
        Counts by voter, and the dollars spent.
    judged, n_examples : int
        Examples that judges without an LLM are done with, and all of them; 0 of 0 while an LLM is asked.
    """

    tally: "Tally"
    judged: int = 0
    n_examples: int = 0


ProgressCallback = Callable[[AskProgress], None]
"""Called about twice a second while an LLM is asked, and after each example that is judged without one."""


def money(dollars: float | None, unpriced: int = 0) -> str:
    """Return an amount in words; one that is not known is said to be unknown.

    Examples
    --------
    >>> from deep.asking._progress import money
    >>> money(1.5), money(0.004, unpriced=3), money(0.0, unpriced=3), money(None)
    ('$1.50', '$0.0040 (+ 3 unpriced)', 'unknown', 'unknown')
    """
    if dollars is None or (unpriced and not dollars):
        return "unknown"
    amount = f"${dollars:.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"
    return f"{amount} (+ {unpriced} unpriced)" if unpriced else amount


def live_text(progress: AskProgress) -> str:
    """Return one line a voter, and one for the run."""
    tally = progress.tally
    lines = [
        f"{voter}  {counts['done']} done  {counts['failed']} failed  {counts['abstained']} abstained"
        for voter, counts in sorted(tally.by_voter.items())
    ]
    if progress.n_examples:
        return "\n".join([*lines, f"judging {progress.judged}/{progress.n_examples}  {tally.seconds:.0f} s"])
    settled = tally.found + tally.answered + tally.failed
    left = tally.seconds_left
    total = "?" if tally.total is None else str(tally.total)
    clock = "?" if left is None else f"{int(left) // 3600}:{int(left) // 60 % 60:02d}:{int(left) % 60:02d}"
    lines.append(
        f"{settled}/{total}  {tally.rate:.1f} requests/s  {money(tally.cost, tally.unpriced)} so far  {clock} left"
    )
    return "\n".join(lines)
