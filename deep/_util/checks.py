"""The types of arrays, and every check of an input with the wording of its error, once.

All messages follow `` `param` must be <allowed>. Got <value!r> at <where>. <Remedy>. ``
"""

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from deep.exceptions import InputError

Array = npt.NDArray[np.generic]
Votes = npt.NDArray[np.int8]
Labels = npt.NDArray[np.int8]
Floats = npt.NDArray[np.float64]
# Votes, or of judges some of whom give grades or scores places on their scales, or evidence; NaN for none.
AnyVotes = Votes | Floats
# The number of times that each row counts; None: once.
Weights = npt.ArrayLike | None
# Seeds numpy's generators.
RandomState = int | np.random.Generator | None
Texts = npt.NDArray[np.object_]
Mask = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.intp]


# Rows that are checked together: what a check makes of them is small beside the rows.
ROWS_AT_ONCE = 1 << 16


def quote(value: object) -> str:
    """Return a value for an error message: on one line, and not longer than 60 characters."""
    text = " ".join(repr(value.item() if isinstance(value, np.generic) else value).splitlines())
    return text if len(text) <= 60 else f"{text[:56]}...{text[-1]}"


def check_choice(value: str, allowed: Iterable[str], name: str) -> str:
    """Return `value` if it is one of `allowed`, else raise an error that lists them, sorted."""
    options = sorted(allowed)
    if not isinstance(value, str) or value not in options:
        raise InputError(f"`{name}` must be one of {', '.join(options)}. Got {quote(value)}.")
    return value


def check_kind(value: object, kinds: type | tuple[type, ...], name: str, form: str) -> None:
    """Raise unless a value is of the kinds that a parameter takes, of which `form` tells."""
    if not isinstance(value, kinds):
        raise InputError(f"`{name}` must be {form}. Got {quote(value)}.")


def check_share(value: float, name: str) -> float:
    """Return a number that lies strictly between 0 and 1."""
    check_kind(value, Real, name, "a number strictly between 0 and 1")
    if not 0 < value < 1:
        raise InputError(f"`{name}` must lie strictly between 0 and 1. Got {quote(value)}.")
    return value


def check_above(value: float, low: float, name: str) -> float:
    """Return `value` if it is a finite number above `low`, else raise."""
    if not low < value < np.inf:
        raise InputError(f"`{name}` must be a finite number above {low:g}. Got {value!r}.")
    return value


def check_count(value: int, name: str) -> int:
    """Return `value` if it is a whole number of at least 1, else raise."""
    if not isinstance(value, Integral) or value < 1:
        raise InputError(f"`{name}` must be a whole number of at least 1. Got {value!r}.")
    return value


def check_seed(random_state: int) -> None:
    """Raise unless a seed is a whole number of at least 0."""
    check_kind(random_state, (int, np.integer), "random_state", "a whole number")
    if random_state < 0:
        raise InputError(f"`random_state` must be at least 0. Got {random_state!r}.")


def name_tuple(value: str | Iterable[str], name: str) -> tuple[str, ...]:
    """Return the names that are given: one, or several."""
    result = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    for one in result:
        check_kind(one, str, name, "a name, or a list of names")
    return result


def check_fitted(estimator: object, attribute: str) -> None:
    """Raise scikit-learn's error where an estimator that is none of its own has not been fitted."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError  # loaded only to say so

        raise NotFittedError(f"This {type(estimator).__name__} is not fitted yet. Call `fit` first.")


def is_votes(answers: AnyVotes) -> TypeGuard[Votes]:
    """Return whether answers are votes: whole numbers, of whatever width; places and evidence are floats."""
    return answers.dtype.kind in "biu"


def check_votes(X: npt.ArrayLike, *, name: str = "X", voters: Sequence[str] | None = None) -> Votes:
    """Return `X` as an int8 matrix of votes.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_voters)
        Votes: 1 consistent, 0 inconsistent, -1 no vote.
    name : str
        The caller's parameter name, for the error message.
    voters : sequence of str, optional
        Column names, for the error message.

    Returns
    -------
    ndarray of int8, shape (n_examples, n_voters)
        A view of `X` where no conversion was needed; never written to.

    Raises
    ------
    InputError
        `X` is not two-dimensional, has no rows or no columns, or holds anything but -1, 0 and 1.
    """
    raw = np.asarray(X)
    if raw.ndim != 2:
        raise InputError(f"`{name}` must be two-dimensional (examples x voters). Got {raw.ndim} dimension(s).")
    if 0 in raw.shape:
        raise InputError(f"`{name}` must have at least one row and one column. Got shape {raw.shape}.")
    if raw.dtype != np.int8:
        raw = as_floats(raw, name)
    else:
        # One comparison tells: -1, 0, 1 are 0, 1, 2 after adding 1, and all else wraps round to more.
        parts = (raw[start : start + ROWS_AT_ONCE].view(np.uint8) for start in range(0, len(raw), ROWS_AT_ONCE))
        if all(((part + np.uint8(1)) <= 2).all() for part in parts):
            return raw
    wrong = (raw != -1) & (raw != 0) & (raw != 1)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        label = f" ({voters[column]!r})" if voters is not None else ""
        value = raw[row, column].item()
        raise InputError(
            f"`{name}` must hold only -1 (no vote), 0 and 1. Got {value!r} at row {row}, column {column}{label}."
        )
    return raw.astype(np.int8, copy=False)


def as_floats(values: npt.ArrayLike, name: str) -> Floats:
    """Return values as floats, the array itself where it holds some, or raise where they are none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = f"dtype {values.dtype}" if isinstance(values, np.ndarray) else quote(values)
        raise InputError(f"`{name}` must hold numbers. Got {kind}.") from None


