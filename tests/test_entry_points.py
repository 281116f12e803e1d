"""Packages of others: judges and commands that come in by entry points, and those that cannot be used."""

import json
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

import deep
from deep._util import entry_points
from deep._util.entry_points import JUDGE_GROUP, find_entry_points, is_own_entry, load_entry_point
from deep.asking import TextScorer, find_judges, load_judge
from deep.cli import COMMANDS, main
from deep.exceptions import InputError, MissingDependencyError
from deep.integrations.serve import create_app, serving
from tests.guests.serve.serving_case import ask
from tests.scripted_llm import ScriptedLLM

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = ROOT / "examples" / "claims.csv"

PACKAGE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "toy-judges"
version = "1.0"

[project.entry-points."deep.judges"]
words = "toy_judges:WordsJudge"
asker = "toy_judges:AskingJudge"

[project.entry-points."deep.commands"]
shout = "toy_judges.shout"

[project.entry-points."deep.ensemblers"]
halves = "toy_judges.fits:Halves"

[project.entry-points."deep.calibrators"]
as-it-is = "toy_judges.fits:AsItIs"

[tool.setuptools]
packages = ["toy_judges"]
""",
    "toy_judges/__init__.py": """
import hashlib

from deep import Judgment
from deep.judges import LLMJudge, OfflineJudge, Question


class WordsJudge(OfflineJudge):
    name = "words"
    version = hashlib.sha256(b"words 1").hexdigest()

    def label(self, example):
        found = [word in example.source.split() for word in example.claim.split()]
        return Judgment(vote=int(2 * sum(found) >= len(found)))


class AskingJudge(LLMJudge):
    name = "asker"
    version = hashlib.sha256(b"asker 1").hexdigest()

    def program(self, example):
        said = f"{example.source} So: {example.claim}?"
        (reply,) = yield [Question(step="ask", messages=[{"role": "user", "content": said}])]
        return Judgment(vote=int("yes" in reply.text)) if reply else Judgment(vote=-1, reason="failed")
""",
    "toy_judges/fits.py": """
from dataclasses import dataclass

from deep.base import BaseCalibrator, BaseEnsembler


@dataclass(eq=False, repr=False)
class Halves(BaseEnsembler):
    def _fit(self, X, y, w):
        pass

    def _proba(self, X):
        return 0.25 + 0.5 * (X == 1).mean(axis=1)


class AsItIs(BaseCalibrator):
    def _fit(self, p, y, w):
        pass

    def _transform(self, p):
        return p
""",
    "toy_judges/shout.py": '''
"""Print a text in capitals.

For instance:

  deep shout rain
"""


def add_arguments(parser):
    parser.add_argument("text", help="the text")


def run(args):
    print(args.text.upper())
    return 0
''',
}
"""A package that nobody here wrote a line for."""


def write(folder, files):
    """Write files by their paths; return the folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip("\n"), encoding="utf-8")
    return folder


def placed(folder, name, entry_points):
    """Write the metadata of an installed package, as an installer does."""
    return write(
        folder,
        {
            f"{name.replace('-', '_')}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
            f"{name.replace('-', '_')}-1.0.dist-info/entry_points.txt": entry_points,
        },
    )


