"""Scores of repeated verdicts on labeled claims: the non-factual class as the positive one, and self-consistency."""

import numpy as np
import pandas as pd

from deep._files import JsonObject
from deep.evaluate import t_reach
from deep.features import krippendorff_alpha

METRICS = ("f1", "precision", "recall")

JUDGE = ["model", "prompt"]

CONFIDENCE = 0.95

LEAST_COVERAGE = 0.5
"""Share of verdicts that must be votes for a judge's figures to be compared with those of others."""


def score_runs(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Score every run of every judge; the non-factual class is the positive one.

    Parameters
    ----------
    verdicts : DataFrame
        ``item, label, model, prompt, run, vote``; labels and votes 1 factual, 0 not; -1 no vote.

    Returns
    -------
    DataFrame
        One row a model, prompt and run: ``tp, fp, fn, tn`` over the items with a vote; ``no_vote`` and, of them,
        ``no_vote_nonfactual``; ``precision``, ``recall`` and ``f1`` in [0, 1], missing where they are undefined
        (nothing called non-factual; nothing non-factual with a vote; neither).

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.experiments.fect._scores import score_runs
    >>> judge = {"model": "m", "prompt": "3d", "run": 1}
    >>> said = [(0, 0), (0, 1), (1, 0), (1, 1), (1, -1)]
    >>> rows = [{"item": i, "label": label, "vote": vote, **judge} for i, (label, vote) in enumerate(said)]
    >>> score_runs(pd.DataFrame(rows)).loc[0, ["tp", "fp", "fn", "no_vote", "f1"]].tolist()
    [1.0, 1.0, 1.0, 1.0, 0.5]
    """
    columns = verdicts[[*JUDGE, "run"]].copy()
    for name, label, vote in (("tp", 0, 0), ("fp", 1, 0), ("fn", 0, 1), ("tn", 1, 1)):
        columns[name] = (verdicts["label"] == label) & (verdicts["vote"] == vote)
    columns["no_vote"] = verdicts["vote"] == -1
    columns["no_vote_nonfactual"] = columns["no_vote"] & (verdicts["label"] == 0)
    scores = columns.groupby([*JUDGE, "run"], sort=False).sum().reset_index()
    tp, fp, fn = (scores[name].astype(float) for name in ("tp", "fp", "fn"))
    scores["precision"] = tp / (tp + fp)
    scores["recall"] = tp / (tp + fn)
    scores["f1"] = 2 * tp / (2 * tp + fp + fn)
    return scores


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of every metric over runs, with its standard deviation and 95 % t-interval.

    Returns
    -------
    DataFrame
        One row a model, prompt and metric: ``n_runs`` in which the metric is defined, ``mean``, ``sd`` (of a sample),
        ``low`` and ``high`` (mean ∓ t · sd / √n), the last three missing below two runs; ``coverage``, the share of
        verdicts that are votes.
    """
    scores = scores.assign(voted=scores[["tp", "fp", "fn", "tn"]].sum(axis=1))
    counts = scores.groupby(JUDGE, sort=False)[["voted", "no_vote"]].sum()
    coverage = (counts["voted"] / (counts["voted"] + counts["no_vote"])).rename("coverage").reset_index()
    long = scores.melt([*JUDGE, "run"], list(METRICS), var_name="metric")
    found = long.groupby([*JUDGE, "metric"], sort=False)["value"].agg(n_runs="count", mean="mean", sd="std")
    half = [t_reach(sd, n, CONFIDENCE) if n > 1 else np.nan for n, sd in zip(found.n_runs, found.sd, strict=True)]
    bounded = pd.DataFrame(found.assign(low=found["mean"] - half, high=found["mean"] + half).reset_index())
    return bounded.merge(coverage, on=JUDGE, how="left", validate="many_to_one")


def pick_best(summary: pd.DataFrame, metric: str) -> JsonObject:
    """Return, by prompt, the model of the best mean; where means tie at two decimals, that of the lowest deviation.

    A judge that votes on less than `LEAST_COVERAGE` of the claims is measured on others than the rest, and is no best.
    """
    known = summary["mean"].notna() & (summary["coverage"] >= LEAST_COVERAGE)
    chosen = summary[(summary["metric"] == metric) & known].copy()
    chosen["mean"] = chosen["mean"].round(2)
    ranked = chosen.sort_values(["mean", "sd"], ascending=[False, True], kind="stable", na_position="last")
    return dict(ranked.drop_duplicates("prompt").set_index("prompt")["model"])


def consistency(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return how far the runs of each judge agree with one another.

    Returns
    -------
    DataFrame
        One row a model and prompt: ``n_items`` in all; ``n_repeated`` with at least two votes; ``n_flipped``, those of
        them with both votes; ``flipped``, their share; ``alpha``, Krippendorff's over all runs, missing where every
        vote is the same; ``no_vote``, the verdicts without a vote.
    """
    rows = []
    for model, prompt in verdicts[JUDGE].drop_duplicates().itertuples(index=False):
        chosen = verdicts[(verdicts["model"] == model) & (verdicts["prompt"] == prompt)]
        votes = chosen.pivot(index="item", columns="run", values="vote").to_numpy(dtype=np.int64)
        repeated = votes[(votes >= 0).sum(axis=1) > 1]
        flipped = (repeated == 0).any(axis=1) & (repeated == 1).any(axis=1)
        rows.append(
            {
                "model": model,
                "prompt": prompt,
                "n_items": len(votes),
                "n_repeated": len(repeated),
                "n_flipped": int(flipped.sum()),
                "flipped": flipped.mean() if len(repeated) else np.nan,
                "alpha": krippendorff_alpha(votes),
                "no_vote": int((votes < 0).sum()),
            }
        )
    return pd.DataFrame(rows)
