"""FECT's verdicts, asked or given; its Tables 2, 4 and 5, its Figures 5, 7 and 8, and self-consistency beside them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.checks import Floats, Votes, check_choice
from deep._util.figures import AMBER, BLUE, GRAY, RED, new_figure, plain_grid
from deep._util.files import JsonObject, read_asset
from deep.asking import Finder, ask
from deep.datasets import read_votes
from deep.ensembles import ENSEMBLER_NAMES, ENSEMBLERS
from deep.evaluate import DatasetVerdict, markdown, t_half_width
from deep.exceptions import InputError
from deep.features import krippendorff_alpha
from deep.judges import Judge, parse_voter
from deep.model import load
from deep.records import ABSTAIN, Example, VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deep.datasets import Examples
    from deep.model import Model


# The column of judges that are not asked by a prompt.
NO_PROMPT = "no prompt"

# What the columns of prompts are called, by the prompt's id.
Names = dict[str, str]


def given_verdicts(
    examples: "Examples",
    names: Names,
    *,
    votes: Sequence[str] = (),
    judges: Sequence[Judge] = (),
    models: Sequence[str] = (),
    ensemblers: Sequence[str] = (),
) -> Iterator[dict[str, object]]:
    """Yield the verdicts of judges that are not asked, on labeled examples.

    Parameters
    ----------
    examples : Examples
        Each with a label.
    names : dict
        The name of a prompt's column by its id; a prompt that is not named keeps its id.
    votes : sequence of str
        Vote files; a voter that several of them hold has a run in each.
    judges : sequence of Judge
        Those that need no LLM.
    models : sequence of str
        Model files; their voters are found in each vote file and among `judges`, and where all of a model's voters
        need no LLM they are run.
    ensemblers : sequence of str
        Ensembles that learn from no label, of all voters of each vote file and of `judges`.

    Raises
    ------
    InputError
        A file cannot be read, holds none of the examples, or lacks a voter of a model.
    """
    items = list(examples)
    tables = [_align_votes(read_votes(path), items, path) for path in votes]
    answers = ask(examples, judges) if judges else None
    runs: Counter[tuple[str, str]] = Counter()
    for table in [*tables, *([answers] if answers is not None else [])]:
        for column, voter in enumerate(table.voter_names):
            yield from _rows(items, table.votes[:, column], *_place(voter, names), runs)
    wide_tables = [_join_votes(table, answers) for table in tables] or ([answers] if answers is not None else [])
    for table in wide_tables if ensemblers else ():
        combined = ensemble_votes(table, ensemblers)
        for column, ensemble in enumerate(combined.voter_names):
            yield from _rows(items, combined.votes[:, column], ensemble, NO_PROMPT, runs)
    fitted = {Path(path).stem: load(path) for path in models}
    for name, model in fitted.items():
        for table in _tables_of(model, name, wide_tables, examples):
            decided = model_votes(model, table)
            for column, rule in enumerate(decided.voter_names):
                yield from _rows(items, decided.votes[:, column], name, rule, runs)


def _align_votes(table: VoteMatrix, examples: Sequence[Example], path: str) -> VoteMatrix:
    """Return the votes on the examples, in their order; none where the file lacks one."""
    places = {key: row for row, key in enumerate(zip(table.datasets, table.item_ids, strict=True))}
    rows = np.array([places.get((str(e.dataset), e.example_id), -1) for e in examples])
    if (rows < 0).all():
        raise InputError(
            f"`votes` must hold votes on the examples of `data`, by dataset and item_id. Got none of {len(examples)} "
            f"in {path!r}, whose datasets are {', '.join(table.dataset_names)}."
        )
    return VoteMatrix(
        votes=np.where(rows[:, None] < 0, ABSTAIN, table.votes[rows]),
        item_ids=[e.example_id for e in examples],
        voter_names=table.voter_names,
        datasets=[str(e.dataset) for e in examples],
        labels=[-1 if e.label is None else e.label for e in examples],
    )


def _tables_of(model: "Model", name: str, tables: Sequence[VoteMatrix], examples: "Examples") -> list[VoteMatrix]:
    """Return the tables that hold the voters of a model, one a run."""
    holding = [table for table in tables if set(model.voter_names) <= set(table.voter_names)]
    if holding:
        return holding
    finder = Finder()
    if any(voter.version is None for voter in model.voters) or finder.plan(model, examples, str).asks:
        missing = [voter for voter in model.voter_names if not any(voter in table.voter_names for table in tables)]
        raise InputError(
            f"`model_file` must have its voters in `votes`. Got none of {missing[0]!r} for {name!r}. "
            "Ask its judges first, as by `deep ask`, and give the file with --votes."
        )
    return [ask(examples, [column.judge for column in finder.plan(model, examples, str).columns])]


def _join_votes(table: VoteMatrix, made: VoteMatrix | None) -> VoteMatrix:
    """Return a table with the votes that were made here as further columns; a voter that both hold is the table's."""
    if made is None:
        return table
    new = [i for i, voter in enumerate(made.voter_names) if voter not in table.voter_names]
    names = (*table.voter_names, *(made.voter_names[i] for i in new))
    return table.with_columns(votes=np.column_stack([table.votes, made.votes[:, new]]), voter_names=names)


