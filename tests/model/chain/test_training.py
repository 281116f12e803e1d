"""Training sets: weights, folds and tables that merge cells without changing what is fitted."""

import numpy as np
import pytest

from deep.exceptions import InputError
from deep.features import Cells
from deep.model import RECIPES, TrainingSet, group_weights, row_folds, training_set
from deep.records import VoteMatrix


def random_votes(n=600, n_voters=4, seed=0, **columns):
    """Return labeled votes of three datasets of unequal size and balance."""
    rng = np.random.default_rng(seed)
    datasets = rng.choice(["a", "b", "c"], p=[0.7, 0.2, 0.1], size=n)
    labels = (rng.random(n) < np.select([datasets == "a", datasets == "b"], [0.8, 0.5], 0.3)).astype(int)
    right = rng.random((n, n_voters)) < 0.7
    votes = np.where(right, labels[:, None], 1 - labels[:, None])
    votes[rng.random((n, n_voters)) < 0.1] = -1
    return VoteMatrix(votes, range(n), [f"v{j}" for j in range(n_voters)], datasets, labels, **columns)


@pytest.mark.parametrize("weighting", ["dataset", "dataset-class", "uniform"])
def test_weights_sum_to_the_number_of_rows(weighting):
    """Whatever weighs the same, the weights of all rows sum to their number, as does any subset's."""
    training = training_set(random_votes(), RECIPES["deep"], weighting=weighting)
    assert training.weights().sum() == pytest.approx(600)
    some = np.array([True, False, True])
    assert training.weights(some).sum() == pytest.approx(training.cells.counts[:, some].sum())
    assert training.table()[2].sum() == pytest.approx(600)


def test_dataset_class_weighting_makes_all_groups_equal():
    """Every dataset x class has the same total weight."""
    totals = training_set(random_votes(), RECIPES["deep"]).weights().sum(axis=0)
    assert totals == pytest.approx(np.full((3, 2), 100.0))


def test_dataset_weighting_keeps_the_balance_within():
    """Every dataset weighs the same and keeps its own share of consistent rows."""
    training = training_set(random_votes(), RECIPES["deep"], weighting="dataset")
    totals, sizes = training.weights().sum(axis=0), training.cells.counts.sum(axis=0)
    assert totals.sum(axis=1) == pytest.approx(np.full(3, 200.0))
    assert totals[:, 1] / totals.sum(axis=1) == pytest.approx(sizes[:, 1] / sizes.sum(axis=1))


def test_a_group_without_a_class_has_no_weight_there():
    """A fold that lacks a class leaves that class to the others."""
    weights = group_weights(np.array([[10, 0], [5, 5]]), "dataset-class")
    assert weights.tolist() == [[0.5, 0.0], [1.0, 2.0]]


def test_unknown_weighting_lists_the_known():
    """The error names the parameter and the choices."""
    with pytest.raises(InputError, match=r"`weighting` must be one of dataset, dataset-class, uniform. Got 'rows'"):
        group_weights(np.ones((1, 2), dtype=int), "rows")


def test_table_without_a_fold_holds_only_the_others():
    """Leaving out a dataset's fold leaves its rows out, and only its."""
    votes = random_votes()
    training = training_set(votes, RECIPES["deep"], weighting="uniform")
    fold = training.cells.groups.index("b")
    rest = votes.rows(votes.datasets != "b")
    _, labels, weights = training.without_fold(fold)
    assert weights.sum() == len(rest.labels)
    assert weights[labels == 1].sum() == rest.labels.sum()


def test_one_dataset_is_cut_into_five_stratified_folds():
    """With one training dataset the inner folds are five of nearly equal size and balance."""
    votes = random_votes().rows(random_votes().datasets == "a")
    training = training_set(votes, RECIPES["deep"])
    sizes = training.cells.counts.sum(axis=0)
    assert training.n_folds == 5
    assert np.ptp(sizes.sum(axis=1)) <= 1
    assert np.ptp(sizes[:, 1]) <= 1


