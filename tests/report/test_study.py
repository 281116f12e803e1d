"""The report of a study that is no hold-out: its tables and pictures, and nothing in them that runs."""

import ast
import errno
import json
import re
from pathlib import Path
from unittest.mock import Mock

import pandas as pd
import pytest

import deep
from deep.exceptions import InputError
from deep.report import REPORT_FILE_NAME, open_folder_with_report, report_line, write_report
from deep.report._sources import HOLD_OUT_KEYS

STUDIES = Path(deep.__file__).parent / "experiments"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script><rect width="9" height="9"/></svg>'
TEXT = """# Scores of <b>judges</b>

<script>alert(1)</script> and ![a](https://example.org/a.png), [b](https://example.org)

| judge | F1 |
| --- | --- |
| <img src=x onerror=alert(1)> | 0.5 |
"""


@pytest.fixture
def study(tmp_path):
    """Return the folder of a study whose texts and picture are hostile."""
    folder = tmp_path / "fect"
    with open_folder_with_report(folder) as scratch:
        (scratch / "results.json").write_text(json.dumps({"scores": [], "simulated": True}))
        (scratch / "report.md").write_text(TEXT)
        (scratch / "figure-1.svg").write_text(SVG)
        (scratch / "figure-1.csv").write_text("judge,f1\n<i>a</i>,0.5\n")
    return folder


def test_texts_and_pictures_are_shown_and_nothing_runs(study):
    """HTML is escaped, links and images are text, a picture is an image with its numbers."""
    page = (study / REPORT_FILE_NAME).read_text(encoding="utf-8")
    assert "<h3>Scores of &lt;b&gt;judges&lt;/b&gt;</h3>" in page
    assert "<td>&lt;img src=x onerror=alert(1)&gt;</td>" in page
    assert "&lt;i&gt;a&lt;/i&gt;" in page
    assert len(re.findall("<script", page)) == 2
    assert re.findall(r'<img src="([^"]{10})', page) == ["data:image"]
    assert not re.search(r'(?:src|href)="http', page)
    assert "These votes are SIMULATED" in page
    assert "<h1>Run: fect</h1>" in page


def test_captions_and_numbers_are_for_people(tmp_path):
    """The name of a file as words, few digits, an interval without brackets; heads of many columns stand upright."""
    with open_folder_with_report(tmp_path / "run") as scratch:
        (scratch / "results.json").write_text(json.dumps({"scores": []}))
        (scratch / "figure4b-detection.svg").write_text(SVG)
        (scratch / "figure-5-f1.svg").write_text(SVG)
        (scratch / "figure-5-f1.csv").write_text('judge,f1,interval\na,0.333333333333,"[-0.3481821728, 0.25]"\n')
        (scratch / "report.md").write_text("\n".join(["|" + "a |" * 9, "|" + "- |" * 9, "|" + "1 |" * 9]))
    page = (tmp_path / "run" / REPORT_FILE_NAME).read_text(encoding="utf-8")
    captions = re.findall("<figcaption>(.*?)</figcaption>", page)
    assert captions == ["Figure 5: F1", "Figure 4b: detection"]
    assert "<bdi>0.3333</bdi>" in page
    assert "<bdi>-0.3482 to 0.25</bdi>" in page
    assert page.count('class="wide many"') == 1


def test_a_report_is_written_again(study, tmp_path):
    """By the same code, with the same bytes."""
    again = write_report([study], tmp_path / "again.html")
    assert again.read_bytes() == (study / REPORT_FILE_NAME).read_bytes()
    assert report_line(study) == f"report: open {study.as_posix()}/report.html"


def test_a_study_that_fails_leaves_nothing(tmp_path):
    """Neither a folder nor a report."""
    with pytest.raises(ZeroDivisionError), open_folder_with_report(tmp_path / "run") as scratch:
        (scratch / "results.json").write_text("{}")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_names_the_place_that_was_given(tmp_path, monkeypatch):
    """And not the one that is written to first."""
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(Path, "write_bytes", Mock(side_effect=full))
    with pytest.raises(InputError) as caught, open_folder_with_report(tmp_path / "run") as scratch:
        (scratch / "results.json").write_text("{}")
    assert f"Got {str(tmp_path / 'run')!r}: No space left on device" in str(caught.value)
    assert ".part" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", ["1e308", "-1e16", "NaN", "Infinity"])
