"""CogniBench's turns as sentences, published ones with their verdicts, and the labels that a judge gave to them."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeVar

from deep._util.files import JsonObject
from deep._util.options import option
from deep.console import named
from deep.datasets import read_examples, read_judgments, read_rows
from deep.datasets.benchmarks import BENCHMARKS, require_folder
from deep.exceptions import InputError
from deep.experiments.tiered import CRITERIA, TIERS, ListJudge, list_text
from deep.integrations.benchmarks import CogniBenchTurn, load_turns
from deep.judges import parse_voter

_TIER_LISTS = ("misleading_list", "speculative_list", "realiable_list", "unequivocal_list")
"""The published names, as they are spelled there, in the order of `TIERS`."""

_BAD = {"irrelevant": False, "faithful": False, "consistent": False, "invented": True, "hallucinated": True}
"""Verdicts that mean the same at every level."""


SentenceFlags = Sequence[Sequence[bool | None]]
"""For each turn, whether each of its sentences was found hallucinated; None where that was left open."""


@dataclass(frozen=True, slots=True)
class GoldSentence:
    """A sentence as published.

    Parameters
    ----------
    text : str
    kind : {'cognitive', 'factual', 'irrelevant'}
    verdict : str
        faithful, invented, irrelevant, misleading, speculative, reliable or irrefutable.
    """

    text: str
    kind: str
    verdict: str

    @property
    def words(self) -> int:
        """Words, as white space parts them."""
        return len(self.text.split())

    def hallucinated(self, level: str) -> bool:
        """Return whether it is invented, or a cognitive statement below a level."""
        return bool(verdict_is_bad(self.verdict, level))


def verdict_is_bad(verdict: str, level: str) -> bool | None:
    """Return whether a verdict makes a sentence a hallucination; None where ``at least`` a tier leaves it open.

    Raises
    ------
    KeyError
        It is no verdict.
    """
    if verdict in _BAD:
        return _BAD[verdict]
    known = verdict.removeprefix("at least ")
    if known not in TIERS:
        raise KeyError(verdict)
    fails = TIERS.index(known) <= CRITERIA.index(level)
    return None if fails and known != verdict else fails


@dataclass(frozen=True, slots=True)
class LabeledTurn:
    """A labeled turn.

    Parameters
    ----------
    turn_id, dialogue_id : str
    index : int
        Of the turn in its dialogue, from 0.
    knowledge : str
        The text that the dialogue is about.
    source : str
        That text, and the dialogue before the response.
    response : str
    sentences : tuple of GoldSentence
        Those with a type, in the order of the response.
    n_keys : int
        Sentences in the published dictionary.
    n_untyped : int
        Those of them that have no type.
    generator : str, optional
        The LLM that wrote the response, where the data say it.
    """

    turn_id: str
    dialogue_id: str
    index: int
    knowledge: str
    source: str
    response: str
    sentences: tuple[GoldSentence, ...]
    n_keys: int
    n_untyped: int
    generator: str | None = None

    @property
    def texts(self) -> list[str]:
        """The sentences' texts."""
        return [sentence.text for sentence in self.sentences]


def read_turns(data: str) -> list[LabeledTurn]:
    """Return the labeled turns of a folder, or of the published release where `data` is ``cognibench``.

    A sentence of the release is an entry of its lists of factual, cognitive and irrelevant sentences; the counts that
    the paper gives are those of the lists. A key of its sentence dictionary has no type where its list of labels is
    empty and the list of misleading sentences does not hold it.

    Raises
    ------
    InputError
        There is no such folder, a file is not in the published layout, or no turn has labels.
    """
    folder, every = read_dialogues(data)
    turns = [_turn(turn, dict(turn.labels), folder) for turn in every if turn.labels is not None]
    if not turns:
        raise InputError(f"`data` must hold at least one labeled turn. Got none in {str(folder)!r}.")
    return turns


def sentence_rows(turns: Sequence[LabeledTurn], level: str) -> Iterator[JsonObject]:
    """Yield the sentences of turns as examples, those apart that are irrelevant; the id is ``TURN#N``.

    The source is knowledge and dialogue, the claim the sentence alone; the label is 0 where it is hallucinated at a
    level.
    """
    for turn in turns:
        for i, sentence in enumerate(turn.sentences):
            if sentence.kind != "irrelevant":
                yield {
                    "dataset": "cognibench",
                    "example_id": f"{turn.turn_id}#{i}",
                    "document_id": turn.dialogue_id,
                    "source": turn.source,
                    "claim": sentence.text,
                    "label": int(not sentence.hallucinated(level)),
                }


