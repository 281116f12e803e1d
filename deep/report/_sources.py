"""The sources of a report, told apart and read: the folder of a run, a model file, tables of votes."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep import evaluate
from deep._util.checks import Floats, Mask, Positions
from deep._util.files import RESULTS, JsonObject, read_bytes
from deep.calibration import DEFAULT_BINS, expected_calibration_error
from deep.datasets import Failures, PeopleLabels, open_parquet, read_people, read_reasons, read_votes, table_in
from deep.exceptions import InputError
from deep.model import ITEM_COLUMNS, SCORE_COLUMNS, Model, PriorEstimate, check_prior, fit, join_score_tables, load
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd


# The name of the one voter of a run that kept no votes: its own decision.
RUN_DECISION_VOTER = "(decision of the run)"


# Sentences on where the P of a report comes from, one for each source of it.
P_BY_VOTES_NOTE = (
    "P(consistent) comes from `deep fit` without labels, by agreement alone. The labels were not used, so they test it."
)
SHARE_NOTE = "Too few votes to learn from: P(consistent) is the share of votes for it, with one added on each side."
P_BY_MODEL_NOTE = "P(consistent) by the model, each dataset at its estimated share of consistent items."
P_AT_GIVEN_SHARE_NOTE = "P(consistent) by the model, at the given share of consistent items."
P_BY_RUN_NOTE = "P(consistent) of every item comes from a fit without its dataset."


@dataclass(frozen=True, eq=False)
class ScoredVotes:
    """Items with their votes and P(consistent).

    Parameters
    ----------
    votes : VoteMatrix
        Without voters where a run kept none.
    p, low, high : ndarray of float, shape (n_items,)
        P and its 90 % interval; the bounds are nan where there is none.
    before : ndarray of float, shape (n_items,)
        P before calibration.
    decided, sure : ndarray of bool, shape (n_items,)
        Called consistent by the rule of the model; whether that is sure (:func:`deep.model.sure_mask`).
    threshold : ndarray of float, shape (n_items,)
        The P from which on an item is called consistent.
    how : str
        A sentence on where P comes from.
    priors : dict of str to PriorEstimate
        By dataset.
    """

    votes: VoteMatrix
    p: Floats
    low: Floats
    high: Floats
    before: Floats
    decided: Mask
    sure: Mask
    threshold: Floats
    how: str
    priors: dict[str, PriorEstimate] = field(default_factory=dict)

    @property
    def labeled(self) -> Mask:
        """Return which items have a label."""
        return np.asarray(self.votes.labels >= 0)

    @property
    def voted(self) -> Mask:
        """Return which items any judge voted on."""
        return np.asarray((self.votes.votes != ABSTAIN).any(axis=1))

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of scores that a verdict counts, by their names in files."""
        bounds = {"p_consistent": self.p, "p_low": self.low, "p_high": self.high}
        return bounds | {"decision": self.decided, "sure": self.sure, "n_votes": self.voted}

    def rows(self, chosen: Mask) -> "ScoredVotes":
        """Return some items."""
        names = ("p", "low", "high", "before", "decided", "sure", "threshold")
        parts = {name: getattr(self, name)[chosen] for name in names}
        return replace(self, votes=self.votes.rows(chosen), **parts)


