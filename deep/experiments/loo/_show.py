"""The tables that are printed after a run: every ensembler, the calibrators, the judges, encoders, and the tests."""

from collections.abc import Iterator, Sequence
from itertools import chain
from shutil import get_terminal_size
from textwrap import wrap

import numpy as np
import pandas as pd

from deep import evaluate
from deep._util.names import format_table, listed, short_names
from deep.console import SIMULATED
from deep.evaluate import CONTEXT, Row, Run, in_percent, mean_interval, shown

# The labels of recommended chains, by their key in `results.json`.
CHAINS = {
    "recommended": "recommended (chosen on training data)",
    "recommended_chain": "best single chain by inner log loss",
    "recommended_by_accuracy": "best single chain by inner accuracy",
    "recommended_paper": "the paper's recipe",
    "oracle": "ORACLE: best of the table on test labels",
}

# The labels of rivals, by their kind in `results.json`.
BASELINE_LABELS = {
    "best_prompt": "best single voter on training data",
    CONTEXT: "best judge with its context",
    "majority": "majority vote",
}

# The most columns of a line. Longer lines are hard to read. Chosen; no measurement is known.
MAX_LINE_WIDTH = 100

# The most training datasets that are named in print; results.json has them all.
MAX_DATASETS_LISTED = 50

# The metrics whose means over datasets are shown.
AVERAGED_METRICS = ("balanced_accuracy", "ece", "ece_floor", "log_loss", "brier", "auroc")


# The origin of a figure that the paper prints and this run did not compute.
PRINTED = "printed"


# The name in place of a calibrator where P is calibrated by what datasets left out tell of members and prior.
LEARNED_PRIOR = "learned-prior"


# The sign before a row, by where its figures are from.
ORIGIN_MARKS = {"measured": " ", SIMULATED: "~", PRINTED: ">"}


def source_of(run: Run, row: Row) -> str:
    """Return where a row's figures are from: measured, computed on simulated votes, or printed in the paper."""
    if row.get("kind") == "published":
        return PRINTED
    return SIMULATED if run["votes"] == SIMULATED else "measured"


def summary_lines(run: Run) -> Iterator[str]:
    """Yield the lines that a person reads after one dataset was held out."""
    prior = "no labels" if run["prior_test"] is None else f"{100 * run['prior_test']:.1f} % consistent"
    trained = f"{sum(run['train'].values())} rows of {listed(list(run['train']), MAX_DATASETS_LISTED)}"
    yield from _wrap_lines(f"{run['test']}: {run['n_test']} items ({prior}), trained on {trained}", 0)
    if run["recommended"]["balanced_accuracy"] is not None:
        yield from verdict_lines([run])
    yield from _wrap_lines("(~ of simulated votes; > printed in the paper, not computed here; no mark: measured)", 0)
    if run["prior_test"] is None:
        yield from _wrap_lines("(training: no label here, so measured on held-out parts of the training data)", 0)
    yield _table_line("", "bal. acc.", "95 % interval", "ECE", "floor", "log loss", "from")
    for key, label in CHAINS.items():
        if run[key] is not None:
            yield _metrics_line(label, run[key], source_of(run, run[key]))
            calibrator = run[key]["calibrator"] or "none"
            yield from _wrap_lines(f"{run[key]['ensembler']} on {_voters_text(run[key])}, calibrator {calibrator}", 6)
        if run[key] is not None and "prior" in run[key]:
            yield from _wrap_lines(_prior_text(run[key]["prior"]), 6)
    for row in run["baselines"]:
        if row["kind"] in BASELINE_LABELS and row["balanced_accuracy"] is not None:
            yield _metrics_line(BASELINE_LABELS[row["kind"]], row, source_of(run, row))
    # Of the encoders with a threshold learned on the other datasets.
    results = [
        row for row in run["baselines"] if row["threshold_from"] == "train" and row["balanced_accuracy"] is not None
    ]
    encoders = [row for row in results if row["kind"] in ("encoder", "published")]
    if encoders:
        best = max(encoders, key=lambda row: row["balanced_accuracy"])
        yield _metrics_line(f"ORACLE: best encoder, {best['name']}", best, source_of(run, best))
    for sentence in [*(f"warning: {warning}" for warning in run["warnings"]), *run["notes"]]:
        yield from _wrap_lines(sentence, 2)


