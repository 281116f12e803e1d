"""The live line of `deep votes`: on a terminal only, and on standard error only."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deep.llm import Tally

__all__ = ["live_line", "live_text", "money"]


def money(dollars: float | None, unpriced: int = 0) -> str:
    """Return an amount in words; what is not known is said to be unknown.

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


def live_text(tally: Tally) -> str:
    """Return one line a voter, and one for the run."""
    lines = [
        f"{voter}  {counts['done']} done  {counts['failed']} failed  {counts['abstained']} abstained"
        for voter, counts in sorted(tally.by_voter.items())
    ]
    settled = tally.found + tally.answered + tally.failed
    left = tally.seconds_left
    total = "?" if tally.total is None else str(tally.total)
    clock = "?" if left is None else f"{int(left) // 3600}:{int(left) // 60 % 60:02d}:{int(left) % 60:02d}"
    lines.append(
        f"{settled}/{total}  {tally.rate:.1f} requests/s  {money(tally.cost, tally.unpriced)} so far  {clock} left"
    )
    return "\n".join(lines)


@contextmanager
def live_line(tally: Tally) -> Iterator[None]:
    """Show the counts while the block runs, where standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def shown() -> Text:
        return Text(live_text(tally))

    with Live(get_renderable=shown, console=Console(stderr=True), refresh_per_second=2, transient=True):
        yield
