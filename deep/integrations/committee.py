"""What other tools ask of deep: the verdict of a model on an item, and figures of a committee of their graders."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from deep.asking import AskOptions, Scored, TextScorer
from deep.evaluate import PanelCard, panel_card
from deep.exceptions import DeepError, StoppedError, printable
from deep.model import Model
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
        The name of the one dataset that all items are of.
    """
    voters = sorted({name for row in grades for name in row})
    votes = np.array([[vote_of(row.get(name)) for name in voters] for row in grades], dtype=np.int8)
    return VoteMatrix(
        votes=votes.reshape(len(grades), len(voters)),
        item_ids=_numbered(documents),
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


# What each figure is in the card of a panel.
MEASURES: Mapping[str, Callable[[PanelCard], float]] = {
    "effective_size": lambda card: card.effective_votes,
    "agreement": lambda card: card.agreement,
    "calibrated_accuracy": _calibrated_accuracy,
}


def measure(votes: VoteMatrix, *names: str) -> dict[str, float]:
    """Return figures of a committee, of all by default; NaN for one that these votes and labels cannot give.

    Parameters
    ----------
    votes : VoteMatrix
        With or without labels; a figure that needs them is NaN without.
    *names : {'effective_size', 'agreement', 'calibrated_accuracy'}
        The independent judges that it is worth, by the correlation of errors; Cohen's kappa of two of its judges, mean
        over pairs, which needs no label; the balanced accuracy of the model that `deep fit` makes of its votes, on
        parts of the items held out.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.committee import measure
    >>> votes = simulate_votes(0)
    >>> result = measure(votes.rows(votes.datasets == "aggrefact-xsum"), "effective_size", "agreement")
    >>> 1 < result["effective_size"] < votes.shape[1], 0 < result["agreement"] < 1
    (True, True)
    """
    metrics = names or tuple(MEASURES)
    card = panel_card(votes, n_boot=1, limit=0, by_dataset=False, worth="calibrated_accuracy" in metrics)
    return {name: MEASURES[name](card) for name in metrics}


# A model, its file, or a :class:`deep.asking.TextScorer` where limits, prior or prompts of one's own are wanted.
AnyModel = TextScorer | Model | str | Path


def text_scorer(model: AnyModel, ledger: str | None = None) -> TextScorer:
    """Return the scorer of a model; `ledger` is the file of answers, where its judges ask an LLM.

    Raises
    ------
    InputError
        As :class:`deep.asking.TextScorer`.
    """
    if isinstance(model, TextScorer):
        return model
    return TextScorer(model, None if ledger is None else AskOptions(ledger=ledger))


def text_of(value: object) -> str:
    r"""Return the text of a value: itself, or its passages below each other; empty where it is no text.

    Examples
    --------
    >>> text_of(["It rained.", "It was cold."]), text_of("It rained."), text_of(None)
    ('It rained.\n\nIt was cold.', 'It rained.', '')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return "\n\n".join(value)
    return ""


FAILED = "failed"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one pair: scored, skipped or an error, which are three things and never one number.

    Parameters
    ----------
    status : {'scored', 'skipped', 'error'}
        Skipped: no judge gave a vote, so P would be the prior and nothing else. Error: a judge's request failed, or
        the pair could not be judged at all; asked again, it may be scored.
    p : float or None
        P(consistent); None unless scored, as the following two.
    interval : tuple of float or None
        The bounds at level 0.9.
    decision : bool or None
        Whether the claim is called consistent.
    rationale : str
        The judges' votes and reasons; or why there is no score.
    judges : tuple of dict
        Of each judge: `judge`, `vote` (None for none), `reason`, `rationale`, `evidence`.
    cost : float or None
        Dollars paid for the judgments, 0 where nobody was asked; None where a price is not known.
    """

    status: Literal["scored", "skipped", "error"]
    rationale: str
    p: float | None = None
    interval: tuple[float, float] | None = None
    decision: bool | None = None
    judges: tuple[dict[str, Any], ...] = ()
    cost: float | None = None

    @classmethod
    def of(cls, scored: Scored) -> "Verdict":
        """Return the verdict on a scored pair.

        Examples
        --------
        >>> from deep import Example, Judgment
        >>> from deep.asking import Scored
        >>> columns = {"p_consistent": 0.25, "p_low": 0.125, "p_high": 0.5, "decision": 0}
        >>> pair = Example("It rained for 3 days.", "It rained for 4 days.", "1")
        >>> judgments = {"numbers": Judgment(0, rationale="The source lacks 4."), "dates": Judgment(-1, "abstained")}
        >>> verdict = Verdict.of(Scored(pair, judgments, columns))
        >>> verdict.status, verdict.p, verdict.decision
        ('scored', 0.25, False)
        >>> print(verdict.rationale)
        P(consistent) = 0.250, 90 % interval 0.125 to 0.500: inconsistent
        numbers: 0. The source lacks 4.
        dates: abstained
        >>> Verdict.of(Scored(pair, {"strict": Judgment(-1, "failed")}, columns)).status
        'error'
        """
        judges = tuple(scored.as_dict()["judges"])
        verdict = partial(cls, judges=judges, cost=_cost(scored))
        failed = [row["judge"] for row in judges if row["reason"] == FAILED]
        if failed:
            return verdict("error", f"No answer from {', '.join(map(printable, failed))}. Ask again.")
        lines = [judge_line(row) for row in judges]
        if all(row["vote"] is None for row in judges):
            return verdict("skipped", "\n".join(["No judge gave a vote.", *lines]))
        columns = scored.columns
        p, bounds, decision = columns["p_consistent"], (columns["p_low"], columns["p_high"]), bool(columns["decision"])
        called = "consistent" if decision else "inconsistent"
        head = f"P(consistent) = {p:.3f}, 90 % interval {bounds[0]:.3f} to {bounds[1]:.3f}: {called}"
        return verdict("scored", "\n".join([head, *lines]), p=p, interval=bounds, decision=decision)

    @classmethod
    def on(cls, scorer: TextScorer, source: str, claim: str) -> "Verdict":
        """Return the verdict on a pair; an error of deep, or the end of a budget, is an error verdict."""
        try:
            return cls.of(scorer.score(source, claim))
        except (DeepError, OSError, StoppedError) as error:
            return cls("error", str(error))

    def metadata(self) -> dict[str, Any]:
        """Return everything but the rationale as JSON values."""
        low, high = self.interval or (None, None)
        return {
            "status": self.status,
            "p_consistent": self.p,
            "p_low": low,
            "p_high": high,
            "decision": self.decision,
            "judges": list(self.judges),
            "cost": self.cost,
        }


def judge_line(row: Mapping[str, Any]) -> str:
    """Return a judge's vote with its score, or the reason of none, and its rationale."""
    words = " ".join(str(row["rationale"] or "").split())
    score = "" if row["score"] is None else f" (score {row['score']:.3g})"
    answer = row["reason"] or f"{row['vote']}{score}"
    return printable(f"{row['judge']}: {answer}{f'. {words}' if words else ''}")


def _cost(scored: Scored) -> float | None:
    """Return the dollars of all judgments; those of judges that used no tokens cost nothing."""
    costs = [judgment.cost for judgment in scored.judgments.values() if judgment.tokens]
    amounts = [cost for cost in costs if cost is not None]
    return float(sum(amounts)) if len(amounts) == len(costs) else None
