"""Count what a model needs of a whole dataset before it can score one row: parts of it here and there, then merged.

For instance:

  deep data moments model.json --to sql --table votes
      a SELECT that counts in your database; save its result as cells.csv or cells.parquet
  deep data moments model.json --cells cells.parquet --out moments.json
      that result as moments
  deep data moments model.json --votes part-1.parquet --out part-1.json
      the moments of one part of the rows, held a piece at a time
  deep data moments model.json --moments part-1.json part-2.json --out moments.json
      parts merged, in any order; then `deep adapt model.json --moments moments.json --out mine.json`
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

import deep.model
from deep._util.checks import AnyVotes, Floats, Positions, Texts, check_consistent_length, quote
from deep._util.columns import Column, name_cells, score_cells, vote_cells
from deep._util.files import JsonObject, atomic_file, check_out, read_bytes
from deep._util.names import check_name
from deep._util.options import option
from deep.console import MODEL_ARG, SCHEMA, adder, print_result
from deep.datasets import open_all
from deep.exceptions import ExitStatus, InputError
from deep.integrations.engines._engine_tables import COUNT, BatchColumns, matched_names, moments_sql
from deep.model import SHIFTS, FixedPrior, Model, ScoreOptions, contexts_of_means

if TYPE_CHECKING:
    import pyarrow as pa


# Sums of P are whole numbers of 2**-53: adding whole numbers gives the same in any order.
UNIT_BITS = 53

# A sum is kept in two halves: the upper bits of each number, and its other 27, so that many add up within 64 bits.
HIGH_BITS = 26

MOST_ROWS = 1 << 36
"""Rows added at once: above, a sum of so many numbers of 26 bits would not fit 64."""

# Of rows with one pattern: above, not every whole number is a double.
LARGEST_COUNT = 1 << 53

# Rows of a table of patterns that are in memory together: more take more room, fewer more passes.
PATTERNS_AT_ONCE = 1 << 17

WholeNumbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class DatasetMoments:
    """Counts and sums of one dataset.

    Parameters
    ----------
    n : int
        Rows, at least 1.
    cells : mapping of str to int
        By pattern (1, 0, or - for no vote, a character a voter): rows that have it. Empty where the model has soft
        scores or more than 10 voters.
    p_sums : tuple of int
        The sums over the rows of what :meth:`Blend.views` gives, in units of 2**-53; empty where there are cells.
    """

    n: int
    cells: Mapping[str, int] = field(default_factory=dict)
    p_sums: tuple[int, ...] = ()

    def __add__(self, other: "DatasetMoments") -> "DatasetMoments":
        """Return the moments of both together."""
        cells = Counter(self.cells)
        cells.update(other.cells)
        sums = tuple(one + two for one, two in zip(self.p_sums, other.p_sums, strict=True))
        return DatasetMoments(self.n + other.n, dict(sorted(cells.items())), sums)


@dataclass(frozen=True)
class Moments:
    """The moments of datasets, for one model: counted in parts, merged, and read by :func:`adapt_by_moments`.

    Parameters
    ----------
    voters, score_names, parts : tuple of str
        Of the model.
    model : str or None
        The checksum of the model whose sums these are; None where cells are held, which fit any model of the voters.
    datasets : mapping of str to DatasetMoments
        The moments of each dataset, by its name.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.engines import moments_of_votes
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> model = fit(votes.rows(votes.datasets != "aggrefact-xsum"))
    >>> mine = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> names = model.voter_names
    >>> halves = [moments_of_votes(model, model.select(mine.rows(rows)), datasets=["mine"] * len(rows))
    ...           for rows in (range(100), range(100, 558))]
    >>> halves[0].merge(halves[1]) == halves[1].merge(halves[0])
    True
    """

    voters: tuple[str, ...]
    score_names: tuple[str, ...]
    parts: tuple[str, ...]
    model: str | None
    datasets: Mapping[str, DatasetMoments]

    @classmethod
    def empty(cls, model: Model) -> "Moments":
        """Return the moments of no rows, to which others are merged."""
        parts = tuple(part.name for part in model.blend.parts)
        by_cells = model.has_table
        bound = None if by_cells else _checksum(model)
        return cls(model.voter_names, model.score_names, () if by_cells else parts, bound, {})

    def merge(self, *others: "Moments") -> "Moments":
        """Return the moments of all rows together; the order of merging changes nothing.

        Raises
        ------
        InputError
            They are of different models.
        """
        sums = dict(self.datasets)
        for other in others:
            self.check_same(other)
            for name, one in other.datasets.items():
                sums[name] = sums[name] + one if name in sums else one
        return replace(self, datasets=dict(sorted(sums.items())))

    def check_same(self, other: "Moments") -> None:
        """Raise unless `other` can be merged with these."""
        for name in ("voters", "score_names", "parts", "model"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise InputError(f"`moments` must be of one model. Got {name} {theirs!r} beside {mine!r}. Count again.")


# Of the models whose rows have been counted: a model is written out once, not for every batch.
_CHECKSUMS: WeakKeyDictionary[Model, str] = WeakKeyDictionary()


def _checksum(model: Model) -> str:
    if model not in _CHECKSUMS:
        _CHECKSUMS[model] = str(model.document()["checksum"])
    return _CHECKSUMS[model]


def moments_of_votes(
    model: Model, votes: AnyVotes, *, datasets: Sequence[str] | Texts, counts: npt.ArrayLike | None = None
) -> Moments:
    """Return the moments of rows.

    Parameters
    ----------
    model : Model
        Its patterns of votes are counted where it has a table of them; else the P of its parts is summed.
    votes : ndarray, shape (n_examples, n_voters)
        In the order of the model's voters, as :meth:`Model.select` gives them: 1, 0, or -1 for none.
    datasets : sequence of str, length n_examples
        The dataset of each row.
    counts : array-like of int, shape (n_examples,), optional
        How often each row counts, at least once.

    Raises
    ------
    InputError
        A vote is out of range, or shapes differ from the model's.
    """
    codes = deep.model.dataset_codes(datasets)
    check_consistent_length(codes[1], len(votes), "datasets")
    return _counted(model, votes, codes, counts)


def _counted(
    model: Model, votes: AnyVotes, datasets: tuple[Sequence[str], Positions], counts: npt.ArrayLike | None = None
) -> Moments:
    """Return the moments of rows, whose datasets are names and the position there of each row's."""
    result, (names, dataset_of) = Moments.empty(model), datasets
    n = np.ones(len(votes), dtype=np.int64) if counts is None else np.asarray(counts, dtype=np.int64)
    check_consistent_length(n, len(votes), "counts")
    if not len(votes):
        return result
    rows = model.rows(votes)
    of_dataset = deep.model.rows_by_dataset(dataset_of, len(names))
    if result.model is None:
        codes = deep.model.pattern_codes(rows.votes)
        parts = [_cells(codes[own], n[own], len(model.voters)) for own in of_dataset]
    else:
        values = _in_units(model.blend.views(model.blend.raw(rows)))
        parts = [_sums([one[:, own] for one in values], n[own]) for own in of_dataset]
    return replace(result, datasets=dict(sorted(zip(names, parts, strict=True))))


