"""The classifier of the automatic labels: factual or cognitive, learned from the published types of other dialogues."""

from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256

from deep.experiments.cognibench._turns import LabeledTurn

FOLDS = 5

Statements = tuple[str, Sequence[str]]
"""A dialogue's identifier, and sentences of one of its turns."""


class KindClassifier:
    """Logistic regression on character n-grams, weighted so that both types count the same.

    Parameters
    ----------
    turns : sequence of LabeledTurn
        Their published types are learned.
    """

    def __init__(self, turns: Sequence[LabeledTurn]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline

        sentences = [s for turn in turns for s in turn.sentences if s.kind != "irrelevant"]
        self._model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
            LogisticRegression(class_weight="balanced", max_iter=1000),
        )
        self._model.fit([s.text for s in sentences], [s.kind for s in sentences])

    def kinds(self, sentences: Sequence[str]) -> list[str]:
        """Return factual or cognitive for each sentence."""
        return [str(kind) for kind in self._model.predict(list(sentences))] if sentences else []


def classified(turns: Iterable[Statements], published: Sequence[LabeledTurn]) -> list[list[str]] | None:
    """Return the types of the sentences of each turn, by a classifier that has not seen the turn's dialogue.

    Returns
    -------
    list of list of str, or None
        None where some classifier would have nothing to tell apart: too few published dialogues of both types.
    """
    known = {turn.dialogue_id for turn in published}

    @cache
    def classifier(fold: int | None) -> KindClassifier | None:
        others = [turn for turn in published if fold is None or _fold(turn.dialogue_id) != fold]
        kinds = {s.kind for turn in others for s in turn.sentences} - {"irrelevant"}
        return KindClassifier(others) if len(kinds) == 2 else None

    found = []
    for dialogue_id, sentences in turns:
        model = classifier(_fold(dialogue_id) if dialogue_id in known else None)
        if model is None:
            return None
        found.append(model.kinds(sentences))
    return found


def _fold(dialogue_id: str) -> int:
    return sha256(dialogue_id.encode()).digest()[0] % FOLDS


def accuracy_of(kinds: Sequence[Sequence[str]], turns: Sequence[LabeledTurn]) -> float | None:
    """Return the mean share of factual and of cognitive sentences whose type is right; None where one is missing."""
    right: dict[str, list[bool]] = {"factual": [], "cognitive": []}
    for of_turn, turn in zip(kinds, turns, strict=True):
        for kind, sentence in zip(of_turn, turn.sentences, strict=True):
            if sentence.kind in right:
                right[sentence.kind].append(kind == sentence.kind)
    shares = [sum(told) / len(told) for told in right.values() if told]
    return sum(shares) / 2 if len(shares) == 2 else None
