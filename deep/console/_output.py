"""Progress bars on a terminal, a line now and then in a pipe; results and what is sent beside them; cards of panels."""

import argparse
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from deep import evaluate
from deep._util.entry_points import load_part
from deep._util.files import RESULTS, to_json
from deep._util.names import format_table
from deep.exceptions import InputError, printable

if TYPE_CHECKING:
    from deep.asking import AskProgress, ProgressCallback


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int], Callable[[], None]]]:
    """Yield a function that starts a bar and returns the function that advances it."""
    from rich import progress
    from rich.console import Console

    console, is_hidden = Console(stderr=True), not sys.stderr.isatty()
    columns = progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn()
    times = progress.TimeElapsedColumn(), progress.TimeRemainingColumn()
    with progress.Progress(*columns, *times, console=console, transient=True, disable=is_hidden) as bars:

        def start(task: str, steps: int) -> Callable[[], None]:
            bar = bars.add_task(task, total=steps)

            def step() -> None:
                bars.advance(bar)
                if bars.tasks[bar].finished:
                    bars.update(bar, visible=False)

            return step

        yield start


@contextmanager
def live_progress() -> "Iterator[ProgressCallback | None]":
    """Yield a callback that shows the counts of a run; where standard error is no terminal, a line now and then."""
    if not sys.stderr.isatty():
        yield _line_now_and_then()
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from deep.asking import live_text

    # On standard error, so that standard output holds results alone.
    with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as live:

        def show(progress: "AskProgress") -> None:
            live.update(Text(live_text(progress)))

        yield show


# The seconds after which a run that nobody watches says for the first time how far it is. As in asking: a shorter run
# needs no line. Chosen; no measurement is known.
FIRST_LINE_SECONDS = 1.5


def _line_now_and_then() -> "ProgressCallback":
    """Return a callback that writes a line where a run takes two seconds, and another each time that has doubled."""
    due = FIRST_LINE_SECONDS

    def show(progress: "AskProgress") -> None:
        nonlocal due
        if progress.tally.seconds >= due:
            from deep.asking import live_text

            # Twice as long each time: a log of hours has a dozen lines.
            due = 2 * progress.tally.seconds
            sys.stderr.write(f"{printable(live_text(progress).splitlines()[-1])}\n")

    return show


Results = Mapping[str, Any]
"""JSON values by key."""

# The entry that every JSON result begins with; its number rises when a key changes its meaning.
SCHEMA = {"schema_version": 1}


def print_result(results: Results, lines: Iterable[str], *, as_json: bool) -> None:
    """Print results as JSON, or else the lines that say the same to a person."""
    if as_json:
        text = to_json(dict(results), sys.stdout.encoding or "utf-8")
    else:
        text = fit_to_terminal("\n".join(map(printable, "\n".join(lines).rstrip("\n").split("\n"))) + "\n")
    sys.stdout.write(text)


# A per cent sign that no line end may part from its number.
BOUND_PERCENT = "\N{NO-BREAK SPACE}%"


def fit_to_terminal(text: str) -> str:
    """Return lines that fit the terminal, broken between words but for commands to copy; in a pipe as they are."""
    if not sys.stdout.isatty():
        return text  # which may be a prompt, or be searched by another program: it stays as it is
    width, lines = get_terminal_size().columns, list[str]()
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip())
        hang = " " * (indent + 4 if indent else 0)
        # A command that is broken by a line end cannot be copied.
        long = len(line) > width and not line.lstrip().startswith("deep ")
        options = {"break_long_words": False, "break_on_hyphens": False, "subsequent_indent": hang}
        lines += wrap(line.replace(" %", BOUND_PERCENT), width, **options) if long else [line]  # type: ignore[arg-type]
    return "\n".join(lines).replace(BOUND_PERCENT, " %")


def percent(share: float, of: float = 1) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> percent(0.0951), percent(3, 8)
    ('9.5 %', '37.5 %')
    """
    return f"{100 * share / of:.1f} %"


def level(share: float) -> str:
    """Return a level in percent, with no digit that it has not.

    Examples
    --------
    >>> level(0.9), level(0.975)
    ('90 %', '97.5 %')
    """
    return f"{100 * share:g} %"


def evaluation_events(*, on: bool) -> AbstractContextManager[Any]:
    """Return a context that gives the sender of events, and sends what is waiting in its end; None where not wanted.

    The sender is called with each score; its method `judged` takes an example and its judgments by voter.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[opentelemetry]`` is not installed.
    """
    return cast("AbstractContextManager[Any]", load_part("events")()) if on else nullcontext()


def check_apart(args: argparse.Namespace, out: Path | None = None) -> None:
    """Raise where the output of a command would take the place of a file that it reads, or of its ledger.

    Parameters
    ----------
    args : Namespace
        The parsed command line.
    out : Path, optional
        Where the command writes, if not where its option `out` says.

    Raises
    ------
    InputError
        `out` is a file among the other options, or the folder of an earlier run in which one of them lies.
    """
    out = out or getattr(args, "out", None)
    if isinstance(out, Path):
        for option, path in _files(args):
            check_not_in(out, path, option)


def check_not_in(out: Path, path: Path, option: str) -> None:
    """Raise where writing `out` would take the place of `path`, which was given as `option`."""
    place, file = (Path(os.path.realpath(one)) for one in (out, path))  # takes links that go round, as resolve does not
    if place == file or ((out / RESULTS).exists() and place in file.parents):
        raise InputError(f"`out` must differ from `{option}`. Got {str(out)!r} for {str(path)!r}. Name another.")


def _files(args: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield the files that a command is given; a ledger is one before it is there."""
    for option, value in vars(args).items():
        for one in value if isinstance(value, list) else [value]:
            is_name = option != "out" and isinstance(one, str | Path) and "\0" not in str(one)
            if is_name and (option == "ledger" or _is_file(Path(one))):
                yield option, Path(one)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


