"""A train and a test split by dialogue that every file of turns shares."""

import argparse
from collections.abc import Iterable
from hashlib import sha256
from typing import Protocol, TypeVar

from deep.console import CommandParser
from deep.exceptions import InputError

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
    >>> from deep.experiments.cognibench._split import in_split
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
