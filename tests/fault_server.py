"""An OpenAI-compatible server on loopback that misbehaves on purpose, and counts every request it gets.

In a test::

    with FaultServer(faults={"rate_limited": 0.1, "hang": 0.01}) as server:
        ...  # server.url, server.count, server.log

From a shell, for the README and the benchmarks::

    python -m tests.fault_server --port 8765 --latency 0.05 --fault rate_limited=0.1 --fault dropped=0.02
"""

import argparse
import asyncio
import hashlib
import json
import re
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler

from deep.llm import output_limit

TRANSPORT_FAULTS = ("broken_http", "broken_json", "cut", "dropped", "hang", "rate_limited", "server_error", "slow_down")
ANSWER_FAULTS = ("echo_key", "no_repair", "no_verdict", "refused", "truncated")
"""no_repair is no_verdict for repair turns, which quote a reply; each of the two hits no other request."""

_PAIRS = (
    ("NOT SUPPORTED", "SUPPORTED"),
    ("INCONSISTENT", "CONSISTENT"),
    ("UNFAITHFUL", "FAITHFUL"),
    ("FALSE", "TRUE"),
    ("NO", "YES"),
    ("MISLEADING", "ACCEPTABLE"),
    ("UNPROVEN", "PROVEN"),
    ("CORRECTION DUE", "PRINTED RIGHTLY"),
    ("DISPUTED", "AGREED"),
    ("MISMATCH", "MATCH"),
    ("NEUTRAL", "ENTAILMENT"),
    ("WRONG", "CORRECT"),
    ("IMPROBABLE", "PROBABLE"),
    ("FAULTY", "SOUND"),
    ("CONTRADICTED", "COMPATIBLE"),
)


