"""The versions that a fit depends on."""

from importlib import metadata
from platform import python_version

from deep import __version__

LIBRARIES = ("numpy", "scipy", "scikit-learn", "catboost", "lightgbm", "xgboost")


def library_versions() -> dict[str, str]:
    """Return the versions of Python, deep and the libraries that a fit depends on."""
    found = {"deep": __version__, "python": python_version()}
    for name in LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
