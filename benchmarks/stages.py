"""Say where the processor time of a command goes, by stage: samples of the stack every 5 ms of processor time.

    python benchmarks/stages.py [--depth 25] -- loo --test aggrefact --jobs 1 --out runs/loo

What stands behind ``--`` is a command of deep; give it ``--jobs 1``, since only this process is looked at. A stage is
whatever of `STAGES` is innermost on the stack; what is below none of them is "other". The second table has the
functions of deep in which, or below which, most time went.
"""

import argparse
import collections
import signal
import sys
import time
from types import CodeType, FrameType

from deep.cli import main as deep_main

EVERY = 0.005
STAGES = {
    ("frozen importlib._bootstrap", "_find_and_load"): "imports",
    ("_label_model.py", "_fit"): "fit: LabelModel",
    ("_trees.py", "_fit"): "fit: trees of scikit-learn",
    ("_gradient_boosting.py", "_fit"): "fit: GradientBoosting",
    ("integrations/boosting.py", "_fit"): "fit: XGB, LGBM, CatBoost",
    ("ensembles/_base.py", "fit"): "fit: other ensemblers",
    ("deep/base.py", "fit"): "fit: other estimators",
    ("deep/base.py", "predict_proba"): "predict",
    ("_calibrate.py", "step"): "calibrate",
    ("_subsets.py", "choose_subsets"): "choose voters",
    ("_shared.py", "share_fits"): "stack: members",
    ("regimes/_fit.py", "fit"): "stack: the rest of the fit",
    ("_training.py", "table"): "cells of the folds",
    ("evaluate/_metrics.py", "metrics"): "measures and intervals of chains",
    ("_run.py", "_baselines"): "baselines",
    ("_run.py", "_baseline_rows"): "intervals of baselines",
    ("evaluate/_compare.py", "compare"): "paired tests",
    ("evaluate/_holdout.py", "write_tables"): "tables",
    ("evaluate/_figures.py", "write_figures"): "figures",
    ("report/_write.py", "page_of"): "report",
    ("report/_write.py", "read_material"): "report",
    ("report/_page.py", "page_html"): "report",
    ("_tables.py", "read_votes"): "read",
}


class Sampler:
    """Counts of samples by stage, and by function of deep on the stack."""

    def __init__(self) -> None:
        self.stages: collections.Counter[str] = collections.Counter()
        self.functions: collections.Counter[str] = collections.Counter()
        self.known: dict[CodeType, str | None] = {}

    def _stage(self, code: CodeType) -> str | None:
        if code not in self.known:
            found = (
                stage
                for (file, name), stage in STAGES.items()
                if code.co_name == name and code.co_filename.strip("<>").endswith(file)
            )
            self.known[code] = next(found, None)
        return self.known[code]

    def __call__(self, _signal: int, frame: FrameType | None) -> None:
        """Count one sample."""
        stage, seen = None, set()
        while frame is not None:
            code = frame.f_code
            stage = stage or self._stage(code)
            if "/deep/" in code.co_filename:
                seen.add(f"{code.co_filename.rpartition('/deep/')[2]}:{code.co_name}")
            frame = frame.f_back
        self.stages[stage or "other"] += 1
        self.functions.update(seen)


def show(counts: list[tuple[str, int]], seconds: float, total: int) -> None:
    """Print a table of shares of the processor time."""
    for name, count in counts:
        sys.stderr.write(f"{seconds * count / total:8.2f} s {100 * count / total:5.1f} %  {name}\n")


def main() -> None:
    """Run the command and print the tables to standard error."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--depth", type=int, default=25, help="functions listed (default: 25)")
    p.add_argument("command", nargs="+", help="of deep, behind --")
    args = p.parse_args()
    sampler, before = Sampler(), time.process_time()
    signal.signal(signal.SIGPROF, sampler)
    signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
    status = deep_main(args.command)
    signal.setitimer(signal.ITIMER_PROF, 0)
    seconds, total = time.process_time() - before, max(1, sampler.stages.total())
    sys.stderr.write(f"\n{seconds:.1f} s of processor time, status {status}\n")
    show(sampler.stages.most_common(), seconds, total)
    sys.stderr.write("\n")
    show(sampler.functions.most_common(args.depth), seconds, total)


if __name__ == "__main__":
    main()
