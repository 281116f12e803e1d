"""The registry of judges: found by the names that a user gives, or by the voters of a model file."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Literal, cast

from deep import prompt_pool
from deep._util import entry_points
from deep._util.checks import check_choice
from deep.asking._functions import AnyFunction, FunctionJudge, takes_nothing
from deep.asking._options import Sampling
from deep.asking._plan import Plan, PlannedVoter
from deep.datasets import Examples
from deep.exceptions import InputError
from deep.judges import Judge
from deep.model import Model, Voter

JudgeKind = Literal["pool", "prompt", "judge", "lexical", "encoder", "embedding"]
"""The options of ``deep ask`` that name judges; in :func:`find_judges`, the part of a name before a colon."""

LEXICAL_PREFIX = "lexical-"

# The name that stands for all lexical checks.
ALL_JUDGES = "all"

# The names of judges made of a network.
NETWORK_NAMES = ("nli-max", "nli-mean", "embedding", "hhem", "lettucedetect", "minicheck", "summac-zs")


ONE_SAMPLE = Sampling()


def judges_of(kind: JudgeKind, names: Sequence[str], sampling: Sampling = ONE_SAMPLE) -> list[Judge]:
    """Return the judges of one kind by their names.

    Parameters
    ----------
    kind : {'pool', 'prompt', 'judge', 'lexical', 'encoder', 'embedding'}
        What the names are of, and so where they are looked up.
    names : sequence of str
        Pools of prompts or folders of them; prompts by id or TOML file; judges by entry point;
        lexical checks, or ``all``;
        networks by id on the hub, by folder, or as NAME=FOLDER, which gives the folder another name.
    sampling : Sampling, optional
        For prompts; judges of entry points bring their own, but for the windows of long sources.

    Raises
    ------
    InputError
        There is no judge of that name.
    MissingDependencyError
        The libraries that run a network are not installed.

    Examples
    --------
    >>> from deep.asking import judges_of
    >>> [judge.name for judge in judges_of("lexical", ["numbers", "dates"])]
    ['dates', 'numbers']
    """
    return _LOADERS[kind](list(dict.fromkeys(names)) if kind in ("encoder", "embedding") else names, sampling)


def find_judges(judges: Iterable[str | Judge | AnyFunction], sampling: Sampling = ONE_SAMPLE) -> list[Judge]:
    """Return judges by name, of whatever kind; judges among the names stay as they are, functions become judges.

    Parameters
    ----------
    judges : iterable of str, Judge or function
        ``lexical`` stands for all lexical checks; a name with a slash or of a folder with a model in it is an
        encoder's; ``KIND:NAME`` names the kind, as in ``embedding:FOLDER``.
    sampling : Sampling, optional
        For prompts that are named.

    Raises
    ------
    InputError
        There is no judge of that name, or something else than a name or a judge is given.

    Examples
    --------
    >>> from deep.asking import find_judges
    >>> [judge.name for judge in find_judges(["deep-3", "stepwise", "numbers"])]
    ['deep-strict-steps', 'deep-many-metrics', 'deep-key-points', 'stepwise', 'numbers']
    """
    result: list[Judge] = []
    for judge in judges:
        if isinstance(judge, str):
            kind, name = _kind_of(judge)
            result += judges_of(kind, [name], sampling)
        else:
            result.append(_judge_of(judge))
    if not result:
        raise InputError("`judges` must hold at least one judge. Got none.")
    return result


def _judge_of(judge: object) -> Judge:
    """Return a judge that is given as it is, or as a function."""
    if isinstance(judge, type):
        raise InputError(f"`judges` must hold names, judges and functions. Got the class {judge.__name__}. Make one.")
    if isinstance(judge, Judge):
        return judge
    if callable(judge):
        return FunctionJudge(judge)
    raise InputError(f"`judges` must hold names, judges and functions. Got {judge!r}.")


def _kind_of(word: str) -> tuple[JudgeKind, str]:
    """Return the kind of a judge and its name there."""
    from deep.features.lexical import LEXICAL

    prefix, _, rest = word.partition(":")
    name = word.removeprefix(LEXICAL_PREFIX)
    if rest and prefix in _LOADERS:
        return cast("JudgeKind", prefix), rest
    unversioned = word.partition("@")[0]
    if unversioned in prompt_pool.POOLS or any(Path(word).glob("*.toml")):
        return "pool", word
    if word.endswith(".toml") or unversioned in prompt_pool.list_prompts():
        return "prompt", word
    if word == "lexical" or name in LEXICAL:
        return "lexical", ALL_JUDGES if word == "lexical" else name
    if "/" in word or (Path(word) / "config.json").is_file():
        return "encoder", word
    # Last, for it reads the metadata of all packages that are installed.
    judges = judge_entries()
    if word in judges.usable or word in judges.refused or _FUNCTION_PATH.fullmatch(word):
        return "judge", word
    names = ", ".join([*sorted(prompt_pool.POOLS), *sorted(judges.usable), "lexical", *sorted(LEXICAL)])
    raise InputError(
        f"`judges` must be prompts, a network's id or folder, MODULE:FUNCTION, or of {names}. Got {word!r}. "
        "`deep prompts list` names the prompts."
    )


def _pool_judges(name: str, sampling: Sampling) -> list[Judge]:
    """Return the judges of one pool; labeled examples go to the prompts written for them, where there are any."""
    prompts = prompt_pool.load_pool(name)
    others = replace(sampling, few_shot=None) if any(prompt.takes_examples for prompt in prompts) else sampling
    settings = (vars(sampling if prompt.takes_examples else others) for prompt in prompts)
    return [prompt_pool.PromptJudge(prompt, **each) for prompt, each in zip(prompts, settings, strict=True)]


def judge_entries() -> entry_points.FoundEntryPoints:
    """Return the entry points of judges: deep's staged ones, and those of other packages under names of their own."""
    from deep.features.lexical import LEXICAL

    checks = {name for check in LEXICAL for name in (check, f"{LEXICAL_PREFIX}{check}")}
    # Names of deep's own judges: an entry point of another package may not take one over.
    others = {*prompt_pool.POOLS, *prompt_pool.list_prompts(), *NETWORK_NAMES, *checks, "lexical"}
    return entry_points.find_entry_points(entry_points.JUDGE_GROUP, others)


