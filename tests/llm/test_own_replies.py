"""Every reply belongs to its question, and what is said of one request decides nothing about another."""

import asyncio
import json
import re
import threading
from contextlib import contextmanager

import pytest

from deep.asking._summary import _classes, failing_lines
from deep.llm import CallError, EndpointError, History, ModelGate, PriceBook, RetryPolicy, Tally, Terms
from deep.llm._errors import unquoted_words
from deep.llm._messages import read_reply
from tests.fault_server import FaultServer
from tests.llm.calls import outcomes, question, questions, rows, run, states

N = 200
SLOW = 0.03


def message(status, value):
    """Return a whole HTTP reply that keeps the connection."""
    body = json.dumps(value).encode()
    return b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(body)) + body


def completion(body):
    """Return the right answer to a question, which says itself what that is."""
    number = int(re.findall(rb"(\d+) cats", body)[-1])
    return message(200, {"choices": [{"message": {"content": "SUPPORTED" if number % 2 else "NOT SUPPORTED"}}]})


async def late(writer, body, turn):
    """Answer every fourth request with 504, and a while later with what came after all."""
    if turn % 4:
        await asyncio.sleep(SLOW)
        return writer.write(completion(body))
    writer.write(message(504, {"error": {"message": "upstream timed out"}}))
    await asyncio.sleep(3 * SLOW)
    return writer.write(completion(body))


async def wrong_first(writer, body, turn):
    """Answer every fourth request with an error under status 200, and then with the answer."""
    if turn % 4 == 0:
        writer.write(message(200, {"error": {"message": "upstream timed out"}}))
    await asyncio.sleep(SLOW)
    writer.write(completion(body))


async def twice(writer, body, turn):
    """Send every answer twice in one piece."""
    await asyncio.sleep(SLOW)
    writer.write(completion(body) * 2)


async def again(writer, body, turn):
    """Send every answer twice, the copy a moment later."""
    await asyncio.sleep(SLOW)
    writer.write(completion(body))
    await writer.drain()
    await asyncio.sleep(SLOW)
    writer.write(completion(body))


async def honest(writer, body, turn):
    """Send every answer once."""
    await asyncio.sleep(SLOW)
    writer.write(completion(body))


@contextmanager
def server(answer):
    """Run a server; yield its URL and the list of its connections."""
    connections, ready = [], threading.Event()
    turns = iter(range(1, 10**9))

    async def serve(reader, writer):
        connections.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(re.findall(rb"(?i)content-length: (\d+)", head)[0])
                await answer(writer, await reader.readexactly(size), next(turns))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def main():
        nonlocal url, loop, stop
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
        ready.set()
        await stop.wait()
        listening.close()

    url = loop = stop = None
    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    ready.wait(300)
    try:
        yield url, connections
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(300)


@pytest.mark.parametrize("answer", [late, wrong_first, twice, again])
def test_a_reply_that_nobody_asked_for_answers_no_other_question(tmp_path, answer):
    """A gateway that answers after its error, and a proxy that sends all twice: no vote is of another question."""
    with server(answer) as (url, _):
        run(url, tmp_path / "l", questions(N), timeout=60)
    asked = {question(i).key: i % 2 for i in range(N)}
    result = rows(tmp_path / "l", "SELECT key, vote FROM requests WHERE state = 'done'")
    assert [key for key, vote in result if vote != asked[key]] == []
    assert len(result) >= 0.95 * N


def test_an_honest_server_is_asked_on_kept_connections(tmp_path):
    """As many as are in flight, and a few from before the first had shown that nothing comes unasked."""
    with server(honest) as (url, connections):
        run(url, tmp_path / "l", questions(N), timeout=60)
    assert states(tmp_path / "l") == {"done": N}
    assert len(connections) < N / 2


DOCUMENT = "Its temperature, stop valve, seed and response_format are unknown. The model of 1930 was not found."


@pytest.mark.parametrize("spelled", [str, json.dumps, lambda text: text.replace(" ", "&nbsp;"), lambda text: text[:70]])
def test_what_an_endpoint_quotes_is_not_its_own_word(spelled):
    """JSON, HTML and a quotation that is cut short."""
    asked = json.dumps({"messages": [{"content": f"Source: {DOCUMENT}"}]})
    message = unquoted_words(f"This is not supported: {spelled(DOCUMENT)}", asked)
    assert message.startswith("this is not supported")
    assert not {"temperature", "seed", "model"} & set(message.split())


