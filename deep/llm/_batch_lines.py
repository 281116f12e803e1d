"""The lines of a batch's result files: found by the request, checked, and read without secrets."""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TypedDict, cast

from deep._text import is_storable
from deep.llm._client import reply_error
from deep.llm._errors import CallError
from deep.llm._reply import MOST_VALUES, Reply, checked_reply, is_shallow
from deep.llm._request import json_text
from deep.llm._secrets import Redactor

LONGEST_LINE = 8 << 20
"""Bytes of a line that can be a result, as of any reply."""


class BatchResponse(TypedDict, total=False):
    """The reply inside a line: its HTTP status and its body."""

    status_code: int
    body: object


class BatchLine(TypedDict, total=False):
    """One line of a result file."""

    custom_id: str
    response: BatchResponse | None
    error: dict[str, object] | None


class BatchLines:
    """The lines of result files by custom id; only their places are held in memory.

    Attributes
    ----------
    broken : int
        Lines that are no result of a request.
    contradicting : set of str
        Custom ids with two results that differ.
    """

    def __init__(self, paths: Iterable[Path], redact: Redactor) -> None:
        self.broken = 0
        self.contradicting: set[str] = set()
        self._redact = redact
        self._places: dict[str, tuple[Path, int]] = {}
        for path in paths:
            with path.open("rb") as file:
                for at, line in placed_lines(file):
                    self._note(read_line(line.decode("utf-8-sig", errors="replace")), (path, at))

    def _note(self, line: "BatchLine | None", place: tuple[Path, int]) -> None:
        if line is None:
            self.broken += 1
        elif line["custom_id"] not in self._places:
            self._places[line["custom_id"]] = place
        elif result_of(line) != result_of(self._at(*self._places[line["custom_id"]])):
            self.contradicting.add(line["custom_id"])

    def keys(self) -> set[str]:
        """Return all custom ids."""
        return set(self._places)

    def get(self, key: str) -> "BatchLine":
        """Return the result of one request, without secrets.

        Raises
        ------
        CallError
            There is none, or there are two that contradict each other.
        """
        if key in self.contradicting:
            raise CallError("broken", "the batch has two results for this request, which contradict each other")
        if key not in self._places and self.broken:
            raise CallError("broken", "the batch has lines that cannot be read, and none for this request")
        if key not in self._places:
            raise CallError("expired", "the batch ended without this request", reached=False)
        return self._at(*self._places[key])

    def _at(self, path: Path, at: int) -> "BatchLine":
        with path.open("rb") as file:
            file.seek(at)
            line = read_line(self._redact(file.readline(LONGEST_LINE).decode("utf-8-sig", errors="replace")))
        assert line is not None, "a line that could be read before"
        return line


def placed_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, each with its place; of one that is too long for a result, the beginning."""
    at = 0
    while line := file.readline(LONGEST_LINE):
        start, rest = at, line
        at += len(line)
        while len(rest) == LONGEST_LINE and not rest.endswith(b"\n"):
            rest = file.readline(LONGEST_LINE)
            at += len(rest)
        if line.strip():
            yield start, line


def read_line(line: str) -> BatchLine | None:
    """Return a line of a result file; None where it is no result of a request."""
    if sum(map(line.count, ",[{")) > MOST_VALUES:
        return None
    try:
        entry = json.loads(line, parse_constant=str, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or not is_shallow(entry):
        return None
    name = entry.get("custom_id")
    if not isinstance(name, str) or not is_storable(name):
        return None
    response, error = entry.get("response"), entry.get("error")
    if not isinstance(response, dict | None) or not isinstance(error, dict | None):
        return None
    return cast(BatchLine, entry) if _is_status((response or {}).get("status_code")) else None


def _number(digits: str) -> float | str:
    """Return a number; one beyond what a float holds as it is written, since JSON cannot say infinity."""
    number = float(digits)
    return number if math.isfinite(number) else digits


def _is_status(status: object) -> bool:
    return status is None or (isinstance(status, int) and not isinstance(status, bool) and 100 <= status < 600)


def reply_in(line: BatchLine) -> tuple[Reply, object]:
    """Return the reply in a line, and its body.

    Raises
    ------
    CallError
        It holds none, or an error beside it.
    """
    response, error = line.get("response") or {}, line.get("error") or {}
    body = response.get("body")
    raw = json_text(body)
    if response.get("status_code") != 200:
        raise reply_error(response.get("status_code"), raw, error)
    if error:
        message = reply_error(200, "", error).message
        raise CallError("broken", f"the line has an answer and an error: {message}", status=200, body=raw)
    return checked_reply(body, raw), body


def result_of(line: BatchLine) -> tuple[object, ...]:
    """Return the parts of a result in which two lines about one request must agree; ids and times may differ."""
    response = line.get("response") or {}
    body = response.get("body")
    answer = body.get("choices") if isinstance(body, dict) and "choices" in body else body
    return response.get("status_code"), answer, line.get("error")
