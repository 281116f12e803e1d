"""A chain over few voters as a table: a probability for every pattern of votes, found by its code."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from deep._util.checks import AnyVotes, Floats, Positions, Votes, as_floats, check_votes, is_votes, quote
from deep._util.columns import long_names
from deep._util.frames import Frame, frame_table, null_for_no_vote
from deep._util.names import check_name, listed
from deep._util.odds import logit
from deep._util.scales import BINARY, Scale
from deep.datasets import VOTE_COLUMNS, Paths, VotesGiven, as_votes, is_paths, read_votes, table_columns
from deep.exceptions import InputError
from deep.features import Rows, distinct_rows
from deep.judges import parse_voter
from deep.model._training import ChainSpec, FoldCells
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.model._search import Chain


MAX_TABLE_VOTERS = 10
"""Up to here the whole table is kept: 3**10 is 59,049 probabilities."""

# Rows coded together: their codes stay in the processor's cache between two columns.
ROWS_PER_BATCH = 1 << 14

# The characters that stand for no vote, 0 and 1 in the text of a pattern.
_VOTE_SYMBOLS = "-01"


@dataclass(frozen=True, eq=False)
class PatternTable:
    """P(consistent) for every pattern of k votes.

    Parameters
    ----------
    p : ndarray of float, shape (3**k,)
        The entry of votes v_1 .. v_k stands at sum over j of (v_j + 1) * 3**(k - j): no vote counts 0, a vote of
        0 counts 1, a vote of 1 counts 2, and the first voter weighs most.
    uncalibrated : ndarray of float, shape (3**k,)
        The ensembler's own probabilities.
    """

    p: Floats
    uncalibrated: Floats


def pattern_grid(n_voters: int) -> Votes:
    """Return all patterns of `n_voters` votes in the order of a table, shape (3**n_voters, n_voters).

    Examples
    --------
    >>> pattern_grid(2)[:4].tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, -1]]
    """
    if not 1 <= n_voters <= MAX_TABLE_VOTERS:
        raise InputError(f"`n_voters` must be between 1 and {MAX_TABLE_VOTERS}. Got {n_voters!r}.")
    codes = np.arange(3**n_voters)[:, None]
    return (codes // 3 ** np.arange(n_voters - 1, -1, -1) % 3 - 1).astype(np.int8)


def look_up(values: Floats, votes: npt.ArrayLike) -> Floats:
    """Return the entry of a table for each row of votes.

    Parameters
    ----------
    values : ndarray of float, shape (3**n_voters,)
        In the order of `pattern_grid`.
    votes : array-like of shape (n_examples, n_voters)
        1 consistent, 0 inconsistent, -1 no vote. Fastest as int8.

    Returns
    -------
    ndarray of float, shape (n_examples,)

    Raises
    ------
    InputError
        A vote is out of range.
    """
    return np.asarray(values.take(pattern_codes(votes), mode="clip"))


def pattern_codes(votes: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Return the position of each row of votes in `pattern_grid`; parameters as in `look_up`."""
    matrix = votes if isinstance(votes, np.ndarray) and votes.dtype == np.int8 and votes.ndim == 2 else None
    if matrix is None or not matrix.size:
        matrix = check_votes(votes, name="votes")
    offset = (3 ** matrix.shape[1] - 1) // 2
    codes = np.zeros(len(matrix), dtype=np.int32)
    for start in range(0, len(matrix), ROWS_PER_BATCH):
        block = matrix[start : start + ROWS_PER_BATCH]
        # One comparison tells: -1, 0, 1 are 0, 1, 2 after adding 1, and all else wraps round to more.
        if ((block.view(np.uint8) + np.uint8(1)) > 2).any():
            check_votes(matrix, name="votes")
        code = codes[start : start + ROWS_PER_BATCH]
        for column in block.T:
            code *= 3
            code += column
        code += offset
    return codes


def pattern_text(patterns: Votes) -> list[str]:
    """Return each pattern as text, one character a voter: 1, 0, or - for no vote.

    Examples
    --------
    >>> pattern_text(np.array([[1, 0, -1]], dtype=np.int8))
    ['10-']
    """
    return ["".join(_VOTE_SYMBOLS[vote + 1] for vote in row) for row in patterns.tolist()]


def patterns_from_text(texts: list[str], n_voters: int) -> Votes:
    """Return patterns from their texts, shape (n_patterns, n_voters)."""
    wrong = next((text for text in texts if len(text) != n_voters or set(text) - set(_VOTE_SYMBOLS)), None)
    if wrong is not None:
        raise InputError(f"`patterns` must have {n_voters} characters of - 0 1 each. Got {wrong!r}.")
    rows = [[_VOTE_SYMBOLS.index(symbol) - 1 for symbol in text] for text in texts]
    return np.array(rows, dtype=np.int8).reshape(len(texts), n_voters)


