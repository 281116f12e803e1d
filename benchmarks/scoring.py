"""How fast a model scores votes: look-up in its table, against scikit-learn row by row, and DuckDB's join of files.

    python benchmarks/scoring.py [--rows 20000000] [--rows-wise 1000000] [--file-rows 2000000] [--out FILE.json]

One process, one matrix of int8 with 9 votes a row, of which a tenth are missing, in processor seconds, the best of
``--repeats``. The rival is scikit-learn's estimator with the settings that deep has; it gets fewer rows, and its rate
is per row. Its input checks are left in, as are those of the look-up, which refuses anything but -1, 0 and 1. Last,
`score_file` from one Parquet file to another, with reading, the search for an item that comes twice, and writing,
against DuckDB's join of the file with the table of `deep export --to parquet`, which searches for nothing and writes P
alone.
"""

import argparse
import json
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

import duckdb
import numpy as np
import pyarrow as pa
from pyarrow import parquet
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from deep.datasets import simulate_votes
from deep.ensembles import ENSEMBLERS
from deep.integrations.engines import export_table
from deep.model import Model, ScoreOptions, fit, score_file

N_VOTERS = 9
RIVALS = {
    "LogisticRegression": (LogisticRegression, ("C",)),
    "RandomForest": (RandomForestClassifier, ("n_estimators", "min_weight_fraction_leaf")),
}
"""What a user would pick instead, and the settings that it shares with deep's."""


def votes_of(n: int, seed: int = 0) -> np.ndarray:
    """Return n rows of 9 votes, a tenth of them missing."""
    rng = np.random.default_rng(seed)
    votes = rng.integers(0, 2, (n, N_VOTERS), dtype=np.int8)
    for start in range(0, n, 1_000_000):
        block = votes[start : start + 1_000_000]
        block[rng.random(block.shape, dtype=np.float32) < 0.1] = -1
    return votes


def best_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Return the fewest processor seconds that a call took."""
    result = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        result.append(time.process_time() - start)
    return min(result)


def rival_of(name: str) -> Any:
    """Return scikit-learn's estimator, fitted to as many of the simulated voters."""
    kind, shared = RIVALS[name]
    settings = {key: value for key, value in ENSEMBLERS[name]().get_params().items() if key in shared}
    training = simulate_votes(0)
    return kind(**settings).fit(training.votes[:, :N_VOTERS], training.labels)


def join_of(model: Model, votes: Path, out: Path) -> Callable[[], Any]:
    """Return the join of a file of votes with the table of a model, by one thread of DuckDB."""
    table = out.with_name("table.parquet")
    export_table(model, table, "parquet")
    same = " AND ".join(f'v."{name}" IS NOT DISTINCT FROM m."{name}"' for name in model.voter_names)
    select = f"SELECT dataset, item_id, m.p_consistent FROM '{votes}' v JOIN '{table}' m ON {same}"

    def join() -> None:
        with duckdb.connect(config={"threads": 1}) as database:
            database.execute(f"COPY ({select}) TO '{out}'")

    return join


def p_by_item(path: Path) -> np.ndarray:
    """Return P of a file, in the order of its items."""
    return parquet.read_table(path).sort_by("item_id")["p_consistent"].to_numpy()


def file_rates(model: Model, votes: np.ndarray, repeats: int) -> tuple[float, float]:
    """Return the rows a second from one Parquet file to another, by `score_file` and by the join."""
    n = len(votes)
    columns = {"dataset": ["news"] * n, "item_id": [f"item-{i}" for i in range(n)]}
    columns |= {
        name: pa.array(column, mask=column < 0) for name, column in zip(model.voter_names, votes.T, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        path, out, joined = (Path(folder, f"{name}.parquet") for name in ("votes", "scores", "joined"))
        parquet.write_table(pa.table(columns), path, row_group_size=1 << 18)
        ours = best_seconds(lambda: score_file(model, [str(path)], out, ScoreOptions()), repeats)
        theirs = best_seconds(join_of(model, path, joined), repeats)
        if not np.allclose(p_by_item(out), p_by_item(joined), rtol=0, atol=1e-12):
            raise SystemExit("the join is not the scored file")
        return n / ours, n / theirs


def main() -> None:
    """Fit, time and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=20_000_000, help="rows that the model scores")
    p.add_argument("--rows-wise", type=int, default=1_000_000, help="rows that the ensembler scores one by one")
    p.add_argument("--file-rows", type=int, default=2_000_000, help="rows of the file that is scored")
    p.add_argument("--ensembler", nargs="+", default=["LogisticRegression", "RandomForest"], choices=RIVALS)
    p.add_argument("--repeats", type=int, default=5, help="of which the best counts")
    p.add_argument("--out", type=Path, help="also write the rates here, as JSON")
    args = p.parse_args()
    result: list[dict[str, Any]] = []
    votes = votes_of(args.rows)
    training = simulate_votes(0)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    sys.stdout.write(f"{versions}, one thread, {N_VOTERS} votes a row\n")
    for name in args.ensembler:
        fitted = fit(training, sizes=[N_VOTERS], ensembler=name, calibrator="platt")
        model, few = fitted.adapted(votes, target="news"), votes[: args.rows_wise]
        if not np.allclose(model.score(votes), fitted.score(votes)):
            raise SystemExit(f"{name}: the adapted model is not the fitted one on its dataset")
        ours = args.rows / best_seconds(lambda model=model: model.score(votes), args.repeats)
        rival = rival_of(name)
        theirs = len(few) / best_seconds(lambda rival=rival, few=few: rival.predict_proba(few), args.repeats)
        sys.stdout.write(
            f"{name}: model.score {ours / 1e6:.1f} million rows/s; scikit-learn's predict_proba "
            f"{theirs / 1e6:.3f} million rows/s; ratio {ours / theirs:.0f}\n"
        )
        result.append({"what": f"{name}, in memory", "rival": "scikit-learn", "deep": ours, "theirs": theirs})
    ours, theirs = file_rates(model, votes[: args.file_rows], args.repeats)
    result.append({"what": "Parquet to Parquet", "rival": "DuckDB's join", "deep": ours, "theirs": theirs})
    sys.stdout.write(
        f"from Parquet to Parquet: score_file {ours / 1e6:.2f} million rows/s; DuckDB's join "
        f"{theirs / 1e6:.2f} million rows/s; ratio {ours / theirs:.2f}\n"
    )
    if args.out:
        args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
