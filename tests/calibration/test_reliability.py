"""Reliability tables and figures."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.figure import Figure

from deep.calibration import ReliabilityDisplay, expected_calibration_error, plot_reliability, save_figure
from deep.calibration._reliability import _short_count
from deep.exceptions import InputError


def sample(seed: int = 0, n: int = 558) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return labels, overconfident probabilities and calibrated ones."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0.3, 1.2, n)
    after = 1 / (1 + np.exp(-x))
    return (rng.random(n) < after).astype(int), 1 / (1 + np.exp(-2.6 * x)), after


def test_the_table_of_two_bins() -> None:
    """30 + 20 rows at 0.2, of which 20 are consistent; Wilson's interval of 20 / 50 is 0.2761 to 0.5382."""
    display = ReliabilityDisplay.from_predictions([0, 1, 1], [0.2, 0.2, 0.9], n_bins=2, sample_weight=[30, 20, 10])
    frame = display.frame()
    assert list(frame.columns) == [
        "bin_low",
        "bin_high",
        "count",
        "mean_prob",
        "share_consistent",
        "ci_low",
        "ci_high",
    ]
    np.testing.assert_allclose(frame.iloc[0], [0, 0.5, 50, 0.2, 0.4, 0.2761, 0.5382], atol=1e-4)
    # 10 of 10: from 10 / (10 + 1.96^2) = 0.7225 up to 1.
    np.testing.assert_allclose(frame.iloc[1], [0.5, 1, 10, 0.9, 1, 0.7225, 1], atol=1e-4)


def test_an_empty_bin_has_a_count_of_zero_and_nothing_else() -> None:
    """No rows, no mean, no share, no interval."""
    frame = ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.2], n_bins=2).frame()
    assert frame["count"].tolist() == [2, 0]
    assert frame.loc[1, ["mean_prob", "share_consistent", "ci_low", "ci_high"]].isna().all()


def test_the_calibration_error_can_be_read_off_the_table() -> None:
    """The mean gap between the two columns, weighted by the counts, is the expected calibration error."""
    y, p, _ = sample()
    frame = ReliabilityDisplay.from_predictions(y, p).frame()
    gaps = (frame["share_consistent"] - frame["mean_prob"]).abs()
    assert np.average(gaps, weights=frame["count"]) == pytest.approx(expected_calibration_error(y, p))


def test_a_weight_is_a_row_repeated() -> None:
    """Cells give the table of the rows."""
    y, p, _ = sample(1, 100)
    w = np.random.default_rng(2).integers(1, 5, 100)
    cells = ReliabilityDisplay.from_predictions(y, p, sample_weight=w).frame()
    rows = ReliabilityDisplay.from_predictions(np.repeat(y, w), np.repeat(p, w)).frame()
    np.testing.assert_allclose(cells, rows, atol=1e-12)


def test_plot_draws_the_held_bins_beside_the_diagonal() -> None:
    """Into the axes given, or into those of a figure of its own; the name goes to the legend."""
    display = ReliabilityDisplay.from_predictions([0, 1, 1], [0.1, 0.6, 0.7], n_bins=4, name="after")
    axes = Figure().subplots()
    assert display.plot(axes) is axes
    diagonal, points = (line for line in axes.lines if len(line.get_xdata()))
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    np.testing.assert_allclose(points.get_xdata(), [0.1, 0.65])
    np.testing.assert_allclose(points.get_ydata(), [0.0, 1.0])
    assert points.get_label() == "after"
    assert display.plot().figure is not axes.figure


def test_the_figure_shows_before_and_after_and_both_predicted_classes() -> None:
    """Two panels above, two below, each over a strip of counts that sum to the items."""
    y, before, after = sample()
    figure = plot_reliability(y, before, after, title="LabelModel")
    panels, strips = figure.axes[::2], figure.axes[1::2]
    titles = [axes.get_title() for axes in panels]
    assert titles[0].startswith("Before calibration\nECE ")
    assert titles[1].startswith("After calibration\nECE ")
    assert titles[2:] == ["Predicted consistent", "Predicted inconsistent"]
    heights = [sum(bar.get_height() for bar in axes.patches) for axes in strips]
    assert heights == [558, 558, 2 * (before >= 0.5).sum(), 2 * (before < 0.5).sum()]


