"""Keeping keys out of everything that is written down."""

import hashlib
import html.entities
import re
from urllib.parse import urlsplit

from deep.exceptions import InputError

MIN_SECRET = 8
"""Shorter "keys" are the placeholders that local servers ask for; removing them would tear replies apart."""

_PLAIN_SEGMENT = re.compile(
    r"(?!.*(?:key|password|secret|sk-|token))(?:(?:[a-z]{1,14}\d{0,2}|v?\d{1,4}[a-z]{0,4})(?:[-_.~]|$))*"
)
"""A part of a URL's path that is made of words, versions and dates; any other may be a key."""


class Redactor:
    r"""Replaces every occurrence of the secrets it knows, also as JSON, URLs and HTML spell them.

    Parameters
    ----------
    *secrets : str or None
        Keys; None and those shorter than 8 characters are passed over.

    Examples
    --------
    >>> from deep.llm import Redactor
    >>> Redactor("sk-0123456789")("Incorrect key sk-0123456789")
    'Incorrect key [key]'
    >>> Redactor("sk/0123456789")(r"sk\/0123456789 sk%2F0123456789 sk\u002f0123456789")
    '[key] [key] [key]'
    """

    def __init__(self, *secrets: str | None) -> None:
        known = [secret for secret in secrets if secret and len(secret) >= MIN_SECRET]
        self._secrets = [re.compile("".join(map(_spellings, secret))) for secret in known]

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        for secret in self._secrets:
            text = secret.sub("[key]", text)
        return text

    def line(self, text: str, limit: int = 300) -> str:
        """Return `text` without secrets, on one line of at most `limit` characters."""
        return " ".join(self(text).split())[:limit]


def _spellings(character: str) -> str:
    """Return a pattern for a character as it is, and as JSON, URLs and HTML may spell it, once or several times over.

    Each way begins with a letter of its own, by which `re` finds the places to look at quickly.
    """
    code = ord(character)
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{code:02x}")
    names = [name for name, text in html.entities.html5.items() if text == character and name[-1] == ";"]
    entities = rf"&(?:amp;)*(?:{'|'.join([rf'#0*{code};?', rf'#[xX]0*{digits};?', *names])})"
    ways = [rf"\\\\*(?:u00|x){digits}", rf"%(?:25)*{digits}", entities]
    # The character itself comes last: it may be how a longer spelling of it begins.
    plain = re.escape(character) if character.isalnum() else rf"\\*{re.escape(character)}"
    return f"(?:{'|'.join([*ways, plain])})"


def check_base_url(url: str) -> str:
    """Return the base URL without a trailing slash, if it is one and carries no secret.

    Raises
    ------
    InputError
        Not an http(s) URL, or with a user, a password, a query or a fragment. The message does not repeat it.

    Examples
    --------
    >>> from deep.llm import check_base_url
    >>> check_base_url("http://localhost:8000/v1/")
    'http://localhost:8000/v1'
    """
    try:
        parts = urlsplit(url)
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        port_is_valid = False
    if not port_is_valid or parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("`base_url` must be an http(s) URL, such as http://localhost:8000/v1. Got something else.")
    if any(sign in url for sign in "@?#"):
        raise InputError(
            "`base_url` must hold no user, password, query or fragment: keys come from the environment only."
        )
    return url.rstrip("/")


def secret_segments(url: str) -> list[str]:
    """Return the parts of a URL's path that may be keys."""
    return [part for part in urlsplit(url).path.split("/") if not _PLAIN_SEGMENT.fullmatch(part)]


def public_url(url: str) -> str:
    """Return a URL as files may hold it: what may be a key in its path is named by 8 hex digits of its SHA-256.

    Examples
    --------
    >>> from deep.llm import public_url
    >>> public_url("http://localhost/v1"), public_url("http://localhost/hunter2xyz/v1")
    ('http://localhost/v1', 'http://localhost/[4e5f83f2]/v1')
    """
    start, slashes, path = url.partition("://")
    secret = set(secret_segments(url))
    parts = (f"[{hashlib.sha256(p.encode()).hexdigest()[:8]}]" if p in secret else p for p in path.split("/"))
    return f"{start}{slashes}{'/'.join(parts)}"
