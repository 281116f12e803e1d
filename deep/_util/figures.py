"""How every figure looks and is saved: one palette, figures outside pyplot, the same bytes for the same figure."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.transforms import Bbox


BLUE, RED, AMBER, GRAY = "#2f6690", "#c8553d", "#e0a458", "#9aa5b1"
# A paler shade of a color, for what stands behind or is part of it.
TINTS = {BLUE: "#a8c6dc", RED: "#edbcae", GRAY: "#c9d6df"}

# The color of lines that help to read off a value.
GRID_COLOR = "#d9dde1"


def new_figure(width: float, height: float, *, constrained: bool = False) -> "Figure":
    """Return a figure of that size in inches that belongs to no pyplot state.

    Places that must not differ from one run to the next are fixed by hand: matplotlib's layout engines (`constrained`)
    differ in the last digits.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained" if constrained else None)


def plain_grid(axes: "Axes", axis: str = "both") -> None:
    """Draw a thin grid behind everything else."""
    axes.grid(axis=axis, color=GRID_COLOR, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def save_figure(figure: "Figure", path: str | Path) -> tuple[Path, Path]:
    """Save a figure as `path`.png and `path`.svg, the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib Figure
        Saved in the box around all that it shows; from then on a ``$`` in its texts is a ``$``, no formula.
    path : str or Path
        Without suffix; the folder must exist.

    Returns
    -------
    tuple of Path
        The two files.
    """
    png, svg = (Path(f"{path}.{suffix}") for suffix in ("png", "svg"))
    with _stable_save(figure):
        box = _drawn_box(figure)
        # Without the version of matplotlib and the date, so that the same figure is the same bytes.
        figure.savefig(png, dpi=150, bbox_inches=box, metadata={"Software": None})
        figure.savefig(svg, bbox_inches=box, metadata={"Date": None})
    return png, svg


def draw_svg(figure: "Figure", file: TextIO, *, salt: str) -> None:
    """Write a figure as an SVG without a background, whose letters are text in the reader's font.

    Parameters
    ----------
    figure : matplotlib Figure
        Drawn in the box around all that it shows; from then on a ``$`` in its texts is a ``$``, no formula.
    file : text file
        Open for writing.
    salt : str
        Its ids differ from those of another salt.
    """
    with _stable_save(figure, salt=salt, fonttype="none"):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", bbox_inches=_drawn_box(figure), transparent=True, metadata=metadata)


def _drawn_box(figure: "Figure") -> "Bbox":
    """Return the box around all that is drawn, with a margin, in inches; "tight" would draw it once more for that."""
    import matplotlib as mpl

    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # until it is saved the places stay: to lay out takes as long as to draw
    box: Bbox = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    return box


@contextmanager
def _stable_save(figure: "Figure", *, salt: str = "deep", fonttype: Literal["none", "path"] = "path") -> Iterator[None]:
    """Make saved figures the same from run to run, whatever the names in them."""
    import matplotlib as mpl
    from matplotlib.text import Text

    layout = figure.get_layout_engine()
    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a $ in a name is a $
    # Without a salt of its own an SVG gets random ids. A character that the font lacks is drawn as a box.
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": fonttype}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        try:
            yield
        finally:
            if layout is not None:
                figure.set_layout_engine(layout)


def save_figures(figures: Mapping[str, "Figure"], folder: Path, *, caption: str = "", phone: bool = False) -> None:
    """Save figures under their names, with a caption in the corner of each where there is one.

    `phone` adds `name`.phone.svg, drawn as narrow as a phone is, of each that :func:`fit_to_phone` can lay out anew.
    """
    for name, figure in figures.items():
        if caption:
            figure.text(0.99, 1.02, caption, ha="right", va="bottom", fontsize=9, color="#a33")
        save_figure(figure, folder / name)
        if phone and fit_to_phone(figure):
            with _stable_save(figure):
                figure.savefig(folder / f"{name}.phone.svg", bbox_inches=_drawn_box(figure), metadata={"Date": None})


# The width in inches of a figure that fits on a phone of 390 pixels.
PHONE_WIDTH = 3.6

# The inches by which labels reach beyond the places of a grid's axes.
MARGIN_INCHES = 0.25

# The letters on a line of a figure for phones.
PHONE_LINE_LENGTH = 36

# The most cells with a number in them that stand side by side in a figure for phones.
MOST_CELLS = 12


def fit_to_phone(figure: "Figure") -> bool:
    """Lay out a figure anew for a phone, in one column, the names of rows above these; return False where it cannot.

    Letters keep their size: it is not made smaller, but drawn in another shape.
    """
    width, height = figure.get_size_inches()
    squares = [axes for axes in figure.axes if axes.images]
    if width <= PHONE_WIDTH or squares:
        return width > PHONE_WIDTH and all(map(_number_heat_map, squares))
    places = {axes: list(axes.get_yticks()) for axes in figure.axes}
    names = {axes: axes.yaxis.get_major_formatter().format_ticks(where) for axes, where in places.items()}
    titles = {axes: result for axes, result in names.items() if any(map(str.isalpha, "".join(result)))}
    height *= 1.5 if titles else 1.0
    if (columns := _n_columns(figure)) == 1:
        figure.set_layout_engine("constrained")
    else:  # at fixed places: an engine takes as long as all else of a drawing
        height *= columns
        _stack_cells(figure, height)
    figure.set_size_inches(PHONE_WIDTH, height)
    for axes in figure.axes:
        if axes in titles:
            _name_above_rows(axes, titles[axes], places[axes])
        beneath = "".join(label.get_text().partition("\n")[0] for label in axes.get_xticklabels())
        axes.tick_params(axis="x", rotation=30 if len(beneath) > PHONE_LINE_LENGTH else 0)
        if (legend := axes.get_legend()) is not None:
            _redraw_legend(legend, axes, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    for legend in list(figure.legends):
        _redraw_legend(legend, figure, loc="outside lower center")
    _wrap_texts(figure)
    return True


def cells_for_phones(figure: "Figure") -> "list[list[Axes]]":
    """Make each cell of a grid of columns as wide as a phone, and return its axes, row by row; none of other ones."""
    columns = _n_columns(figure)
    if columns == 1 or any(axes.images for axes in figure.axes):
        return []
    figure.set_figwidth((PHONE_WIDTH - MARGIN_INCHES) * columns)
    _wrap_texts(figure)
    return list(_axes_by_cell(figure).values())


def _n_columns(figure: "Figure") -> int:
    """Return how many axes stand side by side."""
    return len({round(axes.get_position().x0, 3) for axes in figure.axes})


def _axes_by_cell(figure: "Figure") -> "dict[int, list[Axes]]":
    """Return the axes in each cell of the outermost grid, by its number."""
    result: dict[int, list[Axes]] = {}
    for axes in figure.axes:
        if (spec := axes.get_subplotspec()) is not None:
            result.setdefault(spec.get_topmost_subplotspec().num1, []).append(axes)
    return dict(sorted(result.items()))


def _wrap_texts(figure: "Figure") -> None:
    """Break the titles and labels of axes, and what stands beside them, into lines of a phone."""
    beside = [text for axes in figure.axes for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
    for text in [*figure.texts, *beside]:
        lines = text.get_text().split("\n")
        text.set_text("\n".join(part for line in lines for part in wrap(line, PHONE_LINE_LENGTH)))


def _number_heat_map(axes: "Axes") -> bool:
    """Lay out a heat map anew, numbers in place of names, which stand beneath it; return False where it has many."""
    names = [label.get_text() for label in axes.get_yticklabels()]
    if len(names) > MOST_CELLS:
        return False
    if (bar := axes.images[0].colorbar) is not None:
        bar.remove()
    numbers = [str(number) for number, _ in enumerate(names, start=1)]
    axes.set_xticks(axes.get_xticks(), numbers, rotation=0)
    axes.set_yticks(axes.get_yticks(), numbers)
    axes.set_xlabel("\n".join(map("{}  {}".format, numbers, names)), loc="left", fontsize=9, multialignment="left")
    figure = axes.get_figure(root=True)
    assert figure is not None  # whose axes these are
    figure.set_size_inches(PHONE_WIDTH, PHONE_WIDTH + 0.18 * len(names))
    figure.set_layout_engine("constrained")
    return True


# Inches above a column of panels, for titles, between two of them, and beneath the last.
INCHES_ABOVE, INCHES_BETWEEN, INCHES_BELOW = 1.2, 1.1, 0.5


def _stack_cells(figure: "Figure", height: float) -> None:
    """Place the cells of a grid of axes beneath each other, row by row, on so many inches."""
    cells = _axes_by_cell(figure)
    n = len(cells)
    grid = figure.add_gridspec(n, 1, left=0.19, right=0.97, top=1 - INCHES_ABOVE / height, bottom=INCHES_BELOW / height)
    grid.update(hspace=n * INCHES_BETWEEN / (height - INCHES_ABOVE - INCHES_BELOW - (n - 1) * INCHES_BETWEEN))
    for number, inside in enumerate(cells.values()):
        cell = grid[number]
        ratios = [axes.get_position().height for axes in inside]
        parts = cell.subgridspec(len(inside), 1, height_ratios=ratios, hspace=0.1)
        for place, axes in enumerate(inside):
            axes.set_subplotspec(parts[place])


def _name_above_rows(axes: "Axes", names: Sequence[str], places: Sequence[float]) -> None:
    """Write the name of each row above what is drawn there, in place of beside it."""
    up = -1.0 if axes.yaxis_inverted() else 1.0
    half = 0.4 if axes.containers and axes.patches else 0.1  # bars of a row are 0.8 high
    for name, place in zip(names, places, strict=True):
        axes.text(0.02, place + up * half, name, transform=axes.get_yaxis_transform(), va="bottom", fontsize=9)
    top = max(up * axes.get_ylim()[1], max(up * place for place in places) + half + 0.4)
    axes.set_ylim(top=up * top)
    axes.set_yticks([])


def _redraw_legend(legend: "Legend", owner: "Axes | Figure", **place: Any) -> None:
    """Draw a legend of more names anew, in as many columns as fit."""
    handles = [handle for handle in legend.legend_handles if handle is not None]
    names = [text.get_text() for text in legend.get_texts()]
    if len(names) > 2:
        legend.remove()
        ncols = 2 if max(map(len, names)) < PHONE_LINE_LENGTH / 3 else 1
        owner.legend(handles, names, fontsize=9, ncols=ncols, frameon=False, **place)
