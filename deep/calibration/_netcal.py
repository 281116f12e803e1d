"""netcal's calibrators and its calibration error, on rows that stand for weighted ones."""

import contextlib
import io
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from deep._util.checks import Floats, Labels, Weights, check_choice
from deep.base import BaseCalibrator
from deep.calibration._metrics import check_bins, checked_rows, collapse
from deep.calibration._registry import DEFAULT_BINS, NETCAL_CLASSES
from deep.exceptions import InputError, needs_extra

# The most rows that stand for weighted ones, each repeated by its weight.
MAX_ROWS = 1_000_000

# The relative distance from a whole number up to which a weight is that number.
EXACT = 1e-9


# The calibrators whose maps depend on how many rows there are; those of the others depend on shares of label 1 alone.
COUNTS_ROWS = ("netcal-bbq", "netcal-enir")


@dataclass(eq=False, repr=False)
class NetcalCalibrator(BaseCalibrator):
    """One of netcal's calibrators at its defaults, fitted to each row as often as it weighs.

    netcal takes no weights, so rows are repeated: exact, and refused where it would not be. Weights must be whole for
    netcal's BBQ and ENIR, which count rows. For the others they may be any multiple of whole numbers. Rows of equal P
    stand together, those of label 1 first. The time of ENIR grows with the square of the distinct scores.

    Parameters
    ----------
    option : str, default='netcal-isotonic'
        A key of `NETCAL_CLASSES`: which of them, by its name in options and results.

    Attributes
    ----------
    fitted_ : object
        netcal's own.

    Raises
    ------
    InputError
        In `fit`: the weights are not whole or expand to more than 1,000,000 rows; netcal fails on these scores;
        or its map leaves [0, 1] on them. In `transform`: it does on others.

    References
    ----------
    .. [1] F. Küppers et al., "Multivariate confidence calibration for object detection", CVPR Workshops 2020.
       https://arxiv.org/abs/2004.13546
    """

    option: str = "netcal-isotonic"

    def _fit(self, p: Floats, y: Labels, w: Floats) -> None:
        module, name = NETCAL_CLASSES[check_choice(self.option, NETCAL_CLASSES, "option")]
        scores = collapse(p, y, w)
        by_label = np.column_stack([scores.n1, scores.n - scores.n1])
        counts = whole_counts(by_label, multiples=self.option not in COUNTS_ROWS, option=self.option)
        rows = np.repeat(scores.p, counts.sum(axis=1))
        labels = np.repeat(np.tile([1, 0], len(scores.p)), counts.ravel())
        # Those that optimise would else write logs for TensorBoard into the working folder.
        quiet = {"tensorboard": False} if module == "netcal.scaling" else {}
        with netcal_says(self.option):
            self.fitted_ = getattr(import_module(module), name)().fit(rows, labels, **quiet)
        # Some of netcal's maps leave [0, 1]: that is refused at the fit, not at the first item scored.
        self._transform(scores.p)

    def _transform(self, p: Floats) -> Floats:
        distinct, where = np.unique(p, return_inverse=True)
        with netcal_says(self.option):
            result = np.asarray(self.fitted_.transform(distinct), dtype=np.float64).reshape(distinct.shape)[where]
        wrong = ~((result >= 0) & (result <= 1))
        if wrong.any():
            raise InputError(
                f"`calibrator` must be one whose map stays in [0, 1]. Got {result[wrong][0].item()!r} of "
                f"{self.option!r} at P = {p[wrong][0].item():.3g}. Take 'isotonic' or 'platt'."
            )
        return result


def netcal_expected_calibration_error(
    y_true: ArrayLike, y_prob: ArrayLike, *, n_bins: int = DEFAULT_BINS, sample_weight: Weights = None
) -> float:
    """Return the calibration error as netcal's ``ECE`` measures it, the same as `expected_calibration_error`.

    Weights must be whole, or in the ratio of whole numbers.

    Examples
    --------
    >>> from deep.calibration import netcal_expected_calibration_error
    >>> round(netcal_expected_calibration_error([1, 0, 1, 1], [0.9, 0.2, 0.3, 0.8]), 3)
    0.3
    """
    p, y, w = checked_rows(y_true, y_prob, sample_weight)
    counts = whole_counts(w, multiples=True, option="netcal's ECE")
    with netcal_says("netcal's ECE"):
        measure = import_module("netcal.metrics").ECE(bins=check_bins(n_bins)).measure
        return float(measure(np.repeat(p, counts), np.repeat(y, counts).astype(np.int64)))


def whole_counts(weights: Floats, *, multiples: bool, option: str) -> npt.NDArray[np.int64]:
    """Return weights as numbers of rows, or raise.

    Parameters
    ----------
    weights : ndarray of float
        Not negative.
    multiples : bool
        Whether only their ratio matters: the smallest whole numbers in it are returned then.
    option : str
        The calibrator, for the error.

    Examples
    --------
    >>> whole_counts(np.array([0.5, 0.0, 0.75]), multiples=True, option="netcal-platt").tolist()
    [2, 0, 3]
    """
    scaled = weights
    if multiples and not _fits(weights):
        # Weights by dataset and class are ratios of counts, so that some multiple of them is whole.
        least, denominator = weights[weights > 0].min(), 1
        for ratio in np.unique(weights[weights > 0] / least).tolist():
            denominator = math.lcm(denominator, Fraction(ratio).limit_denominator(MAX_ROWS).denominator)
            if denominator > MAX_ROWS:
                break
        scaled = weights * (denominator / least)
    if not _fits(scaled):
        worst = weights.ravel()[np.abs(weights - np.rint(weights)).argmax()].item()
        of = " or in the ratio of whole numbers" if multiples else ""
        raise InputError(
            f"`sample_weight` must be whole{of}, with at most {MAX_ROWS:,} rows in all, for {option!r}: netcal takes "
            f"no weights, so rows are repeated. Got {worst:.6g}. Weigh every row alike (`--weighting uniform`), or "
            f"take deep's own calibrators."
        )
    return np.rint(scaled).astype(np.int64)


def _fits(weights: Floats) -> bool:
    whole = np.abs(weights - np.rint(weights)) <= EXACT * np.maximum(weights, 1)
    return bool(whole.all() and weights.sum() <= MAX_ROWS)


@contextlib.contextmanager
def netcal_says(option: str) -> Iterator[None]:
    """Capture netcal's output and warnings, and turn its exceptions into one line."""
    sink = io.StringIO()
    with (
        needs_extra("netcal", what=option),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        warnings.simplefilter("ignore")
        try:
            with np.errstate(all="ignore"):
                yield
        except ImportError:
            raise
        except Exception as error:  # netcal raises whatever numpy, scipy and torch do
            message = f"{type(error).__name__}: {str(error).strip() or 'no reason'}".splitlines()[0]
            raise InputError(
                f"`calibrator` must be one that can be fitted to these scores. Got {option!r}, where netcal fails with "
                f"{message}. Take 'isotonic' or 'platt'."
            ) from error
