"""The verdict on judged claims: how many are suspect, whether P can be trusted on them, and what to do next."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from textwrap import shorten
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Texts
from deep._util.names import short_names
from deep.evaluate._measured import Row, in_percent, mean_interval

if TYPE_CHECKING:
    import pyarrow as pa

    from deep.model import PriorEstimate

N_LOWEST_ITEMS = 5
"""The number of items with the lowest P that a verdict names."""

# The most characters of a claim in a list.
# With its indentation a claim fits on one line of 80 columns.
MAX_CLAIM_CHARACTERS = 70

# The log loss of a P of one half for every item: ln 2.
COIN_LOG_LOSS = float(np.log(2))

# The ECE that calibration may add before it is said to have made P worse. Without it a rise by chance would be told.
# Chosen; no measurement is known.
MAX_ECE_RISE = 0.01

# The ECE beyond what chance explains from which on P is said not to hold. Below it P is warned of. Chosen; no
# measurement is known.
MAX_ECE_EXCESS = 0.05

# P of two items that differ by less are one P: sums of the same votes may differ in their last digits.
P_TOLERANCE = 1e-9

NO_JUDGE_DISTINGUISHES = (
    "No judge can tell these claims apart, so all have the same P. Labels show only their share. Add other judges."
)

# The states of an item, in the order of tables and pictures.
STATES = ("consistent", "inconsistent", "undecided")

# The sentences of a verdict that a study keeps.
STUDY_SENTENCES = ("judged", "suspect", "trust", "then", "command", "picture")


@dataclass(frozen=True)
class LowestItem:
    """One of the items to look at first, or last.

    Parameters
    ----------
    dataset, item_id : str
        The dataset of the item, and its id in it.
    p, low, high : float
        P(consistent) and its 90 % interval.
    state : {'consistent', 'inconsistent', 'undecided'}
        By P, its interval and the threshold.
    """

    dataset: str
    item_id: str
    p: float
    low: float
    high: float
    state: str


def state_words(*, decided: bool | None, sure: bool) -> str:
    """Return the state of an item in words; decided None where no judge voted.

    Examples
    --------
    >>> from deep.evaluate import state_words
    >>> state_words(decided=False, sure=True), state_words(decided=False, sure=False)
    ('inconsistent', 'undecided, leaning inconsistent')
    """
    if decided is None:
        return "no judge voted"
    name = STATES[not decided]
    return name if sure else f"undecided, leaning {name}"


@dataclass
class DecisionCounts:
    """Counts of the decisions on items, and those with the lowest P; items can be added a piece at a time.

    Parameters
    ----------
    n, consistent, inconsistent, undecided, unvoted : int
        Items; of them surely consistent, surely inconsistent, undecided (as :func:`deep.model.sure_mask` has it),
        and without any vote: these four make up `n`.
    leaning : int
        Of the undecided, those that lean inconsistent.
    lowest : list of LowestItem
        Lowest P first.
    most : int
        Length of `lowest`.
    highest : list of LowestItem
        Those with the highest P.
    wrongly : list of float
        How many of the `inconsistent` and of the `consistent` are wrong by their P.
    """

    n: int = 0
    consistent: int = 0
    inconsistent: int = 0
    undecided: int = 0
    unvoted: int = 0
    leaning: int = 0
    lowest: list[LowestItem] = field(default_factory=list)
    most: int = N_LOWEST_ITEMS
    highest: list[LowestItem] = field(default_factory=list)
    wrongly: list[float] = field(default_factory=lambda: [0.0, 0.0])

    @property
    def alike(self) -> bool:
        """Whether several items have votes, and all of them one P: then no judge tells one from another."""
        return bool(self.lowest) and self.n - self.unvoted > 1 and self.highest[0].p - self.lowest[0].p < P_TOLERANCE

    @property
    def common_p(self) -> float | None:
        """The P of all items between the lowest and the highest, which are then neither; None where it differs."""
        is_common = self.n - self.unvoted >= 2 * self.most and self.lowest[-1].p == self.highest[-1].p
        return self.lowest[-1].p if is_common else None

    def add(
        self,
        datasets: "Texts | pa.ChunkedArray",
        ids: "Texts | pa.ChunkedArray",
        columns: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Count items, by columns of :data:`deep.model.SCORE_COLUMNS`; those without a vote are decided by nobody."""
        p, called, has_votes = columns["p_consistent"], columns["decision"] == 1, columns["n_votes"] > 0
        is_sure = columns["sure"] == 1
        self.n += len(p)
        self.consistent += int((has_votes & is_sure & called).sum())
        self.inconsistent += int((has_votes & is_sure & ~called).sum())
        self.wrongly[0] += float(p[has_votes & is_sure & ~called].sum())
        self.wrongly[1] += float((1 - p)[has_votes & is_sure & called].sum())
        self.undecided += int((has_votes & ~is_sure).sum())
        self.leaning += int((has_votes & ~is_sure & ~called).sum())
        self.unvoted += int((~has_votes).sum())
        rows = np.flatnonzero(has_votes)
        for items, sign in ((self.lowest, 1), (self.highest, -1)):
            for row in rows[np.argsort(sign * p[rows], kind="stable")[: self.most]].tolist():
                at, low, high = (float(columns[name][row]) for name in ("p_consistent", "p_low", "p_high"))
                state = STATES[not called[row]] if is_sure[row] else STATES[2]
                items.append(LowestItem(str(datasets[row]), str(ids[row]), at, low, high, state))
            # Only so many are ever held, so that a file of any length can be counted a piece at a time.
            items.sort(key=lambda item, sign=sign: sign * item.p)  # type: ignore[misc]
            del items[self.most :]

    def add_table(self, scores: "pa.Table") -> None:
        """Count the rows of a table of scores."""
        names = ("p_consistent", "p_low", "p_high", "sure", "n_votes")
        columns = {name: scores[name].to_numpy() for name in names}
        columns["decision"] = scores["decision"].fill_null(0).to_numpy()
        self.add(scores["dataset"], scores["item_id"], columns)

    def as_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return asdict(self)

    def count_lines(self) -> Iterator[str]:
        r"""Yield a line for each decision, with the number of its items.

        Examples
        --------
        >>> from deep.evaluate import DecisionCounts
        >>> counts = DecisionCounts(n=60, consistent=5, inconsistent=17, undecided=38, leaning=20, wrongly=[4.1, 1.0])
        >>> print("\n".join(counts.count_lines()))
            17 inconsistent: P expects 4 of them to be wrong
             5 consistent: P expects 1 of them to be wrong
            38 undecided: 20 lean inconsistent, 18 consistent
        """
        for count, name, wrong in zip((self.inconsistent, self.consistent), ("in", ""), self.wrongly, strict=True):
            yield f"{count:>6,} {name}consistent" + (f": P expects {wrong:,.0f} of them to be wrong" if count else "")
        lean = f": {self.leaning:,} lean inconsistent, {self.undecided - self.leaning:,} consistent"
        yield f"{self.undecided:>6,} undecided{lean if self.undecided else ''}"
        if self.unvoted:
            yield f"{self.unvoted:>6,} without a vote"

    def lines(self, claims: Mapping[tuple[str, str], str] = MappingProxyType({})) -> Iterator[str]:
        """Yield a line for each of the items with the lowest P; where none is sure, those with the highest too.

        Parameters
        ----------
        claims : mapping of (str, str) to str, optional
            By dataset and id the text of an item, which stands below its line.
        """
        if self.alike:
            return
        sure, rest, common = self.consistent + self.inconsistent, self.n - self.unvoted, self.common_p
        for name, items in (("lowest", self.lowest), ("highest", [] if sure else self.highest)):
            apart = [item for item in items if item.p != common]
            rest -= len(apart)
            if apart:
                yield f"The {name} P, in percent with its 90 % interval:"
            for item in apart:
                interval = "" if np.isnan(item.low) else f" ({chance(item.low)} to {chance(item.high)})"
                yield f"  {chance(item.p):>5}{interval}  {item.state:<12}  {item.item_id} of {item.dataset}"
                claim = claims.get((item.dataset, item.item_id))
                if claim:
                    yield f"         {shorten(claim, MAX_CLAIM_CHARACTERS, placeholder=' ...')}"
        if common is not None and not sure:
            yield f"The other {rest:,} have the same P, {chance(common)}: no judge tells them apart."


