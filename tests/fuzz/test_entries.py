"""What comes in by the newer ways, spoilt at random: moments, results of batches, logs of labels, exports, requests.

As in test_fuzz.py, each is taken or refused in one line; a server answers by its contract, and lives.
"""

import asyncio
import json
import os
import socket
import sqlite3
import tempfile
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep import VoteMatrix
from deep.exceptions import DeepError, InputError
from deep.integrations.batch import BatchImporter, FileResults, _results
from deep.integrations.batch._results import take_batches
from deep.integrations.engines import adapt_by_moments, moments_of_votes, read_moments, save_moments
from deep.integrations.foreign import ForeignOptions, read_foreign
from deep.integrations.labeling import read_label_log, write_annotations, write_labels
from deep.integrations.serve import CheckOptions, create_app, serving
from deep.llm import CallError, History, Ledger, PriceBook, Redactor
from deep.model import fit
from tests.fault_server import FaultServer
from tests.fuzz.test_fuzz import BATCH, CORPUS, assert_one_line, refused_or, spoilt
from tests.guests.serve.served import lexical_model
from tests.guests.serve.serving_case import PAIR
from tests.llm.calls import KEY, PRICES, question, questions, run
from tests.model.fitted import small_votes

HUGE = [10**400, -(10**400), 2**63, 1e308, -1, 0, True, None, "", "1", [], {}, "\ud800", "\x00\x1b[31m", [[[]]]]


def changed(draw, value):
    """Return a JSON value with one part of it, however deep, replaced, doubled or taken out."""
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        key = draw(st.sampled_from(sorted(value)))
        rest = {name: part for name, part in value.items() if name != key}
        if draw(st.integers(0, 9)) == 0:
            return rest
        name = draw(st.sampled_from(["\ud800", "", "\x00", "9" * 30])) if draw(st.integers(0, 9)) == 0 else key
        return {**rest, name: changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(value) - 1))
        part = [] if draw(st.integers(0, 9)) == 0 else [changed(draw, value[at])]
        return [*value[:at], *part, *value[at + draw(st.integers(0, 1)) :]]
    return draw(st.sampled_from(HUGE))


@st.composite
def spoilt_json(draw, values):
    """Return JSON with a few of its parts changed, or its bytes spoilt; in half of the cases it stays JSON."""
    for _ in range(draw(st.integers(1, 3))):
        values = changed(draw, values)
    raw = json.dumps(values).encode()
    return raw if draw(st.booleans()) else draw(spoilt(raw))


@pytest.fixture(scope="session")
def counted(tmp_path_factory):
    """Return a model, and the moments of a dataset of cells and of one of sums."""
    path = tmp_path_factory.mktemp("moments") / "moments.json"
    model = fit(small_votes(("a", "b"), n_voters=4), sizes=[3], ensembler="BernoulliNB", calibrator="platt")
    mine = small_votes(("mine",), n_voters=4, seed=3)
    save_moments(moments_of_votes(model, model.select(mine), datasets=["mine"] * len(mine.votes)), path)
    return model, json.loads(path.read_text())


@given(data=st.data())
def test_moments(data, counted):
    """Those that are believed adapt the model, whose P stay between 0 and 1."""
    model, values = counted
    votes = small_votes(("mine",), n_voters=4, seed=3)

    def check(path):
        adapted = adapt_by_moments(model, read_moments(path))
        p = adapted.score(votes)
        assert ((p > 0) & (p < 1)).all()

    refused_or(check, data.draw(spoilt_json(values)), ".json")


ROWS = [json.loads(line) for line in BATCH.splitlines()]


@given(data=st.data())
def test_results_of_batches(data):
    """Results that engines made of exported requests: found by their request, read, or told to be broken."""
    raw = b"".join(data.draw(st.just(json.dumps(row).encode()) | spoilt_json(row)) + b"\n" for row in ROWS * 2)
    refused_or(check_results, raw, ".jsonl")


@pytest.mark.parametrize("path", sorted((CORPUS / "batches").glob("*")), ids=lambda path: path.stem)
def test_results_that_once_broke(path):
    """Each batch file of the corpus."""
    refused_or(check_results, path.read_bytes(), path.suffix)