def verdict_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the answer of labeled runs as the report has it, and beside it the paper's."""
    method = evaluate.MeasuredMethod("recommended", "ours", {run["test"]: run["recommended"] for run in runs})
    best, paired = evaluate.chosen_judge(runs)
    for badge in evaluate.label_badges(method, best, None, paired):
        yield from _wrap_lines(f"{badge.level.upper()} {badge.name}. {badge.says}", 0)
    rows = pd.DataFrame([{"test": run["test"], **row} for run in runs for row in run["rows"]])
    of = rows.fillna({"calibrator": "none"}).pivot_table(
        index=["recipe", "test", "ensembler", "n_prompts"], columns="calibrator", values="ece", sort=False
    )
    if {"none", "platt"} <= set(of):
        for recipe, some in of[["none", "platt"]].dropna().groupby("recipe", sort=False):
            lower, means = int((some["platt"] < some["none"]).sum()), " to ".join(map(in_percent, some.mean()))
            sentence = f"Platt scaling lowers ECE in {lower} of {len(some)} chains of {recipe}'s recipe, mean {means}"
            yield from _wrap_lines(f"{sentence} (the paper's Table 4: 42 of 42, 10.6 to 5.0).", 0)
    printed = [row for run in runs for row in run["baselines"] if row["kind"] == "published"]
    if printed and len(runs) == 1:
        best_printed = max(printed, key=lambda row: row["balanced_accuracy"])
        figure = in_percent(best_printed["balanced_accuracy"])
        yield from _wrap_lines(f"The paper prints a balanced accuracy of up to {figure} ({best_printed['name']}).", 0)


# The packages that the paper's methods were asked to be made with, and what each does in the main job.
LIBRARY_PURPOSES = {
    "numpy": "every sum",
    "matplotlib": "figures",
    "scikit-learn": "trees, forest, SVC, isotonic regression, folds, the loop of RFE",
    "xgboost": "XGB",
    "lightgbm": "LGBM",
    "catboost": "CatBoost",
    "mrmr-selection": "mRMR for the choice of voters",
    "snorkel": "snorkel-labelmodel",
    "netcal": "a second ECE of chains; calibrators under the paper's recipe",
    "openai": "nothing: no LLM is asked here (`deep ask` asks with it)",
}


