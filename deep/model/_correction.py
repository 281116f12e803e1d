"""How a few labels of a dataset, or a belief about its share of consistent items, correct a model there."""

import re
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import AnyVotes, Floats, Mask, Positions, Weights, check_kind, is_votes
from deep._util.odds import P_MIN, expit, logit
from deep.exceptions import InputError
from deep.features import distinct_rows
from deep.model import _misfit
from deep.model._misfit import CORRELATION, NO_CORRECTION, Clusters, Misfit, standardised_errors, student_quantile
from deep.model._prior import Z_90, Intercept, PriorEstimate, PriorRule, intercept_at, normalised_weights, share_at


def labeled_mask(labels: npt.ArrayLike, n: int) -> Mask:
    """Return which of n rows have a label: 1 or 0, where -1 is none.

    Raises
    ------
    InputError
        A value is another, or their number is not n.
    """
    raw = np.asarray(labels)
    checks.check_consistent_length(raw, n, "labels")
    wrong = ~np.isin(raw, (-1, 0, 1))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"`labels` must be 1, 0, or -1 where there is none. Got {raw[row].item()!r} at row {row}.")
    return np.asarray(raw >= 0)


# The least slope: labels may take nearly all weight from the votes, but never turn them round. Any small number above 0
# does; this one was chosen.
MIN_SLOPE = 0.05

# How far off P may be, in variances of the misfit: labels weigh the two, at odds before of 1 : scale. One alone holds P
# too near to what it was where a dataset is unlike those of the training and labels are many. The 8 was chosen, and no
# measurement of others is kept: a larger one trusts labels sooner.
SCALES = (1.0, 8.0)

# Precision of a slope that is held at `MIN_SLOPE`: so large beside the labels' that the slope does not move.
FIXED_SLOPE_PRECISION = 1e9

# Standard deviations, in log-odds of an item, by which labels may weigh judges anew; labels weigh the two. At 0 judges
# stay as they are. 0.5 was taken from 0.3, 0.5, 0.6 and 1.0, of which 0.3 and 0.5 are alike (decision 44).
JUDGE_SPREADS = (0.0, 0.5)

# Fewer labels do not tell judges apart: with ten of them, eleven panels gain nothing.
MIN_LABELS_FOR_JUDGES = 30


