"""LLM-AggreFact: claims of eleven datasets (Tang, Laban and Durrett, 2024, arXiv:2404.10774).

The Hugging Face dataset lytang/LLM-AggreFact publishes ``data/test-00000-of-00001.parquet`` with the columns dataset,
doc, claim, label and contamination_identifier (its dataset card), behind a consent form.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deep.datasets._registry import canonical_name
from deep.datasets.benchmarks._read import rows_of
from deep.records import Example

NAME = "data/test-00000-of-00001.parquet"


def read_llm_aggrefact(folder: Path) -> Iterator[Example]:
    """Yield the test claims; an id is the published name of the dataset and the claim's number in it, from 0."""
    seen: Counter[str] = Counter()
    documents: dict[tuple[str, int], str] = {}
    for row in rows_of(folder / NAME, ("dataset", "doc", "claim", "label")):
        published = row["dataset"]
        identifier = f"{published}-{seen[published]}"
        seen[published] += 1
        document = documents.setdefault((published, hash(row["doc"])), identifier)
        label = {0: 0, 1: 1}[int(row["label"])]
        yield Example(row["doc"], row["claim"], identifier, label, canonical_name(published), document)
