"""One attempt over HTTP: the openai client without its own retries, and its errors in our words."""

import asyncio
import codecs
import email.utils
import errno
import functools
import itertools
import json
import math
import os
import re
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, cast

import httpx2

from deep.exceptions import InputError, printable
from deep.llm._errors import CallError, ErrorKind, says_too_long, unquoted_words
from deep.llm._messages import received_reply
from deep.llm._providers import Redactor, is_loopback, secret_segments

# The key sent to a server that needs none, since the client insists on one.
PLACEHOLDER_KEY = "none"

# Seconds until an address that does not answer counts as unreachable.
CONNECT_SECONDS = 8.0

# The transport looks at every connection of a pool for every request, so several small pools are quicker than one.
CONNECTIONS_A_POOL = 8

# Codes of errors that no wait mends: the account is empty.
_NO_CREDIT = frozenset({"billing_hard_limit_reached", "insufficient_quota"})
_NO_MODEL = re.compile(
    r"invalid model|unknown model|model\b.{0,200}\b(?:not exist|not found|not available|cannot be found)",
    re.IGNORECASE,
)


# Whether the request of this task has begun to leave this machine.
_sent: ContextVar[bool] = ContextVar("sent", default=True)


def _header_value(name: str) -> str | None:
    """Return the value of a variable of the environment, None where it is empty; raise where no header can hold it."""
    result = os.environ.get(name, "").strip()
    if not (result.isascii() and result.isprintable()):
        raise InputError(f"`{name}` must be printable ASCII on one line. Got something else. Set it anew, or unset it.")
    return result or None


class Client:
    """Sends chat completions to one OpenAI-compatible endpoint.

    Parameters
    ----------
    base_url : str
        Such as ``http://localhost:8000/v1``.
    api_key : str, optional
        From the environment; servers that need none are sent a placeholder.
    timeout : float
        Seconds that one attempt may take in all.
    max_connections : int
        At least the number of requests in flight; waiting for a connection would count against the timeout.
    named : bool, default=False
        Of a provider that LLMs are named after: it is not told OPENAI_ORG_ID and OPENAI_PROJECT_ID.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float = 120.0,
        max_connections: int = 128,
        named: bool = False,
    ) -> None:
        from openai import AsyncOpenAI

        self.timeout = timeout
        self.redact = Redactor(api_key, *secret_segments(base_url))
        # A connection for each request in flight: one that waits for a connection uses up its own time-out.
        limits = httpx2.Limits(max_connections=max_connections, max_keepalive_connections=max_connections)
        context, self._link = _ssl_context(), EndpointConnections()
        options: dict[str, Any] = {"limits": limits, "verify": context}
        connecting = httpx2.Timeout(None, connect=min(timeout, CONNECT_SECONDS))  # all else is timed by `send`
        try:
            clients = [
                AsyncOpenAI(
                    api_key=api_key or PLACEHOLDER_KEY,
                    base_url=base_url,
                    timeout=connecting,
                    # Retries are the runner's, which writes every attempt down before it is made.
                    max_retries=0,
                    # By the proxy that the environment names, but not to this machine: its localhost is another one.
                    http_client=BoundedClient(self._link, trust_env=not is_loopback(base_url), **options),
                )
                for _ in range(1 + max_connections // CONNECTIONS_A_POOL)
            ]
        except (ImportError, ValueError, httpx2.InvalidURL):
            raise InputError(
                "`HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` must name proxies that can be used: http://..., "
                "https://..., or socks5://... where socksio is installed. Got another in the environment. Unset it, or "
                "name the endpoint's host in NO_PROXY."
            ) from None
        account = (None, None) if named else (_header_value("OPENAI_ORG_ID"), _header_value("OPENAI_PROJECT_ID"))
        # Set afterwards: the constructor takes None for "as the environment says".
        for client in clients:
            client.organization, client.project = account
        self.openai = clients[0]
        self._clients = clients
        self._turn = itertools.cycle(clients)
        self.others: dict[str, Client] = {}

    def to(self, endpoint: str) -> "Client":
        """Return the client of an endpoint; this one, unless another was named after it in `others`."""
        return self.others.get(endpoint, self)

    async def send(self, content: bytes, limit: asyncio.Timeout | None = None) -> str:
        """Return the body of the reply to one chat completion request.

        Parameters
        ----------
        content : bytes
            The request as JSON, in UTF-8.
        limit : asyncio.Timeout, optional
            Ends it, in place of `timeout`.

        Raises
        ------
        CallError
            There was no reply with status 200.
        """
        # Until the headers go out nothing can be on the bill: such a time-out leaves no doubt.
        _sent.set(False)
        started = time.monotonic()
        try:
            async with limit or asyncio.timeout(self.timeout):
                response = await next(self._turn).post("/chat/completions", cast_to=httpx2.Response, content=content)
        except TimeoutError:
            seconds = f"{float(f'{time.monotonic() - started:.2g}'):g}"
            if not _sent.get():
                raise CallError("unreachable", f"no connection within {seconds} s", reached=False) from None
            raise CallError("timeout", f"no answer within {seconds} s") from None
        except Exception as error:
            failure = call_error(error, self.redact, content.decode())
            if failure.kind == "unsent":
                self._link.keeps = False  # an idle connection takes the room of another
            raise failure from None
        # A reply may quote the key, and the ledger keeps replies.
        return self.redact(response.text)

    async def close(self) -> None:
        """Close all connections, those to other endpoints too."""
        if self._link.probe is not None:
            self._link.probe.cancel()
        for other in self.others.values():
            if other is not self:
                await other.close()
        for client in self._clients:
            await client.close()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """Load the certificates once a process; it takes longer than all else that a client needs."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise InputError(
            f"`SSL_CERT_FILE` and `SSL_CERT_DIR` must name certificates that can be read. Got: {error}. Unset them."
        ) from None