def test_a_document_that_names_parameters_changes_no_request(tmp_path):
    """It is refused and quoted; the first of all, so that nothing is known of the model."""
    asked = {"temperature": 0.0, "seed": 1, "response_format": {"type": "json_object"}}

    def requests():
        odd = question(99, **asked)
        odd.body["messages"][0]["content"] += DOCUMENT
        return [odd, *questions(10, **asked)()]

    def accept(body):
        text = json.dumps(body["messages"])
        message = f"Blocked, the model filter was not available: {text}"
        return (400, {"message": message, "code": "policy"}) if "valve" in text else None

    with FaultServer(accept=accept) as endpoint:
        endpoint.keep_bodies = True
        run(endpoint.url, tmp_path / "l", requests)
        assert all(asked.keys() <= body.keys() for body in endpoint.bodies)
    assert states(tmp_path / "l") == {"done": 10, "failed": 1}
    assert rows(tmp_path / "l", "SELECT parameter FROM quirks WHERE action <> 'ignored'") == []


def test_words_alone_are_believed_after_two_answers_without_the_field(tmp_path):
    """A server that refuses it for all is understood at the second request; the others go out right at once."""

    def accept(body):
        return (400, {"message": "temperature is not supported"}) if "temperature" in body else None

    with FaultServer(accept=accept) as endpoint:
        run(endpoint.url, tmp_path / "l", questions(10, temperature=0.0))
        assert endpoint.count == 12
    assert states(tmp_path / "l") == {"done": 10}
    assert rows(tmp_path / "l", "SELECT parameter FROM quirks") == [("temperature",)]


def test_words_that_are_about_one_request_are_forgotten(tmp_path):
    """One is sent without the field, in vain; what was answered with it is asked so ever after."""

    def accept(body):
        odd = "3 cats" in json.dumps(body["messages"])
        return (400, {"message": "temperature is not supported"}) if odd else None

    with FaultServer(accept=accept) as endpoint:
        endpoint.keep_bodies = True
        run(endpoint.url, tmp_path / "l", questions(6, temperature=0.0))
        assert sum("temperature" not in body for body in endpoint.bodies) == 1
    assert states(tmp_path / "l") == {"done": 5, "failed": 1}
    assert rows(tmp_path / "l", "SELECT parameter FROM quirks") == []


def test_a_field_that_was_answered_is_not_unlearned():
    """A batch says so once for one line; the lines before were answered with it."""
    gate, body = ModelGate(), {"model": "m", "messages": [], "temperature": 0.0}
    gate.take("e", body)
    assert gate.learn("e", body, CallError("rejected", "temperature is not supported", status=400)) == []


@pytest.mark.parametrize("layout", ["raw", "detail", "message"])
def test_an_error_within_an_error_is_read(tmp_path, layout):
    """As a gateway holds it that of the server behind: the reason is shown, and the parameter learned."""
    inner = json.dumps({"error": {"message": "Use 'max_completion_tokens'", "param": "max_tokens"}})
    outer = {
        "raw": {"message": "Provider returned error", "code": 400, "metadata": {"raw": inner}},
        "detail": {"detail": inner},
        "message": {"message": inner},
    }[layout]
    with FaultServer(accept=lambda body: (400, outer) if "max_tokens" in body else None) as endpoint:
        run(endpoint.url, tmp_path / "l", questions(2))
        assert endpoint.count == 3
    result = rows(tmp_path / "l", "SELECT parameter, action, message FROM quirks")
    assert result == [("max_tokens", "renamed", "Use 'max_completion_tokens'")]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ((1000, 20, 0, 2000, 3020), (1000, 2020)),
        ((1000, 2020, 0, 2000, 3020), (1000, 2020)),
        ((1000, 0, 0, 600, None), (1000, 600)),
        ((9, 5, 17102, 0, None), (17111, 5)),
        ((5000, 5, 4000, 0, 9005), (9000, 5)),
        ((10, 5, 0, 0, 115), (10, 105)),
        ((10, 5, 0, 0, 3), (10, 5)),
        ((10, 5, 0, 0, 10**400), (10, 5)),
    ],
)
def test_tokens_beside_the_counts_are_paid_for(usage, expected):
    """What the total has more than its parts is output, or input where it is the cache; never less."""
    names = ("prompt_tokens", "completion_tokens")
    counts = dict(zip(names, usage[:2], strict=True)) | {"total_tokens": usage[4]}
    counts |= {"prompt_tokens_details": {"cached_tokens": usage[2]}}
    counts |= {"completion_tokens_details": {"reasoning_tokens": usage[3]}}
    tokens = read_reply(json.dumps({"choices": [{"message": {"content": ""}}], "usage": counts})).tokens
    assert (tokens["input"], tokens["output"]) == expected


