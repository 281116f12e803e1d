"""What a panel is worth: duplicates and coins go, what helps stays."""

import numpy as np
import pytest

from deep.calibration import balanced_accuracy, log_loss
from deep.evaluate import _contribution, hold_out, outer_worth, panel_worth
from deep.exceptions import InputError
from deep.model import RECIPES, fit, out_of_fold, training_set
from deep.records import VoteMatrix


def votes_of(skills, *, n=400, datasets=6, seed=0, copy=None):
    """Return votes of independent judges of given accuracy on datasets that are alike; `copy` repeats a judge."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n * datasets)
    right = rng.random((len(y), len(skills))) < skills
    votes = np.where(right, y[:, None], 1 - y[:, None])
    if copy is not None:
        votes = np.column_stack([votes, votes[:, copy]])
    names = [f"judge{i}" for i in range(votes.shape[1])]
    return VoteMatrix(votes, np.arange(len(y)), names, np.repeat([f"d{i}" for i in range(datasets)], n), y)


def test_a_coin_and_a_copy_are_dropped():
    """Of three good judges, a coin and a copy of the first, the three stay (the copy may stand for the first)."""
    report = panel_worth(votes_of([0.8, 0.75, 0.75, 0.5], copy=0))
    assert set(report.keep) in ({"judge0", "judge1", "judge2"}, {"judge4", "judge1", "judge2"})
    assert "judge3" in report.drop
    assert not report.one_judge
    assert report.gain > 0.02
    assert report.best_judge in ("judge0", "judge4")


def test_one_judge_does_where_the_others_are_coins():
    """A panel of one good judge and coins is not better than that judge."""
    report = panel_worth(votes_of([0.8, 0.5, 0.5], seed=1))
    assert report.one_judge
    assert report.keep == ("judge0",)
    assert report.best_judge == "judge0"


def test_value_of_a_needed_judge_is_above_zero():
    """Dropping a good independent judge raises log loss beyond chance; dropping a coin does not."""
    report = panel_worth(votes_of([0.8, 0.8, 0.5], seed=2))
    assert report.value["judge0"][1] > 0
    assert report.value["judge2"][1] <= 0 or report.value["judge2"][0] < 0.001


def test_steps_go_from_all_to_one():
    """Each step has one judge less, the loss is measured against the whole panel."""
    report = panel_worth(votes_of([0.8, 0.7, 0.6, 0.6], seed=3))
    assert [len(panel.judges) for panel in report.steps] == [4, 3, 2, 1]
    assert report.steps[0].loss_increase == 0
    for before, after in zip(report.steps, report.steps[1:], strict=False):
        assert set(before.judges) - set(after.judges) == {after.dropped}
        assert after.loss_increase == pytest.approx(after.log_loss - report.steps[0].log_loss)


def test_too_few_datasets():
    """Three datasets at least, or there is nothing to take an interval over."""
    with pytest.raises(InputError, match="at least 2 voters and 3 inner folds"):
        panel_worth(votes_of([0.8, 0.7, 0.6], datasets=2))


def test_panels_less_a_judge_are_those_fitted_from_nothing():
    """They set out from the whole panel's fits, and come to where a fit of their own comes to."""
    votes = votes_of([0.8, 0.7, 0.6, 0.55], n=60, seed=4)
    training = training_set(votes, RECIPES["deep"])
    report = panel_worth(votes)
    for columns, result in ((range(4), 0), *((np.delete(range(4), j), j) for j in range(4))):
        own = training.select(list(columns))
        p = out_of_fold("LogisticRegression", own)
        counts = own.cells.counts / own.cells.counts.sum(axis=0)
        losses = -(counts[..., 1] * np.log(p) + counts[..., 0] * np.log1p(-p)).sum(axis=0) / 2
        if len(list(columns)) == 4:
            whole = losses
            assert report.steps[0].log_loss == pytest.approx(losses.mean(), abs=1e-8)
        else:
            rise = report.value[f"judge{result}"][0]
            assert rise == pytest.approx((losses - whole).mean(), abs=1e-8)


