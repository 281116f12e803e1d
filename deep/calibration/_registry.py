"""The calibrators by the names that options and results use."""

from deep import calibration
from deep._util.entry_points import CALIBRATOR, ClassRegistry
from deep.base import BaseCalibrator
from deep.calibration._names import CALIBRATOR_CLASSES, NETCAL_CLASSES

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    name: getattr(calibration, class_name) for name, class_name in CALIBRATOR_CLASSES.items()
}
"""deep's own by name: those that are tried where none is named."""

NETCAL_CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    name: getattr(calibration, class_name) for name, class_name in NETCAL_CLASSES.items()
}
"""netcal's by name."""

ALL_CALIBRATORS = ClassRegistry(CALIBRATORS | NETCAL_CALIBRATORS, CALIBRATOR, BaseCalibrator)
"""Both; those of other packages are imported when they are asked for."""
