"""The calibrators by the names that options and results use."""

from collections.abc import Callable
from functools import partial

from deep import calibration
from deep._util.entry_points import CALIBRATOR, ClassRegistry
from deep.base import BaseCalibrator
from deep.calibration._names import CALIBRATOR_CLASSES, NETCAL_CLASSES

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    name: getattr(calibration, class_name) for name, class_name in CALIBRATOR_CLASSES.items()
}
"""deep's own by name: those that are tried where none is named."""

NETCAL_CALIBRATORS: dict[str, Callable[[], BaseCalibrator]] = {
    name: partial(calibration.NetcalCalibrator, name) for name in NETCAL_CLASSES
}
"""netcal's by name: a call without arguments makes one, as a call of a class does."""

ALL_CALIBRATORS: ClassRegistry[Callable[[], BaseCalibrator]] = ClassRegistry(
    {**CALIBRATORS, **NETCAL_CALIBRATORS}, CALIBRATOR, BaseCalibrator
)
"""Both; those of other packages are imported when they are asked for."""
