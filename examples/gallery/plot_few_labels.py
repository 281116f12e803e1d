"""
What twenty labels do
=====================

Labels of the new dataset correct intercept and slope of P as far as they reach. Twenty do more than any method that
has none.
"""

# %%
# A model of three datasets; the fourth has no labels, or some. The votes are simulated.

import matplotlib.pyplot as plt
import numpy as np

import deep
from deep.calibration import ece_noise_floor, expected_calibration_error
from deep.datasets import simulate_votes

votes = simulate_votes(0)
new = votes.datasets == "tofueval-meetingbank"
model, target = deep.fit(votes.rows(~new)), votes.rows(new)
rng = np.random.default_rng(0)


# %%
# The calibration error on the items without a label, mean over ten random draws of labels.


def error(n):
    """Return the mean calibration error with n labels."""
    found = []
    for _ in range(10 if n else 1):
        labeled = rng.choice(len(target.labels), n, replace=False)
        known = np.full(len(target.labels), -1)
        known[labeled] = target.labels[labeled]
        rest = known < 0
        p = model.adapted(target, known).score(target)
        found.append(expected_calibration_error(target.labels[rest], p[rest]))
    return np.mean(found)


sizes = [0, 20, 50, 100]
errors = [error(n) for n in sizes]
print({n: round(float(each), 3) for n, each in zip(sizes, errors, strict=True)})

# %%
# The noise floor is what a perfectly calibrated P would show on so many items.

plt.plot(sizes, errors, "o-", label="ECE")
plt.axhline(ece_noise_floor(model.score(target)).mean, linestyle="--", color="grey", label="noise floor")
plt.xlabel("labels of the new dataset")
plt.legend()
