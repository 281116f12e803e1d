"""The human side of FECT: a worksheet, and how far those who fill it in agree (arXiv:2508.00889, section 2).

::

    deep annotate guideline > worksheet.md
    deep annotate agreement annotations.csv --filter-ambiguous ambiguous.csv
"""

import argparse
import csv
import io
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._files import check_out, to_json, whole_file
from deep.console import HelpFormatter, check_least, guarded
from deep.exceptions import InputError

if TYPE_CHECKING:
    from deep.datasets import Annotations

__all__ = ["main"]

DESCRIPTION = "A worksheet for people who judge claims, and how far those who fill it in agree."

EXAMPLES = """\
examples:
  deep annotate guideline > worksheet.md
      the steps decompose, decouple and detach, to be filled in claim by claim
  deep annotate agreement annotations.csv
      Cohen's and Fleiss' kappa, Krippendorff's alpha, and the items and steps that annotators do not see alike
  deep annotate agreement annotations.csv --filter-ambiguous ambiguous.csv
      the same, and the items that cannot be decided in ambiguous.csv, the others in ambiguous.rest.csv
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit status."""
    return guarded(_annotate, argv)


def _annotate(argv: Sequence[str] | None) -> int:
    args = parser().parse_args(argv)
    if args.command == "guideline":
        from deep.datasets import WORKSHEET

        sys.stdout.write(WORKSHEET)
        return 0
    return _agreement(args)


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    formatter: Any = {"formatter_class": HelpFormatter}
    p = argparse.ArgumentParser(prog="deep annotate", description=DESCRIPTION, epilog=EXAMPLES, **formatter)
    commands = p.add_subparsers(dest="command", required=True)
    commands.add_parser("guideline", help="print the worksheet", **formatter)
    a = commands.add_parser("agreement", help="how far annotators agree, and where they do not", **formatter)
    a.add_argument("file", type=Path, metavar="FILE", help="CSV: item_id, annotator, label, and as wanted the steps")
    a.add_argument("--filter-ambiguous", type=Path, metavar="OUT", help="write the ambiguous items to this CSV file")
    a.add_argument("--min-marks", type=int, default=1, metavar="N", help="annotators who must call an item ambiguous")
    a.add_argument("--n-boot", type=int, default=2000, metavar="N", help="resamples of every interval")
    a.add_argument("--seed", type=int, default=0, metavar="N", help="of the resamples")
    a.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def _agreement(args: argparse.Namespace) -> int:
    from deep.datasets import read_annotations

    check_least(args, min_marks=1, n_boot=1, seed=0)
    targets = None if args.filter_ambiguous is None else _targets(args.file, args.filter_ambiguous)
    found = read_annotations(args.file)
    if len(found.annotators) < 2:
        raise InputError(f"`file` must hold two annotators or more. Got {found.annotators[0]!r} alone.")
    kinds = {item: found.ambiguity(item, at_least=args.min_marks) for item in found.items}
    clear = [item for item, kind in kinds.items() if kind is None]
    results = {
        "schema_version": 1,
        "annotators": found.annotators,
        "all": _measures(found, found.items, args),
        "without_ambiguous": _measures(found, clear, args),
        "table_1": _table_1(found, kinds),
        "disagreements": [
            {"item": d.item, "labels": dict(d.labels), "on_label": d.on_label, "steps": list(d.steps)}
            for d in found.disagreements()
        ],
    }
    if targets is not None:
        results["files"] = _write(found, kinds, targets)
    sys.stdout.write(to_json(results) if args.json else _text(results))
    return 0


def _measures(found: "Annotations", items: Sequence[str], args: argparse.Namespace) -> dict[str, Any]:
    from deep.features import cohen_kappa, fleiss_kappa, krippendorff_alpha

    if not items:
        return {"items": 0, "measures": []}
    ratings = found.ratings(items)
    chosen: list[tuple[str, Any, Any]] = [
        (f"Cohen's kappa, {found.annotators[i]} and {found.annotators[j]}", cohen_kappa, ratings[:, [i, j]])
        for i, j in combinations(range(len(found.annotators)), 2)
    ]
    chosen += [("Fleiss' kappa", fleiss_kappa, ratings), ("Krippendorff's alpha", krippendorff_alpha, ratings)]
    return {"items": len(items), "measures": [_measure(*one, args) for one in chosen]}


