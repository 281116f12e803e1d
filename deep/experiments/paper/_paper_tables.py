"""The DEEP paper's Tables 1 to 6 beside those of a run, in percent; and every figure that it prints."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep._util.checks import check_choice
from deep._util.files import JsonObject, packaged
from deep._util.names import resolve_dataset
from deep.calibration import NETCAL_CLASSES
from deep.datasets import published_points
from deep.evaluate import Row, Run, hold_out
from deep.exceptions import InputError
from deep.experiments.loo import LooOptions, published_baselines, vote_baselines
from deep.judges import parse_voter
from deep.records import VoteMatrix

PUBLISHED_TABLES = ("2", "4", "5")


@dataclass(frozen=True, slots=True)
class PublishedFigure:
    """One figure of the paper's Tables 2, 4 and 5.

    Parameters
    ----------
    table : {'2', '4', '5'}
        The number of the table in the paper.
    dataset : str
        One of the paper's four, as deep names it: ``aggrefact-xsum``.
    ensembler : str
        As deep registers it: ``LGBM``.
    n_prompts : {3, 5, 9}
        How many prompts' votes are combined.
    calibrator : str or None
        None: before calibration.
    metric : {'balanced_accuracy', 'ece'}
        What `value` measures, the same in all of a table.
    value : float
        In [0, 1].

    References
    ----------
    .. [1] Chandler, Surve and Su (2024). https://arxiv.org/abs/2406.13009
    """

    table: str
    dataset: str
    ensembler: str
    n_prompts: int
    calibrator: str | None
    metric: str
    value: float


@cache
def published_table(number: str) -> tuple[PublishedFigure, ...]:
    """Return every figure of one of the paper's large tables.

    Parameters
    ----------
    number : {'2', '4', '5'}
        The number of the table in the paper.

    Returns
    -------
    tuple of PublishedFigure

    Notes
    -----
    The paper does not say how many prompts Table 5 has; its figures on AggreFact-XSUM are those of Table 4 with three.

    Examples
    --------
    >>> from deep.experiments.paper import published_table
    >>> [len(published_table(number)) for number in ("2", "4", "5")]
    [192, 84, 280]
    >>> max(published_table("2"), key=lambda figure: figure.value).value
    0.7974
    """
    table = _tables()[check_choice(number, PUBLISHED_TABLES, "number")]
    # A method has a row for each value of the outer axis, and in it a cell for each of the inner one.
    outer, inner = table["axes"]
    alone = {axis: table[axis][0] for axis in ("dataset", "n_prompts", "calibrator")} | {"metric": table["metric"]}
    return tuple(
        PublishedFigure(number, ensembler=method, value=round(value / 100.0, 6), **alone | {outer: row, inner: column})
        for method, rows in table["methods"].items()
        for row, values in zip(table[outer], rows, strict=True)
        for column, value in zip(table[inner], values, strict=True)
    )


def kept_out(figure: PublishedFigure) -> bool:
    """Return whether the embedded votes were fitted without a printed figure: about half of them are.

    Which, says a checksum of the cell's name. LabelModel and the majority of Table 2 are all fitted, and Table 5
    repeats cells of Table 4.
    """
    cell = figure.dataset, figure.ensembler, figure.n_prompts, figure.calibrator, figure.metric
    fixed = figure.table == "2" and figure.ensembler in ("LabelModel", "MajorityLabelVoter")
    return not fixed and bool(crc32("|".join(map(str, cell)).encode()) % 2)


def _tables() -> JsonObject:
    return packaged(__package__, "published_tables.json")


def printed_methods(number: str) -> list[str]:
    """Return the ensemblers of one of the large tables."""
    return list(_tables()[number]["methods"])


PUBLISHED, THIS_RUN = "published", "this run"

NETCAL_ECE = "this run, netcal's ECE"

CALIBRATORS = (None, "platt", "bbq", "histogram", "isotonic", *NETCAL_CLASSES)
"""Those of Table 5, and netcal's."""

# Prompts of pool `literature`, and those of `deep prompts import` without their prefix, by their rows of Table 3.
LLM_SOLUTIONS = {
    "direct-assessment": "ChatGPT-DA",
    "five-stars": "ChatGPT-Star",
    "luo": "ChatGPT-ZS",
    "luo-steps": "ChatGPT-COT",
    "summary-binary": "Tang2024-Summary",
    "wang-score": "ChatGPT-DA",
    "wang-stars": "ChatGPT-Star",
    "yes-no": "ChatGPT-ZS",
    "yes-no-steps": "ChatGPT-COT",
}

DOCUMENT_FIRST, PRINTED = "-doc-first", "deep-printed-"

