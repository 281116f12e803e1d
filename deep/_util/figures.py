"""How every figure looks and is saved: one palette, figures outside pyplot, the same bytes for the same figure."""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox


BLUE, RED, AMBER, GRAY = "#2f6690", "#c8553d", "#e0a458", "#9aa5b1"
LIGHT = {BLUE: "#a8c6dc", RED: "#edbcae", GRAY: "#c9d6df"}
"""A paler shade of a color, for what stands behind or is part of it."""

GRID = "#d9dde1"


def new_figure(width: float, height: float, *, constrained: bool = False) -> "Figure":
    """Return a figure of that size in inches that belongs to no pyplot state.

    Places that must not differ from one run to the next are fixed by hand: matplotlib's layout engines (`constrained`)
    differ in the last digits.
    """
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained" if constrained else None)


def plain_grid(axes: "Axes", axis: str = "both") -> None:
    """Draw a thin grid behind everything else."""
    axes.grid(axis=axis, color=GRID, linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def save_figure(figure: "Figure", path: str | Path) -> tuple[Path, Path]:
    """Save a figure as `path`.png and `path`.svg, the same bytes for the same figure.

    Parameters
    ----------
    figure : matplotlib Figure
    path : str or Path
        Without suffix; the folder must exist.

    Returns
    -------
    tuple of Path
        The two files.
    """
    png, svg = (Path(f"{path}.{suffix}") for suffix in ("png", "svg"))
    with _saving(figure):
        box = _box(figure)
        figure.savefig(png, dpi=150, bbox_inches=box, metadata={"Software": None})
        figure.savefig(svg, bbox_inches=box, metadata={"Date": None})
    return png, svg


def draw_svg(figure: "Figure", file: TextIO, *, salt: str) -> None:
    """Write a figure as an SVG without a background, whose letters are text in the reader's font.

    Parameters
    ----------
    figure : matplotlib Figure
    file : text file
    salt : str
        Its ids differ from those of another salt.
    """
    with _saving(figure, salt=salt, fonttype="none"):
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", bbox_inches=_box(figure), transparent=True, metadata=metadata)


def _box(figure: "Figure") -> "Bbox":
    """Return the box around all that is drawn, with a margin, in inches; "tight" would draw it once more for that."""
    import matplotlib as mpl

    if figure.get_layout_engine() is not None:
        figure.draw_without_rendering()
    box: Bbox = figure.get_tightbbox().padded(mpl.rcParams["savefig.pad_inches"])
    return box


@contextmanager
def _saving(figure: "Figure", *, salt: str = "deep", fonttype: Literal["none", "path"] = "path") -> Iterator[None]:
    """Make saved figures the same from run to run, whatever the names in them."""
    import matplotlib as mpl
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a $ in a name is a $
    # Without a salt of its own an SVG gets random ids. A character that the font lacks is drawn as a box.
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": fonttype}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def save_figures(figures: Mapping[str, "Figure"], folder: Path, *, caption: str = "") -> None:
    """Save figures under their names, with a caption in the corner of each where there is one."""
    for name, figure in figures.items():
        if caption:
            figure.text(0.99, 1.02, caption, ha="right", va="bottom", fontsize=9, color="#a33")
        save_figure(figure, folder / name)
