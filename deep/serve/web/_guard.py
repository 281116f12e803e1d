"""The guard in front of every application: who may ask, from where, how much, how often."""

import ipaddress
import secrets
import traceback
from asyncio import CancelledError
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from math import ceil
from typing import Any
from urllib.parse import parse_qs

from deep.exceptions import InputError
from deep.serve.web._access import LOOPBACK, Access
from deep.serve.web._errors import BROKEN, WebError, error_body
from deep.serve.web._rate import RateLimit

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

HEALTH = "/healthz"
"""The one path that needs no token and counts towards no limit."""

WILDCARDS = ("", "0.0.0.0", "::")
CHANGING = frozenset({"DELETE", "PATCH", "POST", "PUT"})

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


@dataclass(frozen=True, kw_only=True)
class GuardOptions:
    """The limits of a guard, and the names by which its server may be called.

    Parameters
    ----------
    hosts : tuple of str, default=('127.0.0.1', '::1', 'localhost')
        Names by which the server may be called, ports apart; any other one in the ``Host`` header is refused, which is
        what stops DNS rebinding. ``'*'`` stands for every IP address, which nobody can rebind.
    access : Access, optional
        The token; default: everybody who reaches the server may ask.
    largest_body : int, default=4 MiB
        Bytes of one request's body.
    most_buffered : int, default=64 MiB
        Bytes of the bodies that are being received and answered, together.
    at_once : int, default=256
        Requests that are answered side by side; one more gets 503.
    rate : float, optional
        Requests a second from one address; one more gets 429.
    media_types : tuple of str, default=('application/json',)
        What a body may be; a form of another site is none of these.

    Raises
    ------
    InputError
        A limit is not above 0.
    """

    hosts: tuple[str, ...] = LOOPBACK
    access: Access | None = None
    largest_body: int = 1 << 22
    most_buffered: int = 1 << 26
    at_once: int = 256
    rate: float | None = None
    media_types: tuple[str, ...] = ("application/json",)

    def __post_init__(self) -> None:
        for name in ("largest_body", "most_buffered", "at_once", "rate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"`{name}` must be above 0. Got {value!r}.")


def csp_nonce(scope: Scope) -> str:
    """Return the nonce of this response's content security policy, for its ``<script>`` and ``<style>`` elements.

    Parameters
    ----------
    scope : mapping
        Of ASGI; ``request.scope`` in Starlette.
    """
    nonce: str = scope.setdefault("deep.csp_nonce", secrets.token_urlsafe(16))
    return nonce


class Guard:
    """Middleware (ASGI) that refuses what an application should not see; each refusal is one JSON error.

    In this order: the ``Host`` (421), a request that another site's page makes (403), the token (401), the rate (429),
    the number of requests at once (503), the kind (415) and the size (413) of the body, which the application finds
    whole. What the application raises is answered with 500, and no message of it is written anywhere, for it may hold
    text.

    Parameters
    ----------
    app : ASGI application
    options : GuardOptions, optional
    say : callable, optional
        Called with the one line that tells of a ticket that was used, or of an error of the application.
    address : callable, optional
        Returns the address with the ticket of now.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: GuardOptions | None = None,
        say: Callable[[str], object] = lambda _: None,
        address: Callable[[], str] = lambda: "",
    ) -> None:
        self._app, self._say, self._address = app, say, address
        self._options = options or GuardOptions()
        self._access = self._options.access or Access()
        self._rate = RateLimit(self._options.rate)
        self._hosts = frozenset(host.lower().strip("[]") for host in self._options.hosts)
        self._n_requests = self._n_bytes = 0
        self.n_cut = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no application of deep has web sockets
        answer = _Answer(scope, send)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            self._check_origin(scope, headers)
            if scope["path"] == HEALTH:
                await self._app(scope, receive, answer.send)
            elif not await self._opens_session(scope, answer):
                self._check_access(scope, headers)
                await self._pass_on(scope, headers, receive, answer)
        except WebError as error:
            await answer.refuse(error)
        except CancelledError:
            self.n_cut += 1
            await answer.refuse(WebError(503, "ending", "The server has been ended before the answer was there."))
        except Exception as error:
            self._say(_place_of(error))
            await answer.refuse(WebError(500, "broken", BROKEN))

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Raise where a request came by a name that is not ours, or was made by another site's page."""
        host = headers.get("host", "")
        if not self._is_ours(_without_port(host)):
            raise WebError(421, "wrong_host", "The server must be called by its own name or address. Got another Host.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not _is_visit(scope, headers):
            raise WebError(403, "cross_site", "Only the server's own pages and programs may ask. Got another site's.")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise WebError(403, "cross_site", "Only the server's own pages and programs may ask. Got another Origin.")

    def _is_ours(self, host: str) -> bool:
        return host in self._hosts or ("*" in self._hosts and _is_address(host))

    def _check_access(self, scope: Scope, headers: Mapping[str, str]) -> None:
        if not self._access.allows(headers):
            said = (
                "A token must be sent as 'Authorization: Bearer TOKEN'; a browser opens the address that was printed."
            )
            raise WebError(401, "unauthorized", said, headers={"www-authenticate": "Bearer"})
        wait = self._rate.wait((scope.get("client") or ("",))[0])
        if wait:
            raise WebError(429, "rate", "Too many requests a second.", headers={"retry-after": str(ceil(wait))})

    async def _opens_session(self, scope: Scope, answer: "_Answer") -> bool:
        """Change a ticket in the address for a session, where there is one; the address is then without it."""
        query = scope["query_string"]
        if self._access.is_open or scope["method"] != "GET" or not query.startswith(b"token="):
            return False
        cookie = self._access.redeem(parse_qs(query.decode("latin-1")).get("token", [""])[0])
        if cookie is None:
            raise WebError(
                401, "used", "The address must be the last one that was printed: it opens one browser, once."
            )
        self._say(f"to open another browser: {self._address()}")
        await answer.redirect(scope["path"], cookie)
        return True

    async def _pass_on(self, scope: Scope, headers: Mapping[str, str], receive: Receive, answer: "_Answer") -> None:
        options = self._options
        if self._n_requests >= options.at_once:
            raise WebError(503, "busy", "Too many requests at once.", headers={"retry-after": "1"})
        self._n_requests += 1
        held = 0
        try:
            if scope["method"] in CHANGING:
                self._check_media_type(headers)
                held = self._reserve(headers)
                body = await self._body(receive, held)
                if body is None:
                    return  # the client has gone
                receive = _Replay(body, receive)
            await self._app(scope, receive, answer.send)
        finally:
            self._n_requests -= 1
            self._n_bytes -= held

    def _check_media_type(self, headers: Mapping[str, str]) -> None:
        given = headers.get("content-type", "").partition(";")[0].strip().lower()
        if given not in self._options.media_types:
            allowed = " or ".join(self._options.media_types)
            raise WebError(415, "media_type", f"The Content-Type must be {allowed}. Got another one, or none.")

    def _reserve(self, headers: Mapping[str, str]) -> int:
        """Return the bytes that a body may have, which are counted as held from now on."""
        options, length = self._options, headers.get("content-length", "")
        most = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else options.largest_body
        if most > options.largest_body:
            raise self._too_large()
        if self._n_bytes + most > options.most_buffered:
            raise WebError(503, "busy", "Too many bytes are being received.", headers={"retry-after": "1"})
        self._n_bytes += most
        return most

    async def _body(self, receive: Receive, most: int) -> bytes | None:
        """Return the whole body; None where the client went away before its end."""
        parts: list[bytes] = []
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                raise self._too_large()
            parts.append(part)
            more = message.get("more_body", False)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _too_large(self) -> WebError:
        return WebError(413, "too_large", f"The body must have at most {self._options.largest_body:,} bytes. Got more.")


class _Replay:
    """Gives an application a body that was received already, and then what comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _Answer:
    """Sends a response with the headers that each must have; or an error, where none has begun."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
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
        """Send an error; where a response has begun, leave it cut off, so that nobody takes it for whole."""
        if not self._begun:
            body = error_body(error)
            fields = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
            await self._whole(error.status, fields, b"" if self._scope["method"] == "HEAD" else body)

    async def redirect(self, path: str, cookie: str) -> None:
        """Send a browser on to a path of this server, with a cookie."""
        here = "/" + path.lstrip("/").encode("ascii", "ignore").decode().replace("\\", "")
        await self._whole(303, {"location": here, "set-cookie": cookie, "content-length": "0"}, b"")

    async def _whole(self, status: int, fields: Mapping[str, str], body: bytes) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _page_policy(scope: Scope) -> bytes:
    """Return the content security policy of a page: its own server, and scripts and styles with the nonce."""
    own = f"'self' 'nonce-{csp_nonce(scope)}'"
    return (
        f"default-src 'none'; script-src {own}; style-src {own}; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ).encode()


def _is_visit(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Return whether a person follows a link to a page, which tells the other site nothing."""
    visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return visits and scope["method"] in ("GET", "HEAD")


def _without_port(host: str) -> str:
    """Return the name or address of a ``Host`` header, in lower case and without brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _place_of(error: Exception) -> str:
    """Return where an application broke, and on what kind of error; its message may hold text of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"a request broke: {type(error).__name__}{place}"
