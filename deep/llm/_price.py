"""The price of a call, where that is known."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from deep._files import read_bytes
from deep.exceptions import InputError

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

_KINDS = {"input", "cached", "output"}
_MILLION = 1_000_000


class PriceBook:
    """US dollars by model and usage, from the user's own file first and from genai-prices else.

    A model that neither knows has an unknown price (None), never 0. genai-prices is asked with the endpoint's URL,
    so that a local server under a famous model's name is not charged for.

    Parameters
    ----------
    base_url : str
        The endpoint, which decides whose price it is.
    overrides : mapping of str to mapping, optional
        Model name to dollars per million tokens: ``input`` and ``output``, and ``cached`` (default: as `input`).

    Examples
    --------
    >>> from deep.llm import PriceBook
    >>> prices = PriceBook("http://localhost:8000/v1", {"mine": {"input": 1.0, "output": 4.0}})
    >>> prices.cost(["mine"], {"input": 1_000_000, "output": 500_000})
    3.0
    >>> prices.cost(["gpt-4o-mini"], {"input": 10, "output": 1}) is None
    True
    """

    def __init__(self, base_url: str, overrides: Mapping[str, Mapping[str, float]] | None = None) -> None:
        self._base_url = base_url
        self._overrides = dict(overrides or {})
        self._rates = lru_cache(maxsize=256)(self._lookup)

    @classmethod
    def from_file(cls, base_url: str, path: str | Path | None) -> "PriceBook":
        """Read overrides from a TOML file: a table a model, dollars per million tokens.

        Raises
        ------
        InputError
            The file is no such TOML; the message names the model.
        """
        if path is None:
            return cls(base_url)
        try:
            tables = tomllib.loads(read_bytes(path, "prices").decode("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise InputError(f"`prices` must be a readable TOML file. Got {str(path)!r}: {error}.") from None
        for model, rates in tables.items():
            _check_rates(model, rates, path)
        return cls(base_url, tables)

    def cost(self, models: Iterable[str | None], tokens: Mapping[str, int], *, batch: bool = False) -> float | None:
        """Return the dollars for one call, by the first of `models` with a known price.

        Parameters
        ----------
        models : iterable of str or None
            The model that answered, where the endpoint named it, then the model that was asked.
        tokens : mapping of str to int
            Usage: ``input`` (all of it), ``cached`` (the part of it read from a cache), ``output``.
        batch : bool
            By the batch rate, where one is published; by the full rate else, which is then an upper bound.

        Returns
        -------
        float or None
            None where no price or no usage is known.
        """
        if "input" not in tokens or "output" not in tokens:
            return None
        for model in filter(None, models):
            rate = self._overrides.get(model)
            dollars = self._published(model, tokens, batch) if rate is None else _by_rate(rate, tokens)
            if dollars is not None:
                return dollars
        return None

    def _published(self, model: str, tokens: Mapping[str, int], batch: bool) -> float | None:
        calculate = self._rates(model)
        if calculate is None:
            return None
        from genai_prices.types import Usage

        cached = min(tokens.get("cached", 0), tokens["input"])
        usage = Usage(input_tokens=tokens["input"], cache_read_tokens=cached, output_tokens=tokens["output"])
        context = {"processing": "batch"} if batch else None
        return float(calculate(usage, price_context=context).total_price)

    def _lookup(self, model: str) -> "partial[PriceCalculation] | None":
        from genai_prices import calc_price
        from genai_prices.types import Usage

        calculate = partial(calc_price, model_ref=model, provider_api_url=self._base_url)
        try:
            calculate(Usage(input_tokens=1, output_tokens=1))
        except LookupError:
            return None
        return calculate


def _by_rate(rate: Mapping[str, float], tokens: Mapping[str, int]) -> float:
    cached = min(tokens.get("cached", 0), tokens["input"])
    fresh = tokens["input"] - cached
    dollars = fresh * rate["input"] + cached * rate.get("cached", rate["input"]) + tokens["output"] * rate["output"]
    return dollars / _MILLION


def _check_rates(model: str, rates: object, path: str | Path) -> None:
    allowed = "a table with input, output and, if it differs, cached: dollars per million tokens"
    if not isinstance(rates, dict) or not {"input", "output"} <= set(rates) <= _KINDS:
        raise InputError(
            f"`prices` must hold, for each model, {allowed}. Got {rates!r} for {model!r} in {str(path)!r}."
        )
    for kind, value in rates.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(f"`prices` must be numbers >= 0. Got {value!r} for {model!r}.{kind} in {str(path)!r}.")
