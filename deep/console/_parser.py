"""The parser of every command: its help, its sub-commands, options of several values, and the file of a run.

A command's options are written as TOML beside its output, and read again by ``--config``.
"""

import argparse
import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr
from inspect import cleandoc
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Protocol, Self

from deep._util.files import RESULTS, atomic_file, parse_toml, read_bytes
from deep._util.options import Option
from deep.console._output import check_apart, fit_to_terminal
from deep.exceptions import LOG, DeepError, InputError, note, printable


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
        # A word with a comma may be the name of a file.
        files = {word for word in words if os.path.exists(word)}  # noqa: PTH110
        parts = [part for word in words for part in ([word] if word in files else word.split(","))]
        if not (names := [part.strip() for part in parts if part.strip()]):
            raise argparse.ArgumentError(self, f"must name at least one. Got {' '.join(words)!r}")
        current = getattr(namespace, self.dest)
        before = [] if current is self.default else current
        setattr(namespace, self.dest, [*before, *names])


# The most options that a usage names: more of them take lines, and each has its own line below.
OPTIONS_IN_USAGE = 4


class HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the layout of examples, shows defaults that the help does not mention, and leaves out rare options."""

    def add_usage(
        self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None = None
    ) -> None:
        """Add the usage: what must be given, and where there are many options, no more than that there are some."""
        actions = list(actions)
        optional = [action for action in actions if action.option_strings and not action.required]
        if len(optional) > OPTIONS_IN_USAGE:
            some = argparse.Action([], "options", metavar="[options]")
            must = [action for action in actions if action.option_strings and action.required]
            actions, groups = [*must, some, *(action for action in actions if not action.option_strings)], []
        super().add_usage(usage, actions, groups, prefix)

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.ONE_OR_MORE:
            return f"{self._metavar_formatter(action, default_metavar)(1)[0]} ..."
        return super()._format_args(action, default_metavar)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return fit_to_terminal(super()._fill_text(text, width, indent))

    def _get_help_string(self, action: argparse.Action) -> str | None:
        mentioned = action.default is False or action.default in (None, []) or "default" in (action.help or "")
        return action.help if mentioned else super()._get_help_string(action)


def add_option(parser: "argparse.ArgumentParser | argparse._ArgumentGroup", one: Option) -> None:
    """Add an option to a parser, under its heading."""
    kinds: dict[object, dict[str, Any]] = {
        bool: {"action": "store_true"},
        list: {"action": Values, "nargs": "+"} if one.flags[0].startswith("--") else {},  # by place a word is a value
        str: {},
    }
    settings: dict[str, Any] = {"default": one.default, **kinds.get(one.type, {"type": one.type}), **one.parser}
    settings.pop("flags", None)
    settings |= {name: settings[name]() for name in ("choices", "default") if callable(settings.get(name))}
    if one.group is not None and isinstance(parser, argparse.ArgumentParser):
        titles = {group.title: group for group in parser._action_groups}
        parser = titles[one.group] if one.group in titles else parser.add_argument_group(one.group)
    # argparse formats help by %.
    action = parser.add_argument(*one.flags, help=one.purpose.replace("%", "%%"), **settings)
    vars(action)["rare"] = one.rare


# The options on how much a command says, with their help.
LEVELS = {"--quiet": "write only errors to standard error", "--verbose": "also write steps, times and tracebacks there"}


class Command(Protocol):
    """A module of ``deep.commands`` or a study of ``deep.experiments``; its docstring is its help."""

    __doc__: str | None

    def add_arguments(self, parser: "CommandParser") -> None:
        """Add the options."""

    def run(self, args: argparse.Namespace) -> int | None:
        """Do the work, print the result, and return the exit status; None where the work is done."""


def help_of(command: object) -> tuple[str, str]:
    """Return the purpose of a command and its examples, the two parts of its docstring."""
    description, _, examples = cleandoc(command.__doc__ or "").partition("\n\nFor instance:\n\n")
    return description, f"examples:\n{examples}\n"


class ParsedCommand(NamedTuple):
    """A parsed command: its parser, its options before the command changed any, and as they stand."""

    parser: argparse.ArgumentParser
    options: Mapping[str, Any]
    args: argparse.Namespace
    level: str


class Subcommand(NamedTuple):
    """One of several things that a command does."""

    name: str
    purpose: str
    add_arguments: "Callable[[CommandParser], None]"
    run: Callable[[argparse.Namespace], int | None]
    examples: str = ""

    @classmethod
    def of(cls, name: str, command: Any, *options: "Callable[[CommandParser], None]") -> Self:
        """Make a sub-command of a module, or of a function and its options; the docstring is the help."""
        purpose, examples = help_of(command)
        add_arguments, run = (*options, command) if options else (command.add_arguments, command.run)
        return cls(name, purpose, add_arguments, run, examples)


class CommandParser(argparse.ArgumentParser):
    """The options of a command or of one of its sub-commands.

    Parameters
    ----------
    parts : sequence of Subcommand
        Sub-commands of guests, beside the command's own.
    **settings
        Of `argparse.ArgumentParser`.

    Attributes
    ----------
    everything : bool
        Whether help shows rare options, too, and behind them the `details`.
    details : str
        Text that help shows last, with `everything` alone.
    """

    everything = False
    details = ""

    def __init__(self, *, parts: "Sequence[Subcommand]" = (), **settings: Any) -> None:
        super().__init__(formatter_class=HelpFormatter, allow_abbrev=False, **settings)
        self._help_all = self.add_argument("--help-all", action="help", help="also show options that are rarely needed")
        for option, purpose in LEVELS.items():
            vars(self.add_argument(option, action="store_true", help=purpose))["rare"] = True
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
            In the order of the help; those that entry points name come behind them.
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
                    f"  {self.prog} {each.name}: {_sentence(each.purpose)}" for each in subcommands if each.name != name
                ]
                parser.epilog = "\n".join([self.epilog or "", "other commands:", *others, ""])
            else:
                parser = rooms.add_parser(name, help=_sentence(purpose), description=purpose, epilog=examples)
            add_arguments(parser)
            shared(parser)
            add_config(parser)
            parser.set_defaults(subcommand=run)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Return the options; exit with status 2, or 0 after help, as argparse does."""
        return self.parse_command(words).args

    def parse_command(self, words: Sequence[str]) -> ParsedCommand:
        """Return the command as it is asked; exit with status 2, or 0 after help, as argparse does.

        Raises
        ------
        InputError
            The output would take the place of a file that is read, or the file of ``--config`` cannot be used.
        """
        has_name = self._standard is None or (words and words[0] in self._rooms)
        words = list(words) if has_name else [str(self._standard), *words]
        head, rest = (words[:1], words[1:]) if words and words[0] in self._rooms else ([], words)
        room = self._rooms[head[0]] if head else self
        room.everything = "--help-all" in rest
        args = self.parse_args([*head, *with_config(room, rest)])
        quiet, verbose = vars(args).pop("quiet"), vars(args).pop("verbose")
        check_apart(args)
        return ParsedCommand(room, dict(vars(args)), args, "ERROR" if quiet else "DEBUG" if verbose else "WARNING")

    def format_help(self) -> str:
        """Return the help; with `everything` that of rare options, and the `details`."""
        rare = [] if self.everything else [action for action in self._actions if getattr(action, "rare", False)]
        for action in rare or [self._help_all]:
            action.help = argparse.SUPPRESS
        return super().format_help() + (self.details if self.everything else "")

    def print_help(self, file: Any = None) -> None:
        """Write the help; an output that cannot be written is an error, which argparse passes over."""
        (file or sys.stdout).write(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line, whatever the words that it repeats; propose an option like a wrong one."""
        wrong = message.removeprefix("unrecognized arguments: ").partition(" ")[0]
        flags = {flag for each in (self, *self._rooms.values()) for flag in each._option_string_actions} - {wrong}
        similar = did_you_mean(wrong, sorted(flags)) if wrong.startswith("--") else ""
        super().error(printable(f"{message}.{similar}" if similar else message))


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a sentence that proposes the known word most like another; empty where none is.

    Examples
    --------
    >>> from deep.console import did_you_mean
    >>> did_you_mean("vote", ["fit", "votes"])
    ' Did you mean `votes`?'
    """
    from difflib import get_close_matches  # an error alone needs it

    result = get_close_matches(word, list(choices), 1)
    return f" Did you mean `{result[0]}`?" if result else ""


def _sentence(purpose: str) -> str:
    """Return the first sentence of a purpose, as it stands behind a colon."""
    first = purpose.partition("\n")[0].rstrip(".")
    return first[:1].lower() + first[1:]


def run_subcommand(args: argparse.Namespace) -> int | None:
    """Run the sub-command that was named; `args` then holds its options and nothing else."""
    run: Callable[[argparse.Namespace], int | None] = vars(args).pop("subcommand")
    return run(args)


# Options that say how a run is shown, not what it does: no record holds them.
UNRECORDED_OPTIONS = ("config", "help", "help_all", "json", "subcommand")

# The sign for a password in a ledger's address.
MASKED_PASSWORD = ":***@"


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` to a command that writes something."""
    if any(action.dest == "out" for action in parser._actions):
        purpose = "load a .run.toml; options given here take precedence"
        parser.add_argument("--config", metavar="RUN.toml", help=purpose)


def with_config(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the words of a command with those that its ``--config`` stands for before them."""
    path = next((after for word, after in zip(words, [*words, ""][1:], strict=True) if word == "--config"), None)
    path = next((word.partition("=")[2] for word in words if word.startswith("--config=")), path)
    if not path:
        return list(words)
    skip = {word.partition("=")[0] for word in words if word.startswith("-")}
    # What is given by place takes the place of all that was given so.
    if not words[0].startswith("-"):
        skip.add("")
    return [*_words(parser, read_run(path, parser.prog)["options"], Path(path).parent, skip), *words]


def read_run(path: str, prog: str | None = None) -> dict[str, Any]:
    """Return the contents of a run file.

    Raises
    ------
    InputError
        It cannot be read, or is of another command.
    """
    try:
        result = parse_toml(read_bytes(path, "config"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`config` must be a run.toml that deep wrote. Got {path!r}: {reason}.") from None
    if result.get("schema_version") != 1 or not isinstance(result.get("options"), dict):
        raise InputError(f"`config` must be a run.toml that deep wrote, of schema_version 1. Got {path!r}.")
    if prog is not None and result.get("command") != prog:
        raise InputError(f"`config` must be of `{prog}`. Got the options of `{result.get('command')}` in {path!r}.")
    judges, prices = result.setdefault("judges", []), result.setdefault("prices", {})
    if not isinstance(judges, list) or not all(isinstance(one, str) for one in judges) or not isinstance(prices, dict):
        raise InputError(f"`config` must list `judges` by name, and `prices` in a table. Got others in {path!r}.")
    return result


def _words(parser: argparse.ArgumentParser, options: Mapping[str, Any], folder: Path, skip: set[str]) -> Iterator[str]:
    """Yield the words that give options again, but for those that are given otherwise."""
    actions = {
        name: action
        for action in parser._actions
        # An earlier version may have had another name for it, which is one of its flags.
        for name in (action.dest, *(flag.strip("-").replace("-", "_") for flag in action.option_strings))
    }
    if unknown := [name for name in options if name not in actions]:
        raise InputError(f"`config` must name options of `{parser.prog}`. Got {unknown[0]!r}.")
    # What is given by place first: behind an option that takes several words it would be one of them.
    for name, value in sorted(options.items(), key=lambda pair: bool(actions[pair[0]].option_strings)):
        flags = actions[name].option_strings or [""]
        if skip & {*flags}:
            continue
        if isinstance(value, bool) is not (actions[name].nargs == 0):
            takes = "true or false" if actions[name].nargs == 0 else "a value"
            raise InputError(f"`{name}` must be {takes} in the file of `config`. Got {value!r}.")
        if isinstance(value, bool):
            yield flags[0] if value else flags[-1]
            continue
        for one in value if isinstance(value, list) else [value]:
            word = _path_from_here(one, folder) if isinstance(one, str) else str(one)
            if MASKED_PASSWORD in word:
                raise InputError(f"`{name}` must be given: its password is not kept. Got {word!r}.")
            yield f"{flags[0]}={word}" if flags[0] else word


def _path_from_here(value: str, folder: Path) -> str:
    """Return a value with its path, if it is one, as it is reached from where the command runs."""
    head, equals, tail = value.rpartition("=")
    return f"{head}{equals}{os.path.normpath(folder / tail)}" if tail.startswith(("./", "../")) else value


def _path_from_folder(value: str | Path, folder: Path) -> str:
    """Return a value with its path, if it is one, as it is reached from a folder; a password is left out."""
    if "://" in str(value):
        from deep.llm import describe_ledger

        return describe_ledger(str(value))
    head, equals, tail = str(value).rpartition("=")
    if not (isinstance(value, Path) or ("\0" not in tail and tail and os.path.exists(tail))):  # noqa: PTH110
        return str(value)
    # Relative to the file of the run, so that a folder that is moved as a whole still runs.
    there = Path(os.path.relpath(tail, folder)).as_posix()
    return f"{head}{equals}{there if there.startswith('../') else f'./{there}'}"


@contextmanager
def notes_on_stderr(command: ParsedCommand) -> Iterator[None]:
    """Write the library's notes to standard error: none, the usual ones, or all with the time that the command took."""
    before, start = LOG.level, time.monotonic()
    LOG.setLevel(command.level)
    LOG.debug("%s, Python %s, %s", command.parser.prog, sys.version.split()[0], sys.platform)
    try:
        with redirect_stderr(StringIO()) if command.level == "ERROR" else nullcontext():
            yield
    except DeepError:
        LOG.debug("", exc_info=True)
        raise
    finally:
        LOG.debug("%.2f s", time.monotonic() - start)
        LOG.setLevel(before)


@contextmanager
def run_file_written(command: ParsedCommand) -> Iterator[None]:
    """Write a command's options once it has written its output: ``NAME.run.toml`` beside it, or in its folder."""
    out = command.options.get("out")
    if not isinstance(out, Path) or not out.name:
        yield
        return
    # The mark tells after the run whether `out` was written: a run that wrote nothing leaves no record of itself.
    place, before = out.with_name(f"{out.stem}.run.toml"), _output_mark(out)
    if place.exists() and not (out / RESULTS).exists():
        read_run(str(place))  # one of another hand is left as it is
    yield
    if before == _output_mark(out):
        return
    if (out / RESULTS).exists():  # another folder, of prompts or a model, may be read as a whole
        place = out / "run.toml"
    with atomic_file(place) as partial:
        partial.write_text("\n".join(_lines(command, place)) + "\n", encoding="utf-8", errors="backslashreplace")


def _output_mark(out: Path) -> object:
    """Return a mark that tells whether a file, or a folder of results, was written."""
    try:
        status = out.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _lines(command: ParsedCommand, place: Path) -> Iterator[str]:
    """Yield the lines of the run file of a command."""
    from deep import __version__

    yield f"# Written by deep {__version__}. Again: {command.parser.prog} --config {place.name}"
    yield "schema_version = 1"
    yield f"deep = {_toml(__version__)}"
    yield f"command = {_toml(command.parser.prog)}"
    notes = getattr(command.args, "noted", {})
    yield from (f"{name} = {_toml(value)}" for name, value in notes.items() if not isinstance(value, dict))
    yield "\n[options]"
    # Of what is given by place or by name, the name.
    for action in {action.dest: action for action in command.parser._actions}.values():
        value = command.options.get(action.dest)
        if action.dest in UNRECORDED_OPTIONS or value is None or (value == action.default and action.dest != "out"):
            continue
        values = value if isinstance(value, list) else [value]
        portable = [_path_from_folder(one, place.parent) if isinstance(one, str | Path) else one for one in values]
        yield f"{action.dest} = {_toml(portable if isinstance(value, list) else portable[0])}"
    for name, table in notes.items():
        if isinstance(table, dict):
            yield f"\n[{name}]"
            yield from (f"{_toml(key)} = {_toml(value)}" for key, value in table.items())


def _toml(value: object) -> str:
    """Return a text, number, truth value or list of these as TOML, of which JSON is a part but for one character."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    # JSON's strings, numbers and lists are TOML's, but for DEL, which TOML wants escaped.
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    # Under LANG=C Python gives the bytes of a path as halves of pairs, which no reader of TOML takes.
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def note_run(
    args: argparse.Namespace, voters: Sequence[str], prices: Mapping[str, Mapping[str, float]] | None = None
) -> None:
    """Keep the versions of judges, and prices, for the run's file; say how they differ from those of ``--config``.

    Parameters
    ----------
    args : Namespace
        The parsed command line; what is kept is its `noted`.
    voters : sequence of str
        The judges' columns, whose names hold their versions.
    prices : mapping of str to mapping, optional
        By LLM the dollars of a million tokens, where they are known.
    """
    args.noted = {"judges": list(voters)} | ({"prices": dict(prices)} if prices else {})
    if getattr(args, "config", None):
        from deep.judges import parse_voter

        earlier, changed = read_run(args.config), "Changed since the run of `config`:"
        # Without its version a judge of then and now is one judge, which may have changed.
        both = voters, earlier["judges"]
        now, then = ({parse_voter(name)._replace(version=None): name for name in names} for names in both)
        for judge, name in now.items():
            if then.get(judge) != name:
                before = f"{then[judge]} is {name} now" if judge in then else f"{name} is new"
                note(f"{changed} {before}. Only its missing answers are asked.")
        for name in (name for judge, name in then.items() if judge not in now):
            note(f"{changed} {name} is gone.")
        for name, price in (prices or {}).items():
            if (before := earlier["prices"].get(name, price)) != price:
                note(f"{changed} a million tokens of {name} cost {price} now, then {before}.")


BASH = r"""
_deep() {{
    local these cur=${{COMP_WORDS[COMP_CWORD]}}
    case "$COMP_CWORD ${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
        1\ *) these="{commands}" ;;
{cases}
    esac
    COMPREPLY=($(compgen -W "$these" -- "$cur"))
}}
complete -o default -F _deep deep
"""

SHELLS = {"bash": BASH, "fish": "", "zsh": f"autoload -U +X compinit bashcompinit && compinit -u && bashcompinit{BASH}"}


def completion(shell: str, parsers: Mapping[str, CommandParser]) -> str:
    """Return a script that completes `deep` in a shell.

    Parameters
    ----------
    shell : {'bash', 'fish', 'zsh'}
        The shell that reads the script.
    parsers : mapping of str to CommandParser
        By command.

    Raises
    ------
    InputError
        The shell is another one.
    """
    if shell not in SHELLS:
        raise InputError(f"`completion` must be one of {', '.join(SHELLS)}. Got {shell!r}.")
    words = {"": [*parsers, "--help", "--version"]}
    for name, parser in parsers.items():
        usual = parser._rooms.get(parser._standard or "", parser)
        words |= {f"{name} {part}": flags_of(room) for part, room in parser._rooms.items()}
        words[name] = [*parser._rooms, *flags_of(usual)]
    if shell == "fish":
        return "".join(
            f"complete -c deep -n '{_words_typed(path)}' -a '{' '.join(these)}'\n" for path, these in words.items()
        )
    # `data check` stands before `data`; its second word is being typed where the count is 2.
    cases = [
        rf'        {"[!2]*" if part else "*"}\ {name}\ {part or "*"}) these="{" ".join(these)}" ;;'
        for (name, _, part), these in ((path.partition(" "), these) for path, these in words.items() if path)
    ]
    return SHELLS[shell].format(commands=" ".join(words[""]), cases="\n".join(cases))


def flags_of(parser: CommandParser) -> list[str]:
    """Return the long options of a command."""
    return [flag for flag in parser._option_string_actions if flag.startswith("--")]


def _words_typed(path: str) -> str:
    """Return fish's condition that these words have been typed."""
    return "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path.split()) or "__fish_use_subcommand"
