"""The options of requests that travel as files."""

import argparse
from pathlib import Path

from deep.exceptions import InputError

GIVEN = {"shard_requests": 50_000, "shard_mb": 190.0}
"""The limits of a file where none are given: those that engines have."""


def add_batch_file_options(parser: argparse.ArgumentParser) -> None:
    """Add where batch files are written to and read from."""
    files = parser.add_argument_group("batch files, for engines that run them (docs/votes.md)")
    out = "write what is to be asked as OpenAI batch files, one LLM a file, and send nothing"
    files.add_argument("--batch-out", type=Path, metavar="FOLDER", help=out)
    into = "enter the results in the .jsonl files of a folder, in part and in any order"
    files.add_argument("--batch-in", type=Path, metavar="FOLDER", help=into)
    files.add_argument("--shard-requests", type=int, metavar="N", help="requests a file (default 50000)")
    files.add_argument("--shard-mb", type=float, metavar="MB", help="MiB a file (default 190)")


def shard_limits(args: argparse.Namespace) -> tuple[int, int]:
    """Return the most requests and bytes of a batch file, once the options make sense together."""
    if args.batch_out is not None and args.batch_in is not None:
        raise InputError("`batch_in` and `batch_out` must be given one at a time. Got both. Enter results first.")
    files = args.batch_out is not None or args.batch_in is not None
    other = next((name for name in ("batch", "dry_run") if getattr(args, name)), None)
    if files and other is not None:
        raise InputError(f"`{other}` must not be given with batch files. Got both. Leave one out.")
    limits = {name: getattr(args, name) for name in GIVEN if getattr(args, name) is not None}
    if limits and args.batch_out is None:
        raise InputError(f"`{next(iter(limits))}` must be given with `batch_out`. Got it without.")
    requests, mebibytes = (limits.get(name, value) for name, value in GIVEN.items())
    if not (requests >= 1 and 0 < mebibytes < 1e6):
        raise InputError(f"`shard_requests` and `shard_mb` must be above 0. Got {requests!r} and {mebibytes!r}.")
    return int(requests), max(int(mebibytes * 1024**2), 1)
