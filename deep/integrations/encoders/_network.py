"""A tokenizer and a network, loaded quietly and asked in batches."""

import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import numpy as np

from deep._util.checks import Floats
from deep._util.files import JsonObject
from deep.exceptions import InputError, MissingDependencyError

if TYPE_CHECKING:
    import torch
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
    from transformers.utils import ModelOutput


# What is fetched of a model beside its weights.
_CONFIG_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
# The form of a model's id on the Hub: its name, or OWNER/NAME.
_HUB_ID = re.compile(r"[\w-][\w.-]*(/[\w.-]+)?")
_FILES_HASHED = (
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


def _require_libraries() -> None:
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
        return _check_folder(path, str(id_or_path))
    if not isinstance(id_or_path, str) or not _HUB_ID.fullmatch(id_or_path):
        raise InputError(
            f"`id_or_path` must be the folder of a model or its id on the Hugging Face hub (owner/name). "
            f"Got {str(id_or_path)!r}, and there is no such folder."
        )
    return _check_folder(_fetch(id_or_path, revision), id_or_path)


def _check_folder(folder: Path, origin: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"`id_or_path` must be a folder or an id on the hub. Got the file {origin!r}.")
    if not (folder / "config.json").is_file():
        raise InputError(f"`id_or_path` must hold a model with its config.json. Got {origin!r}, which has none.")
    return folder


def _fetch(hub_id: str, revision: str | None) -> Path:
    """Download a model's configuration and weights from the hub, safetensors first."""
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
            f"`id_or_path` must name a model on the hub or in its local cache. Got {hub_id!r}: "
            f"{one_line(error)} Check the name and the network, or give the folder of a copy."
        ) from None


def one_line(error: BaseException) -> str:
    """Return the first sentence or line of a library's error, ended by a full stop."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return f"{text.removeprefix('Got: ').rstrip('.:')[:200]}."


def fingerprint(folder: Path, weights: Sequence[Path] = ()) -> str:
    """Return a SHA-256 over the files that decide what a model answers: configuration, tokenizer, weights."""
    weights = weights or sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))
    settings = sorted({path for pattern in _FILES_HASHED for path in folder.glob(pattern) if path.is_file()})
    digest = hashlib.sha256()
    for path in [*settings, *weights]:
        with path.open("rb") as stream:
            part = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {part}\n".encode())
    return digest.hexdigest()


# Tokens that a model can read whose files do not say how many.
_USUAL_LIMIT = 512
# What a network gives: values of labels, a vector of a text, words, or values of labels of each token.
NetworkKind = Literal["classifier", "embedding", "generator", "tagger"]

# How the name of an architecture of each kind ends.
ARCHITECTURE_ENDINGS: Mapping[NetworkKind, str] = {
    "classifier": "ForSequenceClassification",
    "embedding": "",
    "generator": "ForConditionalGeneration",
    "tagger": "ForTokenClassification",
}

# The class of transformers that loads a network of each kind.
MAKERS: Mapping[NetworkKind, str] = {
    "classifier": "AutoModelForSequenceClassification",
    "embedding": "AutoModel",
    "generator": "AutoModelForSeq2SeqLM",
    "tagger": "AutoModelForTokenClassification",
}

# Tokenizers that know no limit give an astronomic one.
_NO_LIMIT = 10**6

# Models of fairseq's family number their positions from the padding token's id plus one, and so lose two.
_FAIRSEQ_PAD = 1


@dataclass(frozen=True, kw_only=True)
class Network:
    """A loaded model.

    Parameters
    ----------
    tokenizer, model : object
        Of transformers; the model is in evaluation mode, in 32-bit floats.
    model_id : str
        The hub id, or the folder's name.
    folder : Path
        Where the model's files are.
    fingerprint : str
        SHA-256 of configuration, tokenizer and weights.
    max_tokens : int
        The longest input, special tokens counted.
    batch_size : int
        Texts, or pairs of texts, that are run at once.
    """

    tokenizer: "PreTrainedTokenizerBase"
    model: "PreTrainedModel"
    model_id: str
    folder: Path
    fingerprint: str
    max_tokens: int
    batch_size: int

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text, without special ones."""
        if not texts:
            return []
        encoded = self.tokenizer(
            list(map(_encodable, texts)), add_special_tokens=False, return_attention_mask=False, verbose=False
        )
        return [len(ids) for ids in encoded["input_ids"]]

    def special_tokens(self, *, pair: bool) -> int:
        """Return how many tokens are added to one text or to a pair."""
        return int(self.tokenizer.num_special_tokens_to_add(pair=pair))

    def batches(self, *texts: Sequence[str]) -> "Iterator[tuple[list[int], ModelOutput, torch.Tensor]]":
        """Yield (positions, the model's output, the attention mask) of batches of like length.

        `texts` is one sequence, or two of equal length for pairs. The longest come first, so that a batch too
        large for the memory fails at once.
        """
        import torch

        lengths = np.sum([self.count(column) for column in texts], axis=0)
        order = np.argsort(-lengths, kind="stable").tolist()
        parameters = inspect.signature(self.model.forward).parameters
        for start in range(0, len(order), self.batch_size):
            at = order[start : start + self.batch_size]
            columns = [[_encodable(column[i]) for i in at] for column in texts]
            encoded = self.tokenizer(*columns, padding=True, return_tensors="pt", verbose=False)
            inputs = {name: value.to(self.model.device) for name, value in encoded.items() if name in parameters}
            if type(self.model).__name__.endswith(ARCHITECTURE_ENDINGS["generator"]):
                # One step of the decoder: what it would say first.
                start = int(getattr(self.model.config, "decoder_start_token_id", None) or 0)
                inputs["decoder_input_ids"] = torch.full((len(at), 1), start, device=self.model.device)
            with torch.inference_mode():
                yield at, self.model(**inputs), encoded["attention_mask"].to(self.model.device)

    def logits(self, premises: Sequence[str], hypotheses: Sequence[str]) -> Floats:
        """Return the logits of each pair, shape (n_pairs, n_labels)."""
        result = np.empty((len(premises), int(self.model.config.num_labels)))
        for at, output, _ in self.batches(premises, hypotheses):
            result[at] = output.logits.float().cpu().numpy()
        return result


