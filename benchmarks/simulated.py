"""LabelModel against the majority of five GPT-4 prompts on the embedded votes, beside Table 2 of the DEEP paper.

python benchmarks/simulated.py

Prints both for each dataset and seed, and on how many LabelModel is ahead, as it is on all four in the paper.
"""

import argparse
import sys

import numpy as np
import numpy.typing as npt
from sklearn.metrics import balanced_accuracy_score

from deep import VoteMatrix
from deep.base import BaseEnsembler
from deep.datasets import simulate_votes
from deep.ensembles import LabelModel, MajorityLabelVoter
from deep.evaluate import hold_out
from deep.experiments.paper import published_table

N_PROMPTS = 5
RIVALS: tuple[type[BaseEnsembler], ...] = (LabelModel, MajorityLabelVoter)


def balanced_accuracy(make: type[BaseEnsembler], votes: VoteMatrix, dataset: str) -> float:
    """Return the balanced accuracy on a dataset, in percent, of what is fitted to the others without weights."""
    split = hold_out(votes, dataset)
    gpt_4 = slice(0, N_PROMPTS)
    fitted = make().fit(split.train.votes[:, gpt_4], split.train.labels)
    return 100 * float(balanced_accuracy_score(split.test.labels, fitted.predict(split.test.votes[:, gpt_4])))


def figures(dataset: str, n_seeds: int) -> npt.NDArray[np.float64]:
    """Return the balanced accuracy of each rival, shape (n_seeds, 2)."""
    drawn = [simulate_votes(seed) for seed in range(n_seeds)]
    return np.array([[balanced_accuracy(make, votes, dataset) for make in RIVALS] for votes in drawn])


def main() -> None:
    """Print a line for each dataset and the count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="seeds 0, 1, ...; default: 3")
    n_seeds = parser.parse_args().seeds
    printed = {(f.dataset, f.ensembler): 100 * f.value for f in published_table("2") if f.n_prompts == N_PROMPTS}
    ahead = {}
    for dataset in simulate_votes().dataset_names:
        found = figures(dataset, n_seeds)
        ahead[dataset] = int((found[:, 0] > found[:, 1]).sum())
        for i, make in enumerate(RIVALS):
            values = ", ".join(f"{value:.1f}" for value in found[:, i])
            published = printed[dataset, make.__name__]
            sys.stdout.write(f"{dataset}: {make.__name__} {values} (simulated, by seed); {published:.1f} printed\n")
    sys.stdout.write(
        f"LabelModel ahead of the majority on {sum(ahead.values())} of {n_seeds * len(ahead)} "
        f"({', '.join(f'{dataset} {n}' for dataset, n in ahead.items())})\n"
    )


if __name__ == "__main__":
    main()
