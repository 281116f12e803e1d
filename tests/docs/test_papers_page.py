"""The page of the papers: what is rendered, what fails, and that it says what docs/papers.toml and the papers hold."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from deep.cli import main as deep

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("papers_page", ROOT / "benchmarks" / "papers.py")
page = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page)

TEXTS = {"DEEP": "deep.txt", "FECT": "fect.txt", "PROBE": "probe.txt", "CogniBench": "cognibench.txt"}
CAPTION = re.compile(r"^(Table|Figure) (\d+):", re.MULTILINE)

TINY = """
preface = "# A paper"
about_figures = "## Figures"

[runs.printing]
command = "json.tool {data}/figures.json"
needs = ["{data}/figures.json"]
from = "simulated votes"

[[papers]]
name = "A"
source = "2026"

[[papers.items]]
item = "Table 1"
says = "two numbers"
run = "printing"
verdict = "same"
why = "rows differ; and more"

[[papers.items.figures]]
what = "rows"
file = "stdout.json"
list = "rows"
count = "of"
digits = 0

[[papers.items.figures]]
what = "F1"
file = "stdout.json"
list = "rows"
where = { of = "run" }
column = "f1"
scale = 100
printed = 50.0
within = 2

[[papers.items]]
item = "Table 2"
says = "more"
verdict = "cannot be had"
why = "nobody knows"
"""


@pytest.fixture
def tiny(tmp_path):
    """Return a function that writes a figure, makes the page and returns the status."""
    (tmp_path / "papers.toml").write_text(TINY, encoding="utf-8")
    words = ["--items", tmp_path / "papers.toml", "--page", tmp_path / "papers.md", "--data", tmp_path]

    def make(f1=None):
        if f1 is not None:
            rows = {"rows": [{"of": "run", "f1": f1}, {"of": "print", "f1": 0.5}]}
            (tmp_path / "figures.json").write_text(json.dumps(rows), encoding="utf-8")
        return page.main([str(word) for word in words])

    return make


def lines_of(path):
    """Return the lines of a file."""
    return path.read_text(encoding="utf-8").splitlines()


def test_a_page_is_rendered_once_and_then_stands(tiny, tmp_path, capsys):
    """The second time nothing is new."""
    assert tiny(0.51) == 1  # every figure is new
    assert tiny(0.51) == 0
    assert "2 figures, 0 changes or faults" in capsys.readouterr().out
    written = lines_of(tmp_path / "papers.md")
    assert "| A | Table 1 | F1 | 50.0 | 51.0 | simulated votes | differs because rows differ |" in written
    assert "| A | Table 1 | rows | - | 2 | simulated votes | not printed |" in written
    assert (
        "| Table 1 | two numbers | `json.tool {data}/figures.json` | same: rows differ; and more. *Simulated votes.* |"
        in written
    )
    assert "| Table 2 | more | - | cannot be had: nobody knows |" in written


def test_it_fails_where_a_figure_has_changed_and_writes_it(tiny, tmp_path, capsys):
    """One line names the figure, what it was and what it is."""
    tiny(0.51)
    capsys.readouterr()
    assert tiny(0.505) == 1
    message = capsys.readouterr().out.splitlines()
    assert message[0] == "A, Table 1, F1: was 51.0 (printed 50.0), is 50.5 (printed 50.0)"
    assert len(message) == 2
    assert "| A | Table 1 | F1 | 50.0 | 50.5 | simulated votes | differs because rows differ |" in lines_of(
        tmp_path / "papers.md"
    )
    assert tiny() == 0


def test_a_figure_too_far_from_the_printed_one_fails_every_time(tiny, capsys):
    """That the page has it already is no excuse."""
    for _ in range(2):
        assert tiny(0.53) == 1
    assert "Table 1, F1: 53.0 is further than 2 from 50.0" in capsys.readouterr().out


def test_a_command_without_data_is_skipped_and_its_figures_stand(tiny, tmp_path, capsys):
    """So the page is the same on a machine without them."""
    tiny(0.51)
    before = lines_of(tmp_path / "papers.md")
    (tmp_path / "figures.json").unlink()
    assert tiny() == 0
    assert "printing: skipped" in capsys.readouterr().out
    assert lines_of(tmp_path / "papers.md") == before


def test_a_lacking_package_is_refused_before_any_command_runs(tiny, tmp_path):
    """Its rows would be missing from the page, and nobody would know after minutes of work."""
    items = tmp_path / "papers.toml"
    items.write_text(TINY.replace("[runs.printing]", '[runs.printing]\npackages = ["nowhere"]'), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"needs the package nowhere, which is not installed. Run `make papers`"):
        tiny(0.51)
    assert not (tmp_path / "papers.md").exists()


@pytest.mark.parametrize(("text", "found"), [("Votes: SIMULATED.", 0), ("Votes.", 1)])
def test_simulated_stands_in_every_table_that_is(text, found, tmp_path):
    """A table that keeps silent is at fault, and so is one that is not written."""
    (tmp_path / "table1.md").write_text(text, encoding="utf-8")
    item, run = {"item": "Table 1", "files": ["table1.md"]}, {"from": page.SIMULATED}
    assert len(list(page.faults(item, run, [], tmp_path))) == found
    item["files"] = ["table2.md"]
    assert "Table 1: no file table2.md" in list(page.faults(item, run, [], tmp_path))


def test_every_printed_cell_has_a_verdict(tmp_path):
    """The committed table has none without, and a run that has one is refused."""
    rows = page.csv_rows(ROOT / "docs" / page.CELLS, "")
    of_deep = [row for row in rows if row["paper"] == "DEEP"]
    assert len(of_deep) == 120 + 192 + 56 + 84 + 280 + 16
    assert {row["paper"] for row in rows} == set(TEXTS)
    assert len(rows) - len(of_deep) == len(list(page.printed_cells())) > 200
    assert all(re.match("met$|off by |same|(differs|not had) because ", row["verdict"]) for row in rows)
    for row in (row for row in of_deep if row["ours"]):  # met: off by no more than the printed figure was rounded
        decimals = 2 if row["table"] == "2" else 1
        met = abs(float(row["ours"]) - float(row["value"])) <= 10**-decimals / 2 + 1e-9
        assert (row["verdict"] == "met") is met, row
    (tmp_path / "figures.csv").write_text("table,origin,value,ours,verdict\n2,published,70.0,,\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="a printed figure has no verdict"):
        list(page.deep_cells(tmp_path / "figures.csv"))


def test_the_page_says_what_the_items_say():
    """Nobody has to run the commands to see that the page is old."""
    papers = page.read_papers(ROOT / "docs" / "papers.toml")
    written = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    rows, wrong = page.collect(papers, {}, page.committed_rows(written))
    assert not wrong
    assert all(row[page.KEY + 1] != "not run" for row in rows)
    assert page.render(papers, rows) == written


def commands():
    """Return every command of the page."""
    papers = page.read_papers(ROOT / "docs" / "papers.toml")
    result = {item.get("command") or papers.run_of(item).get("command", "") for _, item in papers.items()}
    return sorted(result - {""})


def test_every_command_has_its_options(capsys):
    """What the page tells a user to type is known to the command."""
    for command in commands():
        words = command.split()
        subcommands = [word for word in words[1:3] if re.fullmatch("[a-z][a-z-]*", word)]
        with pytest.raises(SystemExit):
            deep([*subcommands, "--help-all"])
        known = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
        assert {word for word in words if word.startswith("--")} <= known


def numbers(item):
    """Yield the tables and figures that an item names."""
    for kind, named in re.findall(r"(Table|Figure)s? ([\d, to and]+)", re.sub(r"(\d)[ab]", r"\1", item)):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", named):
            yield from ((kind, number) for number in range(int(first), int(last or first) + 1))


@pytest.mark.parametrize("paper", TEXTS)
def test_every_table_and_figure_of_the_papers_is_there(paper, data_home):
    """No caption of a paper is without an item."""
    text = data_home.parent / "papers" / TEXTS[paper]
    if not text.exists():
        pytest.skip(f"{text} is not there")
    printed = {(kind, int(number)) for kind, number in CAPTION.findall(text.read_text(encoding="utf-8"))}
    items = [item for name, item in page.read_papers(ROOT / "docs" / "papers.toml").items() if name == paper]
    named = {one for item in items for one in numbers(item["item"])}
    assert printed
    assert printed <= named
