"""The skill for agents: its head is what agents read, and its commands run as they stand."""

import csv
import re
from pathlib import Path

import pytest

from deep.cli import main
from tests.deep_commands import COMMAND_NAMES

ROOT = Path(__file__).resolve().parents[2]
SKILL = (ROOT / "deep" / "integrations" / "SKILL.md").read_text(encoding="utf-8")


def lines():
    """Return the commands of the skill."""
    return [line for block in re.findall(r"```bash\n(.*?)```", SKILL, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with labeled claims, claims of one's own, and ten labels of these."""
    with (ROOT / "examples" / "claims.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    mine = [row for row in rows if row["dataset"] == "weather"]
    tables = {
        "labeled.csv": [row for row in rows if row["dataset"] != "weather"],
        "mine.csv": [{key: value for key, value in row.items() if key != "label"} for row in mine],
        "ten.csv": [
            {"dataset": row["dataset"], "item_id": row["example_id"], "label": row["label"]}
            for label in "01"
            for row in [row for row in mine if row["label"] == label][:5]
        ],
    }
    for name, table in tables.items():
        with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, table[0])
            writer.writeheader()
            writer.writerows(table)
    return tmp_path


def test_its_head_says_when_to_use_it():
    """A name of letters and hyphens, and a description that an agent has room for."""
    head = re.match(r"---\nname: ([a-z0-9-]+)\ndescription: (.+)\n---\n", SKILL)
    assert len(head[1]) <= 64
    assert len(head[2]) <= 1024
    assert "Use it" in head[2]


def test_it_has_five_commands_that_there_are():
    """One of each, but for the votes of two files."""
    names = [line.split()[1] for line in lines()]
    assert sorted(set(names)) == ["ask", "check", "fit", "report", "score"]
    assert len(names) == 6
    assert set(re.findall(r"`deep (\w+) ", SKILL)) <= set(COMMAND_NAMES)


def test_the_command_prints_it(capsys):
    """As it stands in the package, so that it can be redirected to where an agent looks."""
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == SKILL


def test_its_commands_run(folder, monkeypatch, capsys):
    """In their order, with what each promises."""
    monkeypatch.chdir(folder)
    printed = {}
    for line in lines():
        words = line.split()
        assert main(words[1:]) == 0, line + capsys.readouterr().err
        printed[words[1]] = capsys.readouterr().out
    assert "24 rows scored: scores.csv" in printed["score"]
    assert "10 labels" in printed["check"]
    assert (folder / "report.html").stat().st_size > 10_000
    with (folder / "scores.csv").open(encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    assert {"decision", "sure", "n_votes"} <= set(columns)
