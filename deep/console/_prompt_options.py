"""The options of what prompts are shown: labeled examples, and windows of long sources."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deep.exceptions import InputError
from deep.records import Example

if TYPE_CHECKING:
    from deep.prompt_pool import Chunking, FewShot


def add_few_shot_options(parser: argparse.ArgumentParser) -> None:
    """Add the labeled examples that prompts show."""
    add = parser.add_argument
    shown = "labeled examples, or a table of votes with labels, of which prompts show some; none of the same dataset"
    add("--few-shot", metavar="FILE", help=shown)
    add("--shots", type=int, metavar="N", help="how many of them, half of each label (default 4)")


def add_material_options(parser: argparse.ArgumentParser) -> None:
    """Add what prompts are shown: labeled examples, and windows of long sources."""
    add_few_shot_options(parser)
    windows = "cut sources of more than SIZE characters into windows that overlap; about four are a token"
    parser.add_argument("--chunk", metavar="SIZE:OVERLAP", help=windows)


def few_shot_of(args: argparse.Namespace, examples: str | None = None) -> "FewShot | None":
    """Return the labeled examples of ``--few-shot`` and ``--shots``; None where there are none."""
    from deep.asking import read_few_shot

    if args.few_shot is None:
        if args.shots is not None:
            raise InputError(f"`shots` must be given with `few_shot`. Got {args.shots} without.")
        return None
    return read_few_shot(args.few_shot, 4 if args.shots is None else args.shots, examples=examples)


def chunk_of(args: argparse.Namespace) -> "Chunking | None":
    """Return the windows of ``--chunk``; None where sources stay whole."""
    from deep.prompt_pool import Chunking

    return None if args.chunk is None else Chunking.parse(args.chunk)


def shots_for(args: argparse.Namespace, source: str, claim: str) -> "Sequence[Example]":
    """Return the labeled examples of ``--few-shot`` that a prompt shows with one source and claim."""
    few_shot = few_shot_of(args)
    return () if few_shot is None else few_shot.choose(Example(source, claim, "1"))
