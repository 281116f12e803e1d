"""Keeping keys out of everything that is written down."""

from urllib.parse import parse_qsl, urlsplit

from deep.exceptions import InputError

MIN_SECRET = 8
"""Shorter "keys" are the placeholders that local servers ask for; removing them would tear replies apart."""

_SECRET_NAMES = ("key", "password", "secret", "sig", "token")


class Redactor:
    """Replaces every occurrence of the secrets it knows.

    Parameters
    ----------
    *secrets : str or None
        Keys; None and those shorter than 8 characters are passed over.

    Examples
    --------
    >>> from deep.llm import Redactor
    >>> Redactor("sk-0123456789")("Incorrect key sk-0123456789")
    'Incorrect key [key]'
    """

    def __init__(self, *secrets: str | None) -> None:
        self._secrets = tuple(secret for secret in secrets if secret and len(secret) >= MIN_SECRET)

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, "[key]")
        return text

    def line(self, text: str, limit: int = 300) -> str:
        """Return `text` without secrets, on one line of at most `limit` characters."""
        return " ".join(self(text).split())[:limit]


def check_base_url(url: str) -> str:
    """Return the base URL without a trailing slash, if it is one and carries no secret.

    Raises
    ------
    InputError
        Not an http(s) URL, or with a user, a password or a key in it. The message does not repeat it.

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
    names = [name.lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if "@" in parts.netloc or any(part in name for name in names for part in _SECRET_NAMES):
        raise InputError("`base_url` must hold no user, password or key: keys come from the environment only.")
    return url.rstrip("/")
