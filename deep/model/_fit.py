"""One fit, from no label to many: the labels given decide how, unless a chain is asked for."""

# Python's help shows the names of types then, and not all that an `ArrayLike` may be.
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import numpy.typing as npt

from deep._util import checks
from deep._util.checks import AnyVotes, Texts, Votes, quote
from deep.datasets import LabelsGiven, VotesGiven, as_labels, as_votes
from deep.exceptions import InputError, warn
from deep.features import distinct_patterns
from deep.model import _regimes
from deep.model._average import MIN_ANSWER_DEVIATION, AnswerMap, LabeledRows
from deep.model._blend import Blend, Part, VoteSum
from deep.model._correction import Belief
from deep.model._misfit import Misfit
from deep.model._model import Model
from deep.model._prior import FixedPrior
from deep.model._regimes import SharedWork
from deep.model._scores import BALANCED_RULE, THRESHOLD_TOLERANCE
from deep.model._table import TRAINING_ROWS_KEY, row_fingerprints, select_columns
from deep.model._training import MapLike, has_rows_for_folds
from deep.model.options import ChainOptions, Weighting
from deep.records import VoteMatrix


def fit(
    votes: VotesGiven,
    labels: LabelsGiven | None = None,
    *,
    scores: npt.ArrayLike | None = None,
    score_names: Sequence[str] = (),
    target: str | None = None,
    recipe: str | None = None,
    weighting: Weighting | None = None,
    sizes: Sequence[int | str] | None = None,
    ensembler: str | Sequence[str] | None = None,
    calibrator: str | Sequence[str] | None = None,
    selector: str | None = None,
    share: Belief | str | None = None,
    decide: str | None = None,
    random_state: int = 0,
    provenance: Mapping[str, object] | None = None,
    run: MapLike = map,
) -> Model:
    """Learn how to turn votes into P(consistent), from whatever labels there are.

    No label: from the votes alone. Labels of one dataset, some of its rows or `target`: a few simple aggregators,
    compared on rows left out. One or two labeled datasets: an average in which nothing is chosen. Three or more:
    the stack. Labels of `target` beside other datasets: the model of the others, corrected by them. Where a recipe,
    sizes, an ensembler, a calibrator or a selector is given, the best chain among those asked for.

    Parameters
    ----------
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        Rows without a label teach something only where no dataset is fully labeled.
    labels : array-like, data frame or path, optional
        In place of those beside the votes, as :func:`deep.adapt` takes them.
    scores : array-like of shape (n_examples, n_scorers), optional
        Answers of some judges as grades or scores, in any unit, NaN where there is none; they take the place of those
        judges' votes. A table or matrix that holds them needs no others.
    score_names : sequence of str, optional
        Whose they are, one a column: of judges that have votes, or of others. Default "score 1", ...
    target : str, optional
        The user's own dataset, of which labels are a random sample.
    recipe : {'deep', 'paper'}, optional
        How a chain is chosen and fitted; to name one asks for a chain. Default of a chain: 'deep'.
    weighting : {'dataset', 'dataset-class', 'uniform'}, optional
        Default: the recipe's.
    sizes : sequence of int or 'all', optional
        Numbers of voters of a chain; one above the number of voters takes them all. Default: 3, 5, 9.
    ensembler : str or sequence of str, optional
        'Stack' or 'Average' alone, or keys of `ENSEMBLERS`.
    calibrator : str or sequence of str, optional
        Keys of `CALIBRATORS`, or 'none'. Default: all and 'none'; for recipe 'paper' Platt.
    selector : {'auto', 'mrmr', 'mrmr-selection', 'rfe'}, optional
        How the voters of a chain are chosen. Default: 'auto', for each size the better of mRMR and RFE.
    share : Belief or str, optional
        What the user believes of the share of consistent items of the target, or of datasets to come: ``"60-80%"``, as
        in :meth:`Model.believing`.
    decide : str, optional
        From which P on an item is called consistent: 'balanced' (default), 'accuracy', 'cost=FP:FN', or by labels
        'precision=SHARE' or 'recall=SHARE'; see :class:`deep.model.DecisionRule`.
    random_state : int, default=0
        Seed of all draws: folds of rows, forests and other fits that draw, halves of unlabeled votes.
    provenance : mapping, optional
        Goes into the model as given: `voters` by name, `licences` by dataset, and whatever else is known.
    run : callable, optional
        Like `map`; another one may spread the tasks over processes. The result does not depend on it.

    Returns
    -------
    Model

    Raises
    ------
    InputError
        There is no vote, a labeled dataset has one class only, a name is unknown, or nothing can be fitted.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> fit(votes).method, fit(votes.rows(votes.datasets == "aggrefact-xsum")).method
    ('stack', 'average')
    >>> fit(votes, sizes=[3], ensembler="LogisticRegression", calibrator="platt").voter_names
    ('prompt-1/gpt-4', 'prompt-2/gpt-4', 'prompt-4/gpt-4')
    """
    ensemblers = None if ensembler is None else checks.name_tuple(ensembler, "ensembler")
    calibrators = None if calibrator is None else checks.name_tuple(calibrator, "calibrator")
    matrix = as_votes(votes) if labels is None else as_labels(labels, as_votes(votes), votes)
    warn_of_label_copies(matrix)
    matrix = matrix if scores is None else matrix.with_answers(scores, score_names)
    options = ChainOptions(recipe, weighting, sizes, ensemblers, calibrators, selector)
    model = fit_with_options(
        matrix,
        options,
        SharedWork(run=run),
        target=target,
        share=share,
        decide=decide,
        random_state=random_state,
        provenance=provenance,
    )
    provenance_of_fit = cast("Mapping[str, object]", model.fit_report["provenance"])
    rows = row_fingerprints(matrix, select_columns(model.voters, matrix, model.scales))
    return replace(model, fit_report={**model.fit_report, "provenance": {**provenance_of_fit, TRAINING_ROWS_KEY: rows}})


