"""Log-probabilities of the two words are a soft vote: in batches, after a repair turn, from a ledger of before."""

import pandas as pd
import pytest

import deep
from deep.asking import AskOptions, TextScorer
from deep.datasets import as_examples
from deep.exceptions import InputError
from deep.model import ScoreOptions, score_file
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer
from tests.llm.crash import write_examples

N = 10


@pytest.fixture
def examples(tmp_path):
    """Return a file of examples."""
    return write_examples(tmp_path / "news.csv", N)


def run(examples, server, *more, prompts=("yes-no", "deep-numbers", "fect-basic-direct-json")):
    """Run `deep ask --soft`; return the votes and the soft votes."""
    out = examples.with_name("votes.parquet")
    where = ["--llm", "tiny", "--base-url", server.url, "--endpoint-name", "x", "--max-failure-rate", "1"]
    words = [examples, "--prompt", *prompts, *where, "--soft", "--backoff", "0.01", "--out", out, *more]
    assert main(list(map(str, words))) == 0
    return tuple(pd.read_parquet(path).iloc[:, 4:] for path in (out, out.with_name("votes.soft.parquet")))


def agree(votes, soft):
    """Tell whether each vote has the soft vote that the server gives it, and no other example has one."""
    expected = votes.replace({1: 0.9, 0: 0.1}).astype(float)
    pd.testing.assert_frame_equal(soft, expected, atol=0.01)
    return votes.notna().to_numpy().any()


@pytest.mark.parametrize("how", [(), ("--batch", "--poll", "0.02"), ("--constrain", "none"), ("--constrain", "vllm")])
def test_every_vote_has_one(examples, how):
    """In a batch as one by one, of a line as of an object."""
    with FaultServer(faults={"truncated": 0.2}) as server:
        assert agree(*run(examples, server, *how))


def test_a_repaired_vote_has_that_of_its_repair_turn(examples):
    """The first reply had no verdict to be sure of."""
    with FaultServer(faults={"no_verdict": 0.5, "no_repair": 0.3}) as server:
        votes, soft = run(examples, server)
        assert server.count > 3 * N
    assert agree(votes, soft)
    assert votes.isna().to_numpy().any()


def test_a_ledger_of_before_keeps_them(examples):
    """The answers were bought without repair turns or constraints, and are read again without a call."""
    with FaultServer(faults={"no_verdict": 0.3}) as server:
        first = run(examples, server, "--no-repair", "--constrain", "none")
        again = run(examples, server)
        assert server.count == 3 * N
    for before, after in zip(first, again, strict=True):
        pd.testing.assert_frame_equal(before, after)


def test_samples_have_their_mean(examples):
    """Two draws, each with its own probability."""
    with FaultServer() as server:
        votes, soft = run(examples, server, "--samples", "2", prompts=["yes-no"])
    means = soft.iloc[:, 0].round(2)
    assert set(means) <= {0.1, 0.5, 0.9}
    assert ((means == 0.5) == votes.iloc[:, 0].isna()).all()


def test_texts_are_asked_for_what_the_model_was_fitted_on(examples):
    """A model of soft votes asks log-probabilities of a text: the request of the fit, whose answer the ledger has."""
    ledger, prompts = examples.with_name("votes.ledger.sqlite"), ["yes-no", "deep-numbers"]
    with FaultServer() as server:
        votes, soft = run(examples, server, prompts=prompts)
        table = pd.read_parquet(examples.with_name("votes.parquet")).assign(dataset="news").drop(columns="label")
        matrix = deep.VoteMatrix.from_frame(table).with_answers(soft.to_numpy(), list(soft))
        model = deep.fit(matrix)
        ask = AskOptions(ledger=str(ledger), base_url=server.url)
        scorer = TextScorer(model, ask, endpoint="x")
        asked = server.count
        result = scorer.score_all((example.source, example.claim) for example in as_examples(examples))
        assert server.count == asked
    p = [scored.columns["p_consistent"] for scored in result]
    assert p == pytest.approx(model.score(matrix, streamed=True), abs=1e-12)
    table = examples.with_name("votes.parquet")
    with pytest.raises(InputError, match=r"Add `--scores .*votes\.soft\.parquet`"):
        score_file(model, [str(table)], examples.with_name("s.csv"), ScoreOptions())
    assert not votes.empty
