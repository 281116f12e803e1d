"""A command's options as TOML beside its output: written after each run, read again by ``--config``."""

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from deep._util.files import MARKER, parse_toml, read_bytes, whole_file
from deep.exceptions import InputError, printable

NOT_ASKED = ("config", "help", "json", "subcommand")
"""What says how a run is shown, not what it does."""

HIDDEN = ":***@"
"""What stands in a ledger's address for its password."""


class Asked(NamedTuple):
    """A parsed command: its parser, its options before the command changed any, and as they stand."""

    parser: argparse.ArgumentParser
    options: Mapping[str, Any]
    args: argparse.Namespace


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add ``--config`` to a command that writes something."""
    if any(action.dest == "out" for action in parser._actions):
        purpose = "the options of an earlier run, as it wrote them beside its output; those given here go first"
        parser.add_argument("--config", metavar="RUN.toml", help=purpose)


def with_config(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return the words of a command with those that its ``--config`` stands for before them."""
    path = next((after for word, after in zip(words, [*words, ""][1:], strict=True) if word == "--config"), None)
    path = next((word.partition("=")[2] for word in words if word.startswith("--config=")), path)
    if not path:
        return list(words)
    given = {word.partition("=")[0] for word in words if word.startswith("-")}
    if not words[0].startswith("-"):
        given.add("")
    return [*_words(parser, read_run(path, parser.prog)["options"], Path(path).parent, given), *words]


