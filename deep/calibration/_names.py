"""The calibrators' names, known without loading the libraries behind them."""

from deep._util.entry_points import CALIBRATOR, find_entry_points

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

CALIBRATOR_NAMES = (
    *CALIBRATOR_CLASSES,
    *NETCAL_CLASSES,
    *find_entry_points(CALIBRATOR, (*CALIBRATOR_CLASSES, *NETCAL_CLASSES)).usable,
)
"""All that can be named: deep's own, netcal's, and those of other packages."""

DEFAULT_BINS = 8
"""Of the calibration error, as in the DEEP paper."""
