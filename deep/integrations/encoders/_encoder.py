"""Judges made of any network: classifiers of pairs (inference, consistency, SummaC), and sentence embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Unpack

import numpy as np
from scipy.special import softmax

from deep._util.checks import Floats, check_choice
from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.integrations.encoders._encoder_judge import (
    Head,
    NetworkJudge,
    PairGrid,
    PairJudge,
    TextPair,
    chunk_spans,
    contradiction_head,
    fitting_spans,
    in_windows,
    read_head,
)
from deep.integrations.encoders._network import (
    Network,
    NetworkOptions,
    State,
    fingerprint,
    load_network,
    read_settings,
    tensors_in,
)
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import torch


SUMMAC_CONV, SUMMAC_ZS = "summac-conv", "summac-zs"


@dataclass(frozen=True)
class EncoderJudge(PairJudge):
    """Judges an example by a classifier of (source, claim) pairs; made by :func:`load_encoder`.

    Every sentence of the claim is set against every chunk of the source; the score is aggregated first over the
    chunks, then over the sentences of the claim.

    Fields that are not named here are the model, and the options of its loader.

    Attributes
    ----------
    against : Head or None
        The label whose aggregate over the chunks is taken from that of the first one, sentence by sentence.
    name : str
        ``nli-max`` or ``nli-mean``; ``summac-zs`` where there is `against`.
    version : str
        A hash of the settings and of the model's configuration, tokenizer and weights.
    """

    network: Network
    head: Head
    aggregation: str = "max"
    claim_aggregation: str = "mean"
    threshold: float = 0.5
    chunk_tokens: int | None = 350
    against: Head | None = None
    name: str = field(init=False)
    version: str = field(init=False)
    # The published way that a subclass is.
    way: ClassVar[str | None] = None

    def __post_init__(self) -> None:
        check_choice(self.aggregation, ("max", "mean"), "aggregation")
        check_choice(self.claim_aggregation, ("mean", "min"), "claim_aggregation")
        least = 0 if self.against is None else -1
        if not least <= self.threshold <= 1:
            raise InputError(f"`threshold` must lie in [{least}, 1]. Got {self.threshold!r}.")
        if self.chunk_tokens is not None and (type(self.chunk_tokens) is not int or self.chunk_tokens < 1):
            raise InputError(
                f"`chunk_tokens` must be a whole number of at least 1, or None for single sentences. "
                f"Got {self.chunk_tokens!r}."
            )
        plain = f"nli-{self.aggregation}" if self.against is None else SUMMAC_ZS
        object.__setattr__(self, "name", self.way or plain)
        self._set_version(sigmoid=self.head.independent)

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of the loader that make this judge again, but for `aggregation`, its name."""
        shared = {**super().settings, "entailment_label": self.head.index}
        if self.against is not None:
            return shared
        return {**shared, "claim_aggregation": self.claim_aggregation, "chunk_tokens": self.chunk_tokens}

    def contradiction(self) -> "EncoderJudge | None":
        """Return this judge with the label that says contradiction in place of entailment; None where there is none.

        It votes 1 where some chunk contradicts the claim, by the same threshold and aggregation.
        """
        head = contradiction_head(self.network.model.config, self.head)
        return None if head is None else replace(self, head=head)

    def _claim_parts(self, claim: str) -> tuple[str, ...]:
        return tuple(claim[start:end] for start, end in sentence_spans(claim))

    def _tokens_beside(self, claims: Sequence[str]) -> int:
        return self.network.special_tokens(pair=True) + max(self.network.count(claims))

    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
        cut = fitting_spans if self.chunk_tokens is None else chunk_spans
        spans = cut(source, self.network.count, min(room, self.chunk_tokens or room))
        return tuple(dict.fromkeys(source[start:end] for start, end in spans))

    def _pair_outputs(self, pairs: list[TextPair]) -> list[Floats]:
        """Return the probabilities of the heads."""
        logits = self.network.logits([chunk for chunk, _ in pairs], [sentence for _, sentence in pairs])
        heads = [head for head in (self.head, self.against) if head is not None]
        return list(np.column_stack([head.probabilities(logits) for head in heads]))

    def _verdict(self, grid: PairGrid, values: list[list[Floats]]) -> Judgment:
        grids = np.array(values)
        by_sentence = self._by_sentence(grids)
        score, worst = self._score(by_sentence), int(by_sentence.argmin())
        return Judgment(
            vote=int(score >= self.threshold),
            score=score,
            model=self.network.model_id,
            rationale=f"least supported ({by_sentence[worst]:.3f}): {grid[0][worst][1]}",
            evidence=tuple(dict.fromkeys(grid[i][0][0] for i in grids[..., 0].argmax(axis=0))),
        )

    def _by_sentence(self, grids: Floats) -> Floats:
        """Return how far each sentence of the claim is supported; `grids` is by chunk, sentence and head."""
        over_chunks = grids.max(axis=0) if self.aggregation == "max" else grids.mean(axis=0)
        return np.asarray(over_chunks[:, 0] - (0.0 if self.against is None else over_chunks[:, 1]))

    def _score(self, by_sentence: Floats) -> float:
        return float(by_sentence.mean() if self.claim_aggregation == "mean" else by_sentence.min())


