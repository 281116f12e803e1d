"""Ensemblers that add up votes: counts of them, and logistic functions of a weighted sum of signed votes."""

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn import svm

from deep._util.checks import Floats, Labels, Votes, check_above
from deep._util.odds import penalised_logistic
from deep.base import BaseEnsembler, Grid
from deep.exceptions import InputError
from deep.features import distinct_cells, merge_repeats, signed, vote_tokens, weighted_sums
from deep.records import ABSTAIN


class LogisticRegression(BaseEnsembler):
    """Logistic regression on signed votes, with an L2 penalty on all but the intercept.

    Exact on weighted rows. The coefficients are those of scikit-learn's Newton solver to 1e-12, whose checks take
    longer than the few small matrix products that its steps come to: a fit and its P take a quarter of the time
    (``benchmarks/small_fits.py``, on eleven datasets).

    Parameters
    ----------
    C : float, default=0.1
        Inverse strength of the penalty, above 0: C times the summed log loss stands against half the squared
        norm of the coefficients.

    Attributes
    ----------
    coef_ : ndarray of shape (n_voters,)
        Change of the log-odds by a vote for 1; a vote for 0 is the opposite, no vote is 0.
    intercept_ : float
        In log-odds.

    Examples
    --------
    >>> model = LogisticRegression(C=1.0).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.coef_[0].round(3).item()
    1.043
    >>> model.predict_proba([[1, 0], [-1, -1]])[:, 1].round(3).tolist()
    [0.739, 0.5]
    """

    param_grid: ClassVar[Grid] = {"C": (0.0001, 0.001, 0.01, 1.0)}

    def __init__(self, C: float = 0.1) -> None:
        self.C = C

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.C, 0, "C")
        self.coef_, self.intercept_ = penalised_logistic(signed(X), y, w, C=self.C)

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(expit(weighted_sums(signed(X), self.coef_) + self.intercept_))


