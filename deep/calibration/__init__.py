"""Calibrators, calibration error and its noise floor, bootstrap and reliability diagrams."""

from deep.base import BaseCalibrator
from deep.calibration._bbq import BBQ
from deep.calibration._beta import Beta
from deep.calibration._bootstrap import PairedComparison, bootstrap_balanced_accuracy, paired_bootstrap
from deep.calibration._corp import CorpDisplay
from deep.calibration._ece import NoiseFloor, debiased_ece, ece_noise_floor, expected_calibration_error
from deep.calibration._figures import plot_reliability, save_figure
from deep.calibration._histogram import Histogram
from deep.calibration._isotonic import Isotonic
from deep.calibration._metrics import (
    BrierDecomposition,
    auroc,
    balanced_accuracy,
    brier_decomposition,
    evaluate,
    log_loss,
    precision,
    recall,
)
from deep.calibration._platt import Platt
from deep.calibration._reliability import ReliabilityDisplay
from deep.calibration._selective import SelectiveThreshold, risk_coverage, selective_threshold
from deep.calibration._temperature import Temperature
from deep.calibration._venn_abers import VennAbers

__all__ = [
    "BBQ",
    "CALIBRATORS",
    "Beta",
    "BrierDecomposition",
    "CorpDisplay",
    "Histogram",
    "Isotonic",
    "NoiseFloor",
    "PairedComparison",
    "Platt",
    "ReliabilityDisplay",
    "SelectiveThreshold",
    "Temperature",
    "VennAbers",
    "auroc",
    "balanced_accuracy",
    "bootstrap_balanced_accuracy",
    "brier_decomposition",
    "debiased_ece",
    "ece_noise_floor",
    "evaluate",
    "expected_calibration_error",
    "log_loss",
    "paired_bootstrap",
    "plot_reliability",
    "precision",
    "recall",
    "risk_coverage",
    "save_figure",
    "selective_threshold",
]

CALIBRATORS: dict[str, type[BaseCalibrator]] = {
    "bbq": BBQ,
    "beta": Beta,
    "histogram": Histogram,
    "isotonic": Isotonic,
    "platt": Platt,
    "temperature": Temperature,
}
"""The calibrators by the name that options and results use."""
