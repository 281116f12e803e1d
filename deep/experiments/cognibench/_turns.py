"""The published turns of CogniBench as sentences, each with its type and its verdict."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol, TypeVar

from deep._util.files import JsonObject
from deep.console import CommandParser, named
from deep.datasets.benchmarks import BENCHMARKS, CogniBenchTurn, load_turns, require_folder
from deep.exceptions import InputError
from deep.experiments.tiered import CRITERIA, TIERS, ListJudge, list_text

_TIER_LISTS = ("misleading_list", "speculative_list", "realiable_list", "unequivocal_list")
"""The published names, as they are spelled there, in the order of `TIERS`."""

_BAD = {"irrelevant": False, "faithful": False, "consistent": False, "invented": True, "hallucinated": True}
"""Verdicts that mean the same at every level."""


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
    found = {}
    for sentence in sentences:
        letters = letters_of(sentence.text)
        # A few published sentences hold a slip of the pen, so that only their beginning stands in the response.
        places = (whole.find(letters[:n]) for n in (len(letters), 30, 12))
        found[sentence.text] = next((place for place in places if place >= 0), len(whole))
    return lambda sentence: found[sentence.text]


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


def add_split(parser: CommandParser, standard: str) -> None:
    """Add the options of the split."""
    add = parser.add_argument
    add("--split", choices=SPLITS, default=standard, help=f"dialogues to take (default: {standard})")
    add("--test-share", type=float, default=0.2, metavar="SHARE", help="dialogues of the test split (default 0.2)")
    add("--split-seed", type=int, default=0, metavar="N", help="seed of the split (default 0)")


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
    """Return the turns of the split that the options of :func:`add_split` name.

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