def test_judges_are_chosen_without_the_data_that_they_are_measured_on(monkeypatch):
    """On each dataset held out, the choice and the fit see the others alone; all judges are as `fit` makes them."""
    votes, seen = votes_of([0.8, 0.75, 0.7, 0.5], n=150, datasets=4, seed=5), []
    chosen = _contribution.chosen_judges

    def watched(rows, random_state):
        seen.append(rows.dataset_names)
        return chosen(rows, random_state)

    monkeypatch.setattr(_contribution, "chosen_judges", watched)
    result = outer_worth(votes)
    assert [set(votes.dataset_names) - set(names) for names in seen] == [{name} for name in votes.dataset_names]
    losses, accuracies = [], []
    for name in votes.dataset_names:
        split = hold_out(votes, name)
        scores = fit(split.train).scores_of(split.test)
        losses.append(log_loss(split.test.labels, scores.p_consistent))
        accuracies.append(balanced_accuracy(split.test.labels, scores.decisions))
    assert (result.parts, result.log_loss) == (4, pytest.approx(np.mean(losses)))
    assert result.balanced_accuracy == pytest.approx(np.mean(accuracies))
    assert result.increase_ci[0] <= result.loss_increase <= result.increase_ci[1]
    assert result.gain_ci[0] <= result.gain <= result.gain_ci[1]


def test_many_datasets_are_held_out_in_groups(monkeypatch):
    """Fourteen in six: each once, scored as a dataset of its own, by fits that saw none of its group."""
    votes, seen = votes_of([0.8, 0.75, 0.6], n=40, datasets=14, seed=8), []
    monkeypatch.setattr(_contribution, "fit", lambda rows: seen.append(set(rows.dataset_names)) or fit(rows))
    steps = []
    result = outer_worth(votes, step=lambda: steps.append(1))
    names = votes.dataset_names
    groups = [{name for i, name in enumerate(names) if i % 6 == group} for group in range(6)]
    assert seen == [set(names) - group for group in groups]  # once: every judge is kept
    losses = [
        log_loss(part.labels, model.scores_of(part).p_consistent)
        for group in groups
        for model in [fit(votes.rows(~np.isin(votes.datasets, list(group))))]
        for part in (votes.rows(votes.datasets == name) for name in sorted(group))
    ]
    assert (result.parts, len(steps), result.log_loss) == (14, 14, pytest.approx(np.mean(losses)))


def test_the_judges_that_are_kept_are_fitted_without_the_others():
    """A coin is left out: the loss of the two kept is that of a fit of their votes alone, less that of all three."""
    votes, losses = votes_of([0.85, 0.8, 0.5], n=60, datasets=4), []
    for name in votes.dataset_names:
        train, test = hold_out(votes, name).train, votes.rows(votes.datasets == name)
        assert _contribution.chosen_judges(train) == ("judge0", "judge1")
        for judges in (3, 2):
            one, other = (
                part.with_columns(votes=part.votes[:, :judges], voter_names=part.voter_names[:judges])
                for part in (train, test)
            )
            losses.append(log_loss(test.labels, fit(one).scores_of(other).p_consistent))
    rises = np.diff(np.reshape(losses, (-1, 2)))
    assert np.abs(rises).min() > 1e-4
    assert outer_worth(votes).loss_increase == pytest.approx(rises.mean())


@pytest.mark.parametrize("datasets", [1, 2])
def test_few_datasets_are_measured_too(datasets):
    """One is cut into folds of rows, whole documents each; of two each is held out once."""
    result = outer_worth(votes_of([0.8, 0.75, 0.5], n=200, datasets=datasets, seed=6))
    assert result.parts == {1: 5, 2: 2}[datasets]
    assert result.balanced_accuracy > 0.7