def read_dialogues(data: str) -> tuple[Path, list[CogniBenchTurn]]:
    """Return a folder of published files and all its turns, labeled or not.

    Raises
    ------
    InputError
        There is no such folder, or a file is not in the published layout.
    """
    folder = Path(data)
    if not folder.is_dir():
        if data != "cognibench":
            raise InputError(f"`data` must be a folder or cognibench. Got {data!r}. Check the name.")
        folder = require_folder(BENCHMARKS["cognibench"])
    with named("data"):
        return folder, load_turns(folder)


def _turn(turn: CogniBenchTurn, labels: JsonObject, folder: Path) -> LabeledTurn:
    try:
        sentences = [
            *(GoldSentence(text, "irrelevant", "irrelevant") for text in labels["irrelevant_list"]),
            *(GoldSentence(text, "factual", _factual(text, labels)) for text in labels["factual_list"]),
            *(GoldSentence(text, "cognitive", _tier(text, labels)) for text in labels["cognitive_list"]),
        ]
        misleading = {text.casefold() for text in labels["misleading_list"]}
        keys = turn.sentences.items()
        untyped = sum(not value[0] and text.casefold() not in misleading for text, value in keys)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise InputError(
            f"`data` must have the published lists of sentences. Got {type(error).__name__} {error} at turn "
            f"{turn.turn_id!r} of {str(folder)!r}. Download labels.json again."
        ) from None
    return LabeledTurn(
        turn_id=turn.turn_id,
        dialogue_id=turn.dialogue_id,
        index=turn.turn_index,
        knowledge=turn.knowledge,
        source=turn.source,
        response=turn.response,
        sentences=tuple(sorted(sentences, key=_places(turn.response, sentences))),
        n_keys=len(keys),
        n_untyped=untyped,
        generator=turn.generator,
    )


def _factual(text: str, labels: JsonObject) -> str:
    return "invented" if text in labels["factual_hallu_list"] else "faithful"


def _tier(text: str, labels: JsonObject) -> str:
    found = [tier for name, tier in zip(_TIER_LISTS, TIERS, strict=True) if text in labels[name]]
    if len(found) != 1:
        raise KeyError(f"{len(found)} tiers for {text[:60]!r}")
    return found[0]


def _places(response: str, sentences: Sequence[GoldSentence]) -> Callable[[GoldSentence], int]:
    """Return a sort key: where a sentence begins in the response, which may be spaced and cased otherwise."""
    whole = letters_of(response)
    places = {sentence.text: place_of(letters_of(sentence.text), whole) for sentence in sentences}
    return lambda sentence: len(whole) if (place := places[sentence.text]) is None else place


def place_of(letters: str, whole: str, at: int = 0) -> int | None:
    """Return where the letters of a sentence begin in those of a response; None where not even its beginning is there.

    A few published sentences hold a slip of the pen, so that only their beginning stands in the response.

    Examples
    --------
    >>> place_of("itrainedallmornings", "sayitrainedallmorning"), place_of("itsnowed", "sayitrainedallmorning")
    (3, None)
    """
    places = (whole.find(letters[:n], at) for n in (len(letters), 30, 12))
    return next((place for place in places if place >= 0), None)


def letters_of(text: str) -> str:
    """Return the letters and digits of a text in lower case: what remains where spacing and case differ."""
    return re.sub(r"\W+", "", text.casefold())


def counts_of(turns: Sequence[LabeledTurn]) -> dict[str, int]:
    """Return how many turns, keys and sentences of each kind and verdict there are."""
    every = [sentence for turn in turns for sentence in turn.sentences]
    verdicts = ("faithful", "invented", *TIERS)
    return {
        "turns": len(turns),
        "keys": sum(turn.n_keys for turn in turns),
        "factual": sum(sentence.kind == "factual" for sentence in every),
        "cognitive": sum(sentence.kind == "cognitive" for sentence in every),
        **{verdict: sum(sentence.verdict == verdict for sentence in every) for verdict in verdicts},
        "irrelevant": sum(sentence.kind == "irrelevant" for sentence in every),
        "untyped": sum(turn.n_untyped for turn in turns),
    }


