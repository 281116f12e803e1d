"""CogniBench's turns as sentences, published ones with their verdicts, and the labels that a judge gave to them."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from deep._util.files import JsonObject
from deep._util.options import option
from deep.console import naming_option
from deep.datasets import read_examples, read_judgments, read_rows
from deep.datasets.benchmarks import BENCHMARKS, require_folder
from deep.exceptions import InputError
from deep.experiments.tiered import TIERS, ListJudge, SentenceVerdict, list_text
from deep.integrations.benchmarks import CogniBenchTurn, load_turns
from deep.judges import parse_voter

# The published names, as they are spelled there, in the order of `TIERS`.
_TIER_LISTS = ("misleading_list", "speculative_list", "realiable_list", "unequivocal_list")

# For each turn, whether each of its sentences was found hallucinated; None where that was left open.
SentenceFlags = Sequence[Sequence[bool | None]]


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a dialogue, with its sentences.

    Parameters
    ----------
    turn_id, dialogue_id : str
        Ids of the turn and of its dialogue; of an example that was voted on, those of the example and its document.
    source : str
        The text that the dialogue is about, and the dialogue before the response.
    response : str
        The assistant's text, whole.
    sentences : tuple of SentenceVerdict
        Published ones with a type, or those that a judge labeled; in the order of the response.
    generator : str, optional
        The LLM that wrote the response, where the data say it.
    index : int
        Of a published turn: its number in the dialogue, from 0.
    knowledge : str
        The text that the dialogue is about.
    n_keys : int
        Sentences in the published dictionary.
    n_untyped : int
        Those of them that have no type.
    """

    turn_id: str
    dialogue_id: str
    source: str
    response: str
    sentences: tuple[SentenceVerdict, ...]
    generator: str | None = None
    index: int = 0
    knowledge: str = ""
    n_keys: int = 0
    n_untyped: int = 0

    @property
    def texts(self) -> list[str]:
        """The sentences' texts."""
        return [sentence.text for sentence in self.sentences]

    def to_row(self) -> JsonObject:
        """Return the turn as it is written; the keys of an example come first."""
        identity = {"example_id": self.turn_id, "dataset": "cognibench-labeled", "document_id": self.dialogue_id}
        example = {"source": self.source, "claim": self.response, **identity}
        names = ("text", "kind", "verdict", "votes")
        sentences = [{name: getattr(sentence, name) for name in names} for sentence in self.sentences]
        return {**example, "model": self.generator, "sentences": sentences}


def read_turns(data: str) -> list[Turn]:
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
    with naming_option("data"):
        return folder, load_turns(folder)


