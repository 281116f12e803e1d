"""Progress bars on a terminal, silence in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["progress_bars"]


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Callable[[], None]]]:
    """Yield a function that starts a bar and returns what advances it."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not sys.stderr.isatty()
    ) as bars:

        def start(task: str, steps: int) -> Callable[[], None]:
            bar = bars.add_task(task, total=steps)

            def step() -> None:
                bars.advance(bar)
                if bars.tasks[bar].finished:
                    bars.update(bar, visible=False)

            return step

        yield start
