"""Tables as Markdown, JSON rows and files, intervals of means and over documents: what studies write and print."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deep._util.figures import new_figure, save_figures
from deep._util.names import format_dollars
from deep.calibration import balanced_accuracy, bootstrap_balanced_accuracy
from deep.evaluate import (
    DataTable,
    Measured,
    Row,
    TableCell,
    as_frame,
    frame_records,
    json_value,
    markdown,
    mean_interval,
    shown,
    t_half_width,
    write_table,
)
from deep.evaluate._verdict import share_words
from deep.model import PriorEstimate

FRAME = pd.DataFrame({"name": ["a|b", "c"], "share": [0.5, np.nan], "n": [1, 2]})


def test_markdown_has_four_decimals_and_leaves_out_what_is_missing() -> None:
    """A pipe in a cell would end it, and so is escaped."""
    head, rule, first, second = markdown(FRAME)
    assert (head, rule) == ("| name | share | n |", "| --- | --- | --- |")
    assert (first, second) == ("| a\\|b | 0.5000 | 1 |", "| c |  | 2 |")


def test_names_cannot_break_a_markdown_table_or_become_markup() -> None:
    """Neither in a cell nor above a column, as in the table of error correlations."""
    frame = pd.DataFrame({"a|b": ["x\ny"], "<script>": ["<img src=x> a < b"], "c": ["\\|"]})
    head, _, row = markdown(frame)
    assert head == "| a\\|b | \\<script> | c |"
    assert row == "| x y | \\<img src=x> a < b | \\\\\\| |"


def test_figures_take_names_to_the_letter(tmp_path: Path) -> None:
    """A $ starts no formula, markup stays text, and a character that the font lacks is no warning."""
    figure = new_figure(2, 1)
    axes = figure.subplots()
    axes.set_title("$\\frac{</text><script>$ 日本")
    axes.set_yticks([0, 1], ["$x$ & y", "$\\nonsense$"])
    save_figures({"odd": figure}, tmp_path)
    svg = (tmp_path / "odd.svg").read_text(encoding="utf-8")
    assert "<script" not in svg
    assert all(not text.get_parse_math() for text in [axes.title, *axes.get_yticklabels()])


def test_rows_of_json_hold_no_nan_and_no_type_of_numpy() -> None:
    """They are written with `allow_nan=False`."""
    rows = frame_records(FRAME)
    assert rows == [{"name": "a|b", "share": 0.5, "n": 1}, {"name": "c", "share": None, "n": 2}]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize(
    ("value", "expected"),
    [(float("nan"), None), (None, None), (np.float64(0.5), 0.5), ((0.1, 0.2), [0.1, 0.2]), ((0.1, float("nan")), None)],
)
def test_nan_is_null_also_within_an_interval(value: object, expected: object) -> None:
    """An interval with an undefined bound is undefined."""
    assert json_value(value) == expected


def test_a_table_is_a_csv_and_a_titled_markdown_file(tmp_path: Path) -> None:
    """What is shown may differ from what is stored; a note stands below."""
    write_table(tmp_path, "t", FRAME, "Title", shown=FRAME[["name"]], note="A note.")
    assert (tmp_path / "t.csv").read_text() == "name,share,n\na|b,0.5,1\nc,,2\n"
    assert (tmp_path / "t.md").read_text() == "# Title\n\n| name |\n| --- |\n| a\\|b |\n| c |\n\nA note.\n"
    write_table(tmp_path, "plain", FRAME[["n"]], "Title")
    assert (tmp_path / "plain.md").read_text() == "# Title\n\n| n |\n| --- |\n| 1 |\n| 2 |\n"


def test_a_function_that_yields_rows_returns_a_table() -> None:
    """It keeps its docstring, whose first line is the title of the file."""

    @as_frame
    def build(n: int) -> Iterator[Row]:
        """Count to n."""
        yield from ({"i": i} for i in range(n))

    assert build(2)["i"].tolist() == [0, 1]
    assert build(0).empty
    assert build.__doc__ == "Count to n."


def test_the_interval_of_a_mean_is_students() -> None:
    """As scipy computes it from the standard error."""
    values = [0.2, 0.5, 0.9, 0.4]
    expected = stats.t.interval(0.9, 3, loc=np.mean(values), scale=stats.sem(values))
    mean, low, high = mean_interval(values, 0.9)
    assert (mean, low, high) == pytest.approx((np.mean(values), *expected), abs=1e-12)
    assert t_half_width(float(np.std(values, ddof=1)), 4, 0.9) == pytest.approx(high - mean, abs=1e-12)


def test_a_caption_stands_in_every_figure(tmp_path: Path) -> None:
    """Without one nothing is added."""
    plain, marked = new_figure(1, 1), new_figure(1, 1)
    save_figures({"plain": plain}, tmp_path)
    save_figures({"marked": marked}, tmp_path, caption="SIMULATED")
    assert [text.get_text() for text in marked.texts] == ["SIMULATED"]
    assert not plain.texts
    assert sorted(path.name for path in tmp_path.iterdir()) == ["marked.png", "marked.svg", "plain.png", "plain.svg"]


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (0.418, "z.2f", "0.42"),
        (-0.001, "z.2f", "0.00"),
        (0.0951, "+.1%", "+9.5"),
        (12345, ",", "12,345"),
        (0.0042, format_dollars, "$0.0042"),
        ((0.25, 0.5), ".1%", "25.0 to 50.0"),
        (np.array([0.25, 0.5]), ".1f", "0.2 to 0.5"),
        ((0.25, float("nan")), ".1%", ""),
        ([None, 0.5], ".1%", ""),
        (None, ".1%", ""),
        (np.float64("nan"), ".1%", ""),
    ],
)
def test_a_number_or_an_interval_is_shown_or_nothing(value: object, form: object, expected: str) -> None:
    """What is missing, and half an interval, is an empty cell and never the word nan."""
    assert shown(value, form) == expected  # type: ignore[arg-type]


@dataclass(frozen=True)
class Inner(Measured):
    """A part of a result."""

    n: int


@dataclass(frozen=True)
class Outer(Measured):
    """A result with all kinds of fields."""

    name: str
    tpr: Annotated[float, TableCell("TPR, %", ".1%")]
    interval: Annotated[tuple[float, float], TableCell("95 %", ".1%")]
    matrix: np.ndarray
    parts: dict[str, Inner]
    cost: Annotated[float | None, TableCell("$", format_dollars)] = None


def test_a_result_is_json_and_a_row_of_cells() -> None:
    """Null stands for NaN, and for an interval that lacks a bound, but for one element alone of an array."""
    result = Outer("strict", 0.5, (0.25, float("nan")), np.array([[1.0, np.nan]]), {"x": Inner(3)})
    values = {"name": "strict", "tpr": 0.5, "interval": None, "matrix": [[1.0, None]], "parts": {"x": {"n": 3}}}
    assert result.as_dict() == values | {"cost": None}
    assert json.loads(json.dumps(result.as_dict(), allow_nan=False)) == result.as_dict()
    assert result.cells() == {"TPR, %": "50.0", "95 %": "", "$": ""}


def test_a_table_leaves_out_what_is_empty_or_does_not_fit() -> None:
    """Columns without a cell, and the last ones of a narrow terminal, which are named; two columns stay in any case."""
    rows = [
        {"judge": "strict", "n": "40", "empty": "", "kappa": "0.50"},
        {"judge": "lenient", "n": "", "kappa": "0.25"},
    ]
    table = DataTable("Judges", rows)
    wide = ["Judges", "  judge     n  kappa", "  strict   40   0.50", "  lenient   -   0.25"]
    assert list(table.lines()) == wide
    narrow = ["Judges", "  judge     n", "  strict   40", "  lenient   -", "  ... and columns that do not fit: kappa"]
    assert list(table.lines(width=19)) == narrow
    assert list(table.lines(width=1)) == list(table.lines(width=19))


@pytest.fixture
def decided() -> tuple[np.ndarray, np.ndarray]:
    """Return labels and decisions that are right four times in five."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 200)
    return labels, np.where(rng.random(200) < 0.8, labels, 1 - labels)


