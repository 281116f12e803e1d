"""Sentences about batches: each stands exactly where it is true."""

import asyncio

import pytest

from deep.integrations.batch import LOOK_EVERY, _report_progress
from deep.integrations.batch._api import MAX_LOOKS
from deep.llm import EndpointError
from tests.fault_server import FaultServer
from tests.llm.calls import questions, rows, run, states


def test_a_batch_that_the_endpoint_forgot_is_given_up_on_only_when_asked_for(tmp_path):
    """After 404 the requests wait until they are given up on; then they are asked again, and that is told."""
    with FaultServer(polls=10**6) as server:
        run(server.url, tmp_path / "l", questions(5), batch=True, started=_stop)
        server.batches.clear()
        server.polls = 1
        with pytest.raises(
            EndpointError, match=r"must be known to the endpoint.* its 5 requests by --retry-failed expired"
        ):
            run(server.url, tmp_path / "l", questions(5), batch=True)
        assert states(tmp_path / "l") == {"sent": 5}
        lines = []
        run(server.url, tmp_path / "l", questions(5), batch=True, retry_failed=["expired"], started=_heard(lines))
        assert server.count == 5
    assert states(tmp_path / "l") == {"done": 5}
    assert len(lines) == 1
    assert lines[0].startswith("5 requests are in a batch that the endpoint no longer knows; they are asked")


def test_a_batch_that_has_ended_without_its_results_is_not_asked_again(tmp_path, monkeypatch):
    """It counts answers and names no file of them: the next run finds them."""
    complete = FaultServer._complete

    def forget(server, batch):
        complete(server, batch)
        batch["request_counts"] = {"total": 5, "completed": 5, "failed": 0}
        batch["hidden"] = batch.pop("output_file_id")

    with FaultServer() as server:
        with monkeypatch.context() as patch:
            patch.setattr(FaultServer, "_complete", forget)
            with pytest.raises(EndpointError, match=r"must come with its results.*completed.*nothing is asked twice"):
                run(server.url, tmp_path / "l", questions(5), batch=True)
        assert states(tmp_path / "l") == {"sent": 5}
        server.batches["batch-1"]["output_file_id"] = server.batches["batch-1"]["hidden"]
        run(server.url, tmp_path / "l", questions(5), batch=True)
        assert (server.count, len(server.batches)) == (5, 1)
    assert states(tmp_path / "l") == {"done": 5}


def test_a_batch_that_is_listed_late_is_found_at_a_later_look(tmp_path):
    """The answer to its creation is lost, and the first two lists lack it."""
    lines = []
    with FaultServer(script=["late"], unlisted=2) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True, started=_heard(lines))
        assert (len(server.batches), server.count, lines) == (1, 4, [])
    assert states(tmp_path / "l") == {"done": 4}


def test_a_batch_that_is_listed_too_late_is_told_twice(tmp_path):
    """Once as it is asked again, and once as it shows up, by the next run."""
    lines = []
    with FaultServer(script=["late"], unlisted=MAX_LOOKS + 1) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True, started=_heard(lines))
        run(server.url, tmp_path / "l", questions(4), batch=True, started=_heard(lines))
        assert server.copies().total() == 8
    name = server.batches["batch-1"]["metadata"]["deep_batch"]
    assert len(lines) == 2
    assert f"each may be paid twice. It would have the metadata deep_batch={name} in" in lines[0]
    assert lines[1].startswith(f"4 requests of batch batch-1 (metadata deep_batch={name}) were asked again")
    assert rows(tmp_path / "l", "SELECT count(*) FROM attempts WHERE outcome = 'unknown'") == [(4,)]


def test_an_endpoint_without_a_list_of_batches(tmp_path, monkeypatch):
    """What cannot be looked for is in doubt, and no error."""
    from aiohttp import web

    async def none(*_):
        return web.json_response({"error": {"message": "no such route"}}, status=404)

    monkeypatch.setattr(FaultServer, "_list_batches", none)
    lines = []
    with FaultServer(script=["late"]) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True, started=_heard(lines))
    assert states(tmp_path / "l") == {"done": 4}
    assert len(lines) == 1


def _stop(runner):
    asyncio.get_running_loop().call_later(0.8, runner.stop, "interrupted")


def _heard(lines):
    def started(runner):
        runner.tell = lines.append

    return started


def test_progress_is_told_now_and_then():
    """At the first request, and at each five hundredth from there."""
    told = []
    assert len(list(_report_progress(range(2 * LOOK_EVERY + 1), None, told.append))) == 2 * LOOK_EVERY + 1
    assert len(told) == 3