async def _note_sent(event: str, _: object) -> None:
    if event.endswith("send_request_headers.started"):
        _sent.set(True)


def call_error(error: Exception, redact: Redactor, request: str = "") -> CallError:
    """Return the CallError for an exception of the openai client, to a `request`; raise any other again."""
    import openai

    if isinstance(error, CallError):
        return error
    if isinstance(error, openai.APIStatusError):
        if error.status_code // 100 == 3:
            # Documents and keys go to the address that was given, and nowhere else.
            target = error.response.headers.get("location", "").partition("?")[0]
            where = f"redirects to {printable(redact.line(target))}" if target else "redirects to no address"
            remedy = "which is not followed: give the address that answers as `base_url` (--base-url), if you trust it"
            message = f"the host {where} (HTTP {error.status_code}), {remedy}"
            return CallError("redirected", message, status=error.status_code)
        wait = retry_after(error.response.headers)
        return reply_error(error.status_code, redact(error.response.text), retry_after=wait, request=request)
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return _connection_error(error, redact)
    if isinstance(error, openai.OpenAIError | RecursionError | ValueError):  # of a reply about a batch
        return CallError("broken", redact.line(f"the reply cannot be read: {error}"))
    raise error


def _connection_error(error: Exception, redact: Redactor) -> CallError:
    """Return the CallError for a request that got no reply at all."""
    cause = error.__cause__ or error
    message = redact.line(f"{type(cause).__name__}: {cause}")
    # First of all: a lack of this machine looks like a server that cannot be reached.
    lack = _local_limit(error)
    if lack is not None:
        return CallError("unsent", lack, reached=False)
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return CallError("unreachable", message, reached=False)
    if isinstance(cause, httpx2.TimeoutException):
        return CallError("timeout", message)
    if isinstance(cause, httpx2.DecodingError):
        return CallError("broken", message)
    return CallError("dropped", message)


