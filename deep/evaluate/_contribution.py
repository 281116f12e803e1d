"""Does a panel of judges earn its cost? What each judge adds, and whether one would do."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from deep._checks import Floats
from deep._odds import P_MIN
from deep.evaluate._intervals import mean_interval
from deep.exceptions import InputError
from deep.model import LEVEL, TrainingSet, out_of_fold
from deep.records import ABSTAIN

ENSEMBLER = "LogisticRegression"
"""The ensembler by which panels are compared: quick to fit, and a judge that adds nothing gets no weight."""


@dataclass(frozen=True, eq=False)
class PanelStep:
    """One panel on the way from all judges to one, the least useful judge leaving first.

    Parameters
    ----------
    dropped : str or None
        The judge that left; None for the whole panel.
    judges : tuple of str
        Those that stay.
    log_loss, balanced_accuracy : float
        Mean over datasets, each left out of the fit.
    loss_increase : float
        `log_loss` less that of the whole panel.
    increase_ci : (float, float)
        90 % interval of it by t over datasets.
    """

    dropped: str | None
    judges: tuple[str, ...]
    log_loss: float
    balanced_accuracy: float
    loss_increase: float
    increase_ci: tuple[float, float]


@dataclass(frozen=True, eq=False)
class PanelReport:
    """The worth of a panel of judges, together and one by one.

    Parameters
    ----------
    steps : tuple of PanelStep
        From all judges to one.
    value : dict of str to (float, float, float)
        By judge: how much log loss rises where it alone is dropped from the whole panel, and its 90 % interval.
    best_judge : str
        Chosen on all datasets; `gain` is measured against the judge chosen without the dataset it is tested on.
    gain, gain_ci : float, (float, float)
        Balanced accuracy of the panel less that of the best judge, mean over datasets, and its 90 % interval.
    keep, drop : tuple of str
        The smallest panel of `steps` that is not worse than the whole one beyond one standard error, and the rest.
    one_judge : bool
        Whether `gain` is not above 0 beyond chance: for decisions one judge would do.
    """

    steps: tuple[PanelStep, ...]
    value: dict[str, tuple[float, float, float]]
    best_judge: str
    gain: float
    gain_ci: tuple[float, float]
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    one_judge: bool


def panel_worth(training: TrainingSet, *, step: Callable[[], None] = lambda: None) -> PanelReport:
    """Measure what a panel and each of its judges add, leaving out one dataset at a time.

    Parameters
    ----------
    training : TrainingSet
        Of at least two judges, with at least three inner folds.
    step : callable, optional
        Called after each of the k (k + 1) / 2 panels that are fitted.

    Raises
    ------
    InputError
        There are fewer judges or folds.
    """
    k = _check_size(training)
    whole = _losses(training)
    steps = [_step(training, None, tuple(range(k)), whole, whole)]
    step()
    value: dict[str, tuple[float, float, float]] = {}
    columns = tuple(range(k))
    while len(columns) > 1:
        without = {}
        for column in columns:
            without[column] = _losses(training.select([c for c in columns if c != column]))
            step()
        if len(columns) == k:
            value = {_name(training, c): mean_interval(loss - whole, LEVEL) for c, loss in without.items()}
        least = min(columns, key=lambda c: float(np.mean(without[c])))
        columns = tuple(c for c in columns if c != least)
        steps.append(_step(training, _name(training, least), columns, without[least], whole))
    return _report(training, steps, value)


def judge_values(
    training: TrainingSet, *, step: Callable[[], None] = lambda: None
) -> dict[str, tuple[float, float, float]]:
    """Return by judge how much log loss rises where it alone is dropped from the panel, and its 90 % interval.

    Parameters
    ----------
    training : TrainingSet
        Of at least two judges, with at least three inner folds.
    step : callable, optional
        Called after each of the k panels that are fitted.

    Raises
    ------
    InputError
        There are fewer judges or folds.
    """
    k = _check_size(training)
    whole = _losses(training)
    values = {}
    for column in range(k):
        without = _losses(training.select([c for c in range(k) if c != column]))
        values[_name(training, column)] = mean_interval(without - whole, LEVEL)
        step()
    return values


def _check_size(training: TrainingSet) -> int:
    """Return the number of judges; raise where they, or the folds, are too few."""
    k = len(training.cells.voter_names)
    if k < 2 or training.n_folds < 3:
        raise InputError(
            f"`training` must have at least 2 voters and 3 inner folds. Got {k} voters and {training.n_folds} folds."
        )
    return k


def _report(training: TrainingSet, steps: list[PanelStep], value: dict[str, tuple[float, float, float]]) -> PanelReport:
    names = training.cells.voter_names
    singles = _single_accuracies(training)
    folds = np.arange(training.n_folds)
    chosen = [int(np.argmax(singles[folds != fold].mean(axis=0))) for fold in folds]
    difference = _accuracies(training) - singles[folds, chosen]
    gain, low, high = mean_interval(difference, LEVEL)
    keep = _smallest(steps, len(folds)).judges
    return PanelReport(
        steps=tuple(steps),
        value=value,
        best_judge=names[int(np.argmax(singles.mean(axis=0)))],
        gain=gain,
        gain_ci=(low, high),
        keep=keep,
        drop=tuple(name for name in names if name not in keep),
        one_judge=low <= 0,
    )


def _smallest(steps: list[PanelStep], n: int) -> PanelStep:
    """Return the last step before which no panel is worse than the whole one by more than a standard error."""
    reach = stats.t(n - 1).ppf((1 + LEVEL) / 2)
    best = steps[0]
    for panel in steps[1:]:
        error = (panel.increase_ci[1] - panel.loss_increase) / reach
        if panel.loss_increase > error:
            break
        best = panel
    return best


def _step(
    training: TrainingSet, dropped: str | None, columns: tuple[int, ...], losses: Floats, whole: Floats
) -> PanelStep:
    increase, low, high = mean_interval(losses - whole, LEVEL)
    chosen = training.select(columns)
    return PanelStep(
        dropped=dropped,
        judges=chosen.cells.voter_names,
        log_loss=float(np.mean(losses)),
        balanced_accuracy=float(np.mean(_accuracies(chosen))),
        loss_increase=increase,
        increase_ci=(low, high),
    )


def _name(training: TrainingSet, column: int) -> str:
    return training.cells.voter_names[column]


def _fold_shares(training: TrainingSet) -> Floats:
    """Return the weight of each pattern, fold and label, 1 a fold and label, shape (n_patterns, n_folds, 2)."""
    in_fold = training.fold_of[None, :] == np.arange(training.n_folds)[:, None]
    counts = np.einsum("fg,pgl->pfl", in_fold.astype(float), training.cells.counts)
    share: Floats = counts / np.maximum(counts.sum(axis=0), 1)
    return share


def _losses(training: TrainingSet) -> Floats:
    """Return the log loss on each fold of the fit without it, both classes weighing the same."""
    p = np.clip(out_of_fold(ENSEMBLER, training), P_MIN, 1 - P_MIN)
    share = _fold_shares(training)
    loss: Floats = -(share[..., 1] * np.log(p) + share[..., 0] * np.log1p(-p)).sum(axis=0) / 2
    return loss


def _accuracies(training: TrainingSet) -> Floats:
    """Return the balanced accuracy on each fold of the fit without it."""
    positive = out_of_fold(ENSEMBLER, training) >= 0.5
    return _balanced(positive[:, :, None], training)[:, 0]


def _single_accuracies(training: TrainingSet) -> Floats:
    """Return the balanced accuracy of each judge on each fold, shape (n_folds, k); no vote decides for consistent."""
    votes = training.cells.patterns
    return _balanced(((votes == 1) | (votes == ABSTAIN))[:, None, :], training)


def _balanced(positive: npt.NDArray[np.bool_], training: TrainingSet) -> Floats:
    share = _fold_shares(training)[..., None, :]
    hits: Floats = (share[..., 1] * positive + share[..., 0] * ~positive).sum(axis=0) / 2
    return hits
