"""One thread a process, and collection of docstrings: an integration whose library is not installed has none to run."""

import os
from importlib import import_module
from pathlib import Path

from deep.exceptions import MissingDependencyError

for library in ("OMP", "OPENBLAS"):
    # Small matrices gain nothing from a second thread, and two processes of tests whose threads wait for one another
    # take twice the processor time. It is said before numpy and torch are loaded, and processes of tests inherit it.
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

INTEGRATIONS = Path(__file__).parent / "deep" / "integrations"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a module that only says which extra it needs."""
    if collection_path.parent != INTEGRATIONS or collection_path.suffix != ".py":
        return None
    try:
        import_module(f"deep.integrations.{collection_path.stem}")
    except MissingDependencyError:
        return True
    return None
