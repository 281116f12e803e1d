"""The figures of a transfer run in one table, their means, and what was aimed at."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from deep._checks import Floats

__all__ = ["COMPARED", "markdown", "simulated_markdown", "summarize", "summarize_simulated"]

COMPARED = ("pool", "paper", "platt", "best_judge", "best_judge_learned_threshold")

METRICS = {
    "balanced_accuracy": ("balanced accuracy, %", 100, 1),
    "ece": ("ECE, %", 100, 1),
    "log_loss": ("log loss", 1, 3),
}
"""What is compared: its title, a factor and the digits that are shown."""

TITLES = {
    "pool": "pool",
    "paper": "paper's recipe",
    "platt": "Platt, pooled data",
    "best_judge": "best judge",
    "best_judge_learned_threshold": "best judge, learned threshold",
    "pooled_logistic_regression": "logistic regression, pooled data",
    "label_model_platt": "LabelModel on source votes, Platt",
    "bayes": "the truth (Bayes)",
}


def summarize(targets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means over held-out datasets, and how often the pool, the prior and the intervals were right.

    Parameters
    ----------
    targets : sequence of dict
        Of `transfer_to`.

    Returns
    -------
    dict
    """
    cells = [one["cells"]["covered"] for one in targets if one["cells"]["covered"] is not None]
    losses = [{m: one["methods"][m]["log_loss"] for m in ("pool", "paper", "platt")} for one in targets]
    return {
        "n_datasets": len(targets),
        "methods": {
            name: {
                metric: _mean(one["methods"][name].get(metric) for one in targets)
                for metric in ("balanced_accuracy", "ece", "ece_floor", "log_loss")
            }
            for name in COMPARED
            if all(name in one["methods"] for one in targets)
        },
        "pool": {metric: _with_interval(_metric(targets, "pool", metric)) for metric in METRICS},
        "pool_minus": _differences(targets),
        "log_loss_below": {m: sum(one["pool"] < one[m] for one in losses) for m in ("paper", "platt")},
        "prior_covered": sum(one["prior"]["covered"] for one in targets),
        "prior_error": float(
            np.sqrt(np.mean([(one["prior"]["estimate"] - one["consistent"]) ** 2 for one in targets]))
        ),
        "prior_width": _mean(one["prior"]["interval"][1] - one["prior"]["interval"][0] for one in targets),
        "prior_refused": sum(one["prior"]["refused"] for one in targets),
        "cells_covered": _mean(cells),
        "cells_covered_interval": _interval_of_mean(cells),
        "few_labels": {n: _mean(one["few_labels"][n] for one in targets) for n in targets[0]["few_labels"]},
        "fewer_labels": _fewer(targets),
    }


def _differences(targets: Sequence[dict[str, Any]]) -> dict[str, dict[str, list[float] | None]]:
    """Return by how much the pool's metrics are above every other method's: means over datasets with intervals."""
    return {
        name: {
            metric: _with_interval(_metric(targets, "pool", metric) - _metric(targets, name, metric))
            for metric in METRICS
        }
        for name in COMPARED[1:]
    }


def _metric(targets: Sequence[dict[str, Any]], method: str, metric: str) -> Floats:
    """Return a metric by dataset; NaN where the method has none."""
    return np.array([one["methods"].get(method, {}).get(metric, np.nan) for one in targets], dtype=np.float64)


def _with_interval(values: Floats) -> list[float] | None:
    """Return mean, low and high; None where a value is missing or there are fewer than two."""
    if len(values) < 2 or not np.isfinite(values).all():
        return None
    return [float(values.mean()), *_reach(values)]


