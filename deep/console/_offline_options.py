"""The options that name judges which need no LLM."""

import argparse
from typing import TYPE_CHECKING

from deep.console._options import SEVERAL

if TYPE_CHECKING:
    from deep.judge import Judge


def add_offline_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--lexical``, ``--encoder`` and ``--embedding``."""
    group = parser.add_argument_group("judges that need no key")
    group.add_argument("--lexical", **SEVERAL, metavar="NAME", help="lexical checks by name, or all of them: all")
    model = "by id on the hub or by folder; NAME=FOLDER gives it another name"
    ways = "before it, WAY: of summac-zs, minicheck, hhem, lettucedetect uses it as published"
    group.add_argument("--encoder", **SEVERAL, metavar="ID|FOLDER", help=f"NLI or consistency models, {model}; {ways}")
    group.add_argument("--embedding", **SEVERAL, metavar="ID|FOLDER", help=f"sentence-embedding models, {model}")


def offline_judges(args: argparse.Namespace) -> "list[Judge]":
    """Return the judges that the options name.

    Raises
    ------
    InputError
        There is no check or model of that name.
    MissingDependencyError
        A model is asked for and the libraries to run it are not installed.
    """
    from deep.asking import judges_of

    return [
        *judges_of("lexical", args.lexical),
        *judges_of("encoder", args.encoder),
        *judges_of("embedding", args.embedding),
    ]
