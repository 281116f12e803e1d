"""What the library has to say while it works: records of the logger ``deep``, by default lines on standard error."""

import logging
import sys

from deep.exceptions import printable

LOG = logging.getLogger("deep")
"""``LOG.setLevel("ERROR")`` silences deep; other handlers take the lines elsewhere."""


class _Lines(logging.Handler):
    """Write the bare line to what is standard error at that moment: a notebook or a test may replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{self.format(record)}\n")


if not LOG.handlers:
    LOG.addHandler(_Lines())
    LOG.propagate = False  # or handlers of the root would write each line a second time


def note(line: str) -> None:
    """Tell the user one line."""
    LOG.warning("%s", printable(line))
