"""The files of the study, and the checks that its votes can fill them."""

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from deep._figures import save_figures
from deep._plain_cells import plain_frame
from deep.console import SIMULATED
from deep.datasets import published_source, resolve_dataset
from deep.evaluate import CAPTION, markdown
from deep.exceptions import InputError
from deep.experiments.paper._tables import PUBLISHED, TABLES, side_by_side
from deep.records import VoteMatrix

EXAMPLE_DATASET = "aggrefact-xsum"
"""The dataset of the paper's Figure 4."""


def figure_dataset(name: str | None, votes: VoteMatrix) -> str:
    """Return the dataset of Figure 4."""
    if name is not None:
        return resolve_dataset(name, votes.dataset_names, param="figure_dataset")
    return EXAMPLE_DATASET if EXAMPLE_DATASET in votes.dataset_names else votes.dataset_names[0]


def check_labeled(votes: VoteMatrix) -> None:
    """Raise unless every dataset has labels, without which no table can be filled."""
    for dataset in votes.dataset_names:
        if (votes.labels[votes.datasets == dataset] < 0).any():
            raise InputError(f"`label` must be 0 or 1 in every row. Got a row without in dataset {dataset!r}.")


def write(folder: Path, figures: pd.DataFrame, drawn: dict[str, Figure], origin: str | list[str]) -> None:
    """Write one CSV of all figures, one Markdown text a table, and the drawings."""
    votes = origin if isinstance(origin, str) else ", ".join(origin)
    marked = figures.assign(votes=figures["origin"].map(lambda name: "" if name == PUBLISHED else votes))
    plain_frame(marked).to_csv(folder / "figures.csv", index=False, lineterminator="\n")
    for table, title in TABLES.items():
        lines = [f"# Table {table}. {title}", "", *markdown(side_by_side(figures, table)), ""]
        lines += [f"In percent. Published: {published_source()}. This run: {votes} votes, the paper's recipe.", ""]
        (folder / f"table{table}.md").write_text("\n".join(lines), encoding="utf-8")
    save_figures(drawn, folder, caption=CAPTION if origin == SIMULATED else "")
