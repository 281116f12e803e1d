"""How far a run has come, below the cell of a notebook that started it."""

import sys
from importlib import import_module
from typing import Any

from deep.asking._progress import AskProgress, ProgressCallback, live_text


def notebook_progress() -> ProgressCallback | None:
    """Make a callback that shows the counts of a run below the running cell, in one output that changes.

    Returns
    -------
    callable or None
        None where no notebook is listening: in a script, in a terminal, in IPython's shell there.
    """
    ipython = sys.modules.get("IPython")  # a kernel has loaded it
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else _Output()


class _Output:
    """An output of a notebook's cell."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._text = ""

    def __call__(self, progress: AskProgress) -> None:
        """Show the counts; what has not changed is not sent again."""
        text = live_text(progress)
        if text == self._text:
            return
        self._text = text
        if self._handle is None:
            display = import_module("IPython.display").display  # typed nowhere, and not here outside notebooks
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)
