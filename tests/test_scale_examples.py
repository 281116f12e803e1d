"""examples/scale: each engine, in local mode, gives what `deep score` gives; `make engines` installs them all."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

NEEDS = {"duckdb": "duckdb", "polars": "polars", "ray": "ray", "spark": "pyspark"}

MUST = "DEEP_ENGINES" in os.environ
"""Set by `make engines`, which skips nothing."""

SCRIPTS = sorted(path.name for path in (ROOT / "examples" / "scale").glob("with_*.py"))


def test_every_engine_is_here():
    """A script without a row here would not be run."""
    assert [f"with_{engine}.py" for engine in sorted(NEEDS)] == SCRIPTS


@pytest.mark.slow
@pytest.mark.parametrize("engine", sorted(NEEDS))
def test_an_engine_gives_the_scores_of_deep_score(engine, tmp_path):
    """For votes alone and with soft scores, counted and scored where the rows are."""
    if not MUST and find_spec(NEEDS[engine]) is None:
        pytest.skip(f"needs {NEEDS[engine]}: make engines")
    if not MUST and engine == "spark" and shutil.which("java") is None:
        pytest.skip("needs Java")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"OUT": str(tmp_path), "PYTHONPATH": path}
    words = [sys.executable, str(ROOT / "examples" / "scale" / f"with_{engine}.py")]
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False}
    done = subprocess.run(words, timeout=600, **run)
    assert done.returncode == 0, done.stderr[-2000:]
    message = re.findall(r": 558 rows scored; largest difference to deep score: (\S+)", done.stdout)
    assert len(message) == 2
    assert max(map(float, message)) <= 1e-12


@pytest.mark.slow
def test_ray_asks_by_files(tmp_path):
    """Its HTTP processor carries batch files to a server that refuses some requests, and all answers are entered."""
    if not MUST and find_spec("ray") is None:
        pytest.skip("needs ray: make engines")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENAI_")}
    environment |= {"OUT": str(tmp_path), "PYTHONPATH": path}
    words = [sys.executable, str(ROOT / "examples" / "scale" / "ask_with_ray.py")]
    run = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "check": False}
    done = subprocess.run(words, timeout=600, **run)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "360 requests in 1 files" in done.stdout
    assert "360 results entered of 360 in 1 files: 360 answers, 0 failures" in done.stdout
    assert (tmp_path / "ask-ray" / "votes.parquet").is_file()