def moments_of_batch(
    model: Model, batch: "pa.RecordBatch | pa.Table", *, dataset: str | None = None, **matching: bool
) -> Moments:
    """Return the moments of an Arrow batch, as any engine hands them over.

    Parameters
    ----------
    model : Model
        Its voters name the columns; what is counted is as in :func:`moments_of_votes`.
    batch : RecordBatch or Table
        With a column for each voter and score of the model.
    dataset : str, optional
        The dataset of all rows; default: that of the column `dataset`.
    **matching : bool
        `allow_mismatch` and `allow_missing` as in :meth:`Model.score`.

    Raises
    ------
    InputError
        A column is missing or holds something else.
    """
    columns = BatchColumns(batch)
    scales = deep.model.scales_of_columns(model.voters, batch.schema.names, model.scales)
    votes = columns.votes(matched_names(model, batch.schema.names, **matching), scales)
    whole = dataset is not None and ([dataset], np.zeros(len(votes), dtype=np.intp))
    return _counted(model, votes, whole or deep.model.dataset_codes(columns.names("dataset")))


def moments_of_cells(model: Model, paths: Sequence[str]) -> Moments:
    """Return the moments of tables of patterns with their counts, as the SQL of :func:`moments_sql` makes them.

    Raises
    ------
    InputError
        A column is missing or holds something else, or the model needs soft scores, which patterns do not have.
    """
    if model.score_names:
        raise InputError(f"`cells` must not be given with a model of soft scores, {model.score_names[0]!r}. Got some.")
    moments, columns = Moments.empty(model), ["dataset", COUNT, *dict.fromkeys(model.voter_names)]
    for source in open_all(paths):
        missing = [name for name in columns if name not in source.columns]
        if missing:
            raise InputError(f"`cells` must have a column named {quote(missing[0])}. Got none in {source.path}.")
        for piece in source.pieces(columns, PATTERNS_AT_ONCE):
            votes = np.column_stack([vote_cells(piece[name]) for name in model.voter_names])
            names, counts = name_cells(piece["dataset"], required=True), _counts(piece[COUNT])
            moments = moments.merge(moments_of_votes(model, votes, datasets=names, counts=counts))
    return moments


