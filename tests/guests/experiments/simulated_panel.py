"""Votes on many datasets for the commands around a model: the simulated ones, drawn several times."""

import numpy as np
import pandas as pd

from deep.datasets import simulate_votes
from deep.records import VoteMatrix

NEW = "tofueval-mediasum 0"


def simulated():
    """Return simulated votes on twelve datasets: four of the paper's, drawn three times."""
    drawn = [simulate_votes(seed) for seed in range(3)]
    names = [f"{name} {seed}" for seed, votes in enumerate(drawn) for name in votes.datasets]
    return VoteMatrix(
        votes=np.concatenate([votes.votes for votes in drawn]),
        item_ids=np.concatenate([votes.item_ids for votes in drawn]),
        voter_names=drawn[0].voter_names,
        datasets=names,
        labels=np.concatenate([votes.labels for votes in drawn]),
    )


def table(votes, path, *, labels=False):
    """Write votes as CSV, with their labels or without."""
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names))
    frame.insert(0, "dataset", votes.datasets)
    frame.insert(1, "item_id", votes.item_ids)
    if labels:
        frame.insert(2, "label", votes.labels)
    frame.to_csv(path, index=False)
