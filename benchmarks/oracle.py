"""What deep does, seen from outside: store it for a checkout, and compare two stores number by number.

    python benchmarks/oracle.py store FOLDER [--tree CHECKOUT] [--jobs 2] [--only GLOB ...]
    python benchmarks/oracle.py compare OLD NEW [--tolerance 1e-9] [--skip GLOB ...]

``store`` runs every command of `oracle.toml`, each in a process of its own with the checkout in front of PYTHONPATH:
on real panels below DEEP_DATA_HOME (default ``../shared/data``; a panel that is missing is left out, and said to be),
on the simulated votes and on ``examples/``. It keeps output, errors, status and the files that the commands wrote, and
``--help`` of every command that ``deep --help`` leads to. Nothing of deep is imported here, so that any commit can be
stored by the same cases::

    git worktree add ../before 8991e5d
    python benchmarks/oracle.py store build/old --tree ../before
    python benchmarks/oracle.py store build/new
    python benchmarks/oracle.py compare build/old build/new

``compare`` takes any two folders that the same commands wrote into. Every file is read as what it holds: JSON and JSON
lines by key path, CSV and Parquet cell by cell (of Parquet the types and deep's metadata too), other text line by line,
anything else byte by byte. Numbers may differ by the tolerance, above 1 in proportion to the old one, in text too;
whole numbers and all else must be equal. What cannot be the same in two runs is passed over: `IGNORED_KEYS` as a key or
a column, `IGNORED_TEXT` inside text. Differences are printed by case, with the largest deviation of a number. The
status is 0 where nothing differs, 1 where something does, 2 where there is nothing to compare.
"""

import argparse
import csv
import hashlib
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]

SHOWN = 20
"""Differences of one file that are printed."""

IGNORED_KEYS = {
    "base_url": "a test server has another port each time",
    "checksum": "of a model file, over its date",
    "created": "when a model was fitted",
    "seconds": "how long something took",
    "seconds_median": "the same",
    "seconds_p95": "the same",
    "versions": "the libraries installed, in a model file",
}
"""Keys of JSON and columns of tables that are passed over, with all below them, and why."""

IGNORED_TEXT = {
    r"\b[0-9a-f]{64}\b": "the digest of a file that holds a date, such as a model's",
    r"[^\s'\"=]*/(?=(?:examples|inputs)/)": "where a checkout or a store lies",
    r"(?<=127\.0\.0\.1:)\d+": "the port of a test server",
    r"\b\d+(\.\d+)? (ms|s|seconds)(?=$|[\s,.;:)|])": "how long something took",
    r"((?<=\$\d\.\d{4})|(?<=unknown)) +\d+\.\d\d +\d+\.\d\d *$": "how long answers took, in `deep ask report`",
}
"""Patterns in text that are passed over, and why."""

NUMBER = re.compile(r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)")
PASSED_OVER = re.compile("|".join(IGNORED_TEXT))
TEXTS = {
    ".csv",
    ".err",
    ".html",
    ".json",
    ".jsonl",
    ".log",
    ".md",
    ".out",
    ".py",
    ".sql",
    ".status",
    ".svg",
    ".toml",
    ".txt",
}

UNCOMPARED = ("*.sqlite", "*.sqlite-*", "*.png", "inputs/*")
"""Files that are not compared: ledgers, pictures whose bytes hang on the fonts, and what the store itself wrote."""

Leaf = tuple[str, Any]
"""A place in a file, and the single value there."""


def leaves(value: Any, where: str = "") -> Iterator[Leaf]:
    """Yield what a value holds, by its path; text that is JSON is read as such."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except ValueError:
            yield where, value
            return
    if isinstance(value, dict):
        yield f"{where} keys", sorted(map(str, value))
        for key, inner in value.items():
            if key not in IGNORED_KEYS:
                yield from leaves(inner, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        yield f"{where} length", len(value)
        for number, inner in enumerate(value):
            yield from leaves(inner, f"{where}[{number}]")
    else:
        yield where, value


def read_text(path: Path) -> Iterator[Leaf]:
    """Yield the values of JSON, or the lines, each as JSON where it is."""
    text = path.read_text(encoding="utf-8")
    try:
        yield from leaves(json.loads(text), "$")
    except ValueError:
        lines = text.split("\n")
        yield "lines", len(lines)
        for number, line in enumerate(lines, start=1):
            yield from leaves(line, f"line {number}")


def read_csv(path: Path) -> Iterator[Leaf]:
    """Yield every cell, by row and column."""
    header, *rows = csv.reader(StringIO(path.read_text(encoding="utf-8"), newline=""))
    yield from leaves(header, "columns")
    yield "rows", len(rows)
    for number, row in enumerate(rows, start=1):
        for name, cell in zip(header, row, strict=True):
            if name not in IGNORED_KEYS:
                yield from leaves(cell, f"row {number}, {name}")


def read_parquet(path: Path) -> Iterator[Leaf]:
    """Yield types, deep's metadata and every cell."""
    table = pq.read_table(path)
    yield from leaves([f"{field.name}: {field.type}" for field in table.schema], "schema")
    yield from leaves((table.schema.metadata or {}).get(b"deep", b"").decode(), "metadata")
    yield "rows", table.num_rows
    for name in table.column_names:
        if name not in IGNORED_KEYS:
            for number, cell in enumerate(table[name].to_pylist()):
                yield from leaves(cell, f"row {number}, {name}")