@dataclass(frozen=True, eq=False)
class ChainScorer:
    """Voters, one ensembler, one calibrator.

    Parameters
    ----------
    spec : ChainSpec
        Ensembler, parameters, calibrator, recipe and seed.
    cells : FoldCells
        The training cells of the chain's voters.
    table : PatternTable or None
        All patterns; None above 10 voters.
    """

    spec: ChainSpec
    cells: FoldCells
    table: PatternTable | None

    def __call__(self, rows: Rows) -> Floats:
        """Return log-odds of calibrated P, shape (n_examples,)."""
        return logit(self.predict(rows.votes))

    @cached_property
    def chain(self) -> "Chain":
        """Return the chain, fitted again from the training cells."""
        from deep.model._search import fit_chain

        return fit_chain(self.spec, self.cells.training())

    def predict(self, votes: Votes) -> Floats:
        """Return calibrated P(consistent) of rows of votes, shape (n_examples,)."""
        return self.chain.predict(votes) if self.table is None else look_up(self.table.p, votes)

    def uncalibrated(self, votes: Votes) -> Floats:
        """Return the ensembler's own P(consistent) of rows of votes, shape (n_examples,)."""
        return self.chain.uncalibrated(votes) if self.table is None else look_up(self.table.uncalibrated, votes)


VotesLike = VotesGiven | npt.ArrayLike
"""Rows of votes: a vote matrix, a data frame or paths by name, or an array in the order of the voters."""

Scales = Mapping[str, Scale]
# The scales of voters all of whom vote.
ALL_VOTE: Scales = MappingProxyType({})


@dataclass(frozen=True)
class Voter:
    """One column that a chain was fitted on.

    Parameters
    ----------
    name : str
        ``<id>@<version>/<model>`` for prompts and encoders, ``<id>@<version>`` for lexical checks; any other name
        stands for itself.
    details : mapping
        What the vote file said of it: hash, parameters, endpoint.
    """

    name: str
    details: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """Return the name of the prompt or check."""
        return parse_voter(self.name).name

    @property
    def version(self) -> str | None:
        """Return the first 8 digits of its hash; None where the name has none."""
        return parse_voter(self.name).version

    @property
    def model(self) -> str | None:
        """Return the model that was asked; None where there was none."""
        return parse_voter(self.name).model


def match_columns(
    voters: Sequence[Voter], columns: Sequence[str], *, allow_mismatch: bool = False, allow_missing: bool = False
) -> list[int | None]:
    """Return the column that stands for each voter.

    Parameters
    ----------
    voters : sequence of Voter
        Those of a model; the result has an entry for each, in their order.
    columns : sequence of str
        Those that are no voter of the model are not used.
    allow_mismatch : bool, default=False
        Take a column of the same id where version or model differ.
    allow_missing : bool, default=False
        None for a voter without any column, which then counts as no vote.

    Raises
    ------
    InputError
        A voter has no column, or only one of another version or model.

    Examples
    --------
    >>> match_columns([Voter("strict@0a1b2c3d/small")], ["other", "strict@0a1b2c3d/small"])
    [1]
    """
    exact = {name: position for position, name in enumerate(columns)}
    full_names = {voter.name for voter in voters}
    result: list[int | None] = []
    for voter in voters:
        if voter.name in exact:
            result.append(exact[voter.name])
            continue
        # A column that another voter of the model has by its full name stands for that one alone.
        kin = [name for name in columns if name not in full_names and Voter(name).id == voter.id]
        if kin and not allow_mismatch:
            what = "version" if voter.version != Voter(kin[0]).version else "model"
            raise InputError(
                f"`votes` must come from the {what} of {voter.id!r} that the model was fitted on, {voter.name!r}. "
                f"Got {kin[0]!r}. Judge anew, fit anew, or override with `allow_mismatch`."
            )
        if len(kin) > 1:
            raise InputError(
                f"`votes` must have one column for {voter.id!r} to stand for {voter.name!r}. "
                f"Got {', '.join(map(repr, kin))}."
            )
        if not kin and not allow_missing:
            raise InputError(
                f"`votes` must have a column for every voter of the model. Got none named {voter.name!r}. "
                "Add it, or let it count as no vote with `--allow-missing` (`allow_missing`)."
            )
        result.append(exact[kin[0]] if kin else None)
    if all(column is None for column in result):
        raise InputError(f"`votes` must have a column of the model. Got none of {', '.join(v.name for v in voters)}.")
    return result