def fit_with_options(
    votes: VoteMatrix,
    options: ChainOptions,
    work: SharedWork,
    *,
    target: str | None = None,
    share: Belief | str | None = None,
    decide: str | None = None,
    random_state: int = 0,
    provenance: Mapping[str, object] | None = None,
) -> Model:
    """Fit as :func:`fit`, beside other fits that share some of the work."""
    own, n = options.own, len(votes.labels)
    groups: Texts | None = None
    if work.groups is not None:
        group_names, position = checks.factorize(work.groups)
        groups = np.array(group_names, dtype=object)[position]
        checks.check_consistent_length(groups, n, "groups")
    checks.check_seed(random_state)
    checks.check_some_votes(votes.votes)
    work = replace(work, random_state=random_state, provenance=provenance or {})
    names, is_labeled = votes.dataset_names, votes.labels >= 0
    if target is not None and target not in names:
        raise InputError(f"`target` must be a dataset of the votes. Got {target!r}.")
    # Some labels of the only dataset can be no training data: they are taken for a sample of the user's own.
    if target is None and len(names) == 1 and is_labeled.any() and not is_labeled.all():
        target = names[0]

    _check_scale_directions(votes)

    # Without labels of other datasets there is nothing to transfer from.
    is_training = is_labeled & (votes.datasets != target if target is not None else True)
    if not is_training.any():
        if options.asked:
            raise InputError("`votes` must have labeled rows of other datasets for the options given. Got none.")
        return _fit_on_target_alone(votes, target, share, decide, work)

    # A copy of ten million rows would double the memory, so select only if something is left out.
    every = bool(is_training.all())
    training = votes if every else votes.rows(is_training)
    checks.check_both_classes(training.labels, training.datasets)
    checks.check_some_votes(training.votes)
    if groups is not None:
        groups = groups[is_training]
    if options.asked and own is None:
        model = _regimes.fit_chosen_chain(training, options, groups, work)
    else:
        groups = _regimes.training_groups(training, random_state=random_state) if groups is None else groups
        model = _regimes.fit_stack_or_average(training, groups, own, work)
    # Joined before labels of the target correct the model: after that a belief is refused.
    model = model.believing(share)
    if target is None:
        return _with_decision_rule(model, decide, model.cells.patterns)
    is_target = votes.datasets == target
    rows = votes.rows(is_target)
    return model.adapted(rows, rows.labels, documents=rows.document_ids, target=target, decide=decide)


