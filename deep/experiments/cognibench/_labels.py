"""Labels that a judge gave to the sentences of turns: written, read again, or read beside a table of votes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from deep._util.files import JsonObject
from deep.datasets import read_examples, read_judgments, read_rows
from deep.exceptions import InputError
from deep.experiments.cognibench._turns import LabeledTurn, verdict_is_bad
from deep.experiments.tiered import TIERS
from deep.judge import parse_voter

JUDGES = ("auto", "tiered", "listed")
"""The judges that label sentences."""

KINDS = {"irrelevant": "irrelevant", "faithful": "factual", "invented": "factual", **dict.fromkeys(TIERS, "cognitive")}


@dataclass(frozen=True, slots=True)
class SentenceLabel:
    """A sentence with a judge's verdict on it, and how many samples said which.

    `verdict` is one of a published sentence's, ``consistent``, ``hallucinated``, ``at least`` a tier, or None.
    """

    text: str
    kind: str | None
    verdict: str | None
    votes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoTurn:
    """A turn with a judge's labels.

    Parameters
    ----------
    turn_id, dialogue_id : str
    source, response : str
    sentences : tuple of SentenceLabel
    generator : str, optional
        The LLM that wrote the response.
    """

    turn_id: str
    dialogue_id: str
    source: str
    response: str
    sentences: tuple[SentenceLabel, ...]
    generator: str | None = None

    def hallucinated(self, level: str) -> list[bool | None]:
        """Return for each sentence whether it is hallucinated; None where the judge left that open."""
        return [None if s.verdict is None else verdict_is_bad(s.verdict, level) for s in self.sentences]

    def to_row(self) -> JsonObject:
        """Return the turn as it is written; the keys of an example come first."""
        sentences = [{"text": s.text, "kind": s.kind, "verdict": s.verdict, "votes": s.votes} for s in self.sentences]
        identity = {"example_id": self.turn_id, "dataset": "cognibench-labeled", "document_id": self.dialogue_id}
        return {
            "source": self.source,
            "claim": self.response,
            **identity,
            "model": self.generator,
            "sentences": sentences,
        }


def read_labels(path: Path) -> list[AutoTurn]:
    """Read the labels that `deep cognibench label` wrote: a folder of it, or its file.

    Raises
    ------
    InputError
        The file cannot be read, or a row is not as it was written.
    """
    file = path / "labels.jsonl" if path.is_dir() else path
    if file.suffix != ".jsonl":
        raise InputError(f"`labels` must end in .jsonl. Got {str(path)!r}.")
    turns = []
    for number, (_, row) in enumerate(read_rows(file, (), param="labels"), start=1):
        try:
            turns.append(_turn(row))
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"`labels` must be what `deep cognibench label` wrote. Got {type(error).__name__} {error} in row "
                f"{number} of {str(file)!r}. Label again."
            ) from None
    if not turns:
        raise InputError(f"`labels` must hold at least one turn. Got none in {str(file)!r}.")
    return turns


def _turn(row: Mapping[str, object]) -> AutoTurn:
    fields: JsonObject = dict(row)
    sentences = tuple(SentenceLabel(s["text"], s["kind"], s["verdict"], s["votes"]) for s in fields["sentences"])
    for sentence in sentences:
        if sentence.verdict is not None:
            verdict_is_bad(sentence.verdict, "grounded")
    return AutoTurn(
        turn_id=str(fields["example_id"]),
        dialogue_id=str(fields["document_id"]),
        source=fields["source"],
        response=fields["claim"],
        sentences=sentences,
        generator=fields["model"],
    )


def read_voted(examples: str, votes: Sequence[str], voter: str | None) -> list[AutoTurn]:
    """Return the labels that a judge of sentences gave to examples, from what lies beside its votes.

    Parameters
    ----------
    examples : str
        The file or the benchmark that was voted on.
    votes : sequence of str
    voter : str, optional
        The column, where several judges of sentences voted.

    Raises
    ------
    InputError
        No such judge voted, or several did; or the votes are of other examples.
    """
    details = [d for d in read_judgments(votes) if parse_voter(d.voter).name.partition(":")[0] in JUDGES]
    voters = list(dict.fromkeys(detail.voter for detail in details))
    chosen = voter if voter is not None else voters[0] if len(voters) == 1 else None
    if chosen not in voters:
        known = ", ".join(voters) or "none"
        raise InputError(
            f"`voter` must be one judge of sentences ({', '.join(JUDGES)}) whose labels lie beside the votes: {known}. "
            f"Got {voter!r}."
        )
    labels = {(d.dataset, d.item_id): d for d in details if d.voter == chosen}
    turns = []
    for example in read_examples(examples):
        detail = labels.get((example.dataset or "", example.example_id))
        if detail is not None:
            texts = [SentenceLabel(p.text, _kind(p.verdict), _known(p.verdict)) for p in detail.passages]
            document = example.document_id or example.example_id
            place = {"turn_id": example.example_id, "dialogue_id": document}
            turns.append(AutoTurn(**place, source=example.source, response=example.claim, sentences=tuple(texts)))
    if not turns:
        raise InputError(f"`data` must hold the examples that were voted on. Got none of them in {examples!r}.")
    return turns


def _kind(verdict: str | None) -> str | None:
    return KINDS.get((verdict or "").removeprefix("at least "))


def _known(verdict: str | None) -> str | None:
    return None if verdict is None or verdict.startswith("undecided") else verdict


def complete(turns: Sequence[AutoTurn], level: str) -> Iterator[tuple[AutoTurn, list[str]]]:
    """Yield the turns whose every sentence is decided, each with its hallucinated sentences."""
    for turn in turns:
        bad = turn.hallucinated(level)
        if bad and None not in bad:
            yield turn, [s.text for s, is_bad in zip(turn.sentences, bad, strict=True) if is_bad]


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
