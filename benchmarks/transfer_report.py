"""The figures of a transfer run, their means and their tables."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from deep._util.checks import Floats
from deep.evaluate import Row, in_percent, markdown, mean_interval
from deep.experiments.few_datasets import labeled_lines, summarize_labeled

LEVEL = 0.95
"""Of the intervals over datasets."""

COMPARED = ("deep", "paper", "platt", "best_judge_context", "best_judge", "best_judge_learned_threshold")

WITH_P = ("deep", "paper", "platt", "best_judge_context")
"""The methods that give a probability."""

METRICS = {
    "balanced_accuracy": ("balanced accuracy, %", 100, 1),
    "ece": ("ECE, %", 100, 1),
    "log_loss": ("log loss", 1, 3),
}
"""The metrics compared: title, factor and digits shown."""

TITLES = {
    "deep": "deep",
    "paper": "paper's recipe",
    "platt": "Platt, pooled data",
    "best_judge": "best judge",
    "best_judge_context": "best judge, its context",
    "best_judge_learned_threshold": "best judge, learned threshold",
    "pooled_logistic_regression": "logistic regression, pooled data",
    "label_model_platt": "LabelModel on source votes, Platt",
    "bayes": "the truth (Bayes)",
}


def summarize(targets: Sequence[Row]) -> Row:
    """Return means over held-out datasets, and how often deep, the prior and the intervals were right.

    Parameters
    ----------
    targets : sequence of dict
        Of `transfer_to`.

    Returns
    -------
    dict
    """
    cells = [target["cells"]["covered"] for target in targets if target["cells"]["covered"] is not None]
    losses = [{m: target["methods"][m]["log_loss"] for m in ("deep", "paper", "platt")} for target in targets]
    return {
        "n_datasets": len(targets),
        "methods": {
            name: {
                metric: _mean(target["methods"][name].get(metric) for target in targets)
                for metric in ("balanced_accuracy", "ece", "ece_floor", "log_loss")
            }
            for name in COMPARED
            if all(name in target["methods"] for target in targets)
        },
        "deep": {metric: _with_interval(_metric(targets, "deep", metric)) for metric in METRICS},
        "deep_minus": _differences(targets),
        "log_loss_below": {m: sum(loss["deep"] < loss[m] for loss in losses) for m in ("paper", "platt")},
        "prior_covered": sum(target["prior"]["covered"] for target in targets),
        "prior_error": float(
            np.sqrt(np.mean([(target["prior"]["estimate"] - target["consistent"]) ** 2 for target in targets]))
        ),
        "prior_width": _mean(target["prior"]["interval"][1] - target["prior"]["interval"][0] for target in targets),
        "prior_warned": sum(target["prior"]["warning"] is not None for target in targets),
        "cells_covered": _mean(cells),
        "cells_covered_interval": _interval_of_mean(cells),
        "few_labels": {n: _mean(target["few_labels"][n] for target in targets) for n in targets[0]["few_labels"]},
        "labeled": summarize_labeled(targets),
    }


def _differences(targets: Sequence[Row]) -> dict[str, dict[str, list[float] | None]]:
    """Return by how much deep's metrics are above every other method's: means over datasets with intervals."""
    return {
        name: {
            metric: _with_interval(_metric(targets, "deep", metric) - _metric(targets, name, metric))
            for metric in METRICS
        }
        for name in COMPARED[1:]
    }


def _metric(targets: Sequence[Row], method: str, metric: str) -> Floats:
    """Return a metric by dataset; NaN where the method has none."""
    return np.array([target["methods"].get(method, {}).get(metric, np.nan) for target in targets], dtype=np.float64)


def _with_interval(values: Floats) -> list[float] | None:
    """Return mean, low and high; None where a value is missing or there are fewer than two."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return list(mean_interval(values, LEVEL))


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _interval_of_mean(values: Sequence[float]) -> list[float] | None:
    """Return the 95 % interval of the mean of shares over datasets, within [0, 1]; None of fewer than two."""
    if len(values) < 2:
        return None
    _, low, high = mean_interval(values, LEVEL)
    return [max(low, 0.0), min(high, 1.0)]


