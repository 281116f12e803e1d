"""Judges that give grades or scores: what they say by level, how reliable a level is, and how alike they rank."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from deep._util.checks import Floats, Positions
from deep._util.scales import MOST_LEVELS, Scale
from deep.evaluate._annotators import clustered_share
from deep.evaluate._measured import DataTable, Row, shown
from deep.records import VoteMatrix

N_BINS = 10
"""Parts of equal width in which a score, which has no levels, is counted."""


def level_rows(votes: VoteMatrix) -> Iterator[Row]:
    """Yield by judge that gives grades or scores, and by level from the worst, how often it is given and is right.

    `answer` is the level as the judge gives it, `items` how many have it, `labeled` how many of these have a label,
    `consistent` which share of them is 1, and `low` and `high` its 95 % interval, clustered by document.
    """
    for j, scale in enumerate(votes.scales or ()):
        if scale.binary or votes.answers is None:
            continue
        known = np.flatnonzero(~np.isnan(votes.answers[:, j]))
        names, level = _levels(votes.answers[known, j], scale)
        for code, name in enumerate(names):
            rows = known[level == code]
            labeled = rows[votes.labels[rows] >= 0]
            documents = None if votes.document_ids is None else votes.document_ids[labeled]
            hits = votes.labels[labeled] == 1
            low, high = clustered_share(hits, documents)
            yield {
                "judge": votes.voter_names[j],
                "scale": str(scale),
                "answer": name,
                "items": len(rows),
                "labeled": len(labeled),
                "consistent": float(hits.mean()) if len(labeled) else float("nan"),
                "low": low,
                "high": high,
            }


def _levels(places: Floats, scale: Scale) -> tuple[list[str], Positions]:
    """Return the names of the levels of a scale, or of its parts where they are too many, and that of each answer."""
    steps = np.linspace(0.0, 1.0, scale.n_levels) if scale.n_levels else np.empty(0)
    # 0.1 + 0.2 and 0.3 are one level.
    levels = np.unique(np.round(np.concatenate([places, steps]), 9))
    if len(levels) <= MOST_LEVELS:
        return [scale.answer(place) for place in levels], np.searchsorted(levels, np.round(places, 9))
    ends = [scale.answer(end) for end in np.linspace(0.0, 1.0, N_BINS + 1)]
    names = [f"{low} to {high}" for low, high in pairwise(ends)]
    return names, np.minimum((places * N_BINS).astype(np.intp), N_BINS - 1)


def rank_agreement(votes: VoteMatrix) -> Floats | None:
    """Return Spearman's correlation of the answers of each two judges, shape (n_judges, n_judges).

    NaN where two have no two items in common or one of them says the same of all; None where all judges vote.
    """
    from scipy.stats import rankdata

    if votes.answers is None:
        return None
    k = votes.shape[1]
    result = np.eye(k)
    for i in range(k):
        for j in range(i):
            both = votes.answers[~np.isnan(votes.answers[:, [i, j]]).any(axis=1)][:, [i, j]]
            varies = len(both) > 1 and (np.ptp(both, axis=0) > 0).all()
            rho = np.corrcoef(rankdata(both, axis=0).T)[0, 1] if varies else np.nan
            result[i, j] = result[j, i] = rho
    return result


def level_tables(levels: Sequence[Row], judges: Sequence[str], agreement: Floats | None) -> Iterator[DataTable]:
    """Yield for each scale a table of its judges: items by level, share of 1 there, and how alike the others rank."""
    for scale in dict.fromkeys(row["scale"] for row in levels):
        of_scale = [row for row in levels if row["scale"] == scale]
        answers = sorted({row["answer"] for row in of_scale}, key=[row["answer"] for row in of_scale].index)
        rows = []
        for judge in dict.fromkeys(row["judge"] for row in of_scale):
            own = {row["answer"]: row for row in of_scale if row["judge"] == judge}
            rows.append({"judge": judge, **{answer: _cell(own.get(answer)) for answer in answers}})
            if agreement is not None and len(judges) > 1:
                others = np.delete(agreement[judges.index(judge)], judges.index(judge))
                rows[-1]["ranks alike"] = shown(float(np.nanmean(others)) if not np.isnan(others).all() else None)
        what = "items, % of them consistent by their labels; ranks alike: mean rank correlation with the others"
        yield DataTable(f"Answers on the scale {scale} ({what})", rows)


def _cell(row: Row | None) -> str:
    if row is None or not row["items"]:
        return ""
    return f"{row['items']:,}" + (f" ({shown(row['consistent'], '.0%')})" if row["labeled"] else "")
