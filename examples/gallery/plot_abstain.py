"""
Decide only where confident enough
==================================

Leaving out the least confident items lowers the share of wrong decisions. The curve shows what each share of
decisions costs.
"""

# %%
# P of a dataset that the model never saw. The votes are simulated.

import matplotlib.pyplot as plt

import deep
from deep.calibration import risk_coverage
from deep.datasets import simulate_votes

votes = simulate_votes(0)
new = votes.datasets == "halueval-summarization"
p = deep.fit(votes.rows(~new)).score(votes.rows(new))

# %%
# The share of wrong decisions among the most confident items, for every share of them.

curve = risk_coverage(votes.labels[new], p)
print(curve.iloc[:: max(len(curve) // 6, 1)].round(3).to_string(index=False))

# %%
# Items of the same P come and go together, and so the curve has steps.

plt.step(curve["coverage"], curve["risk"], where="post")
plt.xlabel("share of items decided")
plt.ylabel("share of them wrong")
