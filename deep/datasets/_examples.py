"""Examples from files, from Hugging Face datasets and from anything that yields mappings; never all in memory."""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from deep._util.columns import VOTE_WORDS, more_rows, unescape_row
from deep._util.files import check_regular
from deep._util.names import check_name, intended_column, is_storable, visible_form
from deep.datasets._rows import ENDINGS, N_PROBED_ROWS, TEXT_ENDINGS, FileRow, Located, ending_of, read_rows
from deep.exceptions import InputError, warn
from deep.records import Example

# The fields of an example by their use: those that it must have, all texts, and all names.
REQUIRED_FIELDS = ("source", "claim")
TEXT_FIELDS = (*REQUIRED_FIELDS, "question")
NAME_FIELDS = ("example_id", "dataset", "document_id")
# The fields of an example that a row may hold; each is a column of that name unless it is mapped to another.
EXAMPLE_FIELDS = (*REQUIRED_FIELDS, "label", *NAME_FIELDS, "question")

# The name of an example's id in tables of votes; examples may have it too.
ITEM_ID = "item_id"

# What a cell of labels says, by its text in lower case; None: no label.
_LABEL_OF_WORD = {"": None, "0": 0, "0.0": 0, "1": 1, "1.0": 1, "nan": None, "none": None, "null": None} | VOTE_WORDS


class Examples(ABC):
    """Examples that can be gone through again and again.

    Attributes
    ----------
    name : str
        The dataset of examples that name none themselves.
    """

    name: str
    require_source: bool = True
    """Whether an example without a source is a fault; not where its benchmark publishes none."""

    @abstractmethod
    def __iter__(self) -> Iterator[Example]:
        """Yield the examples, from the first on."""

    def of(self, items: Collection[tuple[str, str]]) -> Iterator[Example]:
        """Yield the examples of some items, by dataset and id; others are not built, and not checked."""
        return (example for example in self if (str(example.dataset), example.example_id) in items)

    @property
    @abstractmethod
    def origin(self) -> str:
        """Where the examples come from, for an error message."""

    def at(self, number: int) -> str:
        """Return the place of an example, counted from 1, for an error message."""
        return f"in row {number} of {self.origin}"

    def check(self, *, strict: bool = False) -> int:
        """Read everything once, and return the number of examples; warn of those without a source or a claim.

        Of each example eight bytes are kept, so ten million need 80 MB; a file is read again only to say where an
        id comes twice.

        Raises
        ------
        InputError
            There is none, a row is not usable, an id comes twice within a dataset, or no row, with `strict` any, has
            no source or no claim.
        """
        # 8 bytes a row, so that files of any length can be checked; the rows themselves are read again only for an
        # error.
        identities, lacking = array("q"), array("q")
        for number, example in enumerate(self, start=1):
            identities.append(_twin_hash(example))
            if not example.has_texts:
                lacking.append(number)
        if not identities:
            raise InputError(f"`examples` must hold at least one row. Got none in {self.origin}. Add one, or leave it.")
        if lacking and self.require_source:
            place = self.at(lacking[0]) + (f", and in {more_rows(lacking[1:])}" if lacking[1:] else "")
            if strict or len(lacking) == len(identities):
                raise InputError(
                    f"`examples` must have a source and a claim in every row. Got none {place}. Fill it in."
                )
            warn(
                f"{len(lacking):,} of {len(identities):,} rows have no source or no claim, and no judge is asked about "
                f"them (the reason is no_source): {place}."
            )
        ordered = np.frombuffer(identities, dtype=np.int64)
        ordered.sort()  # in place: the array is ours
        repeated = ordered[1:][ordered[1:] == ordered[:-1]]
        if repeated.size:
            self._raise_repeated(set(repeated.tolist()))
        return len(identities)

    def _raise_repeated(self, hashes: set[int]) -> None:
        """Raise where an id truly comes twice; two ids may share a hash, though hardly ever do."""
        first_of: dict[tuple[str, str], Example] = {}
        for number, example in enumerate(self, start=1):
            if _twin_hash(example) not in hashes:
                continue
            before = first_of.get(_twin_form(example))
            if before is None:
                first_of[_twin_form(example)] = example
                continue
            if (before.dataset, before.example_id) != (example.dataset, example.example_id):
                raise InputError(
                    "`example_id` and `dataset` must differ in what can be seen. Got "
                    f"{example.example_id!a} of {example.dataset!a} {self.at(number)}, and before "
                    f"{before.example_id!a} of {before.dataset!a}. Write the same name in one way."
                )
            raise InputError(
                f"`example_id` must be unique within a dataset. Got {example.example_id!r} twice in "
                f"{example.dataset!r}, the second time {self.at(number)}. Number the rows, or leave the column out."
            )


