"""The worth of a panel of judges: the gain by each judge, and whether one would do."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from deep._util.checks import Floats, Mask, Votes, factorize
from deep._util.odds import DECISION_P, P_MIN, SLOPE_TOLERANCE, expit, fit_logistic
from deep.calibration import balanced_accuracy, log_loss
from deep.ensembles import LogisticRegression
from deep.evaluate._holdout import hold_out
from deep.evaluate._measured import Measured, Row, TableCell, json_value, mean_interval
from deep.exceptions import InputError
from deep.model import LEVEL, RECIPES, FoldLimit, TrainingSet, assign_folds, fit, training_set
from deep.records import ABSTAIN, VoteMatrix

# The fewest folds by which it is told which judges to keep: of two, the one difference has no spread.
MIN_FOLDS_FOR_CHOICE = 3

# One in so many judges leaves at a time where parts of the data are held out.
# One at a time takes k (k + 1) / 2 fits on each part; an eighth at a time takes about 8 k.
DROP_ONE_IN = 8

N_FOLDS = 5
"""The folds that a single dataset is cut into, as many as a fit of one dataset has."""

HELD_OUT_FOLDS = FoldLimit(12, 6)
"""Above 12 datasets (6 where patterns of votes are many) several are held out together, in six groups (decision 23)."""


@dataclass(frozen=True, eq=False)
class PanelStep(Measured):
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
    log_loss: Annotated[float, TableCell("log loss", ".4f")]
    balanced_accuracy: Annotated[float, TableCell("accuracy, %", ".1%")]
    loss_increase: Annotated[float, TableCell("increase", "+.4f")]
    increase_ci: Annotated[tuple[float, float], TableCell("increase, 90 %", "+.4f")]

    def cells(self) -> dict[str, str]:
        """Return the row of a table, at its end the judge that left."""
        return super().cells() | {"dropped": self.dropped or ""}

    def row(self) -> Row:
        """Return the row of a table: how many judges stay, in place of their names."""
        row = asdict(self)
        return row | {"n_judges": len(row.pop("judges"))}


@dataclass(frozen=True, eq=False)
class PanelReport(Measured):
    """The worth of a panel of judges, together and one by one.

    Parameters
    ----------
    steps : tuple of PanelStep
        From all judges to one.
    value : dict of str to (float, float, float)
        By judge: how much log loss rises where it alone is dropped from the whole panel, and its 90 % interval.
    best_judge : str
        Of the best balanced accuracy on the items that it votes on, chosen on all of them; `gain` is measured against
        the judge chosen so without the part it is tested on.
    gain, gain_ci : float, (float, float)
        Those of `outer`.
    keep, drop : tuple of str
        The judges to keep (:func:`chosen_judges`), and the rest.
    one_judge : bool
        Whether `gain` is not above 0 beyond chance: for decisions one judge would do.
    outer : OuterWorth
        The panel and those kept on data that had no part in the choice.
    """

    steps: tuple[PanelStep, ...]
    value: dict[str, tuple[float, float, float]]
    best_judge: str
    gain: float
    gain_ci: tuple[float, float]
    keep: tuple[str, ...]
    drop: tuple[str, ...]
    one_judge: bool
    outer: "OuterWorth"

    def as_dict(self) -> Row:
        """Return JSON values; of the panel of each step how many judges stay."""
        return super().as_dict() | {"steps": [json_value(step.row()) for step in self.steps]}


# Takes the name of some work and its number of steps; what it returns is called after each step.
PanelProgress = Callable[[str, int], Callable[[], None]]


def panel_worth(
    votes: VoteMatrix, *, random_state: int = 0, progress: PanelProgress = lambda _name, _steps: lambda: None
) -> PanelReport:
    """Measure the gain by a panel and by each of its judges, on parts of the data that were left out.

    Parameters
    ----------
    votes : VoteMatrix
        Labeled, of at least two judges, and of one dataset or at least three.
    random_state : int, default=0
        Seed of the folds of rows on which judges are measured and chosen.
    progress : callable, optional
        Called with a name and a number of steps; what it returns is called after each step.

    Raises
    ------
    InputError
        There are fewer judges or datasets, or too few labels.
    """
    training = training_set(votes, RECIPES["deep"], random_state=random_state)
    k = len(training.cells.voter_names)
    if k < 2 or training.n_folds < 3:
        raise InputError(
            f"`training` must have at least 2 voters and 3 inner folds. Got {k} voters and {training.n_folds} folds."
        )
    panel = _fit_whole_panel(training)
    whole = panel.losses()
    step = progress("panels", k * (k + 1) // 2)
    steps = [_panel_step(None, panel, whole)]
    step()
    value: dict[str, tuple[float, float, float]] = {}
    while len(panel.judges) > 1:
        without = []
        for column in range(len(panel.judges)):
            without.append(panel.without(column).losses())
            step()
        rises = (mean_interval(losses - whole, LEVEL) for losses in without)
        value = value or dict(zip(panel.judges, rises, strict=True))
        least = int(np.argmin([np.mean(losses) for losses in without]))
        dropped, panel = panel.judges[least], panel.without(least).merged()
        steps.append(_panel_step(dropped, panel, whole))
    step = progress("held out", max(len(votes.dataset_names), N_FOLDS))
    outer = outer_worth(votes, random_state=random_state, step=step)
    if outer is None:
        raise InputError("`labels` must be 1 and 0 in at least two parts of the data. Got fewer. Label more items.")
    keep = chosen_judges(votes, random_state)
    return PanelReport(
        steps=tuple(steps),
        value=value,
        best_judge=votes.voter_names[_best_judge_column(votes)],
        gain=outer.gain,
        gain_ci=outer.gain_ci,
        keep=keep,
        drop=tuple(name for name in votes.voter_names if name not in keep),
        one_judge=outer.gain_ci[0] <= 0,
        outer=outer,
    )


def _best_judge_column(votes: VoteMatrix) -> int:
    """Return the judge of the best balanced accuracy on the items that it votes on, as the table of judges ranks them.

    One without a vote on either label is below all others.
    """
    of = [votes.votes[votes.labels == label] for label in (0, 1)]
    right = np.stack([(each == label).sum(axis=0) for label, each in enumerate(of)]).astype(float)
    cast = np.stack([(each != ABSTAIN).sum(axis=0) for each in of])
    rates = np.divide(right, cast, out=np.full(right.shape, -1.0), where=cast > 0)
    return int(np.argmax(np.where((cast > 0).all(axis=0), rates.mean(axis=0), -1.0)))


def chosen_judges(votes: VoteMatrix, random_state: int = 0) -> tuple[str, ...]:
    """Return the judges to keep, by leaving out parts of these rows alone; all where these are too few.

    They are the smallest panel on the way to one judge whose loss is not above the best one's beyond a 90 % interval.
    Of many judges several leave at a time. Two datasets are cut into folds of rows, as one is.
    """
    # Two datasets make two folds, and the least to tell judges apart are three: rows of both are cut instead.
    if len(votes.dataset_names) == 2:
        votes = votes.with_columns(datasets=np.full(len(votes.votes), "both", dtype=object))
    training = training_set(votes, RECIPES["deep"], random_state=random_state)
    if training.n_folds < MIN_FOLDS_FOR_CHOICE:
        return votes.voter_names
    panel = _fit_whole_panel(training)
    path = [(panel.judges, panel.losses())]
    while len(panel.judges) > 1:
        without = [float(panel.without(column).losses().mean()) for column in range(len(panel.judges))]
        # From the last column on, so that the numbers of the others still hold.
        for column in sorted(np.argsort(without)[: max(1, len(without) // DROP_ONE_IN)].tolist(), reverse=True):
            panel = panel.without(column)
        panel = panel.merged()
        path.append((panel.judges, panel.losses()))
    best = min((losses for _, losses in path), key=lambda losses: float(losses.mean()))
    # The rule of CART's pruning (Breiman et al. 1984): the smallest that cannot be told from the best.
    return next(judges for judges, losses in reversed(path) if mean_interval(losses - best, LEVEL)[1] <= 0)


@dataclass(frozen=True)
class OuterWorth(Measured):
    """A panel and its kept judges by the model that `fit` makes, on data that neither saw.

    Parameters
    ----------
    parts : int
        Datasets held out, each once as `deep loo` does, of more than 12 several together; of one folds of its rows.
    log_loss, balanced_accuracy : float
        Of all judges, mean over the parts.
    loss_increase, increase_ci : float, (float, float)
        Log loss of the judges kept, chosen anew without each part, less that of all, and its 90 % interval by t.
    accuracy_change, change_ci : float, (float, float)
        The same of balanced accuracy.
    gain, gain_ci : float, (float, float)
        Balanced accuracy of all less that of the best judge, chosen without each part.
    """

    parts: int
    log_loss: float
    balanced_accuracy: float
    loss_increase: float
    increase_ci: tuple[float, float]
    accuracy_change: float
    change_ci: tuple[float, float]
    gain: float
    gain_ci: tuple[float, float]


def outer_worth(
    votes: VoteMatrix, *, random_state: int = 0, step: Callable[[], None] = lambda: None
) -> OuterWorth | None:
    """Measure a panel, the judges that it would keep, and its best judge on data held out; None of too few.

    Parameters
    ----------
    votes : VoteMatrix
        Labeled.
    random_state : int, default=0
        Seed of the folds of rows that are held out, and of those on which judges are chosen.
    step : callable, optional
        Called after each of the parts.
    """
    result = []
    for train, tests in _outer_splits(votes, random_state):
        members = chosen_judges(train, random_state)
        every = _by_fit(train, tests, train.voter_names)
        few = every if members == train.voter_names else _by_fit(train, tests, members)
        best = _best_judge_column(train)
        for test, (*of_all, decided), (*of_few, _) in zip(tests, every, few, strict=True):
            # Both on the items that the judge votes on: a missing vote is no decision of it.
            has_vote, gain = test.votes[:, best] != ABSTAIN, np.nan
            if len({*test.labels[has_vote].tolist()}) == 2:
                own = balanced_accuracy(test.labels[has_vote], test.votes[has_vote, best])
                gain = balanced_accuracy(test.labels[has_vote], decided[has_vote]) - own
            result.append([*of_all, *of_few, gain])
            step()
    # One part has no spread, and so no interval.
    if len(result) < 2:
        return None
    loss, accuracy, loss_kept, accuracy_kept, gains = np.array(result).T
    rises = (
        loss_kept - loss,
        accuracy_kept - accuracy,
        gains[~np.isnan(gains)] if (~np.isnan(gains)).sum() > 1 else gains,
    )
    (rise, *rise_ci), (change, *change_ci), (gain, *gain_ci) = (mean_interval(each, LEVEL) for each in rises)
    rise_at, change_at, gain_at = ((low, high) for low, high in (rise_ci, change_ci, gain_ci))
    means = float(loss.mean()), float(accuracy.mean())
    return OuterWorth(len(result), *means, rise, rise_at, change, change_at, gain, gain_at)


def _outer_splits(votes: VoteMatrix, random_state: int) -> Iterator[tuple[VoteMatrix, list[VoteMatrix]]]:
    """Yield training rows and what is held out: datasets, each once, or folds of one, whole documents each."""
    names, codes = factorize(votes.datasets)
    if len(names) > 1:
        group = assign_folds(np.arange(len(names)), HELD_OUT_FOLDS)
        for number in range(int(group.max()) + 1):
            members = np.flatnonzero(group == number).tolist()
            besides = [names[code] for code in members]
            yield hold_out(votes, besides[0], besides=besides).train, [votes.rows(codes == code) for code in members]
        return
    # Whole documents, since items of one text are alike.
    names, codes = factorize(votes.item_ids if votes.document_ids is None else votes.document_ids)
    fold = (np.random.default_rng(random_state).permutation(len(names)) % N_FOLDS)[codes]
    for number in range(N_FOLDS):
        train, test = votes.rows(fold != number), votes.rows(fold == number)
        if len({*train.labels.tolist()}) == len({*test.labels.tolist()}) == 2:
            yield train, [test]


def _select_judges(votes: VoteMatrix, names: tuple[str, ...]) -> VoteMatrix:
    """Return the votes of some judges."""
    return votes.judges([votes.voter_names.index(name) for name in names])


def _by_fit(train: VoteMatrix, tests: Sequence[VoteMatrix], names: tuple[str, ...]) -> list[tuple[float, float, Mask]]:
    """Return log loss, balanced accuracy and decisions of the model that `fit` makes of some judges, by dataset."""
    model, result = fit(_select_judges(train, names)), []
    for test in tests:
        scores = model.scores_of(_select_judges(test, names))
        decided = scores.decisions
        result.append((log_loss(test.labels, scores.p_consistent), balanced_accuracy(test.labels, decided), decided))
    return result


def _panel_step(dropped: str | None, panel: "_FittedPanel", whole: Floats) -> PanelStep:
    """Return one step on the way from all judges to one, and its loss beside that of the whole panel."""
    losses = panel.losses()
    increase, low, high = mean_interval(losses - whole, LEVEL)
    return PanelStep(
        dropped=dropped,
        judges=panel.judges,
        log_loss=float(np.mean(losses)),
        balanced_accuracy=float(np.mean(panel.accuracies())),
        loss_increase=increase,
        increase_ci=(low, high),
    )


class _PanelRows:
    """Votes of judges as numbers, with a column of ones: of each pattern, and of the rows outside each fold."""

    def __init__(self, training: TrainingSet) -> None:
        self.training = training
        self.names = training.cells.voter_names
        self.patterns = _design(training.cells.patterns)
        in_fold = training.fold_of[None, :] == np.arange(training.n_folds)[:, None]
        # The rows of each pattern, fold and label, and their weight, 1 a fold and label: (n_patterns, n_folds, 2).
        self.counts: Floats = np.einsum("fg,pgl->pfl", in_fold.astype(float), training.cells.counts)
        # Each fold and label weighs the same: the loss is balanced, as in the search for chains.
        self.shares: Floats = self.counts / np.maximum(self.counts.sum(axis=0), 1)
        tables = (training.without_fold(fold) for fold in range(training.n_folds))
        self.tables = [(_design(votes), weights, weights * labels) for votes, labels, weights in tables]
        # The ensembler's own penalty, so that a panel here is the one that a chain would fit.
        self.penalty = np.diag(np.append(np.full(len(self.names), 1 / LogisticRegression().C), 0.0))


def _design(votes: Votes) -> Floats:
    # No vote is 0, between 1 and -1, as the ensembler has it; the last column is the intercept's.
    return np.column_stack([np.where(votes == ABSTAIN, 0.0, 2.0 * votes - 1.0), np.ones(len(votes))])


class _FittedPanel:
    """Logistic regressions of a panel's judges, one without each fold: a judge that adds nothing gets no weight.

    Parameters
    ----------
    rows : _PanelRows
        Of these judges and maybe others.
    columns : tuple of int
        The judges' columns.
    starts : sequence of ndarray of float, optional
        By fold, coefficients and intercept that are nearly right.
    """

    def __init__(self, rows: _PanelRows, columns: tuple[int, ...], starts: Sequence[Floats] | None = None) -> None:
        self._rows, self._columns = rows, columns
        self.judges = tuple(rows.names[column] for column in columns)
        self._terms = [*columns, -1]
        self._penalty = rows.penalty[np.ix_(self._terms, self._terms)]
        self._fits = [
            fit_logistic(
                design[:, self._terms],
                n,
                n1,
                centre=np.zeros(len(self._terms)),
                penalty=self._penalty,
                start=None if starts is None else starts[fold],
                slope=SLOPE_TOLERANCE,
            )
            for fold, (design, n, n1) in enumerate(rows.tables)
        ]
        self._left_out = expit(rows.patterns[:, self._terms] @ np.column_stack(self._fits))

    @cached_property
    def _inverses(self) -> list[Floats]:
        """Return the inverse of the curvature of each fit's loss."""
        result: list[Floats] = []
        for coef, (design, n, _) in zip(self._fits, self._rows.tables, strict=True):
            of_panel = design[:, self._terms]
            p = expit(of_panel @ coef)
            curvature: Floats = (of_panel.T * (n * p * (1 - p))) @ of_panel + self._penalty
            result.append(np.asarray(np.linalg.inv(curvature), dtype=np.float64))
        return result

    def without(self, position: int) -> "_FittedPanel":
        """Return the panel less one judge, fitted from where the curvature says that the others' weights move."""
        starts = [
            # With weight j held at 0 the minimum of the quadratic model moves by -w_j H^-1[j] / H^-1[j, j] (Lagrange).
            np.delete(fit - fit[position] / inverse[position, position] * inverse[position], position)
            for fit, inverse in zip(self._fits, self._inverses, strict=True)
        ]
        return _FittedPanel(self._rows, self._columns[:position] + self._columns[position + 1 :], starts)

    def merged(self) -> "_FittedPanel":
        """Return the same panel on rows that are merged where its judges' votes are equal."""
        rows = _PanelRows(self._rows.training.select(self._columns))
        return _FittedPanel(rows, tuple(range(len(self.judges))), self._fits)

    def losses(self) -> Floats:
        """Return the log loss on each fold of the fit without it, both classes weighing the same."""
        p, share = np.clip(self._left_out, P_MIN, 1 - P_MIN), self._rows.shares
        return np.asarray(-(share[..., 1] * np.log(p) + share[..., 0] * np.log1p(-p)).sum(axis=0) / 2)

    def accuracies(self) -> Floats:
        """Return the balanced accuracy on each fold of the fit without it."""
        decided, share = self._left_out >= DECISION_P, self._rows.shares
        return np.asarray((share[..., 1] * decided + share[..., 0] * ~decided).sum(axis=0) / 2)


def _fit_whole_panel(training: TrainingSet) -> _FittedPanel:
    rows = _PanelRows(training)
    return _FittedPanel(rows, tuple(range(len(rows.names))))
