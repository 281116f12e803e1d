"""The page of the benchmarks says what the JSON of each machine says."""

import json
import re
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
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
    found = json.loads(text)
    assert re.fullmatch(r"[0-9a-f]{12}", found["commit"])
    assert set(found["machine"]) == {"processor", "cores", "memory_gib", "python", "system"}
    assert not re.search(r"/(home|work|tmp|root|usr)/", text)


def test_a_part_without_a_result_is_named(bench_page, tmp_path):
    """Its reason stands on the page, the other tables do, and the picture is drawn of what there is."""
    found = json.loads(RESULTS[0].read_text(encoding="utf-8"))
    found["cells"] = found["growth"] = None
    found["ledger"], found["commands"]["ledger"] = None, "ledger.py: no result, PostgreSQL is not installed"
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "m.json").write_text(json.dumps(found), encoding="utf-8")
    bench_page.render(tmp_path / "m")
    text = (tmp_path / "m.md").read_text(encoding="utf-8")
    assert "- Not measured: `ledger.py: no result, PostgreSQL is not installed`" in text
    assert (tmp_path / "m" / "m.svg").exists()
    assert "netcal" in text


def test_a_machine_that_was_not_idle_says_so(bench_page):
    """From a tenth of a core on."""
    found = json.loads(RESULTS[0].read_text(encoding="utf-8"))
    assert "**The machine was not idle**: other programs kept 0.5" in bench_page.about(
        {**found, "cores_busy_with_others": 0.5}
    )
    assert "idle otherwise" in bench_page.about({**found, "cores_busy_with_others": 0.05})
    assert "not known" in bench_page.about({**found, "cores_busy_with_others": None})


def test_calls_and_ledger_stand_beside_their_rivals(bench_page):
    """Inspect where it was measured, the sum of ledgers of their own, and the processor seconds of each part."""
    found = json.loads(RESULTS[0].read_text(encoding="utf-8"))
    rates = [{"bare_per_s": 100.0, "deep_per_s": 120.0, "inspect_per_s": 40.0}]
    found["calls"] = {"workers": 64, "rounds": rates, "median_ratio": 1.2, "inspect": None}
    assert "Inspect" not in "\n".join(bench_page.section(found, "m.svg"))
    found["calls"]["inspect"] = {"version": "0.3", "median_ratio": 3.0}
    found["ledger"]["runs"][0]["share_of_sum"] = 0.91
    found["processor_s"] = {"ledger": 77.0}
    text = "\n".join(bench_page.section(found, "m.svg"))
    assert "| 120/s | Inspect 0.3, its log kept: 40/s | 3.00 |" in text
    assert "0.91 of what they reach on a ledger each" in text
    assert f"- `python benchmarks/{found['commands']['ledger']}`: 77 processor seconds" in text
