"""
P(consistent) on a dataset without labels
=========================================

A model is fitted on three labeled datasets and scores a fourth whose labels it never sees. The share of
consistent items is estimated, and each P has an interval.
"""

# %%
# Three datasets with labels, one without. The votes are simulated.

import matplotlib.pyplot as plt
import numpy as np

import deep
from deep.calibration import balanced_accuracy, ece_noise_floor, expected_calibration_error
from deep.datasets import simulate_votes

votes = simulate_votes(0)
target = votes.datasets == "tofueval-meetingbank"
model = deep.fit(votes.rows(~target))
unlabeled = votes.rows(target)
p = model.score(unlabeled)

# %%
# What is estimated of the dataset, beside its hidden labels.

prior = model.estimate_prior(unlabeled)
print(f"share of consistent items {prior.estimate:.3f} ({prior.low:.3f} to {prior.high:.3f})")
print(f"in truth                  {unlabeled.labels.mean():.3f}")
print(f"ECE {expected_calibration_error(unlabeled.labels, p):.3f}, noise floor {ece_noise_floor(p).mean:.3f}")
print(f"balanced accuracy {balanced_accuracy(unlabeled.labels, p >= prior.estimate):.3f}")

# %%
# P of the consistent items and of the others.

bins = np.linspace(0, 1, 21)
plt.hist([p[unlabeled.labels == 0], p[unlabeled.labels == 1]], bins, label=["inconsistent", "consistent"], stacked=True)
plt.xlabel("P(consistent)")
plt.ylabel("items")
plt.legend()
