"""`deep score` on text: the judges that a model names are run, and their votes scored."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.asking import load_judge
from deep.features.lexical import LEXICAL
from deep.model import load
from deep.prompt_pool import PromptJudge, load_prompt
from tests.commands.model_case import QUICK, frame_of, refused, scored
from tests.deep_commands import fit, score, votes
from tests.fault_server import FaultServer
from tests.llm.calls import rows
from tests.llm.crash import write_examples
from tests.model.fitted import small_votes
from tests.prompt_pool.tiered_script import answer as tiered
from tests.scripted_llm import ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

PROMPTS = ["deep-strict-steps", "yes-no"]
NUMBERS = LEXICAL["numbers"]().voter()


def model_of(folder, *names, n_voters=3):
    """Write a model whose voters have these names, and return its path."""
    renamed = {f"judge-{i}": name for i, name in enumerate(names)}
    frame_of(small_votes(n_voters=n_voters)).rename(columns=renamed).to_parquet(folder / "train.parquet")
    assert fit([str(folder / "train.parquet"), "--out", str(folder / "model.json"), *QUICK]) == 0
    return folder / "model.json"


@pytest.fixture
def asked(tmp_path):
    """Return a folder with a model of two prompts and a check, and ten examples."""
    model_of(tmp_path, *(PromptJudge(load_prompt(name)).voter("tiny") for name in PROMPTS), NUMBERS)
    write_examples(tmp_path / "news.csv", 10)
    return tmp_path


@pytest.fixture
def lexical(tmp_path):
    """Return the path of a model of three checks."""
    return model_of(tmp_path, NUMBERS, LEXICAL["negation"]().voter(), LEXICAL["coverage"]().voter())


def rows_of(path):
    """Return the lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_examples_are_judged_as_deep_votes_judges_them(asked, capsys):
    """Prompts through the ledger, checks at once; the same votes give the same P."""
    news, table = str(asked / "news.csv"), asked / "votes.parquet"
    with FaultServer() as server:
        words = ["--base-url", server.url, "--backoff", "0.02"]
        assert votes([news, "--prompt", *PROMPTS, "--llm", "tiny", "--out", str(table), *words]) == 0
        out = asked / "s.jsonl"
        assert score([str(asked / "model.json"), "--input", news, "--out", str(out), *words]) == 0
        first = server.count
        assert first == 40
        by_table = scored(asked, "--input", news, *words, "--ledger", asked / "s.jsonl.ledger.sqlite")
        assert server.count == first
    result, expected = rows_of(out), pd.read_parquet(table)
    for row, (_, message) in zip(result, expected.iterrows(), strict=True):
        assert (row["dataset"], row["item_id"], row["label"]) == (
            message["dataset"],
            message["item_id"],
            message["label"],
        )
        judged = {judge["judge"]: judge for judge in row["judges"]}
        for name in PROMPTS:
            voter = PromptJudge(load_prompt(name)).voter("tiny")
            assert judged[voter]["vote"] == message[voter]
        assert judged[NUMBERS]["reason"] == "abstained"
        assert judged[NUMBERS]["rationale"]
    model = load(asked / "model.json")
    matrix = [[-1 if j["vote"] is None else j["vote"] for j in row["judges"]] for row in result]
    assert [j["judge"] for j in result[0]["judges"]] == list(model.voter_names)
    assert np.array_equal([row["p_consistent"] for row in result], model.score(np.array(matrix), streamed=True))
    assert np.array_equal(by_table["p_consistent"], [row["p_consistent"] for row in result])


def test_what_deep_votes_asked_is_not_asked_again(tmp_path, capsys):
    """Samples and temperature are those of the vote file; with its ledger, text scores as its votes do, for nothing."""
    news, table = write_examples(tmp_path / "news.csv", 60), tmp_path / "votes.parquet"
    with FaultServer() as server:
        common = ["--base-url", server.url, "--ledger", str(tmp_path / "here.sqlite")]
        judges = ["--prompt", *PROMPTS, "--llm", "tiny", "--lexical", "coverage"]
        words = [str(news), *judges, "--samples", "2", "--temperature", "0.3", "--out", str(table), *common]
        assert votes(words) == 0
        fitted = ["--sizes", "all", *QUICK[2:]]
        assert fit([str(table), "--out", str(tmp_path / "model.json"), *fitted]) == 0
        bought = server.count
        result = scored(tmp_path, "--input", news, *common, "--prior", "0.5")
        assert server.count == bought
    model = load(tmp_path / "model.json")
    assert model.voters[0].details["parameters"]["temperature"] == 0.3
    check_same_uniform(result, scored(tmp_path, "--votes", table, out="v.parquet"))


