"""Precision, recall and F1 of the detection of hallucinated sentences, weighted by their words or all alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from deep.experiments.cognibench._turns import LabeledTurn

PARTS = ("overall", "factual", "cognitive")

UNITS = ("words", "sentences")
"""Units of the counts: the paper weighs sentences by their words; by sentences, each weighs the same."""

Found = Sequence[Sequence[bool | None]]
"""For each turn, whether each of its sentences was found hallucinated; None where that was left open."""


@dataclass(frozen=True, slots=True)
class Score:
    """The counts behind precision and recall of a method, in words or in sentences.

    Parameters
    ----------
    decided : int
        In all sentences that it decided.
    labeled : int
        In those that are hallucinated.
    detected : int
        In those that it found hallucinated.
    right : int
        In those that are both.
    open : int
        In the sentences that it left undecided, which enter nothing else.
    """

    decided: int = 0
    labeled: int = 0
    detected: int = 0
    right: int = 0
    open: int = 0

    @property
    def recall(self) -> float | None:
        """Share of what is hallucinated that is detected; None where there is none."""
        return self.right / self.labeled if self.labeled else None

    @property
    def precision(self) -> float | None:
        """Share of what is detected that is hallucinated; None where nothing is detected."""
        return self.right / self.detected if self.detected else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; 0 where something is hallucinated and nothing detected."""
        both = self.labeled + self.detected
        return 2 * self.right / both if both else None

    @property
    def coverage(self) -> float | None:
        """Share of all that lies in decided sentences."""
        every = self.decided + self.open
        return self.decided / every if every else None


def score_turns(turns: Sequence[LabeledTurn], found: Found, level: str, by: str = "words") -> dict[str, Score]:
    """Return the scores of a method overall and for factual and cognitive statements, by one of `UNITS`.

    Examples
    --------
    >>> from deep.experiments.cognibench._metric import score_turns
    >>> from deep.experiments.cognibench._turns import GoldSentence, LabeledTurn
    >>> sentences = (GoldSentence("It opened in 1871.", "factual", "invented"),
    ...              GoldSentence("It was loved.", "cognitive", "reliable"))
    >>> turn = LabeledTurn("1_en_0", "1_en", 0, "", "", "", sentences, 2, 0)
    >>> score = score_turns([turn], [[True, True]], "grounded")["overall"]
    >>> score.recall, score.precision
    (1.0, 0.5714285714285714)
    """
    rows = [
        (sentence.kind, sentence.words if by == "words" else 1, sentence.hallucinated(level), judged)
        for turn, in_turn in zip(turns, found, strict=True)
        for sentence, judged in zip(turn.sentences, in_turn, strict=True)
        if sentence.kind != "irrelevant"
    ]
    return {part: _score(row[1:] for row in rows if part in ("overall", row[0])) for part in PARTS}


def _score(rows: Iterable[tuple[int, bool, bool | None]]) -> Score:
    decided = labeled = detected = right = left_open = 0
    for n, gold, judged in rows:
        if judged is None:
            left_open += n
            continue
        decided += n
        labeled += n * gold
        detected += n * judged
        right += n * (gold and judged)
    return Score(decided, labeled, detected, right, left_open)


def macro(scores: dict[str, Score]) -> float | None:
    """Return the mean of the F1 of factual and of cognitive statements; None where one is not defined."""
    values = [scores[part].f1 for part in ("factual", "cognitive")]
    known = [value for value in values if value is not None]
    return sum(known) / 2 if len(known) == 2 else None
