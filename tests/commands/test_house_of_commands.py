"""Commands are thin: one shape, no array libraries, no arithmetic, at most 120 lines; studies run both ways."""

import argparse
import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import deep
from deep import console
from deep._util.entry_points import COMMAND_GROUP, SUBCOMMAND_GROUP, find_entry_points
from deep.cli import ALIASES, COMMANDS, GROUPS, RENAMED, main
from deep.experiments.loo import __all__ as loo_names
from deep.features import SELECTORS
from deep.model import RECIPE_NAMES, RECIPES, SELECTOR_NAMES
from tests.deep_commands import COMMAND_NAMES

ROOT = Path(deep.__file__).parent
LABELING = [ROOT / "integrations" / "labeling" / f"_{name}.py" for name in ("agreement", "command", "list")]
FILES = [*sorted(path for path in (ROOT / "commands").glob("*.py") if path.name != "__init__.py"), *LABELING]
GUESTS = {
    "deep.experiments.printed._import",
    "deep.integrations.doctor",
    "deep.integrations.engines._moments",
    "deep.integrations.foreign._tools",
    "deep.integrations.forget",
    "deep.integrations.labeling",
    "deep.integrations.pack",
    "deep.integrations.pairs",
    "deep.integrations.pairs._prepare",
    "deep.integrations.serve",
    "deep.integrations.skill",
}
"""Commands and parts of commands that are neither of the core nor a study's own command."""

EXPORTS = {"add_arguments", "run"}
ARRAYS = {"numpy", "pandas", "pyarrow", "scipy", "sklearn"}
HEAVY = ("catboost", "joblib", "lightgbm", "matplotlib", "pandas", "pyarrow", "rich", "scipy", "sklearn", "torch")
LIGHT = sorted({*COMMAND_NAMES} - {"cognibench", "probe"})
SET_OPERATIONS = (ast.BitOr, ast.BitAnd)


