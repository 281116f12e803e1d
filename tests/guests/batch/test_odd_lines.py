"""Odd lines in batch files, and odd answers about batches: one bad line costs that line, and nothing is a traceback."""

import asyncio
import json

import pytest
from aiohttp import web

from deep.exceptions import DeepError
from deep.integrations.batch import FileResults
from deep.llm import Redactor, RetryPolicy
from tests.attack.odd_replies import completion
from tests.fault_server import FaultServer
from tests.llm.calls import questions, run, states

N = 12


def _line(status=200, body=None, error=None, **more):
    return {"response": {"status_code": status, "body": completion() if body is None else body}, "error": error, **more}


LINES = {
    "a status beyond 64 bits": json.dumps(_line(2**63)),
    "a status of 10^30": json.dumps(_line(10**30)),
    "a negative status": json.dumps(_line(-200)),
    "a status that is true": json.dumps(_line(True)),
    "a status that is a fraction": json.dumps(_line(200.5)),
    "a status of 5,000 digits": json.dumps(_line()).replace("200", "2" * 5000, 1),
    "a status 1e400": json.dumps(_line()).replace("200", "1e400", 1),
    "a redirect": json.dumps(_line(307, {"error": {"message": "elsewhere"}})),
    "an answer and an error": json.dumps(_line(error={"message": "it died", "code": "x"})),
    "an error in the body": json.dumps(_line(body=completion(error={"message": "it died"}))),
    "an error that is a text": json.dumps(_line(error="it died")),
    "a body that is a text": json.dumps(_line(body=json.dumps(completion()))),
    "a body of null": json.dumps({"response": {"status_code": 200, "body": None}, "error": None}),
    "deeper than Python reads": '{"response": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "deeper than Python writes": json.dumps(_line(body=1)).replace('"body": 1', '"body": ' + "[" * 900 + "]" * 900),
    "two million values": '{"response": {"status_code": 200, "body": {"choices": [' + "[]," * 2_000_000 + "0]}}}",
    "9 MiB": json.dumps(_line(body=completion("a" * (9 << 20)))),
    "cut in the middle": json.dumps(_line())[:60],
}
"""Results of a request, without its id, that hold no answer to be trusted."""

GOOD_LINES = {
    "usage 1e400": json.dumps(_line()).replace('"prompt_tokens": 10', '"prompt_tokens": 1e400', 1),
    "usage NaN": json.dumps(_line()).replace('"prompt_tokens": 10', '"prompt_tokens": NaN', 1),
    "created 10^30": json.dumps(_line(body=completion(created=10**30))),
    "an empty error": json.dumps(_line(error={})),
}


def with_line(line):
    """Return the results of a batch, the fifth of which is another line."""

    def misprinted(lines, _):
        texts = [json.dumps(entry) for entry in lines]
        odd = f'{{"custom_id": "{lines[4]["custom_id"]}", {line[1:]}'
        return [text.encode() for text in (*texts[:4], odd, *texts[5:])]

    return misprinted


@pytest.mark.parametrize("name", [*LINES, *GOOD_LINES])
def test_one_bad_line_costs_that_line(name, tmp_path, monkeypatch):
    """All others are collected, and nothing stays as sent."""
    line = {**LINES, **GOOD_LINES}[name]
    monkeypatch.setattr("tests.fault_server._misprinted", with_line(line))
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(N), batch=True, retry=RetryPolicy(at_most_once=True))
    lost = name in LINES
    assert states(tmp_path / "l") == ({"done": N - 1, "failed": 1} if lost else {"done": N})


def test_nor_does_it_in_a_file(tmp_path):
    """Files are read by another way, with the same rules."""
    good = [json.dumps({"custom_id": f"k{i}", **_line()}) for i in range(len(LINES) + 1)]
    odd = [f'{{"custom_id": "odd{i}", {line[1:]}' for i, line in enumerate(LINES.values())]
    lines = [line for pair in zip(good, odd, strict=False) for line in pair]
    (tmp_path / "r.jsonl").write_text("\n".join([*lines, good[-1]]) + "\n")
    with FileResults(tmp_path, Redactor()) as results:
        assert set(results.of([f"k{i}" for i in range(len(good))])) == {f"k{i}" for i in range(len(good))}


