"""Measure two commands against an older commit, turn about on an idle machine, and compare what they wrote.

    python benchmarks/halved.py --old 412039e --data "$DEEP_DATA_HOME" [--runs 3] [--only make-loo] [--out FILE.json]

The two are what `make loo` runs once it is installed, and `loo --test all` on the eleven datasets of LLM-AggreFact with
votes and scores. The old commit is checked out into a worktree of its own, which is removed; both run in this
Python, by ``PYTHONPATH``. The least wall clock and the least processor time (of all processes) of the runs count.
Afterwards `results.json` is compared with ``compare_runs.py`` to 1e-12 and to 1e-5, below which LabelModel's single
precision lay (docs/decisions/0018-label-model.md). Reports and `votes.parquet` are written by the new code only.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from measuring import measure as run

HERE = Path(__file__).resolve().parent.parent
TOLERANCES = (1e-12, 1e-5)


def commands(data: Path) -> dict[str, list[str]]:
    """Return the options of loo by the name of the command."""
    tables = data / "llm_aggrefact"
    eleven = ["--votes", str(tables / "votes.parquet"), "--scores", str(tables / "scores.parquet")]
    return {"make-loo": ["--test", "aggrefact"], "all-eleven": ["--test", "all", *eleven]}


def measure(code: Path, options: list[str], out: Path) -> tuple[float, float]:
    """Return wall clock and processor seconds of one run of the code in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(code), "OMP_NUM_THREADS": "1"}
    call = [sys.executable, "-m", "deep.experiments.loo", *options, "--out", str(out)]
    used = run(call, cwd=code, env=environment)
    if used.status:
        raise SystemExit(f"{' '.join(call)} in {code} ended with status {used.status}")
    return used.wall_s, used.processor_s


def differing(old: Path, new: Path, tolerance: float) -> int:
    """Return how many places of two results differ."""
    compare = [sys.executable, str(HERE / "benchmarks" / "compare_runs.py"), str(old), str(new)]
    done = subprocess.run(
        [*compare, "--tolerance", str(tolerance), "--skip", "*.parquet", "*.html", "*.png", "*.svg"],
        capture_output=True,
        text=True,
        check=False,
    )
    *lines, _ = done.stdout.splitlines()
    return sum(int(line.split(": ")[-1].split()[0]) if line.endswith(" more") else 1 for line in lines)


def halved(name: str, options: list[str], code: dict[str, Path], runs: int, folder: Path) -> dict[str, object]:
    """Return the figures of one command."""
    times: dict[str, list[tuple[float, float]]] = {"old": [], "new": []}
    for number in range(runs):
        for which, where in code.items():
            times[which].append(measure(where, options, folder / f"{name}-{which}"))
            wall, used = times[which][-1]
            sys.stdout.write(f"{name}, {which}, run {number + 1}: {wall:.1f} s, {used:.1f} s of processor time\n")
            sys.stdout.flush()
    least = {which: [min(values) for values in zip(*times[which], strict=True)] for which in times}
    row: dict[str, object] = {"command": name}
    for i, kind in enumerate(("wall", "processor")):
        row |= {f"{kind}_old_s": round(least["old"][i], 1), f"{kind}_new_s": round(least["new"][i], 1)}
        row[f"{kind}_ratio"] = round(least["new"][i] / least["old"][i], 3)
    for tolerance in TOLERANCES:
        row[f"places_that_differ_by_{tolerance:g}"] = differing(
            folder / f"{name}-old", folder / f"{name}-new", tolerance
        )
    return row


def main() -> None:
    """Measure, compare and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--old", default="412039e", metavar="REV")
    p.add_argument("--data", type=Path, default=os.environ.get("DEEP_DATA_HOME", "../shared/data"))
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--only", choices=("make-loo", "all-eleven"))
    p.add_argument("--out", type=Path, metavar="FILE.json")
    args = p.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as scratch:
        old = Path(scratch, "old")
        subprocess.run(["git", "-C", str(HERE), "worktree", "add", "--detach", str(old), args.old], check=True)
        try:
            for name, options in commands(args.data.resolve()).items():
                if args.only in (None, name):
                    code = {"old": old, "new": HERE}
                    found.append(halved(name, options, code, args.runs, Path(scratch)))
                    sys.stdout.write(f"{json.dumps(found[-1])}\n")
        finally:
            subprocess.run(["git", "-C", str(HERE), "worktree", "remove", "--force", str(old)], check=True)
    if args.out is not None:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "old": args.old}
        args.out.write_text(json.dumps({"machine": machine, "found": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
