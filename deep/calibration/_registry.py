"""The calibrators by the names that options and results use."""

from deep import calibration
from deep._util.entry_points import CALIBRATOR, load_own
from deep.base import BaseCalibrator
from deep.calibration._names import CALIBRATOR_CLASSES, NETCAL_CLASSES

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    name: getattr(calibration, class_name) for name, class_name in CALIBRATOR_CLASSES.items()
}
"""deep's own by name: those that are tried where none is named."""

NETCAL_CALIBRATORS: dict[str, type[BaseCalibrator]] = {name: load_own(CALIBRATOR, name) for name in NETCAL_CLASSES}
"""netcal's by name."""

ALL_CALIBRATORS = CALIBRATORS | NETCAL_CALIBRATORS
