"""
How many judges is a panel worth?
=================================

Judges that err on the same items are worth fewer independent ones. The figure shows whose errors go together.
"""

# %%
# The votes of ten prompts, simulated from the correlations that the DEEP paper's Table 2 implies.

import numpy as np

from deep.datasets import simulate_votes
from deep.evaluate import draw_error_correlation
from deep.features import effective_number, error_correlation

votes = simulate_votes(0)
correlation = error_correlation(votes.votes, votes.labels)
print(f"{len(votes.voter_names)} judges are worth {effective_number(correlation):.1f} independent ones")

# %%
# Red: they err on the same items; blue: on others.

draw_error_correlation(votes.voter_names, np.asarray(correlation))