@pytest.fixture(autouse=True)
def _fresh():
    """Look for packages anew before and after each test."""
    entry_points._all_entry_points.cache_clear()
    yield
    entry_points._all_entry_points.cache_clear()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a folder with the package as an installer leaves it: its modules, and its metadata beside them."""
    site = write(tmp_path_factory.mktemp("site"), PACKAGE)
    entry_points = tomllib.loads((site / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    groups = (f"[{name}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for name, rows in entry_points.items())
    return placed(site, "toy-judges", "\n".join(groups))


@pytest.fixture
def installed(site, monkeypatch):
    """Have the package installed in this process."""
    monkeypatch.syspath_prepend(str(site))
    yield site
    for name in [name for name in sys.modules if name.partition(".")[0] == "toy_judges"]:
        del sys.modules[name]


def test_a_fresh_process_knows_the_package(site):
    """`deep --help` lists its command, and `deep shout` runs it."""
    for words, expected in (
        (["--help"], "other packages:\n  shout       Print a text in capitals."),
        (["shout", "a"], "A"),
    ):
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{site}:{ROOT}"}
        done = subprocess.run([sys.executable, "-m", "deep", *words], capture_output=True, text=True, env=environment)
        assert (done.returncode, done.stderr) == (0, "")
        assert expected in done.stdout


def helped(words, capsys):
    """Return the help that a command prints."""
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    return capsys.readouterr().out


def test_help_names_the_judges_and_the_command(installed, capsys):
    """`deep ask --help` has the judges; the command has a help as each other has."""
    assert "words" in helped(["votes"], capsys)
    assert "usage: deep shout [-h] [--help-all] text" in helped(["shout"], capsys)
    assert main(["nothing"]) == 2
    assert "shout" in capsys.readouterr().err


def test_a_judge_of_another_package_votes_and_its_model_scores_serves_and_reports(installed, tmp_path, capsys):
    """From texts to P by commands alone, a lexical check beside it; its table of votes goes where each other goes."""
    votes, model, scores = tmp_path / "votes.parquet", tmp_path / "model.json", tmp_path / "scores.csv"
    assert main(["ask", str(CLAIMS), "--judge", "words", "--lexical", "numbers", "--out", str(votes)]) == 0
    assert [name.partition("@")[0] for name in pd.read_parquet(votes).columns[-2:]] == ["words", "lexical-numbers"]
    assert main(["fit", str(votes), "--out", str(model)]) == 0
    assert main(["score", str(model), "--input", str(CLAIMS), "--out", str(scores)]) == 0
    by_votes = tmp_path / "by-votes.parquet"
    assert main(["score", str(model), "--votes", str(votes), "--out", str(by_votes)]) == 0
    texts, rows = pd.read_csv(scores), pd.read_parquet(by_votes)
    assert len(texts) == len(rows)
    assert texts["p_consistent"].between(0, 1).all()
    assert main(["report", str(model), str(votes), "--out", str(tmp_path / "report.html")]) == 0
    assert "words" in (tmp_path / "report.html").read_text(encoding="utf-8")
    frame = pd.read_parquet(votes)
    frame[frame["dataset"] == "weather"].drop(columns="label").to_parquet(tmp_path / "weather.parquet", index=False)
    listed = ["--votes", str(tmp_path / "weather.parquet"), "--n", "2", "--out", str(tmp_path / "list.csv")]
    assert main(["label", "list", str(model), *listed]) == 0
    pair = {"source": "Rain fell on Monday.", "claim": "Rain fell."}
    expected = TextScorer(deep.load(model)).score(pair["source"], pair["claim"]).columns["p_consistent"]
    with serving(create_app(deep.load(model))) as address:
        status, answer, _ = ask(address, body=pair)
    assert (status, answer["p_consistent"]) == (200, pytest.approx(expected))
    assert any(name.startswith("words@") for name in json.dumps(answer).split('"'))


def test_a_judge_of_another_package_asks_an_llm(installed, tmp_path, monkeypatch):
    """By the same ledger and limits as each other, and by name in Python."""
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    with ScriptedLLM(lambda asked: "yes") as server:
        words = ["--judge", "asker", "--llm", "tiny", "--base-url", server.url, "--out", str(tmp_path / "v.parquet")]
        assert main(["ask", str(CLAIMS), *words]) == 0
        assert server.count == len(pd.read_parquet(tmp_path / "v.parquet")) == len(pd.read_csv(CLAIMS))
    assert [judge.name for judge in find_judges(["asker", "words", "stepwise"])] == ["asker", "words", "stepwise"]


def test_an_ensembler_and_a_calibrator_of_another_package(tmp_path, site, capsys):
    """They are tried where they are named, stand in the model file, and a fresh process scores by them."""
    votes = tmp_path / "votes.parquet"
    assert main(["ask", str(CLAIMS), "--lexical", "numbers", "dates", "units", "--out", str(votes)]) == 0
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{site}:{ROOT}", "HOME": str(tmp_path)}
    chain = ["--sizes", "2", "--ensembler", "halves", "--calibrator", "as-it-is"]
    for words in (
        ["fit", str(votes), *chain, "--jobs", "1", "--out", str(tmp_path / "m.json")],
        ["score", str(tmp_path / "m.json"), "--votes", str(votes), "--out", str(tmp_path / "s.csv")],
    ):
        done = subprocess.run([sys.executable, "-m", "deep", *words], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
    assert pd.read_csv(tmp_path / "s.csv")["p_consistent"].between(0, 1).all()
    assert main(["score", str(tmp_path / "m.json"), "--votes", str(votes), "--out", str(tmp_path / "t.csv")]) == 2
    assert "ensembler" in capsys.readouterr().err  # without that package the model is refused in one line


BROKEN = """
[deep.judges]
gone = no_such_module:Judge
odd = json:JSONDecodeError
bare = collections:OrderedDict
renamed = deep.experiments.stepwise:StepwiseJudge
stepwise = json:JSONDecodeError
lexical = json:JSONDecodeError
lexical-numbers = json:JSONDecodeError
twin = json:loads

