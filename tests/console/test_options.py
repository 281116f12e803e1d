"""Options: declared once, in help of a screen, in the parser, in the file of a run, in Python and on the page."""

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path

import pytest

import deep
from deep import console
from deep._util.options import option, options_of
from deep.asking import AskOptions, Sampling
from deep.cli import command_parser
from deep.model import ChainOptions
from deep.prompt_pool import PromptJudge
from tests.deep_commands import COMMAND_NAMES

ROOT = Path(deep.__file__).parent
LINES = 60
"""Of a screen of 80 columns."""


@pytest.fixture
def narrow(monkeypatch):
    """Have help written for 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")


def rooms(name):
    """Return the parsers of a command: its own, and those of its sub-commands."""
    parser = command_parser(name)
    return [parser, *parser._rooms.values()]


def height(text):
    """Return the lines that a text takes on a screen of 80 columns."""
    return sum(max(1, -(-len(line) // 80)) for line in text.splitlines())


def test_help_of_votes_fits_a_screen(narrow):
    """With its groups and examples, its long lines wrapped."""
    text = command_parser("ask")._rooms["ask"].format_help()
    assert height(text) <= LINES
    for part in ("judges that ask LLMs", "judges that need no key:", "asking LLMs:", "examples:", "--help-all"):
        assert part in text
    assert "--max-attempts" not in text


@pytest.mark.parametrize("name", sorted({*COMMAND_NAMES} - {"cognibench"}))
def test_help_of_every_command_fits_a_screen(name, narrow):
    """All but a study, which has many options of its own."""
    assert {parser.prog: n for parser in rooms(name) if (n := len(parser.format_help().splitlines())) > LINES} == {}


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_help_all_shows_every_option(name):
    """Each that the parser takes, but for one of yesterday that is refused; without it, --help-all is named."""
    for parser, again in zip(rooms(name), rooms(name), strict=True):
        usual = parser.format_help()
        rare = [action for action in parser._actions if getattr(action, "rare", False)]
        assert ("--help-all" in usual) == bool(rare)
        again.everything = True
        text = again.format_help()
        shown = [action for action in again._actions if action.help != argparse.SUPPRESS]
        assert all(flag in text for action in shown for flag in action.option_strings)
        assert all(any(flag in text for flag in action.option_strings) for action in rare)


def test_help_all_is_printed_and_ends(capsys):
    """Of the standard sub-command too, which is not named; with what stands behind the options."""
    with pytest.raises(SystemExit, match="0"):
        command_parser("score").parse(["--help-all"])
    text, usual = capsys.readouterr().out, "".join(parser.format_help() for parser in rooms("score"))
    assert all(flag in text and flag not in usual for flag in ("--max-attempts N", "--to {"))
    assert "\ncolumns of --out:\n  dataset " in text


@dataclass
class Lamp:
    """A topic.

    Parameters
    ----------
    colour : str, default='red'
        A name or
        a code.
    watts : float, optional
        LEDs take less: 100 % of it.
    on : bool, default=False
        Whether it burns.
    rooms : tuple of str
        Where it hangs.
    """

    colour: str = option("red", choices=lambda: ["blue", "red"])
    watts: float | None = option(None, "W", rare=True)
    on: bool = option(False)
    rooms: tuple[str, ...] = option((), "ROOM")
    made_by: str = "hand"


def lamp(*words, **changes):
    """Return what a parser of the lamp's options reads, and its help."""
    parser = console.CommandParser(prog="lamp")
    console.add_options(parser, Lamp, **changes)
    return vars(parser.parse(words)), parser.format_help()


def test_type_default_and_help_follow_from_the_field():
    """A float, a switch, several words; a description over lines; a capital kept; a percent sign."""
    values, text = lamp("--watts", "3", "--on", "--rooms", "hall,bath", "--rooms", "attic")
    assert values == {"colour": "red", "watts": 3.0, "on": True, "rooms": ["hall", "bath", "attic"]}
    assert "a name or a code (default: red)" in text
    assert "where it hangs" in text
    assert [one.purpose for one in options_of(Lamp)][1] == "LEDs take less: 100 % of it"
    assert "--watts" not in text
    with pytest.raises(SystemExit, match="2"):
        lamp("--colour", "green")
    assert lamp()[0] == {"colour": "red", "watts": None, "on": False, "rooms": []}


