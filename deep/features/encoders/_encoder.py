"""Labeling functions made of classifiers of pairs: natural language inference and factual consistency."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from deep._util.checks import Floats, check_choice
from deep._util.names import sentence_spans
from deep.exceptions import InputError
from deep.features.encoders._judge import (
    Head,
    NetworkJudge,
    chunk_spans,
    contradiction_head,
    fitting_spans,
    in_windows,
    read_head,
)
from deep.features.encoders._network import Network, load_network
from deep.records import ABSTAIN, Example, Judgment

SUMMAC_ZS = "summac-zs"

_SOURCE_SHARE = 4
"""A sentence of the claim must leave at least one part in this many of the input to the source."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class _Parts:
    """The chunks of a source and the sentences of a claim."""

    chunks: tuple[str, ...]
    sentences: tuple[str, ...]

    def pairs(self) -> list[Pair]:
        return [(chunk, sentence) for chunk in self.chunks for sentence in self.sentences]


@dataclass(frozen=True)
class EncoderJudge(NetworkJudge):
    """Judges an example by a classifier of (source, claim) pairs; made by :func:`load_encoder`.

    Every sentence of the claim is set against every chunk of the source; the score is aggregated first over the
    chunks, then over the sentences of the claim.

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
        object.__setattr__(self, "name", f"nli-{self.aggregation}" if self.against is None else SUMMAC_ZS)
        object.__setattr__(self, "version", self._hash())

    def _hash(self) -> str:
        told = {"kind": self.name, "model": self.network.fingerprint, "sigmoid": self.head.independent, **self.settings}
        return sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of the loader that make this judge again, but for `aggregation`, its name."""
        if self.against is not None:
            return {
                "threshold": self.threshold,
                "entailment_label": self.head.index,
                "max_tokens": self.network.max_tokens,
            }
        return {
            "claim_aggregation": self.claim_aggregation,
            "threshold": self.threshold,
            "chunk_tokens": self.chunk_tokens,
            "entailment_label": self.head.index,
            "max_tokens": self.network.max_tokens,
        }

    def contradiction(self) -> "EncoderJudge | None":
        """Return this judge with the label that says contradiction in place of entailment; None where there is none.

        It votes 1 where some chunk contradicts the claim, by the same threshold and aggregation.
        """
        head = contradiction_head(self.network.model.config, self.head)
        return None if head is None else replace(self, head=head)

    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples in batches; a pair that several of them share is scored once.

        Returns
        -------
        list of Judgment
            In the order of `examples`. `score` is P(consistent), aggregated; `evidence` holds the best chunk of
            each sentence of the claim; `rationale` quotes the sentence that is supported least. No vote where a
            text has no words (``abstained``), a sentence of the claim is too long for the model (``truncated``),
            or the model gives no finite number (``failed``).
        """
        return in_windows(examples, self._judge)

    def _judge(self, examples: list[Example]) -> list[Judgment]:
        chunked = lru_cache(maxsize=None)(self._chunks)
        parts = [self._parts(example, chunked) for example in examples]
        known = [part for part in parts if isinstance(part, _Parts)]
        pairs = list(dict.fromkeys(pair for part in known for pair in part.pairs()))
        scores: dict[Pair, list[float]] = {}
        if pairs:
            logits = self.network.logits([chunk for chunk, _ in pairs], [sentence for _, sentence in pairs])
            heads = [head for head in (self.head, self.against) if head is not None]
            found = np.column_stack([head.probabilities(logits) for head in heads])
            scores = dict(zip(pairs, found.tolist(), strict=True))
        return [self._verdict(part, scores) if isinstance(part, _Parts) else part for part in parts]

    def _parts(self, example: Example, chunked: Callable[[str, int], tuple[str, ...]]) -> _Parts | Judgment:
        model = self.network.model_id
        sentences = tuple(example.claim[start:end] for start, end in sentence_spans(example.claim))
        if not sentences or not example.source.strip():
            return Judgment(vote=ABSTAIN, reason="abstained", model=model)
        limit = self.network.max_tokens
        room = limit - self.network.special_tokens(pair=True) - max(self.network.count(sentences))
        if room * _SOURCE_SHARE < limit:
            return Judgment(vote=ABSTAIN, reason="truncated", model=model)
        return _Parts(chunked(example.source, min(room, self.chunk_tokens or room)), sentences)

    def _chunks(self, source: str, budget: int) -> tuple[str, ...]:
        cut = fitting_spans if self.chunk_tokens is None else chunk_spans
        spans = cut(source, self.network.count, budget)
        return tuple(dict.fromkeys(source[start:end] for start, end in spans))

    def _verdict(self, parts: _Parts, scores: dict[Pair, list[float]]) -> Judgment:
        shape = len(parts.chunks), len(parts.sentences), -1
        grids: Floats = np.array([scores[pair] for pair in parts.pairs()]).reshape(shape)
        if not np.isfinite(grids).all():
            return Judgment(vote=ABSTAIN, reason="failed", model=self.network.model_id)
        over_chunks = grids.max(axis=0) if self.aggregation == "max" else grids.mean(axis=0)
        by_sentence = over_chunks[:, 0] - (0.0 if self.against is None else over_chunks[:, 1])
        score = float(by_sentence.mean() if self.claim_aggregation == "mean" else by_sentence.min())
        worst = int(by_sentence.argmin())
        return Judgment(
            vote=int(score >= self.threshold),
            score=score,
            model=self.network.model_id,
            rationale=f"least supported ({by_sentence[worst]:.3f}): {parts.sentences[worst]}",
            evidence=tuple(dict.fromkeys(parts.chunks[i] for i in grids[..., 0].argmax(axis=0))),
        )


def load_encoder(
    id_or_path: str | Path,
    *,
    aggregation: str = "max",
    claim_aggregation: str = "mean",
    threshold: float = 0.5,
    chunk_tokens: int | None = 350,
    entailment_label: str | int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
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
    network = load_network(
        id_or_path,
        "classifier",
        batch_size=batch_size,
        device=device,
        revision=revision,
        max_tokens=max_tokens,
        model_id=model_id,
    )
    head = read_head(network.model.config, entailment_label, network.model_id)
    return EncoderJudge(network, head, aggregation, claim_aggregation, threshold, chunk_tokens)


def load_summac(
    id_or_path: str | Path,
    *,
    threshold: float = 0.0,
    entailment_label: str | int | None = None,
    batch_size: int = 16,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
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
    judge = load_encoder(
        id_or_path,
        chunk_tokens=None,
        entailment_label=entailment_label,
        batch_size=batch_size,
        device=device,
        revision=revision,
        max_tokens=max_tokens,
        model_id=model_id,
    )
    against = contradiction_head(judge.network.model.config, judge.head)
    if against is None:
        raise InputError(
            f"`id_or_path` must hold a model with a label for contradiction. Got {judge.network.model_id!r}, which has "
            f"none. For entailment alone use load_encoder."
        )
    return replace(judge, against=against, threshold=threshold)
