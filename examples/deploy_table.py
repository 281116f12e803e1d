"""Fit, adapt, deploy a table: the model as SQL, joined to votes in SQLite, gives the probabilities of `deep score`.

The votes are simulated from the figures that the DEEP paper publishes.
"""

import os
import sqlite3
from pathlib import Path

import numpy as np

from deep.datasets import simulate_votes
from deep.integrations.engines import export_table
from deep.model import fit

out = Path(os.environ.get("OUT", "runs/example-deploy-table"))
out.mkdir(parents=True, exist_ok=True)

votes = simulate_votes(0)
new = votes.rows(votes.datasets == "tofueval-meetingbank")
general = fit(votes.rows(votes.datasets != "tofueval-meetingbank"), sizes=[5], ensembler="LogisticRegression")
model = general.adapted(new, target="tofueval-meetingbank")  # its votes, without a label
model.save(out / "model.json")
export_table(model, out / "model.sql", "sql")

connection = sqlite3.connect(":memory:")
connection.executescript((out / "model.sql").read_text(encoding="utf-8"))
(table,) = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()
where = " AND ".join(f'"{name}" IS ?' for name in model.voter_names)
rows = [tuple(None if vote < 0 else int(vote) for vote in row) for row in model.select(new)]
p = [connection.execute(f"SELECT p_consistent FROM {table} WHERE {where}", row).fetchone()[0] for row in rows]
print(f"{len(p)} items scored by a join; largest difference to the model: {np.abs(p - general.score(new)).max():.1e}")