def test_a_line_without_an_end_is_no_result(tmp_path, monkeypatch):
    """Of a line that is too long no more than the limit is held; those behind it are read."""
    monkeypatch.setattr(_results, "LONGEST_LINE", 400)
    good = json.dumps(ROWS[0]).encode()
    (tmp_path / "out.jsonl").write_bytes(b'{"custom_id": "k1", "response": "' + b"x" * 2000 + b'"}\n' + good)
    with FileResults(tmp_path, Redactor(KEY)) as results:
        assert (results.lines, results.broken) == (1, 1)
        assert [one.line for one in results.of(["k1"])["k1"]] == [ROWS[0]]


def test_a_pipe_among_results_is_refused(tmp_path):
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "out.jsonl")
    with pytest.raises(InputError, match=r"`batch-in` must be a regular file"):
        FileResults(tmp_path, Redactor(KEY))


def check_results(path):
    """Find the results of requests, and read each as an answer, or as the failure of its request."""
    importer = SimpleNamespace(terms=SimpleNamespace(prices=PriceBook("http://127.0.0.1:1/v1", PRICES)))
    with FileResults(path.parent, Redactor(KEY)) as results:
        result = results.of(["k1", "k2", "k3"])
        results.unknown_ids()
        for line in [one.line for key in result for one in result[key]]:
            try:
                digest, reply = BatchImporter._reply(importer, question(0), line)
                assert len(digest) == 32
                assert reply.cost is None or 0 <= reply.cost < np.inf
            except CallError as error:
                assert_one_line(error)


EVENT = {"schema_version": 1, "do": "label", "dataset": "d", "item_id": "i", "person": "Ann", "label": 1}
EVENT |= {"people": 1, "note": "clear", "time": "2026-11-22T10:00:00.000+00:00"}


def check_log(path):
    """Write the tables of a log that is read."""
    book, torn = read_label_log(path)
    assert torn.isprintable()
    write_labels(book, path.with_suffix(".csv"))
    write_annotations(book, path.with_suffix(".annotations.csv"))


@given(data=st.data())
def test_logs_of_labels(data):
    """JSON lines that only `deep label` should have written."""
    events = [EVENT | {"do": "queue", "person": ""}, EVENT, EVENT | {"person": "Bob", "label": 0}]
    lines = [data.draw(st.just(json.dumps(event).encode()) | spoilt_json(event)) for event in events]
    refused_or(check_log, b"\n".join(lines) + data.draw(st.sampled_from([b"\n", b""])), ".jsonl")


STATES = st.sampled_from(["collected", "creating", "doubtful", "filling", "open", "exported", "", None, 7, b"\xff"])


CASES = settings.default.max_examples