def check_labels(y: npt.ArrayLike | None, n: int, *, name: str = "y") -> Labels:
    """Return labels 0/1 of length `n` as int8; both classes need not be present."""
    if y is None:
        raise InputError(f"`{name}` must be given: this estimator learns from labels.")
    values = _one_dimensional(y, name)
    check_consistent_length(values, n, name)
    _check_every_value((values == 0) | (values == 1), values, f"`{name}` must hold only 0 and 1.")
    return values.astype(np.int8)


def _one_dimensional(values: npt.ArrayLike, name: str) -> Floats:
    """Return values as floats, or raise where they are no numbers in a line."""
    raw = np.asarray(values)
    if raw.ndim != 1:
        raise InputError(f"`{name}` must be one-dimensional. Got {raw.ndim} dimension(s).")
    return as_floats(raw, name)


def _check_every_value(right: Mask, values: Floats, rule: str) -> None:
    """Raise for the first value that is not right."""
    if not right.all():
        row = int(np.argmin(right))
        raise InputError(f"{rule} Got {values[row].item()!r} at row {row}.")


def check_sample_weight(sample_weight: Weights, n: int) -> Floats:
    """Return weights of length `n` as float64: finite, not negative, not all zero; ones where None."""
    if sample_weight is None:
        return np.ones(n)
    raw = _one_dimensional(sample_weight, "sample_weight").copy()
    check_consistent_length(raw, n, "sample_weight")
    _check_every_value(np.isfinite(raw) & (raw >= 0), raw, "`sample_weight` must be finite and not negative.")
    if not raw.any():
        raise InputError("`sample_weight` must have a positive sum. Got only zeros.")
    return raw


def check_probabilities(y_prob: npt.ArrayLike, *, name: str = "y_prob") -> Floats:
    """Return probabilities as a one-dimensional float64 array within [0, 1]."""
    raw = _one_dimensional(y_prob, name).copy()
    if not raw.size:
        raise InputError(f"`{name}` must have at least one value. Got none.")
    _check_every_value((raw >= 0) & (raw <= 1), raw, f"`{name}` must lie in [0, 1].")
    return raw


def check_some_votes(votes: AnyVotes) -> None:
    """Raise where no row to learn from has a vote."""
    if (votes < 0).all():
        raise InputError("`votes` must hold a vote of 0 or 1 in the rows to learn from. Got only empty cells.")


def check_two_classes(labels: Labels, name: str) -> None:
    """Raise unless both 0 and 1 are among labels, of which there is at least one."""
    if labels.min() == labels.max():
        raise InputError(f"`{name}` must hold both classes, 0 and 1. Got only {labels[0].item()!r}.")


def check_both_classes(labels: Labels, datasets: npt.NDArray[Any], *, name: str = "label") -> None:
    """Raise unless every dataset has rows of label 0 and of label 1.

    Parameters
    ----------
    labels : ndarray of int8, shape (n_examples,)
        0 or 1.
    datasets : ndarray, shape (n_examples,)
        The name of the dataset of each row.
    name : str
        The caller's parameter name, for the error message.
    """
    names, position = factorize(datasets)
    counts = np.bincount(2 * position + labels, minlength=2 * len(names)).reshape(-1, 2)
    for dataset, (zeros, ones) in zip(names, counts, strict=True):
        if not (zeros and ones):
            raise InputError(
                f"`{name}` must hold both 0 and 1 in every training dataset. Got only {int(ones > 0)} in dataset "
                f"{dataset!r}. Leave it out."
            )


def factorize(names: npt.ArrayLike) -> tuple[list[str], Positions]:
    """Return the distinct names as text, sorted, and the position there of each row's, many times faster than a sort.

    Examples
    --------
    >>> names, position = factorize(np.array(["b", "a", "b"], dtype=object))
    >>> names, position.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    values = np.asarray(names)
    values = values if values.dtype.kind in "OU" else values.astype(str)
    parts = [values[start : start + ROWS_AT_ONCE] for start in range(0, len(values), ROWS_AT_ONCE)]
    # A set and a dict cost time that grows with the rows; `np.unique` sorts texts, which takes far longer.
    text = {name: str(name) for name in set[object]().union(*(part.tolist() for part in parts))}
    listed = sorted(set(text.values()))
    place = {name: position for position, name in enumerate(listed)}
    code = {name: place[value] for name, value in text.items()}
    position = np.empty(len(values), dtype=np.intp)
    for start, part in zip(range(0, len(values), ROWS_AT_ONCE), parts, strict=True):
        position[start : start + len(part)] = np.fromiter(map(code.__getitem__, part.tolist()), np.intp, len(part))
    return listed, position


def column_names(X: object) -> list[str] | None:
    """Return the column names of a data frame, None for anything else."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def check_consistent_length(values: Array, n: int, name: str) -> None:
    """Raise unless `values` has `n` entries."""
    if not getattr(values, "ndim", 1):
        raise InputError(f"`{name}` must have {n} entries, one a row. Got a single value.")
    if len(values) != n:
        raise InputError(f"`{name}` must have {n} entries, one a row. Got {len(values)}.")


def bincount(codes: npt.NDArray[np.integer], weights: Floats, size: int = 0) -> Floats:
    """Return the sum of weights of each code, of at least `size` codes; float also where there are none."""
    return np.bincount(codes, weights=weights, minlength=size).astype(np.float64)


def percentile_interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Return the bounds that hold a share of the values in the middle; NaN, which does not count, where none does.

    Examples
    --------
    >>> import numpy as np
    >>> from deep._util.checks import percentile_interval
    >>> percentile_interval(np.array([1.0, 2.0, 3.0, np.nan]), 0.5)
    (1.5, 2.5)
    """
    finite = values[~np.isnan(values)]
    if not len(finite):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