def test_a_number_of_no_study_is_refused(tmp_path, number):
    """A figure would overflow on it."""
    (tmp_path / "results.json").write_text(f'{{"balanced_accuracy_ci": [0.5, {number}]}}')
    with pytest.raises(InputError, match=rf"`RUN` must hold results.json as JSON. Got an invalid number, {number}"):
        write_report([tmp_path], tmp_path / "report.html")


def test_a_whole_number_of_no_run_is_refused(tmp_path):
    """A figure would overflow on it; a seed may be as large."""
    run = {name: {} for name in HOLD_OUT_KEYS} | {"settings": {"random_state": 10**20}, "rows": [{"ece": [10**400]}]}
    (tmp_path / "results.json").write_text(json.dumps(run))
    with pytest.raises(InputError, match="Got a whole number of 401 digits for 'rows' in"):
        write_report([tmp_path], tmp_path / "report.html")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("label", 1e308),
        ("label", 0.5),
        ("p_consistent", 1e308),
        ("p_consistent", float("nan")),
        ("p_high", -5e-324),
        ("p_uncalibrated", float("inf")),
        ("threshold", 2.0),
        ("decision", 0.5),
    ],
)
@pytest.mark.filterwarnings("error")
def test_scores_of_no_run_are_refused(tmp_path, column, value):
    """By column and row, and without a word of a library."""
    (tmp_path / "results.json").write_text(json.dumps({name: {} for name in HOLD_OUT_KEYS}))
    names = ["label", "decision", "sure", "threshold", "p_consistent", "p_low", "p_high", "p_uncalibrated"]
    rows = pd.DataFrame({name: [0.0, 1.0] for name in names} | {"dataset": "news", "item_id": ["a", "b"]})
    rows.loc[1, column] = value
    rows.to_parquet(tmp_path / "scores.parquet")
    with pytest.raises(InputError, match=rf"Got {re.escape(repr(value))} in column '{column}', row 2 of '"):
        write_report([tmp_path], tmp_path / "report.html")


def test_a_run_of_another_shape_is_shown_as_a_study(tmp_path):
    """Its results lack what a hold-out has."""
    (tmp_path / "results.json").write_text('{"recommended": 1, "runs": [{"recommended": {}}]}')
    (tmp_path / "results.md").write_text("Some words.")
    page = write_report([tmp_path], tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall('<section id="([a-z]+)"', page) == ["results"]


@pytest.mark.parametrize("text", ["[1, 2]", "{", "[" * 100_000])
def test_results_that_are_none_are_refused(tmp_path, text):
    """In one line."""
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError, match=r"`RUN` must hold results\.json as"):
        write_report([tmp_path], tmp_path / "report.html")


@pytest.mark.parametrize("name", ["cognibench", "fect", "loo", "paper", "probe"])
def test_every_study_ends_with_its_report(name):
    """What writes a folder writes its report and prints the line, by itself or by what the studies share."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in sorted((STUDIES / name).glob("*.py")))
    calls = [node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    names = [func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "") for func in calls]
    assert "atomic_folder" not in names
    assert names.count("open_folder_with_report") == names.count("report_line")
    assert "publish" in names or "report_line" in names


ANSWER = {"judged": "2 judges.", "suspect": "One <b>wins</b>.", "trust": "P is none.", "then": "ask", "command": ""}


@pytest.mark.parametrize(("more", "shown"), [({}, True), ({"picture": 1}, False), ({"other": ""}, False)])
def test_a_study_opens_with_its_answer_and_its_chart(tmp_path, more, shown):
    """As text, before its tables; what is no answer is left aside, and the chart is then one of the pictures."""
    verdict = ANSWER | {"picture": "figure-1"} | more
    (tmp_path / "results.json").write_text(json.dumps({"verdict": verdict}))
    (tmp_path / "figure-1.svg").write_text(SVG)
    (tmp_path / "report.md").write_text(TEXT)
    page = write_report([tmp_path], tmp_path / "report.html").read_text(encoding="utf-8")
    sections = re.findall('<section id="([a-z]+)"', page)
    assert sections == (["verdict", "results"] if shown else ["pictures", "results"])
    assert ('<p class="suspect">One &lt;b&gt;wins&lt;/b&gt;.</p>' in page) == shown
    assert page.count("data:image/svg") == 1
