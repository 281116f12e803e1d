"""The tables that are printed after a run: every ensembler, the calibrators, the judges, encoders, and the tests."""

from collections.abc import Iterator, Sequence

from deep.evaluate import CONTEXT, Row, Run, percent
from deep.experiments.loo._summary import mean_of

SIZES_A_TABLE = 3
"""Numbers of voters side by side; more are a table of their own."""

NAME_WIDTH = 34

MAX_ROWS = 60

RIVALS = {"best_prompt": "best judge", CONTEXT: "best judge, context", "majority": "majority"}

Cells = Sequence[str]

BLANK = [""] * 3


def tables(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the lines of every table; of several held-out datasets the figures are means over them."""
    labeled = [run for run in runs if run["prior_test"] is not None]
    if not labeled:
        return
    for recipe in dict.fromkeys(row["recipe"] for row in labeled[0]["rows"] if "method" not in row):
        yield from _ensemblers(labeled, recipe)
        yield from _calibrators(labeled, recipe)
    yield from _judges(labeled)
    yield from _encoders(labeled)
    yield from _tests_of_one(labeled[0]) if len(runs) == 1 else _tests_of_several(labeled)


def _of(runs: Sequence[Run]) -> str:
    return "" if len(runs) == 1 else f"; means of {len(runs)} datasets"


def aligned(title: str, header: Cells, rows: Sequence[Cells]) -> Iterator[str]:
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
    shown = [[_clipped(row[0]), *row[1:]] for row in rows[:MAX_ROWS]]
    widths = [max(map(len, column)) for column in zip(header, *shown, strict=True)]
    yield title
    for row in [header, *shown]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        yield ("  " + "  ".join(cells)).rstrip()
    if len(rows) > MAX_ROWS:
        yield f"  and {len(rows) - MAX_ROWS:,} others, all of them in tables/"
    yield ""


def _clipped(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 3] + "..."


Chain = tuple[str, int]
"""An ensembler and a number of voters."""


def _chains(runs: Sequence[Run], recipe: str) -> dict[Chain, list[Row]]:
    """Return, for each chain, its row of each run under the calibrator that the training data prefer there."""
    found: dict[Chain, list[Row]] = {}
    for run in runs:
        best: dict[Chain, Row] = {}
        for row in run["rows"]:
            key = row["ensembler"], row["n_prompts"]
            if row["recipe"] == recipe and (key not in best or row["inner_log_loss"] < best[key]["inner_log_loss"]):
                best[key] = row
        for key, row in best.items():
            found.setdefault(key, []).append(row)
    return found


def _scores(rows: Sequence[Row]) -> list[str]:
    """Return balanced accuracy, ECE beside its floor, and log loss."""
    accuracy, error, floor, loss = (
        mean_of(rows, name) for name in ("balanced_accuracy", "ece", "ece_floor", "log_loss")
    )
    return [percent(accuracy), f"{percent(error)}/{percent(floor)}", "" if loss is None else f"{loss:.3f}"]


def _best_chain(runs: Sequence[Run], recipe: str) -> Chain:
    """Return the chain of least inner log loss, its best calibrator each time."""
    chains = _chains(runs, recipe)
    return min(chains, key=lambda key: mean_of(chains[key], "inner_log_loss") or 0.0)


def _ensemblers(runs: Sequence[Run], recipe: str) -> Iterator[str]:
    chains = _chains(runs, recipe)
    best = _best_chain(runs, recipe)
    sizes, names = list(dict.fromkeys(size for _, size in chains)), list(dict.fromkeys(name for name, _ in chains))
    for start in range(0, len(sizes), SIZES_A_TABLE):
        some = sizes[start : start + SIZES_A_TABLE]
        header = ["", *(word for size in some for word in (str(size), "ECE/floor", "loss"))]
        rows = [
            [f"{name} *" if name == best[0] and best[1] in some else name]
            + [cell for size in some for cell in (_scores(chains[name, size]) if (name, size) in chains else BLANK)]
            for name in names
        ]
        yield f"Ensemblers by number of voters: balanced accuracy, ECE/floor, log loss{_of(runs)}"
        title = f"({recipe}'s recipe; each with the calibrator that is best on training data; * the best chain)"
        yield from aligned(title, header, rows)


def _calibrators(runs: Sequence[Run], recipe: str) -> Iterator[str]:
    ensembler, size = _best_chain(runs, recipe)
    by_name: dict[str, list[Row]] = {}
    for run in runs:
        for row in run["rows"]:
            if (row["recipe"], row["ensembler"], row["n_prompts"]) == (recipe, ensembler, size):
                by_name.setdefault(row["calibrator"] or "none", []).append(row)
    header = ["", "bal. acc.", "ECE/floor", "log loss", "inner log loss"]
    rows = [[name, *_scores(rows), f"{mean_of(rows, 'inner_log_loss'):.3f}"] for name, rows in by_name.items()]
    yield from aligned(f"Calibrators of the best chain, {ensembler} on {size} voters{_of(runs)}", header, rows)


def _judges(runs: Sequence[Run]) -> Iterator[str]:
    by_name: dict[tuple[str, str], list[Row]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "prompt" or row["kind"] in RIVALS:
                key = (row["kind"], row["name"] if row["kind"] == "prompt" or len(runs) == 1 else "")
                by_name.setdefault(key, []).append(row)
    rows = []
    for (kind, name), found in by_name.items():
        label = name if kind == "prompt" else RIVALS[kind]
        more = f": {name}" if kind in ("best_prompt", CONTEXT) and name else ""
        rates = [percent(mean_of(found, metric)) for metric in ("balanced_accuracy", "precision", "recall")]
        errors = _scores(found)[1:] if kind == CONTEXT else BLANK[1:]
        rows.append([label + more, *rates, *errors])
    header = ["", "bal. acc.", "precision", "recall", "ECE/floor", "log loss"]
    yield from aligned(f"Judges alone, the one chosen on training data, and the majority{_of(runs)}", header, rows)


def _encoders(runs: Sequence[Run]) -> Iterator[str]:
    origins = ("test", "center", "train")
    found: dict[str, dict[str, list[Row]]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "encoder" or (row["kind"] == "published" and row["threshold_from"]):
                by_origin = found.setdefault(row["name"], {origin: [] for origin in origins})
                by_origin[row["threshold_from"]].append(row)
    if found:
        rows = [[n, *(percent(mean_of(by[o], "balanced_accuracy")) for o in origins)] for n, by in found.items()]
        header = ["", "test (oracle)", "centre", "training"]
        yield from aligned(f"Encoders: balanced accuracy by where the threshold is from{_of(runs)}", header, rows)


def _tests_of_one(run: Run) -> Iterator[str]:
    rows = [
        [
            row["b"],
            _points(row["difference"]),
            _interval(row["ci"]),
            f"{row['p']:.2g}",
            f"{row['p_bonferroni']:.2g}",
            "yes" if row["significant"] else "no",
        ]
        for row in run["comparisons"]
    ]
    if rows:
        title = f"Recommended less each rival: points of balanced accuracy, Bonferroni over {len(rows)} rivals"
        yield from aligned(title, ["", "difference", "95 % interval", "p", "corrected", "p < 0.01"], rows)


def _tests_of_several(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the tests by dataset against the main rivals, and how often each rival is beaten or wins."""
    by_rival: dict[str, list[Row]] = {}
    by_dataset: dict[str, dict[str, Row]] = {}
    for run in runs:
        for row in run["comparisons"]:
            kind = row["b"].split(":")[0]
            by_rival.setdefault(RIVALS.get(kind, row["b"]), []).append(row)
            by_dataset.setdefault(run["test"], {})[kind] = row
    n = len(runs)
    header = ["", *(word for name in RIVALS.values() for word in (name, "p"))]
    shown = [[name, *_tests(rows)] for name, rows in by_dataset.items()]
    title = f"Recommended less each rival: points of balanced accuracy, p after Bonferroni over {n} datasets"
    yield from aligned(title, header, shown)
    counts = [
        [
            name,
            _points(mean_of(rows, "difference") or 0.0),
            *_counts(rows, "significant_datasets"),
            *_counts(rows, "significant"),
        ]
        for name, rows in by_rival.items()
    ]
    header = ["", "mean", f"better, {n} sets", "worse", f"better, {len(by_rival)} rivals", "worse"]
    yield from aligned("On how many datasets at p < 0.01, corrected over datasets and over rivals", header, counts)


def _tests(rows: dict[str, Row]) -> list[str]:
    cells = []
    for kind in RIVALS:
        row = rows.get(kind)
        cells += ["", ""] if row is None else [_points(row["difference"]), f"{row['p_bonferroni_datasets']:.2g}"]
    return cells


def _counts(rows: Sequence[Row], flag: str) -> list[str]:
    better = [row["difference"] > 0 for row in rows if row[flag]]
    return [str(sum(better)), str(len(better) - sum(better))]


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"


def _interval(bounds: Sequence[float]) -> str:
    return f"{100 * bounds[0]:+.1f} to {100 * bounds[1]:+.1f}"
