"""JSON from strangers, and JSON for them."""

import json
import re
from typing import NoReturn

from deep.serve.web._errors import WebError

DEEPEST = 32
"""Brackets within brackets; what a server of deep is sent has three or four."""

_BRACKETS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[\[\]{}]', re.DOTALL)
"""A string, whatever is in it, or a bracket."""

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

    Raises
    ------
    WebError
        With status 400: it is no UTF-8, no JSON, holds NaN or infinity, a key twice in one object, or more than 32
        brackets within each other.

    Examples
    --------
    >>> from deep.serve.web import read_json
    >>> read_json(b'{"source": "It rained.", "claim": "It was wet."}')
    {'source': 'It rained.', 'claim': 'It was wet.'}
    >>> read_json(b"[NaN]")
    Traceback (most recent call last):
    deep.serve.web._errors.WebError: The body must be JSON. Got NaN, which is no number of JSON.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise _refused(f"The body must be UTF-8. Got byte 0x{body[error.start]:02x} at {error.start}.") from None
    if _is_deep(text):
        raise _refused(f"The body must have at most {DEEPEST} brackets within each other. Got more.")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_once, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise _refused(f"The body must be JSON. Got what breaks at character {error.pos}: {error.msg}.") from None
    except ValueError as error:  # a number of thousands of digits
        raise _refused(f"The body must be JSON. Got what cannot be read: {error}.") from None


def _refused(message: str) -> WebError:
    return WebError(400, "bad_json", message)


def _is_deep(text: str) -> bool:
    """Return whether brackets go deep; a body with few of them is not looked through."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for token in _BRACKETS.finditer(text):
        kind = token[0][0]
        depth += (kind in "[{") - (kind in "]}")
        if depth > DEEPEST:
            return True
    return False


def _no_constant(name: str) -> NoReturn:
    raise _refused(f"The body must be JSON. Got {name}, which is no number of JSON.")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _refused("The body must be JSON. Got a number beyond all floats.")
    return number


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _refused("The body must have each key once. Got one twice in an object.")
    return found
