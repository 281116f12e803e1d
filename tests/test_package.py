"""The package as a whole: names, speed of `deep --help`, layers."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import deep
from deep.cli import COMMANDS
from deep.exceptions import MissingDependencyError

HEAVY = ("catboost", "lightgbm", "matplotlib", "netcal", "numpy", "pandas", "sklearn", "snorkel", "torch", "xgboost")


def modules():
    """Return the names of every module of the package."""
    return [name for _, name, _ in pkgutil.walk_packages(deep.__path__, "deep.") if not name.endswith("__main__")]


def _lacks(name):
    """Return what a module says of a library that is not installed; None where it is."""
    try:
        importlib.import_module(name)
    except MissingDependencyError as error:
        return str(error)
    return None


def test_exported_names_are_sorted_and_exist():
    """`__all__` is sorted and every name in it can be imported; an integration may lack its library, and says which."""
    for name in modules():
        if name.startswith("deep.integrations.") and (message := _lacks(name)) is not None:
            assert re.search(r"Run: pip install 'deep-judges\[\w+\]'\.$", message), name
            continue
        module = importlib.import_module(name)
        exported = list(getattr(module, "__all__", []))
        assert exported in (sorted(exported), sorted(exported, key=lambda n: (not n.isupper(), n))), name
        assert all(hasattr(module, export) for export in exported), name


def test_public_names_are_there():
    """Every name that `deep` lists can be taken from it; another is an AttributeError."""
    assert all(hasattr(deep, name) for name in dir(deep))
    with pytest.raises(AttributeError, match=r"(?i)no deep attribute nonsense"):
        _ = deep.nonsense


def test_every_public_name_has_an_example():
    """In its docstring, where it is tested."""
    names = [name for name in deep.__all__ if callable(getattr(deep, name))]
    assert len(names) >= 13
    assert [name for name in names if not re.search(r"\n *Examples\n *--------\n", getattr(deep, name).__doc__)] == []
    assert [name for name in names if ">>> " not in getattr(deep, name).__doc__] == []


def test_help_imports_nothing_heavy():
    """`deep --help` loads none of the libraries that take time to import."""
    code = f"import sys, deep.cli; deep.cli.main(['--help']); print([m for m in {HEAVY!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "[]"
    assert all(name in result.stdout for name in COMMANDS)


def test_help_costs_little_more_than_starting_python():
    """`deep --help` takes at most ten times the processor time of an empty Python, best of three each."""

    def best_of_three(*args):
        seconds = []
        for _ in range(3):
            before = os.times()
            subprocess.run([sys.executable, *args], capture_output=True, check=True)
            after = os.times()
            seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return min(seconds)

    assert best_of_three("-m", "deep", "--help") < 10 * max(best_of_three("-c", "pass"), 0.02)
