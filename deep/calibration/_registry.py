"""The calibrators by the names that options and results use."""

from deep import calibration
from deep.base import BaseCalibrator
from deep.calibration._names import CALIBRATOR_CLASSES

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    name: getattr(calibration, class_name) for name, class_name in CALIBRATOR_CLASSES.items()
}
"""The calibrators by name."""