def _turn(turn: CogniBenchTurn, labels: JsonObject, folder: Path) -> Turn:
    try:
        sentences = [
            *(SentenceVerdict(text, "irrelevant", "irrelevant") for text in labels["irrelevant_list"]),
            *(
                SentenceVerdict(text, "factual", "invented" if text in labels["factual_hallu_list"] else "faithful")
                for text in labels["factual_list"]
            ),
            *(SentenceVerdict(text, "cognitive", _tier(text, labels)) for text in labels["cognitive_list"]),
        ]
        misleading = {text.casefold() for text in labels["misleading_list"]}
        keys = turn.sentences.items()
        untyped = sum(not value[0] and text.casefold() not in misleading for text, value in keys)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise InputError(
            f"`data` must have the published lists of sentences. Got {type(error).__name__} {error} at turn "
            f"{turn.turn_id!r} of {str(folder)!r}. Download labels.json again."
        ) from None
    return Turn(
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


def _tier(text: str, labels: JsonObject) -> str:
    result = [tier for name, tier in zip(_TIER_LISTS, TIERS, strict=True) if text in labels[name]]
    if len(result) != 1:
        raise KeyError(f"{len(result)} tiers for {text[:60]!r}")
    return result[0]


def _places(response: str, sentences: Sequence[SentenceVerdict]) -> Callable[[SentenceVerdict], int]:
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


def counts_of(turns: Sequence[Turn]) -> dict[str, int]:
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
    quantile = int.from_bytes(sha256(f"{seed} {dialogue_id}".encode()).digest()[:8]) / 2**64
    return split == "all" or (quantile < share) == (split == "test")


def turns_of_split(turns: Iterable[Turn], args: argparse.Namespace) -> list[Turn]:
    """Return the turns of the split that the options of :class:`Split` name.

    Raises
    ------
    InputError
        The share is not in (0, 1), or no turn is in the split.
    """
    if not 0 < args.test_share < 1:
        raise InputError(f"`test_share` must lie in (0, 1). Got {args.test_share!r}.")
    result = [turn for turn in turns if in_split(turn.dialogue_id, args.split, args.test_share, args.split_seed)]
    if not result:
        raise InputError(
            f"`split` must have at least one turn. Got none in {args.split!r}. Take another --test-share or "
            "--split-seed, or --split all."
        )
    return result


# Source, response and its hallucinated sentences.
Answered = tuple[str, str, list[str]]


def chats(turns: Iterable[Answered]) -> Iterator[JsonObject]:
    """Yield one chat a turn: what :class:`ListJudge` asks, and the list of hallucinated sentences as the answer.

    A model tuned on them can be asked by that judge.
    """
    judge = ListJudge()
    for source, response, bad in turns:
        messages = judge.messages(source, response)
        yield {"messages": [*messages, {"role": "assistant", "content": list_text(bad)}]}


# The judges that label sentences: the automatic pipeline, the annotators' protocol, and direct prompting.
JUDGES = ("auto", "tiered", "listed")

KINDS = {"irrelevant": "irrelevant", "faithful": "factual", "invented": "factual", **dict.fromkeys(TIERS, "cognitive")}


def read_labels(path: Path) -> list[Turn]:
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


def _labeled_turn(row: Mapping[str, object]) -> Turn:
    fields: JsonObject = dict(row)
    sentences = tuple(
        SentenceVerdict(s["text"], s["kind"], s["verdict"], votes=s["votes"]) for s in fields["sentences"]
    )
    for sentence in sentences:
        sentence.hallucinated("grounded")  # raises where its verdict is unknown
    name, document = str(fields["example_id"]), str(fields["document_id"])
    return Turn(name, document, fields["source"], fields["claim"], sentences, fields["model"])


def read_voted(examples: str, votes: Sequence[str], voter: str | None) -> list[Turn]:
    """Return the labels that a judge of sentences gave to examples, from what lies beside its votes.

    Parameters
    ----------
    examples : str
        The file or the benchmark that was voted on.
    votes : sequence of str
        Paths of tables of votes, beside which the labels of sentences lie.
    voter : str, optional
        The column, where several judges of sentences voted.

    Raises
    ------
    InputError
        No such judge voted, or several did; or the votes are of other examples.
    """
    details = [d for d in read_judgments(votes) if parse_voter(d.voter).name.partition(":")[0] in JUDGES]
    voters = list(dict.fromkeys(detail.voter for detail in details))
    judge = voter if voter is not None else voters[0] if len(voters) == 1 else None
    if judge not in voters:
        names = ", ".join(voters) or "none"
        raise InputError(
            f"`voter` must be one judge of sentences ({', '.join(JUDGES)}) whose labels lie beside the votes: {names}. "
            f"Got {voter!r}."
        )
    labels = {(d.dataset, d.item_id): d for d in details if d.voter == judge}
    turns = []
    for example in read_examples(examples):
        detail = labels.get((example.dataset or "", example.example_id))
        if detail is not None:
            sentences = tuple(SentenceVerdict(p.text, *_kind_and_verdict(p.verdict)) for p in detail.passages)
            document = example.document_id or example.example_id
            turns.append(Turn(example.example_id, document, example.source, example.claim, sentences))
    if not turns:
        raise InputError(f"`data` must hold the examples that were voted on. Got none of them in {examples!r}.")
    return turns


def _kind_and_verdict(verdict: str | None) -> tuple[str | None, str | None]:
    is_decided = verdict is not None and not verdict.startswith("undecided")
    return KINDS.get((verdict or "").removeprefix("at least ")), verdict if is_decided else None


def complete(turns: Sequence[Turn], level: str) -> Iterator[tuple[Turn, list[str]]]:
    """Yield the turns whose every sentence is decided, each with its hallucinated sentences."""
    for turn in turns:
        bad = [sentence.hallucinated(level) for sentence in turn.sentences]
        if bad and None not in bad:
            yield turn, [s.text for s, is_bad in zip(turn.sentences, bad, strict=True) if is_bad]


# Parts of the dialogues, each of which is classified by what the others teach.
N_FOLDS = 5


def _fitted_kinds(turns: Sequence[Turn]) -> Any:
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


def classify_sentences(turns: Iterable[Turn], published: Sequence[Turn]) -> list[list[str]] | None:
    """Return the types of the sentences of each turn, by a classifier that has not seen the turn's dialogue.

    Returns
    -------
    list of list of str, or None
        None where some classifier would have nothing to tell apart: too few published dialogues of both types.
    """
    training_ids = {turn.dialogue_id for turn in published}

    @cache
    def classifier(fold: int | None) -> Any:
        others = [turn for turn in published if fold is None or _fold(turn.dialogue_id) != fold]
        kinds = {s.kind for turn in others for s in turn.sentences} - {"irrelevant"}
        return _fitted_kinds(others) if len(kinds) == 2 else None

    result = []
    for turn in turns:
        model = classifier(_fold(turn.dialogue_id) if turn.dialogue_id in training_ids else None)
        if model is None:
            return None
        result.append([str(kind) for kind in model.predict(turn.texts)] if turn.texts else [])
    return result


def _fold(dialogue_id: str) -> int:
    return sha256(dialogue_id.encode()).digest()[0] % N_FOLDS


def accuracy_of(kinds: Sequence[Sequence[str]], turns: Sequence[Turn]) -> float | None:
    """Return the mean share of factual and of cognitive sentences whose type is right; None where one is missing."""
    right: dict[str, list[bool]] = {"factual": [], "cognitive": []}
    for of_turn, turn in zip(kinds, turns, strict=True):
        for kind, sentence in zip(of_turn, turn.sentences, strict=True):
            if sentence.kind in right:
                right[sentence.kind].append(kind == sentence.kind)
    shares = [sum(hits) / len(hits) for hits in right.values() if hits]
    return sum(shares) / 2 if len(shares) == 2 else None
