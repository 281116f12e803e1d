"""F1 of a tuned detector by the size of its training data: Figure 12."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from deep._figures import save_figures
from deep._files import JsonObject, check_replaceable, read_bytes, write_results
from deep.console import check_not_in, print_result
from deep.evaluate import markdown, records, write_table
from deep.exceptions import ExitStatus, InputError
from deep.experiments.cognibench._figures import draw_curve
from deep.experiments.cognibench._metric import PARTS
from deep.experiments.cognibench._tables import percentages
from deep.report import report_line, reported_folder

NAME, TITLE = "figure12-training-size", "Figure 12: F1 of the tuned detector by training size, in percent"


def curve(args: argparse.Namespace) -> int:
    """Run ``deep cognibench curve``."""
    check_replaceable(args.out)
    points = sorted((_point(given, args.method) for given in args.points), key=lambda row: row["training chats"])
    for given in args.points:
        check_not_in(args.out, Path(given.partition("=")[2]), "points")
    table = pd.DataFrame(points)
    fits = {part: fit for part in PARTS if (fit := _fit(points, part)) is not None}
    slopes = {part: {"intercept": low, "per_tenfold": slope} for part, (low, slope) in fits.items()}
    results = {"schema_version": 1, "points": records(table), "fits": slopes}
    with reported_folder(args.out) as folder:
        write_table(folder, NAME, table, TITLE, shown=percentages(table))
        write_results(folder, results)
        save_figures({NAME: draw_curve(table, fits)}, folder)
    lines = [TITLE, "", *markdown(percentages(table)), ""]
    lines += [f"{part}: {100 * slope:+.2f} points a tenfold of chats" for part, (_, slope) in fits.items()]
    print_result(results, ["\n".join([*lines, f"written to {args.out}", report_line(args.out), ""])], as_json=args.json)
    return ExitStatus.DONE


def _point(given: str, method: str | None) -> JsonObject:
    """Return a row of the curve from SIZE=RUN or TUNED=RUN."""
    left, equals, right = given.partition("=")
    if not equals:
        raise InputError(f"`points` must be SIZE=RUN or TUNED=RUN. Got {given!r}.")
    replies = {"used": int(left)} if left.isdecimal() else _results(Path(left)).get("replies")
    size = replies.get("used") if isinstance(replies, dict) else None
    if type(size) is not int or size < 1:
        raise InputError(f"`points` must name a number of chats or what `deep finetune` wrote. Got {left!r}.")
    try:
        return {"training chats": size, **_measured(right, method)}
    except (KeyError, TypeError):
        raise InputError(f"`points` must be runs of `deep cognibench`. Got another kind in {right!r}.") from None


def _measured(run: str, method: str | None) -> JsonObject:
    """Return F1 of one method of a run."""
    methods = _results(Path(run)).get("methods", [])
    chosen = [m for m in methods if (m["group"] == "direct" if method is None else m["method"] == method)]
    if len(chosen) != 1:
        known = ", ".join(m["method"] for m in methods) or "none"
        raise InputError(f"`method` must be one method of {run!r}: {known}. Got {method!r}.")
    parts = chosen[0]["parts"]
    found = {part: parts[part]["f1"] for part in PARTS} | {"macro mean": chosen[0]["macro_f1"]}
    if not all(value is None or 0 <= value <= 1 for value in found.values()):
        raise TypeError(found)
    return {"method": chosen[0]["method"], **found}


def _results(folder: Path) -> JsonObject:
    try:
        told = json.loads(read_bytes(folder / "results.json", "points"))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`points` must be folders of runs. Got {str(folder)!r}: {reason}.") from None
    return told if isinstance(told, dict) else {}


def _fit(points: Sequence[JsonObject], part: str) -> tuple[float, float] | None:
    """Return the intercept and the slope of F1 on the logarithm of the size, by least squares; None of one size."""
    known = [row for row in points if row[part] is not None]
    if len({row["training chats"] for row in known}) < 2:
        return None
    sizes = np.log10([float(row["training chats"]) for row in known])
    slope, low = np.polyfit(sizes, [float(row[part]) for row in known], 1)
    return float(low), float(slope)
