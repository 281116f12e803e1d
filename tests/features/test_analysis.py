"""Labeling function analysis on weighted rows."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.features import analyze_votes, effective_votes, error_correlation

# Four weighted rows of three voters: the second abstains once, the third never votes.
X = np.array([[1, 1, -1], [1, 0, -1], [0, -1, -1], [0, 0, -1]])
Y = np.array([1, 1, 0, 1])
W = np.array([4, 3, 2, 1])


def random_votes(seed: int, n: int = 60, k: int = 5) -> tuple[npt.NDArray[np.int8], ...]:
    """Return votes of which a third are missing, labels, and weights 0 to 4."""
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, (n, k)).astype(np.int8), rng.integers(0, 2, n), rng.integers(0, 5, n)


def test_known_values() -> None:
    """Every column, worked out by hand."""
    table = analyze_votes(X, Y, W, voter_names=["a", "b", "c"])
    expected = {
        "coverage": [1.0, 0.8, 0.0],
        "overlaps": [0.8, 0.8, 0.0],
        "conflicts": [0.3, 0.3, 0.0],
        "polarity": [0.7, 0.5, np.nan],
        "accuracy": [0.9, 0.5, np.nan],  # a errs on the last row alone; b on two rows of weight 3 + 1 of 8
        "tpr": [7 / 8, 0.5, np.nan],
        "tnr": [1.0, np.nan, np.nan],
        "balanced_accuracy": [15 / 16, np.nan, np.nan],
    }
    reference = pd.DataFrame(expected, index=pd.Index(["a", "b", "c"], name="voter"))
    pd.testing.assert_frame_equal(table, reference)


def test_without_labels_only_the_votes_are_described() -> None:
    """What needs labels is left out, the rest is the same."""
    table = analyze_votes(X, sample_weight=W)
    assert table.columns.tolist() == ["coverage", "overlaps", "conflicts", "polarity"]
    pd.testing.assert_frame_equal(table, analyze_votes(X, Y, W)[table.columns])


@pytest.mark.parametrize(
    ("votes", "names", "expected"),
    [
        (X, None, ["x0", "x1", "x2"]),
        (pd.DataFrame(X, columns=list("abc")), None, ["a", "b", "c"]),
        (pd.DataFrame(X, columns=list("abc")), ("p", "q", "r"), ["p", "q", "r"]),
    ],
)
def test_voters_are_named(votes: Any, names: Any, expected: list[str]) -> None:
    """Given names win over those of a data frame, and those over positions."""
    assert analyze_votes(votes, voter_names=names).index.tolist() == expected


@pytest.mark.filterwarnings("ignore:Input has data type int64:FutureWarning")  # snorkel's use of scipy
@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_snorkel_on_the_repeated_rows(seed: int) -> None:
    """Coverage, overlaps, conflicts and accuracy are Snorkel's, abstains included."""
    from snorkel.labeling import LFAnalysis

    votes, y, w = random_votes(seed)
    votes[:, 4] = np.where(votes[:, 4] == 1, 1, -1)
    rows = np.repeat(np.arange(len(w)), w)
    reference = LFAnalysis(votes[rows].astype(int)).lf_summary(y[rows])
    table = analyze_votes(votes, y, w)
    for ours, theirs in {
        "coverage": "Coverage",
        "overlaps": "Overlaps",
        "conflicts": "Conflicts",
        "accuracy": "Emp. Acc.",
    }.items():
        np.testing.assert_allclose(table[ours], reference[theirs], rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("describe", [analyze_votes, error_correlation, effective_votes])
def test_a_weight_is_a_repetition(describe: Any, seed: int) -> None:
    """A row of weight w counts as the row repeated w times."""
    votes, y, w = random_votes(seed)
    rows = np.repeat(np.arange(len(w)), w)
    np.testing.assert_allclose(describe(votes, y, w), describe(votes[rows], y[rows]), rtol=0, atol=1e-12)


def within_class_correlation(a: Any, b: Any, y: Any) -> float:
    """Correlate two voters' errors after taking the class means off, on the rows that both vote on."""
    both = (a != -1) & (b != -1)
    errors = pd.DataFrame({"a": a != y, "b": b != y}).astype(float)[both]
    centred = errors - errors.groupby(y[both]).transform("mean")
    return float(np.corrcoef(centred["a"], centred["b"])[0, 1])


@pytest.mark.parametrize("seed", range(4))
def test_error_correlation_is_pearsons_within_classes(seed: int) -> None:
    """Each pair agrees with numpy's correlation of errors centred by class."""
    votes, y, _ = random_votes(seed)
    correlation = error_correlation(votes, y)
    for i in range(5):
        for j in range(i):
            expected = within_class_correlation(votes[:, i], votes[:, j], y)
            assert correlation[i, j] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(correlation, correlation.T)
    np.testing.assert_array_equal(np.diag(correlation), np.ones(5))


def test_leaning_the_same_way_is_not_correlation() -> None:
    """Voters that err more often on one class, but on unrelated rows of it, are uncorrelated."""
    # On label 0 each errs on half of the rows, crosswise; on label 1 neither ever errs.
    votes = [[1, 1], [1, 0], [0, 1], [0, 0], [1, 1], [1, 1]]
    y = [0, 0, 0, 0, 1, 1]
    np.testing.assert_allclose(error_correlation(votes, y), np.eye(2), atol=1e-12)
    assert effective_votes(votes, y) == pytest.approx(2.0)


def test_opposite_errors_are_negatively_correlated() -> None:
    """Voters that never err together gain from each other, yet count as no more than they are."""
    votes, y = [[1, 0], [0, 1], [1, 0], [0, 1]], [1, 1, 0, 0]
    np.testing.assert_array_equal(error_correlation(votes, y), [[1, -1], [-1, 1]])
    assert effective_votes(votes, y) == 2.0


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1], 1.0),  # always 1: the same votes, though errors are constant within classes
        ([1, 1, 0, 0], [1, 1, 0, 0], 1.0),  # both without error
        ([1, 1, 1, 1], [1, 0, 0, 1], 0.0),  # one never varies
        ([1, 1, 1, 1], [0, 0, 0, 0], 0.0),  # neither varies, and they differ
        ([1, -1, 1, -1], [-1, 0, -1, 1], 0.0),  # no row in common
        ([1, -1, 1, -1], [1, 0, 1, 1], 1.0),  # one voter where both vote
        ([-1, -1, -1, -1], [1, 0, 1, 1], 0.0),
        ([-1, -1, -1, -1], [-1, -1, -1, -1], 0.0),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_correlation_where_there_is_no_variance(a: list[int], b: list[int], expected: float, scale: float) -> None:
    """The documented conventions hold, without NaN, whatever the scale of the weights."""
    weights = np.array([3, 1, 2, 5]) * scale
    correlation = error_correlation(np.column_stack([a, b]), [1, 1, 0, 0], weights)
    np.testing.assert_array_equal(correlation, [[1.0, expected], [expected, 1.0]])


