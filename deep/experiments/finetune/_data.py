"""Training conversations from chat JSONL, checked line by line, and how they become training examples."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from deep._files import check_regular
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