def read_run(path: str, prog: str | None = None) -> dict[str, Any]:
    """Return the contents of a run file.

    Raises
    ------
    InputError
        It cannot be read, or is of another command.
    """
    try:
        found = parse_toml(read_bytes(path, "config"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"`config` must be a run.toml that deep wrote. Got {path!r}: {reason}.") from None
    if found.get("schema_version") != 1 or not isinstance(found.get("options"), dict):
        raise InputError(f"`config` must be a run.toml that deep wrote, of schema_version 1. Got {path!r}.")
    if prog is not None and found.get("command") != prog:
        raise InputError(f"`config` must be of `{prog}`. Got that of `{found.get('command')}` in {path!r}.")
    judges, prices = found.setdefault("judges", []), found.setdefault("prices", {})
    if not isinstance(judges, list) or not all(isinstance(one, str) for one in judges) or not isinstance(prices, dict):
        raise InputError(f"`config` must list `judges` by name, and `prices` in a table. Got others in {path!r}.")
    return found


def _words(parser: argparse.ArgumentParser, options: Mapping[str, Any], folder: Path, given: set[str]) -> Iterator[str]:
    """Yield the words that give options again, but for those that are given otherwise."""
    actions = {action.dest: action for action in parser._actions}
    if unknown := [name for name in options if name not in actions]:
        raise InputError(f"`config` must name options of `{parser.prog}`. Got {unknown[0]!r}.")
    for name, value in sorted(options.items(), key=lambda pair: bool(actions[pair[0]].option_strings)):
        flags = actions[name].option_strings or [""]
        if given & {*flags}:
            continue
        if isinstance(value, bool) is not (actions[name].nargs == 0):
            takes = "true or false" if actions[name].nargs == 0 else "a value"
            raise InputError(f"`{name}` must be {takes} in the file of `config`. Got {value!r}.")
        if isinstance(value, bool):
            yield flags[0] if value else flags[-1]
            continue
        for one in value if isinstance(value, list) else [value]:
            word = _from_here(one, folder) if isinstance(one, str) else str(one)
            if HIDDEN in word:
                raise InputError(f"`{name}` must be given: its password is not kept. Got {word!r}.")
            yield f"{flags[0]}={word}" if flags[0] else word


def _from_here(value: str, folder: Path) -> str:
    """Return a value with its path, if it is one, as it is reached from where the command runs."""
    head, equals, tail = value.rpartition("=")
    return f"{head}{equals}{os.path.normpath(folder / tail)}" if tail.startswith(("./", "../")) else value


def _from_there(value: str | Path, folder: Path) -> str:
    """Return a value with its path, if it is one, as it is reached from a folder; a password is left out."""
    if "://" in str(value):
        from deep.llm import describe_ledger

        return describe_ledger(str(value))
    head, equals, tail = str(value).rpartition("=")
    if not (isinstance(value, Path) or ("\0" not in tail and tail and os.path.exists(tail))):  # noqa: PTH110
        return str(value)
    there = Path(os.path.relpath(tail, folder)).as_posix()
    return f"{head}{equals}{there if there.startswith('../') else f'./{there}'}"


@contextmanager
def recorded(asked: Asked) -> Iterator[None]:
    """Write a command's options once it has written its output: ``NAME.run.toml`` beside it, or in its folder."""
    out = asked.options.get("out")
    if not isinstance(out, Path) or not out.name:
        yield
        return
    place, before = out.with_name(f"{out.stem}.run.toml"), _mark(out)
    if place.exists() and not (out / MARKER).exists():
        read_run(str(place))  # one of another hand is left as it is
    yield
    if before == _mark(out):
        return
    if (out / MARKER).exists():  # another folder, of prompts or a model, may be read as a whole
        place = out / "run.toml"
    with whole_file(place) as partial:
        partial.write_text("\n".join(_lines(asked, place)) + "\n", encoding="utf-8", errors="backslashreplace")


def _mark(out: Path) -> object:
    """Return a mark that tells whether a file, or a folder of results, was written."""
    try:
        status = out.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _lines(asked: Asked, place: Path) -> Iterator[str]:
    from deep import __version__

    yield f"# Written by deep {__version__}. Again: {asked.parser.prog} --config {place.name}"
    yield "schema_version = 1"
    yield f"deep = {_toml(__version__)}"
    yield f"command = {_toml(asked.parser.prog)}"
    noted = getattr(asked.args, "noted", {})
    yield from (f"{name} = {_toml(value)}" for name, value in noted.items() if not isinstance(value, dict))
    yield "\n[options]"
    # Of what is given by place or by name, the name.
    for action in {action.dest: action for action in asked.parser._actions}.values():
        value = asked.options.get(action.dest)
        if action.dest in NOT_ASKED or value is None or (value == action.default and action.dest != "out"):
            continue
        values = value if isinstance(value, list) else [value]
        kept = [_from_there(one, place.parent) if isinstance(one, str | Path) else one for one in values]
        yield f"{action.dest} = {_toml(kept if isinstance(value, list) else kept[0])}"
    for name, table in noted.items():
        if isinstance(table, dict):
            yield f"\n[{name}]"
            yield from (f"{_toml(key)} = {_toml(value)}" for key, value in table.items())


def _toml(value: object) -> str:
    """Return a text, number, truth value or list of these as TOML, of which JSON is a part but for one character."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def note_run(
    args: argparse.Namespace, voters: Sequence[str], prices: Mapping[str, Mapping[str, float]] | None = None
) -> None:
    """Keep the versions of judges, and prices, for the run's file; say how they differ from those of ``--config``.

    Parameters
    ----------
    args : Namespace
    voters : sequence of str
        The judges' columns, whose names hold their versions.
    prices : mapping of str to mapping, optional
        By LLM the dollars of a million tokens, where they are known.
    """
    args.noted = {"judges": list(voters)} | ({"prices": dict(prices)} if prices else {})
    if getattr(args, "config", None):
        earlier = read_run(args.config)
        said = [*_moved(earlier["judges"], voters), *_repriced(earlier["prices"], prices or {})]
        sys.stderr.writelines(f"{printable(line)}\n" for line in said)


def _moved(earlier: Sequence[str], voters: Sequence[str]) -> Iterator[str]:
    """Yield a line for each judge that is not as it was in the run of ``--config``."""
    from deep.judges import parse_voter

    now, then = ({parse_voter(name)._replace(version=None): name for name in names} for names in (voters, earlier))
    for judge, name in now.items():
        if then.get(judge) != name:
            before = f"{then[judge]} is {name} now" if judge in then else f"{name} is new"
            yield f"Other than in the run of `config`: {before}. It is asked what it has not been asked."
    gone = [name for judge, name in then.items() if judge not in now]
    yield from (f"Other than in the run of `config`: {name} is gone." for name in gone)


def _repriced(earlier: Mapping[str, Mapping[str, float]], prices: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    for name, now in prices.items():
        if (before := earlier.get(name, now)) != now:
            yield f"Other than in the run of `config`: a million tokens of {name} cost {now} now, then {before}."