@dataclass(frozen=True)
class Badge:
    """One test of P, with its outcome.

    Parameters
    ----------
    name : str
        What was tested, in a few words that are true if it is passed: ``labels agree with P``.
    level : {'ok', 'warn', 'fail'}
        Passed; in doubt, or missed by little; failed.
    says : str
        A sentence.
    chapter : str
        Key of the chapter of a report that holds the evidence.
    """

    name: str
    level: str
    says: str
    chapter: str


@dataclass(frozen=True)
class MeasuredMethod:
    """One way to decide, measured on labeled datasets.

    Parameters
    ----------
    name : str
        As the table's row calls it.
    kind : str
        A key of :data:`deep.evaluate.COLORS`: `ours` for P(consistent).
    by_dataset : mapping of str to dict
        Metrics (:data:`deep.evaluate.METRICS`), of them `balanced_accuracy` always known.
    """

    name: str
    kind: str
    by_dataset: Mapping[str, Row]

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over datasets; None where one lacks it."""
        every = [row.get(metric) for row in self.by_dataset.values()]
        numbers = [float(value) for value in every if value is not None]
        return float(np.mean(numbers)) if numbers and len(numbers) == len(every) else None

    @property
    def accuracy(self) -> float:
        """Return the mean balanced accuracy."""
        return self.mean("balanced_accuracy") or 0.0

    @property
    def interval(self) -> list[float] | None:
        """Return the 95 % interval of balanced accuracy: by t over datasets, of a single one its own."""
        rows = list(self.by_dataset.values())
        if len(rows) == 1:
            return rows[0].get("balanced_accuracy_ci")
        _, low, high = mean_interval([row["balanced_accuracy"] for row in rows], 0.95)
        return [max(low, 0.0), min(high, 1.0)]

    def gain_interval(self, other: "MeasuredMethod") -> tuple[float, float]:
        """Return the 95 % interval of the difference to another method's balanced accuracy on the same items.

        By t over the paired differences of datasets. A single dataset has no second difference to compare with: there
        both intervals are combined as if independent (MOVER, Zou and Donner 2008, doi:10.1002/sim.3095), which is wider
        than need be where the two err on the same items.
        """
        pairs = [(row, other.by_dataset[name]) for name, row in self.by_dataset.items() if name in other.by_dataset]
        gains = [float(own["balanced_accuracy"] - its["balanced_accuracy"]) for own, its in pairs]
        if len(pairs) > 1:
            return mean_interval(gains, 0.95)[1:]
        (low, high), (its_low, its_high) = self.interval or (0.0, 1.0), other.interval or (0.0, 1.0)
        own, its = self.accuracy, other.accuracy
        down, up = float(np.hypot(own - low, its_high - its)), float(np.hypot(high - own, its - its_low))
        return own - its - down, own - its + up

    def row(self) -> Row:
        """Return the means over datasets, as those of one dataset."""
        metrics = ("balanced_accuracy", "ece", "ece_floor", "log_loss")
        return {metric: self.mean(metric) for metric in metrics} | {"balanced_accuracy_ci": self.interval}


def chosen_judge(runs: Sequence[Row]) -> tuple[MeasuredMethod | None, tuple[float, float] | None]:
    """Return the rival of runs of datasets held out: the judge that training data choose, which needs no label there.

    Returns
    -------
    MeasuredMethod or None
    (float, float) or None
        Of a single run: the 95 % interval of what is recommended less the rival, by a bootstrap of pairs.
    """
    every = [(run["test"], row) for run in runs for row in run["baselines"] if row["kind"] == "best_prompt"]
    rows = {test: row for test, row in every if row["balanced_accuracy"] is not None}
    names = {row["name"] for row in rows.values()}
    name = ", ".join([*(short_names(names).values() if len(names) == 1 else ()), "chosen on training data"])
    tests = [test["ci"] for run in runs for test in run["comparisons"] if test["b"].startswith("best_prompt")]
    return MeasuredMethod(name, "test", rows) if rows else None, tests[0] if len(tests) == 1 else None


def label_badges(
    method: MeasuredMethod,
    best: MeasuredMethod | None,
    ece_before: float | None,
    paired: tuple[float, float] | None = None,
) -> Iterator[Badge]:
    """Yield the tests that labels allow: beside the best judge, of calibration, and beside a coin.

    Parameters
    ----------
    method : MeasuredMethod
        The method that is tested: the one of kind `ours`.
    best : MeasuredMethod, optional
        The rival: a single judge on the same items.
    ece_before : float, optional
        Of P before calibration.
    paired : (float, float), optional
        The 95 % interval of the difference to it, where it was measured on pairs.
    """
    if best is not None:
        low, high = paired or method.gain_interval(best)
        # "Beats" needs more than chance (decision 40).
        level = "ok" if low > 0 else "fail" if high < 0 else "warn"
        says = (
            f"Balanced accuracy: panel {in_percent(method.accuracy)} %, its best judge ({best.name}) "
            f"{in_percent(best.accuracy)} %, difference {in_percent([low, high], '+')} points (95 % interval)."
        )
        yield Badge("beats the best judge", level, says, "methods")
    ece, limit, loss = (method.mean(metric) for metric in ("ece", "ece_floor_95", "log_loss"))
    if ece is not None and limit is not None:
        # Even a perfect P has a calibration error on so many items, so it is held to what chance explains.
        level = "ok" if ece <= limit else "warn" if ece <= limit + MAX_ECE_EXCESS else "fail"
        off, by_chance = in_percent(ece), in_percent(limit)
        says = f"P is off by {off} points on average (ECE); a perfect P stays below {by_chance} by chance."
        yield Badge("calibrated", level, says, "reliability")
    if loss is not None and loss >= COIN_LOG_LOSS:
        says = f"The log loss of P, {loss:.3f}, is worse than a coin's, {COIN_LOG_LOSS:.3f}."
        yield Badge("better than a coin", "fail", says, "headline")
    if ece is not None and ece_before is not None and ece > ece_before + MAX_ECE_RISE:
        says = f"Calibration made P worse: ECE {in_percent(ece_before)} % before, {in_percent(ece)} % after."
        yield Badge("helped by calibration", "fail", says, "reliability")


def canary_badge(n_labels: int, p_value: float, significance: float) -> Badge:
    """Return the outcome of the test of labels against the P of a model."""
    against = p_value < significance
    word = "DISAGREE" if against else "do not disagree"
    says = f"{n_labels:,} labels {word} with the model's P (p = {p_value:.2g}, limit {significance:.2g})."
    return Badge("labels agree with P", "fail" if against else "ok", says, "watch")


def drift_badge(moved: Sequence[str], not_tested: Sequence[str] = ()) -> Badge:
    """Return the outcome of the comparison of votes with those that a model was fitted on, and what was not tested."""
    unlike = f"Votes differ from the training datasets: {moved_words(moved)}."
    says = " ".join([unlike if moved else "The judges vote as in training.", *not_tested])
    return Badge("judges as in training", "warn" if moved else "ok", says, "watch")


def effective_words(n_judges: int, effective: float) -> str:
    """Return a sentence on the number of independent judges that a panel is worth."""
    return f"By their errors on these labels, {n_judges} judges are worth {effective:.1f} independent ones."


def moved_words(moved: Sequence[str]) -> str:
    """Return the names of judges that moved as prose has them, `(panel)` as what it stands for."""
    return ", ".join("the panel as a whole" if name == "(panel)" else name for name in short_names(moved).values())


SIMULATED_BADGE = Badge(
    "real votes", "warn", "The votes are SIMULATED: nothing here was measured on an LLM.", "headline"
)


@dataclass(frozen=True)
class DatasetVerdict:
    """The verdict on judged claims, or of a study of judges.

    Parameters
    ----------
    judged : str
        A sentence on what was judged, by whom and with how many labels.
    suspect, trust, then : str
        How many are suspect, in a sentence or in lines; whether P can be trusted here; what to do next.
    command : str
        The next command.
    badges : tuple of Badge
        In the order in which they are shown.
    share : PriorEstimate, optional
        Share of consistent items.
    elsewhere : tuple of str
        Sentences with figures from other data.
    tally : DecisionCounts
        Empty of a study.
    picture : str
        Of a study: the name of the picture in its folder that shows the answer.
    """

    judged: str
    suspect: str
    trust: str
    then: str
    command: str = ""
    badges: tuple[Badge, ...] = ()
    share: "PriorEstimate | None" = None
    elsewhere: tuple[str, ...] = ()
    tally: DecisionCounts = field(default_factory=DecisionCounts)
    picture: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the sentences, as the results of a study keep them."""
        return {name: getattr(self, name) for name in STUDY_SENTENCES}

    @classmethod
    def of_dict(cls, values: object) -> "DatasetVerdict | None":
        """Return the verdict of the results of a study, None where they hold none."""
        if not isinstance(values, dict) or values.keys() != set(STUDY_SENTENCES):
            return None
        return cls(**values) if all(isinstance(sentence, str) for sentence in values.values()) else None

    @property
    def failure(self) -> str:
        """Return the sentence of the first failed test, empty where none failed."""
        return next((badge.says for badge in self.badges if badge.level == "fail"), "")

    def lines(self) -> Iterator[str]:
        """Yield the verdict as lines for a terminal, a failure first."""
        if self.failure:
            yield f"FAILED: {self.failure}"
        yield from (self.judged, *self.suspect.split("\n"))
        if self.share is not None:
            yield share_words(self.share)
        yield from (self.trust, *self.elsewhere, f"Next: {self.then}", *([f"  {self.command}"] if self.command else []))