def _place(voter: str, names: Names) -> tuple[str, str]:
    """Return the row and the column of a voter: of a prompt its LLM and its name, of any other judge itself."""
    parts = parse_voter(voter)
    if parts.model is None or parts.name.startswith("nli-") or parts.name == "embedding":
        return (parts.name if parts.model is None else f"{parts.name} {parts.model}"), NO_PROMPT
    return parts.model, names.get(parts.name, parts.name)


def _rows(
    examples: Sequence[Example], votes: np.ndarray, row: str, column: str, runs: Counter[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    runs[row, column] += 1
    for example, vote in zip(examples, votes.tolist(), strict=True):
        yield verdict_row(str(example.dataset), example.example_id, example.label, row, column, runs[row, column], vote)


def verdict_row(
    dataset: str, item: str, label: int | None, model: str, prompt: str, run: int, vote: int, **why: object
) -> dict[str, object]:
    """Return one verdict as the tables of a run are made of it; `why` has its `reason` and its `evidence`."""
    place = {"dataset": dataset, "item": f"{dataset}/{item}", "item_id": item, "label": label}
    return {**place, "model": model, "prompt": prompt, "run": run, "vote": vote, "reason": None, "evidence": "", **why}


METRICS = ("f1", "precision", "recall")

JUDGE_KEYS = ["model", "prompt"]

# The level of the t-intervals, as in the paper.
CONFIDENCE = 0.95

# Share of verdicts that must be votes for a judge's figures to be compared with those of others.
LEAST_COVERAGE = 0.5


def score_runs(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Score every run of every judge; the non-factual class is the positive one.

    Parameters
    ----------
    verdicts : DataFrame
        ``item, label, model, prompt, run, vote``; labels and votes 1 factual, 0 not; -1 no vote.

    Returns
    -------
    DataFrame
        One row a model, prompt and run: ``tp, fp, fn, tn`` over the items with a vote; ``no_vote`` and, of them,
        ``no_vote_nonfactual``; ``precision``, ``recall`` and ``f1`` in [0, 1], missing where they are undefined
        (nothing called non-factual; nothing non-factual with a vote; neither); ``f1_all``, over all items: one without
        a vote is not found.

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.experiments.fect._fect_report import score_runs
    >>> judge = {"model": "m", "prompt": "3d", "run": 1}
    >>> said = [(0, 0), (0, 1), (1, 0), (1, 1), (1, -1)]
    >>> rows = [{"item": i, "label": label, "vote": vote, **judge} for i, (label, vote) in enumerate(said)]
    >>> score_runs(pd.DataFrame(rows)).loc[0, ["tp", "fp", "fn", "no_vote", "f1"]].tolist()
    [1.0, 1.0, 1.0, 1.0, 0.5]
    """
    columns = verdicts[[*JUDGE_KEYS, "run"]].copy()
    for name, label, vote in (("tp", 0, 0), ("fp", 1, 0), ("fn", 0, 1), ("tn", 1, 1)):
        columns[name] = (verdicts["label"] == label) & (verdicts["vote"] == vote)
    columns["no_vote"] = verdicts["vote"] == -1
    columns["no_vote_nonfactual"] = columns["no_vote"] & (verdicts["label"] == 0)
    scores = columns.groupby([*JUDGE_KEYS, "run"], sort=False).sum().reset_index()
    tp, fp, fn = (scores[name].astype(float) for name in ("tp", "fp", "fn"))
    scores["precision"] = tp / (tp + fp)
    scores["recall"] = tp / (tp + fn)
    scores["f1"] = 2 * tp / (2 * tp + fp + fn)
    scores["f1_all"] = 2 * tp / (2 * tp + fp + fn + scores["no_vote_nonfactual"])
    return scores


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of every metric over runs, with its standard deviation and 95 % t-interval.

    Returns
    -------
    DataFrame
        One row a model, prompt and metric: ``n_runs`` in which the metric is defined, ``mean``, ``sd`` (of a sample),
        ``low`` and ``high`` (mean ∓ t · sd / √n), the last three missing below two runs, and the interval where runs
        do not differ; ``coverage``, the share of
        verdicts that are votes.
    """
    scores = scores.assign(voted=scores[["tp", "fp", "fn", "tn"]].sum(axis=1))
    counts = scores.groupby(JUDGE_KEYS, sort=False)[["voted", "no_vote"]].sum()
    coverage = (counts["voted"] / (counts["voted"] + counts["no_vote"])).rename("coverage").reset_index()
    long = scores.melt([*JUDGE_KEYS, "run"], [*METRICS, "f1_all"], var_name="metric")
    result = long.groupby([*JUDGE_KEYS, "metric"], sort=False)["value"].agg(n_runs="count", mean="mean", sd="std")
    half = _half_widths(result.n_runs, result.sd)
    bounded = pd.DataFrame(result.assign(low=result["mean"] - half, high=result["mean"] + half).reset_index())
    return bounded.merge(coverage, on=JUDGE_KEYS, how="left", validate="many_to_one")


def _half_widths(n_runs: "pd.Series[int]", sds: "pd.Series[float]") -> Floats:
    """Return half of each interval; none where runs do not differ: they say nothing of how far off their mean is."""
    return np.array(
        [t_half_width(sd, n, CONFIDENCE) if n > 1 and sd > 0 else np.nan for n, sd in zip(n_runs, sds, strict=True)]
    )


def pick_best(summary: pd.DataFrame, metric: str) -> JsonObject:
    """Return, by prompt, the model of the best mean; where means tie at two decimals, that of the lowest deviation.

    A judge that votes on less than `LEAST_COVERAGE` of the claims is measured on others than the rest, and is no best.
    """
    is_complete = summary["mean"].notna() & (summary["coverage"] >= LEAST_COVERAGE)
    rows = summary[(summary["metric"] == metric) & is_complete].copy()
    rows["mean"] = rows["mean"].round(2)
    ranked = rows.sort_values(["mean", "sd"], ascending=[False, True], kind="stable", na_position="last")
    return dict(ranked.drop_duplicates("prompt").set_index("prompt")["model"])


def consistency(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return how far the runs of each judge agree with one another.

    Returns
    -------
    DataFrame
        One row a model and prompt: ``n_items`` in all; ``n_repeated`` with at least two votes; ``n_flipped``, those of
        them with both votes; ``flipped``, their share; ``alpha``, Krippendorff's over all runs, missing where every
        vote is the same; ``no_vote``, the verdicts without a vote.
    """
    rows = []
    for (model, prompt), judge_runs in verdicts.groupby(JUDGE_KEYS, sort=False):
        votes = judge_runs.pivot(index="item", columns="run", values="vote").to_numpy(dtype=np.int64)
        repeated = votes[(votes >= 0).sum(axis=1) > 1]
        flipped = (repeated == 0).any(axis=1) & (repeated == 1).any(axis=1)
        rows.append(
            {
                "model": model,
                "prompt": prompt,
                "n_items": len(votes),
                "n_repeated": len(repeated),
                "n_flipped": int(flipped.sum()),
                "flipped": flipped.mean() if len(repeated) else np.nan,
                "alpha": krippendorff_alpha(votes),
                "no_vote": int((votes < 0).sum()),
            }
        )
    return pd.DataFrame(rows)


SOURCE = "as printed (Shin et al. 2025, arXiv:2508.00889, ten runs a model and prompt)"


def printed_summary() -> pd.DataFrame:
    """Return the printed means and deviations with the 95 % t-intervals that they imply.

    The cells of the FECT paper's Tables 2, 4 and 5 (Shin et al. 2025, https://arxiv.org/abs/2508.00889), to two
    decimals as printed; the non-factual class is the positive one.

    Examples
    --------
    >>> from deep.experiments.fect._fect_report import printed_summary
    >>> result = printed_summary()
    >>> f1 = result[result["metric"] == "f1"]
    >>> len(f1), float(f1["mean"].max()), f1.loc[f1["mean"].idxmax(), ["model", "prompt"]].tolist()
    (62, 0.86, ['o1', '3d-ttc'])
    """
    document = read_asset(__package__, "published.json")
    rows = [
        (model, prompt, metric, *cell, document["n_runs"])
        for metric in METRICS
        for model, cells in document[metric].items()
        for prompt, cell in zip(document["prompts"], cells, strict=True)
        if cell is not None
    ]
    frame = pd.DataFrame(rows, columns=[*JUDGE_KEYS, "metric", "mean", "sd", "n_runs"])
    half = _half_widths(frame["n_runs"], frame["sd"])
    return frame.assign(low=frame["mean"] - half, high=frame["mean"] + half, coverage=1.0)


# The paper's table of each metric.
TABLES = {"f1": 2, "precision": 4, "recall": 5}

FIGURES = {"f1": 5, "precision": 7, "recall": 8}

COLORS = (BLUE, AMBER, RED, GRAY)

TITLES = {"f1": "F1", "precision": "Precision", "recall": "Recall"}


def cells(summary: pd.DataFrame, metric: str, *, bold: bool = True) -> pd.DataFrame:
    """Return one table in the paper's layout: a row a model, a column a prompt, mean ± standard deviation."""
    rows = summary[summary["metric"] == metric]
    over_all = summary[(summary["metric"] == "f1_all") & (metric == "f1")].set_index(JUDGE_KEYS)["mean"].to_dict()
    wide = _wide(
        rows,
        [
            f"{_cell(mean, sd)}{_f1_with_coverage(coverage, over_all.get((model, prompt)))}"
            for model, prompt, mean, sd, coverage in rows[[*JUDGE_KEYS, "mean", "sd", "coverage"]].to_numpy().tolist()
        ],
    )
    for prompt, model in pick_best(summary, metric).items() if bold else ():
        wide.loc[model, prompt] = f"**{wide.loc[model, prompt]}**"
    return wide


def _intervals(summary: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the means and 95 % t-intervals that the figure of a metric shows."""
    rows = summary[summary["metric"] == metric]
    text = []
    for mean, low, high in rows[["mean", "low", "high"]].itertuples(index=False):
        bounds = "" if np.isnan(low) else f" ({low:.3f} to {high:.3f})"
        text.append("-" if np.isnan(mean) else f"{mean:.3f}{bounds}")
    return _wide(rows, text)


def _wide(rows: pd.DataFrame, text: Sequence[str]) -> pd.DataFrame:
    wide = rows.assign(text=text).pivot(index="model", columns="prompt", values="text")
    return wide.loc[list(dict.fromkeys(rows["model"])), list(dict.fromkeys(rows["prompt"]))].fillna("-")


def _cell(mean: float, sd: float) -> str:
    """Return a figure to two decimals as the paper prints it; a dash where there is none."""
    if np.isnan(mean):
        return "-"
    return f"{mean:.2f}" if np.isnan(sd) else f"{mean:.2f} ± {sd:.2f}"


def frames_of(summary: pd.DataFrame, printed: pd.DataFrame | None) -> dict[str, pd.DataFrame]:
    """Return the summary of a run and its tables by name, the printed ones with ``-printed`` behind."""
    frames = {"summary": summary}
    for suffix, one in (("", summary), ("-printed", printed)):
        if one is not None:
            frames |= {f"table-{TABLES[m]}-{m}{suffix}": cells(one, m, bold=False) for m in METRICS}
    return frames


def _f1_with_coverage(share: float, over_all: float | None) -> str:
    """Return F1 over all claims where some have no vote, and the share that has where it is too low to compare."""
    parts = [] if over_all is None or share == 1 else [f"all: {over_all:.2f}"]
    parts += [f"{100 * share:.0f} % of claims"] if share < LEAST_COVERAGE else []
    return f" ({', '.join(parts)})" if parts else ""


def report(
    summary: pd.DataFrame,
    runs: pd.DataFrame,
    repeats: pd.DataFrame,
    counts: dict[str, int],
    printed: pd.DataFrame | None = None,
) -> str:
    """Return the report of a run as Markdown, each table above the printed one where there is one."""
    lines = [
        f"{counts['items']} claims: {counts['factual']} factual, {counts['nonfactual']} non-factual. "
        "The non-factual class is the positive one.",
        "",
    ]
    for metric in METRICS:
        lines += [f"Table {TABLES[metric]}. {TITLES[metric]}, mean ± standard deviation over runs", ""]
        lines += [*markdown(cells(summary, metric).reset_index(names="model")), ""]
        if metric == "f1" and runs["no_vote"].any():
            lines += ["Of the claims with a vote. all: over all claims, where one without a vote counts as missed.", ""]
        if printed is not None:
            lines += [f"Table {TABLES[metric]} {SOURCE}", ""]
            lines += [*markdown(cells(printed, metric).reset_index(names="model")), ""]
    for metric in METRICS if summary["low"].notna().any() else ():
        lines += [f"Figure {FIGURES[metric]}. {TITLES[metric]}, mean and 95 % t-interval over runs", ""]
        lines += [*markdown(_intervals(summary, metric).reset_index(names="model")), ""]
    lines += ["Self-consistency over runs", "", *markdown(_consistency_cells(repeats)), ""]
    return "\n".join([*lines, _without_a_vote(runs), ""])


def _consistency_cells(repeats: pd.DataFrame) -> pd.DataFrame:
    shown = repeats[["model", "prompt"]].copy()
    flips = zip(repeats["n_flipped"], repeats["n_repeated"], repeats["flipped"], strict=True)
    shown["items that flip"] = [f"{n} of {of} ({100 * share:.1f} %)" if of else "-" for n, of, share in flips]
    shown["Krippendorff's alpha"] = [_cell(alpha, np.nan) for alpha in repeats["alpha"]]
    shown["verdicts without a vote"] = repeats["no_vote"].astype(str)
    return shown


def _without_a_vote(runs: pd.DataFrame) -> str:
    n_missing, lost_nonfactual = int(runs["no_vote"].sum()), int(runs["no_vote_nonfactual"].sum())
    if not n_missing:
        return "Every item has a vote in every run."
    count = f"{n_missing} verdicts are without a vote ({lost_nonfactual} on non-factual claims)"
    return f"{count}; they count only in F1 over all."


def verdict_of(summary: pd.DataFrame, counts: Mapping[str, int], votes: Sequence[str] = ()) -> DatasetVerdict:
    """Return the answer of a run: the best judge that votes on half of the claims or more, and who is left out."""
    f1 = summary[summary["metric"] == "f1"]
    able = f1[(f1["coverage"] >= LEAST_COVERAGE) & f1["mean"].notna()]
    of = f"{counts['nonfactual']:,} of {counts['items']:,} claims are non-factual by label"
    seldom = int((f1["coverage"] < LEAST_COVERAGE).sum())
    trust = "These are verdicts without a P, so their certainty is unknown."
    if seldom:
        trust += f" Of {len(f1)} judges {seldom} vote on less than half of the claims and are not compared."
    suspect = f"{of}; no judge votes on half of them."
    if len(able):
        best = able.sort_values(["mean", "sd"], ascending=[False, True], kind="stable").iloc[0]
        low, high = best["low"], best["high"]
        alike = "one run" if best["n_runs"] == 1 else f"{best['n_runs']} runs, all alike"
        runs = alike if np.isnan(low) else f"95 % interval over runs {low:.2f} to {high:.2f}"
        name = f"{best['model']} ({best['prompt']})"
        suspect = f"{of}; {name} finds them best, F1 {best['mean']:.2f} ({runs}), of {len(able)} judges."
    then = "fit one model on the votes of all judges, which weighs them and gives P"
    command = f"deep fit {' '.join(map(quote, votes))} --out model.json" if votes else ""
    basis = f"{counts['items']:,} claims with labels, {len(f1)} judges."
    return DatasetVerdict(basis, suspect, trust, then, command, picture=f"figure-{FIGURES['f1']}-f1")


def draw(summary: pd.DataFrame, reasoning: Sequence[str] = ()) -> dict[str, "Figure"]:
    """Draw Figures 5, 7 and 8: means and 95 % intervals, reasoning models above the others where they are named.

    Judges that vote on less than `LEAST_COVERAGE` of the claims are measured on others, and are not drawn.
    """
    able = summary[(summary["coverage"] >= LEAST_COVERAGE) & summary["mean"].notna()]
    by_metric = {metric: able[able["metric"] == metric] for metric in FIGURES}
    return {f"figure-{FIGURES[m]}-{m}": _figure(rows, m, reasoning) for m, rows in by_metric.items() if len(rows)}


def _figure(rows: pd.DataFrame, metric: str, reasoning: Sequence[str]) -> "Figure":
    prompts = list(dict.fromkeys(rows["prompt"]))
    ordered = rows.assign(above=rows["model"].isin(reasoning)).sort_values(["above", "mean"], kind="stable")
    models = list(ordered.drop_duplicates("model", keep="last")["model"])
    figure = new_figure(7.0, 1.4 + 0.3 * len(models), constrained=True)
    ax = figure.subplots()
    plain_grid(ax)
    for i, prompt in enumerate(prompts):
        result = rows[rows["prompt"] == prompt].set_index("model").reindex(models)
        half = (result["high"] - result["mean"]).fillna(0.0)
        places = np.arange(len(models)) + 0.12 * (i - (len(prompts) - 1) / 2)
        style: JsonObject = {"fmt": "o", "ms": 4, "capsize": 3, "color": COLORS[i % len(COLORS)]}
        ax.errorbar(result["mean"], places, xerr=half, label=prompt, **style)
    names = [f"{model} (reasoning)" if model in reasoning else model for model in models]
    ax.set_yticks(range(len(models)), names, fontsize=9)
    ax.axvline(rows["mean"].max(), ls="--", lw=1, color=GRAY)
    label = f"{TITLES[metric]} of the non-factual class, mean and 95 % interval over runs; the best dashed"
    ax.set(xlabel=label, xlim=(-0.02, 1.02), ylim=(-0.6, len(models) - 0.4))
    figure.legend(fontsize=9, loc="outside upper center", ncols=4, frameon=False)
    return figure


def model_votes(model: "Model", votes: VoteMatrix) -> VoteMatrix:
    """Return the decisions of a model as one voter, named as its rule is.

    Each dataset is scored by itself. An item on which every voter of the model is without a vote gets none.

    Parameters
    ----------
    model : Model
        Gives each item P, and decides by its own rule.
    votes : VoteMatrix
        Its columns are matched by name.

    Raises
    ------
    InputError
        A voter of the model is missing or of another version.
    """
    selected = model.select(votes)
    decisions: Votes = np.full((len(selected), 1), ABSTAIN, dtype=np.int8)
    for name in votes.dataset_names:
        rows = np.flatnonzero((votes.datasets == name) & (selected != ABSTAIN).any(axis=1))
        if len(rows):
            decisions[rows, 0] = model.scores_of(votes.rows(rows)).decisions
    return votes.with_columns(votes=decisions, voter_names=(model.rule.decide,), scales=None, answers=None)


def ensemble_votes(votes: VoteMatrix, names: Sequence[str]) -> VoteMatrix:
    """Return the decisions of ensembles of all voters, each fitted to each dataset's votes without their labels.

    Parameters
    ----------
    votes : VoteMatrix
        Of at least two voters. Those without a vote on a dataset are left out there.
    names : sequence of str
        Of ensemblers that learn from votes alone: they can be fitted to the votes that they are to judge.

    Returns
    -------
    VoteMatrix
        A voter an ensembler, ``<name> of <number of voters>``; no vote where its P(consistent) is 0.5.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> from deep.experiments.fect._fect_report import ensemble_votes
    >>> votes = VoteMatrix([[1, 1, 0], [0, -1, 0], [1, 0, -1]], "abc", ["x", "y", "z"], ["d"] * 3, [-1] * 3)
    >>> made = ensemble_votes(votes, ["MajorityLabelVoter"])
    >>> made.voter_names, made.votes.ravel().tolist()
    (('MajorityLabelVoter of 3',), [1, 0, -1])
    """
    label_free = [name for name in ENSEMBLER_NAMES if not ENSEMBLERS[name].uses_labels]
    ensemblers = [check_choice(name, label_free, "ensembler") for name in names]
    k = len(votes.voter_names)
    if k < 2:
        raise InputError(f"`votes` must have at least two voters for `ensembler`. Got {k}.")
    decided: Votes = np.full((len(votes.votes), len(ensemblers)), ABSTAIN, dtype=np.int8)
    for name in votes.dataset_names:
        rows = np.flatnonzero((votes.datasets == name) & (votes.votes != ABSTAIN).any(axis=1))
        for column, ensembler in enumerate(ensemblers if len(rows) else ()):
            # A judge without a vote in this dataset has no rates to learn.
            cast = votes.votes[rows][:, (votes.votes[rows] != ABSTAIN).any(axis=0)]
            p = ENSEMBLERS[ensembler]().fit(cast).predict_proba(cast)[:, 1]
            decided[rows, column] = np.where(np.abs(p - 0.5) < 1e-12, ABSTAIN, p > 0.5)
    return votes.with_columns(
        votes=decided, voter_names=tuple(f"{name} of {k}" for name in ensemblers), scales=None, answers=None
    )
