"""The page of the benchmarks says what the JSON of each machine says."""

import json
import re
import sys
from pathlib import Path

import pytest

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
RESULTS = sorted((BENCHMARKS / "results").glob("*.json"))


@pytest.fixture
def bench_page(monkeypatch):
    """Return the module that renders."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_page

    yield bench_page
    sys.modules.pop("bench_page")


def test_the_page_is_rendered_from_the_json(bench_page):
    """`python benchmarks/bench.py --render` would change nothing."""
    assert RESULTS
    assert (BENCHMARKS / "results.md").read_text(encoding="utf-8") == bench_page.page(BENCHMARKS / "results")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_run_names_its_commit_and_no_machine(path):
    """Cores, memory and Python of the run are there; a path or another fact of the machine is not."""
    text = path.read_text(encoding="utf-8")
    result = json.loads(text)
    assert re.fullmatch(r"[0-9a-f]{12}", result["commit"])
    assert set(result["machine"]) == {"processor", "cores", "memory_gib", "python", "system"}
    assert not re.search(r"/(home|work|tmp|root|usr)/", text)
