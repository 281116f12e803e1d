"""Votes out: the Parquet files that come of examples, written a thousand rows at a time."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar
from uuid import uuid4

from deep._util.files import check_out, remember, whole_files
from deep.datasets import BESIDE, Passage, TextPlace, file_beside, file_metadata, judgments_schema, passages_of
from deep.prompt_pool import SearchableText
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import pyarrow as pa


TextPart = Literal["claim", "source"]

MOST_SOUGHT = 1000
"""Different passages of an example whose places are looked for, each in time by the length of its texts."""


class Places:
    """Finds passages in an example's source and claim; what does not count is that of :class:`SearchableText`.

    After the first `MOST_SOUGHT` different ones no further is looked for, and has no place.

    Parameters
    ----------
    example : Example
    """

    def __init__(self, example: Example) -> None:
        self._texts: dict[TextPart, str] = {"claim": example.claim, "source": example.source}
        self._known: dict[tuple[str, TextPart], TextPlace | None] = {}

    def in_source(self, text: str) -> TextPlace | None:
        """Return the place of a passage, first of all in the source."""
        return self._first(text, ("source", "claim"))

    def in_claim(self, text: str) -> TextPlace | None:
        """Return the place of a passage, first of all in the claim."""
        return self._first(text, ("claim", "source"))

    def _first(self, text: str, parts: tuple[TextPart, TextPart]) -> TextPlace | None:
        key = text, parts[0]
        if key not in self._known and len(self._known) < MOST_SOUGHT:
            self._known[key] = next(filter(None, (self._find(text, part) for part in parts)), None)
        return self._known.get(key)

    def _find(self, text: str, part: TextPart) -> TextPlace | None:
        start = self._texts[part].find(text)
        if start >= 0 and " " in text.strip():  # a whole chunk, as encoders give it: nothing needs folding
            return part, start, start + len(text)
        span = _searchable(self._texts[part]).find(text)
        return None if span is None else (part, *span)


@lru_cache(maxsize=16)
def _searchable(text: str) -> SearchableText:
    """Return a text as it is searched; claims on one source follow each other."""
    return SearchableText(text)


def located(judgment: Judgment, places: Places, *, claim_first: bool) -> tuple[Passage, ...]:
    """Return the evidence of a judgment, each piece with its place in the source or the claim.

    Parameters
    ----------
    judgment : Judgment
    places : Places
        Of the example that was judged.
    claim_first : bool
        Where to look first, as :attr:`Plan.claim_first` says.
    """
    return passages_of(judgment.evidence, places.in_claim if claim_first else places.in_source)


T = TypeVar("T")

ROWS_AT_ONCE = 1000


def chunks(values: Iterable[T], size: int = ROWS_AT_ONCE) -> Iterator[list[T]]:
    """Yield lists of at most `size` values."""
    left = iter(values)
    while chunk := list(islice(left, size)):
        yield chunk


class Row(NamedTuple):
    """One example with its judgments by voter."""

    example: Example
    judgments: Mapping[str, Judgment]


def output_paths(out: Path) -> dict[str, Path]:
    """Return the paths of the votes and of the files beside them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from deep.asking._vote_files import output_paths
    >>> output_paths(Path("votes.parquet"))["reasons"].name
    'votes.reasons.parquet'
    """
    return {"votes": out, **{kind: file_beside(out, kind) for kind in BESIDE}}


def check_outputs(out: Path) -> Path:
    """Return a path that votes and the files beside them can be written to; hours later these are as they are now."""
    check_out(out, [".parquet"])
    for path in output_paths(out).values():
        remember(path)
    return out


def place_of_votes(out: Path, stopped: str | None) -> Path:
    """Return where the votes of a run are written: those of a stopped one not over those of a run that was not.

    Examples
    --------
    >>> place_of_votes(Path("votes.parquet"), "budget").name
    'votes.parquet'
    """
    finished = stopped is not None and out.is_file() and not file_metadata(out).get("stopped")
    return out.with_name(f"{out.stem}.partial{out.suffix}") if finished else out


class Outputs:
    """Writes votes and the files beside them to temporary files, and moves them into place together at the end.

    Parameters
    ----------
    out : Path
        The votes; the others lie beside it.
    voters : sequence of str
        The columns, in order.
    soft : sequence of str
        The voters that give soft votes; where there are none, no file of soft votes is left.
    metadata : mapping
        Goes into the Parquet files under the key ``deep``, as JSON, with an id of the run: readers of one of these
        files refuse another one of another run.
    documents : bool
        Whether there is a column `document_id`.
    claim_first : collection of str
        The voters whose evidence is looked for in the claim before the source.
    free : sequence of str
        The voters that cost nothing.
    """

    def __init__(
        self,
        out: Path,
        voters: Sequence[str],
        *,
        soft: Sequence[str],
        metadata: Mapping[str, object],
        documents: bool,
        claim_first: Collection[str],
        free: Sequence[str],
    ) -> None:
        self._paths = output_paths(out)
        self._columns = {"votes": list(voters), "soft": list(soft)}
        self._metadata = {"deep": json.dumps({**metadata, "run": uuid4().hex}, sort_keys=True)}
        self._documents = documents
        self._claim_first, self._free = frozenset(claim_first), frozenset(free)

    def write(self, rows: Iterable[Row]) -> None:
        """Write all rows, a thousand at a time."""
        import pyarrow.parquet as pq

        schemas = self._schemas()
        places = {kind: path for kind, path in self._paths.items() if kind in schemas}
        gone = [path for kind, path in self._paths.items() if kind not in schemas]
        with whole_files(places, gone) as partial, ExitStack() as stack:
            writers = {kind: stack.enter_context(pq.ParquetWriter(partial[kind], schemas[kind])) for kind in schemas}
            for chunk in chunks(rows):
                for kind, writer in writers.items():
                    writer.write_table(self._table(kind, chunk, schemas[kind]))

    def _schemas(self) -> dict[str, "pa.Schema"]:
        import pyarrow as pa

        text = pa.string()
        index = [("dataset", text), ("item_id", text), ("label", pa.int8())]
        index += [("document_id", text)] if self._documents else []
        votes = [(voter, pa.int8()) for voter in self._columns["votes"]]
        reasons = [("dataset", text), ("item_id", text), ("voter", text), ("reason", text)]
        schemas = {"judgments": judgments_schema(), "reasons": pa.schema(reasons), "votes": pa.schema([*index, *votes])}
        if self._columns["soft"]:
            schemas["soft"] = pa.schema([*index, *((voter, pa.float64()) for voter in self._columns["soft"])])
        return {kind: schema.with_metadata(self._metadata) for kind, schema in schemas.items()}

    def _table(self, kind: str, rows: Sequence[Row], schema: "pa.Schema") -> "pa.Table":
        import pyarrow as pa

        if kind in ("judgments", "reasons"):
            records = self._reasons(rows) if kind == "reasons" else self._details(rows)
            return pa.Table.from_pylist(list(records), schema=schema)
        columns: dict[str, list[object]] = {
            "dataset": [row.example.dataset for row in rows],
            "item_id": [row.example.example_id for row in rows],
            "label": [row.example.label for row in rows],
            "document_id": [row.example.document_id for row in rows],
        }
        for voter in self._columns[kind]:
            judgments = [row.judgments.get(voter) for row in rows]
            columns[voter] = [_vote(one) if kind == "votes" or one is None else one.score for one in judgments]
        return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)

    def _reasons(self, rows: Sequence[Row]) -> Iterator[dict[str, object]]:
        """Yield a record for each missing vote."""
        for row in rows:
            where = {"dataset": row.example.dataset, "item_id": row.example.example_id}
            for voter, judgment in row.judgments.items():
                if judgment.reason is not None:
                    yield {**where, "voter": voter, "reason": judgment.reason}

    def _details(self, rows: Sequence[Row]) -> Iterator[dict[str, object]]:
        """Yield a record for each judgment."""
        for row in rows:
            places = Places(row.example)
            for voter, judgment in row.judgments.items():
                yield {
                    "dataset": row.example.dataset,
                    "item_id": row.example.example_id,
                    "voter": voter,
                    "rationale": _storable(judgment.rationale),
                    "passages": [
                        {name: _storable(value) for name, value in asdict(passage).items()}
                        for passage in located(judgment, places, claim_first=voter in self._claim_first)
                    ],
                    "samples": judgment.samples,
                    "cost": 0.0 if voter in self._free or _unanswered(judgment) else judgment.cost,
                    "seconds": judgment.seconds,
                    "tokens": _tokens(judgment),
                    "repaired": judgment.repaired,
                }


def _unanswered(judgment: Judgment) -> bool:
    """Return whether no answer came, so that there is nothing to pay."""
    return judgment.reason == "failed" and judgment.cost is None and not judgment.tokens


def _storable(value: object) -> object:
    """Return text with "?" in place of lone surrogates, which no file holds, so that places stay; all else as it is."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def _tokens(judgment: Judgment) -> int | None:
    """Return the tokens read and written; those from a cache and those of thinking are among them."""
    known = [judgment.tokens[kind] for kind in ("input", "output") if kind in judgment.tokens]
    return sum(known) if known else None


def _vote(judgment: Judgment | None) -> int | None:
    return None if judgment is None or judgment.vote == ABSTAIN else judgment.vote
