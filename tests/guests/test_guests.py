"""The core works without its guests: each folder of them deleted in turn, then all together."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deep
from tests.deep_commands import COMMAND_NAMES

PACKAGE = Path(deep.__file__).parent
ROOT = PACKAGE.parent
GUESTS = sorted(
    folder.relative_to(PACKAGE).as_posix()
    for room in ("experiments", "integrations")
    for folder in (PACKAGE / room).iterdir()
    if folder.is_dir() and folder.name not in ("loo", "__pycache__")
)

# Each command says its options, and what is listed is listed: all that reads the entry points, in one process.
LOOK = """
import sys
from deep.cli import main
assert main(["data", "list"]) == 0
assert main(["prompts", "list"]) == 0
for name in sys.argv[2].split():
    try:
        print(name, int(main([name, "--help"])))
    except SystemExit as stop:
        print(name, stop.code)
"""
# What a newcomer does first: twelve judges vote, a model is fitted, a text is scored.
FLOW = """
assert main(["ask", sys.argv[1], "--lexical", "all", "--out", "v.parquet"]) == 0
assert main(["fit", "v.parquet", "--exclude", "weather", "--jobs", "1", "--out", "m.json"]) == 0
assert main(["score", "m.json", "--source-text", "The river rose by 14 cm.", "--claim-text", "It rose by 41 cm."]) == 0
"""
# The main job, as `python -m deep.experiments.loo` in a checkout.
LOO = """
import runpy
words = ["--test", "aggrefact", "--sizes", "3", "--ensembler", "BernoulliNB", "--calibrator", "platt", "--brief"]
sys.argv[1:] = [*words, "--jobs", "1", "--n-boot", "100", "--out", "loo"]
runpy.run_module("deep.experiments.loo", run_name="__main__")
"""


def run_without(guests, folder, code):
    """Copy the package without some of its folders, with its entry points as installed, and run code in the copy."""
    # With what Python has compiled: to compile deep again takes longer than the flow.
    shutil.copytree(PACKAGE, folder / "deep", ignore=shutil.ignore_patterns("*.pyc.*"))
    for guest in guests:
        place = folder / "deep" / guest
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink()
    # The metadata names the guests as before: a removed folder leaves entry points that lead nowhere.
    names = "\n".join(f"[{group}]\n{rows}" for group, rows in _entry_points())
    metadata = folder / "deep_judges-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: deep-judges\nVersion: 1.0\n", encoding="utf-8")
    (metadata / "entry_points.txt").write_text(names, encoding="utf-8")
    words = [sys.executable, "-c", code, str(ROOT / "examples" / "claims.csv"), " ".join(COMMAND_NAMES)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), "HOME": str(folder), "MPLBACKEND": "Agg"}
    return subprocess.run(words, capture_output=True, text=True, cwd=folder, env=environment)


def _entry_points():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group, rows in project["entry-points"].items():
        yield group, "".join(f"{name} = {value}\n" for name, value in rows.items())


def statuses(done):
    """Return the exit status of each command's help."""
    lines = (line.split() for line in done.stdout.splitlines())
    return {words[0]: words[1] for words in lines if len(words) == 2 and words[0] in COMMAND_NAMES}


@pytest.mark.parametrize("guest", GUESTS)
def test_a_guest_is_missed_by_itself_alone(guest, tmp_path):
    """Its own command is one line that says what to install; the others are as ever.

    What a newcomer does first runs without all of them, below: nothing of the core names a guest.
    """
    done = run_without([guest], tmp_path, LOOK)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    result = statuses(done)
    assert set(result) == set(COMMAND_NAMES)
    lost = {name for name, status in result.items() if status != "0"}
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == len(lost)
    assert all(guest.rpartition("/")[2] in line and "pip install" in line for line in errors)


def test_the_core_alone_does_the_main_job(tmp_path):
    """Without any guest: the first flow, every help of the core, and a dataset held out."""
    done = run_without(GUESTS, tmp_path, LOOK + FLOW + LOO)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "BernoulliNB" in done.stdout
    assert json.loads((tmp_path / "loo" / "results.json").read_text(encoding="utf-8"))["test"] == "aggrefact-xsum"


FEW = ["loo", "--test", "all", "--few", "1", "--out", "v.loo"]
ASK = ["ask", str(ROOT / "examples" / "claims.csv"), "--prompt", "deep-numbers", "--llm", "tiny"]
ASK += ["--base-url", "http://127.0.0.1:9/v1", "--out", "v.parquet"]
OPTIONS = {
    "experiments/few_datasets.py": [FEW],
    "integrations/batch": [[*ASK, "--batch"], [*ASK, "--batch-out", "out"], [*ASK, "--batch-in", "."]],
    "integrations/postgresql.py": [[*ASK, "--ledger", "postgresql+psycopg://deep@127.0.0.1:1/votes"]],
}
"""Commands with an option of a guest that is no folder, or whose folder has no command, by guest."""


def test_an_option_of_a_removed_guest_is_one_line(tmp_path):
    """It says what to install, before anything is asked, held out (which takes long) or written."""
    asked = [(guest, words) for guest, commands in OPTIONS.items() for words in commands]
    code = f"from deep.cli import main\nassert [main(words) for words in {[words for _, words in asked]!r}] == [2] * 5"
    done = run_without(OPTIONS, tmp_path, code)
    assert done.returncode == 0, done.stderr
    for (guest, _), line in zip(asked, done.stderr.splitlines(), strict=True):
        assert ("few" if guest.startswith("experiments") else guest.removesuffix(".py").replace("/", ".")) in line
        assert "pip install" in line
    assert not list(tmp_path.glob("v.*"))


def test_a_checkout_that_is_not_installed_says_so(tmp_path):
    """Its core works; a command of a guest is one line that says what to run."""
    shutil.copytree(PACKAGE, tmp_path / "deep", ignore=shutil.ignore_patterns("__pycache__"))
    # No site packages of deep: `-S` would take the dependencies too, so the metadata alone are hidden.
    code = (
        "import importlib.metadata, sys\nfrom deep._util import entry_points\n"
        "entry_points._all_entry_points = lambda: importlib.metadata.EntryPoints()\n"
        "from deep.cli import main\nassert main(['data', 'list']) == 0\nsys.exit(main(['serve', 'model.json']))"
    )
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "pip install" in done.stderr
