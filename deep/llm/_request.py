"""A request as it is asked for, and the key under which its answer is kept for ever."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deep.exceptions import InputError
from deep.judge import Choice

Body = Mapping[str, object]
"""A chat completion request as JSON."""


def json_text(value: object, *, sort_keys: bool = False) -> str:
    r"""Return compact JSON that any database and any HTTP client can carry.

    Text outside ASCII stays as it is, so that a token estimate by length is fair; lone surrogates, which have no
    UTF-8, are escaped.

    Raises
    ------
    InputError
        `value` holds something that JSON cannot say, such as NaN.

    Examples
    --------
    >>> from deep.llm import json_text
    >>> json_text({"b": "é", "a": 1}, sort_keys=True)
    '{"a":1,"b":"é"}'
    >>> json_text("\ud800")
    '"\\ud800"'
    """
    try:
        text = json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"`body` must hold only what JSON can say. Got {error}.") from None
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=sort_keys, separators=(",", ":"), allow_nan=False)
    return text


def storable(text: str | None) -> str | None:
    """Return text from a server as any database can hold it: without NUL, lone surrogates replaced."""
    if text is None or (text.isprintable() and text.isascii()):
        return text
    return text.replace("\0", "").encode(errors="replace").decode()


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One question to one model about one item.

    Parameters
    ----------
    body : mapping
        The chat completion request as asked for, before any field is dropped for a model that lacks it.
    endpoint : str
        The name of the endpoint; the base URL, or a name that stays when the address changes.
    prompt : str
        The prompt's id, for reports.
    prompt_hash : str
        The hash of the prompt's content.
    voter : str
        The column of the vote matrix that the answer belongs to.
    dataset, item : str
        The row of the vote matrix.
    sample : int
        0 for the first sample of the same question.
    group : str, optional
        Requests in a row that share their group share a prefix: the first goes alone, the others after it.
    context : object, optional
        Whatever the parser needs to read the answer; no part of the request's identity.
    choice : Choice, optional
        The constraint whose fields `body` holds; no part of the request's identity either.

    Examples
    --------
    >>> from deep.llm import Request
    >>> body = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
    >>> row = {"voter": "p@0a/m", "dataset": "d", "item": "1"}
    >>> asked = Request(body=body, endpoint="local", prompt="p", prompt_hash="0a", **row)
    >>> asked.key[:8], asked.model
    ('75ab5d1f', 'm')
    """

    body: Body
    endpoint: str
    prompt: str
    prompt_hash: str
    voter: str
    dataset: str
    item: str
    sample: int = 0
    group: str | None = None
    context: Any = None
    choice: Choice | None = None

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body["model"])

    @property
    def key(self) -> str:
        """SHA-256 (64 hex digits) of body, endpoint name, prompt hash and sample index, in canonical JSON."""
        constraint = () if self.choice is None else self.choice.fields
        body = {name: value for name, value in self.body.items() if name not in constraint}
        identity = {"body": body, "endpoint": self.endpoint, "prompt": self.prompt_hash, "sample": self.sample}
        return hashlib.sha256(json_text(identity, sort_keys=True).encode()).hexdigest()
