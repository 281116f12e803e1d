"""The options of a leave-one-dataset-out run."""

from collections.abc import Sequence
from dataclasses import dataclass

from deep._checks import check_choice
from deep.calibration import ALL_CALIBRATORS, CALIBRATORS, DEFAULT_BINS
from deep.ensembles import ENSEMBLERS, default_ensemblers
from deep.evaluate import HoldOutUnit
from deep.exceptions import InputError
from deep.model import (
    AVERAGE,
    RECIPES,
    SELECTOR_NAMES,
    SIZES,
    STACK,
    UNCALIBRATED,
    ChainOptions,
    Recipe,
    Weighting,
    distinct_sizes,
)


@dataclass(frozen=True)
class LooOptions:
    """The options of :func:`leave_one_dataset_out`.

    What is asked for by one of the first six decides what is recommended, and P. With none of them it is what
    :func:`deep.model.fit` chooses, and the table shows the default ensemblers and calibrators at 3, 5 and 9 voters
    beside it.

    Parameters
    ----------
    sizes : sequence of int or 'all', optional
        Numbers of voters to ensemble; one above the number of voters counts as 'all'.
    selector : {'auto', 'exhaustive', 'mrmr', 'mrmr-selection', 'rfe'}, optional
    ensemblers : sequence of str, optional
        Keys of `ENSEMBLERS`, or 'Stack' or 'Average' alone.
    calibrators : sequence of str, optional
        Keys of `ALL_CALIBRATORS`, or 'none'. The table shows uncalibrated probabilities in any case.
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        What weighs the same.
    recipe : {'deep', 'paper'}, optional
    tables : sequence of str, optional
        The recipes whose chains the table shows; default: the one asked for, else deep's.
    all_chains : bool, default=False
        Keep P of every chain that was run.
    unit : {'dataset', 'family'}, default='dataset'
        Whether siblings of the held-out dataset may be trained on.
    netcal : bool, default=False
        netcal's calibrators on the smallest number of voters, and netcal's calibration error of every chain, in the
        table beside deep's. For recipe 'paper', which does not weigh.
    n_bins : int, default=8
        Of the calibration error.
    n_boot : int, default=10_000
        Resamples of every interval and test.
    random_state : int, default=0
    n_jobs : int, default=1
        Processes; -1 for one a core. Results do not depend on it. A script that asks for more than one needs its
        ``if __name__ == "__main__"``.

    Raises
    ------
    InputError
        A name is unknown, a number is out of range, or a list is empty.
    """

    sizes: Sequence[int | str] | None = None
    selector: str | None = None
    ensemblers: Sequence[str] | None = None
    calibrators: Sequence[str] | None = None
    weighting: Weighting | None = None
    recipe: str | None = None
    tables: Sequence[str] = ()
    all_chains: bool = False
    netcal: bool = False
    unit: HoldOutUnit = "dataset"
    n_bins: int = DEFAULT_BINS
    n_boot: int = 10_000
    random_state: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        self._check_names()
        for name, least in (("n_bins", 1), ("n_boot", 100), ("random_state", 0)):
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}. Got {getattr(self, name)!r}.")
        for name in ("calibrators", "ensemblers", "sizes"):
            if getattr(self, name) is not None and not getattr(self, name):
                raise InputError(f"`{name}` must name at least one. Got an empty list.")
        if self.n_jobs == 0 or self.n_jobs < -1:
            raise InputError(f"`n_jobs` must be at least 1, or -1 for one a core. Got {self.n_jobs!r}.")

    def _check_names(self) -> None:
        """Raise where a name is unknown, or the stack is asked for beside something else."""
        asked = self.asked
        if self.selector is not None:
            check_choice(self.selector, SELECTOR_NAMES, "selector")
        if self.weighting is not None:
            check_choice(self.weighting, ("dataset", "dataset-class", "uniform"), "weighting")
        for name in (*self.tables, *([] if self.recipe is None else [self.recipe])):
            check_choice(name, RECIPES, "recipe")
        check_choice(self.unit, ("dataset", "family"), "hold_out")
        for name in self.ensemblers or ():
            check_choice(name, (*ENSEMBLERS, AVERAGE, STACK), "ensembler")
        for name in self.calibrators or ():
            check_choice(name, (*ALL_CALIBRATORS, UNCALIBRATED), "calibrator")
        _ = asked.own

    @property
    def asked(self) -> ChainOptions:
        """Return the options that :func:`deep.model.fit` is given."""
        return ChainOptions(
            recipe=self.recipe,
            weighting=self.weighting,
            sizes=self.sizes,
            ensembler=None if self.ensemblers is None else tuple(self.ensemblers),
            calibrator=None if self.calibrators is None else tuple(self.calibrators),
            selector=self.selector,
        )

    @property
    def own_recipe(self) -> str:
        """Return the recipe of a chain that is asked for."""
        return self.recipe or "deep"

    @property
    def shown(self) -> tuple[Recipe, ...]:
        """Return the recipes whose chains are run and tabulated; none where only the stack or the average is wanted."""
        if self.asked.own is not None:
            return ()
        return tuple(RECIPES[name] for name in dict.fromkeys(self.tables or (self.own_recipe,)))

    @property
    def table_ensemblers(self) -> tuple[str, ...]:
        """Return the ensemblers of the table; none where only the stack or the average is wanted."""
        if self.asked.own is not None:
            return ()
        return default_ensemblers() if self.ensemblers is None else tuple(dict.fromkeys(self.ensemblers))

    @property
    def table_calibrators(self) -> tuple[str, ...]:
        """Return the calibrators of the table, first of all none."""
        names = tuple(CALIBRATORS) if self.calibrators is None else self.calibrators
        return tuple(dict.fromkeys((UNCALIBRATED, *names)))

    def sizes_for(self, n_voters: int) -> list[int]:
        """Return the distinct sizes for a number of voters, in the order given."""
        return distinct_sizes(self.sizes or SIZES, n_voters)