def _measure(name: str, measure: Any, ratings: Any, args: argparse.Namespace) -> dict[str, Any]:
    from deep.features import agreement_interval, krippendorff_alpha

    given = (ratings >= 0).sum(axis=1)
    used = int((given > 1).sum() if measure is krippendorff_alpha else (given == ratings.shape[1]).sum())
    low, high = agreement_interval(measure, ratings, n_boot=args.n_boot, random_state=args.seed)
    return {"name": name, "items": used, "value": _known(measure(ratings)), "low": _known(low), "high": _known(high)}


def _known(value: float) -> float | None:
    return value if value == value else None


def _table_1(found: "Annotations", kinds: dict[str, str | None]) -> dict[str, int]:
    """Return the counts of the paper's Table 1; a tied majority is neither factual nor not."""
    from deep.datasets import AMBIGUITIES

    labels = [found.majority(item) for item, kind in kinds.items() if kind is None]
    ambiguous = {kind: sum(given == kind for given in kinds.values()) for kind in AMBIGUITIES}
    counts = {"factual": labels.count(1), "non_factual": labels.count(0), "undecided": labels.count(-1)}
    return {**counts, "total": len(labels), **ambiguous}


def _targets(file: Path, out: Path) -> dict[str, Path]:
    """Return the files of the ambiguous items and of the others; neither may be the file that is read."""
    targets = {"ambiguous": check_out(out, [".csv"], "filter_ambiguous"), "rest": out.with_suffix(".rest.csv")}
    if file.resolve() in [path.resolve() for path in targets.values()]:
        raise InputError(f"`filter_ambiguous` must leave `file` as it is. Got {str(out)!r} for {str(file)!r}.")
    return targets


def _write(found: "Annotations", kinds: dict[str, str | None], targets: dict[str, Path]) -> dict[str, str]:
    """Write the rows of ambiguous items apart from the others, both files whole or neither."""
    with ExitStack() as stack:
        partial = {name: stack.enter_context(whole_file(path)) for name, path in targets.items()}
        for name, path in partial.items():
            rows = [row for row in found.rows if (kinds[row["item_id"].strip()] is None) == (name == "rest")]
            path.write_text(_csv(found.columns, rows), encoding="utf-8", newline="")
    return {name: str(path) for name, path in targets.items()}


def _csv(columns: Sequence[str], rows: Sequence[dict[str, str]]) -> str:
    text = io.StringIO(newline="")
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return text.getvalue()


def _text(results: dict[str, Any]) -> str:
    lines = []
    titles = {"all": "all items", "without_ambiguous": "without the ambiguous items"}
    for key, title in titles.items():
        lines.append(f"agreement, {title} ({results[key]['items']})")
        lines += [f"  {_measure_line(one)}" for one in results[key]["measures"]]
    lines += ["", "Table 1"]
    lines += [f"  {name.replace('_', '-')}: {n}" for name, n in results["table_1"].items()]
    lines += ["", f"{len(results['disagreements'])} items that annotators do not see alike"]
    lines += [f"  {_disagreement_line(one)}" for one in results["disagreements"]]
    lines += [f"{name}: {path}" for name, path in results.get("files", {}).items()]
    return "\n".join([*lines, ""])


def _measure_line(one: dict[str, Any]) -> str:
    if one["value"] is None:
        return f"{one['name']}: undefined on {one['items']} items"
    interval = "" if one["low"] is None else f" ({one['low']:.3f} to {one['high']:.3f})"
    return f"{one['name']}: {one['value']:.3f}{interval} on {one['items']} items"


def _disagreement_line(one: dict[str, Any]) -> str:
    labels = ", ".join(f"{annotator} {label}" for annotator, label in one["labels"].items())
    on = [*(["the label"] if one["on_label"] else []), *one["steps"]]
    return f"{one['item']}: {' and '.join(on)} ({labels or 'no label'})"
