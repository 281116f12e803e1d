"""The DEEP paper's Tables 1 to 6 beside those of a run: every figure, verdicts, how they are shown, and drawings."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from deep._util.names import resolve_dataset
from deep.calibration import NETCAL_CLASSES, plot_reliability
from deep.console import SIMULATED, plain_tables
from deep.datasets import published_points
from deep.evaluate import DatasetVerdict, IntervalRow, Row, Run, draw_intervals, hold_out, markdown
from deep.exceptions import InputError
from deep.experiments import loo
from deep.experiments.paper import PUBLISHED_TABLES, PublishedFigure, kept_out, printed_methods, published_table
from deep.judges import parse_voter
from deep.model import UNCALIBRATED
from deep.records import VoteMatrix

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

# The ending and the beginning of names of prompts, which Table 3 says in words.
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
RIVAL_NAME = "rival"


def ours_and_rivals(votes: VoteMatrix) -> tuple[VoteMatrix, VoteMatrix | None]:
    """Return the votes of our own prompts, and of those that stand for Table 3's LLM solutions, if any."""
    is_rival = np.array([_llm_solution(name) is not None for name in votes.voter_names])
    if is_rival.all():
        raise InputError(
            f"`votes` must hold voters besides the rows of the paper's Table 3. Got {votes.voter_names[0]!r} and "
            f"{len(is_rival) - 1} others of that table. Add votes of other prompts, for the ensembles."
        )
    rivals = np.flatnonzero(is_rival)
    return votes.judges(np.flatnonzero(~is_rival)), votes.judges(rivals) if rivals.size else None


def with_rivals(run: Run, rivals: VoteMatrix | None, settings: loo.LooOptions) -> Run:
    """Return a run with the rivals' votes on its dataset among the baselines."""
    if rivals is None:
        return run
    split = hold_out(rivals, run["test"])
    options = {"n_boot": settings.n_boot, "random_state": settings.random_state, "n_bins": settings.n_bins}
    rows = [one.row(split.test.labels, **options) for one in loo.vote_baselines(split) if one.kind == "prompt"]
    return {**run, "baselines": [*run["baselines"], *({**row, "kind": RIVAL_NAME} for row in rows)]}


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
    for cell in loo.published_baselines():
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
    if row["kind"] == RIVAL_NAME:
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


# The columns that together name one cell of a table, so that a printed figure finds this run's.
CELL_COLUMNS = ["table", "dataset", "method", "n_prompts", "calibrator", "metric"]

# Decimals of printed figures in percent, by table; the other tables have one. A figure is met to its rounding.
DECIMALS = {"2": 2}

# Verdicts on printed figures, as :func:`with_verdicts` explains them.
MET, FITTED, KEPT_OUT, DERIVED = "met", "fitted", "kept out", "derived"


def with_verdicts(figures: pd.DataFrame, votes: str | list[str]) -> pd.DataFrame:
    """Return the figures of :func:`paper_tables` with this run's value and a verdict beside each published one.

    Parameters
    ----------
    figures : DataFrame
        As :func:`paper_tables` returns it: published figures and those of this run.
    votes : str or list of str
        Where the votes come from.

    Returns
    -------
    DataFrame
        ``ours``: this run's value of the same cell. ``verdict``: 'met' where both differ by no more than the printed
        figure was rounded, 'off by N' points, or 'not had because' what is missing. ``fit``, of simulated votes:
        'fitted' where they were sought so that the cell is met, 'kept out' where they were sought without it, 'derived'
        where it follows from cells of other tables. All empty where the figure is this run's.
    """
    ours = figures[figures["origin"] == THIS_RUN].drop_duplicates(CELL_COLUMNS).set_index(CELL_COLUMNS)["value"]
    printed = figures["origin"] == PUBLISHED
    values = ours.reindex(pd.MultiIndex.from_frame(figures.loc[printed, CELL_COLUMNS])).to_numpy()
    result = figures.assign(ours=np.nan, verdict="", fit="")
    result["ours"] = result["ours"].mask(printed, pd.Series(values, result.index[printed]))
    datasets = set(figures.loc[figures["origin"] == THIS_RUN, "dataset"])
    rows = result[printed].to_dict("records")
    result.loc[printed, "verdict"] = [_verdict(row, there=row["dataset"] in datasets) for row in rows]
    if votes == SIMULATED:
        result.loc[printed, "fit"] = [_fit_of(row) for row in rows]
    return result


