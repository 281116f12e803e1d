"""Fit every ensembler, and bootstrap, on 10^4 to 10^7 rows of 9 votes: on cells, and row by row.

    python benchmarks/cells.py [--sizes 10000 100000] [--limit 300] [--out FILE.json]

The rival is what a user would write: the same library, with the same settings, on the rows. A rival stops at the
size where its last fit, scaled up, would take more than ``--limit`` seconds. Everything runs in one process, one
thread, in processor seconds, on the same simulated votes (a one-factor Gaussian copula, as in the embedded default).
"""

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_page import fits
from scipy.special import ndtri
from sklearn import discriminant_analysis, ensemble, linear_model, naive_bayes, neighbors, svm, tree
from sklearn.metrics import balanced_accuracy_score

from deep.calibration import bootstrap_balanced_accuracy
from deep.ensembles import ENSEMBLERS
from deep.features import Cells

TPR = (0.83, 0.82, 0.53, 0.78, 0.78, 0.82, 0.80, 0.51, 0.77)
TNR = (0.55, 0.55, 0.80, 0.48, 0.46, 0.53, 0.52, 0.79, 0.47)
RHO = 0.5
N_BOOT = 2_000
SLOW_GROWTH = {"SVC": 60, "KNeighbors": 60}
"""Learners whose time grows faster than the rows, by how much for ten times the rows."""

Rows = tuple[np.ndarray, np.ndarray]
Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def simulate(n: int, seed: int = 0) -> Rows:
    """Return n rows of 9 correlated votes, and labels, half of them consistent."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.5).astype(np.int8)
    common = np.sqrt(RHO) * rng.standard_normal(n, dtype=np.float32)
    votes = np.empty((n, len(TPR)), dtype=np.int8)
    for column, (tpr, tnr) in enumerate(zip(TPR, TNR, strict=True)):
        cut = np.where(labels == 1, ndtri(tpr), ndtri(1 - tnr)).astype(np.float32)
        votes[:, column] = common + np.sqrt(1 - RHO) * rng.standard_normal(n, dtype=np.float32) < cut
    return votes, labels


def signed(votes: np.ndarray) -> np.ndarray:
    """Return votes as -1 and 1."""
    return votes * 2.0 - 1.0


def sklearn_rival(model: Any) -> Callable[[Rows], Any]:
    """Return a fit of a library's estimator on signed rows."""
    return lambda rows: model.fit(signed(rows[0]), rows[1])


def boosted_rival(name: str) -> Callable[[Rows], Any]:
    """Return a fit of a boosting library with the settings that deep has by default."""

    def fit(rows: Rows) -> Any:
        defaults = ENSEMBLERS[name]().get_params()
        shared = {"n_estimators": defaults["n_estimators"], "learning_rate": defaults["learning_rate"]}
        if name == "XGB":
            from xgboost import XGBClassifier

            model: Any = XGBClassifier(**shared, max_depth=defaults["max_depth"], n_jobs=1)
        elif name == "LGBM":
            from lightgbm import LGBMClassifier

            model = LGBMClassifier(**shared, num_leaves=defaults["num_leaves"], n_jobs=1, verbosity=-1)
        else:
            from catboost import CatBoostClassifier

            options = {
                "max_depth": defaults["max_depth"],
                "thread_count": 1,
                "verbose": 0,
                "allow_writing_files": False,
            }
            model = CatBoostClassifier(**shared, **options)
        return model.fit(signed(rows[0]), rows[1])

    return fit


def label_model_rival(rows: Rows) -> Any:
    """Fit snorkel's label model on the rows."""
    import torch
    from snorkel.labeling.model import LabelModel

    torch.set_num_threads(1)
    model = LabelModel(cardinality=2, verbose=False)
    model.fit(rows[0].astype(np.int64), n_epochs=100, seed=0, progress_bar=False)
    return model


def dawid_skene_rival(rows: Rows) -> Any:
    """Fit crowd-kit's Dawid-Skene on one line a vote."""
    from crowdkit.aggregation import DawidSkene

    n, k = rows[0].shape
    frame = pd.DataFrame(
        {"task": np.repeat(np.arange(n), k), "worker": np.tile(np.arange(k), n), "label": rows[0].ravel()}
    )
    return DawidSkene(n_iter=100).fit_predict_proba(frame)