class FewLabels:
    """Corrects transferred probabilities by labels of the new dataset, from none to thousands.

    Intercept and slope in log-odds have a Gaussian prior, with the mean and the covariance of the training datasets'
    own corrections [1]_, or `SCALES` times that covariance: with few labels little moves, with many the labels decide.
    Laplace's approximation gives each scale's weight. Without any label P stays as it is: the mean correction of ten
    datasets is no better on another one than none.

    Parameters
    ----------
    misfit : Misfit
        What the training datasets tell.

    Attributes
    ----------
    coef_ : ndarray of shape (2,)
        Intercept and slope; the slope is at least 0.05.
    covariance_ : ndarray of shape (2, 2)
        Of `coef_` given the labels (Laplace's approximation).
    weights_ : ndarray of shape (n_judges,)
        What labels add to the log-odds for each column of `judges`.
    n_effective_ : float
        How many independent labels there were: those that share a document count less.

    References
    ----------
    .. [1] B. Efron and C. Morris, "Stein's estimation rule and its competitors: an empirical Bayes approach",
       JASA 68, 1973. https://doi.org/10.1080/01621459.1973.10481350

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = [0.6, 0.7, 0.8, 0.9] * 5
    >>> few = FewLabels(misfit).fit(p, [0, 0, 1, 1] * 5)
    >>> few.transform([0.7]).round(2).tolist()
    [0.42]
    >>> FewLabels(misfit).fit([], []).transform([0.7]).round(2).tolist()
    [0.7]
    """

    def __init__(self, misfit: Misfit) -> None:
        self.misfit = misfit

    def fit(
        self,
        y_prob: npt.ArrayLike,
        y_true: npt.ArrayLike,
        sample_weight: Weights = None,
        *,
        documents: npt.ArrayLike | None = None,
        judges: Floats | None = None,
    ) -> Self:
        """Learn from labeled rows of the new dataset; one class alone is enough, and so are no rows.

        Parameters
        ----------
        y_prob : array-like of shape (n_labels,)
            Transferred P(consistent).
        y_true : array-like of shape (n_labels,)
            Labels 0/1.
        sample_weight : array-like of shape (n_labels,), optional
            How many labels each row counts as; default: one each.
        documents : array-like of shape (n_labels,), optional
            The document of each row; default: each row has its own.
        judges : ndarray of float, shape (n_labels, n_judges), optional
            Votes as :class:`JudgeColumns` scales them, which labels may weigh anew.

        Raises
        ------
        InputError
            A value is out of range or lengths differ.
        """
        covariance = self.misfit.covariance
        if not np.all(np.linalg.eigvalsh(covariance) > 0):
            raise InputError(f"`misfit` must have a positive definite covariance. Got {covariance.tolist()!r}.")
        n = np.size(y_prob)
        y = checks.check_labels(y_true, n, name="y_true").astype(float)
        self.coef_, self.covariance_ = np.array(NO_CORRECTION), self.misfit.second_moment
        self.n_effective_ = 0.0
        columns = np.empty((n, 0)) if judges is None else judges
        self.weights_ = np.zeros(columns.shape[1])
        if not n:
            if documents is not None:
                checks.check_consistent_length(np.asarray(documents), n, "documents")
            return self
        z = logit(checks.check_probabilities(y_prob))
        clusters = Clusters.from_documents(documents, n, checks.check_sample_weight(sample_weight, n))
        weights = clusters.weights
        self._average(z, columns, y, weights)
        if not clusters.alone:
            # Whole documents are easier or harder than P says: an error then comes with its neighbours'.
            errors = standardised_errors(y, expit(self.coef_[0] + self.coef_[1] * z + columns @ self.weights_))
            weights = weights * clusters.shares(clusters.correlation(errors))
            self._average(z, columns, y, weights)
        self.n_effective_ = float(weights.sum())
        return self

    def _average(self, z: Floats, judges: Floats, y: Floats, weights: Floats) -> None:
        """Average the fits by each of `SCALES` and `JUDGE_SPREADS`, as labels weigh them."""
        ones, k = np.ones(len(z)), judges.shape[1]
        spreads = JUDGE_SPREADS if k else JUDGE_SPREADS[:1]
        designs = [np.column_stack([ones, z, judges] if spread else [ones, z]) for spread in spreads]
        grid = [(scale, spread, design) for scale in SCALES for spread, design in zip(spreads, designs, strict=True)]
        fits = [
            self._at_scale(design, y, weights, self._prior_covariance(scale, spread, design.shape[1] - 2))
            for scale, spread, design in grid
        ]
        # Weights of 1 / scale before labels, so that the wide prior must earn its place by them.
        share = normalised_weights(np.array([fit[2] for fit in fits]) - np.log([scale for scale, _, _ in grid]))
        coefs = np.zeros((len(fits), 2 + k))
        for row, (coef, _, _) in zip(coefs, fits, strict=True):
            row[: len(coef)] = coef
        mean = share @ coefs
        self.coef_, self.weights_ = mean[:2], mean[2:]
        # The law of total variance: within the fits, and between them.
        apart = coefs[:, :2] - self.coef_
        within = np.tensordot(share, [covariance[:2, :2] for _, covariance, _ in fits], 1)
        self.covariance_ = within + (apart.T * share) @ apart

    def _prior_covariance(self, scale: float, spread: float, n_judges: int) -> Floats:
        """Return the prior covariance of intercept, slope and the weights of judges."""
        across = np.zeros((2 + n_judges, 2 + n_judges))
        across[:2, :2] = self.misfit.covariance * scale
        across[2:, 2:] = np.eye(n_judges) * spread**2
        return across

    def _at_scale(self, design: Floats, y: Floats, weights: Floats, across: Floats) -> tuple[Floats, Floats, float]:
        """Return the most likely coefficients by one prior covariance, theirs, and the log evidence."""
        # Weights of judges have the mean 0: without labels that tell them apart, they stay as they are.
        mean = np.append(self.misfit.mean, np.zeros(len(across) - 2))
        precision, total = np.linalg.inv(across), weights.sum()
        ones, zeros = weights * y, weights * (1 - y)
        coef = _misfit.newton_logistic(design, ones, zeros, centre=mean, penalty=precision / total)
        # The slope is held, and the intercept has the prior mean that goes with this slope by their covariance. Off the
        # diagonal nothing is left, so that the held slope pulls no other coefficient.
        if coef[1] < MIN_SLOPE:
            centre, penalty = mean.copy(), np.diag(np.diag(precision) / total)
            centre[:2] = mean[0] + across[0, 1] / across[1, 1] * (MIN_SLOPE - mean[1]), MIN_SLOPE
            penalty[1, 1] = FIXED_SLOPE_PRECISION
            coef = _misfit.newton_logistic(design, ones, zeros, centre=centre, penalty=penalty)
        information, evidence = _misfit.laplace(design, y, weights, coef, mean, across)
        return coef, np.linalg.inv(information + precision), evidence

    def transform(self, y_prob: npt.ArrayLike) -> Floats:
        """Return corrected P(consistent), shape (n_examples,)."""
        checks.check_fitted(self, "coef_")
        z = logit(checks.check_probabilities(y_prob))
        return np.clip(expit(self.coef_[0] + self.coef_[1] * z), P_MIN, 1 - P_MIN)


