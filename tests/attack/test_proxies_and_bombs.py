"""Proxies that the environment names, and replies that are small only as long as they are compressed."""

import asyncio
import gzip
import json
import zlib

import httpx2
import pytest

from deep.exceptions import InputError
from deep.llm import _client
from tests.attack.odd_replies import completion, http
from tests.fault_server import FaultServer
from tests.llm.calls import FAST, outcomes, questions, run, states

MIB = 1 << 20


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_an_endpoint_of_this_machine_is_asked_by_no_proxy(name, tmp_path, monkeypatch):
    """A proxy would get the documents, and knows another machine by that address."""
    with FaultServer() as server, FaultServer(host="127.0.0.2") as proxy:
        monkeypatch.setenv(name, proxy.url.removesuffix("/v1"))
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        run(server.url, tmp_path / "l", questions(3))
        assert (server.count, proxy.count) == (3, 0)
        assert _client.Client("http://far.example/v1").openai._client.trust_env  # as other programs go


@pytest.mark.parametrize("value", ["foo://x", "socks5://user:s3cret@127.0.0.1:9", "http://[::1"])
def test_a_proxy_that_cannot_be_used_is_one_line(value, monkeypatch):
    """Without what stands in the environment, which may be a password."""
    monkeypatch.setenv("ALL_PROXY", value)
    with pytest.raises(InputError, match=r"^`HTTPS_PROXY`.* must name proxies that can be used.*NO_PROXY\.$") as error:
        _client.Client("https://far.example/v1")
    assert "s3cret" not in str(error.value)


class Reply(httpx2.AsyncByteStream):
    """A body in pieces."""

    def __init__(self, *pieces):
        self.pieces = pieces

    async def __aiter__(self):
        for piece in self.pieces:
            yield piece


def inflated(encoding, *pieces):
    """Return the pieces into which a body is decompressed."""

    async def read():
        response = httpx2.Response(200, headers={"content-encoding": encoding}, stream=Reply(*pieces))
        return [part async for part in _client._inflated(response)]

    return asyncio.run(read())


@pytest.mark.parametrize("window", [31, 15, -15])
def test_a_bomb_is_decompressed_in_small_pieces(window):
    """However much one piece of it holds, and all of it comes."""
    compress = zlib.compressobj(9, zlib.DEFLATED, window)
    bomb = compress.compress(b" " * 64 * MIB) + compress.flush()
    result = inflated("gzip" if window == 31 else "deflate", bomb[:1], bomb[1:70_000], b"", bomb[70_000:])
    assert max(map(len, result)) <= _client.SMALL_REPLY
    assert sum(map(len, result)) == 64 * MIB
    assert inflated("identity", b"ab", b"c") == [b"ab", b"c"]


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br", "zstd", "rot13"])
@pytest.mark.parametrize("status", [200, 500])
def test_a_reply_that_is_compressed_otherwise_is_not_decompressed(encoding, status, tmp_path):
    """A bomb in a bomb holds a million times what comes; it is broken, and an error is known by its status."""
    body = gzip.compress(gzip.compress(completion_bytes()))
    head = http(body, Content_Encoding=encoding).replace(b"200 OK", f"{status} It".encode(), 1)
    with FaultServer(raw=lambda asked: [head] if "0 cats" in str(asked) else None) as server:
        ran = run(server.url, tmp_path / "l", questions(3), retry=FAST)
    assert states(tmp_path / "l") == {"done": 2, "failed": 1}
    assert outcomes(tmp_path / "l").keys() == {"answered", "broken" if status == 200 else "server_error"}
    assert ran.tally.answered == 2


def completion_bytes():
    """Return a reply that would be a vote."""
    return json.dumps(completion()).encode()
