"""RAGTruth: answers of retrieval-augmented models with hallucinated spans (Niu et al., 2024, arXiv:2401.00396).

The repository ParticleMedia/RAGTruth publishes ``dataset/response.jsonl`` and ``dataset/source_info.jsonl`` (its
README.md). As in the authors' ``baseline/prepare_dataset.py``, the test split without responses of poor quality is
taken, and the reference is the article, the passages, or the data.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from deep.datasets._rows import FileRow
from deep.datasets.benchmarks._read import rows_of
from deep.records import Example

RESPONSES, SOURCES = "response.jsonl", "source_info.jsonl"


def read_ragtruth(folder: Path) -> Iterator[Example]:
    """Yield the responses of the test split; one without a hallucinated span is consistent."""
    sources = {str(row["source_id"]): row for row in rows_of(folder / SOURCES, ("source_id", "source_info"))}
    columns = ("id", "source_id", "labels", "split", "quality", "response")
    for row in rows_of(folder / RESPONSES, columns):
        if (row["split"], row["quality"]) == ("test", "good"):
            document = str(row["source_id"])
            source = _reference(sources[document])
            yield Example(source, row["response"], str(row["id"]), int(not row["labels"]), "ragtruth", document)


def _reference(row: FileRow) -> str:
    info = row["source_info"]
    if isinstance(info, str):
        return info
    return str(info["passages"]) if "passages" in info else json.dumps(info, ensure_ascii=False)
