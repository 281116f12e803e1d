"""How fast a model scores votes: look-up in its table, against the row-wise `predict_proba` of the same ensembler.

    python benchmarks/scoring.py [--rows 20000000] [--rows-wise 1000000] [--file-rows 2000000] [--ensembler NAME ...]

One process, one thread, one matrix of int8 with 9 votes a row, of which a tenth are missing. Both are timed in the same
run, the best of ``--repeats``; the rival gets fewer rows, and its rate is per row. Its input checks are left in, as are
those of the look-up, which refuses anything but -1, 0 and 1. Last, `score_file` from one Parquet file to another, with
reading, the search for an item that comes twice, and writing.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from deep.datasets import simulate_votes
from deep.model import Model, ScoreOptions, fit, score_file

N_VOTERS = 9


def votes_of(n: int, seed: int = 0) -> np.ndarray:
    """Return n rows of 9 votes, a tenth of them missing."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, 2, (n, N_VOTERS), dtype=np.int8)
    for start in range(0, n, 1_000_000):
        block = votes[start : start + 1_000_000]
        block[rng.random(block.shape, dtype=np.float32) < 0.1] = -1
    return votes


def best_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the shortest time that a call took."""
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def file_rate(model: Model, votes: np.ndarray, repeats: int) -> float:
    """Return how many rows a second `score_file` scores, from one Parquet file to another."""
    n = len(votes)
    columns = {"dataset": ["news"] * n, "item_id": [f"item-{i}" for i in range(n)]}
    columns |= {
        name: pa.array(column, mask=column < 0) for name, column in zip(model.voter_names, votes.T, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "votes.parquet"), Path(folder, "scores.parquet")
        parquet.write_table(pa.table(columns), path, row_group_size=1 << 18)
        return n / best_seconds(lambda: score_file(model, [str(path)], out, ScoreOptions()), repeats)


def main() -> None:
    """Fit, time and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=20_000_000, help="rows that the model scores")
    p.add_argument("--rows-wise", type=int, default=1_000_000, help="rows that the ensembler scores one by one")
    p.add_argument("--file-rows", type=int, default=2_000_000, help="rows of the file that is scored")
    p.add_argument("--ensembler", nargs="+", default=["LogisticRegression", "RandomForest"], help="to be fitted")
    p.add_argument("--repeats", type=int, default=5, help="of which the best counts")
    args = p.parse_args()
    votes = votes_of(args.rows)
    training = simulate_votes(0)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    sys.stdout.write(f"{versions}, one thread, {N_VOTERS} votes a row\n")
    for name in args.ensembler:
        model = fit(training, sizes=[N_VOTERS], ensembler=name, calibrator="platt")
        few = votes[: args.rows_wise]
        if not np.allclose(model.chain.predict(few[:10_000]), model.score(few[:10_000]), rtol=0, atol=1e-12):
            raise SystemExit(f"{name}: the table is not the chain")
        ours = args.rows / best_seconds(lambda model=model: model.score(votes), args.repeats)
        rival = model.chain.ensembler
        theirs = len(few) / best_seconds(lambda rival=rival, few=few: rival.predict_proba(few), args.repeats)
        sys.stdout.write(
            f"{name}: model.score {ours / 1e6:.1f} million rows/s; row-wise predict_proba "
            f"{theirs / 1e6:.3f} million rows/s; ratio {ours / theirs:.0f}\n"
        )
    rate = file_rate(model, votes[: args.file_rows], args.repeats)
    sys.stdout.write(f"score_file: {rate / 1e6:.2f} million rows/s from Parquet to Parquet\n")


if __name__ == "__main__":
    main()
