"""The guard in front of every application: who may ask, from where, how much, how often."""

import ipaddress
import os
import re
import secrets
import sys
import traceback
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from math import ceil
from pathlib import Path
from time import monotonic
from typing import ClassVar
from urllib.parse import parse_qs

from deep._util.files import read_bytes
from deep._util.options import option
from deep.exceptions import DeepError, InputError
from deep.integrations.serve._exchange import (
    SERVER_BUG_MESSAGE,
    ASGIApp,
    GuardedResponse,
    Receive,
    RequestBody,
    Scope,
    Send,
    WebError,
)

# Names of this machine that only this machine can reach.
LOOPBACK = ("127.0.0.1", "::1", "localhost")
# The most bytes of a file of a token: one that is longer is another file by mistake.
LONGEST_FILE = 1 << 12

# Characters of a token that cannot be guessed by trying.
MIN_LENGTH = 16


def to_stderr(line: str) -> None:
    """Write a line for whoever watches the terminal."""
    sys.stderr.write(f"{line}\n")


class Access:
    """Checks tokens in constant time, and hands out sessions to browsers.

    A program sends ``Authorization: Bearer TOKEN``. A browser opens the address with a ticket, which is good for one
    use and is no token: it is changed for a cookie, and a new ticket takes its place.

    Parameters
    ----------
    token : str, optional
        None: everybody may ask.

    Raises
    ------
    InputError
        The token is shorter than 16 characters, or holds other than printable ASCII.

    Examples
    --------
    >>> from deep.integrations.serve import Access
    >>> access = Access("0123456789abcdef")
    >>> access.allows({"authorization": "Bearer 0123456789abcdef"}), access.allows({"authorization": "Bearer 1"})
    (True, False)
    """

    def __init__(self, token: str | None = None) -> None:
        if token is not None and (len(token) < MIN_LENGTH or not token.isascii() or not token.isprintable()):
            raise InputError(f"`token` must have at least {MIN_LENGTH} printable ASCII characters. Got something else.")
        self._token = None if token is None else token.encode()
        self._session = secrets.token_urlsafe(32)
        self.ticket = secrets.token_urlsafe(16)
        self.cookie = f"deep-{sha256(self._session.encode()).hexdigest()[:8]}"

    @property
    def is_open(self) -> bool:
        """Return whether everybody may ask."""
        return self._token is None

    def allows(self, headers: Mapping[str, str]) -> bool:
        """Return whether the headers of a request, their names in lower case, hold the token or a session."""
        if self._token is None:
            return True
        scheme, _, credentials = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(credentials.strip(), self._token):
            return True
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == self.cookie and _same(value, self._session.encode()) for name, _, value in cookies)

    def redeem(self, ticket: str) -> str | None:
        """Return the header that gives a browser its session, and put a new ticket in place; None: it is not valid."""
        if not _same(ticket, self.ticket.encode()):
            return None
        self.ticket = secrets.token_urlsafe(16)
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"


def _same(text: str, token: bytes) -> bool:
    return compare_digest(text.encode(errors="replace"), token)


def find_token(path: Path | None, host: str, say: Callable[[str], object] = to_stderr) -> str | None:
    """Return the token that clients must send: of a file, of ``DEEP_TOKEN``, or a new one where others can come.

    Parameters
    ----------
    path : Path or None
        The file that holds the token, ``--token-file``; it comes before ``DEEP_TOKEN``.
    host : str
        The address to listen at.
    say : callable, default: a line on standard error
        Told a new token, this once.

    Raises
    ------
    InputError
        The file cannot be read.
    """
    if path is not None:
        try:
            return read_bytes(path, "token_file", LONGEST_FILE).decode("ascii").strip()
        except (OSError, UnicodeDecodeError):
            raise InputError(f"`token_file` must be a readable file of ASCII. Got {str(path)!r}.") from None
    env_token = os.environ.get("DEEP_TOKEN", "").strip()
    if env_token or host in LOOPBACK:
        return env_token or None
    token = secrets.token_urlsafe(24)
    say(f"token: {token}")
    return token


