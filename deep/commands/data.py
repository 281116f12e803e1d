"""Look at examples before judging them: ``deep data list | info | fetch | path | check | leakage``.

A benchmark is read in the layout that its authors publish, from DEEP_DATA_HOME or from the cache that ``fetch`` fills;
a file of your own needs the columns source and claim. docs/datasets.md says more.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from deep.console import HELP, add_example_options, examples_from, guarded
from deep.datasets import DatasetCard, describe_examples, read_votes, shared_documents
from deep.datasets.benchmarks import (
    BENCHMARKS,
    BenchmarkExamples,
    benchmark_text,
    cards_text,
    described,
    fetch_benchmark,
    find_benchmark,
    find_folder,
    homes,
    leakage_text,
    sha256_of,
    table,
    what_to_do,
)
from deep.exceptions import InputError

__all__ = ["main"]

EXAMPLES = """examples:
  deep data list                             every benchmark: here or not, and under which licence
  deep data info fect                        its card: n, class balance, lengths, documents, checksums
  deep data info claims.csv                  the card of a file
  deep data fetch fect                       download it to the first folder that `deep data path` shows
  deep data check claims.csv --claim-column summary
  deep data leakage train.csv test.csv       status 1 if one document is in both
  deep data leakage --votes votes.parquet    the same for a table of votes, by document id
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``deep data``.

    Parameters
    ----------
    argv : list of str, optional
        Default: what the command was called with.

    Returns
    -------
    int
        0; 1 where ``leakage`` found a document in several places; 2 where an argument or a file cannot be used.
    """
    return guarded(_run, argv)


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    return int(arguments.run(arguments))


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="deep data", description=__doc__, epilog=EXAMPLES, formatter_class=raw, allow_abbrev=False
    )
    commands = parser.add_subparsers(required=True, metavar="list | info | fetch | path | check | leakage")
    add = partial(commands.add_parser, allow_abbrev=False)
    listed = add("list", help="list the benchmarks")
    info = add("info", help="print the card of a benchmark or a file")
    info.add_argument("names", nargs="+", metavar="NAME", help=HELP)
    fetched = add("fetch", help="download a benchmark")
    fetched.add_argument("names", nargs="+", metavar="NAME", help="a benchmark that `deep data list` shows")
    fetched.add_argument(
        "--allow-unverified", action="store_true", help="also files whose checksum is not known; prints what it is"
    )
    where = add("path", help="print where benchmarks are looked for, or where one is")
    where.add_argument("names", nargs="?", metavar="NAME", help="a benchmark; default: the folders for all of them")
    checked = add("check", help="find what is wrong with files of examples")
    checked.add_argument("names", nargs="+", metavar="FILE", help=HELP)
    leaked = add("leakage", help="find documents that are in several datasets, files or folds")
    leaked.add_argument("names", nargs="*", metavar="NAME", help=HELP)
    leaked.add_argument("--votes", nargs="+", default=[], metavar="FILE", help="tables of votes, with a document_id")
    for command in (info, checked, leaked):
        add_example_options(command)
    runs = ((listed, _list), (info, _info), (fetched, _fetch), (where, _path), (checked, _check), (leaked, _leakage))
    for command, run in runs:
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=run)
    return parser


def _write(arguments: argparse.Namespace, values: dict[str, Any], text: str) -> None:
    if arguments.json:
        text = json.dumps({"schema_version": 1, **values}, indent=2, ensure_ascii=False)
    sys.stdout.write(text.rstrip("\n") + "\n")


def _list(arguments: argparse.Namespace) -> int:
    folders = {name: find_folder(benchmark) for name, benchmark in BENCHMARKS.items()}
    values = [
        {
            "name": name,
            "title": benchmark.title,
            "licence": benchmark.licence,
            "commercial": benchmark.commercial,
            "folder": None if folders[name] is None else str(folders[name]),
            "url": benchmark.url,
        }
        for name, benchmark in BENCHMARKS.items()
    ]
    use = {True: "yes", False: "NO", None: "not stated"}
    cells = [
        (name, "yes" if folders[name] else "no", benchmark.licence, use[benchmark.commercial], benchmark.title)
        for name, benchmark in BENCHMARKS.items()
    ]
    advice = [f"{name}: {what_to_do(BENCHMARKS[name])}" for name, folder in folders.items() if folder is None]
    text = table([("NAME", "HERE", "LICENCE", "COMMERCIAL USE", "AN EXAMPLE IS"), *cells])
    _write(arguments, {"benchmarks": values}, "\n".join([text, *(["", "not here:", *advice] if advice else [])]))
    return 0


def _info(arguments: argparse.Namespace) -> int:
    found = []
    for name in arguments.names:
        examples = examples_from(arguments, name, require_source=False)
        examples.check()
        about = described(examples) if isinstance(examples, BenchmarkExamples) else {"file": name}
        found.append((about, describe_examples(examples)))
    values = [{**about, "datasets": [_as_dict(card) for card in cards]} for about, cards in found]
    texts = [f"{benchmark_text(about)}\n\n{cards_text(cards)}" for about, cards in found]
    _write(arguments, {"sets": values}, "\n\n".join(texts))
    return 0


def _as_dict(card: DatasetCard) -> dict[str, Any]:
    return {**asdict(card), "share_consistent": card.share_consistent}


def _fetch(arguments: argparse.Namespace) -> int:
    paths = []
    for name in arguments.names:
        benchmark, _ = find_benchmark(name)
        progress = sys.stderr.isatty()
        paths += fetch_benchmark(benchmark, allow_unverified=arguments.allow_unverified, progress=progress)
    files = [{"path": str(path), "sha256": sha256_of(path)} for path in paths]
    _write(arguments, {"files": files}, "\n".join(f"{file['sha256']}  {file['path']}" for file in files))
    return 0


def _path(arguments: argparse.Namespace) -> int:
    if arguments.names is None:
        folders = [str(home) for home in homes()]
    else:
        benchmark, _ = find_benchmark(arguments.names)
        folder = find_folder(benchmark)
        if folder is None:
            raise InputError(
                f"`name` must be a benchmark whose files are here. Got {benchmark.name!r}. {what_to_do(benchmark)}"
            )
        folders = [str(folder)]
    _write(arguments, {"folders": folders}, "\n".join(folders))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    checked = []
    for name in arguments.names:
        examples = examples_from(arguments, name)
        n = examples.check()
        cards = describe_examples(examples)
        labeled = sum(card.n - card.unlabeled for card in cards)
        checked.append({"name": name, "n": n, "labeled": labeled, "datasets": [card.dataset for card in cards]})
    lines = [
        f"{row['name']}: {row['n']:,} examples, {row['labeled']:,} labeled, in {', '.join(row['datasets'])}"
        for row in checked
    ]
    _write(arguments, {"checked": checked}, "\n".join([*lines, "nothing is wrong"]))
    return 0


def _leakage(arguments: argparse.Namespace) -> int:
    if not arguments.names and not arguments.votes:
        raise InputError("`NAME` or `--votes` must be given. Got neither.")
    parts: dict[str, Any] = {
        name: examples_from(arguments, name, require_source=False) for name in dict.fromkeys(arguments.names)
    }
    for examples in parts.values():
        examples.check()
    if arguments.votes:
        parts["votes"] = read_votes(arguments.votes)
    shared = shared_documents(parts)
    values = [{"kind": s.kind, "by": s.by, "document": s.document, "places": s.places} for s in shared]
    _write(arguments, {"shared": values}, leakage_text(shared))
    return int(bool(shared))


if __name__ == "__main__":
    raise SystemExit(main())
