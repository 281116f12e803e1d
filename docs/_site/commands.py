"""Write the reference of commands and options before the site is built: what each command says with --help-all."""

import argparse
import os
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path

from deep._util.entry_points import COMMAND_GROUP, find_entry_points
from deep._util.options import options_of
from deep.asking import Sampling
from deep.cli import COMMANDS, command_parser
from deep.console import _options

WIDTH = "100"


def setup(app):
    """Have the pages written when Sphinx begins."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "commands"))
    return {"parallel_read_safe": True}


def write(folder: Path) -> None:
    """Write one page a command, and the list of them."""
    os.environ["COLUMNS"] = WIDTH
    folder.mkdir(parents=True, exist_ok=True)
    guests = find_entry_points(COMMAND_GROUP).usable.values()
    purposes = {name: purpose for name, (_, purpose) in COMMANDS.items()}
    purposes |= {entry.name: entry.load().__doc__.strip().partition("\n")[0].rstrip(".") for entry in guests}
    for name, purpose in purposes.items():
        _write(folder / f"{name}.md", page(name, purpose))
    rows = [f"| [`deep {name}`]({name}.md) | {purpose} |" for name, purpose in sorted(purposes.items())]
    _write(folder / "options.md", page_of_options())
    rows.append("| [options](options.md) | of several commands, with their names in Python |")
    hidden = ["```{toctree}", ":hidden:", "", *sorted(purposes), "options", "```"]
    _write(
        folder / "index.md",
        "\n".join(["# Commands", "", "| command | purpose |", "| --- | --- |", *rows, "", *hidden, ""]),
    )


def page(name: str, purpose: str) -> str:
    """Return the page of a command: its help, and that of each of its sub-commands."""
    lines = [f"# deep {name}", "", f"{purpose[0].upper()}{purpose[1:]}.", ""]
    parser = command_parser(name)
    lines += block(parser)
    for sub, below in sub_parsers(parser):
        lines += [f"## deep {name} {sub}", "", *block(below)]
    return "\n".join(lines)


def page_of_options() -> str:
    """Return the page of the options that several commands share: a table a dataclass that declares them."""
    lines = [
        "# Options",
        "",
        "Each is declared once, as the field of a dataclass; a command shows its own with `--help-all`.",
        "",
    ]
    for topic in [*vars(_options).values(), Sampling]:
        if isinstance(topic, type) and is_dataclass(topic):
            lines += [f"## {topic.__name__}", "", topic.__doc__.partition("\n")[0], ""]
            lines += ["| option | field | type | default | meaning |", "| --- | --- | --- | --- | --- |"]
            for one in options_of(topic):
                default = "" if one.default in (None, [], False) or callable(one.default) else f"`{one.default}`"
                cells = [" ".join(one.flags), one.name, one.type.__name__, default, one.purpose.replace("|", "\\|")]
                lines.append(f"| `{cells[0]}` | `{cells[1]}` | {' | '.join(cells[2:])} |")
            lines.append("")
    return "\n".join(lines)


def block(parser: argparse.ArgumentParser) -> list[str]:
    """Return the help of a parser, rare options too, as a block of text."""
    parser.everything = True
    return ["```text", parser.format_help().rstrip(), "```", ""]


def sub_parsers(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the name and parser of each sub-command."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.items()


def _write(path: Path, text: str) -> None:
    """Write a page where it changed, so that Sphinx reads no page twice."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
