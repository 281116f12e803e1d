"""Judges beside the LLMs that wrote what they judge: a favoured family is told, one that writes better is not."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.evaluate import OwnFamily, own_family_words, panel_card
from deep.evaluate._breakdowns import family_of_llm, own_family_vote_mask, without_own_family_votes
from deep.records import VoteMatrix
from tests.deep_commands import panel

JUDGES = ("strict@0a1b2c3d/openai/gpt-4o", "strict@0a1b2c3d/claude-3-5-sonnet", "dates@11112222")
WRITERS = ("gpt-4o-mini", "Meta-Llama-3.1-8B", "gpt-4-turbo", "Mistral-7B")


def written(rng, n=600, *, favour=0.0, better=0.0, labels=50):
    """Return votes on texts of four LLMs, two of the family of the first judge, which passes a share of its own."""
    writers = np.array(WRITERS, dtype=object)[np.arange(n) % 4]
    own = np.arange(n) % 2 == 0
    y = rng.random(n) < 0.55 + better * own
    votes = np.where(rng.random((n, 3)) < 0.2, ~y[:, None], y[:, None]).astype(np.int8)
    votes[own & (rng.random(n) < favour), 0] = 1
    known = np.isin(np.arange(n), rng.permutation(n)[:labels])
    table = VoteMatrix(votes, [f"i{k}" for k in range(n)], JUDGES, ["mine"] * n, np.where(known, y, -1))
    return table, writers


def bias(table, writers):
    """Return how the first judge treats its own family."""
    (result,) = panel_card(table, n_boot=1, limit=0, worth=False, writers=writers).own_family
    return result


@pytest.mark.parametrize(
    ("name", "family"),
    [("openai/GPT-3.5-Turbo", "gpt"), ("o1-mini", "gpt"), ("Mixtral-8x7B", "mistral"), ("Llama3-70B", "llama"),
     ("google/gemini-1.5-flash-001", "gemini"), ("falcon-7b", "falcon"), ("phoenix_1", "phoenix"), ("42", "42")],
)  # fmt: skip
def test_families(name, family):
    """By a word anywhere in the name, else by its first word."""
    assert family_of_llm(name) == family


def test_a_favoured_family_is_found_with_fifty_labels():
    """In 8 of 10 draws where two of three bad texts of it pass; where nothing is favoured in one of ten at most."""
    rng = np.random.default_rng(0)
    result = [bias(*written(rng, favour=0.7)) for _ in range(30)]
    assert np.mean([one.bias_ci[0] > 0 for one in result]) >= 0.8
    assert np.mean([0.15 < one.bias < 0.4 for one in result]) >= 0.8
    alike = [bias(*written(rng, better=0.2)) for _ in range(40)]
    assert np.mean([one.bias_ci[0] > 0 or one.bias_ci[1] < 0 for one in alike]) <= 0.1
    assert result[0].n_labels == 50
    assert (result[0].family, result[0].n_own, result[0].n_others) == ("gpt", 300, 300)
    (says,) = own_family_words(result[:1])
    assert says.startswith("strict@0a1b2c3d/openai/gpt-4o favours texts of the same LLM family, gpt: +")
    assert list(own_family_words(alike[:1])) == ["None of 1 judges clearly favours texts by LLMs of the same family."]


def test_without_labels_no_bias_is_told():
    """But how often the judge says 1 of its own and of others is."""
    result = bias(*written(np.random.default_rng(1), favour=0.7, labels=0))
    assert np.isnan(result.bias)
    assert result.says_own > result.says_others + 0.1
    assert list(own_family_words([result])) == [
        "Testing whether judges favour their own LLM family needs 5 labels of each side."
    ]
    assert list(own_family_words([])) == []


def test_own_votes_are_left_out():
    """Those of the judge on its family's texts, and no others."""
    table, writers = written(np.random.default_rng(2), n=40)
    own = own_family_vote_mask(table, writers)
    assert own.sum(axis=0).tolist() == [20, 0, 0]
    rest = without_own_family_votes(table, writers)
    assert (rest.votes[own] == -1).all()
    assert (rest.votes[~own] == table.votes[~own]).all()
    assert panel_card(rest, n_boot=1, limit=0, worth=False, writers=writers).own_family == ()


@pytest.fixture
def path(tmp_path):
    """Return a table of votes with the column generator."""
    table, writers = written(np.random.default_rng(3), n=200, favour=0.9, labels=200)
    frame = pd.DataFrame({"dataset": "mine", "item_id": table.item_ids, "label": table.labels, "generator": writers})
    frame[list(JUDGES)] = table.votes
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv"


def test_the_command_tells_and_leaves_out(path, capsys):
    """The column is no judge; the JSON has every figure; `--exclude-own` takes the votes away."""
    words = [str(path), "--no-worth", "--n-boot", "1"]
    assert panel(words) == 0
    out = capsys.readouterr().out
    assert "favours texts of the same LLM family, gpt: +" in out
    assert panel([*words, "--full"]) == 0
    out = capsys.readouterr().out
    assert "Judge by writer: % of votes for 1 (less the share of label 1, points)" in out
    assert "Meta-Llama-3.1-8B" in out
    assert panel([*words, "--json", "--exclude-own"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["judges"] == list(JUDGES)
    assert result["own_family"] == []
    assert [card["itself"]["coverage"] for card in result["cards"]] == [0.5, 1.0, 1.0]
    pd.read_csv(path).drop(columns="generator").to_csv(path, index=False)
    assert panel([*words, "--exclude-own"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: `exclude_own` must be given with votes that have a column generator."
    )


def test_figures_are_json():
    """An interval that is not known is null."""
    row = OwnFamily(
        judge="j", family="gpt", n_own=3, n_others=4, n_labels=0, says_own=1.0, says_others=0.5,
        bias=float("nan"), bias_ci=(float("nan"), float("nan")),
    ).as_dict()  # fmt: skip
    assert (row["bias"], row["bias_ci"], row["n_own"]) == (None, None, 3)