TABLES = {
    "1": "Every prompt alone",
    "2": "Balanced accuracy before calibration, by ensembler and number of prompts",
    "3": "Encoders with thresholds from the other datasets, single prompts, and ensembles",
    "4": "ECE before and after Platt scaling, by ensembler and number of prompts",
    "5": "ECE of every calibrator on the smallest panel, by ensembler",
    "6": "Gain of ensembling over the best single prompt, both chosen on the test labels",
}


# Kind of a baseline that fills a row of Table 3 and enters no ensemble.
RIVAL = "rival"


def ours_and_rivals(votes: VoteMatrix) -> tuple[VoteMatrix, VoteMatrix | None]:
    """Return the votes of our own prompts, and of those that stand for Table 3's LLM solutions, if any."""
    is_rival = np.array([_llm_solution(name) is not None for name in votes.voter_names])
    if is_rival.all():
        raise InputError(
            f"`votes` must hold voters besides the rows of the paper's Table 3. Got {votes.voter_names[0]!r} and "
            f"{len(is_rival) - 1} others of that table. Add votes of other prompts, for the ensembles."
        )
    return _columns(votes, ~is_rival), _columns(votes, is_rival) if is_rival.any() else None


def _columns(votes: VoteMatrix, mask: npt.NDArray[np.bool_]) -> VoteMatrix:
    return votes.judges(np.flatnonzero(mask))


def with_rivals(run: Run, rivals: VoteMatrix | None, settings: LooOptions) -> Run:
    """Return a run with the rivals' votes on its dataset among the baselines."""
    if rivals is None:
        return run
    split = hold_out(rivals, run["test"])
    options = {"n_boot": settings.n_boot, "random_state": settings.random_state, "n_bins": settings.n_bins}
    rows = [one.row(split.test.labels, **options) for one in vote_baselines(split) if one.kind == "prompt"]
    return {**run, "baselines": [*run["baselines"], *({**row, "kind": RIVAL} for row in rows)]}


def paper_tables(runs: Sequence[Run]) -> pd.DataFrame:
    """Return every figure of Tables 1 to 6, one a row.

    Parameters
    ----------
    runs : sequence of dict
        `results.json` of each held-out dataset, under the paper's recipe.

    Returns
    -------
    DataFrame
        ``table, dataset, method, n_prompts, calibrator, metric, origin, value, low, high``: percent; `origin` is
        'published', 'this run', or 'this run, netcal's ECE' where netcal measured it; `low` and `high` are a 95 %
        interval where there is one.
    """
    columns = ["table", "dataset", "method", "n_prompts", "calibrator", "metric", "origin", "value", "low", "high"]
    rows = [row for build in _BUILDERS for row in build(runs)]
    frame = pd.DataFrame(rows, columns=columns).sort_values("table", kind="stable")
    frame[["value", "low", "high"]] = frame[["value", "low", "high"]].astype(float).mul(100).round(4)
    return frame[frame["value"].notna()].astype({"n_prompts": "Int64"}).reset_index(drop=True)


def _row(table: str, dataset: str, method: str, origin: str, value: float | None, **more: object) -> Row:
    return {"table": table, "dataset": dataset, "method": method, "origin": origin, "value": value, **more}