ANSWERS = {
    "a page": lambda: web.Response(text="<html>hello</html>", content_type="text/html"),
    "a page as JSON": lambda: web.Response(text="<html>hello</html>", content_type="application/json"),
    "null": lambda: web.json_response(None),
    "an empty object": lambda: web.json_response({}),
    "a list": lambda: web.json_response([1, 2]),
    "deep": lambda: web.Response(text="[" * 100_000, content_type="application/json"),
    "larger than 8 MiB": lambda: web.Response(body=b" " * (9 << 20), content_type="application/json"),
    "204": lambda: web.Response(status=204),
}


QUICK = RetryPolicy(2, 0.01, 0.02, 0.01)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("call", ["_upload", "_get_batch"])
def test_an_odd_answer_about_a_batch_is_one_line(call, name, tmp_path, monkeypatch):
    """An error of deep's own kind, with no request lost: the next run goes on."""
    good, odd = getattr(FaultServer, call), {"on": True}

    async def answer(*asked):
        return ANSWERS[name]() if odd["on"] else await good(*asked)

    monkeypatch.setattr(FaultServer, call, answer)
    with FaultServer() as server:
        with pytest.raises(DeepError, match="`batch`"):
            run(server.url, tmp_path / "l", questions(3), batch=True, retry=QUICK)
        odd["on"] = False
        run(server.url, tmp_path / "l", questions(3), batch=True)
        assert list(server.copies().values()) == [1, 1, 1]
    assert states(tmp_path / "l") == {"done": 3}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("made", [False, True])
def test_an_odd_answer_to_the_making_of_a_batch_is_told(made, name, tmp_path, monkeypatch, capsys):
    """A batch that was made is found; one that is not listed may have been, so it is told, and at last left alone."""
    make, odd = FaultServer._create_batch, {"on": True}

    async def answer(*asked):
        good = await make(*asked) if made or not odd["on"] else None
        return ANSWERS[name]() if odd["on"] else good

    monkeypatch.setattr(FaultServer, "_create_batch", answer)
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(3), batch=True, retry=QUICK)
        told = capsys.readouterr().err.splitlines()
        odd["on"] = False
        run(server.url, tmp_path / "l", questions(3), batch=True)
        assert states(tmp_path / "l") == ({"done": 3} if made else {"failed": 3})
        assert len(server.batches) == made
        run(server.url, tmp_path / "l", questions(3), batch=True, retry_failed=["unknown"])
        assert list(server.copies().values()) == [1, 1, 1]
    message = "3 requests are in a batch that the endpoint did not confirm"
    assert [line.partition(" and does not")[0] for line in told] == ([] if made else [message, message])
    assert states(tmp_path / "l") == {"done": 3}


def test_a_result_file_that_is_cut_off_is_fetched_again(tmp_path, monkeypatch):
    """The connection breaks while it comes."""
    seen = []
    whole = FaultServer._download

    async def cut(self, request):
        seen.append(1)
        if len(seen) > 1:
            return await whole(self, request)
        response = web.StreamResponse(headers={"Content-Length": "100000"})
        await response.prepare(request)
        await response.write(b"{")
        await asyncio.sleep(0)
        request.transport.close()
        return response

    monkeypatch.setattr(FaultServer, "_download", cut)
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(3), batch=True)
    assert states(tmp_path / "l") == {"done": 3}


