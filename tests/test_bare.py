"""What deep does where only its mandatory dependencies are installed; .ci/bare asks the same of a real installation."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from tests.deep_commands import COMMAND_NAMES

ROOT = Path(__file__).resolve().parents[1]
MANDATORY = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
IMPORTED_AS = {"scikit-learn": "sklearn"}
"""By distribution, where the name to import is another than the distribution's."""

NAMES = {IMPORTED_AS.get(name, name.replace("-", "_")) for name in (re.split("[<>=]", one)[0] for one in MANDATORY)}
CLAIMS = ROOT / "examples" / "claims.csv"


@cache
def imported():
    """Return the libraries that deep imports, by name, with the files that do."""
    result = {}
    for path in (ROOT / "deep").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            for name in (name.split(".")[0] for name in names):
                if name != "deep" and name not in sys.stdlib_module_names:
                    result.setdefault(name, set()).add(path.relative_to(ROOT / "deep").parts[0])
    return result


def optional():
    """Return the libraries of extras."""
    return sorted((set(imported()) | {"netcal"}) - NAMES)


def beginning():
    """Return the start of a program in which no library of an extra is found."""
    return f"""
import contextlib, sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name.split(".")[0] in {optional()!r} else find(name, *rest)
from deep.cli import main
"""


def bare(*commands, cwd):
    """Run commands in one Python in which no library of an extra can be imported; stop at the first that fails."""
    words = [[str(word) for word in words] for words in commands]
    code = f"{beginning()}\nfor words in {words!r}:\n    if status := main(words):\n        sys.exit(status)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=cwd)


def test_the_mandatory_dependencies_are_few_and_imported():
    """At most fourteen, in order, each imported by deep's own code and by more than a guest."""
    assert len(MANDATORY) <= 14
    assert sorted(MANDATORY) == MANDATORY
    core = {name for name, rooms in imported().items() if rooms - {"experiments", "integrations"}}
    assert set(NAMES) - core == set()
    assert {"catboost", "lightgbm", "mrmr", "netcal", "snorkel", "torch", "xgboost"} <= set(optional())


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    """Return votes of two lexical checks, taken without a library of an extra."""
    path = tmp_path_factory.mktemp("bare") / "votes.parquet"
    done = bare(["votes", CLAIMS, "--lexical", "all", "--out", path], cwd=path.parent)
    assert done.returncode == 0, done.stderr
    return path


@pytest.mark.slow
def test_the_everyday_way_needs_no_extra(votes, tmp_path):
    """Fit, also a chain of which no ensembler is named, score, look, estimate, export; a note says what is left out."""
    mine = pd.read_parquet(votes).query("dataset == 'weather'")
    mine.assign(label=pd.array([pd.NA] * len(mine), dtype="Int8")).to_parquet(tmp_path / "mine.parquet")
    done = bare(
        ["fit", votes, "--exclude", "weather", "--jobs", "1", "--out", "model.json"],
        ["score", "model.json", "--source-text", "It rained on 3 May.", "--claim-text", "It rained."],
        ["report", "model.json", votes, "--out", "report.html"],
        ["panel", votes],
        ["label", "list", "model.json", "--votes", "mine.parquet", "--n", "5", "--out", "next.csv"],
        ["estimate", "model.json", "--votes", votes],
        ["fit", votes, "--recipe", "paper", "--sizes", "3", "--jobs", "1", "--out", "chain.json"],
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    remedy = "Run: pip install 'deep-judges[boosting]'."
    note = f"Left out because their libraries are not installed: CatBoost, LGBM, XGB. {remedy}"
    assert note in done.stdout
    assert note in (tmp_path / "chain.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_main_job_says_which_ensemblers_it_leaves_out(votes, tmp_path):
    """It shows the other fourteen."""
    quick = ["--sizes", "3", "--calibrator", "platt", "--n-boot", "100", "--jobs", "1", "--out", "run"]
    done = bare(["loo", "--test", "museum", "--votes", votes, *quick], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Left out because their libraries are not installed: CatBoost, LGBM, XGB." in done.stdout
    text = (tmp_path / "run" / "results.json").read_text(encoding="utf-8")
    assert '"LDA"' in text
    assert '"XGB"' not in text


NOT_INSTALLED = [
    (["--ensembler", "XGB,LDA"], "boosting"),
    (["--ensembler", "LGBM"], "boosting"),
    (["--ensembler", "CatBoost"], "boosting"),
    (["--ensembler", "LDA", "--selector", "mrmr-selection"], "boosting"),
    (["--ensembler", "snorkel-labelmodel"], "snorkel"),
    (["--ensembler", "LDA", "--recipe", "paper", "--calibrator", "netcal-platt"], "netcal"),
]
"""What is asked of `deep fit`, and the extra that it takes."""


def test_what_is_named_and_not_installed_is_one_line(votes, tmp_path):
    """It names the extra, and the status is 2."""
    asked = [["fit", str(votes), "--sizes", "3", "--jobs", "1", *words] for words, _ in NOT_INSTALLED]
    code = f"{beginning()}\nprint([int(main(words)) for words in {asked!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == f"{[2] * len(NOT_INSTALLED)}\n"
    for line, (_, extra) in zip(done.stderr.splitlines(), NOT_INSTALLED, strict=True):
        message = (
            rf"error: .* needs a library that is not installed \(.*\)\. Run: pip install 'deep-judges\[{extra}\]'\."
        )
        assert re.fullmatch(message, line)


def test_every_command_says_its_options(tmp_path):
    """Without any library of an extra, those of servers too."""
    loop = f"for name in {COMMAND_NAMES!r}:\n    with contextlib.suppress(SystemExit):\n        main([name, '--help'])"
    code = f"{beginning()}\n{loop}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.count("usage: deep ") == len(COMMAND_NAMES)


LABELING = """
from deep.integrations.labeling import open_label_log
from deep.exceptions import MissingDependencyError
try:
    open_label_log("labels.jsonl").__enter__()
except MissingDependencyError as error:
    print(error)
"""


def test_labeling_says_what_it_needs(votes, tmp_path):
    """One line that names the extra, before any file is begun: the page, and the log by itself."""
    done = bare(["label", votes, "--examples", CLAIMS, "--dataset", "sport", "--n", "2", "--port", "0"], cwd=tmp_path)
    log = subprocess.run([sys.executable, "-c", beginning() + LABELING], capture_output=True, text=True, cwd=tmp_path)
    line = r"(error: A server|Labeling) needs a library .*\. Run: pip install 'deep-judges\[serve\]'\.\n"
    assert done.returncode == 2
    assert re.fullmatch(line, done.stderr)
    assert re.fullmatch(line, log.stdout)
    assert list(tmp_path.iterdir()) == []
