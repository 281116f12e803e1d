"""Tables 1 to 6 and Figures 1 and 2 of the DEEP paper, and the other figures, made of the runs of datasets held out."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.figures import save_figures
from deep._util.names import file_name
from deep.calibration import plot_reliability
from deep.console import SIMULATED, read_votes_and_scores
from deep.datasets import ScoreTable
from deep.evaluate import COLORS, IntervalRow, Row, Run, draw_intervals, framed, method_rows, write_table
from deep.exceptions import InputError
from deep.experiments.loo._rivals import simulated_scores
from deep.experiments.loo._thresholds import encoder_figures, source_lengths, threshold_transfer
from deep.records import VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


@framed
def parts(runs: Sequence[Run]) -> Iterator[Row]:
    """Show deep's stack on prompts, on encoders and on both, and their paired differences."""
    for run in runs:
        for row in run.get("parts") or ():
            yield {"dataset": run["test"], **row}


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


PARTS = "prompts-encoders-both"

TABLES: dict[str, Callable[[Sequence[Run]], pd.DataFrame]] = {
    "table1-single-voters": single_voters,
    "table2-ensemblers": ensemblers,
    "table3-methods": methods,
    "table4-platt": calibration_by_size,
    "table5-calibrators": calibration_by_calibrator,
    "table6-gains": gains,
    "figure2-threshold-transfer": threshold_transfer,
    PARTS: parts,
    "voters": voters,
    "error-correlation": error_correlations,
}


def write_tables(runs: Sequence[Run], folder: Path, *, votes: str | list[str]) -> None:
    """Write every table that has rows as CSV and Markdown; `votes` says where the votes came from, in each of them."""
    folder.mkdir()
    for name in TABLES:
        write_named(name, runs, folder, votes=votes)


def write_named(name: str, runs: Sequence[Run], folder: Path, *, votes: str | list[str]) -> None:
    """Write one table of `TABLES`, where it has rows."""
    frame = TABLES[name](runs)
    votes = votes if isinstance(votes, str) else ", ".join(votes)
    if not frame.empty:
        title = (TABLES[name].__doc__ or "").splitlines()[0]
        write_table(folder, name, frame.assign(votes=votes), title, shown=frame, note=f"Votes: {votes}.")


def read_votes_and_encoders(args: argparse.Namespace) -> tuple[VoteMatrix, ScoreTable | None]:
    """Return the votes and scores given; with the embedded votes `--scores simulated` gives simulated ones."""
    if args.texts and not args.scores:
        raise InputError(f"`texts` must be given with --scores. Got {args.texts!r} alone.")
    if args.scores and not args.votes and args.scores != [SIMULATED]:
        raise InputError(
            f"`votes` must be given beside tables of scores. Got `scores` {args.scores[0]!r} alone. Give --votes FILE: "
            "of detectors alone, a table of 1 where a score is at least the detector's threshold and 0 below it."
        )
    if args.scores != [SIMULATED]:
        return read_votes_and_scores(args)
    if args.votes:
        raise InputError(
            f"`scores` must be tables where votes are your own. Got {SIMULATED!r}. Give the scores of your items."
        )
    args.scores = []
    votes, _ = read_votes_and_scores(args)
    return votes, simulated_scores(votes, args.seed)


def write_encoders(
    args: argparse.Namespace, votes: VoteMatrix, scores: ScoreTable | None, runs: Sequence[Run], folder: Path
) -> dict[str, "Figure"]:
    """Write how thresholds move, and return the figures of encoders by name; nothing without scores."""
    if scores is None:
        return {}
    figures, moves = encoder_figures(votes, scores, runs, source_lengths(votes, args.texts) if args.texts else None)
    write_table(folder, "threshold-moves", moves, "Where the best threshold of each encoder lies, and why it moves")
    return figures


CAPTION = "SIMULATED votes: no LLM was called"


def write_figures(
    found: Sequence[LooResult], folder: Path, *, encoders: Mapping[str, "Figure"], simulated: bool
) -> None:
    """Draw the figures of a run.

    Parameters
    ----------
    found : sequence of LooResult
    folder : Path
        Made here.
    encoders : mapping of str to Figure
        Those of encoders by name, where there are scores.
    simulated : bool
        Say so in every figure.
    """
    folder.mkdir()
    figures = dict(encoders)
    for result in found:
        run = result.results
        name = file_name(run["test"])
        figures[f"balanced-accuracy-{name}"] = _balanced_accuracies(run)
        if run["recommended"]["ece"] is not None:
            figures[f"reliability-{name}"] = _reliability(result)
    save_figures(figures, folder, caption=CAPTION if simulated else "")


def _reliability(result: LooResult) -> "Figure":
    """Draw observed against predicted shares before and after calibration, and split by predicted class."""
    known = result.scores.dropna(subset=["label"])
    chain = result.results["recommended"]
    return plot_reliability(
        known["label"].to_numpy(dtype=np.int8),
        before=known["p_uncalibrated"].to_numpy(),
        after=known["p_consistent"].to_numpy(),
        n_bins=result.results["settings"]["n_bins"],
        title=f"{result.results['test']}: {chain['ensembler']}, {chain['calibrator'] or 'no calibrator'}",
    )


def _balanced_accuracies(run: Run) -> "Figure":
    """Draw every method of one run with its 95 % interval."""
    known = [
        IntervalRow(
            label, row["balanced_accuracy"], row["balanced_accuracy_ci"], COLORS[kind], row.get("kind") == "published"
        )
        for label, row, kind in method_rows(run)
        if row["balanced_accuracy"] is not None
    ]
    printed = "; hollow: printed, not computed" if any(row.printed for row in known) else ""
    title = f"{run['test']} held out, n = {run['n_test']}{printed}"
    return draw_intervals(known, xlabel="balanced accuracy, 95 % interval", title=title)
