"""The sources of a report, told apart and read: the folder of a run, a model file, tables of votes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep._checks import Floats
from deep._files import MARKER, JsonObject, read_bytes
from deep.datasets import PeopleLabels, open_parquet, read_people, read_reasons, read_votes
from deep.evaluate import votes_for
from deep.exceptions import InputError
from deep.model import PriorEstimate, load
from deep.records import ABSTAIN, VoteMatrix
from deep.report._material import BY_MODEL, BY_RUN, DECISION, ReportMaterial, ScoredVotes, score_by, score_by_votes

if TYPE_CHECKING:
    import pandas as pd

SIMULATED = "simulated"
LARGEST_RESULTS = 1 << 30
HUGE = 1e15
MAY_LACK = frozenset(["label", "p_high", "p_low", "p_uncalibrated"])
"""Columns of the scores in which a cell may be empty."""

OF_A_RUN = frozenset(
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
"""Keys of the results of a hold-out; results without them are another study's."""

VOTES = "votes.parquet"
"""The votes on what a run held out, in its folder."""


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


def read_material(sources: Sequence[str | Path], labels: LabelFiles | None = None) -> ReportMaterial:
    """Read what a report is made of.

    Parameters
    ----------
    sources : sequence of path
        At most one folder of a run or one model file; the others are tables of votes.
    labels : LabelFiles, optional

    Raises
    ------
    InputError
        There is nothing, or several runs or models, or a file cannot be used.
    """
    paths, labels = [Path(source) for source in sources], labels or LabelFiles()
    runs = [path for path in paths if path.is_dir()]
    models = [path for path in paths if path.suffix.lower() == ".json" and not path.is_dir()]
    tables = [str(path) for path in paths if path not in runs and path not in models]
    if len(runs) + len(models) > 1 or not paths:
        raise InputError(
            f"`RUN|MODEL|VOTES` must hold at most one run or model, and tables of votes. Got {len(runs)} runs and "
            f"{len(models)} models."
        )
    if runs:
        return _of_run(runs[0], tables, labels)
    return _of_model(models[0], tables, labels) if models else _of_votes(tables, labels)


def read_results(folder: Path) -> JsonObject:
    """Return the results of a run.

    Raises
    ------
    InputError
        The folder holds none, or they cannot be read.
    """
    path = folder / MARKER
    if not path.is_file():
        raise InputError(f"`RUN` must be a folder that holds {MARKER}. Got {str(folder)!r}, which has none.")
    try:
        raw = read_bytes(path, "RUN", LARGEST_RESULTS)
        found = json.loads(raw, parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError) as error:
        raise InputError(f"`RUN` must hold {MARKER} as JSON. Got {error} in {str(path)!r}.") from None
    if not isinstance(found, dict):
        raise InputError(f"`RUN` must hold {MARKER} as an object. Got another value in {str(path)!r}.")
    return found


def _number(text: str) -> float:
    """Return a number that no figure overflows on: all that deep writes with a point are small."""
    if not abs(found := float(text)) < HUGE:
        raise ValueError(f"a number of no study, {text}")
    return found


def _check_whole(runs: Sequence[JsonObject], path: Path) -> None:
    """Raise where a whole number is above what a figure holds; of the settings, a seed may be."""
    left = [(name, value) for run in runs for name, value in run.items() if name != "settings"]
    while left:
        name, value = left.pop()
        if isinstance(value, int) and not abs(value) < HUGE:
            raise InputError(
                f"`RUN` must hold {MARKER} as deep wrote it. Got a whole number of {len(str(abs(value)))} digits for "
                f"{name!r} in {str(path)!r}."
            )
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        left += [(name, part) for part in parts]


def _labeled(votes: VoteMatrix, labels: LabelFiles) -> tuple[VoteMatrix, PeopleLabels | None]:
    """Return votes with the labels of most people in place of those beside them, and the people."""
    if not labels.paths:
        return votes, None
    people = read_people(labels.paths, votes, people=labels.people, consistent_from=labels.consistent_from)
    documents = votes.document_ids if people.document_ids is None else people.document_ids
    return replace(votes, labels=people.labels, document_ids=documents), people


def _of_votes(tables: Sequence[str], labels: LabelFiles) -> ReportMaterial:
    votes, people = _labeled(read_votes(tables), labels)
    names = ", ".join(Path(table).name for table in tables)
    failures = tuple(read_reasons(tables, votes))
    return ReportMaterial(
        f"Votes: {names}", scored=score_by_votes(votes), failures=failures, tables=tuple(tables), people=people
    )


def _of_model(path: Path, tables: Sequence[str], labels: LabelFiles) -> ReportMaterial:
    model = load(path)
    material = ReportMaterial(f"Model: {path.name}", model=model, simulated=_is_simulated(model.report))
    if not tables:
        return material
    votes, people = _labeled(votes_for(model, tables), labels)
    scored, failures = score_by(model, votes, BY_MODEL), tuple(read_reasons(tables, votes))
    return replace(material, scored=scored, failures=failures, tables=tuple(tables), people=people)