def tree(path):
    """Return the parsed source of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(module):
    """Return the packages that a module imports, at its top or inside functions."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def is_length(node):
    """Return whether an expression is a whole number or the length of something."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("len", "max", "min")


def calculations(module):
    """Return the arithmetic in a module, that of lengths apart; ``|`` and ``&`` join dicts and sets."""
    for node in ast.walk(module):
        if isinstance(node, ast.BinOp | ast.AugAssign) and not isinstance(node.op, SET_OPERATIONS):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.value]
            lists = (ast.List, ast.ListComp, ast.JoinedStr)
            if not all(map(is_length, sides)) and not any(isinstance(side, lists) for side in sides):
                yield ast.unparse(node)


def is_command(door):
    """Return whether a package is a command, in its door or in a `_command.py` behind it."""
    names = {node.id for node in ast.walk(tree(door)) if isinstance(node, ast.Name)}
    names |= {node.name for node in tree(door).body if isinstance(node, ast.FunctionDef)}
    return "add_arguments" in names or door.with_name("_command.py").exists()


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.stem}-{path.stem}")
def test_a_command_is_thin(path):
    """Options in, one call, words out."""
    module = tree(path)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 120
    assert not ARRAYS & set(imported(module))
    assert list(calculations(module)) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.stem}-{path.stem}")
def test_a_command_has_one_shape(path):
    """A docstring, `add_arguments` and `run`, and no other public function or class."""
    module = tree(path)
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {node.targets[0].id for node in module.body if isinstance(node, ast.Assign)}
    assert ast.get_docstring(module)
    assert functions | assigned >= EXPORTS
    assert {name for name in functions if not name.startswith("_")} <= EXPORTS


@pytest.mark.parametrize("name", COMMAND_NAMES)
def test_every_command_fills_a_parser(name):
    """With options that are documented, under a description, above examples."""
    entry = find_entry_points(COMMAND_GROUP).usable.get(name)
    command = importlib.import_module(COMMANDS[name][0]) if entry is None else entry.load()
    parser = console.CommandParser(prog=name)
    command.add_arguments(parser)
    assert command.__doc__
    assert "\n\nFor instance:\n\n  " in command.__doc__
    assert all(action.help for action in parser._actions if not isinstance(action, argparse._SubParsersAction))


def test_no_command_is_left_out():
    """The tables name every module of `deep.commands`, its sub-commands `_NAME` apart, and every command of a study."""
    entries = [*find_entry_points(COMMAND_GROUP).usable.values(), *find_entry_points(SUBCOMMAND_GROUP).usable.values()]
    modules = {module for module, _ in COMMANDS.values()} | {each.value.removesuffix("._command") for each in entries}
    doors = (ROOT / "experiments").glob("*/__init__.py")
    studies = {f"deep.experiments.{path.parent.name}" for path in doors if is_command(path)}
    core = {f"deep.commands.{path.stem}" for path in FILES if not path.stem.startswith("_")}
    assert modules == core | studies | GUESTS
    assert {path.partition(".")[0] for path in find_entry_points(SUBCOMMAND_GROUP).usable} <= {*COMMAND_NAMES}


def test_the_commands_are_few_and_in_groups():
    """At most 21 in five groups, sorted in each; none has a name of yesterday."""
    assert len(GROUPS) == 5
    assert all(list(group) == sorted(group) for group in GROUPS.values())
    assert len(COMMANDS) == sum(map(len, GROUPS.values()))
    assert len(COMMAND_NAMES) <= 21
    assert not {*RENAMED} & {*COMMAND_NAMES}


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_name_of_yesterday_says_todays(name, capsys):
    """In one line, status 2; what it says is there."""
    assert main([name, "--help"]) == 2
    today = f"deep {RENAMED[name]}"
    assert capsys.readouterr().err == (
        f"error: `COMMAND` must be a current name. Got {name!r}. Say `{today}` instead.\n"
    )
    with pytest.raises(SystemExit, match="0"):
        main([*RENAMED[name].split(), "--help"])
    message = capsys.readouterr().out
    assert f"usage: {today.partition(' --')[0]} " in message
    assert f"  {today} " in message.partition("examples:")[2]


@pytest.mark.parametrize("name", sorted(ALIASES))
def test_a_second_name_does_the_same(name, tmp_path, capsys):
    """The same votes, without a warning."""
    claims = str(ROOT.parent / "examples" / "claims.csv")
    for called in (name, ALIASES[name]):
        assert main([called, claims, "--lexical", "numbers", "--out", str(tmp_path / f"{called}.parquet")]) == 0
        assert "warning" not in capsys.readouterr().err
    one, two = (pd.read_parquet(tmp_path / f"{called}.parquet") for called in (name, ALIASES[name]))
    pd.testing.assert_frame_equal(one, two)


@pytest.mark.parametrize("path", sorted(find_entry_points(SUBCOMMAND_GROUP).usable))
def test_a_part_of_a_guest_stands_with_its_command(path, capsys):
    """In its help, and with a help of its own."""
    command, name = path.split(".")
    with pytest.raises(SystemExit, match="0"):
        main([command, name, "--help"])
    assert f"usage: deep {command} {name} " in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    assert name in capsys.readouterr().out


@pytest.fixture(scope="module")
def loaded_by_help():
    """Return, by command, the heavy libraries that a fresh Python has loaded once it has printed that help.

    One process prints the help of all; what one has loaded stands at those after it too.
    """
    code = (
        "import json, sys\nfrom deep.cli import main\nfound = {}\n"
        f"for name in {LIGHT!r}:\n"
        "    try: main([name, '--help'])\n"
        f"    except SystemExit: found[name] = [m for m in {HEAVY!r} if m in sys.modules]\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", LIGHT)
def test_help_of_a_command_loads_nothing_heavy(name, loaded_by_help):
    """Libraries are loaded by `run`."""
    assert loaded_by_help[name] == []


def test_the_names_that_options_accept_are_those_of_the_registries():
    """They are written down once more, so that help need not load what they name."""
    assert tuple(RECIPES) == RECIPE_NAMES
    assert ("auto", *SELECTORS) == SELECTOR_NAMES
    assert set(loo_names) >= EXPORTS
