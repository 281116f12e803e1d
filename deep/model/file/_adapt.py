"""The prior and the correction of P that labels of one dataset give."""

import numpy as np
import numpy.typing as npt

from deep._odds import P_MIN
from deep.model.adaptation import Correction, PriorEstimate
from deep.model.score import Scores


def by_labels(
    found: Scores, labels: npt.ArrayLike | None, documents: npt.ArrayLike | None
) -> tuple[PriorEstimate, Correction | None]:
    """Return the prior of a dataset and the correction of P, from scores without labels and the labels, if any."""
    if labels is None or not (np.asarray(labels) >= 0).any():
        return found.prior, None
    from deep.model.adaptation import estimate_share  # scikit-learn, which a model that is read does without

    misfit, prior = found.misfit, found.prior
    correction = Correction.learn(misfit, prior.estimate, found.p_uniform, labels, documents=documents)
    told = estimate_share(found.p_consistent, labels, prior=prior, documents=documents, misfit=misfit)[0]
    estimate, low, high = (min(max(share, P_MIN), 1 - P_MIN) for share in (told.estimate, told.low, told.high))
    return PriorEstimate(estimate, low, high), correction
