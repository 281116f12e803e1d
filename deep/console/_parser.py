"""The parser of every command: its help, its sub-commands, and options that take several values."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn, Protocol, Self

from deep.console._output import check_apart, fitted
from deep.console._run_file import Asked, add_config, with_config
from deep.exceptions import printable


class Values(argparse.Action):
    """An option of several values: repeated, separated by blanks, or by commas.

    A value that is itself the name of an existing file is never cut at its commas.
    """

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002  argparse hands it over by position
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,  # noqa: ARG002
    ) -> None:
        """Add the values to those given before; with nothing but blanks and commas it would count as not given."""
        words = [str(value) for value in values or ()]
        # A Path would raise on a word that is too long for a file's name.
        files = {word for word in words if os.path.exists(word)}  # noqa: PTH110
        parts = [part for word in words for part in ([word] if word in files else word.split(","))]
        if not (named := [part.strip() for part in parts if part.strip()]):
            raise argparse.ArgumentError(self, f"must name at least one. Got {' '.join(words)!r}")
        seen = getattr(namespace, self.dest)
        before = [] if seen is self.default else seen
        setattr(namespace, self.dest, [*before, *named])


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples and shows defaults that the help does not mention itself."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return fitted(super()._fill_text(text, width, indent))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        mentioned = action.default is False or action.default in (None, []) or "default" in (action.help or "")
        return action.help if mentioned else super()._get_help_string(action)


class Command(Protocol):
    """A module of ``deep.commands`` or a study of ``deep.experiments``; its docstring is its help."""

    __doc__: str | None

    def add_arguments(self, parser: "CommandParser") -> None:
        """Add the options."""

    def run(self, args: argparse.Namespace) -> int:
        """Do the work, print the result, and return the exit status."""


def help_of(command: Command) -> tuple[str, str]:
    """Return the purpose of a command and its examples, the two parts of its docstring."""
    description, _, examples = (command.__doc__ or "").partition("\n\nFor instance:\n\n")
    return description, f"examples:\n{examples}"


class Subcommand(NamedTuple):
    """One of several things that a command does."""

    name: str
    purpose: str
    add_arguments: "Callable[[CommandParser], None]"
    run: Callable[[argparse.Namespace], int]
    examples: str = ""

    @classmethod
    def of(cls, name: str, command: Command) -> Self:
        """Make a sub-command of a module."""
        purpose, examples = help_of(command)
        return cls(name, purpose, command.add_arguments, command.run, examples)


class CommandParser(argparse.ArgumentParser):
    """The options of a command or of one of its sub-commands.

    Parameters
    ----------
    parts : sequence of Subcommand
        Sub-commands of guests, beside the command's own.
    **settings
        Of `argparse.ArgumentParser`.
    """

    def __init__(self, *, parts: "Sequence[Subcommand]" = (), **settings: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, allow_abbrev=False, **settings)
        self._parts = tuple(parts)
        self._rooms: dict[str, CommandParser] = {}
        self._standard: str | None = None

    def add_subcommands(
        self,
        *subcommands: Subcommand,
        standard: str | None = None,
        shared: "Callable[[CommandParser], None]" = lambda _: None,
    ) -> None:
        """Add sub-commands.

        Parameters
        ----------
        *subcommands : Subcommand
        standard : str, optional
            The one that runs where none is named; its help lists the others.
        shared : callable, optional
            Adds the options that all have in common.
        """
        subcommands = (*subcommands, *self._parts)
        self._standard = standard
        rooms = self.add_subparsers(required=True, metavar=" | ".join(each.name for each in subcommands))
        self._rooms = rooms.choices
        for name, purpose, add_arguments, run, examples in subcommands:
            if name == standard:
                parser = rooms.add_parser(name, prog=self.prog, description=self.description, epilog=self.epilog)
                others = [
                    f"  {self.prog} {each.name}: {_brief(each.purpose)}" for each in subcommands if each.name != name
                ]
                parser.epilog = "\n".join([self.epilog or "", "other commands:", *others, ""])
            else:
                parser = rooms.add_parser(name, help=purpose, description=purpose, epilog=examples)
            add_arguments(parser)
            shared(parser)
            add_config(parser)
            parser.set_defaults(subcommand=run)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options; exit with status 2, or 0 after help, as argparse does."""
        return self.asked(words).args

    def asked(self, words: Sequence[str]) -> Asked:
        """Return the command as it is asked; exit with status 2, or 0 after help, as argparse does.

        Raises
        ------
        InputError
            The output would take the place of a file that is read, or the file of ``--config`` cannot be used.
        """
        named = self._standard is None or (words and words[0] in self._rooms)
        words = list(words) if named else [str(self._standard), *words]
        head, rest = (words[:1], words[1:]) if words and words[0] in self._rooms else ([], words)
        room = self._rooms[head[0]] if head else self
        args = self.parse_args([*head, *with_config(room, rest)])
        check_apart(args)
        return Asked(room, dict(vars(args)), args)

    def print_help(self, file: Any = None) -> None:
        """Write the help; an output that cannot be written is an error, which argparse passes over."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line, whatever the words that it repeats."""
        super().error(printable(message))


def _brief(purpose: str) -> str:
    """Return the first sentence of a purpose, as it stands behind a colon."""
    first = purpose.partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def run_subcommand(args: argparse.Namespace) -> int:
    """Run the sub-command that was named; `args` then holds its options and nothing else."""
    run: Callable[[argparse.Namespace], int] = vars(args).pop("subcommand")
    return run(args)
