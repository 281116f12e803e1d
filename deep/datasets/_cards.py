"""Dataset cards: sizes, class balance, lengths of texts, and numbers of documents; what `deep data` prints."""

import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b

import numpy as np

from deep._util.files import JsonObject
from deep._util.names import format_table
from deep.datasets import benchmarks
from deep.datasets._examples import Examples
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


def text_key(text: str) -> int:
    """Return a 64-bit hash of a text that white space, case and Unicode's ways to write a letter do not change."""
    # Copies of a text differ in white space, case and ligatures, and are one document.
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
    # Numbers alone are held; the texts are gone through again only for documents that were found.
    keys, places, documents = array("q"), array("q"), array("q")
    for place, document, source in _sightings(parts):
        keys.append(_key(document, source))
        places.append(hash(place))
        documents.append(len(documents) if document is None else hash(document))
    across = _keys_with_several_values(keys, places)
    within = _keys_with_several_values(keys, documents) - across
    return _report(parts, across, "datasets") + _report(parts, within, "folds")


def _sightings(parts: Mapping[str, Iterable[Example] | VoteMatrix]) -> Iterator[tuple[str, str | None, str]]:
    """Yield the place of each example, its document id and its source."""
    for part, examples in parts.items():
        prefix = f"{part}: " if len(parts) > 1 else ""
        if isinstance(examples, VoteMatrix):
            if examples.document_ids is not None:
                for dataset, document in zip(examples.datasets, examples.document_ids, strict=True):
                    yield f"{prefix}{dataset}", document, ""
        else:
            for example in examples:
                if example.source or example.document_id is not None:
                    yield f"{prefix}{example.dataset}", example.document_id, example.source


def _key(document: str | None, source: str) -> int:
    return text_key(source) if source else hash(("document_id", document))


def _keys_with_several_values(keys: "array[int]", values: "array[int]") -> set[int]:
    """Return the keys that come with more than one value."""
    if not keys:
        return set()
    pairs = np.unique(np.stack([np.frombuffer(keys, np.int64), np.frombuffer(values, np.int64)], axis=1), axis=0)
    result, counts = np.unique(pairs[:, 0], return_counts=True)
    return set(result[counts > 1].tolist())


def _report(parts: Mapping[str, Iterable[Example] | VoteMatrix], keys: set[int], kind: str) -> list[SharedDocument]:
    if not keys:
        return []
    result: dict[int, SharedDocument] = {}
    for place, document, source in _sightings(parts):
        key = _key(document, source)
        if key in keys:
            by, name = ("text", source[:60]) if source else ("document_id", document)
            shared = result.setdefault(key, SharedDocument(kind, by, str(name), {}))
            shared.places[place] = shared.places.get(place, 0) + 1
    return list(result.values())


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
        Its name.
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


class _DatasetCounts:
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
        Of one dataset or several.

    Examples
    --------
    >>> from deep import Example
    >>> from deep.datasets import describe_examples
    >>> card, = describe_examples([Example("It rained all day.", "It was wet.", "1", 1, "weather")])
    >>> card.dataset, card.n, card.share_consistent, card.source_words.median
    ('weather', 1, 1.0, 4.0)
    """
    counts: dict[str, _DatasetCounts] = {}
    for example in examples:
        counts.setdefault(str(example.dataset), _DatasetCounts()).add(example)
    return [counts[name].card(name) for name in sorted(counts)]


def _lengths(words: "array[int]") -> Lengths | None:
    if not words:
        return None
    median, p90 = np.percentile(np.asarray(words), [50, 90])
    return Lengths(float(median), float(p90))


# The most findings that are printed one by one; JSON has all.
MAX_SHOWN = 20

# The state of a file of a benchmark, in words.
FILE_STATE_WORDS = {
    "absent": "not here",
    "differs": "DIFFERS from the published file",
    "unverified": "here; no checksum of the published file is known",
    "verified": "here; its SHA-256 matches the published file",
}


def benchmark_rows() -> list[JsonObject]:
    """Return every benchmark with its licence and its folder; None where its files are not here."""
    folders = {name: benchmarks.find_folder(benchmark) for name, benchmark in benchmarks.BENCHMARKS.items()}
    return [
        {
            "name": name,
            "title": benchmark.title,
            "licence": benchmark.licence,
            "commercial": benchmark.commercial,
            "folder": None if folders[name] is None else str(folders[name]),
            "url": benchmark.url,
        }
        for name, benchmark in benchmarks.BENCHMARKS.items()
    ]


def benchmarks_text(rows: Sequence[JsonObject]) -> str:
    """Return the benchmarks as a table, and how to get those that are not here."""
    use = {True: "yes", False: "NO", None: "not stated"}
    cells = [
        (row["name"], "yes" if row["folder"] else "no", row["licence"], use[row["commercial"]], row["title"])
        for row in rows
    ]
    advice = [
        f"{row['name']}: {benchmarks.how_to_get_files(benchmarks.BENCHMARKS[row['name']])}"
        for row in rows
        if row["folder"] is None
    ]
    text = format_table([("NAME", "HERE", "LICENCE", "COMMERCIAL USE", "AN EXAMPLE IS"), *cells])
    return "\n".join([text, *(["", "not here:", *advice] if advice else [])])


def card_of(examples: Examples, name: str) -> tuple[JsonObject, str]:
    """Return the card of a benchmark or a file of examples, as JSON values and for people."""
    about, cards = _described(examples, name), describe_examples(examples)
    text = f"{_benchmark_text(about)}\n\n{_cards_text(cards)}"
    return {**about, "datasets": [card.as_dict() for card in cards]}, text


def check_of(examples: Examples, name: str, *, strict: bool) -> tuple[JsonObject, str]:
    """Read examples for their faults; return how many there are, and the line that says it."""
    n, cards = examples.check(strict=strict), describe_examples(examples)
    labeled, incomplete = sum(card.labeled for card in cards), sum(not example.has_texts for example in examples)
    names = [card.dataset for card in cards]
    values = {"name": name, "n": n, "labeled": labeled, "incomplete": incomplete, "datasets": names}
    return values, f"{name}: {n:,} examples, {labeled:,} labeled, in {', '.join(names)}"


def _described(examples: Examples, name: str) -> JsonObject:
    """Return a benchmark's title, licence, source and the state of its files; of a file its name alone."""
    if not isinstance(examples, benchmarks.BenchmarkExamples):
        return {"file": name}
    benchmark = examples.benchmark
    files = {
        file.name: benchmarks.checksum_state(file, examples.folder)
        for file in benchmark.files
        if not benchmark.any_file or (examples.folder / file.name).is_file()
    }
    return {
        "name": examples.name,
        "title": benchmark.title,
        "licence": benchmark.licence,
        "commercial": benchmark.commercial,
        "terms": benchmark.terms,
        "url": benchmark.url,
        "citation": benchmark.citation,
        "note": benchmark.note,
        "folder": str(examples.folder),
        "files": files,
        "counts": {} if benchmark.count is None else benchmark.count(examples.folder),
    }


