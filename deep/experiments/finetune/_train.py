"""Supervised fine-tuning with TRL on conversations from chat JSONL, which are checked line by line."""

import json
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.files import JsonObject, check_regular
from deep.exceptions import InputError, needs_extra
from deep.integrations import encoders

if TYPE_CHECKING:
    from peft import LoraConfig
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, TrainerCallback, TrainerState
    from trl import SFTConfig


ROLES = ("assistant", "system", "user")

ChatMessage = dict[str, str]


@dataclass(frozen=True)
class Chat:
    """The messages of one line of a file."""

    line: int
    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True)
class TrainingTurn:
    """One reply to be learned, and the conversation before it."""

    line: int
    prompt: list[ChatMessage]
    completion: list[ChatMessage]


def read_chats(path: Path) -> list[Chat]:
    r"""Read conversations from a JSONL file: a line ``{"messages": [{"role": ..., "content": ...}, ...]}`` each.

    Other keys of a line are left alone; empty lines are skipped.

    Raises
    ------
    InputError
        The file cannot be read or holds no conversation, or a line is no JSON, lacks a key, has a role other than
        assistant, system (first only) and user, an empty content, or no reply of the assistant at its end.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.experiments.finetune._train import read_chats
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name, "sft.jsonl")
    >>> _ = path.write_text('{"messages": [{"role": "user", "content": "1 + 1?"}, '
    ...                     '{"role": "assistant", "content": "2"}]}\n')
    >>> [chat.messages[-1]["content"] for chat in read_chats(path)]
    ['2']
    >>> folder.cleanup()
    """
    chats = [_chat(path, number, line) for number, line in _lines(path) if line.strip()]
    if not chats:
        raise InputError(f"`data` must hold at least one conversation. Got none in {path}.")
    return chats


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        check_regular(path, "data")
        with path.open(encoding="utf-8-sig") as stream:
            for number, line in enumerate(stream, start=1):
                yield number, line
    except OSError as error:
        raise InputError(
            f"`data` must be a JSONL file that can be read. Got {str(path)!r}: {error.strerror}."
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"`data` must be UTF-8. Got other bytes after line {number} of {str(path)!r}.") from None


def _chat(path: Path, line: int, text: str) -> Chat:
    def wrong(key: str, must: str, got: object) -> InputError:
        shown = got if isinstance(got, str) and key == "the line" else repr(got)
        return InputError(f"`data` must have {must}. Got {shown[:80]} at {path}, line {line}, {key}.")

    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise wrong("the line", "a JSON object a line", repr(text.strip())) from None
    if not isinstance(given, dict):
        raise wrong("the line", "a JSON object a line", type(given).__name__)
    messages = given.get("messages")
    if not isinstance(messages, list) or not messages:
        raise wrong("key messages", "a list of messages", messages)
    for i, message in enumerate(messages):
        _check_message(message, i, f"key messages[{i}]", wrong)
    if messages[-1]["role"] != "assistant":
        raise wrong(f"key messages[{len(messages) - 1}].role", "an assistant's reply at the end", messages[-1]["role"])
    return Chat(line, tuple(messages))


def _check_message(message: object, i: int, key: str, wrong: Callable[[str, str, object], InputError]) -> None:
    if not isinstance(message, dict) or set(message) != {"role", "content"}:
        got = sorted(message) if isinstance(message, dict) else message
        raise wrong(key, "role and content in every message, and nothing else", got)
    if message["role"] not in ROLES or (message["role"] == "system" and i > 0):
        raise wrong(f"{key}.role", f"one of {', '.join(ROLES)} (system first) as role", message["role"])
    content = message["content"]
    if not isinstance(content, str) or not content.strip():
        raise wrong(f"{key}.content", "a text that is not empty as content", content)
    if any("\ud800" <= letter <= "\udfff" for letter in content):
        raise wrong(f"{key}.content", "whole characters as content", content.encode("ascii", "backslashreplace"))


def turns_of(chat: Chat) -> list[TrainingTurn]:
    """Return an example for each reply of the assistant, so that every one is learned and nothing else is."""
    messages = list(chat.messages)
    return [
        TrainingTurn(chat.line, messages[:i], [message])
        for i, message in enumerate(messages)
        if message["role"] == "assistant" and i > 0
    ]


