"""Fit and score the stack on 10^4 to 10^7 simulated rows: of 9 judges' votes, of their grades, of 23 judges' scores.

    python benchmarks/scores_at_scale.py [--sizes 10000 100000 1000000] [--kinds votes grades] [--out FILE.json]
    python benchmarks/scores_at_scale.py --parts file --earlier fits.json --picture growth.svg
    python benchmarks/scores_at_scale.py --proof --data "$DEEP_DATA_HOME" [--out FILE.json]

The rows are SIMULATED (seed 0): 23 scores; votes cut from nine of them at 0.5, and grades of five levels. Each
fit runs in a process of its own, on one thread, on arrays in memory, and so does each scoring of a Parquet file into
another (its rows come again after 200,000, their ids do not). The part ``command`` is `deep fit` on a Parquet file of
labeled votes and one of scores, each row drawn anew. Processor seconds, the slope of their logarithm over the last
factor of ten, and the largest resident memory (arrays included) are printed. ``--earlier`` adds the runs of other calls
to slopes and picture.

``--proof`` fits the stack on the eleven real datasets of LLM-AggreFact as they are and on weighted samples of a few
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
import tempfile
import time
from collections.abc import Callable, Sequence
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
    from deep.model import fit
    from deep.records import VoteMatrix

    votes, labels, groups, scores = simulate(n)
    answers = {"votes": votes, "grades": np.digitize(scores, (0.2, 0.4, 0.6, 0.8)) + 1.0, "scores": scores}[kind]
    answers = answers if kind == "scores" else np.ascontiguousarray(answers[:, :N_VOTERS])
    names, scale = [f"judge-{j}" for j in range(answers.shape[1])], {"grades": "1-5", "scores": "unit"}.get(kind)
    scales = None if scale is None else [scale] * len(names)
    matrix = VoteMatrix(answers, [f"i{i}" for i in range(n)], names, groups, labels, scales=scales)
    started = time.process_time()
    model = fit(matrix, ensembler="Stack")
    fitted = time.process_time()
    piece = min(n, 200_000)
    model.score(matrix.rows(slice(0, piece)))
    scored = time.process_time()
    return {
        "kind": kind,
        "rows": n,
        "fit_s": round(fitted - started, 2),
        "scored_rows_per_s": round(piece / max(scored - fitted, 1e-6)),
        "memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def write_rows(kind: str, n: int, folder: str) -> None:
    """Write a table of n rows, and the model of a few."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    from deep.model import fit
    from deep.records import VoteMatrix

    votes, labels, groups, scores = simulate(6_000, seed=1)
    kept = slice(None) if kind == "scores" else slice(N_VOTERS)
    voters = [f"judge-{j}" for j in range(N_SCORERS)][kept]
    names = [f"score-{j}" for j in range(N_SCORERS)] if kind == "scores" else []
    matrix = VoteMatrix(votes[:, kept], [f"i{i}" for i in range(6_000)], voters, groups, labels)
    fit(matrix, scores=scores if names else None, score_names=names, ensembler="Stack").save(Path(folder, "model.json"))
    votes, _, groups, scores = simulate(min(n, 200_000))
    columns = {
        "dataset": groups.tolist(),
        **dict(zip(voters, votes.T, strict=False)),
        **dict(zip(names, scores.T, strict=False)),
    }
    table = pa.table(columns)
    with parquet.ParquetWriter(
        Path(folder, "rows.parquet"), table.schema.append(pa.field("item_id", pa.string()))
    ) as file:
        for start in range(0, n, len(table)):
            rows = table.slice(0, n - start)
            numbers = pa.array(np.arange(start, start + len(rows))).cast(pa.string())
            file.write_table(rows.append_column("item_id", compute.binary_join_element_wise("item", numbers, "-")))


def score_rows(kind: str, n: int, folder: str) -> dict[str, Any]:
    """Return the cost of scoring that file, in this process."""
    from deep.model import ScoreOptions, load, score_file

    model, path = load(Path(folder, "model.json")), str(Path(folder, "rows.parquet"))
    started = time.process_time()
    result = score_file(model, [path], Path(folder, "out.parquet"), ScoreOptions(), [path] if kind == "scores" else [])
    seconds = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    assert result.n == n
    return {"file_s": round(seconds, 2), "file_rows_per_s": round(n / seconds), "file_memory_gb": round(memory, 2)}


