"""Locating a model's files, and its fingerprint."""

import hashlib
import re
from importlib.util import find_spec
from pathlib import Path

from deep.exceptions import InputError, MissingDependencyError

_CONFIG_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")
_WHAT_COUNTS = (
    "config.json",
    "added_tokens.json",
    "merges.txt",
    "special_tokens_map.json",
    "spiece.model",
    "sentencepiece*.model",
    "sentence_bert_config.json",
    "spm.model",
    "tokenizer*",
    "vocab*",
    "1_Pooling/config.json",
)


def require_libraries() -> None:
    """Raise unless torch and transformers can be imported, which takes seconds: after all that may be refused."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise _missing(error) from None


def _missing(what: object) -> MissingDependencyError:
    return MissingDependencyError(
        f"Encoders need a library that is not installed ({what}). Run: pip install 'deep-judges[encoders]'."
    )


def model_folder(id_or_path: str | Path, revision: str | None) -> Path:
    """Return the folder of a model: the one that was named, or the local copy of a hub model, fetched where needed."""
    path = Path(id_or_path).expanduser()
    if path.exists():
        return _checked(path, str(id_or_path))
    if not isinstance(id_or_path, str) or not _HUB_ID.fullmatch(id_or_path):
        raise InputError(
            f"`id_or_path` must be the folder of a model or its id on the Hugging Face hub (owner/name). "
            f"Got {str(id_or_path)!r}, and there is no such folder."
        )
    return _checked(_fetch(id_or_path, revision), id_or_path)


def _checked(folder: Path, given: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"`id_or_path` must be a folder or an id on the hub. Got the file {given!r}.")
    if not (folder / "config.json").is_file():
        raise InputError(f"`id_or_path` must hold a model with its config.json. Got {given!r}, which has none.")
    return folder


def _fetch(hub_id: str, revision: str | None) -> Path:
    lacking = [name for name in ("torch", "transformers") if find_spec(name) is None]
    if lacking:  # nothing is fetched in vain
        raise _missing(f"No module named {lacking[0]!r}")
    from huggingface_hub import snapshot_download

    def fetch(*patterns: str) -> Path:
        return Path(snapshot_download(hub_id, revision=revision, allow_patterns=[*_CONFIG_FILES, *patterns]))

    try:
        folder = fetch("*.safetensors")
        return folder if any(folder.glob("*.safetensors")) else fetch("*.bin")
    except (OSError, ValueError) as error:
        raise InputError(
            f"`id_or_path` must name a model that can be had from the hub or its local cache. Got {hub_id!r}: "
            f"{one_line(error)} Check the name and the network, or give the folder of a copy."
        ) from None


def one_line(error: BaseException) -> str:
    """Return the first sentence or line of a library's error, ended by a full stop."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"{text.removeprefix('Got: ').rstrip('.:')[:200]}."


def model_name(id_or_path: str | Path, folder: Path) -> str:
    """Return the hub id, or the name of the folder: never the place of the folder on this machine."""
    return folder.resolve().name if Path(id_or_path).expanduser().exists() else str(id_or_path)


def fingerprint(folder: Path) -> str:
    """Return a SHA-256 over the files that decide what a model answers: configuration, tokenizer, weights."""
    weights = sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    settings = sorted({path for pattern in _WHAT_COUNTS for path in folder.glob(pattern) if path.is_file()})
    digest = hashlib.sha256()
    for path in [*settings, *weights]:
        with path.open("rb") as stream:
            part = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {part}\n".encode())
    return digest.hexdigest()