def share_words(share: "PriorEstimate") -> str:
    """Return a sentence on the share of consistent items."""
    estimate, low, high = map(in_percent, (share.estimate, share.low, share.high))
    if low == high:
        return f"Share of consistent claims, as given: {estimate} %."
    if not share.is_measured:
        return f"Share of consistent claims at the fit: {estimate} %; not measured on these few items."
    return f"Estimated share of consistent claims: {estimate} % (90 % interval {low} to {high})."


def certainty_words(tally: DecisionCounts, *, labeled: bool = False) -> str:
    """Return in sentences which items count as decided, or why none does; empty where no item has a vote.

    Where nothing is sure they ask for labels, unless the items are `labeled`. Where all items have one P they ask for
    other judges: labels change P for all of them at once.
    """
    if tally.alike:
        return NO_JUDGE_DISTINGUISHES
    if tally.consistent or tally.inconsistent:
        return "An item is decided where its whole 90 % interval gives that answer a chance of 2 in 3 or more."
    if not tally.undecided:
        return ""
    label = "" if labeled else " Label about 30 of these claims to narrow the intervals."
    return f"Nothing is sure: every 90 % interval of P includes chances below 2 in 3.{label}"


def suspect_words(tally: DecisionCounts, *, labeled: bool = False) -> str:
    """Return a line for each decision with the number of its items, and below what sure is."""
    return "\n".join([*tally.count_lines(), certainty_words(tally, labeled=labeled)]).rstrip()


