"""The options of `deep label`, and its run."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console, evaluate, model
from deep._util.columns import write_rows
from deep._util.files import check_out, whole_file, whole_files
from deep._util.names import check_name, plain_form
from deep._util.options import argument, option
from deep.exceptions import ExitStatus, InputError
from deep.integrations import labeling, serve

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


@dataclass(frozen=True)
class _Agreement:
    """Options of the command.

    Parameters
    ----------
    file : Path
        CSV: item_id, annotator, label; columns of steps are optional.
    filter_ambiguous : Path, optional
        Write the ambiguous items to this CSV file.
    min_marks : int, default=1
        Annotators who must call an item ambiguous.
    """

    file: Path = option(MISSING, "FILE", flags=["file"])
    filter_ambiguous: Path | None = option(None, "OUT")
    min_marks: int = option(1, "N")


@dataclass(frozen=True)
class _Proposal:
    """Options of the command.

    Parameters
    ----------
    n : int, default=20
        Items to propose.
    out : Path, optional
        Write them to a .csv with an empty column `label`.
    """

    n: int = option(20, "N")
    out: Path | None = option(None, "FILE")


AGREEMENT = console.adder(_Agreement, "n-boot", "seed", "json", n_boot={"default": 2000})
LIST = console.adder(
    *(console.MODEL, "votes", "dataset", "scores", _Proposal, "seed", "json"),
    votes={"required": True, "help": "votes of one dataset"},
    dataset={"help": "name of the dataset, if the tables have no column dataset"},
)


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
        console.Subcommand.of("list", _list, LIST),
        console.Subcommand.of("agreement", _agreement, AGREEMENT),
        console.Subcommand("export", "write the tables of a log again", export, _export),
        console.Subcommand("guideline", worksheet, console.adder(), _guideline),
        standard="page",
    )


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


def _list(args: argparse.Namespace) -> int:
    """Propose items to label elsewhere, for `deep check` and `deep adapt`, and say what to expect once labeled.

    For instance:

      deep label list model.json --votes mine.parquet --n 20
          twenty items at random: no other choice that was tried was reliably better (docs/results.md)
      deep label list model.json --votes mine.parquet --n 50 --out to-label.csv
          fifty, into a file with an empty column for the labels
    """
    console.check_least(args, seed=0)
    out = None if args.out is None else check_out(args.out, [".csv"])
    fitted = model.load(args.model)
    votes = evaluate.votes_for(fitted, args.votes, one_dataset=True)
    target = evaluate.Target(model.scores_for(fitted, votes, args.scores))
    results: console.Results = console.SCHEMA | labeling.label_proposal(fitted, target, args.n, random_state=args.seed)
    if out is not None:
        with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="") as file:
            # Without P: labels would follow it.
            rows = ([results["dataset"], item["item_id"], ""] for item in results["items"])
            write_rows(file, ["dataset", "item_id", "label"], rows)
    console.print_result(results, _proposal_lines(results, out), as_json=args.json)
    return ExitStatus.DONE


def _proposal_lines(results: console.Results, out: Path | None) -> Iterator[str]:
    yield f"{results['dataset']}: {len(results['items'])} items to label, drawn at random"
    if out is None:
        yield from (f"  {item['item_id']}" for item in results["items"])
    now, then = (evaluate.in_percent(results[f"expected_error_{when}"]) for when in ("before", "after"))
    yield f"expected mean error of P: {now} points now, {then} with these labels"
    sizes = results["labels_needed"].items()
    needed = [f"{size or 'more than all'} for {console.level(float(power))}" for power, size in sizes]
    yield "labels that `deep check` needs to detect an error as large as on the worst training dataset,"
    yield f"by chance of detection: {', '.join(needed)}"
    if out is not None:
        yield f"items: {out}"


def _agreement(args: argparse.Namespace) -> int:
    """Measure how far the people who labeled agree, and where they do not (arXiv:2508.00889, section 2).

    For instance:

      deep label agreement labels.annotations.csv
          Cohen's and Fleiss' kappa, Krippendorff's alpha, and the items and steps that annotators disagree on
      deep label agreement annotations.csv --filter-ambiguous ambiguous.csv
          the same, and the items that cannot be decided in ambiguous.csv, the others in ambiguous.rest.csv
    """
    console.check_least(args, min_marks=1, n_boot=1, seed=0)
    targets = {} if args.filter_ambiguous is None else _targets(args.file, args.filter_ambiguous)
    result = labeling.read_annotations(args.file)
    options = {"min_marks": args.min_marks, "n_boot": args.n_boot, "random_state": args.seed}
    results = console.SCHEMA | labeling.annotator_agreement(result, **options)
    if targets:
        _write_ambiguous(result, args.min_marks, targets)
        results["files"] = {name: str(path) for name, path in targets.items()}
    console.print_result(results, _agreement_lines(results), as_json=args.json)
    return ExitStatus.DONE


def _targets(file: Path, out: Path) -> dict[str, Path]:
    """Return the files of the ambiguous items and of the others; neither may be the file that is read."""
    targets = {"ambiguous": check_out(out, [".csv"], "filter_ambiguous"), "rest": out.with_suffix(".rest.csv")}
    if file.resolve() in [path.resolve() for path in targets.values()]:
        raise InputError(f"`filter_ambiguous` must differ from `file`. Got {str(out)!r} for {str(file)!r}.")
    return targets


def _write_ambiguous(annotations: "labeling.Annotations", min_marks: int, targets: Mapping[str, Path]) -> None:
    """Write the rows of ambiguous items apart from the others, both files whole or neither."""
    clear = {item for item in annotations.items if annotations.ambiguity(item, at_least=min_marks) is None}
    with whole_files(targets) as partial:
        for name, path in partial.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                rows = (row for row in annotations.rows if (row["item_id"].strip() in clear) == (name == "rest"))
                write_rows(file, annotations.columns, ([row[column] for column in annotations.columns] for row in rows))


def _agreement_lines(results: console.Results) -> Iterator[str]:
    for key, title in (("all", "all items"), ("without_ambiguous", "without the ambiguous items")):
        yield f"agreement, {title} ({results[key]['items']})"
        yield from (f"  {_measure_line(row)}" for row in results[key]["measures"])
    yield "\nTable 1"
    yield from (f"  {name.replace('_', '-')}: {n}" for name, n in results["table_1"].items())
    yield f"\n{len(results['disagreements'])} items with disagreement"
    yield from (f"  {_disagreement_line(row)}" for row in results["disagreements"])
    yield from (f"{name}: {path}" for name, path in results.get("files", {}).items())


def _measure_line(row: console.Results) -> str:
    if row["value"] is None:
        return f"{row['name']}: undefined on {row['items']} items"
    interval = "" if row["low"] is None else f" ({row['low']:.3f} to {row['high']:.3f})"
    return f"{row['name']}: {row['value']:.3f}{interval} on {row['items']} items"


def _disagreement_line(row: console.Results) -> str:
    labels = ", ".join(f"{annotator} {label}" for annotator, label in row["labels"].items())
    on = [*(["the label"] if row["on_label"] else []), *row["steps"]]
    return f"{row['item']}: {' and '.join(on)} ({labels or 'no label'})"
