"""Render the figures of `bench.py`: tables and a picture of the growth for each machine, from its JSON alone."""

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Run = dict[str, Any]

AGAINST = {
    "DawidSkene": "crowd-kit",
    "LabelModel": "snorkel",
    "LogisticRegression": "scikit-learn",
    "RandomForest": "scikit-learn",
    "XGB": "xgboost",
}
"""The fits of the first table, and whose rows they are measured against."""
DRAWN = {"DawidSkene": "#c8553d", "LabelModel": "#2f6690", "LogisticRegression": "#4a7c59"}
NOT_IDLE = 0.1
"""Cores that others may keep busy on a machine that is called idle."""


def table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown, numbers to the right of the first column."""
    yield f"| {' | '.join(head)} |"
    yield "| --- |" + " ---: |" * (len(head) - 1)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def fits(runs: list[Run]) -> Iterator[str]:
    """Yield the fits: milliseconds on cells, and how many times longer the same library takes on rows."""

    def entry(run: Run) -> str:
        ratio = "" if run["rows"] is None else f" (x {run['rows'] / run['cells']:,.1f})"
        return f"{1000 * run['cells']:,.1f} ms{ratio}"

    sizes = sorted({run["n"] for run in runs})
    by_size = {(run["what"], run["n"]): run for run in runs}
    names = dict.fromkeys(run["what"] for run in runs)
    lines = ([name, *(entry(by_size[name, n]) for n in sizes)] for name in names)
    return table(["", *(f"{n:,} rows" for n in sizes)], lines)


def compared(found: Run) -> Iterator[list[str]]:
    """Yield a row for each part that has a rival: the work, deep, the rival, and how many times as fast deep is."""
    for name, rival in AGAINST.items():
        runs = [run for run in (found["cells"] or {"runs": []})["runs"] if run["what"] == name and run["rows"]]
        if runs:
            last = max(runs, key=lambda run: int(run["n"]))
            ours, theirs = last["cells"], last["rows"]
            what = f"{name}: fit of {last['n']:,} rows of 9 votes"
            yield [what, f"{1000 * ours:,.1f} ms", f"{rival}: {1000 * theirs:,.0f} ms", f"{theirs / ours:,.1f}"]
    for run in found["scoring"] or []:
        rates = [f"{run[who] / 1e6:,.2f} M rows/s" for who in ("deep", "theirs")]
        yield [
            f"Scoring: {run['what']}",
            rates[0],
            f"{run['rival']}: {rates[1]}",
            f"{run['deep'] / run['theirs']:,.2f}",
        ]
    pairs = [(run["deep"], run["netcal"]) for run in found["netcal"] or [] if run["deep"] and run["netcal"]]
    if pairs:
        ours, theirs = (statistics.median(pair[i]["seconds"] for pair in pairs) for i in (0, 1))
        ratio = statistics.median(theirs["seconds"] / ours["seconds"] for ours, theirs in pairs)
        what = f"Calibrating: a map fitted and applied, median of {len(pairs)}"
        yield [what, f"{1000 * ours:,.1f} ms", f"netcal: {1000 * theirs:,.1f} ms", f"{ratio:,.1f}"]
    if calls := found["calls"]:
        yield from called(calls)
    if serve := found["serve"]:
        bare = f"bare FastAPI route and a plain loop: {serve['bare_ms'] + serve['loop_ms']:.2f} ms"
        what = "`deep serve`: processor time of a request"
        yield [what, f"{serve['served_ms']:.2f} ms", bare, f"{1 / serve['ratio']:.2f}"]


def called(calls: Run) -> Iterator[list[str]]:
    """Yield a row for each way of making calls that ours are measured against."""
    rivals = {"bare": ("bare loop of the client, nothing kept", calls["median_ratio"])}
    if inspect := calls.get("inspect"):
        rivals["inspect"] = (f"Inspect {inspect['version']}, its log kept", inspect["median_ratio"])
    for name, (rival, ratio) in rivals.items():
        ours, theirs = (statistics.median(one[f"{who}_per_s"] for one in calls["rounds"]) for who in ("deep", name))
        what = f"Calls to an LLM, {calls['workers']} at a time, 50 ms each, every answer kept"
        yield [what, f"{ours:,.0f}/s", f"{rival}: {theirs:,.0f}/s", f"{ratio:.2f}"]


def grown(runs: list[Run]) -> Iterator[str]:
    """Yield what fitting and scoring the stack takes by rows."""
    head = ["", "rows", "fit, processor seconds", "rows scored a second", "memory"]
    lines = (
        [
            {"votes": "9 judges' votes", "scores": "23 soft scores"}[run["kind"]],
            f"{run['rows']:,}",
            f"{run['fit_s']:,.1f}",
            f"{run['scored_rows_per_s']:,.0f}",
            f"{run['memory_gb']:.2f} GiB",
        ]
        for run in runs
    )
    return table(head, lines)


def netcal(runs: list[Run]) -> Iterator[str]:
    """Yield each calibrator of netcal beside deep's: seconds and log loss."""

    def entry(one: Run | None) -> str:
        return "no map" if one is None else f"{1000 * one['seconds']:,.1f} ms, {one['log_loss']:.4f}"

    rows = ([f"{run['scores']}: {run['calibrator']}", entry(run["netcal"]), entry(run["deep"])] for run in runs)
    return table(["scores and calibrator", "netcal: time, log loss", "deep: time, log loss"], rows)


