"""One request and its answer: a body that is read whole or dropped, and the headers that every response has."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from deep.exceptions import DeepError, printable
from deep.llm import is_shallow

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


class WebError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        Of HTTP: 4xx where the client can mend it, 503 where it can come again.
    code : str
        A word for programs, such as ``too_large``.
    message : str
        One line for people, without any text of the request.
    headers : mapping of str to str, optional
        HTTP headers of the answer, such as ``retry-after``.
    more : mapping, optional
        JSON values beside `code` and `message`.

    Examples
    --------
    >>> from deep.integrations.serve import WebError, error_body
    >>> error_body(WebError(413, "too_large", "The body must have at most 10 bytes."))
    b'{"error":{"code":"too_large","message":"The body must have at most 10 bytes."}}'
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, printable(message)
        self.headers, self.more = dict(headers or {}), dict(more or {})


def error_body(error: WebError) -> bytes:
    """Return the JSON of an error: ``{"error": {"code": ..., "message": ..., ...}}``."""
    return json_bytes({"error": {"code": error.code, "message": error.message, **error.more}})


# The codes of the statuses that the router itself answers with.
CODES = {404: "not_found", 405: "method_not_allowed", 422: "invalid"}


# The message of every error that is none of the client's.
SERVER_BUG_MESSAGE = "The server failed on this request: a bug of deep."


# By the ending of a path; any other is a page.
MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript"}


def make_app(
    texts: Mapping[str, str], calls: Mapping[str, Callable[[object], Mapping[str, object]]], **options: Any
) -> "Starlette":
    """Return an application whose every error is in one shape: a :class:`WebError`, deep's own, and the router's.

    Parameters
    ----------
    texts : mapping of str to str
        By path: a page, or a file of one, that GET is answered with.
    calls : mapping of str to callable
        By path: what works out, in a thread, the JSON that the JSON of a POST is answered with.
    **options
        Of Starlette's own application.
    """
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    async def refuse(_: "Request", error: Exception) -> "Response":
        if isinstance(error, HTTPException):
            code = CODES.get(error.status_code, "refused")
            error = WebError(error.status_code, code, str(error.detail), headers=error.headers)
        elif isinstance(error, DeepError):
            error = WebError(422, "invalid", str(error))
        elif not isinstance(error, WebError):
            error = WebError(500, "broken", SERVER_BUG_MESSAGE)
        return Response(error_body(error), error.status, error.headers, media_type="application/json")

    async def give(request: "Request") -> "Response":
        path = request.scope["path"]
        return Response(texts[path], media_type=MEDIA_TYPES.get(PurePosixPath(path).suffix, "text/html"))

    async def respond(request: "Request") -> "Response":
        result = await asyncio.to_thread(calls[request.scope["path"]], read_json(await request.body()))
        return Response(json_bytes(result), media_type="application/json")

    kinds = (Exception, WebError, HTTPException, DeepError)
    app = Starlette(exception_handlers=dict.fromkeys(kinds, refuse), **options)
    for paths, answer, method in ((texts, give, "GET"), (calls, respond, "POST")):
        for path in paths:
            app.add_route(path, answer, methods=[method])
    return app


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

# Bytes of a refused request that are read and dropped, so that its client finds the answer once all is sent.
MOST_DROPPED = 1 << 26

# Added to every response that does not have them.
HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))

# Added to all that is no JSON.
PAGE_HEADERS = (
    *HEADERS,
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)

JSON_HEADERS = (
    *HEADERS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

# For what is neither a page nor JSON.
NO_CONTENT_POLICY = b"default-src 'none'; frame-ancestors 'none'; sandbox"


def csp_nonce(scope: Scope) -> str:
    """Return the nonce of this response's content security policy, for its ``<script>`` and ``<style>`` elements.

    Parameters
    ----------
    scope : mapping
        Of ASGI; ``request.scope`` in Starlette.
    """
    nonce: str = scope.setdefault("deep.csp_nonce", secrets.token_urlsafe(16))
    return nonce


class RequestBody:
    """The body of a request: read whole before the application is given it, or dropped where it is refused."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._whole: bytes | None = None
        self.ended = self.gone = False

    async def __call__(self) -> Message:
        """Give the application the whole body, and then what comes after it."""
        if self._whole is None:
            return await self._receive()
        body, self._whole = self._whole, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def _part(self) -> bytes:
        message = await self._receive()
        self.gone = message["type"] == "http.disconnect"
        self.ended = self.gone or not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part

    async def read(self, most: int) -> bool:
        """Read it to its end, and return whether it has no more than so many bytes."""
        parts: list[bytes] = []
        while not self.ended and most >= 0:
            parts.append(await self._part())
            most -= len(parts[-1])
        self._whole = parts[0] if len(parts) == 1 else b"".join(parts)
        return most >= 0

    async def drop(self) -> None:
        """Read what is left of it, up to a bound."""
        n_bytes = MOST_DROPPED
        while not self.ended and n_bytes > 0:
            n_bytes -= len(await self._part())


