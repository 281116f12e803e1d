"""Render the tables of docs/benchmarks.md from the JSON of `peers.py`."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measured_page import table

Found = Mapping[str, Any]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"
MARK = re.compile(r"(<!-- peers:(\S+) -->\n).*?(<!-- /peers -->)", re.DOTALL)
MEASURES = ("accuracy", "log loss", "Brier score")
BETTER = np.array([1, -1, -1])
"""Whether more of each is better."""
SEES_LABELS = "semisup"
UNTUNED = "deep, fbc87a9 (never tuned on these sets)"
UNKNOWN = "-"


def apart(value: float, error: float, form: str = "+.3f") -> str:
    """Return a difference with its standard error."""
    return f"{value:{form}} ± {error:{form.replace('+', '')}}"


def over(deep: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return deep's less another's figures, shape (n_sets, n_measures), in the mean, and standard errors over sets."""
    less = deep - other
    errors = less.std(axis=0, ddof=1) / np.sqrt(len(less)) if len(less) > 1 else np.full(less.shape[1], np.nan)
    return less.mean(axis=0), errors


def told(means: np.ndarray, errors: np.ndarray, forms: Sequence[str] = ("+.3f",) * 3) -> list[str]:
    """Return differences with their standard errors."""
    return [apart(*each) for each in zip(means, errors, forms, strict=True)]


def methods(sets: Found, untuned: Found) -> dict[str, dict[str, Sequence[float]]]:
    """Return by method, by set, accuracy, log loss and Brier score."""
    result: dict[str, dict[str, Sequence[float]]] = {}
    for name, one in sets.items():
        rows = {**one["figures"], **{f"{method} (published)": row for method, row in one["published"].items()}}
        if name in untuned:
            rows[UNTUNED] = untuned[name]["figures"]["deep"]
        for method, row in rows.items():
            if np.isfinite(row).all():
                result.setdefault(method, {})[name] = row
    return result


def wrench(sets: Found, untuned: Found) -> Iterator[str]:
    """Yield the tables of WRENCH."""
    by = methods(sets, untuned)
    rows = []
    for method, of in by.items():
        if len(of) < len(sets) and SEES_LABELS not in method:
            continue
        figures, deep = (np.array([which[name] for name in of]) for which in (of, by["deep"]))
        less = [""] * 3 if method == "deep" else told(*over(deep, figures))
        note = f" **sees labels**, {len(of)} sets" if SEES_LABELS in method else ""
        rows.append((figures[:, 1].mean(), [f"{method}{note}", *(f"{x:.3f}" for x in figures.mean(axis=0)), *less]))
    yield from table(["method", *MEASURES, *(f"deep less it: {m}" for m in MEASURES)], [row for _, row in sorted(rows)])
    yield ""
    shown = [name for name in ("deep", UNTUNED, "majority", "snorkel LabelModel", "crowd-kit DawidSkene") if name in by]
    yield from table(
        ["accuracy / log loss", *shown, "best published accuracy", "best published log loss"],
        [[name, *(two(by[m][name]) for m in shown), *best(by, name)] for name in sets],
    )


def two(row: Sequence[float]) -> str:
    """Return accuracy and log loss."""
    return f"{row[0]:.3f} / {row[1]:.3f}"


def best(by: Mapping[str, Mapping[str, Sequence[float]]], name: str) -> list[str]:
    """Return the published model of the best accuracy on a set, and the one of the least log loss; none sees labels."""
    of = {
        m: rows[name] for m, rows in by.items() if m.endswith("(published)") and SEES_LABELS not in m and name in rows
    }
    first, second = max(of, key=lambda m: of[m][0]), min(of, key=lambda m: of[m][1])
    return [f"{of[first][0]:.3f} ({first.split()[0]})", f"{of[second][1]:.3f} ({second.split()[0]})"]


