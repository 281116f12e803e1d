"""The stack against a plain reading of it: loops over datasets, scipy's optimiser, and numbers worked out by hand."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.exceptions import NotFittedError

from deep.exceptions import InputError
from deep.features import Rows
from deep.model import (
    HeldOutRows,
    LabeledRows,
    LearnedPrior,
    Misfit,
    PriorEstimate,
    Scores,
    learn_misfit,
    profile_of,
)
from deep.model.stack import MEMBER_FITS, Stack
from tests.model.fitted import identity

NAMES = np.array(["north", "east", "south", "west", "up"])


def world(seed, n_datasets=4, n=45, n_voters=3):
    """Return votes, labels, names of datasets, weights and soft scores; leniency and prior move between datasets."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_datasets), n)
    y = (rng.random(len(groups)) < expit(rng.normal(0.3, 0.8, n_datasets))[groups]).astype(int)
    for d in range(n_datasets):
        y[groups == d] = np.r_[0, 1, y[groups == d][2:]]
    latent = (2 * y - 1)[:, None] * np.linspace(0.5, 1.2, n_voters) + rng.normal(0, 0.4, n_datasets)[groups][:, None]
    latent = latent + rng.normal(0, 1, latent.shape)
    votes = np.where(rng.random(latent.shape) < 0.1, -1, latent > 0).astype(np.int8)
    return votes, y, NAMES[groups], rng.integers(1, 5, len(y)).astype(float), latent


def member_scores(name, rows, held, seed=0):
    """Return a member's log-odds on held rows, fitted on others; rows are (votes, labels, groups, weights, scores)."""
    votes, y, groups, w, scores = rows
    codes = np.unique(groups, return_inverse=True)[1]
    scorer = MEMBER_FITS[name](LabeledRows(votes, scores, w, y.astype(np.int8), codes), seed)
    return scorer(Rows(held[0], held[4], held[3]))


def context_of(score, w):
    """Return the log-odds of the mean P, held within [0.02, 0.98]."""
    return float(logit(np.clip(np.average(expit(score), weights=w), 0.02, 0.98)))


def class_shares(y, w):
    """Return each row's share of label 1's weight and of label 0's."""
    return w * (y == 1) / w[y == 1].sum(), w * (y == 0) / w[y == 0].sum()


def log_loss(z, y, w):
    """Return the log loss at equal class weights."""
    ones, zeros = class_shares(y, w)
    return (ones @ np.logaddexp(0, -z) + zeros @ np.logaddexp(0, z)) / 2