def write_labeled(kind: str, n: int, folder: str) -> None:
    """Write tables of n labeled rows: one of votes, and one of scores."""
    import pyarrow as pa
    from pyarrow import compute, parquet

    files: dict[str, parquet.ParquetWriter] = {}
    for start in range(0, n, 200_000):
        votes, labels, groups, scores = simulate(min(n - start, 200_000), seed=start // 200_000)
        numbers = pa.array(np.arange(start, start + len(labels))).cast(pa.string())
        keys = {"dataset": groups.tolist(), "item_id": compute.binary_join_element_wise("item", numbers, "-")}
        n_voters = N_SCORERS if kind == "scores" else N_VOTERS
        tables = {"votes": {"label": labels} | {f"judge-{j}": votes[:, j] for j in range(n_voters)}}
        if kind == "scores":
            tables["scores"] = {f"score-{j}": scores[:, j] for j in range(N_SCORERS)}
        for name, columns in tables.items():
            table = pa.table(keys | columns)
            if name not in files:
                files[name] = parquet.ParquetWriter(Path(folder, f"{name}.parquet"), table.schema)
            files[name].write_table(table)
    for file in files.values():
        file.close()


def fit_command(kind: str, folder: str) -> dict[str, Any]:
    """Return what `deep fit` on those tables takes in this process."""
    from deep.cli import main as deep

    votes, scores, out = (str(Path(folder, name)) for name in ("votes.parquet", "scores.parquet", "fitted.json"))
    started, wall = time.process_time(), time.monotonic()
    status = deep(["fit", votes, *(["--scores", scores] if kind == "scores" else []), "--out", out, "--jobs", "1"])
    assert status == 0
    return {
        "command_s": round(time.process_time() - started, 2),
        "command_wall_s": round(time.monotonic() - wall, 2),
        "command_memory_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def alone(work: Callable[..., Any], *given: Any) -> Any:
    """Return the result of a call in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)


def measured(kind: str, n: int, parts: Sequence[str]) -> dict[str, Any]:
    """Return the cost of one size."""
    result = {"kind": kind, "rows": n}
    if "fit" in parts:
        result |= alone(one_run, kind, n)
    if "file" in parts:
        with tempfile.TemporaryDirectory() as folder:
            alone(write_rows, kind, n, folder)
            result |= alone(score_rows, kind, n, folder)
    if "command" in parts:
        with tempfile.TemporaryDirectory() as folder:
            alone(write_labeled, kind, n, folder)
            result |= alone(fit_command, kind, folder)
    return result


def together(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs with those of one kind and size merged, by size."""
    merged: dict[tuple[str, int], dict[str, Any]] = {}
    for run in found:
        merged.setdefault((run["kind"], run["rows"]), {}).update(run)
    return [merged[key] for key in sorted(merged, key=lambda key: (key[0] != "votes", key[1]))]


def slopes(found: list[dict[str, Any]], what: str = "fit_s") -> dict[str, float]:
    """Return by kind how log time grows with log rows between the last two sizes."""
    result = {}
    for kind in ("votes", "scores"):
        rows = [row for row in found if row["kind"] == kind and what in row][-2:]
        if len(rows) == 2:
            time_ratio = np.log(max(rows[1][what], 1e-2) / max(rows[0][what], 1e-2))
            result[kind] = round(float(time_ratio / np.log(rows[1]["rows"] / rows[0]["rows"])), 2)
    return result


def draw(found: list[dict[str, Any]], axes: Any) -> None:
    """Draw processor seconds of fits and of files scored over rows, and the slopes of the last factor of ten."""
    for kind, color in (("votes", "#2f6690"), ("scores", "#c8553d")):
        for what, message, style in (("fit_s", "fit", "o-"), ("file_s", "file scored", "s--")):
            rows = [row for row in found if row["kind"] == kind and what in row]
            if rows:
                label = f"{kind}: {message} (last slope {slopes(found, what).get(kind, float('nan')):.2f})"
                axes.loglog([row["rows"] for row in rows], [row[what] for row in rows], style, color=color, label=label)
    axes.set(xlabel="rows (SIMULATED)", ylabel="processor seconds")
    axes.set_title("Stack on 9 judges' votes, and on 23 judges' scores", loc="left", fontsize=10)
    axes.grid(color="#d9dde1", linewidth=0.6)
    axes.legend(frameon=False)


def draw_alone(found: list[dict[str, Any]], path: Path) -> None:
    """Draw the growth into a file of its own."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    draw(found, figure.subplots())
    with rc_context({"svg.hashsalt": "deep"}):
        figure.savefig(path, metadata={"Date": None})


def proof(data: Path, sizes: list[int]) -> list[dict[str, float]]:
    """Return by how much log loss rises where the stack is fitted on samples of real rows."""
    from deep.datasets import join_scores, read_scores, read_votes
    from deep.model import fit, sample_rows

    tables = data / "llm_aggrefact"
    votes = read_votes(str(tables / "votes.parquet"))
    scores = join_scores(votes, read_scores([str(tables / "scores.parquet")]))

    def loss(most: int) -> float:
        sample_rows.__defaults__ = (most,)
        model = fit(votes, scores=scores.scores, score_names=scores.score_names, ensembler="Stack")
        losses = []
        for name in votes.dataset_names:
            rows = votes.datasets == name
            result, y = model.scores_of(votes.rows(rows), scores=scores.scores[rows]), votes.labels[rows]
            p = np.clip(result.p_uniform, 1e-6, 1 - 1e-6)
            losses.append(-(np.log(p[y == 1]).mean() + np.log1p(-p[y == 0]).mean()) / 2)
        return float(np.mean(losses))

    whole, result = loss(len(votes.labels)), []
    for most in sizes:
        rise = loss(most) - whole
        result.append({"rows": most, "rise": rise, "rise_times_rows": rise * most, "at_400000": rise * most / 400_000})
        sys.stdout.write(f"{json.dumps(result[-1])}\n")
        sys.stdout.flush()
    return result


def main() -> None:
    """Measure and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--sizes", type=int, nargs="*", default=[10_000, 100_000, 1_000_000, 10_000_000])
    p.add_argument("--proof", action="store_true")
    p.add_argument("--samples", type=int, nargs="+", default=[2_000, 4_000, 8_000, 16_000])
    p.add_argument("--data", type=Path, default=os.environ.get("DEEP_DATA_HOME"), help="default: $DEEP_DATA_HOME")
    p.add_argument("--kinds", nargs="+", default=["votes", "scores"], choices=["votes", "grades", "scores"])
    p.add_argument("--parts", nargs="+", default=["fit", "file"], choices=["command", "file", "fit"])
    p.add_argument("--earlier", type=Path, nargs="+", default=[], metavar="FILE.json")
    p.add_argument("--picture", type=Path, metavar="FILE.svg")
    p.add_argument("--out", type=Path, metavar="FILE.json")
    args = p.parse_args()
    result: dict[str, Any] = {"machine": {"cores": os.cpu_count(), "python": platform.python_version()}}
    if args.proof:
        result["proof"] = proof(args.data, args.samples)
    else:
        outcome = [run for path in args.earlier for run in json.loads(path.read_text())["runs"]]
        for kind in args.kinds:
            for n in args.sizes:
                outcome.append(measured(kind, n, args.parts))
                sys.stdout.write(f"{json.dumps(outcome[-1])}\n")
                sys.stdout.flush()
        outcome = together(outcome)
        result |= {
            "simulated": True,
            "runs": outcome,
            "slopes": slopes(outcome),
            "file_slopes": slopes(outcome, "file_s"),
        }
        sys.stdout.write(f"slopes of the last factor of ten: fit {result['slopes']}, file {result['file_slopes']}\n")
        if args.picture is not None:
            draw_alone(outcome, args.picture)
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
