"""Tables 1 to 6 and Figures 1 and 2 of the DEEP paper, and the other figures, made of the runs of datasets held out."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from deep._util.checks import Floats, Mask
from deep._util.figures import BLUE, GRAY, new_figure, save_figures
from deep._util.files import read_asset
from deep._util.names import file_name
from deep.calibration import plot_reliability
from deep.console import SIMULATED, read_votes_and_scores
from deep.datasets import ScoreTable, published_datasets, read_examples
from deep.evaluate import COLORS, IntervalRow, Row, Run, as_frame, draw_intervals, method_rows, row_weights, write_table
from deep.exceptions import InputError
from deep.experiments.loo._rivals import best_threshold
from deep.experiments.loo._show import BASELINE_LABELS, CHAINS, LEARNED_PRIOR, ORIGINS, PRINTED, encoder_rows, mean_of
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


@as_frame
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
    return _one_row_per_ensembler(pd.DataFrame(rows), ["dataset", "n_prompts"], "balanced_accuracy")


@as_frame
def methods(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 3: encoders with thresholds from the other datasets, published figures, single voters, our ensembles."""
    for run in runs:
        for row in run["baselines"]:
            # As in the paper's table, of an encoder only the row whose threshold comes from the other datasets: nobody
            # has the labels of the test set, and the centre of the range is not tuned.
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
    return _calibration_error_rows(runs, ("uncalibrated", "platt"))


def calibration_by_calibrator(runs: Sequence[Run]) -> pd.DataFrame:
    """Table 5: calibration error under every calibrator, by ensembler and number of voters."""
    return _calibration_error_rows(runs, None)


@as_frame
def gains(runs: Sequence[Run]) -> Iterator[Row]:
    """Table 6: the gain of what is recommended over the voter chosen on training data, and of the best of both on test.

    The paper takes the best of each on the test labels; those columns are named so.
    """
    for run in runs:
        # Read only for 'majority' and 'best_prompt', of which a run has one row each; other kinds have several.
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
                "gain_on_test": run["oracle"]["balanced_accuracy"] - max(alone),
            }


@as_frame
def stack_parts(runs: Sequence[Run]) -> Iterator[Row]:
    """Show deep's stack on prompts, on encoders and on both, and their paired differences."""
    for run in runs:
        for row in run.get("parts") or ():
            yield {"dataset": run["test"], **row}


@as_frame
def voters(runs: Sequence[Run]) -> Iterator[Row]:
    """Labeling-function analysis of every voter on the training rows of each run."""
    yield from ({"held_out": run["test"], **row} for run in runs for row in run["voters"])


def error_correlations(runs: Sequence[Run]) -> pd.DataFrame:
    """Correlation of the voters' errors, by pair, on the training rows of each run."""
    frames = []
    for run in runs:
        names = [row["name"] for row in run["voters"]]
        frame = pd.DataFrame(run["error_correlation"], columns=names)
        frame.insert(0, "voter", names)
        frame.insert(0, "held_out", run["test"])
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _calibration_error_rows(runs: Sequence[Run], calibrators: Sequence[str] | None) -> pd.DataFrame:
    of_runs = [(run["test"], row) for run in runs for row in run["rows"]]
    rows = [{**row, "dataset": test, "calibrator": row["calibrator"] or "uncalibrated"} for test, row in of_runs]
    errors = [row for row in rows if calibrators is None or row["calibrator"] in calibrators]
    return _one_row_per_ensembler(pd.DataFrame(errors), ["dataset", "n_prompts", "calibrator"], "ece")


def _one_row_per_ensembler(frame: pd.DataFrame, columns: list[str], value: str) -> pd.DataFrame:
    """Return a row an ensembler (and recipe), a column per combination, in the order of appearance."""
    if frame.empty:
        return frame
    keys = frame[columns].astype(str).agg(" ".join, axis=1)
    index = frame["ensembler"].where(frame["recipe"] == "deep", frame["ensembler"] + " (paper)")
    cells = pd.DataFrame({"ensembler": index, "column": keys, "value": frame[value]})
    # `pivot` refuses a cell that comes twice; the first row of one stays.
    wide = cells.drop_duplicates(["ensembler", "column"]).pivot(index="ensembler", columns="column", values="value")
    return wide.reindex(index=pd.unique(index), columns=pd.unique(keys)).rename_axis(columns=None).reset_index()


