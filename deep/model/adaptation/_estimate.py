"""A dataset's share of consistent items, as far as it can be known without labels."""

from dataclasses import dataclass

from deep._odds import P_MIN, expit


@dataclass(frozen=True)
class PriorEstimate:
    """A dataset's share of consistent items, with its 90 % interval.

    Parameters
    ----------
    estimate, low, high : float
        In (0, 1).
    warning : str or None
        In a sentence, what makes the estimate less sure than the training datasets make it look.
    """

    estimate: float
    low: float
    high: float
    warning: str | None = None

    @classmethod
    def from_log_odds(cls, centre: float, reach: float, warning: str | None = None) -> "PriorEstimate":
        """Return the estimate at `centre`, with an interval of `reach` log-odds to either side, held off 0 and 1.

        Examples
        --------
        >>> PriorEstimate.from_log_odds(0.0, 1.0)
        PriorEstimate(estimate=0.5, low=0.26..., high=0.73..., warning=None)
        """
        held = (min(max(float(expit(at)), P_MIN), 1 - P_MIN) for at in (centre, centre - reach, centre + reach))
        estimate, low, high = held
        return cls(estimate, low, high, warning)
