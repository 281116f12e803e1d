"""Spans that other detectors found, and the sentences that they lie in."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from deep._files import JsonObject
from deep.datasets import ending_of, file_beside, read_judgments, read_rows, read_votes
from deep.exceptions import InputError
from deep.experiments.cognibench._methods import Method
from deep.experiments.cognibench._turns import LabeledTurn, letters_of
from deep.records import ABSTAIN

COLUMNS = ("turn_id", "item_id", "start", "end", "text", "spans")

BAD = ("FAIL", "hallucinated", "invented", "misleading", "speculative", "unsupported")
"""Verdicts of judges on the part of a response that they found wanting."""

Span = tuple[int, int]


def read_spans(given: str, turns: Sequence[LabeledTurn]) -> list[Method]:
    """Return the findings of other detectors: a sentence is hallucinated where one of their spans touches it.

    Parameters
    ----------
    given : str
        ``NAME=FILE``, or a file that is named after itself. CSV, JSONL or Parquet, a span a row: `turn_id` (or
        `item_id`), and `start` and `end` in characters of the response, or its `text`; a row without either says
        that the turn was read and nothing found. In JSON Lines a row may have a list `spans` of such objects, of
        pairs, or of texts. Or a table of votes on the turns: each voter whose evidence lies in the response.
    turns : sequence of LabeledTurn
        Those without a row are left open.

    Raises
    ------
    InputError
        The file cannot be read, no row is of these turns, or a span is none of the response.
    """
    name, _, place = given.rpartition("=")
    path = Path(place)
    if file_beside(path, "judgments").exists():
        return _voted(name, place, turns)
    responses = {turn.turn_id: turn.response for turn in turns}
    found: dict[str, list[Span]] = {}
    unaligned = []
    if ending_of(path) is None:
        raise InputError(f"`spans` must be a CSV, JSONL or Parquet file. Got {place!r}.")
    for number, (_, row) in enumerate(read_rows(path, COLUMNS, param="spans"), start=1):
        turn_id, at = str(row.get("turn_id") or row.get("item_id") or ""), f"in row {number} of {place!r}"
        if not turn_id:
            raise InputError(f"`spans` must name a turn_id in every row. Got none {at}.")
        if turn_id in responses:
            letters = found.setdefault(turn_id, [])
            for span in _spans_of(row, at):
                placed = _letters_between(responses[turn_id], span, at)
                letters += [placed] if placed else []
                unaligned += [] if placed else [f"{turn_id}, {span!r}"]
    if not found:
        raise InputError(f"`spans` must have rows of the turns that are measured. Got none in {place!r}.")
    judged = [_touched(turn, found.get(turn.turn_id)) for turn in turns]
    return [Method("spans", name or path.stem, "", judged, unaligned=tuple(unaligned))]


def _voted(name: str, place: str, turns: Sequence[LabeledTurn]) -> list[Method]:
    """Return the findings of the voters that pointed at parts of a response; a turn without a vote is left open."""
    votes = read_votes(place)
    row_of = {item: row for row, item in enumerate(votes.example_ids)}
    spans: dict[str, dict[str, list[Span]]] = {}
    responses = {turn.turn_id: turn.response for turn in turns}
    for detail in read_judgments(place):
        if detail.item_id in responses:
            found = spans.setdefault(detail.voter, {}).setdefault(detail.item_id, [])
            for passage in detail.passages:
                if passage.where == "claim" and passage.verdict in BAD and passage.start != passage.end:
                    at = f"of {detail.voter!r} in {place!r}"
                    span = _letters_between(responses[detail.item_id], [passage.start, passage.end], at)
                    found += [span] if span else []
    methods = []
    for voter, of_turns in spans.items():
        if any(of_turns.values()):
            cast = votes.votes[:, votes.voter_names.index(voter)]
            known = {turn: some for turn, some in of_turns.items() if cast[row_of[turn]] != ABSTAIN}
            judged = [_touched(turn, known.get(turn.turn_id)) for turn in turns]
            methods.append(Method("spans", name or voter, voter if name else "", judged))
    if not methods:
        raise InputError(
            f"`spans` must have a voter that points at parts of a response. Got none in {place!r}. "
            "Judges such as stepwise, direct, listed and tiered do."
        )
    return methods


def _spans_of(row: Mapping[str, object], at: str) -> Iterable[object]:
    """Return the spans of a row, as they are written there."""
    listed = row.get("spans")
    if isinstance(listed, str) and listed:
        try:
            listed = json.loads(listed)
        except ValueError:
            raise InputError(f"`spans` must be a JSON list. Got {listed!r} {at}.") from None
    if listed not in (None, ""):
        if not isinstance(listed, list):
            raise InputError(f"`spans` must be a list. Got {listed!r} {at}.")
        return listed
    empty = row.get("start") in (None, "") and row.get("text") in (None, "")
    return [] if empty else [{name: row.get(name) for name in ("start", "end", "text")}]


def _letters_between(response: str, span: object, at: str) -> Span | None:
    """Return the letters of a response that a span covers; None where its text is not in the response."""
    fields: JsonObject = span if isinstance(span, dict) else {"text": span}
    if isinstance(span, list | tuple) and len(span) == 2:
        fields = {"start": span[0], "end": span[1]}
    start, end = (_whole(fields.get(name)) for name in ("start", "end"))
    if start is not None and end is not None and 0 <= start < end <= len(response):
        before = list(accumulate((len(letters_of(character)) for character in response), initial=0))
        return before[start], before[end]
    text = fields.get("text")
    if start is None and isinstance(text, str) and letters_of(text):
        place = letters_of(response).find(letters_of(text))
        return (place, place + len(letters_of(text))) if place >= 0 else None
    raise InputError(f"`spans` must lie in the response, from 0 to {len(response)}. Got {span!r} {at}.")


def _whole(value: object) -> int | None:
    return int(value) if type(value) is int or (isinstance(value, str) and re.fullmatch(r"\d+", value)) else None


def _touched(turn: LabeledTurn, spans: Sequence[Span] | None) -> list[bool | None]:
    if spans is None:
        return [None] * len(turn.sentences)
    whole, at = letters_of(turn.response), 0
    touched: list[bool | None] = []
    for text in map(letters_of, turn.texts):
        # A few published sentences hold a slip of the pen, so that only their beginning stands in the response.
        begins = (whole.find(text[:n], at) for n in (len(text), 30, 12))
        start = next((place for place in begins if place >= 0), None)
        if start is None:
            touched.append(None if spans else False)
            continue
        end = at = min(start + len(text), len(whole))
        touched.append(any(first < end and last > start for first, last in spans))
    return touched
