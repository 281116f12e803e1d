"""Where an item stands in the files it was read from."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deep.datasets._cells import text_cells
from deep.datasets._source import open_source

__all__ = ["locate_row"]


def locate_row(paths: Sequence[str | Path], dataset: str, item_id: str, column: str) -> str | None:
    """Return file, column and row of an item for an error message; None where no file has it.

    Parameters
    ----------
    paths : sequence of str or Path
        Tables that `read_votes` has read.
    dataset, item_id : str
    column : str
        The column that the message is about.
    """
    for path in paths:
        source = open_source(path)
        cells = source.read(("dataset", "item_id"))
        texts = {name: text_cells(source, name, column) for name, column in cells.items()}
        rows = np.flatnonzero((texts["dataset"] == dataset) & (texts["item_id"] == item_id))
        if rows.size:
            return source.where(int(rows[0]), column)
    return None
