"""The share of consistent items: parity with ppi-python, coverage over seeds, documents, and the ends."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr

from deep.exceptions import InputError
from deep.model import SHARE_METHODS, Misfit, PriorEstimate, estimate_share, power_tuning

NONE = np.array([0.0, 1.0])
MISFIT = Misfit(NONE, np.array([[0.5, 0.0], [0.0, 0.1]]), 10)
PRIOR = PriorEstimate(0.4, 0.2, 0.7)

# ppi-python 0.2.3: ppi_mean_pointestimate and its lambda, on these labels and predictions.
LABELS = np.array([1, 0, 1, 1, 0, 1, 0, 1, 1, 1])
P_LABELED = np.array([0.9, 0.2, 0.7, 0.6, 0.4, 0.8, 0.55, 0.3, 0.95, 0.65])
P_OTHERS = np.round(np.linspace(0.03, 0.97, 30) ** 1.3, 3)
LAMBDA, POWERED = 0.5886189933220927, 0.59877715


def dataset(rng, n=600, truth=(0.0, 1.0)):
    """Return P and labels of a dataset."""
    z = rng.normal(0.5, 1.6, n)
    return expit(z), (rng.random(n) < expit(truth[0] + truth[1] * z)).astype(int)


def hidden(y, known):
    """Return labels, -1 but for the known rows."""
    labels = np.full(len(y), -1)
    labels[known] = y[known]
    return labels


def by_method(shares):
    """Return shares by the first word of their method."""
    return {share.method.split()[0]: share for share in shares}


def test_lambda_and_estimate_are_those_of_ppi_python():
    """The power tuning on labels alone, and the mean that it leads to."""
    tuned = power_tuning(LABELS, P_LABELED, P_OTHERS, pseudo_labels=0)
    assert tuned == pytest.approx(LAMBDA, abs=1e-12)
    estimate = LABELS.mean() + tuned * (P_OTHERS.mean() - P_LABELED.mean())
    assert estimate == pytest.approx(POWERED, abs=1e-8)


def test_the_estimate_at_a_tuned_lambda_by_hand():
    """The mean of the labels plus lambda times how much lower P is on the others."""
    tuned = power_tuning(LABELS, P_LABELED, P_OTHERS)
    assert LAMBDA < tuned < 1
    result = by_method(estimate_share(np.append(P_LABELED, P_OTHERS), np.append(LABELS, np.full(30, -1))))
    expected = LABELS.mean() + tuned * (P_OTHERS.mean() - P_LABELED.mean())
    assert result["prediction-powered"].estimate == pytest.approx(expected, abs=1e-12)


def test_the_mean_of_the_labels_has_wilsons_interval():
    """With 10 of 10,000 items labeled there is no finite population correction to speak of: 7 of 10."""
    p, labels = np.linspace(0.1, 0.9, 1_000_000), np.full(1_000_000, -1)
    labels[::100_000] = [1, 1, 1, 0, 1, 0, 1, 1, 0, 1]
    result = by_method(estimate_share(p, labels))["mean"]
    # Wilson's interval of 7 in 10 at 90 %.
    assert (result.estimate, result.low, result.high) == pytest.approx((0.7, 0.441701, 0.873123), abs=2e-5)


def test_rogan_and_gladen_by_hand():
    """Half a label in each corner: hits 8.5 / 10, alarms 1.5 / 6; 60 % of items are decided as consistent."""
    p = np.repeat([0.9, 0.1], [60, 40])
    labels = np.full(100, -1)
    labels[:9] = [1] * 8 + [0]
    labels[60:65] = [1, 0, 0, 0, 0]
    result = by_method(estimate_share(p, labels, prior=PRIOR))["Rogan-Gladen"]
    hit, alarm = 8.5 / 10, 1.5 / 6
    assert result.estimate == pytest.approx((0.6 - alarm) / (hit - alarm))
    for bound in (result.low, result.high):
        spread = bound**2 * hit * (1 - hit) / 10 + (1 - bound) ** 2 * alarm * (1 - alarm) / 6
        gap = abs(0.6 - bound * hit - (1 - bound) * alarm)
        assert gap == pytest.approx(1.644854 * np.sqrt(spread * 0.86), abs=2e-4)


def test_without_labels_the_model_speaks():
    """Its prior with the interval; no label and no prior is an error."""
    (result,) = estimate_share([0.2, 0.8], prior=PRIOR)
    assert result.method == "model"
    assert (result.estimate, result.low, result.high) == pytest.approx((0.4, 0.2, 0.7))
    assert estimate_share([0.2, 0.8], [-1, -1], prior=PRIOR, misfit=MISFIT) == (result,)
    with pytest.raises(InputError, match=r"^`labels` must hold a label of 0 or 1, or `prior` be given. Got neither"):
        estimate_share([0.2, 0.8], [-1, -1])


@pytest.mark.parametrize("n_labels", [5, 20, 100])
@pytest.mark.parametrize("truth", [(0.0, 1.0), (1.3, 0.5)])
def test_intervals_cover(n_labels, truth):
    """Those that hold whatever the model is worth do so in 85 % of datasets or more, P right or wrong."""
    rng, inside = np.random.default_rng(n_labels), {}
    for _ in range(300):
        p, y = dataset(rng, truth=(rng.normal(truth[0], 0.7), truth[1]))
        known = rng.permutation(600)[:n_labels]
        for name, share in by_method(estimate_share(p, hidden(y, known))).items():
            inside.setdefault(name, []).append(share.low <= y.mean() <= share.high)
    covered = {name: np.mean(held) for name, held in inside.items()}
    assert all(value >= 0.85 for value in covered.values()), covered
    assert covered["prediction-powered"] <= 0.97
    assert covered["mean"] <= 0.97


@pytest.mark.parametrize("n_labels", [5, 20, 100])
def test_the_corrected_model_covers_datasets_like_the_training_ones(n_labels):
    """Intercepts and slopes drawn from the misfit: 85 to 97 %, and intervals shorter than those by labels alone."""
    rng, result = np.random.default_rng(n_labels), []
    for _ in range(250):
        p, y = dataset(rng, truth=rng.multivariate_normal(NONE, MISFIT.covariance))
        shares = by_method(estimate_share(p, hidden(y, rng.permutation(600)[:n_labels]), misfit=MISFIT))
        own, plain = shares["corrected"], shares["mean"]
        result.append((own.low <= y.mean() <= own.high, own.high - own.low, plain.high - plain.low))
    held, width, plain = np.mean(result, axis=0)
    assert 0.85 <= held <= 0.97
    assert width < plain


def test_predictions_shorten_the_interval():
    """Prediction-powered intervals are shorter and estimates nearer, where P tells much."""
    rng, result = np.random.default_rng(4), []
    for _ in range(100):
        z = rng.normal(0, 3, 500)
        y = (rng.random(500) < expit(z)).astype(int)
        shares = by_method(estimate_share(expit(z), hidden(y, rng.permutation(500)[:40])))
        powered, plain = shares["prediction-powered"], shares["mean"]
        errors = [abs(share.estimate - y.mean()) for share in (powered, plain)]
        result.append((*errors, powered.high - powered.low, plain.high - plain.low))
    near, far, short, long = np.mean(result, axis=0)
    assert near < 0.85 * far
    assert short < 0.85 * long


def test_whole_documents_as_labels():
    """All claims of eight documents labeled: intervals that know cover in 82 % or more, those that do not in fewer."""
    rng, inside = np.random.default_rng(5), []
    codes, shared = np.repeat(np.arange(100), 6), np.sin(np.pi / 2 * 0.4)
    for _ in range(250):
        z = rng.normal(0.3, 1.2, 600)
        common = rng.normal(size=100)[codes]
        y = (ndtr(np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=600)) < expit(z)).astype(int)
        known = np.isin(codes, rng.permutation(100)[:8])
        for documents in (codes, None):
            shares = by_method(estimate_share(expit(z), hidden(y, known), documents=documents))
            inside += [share.low <= y.mean() <= share.high for share in shares.values()]
    told, untold = np.reshape(inside, (-1, 2, 3)).mean(axis=0)
    assert (told >= 0.82).all()
    assert (untold[:2] < told[:2] - 0.05).all()


def test_all_items_labeled():
    """Nothing is left to estimate: the share, without an interval to speak of."""
    p, y = dataset(np.random.default_rng(0), 200)
    for share in estimate_share(p, y, misfit=MISFIT):
        if share.method != "Rogan-Gladen":
            assert (share.estimate, share.low, share.high) == pytest.approx((y.mean(),) * 3, abs=1e-9)


@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from([-1, 0, 1])), min_size=1, max_size=30),
    st.booleans(),
    st.integers(0, 3),
)
def test_any_labels_give_shares(rows, known_prior, n_documents):
    """Estimates within their bounds, bounds within [0, 1], each of a method that is described."""
    p, labels = [q for q, _ in rows], [label for _, label in rows]
    if max(labels) < 0:
        labels[0] = 1
    documents = None if not n_documents else [str(i % n_documents) for i in range(len(p))]
    prior = PRIOR if known_prior else None
    shares = estimate_share(p, labels, prior=prior, documents=documents, misfit=MISFIT)
    assert [share.method for share in shares] == list(SHARE_METHODS)[1:]
    for share in shares:
        assert 0 <= share.low <= share.estimate + 1e-12 <= share.high + 2e-12 <= 1 + 3e-12, share


def test_faults_are_told():
    """Values and lengths are checked."""
    with pytest.raises(InputError, match=r"^`labels` must be 1, 0, or -1"):
        estimate_share([0.5, 0.5], [1, 3])
    with pytest.raises(InputError, match=r"^`documents` must have 2 entries"):
        estimate_share([0.5, 0.5], [1, 0], documents=["a"])
    with pytest.raises(InputError, match=r"^`p` must lie in \[0, 1\]"):
        estimate_share([0.5, 2.0], [1, 0])