def load_encoder(
    id_or_path: str | Path,
    *,
    aggregation: str = "max",
    claim_aggregation: str = "mean",
    threshold: float = 0.5,
    chunk_tokens: int | None = 350,
    entailment_label: str | int | None = None,
    **options: Unpack[NetworkOptions],
) -> EncoderJudge:
    """Make a labeling function of any sequence-classification model for inference or factual consistency.

    A source is never cut short: what does not fit into one chunk makes another.

    Parameters
    ----------
    id_or_path : str or Path
        A model's id on the Hugging Face hub (fetched once into its cache), or a folder that holds one.
    aggregation : {'max', 'mean'}, default='max'
        Over the chunks of the source.
    claim_aggregation : {'mean', 'min'}, default='mean'
        Over the sentences of the claim.
    threshold : float, default=0.5
        In [0, 1]: the vote is 1 where the score is at least this.
    chunk_tokens : int or None, default=350
        The longest chunk (AlignScore's way [1]_). None: each sentence is a chunk (SummaC's zero-shot way [2]_).
    entailment_label : str or int, optional
        The label (or its number) that says "consistent", for a model whose labels do not tell.
    batch_size, device, revision : int, str, str
        Pairs at a time; as PyTorch names it (default: the GPU where there is one); branch, tag or commit.
    max_tokens, model_id : int, str
        Lowers the model's own limit; names the model in the column, in place of its id or folder.

    Raises
    ------
    InputError
        There is no such model, it is no sequence classifier, weights are missing, or its labels do not tell.
    MissingDependencyError
        torch or transformers is not installed.

    References
    ----------
    .. [1] Zha et al., ACL 2023. https://arxiv.org/abs/2305.16739
    .. [2] Laban et al., TACL 2022. https://arxiv.org/abs/2111.09525
    """
    network = load_network(id_or_path, "classifier", **options)
    head = read_head(network.model.config, entailment_label, network.model_id)
    return EncoderJudge(network, head, aggregation, claim_aggregation, threshold, chunk_tokens)


def load_summac(
    id_or_path: str | Path,
    *,
    threshold: float = 0.0,
    entailment_label: str | int | None = None,
    **options: Unpack[NetworkOptions],
) -> EncoderJudge:
    """Make SummaC's zero-shot judge of an inference model: entailment less contradiction, sentence by sentence [1]_.

    The score is the mean over the claim's sentences of the largest P(entailment) over the source's sentences, less the
    largest P(contradiction): from -1 to 1.

    Parameters
    ----------
    id_or_path : str or Path
        Of a classifier with a label for entailment and one for contradiction.
    threshold : float, default=0
        In [-1, 1]: the centre of the range.
    entailment_label, batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`.

    Raises
    ------
    InputError
        As for :func:`load_encoder`, or there is no label for contradiction.

    References
    ----------
    .. [1] Laban et al., TACL 2022. https://arxiv.org/abs/2111.09525
    """
    judge = load_encoder(id_or_path, chunk_tokens=None, entailment_label=entailment_label, **options)
    against = contradiction_head(judge.network.model.config, judge.head)
    if against is None:
        raise InputError(
            f"`id_or_path` must hold a model with a label for contradiction. Got {judge.network.model_id!r}, which has "
            f"none. For entailment alone use load_encoder."
        )
    return replace(judge, against=against, threshold=threshold)