def _benchmark_text(about: JsonObject) -> str:
    """Return the lines above a card."""
    if "file" in about:
        return str(about["file"])
    lines = [f"{about['name']}: {about['title']}"]
    lines += [f"  licence   {about['terms']}", f"  source    {about['url']} ({about['citation']})"]
    lines += [f"  note      {about['note']}"] if about["note"] else []
    lines += [f"  folder    {about['folder']}"]
    lines += [f"  file      {name}: {FILE_STATE_WORDS[state]}" for name, state in about["files"].items()]
    return "\n".join([*lines, *(f"  count     {n:,} {what}" for what, n in about["counts"].items())])


def _cards_text(cards: Sequence[DatasetCard]) -> str:
    """Return the cards as a table, with a line for all of them where they are several."""
    head = ("DATASET", "N", "CONSISTENT", "NOT", "UNLABELED", "SHARE", "DOCUMENTS", "SOURCE WORDS", "CLAIM WORDS")
    rows = [head, *map(_row, cards)]
    if len(cards) > 1:
        n, yes, no, unknown, documents = (
            sum(getattr(card, name) for card in cards)
            for name in ("n", "consistent", "inconsistent", "unlabeled", "documents")
        )
        rows.append(("all", f"{n:,}", f"{yes:,}", f"{no:,}", f"{unknown:,}", _share(yes, no), f"{documents:,}", "", ""))
    without = sum(card.without_source for card in cards)
    notes = [f"{without:,} examples have no source here: they can be counted, not judged"] if without else []
    return "\n".join([format_table(rows, right=len(head) - 1), "words: median (90th percentile)", *notes])


def _row(card: DatasetCard) -> tuple[str, ...]:
    counts = (card.n, card.consistent, card.inconsistent, card.unlabeled)
    return (
        card.dataset,
        *(f"{count:,}" for count in counts),
        _share(card.consistent, card.inconsistent),
        f"{card.documents:,}",
        *("-" if w is None else f"{w.median:,.0f} ({w.p90:,.0f})" for w in (card.source_words, card.claim_words)),
    )


def _share(consistent: int, inconsistent: int) -> str:
    labeled = consistent + inconsistent
    return f"{100 * consistent / labeled:.1f} %" if labeled else "-"


def leakage_text(shared: Sequence[SharedDocument]) -> str:
    """Return the shared documents as text, the first few one by one."""
    if not shared:
        return "no document is in several places"
    across = sum(document.kind == "datasets" for document in shared)
    lines = [
        f"in several datasets or files: {across:,} documents; in one dataset under several document ids or none, so "
        f"folds may split them: {len(shared) - across:,}"
    ]
    for one in shared[:MAX_SHOWN]:
        places = ", ".join(f"{place} ({n:,})" for place, n in one.places.items())
        by = "same text" if one.by == "text" else "same id, which may be chance"
        lines.append(f"  {one.document!r} ({by}): {places}")
    more = len(shared) - MAX_SHOWN
    return "\n".join([*lines, *([f"and {more:,} more; --json prints all"] if more > 0 else [])])
