"""Where labeled votes come from: tables on disk, the paper's published figures, and votes simulated from them."""

from deep.datasets._locate import locate_row
from deep.datasets._published import (
    OperatingPoint,
    PublishedBaseline,
    PublishedDataset,
    PublishedEnsemble,
    WholeCounts,
    contradicting_points,
    published_baselines,
    published_dataset,
    published_datasets,
    published_ensembles,
    published_points,
    published_source,
    recover_counts,
)
from deep.datasets._reasons import Failures, check_failures, read_reasons, reasons_path
from deep.datasets._registry import family_of, resolve_dataset
from deep.datasets._simulate import simulate_votes
from deep.datasets._tables import ScoreTable, join_scores, read_scores, read_votes, table_columns

__all__ = [
    "Failures",
    "OperatingPoint",
    "PublishedBaseline",
    "PublishedDataset",
    "PublishedEnsemble",
    "ScoreTable",
    "WholeCounts",
    "check_failures",
    "contradicting_points",
    "family_of",
    "join_scores",
    "locate_row",
    "published_baselines",
    "published_dataset",
    "published_datasets",
    "published_ensembles",
    "published_points",
    "published_source",
    "read_reasons",
    "read_scores",
    "read_votes",
    "reasons_path",
    "recover_counts",
    "resolve_dataset",
    "simulate_votes",
    "table_columns",
]