def library_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield which library did what in these runs, with the number of chains that it took part in."""
    rows = [row for run in runs for row in run["rows"]]
    took_part = {
        **{name: [row["ensembler"] == LIBRARY_PURPOSES[name] for row in rows] for name in ENSEMBLER_LIBRARIES},
        "mrmr-selection": [row["selector"] == "mrmr-selection" for row in rows],
        "netcal": ["ece_netcal" in row for row in rows],
    }
    yield "Which library did what"
    for name, work in LIBRARY_PURPOSES.items():
        n = sum(took_part.get(name, ()))
        part = work if name not in took_part else f"{work}, {n:,} chains" if n else "no part here"
        yield from _wrap_lines(f"{name}: {part}", 2)
    yield ""


# The libraries that are an ensembler each.
ENSEMBLER_LIBRARIES = ("xgboost", "lightgbm", "catboost", "snorkel")


def _wrap_lines(text: str, indent: int) -> list[str]:
    width, lead = min(MAX_LINE_WIDTH, get_terminal_size().columns), " " * indent
    # The name of a dataset stays one word.
    return wrap(text, width, initial_indent=lead, subsequent_indent=lead + "  ", break_on_hyphens=False)


def _prior_text(prior: Row) -> str:
    low, high = prior["interval"]
    reason = "" if prior["warning"] is None else f" {prior['warning']}"
    if low == high:
        return reason.strip()
    return (
        f"estimated share of consistent items {100 * prior['estimate']:.0f} % "
        f"(90 % interval {100 * low:.0f} to {100 * high:.0f}).{reason}"
    )


def _voters_text(row: Row) -> str:
    names = ", ".join([*short_names(row["prompts"]).values()][:4]) + (", ..." if len(row["prompts"]) > 4 else "")
    scorers = f" and {len(row['scorers'])} encoders ({', '.join(row['scorers'])})" if row.get("scorers") else ""
    return f"{row['n_prompts']} voters ({names}){scorers}"


# The widths of the columns behind a label.
COLUMN_WIDTHS = (9, 14, 6, 7, 9, 10)


def _table_line(label: str, *cells: str) -> str:
    """Return a line of a table that fits the terminal, from 80 columns on; a label too long has a line of its own."""
    width = min(44, max(22, get_terminal_size().columns - sum(COLUMN_WIDTHS) - 2))
    mark = ORIGIN_MARKS.get(cells[-1], " ")
    above = f"{mark} {label}\n" if len(label) > width else ""
    rest = "".join(f"{cell:>{size}}" for cell, size in zip(cells, COLUMN_WIDTHS, strict=False))
    return f"{above}{mark} {'' if above else label:<{width}}{rest}".rstrip()


def _metrics_line(label: str, row: Row, source: str = "") -> str:
    if row["balanced_accuracy"] is None:
        loss = shown(row.get("inner_log_loss"), ".3f")
        return _table_line(label, in_percent(row.get("inner_balanced_accuracy")), "", "", "", loss, "training")
    interval = row["balanced_accuracy_ci"]
    errors = in_percent(row.get("ece")), in_percent(row.get("ece_floor")), shown(row.get("log_loss"), ".3f")
    ends = in_percent(interval) if interval and interval[0] < interval[1] else ""
    return _table_line(label, in_percent(row["balanced_accuracy"]), ends, *errors, source)


def mean_of_runs(runs: Sequence[Run]) -> Row:
    """Return the means over held-out datasets of every chain and of the baselines, null where nothing is labeled."""
    means: Row = {"n_datasets": sum(run["prior_test"] is not None for run in runs)}
    for key in CHAINS:
        rows = [run[key] for run in runs if run[key] is not None]
        means[key] = _mean_figures(rows, AVERAGED_METRICS)
    for kind in BASELINE_LABELS:
        rows = [row for run in runs for row in run["baselines"] if row["kind"] == kind]
        names = AVERAGED_METRICS if kind == CONTEXT else ("balanced_accuracy",)
        means[kind] = _mean_figures(rows, names)
    encoders = encoder_rows(runs)
    means["encoders"] = {
        origin: {name: mean_of(by[origin], "balanced_accuracy") for name, by in encoders.items() if origin in by}
        for origin in ORIGINS
    }
    return means


# Where an encoder's threshold comes from: the test labels, the centre of its range, or the training datasets.
ORIGINS = ("test", "center", "train")


def encoder_rows(runs: Sequence[Run], *, printed: bool = False) -> dict[str, dict[str, list[Row]]]:
    """Return the rows of each encoder by the origin of its threshold; with those that the paper prints, marked."""
    result: dict[str, dict[str, list[Row]]] = {}
    for row in (row for run in runs for row in run["baselines"]):
        is_printed = printed and row["kind"] == "published" and row["threshold_from"]
        if row["kind"] == "encoder" or is_printed:
            by_origin = result.setdefault(row["name"] + (PRINTED_MARK if is_printed else ""), {})
            by_origin.setdefault(row["threshold_from"], []).append(row)
    return result


def _mean_figures(rows: Sequence[Row], names: Sequence[str]) -> Row | None:
    """Return the means of figures over datasets, with the 95 % interval of balanced accuracy by Student's t."""
    numbers = [row["balanced_accuracy"] for row in rows if row["balanced_accuracy"] is not None]
    low, high = mean_interval(numbers, 0.95)[1:] if len(numbers) > 1 else (0.0, 0.0)
    interval = [max(low, 0.0), min(high, 1.0)] if low < high else None
    return {name: mean_of(rows, name) for name in names} | {"balanced_accuracy_ci": interval} if rows else None