class LDA(BaseEnsembler):
    """Linear discriminant analysis on signed votes.

    The two classes are taken as normal with one covariance in common [1]_. Fitted in closed form on weighted
    moments, because scikit-learn's takes no weights; on unweighted rows it equals scikit-learn's
    ``LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage)``. A variance of 1e-8 is added to every
    voter, so that a voter that never varies is harmless and one that is never wrong is followed.

    Parameters
    ----------
    shrinkage : float, default=0.0
        In [0, 1]: how far the covariance is drawn to a multiple of the identity matrix of the same trace.

    Attributes
    ----------
    coef_ : ndarray of shape (n_voters,)
        Change of the log-odds by a vote for 1; a vote for 0 is the opposite, no vote is 0.
    intercept_ : float
        In log-odds.

    References
    ----------
    .. [1] Fisher, "The use of multiple measurements in taxonomic problems", Annals of Eugenics 7 (1936).
       https://doi.org/10.1111/j.1469-1809.1936.tb02137.x

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [1, 1], [0, 0], [0, 1]], [1, 1, 1, 0, 0, 0]
    >>> model = LDA().fit(X, y)
    >>> model.predict_proba([[1, 1], [0, 0]])[:, 1].round(3).tolist()
    [0.679, 0.321]
    """

    param_grid: ClassVar[Grid] = {"shrinkage": (0.0, 0.1, 0.5)}

    def __init__(self, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        if not 0 <= self.shrinkage <= 1:
            raise InputError(f"`shrinkage` must be in [0, 1]. Got {self.shrinkage!r}.")
        # scikit-learn's class takes no weights (decision 33).
        votes, total = signed(X), np.bincount(y, weights=w)
        means = np.stack([w[y == label] @ votes[y == label] / total[label] for label in (0, 1)])
        centred = votes - means[y]
        covariance = (centred.T * w) @ centred / w.sum()
        mean_variance = float(np.trace(covariance)) / len(covariance)
        # The 1e-8 keeps a voter that never varies harmless.
        ridge = self.shrinkage * mean_variance + 1e-8
        regularised = (1 - self.shrinkage) * covariance + ridge * np.eye(len(covariance))
        # With one covariance for both classes Bayes' rule gives log-odds that are linear in the votes.
        self.coef_ = np.linalg.solve(regularised, means[1] - means[0])
        self.intercept_ = float(np.log(total[1] / total[0]) - means.mean(axis=0) @ self.coef_)

    def _proba(self, X: Votes) -> Floats:
        return np.asarray(expit(weighted_sums(signed(X), self.coef_) + self.intercept_))


# The most pairs of rows and support vectors whose kernel is held at once.
MAX_KERNEL_PAIRS = 2_000_000

MAX_SVC_ROWS = 4_000
"""The most distinct rows (votes and label) that are fitted; of more, as many are drawn (decision 20)."""


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
        The fitted machine of scikit-learn.
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
        draws = _draw_row_weights(labels, weights)
        fitted = draws > 0
        gamma = _inverse_variance(votes, weights) if self.gamma == "scale" else float(self.gamma)
        # Without a seed it advances numpy's global generator, though nothing in it is random here.
        # `C` here is for all rows together; scikit-learn's is for each, so that the penalty would weaken with every
        # row.
        model = svm.SVC(C=self.C / weights.sum(), gamma=gamma, tol=self.tol, random_state=0)
        self.model_ = model.fit(votes[fitted], labels[fitted], sample_weight=draws[fitted])
        self.sigmoid_ = _platt_sigmoid(_decision_function(model, gamma, votes), labels, weights)

    def _proba(self, X: Votes) -> Floats:
        slope, intercept = self.sigmoid_
        return np.asarray(expit(slope * _decision_function(self.model_, self.model_.gamma, signed(X)) + intercept))


def draws_note(n_rows: int) -> str | None:
    """Return the sentence on fits to draws for so many distinct rows (votes and label) of all voters, if any is due."""
    if n_rows <= MAX_SVC_ROWS:
        return None
    return (
        f"SVC is fitted to {MAX_SVC_ROWS:,} draws wherever its voters leave more distinct rows (votes and label). "
        f"All voters leave {n_rows:,}."
    )


def _draw_row_weights(y: Labels, w: Floats) -> Floats:
    """Return the weights that rows are fitted with: their own, or of too many rows how often each is drawn, scaled."""
    if len(w) <= MAX_SVC_ROWS:
        return w
    rng, draws = np.random.default_rng(0), np.zeros(len(w))
    for label in (0, 1):  # each class keeps its weight
        total = w[y == label].sum()
        n_draws = max(1, round(MAX_SVC_ROWS * total / w.sum()))
        draws[y == label] = rng.multinomial(n_draws, w[y == label] / total) * (total / n_draws)
    return draws


def _decision_function(model: svm.SVC, gamma: float, votes: Floats) -> Floats:
    """Return scikit-learn's `decision_function`, whose exponentials are as few as the distances between votes are.

    Squared distances of signed votes are whole numbers up to four a voter, so the kernel is looked up.
    """
    # scikit-learn's `decision_function` gives the same to 2e-14, in 7 to 24 times the time at three to five voters.
    support, coef = model.support_vectors_, model.dual_coef_[0]
    kernel = np.exp(-gamma * np.arange(4 * votes.shape[1] + 1))
    own, other = (votes**2).sum(axis=1), (support**2).sum(axis=1)
    step = max(1, MAX_KERNEL_PAIRS // max(1, len(support)))
    result = np.empty(len(votes))
    for start in range(0, len(votes), step):
        part = slice(start, start + step)
        apart = own[part, None] + other - 2 * votes[part] @ support.T
        result[part] = weighted_sums(kernel[apart.astype(np.intp)], coef)
    return result + float(model.intercept_[0])


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


# The most distances held at once, so that memory does not grow with the rows asked for.
MAX_DISTANCES_HELD = 2**22

# Most cells in a table of all patterns of votes by distance: those of 11 voters.
MAX_TABLE_CELLS = 2**22

# How far two votes of one voter are apart, each in the order no vote, 0, 1.
VOTE_DISTANCES = np.array([[0, 1, 1], [1, 0, 2], [1, 2, 0]])


class KNeighbors(BaseEnsembler):
    """The share of label 1 among the nearest training rows, ties shared.

    The distance between two rows adds up over voters: 0 where they agree or neither voted, 1 where only one
    voted, 2 where they disagree. Votes leave most rows at equal distances, and scikit-learn's neighbours then
    are those that happen to stand first: shuffling the training rows flips up to a fifth of its answers at 5
    neighbours. It takes no weights either. Hence this one is written out: neighbours are counted by weight,
    and all rows at the distance of the last one share what is left of `n_neighbors`, which is the mean of
    scikit-learn's answer over all orders of the rows. Exact on weighted rows.

    The distance is a sum over voters, so that the weights at every distance of all 3^k patterns of k voters follow from
    those of the training rows one voter at a time: where rows are many and voters few, that takes less than going
    through all pairs of rows, and gives the same.

    Parameters
    ----------
    n_neighbors : float, default=100
        Above 0: weight, that is number of rows, to average over. Where the training rows weigh less, all are
        averaged.

    Attributes
    ----------
    patterns_ : ndarray of int8, shape (n_patterns, n_voters)
        The distinct training rows.
    counts_ : ndarray of shape (n_patterns, 2)
        Their weights by label.

    References
    ----------
    .. [1] Cover and Hart, "Nearest neighbor pattern classification", IEEE Transactions on Information Theory 13
       (1967). https://doi.org/10.1109/TIT.1967.1053964

    Examples
    --------
    The one row equal to [1, 1] has label 1; the two at distance 2 have labels 1 and 0 and share the other two
    places.

    >>> model = KNeighbors(n_neighbors=2).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1, 1]])[:, 1].tolist()
    [0.75]
    """

    param_grid: ClassVar[Grid] = {"n_neighbors": (25, 100, 400, 1600)}

    def __init__(self, n_neighbors: float = 100) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.n_neighbors, 0, "n_neighbors")
        self.patterns_, counts = distinct_cells(X, y, w)
        # Whole multiples of a power of two, a 2^50th of the sum, add up exactly, and so alike in both ways below.
        unit = 2.0 ** (np.ceil(np.log2(counts.sum())) - 50)
        self.counts_ = np.rint(counts / unit) * unit

    def _proba(self, X: Votes) -> Floats:
        k = X.shape[1]
        if (2 * k + 1) * 3**k <= MAX_TABLE_CELLS and 2 * k * (2 * k + 1) * 3**k < len(X) * len(self.patterns_):
            return self._share_of_ones(_weights_of_all_patterns(self.patterns_, self.counts_)[:, _pattern_positions(X)])
        step = max(1, MAX_DISTANCES_HELD // len(self.patterns_))
        blocks = (X[i : i + step] for i in range(0, len(X), step))
        return np.concatenate([self._share_of_ones(self._weights(block)) for block in blocks])

    def _weights(self, X: Votes) -> Floats:
        """Return the weight of training rows by distance, row and label."""
        a, b, n = signed(X), signed(self.patterns_), 2 * X.shape[1] + 1
        # |a - b| = |a| + |b| - ab - |ab| for each of the nine pairs of -1, 0 and 1, so two products give all.
        cast_a, cast_b = np.abs(a), np.abs(b)
        apart = cast_a.sum(axis=1)[:, None] + cast_b.sum(axis=1) - a @ b.T - cast_a @ cast_b.T
        where = (apart.astype(np.intp) + n * np.arange(len(X))[:, None]).ravel()
        by_label = [np.bincount(where, np.tile(w, len(X)), n * len(X)) for w in self.counts_.T]
        return np.asarray(np.stack(by_label, axis=-1).reshape(len(X), n, 2).swapaxes(0, 1), dtype=np.float64)

    def _share_of_ones(self, weights: Floats) -> Floats:
        """Return the share of label 1 in the nearest `n_neighbors` of each row, outward by distance."""
        total = weights.sum(axis=2)
        # Of the last distance that is reached, rows count in part: none of them comes before the others.
        before = np.cumsum(total, axis=0) - total
        room = np.clip(self.n_neighbors - before, 0.0, total)
        share = np.divide(room, total, out=np.zeros_like(total), where=total > 0)
        return weighted_sums(weights[:, :, 1].T, share.T) / weighted_sums(room.T, np.ones(len(room)))


def _pattern_positions(X: Votes) -> npt.NDArray[np.intp]:
    """Return the position of each row of votes among all patterns, the first voter counting most."""
    return (X.astype(np.intp) + 1) @ 3 ** np.arange(X.shape[1])[::-1]


def _weights_of_all_patterns(patterns: Votes, counts: Floats) -> Floats:
    """Return the weight of training rows by distance, pattern and label: of all 3^k patterns of k voters."""
    k = patterns.shape[1]
    weights = np.zeros((2 * k + 1, 3**k, 2))
    weights[0, _pattern_positions(patterns)] = counts
    for voter in range(k):
        of_rest = weights.reshape(2 * k + 1, 3**voter, 3, -1)
        result = np.zeros_like(of_rest)
        for (theirs, ours), apart in np.ndenumerate(VOTE_DISTANCES):
            result[apart:, :, ours] += of_rest[: 2 * k + 1 - apart, :, theirs]
        weights = result.reshape(weights.shape)
    return weights


class MajorityLabelVoter(BaseEnsembler):
    """The share of votes cast for 1.

    Learns nothing: labels and weights are ignored. A tie, and a row without votes, is 0.5, which `predict`
    decides as 1.

    Examples
    --------
    >>> voter = MajorityLabelVoter().fit([[1, 1, 0], [0, -1, -1]])
    >>> voter.predict_proba([[1, 0, -1], [1, 1, 1], [-1, -1, -1]])[:, 1].tolist()
    [0.5, 1.0, 0.5]
    """

    uses_labels: ClassVar[bool] = False

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        """Learn nothing."""

    def _proba(self, X: Votes) -> Floats:
        return _share_of_ones(X, np.ones(X.shape[1]))


class WeightedMajorityVoting(BaseEnsembler):
    """The share of votes cast for 1, where better voters count for more.

    A voter's weight is the log-odds of its balanced accuracy on the votes it cast, which is the optimal weight
    where voters err independently and as often on either class [1]_; a voter no better than chance has weight
    0. A row on which no voter of positive weight voted is 0.5.

    Parameters
    ----------
    smoothing : float, default=1.0
        Above 0: votes added to either side of a voter's balanced accuracy, which becomes
        (n * accuracy + smoothing) / (n + 2 * smoothing) for n votes cast. It keeps a flawless voter's weight
        finite, and a voter of few votes from leading the others. A class on which the voter cast no vote
        counts as half right.

    Attributes
    ----------
    voter_weights_ : ndarray of shape (n_voters,)
        Not negative.

    References
    ----------
    .. [1] Nitzan and Paroush, "Optimal decision rules in uncertain dichotomous choice situations",
       International Economic Review 23 (1982). https://doi.org/10.2307/2526438

    Examples
    --------
    Of six votes the first voter's are all right: (6 * 1 + 1) / (6 + 2) = 7/8, and log 7 = 1.95.

    >>> X = [[1, 1], [1, 1], [1, 0], [0, 1], [0, 0], [0, 0]]
    >>> voter = WeightedMajorityVoting().fit(X, [1, 1, 1, 0, 0, 0])
    >>> voter.voter_weights_.round(2).tolist()
    [1.95, 0.51]
    >>> voter.predict_proba([[1, 0], [-1, 0]])[:, 1].round(2).tolist()
    [0.79, 0.0]
    """

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        pseudo = check_above(self.smoothing, 0, "smoothing")
        cast = w @ (X != ABSTAIN)
        # Balanced, or a judge that always says the more frequent label would lead.
        accuracy = (_share_of_right_votes(X, y, w, 0) + _share_of_right_votes(X, y, w, 1)) / 2
        smoothed = (cast * accuracy + pseudo) / (cast + 2 * pseudo)
        # Log-odds of being right are the best weights of independent voters (Nitzan and Paroush 1982).
        self.voter_weights_ = np.maximum(0.0, np.log(smoothed / (1 - smoothed)))

    def _proba(self, X: Votes) -> Floats:
        return _share_of_ones(X, self.voter_weights_)


def _share_of_right_votes(X: Votes, y: Labels, w: Floats, label: int) -> Floats:
    """Return each voter's weighted share of right votes among those it cast on one class, 0.5 for none."""
    votes, weights = X[y == label], w[y == label]
    return _divide(weights @ (votes == label), weights @ (votes != ABSTAIN))


def _share_of_ones(X: Votes, voter_weights: Floats) -> Floats:
    return _divide(weighted_sums(X == 1, voter_weights), weighted_sums(X != ABSTAIN, voter_weights))


def _divide(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0.5 where whole is 0."""
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, 0.5), where=whole > 0))


# Strong credit is what makes up for voters that err together, at 10,000 rows about one row each.
ALPHA_GRID = {"alpha": (1.0, 300.0, 1000.0, 3000.0, 10000.0, 30000.0)}


class BernoulliNB(BaseEnsembler):
    """Naive Bayes with one coin a voter and class; no vote says nothing.

    Written out because scikit-learn's knows no missing entries: there an abstain would have to count as a vote
    for 0 or for 1. On complete votes the two are equal. Exact on weighted rows.

    Parameters
    ----------
    alpha : float, default=1.0
        Above 0: votes for 1, and as many for 0, that each voter is credited with in each class. Large values
        draw the probabilities together, which dependent voters need.

    Attributes
    ----------
    class_log_odds_ : float
        Log-odds of label 1 among the training rows.
    vote_log_odds_ : ndarray of shape (2, n_voters)
        What a vote for 0 (first row) and a vote for 1 (second row) add to the log-odds.

    Examples
    --------
    The voter says 1 on both rows of label 1 and on none of label 0: with alpha = 1 its rates of saying 1 are
    3/4 and 1/4, so that a vote for 1 makes the odds 3 to 1.

    >>> model = BernoulliNB().fit([[1], [1], [0], [0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1], [0], [-1]])[:, 1].tolist()
    [0.75, 0.25, 0.5]
    """

    param_grid: ClassVar[Grid] = ALPHA_GRID

    def __init__(self, alpha: float = 1.0) -> None:
        self.alpha = alpha

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.alpha, 0, "alpha")
        total = np.bincount(y, weights=w)
        self.class_log_odds_ = float(np.log(total[1] / total[0]))
        # Each voter's smoothed share of 1 among the votes it cast, by class.
        by_class = ((X[y == label], w[y == label]) for label in (0, 1))
        rates = np.stack(
            [(v @ (votes == 1) + self.alpha) / (v @ (votes != ABSTAIN) + 2 * self.alpha) for votes, v in by_class]
        )
        self.vote_log_odds_ = np.stack([np.log((1 - rates[1]) / (1 - rates[0])), np.log(rates[1] / rates[0])])

    def _proba(self, X: Votes) -> Floats:
        said_0, said_1 = self.vote_log_odds_
        return np.asarray(expit(weighted_sums(X == 0, said_0) + weighted_sums(X == 1, said_1) + self.class_log_odds_))


class MultinomialNB(BaseEnsembler):
    """Naive Bayes on tokens: each row is a bag of "voter j said 1" and "voter j said 0".

    No vote gives no token. On complete votes it equals :class:`BernoulliNB`, since all bags are then of one size; where
    voters abstain, how often each is heard in a class counts too. Without tokens of 0, as the paper's recipe has it, a
    row says only which voters said 1: scikit-learn's class on the matrix of zeros and ones. Exact on weighted rows, and
    equal to scikit-learn's, whose checks take longer than the few sums that it comes to: a fit and its P take a fifth
    of the time (``benchmarks/small_fits.py``, on eleven datasets).

    Parameters
    ----------
    alpha : float, default=1.0
        Above 0: tokens of each kind that each class is credited with.
    zeros : bool, default=True
        Whether a vote for 0 is a token.

    Attributes
    ----------
    class_log_odds_ : float
        Log-odds of label 1 among the training rows.
    token_log_odds_ : ndarray of shape (2 * n_voters,), or (n_voters,) without zeros
        What each voter's 1, and then each voter's 0, adds to the log-odds.

    Examples
    --------
    >>> model = MultinomialNB().fit([[1], [1], [0], [0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1], [0], [-1]])[:, 1].round(6).tolist()
    [0.75, 0.25, 0.5]
    """

    param_grid: ClassVar[Grid] = ALPHA_GRID

    def __init__(self, alpha: float = 1.0, *, zeros: bool = True) -> None:
        self.alpha, self.zeros = alpha, zeros

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.alpha, 0, "alpha")
        one_hot, total = vote_tokens(X)[:, : (1 + self.zeros) * X.shape[1]], np.bincount(y, weights=w)
        self.class_log_odds_ = float(np.log(total[1] / total[0]))
        counts = np.stack([w[y == label] @ one_hot[y == label] for label in (0, 1)]) + self.alpha
        shares = counts / counts.sum(axis=1, keepdims=True)
        self.token_log_odds_ = np.log(shares[1] / shares[0])

    def _proba(self, X: Votes) -> Floats:
        one_hot = vote_tokens(X)[:, : len(self.token_log_odds_)]
        return np.asarray(expit(weighted_sums(one_hot, self.token_log_odds_) + self.class_log_odds_))
