"""The pages of results and of benchmarks say what the JSON of their runs says."""

import json
import re
import sys
from pathlib import Path

import pytest

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
RUNS = sorted((BENCHMARKS / "measured").glob("*.json"))
MACHINES = sorted((BENCHMARKS / "results").glob("*.json"))


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


def test_the_page_of_benchmarks_is_rendered_from_the_json(measured):
    """`python benchmarks/bench.py --render` would change nothing."""
    import bench_page

    assert MACHINES
    assert (BENCHMARKS / "results.md").read_text(encoding="utf-8") == bench_page.page(BENCHMARKS / "results")


def test_every_run_has_its_place(measured, measured_page):
    """Each mark is closed and known, stands once, and each file is of a command of today."""
    page = "".join(path.read_text(encoding="utf-8") for path in measured.PAGES)
    marks = [match[2] for match in measured_page.MARK.finditer(page)]
    assert sorted(marks) == sorted([measured_page.SUMMARY, *measured_page.SECTIONS])
    assert page.count("<!-- results:") == page.count("<!-- /results -->") == len(marks)
    assert {run for run, _ in measured_page.SECTIONS.values()} == set(measured.RUNS)
    for name, run in measured.read(BENCHMARKS / "measured").items():
        assert run["commands"] == [measured.as_typed(command) for command in measured.RUNS[name]]


@pytest.mark.parametrize("path", [*RUNS, *MACHINES], ids=lambda path: path.stem)
def test_a_run_names_its_commit_and_no_machine(path):
    """Commit, versions and seconds are there, or what the machine has; a path or another fact of it is not."""
    text = path.read_text(encoding="utf-8")
    result = json.loads(text)
    assert re.fullmatch(r"[0-9a-f]{12}", result["commit"])
    if path in MACHINES:
        assert set(result["machine"]) == {"processor", "cores", "memory_gib", "python", "system"}
    else:
        assert result["versions"]["numpy"]
        assert result["processor_seconds"] > 0
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
