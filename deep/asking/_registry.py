"""The judges that a model names, found again: prompts, staged judges, lexical checks and encoders."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep.asking._offline import OfflineJudges
from deep.exceptions import InputError
from deep.model import Model, Voter

if TYPE_CHECKING:
    from deep.prompt_pool import Prompt, StagedJudge

__all__ = ["Asked", "Finder", "Panel"]

LEXICAL_PREFIX = "lexical-"

ENCODERS = ("nli-max", "nli-mean")
EMBEDDING = "embedding"


@dataclass(frozen=True)
class Asked:
    """Voters that one model is asked for in the same way.

    Parameters
    ----------
    model : str
    samples : int
    temperature : float or None
    max_tokens : int or None
        None: the prompts' own.
    """

    model: str
    samples: int = 1
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass
class Panel:
    """All judges of a model.

    Parameters
    ----------
    prompts, staged : dict
        By what is asked how.
    checks, models : list
        Lexical checks and encoders, which need no endpoint.
    """

    prompts: "dict[Asked, list[Prompt]]" = field(default_factory=dict)
    staged: "dict[Asked, list[StagedJudge]]" = field(default_factory=dict)
    checks: list[Any] = field(default_factory=list)
    models: list[Any] = field(default_factory=list)

    @property
    def offline(self) -> OfflineJudges:
        """Return what needs no endpoint."""
        return OfflineJudges(tuple(self.checks), tuple(self.models))

    @property
    def asked(self) -> list[Asked]:
        """Return what needs an endpoint."""
        return list(dict.fromkeys([*self.prompts, *self.staged]))


@dataclass(frozen=True)
class Finder:
    """Where judges are looked for.

    Parameters
    ----------
    prompts : sequence of str
        TOML files, or folders of them, besides the prompts that come with deep.
    encoders : sequence of str
        Folders of models, for those that are not on the hub; each stands for the model of the same name.
    ask : str, optional
        The model to ask in place of those that the voters name.
    allow_mismatch : bool
        Take a judge of the same id where its version or model differ.
    """

    prompts: Sequence[str] = ()
    encoders: Sequence[str] = ()
    ask: str | None = None
    allow_mismatch: bool = False

    def panel(self, model: Model) -> Panel:
        """Return the judges of a model.

        Raises
        ------
        InputError
            A voter is no judge that can be run here, or only one of another version or model is.
        """
        found = Panel()
        pool = {prompt.id: prompt for prompt in self._pool()}
        for voter in model.voters:
            self._add(voter, found, pool)
        return found

    def _pool(self) -> "Iterable[Prompt]":
        from deep.prompt_pool import list_prompts, load_pool, load_prompt

        for name in list_prompts():
            yield load_prompt(name)
        for path in self.prompts:
            yield from load_pool(path) if Path(path).is_dir() else [load_prompt(path)]

    def _add(self, voter: Voter, found: Panel, pool: "Mapping[str, Prompt]") -> None:
        from deep.prompt_pool import JUDGES, load_judge

        name = voter.id.removeprefix(LEXICAL_PREFIX)
        if voter.version is None:
            raise _unknown(voter)
        if voter.model is None:
            found.checks.append(self._checked(_lexical(name, voter), voter))
        elif voter.id in (*ENCODERS, EMBEDDING):
            found.models.append(self._checked(self._encoder(voter), voter))
        elif voter.id in pool:
            self._ask(found.prompts, pool[voter.id], voter)
        elif voter.id in JUDGES:
            self._ask(found.staged, load_judge(voter.id), voter)
        else:
            raise _unknown(voter)

    def _ask(self, asked: dict[Asked, list[Any]], judge: Any, voter: Voter) -> None:
        target = self.ask or str(voter.model)
        self._check_name(judge.voter(target), voter)
        said = voter.details.get("parameters") or {}
        samples = int(voter.details.get("samples") or 1)
        how = Asked(target, samples, said.get("temperature"), said.get("max_tokens"))
        asked.setdefault(how, []).append(judge)

    def _encoder(self, voter: Voter) -> Any:
        from deep.features.encoders import load_embedding, load_encoder

        wanted = str(voter.model)
        place = next((path for path in self.encoders if Path(path).name == Path(wanted).name), wanted)
        options = {**(voter.details.get("settings") or {}), "model_id": wanted}
        if voter.id == EMBEDDING:
            return load_embedding(place, **options)
        return load_encoder(place, **{**options, "aggregation": voter.id.removeprefix("nli-")})

    def _checked(self, judge: Any, voter: Voter) -> Any:
        self._check_name(judge.voter, voter)
        return judge

    def _check_name(self, name: str, voter: Voter) -> None:
        if name == voter.name or self.allow_mismatch:
            return
        what = "model" if Voter(name).version == voter.version else "version"
        raise InputError(
            f"`model` must name judges as they are here. Got {voter.name!r}, and here it is {name!r}, of another "
            f"{what}. Judge and fit anew, or override with --allow-mismatch."
        )


def _lexical(name: str, voter: Voter) -> Any:
    from deep.features.lexical import LEXICAL

    if name not in LEXICAL:
        raise _unknown(voter)
    return LEXICAL[name]()


def _unknown(voter: Voter) -> InputError:
    return InputError(
        f"`model` must have judges that can be run here. Got the voter {voter.name!r}, which is no prompt, check or "
        "encoder that is known. Give its votes with --votes, or its prompt file with --prompt."
    )
