"""The Batch API: both files, every way to be interrupted, and one ledger for all."""

import pytest

from deep.exceptions import InputError
from deep.integrations.batch import BatchRunner, _api
from deep.llm import EndpointError, RetryPolicy
from tests.fault_server import FaultServer
from tests.llm.calls import answers, outcomes, questions, rows, run, states


def test_a_batch_gives_the_votes_of_single_calls(tmp_path):
    """The answers are the same, matched by custom id though they come in another order."""
    with FaultServer(polls=2) as server:
        ran = run(server.url, tmp_path / "a", questions(30), batch=True)
        assert (ran.tally.answered, server.count, len(server.batches)) == (30, 30, 1)
    with FaultServer() as server:
        run(server.url, tmp_path / "b", questions(30))
    assert answers(tmp_path / "a") == answers(tmp_path / "b")
    assert rows(tmp_path / "a", "SELECT count(*) FROM attempts") == [(30,)]


def test_a_finished_batch_is_not_asked_again(tmp_path):
    """Batches and single calls share the ledger."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(5), batch=True)
        run(server.url, tmp_path / "l", questions(5), batch=True)
        again = run(server.url, tmp_path / "l", questions(7))
        assert server.count == 7
        assert again.tally.found == 5


def test_both_result_files_are_read(tmp_path):
    """Errors come in a file of their own; those that may pass are tried again in the next batch."""
    script = ["ok", "ok", "server_error", "filtered", "ok", "expired"]
    with FaultServer(script=script) as server:
        run(server.url, tmp_path / "l", questions(5), batch=True)
        assert len(server.batches) == 2
    assert states(tmp_path / "l") == {"done": 4, "failed": 1}
    assert outcomes(tmp_path / "l") == {"answered": 3, "server_error": 1, "refused": 1, "expired": 1}


def test_only_an_error_file(tmp_path):
    """A batch that is complete without a single answer has no output file."""
    with FaultServer(script=["ok", "expired", "expired"]) as server:
        run(server.url, tmp_path / "l", questions(2), batch=True)
        assert "output_file_id" not in server.batches["batch-1"]
        assert states(tmp_path / "l") == {"failed": 2}
        run(server.url, tmp_path / "l", questions(2), batch=True, retry_failed=["expired"])
    assert states(tmp_path / "l") == {"done": 2}


def test_a_restart_attaches_to_the_batch_on_record(tmp_path):
    """A run that is stopped while it waits leaves the batch alone, and the next one collects it."""
    with FaultServer(polls=10**6) as server:
        ran = run(server.url, tmp_path / "l", questions(6), batch=True, started=_stop_soon)
        assert ran.stopped == "interrupted"
        assert states(tmp_path / "l") == {"sent": 6}
        server.polls = 1
        again = run(server.url, tmp_path / "l", questions(6), batch=True)
        assert (len(server.batches), server.count) == (1, 6)
        assert again.unknown == 0
    assert states(tmp_path / "l") == {"done": 6}


def _stop_soon(runner):
    import asyncio

    asyncio.get_running_loop().call_later(0.8, runner.stop, "interrupted")


def test_a_batch_whose_making_was_not_confirmed_is_found(tmp_path):
    """The answer to the creation is lost, the batch is there: it is found by its mark, not made twice."""
    with FaultServer(script=["dropped"]) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True)
        assert (len(server.batches), server.count) == (1, 4)
    assert states(tmp_path / "l") == {"done": 4}


def test_a_crash_before_the_batch_was_made_asks_once(tmp_path, monkeypatch):
    """Requests written for a batch that never came to be go back to the queue."""

    async def crash(*_):
        raise RuntimeError("power cut")

    with FaultServer() as server:
        with monkeypatch.context() as patch:
            patch.setattr(BatchRunner, "_submit", crash)
            with pytest.raises(RuntimeError, match="power cut"):
                run(server.url, tmp_path / "l", questions(4), batch=True)
        assert states(tmp_path / "l") == {"sent": 4}
        run(server.url, tmp_path / "l", questions(4), batch=True)
        assert server.count == 4
    assert states(tmp_path / "l") == {"done": 4}
    assert outcomes(tmp_path / "l") == {"unsent": 4, "answered": 4}


def test_a_refused_batch_stops_the_run_and_can_be_repeated(tmp_path):
    """A file that the endpoint does not accept is an error, and its requests are not lost."""
    with FaultServer(script=["invalid"]) as server:
        with pytest.raises(EndpointError, match="`batch` was refused: the file is not valid"):
            run(server.url, tmp_path / "l", questions(4), batch=True)
        assert states(tmp_path / "l") == {"queued": 4}
        run(server.url, tmp_path / "l", questions(4), batch=True)
    assert states(tmp_path / "l") == {"done": 4}


def test_what_a_model_lacks_is_learned_from_a_batch(tmp_path):
    """All lines of the first batch are refused, and the second is sent without the field."""
    with FaultServer(unsupported={"temperature": "unsupported_value"}) as server:
        run(server.url, tmp_path / "l", questions(3, temperature=0.0), batch=True)
        assert (len(server.batches), server.count) == (2, 6)
    assert states(tmp_path / "l") == {"done": 3}


def test_large_runs_are_cut_into_several_files(tmp_path, monkeypatch):
    """No file holds more requests than the endpoint takes."""
    monkeypatch.setattr(_api, "MAX_REQUESTS", 20)
    monkeypatch.setattr(_api, "CHUNK", 5)
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(50), batch=True)
        sizes = [len(content.splitlines()) for name, content in server.files.items() if name.startswith("file-")]
    assert sizes == [15, 15, 15, 5]
    assert states(tmp_path / "l") == {"done": 50}


def test_a_budget_holds_for_batches(tmp_path):
    """Only what fits at its worst is submitted."""
    with FaultServer() as server:
        ran = run(server.url, tmp_path / "l", questions(50), batch=True, budget=0.01)
        assert ran.stopped == "budget"
        assert 0 < server.count < 50
    assert states(tmp_path / "l")["done"] == server.count


def test_a_budget_for_batches_needs_prices(tmp_path):
    """An unknown price cannot be budgeted."""
    with FaultServer() as server, pytest.raises(InputError, match=r"`budget` needs a known price.*Got '\S+' without"):
        run(server.url, tmp_path / "l", questions(2), batch=True, budget=1.0, prices={})


def test_a_server_without_batches_says_so(tmp_path):
    """The endpoint's own words come through."""
    with (
        FaultServer() as server,
        pytest.raises(EndpointError, match=r"`batch` must be supported by the endpoint\..*404: Not Found"),
    ):
        run(f"{server.url}/nothing", tmp_path / "l", questions(2), batch=True, retry=RetryPolicy(attempts=1))
