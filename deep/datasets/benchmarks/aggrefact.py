"""AggreFact: summaries by fine-tuned state-of-the-art models (Tang et al., 2023, arXiv:2205.12854).

The repository Liyan06/AggreFact publishes ``data/aggre_fact_final.csv`` and its part by state-of-the-art models,
``data/aggre_fact_sota.csv``, with the columns dataset, origin, id, doc, summary, model_name, label, cut and the scores
of five systems (README.md). Which models count as state of the art is listed in its ``utils.py``.
"""

from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from deep.datasets.benchmarks._read import rows_of
from deep.datasets.benchmarks._record import Benchmark, BenchmarkFile
from deep.records import Example

__all__ = ["AGGREFACT_CNN", "AGGREFACT_XSUM"]

RAW = "https://raw.githubusercontent.com/Liyan06/AggreFact/52fffcec4bcfc35fc83f7bf88919532381f331b4/data"
NAMES = ("aggre_fact_sota.csv", "aggre_fact_final.csv")
COLUMNS = ("dataset", "origin", "id", "doc", "summary", "model_name", "label", "cut")
STATE_OF_THE_ART = {"BART", "Pegasus", "PegasusDynamic", "T5"}


def read(folder: Path, *, origin: str, name: str) -> Iterator[Example]:
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


def _benchmark(name: str, origin: str, title: str) -> Benchmark:
    return Benchmark(
        name=name,
        title=title,
        licence="no licence file",
        commercial=None,
        url="https://github.com/Liyan06/AggreFact",
        citation="arXiv:2205.12854",
        folder="aggrefact",
        files=(
            BenchmarkFile(name=NAMES[0], url=f"{RAW}/{NAMES[0]}"),
            BenchmarkFile(name=NAMES[1], by_hand="The whole benchmark, of which the first is a part; serves as well"),
        ),
        read=partial(read, origin=origin, name=name),
        any_file=True,
        note="The test cut of the summaries by state-of-the-art models (FTSOTA).",
    )


AGGREFACT_CNN = _benchmark("aggrefact-cnn", "cnndm", "a summary of a CNN or Daily Mail article")
AGGREFACT_XSUM = _benchmark("aggrefact-xsum", "xsum", "a one-sentence summary of a BBC article")
