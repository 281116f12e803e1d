"""A whole run over real HTTP: every fault, resuming, stopping, budgets, order."""

import asyncio
import threading
import time

import pytest

from deep.exceptions import InputError
from deep.llm import ConcurrencyLimit, EndpointError, History, LedgerError, RetryPolicy
from tests.fault_server import FaultServer
from tests.llm.calls import FAST, KEY, answers, outcomes, question, questions, rows, run, states

NO_RETRY = RetryPolicy(attempts=1)
ONCE = RetryPolicy(wait_initial=0.01, wait_max=0.05, jitter=0.01, at_most_once=True)


def test_every_fault_is_survived_and_every_attempt_is_counted(tmp_path):
    """Transport faults of all kinds end in the votes of a run without faults, and no attempt is missed."""
    shares = {"rate_limited": 0.1, "server_error": 0.05, "hang": 0.01, "dropped": 0.02, "broken_json": 0.03}
    shares |= {"broken_http": 0.02, "cut": 0.02, "no_verdict": 0.05, "truncated": 0.3, "refused": 0.03}
    with FaultServer(faults=shares) as server:  # the timeout is long enough for any answer on a busy machine
        run(server.url, tmp_path / "a", questions(200), workers=8, timeout=3)
        assert server.count > 220
        attempts, reached = rows(tmp_path / "a", "SELECT count(*), sum(reached) FROM attempts")[0]
        assert attempts >= reached >= server.count  # a slow machine sends what no server has time to read
    calm = {name: share for name, share in shares.items() if name in ("no_verdict", "truncated", "refused")}
    with FaultServer(faults=calm) as server:
        ran = run(server.url, tmp_path / "b", questions(200), workers=32)
        assert server.count == 200 + ran.tally.longer
        assert 0 < ran.tally.saved < ran.tally.longer
    assert answers(tmp_path / "a") == answers(tmp_path / "b")
    assert {reason for _, reason in answers(tmp_path / "a").values()} == {None, "unparsable", "truncated", "refused"}


def test_the_same_run_again_asks_nothing(tmp_path):
    """A second run over the same requests finds everything in the ledger."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(30))
        again = run(server.url, tmp_path / "l", questions(30))
        assert server.count == 30
    assert (again.tally.found, again.tally.attempts) == (30, 0)


def test_more_items_ask_only_what_is_missing(tmp_path):
    """A longer list of requests costs only its new part."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(10))
        run(server.url, tmp_path / "l", questions(15))
        assert server.count == 15


def test_the_same_question_about_two_items_is_asked_once(tmp_path):
    """Two items with the same text share one answer."""
    twins = [question(1), question(1, dataset="other")]
    with FaultServer() as server:
        run(server.url, tmp_path / "l", lambda: twins)
        assert server.count == 1
    assert rows(tmp_path / "l", "SELECT dataset, key FROM items ORDER BY dataset")[0][1] == twins[1].key


