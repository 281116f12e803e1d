"""The options of `deep label`, and its run."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from deep import console
from deep._util.names import check_name, visible_form
from deep._util.options import argument, option
from deep.exceptions import ExitStatus
from deep.integrations import labeling, serve
from deep.integrations.labeling import _agreement, _list

run = console.run_subcommand


@dataclass(frozen=True)
class _Page:
    """Options of the page.

    Parameters
    ----------
    votes : tuple of str
        Tables of votes (CSV, Parquet).
    examples : str, optional
        Texts of the items; default: the examples that were judged.
    n : int, default=30
        Number of items to label; a larger number than before adds some.
    double : int, default=0
        How many of them two people must label.
    person : str, optional
        Who labels; default: the page asks.
    model : str, optional
        A model file that `deep fit` wrote; default: P from the votes alone.
    labels : tuple of str
        Labels that exist already: dataset, item_id, label; these items are skipped.
    dataset : str, optional
        Which dataset, if the votes have several; its name, if the tables have no such column.
    out : Path, default=Path('labels.csv')
        The labels; each person's labels and the log go beside them.
    port : int, default=8001
        Port of the page; 0 picks a free one.
    """

    votes: tuple[str, ...] = option((), "VOTES", flags=["votes"], nargs="+")
    examples: str | None = option(None, "EXAMPLES")
    n: int = option(30, "N")
    double: int = option(0, "N")
    person: str | None = option(None, "NAME")
    model: str | None = option(None, "MODEL")
    labels: tuple[str, ...] = option((), "FILE")
    dataset: str | None = option(None, "NAME")
    out: Path = option(Path("labels.csv"), "LABELS.csv")
    port: int = option(8001, "N")


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    of_page = console.adder(_Page, "scores", "seed", console.ExampleColumns)
    export = console.adder(
        argument(
            "log", "LOG", "the log of `deep label`: LABELS.log.sqlite, or LABELS.jsonl of an earlier deep", type=Path
        ),
        argument("out", "LABELS.csv", "the labels; default: beside the log", flags=["--out"], type=Path),
        "json",
    )
    worksheet = "print a worksheet for people who label claims"
    parser.add_subcommands(
        console.Subcommand("page", "label on a page served from this machine", of_page, _page),
        console.Subcommand.of("list", _list),
        console.Subcommand.of("agreement", _agreement),
        console.Subcommand("export", "write the tables of a log again", export, _export),
        console.Subcommand("guideline", worksheet, console.adder(), _guideline),
        standard="page",
    )


def _page(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, which is its way to end."""
    console.check_minimum(args, n=1, seed=0)
    person = None if args.person is None else visible_form(check_name(args.person.strip(), "person"))
    options = serve.ServerOptions(port=args.port)
    subject = labeling.read_label_subject(
        args.votes,
        model=args.model,
        labels=args.labels,
        scores=args.scores,
        dataset=args.dataset,
        examples=args.examples,
        columns=console.column_map(args),
    )
    serve.check_free(options)
    choice = {"n": args.n, "double": args.double, "random_state": args.seed}
    with labeling.open_label_desk(subject, args.out, **choice) as desk:
        app = labeling.label_app(desk, person=person)
        console.print_result({}, labeling.label_lines(desk.summary(), told=desk.log.told), as_json=False)
        sys.stdout.flush()
        serve.run_server(app, options, say=lambda _: None)
        console.print_result({}, labeling.labeled_lines(desk.summary()), as_json=False)
    return ExitStatus.DONE


def _export(args: argparse.Namespace) -> int:
    result = labeling.export_labels(args.log, args.out)
    console.print_result(result, labeling.labeled_lines(result), as_json=args.json)
    return ExitStatus.DONE


def _guideline(args: argparse.Namespace) -> int:  # noqa: ARG001
    sys.stdout.write(labeling.WORKSHEET)
    return ExitStatus.DONE