class NetworkOptions(TypedDict, total=False):
    """Options of every loader; :func:`load_encoder` says what they are."""

    batch_size: int
    device: str | None
    revision: str | None
    max_tokens: int | None
    model_id: str | None


# Gives the model and the tokenizer of a folder, and the files that its weights came from, unless they are the usual.
Make = Callable[[Path], tuple["PreTrainedModel", "PreTrainedTokenizerBase", list[Path]]]


def load_network(
    id_or_path: str | Path,
    kind: NetworkKind,
    *,
    reads: int | None = None,
    make: Make | None = None,
    **options: Unpack[NetworkOptions],
) -> Network:
    """Load a network of a kind, refusing what would answer at random.

    `reads` is the most tokens that its published way of use gives it, whatever its own limit says where positions are
    relative (as of T5), and within it otherwise. `make` reads weights that transformers does not.
    """
    batch_size = options.get("batch_size", 16)
    if type(batch_size) is not int or batch_size < 1:
        raise InputError(f"`batch_size` must be a whole number of at least 1. Got {batch_size!r}.")
    folder = model_folder(id_or_path, options.get("revision"))
    _require_libraries()
    files: list[Path] = []
    with transformers_silenced():
        if make is not None:
            model, tokenizer, files = make(folder)
        else:
            config, tokenizer = read_parts(folder, str(id_or_path))
            _check_kind(config, kind, str(id_or_path))
            model = _weights(folder, kind, str(id_or_path))
    _pad(tokenizer, model, str(id_or_path))
    # The hub id, or the name of the folder: never the place of the folder on this machine.
    name = folder.resolve().name if Path(id_or_path).expanduser().exists() else str(id_or_path)
    return Network(
        tokenizer=tokenizer,
        model=_to_device(model.eval(), options.get("device")),
        model_id=options.get("model_id") or name,
        folder=folder,
        fingerprint=fingerprint(folder, files),
        max_tokens=_limit(model.config, tokenizer, folder, reads, options.get("max_tokens")),
        batch_size=batch_size,
    )