def _twin_form(example: Example) -> tuple[str, str]:
    return visible_form(example.dataset or ""), visible_form(example.example_id)


def _twin_hash(example: Example) -> int:
    return hash(_twin_form(example))


class _Rows(Examples):
    """Examples made of rows that are mappings.

    Parameters
    ----------
    name : str
        The dataset of rows that name none.
    columns : mapping of str to str, optional
        Field of an example to the column that holds it, where that has another name.
    """

    def __init__(self, name: str, columns: Mapping[str, str] | None) -> None:
        self.name = name
        self.mapped = dict(columns or {})
        unknown = next((field for field in self.mapped if field not in EXAMPLE_FIELDS), None)
        if unknown is not None:
            raise InputError(f"`columns` must map {', '.join(sorted(EXAMPLE_FIELDS))}. Got {unknown!r}.")
        self.columns = {field: self.mapped.get(field, field) for field in EXAMPLE_FIELDS}
        self.needed = [field for field in EXAMPLE_FIELDS if field in REQUIRED_FIELDS or field in self.mapped]

    @abstractmethod
    def _rows(self) -> Iterator[Located]:
        """Yield the rows, each with its line."""

    rows_vary = True
    """Whether a row may leave out what is empty, as one of JSON may; else the first row has every column."""

    @cached_property
    def _present(self) -> set[str]:
        """The columns that any of the first rows has."""
        return {name for _, row in islice(self._rows(), N_PROBED_ROWS if self.rows_vary else 1) for name in row}

    def check(self, *, strict: bool = False) -> int:
        """Read everything once, as :meth:`Examples.check` does; an error tells of all rows that are not usable."""
        try:
            return super().check(strict=strict)
        except InputError as error:
            first = error.with_traceback(None)  # which would keep what was read, while the file is read again
        whole_file = any(self.columns[field] not in self._present for field in self.needed)
        others = [] if whole_file else [*self._faulty()][1:]
        if not others:
            raise first
        raise InputError(f"{first} Not usable either: {more_rows(others)}.")

    def _faulty(self) -> Iterator[int]:
        """Yield the numbers of the rows that are not usable, as far as the file can be read."""
        with suppress(InputError):
            for number, (line, row) in enumerate(self._rows(), start=1):
                try:
                    self._example(row, number, line)
                except InputError:
                    yield number

    def __iter__(self) -> Iterator[Example]:
        for number, (line, row) in enumerate(self._rows(), start=1):
            yield self._example(row, number, line)

    def of(self, items: Collection[tuple[str, str]]) -> Iterator[Example]:
        """Yield the examples of some items, by dataset and id; of the others the first alone is checked."""
        dataset = self.columns["dataset"]
        for number, (line, row) in enumerate(self._rows(), start=1):
            key = _text(row.get(dataset)) or self.name, _text(self._id(row)) or str(number)
            if key in items:
                yield self._example(row, number, line)
            elif number == 1:
                self._example(row, number, line)

    def _example(self, row: FileRow, number: int, line: int | None) -> Example:
        """Return the example in a row; raise where a field is missing or cannot be kept."""
        for field in self.needed:
            if self.columns[field] not in row and not (self.rows_vary and self.columns[field] in self._present):
                raise self._missing(field, row, number, line)
        if number == 1:
            self._check_names(row, number, line)
        values = {field: row.get(column) for field, column in self.columns.items()} | {"example_id": self._id(row)}
        source, claim, question = (self._checked_text(field, values, number, line) for field in TEXT_FIELDS)
        names = {field: _text(values[field]) for field in NAME_FIELDS}
        for field, name in names.items():
            if name is not None and not is_storable(name):
                raise self._wrong(field, "text without NUL", "Use plain Unicode text", values, number, line)
        if names["dataset"] is not None:
            check_name(
                names["dataset"], "dataset", where=f" {self._place(number, line)}, column {self.columns['dataset']!r}"
            )
        label = _text(values["label"]) or ""
        if label.lower() not in _LABEL_OF_WORD:
            remedy = "Write 1 for consistent, 0 for not, nothing where unknown"
            raise self._wrong("label", "0, 1 or empty", remedy, values, number, line)
        return Example(
            source=source,
            claim=claim,
            example_id=names["example_id"] or str(number),
            label=_LABEL_OF_WORD[label.lower()],
            dataset=names["dataset"] or self.name,
            document_id=names["document_id"],
            question=question or None,
        )

    def _check_names(self, row: FileRow, number: int, line: int | None) -> None:
        """Raise where a column seems to be a field that the rows lack; as such it would be passed over."""
        lacking = [field for field in EXAMPLE_FIELDS if self.columns[field] not in row and field not in self.mapped]
        for name, value in row.items():
            field = intended_column(str(name), lacking)
            # A column `target` of texts is no label; one that is spelt as a field is, whatever it holds.
            if field and (str(name).strip().casefold() == field or (_text(value) or "").lower() in _LABEL_OF_WORD):
                raise InputError(
                    f"`examples` must name its columns as deep does. Got {name!r} {self._place(number, line)}, which "
                    f"may be the column {field!r}. {self._renaming(field)}."
                )

    def _id(self, row: FileRow) -> object:
        """Return the name of a row: the example's id or, where there is no such column, the item's."""
        name = self.columns["example_id"]
        return row.get(name if name in row or "example_id" in self.mapped else ITEM_ID)

    def _checked_text(self, field: str, values: FileRow, number: int, line: int | None) -> str:
        """Return a text of a row; empty where it is missing."""
        text = values[field]
        if text is None or text != text or (isinstance(text, str) and not text.strip()):
            return ""
        if not isinstance(text, str):
            # The contexts of retrieval are a list in most tools' tables.
            allowed = ("text", "Fill it in, drop the row, or join the texts of a list, as `deep data from` does")
            optional = ("text or empty", "Leave it empty, or map another column")
            raise self._wrong(field, *(allowed if field in REQUIRED_FIELDS else optional), values, number, line)
        if "\0" in text:
            raise self._wrong(field, "text without NUL", "Take the NUL out", values, number, line)
        return text

    def _missing(self, field: str, row: FileRow, number: int, line: int | None) -> InputError:
        columns = " and ".join(self.columns[name] for name in self.needed)
        present = ", ".join(sorted(map(str, row))) or "nothing else"
        is_votes = ITEM_ID in row and not any(self.columns[name] in row for name in self.needed)
        votes = " A table of votes is described by `deep panel`." if is_votes else ""
        return InputError(
            f"`examples` must have the columns {columns}. Got none named {self.columns[field]!r} "
            f"{self._place(number, line)}, which has {_short(present)}. {self._renaming(field)}.{votes}"
        )

    def _renaming(self, field: str) -> str:
        """Return the remedy where a column has another name."""
        return f"Rename it, or map it (--{field.replace('_', '-')}-column, or `columns` of `read_examples`)"

    def _wrong(
        self, field: str, allowed: str, remedy: str, values: FileRow, number: int, line: int | None
    ) -> InputError:
        place = f"{self._place(number, line)}, column {self.columns[field]!r}"
        return InputError(f"`{field}` must be {allowed}. Got {_short(repr(values[field]))} {place}. {remedy}.")

    def _place(self, number: int, line: int | None) -> str:
        place = self.at(number)
        return place if line is None else place.replace(f"row {number}", f"row {number} (line {line})", 1)


