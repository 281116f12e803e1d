"""The options by which every command takes examples: a benchmark or a file, and which column holds what."""

import argparse
from collections.abc import Mapping

from deep.datasets import Examples, read_examples

FIELDS = ("source", "claim", "label", "example_id", "dataset", "document_id")
HELP = "a benchmark (`deep data list`), or a CSV, JSONL or Parquet file with the columns source and claim"


def add_example_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--source-column`` and its siblings, and ``--main-only``."""
    group = parser.add_argument_group("columns of a file of examples")
    for field in FIELDS:
        option = f"--{field.replace('_', '-')}-column"
        group.add_argument(option, metavar="NAME", help=f"the column that holds {field}, if it has another name")
    group.add_argument("--main-only", action="store_true", help="TofuEval: leave out summaries of marginal topics")


def column_map(args: argparse.Namespace) -> Mapping[str, str]:
    """Return field to column, for the columns that have another name."""
    given = {field: getattr(args, f"{field}_column") for field in FIELDS}
    return {field: column for field, column in given.items() if column is not None}


def examples_from(args: argparse.Namespace, name: str, *, require_source: bool = True) -> Examples:
    """Return the examples that a name or a path means, read as the options say."""
    return read_examples(name, columns=column_map(args), main_only=args.main_only, require_source=require_source)
