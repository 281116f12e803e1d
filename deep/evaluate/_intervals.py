"""Student's interval of a mean over datasets or runs."""

import numpy as np
import numpy.typing as npt
from scipy import stats


def t_reach(sd: float, n: int, level: float) -> float:
    """Return half the width of the t-interval of a mean of `n` values with sample standard deviation `sd`.

    Examples
    --------
    >>> from deep.evaluate import t_reach
    >>> round(t_reach(1.0, 10, 0.95) * 10**0.5, 3)
    2.262
    """
    return float(stats.t.ppf((1 + level) / 2, n - 1) * sd / np.sqrt(n))


def mean_interval(values: npt.ArrayLike, level: float) -> tuple[float, float, float]:
    """Return the mean of at least two values with the bounds of its t-interval.

    Examples
    --------
    >>> from deep.evaluate import mean_interval
    >>> [round(value, 3) for value in mean_interval([1.0, 2.0, 3.0], 0.9)]
    [2.0, 0.314, 3.686]
    """
    known = np.asarray(values, dtype=np.float64)
    mean = float(np.mean(known))
    reach = t_reach(float(np.std(known, ddof=1)), len(known), level)
    return mean, mean - reach, mean + reach
