"""Dataset cards: sizes, class balance, lengths of texts, and numbers of documents."""

import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b

import numpy as np

from deep.records import Example, VoteMatrix


@dataclass(frozen=True, slots=True)
class SharedDocument:
    """A document that stands where it should not.

    Parameters
    ----------
    kind : {'datasets', 'folds'}
        ``datasets``: in several datasets or parts, so that it may be in training and in test data at once;
        ``folds``: in one dataset without one document id, so that folds grouped by document may part it.
    by : {'document_id', 'text'}
        What the places share: the text, or, where there is none, only the id, which may be chance.
    document : str
        The beginning of the text, or the id.
    places : dict of str to int
        Dataset (and part, where several were given) to the number of examples.
    """

    kind: str
    by: str
    document: str
    places: dict[str, int]


@dataclass(frozen=True, slots=True)
class _Sighting:
    place: str
    document_id: str | None
    source: str


def text_key(text: str) -> int:
    """Return a 64-bit hash of a text that white space, case and Unicode's ways to write a letter do not change."""
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return int.from_bytes(blake2b(plain.encode(errors="replace"), digest_size=8).digest(), "big", signed=True)


def shared_documents(
    examples: Iterable[Example] | VoteMatrix | Mapping[str, Iterable[Example] | VoteMatrix],
) -> list[SharedDocument]:
    """Return the documents that are in several datasets, or that folds grouped by document may part.

    Two examples have the same document if their sources are the same but for white space, case and Unicode form; where
    there are no sources, as in a vote matrix, if they have the same document id.

    Parameters
    ----------
    examples : Examples or other iterable of Example that begins anew, VoteMatrix, or mapping of str to them
        What is trained and tested on; a mapping names its parts, as in ``{"train": ..., "test": ...}``. Gone through
        twice, with 20 bytes kept an example.

    Returns
    -------
    list of SharedDocument
        First those in several places, then those in one.

    Examples
    --------
    >>> from deep.datasets import examples_from_dataset, shared_documents
    >>> rows = [{"source": "It rained.", "claim": "Wet.", "dataset": name, "example_id": name} for name in ("a", "b")]
    >>> shared_documents(examples_from_dataset(rows))[0].places
    {'a': 1, 'b': 1}
    """
    parts = examples if isinstance(examples, Mapping) else {"": examples}
    keys, places, documents = array("q"), array("q"), array("q")
    for sighting in _sightings(parts):
        keys.append(_key(sighting))
        places.append(hash(sighting.place))
        documents.append(len(documents) if sighting.document_id is None else hash(sighting.document_id))
    across = _parted(keys, places)
    within = _parted(keys, documents) - across
    return _report(parts, across, "datasets") + _report(parts, within, "folds")


def _sightings(parts: Mapping[str, Iterable[Example] | VoteMatrix]) -> Iterator[_Sighting]:
    for part, examples in parts.items():
        prefix = f"{part}: " if len(parts) > 1 else ""
        if isinstance(examples, VoteMatrix):
            if examples.document_ids is not None:
                for dataset, document in zip(examples.datasets, examples.document_ids, strict=True):
                    yield _Sighting(f"{prefix}{dataset}", document, "")
        else:
            for example in examples:
                if example.source or example.document_id is not None:
                    yield _Sighting(f"{prefix}{example.dataset}", example.document_id, example.source)


def _key(sighting: _Sighting) -> int:
    return text_key(sighting.source) if sighting.source else hash(("document_id", sighting.document_id))


def _parted(keys: "array[int]", values: "array[int]") -> set[int]:
    """Return the keys that come with more than one value."""
    if not keys:
        return set()
    pairs = np.unique(np.stack([np.frombuffer(keys, np.int64), np.frombuffer(values, np.int64)], axis=1), axis=0)
    found, counts = np.unique(pairs[:, 0], return_counts=True)
    return set(found[counts > 1].tolist())


def _report(parts: Mapping[str, Iterable[Example] | VoteMatrix], keys: set[int], kind: str) -> list[SharedDocument]:
    if not keys:
        return []
    found: dict[int, SharedDocument] = {}
    for sighting in _sightings(parts):
        key = _key(sighting)
        if key in keys:
            by, document = ("text", sighting.source[:60]) if sighting.source else ("document_id", sighting.document_id)
            shared = found.setdefault(key, SharedDocument(kind, by, str(document), {}))
            shared.places[sighting.place] = shared.places.get(sighting.place, 0) + 1
    return list(found.values())


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
