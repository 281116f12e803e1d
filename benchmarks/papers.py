"""Write docs/papers.md: each table, figure, prompt and setting of the four papers, its command and a verdict.

    make papers
    python benchmarks/papers.py [--data DIR] [--texts DIR] [--run NAME ...]

`docs/papers.toml` says what the papers hold, which command makes it here, and where in that command's files the figures
stand. Each command runs once, in a temporary folder; one whose data are missing is skipped, and its figures stay as the
page has them. The page is written anew, and the status is 1 where a figure has moved by more than its last digit, where
it is further from the printed one than the item allows, where a file is missing, or where a table of simulated votes
does not say so. A package that a command needs and that is not installed ends it before any command runs.
docs/papers-cells.csv has every cell of the DEEP paper's tables beside this run's, with a verdict.
"""

import argparse
import csv
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("DEEP_DATA_HOME", ROOT.parent / "shared" / "data"))

VERDICTS = ("same", "fitted", "differs", "cannot be had")
SIMULATED = "simulated votes"
BEGIN = "| paper | item | figure | printed | here | from | verdict |"
KEY = 3
"""Cells of a row of figures that name the figure."""

Entry = Mapping[str, Any]
"""A table of the TOML file."""

Row = tuple[str, ...]
"""The cells of a row of figures."""


@dataclass(frozen=True)
class Papers:
    """What docs/papers.toml holds."""

    papers: list[Entry]
    runs: dict[str, Entry]
    preface: str
    about_figures: str

    def items(self) -> Iterator[tuple[str, Entry]]:
        """Yield every item with the name of its paper."""
        yield from ((paper["name"], item) for paper in self.papers for item in paper["items"])

    def run_of(self, item: Entry) -> Entry:
        """Return the run that an item belongs to, empty where it has none."""
        return self.runs[item["run"]] if "run" in item else {}


def read_papers(path: Path) -> Papers:
    """Read the TOML file and refuse what a page could not hold."""
    held = tomllib.loads(path.read_text(encoding="utf-8"))
    result = Papers(**held)
    for paper, item in result.items():
        if item["verdict"] not in VERDICTS or (item["verdict"] != "same" and not item.get("why")):
            raise SystemExit(f"{path.name}: {paper}, {item['item']}: the verdict must be one of {VERDICTS}, with why.")
    return result


def missing(run: Entry, places: Mapping[str, Path]) -> str:
    """Return the first file that a run needs and that is not there, else ''."""
    needed = (need.format_map(places) for need in run.get("needs", ()))
    return next((need for need in needed if not Path(need).exists()), "")


def check_packages(runs: Iterable[Entry]) -> None:
    """Raise SystemExit where a run needs a package that is not installed: its tables would lack rows of the page."""
    wanted = {package: run["command"] for run in runs for package in run.get("packages", ())}
    for package, command in wanted.items():
        if importlib.util.find_spec(package) is None:
            raise SystemExit(
                f"`{command}` needs the package {package}, which is not installed. Run `make papers`, or: "
                f"pip install 'deep-judges[{package}]'"
            )


