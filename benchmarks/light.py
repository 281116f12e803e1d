"""What `deep score` of one text costs, by a model of lexical checks: processor seconds and peak memory.

    python benchmarks/light.py [--repeats 5]

The model is fitted first, on the votes of lexical checks on ``examples/claims.csv``. Then the command and an empty
Python run alternately, each in a process of its own; the least of the repeats counts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLAIMS = Path(__file__).parent.parent / "examples" / "claims.csv"
TEXT = ["--source-text", "It rained in Paris on 3 May, for 12 hours.", "--claim-text", "It rained for 12 hours."]


def cost(words: list[str]) -> tuple[float, float]:
    """Return the processor seconds and the peak memory, in MB, of a Python process."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(words)} ended with status {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Fit, run and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=5, help="of which the least counts")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        votes, model = f"{folder}/votes.parquet", f"{folder}/model.json"
        cost(["-m", "deep", "votes", str(CLAIMS), "--lexical", "all", "--out", votes])
        fit = ["-m", "deep", "fit", votes, "--exclude", "weather", "--sizes", "3", "--out", model]
        cost([*fit, "--ensembler", "LogisticRegression"])
        pairs = [(cost(["-m", "deep", "score", model, *TEXT]), cost(["-c", "pass"])) for _ in range(args.repeats)]
    seconds, memory = (min(score[i] for score, _ in pairs) for i in (0, 1))
    empty_seconds, empty_memory = (min(empty[i] for _, empty in pairs) for i in (0, 1))
    sys.stdout.write(
        f"deep score of one text: {seconds:.2f} processor seconds, {memory:.0f} MB at most\n"
        f"an empty Python: {empty_seconds:.3f} processor seconds, {empty_memory:.0f} MB at most\n"
        f"ratio: {seconds / empty_seconds:.0f} in seconds, {memory / empty_memory:.1f} in memory\n"
    )


if __name__ == "__main__":
    main()
