"""The base classes of estimators.

A prompt selector picks columns of a matrix of votes, an ensembler turns a row of it into P(consistent), and a
calibrator makes that probability honest.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from deep._util import checks
from deep._util.checks import Floats, Labels, Mask, Positions, Texts, Votes, Weights
from deep._util.odds import DECISION_P, P_MIN
from deep.exceptions import InputError
from deep.records import ABSTAIN

__all__ = [
    "BaseCalibrator",
    "BaseEnsembler",
    "BasePromptSelector",
    "StagedEnsembler",
]


# The values that a grid search tries, by parameter.
Grid = Mapping[str, Sequence[object]]


class BasePromptSelector(SelectorMixin, BaseEstimator):
    """Picks columns of the vote matrix.

    A subclass implements ``_rank(X, y, w)``, which returns the columns from best to worst; the first
    ``n_prompts`` of them are selected.

    Attributes
    ----------
    ranking_ : ndarray of int, shape (n_voters,)
        1 for the column that would be kept last, n_voters for the one that would be dropped first.
    support_ : ndarray of bool, shape (n_voters,)
        True for the selected columns.
    """

    n_prompts: int
    n_features_in_: int
    feature_names_in_: Texts

    @abstractmethod
    def _rank(self, X: Votes, y: Labels, w: Floats) -> Positions:
        """Return all column positions, best first."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: Weights = None) -> Self:
        """Rank the columns of votes `X` by labels `y` and weights, and select the first `n_prompts`."""
        names = checks.column_names(X)
        votes = checks.check_votes(X, voters=names)
        labels = checks.check_labels(y, len(votes))
        weights = checks.check_sample_weight(sample_weight, len(votes))
        # By type, since True is an int as well.
        if type(self.n_prompts) is not int or not 1 <= self.n_prompts <= votes.shape[1]:
            raise InputError(f"`n_prompts` must be a whole number from 1 to {votes.shape[1]}. Got {self.n_prompts!r}.")
        order = self._rank(votes, labels, weights)
        self.ranking_ = np.empty(votes.shape[1], dtype=int)
        self.ranking_[order] = np.arange(1, votes.shape[1] + 1)
        self.support_ = self.ranking_ <= self.n_prompts
        remember_columns(self, names, votes.shape[1])
        return self

    def _get_support_mask(self) -> Mask:
        check_is_fitted(self)
        return self.support_

    def transform(self, X: npt.ArrayLike) -> Votes:
        """Return the selected columns of votes, shape (n_examples, n_prompts)."""
        return align_columns(self, X)[:, self.support_]

    def inverse_transform(self, X: npt.ArrayLike) -> Votes:
        """Return votes with the columns that were not selected given back as "no vote"."""
        votes = checks.check_votes(X)
        if votes.shape[1] != self._get_support_mask().sum():
            raise InputError(f"`X` must have {self.support_.sum()} columns, the selected ones. Got {votes.shape[1]}.")
        # scikit-learn's own fills with 0, which is a vote (decision 33).
        whole = np.full((len(votes), len(self.support_)), ABSTAIN, dtype=np.int8)
        whole[:, self.support_] = votes
        return whole


class BaseEnsembler(ClassifierMixin, BaseEstimator):
    """Turns a row of votes into P(consistent).

    A subclass implements ``_fit(X, y, w)`` and ``_proba(X)``; checks, column names and the two-column
    output are done here. ``(X, y, w)`` must give what the rows repeated w times give.

    Attributes
    ----------
    classes_ : ndarray [0, 1]
        The labels, in the order of the columns of `predict_proba`.
    n_features_in_ : int
        The number of voters that it was fitted on.
    feature_names_in_ : ndarray of str
        Only where `X` was a data frame; later frames are realigned by these names.
    """

    n_features_in_: int
    feature_names_in_: Texts

    uses_labels: ClassVar[bool] = True
    """False for an ensembler that learns from the votes alone and ignores `y`."""

    min_voters: ClassVar[int] = 1
    """The least number of columns that it can be fitted on."""

    library: ClassVar[str] = "deep"
    """The package, as it is imported, that does the work of an ensembler that is tried where it is installed."""

    param_grid: ClassVar[Grid] = {}
    """The values that a grid search tries, by parameter; at most 6 points in all."""

    @abstractmethod
    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        """Learn from checked votes, labels (all -1 where the ensembler ignores them) and weights."""

    @abstractmethod
    def _proba(self, X: Votes) -> Floats:
        """Return P(consistent) of each row of checked votes."""

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, sample_weight: Weights = None) -> Self:
        """Learn to aggregate votes.

        Parameters
        ----------
        X : array-like of shape (n_examples, n_voters)
            Votes: 1 consistent, 0 inconsistent, -1 no vote.
        y : array-like of shape (n_examples,), optional
            Labels 0/1, both present. Ignored where `uses_labels` is False.
        sample_weight : array-like of shape (n_examples,), optional
            How often each row counts; default 1 each. Rows of weight 0 are left out.

        Returns
        -------
        self

        Raises
        ------
        InputError
            Votes, labels or weights are out of range, lengths differ, a class is missing, or there are
            fewer than `min_voters` columns.
        """
        names = checks.column_names(X)
        votes = checks.check_votes(X, voters=names)
        weights = checks.check_sample_weight(sample_weight, len(votes))
        labels = checks.check_labels(y, len(votes)) if self.uses_labels else np.full(len(votes), -1, dtype=np.int8)
        if votes.shape[1] < self.min_voters:
            raise InputError(
                f"`X` must have at least {self.min_voters} columns for {type(self).__name__}. Got {votes.shape[1]}."
            )
        mask = weights > 0
        if self.uses_labels:
            checks.check_two_classes(labels[mask], "y")
        self.classes_ = np.array([0, 1])
        remember_columns(self, names, votes.shape[1])
        self._fit(votes[mask], labels[mask], weights[mask])
        return self

    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return [P(inconsistent), P(consistent)] of each row, shape (n_examples, 2), rows summing to 1."""
        positive = np.clip(self._proba(align_columns(self, X)), 0.0, 1.0)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return 1 where P(consistent) >= 0.5, else 0, shape (n_examples,)."""
        return (self.predict_proba(X)[:, 1] >= DECISION_P).astype(np.int64)


