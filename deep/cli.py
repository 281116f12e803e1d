"""The `deep` command: the table of commands, and, once for all of them, errors, exit statuses and Ctrl-C."""

import ast
import os
import signal
import sys
import warnings
from _thread import interrupt_main
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module, util
from importlib.metadata import EntryPoint
from io import FileIO, RawIOBase, TextIOWrapper
from pathlib import Path
from threading import Timer
from typing import Any, cast

from deep import console
from deep._util import entry_points
from deep.exceptions import DeepError, DeepWarning, ExitStatus, InputError, StoppedError, printable

__all__ = ["ALIASES", "COMMANDS", "GROUPS", "RENAMED", "command_parser", "main"]

# By group, as `deep --help` has them: the module of each command of the core, a :class:`deep.console.Command`, and its
# purpose. Guests and other packages bring theirs by entry points.
GROUPS = {
    "ask and read": {
        "ask": ("deep.commands.ask", "ask LLMs; a vote or a reason for every example, prompt and model"),
        "data": (
            "deep.commands.data",
            "benchmarks and examples: list, describe, fetch, check, leakage; moments: count votes",
        ),
        "prompts": ("deep.commands.prompts", "list, show, render and check the prompts that judge"),
    },
    "fit and score": {
        "export": ("deep.commands.export", "a model as a table (SQL, CSV, Parquet) or as a scorer of one Python file"),
        "fit": ("deep.commands.fit", "learn from votes and any labels, and write the model file"),
        "score": ("deep.commands.score", "P(consistent) of votes or text by a model; explain: the effect of each vote"),
    },
    "look": {
        "panel": ("deep.commands.panel", "the card of each judge; pairs: answers in both orders, and systems ranked"),
        "report": ("deep.commands.report", "one HTML file: figures, judges and items of a run, a model or votes"),
    },
    "a new dataset": {
        "adapt": ("deep.commands.adapt", "correct a model for one dataset by its votes, and labels if any"),
        "check": ("deep.commands.check", "test whether a model holds here: by a few labels, or by drift of the votes"),
        "estimate": ("deep.commands.estimate", "how many items of a dataset are consistent, from votes or with labels"),
        "select": ("deep.commands.select", "decide only where the accuracy reaches your target"),
    },
    "the main job": {
        "loo": ("deep.experiments.loo", "hold one dataset out and compare P(consistent) with every baseline"),
    },
}

# The same rows without their groups.
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}

# Second names of commands: scripts that were written with them run as they did.
ALIASES = {"votes": "ask"}

# Commands that had another name in an earlier version, and their names of today.
RENAMED = {
    "annotate": "label agreement",
    "compare": "panel",
    "data from-inspect": "data from",
    "explain": "score explain",
    "label-next": "label list",
    "moments": "data moments",
    "panel sequential": "score",
    "transfer": "loo --test all --few",
}


def help_text() -> str:
    """Return the text of `deep --help`."""
    groups = {title: {name: purpose for name, (_, purpose) in group.items()} for title, group in GROUPS.items()}
    others = _other_commands()
    for name, entry in sorted(others.usable.items()):
        title = "pages, servers and studies" if entry_points.is_own_entry(entry) else "other packages"
        groups.setdefault(title, {})[name] = _command_purpose(entry)
    width = max(len(name) for group in groups.values() for name in group)
    lines = [
        line
        for title, group in groups.items()
        if group
        for line in (f"{title}:", *(f"  {name:<{width}}  {purpose}" for name, purpose in group.items()), "")
    ]
    if refusals := [*others.refused.values(), *_refused_judges()]:
        lines += ["refused:", *(f"  {why}" for why in refusals), ""]
    return "\n".join(
        [
            "usage: deep COMMAND [options]",
            "",
            "One calibrated P(consistent) from the votes of several weak judges.",
            "",
            *lines,
            "deep COMMAND --help shows its options and examples, for instance:",
            "  deep loo --test aggrefact",
            "deep --completion SHELL completes them in bash, fish or zsh.",
            "",
        ]
    )