# Edges of the published bins, percentiles of P(entailment) over many summaries.
PERCENTILES = (
    *(0.0, 0.01, 0.02, 0.03, 0.04, 0.07, 0.13, 0.37, 0.9, 0.91, 0.92, 0.93, 0.94, 0.95, 0.955, 0.96, 0.965, 0.97),
    *(0.975, 0.98, 0.985, 0.99, 0.995, 1.0),
)

# Edges by the number of bins that the convolution has weights for.
EDGES = {len(PERCENTILES) - 1: PERCENTILES, 50: tuple(np.linspace(0, 1, 51).tolist())}


@dataclass(frozen=True)
class Convolution:
    """The trained part of SummaC-Conv: a weight for each bin of a histogram, and two logits of their mean.

    Parameters
    ----------
    bins : tuple of float
        The weight of each bin of P(entailment).
    bias : float
        What is added to their sum, which is the value of a sentence.
    final, final_bias : tuple
        Three weights a label for the mean of the sentences' values, and what is added.
    """

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

    def _cut_source(self, source: str, room: int) -> tuple[str, ...]:
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
    path, state = tensors_in(plain.network.folder, "summac_conv*.safetensors", "summac_conv*.bin")
    both = f"{plain.network.fingerprint} {fingerprint(plain.network.folder, [path])}"
    network, convolution = replace(plain.network, fingerprint=both), Convolution.of(state, path.name)
    return SummaCConvJudge(network, plain.head, threshold=threshold, chunk_tokens=None, convolution=convolution)


Sentences = tuple[str, ...]