def test_samples_are_separate_requests(tmp_path):
    """The same question with another sample index is asked anew."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", lambda: [question(1, sample=i) for i in range(3)])
        assert server.count == 3


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("rate_limited", "rate_limited"),
        ("server_error", "server_error"),
        ("dropped", "dropped"),
        ("broken_json", "broken"),
        ("broken_http", "dropped"),
        ("cut", "dropped"),
        ("hang", "timeout"),
    ],
)
def test_a_fault_is_named_and_asked_again_only_on_request(tmp_path, fault, kind):
    """What was given up stays failed under its class until `retry_failed` names that class."""
    with FaultServer(script=[fault]) as server:
        ran = run(server.url, tmp_path / "l", questions(1), retry=NO_RETRY, timeout=3 if fault == "hang" else 300)
        assert ran.tally.failed == 1
        with History(str(tmp_path / "l")) as history:  # refused is not billed; without an answer it may be
            assert ran.tally.in_doubt == history.lost() == (kind not in ("rate_limited", "server_error"))
        assert rows(tmp_path / "l", "SELECT state, failure FROM requests") == [("failed", kind)]
        run(server.url, tmp_path / "l", questions(1))
        run(server.url, tmp_path / "l", questions(1), retry_failed=["expired"])
        assert server.count == 1
        run(server.url, tmp_path / "l", questions(1), retry_failed=[kind])
        assert server.count == 2
    assert states(tmp_path / "l") == {"done": 1}
    assert outcomes(tmp_path / "l") == {kind: 1, "answered": 1}


@pytest.mark.parametrize("reason", ["unparsable", "truncated", "refused"])
def test_a_reply_without_a_verdict_is_kept_and_not_asked_again(tmp_path, reason):
    """It is an answer, paid for; only `retry_failed` asks again, and the first reply is kept."""
    fault = {"unparsable": "no_verdict"}.get(reason, reason)
    times = 2 if reason == "truncated" else 1  # again with a longer limit
    with FaultServer(script=[fault] * times) as server:
        run(server.url, tmp_path / "l", questions(1))
        run(server.url, tmp_path / "l", questions(1))
        assert server.count == times
        assert answers(tmp_path / "l")[question(0).key] == (-1, reason)
        run(server.url, tmp_path / "l", questions(1), retry_failed=[reason])
        assert server.count == times + 1
    assert answers(tmp_path / "l")[question(0).key] in {(0, None), (1, None)}
    replies = rows(tmp_path / "l", "SELECT reply FROM attempts ORDER BY number")
    assert len({reply for (reply,) in replies}) == times + 1


def test_an_unreachable_endpoint_leaves_attempts_that_count_for_nothing(tmp_path):
    """Attempts that never left this machine are told apart from those the server has seen."""
    with FaultServer() as server:
        url = server.url
    run(url, tmp_path / "l", questions(1), retry=RetryPolicy(attempts=2, wait_initial=0.01, jitter=0.0))
    assert rows(tmp_path / "l", "SELECT outcome, reached FROM attempts") == [("unreachable", 0)] * 2
    assert rows(tmp_path / "l", "SELECT failure FROM requests") == [("unreachable",)]


def test_retry_after_is_waited_for(tmp_path):
    """The wait is at least what the endpoint asked for, and is written down."""
    with FaultServer(script=["slow_down"], retry_after="0.4") as server:
        run(server.url, tmp_path / "l", questions(1))
        (first, _, _), (second, _, _) = server.log
    assert second - first >= 0.4
    assert rows(tmp_path / "l", "SELECT retry_after FROM attempts WHERE number = 1") == [(0.4,)]


def test_a_retry_after_beyond_the_cap_is_cut(tmp_path):
    """The cap bounds the wait, where the client library would give up at once."""
    retry = RetryPolicy(wait_initial=0.01, jitter=0.0, retry_after_cap=0.2)
    with FaultServer(script=["slow_down"], retry_after="3600") as server:
        run(server.url, tmp_path / "l", questions(1), retry=retry)  # ends now, not in an hour
        assert server.count == 2


@pytest.mark.parametrize("fault", ["hang", "dropped"])
def test_at_most_once_never_repeats_what_may_have_been_answered(tmp_path, fault):
    """A lost answer leaves the request unknown and without a vote, now and in the next run."""
    with FaultServer(script=[fault]) as server:
        first = run(server.url, tmp_path / "l", questions(1), retry=ONCE, timeout=3 if fault == "hang" else 300)
        second = run(server.url, tmp_path / "l", questions(1), retry=ONCE)
        assert server.count == 1
        assert states(tmp_path / "l") == {"unknown": 1}
        assert (first.tally.failed, second.unknown) == (1, 1)
        run(server.url, tmp_path / "l", questions(1))
        assert server.count == 2
    assert states(tmp_path / "l") == {"done": 1}


def test_at_most_once_still_repeats_what_was_refused(tmp_path):
    """A 429 or a 500 is an answer that no vote was made, so asking again buys nothing twice."""
    with FaultServer(script=["rate_limited", "server_error"]) as server:
        run(server.url, tmp_path / "l", questions(1), retry=ONCE)
        assert server.count == 3
    assert states(tmp_path / "l") == {"done": 1}


def test_one_bad_row_does_not_stop_the_others(tmp_path):
    """A request that is refused for its own sake fails alone."""

    def accept(body):
        return (400, {"message": "bad text"}) if "7 cats" in body["messages"][0]["content"] else None

    with FaultServer(accept=accept) as server:
        run(server.url, tmp_path / "l", questions(10))
    assert states(tmp_path / "l") == {"done": 9, "failed": 1}
    assert rows(tmp_path / "l", "SELECT failure, message FROM requests WHERE state = 'failed'") == [
        ("rejected", "bad text")
    ]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ({"message": "maximum context length is 4096 tokens", "code": "context_length_exceeded"}, "too_long"),
        ({"message": "This model's maximum context length is 4096 tokens"}, "too_long"),
        ({"message": "nonsense"}, "rejected"),
    ],
)
def test_a_document_that_is_too_long_is_told_apart(tmp_path, error, expected):
    """HTTP 400 means several things, and they ask for different remedies."""
    with FaultServer(accept=lambda _: (400, error)) as server:
        run(server.url, tmp_path / "l", questions(1))
    assert rows(tmp_path / "l", "SELECT failure FROM requests") == [(expected,)]


def test_a_content_filter_is_a_refusal(tmp_path):
    """An endpoint that blocks the request has refused it; that is a reason, and no failure."""
    with FaultServer(script=["filtered"]) as server:
        run(server.url, tmp_path / "l", questions(1))
    assert answers(tmp_path / "l") == {question(0).key: (-1, "refused")}


@pytest.mark.parametrize(("script", "refusal"), [(["unauthorized"], "wrong key"), (["no_credit"], "no credit left")])
def test_a_wrong_key_or_an_empty_account_stops_the_run(tmp_path, script, refusal):
    """Where every request would be refused one is enough, and nothing is marked as failed."""
    with FaultServer(script=script) as server:
        with pytest.raises(EndpointError, match=refusal) as caught:
            run(server.url, tmp_path / "l", questions(50))
        assert server.count == 1
        assert KEY not in str(caught.value)
        run(server.url, tmp_path / "l", questions(50))
    assert states(tmp_path / "l") == {"done": 50}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (404, {"message": "nothing here"}),
        (403, {"message": "not for you"}),
        (400, {"message": "x", "code": "model_not_found"}),
        (400, {"message": "Invalid model name passed in model=tiny"}),
        (422, {"message": "The model `tiny` does not exist or you do not have access to it"}),
    ],
)
def test_an_unknown_model_stops_the_run(tmp_path, status, error):
    """Servers say it in several ways; one request is enough, and nothing is marked as failed."""
    with (
        FaultServer(accept=lambda _: (status, error)) as server,
        pytest.raises(EndpointError, match="The endpoint refuses every request"),
    ):
        run(server.url, tmp_path / "l", questions(50))
    assert server.count == 1
    assert set(states(tmp_path / "l")) == {"queued"}


def test_a_model_that_refuses_everything_stops_the_run(tmp_path):
    """Whatever the reason, three refusals and not one answer are enough."""
    with (
        FaultServer(accept=lambda _: (400, {"message": "nonsense"})) as server,
        pytest.raises(EndpointError, match="refuses every request: nonsense"),
    ):
        run(server.url, tmp_path / "l", questions(500))
    assert server.count == 3


def test_bad_first_rows_do_not_stop_the_run(tmp_path):
    """Two refused requests at the start are two refused requests."""

    def accept(body):
        text = body["messages"][0]["content"]
        return (400, {"message": "bad text"}) if ">0 cats" in text or ">1 cats" in text else None

    with FaultServer(accept=accept) as server:
        run(server.url, tmp_path / "l", questions(30))
        assert server.count == 30
    assert states(tmp_path / "l") == {"done": 28, "failed": 2}


def test_an_endpoint_that_is_down_stops_the_run(tmp_path):
    """After twenty requests given up in a row the rest is left in the queue."""
    with FaultServer(faults={"server_error": 1.0}) as server:
        with pytest.raises(EndpointError, match=r"must answer. The last 20 requests.*server_error"):
            run(server.url, tmp_path / "l", questions(500), retry=NO_RETRY, workers=4)
        assert server.count < 60


def test_a_failed_write_stops_the_run(tmp_path):
    """Where the ledger cannot be written nothing more is asked, and the error is not swallowed."""
    with FaultServer(latency=0.02) as server:

        def break_ledger(_):
            rows(
                tmp_path / "l",
                "CREATE TRIGGER full BEFORE UPDATE ON requests WHEN new.state = 'done' "
                "BEGIN SELECT raise(FAIL, 'disk is full'); END",
            )

        with pytest.raises(LedgerError, match="cannot be written: disk is full"):
            run(server.url, tmp_path / "l", questions(500), workers=8, started=break_ledger)
        assert server.count <= 17


def test_a_bug_in_the_parser_loses_no_paid_answer(tmp_path):
    """The reply is kept as unparsable, with the parser's own complaint."""

    def parse(*_):
        raise KeyError("verdict")

    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(1), parse=parse)
    assert rows(tmp_path / "l", "SELECT reason, message FROM requests") == [
        ("unparsable", "the parser raised KeyError: 'verdict'")
    ]
    assert "SUPPORTED" in rows(tmp_path / "l", "SELECT reply FROM attempts")[0][0]


