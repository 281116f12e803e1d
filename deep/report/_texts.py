"""The texts of a report: sources, claims, rationales and evidence of as many items as a page holds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deep._checks import Positions
from deep._files import JsonObject
from deep.datasets import FoundTexts, JudgmentDetail, Passage, read_item_reasons, read_judgments, read_texts
from deep.records import Example
from deep.report._items import MOST_ITEMS, item_columns
from deep.report._material import ReportMaterial

Item = tuple[str, str]
"""A dataset and the id of an item in it."""

MOST_BYTES = 1_500_000
"""Bytes of texts, rationales and evidence in a page; the other items of it are left out."""

LONGEST_TEXT = 20_000
"""Characters of a source or a claim; what is beyond is cut, and said to be."""

NO_TEXT = "Texts in this file: none, as --no-text asks; ids stand in place of them."


@dataclass
class TextColumns:
    """Texts of items as JSON values, in the order of the items.

    Parameters
    ----------
    sources : dict of str to int
        Each source once, with its number.
    claim, source : list
        A claim, and the number of its source; None where there is no text.
    said : dict of str to dict
        By position of the item and number of the judge: reason, rationale and passages.
    size : int
        Bytes so far.
    """

    sources: dict[str, int] = field(default_factory=dict)
    claim: list[str | None] = field(default_factory=list)
    source: list[int | None] = field(default_factory=list)
    said: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    size: int = 0

    def add(self, example: Example | None, said: Mapping[str, JsonObject]) -> bool:
        """Add the texts of the next item, and return whether there was room."""
        claim, source = (None, None) if example is None else (_cut(example.claim), _cut(example.source))
        new = [text for text in (claim, source) if text is not None and text not in self.sources]
        size = len(json.dumps([*new, said], ensure_ascii=False).encode("utf-8", "replace"))
        if self.claim and self.size + size > MOST_BYTES:
            return False
        self.size += size
        if said:
            self.said[str(len(self.claim))] = dict(said)
        self.claim.append(claim)
        self.source.append(None if source is None else self.sources.setdefault(source, len(self.sources)))
        return True

    def values(self) -> dict[str, object]:
        """Return the columns; none where no item has a text."""
        texts = {"claim": self.claim, "source": self.source, "sources": list(self.sources)}
        known = any(claim is not None for claim in self.claim)
        return {**(texts if known else {}), **({"said": self.said} if self.said else {})}


@dataclass(frozen=True)
class TextChoice:
    """Where the texts of a report come from.

    Parameters
    ----------
    examples : str or Path, optional
        A benchmark or a file, in place of what the votes remember.
    columns : mapping of str to str, optional
        Field to column of it.
    wanted : bool, default=True
        False for a report without sources, claims, rationales and evidence.
    """

    examples: str | Path | None = None
    columns: Mapping[str, str] | None = None
    wanted: bool = True


def items_with_texts(
    material: ReportMaterial, order: Positions, choice: TextChoice
) -> tuple[Positions, JsonObject, list[str]]:
    """Return the items that the page holds, their columns with texts, and sentences on the texts that are in it.

    Parameters
    ----------
    material : ReportMaterial
        With scored votes.
    order : ndarray of int
        The items, those to be shown for certain first.
    choice : TextChoice
    """
    scored = material.scored
    assert scored is not None  # the caller's branch
    rows = order[:MOST_ITEMS]
    keys = [(str(scored.votes.datasets[row]), str(scored.votes.example_ids[row])) for row in rows]
    found = _found(material.tables, keys, choice)
    names = scored.votes.voter_names
    said = said_by_judges(material.tables, keys, names, found.examples) if choice.wanted else {}
    texts = TextColumns()
    for key in keys:
        if not texts.add(found.examples.get(key), said.get(key, {})):
            break
    rows = rows[: len(texts.claim)]
    columns = item_columns(scored, rows) | texts.values()
    return rows, columns, list(_sentences(texts, found, choice))


def _found(tables: Sequence[str], keys: Sequence[Item], choice: TextChoice) -> FoundTexts:
    if not choice.wanted or not (tables or choice.examples):
        return FoundTexts()
    return read_texts(tables, keys, examples=choice.examples, columns=choice.columns)


def _sentences(texts: TextColumns, found: FoundTexts, choice: TextChoice) -> Iterator[str]:
    if not choice.wanted:
        yield NO_TEXT
        return
    n = sum(claim is not None for claim in texts.claim)
    judged = sum(any(set(entry) - {"reason"} for entry in said.values()) for said in texts.said.values())
    if n:
        yield f"Texts in this file: {n:,} claims with their sources ({len(texts.sources):,} different ones)."
    else:
        yield "Texts in this file: no source and no claim; ids stand in place of them."
    if judged:
        yield f"It holds rationales or evidence of judges on {judged:,} items."
    yield from found.notes


def said_by_judges(
    tables: Sequence[str], keys: Sequence[Item], voters: Sequence[str], examples: Mapping[Item, Example]
) -> dict[Item, dict[str, JsonObject]]:
    """Return why there is no vote, the rationale and the passages, as the script of a page reads them.

    Parameters
    ----------
    tables : sequence of str
        Tables of votes, beside which judgments and reasons stand.
    keys : sequence of (dataset, item_id)
    voters : sequence of str
        By item, the numbers of those among them that said something are the keys of what is returned.
    examples : mapping of (dataset, item_id) to Example
        Their texts, in which passages have their places, in units of UTF-16.
    """
    at = {name: str(i) for i, name in enumerate(voters)}
    said: dict[Item, dict[str, JsonObject]] = {}
    for detail in read_judgments(tables, items=keys):
        key = detail.dataset, detail.item_id
        entry = _entry(detail, examples.get(key))
        if entry and detail.voter in at:
            said.setdefault(key, {})[at[detail.voter]] = entry
    for key, voter, reason in read_item_reasons(tables, items=keys):
        if voter in at:
            said.setdefault(key, {}).setdefault(at[voter], {})["reason"] = reason
    return said


def _entry(detail: JudgmentDetail, example: Example | None) -> JsonObject:
    rationale = {"rationale": _cut(detail.rationale)} if detail.rationale else {}
    passages = [_passage(passage, example) for passage in detail.passages]
    return {**rationale, **({"passages": passages} if passages else {})}


def _passage(passage: Passage, example: Example | None) -> JsonObject:
    """Return a passage; where the text is known, its place in units of UTF-16, as scripts count."""
    values = {"text": _cut(passage.text), "verdict": passage.verdict, "about": passage.about}
    known = {name: value for name, value in values.items() if value}
    text = None if example is None or passage.where is None else getattr(example, passage.where)
    if text is None or passage.start is None or passage.end is None:
        return known
    if not 0 <= passage.start < passage.end <= min(len(text), LONGEST_TEXT):
        return known
    start, end = (_utf16(text[:at]) for at in (passage.start, passage.end))
    known.pop("text", None)
    return known | {"where": passage.where, "start": start, "end": end}


def _utf16(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def _cut(text: str) -> str:
    beyond = len(text) - LONGEST_TEXT
    return text if beyond <= 0 else f"{text[:LONGEST_TEXT]}\n[cut here: {beyond:,} characters more]"