@dataclass(frozen=True, eq=False)
class ReportMaterial:
    """All that the chapters of a report are written from.

    Parameters
    ----------
    title : str
        Title of the page.
    runs : tuple of dict
        As `deep loo` writes them; docs/results-schema.md describes every key.
    model : Model, optional
        The model that the report is of; None of a run, or of votes alone.
    path : str
        Of the file of the model.
    scored : ScoredVotes, optional
        The votes with P of the model or the run, else of the votes alone; None where there are no votes.
    failures : tuple of Failures
        How many votes are missing, by judge, dataset and reason.
    simulated : bool
        The votes are.
    tables : tuple of str
        Tables of votes, beside which texts and rationales are looked for.
    people : PeopleLabels, optional
        Those who gave the labels, where they lie apart from the votes.
    folder : Path, optional
        Of the run: its own tables and pictures are shown too.
    compared : SystemComparison, optional
        The systems that wrote the items.
    study : DatasetVerdict, optional
        The answer of a study that is no hold-out.
    soft_tables : tuple of str
        Tables of scores that the answers were read from.
    """

    title: str
    runs: tuple[JsonObject, ...] = ()
    model: Model | None = None
    path: str = ""
    scored: ScoredVotes | None = None
    failures: tuple[Failures, ...] = ()
    simulated: bool = False
    tables: tuple[str, ...] = ()
    people: PeopleLabels | None = None
    folder: Path | None = None
    compared: "evaluate.SystemComparison | None" = None
    study: evaluate.DatasetVerdict | None = None
    soft_tables: tuple[str, ...] = ()

    @property
    def is_own_decision(self) -> bool:
        """Return whether the votes are the decisions of a run that kept none."""
        return self.scored is not None and self.scored.votes.voter_names == (RUN_DECISION_VOTER,)

    @property
    def learned_from(self) -> tuple[str, ...]:
        """Return the datasets whose labels the model has seen: measured on them, it would look better than it is."""
        if self.model is None or self.scored is None:
            return ()
        training_names = evaluate.labels_seen(self.model)
        return tuple(name for name in self.scored.votes.dataset_names if name in training_names)

    @property
    def all_learned(self) -> bool:
        """Return whether every dataset here has labels, and the model has seen them."""
        if self.scored is None:
            return False
        labeled = set(self.scored.votes.datasets[self.scored.labeled])
        return labeled == set(self.learned_from) == set(self.scored.votes.dataset_names)

    @property
    def measured(self) -> ScoredVotes | None:
        """Return the items that P is measured on: those of datasets whose labels it has not seen."""
        if self.scored is None or not self.learned_from:
            return self.scored
        return self.scored.rows(~np.isin(self.scored.votes.datasets, self.learned_from))

    @property
    def is_elsewhere(self) -> bool:
        """Return whether there are items, and all figures are of other data: those that the model was fitted on."""
        measured = self.measured
        return measured is not None and not self.runs and not measured.labeled.any()

    @property
    def n_bins(self) -> int:
        """Return the number of bins of the calibration error."""
        return int(self.runs[0]["settings"]["n_bins"]) if self.runs else DEFAULT_BINS


def score_by(model: Model, votes: VoteMatrix, prior: float | None = None) -> ScoredVotes:
    """Return votes with P by a model, each dataset scored by itself.

    `prior` is the share of consistent items of each dataset, where it is known.
    """
    own_prior = None if prior is None else check_prior(prior)
    n = len(votes.labels)
    columns = {name: np.full(n, np.nan) for name in ("p", "low", "high", "before", "threshold")}
    decided, sure, priors = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool), {}
    for name, rows in evaluate.dataset_rows(votes):
        part = votes.rows(rows)
        result = model.scores_of(part, prior=own_prior, allow_mismatch=True, allow_missing=True)
        columns["p"][rows], columns["threshold"][rows] = result.p_consistent, result.threshold
        decided[rows] = result.decisions
        sure[rows] = result.sure & (part.votes != ABSTAIN).any(axis=1)
        columns["low"][rows], columns["high"][rows] = result.bounds
        columns["before"][rows] = result.p_uncalibrated
        priors[name] = result.share
    how = P_BY_MODEL_NOTE if own_prior is None else P_AT_GIVEN_SHARE_NOTE
    return ScoredVotes(votes, **columns, decided=decided, sure=sure, how=how, priors=priors)


def score_by_votes(votes: VoteMatrix) -> ScoredVotes:
    """Return votes with the P that they give without any label; where too few, with the share that says consistent."""
    share = vote_share(votes.votes)
    try:
        model = fit(replace(votes, labels=np.full(len(votes.labels), ABSTAIN)))
    except InputError:
        unknown = np.full(len(share), np.nan)
        called, half = share >= 0.5, np.full(len(share), 0.5)
        one = np.ones((len(share), 1), dtype=np.int8)
        added = vote_share(np.hstack([votes.votes, one, 1 - one]))  # one vote more on each side: rule of succession
        return ScoredVotes(votes, added, unknown, unknown, share, called, np.zeros_like(called), half, SHARE_NOTE)
    return replace(score_by(model, votes), before=share, how=P_BY_VOTES_NOTE)


def vote_share(votes: npt.NDArray[np.int8]) -> Floats:
    """Return the share of the votes cast that say consistent, shape (n_items,); a half where there is none."""
    cast = (votes != ABSTAIN).sum(axis=1)
    yes = (votes == 1).sum(axis=1)
    share: Floats = np.divide(yes, cast, out=np.full(len(votes), 0.5), where=cast > 0)
    return share


# More distinct values of P, as soft scores give, are rounded: the law behind the noise floor takes long with them.
MAX_DISTINCT_P = 5000