def test_stopping_waits_for_what_is_in_flight(tmp_path):
    """After one Ctrl-C no request is left in doubt, and the next run asks the rest."""
    with FaultServer(latency=0.2) as server:
        ran = run(server.url, tmp_path / "l", questions(400), started=lambda r: _stop(r, lambda: server.count > 8))
        assert ran.stopped == "interrupted"
        asked = server.count
        assert 0 < asked < 400
        assert states(tmp_path / "l")["done"] == asked
        assert set(states(tmp_path / "l")) <= {"done", "queued"}
        server.latency = 0.0
        again = run(server.url, tmp_path / "l", questions(400), workers=64)
        assert again.unknown == 0
        assert server.count == 400


def test_stopping_twice_leaves_the_rest_unknown(tmp_path):
    """A second Ctrl-C does not wait; what was in flight is unknown and is asked again, and counted."""
    with FaultServer(script=["ok", *["hang"] * 8]) as server:
        ran = run(
            server.url,
            tmp_path / "l",
            questions(9),
            workers=8,
            timeout=60,
            started=lambda r: _stop(r, lambda: server.in_flight == 8 and states(tmp_path / "l").get("done"), times=2),
        )
        assert ran.stopped == "interrupted"
        assert states(tmp_path / "l") == {"done": 1, "unknown": 8}
        again = run(server.url, tmp_path / "l", questions(9))
        assert again.unknown == 8
        assert server.count == 17


