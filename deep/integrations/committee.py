"""Figures of a committee of judges for tools that bring their own grades: those that `deep panel` prints."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep.evaluate import PanelCard, panel_card
from deep.records import ABSTAIN, VoteMatrix

GRADES: Mapping[object, int] = {"C": 1, "I": 0, 1: 1, 0: 0}  # and so 1.0, 0.0, True and False


def vote_of(grade: object) -> int:
    """Return the vote that a grade is: 1, 0, or -1 for partial credit, no answer and whatever else is none.

    Examples
    --------
    >>> from deep.integrations.committee import vote_of
    >>> [vote_of(grade) for grade in ("C", "I", True, 0.0, "P", 0.5, None)]
    [1, 0, 1, 0, -1, -1, -1]
    """
    return GRADES.get(grade, ABSTAIN) if isinstance(grade, Hashable) else ABSTAIN


def votes_of(
    grades: Sequence[Mapping[str, object]], labels: Sequence[object], documents: Sequence[str], dataset: str
) -> VoteMatrix:
    """Return the votes of graders, a row an item.

    Parameters
    ----------
    grades : sequence of mapping of str to object
        By item the grade of each grader; one that gave none may be missing.
    labels : sequence of object
        The right grade of each item; what is no vote stands for unknown.
    documents : sequence of str
        Items of one document may stand several times, as epochs of one sample.
    dataset : str
    """
    voters = sorted({name for row in grades for name in row})
    votes = np.array([[vote_of(row.get(name)) for name in voters] for row in grades], dtype=np.int8)
    return VoteMatrix(
        votes=votes.reshape(len(grades), len(voters)),
        example_ids=_numbered(documents),
        voter_names=tuple(voters),
        datasets=np.full(len(grades), dataset, dtype=object),
        labels=np.array([vote_of(label) for label in labels], dtype=np.int8),
        document_ids=np.array(documents, dtype=object),
    )


def _numbered(documents: Sequence[str]) -> npt.NDArray[np.object_]:
    """Return a name for each item: that of its document, with a number from its second item on."""
    names = pd.Series(documents, dtype=object)
    same = names.groupby(names)
    numbered = names + "@epoch-" + (same.cumcount() + 1).astype(str)
    return names.where(same.transform("size") == 1, numbered).to_numpy()


def _calibrated_accuracy(card: PanelCard) -> float:
    """Return the balanced accuracy of decisions by the committee's P, each part held out."""
    outer = None if card.worth is None else card.worth.outer
    return math.nan if outer is None else outer.balanced_accuracy


MEASURES: Mapping[str, Callable[[PanelCard], float]] = {
    "effective_size": lambda card: card.effective_votes,
    "agreement": lambda card: card.agreement,
    "calibrated_accuracy": _calibrated_accuracy,
}
"""What each figure is in the card of a panel."""


def measure(votes: VoteMatrix, *names: str) -> dict[str, float]:
    """Return figures of a committee, of all by default; NaN for one that these votes and labels cannot give.

    Parameters
    ----------
    votes : VoteMatrix
    *names : {'effective_size', 'agreement', 'calibrated_accuracy'}
        The independent judges that it is worth, by the correlation of errors; Cohen's kappa of two of its judges, mean
        over pairs, which needs no label; the balanced accuracy of the model that `deep fit` makes of its votes, on
        parts of the items held out.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.committee import measure
    >>> votes = simulate_votes(0)
    >>> found = measure(votes.rows(votes.datasets == "aggrefact-xsum"), "effective_size", "agreement")
    >>> 1 < found["effective_size"] < votes.shape[1], 0 < found["agreement"] < 1
    (True, True)
    """
    wanted = names or tuple(MEASURES)
    card = panel_card(votes, n_boot=1, limit=0, by_dataset=False, worth="calibrated_accuracy" in wanted)
    return {name: MEASURES[name](card) for name in wanted}
