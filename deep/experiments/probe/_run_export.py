"""Writing training data."""

import argparse
import json
import os
import sys
from collections import Counter

from deep.exceptions import InputError
from deep.experiments.probe._records import read_samples
from deep.experiments.probe._run_eval import data_file
from deep.experiments.probe._sft import chats

__all__ = ["export"]


def export(args: argparse.Namespace) -> int:
    """Run ``deep probe export-sft``."""
    if not args.out.parent.is_dir() or args.out.is_dir():
        raise InputError(f"`out` must be a file in an existing folder. Got {str(args.out)!r}.")
    samples = read_samples(data_file(args.data, "train"))
    counts: Counter[str] = Counter()
    partial = args.out.with_name(f".{args.out.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for chat in chats(samples):
                counts[chat["step"]] += 1
                file.write(json.dumps(chat, ensure_ascii=False) + "\n")
        partial.replace(args.out)
    finally:
        partial.unlink(missing_ok=True)
    sys.stdout.write(f"{counts['find']} finding and {counts['evaluate']} evaluation examples written to {args.out}\n")
    return 0
