"""Trees on votes: alone, bagged, and boosted by gradients."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import sklearn
from scipy.special import expit, logit
from sklearn import tree
from sklearn.utils import check_random_state

from deep._util.checks import Floats, Labels, Positions, Votes, check_above, check_count
from deep.base import BaseEnsembler, Grid, StagedEnsembler
from deep.exceptions import InputError
from deep.features import average_over_abstains, distinct_cells, merge_repeats, signed, vote_splits


@dataclass(eq=False, repr=False)
class DecisionTree(BaseEnsembler):
    """One decision tree on signed votes; P(consistent) is the weighted share of label 1 in the leaf.

    scikit-learn's [1]_. Its size is limited by depth and by the share of the weight a leaf holds, never by
    counting rows (``min_samples_leaf``), which would count a cell of weight 1,000 as one: exact on weighted
    rows.

    Parameters
    ----------
    max_depth : int or None, default=None
        The most splits from root to leaf.
    min_weight_fraction_leaf : float, default=0.02
        In [0, 0.5]: the least share of the training weight in a leaf.
    random_state : int, default=0
        Decides between splits that are equally good.

    Attributes
    ----------
    model_ : sklearn.tree.DecisionTreeClassifier
        The fitted tree of scikit-learn.

    References
    ----------
    .. [1] Breiman et al., "Classification and regression trees" (1984). https://doi.org/10.1201/9781315139470

    Examples
    --------
    >>> model = DecisionTree().fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.predict_proba([[1, 0], [-1, 1]])[:, 1].tolist()
    [1.0, 0.5]
    """

    max_depth: int | None = None
    _: KW_ONLY
    min_weight_fraction_leaf: float = 0.02
    random_state: int = 0

    param_grid: ClassVar[Grid] = {"min_weight_fraction_leaf": (0.01, 0.02, 0.05, 0.1)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        _check_tree_size(self.max_depth, self.min_weight_fraction_leaf)
        cells, labels, weights = merge_repeats(X, y, w)
        model = tree.DecisionTreeClassifier(
            max_depth=self.max_depth,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            random_state=self.random_state,
        )
        self.model_ = model.fit(signed(cells), labels, sample_weight=weights)

    def _proba(self, X: Votes) -> Floats:
        return average_over_abstains(X, lambda votes: np.asarray(self.model_.predict_proba(votes)[:, 1]))


@dataclass(eq=False, repr=False)
class RandomForest(BaseEnsembler):
    """Decision trees on bootstrap samples, each split among the square root of the voters; their mean P.

    scikit-learn's forest [1]_ draws row by row: by default as many rows as there are cells, whatever their
    weights, and with ``max_samples`` at the sum of weights it costs time in proportion to that. Here the trees
    are scikit-learn's, and how often each cell is drawn comes straight from the multinomial distribution of
    round(sum of weights) draws, which is what drawing rows amounts to. Weighted and repeated rows have the same
    cells and so the same draws. Each tree regresses the label, which splits where Gini impurity would: the
    variance of a 0/1 label is half of it.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_depth : int or None, default=None
        The most splits from root to leaf.
    min_weight_fraction_leaf : float, default=0.01
        In [0, 0.5]: the least share of the drawn weight in a leaf.
    random_state : int, default=0
        Seed of the draws and of the choice of voters.

    Attributes
    ----------
    trees_ : list of sklearn.tree.DecisionTreeRegressor
        The fitted trees, whose mean is P.

    References
    ----------
    .. [1] Breiman, "Random forests", Machine Learning 45 (2001). https://doi.org/10.1023/A:1010933404324

    Examples
    --------
    >>> X, y = [[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0]
    >>> model = RandomForest().fit(X, y, sample_weight=[50, 50, 50, 50])
    >>> model.predict_proba([[1, 0], [0, 1]])[:, 1].tolist()
    [1.0, 0.0]
    """

    n_estimators: int = 100
    _: KW_ONLY
    max_depth: int | None = None
    min_weight_fraction_leaf: float = 0.01
    random_state: int = 0

    param_grid: ClassVar[Grid] = {"min_weight_fraction_leaf": (0.005, 0.02, 0.05)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        _check_tree_size(self.max_depth, self.min_weight_fraction_leaf)
        cells, labels, weights = merge_repeats(X, y, w)
        # What scikit-learn's trees compute in; unchecked input must be of these types.
        votes, target = signed(cells).astype(np.float32), labels.astype(np.float64)
        rng = np.random.default_rng(self.random_state)
        # The bootstrap of weighted rows: each tree draws as many rows as there are, each cell by its weight.
        n_draws = max(1, round(weights.sum()))
        draws = rng.multinomial(n_draws, weights / weights.sum(), size=self.n_estimators).astype(np.float64)
        state = check_random_state(self.random_state)
        # scikit-learn's own checks repeat ours for every tree, and take most of the time.
        with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
            self.trees_ = [
                # On labels 0 and 1 squared error is half of Gini's impurity: the same splits, without the search for
                # classes (decision 8).
                tree.DecisionTreeRegressor(
                    max_depth=self.max_depth,
                    max_features="sqrt",
                    min_weight_fraction_leaf=self.min_weight_fraction_leaf,
                    random_state=state,
                ).fit(votes, target, sample_weight=draw, check_input=False)
                for draw in draws
            ]

    def _proba(self, X: Votes) -> Floats:
        return average_over_abstains(X, self._mean_proba)

    def _mean_proba(self, votes: Floats) -> Floats:
        single = votes.astype(np.float32)
        total = sum(one.tree_.predict(single)[:, 0] for one in self.trees_)
        return np.asarray(total / len(self.trees_))


def _check_tree_size(max_depth: int | None, min_weight_fraction_leaf: float) -> None:
    if max_depth is not None:
        check_count(max_depth, "max_depth")
    if not 0 <= min_weight_fraction_leaf <= 0.5:
        raise InputError(f"`min_weight_fraction_leaf` must be in [0, 0.5]. Got {min_weight_fraction_leaf!r}.")


@dataclass(frozen=True)
class Stump:
    """A decision tree with one split: the label predicted above a threshold of one voter's votes, and up to it.

    Parameters
    ----------
    voter : int
        The column whose votes decide, from 0.
    threshold : float
        Of signed votes.
    below, above : bool
        Whether label 1 is predicted.
    """

    voter: int
    threshold: float
    below: bool
    above: bool

    def predict(self, votes: Floats) -> npt.NDArray[np.bool_]:
        """Return whether label 1 is predicted, by row of signed votes."""
        return np.where(votes[:, self.voter] > self.threshold, self.above, self.below)


class AdaBoost(StagedEnsembler):
    """Boosted stumps: each round's split of one voter is fitted to rows reweighted by the errors so far.

    Discrete AdaBoost [1]_, exact on weighted rows. Each stump splits where Gini impurity falls most and says on
    either side what the most weight there says. P(consistent) is the logistic function of the weighted sum of
    the stumps, twice the half log-odds that boosting estimates [2]_. Where no stump beats chance, P is the share
    of label 1.

    The stumps and their weights are scikit-learn's, whose own loop spends nearly all of its time on checking and
    copying: votes have so few splits that all of them are weighed at once, some 30 times faster
    (``benchmarks/small_fits.py``, on eleven datasets). Of splits that are equally good the first voter's wins.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds; boosting ends before at a stump without error, or none better than chance.
    learning_rate : float, default=0.5
        Above 0: shrinks each stump's weight.

    Attributes
    ----------
    stumps_ : list of Stump
        Empty where none beat chance.
    stump_weights_ : ndarray of shape (n_stumps,)
        Log-odds of each stump being right on the reweighted rows, times `learning_rate`; 1 for one without error.
    prior_ : float
        Weighted share of label 1.

    References
    ----------
    .. [1] Freund and Schapire, "A decision-theoretic generalization of on-line learning and an application to
       boosting", Journal of Computer and System Sciences 55 (1997). https://doi.org/10.1006/jcss.1997.1504
    .. [2] Friedman, Hastie and Tibshirani, "Additive logistic regression: a statistical view of boosting", Annals
       of Statistics 28 (2000). https://doi.org/10.1214/aos/1016218223

    Examples
    --------
    The first voter is right on 3 of 4 rows, so one round gives its vote log-odds log 3, and odds of 3 to 1.

    >>> model = AdaBoost(n_estimators=1, learning_rate=1.0)
    >>> model = model.fit([[1, 0], [1, 1], [0, 0], [0, 1]], [1, 1, 0, 1], sample_weight=[2, 2, 3, 1])
    >>> model.predict_proba([[1, 0], [0, 0]])[:, 1].round(3).tolist()
    [0.875, 0.125]
    """

    param_grid: ClassVar[Grid] = {"learning_rate": (0.2, 1.0), "n_estimators": (10, 25, 50)}

    def __init__(self, n_estimators: int = 50, *, learning_rate: float = 0.5) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_above(self.learning_rate, 0, "learning_rate")
        check_count(self.n_estimators, "n_estimators")
        cells, labels, weights = merge_repeats(X, y, w)
        self.prior_ = float(np.average(labels, weights=weights))
        result = list(self._boost(signed(cells), labels == 1, weights / weights.sum()))
        self.stumps_ = [stump for stump, _ in result]
        self.stump_weights_ = np.array([weight for _, weight in result])

    def _boost(self, votes: Floats, is_one: npt.NDArray[np.bool_], share: Floats) -> Iterator[tuple[Stump, float]]:
        """Yield each round's stump and its weight."""
        splits = [*vote_splits(votes), (0, np.inf)]  # the last splits nothing
        above = np.array([votes[:, voter] > threshold for voter, threshold in splits])
        for _ in range(self.n_estimators):
            best, says_below, says_above = _best_split(above, is_one, share)
            wrong = np.where(above[best], says_above, says_below) != is_one
            error = float(share[wrong].sum() / share.sum())
            if error >= 0.5:  # no better than chance on these weights: its own weight would be 0 or negative
                return
            # A stump without error would weigh infinitely. It is then the only one, so that any weight gives the same
            # decisions; 1 is scikit-learn's.
            stump_weight = self.learning_rate * float(logit(1 - error)) if error > 0 else 1.0
            yield Stump(*splits[best], says_below, says_above), stump_weight
            if error <= 0:
                return
            # Rows that it had wrong gain what its vote weighs, so that at `learning_rate` 1 it is then at chance level.
            share = np.where(wrong, share * np.exp(stump_weight), share)
            share = share / share.sum()

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        if not self.stumps_:
            return np.full((len(stages), len(X)), self.prior_)
        return average_over_abstains(X, lambda votes: self._after(votes, stages))

    def _after(self, votes: Floats, stages: Sequence[int]) -> Floats:
        """Return P after each number of rounds, by row of signed votes; the last where boosting ended before."""
        log_odds, proba = np.zeros(len(votes)), {}
        rounds = zip(self.stumps_[: max(stages)], self.stump_weights_, strict=False)
        for number, (stump, weight) in enumerate(rounds, start=1):
            log_odds += np.where(stump.predict(votes), weight, -weight)
            if number in stages:  # all rounds together would take 50 times the memory
                proba[number] = expit(log_odds)
        return np.asarray([proba.get(stage, expit(log_odds)) for stage in stages])


def _best_split(above: npt.NDArray[np.bool_], is_one: npt.NDArray[np.bool_], share: Floats) -> tuple[int, bool, bool]:
    """Return the split of least Gini impurity, and whether label 1 has the most weight below and above it.

    Parameters
    ----------
    above : ndarray of bool, shape (n_splits, n_cells)
        Whether a split puts the votes of a cell above its threshold.
    is_one : ndarray of bool, shape (n_cells,)
        Whether the label of a cell is 1.
    share : ndarray of float, shape (n_cells,)
        The weight of each cell; all weights sum to 1.
    """
    by_label = np.stack([share * ~is_one, share * is_one], axis=1)
    up = above @ by_label
    sides = np.stack([by_label.sum(axis=0) - up, up])
    total = sides.sum(axis=2)
    impurity = np.divide(sides.prod(axis=2), total, out=np.zeros_like(total), where=total > 0).sum(axis=0)
    # Rounded, so that splits that are equal but for the order of a sum tie, and the first voter's wins.
    best = int(impurity.round(12).argmin())
    says = sides[:, best, 1] > sides[:, best, 0]
    return best, bool(says[0]), bool(says[1])


# Gains that differ by less, as a share of the best, are equal. So rounding does not decide, and the first voter's split
# wins.
GAIN_TOLERANCE = 1e-12

# A leaf whose loss has less curvature than this adds nothing. Its Newton step would divide by nearly nothing.
MIN_LEAF_CURVATURE = 1e-150

# The most pairs of a tree and a row that are walked through together, which bounds memory.
MAX_TREE_ROW_PAIRS = 2**21


@dataclass(eq=False, repr=False)
class GradientBoosting(StagedEnsembler):
    """Gradient boosting of small regression trees on the log loss.

    Friedman's [1]_ with every round fitted to all rows: each tree splits where the squared error of what is left to
    explain falls most, and each leaf takes one Newton step. Exact on weighted rows.

    The trees are those of scikit-learn's ``GradientBoostingClassifier(subsample=1)``, which takes longer to check and
    copy them than to find them: votes have so few splits that all nodes of a level weigh all of theirs at once, some 6
    times faster (``benchmarks/small_fits.py``, on eleven datasets). Of splits that are equally good the first voter's
    wins, where scikit-learn draws one.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of rounds.
    learning_rate : float, default=0.1
        Above 0: the share of each tree that is added.
    max_depth : int, default=2
        Splits from root to leaf: how many voters may interact.

    Attributes
    ----------
    prior_ : float
        Log-odds of the weighted share of label 1, where boosting starts.
    voter_, left_ : ndarray of int, shape (n_estimators, n_nodes)
        By tree and node: the voter that is asked, -1 in a leaf, and the node below the threshold, which the one
        above it follows; a leaf is followed by itself.
    threshold_, value_ : ndarray of float, shape (n_estimators, n_nodes)
        Of signed votes; and what a leaf adds to the log-odds.

    References
    ----------
    .. [1] Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29 (2001).
       https://doi.org/10.1214/aos/1013203451

    Examples
    --------
    The first round moves the log-odds, 0 at the start, by a tenth of a Newton step of 2: 1 / (1 + exp(-0.2)).

    >>> model = GradientBoosting(n_estimators=10).fit([[1, 1], [1, 0], [0, 1], [0, 0]], [1, 1, 0, 0])
    >>> model.staged_predict_proba([[1, 0]], [1, 10]).round(2).tolist()
    [[0.55], [0.82]]
    """

    n_estimators: int = 50
    _: KW_ONLY
    learning_rate: float = 0.1
    max_depth: int = 2

    param_grid: ClassVar[Grid] = {"max_depth": (1, 3), "n_estimators": (25, 50, 100)}

    def _fit(self, X: Votes, y: Labels, w: Floats) -> None:
        check_count(self.n_estimators, "n_estimators")
        check_count(self.max_depth, "max_depth")
        check_above(self.learning_rate, 0, "learning_rate")
        patterns, counts = distinct_cells(X, y, w)
        total, ones = counts.sum(axis=1), counts[:, 1]
        self.prior_ = float(logit(ones.sum() / total.sum()))
        grower = _TreeGrower(signed(patterns), total, self.max_depth)
        # Nodes of a full binary tree of this depth, or of one with a leaf a pattern where that is fewer.
        shape = self.n_estimators, min(2 ** (self.max_depth + 1), 2 * len(patterns)) - 1
        self.voter_, self.left_ = np.full(shape, -1), np.tile(np.arange(shape[1]), (shape[0], 1))
        self.threshold_, self.value_ = np.zeros(shape), np.zeros(shape)
        log_odds = np.full(len(patterns), self.prior_)
        with np.errstate(invalid="ignore"):  # 0 / 0 on a side without rows
            for tree, value in enumerate(self.value_):
                p = expit(log_odds)
                residual = ones - total * p
                leaf = grower.grow(residual, self.voter_[tree], self.threshold_[tree], self.left_[tree])
                # The Newton step of each leaf; 0 for a node that is none.
                slope, bend = (np.bincount(leaf, part, shape[1]) for part in (residual, total * p * (1 - p)))
                step = np.divide(slope, bend, out=np.zeros(shape[1]), where=bend > MIN_LEAF_CURVATURE)
                value[:] = self.learning_rate * step
                log_odds += value[leaf]

    def _staged_proba(self, X: Votes, stages: Sequence[int]) -> Floats:
        return average_over_abstains(X, lambda votes: self._after(votes, stages))

    def _after(self, votes: Floats, stages: Sequence[int]) -> Floats:
        """Return P after each number of rounds, by row of signed votes."""
        n_trees = max(stages)
        step = max(1, MAX_TREE_ROW_PAIRS // n_trees)
        parts = [self._sums(votes[i : i + step], n_trees)[np.array(stages) - 1] for i in range(0, len(votes), step)]
        return np.asarray(expit(np.concatenate(parts, axis=1)))

    def _sums(self, votes: Floats, n_trees: int) -> Floats:
        """Return the log-odds after each round, shape (n_trees, n_rows)."""
        tree, row = np.arange(n_trees)[:, None], np.arange(len(votes))
        node = np.zeros((n_trees, len(votes)), dtype=np.intp)
        for _ in range(self.max_depth):
            voter = self.voter_[tree, node]
            node = self.left_[tree, node] + ((voter >= 0) & (votes[row, voter] > self.threshold_[tree, node]))
        values = self.value_[tree, node]
        values[0] += self.prior_
        return np.asarray(np.cumsum(values, axis=0))


class _TreeGrower:
    """Grows trees on the same patterns, of which all splits of all nodes of a level are weighed at once."""

    def __init__(self, votes: Floats, total: Floats, max_depth: int) -> None:
        self.votes, self.total, self.max_depth = votes, total, max_depth
        splits = vote_splits(votes)
        self.voter = np.array([voter for voter, _ in splits], dtype=np.intp)
        self.threshold = np.array([threshold for _, threshold in splits])
        self.above = votes[:, self.voter] > self.threshold
        self.sides = np.hstack([~self.above, self.above]).astype(np.float64)
        self.apart = len(np.unique(self.voter)) < len(splits)  # a voter with two thresholds, hence three votes

    def grow(self, residual: Floats, voter: Positions, threshold: Floats, left: Positions) -> Positions:
        """Fill in a tree as arrays, an entry a node, from the root on, and return the leaf of each pattern."""
        node = np.zeros(len(self.total), dtype=np.intp)
        nodes, size = np.zeros(1, dtype=np.intp), 1
        summed = np.array([self.total, residual])
        for _ in range(self.max_depth if len(self.voter) else 0):
            inside = node == nodes[:, None]
            best, gain = self._best(inside[:, None] * summed)
            if (gain < 0).any():  # nodes of one pattern
                nodes, inside, best = nodes[gain >= 0], inside[gain >= 0], best[gain >= 0]
            if not len(nodes):
                break
            below = size + 2 * np.arange(len(nodes))
            size += 2 * len(nodes)
            voter[nodes], threshold[nodes], left[nodes] = self.voter[best], self._thresholds(inside, best), below
            which, pattern = inside.nonzero()
            node[pattern] = below[which] + self.above[pattern, best[which]]
            nodes = np.concatenate([below, below + 1])
        return node

    def _best(self, summed: Floats) -> tuple[Positions, Floats]:
        """Return the best split of each node, and its gain; below 0 where there is none."""
        weight, slope = (summed @ self.sides).reshape(len(summed), 2, 2, -1).swapaxes(0, 1)
        # The fall of squared error but for a constant of the node: the sum of residuals squared over the weight, of
        # either side (Friedman 2001).
        gains = (slope * slope / weight).sum(axis=1)
        # NaN of a side without rows: no split at all, so below every other.
        gains[~(gains >= 0)] = -1.0
        best = gains.max(axis=1)
        return (gains >= (best - GAIN_TOLERANCE * np.abs(best))[:, None]).argmax(axis=1), best

    def _thresholds(self, inside: npt.NDArray[np.bool_], best: Positions) -> Floats:
        """Return thresholds halfway between the votes that a node holds on either side."""
        if not self.apart:
            return self.threshold[best]
        votes, above = self.votes.T[self.voter[best]], self.above.T[best]
        low = np.where(inside & ~above, votes, -1.0).max(axis=1)
        high = np.where(inside & above, votes, 1.0).min(axis=1)
        return np.asarray((low + high) / 2)
