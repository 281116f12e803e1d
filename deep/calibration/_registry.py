"""The calibrators by the names that options and results use; they are known without loading what is behind them."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from deep import calibration
from deep._util.entry_points import CALIBRATOR_GROUP, LoadedByName, find_entry_points, load_class

if TYPE_CHECKING:
    from deep.base import BaseCalibrator

CALIBRATOR_CLASSES = {
    "bbq": "BBQ",
    "beta": "Beta",
    "histogram": "Histogram",
    "isotonic": "Isotonic",
    "platt": "Platt",
    "temperature": "Temperature",
}
"""The name that options and results use, to that of the class. Where none are named, all of these are tried."""

NETCAL_CLASSES = {
    "netcal-bbq": ("netcal.binning", "BBQ"),
    "netcal-beta": ("netcal.scaling", "BetaCalibration"),
    "netcal-enir": ("netcal.binning", "ENIR"),
    "netcal-histogram": ("netcal.binning", "HistogramBinning"),
    "netcal-isotonic": ("netcal.binning", "IsotonicRegression"),
    "netcal-platt": ("netcal.scaling", "LogisticCalibration"),
    "netcal-temperature": ("netcal.scaling", "TemperatureScaling"),
}
"""The modules and classes of netcal's, which take no weights and are tried where they are named."""

# The names of the calibrators that deep brings.
BUILT_IN_NAMES = (*CALIBRATOR_CLASSES, *NETCAL_CLASSES)

CALIBRATOR_NAMES = (*BUILT_IN_NAMES, *find_entry_points(CALIBRATOR_GROUP, BUILT_IN_NAMES).usable)
"""All that can be named: deep's own, netcal's, and those of other packages."""

DEFAULT_BINS = 8
"""The number of bins of a calibration error, as in the DEEP paper."""


def _load_calibrator(name: str) -> Any:
    """Return the class of a name, of deep or of another package; of one of netcal's, what makes it."""
    from deep.base import BaseCalibrator  # with scikit-learn, which the names alone do without

    if name in NETCAL_CLASSES:
        return partial(calibration.NetcalCalibrator, name)
    if name in CALIBRATOR_CLASSES:
        return getattr(calibration, CALIBRATOR_CLASSES[name])
    return load_class(name, CALIBRATOR_GROUP, BaseCalibrator, BUILT_IN_NAMES)


CALIBRATORS: "LoadedByName[type[BaseCalibrator]]" = LoadedByName(CALIBRATOR_CLASSES, _load_calibrator)
"""deep's own calibrators by name: those that are tried where none is named."""

NETCAL_CALIBRATORS: "LoadedByName[Callable[[], BaseCalibrator]]" = LoadedByName(NETCAL_CLASSES, _load_calibrator)
"""netcal's calibrators by name: a call without arguments makes one, as a call of a class does."""

ALL_CALIBRATORS: "LoadedByName[Callable[[], BaseCalibrator]]" = LoadedByName(BUILT_IN_NAMES, _load_calibrator)
"""deep's own calibrators and netcal's, by name."""
