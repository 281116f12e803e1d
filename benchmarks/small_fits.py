"""Fit small tables of votes by deep and by what it does without, and say how far apart P is and what each took.

    python benchmarks/small_fits.py --votes FILE ... [--sizes 3 5 9]

Each dataset is held out in turn; on the others the voters are chosen as for a chain. Ensemblers that deep computes
itself stand beside scikit-learn's classes of those names, where these take weights, on the same weighted rows. XGB,
LGBM and CatBoost stand beside the mean of two boosters, one fitted to votes and labels turned round. Of the patterns
that are scored those with every vote count. Processor time of a fit and its prediction, in ms, is the mean over
datasets.
"""

import argparse
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn import clone, ensemble, linear_model, naive_bayes

from deep.base import BaseEnsembler
from deep.datasets import read_votes
from deep.ensembles import ENSEMBLERS, MirroredBoosting
from deep.evaluate import hold_out
from deep.features import signed, vote_tokens
from deep.model import RECIPES, choose_subsets, training_set

ROUNDS = 100
DEPTH = 3
Table = tuple[np.ndarray, np.ndarray, np.ndarray]
Way = Callable[[Table, np.ndarray], np.ndarray]


def by_deep(name: str) -> Way:
    """Return P by an ensembler of deep."""

    def way(table: Table, patterns: np.ndarray) -> np.ndarray:
        return made(name).fit(*table).predict_proba(patterns)[:, 1]

    return way


def by_both(name: str) -> Way:
    """Return P by the mean of two boosters on every row."""

    def way(table: Table, patterns: np.ndarray) -> np.ndarray:
        model = made(name)
        assert isinstance(model, MirroredBoosting)
        model.fit(*table)._one_is_enough = False
        return model.predict_proba(patterns)[:, 1]

    return way


def made(name: str) -> BaseEnsembler:
    """Return an ensembler of deep, of as many rounds where it has rounds."""
    model = ENSEMBLERS[name]()
    wanted = {"n_estimators": ROUNDS} | ({"max_depth": DEPTH} if name == "GradientBoosting" else {})
    return model.set_params(**{key: value for key, value in wanted.items() if key in model.get_params()})


def by_sklearn(estimator: Any, encode: Callable[[np.ndarray], np.ndarray] = signed) -> Way:
    """Return P by an estimator of scikit-learn."""

    def way(table: Table, patterns: np.ndarray) -> np.ndarray:
        votes, labels, weights = table
        model = clone(estimator).fit(encode(votes), labels, sample_weight=weights)
        if isinstance(model, ensemble.AdaBoostClassifier):  # whose own P divides the sum of votes by their weights
            return expit(model.decision_function(encode(patterns)) * model.estimator_weights_.sum() / 2)
        return model.predict_proba(encode(patterns))[:, 1]

    return way


RIVALS: dict[str, Way] = {
    "AdaBoost": by_sklearn(ensemble.AdaBoostClassifier(n_estimators=ROUNDS, learning_rate=0.5, random_state=0)),
    "GradientBoosting": by_sklearn(
        ensemble.GradientBoostingClassifier(n_estimators=ROUNDS, max_depth=DEPTH, random_state=0)
    ),
    "LogisticRegression": by_sklearn(linear_model.LogisticRegression(C=0.1, solver="newton-cholesky", tol=1e-8)),
    "MultinomialNB": by_sklearn(naive_bayes.MultinomialNB(), vote_tokens),
    **{name: by_both(name) for name in ("XGB", "LGBM", "CatBoost")},
}


def timed(way: Way, table: Table, patterns: np.ndarray) -> tuple[np.ndarray, float]:
    """Return P, and processor seconds."""
    started = time.process_time()
    return way(table, patterns), time.process_time() - started


def main() -> None:
    """Fit and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--votes", nargs="+", type=Path, required=True)
    p.add_argument("--sizes", nargs="+", type=int, default=[3, 5, 9])
    args = p.parse_args()
    votes = read_votes(args.votes)
    result: dict[tuple[str, int], list[tuple[float, float, float]]] = {}
    for test in votes.dataset_names:
        training = training_set(hold_out(votes, test).train, RECIPES["deep"])
        for subset in choose_subsets(training, args.sizes):
            chosen = training.select(subset.columns)
            full = chosen.cells.patterns[(chosen.cells.patterns >= 0).all(axis=1)]
            for name, rival in RIVALS.items():
                (theirs, before), (ours, now) = (timed(way, chosen.table(), full) for way in (rival, by_deep(name)))
                row = float(np.abs(theirs - ours).max()), 1000 * before, 1000 * now
                result.setdefault((name, len(subset.columns)), []).append(row)
    sys.stdout.write(
        "| ensembler | voters | furthest P apart | ms before | ms now |\n| --- | --- | --- | --- | --- |\n"
    )
    for (name, size), rows in sorted(result.items()):
        apart, before, now = np.array(rows).T
        sys.stdout.write(f"| {name} | {size} | {apart.max():.1e} | {before.mean():.1f} | {now.mean():.1f} |\n")


if __name__ == "__main__":
    main()
