"""Training conversations from chat JSONL, checked line by line, and how they become training examples."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from pathlib import Path

from deep._util.files import JsonObject, check_regular
from deep.exceptions import InputError

ROLES = ("assistant", "system", "user")

Message = dict[str, str]


@dataclass(frozen=True)
class Chat:
    """The messages of one line of a file."""

    line: int
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class TrainingTurn:
    """One reply to be learned, and the conversation before it."""

    line: int
    prompt: list[Message]
    completion: list[Message]


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
    >>> from deep.experiments.finetune._data import read_chats
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


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        digest = sha256()
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


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
    >>> from deep.experiments.finetune._data import settings_for
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