def report_text(targets: Sequence[Row], summary: Row) -> str:
    """Return the run as Markdown tables."""
    methods = [name for name in COMPARED if name in summary["methods"]]
    parts = [
        _table("Balanced accuracy, in percent", targets, summary, methods, "balanced_accuracy"),
        _table("Expected calibration error, in percent", targets, summary, [m for m in methods if m in WITH_P], "ece"),
        _table("Log loss", targets, summary, [m for m in methods if m in WITH_P], "log_loss"),
        _compared(summary),
        _uncertainty(targets, summary),
        labeled_lines(targets, summary["labeled"]),
        _weights(targets),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _titled(title: str, rows: Sequence[Mapping[str, str]]) -> list[str]:
    return [f"### {title}", "", *markdown(pd.DataFrame(rows))]


def _table(title: str, targets: Sequence[Row], summary: Row, methods: Sequence[str], metric: str) -> list[str]:
    _, factor, digits = METRICS[metric]
    rows = []
    for target in [*targets, {"dataset": "**mean**", "methods": summary["methods"]}]:
        result = target["methods"]
        cells = {TITLES[name]: f"{factor * result[name][metric]:.{digits}f}" for name in methods}
        floor = {"floor": in_percent(result["deep"]["ece_floor"])} if metric == "ece" else {}
        rows.append({"held out": target["dataset"], **cells, **floor})
    return _titled(title, rows)


def _compared(summary: Row) -> list[str]:
    result = {"deep": summary["deep"]} | {f"deep less {TITLES[m]}": by for m, by in summary["deep_minus"].items()}
    rows = [
        {"": name}
        | {title: _shown(by[m], factor, f"{sign}.{digits}") for m, (title, factor, digits) in METRICS.items()}
        for (name, by), sign in zip(result.items(), ["", *"+" * len(result)], strict=False)
    ]
    return _titled("Means over datasets, with 95 % intervals for datasets like these", rows)


def _shown(found: Sequence[float] | None, factor: int, form: str) -> str:
    if found is None:
        return ""
    mean, low, high = (f"{factor * value:{form}f}" for value in found)
    return f"{mean} ({low} to {high})"


def _uncertainty(targets: Sequence[Row], summary: Row) -> list[str]:
    mean = {
        "held out": "**mean**",
        "90 % interval": f"{summary['prior_covered']} of {summary['n_datasets']} held",
        "covered": _covered(summary),
        **_few(summary),
    }
    rows = pd.DataFrame([*(_prior_row(target) for target in targets), mean]).fillna("")
    below = summary["log_loss_below"]
    return [
        "### Prior, intervals of P, and a few labels, in percent",
        "",
        *markdown(rows),
        "",
        f"Log loss of deep is below that of Platt on the pooled data on {below['platt']} of "
        f"{summary['n_datasets']} datasets, below that of the paper's recipe on {below['paper']}.",
        "",
    ]


def _prior_row(target: Row) -> dict[str, str]:
    prior, cells = target["prior"], target["cells"]
    low, high = prior["interval"]
    return {
        "held out": target["dataset"],
        "n": str(target["n"]),
        "consistent": in_percent(target["consistent"]),
        "estimated": in_percent(prior["estimate"]) + (" (warned)" if prior["warning"] else ""),
        "90 % interval": f"{in_percent(low)}-{in_percent(high)}" + ("" if prior["covered"] else " *missed*"),
        "cells": str(cells["n"]),
        "covered": in_percent(cells["covered"]),
        **_few(target),
    }


def _few(found: Row) -> dict[str, str]:
    return {f"ECE, {n} labels": in_percent(error) for n, error in found["few_labels"].items()}


def _covered(summary: Row) -> str:
    interval = summary["cells_covered_interval"]
    if interval is None:
        return in_percent(summary["cells_covered"])
    return f"{in_percent(summary['cells_covered'])} ({in_percent(interval[0])}-{in_percent(interval[1])})"


def _weights(targets: Sequence[Row]) -> list[str]:
    rows = [
        {"held out": target["dataset"], **{name: f"{weight:.2f}" for name, weight in target["weights"].items()}}
        for target in targets
    ]
    return _titled("Weights of the stack's members", rows)


def summarize_simulated(found: Sequence[Row]) -> Row:
    """Return means over draws and datasets with their standard errors over draws, by world and method."""
    summary = {}
    for world in dict.fromkeys(row["world"] for row in found):
        here = [row for row in found if row["world"] == world]
        summary[world] = {method: _over_draws(here, method) for method in here[0]["methods"]}
    return summary


def _over_draws(found: Sequence[Row], method: str) -> Row:
    draws = dict.fromkeys(row["draw"] for row in found)
    by_draw = {
        metric: [_metric([row for row in found if row["draw"] == draw], method, metric).mean() for draw in draws]
        for metric in METRICS
    }
    return {
        **{metric: float(np.mean(values)) for metric, values in by_draw.items()},
        "standard_error": None
        if len(draws) < 2
        else {metric: float(np.std(values, ddof=1) / len(draws) ** 0.5) for metric, values in by_draw.items()},
    }


def simulated_text(summary: Row, titles: Mapping[str, str]) -> str:
    """Return the simulated worlds as a Markdown table."""
    rows = [
        {"world": titles[world], "method": TITLES[method]}
        | {title: _with_error(result, metric) for metric, (title, _, _) in METRICS.items()}
        for world, methods in summary.items()
        for method, result in methods.items()
    ]
    return "\n".join([*markdown(pd.DataFrame(rows)), "", "Behind the sign: the standard error over draws."]) + "\n"


def _with_error(found: Row, metric: str) -> str:
    _, factor, digits = METRICS[metric]
    shown = f"{factor * found[metric]:.{digits}f}"
    errors = found["standard_error"]
    return shown if errors is None else f"{shown} ± {factor * errors[metric]:.{digits}f}"