def check_same_uniform(found, expected):
    """Check that texts and votes tell the same of each item, apart from the share that P is for."""
    same = ["dataset", "item_id", "label", "n_votes"]
    pd.testing.assert_frame_equal(found[same], expected[same])
    np.testing.assert_allclose(found["p_uniform"], expected["p_uniform"], rtol=0, atol=1e-9)


@pytest.mark.usefixtures("opened_ledgers")
def test_a_staged_judge_is_asked_too(tmp_path, capsys):
    """Its questions go through the ledger like those of a prompt, and the ledger is closed at the end."""
    judge = load_judge("tiered").voter("tiny")
    model = model_of(tmp_path, judge, NUMBERS, LEXICAL["negation"]().voter())
    capsys.readouterr()
    claim = "It rained for 3 days."
    with ScriptedLLM(lambda asked: tiered(asked.user, {claim: "faithful"})) as server:
        words = ["--source-text", "It rained for 3 days.", "--claim-text", claim, "--base-url", server.url]
        assert score([str(model), *words, "--json"]) == 0
        assert server.count >= 1
    message = json.loads(capsys.readouterr().out)
    assert [(row["judge"], row["vote"]) for row in message["judges"]][:2] == [(judge, 1), (NUMBERS, 1)]


def test_an_encoder_is_loaded_as_it_was(tmp_path, capsys):
    """From a folder, with the settings of the vote file; with other weights it is another judge."""
    pytest.importorskip("transformers")
    from deep.integrations.encoders import load_encoder
    from tests.features.tiny_encoders import save_classifier

    folder = save_classifier(tmp_path / "tiny-nli")
    news, table = write_examples(tmp_path / "news.csv", 60), tmp_path / "votes.parquet"
    judges = ["--encoder", str(folder), "--lexical", "coverage"]
    assert votes([str(news), *judges, "--out", str(table), "--max-failure-rate", "1"]) == 0
    fitted = ["--sizes", "all", "--max-failure-rate", "1", *QUICK[2:]]
    assert fit([str(table), "--out", str(tmp_path / "model.json"), *fitted]) == 0
    result = scored(tmp_path, "--input", news, "--encoder", folder, "--prior", "0.5")
    check_same_uniform(result, scored(tmp_path, "--votes", table, out="v.parquet"))
    assert load_encoder(folder).voter() in load(tmp_path / "model.json").voter_names
    save_classifier(folder, order=[2, 1, 0])
    capsys.readouterr()
    words = ("--input", news, "--out", tmp_path / "s.csv", "--encoder", folder)
    assert "of another version" in refused(capsys, score, tmp_path / "model.json", *words)


def test_a_pair_is_explained(lexical, tmp_path, capsys):
    """P, its interval, and of each judge its vote and why; from options and from files alike."""
    source, claim = "The firm sold 120 cars in May.", "The firm sold 130 cars in May."
    (tmp_path / "source.txt").write_text(source)
    (tmp_path / "claim.txt").write_text(claim)
    capsys.readouterr()
    assert score([str(lexical), "--source-text", source, "--claim-text", claim]) == 0
    message = capsys.readouterr().out
    assert message.startswith("P(consistent) = 0.")
    assert "90 % interval" in message
    prior = 100 * load(lexical).prior.estimate
    said_of = "the mean of the training datasets, carried over and not measured on these texts"
    assert f"P assumes that {prior:.1f} % of texts are consistent: {said_of}\n" in message
    assert f"{NUMBERS}: 0. The source lacks numbers of the claim: 130." in message
    files = ["--source", str(tmp_path / "source.txt"), "--claim", str(tmp_path / "claim.txt")]
    assert score([str(lexical), *files]) == 0
    assert capsys.readouterr().out == message


def test_the_scores_of_text_come_in_every_format(lexical, tmp_path):
    """With the columns that votes have."""
    write_examples(tmp_path / "news.csv", 30)
    words = ["--input", tmp_path / "news.csv"]
    table = scored(tmp_path, *words)
    as_csv = scored(tmp_path, *words, out="s.csv")
    assert list(table) == list(as_csv)
    assert np.array_equal(table["p_consistent"], as_csv["p_consistent"])
    assert table["item_id"].tolist() == [f"e{i}" for i in range(30)]