def load_judge(name: str) -> Judge:
    """Return a judge by the name of its entry point, or a function by ``MODULE:FUNCTION``, which imports the module.

    Raises
    ------
    InputError
        There is no such judge, two packages have one, or it cannot be used.

    Examples
    --------
    >>> from deep.asking import load_judge
    >>> load_judge("one-shot")
    Traceback (most recent call last):
    deep.exceptions.InputError: `judge` must be one of auto, ... Got 'one-shot'.
    """
    entries = judge_entries()
    if name not in entries.usable:
        if _FUNCTION_PATH.fullmatch(name) and name not in entries.refused:
            return _import_judge(name)
        why = f"{entries.refused[name]}. Uninstall one" if name in entries.refused else repr(name)
        raise InputError(f"`judge` must be one of {', '.join(sorted(entries.usable))}, or MODULE:FUNCTION. Got {why}.")
    entry = entries.usable[name]
    make = entry_points.load_entry_point(entry)
    try:
        judge = make() if takes_nothing(make) else make
        if judge is make and not isinstance(judge, FunctionJudge):
            judge = FunctionJudge(make, name=name)
    except Exception as error:
        # An error of deep's own judge is a fault of deep, and needs its traceback.
        if entry_points.is_own_entry(entry):
            raise
        raise entry_points.entry_error(entry, f"{type(error).__name__}: {error}") from error
    if not isinstance(judge, Judge):
        raise entry_points.entry_error(entry, f"{type(judge).__name__}, which lacks the methods of deep.judges.Judge")
    if judge.name not in entries.usable:
        words = f"a judge named {judge.name!r}, which differs from the name of its entry point"
        raise entry_points.entry_error(entry, words)
    return judge


