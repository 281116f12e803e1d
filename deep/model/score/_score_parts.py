"""All scorers of soft scores at once: each column is standardised once, however many look at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deep._checks import Floats, Positions
from deep.model.score._scorers import ScoreForest, ScoreSum
from deep.model.score._standardizer import Knots, log_odds_of
from deep.model.score._trees import ROWS_AT_ONCE

SoftScorer = ScoreForest | ScoreSum


@dataclass(frozen=True, eq=False)
class ScoreParts:
    """Scorers, and the columns that any of them looks at.

    Parameters
    ----------
    scorers : tuple of ScoreSum or ScoreForest
    columns : ndarray of int, shape (n_views,)
        The column of scores of each view; one that is read by two scales has two.
    knots : list of (scores, ranks), length n_views
        What the scores of a view stand for.
    views : tuple of ndarray of int
        By scorer: the views that it looks at, in its order.
    """

    scorers: tuple[SoftScorer, ...]
    columns: Positions
    knots: list[Knots]
    views: tuple[Positions, ...]

    @classmethod
    def of(cls, scorers: Sequence[SoftScorer]) -> Self:
        """Return the views that scorers share."""
        place: dict[tuple[int, bytes, bytes], int] = {}
        knots: list[Knots] = []
        views = []
        for scorer in scorers:
            looked_at = scorer.standardizer.knots
            columns = scorer.columns if isinstance(scorer, ScoreSum) else range(len(looked_at))
            keys = [(j, at.tobytes(), to.tobytes()) for j, (at, to) in zip(columns, looked_at, strict=True)]
            for key, pair in zip(keys, looked_at, strict=True):
                if key not in place:
                    place[key] = len(place)
                    knots.append(pair)
            views.append(np.array([place[key] for key in keys], dtype=np.intp))
        return cls(tuple(scorers), np.array([key[0] for key in place], dtype=np.intp), knots, tuple(views))

    def __call__(self, scores: Floats) -> Floats:
        """Return the log-odds of each scorer, shape (n_scorers, n_examples)."""
        found = np.empty((len(self.scorers), len(scores)))
        for start in range(0, len(scores), ROWS_AT_ONCE):
            at = slice(start, start + ROWS_AT_ONCE)
            seen = log_odds_of(scores[at], self.columns.tolist(), self.knots)
            for row, scorer, views in zip(found, self.scorers, self.views, strict=True):
                row[at] = scorer.of_standardised(scorer.standardizer.of_log_odds(seen[:, views]))
        return found
