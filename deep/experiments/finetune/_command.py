"""`deep finetune`: teach a small model to judge."""

import argparse
import json
import platform
import shutil
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from deep._util.files import check_replaceable, to_json, whole_folder, write_results
from deep.console import CommandParser, add_options, check_not_in, print_result, progress_bars, read_text
from deep.datasets.benchmarks import sha256_of
from deep.evaluate import Row
from deep.exceptions import ExitStatus, InputError, StoppedError
from deep.experiments.finetune import _train
from deep.experiments.finetune._train import Base, fitting_turns, load_base, quiet, require_training, train

LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
RUN = "run.json"
"""In the folder of checkpoints: what is being trained, so that nothing else is resumed from them."""


def add_arguments(parser: CommandParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="FILE", help="chat JSONL")
    add("--base", required=True, metavar="MODEL", help="id on the Hugging Face hub, or a folder")
    add("--out", required=True, type=Path, metavar="DIR", help="the tuned model, whole or not at all")
    add("--preset", choices=_train.PRESETS, help="what this paper states of its training, over our defaults")
    add("--lora", action="store_true", help="train low-rank matrices only; merged into the model")
    add("--resume", action="store_true", help="go on from the last checkpoint of the same run")
    add("--checkpoints", type=Path, metavar="DIR", help="default: OUT-checkpoints; removed at the end")
    add("--save-every", type=int, metavar="STEPS", help="a checkpoint that often; default: every epoch")
    add("--chat-template", metavar="FILE", help="Jinja template, where the base has none")
    add("--dtype", choices=("bfloat16", "float32"), default="float32", help="of the weights")
    add_options(parser, "json")
    group = parser.add_argument_group("settings, over the preset's")
    ours = _train.TrainSettings()
    for name, kind, purpose in (
        ("epochs", float, "passes over the data"),
        ("batch-size", int, "replies a step"),
        ("accumulate", int, "batches whose gradients are summed"),
        ("learning-rate", float, "at its highest"),
        ("beta1", float, "of Adam"),
        ("beta2", float, "of Adam"),
        ("warmup", float, "share of the steps"),
        ("max-length", int, "leave out what is more tokens; never cut"),
        ("lora-rank", int, "of the matrices"),
        ("lora-alpha", int, "of the matrices"),
        ("seed", int, "of order and dropout"),
    ):
        default = getattr(ours, name.replace("-", "_"))
        shown = "the model's limit" if default is None else f"{default:g}"
        group.add_argument(f"--{name}", type=kind, metavar="N", help=f"{purpose} (default: {shown})")
    group.add_argument("--schedule", choices=_train.SCHEDULES, help=f"of the learning rate (default: {ours.schedule})")


def run(args: argparse.Namespace) -> int:
    """Train, write and report."""
    settings = _train.settings_for(args.preset, vars(args))
    if args.save_every is not None and args.save_every < 1:
        raise InputError(f"`save-every` must be at least 1. Got {args.save_every}.")
    check_replaceable(args.out)
    check_not_in(args.out, Path(args.base), "base")
    template = None if args.chat_template is None else read_text(args.chat_template, "chat-template")
    turns = [turn for chat in _train.read_chats(args.data) for turn in _train.turns_of(chat)]
    require_training()
    checkpoints = args.checkpoints or args.out.with_name(f"{args.out.name}-checkpoints")
    with quiet():
        base = load_base(args.base, template, args.dtype)
        kept = fitting_turns(turns, base, settings.max_length)
        record = _record(args, settings, base, len(turns), len(kept))
        last = _claim(checkpoints, record, args.resume)
        try:
            log = _train_and_save(args, settings, base, kept, checkpoints, last, record)
        except KeyboardInterrupt:
            resume = f"The same command with --resume goes on from {checkpoints}."
            raise StoppedError("interrupted", resume) from None
    shutil.rmtree(checkpoints, ignore_errors=True)
    _report(args, record, log)
    return ExitStatus.DONE


def _record(args: argparse.Namespace, settings: _train.TrainSettings, base: Base, n_turns: int, n_kept: int) -> Row:
    """Return the record that identifies a run; no path of this machine is in it."""
    return {
        "command": "finetune",
        "base": base.name,
        "method": "lora" if args.lora else "full",
        "dtype": args.dtype,
        "chat_template_sha256": sha256(str(base.tokenizer.chat_template).encode()).hexdigest(),
        "data": {"file": args.data.name, "sha256": sha256_of(args.data)},
        "replies": {"read": n_turns, "too_long": n_turns - n_kept, "used": n_kept},
        "settings": _train.as_record(settings, args.preset),
    }


def _claim(checkpoints: Path, record: Row, resume: bool) -> Path | None:
    """Make the folder of checkpoints this run's; return the one to go on from."""
    last = _last_checkpoint(checkpoints)
    told = checkpoints / RUN
    if resume:
        if last is None:
            raise InputError(f"`resume` must find a checkpoint. Got none in {checkpoints}. Start without --resume.")
        _check_same_run(told, record)
        return last
    if last is not None:
        raise InputError(f"`checkpoints` must be empty. Got a run in {checkpoints}. Add --resume, or remove it.")
    if checkpoints.exists() and not (checkpoints.is_dir() and all(path.name == RUN for path in checkpoints.iterdir())):
        raise InputError(f"`checkpoints` must be a new or empty folder. Got {checkpoints}, which holds other files.")
    checkpoints.mkdir(parents=True, exist_ok=True)
    told.write_text(to_json(record), encoding="utf-8")
    return None


def _last_checkpoint(checkpoints: Path) -> Path | None:
    """Return the last checkpoint that is whole: its state is what is written last."""
    whole = [path.parent for path in checkpoints.glob("checkpoint-*/trainer_state.json")]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _check_same_run(told: Path, record: Row) -> None:
    before: Any = None
    with suppress(OSError, ValueError):
        before = json.loads(told.read_text(encoding="utf-8"))
    if before != record:
        changed = sorted(key for key in record if not isinstance(before, dict) or before.get(key) != record[key])
        raise InputError(f"`resume` must go on with the same run. Got another {', '.join(changed)} than in {told}.")


def _train_and_save(
    args: argparse.Namespace,
    settings: _train.TrainSettings,
    base: Base,
    turns: list[_train.TrainingTurn],
    checkpoints: Path,
    last: Path | None,
    record: Row,
) -> list[dict[str, float]]:
    with progress_bars() as start:
        bars: Row = {}

        def on_step(_: int, steps: int) -> None:
            bars.setdefault("steps", start("training", steps))()

        model, log = train(
            base,
            turns,
            settings,
            lora=args.lora,
            checkpoints=checkpoints,
            save_every=args.save_every,
            resume_from=last,
            on_step=on_step,
        )
    with whole_folder(args.out) as folder:
        model.save_pretrained(folder)
        base.tokenizer.save_pretrained(folder)
        results = {**record, "versions": _versions(), "losses": log}
        write_results(folder, results)
    return log


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("deep", *LIBRARIES):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _report(args: argparse.Namespace, record: Row, log: list[dict[str, float]]) -> None:
    replies, first, last = record["replies"], log[0]["loss"], log[-1]["loss"]
    steps = {"steps": len(log), "first_loss": first, "last_loss": last}
    lines = [
        f"{replies['used']} replies ({replies['too_long']} too long), {len(log)} steps: loss {first:.4f} to {last:.4f}",
        f"{args.out}: model, tokenizer, results.json",
    ]
    print_result({"out": str(args.out), "replies": replies, **steps}, lines, as_json=args.json)