class FaultServer:
    """The server, in a thread of its own.

    Parameters
    ----------
    faults : mapping of str to float
        Share of requests per transport fault, drawn anew for every request; and share of bodies per answer
        fault, the same each time a body is sent. Drawn from the body's hash, so that a run can be repeated.
    script : sequence of str
        Faults (or ``ok``) of the first requests, in order, before `faults` count.
    latency : float
        Seconds before every answer.
    retry_after : str or None
        The header that goes with the fault ``slow_down``.
    unsupported : mapping of str to str
        Fields that are refused with HTTP 400, and the error's code.
    ignored : sequence of str
        Fields that are taken and have no effect: ``logprobs``, ``response_format``, ``structured_outputs``; also
        ``usage``, which the replies lack.
    accept : callable, optional
        Called with the body; returns a (status, error object) to refuse it.
    reply : callable, optional
        Called with the body; returns the reply's text.
    polls : int
        How often a batch is looked at before it is complete.
    batch_mode : {'ok', 'dupes', 'garbage', 'strangers', 'twins'}
        Twins are every result twice; dupes also another one that contradicts it; garbage every third result replaced;
        strangers are results of requests of another batch.
    at_step : callable, optional
        Awaited with each step of a batch: upload, uploaded, create, created, list, poll, download, downloaded.
    unlisted : int
        How many times the list of batches lacks a batch whose creation was answered with the fault ``late``, which
        breaks the connection as ``dropped`` does.
    raw : callable, optional
        Called with the body; returns the pieces of the HTTP reply, bytes to write and seconds to wait, after which the
        connection is closed; None for a reply as usual.
    billed : callable, optional
        Called with the number of a request, from 1; returns the output tokens to bill, None for as many as there are.
    slots : int, default=10000
        Requests that are worked on at a time, each to its end, though its client may have left; the others wait.
    """

    def __init__(
        self,
        *,
        faults: Mapping[str, float] | None = None,
        script: Sequence[str] = (),
        latency: float = 0.0,
        retry_after: str | None = "1",
        unsupported: Mapping[str, str] | None = None,
        ignored: Sequence[str] = (),
        accept: Callable[[dict[str, Any]], tuple[int, dict[str, Any]] | None] | None = None,
        reply: Callable[[dict[str, Any]], str] | None = None,
        raw: Callable[[dict[str, Any]], Iterable[bytes | float] | None] = lambda _: None,
        host: str = "127.0.0.1",
        polls: int = 1,
        batch_mode: str = "ok",
        at_step: Callable[[str], Awaitable[object]] | None = None,
        unlisted: int = 0,
        billed: Callable[[int], int | None] = lambda _: None,
        port: int = 0,
        slots: int = 10_000,
    ) -> None:
        self.faults = dict(faults or {})
        self.script = deque(script)
        self.latency = latency
        self.retry_after = retry_after
        self.unsupported = dict(unsupported or {})
        self.ignored = tuple(ignored)
        self.accept = accept
        self.reply = reply or honest_reply
        self.raw, self.host = raw, host
        self.polls = polls
        self.batch_mode = batch_mode
        self.at_step = at_step
        self.unlisted = unlisted
        self.billed = billed
        self.port = port
        self.slots = asyncio.Semaphore(slots)
        self.count = 0
        self.log: list[tuple[float, str, str]] = []
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self.suffix = "-2026"
        self.authorization: set[str] = set()
        self.held = False
        """While it is true no request is answered: for tests of what goes on meanwhile."""
        self.in_flight = self.most_in_flight = 0
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self._seen: Counter[str] = Counter()
        self._transports: set[asyncio.Transport] = set()
        self._started = threading.Event()

    @property
    def url(self) -> str:
        """The base URL for an OpenAI client."""
        return f"http://{self.host}:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._started.wait(300)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(300)

    def _run(self) -> None:
        asyncio.run(self.serve())

    async def serve(self) -> None:
        """Serve until told to stop."""
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=2**30, middlewares=[self._remember])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files/{id}/content", self._download)
        app.router.add_post("/v1/batches", self._create_batch)
        app.router.add_get("/v1/batches", self._list_batches)
        app.router.add_get("/v1/batches/{id}", self._get_batch)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, self.host, self.port, backlog=1024)
        await site.start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()
        for transport in self._transports:  # one with an answer that nobody read would stay open
            if not transport.is_closing() or transport.get_write_buffer_size():  # type: ignore[attr-defined]
                transport.abort()
        await asyncio.sleep(0)

    @web.middleware
    async def _remember(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.transport is not None:
            self._transports.add(request.transport)
        return await handler(request)

    def requests_of(self, digest: str) -> int:
        """How often a body was sent."""
        return self._seen[digest]

    @property
    def duplicates(self) -> int:
        """Requests beyond the first of every body."""
        return sum(n - 1 for n in self._seen.values())

    async def _models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        try:
            raw = await request.read()
        except ConnectionResetError:
            return web.Response()  # the client was killed before it had said anything
        self.authorization.add(request.headers.get("Authorization", ""))
        body = json.loads(raw)
        fault = self._next_fault(body)
        self.in_flight += 1
        self.most_in_flight = max(self.in_flight, self.most_in_flight)
        try:
            async with self.slots:
                await asyncio.sleep(3600 if fault == "hang" else self.latency)
            while self.held:
                await asyncio.sleep(0.01)
        finally:
            self.in_flight -= 1
        pieces = self.raw(body)
        if pieces is not None:
            return await _write_raw(request, pieces)
        if fault == "drip":
            return await _drip(request)
        if fault in ("broken_http", "cut", "dropped"):
            return _break_connection(request, fault)
        status, answer, headers = self._answer(body, fault, request.headers.get("Authorization", ""))
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return web.Response(text=text, status=status, headers=headers, content_type="application/json")

    def _next_fault(self, body: dict[str, Any]) -> str:
        digest = digest_of(body)
        self._seen[digest] += 1
        self.count += 1
        fault = self.script.popleft() if self.script else self._draw(body, digest, self._seen[digest])
        self.log.append((time.time(), digest, fault))
        if self.keep_bodies:
            self.bodies.append(body)
        return fault

    def _draw(self, body: dict[str, Any], digest: str, times: int) -> str:
        other = "no_verdict" if is_repair(body) else "no_repair"
        for faults, seed in ((TRANSPORT_FAULTS, f"{digest}{times}"), (ANSWER_FAULTS, digest)):
            point = int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16) / 2**32
            for fault in faults:
                point -= 0.0 if fault == other else self.faults.get(fault, 0.0)
                if point < 0:
                    return fault
        return "ok"

    def _answer(self, body: dict[str, Any], fault: str, authorization: str) -> tuple[int, Any, dict[str, str]]:
        """Return status, body and headers of the reply."""
        refused = self._refuse(body)
        if refused:
            return refused[0], {"error": refused[1]}, {}
        if fault == "rate_limited":
            return 429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, {}
        if fault == "slow_down":
            return 429, {"error": {"message": "slow down"}}, {"Retry-After": self.retry_after or ""}
        if fault == "server_error":
            return 500, {"error": {"message": "internal error"}}, {}
        if fault == "no_credit":
            return 429, {"error": {"message": "no credit left", "code": "insufficient_quota"}}, {}
        if fault == "unauthorized":
            return 401, {"error": {"message": f"wrong key: {authorization}", "code": "invalid_api_key"}}, {}
        if fault == "filtered":
            return 400, {"error": {"message": "blocked", "code": "content_filter"}}, {}
        if fault == "broken_json":
            return 200, '{"choices": [{"message": {"content": "VERD', {}
        return 200, self._completion(body, fault, authorization), {}

    def _refuse(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        for name, code in self.unsupported.items():
            if name in body:
                return 400, {"message": f"'{name}' is not supported with this model.", "param": name, "code": code}
        return self.accept(body) if self.accept else None

    def _completion(self, body: dict[str, Any], fault: str, authorization: str) -> dict[str, Any]:
        asked = {**body, **dict.fromkeys(self.ignored)}
        message: dict[str, Any] = {"role": "assistant", "content": self.reply(asked)}
        finish = "stop"
        if fault in ("no_repair", "no_verdict"):
            message["content"] = "It is hard to say anything about this."
        elif fault == "truncated":
            message["content"], finish = "First, the source says that", "length"
        elif fault == "refused":
            message = {"role": "assistant", "content": None, "refusal": "I cannot help with that."}
        elif fault == "echo_key":
            message["content"] = f"Your key is {authorization}.\n{message['content']}"
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish, "message": message}
        if body.get("logprobs") and "logprobs" not in self.ignored:
            choice["logprobs"] = {"content": _logprobs(message["content"] or "")}
        n_in, n_out = len(json.dumps(body["messages"])) // 4, len(message["content"] or "") // 4 + 1
        n_out = self.billed(self.count) or (output_limit(body) or n_out if finish == "length" else n_out)
        usage = {
            "prompt_tokens": n_in,
            "completion_tokens": n_out,
            "total_tokens": n_in + n_out,
            "prompt_tokens_details": {"cached_tokens": n_in // 2},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }
        model = f"{body['model']}{self.suffix}"
        answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
        return {**answer, "choices": [choice], **({} if "usage" in self.ignored else {"usage": usage})}

    async def _step(self, name: str) -> None:
        if self.at_step is not None:
            await self.at_step(name)

    def copies(self) -> Counter[str]:
        """Count the batches that hold each custom id."""
        held = (self.files[batch["input_file_id"]] for batch in self.batches.values())
        return Counter(json.loads(line)["custom_id"] for file in held for line in file.splitlines())

    async def _upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        assert form["purpose"] == "batch"
        await self._step("upload")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = form["file"].file.read()  # type: ignore[union-attr]
        await self._step("uploaded")
        return web.json_response({"id": name, "object": "file", "purpose": "batch", "bytes": len(self.files[name])})

    async def _download(self, request: web.Request) -> web.Response:
        await self._step("download")
        if request.match_info["id"] not in self.files:
            return web.json_response({"error": {"message": "no such file"}}, status=404)
        response = web.Response(body=self.files[request.match_info["id"]], content_type="application/jsonl")
        await self._step("downloaded")
        return response

    async def _create_batch(self, request: web.Request) -> web.Response:
        asked = await request.json()
        await self._step("create")
        name = f"batch-{len(self.batches) + 1}"
        self.batches[name] = {
            "id": name,
            "object": "batch",
            "status": "in_progress",
            "created_at": 1,
            "polls": 0,
            **{key: asked.get(key) for key in ("endpoint", "input_file_id", "completion_window", "metadata")},
        }
        fault = self.script.popleft() if self.script else "ok"
        self.batches[name] |= {"fault": fault, "unlisted": self.unlisted if fault == "late" else 0}
        await self._step("created")
        if fault in ("dropped", "late"):
            return _break_connection(request, fault)
        return web.json_response(self._public(name))

    def _public(self, name: str) -> dict[str, Any]:
        return {key: value for key, value in self.batches[name].items() if key not in ("fault", "polls", "unlisted")}

    async def _list_batches(self, _: web.Request) -> web.Response:
        await self._step("list")
        data = [self._public(name) for name, batch in self.batches.items() if not batch["unlisted"]]
        for batch in self.batches.values():
            batch["unlisted"] = max(batch["unlisted"] - 1, 0)
        return web.json_response({"object": "list", "data": data, "has_more": False})

    async def _get_batch(self, request: web.Request) -> web.Response:
        await self._step("poll")
        if request.match_info["id"] not in self.batches:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        batch = self.batches[request.match_info["id"]]
        batch["polls"] += 1
        if batch["status"] == "in_progress" and batch["polls"] >= self.polls:
            self._complete(batch)
        return web.json_response(self._public(batch["id"]))

    def _complete(self, batch: dict[str, Any]) -> None:
        """Answer the lines of a batch, last first, since no order is promised."""
        if batch["fault"] == "invalid":
            errors = {"object": "list", "data": [{"code": "invalid", "message": "the file is not valid", "line": 1}]}
            batch.update(status="failed", errors=errors)
            return
        answered, failed = [], []
        for line in reversed(self.files[batch["input_file_id"]].splitlines()):
            entry = json.loads(line)
            fault = self._next_fault(entry["body"])
            status, answer, _ = self._answer(entry["body"], fault, "")
            if fault == "expired":
                error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                failed.append({"custom_id": entry["custom_id"], "response": None, "error": error})
            else:
                response = {"status_code": status, "request_id": "r", "body": answer}
                done = {"custom_id": entry["custom_id"], "response": response, "error": None}
                (answered if status == 200 else failed).append(done)
        for field, lines in (("output_file_id", answered), ("error_file_id", failed)):
            if lines:
                self.files[f"{batch['id']}-{field}"] = b"\n".join(_misprinted(lines, self.batch_mode))
                batch[field] = f"{batch['id']}-{field}"
        batch["status"] = "completed"


def _misprinted(lines: list[dict[str, Any]], mode: str) -> list[bytes]:
    """Return the lines of a result file as a server that is out of order writes them."""
    good = [json.dumps(line).encode() for line in lines]
    if mode == "twins":
        return [line for line in good for _ in range(2)]
    if mode == "dupes":
        return [*good, *(line.replace(b"SUPPORTED", b"NOT SUPPORTED").replace(b"NOT NOT ", b"") for line in good)]
    if mode == "strangers":
        return [json.dumps(line | {"custom_id": line["custom_id"][::-1]}).encode() for line in lines]
    if mode == "garbage":
        rubbish = (
            b"{not json",
            b"[]",
            b"null",
            b"{}",
            b'{"custom_id": 7}',
            b'{"custom_id": "x", "response": 1}',
            b"\xff",
        )
        stranger = [b'{"custom_id": "nobody", "response": null, "error": null}']
        return [rubbish[i // 3 % 7] if i % 3 == 0 else line for i, line in enumerate(good)] + stranger
    return good


async def _write_raw(request: web.Request, pieces: Iterable[bytes | float]) -> web.Response:
    """Write bytes as they are, no faster than they are read, until the client leaves."""
    transport = request.transport
    assert transport is not None
    for piece in pieces:
        until = time.monotonic() + (piece if isinstance(piece, int | float) else 0.0)
        if isinstance(piece, bytes):
            transport.write(piece)  # type: ignore[attr-defined]
        while time.monotonic() < until or transport.get_write_buffer_size() > 1 << 20:  # type: ignore[attr-defined]
            if transport.is_closing():
                break
            await asyncio.sleep(0.005)
        if transport.is_closing():
            break
        await asyncio.sleep(0)
    transport.close()
    return web.Response(status=500)


async def _drip(request: web.Request) -> web.StreamResponse:
    """Send a blank now and then, so that no single read takes long."""
    response = web.StreamResponse(headers={"Content-Length": "1000"})
    await response.prepare(request)
    for _ in range(1000):
        await response.write(b" ")
        await asyncio.sleep(0.05)
    return response


def _break_connection(request: web.Request, fault: str) -> web.Response:
    transport = request.transport
    if transport is not None:
        if fault == "broken_http":
            transport.write(b"BANANA 200 maybe\r\n\r\n")  # type: ignore[attr-defined]
        elif fault == "cut":
            transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")  # type: ignore[attr-defined]
        transport.close()
    return web.Response(status=500)


def digest_of(body: Mapping[str, Any]) -> str:
    """Name a body by its content."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def honest_reply(body: dict[str, Any]) -> str:
    """Answer in the form that the prompt asks for: how many of the claim's words the source has decides."""
    text = body["messages"][-1]["content"]
    share = _share_of_words_found(text, noise=digest_of({"messages": body["messages"]}))
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if schema:
        return json.dumps({name: _fill(name, rule, share) for name, rule in schema["properties"].items()})
    last = text.strip().splitlines()[-1]
    scale = re.search(r'"(SCORE[-\w]*:) N", where N is a number from (\d+) to (\d+)', last)
    if scale:
        return f"{scale[1]} {round(int(scale[2]) + (int(scale[3]) - int(scale[2])) * share)}"
    choice = (body.get("structured_outputs") or {}).get("choice")
    if choice:
        wanted = _label(" ".join(choice), share)
        return str(next(line for line in choice if re.search(rf"(?<!NOT )\b{wanted}\b", line)))
    if "number of stars" in last:
        return f"{_marker(text, 'SCORE')} {1 + round(4 * share)}"
    if "from 0 to 100" in last:
        return f"{_marker(text, 'SCORE')} {round(100 * share)}"
    element = re.findall(r"<(verdict[-\w]*)>[^<]*</verdict", text)
    label = _label(last, share)
    if element:
        return f"<{element[-1]}>{label}</{element[-1]}>"
    if "JSON object" in last:
        return json.dumps({"reasoning": "as asked", "verdict": label})
    return f"The words of the claim were looked up one by one.\n{_marker(text, 'VERDICT')} {label}"


def _marker(text: str, word: str) -> str:
    return (re.findall(rf"{word}[-0-9a-f]*:", text) or [f"{word}:"])[-1]


def _label(last: str, share: float) -> str:
    pair = next(((no, yes) for no, yes in _PAIRS if re.search(rf"\b{no}\b", last)), _PAIRS[0])
    return pair[share >= 0.5]


def _fill(name: str, rule: Mapping[str, Any], share: float) -> Any:
    if "enum" in rule:
        return _label(" ".join(rule["enum"]), share)
    if rule["type"] == "array":
        return [f"{name} of the claim"]
    return round(100 * share) if rule["type"] in ("number", "integer") else f"{name} of the claim"


def _share_of_words_found(text: str, noise: str) -> float:
    """Return the share of the claim's longer words that stand in the source, moved a little at random."""
    source, claim = (
        re.findall(rf"<{tag}[-\w]*>(.*?)</{tag}", text, re.DOTALL)[-1:] or [text] for tag in ("source", "claim")
    )
    words = re.findall(r"\w{4,}", claim[0].lower()) or ["none"]
    result = sum(word in source[0].lower() for word in words) / len(words)
    return min(max(0.7 * result + 0.6 * int(noise[:4], 16) / 65535 - 0.15, 0.0), 1.0)


def is_repair(body: dict[str, Any]) -> bool:
    """Return whether a request asks once more for the answer that the reply which it quotes lacks."""
    return re.search(r"<reply-[0-9a-f]{8}>", str(body["messages"][-1]["content"])) is not None


def _logprobs(text: str) -> list[dict[str, Any]]:
    tokens = re.findall(r"\s*(?:\w+|[^\w\s]+)", text)
    return [
        {
            "token": token,
            "logprob": -0.105,
            "top_logprobs": [{"token": token, "logprob": -0.105}, {"token": _opposite(token), "logprob": -2.303}],
        }
        for token in tokens
    ]


def _opposite(token: str) -> str:
    words = {"NOT": "SUPPORTED", "SUPPORTED": "NOT", "YES": "NO", "NO": "YES", "TRUE": "FALSE", "FALSE": "TRUE"}
    return f" {words.get(token.strip(), 'other')}"


def main(argv: list[str] | None = None) -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server that misbehaves on purpose.")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before every answer")
    parser.add_argument("--batch-mode", choices=("ok", "dupes", "garbage", "strangers", "twins"), default="ok")
    parser.add_argument("--tokens", type=int, help="output tokens to bill, whatever the limit")
    parser.add_argument("--fault", action="append", default=[], metavar="NAME=SHARE", help="may be repeated")
    args = parser.parse_args(argv)
    faults = {name: float(share) for name, _, share in (text.partition("=") for text in args.fault)}
    unknown = set(faults) - {*TRANSPORT_FAULTS, *ANSWER_FAULTS}
    if unknown:
        parser.error(f"--fault must be one of {', '.join(sorted((*TRANSPORT_FAULTS, *ANSWER_FAULTS)))}")
    server = FaultServer(faults=faults, latency=args.latency, port=args.port, batch_mode=args.batch_mode)
    server.billed = lambda _: args.tokens
    sys.stderr.write(f"serving http://127.0.0.1:{args.port}/v1\n")
    try:
        asyncio.run(server.serve())
    except KeyboardInterrupt:
        sys.stderr.write(f"{server.count} requests\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