@settings(max_examples=max(CASES // 10, min(CASES, 40)))  # a case opens a ledger several times: a third of a second
@given(data=st.data())
def test_rows_of_a_ledger(data, ledger_bytes):
    """Values that somebody put into a ledger, its batches among them: read, entered from a kept file, or one line."""
    with tempfile.TemporaryDirectory() as folder:
        path, kept = Path(folder, "l"), Path(folder, "l.kept-1")
        path.write_bytes(ledger_bytes)
        kept.write_bytes(ledger_bytes)
        for _ in range(data.draw(st.integers(1, 3))):
            table = data.draw(
                st.sampled_from(["requests", "attempts", "items", "batches", "runs", "quirks", "deep_meta"])
            )
            with closing(sqlite3.connect(kept)) as connection:
                names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
                value = data.draw(STATES | st.sampled_from(VALUES))
                with suppress(sqlite3.Error), connection:
                    connection.execute(f"UPDATE {table} SET {data.draw(st.sampled_from(names))} = ?", (value,))
        if data.draw(st.booleans()):
            path.write_bytes(kept.read_bytes())
        try:
            asyncio.run(_open_and_read(str(path)))
        except DeepError as error:
            assert_one_line(error)


VALUES = [2**63 - 1, -1, 1e308, "\x00", "{", "[]", "\x1b[31m"]
VALUES += ['{"choices": [{"message": {"content": 7}}], "usage": {"prompt_tokens": 1e400}}']


async def _open_and_read(path):
    async with Ledger(path) as ledger:
        await ledger.call(take_batches, "server", ledger.run, ledger.live_runs)
        await ledger.lease([question(n) for n in range(4)])
    with History(path) as history:
        history.answers([question(n).key for n in range(4)])
        history.report()


@pytest.fixture(scope="session")
def ledger_bytes(tmp_path_factory):
    """Return a ledger of four answers, two of them of a batch."""
    path = tmp_path_factory.mktemp("ledger") / "l"
    with FaultServer() as server:
        run(server.url, path, questions(2))
        run(server.url, path, questions(4), batch=True)
    return path.read_bytes()


ARGILLA = [{"id": "a", "_server_id": None, "q.responses": ["yes", "no"], "q.responses.users": ["u1", "u2"]}]
ARGILLA += [{"id": "b", "responses": {"q": [{"value": "yes", "user_id": "u1"}]}}]
CHOSEN = {"from_name": "q", "to_name": "text", "type": "choices", "value": {"choices": ["yes"]}}
STUDIO = [{"id": n, "annotations": [{"completed_by": 1, "was_cancelled": False, "result": [CHOSEN]}]} for n in (7, 8)]


@given(data=st.data())
def test_exports_of_labeling_tools(data):
    """Of Argilla and of Label Studio: votes, or one line."""
    values = data.draw(st.sampled_from([ARGILLA, STUDIO]))

    def check(path):
        votes = read_foreign([path], ForeignOptions(answer="q", dataset="d")).votes()
        assert np.isin(votes.votes, (1, 0, -1)).all()
        votes.to_frame()

    refused_or(check, data.draw(spoilt_json(values)), ".json")


CELLS = st.sampled_from([*HUGE, 1, 0, 1.0, float("nan"), float("inf"), b"1", "yes", np.int8(1), {"a": 1}, object()])


@given(
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS, CELLS), max_size=4),
    names=st.permutations(["item_id", "a", "label", "dataset", "voter", "vote"]),
    library=st.sampled_from(["pandas", "polars", "pyarrow"]),
)
def test_frames(rows, names, library):
    """Of whatever Python objects a notebook may put into one."""
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names[:4])}
    try:
        frame = _frame(columns, library)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        return  # the library itself has no such frame
    try:
        votes = VoteMatrix.from_frame(frame, dataset=None if "dataset" in columns else "d")
    except DeepError as error:
        assert_one_line(error)
    else:
        assert np.isin(votes.votes, (1, 0, -1)).all()


def _frame(columns, library):
    if library == "pandas":
        import pandas as pd

        return pd.DataFrame(columns)
    if library == "polars":
        import polars as pl

        try:
            return pl.DataFrame(columns, strict=False)
        except pl.exceptions.PolarsError as error:
            raise ValueError from error
    return pa.table(columns)


@pytest.fixture(scope="module")
def served():
    """Return the address of a served model of lexical checks."""
    with serving(create_app(lexical_model(), CheckOptions())) as address:
        host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
        yield host, int(port)


def said(served, data, truncated=False):
    """Return the status and the body of what a server answers to some bytes; None where it says nothing."""
    with socket.create_connection(served, timeout=120) as client:
        client.sendall(data)
        if truncated:
            client.shutdown(socket.SHUT_WR)
        parts = []
        while part := client.recv(1 << 16):
            parts.append(part)
    raw = b"".join(parts)
    head, _, body = raw.partition(b"\r\n\r\n")
    return (int(head.split(b" ", 2)[1]), body) if head else None


def no_constant(name):
    """Refuse what is no JSON."""
    raise AssertionError(name)


ASKED = [{**PAIR, "id": "a"}, PAIR]


@given(data=st.data())
def test_bodies_of_requests(data, served):
    """A result with P between 0 and 1 for each pair, or an error of one line."""
    body = data.draw(spoilt_json(data.draw(st.sampled_from([PAIR, ASKED]))))
    head = "POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\nContent-Type: application/json\r\n"
    status, raw = said(served, (head % served[1]).encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    answer = json.loads(raw, parse_constant=no_constant)
    assert status in (200, 400, 413, 422), (status, answer)
    if status != 200:
        assert answer["error"]["message"].isprintable()
        return
    for result in answer.get("results", [answer]):
        assert 0 < result["p_consistent"] < 1


REQUEST = (
    b"POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)


@given(data=st.data())
def test_requests(data, served):
    """Bytes that are hardly HTTP: an answer, or nothing; and the next request is answered."""
    body = json.dumps(PAIR).encode()
    answer = said(served, data.draw(spoilt(REQUEST % (len(body), body))), truncated=True)
    assert answer is None or answer[0] != 500
    health = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % served[1]
    assert said(served, health)[0] == 200
