"""Entry points: where judges, commands and exporters of other packages come in; deep's own guests use the same.

A package names its own in its ``pyproject.toml``::

    [project.entry-points."deep.judges"]
    mine = "my_package:MyJudge"

    [project.entry-points."deep.commands"]
    mine = "my_package.command"
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pkgutil import resolve_name
from typing import Any, NamedTuple

from deep.exceptions import DeepError, InputError, printable

COMMAND, EVENT, EXPORTER, JUDGE = "deep.commands", "deep.events", "deep.exporters", "deep.judges"
ADAPTER, CALIBRATOR, ENSEMBLER = "deep.adapters", "deep.calibrators", "deep.ensemblers"
GATE, NETWORK, WRITER = "deep.gates", "deep.networks", "deep.writers"
"""Groups of deep's own guests alone: estimators and networks that need an extra, and writers of scores."""

_BOOSTING, _ENCODERS, _NETCAL = (f"deep.integrations.{name}" for name in ("boosting", "encoders", "netcal"))
_TIERED, _STEPWISE = "deep.experiments.tiered", "deep.experiments.stepwise"
OWN: dict[str, dict[str, str]] = {
    ADAPTER: {"moments": "deep.integrations.engines:adapt_by_file"},
    CALIBRATOR: {
        "netcal-bbq": f"{_NETCAL}:NetcalBBQ",
        "netcal-beta": f"{_NETCAL}:NetcalBeta",
        "netcal-enir": f"{_NETCAL}:NetcalENIR",
        "netcal-histogram": f"{_NETCAL}:NetcalHistogram",
        "netcal-isotonic": f"{_NETCAL}:NetcalIsotonic",
        "netcal-platt": f"{_NETCAL}:NetcalPlatt",
        "netcal-temperature": f"{_NETCAL}:NetcalTemperature",
    },
    ENSEMBLER: {name: f"{_BOOSTING}:{name}" for name in ("CatBoost", "LGBM", "XGB")},
    EVENT: {"opentelemetry": "deep.integrations.opentelemetry:EvaluationEvents"},
    EXPORTER: {
        "langfuse": "deep.integrations.python_program:export_evaluator",
        "python": "deep.integrations.python_program:export_python",
    },
    GATE: {"check": "deep.integrations.gate:run_gate"},
    NETWORK: {
        "again": f"{_ENCODERS}:load_again",
        "embedding": f"{_ENCODERS}:load_named_embedding",
        "encoder": f"{_ENCODERS}:load_named_encoder",
    },
    JUDGE: {
        "auto": f"{_TIERED}:AutoLabelJudge",
        "auto:grounded": f"{_TIERED}:AutoLabelJudge",
        "auto:irrefutable": f"{_TIERED}:auto_irrefutable",
        "auto:rational": f"{_TIERED}:auto_rational",
        "direct": f"{_STEPWISE}:DirectJudge",
        "listed": f"{_TIERED}:ListJudge",
        "stepwise": f"{_STEPWISE}:StepwiseJudge",
        "tiered": f"{_TIERED}:TieredJudge",
        "tiered:grounded": f"{_TIERED}:TieredJudge",
        "tiered:irrefutable": f"{_TIERED}:tiered_irrefutable",
        "tiered:rational": f"{_TIERED}:tiered_rational",
    },
    WRITER: {"inspect": "deep.integrations.inspect_files:InspectWriter"},
}
"""Entry points of deep's own guests, here so that a checkout that is not installed has them; commands are in `cli`."""

NAME = re.compile(r"[a-z0-9][a-z0-9._:-]*")


class FoundEntryPoints(NamedTuple):
    """Entry points of one group by name, and the refused ones: why, by name."""

    usable: Mapping[str, EntryPoint]
    refused: Mapping[str, str]


def find_entry_points(group: str, reserved: Collection[str] = ()) -> FoundEntryPoints:
    """Return deep's own entry points and those of installed packages; a name that two have is nobody's but deep's.

    Parameters
    ----------
    group : {'deep.commands', 'deep.events', 'deep.exporters', 'deep.judges'}
    reserved : collection of str
        Names that are deep's own otherwise.

    Examples
    --------
    >>> from deep._util.entry_points import JUDGE, find_entry_points
    >>> find_entry_points(JUDGE).usable["stepwise"].value
    'deep.experiments.stepwise:StepwiseJudge'
    """
    own = OWN.get(group, {})
    usable = {name: EntryPoint(name, value, group) for name, value in own.items()}
    refused: dict[str, str] = {}
    claims = defaultdict(list)
    for entry in _installed(group):
        claims[entry.name].append(entry)
    for name, entries in sorted(claims.items()):
        packages = " and ".join(sorted({package_of(entry) for entry in entries}))
        if name in own or name in reserved:
            refused[name] = f"{printable(name)!r} of {packages}: the name is deep's own"
        elif not NAME.fullmatch(name):
            refused[name] = f"{printable(name)!r} of {packages}: a name is lower-case letters, digits and ._:-"
        elif len(entries) > 1:
            refused[name] = f"{name!r} of {packages}: a name is one entry point's"
        else:
            usable[name] = entries[0]
    return FoundEntryPoints(usable, refused)


@cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of all installed packages; looking through them takes some hundredths of a second."""
    return tuple(entry_points(group=group))


def package_of(entry: EntryPoint) -> str:
    """Return the package that an entry point is of."""
    return "deep" if entry.dist is None else printable(f"{entry.dist.name} {entry.dist.version}")


def load_entry_point(entry: EntryPoint) -> Any:
    """Import an entry point.

    Raises
    ------
    InputError
        It cannot be imported, for whatever reason that is another package's.
    """
    try:
        return entry.load()
    except DeepError:
        raise
    except (Exception, SystemExit) as error:
        if entry.dist is None:
            raise
        raise unusable(entry, f"{type(error).__name__}: {error}") from error


def load_own(group: str, name: str) -> Any:
    """Import the object that an entry point of deep's own guests names."""
    return resolve_name(OWN[group][name])


def unusable(entry: EntryPoint, why: str) -> InputError:
    """Return the error that another package's entry point is of no use."""
    return InputError(
        f"`{entry.group}` must be entry points that can be used. Got {entry.name!r} of {package_of(entry)}: {why}. "
        "Mend that package or uninstall it."
    )