[deep.commands]
gone = no_such_module.command
leaves = leaving
odd = json
fit = json
Bad Name = json
"""


@pytest.fixture
def broken(tmp_path, monkeypatch):
    """Have two packages installed that are broken in many ways."""
    placed(tmp_path, "broken-toys", BROKEN)
    placed(tmp_path, "other-toys", "[deep.judges]\ntwin = json:loads\n")
    write(tmp_path, {"leaving.py": "import sys\nsys.exit('bye')\n"})
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "Got 'gone' of broken-toys 1.0: ModuleNotFoundError: No module named 'no_such_module'."),
        ("odd", "Got 'odd' of broken-toys 1.0: TypeError: JSONDecodeError"),
        ("bare", "Got 'bare' of broken-toys 1.0: OrderedDict, which lacks the methods of deep.judges.Judge"),
        ("twin", "Got 'twin' of broken-toys 1.0 and other-toys 1.0: two entry points have this name."),
        ("lexical", "Got 'lexical' of broken-toys 1.0: deep has this name already."),
    ],
)
def test_a_judge_that_cannot_be_used_is_one_line(name, message, tmp_path, capsys):
    """It names the package and the reason, and nothing is judged."""
    with pytest.raises(InputError, match=r"must hold usable entry points|must be one of") as error:
        load_judge(name)
    assert message in str(error.value)
    assert main(["ask", str(CLAIMS), "--judge", name, "--out", str(tmp_path / "v.parquet")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("error: ")
    assert printed.count("\n") == 1


@pytest.mark.usefixtures("broken")
def test_deeps_own_judge_stays_where_another_package_takes_its_name():
    """A clash changes no vote."""
    assert load_judge("stepwise").version == load_judge("renamed").version
    assert "stepwise" in find_entry_points(JUDGE_GROUP).refused


@pytest.mark.usefixtures("broken")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone", "Got 'gone' of broken-toys 1.0: ModuleNotFoundError"),
        ("leaves", "Got 'leaves' of broken-toys 1.0: SystemExit: bye."),
        ("odd", "Got 'odd' of broken-toys 1.0: a command has the functions add_arguments and run."),
        ("Bad Name", "a name is lower-case letters, digits and ._:-"),
    ],
)
def test_a_command_that_cannot_be_used_is_one_line(name, message, capsys):
    """And status 2."""
    assert main([name]) == 2
    printed = capsys.readouterr().err
    assert message in printed
    assert printed.count("\n") == 1


@pytest.mark.usefixtures("broken")
def test_broken_packages_break_no_other_command(capsys):
    """The help lists all of deep's commands, and a line on each that cannot be used or is refused."""
    assert main(["--help"]) == 0
    message = capsys.readouterr().out
    assert all(f"  {name} " in message for name in COMMANDS)
    for line in (
        "gone        cannot be used: `deep.commands` must hold usable entry points.",
        "'fit' of broken-toys 1.0: deep has this name already",
        "'stepwise' of broken-toys 1.0: deep has this name already",
        "'lexical-numbers' of broken-toys 1.0: deep has this name already",
        "'twin' of broken-toys 1.0 and other-toys 1.0: two entry points have this name",
    ):
        assert line in message
    assert main(["data", "list"]) == 0


def test_an_error_of_deeps_own_guest_is_no_one_elses(monkeypatch):
    """A fault of deep keeps its traceback."""
    (stepwise,) = [entry for entry in entry_points._installed_entries(JUDGE_GROUP) if entry.name == "stepwise"]
    lost = entry_points.EntryPoint("lost", "deep.experiments.stepwise:NoSuchJudge", JUDGE_GROUP)._for(stepwise.dist)
    monkeypatch.setattr(entry_points, "_installed_entries", lambda group: (lost,))
    with pytest.raises(AttributeError):
        load_judge("lost")


def test_every_entry_point_of_deep_loads():
    """A judge by each name, which leads back to it; all else is there, too."""
    for name, entry in find_entry_points(JUDGE_GROUP).usable.items():
        if is_own_entry(entry):
            judge = load_judge(name)
            assert load_judge(judge.name).version == judge.version
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    for group in (group for group in groups if group.startswith("deep.")):
        entries = find_entry_points(group).usable
        for name in groups[group]:
            with suppress(MissingDependencyError):  # of an extra that is not installed here
                assert load_entry_point(entries[name]) is not None
