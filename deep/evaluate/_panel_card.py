"""The card of a panel of judges as a value: its fields, its JSON, and its tables."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from deep._checks import Floats, check_choice
from deep.evaluate._contribution import PanelReport
from deep.evaluate._frames import null_if_nan
from deep.evaluate._judge_card import JudgeCard, json_values
from deep.evaluate._result import Row

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True, eq=False)
class PanelCard:
    """Everything that votes, labels and the files beside them say of a panel of judges.

    Made by :func:`panel_card` and :func:`read_panel_card`; read by ``deep panel``, and by the report as a chapter.

    Parameters
    ----------
    n : int
        Items.
    datasets : tuple of str
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
    error_correlation : ndarray of float, shape (n_judges, n_judges), or None
        None without labels; datasets x classes weigh the same.
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
    error_correlation: Floats | None
    effective_votes: float
    cost_per_1000: float | None
    effective_votes_a_dollar: float
    worth: PanelReport | None
    worth_missing: str
    drop_first: str | None
    sample_twice: str | None
    doubtful_labels: tuple[Row, ...]

    def as_dict(self) -> Row:
        """Return JSON values; those of `worth` stand beside the others, null for NaN."""
        names = [card.judge for card in self.judges]
        counts = ("n", "n_documents", "n_labeled", "n_tied", "n_replaced", "n_unmatched")
        plain = (*counts, "cost_per_1000", "drop_first", "sample_twice")
        measured = {"effective_votes": self.effective_votes, "effective_votes_a_dollar": self.effective_votes_a_dollar}
        return {
            "datasets": list(self.datasets),
            "judges": names,
            **{name: getattr(self, name) for name in plain},
            **json_values(measured),
            "people": list(self.people),
            "people_agreement": list(self.people_agreement),
            "cards": [card.as_dict() for card in self.judges],
            "between": _matrix(self.between),
            "error_correlation": None if self.error_correlation is None else _matrix(self.error_correlation),
            "worth_missing": self.worth_missing or None,
            **({} if self.worth is None else _worth_values(self.worth)),
            "doubtful_labels": list(self.doubtful_labels),
        }

    def frame(self, part: str = "judges") -> "pd.DataFrame":
        """Return one part of the card as a table.

        Parameters
        ----------
        part : str
            ``judges`` (a row a judge: every figure), ``people`` (their agreement), ``by_dataset``, ``by_person``,
            ``reasons``, ``disagreements``, ``between``, ``error_correlation``, ``steps`` (judges dropped one after the
            other) or ``doubtful_labels``.

        Raises
        ------
        InputError
            There is no such part.
        """
        import pandas as pd

        check_choice(part, sorted(PARTS), "part")
        return pd.DataFrame(PARTS[part](self))


def _matrix(values: Floats) -> list[list[object]]:
    return [[null_if_nan(value) for value in row] for row in values]


def _worth_values(worth: PanelReport) -> Row:
    found = asdict(worth)
    for step in found["steps"]:
        step["n_judges"] = len(step.pop("judges"))
    return found


def _judge_rows(card: PanelCard) -> list[Row]:
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


def _square(values: Floats | None, card: PanelCard) -> list[Row]:
    names = [each.judge for each in card.judges]
    rows = [] if values is None else zip(names, values, strict=True)
    return [{"judge": name, **dict(zip(names, row, strict=True))} for name, row in rows]


PARTS: Mapping[str, Callable[[PanelCard], list[Row]]] = {
    "between": lambda card: _square(card.between, card),
    "by_dataset": lambda card: [
        {"judge": each.judge, "dataset": name, **asdict(found)}
        for each in card.judges
        for name, found in each.by_dataset.items()
    ],
    "by_person": lambda card: [
        {"judge": each.judge, "person": name, "kappa": kappa}
        for each in card.judges
        for name, kappa in each.by_person.items()
    ],
    "disagreements": lambda card: [{"judge": each.judge, **row} for each in card.judges for row in each.disagreements],
    "doubtful_labels": lambda card: list(card.doubtful_labels),
    "error_correlation": lambda card: _square(card.error_correlation, card),
    "judges": _judge_rows,
    "people": lambda card: list(card.people_agreement),
    "reasons": lambda card: [
        {"judge": each.judge, "reason": reason, "items": count}
        for each in card.judges
        for reason, count in each.itself.reasons.items()
    ],
    "steps": lambda card: [] if card.worth is None else _worth_values(card.worth)["steps"],
}
