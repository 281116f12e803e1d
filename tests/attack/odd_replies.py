"""Replies that no server should send, by name: the pieces of the HTTP reply, and the vote that may be made of them."""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

Pieces = Iterable[bytes | float]

MIB = 1 << 20
YES, NO = "VERDICT: SUPPORTED", "VERDICT: NOT SUPPORTED"


def completion(content: Any = YES, finish: Any = "stop", message: dict[str, Any] | None = None, **more: Any) -> Any:
    """Return a chat completion; `more` are fields of it."""
    printed = {"role": "assistant", "content": content, **(message or {})}
    choice = {"index": 0, "finish_reason": finish, "message": printed}
    n = 50 if finish == "length" else 5  # the limit of the questions in tests/llm/calls.py
    usage = {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": usage,
        **more,
    }


def http(
    body: Any, *, status: str = "200 OK", kind: str = "application/json", length: int | None = -1, **headers: str
) -> bytes:
    """Return a whole HTTP reply; with `length` None it ends where the connection does."""
    raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += [] if length is None else [f"Content-Length: {len(raw) if length == -1 else length}"]
    return ("\r\n".join([*lines, "Connection: close", "", ""])).encode("latin-1") + raw


def inflating(mebibytes: int, encoding: str) -> Iterator[bytes]:
    """Yield a compressed body of so many MiB of blanks with an answer before them."""
    yield http(b"", length=None, Content_Encoding=encoding)
    wbits = {"gzip": 31, "deflate": 15, "raw": -15}[encoding]
    press = zlib.compressobj(9, zlib.DEFLATED, wbits)
    yield press.compress(json.dumps(completion()).encode())
    for _ in range(mebibytes):
        yield press.compress(b" " * MIB)
    yield press.flush()


def endless(piece: bytes, head: bytes = b"", **options: Any) -> Iterator[bytes]:
    """Yield a body that does not end."""
    yield http(head, length=None, **options)
    while True:
        yield piece


