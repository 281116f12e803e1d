"""Hold datasets of simulated panels out, in time and memory: 38,000 rows of 12 judges, 3,500 rows of 158.

    python benchmarks/simulated_panels.py [--shapes 38000x12 3500x158] [--test all] [--out FILE.json]

The votes are simulated (seed 0): judges of balanced accuracy 0.55 to 0.85 in families that err together (a Gaussian
factor a family, and one of the row), with 2 to 30 percent of votes missing, on five datasets of unlike sizes, class
priors and difficulty. `deep loo` runs in a process of its own, whose wall clock, processor time (with that of its
workers) and largest resident memory of any one process are printed.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import ndtri

SIZES = (0.4, 0.25, 0.15, 0.12, 0.08)
PRIORS = (0.8, 0.5, 0.3, 0.65, 0.9)
FAMILIES = 6
SHARED, FAMILY = 0.25, 0.35
"""Shares of a judge's noise that are the row's and the family's."""


def simulate(n: int, k: int, seed: int = 0) -> pd.DataFrame:
    """Return a table of votes: dataset, item_id, label, and a column a judge; no vote is missing."""
    rng = np.random.default_rng(seed)
    dataset = rng.choice(len(SIZES), n, p=SIZES)
    labels = (rng.random(n) < np.array(PRIORS)[dataset]).astype(int)
    ease = np.array([0.0, 0.1, -0.1, 0.05, -0.05])[dataset]
    row, families = rng.standard_normal(n), rng.standard_normal((n, FAMILIES))
    columns = {"dataset": np.array([f"part-{d}" for d in dataset]), "item_id": [f"i{i}" for i in range(n)]}
    table: dict[str, object] = {**columns, "label": labels}
    for j in range(k):
        own = rng.standard_normal(n) * np.sqrt(1 - SHARED - FAMILY)
        noise = np.sqrt(SHARED) * row + np.sqrt(FAMILY) * families[:, j % FAMILIES] + own
        skill, lean, missing = rng.uniform(0.55, 0.85), rng.uniform(-0.1, 0.1), rng.uniform(0.02, 0.3)
        share = np.clip(np.where(labels == 1, skill + lean, 1 - skill + lean) + ease * (2 * labels - 1), 0.03, 0.97)
        votes = pd.array((noise < ndtri(share)).astype(int), dtype="Int8")
        votes[rng.random(n) < missing] = pd.NA
        table[f"judge-{j:03d}"] = votes
    return pd.DataFrame(table)


def measure(n: int, k: int, test: str, folder: Path) -> dict[str, object]:
    """Return what `deep loo` took on one panel."""
    path = folder / f"{n}x{k}.parquet"
    simulate(n, k).to_parquet(path, index=False)
    call = [sys.executable, "-m", "deep", "loo", "--test", test, "--votes", path, "--out", folder / f"{n}x{k}"]
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([str(word) for word in [*call, "--brief"]], stdout=subprocess.DEVNULL, check=False)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "rows": n,
        "judges": k,
        "status": done.returncode,
        "wall_s": round(wall, 1),
        "processor_s": round(used, 1),
        "largest_process_gb": round(after.ru_maxrss / 2**20, 2),
    }


def main() -> None:
    """Measure each panel and print a line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shapes", nargs="+", default=["38000x12", "3500x158"], metavar="NxK")
    p.add_argument("--test", default="all", help="dataset to hold out: part-0 to part-4, or all (default)")
    p.add_argument("--out", type=Path, metavar="FILE.json")
    args = p.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes:
            n, k = (int(word) for word in shape.split("x"))
            found.append(measure(n, k, args.test, Path(folder)))
            sys.stdout.write(f"{json.dumps(found[-1])}\n")
            sys.stdout.flush()
    if args.out is not None:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
        args.out.write_text(json.dumps({"machine": machine, "simulated": True, "panels": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
