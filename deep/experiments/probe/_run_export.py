"""Writing training data."""

import argparse
import sys
from collections import Counter

from deep._files import check_out, whole_file, write_json_lines
from deep.exceptions import ExitStatus, InputError
from deep.experiments.probe._articles import SPLITS
from deep.experiments.probe._run_eval import data_file, split_samples
from deep.experiments.probe._sft import chats


def export(args: argparse.Namespace) -> int:
    """Run ``deep probe export-sft``."""
    out, data = check_out(args.out, [".jsonl"]), data_file(args.data, "train")
    if out.resolve() in (data.resolve(), *(data.resolve().with_name(f"{split}.jsonl") for split in SPLITS)):
        raise InputError(f"`out` must leave the benchmark as it is. Got {str(out)!r}. Give another name.")
    written = list(chats(split_samples(args.data, "train")))
    with whole_file(out) as scratch:
        write_json_lines(scratch, written)
    counts = Counter(chat["step"] for chat in written)
    sys.stdout.write(f"{counts['find']} finding and {counts['evaluate']} evaluation examples written to {out}\n")
    return ExitStatus.DONE
