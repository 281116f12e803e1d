"""BBQ against a plain reading of the paper by loops over sizes, bins and scores, and numbers worked out by hand."""

from itertools import pairwise
from math import ceil, exp

import numpy as np
import pytest
from scipy.special import betaln

from deep.calibration import BBQ

GRID = np.linspace(0.0, 1.0, 11)
TIED = ([0.2, 0.2, 0.4, 0.4, 0.7, 0.7, 0.9, 0.9], [0, 1, 0, 1, 0, 1, 0, 1], [9, 1, 4, 6, 7, 5, 2, 8])
HARD = ([0.0, 0.0, 0.3, 0.3, 1.0, 1.0], [0, 1, 0, 1, 0, 1], [12, 2, 5, 4, 3, 14])


def shares_of(p, y, w):
    """Return distinct scores with their weight and share of label 1, by loops."""
    scores = sorted(set(p))
    total = [sum(weight for q, weight in zip(p, w, strict=True) if q == s) for s in scores]
    ones = [sum(weight for q, label, weight in zip(p, y, w, strict=True) if q == s and label) for s in scores]
    return scores, total, [one / n for one, n in zip(ones, total, strict=True)]


def sizes_tried(total):
    """Return the numbers of bins: from N^(1/3) / 10 to 10 N^(1/3), at most N / 5."""
    root = total ** (1 / 3)
    fewest = max(1, int(root / 10))
    return range(fewest, max(fewest, min(ceil(total / 5), ceil(10 * root))) + 1)


def quantile_cuts(scores, total, n_bins):
    """Return the cuts of an equal-frequency binning: between scores, nearest to j N / B, the lower of two as near."""
    n = sum(total)
    reached = np.cumsum([0, *total])
    ends = {min(range(len(reached)), key=lambda i: (abs(j * n - reached[i] * n_bins), i)) for j in range(1, n_bins)}
    return tuple((scores[i - 1] + scores[i]) / 2 for i in sorted(ends) if 0 < i < len(scores))


def bins_of(cuts, scores, total, shares):
    """Return a binning's values, each with its bounds, and its log weight."""
    values, log_weight = [], 0.0
    for low, high in pairwise([0.0, *cuts, 1.0]):
        inside = [i for i, s in enumerate(scores) if low <= s < high or (high == s == 1.0)]
        n, n1 = sum(total[i] for i in inside), sum(total[i] * shares[i] for i in inside)
        alpha = 2 * min(max((low + high) / 2, 0.005), 0.995)
        values.append((n1 + alpha) / (n + 2))
        log_weight += betaln(n1 + alpha, n - n1 + 2 - alpha) - betaln(alpha, 2 - alpha)
    return values, log_weight


def plain_bbq(p, y, w):
    """Return BBQ as a function of one probability, by loops over sizes, bins and scores."""
    scores, total, shares = shares_of(p, y, w)
    binnings = list(dict.fromkeys(quantile_cuts(scores, total, size) for size in sizes_tried(sum(total))))
    judged = [bins_of(cuts, scores, total, shares) for cuts in binnings]
    weights = np.exp(np.array([log_weight for _, log_weight in judged]) - max(log_weight for _, log_weight in judged))

    def calibrated(q):
        parts = [values[sum(q >= cut for cut in cuts)] for cuts, (values, _) in zip(binnings, judged, strict=True)]
        return float(weights @ parts / weights.sum())

    return calibrated, sorted(set().union(*binnings))


def counted(shares, weight):
    """Return rows of label 1 and 0 at even scores whose shares and weights are these."""
    p = np.linspace(0.04, 0.97, len(shares)).round(3)
    ones = np.rint(np.array(shares) * weight)
    return np.tile(p, 2).tolist(), [1] * len(p) + [0] * len(p), np.concatenate([ones, weight - ones]).tolist()


BINNED = {
    "few rows": ([0.15, 0.35, 0.5, 0.8, 0.9, 0.95], [0, 1, 0, 1, 1, 1], [1, 2, 1, 2, 1, 1]),
    "distinct": (
        [0.03, 0.11, 0.19, 0.26, 0.34, 0.41, 0.47, 0.58, 0.63, 0.7, 0.77, 0.86, 0.94, 0.99],
        [0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1],
        [2, 1, 1, 3, 1, 1, 2, 1, 2, 2, 1, 1, 3, 1],
    ),
    "tied": TIED,
    "hard": HARD,
    "thin": ([0.2, 0.2, 0.5, 0.5, 0.8, 0.8], [0, 1, 0, 1, 0, 1], [4, 3, 0.1, 0.3, 1.6, 2]),
    "even": counted([0.1, 0.4, 0.3, 0.6, 0.5, 0.8], 10),
    "many rows": counted([0.1, 0.25, 0.5, 0.6, 0.9], 1801),
}


