"""One dataset that a model is used on: answers on its items, and labels of some of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

import deep.model
from deep import calibration, evaluate
from deep._util.checks import Floats, check_share
from deep._util.names import resolve_dataset
from deep.datasets import FILE_AS_WRITER, join_labels, read_labels, read_votes, read_writers, table_columns
from deep.exceptions import InputError
from deep.model import Model, Scores, join_score_tables, other_columns, row_in_order, scales_of_columns
from deep.records import ABSTAIN, VoteMatrix


@dataclass(frozen=True, eq=False)
class Target:
    """A dataset that a model is used on.

    Parameters
    ----------
    votes : VoteMatrix
        Of one dataset; -1 where no label is to be used.
    """

    votes: VoteMatrix

    @property
    def name(self) -> str:
        """Return the name of the dataset."""
        return self.votes.dataset_names[0]

    @property
    def n_labels(self) -> int:
        """Return the number of items with a label."""
        return int((self.votes.labels >= 0).sum())


def read_votes_for_model(model: Model, paths: Sequence[str], *, one_dataset: bool = False) -> VoteMatrix:
    """Read votes for a model; columns that cannot stand for one of its voters are left out.

    Raises
    ------
    InputError
        As :func:`deep.datasets.read_votes`, or there are several datasets where one is wanted.
    """
    scales = scales_of_columns(model.voters, table_columns(paths), model.scales)
    votes = read_votes(paths, ignore=other_columns(model.voters, list(paths)), scales=scales)
    if one_dataset and len(votes.dataset_names) > 1:
        raise InputError(f"`votes` must be of one dataset. Got {', '.join(votes.dataset_names)}. Give the rows of one.")
    return votes


def read_target(model: Model, votes: Sequence[str], labels: Sequence[str] = (), scores: Sequence[str] = ()) -> Target:
    """Read one dataset that a model is used on.

    Parameters
    ----------
    model : Model
        Its voters and soft scores say which columns are read.
    votes : sequence of str
        Tables of votes; of several datasets the one that the labels are of.
    labels : sequence of str, optional
        Tables of labels. Labels beside the votes are not used.
    scores : sequence of str, optional
        Tables of soft scores, where the model was fitted on some.

    Raises
    ------
    InputError
        A table cannot be used, or there is more than one dataset, or more than one with labels.
    """
    (result,) = read_targets(model, votes, labels, scores, one_dataset=True)
    return result


def read_targets(
    model: Model,
    votes: Sequence[str],
    labels: Sequence[str] = (),
    scores: Sequence[str] = (),
    *,
    one_dataset: bool = False,
) -> list[Target]:
    """Read the datasets that a model is used on; with labels the one that they are of, as in :func:`read_target`."""
    return targets_of(model, read_votes_for_model(model, votes, one_dataset=one_dataset and not labels), labels, scores)


def targets_of(model: Model, every: VoteMatrix, labels: Sequence[str] = (), scores: Sequence[str] = ()) -> list[Target]:
    """Return the datasets of votes that are in hand, otherwise as :func:`read_targets`."""
    every = join_score_tables(model, every, scores)
    if labels:
        table = read_labels(labels, every)
        every = join_labels(every, table)
        names = sorted(set(every.datasets[np.isin(every.datasets.astype(str), list(set(table.datasets)))]))
        if len(names) > 1:
            raise InputError(f"`labels` must be of one dataset. Got {', '.join(names)}. Give the labels of one.")
    else:
        # Labels beside the votes need not be a random sample, which all estimates here take labels for.
        names, every = list(every.dataset_names), replace(every, labels=np.full(len(every.labels), -1))
    rows = [every.datasets == name for name in names]
    return [Target(every.rows(own)) for own in rows]


def read_together(model: Model, votes: Sequence[str], labels: Sequence[str] = (), scores: Sequence[str] = ()) -> Target:
    """Read all items as one dataset, for systems that are compared; labels beside the votes are not used.

    Raises
    ------
    InputError
        A table cannot be used.
    """
    every = read_votes_for_model(model, votes)
    every = join_score_tables(model, every, scores)
    unlabeled = every.with_columns(labels=np.full(len(every.labels), -1))
    return Target(join_labels(every, read_labels(labels, every)) if labels else unlabeled)


def adapt_model(model: Model, target: Target, *, decide: str | None = None) -> tuple[Model, dict[str, object]]:
    """Return the model of one dataset, and a report on the change.

    Parameters
    ----------
    model : Model
        Of `deep fit`, and not of one dataset already.
    target : Target
        The whole dataset; its labels, where it has some, are of items drawn at random.
    decide : str, optional
        Another rule of decision, as in :meth:`deep.model.Model.deciding`; by its labels where there are some.

    Returns
    -------
    model : Model
    report : dict
        JSON values: the prior, the change of P, the correction by labels, and calibration errors on them before and
        after. The labels flatter the latter, for the correction was learned from them.

    Raises
    ------
    InputError
        The model is one of a dataset already.
    """
    votes = target.votes
    documents, labels = votes.document_ids, votes.labels
    fresh = model.adapted(votes, labels, documents=documents, target=target.name, decide=decide)
    streamed = model.score(votes, streamed=True)
    unlabeled, result = model.scores_of(votes), fresh.scores_of(votes)
    report: dict[str, object] = {
        "dataset": target.name,
        "n": len(votes.labels),
        "prior": asdict(fresh.prior),
        "p_mean": {
            "streamed": _mean_of_numbers(streamed),
            "unlabeled": _mean_of_numbers(unlabeled.p_consistent),
            "adapted": _mean_of_numbers(result.p_consistent),
        },
        "p_change": _mean_of_numbers(np.abs(result.p_consistent - streamed)),
        "interval_width": {"before": _mean_width(unlabeled.interval()), "after": _mean_width(result.interval())},
        "rule": fresh.rule.sentence(fresh.threshold()),
        "table": fresh.has_table,
        "correction": None,
    }
    if fresh.correction is not None:
        parts = ("intercept", "slope", "n_labels", "n_effective")
        prior = fresh.correction.prior.estimate  # as told without the labels
        report["correction"] = {"prior": prior, **{part: getattr(fresh.correction, part) for part in parts}}
        report["labels"] = _calibration_errors(votes, unlabeled.p_consistent, result.p_consistent)
    return fresh, report


def _mean_of_numbers(values: Floats) -> float:
    return float(values.mean())


def _mean_width(bounds: tuple[Floats, Floats]) -> float:
    return _mean_of_numbers(bounds[1] - bounds[0])


def _calibration_errors(votes: VoteMatrix, before: Floats, after: Floats) -> dict[str, object]:
    """Return calibration errors on the labels, before and after."""
    is_labeled, bins = votes.labels >= 0, calibration.DEFAULT_BINS
    y = votes.labels[is_labeled]
    result: dict[str, object] = {"n": len(y), "consistent": int(y.sum())}
    for name, p in (("before", before[is_labeled]), ("after", after[is_labeled])):
        result[f"ece_{name}"] = calibration.expected_calibration_error(y, p, n_bins=bins)
        result[f"ece_floor_{name}"] = calibration.ece_noise_floor(p, n_bins=bins).mean
        # Resamples make the band of the picture, which nobody sees here.
        result[f"miscalibration_{name}"] = calibration.CorpDisplay.from_predictions(y, p, n_resamples=1).miscalibration
    return result


# Where a share comes from, in words, and what limits it: each report of a share has one of these sentences.
TRAINING_LABELS_SOURCE = "from the labels that the model was trained on"
CROSS_FITTED_SOURCE = "the mean of cross-fitted P, corrected by its mean error on the training labels"
ONE_DOCUMENT_WARNING = "All labels are of one document: the intervals do not hold for items of others."
MOVED_SHARE_SOURCE = "the share at the fit plus the change in mean P"
LABELS_USED_TWICE_WARNING = (
    "No independent estimate: the model was trained on these labels. With new labels, fit it again with all of "
    "them, or use the model it was made from."
)


def share_report(
    model: Model, target: Target, *, of: str = "system", level: float = deep.model.LEVEL
) -> dict[str, object]:
    """Estimate the share of consistent items in a dataset.

    Parameters
    ----------
    model : Model
        Gives the items P.
    target : Target
        The whole dataset; labels, where there are some, of items or documents drawn at random. Where the model has
        learned from labels of this dataset they are not used.
    of, level
        As in :func:`deep.model.estimate_share`.

    Returns
    -------
    dict
        JSON values: by method (:func:`deep.model.estimate_share`), the best first, `estimate`, `low`, `high` and
        `how` in a sentence; `of`, `level`, and `note` where labels are not used.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, share_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> result = share_report(fit(votes.rows(~mine)), Target(votes.rows(mine)))
    >>> [share["method"] for share in result["shares"]]
    ['corrected model', 'prediction-powered', 'mean of the labels', 'Rogan-Gladen']
    """
    votes = target.votes
    result = model.scores_of(votes)
    # The model's P is nearer to labels that it was fitted on: the estimate would be too sure.
    twice = target.n_labels > 0 and target.name in labels_seen(model)
    documents = None if votes.document_ids is None else votes.document_ids[votes.labels >= 0]
    is_one_document = documents is not None and target.n_labels > 1 and len(np.unique(documents)) == 1
    deep.model.Belief.check_rule(model.prior_rule, votes.labels, votes.document_ids)
    shares = deep.model.estimate_share(
        result.p_consistent,
        None if twice else votes.labels,
        prior=result.share if twice or not target.n_labels else result.prior,
        documents=votes.document_ids,
        misfit=model.misfit,
        of=of,
        level=level,
    )
    how = deep.model.SHARE_METHODS | {"model": _share_words(model, result)}
    return {
        "dataset": target.name,
        "n": len(votes.labels),
        "labels": 0 if twice else target.n_labels,
        "of": of,
        "level": level,
        "note": LABELS_USED_TWICE_WARNING if twice else ONE_DOCUMENT_WARNING if is_one_document else None,
        "prior": asdict(result.share),
        "measured": bool(target.n_labels and not twice) or result.share.is_measured,
        "shares": [{**asdict(share), "how": how[share.method]} for share in shares],
    }


def _share_words(model: Model, scores: Scores) -> str:
    """Return where the share of a model without labels of these items comes from."""
    if scores.share != scores.prior:
        return MOVED_SHARE_SOURCE if scores.share.is_measured else "the share at the fit"
    if model.method == "own-labels":
        return CROSS_FITTED_SOURCE
    return deep.model.SHARE_METHODS["model"] if model.correction is None else TRAINING_LABELS_SOURCE


# From so many labels on, correcting P by them is worth more than testing it.
# On eleven datasets ECE falls from 8.9 without labels to 4.9 with 50, and to 4.2 with 100 (decision 11).
MIN_ECE_LABELS = 50


def canary_report(model: Model, target: Target, *, alpha: float = deep.model.SIGNIFICANCE) -> dict[str, object]:
    """Test whether the labels of a dataset agree with P as the model gives it there without them.

    Parameters
    ----------
    model : Model
        Gives the items P. Where it has learned from labels of this dataset, the advice says that only new ones test it.
    target : Target
        The whole dataset, of which items drawn at random have labels.
    alpha : float in (0, 1), default=0.05
        Share of datasets like the training datasets that are flagged by chance.

    Returns
    -------
    dict
        JSON values: those of :class:`deep.model.Canary`, the `prior`, whether the dataset is `flagged`, how many
        labels are needed to find a dataset like the training dataset on which P was furthest off (`labels_needed`,
        by power), the calibration error that these labels leave possible (`possible_error`, at 95 %), the labels needed
        to find one of 15 points, and whether they are `enough` to correct P with.

    Raises
    ------
    InputError
        There is no label, or `alpha` is not in (0, 1).

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import Target, canary_report
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> mine = votes.datasets == "aggrefact-xsum"
    >>> model = fit(votes.rows(~mine))
    >>> result = canary_report(model, Target(votes.rows(mine)))
    >>> result["n_labels"], result["flagged"] == (result["p_value"] < 0.05), result["enough"]
    (558, True, True)
    """
    check_share(alpha, "alpha")
    votes = target.votes
    # P by the votes and soft scores alone: the labels are held against it.
    result = model.scores_of(votes)
    test = deep.model.canary(result.p_consistent, votes.labels, documents=votes.document_ids, misfit=model.misfit)
    needed = deep.model.labels_needed(result.p_consistent, model.misfit)
    documents = None if votes.document_ids is None else len(np.unique(votes.document_ids[votes.labels >= 0]))
    return {
        "dataset": target.name,
        "n": len(votes.labels),
        "alpha": alpha,
        "flagged": test.p_value < alpha,
        **asdict(test),
        "documents": documents,
        "prior": asdict(result.share),
        "labels_needed": {str(power): size for power, size in needed.items()},
        "possible_error": deep.model.possible_error(result.p_consistent, votes.labels, documents=votes.document_ids),
        "labels_for_15_points": deep.model.labels_to_find(result.p_consistent, misfit=model.misfit),
        "enough": test.n_labels >= MIN_ECE_LABELS,
        "advice": list(_canary_advice(model, target.name, test, needed, flagged=test.p_value < alpha)),
    }


def labels_seen(model: Model) -> set[str]:
    """Find the datasets by whose labels a model was fitted or corrected.

    Parameters
    ----------
    model : Model
        It keeps the names of the datasets that it was fitted on, and of the one whose labels have corrected it.

    Returns
    -------
    set of str
        Their names; empty for a model of votes alone.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import labels_seen
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> sorted(labels_seen(fit(votes.rows(votes.datasets == "aggrefact-xsum"))))
    ['aggrefact-xsum']
    """
    # A dataset whose share was known had labels.
    training = model.fit_report["training_datasets"]
    assert isinstance(training, dict)  # as every fit writes it
    trained = {name for name, row in training.items() if row["prior"] is not None}
    corrected = {str(model.target)} if model.correction is not None else set()
    return trained | corrected


def _canary_advice(
    model: Model, name: str, test: deep.model.Canary, needed: Mapping[float, int | None], *, flagged: bool
) -> Iterator[str]:
    """Yield advice in sentences, first of all a warning of labels that the model has learned from."""
    if name in labels_seen(model):
        yield "The model was trained on labels of this dataset. Only new labels can test it."
    n = test.n_labels
    adapt = "`deep adapt`" if model.target is None else "`deep adapt` of the model that this one was made from"
    if flagged:
        yield "Do not use P or its interval on this dataset."
    else:
        result = [f"{size} for {100 * power:.0f} %" for power, size in needed.items() if size is not None]
        numbers = ", ".join(result) or "more labels than there are items"
        yield f"Labels needed to detect an error as large as the worst in training, by chance of success: {numbers}."
    if n >= MIN_ECE_LABELS:
        yield f"With {n} labels, correcting P helps more than a test: {adapt}."
    elif flagged:
        yield f"{adapt} corrects P by these labels; {MIN_ECE_LABELS} labels bring most of the gain (`deep label list`)."


def canary_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines on labels beside P, of the values of :func:`canary_report`."""
    verdict = "DISAGREE with the model" if report["flagged"] else "do not disagree with the model"
    documents = f" of {report['documents']} documents" if report["documents"] else ""
    yield f"{report['dataset']}: {report['n_labels']} labels{documents} {verdict}, p = {report['p_value']:.2g}"
    observed, expected = (evaluate.in_percent(report[name]) for name in ("observed", "expected"))
    yield (
        f"  {observed} % of them are consistent, {expected} % were "
        f"expected; log loss {report['loss']:.3f}, expected {report['expected_loss']:.3f}"
    )
    yield (f"  p: how often labels disagree this much if P is about right; labels DISAGREE below {report['alpha']:g}")
    possible, needed = evaluate.in_percent(report["possible_error"]), report["labels_for_15_points"]
    yield (
        f"  These labels leave a calibration error of up to {possible} points possible (95 %). It takes "
        f"{needed or 'more than these items or 1,000'} labels to find an error of 15 points in 8 of 10 cases."
    )
    yield from (f"  {line}" for line in report["advice"])


