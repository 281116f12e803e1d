"""A table as Markdown, as rows of JSON, and as files: one way for every study and report."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import numpy as np
import pandas as pd

from deep._util.files import JsonObject
from deep._util.plain_cells import plain_frame

Row = JsonObject
"""A row of a table, or an object of a results.json."""

Run = Row
"""The entry of `results.json` for one held-out dataset; docs/results-schema.md describes every key."""


@dataclass(frozen=True, eq=False)
class LooResult:
    """One dataset held out.

    Parameters
    ----------
    results : dict
        What `results.json` holds; docs/results-schema.md describes every key.
    scores : DataFrame
        A row per held-out item: dataset, item_id, label, p_consistent, p_low, p_high, p_uniform, p_uncalibrated,
        n_votes.
    chains : DataFrame, optional
        A row per held-out item and chain that was run: dataset, item_id, recipe, ensembler, size, calibrator, p.
    """

    results: Run
    scores: pd.DataFrame
    chains: pd.DataFrame | None = None


P = ParamSpec("P")


MARKUP = re.compile(r"[\\|]|<(?=[A-Za-z/!?])")
"""Characters of a cell that Markdown would take for its own."""


def framed(rows: Callable[P, Iterator[Row]]) -> Callable[P, pd.DataFrame]:
    """Make a function that yields rows return them as a table."""

    @wraps(rows)
    def build(*args: P.args, **kwargs: P.kwargs) -> pd.DataFrame:
        return pd.DataFrame(list(rows(*args, **kwargs)))

    return build


def markdown(frame: pd.DataFrame) -> Iterator[str]:
    """Yield the lines of a Markdown table; fractions with four decimals, empty where there is no value."""
    yield "| " + " | ".join(map(_text, frame.columns)) + " |"
    yield "|" + " --- |" * len(frame.columns)
    for row in frame.itertuples(index=False):
        yield "| " + " | ".join(_text(value) for value in row) + " |"


def _text(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4f}"
    return "" if value is None else MARKUP.sub(r"\\\g<0>", " ".join(str(value).splitlines()))


def write_table(
    folder: Path, name: str, frame: pd.DataFrame, title: str, *, shown: pd.DataFrame | None = None, note: str = ""
) -> None:
    """Write a table as CSV and, under its title, as Markdown.

    Parameters
    ----------
    folder : Path
    name : str
        Of both files, without suffix.
    frame : DataFrame
    title : str
    shown : DataFrame, optional
        The Markdown table, where it differs from `frame`.
    note : str
        A last line of the Markdown text.
    """
    plain_frame(frame).to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")
    lines = [f"# {title}", "", *markdown(frame if shown is None else shown), "", *([note, ""] if note else [])]
    (folder / f"{name}.md").write_text("\n".join(lines), encoding="utf-8")


def null_if_nan(value: float | Sequence[float] | None) -> float | list[float] | None:
    """Return a number JSON can hold: None for NaN, also where a list holds one."""
    if isinstance(value, list | tuple):
        return None if any(null_if_nan(item) is None for item in value) else [float(item) for item in value]
    return None if value is None or np.isnan(value) else float(value)  # type: ignore[arg-type]


def records(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a table as JSON holds them, None where a value is missing or NaN."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def percent(value: float | None) -> str:
    """Return a share in percent with one decimal, nothing for None."""
    return "" if value is None else f"{100 * value:.1f}"


@framed
def single_voters(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 1: every voter alone on every held-out dataset."""
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "prompt":
                metrics = {name: row[name] for name in ("balanced_accuracy", "precision", "recall")}
                yield {"dataset": run["test"], "voter": row["name"], **metrics}


def ensemblers(runs: Sequence[Run]) -> pd.DataFrame:
    """Table 2: balanced accuracy before calibration, by ensembler and number of voters."""
    rows = [{**row, "dataset": run["test"]} for run in runs for row in run["rows"] if row["calibrator"] is None]
    return _wide(pd.DataFrame(rows), ["dataset", "n_prompts"], "balanced_accuracy")


