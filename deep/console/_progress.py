"""Progress bars on a terminal, silence in a pipe."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deep.asking import AskProgress, ProgressCallback


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Callable[[], None]]]:
    """Yield a function that starts a bar and returns what advances it."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

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


@contextmanager
def live_progress() -> "Iterator[ProgressCallback | None]":
    """Yield a callback that shows the counts of a run; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from deep.asking import live_text

    with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as live:

        def show(progress: "AskProgress") -> None:
            live.update(Text(live_text(progress)))

        yield show
