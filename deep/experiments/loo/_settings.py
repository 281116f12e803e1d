"""The options of a leave-one-dataset-out run."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from deep._checks import check_choice
from deep.calibration import CALIBRATORS
from deep.ensembles import ENSEMBLERS
from deep.evaluate import HoldOutUnit
from deep.exceptions import InputError
from deep.model import RECIPES, SELECTOR_NAMES, Recipe, Weighting, distinct_sizes


@dataclass(frozen=True)
class LooOptions:
    """The options of :func:`leave_one_dataset_out`; the defaults are the recommended ones.

    Parameters
    ----------
    sizes : sequence of int or 'all', default=(3, 5, 9)
        Numbers of voters to ensemble; one above the number of voters counts as 'all'.
    selector : {'auto', 'exhaustive', 'mrmr', 'rfe'}, default='auto'
    ensemblers : sequence of str
        Keys of `ENSEMBLERS`; default all 17.
    calibrators : sequence of str
        Keys of `CALIBRATORS`; default all six. The uncalibrated probabilities are always there.
    weighting : {'dataset', 'dataset-class', 'uniform'}, default='dataset-class'
        What weighs the same in the deep recipe.
    recipe : {'deep', 'paper'}, default='deep'
        Whose rows the table shows; `recommended` is always deep's.
    compare_recipes : bool, default=False
        Show the rows of both.
    unit : {'dataset', 'family'}, default='dataset'
        Whether siblings of the held-out dataset may be trained on.
    n_bins : int, default=8
        Of the calibration error.
    n_boot : int, default=10_000
        Resamples of every interval and test.
    random_state : int, default=0
    n_jobs : int, default=1
        Processes; -1 for one a core. Results do not depend on it.

    Raises
    ------
    InputError
        A name is unknown, a number is out of range, or a list is empty.
    """

    sizes: Sequence[int | str] = (3, 5, 9)
    selector: str = "auto"
    ensemblers: Sequence[str] = field(default_factory=lambda: tuple(ENSEMBLERS))
    calibrators: Sequence[str] = field(default_factory=lambda: tuple(CALIBRATORS))
    weighting: Weighting = "dataset-class"
    recipe: str = "deep"
    compare_recipes: bool = False
    unit: HoldOutUnit = "dataset"
    n_bins: int = 8
    n_boot: int = 10_000
    random_state: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        check_choice(self.selector, SELECTOR_NAMES, "selector")
        check_choice(self.weighting, ("dataset", "dataset-class", "uniform"), "weighting")
        check_choice(self.recipe, RECIPES, "recipe")
        check_choice(self.unit, ("dataset", "family"), "hold_out")
        for name in self.ensemblers:
            check_choice(name, ENSEMBLERS, "ensembler")
        for name in self.calibrators:
            check_choice(name, CALIBRATORS, "calibrator")
        for name, least in (("n_bins", 1), ("n_boot", 100), ("random_state", 0)):
            if getattr(self, name) < least:
                raise InputError(f"`{name}` must be at least {least}. Got {getattr(self, name)!r}.")
        if not self.ensemblers or not self.sizes:
            raise InputError("`ensemblers` and `sizes` must name at least one each. Got an empty list.")
        if self.n_jobs == 0 or self.n_jobs < -1:
            raise InputError(f"`n_jobs` must be at least 1, or -1 for one a core. Got {self.n_jobs!r}.")

    @property
    def shown(self) -> tuple[str, ...]:
        """Return the recipes whose rows the table shows."""
        return ("deep", "paper") if self.compare_recipes else (self.recipe,)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Return the recipes to run: deep's always, for `recommended`."""
        return tuple(RECIPES[name] for name in ("deep", "paper") if name == "deep" or name in self.shown)

    def sizes_for(self, n_voters: int) -> list[int]:
        """Return the distinct sizes for a number of voters, in the order given."""
        return distinct_sizes(self.sizes, n_voters)