def _die(tmp_path, server, n, **options):
    """Run `n` requests until one is in flight, and leave it in doubt."""

    def started(runner):
        before = server.count
        _stop(runner, lambda: server.count > before, times=2)

    return run(server.url, tmp_path / "l", questions(n), workers=1, timeout=60, started=started, **options)


def test_what_is_in_doubt_is_asked_last(tmp_path):
    """Each run that dies over its canary request dies over another one; in the end all are asked, none thrice."""
    with FaultServer(script=["hang"] * 3) as server:
        for _ in range(3):
            assert _die(tmp_path, server, 4).stopped == "interrupted"
        assert states(tmp_path / "l") == {"unknown": 3, "queued": 1}
        assert run(server.url, tmp_path / "l", questions(4), workers=1).unknown == 3
        digests = [digest for _, digest, _ in server.log]
    assert len(set(digests[:4])) == 4
    assert sorted(digests[4:]) == sorted(digests[:3])
    assert states(tmp_path / "l") == {"done": 4}


def test_what_was_in_doubt_stays_so_where_it_was_not_sent(tmp_path):
    """A run that was to ask it again and stopped before that does not make it a request that was never sent."""
    with FaultServer(script=["hang"] * 2) as server:
        for _ in range(2):
            _die(tmp_path, server, 3)
        assert states(tmp_path / "l") == {"unknown": 2, "queued": 1}
        ran = run(server.url, tmp_path / "l", questions(3), retry=ONCE)
        assert (ran.unknown, server.count) == (2, 3)
        assert states(tmp_path / "l") == {"unknown": 2, "done": 1}


def test_what_was_in_doubt_twice_is_asked_only_when_told_to(tmp_path):
    """It may have been paid twice: it is failed and counted, however often the command is run, until it is named."""
    with FaultServer(script=["hang"] * 2) as server:
        for _ in range(2):
            _die(tmp_path, server, 1)
        for _ in range(2):
            ran = run(server.url, tmp_path / "l", questions(1))
            assert (ran.unknown, ran.in_doubt_twice, ran.tally.by_voter["p@0a/tiny"]["failed"]) == (0, 1, 1)
        assert server.count == 2
        assert rows(tmp_path / "l", "SELECT state, failure FROM requests") == [("failed", "unknown")]
        ran = run(server.url, tmp_path / "l", questions(1), retry_failed=["unknown"])
        assert (ran.unknown, ran.in_doubt_twice, server.count) == (1, 0, 3)
    assert states(tmp_path / "l") == {"done": 1}


def _stop(runner, moment, times=1):
    """Interrupt a run as soon as `moment` is true, once or twice."""
    loop = asyncio.get_running_loop()

    def wait():
        while not moment():
            time.sleep(0.01)
        for _ in range(times):
            loop.call_soon_threadsafe(runner.stop, "interrupted")

    threading.Thread(target=wait, daemon=True).start()


