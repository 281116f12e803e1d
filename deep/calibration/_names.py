"""The calibrators' names, known without loading the libraries behind them."""

CALIBRATOR_CLASSES = {
    "bbq": "BBQ",
    "beta": "Beta",
    "histogram": "Histogram",
    "isotonic": "Isotonic",
    "platt": "Platt",
    "temperature": "Temperature",
}
"""The name that options and results use, to that of the class."""
