"""Fit and score the pool on 10^4 to 10^7 simulated rows, of 9 judges' votes and of 23 soft scores.

    python benchmarks/scores_at_scale.py [--sizes 10000 100000 1000000] [--out FILE.json]
    python benchmarks/scores_at_scale.py --proof --data "$DEEP_DATA_HOME" [--out FILE.json]

The rows are SIMULATED (seed 0): 23 scores and votes cut from them at 0.5, nine of them alone, on five datasets. Each
fit and each scoring runs in a process of its own, on one thread, on arrays in memory; processor seconds, the slope of
their logarithm over the last factor of ten, and the largest resident memory (the arrays included) are printed.

``--proof`` fits the pool on the eleven real datasets of LLM-AggreFact as they are and on weighted samples of a few
sizes m, and prints by how much log loss on all labeled rows (every dataset x class weighing the same, P of the one
fit) rises: it falls as 1 / m, which says what is left of it at the size that deep takes.
"""

import argparse
import json
import multiprocessing
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

N_SCORERS, N_VOTERS, N_DATASETS = 23, 9, 5
PRIORS = (0.8, 0.5, 0.3, 0.65, 0.9)


def simulate(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return votes, labels, datasets and scores of n rows; the scorers share half of their noise."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, N_DATASETS, n)
    labels = (rng.random(n) < np.array(PRIORS)[groups]).astype(np.int8)
    common = np.sqrt(0.5) * rng.standard_normal(n)
    skill = np.linspace(0.6, 1.6, N_SCORERS)
    scores = np.empty((n, N_SCORERS))
    for j in range(N_SCORERS):
        noise = common + np.sqrt(0.5) * rng.standard_normal(n)
        scores[:, j] = 1 / (1 + np.exp(-1.5 * (skill[j] * (labels - 0.5) + noise)))
    return (scores > 0.5).astype(np.int8), labels, np.array([f"part-{g}" for g in range(N_DATASETS)])[groups], scores


def one_run(kind: str, n: int) -> dict[str, Any]:
    """Return what fitting and scoring took in this process."""
    from deep.model import Pool

    votes, labels, groups, scores = simulate(n)
    given = {"scores": scores} if kind == "scores" else {}
    votes = votes if kind == "scores" else np.ascontiguousarray(votes[:, :N_VOTERS])
    started = time.process_time()
    pool = Pool().fit(votes, labels, groups=groups, **given)
    fitted = time.process_time()
    piece = min(n, 200_000)
    pool.score(votes[:piece], **{name: value[:piece] for name, value in given.items()})
    scored = time.process_time()
    return {
        "kind": kind,
        "rows": n,
        "fit_s": round(fitted - started, 2),
        "scored_rows_per_s": round(piece / max(scored - fitted, 1e-6)),
        "memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def slopes(found: list[dict[str, Any]]) -> dict[str, float]:
    """Return by kind how log time grows with log rows between the last two sizes."""
    result = {}
    for kind in ("votes", "scores"):
        rows = [row for row in found if row["kind"] == kind][-2:]
        if len(rows) == 2:
            time_ratio = np.log(max(rows[1]["fit_s"], 1e-2) / max(rows[0]["fit_s"], 1e-2))
            result[kind] = round(float(time_ratio / np.log(rows[1]["rows"] / rows[0]["rows"])), 2)
    return result


def draw(found: list[dict[str, Any]], axes: Any) -> None:
    """Draw processor seconds of the fit over rows, and the slope of the last factor of ten."""
    for kind, color in (("votes", "#2f6690"), ("scores", "#c8553d")):
        rows = [row for row in found if row["kind"] == kind]
        label = f"{kind} (last slope {slopes(found).get(kind, float('nan')):.2f})"
        axes.loglog([row["rows"] for row in rows], [row["fit_s"] for row in rows], "o-", color=color, label=label)
    axes.set(xlabel="rows (SIMULATED)", ylabel="processor seconds of the fit")
    axes.set_title("Pool on 9 judges' votes, and on 23 judges' scores", loc="left", fontsize=10)
    axes.grid(color="#d9dde1", linewidth=0.6)
    axes.legend(frameon=False)


def proof(data: Path, sizes: list[int]) -> list[dict[str, float]]:
    """Return by how much log loss rises where the pool is fitted on samples of real rows."""
    from deep.datasets import join_scores, read_scores, read_votes
    from deep.model import Pool
    from deep.model.pool import _sample

    tables = data / "llm_aggrefact"
    votes = read_votes(str(tables / "votes.parquet"))
    scores = join_scores(votes, read_scores([str(tables / "scores.parquet")])).scores

    def loss(most: int) -> float:
        _sample.sample_rows.__defaults__ = (most,)
        pool = Pool().fit(votes.votes, votes.labels, groups=votes.datasets, scores=scores)
        losses = []
        for name in votes.dataset_names:
            rows = votes.datasets == name
            found, y = pool.score(votes.votes[rows], scores=scores[rows]), votes.labels[rows]
            p = np.clip(found.p_uniform, 1e-6, 1 - 1e-6)
            losses.append(-(np.log(p[y == 1]).mean() + np.log1p(-p[y == 0]).mean()) / 2)
        return float(np.mean(losses))

    whole, found = loss(len(votes.labels)), []
    for most in sizes:
        rise = loss(most) - whole
        found.append({"rows": most, "rise": rise, "rise_times_rows": rise * most, "at_400000": rise * most / 400_000})
        sys.stdout.write(f"{json.dumps(found[-1])}\n")
        sys.stdout.flush()
    return found


def main() -> None:
    """Measure and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    p.add_argument("--proof", action="store_true")
    p.add_argument("--samples", type=int, nargs="+", default=[2_000, 4_000, 8_000, 16_000])
    p.add_argument("--data", type=Path, default=os.environ.get("DEEP_DATA_HOME"), help="default: $DEEP_DATA_HOME")
    p.add_argument("--out", type=Path, metavar="FILE.json")
    args = p.parse_args()
    result: dict[str, Any] = {"machine": {"cores": os.cpu_count(), "python": platform.python_version()}}
    if args.proof:
        result["proof"] = proof(args.data, args.samples)
    else:
        result["simulated"], found = True, []
        for kind in ("votes", "scores"):
            for n in args.sizes:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found.append(pool.apply(one_run, (kind, n)))
                sys.stdout.write(f"{json.dumps(found[-1])}\n")
                sys.stdout.flush()
        result |= {"runs": found, "slopes": slopes(found)}
        sys.stdout.write(f"slope of the last factor of ten: {result['slopes']}\n")
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
