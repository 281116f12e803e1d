"""Endpoints by the name of their provider: key, URL, and what each lacks or refuses; secrets cut out of texts."""

import asyncio
import hashlib
import html.entities
import ipaddress
import os
import re
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import urlsplit

from deep._util.files import read_toml
from deep.exceptions import InputError
from deep.judges import Choice
from deep.llm._errors import CallError, unquoted_words
from deep.llm._messages import Body, json_text

# The environment variable that names a file of further rows.
ENV_VAR = "DEEP_PROVIDERS"

# The fields of a request that are not sent to a provider which lacks a feature. "n" and "batches" leave none out: deep
# asks for one sample a request, and its Batch API goes to an address. Rows name them only to tell readers.
_BY_LACK = {"schema": ("response_format",), "logprobs": ("logprobs", "top_logprobs"), "n": (), "batches": ()}
_NAME = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Provider:
    """One row of the table of providers, ``providers.toml``.

    Parameters
    ----------
    name : str
        What stands before the slash in the name of an LLM.
    base_url : str
        Its address; ``{NAME}`` stands for an environment variable.
    key : str, default=''
        The environment variable that holds the key; empty: none is sent.
    lacks : tuple of str
        Features that it refuses or ignores: schema, logprobs, n, batches.
    tried : bool, default=False
        Whether deep has asked it; else the first call says that nobody has.
    source : str, default=''
        The page that says all this.
    """

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
        unset = [name for name in _NAME.findall(self.base_url) if not os.environ.get(name)]
        if unset:
            raise InputError(f"`{unset[0]}` must be set for {self.name}/..., whose address it is in. Got nothing.")
        return check_base_url(_NAME.sub(lambda name: os.environ[name[1]], self.base_url))

    @property
    def endpoint(self) -> str:
        """Its name in the ledger."""
        return public_url(self.address)

    def quirks(self, models: Iterable[str]) -> "Iterator[Quirk]":
        """Yield the fields of a request that are not sent to it."""
        for model in models:
            for field in (field for lack in self.lacks for field in _BY_LACK[lack]):
                yield Quirk(self.endpoint, model, field, "dropped", f"{self.name} lacks it: {self.source}")


def _rows() -> Mapping[str, dict[str, Any]]:
    """Return the rows of the table by name, those of one's own before others."""
    text = files("deep.llm").joinpath("providers.toml").read_text(encoding="utf-8")
    path = os.environ.get(ENV_VAR)
    own_rows = read_toml(path, ENV_VAR) if path else {}
    for name, row in own_rows.items():
        is_known = isinstance(row, dict) and row.keys() <= {"base_url", "key", "lacks", "tried", "source"}
        if not is_known or not isinstance(row.get("base_url"), str) or not {*row.get("lacks", ())} <= _BY_LACK.keys():
            raise InputError(
                f"`{ENV_VAR}` must hold tables with base_url, key, lacks (of {', '.join(sorted(_BY_LACK))}), tried and "
                f"source. Got {name!r} in {path!r}."
            )
    # The user's own rows come last, and win.
    return tomllib.loads(text) | own_rows


# Shorter "keys" are the placeholders that local servers ask for; removing them would tear replies apart.
MIN_SECRET = 8

