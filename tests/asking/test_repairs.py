"""The repair turn: what cannot be read falls by what the server repairs, in the ledger, within the budget."""

import json
import os
import random
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from deep import Example, ask
from deep.asking import AskOptions
from deep.exceptions import InputError
from deep.llm import History
from deep.llm import _database as database
from tests.attack.odd_replies import completion, http
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer, is_repair
from tests.llm.calls import rows
from tests.llm.crash import write_examples

PROMPTS = ("yes-no", "deep-strict-steps")
N = 12
ASKED = N * len(PROMPTS)
UNREAD = "SELECT count(*) FROM items JOIN requests USING (key) WHERE reason = 'unparsable' AND voter"
FAULTS = {"no_verdict": 0.4, "no_repair": 0.4}


@pytest.fixture
def examples(tmp_path):
    """Return a file of examples."""
    return write_examples(tmp_path / "news.csv", N)


@pytest.fixture
def prices(tmp_path):
    """Return a file of prices at which a request costs cents."""
    path = tmp_path / "prices.toml"
    path.write_text("[tiny]\ninput = 10.0\noutput = 20.0\n")
    return path


def run(examples, server, *more, prompts=PROMPTS):
    """Run `deep ask` and return its status."""
    where = ["--llm", "tiny", "--base-url", server.url, "--endpoint-name", "x", "--max-failure-rate", "1"]
    words = [examples, "--prompt", *prompts, *where, "--backoff", "0.01", "--out", out_of(examples), *more]
    return main(list(map(str, words)))


def out_of(examples):
    """Return the path of the votes."""
    return examples.with_name("votes.parquet")


def ledger_of(examples):
    """Return the path of the ledger."""
    return examples.with_name("votes.ledger.sqlite")


def missing(examples):
    """Return the number of examples without a vote, over all prompts."""
    frame = pd.read_parquet(out_of(examples))
    return int(frame[[name for name in frame.columns if "@" in name]].isna().to_numpy().sum())


def count(ledger, query):
    """Return the number that a query counts."""
    return rows(ledger, query)[0][0]


def test_unparsable_falls_by_what_is_repaired(examples, capsys):
    """Every unparsable reply is asked about once more, and only these; ledger, summary and report agree."""
    with FaultServer(faults=FAULTS) as server:
        server.keep_bodies = True
        assert run(examples, server, "--json") == 0
        repairs = [body for body in server.bodies if is_repair(body)]
        assert run(examples, server) == 0
        assert server.count == len(server.bodies) == count(ledger_of(examples), "SELECT count(*) FROM attempts")
    unread = count(ledger_of(examples), f"{UNREAD} NOT LIKE '%#repair'")
    lost = count(ledger_of(examples), f"{UNREAD} LIKE '%#repair'")
    assert 0 < lost < unread == len(repairs) == server.count - ASKED
    assert all("It is hard to say anything about this." in body["messages"][-1]["content"] for body in repairs)
    assert missing(examples) == lost
    summary = json.loads(capsys.readouterr().out.partition("\n}\n")[0] + "}")
    assert sum(voter["unparsable"] for voter in summary["voters"]) == lost
    assert sum(voter["repairs"] for voter in summary["voters"]) == unread
    assert sum(voter["repaired"] for voter in summary["voters"]) == unread - lost
    assert sum(voter["votes"] for voter in summary["voters"]) == ASKED - lost
    assert main(["report", str(ledger_of(examples)), "--json", "--max-failure-rate", "0"]) == 0
    report = json.loads(capsys.readouterr().out)
    asked = {row["voter"].rpartition("#")[2]: 0 for row in report["rows"]}
    assert sum(row["asked"] for row in report["rows"] if row["voter"].endswith("#repair")) == unread
    assert {"repair"} < set(asked)
    assert sum(report["failing"].values()) == pytest.approx(lost / N)