def optimal_thresholds(votes: VoteMatrix, scores: ScoreTable) -> dict[str, dict[str, float]]:
    """Return the threshold that each encoder would need on each labeled dataset: the paper's Figure 1."""
    result: dict[str, dict[str, float]] = {name: {} for name in scores.score_names}
    for dataset in votes.dataset_names:
        rows = (votes.datasets == dataset) & (votes.labels >= 0)
        for column, name in enumerate(scores.score_names):
            threshold = best_threshold(scores.scores[rows, column], votes.labels[rows], np.ones(int(rows.sum())))
            if not np.isnan(threshold):
                result[name][dataset] = threshold
    return result


# Why a threshold may move: other sources, longer sources, or another share of consistent items.
THRESHOLD_MOVE_REASONS = ("source", "length", "balance")

# The ending of a reason's name where as many items are drawn at random: how far chance alone moves the threshold.
CHANCE = ", chance"

# The shares of consistent items at which the best threshold is looked for.
CONSISTENT_SHARES_TRIED = (0.25, 0.5, 0.75)
# The thirds of a dataset by the length of its sources.
LENGTH_THIRDS = ("short", "middle", "long")


def source_lengths(votes: VoteMatrix, texts: str) -> Floats:
    """Return the words of each item's source, as its file of examples has it; NaN where it has no such item."""
    n_words = {(one.dataset, one.example_id): len(one.source.split()) for one in read_examples(texts)}
    items = zip(votes.datasets.astype(str), votes.item_ids.astype(str), strict=True)
    return np.array([n_words.get(item, np.nan) for item in items], dtype=float)


def threshold_moves(
    votes: VoteMatrix, scores: ScoreTable, lengths: Floats | None = None, random_state: int = 0
) -> pd.DataFrame:
    """Return how each encoder's best threshold moves with one thing while the others are held.

    Parameters
    ----------
    votes : VoteMatrix
        Of which labels and datasets count.
    scores : ScoreTable
        Aligned with the rows of `votes`.
    lengths : ndarray of float, shape (n_examples,), optional
        Words of the sources.
    random_state : int, default=0
        Of the thirds that chance draws.

    Returns
    -------
    DataFrame
        ``encoder, moved_by, part, threshold``: the threshold as a share of the scorer's range. 'source': of one dataset
        at a time, for the best balanced accuracy. 'length': of the third of each dataset with the shortest, middle and
        longest sources, all datasets and classes weighing the same. 'balance': of all, for the best accuracy where 25,
        50 or 75 % are consistent. 'source, chance' and 'length, chance': of as many items, drawn at random.
    """
    labeled, rng = votes.labels >= 0, np.random.default_rng(random_state)
    y, names, mixed = votes.labels, votes.datasets, votes.datasets.copy()
    # As many items as each dataset has, drawn from all: what is left of the move then is chance.
    mixed[labeled] = rng.permutation(names[labeled])
    parts: list[tuple[str, str, Mask, float]] = [
        *(("source", name, labeled & (names == name), 0.5) for name in votes.dataset_names),
        *(("source" + CHANCE, name, labeled & (mixed == name), 0.5) for name in votes.dataset_names),
        *(("balance", f"{share:.0%}", labeled, share) for share in CONSISTENT_SHARES_TRIED),
    ]
    if lengths is not None:
        noise = np.where(np.isnan(lengths), np.nan, rng.random(len(y)))
        parts += [*_by_third("length", lengths, labeled, names), *_by_third("length" + CHANCE, noise, labeled, names)]
    rows = []
    for why, part, mask, share in parts:
        weights = row_weights(votes.rows(mask))
        for name, column, (low, high) in _encoders_with_ranges(scores):
            at = best_threshold(column[mask], y[mask], weights, share=share)
            rows.append((name, why, part, (at - low) / ((high - low) or 1.0)))
    return pd.DataFrame(rows, columns=["encoder", "moved_by", "part", "threshold"]).dropna(ignore_index=True)


