"""Examples a few at a time, those that share a source side by side."""

from collections.abc import Callable, Iterator, Sequence

from deep.records import Example, Judgment

WINDOW = 256
"""Examples judged at a time: enough to fill batches of like length, and a bound on the memory."""


def in_windows(examples: Sequence[Example], judge: Callable[[list[Example]], list[Judgment]]) -> list[Judgment]:
    """Return the judgments in the order of the examples; `judge` sees the examples of a source together."""
    found: dict[int, Judgment] = {}
    for at in _windows(examples):
        found.update(zip(at, judge([examples[i] for i in at]), strict=True))
    return [found[i] for i in range(len(examples))]


def _windows(examples: Sequence[Example]) -> Iterator[list[int]]:
    first: dict[str, int] = {}
    for i, example in enumerate(examples):
        first.setdefault(example.source, i)
    order = sorted(range(len(examples)), key=lambda i: first[examples[i].source])
    for start in range(0, len(order), WINDOW):
        yield order[start : start + WINDOW]
