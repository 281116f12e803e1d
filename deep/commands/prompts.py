"""Look at prompts before paying for their answers.

A prompt is a TOML file. `deep ask --pool` takes one of deep's pools, or your own folder.
How to write one: docs/prompt-files.md.

For instance:

  deep prompts list                          every prompt that comes with deep, and the pools
  deep prompts list --pool deep-9            the prompts of one pool, or of a folder
  deep prompts show deep-numbers             its messages, the form of its answer, its hash
  deep prompts render deep-numbers --source article.txt --claim claim.txt
  deep prompts render mine/strict.toml --source article.txt --claim - --json
  deep prompts check mine/                   status 1 if a prompt of the folder cannot be used
  deep prompts check mine/strict.toml --replies replies.jsonl
      which replies in a file deep can read for this prompt, and which contradict themselves
"""

import argparse
from dataclasses import MISSING, dataclass

from deep import console, prompt_pool
from deep._util.names import format_table
from deep._util.options import argument, option
from deep.exceptions import ExitStatus, InputError

run = console.run_subcommand


PROMPT_ARG = argument("prompt", "ID", "an id that `list` shows, or a path to a .toml file")


@dataclass(frozen=True)
class _TextArgs:
    """The texts that a prompt is shown with.

    Parameters
    ----------
    source : str
        File with the source; - for stdin.
    claim : str
        File with the claim; - for stdin.
    question : str, optional
        File with the question that the claim answers; a prompt without {{question}} does not show it.
    """

    source: str = option(MISSING, "FILE")
    claim: str = option(MISSING, "FILE")
    question: str | None = option(None, "FILE")


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    pool = argument("pool", None, "list only this pool or folder", flags=["--pool"])
    render = console.adder(PROMPT_ARG, _TextArgs, console.FewShotOptions)
    replies = "JSON lines: a reply each, or an object with `reply`"
    check = console.adder(
        argument("folder", "PATH", "a folder of .toml prompts; with --replies one prompt"),
        argument("replies", "FILE", replies, flags=["--replies"]),
    )
    parser.add_subcommands(
        console.Subcommand("list", "list prompts and pools", console.adder(pool), _list),
        console.Subcommand("show", "print one prompt", console.adder(PROMPT_ARG), _show),
        console.Subcommand("render", "print the messages for one source and claim", render, _render),
        console.Subcommand("check", "report errors in a folder of prompts", check, _check),
        shared=console.adder("json"),
    )


def _list(args: argparse.Namespace) -> None:
    pools = {name: list(ids) for name, ids in prompt_pool.POOLS.items()}
    names = prompt_pool.list_prompts()
    prompts = (
        [prompt_pool.load_prompt(name) for name in names] if args.pool is None else prompt_pool.load_pool(args.pool)
    )
    lines = [prompt_pool.prompt_table(prompts)]
    if args.pool is None:
        lines += ["\npools", format_table([(f"  {name}", f"{len(pools[name])} prompts") for name in sorted(pools)])]
    results = {"prompts": [prompt_pool.describe_prompt(prompt) for prompt in prompts], "pools": pools}
    console.print_result(results, lines, as_json=args.json)


def _show(args: argparse.Namespace) -> None:
    prompt = prompt_pool.load_prompt(args.prompt)
    fields = {**prompt_pool.describe_prompt(prompt), "schema": prompt.schema()}
    console.print_result(fields, prompt_pool.prompt_lines(prompt), as_json=args.json)


def _render(args: argparse.Namespace) -> None:
    names = [name for name in ("source", "claim", "question") if getattr(args, name) is not None]
    # Standard input can be read once.
    if [getattr(args, name) for name in names].count("-") > 1:
        raise InputError("`claim` must be a file where `source` is -. Got - for both.")
    prompt = prompt_pool.load_prompt(args.prompt)
    texts = {name: console.read_text(getattr(args, name), name) for name in names}
    # An editor ends a file with a line end, which is no part of the text.
    plain_texts = {name: text.replace("\r\n", "\n").removesuffix("\n") for name, text in texts.items()}
    messages = prompt.render(**plain_texts, shots=console.shots_for(args, plain_texts["source"], plain_texts["claim"]))
    lines = ["\n\n".join(f"[{message['role']}]\n{message['content']}" for message in messages)]
    results = {"messages": messages, "schema": prompt.schema(**plain_texts), "parameters": prompt.parameters}
    console.print_result(results, lines, as_json=args.json)


def _check(args: argparse.Namespace) -> int | None:
    if args.replies is not None:
        result = prompt_pool.check_replies(prompt_pool.load_prompt(args.folder), args.replies)
        console.print_result(result.results(), result.lines(), as_json=args.json)
        return None
    problems = prompt_pool.check_folder(args.folder)
    # A folder with one broken prompt cannot be loaded as a pool.
    sound = [] if problems else prompt_pool.load_pool(args.folder)
    lines = problems or [format_table([("ID", "HASH"), *((prompt.id, prompt.hash[:8]) for prompt in sound)])]
    console.print_result({"problems": problems}, lines, as_json=args.json)
    return ExitStatus.FOUND if problems else None
