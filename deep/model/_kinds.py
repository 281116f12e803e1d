"""Kinds of JSON values: how each is checked when it is read, and how it is written."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats
from deep._util.names import check_name

# What was read so far, by key: a later value may have to be as long as an earlier one.
EarlierValues = Mapping[str, Any]

# A number of entries: itself, that of an earlier key, or worked out from earlier keys; None where any will do.
ArraySize = int | str | Callable[[EarlierValues], int] | None

# Log-odds, coefficients and counts lie far below: with more of them sums overflow.
LARGEST_NUMBER = 1e12


def require(holds: object, rule: str) -> None:
    """Raise where a rule does not hold."""
    if not holds:
        raise ValueError(rule)


@dataclass(frozen=True)
class JsonKind:
    """How a value of a file is read and written.

    Parameters
    ----------
    read : callable
        From a JSON value, its name for an error, and what was read before. Raises an AttributeError, KeyError,
        OverflowError, TypeError or ValueError where the value is none of this kind.
    write : callable
        From what `read` returns to a JSON value.
    """

    read: Callable[[Any, str, EarlierValues], Any]
    write: Callable[[Any], Any] = lambda value: value

    def checked(self, holds: Callable[[Any], object], rule: str) -> "JsonKind":
        """Return the kind of the values for which a rule holds; ``{}`` in its text stands for the name."""

        def read(value: Any, where: str, earlier: EarlierValues) -> Any:
            result = self.read(value, where, earlier)
            require(holds(result), rule.format(where))
            return result

        return JsonKind(read, self.write)

    def made_into(self, build: Callable[[Any], Any], take: Callable[[Any], Any]) -> "JsonKind":
        """Return the kind of what `build` makes of a value, and `take` turns back."""
        return JsonKind(
            lambda value, where, earlier: build(self.read(value, where, earlier)), lambda one: self.write(take(one))
        )


def _read_name(value: Any, where: str, _: EarlierValues) -> str:
    require(isinstance(value, str), f"{where} must be text")
    return check_name(value, where)


# A text that fits on one line.
NAME = JsonKind(_read_name)

# The kind of any JSON value, unchecked.
ANY = JsonKind(lambda value, _, __: value)
TEXT = ANY.checked(lambda value: isinstance(value, str), "{} must be text")


def one_of(allowed: Iterable[object]) -> JsonKind:
    """Return the kind of values that are among these."""

    def read(value: object, where: str, _: EarlierValues) -> object:
        require(value in tuple(allowed), f"{where} must be known, not {value!r}")
        return value

    return JsonKind(read)


def unchecked_type(kind: type) -> JsonKind:
    """Return the kind of JSON values of a type that are shown and decide nothing."""

    def read(value: object, where: str, _: EarlierValues) -> object:
        require(isinstance(value, kind), f"{where} must be a {kind.__name__}")
        stack = [value]
        while stack:  # the name of a dataset, say, must fit on one line
            inner = stack.pop()
            if isinstance(inner, dict):
                for name in inner:
                    check_name(name, where)
                stack += inner.values()
            elif isinstance(inner, list):
                stack += inner
        return value

    return JsonKind(read)


# The kind of any object of JSON, whose values are read and written unchanged.
OBJECT = JsonKind(lambda value, _, __: dict(value), dict)


def _length(size: ArraySize, earlier: EarlierValues) -> int:
    if callable(size):
        return size(earlier)
    return len(earlier[size]) if isinstance(size, str) else size or 0


def numbers(size: ArraySize = None) -> JsonKind:
    """Return the kind of arrays of so many numbers; a text or a boolean is none."""
    bounds = f"must lie within {LARGEST_NUMBER:.0e}"

    def in_range(array: Any, _: EarlierValues) -> Any:
        return abs(array) <= LARGEST_NUMBER

    return _array_kind((int, float), "must hold numbers", np.float64, size, in_range, bounds)


def whole_numbers(size: ArraySize = None, *, low: int = 0, below: ArraySize = None) -> JsonKind:
    """Return the kind of arrays of so many whole numbers, from `low` on and below `below`."""

    def in_range(array: Any, earlier: EarlierValues) -> Any:
        return (array >= low) & (below is None or array < _length(below, earlier))

    return _array_kind((int,), "must be whole numbers", np.intp, size, in_range, "is out of range")


def _array_kind(
    types: tuple[type, ...], rule: str, dtype: type, size: ArraySize, in_range: Callable[..., Any], bounds: str
) -> JsonKind:
    """Return the kind of arrays of these types, size and range; the rule and the bounds are words for errors."""

    def read(value: object, where: str, earlier: EarlierValues) -> Any:
        require(isinstance(value, list) and set(map(type, value)) <= set(types), f"{where} {rule}")
        array: npt.NDArray[Any] = np.array(value, dtype=dtype)
        require(np.all(in_range(array, earlier)), f"{where} {bounds}")
        if size is not None:
            length = _length(size, earlier)
            require(len(array) == length, f"{where} must have {length} entries")
        return array

    return JsonKind(read, np.ndarray.tolist)


def _scalar_kind(array: JsonKind) -> JsonKind:
    return JsonKind(lambda value, where, earlier: array.read([value], where, earlier)[0].item())


# The kinds of one number, and of one whole number from 0 on.
NUMBER = _scalar_kind(numbers())
COUNT = _scalar_kind(whole_numbers())


def optional(kind: JsonKind) -> JsonKind:
    """Return the kind of values of a kind, or none."""
    return JsonKind(
        lambda value, where, earlier: None if value is None else kind.read(value, where, earlier),
        lambda value: None if value is None else kind.write(value),
    )


# The kind of a field of a dataclass, by its annotation.
OF_TYPE: dict[object, JsonKind] = {float: NUMBER, int: COUNT, str: NAME, Floats: numbers()}
OF_TYPE |= {float | None: optional(NUMBER), str | None: optional(TEXT)}
"""The kind of an attribute by its type."""


def list_of(kind: JsonKind, size: ArraySize = None) -> JsonKind:
    """Return the kind of lists of so many values of a kind; read as tuples."""

    def read(value: Any, where: str, earlier: EarlierValues) -> tuple[Any, ...]:
        require(isinstance(value, list), f"{where} must be a list")
        require(
            size is None or len(value) == _length(size, earlier), f"{where} must have {_length(size, earlier)} entries"
        )
        return tuple(kind.read(one, where, earlier) for one in value)

    return JsonKind(read, lambda values: [kind.write(one) for one in values])


def mapping_of(kind: JsonKind) -> JsonKind:
    """Return the kind of objects with any names, and a value of a kind under each."""

    def read(value: Any, where: str, earlier: EarlierValues) -> dict[str, Any]:
        return {NAME.read(name, where, earlier): kind.read(one, where, earlier) for name, one in value.items()}

    return JsonKind(read, lambda values: {name: kind.write(one) for name, one in values.items()})
