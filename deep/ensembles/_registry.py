"""The ensemblers by the names that options and files use; the names are known without loading what is behind them."""

from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from deep import ensembles
from deep._util.entry_points import ENSEMBLER_GROUP, LoadedByName, find_entry_points, is_own_entry, load_class
from deep.exceptions import InputError

if TYPE_CHECKING:
    from deep.base import BaseEnsembler

# The sixteen of the paper, and MultinomialNB from its calibration tables: each the name of its class.
BUILT_IN_NAMES = (
    "AdaBoost",
    "BernoulliNB",
    "CatBoost",
    "DawidSkene",
    "DecisionTree",
    "GradientBoosting",
    "KNeighbors",
    "LDA",
    "LGBM",
    "LabelModel",
    "LogisticRegression",
    "MajorityLabelVoter",
    "MultinomialNB",
    "RandomForest",
    "SVC",
    "WeightedMajorityVoting",
    "XGB",
)

ENSEMBLER_NAMES = (*BUILT_IN_NAMES, *find_entry_points(ENSEMBLER_GROUP, BUILT_IN_NAMES).usable)
"""All that can be named: deep's own, and those of guests and other packages, which are tried only where named."""


def _load_ensembler(name: str) -> Any:
    """Return the class of a name, of deep or of another package."""
    from deep.base import BaseEnsembler  # with scikit-learn, which the names alone do without

    if name in BUILT_IN_NAMES:
        return getattr(ensembles, name)
    return load_class(name, ENSEMBLER_GROUP, BaseEnsembler, BUILT_IN_NAMES)


ENSEMBLERS: "LoadedByName[type[BaseEnsembler]]" = LoadedByName(BUILT_IN_NAMES, _load_ensembler)
"""The ensemblers by name, in the order of `ENSEMBLER_NAMES`."""

# The library of each ensembler that ``deep-judges[boosting]`` brings.
BOOSTING_LIBRARIES = {"CatBoost": "catboost", "LGBM": "lightgbm", "XGB": "xgboost"}


def default_ensemblers(recipe: str = "deep") -> tuple[str, ...]:
    """Return the ensemblers that are tried where none are named: those whose library is installed.

    Under recipe 'deep' MultinomialNB is not one of them: of complete votes it says what BernoulliNB says.
    """
    return tuple(one for one in BUILT_IN_NAMES if one not in _lacking() and (one, recipe) != ("MultinomialNB", "deep"))


def guest_ensemblers() -> tuple[str, ...]:
    """Return the ensemblers of deep's own guests whose library is installed: each has its row in the main job."""
    result = []
    for name, entry in find_entry_points(ENSEMBLER_GROUP, BUILT_IN_NAMES).usable.items():
        with suppress(InputError):  # a guest that was removed
            if is_own_entry(entry) and find_spec(ENSEMBLERS[name].library) is not None:
                result.append(name)
    return tuple(result)


def missing_libraries_note() -> str | None:
    """Return the sentence that names the ensemblers whose libraries are not installed; None where all are."""
    if names := ", ".join(_lacking()):
        return f"Left out because their libraries are not installed: {names}. Run: pip install 'deep-judges[boosting]'."
    return None


def _lacking() -> list[str]:
    return [name for name, library in BOOSTING_LIBRARIES.items() if find_spec(library) is None]
