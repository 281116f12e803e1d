"""Texts scored as they come, by one thread or many."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import deep
from deep import ask
from deep.asking import AskOptions, Finder, TextScorer
from deep.datasets import as_examples
from deep.exceptions import InputError, StoppedError
from deep.features import Rows
from deep.features.lexical import LEXICAL
from deep.model import load
from deep.prompt_pool import PromptJudge, load_prompt
from tests.fault_server import FaultServer
from tests.guests.integrations.case import model_of
from tests.llm.calls import KEY

ROOT = Path(__file__).parents[2]
SOURCE = "The firm sold 120 cars in May. It was a good month."
NUMBERS, NEGATION = LEXICAL["numbers"]().voter(), LEXICAL["negation"]().voter()
STRICT = PromptJudge(load_prompt("deep-strict-steps")).voter("tiny")


def test_a_pair_is_scored_as_deep_score_does(tmp_path):
    """The judges' votes and P at the training mean; from a file as from the model."""
    model = model_of(NUMBERS, NEGATION)
    model.save(tmp_path / "model.json")
    result = TextScorer(tmp_path / "model.json").score(SOURCE, "The firm sold 130 cars in May.")
    votes, loaded = ask([result.example], ["numbers", "negation"]), load(tmp_path / "model.json")
    assert result.columns["p_consistent"] == loaded.score(votes, streamed=True)[0]
    assert [judgment.vote for judgment in result.judgments.values()] == [0, -1]
    rows = Rows.from_arrays(loaded.select(votes))
    assert result.as_dict()["decision"] == int(loaded.scores_of(rows.votes, streamed=True).decisions[0]) == 0


@deep.judge(scale="1-5")
def shared_words(example):
    """Grade a claim by the share of its words that its source has; None for one without words of the source."""
    shared = {*example.source.lower().split()} & {*example.claim.lower().split()}
    return 1 + round(4 * len(shared) / len(example.claim.split())) if shared else None


@deep.judge
def is_short(example):
    """Vote for short claims."""
    return int(len(example.claim) < 50)


def test_grades_are_scored_as_grades():
    """A text's P is that of its row in a table: by the grade, not by the vote that it counts as."""
    judges = [shared_words, is_short, "numbers"]
    examples = as_examples(ROOT / "examples" / "claims.csv")
    votes = ask(examples, judges)
    model = deep.fit(votes)
    pairs = [(example.source, example.claim) for example in examples] + [("One two.", "Three.")]
    result = TextScorer(model, finder=Finder(judges=judges[:2])).score_all(pairs)
    p = [scored.columns["p_consistent"] for scored in result]
    assert p[:-1] == pytest.approx(model.score(votes, streamed=True), abs=1e-12)
    assert {scored.as_dict()["judges"][0]["score"] for scored in result} == {None, 1, 2, 3, 4, 5}
    grade = model.voter_names[0]
    by_grade = {scored.judgments[grade].score: scored for scored in result if scored.judgments[grade].vote == 1}
    assert len(by_grade) == len({scored.columns["p_consistent"] for scored in by_grade.values()}) == 3


def test_many_pairs_keep_their_order_and_repeats_are_judged_once():
    """A pair is known by its texts."""
    scorer = TextScorer(model_of(NUMBERS, NEGATION))
    assert not scorer.asks
    claims = ["It sold 120.", "It sold 130.", "It sold 120.", "It did not sell 120."]
    result = scorer.score_all((SOURCE, claim) for claim in claims)
    assert [scored.example.claim for scored in result] == claims
    assert result[0] is result[2]
    assert len({scored.example.example_id for scored in result}) == 3
    assert scorer.score_all([]) == []


@pytest.mark.parametrize(
    ("source", "claim", "message"),
    [
        ("", "a", r"^`source` must be text\. Got nothing\."),
        ("a", " \n", r"^`claim` must be text\. Got nothing\."),
        ("a\0", "a", r"^`source` must be text\. Got a NUL byte\."),
        (None, "a", r"^`source` must be text\. Got a NoneType\."),
    ],
)
def test_what_is_no_text_is_refused(source, claim, message):
    """Before any judge sees it."""
    with pytest.raises(InputError, match=message):
        TextScorer(model_of(NUMBERS, NEGATION)).score(source, claim)


def test_judges_that_ask_need_a_ledger():
    """Said when the scorer is made, not when it is first used."""
    with pytest.raises(InputError, match=r"^`ask` must be given with a model whose judges ask an LLM"):
        TextScorer(model_of(STRICT, NUMBERS))


def test_threads_share_one_ledger_and_pay_once(tmp_path, monkeypatch):
    """Twenty callers, five different pairs: five requests, and everyone has an answer."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer() as server:
        options = AskOptions(ledger=str(tmp_path / "ledger.sqlite"), base_url=server.url)
        scorer = TextScorer(model_of(STRICT, NUMBERS), options)
        assert scorer.asks
        with ThreadPoolExecutor(20) as pool:
            result = list(pool.map(lambda n: scorer.score(SOURCE, f"It sold {100 + n % 5} cars."), range(20)))
        assert server.count == 5
    assert [scored.example.claim for scored in result] == [f"It sold {100 + n % 5} cars." for n in range(20)]
    assert all(list(scored.judgments) == [STRICT, NUMBERS] for scored in result)


def test_a_spent_budget_stops_every_caller(tmp_path, monkeypatch):
    """Nobody gets a score made of what was not asked, nor waits for ever."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 10.0\noutput = 10.0\n")
    with FaultServer() as server:
        ledger = str(tmp_path / "ledger.sqlite")
        options = AskOptions(ledger=ledger, base_url=server.url, budget=0.0, prices=str(prices))
        scorer = TextScorer(model_of(STRICT, NUMBERS), options)
        for _ in range(2):
            with pytest.raises(StoppedError, match=r"^stopped: the budget is reached\. The answers so far"):
                scorer.score(SOURCE, "It sold 130 cars.")