@dataclass(frozen=True)
class EmbeddingJudge(NetworkJudge):
    """Judges an example by the likeness of its sentences; made by :func:`load_embedding`.

    Attributes
    ----------
    name : str
        ``embedding``.
    version : str
        A hash of the settings and of the model's configuration, tokenizer and weights.
    """

    network: Network
    threshold: float = 0.6
    band: float = 0.1
    pooling: str = "mean"
    name: str = field(init=False, default="embedding")
    version: str = field(init=False)

    def __post_init__(self) -> None:
        if not -1 <= self.threshold <= 1:
            raise InputError(f"`threshold` must lie in [-1, 1]. Got {self.threshold!r}.")
        if not 0 <= self.band <= 2:
            raise InputError(f"`band` must lie in [0, 2]. Got {self.band!r}.")
        self._set_version(pooling=self.pooling)

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of :func:`load_embedding` that make this judge again."""
        return {**super().settings, "band": self.band}

    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples in batches; a sentence that several of them share is embedded once.

        Returns
        -------
        list of Judgment
            In the order of `examples`. `score` is the mean over the claim's sentences of the largest cosine to a
            sentence of the source, in [-1, 1]; `evidence` holds those sentences; `rationale` quotes the sentence
            of the claim that is least like any of the source. No vote within the band or where a text has no
            words (``abstained``), nor where the model gives no finite number (``failed``).
        """
        return in_windows(examples, self._judge)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return the unit vector of each text, shape (n_texts, n_dimensions); zeros where a text has no words.

        A text of several sentences, or one that is too long for the model, has the direction of their mean.
        """
        pieces = [self._split(text) for text in texts]
        all_pieces = list(dict.fromkeys(piece for some in pieces for piece in some))
        place = {piece: i for i, piece in enumerate(all_pieces)}
        vectors = self._embed(all_pieces)
        sums = np.zeros((len(pieces), vectors.shape[1]))
        for row, some in enumerate(pieces):
            sums[row] = vectors[[place[piece] for piece in some]].sum(axis=0)
        lengths = np.linalg.norm(sums, axis=-1, keepdims=True)
        return sums / np.where(lengths > 0, lengths, 1.0)

    def _judge(self, examples: list[Example]) -> list[Judgment]:
        split = {text: self._split(text) for example in examples for text in (example.source, example.claim)}
        sentences = list(dict.fromkeys(piece for pieces in split.values() for piece in pieces))
        place = {piece: i for i, piece in enumerate(sentences)}
        vectors = self._embed(sentences)

        def rows(text: str) -> Floats:
            return vectors[[place[piece] for piece in split[text]]]

        return [
            self._verdict(split[example.source], split[example.claim], rows(example.claim) @ rows(example.source).T)
            for example in examples
        ]

    def _split(self, text: str) -> Sentences:
        budget = self.network.max_tokens - self.network.special_tokens(pair=False)
        return tuple(text[start:end] for start, end in fitting_spans(text, self.network.count, budget))

    def _embed(self, sentences: list[str]) -> Floats:
        """Return unit vectors, shape (n_sentences, n_dimensions)."""
        vectors = np.zeros((len(sentences), int(self.network.model.config.hidden_size)))
        for at, output, mask in self.network.batches(sentences):
            pooled = _pool(output.last_hidden_state, mask, self.pooling).double().cpu().numpy()
            vectors[at] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors

    def _verdict(self, source: Sentences, claim: Sentences, cosines: Floats) -> Judgment:
        model = self.network.model_id
        if not source or not claim:
            return Judgment(vote=ABSTAIN, reason="abstained", model=model)
        if not np.isfinite(cosines).all():
            return Judgment(vote=ABSTAIN, reason="failed", model=model)
        nearest = cosines.max(axis=1)
        score, worst = float(nearest.mean()), int(nearest.argmin())
        undecided = abs(score - self.threshold) < self.band / 2
        return Judgment(
            vote=ABSTAIN if undecided else int(score >= self.threshold),
            reason="abstained" if undecided else None,
            score=score,
            model=model,
            rationale=f"least similar ({nearest[worst]:.3f}): {claim[worst]}",
            evidence=tuple(dict.fromkeys(source[i] for i in cosines.argmax(axis=1))),
        )


def _pool(states: "torch.Tensor", mask: "torch.Tensor", pooling: str) -> "torch.Tensor":
    """Return one vector a text, from the states of its tokens, shape (n_texts, n_tokens, n_dimensions)."""
    if pooling == "cls":
        return states[:, 0]
    weights = mask.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def load_embedding(
    path_or_id: str | Path, *, threshold: float = 0.6, band: float = 0.1, **options: Unpack[NetworkOptions]
) -> EmbeddingJudge:
    """Make a labeling function of a sentence-embedding model: a weak judge that sees topics, not truth.

    A claim whose sentences are all like some sentence of the source gets 1, one that wanders off gets 0. It cannot
    see a changed number or a lost "not", which barely move an embedding.

    Parameters
    ----------
    path_or_id : str or Path
        A folder in the layout of sentence-transformers (or of transformers alone), or an id on the hub. Vectors
        are pooled by the mean over tokens, or by the first token where the folder's pooling file says so.
    threshold : float, default=0.6
        In [-1, 1]: the vote is 1 above the band around it, 0 below.
    band : float, default=0.1
        In [0, 2]: the width of the band around the threshold where it abstains.
    batch_size, device, revision, max_tokens, model_id
        As for :func:`load_encoder`. A sentence longer than the limit is cut between words, and nothing is lost.

    Returns
    -------
    EmbeddingJudge

    Raises
    ------
    InputError
        There is no such model, weights are missing, or it pools in another way.
    MissingDependencyError
        torch or transformers is not installed.

    References
    ----------
    .. [1] Reimers and Gurevych, EMNLP 2019. https://arxiv.org/abs/1908.10084
    """
    network = load_network(path_or_id, "embedding", **(NetworkOptions(batch_size=32) | options))
    return EmbeddingJudge(network, threshold, band, _pooling(network))


def _pooling(network: Network) -> str:
    """Return 'cls' or 'mean', as the folder says; the mean where it says nothing."""
    path = network.folder / "1_Pooling" / "config.json"
    settings = read_settings(path)
    modes = sorted(
        name.removeprefix("pooling_mode_") for name in settings if name.startswith("pooling_mode_") and settings[name]
    )
    modes = modes or [str(settings.get("pooling_mode", "mean"))]
    pooling_of = {"cls": "cls", "cls_token": "cls", "mean": "mean", "mean_tokens": "mean"}
    if len(modes) > 1 or modes[0] not in pooling_of:
        raise InputError(f"`path_or_id` must pool by the mean or the first token. Got {', '.join(modes)} in {path}.")
    return pooling_of[modes[0]]