@pytest.mark.parametrize("recipe", ["deep", "paper"])
def test_row_folds_never_split_a_document(recipe):
    """All rows of a document lie in one of the five folds."""
    votes = random_votes()
    one = votes.rows(votes.datasets == "a")
    documents = [f"d{i // 4}" for i in range(len(one.labels))]
    # Each row its own pattern would hide nothing: group by document, count folds per document.
    grouped = VoteMatrix(one.votes, one.item_ids, one.voter_names, one.datasets, one.labels, documents)
    folds = row_folds(grouped, 0)
    assert all(len(set(folds[grouped.document_ids == d])) == 1 for d in set(documents))
    assert training_set(grouped, RECIPES[recipe]).n_folds == 5


def test_row_folds_do_not_depend_on_row_order():
    """A shuffled table gives the same training set."""
    votes = random_votes()
    one = votes.rows(votes.datasets == "a")
    shuffled = one.rows(np.random.default_rng(3).permutation(len(one.labels)))
    a, b = (training_set(v, RECIPES["paper"]) for v in (one, shuffled))
    assert (a.cells.counts == b.cells.counts).all()


def test_datasets_with_common_documents_share_a_fold():
    """Datasets b and c have a document in common, so they are left out together."""
    base = random_votes()
    documents = np.array([f"{d}-{i}" for i, d in enumerate(base.datasets)], dtype=object)
    documents[np.flatnonzero(base.datasets == "b")[0]] = "shared"
    documents[np.flatnonzero(base.datasets == "c")[0]] = "shared"
    votes = VoteMatrix(base.votes, base.item_ids, base.voter_names, base.datasets, base.labels, documents)
    assert training_set(votes, RECIPES["deep"]).fold_of.tolist() == [0, 1, 1]


def test_datasets_that_all_share_documents_stay_apart():
    """Where joining would leave one fold, every dataset is its own fold again."""
    base = random_votes()
    votes = VoteMatrix(base.votes, base.item_ids, base.voter_names, base.datasets, base.labels, ["same"] * 600)
    assert training_set(votes, RECIPES["deep"]).fold_of.tolist() == [0, 1, 2]


def test_families_are_left_out_together():
    """With `by_family` siblings share an inner fold."""
    votes = random_votes(families={"a": "kin", "c": "kin"})
    assert training_set(votes, RECIPES["deep"], by_family=True).fold_of.tolist() == [1, 0, 1]
    assert training_set(votes, RECIPES["deep"]).fold_of.tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_ones", [2, 4, 5, 9])
def test_a_rare_class_is_in_every_fold(n_ones):
    """There are as many folds as rows of the rarer class, five at most, and each holds some of it."""
    labels = np.array([1] * n_ones + [0] * 20)
    votes = VoteMatrix([[1]] * len(labels), range(len(labels)), ["v"], ["rare"] * len(labels), labels)
    folds = row_folds(votes, 0)
    assert np.unique(folds[labels == 1]).tolist() == list(range(min(n_ones, 5))) == np.unique(folds).tolist()


@pytest.mark.parametrize(
    ("n_ones", "documents", "of"),
    [(1, None, "two rows"), (4, ["same"] * 4 + [f"d{i}" for i in range(8)], "two rows of two documents")],
)
def test_too_few_rows_for_folds(n_ones, documents, of):
    """One row of a class, or rows of one document, cannot be cut into folds; the error names the dataset."""
    labels = [1] * n_ones + [0] * (12 - n_ones)
    votes = VoteMatrix([[1]] * 12, range(12), ["v"], ["tiny"] * 12, labels, documents)
    with pytest.raises(InputError, match=rf"`labels` must hold {of} of each class .* Got fewer in tiny"):
        training_set(votes, RECIPES["deep"])


def test_fold_of_must_name_every_group():
    """A training set whose folds do not match its groups is refused."""
    cells = Cells.from_rows([[1], [0]], labels=[1, 0], groups=["a", "b"])
    with pytest.raises(InputError, match=r"`fold_of` must have 2 entries. Got 1"):
        TrainingSet(cells, np.array([0]))
