"""Measuring the voters of a vote file on the benchmark, response by response."""

import argparse
from collections.abc import Iterator, Sequence

from deep._files import check_replaceable, write_results
from deep.console import print_result
from deep.datasets import read_votes
from deep.evaluate import Row, framed, markdown, records, write_table
from deep.exceptions import ExitStatus, InputError
from deep.experiments.probe._records import COMPLEXITIES, TASKS, Sample
from deep.records import ABSTAIN, VoteMatrix
from deep.report import report_line, reported_folder

TITLE = "Responses that each voter calls inconsistent, by task and complexity"


def measure_votes(args: argparse.Namespace, samples: Sequence[Sample]) -> int:
    """Run ``deep probe eval --votes``."""
    check_replaceable(args.out)
    table = voter_table(read_votes(args.votes), samples)
    results = {"schema_version": 1, "samples": len(samples), "voters": records(table)}
    with reported_folder(args.out) as folder:
        write_table(folder, "voters", table, TITLE)
        write_results(folder, results)
    text = "\n".join([TITLE, "", *markdown(table), "", f"written to {args.out}", report_line(args.out), ""])
    print_result(results, [text], as_json=args.json)
    return ExitStatus.DONE


@framed
def voter_table(votes: VoteMatrix, samples: Sequence[Sample]) -> Iterator[Row]:
    """Return a row per voter, task and complexity: responses, those without a vote, and the share called inconsistent.

    At complexity 0 that share is of false alarms, above it is the recall; a response without a vote is not called.

    Raises
    ------
    InputError
        A sample has no row.
    """
    row_of = {item: row for row, item in enumerate(zip(votes.datasets, votes.example_ids, strict=True))}
    items = [(f"probe-{sample.task}", sample.example_id) for sample in samples]
    missing = next((item for item in items if item not in row_of), None)
    if missing is not None:
        raise InputError(f"`votes` must have a row for every sample. Got none for {missing[1]!r} of {missing[0]!r}.")
    of_samples = votes.votes[[row_of[item] for item in items]]
    for voter, column in zip(votes.voter_names, of_samples.T.tolist(), strict=True):
        for task in (*TASKS, "overall"):
            for complexity in COMPLEXITIES:
                cast = [
                    vote
                    for vote, sample in zip(column, samples, strict=True)
                    if task in (sample.task, "overall") and sample.complexity == complexity
                ]
                if cast:
                    counts = {
                        "responses": len(cast),
                        "no_vote": cast.count(ABSTAIN),
                        "called": cast.count(0) / len(cast),
                    }
                    yield {"voter": voter, "task": task, "complexity": complexity, **counts}