def _verdict(row: Mapping[Hashable, Any], *, there: bool) -> str:
    if pd.isna(row["ours"]):
        return f"not had because {_missing(row) if there else 'this dataset is not among the votes'}"
    gap, decimals = abs(row["ours"] - row["value"]), DECIMALS.get(row["table"], 1)
    return MET if gap <= 10.0**-decimals / 2 + 1e-9 else f"off by {gap:.{decimals}f}"


def _missing(row: Mapping[Hashable, Any]) -> str:
    if row["table"] != "3":
        return "no such judge, ensembler, calibrator or number of judges was run"
    kind = {cell.method: cell.kind for cell in loo.published_baselines()}[row["method"]]
    missing = {
        "encoder": "no --scores were given",
        "llm": "no votes of this prompt were given",
        "ensemble": "the paper chose it on test labels: it is the row 'best ensemble', and Table 2",
    }
    return missing[kind]


def _fit_of(row: Mapping[Hashable, Any]) -> str:
    """Return whether the embedded votes were fitted to a cell, as to Table 1 and half of 2, 4 and 5."""
    if row["table"] not in PUBLISHED_TABLES:
        return FITTED if row["table"] == "1" else DERIVED
    # A frame holds NaN for no calibrator, whose name decides as well.
    cell = row["method"], int(row["n_prompts"]), None if pd.isna(row["calibrator"]) else row["calibrator"]
    figure = PublishedFigure(row["table"], row["dataset"], *cell, row["metric"], row["value"] / 100)
    return KEPT_OUT if kept_out(figure) else FITTED


DISTANCES = "Printed figures and this run's: how many agree, and their mean distance in points"
CLAIMS = "The paper's statements about its tables, and the results of these votes"


def distances(figures: pd.DataFrame) -> pd.DataFrame:
    """Return how far this run is from the printed cells that it has, by table and by what they were to the votes.

    Parameters
    ----------
    figures : DataFrame
        With verdicts.

    Returns
    -------
    DataFrame
        ``table, fit, cells, met, off, distance, constant``: how many there are, are met and are not; the mean distance
        in points, and beside it that of a constant, where cells were kept out of the fit: the mean of the printed cells
        of the table that were not, by dataset and calibrator.
    """
    pairs = figures[figures["ours"].notna()].assign(distance=lambda some: (some["ours"] - some["value"]).abs())
    groups = ["table", "dataset", "calibrator"]
    constants = figures[figures["fit"] == FITTED].groupby(groups, dropna=False)["value"].mean().rename("constant")
    pairs = pairs.join(constants, on=groups)
    pairs["constant"] = (pairs["constant"] - pairs["value"]).abs().where(pairs["fit"] == KEPT_OUT)
    return (
        pairs.assign(met=pairs["verdict"] == MET, off=pairs["verdict"] != MET)
        .groupby(["table", "fit"], as_index=False)
        .agg(
            cells=("met", "size"),
            met=("met", "sum"),
            off=("off", "sum"),
            distance=("distance", "mean"),
            constant=("constant", "mean"),
        )
        .round(2)
    )


# The picture of the answer.
ANSWER_FIGURE = "distance-from-the-printed-figures"


def verdict_of(figures: pd.DataFrame, origin: str | list[str]) -> DatasetVerdict:
    """Return the answer of a run: how many printed figures it meets, of those that its votes were not fitted to."""
    printed = figures[figures["verdict"] != ""]
    pairs = printed[printed["ours"].notna() & ~printed["fit"].isin([FITTED, DERIVED])]
    apart = f", {(pairs['ours'] - pairs['value']).abs().mean():.1f} points apart on average" if len(pairs) else ""
    agreement = f"{(pairs['verdict'] == MET).sum():,} of {len(pairs):,} printed figures"
    suspect = f"{agreement} that these votes were not fitted to agree{apart}."
    trust = "These votes are your own: differences from the paper may come from the judges."
    if origin == SIMULATED:
        trust = "These votes are SIMULATED from the paper's own figures; nothing here was measured on an LLM."
    missing = len(printed) - int(printed["ours"].notna().sum())
    basis = f"{len(printed):,} printed figures of 6 tables; this run lacks {missing:,} of them."
    then = "use votes of your own judges on these datasets"
    return DatasetVerdict(basis, suspect, trust, then, "deep paper --votes votes.parquet", picture=ANSWER_FIGURE)


