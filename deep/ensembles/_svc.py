"""Support vector classifier with a calibrated output."""

from typing import ClassVar

import numpy as np
from scipy.special import expit
from sklearn import svm

from deep._checks import Floats, Labels, Votes
from deep.base import BaseEnsembler
from deep.ensembles._encoding import Grid, check_above, merge_repeats, signed, weighted_sums
from deep.ensembles._linear import penalised_logistic

BLOCK = 2_000_000
"""Pairs of rows and support vectors that are held at once."""

MOST_ROWS = 4_000
"""Distinct rows (votes and label) up to which all are fitted; of more, as many are drawn."""


class SVC(BaseEnsembler):
    """Support vector classifier on signed votes, Gaussian kernel, with Platt's sigmoid on its output.

    scikit-learn's, with three departures, each for the sake of weighted rows. Its ``gamma="scale"`` takes the
    variance of the rows unweighted; here it is weighted. Its ``probability=True`` cross-validates inside, which
    weighted cells cannot follow, and is deprecated; here the sigmoid is fitted, weighted, to the decision
    values of the training rows. And `C` stands against the mean of the hinge loss, not its sum, so that what it
    means, and how long the solver runs, does not change with the number of rows. Exact on weighted rows.

    The solver's time grows with the square of the distinct rows (votes and label), or faster. Of more than 4,000 it is
    given 4,000 draws with replacement, in each class in proportion to the weights, the same in every fit of the
    same rows; the sigmoid is fitted to all (docs/decisions/0020-many-cells.md).

    Parameters
    ----------
    C : float, default=10.0
        Above 0: penalty of the mean hinge loss; scikit-learn's `C` times the number of rows.
    gamma : float or 'scale', default='scale'
        Above 0: inverse width of the kernel; 'scale' is 1 over the weighted variance of the signed votes, summed
        over voters, to which a voter that never varies adds nothing.
    tol : float, default=1e-6
        Where the solver stops.

    Attributes
    ----------
    model_ : sklearn.svm.SVC
    sigmoid_ : tuple of float
        Slope and intercept: P(consistent) = 1 / (1 + exp(-(slope * decision + intercept))).

    References
    ----------
    .. [1] Platt, "Probabilities for SV machines", Advances in Large-Margin Classifiers (2000).
       https://doi.org/10.7551/mitpress/1113.003.0008

    Examples
    --------
    >>> model = SVC().fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1, 1], [0, 0]])[:, 1].round(3).tolist()
    [0.75, 0.25]
    """

    param_grid: ClassVar[Grid] = {"C": (1.0, 10.0, 100.0)}

    def __init__(self, C: float = 10.0, *, gamma: float | str = "scale", tol: float = 1e-6) -> None:
        self.C = C
        self.gamma = gamma
        self.tol = tol

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.C, 0, "C")
        cells, labels, weights = merge_repeats(X, y, w)
        votes = signed(cells)
        drawn = _drawn(labels, weights)
        fitted = drawn > 0
        gamma = _inverse_variance(votes, weights) if self.gamma == "scale" else float(self.gamma)
        # Without a seed it advances numpy's global generator, though nothing in it is random here.
        model = svm.SVC(C=self.C / weights.sum(), gamma=gamma, tol=self.tol, random_state=0)
        self.model_ = model.fit(votes[fitted], labels[fitted], sample_weight=drawn[fitted])
        self.sigmoid_ = _platt_sigmoid(_decisions(model, gamma, votes), labels, weights)

    def _proba(self, X: Votes) -> Floats:
        slope, intercept = self.sigmoid_
        return np.asarray(expit(slope * _decisions(self.model_, self.model_.gamma, signed(X)) + intercept))


def draws_note(n_rows: int) -> str | None:
    """Return the sentence on fits to draws for so many distinct rows (votes and label) of all voters, if any is due."""
    if n_rows <= MOST_ROWS:
        return None
    return (
        f"SVC is fitted to {MOST_ROWS:,} draws wherever its voters leave more distinct rows (votes and label). "
        f"All voters leave {n_rows:,}."
    )


def _drawn(y: Labels, w: Floats) -> Floats:
    """Return the weights that rows are fitted with: their own, or of too many rows how often each is drawn, scaled."""
    if len(w) <= MOST_ROWS:
        return w
    rng, drawn = np.random.default_rng(0), np.zeros(len(w))
    for label in (0, 1):  # each class keeps its weight
        total = w[y == label].sum()
        n_draws = max(1, round(MOST_ROWS * total / w.sum()))
        drawn[y == label] = rng.multinomial(n_draws, w[y == label] / total) * (total / n_draws)
    return drawn


def _decisions(model: svm.SVC, gamma: float, votes: Floats) -> Floats:
    """Return scikit-learn's `decision_function`, whose exponentials are as few as the distances between votes are.

    Squared distances of signed votes are whole numbers up to four a voter, so the kernel is looked up.
    """
    support, coef = model.support_vectors_, model.dual_coef_[0]
    kernel = np.exp(-gamma * np.arange(4 * votes.shape[1] + 1))
    own, other = (votes**2).sum(axis=1), (support**2).sum(axis=1)
    step = max(1, BLOCK // max(1, len(support)))
    found = np.empty(len(votes))
    for start in range(0, len(votes), step):
        part = slice(start, start + step)
        apart = own[part, None] + other - 2 * votes[part] @ support.T
        found[part] = weighted_sums(kernel[apart.astype(np.intp)], coef)
    return found + float(model.intercept_[0])


def _inverse_variance(votes: Floats, w: Floats) -> float:
    """Return 1 over the summed weighted variances of the columns, 1 where nothing varies."""
    centred = votes - np.average(votes, axis=0, weights=w)
    variance = float(np.average(centred**2, axis=0, weights=w).sum())
    return 1 / variance if variance > 0 else 1.0


def _platt_sigmoid(decision: Floats, y: Labels, w: Floats) -> tuple[float, float]:
    """Return the slope and intercept that fit Platt's softened labels best.

    A row of label 1 counts (n_1 + 1) / (n_1 + 2) as a 1 and the rest as a 0, and the mirror image for label 0,
    so that separable rows, too, have a finite slope.
    """
    total = np.bincount(y, weights=w)
    soft = np.where(y == 1, (total[1] + 1) / (total[1] + 2), 1 / (total[0] + 2))
    # Decisions this small are rounding of 0, from which nothing can be read.
    scale = max(float(np.abs(decision).max()), 1e-9)
    column = np.tile(decision / scale, 2)[:, None]
    labels = np.repeat([1, 0], len(y))
    coef, intercept = penalised_logistic(column, labels, np.concatenate([w * soft, w * (1 - soft)]), C=1e9)
    return float(coef[0]) / scale, intercept
