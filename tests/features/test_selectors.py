"""What sets the prompt selectors apart: their own rules, known answers, and the libraries behind them."""

import sys
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import sklearn
from sklearn import feature_selection
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from deep.exceptions import InputError
from deep.features import MRMR, RFE, SELECTORS, MRMRSelection

Rows = tuple[npt.NDArray[np.int8], npt.NDArray[np.int64], npt.NDArray[np.int64]]


def correlated_votes(seed: int, n: int = 120, k: int = 8) -> Rows:
    """Return votes of voters that share part of their errors, a tenth of them missing, labels, and weights 1 to 4."""
    rng = np.random.default_rng(seed)
    y = np.append(rng.integers(0, 2, n - 2), [0, 1])
    error = 0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, k))
    X = np.where(error > rng.uniform(-0.2, 1.0, k), 1 - y[:, None], y[:, None])
    X[rng.random((n, k)) < 0.1] = -1
    return X.astype(np.int8), y, rng.integers(1, 5, n)


def expand(
    X: npt.NDArray[np.int8], y: npt.NDArray[np.int64], w: npt.NDArray[np.int64]
) -> tuple[pd.DataFrame, pd.Series]:
    """Return signed votes and labels with each row repeated as often as it weighs."""
    rows = np.repeat(np.arange(len(w)), w)
    signed = np.where(X == -1, 0.0, 2.0 * X - 1.0)
    return pd.DataFrame(signed[rows]), pd.Series(y[rows])


def read_votes(path: Path) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
    """Return the votes and labels of a table."""
    table = pd.read_csv(path)
    votes = table.drop(columns=["dataset", "item_id", "label"]).fillna(-1).to_numpy(dtype=np.int8)
    return votes, table["label"].to_numpy()


@pytest.mark.parametrize("selector", [MRMR, RFE])
def test_both_classes_must_have_weight(selector: type[MRMR] | type[RFE]) -> None:
    """A class whose rows all weigh nothing counts as missing."""
    with pytest.raises(InputError, match=r"`y` must hold both classes, 0 and 1\. Got only 1\."):
        selector(1).fit([[1, 0], [0, 1], [1, 1]], [1, 1, 0], sample_weight=[1, 2, 0])


@pytest.mark.parametrize("selector", [MRMR, RFE])
@pytest.mark.parametrize("scale", [0.3137, 1e5])
def test_ties_do_not_hang_on_rounding(selector: type[MRMR] | type[RFE], scale: float) -> None:
    """Copies and constants keep the order of the columns, however the rows are grouped and scaled."""
    X, y, w = correlated_votes(3)
    X = np.column_stack([np.ones(len(X)), X, X[:, :3], np.full(len(X), -1)]).astype(np.int8)
    rows = np.repeat(np.arange(len(w)), w)
    ranking = selector(3).fit(X, y, w * scale).ranking_
    np.testing.assert_array_equal(ranking, selector(3).fit(X[rows], y[rows], np.full(len(rows), scale)).ranking_)
    assert ranking[0] == 12
    assert ranking[12] == 13
    assert (ranking[1:4] < ranking[9:12]).all()


@pytest.mark.parametrize("seed", range(5))
def test_rfe_is_scikit_learns_on_the_repeated_rows(seed: int) -> None:
    """Another solver of the same problem, on the rows themselves, eliminates in the same order."""
    X, y, w = correlated_votes(seed)
    signed, labels = expand(X, y, w)
    estimator = LogisticRegression(solver="newton-cg", tol=1e-6)
    reference = feature_selection.RFE(estimator, n_features_to_select=1).fit(signed, labels)
    np.testing.assert_array_equal(RFE(1).fit(X, y, w).ranking_, reference.ranking_)


def test_rfe_keeps_a_pair_that_only_works_together() -> None:
    """A useless-looking voter that corrects a good one survives, where its own relevance is nil."""
    rng = np.random.default_rng(0)
    y, bias = rng.integers(0, 2, (2, 2000))
    agree = rng.random(2000) < 0.5
    X = np.column_stack([np.where(agree, y, bias), bias, np.where(rng.random(2000) < 0.55, y, 1 - y)])
    assert RFE(2).fit(X, y).support_.tolist() == [True, True, False]
    assert MRMR(2).fit(X, y).support_.tolist() == [True, False, True]


def test_rfe_values_reliable_error() -> None:
    """Inverting a voter's votes does not move it."""
    X, y, w = correlated_votes(1)
    flipped = X.copy()
    flipped[:, 2] = np.where(X[:, 2] == -1, -1, 1 - X[:, 2])
    np.testing.assert_array_equal(RFE(1).fit(flipped, y, w).ranking_, RFE(1).fit(X, y, w).ranking_)


def test_rfe_weighs_rows_under_metadata_routing_too() -> None:
    """The caller's choice of metadata routing does not reach the elimination inside."""
    X, y, w = correlated_votes(2)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = RFE(3).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(routed.ranking_, RFE(3).fit(X, y, w).ranking_)


def test_the_library_of_mrmr_leaves_the_warning_filters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library mutes all warnings when imported; nothing of that is left."""
    for module in [m for m in sys.modules if m.split(".")[0] == "mrmr"]:
        monkeypatch.delitem(sys.modules, module)
    before = list(warnings.filters)
    MRMRSelection(1).fit([[1, 0], [0, 0]], [1, 0])
    assert warnings.filters == before
    assert "mrmr.main" in sys.modules


@pytest.mark.slow
@pytest.mark.parametrize("file", ["summeval_llm/votes_ge5.csv", "wrench_youtube/votes.csv"])
@pytest.mark.parametrize("name", sorted(SELECTORS))
def test_real_votes(data_home: Path, file: str, name: str) -> None:
    """On real votes, abstains included, the selected voters fit better than the last ones, and rows collapse."""
    X, y = read_votes(data_home / file)
    cells, w = np.unique(np.column_stack([X, y]), axis=0, return_counts=True)

    def fit_quality(columns: tuple[int, ...]) -> float:
        votes = np.where(cells[:, columns] == -1, 0, 2 * cells[:, columns] - 1)
        model = LogisticRegression(solver="newton-cholesky").fit(votes, cells[:, -1], sample_weight=w)
        return -float(log_loss(cells[:, -1], model.predict_proba(votes), sample_weight=w))

    selector = SELECTORS[name](n_prompts=2)
    selector.fit(cells[:, :-1], cells[:, -1], w)
    order = np.argsort(selector.ranking_)
    assert fit_quality(tuple(order[:2])) > fit_quality(tuple(order[-2:])) + 0.01
    np.testing.assert_array_equal(selector.ranking_, selector.fit(X, y).ranking_)
