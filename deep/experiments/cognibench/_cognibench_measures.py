"""Precision, recall and F1 of the detection of hallucinated sentences, weighted by their words or all alike."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from deep._util.files import JsonObject
from deep.exceptions import InputError
from deep.experiments.cognibench._turns import LabeledTurn
from deep.features import Ratings, agreement_interval, cohen_kappa, krippendorff_alpha, pairwise_agreement
from deep.integrations.labeling import rating_table, read_annotation_rows

PARTS = ("overall", "factual", "cognitive")

UNITS = ("words", "sentences")
"""Units of the counts: the paper weighs sentences by their words; by sentences, each weighs the same."""

SentenceFlags = Sequence[Sequence[bool | None]]
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
        """Share of the hallucinated units that are detected; None where there are none."""
        return self.right / self.labeled if self.labeled else None

    @property
    def precision(self) -> float | None:
        """Share of the detected units that are hallucinated; None where there are none."""
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


def score_turns(turns: Sequence[LabeledTurn], found: SentenceFlags, level: str, by: str = "words") -> dict[str, Score]:
    """Return the scores of a method overall and for factual and cognitive statements, by one of `UNITS`.

    Examples
    --------
    >>> from deep.experiments.cognibench._cognibench_measures import score_turns
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


COLUMNS = ("item_id", "protocol", "annotator", "label")

MOST = {"protocol": 100, "label": 1_000}
"""Different values that are compared with one another; where there are more, a column holds something else."""


def read_annotations(path: Path) -> pd.DataFrame:
    """Return a CSV file of annotations: a label for each item, protocol and annotator; rows without one left out.

    Raises
    ------
    InputError
        The file cannot be read, a column is not there, a cell is empty, a row comes twice, or there is no label.
    """
    _, rows = read_annotation_rows(path, COLUMNS[:3])
    frame = pd.DataFrame([{name: row[name].strip() for name in COLUMNS} for row in rows])
    frame = frame[frame["label"] != ""]
    if frame.empty:
        raise InputError(f"`label` must be given at least once. Got none in {str(path)!r}.")
    for name, most in MOST.items():
        if (n := frame[name].nunique()) > most:
            raise InputError(f"`{name}` must have at most {most:,} different values. Got {n:,} in {str(path)!r}.")
    return frame


def agreement_tables(frame: pd.DataFrame, *, n_boot: int = 2000, random_state: int = 0) -> dict[str, pd.DataFrame]:
    """Return the agreement within each protocol, and between each two.

    Within: the share of pairs of annotators that give an item the same label, as Table 1 of the paper has it, and
    Krippendorff's alpha with its interval. Between: the same share of items, and Cohen's kappa, of the commonest
    label that each protocol gives; an item without a commonest one is left out.
    """
    codes = {label: code for code, label in enumerate(sorted(set(frame["label"])))}
    within, majority = [], {}
    for protocol, part in frame.groupby("protocol", sort=True):
        ratings = _ratings(part, codes)
        low, high = agreement_interval(krippendorff_alpha, ratings, n_boot=n_boot, random_state=random_state)
        within.append(
            {
                "protocol": protocol,
                "items": len(ratings),
                "annotators": ratings.shape[1],
                "agreement": pairwise_agreement(ratings),
                "alpha": krippendorff_alpha(ratings),
                "alpha low": low,
                "alpha high": high,
            }
        )
        majority[str(protocol)] = {
            str(item): _commonest(list(labels)) for item, labels in part.groupby("item_id")["label"]
        }
    between = [_between(a, b, majority[a], majority[b], codes) for a, b in combinations(majority, 2)]
    return {"within": pd.DataFrame(within), "between": pd.DataFrame(between)}


def _ratings(part: pd.DataFrame, codes: dict[str, int]) -> Ratings:
    """Return the codes of labels, of shape (n_items, n_annotators); -1 where there is none."""
    items, annotators = (sorted(set(part[name])) for name in ("item_id", "annotator"))
    marks = zip(part["item_id"], part["annotator"], map(codes.__getitem__, part["label"]), strict=True)
    return rating_table(marks, items, annotators)


def _commonest(labels: Sequence[str]) -> str | None:
    (first, n), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == n else first


def _between(a: str, b: str, of_a: JsonObject, of_b: JsonObject, codes: dict[str, int]) -> JsonObject:
    items = [item for item in of_a if of_a[item] is not None and of_b.get(item) is not None]
    both = np.array([[codes[of_a[item]], codes[of_b[item]]] for item in items], dtype=np.int64).reshape(-1, 2)
    same = float((both[:, 0] == both[:, 1]).mean()) if items else float("nan")
    kappa = cohen_kappa(both) if items else float("nan")
    return {"protocols": f"{a} / {b}", "items": len(items), "agreement": same, "kappa": kappa}
