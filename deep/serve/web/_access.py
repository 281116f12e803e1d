"""Who may ask: a token, and tickets that open a browser's session once."""

import os
import secrets
import sys
from collections.abc import Callable, Mapping
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from deep._files import read_bytes
from deep.exceptions import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LONGEST_FILE = 1 << 12

FEWEST = 16
"""Characters of a token that cannot be guessed by trying."""


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
    >>> from deep.serve.web import Access
    >>> access = Access("0123456789abcdef")
    >>> access.allows({"authorization": "Bearer 0123456789abcdef"}), access.allows({"authorization": "Bearer 1"})
    (True, False)
    """

    def __init__(self, token: str | None = None) -> None:
        if token is not None and (len(token) < FEWEST or not token.isascii() or not token.isprintable()):
            raise InputError(f"`token` must have at least {FEWEST} printable ASCII characters. Got something else.")
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
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(given.strip(), self._token):
            return True
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        return any(name == self.cookie and _same(value, self._session.encode()) for name, _, value in cookies)

    def redeem(self, ticket: str) -> str | None:
        """Return the header that gives a browser its session, and put a new ticket in place; None: it is not valid."""
        if not _same(ticket, self.ticket.encode()):
            return None
        self.ticket = secrets.token_urlsafe(16)
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/"


def _same(given: str, wanted: bytes) -> bool:
    return compare_digest(given.encode(errors="replace"), wanted)


def find_token(path: Path | None, host: str, say: Callable[[str], object] = to_stderr) -> str | None:
    """Return the token that clients must send: of a file, of ``DEEP_TOKEN``, or a new one where others can come.

    Parameters
    ----------
    path : Path or None
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
    given = os.environ.get("DEEP_TOKEN", "").strip()
    if given or host in LOOPBACK:
        return given or None
    token = secrets.token_urlsafe(24)
    say(f"token: {token}")
    return token