FILES = {
    "a page": lambda content: b"<html>maintenance</html>",
    "an error": lambda content: b'{"error": {"message": "the file is being prepared"}}',
    "nothing": lambda content: b"",
    "one list": lambda content: b"[" + b",".join(content.splitlines()) + b"]",
    "UTF-16": lambda content: content.decode().encode("utf-16"),
    "the first half": lambda content: b"\n".join(content.splitlines()[:3]),
    "the first half, cut": lambda content: content[: len(content) // 2],
}


def changed_answer(monkeypatch, **values):
    """Let all that a server says of a batch that has ended have other values."""
    plain = FaultServer._get_batch

    async def answer(server, request):
        result = json.loads((await plain(server, request)).body)
        return web.json_response(result | (values if result["status"] == "completed" else {}))

    monkeypatch.setattr(FaultServer, "_get_batch", answer)


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_the_results_is_no_end_of_what_was_paid(name, tmp_path, monkeypatch):
    """Nothing is failed nor asked again: the next run fetches the file once more, or is told to take what is there."""
    plain, odd = FaultServer._download, {"on": True}

    async def download(server, request):
        content = (await plain(server, request)).body
        return web.Response(body=FILES[name](content) if odd["on"] else content)

    monkeypatch.setattr(FaultServer, "_download", download)
    if name.startswith("the first half"):
        changed_answer(monkeypatch, request_counts={"total": 6, "completed": 6, "failed": 0})
    with FaultServer() as server:
        with pytest.raises(DeepError, match=r"`batch` must come with its results\. Got [034] results for [16] or more"):
            run(server.url, tmp_path / "l", questions(6), batch=True)
        assert states(tmp_path / "l") == {"sent": 6}
        odd["on"] = False
        run(server.url, tmp_path / "l", questions(6), batch=True)
        assert list(server.copies().values()) == [1] * 6
    assert states(tmp_path / "l") == {"done": 6}


def test_what_is_there_is_taken_where_that_is_asked_for(tmp_path, monkeypatch):
    """A server that counts wrongly stops nobody for ever."""
    changed_answer(monkeypatch, request_counts={"total": 6, "completed": 60, "failed": 0})
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(6), batch=True, retry_failed=["expired"])
    assert states(tmp_path / "l") == {"done": 6}


@pytest.mark.parametrize("values", [{"status": ["completed"]}, {"status": {"is": "completed"}}])
def test_a_state_that_is_no_word_is_one_line(values, tmp_path, monkeypatch):
    """And nothing is given up."""
    changed_answer(monkeypatch, **values)
    with FaultServer() as server, pytest.raises(DeepError, match="a status that is not text"):
        run(server.url, tmp_path / "l", questions(3), batch=True, retry=QUICK)
    assert states(tmp_path / "l") == {"sent": 3}


@pytest.mark.parametrize("values", [{"request_counts": "3"}, {"request_counts": [3]}, {"status": "failed"}])
def test_results_are_taken_whatever_is_said_beside_them(values, tmp_path, monkeypatch):
    """Counts that are none, and a batch that failed and yet has answers, which were paid."""
    changed_answer(monkeypatch, **values)
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(3), batch=True)
        assert list(server.copies().values()) == [1, 1, 1]
    assert states(tmp_path / "l") == {"done": 3}


def each(page, **values):
    """Return a page of a list with other values in every entry."""
    return page | {"data": [one | values for one in page["data"]]}


LISTS = {
    "the same page for ever": lambda page: page | {"has_more": True},
    "an entry without an id": lambda page: page | {"data": [{"object": "batch", "metadata": {}}, *page["data"]]},
    "entries that are no objects": lambda page: page | {"data": ["batch-1", 7, None, *page["data"]]},
    "metadata that is a text": lambda page: each(page, metadata="deep_batch"),
    "a mark that is a number": lambda page: (
        page | {"data": [one | {"metadata": {"deep_batch": 1}} for one in page["data"]]}
    ),
    "an id that is a list": lambda page: page | {"data": [one | {"id": ["x"]} for one in page["data"]]},
    "data of null": lambda page: page | {"data": None},
}


@pytest.mark.parametrize("name", LISTS)
def test_an_odd_list_of_batches_ends_and_makes_no_traceback(name, tmp_path, monkeypatch):
    """Where the answer to the making is lost: what the list does not show is told; all are answered."""
    plain, told = FaultServer._list_batches, []

    async def listed(server, request):
        result = json.loads((await plain(server, request)).body)
        return web.json_response(LISTS[name](result))

    monkeypatch.setattr(FaultServer, "_list_batches", listed)

    def started(runner):
        runner.tell = told.append

    with FaultServer(script=["dropped"]) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True, started=started)
        made = len(server.batches)
    assert states(tmp_path / "l") == {"done": 4}
    assert (made > 1) == bool(told)


def test_documents_in_a_batch_have_no_file_that_a_kill_could_leave(tmp_path, monkeypatch):
    """At no step of a batch is there a file with a name in the folder for temporary ones."""
    folder, result = tmp_path / "temporary", {}
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    async def look(step):
        result.setdefault(step, []).extend(folder.iterdir())

    with FaultServer(at_step=look) as server:
        run(server.url, tmp_path / "l", questions(4), batch=True)
    assert states(tmp_path / "l") == {"done": 4}
    assert result.keys() >= {"upload", "uploaded", "create", "poll", "download", "downloaded"}
    assert not any(result.values())