# The paths that need no token and count towards no limit.
HEALTH_PATHS = ("/healthz", "/readyz")

# Hosts that stand for every address of this machine.
WILDCARDS = ("", "0.0.0.0", "::")
ANY_ADDRESS = "*"
CHANGING_METHODS = frozenset({"DELETE", "PATCH", "POST", "PUT"})

# Headers that decide who may ask: of two, a proxy may have looked at the other one.
ONCE_HEADERS = ("authorization", "content-type", "host", "origin", "sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site")

# Bytes of the bodies that are being received and answered, together.
MOST_BUFFERED = 1 << 26

# All that a body may be; a form of another site is none.
JSON = "application/json"

# Addresses whose rate is remembered; those that have been quiet go first.
MOST_CLIENTS = 10_000


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Where a server listens, and what its guard lets pass.

    Parameters
    ----------
    host : str, default='127.0.0.1'
        The address to listen at; any but loopback needs a token.
    port : int, default=8000
        0: any that is free.
    token : str, optional
        What a client must send; see :class:`Access`.
    names : tuple of str, optional
        Other host names of the server, for instance behind a proxy.
    largest_body : int, default=4 MiB
        Of one request's body.
    at_once : int, default=256
        Requests answered side by side; one more gets 503.
    rate : float, optional
        Requests a second from one address.
    read_timeout : float, default=20.0
        Seconds for a request to come.
    most_connections : int, default=512
        Connections that may be open.

    Raises
    ------
    InputError
        A value is out of range, or another address than loopback is without a token.
    """

    heading: ClassVar[str] = "address, access and limits"

    host: str = option("127.0.0.1")
    port: int = option(8000, "N")
    token: str | None = None
    names: tuple[str, ...] = option((), "NAME", flags=["--allow-name"])
    largest_body: int = option(1 << 22, "BYTES", rare=True, flags=["--max-body"])
    at_once: int = option(256, "N", rare=True, flags=["--max-requests"])
    rate: float | None = option(None, "N")
    read_timeout: float = option(20.0, "S", rare=True)
    most_connections: int = 512

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise InputError(f"`port` must be from 0 to 65535. Got {self.port!r}.")
        for name in ("largest_body", "at_once", "rate", "read_timeout", "most_connections"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise InputError(f"`{name}` must be above 0. Got {value!r}.")
        if self.host not in LOOPBACK and self.token is None:
            raise InputError(
                f"`token` must be given where others can reach the server. Got none with host {self.host!r}. "
                "Give one, or listen at 127.0.0.1."
            )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the names by which the server may be called, ports apart; ``'*'`` stands for every IP address.

        Any other one in the ``Host`` header is refused, which stops DNS rebinding; addresses nobody can rebind.
        """
        return *LOOPBACK, ANY_ADDRESS if self.host in WILDCARDS else self.host, *self.names


