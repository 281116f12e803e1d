"""A belief about the share of consistent items: read, joined to a panel, refused by labels, kept in a file."""

import numpy as np
import pytest
from scipy import stats

from deep.datasets import simulate_votes
from deep.evaluate import Target, share_report
from deep.exceptions import InputError
from deep.model import Belief, Intercept, fit, load, profile_of

Z = np.random.default_rng(0).normal(0.0, 2.0, 400)
PROFILE = profile_of(Z, np.ones(len(Z)))
SURE = profile_of(10 * np.sign(Z), np.ones(len(Z)))
NEW = "aggrefact-xsum"


def panel(mean, sd):
    """Return what a panel says that knows the intercept so well."""
    return Intercept(mean, sd**2, sd * stats.t.ppf(0.95, 4)).estimate(PROFILE)


@pytest.mark.parametrize("text", ["60-80%", " 60 - 80 %", "60%-80%", "0.6-0.8", ".6-.8"])
def test_a_belief_is_read(text):
    """In percent or as shares."""
    result = Belief.parse(text)
    assert (result.low, result.high) == pytest.approx((0.6, 0.8))


@pytest.mark.parametrize("text", ["", "60", "60-", "a-b", "60-80-90%", "-10-20%"])
def test_what_is_no_belief_is_told(text):
    """One line."""
    with pytest.raises(InputError, match=r"^`share` must be two shares, as in 60-80% or 0\.6-0\.8\. Got"):
        Belief.parse(text)


@pytest.mark.parametrize("text", ["80-60%", "60-60%", "0-50%", "50-100%", "60-80"])
def test_shares_ascend_between_0_and_1(text):
    """Not at the ends, where log-odds are infinite."""
    with pytest.raises(InputError, match=r"^`share` must be two shares that ascend between 0 and 1, as in 60-80%"):
        Belief.parse(text)


def test_an_unsure_panel_follows_and_a_sure_one_does_not():
    """The estimate lies between the two, nearer to the one that knows more; its interval is narrower."""
    belief = Belief(0.7, 0.8)
    result = {}
    for sd in (2.0, 0.4, 0.05):
        alone = panel(-1.0, sd)
        result[sd] = belief.join(alone, PROFILE)
        assert alone.estimate < result[sd].estimate < 0.75 + 1e-6
    assert result[2.0].estimate > 0.7
    assert result[0.05].estimate < panel(-1.0, 0.05).estimate + 0.03
    assert result[2.0].high - result[2.0].low < panel(-1.0, 2.0).high - panel(-1.0, 2.0).low


def test_a_belief_far_off_costs_less_than_one_nearby():
    """Student's t: what lies far from all that the panel holds possible gives way."""
    alone = panel(0.0, 0.5)
    moved = {high: Belief(high - 0.06, high).join(alone, PROFILE).threshold for high in (0.7, 0.99)}
    assert 0 < moved[0.99] < moved[0.7]


def test_the_votes_alone_are_shown_beside_it():
    """In the sentence that every command prints, before what else there is to warn of."""
    alone = Intercept(0.0, 1.0, 2.0).estimate(PROFILE, warning="Few datasets.")
    message = Belief(0.6, 0.8).join(alone, PROFILE).warning
    assert message is not None
    assert message.startswith("The votes alone say 48.6 % (21.6 to 76.9)")
    assert message.endswith("joined to the belief of 60 to 80 %. Few datasets.")


def test_where_votes_are_sure_a_belief_hardly_moves_p():
    """Of a panel that is sure of every item the mean P stands, whatever the intercept."""
    alone = Intercept(0.0, 1.0, 2.0).estimate(SURE)
    result = Belief(0.8, 0.9).join(alone, SURE)
    assert abs(result.threshold) < 5
    assert result.estimate == pytest.approx(alone.estimate, abs=0.05)


@pytest.mark.parametrize(("ones", "refused"), [(35, False), (30, False), (45, False), (15, True), (5, True)])
def test_labels_that_contradict_it_refuse_it(ones, refused):
    """Of 50 labels at a belief of 60 to 80 %: 30 to 45 consistent ones are chance, 15 are not."""
    labels = np.append(np.repeat([1, 0], [ones, 50 - ones]), np.full(30, -1))
    if not refused:
        Belief(0.6, 0.8).check(labels)
        return
    with pytest.raises(
        InputError, match=rf"^`share` must not be far from what labels say\. Got 60 to 80 % where {ones} of 50"
    ):
        Belief(0.6, 0.8).check(labels)


def test_labels_of_one_document_refuse_less():
    """Fifty labels of one document are worth ten."""
    labels = np.repeat([1, 0], [20, 30])
    with pytest.raises(InputError, match=r"^`share` must not be far"):
        Belief(0.65, 0.8).check(labels)
    Belief(0.65, 0.8).check(labels, np.repeat("one", 50))


def test_true_beliefs_are_seldom_refused():
    """Shares drawn from the belief itself, thirty labels of each: at most one in twenty."""
    belief, rng, refused = Belief(0.6, 0.8), np.random.default_rng(1), 0
    for _ in range(400):
        share = 1 / (1 + np.exp(-(belief.centre + belief.scale / 1.4 * rng.standard_t(4))))
        try:
            belief.check((rng.random(30) < share).astype(int))
        except InputError:
            refused += 1
    assert refused <= 20


@pytest.fixture(scope="module")
def model():
    """Return a model of two datasets, and votes on a third."""
    votes = simulate_votes(0)
    names = [name for name in votes.dataset_names if name != NEW]
    return fit(votes.rows(np.isin(votes.datasets.astype(str), names[:2]))), votes.rows(votes.datasets == NEW)


def test_a_belief_moves_p_and_stays_in_the_file(model, tmp_path):
    """The same P from the file, by `fit` and by `believing`; another belief takes its place."""
    fitted, mine = model
    low, high = (fitted.believing(share) for share in ("20-30%", "70-80%"))
    assert low.score(mine).mean() < fitted.score(mine).mean() < high.score(mine).mean()
    high.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.score(mine), high.score(mine))
    np.testing.assert_array_equal(again.believing("20-30%").score(mine), low.score(mine))
    assert fitted.believing(None) is fitted


def test_a_belief_and_labels(model):
    """Labels that agree with it are joined, those that do not refuse it, and a corrected model takes none."""
    fitted, mine = model
    labels = np.where(np.arange(len(mine.labels)) < 60, mine.labels, -1)
    adapted = fitted.believing("40-60%").adapted(mine, labels)
    assert adapted.correction is not None
    with pytest.raises(InputError, match=r"^`share` must not be far from what labels say"):
        fitted.believing("90-95%").adapted(mine, labels)
    with pytest.raises(InputError, match=r"^`share` must not be far from what labels say"):
        share_report(fitted.believing("90-95%"), Target(mine.with_columns(labels=labels)))
    with pytest.raises(InputError, match=r"^`share` must be given with a model that no labels have corrected"):
        adapted.believing("40-60%")