@contextmanager
def transformers_silenced() -> Iterator[None]:
    """Keep transformers from drawing bars and reports; what matters in them is raised as an error here."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def read_parts(folder: Path, origin: str = "") -> "tuple[PretrainedConfig, PreTrainedTokenizerBase]":
    """Return the configuration and the tokenizer of a folder; errors call it by its `origin`."""
    from transformers import AutoConfig, AutoTokenizer

    try:
        return AutoConfig.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # transformers raises whatever the damaged file makes it raise
        raise InputError(
            f"`id_or_path` must hold a configuration and a tokenizer that transformers reads without running the "
            f"model's own code. Got {origin or folder.name!r}: {one_line(error)}"
        ) from None


def _check_kind(config: "PretrainedConfig", kind: NetworkKind, origin: str) -> None:
    built = list(config.architectures or [])
    if kind != "embedding" and not any(name.endswith(ARCHITECTURE_ENDINGS[kind]) for name in built):
        what = {"classifier": "sequence-classification", "tagger": "token-classification"}.get(kind, kind)
        raise InputError(
            f"`id_or_path` must hold a {what} model. Got {origin!r}, a "
            f"{', '.join(built) or 'model of an unknown kind'}. For sentence embeddings use load_embedding."
        )


def _weights(folder: Path, kind: NetworkKind, origin: str) -> "PreTrainedModel":
    """Return the model of a folder; raise where weights are missing, which would be drawn at random."""
    import torch
    import transformers

    maker = getattr(transformers, MAKERS[kind])
    try:
        model, report = maker.from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    except Exception as error:  # as above
        raise InputError(
            f"`id_or_path` must hold weights that transformers reads. Got {origin!r}: {one_line(error)}"
        ) from None
    gaps = sorted(name for name in report["missing_keys"] if not name.startswith("pooler."))
    if gaps:
        raise InputError(f"`id_or_path` must hold every weight of the model. Got {origin!r}, which lacks {gaps[0]!r}.")
    return model


# Tensors by name, as PyTorch saves them.
State = dict[str, Any]


def tensors_in(folder: Path, *patterns: str) -> tuple[Path, State]:
    """Return the file of a folder that fits one of the patterns, and its tensors; nothing else in it is run or read."""
    from safetensors.torch import load_file
    from torch import load

    path = next((path for pattern in patterns for path in sorted(folder.glob(pattern))), None)
    if path is None:
        raise InputError(
            f"`id_or_path` must be a folder that holds {' or '.join(patterns)} beside configuration and tokenizer. "
            f"Got {folder.name!r}, which has none. Put the published file there."
        )
    try:
        if path.suffix == ".safetensors":
            return path, load_file(path)
        result = load(path, map_location="cpu", weights_only=True)
        return path, result.get("state_dict", result)
    except Exception as error:  # torch raises whatever the damaged file makes it raise
        raise InputError(
            f"`id_or_path` must hold only tensors in {path.name}. Got {folder.name!r}: {one_line(error)} Save its "
            f"tensors as {path.stem}.safetensors."
        ) from None


def _pad(tokenizer: "PreTrainedTokenizerBase", model: "PreTrainedModel", origin: str) -> None:
    """Give a tokenizer of a decoder something to pad with, and tell the model of it."""
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if tokenizer.pad_token is None:
        raise InputError(f"`id_or_path` must hold a tokenizer with a padding token. Got {origin!r}, which has none.")
    if getattr(model.config, "pad_token_id", None) is None:
        model.config.pad_token_id = tokenizer.pad_token_id


def _to_device(model: "PreTrainedModel", device: str | None) -> "PreTrainedModel":
    """Return a model on a device; by default the GPU where there is one."""
    import torch

    target = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        return model.to(target)
    except (AssertionError, RuntimeError) as error:
        raise InputError(
            f"`device` must be a device that PyTorch can use here, such as cpu or cuda:0. Got {device!r}: "
            f"{one_line(error)}"
        ) from None


def read_settings(path: Path) -> JsonObject:
    """Return the JSON object in a file of settings; an empty one where there is no such file."""
    try:
        settings = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise InputError(f"`id_or_path` must hold settings in JSON. Got {path}: {one_line(error)}") from None
    if not isinstance(settings, dict):
        raise InputError(
            f"`id_or_path` must hold settings that are a JSON object. Got {path}, a {type(settings).__name__}."
        )
    return settings


def _limit(
    config: "PretrainedConfig", tokenizer: "PreTrainedTokenizerBase", folder: Path, reads: int | None, limit: int | None
) -> int:
    """Return the longest input that the model can read; `limit` can only lower it."""
    limits = [] if reads is None else [reads]
    positions = getattr(config, "max_position_embeddings", None)
    if reads is None or positions is not None:  # else positions are relative, and nothing else bounds an input
        # The tokenizer and the settings of sentence-transformers may name a limit, too.
        length = read_settings(folder / "sentence_bert_config.json").get("max_seq_length")
        limits += [value for value in (length, tokenizer.model_max_length) if value and value < _NO_LIMIT]
        if not isinstance(positions, int) or positions < 1:
            limits.append(_USUAL_LIMIT)
        else:
            limits.append(positions - 2 if config.pad_token_id == _FAIRSEQ_PAD else positions)
    if limit is not None and (type(limit) is not int or not 1 <= limit <= min(limits)):
        raise InputError(f"`max_tokens` must be a whole number from 1 to {min(limits)}. Got {limit!r}.")
    return limit or min(limits)


def _encodable(text: str) -> str:
    """Return a text as tokenizers take it: of the same length, without lone surrogates."""
    return text if text.isascii() else text.encode(errors="replace").decode()