def other_columns(voters: Sequence[Voter], table: "pa.Table | Paths") -> list[str]:
    """Return the columns of a table or of files that cannot stand for a voter, and so need not hold votes.

    Raises
    ------
    InputError
        No column can.
    """
    ids = {voter.id for voter in voters}
    paths = [table] if isinstance(table, str | Path) else table if isinstance(table, list | tuple) else None
    columns = getattr(table, "column_names", None) if paths is None else table_columns(paths)
    names = [name for name in columns or () if name not in VOTE_COLUMNS]
    others = [name for name in names if Voter(name).id not in ids]
    if len(others) == len(names):
        where = ", ".join(repr(str(path)) for path in paths or ["the frame"])
        own, got = (listed([*map(repr, those)], rest="more") for those in ([one.name for one in voters], names))
        raise InputError(
            f"`votes` must have the columns of the model's voters, {own}. Got {got or 'no voter'} in {where}."
        )
    return others


def votes_of_voters(voters: Sequence[Voter], votes: VotesLike, scales: Scales = ALL_VOTE) -> VoteMatrix | npt.ArrayLike:
    """Return the answers of a frame or of files as a matrix, without the columns that stand for no voter.

    Rows of a frame without item_id get the numbers of their rows. Arrays stay as they are.
    """
    if isinstance(votes, Frame):
        table = frame_table(votes)
        if long_names(table.column_names):
            return as_votes(table, scales=scales_of_columns(voters, table.column_names, scales))
        table = null_for_no_vote(table.drop_columns(other_columns(voters, table)))
        if "item_id" not in table.column_names:
            table = table.append_column("item_id", [[str(row) for row in range(table.num_rows)]])
        return as_votes(table, scales=scales_of_columns(voters, table.column_names, scales))
    if is_paths(votes):
        own = scales_of_columns(voters, table_columns(votes), scales)
        return read_votes(votes, ignore=other_columns(voters, votes), scales=own)
    return as_votes(votes) if np.ndim(cast("Any", votes)) == 0 else cast("npt.ArrayLike", votes)


def scales_of_columns(voters: Sequence[Voter], columns: Sequence[str], scales: Scales) -> Scales:
    """Return the scales of the columns of a table that can stand for voters, whose scales are given by name."""
    # Judges that all vote are read as votes, in bytes: answers on scales take eight times the memory.
    if all(scale.binary for scale in scales.values()):
        return ALL_VOTE
    of_ids = {voter.id: scales[voter.name] for voter in voters}
    return {name: scales.get(name, of_ids.get(Voter(name).id, BINARY)) for name in columns if Voter(name).id in of_ids}


def check_width(voters: Sequence[Voter], answers: npt.ArrayLike) -> None:
    """Raise unless rows have a column a voter."""
    shape = np.shape(answers)
    if len(shape) != 2 or shape[1] != len(voters):
        names = ", ".join(voter.name for voter in voters)
        raise InputError(f"`votes` must have {len(voters)} columns: {names}. Got {shape}.")


def check_answers(voters: Sequence[Voter], scales: Scales, answers: npt.ArrayLike) -> AnyVotes:
    """Return rows of votes, or with scales of places on them, of these voters."""
    check_width(voters, answers)
    return check_scale_places(answers) if scales else check_votes(answers, name="votes")


def row_in_order(
    voters: Sequence[Voter], scales: Scales, votes: Sequence[float] | Mapping[str, float]
) -> npt.NDArray[Any]:
    """Return the answers of one row, given as the judges give them, as :func:`select_columns` would."""
    names = [voter.name for voter in voters]
    none = np.nan if scales else ABSTAIN
    answers = [votes.get(name, none) for name in names] if isinstance(votes, Mapping) else list(votes)
    unknown = sorted(set(votes) - set(names)) if isinstance(votes, Mapping) else []
    if unknown:
        raise InputError(f"`votes` must name voters of the model, {', '.join(sorted(names))}. Got {unknown[0]!r}.")
    check_width(voters, [answers])
    if not scales:
        return np.asarray(check_votes([answers], name="votes")[0])
    # -1 stands for no vote, unless it is a grade of the judge's own scale.
    is_none = [v == ABSTAIN and scales[name].vote(v) == ABSTAIN for name, v in zip(names, answers, strict=True)]
    cells = np.where(is_none, np.nan, answers)
    row = VoteMatrix(cells[np.newaxis], ["row"], names, ["data"], [ABSTAIN], scales=[*scales.values()])
    return np.asarray(select_columns(voters, row, scales)[0])