def main(argv: Sequence[str] | None = None, *, command: str | None = None) -> int:
    """Run a command and return its exit status.

    The command's module is imported only now, so that help is instant.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the words of the command line.
    command : str, optional
        A key of `COMMANDS`; default: the first word of `argv`.
    """
    # Before anything may write: a stream that is closed would end in a traceback about itself.
    _open_streams()
    try:
        with _interrupts_enabled(), warnings.catch_warnings():
            # Python shows a warning once a place; one of deep's speaks of the data, and another file needs it again.
            warnings.simplefilter("always", DeepWarning)
            warnings.showwarning = partial(_show_warning, set())
            try:
                return _run_words(list(sys.argv[1:] if argv is None else argv), command)
            finally:
                sys.stdout.flush()
    except DeepError as error:
        return _fail(f"error: {error}", ExitStatus.ERROR)
    except StoppedError as stop:
        return _fail(str(stop), stop.status)
    except KeyboardInterrupt:
        return _fail("interrupted; nothing was written", ExitStatus.INTERRUPTED)
    except ImportError as error:
        if not entry_points.is_missing_part(error):
            raise
        lack = f"error: `COMMAND` must have all its parts installed. Got: {error}. {entry_points.INSTALL_TIP}"
        return _fail(lack, ExitStatus.ERROR)
    except MemoryError:
        return _fail("error: memory must be enough for the input. Got too little. Split it.", ExitStatus.ERROR)
    except BrokenPipeError:
        _drop_output()
        return ExitStatus.CLOSED_PIPE
    except OSError as error:
        _drop_output()
        subject = "output" if error.filename is None else repr(str(error.filename))
        why = error.strerror or str(error).partition("\n")[0]
        return _fail(f"error: {subject} must be usable. Got: {why}. Make room or choose another.", ExitStatus.ERROR)


