"""HaluEval summarization: a right and a hallucinated summary a document (Li et al., 2023, arXiv:2305.11747).

The repository RUCAIBox/HaluEval publishes ``data/summarization_data.json``, an object a line with `document`,
`right_summary` and `hallucinated_summary` (README.md, evaluation/evaluate.py), 10,000 lines. The DEEP paper tests on a
balanced random sample of 3,000 summaries, which it does not publish; this is another one, drawn alike.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from deep.datasets._rows import FileRow
from deep.datasets.benchmarks._read import rows_of
from deep.records import Example

NAME = "summarization_data.json"
SIZE = 3000
SEED = 0
LABELS = {"hallucinated_summary": 0, "right_summary": 1}


def read_halueval(folder: Path) -> Iterator[Example]:
    """Yield the sample, in the order of the file.

    The documents are put into the order of SHA-256 of ``{seed}:{number}``; of the first 1,500 the right summary is
    taken, of the next 1,500 the hallucinated one. So no document comes twice, and the sample is the same everywhere.
    """
    chosen = _chosen(sum(1 for _ in _rows(folder)))
    for number, row in enumerate(_rows(folder), start=1):
        kind = chosen.get(number)
        if kind is not None:
            identifier = f"{number}|{kind.removesuffix('_summary')}"
            yield Example(row["document"], row[kind], identifier, LABELS[kind], "halueval-summarization", str(number))


def _rows(folder: Path) -> Iterator[FileRow]:
    return rows_of(folder / NAME, ("document", *LABELS), ".jsonl")


def _chosen(n: int) -> dict[int, str]:
    """Return which summary to take of which of `n` documents, counted from 1."""
    half = min(SIZE, n) // 2
    drawn = sorted(range(1, n + 1), key=lambda number: sha256(f"{SEED}:{number}".encode()).digest())
    right, hallucinated = drawn[:half], drawn[half : 2 * half]
    return dict.fromkeys(right, "right_summary") | dict.fromkeys(hallucinated, "hallucinated_summary")
