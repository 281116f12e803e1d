"""Errors that deep raises on purpose, and the exit statuses of its commands.

::

    DeepError
    ├── InputError             (also a ValueError)   a value, a file or an option is not usable as given
    └── MissingDependencyError (also an ImportError) an optional library is not installed
    StoppedError                                     a run ended before its work was done; run it again
    DeepWarning            (also a UserWarning)      the result stands, but its reader should know something

Asking for a result before ``fit`` raises scikit-learn's own ``NotFittedError``. A command prints the one
line of a :class:`DeepError`, or of an ``OSError`` (a full disk, a closed output), and exits with status 2; anything
else is a bug and keeps its traceback.
"""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

__all__ = [
    "LOG",
    "DeepError",
    "DeepWarning",
    "ExitStatus",
    "InputError",
    "MissingDependencyError",
    "StoppedError",
    "needs_extra",
    "note",
    "printable",
    "warn",
]


class DeepWarning(UserWarning):
    """Something that a reader should know of the input; a command prints it in one line of standard error."""


def warn(text: str) -> None:
    """Warn the caller of the function that calls this one."""
    # Named is the place that called the function which warns.
    warnings.warn(text, DeepWarning, stacklevel=3)


class ExitStatus(IntEnum):
    """The exit statuses of every command."""

    DONE = 0
    FOUND = 1
    """The command did its work, and found what it looks for: leakage, drift, a broken prompt, a failing judge."""
    ERROR = 2
    """A value, a file or an option is not usable, or the output cannot be written: a full disk, a closed output."""
    BUDGET = 3
    INTERRUPTED = 130
    """By Ctrl-C, SIGTERM or a lost terminal (SIGHUP)."""
    CLOSED_PIPE = 141
    """The reader of standard output went away, as ``head`` does; what a shell reports for SIGPIPE."""

    @classmethod
    def of_stop(cls, reason: str | None) -> "ExitStatus":
        """Return the status of a run that stopped for a reason, ``budget`` or ``interrupted``; None: it did not."""
        return cls.DONE if reason is None else cls[reason.upper()]


def printable(text: str) -> str:
    r"""Return a text with an escape for whatever would end a line, move a cursor or hide.

    Examples
    --------
    >>> printable("a voter named \x1b[31m\u202e")
    'a voter named \\x1b[31m\\u202e'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# The library's notes, by default lines on standard error: ``LOG.setLevel("ERROR")`` silences them.
LOG = logging.getLogger("deep")


class _Lines(logging.Handler):
    """Write the bare line to what is standard error at that moment: a notebook or a test may replace it."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{self.format(record)}\n")


if not LOG.handlers:
    LOG.addHandler(_Lines())
    LOG.propagate = False  # or handlers of the root would write each line a second time


def note(line: str) -> None:
    """Tell the user one line, as a record of the logger ``deep``."""
    LOG.warning("%s", printable(line))


class DeepError(Exception):
    """Base of every error that a user can cause and mend.

    Examples
    --------
    >>> from deep import DeepError, VoteMatrix
    >>> try:
    ...     VoteMatrix([[2]], ["a"], ["strict"], ["news"], [1])
    ... except DeepError as error:
    ...     print(error)
    `votes` must hold only -1 (no vote), 0 and 1. Got 2.0 at row 0, column 0 ('strict').
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class InputError(DeepError, ValueError):
    """An argument, option, file or cell of a table is not usable; the message says where and what to do.

    Examples
    --------
    >>> from deep import InputError, read_votes
    >>> try:
    ...     read_votes("votes.txt")
    ... except InputError as error:
    ...     print(isinstance(error, ValueError), error)
    True `paths` must name existing files. Got votes.txt.
    """


class MissingDependencyError(DeepError, ImportError):
    """An optional library is needed for what was asked."""


@contextmanager
def needs_extra(extra: str, *, what: str = "This integration") -> Iterator[None]:
    """Raise the error that names an extra of deep-judges where an import inside the block fails.

    Parameters
    ----------
    extra : str
        As ``pip install 'deep-judges[...]'`` takes it.
    what : str
        What needs the library: the start of the sentence.

    Raises
    ------
    MissingDependencyError
        A library is not installed, or is too old to have what is imported.

    Examples
    --------
    >>> from deep.exceptions import needs_extra
    >>> with needs_extra("boosting", what="`ensembler` 'XGB'"):
    ...     import no_such_library
    Traceback (most recent call last):
    deep.exceptions.MissingDependencyError: `ensembler` 'XGB' needs a library that is not installed (No module named
    'no_such_library'). Run: pip install 'deep-judges[boosting]'.
    """
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} needs a library that is not installed ({error}). Run: pip install 'deep-judges[{extra}]'."
        ) from None


class StoppedError(Exception):
    """A run was stopped before its end.

    Parameters
    ----------
    reason : {'budget', 'interrupted'}
        Why: the next request could have passed the budget, or a signal came, as of Ctrl-C.
    consequence : str
        What was not written, and how to go on.

    Examples
    --------
    >>> print(StoppedError("budget"))
    stopped: the budget is reached. Nothing was written. Run the same command again to continue.
    """

    def __init__(
        self, reason: str, consequence: str = "Nothing was written. Run the same command again to continue."
    ) -> None:
        why = "the budget is reached" if reason == "budget" else reason
        super().__init__(f"stopped: {why}. {consequence}")
        self.status = ExitStatus.of_stop(reason)