@pytest.mark.parametrize("options", [["--no-repair"], ["--at-most-once"], ["--batch", "--poll", "0.02"]], ids=str)
def test_where_nothing_is_asked_twice(examples, options):
    """Without repair turns, at most once and in batches, an unparsable reply stays one."""
    with FaultServer(faults=FAULTS) as server:
        assert run(examples, server, *options) == 0
        assert server.count == ASKED
    assert missing(examples) == count(ledger_of(examples), UNREAD + " NOT NULL") > 0


@pytest.mark.parametrize("option", ["--batch", "--at-most-once"])
def test_a_repair_turn_that_is_forbidden_is_refused(examples, option, capsys):
    """Asked for by name it cannot be had there."""
    with FaultServer() as server:
        assert run(examples, server, "--repair", option) == 2
    name = option[2:].replace("-", "_")
    assert f"`repair` must not be given with `{name}`. Got both." in capsys.readouterr().err
    with pytest.raises(InputError, match="`repair` must not be given"):
        AskOptions(ledger="x.sqlite", repair=True, batch=True)


def test_a_ledger_without_repairs_is_read_as_it_is(examples, capsys):
    """No reply of a run without repair turns is asked about unless that is said; what is repaired then stays so."""
    with FaultServer(faults=FAULTS) as server:
        assert run(examples, server, "--no-repair") == 0
        before = pd.read_parquet(out_of(examples))
        assert run(examples, server) == 0
        assert server.count == ASKED
        pd.testing.assert_frame_equal(pd.read_parquet(out_of(examples)), before)
        capsys.readouterr()
        assert run(examples, server, "--repair", "--dry-run") == 0
        told = capsys.readouterr().out
        assert run(examples, server, "--repair") == 0
        repairs = server.count - ASKED
    assert f"at most {repairs} more repair turns" in told
    with closing(sqlite3.connect(ledger_of(examples))) as connection:
        connection.execute("UPDATE runs SET options = '{}'")
        connection.commit()
    capsys.readouterr()
    with FaultServer(script=["unauthorized"]) as nobody:
        assert run(examples, nobody, "--json") == 0
        assert nobody.count == 0
    voters = json.loads(capsys.readouterr().out)["voters"]
    assert sum(voter["repairs"] for voter in voters) == repairs
    assert missing(examples) == sum(voter["unparsable"] for voter in voters) < repairs
    with FaultServer() as nobody:
        assert run(examples, nobody, "--no-repair") == 0
        assert nobody.count == 0
    pd.testing.assert_frame_equal(pd.read_parquet(out_of(examples)), before)


def test_a_read_only_ledger_is_read_as_it_is(examples, monkeypatch, tmp_path):
    """Repair turns that are not in it are not missed, and those that are count."""
    folder = tmp_path / "ledger"
    folder.mkdir()
    refuse = lambda path, mode, access=os.access: folder not in (path, path.parent) and access(path, mode)  # noqa: E731
    with FaultServer(faults=FAULTS) as server:
        for options in (["--no-repair"], ["--repair"]):
            assert run(examples, server, *options, "--ledger", folder / "l.sqlite") == 0
            frame, asked = pd.read_parquet(out_of(examples)), server.count
            with monkeypatch.context() as patch:
                patch.setattr(database.os, "access", refuse)
                assert run(examples, server, "--ledger", folder / "l.sqlite") == 0
            assert server.count == asked
            pd.testing.assert_frame_equal(pd.read_parquet(out_of(examples)), frame)


def test_the_budget_holds(examples, prices):
    """A run of many starts stops at each budget, never passes it, and asks in the end what one start would."""
    spent = "SELECT coalesce(sum(coalesce(cost, worst_case)), 0) FROM attempts"
    stops = 0
    with FaultServer(faults=FAULTS) as server:
        for cents in range(2, 60, 6):
            status = run(examples, server, "--prices", prices, "--budget", cents / 100)
            assert count(ledger_of(examples), spent) <= cents / 100
            stops += status == 3
            if status == 0:
                break
        repairs = count(ledger_of(examples), f"{UNREAD} NOT LIKE '%#repair'")
        assert server.count == ASKED + repairs
    assert stops > 2
    assert missing(examples) < repairs


