"""The body of a request: one pair, or a list of them."""

from typing import Any

from deep.serve.check._checker import PairText
from deep.serve.web import WebError

LONGEST_ID = 200
FIELDS = frozenset({"claim", "id", "source"})


def read_pairs(value: object, most: int) -> tuple[list[tuple[str | None, PairText]], bool]:
    """Return the pairs of a body with their ids, and whether it was a list.

    Parameters
    ----------
    value : object
        A JSON value.
    most : int
        Pairs that one request may have.

    Raises
    ------
    WebError
        With status 422: it is something else, or a pair of it lacks a text.

    Examples
    --------
    >>> from deep.serve.check._requests import read_pairs
    >>> read_pairs({"source": "It rained.", "claim": "It was wet."}, 10)
    ([(None, PairText(source='It rained.', claim='It was wet.'))], False)
    """
    if isinstance(value, dict):
        return [_pair(value, "")], False
    if not isinstance(value, list):
        raise _refused(f"The body must be an object with source and claim, or a list of them. Got {_kind(value)}.")
    if not 1 <= len(value) <= most:
        raise _refused(f"The list must have 1 to {most:,} pairs. Got {len(value):,}.")
    return [_pair(each, f" in pair {number}") for number, each in enumerate(value)], True


def _pair(value: object, where: str) -> tuple[str | None, PairText]:
    if not isinstance(value, dict):
        raise _refused(f"A pair must be an object with source and claim. Got {_kind(value)}{where}.")
    if not value.keys() <= FIELDS:
        raise _refused(f"A pair must have the keys source, claim and, if wanted, id. Got another one{where}.")
    return _id(value.get("id"), where), PairText(_text(value, "source", where), _text(value, "claim", where))


def _text(pair: dict[str, Any], name: str, where: str) -> str:
    text = pair.get(name)
    if not isinstance(text, str):
        raise _refused(f"`{name}` must be text. Got {_kind(text) if name in pair else 'nothing'}{where}.")
    if not text.strip() or "\0" in text:
        raise _refused(f"`{name}` must be text. Got {'a NUL character' if text.strip() else 'a blank one'}{where}.")
    return text


def _id(value: object, where: str) -> str | None:
    if value is not None and (not isinstance(value, str) or len(value) > LONGEST_ID):
        got = "a longer one" if isinstance(value, str) else _kind(value)
        raise _refused(f"`id` must be text of at most {LONGEST_ID} characters. Got {got}{where}.")
    return value


def _refused(message: str) -> WebError:
    return WebError(422, "invalid", message)


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", dict: "an object", float: "a number", int: "a number", list: "a list", str: "text"}
    return kinds.get(type(value), "null")