def test_a_long_wait_is_told_once_and_again_when_it_doubles():
    """Not for each request of a busy endpoint."""
    told = []
    terms = Terms(PriceBook("http://localhost/v1"), tell=told.append)
    for seconds in (5, 30, 40, 59, 3600, None):
        terms.heed(CallError("rate_limited", "slow down", retry_after=seconds))
    assert told == [
        "The endpoint asks to wait 30 seconds: slow down",
        "The endpoint asks to wait 60 minutes: slow down",
    ]
    with pytest.raises(EndpointError, match=r"asks to wait 14 days: slow down\. Run the same command again then"):
        terms.heed(CallError("rate_limited", "slow down", retry_after=14 * 86400))


def test_a_number_beyond_floats_costs_one_reply(tmp_path):
    """It is broken, and the others are there."""

    def raw(body):
        if "3 cats" not in json.dumps(body):
            return None
        value = {"choices": [{"message": {"content": "SUPPORTED"}}], "created": 10**400}
        return [message(200, value)]

    with FaultServer(raw=raw) as endpoint:
        run(endpoint.url, tmp_path / "l", questions(6), retry=RetryPolicy(attempts=1))
    assert outcomes(tmp_path / "l") == {"answered": 5, "broken": 1}
    assert rows(tmp_path / "l", "SELECT message FROM requests WHERE failure = 'broken'")[0][0].endswith("401 digits")
    with History(str(tmp_path / "l")) as history:
        assert len(history.answers([question(i).key for i in range(6)])) == 6


def test_a_lack_of_this_machine_is_not_the_endpoints(tmp_path, monkeypatch, capsys):
    """Without room for more than three connections, all is asked three at a time."""
    import httpx2

    from deep.llm._client import BoundedClient

    send, open_now = BoundedClient.send, [0]

    async def short(self, request, **options):
        if open_now[0] >= 3:
            raise httpx2.ConnectError("All connection attempts failed") from OSError(24, "Too many open files")
        open_now[0] += 1
        try:
            return await send(self, request, **options)
        finally:
            open_now[0] -= 1

    monkeypatch.setattr(BoundedClient, "send", short)
    with FaultServer(latency=0.02) as endpoint:
        ran = run(endpoint.url, tmp_path / "l", questions(40), retry=RetryPolicy(attempts=1, jitter=0.01))
    assert (ran.tally.answered, ran.tally.failed, ran.tally.attempts) == (40, 0, 40)
    assert outcomes(tmp_path / "l").keys() == {"answered", "unsent"}
    assert capsys.readouterr().err.count("This machine has no room for more connections (Too many open files)") == 1


def test_a_machine_without_any_room_says_so(tmp_path, monkeypatch):
    """The remedy is of this machine, and nothing is failed."""
    import httpx2

    from deep.llm._client import BoundedClient

    async def full(self, request, **options):
        raise httpx2.ConnectError("All connection attempts failed") from OSError(24, "Too many open files")

    monkeypatch.setattr(BoundedClient, "send", full)
    policy = RetryPolicy(attempts=2, wait_initial=0.01, jitter=0.01)
    with pytest.raises(EndpointError, match=r"Too many open files\): none for one at a time either\. `ulimit -n`"):
        run("http://127.0.0.1:9/v1", tmp_path / "l", questions(5), retry=policy)
    assert states(tmp_path / "l") == {"queued": 5}


def test_the_commonest_message_of_each_class_is_shown():
    """The advice names the classes that occurred, and no others."""
    tally = Tally()
    for text in ("no route", "no route", "refused"):
        tally.fail("v", CallError("unreachable", text))
    assert {kind: result.most_common(1) for kind, result in tally.failures.items()} == {
        "unreachable": [("no route", 2)]
    }
    classes = _classes({"failed": 3, "unparsable": 1, "refused": 0}, tally.failures)
    assert "--retry-failed unparsable unreachable` asks again" in " ".join(failing_lines({"v": 0.5}, classes))
