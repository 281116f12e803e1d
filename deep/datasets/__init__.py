"""Where labeled votes come from: tables on disk, the paper's published figures, and votes simulated from them."""

from deep.datasets._cards import DatasetCard, Lengths, describe_examples
from deep.datasets._examples import ExampleFile, Examples, examples_from_dataset
from deep.datasets._leakage import SharedDocument, shared_documents
from deep.datasets._load import load_examples
from deep.datasets._locate import locate_row
from deep.datasets._published import (
    OperatingPoint,
    PublishedBaseline,
    PublishedDataset,
    WholeCounts,
    contradicting_points,
    published_baselines,
    published_dataset,
    published_datasets,
    published_points,
    published_source,
    recover_counts,
)
from deep.datasets._published_tables import PublishedFigure, published_table
from deep.datasets._reasons import Failures, check_failures, read_reasons, reasons_path
from deep.datasets._registry import family_of, resolve_dataset
from deep.datasets._simulate import simulate_votes
from deep.datasets._tables import ScoreTable, join_scores, read_scores, read_votes, table_columns

__all__ = [
    "DatasetCard",
    "ExampleFile",
    "Examples",
    "Failures",
    "Lengths",
    "OperatingPoint",
    "PublishedBaseline",
    "PublishedDataset",
    "PublishedFigure",
    "ScoreTable",
    "SharedDocument",
    "WholeCounts",
    "check_failures",
    "contradicting_points",
    "describe_examples",
    "examples_from_dataset",
    "family_of",
    "join_scores",
    "load_examples",
    "locate_row",
    "published_baselines",
    "published_dataset",
    "published_datasets",
    "published_points",
    "published_source",
    "published_table",
    "read_reasons",
    "read_scores",
    "read_votes",
    "reasons_path",
    "recover_counts",
    "resolve_dataset",
    "shared_documents",
    "simulate_votes",
    "table_columns",
]
