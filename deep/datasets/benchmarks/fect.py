"""FECT: claims about contact-centre conversations, factual or not (Shin et al., 2025, arXiv:2508.00889)."""

from collections.abc import Iterator
from pathlib import Path

from deep.datasets.benchmarks._read import rows_of
from deep.records import Example

NAME = "fect_benchmark.csv"


def read_fect(folder: Path) -> Iterator[Example]:
    """Yield a claim and its conversation a row, in the order of ``data/fect_benchmark.csv`` of cresta/fect.

    The file has no identifiers, so a row's number, from 1, is its id.
    """
    rows = rows_of(folder / NAME, ("conversation", "claim", "claim_is_factual"))
    for number, row in enumerate(rows, start=1):
        label = {"true": 1, "false": 0}[row["claim_is_factual"].strip().lower()]
        yield Example(row["conversation"], row["claim"], str(number), label, "fect")