def test_a_backoff_does_not_delay_the_end(tmp_path):
    """Requests that wait to be tried again go back to the queue at once."""
    retry = RetryPolicy(wait_initial=3600, wait_max=3600, jitter=0)
    with FaultServer(faults={"rate_limited": 1.0}) as server:
        run(
            server.url, tmp_path / "l", questions(4), retry=retry, started=lambda r: _stop(r, lambda: server.count >= 4)
        )
    assert set(states(tmp_path / "l")) == {"queued"}


def test_the_budget_is_never_passed(tmp_path):
    """Work stops where its worst case no longer fits, in-flight requests included."""
    worst = 2e-4 + 50 * 10 / 1e6
    with FaultServer(latency=0.02) as server:
        ran = run(server.url, tmp_path / "l", questions(200), budget=0.02)
        assert ran.stopped == "budget"
        spent = rows(tmp_path / "l", "SELECT sum(cost) FROM attempts")[0][0]
        assert 0.02 - worst < spent <= 0.02
        asked = server.count
        again = run(server.url, tmp_path / "l", questions(200), budget=0.02)
        assert (again.stopped, server.count) == ("budget", asked)


def test_lost_answers_count_against_the_budget(tmp_path):
    """An answer that never arrived may have been paid, so its worst case is spent."""
    with FaultServer(faults={"dropped": 1.0}) as server:
        ran = run(server.url, tmp_path / "l", questions(1), budget=0.0016)
        assert ran.stopped == "budget"
        assert server.count == 2


def test_a_budget_needs_prices(tmp_path):
    """An unknown price is not 0, so a budget cannot be kept and nothing is sent."""
    with FaultServer() as server, pytest.raises(InputError, match=r"`budget` needs a known price.*Got '\S+' without"):
        run(server.url, tmp_path / "l", questions(3), budget=1.0, prices={})
    assert server.count == 0


def test_an_unknown_price_is_unknown(tmp_path):
    """Costs of a model without a price are NULL, and are counted as such."""
    with FaultServer() as server:
        ran = run(server.url, tmp_path / "l", questions(3), prices={})
    assert rows(tmp_path / "l", "SELECT DISTINCT cost FROM attempts") == [(None,)]
    assert (ran.tally.unpriced, ran.tally.cost) == (3, 0.0)


def test_usage_price_and_the_model_that_answered_are_kept(tmp_path):
    """The row holds all that the bill needs."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(1))
    query = "SELECT answered_by, input_tokens, cached_tokens, output_tokens, reasoning_tokens, cost FROM attempts"
    model, n_in, cached, n_out, reasoning, cost = rows(tmp_path / "l", query)[0]
    assert (model, cached, reasoning) == ("tiny-2026", n_in // 2, 0)
    assert cost == pytest.approx(n_in * 1e-6 + n_out * 1e-5)


@pytest.mark.parametrize("field", ["temperature", "logprobs", "response_format"])
def test_what_a_model_lacks_is_dropped_once_and_remembered(tmp_path, field):
    """One refused attempt teaches the whole run and the next; the key is that of the requested body."""
    asked = {"temperature": 0.0, "logprobs": True, "top_logprobs": 5, "response_format": {"type": "json_object"}}
    with FaultServer(unsupported={field: "unsupported_value"}) as server:
        run(server.url, tmp_path / "l", questions(20, **asked))
        assert server.count == 21
        run(server.url, tmp_path / "l", questions(25, **asked))
        assert server.count == 26
    assert states(tmp_path / "l") == {"done": 25}
    assert question(0, **asked).key in answers(tmp_path / "l")
    requested, effective = rows(tmp_path / "l", "SELECT requested_body, effective_body FROM requests")[0]
    assert field in requested
    assert field not in effective
    names = {row[0] for row in rows(tmp_path / "l", "SELECT parameter FROM quirks WHERE action = 'dropped'")}
    assert names == {"logprobs", "top_logprobs"} if field == "logprobs" else {field}


def test_an_old_name_of_the_output_limit_is_renamed(tmp_path):
    """Reasoning models want `max_completion_tokens`."""
    with FaultServer(unsupported={"max_tokens": "unsupported_parameter"}) as server:
        server.keep_bodies = True
        run(server.url, tmp_path / "l", questions(5))
        assert server.count == 6
        assert server.bodies[-1]["max_completion_tokens"] == 50


def test_a_schema_that_breaks_the_server_is_dropped(tmp_path):
    """Some servers answer HTTP 500 to a JSON schema; without it they work."""

    def accept(body):
        return (500, {"message": "boom"}) if "response_format" in body else None

    with FaultServer(accept=accept) as server:
        run(server.url, tmp_path / "l", questions(20, response_format={"type": "json_schema"}))
        assert server.count == 23
    assert states(tmp_path / "l") == {"done": 20}


def test_ignored_requests_are_noticed(tmp_path):
    """An endpoint that takes a field and does nothing about it is written down."""
    asked = {"logprobs": True, "response_format": {"type": "json_object"}}
    with FaultServer(ignored=["logprobs", "response_format"]) as server:
        run(server.url, tmp_path / "l", questions(5, **asked))
    result = rows(tmp_path / "l", "SELECT parameter, action FROM quirks ORDER BY parameter")
    assert result == [("logprobs", "ignored"), ("response_format", "ignored")]


def test_the_first_request_to_a_model_goes_alone(tmp_path):
    """All workers wait for the canary request."""
    with FaultServer(latency=0.15) as server:
        run(server.url, tmp_path / "l", questions(10))
        times = [at for at, _, _ in server.log]
    assert times[1] - times[0] >= 0.15
    assert times[-1] - times[1] < 1.2


def test_a_group_goes_together_and_its_first_alone(tmp_path):
    """The requests that share a document follow the first of them, which has filled the prefix cache by then."""
    with FaultServer(latency=0.1) as server:
        server.keep_bodies = True
        requests = [question(d, seed=i, group=f"doc{d}") for d in range(6) for i in range(4)]
        run(server.url, tmp_path / "l", lambda: requests, workers=4)
        order = [body["messages"][0]["content"].split()[0] for body in server.bodies]
        times = [at for at, _, _ in server.log]
    for document in set(order):
        places = [i for i, name in enumerate(order) if name == document]
        assert times[places[1]] - times[places[0]] >= 0.1
        assert places[-1] - places[1] <= 8


def test_requests_a_minute_are_kept(tmp_path):
    """The limit holds from the first second on, without a burst."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(12), rpm=1200)
        times = [at for at, _, _ in server.log]
    assert times[-1] - times[0] >= 0.45