def crowds(sets: Found, untuned: Found) -> Iterator[str]:
    """Yield a table of each crowd, standard errors over its items."""
    for name, one in sets.items():
        rows = []
        for method, row in one["figures"].items():
            less = [""] * 3
            if method != "deep":
                less = [apart(*pair) for pair in zip(*one["less"][method], strict=True)]
            rows.append([method, *(f"{x:.3f}" for x in row), *less])
        if name in untuned:
            rows.insert(1, ["deep, fbc87a9", *(f"{x:.3f}" for x in untuned[name]["figures"]["deep"]), "", "", ""])
        yield from table([f"{name}, {one['rows']} items", *MEASURES, *(f"deep less it: {m}" for m in MEASURES)], rows)
        yield ""


def share(by: Found) -> Iterator[str]:
    """Yield the table of the share of consistent items."""
    head = ["labels", "method", "RMSE, points", "90 % interval covers", "width, points", "refused"]
    rows = []
    for n, of in by.items():
        for name, one in sorted(of.items(), key=lambda pair: pair[1]["rmse"]):
            less = "" if name == "deep" else apart(*(100 * x for x in one["less"]), form="+.1f")
            figures = [f"{100 * one['rmse']:.1f}", f"{100 * one['covered']:.0f} %", f"{100 * one['width']:.0f}"]
            rows.append([n, name, *figures, f"{100 * one['refused']:.0f} %", less])
    yield from table([*head, "deep's RMSE less it"], rows)


def compare(by: Found) -> Iterator[str]:
    """Yield the table of A against B."""
    names = list(by.get("power", by.get("alarms", {})))
    rows = []
    for name in names:
        cells = [f"{100 * by[what][name]['told']:.1f}" if what in by else UNKNOWN for what in ("alarms", "power")]
        gap = by["power"][name]["less"] if "power" in by else (0.0, 0.0)
        rows.append([name, *cells, "" if name == "deep" else apart(*(100 * x for x in gap), form="+.1f")])
    title = ["method", "told apart though alike, % (10 is meant)", "told apart where they differ, %"]
    yield from table([*title, "deep's less it, points"], rows)


def monitor(by: Found) -> Iterator[str]:
    """Yield the table of monitors."""
    title = ["method", "years without change that alarm, %", "weeks to find the fall", "in the slowest panel", "years"]
    rows = [
        [name, f"{100 * one['alarms']:.1f}", f"{one['weeks']:.1f}", f"{one['most']:.1f}", str(one["years"])]
        for name, one in by.items()
    ]
    yield from table(title, rows)


P_MEASURES, P_BETTER = ("ECE", "log loss", "balanced accuracy"), np.array([-1, -1, 1])
POINTS = np.array([100, 1, 100])
"""ECE and balanced accuracy are shown in points."""


def of_p(by: Found) -> Iterator[str]:
    """Yield the table of P on a dataset without labels."""
    rows = []
    for k, panels in by.items():
        for name, (figures, less) in p_figures(panels).items():
            ece, loss, accuracy = figures.mean(axis=0)
            many = "all others" if k == "all" else k
            differences = [""] * 3 if less is None else told(*less, ("+.1f", "+.3f", "+.1f"))
            rows.append([many, name, f"{ece:.1f}", f"{loss:.3f}", f"{accuracy:.1f}", *differences])
    title = ["labeled datasets", "method", "ECE", "log loss", "balanced accuracy"]
    yield from table([*title, "deep less it: ECE", "log loss", "balanced accuracy"], rows)


def p_figures(panels: Found) -> dict[str, tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]]:
    """Return by method its figures, a row a panel, and deep's less them with standard errors."""
    names = next(iter(panels.values()))
    figures = {name: POINTS * np.array([panels[panel][name] for panel in panels]) for name in names}
    return {name: (of, None if name == "deep" else over(figures["deep"], of)) for name, of in figures.items()}


def calibrators(by: Found) -> Iterator[str]:
    """Yield the table of calibrators."""
    if not by:
        yield "netcal was not installed."
        return
    kinds = list(next(iter(by.values())))
    rows = []
    for option, of in by.items():
        cells = [apart(*of[kind]["less"], form="+.4f") if kind in of else UNKNOWN for kind in kinds]
        times = [one["netcal"][1] / max(one["deep"][1], 1e-4) for one in of.values()]
        rows.append([option, *cells, f"{np.median(times):.0f}"])
    yield from table(["deep's log loss less", *kinds, "times as fast (median)"], rows)