# This and the two notes below warn of P that no label has confirmed.
RELATIVE_P_NOTE = "P without labels is relative; ten labels show its level."

NO_LABELS_NOTE = "No row is labeled: P comes from agreement alone, and its error is unknown."
FEW_LABELS_NOTE = "Too few labeled rows or documents of a class: P comes from agreement, corrected by the labels."


def fit_votes(votes: VoteMatrix, work: SharedWork) -> Model:
    """Learn from votes without labels, all datasets as one, and draw up the model."""
    from deep.model._unlabeled import MISFIT_VARIANCES, fit_unlabeled  # SciPy, which fits by labels do without

    answer_map = None if votes.answers is None else AnswerMap.fit(votes, labeled=False)
    shares: AnyVotes = votes.votes
    if votes.answers is not None and answer_map is not None:
        shares = (answer_map(votes.answers) + 1) / 2
    fitted = fit_unlabeled(
        shares,
        voter_names=votes.voter_names,
        groups=votes.document_ids,
        random_state=work.random_state,
        are_shares=answer_map is not None,
    )
    blend = Blend((Part(fitted.method, VoteSum(fitted.linear)),))
    # Cells are counted by label, and no label is known: all stand under 0.
    unlabeled = replace(votes, labels=np.zeros(len(votes.labels), dtype=np.int8))
    return _regimes.finish(
        blend,
        FixedPrior(replace(fitted.prior, warning=RELATIVE_P_NOTE)),
        Misfit(np.array([0.0, 1.0]), np.diag(MISFIT_VARIANCES), 0),
        _regimes.mean_contexts(blend, [LabeledRows.of(votes, None, answer_map)]),
        {},
        [],
        _regimes.training_cells(unlabeled),
        {"ensembler": "Votes", "found": fitted.method},
        method="votes",
        provenance=work.provenance,
        notes=[FEW_LABELS_NOTE if (votes.labels >= 0).any() else NO_LABELS_NOTE, *fitted.warnings],
        answer_map=answer_map,
    )


# Standard errors of a correlation below 0, from which on a scale is taken to be turned round.
# A judge of no use comes so far once in 30,000 panels.
TURNED_SCALE_Z_SCORE = -4.0

# Labeled rows, and without labels other judges, by which the direction of a scale is looked at.
MIN_ROWS_TO_DOUBT, MIN_OTHER_JUDGES = 30, 2


def _check_scale_directions(votes: VoteMatrix) -> None:
    """Raise where a scale, recognised by its values alone, is turned round: by labels, else by the other judges."""
    by_labels = bool((votes.labels >= 0).any())
    result: dict[int, tuple[float, float]] = {}
    for j, scale in enumerate(votes.scales or ()):
        if scale.declared or scale.binary or votes.answers is None:
            continue
        answers, rest = votes.answers[:, j], np.delete(votes.answers, j, axis=1)
        comparable = ~np.isnan(answers) & ((votes.labels >= 0) if by_labels else ~np.isnan(rest).all(axis=1))
        if comparable.sum() < MIN_ROWS_TO_DOUBT or (not by_labels and rest.shape[1] < MIN_OTHER_JUDGES):
            continue
        answers = answers[comparable]
        beside = votes.labels[comparable] if by_labels else np.nanmean(rest[comparable], axis=1)
        # A judge that says one thing has no correlation: dividing by its spread of 0 would give NaN.
        varies = min(np.ptp(answers), np.ptp(beside)) > MIN_ANSWER_DEVIATION
        r = float(np.corrcoef(answers, beside)[0, 1]) if varies else 0.0
        # Of unrelated answers r has a standard error of 1 / sqrt(n), so this is how many of them r lies from 0.
        result[j] = r * np.sqrt(len(answers)), r
    # One judge that is turned round pulls down those beside it: the one of the lowest correlation is asked about.
    worst = min(result, key=lambda j: result[j], default=None)
    if worst is not None and votes.scales is not None and result[worst][0] < TURNED_SCALE_Z_SCORE:
        what, scale = "label 0" if by_labels else "low answers of the others", votes.scales[worst]
        name, low, high = votes.voter_names[worst], f"{scale.low:g}", f"{scale.high:g}"
        raise InputError(
            f"`scale` must name the better end for {name!r}: its high answers go with {what} (correlation "
            f"{result[worst][1]:.2f}). If {high} is its worst answer, give `--scale {name}={high}-{low}`; if its best, "
            f"`--scale {name}={low}-{high}`."
        )