@dataclass(frozen=True, eq=False)
class JudgeColumns:
    """Votes of a dataset as columns that labels may weigh: signed, centred, and together of variance 1 an item.

    Parameters
    ----------
    patterns : ndarray of float, shape (n_patterns, n_judges)
        Of the distinct rows of votes.
    row : ndarray of int, shape (n_examples,)
        The pattern of each row.
    means : ndarray of float, shape (n_judges,)
        What was taken away.
    size : float
        What was divided by.
    """

    patterns: Floats
    row: Positions
    means: Floats
    size: float

    @classmethod
    def of(cls, answers: AnyVotes) -> Self:
        """Scale votes of 1 and 0, or evidence; no vote lies half way between them."""
        patterns, row = distinct_rows(answers)
        signed: Floats = 1.0 * (patterns == 1) - (patterns == 0) if is_votes(patterns) else np.nan_to_num(patterns)
        share = np.bincount(row, minlength=len(patterns)) / len(row)
        means = share @ signed
        # So the log-odds of an item have one spread before labels, however many judges there are.
        size = float(np.sqrt(share @ ((signed - means) ** 2).sum(axis=1))) or 1.0
        return cls((signed - means) / size, row, means, size)

    def linear(self, weights: Floats) -> tuple[float, Floats]:
        """Return weights of the columns as an intercept and what a vote of 1 adds, a vote of 0 takes away."""
        coef = weights / self.size
        return -float(coef @ self.means), coef