SPLITS = ("all", "train", "test")


class _InDialogue(Protocol):
    @property
    def dialogue_id(self) -> str: ...


T = TypeVar("T", bound=_InDialogue)


@dataclass(frozen=True)
class Split:
    """The options of the split.

    Parameters
    ----------
    split : str, default='all'
        Dialogues to take (default: all).
    test_share : float, default=0.2
        Dialogues of the test split (default 0.2).
    split_seed : int, default=0
        Seed of the split (default 0).
    """

    split: str = option("all", choices=SPLITS)
    test_share: float = option(0.2, "SHARE")
    split_seed: int = option(0, "N")


def in_split(dialogue_id: str, split: str, share: float, seed: int) -> bool:
    """Tell whether a dialogue is in a split; its identifier and the seed alone decide, whatever file it is in.

    Examples
    --------
    >>> from deep.experiments.cognibench._turns import in_split
    >>> [in_split("7_en", split, 0.2, 0) for split in ("all", "train", "test")]
    [True, True, False]
    """
    drawn = int.from_bytes(sha256(f"{seed} {dialogue_id}".encode()).digest()[:8]) / 2**64
    return split == "all" or (drawn < share) == (split == "test")


def turns_of_split(turns: Iterable[T], args: argparse.Namespace) -> list[T]:
    """Return the turns of the split that the options of :class:`Split` name.

    Raises
    ------
    InputError
        The share is not in (0, 1), or no turn is in the split.
    """
    if not 0 < args.test_share < 1:
        raise InputError(f"`test_share` must lie in (0, 1). Got {args.test_share!r}.")
    chosen = [turn for turn in turns if in_split(turn.dialogue_id, args.split, args.test_share, args.split_seed)]
    if not chosen:
        raise InputError(
            f"`split` must have at least one turn. Got none in {args.split!r}. Take another --test-share or "
            "--split-seed, or --split all."
        )
    return chosen


Answered = tuple[str, str, list[str]]
"""Source, response and its hallucinated sentences."""


def chats(turns: Iterable[Answered]) -> Iterator[JsonObject]:
    """Yield one chat a turn: what :class:`ListJudge` asks, and the list of hallucinated sentences as the answer.

    A model tuned on them can be asked by that judge.
    """
    judge = ListJudge()
    for source, response, bad in turns:
        messages = judge.messages(source, response)
        yield {"messages": [*messages, {"role": "assistant", "content": list_text(bad)}]}


JUDGES = ("auto", "tiered", "listed")
"""The judges that label sentences: the automatic pipeline, the annotators' protocol, and direct prompting."""

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
            turns.append(_labeled_turn(row))
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                f"`labels` must be what `deep cognibench label` wrote. Got {type(error).__name__} {error} in row "
                f"{number} of {str(file)!r}. Label again."
            ) from None
    if not turns:
        raise InputError(f"`labels` must hold at least one turn. Got none in {str(file)!r}.")
    return turns


def _labeled_turn(row: Mapping[str, object]) -> AutoTurn:
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


def _fitted_kinds(turns: Sequence[LabeledTurn]) -> Any:
    """Return logistic regression on character n-grams of the published types, weighted so that both count the same."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    sentences = [s for turn in turns for s in turn.sentences if s.kind != "irrelevant"]
    model = make_pipeline(
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
        LogisticRegression(class_weight="balanced", max_iter=1000),
    )
    return model.fit([s.text for s in sentences], [s.kind for s in sentences])


def classified(turns: Iterable[Statements], published: Sequence[LabeledTurn]) -> list[list[str]] | None:
    """Return the types of the sentences of each turn, by a classifier that has not seen the turn's dialogue.

    Returns
    -------
    list of list of str, or None
        None where some classifier would have nothing to tell apart: too few published dialogues of both types.
    """
    known = {turn.dialogue_id for turn in published}

    @cache
    def classifier(fold: int | None) -> Any:
        others = [turn for turn in published if fold is None or _fold(turn.dialogue_id) != fold]
        kinds = {s.kind for turn in others for s in turn.sentences} - {"irrelevant"}
        return _fitted_kinds(others) if len(kinds) == 2 else None

    found = []
    for dialogue_id, sentences in turns:
        model = classifier(_fold(dialogue_id) if dialogue_id in known else None)
        if model is None:
            return None
        found.append([str(kind) for kind in model.predict(list(sentences))] if sentences else [])
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