# The end of a cell in a Markdown table.
CELL = re.compile(r"(?<!\\)\|")


def study_lines(verdict: "evaluate.DatasetVerdict", text: str) -> Iterator[str]:
    """Yield the answer of a study, and then its Markdown as `plain_tables` shows it."""
    yield from plain_tables("\n".join([*verdict.lines(), "", text]))


def plain_tables(text: str) -> Iterator[str]:
    r"""Yield the lines of Markdown as a terminal of any width has them: tables in columns, without marks.

    A table that is too wide is cut between columns, and what names its rows stands in each part.

    Examples
    --------
    >>> from deep.console import plain_tables
    >>> print("\n".join(plain_tables("| judge | F1 |\n| --- | --- |\n| strict | **0.81** |")))
    judge     F1
    strict  0.81
    """
    width = get_terminal_size().columns
    for is_table, lines in groupby(text.splitlines(), lambda line: line.startswith("|")):
        if is_table:
            rows = [[_drop_marks(cell) for cell in CELL.split(line)[1:-1]] for line in lines if set(line) - set("|- ")]
            yield from _columns(rows, width)
        else:
            for line in lines:
                yield from [line] if line.startswith("  ") else wrap(_drop_marks(line), width) or [""]


def _drop_marks(text: str) -> str:
    return re.sub(r"\\([\\|<])", r"\1", text.replace("**", "").lstrip("# ")).strip()


def _columns(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Yield rows as columns, the names to the left, in as many parts as the width takes."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    n_names = 1 + (len(sizes) > 2 and all(row[1][:1].isalpha() for row in rows))
    start, first = n_names, sum(sizes[:n_names]) + 2 * n_names - 2
    # At least one column a part, however narrow the terminal is.
    while start < len(sizes):
        end = start + 1
        while end < len(sizes) and first + sum(size + 2 for size in sizes[start : end + 1]) <= width:
            end += 1
        yield from format_table([[*row[:n_names], *row[start:end]] for row in rows], right=end - start).split("\n")
        yield from [""] if end < len(sizes) else []
        start = end


# The disagreements of each judge that a terminal shows; all that are kept are in the JSON. Three fit beside every judge
# on a screen. Chosen; no measurement is known.
N_WORST_ITEMS = 3

# The most characters of a judge's name in a table for the terminal; a longer one is cut.
LONGEST_NAME = 40

# The most lines of judges, the best first; `full` has all.
MAX_JUDGES = 15


def card_lines(
    card: "evaluate.PanelCard", claims: Mapping[tuple[str, str], str], notes: Sequence[str] = (), *, full: bool = False
) -> Iterator[str]:
    """Yield the card of a panel: which judges to keep, the people, each judge, the panel.

    Parameters
    ----------
    card : PanelCard
        As :func:`deep.evaluate.panel_card` returns it.
    claims : mapping of (dataset, item_id) to str
        Shown beside ids, where they are known.
    notes : sequence of str
        Why texts are not.
    full : bool, default=False
        Every figure of every judge, in place of one line each that fits the terminal.
    """
    if worth := list(evaluate.worth_words(card)):
        yield from (*map(printable, worth), "")
    documents = "no document ids" if card.n_documents is None else f"{card.n_documents:,} documents"
    datasets = f"{len(card.datasets)} dataset{'s' if len(card.datasets) > 1 else ''}"
    yield f"{card.n:,} items of {datasets} ({documents}), {card.n_labeled:,} with a label"
    yield evaluate.people_words(card)
    if card.n_replaced:
        yield f"{card.n_replaced:,} labels differ between the votes and --labels; --labels is used."
    if card.n_unmatched:
        yield f"{card.n_unmatched:,} labels are of items without votes, and are left out."
    for part in evaluate.card_tables(card, N_WORST_ITEMS, claims):
        if full or not part.folded:
            rows = [{name: _cell(name, text) for name, text in row.items()} for row in part.rows]
            first = rows if full else rows[:MAX_JUDGES]
            yield ""
            yield from replace(part, rows=first).lines(math.inf if full else get_terminal_size().columns)
            if len(rows) > len(first):
                yield f"  ... and {len(rows) - len(first)} more; all of them, with intervals: --full, or --json"
    yield from ("", *map(printable, evaluate.panel_words(card)))
    if full:
        yield from notes
    else:
        yield "--full adds every figure with its interval, the order of dropping judges, and disagreements."


def _cell(column: str, text: str) -> str:
    """Return the text of a cell; names of judges alone are cut, for an item is looked up by the whole of its id."""
    plain = printable(text)
    return f"{plain[: LONGEST_NAME - 3]}..." if column == "judge" and len(plain) > LONGEST_NAME else plain


def shown_items(card: "evaluate.PanelCard") -> set[tuple[str, str]]:
    """Return the items that the lines of a card name."""
    worst = [row for each in card.judges for row in each.disagreements[:N_WORST_ITEMS]]
    return {(row["dataset"], row["item_id"]) for row in [*worst, *card.doubtful_labels[:N_WORST_ITEMS]]}
