"""Pairs: both orders to one vote, biases as counted by hand, a planted order bias taken out, systems in order."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from deep import VoteMatrix, fit, read_votes
from deep.datasets import read_examples
from deep.exceptions import InputError
from deep.integrations.pairs import AnswerPair, both_orders, join_orders, order_cards, rank_systems, read_pairs
from tests.deep_commands import data, panel


def asked(votes, pairs):
    """Return answers to pairs in both orders, as `deep ask` writes them: a row of `votes` a pair, ab then ba."""
    examples = list(both_orders(pairs))
    flat = [[vote] for pair in votes for vote in pair]
    ids, names = [one.example_id for one in examples], [one.dataset for one in examples]
    labels = [-1 if one.label is None else one.label for one in examples]
    return VoteMatrix(flat, ids, ["judge"], names, labels)


def pairs_of(labels, lengths=None):
    """Return pairs with labels, whose texts have these lengths."""
    lengths = lengths or [(5, 5)] * len(labels)
    return [
        AnswerPair(f"p{i}", "d", "a" * a, "b" * b, label=y)
        for i, (y, (a, b)) in enumerate(zip(labels, lengths, strict=True))
    ]


def test_a_contradiction_and_a_tie_are_no_vote():
    """Each with its reason; a vote is about A, in whichever place A stood, and so is a label."""
    # What stands first is better (1): A and A, B and B, first and first, second and second, a tie in one order.
    answers = [(1, 0), (0, 1), (1, 1), (0, 0), (-1, 1)]
    joined = join_orders(asked(answers, pairs_of([1, 0, 1, 0, None])))
    assert joined.votes.votes.T.tolist() == [[1, 0, -1, -1, -1]]
    assert joined.votes.labels.tolist() == [1, 0, 1, 0, -1]
    message = [judgments["judge"] for _, judgments in joined.judgments()]
    assert [one.reason for one in message] == [None, None, "abstained", "abstained", "abstained"]
    assert message[2].rationale == "A contradiction: the answer shown first wins in both orders."
    assert message[3].rationale == "A contradiction: the answer shown second wins in both orders."
    assert message[4].rationale == "A tie, or no answer, in one order."


def test_biases_are_those_counted_by_hand():
    """Position: half the share of contradictions for the first, less for the second. Length: against the labels'."""
    answers = [(1, 0), (0, 1), (1, 1), (1, 1), (0, 0), (1, 0), (-1, 1)]
    lengths = [(9, 5), (9, 5), (5, 5), (5, 5), (5, 5), (9, 5), (9, 5)]
    pairs = pairs_of([1, 1, 1, 0, 0, 0, 1], lengths)
    (card,) = order_cards(join_orders(asked(answers, pairs)), pairs)
    assert (card.n, card.agreement) == (6, 3 / 6)
    # Seven of the twelve answers of pairs that were answered twice name what stands first: 1, 1, 2, 2, 0, 1.
    assert card.position_bias == pytest.approx(7 / 12 - 1 / 2)
    # Of the joined votes on texts of two lengths: A, B, A for A the longer; labels A, A, B.
    assert card.length_bias == pytest.approx(2 / 3 - 2 / 3)
    assert card.accuracy == pytest.approx(1 / 3)
    assert card.position_interval[0] < card.position_bias < card.position_interval[1]
    # Agresti and Min: (2 - 1) / 8, and 1.645 standard errors of sqrt(2 + 1 + 1 - 1 / 8) / 8; half of both.
    margin = 1.6448536 * math.sqrt(4 - 1 / 8) / 8 / 2
    assert card.position_interval == pytest.approx((1 / 16 - margin, 1 / 16 + margin))