def execute(run: Entry, places: Mapping[str, Path]) -> None:
    """Run a command; what it prints goes into its folder."""
    words = [word.format_map(places) for word in shlex.split(run["command"])]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "DEEP_DATA_HOME": str(places["data"])}
    done = subprocess.run([sys.executable, "-m", *words], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{shlex.join(words)}: status {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    places["out"].mkdir(exist_ok=True)
    (places["out"] / "stdout.json").write_text(done.stdout, encoding="utf-8")


def rows_of(folder: Path, spec: Entry) -> list[dict[str, str]]:
    """Return the rows of a file that a figure looks at, as text: of a CSV, or of the list `list` of a JSON file."""
    read = csv_rows if spec["file"].endswith(".csv") else json_rows
    wanted = spec.get("where", {}).items()
    return [row for row in read(folder / spec["file"], spec.get("list", "")) if all(row[k] == v for k, v in wanted)]


def csv_rows(path: Path, _: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def json_rows(path: Path, name: str) -> list[dict[str, str]]:
    """Return the objects of a list in a JSON object, or the one object that stands in its place."""
    result = json.loads(path.read_text(encoding="utf-8"))[name]
    rows = [result] if isinstance(result, dict) else result
    return [{key: str(value) for key, value in row.items()} for row in rows]


def value_of(folder: Path, spec: Entry) -> float:
    """Return a figure: how many (`count`), how far from others (`apart`), or one cell."""
    rows = rows_of(folder, spec)
    if "count" in spec:
        return len({row[spec["count"]] for row in rows})
    if "apart" in spec:
        return mean_distance(rows, *spec["apart"])
    if len(rows) != 1:
        raise SystemExit(f"{spec['what']}: {len(rows)} rows of {spec['file']} fit, where one must.")
    whole = sum(float(rows[0][name]) for name in spec.get("share_of", ())) or 1.0
    return float(rows[0][spec["column"]]) / whole * float(spec.get("scale", 1))


def mean_distance(rows: list[dict[str, str]], column: str, one: str, other: str) -> float:
    """Return the mean absolute difference of `value` between two values of a column, over the cells that both have."""
    skipped = {column, "value", "low", "high", "votes", "ours", "verdict", "fit"}
    cells: dict[str, dict[Row, float]] = {one: {}, other: {}}
    for row in rows:
        if row[column] in cells:
            cells[row[column]][tuple(v for k, v in row.items() if k not in skipped)] = float(row["value"])
    both = cells[one].keys() & cells[other].keys()
    if not both:
        raise SystemExit(f"No cell has both {column} = {one!r} and {column} = {other!r}: the run lacks one of them.")
    return sum(abs(cells[one][cell] - cells[other][cell]) for cell in both) / len(both)


def figure_row(paper: str, item: Entry, figure: Entry, run: Entry, folder: Path) -> Row:
    """Return the row of a figure, as this run has it."""
    printed = figure.get("printed", "-")
    if isinstance(printed, dict):
        printed = value_of(folder, {**figure, **printed})
    cells = [shown_value(cell, figure.get("digits", 1)) for cell in (printed, value_of(folder, figure))]
    return paper, item["item"], figure["what"], *cells, run["from"], figure_verdict(item, figure, *cells)


def figure_verdict(item: Entry, figure: Entry, printed: str, here: str) -> str:
    """Return the verdict of one figure: whether it is the printed one, else by how much it is off, or why."""
    if printed == "-":
        return "not printed"
    if item["verdict"] == "fitted":
        off = f"{abs(float(here) - float(printed)):.{figure.get('digits', 1)}f}"
        return "met" if printed == here else f"off by {off}"
    return "same" if printed == here else f"differs because {reason_of(item, figure)}"


def reason_of(item: Entry, figure: Entry) -> str:
    """Return the first clause of an item's reason, or the one of the figure itself."""
    why = figure.get("because") or item.get("why", "")
    if not why:
        raise SystemExit(f"{item['item']}, {figure['what']}: it is not the printed one, and nothing says why.")
    return str(why.split(";")[0])


def shown_value(value: float | str, digits: int) -> str:
    """Return a number as text, without a sign where it is 0."""
    return value if isinstance(value, str) else f"{round(value, digits) + 0.0:.{digits}f}"


def committed_rows(page: str) -> dict[Row, Row]:
    """Return the rows of figures of a page, by what names them."""
    lines = page.partition(BEGIN)[2].splitlines()[2:]
    rows = [tuple(cell.strip() for cell in line.strip("| ").split(" | ")) for line in lines if line.startswith("|")]
    return {row[:KEY]: row for row in rows}


def settled(new: Row, old: Row | None) -> Row:
    """Return the old row where the new one is within one unit of its last digit."""
    if old is None or new[KEY] != old[KEY]:
        return new
    unit = 10.0 ** -len(new[KEY + 1].partition(".")[2])
    near = abs(float(new[KEY + 1]) - float(old[KEY + 1])) < unit * 1.5 and unit < 1
    return (*new[: KEY + 1], old[KEY + 1], *new[KEY + 2 :]) if near else new


def faults(item: Entry, run: Entry, rows: list[Row], folder: Path) -> Iterator[str]:
    """Yield what an item promises and its run does not hold."""
    for name in item.get("files", ()):
        if not (folder / name).is_file():
            yield f"{item['item']}: no file {name}"
    for figure, row in zip(item.get("figures", ()), rows, strict=True):
        aim = 0.0 if row[KEY] == "-" else float(row[KEY])
        if "within" in figure and abs(aim - float(row[KEY + 1])) > figure["within"] + 1e-9:
            yield f"{item['item']}, {figure['what']}: {row[KEY + 1]} is further than {figure['within']} from {aim}"
    if run["from"] == SIMULATED:
        tables = (path for path in folder.rglob("*.md") if "simulated" not in path.read_text(encoding="utf-8").lower())
        yield from (f"{path.relative_to(folder)} does not say that its votes are simulated" for path in tables)


def shown_command(item: Entry, run: Entry) -> str:
    """Return the command of an item as a user types it."""
    command: str = item.get("command") or run.get("command", "")
    shown = command.replace(" --out {out}", "").replace(" --jobs 2", "").replace("{texts}/", "")
    return f"`{shown}`" if shown else "-"


def shown_verdict(item: Entry, run: Entry) -> str:
    """Return the verdict of an item with its reason, and that its votes are simulated where they are."""
    why = f": {item['why']}" if item.get("why") else ""
    return f"{item['verdict']}{why}{'. *Simulated votes.*' if run.get('from') == SIMULATED else ''}"


def render(papers: Papers, rows: list[Row]) -> str:
    """Return the page."""
    lines = [papers.preface.strip(), ""]
    for paper in papers.papers:
        lines += [f"## {paper['name']}", "", paper["source"], ""]
        lines += ["| item | the paper | command | verdict |", "| --- | --- | --- | --- |"]
        for item in paper["items"]:
            run = papers.run_of(item)
            cells = (item["item"], item["says"], shown_command(item, run), shown_verdict(item, run))
            lines.append(f"| {' | '.join(cells)} |")
        lines += ["", *([paper["note"].strip(), ""] if "note" in paper else [])]
    lines += [
        papers.about_figures.strip(),
        "",
        BEGIN,
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def run_all(papers: Papers, places: Mapping[str, Path], only: Container[str]) -> dict[str, Path]:
    """Run every command once and return the folders of those that could run."""
    ran = {}
    for name, run in papers.runs.items():
        here = {**places, "out": places["out"] / name}
        lacking = missing(run, here)
        if lacking or name not in only:
            why = f"{lacking} is not there" if lacking else "not asked for"
            sys.stdout.write(f"{name}: skipped, {why}; its figures stand as they were\n")
            continue
        execute(run, here)
        ran[name] = here["out"]
    return ran


def collect(papers: Papers, ran: Mapping[str, Path], old: Mapping[Row, Row]) -> tuple[list[Row], list[str]]:
    """Return the rows of figures, those of skipped commands as they were, and what is at fault."""
    rows: list[Row] = []
    wrong: list[str] = []
    for paper, item in papers.items():
        run, figures, folder = papers.run_of(item), item.get("figures", ()), ran.get(item.get("run", ""))
        if folder is None:
            keys = [(paper, item["item"], figure["what"]) for figure in figures]
            stood = [old.get(key, (*key, "-", "not run"))[KEY : KEY + 2] for key in keys]
            rows += [
                (*key, *cells, run["from"], figure_verdict(item, figure, *cells))
                for key, cells, figure in zip(keys, stood, figures, strict=True)
            ]
            continue
        new = [figure_row(paper, item, figure, run, folder) for figure in figures]
        wrong += faults(item, run, new, folder)
        rows += [settled(row, old.get(row[:KEY])) for row in new]
    return rows, list(dict.fromkeys(wrong))


def changes(old: dict[Row, Row], rows: list[Row]) -> Iterator[str]:
    """Yield a line for every figure that is new, gone or another."""
    new = {row[:KEY]: row for row in rows}
    for key in old | new:
        before, after = (result.get(key, (*key, "no figure", "no figure"))[KEY : KEY + 2] for result in (old, new))
        if before != after:
            yield f"{', '.join(key)}: was {before[1]} (printed {before[0]}), is {after[1]} (printed {after[0]})"


CELLS = "papers-cells.csv"
"""Beside the page: every cell that the papers' tables print, this run's figure and a verdict."""

CELL = ("paper", "table", "dataset", "method", "n_prompts", "calibrator", "metric", "value", "ours", "fit", "verdict")
ROOMS = {"PROBE": "probe", "CogniBench": "cognibench"}
"""The folders of the papers whose tables are stored as they are printed."""

Cell = dict[str, str]


def deep_cells(figures: Path) -> Iterator[Cell]:
    """Yield the printed cells of `deep paper` with this run's figures and verdicts; refuse one without a verdict."""
    for row in csv_rows(figures, ""):
        if row["origin"] == "published":
            if not row["verdict"]:
                raise SystemExit(f"{figures.name}: a printed figure has no verdict.")
            yield {"paper": "DEEP", **{name: row.get(name, "") for name in CELL[1:]}}


def other_cells(papers: Papers, rows: list[Row]) -> Iterator[Cell]:
    """Yield the printed cells of the other papers: as the page has them where they were measured, else why not."""
    for paper, place, method, metric, value in printed_cells():
        item = item_of(papers, paper, place)
        same = [row for row in rows if row[:2] == (paper, item["item"]) and number_of(row[KEY]) == number_of(value)]
        ours, _, verdict = (
            same[0][KEY + 1 :] if same else ("", "", f"not had because {reason_of(item, {'what': metric})}")
        )
        known = {"paper": paper, "table": place, "method": method, "metric": metric, "value": value}
        yield {**dict.fromkeys(CELL, ""), **known, "ours": ours, "verdict": verdict}


def printed_cells() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield paper, table or figure, row, column and value of the papers but DEEP."""
    stored = ROOT / "deep" / "experiments"
    fect = json.loads((stored / "fect" / "published.json").read_text(encoding="utf-8"))
    for place, metric in (("Table 2", "f1"), ("Table 4", "precision"), ("Table 5", "recall")):
        for model, cells in fect[metric].items():
            for prompt, cell in zip(fect["prompts"], cells, strict=True):
                if cell is not None:
                    yield "FECT", place, f"{model}, {prompt}", metric, str(cell[0])
    for paper, room in ROOMS.items():
        for name, table in json.loads((stored / room / "printed_tables.json").read_bytes())["tables"].items():
            for row in table["rows"]:
                if name == "figures":
                    yield paper, f"Figure {row[0]}", str(row[1]), str(row[2]), str(row[3])
                    continue
                n = 2 if table["columns"][0] == "group" else 1
                for column, cell in list(zip(table["columns"], row, strict=True))[n:]:
                    yield paper, f"Table {name[5]}", ", ".join(row[:n]), column, str(cell)


def item_of(papers: Papers, paper: str, place: str) -> Entry:
    """Return the first item of a paper whose name has a table or figure, alone or among others."""
    kind, number = place.split()
    for name, item in papers.items():
        if name == paper and item["item"].startswith(kind) and number in re.findall(r"\w+", item["item"]):
            return item
    raise SystemExit(f"{paper}: no item says anything of {place}.")


def number_of(text: str) -> float | str:
    """Return the number that a cell holds, else the cell."""
    return float(text) if re.fullmatch(r"-?[\d.]+", text) else text


def write_cells(cells: Iterable[Cell], path: Path) -> None:
    """Write the cells as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, CELL, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def main(argv: list[str] | None = None) -> int:
    """Run, write the page, print what has changed and return the status."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--items", type=Path, default=ROOT / "docs" / "papers.toml", help="what the papers hold")
    p.add_argument("--page", type=Path, default=ROOT / "docs" / "papers.md", help="the page to write")
    p.add_argument("--data", type=Path, default=DATA, help="folder of real data (default: DEEP_DATA_HOME)")
    p.add_argument("--texts", type=Path, help="folder of your copies of the papers as text (default: DATA/../papers)")
    p.add_argument("--run", nargs="*", metavar="NAME", help="run these commands alone; none: write the page anew")
    args = p.parse_args(argv)
    papers = read_papers(args.items)
    before = args.page.read_text(encoding="utf-8") if args.page.exists() else ""
    old = committed_rows(before)
    with TemporaryDirectory() as scratch:
        places = {"data": args.data, "texts": args.texts or args.data.parent / "papers", "out": Path(scratch)}
        only = papers.runs if args.run is None else args.run
        check_packages(run for name, run in papers.runs.items() if name in only)
        ran = run_all(papers, places, only)
        rows, wrong = collect(papers, ran, old)
        if "paper" in ran:
            cells = [*deep_cells(ran["paper"] / "figures.csv"), *other_cells(papers, rows)]
            write_cells(cells, args.page.with_name(CELLS))
    page = render(papers, rows)
    args.page.write_text(page, encoding="utf-8")
    wrong += changes(old, rows)
    if page != before and not wrong:
        wrong.append(f"{args.page.name} did not say what {args.items.name} says; it is written anew")
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    sys.stdout.write(f"{len(rows)} figures, {len(wrong)} changes or faults: {args.page}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