class Guard:
    """Middleware (ASGI) that refuses what an application should not see; each refusal is one JSON error.

    In this order: a body with two lengths (400), the ``Host`` (421), a request that another site's page makes (403),
    the token (401), the rate (429), the number of requests at once (503), the kind (415) and the size (413) of the
    body, which the application finds whole. The body of what is refused is read and dropped, up to `MOST_DROPPED`
    bytes, and the connection is closed. What the application raises is answered with 500, and no message of it is
    written anywhere, for it may hold text.

    Parameters
    ----------
    app : ASGI application
        What the guard stands in front of.
    options : ServerOptions, optional
        Default: port 8000 of loopback, without a token.
    say : callable, optional
        Called with the one line that tells of a ticket that was used, or of an error of the application.
    port : int, default=0
        Where the server listens, which its address says.

    Attributes
    ----------
    n_cut : int
        Requests that the end of the server has cut off.
    failure : DeepError or None
        Why the application could not start.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServerOptions | None = None,
        say: Callable[[str], object] = lambda _: None,
        port: int = 0,
    ) -> None:
        self._app, self._say, self._port = app, say, port
        self._options = options or ServerOptions()
        self._access = Access(self._options.token)
        self._due: dict[str, float] = {}
        self._hosts = frozenset(_host_of(host) for host in self._options.hosts if host != ANY_ADDRESS)
        self._n_requests = self._n_bytes = self.n_cut = 0
        self.failure: DeepError | None = None

    def address(self, page: str = "") -> str:
        """Return the address of the server, or of a page of it with the ticket that opens it."""
        host = LOOPBACK[0] if self._options.host in WILDCARDS else self._options.host
        ticket = "" if self._access.is_open or not page else f"?token={self._access.ticket}"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._port}{page}{ticket}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._run_lifespan(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no application of deep has web sockets
        body = RequestBody(receive)
        answer = GuardedResponse(scope, send, body)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
        try:
            _check_framing(scope, headers)
            _to_origin_form(scope, headers)
            self._check_origin(scope, headers)
            if scope["path"] in HEALTH_PATHS:
                await self._app(scope, body, answer.send)
            elif not await self._opens_session(scope, answer):
                self._check_access(scope, headers)
                await self._pass_on(scope, headers, body, answer)
        except WebError as error:
            await answer.refuse(error)
        except CancelledError:
            self.n_cut += 1
            body.ended = True  # nothing more of it is waited for
            await answer.refuse(WebError(503, "ending", "The server was stopped before the answer was ready."))
        except Exception as error:
            self._say(_place_of(error))
            await answer.refuse(WebError(500, "broken", SERVER_BUG_MESSAGE))

    async def _run_lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application start and end; keep the error for which it could not start."""
        try:
            await self._app(scope, receive, send)
        except DeepError as error:
            self.failure = error
            raise

    def _check_origin(self, scope: Scope, headers: Mapping[str, str]) -> None:
        """Raise where a request came by a name that is not ours, or was made by another site's page."""
        host = headers.get("host", "")
        name = _host_of(host)
        if name not in self._hosts and not (ANY_ADDRESS in self._options.hosts and _address_of(name) is not None):
            raise WebError(421, "wrong_host", "The server must be called by its own name or address. Got another Host.")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not _is_visit(scope, headers):
            raise WebError(403, "cross_site", "Only the server's own pages and programs may ask. Got another site's.")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            raise WebError(403, "cross_site", "Only the server's own pages and programs may ask. Got another Origin.")

    def _check_access(self, scope: Scope, headers: Mapping[str, str]) -> None:
        if not self._access.allows(headers):
            message = "A token must be sent as 'Authorization: Bearer TOKEN'; in a browser, open the printed address."
            raise WebError(401, "unauthorized", message, headers={"www-authenticate": "Bearer"})
        if self._options.rate is not None:
            self._check_rate((scope.get("client") or ("",))[0], self._options.rate)

    def _check_rate(self, client: str, rate: float) -> None:
        """Count a request by the time at which the next one is due (GCRA, a token bucket of one number a client)."""
        now = monotonic()
        due = max(now, self._due.pop(client, now))
        wait = due - now - max(2 * rate - 1, 0) / rate
        self._due[client] = due if wait > 0 else due + 1 / rate
        if len(self._due) > MOST_CLIENTS:
            del self._due[next(iter(self._due))]
        if wait > 0:
            raise WebError(429, "rate", "Too many requests a second.", headers={"retry-after": str(ceil(wait))})

    async def _opens_session(self, scope: Scope, answer: GuardedResponse) -> bool:
        """Change a ticket in the address for a session, where there is one; the address is then without it."""
        query = scope["query_string"]
        if self._access.is_open or scope["method"] != "GET" or not query.startswith(b"token="):
            return False
        cookie = self._access.redeem(parse_qs(query.decode("latin-1")).get("token", [""])[0])
        if cookie is None:
            raise WebError(401, "used", "The address must be the last one printed. It opens one browser, once.")
        self._say(f"to open another browser: {self.address('/')}")
        await answer.redirect(scope["path"], cookie)
        return True

    async def _pass_on(
        self, scope: Scope, headers: Mapping[str, str], body: RequestBody, answer: GuardedResponse
    ) -> None:
        """Give a request to the application once its body is whole; refuse it where too many are in hand."""
        options = self._options
        if self._n_requests >= options.at_once:
            raise WebError(503, "busy", "Too many requests at once.", headers={"retry-after": "1"})
        self._n_requests += 1
        n_bytes = 0
        try:
            if scope["method"] in CHANGING_METHODS:
                self._check_media_type(headers)
                n_bytes = self._reserve(headers)
                if not await body.read(n_bytes):
                    raise self._too_large_error()
            if not body.gone:
                await self._app(scope, body, answer.send)
        finally:
            self._n_requests -= 1
            self._n_bytes -= n_bytes

    def _check_media_type(self, headers: Mapping[str, str]) -> None:
        media_type, _, rest = headers.get("content-type", "").lower().partition(";")
        if media_type.strip() != JSON:
            raise WebError(415, "media_type", f"The Content-Type must be {JSON}. Got another one, or none.")
        charset = re.search(r'charset\s*=\s*"?([^";\s]*)', rest)
        if charset is not None and charset[1] not in ("utf-8", "utf8"):
            raise WebError(415, "media_type", "The charset of the body must be UTF-8. Got another one.")

    def _reserve(self, headers: Mapping[str, str]) -> int:
        """Return the bytes that a body may have, which are counted as held from now on."""
        options, length = self._options, headers.get("content-length", "")
        most = int(length) if length.isascii() and length.isdigit() and len(length) < 20 else options.largest_body
        if most > options.largest_body:
            raise self._too_large_error()
        if self._n_bytes + most > MOST_BUFFERED:
            raise WebError(503, "busy", "Too many bytes are being received.", headers={"retry-after": "1"})
        self._n_bytes += most
        return most

    def _too_large_error(self) -> WebError:
        return WebError(413, "too_large", f"The body must have at most {self._options.largest_body:,} bytes. Got more.")


