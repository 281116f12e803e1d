"""Writing training data of a detector: from published labels, from a judge's, or from its votes."""

import argparse
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from deep._files import check_out, whole_file, write_json_lines
from deep.exceptions import ExitStatus, InputError
from deep.experiments.cognibench._labels import AutoTurn, complete, read_labels, read_voted
from deep.experiments.cognibench._sft import Answered, chats
from deep.experiments.cognibench._split import turns_of_split
from deep.experiments.cognibench._turns import LabeledTurn, read_turns

Turn = LabeledTurn | AutoTurn


def export(args: argparse.Namespace) -> int:
    """Run ``deep cognibench export-sft``."""
    out = check_out(args.out, [".jsonl"])
    every = _read(args)
    turns = turns_of_split(every, args)
    answered = [pair for turn in turns for pair in _answered(turn, args.level)]
    if not answered:
        raise InputError(f"`level` must leave a turn whose sentences are all decided. Got none in {len(turns)}.")
    lines = []
    for path, some in _files(out, answered, args.sizes).items():
        with whole_file(path) as scratch:
            write_json_lines(scratch, chats(pair for _, pair in some))
        lines.append(f"{len(some):,} chats: in {path}")
    left = len(turns) - len(answered)
    lines += [f"{left:,} turns left out, with a sentence that the judge left undecided"] if left else []
    kept = len(every) - len(turns)
    lines += [f"{kept:,} turns of other dialogues are left for --split test"] if kept and args.split == "train" else []
    sys.stdout.write("\n".join([*lines, ""]))
    return ExitStatus.DONE


def _read(args: argparse.Namespace) -> Sequence[Turn]:
    given = [name for name in ("data", "labels") if getattr(args, name) is not None]
    if len(given) != 1:
        raise InputError(f"`data` or `labels` must be given, and not both. Got {' and '.join(given) or 'neither'}.")
    if args.labels is not None:
        if args.votes:
            raise InputError("`votes` must be given with the examples as `data`. Got `labels`.")
        return read_labels(args.labels)
    return read_voted(args.data, args.votes, args.voter) if args.votes else read_turns(args.data)


def _answered(turn: Turn, level: str) -> list[tuple[str, Answered]]:
    """Return a turn's identifier with its answer; nothing where a sentence is undecided."""
    if isinstance(turn, AutoTurn):
        return [(turn.turn_id, (turn.source, turn.response, bad)) for _, bad in complete([turn], level)]
    bad = [sentence.text for sentence in turn.sentences if sentence.hallucinated(level)]
    return [(turn.turn_id, (turn.source, turn.response, bad))]


def _files(
    out: Path, answered: list[tuple[str, Answered]], sizes: Sequence[str]
) -> dict[Path, list[tuple[str, Answered]]]:
    """Return the turns of each file; those of a smaller size are among those of a larger one."""
    wrong = [size for size in sizes if not size.isdecimal() or not 1 <= int(size) <= len(answered)]
    if wrong:
        raise InputError(f"`sizes` must be whole numbers from 1 to {len(answered)}. Got {wrong[0]!r}.")
    if not sizes:
        return {out: answered}
    shuffled = sorted(answered, key=lambda pair: sha256(pair[0].encode()).digest())
    return {out.with_stem(f"{out.stem}-{size}"): shuffled[: int(size)] for size in sizes}
