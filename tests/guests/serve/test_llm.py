"""Judges that ask an LLM behind HTTP: one ledger, its limits, its budget; and how the server ends."""

import contextlib
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import deep
from deep.asking import AskOptions
from deep.integrations.serve import CheckOptions, create_app, serving
from tests.fault_server import FaultServer
from tests.guests.serve.serving_case import PAIR, ask, code_of, command

N_CALLS = 2
"""Prompts of the model, each one call a pair."""


def options_for(server, tmp_path, **more):
    """Return options that ask a server on loopback."""
    asked = AskOptions(ledger=str(tmp_path / "served.sqlite"), base_url=server.url, backoff=0.01, **more)
    return CheckOptions(ask=asked, endpoint="local")


def pairs(n):
    """Return pairs that differ."""
    return [{"source": PAIR["source"], "claim": f"The river rose by {number} cm."} for number in range(n)]


def test_the_same_pair_costs_once(llm_file, tmp_path):
    """Asked twice at once, and again later, and by another server on the same ledger."""
    model = deep.load(llm_file)
    with FaultServer(latency=0.2) as server:
        options = options_for(server, tmp_path)
        with serving(create_app(model, options)) as address, ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: ask(address, body=PAIR), range(8)))
            answers.append(ask(address, body=PAIR))
        with serving(create_app(model, options)) as address:
            answers.append(ask(address, body=PAIR))
    assert {status for status, _, _ in answers} == {200}
    assert all(body == answers[0][1] for _, body, _ in answers)
    assert server.count == N_CALLS
    assert [judge["vote"] for judge in answers[0][1]["judges"]].count(None) == 0


def test_the_ledger_limits_the_calls_in_flight(llm_file, tmp_path):
    """Not the web server: a list of pairs is asked as far as `concurrency` goes."""
    with FaultServer(latency=0.05) as server:
        options = options_for(server, tmp_path, concurrency="3")
        with serving(create_app(deep.load(llm_file), options)) as address:
            status, body, _ = ask(address, body=pairs(12))
    assert status == 200
    assert len(body["results"]) == 12
    assert server.count == 12 * N_CALLS
    assert server.most_in_flight == 3


def test_a_slow_llm_does_not_block(llm_file, tmp_path):
    """The health of the server is told while answers are waited for."""
    with (
        FaultServer() as server,
        serving(create_app(deep.load(llm_file), options_for(server, tmp_path))) as address,
        ThreadPoolExecutor(1) as pool,
    ):
        server.held = True
        waiting = pool.submit(ask, address, body=PAIR)
        while not server.count:
            time.sleep(0.01)
        assert ask(address, "/healthz")[0] == 200
        assert not waiting.done()
        server.held = False
        assert waiting.result()[0] == 200


def test_a_failure_is_a_reason(llm_file, tmp_path):
    """A judge whose LLM fails has no vote, and the answer is not kept as if it were one."""
    with FaultServer(faults={"server_error": 1.0}) as server:
        options = options_for(server, tmp_path, max_attempts=1)
        with serving(create_app(deep.load(llm_file), options)) as address:
            status, body, _ = ask(address, body=PAIR)
    assert status == 200
    assert [(judge["vote"], judge["reason"]) for judge in body["judges"]][:N_CALLS] == [(None, "failed")] * N_CALLS
    assert body["cost"] == 0


def test_a_budget_ends_with_what_there_is(llm_file, tmp_path):
    """402, with the results so far; nothing is asked that could pass it."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[small]\ninput = 1000.0\noutput = 1000.0\n")
    with FaultServer() as server:
        options = options_for(server, tmp_path, budget=0.0, prices=str(prices))
        with serving(create_app(deep.load(llm_file), options)) as address:
            answer = ask(address, body=PAIR)
    assert code_of(answer) == (402, "budget")
    (result,) = answer[1]["error"]["results"]
    assert [judge["reason"] for judge in result["judges"]][:N_CALLS] == ["not_asked"] * N_CALLS
    assert result["judges"][-1]["vote"] in (0, 1)
    assert server.count == 0


def test_an_endpoint_that_refuses_all(llm_file, tmp_path):
    """502, without the key; the next request tries again."""
    with FaultServer(script=["unauthorized", "unauthorized"]) as server:
        options = options_for(server, tmp_path)
        with serving(create_app(deep.load(llm_file), options)) as address:
            answer = ask(address, body=PAIR)
            assert code_of(answer) == (502, "endpoint")
            for _ in range(3):
                status, body, _ = ask(address, body=PAIR)
                if status == 200:
                    break
    assert status == 200
    assert body["n_votes"] == N_CALLS + 1


def in_doubt(ledger):
    """Return how many requests of a closed ledger have no known end."""
    with contextlib.closing(sqlite3.connect(ledger)) as connection:
        return connection.execute("SELECT count(*) FROM requests WHERE state = 'unknown'").fetchone()[0]


def test_an_llm_that_never_answers_does_not_keep_a_server(llm_file, tmp_path, monkeypatch):
    """The client is told, and the ledger keeps what was asked as in doubt: the next server asks it once more."""
    monkeypatch.setattr("deep.integrations.serve._run.GRACE_SECONDS", 1)
    model = deep.load(llm_file)
    with FaultServer(script=["hang"]) as server, ThreadPoolExecutor(1) as pool:
        options = options_for(server, tmp_path, timeout=40.0, max_attempts=1)
        with serving(create_app(model, options)) as address:
            waiting = pool.submit(ask, address, body=PAIR)
            while not server.count:
                time.sleep(0.01)
        assert code_of(waiting.result()) == (503, "ending")
        assert in_doubt(tmp_path / "served.sqlite") == 1
        with serving(create_app(model, options_for(server, tmp_path))) as address:
            status, body, _ = ask(address, body=PAIR)
    assert (status, body["n_votes"], server.count) == (200, N_CALLS + 1, 1 + N_CALLS)


def words_for(llm_file, server, tmp_path):
    """Return the words of `deep serve` that ask a server on loopback."""
    ledger = ["--ledger", tmp_path / "killed.sqlite"]
    return [llm_file, "--base-url", server.url, "--endpoint-name", "local", *ledger]


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_the_server_once_it_has_answered(llm_file, tmp_path, number):
    """With what is in flight, and with the status of an interrupted command; no key and no text is printed."""
    with FaultServer(latency=1.0) as server, ThreadPoolExecutor(1) as pool:
        words = words_for(llm_file, server, tmp_path)
        with command(*words, OPENAI_API_KEY="sk-secret") as (process, address):
            waiting = pool.submit(ask, address, body=PAIR)
            while not server.count:
                time.sleep(0.01)
            process.send_signal(number)
            assert waiting.result()[0] == 200
            out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err == "the server has stopped; requests in flight were answered\n"
    assert "sk-secret" not in out + err
    assert "river" not in out + err


@pytest.mark.slow  # two servers in processes of their own
def test_a_paid_answer_survives_a_kill(llm_file, tmp_path):
    """It is found in the ledger by the next server."""
    with FaultServer() as server:
        words = words_for(llm_file, server, tmp_path)
        with command(*words) as (process, address):
            first = ask(address, body=PAIR)[1]
            process.kill()
            process.wait()
        with command(*words) as (_, address):
            assert ask(address, body=PAIR)[1] == first
    assert server.count == N_CALLS
