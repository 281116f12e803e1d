"""
Cells: why a million rows cost no more than a thousand
======================================================

Votes take three values, so rows repeat. Rows with the same votes and label are one weighted cell, and a fit on cells
equals the fit on rows.
"""

# %%
# The simulated votes of ten prompts, repeated until they are half a million rows.

import matplotlib.pyplot as plt
import numpy as np

from deep.datasets import simulate_votes
from deep.ensembles import LogisticRegression
from deep.features import distinct_patterns

votes = simulate_votes(0)
patterns, where = distinct_patterns(votes.votes)
print(f"{len(votes.votes)} rows hold {len(patterns)} distinct patterns of votes")

# %%
# A row of weight w is exactly that row w times: the two fits agree to the last digits.

weights = np.bincount(where * 2 + votes.labels, minlength=2 * len(patterns)).astype(float)
cells, labels = np.repeat(patterns, 2, axis=0), np.tile([0, 1], len(patterns))
seen = weights > 0
by_rows = LogisticRegression().fit(votes.votes, votes.labels)
by_cells = LogisticRegression().fit(cells[seen], labels[seen], sample_weight=weights[seen])
apart = np.abs(by_rows.predict_proba(patterns) - by_cells.predict_proba(patterns)).max()
print(f"largest difference of P: {apart:.1e}")

# %%
# Patterns grow far slower than rows: what follows the one counting pass depends on patterns alone.

sizes = np.unique(np.geomspace(10, len(votes.votes), 12).astype(int))
order = np.random.default_rng(0).permutation(len(votes.votes))
counts = [len(distinct_patterns(votes.votes[order[:size]])[0]) for size in sizes]
plt.loglog(sizes, sizes, "--", color="grey", label="rows")
plt.loglog(sizes, counts, "o-", label="distinct patterns")
plt.xlabel("rows")
plt.legend()
