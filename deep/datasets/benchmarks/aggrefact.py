"""AggreFact: summaries by fine-tuned state-of-the-art models (Tang et al., 2023, arXiv:2205.12854).

The repository Liyan06/AggreFact publishes ``data/aggre_fact_final.csv`` and its part by state-of-the-art models,
``data/aggre_fact_sota.csv``, with the columns dataset, origin, id, doc, summary, model_name, label, cut and the scores
of five systems (README.md). Which models count as state of the art is listed in its ``utils.py``.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deep.datasets.benchmarks._read import rows_of
from deep.records import Example

NAMES = ("aggre_fact_sota.csv", "aggre_fact_final.csv")
COLUMNS = ("dataset", "origin", "id", "doc", "summary", "model_name", "label", "cut")
STATE_OF_THE_ART = {"BART", "Pegasus", "PegasusDynamic", "T5"}


def read_aggrefact(folder: Path, *, origin: str, name: str) -> Iterator[Example]:
    """Yield the test summaries of one origin by state-of-the-art models, in the order of the file."""
    path = next(folder / file for file in NAMES if (folder / file).is_file())
    seen: Counter[str] = Counter()
    for row in rows_of(path, COLUMNS):
        if (row["origin"], row["cut"]) == (origin, "test") and row["model_name"] in STATE_OF_THE_ART:
            identifier = f"{row['dataset']}|{row['id']}|{row['model_name']}"
            seen[identifier] += 1
            again = f"|{seen[identifier]}" if seen[identifier] > 1 else ""
            label = {"0": 0, "1": 1}[row["label"].removesuffix(".0")]
            yield Example(row["doc"], row["summary"], f"{identifier}{again}", label, name, row["id"])
