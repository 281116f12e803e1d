"""Look at prompts before paying for their answers: ``deep prompts list | show | render | check``.

A prompt is a TOML file; those that come with deep make up the pools that ``deep votes --pool`` takes, and a
folder of your own is as good as any of them. docs/prompts.md says how to write one.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from deep.console import guarded
from deep.exceptions import InputError
from deep.prompt_pool import POOLS, Prompt, check_folder, list_prompts, load_pool, load_prompt

__all__ = ["main"]

EXAMPLES = """examples:
  deep prompts list                          every prompt that comes with deep, and the pools
  deep prompts list --pool deep-9            the prompts of one pool, or of a folder
  deep prompts show deep-numbers             what it says, how it is answered, its hash
  deep prompts render deep-numbers --source article.txt --claim claim.txt
  deep prompts render mine/strict.toml --source article.txt --claim - --json
  deep prompts check mine/                   status 1 if a prompt of the folder cannot be used
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``deep prompts``.

    Parameters
    ----------
    argv : list of str, optional
        Default: what the command was called with.

    Returns
    -------
    int
        0; 1 where ``check`` found a problem; 2 where an argument or a file cannot be used.
    """
    return guarded(_run, argv)


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="deep prompts", description=__doc__, epilog=EXAMPLES, formatter_class=raw, allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="list | show | render | check")
    command_named = partial(commands.add_parser, allow_abbrev=False)
    listed = command_named("list", help="list prompts and pools")
    listed.add_argument("--pool", help="only the prompts of this pool or folder")
    shown = command_named("show", help="print one prompt")
    rendered = command_named("render", help="print the messages for one source and claim")
    for command in (shown, rendered):
        command.add_argument("prompt", metavar="ID", help="an id that `list` shows, or a path to a .toml file")
    for name in ("source", "claim"):
        rendered.add_argument(f"--{name}", required=True, metavar="FILE", help=f"file with the {name}; - for stdin")
    checked = command_named("check", help="find what is wrong with a folder of prompts")
    checked.add_argument("folder", metavar="DIR", help="a folder of .toml prompts")
    for command, run in ((listed, _list), (shown, _show), (rendered, _render), (checked, _check)):
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=run)
    return parser


def _write(text: str) -> None:
    sys.stdout.write(text.rstrip("\n") + "\n")


def _write_json(value: Any) -> None:
    _write(json.dumps(value, indent=2, ensure_ascii=False))


def _describe(prompt: Prompt) -> dict[str, Any]:
    return {"id": prompt.id, "hash": prompt.hash, **{k: v for k, v in asdict(prompt).items() if k != "id"}}


def _list(arguments: argparse.Namespace) -> int:
    prompts = [load_prompt(name) for name in list_prompts()] if arguments.pool is None else load_pool(arguments.pool)
    if arguments.json:
        pools = {name: list(ids) for name, ids in POOLS.items()}
        _write_json({"prompts": [_describe(prompt) for prompt in prompts], "pools": pools})
        return 0
    rows = [("ID", "HASH", "ANSWER", "REASONS", "FOLLOWS"), *map(_row, prompts)]
    _write(_table(rows))
    if arguments.pool is None:
        width = max(map(len, POOLS))
        _write("\npools\n" + "\n".join(f"  {name:<{width}}  {len(POOLS[name])} prompts" for name in sorted(POOLS)))
    return 0


def _row(prompt: Prompt) -> tuple[str, ...]:
    first = "first" if prompt.reasons_first else "none"
    return prompt.id, prompt.hash[:8], f"{prompt.kind}, {prompt.output}", first, prompt.follows


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _show(arguments: argparse.Namespace) -> int:
    prompt = load_prompt(arguments.prompt)
    described = _describe(prompt)
    if arguments.json:
        _write_json(described | {"schema": prompt.schema()})
        return 0
    texts = {name: described.pop(name) for name in ("system", "user")}
    width = max(map(len, described))
    lines = [f"{name:<{width}}  {_in_words(value)}" for name, value in described.items() if value not in (None, {})]
    lines += [f"\n[{name}]\n{text.strip()}" for name, text in texts.items() if text]
    _write("\n".join(lines))
    return 0


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} = {_in_words(entry)}" for key, entry in value.items())
    return value if isinstance(value, str) else json.dumps(value)


def _render(arguments: argparse.Namespace) -> int:
    if arguments.source == arguments.claim == "-":
        raise InputError("`--claim` must be a file where `--source` is -. Got - for both.")
    prompt = load_prompt(arguments.prompt)
    messages = prompt.render(_read("--source", arguments.source), _read("--claim", arguments.claim))
    if arguments.json:
        _write_json({"messages": messages, "schema": prompt.schema(), "parameters": prompt.parameters})
    else:
        _write("\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages))
    return 0


def _read(option: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        return raw.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except OSError as error:
        raise InputError(f"`{option}` must be a readable file. Got {name!r}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{option}` must be UTF-8 text. Got something else at byte {error.start} of {name!r}."
        ) from None


def _check(arguments: argparse.Namespace) -> int:
    problems = check_folder(arguments.folder)
    if arguments.json:
        _write_json({"problems": problems})
    elif problems:
        _write("\n".join(problems))
    else:
        _write(_table([("ID", "HASH"), *((prompt.id, prompt.hash[:8]) for prompt in load_pool(arguments.folder))]))
    return int(bool(problems))
