"""The rows that every example here scores: written as Parquet parts, counted in two passes, scored by `deep` itself.

    from rows import prepare

The votes are simulated from the figures that the DEEP paper publishes; the soft score beside them leans to the label.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deep.datasets import simulate_votes
from deep.integrations.engines import BatchScorer, adapt_by_moments, moments_of_batch
from deep.model import Model, ScoreOptions, fit, score_file
from deep.records import VoteMatrix

NEW = "aggrefact-xsum"
PARTS = 4


@dataclass(frozen=True)
class Case:
    """Parts of one dataset, the model for any dataset, the scorer of this one, and P by the rules of `deep score`."""

    folder: Path
    parts: list[str]
    model: Model
    score: BatchScorer
    expected: dict[str, float]

    def show(self, engine: str, ids: list[str], p: list[float]) -> None:
        """Print how far an engine is from `deep score`."""
        assert sorted(ids) == sorted(self.expected), "every row once"
        far = max(abs(self.expected[i] - value) for i, value in zip(ids, p, strict=True))
        print(f"{engine}: {len(ids)} rows scored; largest difference to deep score: {far:.1e}")
        assert far <= 1e-12


def prepare(engine: str, *, soft: bool) -> Case:
    """Write the parts, and count and score them without an engine.

    Parameters
    ----------
    engine : str
        Names the folder of the parts, in ``$OUT`` or ``runs``.
    soft : bool
        Whether the model has a soft score beside the votes.
    """
    folder = Path(os.environ.get("OUT", "runs/example-scale"), engine)
    folder.mkdir(parents=True, exist_ok=True)
    votes = simulate_votes(0)
    old, new = (votes.rows((votes.datasets == NEW) == here) for here in (False, True))
    names = ["odds"] if soft else []
    model = fit(old, scores=_scores(old), score_names=names) if soft else fit(old)
    parts = _write(model, new, folder)
    moments = [moments_of_batch(model, pq.read_table(part)) for part in parts]  # the first pass, one part at a time
    adapted = adapt_by_moments(model, moments[0].merge(*moments[1:]))
    expected = model.score(new, scores=_scores(new) if soft else None)  # of the whole at once
    if not soft:
        score_file(model, parts, folder / "scores.parquet", ScoreOptions())  # what `deep score --votes` writes
        table = pq.read_table(folder / "scores.parquet")
        np.testing.assert_allclose(np.sort(table["p_consistent"]), np.sort(expected), rtol=0, atol=1e-12)
    return Case(folder, parts, model, BatchScorer(adapted), dict(zip(new.item_ids, expected.tolist(), strict=True)))


def _scores(votes: VoteMatrix) -> np.ndarray:
    rng = np.random.default_rng(len(votes.labels))
    return (1 / (1 + np.exp(-(votes.labels + rng.normal(-0.5, 1, len(votes.labels))))))[:, None]


def _write(model: Model, votes: VoteMatrix, folder: Path) -> list[str]:
    columns = {"dataset": votes.datasets.tolist(), "item_id": list(votes.item_ids)}
    columns |= {
        name: pa.array(column, pa.int8(), mask=column < 0)
        for name, column in zip(votes.voter_names, votes.votes.T, strict=True)
    }
    columns |= dict(zip(model.score_names, _scores(votes).T, strict=False))
    table, paths = pa.table(columns), []
    for part in range(PARTS):
        paths.append(str(folder / f"part-{part}.parquet"))
        pq.write_table(table.take(list(range(part, len(table), PARTS))), paths[-1])
    return paths
