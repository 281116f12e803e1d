"""Collection of the package's own docstrings: an integration whose library is not installed has none to run."""

from importlib import import_module
from pathlib import Path

from deep.exceptions import MissingDependencyError

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
