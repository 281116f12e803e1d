"""The text printed at the end of a run, and means over runs."""

from collections.abc import Iterator, Sequence

from deep.evaluate import Row, Run, percent

CHAINS = {
    "recommended": "recommended (chosen on training data)",
    "recommended_by_accuracy": "recommended by inner accuracy",
    "recommended_paper": "the paper's recipe",
    "oracle": "ORACLE: best of the table on test labels",
}

MAX_LISTED = 50
"""Training datasets that are named in print; results.json has them all."""

AVERAGED = ("balanced_accuracy", "ece", "ece_floor", "log_loss", "brier", "auroc")


def summary(run: Run) -> Iterator[str]:
    """Yield the lines that a person reads after one dataset was held out."""
    prior = "no labels" if run["prior_test"] is None else f"{100 * run['prior_test']:.1f} % consistent"
    yield (
        f"{run['test']}: {run['n_test']} items ({prior}), trained on {sum(run['train'].values())} rows of "
        + _listed(list(run["train"]))
    )
    yield f"  {'':<46}{'bal. acc.':>10}{'95 % interval':>18}{'ECE':>8}{'floor':>8}{'log loss':>10}"
    for key, label in CHAINS.items():
        if run[key] is not None:
            yield _line(label, run[key])
            yield f"      {run[key]['ensembler']} on {_voters(run[key])}, calibrator {run[key]['calibrator'] or 'none'}"
        if run[key] is not None and "prior" in run[key]:
            yield _prior(run[key]["prior"])
    for row in run["baselines"]:
        if row["kind"] in ("best_prompt", "majority"):
            yield _line("best single voter on training data" if row["kind"] == "best_prompt" else row["name"], row)
    best = _best_encoder(run["baselines"])
    if best is not None:
        yield _line(f"ORACLE: best encoder, {best['name']}", best)
    for warning in run["warnings"]:
        yield f"  warning: {warning}"
    for note in run["notes"]:
        yield f"  {note}"


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_LISTED
    return ", ".join(names[:MAX_LISTED]) + (f" and {more:,} others" if more > 0 else "")


def _prior(prior: Row) -> str:
    low, high = prior["interval"]
    reason = f" {prior['why']}" if prior["refused"] else ""
    return (
        f"      estimated share of consistent items {100 * prior['estimate']:.0f} % "
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
        return f"  {label:<46}{'no labels':>10}"
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
    return f"  {label:<46}{100 * row['balanced_accuracy']:>10.1f}{shown:>18}{rest}"


def mean_of_runs(runs: Sequence[Run]) -> Row:
    """Return the means over held-out datasets of every chain and of the baselines, null where nothing is labeled."""
    means: Row = {"n_datasets": sum(run["prior_test"] is not None for run in runs)}
    for key in CHAINS:
        rows = [run[key] for run in runs if run[key] is not None]
        means[key] = {name: _mean([row[name] for row in rows]) for name in AVERAGED} if rows else None
    for kind in ("best_prompt", "majority"):
        rows = [row for run in runs for row in run["baselines"] if row["kind"] == kind]
        means[kind] = {"balanced_accuracy": _mean([row["balanced_accuracy"] for row in rows])}
    means["encoders"] = {origin: _mean_by_encoder(runs, origin) for origin in ("test", "center", "train")}
    return means


def _mean_by_encoder(runs: Sequence[Run], origin: str) -> dict[str, float | None]:
    by_name: dict[str, list[float | None]] = {}
    for run in runs:
        for row in run["baselines"]:
            if row["kind"] == "encoder" and row["threshold_from"] == origin:
                by_name.setdefault(row["name"], []).append(row["balanced_accuracy"])
    return {name: _mean(values) for name, values in by_name.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def mean_summary(means: Row) -> Iterator[str]:
    """Yield the lines that follow when every dataset was held out in turn."""
    yield f"Mean over {means['n_datasets']} held-out datasets"
    for key, label in CHAINS.items():
        if means[key] is not None:
            yield _line(label, {**means[key], "balanced_accuracy_ci": None})
    for kind, label in (("best_prompt", "best single voter on training data"), ("majority", "majority vote")):
        yield _line(label, {**means[kind], "balanced_accuracy_ci": None})