def _is_visit(scope: Scope, headers: Mapping[str, str]) -> bool:
    """Return whether a person follows a link to a page, which tells the other site nothing."""
    visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return visits and scope["method"] in ("GET", "HEAD")


def _check_framing(scope: Scope, headers: Mapping[str, str]) -> None:
    """Raise where two readers of a request could see two: a body of two lengths, a header that decides given twice."""
    if "content-length" in headers and "transfer-encoding" in headers:
        raise WebError(400, "bad_http", "The body must have Content-Length or Transfer-Encoding. Got both.")
    names = [name.decode("latin-1") for name, _ in scope["headers"]]
    if len(names) > len(headers) and any(names.count(name) > 1 for name in ONCE_HEADERS):
        raise WebError(400, "bad_http", "A header that identifies the client must be given once. Got one twice.")


def _to_origin_form(scope: Scope, headers: Mapping[str, str]) -> None:
    """Take the server's own address off a path, which clients of proxies put there and servers must take (RFC 9112)."""
    scheme, mark, rest = scope["path"].partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        return
    host, _, path = rest.partition("/")
    if host.lower() != headers.get("host", "").lower():
        raise WebError(400, "bad_http", "The address in the request must match the Host header. Got another one.")
    scope["path"] = f"/{path}"


def _host_of(host: str) -> str:
    """Return the name of a ``Host`` header without its port, or its address in its one spelling."""
    bare = host[1:].partition("]")[0] if host.startswith("[") else host
    address = _address_of(bare if host.startswith("[") or bare.count(":") > 1 else bare.partition(":")[0])
    return address or bare.partition(":")[0].lower()


def _address_of(host: str) -> str | None:
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return None


def _place_of(error: Exception) -> str:
    """Return where an application broke, and on what kind of error; its message may hold text of a request."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"a request broke: {type(error).__name__}{place}"