def _fewer(targets: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return, by strategy, on how many datasets a quarter fewer labels do as well as random ones, and the mean."""
    found = {}
    for strategy in targets[0]["fewer_labels"]:
        known = [one["fewer_labels"][strategy] for one in targets if one["fewer_labels"][strategy] is not None]
        held = sum(value <= 0 for value in known)
        found[strategy] = {"datasets": len(known), "held": held, "difference": _mean(known)}
    return found


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _interval_of_mean(values: Sequence[float]) -> list[float] | None:
    """Return the 95 % interval of the mean of shares over datasets, within [0, 1]; None of fewer than two."""
    if len(values) < 2:
        return None
    low, high = _reach(values)
    return [max(low, 0.0), min(high, 1.0)]


def _reach(values: Sequence[float] | Floats) -> tuple[float, float]:
    """Return the 95 % interval of a mean over datasets, by Student's t."""
    reach = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return float(np.mean(values) - reach), float(np.mean(values) + reach)


def markdown(targets: Sequence[dict[str, Any]], summary: dict[str, Any]) -> str:
    """Return the run as Markdown tables."""
    methods = [name for name in COMPARED if name in summary["methods"]]
    parts = [
        _table("Balanced accuracy, in percent", targets, summary, methods, "balanced_accuracy", _percent),
        _table("Expected calibration error, in percent", targets, summary, methods[:3], "ece", _percent),
        _table("Log loss", targets, summary, methods[:3], "log_loss", lambda value: f"{value:.3f}"),
        _compared(summary),
        _uncertainty(targets, summary),
        _weights(targets),
    ]
    return "\n\n".join(parts) + "\n"


def _table(
    title: str,
    targets: Sequence[dict[str, Any]],
    summary: dict[str, Any],
    methods: Sequence[str],
    metric: str,
    show: Callable[[float], str],
) -> str:
    floor = ["floor"] if metric == "ece" else []
    lines = [_row(["held out", *(TITLES[name] for name in methods), *floor])]
    lines.append(_row(["---"] * (1 + len(methods) + len(floor))))
    for one in [*targets, {"dataset": "**mean**", "methods": summary["methods"]}]:
        cells = [show(one["methods"][name][metric]) for name in methods]
        if floor:
            cells.append(show(one["methods"]["pool"]["ece_floor"]))
        lines.append(_row([one["dataset"], *cells]))
    return "\n".join([f"### {title}", "", *lines])


def _compared(summary: dict[str, Any]) -> str:
    rows = [("pool", summary["pool"], "")]
    rows += [(f"pool less {TITLES[name]}", found, "+") for name, found in summary["pool_minus"].items()]
    lines = [_row(["", *(title for title, _, _ in METRICS.values())]), _row(["---"] * (1 + len(METRICS)))]
    for title, found, sign in rows:
        lines.append(_row([title, *(_shown(found[metric], *METRICS[metric][1:], sign) for metric in METRICS)]))
    return "\n".join(["### Means over datasets, with 95 % intervals for datasets like these", "", *lines])


def _shown(found: list[float] | None, factor: int, digits: int, sign: str) -> str:
    if found is None:
        return ""
    mean, low, high = (f"{factor * value:{sign}.{digits}f}" for value in found)
    return f"{mean} ({low} to {high})"


def _uncertainty(targets: Sequence[dict[str, Any]], summary: dict[str, Any]) -> str:
    few = list(summary["few_labels"])
    head = ["held out", "n", "consistent", "estimated", "90 % interval", "cells", "covered"]
    lines = [_row([*head, *(f"ECE, {n} labels" for n in few)]), _row(["---"] * (len(head) + len(few)))]
    for one in targets:
        prior, cells = one["prior"], one["cells"]
        low, high = prior["interval"]
        lines.append(
            _row(
                [
                    one["dataset"],
                    str(one["n"]),
                    _percent(one["consistent"]),
                    _percent(prior["estimate"]) + (" (refused)" if prior["refused"] else ""),
                    f"{_percent(low)}-{_percent(high)}" + ("" if prior["covered"] else " *missed*"),
                    str(cells["n"]),
                    _percent(cells["covered"]),
                    *(_percent(one["few_labels"][n]) for n in few),
                ]
            )
        )
    mean = [f"{summary['prior_covered']} of {summary['n_datasets']} held", "", _covered(summary)]
    lines.append(_row(["**mean**", "", "", "", *mean, *(_percent(summary["few_labels"][n]) for n in few)]))
    below = summary["log_loss_below"]
    return "\n".join(
        [
            "### Prior, intervals of P, and a few labels, in percent",
            "",
            *lines,
            "",
            f"Log loss of the pool is below that of Platt on the pooled data on {below['platt']} of "
            f"{summary['n_datasets']} datasets, below that of the paper's recipe on {below['paper']}.",
            "",
            *_strategies(summary["fewer_labels"]),
        ]
    )


def _strategies(found: dict[str, dict[str, Any]]) -> list[str]:
    """Return what each strategy of choosing labels saves."""
    known = {strategy: row for strategy, row in found.items() if row["datasets"]}
    if not known:
        return ["Choosing which items to label was not measured: no dataset is large enough."]
    return [
        "A quarter fewer labels, ECE less that of random ones (0 or less: the strategy saves a quarter):",
        "",
        *(
            f"- {strategy}: {100 * row['difference']:+.2f} points on average, 0 or less on {row['held']} of "
            f"{row['datasets']} datasets"
            for strategy, row in known.items()
        ),
    ]


def _covered(summary: dict[str, Any]) -> str:
    interval = summary["cells_covered_interval"]
    if interval is None:
        return _percent(summary["cells_covered"])
    return f"{_percent(summary['cells_covered'])} ({_percent(interval[0])}-{_percent(interval[1])})"


def _weights(targets: Sequence[dict[str, Any]]) -> str:
    names = list(targets[0]["weights"])
    lines = [_row(["held out", *names]), _row(["---"] * (1 + len(names)))]
    lines += [_row([one["dataset"], *(f"{one['weights'][name]:.2f}" for name in names)]) for one in targets]
    return "\n".join(["### Weights of the pool's members", "", *lines])


def summarize_simulated(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means over draws and datasets with their standard errors over draws, by world and method."""
    summary = {}
    for world in dict.fromkeys(one["world"] for one in found):
        here = [one for one in found if one["world"] == world]
        summary[world] = {method: _over_draws(here, method) for method in here[0]["methods"]}
    return summary


def _over_draws(found: Sequence[dict[str, Any]], method: str) -> dict[str, Any]:
    draws = dict.fromkeys(one["draw"] for one in found)
    by_draw = {
        metric: [_metric([one for one in found if one["draw"] == draw], method, metric).mean() for draw in draws]
        for metric in METRICS
    }
    return {
        **{metric: float(np.mean(values)) for metric, values in by_draw.items()},
        "standard_error": None
        if len(draws) < 2
        else {metric: float(np.std(values, ddof=1) / len(draws) ** 0.5) for metric, values in by_draw.items()},
    }


def simulated_markdown(summary: dict[str, Any], titles: dict[str, str]) -> str:
    """Return the simulated worlds as a Markdown table."""
    heads = [title for title, _, _ in METRICS.values()]
    lines = [_row(["world", "method", *heads]), _row(["---"] * (2 + len(heads)))]
    for world, methods in summary.items():
        for method, found in methods.items():
            lines.append(_row([titles[world], TITLES[method], *(_with_error(found, metric) for metric in METRICS)]))
    return "\n".join([*lines, "", "Behind the sign: the standard error over draws."]) + "\n"


def _with_error(found: dict[str, Any], metric: str) -> str:
    _, factor, digits = METRICS[metric]
    shown = f"{factor * found[metric]:.{digits}f}"
    errors = found["standard_error"]
    return shown if errors is None else f"{shown} ± {factor * errors[metric]:.{digits}f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
