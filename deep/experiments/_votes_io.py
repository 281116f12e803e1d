"""Examples in, votes out: streaming readers of CSV, JSONL and Parquet, and the Parquet files that come of them."""

import csv
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep._records import Example
from deep.exceptions import InputError

__all__ = ["ExampleFile", "Outputs", "Row", "chunks", "is_storable", "output_paths"]

REQUIRED = ("source", "claim")
OPTIONAL = ("example_id", "label", "dataset", "document_id")
LARGEST_FIELD = 2**31 - 1
ROWS_AT_ONCE = 1000

_LABELS = {"": None, "0": 0, "0.0": 0, "1": 1, "1.0": 1, "nan": None, "none": None, "null": None}


class ExampleFile:
    r"""The examples of a file, read anew each time and never all in memory.

    Parameters
    ----------
    path : str
        ``.csv`` (UTF-8, with a header), ``.jsonl`` or ``.ndjson``, or ``.parquet``, with the columns `source` and
        `claim`, and as wanted `example_id` (default: the row's number, from 1), `label` (1, 0 or empty), `dataset`
        (default: the file's stem) and `document_id`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from deep.experiments._votes_io import ExampleFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "news.csv")
    ...     _ = path.write_text("source,claim,label\nIt rained.,It was wet.,1\n")
    ...     [(e.dataset, e.example_id, e.label) for e in ExampleFile(str(path))]
    [('news', '1', 1)]
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._read = _READERS.get(self.path.suffix.lower())
        if not self.path.is_file() or self._read is None:
            allowed = ", ".join(sorted(_READERS))
            raise InputError(f"`examples` must be a file that ends in one of {allowed}. Got {path!r}.")

    def __iter__(self) -> Iterator[Example]:
        assert self._read is not None, "checked by the constructor"
        try:
            for number, row in enumerate(self._read(self.path), start=1):
                yield self._example(row, number)
        except UnicodeDecodeError as error:
            raise InputError(f"`examples` must be UTF-8. Got byte {error.start} of {str(self.path)!r}.") from None
        except OSError as error:
            raise InputError(f"`examples` must be readable. Got {str(self.path)!r}: {error.strerror}.") from None

    def _example(self, row: Mapping[str, Any], number: int) -> Example:
        for name in REQUIRED:
            if name not in row:
                raise InputError(
                    f"`examples` must have the columns source and claim. Got none named {name!r} {self._at(number)}."
                )
            if not isinstance(row[name], str) or not row[name].strip():
                raise InputError(f"`{name}` must be text. Got {row[name]!r} {self._at(number)}.")
        for name in ("example_id", "dataset", "document_id"):
            if not is_storable(_text(row.get(name)) or ""):
                raise InputError(f"`{name}` must be text without NUL. Got {row[name]!r} {self._at(number)}.")
        return Example(
            source=row["source"],
            claim=row["claim"],
            example_id=_text(row.get("example_id")) or str(number),
            label=self._label(row.get("label"), number),
            dataset=_text(row.get("dataset")) or self.path.stem,
            document_id=_text(row.get("document_id")),
        )

    def _label(self, value: Any, number: int) -> int | None:
        text = "" if value is None else str(int(value) if isinstance(value, bool) else value).strip().lower()
        if text not in _LABELS:
            raise InputError(f"`label` must be 0, 1 or empty. Got {value!r} {self._at(number)}.")
        return _LABELS[text]

    def _at(self, number: int) -> str:
        return f"in row {number} of {str(self.path)!r}"

    def check(self) -> int:
        """Read everything once, and return the number of examples.

        Raises
        ------
        InputError
            There is none, a row is not usable, or an id comes twice within a dataset.
        """
        seen: set[int] = set()
        n = 0
        for n, example in enumerate(self, start=1):
            identity = hash((example.dataset, example.example_id))
            if identity in seen:
                raise InputError(
                    f"`example_id` must be unique within a dataset. Got {example.example_id!r} twice in "
                    f"{example.dataset!r}, the second time {self._at(n)}."
                )
            seen.add(identity)
        if not n:
            raise InputError(f"`examples` must hold at least one row. Got none in {str(self.path)!r}.")
        return n


def _text(value: Any) -> str | None:
    """Return an id or a name as text; None where it is empty."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def is_storable(text: str) -> bool:
    """Return whether files and databases can hold a name."""
    return "\0" not in text and text == text.encode(errors="replace").decode()


def _read_csv(path: Path) -> Iterator[Mapping[str, Any]]:
    csv.field_size_limit(LARGEST_FIELD)
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            for number, row in enumerate(csv.DictReader(file, strict=True), start=1):
                if None in row or None in row.values():
                    raise InputError(
                        f"`examples` must have as many cells as columns. Got row {number} of {str(path)!r}."
                    )
                yield row
        except csv.Error as error:
            raise InputError(f"`examples` must be CSV. Got {str(path)!r}: {error}.") from None


