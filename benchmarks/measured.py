"""Run the commands behind the tables of README.md and docs/results*.md, write JSON, and fill the pages from it.

    python benchmarks/measured.py --run loo-simulated transfer-llm_aggrefact
    python benchmarks/measured.py --run all [--jobs 2]     # more than an hour on two idle cores
    python benchmarks/measured.py                          # only the pages, from benchmarks/measured/*.json

Real data are looked for in DEEP_DATA_HOME. A file of benchmarks/measured holds the commands, the commit, versions,
seconds and the figures that the tables use. A table whose run is not there yet stays as its page has it.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import git, machine, short
from measured_page import PANELS, filled
from measuring import measure

Found = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(__file__).resolve().parent / "measured"
PAGES = [ROOT / name for name in ("README.md", "docs/results.md", "docs/results-tables.md")]
CODE = ("deep", "benchmarks/*.py", "pyproject.toml")
"""Figures depend on these; pages and JSON of earlier runs may have changed."""
DATA = "$DATA"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "lightgbm", "xgboost", "catboost")

AGGREFACT = "--votes $DATA/llm_aggrefact/votes.parquet --scores $DATA/llm_aggrefact/scores.parquet"
PEOPLE = "expert_mean expert_1 expert_2 expert_3 turker_1 turker_2 turker_3 turker_4 turker_5"
TABLE = {"summeval_llm": "votes_ge5.csv"}
"""The votes of a panel where they are not votes.parquet."""
TRANSFER = "python benchmarks/transfer.py"
RUNS = {
    "loo-simulated": ["loo --test all"],
    "loo-llm_aggrefact": [f"loo --test all {AGGREFACT}"],
    "loo-recipes": [f"loo --test all --compare-recipes {AGGREFACT}"],
    "loo-summedits": ["ask summedits --lexical all --out votes.parquet", "loo --test all --votes votes.parquet"],
    "transfer-llm_aggrefact": [f"{TRANSFER} {AGGREFACT}"],
    "transfer-simulated": [f"{TRANSFER} --simulated"],
    "transfer-summeval_llm": [
        f"{TRANSFER} --votes $DATA/summeval_llm/votes_ge5.csv --scores $DATA/summeval_llm/scores.csv --draws 50 "
        f"--ignore {PEOPLE}"
    ],
    **{
        f"panel-{name}": [
            f"{TRANSFER} --training-datasets 1 2 3 4 6 all --votes $DATA/{name}/{TABLE.get(name, 'votes.parquet')}"
        ]
        for name in PANELS
    },
}
"""By name of the file: commands of deep, or of a script; the last one writes results.json."""

CHAIN = (
    "ensembler",
    "n_prompts",
    "calibrator",
    "balanced_accuracy",
    "balanced_accuracy_ci",
    "ece",
    "ece_floor",
    "log_loss",
)
RIVALS = ("best_prompt", "best_judge_context", "majority")
KEPT_CHAINS = ("recommended", "recommended_chain", "recommended_paper", "oracle")


def of_loo(found: Found) -> Found:
    """Return of a leave-one-out run what the tables use."""
    return {"runs": [_of_one(run) for run in found["runs"]], "mean": found["mean"]}


def _of_one(run: Found) -> Found:
    """Return what the tables use of one held-out dataset."""
    chains = {name: run[name] and {key: run[name][key] for key in CHAIN} for name in KEPT_CHAINS}
    rivals = {
        row["kind"]: {"name": row["name"], "balanced_accuracy": row["balanced_accuracy"]}
        for row in run["baselines"]
        if row["kind"] in RIVALS
    }
    better = [
        row["b"].partition(":")[0]
        for row in run["comparisons"]
        if row["significant_datasets"] and row["difference"] > 0
    ]
    kept = {key: run[key] for key in ("test", "n_test", "prior_test", "effective_votes")}
    return {**kept, **chains, "rivals": rivals, "better_than": better}


def of_transfer(found: Found) -> Found:
    """Return what a transfer run found, less what it was asked for."""
    asked = ("schema_version", "simulated", "seed", "votes", "scores", "seconds")
    kept = {key: value for key, value in found.items() if key not in asked}
    return {"summary": kept["summary"]} if found["simulated"] else kept


KEPT: Mapping[str, Callable[[Found], Found]] = {"loo": of_loo, "transfer": of_transfer, "panel": of_transfer}
"""By first word of a name."""


def as_typed(command: str) -> str:
    """Return a command as it is typed: a script's, or one of deep."""
    return command if command.startswith(TRANSFER) else f"deep {command}"


def version_of(library: str) -> str:
    """Return the version of a library, of its CPU build where that one is installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return version(f"{library}-cpu")


def measured(name: str, data: Path, jobs: int | None) -> Found:
    """Run the commands of a name; return where, when and what was found."""
    commit, changed = git("rev-parse", "--short=12", "HEAD"), bool(git("status", "--porcelain", "-uno", "--", *CODE))
    environment = os.environ | {"PYTHONPATH": str(ROOT), "DEEP_DATA_HOME": str(data)}
    used = []
    with tempfile.TemporaryDirectory() as folder:
        for i, command in enumerate(RUNS[name]):
            words = shlex.split(command.replace(DATA, shlex.quote(str(data))))
            last = i == len(RUNS[name]) - 1
            more = ["--out", "out", *([] if jobs is None else ["--jobs", str(jobs)])] if last else []
            script = command.startswith(TRANSFER)
            called = [sys.executable, *([ROOT / words[1], *words[2:]] if script else ["-m", "deep", *words]), *more]
            used.append(measure(called, cwd=Path(folder), env=environment))
            if used[-1].status:
                raise SystemExit(f"{shlex.join(words)} ended with status {used[-1].status}")
        result = json.loads(Path(folder, "out", "results.json").read_text(encoding="utf-8").replace(str(data), DATA))
    return {
        "commands": [as_typed(command) for command in RUNS[name]],
        "commit": commit + (", with changes" if changed else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "versions": {library: version_of(library) for library in LIBRARIES},
        "seconds": round(sum(one.wall_s for one in used), 1),
        "processor_seconds": round(sum(one.processor_s for one in used), 1),
        "found": short(KEPT[name.partition("-")[0]](result), figures=6),
    }


def write(path: Path, found: Found) -> None:
    """Write a run, a line a key of the first two levels."""
    inner = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in found["found"].items())
    outer = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in found.items() if key != "found")
    path.write_text(f'{{\n{outer},\n"found": {{\n{inner}\n}}\n}}\n', encoding="utf-8")


def read(folder: Path) -> dict[str, Found]:
    """Return the runs that are there, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def main() -> int:
    """Run what is asked for, write it, fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="+", choices=[*RUNS, "all"], default=[], metavar="NAME", help=", ".join(RUNS))
    parser.add_argument("--jobs", type=int, help="processes; default: deep's")
    args = parser.parse_args()
    data = Path(os.environ.get("DEEP_DATA_HOME", ROOT.parent / "shared" / "data")).resolve()
    FOLDER.mkdir(exist_ok=True)
    for name in RUNS if "all" in args.run else args.run:
        result = measured(name, data, args.jobs)
        write(FOLDER / f"{name}.json", result)
        sys.stdout.write(f"{name}: {result['processor_seconds']:.0f} s of processor time\n")
        sys.stdout.flush()
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), read(FOLDER)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
