"""Teach a small model to judge: supervised fine-tuning on chat JSONL, full or LoRA, with the papers' settings.

Every line of the data is {"messages": [{"role": ..., "content": ...}, ...]}, as `export-sft` of the companion systems
writes it; the model learns the assistant's replies and nothing else. The tuned model is a folder that any
OpenAI-compatible server loads, and so a judge like any other: deep votes --base-url ... --model ...
"""

import argparse
import json
import platform
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from deep._files import check_replaceable, to_json, whole_folder
from deep.console import INTERRUPTED, HelpFormatter, guarded, progress_bars
from deep.exceptions import InputError
from deep.experiments.finetune._data import TrainingTurn, file_hash, read_chats, turns_of
from deep.experiments.finetune._settings import PRESETS, SCHEDULES, TrainSettings, as_record, settings_for
from deep.experiments.finetune._train import Base, fitting_turns, load_base, quiet, require_training, save_model, train

__all__ = ["main"]

LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
RUN = "run.json"
"""In the folder of checkpoints: what is being trained, so that nothing else is resumed from them."""

EXAMPLES = """examples:
  deep finetune --data sft.jsonl --base meta-llama/Llama-3.1-8B-Instruct --preset cognibench --out tuned
  deep finetune --data sft.jsonl --base models/small --preset probe --lora --epochs 2 --out tuned
  deep finetune --data sft.jsonl --base models/small --preset probe --lora --epochs 2 --out tuned --resume
  transformers serve tuned --port 8000 &
  deep votes mine.csv --prompt yes-no --model tuned --base-url http://127.0.0.1:8000/v1 --out votes.parquet
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``deep finetune``.

    Parameters
    ----------
    argv : list of str, optional
        Default: what the command was called with.

    Returns
    -------
    int
        0; 2 where an argument, the data or the model cannot be used; 130 where it was interrupted.
    """
    return guarded(_run, argv)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deep finetune", description=__doc__, epilog=EXAMPLES, formatter_class=HelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data", required=True, type=Path, metavar="FILE", help="chat JSONL")
    parser.add_argument("--base", required=True, metavar="MODEL", help="id on the Hugging Face hub, or a folder")
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the tuned model, whole or not at all")
    parser.add_argument("--preset", choices=PRESETS, help="what this paper states of its training, over our defaults")
    parser.add_argument("--lora", action="store_true", help="train low-rank matrices only; merged into the model")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the same run")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="default: OUT-checkpoints; removed at the end")
    parser.add_argument("--save-every", type=int, metavar="STEPS", help="a checkpoint that often; default: every epoch")
    parser.add_argument("--chat-template", type=Path, metavar="FILE", help="Jinja template, where the base has none")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="float32", help="of the weights")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    _add_settings(parser.add_argument_group("settings, over the preset's"))
    return parser


def _add_settings(group: Any) -> None:
    ours = TrainSettings()
    for name, kind, what in (
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
        told = "the model's limit" if default is None else f"{default:g}"
        group.add_argument(f"--{name}", type=kind, metavar="N", help=f"{what} (default: {told})")
    group.add_argument("--schedule", choices=SCHEDULES, help=f"of the learning rate (default: {ours.schedule})")


def _run(argv: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(argv)
    settings = settings_for(arguments.preset, vars(arguments))
    if arguments.save_every is not None and arguments.save_every < 1:
        raise InputError(f"`save-every` must be at least 1. Got {arguments.save_every}.")
    check_replaceable(arguments.out)
    template = _read_template(arguments.chat_template)
    turns = [turn for chat in read_chats(arguments.data) for turn in turns_of(chat)]
    require_training()
    checkpoints = arguments.checkpoints or arguments.out.with_name(f"{arguments.out.name}-checkpoints")
    with quiet():
        base = load_base(arguments.base, template, arguments.dtype)
        kept = fitting_turns(turns, base, settings.max_length)
        record = _record(arguments, settings, base, len(turns), len(kept))
        last = _claim(checkpoints, record, arguments.resume)
        try:
            log = _train_and_save(arguments, settings, base, kept, checkpoints, last, record)
        except KeyboardInterrupt:
            sys.stderr.write(f"interrupted; the same command with --resume goes on from {checkpoints}\n")
            return INTERRUPTED
    shutil.rmtree(checkpoints, ignore_errors=True)
    _tell(arguments, record, log)
    return 0


def _read_template(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"`chat-template` must be a text file. Got {str(path)!r}: {error}.") from None


def _record(arguments: Any, settings: TrainSettings, base: Base, n_turns: int, n_kept: int) -> dict[str, Any]:
    """Return what identifies a run; no place on this machine is in it."""
    return {
        "command": "finetune",
        "base": base.name,
        "method": "lora" if arguments.lora else "full",
        "dtype": arguments.dtype,
        "chat_template_sha256": sha256(str(base.tokenizer.chat_template).encode()).hexdigest(),
        "data": {"file": arguments.data.name, "sha256": file_hash(arguments.data)},
        "replies": {"read": n_turns, "too_long": n_turns - n_kept, "used": n_kept},
        "settings": as_record(settings, arguments.preset),
    }


def _claim(checkpoints: Path, record: dict[str, Any], resume: bool) -> Path | None:
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


def _check_same_run(told: Path, record: dict[str, Any]) -> None:
    before: Any = None
    with suppress(OSError, ValueError):
        before = json.loads(told.read_text(encoding="utf-8"))
    if before != record:
        changed = sorted(key for key in record if not isinstance(before, dict) or before.get(key) != record[key])
        raise InputError(f"`resume` must go on with the same run. Got another {', '.join(changed)} than in {told}.")


def _train_and_save(
    arguments: Any,
    settings: TrainSettings,
    base: Base,
    turns: list[TrainingTurn],
    checkpoints: Path,
    last: Path | None,
    record: dict[str, Any],
) -> list[dict[str, float]]:
    with progress_bars() as start:
        bars: dict[str, Any] = {}

        def on_step(_: int, steps: int) -> None:
            bars.setdefault("steps", start("training", steps))()

        model, log = train(
            base,
            turns,
            settings,
            lora=arguments.lora,
            checkpoints=checkpoints,
            save_every=arguments.save_every,
            resume_from=last,
            on_step=on_step,
        )
    with whole_folder(arguments.out) as folder:
        save_model(model, base.tokenizer, folder)
        results = {**record, "versions": _versions(), "losses": log}
        (folder / "results.json").write_text(to_json(results), encoding="utf-8")
    return log


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("deep", *LIBRARIES):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _tell(arguments: Any, record: dict[str, Any], log: list[dict[str, float]]) -> None:
    summary = {
        "out": str(arguments.out),
        "replies": record["replies"],
        "steps": len(log),
        "first_loss": log[0]["loss"],
        "last_loss": log[-1]["loss"],
    }
    if arguments.json:
        sys.stdout.write(json.dumps(summary) + "\n")
        return
    replies = record["replies"]
    sys.stdout.write(
        f"{replies['used']} replies ({replies['too_long']} too long), {len(log)} steps: "
        f"loss {log[0]['loss']:.4f} to {log[-1]['loss']:.4f}\n"
        f"{arguments.out}: model, tokenizer, results.json\n"
    )