def _show_warning(texts: set[str], message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
    """Write a warning of deep's own once, on one line; others as Python does."""
    ours = issubclass(category, DeepWarning)
    text = f"{printable(f'warning: {message}')}\n" if ours else warnings.formatwarning(message, category, *place[:2])
    # The same sentence twice in one command tells nothing new.
    if text not in texts:
        sys.stderr.write(text)
    texts.add(text)


def _run_words(words: list[str], command: str | None) -> int:
    """Run the command that the words name; without `command` it is the first of them."""
    if command is None:
        if not words or words[0] in ("-h", "--help"):
            sys.stdout.write(console.fit_to_terminal(help_text()))
            return ExitStatus.DONE
        command = words.pop(0)
    command = ALIASES.get(command, command)
    if command == "--version":
        from deep import __version__

        sys.stdout.write(f"deep {__version__}\n")
        return ExitStatus.DONE
    if command == "--completion":
        parsers = {name: command_parser(name) for name in sorted([*COMMANDS, *_other_commands().usable])}
        sys.stdout.write(console.completion("".join(words), parsers))
        return ExitStatus.DONE
    for old in (command, " ".join([command, *words[:1]])):
        if old in RENAMED:
            raise InputError(f"`COMMAND` must be a current name. Got {old!r}. Say `deep {RENAMED[old]}` instead.")
    parts = entry_points.find_entry_points(entry_points.SUBCOMMAND_GROUP).usable
    # A part that was asked for and cannot be loaded is an error; the others are left out of the help.
    if words and f"{command}.{words[0]}" in parts:
        _load_command(parts[f"{command}.{words[0]}"])
    invocation = command_parser(command).parse_command(words)
    with console.notes_on_stderr(invocation), console.run_file_written(invocation):
        dataset, scales = (getattr(invocation.args, name, None) for name in ("dataset", "scale"))
        if dataset is None and not scales:
            return _command(command).run(invocation.args) or ExitStatus.DONE
        from deep._util.frames import table_defaults

        with table_defaults(dataset, scales or ()):
            return _command(command).run(invocation.args) or ExitStatus.DONE


class _ErrorStream(FileIO):
    """Standard error, whose failure fails nothing: a full disk or a reader that went away loses what it was to say.

    Else a warning would end a run, and what Python cannot flush as it ends would make every exit status 120.
    """

    def write(self, data: Any, /) -> int:
        with suppress(OSError):
            return super().write(data)
        return len(data)


def _open_streams() -> None:
    """Give the standard streams one behavior, whether they are open, closed or full, buffered or not.

    A closed one is the null device: a file opened later would take its place. A closed standard output is one that
    every write to fails. What the encoding of an open one lacks is escaped.
    """
    for name, mode in (("stdin", "r"), ("stdout", "r"), ("stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(null, True)  # workers need theirs
            setattr(sys, name, os.fdopen(null, mode))
    # Streams that a caller in this process has put there, a notebook or a test, are the caller's.
    ours = [name for name in ("stdout", "stderr") if getattr(sys, name) is getattr(sys, f"__{name}__")]
    if "stdout" in ours and isinstance(sys.stdout.buffer, RawIOBase):
        # Unbuffered (PYTHONUNBUFFERED), a write of which half found room counts as done, and the rest is lost unsaid.
        sys.stdout = os.fdopen(sys.stdout.fileno(), "w", 1, encoding=sys.stdout.encoding, closefd=False)
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if "stderr" in ours and os.name == "posix":  # a console of Windows takes letters, not bytes
        raw = _ErrorStream(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = TextIOWrapper(raw, sys.stderr.encoding, sys.stderr.errors, line_buffering=True, write_through=True)


def _fail(line: str, status: int) -> int:
    sys.stderr.write(f"{line}\n")
    return status


def _drop_output() -> None:
    """Send standard output to the null device, or Python tries to flush it again as it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def command_parser(name: str) -> console.CommandParser:
    """Return the parser of a command; its docstring is the help."""
    command = _command(name)
    description, examples = console.help_of(command)
    parser = console.CommandParser(
        prog=f"deep {name}", description=description, epilog=examples, parts=list(_entry_subcommands(name))
    )
    command.add_arguments(parser)
    console.add_config(parser)
    return parser


def _entry_subcommands(name: str) -> Iterator[console.Subcommand]:
    """Yield a command's sub-commands that entry points name: `panel.sequential` is `sequential` of `panel`.

    One that cannot be used is left out here, and says why when it is asked for by name: it costs no other its help.
    """
    for path, entry in sorted(entry_points.find_entry_points(entry_points.SUBCOMMAND_GROUP).usable.items()):
        command, _, part = path.partition(".")
        if command == name:
            with suppress(DeepError):
                yield console.Subcommand.of(part, _load_command(entry))


def _command(name: str) -> console.Command:
    """Return a command of deep's own, or one that another package's entry point names."""
    if name in COMMANDS:
        return cast("console.Command", import_module(COMMANDS[name][0]))
    others = _other_commands()
    if name not in others.usable:
        names = sorted([*COMMANDS, *others.usable])
        why = others.refused.get(name, repr(name))
        own = any(map(entry_points.is_own_entry, others.usable.values()))
        remedy = console.did_you_mean(name, names) if own else f" Some are not installed. {entry_points.INSTALL_TIP}"
        raise InputError(f"`COMMAND` must be one of {', '.join(names)}. Got {why}.{remedy}")
    return _load_command(others.usable[name])


def _other_commands() -> entry_points.FoundEntryPoints:
    return entry_points.find_entry_points(entry_points.COMMAND_GROUP, {*COMMANDS, *ALIASES, *RENAMED})


def _refused_judges() -> list[str]:
    """Return a line for each judge of another package that has a name of deep's or of another's."""
    result = entry_points.find_entry_points(entry_points.JUDGE_GROUP)
    if result.refused or not all(map(entry_points.is_own_entry, result.usable.values())):
        from deep.asking import judge_entries  # knows the names of prompts and checks too, and takes time to load

        result = judge_entries()
    return list(result.refused.values())


def _load_command(entry: EntryPoint) -> console.Command:
    """Import another package's command, and raise where it lacks a function or a docstring."""
    command = entry_points.load_entry_point(entry)
    try:
        is_command = all(callable(getattr(command, name, None)) for name in ("add_arguments", "run"))
    except ImportError as error:  # a lazy package loads its parts only now
        if not entry_points.is_missing_part(error):
            raise
        raise entry_points.entry_error(entry, str(error)) from error
    if not is_command:
        raise entry_points.entry_error(entry, "a command has the functions add_arguments and run")
    if not getattr(command, "__doc__", None):
        raise entry_points.entry_error(entry, "a command has a docstring, which is its help")
    return cast("console.Command", command)


def _command_purpose(entry: EntryPoint) -> str:
    """Return the first line of a command's docstring; where it cannot be used, why."""
    try:
        source = util.find_spec(entry.module) if entry_points.is_own_entry(entry) else None
        if source is None or source.origin is None:
            text = _load_command(entry).__doc__
        else:  # deep's own are whole, and to read the sources of all takes less time than to import them
            text = ast.get_docstring(ast.parse(Path(source.origin).read_bytes()))
        return printable(str(text).strip().partition("\n")[0])
    except (DeepError, ImportError) as error:
        return f"cannot be used: {error}"


def _interrupt_again() -> None:
    """Interrupt by a signal that is heard: a command that a script starts in the background ignores Ctrl-C."""
    heard = (signal.SIGINT, signal.SIGTERM)
    interrupt_main(next((number for number in heard if callable(signal.getsignal(number))), signal.SIGINT))


@contextmanager
def _interrupts_enabled() -> Iterator[None]:
    """Raise Ctrl-C again where Python drops it.

    In a callback, of which importing has many, an exception is printed and no more. SIGTERM and a lost terminal end
    a command as Ctrl-C does, unless they are handled or ignored, as by nohup.
    """
    before = sys.unraisablehook

    def hook(unraisable: "sys.UnraisableHookArgs") -> None:
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            # Not at once, for this is still the callback.
            Timer(0.05, _interrupt_again).start()
        else:
            before(unraisable)

    sys.unraisablehook = hook
    numbers = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    unhandled = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
    try:
        with suppress(ValueError):  # not the main thread
            for number in unhandled:
                signal.signal(number, signal.default_int_handler)
        yield
    finally:
        with suppress(ValueError):
            for number in unhandled:
                signal.signal(number, signal.SIG_DFL)
        sys.unraisablehook = before


if __name__ == "__main__":
    sys.exit(main())
