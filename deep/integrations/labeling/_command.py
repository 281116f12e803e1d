"""The options of `deep label`, and its run."""

import argparse
import sys
from pathlib import Path

from deep import console
from deep._util.names import check_name, plain_form
from deep.exceptions import ExitStatus
from deep.integrations import labeling, serve
from deep.integrations.labeling import _agreement, _list

run = console.run_subcommand


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        console.Subcommand("page", "label on a page of this machine", _add_page, _page),
        console.Subcommand.of("list", _list),
        console.Subcommand.of("agreement", _agreement),
        console.Subcommand("export", "write the tables of a log again", _add_export, _export),
        console.Subcommand("guideline", "print a worksheet for people who judge claims", lambda _: None, _guideline),
        standard="page",
    )


def _add_page(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add("votes", nargs="+", metavar="VOTES", help="tables of votes (CSV, Parquet)")
    add("--examples", metavar="EXAMPLES", help="texts of the items, if not as the votes remember them")
    add("--n", type=int, default=30, metavar="N", help="items to label; more than before adds some")
    add("--double", type=int, default=0, metavar="N", help="how many of them two people are to label")
    add("--person", metavar="NAME", help="who labels; default: the page asks")
    add("--model", metavar="MODEL", help="a model file that `deep fit` wrote; default: what the votes alone tell")
    labels = "labels given elsewhere: dataset, item_id, label; these items are passed over"
    add("--labels", **console.SEVERAL, metavar="FILE", help=labels)
    add(
        "--dataset",
        metavar="NAME",
        help="which one, where the votes are of several; or that of tables without such a column",
    )
    add("--strategy", default="random", choices=console.STRATEGIES, help="how the items are chosen")
    out = "the labels, with each person's and the log beside them"
    add("--out", type=Path, default=Path("labels.csv"), metavar="LABELS.csv", help=out)
    add("--port", type=int, default=8001, metavar="N", help="of the page; 0: any that is free")
    scores = {"help": "tables of soft scores, where the model was fitted on some"}
    console.add_options(parser, "scores", "seed", scores=scores)
    console.add_options(parser, console.ExampleColumns)


def _page(args: argparse.Namespace) -> int:
    """Serve the page until Ctrl-C, which is its way to end."""
    console.check_least(args, n=1, seed=0)
    person = None if args.person is None else plain_form(check_name(args.person.strip(), "person"))
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
    options.check_free()
    choice = {"n": args.n, "double": args.double, "strategy": args.strategy, "random_state": args.seed}
    with labeling.open_label_desk(subject, args.out, **choice) as desk:
        app = labeling.label_app(desk, person=person)
        console.print_result({}, labeling.label_lines(desk.summary(), told=desk.log.told), as_json=False)
        sys.stdout.flush()
        serve.run_server(app, options, say=lambda _: None)
        console.print_result({}, labeling.labeled_lines(desk.summary()), as_json=False)
    return ExitStatus.DONE


def _add_export(parser: console.CommandParser) -> None:
    parser.add_argument(
        "log",
        type=Path,
        metavar="LOG",
        help="the log of `deep label`: LABELS.log.sqlite, or LABELS.jsonl of an earlier deep",
    )
    parser.add_argument("--out", type=Path, metavar="LABELS.csv", help="the labels; default: beside the log")


def _export(args: argparse.Namespace) -> int:
    found = labeling.export_labels(args.log, args.out)
    console.print_result({}, labeling.labeled_lines(found), as_json=False)
    return ExitStatus.DONE


def _guideline(args: argparse.Namespace) -> int:  # noqa: ARG001
    sys.stdout.write(labeling.WORKSHEET)
    return ExitStatus.DONE
