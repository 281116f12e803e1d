"""Look at examples before judging them.

For instance:

  deep data list                             every benchmark, with its licence and whether it is here
  deep data info fect                        its card: n, class balance, lengths, documents, checksums
  deep data info claims.csv                  the card of a file
  deep data check claims.csv --votes votes.csv
  deep data leakage train.csv test.csv       status 1 if one document is in both
"""

import argparse
import sys
from dataclasses import asdict

from deep import console, datasets
from deep._util.options import argument
from deep.datasets import benchmarks
from deep.exceptions import ExitStatus, InputError
from deep.records import VoteMatrix

run = console.run_subcommand


EXAMPLES_ARG = argument(
    "names",
    "NAME",
    "a benchmark (`deep data list`), or a CSV, JSONL or Parquet file with the columns source and claim",
    nargs="+",
)
UNVERIFIED = "fetch files without a known checksum, too; prints their checksum"
add_fetch = console.adder(
    argument("names", "NAME", "a benchmark that `deep data list` shows", nargs="+"),
    argument("allow_unverified", None, UNVERIFIED, flags=["--allow-unverified"], action="store_true", default=False),
)
add_path = console.adder(argument("name", "NAME", "a benchmark; default: the folders for all of them", nargs="?"))
add_tables = console.adder(
    *("votes", "ignore", "dataset", "scale", EXAMPLES_ARG, console.ExampleColumns),
    votes={"help": "tables of votes, joined as `fit` does"},
    names={"nargs": "*"},
)


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    info, check = console.adder(EXAMPLES_ARG, console.ExampleColumns), console.adder(add_tables, console.IncompleteRows)
    parser.add_subcommands(
        console.Subcommand("list", "list the benchmarks", console.adder(), _list),
        console.Subcommand("info", "print the card of a benchmark or a file", info, _info),
        console.Subcommand("fetch", "download a benchmark", add_fetch, _fetch),
        console.Subcommand("path", "print the folders of benchmarks, or the folder of one", add_path, _path),
        console.Subcommand("check", "report the faults in files of examples or votes", check, _check),
        console.Subcommand("leakage", "report documents that occur in several datasets", add_tables, _leakage),
        shared=console.adder("json"),
    )


def _list(args: argparse.Namespace) -> None:
    rows = datasets.benchmark_rows()
    console.print_result(console.SCHEMA | {"benchmarks": rows}, [datasets.benchmarks_text(rows)], as_json=args.json)


def _info(args: argparse.Namespace) -> None:
    result = []
    for name in args.names:
        # A card describes files of claims without sources, too.
        examples = console.examples_from(args, name, require_source=False)
        examples.check()
        result.append(datasets.card_of(examples, name))
    texts = ["\n\n".join(text for _, text in result)]
    console.print_result(console.SCHEMA | {"sets": [values for values, _ in result]}, texts, as_json=args.json)


def _fetch(args: argparse.Namespace) -> None:
    options = {"allow_unverified": args.allow_unverified, "progress": sys.stderr.isatty()}
    # All names are looked up before the first download.
    selection = [benchmarks.find_benchmark(name)[0] for name in args.names]
    paths = [path for benchmark in selection for path in benchmarks.fetch_benchmark(benchmark, **options)]
    files = [{"path": str(path), "sha256": benchmarks.sha256_of(path)} for path in paths]
    lines = (f"{file['sha256']}  {file['path']}" for file in files)
    console.print_result(console.SCHEMA | {"files": files}, lines, as_json=args.json)


def _path(args: argparse.Namespace) -> None:
    benchmark = None if args.name is None else benchmarks.find_benchmark(args.name)[0]
    folders = [str(folder) for folder in benchmarks.benchmark_folders(benchmark)]
    console.print_result(console.SCHEMA | {"folders": folders}, folders, as_json=args.json)


def _read_votes(args: argparse.Namespace) -> list[VoteMatrix]:
    if not args.names and not args.votes:
        raise InputError("`NAME` or `--votes` must be given. Got neither.")
    return [datasets.read_votes(args.votes, ignore=args.ignore)] if args.votes else []


def _check(args: argparse.Namespace) -> None:
    votes, strict = _read_votes(args), args.strict
    result = [datasets.check_of(console.examples_from(args, name), name, strict=strict) for name in args.names]
    incomplete = sum(values["incomplete"] for values, _ in result)
    wrong = f"{incomplete:,} rows have no source or no claim" if incomplete else "nothing is wrong"
    lines = [*(line for _, line in result), *map(repr, votes), wrong]
    console.print_result(console.SCHEMA | {"checked": [values for values, _ in result]}, lines, as_json=args.json)


def _leakage(args: argparse.Namespace) -> int | None:
    votes = _read_votes(args)
    # A file that is named twice would share every document with itself.
    parts = {name: console.examples_from(args, name, require_source=False) for name in dict.fromkeys(args.names)}
    # Faults of a file are told before its documents are compared.
    for examples in parts.values():
        examples.check()
    shared = datasets.shared_documents(parts | ({"votes": votes[0]} if votes else {}))
    result = {"shared": [asdict(document) for document in shared]}
    console.print_result(console.SCHEMA | result, [datasets.leakage_text(shared)], as_json=args.json)
    return ExitStatus.FOUND if shared else None