def test_a_judge_that_has_changed_is_refused(tmp_path, capsys):
    """A prompt of another version, a model other than the fitted one, a check of another version."""
    prompt = load_prompt("yes-no")
    stale = PromptJudge(prompt).voter("tiny").replace(prompt.hash[:8], "0" * 8)
    words = ["--source-text", "a", "--claim-text", "b", "--base-url", "http://127.0.0.1:9"]
    for names, more, what in (
        ([stale, NUMBERS], [], "of another version"),
        ([PromptJudge(prompt).voter("tiny"), NUMBERS], ["--llm", "large"], "of another model"),
        ([f"lexical-numbers@{'0' * 8}"], [], "of another version"),
    ):
        others = [LEXICAL[name]().voter() for name in ("negation", "coverage", "dates")]
        model = model_of(tmp_path, *[*names, *others][:3])
        before = sorted(tmp_path.iterdir())
        capsys.readouterr()
        assert what in refused(capsys, score, model, *words, *more)
        assert sorted(tmp_path.iterdir()) == before


def test_another_model_is_asked_where_that_is_allowed(asked):
    """Its votes stand for those of the fitted one."""
    with FaultServer() as server:
        words = ["--input", asked / "news.csv", "--llm", "large", "--allow-mismatch", "--base-url", server.url]
        result = scored(asked, *words)
        assert server.count == 20
    voters = rows(asked / "s.ledger.sqlite", "SELECT DISTINCT voter FROM items ORDER BY voter")
    assert voters == [(PromptJudge(load_prompt(name)).voter("large"),) for name in PROMPTS]
    assert len(result) == 10


def test_the_budget_stops_it_and_nothing_is_scored(asked, capsys):
    """Exit status 3, and the same command goes on."""
    prices = asked / "prices.toml"
    prices.write_text("[tiny]\ninput = 1000.0\noutput = 1000.0\n")
    words = ["--input", str(asked / "news.csv"), "--out", str(asked / "s.csv"), "--prices", str(prices)]
    with FaultServer() as server:
        words += ["--base-url", server.url, "--budget", "0.01"]
        assert score([str(asked / "model.json"), *words]) == 3
    assert "stopped: the budget is reached" in capsys.readouterr().err
    assert not (asked / "s.csv").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--source-text", "", "--claim-text", "b"], "`source` must be text. Got nothing"),
        (["--source-text", "a", "--claim-text", "b\0"], "`claim` must be text. Got a NUL byte"),
        (["--source", "none.txt", "--claim-text", "b"], "`source` must be a readable file"),
        (["--source", "latin.txt", "--claim-text", "b"], "`source` must be UTF-8. Got byte 1"),
        (["--source", "a.txt", "--source-text", "a", "--claim-text", "b"], "Got both"),
        (["--input", "news.csv"], "`out` must be given with `input`"),
        (["--input", "news.csv", "--out", "s.txt"], "`out` must end in .csv or .jsonl or .parquet"),
        (["--input", "none.csv", "--out", "s.csv"], "`examples` must be"),
        (["--input", "bad.csv", "--out", "s.csv"], "columns"),
        (["--input", "twice.csv", "--out", "s.csv"], "must be unique"),
        (["--source-text", "a", "--claim-text", "b", "--llm", "x", "y"], "must name one LLM"),
        (["--source-text", "a", "--claim-text", "b", "--allow-missing"], "`allow_missing` must be given with `votes`"),
    ],
)
def test_text_that_cannot_be_scored_is_refused(lexical, tmp_path, capsys, monkeypatch, words, reason):
    """One line, exit status 2, nothing written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "latin.txt").write_bytes("né".encode("latin-1"))
    (tmp_path / "bad.csv").write_text("text\nhello\n")
    (tmp_path / "twice.csv").write_text("source,claim,example_id\na,b,1\nc,d,1\n")
    write_examples(tmp_path / "news.csv", 3)
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    assert reason in refused(capsys, score, lexical, *words)
    assert sorted(tmp_path.iterdir()) == before


def test_votes_that_no_judge_here_gives_are_refused(tmp_path, capsys):
    """They can be scored as votes."""
    model = model_of(tmp_path, "human", NUMBERS, LEXICAL["negation"]().voter())
    capsys.readouterr()
    err = refused(capsys, score, model, "--source-text", "a", "--claim-text", "b")
    assert "the voter 'human'" in err
    assert "`deep score MODEL VOTES`" in err