def _read_jsonl(path: Path) -> Iterator[Mapping[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                raise InputError(f"`examples` must hold a JSON object a line. Got line {number} of {str(path)!r}.")
            yield row


def _read_parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            columns = [name for name in (*REQUIRED, *OPTIONAL) if name in file.schema_arrow.names]
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=columns):
                yield from batch.to_pylist() if columns else [{}]
    except pa.ArrowException as error:
        raise InputError(f"`examples` must be Parquet. Got {str(path)!r}: {str(error).splitlines()[0]}.") from None


_READERS = {".csv": _read_csv, ".jsonl": _read_jsonl, ".ndjson": _read_jsonl, ".parquet": _read_parquet}


def chunks(values: Iterable[Any], size: int = ROWS_AT_ONCE) -> Iterator[list[Any]]:
    """Yield lists of at most `size` values."""
    chunk: list[Any] = []
    for value in values:
        chunk.append(value)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


@dataclass(slots=True)
class Row:
    """What all voters said of one example.

    Parameters
    ----------
    example : Example
    votes : dict of str to int
        By voter; only those that voted.
    reasons : dict of str to str
        By voter; only those that did not.
    scores : dict of str to float
        By voter; only those with a soft vote.
    """

    example: Example
    votes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)


def output_paths(out: Path) -> dict[str, Path]:
    """Return the paths of the votes and of what lies beside them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from deep.experiments._votes_io import output_paths
    >>> output_paths(Path("votes.parquet"))["reasons"].name
    'votes.reasons.parquet'
    """
    stem = out.with_suffix("") if out.suffix == ".parquet" else out
    beside = {kind: stem.with_name(f"{stem.name}.{kind}.parquet") for kind in ("reasons", "soft")}
    return {**beside, "votes": out}


class Outputs:
    """Writes votes, reasons and soft votes to temporary files, and moves them into place together at the end.

    Parameters
    ----------
    out : Path
        The votes; the other two lie beside it.
    voters : sequence of str
        The columns, in order.
    soft : sequence of str
        The voters that give soft votes; where there are none, no file of soft votes is left.
    metadata : mapping
        Goes into the Parquet files under the key ``deep``, as JSON.
    documents : bool
        Whether there is a column `document_id`.
    """

    def __init__(
        self, out: Path, voters: Sequence[str], *, soft: Sequence[str], metadata: Mapping[str, Any], documents: bool
    ) -> None:
        self._paths = output_paths(out)
        self._columns = {"votes": list(voters), "soft": list(soft)}
        self._metadata = {"deep": json.dumps(metadata, sort_keys=True)}
        self._documents = documents

    def write(self, rows: Iterable[Row]) -> None:
        """Write all rows, a thousand at a time."""
        import pyarrow.parquet as pq

        schemas = self._schemas()
        partial = {kind: path.with_name(f".{path.name}.{os.getpid()}.part") for kind, path in self._paths.items()}
        try:
            with ExitStack() as stack:
                writers = {
                    kind: stack.enter_context(pq.ParquetWriter(partial[kind], schemas[kind])) for kind in schemas
                }
                for chunk in chunks(rows):
                    for kind, writer in writers.items():
                        writer.write_table(self._table(kind, chunk, schemas[kind]))
            self._paths["soft"].unlink(missing_ok=True)
            for kind in sorted(schemas):
                partial[kind].replace(self._paths[kind])
        finally:
            for path in partial.values():
                path.unlink(missing_ok=True)

    def _schemas(self) -> dict[str, Any]:
        import pyarrow as pa

        text = pa.string()
        index = [("dataset", text), ("item_id", text), ("label", pa.int8())]
        index += [("document_id", text)] if self._documents else []
        reasons = [("dataset", text), ("item_id", text), ("voter", text), ("reason", text)]
        votes = [(voter, pa.int8()) for voter in self._columns["votes"]]
        schemas = {"reasons": pa.schema(reasons), "votes": pa.schema([*index, *votes])}
        if self._columns["soft"]:
            schemas["soft"] = pa.schema([*index, *((voter, pa.float64()) for voter in self._columns["soft"])])
        return {kind: schema.with_metadata(self._metadata) for kind, schema in schemas.items()}

    def _table(self, kind: str, rows: Sequence[Row], schema: Any) -> Any:
        import pyarrow as pa

        if kind == "reasons":
            records = [
                {"dataset": row.example.dataset, "item_id": row.example.example_id, "voter": voter, "reason": reason}
                for row in rows
                for voter, reason in row.reasons.items()
            ]
            return pa.Table.from_pylist(records, schema=schema)
        columns = {
            "dataset": [row.example.dataset for row in rows],
            "item_id": [row.example.example_id for row in rows],
            "label": [row.example.label for row in rows],
            "document_id": [row.example.document_id for row in rows],
        }
        for voter in self._columns[kind]:
            columns[voter] = [(row.votes if kind == "votes" else row.scores).get(voter) for row in rows]
        return pa.Table.from_arrays([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