class _FileRows(_Rows):
    """The examples of a file, or of a text in memory that stands for one."""

    content: bytes | None = None

    def __init__(self, path: Path, ending: str, columns: Mapping[str, str] | None, dataset: str | None = None) -> None:
        super().__init__(dataset or path.name[: -len(ending)] or "examples", columns)
        self.path, self.is_csv = path, ending.startswith(".csv")
        self.rows_vary = "json" in ending

    @property
    def origin(self) -> str:
        """The path."""
        return repr(str(self.path))

    def _rows(self) -> Iterator[Located]:
        rows = read_rows(self.path, {*self.columns.values(), ITEM_ID}, content=self.content)
        # Those of CSV are as they were before a guard against formulas, as labels and votes are read.
        return ((line, unescape_row(row)) for line, row in rows) if self.is_csv else rows


class ExampleFile(_FileRows):
    r"""The examples of a file, read anew each time and never all in memory.

    Parameters
    ----------
    path : str or Path
        ``.csv`` (UTF-8, with a header), ``.jsonl``, ``.ndjson`` or ``.json`` (an object a line, or an array of them),
        each also with ``.gz``, or ``.parquet``, with the columns `source` and `claim`, and as wanted `example_id` or
        `item_id` (default: the row's number, from 1), `label` (1, 0, true, false, yes, no or empty), `dataset`,
        `document_id` and `question`, which the claim answers.
    columns : mapping of str to str, optional
        Field to column, where a column has another name.
    dataset : str, optional
        The dataset of rows that name none; default: the file's name without its ending.

    Raises
    ------
    InputError
        There is no such file, or its ending says nothing. Going through it raises where a row is not usable.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from deep.datasets import ExampleFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "news.csv")
    ...     _ = path.write_text("article,claim,label\nIt rained.,It was wet.,1\n")
    ...     file = ExampleFile(path, columns={"source": "article"})
    ...     [(e.dataset, e.example_id, e.source, e.label) for e in file], file.check()
    ([('news', '1', 'It rained.', 1)], 1)
    """

    def __init__(
        self, path: str | Path, *, columns: Mapping[str, str] | None = None, dataset: str | None = None
    ) -> None:
        self.path = Path(path)
        ending = ending_of(self.path)
        if ending is None or not self.path.exists():
            raise InputError(
                f"`examples` must be a file that ends in one of {', '.join(ENDINGS)}. Got {str(path)!r}"
                f"{', which is not there' if ending else ''}. Check the name."
            )
        check_regular(self.path, "examples")
        super().__init__(self.path, ending, columns, dataset)


