"""Systems compared: false alarms and power over seeds, documents that systems share, ranks, Holm, and the ends."""

import numpy as np
import pytest
from scipy.special import expit, ndtr

from deep.datasets import read_votes
from deep.evaluate import Target, compare_systems, read_systems
from deep.exceptions import InputError
from deep.model import Misfit, fit, holm, joint_shares

MISFIT = Misfit(np.array([0.0, 1.0]), np.array([[0.4, 0.0], [0.0, 0.1]]), 8)
CONTRAST = np.array([1.0, -1.0])


def two_systems(rng, gap, *, n_documents=60, of_document=0.0):
    """Return P, labels, systems and documents of two systems on the same documents, `gap` apart, as P sees."""
    document = np.tile(np.repeat(np.arange(n_documents), 4), 2)
    system = np.repeat([0, 1], 4 * n_documents)
    z = rng.normal(0.8, 1.3, len(system)) + rng.normal(0, 0.5, n_documents)[document] + gap * (system == 0)
    own = of_document * rng.normal(size=(2, n_documents))[system, document]
    y = (rng.random(len(z)) < expit(0.5 + 0.8 * z + own)).astype(int)
    return expit(z), y, system, document


def labeled(rng, y, system, n):
    """Return labels of n random items of each system."""
    labels = np.full(len(y), -1)
    for one in (0, 1):
        rows = rng.choice(np.flatnonzero(system == one), n, replace=False)
        labels[rows] = y[rows]
    return labels


def p_value(found):
    """Return that of the difference between two systems."""
    return 2 * ndtr(-abs(CONTRAST @ found.estimate) / np.sqrt(CONTRAST @ found.sampling @ CONTRAST))


@pytest.mark.parametrize("of_document", [0.0, 1.5])
def test_alarms_are_rare_and_differences_found(of_document):
    """At a level of 10 %: 5 to 14 % of pairs that are alike, and more of those that are not than labels alone find."""
    rng, alarms, result, plain = np.random.default_rng(0), [], [], []
    for _ in range(120):
        for gap, kept in ((0.0, alarms), (1.1, result)):
            p, y, system, document = two_systems(rng, gap, of_document=of_document)
            labels = labeled(rng, y, system, 50)
            kept.append(p_value(joint_shares(p, labels, MISFIT, systems=system, documents=document)) < 0.1)
        means = [labels[(system == one) & (labels >= 0)].mean() for one in (0, 1)]
        error = np.sqrt(sum(mean * (1 - mean) for mean in means) / 50)
        plain.append(abs(means[0] - means[1]) > 1.645 * error)
    assert 0.03 <= np.mean(alarms) <= 0.14, np.mean(alarms)
    assert np.mean(result) > np.mean(plain) + 0.02, (np.mean(result), np.mean(plain))


def test_few_labels_do_not_make_a_panel_right():
    """A panel that favours one system: with two labels of each the difference is no surer than without any."""
    rng = np.random.default_rng(1)
    p, y, system, document = two_systems(rng, 0.0)
    p = np.where(system == 0, p, p / 3)
    widths = []
    for n in (0, 2, 50, 150):
        result = joint_shares(p, labeled(rng, y, system, n), MISFIT, systems=system, documents=document)
        widths.append(np.sqrt(CONTRAST @ result.sampling @ CONTRAST))
    assert widths[1] > widths[0] / 2
    assert widths[2] > widths[3]
    assert p_value(result) > 0.1


def test_without_labels_the_tests_know_what_the_misfit_knows():
    """The two covariances are one then, and wider than that of drawing documents."""
    p, y, system, document = two_systems(np.random.default_rng(2), 0.0)
    result = joint_shares(p, np.full(len(y), -1), MISFIT, systems=system, documents=document)
    np.testing.assert_allclose(result.sampling, result.covariance)
    assert CONTRAST @ result.covariance @ CONTRAST > 4 * CONTRAST @ result.drawn @ CONTRAST