def mean_of(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a figure over the rows that have it."""
    numbers = [value for row in rows if (value := row.get(name)) is not None and value == value]
    return float(np.mean(numbers)) if numbers else None


def mean_summary(means: Row, source: str) -> Iterator[str]:
    """Yield the lines that follow when every dataset was held out in turn."""
    yield f"Mean over {means['n_datasets']} held-out datasets, with intervals by Student's t over them"
    for key, label in {**CHAINS, **BASELINE_LABELS}.items():
        if means[key] is not None:
            yield _metrics_line(label, means[key], source)


# The numbers of voters that stand side by side; more are a table of their own. Chosen; no measurement is known.
SIZES_A_TABLE = 3

# The most columns of the terminal that a row's name takes. Chosen; no measurement is known.
NAME_WIDTH = 34

# The most rows of a table in print; the files have all.
MAX_ROWS = 60

# The names of rivals in a table, by their kind.
RIVAL_LABELS = {"best_prompt": "best judge", CONTEXT: "best judge, context", "majority": "majority"}

TableCells = Sequence[str]

BLANK_SCORES = [""] * 3


def table_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the lines of every table; of several held-out datasets the figures are means over them."""
    labeled = [run for run in runs if run["prior_test"] is not None]
    if not labeled:
        return
    for recipe in dict.fromkeys(row["recipe"] for row in labeled[0]["rows"] if "method" not in row):
        yield from _ensembler_table(labeled, recipe)
        yield from _calibrator_table(labeled, recipe)
    yield from _judge_table(labeled)
    yield from _encoder_table(labeled)
    yield from part_lines(labeled)
    yield from _tests_of_one(labeled[0]) if len(runs) == 1 else _tests_of_several(labeled)


def _suffix(runs: Sequence[Run]) -> str:
    """Return the end of a caption: where the figures are from, and of how many datasets they are means."""
    votes = f"; {SIMULATED} votes" if source_of(runs[0], {}) == SIMULATED else ""
    return votes if len(runs) == 1 else f"{votes}; means of {len(runs)} datasets"


def aligned(title: str, header: TableCells, rows: Sequence[TableCells]) -> Iterator[str]:
    """Yield a table: the first column to the left, the others to the right.

    Examples
    --------
    >>> for line in aligned("Judges", ["", "bal. acc."], [["a", "71.0"], ["majority", "74.5"]]):
    ...     print(line)
    Judges
                bal. acc.
      a              71.0
      majority       74.5
    <BLANKLINE>
    """
    widths = [max(map(len, column)) for column in zip(header, *rows[:MAX_ROWS], strict=True)]
    room = get_terminal_size().columns - sum(2 + width for width in widths[1:]) - 2
    most = max(12, min(NAME_WIDTH, room))
    first = [[name if len(name) <= most else f"{name[: most - 3]}...", *cells] for name, *cells in rows[:MAX_ROWS]]
    for line in title.split("\n"):
        yield from wrap(line, get_terminal_size().columns)
    yield from (f"  {line}".rstrip() for line in format_table([header, *first], right=len(header) - 1).split("\n"))
    if len(rows) > MAX_ROWS:
        yield f"  and {len(rows) - MAX_ROWS:,} others, all of them in tables/"
    yield ""


# An ensembler and a number of voters.
ChainName = tuple[str, int]


def _rows_by_chain(runs: Sequence[Run], recipe: str) -> dict[ChainName, list[Row]]:
    """Return, for each chain, its row of each run under the calibrator that the training data prefer there."""
    result: dict[ChainName, list[Row]] = {}
    for run in runs:
        best: dict[ChainName, Row] = {}
        names = run["settings"]["calibrator"] or (["platt"] if recipe == "paper" else None)
        for row in run["rows"]:
            key, usable = (row["ensembler"], row["n_prompts"]), names is None or (row["calibrator"] or "none") in names
            # By loss on training data: a table of the best on test labels would flatter every ensembler.
            if row["recipe"] == recipe and usable and (key not in best or _inner_loss(row) < _inner_loss(best[key])):
                best[key] = row
        for key, row in best.items():
            result.setdefault(key, []).append(row)
    return result


def _inner_loss(row: Row) -> float:
    # Sums in another order must not change which chain is printed.
    return float(round(row["inner_log_loss"], 12))


def _score_cells(rows: Sequence[Row]) -> list[str]:
    """Return balanced accuracy, ECE beside its floor, and log loss."""
    accuracy, error, floor, loss = (
        mean_of(rows, name) for name in ("balanced_accuracy", "ece", "ece_floor", "log_loss")
    )
    return [in_percent(accuracy), f"{in_percent(error)}/{in_percent(floor)}", shown(loss, ".3f")]


def _best_chain(runs: Sequence[Run], recipe: str) -> ChainName:
    """Return the chain that the recipe chooses: of least inner log loss, or by the paper of most inner accuracy."""
    chains = _rows_by_chain(runs, recipe)

    def worse(key: ChainName) -> tuple[float, float, int]:
        loss, accuracy = (mean_of(chains[key], f"inner_{name}") or 0.0 for name in ("log_loss", "accuracy"))
        return round(-accuracy if recipe == "paper" else loss, 12), round(loss, 12), key[1]

    return min(chains, key=worse)


def _ensembler_table(runs: Sequence[Run], recipe: str) -> Iterator[str]:
    """Yield a table with a row for each ensembler, columns by number of voters, and a star at the chosen chain."""
    chains = _rows_by_chain(runs, recipe)
    best = _best_chain(runs, recipe)
    sizes, names = list(dict.fromkeys(size for _, size in chains)), list(dict.fromkeys(name for name, _ in chains))
    for start in range(0, len(sizes), SIZES_A_TABLE):
        some = sizes[start : start + SIZES_A_TABLE]
        header = ["", *(word for size in some for word in (str(size), "ECE/floor", "loss"))]
        rows = [
            [name, *(cell for size in some for cell in _star_if_best(chains.get((name, size)), (name, size) == best))]
            for name in names
        ]
        what = f"Ensemblers by number of voters: balanced accuracy, ECE/floor, log loss{_suffix(runs)}"
        by = (
            "Platt scaling, or the calibrator asked for"
            if recipe == "paper"
            else "the calibrator best on training data"
        )
        title = f"{what}\n({recipe}'s recipe; each with {by}; * the best chain on training data)"
        yield from aligned(title, header, rows)


def _star_if_best(rows: Sequence[Row] | None, is_best: bool) -> Sequence[str]:
    accuracy, *errors = BLANK_SCORES if rows is None else _score_cells(rows)
    return [accuracy + "*" * is_best, *errors]


def _calibrator_table(runs: Sequence[Run], recipe: str) -> Iterator[str]:
    """Yield a table with a row for each calibrator, at the chosen chain."""
    ensembler, size = _best_chain(runs, recipe)
    by_name: dict[str, list[Row]] = {}
    for run in runs:
        for row in run["rows"]:
            if (row["recipe"], row["ensembler"], row["n_prompts"]) == (recipe, ensembler, size):
                by_name.setdefault(row["calibrator"] or "none", []).append(row)
    header = ["", "bal. acc.", "ECE/floor", "log loss", "inner log loss"]
    rows = [[name, *_score_cells(rows), f"{mean_of(rows, 'inner_log_loss'):.3f}"] for name, rows in by_name.items()]
    yield from aligned(f"Calibrators of the best chain, {ensembler} on {size} voters{_suffix(runs)}", header, rows)


def _judge_table(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table with a row for each voter alone, the best first."""
    by_name: dict[tuple[str, str], list[Row]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "prompt" or row["kind"] in RIVAL_LABELS:
                key = (row["kind"], row["name"] if row["kind"] == "prompt" or len(runs) == 1 else "")
                by_name.setdefault(key, []).append(row)
    rows, short = [], short_names(name for kind, name in by_name if kind == "prompt")
    for (kind, name), result in by_name.items():
        label = short[name] if kind == "prompt" else RIVAL_LABELS[kind]
        more = f": {short.get(name, name)}" if kind in ("best_prompt", CONTEXT) and name else ""
        rates = [in_percent(mean_of(result, metric)) for metric in ("balanced_accuracy", "precision", "recall")]
        errors = _score_cells(result)[1:] if kind == CONTEXT else BLANK_SCORES[1:]
        rows.append([label + more, *rates, *errors])
    header = ["", "bal. acc.", "precision", "recall", "ECE/floor", "log loss"]
    yield from aligned(f"Judges alone, the one chosen on training data, and the majority{_suffix(runs)}", header, rows)


PRINTED_MARK = f" ({PRINTED})"


def _encoder_table(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a table with a row for each encoder, by the origin of its threshold."""
    result = encoder_rows(runs, printed=True)
    if result:
        rows = [
            [name, *(in_percent(mean_of(by.get(origin, []), "balanced_accuracy")) for origin in ORIGINS)]
            for name, by in result.items()
        ]
        header = ["", "test (oracle)", "centre", "training"]
        printed = [name.endswith(PRINTED_MARK) for name in result]
        title = f"Encoders: balanced accuracy by origin of the threshold{_suffix(runs) if not all(printed) else ''}"
        if any(printed):
            title += f"\n({PRINTED}: the paper's Table 3, of one column, not computed here"
            if all(printed):
                title += (
                    ". The others need scores:\n"
                    "`deep ask EXAMPLES --encoder NAME` writes them, `deep loo --scores TABLE` reads them"
                )
            title += ")"
        yield from aligned(title, header, rows)


def part_lines(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the accuracy that prompts, encoders and both reach by deep's stack, and their paired differences."""
    with_parts = [run for run in runs if run.get("parts")]
    rows: dict[str, list[Row]] = {}
    for row in (row for run in with_parts for row in run["parts"]):
        rows.setdefault(row["part"], []).append(row)
    levels = [
        [
            name,
            in_percent(mean_of(of, "balanced_accuracy")),
            in_percent(mean_of(of, "ece")),
            f"{mean_of(of, 'log_loss'):.3f}",
        ]
        for name, of in rows.items()
        if " " not in name
    ]
    if not with_parts:
        return
    title = f"deep's stack on prompts, on encoders, and on both{_suffix(with_parts)}"
    yield from aligned(title, ["", "bal. acc.", "ECE", "log loss"], levels)
    paired = {
        name: [
            [
                name if len(with_parts) == 1 else run["test"],
                in_percent(row["balanced_accuracy"], "+"),
                in_percent([row["low"], row["high"]], "+"),
                f"{row['log_loss']:+.3f}",
                shown([row["log_loss_low"], row["log_loss_high"]], "+.3f"),
            ]
            for run, row in zip(with_parts, of, strict=True)
        ]
        for name, of in rows.items()
        if " " in name
    }
    header = ["", "bal. acc.", "95 % interval", "log loss", "95 % interval"]
    title = "Paired differences on the same items"
    if len(with_parts) == 1:
        yield from aligned(title, header, [*chain.from_iterable(paired.values())])
    else:  # a table each: beside the name of a comparison that of a dataset has no room
        for name, of_datasets in paired.items():
            yield from aligned(f"{title}: {name}", header, of_datasets)


def _tests_of_one(run: Run) -> Iterator[str]:
    """Yield the tests of one run against each rival."""
    rows = [
        [
            row["b"],
            in_percent(row["difference"], "+"),
            in_percent(row["ci"], "+"),
            f"{row['p']:.2g}",
            f"{row['p_bonferroni']:.2g}",
            "no" if not row["significant"] else "better" if row["difference"] > 0 else "worse",
        ]
        for row in run["comparisons"]
    ]
    if rows:
        n = len({(row["difference"], *row["ci"]) for row in run["comparisons"]})
        title = f"Recommended minus each rival: points of balanced accuracy, Bonferroni over {n} rivals{_suffix([run])}"
        yield from aligned(title, ["", "difference", "95 % interval", "p", "corrected", "p < 0.01"], rows)


def _tests_of_several(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the tests by dataset against the main rivals, and how often each rival is beaten or wins."""
    by_rival: dict[str, list[Row]] = {}
    by_dataset: dict[str, dict[str, Row]] = {}
    for run in runs:
        for row in run["comparisons"]:
            kind = row["b"].split(":")[0]
            by_rival.setdefault(RIVAL_LABELS.get(kind, row["b"]), []).append(row)
            by_dataset.setdefault(run["test"], {})[kind] = row
    n = len(runs)
    header = ["", *(word for name in RIVAL_LABELS.values() for word in (name, "p"))]
    tests = []
    for name, of_dataset in by_dataset.items():
        rivals = [of_dataset.get(kind) for kind in RIVAL_LABELS]
        pairs = [
            ("", "") if row is None else (in_percent(row["difference"], "+"), f"{row['p_bonferroni_datasets']:.2g}")
            for row in rivals
        ]
        tests.append([name, *chain.from_iterable(pairs)])
    title = f"Recommended minus each rival: points of balanced accuracy, p after Bonferroni by dataset{_suffix(runs)}"
    yield from aligned(title, header, tests)
    counts = [
        [
            name,
            in_percent(mean_of(rows, "difference") or 0.0, "+"),
            *_counts_of_flag(rows, "significant_datasets"),
            *_counts_of_flag(rows, "significant"),
        ]
        for name, rows in by_rival.items()
    ]
    header = ["", "mean", f"better, {n} sets", "worse", f"better, {len(by_rival)} rivals", "worse"]
    yield from aligned("On how many datasets at p < 0.01, corrected over datasets and over rivals", header, counts)


def _counts_of_flag(rows: Sequence[Row], flag: str) -> list[str]:
    better = [row["difference"] > 0 for row in rows if row[flag]]
    return [str(sum(better)), str(len(better) - sum(better))]