class GuardedResponse:
    """Sends a response with the headers that each must have; or an error, where none has begun."""

    def __init__(self, scope: Scope, send: Send, request: RequestBody) -> None:
        self._scope, self._send, self._request = scope, send, request
        self._begun = False

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start":
            self._begun = True
            headers = message.get("headers", ())
            message = {**message, "headers": [*headers, *self._missing(headers)]}
        await self._send(message)

    def _missing(self, headers: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        values = {name.lower(): value for name, value in headers}
        kind = values.get(b"content-type", b"")
        added = JSON_HEADERS if kind.startswith(b"application/json") else PAGE_HEADERS
        yield from (header for header in added if header[0] not in values)
        if added is PAGE_HEADERS and b"content-security-policy" not in values:
            page = kind.startswith(b"text/html")
            yield b"content-security-policy", _page_policy(self._scope) if page else NO_CONTENT_POLICY

    async def refuse(self, error: WebError) -> None:
        """Send an error; where a response has begun, leave it cut off, so that nobody takes it for whole.

        What has been sent of the request is read before the connection is closed: the system would take unread bytes
        for a fault, and would tell the client of that in place of the answer.
        """
        if not self._begun:
            body = error_body(error)
            fields = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
            if not self._request.ended and self._has_body():
                fields["connection"] = "close"
            await self._whole(error.status, fields, b"" if self._scope["method"] == "HEAD" else body)

    def _has_body(self) -> bool:
        return any(name in (b"content-length", b"transfer-encoding") for name, _ in self._scope["headers"])

    async def redirect(self, path: str, cookie: str) -> None:
        """Send a browser on to a path of this server, with a cookie."""
        here = "/" + path.lstrip("/").encode("ascii", "ignore").decode().replace("\\", "")
        await self._whole(303, {"location": here, "set-cookie": cookie, "content-length": "0"}, b"")

    async def _whole(self, status: int, fields: Mapping[str, str], body: bytes) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": True})
        if self._has_body():
            await self._request.drop()
        await self._send({"type": "http.response.body", "body": b""})


def _page_policy(scope: Scope) -> bytes:
    """Return the content security policy of a page: its own server, and scripts and styles with the nonce."""
    own = f"'self' 'nonce-{csp_nonce(scope)}'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ).encode()


# Brackets within brackets; what a server of deep is sent has three or four.
DEEPEST = 32

_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_bytes(value: object) -> bytes:
    """Return a value as compact JSON in UTF-8; lone surrogates are escaped, a NaN is a bug and raises."""
    text = _ENCODER.encode(value)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def read_json(body: bytes) -> object:
    r"""Return the value of a body of JSON.

    Parameters
    ----------
    body : bytes
        The body of a request, in UTF-8.

    Raises
    ------
    WebError
        With status 400: it is no UTF-8, no JSON, holds NaN or infinity, a key twice in one object, or more than 32
        brackets within each other.

    Examples
    --------
    >>> from deep.integrations.serve import read_json
    >>> read_json(b'{"source": "It rained.", "claim": "It was wet."}')
    {'source': 'It rained.', 'claim': 'It was wet.'}
    >>> read_json(b"[NaN]")
    Traceback (most recent call last):
    deep.integrations.serve._exchange.WebError: The body must be JSON. Got NaN, which is not a JSON number.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _refused(f"The body must be UTF-8. Got byte 0x{body[error.start]:02x} at {error.start}.") from None
    deep = _refused(f"The body must have at most {DEEPEST} nested brackets. Got more.")
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_unique_object, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _refused(f"The body must be JSON. Got an error at character {error.pos}: {error.msg}.") from None
    except ValueError as error:  # a number of thousands of digits
        raise _refused(f"The body must be JSON. Got unreadable text: {error}.") from None
    except RecursionError:
        raise deep from None
    if not is_shallow(value, DEEPEST + 1):  # what stands within the last brackets is no bracket
        raise deep
    return value


def _refused(message: str) -> WebError:
    return WebError(400, "bad_json", message)


def _no_constant(name: str) -> NoReturn:
    raise _refused(f"The body must be JSON. Got {name}, which is not a JSON number.")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _refused("The body must be JSON. Got a number that is too large.")
    return number


def _unique_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _refused("The body must have each key once. Got one twice in an object.")
    return result