def _counts(column: Column) -> WholeNumbers:
    values = score_cells(column)
    wrong = ~((values >= 1) & (values <= LARGEST_COUNT) & (values == np.floor(values)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"`cells` must have counts that are whole and above 0. Got {quote(column.values[row].as_py())} at "
            f"{column.where(row)}. Write count(*) there."
        )
    return values.astype(np.int64)


def moments_of_files(model: Model, paths: Sequence[str], options: ScoreOptions, scores: Sequence[str] = ()) -> Moments:
    """Return the moments of tables of votes, read a piece at a time as by :func:`score_file`."""
    result = Moments.empty(model)
    for rows in deep.model.iter_pieces(model, paths, scores, options):
        result = result.merge(moments_of_votes(model, rows.answers, datasets=rows.datasets))
    return result


def adapt_by_file(model: Model, path: str | Path, dataset: str | None = None) -> tuple[Model, int]:
    """Return the model of a dataset of which a file has the moments, and how many items were counted."""
    moments = read_moments(path)
    adapted = adapt_by_moments(model, moments, dataset)
    return adapted, moments.datasets[str(adapted.target)].n


def adapt_by_moments(model: Model, moments: Moments, dataset: str | None = None) -> Model:
    """Return the model of a dataset of which only the moments are known: contexts and prior as by `Model.adapted`.

    Parameters
    ----------
    model : Model
        Of any dataset.
    moments : Moments
        Counted for this model, on one dataset or several.
    dataset : str, optional
        Needed where the moments are of several.

    Raises
    ------
    InputError
        The model was adapted before, or the moments are not of this model or not of this dataset.
    """
    if model.target is not None:
        raise InputError(
            f"`model` must be one for any dataset. Got one for {model.target!r}. Adapt the model it was made from."
        )
    Moments.empty(model).check_same(moments)
    name = _chosen(moments, dataset)
    contexts = _contexts(model, moments.datasets[name])
    return replace(model, contexts=contexts, prior_rule=FixedPrior(model.prior_at(contexts)), target=name)


def _chosen(moments: Moments, dataset: str | None) -> str:
    names = list(moments.datasets)
    if dataset is None and len(names) == 1:
        return names[0]
    if dataset is None or dataset not in moments.datasets:
        shown = ", ".join(map(repr, names[:5])) or "none"
        raise InputError(f"`dataset` must be one that was counted: {shown}. Got {dataset!r}.")
    return dataset


def _contexts(model: Model, one: DatasetMoments) -> Floats:
    """Return the context of each part."""
    if one.cells:
        patterns = deep.model.patterns_from_text(list(one.cells), len(model.voters))
        weights = np.array(list(one.cells.values()), dtype=np.float64)
        return model.blend.contexts(model.blend.raw(model.rows(patterns)), weights)
    return contexts_of_means([total / (one.n << UNIT_BITS) for total in one.p_sums])


def _cells(codes: npt.NDArray[np.int32], counts: WholeNumbers, n_voters: int) -> DatasetMoments:
    few = len(codes) < 3**n_voters  # to go through every pattern costs more than to sort them
    distinct, at = np.unique(codes, return_inverse=True) if few else (np.arange(3**n_voters), codes)
    totals = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(totals, at, counts)
    texts = _grid_text(n_voters)
    cells = {texts[code]: n for code, n in zip(distinct.tolist(), totals.tolist(), strict=True) if n}
    return DatasetMoments(int(counts.sum()), cells)


@cache
def _grid_text(n_voters: int) -> list[str]:
    """Return the text of every pattern, ascending: to write them anew for each batch takes most of the time."""
    return deep.model.pattern_text(deep.model.pattern_grid(n_voters))


def _in_units(p: Floats) -> tuple[WholeNumbers, WholeNumbers]:
    """Return P as whole numbers of 2**-26 and, of what is left, of 2**-53."""
    scaled = p * (1 << HIGH_BITS)
    high = np.floor(scaled)
    low = np.rint((scaled - high) * (1 << (UNIT_BITS - HIGH_BITS)))
    return high.astype(np.int64), low.astype(np.int64)


def _sums(values: Sequence[WholeNumbers], counts: WholeNumbers) -> DatasetMoments:
    if int(counts.max()) * len(counts) >= MOST_ROWS:
        values, counts = [one.astype(object) for one in values], counts.astype(object)
    high, low = ((one * counts).sum(axis=1) for one in values)
    sums = tuple((int(h) << (UNIT_BITS - HIGH_BITS)) + int(low_) for h, low_ in zip(high, low, strict=True))
    return DatasetMoments(int(counts.sum()), {}, sums)


MOMENTS_FORMAT = "deep moments"
MOMENTS_VERSION = 2
# Bytes of a file of moments.
MAX_FILE_BYTES = 1 << 28


def moments_values(moments: Moments) -> JsonObject:
    """Return moments as a JSON object; sums are text, for they have more digits than other readers' numbers."""
    return {
        "format": MOMENTS_FORMAT,
        "schema_version": MOMENTS_VERSION,
        "voters": list(moments.voters),
        "score_names": list(moments.score_names),
        "parts": list(moments.parts),
        "model": moments.model,
        "datasets": {
            name: {"n": one.n, "cells": dict(one.cells), "p_sums": [str(total) for total in one.p_sums]}
            for name, one in moments.datasets.items()
        },
    }


def moments_from(values: JsonObject) -> Moments:
    """Return the moments that a JSON object holds.

    Raises
    ------
    InputError
        It is no such object, or its numbers contradict each other.
    """
    try:
        return _checked(values)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"`moments` must be written by `deep data moments`. Got an object that is not: {reason[:120]}. Count again."
        ) from None