def test_an_interval_covers_a_planted_bias():
    """In nine of ten draws: 400 draws of 60 pairs, by a judge who goes by the place in one pair of three."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        a_better, by_place = rng.integers(0, 2, 60), rng.random(60) < 1 / 3
        answers = [(1, 1) if place else (int(y), int(1 - y)) for y, place in zip(a_better, by_place, strict=True)]
        (card,) = order_cards(join_orders(asked(answers, pairs_of([None] * 60))))
        covered += card.position_interval[0] <= 1 / 6 <= card.position_interval[1]
    assert 0.87 <= covered / 400 <= 0.96


def simulated(rng, n, dataset, bias, k=4):
    """Return pairs and answers of judges who name what stands first with this much more chance than they should."""
    y = rng.integers(0, 2, n)
    pairs = [AnswerPair(f"{dataset}{i}", dataset, "x", "y", label=int(label)) for i, label in enumerate(y)]
    skill = 1.5 * (2 * y - 1)[:, None] + rng.normal(0, 1, (n, k))
    ab, ba = ((rng.random((n, k)) < 1 / (1 + np.exp(-(sign * skill + bias)))).astype(int) for sign in (1, -1))
    rows = np.stack([ab, ba], axis=1).reshape(2 * n, k)
    examples = list(both_orders(pairs))
    votes = VoteMatrix(
        rows,
        [one.example_id for one in examples],
        [f"j{i}" for i in range(k)],
        [dataset] * 2 * n,
        [one.label for one in examples],
    )
    return join_orders(votes)


def stacked(parts, order=None):
    """Return the joined votes of several parts below each other, or those in one order of each."""
    tables = [one.votes if order is None else one.alone(order[i]) for i, one in enumerate(parts)]
    return VoteMatrix(
        np.vstack([one.votes for one in tables]),
        np.concatenate([one.item_ids for one in tables]),
        tables[0].voter_names,
        np.concatenate([one.datasets for one in tables]),
        np.concatenate([one.labels for one in tables]),
    )


def test_a_planted_order_bias_does_not_reach_p():
    """Simulated: a dataset that was asked in the other order than those learned from is scored as if it were not."""
    rng = np.random.default_rng(1)
    parts = [simulated(rng, 400, name, bias=1.5) for name in ("a", "b", "c", "d")]
    y = parts[3].votes.labels
    error = {}
    for name, order in {"one order": ("ab", "ab", "ab", "ba"), "both": None}.items():
        votes = stacked(parts, order)
        train, test = (votes.rows(keep) for keep in (votes.datasets != "d", votes.datasets == "d"))
        p = fit(train).scores_of(test).p_consistent
        error[name] = abs(p.mean() - y.mean())
    assert error["both"] < 0.04
    assert error["one order"] > 2 * error["both"]


def test_systems_are_ranked_by_p():
    """By strengths that are planted: the intervals cover them, and a question's pairs are drawn together."""
    rng, strength = np.random.default_rng(2), {"best": 1.0, "mid": 0.0, "worst": -1.0}
    names, pairs, p = [*strength], [], {}
    for i in range(600):
        one, other = rng.choice(3, 2, replace=False)
        chance = 1 / (1 + math.exp(strength[names[other]] - strength[names[one]]))
        pairs.append(AnswerPair(f"p{i}", "d", "x", "y", document_id=f"q{i // 3}", systems=(names[one], names[other])))
        p["d", f"p{i}"] = 0.9 if rng.random() < chance else 0.1
    result = rank_systems(pairs, p)
    assert [row.system for row in result] == ["best", "mid", "worst"]
    assert result[0].ranks == (1, 1)
    assert sum(row.n for row in result) == 1200
    # P of .9 and .1 stand for wins that are right in nine of ten: the strengths shrink, and their order stays.
    assert result[1].interval[0] < 0.5 < result[1].interval[1]
    assert result[0].interval[0] > 0.6
    with pytest.raises(InputError, match=r"^`pairs` must have the columns system_a and system_b"):
        rank_systems(pairs_of([1, 0]), {})


def test_ranking_is_the_penalised_maximum_of_the_likelihood():
    """As its paper writes it, found by an optimiser of scipy, on decided pairs."""
    rng, names = np.random.default_rng(3), ["a", "b", "c", "d"]
    wins = [tuple(rng.choice(4, 2, replace=False)) for _ in range(300)]
    wins = [(i, j) if rng.random() < 1 / (1 + math.exp(i - j)) else (j, i) for i, j in wins]
    pairs = [AnswerPair(f"p{n}", "d", "x", "y", systems=(names[i], names[j])) for n, (i, j) in enumerate(wins)]
    result = {
        row.system: math.log(row.chance / (1 - row.chance))
        for row in rank_systems(pairs, {("d", one.item_id): 1.0 for one in pairs}, n_boot=2)
    }
    won, lost = np.array(wins).T

    def loss(strengths):
        return np.logaddexp(0, strengths[lost] - strengths[won]).sum() + 0.05 * (strengths**2).sum()

    expected = minimize(loss, np.zeros(4), tol=1e-10).x
    assert [result[name] for name in names] == pytest.approx(expected - expected.mean(), abs=1e-3)


