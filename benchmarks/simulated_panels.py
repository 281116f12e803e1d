"""Hold datasets of simulated panels out, in time and memory: 38,000 rows of 12 judges, 3,500 rows of 158.

    python benchmarks/simulated_panels.py [--shapes 38000x12 3500x158] [--datasets 5 30] [--test all] [--out FILE.json]

The votes are simulated (seed 0): judges of balanced accuracy 0.55 to 0.85 in families that err together (a Gaussian
factor a family, and one of the row), with 2 to 30 percent of votes missing, on datasets of unlike sizes, class priors
and difficulty. `deep loo` runs in a process of its own, whose wall clock, processor time (with that of its
workers), the largest resident memory of any one process, the most of all together and the load of the machine are
printed.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from measuring import measure as run
from scipy.special import ndtri

SIZES = (0.4, 0.25, 0.15, 0.12, 0.08)
PRIORS = (0.8, 0.5, 0.3, 0.65, 0.9)
EASE = (0.0, 0.1, -0.1, 0.05, -0.05)
"""Of five datasets, by their share of the rows; of more, each fifth one is alike."""

FAMILIES = 6
SHARED, FAMILY = 0.25, 0.35
"""Shares of a judge's noise that are the row's and the family's."""


def simulate(n: int, k: int, datasets: int = 5, seed: int = 0) -> pd.DataFrame:
    """Return a table of votes: dataset, item_id, label, and a column a judge; an empty cell is no vote."""
    rng = np.random.default_rng(seed)
    kind = np.arange(datasets) % len(SIZES)
    shares = np.array(SIZES)[kind]
    dataset = rng.choice(datasets, n, p=shares / shares.sum())
    labels = (rng.random(n) < np.array(PRIORS)[kind][dataset]).astype(int)
    ease = np.array(EASE)[kind][dataset]
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


def measure(n: int, k: int, datasets: int, test: str, folder: Path) -> dict[str, object]:
    """Return what `deep loo` took on one panel."""
    path = folder / f"{n}x{k}.parquet"
    simulate(n, k, datasets).to_parquet(path, index=False)
    call = [sys.executable, "-m", "deep", "loo", "--test", test, "--votes", path, "--out", folder / f"{n}x{k}"]
    used = run([str(word) for word in [*call, "--brief"]])
    return {
        "rows": n,
        "judges": k,
        "datasets": datasets,
        "held_out": test,
        "status": used.status,
        "wall_s": round(used.wall_s, 1),
        "processor_s": round(used.processor_s, 1),
        "largest_process_gb": round(used.largest_process_gb, 2),
        "all_processes_gb": round(used.all_processes_gb, 2),
        "load": round(os.getloadavg()[0], 1),
    }


def main() -> None:
    """Measure each panel and print a line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--shapes", nargs="+", default=["38000x12", "3500x158"], metavar="NxK")
    p.add_argument("--datasets", nargs="+", type=int, default=[5], metavar="N", help="numbers of datasets (default: 5)")
    p.add_argument("--test", default="all", help="dataset to hold out: part-0 and on, or all (default)")
    p.add_argument("--out", type=Path, metavar="FILE.json")
    args = p.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in args.shapes:
            for datasets in args.datasets:
                n, k = (int(word) for word in shape.split("x"))
                found.append(measure(n, k, datasets, args.test, Path(folder)))
                sys.stdout.write(f"{json.dumps(found[-1])}\n")
                sys.stdout.flush()
    if args.out is not None:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "system": platform.system()}
        args.out.write_text(json.dumps({"machine": machine, "simulated": True, "panels": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
