"""Members that several stacks have in common are fitted once, and are the same as when each stack fits its own."""

import numpy as np
import pytest

from deep.datasets import simulate_votes
from deep.exceptions import InputError
from deep.model import ChainOptions, SharedWork, fit_asked, fit_shared
from tests.model.fitted import small_votes


@pytest.fixture(scope="module")
def panel():
    """Return votes on five datasets, and two soft scores."""
    votes = small_votes(("a", "b", "c", "d", "e"))
    noise = np.random.default_rng(3).normal(size=(len(votes.labels), 2))
    return votes, votes.labels[:, None] + noise


@pytest.mark.parametrize("with_scores", [False, True])
def test_shared_and_own_fits_give_the_same_p_bit_for_bit(panel, with_scores):
    """For targets, with soft scores and without."""
    votes, soft = panel
    soft = soft if with_scores else None
    names = votes.dataset_names
    shared = fit_shared(votes.votes, votes.labels, groups=votes.datasets, scores=soft, targets=names)
    assert len(shared.fitted) == 5 + 10
    for name in names[::4]:
        held = votes.datasets == name
        of = None if soft is None else soft[~held]
        own, same = (
            fit_asked(votes.rows(~held), ChainOptions(), SharedWork(fits=fits), scores=of)
            for fits in (None, shared.without(name))
        )
        scored = [one.score(votes.rows(held), scores=None if soft is None else soft[held]) for one in (own, same)]
        assert own.method == "stack"
        assert np.array_equal(*scored)


def test_pairs_are_fitted_once(panel):
    """Of n datasets there are n fits without one and n (n - 1) / 2 without two."""
    votes, _ = panel
    asked = []

    def run(function, tasks):
        asked.extend(tasks)
        return map(function, tasks)

    fit_shared(
        votes.votes, votes.labels, groups=votes.datasets, targets=votes.dataset_names, members=["majority"], run=run
    )
    assert sorted(map(sorted, asked)) == sorted(
        [[i] for i in range(5)] + [[i, j] for i in range(5) for j in range(i + 1, 5)]
    )


def test_what_is_not_left_out_one_by_one_is_refused(panel):
    """A name that is no dataset, and datasets that share a group."""
    votes, _ = panel
    with pytest.raises(InputError, match=r"`targets` must be datasets .* Got 'z'"):
        fit_shared(votes.votes, votes.labels, groups=votes.datasets, targets=["z"])
    many = simulate_votes(0)
    groups = np.arange(len(many.labels)) // 60
    with pytest.raises(InputError, match="left out one by one"):
        fit_shared(many.votes, many.labels, groups=groups, targets=["0"])
