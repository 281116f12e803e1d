"""Accuracy of the majority and of Dawid-Skene on real crowd votes with expert labels.

DEEP_DATA_HOME=... python benchmarks/crowd.py
"""

import os
import sys
from pathlib import Path

from deep.datasets import read_votes
from deep.ensembles import DawidSkene, MajorityLabelVoter


def main() -> None:
    """Print a line for each dataset and aggregator."""
    folder = Path(os.environ.get("DEEP_DATA_HOME", "../shared/data")) / "crowd"
    for name in ("votes_RTE.csv", "votes_bluebirds_duck.csv"):
        votes = read_votes([folder / name])
        for model in (MajorityLabelVoter(), DawidSkene()):
            right = model.fit(votes.votes).predict(votes.votes) == votes.labels
            steps = f", {model.n_iter_} EM steps" if isinstance(model, DawidSkene) else ""
            sys.stdout.write(
                f"{name}: {type(model).__name__} {right.mean():.4f} ({right.sum()} of {len(right)}{steps})\n"
            )


if __name__ == "__main__":
    main()