def read_bytes(path: Path) -> Iterator[Leaf]:
    """Yield one value that stands for the whole file."""
    yield "SHA-256", hashlib.sha256(path.read_bytes()).hexdigest()


def reader_of(path: Path) -> Callable[[Path], Iterator[Leaf]]:
    """Return what reads a file of this name."""
    special = {".csv": read_csv, ".parquet": read_parquet}
    return special.get(path.suffix, read_text if path.suffix in TEXTS else read_bytes)


def close(old: float, new: float, tolerance: float) -> bool:
    """Tell whether two numbers are the same but for the tolerance."""
    if not (math.isfinite(old) and math.isfinite(new)):
        return old == new or (math.isnan(old) and math.isnan(new))
    return abs(old - new) <= tolerance * max(1.0, abs(old))


def same_text(old: str, new: str, tolerance: float) -> bool:
    """Tell whether two texts are the same but for what is passed over, and for numbers that are close."""
    if old == new:
        return True
    parts = [NUMBER.split(PASSED_OVER.sub("_", text)) for text in (old, new)]
    if len(parts[0]) != len(parts[1]):
        return False
    for ours, theirs in zip(*parts, strict=True):
        if ours == theirs:
            continue
        if not (NUMBER.fullmatch(ours) and NUMBER.fullmatch(theirs)) or (_is_whole(ours) and _is_whole(theirs)):
            return False
        if not close(float(ours), float(theirs), tolerance) or not math.isfinite(float(ours)):
            return False  # digits of a hash can look like a number beyond all bounds
    return True


def _is_whole(number: str) -> bool:
    return number.lstrip("-").isdigit()


def same(old: Any, new: Any, tolerance: float) -> bool:
    """Tell whether two values are the same."""
    if isinstance(old, str) and isinstance(new, str):
        return same_text(old, new, tolerance)
    if isinstance(old, float) or isinstance(new, float):
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (old, new))
        return numbers and close(float(old), float(new), tolerance)
    return type(old) is type(new) and bool(old == new)


def differences(old: Path, new: Path, tolerance: float) -> Iterator[str]:
    """Yield a line for every difference of two files: where, old, new."""
    read = reader_of(old)
    try:
        before, after = dict(read(old)), dict(read(new))
    except (ValueError, OSError):  # not what its name says
        before, after = dict(read_bytes(old)), dict(read_bytes(new))
    for where in before | after:
        if where not in after:
            yield f"{where}: {_shown(before[where])} -> nothing"
        elif where not in before:
            yield f"{where}: nothing -> {_shown(after[where])}"
        elif not same(before[where], after[where], tolerance):
            yield f"{where}: {_shown(before[where])} -> {_shown(after[where])}"


def _shown(value: Any, limit: int = 160) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def files_of(folder: Path, skip: list[str]) -> set[Path]:
    """Return the files below a folder, relative to it, less those that are to be left out."""
    result = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    left_out = [*skip, *UNCOMPARED]
    return {path for path in result if not any(fnmatch(path.as_posix(), pattern) for pattern in left_out)}


def compare(args: argparse.Namespace) -> int:
    """Compare, print the differences by case, and return the status."""
    ours, theirs = files_of(args.old, args.skip), files_of(args.new, args.skip)
    by_case: dict[str, list[str]] = {}
    for path in sorted(ours | theirs):
        if path in ours & theirs:
            lines = list(differences(args.old / path, args.new / path, args.tolerance))
        else:
            lines = [f"only in {args.old if path in ours else args.new}"]
        if lines:
            more = [f"{len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
            by_case.setdefault(path.parts[0], []).extend(f"{path}: {line}" for line in [*lines[:SHOWN], *more])
            if largest := max(map(deviation, lines)):
                by_case[path.parts[0]].append(f"{path}: largest deviation of a number {largest:.3g}")
    for case, lines in by_case.items():
        sys.stdout.write("\n".join([f"== {case}", *lines, ""]))
    sys.stdout.write(f"{len(ours | theirs)} files compared; cases that differ: {', '.join(by_case) or 'none'}\n")
    return 2 if not ours | theirs else int(bool(by_case))


def deviation(line: str) -> float:
    """Return by how much the numbers of a difference's two sides deviate, 0 where they are not numbers alike."""
    old, _, new = line.partition(" -> ")
    sides = [[float(number) for number in NUMBER.findall(side)] for side in (old.partition(": ")[2], new)]
    return (
        max((abs(a - b) for a, b in zip(*sides, strict=True)), default=0.0) if len(sides[0]) == len(sides[1]) else 0.0
    )


def frame_of(path: Path) -> pd.DataFrame:
    """Return a table of votes or scores."""
    return pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)