def _encoders_with_ranges(scores: ScoreTable) -> Iterator[tuple[str, Floats, tuple[float, float]]]:
    for name, column in zip(scores.score_names, scores.scores.T, strict=True):
        if not np.isnan(column).all():
            yield name, column, scores.ranges.get(name) or (float(np.nanmin(column)), float(np.nanmax(column)))


def _by_third(
    why: str, values: Floats, labeled: Mask, names: "np.typing.NDArray[np.object_]"
) -> Iterator[tuple[str, str, Mask, float]]:
    """Yield the rows of the lower, middle and upper third of each dataset by some values."""
    usable = labeled & ~np.isnan(values)
    third = np.full(len(values), -1)
    for name in dict.fromkeys(names[usable]):
        rows = np.flatnonzero(usable & (names == name))
        # Thirds within each dataset: over all datasets, long sources would be those of one dataset.
        third[rows[np.argsort(values[rows], kind="stable")]] = np.arange(len(rows)) * 3 // len(rows)
    yield from ((why, part, third == i, 0.5) for i, part in enumerate(LENGTH_THIRDS))


def draw_threshold_moves(moves: pd.DataFrame) -> "Figure":
    """Draw why thresholds move: a panel for each thing that may move them, and below in gray what chance does."""
    reasons = [why for why in THRESHOLD_MOVE_REASONS if (moves["moved_by"] == why).any()]
    encoders = list(dict.fromkeys(moves["encoder"]))
    figure = new_figure(2.2 + 2.6 * len(reasons), 1.6 + 0.4 * len(encoders))
    # On one axis, so that how far a reason moves the threshold can be compared.
    panels = figure.subplots(1, len(reasons), sharey=True, sharex=True, squeeze=False)[0]
    for axes, why in zip(panels, reasons, strict=True):
        by_name = {name: moves[moves["moved_by"] == name] for name in (why, why + CHANCE)}
        for some, color, below in zip(by_name.values(), (BLUE, GRAY), (0.0, 0.3), strict=True):
            for height, encoder in enumerate(encoders):
                at = some.loc[some["encoder"] == encoder, "threshold"].to_numpy()
                axes.plot(at, np.full(len(at), height - below), "|-", color=color, markersize=8, lw=1)
        means = [f"{mean_move(some):.2f}{' by chance' * (name != why)}" for name, some in by_name.items() if len(some)]
        axes.set_title(f"{why}: {'; '.join(means)}", fontsize=10)
        axes.set_xlabel("threshold, share of the range", fontsize=9)
    panels[0].set_yticks(range(len(encoders)), encoders, fontsize=9)
    figure.suptitle("How far the best threshold moves, mean over encoders", fontsize=10)
    figure.subplots_adjust(wspace=0.08, top=1 - 0.65 / figure.get_figheight())
    return figure


def mean_move(some: pd.DataFrame) -> float:
    """Return the distance of the largest from the least threshold, mean over encoders."""
    by = some.groupby("encoder")["threshold"]
    return float((by.max() - by.min()).mean())


def threshold_transfer(runs: Sequence[Run]) -> pd.DataFrame:
    """Figure 2: balanced accuracy of each encoder by the origin of its threshold, and the loss against the test set."""
    rows = [{**row, "dataset": run["test"]} for run in runs for row in run["baselines"] if row["kind"] == "encoder"]
    if not rows:
        return pd.DataFrame()
    frame = pd.DataFrame(rows).rename(columns={"name": "encoder"})
    wide = frame.pivot(index=["dataset", "encoder"], columns="threshold_from", values="balanced_accuracy")
    wide = wide.reindex(columns=ORIGINS).astype(float)
    losses = {f"loss_{origin}": wide["test"] - wide[origin] for origin in ("center", "train")}
    return wide.assign(**losses).rename_axis(columns=None).reset_index()


ORIGIN_WORDS = {"test": "optimised on test", "center": "centre of its range", "train": "optimised on the others"}


