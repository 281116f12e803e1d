"""Writing training data."""

import argparse
import json
import sys
from collections import Counter

from deep._files import check_out, whole_file
from deep.exceptions import ExitStatus, InputError
from deep.experiments.probe._run_build import SPLITS
from deep.experiments.probe._run_eval import data_file, split_samples
from deep.experiments.probe._sft import chats


def export(args: argparse.Namespace) -> int:
    """Run ``deep probe export-sft``."""
    out, data = check_out(args.out, [".jsonl"]), data_file(args.data, "train")
    if out.resolve() in (data.resolve(), *(data.resolve().with_name(f"{split}.jsonl") for split in SPLITS)):
        raise InputError(f"`out` must leave the benchmark as it is. Got {str(out)!r}. Give another name.")
    counts: Counter[str] = Counter()
    samples = split_samples(args.data, "train")
    with whole_file(out) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        for chat in chats(samples):
            counts[chat["step"]] += 1
            file.write(json.dumps(chat, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{counts['find']} finding and {counts['evaluate']} evaluation examples written to {out}\n")
    return ExitStatus.DONE