# A part of a URL's path that is made of words, versions and dates; any other may be a key.
_PLAIN_SEGMENT = re.compile(
    r"(?!.*(?:key|password|secret|sk-|token))(?:(?:[a-z]{1,14}\d{0,2}|v?\d{1,4}[a-z]{0,4})(?:[-_.~]|$))*"
)


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
        long_secrets = [secret for secret in secrets if secret and len(secret) >= MIN_SECRET]
        self._secrets = [re.compile("".join(map(_spellings, secret))) for secret in long_secrets]

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
    # Addresses stand in ledgers and vote files, where a password would be published.
    if any(sign in url for sign in "@?#"):
        raise InputError(
            "`base_url` must hold no user, password, query or fragment: keys come from the environment only."
        )
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Return whether an address is this machine's own.

    Examples
    --------
    >>> from deep.llm._providers import is_loopback
    >>> is_loopback("http://127.0.0.2:8080/v1"), is_loopback("http://localhost/v1"), is_loopback("http://10.0.0.1/v1")
    (True, True, False)
    """
    host = urlsplit(url).hostname or ""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


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


_DROPPABLE = (
    "response_format",
    "structured_outputs",
    "top_logprobs",
    "logprobs",
    "temperature",
    "top_p",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "reasoning_effort",
    "stop",
)
# OpenAI's reasoning models take the new name alone.
_RENAMED = {"max_tokens": "max_completion_tokens"}
_WORDS_OF_REFUSAL = re.compile(
    r"unsupported|support|unknown|unrecogni[sz]ed|unexpected|invalid|not (?:allowed|permitted|available)|extra inputs",
    re.IGNORECASE,
)
# A request for the top ones without log-probabilities is refused, so that both go.
_FIELDS_DROPPED_WITH = {"logprobs": ("logprobs", "top_logprobs"), "top_logprobs": ("logprobs", "top_logprobs")}


@dataclass(frozen=True, slots=True)
class Quirk:
    """One field that one model refuses or ignores.

    Parameters
    ----------
    endpoint, model : str
        The endpoint, and the model there that refuses or ignores the field.
    parameter : str
        The field of the request.
    action : {'dropped', 'ignored', 'renamed'}
        What is done about it; an ignored field is sent all the same, and its answer not expected, unless it only
        constrains the reply to a choice.
    message : str, optional
        The endpoint's own words.
    """

    endpoint: str
    model: str
    parameter: str
    action: Literal["dropped", "ignored", "renamed"]
    message: str | None = None

    @property
    def field(self) -> "_Field":
        """The field, of this model there."""
        return self.endpoint, self.model, self.parameter


# An endpoint, a model of it, and a field of requests.
_Field = tuple[str, str, str]


class ModelGate:
    """Lets requests pass to the models of a run, in a form that each model accepts.

    The first request to a model is its canary request: it goes alone, and so does the next one where that was
    refused. What the model cannot do, and that it is not there at all, is then learned once and not by all workers.

    Parameters
    ----------
    known : iterable of Quirk
        Those an earlier run has written down.

    Attributes
    ----------
    closed : bool
        Whether nothing more is to be asked; who waits at the gate is let through, to find that out.

    Examples
    --------
    >>> from deep.llm import ModelGate, Quirk
    >>> gate = ModelGate([Quirk("e", "o1", "temperature", "dropped"), Quirk("e", "o1", "max_tokens", "renamed")])
    >>> gate.apply("e", {"model": "o1", "temperature": 0, "max_tokens": 9})
    {'model': 'o1', 'max_completion_tokens': 9}
    """

    def __init__(self, known: Iterable[Quirk] = ()) -> None:
        self._quirks = {quirk.field: quirk for quirk in known}
        self._accepted: set[_Field] = set()
        self._causes: set[_Field] = set()
        self._helps: Counter[_Field] = Counter()
        self._canaries: dict[str, asyncio.Event] = {}
        self._open: set[str] = set()
        self.closed = False

    @asynccontextmanager
    async def turn(self, model: str) -> AsyncIterator[None]:
        """Wait until `model` is open, or until it is this caller's turn to send the canary request."""
        # Again after each wait: where a canary request was refused, the next one is a canary too.
        while self._is_shut(model) and model in self._canaries:
            await self._canaries[model].wait()
        if not self._is_shut(model):
            yield
            return
        self._canaries[model] = end = asyncio.Event()
        try:
            yield
        finally:
            del self._canaries[model]
            end.set()

    def _is_shut(self, model: str) -> bool:
        return model not in self._open and not self.closed

    def open(self, model: str) -> None:
        """Let everybody pass to `model`."""
        self._open.add(model)
        if model in self._canaries:
            self._canaries[model].set()

    def apply(self, endpoint: str, body: Body, choice: Choice | None = None, tried: Iterable[Quirk] = ()) -> Body:
        """Return the body that this model accepts, if `tried` are quirks of it; `body` itself where it accepts that."""
        optional = () if choice is None else choice.fields
        actions = {
            parameter: "dropped" if quirk.action == "ignored" else quirk.action
            for (where, model, parameter), quirk in (self._quirks | {quirk.field: quirk for quirk in tried}).items()
            if where == endpoint and model == body["model"] and parameter in body
            if quirk.action != "ignored" or parameter in optional
        }
        if not actions:
            return body
        fields = {name: value for name, value in body.items() if actions.get(name) != "dropped"}
        return {(_RENAMED[name] if name in actions else name): value for name, value in fields.items()}

    def explain(self, endpoint: str, body: Body, error: CallError, parameter: str | None = None) -> list[Quirk]:
        """Return the quirks that may explain why `body` was refused; none where it was for another reason.

        Without a `parameter` that is taken to be the cause, it is the one that the endpoint names.
        """
        # Other statuses are about the key, the rate or the server, never about one field.
        is_refusal = error.status in (400, 403, 422) and error.kind == "rejected"
        candidates = [name for name in (*_DROPPABLE, *_RENAMED) if name in body and is_refusal]
        from_endpoint = (error.parameter or "").split(".")[0]
        named_field = parameter or (from_endpoint if from_endpoint in candidates else None)
        # The field that the endpoint's own words name, not those that it quotes from the request.
        words = unquoted_words(error.message, json_text(body))
        names = candidates if _WORDS_OF_REFUSAL.search(words) else ()
        blamed_field = named_field or next((name for name in names if re.search(rf"\b{name}\b", words)), "")
        result = [
            Quirk(endpoint, str(body["model"]), name, "renamed" if name in _RENAMED else "dropped", error.message)
            for name in _FIELDS_DROPPED_WITH.get(blamed_field, (blamed_field,))
            if name in body
        ]
        self._causes.update(quirk.field for quirk in result if named_field)
        return result

    def learn(self, endpoint: str, body: Body, error: CallError) -> list[Quirk]:
        """Write down why `body` was refused in a batch, where nothing can be tried at once; return what is new.

        A field that `param` names is believed; one in the words only where no request with it was answered.
        """
        result = self.explain(endpoint, body, error)
        return self._add(quirk for quirk in result if quirk.field in self._causes or quirk.field not in self._accepted)

    def take(self, endpoint: str, body: Body, tried: Sequence[Quirk] = ()) -> list[Quirk]:
        """Note the fields of a request that was answered; return new quirks out of those that were `tried` for it.

        Words alone may be about the one request: they are believed once two requests were answered without the field,
        and none with it.
        """
        model = str(body["model"])
        # A field that came with an answer was not refused, whatever a later message names.
        self._accepted.update((endpoint, model, name) for name in body)
        self._helps.update(quirk.field for quirk in tried)
        return self._add(
            quirk
            for quirk in tried
            if quirk.field not in self._accepted and (quirk.field in self._causes or self._helps[quirk.field] > 1)
        )

    def quirks(self, endpoint: str) -> list[Quirk]:
        """Return the quirks of the models of an endpoint, in the order in which they were learned."""
        return [quirk for quirk in self._quirks.values() if quirk.endpoint == endpoint]

    def ignored(self, endpoint: str, model: str, parameter: str) -> list[Quirk]:
        """Write down that the model took `parameter` and did nothing about it; none where that is known."""
        return self._add([Quirk(endpoint, model, parameter, "ignored", "accepted, but the reply shows no effect")])

    def _add(self, quirks: Iterable[Quirk]) -> list[Quirk]:
        new = [quirk for quirk in quirks if quirk.field not in self._quirks]
        self._quirks.update({quirk.field: quirk for quirk in new})
        return new
