"""SummEdits: edited summaries in several domains (Laban et al., 2023, arXiv:2305.14540).

The repository salesforce/factualNLG publishes a JSON file a domain, ``data/summedits/summedits_{domain}.json``: a list
of objects with `id`, `doc`, `summary`, `label`. Read as well is one table of eight of the ten domains,
``texts.csv.gz``, with `item_id` (``domain|id``), `document`, `claim` and `label`.
"""

from collections.abc import Iterator
from pathlib import Path

from deep.datasets.benchmarks._read import read_document, rows_of
from deep.records import Example

DOMAINS = (
    "billsum",
    "ectsum",
    "news",
    "podcast",
    "qmsumm",
    "sales_call",
    "sales_email",
    "samsum",
    "scitldr",
    "shakespeare",
)
TABLE = "texts.csv.gz"


def read_summedits(folder: Path) -> Iterator[Example]:
    """Yield the pairs of every domain whose file is there; where none is, those of the table."""
    documents: dict[tuple[str, str], str] = {}
    for domain, identifier, source, claim, label in _pairs(folder):
        # One text comes under two identifiers; it is one document, and must not straddle a fold.
        document = documents.setdefault((domain, source), identifier.rsplit("_", 1)[0])
        yield Example(source, claim, identifier, label, f"summedits-{domain.replace('_', '-')}", document)


def _pairs(folder: Path) -> Iterator[tuple[str, str, str, str, int]]:
    published = [(domain, folder / f"summedits_{domain}.json") for domain in DOMAINS]
    found = [(domain, path) for domain, path in published if path.is_file()]
    for domain, path in found:
        for row in read_document(path):
            yield domain, str(row["id"]), row["doc"], row["summary"], int(row["label"])
    if not found:
        for row in rows_of(folder / TABLE, ("item_id", "document", "claim", "label")):
            domain, identifier = row["item_id"].split("|", 1)
            yield domain, identifier, row["document"], row["claim"], int(row["label"])