@pytest.mark.parametrize("name", BINNED)
def test_bbq_is_the_weighted_average_of_its_binnings(name):
    """It is what loops over every bin give."""
    p, y, w = BINNED[name]
    plain, cuts = plain_bbq(p, y, w)
    bbq = BBQ().fit(p, y, w)
    assert bbq.cuts_ == pytest.approx(cuts, abs=1e-12)
    at = [*GRID, *p[:3], *cuts[:2], *cuts[-2:]]
    assert bbq.transform(at) == pytest.approx([np.clip(plain(q), 1e-6, 1 - 1e-6) for q in at], abs=1e-9)


def test_bbq_by_hand():
    """Five rows: one bin alone is allowed, ceil(5 / 5) = 1: (3 + 1) / (5 + 2)."""
    bbq = BBQ().fit([0.1, 0.3, 0.5, 0.7, 0.9], [0, 0, 1, 1, 1])
    assert bbq.cuts_.tolist() == []
    assert bbq.transform([0.0, 1.0]) == pytest.approx([4 / 7] * 2)
    # Ten rows, four at 0.2 and six at 0.6: one bin or two, cut at 0.4. One: Beta(1, 1) sees 5 of 10, value 6/12.
    # Two: Beta(0.4, 1.6) sees 1 of 4, value 1.4/6, and Beta(1.4, 0.6) sees 4 of 6, value 5.4/8.
    two = BBQ().fit([0.2] * 4 + [0.6] * 6, [1, 0, 0, 0, 1, 1, 1, 1, 0, 0])
    one_bin = betaln(6, 6) - betaln(1, 1)
    two_bins = betaln(1.4, 4.6) - betaln(0.4, 1.6) + betaln(5.4, 2.6) - betaln(1.4, 0.6)
    share = 1 / (1 + exp(one_bin - two_bins))
    expected = [(1 - share) / 2 + share * value for value in (1.4 / 6, 5.4 / 8)]
    assert two.transform([0.2, 0.6]) == pytest.approx(expected, abs=1e-12)
    assert two.transform([0.3999, 0.4]) == pytest.approx(expected, abs=1e-12)
    assert two.cuts_ == pytest.approx([0.4])


def test_bbq_cuts_at_the_lower_of_two_equally_near_scores():
    """Two bins of twelve rows that stand 4 + 4 + 4: six lies halfway between both ends, the lower is taken."""
    p, y = np.repeat([0.1, 0.5, 0.9], 4), [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0]
    assert BBQ().fit(p, y).cuts_ == pytest.approx([0.3, 0.7])
    # ceil(10 / 5) = 2 bins at most, of ten rows 2 + 6 + 2: five lies halfway between the ends at two and at eight.
    p, y = np.repeat([0.1, 0.5, 0.9], [2, 6, 2]), [0, 0, 1, 1, 1, 0, 0, 0, 1, 1]
    assert BBQ().fit(p, y).cuts_ == pytest.approx([0.3])


def test_bbq_holds_the_prior_off_0_and_1():
    """A bin [0, 0.004] has its prior mean at 0.005, not in its middle at 0.002, and its mirror image likewise."""
    p, y, w = [0.003, 0.003, 0.005, 0.005], [0, 1, 0, 1], [19, 1, 4, 16]
    two = betaln(1.01, 20.99) - betaln(0.01, 1.99) + betaln(16 + 1.004, 4 + 0.996) - betaln(1.004, 0.996)
    share = 1 / (1 + exp(betaln(18, 24) - betaln(1, 1) - two))
    expected = (1 - share) * 18 / 42 + share * 1.01 / 22
    assert BBQ().fit(p, y, w).transform([0.003]) == pytest.approx([expected], abs=1e-12)
    mirrored = BBQ().fit([1 - q for q in p], [1 - label for label in y], w)
    assert mirrored.transform([0.997]) == pytest.approx([1 - expected], abs=1e-12)


def test_fractional_weights_never_fill_a_bin_beyond_its_rows():
    """Sums of thirds are not exact; a bin of label 1 alone must still be near 1."""
    p = np.linspace(0.05, 0.95, 30)
    y = (p > 0.4).astype(int)
    bbq = BBQ().fit(p, y, np.full(30, 7 / 3))
    assert np.isfinite(bbq.transform(GRID)).all()
    assert bbq.transform([0.95])[0] > 0.95


@pytest.mark.parametrize("low", [0.3, float(np.nextafter(0.3, 1))])
def test_neighbouring_numbers_are_told_apart(low):
    """The middle of two adjacent numbers is one of them: the upper one begins the upper piece either way."""
    high = float(np.nextafter(low, 1))
    bbq = BBQ().fit([low, low, high, high], [1, 0, 1, 0], [2, 98, 98, 2])
    assert bbq.transform([low])[0] < 0.1 < 0.9 < bbq.transform([high])[0]
