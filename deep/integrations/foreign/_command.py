"""Read the file of another tool: its texts, the answers of its judges as votes and grades, its labels.

For instance:

  deep data from results.json --out votes.parquet
      of promptfoo, DeepEval, lm-eval, Ragas, Langfuse, LangSmith, Inspect, the Batch API, Prodigy, doccano,
      Label Studio, Argilla or Mechanical Turk; `deep report votes.parquet` is next
  deep data from run.eval --label human --out votes.parquet
      the judge `human` is right: its answers are the labels
  deep data from mine.csv --source article --claim summary --judges gpt claude --label ok --out votes.parquet
      a table whose columns have other names
"""

import argparse
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep import console
from deep._util.options import option, topic_values
from deep.exceptions import ExitStatus, InputError
from deep.integrations.foreign import ForeignOptions


@dataclass(frozen=True)
class _Files:
    """Options of the command.

    Parameters
    ----------
    files : tuple of str
        Files of other tools; of Inspect also folders of logs.
    out : Path, optional
        Votes: .parquet; default: FILE.votes.parquet. Texts go beside it, to NAME.examples.jsonl.
    """

    files: tuple[str, ...] = option((), "FILE", flags=["files"], nargs="+")
    out: Path | None = option(None, "VOTES.parquet")


add_arguments = console.adder(_Files, ForeignOptions)


def run(args: argparse.Namespace) -> int:
    """Read, write and report."""
    from deep.integrations.foreign import read_foreign

    files = list[Path]()
    for path in map(Path, args.files):
        logs = sorted(p for p in path.rglob("*") if p.suffix in (".eval", ".json")) if path.is_dir() else [path]
        if not logs:
            raise InputError(f"`files` must be files, or folders of logs of Inspect. Got {str(path)!r} without any.")
        files += logs
    out = args.out or Path(f"{files[0].name.lstrip('.').partition('.')[0]}.votes.parquet")
    result = read_foreign(files, ForeignOptions(**topic_values(ForeignOptions, args)))
    paths = result.write(out)
    items = Counter(str(one.dataset) for one in result.examples)
    reasons = Counter(sorted(str(one.reason) for row in result.judgments for one in row.values()))
    results: dict[str, Any] = {
        "kinds": list(result.titles),
        "items": items,
        "voters": list(result.voters),
        "graders": list(result.scales),
        "labels": sum(one.label is not None for one in result.examples),
        "votes": reasons.pop("None", 0),
        "reasons": reasons,
        "notes": list(result.notes),
        "files": [str(path) for path in paths],
        "next": _next(result.voters, paths, args.scale),
    }
    lines = [", ".join(result.titles)]
    lines += [f"{name}: {n} items" for name, n in items.items()]
    answers = f"{results['votes']} answers of {', '.join(result.voters)}" if result.voters else "no answers"
    lines += [f"{answers}, {results['labels']} items labeled"]
    lines += [f"{n} missing: {reason}" for reason, n in reasons.items()]
    lines += [*result.notes, *(f"written: {path}" for path in paths), f"next: {results['next']}"]
    console.print_result(console.SCHEMA | results, lines, as_json=args.json)
    return ExitStatus.DONE


def _next(voters: tuple[str, ...], paths: list[Path], scales: tuple[str, ...]) -> str:
    """Return the command that is next: a report of answers, or votes on texts that have none."""
    name, out = shlex.quote(str(paths[0])), paths[0]
    if voters:
        # A table holds numbers, and no scale of them.
        declared = f" --scale {shlex.join(scales)}" if scales else ""
        return f"deep report {name} --out {shlex.quote(str(out.with_suffix('.html')))}{declared}"
    return f"deep ask {name} --lexical all --out {shlex.quote(str(out.with_suffix('.parquet')))}"
