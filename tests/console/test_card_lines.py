"""The recommendation below the card of a panel: what to keep, what to drop, and whether one judge would do."""

from dataclasses import replace

import numpy as np
import pytest

from deep.console import card_lines
from deep.evaluate import panel_card
from deep.records import VoteMatrix


@pytest.fixture(scope="module")
def card():
    """Return the card of three judges, one of them a coin, on three datasets."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 240)
    flips = rng.random((240, 3)) < [0.2, 0.25, 0.5]
    votes = np.where(flips, 1 - labels[:, None], labels[:, None]).astype(np.int8)
    items = [str(number) for number in range(240)]
    datasets = [f"d{number % 3}" for number in range(240)]
    return panel_card(VoteMatrix(votes, items, ["fair", "good", "coin"], datasets, labels.astype(np.int8)))


def lines_of(card, **worth):
    """Return the lines of a card whose worth has other values."""
    return list(card_lines(replace(card, worth=replace(card.worth, **worth)), {}))


def test_one_judge_would_do_where_it_would(card):
    """Said where it is found, and not where the panel is better."""
    said = f"For decisions alone one judge, {card.worth.best_judge}, would do. As a probability the best single judge"
    assert sum(line.startswith(said) for line in lines_of(card, one_judge=True)) == 1
    assert not [line for line in lines_of(card, one_judge=False) if "would do" in line]


def test_what_to_keep_and_what_to_drop(card):
    """By name, each behind its own word."""
    lines = lines_of(card, keep=("fair", "good"), drop=("coin",))
    assert [line for line in lines if line.startswith(("Keep", "Drop: "))] == ["Keep: fair, good.", "Drop: coin."]
    lines = lines_of(card, keep=("fair", "good", "coin"), drop=())
    assert [line for line in lines if line.startswith(("Keep", "Drop: "))] == ["Keep: fair, good, coin.", "Drop: none."]
