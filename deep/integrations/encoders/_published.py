"""Judges of published networks, used as their authors do: HHEM, MiniCheck, LettuceDetect, AlignScore; all by name."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.special import softmax

from deep._util.checks import Floats
from deep.exceptions import InputError
from deep.integrations.encoders import _network
from deep.integrations.encoders._encoder import (
    SUMMAC_CONV,
    SUMMAC_ZS,
    EncoderJudge,
    load_embedding,
    load_encoder,
    load_summac,
    load_summac_conv,
)
from deep.integrations.encoders._encoder_judge import Head, NetworkJudge, PairGrid, PairJudge, TextPair, chunk_spans
from deep.records import Judgment

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class CheckerJudge(PairJudge):
    """Sets a claim against each part of its source, of which the best decides; a subclass cuts the source.

    Parameters
    ----------
    network : Network
        The loaded model, with its tokenizer; it gives the logits of two answers.
    threshold : float
        In [0, 1].

    Attributes
    ----------
    name, version : str
        The version is a hash of the settings and of the model's files.
    """

    network: _network.Network
    threshold: float
    name: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise InputError(f"`threshold` must lie in [0, 1]. Got {self.threshold!r}.")
        self._set_version()

    @abstractmethod
    def _input(self, pair: TextPair) -> str:
        """Return the text that the network is given of a pair."""

    def _logits(self, logits: Floats) -> Floats:
        """Return the logits of the two answers, shape (n, 2), in what the network gives."""
        return logits

    def _tokens_beside(self, claims: Sequence[str]) -> int:
        inputs = [self._input(("", claim)) for claim in claims]
        return max(self.network.count(inputs)) + self.network.special_tokens(pair=False)

    def _pair_outputs(self, pairs: list[TextPair]) -> list[Floats]:
        """Return P(consistent) of each pair."""
        logits = np.empty((len(pairs), 2))
        for at, output, _ in self.network.batches([self._input(pair) for pair in pairs]):
            logits[at] = self._logits(output.logits.float().cpu().numpy())
        return list(softmax(logits, axis=1)[:, 1:])

    def _verdict(self, grid: PairGrid, values: list[list[Floats]]) -> Judgment:
        best = int(np.argmax([value[0] for (value,) in values]))
        score = float(values[best][0][0])
        evidence = (grid[best][0][0],)
        return Judgment(vote=int(score >= self.threshold), score=score, model=self.model_id, evidence=evidence)


# Positions are relative: the memory limits an input first.
NO_LIMIT = 1_000_000

TEXT_BLANKS = ("{text1}", "{text2}")


@dataclass(frozen=True)
class HHEMJudge(CheckerJudge):
    """HHEM-2.1 [1]_ as published; made by :func:`load_hhem`. It reads the whole source at once.

    References
    ----------
    .. [1] Vectara, HHEM-2.1-Open, 2024. https://huggingface.co/vectara/hallucination_evaluation_model
    """

    prompt: str = "{text1} {text2}"
    name: str = field(init=False, default="hhem")

    def _input(self, pair: TextPair) -> str:
        before, _, rest = self.prompt.partition(TEXT_BLANKS[0])
        between, _, after = rest.partition(TEXT_BLANKS[1])
        return f"{before}{pair[0]}{between}{pair[1]}{after}"

    def _logits(self, logits: Floats) -> Floats:
        return logits[:, 0, :]

    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
        """Return the whole source, or nothing where it is too long: it is never read in parts."""
        return (source,) if self.network.count([source])[0] <= room else ()


def load_hhem(
    id_or_path: str | Path,
    *,
    foundation: str | Path | None = None,
    threshold: float = 0.5,
    **options: Unpack[_network.NetworkOptions],
) -> HHEMJudge:
    """Make a judge of HHEM-2.1 without running the code that comes with it.

    Parameters
    ----------
    id_or_path : str or Path
        ``vectara/hallucination_evaluation_model``, or a folder with its config.json and model.safetensors.
    foundation : str or Path, optional
        The T5 whose configuration and tokenizer it uses, by id or folder; default: the one that config.json names.
    threshold : float, default=0.5
        The vote is 1 where P(consistent) is at least this.
    batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`; there is no limit of tokens unless one is given.

    Raises
    ------
    InputError
        There is no such model or foundation, or it lacks its prompt or weights.
    MissingDependencyError
        torch or transformers is not installed.
    """
    folder = _network.model_folder(id_or_path, options.get("revision"))
    settings = _network.read_settings(folder / "config.json")
    prompt = str(settings.get("prompt", ""))
    if not all(blank in prompt for blank in TEXT_BLANKS):
        raise InputError(
            f"`id_or_path` must hold HHEM's config.json, whose prompt has {' and '.join(TEXT_BLANKS)}. Got {prompt!r}."
        )
    make = partial(_load, foundation=str(foundation or settings.get("foundation", "")))
    options = _network.NetworkOptions(batch_size=8) | options
    network = _network.load_network(id_or_path, "tagger", **options, reads=NO_LIMIT, make=make)
    return HHEMJudge(network, threshold, prompt=prompt)


def _load(folder: Path, foundation: str) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase, list[Path]]":
    """Return the T5 of the foundation with HHEM's weights, and the foundation's tokenizer."""
    from safetensors.torch import load_file
    from transformers import AutoConfig, AutoTokenizer, T5ForTokenClassification

    try:
        config, tokenizer = AutoConfig.from_pretrained(foundation), AutoTokenizer.from_pretrained(foundation)
    except Exception as error:  # transformers raises whatever the damaged file makes it raise
        raise InputError(
            f"`foundation` must be a T5 with its configuration and tokenizer. Got {foundation!r}: "
            f"{_network.one_line(error)}"
        ) from None
    try:
        weights = {name.removeprefix("t5."): value for name, value in load_file(folder / "model.safetensors").items()}
        weights.setdefault("transformer.encoder.embed_tokens.weight", weights["transformer.shared.weight"])
        model = T5ForTokenClassification(config)
        model.load_state_dict(weights)
    except (KeyError, OSError, RuntimeError) as error:
        raise InputError(
            f"`id_or_path` must hold HHEM's weights for the foundation {foundation!r} in model.safetensors. "
            f"Got {folder.name!r}: {_network.one_line(error)}"
        ) from None
    return model, tokenizer, []


# The most tokens that a generator is given, and the sizes of chunks.
GENERATOR_TOKENS, GENERATOR_WORDS, CLASSIFIER_TOKENS = 2048, 500, 400

# What stands before each input of MiniCheck's T5, as published.
MINICHECK_PREFIX = "predict: "
# The first tokens of T5's "0" and "1".
NO_TOKEN, YES_TOKEN = 3, 209


@dataclass(frozen=True)
class MiniCheckJudge(CheckerJudge):
    """MiniCheck [1]_ as published; made by :func:`load_minicheck`. The best chunk of the source decides.

    References
    ----------
    .. [1] Tang, Laban and Durrett, EMNLP 2024. https://arxiv.org/abs/2404.10774
    """

    kind: _network.NetworkKind = "classifier"
    name: str = field(init=False, default="minicheck")

    @property
    def _separator(self) -> str:
        tokenizer = self.network.tokenizer
        return str(tokenizer.eos_token or tokenizer.sep_token)

    def _input(self, pair: TextPair) -> str:
        return (MINICHECK_PREFIX if self.kind == "generator" else "") + self._separator.join(pair)

    def _logits(self, logits: Floats) -> Floats:
        return logits[:, 0, [NO_TOKEN, YES_TOKEN]] if self.kind == "generator" else logits

    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
        by_words, size = self.kind == "generator", GENERATOR_WORDS if self.kind == "generator" else CLASSIFIER_TOKENS
        count = (lambda texts: [len(text.split()) for text in texts]) if by_words else self.network.count
        chunks = [source[start:end] for start, end in chunk_spans(source, count, size)]
        fitting = [chunk[a:b] for chunk in chunks for a, b in chunk_spans(chunk, self.network.count, room)]
        return tuple(dict.fromkeys(fitting))


def load_minicheck(
    id_or_path: str | Path, *, threshold: float = 0.5, **options: Unpack[_network.NetworkOptions]
) -> MiniCheckJudge:
    """Make a judge of a MiniCheck model: a T5 that says 0 or 1, or a RoBERTa or DeBERTa of two labels.

    Parameters
    ----------
    id_or_path : str or Path
        For instance ``lytang/MiniCheck-Flan-T5-Large``.
    threshold : float, default=0.5
        The vote is 1 where the largest P over the chunks is at least this.
    batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`.

    Notes
    -----
    The claim is checked whole, as published. Chunks are whole sentences: of 500 words for T5, 400 tokens else. Where
    the published code would cut an input, chunks are smaller here.

    Raises
    ------
    InputError
        There is no such model, it is of another kind, or it has not two labels.
    MissingDependencyError
        torch or transformers is not installed.
    """
    folder = _network.model_folder(id_or_path, options.get("revision"))
    built = _network.read_settings(folder / "config.json").get("architectures") or []
    generates = any(str(name).endswith("ForConditionalGeneration") for name in built)
    kind: _network.NetworkKind = "generator" if generates else "classifier"
    reads = GENERATOR_TOKENS if kind == "generator" else None
    network = _network.load_network(id_or_path, kind, **options, reads=reads)
    if kind == "classifier":
        _check_two_labels(network, "two labels, unsupported and supported")
    return MiniCheckJudge(network, threshold, kind=kind)


def _check_two_labels(network: _network.Network, meaning: str) -> None:
    n_labels = network.model.config.num_labels
    if n_labels != 2:
        raise InputError(f"`id_or_path` must hold a model of {meaning}. Got {n_labels} in {network.model_id!r}.")


# The most tokens of source and claim together that LettuceDetect is given.
MOST_TOKENS = 4096

# How its training data put a text to be summarized.
TEXT_BEFORE_SOURCE, TEXT_AFTER_SOURCE = "Summarize the following text:\npassage 1: ", "\noutput:"


@dataclass(frozen=True)
class LettuceDetectJudge(CheckerJudge):
    """LettuceDetect [1]_ as published; made by :func:`load_lettucedetect`.

    A token is unsupported where its probability, the largest over the chunks of the source, is at least `threshold`.
    One such token makes the claim inconsistent.

    References
    ----------
    .. [1] Kovács and Recski, 2025. https://arxiv.org/abs/2502.17125
    """

    name: str = field(init=False, default="lettucedetect")

    def _input(self, pair: TextPair) -> str:
        """Return the text of the source; the claim stands behind it as the second of a pair."""
        return f"{TEXT_BEFORE_SOURCE}{pair[0]}{TEXT_AFTER_SOURCE}"

    def _tokens_beside(self, claims: Sequence[str]) -> int:
        around = sum(self.network.count([self._input(("", "")), *claims]))
        return around + self.network.special_tokens(pair=True)

    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(source[a:b] for a, b in chunk_spans(source, self.network.count, room)))

    def _pair_outputs(self, pairs: list[TextPair]) -> list[Floats]:
        """Return P(unsupported) of each token of the claim, by pair."""
        prompts, claims = [self._input(pair) for pair in pairs], [claim for _, claim in pairs]
        n_tokens = self.network.count(claims)
        result: dict[int, Floats] = {}
        for at, output, mask in self.network.batches(prompts, claims):
            unsupported = softmax(output.logits.double().cpu().numpy(), axis=2)[:, :, 1]
            for row, i in enumerate(at):
                end = int(mask[row].sum()) - 1  # the claim ends before the last separator
                result[i] = unsupported[row, end - n_tokens[i] : end]
        return [result[i] for i in range(len(pairs))]

    def _verdict(self, grid: PairGrid, values: list[list[Floats]]) -> Judgment:
        tokens, claim = np.max([value for (value,) in values], axis=0), grid[0][0][1]
        worst = float(tokens.max(initial=0.0))
        spans = ", ".join(repr(claim[start:end]) for start, end in self._spans(claim, tokens >= self.threshold))
        return Judgment(
            vote=int(worst < self.threshold),
            score=1.0 - worst,
            model=self.model_id,
            rationale=f"unsupported ({worst:.3f}): {spans}" if spans else None,
        )

    def _spans(self, claim: str, unsupported: Floats) -> list[tuple[int, int]]:
        """Return the spans of a claim that consecutive unsupported tokens cover."""
        offsets = self.network.tokenizer(claim, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        spans: list[tuple[int, int]] = []
        follows = False
        for (start, end), bad in zip(offsets, unsupported, strict=True):
            if bad and follows:
                spans[-1] = spans[-1][0], end
            elif bad:
                spans.append((start, end))
            follows = bool(bad)
        return spans


def load_lettucedetect(
    id_or_path: str | Path, *, threshold: float = 0.5, **options: Unpack[_network.NetworkOptions]
) -> LettuceDetectJudge:
    """Make a judge of a LettuceDetect model: ModernBERT with two labels a token.

    Parameters
    ----------
    id_or_path : str or Path
        For instance ``KRLabsOrg/lettucedetect-base-modernbert-en-v1``.
    threshold : float, default=0.5
        A token whose P(unsupported) is at least this makes the vote 0.
    batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`; at most 4,096 tokens, as published.

    Raises
    ------
    InputError
        There is no such model, it is of another kind, or it has not two labels.
    MissingDependencyError
        torch or transformers is not installed.
    """
    options = _network.NetworkOptions(batch_size=8) | options
    network = _network.load_network(id_or_path, "tagger", **options, reads=MOST_TOKENS)
    _check_two_labels(network, "two labels per token, supported and not supported")
    return LettuceDetectJudge(network, threshold)


ALIGNSCORE = "alignscore"

# AlignScore's names, of which the first that fits counts, and those of RoBERTa's classifier, which is the same sum.
TENSOR_MAP = {"base_model.pooler.dense.": "classifier.dense.", "tri_layer.": "classifier.out_proj.", "base_model.": ""}


def _aligner(folder: Path) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase, list[Path]]":
    """Return RoBERTa with AlignScore's head of three classes: pooled state, tanh, one linear layer."""
    from transformers import RobertaForSequenceClassification

    config, tokenizer = _network.read_parts(folder)
    path, state = _network.tensors_in(folder, "AlignScore*.safetensors", "AlignScore*.ckpt")
    config.num_labels = 3
    try:
        model = RobertaForSequenceClassification(config)
        parameters = model.state_dict()
        weights = {}
        for name, value in state.items():
            old = next((old for old in TENSOR_MAP if name.startswith(old)), "")
            weights[(TENSOR_MAP[old] or "roberta.") + name.removeprefix(old) if old else name] = value
        model.load_state_dict({name: weights[name] for name in parameters})
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(
            f"`id_or_path` must hold AlignScore's weights and the config.json of their RoBERTa. "
            f"Got {folder.name!r}: {_network.one_line(error)}"
        ) from None
    return model, tokenizer, [path]


@dataclass(frozen=True)
class AlignScoreJudge(EncoderJudge):
    """AlignScore in its mode nli_sp [1]_; made by :func:`load_alignscore`.

    References
    ----------
    .. [1] Zha et al., ACL 2023. https://arxiv.org/abs/2305.16739
    """

    way = ALIGNSCORE

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of the loader that make this judge again."""
        return {"threshold": self.threshold, "max_tokens": self.network.max_tokens}


def load_alignscore(
    folder: str | Path, *, threshold: float = 0.5, **options: Unpack[_network.NetworkOptions]
) -> AlignScoreJudge:
    """Make a judge of AlignScore with its own head of three classes.

    The score is the mean over the claim's sentences of the largest P(aligned) over the source's chunks, which are
    whole sentences of about 350 tokens.

    Parameters
    ----------
    folder : str or Path
        With ``AlignScore-base.ckpt`` or ``AlignScore-large.ckpt`` (or its tensors as ``.safetensors``), and the
        configuration and tokenizer of the RoBERTa that it was trained from.
    threshold : float, default=0.5
        In [0, 1]: the vote is 1 where the score is at least this.
    batch_size, device, max_tokens, model_id
        As for :func:`load_encoder`.

    Raises
    ------
    InputError
        There is no such file, or its tensors are not those of AlignScore on this RoBERTa.
    MissingDependencyError
        torch or transformers is not installed.
    """
    network = _network.load_network(folder, "classifier", make=_aligner, **options)
    return AlignScoreJudge(network, Head(0, independent=False), threshold=threshold)


ENCODERS: Mapping[str, Callable[..., NetworkJudge]] = {
    ALIGNSCORE: load_alignscore,
    "hhem": load_hhem,
    "lettucedetect": load_lettucedetect,
    "minicheck": load_minicheck,
    SUMMAC_CONV: load_summac_conv,
    SUMMAC_ZS: load_summac,
}
"""The published ways to use an encoder, by the name that stands before its id or folder, and before its votes."""


def load_named_encoder(text: str) -> NetworkJudge:
    """Load an encoder as options name it: ``[WAY:][NAME=]ID|FOLDER``.

    Parameters
    ----------
    text : str
        WAY is a key of `ENCODERS`; without it :func:`load_encoder` decides. NAME names the model in its column.
    """
    way, _, rest = text.partition(":")
    return _load_as_named(ENCODERS[way], rest) if rest and way in ENCODERS else _load_as_named(load_encoder, text)


def load_named_embedding(text: str) -> NetworkJudge:
    """Load a sentence-embedding model as options name it: ``[NAME=]ID|FOLDER``."""
    return _load_as_named(load_embedding, text)


def _load_as_named(load: Callable[..., NetworkJudge], text: str) -> NetworkJudge:
    name, _, place = text.partition("=")
    return load(place, model_id=name) if place and not Path(text).exists() else load(text)


def load_again(judge: str, place: str, options: Mapping[str, Any]) -> NetworkJudge:
    """Load the network judge of a voter by its name and the settings that its votes were made with."""
    if judge == "embedding":
        return load_embedding(place, **options)
    if judge in ENCODERS:
        return ENCODERS[judge](place, **options)
    return load_encoder(place, **{**options, "aggregation": judge.removeprefix("nli-")})
