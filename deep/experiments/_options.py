"""How every command of deep reads its options and reports an error."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deep.exceptions import DeepError

__all__ = ["HelpFormatter", "Values", "guarded"]

USAGE_ERROR = 2
INTERRUPTED = 130


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples and shows defaults."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False) else super()._get_help_string(action)


class Values(argparse.Action):
    """An option of several values: repeated, separated by blanks, or by commas.

    A value that is itself the name of an existing file is never cut at its commas.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  argparse hands it over by position
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Add the values to those given before."""
        parts = [part for value in values for part in ([value] if Path(value).exists() else value.split(","))]
        seen = getattr(namespace, self.dest)
        before = [] if seen is self.default else seen
        setattr(namespace, self.dest, [*before, *(part.strip() for part in parts if part.strip())])


def guarded(run: Callable[[Sequence[str] | None], int], argv: Sequence[str] | None) -> int:
    """Run a command: an error that the user can mend becomes one line on stderr and exit status 2."""
    try:
        return run(argv)
    except DeepError as error:
        sys.stderr.write(f"error: {error}\n")
        return USAGE_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        return INTERRUPTED
