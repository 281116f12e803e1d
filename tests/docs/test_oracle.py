"""The scripts that judge a change of the house: the comparison of two stores, and the places of mutants."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ORACLE = ROOT / "benchmarks" / "oracle.py"


def compared(old, new):
    """Return the run of the comparison."""
    return subprocess.run([sys.executable, ORACLE, "compare", old, new], capture_output=True, text=True, check=False)


def stored(folder, p, text, title="rows"):
    """Write a small store."""
    (folder / "case").mkdir(parents=True)
    (folder / "case" / "model.json").write_text(json.dumps({"p": p, "created": str(folder), "n": 3}))
    (folder / "case" / "01.txt").write_text(f"{text}, in {len(folder.name)}.5 s\n")
    pd.DataFrame({title: [1, 2], "p": [p, 0.5]}).to_parquet(folder / "case" / "scores.parquet")
    return folder


@pytest.mark.parametrize(
    ("p", "text", "title", "where"),
    [
        (0.25 + 1e-12, "25 rows scored", "rows", None),
        (0.25 + 4e-9, "25 rows scored", "rows", "largest deviation of a number 4e-09"),
        (0.25, "26 rows scored", "rows", "case/01.txt: line 1: '25 rows"),
        (0.25, "25 rows judged", "rows", "case/01.txt: line 1: '25 rows scored"),
        (0.25, "25 rows scored", "items", "case/scores.parquet: schema"),
    ],
)
def test_a_difference_is_found_where_it_is(tmp_path, p, text, title, where):
    """Numbers to 1e-9, text to the letter; dates and seconds are passed over."""
    run = compared(stored(tmp_path / "a", 0.25, "25 rows scored"), stored(tmp_path / "other", p, text, title))
    assert run.returncode == (where is not None), run.stdout + run.stderr
    assert (where or "cases that differ: none") in run.stdout


def test_a_file_that_one_lacks_differs_and_nothing_is_not_equal(tmp_path):
    """A case that was not run is no equal one, and two empty folders are status 2."""
    old, new = (stored(tmp_path / name, 0.25, "25 rows") for name in ("a", "b"))
    (new / "case" / "01.txt").unlink()
    run = compared(old, new)
    assert run.returncode == 1
    assert f"case/01.txt: only in {old}" in run.stdout
    (tmp_path / "none").mkdir()
    assert compared(tmp_path / "none", tmp_path / "none").returncode == 2


@pytest.fixture
def house_mutants(monkeypatch):
    """Return the script as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location("house_mutants", ROOT / "benchmarks" / "house_mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_mutant_is_found_after_its_code_has_moved(house_mutants):
    """By all of its text, by its own lines where they are there once, in another file too; else it is gone."""
    entry = {"file": "deep/a.py", "above": ["def f(x):"], "old": ["    return x + 1"], "new": ["    return x - 1"]}
    entry["below"] = []
    twice = "def g(x):\n    return x + 1\n\n\ndef f(x):\n    return x + 1\n"
    assert house_mutants.placed(entry, {"deep/a.py": twice}) == ("deep/a.py", twice[:-4] + "- 1\n")
    moved = "def h(x):\n    return x + 1\n"
    assert house_mutants.placed(entry, {"deep/a.py": "", "deep/b.py": moved}) == ("deep/b.py", moved[:-4] + "- 1\n")
    assert house_mutants.placed(entry, {"deep/a.py": "", "deep/b.py": moved, "deep/c.py": moved}) is None
    assert house_mutants.placed(entry, {"deep/a.py": "def f(x):\n    return 1 + x\n"}) is None