def join_scores(voters: Sequence[Voter], scales: Scales, votes: VotesLike, scores: npt.ArrayLike) -> VoteMatrix:
    """Return votes in which the scores of the judges stand that do not vote, a column each."""
    if not scales:
        raise InputError("`scores` must not be given with a model of votes. Got some.")
    whole, names = votes_of_voters(voters, votes), [name for name, scale in scales.items() if not scale.binary]
    if not isinstance(whole, VoteMatrix):
        matrix, n = check_votes(whole, name="votes"), len(np.asarray(whole))
        whole = VoteMatrix(matrix, range(n), [one.name for one in voters], ["data"] * n, [ABSTAIN] * n)
    return whole.with_answers(scores, names, {name: scales[name] for name in names})


def select_columns(
    voters: Sequence[Voter],
    votes: VotesLike,
    scales: Scales = ALL_VOTE,
    *,
    allow_mismatch: bool = False,
    allow_missing: bool = False,
) -> AnyVotes:
    """Return the columns of voters, in their order: votes, or where some give grades or scores places on their scales.

    Parameters are as in :func:`match_columns`; a matrix of other scales is read again by those of the voters.
    """
    votes = votes_of_voters(voters, votes, scales)
    if not isinstance(votes, VoteMatrix):
        if scales:
            return check_scale_places(votes)
        return votes if isinstance(votes, np.ndarray) else check_votes(votes, name="votes")
    columns = match_columns(voters, votes.voter_names, allow_mismatch=allow_mismatch, allow_missing=allow_missing)
    if not scales:
        return reorder_columns(votes.votes, columns)
    result = np.full((len(votes.votes), len(columns)), np.nan)
    for place, column in enumerate(columns):
        if column is not None:
            result[:, place] = votes.answers_on(scales[voters[place].name], column)
    return result


def check_scale_places(answers: npt.ArrayLike) -> Floats:
    """Return an array of places on scales."""
    result = as_floats(answers, "votes")
    with np.errstate(invalid="ignore"):
        wrong = (result < 0) | (result > 1)
    if result.ndim != 2 or wrong.any():
        raise InputError(
            "`votes` must be places on the judges' scales in two dimensions: 0 the worst answer, 1 the best, NaN none. "
            f"Got {quote(result[wrong][0] if wrong.any() else result.shape)}. Give a matrix or "
            "frame, whose answers are read by the scales."
        )
    return result


def reorder_columns(votes: AnyVotes, columns: Sequence[int | None]) -> AnyVotes:
    """Return these columns of votes, of no votes where one is None."""
    # The usual case needs no copy, which for ten million rows would take as long as scoring them.
    if list(columns) == list(range(votes.shape[1])):
        return votes
    result = np.full((len(votes), len(columns)), np.nan if not is_votes(votes) else ABSTAIN, dtype=votes.dtype)
    for place, column in enumerate(columns):
        if column is not None:
            result[:, place] = votes[:, column]
    return result


TRAINING_ROWS_KEY = "training_rows"
"""Key of the fingerprints of the training rows by dataset, in the provenance of a model; older files have none."""


def row_fingerprints(votes: VoteMatrix, matrix: AnyVotes) -> dict[str, str]:
    """Return by dataset a fingerprint of its items and their votes, whatever their order.

    Parameters
    ----------
    votes : VoteMatrix
        Which names datasets and items.
    matrix : ndarray, shape (n_examples, n_voters)
        The answers of the judges that count.
    """
    from pandas.util import hash_array

    patterns, pattern_of = distinct_rows(matrix if matrix.flags.c_contiguous else matrix.copy())
    by_pattern = np.array([int.from_bytes(sha256(row.tobytes()).digest()[:8], "big") for row in patterns], np.uint64)
    rows = hash_array(hash_array(votes.item_ids.astype(object), categorize=False) ^ by_pattern[pattern_of])
    # Sums of mixed numbers of 64 bits, modulo 2**64: the order of the rows does not matter, how often one comes does.
    own = ((name, rows[votes.datasets == name]) for name in votes.dataset_names)
    return {name: f"{len(of)}-{int(of.sum(dtype=np.uint64)):016x}" for name, of in own}


def dataset_codes(names: object) -> tuple[list[str], Positions]:
    """Return the distinct names of datasets, and which of them each row has.

    Raises
    ------
    InputError
        A name cannot stand on one line.
    """
    import pyarrow as pa

    column = names if isinstance(names, pa.ChunkedArray) else pa.chunked_array([pa.array(names, pa.string())])
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    return [check_name(name, "dataset") for name in coded.dictionary.to_pylist()], np.asarray(coded.indices)


def rows_by_dataset(dataset_of: Positions, n: int) -> Sequence[Positions | slice]:
    """Return the rows of each of n datasets, in one sort: pieces may hold thousands of them."""
    if n == 1:
        return [slice(None)]
    order = np.argsort(dataset_of, kind="stable")
    return np.split(order, np.cumsum(np.bincount(dataset_of, minlength=n))[:-1])
