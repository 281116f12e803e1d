"""Look at examples before judging them.

A benchmark is read in the layout that its authors publish, from DEEP_DATA_HOME or from the cache that `fetch` fills;
a file of your own needs the columns source and claim. docs/datasets.md says more.
"""

import argparse
import sys
from dataclasses import asdict

from deep import datasets
from deep.console import (
    HELP,
    SCHEMA,
    CommandParser,
    Subcommand,
    add_example_options,
    add_options,
    examples_from,
    print_result,
    run_subcommand,
)
from deep.datasets import benchmarks
from deep.exceptions import ExitStatus, InputError

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
examples:
  deep data list                             every benchmark: here or not, and under which licence
  deep data info fect                        its card: n, class balance, lengths, documents, checksums
  deep data info claims.csv                  the card of a file
  deep data fetch fect                       download it to the first folder that `deep data path` shows
  deep data check claims.csv --claim-column summary
  deep data leakage train.csv test.csv       status 1 if one document is in both
  deep data leakage --votes votes.parquet    the same for a table of votes, by document id
"""


def add_arguments(parser: CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        Subcommand("list", "list the benchmarks", lambda p: add_options(p, "json"), _list),
        Subcommand("info", "print the card of a benchmark or a file", _add_names, _info),
        Subcommand("fetch", "download a benchmark", _add_fetch, _fetch),
        Subcommand("path", "print the folders of benchmarks, or the folder of one", _add_path, _path),
        Subcommand("check", "report the faults in files of examples", _add_names, _check),
        Subcommand("leakage", "report documents that are in several files, datasets or folds", _add_leakage, _leakage),
    )


def run(args: argparse.Namespace) -> int:
    """Run the sub-command."""
    return run_subcommand(args)


def _add_names(parser: CommandParser, nargs: str = "+") -> None:
    parser.add_argument("names", nargs=nargs, metavar="NAME", help=HELP)
    add_example_options(parser)
    add_options(parser, "json")


def _add_fetch(parser: CommandParser) -> None:
    parser.add_argument("names", nargs="+", metavar="NAME", help="a benchmark that `deep data list` shows")
    unverified = "also files whose checksum is not known; prints what it is"
    parser.add_argument("--allow-unverified", action="store_true", help=unverified)
    add_options(parser, "json")


def _add_path(parser: CommandParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="a benchmark; default: the folders for all of them")
    add_options(parser, "json")


def _add_leakage(parser: CommandParser) -> None:
    parser.add_argument("--votes", nargs="+", default=[], metavar="FILE", help="tables of votes, with a document_id")
    _add_names(parser, "*")


def _list(args: argparse.Namespace) -> int:
    rows = benchmarks.benchmark_rows()
    print_result(SCHEMA | {"benchmarks": rows}, [benchmarks.benchmarks_text(rows)], as_json=args.json)
    return ExitStatus.DONE


def _info(args: argparse.Namespace) -> int:
    values, texts = [], []
    for name in args.names:
        examples = examples_from(args, name, require_source=False)
        examples.check()
        about, cards = benchmarks.described(examples, name), datasets.describe_examples(examples)
        values.append({**about, "datasets": [card.as_dict() for card in cards]})
        texts.append(f"{benchmarks.benchmark_text(about)}\n\n{benchmarks.cards_text(cards)}")
    print_result(SCHEMA | {"sets": values}, ["\n\n".join(texts)], as_json=args.json)
    return ExitStatus.DONE


def _fetch(args: argparse.Namespace) -> int:
    paths = []
    for name in args.names:
        benchmark, _ = benchmarks.find_benchmark(name)
        options = {"allow_unverified": args.allow_unverified, "progress": sys.stderr.isatty()}
        paths += benchmarks.fetch_benchmark(benchmark, **options)
    files = [{"path": str(path), "sha256": benchmarks.sha256_of(path)} for path in paths]
    print_result(SCHEMA | {"files": files}, (f"{f['sha256']}  {f['path']}" for f in files), as_json=args.json)
    return ExitStatus.DONE


def _path(args: argparse.Namespace) -> int:
    if args.name is None:
        folders = [str(home) for home in benchmarks.homes()]
    else:
        benchmark, _ = benchmarks.find_benchmark(args.name)
        folder = benchmarks.find_folder(benchmark)
        if folder is None:
            advice = benchmarks.what_to_do(benchmark)
            raise InputError(f"`name` must be a benchmark whose files are here. Got {benchmark.name!r}. {advice}")
        folders = [str(folder)]
    print_result(SCHEMA | {"folders": folders}, folders, as_json=args.json)
    return ExitStatus.DONE


def _check(args: argparse.Namespace) -> int:
    checked = []
    for name in args.names:
        examples = examples_from(args, name)
        n, cards = examples.check(), datasets.describe_examples(examples)
        labeled = sum(card.labeled for card in cards)
        checked.append({"name": name, "n": n, "labeled": labeled, "datasets": [card.dataset for card in cards]})
    lines = [
        f"{c['name']}: {c['n']:,} examples, {c['labeled']:,} labeled, in {', '.join(c['datasets'])}" for c in checked
    ]
    print_result(SCHEMA | {"checked": checked}, [*lines, "nothing is wrong"], as_json=args.json)
    return ExitStatus.DONE


def _leakage(args: argparse.Namespace) -> int:
    if not args.names and not args.votes:
        raise InputError("`NAME` or `--votes` must be given. Got neither.")
    parts = {name: examples_from(args, name, require_source=False) for name in dict.fromkeys(args.names)}
    for examples in parts.values():
        examples.check()
    shared = datasets.shared_documents(parts | ({"votes": datasets.read_votes(args.votes)} if args.votes else {}))
    print_result(SCHEMA | {"shared": [asdict(s) for s in shared]}, [benchmarks.leakage_text(shared)], as_json=args.json)
    return ExitStatus.FOUND if shared else ExitStatus.DONE
