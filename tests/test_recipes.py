"""The recipes of CONTRIBUTING, followed in a copy of the tree: what they name is all that it takes."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def recipe(title):
    """Return the steps of a recipe."""
    return re.search(rf"^\*\*{title}\*\*.*?(?=\n\n\*\*|\n\n## )", GUIDE, re.DOTALL | re.MULTILINE)[0]


@pytest.fixture
def tree(tmp_path):
    """Return a copy of the tree."""
    for name in ("deep", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
    for name in ("conftest.py", "pyproject.toml", "examples"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    return tmp_path


def add(tree, path, text):
    """Write a new file that a recipe names."""
    (tree / path).parent.mkdir(exist_ok=True)
    (tree / path).write_text(text, encoding="utf-8")


def change(tree, path, old, new):
    """Change a line of a file that a recipe names."""
    text = (tree / path).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tree / path).write_text(text.replace(old, new), encoding="utf-8")


def passes(tree, path, name):
    """Run the tests of a name in the copy, of which there are some."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider", path, "-k", name]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 0


def names(title, *paths):
    """Check that a recipe names these files."""
    steps = recipe(title)
    assert [path for path in paths if path not in steps] == []


@pytest.mark.slow
def test_a_lexical_check(tree):
    """Its module and its row."""
    names("A judge", "deep/features/lexical/_NAME.py", "deep/features/lexical/__init__.py", "test_judges.py")
    code = 'from deep.features.lexical._facts import Quotes\n\n\nclass Cited(Quotes):\n    name = "cited"\n'
    add(tree, "deep/features/lexical/_cited.py", code)
    registry = "deep/features/lexical/__init__.py"
    base = "from deep.features.lexical._base import WORD_LISTS, LexicalCheck\n"
    change(tree, registry, base, base + "from deep.features.lexical._cited import Cited\n")
    change(tree, registry, "        Dates,\n", "        Cited,\n        Dates,\n")
    passes(tree, "tests/contract/test_judges.py", "lexical-cited")


GUEST = '''"""A judge of two questions."""

import hashlib

from deep.judges import LLMJudge, Program, Question
from deep.prompt_pool import why_unusable
from deep.records import Example, Judgment


class TwiceJudge(LLMJudge):
    """Asks twice, and votes where both answers are one."""

    name = "twice"
    version = hashlib.sha256(b"twice 1").hexdigest()

    def most_calls(self, example: Example) -> int:
        """Return two calls."""
        return 2

    def program(self, example: Example) -> Program[Judgment]:
        """Judge one example."""
        said = [{"role": "user", "content": f"{example.source} So: {example.claim}? yes or no"}]
        replies = yield [Question(step="ask", messages=said, sample=sample) for sample in (0, 1)]
        reasons = [why_unusable(reply) for reply in replies]
        if any(reasons):
            return Judgment(vote=-1, reason=next(reason for reason in reasons if reason))
        answers = {str(reply.text).strip().lower() for reply in replies if reply}
        if answers in ({"yes"}, {"no"}):
            return Judgment(vote=int(answers == {"yes"}))
        return Judgment(vote=-1, reason="unparsable")
'''


@pytest.mark.slow
def test_a_kind_of_judge(tree):
    """A guest's folder, its entry point, its place in the contract of imports."""
    names("A kind of judge", "deep/experiments/", "pyproject.toml", "test_judges.py")
    add(tree, "deep/experiments/twice/__init__.py", GUEST)
    row = 'tiered = "deep.experiments.tiered:TieredJudge"\n'
    change(tree, "pyproject.toml", row, row + 'twice = "deep.experiments.twice:TwiceJudge"\n')
    change(tree, "pyproject.toml", '"tiered", "stepwise"]', '"tiered", "stepwise | twice"]')
    # An entry point is found once the package is installed anew; its metadata in the copy are as good.
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    metadata = "import sys; sys.argv = ['setup.py', '-q', 'egg_info']; from setuptools import setup; setup()"
    subprocess.run([sys.executable, "-c", metadata], cwd=tree, check=True)
    passes(tree, "tests/contract/test_judges.py", "twice")
    lint = "from importlinter.cli import lint_imports_command as run; run(['--no-cache'])"
    done = subprocess.run([sys.executable, "-c", lint], cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_an_ensembler(tree):
    """Its module, its name, its export."""
    names("An ensembler", "deep/ensembles/_NAME.py", "_registry.py", "__init__.pyi", "test_ensemblers.py")
    code = "from deep.ensembles._classifiers import BernoulliNB\n\n\nclass Bayes(BernoulliNB):\n    pass\n"
    add(tree, "deep/ensembles/_bayes.py", code)
    change(tree, "deep/ensembles/_registry.py", '    "BernoulliNB",\n', '    "Bayes",\n    "BernoulliNB",\n')
    first = "from ._classifiers import LDA as LDA\n"
    change(tree, "deep/ensembles/__init__.pyi", first, "from ._bayes import Bayes as Bayes\n" + first)
    passes(tree, "tests/contract/test_ensemblers.py", "Bayes or registry")


@pytest.mark.slow
def test_a_calibrator(tree):
    """Its module, its name, its export."""
    names("A calibrator", "deep/calibration/_NAME.py", "_registry.py", "__init__.pyi", "test_calibrators.py")
    code = "from deep.calibration._calibrators import Platt\n\n\nclass Sloped(Platt):\n    pass\n"
    add(tree, "deep/calibration/_sloped.py", code)
    row = '    "temperature": "Temperature",\n'
    change(tree, "deep/calibration/_registry.py", row, '    "sloped": "Sloped",\n' + row)
    first = "from ._reliability import CorpDisplay as CorpDisplay\n"
    change(tree, "deep/calibration/__init__.pyi", first, "from ._sloped import Sloped as Sloped\n" + first)
    passes(tree, "tests/contract/test_calibrators.py", "sloped or registry")


COMMAND = '''"""Greet a text.

For instance:

  deep greet rain
"""

import argparse
import sys

from deep.console import CommandParser
from deep.exceptions import ExitStatus


def add_arguments(parser: CommandParser) -> None:
    """Add the text."""
    parser.add_argument("text", help="the text")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    sys.stdout.write(args.text)
    return ExitStatus.DONE
'''


@pytest.mark.slow
def test_a_command(tree):
    """Its module and its row, in the place of another."""
    names("A command", "deep/commands/NAME.py", "deep/cli.py", "GROUPS", "RENAMED")
    add(tree, "deep/commands/greet.py", COMMAND)
    row = '        "report": ("deep.commands.report",'
    change(tree, "deep/cli.py", row, f'        "greet": ("deep.commands.greet", "greet a text"),\n{row}')
    passes(tree, "tests/commands/test_house_of_commands.py", "greet")
    passes(tree, "tests/test_cli.py", "greet or shows_the_groups")