def alignment(held, use_context):
    """Return intercept, slope and effect of context of least loss, each dataset and class weighing the same.

    There is no offset at the mean context of the datasets.
    """
    mean = np.mean([c for _, c, _, _ in held])
    design = np.vstack([np.column_stack([z, np.full_like(z, (c - mean) * use_context)]) for z, c, _, _ in held])
    ones, zeros = np.hstack([class_shares(y, w) for _, _, y, w in held]) / (2 * len(held))

    def loss(theta):
        z, apart = design @ theta, theta - [1, 0]
        value = ones @ np.logaddexp(0, -z) + zeros @ np.logaddexp(0, z) + 2e-3 * (apart @ apart)
        return value, design.T @ ((ones + zeros) * expit(z) - ones) + 4e-3 * apart

    slope, effect = minimize(loss, [1.0, 0.0], jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return np.array([-effect * mean, slope, effect]) if slope > 0 else np.zeros(3)


class PlainStack:
    """All that the stack learns, by loops over members and datasets."""

    def __init__(self, members, rows, temperature=0.01):
        groups = rows[2]
        names = sorted(set(groups))
        parts = {d: [column[groups == d] for column in rows] for d in names}
        others = {d: [column[groups != d] for column in rows] for d in names}
        self.held = {}
        for member in members:
            raw = [member_scores(member, others[d], parts[d]) for d in names]
            self.held[member] = [
                (z, context_of(z, parts[d][3]), parts[d][1], parts[d][3]) for z, d in zip(raw, names, strict=True)
            ]
        self.forms = [(member, context) for member in members for context in (False, True)]
        self.alignments = {(m, c): alignment(self.held[m], c) for m, c in self.forms}
        inner = {
            (m, c): [alignment(self.held[m][:i] + self.held[m][i + 1 :], c) for i in range(len(names))]
            for m, c in self.forms
        }
        aligned = {
            (m, c): [t[0] + t[1] * z + t[2] * ctx for t, (z, ctx, _, _) in zip(inner[m, c], self.held[m], strict=True)]
            for m, c in self.forms
        }
        by_dataset = np.array(
            [
                [log_loss(z, y, w) for z, (_, _, y, w) in zip(aligned[m, c], self.held[m], strict=True)]
                for m, c in self.forms
            ]
        )
        self.losses = dict(zip(self.forms, by_dataset.mean(axis=1), strict=True))
        self.weights = self.shares(by_dataset, temperature)
        self.mixed = [sum(self.weights[form] * aligned[form][i] for form in self.forms) for i in range(len(names))]
        self.truth = [(parts[d][1], parts[d][3], parts[d][0]) for d in names]
        self.offsets = [
            sum(w * (inner[m, c][i][0] + inner[m, c][i][2] * self.held[m][i][1]) for (m, c), w in self.weights.items())
            for i in range(len(names))
        ]
        seen = [(self.summed(members, rows, parts[d])[0], parts[d][1], parts[d][3]) for d in names]
        self.slope = (4 + len(seen) * shared_slope(seen)) / (4 + len(seen))
        profiles = [profile_of(self.slope * z, w) for z, _, w in seen]
        self.prior = LearnedPrior().fit(profiles, [np.average(y, weights=w) for _, y, w in seen])

    def shares(self, by_dataset, temperature):
        """Return the weight of each form: by its loss, as far as losses are no noise, and as simple as it is."""
        n = by_dataset.shape[1]
        apart = by_dataset - by_dataset.mean(axis=0)
        noise = np.sqrt(np.mean([row.var(ddof=1) for row in apart]) / n)
        self.temperature = max(temperature, 2 * noise)
        raw = np.exp(-(by_dataset.mean(axis=1) - by_dataset.mean(axis=1).min()) / self.temperature)
        simple = [member in SIMPLE for member, _ in self.forms]
        shares = [
            (n**3 * r / raw.sum() + 4**3 * is_simple / sum(simple)) / (n**3 + 4**3)
            for r, is_simple in zip(raw, simple, strict=True)
        ]
        return dict(zip(self.forms, shares, strict=True))

    def misfit(self):
        """Return the misfit of the mixture on the line of P of each dataset as estimated without it."""
        weighted = [self.slope * (z - offset) for z, offset in zip(self.mixed, self.offsets, strict=True)]
        held = [profile_of(z, w) for z, (_, w, _) in zip(weighted, self.truth, strict=True)]
        left_out = []
        for z, (y, w, votes), prior in zip(weighted, self.truth, self.prior.left_out(held), strict=True):
            cell = np.unique(votes, axis=0, return_inverse=True)[1].ravel()
            left_out.append(HeldOutRows(prior.threshold + prior.slope * z, w * (y == 1), w * (y == 0), cell))
        return learn_misfit(left_out)

    def summed(self, members, rows, target):
        """Return the members' weighted log-odds on a dataset, and what its contexts add."""
        raw = {member: member_scores(member, rows, target) for member in members}
        context = {member: context_of(z, target[3]) for member, z in raw.items()}
        log_odds, offset = 0.0, 0.0
        for member, use in self.forms:
            a, b, c = self.weights[member, use] * self.alignments[member, use]
            log_odds, offset = log_odds + b * raw[member], offset + a + c * context[member]
        return log_odds, offset


def shared_slope(seen):
    """Return the slope that datasets of one weight share, with the pull of two rows of each to 1."""

    def loss(theta):
        total = 0.0
        for intercept, (z, y, w) in zip(theta[1:], seen, strict=True):
            at = intercept + theta[0] * z
            total += (w @ (np.logaddexp(0, at) - y * at) + (theta[0] - 1) ** 2) / w.sum()
        return total

    start = [1.0, *np.zeros(len(seen))]
    return float(np.clip(minimize(loss, start, method="BFGS", options={"gtol": 1e-7}).x[0], 0.05, 4))


SIMPLE = ("best-judge", "best-score", "majority", "ridge-votes")
MEMBER_SETS = {"one": ["majority"], "three": ["ridge-votes", "logistic-scores", "best-score"]}


@pytest.fixture(scope="module", params=MEMBER_SETS)
def fitted(request):
    """Return members, training rows, the stack fitted on them, and the plain reading of it."""
    members, rows = MEMBER_SETS[request.param], world(1)
    if "best-score" in members:
        rows = ((rows[4] >= 0.5).astype(np.int8), *rows[1:])
        stack = Stack(members).fit(rows[4], rows[1], groups=rows[2], sample_weight=rows[3], answer_map=identity(3))
    else:
        rows = (*rows[:4], rows[4][:, :0])
        stack = Stack(members).fit(rows[0], rows[1], groups=rows[2], sample_weight=rows[3])
    return members, rows, stack, PlainStack(members, rows)


def test_losses_and_alignments_are_those_of_loops(fitted):
    """By member, with its context and without."""
    members, _, stack, plain = fitted
    assert stack.members_ == tuple(members)
    assert list(stack.losses_) == plain.forms
    assert list(stack.losses_.values()) == pytest.approx(list(plain.losses.values()), abs=1e-6)
    for member, part in zip(members, stack.blend_.parts, strict=True):
        expected = sum(plain.weights[member, use] * plain.alignments[member, use] for use in (False, True))
        assert part.name == member
        assert [part.intercept, part.slope, part.context] == pytest.approx(plain.slope * expected, abs=1e-4)
        assert plain.alignments[member, False][[0, 2]].tolist() == [0.0, 0.0]


def test_members_weigh_by_their_loss(fitted):
    """exp(-loss / temperature), half way to equal weights of simple members; a member weighs as its two forms do."""
    members, _, stack, plain = fitted
    assert list(stack.form_weights_.values()) == pytest.approx(list(plain.weights.values()), abs=1e-4)
    assert stack.temperature_ == pytest.approx(plain.temperature, abs=1e-6)
    for member in members:
        both = stack.form_weights_[member, False] + stack.form_weights_[member, True]
        assert stack.weights_[member] == pytest.approx(both, abs=1e-12)
    assert sum(stack.weights_.values()) == pytest.approx(1.0, abs=1e-12)


def test_the_mixture_on_datasets_left_out(fitted):
    """Its loss and balanced accuracy, and the misfit it leaves at the prior learned without the dataset."""
    _, _, stack, plain = fitted
    losses = [log_loss(z, y, w) for z, (y, w, _) in zip(plain.mixed, plain.truth, strict=True)]
    assert stack.inner_log_loss_ == pytest.approx(np.mean(losses), abs=1e-6)
    right = []
    for z, (y, w, _) in zip(plain.mixed, plain.truth, strict=True):
        ones, zeros = class_shares(y, w)
        right.append((ones[z >= 0].sum() + zeros[z < 0].sum()) / 2)
    assert stack.inner_balanced_accuracy_ == pytest.approx(np.mean(right), abs=1e-9)
    assert stack.prior_.profiles_ == pytest.approx(plain.prior.profiles_, abs=1e-3)
    misfit = plain.misfit()
    assert stack.misfit_.covariance == pytest.approx(misfit.covariance, abs=1e-4)
    assert stack.misfit_.cell_spread == pytest.approx(misfit.cell_spread, abs=1e-3)
    assert stack.misfit_.n_datasets == 4


def test_scores_of_a_new_dataset(fitted):
    """The mixture of aligned members, and the prior at their contexts; rows may weigh."""
    members, rows, stack, plain = fitted
    target = world(9, n_datasets=1, n=30)
    if "best-score" not in members:
        target = (*target[:4], target[4][:, :0])
    answers = target[4] if "best-score" in members else target[0]
    for w in (np.ones(30), target[3]):
        new = [*target[:3], w, target[4]]
        log_odds, offset = plain.summed(members, rows, new)
        result = stack.score(answers, sample_weight=w)
        assert result.log_odds == pytest.approx(plain.slope * (log_odds + offset), abs=1e-3)
        expected = plain.prior.predict(profile_of(plain.slope * log_odds, w), plain.slope * offset)
        assert result.prior.estimate == pytest.approx(expected.estimate, abs=1e-4)
        assert result.prior.intercept == pytest.approx(expected.intercept, abs=1e-3)
        assert result.prior.warning == expected.warning
        assert result.misfit is stack.misfit_
    assert stack.score(answers).log_odds == pytest.approx(
        stack.score(answers, sample_weight=np.ones(30)).log_odds, abs=1e-12
    )


def test_p_and_its_bounds_by_hand():
    """Log-odds 1 at a prior of 3/4: 1 + log 3; the bounds are the misfit's around it."""
    misfit = Misfit(np.array([0.0, 1.0]), np.array([[0.2, 0.01], [0.01, 0.03]]), 6, 0.1)
    result = Scores(np.array([1.0, -40.0, 40.0]), PriorEstimate(0.75, 0.5, 0.9), misfit)
    assert result.p_uniform == pytest.approx([expit(1.0), 1e-6, 1 - 1e-6], abs=1e-12)
    assert result.p_consistent == pytest.approx([expit(1.0 + np.log(3)), 1e-6, 1 - 1e-6], abs=1e-12)
    mild = replace(result, log_odds=np.array([1.0, -2.0]))
    for counts in (None, np.array([7, 8])):
        expected = misfit.interval(np.array([1.0, -2.0]) + np.log(3), counts)
        assert mild.interval(counts) == pytest.approx(np.array(expected), abs=1e-12)
    with pytest.raises(FrozenInstanceError):
        result.misfit = misfit
    assert result != replace(result)


@pytest.fixture
def handed(monkeypatch):
    """Return what members are handed by fits from now on: rows, weights and seed, in order."""
    calls, fit = [], MEMBER_FITS["majority"]

    def member(train, seed):
        rows = np.column_stack([train.groups, train.labels, train.votes, train.evidence, train.weights])
        calls.append((rows.tolist(), seed))
        return fit(train, seed)

    monkeypatch.setitem(MEMBER_FITS, "majority", member)
    return calls


@pytest.mark.parametrize("with_scores", [False, True])
def test_members_are_handed_rows_in_one_order(handed, with_scores):
    """By dataset, label, votes and scores; a row of weight 0 is none, and equal rows without scores are merged."""
    votes, y, groups, w, scores = world(3, n_datasets=3, n=12)
    w = np.r_[w, 0.0, 2.0]
    votes, y, groups = np.vstack([votes, votes[:2]]), np.r_[y, y[:2]], np.r_[groups, groups[:2]]
    scores = np.vstack([scores.round(), scores[:2].round()])[:, : 2 * with_scores]
    votes = (scores >= 0.5).astype(np.int8) if with_scores else votes
    codes = np.unique(groups, return_inverse=True)[1]
    sums = {}
    for position, row in enumerate(np.column_stack([codes, y, votes, scores]).tolist()):
        if w[position]:
            key = (*row, position if with_scores else 0)
            sums[key] = sums.get(key, 0.0) + w[position]
    expected = sorted([*key[:-1], weight] for key, weight in sums.items())
    rng = np.random.default_rng(0)
    for order in (np.arange(len(y)), rng.permutation(len(y)), rng.permutation(len(y))):
        given = {"answer_map": identity(2)} if with_scores else {}
        answers = scores if with_scores else votes
        Stack(["majority"]).fit(answers[order], y[order], groups=groups[order], sample_weight=w[order], **given)
        rows = handed[0][0]
        assert [row[:-1] for row in rows] == [row[:-1] for row in expected]
        if not with_scores:
            assert [row[-1] for row in rows] == pytest.approx([row[-1] for row in expected])
        # All datasets, then without each.
        assert [sorted({row[0] for row in fit}) for fit, _ in handed] == [[0, 1, 2], [1, 2], [0, 2], [0, 1]]
        handed.clear()


def test_the_seed_reaches_every_fit(handed):
    """Of all datasets and without each; it is 0 by default."""
    votes, y, groups, _, _ = world(7, n_datasets=3, n=10)
    Stack(["majority"], random_state=5).fit(votes, y, groups=groups)
    Stack(["majority"]).fit(votes, y, groups=groups)
    assert [seed for _, seed in handed] == [5] * 4 + [0] * 4


def test_weights_are_repeats():
    """A row of weight 3 is the row three times, in fitting and in scoring."""
    votes, y, groups, w, _ = world(3, n_datasets=3, n=12)
    rows = np.repeat(np.arange(len(y)), w.astype(int))
    weighted = Stack(["majority"]).fit(votes, y, groups=groups, sample_weight=w)
    repeated = Stack(["majority"]).fit(votes[rows], y[rows], groups=groups[rows])
    assert weighted.losses_ == pytest.approx(repeated.losses_, abs=1e-9)
    assert weighted.misfit_.covariance == pytest.approx(repeated.misfit_.covariance, abs=1e-9)
    one, two = weighted.score(votes, sample_weight=w), repeated.score(votes[rows])
    assert one.prior.estimate == pytest.approx(two.prior.estimate, abs=1e-9)
    assert one.log_odds[rows] == pytest.approx(two.log_odds, abs=1e-9)


def test_swapping_the_classes_changes_the_sign():
    """Votes and labels flipped: the same losses, log-odds of the other sign, and one less the prior."""
    votes, y, groups, w, _ = world(4)
    new = world(5, n_datasets=1)[0]
    flipped, other = (np.where(v == -1, -1, 1 - v) for v in (votes, new))
    members = ["best-judge", "majority", "ridge-votes"]
    one = Stack(members).fit(votes, y, groups=groups, sample_weight=w)
    two = Stack(members).fit(flipped, 1 - y, groups=groups, sample_weight=w)
    assert two.losses_ == pytest.approx(one.losses_, abs=1e-6)
    assert two.score(other).log_odds == pytest.approx(-one.score(new).log_odds, abs=1e-4)
    assert two.score(other).prior.estimate == pytest.approx(1 - one.score(new).prior.estimate, abs=1e-4)


def test_the_temperature_sets_how_far_weights_differ():
    """Hot: all alike; cold: no colder than the noise of the losses allows; the default is 0.01."""
    rows = world(6)
    fitted = [Stack(["majority", "best-judge"], temperature=t) for t in (1e-12, 0.01, 1e6)]
    cold, default, hot = (stack.fit(rows[0], rows[1], groups=rows[2]) for stack in fitted)
    assert list(hot.form_weights_.values()) == pytest.approx([0.25] * 4, abs=1e-6)
    assert cold.temperature_ > 1e-6
    assert default.temperature_ == max(0.01, cold.temperature_)
    plain = Stack(["majority", "best-judge"]).fit(rows[0], rows[1], groups=rows[2])
    assert plain.form_weights_ == default.form_weights_


def test_without_members_all_that_can_be_fitted_are():
    """Without scores there are four."""
    votes, y, groups, _, _ = world(8, n_datasets=3, n=12, n_voters=2)
    stack = Stack().fit(votes, y, groups=groups)
    assert stack.members_ == ("best-judge", "forest-votes", "majority", "ridge-votes")


def small(**changes):
    """Return arguments of `fit` for three datasets of four rows, with changes."""
    rows = {
        "X": [[1, 0], [0, 0], [1, 1], [0, 1]] * 3,
        "y": [1, 0, 1, 0] * 3,
        "groups": ["a"] * 4 + ["b"] * 4 + ["c"] * 4,
    }
    return rows | changes


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"groups": ["a"] * 6 + ["b"] * 6}, {}, r"^`groups` must name at least 3 datasets\. Got 2\.$"),
        ({"groups": ["a"] * 5}, {}, r"^`groups` must have 12 entries, one a row\. Got 5\.$"),
        (
            {"y": [1, 0, 1, 0] * 2 + [1] * 4},
            {},
            r"^`y` must hold both .* Got only 1 in .*'c'",
        ),
        (
            {"sample_weight": [1, 0, 1, 0] + [1] * 8},
            {},
            r"^`y` must hold both .* Got only 1 in .*'a'",
        ),
        ({"sample_weight": [0] * 4 + [1] * 8}, {}, r"^`groups` must name at least 3 datasets\. Got 2\.$"),
        ({"y": [1, 0]}, {}, r"^`y` must have 12 entries, one a row\. Got 2\.$"),
        (
            {},
            {"members": ["majority", "best-score"]},
            r"^`members` must be one of best-judge, forest-votes, majority, ridge-votes\. Got 'best-score'\.$",
        ),
        ({}, {"temperature": 0.0}, r"^`temperature` must be above 0\. Got 0\.0\.$"),
        ({}, {"temperature": float("nan")}, r"^`temperature` must be above 0\. Got nan\.$"),
    ],
)
def test_what_cannot_be_fitted(changes, options, message):
    """Each fault is named."""
    rows = small(**changes)
    with pytest.raises(InputError, match=message):
        Stack(**({"members": ["majority"]} | options)).fit(rows.pop("X"), rows.pop("y"), **rows)


def test_three_datasets_are_enough():
    """Four rows each, of numbers for names; the temperature may be as low as one likes."""
    rows = small(groups=[5] * 4 + [2] * 4 + [10] * 4)
    stack = Stack(["majority"], temperature=1e-12).fit(rows["X"], rows["y"], groups=rows["groups"])
    assert stack.misfit_.n_datasets == 3
    assert sum(stack.form_weights_.values()) == pytest.approx(1.0)


def test_what_cannot_be_scored():
    """A stack that was not fitted."""
    with pytest.raises(NotFittedError, match="not fitted"):
        Stack().score(world(1, n_datasets=3, n=10)[0])