def draw_distance(figures: pd.DataFrame) -> Figure:
    """Draw by table how far this run's figures are from the printed ones: the mean, and from the least to the most."""
    printed = figures[(figures["verdict"] != "") & figures["ours"].notna()]
    gaps = (printed["ours"] - printed["value"]).abs().groupby(printed["table"])
    rows = [IntervalRow(f"Table {table}", gap.mean(), [gap.min(), gap.max()]) for table, gap in gaps][::-1]
    return draw_intervals(rows, xlabel="points from the printed figure: mean, lowest and highest", at=0.0)


# The ECE in percent that the paper says calibrated ensembles stay under (4.3).
ECE_BOUND = 7.0


def claims(figures: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    """Return the claims in words about Tables 2 and 4, counted in the printed cells and in this run's.

    Returns
    -------
    DataFrame
        ``claim, printed, of, ours, ours_of``: a count or a mean, and of how many cells.
    """
    result = pd.DataFrame(_claims(figures[figures["origin"] == PUBLISHED]), columns=["claim", "printed", "of"])
    ours = pd.DataFrame(_claims(figures[figures["origin"] == THIS_RUN]), columns=["claim", "ours", "ours_of"])
    rows = pd.DataFrame([{"dataset": run["test"], **row} for run in runs for row in run["rows"]])
    table = rows.fillna({"calibrator": UNCALIBRATED}).pivot_table(
        index=["dataset", "ensembler", "n_prompts"], columns="calibrator", values="balanced_accuracy"
    )
    if "platt" in table:
        # Footnote 9: "ranging from 0% to 0.2%", of the cells of Table 2.
        moves = 100 * (table["platt"] - table[UNCALIBRATED]).abs()
        claim = "Table 2: largest move of balanced accuracy by Platt, points"
        result.loc[len(result)] = [claim, 0.2, None]
        ours.loc[len(ours)] = [claim, moves.max(), None]
    both = pd.concat([result.set_index("claim"), ours.set_index("claim")], axis=1)
    return both.rename_axis("claim").reset_index().astype(dict.fromkeys(["of", "ours_of"], "Int64")).round(1)


def _claims(some: pd.DataFrame) -> Iterator[tuple[str, float, int | None]]:
    """Yield the words, the count or mean, and of how many cells."""
    table = some[some["table"] == "2"].pivot_table(index="method", columns=["dataset", "n_prompts"], values="value")
    if {"LabelModel", "MajorityLabelVoter"} <= set(table.index):
        learned, majority = table.loc["LabelModel"], table.loc["MajorityLabelVoter"]
        leads = learned >= table.loc[table.index.isin(printed_methods("2"))].max() - 1e-9
        above = np.count_nonzero(learned > majority)
        yield "Table 2: LabelModel leads, alone or shared, columns", float(np.count_nonzero(leads)), len(leads)
        yield "Table 2: LabelModel is above the majority, columns", float(above), len(leads)
    cells = some[(some["table"] == "4") & some["method"].isin(printed_methods("4"))]
    for dataset, of_one in cells.fillna({"calibrator": UNCALIBRATED}).groupby("dataset", sort=False):
        both = of_one.pivot_table(index=["method", "n_prompts"], columns="calibrator", values="value")
        if {UNCALIBRATED, "platt"} <= set(both):
            before, after, n = both[UNCALIBRATED], both["platt"], len(both)
            yield f"Table 4, {dataset}: Platt lowers ECE, cells", float((after < before).sum()), n
            yield f"Table 4, {dataset}: ECE after it under {ECE_BOUND:g}, cells", float((after < ECE_BOUND).sum()), n
            yield f"Table 4, {dataset}: ECE before it, mean", before.mean(), None
            yield f"Table 4, {dataset}: ECE after it, mean", after.mean(), None


def table_lines(figures: pd.DataFrame, others: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the tables as a terminal has them, one dataset after the other, and others by their titles."""
    rows = figures[(figures["origin"] != NETCAL_ECE) & ~figures["calibrator"].isin(list(NETCAL_CLASSES))]
    tables = {
        f"Table {table}, {dataset}: {TABLES[str(table)]} (* the votes were fitted to it)": side_by_side(
            some, str(table)
        )
        for (table, dataset), some in rows.groupby(["table", "dataset"], sort=False)
    }
    for title, table in (tables | dict(others)).items():
        yield from plain_tables("\n".join([title, *markdown(table_as_text(table)), ""]))


def table_as_text(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table as text, a count with what it is of, and a dash where there is no value."""
    text = table.astype(object).where(table.notna(), "-").astype(str)
    for name, n in (("printed", "of"), ("ours", "ours_of")):
        if n in text:
            of = " of " + text.pop(n)
            text[name] = table[name].map(lambda value: "-" if pd.isna(value) else f"{value:g}")
            text[name] += of.where(of != " of -", "")
    return text


def side_by_side(figures: pd.DataFrame, table: str) -> pd.DataFrame:
    """Return one table in the paper's layout: a row a method and origin, a column a dataset and what varies.

    A printed figure that the votes were fitted to has a star.
    """
    rows = figures[figures["table"] == table].copy()
    varying = [name for name in ("n_prompts", "calibrator", "metric") if rows[name].nunique(dropna=False) > 1]
    alone = bool(varying) and rows["dataset"].nunique() == 1
    words = [_words(rows[name], name) for name in varying]
    rows["column"] = pd.concat([*([] if alone else [rows["dataset"]]), *words], axis=1).agg(", ".join, axis=1)
    margin = (rows["high"] - rows["low"]) / 2
    rows["text"] = rows["value"].map("{:.1f}".format) + margin.map(lambda m: "" if m != m else f" ± {m:.1f}")
    rows["text"] += np.where(rows["fit"] == FITTED, "*", "")
    wide = rows.drop_duplicates(["method", "origin", "column"]).pivot(
        index=["method", "origin"], columns="column", values="text"
    )
    there = set(zip(rows["method"], rows["origin"], strict=True))
    pairs = product(pd.unique(rows["method"]), (PUBLISHED, THIS_RUN, NETCAL_ECE))
    order = pd.MultiIndex.from_tuples([pair for pair in pairs if pair in there], names=["method", "origin"])
    ranks = {name: pd.factorize(rows[name], use_na_sentinel=False)[0] for name in ("dataset", *varying)}
    columns = pd.unique(rows["column"].iloc[np.lexsort(list(ranks.values())[::-1])])
    wide = wide.reindex(index=order, columns=columns).fillna("")
    return wide.rename_axis(columns=None).reset_index()


def _words(values: "pd.Series[str]", name: str) -> "pd.Series[str]":
    if name == "n_prompts":
        return values.map(lambda n: "" if n is pd.NA else str(n))
    return values.fillna(UNCALIBRATED).str.replace("_", " ")


ENCODER_FIGURES = {"thresholds": "figure1-optimal-thresholds", "threshold-transfer": "figure2-threshold-transfer"}


def paper_figures(encoders: Mapping[str, Figure], found: Sequence[loo.LooResult], dataset: str) -> dict[str, Figure]:
    """Return Figure 4, and those of encoders, of which the paper has the first two, by their file names.

    Figure 4 is the paper's example, of the chains that the tables show: LabelModel on nine prompts (or as many as there
    are), fitted on the other datasets and tested on `dataset`, before and after Platt scaling. There is none where
    LabelModel was not run.
    """
    figures = {ENCODER_FIGURES.get(name, name): figure for name, figure in encoders.items()}
    example = next(each for each in found if each.results["test"] == dataset)
    chains = example.chains if example.chains is not None else pd.DataFrame(columns=["ensembler", "size"])
    learned = chains[chains["ensembler"] == "LabelModel"]
    if len(learned):
        figures["figure4-reliability"] = _reliability(learned[learned["size"] == learned["size"].max()], example)
    return figures


def _reliability(learned: pd.DataFrame, example: loo.LooResult) -> Figure:
    before, after = (learned.loc[learned["calibrator"] == name, "p"].to_numpy() for name in (UNCALIBRATED, "platt"))
    run, labels = example.results, example.scores["label"].to_numpy(dtype=np.int8)
    title = f"{run['test']}: LabelModel on {learned['size'].iloc[0]} prompts, before and after Platt scaling"
    return plot_reliability(labels, before=before, after=after, n_bins=run["settings"]["n_bins"], title=title)
