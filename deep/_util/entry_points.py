"""Entry points: where judges, commands and estimators come in, deep's own guests and other packages' alike.

A package names its own in its ``pyproject.toml``, as deep does in its own::

    [project.entry-points."deep.judges"]
    mine = "my_package:MyJudge"

    [project.entry-points."deep.commands"]
    mine = "my_package.command"
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple, TypeVar

from deep.exceptions import DeepError, InputError, printable

# The groups of entry points in which packages, deep among them, name their parts.
CALIBRATOR_GROUP, ENSEMBLER_GROUP, JUDGE_GROUP = "deep.calibrators", "deep.ensemblers", "deep.judges"
COMMAND_GROUP, SUBCOMMAND_GROUP, WRITER_GROUP = "deep.commands", "deep.subcommands", "deep.writers"
# The group of what deep's own guests do behind an option of the core, each by a name that the core knows.
PART_GROUP = "deep.parts"

DISTRIBUTION = "deep-judges"

# The remedy where deep's own entry points are missing.
INSTALL_TIP = f"Run: pip install --force-reinstall --no-deps {DISTRIBUTION}, or in a checkout: pip install --editable ."
ENTRY_NAME = re.compile(r"[a-z0-9][a-z0-9._:-]*")

T = TypeVar("T")


class FoundEntryPoints(NamedTuple):
    """Entry points of one group by name, and the refused ones: why, by name."""

    usable: Mapping[str, EntryPoint]
    refused: Mapping[str, str]


def find_entry_points(group: str, reserved: Collection[str] = ()) -> FoundEntryPoints:
    """Return the entry points of installed packages; a name that two have is nobody's, unless one of them is deep.

    Parameters
    ----------
    group : str
        As ``deep.commands`` or ``deep.judges``.
    reserved : collection of str
        Names that the core has taken.

    Examples
    --------
    >>> from deep._util.entry_points import JUDGE_GROUP, find_entry_points
    >>> find_entry_points(JUDGE_GROUP).usable["stepwise"].value
    'deep.experiments.stepwise:StepwiseJudge'
    """
    usable = {entry.name: entry for entry in _installed_entries(group) if is_own_entry(entry)}
    refusals: dict[str, str] = {}
    claims = defaultdict(list)
    for entry in _installed_entries(group):
        if not is_own_entry(entry):
            claims[entry.name].append(entry)
    for name, entries in sorted(claims.items()):
        packages = " and ".join(sorted({package_of(entry) for entry in entries}))
        # Another package must not take over a name that scripts already use.
        if name in usable or name in reserved:
            refusals[name] = f"{printable(name)!r} of {packages}: deep has this name already"
        elif not ENTRY_NAME.fullmatch(name):
            refusals[name] = f"{printable(name)!r} of {packages}: a name is lower-case letters, digits and ._:-"
        elif len(entries) > 1:
            refusals[name] = f"{name!r} of {packages}: two entry points have this name"
        else:
            usable[name] = entries[0]
    return FoundEntryPoints(usable, refusals)


# Of all groups: to look through the packages takes some hundredths of a second.
_all_entry_points = cache(entry_points)

# Of a package, once: Python parses all that the package says of itself to tell its name.
_name_of = cache(lambda package: package.name)


def _installed_entries(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of all installed packages."""
    return tuple(_all_entry_points().select(group=group))


def is_own_entry(entry: EntryPoint) -> bool:
    """Return whether an entry point is one of deep's own guests."""
    return entry.dist is not None and _name_of(entry.dist) == DISTRIBUTION


def package_of(entry: EntryPoint) -> str:
    """Return the package that an entry point is of."""
    return "unknown" if entry.dist is None else printable(f"{entry.dist.name} {entry.dist.version}")


def load_entry_point(entry: EntryPoint) -> Any:
    """Import an entry point.

    Raises
    ------
    InputError
        It cannot be imported: a part of deep was removed, or another package is broken.
    """
    try:
        return entry.load()
    except DeepError:
        raise
    except (Exception, SystemExit) as error:
        if is_own_entry(entry) and not is_missing_part(error):
            raise  # a bug of deep, which keeps its traceback
        raise entry_error(entry, f"{type(error).__name__}: {error}") from error


def is_missing_part(error: BaseException) -> bool:
    """Return whether an error says that a guest of deep was removed: its module, or its name in the guests' room."""
    if isinstance(error, ModuleNotFoundError):
        return str(error.name).startswith("deep.")
    return isinstance(error, ImportError) and error.name in ("deep.experiments", "deep.integrations")


def load_part(name: str, group: str = PART_GROUP) -> Any:
    """Import the entry point of one name that the core needs for an option.

    Raises
    ------
    InputError
        No installed package has it, or it cannot be imported.
    """
    entry = find_entry_points(group).usable.get(name)
    if entry is None:
        raise InputError(f"`{group}` must have the entry point {name!r}. No installed package has it. {INSTALL_TIP}")
    return load_entry_point(entry)


def entry_error(entry: EntryPoint, why: str) -> InputError:
    """Return the error that an entry point is of no use."""
    remedy = INSTALL_TIP if is_own_entry(entry) else "Repair or uninstall that package."
    return InputError(
        f"`{entry.group}` must hold usable entry points. Got {entry.name!r} of {package_of(entry)}: {why}. {remedy}"
    )


def load_class(name: str, group: str, base: type, reserved: Collection[str]) -> Any:
    """Import the class that an entry point of another package names.

    Raises
    ------
    KeyError
        No package has that name.
    InputError
        It cannot be imported, or is no class on the base.
    """
    entry = find_entry_points(group, reserved).usable[name]
    loaded: Any = load_entry_point(entry)
    if not (isinstance(loaded, type) and issubclass(loaded, base)):
        raise entry_error(entry, f"{loaded!r}, which is not a subclass of {base.__name__}")
    return loaded


class LoadedByName(Mapping[str, T]):
    """Deep's own by name, in order; each is loaded when it is first asked for, as are other packages' by theirs.

    Parameters
    ----------
    own : collection of str
        Names of deep's own, in the order in which they are listed.
    load : callable
        From a name, of deep or of another package, to what it stands for.
    """

    def __init__(self, own: Collection[str], load: Callable[[str], T]) -> None:
        self._own = tuple(own)
        self._load = cache(load)

    def __getitem__(self, name: str) -> T:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)