def constants(found: Run) -> Iterator[str]:
    """Yield what a row and a call cost, and what processes reach on one ledger."""
    if scale := found["scale"]:
        measured = {**scale["rows"], **scale["calls"][-1]}
        yield from table(["constant", "value"], ([name, f"{value:,.0f}"] for name, value in measured.items()))
        yield ""
    for run in (found["ledger"] or {"runs": []})["runs"]:
        own = f", {run['share_of_sum']:.2f} of what they reach on a ledger each" if "share_of_sum" in run else ""
        yield (
            f"{run['processes']:,} processes on one PostgreSQL ledger, {run['requests']:,} requests, a tenth of which "
            f"fail: {run['share_of_allowed']:.2f} of the allowed rate{own}; {run['answers_bought_twice']} bought twice."
        )
        yield ""


def about(found: Run) -> str:
    """Return which commit ran, for how long, and whether the machine was idle."""
    busy = found["cores_busy_with_others"]
    if busy is None:
        idle = "Whether the machine was idle is not known."
    elif busy > NOT_IDLE:
        idle = (
            f"**The machine was not idle**: other programs kept {busy:.1f} of its cores busy on average, so wall times "
            "are too long; ratios are of one run."
        )
    else:
        idle = "The machine was idle otherwise."
    run = f"A whole run (size {found['size']}) of commit {found['commit']}, {found['date']}, {found['minutes']} minutes"
    return f"{run}. {idle}"


def section(found: Run, picture: str) -> Iterator[str]:
    """Yield the lines of one machine."""
    machine = found["machine"]
    cores = f"{machine['cores']} cores, {machine['memory_gib']} GiB"
    yield f"## {machine['processor']}, {cores}, Python {machine['python']}"
    yield from ("", about(found), "")
    if any(found[part] is None for part in found["commands"]):
        yield from (
            f"- Not measured: `{message}`" for part, message in found["commands"].items() if found[part] is None
        )
        yield ""
    yield from ("### Beside what one would pick instead", "")
    yield from table(["work", "deep", "instead", "times as fast"], compared(found))
    yield from ("", f"![Seconds over rows, in logarithms]({picture})", "")
    if growth := found["growth"]:
        slopes = ", ".join(f"{slope:.2f} of {kind}" for kind, slope in growth["slopes"].items())
        yield from ("### The stack, by rows", "", f"SIMULATED rows. Slope of the last factor of ten: {slopes}.", "")
        yield from (*grown(growth["runs"]), "")
    if cells := found["cells"]:
        text = "On cells, and in brackets how many times longer the same library takes on rows. No bracket: a"
        yield from (
            "### Every fit, by rows",
            "",
            f"{text} fit was expected to take more than {cells['limit_s']:.0f} s.",
            "",
        )
        yield from (*fits(cells["runs"]), "")
    if found["netcal"]:
        yield from ("### Calibrators", "", *netcal(found["netcal"]), "")
    yield from ("### What a row and a call cost", "", *constants(found), "")
    used = {part: f": {seconds:,.0f} processor seconds" for part, seconds in found.get("processor_s", {}).items()}
    lines = (f"- `python benchmarks/{words}`{used.get(part, '')}" for part, words in found["commands"].items())
    yield from ("### Commands", "", *lines, "")


def draw(found: Run, path: Path) -> None:
    """Draw seconds over rows: fits on cells and on rows, and the stack on votes and on scores."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from scores_at_scale import draw as draw_stack

    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    runs = (found["cells"] or {"runs": []})["runs"]
    for name, color in DRAWN.items():
        for way, style in (("cells", "o-"), ("rows", "s--")):
            points = [(run["n"], run[way]) for run in runs if run["what"] == name and run[way]]
            label = f"{name}, " + (f"{AGAINST[name]} on rows" if way == "rows" else "deep on cells")
            if points:
                left.loglog(*zip(*points, strict=True), style, color=color, label=label)
    left.set(xlabel="rows of 9 votes (SIMULATED)", ylabel="processor seconds of the fit")
    left.set_title("Fits on cells and on rows", loc="left", fontsize=10)
    left.grid(color="#d9dde1", linewidth=0.6)
    if runs:
        left.legend(frameon=False, fontsize=8)
    if found["growth"]:
        draw_stack(found["growth"]["runs"], right)
    with rc_context({"svg.hashsalt": "deep"}):
        figure.savefig(path, metadata={"Date": None})


def page(folder: Path) -> str:
    """Return the page of a folder of results, a section for each machine."""
    lines = ["<!-- Written by benchmarks/bench.py from the JSON of each machine: do not edit. -->", ""]
    for path in sorted(folder.glob("*.json")):
        lines += section(json.loads(path.read_text(encoding="utf-8")), f"{folder.name}/{path.stem}.svg")
    return "\n".join(lines).rstrip() + "\n"


def render(folder: Path) -> None:
    """Write the page beside a folder of results, and the pictures into it."""
    for path in sorted(folder.glob("*.json")):
        draw(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".svg"))
    folder.with_suffix(".md").write_text(page(folder), encoding="utf-8")
