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
    "netcal-bbq": "NetcalBBQ",
    "netcal-beta": "NetcalBeta",
    "netcal-enir": "NetcalENIR",
    "netcal-histogram": "NetcalHistogram",
    "netcal-isotonic": "NetcalIsotonic",
    "netcal-platt": "NetcalPlatt",
    "netcal-temperature": "NetcalTemperature",
}
"""The same of netcal's, which take no weights and are tried where they are named."""

CALIBRATOR_NAMES = (
    *CALIBRATOR_CLASSES,
    *NETCAL_CLASSES,
    *find_entry_points(CALIBRATOR, (*CALIBRATOR_CLASSES, *NETCAL_CLASSES)).usable,
)
"""All that can be named: deep's own, netcal's, and those of other packages."""

DEFAULT_BINS = 8
"""Of the calibration error, as in the DEEP paper."""