# A module and the name of a function in it.
_FUNCTION_PATH = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")


def _import_judge(place: str) -> Judge:
    """Return the judge at MODULE:FUNCTION; modules of the folder that the command runs in are found, too."""
    module, _, name = place.partition(":")
    # The console script of a package does not have this folder on its path, as `python -m` does.
    if "" not in sys.path and (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        return _judge_of(attrgetter(name)(import_module(module)))
    except InputError as error:
        raise InputError(f"{error} It is {place!r} of `judge`.") from None
    # A module may raise whatever it likes as it is imported, SystemExit too.
    except (Exception, SystemExit) as error:
        raise InputError(
            f"`judge` must be MODULE:FUNCTION that can be imported. Got {place!r}: {type(error).__name__}: {error}."
        ) from error


def _entry_point_judges(names: Sequence[str], sampling: Sampling) -> list[Judge]:
    """Return judges by entry points; those that ask LLMs read long sources in windows where these are wanted."""
    judges = [load_judge(name) for name in names]
    chunk = sampling.chunk
    return [prompt_pool.ChunkedJudge(judge, chunk) if chunk and judge.needs_llm else judge for judge in judges]


def _lexical_judges(names: Sequence[str], _: Sampling) -> list[Judge]:
    from deep.features.lexical import LEXICAL

    checks = [check_choice(name, [*LEXICAL, ALL_JUDGES], "lexical") for name in names]
    # In the order of the table, whatever the order of the names.
    return [check() for name, check in LEXICAL.items() if name in checks or ALL_JUDGES in checks]


_LOADERS: Mapping[JudgeKind, Callable[[Sequence[str], Sampling], list[Judge]]] = {
    "pool": lambda names, sampling: [judge for name in names for judge in _pool_judges(name, sampling)],
    "prompt": lambda names, sampling: [
        prompt_pool.PromptJudge(prompt_pool.load_prompt(name), **vars(sampling)) for name in names
    ],
    "judge": _entry_point_judges,
    "lexical": _lexical_judges,
    "encoder": lambda names, _: [entry_points.load_part("encoder")(name) for name in names],
    "embedding": lambda names, _: [entry_points.load_part("embedding")(name) for name in names],
}


@dataclass(frozen=True)
class Finder:
    """The places where the judges of a model file are looked for.

    Parameters
    ----------
    prompts : sequence of str
        TOML files, or folders of them, besides the prompts that come with deep.
    encoders : sequence of str
        Folders of models, for those that are not on the hub; each stands for the model of the same name.
    ask : str, optional
        The LLM to ask in place of those that the voters name.
    allow_mismatch : bool
        Take a judge of the same id where its version or model differ.
    sampling : Sampling, optional
        Whether prompts have a repair turn, how they are constrained, and the labeled examples of those that show some;
        how often and how freely they are asked is the model file's, and so are the windows of long sources unless
        they are given here.
    judges : sequence of str, Judge or function, optional
        Those of one's own, which stand before any other of their name: a model file imports no code.
    """

    prompts: Sequence[str] = ()
    encoders: Sequence[str] = ()
    ask: str | None = None
    allow_mismatch: bool = False
    sampling: Sampling = ONE_SAMPLE
    judges: Sequence[str | Judge | AnyFunction] = ()

    def plan(self, model: Model, examples: Examples, endpoint: Callable[[], str], workers: int | None = None) -> Plan:
        """Return the plan of a model's judges on examples.

        Parameters
        ----------
        model : Model
            Each of its voters is found as a judge, in their order.
        examples : Examples
            Those to judge.
        endpoint : callable
            Returns the endpoint's name in the ledger; not called where no LLM is asked.
        workers : int, optional
            The most calls of a function side by side.

        Raises
        ------
        InputError
            A voter is no judge that can be run here, or only one of another version or model is.
        """
        columns = tuple(
            replace(self._find(voter, is_soft=voter.name in model.score_names), workers=workers)
            for voter in model.voters
        )
        asks = any(column.judge.needs_llm for column in columns)
        return Plan(examples=examples, columns=columns, endpoint=endpoint() if asks else "")

    @cached_property
    def _own_judges(self) -> Mapping[str, Judge]:
        return {judge.name: judge for judge in find_judges(self.judges)} if self.judges else {}

    def _find(self, voter: Voter, *, is_soft: bool) -> PlannedVoter:
        """Return the column of a voter of the model; raise where its judge is not here, or of another version."""
        judge = self._own_judges.get(voter.id) or (None if voter.version is None else self._judge(voter, is_soft))
        if judge is None:
            raise InputError(
                f"`model` must have judges that can be run here. Got the voter {voter.name!r}, an unknown prompt, "
                "check or encoder. Score a table of its votes (`deep score MODEL VOTES`). Or give its file with "
                "--prompt, or its function with --judge MODULE:FUNCTION (in Python `judges` of a Finder)."
            )
        column = PlannedVoter(judge, (self.ask or str(voter.model)) if judge.needs_llm else "")
        if column.name != voter.name and not self.allow_mismatch:
            what = "model" if Voter(column.name).version == voter.version else "version"
            raise InputError(
                f"`model` must name judges in the versions installed here. Got {voter.name!r}, and here it is "
                f"{column.name!r}, of another {what}. Judge and fit anew, or override with --allow-mismatch."
            )
        return column

    def _judge(self, voter: Voter, is_soft: bool) -> Judge | None:
        """Return the judge of a voter's name; None where there is none."""
        if voter.model is None:
            from deep.features.lexical import LEXICAL

            name = voter.id.removeprefix(LEXICAL_PREFIX)
            return LEXICAL[name]() if name in LEXICAL else self._by_entry_point(voter)
        if voter.id in NETWORK_NAMES:
            return self._network(voter)
        if voter.id in self._pool:
            parameters = voter.details.get("parameters") or {}
            # As the votes were made that the model was fitted on: other settings would be another judge.
            samples = int(voter.details.get("samples") or 1)
            prompt = self._pool[voter.id]
            sampling = replace(
                self.sampling,
                samples=samples,
                # The share of several samples is soft already, as is a grade; else log-probabilities tell.
                soft=is_soft and samples == 1 and prompt.kind != "score",
                temperature=parameters.get("temperature"),
                max_tokens=parameters.get("max_tokens"),
                few_shot=self.sampling.few_shot if voter.details.get("few_shot") else None,
                chunk=self._chunk(voter),
            )
            coded = prompt.coded or bool(voter.details.get("coded"))
            return prompt_pool.PromptJudge(replace(prompt, coded=coded), **vars(sampling))
        return self._by_entry_point(voter)

    def _by_entry_point(self, voter: Voter) -> Judge | None:
        entries = judge_entries()
        is_known = voter.id in entries.usable or voter.id in entries.refused
        return _entry_point_judges([voter.id], Sampling(chunk=self._chunk(voter)))[0] if is_known else None

    def _chunk(self, voter: Voter) -> prompt_pool.Chunking | None:
        """Return the windows of long sources: as given, or as they were when the voter's votes were made."""
        chunk = voter.details.get("chunk")
        return self.sampling.chunk or (None if chunk is None else prompt_pool.Chunking.parse(str(chunk)))

    @cached_property
    def _pool(self) -> dict[str, prompt_pool.Prompt]:
        prompts = [prompt_pool.load_prompt(name) for name in prompt_pool.list_prompts()]
        for path in self.prompts:
            prompts += prompt_pool.load_pool(path) if Path(path).is_dir() else [prompt_pool.load_prompt(path)]
        # The user's own prompts come last, so that they take the place of deep's of the same id.
        return {prompt.id: prompt for prompt in prompts}

    def _network(self, voter: Voter) -> Judge:
        model_id = str(voter.model)
        place = next((path for path in self.encoders if Path(path).name == Path(model_id).name), model_id)
        options = {**(voter.details.get("settings") or {}), "model_id": model_id}
        judge: Judge = entry_points.load_part("encoder-of-model")(voter.id, place, options)
        return judge