SCHEDULES = ("constant", "cosine", "linear")


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """The settings of a fine-tuning; the defaults are ours.

    Parameters
    ----------
    epochs : float
        Passes over the data.
    batch_size : int
        Replies a step.
    accumulate : int
        Batches whose gradients are summed before the weights move.
    learning_rate : float
        At its highest.
    beta1, beta2 : float
        Of Adam. There is no weight decay, so AdamW is Adam.
    schedule : {'constant', 'cosine', 'linear'}
        How the learning rate falls after the warm-up.
    warmup : float
        Share of the steps over which the learning rate rises from 0.
    max_length : int or None
        Replies whose conversation is more tokens than this are left out, and counted; None: the model's limit.
    lora_rank, lora_alpha : int
        Of the low-rank matrices, where they are used.
    seed : int
        Of the order of the data, of dropout and of LoRA's start.
    """

    epochs: float = 3.0
    batch_size: int = 2
    accumulate: int = 1
    learning_rate: float = 2e-5
    beta1: float = 0.9
    beta2: float = 0.999
    schedule: str = "cosine"
    warmup: float = 0.02
    max_length: int | None = None
    lora_rank: int = 16
    lora_alpha: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in MOST.items():
            _check(name, getattr(self, name), 1 <= getattr(self, name) <= most, f"from 1 to {most:,}")
        _check("epochs", self.epochs, 0 < self.epochs <= MOST_EPOCHS, f"above 0, up to {MOST_EPOCHS:,}")
        _check("learning_rate", self.learning_rate, 0 < self.learning_rate < 1, "above 0 and below 1")
        for name in ("beta1", "beta2", "warmup"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) < 1, "in [0, 1)")
        _check("max_length", self.max_length, self.max_length is None or self.max_length >= 1, "at least 1")
        _check("seed", self.seed, 0 <= self.seed < 2**32, "from 0 to 4294967295")
        if self.schedule not in SCHEDULES:
            raise InputError(f"`schedule` must be one of {', '.join(SCHEDULES)}. Got {self.schedule!r}.")


MOST_EPOCHS = 10_000
"""More than any model is trained for; a number mistyped is not counted to."""

MOST = {"batch_size": 1_000_000, "accumulate": 1_000_000, "lora_rank": 65_536, "lora_alpha": 1_000_000}
"""More than any machine has memory for, or a matrix rows."""

STATED: dict[str, JsonObject] = {
    "probe": {"learning_rate": 2e-5, "beta1": 0.9, "beta2": 0.999, "schedule": "cosine", "warmup": 0.02},
    "cognibench": {"epochs": 3.0, "batch_size": 2, "learning_rate": 5e-5},
}
"""All that each paper states about its own training."""

PRESETS = tuple(sorted(STATED))


def _check(name: str, value: object, fine: bool, must: str) -> None:
    if not fine:
        raise InputError(f"`{name}` must be {must}. Got {value!r}.")


def settings_for(preset: str | None, asked: JsonObject) -> TrainSettings:
    """Return our defaults, over them what a paper states, over that what was asked for.

    Examples
    --------
    >>> from deep.experiments.finetune._train import settings_for
    >>> settings = settings_for("cognibench", {"batch_size": 8})
    >>> settings.epochs, settings.batch_size, settings.learning_rate
    (3.0, 8, 5e-05)
    """
    known = {field.name for field in fields(TrainSettings)}
    given = {name: value for name, value in asked.items() if name in known and value is not None}
    return replace(TrainSettings(**STATED[preset] if preset else {}), **given)


def as_record(settings: TrainSettings, preset: str | None) -> JsonObject:
    """Return the settings for a file, with the names of those that the paper states."""
    return {**asdict(settings), "preset": preset, "stated_by_paper": sorted(STATED[preset]) if preset else []}


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
    with needs_extra("train", what="Fine-tuning"):
        import datasets  # noqa: F401
        import peft  # noqa: F401
        import torch  # noqa: F401
        import trl  # noqa: F401


@contextmanager
def quiet() -> Iterator[None]:
    """Silence progress bars of the libraries, and their warnings about each other."""
    from datasets.utils import logging

    drawn = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        with encoders.quiet(), warnings.catch_warnings():
            # peft and trl lag behind what transformers renames; a user can do nothing about it.
            warnings.simplefilter("ignore", FutureWarning)
            yield
    finally:
        if drawn:
            logging.enable_progress_bar()


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