def draw_optimal_thresholds(thresholds: dict[str, dict[str, float]]) -> "Figure":
    """Draw where each encoder's best threshold lies on each dataset: the paper's Figure 1."""
    figure = new_figure(7.0, 1.2 + 0.26 * len(thresholds))
    axes = figure.subplots()
    datasets = sorted({name for by_dataset in thresholds.values() for name in by_dataset})
    markers = "osD^v<>Pph*X"
    for i, dataset in enumerate(datasets):
        x = [by_dataset.get(dataset, np.nan) for by_dataset in thresholds.values()]
        axes.plot(x, range(len(thresholds)), markers[i % len(markers)], label=dataset, markersize=5, alpha=0.8)
    axes.set_yticks(range(len(thresholds)), list(thresholds), fontsize=9)
    axes.set(xlabel="threshold with the best balanced accuracy", title="The best threshold moves with the dataset")
    axes.legend(fontsize=9, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def draw_threshold_transfer(runs: Sequence[Run]) -> "Figure":
    """Draw the loss of encoders whose threshold is not set on the test labels: the paper's Figure 2."""
    reached = {
        name: {o: mean for o, rows in by.items() if (mean := mean_of(rows, "balanced_accuracy")) is not None}
        for name, by in encoder_rows(runs).items()
    }
    means = {name: by for name, by in reached.items() if len(by) == len(ORIGINS)}
    # 0.26 inches for a bar, and three bars an encoder: one for each origin of its threshold.
    figure = new_figure(7.0, 1.2 + 0.26 * (3 * len(means)))
    axes = figure.subplots()
    for i, (name, by_origin) in enumerate(means.items()):
        for j, origin in enumerate(ORIGIN_WORDS):
            # Places are four apart: three bars and a gap.
            height = i * 4 + j
            axes.barh(height, by_origin[origin], color=COLORS[origin], label=ORIGIN_WORDS[origin] if i == 0 else None)
            loss = 100 * (by_origin[origin] - by_origin["test"])
            if origin != "test":
                axes.text(by_origin[origin] + 0.004, height, f"{loss:+.1f}", va="center", fontsize=9)
        # Names end just left of the axis, which begins at 0.4, beside the middle one of their bars.
        axes.text(0.395, i * 4 + 1, name, ha="right", va="center", fontsize=9)
    axes.set_yticks([])
    axes.set(xlim=(0.4, 1.0), xlabel="balanced accuracy, mean over held-out datasets")
    axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, 1.06), ncols=3, frameon=False)
    return figure