def save_moments(moments: Moments, path: str | Path) -> None:
    """Write moments as JSON, whole or not at all; :func:`read_moments` reads them.

    Parameters
    ----------
    moments : Moments
        Of one or more datasets.
    path : path
        Of the file to write.
    """
    values = moments_values(moments)
    deep.model.write_document({**values, "checksum": deep.model.checksum(values)}, path)


def read_moments(path: str | Path) -> Moments:
    """Read moments from a JSON file.

    Parameters
    ----------
    path : path
        Of a file that :func:`save_moments` wrote.

    Raises
    ------
    InputError
        There is no such file, or it holds something else.
    """
    shown = repr(str(path))
    try:
        values = json.loads(read_bytes(path, "moments", MAX_FILE_BYTES).decode("utf-8"))
    except OSError as error:
        raise InputError(f"`moments` must be a readable file. Got {shown}: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(f"`moments` must be JSON. Got {shown}: {reason}. Count again.") from None
    if not isinstance(values, dict) or values.get("format") != MOMENTS_FORMAT:
        raise InputError(f"`moments` must be a file that `deep data moments` wrote. Got {shown}.")
    if values.get("schema_version") != MOMENTS_VERSION:
        raise InputError(
            f"`moments` must have schema_version {MOMENTS_VERSION}. Got {values.get('schema_version')!r} in {shown}."
        )
    if "checksum" in values and values["checksum"] != deep.model.checksum(values):  # older files have none
        raise InputError(f"`moments` must not have been changed. Got {shown}, whose checksum differs. Count again.")
    return moments_from(values)


def _checked(values: JsonObject) -> Moments:
    names = {key: tuple(check_name(name, key) for name in values[key]) for key in ("voters", "score_names", "parts")}
    model = values["model"]
    _check_rule(model is None or isinstance(model, str), "model is not a checksum")
    _check_rule((model is None) == (not names["parts"]), "parts and model go together")
    datasets = {
        check_name(name, "datasets"): _dataset(one, len(names["voters"]), len(names["parts"]))
        for name, one in values["datasets"].items()
    }
    return Moments(**names, model=model, datasets=dict(sorted(datasets.items())))


def _dataset(values: JsonObject, n_voters: int, n_parts: int) -> DatasetMoments:
    n, cells = values["n"], dict(sorted(values["cells"].items()))
    sums = tuple(int(text) for text in values["p_sums"])
    _check_rule(type(n) is int and n >= 1, "n is not 1 or more")
    _check_rule(len(sums) == (n_parts + len(SHIFTS) if n_parts else 0), "p_sums are not one a part and shift")
    _check_rule(all(0 <= total <= n << 53 for total in sums), "p_sums are out of range")
    _check_rule(all(type(count) is int and count >= 1 for count in cells.values()), "a cell counts no rows")
    _check_rule(all(len(text) == n_voters and not set(text) - set("-01") for text in cells), "a cell is not a pattern")
    _check_rule(sum(cells.values()) == (0 if n_parts else n), "cells do not add up to n")
    return DatasetMoments(n, cells, sums)


def _check_rule(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


@dataclass(frozen=True)
class _Moments:
    """Options of the command.

    Parameters
    ----------
    cells : tuple of str
        Tables of patterns with their counts, as by SQL.
    moments : tuple of str
        Moments counted before.
    to : str, optional
        Print the SQL for counting, and count nothing.
    table : str, default='votes'
        The table of votes in SQL (default votes).
    out : Path, optional
        All together, .json; with --to the SQL, .sql.
    """

    cells: tuple[str, ...] = option((), "FILE")
    moments: tuple[str, ...] = option((), "FILE")
    to: str | None = option(None, choices=("sql",))
    table: str = option("votes", "NAME")
    out: Path | None = option(None, "FILE")


add_arguments = adder(
    *(MODEL_ARG, "votes", "scores", _Moments, "allow-mismatch", "allow-missing"),
    votes={"help": "tables of votes, of whole datasets or parts"},
)


def run(args: argparse.Namespace) -> int:
    """Count, merge, write and report."""
    inputs = args.votes or args.cells or args.moments
    if bool(args.to) == bool(inputs):
        got = "both" if inputs else "none"
        raise InputError(f"`to`, or `votes`, `cells` or `moments`, must be given. Got {got}.")
    if args.to:
        return _write_sql(args)
    if args.out is None:
        raise InputError("`out` must be given with `votes`, `cells` or `moments`. Got none.")
    out, fitted = check_out(args.out, [".json"]), deep.model.load(args.model)
    options = ScoreOptions(args.allow_mismatch, args.allow_missing)
    by_path = _read_once(args.moments)
    result = Moments.empty(fitted).merge(*by_path.values())
    if args.cells:
        result = result.merge(moments_of_cells(fitted, args.cells))
    if args.votes:
        result = result.merge(moments_of_files(fitted, args.votes, options, args.scores))
    save_moments(result, out)
    rows = {name: one.n for name, one in result.datasets.items()}
    lines = [*_duplicate_files(by_path), *(f"{name}: {n} rows" for name, n in rows.items()), f"moments: {out}"]
    print_result(SCHEMA | {"rows": rows, "out": str(out)}, lines, as_json=args.json)
    return ExitStatus.DONE


def _read_once(paths: Sequence[str]) -> dict[str, Moments]:
    """Return the moments in files, none of which may be given twice."""
    places = [Path(path).resolve() for path in paths]
    twice = next((path for at, path in enumerate(paths) if places[at] in places[:at]), None)
    if twice is not None:
        raise InputError(f"`moments` must be different files. Got {twice!r} twice, whose rows would count twice.")
    return {path: read_moments(path) for path in paths}


def _duplicate_files(by_path: Mapping[str, Moments]) -> Iterator[str]:
    """Yield a line on each file that holds what another one does, as a copy would."""
    paths = list(by_path)
    for at, path in enumerate(paths):
        same = next((other for other in paths[:at] if by_path[other] == by_path[path]), None)
        if same is not None:
            yield f"{path} holds the same counts as {same}: if the rows are the same, they count twice"


def _write_sql(args: argparse.Namespace) -> int:
    text = moments_sql(deep.model.load(args.model), table=args.table)
    if args.out is None:
        sys.stdout.write(text)
    else:
        with atomic_file(check_out(args.out, [".sql"])) as scratch:
            scratch.write_text(text, encoding="utf-8")
    return ExitStatus.DONE
