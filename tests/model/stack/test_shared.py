"""Members that several stacks have in common are fitted once, and are the same as when each stack fits its own."""

import numpy as np
import pytest

from deep.datasets import simulate_votes
from deep.exceptions import InputError
from deep.model import AnswerMap, ChainOptions, SharedWork, Stack, fit_shared, fit_with_options, labeled_rows
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
    votes = votes.with_answers(soft) if with_scores else votes
    answer_map = AnswerMap.fit(votes) if with_scores else None
    names, answers = votes.dataset_names, votes.answers if with_scores else votes.votes
    shared = fit_shared(*labeled_rows(answers, votes.labels, votes.datasets, None, answer_map), targets=names)
    assert len(shared.fitted) == 5 + 10
    for name in names[:1]:
        held = votes.datasets == name
        rows, scored = votes.rows(~held), []
        for fits in (None, shared.without(name)):
            if with_scores:  # by one map; a fit of other rows has its own
                given = {"groups": rows.datasets, "answer_map": answer_map, "fits": fits}
                scored.append(Stack().fit(rows.answers, rows.labels, **given).score(answers[held]).p_consistent)
            else:
                scored.append(fit_with_options(rows, ChainOptions(), SharedWork(fits=fits)).score(votes.rows(held)))
        assert np.array_equal(*scored)


def test_pairs_are_fitted_once(panel):
    """Of n datasets there are n fits without one and n (n - 1) / 2 without two."""
    votes, _ = panel
    asked = []

    def run(function, tasks):
        asked.extend(tasks)
        return map(function, tasks)

    rows = labeled_rows(votes.votes, votes.labels, votes.datasets)
    fit_shared(*rows, targets=votes.dataset_names, members=["majority"], run=run)
    assert sorted(map(sorted, asked)) == sorted(
        [[i] for i in range(5)] + [[i, j] for i in range(5) for j in range(i + 1, 5)]
    )


def test_what_is_not_left_out_one_by_one_is_refused(panel):
    """A name that is no dataset, and datasets that share a group."""
    votes, _ = panel
    with pytest.raises(InputError, match=r"`targets` must be datasets .* Got 'z'"):
        fit_shared(*labeled_rows(votes.votes, votes.labels, votes.datasets), targets=["z"])
    many = simulate_votes(0)
    groups = np.arange(len(many.labels)) // 60
    with pytest.raises(InputError, match="left out one by one"):
        fit_shared(*labeled_rows(many.votes, many.labels, groups), targets=["0"])