def chunked(*parts: bytes, end: bool = True) -> bytes:
    """Return a reply in chunks."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + (b"0\r\n\r\n" if end else b"")


def _text(**fields: Any) -> str:
    return json.dumps(completion(**fields))


def _with(old: str, new: str) -> bytes:
    """Return a reply in whose JSON one thing is written otherwise."""
    text = _text()
    assert old in text, old
    return http(text.replace(old, new, 1))


def _nested(depth: int, open_: str = "[", close: str = "]") -> str:
    return open_ * depth + close * depth


GOOD = _text().encode()

ODD: dict[str, Callable[[], Pieces]] = {
    # sizes
    "gzip bomb of 1 GiB": lambda: inflating(1024, "gzip"),
    "deflate bomb of 256 MiB": lambda: inflating(256, "deflate"),
    "gzip in gzip": lambda: [http(gzip.compress(gzip.compress(GOOD + b" " * 9 * MIB)), Content_Encoding="gzip, gzip")],
    "200 MB of blanks": lambda: [http(b"", length=200 * MIB), *([b" " * MIB] * 200)],
    "200 MB of content": lambda: [http(b"", length=None), GOOD[:80], *([b"a" * MIB] * 200)],
    "a body that never ends": lambda: endless(b" " * MIB, GOOD),
    "chunks that never end": lambda: [chunked(GOOD, end=False), *([b"100000\r\n" + b" " * MIB + b"\r\n"] * 400)],
    "two million values": lambda: [http('{"choices": [' + "[]," * 2_000_000 + "0]}")],
    "two million numbers": lambda: [http('{"choices": [' + "1.5," * 1_900_000 + "0]}")],
    # time
    "slow drip": lambda: iter([http(b"", length=1000), *([b" ", 0.05] * 400)]),
    "headers that never end": lambda: iter([b"HTTP/1.1 200 OK\r\n", *([b"X-A: b\r\n", 0.05] * 400)]),
    "nothing at all": lambda: [60.0],
    "the answer, then silence": lambda: [http(GOOD, length=len(GOOD) + 1), 60.0],
    # HTTP
    "early close": lambda: [http(GOOD[:40], length=len(GOOD))],
    "length too small": lambda: [http(GOOD, length=20)],
    "length too large": lambda: [http(GOOD, length=10_000)],
    "length that is no number": lambda: [http(GOOD, length=None, Content_Length="many")],
    "two lengths": lambda: [http(GOOD, Content_length="5")],
    "chunks without an end": lambda: [chunked(GOOD, end=False)],
    "a chunk of a false size": lambda: [chunked(GOOD).replace(b"\r\n{", b"ffff\r\n{", 1)],
    "header flood": lambda: [b"HTTP/1.1 200 OK\r\n" + b"X-Flood: 0123456789\r\n" * 100_000 + b"\r\n" + GOOD],
    "one header of 1 MiB": lambda: [http(GOOD, X_Long="a" * MIB)],
    "a header with control characters": lambda: [http(GOOD, X_Odd="\x1b[31m\x00")],
    "thousands of 1xx": lambda: [*([b"HTTP/1.1 102 Processing\r\n\r\n" * 1000] * 300), 30.0],
    "101": lambda: [http("", status="101 Switching Protocols", Upgrade="websocket")],
    "204": lambda: [http("", status="204 No Content")],
    "205": lambda: [http("", status="205 Reset Content")],
    "304": lambda: [http("", status="304 Not Modified")],
    "999": lambda: [http(GOOD, status="999 Odd")],
    "HTTP/0.9": lambda: [GOOD],
    "HTTP/2 preface": lambda: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    "a failure with a good body": lambda: [http(GOOD, status="500 Internal Server Error")],
    "a bomb as an error": lambda: [
        next(inflating(1, "gzip")).replace(b"200 OK", b"500 No"),
        *list(inflating(64, "gzip"))[1:],
    ],
    # encodings
    "gzip that is none": lambda: [http(GOOD, Content_Encoding="gzip")],
    "gzip cut off": lambda: [http(gzip.compress(GOOD)[:60], Content_Encoding="gzip")],
    "gzip with a false checksum": lambda: [http(gzip.compress(GOOD)[:-8] + b"\0" * 8, Content_Encoding="gzip")],
    "an encoding nobody knows": lambda: [http(gzip.compress(GOOD), Content_Encoding="rot13")],
    "brotli that is none": lambda: [http(b"\x8b\x02\x80" + GOOD, Content_Encoding="br")],
    "zstd that is none": lambda: [http(b"\x28\xb5\x2f\xfd" + GOOD, Content_Encoding="zstd")],
    "nine encodings": lambda: [http(GOOD, Content_Encoding=", ".join(["gzip"] * 9))],
    "bytes that are no text": lambda: [http(bytes(range(256)) * 20)],
    "NUL bytes before it": lambda: [http(b"\0" * 20 + GOOD)],
    # JSON
    "empty": lambda: [http("")],
    "null": lambda: [http("null")],
    "a number": lambda: [http("1")],
    "a text": lambda: [http(json.dumps(YES))],
    "a list of completions": lambda: [http([completion()])],
    "nested 100,000 deep": lambda: [http(_nested(100_000))],
    "objects 100,000 deep": lambda: [http('{"a":' * 100_000 + "1" + "}" * 100_000)],
    "an answer beside 900 levels": lambda: [_with('"id": "c"', '"id": ' + _nested(900))],
    "an answer beside 100 levels": lambda: [_with('"id": "c"', '"id": ' + _nested(100))],
    "an integer of 5,000 digits": lambda: [_with('"created": 1', '"created": ' + "9" * 5000)],
    "two choices under one name": lambda: [_with('"choices"', '"choices": [], "choices"')],
    "two contents under one name": lambda: [_with('"content"', f'"content": "{NO}", "content"')],
    "two finish reasons": lambda: [
        _with('"finish_reason": "stop"', '"finish_reason": "error", "finish_reason": "stop"')
    ],
    "single quotes": lambda: [http(repr(completion()))],
    "a trailing comma": lambda: [http(_text()[:-1] + ",}")],
    "words behind it": lambda: [http(_text() + " done")],
    "two completions": lambda: [http(_text() * 2)],
    "lines of JSON": lambda: [http(_text() + "\n" + _text())],
    # pages and streams
    "an HTML page": lambda: [http(f"<html><body>{YES}</body></html>", kind="text/html")],
    "a login page as JSON": lambda: [http(f"<html>{YES}</html>")],
    "a stream of events": lambda: [http(f"data: {_text()}\n\ndata: [DONE]\n\n", kind="text/event-stream")],
    "a chunk of a stream": lambda: [
        http({"choices": [{"delta": {"content": YES}}], "object": "chat.completion.chunk"})
    ],
    "the old API's text": lambda: [http({"choices": [{"text": YES, "finish_reason": "stop"}]})],
    "the responses API": lambda: [http({"output": [{"content": [{"type": "output_text", "text": YES}]}]})],
    # completions without an answer
    "no choices": lambda: [http(completion(choices=[]))],
    "choices null": lambda: [http(completion(choices=None))],
    "choices an object": lambda: [http(completion(choices={"0": completion()["choices"][0]}))],
    "choices of null": lambda: [http(completion(choices=[None]))],
    "message null": lambda: [http(completion(choices=[{"message": None}]))],
    "message a text": lambda: [http(completion(choices=[{"message": YES}]))],
    "content null": lambda: [http(completion(None))],
    "content a number": lambda: [http(completion(1))],
    "content true": lambda: [http(completion(content=True))],
    "content an object": lambda: [http(completion({"text": YES}))],
    "parts without text": lambda: [http(completion([{"type": "image_url", "image_url": {"url": YES}}]))],
    "a refusal beside the answer": lambda: [http(completion(message={"refusal": "I will not."}))],
    "a tool call": lambda: [http(completion(None, "tool_calls", {"tool_calls": [{"function": {"arguments": YES}}]}))],
    "reasoning alone": lambda: [http(completion(None, message={"reasoning_content": YES}))],
    "cut off by a filter": lambda: [http(completion(finish="content_filter"))],
    "an error with 200": lambda: [http({"error": {"message": YES, "code": 429}})],
    "an error beside the answer": lambda: [http(completion(error={"message": "upstream died"}))],
    "an error in the choice": lambda: [
        http(completion(choices=[{**completion()["choices"][0], "error": {"code": 502}}]))
    ],
    "broken off by the server": lambda: [http(completion(finish="error"))],
    "aborted": lambda: [http(completion(finish="abort"))],
}
"""None of these holds an answer that can be trusted."""

READABLE: dict[str, Callable[[], Pieces]] = {
    "a BOM": lambda: [http(b"\xef\xbb\xbf" + GOOD)],
    "UTF-16": lambda: [http(_text().encode("utf-16"))],
    "UTF-32 without a BOM": lambda: [http(_text().encode("utf-32-le"))],
    "a character set that is a compression": lambda: [http(GOOD, kind="application/json; charset=zlib")],
    "a character set nobody knows": lambda: [http(GOOD, kind="application/json; charset=klingon")],
    "a false character set": lambda: [http(GOOD, kind="application/json; charset=utf-16")],
    "a false type": lambda: [http(GOOD, kind="image/png")],
    "no type": lambda: [http(GOOD, kind="")],
    "raw deflate": lambda: [next(inflating(1, "raw")).replace(b": raw", b": deflate"), *list(inflating(1, "raw"))[1:]],
    "no length": lambda: [http(GOOD, length=None)],
    "bytes in chunks of one": lambda: [chunked(*(bytes([byte]) for byte in GOOD))],
    "201": lambda: [http(GOOD, status="201 Created")],
    "a 100 before it": lambda: [b"HTTP/1.1 100 Continue\r\n\r\n" + http(GOOD)],
    "content in parts": lambda: [
        http(completion([{"type": "text", "text": "VERDICT: "}, {"text": "SUPPORTED"}, 7, None]))
    ],
    "seven choices": lambda: [http(completion(choices=completion()["choices"] * 7))],
    "another model": lambda: [http(completion(model="\u202egpt-9\x1b[31m"))],
    "model a number": lambda: [http(completion(model=7))],
    "lone surrogates": lambda: [http(completion("half \ud800\n" + YES))],
    "NUL in the content": lambda: [http(completion("\0\n" + YES))],
    "usage negative": lambda: [http(completion(usage={"prompt_tokens": -5, "completion_tokens": -1}))],
    "usage absent": lambda: [http({name: value for name, value in completion().items() if name != "usage"})],
    "usage a text": lambda: [http(completion(usage="many"))],
    "usage of texts": lambda: [http(completion(usage={"prompt_tokens": "10", "completion_tokens": "5"}))],
    "usage of 10^30": lambda: [http(completion(usage={"prompt_tokens": 10**30, "completion_tokens": 10**30}))],
    "usage of 2^63": lambda: [http(completion(usage={"prompt_tokens": 2**63, "completion_tokens": 2**63}))],
    "usage 1e400": lambda: [_with('"prompt_tokens": 10', '"prompt_tokens": 1e400')],
    "usage NaN": lambda: [_with('"prompt_tokens": 10', '"prompt_tokens": NaN')],
    "created Infinity": lambda: [_with('"created": 1', '"created": -Infinity')],
    "created 10^30": lambda: [http(completion(created=10**30))],
    "log-probabilities of nothing": lambda: [
        http(completion(choices=[{**completion()["choices"][0], "logprobs": {"content": [None, 7, {"token": 1}]}}]))
    ],
    "finish reason a number": lambda: [http(completion(finish=7))],
    "a thousand unknown fields": lambda: [http(completion(**{f"x{i}": {"y": [i]} for i in range(1000)}))],
    "7 MiB of reasoning before it": lambda: [http(completion("a" * 7 * MIB + "\n" + YES))],
    "7 MiB of four-byte characters": lambda: [
        http(json.dumps(completion("\U0001f600" * (7 * MIB // 4) + "\n" + YES), ensure_ascii=False))
    ],
}
"""Odd, and an answer all the same: 1."""