Difference = tuple[str, str, str, float, float]
"""Where, which rival, which measure, and how much better deep is, with the standard error."""


def differences(found: Found) -> Iterator[Difference]:
    """Yield every difference of the tables, above 0 where deep is better."""
    for name, one in {**found.get("wrench", {}), **found.get("crowds", {})}.items():
        for rival, (less, errors) in one["less"].items():
            yield from _each(name, rival, MEASURES, BETTER * less, errors)
    yield from _published(methods(found.get("wrench", {}), {}))
    for n, of in found.get("share", {}).items():
        for rival, one in of.items():
            yield f"share by {n} labels", rival, "RMSE", -one["less"][0], one["less"][1]
    for rival, one in found.get("compare", {}).get("power", {}).items():
        yield "A against B", rival, "power", *one["less"]
    for k, panels in found.get("p", {}).items():
        for rival, (_, less) in p_figures(panels).items():
            if less is not None:
                yield from _each(f"P, labeled datasets: {k}", rival, P_MEASURES, P_BETTER * less[0], less[1])
    yield from _of_calibrators(found.get("calibrators", {}))


def _each(where: str, rival: str, measures: Sequence[str], better: np.ndarray, errors: Any) -> Iterator[Difference]:
    for measure, less, error in zip(measures, better, errors, strict=True):
        yield where, rival, measure, float(less), float(error)


def _published(by: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[Difference]:
    for rival, of in by.items():
        if rival.endswith("(published)") and len(of) > 1:
            means, errors = over(*(np.array([which[name] for name in of]) for which in (by["deep"], of)))
            yield from _each("WRENCH, means", rival, MEASURES, BETTER * means, errors)


def _of_calibrators(by: Found) -> Iterator[Difference]:
    for rival, of in by.items():
        for scores, one in of.items():
            yield f"calibrators, {scores}", rival, "log loss", -one["less"][0], one["less"][1]


def lost(found: Found) -> Iterator[str]:
    """Yield a line for each difference against deep of more than two standard errors, and how many there are in all."""
    every = [one for one in differences(found) if one[1] != "deep"]
    worse = [one for one in every if one[3] < -2 * one[4] - LEAST]
    better = sum(one[3] > 2 * one[4] + LEAST for one in every)
    many = "by more than two standard errors"
    yield f"Of {len(every)} differences {better} are for deep {many}, {len(worse)} against it:"
    yield ""
    for where, rival, measure, less, error in worse:
        yield f"- {where}: behind {rival} in {measure}, {apart(less, error, '+.4f')}"


LEAST = 1e-6
"""Smaller differences are rounding."""


def about(run: Found) -> Iterator[str]:
    """Yield where and when it was run."""
    packages = ", ".join(f"{name} {number or '(not installed)'}" for name, number in run["versions"].items())
    minutes = sum(run["seconds"].values()) / 60
    where = f"{run['machine']['cores']} cores, Python {run['machine']['python']}"
    when = f"commit {' and '.join(dict.fromkeys(run['commits'].values()))}, {run['date']}"
    yield f"`{run['command']}`, size {run['size']}, {when}: {minutes:.0f} minutes, {where}."
    yield f"{packages}."


def tables(run: Found, untuned: Found) -> dict[str, list[str]]:
    """Return the lines of each table by its mark."""
    result, old = run["found"], untuned["found"]
    made: dict[str, Callable[[Found], Iterator[str]]] = {
        "wrench": lambda part: wrench(part, old["wrench"]),
        "crowds": lambda part: crowds(part, old["crowds"]),
        "share": share,
        "compare": compare,
        "monitor": monitor,
        "p": of_p,
        "calibrators": calibrators,
    }
    filled = {name: list(make(result[name])) if name in result else ["Not measured."] for name, make in made.items()}
    return {"about": list(about(run)), **filled, "lost": list(lost(result))}


def page(run: Found, untuned: Found) -> str:
    """Return docs/benchmarks.md with its tables filled."""
    made = tables(run, untuned)
    return MARK.sub(lambda match: "\n".join([match[1], *made[match[2]], "", match[3]]), PAGE.read_text("utf-8"))