def test_split_panels_show_how_often_a_predicted_class_is_right() -> None:
    """Predicted consistent at 0.9: 3 of 4 are; predicted inconsistent at 0.2, confidence 0.8: 4 of 5 are."""
    y, p = [1, 1, 1, 0, 0, 0, 0, 0, 1], [0.9] * 4 + [0.2] * 5
    figure = plot_reliability(y, p, p)
    points = []
    for axes in figure.axes[4::2]:
        line = next(line for line in axes.lines if str(line.get_label()).startswith("before"))
        points.append((float(line.get_xdata()[0]), float(line.get_ydata()[0])))
        assert axes.get_xlim() == (0.5, 1.0)
    np.testing.assert_allclose(points, [(0.9, 0.75), (0.8, 0.8)], atol=0.003)


def test_a_predicted_class_that_never_occurs_leaves_its_panel_empty(tmp_path: Path) -> None:
    """All items are predicted consistent: the other panel says 0 items, and the layout holds."""
    figure = plot_reliability([1, 0, 1], [0.6, 0.7, 0.9], [0.6, 0.6, 0.6], path=tmp_path / "all")
    labels = [text.get_text() for text in figure.axes[6].get_legend().get_texts()]
    assert labels == ["before: 0 items", "after: 0 items"]


def test_figures_are_saved_as_png_and_svg_with_the_same_bytes(tmp_path: Path) -> None:
    """A figure drawn twice is stored twice alike, so that outputs can be compared."""
    y, before, after = sample()
    for name in ("one", "two"):
        plot_reliability(y, before, after, title="LabelModel", path=tmp_path / name)
    for suffix in ("png", "svg"):
        assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "one.svg").read_text()


def test_save_figure_names_the_files(tmp_path: Path) -> None:
    """A dot in the name is not taken for a suffix."""
    png, svg = save_figure(Figure(figsize=(1, 1)), tmp_path / "v1.2")
    assert (png.name, svg.name) == ("v1.2.png", "v1.2.svg")
    assert png.stat().st_size > 0


def test_unusable_input_names_the_column() -> None:
    """The message says which of the two sets of probabilities is out of range."""
    with pytest.raises(InputError, match=r"`after` must lie in \[0, 1\]. Got 1.5 at row 1"):
        plot_reliability([0, 1], [0.1, 0.9], [0.2, 1.5])
    with pytest.raises(InputError, match=r"`y_true` must have 2 entries, one a row. Got 1"):
        plot_reliability([0], [0.1, 0.9], [0.2, 0.5])


def test_nothing_heavy_is_imported_and_pyplot_never() -> None:
    """Importing the room loads no matplotlib; drawing loads no pyplot."""
    code = (
        "import sys, deep.calibration as c\n"
        "assert not {'matplotlib', 'torch', 'netcal'} & set(sys.modules), 'heavy import'\n"
        "c.plot_reliability([0, 1], [0.1, 0.9], [0.2, 0.8])\n"
        "assert 'matplotlib.pyplot' not in sys.modules, 'pyplot'\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("weight", "n_bins"), [(1, 2), (100, 12), (20_000, 8), (20_000, 20)])
def test_numbers_above_bars_do_not_meet(weight: int, n_bins: int) -> None:
    """Nor do they leave their strip, however many digits they have; of eight bins every bar has its number."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    y, before, after = sample(n=500)
    figure = plot_reliability(y, before, after, sample_weight=np.full(len(y), weight), n_bins=n_bins)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for strip in figure.axes[1::2]:
        texts = [text for text in strip.texts if text.get_text()]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in texts]
        assert not any(box.overlaps(other) for at, box in enumerate(boxes) for other in boxes[:at])
        assert all(box.y1 <= strip.get_window_extent().y1 for box in boxes)
        if n_bins <= 8:
            assert len(texts) == sum(bar.get_height() > 0 for bar in strip.patches)


def test_counts_are_short():
    """In thousands from ten thousand on, in millions from ten million on; none stands above an empty bin."""
    counts = [_short_count(count) for count in (0, 9_999, 10_000, 123_456, 24_500_000)]
    assert counts == ["", "9999", "10k", "123k", "24M"]
