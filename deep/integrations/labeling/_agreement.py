"""Measure how far the people who labeled agree, and where they do not (arXiv:2508.00889, section 2).

For instance:

  deep label agreement labels.annotations.csv
      Cohen's and Fleiss' kappa, Krippendorff's alpha, and the items and steps on which annotators disagree
  deep label agreement annotations.csv --filter-ambiguous ambiguous.csv
      the same, and the items that cannot be decided in ambiguous.csv, the others in ambiguous.rest.csv
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console
from deep._util.columns import write_rows
from deep._util.files import atomic_files, check_out
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError
from deep.integrations import labeling


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


add_arguments = console.adder(_Agreement, "n-boot", "seed", "json", n_boot={"default": 2000})


def run(args: argparse.Namespace) -> int:
    """Measure, write and report."""
    console.check_minimum(args, min_marks=1, n_boot=1, seed=0)
    targets = {} if args.filter_ambiguous is None else _targets(args.file, args.filter_ambiguous)
    result = labeling.read_annotations(args.file)
    options = {"min_marks": args.min_marks, "n_boot": args.n_boot, "random_state": args.seed}
    results = console.SCHEMA | labeling.annotator_agreement(result, **options)
    if targets:
        _write(result, args.min_marks, targets)
        results["files"] = {name: str(path) for name, path in targets.items()}
    console.print_result(results, _lines(results), as_json=args.json)
    return ExitStatus.DONE


def _targets(file: Path, out: Path) -> dict[str, Path]:
    """Return the files of the ambiguous items and of the others; neither may be the file that is read."""
    targets = {"ambiguous": check_out(out, [".csv"], "filter_ambiguous"), "rest": out.with_suffix(".rest.csv")}
    if file.resolve() in [path.resolve() for path in targets.values()]:
        raise InputError(f"`filter_ambiguous` must differ from `file`. Got {str(out)!r} for {str(file)!r}.")
    return targets


def _write(annotations: "labeling.Annotations", min_marks: int, targets: Mapping[str, Path]) -> None:
    """Write the rows of ambiguous items apart from the others, both files whole or neither."""
    clear = {item for item in annotations.items if annotations.ambiguity(item, at_least=min_marks) is None}
    with atomic_files(targets) as partial:
        for name, path in partial.items():
            with path.open("w", encoding="utf-8", newline="") as file:
                rows = (row for row in annotations.rows if (row["item_id"].strip() in clear) == (name == "rest"))
                write_rows(file, annotations.columns, ([row[column] for column in annotations.columns] for row in rows))


def _lines(results: console.Results) -> Iterator[str]:
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
