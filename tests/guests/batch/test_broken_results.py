"""Result files of batches that come back broken: what is good is collected, the rest is counted and no vote."""

import json
import sqlite3
from contextlib import closing

import pytest

from deep.llm import EndpointError, RetryPolicy
from tests.fault_server import FaultServer
from tests.llm.calls import FAST, answers, outcomes, questions, rows, run, states


def test_bad_lines_are_passed_over_and_asked_again(tmp_path):
    """No JSON, no object, no id, null, bytes that are no text, an id of nobody: the other two thirds are collected."""
    with FaultServer(batch_mode="garbage") as server:
        ran = run(server.url, tmp_path / "l", questions(30), batch=True, retry=RetryPolicy(at_most_once=True))
        assert states(tmp_path / "l") == {"done": 20, "failed": 10}
        assert outcomes(tmp_path / "l") == {"answered": 20, "broken": 10}
        assert ran.tally.lines_passed_over == 10 + 1
        server.batch_mode = "ok"
        again = run(server.url, tmp_path / "l", questions(30), batch=True, retry_failed=["broken"])
        assert (server.count, again.tally.answered, again.tally.lines_passed_over) == (40, 10, 0)
    with FaultServer() as server:
        run(server.url, tmp_path / "whole", questions(30))
    assert answers(tmp_path / "l") == answers(tmp_path / "whole")


@pytest.mark.parametrize("mode", ["dupes", "twins"])
def test_two_results_for_one_request(tmp_path, mode):
    """Where they say the same they are one; where they contradict each other they are no vote, and bought once."""
    with FaultServer(batch_mode=mode) as server:
        ran = run(server.url, tmp_path / "l", questions(12), batch=True, retry=FAST)
        assert server.count == 12
    bad = 12 if mode == "dupes" else 0
    assert ran.tally.contradictions == bad
    assert states(tmp_path / "l") == ({"failed": 12} if bad else {"done": 12})
    assert len(rows(tmp_path / "l", "SELECT 1 FROM attempts WHERE message LIKE '%contradict each other'")) == bad


def test_the_file_of_another_batch_takes_nothing_for_lost(tmp_path):
    """Its results are of nobody here: the run ends with a line, and what was paid is there when the right file is."""
    with FaultServer(batch_mode="strangers") as server:
        with pytest.raises(EndpointError, match="Got 0 results for 1 or more of batch-1, and 6 of other requests"):
            run(server.url, tmp_path / "l", questions(6), batch=True)
        assert states(tmp_path / "l") == {"sent": 6}
        file = server.batches["batch-1"]["output_file_id"]
        lines = [json.loads(line) for line in server.files[file].splitlines()]
        right = [line | {"custom_id": line["custom_id"][::-1]} for line in lines]
        server.files[file] = b"\n".join(json.dumps(line).encode() for line in right)
        run(server.url, tmp_path / "l", questions(6), batch=True)
        assert (states(tmp_path / "l"), server.count) == ({"done": 6}, 6)


def test_the_file_of_another_batch_is_given_up_on_where_asked(tmp_path):
    """As a batch that the endpoint no longer knows."""
    with FaultServer(batch_mode="strangers") as server:
        with pytest.raises(EndpointError):
            run(server.url, tmp_path / "l", questions(6), batch=True)
        server.batch_mode = "ok"
        run(server.url, tmp_path / "l", questions(6), batch=True, retry_failed=["expired"])
        assert (states(tmp_path / "l"), server.count) == ({"done": 6}, 12)


def test_a_batch_in_which_nothing_waits_holds_up_no_run(tmp_path):
    """Its requests have gone into another one: whatever its file holds, nothing of it can be lost."""
    with FaultServer(batch_mode="strangers") as server:
        with pytest.raises(EndpointError):
            run(server.url, tmp_path / "l", questions(6), batch=True)
        with closing(sqlite3.connect(tmp_path / "l")) as ledger, ledger:
            ledger.execute("UPDATE attempts SET outcome = 'unsent', reached = 0")
            ledger.execute("UPDATE requests SET state = 'queued', batch = NULL")
        server.batch_mode = "ok"
        run(server.url, tmp_path / "l", questions(6), batch=True)
    assert states(tmp_path / "l") == {"done": 6}


def test_a_key_in_an_error_beside_the_reply_is_cut_out(tmp_path):
    """Errors of a batch stand outside the reply, and are written down too."""
    with FaultServer(script=["ok", "expired"]) as server:
        key = "request could not"
        run(server.url, tmp_path / "l", questions(1), batch=True, key=key, retry=RetryPolicy(attempts=1))
    assert rows(tmp_path / "l", "SELECT message FROM attempts") == [("This [key] be executed in time.",)]


def test_the_same_run_asks_for_what_was_broken(tmp_path):
    """A broken line is a failure that may pass, so that its request goes into the next batch."""
    with FaultServer(batch_mode="garbage") as server:
        run(server.url, tmp_path / "l", questions(30), batch=True)
        assert len(server.batches) == 3
    assert states(tmp_path / "l") == {"done": 28, "failed": 2}  # a third of a third of a third, rounded up