def item_row(votes: VoteMatrix, item: str, *, dataset: str | None = None) -> int:
    """Return the row of one item.

    Parameters
    ----------
    votes : VoteMatrix
        The table that the item is looked for in.
    item : str
        An example id.
    dataset : str, optional
        Its dataset, where several have an item of that id.

    Raises
    ------
    InputError
        There is no such item, or more than one.
    """
    mask = votes.item_ids == item
    if dataset is not None:
        mask &= votes.datasets == resolve_dataset(dataset, votes.dataset_names, param="dataset")
    rows = np.flatnonzero(mask)
    if len(rows) != 1:
        where = ", ".join(sorted(set(votes.datasets[rows]))) or "none"
        raise InputError(f"`item` must be the id of one item. Got {item!r}, of {len(rows)} (datasets: {where}).")
    return int(rows[0])


def model_and_answers_at(model: Model, votes: VoteMatrix, row: int, **matching: bool) -> tuple[Model, dict[str, float]]:
    """Return the model of the dataset of a row, whose P is that of a table of the dataset, and the answers of the row.

    Parameters
    ----------
    model : Model
        It is adapted to the dataset, without labels; a model of a dataset already (`target`) is returned as it is.
    votes : VoteMatrix
        Of the whole dataset.
    row : int
        Position of the row in `votes`.
    **matching : bool
        `allow_mismatch` and `allow_missing`, as in :meth:`deep.model.Model.score`.
    """
    matrix = model.select(votes, **matching)
    name = str(votes.datasets[row])
    # P of a row in a table is at the share and the means of its whole dataset, so the explained P has to be too.
    there = model if model.target is not None else model.adapted(matrix[votes.datasets == name], target=name)
    answers, scales = matrix[row].tolist(), model.scales
    numbers = [scales[name].number(at) for name, at in zip(scales, answers, strict=True)] if scales else answers
    return there, dict(zip(model.voter_names, numbers, strict=True))


