"""FECT: claims about contact-centre conversations, factual or not (Shin et al., 2025, arXiv:2508.00889)."""

from collections.abc import Iterator
from pathlib import Path

from deep.datasets.benchmarks._read import rows_of
from deep.datasets.benchmarks._record import Benchmark, BenchmarkFile
from deep.records import Example

__all__ = ["FECT"]

COMMIT = "268302bf8281f88ca553733ea25308278aa9302c"
NAME = "fect_benchmark.csv"


def read(folder: Path) -> Iterator[Example]:
    """Yield a claim and its conversation a row, in the order of ``data/fect_benchmark.csv`` of cresta/fect.

    The file has no identifiers, so a row's number, from 1, is its id.
    """
    rows = rows_of(folder / NAME, ("conversation", "claim", "claim_is_factual"))
    for number, row in enumerate(rows, start=1):
        label = {"true": 1, "false": 0}[row["claim_is_factual"].strip().lower()]
        yield Example(row["conversation"], row["claim"], str(number), label, "fect")


FECT = Benchmark(
    name="fect",
    title="a claim about a contact-centre conversation",
    licence="CC-BY-NC-4.0",
    commercial=False,
    url="https://github.com/cresta/fect",
    citation="arXiv:2508.00889",
    folder="fect",
    files=(
        BenchmarkFile(
            name=NAME,
            url=f"https://raw.githubusercontent.com/cresta/fect/{COMMIT}/data/{NAME}",
            sha256="e6c4c6155c145437ec46aec951a22b6b59c66e3ca84aec71df6d6113c40a8af6",
        ),
    ),
    read=read,
)
