"""The text printed at the end of a run, and means over runs."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from deep._text import listed
from deep.evaluate import CONTEXT, Row, Run, percent

CHAINS = {
    "recommended": "recommended (chosen on training data)",
    "recommended_chain": "best single chain by inner log loss",
    "recommended_by_accuracy": "best single chain by inner accuracy",
    "recommended_paper": "the paper's recipe",
    "oracle": "ORACLE: best of the table on test labels",
}

BASELINES = {
    "best_prompt": "best single voter on training data",
    CONTEXT: "best judge with its context",
    "majority": "majority vote",
}

WIDTH = 100
"""Columns of a line."""

MAX_LISTED = 50
"""Training datasets that are named in print; results.json has them all."""

AVERAGED = ("balanced_accuracy", "ece", "ece_floor", "log_loss", "brier", "auroc")


def summary(run: Run) -> Iterator[str]:
    """Yield the lines that a person reads after one dataset was held out."""
    prior = "no labels" if run["prior_test"] is None else f"{100 * run['prior_test']:.1f} % consistent"
    trained = f"{sum(run['train'].values())} rows of {listed(list(run['train']), MAX_LISTED)}"
    yield from _wrapped(f"{run['test']}: {run['n_test']} items ({prior}), trained on {trained}", 0)
    yield f"  {'':<44}{'bal. acc.':>10}{'95 % interval':>18}{'ECE':>8}{'floor':>8}{'log loss':>10}"
    for key, label in CHAINS.items():
        if run[key] is not None:
            yield _line(label, run[key])
            calibrator = run[key]["calibrator"] or "none"
            yield from _wrapped(f"{run[key]['ensembler']} on {_voters(run[key])}, calibrator {calibrator}", 6)
        if run[key] is not None and "prior" in run[key]:
            yield from _wrapped(_prior(run[key]["prior"]), 6)
    for row in run["baselines"]:
        if row["kind"] in BASELINES:
            yield _line(BASELINES[row["kind"]], row)
    best = _best_encoder(run["baselines"])
    if best is not None:
        yield _line(f"ORACLE: best encoder, {best['name']}", best)
    for sentence in [*(f"warning: {warning}" for warning in run["warnings"]), *run["notes"]]:
        yield from _wrapped(sentence, 2)


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(text, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2))


def _prior(prior: Row) -> str:
    low, high = prior["interval"]
    reason = "" if prior["warning"] is None else f" {prior['warning']}"
    return (
        f"estimated share of consistent items {100 * prior['estimate']:.0f} % "
        f"(90 % interval {100 * low:.0f} to {100 * high:.0f}).{reason}"
    )


def _best_encoder(baselines: Sequence[Row]) -> Row | None:
    """Return the encoder that does best with a threshold learned on the other datasets."""
    known = [row for row in baselines if row["threshold_from"] == "train" and row["balanced_accuracy"] is not None]
    realistic = [row for row in known if row["kind"] in ("encoder", "published")]
    return max(realistic, key=lambda row: row["balanced_accuracy"], default=None)


def _voters(row: Row) -> str:
    shown = ", ".join(row["prompts"][:4]) + (", ..." if len(row["prompts"]) > 4 else "")
    return f"{row['n_prompts']} voters ({shown})"


def _line(label: str, row: Row) -> str:
    if row["balanced_accuracy"] is None:
        return f"  {label:<44}{'no labels':>10}"
    interval = row["balanced_accuracy_ci"]
    shown = f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}" if interval else ""
    rest = "".join(
        f"{value:>{width}}"
        for value, width in (
            (percent(row.get("ece")), 8),
            (percent(row.get("ece_floor")), 8),
            ("" if row.get("log_loss") is None else f"{row['log_loss']:.3f}", 10),
        )
    )
    return f"  {label:<44}{100 * row['balanced_accuracy']:>10.1f}{shown:>18}{rest}".rstrip()


def mean_of_runs(runs: Sequence[Run]) -> Row:
    """Return the means over held-out datasets of every chain and of the baselines, null where nothing is labeled."""
    means: Row = {"n_datasets": sum(run["prior_test"] is not None for run in runs)}
    for key in CHAINS:
        rows = [run[key] for run in runs if run[key] is not None]
        means[key] = {name: mean_of(rows, name) for name in AVERAGED} if rows else None
    for kind in BASELINES:
        rows = [row for run in runs for row in run["baselines"] if row["kind"] == kind]
        names = AVERAGED if kind == CONTEXT else ("balanced_accuracy",)
        means[kind] = {name: mean_of(rows, name) for name in names} if rows else None
    means["encoders"] = {origin: _mean_by_encoder(runs, origin) for origin in ("test", "center", "train")}
    return means


def _mean_by_encoder(runs: Sequence[Run], origin: str) -> dict[str, float | None]:
    by_name: dict[str, list[float | None]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "encoder" and row["threshold_from"] == origin:
                by_name.setdefault(row["name"], []).append(row["balanced_accuracy"])
    return {name: _mean(values) for name, values in by_name.items()}


def mean_of(rows: Sequence[Row], name: str) -> float | None:
    """Return the mean of a figure over the rows that have it."""
    return _mean([row.get(name) for row in rows])


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def mean_summary(means: Row) -> Iterator[str]:
    """Yield the lines that follow when every dataset was held out in turn."""
    yield f"Mean over {means['n_datasets']} held-out datasets"
    for key, label in {**CHAINS, **BASELINES}.items():
        if means[key] is not None:
            yield _line(label, {**means[key], "balanced_accuracy_ci": None})
