"""Votes simulated from the paper's figures."""

import sys
from pathlib import Path

import numpy as np
import pytest

from deep.datasets import published_datasets, published_points, simulate_votes
from deep.ensembles import LabelModel
from tests.datasets.tables import fault

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from fit_votes import recover_counts

DATASETS = [dataset.name for dataset in published_datasets()]


@pytest.fixture(scope="module")
def simulations():
    """Return the fitted votes and independent draws."""
    return [simulate_votes(random_state=seed) for seed in range(8)]


@pytest.mark.parametrize("seed", [0, 1])
def test_sizes_and_names(simulations, seed):
    """The paper's four test sets, with ten voters, GPT-4 first; a draw has as many items of each class."""
    votes = simulations[seed]
    assert votes.shape == (4092, 10)
    assert votes.voter_names[:5] == tuple(f"prompt-{i}/gpt-4" for i in range(1, 6))
    assert votes.voter_names[5:] == tuple(f"prompt-{i}/gpt-3.5" for i in range(1, 6))
    counts = {
        d: (int(((votes.datasets == d) & (votes.labels == 1)).sum()), int((votes.datasets == d).sum()))
        for d in votes.dataset_names
    }
    assert counts == {
        "aggrefact-xsum": (285, 558),
        "halueval-summarization": (1500, 3000),
        "tofueval-mediasum": (151, 267),
        "tofueval-meetingbank": (169, 267),
    }
    assert votes.item_ids[[0, 557]].tolist() == ["aggrefact-xsum-0001", "aggrefact-xsum-0558"]
    assert votes.family_of("tofueval-mediasum") == votes.family_of("tofueval-meetingbank") == "tofueval"
    assert (votes.votes >= 0).all()


def accepted(votes, dataset):
    """Return how many inconsistent and consistent items of a dataset each voter accepts, shape (2, n_voters)."""
    rows = votes.rows(votes.datasets == dataset)
    return np.array([rows.votes[rows.labels == label].sum(axis=0) for label in (0, 1)])


def printed_counts(dataset):
    """Return the same of Table 1."""
    points = {(point.voter, point.dataset): point for point in published_points()}
    counts = [recover_counts(points[voter, dataset.name], dataset) for voter in simulate_votes().voter_names]
    return np.array([[c.false_positives for c in counts], [c.true_positives for c in counts]])


@pytest.mark.parametrize("dataset", published_datasets(), ids=lambda dataset: dataset.name)
def test_the_fitted_votes_have_the_counts_of_table_1(simulations, dataset):
    """Each voter accepts exactly its recovered counts of consistent and inconsistent items."""
    np.testing.assert_array_equal(accepted(simulations[0], dataset.name), printed_counts(dataset))


@pytest.mark.parametrize("dataset", published_datasets(), ids=lambda dataset: dataset.name)
def test_a_draw_has_them_on_average(simulations, dataset):
    """Independent draws differ from them by chance: their mean by less than four of its standard errors."""
    drawn = np.array([accepted(votes, dataset.name) for votes in simulations[1:]])
    expected, n = printed_counts(dataset), np.array([[dataset.n_inconsistent], [dataset.n_consistent]])
    error = np.sqrt(expected * (1 - expected / n) / len(drawn))
    assert (np.abs(drawn.mean(axis=0) - expected) < 4 * error).all()
    assert (drawn != expected).any(axis=0).all()


def label_model_and_majority(votes, dataset):
    """Return the balanced accuracies of LabelModel, fitted to the other datasets, and of the majority; five prompts."""
    rows, others = votes.rows(votes.datasets == dataset), votes.rows(votes.datasets != dataset)
    decided = LabelModel().fit(others.votes[:, :5]).predict(rows.votes[:, :5]) == 1
    majority = rows.votes[:, :5].sum(axis=1) >= 3
    positive = rows.labels == 1
    return [50.0 * (result[positive].mean() + (~result)[~positive].mean()) for result in (decided, majority)]


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_label_model_beats_the_majority_as_in_the_paper(simulations, dataset):
    """Ahead of the five GPT-4 prompts' majority on all four datasets there, and here."""
    learned, majority = label_model_and_majority(simulations[0], dataset)
    assert learned > majority


def test_voters_depend_on_each_other(simulations):
    """Given the label, votes agree more than independent voters would."""
    rows = simulations[0].rows(simulations[0].labels == 0)
    correlations = np.corrcoef(rows.votes.T)
    assert correlations.min() > 0.05


def test_deterministic_in_the_seed(simulations):
    """The same seed gives the same votes, another seed other ones; the global generator is neither read nor written."""
    np.random.seed(3)  # noqa: NPY002
    again = simulate_votes(random_state=np.int64(1))
    after = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    assert np.random.random() == after  # noqa: NPY002
    np.testing.assert_array_equal(again.votes, simulations[1].votes)
    np.testing.assert_array_equal(again.labels, simulations[1].labels)
    assert (again.votes != simulations[0].votes).any()
    assert (simulations[2].votes != simulations[1].votes).any()


def test_row_order_says_nothing_of_the_label(simulations):
    """The first half of a dataset holds no more consistent items than the second, beyond chance."""
    for dataset in simulations[0].dataset_names:
        labels = np.array([votes.labels[votes.datasets == dataset] for votes in simulations])
        half = labels.shape[1] // 2
        gap = labels[:, :half].mean() - labels[:, half:].mean()
        assert abs(gap) < 3.5 / np.sqrt(labels.size)


@pytest.mark.parametrize("seed", [-1, 1.5, None, "0", True])
def test_seeds_are_whole_numbers(seed):
    """Anything but a whole number from 0 up is refused."""
    assert fault(simulate_votes, seed) == f"`random_state` must be a whole number from 0 up. Got {seed!r}."