def test_pairs_go_from_a_file_to_votes(tmp_path, capsys):
    """Two commands; the examples say what is asked, and the table of votes is one that every command takes."""
    rows = {
        "a": ["4", "x"],
        "b": ["5", "y"],
        "question": ["2 + 2?", "2 + 2?"],
        "label": ["a", "tie"],
        "item_id": ["q1", "q2"],
    }
    pd.DataFrame(rows).to_csv(tmp_path / "pairs.csv", index=False)
    out = tmp_path / "asked.csv"
    assert data(["pairs", str(tmp_path / "pairs.csv"), "--out", str(out)]) == 0
    message = capsys.readouterr().out
    assert "4 examples" in message
    assert "better.toml --llm NAME" in message
    first, second = list(read_examples(out))[:2]
    assert (first.example_id, first.label, second.label) == ("q1@ab", 1, 0)
    assert first.claim == "First answer:\n4\n\nSecond answer:\n5"
    assert (first.source, first.document_id) == ("2 + 2?", "2 + 2?")
    table = pd.DataFrame(
        [(one.dataset, one.example_id, one.label) for one in read_examples(out)],
        columns=["dataset", "item_id", "label"],
    )
    table["judge"] = [1, 0, 1, 1]
    table.to_csv(tmp_path / "answers.csv", index=False)
    votes = tmp_path / "votes.parquet"
    words = [str(tmp_path / "answers.csv"), "--pairs", str(tmp_path / "pairs.csv"), "--out", str(votes)]
    assert panel(["pairs", *words]) == 0
    assert "judge: +25.0 (" in capsys.readouterr().out
    assert panel(["pairs", words[0]]) == 0, "the texts of the pairs need not be at hand"
    assert "judge: +25.0 (" in capsys.readouterr().out
    result = read_votes([votes])
    assert (result.item_ids.tolist(), result.votes.tolist(), result.labels.tolist()) == (
        ["q1", "q2"],
        [[1], [-1]],
        [1, -1],
    )
    scores = pd.DataFrame({"dataset": "pairs", "item_id": ["q1", "q2"], "p_consistent": [0.9, 0.5], "n_votes": 1})
    scores.to_csv(tmp_path / "scores.csv", index=False)
    assert panel(["pairs", *words, "--rank", str(tmp_path / "scores.csv")]) == 2
    assert "must have the columns system_a and system_b" in capsys.readouterr().err


def test_what_are_no_pairs_is_refused(tmp_path):
    """In one line."""
    path = tmp_path / "pairs.csv"
    path.write_text("a,b,label\nx,,a\n")
    with pytest.raises(InputError, match=r"^`pairs` must have a text in the columns a and b\. Got none in row 1"):
        read_pairs(path)
    path.write_text("a,b,label\nx,y,maybe\n")
    with pytest.raises(InputError, match=r"^`label` must be a, b, 1, 0, tie or empty\. Got 'maybe'"):
        read_pairs(path)
    with pytest.raises(InputError, match=r"^`votes` must have items ending in @ab and @ba"):
        join_orders(VoteMatrix([[1]], ["x"], ["j"], ["d"], [1]))


@pytest.mark.slow
def test_both_orders_beat_one_on_llmbar(capsys, data_home):
    """Each group held out: the balanced accuracy of all sixty columns, and a log loss .01 below either order's."""
    assert panel(["pairs", str(data_home / "llmbar" / "votes.parquet"), "--held-out", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["held_out"]
    means = {kind: {name: np.mean(values) for name, values in rows.items()} for kind, rows in result.items()}
    assert means["both orders"]["balanced_accuracy"] > 0.869
    for order in ("ab", "ba"):
        assert means[f"order {order} alone"]["log_loss"] - means["both orders"]["log_loss"] >= 0.01