def write_panel(
    folder: Path, data: Path, votes: str, target: str, rows: int, scores: str = "", n_labels: int = 60
) -> None:
    """Write a panel in the parts that regimes are fitted on: `rows` of each dataset, and the target without labels."""
    folder.mkdir(parents=True)
    table = frame_of(data / votes).groupby("dataset", sort=False).head(rows)
    mine = table["dataset"] == target
    others = list(dict.fromkeys(table["dataset"][~mine]))
    parts = {
        "all": table,
        "many": table[~mine],
        "two": table[table["dataset"].isin(others[:2])],
        "one": table[table["dataset"].isin(others[:1])],
        "target": table[mine].assign(label=pd.array([pd.NA] * int(mine.sum()), dtype="Int64")),
    }
    for name, part in parts.items():
        if len(part):
            part.to_csv(folder / f"{name}.csv", index=False)
    drawn = table[mine].sample(min(n_labels, int(mine.sum()) // 2), random_state=0)
    drawn[["dataset", "item_id", "label"]].to_csv(folder / "labels.csv", index=False)
    if scores:
        beside = frame_of(data / scores).merge(table[["dataset", "item_id"]], on=["dataset", "item_id"])
        beside.drop(columns="label").to_csv(folder / "scores.csv", index=False)


def cases_of(table: dict[str, Any], panels: list[str]) -> dict[str, list[str]]:
    """Return the commands of every case by its name: those of a regime once for each of its panels."""
    cases = {name: case["run"].strip().splitlines() for name, case in table["case"].items()}
    for name, regime in table["regime"].items():
        for panel in regime.get("panels", panels):
            if panel in panels:
                lines = regime["run"].strip().splitlines() + table["after_fit"].strip().splitlines()
                # PANEL last, for it stands in the others.
                words = {"FIT": regime.get("fit", ""), "WITH": regime.get("with", ""), "PANEL": f"../inputs/{panel}"}
                for key, value in words.items():
                    lines = [line.replace(f"${key}", value) for line in lines]
                cases[f"{panel}-{name}"] = lines
    return cases


def write_metadata(folder: Path, tree: Path) -> None:
    """Write the metadata of a checkout: the environment's may be another commit's, with other entry points."""
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    lines = [line for group, of in groups.items() for line in (f"[{group}]", *(f"{k} = {v}" for k, v in of.items()))]
    (version,) = re.findall(
        r'^__version__ = "(.+)"$', (tree / "deep" / "__init__.py").read_text(encoding="utf-8"), re.M
    )
    info = folder / f"deep_judges-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))


def environment(args: argparse.Namespace, port: int = 0) -> dict[str, str]:
    """Return the variables that every command runs with: the checkout in front, and nothing of the user's own."""
    kept = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "TMPDIR", "DEEP_DATA_HOME")}
    local = {"OPENAI_API_KEY": "unused", "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "PORT": str(port)}
    width = {"COLUMNS": "120", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    path = os.pathsep.join([str(args.folder / "inputs" / "metadata"), str(args.tree)])
    return kept | local | width | {"PYTHONPATH": path, "PYTHON": sys.executable, "TREE": str(args.tree)}


def run_line(line: str, where: Path, env: dict[str, str]) -> tuple[str, str, int]:
    """Run a line of a shell in which `deep` is the checkout's, and return what it wrote and its status."""
    deep = f'deep() {{ "$PYTHON" -m deep "$@"; }}; python() {{ "$PYTHON" "$@"; }}; HERE={Path(__file__).parent}\n'
    done = subprocess.run(["bash", "-c", deep + line], cwd=where, env=env, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr, done.returncode


def store_case(name: str, lines: list[str], args: argparse.Namespace) -> None:
    """Run the commands of a case in a folder of its own; one that begins with & serves until the others are done."""
    folder = args.folder / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        env = environment(args, free.getsockname()[1])
    servers = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("&"):
            words = [word.replace("$PORT", env["PORT"]) for word in line[1:].split()]
            servers.append(subprocess.Popen([sys.executable, *words], env=env, cwd=args.tree, stdout=subprocess.PIPE))
            wait_for(int(env["PORT"]))
            continue
        out, err, status = run_line(line, folder, env)
        err = re.sub(r"(?m)^(.*requests/s .*|judging \d+/.*)\n", "", err)  # progress, a line now and then
        text = f"$ {line}\nstatus {status}\n{out}\n--- errors\n{err}"
        (folder / f"{number:02}.txt").write_text(text, encoding="utf-8")
    for server in servers:
        server.kill()
        server.communicate()
    for path in folder.rglob("*"):
        if path.suffix in TEXTS:  # where things lie may differ
            text = path.read_text(encoding="utf-8").replace(str(args.folder), "STORE").replace(str(args.tree), "TREE")
            path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{name}: {len(lines)} commands\n")
    sys.stdout.flush()


def wait_for(port: int) -> None:
    """Wait until a server of this machine answers."""
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"no server came up on port {port}")


def store_help(args: argparse.Namespace) -> None:
    """Store `--help` of every command that others' help names."""
    folder = args.folder / "help"
    folder.mkdir(exist_ok=True)
    waiting = [()]
    while waiting:
        words: tuple[str, ...] = waiting.pop()
        out, err, status = run_line(f"deep {' '.join(words)} --help", folder, environment(args))
        (folder / f"{'-'.join(('deep', *words))}.txt").write_text(f"status {status}\n{out}{err}", encoding="utf-8")
        if not words:
            waiting = [(name,) for name in re.findall(r"^  ([a-z]+)  +\S", out, re.M)]
        elif len(words) == 1:
            listed = re.findall(rf"^  deep {words[0]} ([a-z-]+):", out, re.M)
            choices = re.search(r"\[-h\] ((?:[a-z-]+ \| )+[a-z-]+)", " ".join(out.split()))
            listed += choices[1].split(" | ") if choices else []
            waiting += [(*words, name) for name in dict.fromkeys(listed)]


def store(args: argparse.Namespace) -> int:
    """Write the panels, run all cases, and return the status."""
    args.folder, args.tree = args.folder.resolve(), args.tree.resolve()
    args.folder.mkdir(parents=True, exist_ok=True)
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    panels = []
    for name, panel in table["panel"].items():
        if (args.data / panel["votes"]).exists():
            if not (args.folder / "inputs" / name).exists():  # as they are where cases are run again
                write_panel(args.folder / "inputs" / name, args.data, **panel)
            panels.append(name)
        else:
            sys.stdout.write(f"{name}: left out, no {args.data / panel['votes']}\n")
    write_metadata(args.folder / "inputs" / "metadata", args.tree)
    for name, text in table["file"].items():
        (args.folder / "inputs" / name).write_text(text, encoding="utf-8")
    cases = cases_of(table, panels)
    wanted = {name for name in cases if any(fnmatch(name, pattern) for pattern in args.only)}
    with ThreadPoolExecutor(args.jobs) as pool:
        for made in [pool.submit(store_case, name, cases[name], args) for name in cases if name in wanted]:
            made.result()
    if any(fnmatch("help", pattern) for pattern in args.only):
        store_help(args)
    return 0


def main() -> int:
    """Store or compare."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = p.add_subparsers(required=True)
    one = ways.add_parser("store", help="run every case and keep what it gives")
    one.add_argument("folder", type=Path, metavar="FOLDER", help="where each case gets a folder")
    one.add_argument("--tree", type=Path, default=ROOT, help="the checkout to run (default: this one)")
    one.add_argument("--data", type=Path, default=os.environ.get("DEEP_DATA_HOME", ROOT.parent / "shared" / "data"))
    one.add_argument("--jobs", type=int, default=2, help="cases at a time (default: 2)")
    one.add_argument(
        "--only", nargs="+", default=["*"], metavar="GLOB", help="cases to run (again), such as 'summeval-*'"
    )
    one.set_defaults(run=store)
    two = ways.add_parser("compare", help="say where two folders differ")
    two.add_argument("old", type=Path, metavar="OLD", help="folder of results")
    two.add_argument("new", type=Path, metavar="NEW", help="folder of results, named alike")
    two.add_argument("--tolerance", type=float, default=1e-9, help="of floating-point numbers (default: 1e-9)")
    two.add_argument("--skip", nargs="+", default=[], metavar="GLOB", help="files to leave out, such as 'help/*'")
    two.set_defaults(run=compare)
    args = p.parse_args()
    return int(args.run(args))


if __name__ == "__main__":
    sys.exit(main())
