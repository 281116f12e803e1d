"""
Is P calibrated on a dataset never seen?
========================================

A calibrator is fitted on three datasets and looked at on the fourth. The votes are simulated
from the operating points that the DEEP paper publishes.
"""

# %%
# Votes of ten prompts on four datasets; one is held out.

from deep.calibration import CorpDisplay, Platt, ece_noise_floor, expected_calibration_error
from deep.datasets import simulate_votes
from deep.ensembles import LogisticRegression

votes = simulate_votes(0)
held_out = votes.datasets == "aggrefact-xsum"
train, test = votes.rows(~held_out), votes.rows(held_out)

# %%
# The ensembler gives a probability, and Platt scaling moves it; both are learned on the training datasets alone.

ensemble = LogisticRegression().fit(train.votes, train.labels)
raw = ensemble.predict_proba(test.votes)[:, 1]
platt = Platt().fit(ensemble.predict_proba(train.votes)[:, 1], train.labels)
p = platt.transform(raw)

# %%
# The calibration error counts only beside its noise floor: what a perfectly calibrated P of that size would show.

print(f"ECE before {expected_calibration_error(test.labels, raw):.3f}")
print(f"ECE after  {expected_calibration_error(test.labels, p):.3f}")
print(f"noise floor {ece_noise_floor(p).mean:.3f}")

# %%
# A reliability diagram by isotonic regression, with no bins to choose.

CorpDisplay.from_predictions(test.labels, p).plot()
