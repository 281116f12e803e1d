"""The judges of `deep votes` that need no key: lexical checks, encoders and embeddings."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from deep._checks import check_choice
from deep.console import Values
from deep.records import Example, Judgment

if TYPE_CHECKING:
    from deep.features.lexical import LexicalCheck

__all__ = ["OfflineJudges", "add_offline_options", "offline_judges"]

ALL = "all"


class OfflineModel(Protocol):
    """A labeling function made of a model that runs here."""

    @property
    def name(self) -> str:
        """What it is: nli-max, nli-mean or embedding."""

    @property
    def version(self) -> str:
        """A hash in hex."""

    @property
    def voter(self) -> str:
        """The name of its column."""

    @property
    def model_id(self) -> str:
        """The model."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that load it again alike."""

    def label_many(self, examples: Sequence[Example], /) -> list[Judgment]:
        """Judge examples, in order."""


@dataclass(frozen=True)
class OfflineJudges:
    """Judges that need no key.

    Parameters
    ----------
    checks : tuple
        Lexical checks, which share what they work out of a text.
    models : tuple
        Encoders and embeddings.
    """

    checks: "tuple[LexicalCheck, ...]" = ()
    models: tuple[OfflineModel, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.voters)

    @property
    def voters(self) -> list[str]:
        """The columns, in the order of the judgments."""
        return [*(check.voter for check in self.checks), *(model.voter for model in self.models)]

    def metadata(self) -> dict[str, dict[str, Any]]:
        """Return what the vote files say of each voter."""
        said: dict[str, dict[str, Any]] = {}
        for check in self.checks:
            said[check.voter] = {"kind": "lexical", "judge": check.name, "version": check.version, "model": None}
        for model in self.models:
            kind = model.name.partition("-")[0]
            known = {"kind": kind, "judge": model.name, "version": model.version, "model": model.model_id}
            said[model.voter] = {**known, "settings": dict(model.settings)}
        return said

    def judge(self, examples: Sequence[Example]) -> list[dict[str, Judgment]]:
        """Return what every judge says, by voter, of some examples."""
        rows: list[dict[str, Judgment]] = [{} for _ in examples]
        if self.checks:
            from deep.features.lexical import label_all

            voters = [check.voter for check in self.checks]
            for row, judgments in zip(rows, label_all(self.checks, examples), strict=True):
                row.update(zip(voters, judgments, strict=True))
        for model in self.models:
            for row, judgment in zip(rows, model.label_many(examples), strict=True):
                row[model.voter] = judgment
        return rows


def add_offline_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--lexical``, ``--encoder`` and ``--embedding``."""
    several: Any = {"action": Values, "nargs": "+", "default": []}
    group = parser.add_argument_group("judges that need no key")
    group.add_argument("--lexical", **several, metavar="NAME", help="lexical checks by name, or all of them: all")
    model = "by id on the hub or by folder; NAME=FOLDER gives it another name"
    group.add_argument("--encoder", **several, metavar="ID|FOLDER", help=f"NLI or consistency models, {model}")
    group.add_argument("--embedding", **several, metavar="ID|FOLDER", help=f"sentence-embedding models, {model}")


def offline_judges(args: argparse.Namespace) -> OfflineJudges:
    """Return the judges that the options name.

    Raises
    ------
    InputError
        There is no check or model of that name.
    MissingDependencyError
        A model is asked for and the libraries to run it are not installed.
    """
    return OfflineJudges(_checks(args.lexical), _models(args.encoder, args.embedding))


def _checks(names: Sequence[str]) -> "tuple[LexicalCheck, ...]":
    if not names:
        return ()
    from deep.features.lexical import LEXICAL

    chosen = [check_choice(name, [*LEXICAL, ALL], "lexical") for name in names]
    return tuple(check() for name, check in LEXICAL.items() if name in chosen or ALL in chosen)


def _models(encoders: Sequence[str], embeddings: Sequence[str]) -> tuple[OfflineModel, ...]:
    if not encoders and not embeddings:
        return ()
    from deep.features.encoders import load_embedding, load_encoder

    loaded: list[OfflineModel] = [_load(load_encoder, name) for name in dict.fromkeys(encoders)]
    return (*loaded, *(_load(load_embedding, name) for name in dict.fromkeys(embeddings)))


def _load(load: Callable[..., OfflineModel], given: str) -> OfflineModel:
    """Load a model by id, folder, or NAME=FOLDER."""
    name, _, place = given.partition("=")
    return load(place, model_id=name) if place and not Path(given).exists() else load(given)
