"""One request and its answer: a body that is read whole or dropped, and the headers that every response has."""

import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any

from deep.serve.web._errors import WebError, error_body

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_DROPPED = 1 << 26
"""Bytes of a refused request that are read and dropped, so that its client finds the answer once all is sent."""

HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Added to every response that does not have them."""

PAGE_HEADERS = (
    *HEADERS,
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
"""Added to all that is no JSON."""

JSON_HEADERS = (
    *HEADERS,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cross-origin-resource-policy", b"same-origin"),
)

NO_CONTENT_POLICY = b"default-src 'none'; frame-ancestors 'none'; sandbox"
"""For what is neither a page nor JSON."""


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
        left = MOST_DROPPED
        while not self.ended and left > 0:
            left -= len(await self._part())


class GuardedResponse:
    """Sends a response with the headers that each must have; or an error, where none has begun."""

    def __init__(self, scope: Scope, send: Send, asked: RequestBody) -> None:
        self._scope, self._send, self._asked = scope, send, asked
        self._begun = False

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start":
            self._begun = True
            given = message.get("headers", ())
            message = {**message, "headers": [*given, *self._missing(given)]}
        await self._send(message)

    def _missing(self, given: Iterable[tuple[bytes, bytes]]) -> Iterable[tuple[bytes, bytes]]:
        known = {name.lower(): value for name, value in given}
        kind = known.get(b"content-type", b"")
        added = JSON_HEADERS if kind.startswith(b"application/json") else PAGE_HEADERS
        yield from (header for header in added if header[0] not in known)
        if added is PAGE_HEADERS and b"content-security-policy" not in known:
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
            if not self._asked.ended and self._has_body():
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
            await self._asked.drop()
        await self._send({"type": "http.response.body", "body": b""})


def _page_policy(scope: Scope) -> bytes:
    """Return the content security policy of a page: its own server, and scripts and styles with the nonce."""
    own = f"'self' 'nonce-{csp_nonce(scope)}'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ).encode()