def rivals() -> dict[str, Callable[[Rows], Any]]:
    """Return, for every ensembler, what a user would run on rows; the defaults are deep's where both have them."""
    d = {name: cls().get_params() for name, cls in ENSEMBLERS.items()}
    return {
        "AdaBoost": sklearn_rival(
            ensemble.AdaBoostClassifier(
                n_estimators=d["AdaBoost"]["n_estimators"], learning_rate=d["AdaBoost"]["learning_rate"]
            )
        ),
        "BernoulliNB": lambda rows: naive_bayes.BernoulliNB().fit(*rows),
        "CatBoost": boosted_rival("CatBoost"),
        "DawidSkene": dawid_skene_rival,
        "DecisionTree": sklearn_rival(
            tree.DecisionTreeClassifier(min_weight_fraction_leaf=d["DecisionTree"]["min_weight_fraction_leaf"])
        ),
        "GradientBoosting": sklearn_rival(
            ensemble.GradientBoostingClassifier(
                n_estimators=d["GradientBoosting"]["n_estimators"], max_depth=d["GradientBoosting"]["max_depth"]
            )
        ),
        "KNeighbors": lambda rows: neighbors.KNeighborsClassifier(25).fit(*rows).predict_proba(rows[0]),
        "LDA": sklearn_rival(discriminant_analysis.LinearDiscriminantAnalysis()),
        "LGBM": boosted_rival("LGBM"),
        "LabelModel": label_model_rival,
        "LogisticRegression": sklearn_rival(linear_model.LogisticRegression(C=d["LogisticRegression"]["C"])),
        "MajorityLabelVoter": lambda rows: rows[0].mean(axis=1),
        "MultinomialNB": lambda rows: naive_bayes.MultinomialNB().fit(np.hstack([rows[0], 1 - rows[0]]), rows[1]),
        "RandomForest": sklearn_rival(
            ensemble.RandomForestClassifier(
                n_estimators=d["RandomForest"]["n_estimators"],
                min_weight_fraction_leaf=d["RandomForest"]["min_weight_fraction_leaf"],
            )
        ),
        "SVC": sklearn_rival(svm.SVC()),
        "WeightedMajorityVoting": lambda rows: [balanced_accuracy_score(rows[1], column) for column in rows[0].T],
        "XGB": boosted_rival("XGB"),
    }


def bootstrap_rows(rows: Rows, decision: np.ndarray) -> float:
    """Resample rows with replacement for an interval of balanced accuracy; return the seconds for N_BOOT draws.

    Each draw costs the same, so at most 20 are made and the time is scaled up.
    """
    rng = np.random.default_rng(0)
    draws = 20
    started = time.process_time()
    for _ in range(draws):
        picked = rng.integers(0, len(rows[1]), len(rows[1]))
        truth, called = rows[1][picked], decision[picked]
        _ = (called[truth == 1].mean() + 1 - called[truth == 0].mean()) / 2
    return (time.process_time() - started) * N_BOOT / draws


def seconds(run: Callable[[], Any]) -> float:
    """Return the processor seconds of a call; library warnings are not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        run()
        return time.process_time() - started


def collapse(rows: Rows) -> Table:
    """Return patterns, labels and counts of the rows."""
    cells = Cells.from_rows(rows[0], labels=rows[1], groups=np.zeros(len(rows[1]), dtype=np.int8))
    pattern, label = np.nonzero(cells.counts[:, 0])
    return cells.patterns[pattern], label, cells.counts[pattern, 0, label]


def on_cells(name: str, table: Table) -> float:
    """Return the seconds to fit an ensembler on cells and to score every pattern."""
    return seconds(lambda: ENSEMBLERS[name]().fit(*table).predict_proba(table[0]))


def bootstrap_cells(table: Table, decision: np.ndarray) -> float:
    """Return the seconds for the same interval by multinomial resampling of cells."""
    options = {"sample_weight": table[2], "n_boot": N_BOOT, "random_state": 0}
    return seconds(lambda: bootstrap_balanced_accuracy(table[1], decision, **options))


def measure(sizes: list[int], limit: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each learner and size: seconds on cells, seconds on rows (None past the limit)."""
    warm = simulate(500)
    on_rows = rivals()
    expected = dict.fromkeys([*on_rows, "bootstrap"], 0.0)
    for name, fit in on_rows.items():
        seconds(lambda fit=fit: fit(warm))
        on_cells(name, collapse(warm))
    for n in sizes:
        rows = simulate(n)
        table = collapse(rows)
        total = int(table[2].sum())
        count = seconds(lambda rows=rows: collapse(rows))
        yield {"what": "count the patterns (once)", "n": n, "cells": count, "rows": None, "total": total}
        for name, fit in on_rows.items():
            ours, theirs = on_cells(name, table), None
            if expected[name] <= limit:
                theirs = seconds(lambda fit=fit, rows=rows: fit(rows))
                expected[name] = theirs * SLOW_GROWTH.get(name, 10)
            yield {"what": name, "n": n, "cells": ours, "rows": theirs, "total": total}
        ours, theirs = bootstrap_cells(table, table[0].sum(axis=1) >= 5), None
        if expected["bootstrap"] <= limit:
            theirs = bootstrap_rows(rows, rows[0].sum(axis=1) >= 5)
            expected["bootstrap"] = theirs * 10
        yield {"what": f"bootstrap x {N_BOOT:,}", "n": n, "cells": ours, "rows": theirs, "total": total}


def main() -> None:
    """Measure, print, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a rival may take for one fit")
    parser.add_argument("--out", type=Path, help="also write the seconds here, as JSON")
    args = parser.parse_args()
    result = []
    for row in measure(args.sizes, args.limit):
        result.append(row)
        print(row, flush=True)  # noqa: T201
    assert all(row.pop("total") == row["n"] for row in result), "the weights do not sum to the number of rows"
    print("\n".join(fits(result)))  # noqa: T201
    if args.out:
        args.out.write_text(json.dumps({"limit_s": args.limit, "runs": result}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