def test_a_command_may_have_it_otherwise():
    """Another default or help, not rare there, or by place."""
    by_place = {"flags": ["rooms"], "nargs": "*"}
    values, text = lamp("hall,bath", watts={"rare": False, "help": "of it"}, colour={"default": "blue"}, rooms=by_place)
    assert (values["colour"], values["rooms"]) == ("blue", ["hall,bath"])
    assert "--watts W" in text


def test_python_has_the_options_by_the_same_names_and_defaults():
    """`deep.ask`, the judge of a prompt and the dataclasses."""
    shared = {each.name: each.default for each in fields(Sampling)}
    assert {each.name: each.default for each in fields(PromptJudge) if each.name != "prompt"} == shared
    ask = {name: each.default for name, each in signature(deep.ask).parameters.items() if name in shared}
    assert ask == shared
    assert {"rpm", "budget", "ledger", "retry_failed"} <= {one.name for one in options_of(AskOptions)}
    chain = {each.name: each.default for each in fields(ChainOptions)}
    fit = {name: each.default for name, each in signature(deep.fit).parameters.items() if name in chain}
    assert fit == chain


NEW = {
    "asking/_options.py": ("    budget: float | None = option(", "    budget : float, optional\n"),
    "experiments/loo/_command.py": ("    all_chains: bool = option(", "    all_chains : bool, default=False\n"),
    "experiments/paper/__init__.py": ("    no_netcal: bool = option(", "    no_netcal : bool, default=False\n"),
}
"""By file a line of code and one of a docstring: before them `patience` is declared, in `AskOptions` and others."""

FIELD, MEANING = '    patience: int = option(7, "N")\n', "    patience : int, default=7\n        Cups of tea.\n"

SHOW = """
import sys
from pathlib import Path
sys.path[:0] = ["docs/_site"]
from commands import page, page_of_options
from deep import console
from deep.asking import AskOptions
from deep.cli import command_parser
from deep.experiments.loo._command import _read_loo_options as loo_settings

assert "| `--patience` | `patience` | int | `7` | cups of tea |" in page_of_options()
assert "--patience N" in page("ask", "ask")
assert AskOptions(ledger="x", patience=3).patience == 3 and AskOptions(ledger="x").patience == 7
words = ["claims.csv", "--lexical", "all", "--patience", "3", "--out", "votes.csv"]
asked = command_parser("ask").parse_command(words)
assert console.ask_options(asked.args, asked.args.out).patience == 3
with console.run_file_written(asked):
    Path("votes.csv").write_text("a")
assert "patience = 3" in Path("votes.run.toml").read_text()
again = command_parser("ask").parse_command(["--config", "votes.run.toml"])
assert again.args.patience == 3
assert "patience" not in vars(command_parser("panel").parse_command([]).args)

from deep.experiments.loo import LooOptions
assert "--patience N" in page("loo", "hold out") and LooOptions().patience == 7
words = ["--test", "all", "--patience", "4", "--out", "run"]
asked = command_parser("loo").parse_command(words)
assert asked.args.patience == 4 and loo_settings(asked.args).patience == 4
with console.run_file_written(asked):
    Path("run").mkdir()
    Path("run/results.json").write_text("{}")
assert "patience = 4" in Path("run/run.toml").read_text()
assert command_parser("loo").parse_command(["--config", "run/run.toml", "--out", "again"]).args.patience == 4
assert "--patience N" in page("paper", "tables")
"""


def test_an_option_that_is_declared_in_one_place_is_everywhere(tmp_path):
    """Parser, help, file of a run and back, Python, and both pages of the reference."""
    shutil.copytree(ROOT, tmp_path / "deep", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT.parent / "docs" / "_site", tmp_path / "docs" / "_site")
    for name, places in NEW.items():
        path = tmp_path / "deep" / name
        source = path.read_text(encoding="utf-8")
        for line, more in zip(places, (FIELD, MEANING), strict=True):
            assert source.count(line) == 1
            source = source.replace(line, more + line)
        path.write_text(source, encoding="utf-8")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SHOW], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
