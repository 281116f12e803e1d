"""Measuring the voters of a vote file on the benchmark, response by response."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from deep._files import check_replaceable, to_json, whole_folder
from deep.evaluate import markdown, records, write_table
from deep.exceptions import InputError
from deep.experiments.probe._records import COMPLEXITIES, TASKS, Sample

INDEX = ("dataset", "item_id", "label", "document_id")
TITLE = "Responses that each voter calls inconsistent, by task and complexity"


def measure_votes(args: argparse.Namespace, samples: Sequence[Sample]) -> int:
    """Run ``deep probe eval --votes``."""
    check_replaceable(args.out)
    table = voter_table(_read(args.votes), samples)
    results = {"schema_version": 1, "samples": len(samples), "voters": records(table)}
    with whole_folder(args.out) as folder:
        write_table(folder, "voters", table, TITLE)
        (folder / "results.json").write_text(to_json(results), encoding="utf-8")
    text = "\n".join([TITLE, "", *markdown(table), "", f"written to {args.out}", ""])
    sys.stdout.write(to_json(results) if args.json else text)
    return 0


def _read(path: str) -> pd.DataFrame:
    if not Path(path).is_file():
        raise InputError(f"`votes` must be a file that `deep votes` wrote. Got {path!r}, which is none.")
    try:
        votes = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`votes` must be a file that `deep votes` wrote. Got {path!r}: {reason}.") from None
    if not {"dataset", "item_id"} <= set(votes.columns):
        raise InputError(f"`votes` must have the columns dataset and item_id. Got {', '.join(votes.columns)}.")
    return votes


def voter_table(votes: pd.DataFrame, samples: Sequence[Sample]) -> pd.DataFrame:
    """Return a row per voter, task and complexity: responses, those without a vote, and the share called inconsistent.

    At complexity 0 that share is of false alarms, above it is the recall; a response without a vote is not called.

    Raises
    ------
    InputError
        A sample has no row.
    """
    by_item = votes.set_index(["dataset", "item_id"])
    keys = [(f"probe-{sample.task}", sample.example_id) for sample in samples]
    missing = next((key for key in keys if key not in by_item.index), None)
    if missing is not None:
        raise InputError(f"`votes` must have a row for every sample. Got none for {missing[1]!r} of {missing[0]!r}.")
    if not by_item.index.is_unique:
        raise InputError("`votes` must have one row for every item of a dataset. Got an item twice.")
    voters = [name for name in votes.columns if name not in INDEX]
    rows = (row for name in voters for row in _rows(name, by_item[name].reindex(keys).tolist(), samples))
    return pd.DataFrame(rows)


def _rows(voter: str, column: Sequence[float | None], samples: Sequence[Sample]) -> Iterator[dict[str, object]]:
    votes = [-1 if vote is None or vote != vote else int(vote) for vote in column]
    for task in (*TASKS, "overall"):
        for complexity in COMPLEXITIES:
            some = [
                vote
                for vote, sample in zip(votes, samples, strict=True)
                if task in (sample.task, "overall") and sample.complexity == complexity
            ]
            if some:
                counts = {"responses": len(some), "no_vote": some.count(-1), "called": some.count(0) / len(some)}
                yield {"voter": voter, "task": task, "complexity": complexity, **counts}
