"""The `deep` command's door, outside the package, so that it can say when another `deep` stands in its place."""

import os
import sys
from importlib import metadata

__all__ = ["main"]

OTHER = "deep"
"""The distribution on the package index that installs a package of the same name over this one."""


def main() -> int:
    """Run `deep`; where another project's package is found under that name, say so in one line."""
    try:
        from deep.cli import main as run
    except (ImportError, SyntaxError):
        if not _installed(OTHER):
            raise
        line = (
            "error: `deep` must be the package of deep-judges. Got another project's package of that name. "
            "Run: pip uninstall deep, then pip install --force-reinstall deep-judges.\n"
        )
        try:
            sys.stderr.write(line)
        except (AttributeError, OSError):  # closed, full: what Python cannot flush as it ends would make the status 120
            os._exit(2)
        return 2
    return run()


def _installed(name: str) -> bool:
    try:
        metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return False
    return True