class StagedEnsembler(BaseEnsembler):
    """An ensembler built round by round, where one fit can be scored at every number of rounds.

    A subclass also implements ``_staged_proba(X, stages)``, so that a grid search over `stage_param` fits once.
    """

    stage_param: ClassVar[str] = "n_estimators"
    """The constructor's parameter that holds the number of rounds."""

    @abstractmethod
    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        """Return P(consistent) after each number of rounds, shape (len(stages), n_examples)."""

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(self._staged_proba(X, [getattr(self, self.stage_param)])[0])

    def staged_predict_proba(self, X: npt.ArrayLike, stages: Sequence[int]) -> Floats:
        """Return P(consistent) after each of `stages` rounds, shape (len(stages), n_examples)."""
        rounds = getattr(self, self.stage_param)
        for stage in stages:
            if not 1 <= stage <= rounds:
                raise InputError(f"`stages` must be between 1 and `{self.stage_param}`={rounds}. Got {stage!r}.")
        return np.clip(self._staged_proba(align_columns(self, X), stages), 0.0, 1.0)


def remember_columns(estimator: "BaseEnsembler | BasePromptSelector", names: list[str] | None, n_columns: int) -> None:
    """Store the column names for `align_columns`, in place of those of an earlier fit."""
    estimator.n_features_in_ = n_columns
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def align_columns(estimator: "BaseEnsembler | BasePromptSelector", X: npt.ArrayLike) -> Votes:
    """Return checked votes with the columns in the order of the fit, by name where names are known."""
    check_is_fitted(estimator)
    names = checks.column_names(X)
    fitted = getattr(estimator, "feature_names_in_", None)
    if names is not None and fitted is not None:
        missing = [name for name in fitted if name not in names]
        if missing:
            raise InputError(f"`X` must have the columns it was fitted on. Got none named {missing[0]!r}.")
        X = np.asarray(X)[:, [names.index(name) for name in fitted]]
    votes = checks.check_votes(X, voters=None if fitted is None else list(fitted))
    if votes.shape[1] != estimator.n_features_in_:
        raise InputError(f"`X` must have {estimator.n_features_in_} columns, as in `fit`. Got {votes.shape[1]}.")
    return votes


class BaseCalibrator(BaseEstimator):
    """Maps a probability to a better calibrated one.

    A subclass implements ``_fit(p, y, w)`` and ``_transform(p)``.
    """

    @abstractmethod
    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        """Learn the map from checked probabilities, labels and weights."""

    @abstractmethod
    def _transform(self, p: Floats) -> Floats:
        """Map checked probabilities."""

    def fit(self, y_prob: npt.ArrayLike, y_true: npt.ArrayLike, sample_weight: Weights = None) -> Self:
        """Learn the map from held-out probabilities and their labels.

        Parameters
        ----------
        y_prob : array-like of shape (n_examples,)
            P(consistent), in [0, 1], of rows that the ensembler was not fitted on.
        y_true : array-like of shape (n_examples,)
            Labels 0/1, both present.
        sample_weight : array-like of shape (n_examples,), optional
            How often each row counts; default 1 each.

        Returns
        -------
        self

        Raises
        ------
        InputError
            A value is out of range, lengths differ, or a class is missing.
        """
        p = checks.check_probabilities(y_prob)
        y = checks.check_labels(y_true, len(p), name="y_true")
        w = checks.check_sample_weight(sample_weight, len(p))
        mask = w > 0
        checks.check_two_classes(y[mask], "y_true")
        self._fit(p[mask], y[mask], w[mask])
        self.is_fitted_ = True
        return self

    def transform(self, y_prob: npt.ArrayLike) -> Floats:
        """Return calibrated probabilities, shape (n_examples,), within [1e-6, 1 - 1e-6]."""
        check_is_fitted(self, "is_fitted_")
        return np.clip(self._transform(checks.check_probabilities(y_prob)), P_MIN, 1.0 - P_MIN)

    def predict(self, y_prob: npt.ArrayLike) -> Floats:
        """Return calibrated probabilities; the name that scikit-learn's cross-validation has for `transform`."""
        return self.transform(y_prob)