@framed
def methods(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 3: encoders with thresholds from the other datasets, published figures, single voters, our ensembles."""
    for run in runs:
        for row in run["baselines"]:
            realistic = row["kind"] != "encoder" or row["threshold_from"] == "train"
            if realistic and row["kind"] != "prompt":
                yield {"dataset": run["test"], "type": row["kind"], "method": row["name"], **_accuracy(row)}
        for name in ("recommended", "recommended_by_accuracy", "recommended_paper", "oracle"):
            if run[name] is not None:
                chain = f"{run[name]['ensembler']} on {run[name]['n_prompts']}"
                yield {"dataset": run["test"], "type": name, "method": chain, **_accuracy(run[name])}


def _accuracy(row: Row) -> Row:
    low, high = row["balanced_accuracy_ci"] or (None, None)
    accuracy = {"balanced_accuracy": row["balanced_accuracy"], "ci_low": low, "ci_high": high}
    return accuracy | {name: row.get(name) for name in ("ece", "ece_floor", "log_loss")}


def calibration_by_size(runs: Sequence[Run]) -> pd.DataFrame:
    """Table 4: calibration error before and after Platt scaling, by ensembler and number of voters."""
    return _errors(runs, ("uncalibrated", "platt"), ["dataset", "n_prompts", "calibrator"])


def calibration_by_calibrator(runs: Sequence[Run]) -> pd.DataFrame:
    """Table 5: calibration error under every calibrator, by ensembler and number of voters."""
    return _errors(runs, None, ["dataset", "n_prompts", "calibrator"])


@framed
def gains(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 6: the gain by ensembling over the best single voter.

    The paper takes the best of each on the test labels; those columns are named so, and stand beside what
    the training data chose.
    """
    for run in runs:
        by_kind = {row["kind"]: row["balanced_accuracy"] for row in run["baselines"]}
        alone = [row["balanced_accuracy"] for row in run["baselines"] if row["kind"] == "prompt"]
        reached = run["recommended"]["balanced_accuracy"]
        if reached is not None:
            yield {
                "dataset": run["test"],
                "best_voter_on_test": max(alone),
                "best_ensemble_on_test": run["oracle"]["balanced_accuracy"],
                "majority_vote": by_kind["majority"],
                "best_voter_on_training": by_kind["best_prompt"],
                "recommended": reached,
                "gain": reached - by_kind["best_prompt"],
            }


def threshold_transfer(runs: Sequence[Run]) -> pd.DataFrame:
    """Figure 2: balanced accuracy of each encoder by the origin of its threshold, and the loss against the test set."""
    rows = [
        {
            "dataset": run["test"],
            "encoder": row["name"],
            "from": row["threshold_from"],
            "value": row["balanced_accuracy"],
        }
        for run in runs
        for row in run["baselines"]
        if row["kind"] == "encoder"
    ]
    if not rows:
        return pd.DataFrame()
    wide = pd.DataFrame(rows).pivot(index=["dataset", "encoder"], columns="from", values="value")
    wide = wide.reindex(columns=["test", "center", "train"]).astype(float)
    losses = {f"loss_{origin}": wide["test"] - wide[origin] for origin in ("center", "train")}
    return wide.assign(**losses).rename_axis(columns=None).reset_index()


@framed
def voters(runs: Sequence[Run]) -> Iterator[Row]:
    """Labeling-function analysis of every voter on the training rows of each run."""
    yield from ({"dataset": run["test"], **row} for run in runs for row in run["voters"])


def error_correlations(runs: Sequence[Run]) -> pd.DataFrame:
    """Correlation of the voters' errors, by pair, on the training rows of each run."""
    frames = []
    for run in runs:
        names = [row["name"] for row in run["voters"]]
        frame = pd.DataFrame(run["error_correlation"], columns=names)
        frame.insert(0, "voter", names)
        frame.insert(0, "dataset", run["test"])
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _errors(runs: Sequence[Run], calibrators: Sequence[str] | None, columns: list[str]) -> pd.DataFrame:
    rows = [
        {**row, "dataset": run["test"], "calibrator": row["calibrator"] or "uncalibrated"}
        for run in runs
        for row in run["rows"]
    ]
    kept = [row for row in rows if calibrators is None or row["calibrator"] in calibrators]
    return _wide(pd.DataFrame(kept), columns, "ece")


def _wide(frame: pd.DataFrame, columns: list[str], value: str) -> pd.DataFrame:
    """Return a row an ensembler (and recipe), a column per combination, in the order of appearance."""
    if frame.empty:
        return frame
    keys = frame[columns].astype(str).agg(" ".join, axis=1)
    index = frame["ensembler"].where(frame["recipe"] == "deep", frame["ensembler"] + " (paper)")
    cells = pd.DataFrame({"ensembler": index, "column": keys, "value": frame[value]})
    wide = cells.drop_duplicates(["ensembler", "column"]).pivot(index="ensembler", columns="column", values="value")
    return wide.reindex(index=pd.unique(index), columns=pd.unique(keys)).rename_axis(columns=None).reset_index()


TABLES: dict[str, Callable[[Sequence[Run]], pd.DataFrame]] = {
    "table1-single-voters": single_voters,
    "table2-ensemblers": ensemblers,
    "table3-methods": methods,
    "table4-platt": calibration_by_size,
    "table5-calibrators": calibration_by_calibrator,
    "table6-gains": gains,
    "figure2-threshold-transfer": threshold_transfer,
    "voters": voters,
    "error-correlation": error_correlations,
}


def write_tables(runs: Sequence[Run], folder: Path, *, votes: str) -> None:
    """Write every table that has rows as CSV and Markdown; `votes` says where the votes came from, in each of them."""
    folder.mkdir()
    for name, build in TABLES.items():
        frame = build(runs)
        if frame.empty:
            continue
        title = (build.__doc__ or "").splitlines()[0]
        write_table(folder, name, frame.assign(votes=votes), title, shown=frame, note=f"Votes: {votes}.")
