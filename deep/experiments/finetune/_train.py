"""Supervised fine-tuning with TRL: load, train, resume, save."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from deep.exceptions import InputError, MissingDependencyError
from deep.experiments.finetune._data import TrainingTurn, TrainSettings

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback, TrainerState
    from trl import SFTConfig


KEPT = ("step", "epoch", "loss", "learning_rate", "grad_norm")


@dataclass(frozen=True)
class Base:
    """A causal language model and its tokenizer, before training."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    name: str
    limit: int | None


def require_training() -> None:
    """Raise unless the libraries of deep-judges[train] can be imported."""
    try:
        import datasets  # noqa: F401
        import peft  # noqa: F401
        import torch  # noqa: F401
        import trl  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            f"Fine-tuning needs a library that is not installed ({error}). Run: pip install 'deep-judges[train]'."
        ) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence progress bars of the libraries, and their warnings about each other."""
    from datasets.utils import logging as data_logging
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    drawn = data_logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    data_logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            # peft and trl lag behind what transformers renames; a user can do nothing about it.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
        if drawn:
            data_logging.enable_progress_bar()


def load_base(base: str, chat_template: str | None, dtype: str) -> Base:
    """Load a causal language model and its tokenizer, with a chat template and an end-of-text token."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    name = Path(base).resolve().name if Path(base).exists() else base
    try:
        tokenizer = AutoTokenizer.from_pretrained(base)
        model, report = AutoModelForCausalLM.from_pretrained(
            base, dtype=getattr(torch, dtype), output_loading_info=True
        )
    except Exception as error:  # transformers raises many kinds where a file is damaged
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError(
            f"`base` must be a causal language model that transformers loads: an id on the hub, or a folder. "
            f"Got {base!r}: {reason[:300]}"
        ) from None
    lost = sorted(report["missing_keys"])
    if lost:
        raise InputError(f"`base` must hold every weight of the model. Got {base!r}, which lacks {lost[0]!r}.")
    if chat_template is not None:
        tokenizer.chat_template = chat_template
    if not tokenizer.chat_template:
        raise InputError(f"`base` must have a chat template. Got {base!r}, which has none. Give --chat-template FILE.")
    if tokenizer.eos_token is None:
        raise InputError(f"`base` must have a tokenizer with an end-of-text token. Got {base!r}, which has none.")
    limit = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return Base(model, tokenizer, name, limit)


def fitting_turns(turns: Sequence[TrainingTurn], base: Base, max_length: int | None) -> list[TrainingTurn]:
    """Return the turns that fit whole; a conversation is never cut, since half a source teaches to invent."""
    limit = min((value for value in (max_length, base.limit) if value), default=None)
    kept = [turn for turn in turns if limit is None or _length(turn, base.tokenizer) <= limit]
    if not kept:
        raise InputError(f"`max_length` must leave at least one reply to learn from. Got {limit}, and all are longer.")
    return kept


def _length(turn: TrainingTurn, tokenizer: "PreTrainedTokenizerBase") -> int:
    try:
        encoded = tokenizer.apply_chat_template([*turn.prompt, *turn.completion], return_dict=True)
    except Exception as error:  # a template raises any exception, for instance where roles do not alternate
        raise InputError(
            f"`data` must fit the chat template of the base model. Got line {turn.line}: {str(error)[:200]}"
        ) from None
    return len(encoded["input_ids"])


def train(
    base: Base,
    turns: Sequence[TrainingTurn],
    settings: TrainSettings,
    *,
    lora: bool,
    checkpoints: Path,
    save_every: int | None,
    resume_from: Path | None,
    on_step: Callable[[int, int], None],
) -> tuple["PreTrainedModel", list[dict[str, float]]]:
    """Train; return the model and one record a step: step, epoch, loss, learning rate, norm of the gradient.

    The loss is that of the tokens of the reply alone: every turn is a prompt and its completion.
    """
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import SFTTrainer

    cached = base.model.config.use_cache
    rows = [{"prompt": turn.prompt, "completion": turn.completion} for turn in turns]
    trainer = SFTTrainer(
        model=base.model,
        args=_config(settings, checkpoints, save_every),
        train_dataset=Dataset.from_list(rows),
        processing_class=base.tokenizer,
        peft_config=_lora(settings) if lora else None,
        callbacks=[_callback(on_step)],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train(resume_from_checkpoint=None if resume_from is None else str(resume_from))
    log = [{key: entry[key] for key in KEPT if key in entry} for entry in trainer.state.log_history if "loss" in entry]
    model = trainer.accelerator.unwrap_model(trainer.model)
    model = model.merge_and_unload() if lora else model
    model.config.use_cache = cached  # training turns it off, and a server that reads the file would be slow
    return model, log


def _config(settings: TrainSettings, checkpoints: Path, save_every: int | None) -> "SFTConfig":
    import torch
    from trl import SFTConfig

    cuda = torch.cuda.is_available()
    return SFTConfig(
        output_dir=str(checkpoints),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        learning_rate=settings.learning_rate,
        adam_beta1=settings.beta1,
        adam_beta2=settings.beta2,
        weight_decay=0.0,
        optim="adamw_torch",
        lr_scheduler_type=settings.schedule,
        warmup_steps=settings.warmup,
        max_length=None,
        seed=settings.seed,
        bf16=cuda and torch.cuda.is_bf16_supported(),
        dataloader_pin_memory=cuda,
        logging_steps=1,
        logging_nan_inf_filter=False,  # or a loss that is no number is logged as 0, and trained on
        save_strategy="epoch" if save_every is None else "steps",
        save_steps=save_every or 500,
        save_total_limit=1,
        report_to=[],
        disable_tqdm=True,
        **{_checkpointing(SFTConfig): cuda},
    )


def _checkpointing(config: "type[SFTConfig]") -> str:
    """Return the name that this version of transformers has for gradient checkpointing."""
    known = {field.name for field in fields(config)}
    return "activation_checkpointing" if "activation_checkpointing" in known else "gradient_checkpointing"


def _lora(settings: TrainSettings) -> "LoraConfig":
    from peft import LoraConfig

    return LoraConfig(
        r=settings.lora_rank, lora_alpha=settings.lora_alpha, target_modules="all-linear", task_type="CAUSAL_LM"
    )


def _callback(on_step: Callable[[int, int], None]) -> "TrainerCallback":
    from transformers import TrainerCallback

    class Report(TrainerCallback):
        """Reports every step, and stops where the loss is no longer finite."""

        def on_step_end(self, args: object, state: "TrainerState", control: object, **_: object) -> None:  # noqa: ARG002
            on_step(state.global_step, state.max_steps)

        def on_log(
            self,
            args: object,  # noqa: ARG002
            state: "TrainerState",
            control: object,  # noqa: ARG002
            logs: Mapping[str, float] | None = None,
            **_: object,
        ) -> None:
            for name in ("loss", "grad_norm"):
                value = (logs or {}).get(name, 0.0)
                if not math.isfinite(value):
                    raise InputError(
                        f"`{name}` must stay a finite number. Got {value} at step {state.global_step}. "
                        "Lower --learning-rate, or look whether the weights of --base are numbers."
                    )

    return Report()


def save_model(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", folder: Path) -> None:
    """Write weights (safetensors), configuration and tokenizer with its chat template."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