# Errors of the system that say that this machine lacks sockets, files or memory.
_LOCAL_LIMIT_ERRNOS = frozenset({errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def _local_limit(error: BaseException | None) -> str | None:
    """Return the lack of this machine that lies beneath an error, where it is one; no server is to blame then."""
    if error is None:
        return None
    if isinstance(error, OSError) and error.errno in _LOCAL_LIMIT_ERRNOS:
        return os.strerror(error.errno)
    beneath = error.exceptions if isinstance(error, BaseExceptionGroup) else (error.__cause__ or error.__context__,)
    return next((lack for part in beneath if (lack := _local_limit(part)) is not None), None)


def reply_error(
    status: int | None,
    body: str,
    also: Mapping[str, object] | None = None,
    *,
    retry_after: float | None = None,
    request: str = "",
) -> CallError:
    """Return the CallError for an error reply.

    Parameters
    ----------
    status : int, optional
        None where a batch ended without asking.
    body : str
        Without secrets.
    also : mapping, optional
        An error object that came outside the body.
    retry_after : float, optional
        Seconds that the reply asks to wait.
    request : str
        The request: what the reply quotes of it says nothing about other requests.
    """
    detail = {**_detail(body), **(also or {})}
    message = printable(" ".join(str(detail.get("message") or body or f"HTTP {status}").split())[:300])
    parameter = detail.get("param")
    return CallError(
        _kind(status or 0, detail, unquoted_words(message, request), request),
        message,
        status=status,
        retry_after=retry_after,
        reached=status is not None,
        body=body,
        parameter=parameter if isinstance(parameter, str) else None,
    )


def _detail(body: str, levels: int = 3) -> dict[str, object]:
    """Return the error object of an error reply; several servers have their own layout.

    A gateway may hold the error of the server behind it as JSON text, which then says what is wrong.
    """
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(answer, list) and answer:
        answer = answer[0]
    if not isinstance(answer, dict):
        return {}
    error = answer.get("error", answer)
    if not isinstance(error, dict):
        error = {"message": error}
    result = {"message": error.get("detail"), **error}
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    for text in (raw, error.get("detail"), error.get("message")):
        inner = _detail(text, levels - 1) if isinstance(text, str) and levels else {}
        if inner.get("message"):
            return {**result, **{name: value for name, value in inner.items() if value is not None}}
    return {**result, "message": raw} if isinstance(raw, str) and raw.strip() else result


def _kind(status: int, detail: Mapping[str, object], message: str, request: str) -> ErrorKind:
    """Return the kind of an error reply by its status, its code and its words."""
    code = str(detail.get("code") or detail.get("type") or "")
    words = f"{code} {detail.get('type')} {message}"
    if not status:
        return "expired"
    if status // 100 == 3:
        return "redirected"
    if status == 429:
        # OpenAI answers 429 where the account is empty, too; no wait helps there.
        return "fatal" if code in _NO_CREDIT else "rate_limited"
    if status in (401, 402):
        return "fatal"
    # Before the server errors: where the words say so, even a 500 is about the length of this one text.
    if status == 413 or says_too_long(words, refused=status in (400, 422)):
        return "too_long"
    # A time-out of the server, a conflict and "too early" pass as a 5xx does.
    if status >= 500 or status in (408, 409, 425):
        return "server_error"
    if code == "content_filter":
        return "refused"
    # Texts may speak of other models: the message must name the one that was asked.
    model = unquoted_words(str(json.loads(request)["model"]).rpartition("/")[2], "") if request else ""
    lacks_model = _NO_MODEL.search(message) and model in message
    if status == 404 or code == "model_not_found" or lacks_model:
        return "no_model"
    return "rejected"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a reply asks to wait, from Retry-After in seconds, milliseconds or as a date."""
    # Milliseconds first: that header is not standard, and where it is sent it is the more exact one.
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / unit
        except (KeyError, ValueError):
            continue
        return max(seconds, 0.0) if math.isfinite(seconds) else None
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
        return max(date.timestamp() - time.time(), 0.0)
    except (KeyError, ValueError, OverflowError):
        return None


# A reply of more bytes, decompressed, is refused: no answer comes near it, and a bomb would fill the memory.
LARGEST_REPLY = 8 << 20

# Of an error reply this many bytes are read: its beginning says what is wrong.
LARGEST_ERROR = 1 << 16

# Replies of up to this many bytes are read side by side; larger ones wait for each other.
SMALL_REPLY = 1 << 18

# This many larger replies are in memory at a time, however many requests are in flight.
LARGE_AT_ONCE = 2


# How long nothing may come behind the first answer of an endpoint. A copy that a proxy sends later than that, and after
# the next request, cannot be told from the answer to it.
PROBE_SECONDS = 0.1


@dataclass(eq=False)
class EndpointConnections:
    """The state that all connections to an endpoint share.

    Parameters
    ----------
    large : asyncio.Semaphore
        Who holds it may read a large reply.
    keeps : bool
        Whether connections serve more than one request: from when the first has shown that nothing comes unasked.
    probe : asyncio.Task, optional
        Looks whether that is so.
    """

    large: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LARGE_AT_ONCE))
    keeps: bool = False
    probe: asyncio.Task[None] | None = None


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client whose replies are bounded, and which goes nowhere but to the address that it was given.

    Parameters
    ----------
    link : Link
        Shared by all clients of an endpoint.
    **options
        As of an ``httpx2.AsyncClient``.
    """

    def __init__(self, link: EndpointConnections, **options: Any) -> None:
        super().__init__(**options)
        self._link = link

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """Send a request once; what is streamed is bounded by whoever reads it, save errors.

        Raises
        ------
        CallError
            Of kind ``broken``: the reply is too large.
        """
        request.extensions["trace"] = _note_sent
        if stream:
            request.headers["connection"] = "close"  # whoever reads the reply does not look at what comes behind it
        response = await super().send(request, stream=True, **{**options, "follow_redirects": False})
        if stream and response.is_success and _encoding(response) in ENCODINGS:
            return response
        is_spent = False
        try:
            if response.is_success and _encoding(response) not in ENCODINGS:
                raise CallError("broken", "the reply is compressed in another way than was asked for", status=200)
            content = await self._read(response)
            is_spent = response.status_code == 200 and _is_spent(response, content)
        finally:
            # The first answer's connection is watched for a moment: it tells whether the endpoint's can be kept at all.
            if is_spent and self._link.probe is None:
                self._link.probe = asyncio.create_task(self._probe(response, content))
            else:
                await _release_connection(response, keep=is_spent and self._link.keeps)
        kind = response.headers.get("content-type", "").partition(";")[0]
        others = [(name, value) for name, value in response.headers.multi_items() if not name.startswith("content-")]
        headers = [*others, ("content-type", kind)]  # without a character set: that of JSON is known
        read = httpx2.Response(response.status_code, headers=headers, content=content, request=request)
        read.encoding = "utf-8"
        return read

    async def _probe(self, response: httpx2.Response, content: bytes) -> None:
        """Wait whether anything comes behind the first answer, as from a proxy that sends each one twice."""
        try:
            await asyncio.sleep(PROBE_SECONDS)
            self._link.keeps = _is_spent(response, content)
        finally:
            await _release_connection(response, keep=self._link.keeps)

    async def _read(self, response: httpx2.Response) -> bytes:
        """Return the body as UTF-8; that of an error may be cut."""
        parts, size = list[bytes](), 0
        most = LARGEST_REPLY if response.is_success else LARGEST_ERROR
        async with AsyncExitStack() as turn:
            async for part in _inflated(response):
                if size <= SMALL_REPLY < size + len(part):
                    await turn.enter_async_context(self._link.large)
                parts.append(part)
                size += len(part)
                if size > most:
                    break
            if size > most and response.is_success:
                raise CallError("broken", f"the reply has more than {LARGEST_REPLY:,} bytes")
            return _as_utf8(b"".join(parts)[:most])


# Bytes of a reply whose connection is kept: behind a larger one, the transport may hold bytes that cannot be seen.
LARGEST_KEPT = 1 << 15

# From a reply to what its connection has parsed; no public way leads there.
_TO_STATE = ("_stream", "_httpcore_stream", "_stream", "_connection", "_h11_state")


async def _release_connection(response: httpx2.Response, *, keep: bool) -> None:
    """Give a connection back, or close it."""
    network = response.extensions.get("network_stream")
    if not keep and network is not None:
        await network.aclose()
    await response.aclose()


def _is_spent(response: httpx2.Response, content: bytes) -> bool:
    """Return whether a reply is an answer with nothing behind it, so that its connection may serve another request.

    After anything else the connection may still bring an answer, which would be taken for that of the next request.
    Where that cannot be seen, because the transport is another, the connection is closed too.
    """
    state: Any = response.stream
    for name in _TO_STATE:
        state = getattr(state, name, None)
    network = response.extensions["network_stream"]
    if state is None or state.trailing_data[0] or len(content) > LARGEST_KEPT or network.get_extra_info("is_readable"):
        return False
    encrypted = network.get_extra_info("ssl_object")
    try:
        if encrypted is not None:
            encrypted.read(1)  # what has come with the reply and is not decrypted yet
            return False
    except ssl.SSLWantReadError:
        pass
    except ssl.SSLError:
        return False
    try:
        received_reply(content.decode())
    except (CallError, UnicodeDecodeError):
        return False
    return True


# The ways in which a reply may be compressed, each with zlib's word for it: one within another grows without bound.
ENCODINGS = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31, "deflate": 15}


def _encoding(response: httpx2.Response) -> str:
    return str(response.headers.get("content-encoding", "")).strip().lower()


async def _inflated(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the body of a reply, decompressed in pieces of at most `SMALL_REPLY` bytes, so that no bomb holds more."""
    window, inflate = ENCODINGS.get(_encoding(response), 0), None
    # Not `aiter_raw`, which gives the connection back at once.
    async for raw in cast("httpx2.AsyncByteStream", response.stream):
        if not (window and raw):
            yield raw
            continue
        if inflate is None:
            # Some servers send deflate without the header of zlib that RFC 9110 asks for.
            without_header = window == 15 and raw[0] & 15 != zlib.DEFLATED
            inflate = zlib.decompressobj(-window if without_header else window)
        while raw and not inflate.eof:
            try:
                yield inflate.decompress(raw, SMALL_REPLY)
            except zlib.error as error:
                raise httpx2.DecodingError(str(error)) from None
            raw = inflate.unconsumed_tail
    if inflate is not None:
        yield inflate.flush()


def _as_utf8(content: bytes) -> bytes:
    """Return JSON of any Unicode encoding as UTF-8, whatever character set its header names."""
    encoding = json.detect_encoding(content)
    if encoding == "utf-8":
        return content
    if encoding == "utf-8-sig":
        return content.removeprefix(codecs.BOM_UTF8)
    return content.decode(encoding, errors="replace").encode(errors="replace")
