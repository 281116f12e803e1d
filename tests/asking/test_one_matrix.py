"""All judges of the four papers in one run of `deep ask`, and `deep loo` over what they say."""

import csv
import json

import pandas as pd
import pytest

from deep.datasets import read_judgments
from deep.prompt_pool import POOLS
from tests.deep_commands import loo
from tests.deep_commands import votes as main
from tests.fault_server import honest_reply
from tests.guests.experiments.probe_world import answer as probe
from tests.guests.experiments.probe_world import article, parts, sentences
from tests.prompt_pool.tiered_script import REPLY
from tests.prompt_pool.tiered_script import answer as tiered
from tests.scripted_llm import ScriptedLLM

N = 8

PROMPTS = [*POOLS["deep-9"], *POOLS["fect-json"]]


def claims():
    """Yield (dataset, number, source, claim, label): what an article says, or something near it."""
    for dataset in range(3):
        for i in range(N):
            message = sentences(article(i))[1 + dataset]
            wrong = message.replace("metres", "feet").replace("Ro", "Ra").replace("oil", "gas")
            claim = message if i % 2 else wrong
            yield f"set{dataset}", i, article(i), claim, int(claim in article(i))


VERDICTS = {claim: "faithful" if label else "invented" for *_, claim, label in claims()}


def script(asked):
    """Answer each judge in its own form: staged judges rightly, prompts by a noisy look at the words."""
    if REPLY.search(asked.user):
        return tiered(asked.user, VERDICTS)
    if "excerpt" in parts(asked) or asked.properties.keys() & {"claims", "evidence"}:
        return probe(asked)
    return honest_reply(asked.body)


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """Return a file of three datasets."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    path = tmp_path / "claims.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["dataset", "example_id", "source", "claim", "label"])
        table.writerows(claims())
    return path


def test_fifteen_judges_fill_one_matrix_that_loo_ensembles(examples, capsys, undrawn):
    """Nine DEEP prompts, four FECT variants, stepwise and tiered: a vote or a reason everywhere, then an ensemble."""
    out = examples.with_name("votes.parquet")
    judges = ["--pool", "deep-9", "fect-json", "--judge", "stepwise", "tiered", "--llm", "tiny"]
    with ScriptedLLM(script) as server:
        words = [str(examples), *judges, "--base-url", server.url, "--out", str(out), "--json"]
        assert main(words) == 0
        bought = server.count
        assert main(words) == 0
        assert server.count == bought
    capsys.readouterr()
    votes = pd.read_parquet(out)
    voters = [name for name in votes.columns if "@" in name]
    assert [name.split("@")[0].split(":")[0] for name in voters] == [*PROMPTS, "stepwise", "tiered"]
    assert len(votes) == 3 * N
    reasons = pd.read_parquet(out.with_name("votes.reasons.parquet"))
    assert votes[voters].isna().sum().sum() == len(reasons) == 0
    details = list(read_judgments(out, items=[("set0", "1")]))
    assert [detail.voter for detail in details] == voters
    claimed, result = details[-2].passages
    *_, source, message, _ = list(claims())[1]
    assert (claimed.text, claimed.verdict) == (message, "supported")
    assert (result.where, result.verdict, result.about) == ("source", "PASS", claimed.text)
    assert source[result.start : result.end] == result.text
    assert details[-1].passages[0].where == "claim"
    for voter in voters[-2:]:
        assert votes[voter].tolist() == votes["label"].tolist()
    folder = examples.with_name("loo")
    chain = [
        "--ensembler",
        "LogisticRegression",
        "--calibrator",
        "platt",
        "--sizes",
        "3",
        "--n-boot",
        "100",
        "--jobs",
        "1",
    ]
    assert loo(["--test", "set2", "--votes", str(out), "--out", str(folder), *chain]) == 0
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert (results["n_test"], len(results["voters"])) == (N, 15)
    assert results["recommended"]["balanced_accuracy"] == 1.0