def examples_from_text(content: bytes, name: str, columns: Mapping[str, str] | None = None) -> Examples:
    r"""Return the examples of the content of a file that was sent and lies nowhere; as :class:`ExampleFile` does.

    Parameters
    ----------
    content : bytes
        What the file holds, in UTF-8.
    name : str
        The file's name, which says how to read it: ``.csv``, ``.json``, ``.jsonl`` or ``.ndjson``.
    columns : mapping of str to str, optional
        Field to column, where a column has another name.

    Raises
    ------
    InputError
        The name ends in something else. Going through the examples raises where a row is not usable.

    Examples
    --------
    >>> from deep.datasets import examples_from_text
    >>> result = examples_from_text(b"source,claim\nIt rained.,It was wet.\n", "weather.csv")
    >>> [(e.dataset, e.example_id, e.claim) for e in result]
    [('weather', '1', 'It was wet.')]
    """
    ending = ending_of(Path(name))
    if ending not in TEXT_ENDINGS:
        raise InputError(
            f"`examples` must be a file that ends in one of {', '.join(TEXT_ENDINGS)}. Got {name!r}. "
            "Save it as one of these."
        )
    result = _FileRows(Path(name), ending, columns)
    result.content = content
    return result


class _MappedExamples(_Rows):
    """The rows of an iterable of mappings that can be gone through again and again."""

    def __init__(self, rows: Iterable[FileRow], name: str, columns: Mapping[str, str] | None) -> None:
        super().__init__(name, columns)
        self.rows = rows

    @property
    def origin(self) -> str:
        """The dataset's name."""
        return f"dataset {self.name!r}"

    def _renaming(self, field: str) -> str:
        """Return a remedy that fits a frame in `ask` too, which maps no columns."""
        return f"Rename the column that holds it to {field!r}"

    def _rows(self) -> Iterator[Located]:
        for number, row in enumerate(self.rows, start=1):
            if not isinstance(row, Mapping):
                raise InputError(f"`dataset` must hold mappings. Got a {type(row).__name__} {self.at(number)}.")
            yield None, row


def examples_from_dataset(
    dataset: Iterable[FileRow], columns: Mapping[str, str] | None = None, name: str | None = None
) -> Examples:
    """Return the examples of a Hugging Face ``Dataset`` or ``IterableDataset``, or of any mappings.

    Parameters
    ----------
    dataset : iterable of mapping
        It must begin anew each time it is iterated, as a list does; a generator does not. Rows are read as they
        are needed.
    columns : mapping of str to str, optional
        Field to column, where a column has another name.
    name : str, optional
        The dataset of rows that name none; default: the dataset's own ``info.dataset_name``, else ``examples``.

    Raises
    ------
    InputError
        `dataset` is an iterator, a table of several splits, or not iterable.

    Examples
    --------
    >>> from deep.datasets import examples_from_dataset
    >>> rows = [{"doc": "It rained.", "claim": "It was wet.", "label": True}]
    >>> [(e.dataset, e.source, e.label) for e in examples_from_dataset(rows, {"source": "doc"}, "weather")]
    [('weather', 'It rained.', 1)]
    """
    if isinstance(dataset, Mapping):
        splits = ", ".join(sorted(map(str, dataset)))
        raise InputError(f"`dataset` must be one split. Got a mapping of {splits}. Choose one, as in dataset['test'].")
    # Examples are gone through several times: to check, to ask, to join. An iterator is empty after the first.
    if isinstance(dataset, Iterator) or not isinstance(dataset, Iterable):
        raise InputError(
            f"`dataset` must be an iterable that begins anew each time. Got a {type(dataset).__name__}. "
            "Make a list of it, or a datasets.IterableDataset."
        )
    own_name = getattr(getattr(dataset, "info", None), "dataset_name", None)
    return _MappedExamples(dataset, name or own_name or "examples", columns)


def _text(value: object) -> str | None:
    """Return an id, name or label as text; None where it is empty."""
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        # pandas makes 7.0 of an id 7 in a column with gaps; as text it must be "7" again.
        value = int(value)
    return str(value).strip() or None


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:76]}..."
