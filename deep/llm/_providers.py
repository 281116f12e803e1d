"""Endpoints by the name of their provider: key, URL, and what each lacks; and secrets cut out of texts."""

import hashlib
import html.entities
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from deep._util.files import parse_toml, read_bytes
from deep.exceptions import InputError
from deep.llm._gate import Quirk

OWN = "DEEP_PROVIDERS"
"""The environment variable that names a file of further rows."""

_DROPPED = {"schema": ("response_format",), "logprobs": ("logprobs", "top_logprobs"), "n": (), "batches": ()}
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Provider:
    """One row of the table of providers; ``providers.toml`` says what its columns are."""

    name: str
    base_url: str
    key: str = ""
    lacks: tuple[str, ...] = ()
    tried: bool = False
    source: str = ""

    @classmethod
    def of(cls, llm: str) -> "Provider | None":
        """Return the provider that an LLM is named after, as in ``mistral/mistral-small``; None where it is none's.

        Raises
        ------
        InputError
            The file of further rows cannot be used.

        Examples
        --------
        >>> from deep.llm import Provider
        >>> Provider.of("anthropic/claude-sonnet-4-5").key, Provider.of("meta-llama/Llama-3")
        ('ANTHROPIC_API_KEY', None)
        """
        name, slash, model = llm.partition("/")
        row = _rows().get(name) if slash and model else None
        return None if row is None else cls(name, **{**row, "lacks": tuple(row.get("lacks", ()))})

    @cached_property
    def address(self) -> str:
        """Its base URL, with the values of the environment in place of their names."""
        missing = [name for name in _NAME.findall(self.base_url) if not os.environ.get(name)]
        if missing:
            raise InputError(f"`{missing[0]}` must be set for {self.name}/..., whose address it is in. Got nothing.")
        return check_base_url(_NAME.sub(lambda name: os.environ[name[1]], self.base_url))

    @property
    def endpoint(self) -> str:
        """Its name in the ledger."""
        return public_url(self.address)

    def quirks(self, models: Iterable[str]) -> Iterator[Quirk]:
        """Yield the fields of a request that are not sent to it."""
        for model in models:
            for field in (field for lack in self.lacks for field in _DROPPED[lack]):
                yield Quirk(self.endpoint, model, field, "dropped", f"{self.name} lacks it: {self.source}")


def _rows() -> Mapping[str, dict[str, Any]]:
    """Return the rows of the table by name, those of one's own before others."""
    text = files("deep.llm").joinpath("providers.toml").read_text(encoding="utf-8")
    path = os.environ.get(OWN)
    return tomllib.loads(text) | ({} if not path else _read(path))


def _read(path: str) -> dict[str, dict[str, Any]]:
    try:
        rows = parse_toml(read_bytes(path, OWN))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"`{OWN}` must be a readable TOML file. Got {path!r}: {error}.") from None
    for name, row in rows.items():
        known = isinstance(row, dict) and row.keys() <= {"base_url", "key", "lacks", "tried", "source"}
        if not known or not isinstance(row.get("base_url"), str) or not {*row.get("lacks", ())} <= _DROPPED.keys():
            raise InputError(
                f"`{OWN}` must hold tables with base_url, key, lacks (of {', '.join(sorted(_DROPPED))}), tried and "
                f"source. Got {name!r} in {path!r}."
            )
    return rows


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
    if not port_is_valid or not url.isprintable() or parts.scheme not in ("http", "https") or not parts.hostname:
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