@pytest.mark.parametrize("of_items", [True, False])
def test_intervals_cover_the_share_of_the_items_or_of_the_system(of_items):
    """85 to 97 % of draws of documents and labels; of the system, intervals are wider."""
    rng, inside = np.random.default_rng(3), []
    for _ in range(400):
        p, y, system, document = two_systems(rng, 0.0, of_document=1.0)
        mine = system == 0
        labels = labeled(rng, y, system, 60)[mine]
        result = joint_shares(p[mine], labels, MISFIT, documents=document[mine], of_items=of_items)
        truth = y[mine].mean() if of_items else 0.6929
        inside.append(abs(result.estimate[0] - truth) < 1.645 * np.sqrt(result.covariance[0, 0]))
    assert 0.85 <= np.mean(inside) <= 0.97, np.mean(inside)


def test_holm_is_that_of_statsmodels():
    """On five p-values, two of them alike, by statsmodels 0.14: multipletests(..., method='holm')."""
    assert holm([0.01, 0.2, 0.03, 0.03, 0.9]).tolist() == pytest.approx([0.05, 0.4, 0.12, 0.12, 0.9])


@pytest.fixture(scope="module")
def model():
    """Return a model of simulated votes, and its target with a system for each item."""
    from deep.datasets import simulate_votes

    votes = simulate_votes(0)
    mine = votes.datasets == "aggrefact-xsum"
    target = Target(votes.rows(mine))
    systems = np.array(list("abc"))[np.arange(len(target.votes.labels)) % 3]
    return fit(votes.rows(~mine)), target, systems


def test_ranks_pairs_and_notes(model):
    """Three systems, three pairs, the better one first, ranks that add up; from votes alone it is said."""
    fitted, target, systems = model
    hidden = Target(target.votes.with_columns(labels=np.full(len(systems), -1)))
    for shown, notes in ((hidden, 1), (target, 0)):
        result = compare_systems(fitted, shown, systems.tolist(), tell=0.1)
        assert [one.rank for one in result.systems] == [1, 2, 3]
        assert all(one.rank_low <= one.rank <= one.rank_high for one in result.systems)
        assert sum(one.best for one in result.systems) == pytest.approx(1)
        assert len(result.pairs) == 3
        assert all(pair.difference >= 0 and pair.p_holm >= pair.p_value for pair in result.pairs)
        assert len(result.notes) == notes
        assert len(list(result.lines())) == 12 + notes
    wider = compare_systems(fitted, target, systems.tolist(), level=0.99)
    assert wider.pairs[0].high > result.pairs[0].high
    tenth, fifth = (
        compare_systems(fitted, target, systems.tolist(), tell=d).pairs[0].labels_to_tell for d in (0.1, 0.2)
    )
    assert tenth > 3 * fifth


def test_a_difference_that_these_documents_cannot_tell(model):
    """Half a point: from so few documents no number of labels tells it."""
    fitted, target, systems = model
    result = compare_systems(fitted, target, systems.tolist(), tell=0.005)
    assert result.pairs[0].labels_to_tell is None
    assert any(line.endswith("no number") for line in result.lines())


def test_faults_are_told(model, tmp_path):
    """One system, a level, a column that is not there, an item without a system."""
    fitted, target, systems = model
    with pytest.raises(InputError, match=r"^`compare` must name two systems or more. Got a\."):
        compare_systems(fitted, target, ["a"] * len(systems))
    with pytest.raises(InputError, match=r"^`tell` must lie strictly between 0 and 1. Got 1\.5"):
        compare_systems(fitted, target, systems.tolist(), tell=1.5)
    table = tmp_path / "votes.csv"
    table.write_text("dataset,item_id,judge,writer\nd,1,1,a\nd,2,0,\n")
    votes = Target(read_votes([table], ignore=["writer"]))
    with pytest.raises(
        InputError, match=r"^`compare` must be 'file' or a column of the votes. Got 'nix', .* Add the column"
    ):
        read_systems([str(table)], votes, "nix")
    with pytest.raises(InputError, match=r"^`compare` must name the system of every item. Got none in 'writer' of '2'"):
        read_systems([str(table)], votes, "writer")
    assert read_systems([str(table)], votes, "file") == ["votes", "votes"]