def seed_tables(runs_by_seed: Mapping[int, Sequence[Run]]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield name, title and rows of the figures by seed, and of their mean and spread over seeds."""
    metrics = ["balanced_accuracy", "ece", "log_loss"]
    rows = [
        {"seed": seed, "held_out": run["test"], "what": what, **{name: row.get(name) for name in metrics}}
        for seed, runs in runs_by_seed.items()
        for run in runs
        for what, row in [*((key, run[key]) for key in CHAINS), *((row["kind"], row) for row in run["baselines"])]
        if row is not None and (what in CHAINS or what in BASELINE_LABELS)
    ]
    table = pd.DataFrame(rows)
    spread = table.groupby(["held_out", "what"], sort=False)[metrics].agg(["mean", "std", "min", "max"])
    spread.columns = [" ".join(pair) for pair in spread.columns]
    yield "seeds", f"What {len(runs_by_seed)} seeds give", table
    yield "seeds-spread", f"Mean and spread over {len(runs_by_seed)} seeds", spread.reset_index()


# The name of the table that compares prompts, encoders and both.
PARTS_TABLE_NAME = "prompts-encoders-both"

# The function that makes each table of a run, by the name of its files. `write_named_table` prints the first line of
# its docstring as the table's title: such a line is read by users.
TABLE_BUILDERS: dict[str, Callable[[Sequence[Run]], pd.DataFrame]] = {
    "table1-single-voters": single_voters,
    "table2-ensemblers": ensemblers,
    "table3-methods": methods,
    "table4-platt": calibration_by_size,
    "table5-calibrators": calibration_by_calibrator,
    "table6-gains": gains,
    "figure2-threshold-transfer": threshold_transfer,
    PARTS_TABLE_NAME: stack_parts,
    "voters": voters,
    "error-correlation": error_correlations,
}


def write_tables(runs: Sequence[Run], folder: Path, *, votes: str | list[str]) -> None:
    """Write every table that has rows as CSV and Markdown; `votes` says where the votes came from, in each of them."""
    folder.mkdir()
    for name in TABLE_BUILDERS:
        write_named_table(name, runs, folder, votes=votes)


def write_named_table(name: str, runs: Sequence[Run], folder: Path, *, votes: str | list[str]) -> None:
    """Write one table of `TABLE_BUILDERS`, where it has rows."""
    frame = TABLE_BUILDERS[name](runs)
    votes = votes if isinstance(votes, str) else ", ".join(votes)
    if not frame.empty:
        title = (TABLE_BUILDERS[name].__doc__ or "").splitlines()[0]
        printed = frame["type"] == "published" if "type" in frame else np.zeros(len(frame), dtype=bool)
        write_table(folder, name, frame.assign(votes=np.where(printed, PRINTED, votes)), title, note=f"Votes: {votes}.")


@dataclass(frozen=True, slots=True)
class PublishedBaseline:
    """One cell of the paper's Table 3.

    Parameters
    ----------
    kind : {'encoder', 'ensemble', 'llm'}
        An encoder with thresholds from the other three datasets, the paper's own ensembles, or a single
        LLM prompt of earlier work.
    method : str
        As the paper names it.
    dataset : str
        One of the paper's four, as deep names it: ``aggrefact-xsum``.
    balanced_accuracy : float
        In [0, 1].
    margin : float
        Half the width of the 95 % confidence interval, in the same unit.
    """

    kind: Literal["encoder", "ensemble", "llm"]
    method: str
    dataset: str
    balanced_accuracy: float
    margin: float


@cache
def published_baselines() -> tuple[PublishedBaseline, ...]:
    """Return the cells of Table 3: five encoders, six LLM prompts of others and the paper's ensembles.

    Examples
    --------
    >>> from deep.experiments.loo import published_baselines
    >>> best = published_baselines()[0]
    >>> best.method, best.dataset, best.balanced_accuracy, best.margin
    ('AlignScore', 'aggrefact-xsum', 0.702, 0.038)
    """
    document = read_asset(__package__, "published_baselines.json")
    # Rounded, since 70.2 / 100 is 0.7020000000000001.
    return tuple(
        PublishedBaseline(
            row["kind"], row["method"], dataset.name, *(round(figure / 100.0, 6) for figure in row[dataset.name])
        )
        for row in document["rows"]
        for dataset in published_datasets()
    )


def published_rows(test: str) -> list[Row]:
    """Return the paper's Table 3 for one dataset as baseline rows; its figures are not ours."""
    return [
        {
            "name": cell.method,
            "kind": "published",
            "threshold_from": "train" if cell.kind == "encoder" else None,
            "threshold": None,
            "balanced_accuracy": cell.balanced_accuracy,
            "balanced_accuracy_ci": [cell.balanced_accuracy - cell.margin, cell.balanced_accuracy + cell.margin],
            "precision": None,
            "recall": None,
        }
        for cell in published_baselines()
        if cell.dataset == test
    ]


def simulated_scores(votes: VoteMatrix, random_state: int) -> ScoreTable:
    """Simulate scores of Table 3's encoders, as accurate as printed: normal in each class, one threshold for all.

    Marked in their names. A threshold that is learned on some datasets fits the others, unlike those of real encoders.
    """
    # Normal scores of variance 1, shifted by z either way, are right on a share Phi(z) of each class at threshold 0.
    # `half` holds z of each cell: half of the distance between the two classes.
    rng, half = np.random.default_rng(random_state), ndtri([c.balanced_accuracy for c in published_baselines()])
    encoders = [(cell, z) for cell, z in zip(published_baselines(), half, strict=True) if cell.kind == "encoder"]
    names = tuple(dict.fromkeys(f"{cell.method} (simulated)" for cell, _ in encoders))
    latent = rng.standard_normal((len(votes.labels), len(names)))
    for cell, z in encoders:
        rows = votes.datasets == cell.dataset
        latent[rows, names.index(f"{cell.method} (simulated)")] += np.where(votes.labels[rows] == 1, z, -z)
    return ScoreTable(ndtr(latent), votes.item_ids, names, votes.datasets, votes.labels)


def read_votes_and_encoders(args: argparse.Namespace) -> tuple[VoteMatrix, ScoreTable | None]:
    """Return the votes and scores given; with the embedded votes `--scores simulated` gives simulated ones."""
    if args.texts and not args.scores:
        raise InputError(f"`texts` must be given with --scores. Got {args.texts!r} alone.")
    if args.scores and not args.votes and args.scores != [SIMULATED]:
        raise InputError(
            f"`votes` must be given beside tables of scores. Got `scores` {args.scores[0]!r} alone. Give --votes "
            "FILE. For detectors alone: 1 where the score reaches the threshold, else 0."
        )
    if args.scores != [SIMULATED]:
        return read_votes_and_scores(args)
    if args.votes:
        raise InputError(
            f"`scores` must be tables where votes are your own. Got {SIMULATED!r}. Give the scores of your items."
        )
    # The reader takes paths of tables, and 'simulated' is none.
    args.scores = []
    votes, _ = read_votes_and_scores(args)
    return votes, simulated_scores(votes, args.seed)


def encoder_parts(
    args: argparse.Namespace, votes: VoteMatrix, scores: ScoreTable | None, runs: Sequence[Run]
) -> tuple[dict[str, "Figure"], dict[str, pd.DataFrame]]:
    """Return the figures of encoders and the table of how thresholds move, by name; none without scores.

    The figures are the paper's Figures 1 and 2, and why thresholds move.
    """
    if scores is None:
        return {}, {}
    moves = threshold_moves(votes, scores, source_lengths(votes, args.texts) if args.texts else None)
    return {
        "thresholds": draw_optimal_thresholds(optimal_thresholds(votes, scores)),
        "threshold-transfer": draw_threshold_transfer(runs),
        "threshold-moves": draw_threshold_moves(moves),
    }, {"threshold-moves": moves}


# The title of the table of how thresholds move.
MOVES_TITLE = "Where the best threshold of each encoder lies, and why it moves"

# What every figure of simulated votes says.
SIMULATED_CAPTION = "SIMULATED votes: no LLM was called"


def write_figures(
    results: Sequence[LooResult], folder: Path, *, encoders: Mapping[str, "Figure"], simulated: bool
) -> None:
    """Draw the figures of a run.

    Parameters
    ----------
    results : sequence of LooResult
        One a dataset held out.
    folder : Path
        Made here.
    encoders : mapping of str to Figure
        Those of encoders by name, where there are scores.
    simulated : bool
        Say so in every figure.
    """
    folder.mkdir()
    figures = dict(encoders)
    for result in results:
        run = result.results
        name = file_name(run["test"])
        figures[f"balanced-accuracy-{name}"] = _draw_balanced_accuracies(run)
        if run["recommended"]["ece"] is not None:
            figures[f"reliability-{name}"] = _draw_reliability(result)
    save_figures(figures, folder, caption=SIMULATED_CAPTION if simulated else "")


def _draw_reliability(result: LooResult) -> "Figure":
    """Draw observed against predicted shares before and after calibration, and split by predicted class."""
    labeled_rows = result.scores.dropna(subset=["label"])
    chain = result.results["recommended"]
    caption = "before: at equal shares of both classes; after: at the estimated share"
    by = caption if chain["calibrator"] == LEARNED_PRIOR else chain["calibrator"] or "no calibrator"
    return plot_reliability(
        labeled_rows["label"].to_numpy(dtype=np.int8),
        before=labeled_rows["p_uncalibrated"].to_numpy(),
        after=labeled_rows["p_consistent"].to_numpy(),
        n_bins=result.results["settings"]["n_bins"],
        title=f"{result.results['test']}: {chain['ensembler']}, {by}",
    )


def _draw_balanced_accuracies(run: Run) -> "Figure":
    """Draw every method of one run with its 95 % interval."""
    intervals = [
        IntervalRow(
            label, row["balanced_accuracy"], row["balanced_accuracy_ci"], COLORS[kind], row.get("kind") == "published"
        )
        for label, row, kind in method_rows(run)
        if row["balanced_accuracy"] is not None
    ]
    printed = "; hollow: printed, not computed" if any(row.printed for row in intervals) else ""
    title = f"{run['test']} held out, n = {run['n_test']}{printed}"
    return draw_intervals(intervals, xlabel="balanced accuracy, 95 % interval", title=title)
