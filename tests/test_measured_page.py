"""The tables of docs/results.md and docs/results-tables.md say what the JSON of their runs says."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
RUNS = sorted((BENCHMARKS / "measured").glob("*.json"))


@pytest.fixture
def measured(monkeypatch):
    """Return the module that runs."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import measured

    yield measured
    for name in ("measured", "measured_page", "bench", "bench_page"):
        sys.modules.pop(name, None)


@pytest.fixture
def measured_page(measured):
    """Return the module that renders."""
    return sys.modules["measured_page"]


def test_the_pages_are_filled_from_the_json(measured, measured_page):
    """`python benchmarks/measured.py` would change nothing."""
    for path in measured.PAGES:
        page = path.read_text(encoding="utf-8")
        assert measured_page.filled(page, measured.read(BENCHMARKS / "measured")) == page


def test_every_run_has_its_place(measured, measured_page):
    """Each mark is closed and known, stands once, and each file is of a command of today."""
    page = "".join(path.read_text(encoding="utf-8") for path in measured.PAGES)
    marks = [match[2] for match in measured_page.MARK.finditer(page)]
    assert sorted(marks) == sorted([measured_page.SUMMARY, *measured_page.SECTIONS])
    assert page.count("<!-- results:") == page.count("<!-- /results -->") == len(marks)
    assert {run for run, _ in measured_page.SECTIONS.values()} == set(measured.RUNS)
    for name, run in measured.read(BENCHMARKS / "measured").items():
        assert run["commands"] == [measured.as_typed(command) for command in measured.RUNS[name]]


@pytest.mark.parametrize("path", RUNS, ids=lambda path: path.stem)
def test_a_run_names_its_commit_and_no_machine(path):
    """Commit, versions and seconds are there; a path is not."""
    text = path.read_text(encoding="utf-8")
    found = json.loads(text)
    assert re.fullmatch(r"[0-9a-f]{12}", found["commit"])
    assert found["versions"]["numpy"]
    assert found["processor_seconds"] > 0
    assert not re.search(r"/(home|work|tmp|root|usr)/", text)


def test_the_summary_keeps_the_rows_whose_run_is_not_there(measured_page):
    """And waits where a panel has neither; a row is of the cells where each dataset is held out once."""
    figures = {"balanced_accuracy": 0.75, "ece": 0.1, "log_loss": 0.5}
    by = dict.fromkeys(("deep", "majority", "the paper's recipe"), figures)
    by["best judge"] = {**figures, "balanced_accuracy": 0.7, "deep_less": {"balanced_accuracy": [0.05, 0.01]}}
    cells = [{"training_datasets": n, "targets": 9, "rivals": by, "prior_covered": n == "all"} for n in (3, "all")]
    runs = {f"panel-{name}": {"found": {"cells": cells}} for name in measured_page.PANELS}
    page = "<!-- results:summary -->\nold\n<!-- /results -->\n"
    assert measured_page.filled(page, dict(list(runs.items())[1:])) == page
    rows = measured_page.filled(page, runs).splitlines()[4:-2]
    assert (
        len([row for row in rows if row.endswith("| 9 | 75.0 | 70.0 | +5.0 ± 1.0 | 75.0 | 75.0 | 10.0 | 100 |")]) == 6
    )
    (name, first), *rest = zip(measured_page.PANELS, rows, strict=True)
    page = page.replace("old", f"| {name}: kept |")
    assert measured_page.filled(page, dict(list(runs.items())[1:])).splitlines()[4:-2] == [
        f"| {name}: kept |",
        *(row for _, row in rest),
    ]
    assert first.startswith(f"| {name}: ")


def test_what_labels_bring_has_a_column_a_number(measured_page):
    """With nothing where a dataset has too few."""
    summary = {
        "methods": {"deep": {"ece": 0.09, "balanced_accuracy": 0.768}},
        "few_labels": {"5": 0.08, "100": None},
        "labeled": {"5": {"balanced_accuracy": 0.77}},
    }
    assert measured_page.few_labels({"summary": summary}) == [
        "| labels | 0 | 5 | 100 |",
        "| --- | --- | --- | --- |",
        "| ECE | 9.0 | 8.0 |  |",
        "| balanced accuracy | 76.8 | 77.0 |  |",
    ]


def test_a_table_without_its_run_stays(measured_page):
    """And one with it is replaced."""
    found = {
        "summary": {
            "equal": {name: {"balanced_accuracy": 0.5, "ece": 0.1, "log_loss": 0.6} for name in measured_page.WORLDS}
        }
    }
    about = {
        "commit": "c",
        "date": "d",
        "seconds": 2,
        "processor_seconds": 1,
        "machine": {"python": "3"},
        "versions": {},
    }
    run = {"commands": ["python benchmarks/transfer.py"], "found": found, **about}
    page = "<!-- results:transfer-simulated -->\nold\n<!-- /results -->\nwords\n"
    assert measured_page.filled(page, {}) == page
    filled = measured_page.filled(page, {"transfer-simulated": run})
    assert "old" not in filled
    assert filled.endswith("<!-- /results -->\nwords\n")
    assert "| equal | 50.0 / 10.0 / 0.600 |" in filled
    assert measured_page.filled(filled, {"transfer-simulated": run}) == filled


def test_the_headline_of_the_readme_ends_with_labels(measured_page):
    """Rivals first, then deep, then deep with labels of the new dataset."""
    rows = {"paper": 0.6, "best_judge": 0.7, "best_judge_context": 0.71, "deep": 0.72}
    methods = {
        name: {"balanced_accuracy": a, "ece": 0.1, "ece_floor": 0.02, "log_loss": 0.5} for name, a in rows.items()
    }
    few = {"20": 0.08, "50": 0.06, "100": 0.04}
    labeled = {n: {"balanced_accuracy": 0.73} for n in few}
    lines = measured_page.headline({"summary": {"methods": methods, "few_labels": few, "labeled": labeled}})
    assert lines[0] == "| mean over datasets | balanced accuracy | ECE (noise floor 2.0) | log loss |"
    assert lines[-2:] == [
        "| deep | 72.0 | 10.0 | 0.500 |",
        "| deep with 20 / 50 / 100 labels of the new dataset | 73.0 / 73.0 / 73.0 | 8.0 / 6.0 / 4.0 |  |",
    ]