def explanation(model: Model, votes: Mapping[str, float]) -> dict[str, object]:
    """Return P, its interval, P without any vote, and the contribution of each vote; the row is scored by itself.

    Parameters
    ----------
    model : Model
        P is at its prior; :func:`model_and_answers_at` returns the model whose prior is that of the dataset of a row.
    votes : mapping of str to number
        By voter, as it gives them; a voter that is not named has no vote.

    Returns
    -------
    dict
        JSON values; the vote of a grader is its grade, and None stands for no answer.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.evaluate import explanation
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[3], ensembler="LogisticRegression", calibrator="platt")
    >>> result = explanation(model, dict.fromkeys(model.voter_names, 1))
    >>> result["p_consistent"] > result["p_without_votes"], len(result["contributions"])
    (True, 3)
    """
    none = None if model.scales else ABSTAIN  # -1 may be a grade
    row, empty = (row_in_order(model.voters, model.scales, each)[np.newaxis] for each in (votes, {}))
    low, high = model.intervals(row, streamed=True)[0]
    return {
        "p_consistent": float(model.score(row, streamed=True)[0]),
        "p_low": float(low),
        "p_high": float(high),
        "p_without_votes": float(model.score(empty, streamed=True)[0]),
        "prior": asdict(model.prior),
        "contributions": [
            asdict(one) | {"vote": None if np.isnan(one.vote) or one.vote == none else one.vote}
            for one in model.explain(votes)
        ],
    }


def read_systems(paths: Sequence[str], target: Target, column: str) -> list[str]:
    """Read which system wrote each item of a target.

    Parameters
    ----------
    paths : sequence of str
        The tables that its votes are of.
    target : Target
        All items as one dataset (:func:`read_together`); the systems are returned in the order of its rows.
    column : str
        A column of theirs, or 'file': each table is a system, named after it.

    Raises
    ------
    InputError
        No table has the column, or an item has no system.
    """
    columns = table_columns(paths)
    if column not in (*columns, FILE_AS_WRITER):
        raise InputError(
            f"`compare` must be 'file' or a column of the votes. Got {column!r}, not in {columns[:9]}. Add the column "
            "to the table of votes, or give a table a system and `--compare file`."
        )
    systems = read_writers(paths, target.votes, column)
    if "" in systems:
        item = str(target.votes.item_ids[systems.index("")])
        raise InputError(f"`compare` must name the system of every item. Got none in {column!r} of {item!r}.")
    return systems