def test_items_that_repeat_their_document_say_nothing_new(decided: tuple[np.ndarray, np.ndarray]) -> None:
    """Five copies of each item, in its document, leave the interval as it was; as documents they would narrow it."""
    labels, decisions = decided
    once = bootstrap_balanced_accuracy(labels, decisions, documents=np.arange(200))
    copies = [np.repeat(values, 5) for values in (labels, decisions, np.arange(200))]
    assert bootstrap_balanced_accuracy(*copies[:2], documents=copies[2]) == pytest.approx(once)
    alone = bootstrap_balanced_accuracy(*copies[:2])
    assert alone[1] - alone[0] < 0.6 * (once[1] - once[0])


def test_items_alone_have_the_bootstrap_over_items(decided: tuple[np.ndarray, np.ndarray]) -> None:
    """Up to the draws."""
    labels, decisions = decided
    result = bootstrap_balanced_accuracy(labels, decisions, documents=np.arange(200), n_boot=20_000)
    assert result == pytest.approx(bootstrap_balanced_accuracy(labels, decisions), abs=0.005)
    assert result[0] < balanced_accuracy(labels, decisions) < result[1]


def test_no_interval_without_both_classes() -> None:
    """Where one is missing, also of documents."""
    assert np.isnan(bootstrap_balanced_accuracy([1, 1], [1, 0], documents=["a", "b"])).all()


def test_a_share_that_is_given_has_no_interval() -> None:
    """One that is estimated has; where both ends are the estimate nobody estimated anything."""
    share = PriorEstimate(0.5, 0.4, 0.62)
    assert share_words(share) == "Estimated share of consistent claims: 50.0 % (90 % interval 40.0 to 62.0)."
    assert share_words(PriorEstimate(0.5, 0.5, 0.5)) == "Share of consistent claims, as given: 50.0 %."
    assert share_words(PriorEstimate(0.5, 0.0, 1.0)).endswith("; not measured on these few items.")
