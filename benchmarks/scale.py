"""Cost, memory and time at scale, from constants that this command measures: rows scored and counted, calls by files.

    python benchmarks/scale.py [--rows 1000000] [--calls 100000] [--out results.json]

One process, one thread. Rows are Arrow batches of 65,536 with 9 votes, or with 23 soft scores besides; calls go out as
batch files and come back shuffled, by `deep ask --batch-out` and `--batch-in` on a SQLite ledger, each in a process
of its own whose peak memory is read at its end; a second run with a tenth of the calls says what grows.
Below the constants stands what they come to for 10^6 and 10^8 rows, and 10^6 and 10^9 calls.
"""

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from measuring import measure

from deep.integrations.engines import BatchScorer, moments_of_batch
from deep.model import Model, fit
from deep.records import VoteMatrix

BATCH = 65_536
N_VOTERS, N_SCORERS = 9, 23
CLAIMS_A_DOCUMENT = 10
DOCUMENT = "The council met on Tuesday and voted on the budget for roads and schools. " * 20
PROMPTS = ["deep-strict-steps", "deep-key-points"]


def training(soft: bool) -> tuple[VoteMatrix, np.ndarray | None]:
    """Return votes of nine judges on four datasets, and soft scores."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 4000)
    right = rng.random((4000, N_VOTERS)) < 0.75
    votes = np.where(right, labels[:, None], 1 - labels[:, None]).astype(np.int8)
    votes[rng.random(votes.shape) < 0.1] = -1
    names = [f"judge-{j}" for j in range(N_VOTERS)]
    matrix = VoteMatrix(votes, [f"i{i}" for i in range(4000)], names, np.repeat(list("abcd"), 1000), labels)
    scores = 1 / (1 + np.exp(-(labels[:, None] - 0.5 + rng.normal(0, 1, (4000, N_SCORERS)))))
    return matrix, scores if soft else None


def model_of(soft: bool) -> Model:
    """Return a stack."""
    votes, scores = training(soft)
    return fit(votes, scores=scores, score_names=[f"s{j}" for j in range(N_SCORERS)] if soft else ())


def batch_of(model: Model) -> pa.RecordBatch:
    """Return a batch of rows of one dataset."""
    rng = np.random.default_rng(1)
    votes = rng.integers(-1, 2, (BATCH, N_VOTERS)).astype(np.int8)
    columns: dict[str, Any] = {"dataset": pa.array(["new"]).take(pa.array(np.zeros(BATCH, dtype=np.int32)))}
    columns |= {n: pa.array(v, mask=v < 0) for n, v in zip(model.voter_names, votes.T, strict=True)}
    columns |= {name: rng.random(BATCH) for name in model.score_names}
    return pa.record_batch(columns)


def rows_per_second(work: Callable[[pa.RecordBatch], object], batch: pa.RecordBatch, rows: int) -> float:
    """Return rows a processor second, after a first batch that makes tables."""
    work(batch)
    start, times = time.process_time(), max(1, rows // BATCH)
    for _ in range(times):
        work(batch)
    return times * BATCH / (time.process_time() - start)


def row_constants(rows: int) -> dict[str, float]:
    """Return how many rows a second are counted and scored."""
    result = {}
    for kind in ("votes", "scores"):
        model = model_of(kind == "scores")
        batch, n = batch_of(model), rows if kind == "votes" else rows // 4
        result[f"count_{kind}"] = rows_per_second(lambda b, model=model: moments_of_batch(model, b), batch, n)
        result[f"score_{kind}"] = rows_per_second(BatchScorer(model, streamed=True), batch, n)
    return result


def write_claims(path: Path, n: int) -> None:
    """Write claims, ten about each document."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(n):
            document = f"{i // CLAIMS_A_DOCUMENT} {DOCUMENT}"
            row = {
                "source": document,
                "claim": f"The council voted on budget {i}.",
                "example_id": str(i),
                "dataset": "d",
            }
            file.write(json.dumps({**row, "dataset": "d"}) + "\n")


def command(words: list[str]) -> tuple[dict[str, Any], float, float]:
    """Run `deep ask` in a process of its own; return its JSON, processor seconds and peak memory in MiB."""
    code = (
        "import sys; from pathlib import Path; from deep.cli import main; status = main(sys.argv[1:]);"
        "kib = Path('/proc/self/status').read_text().split('VmHWM:')[1].split()[0];"
        "sys.stderr.write(f'peak {kib}\\n'); sys.exit(status)"
    )
    used = measure([sys.executable, "-c", code, "votes", *words], keep=True)
    if used.status or used.stdout is None or used.stderr is None:
        sys.exit(f"deep ask: status {used.status}\n{used.stderr}")
    return json.loads(used.stdout), used.processor_s, float(used.stderr.split("peak ")[-1]) / 1024


