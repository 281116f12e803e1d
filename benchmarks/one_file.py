"""How a model's file of Python differs from the model: decisions, P and bounds of random patterns of votes.

::

    python benchmarks/one_file.py [--patterns 100000]

One model of each kind that can be written down, fitted on votes at random; each file runs as ``python -I -S``. Those of
at most ten voters must be equal to the last bit, the others to 1e-12; where one is not, the status is 1.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from deep._util.names import table
from deep.integrations.python_program import export_python
from deep.model import MAX_TABLE_VOTERS, Model
from tests.model.file.models import MAKERS, model_of

REFUSED = {"chain of more voters than a table has", "stack with scores"}


def by_file(model: Model, patterns: np.ndarray) -> np.ndarray:
    """Return P, its bounds and the decision as the file gives them, a row a pattern."""
    names = model.voter_names
    lines = (json.dumps({n: int(v) for n, v in zip(names, row, strict=True) if v >= 0}) for row in patterns)
    with tempfile.TemporaryDirectory() as folder:
        export_python(model, Path(folder, "judge.py"))
        words = [sys.executable, "-I", "-S", f"{folder}/judge.py"]
        done = subprocess.run(words, input="\n".join(lines), capture_output=True, check=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return np.array([[row["p_consistent"], row["p_low"], row["p_high"], row["decision"]] for row in rows])


def by_model(model: Model, patterns: np.ndarray) -> np.ndarray:
    """Return the same as the model gives it."""
    decided = model.scores_of(patterns, streamed=True).decisions
    p, bounds = model.score(patterns, streamed=True), model.intervals(patterns, streamed=True)
    return np.column_stack([p, bounds, decided])


def main() -> int:
    """Print a row a model."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--patterns", type=int, default=100_000, help="of votes, for each model")
    args = p.parse_args()
    rows, wrong = [("MODEL", "VOTERS", "DECISIONS DIFFER", "P DIFFERS BY", "BOUNDS DIFFER BY")], 0
    for kind in sorted(set(MAKERS) - REFUSED):
        model = model_of(kind)
        k = len(model.voters)
        patterns = np.random.default_rng(0).integers(-1, 2, (args.patterns, k), dtype=np.int8)
        off = np.abs(by_file(model, patterns) - by_model(model, patterns))
        n_decisions, p_off, bounds_off = int(off[:, 3].sum()), off[:, 0].max(), off[:, 1:3].max()
        rows.append((kind, str(k), str(n_decisions), f"{p_off:.1e}", f"{bounds_off:.1e}"))
        wrong += n_decisions > 0 or max(p_off, bounds_off) > (0 if k <= MAX_TABLE_VOTERS else 1e-12)
    sys.stdout.write(f"{args.patterns} patterns of votes, drawn at random\n{table(rows, right=4)}\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