def test_a_dry_run_counts_repairs_at_their_worst(examples, prices, capsys):
    """As many as there are replies; dollars at most bound the bill where every reply needs one and has the longest."""
    long = "".join(random.Random(0).choices("\U0001f600\U0001f601\U0001f602", k=3000))  # which is no loop
    met = set()

    def cut_at_first(body):
        """Cut off every reply that is not to a second request with a longer limit."""
        asked = json.dumps(body["messages"])
        if asked in met:
            return None
        met.add(asked)
        usage = {"prompt_tokens": 10, "completion_tokens": body["max_tokens"]}
        return [http(completion(long, "length", usage=usage))]

    with FaultServer(reply=lambda _: long, billed=lambda _: 1536, raw=cut_at_first) as server:
        assert run(examples, server, "--prices", prices, "--dry-run", "--json", prompts=["deep-numbers"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["calls"], told["repairs_at_most"], told["longer_at_most"]) == (N, N, 2 * N)
        assert run(examples, server, "--prices", prices, "--no-repair", "--dry-run", "--json") == 0
        assert json.loads(capsys.readouterr().out)["repairs_at_most"] == 0
        assert run(examples, server, "--prices", prices, prompts=["deep-numbers"]) == 0
        assert server.count == 4 * N
    worst = count(ledger_of(examples), "SELECT sum(worst_case) FROM attempts")
    # The server ignores the choice of answers, which all but its first repair turn then leave out.
    assert worst <= told["dollars_at_most"] * (1 + 1e-12) <= 1.05 * worst  # two orders of one sum


def test_every_form_of_answer_is_repaired(examples):
    """Lines, objects, elements and scores, in a schema or free, from the first sample or a later one."""
    prompts, n = ["yes-no", "deep-numbers", "fect-3d-reasoned-json", "fect-basic-direct-xml", "five-stars"], 6
    examples = write_examples(examples, n)
    for i, options in enumerate((["--samples", "2"], ["--constrain", "none"], ["--constrain", "vllm"])):
        out = examples.with_name(f"votes{i}.parquet")
        with FaultServer(faults={"no_verdict": 0.5}) as server:
            assert run(examples, server, *options, "--out", out, prompts=prompts) == 0
            assert server.count > 5 * n * (2 if i == 0 else 1)
        frame = pd.read_parquet(out)
        reasons = pd.read_parquet(out.with_name(f"votes{i}.reasons.parquet"))["reason"]
        assert set(reasons) <= {"abstained"}  # two samples that disagree
        assert frame.iloc[:, 4:].notna().to_numpy().sum() == 5 * n - len(reasons)


def test_a_repaired_judgment_says_so(tmp_path):
    """The vote is the repair turn's; both replies are kept, tokens are summed, and the first one is the rationale."""
    example = Example("It rained all day.", "It rained.", "1", dataset="d")
    doubtful = "It may well be so. I am not quite sure."

    def reply(body):
        return "VERDICT: YES" if is_repair(body) else doubtful

    from deep.asking._plan import Plan, judgments_of_plan, planned_voters
    from deep.datasets import examples_from_dataset
    from deep.prompt_pool import PromptJudge, load_prompt

    ledger = str(tmp_path / "l.sqlite")
    judge = PromptJudge(load_prompt("yes-no"))
    with FaultServer(reply=reply) as server:
        result = ask([example], judge, llm="tiny", ledger=ledger, base_url=server.url, endpoint="x")
    assert result.votes.tolist() == [[1]]
    plan = Plan(
        examples=examples_from_dataset([{"source": example.source, "claim": example.claim}], name="d"),
        columns=planned_voters([judge], ["tiny"]),
        endpoint="x",
    )
    with History(ledger) as history:
        judgment = judgments_of_plan(plan, [example], history)[0][result.voter_names[0]]
    assert (judgment.vote, judgment.repaired, judgment.rationale) == (1, True, doubtful)
    assert json.loads(judgment.raw_text) == [doubtful, "VERDICT: YES"]
    outputs = rows(ledger, "SELECT output_tokens FROM attempts")
    assert judgment.tokens["output"] == sum(n for (n,) in outputs)
    assert len(outputs) == 2
