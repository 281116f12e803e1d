"""Figures laid out anew for a phone: one column, no letter smaller, no name lost."""

import io
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from matplotlib.text import Text

from deep._util.figures import MOST_CELLS, PHONE_WIDTH, cells_for_phones, fit_to_phone, new_figure, save_figure
from deep.calibration import plot_reliability
from deep.evaluate import STATES, draw_error_correlation, draw_histogram
from deep.report._page import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(figure: "Figure") -> "Figure":
    """Return a figure once its layout is known."""
    figure.savefig(io.BytesIO(), format="svg")
    return figure


def square(k: int) -> "Figure":
    """Return the error correlations of so many judges, none like another."""
    return draw_error_correlation([f"judge-{i}" for i in range(k)], np.full((k, k), -0.5))


def test_panels_of_a_grid_stand_beneath_each_other() -> None:
    """Row by row, each strip of counts beneath its panel, and no two axes meet."""
    p = np.linspace(0.05, 0.95, 40)
    figure = plot_reliability(np.arange(40) % 2, p, p)
    titles = [axes.get_title() for axes in figure.axes]
    assert fit_to_phone(figure)
    assert figure.get_figwidth() == PHONE_WIDTH
    assert [axes.get_title().replace("\n", " ").split() for axes in figure.axes] == [t.split() for t in titles]
    boxes = [axes.get_position() for axes in drawn(figure).axes]
    assert all(above.y0 > below.y1 for above, below in itertools.pairwise(boxes))
    assert len({round(box.x0, 6) for box in boxes}) == 1


def test_a_report_has_the_cells_of_a_grid_one_by_one() -> None:
    """Each is as wide as a phone, has its own title and ids, and is drawn once; a figure of one column is no grid."""
    p = np.linspace(0.05, 0.95, 40)
    markup = inline_svg(plot_reliability(np.arange(40) % 2, p, p), "reliability", "Reliability")
    assert markup.startswith('<div class="panels"><svg ')
    assert re.findall('aria-label="Reliability: ([A-Z][a-z]+)', markup) == ["Before", "After", "Predicted", "Predicted"]
    widths = [float(points) / 72 for points in re.findall('<svg [^>]*width="([0-9.]+)pt"', markup)]
    assert len(widths) == 4
    assert max(widths) <= PHONE_WIDTH
    ids = re.findall(' id="([^"]+)"', markup)
    assert len(ids) == len(set(ids))
    one = new_figure(8, 4)
    one.subplots(2, 1)
    assert cells_for_phones(one) == cells_for_phones(square(3)) == []


def test_names_of_shared_rows_stand_in_every_panel() -> None:
    """Panels side by side name their rows once; beneath each other each names them above its rows."""
    figure = new_figure(8, 2)
    left, _ = figure.subplots(1, 2, sharey=True)
    left.set_yticks([0, 1], ["first", "second"])
    assert fit_to_phone(figure)
    for axes in figure.axes:
        assert [text.get_text() for text in axes.texts] == ["first", "second"]
        assert max(text.get_position()[1] for text in axes.texts) < axes.get_ylim()[1]


@pytest.mark.parametrize("k", [5, MOST_CELLS])
def test_a_heat_map_has_numbers_for_names(k: int) -> None:
    """They stand at both sides, and beneath with the name of each."""
    figure = square(k)
    assert fit_to_phone(figure)
    (axes,) = figure.axes
    rows, columns = (
        [label.get_text() for label in labels] for labels in (axes.get_yticklabels(), axes.get_xticklabels())
    )
    assert rows == columns == [f"{i + 1}" for i in range(k)]
    beneath = [line.split() for line in axes.get_xlabel().splitlines()]
    assert sorted(name for _, name in beneath) == sorted(f"judge-{i}" for i in range(k))
    assert [number for number, _ in beneath] == rows
    drawn(figure)
    cells = [text.get_window_extent() for text in axes.texts[:k]]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(cells))


@pytest.mark.parametrize("most", [1, 900, 9_000, 9_000_000])
def test_the_spread_of_p_fits_a_phone(most: int) -> None:
    """With its legend, and however many digits stand beside the bars: 366 of the 390 pixels are the page's."""
    figure = draw_histogram({name: np.linspace(0, most, 20).astype(int) for name in STATES})
    (width,) = re.findall('<svg [^>]*width="([0-9.]+)pt"', inline_svg(figure, "spread", "Spread"))
    assert float(width) / 72 <= 366 / 96


def test_a_saved_figure_is_laid_out_as_before(tmp_path: Path) -> None:
    """What is drawn into it later finds its place too."""
    figure = new_figure(4, 3, constrained=True)
    figure.subplots()
    layout = figure.get_layout_engine()
    save_figure(figure, tmp_path / "one")
    assert figure.get_layout_engine() is layout is not None


def test_what_cannot_be_laid_out_stays_as_it_is() -> None:
    """A heat map of many cells, and a figure that fits a phone."""
    for figure in square(MOST_CELLS + 1), new_figure(PHONE_WIDTH, 2):
        before = figure.get_size_inches().tolist(), [text.get_text() for text in figure.findobj(Text)]
        assert not fit_to_phone(figure)
        assert (figure.get_size_inches().tolist(), [text.get_text() for text in figure.findobj(Text)]) == before
