"""Servers under test, and requests to them as programs and strangers make them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ROOT = Path(__file__).resolve().parents[3]
PAIR = {"source": "Rain fell on Monday. The river rose by 14 cm.", "claim": "The river rose by 41 cm."}


def ask(address, path="/v1/check", body=None, method=None, **headers):
    """Return status, JSON and headers of one request."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"Content-Type": "application/json"} if data is not None else {}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(f"{address}{path}", data, fields, method=method)
    try:
        with urlopen(request, timeout=60) as answer:
            raw, status, result = answer.read(), answer.status, answer.headers
    except HTTPError as error:
        raw, status, result = error.read(), error.code, error.headers
    return status, json.loads(raw) if raw else None, result


def code_of(answer):
    """Return the status of an answer and the code of its error, after a look at its one shape."""
    status, body, _ = answer
    assert set(body) == {"error"}
    assert {"code", "message"} <= set(body["error"])
    assert "\n" not in body["error"]["message"]
    return status, body["error"]["code"]


def connected(address):
    """Return a socket that is connected to a server."""
    host, _, port = address.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), timeout=300)


def raw(address, data):
    """Return all that a server answers to some bytes until it closes the connection or says no more."""
    with connected(address) as client:
        client.sendall(data)
        return until_closed(client)


def until_closed(client):
    """Return all that comes until the connection ends."""
    parts = []
    with contextlib.suppress(ConnectionError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


@contextlib.contextmanager
def command(*words, cwd=ROOT, **environment):
    """Run `deep serve` in a process, and yield it and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "deep", "serve", *map(str, words), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("serving http://127.0.0.1:"), process.stderr.read()
        yield process, line.split()[1].partition("?")[0].rstrip("/")
    finally:
        process.kill()
        process.communicate()
