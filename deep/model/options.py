"""The options of fitting and of scoring, as commands and Python have them; nothing heavy is loaded by them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

from deep._util.options import option
from deep.calibration import CALIBRATOR_CLASSES, NETCAL_CLASSES
from deep.ensembles import ENSEMBLER_NAMES
from deep.exceptions import InputError

Weighting = Literal["dataset", "dataset-class", "uniform"]

RECIPE_NAMES = ("deep", "paper")
SELECTOR_NAMES = ("auto", "mrmr", "mrmr-selection", "rfe")

UNCALIBRATED = "none"
"""This name in place of a calibrator's asks for the ensembler's own probabilities."""

AVERAGE = "Average"
STACK = "Stack"
"""deep's own ways to add up votes, beside the ensemblers."""


@dataclass(frozen=True)
class ChainOptions:
    """Which chains to look among; None: deep's own choice.

    Parameters
    ----------
    recipe : {'deep', 'paper'}, optional
        How a chain is chosen and fitted.
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        What weighs the same.
    sizes : sequence of int or 'all', optional
        Numbers of voters of a chain, or 'all'.
    ensembler, calibrator : sequence of str, optional
        Names of ensemblers, or 'Stack' or 'Average' alone; names of calibrators, or 'none'.
    selector : {'auto', 'mrmr', 'mrmr-selection', 'rfe'}, optional
        How the voters are selected.
    """

    recipe: str | None = option(None, choices=RECIPE_NAMES)
    weighting: Weighting | None = option(None)
    sizes: Sequence[int | str] | None = option(None, "N")
    ensembler: Sequence[str] | None = option(
        None, "NAME", help=f"{AVERAGE} or {STACK} alone, or of: {', '.join(ENSEMBLER_NAMES)}"
    )
    calibrator: Sequence[str] | None = option(
        None,
        "NAME",
        help=f"of: {', '.join(CALIBRATOR_CLASSES)}, {UNCALIBRATED} (default: all), {', '.join(NETCAL_CLASSES)}",
    )
    selector: str | None = option(None, choices=SELECTOR_NAMES)

    def __post_init__(self) -> None:
        if "Pool" in (self.ensembler or ()):
            raise InputError(f"`ensembler` must be {STACK!r}. Got 'Pool', its earlier name. A pool is of prompts.")

    @property
    def of_chain(self) -> dict[str, object]:
        """Return the values of the options that name a chain."""
        return {each.name: getattr(self, each.name) for each in fields(ChainOptions)}

    @property
    def asked(self) -> bool:
        """Return whether any was given."""
        return any(value is not None for value in self.of_chain.values())

    @property
    def own(self) -> str | None:
        """Return 'Stack' or 'Average' where one of them was asked for.

        Raises
        ------
        InputError
            Something else was asked for as well.
        """
        own = [name for name in self.ensembler or () if name in (STACK, AVERAGE)]
        if not own:
            return None
        others = [name for name, value in self.of_chain.items() if value is not None and name != "ensembler"]
        if len(self.ensembler or ()) > 1 or others:
            raise InputError(f"`ensembler` must be {own[0]!r} alone: it has neither voters nor a calibrator to choose.")
        return own[0]


@dataclass(frozen=True)
class ScoreOptions:
    """How votes are matched to a model's voters, and at which share of consistent items they are scored.

    Parameters
    ----------
    allow_mismatch : bool, default=False
        Take votes of another prompt version or model.
    allow_missing : bool, default=False
        A voter without a column has no vote.
    prior : float, optional
        Share of consistent items; default: estimated for each dataset.
    """

    allow_mismatch: bool = option(False)
    allow_missing: bool = option(False)
    prior: float | None = option(None, "P")
