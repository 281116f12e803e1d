"""What scoring costs by a model of lexical checks, by command and in Python: processor seconds and peak memory.

    python benchmarks/light.py [--repeats 5]

Two models are fitted first, on the votes of lexical checks on ``examples/claims.csv``. Then `deep score` of one text,
the lines of the README from a CSV file to P and an empty Python run alternately, each in a process of its own; the
least of the repeats counts. Without ``VoteMatrix.from_frame``, as in older versions, the lines call `deep.read_votes`.
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


LINES = """
import sys
import deep
votes_file, model_file = sys.argv[1:]
if hasattr(deep.VoteMatrix, "from_frame"):
    import pandas as pd
    votes = deep.VoteMatrix.from_frame(pd.read_csv(votes_file))
else:
    votes = deep.read_votes([votes_file])
model = deep.load(model_file)
p = model.score(votes)
assert len(p) == len(votes.labels) and 0 < p.min() < p.max() < 1
"""


def fitted(folder: str) -> tuple[str, str, str]:
    """Return the files of votes as CSV, of a chain, and of a stack."""
    votes, chain, stack = f"{folder}/votes.parquet", f"{folder}/chain.json", f"{folder}/stack.json"
    cost(["-m", "deep", "ask", str(CLAIMS), "--lexical", "all", "--out", votes])
    fit = ["-m", "deep", "fit", votes, "--exclude", "weather", "--out"]
    cost([*fit, chain, "--sizes", "3", "--ensembler", "LogisticRegression"])
    cost([*fit, stack, "--ensembler", "Stack"])
    cost(["-c", f"import pandas; pandas.read_parquet({votes!r}).to_csv('{folder}/votes.csv', index=False)"])
    return f"{folder}/votes.csv", chain, stack


def main() -> None:
    """Fit, run and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--repeats", type=int, default=5, help="of which the least counts")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        votes, chain, stack = fitted(folder)
        runs = {
            "deep score of one text": ["-m", "deep", "score", chain, *TEXT],
            "README, load and score": ["-c", LINES, votes, stack],
            "an empty Python": ["-c", "pass"],
        }
        costs = [{name: cost(words) for name, words in runs.items()} for _ in range(args.repeats)]
    least = {name: [min(one[name][i] for one in costs) for i in (0, 1)] for name in runs}
    *_, (empty_seconds, empty_memory) = least.values()
    for name, (seconds, memory) in least.items():
        more = f", {seconds / empty_seconds:.0f} and {memory / empty_memory:.1f} times an empty Python"
        sys.stdout.write(f"{name}: {seconds:.2f} processor seconds, {memory:.0f} MB at most{more}\n")


if __name__ == "__main__":
    main()
