"""The calibrators' names, known without loading the libraries behind them."""

from deep._util.entry_points import CALIBRATOR, OWN

CALIBRATOR_CLASSES = {
    "bbq": "BBQ",
    "beta": "Beta",
    "histogram": "Histogram",
    "isotonic": "Isotonic",
    "platt": "Platt",
    "temperature": "Temperature",
}
"""The name that options and results use, to that of the class. Where none are named, all of these are tried."""

NETCAL_CLASSES = OWN[CALIBRATOR]
"""The same of netcal's, a guest's, which take no weights and are tried where they are named."""

DEFAULT_BINS = 8
"""Of the calibration error, as in the DEEP paper."""
