"""Does a panel of judges earn its cost? All that is measured of it, as JSON values."""

from collections.abc import Callable
from dataclasses import asdict

from deep.evaluate._contribution import panel_worth
from deep.evaluate._frames import null_if_nan
from deep.exceptions import InputError
from deep.features import effective_votes, error_correlation
from deep.model import RECIPES, training_set
from deep.records import VoteMatrix


def panel_report(
    votes: VoteMatrix,
    *,
    random_state: int = 0,
    progress: Callable[[str, int], Callable[[], None]] = lambda _name, _steps: lambda: None,
) -> dict[str, object]:
    """Measure what a panel and each of its judges add, leaving out one labeled dataset at a time.

    Parameters
    ----------
    votes : VoteMatrix
        Rows without a label are passed over.
    random_state : int, default=0
    progress : callable, optional
        Takes a name and a number of steps, and returns what is called after each step.

    Returns
    -------
    dict
        JSON values: the effective number of votes, the correlation of errors, and a
        :class:`deep.evaluate.PanelReport`, each of its panels with its number of judges.

    Raises
    ------
    InputError
        There are no labels, or fewer than two voters.
    """
    labeled = votes.rows(votes.labels >= 0)
    k = labeled.shape[1]
    if not len(labeled.labels) or k < 2:
        raise InputError("`votes` must have labeled rows and at least two voters. Got too few.")
    training = training_set(labeled, RECIPES["deep"], random_state=random_state)
    found = asdict(panel_worth(training, step=progress("panels", k * (k + 1) // 2)))
    for panel in found["steps"]:
        panel["n_judges"] = len(panel.pop("judges"))
    X, y, w = training.table()
    return {
        "datasets": list(labeled.dataset_names),
        "judges": list(training.cells.voter_names),
        "effective_votes": effective_votes(X, y, w),
        "error_correlation": [[null_if_nan(value) for value in row] for row in error_correlation(X, y, w)],
        **found,
    }
