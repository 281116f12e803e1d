"""The examples that votes are of: their source in the file of votes, and their texts found again."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from deep._util.checks import Texts, check_kind
from deep._util.files import JsonObject
from deep._util.frames import DEFAULT_DATASET, Frame, frame_table
from deep.datasets._examples import ExampleFile, Examples, examples_from_dataset
from deep.datasets._judgments import example_record
from deep.datasets._rows import ENDINGS, ending_of
from deep.datasets.benchmarks import BENCHMARKS, BenchmarkExamples, find_benchmark, require_folder, sha256_of
from deep.exceptions import InputError
from deep.records import Example, VoteMatrix


def read_examples(
    name_or_path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    dataset: str | None = None,
    main_only: bool = False,
    require_source: bool = True,
) -> Examples:
    """Return the examples of a benchmark or of a file, to be gone through as often as wanted.

    Parameters
    ----------
    name_or_path : str or Path
        A file that exists or whose name ends like one (see `ExampleFile`), or else the name of a benchmark or of one
        of its datasets, in any spelling: ``fect``, ``tofueval-mediasum``, ``summedits``, ``summedits-news``.
    columns : mapping of str to str, optional
        Field to column, where a file's column has another name.
    dataset : str, optional
        The dataset of a file's rows that name none; default: the file's name without its ending.
    main_only : bool
        TofuEval: leave out summaries of marginal topics.
    require_source : bool
        Raise at an example whose source is not published with the benchmark; False to count such examples only.

    Raises
    ------
    InputError
        There is no such file or benchmark, its files are not here (the message says what to do), or an option does
        not fit.

    Examples
    --------
    >>> from deep.datasets import read_examples
    >>> read_examples("no-such-file.csv")
    Traceback (most recent call last):
    deep.exceptions.InputError: `examples` must be a file that ends in ... Got 'no-such-file.csv', which is not there...
    """
    check_kind(name_or_path, (str, PathLike), "examples", "the name of a benchmark or the path of a file")
    path = Path(name_or_path)
    if path.is_file() or ending_of(path) is not None or len(path.parts) > 1:
        if main_only:
            raise InputError("`main_only` must be given with the name of a benchmark. Got a file. Leave it out.")
        return ExampleFile(path, columns=columns, dataset=dataset)
    if columns or dataset:
        option = "columns" if columns else "dataset"
        raise InputError(f"`{option}` must be given with a file. Got it with {str(name_or_path)!r}. Leave it out.")
    try:
        benchmark, part = find_benchmark(str(name_or_path), param="examples")
    except InputError as error:
        # A name of several benchmarks is meant as one; only an unknown name may be a file that is not there.
        if "could be any of" in str(error):
            raise
        raise InputError(
            f"`examples` must be a file that ends in one of {', '.join(ENDINGS)}, or one of "
            f"{', '.join(sorted(BENCHMARKS))}. Got {str(name_or_path)!r}."
        ) from None
    folder = require_folder(benchmark)
    return BenchmarkExamples(benchmark, folder, dataset=part, main_only=main_only, require_source=require_source)


Item = tuple[str, str]
"""A dataset and the id of an item in it."""


@dataclass(frozen=True)
class FoundTexts:
    """The texts of the items of tables of votes, or why there are none.

    Parameters
    ----------
    examples : dict of (dataset, item_id) to Example
        Those that were found.
    missing : int
        Items that were wanted and have no text: their ids stand in place of it.
    notes : tuple of str
        What a reader must know: a file that is gone or has changed, items that it does not have.
    """

    examples: dict[Item, Example] = field(default_factory=dict)
    missing: int = 0
    notes: tuple[str, ...] = ()


def origin_record(examples: Examples, votes_path: str | Path) -> dict[str, object] | None:
    """Return the record that a table of votes keeps in its metadata of the examples that it is of.

    Parameters
    ----------
    examples : Examples
        Those of a file or a benchmark, which can be found again.
    votes_path : str or Path
        A file of examples in its folder, or below it, is named from there, so that both can be moved together.

    Returns
    -------
    dict or None
        ``path`` and ``sha256`` of a file, with the options that it was read by; ``benchmark``, and ``sha256`` by file
        name; None where the examples were in memory.
    """
    if isinstance(examples, BenchmarkExamples):
        present = [f.name for f in examples.benchmark.files if (examples.folder / f.name).is_file()]
        return {
            "benchmark": examples.name,
            "main_only": examples.main_only,
            "sha256": {name: sha256_of(examples.folder / name) for name in present},
        }
    if not isinstance(examples, ExampleFile):
        return None
    # Relative where it lies below the votes, so that the folder can be moved as a whole.
    path, folder = examples.path.resolve(), Path(votes_path).resolve().parent
    return {
        "path": (path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix(),
        "sha256": sha256_of(path),
        "columns": examples.mapped,
        "dataset": examples.name,
    }


def read_texts(
    paths: str | Path | Sequence[str | Path],
    items: Collection[Item],
    *,
    examples: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> FoundTexts:
    r"""Find the texts of items of tables of votes: in the examples that these remember, or in those given.

    Never raises for a file that the votes remember and that is gone, has changed or cannot be read: the notes say so,
    and there is no text. What has changed is not read, since an id may now be that of another claim.

    Parameters
    ----------
    paths : path or sequence of paths
        Tables of votes.
    items : collection of (dataset, item_id)
        The items whose texts are wanted; no others are kept.
    examples : str or Path, optional
        A benchmark or a file of examples, in place of what the tables remember.
    columns : mapping of str to str, optional
        Field to column of `examples`; default: as the tables remember them.

    Raises
    ------
    InputError
        `examples` cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from deep.datasets import read_texts
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claims = Path(folder, "news.csv")
    ...     _ = claims.write_text("example_id,source,claim\na,It rained.,It was wet.\n")
    ...     result = read_texts("votes.csv", [("news", "a"), ("news", "b")], examples=claims)
    >>> result.examples["news", "a"].claim, result.missing
    ('It was wet.', 1)
    >>> read_texts("votes.csv", [("news", "a")]).notes
    ("'votes.csv' does not say which examples it is of; --examples names them.",)
    """
    tables = [paths] if isinstance(paths, str | Path) else list(paths)
    keys = set(items)
    notes: list[str] = []
    result: dict[Item, Example] = {}
    for source in _source_of_user(tables, examples, columns, notes) if examples else _sources_of_tables(tables, notes):
        try:
            for example in source.of(keys):
                result.setdefault((str(example.dataset), example.example_id), example)
        except InputError as error:
            if examples is not None:
                raise
            notes.append(f"the examples cannot be read: {error}")
    missing = len(keys - result.keys())
    if missing and (result or not notes):
        notes.append(f"{missing:,} of {len(keys):,} items are not among the examples; ids stand in place of texts.")
    return FoundTexts(result, missing, tuple(dict.fromkeys(notes)))


def read_documents(
    paths: str | Path | Sequence[str | Path],
    votes: VoteMatrix,
    examples: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
) -> Texts | None:
    r"""Return the documents of the items of tables of votes: those that the votes name, else those of examples.

    Parameters
    ----------
    paths, examples, columns
        As in :func:`read_texts`.
    votes : VoteMatrix
        What was read from `paths`.

    Returns
    -------
    ndarray of str, shape (n_examples,), or None
        None where neither names any; an item that is not among the examples is a document of its own.

    Raises
    ------
    InputError
        `examples` cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from deep import VoteMatrix
    >>> from deep.datasets import read_documents
    >>> votes = VoteMatrix([[1], [0]], ["a", "b"], ["j"], ["news", "news"], [1, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     claims = Path(folder, "news.csv")
    ...     _ = claims.write_text("example_id,source,claim,document_id\na,It rained.,It was wet.,x\n")
    ...     read_documents("votes.csv", votes, claims).tolist()
    ['x', 'news/b']
    """
    if votes.document_ids is not None:
        return votes.document_ids
    tables = [paths] if isinstance(paths, str | Path) else list(paths)
    (source,) = _source_of_user(tables, examples, columns, [])
    document_of = {(str(e.dataset), e.example_id): e.document_id for e in source if e.document_id is not None}
    result = [document_of.get(item) for item in zip(votes.datasets, votes.item_ids, strict=True)]
    if all(document is None for document in result):
        return None
    # An item without a document is a document of its own.
    own = votes.datasets + "/" + votes.item_ids
    return np.array(
        [mine if document is None else document for document, mine in zip(result, own, strict=True)], object
    )


def _source_of_user(
    paths: Sequence[str | Path], examples: str | Path, columns: Mapping[str, str] | None, notes: list[str]
) -> Iterator[Examples]:
    """Yield the examples that a user names, read as the tables remember where the user says nothing else."""
    record = next((entry for path in paths if (entry := example_record(path)) and "path" in entry), None)
    source = read_examples(examples, columns=columns, require_source=False)
    if isinstance(source, ExampleFile) and record:
        # Another text under the same id would be shown beside votes that are not about it.
        if sha256_of(source.path) != record["sha256"]:
            notes.append(f"{source.path} is not the file that was judged, as its SHA-256 shows; it was read as asked.")
        source = ExampleFile(source.path, columns=columns or record["columns"], dataset=record["dataset"])
    yield source


def _sources_of_tables(paths: Sequence[str | Path], notes: list[str]) -> Iterator[Examples]:
    """Yield the examples that each table remembers and that are as they were; note why others are not."""
    for path in paths:
        record = example_record(path)
        if record is None:
            notes.append(f"{str(path)!r} does not say which examples it is of; --examples names them.")
        elif "benchmark" in record:
            yield from _benchmark(record, notes)
        else:
            file = Path(path).resolve().parent / record["path"]
            if not file.is_file():
                notes.append(f"{file} is gone, so ids replace texts. Give a copy by --examples.")
            elif sha256_of(file) != record["sha256"]:
                notes.append(
                    f"{file} has changed since it was judged (SHA-256), so ids replace texts. --examples reads it "
                    "anyway."
                )
            else:
                yield ExampleFile(file, columns=record["columns"], dataset=record["dataset"])


def _benchmark(record: JsonObject, notes: list[str]) -> Iterator[Examples]:
    """Yield the examples of the benchmark that a table remembers; note why, where they are not here or have changed."""
    name = record["benchmark"]
    try:
        examples = read_examples(name, main_only=record["main_only"], require_source=False)
    except InputError as error:
        notes.append(f"the benchmark {name!r} is not here: {error}")
        return
    if isinstance(examples, BenchmarkExamples):
        changed = [
            file
            for file, digest in record["sha256"].items()
            if not (examples.folder / file).is_file() or sha256_of(examples.folder / file) != digest
        ]
        if changed:
            notes.append(f"{changed[0]!r} of the benchmark {name!r} has changed since it was judged; it is not read.")
            return
    yield examples


def as_examples(examples: Examples | Iterable[Example] | Frame | str | Path) -> Examples | Iterable[Example]:
    """Return examples of deep, whatever holds them: a frame has the columns of a file of examples, source and claim.

    Raises
    ------
    InputError
        It is something else, or cannot be read.
    """
    if isinstance(examples, Frame):
        return examples_from_dataset(frame_table(examples).to_pylist(), name=DEFAULT_DATASET)
    if isinstance(examples, str | Path):
        return read_examples(examples)
    if isinstance(examples, Examples):
        return examples
    entries = list(examples) if isinstance(examples, Iterable) else [examples]
    wrong = [type(one).__name__ for one in entries if not isinstance(one, Example)]
    if wrong:
        raise InputError(f"`examples` must hold Examples, or be a data frame or a path. Got {wrong[0]}.")
    return entries
