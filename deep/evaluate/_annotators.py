"""How far human annotators agree, with and without the items that they call ambiguous (arXiv:2508.00889, section 2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from deep.datasets import AMBIGUITIES, Annotations
from deep.exceptions import InputError
from deep.features import Ratings, agreement_interval, cohen_kappa, fleiss_kappa, krippendorff_alpha

MOST_PAIRED = 12
"""Raters of whom every pair is compared: 66 pairs; of more, only measures of all together are taken."""


def annotator_agreement(
    found: Annotations, *, min_marks: int = 1, n_boot: int = 2000, random_state: int = 0
) -> dict[str, object]:
    """Measure the agreement of annotators.

    Parameters
    ----------
    found : Annotations
        Of two annotators or more.
    min_marks : int, default=1
        Annotators who must call an item ambiguous.
    n_boot : int, default=2000
        Resamples of every interval.
    random_state : int, default=0

    Returns
    -------
    dict
        JSON values: the agreement on ``all`` items and ``without_ambiguous`` ones (Cohen's kappa of each pair,
        Fleiss' kappa, Krippendorff's alpha), the counts of the paper's Table 1, and every disagreement.

    Raises
    ------
    InputError
        There is one annotator only.
    """
    if len(found.annotators) < 2:
        raise InputError(f"`file` must hold two annotators or more. Got {found.annotators[0]!r} alone.")
    kinds = {item: found.ambiguity(item, at_least=min_marks) for item in found.items}
    clear = [item for item, kind in kinds.items() if kind is None]

    def measures(items: Sequence[str]) -> dict[str, object]:
        found_here = found.ratings(items)
        rows = agreement_measures(found_here, found.annotators, n_boot=n_boot, random_state=random_state)
        return {"items": len(items), "measures": rows}

    return {
        "annotators": found.annotators,
        "all": measures(found.items),
        "without_ambiguous": measures(clear),
        "table_1": _table_1(found, kinds),
        "disagreements": [
            {"item": d.item, "labels": dict(d.labels), "on_label": d.on_label, "steps": list(d.steps)}
            for d in found.disagreements()
        ],
    }


@dataclass(frozen=True)
class _Interval:
    n_boot: int
    random_state: int
    documents: npt.ArrayLike | None

    def measured(self, name: str, measure: Callable[[npt.ArrayLike], float], ratings: Ratings) -> dict[str, object]:
        """Return one measure with its interval; NaN becomes None."""
        given = (ratings >= 0).sum(axis=1)
        # Only Krippendorff's alpha can use an item that some annotators left out.
        used = given > 1 if measure is krippendorff_alpha else given == ratings.shape[1]
        options = {"n_boot": self.n_boot, "random_state": self.random_state}
        low, high = agreement_interval(measure, ratings, documents=self.documents, **options)
        values = {"value": measure(ratings), "low": low, "high": high}
        known = {key: None if np.isnan(value) else value for key, value in values.items()}
        return {"name": name, "items": int(used.sum()), **known}


def agreement_measures(
    ratings: Ratings,
    names: Sequence[str],
    *,
    documents: npt.ArrayLike | None = None,
    n_boot: int = 2000,
    random_state: int = 0,
) -> list[dict[str, object]]:
    """Measure how far raters agree, each measure with its 95 % interval over resampled documents.

    Parameters
    ----------
    ratings : ndarray of int, shape (n_items, n_raters)
        1, 0, or -1 where a rater gave no label.
    names : sequence of str, length n_raters
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    n_boot : int, default=2000
    random_state : int, default=0

    Returns
    -------
    list of dict
        `name`, `items`, `value`, `low` and `high` of Cohen's kappa of each pair, Fleiss' kappa and Krippendorff's
        alpha; empty where there are no items. Of more than `MOST_PAIRED` raters, no pairs.
    """
    if not len(ratings):
        return []
    interval = _Interval(n_boot, random_state, documents)
    measures = [
        interval.measured(f"Cohen's kappa, {names[i]} and {names[j]}", cohen_kappa, ratings[:, [i, j]])
        for i, j in combinations(range(len(names)), 2)
        if len(names) <= MOST_PAIRED
    ]
    measures.append(interval.measured("Fleiss' kappa", fleiss_kappa, ratings))
    measures.append(interval.measured("Krippendorff's alpha", krippendorff_alpha, ratings))
    return measures


def _table_1(found: Annotations, kinds: dict[str, str | None]) -> dict[str, int]:
    """Return the counts of the paper's Table 1; a tied majority is neither factual nor not."""
    labels = [found.majority(item) for item, kind in kinds.items() if kind is None]
    ambiguous = {kind: sum(given == kind for given in kinds.values()) for kind in AMBIGUITIES}
    counts = {"factual": labels.count(1), "non_factual": labels.count(0), "undecided": labels.count(-1)}
    return {**counts, "total": len(labels), **ambiguous}
