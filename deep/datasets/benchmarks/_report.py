"""The text that ``deep data`` prints: cards, tables and findings."""

from collections.abc import Sequence

from deep._util.files import JsonObject
from deep._util.names import table
from deep.datasets._cards import DatasetCard, Lengths, SharedDocument, describe_examples
from deep.datasets._examples import Examples
from deep.datasets.benchmarks._find import BENCHMARKS, BenchmarkExamples, checksum_state, find_folder, what_to_do

SHOWN = 20
"""Findings that are printed one by one; JSON has all."""

STATES = {
    "absent": "not here",
    "differs": "DIFFERS from the published file",
    "unverified": "here; no checksum of the published file is known",
    "verified": "here; its SHA-256 is that of the published file",
}


def benchmark_rows() -> list[JsonObject]:
    """Return every benchmark with its licence and its folder; None where its files are not here."""
    folders = {name: find_folder(benchmark) for name, benchmark in BENCHMARKS.items()}
    return [
        {
            "name": name,
            "title": benchmark.title,
            "licence": benchmark.licence,
            "commercial": benchmark.commercial,
            "folder": None if folders[name] is None else str(folders[name]),
            "url": benchmark.url,
        }
        for name, benchmark in BENCHMARKS.items()
    ]


def benchmarks_text(rows: Sequence[JsonObject]) -> str:
    """Return the benchmarks as a table, and how to get those that are not here."""
    use = {True: "yes", False: "NO", None: "not stated"}
    cells = [
        (row["name"], "yes" if row["folder"] else "no", row["licence"], use[row["commercial"]], row["title"])
        for row in rows
    ]
    advice = [f"{row['name']}: {what_to_do(BENCHMARKS[row['name']])}" for row in rows if row["folder"] is None]
    text = table([("NAME", "HERE", "LICENCE", "COMMERCIAL USE", "AN EXAMPLE IS"), *cells])
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
    if not isinstance(examples, BenchmarkExamples):
        return {"file": name}
    benchmark = examples.benchmark
    files = {
        file.name: checksum_state(file, examples.folder)
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
    lines += [f"  file      {name}: {STATES[state]}" for name, state in about["files"].items()]
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
    return "\n".join([table(rows, right=len(head) - 1), "words: median (90th percentile)", *notes])


def _row(card: DatasetCard) -> tuple[str, ...]:
    counts = (card.n, card.consistent, card.inconsistent, card.unlabeled)
    return (
        card.dataset,
        *(f"{count:,}" for count in counts),
        _share(card.consistent, card.inconsistent),
        f"{card.documents:,}",
        _words(card.source_words),
        _words(card.claim_words),
    )


def _share(consistent: int, inconsistent: int) -> str:
    labeled = consistent + inconsistent
    return f"{100 * consistent / labeled:.1f} %" if labeled else "-"


def _words(lengths: Lengths | None) -> str:
    return "-" if lengths is None else f"{lengths.median:,.0f} ({lengths.p90:,.0f})"


def leakage_text(shared: Sequence[SharedDocument]) -> str:
    """Return the shared documents as text, the first few one by one."""
    if not shared:
        return "no document is in several places"
    across = sum(document.kind == "datasets" for document in shared)
    lines = [
        f"in several datasets or files: {across:,} documents; in one dataset under several document ids or none, so "
        f"that folds grouped by document may part them: {len(shared) - across:,}"
    ]
    lines += [_finding(document) for document in shared[:SHOWN]]
    more = len(shared) - SHOWN
    return "\n".join([*lines, *([f"and {more:,} more; --json prints all"] if more > 0 else [])])


def _finding(shared: SharedDocument) -> str:
    places = ", ".join(f"{place} ({n:,})" for place, n in shared.places.items())
    by = "same text" if shared.by == "text" else "same id, which may be chance"
    return f"  {shared.document!r} ({by}): {places}"
