"""Voters: known values, and the majority on real crowds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep.ensembles import MajorityLabelVoter, WeightedMajorityVoting


@pytest.mark.parametrize(
    ("row", "share", "decision"),
    [
        ([1, 1, 0], 2 / 3, 1),
        ([0, 0, 1], 1 / 3, 0),
        ([1, 0, -1], 1 / 2, 1),
        ([-1, -1, 0], 0.0, 0),
        ([1, -1, -1], 1.0, 1),
        ([-1, -1, -1], 1 / 2, 1),
    ],
)
def test_majority_is_the_share_of_votes_cast(row: list[int], share: float, decision: int) -> None:
    """P is the share of 1 among votes cast, 0.5 where there are none, and a tie is decided as 1."""
    voter = MajorityLabelVoter().fit([[0, 0, 0]])
    assert voter.predict_proba([row])[0, 1] == pytest.approx(share)
    assert voter.predict([row])[0] == decision


@pytest.mark.parametrize(("file", "accuracy"), [("votes_RTE.csv", 0.8750), ("votes_bluebirds_duck.csv", 0.7593)])
def test_majority_on_real_crowds(data_home: Path, file: str, accuracy: float) -> None:
    """The accuracy of the majority, ties to 1, is the one reported for these crowds."""
    table = pd.read_csv(data_home / "crowd" / file)
    votes = table.drop(columns=["dataset", "item_id", "label"]).fillna(-1)
    decided = MajorityLabelVoter().fit(votes).predict(votes)
    assert np.mean(decided == table["label"]) == pytest.approx(accuracy, abs=5e-5)


def test_weighting_voters_helps_on_a_real_crowd(data_home: Path) -> None:
    """Learned on one half of the items, the weighted vote beats the majority on the other half."""
    table = pd.read_csv(data_home / "crowd" / "votes_RTE.csv").sample(frac=1, random_state=0)
    votes = table.drop(columns=["dataset", "item_id", "label"]).fillna(-1).to_numpy()
    y, half = table["label"].to_numpy(), len(table) // 2
    right = [
        np.mean(voter.fit(votes[:half], y[:half]).predict(votes[half:]) == y[half:])
        for voter in (WeightedMajorityVoting(), MajorityLabelVoter())
    ]
    assert right[0] > right[1] + 0.02


def weight_of(votes: list[int], labels: list[int], weights: list[float], smoothing: float = 1.0) -> float:
    """Return the weight that a single voter is given."""
    voter = WeightedMajorityVoting(smoothing=smoothing)
    return float(voter.fit(np.array(votes)[:, None], labels, weights).voter_weights_[0])


def test_weight_is_the_log_odds_of_balanced_accuracy() -> None:
    """Right on 4 of 5 and on 3 of 5: (10 * 0.7 + 1) / (10 + 2) = 2/3, whose odds are 2."""
    assert weight_of([1, 0, 0, 1], [1, 1, 0, 0], [4, 1, 3, 2]) == pytest.approx(np.log(2))
    assert weight_of([1, 0, 0, 1], [1, 1, 0, 0], [4, 1, 3, 2], smoothing=1e-9) == pytest.approx(np.log(7 / 3))


def test_only_votes_cast_count() -> None:
    """Three right votes on one class, none on the other: (1 + 1/2) / 2 = 3/4, (3 * 3/4 + 1) / 5 = 0.65."""
    assert weight_of([1, -1, -1], [1, 1, 0], [3, 9, 9]) == pytest.approx(np.log(0.65 / 0.35))


@pytest.mark.parametrize("votes", [[0, 0, 1, 1], [1, 1, 1, 1], [-1, -1, -1, -1]])
def test_voters_no_better_than_chance_are_not_heard(votes: list[int]) -> None:
    """Wrong, constant and silent voters have weight 0, whatever the share of the classes, and P is 0.5."""
    labels, weights = [1, 1, 0, 0], [4.0, 5.0, 1.0, 1.0]
    assert weight_of(votes, labels, weights) == 0
    voter = WeightedMajorityVoting().fit(np.array(votes)[:, None], labels, weights)
    assert voter.predict_proba([[1], [0], [-1]])[:, 1].tolist() == [0.5, 0.5, 0.5]
