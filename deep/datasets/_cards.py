"""Dataset cards: sizes, class balance, lengths of texts, and numbers of documents."""

from array import array
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from deep.datasets._leakage import text_key
from deep.records import Example


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many words texts have: white-space separated, the median and the 90th percentile."""

    median: float
    p90: float


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """The card of one dataset.

    Parameters
    ----------
    dataset : str
    n : int
        Examples.
    consistent, inconsistent, unlabeled : int
        Of them.
    documents : int
        Distinct document ids; where an example has none, distinct sources.
    without_source : int
        Examples whose source is not there.
    source_words, claim_words : Lengths or None
        None where there is no text.
    """

    dataset: str
    n: int
    consistent: int
    inconsistent: int
    unlabeled: int
    documents: int
    without_source: int
    source_words: Lengths | None
    claim_words: Lengths | None

    @property
    def labeled(self) -> int:
        """The labeled examples."""
        return self.consistent + self.inconsistent

    @property
    def share_consistent(self) -> float | None:
        """The class balance: the consistent share of the labeled examples, in [0, 1]; None without labels."""
        return self.consistent / self.labeled if self.labeled else None

    def as_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return {**asdict(self), "share_consistent": self.share_consistent}


class _Count:
    """Eight bytes for the document and four for each length, whatever the texts."""

    def __init__(self) -> None:
        self.labels: dict[int | None, int] = {0: 0, 1: 0, None: 0}
        self.documents, self.source, self.claim = array("q"), array("L"), array("L")

    def add(self, example: Example) -> None:
        self.labels[example.label] += 1
        document = example.document_id
        self.documents.append(text_key(example.source) if document is None else hash(document))
        if example.source:
            self.source.append(len(example.source.split()))
        self.claim.append(len(example.claim.split()))

    def card(self, dataset: str) -> DatasetCard:
        n = len(self.documents)
        return DatasetCard(
            dataset=dataset,
            n=n,
            consistent=self.labels[1],
            inconsistent=self.labels[0],
            unlabeled=self.labels[None],
            documents=len(np.unique(np.frombuffer(self.documents, dtype=np.int64))),
            without_source=n - len(self.source),
            source_words=_lengths(self.source),
            claim_words=_lengths(self.claim),
        )


def describe_examples(examples: Iterable[Example]) -> list[DatasetCard]:
    """Return a card for each dataset, sorted by name; the examples are gone through once.

    Parameters
    ----------
    examples : iterable of Example

    Examples
    --------
    >>> from deep import Example
    >>> from deep.datasets import describe_examples
    >>> card, = describe_examples([Example("It rained all day.", "It was wet.", "1", 1, "weather")])
    >>> card.dataset, card.n, card.share_consistent, card.source_words.median
    ('weather', 1, 1.0, 4.0)
    """
    counts: dict[str, _Count] = {}
    for example in examples:
        counts.setdefault(str(example.dataset), _Count()).add(example)
    return [counts[name].card(name) for name in sorted(counts)]


def _lengths(words: "array[int]") -> Lengths | None:
    if not words:
        return None
    median, p90 = np.percentile(np.asarray(words), [50, 90])
    return Lengths(float(median), float(p90))
