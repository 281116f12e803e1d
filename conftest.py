"""What every test runs under, and collection of docstrings: an integration without its library has none to run."""

import gc
import os
from collections.abc import Generator
from importlib import import_module
from pathlib import Path

import pytest

from deep.exceptions import MissingDependencyError

for library in ("OMP", "OPENBLAS"):
    # Small matrices gain nothing from a second thread, and two processes of tests whose threads wait for one another
    # take twice the processor time. It is said before numpy and torch are loaded, and processes of tests inherit it.
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

INTEGRATIONS = Path(__file__).parent / "deep" / "integrations"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep ten thousand tests and the libraries they load out of the garbage collector's way: they stay to the end."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.enable()
    return result


def pytest_unconfigure() -> None:
    """Let go of all that was kept, or libraries that count their objects at the end call it leaked."""
    gc.unfreeze()


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out a module that only says which extra it needs."""
    if collection_path.parent != INTEGRATIONS or collection_path.suffix != ".py":
        return None
    try:
        import_module(f"deep.integrations.{collection_path.stem}")
    except MissingDependencyError:
        return True
    return None
