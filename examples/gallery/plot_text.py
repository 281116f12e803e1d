"""
From two texts to P, without a key
==================================

Lexical checks judge claims against their sources; a model learns from labeled datasets how far to trust each of them.
"""

# %%
# The examples are invented. Five datasets have labels; the model sees four of them.

from pathlib import Path

import matplotlib.pyplot as plt

import deep

here = Path.cwd()
folder = next(each for each in (here, *here.parents) if (each / "examples" / "claims.csv").exists()) / "examples"
claims = deep.read_examples(folder / "claims.csv")
votes = deep.ask(claims, "lexical")
weather = votes.datasets == "weather"
model = deep.fit(votes.rows(~weather))
print(f"{model.method}: P of the first items {model.score(votes.rows(weather))[:4].round(2)}")

# %%
# What P of an item of the fifth would lose in log-odds without each of its votes.

item = votes.rows(weather)
row = dict(zip(votes.voter_names, item.votes[1].tolist(), strict=True))
parts = [each for each in model.explain(row) if each.vote >= 0]
plt.barh([each.voter.partition("@")[0] for each in parts], [each.without for each in parts])
plt.xlabel("log-odds of P(consistent) less those without the vote")
plt.tight_layout()
