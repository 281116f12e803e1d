"""The votes that a command learns from or measures on: the tables of `--votes` and `--scores`, or simulated votes."""

import argparse
from dataclasses import replace

from deep import datasets
from deep.exceptions import InputError
from deep.records import VoteMatrix

SIMULATED = "simulated"

NOTICE = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. "
    "Give your own with --votes."
)


def origin_of(args: argparse.Namespace) -> str | list[str]:
    """Return the tables of votes, or 'simulated'."""
    return list(args.votes) or SIMULATED


def read_training_votes(args: argparse.Namespace) -> VoteMatrix:
    """Return the votes of `--votes`, else simulated ones; refuse voters that failed too often."""
    return read_votes_and_scores(args)[0]


def read_votes_and_scores(args: argparse.Namespace) -> "tuple[VoteMatrix, datasets.ScoreTable | None]":
    """Return the votes, and the scores aligned with them where `--scores` is given.

    Raises
    ------
    InputError
        A table cannot be used, `--ignore` names no column, or a voter failed on more items of a dataset than
        `--max-failure-rate`, where the command has that option.
    """
    score_tables = vars(args).get("scores", [])
    in_scores = set(datasets.table_columns(score_tables)) if score_tables else set()
    if args.votes:
        in_votes = set(datasets.table_columns(args.votes))
        # A name that neither has goes to the votes, whose error lists what there is.
        ignored = [name for name in args.ignore if name in in_votes or name not in in_scores]
        votes = datasets.read_votes(args.votes, ignore=ignored)
        if "max_failure_rate" in args:
            datasets.check_failures(datasets.read_reasons(args.votes, votes), args.max_failure_rate)
    else:
        votes = datasets.simulate_votes(args.seed)
        unknown = [name for name in args.ignore if name not in in_scores]
        if unknown:
            raise InputError(f"`ignore` must name columns of --votes or --scores. Got {unknown[0]!r}, and no --votes.")
    if not score_tables:
        if vars(args).get("range"):
            raise InputError("`range` must be given with --scores. Got it alone.")
        return votes, None
    scores = datasets.read_scores(score_tables, ignore=[name for name in args.ignore if name in in_scores])
    given = datasets.parse_ranges(vars(args).get("range", []))
    ranges = datasets.score_ranges(scores.score_names, scores.scores, given)
    return votes, replace(datasets.join_scores(votes, scores), ranges=ranges)