def round_values(p: Floats) -> Floats:
    """Return P, rounded where it has too many values."""
    return p if len(np.unique(p)) <= MAX_DISTINCT_P else np.round(p, 3)


def ece_by_dataset(scored: ScoredVotes, n_bins: int) -> Iterator[tuple[str, Positions, float, float]]:
    """Yield each dataset with labels, its labeled rows, and ECE before and after calibration."""
    for name, every in evaluate.dataset_rows(scored.votes):
        rows = every[scored.labeled[every]]
        if len(rows):
            y = scored.votes.labels[rows]
            before, after = (
                expected_calibration_error(y, round_values(p[rows]), n_bins=n_bins) for p in (scored.before, scored.p)
            )
            yield name, rows, before, after


# The origin that files give of simulated votes.
SIMULATED_MARK = "simulated"
# The most bytes of a run's results that are read.
MAX_RESULTS_BYTES = 1 << 30
# The largest number in results that deep wrote; above it, one was put there by another hand. It is far above any count,
# and whole numbers below it are exact as floats.
MAX_RESULTS_NUMBER = 1e15
# Columns of the scores in which a cell may be empty; the one by name in runs of earlier versions.
NULLABLE_COLUMNS = {"p_uncalibrated", *(name for name, one in (ITEM_COLUMNS | SCORE_COLUMNS).items() if one.nullable)}

# Keys of the results of a hold-out; results without them are another study's.
HOLD_OUT_KEYS = frozenset(
    [
        "baselines",
        "effective_votes",
        "error_correlation",
        "n_test",
        "notes",
        "prior_test",
        "recommended",
        "rows",
        "settings",
        "test",
        "train",
        "voters",
        "warnings",
    ]
)

# The file in a run's folder that holds the votes on what it held out.
VOTES_FILE_NAME = "votes.parquet"


@dataclass(frozen=True)
class LabelFiles:
    """Tables of people's labels, read as :func:`deep.datasets.read_people` reads them.

    Parameters
    ----------
    paths : sequence of str
        In place of the labels beside the votes; none leaves these.
    people : sequence of str
        The columns that are people.
    consistent_from : float, optional
        The grade from which on a person says "consistent".
    """

    paths: Sequence[str] = ()
    people: Sequence[str] = ()
    consistent_from: float | None = None


@dataclass(frozen=True)
class GivenShare:
    """The share and the soft scores that a report is given, beside a model and votes.

    Parameters
    ----------
    prior : float, optional
        The share of consistent items of each dataset; by default it is estimated.
    scores : sequence of str
        Tables of soft scores, where the model was fitted on some; without them P rests on the votes alone.
    """

    prior: float | None = None
    scores: Sequence[str] = ()


def read_material(
    sources: Sequence[str | Path], labels: LabelFiles | None = None, known: GivenShare | None = None
) -> ReportMaterial:
    """Read the sources of a report.

    Parameters
    ----------
    sources : sequence of path
        At most one folder of a run or one model file; the others are tables of votes.
    labels : LabelFiles, optional
        People's labels in files of their own, in place of those beside the votes.
    known : GivenShare, optional
        The share of consistent items and tables of soft scores, both only with a model and votes.

    Raises
    ------
    InputError
        There is nothing, or several runs or models, or a file cannot be used.
    """
    paths, labels, known = [table_in(source) for source in sources], labels or LabelFiles(), known or GivenShare()
    runs = [path for path in paths if path.is_dir()]
    models = [path for path in paths if path.suffix.lower() == ".json" and not path.is_dir()]
    tables = [str(path) for path in paths if path not in runs and path not in models]
    if len(runs) + len(models) > 1 or not paths:
        raise InputError(
            f"`RUN|MODEL|VOTES` must hold at most one run or model, and tables of votes. Got {len(runs)} runs and "
            f"{len(models)} models."
        )
    for name, present in ("prior", known.prior is not None), ("scores", bool(known.scores)):
        if present and not (models and tables):
            raise InputError(f"`{name}` must be given with a model and votes. Got it without.")
    if runs:
        return _material_of_run(runs[0], tables, labels)
    return _material_of_model(models[0], tables, labels, known) if models else _material_of_votes(tables, labels)


