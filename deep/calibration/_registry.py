"""The names by which options and files call what this package holds."""

from deep.base import BaseCalibrator
from deep.calibration._bbq import BBQ
from deep.calibration._beta import Beta
from deep.calibration._histogram import Histogram
from deep.calibration._isotonic import Isotonic
from deep.calibration._platt import Platt
from deep.calibration._temperature import Temperature

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    "bbq": BBQ,
    "beta": Beta,
    "histogram": Histogram,
    "isotonic": Isotonic,
    "platt": Platt,
    "temperature": Temperature,
}
"""The calibrators by the name that options and results use."""


__all__ = ["CALIBRATORS"]
