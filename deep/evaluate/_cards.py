"""The card of one judge: against people, against itself, and against the other judges."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
from scipy import special

from deep import calibration
from deep._util.checks import Floats, Labels, Mask, Votes, check_choice
from deep._util.names import format_dollars
from deep.datasets import VoterUsage
from deep.evaluate._contribution import PanelReport
from deep.evaluate._measured import DataTable, Measured, Row, TableCell, in_percent, json_value
from deep.features import agreement_interval, cohen_kappa, krippendorff_alpha
from deep.model import Clusters, standardised_errors
from deep.records import ABSTAIN, FAILURE_REASONS, UNASKED_REASONS, VoteMatrix

if TYPE_CHECKING:
    import pandas as pd

    from deep.evaluate._breakdowns import OwnFamily


Interval = tuple[float, float]

# On fewer its standard error, 1 / sqrt(n), is above 0.3.
MIN_JOINT_ERRORS = 10
"""The correlation of two judges' errors is shown where they err together on so many items."""


def clustered_share(hits: npt.ArrayLike, documents: npt.ArrayLike | None) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share of items, some of which share a document.

    Parameters
    ----------
    hits : array-like of bool, shape (n_items,)
        Which items count: the share is that of True.
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.

    Returns
    -------
    low, high : float
        NaN where there are no items.

    Notes
    -----
    The number of items is divided by Kish's design effect, from the intraclass correlation of the hits, and the
    quantile is Student's on as many degrees of freedom as there are documents less one [1]_.

    References
    ----------
    .. [1] Korn and Graubard, Survey Methodology 24, 1998: confidence intervals for proportions with small expected
       number of positive counts estimated from survey data.

    Examples
    --------
    >>> from deep.evaluate import clustered_share
    >>> hits = [True] * 60 + [False] * 20
    >>> [round(end, 2) for end in clustered_share(hits, None)]
    [0.64, 0.83]
    >>> [round(end, 2) for end in clustered_share(hits, [i // 10 for i in range(80)])]
    [0.35, 0.94]
    """
    hit = np.asarray(hits, dtype=np.float64)
    if not len(hit):
        return float("nan"), float("nan")
    share = hit.mean()
    clusters = Clusters.from_documents(documents, len(hit))
    errors = standardised_errors(hit, np.full(len(hit), share))
    n = len(hit) / (1.0 if clusters.alone else clusters.design_effect(clusters.correlation(errors)))
    freedom = max(len(clusters.sizes) - 1, 1)
    low, high = calibration.wilson_interval(np.array(share), np.array(n), float(special.stdtrit(freedom, 0.975)))
    return min(float(low), float(share)), max(float(high), float(share))  # at 0 and 1, rounding


@dataclass(frozen=True, kw_only=True)
class AgainstPeople(Measured):
    """The votes of one judge beside the labels of people, on the items that have both.

    Parameters
    ----------
    n : int
        Items with a label and a vote.
    n_without_vote : int
        Items with a label and no vote; they are in no other figure.
    true_positive, false_negative, false_positive, true_negative : int
        The confusion matrix; positive is consistent.
    base_rate : float
        Share of the labels that are 1. Kappa falls as it nears 0 or 1 though a judge errs no more often.
    agreement : float
        Share of votes that equal the label.
    kappa, alpha : float
        Cohen's and Krippendorff's; NaN where no two categories were used.
    kappa_ci : (float, float)
        95 % interval over resampled documents.
    tpr, tnr : float
        Share of consistent items voted 1, and of inconsistent ones voted 0; NaN where there are none.
    tpr_ci, tnr_ci : (float, float)
        95 % intervals (:func:`deep.evaluate.clustered_share`).
    balanced_accuracy : float
        The mean of `tpr` and `tnr`.
    leniency : float
        Share of its votes that are 1, less `base_rate`: above 0, it passes more than people do.
    """

    n: int
    n_without_vote: int
    true_positive: Annotated[int, TableCell("1 as 1", ",")]
    false_negative: Annotated[int, TableCell("1 as 0", ",")]
    false_positive: Annotated[int, TableCell("0 as 1", ",")]
    true_negative: Annotated[int, TableCell("0 as 0", ",")]
    base_rate: Annotated[float, TableCell("base rate, %", ".1%")]
    agreement: float
    kappa: Annotated[float, TableCell("kappa")]
    kappa_ci: Annotated[Interval, TableCell("kappa, 95 %", ".2f")]
    alpha: Annotated[float, TableCell("alpha")]
    tpr: Annotated[float, TableCell("TPR, %", ".1%")]
    tpr_ci: Annotated[Interval, TableCell("TPR, 95 %", ".1%")]
    tnr: Annotated[float, TableCell("TNR, %", ".1%")]
    tnr_ci: Annotated[Interval, TableCell("TNR, 95 %", ".1%")]
    balanced_accuracy: float
    leniency: Annotated[float, TableCell("leniency, points", "+.1%")]


@dataclass(frozen=True, kw_only=True)
class AgainstItself(Measured):
    """The voting of one judge alone, without a label.

    Parameters
    ----------
    n : int
        Items.
    coverage : float
        Share of them with a vote.
    polarity : float
        Share of 1 among its votes.
    reasons : dict of str to int
        Items without a vote by reason: only `abstained` is the judge's own will; `unknown` where no file says why.
    failure_rate : float
        Share of items without a usable answer, abstentions not counted.
    n_repaired : int
        Items whose vote a repair turn gave.
    n_sampled : int
        Items that were asked more than once.
    consistency : float
        Share of pairs of samples of one item that agree; NaN where nothing was asked twice.
    consistency_alpha : float
        Krippendorff's alpha of the samples: the same beyond chance.
    unanimous : float
        Share of sampled items whose samples all agree.
    ties : int
        Sampled items with as many samples for 1 as for 0.
    """

    n: int
    coverage: Annotated[float, TableCell("coverage, %", ".1%")]
    polarity: Annotated[float, TableCell("says 1, %", ".1%")]
    reasons: Mapping[str, int]
    failure_rate: Annotated[float, TableCell("fails, %", ".1%")]
    n_repaired: int
    n_sampled: Annotated[int, TableCell("sampled twice", ",")]
    consistency: Annotated[float, TableCell("consistency, %", ".1%")]
    consistency_alpha: float
    unanimous: float
    ties: Annotated[int, TableCell("ties", ",")]

    def cells(self) -> dict[str, str]:
        """Return the row of a table, at its end why there is no vote."""
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.reasons.items()) or "none"
        return super().cells() | {
            "without a vote": why + (f"; {self.n_repaired} repaired" if self.n_repaired else ""),
        }


@dataclass(frozen=True, kw_only=True)
class AgainstOthers(Measured):
    """The worth and the cost of one judge beside the others of its panel.

    Parameters
    ----------
    error_correlation : float
        Mean correlation of its errors with those of the others; NaN without labels or others.
    adds, adds_ci : float, (float, float)
        How much log loss rises where it alone is dropped from the panel, over datasets left out, and its 90 %
        interval; NaN where that cannot be measured.
    kept : bool or None
        Whether it is one of those to keep; None where that cannot be measured.
    votes_without : float
        The effective votes of the panel without it.
    second_sample : float
        The effective votes that a second sample of it adds; NaN where it was not sampled twice on labeled items.
    cost_per_1000 : float or None
        US dollars for 1,000 items; None where a price is unknown.
    seconds_per_1000, tokens_per_1000 : float or None
        For 1,000 items, from the judgments beside the votes; None where these do not tell.
    """

    error_correlation: Annotated[float, TableCell("error correlation")]
    adds: Annotated[float, TableCell("adds", "+z.4f")]
    adds_ci: Annotated[Interval, TableCell("adds, 90 %", "+.4f")]
    kept: bool | None
    votes_without: Annotated[float, TableCell("votes without it")]
    second_sample: Annotated[float, TableCell("2nd sample", "+z.2f")]
    cost_per_1000: Annotated[float | None, TableCell("$ per 1,000", format_dollars)]
    seconds_per_1000: Annotated[float | None, TableCell("seconds per 1,000", ",.1f")]
    tokens_per_1000: Annotated[float | None, TableCell("tokens per 1,000", ",.0f")]


@dataclass(frozen=True, kw_only=True)
class JudgeCard(Measured):
    """The card of one judge.

    Parameters
    ----------
    judge : str
        Its column in the table of votes.
    people : AgainstPeople or None
        None where no item has both a label and a vote.
    itself : AgainstItself
        Without a label: how often it votes and says 1, and how far its answers to a question asked again agree.
    others : AgainstOthers
        Its worth and its cost beside the rest of the panel.
    by_dataset : dict of str to AgainstPeople
        The same on each dataset alone: figures over all datasets also hold what these differ by.
    by_person : dict of str to float
        Cohen's kappa with each person, where there are several.
    n_disagreements : int
        Votes that are not the label.
    disagreements : tuple of dict
        The worst of them first: `dataset`, `item_id`, `vote`, `label`, `severity`, and what it is the product of:
        `people` (margin among people), `certainty` (margin among the judge's own samples) and `others` (share of the
        other judges' votes that are with the people), each 1 where there is but one.
    """

    judge: str
    people: AgainstPeople | None
    itself: AgainstItself
    others: AgainstOthers
    by_dataset: Mapping[str, AgainstPeople]
    by_person: Mapping[str, float]
    n_disagreements: int
    disagreements: tuple[Row, ...]


def against_people(votes: VoteMatrix, column: int, *, n_boot: int, random_state: int) -> AgainstPeople | None:
    """Compare the votes of one judge with labels; None where no item has both."""
    own, labels = votes.votes[:, column], votes.labels
    both = (own >= 0) & (labels >= 0)
    if not both.any():
        return None
    vote, label = own[both], labels[both]
    groups = None if votes.document_ids is None else votes.document_ids[both]
    tn, fp, fn, tp = (int(n) for n in np.bincount(2 * label.astype(int) + vote, minlength=4))
    ratings = np.column_stack([vote, label])
    one, zero = label == 1, label == 0
    tpr, tnr = _ratio(tp, tp + fn), _ratio(tn, tn + fp)
    return AgainstPeople(
        n=len(vote),
        n_without_vote=int(((own < 0) & (labels >= 0)).sum()),
        true_positive=tp,
        false_negative=fn,
        false_positive=fp,
        true_negative=tn,
        base_rate=float(label.mean()),
        agreement=(tp + tn) / len(vote),
        kappa=cohen_kappa(ratings),
        kappa_ci=agreement_interval(cohen_kappa, ratings, documents=groups, n_boot=n_boot, random_state=random_state),
        alpha=krippendorff_alpha(ratings),
        tpr=tpr,
        tpr_ci=clustered_share(vote[one] == 1, groups if groups is None else groups[one]),
        tnr=tnr,
        tnr_ci=clustered_share(vote[zero] == 0, groups if groups is None else groups[zero]),
        balanced_accuracy=(tpr + tnr) / 2,
        leniency=float(vote.mean() - label.mean()),
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def against_itself(votes: Labels, reasons: Mapping[str, int], usage: VoterUsage | None) -> AgainstItself:
    """Describe the votes of one judge, and how far its repeated samples agree."""
    n, cast = len(votes), votes[votes >= 0]
    unexplained = n - len(cast) - sum(reasons.values())
    samples = np.empty((0, 2), dtype=np.int8) if usage is None or not len(usage.samples) else usage.samples
    ones, zeros = (samples == 1).sum(axis=1), (samples == 0).sum(axis=1)
    # Pairs of samples, so that items asked three times and twice can be added up.
    size = ones + zeros
    pairs = size * (size - 1) / 2
    agreeing = (ones * (ones - 1) + zeros * (zeros - 1)) / 2
    several = size > 1
    return AgainstItself(
        n=n,
        coverage=_ratio(len(cast), n),
        polarity=float(cast.mean()) if len(cast) else float("nan"),
        reasons={**dict(sorted(reasons.items())), **({"unknown": unexplained} if unexplained > 0 else {})},
        failure_rate=_ratio(
            sum(reasons.get(reason, 0) for reason in FAILURE_REASONS),
            n - sum(reasons.get(reason, 0) for reason in UNASKED_REASONS),
        ),
        n_repaired=0 if usage is None else usage.n_repaired,
        n_sampled=len(samples),
        consistency=_ratio(float(agreeing.sum()), float(pairs.sum())),
        consistency_alpha=krippendorff_alpha(samples.astype(np.int64)) if len(samples) else float("nan"),
        unanimous=_ratio(int(((ones == 0) | (zeros == 0))[several].sum()), int(several.sum())),
        ties=int(((ones == zeros) & several).sum()),
    )


def wrong_vote_mask(votes: VoteMatrix, column: int) -> Mask:
    """Return where a judge votes and the label is another."""
    own = votes.votes[:, column]
    return np.asarray((own >= 0) & (votes.labels >= 0) & (own != votes.labels))


def disagreements(votes: VoteMatrix, column: int, people: Votes | None, usage: VoterUsage | None) -> Iterator[Row]:
    """Yield the votes of one judge that are not the label, the worst first; see :class:`JudgeCard`."""
    own, labels = votes.votes[:, column], votes.labels
    wrong = np.flatnonzero(wrong_vote_mask(votes, column))
    margin = _rating_margin(labels[:, None] if people is None else people)[wrong]
    certainty = np.ones(len(own))
    if usage is not None and len(usage.samples):
        certainty[usage.sample_rows] = _rating_margin(usage.samples)
    rest = np.delete(votes.votes, column, axis=1)[wrong]
    against = (rest == labels[wrong, None]).sum(axis=1)
    n_votes = (rest != ABSTAIN).sum(axis=1)
    others = np.where(n_votes > 0, against / np.maximum(n_votes, 1), 1.0)
    # A product: a vote that people, its own samples or the other judges leave open is no clear mistake.
    severity = margin * certainty[wrong] * others
    for i in np.argsort(-severity, kind="stable"):
        row = wrong[i]
        yield {
            "dataset": str(votes.datasets[row]),
            "item_id": str(votes.item_ids[row]),
            "vote": int(own[row]),
            "label": int(labels[row]),
            "severity": float(severity[i]),
            "people": float(margin[i]),
            "certainty": float(certainty[row]),
            "others": float(others[i]),
        }


def _rating_margin(ratings: Votes) -> Floats:
    """Return the difference between the shares of 1 and of 0 among the ratings of each row."""
    ones, zeros = (ratings == 1).sum(axis=1), (ratings == 0).sum(axis=1)
    return np.asarray(np.abs(ones - zeros) / np.maximum(ones + zeros, 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class PanelCard(Measured):
    """Everything that votes, labels and the files beside them say of a panel of judges.

    Made by :func:`panel_card` and :func:`read_panel_card`; read by ``deep panel``, and by the report as a chapter.

    Parameters
    ----------
    n : int
        Items.
    datasets : tuple of str
        Names of all datasets of the votes, sorted.
    n_documents : int or None
        Documents that intervals are clustered by; None where no item has one, and each counts by itself.
    n_labeled : int
        Items with a label: of several people, that of most of them.
    n_tied : int
        Items on which people are tied; they are in no comparison with labels.
    n_replaced : int
        Labels beside the votes that differ from those of the people, which stand in their place.
    n_unmatched : int
        Rows of people's labels about items that have no votes.
    people : tuple of str
        Those who labeled; empty where the labels lie beside the votes.
    people_agreement : tuple of dict
        `name`, `items`, `value`, `low`, `high`: Cohen's kappa of each pair of people, Fleiss' kappa, Krippendorff's
        alpha. Empty where each item has one label: how far people agree cannot be told then.
    judges : tuple of JudgeCard
        In the order of the votes.
    between : ndarray of float, shape (n_judges, n_judges)
        Cohen's kappa of each two judges; needs no label.
    constant : tuple of str
        Sentences on judges that say the same of every item (:func:`constant_words`).
    levels : tuple of dict
        Of judges that give grades or scores, by level: `judge`, `scale`, `answer`, `items`, `labeled`, `consistent`
        (share of those labeled), `low`, `high` (95 %). All other figures are of votes cut at the middle of the scale.
    rank_agreement : ndarray of float, shape (n_judges, n_judges), or None
        Spearman's correlation of the answers of each two judges; None where all vote.
    error_correlation : ndarray of float, shape (n_judges, n_judges), or None
        None without labels; datasets x classes weigh the same.
    joint_errors : ndarray of int, shape (n_judges, n_judges), or None
        Items on which both err: below :data:`MIN_JOINT_ERRORS` their correlation says next to nothing.
    effective_votes : float
        NaN without labels.
    cost_per_1000 : float or None
        US dollars for 1,000 items by all judges; None where a price is unknown.
    effective_votes_a_dollar : float
        `effective_votes` on as many items as a dollar pays for. NaN where one of the two is unknown, or nothing was
        paid.
    worth : PanelReport or None
        Of the panel against its best judge, over datasets left out.
    worth_missing : str
        Why `worth` is None, in a sentence; empty where it is not.
    drop_first : str or None
        The judge without which the panel has the most effective votes a dollar (or most effective votes, where a price
        is unknown); None where each is better kept, or that cannot be measured.
    sample_twice : str or None
        The judge whose second sample adds most effective votes a dollar (or most, where a price is unknown); None where
        none adds any, or no judge was sampled twice on labeled items.
    own_family : tuple of OwnFamily
        Of each judge whose family of LLMs wrote some of the items; empty where nobody says who wrote them.
    by_writer : DataTable or None
        How often each judge says 1 of the texts of each LLM.
    doubtful_labels : tuple of dict
        Labels that most judges are against, the most of them first: `dataset`, `item_id`, `label`, `against`,
        `votes`. A wrong label looks like this, and so does an item that all judges misread.
    """

    n: int
    datasets: tuple[str, ...]
    n_documents: int | None
    n_labeled: int
    n_tied: int
    n_replaced: int
    n_unmatched: int
    people: tuple[str, ...]
    people_agreement: tuple[Row, ...]
    judges: tuple[JudgeCard, ...]
    between: Floats
    constant: tuple[str, ...]
    levels: tuple[Row, ...]
    rank_agreement: Floats | None
    error_correlation: Floats | None
    joint_errors: npt.NDArray[np.int64] | None
    effective_votes: float
    cost_per_1000: float | None
    effective_votes_a_dollar: float
    worth: PanelReport | None
    worth_missing: str
    drop_first: str | None
    sample_twice: str | None
    own_family: "tuple[OwnFamily, ...]"
    by_writer: DataTable | None
    doubtful_labels: tuple[Row, ...]

    @property
    def agreement(self) -> float:
        """Return the mean of `between` over the pairs of judges that have one; NaN without any."""
        result = [kappa for kappa in self.between[np.tril_indices(len(self.between), -1)] if kappa == kappa]
        return float(np.mean(result)) if result else float("nan")

    @property
    def coin(self) -> str:
        """Return the sentence that no judge is clearly better than a coin on the labels; empty where one is."""
        people = [each.people for each in self.judges if each.people and each.people.balanced_accuracy >= 0]  # not NaN
        # At a kappa of 0 balanced accuracy is one half.
        if not people or any(one.kappa_ci[0] > 0 for one in people):
            return ""
        best = in_percent(max(one.balanced_accuracy for one in people))
        return f"No judge is clearly better than a coin on these labels (best balanced accuracy: {best} %)."

    def as_dict(self) -> Row:
        """Return JSON values; those of `worth` stand beside the others, null for NaN."""
        values = super().as_dict()
        values |= {"cards": values["judges"], "judges": [card.judge for card in self.judges]}
        values |= {"agreement": json_value(self.agreement), "worth_missing": self.worth_missing or None}
        graded = () if self.rank_agreement is not None else ("levels", "rank_agreement")
        left_out = {"by_writer", "worth", *graded}
        return {name: value for name, value in values.items() if name not in left_out} | (values["worth"] or {})

    def frame(self, part: str = "judges") -> "pd.DataFrame":
        """Return one part of the card as a table.

        Parameters
        ----------
        part : str
            ``judges`` (a row a judge: every figure), ``people`` (their agreement), ``by_dataset``, ``by_person``,
            ``own_family``, ``reasons``, ``disagreements``, ``between``, ``error_correlation``, ``levels``,
            ``rank_agreement``, ``steps`` (judges dropped one after the other) or ``doubtful_labels``.

        Raises
        ------
        InputError
            There is no such part.
        """
        import pandas as pd

        check_choice(part, sorted(FRAME_PARTS), "part")
        return pd.DataFrame(FRAME_PARTS[part](self))


def _judge_rows(card: PanelCard) -> list[Row]:
    """Return a row for each judge: all single figures of its card."""
    return [
        {
            "judge": each.judge,
            **({} if each.people is None else asdict(each.people)),
            **{name: value for name, value in asdict(each.itself).items() if name not in ("n", "reasons")},
            **asdict(each.others),
            "n_disagreements": each.n_disagreements,
        }
        for each in card.judges
    ]


def _matrix_rows(values: Floats | None, card: PanelCard) -> list[Row]:
    names = [each.judge for each in card.judges]
    rows = [] if values is None else zip(names, values, strict=True)
    return [{"judge": name, **dict(zip(names, row, strict=True))} for name, row in rows]


def _judge_entries(
    card: PanelCard, name: str, of: Callable[[JudgeCard], Mapping[str, Any]], row: Callable[[Any], Row]
) -> list[Row]:
    """Return a row for each entry of each judge, under what it stands for."""
    return [{"judge": one.judge, name: key, **row(value)} for one in card.judges for key, value in of(one).items()]


# The rows of each part of a card that `PanelCard.frame` can return, by its name.
FRAME_PARTS: Mapping[str, Callable[[PanelCard], list[Row]]] = {
    "between": lambda card: _matrix_rows(card.between, card),
    "by_dataset": lambda card: _judge_entries(card, "dataset", lambda one: one.by_dataset, asdict),
    "by_person": lambda card: _judge_entries(card, "person", lambda one: one.by_person, lambda kappa: {"kappa": kappa}),
    "disagreements": lambda card: [{"judge": each.judge, **row} for each in card.judges for row in each.disagreements],
    "doubtful_labels": lambda card: list(card.doubtful_labels),
    "error_correlation": lambda card: _matrix_rows(card.error_correlation, card),
    "judges": _judge_rows,
    "levels": lambda card: list(card.levels),
    "own_family": lambda card: [asdict(each) for each in card.own_family],
    "people": lambda card: list(card.people_agreement),
    "rank_agreement": lambda card: _matrix_rows(card.rank_agreement, card),
    "reasons": lambda card: _judge_entries(card, "reason", lambda one: one.itself.reasons, lambda n: {"items": n}),
    "steps": lambda card: [] if card.worth is None else [step.row() for step in card.worth.steps],
}


def ranked(judges: Sequence[JudgeCard]) -> list[JudgeCard]:
    """Return judges by their balanced accuracy on the labeled items that they vote on, the best first."""
    accuracy = {each.judge: np.nan if each.people is None else each.people.balanced_accuracy for each in judges}
    return sorted(judges, key=lambda each: -np.nan_to_num(accuracy[each.judge], nan=-1.0))
