"""The examples of docs/integrations, as they are written."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = ROOT / "docs" / "integrations"
LIBRARIES = {
    "deepeval": "deepeval",
    "inspect": "inspect_ai",
    "langfuse": "langfuse",
    "mlflow": "mlflow",
    "opentelemetry": "opentelemetry.sdk",
}
"""The library of each page; without it the page is not run."""

QUIET = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "MLFLOW_DISABLE_TELEMETRY": "true"}


def blocks(page):
    """Yield the language and the code of each block but those that install."""
    text = page.read_text(encoding="utf-8")
    for language, code in re.findall(r"```(bash|python)\n(.*?)```", text, re.DOTALL):
        if not code.startswith("pip install"):
            yield language, code


@pytest.fixture
def run_page(tmp_path, request):
    """Return a function that runs the blocks of a page in turn, as one shell, and returns what they print."""

    def run(name):
        if find_spec(LIBRARIES[name]) is None:
            pytest.skip(f"{LIBRARIES[name]} is not installed")
        shutil.copytree(ROOT / "examples", tmp_path / "examples")
        words = ["set -euo pipefail"]
        for number, (language, code) in enumerate(blocks(PAGES / f"{name}.md")):
            if language == "python":
                (tmp_path / f"block{number}.py").write_text(code, encoding="utf-8")
                code = f"python block{number}.py"
            words.append(code)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | QUIET | {"PATH": path, "PYTHONPATH": str(ROOT), "OUT": "out", "COLUMNS": "200"}
        done = subprocess.run(
            ["bash", "-c", "\n".join(words)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_every_page_has_a_library():
    """And every library a page."""
    assert {page.stem for page in PAGES.glob("*.md")} == {*LIBRARIES, "own-judges"}  # which has a test of its own


@pytest.mark.parametrize("name", sorted(LIBRARIES))
def test_a_page_names_the_version_that_runs(name):
    """The version that it was tried with is the one that is pinned."""
    pins = (ROOT / "constraints-integrations.txt").read_text(encoding="utf-8")
    (version,) = re.findall(rf"^{LIBRARIES[name].replace('_', '[_-]')}==(.*)$", pins, re.MULTILINE)
    assert re.search(rf"Tried with \w+ {re.escape(version)}\b", (PAGES / f"{name}.md").read_text(encoding="utf-8"))


def test_langfuse(run_page):
    """The verdict."""
    printed = run_page("langfuse")
    assert re.search(r"^P\(consistent\) = 0\.\d+, 90 % interval", printed, re.MULTILINE)
    assert "The source lacks numbers of the claim: 41." in printed


def test_opentelemetry(run_page):
    """The event as the SDK prints it."""
    printed = run_page("opentelemetry")
    assert '"gen_ai.evaluation.name": "consistency"' in printed
    assert "0af7651916cd43dd8448eb211c80319c" in printed


def test_mlflow(run_page):
    """The mean of P, and the first rows."""
    printed = run_page("mlflow")
    assert re.search(r"'consistency/mean': np\.float64\(0\.\d+\)", printed)
    assert "P(consistent) = 0." in printed
    result = re.search(
        r"\{'effective_size': ([\d.]+), 'agreement': ([\d.]+), 'calibrated_accuracy': ([\d.]+)\}", printed
    )
    assert 1 < float(result[1]) < 12


def test_deepeval(run_page):
    """Three test cases with their scores."""
    result = re.findall(r"^Consistency (0\.\d+) (True|False) P\(consistent\) = 0\.", run_page("deepeval"), re.MULTILINE)
    assert len(result) == 3


def test_inspect(run_page, tmp_path):
    """Both ways to score a log give the same mean of P, and its graders are a committee and a panel."""
    printed = run_page("inspect")
    from inspect_ai.log import read_eval_log

    logs = {name: read_eval_log(str(tmp_path / "out" / f"{name}.eval")) for name in ("by-model", "scored", "committee")}
    by_model, scored, committee = (log.results.scores[-1] for log in logs.values())
    assert (by_model.name, by_model.scored_samples) == ("consistency", 24)
    assert (scored.name, scored.scored_samples) == ("precomputed_scores", 24)
    assert by_model.metrics["mean"].value == pytest.approx(scored.metrics["accuracy"].value, abs=1e-12)
    assert set(committee.metrics) == {"effective_size", "agreement", "calibrated_accuracy"}
    assert "24 answers of includes, " in printed
    assert "written: out/graders.parquet" in printed