def _is_simulated(report: object) -> bool:
    provenance = report.get("provenance") if isinstance(report, dict) else None
    return isinstance(provenance, dict) and provenance.get("votes") == SIMULATED


def _of_run(folder: Path, tables: Sequence[str], labels: LabelFiles) -> ReportMaterial:
    results = read_results(folder)
    runs = runs_of(results)
    _check_whole(runs, folder / MARKER)
    title = f"Run: {folder.resolve().name}"
    if not runs:
        return ReportMaterial(title, simulated=results.get("simulated") is True, folder=folder)
    simulated, said = results.get("votes") == SIMULATED, results.get("votes")
    beside = tables or [path for path in (said if isinstance(said, list) else []) if Path(path).is_file()]
    material = ReportMaterial(title, tuple(runs), simulated=simulated, tables=tuple(beside), folder=folder)
    scores = folder / "scores.parquet"
    if not scores.is_file():
        return material
    scored, people = _scored_run(scores, _run_votes(folder, tables), runs, labels)
    failures = tuple(read_reasons(beside, scored.votes))
    return replace(material, scored=scored, people=people, failures=failures)


def runs_of(results: JsonObject) -> list[JsonObject]:
    """Return the held-out datasets of a result; none where it is of another study."""
    runs = results.get("runs", [results])
    whole = isinstance(runs, list) and all(isinstance(run, dict) and run.keys() >= OF_A_RUN for run in runs)
    return runs if whole and runs else []


def _run_votes(folder: Path, tables: Sequence[str]) -> VoteMatrix | None:
    given = tables or [str(path) for path in (folder / VOTES,) if path.is_file()]
    return read_votes(list(given)) if given else None


def _scored_run(
    path: Path, votes: VoteMatrix | None, runs: list[JsonObject], labels: LabelFiles
) -> tuple[ScoredVotes, PeopleLabels | None]:
    columns = {"p": "p_consistent", "low": "p_low", "high": "p_high", "before": "p_uncalibrated"}
    try:
        with open_parquet(path, "RUN") as table:
            (whole,) = table.tables(["dataset", "item_id", "label", "p_uniform", *columns.values()], None)
        frame = whole.to_pandas()
        scores = {name: _within(frame, column, path) for name, column in columns.items()}
        uniform = _within(frame, "p_uniform", path)
        matrix, people = _labeled(_votes_on(frame, votes, path), labels)
    except (KeyError, OSError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`RUN` must hold the scores that deep wrote. Got {error} in {str(path)!r}.") from None
    priors = {run["test"]: _prior_of(run["recommended"]) for run in runs if "prior" in run["recommended"]}
    return ScoredVotes(matrix, **scores, decided=uniform >= 0.5, how=BY_RUN, priors=priors), people


def _prior_of(recommended: JsonObject) -> PriorEstimate:
    prior = recommended["prior"]
    low, high = prior["interval"]
    return PriorEstimate(prior["estimate"], low, high, prior["warning"])


def _within(frame: "pd.DataFrame", column: str, path: Path, low: float = 0.0) -> Floats:
    """Return the numbers of a column, none below `low` or above 1; some columns may lack one."""
    found = frame[column].to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(found) & (column in MAY_LACK)
    fits = (found >= low) & (found <= 1) & ((column != "label") | (np.rint(found) == found))
    wrong = np.flatnonzero(~missing & ~fits)
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"`RUN` must hold the scores that deep wrote. Got {found[row].item()!r} in column {column!r}, row "
            f"{row + 1} of {str(path)!r}."
        )
    return found


def _votes_on(frame: "pd.DataFrame", votes: VoteMatrix | None, path: Path) -> VoteMatrix:
    """Return the votes on the items of a run, in its order; where it kept none, its own decisions in their place."""
    labels = np.nan_to_num(_within(frame, "label", path, -1), nan=-1).astype(np.int8)
    keys = list(zip(frame["dataset"].astype(str), frame["item_id"].astype(str), strict=True))
    datasets, items = [dataset for dataset, _ in keys], [item for _, item in keys]
    if votes is None:
        decided = frame["p_uniform"].to_numpy(dtype=np.float64) >= 0.5
        return VoteMatrix(decided[:, None].astype(np.int8), items, [DECISION], datasets, labels)
    at = {key: row for row, key in enumerate(zip(votes.datasets, votes.example_ids, strict=True))}
    rows = np.array([at.get(key, -1) for key in keys], dtype=np.intp)
    cast = np.where((rows >= 0)[:, None], votes.votes[rows], ABSTAIN)
    documents = None if votes.document_ids is None or (rows < 0).any() else votes.document_ids[rows]
    return VoteMatrix(cast, items, votes.voter_names, datasets, labels, documents)