def trust_words(badges: Sequence[Badge], n_labels: int, *, learned: bool = False) -> str:
    """Return a sentence on whether P can be trusted on these items.

    Parameters
    ----------
    badges : sequence of Badge
        All tests; the first failures, else the first warnings, decide what is said.
    n_labels : int
        Labels of these items that the model has not seen.
    learned : bool
        Where there is none: there are others, which the model has learned from.
    """
    failed = [badge.name for badge in badges if badge.level == "fail"]
    warned = [badge.name for badge in badges if badge.level == "warn"]
    if failed:
        return f"Do not trust P here: failed “{'”, “'.join(failed)}”."
    if not n_labels:
        doubt = f", with a warning on “{'”, “'.join(warned)}”" if warned else ""
        why = "all labels were used for training" if learned else "none of these claims has a label"
        return f"P is unverified here: {why}{doubt}."
    if warned:
        return f"Use P with care: warning on “{'”, “'.join(warned)}”."
    return f"P can be trusted here: {n_labels:,} labels agree with it."


def chance(p: float) -> str:
    """Return a probability in percent, which rounding makes neither 0 nor 100.

    Examples
    --------
    >>> from deep.evaluate import chance
    >>> chance(0.0004), chance(0.418), chance(0.9996)
    ('<0.1', '41.8', '>99.9')
    """
    return "<0.1" if p < 0.0005 else ">99.9" if p >= 0.9995 else in_percent(p)
