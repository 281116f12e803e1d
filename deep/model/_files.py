"""Tables of votes scored a piece at a time: read, looked at, kept on disk until their dataset is known, and written."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from deep import datasets
from deep._util.checks import Floats, check_kind
from deep._util.columns import PlainCsvWriter
from deep._util.entry_points import WRITER_GROUP, load_part
from deep._util.files import MAX_MODEL_BYTES, JsonObject, atomic_file, read_bytes
from deep.datasets import (
    VOTE_COLUMNS,
    VoteRows,
    iter_votes,
    join_scores,
    read_scores,
    read_texts,
    table_columns,
)
from deep.exceptions import InputError
from deep.model import _table
from deep.model._blend import Evidence
from deep.model._document import FORMAT_NAME, OLDEST_SCHEMA, SCHEMA_VERSION, checksum, model_arguments
from deep.model._kinds import numbers
from deep.model._model import Model, library_versions
from deep.model._prior import MIN_BATCH, PriorEstimate, contexts_of_means
from deep.model._scores import ITEM_COLUMNS, SCORE_COLUMNS, TEXT_COLUMNS, DecisionRule, schema_of
from deep.model._table import ChainScorer, VotesLike
from deep.model.options import ScoreOptions
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow import parquet


# An object of the file, of which nothing is known before it is checked.
FileObject = Mapping[str, Any]

# How far a chain that is fitted again may be from the probabilities in its file.
REFIT_TOLERANCE = 1e-6


def load(path: str | Path) -> Model:
    """Read a model file.

    Parameters
    ----------
    path : path
        Of a file that ``deep fit`` or :meth:`Model.save` wrote.

    Returns
    -------
    Model

    Raises
    ------
    InputError
        There is no such file, it is no model file, a newer deep wrote it, it was changed since it was written, or
        (above 10 voters) the chain fitted again from its training cells does not give its probabilities.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit, load
    >>> votes = simulate_votes(0)
    >>> model = fit(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.json")
    ...     model.save(path)
    ...     bool((load(path).score(votes) == model.score(votes)).all())
    True
    """
    check_kind(path, (str, PathLike), "path", "the path of a model file")
    path = Path(path)
    content = _read_content(path)
    if content.get("format") != FORMAT_NAME:
        raise _refused(path, f"no {FORMAT_NAME!r} in its key 'format'", "Give a file that `deep fit` wrote.")
    version = content.get("schema_version")
    # JSON has true, which Python takes for 1.
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _refused(path, f"schema_version {version!r}")
    if version < OLDEST_SCHEMA:
        raise _refused(path, f"schema_version {version}, of an earlier deep", "Fit again.")
    if version > SCHEMA_VERSION:
        raise _refused(path, f"schema_version {version}, and this deep knows {SCHEMA_VERSION}", "Update deep.")
    try:
        fits = content.get("checksum") == checksum(content)
    except (ValueError, RecursionError) as error:  # 1e999 is infinite once it is read
        raise _refused(path, f"JSON that no model has: {error}") from None
    if not fits:
        raise _refused(path, "a checksum that does not fit: the file was changed after it was written", "Fit anew.")
    try:
        model = Model(**model_arguments(content))
    except KeyError as error:
        raise _refused(path, f"no key {' in '.join(map(repr, error.args))}") from None
    except (AttributeError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise _refused(path, f"content that no model has: {str(error).splitlines()[0].rstrip('.')}") from None
    if model.chain is not None and model.chain.table is None:
        _check_refit(model.chain, content, path)
    return model


def _refused(path: Path, reason: str, remedy: str = "") -> InputError:
    return InputError(f"`model` must be a model file of deep. Got {str(path)!r}, with {reason}. {remedy}".rstrip())


def _read_content(path: Path) -> FileObject:
    """Return the JSON object that a file holds."""
    try:
        raw = read_bytes(path, "model", MAX_MODEL_BYTES)
    except OSError as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise InputError(f"`model` must be a readable file. Got {str(path)!r}: {reason}.") from None
    if not raw.strip():
        raise _refused(path, "nothing in it")
    try:
        # A pickle runs code as it is opened, so a file of one is named and never opened as one.
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        what = "a pickle" if raw[:1] == b"\x80" else f"byte 0x{raw[error.start]:02x} at {error.start}, not UTF-8 text"
        raise _refused(path, f"{what} in place of JSON", "It was not opened as anything else.") from None
    try:
        content = json.loads(text, parse_constant=_refuse_json_constant, object_pairs_hook=_refuse_repeated_keys)
    except json.JSONDecodeError as error:
        raise _refused(path, f"JSON that breaks off or is wrong at line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"JSON that no model has: {error}") from None
    if not isinstance(content, dict):
        raise _refused(path, f"a JSON {type(content).__name__} in place of an object")
    return content


def _refuse_json_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError("a key comes twice")
    return entries


def _check_refit(chain: ChainScorer, content: FileObject, path: Path) -> None:
    """Check that a chain fitted again gives the probabilities in its file."""
    try:
        patterns = chain.cells.joint.patterns
        file_p = numbers(len(patterns)).read(content["parts"][0]["scorer"]["cells"]["p"], "cells.p", {})
        gap = float(np.abs(chain.predict(patterns) - file_p).max())
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"no usable probabilities of its training cells ({error})") from None
    # Written so that a gap of NaN is refused too.
    if not gap <= REFIT_TOLERANCE:
        here = library_versions()
        names = [f"{n} {v} (here {here.get(n, 'none')})" for n, v in content["versions"].items() if here.get(n) != v]
        versions = ", ".join(names) or "the same library versions"
        raise _refused(path, f"probabilities that differ by {gap:.1g} when fitted again, with {versions}", "Fit anew.")


def as_vote_matrix(model: Model, votes: VotesLike) -> VoteMatrix:
    """Return votes as a matrix, for what takes no array of them.

    Raises
    ------
    InputError
        `model` is none, or `votes` are not votes.
    """
    if not hasattr(model, "voters"):
        raise InputError(f"`model` must be a Model. Got {type(model).__name__}. Read its file: deep.load(path).")
    return datasets.as_votes(_table.votes_of_voters(model.voters, votes, model.scales))


def join_score_tables(model: Model, votes: VoteMatrix, paths: Sequence[str]) -> VoteMatrix:
    """Return votes in which the answers of a model's judges stand that tables of scores hold.

    Parameters
    ----------
    model : Model
        The answers of its judges `score_names` are looked for.
    votes : VoteMatrix
        The items to score, whose rows the scores are joined to.
    paths : sequence of str
        Tables of scores; other columns of them are not read.

    Raises
    ------
    InputError
        There are such tables, and the model has no use for them, or a judge has no column in any.
    """
    check_scores_given(model, paths, votes.voter_names)
    if not paths:
        return votes
    columns = table_columns(paths)
    own = [name for name in model.score_names if name in columns]
    result = join_scores(votes, read_scores(paths, ignore=set(columns) - {"dataset", "item_id", "label", *own}))
    return votes.with_answers(result.scores, result.score_names, {name: model.scales[name] for name in own})


def check_scores_given(model: Model, paths: Sequence[str], columns: Sequence[str] = ()) -> None:
    """Raise where tables are given and hold no answers of a model, or a judge stands neither there nor in `columns`."""
    names = model.score_names
    if paths and not names:
        raise InputError(f"`scores` must not be given with a model of votes. Got {paths[0]!r}.")
    available = {*columns, *(table_columns(paths) if paths else ())}
    missing = [name for name in names if name not in available]
    if missing and (paths or len(missing) == len(names)):
        raise InputError(
            f"`scores` must have the columns {', '.join(names)}, or `votes`. Got none named {missing[0]!r}."
        )


def iter_pieces(model: Model, paths: Sequence[str], scores: Sequence[str], options: ScoreOptions) -> Iterator[VoteRows]:
    """Read a model's voters, in their order, from tables of votes and of scores.

    Raises
    ------
    InputError
        A column is missing or of another version or model, or a table cannot be read.
    """
    columns = [name for name in table_columns(paths) if name not in VOTE_COLUMNS]
    check_scores_given(model, scores, columns)
    for soft in () if scores else filter(None, (datasets.read_beside(path, "soft") for path in paths)):
        # The votes have columns of the same names, which would pass for scores of 0 and 1.
        if name := next((name for name in model.score_names if name in table_columns([str(soft)])), None):
            raise InputError(f"`scores` must be given: {name!r} was fitted on its scores. Add `--scores {soft}`.")
    beside = [name for name in model.score_names if scores and name in table_columns(scores)]
    ignored = set(_table.other_columns(model.voters, list(paths))) if scores else set()
    names = [*(name for name in columns if name not in ignored and name not in beside), *beside]
    matching = {"allow_mismatch": options.allow_mismatch, "allow_missing": options.allow_missing}
    positions = _table.match_columns(model.voters, names, **matching)
    read = list(dict.fromkeys(names[column] for column in positions if column is not None))
    place = [None if column is None else read.index(names[column]) for column in positions]
    scales = _table.scales_of_columns(model.voters, read, model.scales)
    for rows in iter_votes(paths, read, scales=scales, scores=scores, score_names=beside):
        yield replace(rows, answers=_table.reorder_columns(rows.answers, place))


@dataclass(frozen=True)
class ScoredFile:
    """The number of rows that were scored, by dataset the prior and the threshold, and the rule of the decision."""

    n: int
    priors: dict[str, PriorEstimate]
    thresholds: dict[str, float]
    rule: DecisionRule

    @property
    def sentence(self) -> str:
        """Return the rule in words, with its threshold where there is one."""
        return self.rule.sentence(next(iter(self.thresholds.values())) if len(self.thresholds) == 1 else None)

    def results(self) -> JsonObject:
        """Return JSON values."""
        decision = {"rule": self.sentence, "thresholds": self.thresholds, **self.rule.values()}
        return {"rows": self.n, "priors": {name: vars(one) for name, one in self.priors.items()}, "decision": decision}


def score_file(
    model: Model,
    paths: Sequence[str],
    out: Path,
    options: ScoreOptions,
    scores: Sequence[str] = (),
    to: str | None = None,
    *,
    with_texts: bool = False,
    seen: "Callable[[pa.Table], None]" = lambda _: None,
) -> ScoredFile:
    """Score tables of votes into a CSV or Parquet file, each dataset at its own prior.

    Parameters
    ----------
    model : Model
        It gives each row its P; one adapted to a dataset keeps that dataset's contexts.
    paths : sequence of str
        Tables of votes. One Parquet file of any length is never held in memory: what P is made of, less than what is
        written, waits beside `out` until the contexts of its datasets are known.
    out : Path
        The file to write, CSV or Parquet by its ending; with `to` in that tool's format.
    options : ScoreOptions
        The share of consistent items, where it is known, and whether columns may mismatch or be missing.
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted with some. Parquet files of the same items in the same order
        as the votes, or their very file, are not held in memory either; others are joined there.
    to : {'inspect'}, optional
        JSON lines for a tool in place of a table; see :func:`open_table_writer`.
    with_texts : bool, default=False
        Add the texts of the examples that the tables of votes remember; empty where they are not found.
    seen : callable, optional
        Takes each piece of the scores as it is written.

    Raises
    ------
    InputError
        A table cannot be read, a voter of the model is missing or of another version or model, or an item comes
        twice. Nothing is written then.
    """
    sums: dict[str, Floats] = {}
    counts: Counter[str] = Counter()
    # P of a row hangs on the means over its dataset, which are known after the last row: so the rows wait on disk.
    with atomic_file(out) as scratch:
        rows = scratch.with_name("rows")
        looked_at = ahead(partial(_sum_piece_by_dataset, model), iter_pieces(model, paths, scores, options))
        for name, n, total in _write_rows_to_disk(rows, looked_at):
            counts[name] += n
            sums[name] = sums[name] + total if name in sums else total
        batches = {name: contexts_of_means(total / counts[name]) for name, total in sums.items()}
        contexts = batches if model.target is None else dict.fromkeys(sums, model.contexts)
        schema = schema_of(ITEM_COLUMNS, SCORE_COLUMNS, TEXT_COLUMNS if with_texts else {})
        with open_table_writer(scratch, out.suffix.lower(), schema, to, dense=not model.has_table) as file:
            for table in ahead(partial(_score_piece, model, contexts, options.prior), _read_rows_from_disk(rows)):
                whole = _join_texts(paths, table) if with_texts else table
                seen(whole)
                file.write_table(whole)
    result = {name: model.scores_at(at, options.prior) for name, at in contexts.items()}
    priors = {name: one.prior for name, one in result.items()}
    if options.prior is None:
        priors = {name: model.share_of(at, counts[name]) for name, at in batches.items()}
    for name, share in priors.items() if model.target is not None else ():
        # What is carried over names the dataset already.
        if name != model.target and counts[name] >= MIN_BATCH:
            warning = f"The model was adapted to {model.target}: P uses the prior and context of that dataset."
            priors[name] = replace(share, warning=warning)
    return ScoredFile(counts.total(), priors, {name: one.threshold for name, one in result.items()}, model.rule)


# Pieces that are scored while another is read or written: most of that is done outside Python's lock.
MAX_PIECES_IN_PROGRESS = 2

Piece = TypeVar("Piece")
PieceResult = TypeVar("PieceResult")


def ahead(make: Callable[[Piece], PieceResult], pieces: Iterable[Piece]) -> Iterator[PieceResult]:
    """Yield the results of a function of each piece, in their order, computed a few pieces ahead of their use.

    Examples
    --------
    >>> list(ahead(abs, [-1, 2, -3]))
    [1, 2, 3]
    """
    with ThreadPoolExecutor(MAX_PIECES_IN_PROGRESS) as pool:
        waiting: deque[Future[PieceResult]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(make, piece))
            if len(waiting) > MAX_PIECES_IN_PROGRESS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


# A dataset, how many of its rows a piece holds, and their sums of P by part.
DatasetSums = tuple[str, int, Floats]


def _sum_piece_by_dataset(model: Model, rows: VoteRows) -> "tuple[pa.Table, list[DatasetSums]]":
    """Return the rows of a piece as they are kept, and its sums by dataset.

    Where rows are looked up, the code of their pattern is kept, else what the judges say of each.
    """
    import pyarrow as pa

    evidence, where = model.evidence(rows.answers)
    names, dataset_of = _table.dataset_codes(rows.datasets)
    sums: list[DatasetSums] = []
    for name, at in zip(names, _table.rows_by_dataset(dataset_of, len(names)), strict=True):
        own = where[at]
        sums.append((name, len(own), evidence.sums(own)))
    items = [rows.datasets, rows.item_ids, pa.array(rows.labels, mask=rows.labels == ABSTAIN)]
    looked_up = model.looks_up(len(where))
    evidence_columns = {"pattern": where.astype(np.int32)} if looked_up else vars(evidence.of_rows(where))
    present = {name: values for name, values in evidence_columns.items() if values is not None}
    types = {name: pa.from_numpy_dtype(values.dtype) for name, values in present.items()}
    schema = pa.schema([*schema_of(ITEM_COLUMNS), *types.items()])
    return pa.table([*items, *present.values()], schema=schema), sums


def _write_rows_to_disk(path: Path, pieces: "Iterable[tuple[pa.Table, list[DatasetSums]]]") -> Iterator[DatasetSums]:
    """Write what is kept of pieces to a file, each with the columns that it has, and yield their sums."""
    import pyarrow as pa

    with pa.OSFile(str(path), "wb") as file:
        for table, sums in pieces:
            # A stream of its own for each piece, since the columns of a piece hang on how many rows it has.
            with pa.ipc.new_stream(file, table.schema) as stream:
                stream.write_table(table)
            yield from sums


def _read_rows_from_disk(path: Path) -> "Iterator[pa.Table]":
    """Yield the rows that were kept, a piece at a time."""
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as file:
        while file.tell() < file.size():
            yield pa.ipc.open_stream(file).read_all()


def _score_piece(model: Model, contexts: Mapping[str, Floats], prior: float | None, piece: "pa.Table") -> "pa.Table":
    """Return the scores of a piece, whose datasets have these contexts."""
    import pyarrow as pa

    names, dataset_of = _table.dataset_codes(piece["dataset"])
    arrays = {name: piece[name].to_numpy() for name in piece.column_names[len(ITEM_COLUMNS) :]}
    codes = arrays.pop("pattern", None)
    evidence = Evidence(**arrays) if codes is None else model.every_pattern
    rows = _table.rows_by_dataset(dataset_of, len(names))
    columns = model.columns_at([(contexts[n], at) for n, at in zip(names, rows, strict=True)], prior, evidence, codes)
    scores = [SCORE_COLUMNS[name].array(cells) for name, cells in columns.items()]
    schema = schema_of(ITEM_COLUMNS, SCORE_COLUMNS)
    return pa.table([*piece.columns[: len(ITEM_COLUMNS)], *scores], schema=schema)


def _join_texts(paths: Sequence[str], table: "pa.Table") -> "pa.Table":
    """Return scores with the texts of the examples that tables of votes remember."""
    import pyarrow as pa

    keys = list(zip(table["dataset"].to_pylist(), table["item_id"].to_pylist(), strict=True))
    result = read_texts(list(paths), keys).examples
    for name in TEXT_COLUMNS:
        texts = [getattr(result[key], name) if key in result else None for key in keys]
        table = table.append_column(name, pa.array(texts, pa.string()))
    return table


# The columns of which Parquet keeps the least and largest values: of all twelve that takes a fifth of the writing.
STATISTICS_COLUMNS = ("dataset", "p_consistent")


def open_table_writer(
    path: Path, suffix: str, schema: "pa.Schema", to: str | None = None, *, dense: bool = False
) -> "parquet.ParquetWriter | PlainCsvWriter":
    """Return a writer of tables of these columns to a Parquet or CSV file, or in the format of another tool, `to`.

    `dense` says that hardly a probability comes twice, so that Parquet need not look for those that do.
    """
    if to is not None:
        guest: PlainCsvWriter = load_part(to, WRITER_GROUP)(path)  # with the same methods
        return guest
    if suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        unlike = {
            "item_id",
            *TEXT_COLUMNS,
            *(name for name in schema.names if dense and schema.field(name).type == pa.float64()),
        }
        dictionaries = [name for name in schema.names if name not in unlike]
        return pq.ParquetWriter(path, schema, use_dictionary=dictionaries, write_statistics=list(STATISTICS_COLUMNS))
    return PlainCsvWriter(path, schema)


def prior_lines(priors: dict[str, PriorEstimate]) -> Iterator[str]:
    """Yield a line a dataset, with the warning about its prior."""
    for name, prior in priors.items():
        interval = f", 90 % interval {100 * prior.low:.1f} to {100 * prior.high:.1f}" if prior.is_measured else ""
        warning = f" ({prior.warning})" if prior.warning else ""
        yield f"{name}: {100 * prior.estimate:.1f} % consistent{interval}{warning}"