@dataclass(frozen=True, eq=False)
class Correction:
    """The intercept and slope of P on one dataset, learned from labels of it.

    Parameters
    ----------
    prior : PriorEstimate
        What was estimated before the labels were looked at.
    intercept, slope : float
        On the log-odds of P there; the slope is above 0.
    covariance : ndarray of shape (2, 2)
        Of the two, given the labels.
    n_labels : int
        Labels that it was learned from.
    misfit : Misfit
        What it was shrunk by.
    threshold : float
        Log-odds of corrected P from which on an item is called consistent for balanced accuracy: those of the mean
        corrected P over the dataset, its share of consistent items as far as the labels tell.
    n_effective : float
        Independent labels that those are worth: labels that share a document count less.

    Examples
    --------
    >>> misfit = Misfit(np.array([0.0, 1.0]), np.array([[1.0, 0.0], [0.0, 0.1]]), 10)
    >>> p = np.linspace(0.1, 0.9, 9)
    >>> prior = PriorEstimate(0.5, 0.3, 0.7)
    >>> correction = Correction.learn(misfit, prior, p, [-1, 1, -1, 1, -1, 1, -1, 1, -1])[0]
    >>> correction.n_labels, bool((correction.apply(p) > p).all())
    (4, True)
    """

    prior: PriorEstimate
    intercept: float
    slope: float
    covariance: Floats
    n_labels: int
    misfit: Misfit
    threshold: float
    n_effective: float

    @classmethod
    def learn(
        cls,
        misfit: Misfit,
        prior: PriorEstimate,
        p: Floats,
        labels: npt.ArrayLike,
        *,
        documents: npt.ArrayLike | None = None,
        judges: JudgeColumns | None = None,
    ) -> tuple[Self, Floats]:
        """Learn from a dataset of which some items are labeled, and what labels add to the log-odds for each judge.

        Parameters
        ----------
        misfit : Misfit
            What training datasets tell of intercept and slope on a new one: their prior.
        prior : PriorEstimate
            The share and the line of P, as estimated without labels.
        p : ndarray of float, shape (n_examples,)
            P(consistent) of all items at equal class weights.
        labels : array-like of shape (n_examples,)
            1 or 0, and -1 where there is none.
        documents : array-like of shape (n_examples,), optional
            The document of each item.
        judges : JudgeColumns, optional
            Of all items; used from `MIN_LABELS_FOR_JUDGES` labels on.
        """
        y, is_labeled, transferred = np.asarray(labels), labeled_mask(labels, len(p)), expit(prior.line(logit(p)))
        at, columns = np.flatnonzero(is_labeled), None
        if judges is not None and len(at) >= MIN_LABELS_FOR_JUDGES:
            # Sums round by their order, and the order of rows must not change the model.
            at = at[np.lexsort((y[at], judges.row[at]))]
            columns = judges.patterns[judges.row[at]]
        of = None if documents is None else np.asarray(documents)[at]
        few = FewLabels(misfit).fit(transferred[at], y[at], documents=of, judges=columns)
        intercept, slope = few.coef_.tolist()
        # Without labels the decision stays the model's own: the mean of P is a worse guess of the prior than `prior`.
        # Where all items have one P their mean is no threshold either, for each is at it: one half is.
        q = few.transform(transferred)
        if judges is not None and columns is not None:
            q = np.clip(expit(logit(q) + (judges.patterns @ few.weights_)[judges.row]), P_MIN, 1 - P_MIN)
        mean = 0.5 if np.ptp(q) == 0 else q.mean()
        threshold = float(logit(mean)) if is_labeled.any() else prior.threshold
        n_labels = len(at)
        result = cls(prior, intercept, slope, few.covariance_, n_labels, misfit, threshold, few.n_effective_)
        return result, few.weights_

    def apply(self, p: Floats) -> Floats:
        """Return corrected P from P at equal class weights."""
        return np.clip(expit(self._log_odds(p)), P_MIN, 1 - P_MIN)

    def interval(self, p: Floats, counts: npt.ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return the bounds of corrected P at level 0.9, from P at equal class weights; `counts` as in `Misfit`."""
        return self.misfit.bounds(self.prior.line(logit(p)), self._log_odds(p), self.covariance, counts)

    def _log_odds(self, p: Floats) -> Floats:
        return np.asarray(self.intercept + self.slope * self.prior.line(logit(p)))


# Degrees of freedom of a belief and of what a panel says: where the two are far apart, the wider gives way. Four have
# heavy tails and still a variance; the number was chosen; no measurement is known.
T_DEGREES = 4.0

# Beliefs said to hold in 90 % of cases are taken to hold in 80 %: people's are mostly too narrow. It is 2.13 / 1.53,
# the quantiles of t with four degrees for 90 and 80 %.
WIDENING_FACTOR = 1.4

# Standard deviations of the panel's intercept at which the two are joined: steps of 0.05, far finer than either
# density.
INTERCEPT_GRID = np.linspace(-8.0, 8.0, 321)

# The panel's standard deviation is never taken to be smaller: a spread of 0 would divide by nothing.
MIN_PANEL_DEVIATION = 1e-6

# A belief is refused where labels at least as far from it come in a smaller share of draws: the usual level of a test.
MIN_BELIEF_P_VALUE = 0.05


@dataclass(frozen=True)
class Belief:
    """A 90 % belief about the share of consistent items.

    Parameters
    ----------
    low, high : float
        0 < low < high < 1. In log-odds, Student's t about their middle.

    Examples
    --------
    >>> Belief.parse("60-80%"), Belief.parse("0.6-0.8") == Belief(0.6, 0.8)
    (Belief(low=0.6, high=0.8), True)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        """Check the bounds."""
        if not 0 < self.low < self.high < 1:
            raise InputError(
                f"`share` must be two shares that ascend between 0 and 1, as in 60-80%. Got {self.low!r}-{self.high!r}."
            )

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `60-80%` or `0.6-0.8`."""
        result = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%?\s*-\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*", text)
        if not result:
            raise InputError(f"`share` must be two shares, as in 60-80% or 0.6-0.8. Got {text!r}.")
        whole = 100 if result[3] else 1
        return cls(float(result[1]) / whole, float(result[2]) / whole)

    @classmethod
    def of(cls, share: "Belief | str") -> "Belief":
        """Return a belief, read where it is text."""
        check_kind(share, (str, Belief), "share", "two shares, as in '60-80%' or '0.6-0.8'")
        return cls.parse(share) if isinstance(share, str) else share

    @staticmethod
    def check_rule(rule: PriorRule, labels: npt.ArrayLike | None, documents: npt.ArrayLike | None = None) -> None:
        """Raise where labels of a dataset contradict the belief that a rule is joined to, if any."""
        if labels is not None and isinstance(rule, BelievedPrior):
            rule.belief.check(labels, documents)

    @property
    def centre(self) -> float:
        """Return the middle in log-odds."""
        return float(logit([self.low, self.high]).mean())

    @property
    def scale(self) -> float:
        """Return the scale of Student's t in log-odds."""
        return WIDENING_FACTOR * float(np.diff(logit([self.low, self.high]))[0] / 2 / student_quantile(T_DEGREES))

    def join(self, panel: PriorEstimate, profile: Floats, offset: float = 0.0) -> PriorEstimate:
        """Join the estimate of a panel to the belief.

        Parameters
        ----------
        panel : PriorEstimate
            What the panel says, of which the warning of the result tells.
        profile : ndarray of shape (n_shifts,)
            The log-odds of the mean P of the dataset by intercept: where they hardly move with it, as where votes are
            sure, the belief hardly moves P.
        offset : float, default=0.0
            As in :meth:`Intercept.estimate`.
        """
        # The panel's line is slope * (log-odds + b), so that threshold / slope is b, in the unit of the profile.
        mean = panel.threshold / panel.slope + offset
        low, high = (intercept_at(profile, float(logit(bound))) for bound in (panel.low, panel.high))
        spread = max((high - low) / 2 / student_quantile(T_DEGREES), MIN_PANEL_DEVIATION)
        steps = mean + spread * INTERCEPT_GRID
        shares = np.array([share_at(profile, at) for at in steps])
        log = _t_log_density((steps - mean) / spread) + _t_log_density((shares - self.centre) / self.scale)
        weights = normalised_weights(log)
        centre = float(weights @ steps)
        variance = float(weights @ (steps - centre) ** 2)
        result = Intercept(centre, variance, Z_90 * float(np.sqrt(variance)))
        says = (
            f"The votes alone say {_percent(panel.estimate)} % ({_percent(panel.low)} to {_percent(panel.high)}); "
            f"joined to the belief of {_percent(self.low)} to {_percent(self.high)} %."
        )
        return result.estimate(profile, offset=offset, warning=f"{says} {panel.warning}" if panel.warning else says)

    def check(self, labels: npt.ArrayLike, documents: npt.ArrayLike | None = None) -> None:
        """Raise where labels of random items contradict the belief beyond chance.

        Raises
        ------
        InputError
            They do: labels count, and the belief must be left out.
        """
        from scipy.special import stdtr

        y = np.asarray(labels)
        is_labeled = labeled_mask(y, len(y))
        n, ones = int(is_labeled.sum()), int((y == 1).sum())
        if not n:
            return
        clusters = Clusters.from_documents(documents, n, mask=is_labeled)
        worth = n / clusters.design_effect(0.0 if clusters.alone else CORRELATION)
        # Jeffreys' half label a class: a share of 0 or 1 has no log-odds.
        share = (ones + 0.5) / (n + 1)
        # The variance of log-odds of a share of so many independent labels (delta method).
        noise = 1 / (worth * share * (1 - share))
        apart = abs(float(logit(share)) - self.centre) / np.sqrt(self.scale**2 + noise)
        if 2 * float(stdtr(T_DEGREES, -apart)) < MIN_BELIEF_P_VALUE:
            raise InputError(
                f"`share` must not be far from what labels say. Got {_percent(self.low)} to {_percent(self.high)} % "
                f"where {ones} of {n} are consistent. Leave it out: the labels tell more."
            )


@dataclass(frozen=True)
class BelievedPrior:
    """A rule whose estimates are joined to a belief.

    Parameters
    ----------
    rule : PriorRule
        Estimates share and intercept from the dataset's profile, so from votes alone.
    belief : Belief
        What the user believes of the share; every estimate is joined to it.
    """

    rule: PriorRule
    belief: Belief

    def predict(self, profile: Floats, offset: float = 0.0) -> PriorEstimate:
        """Return the estimate for a dataset."""
        return self.belief.join(self.rule.predict(profile, offset), profile, offset)


def _t_log_density(apart: Floats) -> Floats:
    """Return the log density of Student's t but for a constant."""
    return np.asarray(-(T_DEGREES + 1) / 2 * np.log1p(apart**2 / T_DEGREES))


def _percent(share: float) -> str:
    return f"{100 * share:.3g}"