def answer_all(folder: Path, back: Path) -> None:
    """Write an answer to every request, in random order within each shard."""
    rng = random.Random(0)
    for path in sorted(folder.glob("*.jsonl")):
        lines = []
        for raw in path.read_text(encoding="utf-8").splitlines():
            key = json.loads(raw)["custom_id"]
            message = {"role": "assistant", "content": "VERDICT: SUPPORTED"}
            body = {"model": "tiny", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
            body["usage"] = {"prompt_tokens": 400, "completion_tokens": 5}
            line = {"id": key[:8], "custom_id": key, "response": {"status_code": 200, "body": body}, "error": None}
            lines.append(json.dumps(line) + "\n")
        rng.shuffle(lines)
        (back / path.name).write_text("".join(lines), encoding="utf-8")


def call_constants(calls: int) -> dict[str, float]:
    """Return what so many calls by files take."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "back").mkdir()
        write_claims(here / "claims.jsonl", calls // len(PROMPTS))
        words = [
            str(here / "claims.jsonl"),
            "--prompt",
            *PROMPTS,
            "--llm",
            "tiny",
            "--base-url",
            "http://127.0.0.1:9/v1",
        ]
        words += ["--out", str(here / "votes.parquet"), "--json"]
        out, out_seconds, out_peak = command([*words, "--batch-out", str(here / "out")])
        answer_all(here / "out", here / "back")
        back, in_seconds, in_peak = command([*words, "--batch-in", str(here / "back")])
        assert (out["requests"], back["entered"], back["complete"]) == (calls, calls, True)
        shards = sum(path.stat().st_size for path in (here / "out").iterdir())
        ledger = sum(path.stat().st_size for path in here.glob("votes.ledger.sqlite*"))
        return {
            "calls": calls,
            "export_per_second": calls / out_seconds,
            "import_per_second": calls / in_seconds,
            "export_peak_mib": out_peak,
            "import_peak_mib": in_peak,
            "shard_bytes_per_call": shards / calls,
            "ledger_bytes_per_call": ledger / calls,
        }


def row_lines(found: dict[str, float]) -> list[str]:
    """Return the table of rows."""
    lines = ["| rows | votes: count + score | soft scores: count + score |", "| --- | --- | --- |"]
    for rows in (10**6, 10**8):
        cells = [rows / found[f"count_{kind}"] + rows / found[f"score_{kind}"] for kind in ("votes", "scores")]
        lines.append(f"| {rows:.0e} | {in_words(cells[0])} | {in_words(cells[1])} |")
    return lines


def call_lines(found: dict[str, float], small: dict[str, float]) -> list[str]:
    """Return the table of calls."""
    grown = found["calls"] - small["calls"]
    slopes = {
        way: max(found[f"{way}_peak_mib"] - small[f"{way}_peak_mib"], 0.0) / grown for way in ("export", "import")
    }
    head = "| calls | export | import | peak memory | batch files | ledger |"
    lines = [head, "| --- | --- | --- | --- | --- | --- |"]
    for calls in (10**6, 10**9):
        memory = max(found[f"{way}_peak_mib"] + slope * (calls - found["calls"]) for way, slope in slopes.items())
        times = " | ".join(in_words(calls / found[f"{way}_per_second"]) for way in slopes)
        sizes = " | ".join(
            f"{calls * found[f'{what}_bytes_per_call'] / 2**30:,.1f} GiB" for what in ("shard", "ledger")
        )
        lines.append(f"| {calls:.0e} | {times} | {memory / 1024:,.1f} GiB | {sizes} |")
    return lines


def in_words(seconds: float) -> str:
    """Return a time in the unit that people would use."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = row_constants(args.rows)
    small, calls = call_constants(args.calls // 10), call_constants(args.calls)
    for name, value in {**rows, **calls}.items():
        sys.stdout.write(f"{name}: {value:,.0f}\n")
    sys.stdout.write(f"export_peak_mib at {small['calls']} calls: {small['export_peak_mib']:,.0f}\n")
    sys.stdout.write(f"import_peak_mib at {small['calls']} calls: {small['import_peak_mib']:,.0f}\n\n")
    sys.stdout.write("\n".join(["processor time, one core:", "", *row_lines(rows), "", *call_lines(calls, small), ""]))
    if args.out:
        machine = {"machine": platform.platform(), "cores": os.cpu_count()}
        args.out.write_text(json.dumps({**machine, "rows": rows, "calls": [small, calls]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
