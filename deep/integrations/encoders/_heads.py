"""Judges whose last layer was trained apart: AlignScore with its own head, and SummaC's convolution."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from scipy.special import softmax

from deep._util.checks import Floats
from deep.exceptions import InputError
from deep.integrations.encoders._encoder import EncoderJudge, load_encoder
from deep.integrations.encoders._encoder_judge import Head, fitting_spans
from deep.integrations.encoders._network import NetworkOptions, fingerprint, load_network, one_line, read_parts

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

ALIGNSCORE, SUMMAC_CONV = "alignscore", "summac-conv"

# Tensors by name, as PyTorch saves them.
State = dict[str, Any]


def _weights_of(folder: Path, *patterns: str) -> tuple[Path, State]:
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


# AlignScore's names, of which the first that fits counts, and those of RoBERTa's classifier, which is the same sum.
RENAMED = {"base_model.pooler.dense.": "classifier.dense.", "tri_layer.": "classifier.out_proj.", "base_model.": ""}


def _aligner(folder: Path) -> "tuple[PreTrainedModel, PreTrainedTokenizerBase, list[Path]]":
    """Return RoBERTa with AlignScore's head of three classes: pooled state, tanh, one linear layer."""
    from transformers import RobertaForSequenceClassification

    config, tokenizer = read_parts(folder)
    path, state = _weights_of(folder, "AlignScore*.safetensors", "AlignScore*.ckpt")
    config.num_labels = 3
    try:
        model = RobertaForSequenceClassification(config)
        parameters = model.state_dict()
        weights = {}
        for name, value in state.items():
            old = next((old for old in RENAMED if name.startswith(old)), "")
            weights[(RENAMED[old] or "roberta.") + name.removeprefix(old) if old else name] = value
        model.load_state_dict({name: weights[name] for name in parameters})
    except (AttributeError, KeyError, RuntimeError, TypeError) as error:
        raise InputError(
            f"`id_or_path` must hold AlignScore's weights and the config.json of their RoBERTa. "
            f"Got {folder.name!r}: {one_line(error)}"
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
    folder: str | Path, *, threshold: float = 0.5, **options: Unpack[NetworkOptions]
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
    network = load_network(folder, "classifier", make=_aligner, **options)
    return AlignScoreJudge(network, Head(0, independent=False), threshold=threshold)


# Edges of the published bins, percentiles of P(entailment) over many summaries.
PERCENTILES = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.07, 0.13, 0.37, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.955, 0.96, 0.965, 0.97),
    *(0.975, 0.98, 0.985, 0.99, 0.995, 1.0),
)

# Edges by the number of bins that the convolution has weights for.
EDGES = {len(PERCENTILES) - 1: PERCENTILES, 50: tuple(np.linspace(0, 1, 51).tolist())}


@dataclass(frozen=True)
class Convolution:
    """The trained part of SummaC-Conv: a weight for each bin of a histogram, and two logits of their mean."""

    bins: tuple[float, ...]
    bias: float
    final: tuple[tuple[float, ...], ...]
    final_bias: tuple[float, ...]

    @classmethod
    def of(cls, state: State, name: str) -> "Convolution":
        """Read the published tensors."""
        try:
            tensors = [state[key] for key in ("mlp.weight", "mlp.bias", "layer_final.weight", "layer_final.bias")]
            sizes: list[object] = [tuple(tensor.shape) for tensor in tensors]
        except (AttributeError, KeyError) as error:
            sizes = [str(error)]
        if sizes[1:] != [(1,), (2, 3), (2,)] or sizes[0] not in [(1, size) for size in EDGES]:
            raise InputError(
                f"`id_or_path` must hold SummaC's convolution of {' or '.join(map(str, EDGES))} bins of P(entailment). "
                f"Got {name!r} with {sizes}."
            )
        (bins,), (bias,), final, final_bias = (tensor.double().tolist() for tensor in tensors)
        return cls(tuple(bins), bias, tuple(map(tuple, final)), tuple(final_bias))

    def of_sentence(self, entailment: Floats) -> float:
        """Return the value of a sentence by its P(entailment) from each sentence of the source."""
        counts, _ = np.histogram(entailment, bins=EDGES[len(self.bins)])
        return float(counts @ np.asarray(self.bins)) + self.bias

    def p_consistent(self, values: Floats) -> float:
        """Return P of the second label from the mean of the sentences' values, which stands three times."""
        logits = np.asarray(self.final) @ np.full(3, values.mean()) + np.asarray(self.final_bias)
        return float(softmax(logits)[1])


@dataclass(frozen=True)
class SummaCConvJudge(EncoderJudge):
    """SummaC with its convolution [1]_; made by :func:`load_summac_conv`.

    References
    ----------
    .. [1] Laban et al., TACL 2022. https://arxiv.org/abs/2111.09525
    """

    convolution: Convolution = field(kw_only=True)

    way = SUMMAC_CONV

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of the loader that make this judge again."""
        shared = {"threshold": self.threshold, "entailment_label": self.head.index}
        return {**shared, "max_tokens": self.network.max_tokens}

    def _cut(self, source: str, room: int) -> tuple[str, ...]:
        """Return the sentences of a source; one that stands twice counts twice."""
        return tuple(source[start:end] for start, end in fitting_spans(source, self.network.count, room))

    def _by_sentence(self, grids: Floats) -> Floats:
        return np.array([self.convolution.of_sentence(column) for column in grids[..., 0].T])

    def _score(self, by_sentence: Floats) -> float:
        return self.convolution.p_consistent(by_sentence)


def load_summac_conv(
    folder: str | Path,
    *,
    threshold: float = 0.5,
    entailment_label: str | int | None = None,
    **options: Unpack[NetworkOptions],
) -> SummaCConvJudge:
    """Make SummaC's judge with the convolution that its authors trained.

    Each sentence of the claim has a histogram of P(entailment) over the source's sentences; a weighted sum of it is the
    sentence's value, and two logits of the values' mean give the score.

    Parameters
    ----------
    folder : str or Path
        Of the inference model that the convolution was trained on, with its file ``summac_conv*.bin`` beside it.
    threshold : float, default=0.5
        In [0, 1]: the vote is 1 where the score is at least this.
    entailment_label, batch_size, device, max_tokens, model_id
        As for :func:`load_encoder`.

    Raises
    ------
    InputError
        As for :func:`load_encoder`, or there is no such file, or its tensors are of another size.
    """
    plain = load_encoder(folder, chunk_tokens=None, entailment_label=entailment_label, **options)
    path, state = _weights_of(plain.network.folder, "summac_conv*.safetensors", "summac_conv*.bin")
    both = f"{plain.network.fingerprint} {fingerprint(plain.network.folder, [path])}"
    network, convolution = replace(plain.network, fingerprint=both), Convolution.of(state, path.name)
    return SummaCConvJudge(network, plain.head, threshold=threshold, chunk_tokens=None, convolution=convolution)