def with_systems(material: ReportMaterial, column: str | None) -> ReportMaterial:
    """Return the material with the systems compared that a column of its votes names, if any.

    Raises
    ------
    InputError
        There is no model or there are no votes, or the column is none of theirs.
    """
    if column is None:
        return material
    if material.model is None or material.scored is None:
        raise InputError(f"`compare` must be given with a model and votes. Got {column!r} without.")
    votes = material.scored.votes
    target = evaluate.Target(votes)
    systems = evaluate.read_systems(material.tables, target, column)
    return replace(material, compared=evaluate.compare_systems(material.model, target, systems))


def read_results(folder: Path) -> JsonObject:
    """Return the results of a run.

    Raises
    ------
    InputError
        The folder holds none, or they cannot be read.
    """
    path = folder / RESULTS
    if not path.is_file():
        raise InputError(f"`RUN` must be a folder that holds {RESULTS}. Got {str(folder)!r}, which has none.")
    try:
        raw = read_bytes(path, "RUN", MAX_RESULTS_BYTES)
        # NaN and Infinity are no JSON, yet Python reads them; they would go through every table.
        result = json.loads(raw, parse_float=_parse_number, parse_constant=_parse_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`RUN` must hold {RESULTS} as JSON. Got {error} in {str(path)!r}.") from None
    if not isinstance(result, dict):
        raise InputError(f"`RUN` must hold {RESULTS} as an object. Got another value in {str(path)!r}.")
    return result


def _parse_number(text: str) -> float:
    """Return a number that no figure overflows on: all that deep writes with a point are small."""
    if not abs(result := float(text)) < MAX_RESULTS_NUMBER:
        raise ValueError(f"an invalid number, {text}")
    return result


def _check_whole_numbers(runs: Sequence[JsonObject], path: Path) -> None:
    """Raise where a whole number is above what a figure holds; of the settings, a seed may be."""
    # Without recursion: nested lists of a file that was tampered with may be deeper than Python's stack.
    stack = [(name, value) for run in runs for name, value in run.items() if name != "settings"]
    while stack:
        name, value = stack.pop()
        if isinstance(value, int) and not abs(value) < MAX_RESULTS_NUMBER:
            raise InputError(
                f"`RUN` must hold {RESULTS} as deep wrote it. Got a whole number of {len(str(abs(value)))} digits for "
                f"{name!r} in {str(path)!r}."
            )
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        stack += [(name, part) for part in parts]


def _with_people_labels(votes: VoteMatrix, labels: LabelFiles) -> tuple[VoteMatrix, PeopleLabels | None]:
    """Return votes with the labels of most people in place of those beside them, and the people."""
    if not labels.paths:
        return votes, None
    people = read_people(labels.paths, votes, people=labels.people, consistent_from=labels.consistent_from)
    documents = votes.document_ids if people.document_ids is None else people.document_ids
    return replace(votes, labels=people.labels, document_ids=documents), people


def _material_of_votes(tables: Sequence[str], labels: LabelFiles) -> ReportMaterial:
    votes, people = _with_people_labels(read_votes(tables), labels)
    names = ", ".join(Path(table).name for table in tables)
    failures = tuple(read_reasons(tables, votes))
    return ReportMaterial(
        f"Votes: {names}", scored=score_by_votes(votes), failures=failures, tables=tuple(tables), people=people
    )


def _material_of_model(path: Path, tables: Sequence[str], labels: LabelFiles, extras: GivenShare) -> ReportMaterial:
    model = load(path)
    provenance = model.fit_report.get("provenance")
    simulated = isinstance(provenance, dict) and provenance.get("votes") == SIMULATED_MARK
    material = ReportMaterial(f"Model: {path.name}", model=model, path=str(path), simulated=simulated)
    if not tables:
        return material
    votes, people = _with_people_labels(evaluate.read_votes_for_model(model, tables), labels)
    votes = join_score_tables(model, votes, extras.scores) if extras.scores else votes
    scored, failures = score_by(model, votes, extras.prior), tuple(read_reasons(tables, votes))
    material = replace(material, scored=scored, failures=failures, tables=tuple(tables), people=people)
    return replace(material, soft_tables=tuple(extras.scores))


def _material_of_run(folder: Path, tables: Sequence[str], labels: LabelFiles) -> ReportMaterial:
    results = read_results(folder)
    runs = held_out_runs(results)
    _check_whole_numbers(runs, folder / RESULTS)
    title = f"Run: {folder.resolve().name}"
    study = evaluate.DatasetVerdict.of_dict(results.get("verdict"))
    if not runs:
        return ReportMaterial(title, simulated=results.get("simulated") is True, folder=folder, study=study)
    simulated, origin = results.get("votes") == SIMULATED_MARK, results.get("votes")
    beside = tables or [path for path in (origin if isinstance(origin, list) else []) if Path(path).is_file()]
    material = ReportMaterial(title, tuple(runs), simulated=simulated, tables=tuple(beside), folder=folder, study=study)
    scores = folder / "scores.parquet"
    if not scores.is_file():
        return material
    paths = tables or [str(path) for path in (folder / VOTES_FILE_NAME,) if path.is_file()]
    scored, people = _read_scored_run(scores, read_votes(paths) if paths else None, runs, labels)
    failures = tuple(read_reasons(beside, scored.votes))
    return replace(material, scored=scored, people=people, failures=failures)


def held_out_runs(results: JsonObject) -> list[JsonObject]:
    """Return the held-out datasets of a result; none where it is of another study."""
    runs = results.get("runs", [results])
    whole = isinstance(runs, list) and all(isinstance(run, dict) and run.keys() >= HOLD_OUT_KEYS for run in runs)
    return runs if whole and runs else []


def _read_scored_run(
    path: Path, votes: VoteMatrix | None, runs: list[JsonObject], labels: LabelFiles
) -> tuple[ScoredVotes, PeopleLabels | None]:
    columns = {"p": "p_consistent", "low": "p_low", "high": "p_high", "before": "p_uncalibrated"}
    columns |= {"threshold": "threshold"}
    try:
        with open_parquet(path, "RUN") as table:
            (whole,) = table.tables(["dataset", "item_id", "label", "decision", "sure", *columns.values()], None)
        frame = whole.to_pandas()
        scores = {name: _checked_numbers(frame, column, path) for name, column in columns.items()}
        decided, sure = (_checked_numbers(frame, column, path) == 1 for column in ("decision", "sure"))
        matrix, people = _with_people_labels(_votes_on_items(frame, votes, path), labels)
    except (KeyError, OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`RUN` must hold the scores that deep wrote. Got {error} in {str(path)!r}.") from None
    result = {run["test"]: run["recommended"]["prior"] for run in runs if "prior" in run["recommended"]}
    priors = {
        name: PriorEstimate(prior["estimate"], prior["interval"][0], prior["interval"][1], prior["warning"])
        for name, prior in result.items()
        if prior["interval"][0] < prior["interval"][1]  # else nothing was estimated
    }
    return ScoredVotes(matrix, **scores, decided=decided, sure=sure, how=P_BY_RUN_NOTE, priors=priors), people


def _checked_numbers(frame: "pd.DataFrame", column: str, path: Path, low: float = 0.0) -> Floats:
    """Return the numbers of a column, none below `low` or above 1; some columns may lack one."""
    result = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(result) & (column in NULLABLE_COLUMNS)
    whole = column in ("decision", "label", "sure")
    fits = (result >= low) & (result <= 1) & ((not whole) | (np.rint(result) == result))
    wrong = np.flatnonzero(~missing & ~fits)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"`RUN` must hold the scores that deep wrote. Got {result[row].item()!r} in column {column!r}, row "
            f"{row + 1} of {str(path)!r}."
        )
    return result


def _votes_on_items(frame: "pd.DataFrame", votes: VoteMatrix | None, path: Path) -> VoteMatrix:
    """Return the votes on the items of a run, in its order; where it kept none, its own decisions in their place."""
    labels = np.nan_to_num(_checked_numbers(frame, "label", path, -1), nan=-1).astype(np.int8)
    keys = list(zip(frame["dataset"].astype(str), frame["item_id"].astype(str), strict=True))
    datasets, items = [dataset for dataset, _ in keys], [item for _, item in keys]
    if votes is None:
        decided = np.nan_to_num(_checked_numbers(frame, "decision", path), nan=ABSTAIN).astype(np.int8)
        return VoteMatrix(decided[:, None], items, [RUN_DECISION_VOTER], datasets, labels)
    at = {key: row for row, key in enumerate(zip(votes.datasets, votes.item_ids, strict=True))}
    rows = np.array([at.get(key, -1) for key in keys], dtype=np.intp)
    # An item that the table of votes lacks has none; row -1, the last one, is masked.
    cast = np.where((rows >= 0)[:, None], votes.votes[rows], ABSTAIN)
    documents = None if votes.document_ids is None or (rows < 0).any() else votes.document_ids[rows]
    return VoteMatrix(cast, items, votes.voter_names, datasets, labels, documents)