def test_concurrency_adapts_to_rate_limits(tmp_path):
    """Many 429 leave fewer requests in flight than none."""
    limit = ConcurrencyLimit(8, 2, 32)
    with FaultServer(faults={"rate_limited": 0.5}) as server:
        run(server.url, tmp_path / "l", questions(60), workers=32, concurrency=limit, retry=FAST)
    assert limit.current < 8
    assert states(tmp_path / "l") == {"done": 60}


def test_no_more_than_the_limit_is_in_flight(tmp_path):
    """The server never sees more requests at once than there are workers."""
    with FaultServer(latency=0.03) as server:
        run(server.url, tmp_path / "l", questions(60), workers=5)
        assert server.most_in_flight == 5


def test_no_key_is_written_anywhere(tmp_path):
    """Not even where the endpoint repeats the key in its answer or its error."""
    script = ["echo_key", "ok", "echo_key"]
    with FaultServer(script=script) as server:
        run(server.url, tmp_path / "l", questions(4))
        assert server.authorization == {f"Bearer {KEY}"}
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"[key]" in content
    assert KEY.encode() not in content


def test_a_request_that_is_no_json_stops_with_a_word(tmp_path):
    """NaN has no JSON; the run says so instead of sending it."""
    with FaultServer() as server, pytest.raises(InputError, match="`body` must hold only what JSON can say"):
        run(server.url, tmp_path / "l", questions(1, temperature=float("nan")))
    assert server.count == 0


def test_lone_surrogates_and_nul_survive(tmp_path):
    """Text that has no UTF-8 is still asked about, and kept."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(1, user="a\x00b\ud800"))
    assert states(tmp_path / "l") == {"done": 1}


@pytest.mark.parametrize("odd", ["\ud800", "a\0b", "\udfff\0", "é" * 10])
def test_odd_text_from_the_server_is_kept(tmp_path, odd):
    """No model name, error or reply is so strange that the ledger could not hold it."""
    with FaultServer(reply=lambda _: f"{odd} SUPPORTED") as server:
        server.suffix = odd
        run(server.url, tmp_path / "l", questions(2))
        server.accept = lambda _: (400, {"message": f"bad {odd}"})
        run(server.url, tmp_path / "l", questions(2, seed=1, model="m"))
    assert states(tmp_path / "l") == {"done": 2, "failed": 2}