def single_prompts(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 1."""
    metrics = ("balanced_accuracy", "precision", "recall")
    for point in published_points():
        for name in metrics:
            yield _row("1", point.dataset, point.voter, PUBLISHED, getattr(point, name), metric=name)
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "prompt":
                for name in metrics:
                    yield _row("1", run["test"], row["name"], THIS_RUN, row[name], metric=name)


def chains(runs: Sequence[Run]) -> Iterator[Row]:
    """Tables 2, 4 and 5."""
    for number in PUBLISHED_TABLES:
        for figure in published_table(number):
            more = {"n_prompts": figure.n_prompts, "calibrator": figure.calibrator, "metric": figure.metric}
            yield _row(number, figure.dataset, figure.ensembler, PUBLISHED, figure.value, **more)
    for run in runs:
        smallest = min(row["n_prompts"] for row in run["rows"])
        for row in (row for row in run["rows"] if row["recipe"] == "paper"):
            in_table = {
                "2": row["calibrator"] is None,
                "4": row["calibrator"] in (None, "platt"),
                "5": row["n_prompts"] == smallest and row["calibrator"] in CALIBRATORS,
            }
            for number in (number for number, is_in in in_table.items() if is_in):
                metric = "balanced_accuracy" if number == "2" else "ece"
                more = {"n_prompts": row["n_prompts"], "calibrator": row["calibrator"], "metric": metric}
                yield _row(number, run["test"], row["ensembler"], THIS_RUN, row[metric], **more)
                if metric == "ece" and "ece_netcal" in row:
                    yield _row(number, run["test"], row["ensembler"], NETCAL_ECE, row["ece_netcal"], **more)


def methods(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 3. As in the paper, the ensemble of each size is chosen on the test labels, which its name states."""
    for cell in published_baselines():
        low, high = cell.balanced_accuracy - cell.margin, cell.balanced_accuracy + cell.margin
        yield _row("3", cell.dataset, cell.method, PUBLISHED, cell.balanced_accuracy, low=low, high=high)
    for run in runs:
        for row in run["baselines"]:
            name = _method(row)
            if name:
                yield _interval("3", run["test"], name, row)
        for size, best in _best_by_size(run).items():
            yield _interval("3", run["test"], f"best ensemble of {size}, chosen on the test labels", best)
        yield _interval("3", run["test"], "ensemble chosen on training data", run["recommended_paper"])
        yield _interval("3", run["test"], "deep's own recipe, chosen on training data", run["recommended"])


def _method(row: Row) -> str | None:
    """Return the name of a baseline of ours in Table 3; None for one that the table does not show."""
    if row["kind"] == "encoder":
        return str(row["name"]) if row["threshold_from"] == "train" else None
    if row["kind"] == RIVAL:
        return _llm_solution(str(row["name"]))
    return {"best_prompt": "best prompt, chosen on training data", "majority": "majority of all prompts"}.get(
        row["kind"]
    )


def _llm_solution(voter: str) -> str | None:
    """Return the row of Table 3 that a voter fills: its solution, and the LLM that was asked."""
    parts = parse_voter(voter)
    name, _, model = parts.name.partition("/")  # as the embedded voters are named, without a version
    solution = LLM_SOLUTIONS.get(name.removesuffix(DOCUMENT_FIRST).removeprefix(PRINTED))
    if solution is None:
        return None
    first = ", document first" if name.endswith(DOCUMENT_FIRST) else ""
    printed = ", the printed prompt" if name.startswith(PRINTED) else ""
    return f"{solution} ({parts.model or model or 'LLM not named'}{first}{printed})"


def _interval(table: str, dataset: str, method: str, row: Row) -> Row:
    low, high = row["balanced_accuracy_ci"] or (None, None)
    return _row(table, dataset, method, THIS_RUN, row["balanced_accuracy"], low=low, high=high)


def _best_by_size(run: Run) -> dict[int, Row]:
    """Return, by number of prompts, the uncalibrated row that is best on the test labels."""
    best: dict[int, Row] = {}
    for row in run["rows"]:
        if row["recipe"] != "paper" or row["calibrator"] is not None or row["balanced_accuracy"] is None:
            continue
        size = row["n_prompts"]
        if size not in best or row["balanced_accuracy"] > best[size]["balanced_accuracy"]:
            best[size] = row
    return best


def gains(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 6."""
    prompts: dict[str, float] = {}
    for point in published_points():
        prompts[point.dataset] = max(prompts.get(point.dataset, 0.0), point.balanced_accuracy)
    published = published_table("2")
    for dataset, alone in prompts.items():
        cells = [figure for figure in published if figure.dataset == dataset]
        majority = max(figure.value for figure in cells if figure.ensembler == "MajorityLabelVoter")
        yield from _gain(dataset, PUBLISHED, alone, majority, max(figure.value for figure in cells))
    for run in runs:
        alone_here = [row["balanced_accuracy"] for row in run["baselines"] if row["kind"] == "prompt"]
        best = [row["balanced_accuracy"] for row in _best_by_size(run).values()]
        if best:
            uncalibrated = [row for row in run["rows"] if row["calibrator"] is None and row["recipe"] == "paper"]
            majorities = [row for row in uncalibrated if row["ensembler"] == "MajorityLabelVoter"]
            votes = max((row["balanced_accuracy"] for row in majorities), default=None)
            yield from _gain(run["test"], THIS_RUN, max(alone_here), votes, max(best))


def _gain(dataset: str, origin: str, alone: float, majority: float | None, best: float) -> Iterator[Row]:
    yield _row("6", dataset, "best prompt", origin, alone)
    yield _row("6", dataset, "majority vote, best size", origin, majority)
    yield _row("6", dataset, "best ensemble", origin, best)
    yield _row("6", dataset, "gain of the best ensemble", origin, best - alone)


_BUILDERS = (single_prompts, chains, methods, gains)


# The dataset of the paper's Figure 4.
EXAMPLE_DATASET = "aggrefact-xsum"


def figure_dataset(name: str | None, votes: VoteMatrix) -> str:
    """Return the dataset of Figure 4."""
    if name is not None:
        return resolve_dataset(name, votes.dataset_names, param="figure_dataset")
    return EXAMPLE_DATASET if EXAMPLE_DATASET in votes.dataset_names else votes.dataset_names[0]


def check_labeled(votes: VoteMatrix) -> None:
    """Raise unless every dataset has labels, without which no table can be filled."""
    for dataset in votes.dataset_names:
        if (votes.labels[votes.datasets == dataset] < 0).any():
            raise InputError(f"`label` must be 0 or 1 in every row. Got a row without a label in dataset {dataset!r}.")