def _fit_on_target_alone(
    votes: VoteMatrix, target: str | None, share: Belief | str | None, decide: str | None, work: SharedWork
) -> Model:
    """Fit on the user's own votes, with some labels of them or none."""
    if target is None or not (votes.labels >= 0).any():
        model = fit_votes(votes, work).believing(share)
        return _with_decision_rule(model, decide, votes.votes, by_votes=True)
    rows = votes.rows(votes.datasets == target)
    # Fewer than five rows of a class leave a fold without one, and nothing could be compared on rows left out.
    if not has_rows_for_folds(rows):
        model = fit_votes(votes, work).believing(share)
        adapted = model.adapted(rows, rows.labels, documents=rows.document_ids, target=target, decide=decide)
        return _with_decision_rule(adapted, None, rows.votes, by_votes=True)
    model = _regimes.fit_own_labels(rows, work).believing(share)
    Belief.check_rule(model.prior_rule, rows.labels, rows.document_ids)
    return _with_decision_rule(model, decide, rows.votes)


def _with_decision_rule(model: Model, decide: str | None, votes: Votes, *, by_votes: bool = False) -> Model:
    """Return the model with the rule asked for; one half for balanced where that would decide against all votes.

    `by_votes`: hardly anything but votes tells what a vote means, so a row without a vote of 1 is not to be consistent.
    """
    model = model if decide is None else model.deciding(decide)
    # Votes of 1 and 0 alone say which side an item must fall on; a grade has no such side.
    if model.rule != BALANCED_RULE or model.score_names:
        return model
    patterns = distinct_patterns(votes)[0]
    scores = model.scores_of(patterns, streamed=True)
    ones, zeros = ((patterns == vote).any(axis=1) for vote in (1, 0))
    # The balanced threshold is the mean P, which is far below one half where almost all votes are 0: then a row of few
    # zeros is above it. And where all rows have one P, every row is at it, whatever its votes say.
    against = (ones != zeros) & (scores.decisions != ones)
    is_off = np.ptp(scores.p_uniform) < THRESHOLD_TOLERANCE or (by_votes and against.any())
    return model.deciding("accuracy") if is_off else model


# Rows from which on a voter that is always right is doubted to be one.
MIN_ROWS_FOR_COPY_WARNING = 30


def warn_of_label_copies(votes: VoteMatrix) -> None:
    """Warn of a voter that equals the label wherever there are both, on 30 rows or more."""
    for name, cells in zip(votes.voter_names, votes.votes.T, strict=True):
        both = (cells >= 0) & (votes.labels >= 0)
        n, ones = both.sum(), votes.labels[both].sum()
        # A judge that is right 9 times in 10 equals the label on 30 rows in 4 of 100 cases; a copied label always does.
        if n >= MIN_ROWS_FOR_COPY_WARNING and 0 < ones < n and (cells[both] == votes.labels[both]).all():
            warn(
                f"{quote(name)} equals the label on all {n:,} rows that have both. If it is the label and no judge, "
                f"leave it out with `--ignore {name}` (`ignore`)."
            )