@pytest.mark.parametrize("k", [1, 2, 9])
def test_copies_are_one_vote(k: int) -> None:
    """However many times a voter is copied, it is one effective vote."""
    votes, y, w = random_votes(0)
    assert effective_votes(np.repeat(votes[:, :1], k, axis=1), y, w) == pytest.approx(1.0)


@pytest.mark.parametrize(("rho", "expected"), [(0.0, 9.0), (0.5, 1.8)])
def test_effective_votes_is_the_design_effect(rho: float, expected: float) -> None:
    """Nine voters whose errors have correlation rho count as 9 / (1 + 8 rho)."""
    # Each vote follows a shared error with probability sqrt(rho), else errs on its own: pairs correlate by rho.
    rng = np.random.default_rng(0)
    n = 50_000
    y = rng.integers(0, 2, n)
    shared, own = rng.random((n, 1)) < 0.3, rng.random((n, 9)) < 0.3
    wrong = np.where(rng.random((n, 9)) < np.sqrt(rho), shared, own)
    votes = np.where(wrong, 1 - y[:, None], y[:, None])
    assert effective_votes(votes, y) == pytest.approx(expected, rel=0.02)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 5))
def test_correlations_and_effective_votes_stay_in_range(seed: int, n: int, k: int) -> None:
    """However few and odd the rows, values are finite and within their bounds."""
    votes, y, w = random_votes(seed, n, k)
    w = w / 7 + 1e-9
    correlation = error_correlation(votes, y, w)
    assert np.isfinite(correlation).all()
    assert (np.abs(correlation) <= 1).all()
    assert 1 <= effective_votes(votes, y, w) <= k
    shares = analyze_votes(votes, y, w).to_numpy()
    assert (np.isnan(shares) | ((shares >= 0) & (shares <= 1 + 1e-12))).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[1, 2]]}, r"`X` must hold only -1 \(no vote\), 0 and 1\. Got 2\.0 at row 0, column 1\."),
        ({"y": [1, 0]}, r"`y` must have 4 entries, one a row\. Got 2\."),
        ({"sample_weight": [0, 0, 0, 0]}, r"`sample_weight` must have a positive sum\. Got only zeros\."),
    ],
)
def test_bad_rows_are_refused(change: dict[str, Any], message: str) -> None:
    """Votes, labels and weights out of range are named; errors need labels; there is one name a column."""
    for describe in (analyze_votes, error_correlation, effective_votes):
        with pytest.raises(InputError, match=message):
            describe(**({"X": X, "y": Y, "sample_weight": W} | change))
    for describe in (error_correlation, effective_votes):
        with pytest.raises(InputError, match="`y` must be given"):
            describe(X, None)
    with pytest.raises(InputError, match=r"`voter_names` must have 3 entries, one per column\. Got 2\."):
        analyze_votes(X, voter_names=["a", "b"])


def test_real_llm_judges(data_home: Path) -> None:
    """Nine LLM prompts on SummEval are worth far fewer than nine independent votes."""
    table = pd.read_csv(data_home / "summeval_llm" / "votes_ge5.csv")
    votes, y = table.iloc[:, 3:].fillna(-1), table["label"]
    described = analyze_votes(votes, y)
    assert described.index.tolist() == votes.columns.tolist()
    assert (described["coverage"] > 0.9).all()
    assert described["balanced_accuracy"].between(0.4, 0.9).all()
    assert 1.5 < effective_votes(votes, y) < 4.5


def test_real_labeling_functions(data_home: Path) -> None:
    """Keyword rules that only ever vote one way pass for two voters, one a side, not for ten."""
    table = pd.read_csv(data_home / "wrench_youtube" / "votes.csv")
    votes, y = table.iloc[:, 3:].fillna(-1), table["label"]
    described = analyze_votes(votes, y)
    assert described["coverage"].between(0.01, 0.5).any()
    assert set(described["polarity"]) == {0.0, 1.0}
    assert effective_votes(votes, y) == pytest.approx(2.0)
