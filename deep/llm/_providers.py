"""Endpoints by the name of their provider: where ``mistral/...`` is asked, with which key, and what it lacks."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

from deep._util.files import parse_toml, read_bytes
from deep.exceptions import InputError
from deep.llm._client import check_base_url, public_url
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
