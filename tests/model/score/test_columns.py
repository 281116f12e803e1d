"""The one table of what deep says of an item: every place that shows scores takes its columns from there."""

import ast
import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deep
from deep.model import SCORE_COLUMNS, ItemColumn, exported_columns, records_of

ROOT = Path(__file__).resolve().parents[3]

EXPORTED = ["CSV", "Parquet", "JSON lines", "deep loo", "frame", "batches", "HTTP", "HTTP schema", "HTTP example"]
PLACES = [
    *EXPORTED,
    "Inspect",
    "SQL",
    "table of patterns",
    "columns that the page saves",
    "scores of a file on the page",
    "asked one by one",
    "--help-all",
    "docs/columns.md",
    "docs/sequential.md",
]

NAMING = {
    "evaluate/_verdict.py": "counts decisions, and needs these columns of a table",
    "integrations/committee.py": "has names of its own in records of other tools",
    "integrations/sequential/__init__.py": "says how some columns differ where not all judges were asked",
    "report/_sources.py": "reads the scores of a run, and needs these columns",
}
"""Files that name several columns and hold no list of them, and why."""


def test_a_new_column_is_everywhere_in_one_order(tmp_path):
    """One entry, and no other edit, in a process of its own; the order is that of the table."""
    words = [sys.executable, "-m", "tests.model.score.every_place", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown, known = json.loads(done.stdout), [*SCORE_COLUMNS, "margin"]
    assert {place for place, columns in shown.items() if "margin" in columns} == set(PLACES) == shown.keys()
    orders = {place: [name for name in shown[place] if name in known] for place in EXPORTED}
    assert orders == dict.fromkeys(EXPORTED, known)


def test_no_other_list_is_kept_by_hand():
    """No literal in the code names four of the columns, and no script of a page one that is not shown by it."""
    result = set()
    for path in sorted((ROOT / "deep").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
                texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant)}
                if len(texts & SCORE_COLUMNS.keys()) > 3:
                    result.add(path.relative_to(ROOT / "deep").as_posix())
    assert result == NAMING.keys()
    scripts = [*(ROOT / "deep").rglob("*.js"), *(ROOT / "deep").rglob("contract.json")]
    assert len(scripts) > 2
    assert [path for path in scripts if '"threshold"' in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("page", ["columns.md", "sequential.md"])
def test_pages_have_the_columns_of_the_table(page, monkeypatch):
    """`python docs/_site/columns.py` writes them."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_site"))
    columns = importlib.import_module("columns")
    assert columns.filled(page) == (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_names_are_those_that_files_have_had():
    """Who reads files of scores relies on them."""
    of_p = ["p_consistent", "p_low", "p_high", "decision", "sure", "threshold"]
    assert list(SCORE_COLUMNS) == [*of_p, "p_uniform", "p_uncalibrated", "n_votes"]
    assert list(exported_columns()) == [*of_p, "n_votes"]


def test_a_column_is_of_a_release():
    """Of this version or an earlier one: those that have a section in CHANGELOG.md, this one the first."""
    releases = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert releases[0] == deep.__version__
    assert {column.since for column in SCORE_COLUMNS.values()} <= set(releases)


@pytest.mark.parametrize(
    ("kind", "nullable", "cells", "values"),
    [
        ("double", True, np.array([0.5, np.nan]), [0.5, None]),
        ("int8", True, np.array([1, -1], dtype=np.int8), [1, None]),
        ("int64", False, np.array([0, -1]), [0, -1]),
    ],
)
def test_a_cell_without_a_value_is_null(kind, nullable, cells, values):
    """In Arrow and in JSON, where the column may have such cells."""
    column = ItemColumn("it", kind, "a column", of=lambda _: cells, nullable=nullable)
    assert column.array(cells).to_pylist() == values
    assert records_of({"it": column}, None) == [{"it": value} for value in values]
