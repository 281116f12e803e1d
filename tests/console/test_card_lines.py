"""The recommendation below the card of a panel: what to keep, what to drop, and whether one judge would do."""

import re
from dataclasses import replace

import numpy as np
import pytest

from deep.console import card_lines, plain_tables
from deep.console._output import fit_to_terminal
from deep.evaluate import ONE_JUDGE_SENTENCE, OuterWorth, panel_card
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
    message = f"{ONE_JUDGE_SENTENCE.format(card.worth.best_judge)} The best single judge"
    assert sum(line.startswith(message) for line in lines_of(card, one_judge=True)) == 1
    assert not [line for line in lines_of(card, one_judge=False) if "than one judge" in line]


def test_prose_has_short_names(card):
    """The hash of a version where it is all that tells two judges apart; no minus before a zero."""
    hashed = [replace(one, judge=f"{one.judge}@0123456{at}") for at, one in enumerate(card.judges)]
    best, first = (f"{name}@0123456{at}" for at, name in enumerate(("fair", "good")))
    worth = replace(card.worth, best_judge=best, keep=(best, first), drop=(hashed[2].judge,))
    tiny = replace(hashed[0], others=replace(hashed[0].others, error_correlation=-0.001, adds=-0.00001))
    named = replace(card, judges=[tiny, *hashed[1:]], drop_first=first, worth=worth)
    lines = list(card_lines(named, {}))
    assert not [line for line in lines if "@" in line]
    assert "Without good the panel has more effective votes." in lines
    assert not [line for line in lines if re.search(r"-0\.0+\b", line.split("90 %")[0])]


def test_lines_end_between_a_number_and_no_unit(monkeypatch):
    """A percent sign stays with its number."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "39")
    assert fit_to_terminal("The share is said with an interval, 90 % of it.").split("\n") == [
        "The share is said with an interval,",
        "90 % of it.",
    ]


def test_what_to_keep(card):
    """By name, with the change and its interval on data that had no part in the choice, and the dollars saved."""
    outer = OuterWorth(3, 0.5, 0.75, 0.001, (-0.004, 0.006), -0.003, (-0.01, 0.004), 0.01, (-0.02, 0.04))
    priced = replace(card, judges=[replace(one, others=replace(one.others, cost_per_1000=3.1)) for one in card.judges])
    lines = lines_of(priced, keep=("fair", "good"), drop=("coin",), outer=outer)
    assert lines[0] == "Keep fair, good: $3.10 less per 1,000 items."
    assert [line for line in lines if line.startswith(("Keep", "Judges", "That is", "All 3"))] == [
        "Keep fair, good: $3.10 less per 1,000 items.",
        "Judges kept by this rule, on held-out parts: log loss +0.001 (90 % interval -0.004 to +0.006), "
        "balanced accuracy -0.3 points (-1.0 to +0.4).",
        "All 3, with `deep fit` and each of 3 parts held out: balanced accuracy 75.0, log loss 0.500.",
    ]
    free = replace(card, judges=[replace(one, others=replace(one.others, cost_per_1000=0.0)) for one in card.judges])
    assert lines_of(free, keep=("fair", "good"), drop=("coin",), outer=outer)[0] == "Keep fair, good."
    worse = replace(outer, loss_increase=0.049, increase_ci=(0.001, 0.096))
    assert "That is worse" not in "".join(lines)
    choice = lines_of(card, keep=("fair", "good"), drop=("coin",), outer=worse)[1]
    assert choice.endswith(" All judges together do better, beyond chance. Keep all until more labels show otherwise.")
    lines = lines_of(card, keep=("fair", "good", "coin"), drop=(), outer=outer)
    assert next(line for line in lines if line.startswith("Keep")) == "Keep fair, good, coin."


def test_the_price_beyond_a_free_judge_is_told(card):
    """A best judge that costs nothing has a price, which is not one that is unknown."""
    cost = {card.worth.best_judge: 0.0}
    judges = [replace(one, others=replace(one.others, cost_per_1000=cost.get(one.judge, 2.0))) for one in card.judges]
    lines = "\n".join(lines_of(replace(card, judges=judges, cost_per_1000=4.0)))
    assert " for $4.00 more per 1,000 items." in lines
    assert " more per 1,000 items" not in "\n".join(lines_of(card))


def test_ids_are_whole():
    """A long name of a judge is cut, the id of an item never: it is what people look an item up by."""
    labels = (np.arange(60) % 2).astype(np.int8)
    votes = np.column_stack([labels, labels, 1 - labels]).astype(np.int8)
    votes[:2] = 1 - votes[:2]  # a judge that equals the label would be taken for it
    items = [f"{number:02d}-{'x' * 70}" for number in range(60)]
    judges = ["a", "b", "w" * 70]
    lines = "\n".join(card_lines(panel_card(VoteMatrix(votes, items, judges, ["d"] * 60, labels)), {}, full=True))
    assert re.search(rf"\b\d\d-{'x' * 70} ", lines)
    assert "w" * 41 not in lines.split("Disagreements of each judge")[1]


def test_similar_errors_are_a_line_a_pair(card):
    """Each short; those of unrelated errors are not named."""
    k = len(card.judges)
    correlation = np.array([[1.0, 0.9, -0.1], [0.9, 1.0, 0.2], [-0.1, 0.2, 1.0]])
    lines = lines_of(replace(card, error_correlation=correlation, joint_errors=np.full((k, k), 12)))
    assert [line for line in lines if "imilar errors" in line] == [
        "Similar errors: good and fair (correlation 0.90, 12 joint errors).",
        "Similar errors: coin and good (correlation 0.20, 12 joint errors).",
    ]


def test_nothing_is_kept_of_coins():
    """Judges that no label shows to be better than a coin: that is said, and none is kept, dropped or enough."""
    rng = np.random.default_rng(1)
    votes = rng.integers(0, 2, (60, 2)).astype(np.int8)
    items, labels = [str(number) for number in range(60)], (np.arange(60) % 2).astype(np.int8)
    lines = list(card_lines(panel_card(VoteMatrix(votes, items, ["a", "b"], ["d"] * 60, labels)), {}))
    assert lines[0].startswith("No judge is clearly better than a coin on these labels (best balanced accuracy: ")
    assert not [
        line for line in lines if re.search(r"^Keep|^With |than one judge|independent ones| (keep|drop) ", line)
    ]


def test_a_table_that_is_too_wide_is_cut_between_columns(monkeypatch):
    """What names the rows stands in each part, and a column more where it just fits."""
    table = "| judge | F1 | recall |\n| --- | --- | --- |\n| strict | 0.81 | 0.70 |"
    monkeypatch.setenv("COLUMNS", "19")
    assert list(plain_tables(table)) == ["judge     F1", "strict  0.81", "", "judge   recall", "strict    0.70"]
    monkeypatch.setenv("COLUMNS", "20")
    assert list(plain_tables(table)) == ["judge     F1  recall", "strict  0.81    0.70"]
