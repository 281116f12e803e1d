"""A labeling function made of sentence embeddings: how like a sentence of the source each one of the claim is."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep._util.checks import Floats
from deep.exceptions import InputError
from deep.features.encoders._judge import NetworkJudge, fitting_spans, in_windows
from deep.features.encoders._network import Network, load_network, read_settings
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import torch

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
        told = {"kind": self.name, "model": self.network.fingerprint, "pooling": self.pooling, **self.settings}
        object.__setattr__(self, "version", sha256(json.dumps(told, sort_keys=True).encode()).hexdigest())

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of :func:`load_embedding` that make this judge again."""
        return {"threshold": self.threshold, "band": self.band, "max_tokens": self.network.max_tokens}

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
        known = list(dict.fromkeys(piece for some in pieces for piece in some))
        place = {piece: i for i, piece in enumerate(known)}
        vectors = self._embed(known)
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
    path_or_id: str | Path,
    *,
    threshold: float = 0.6,
    band: float = 0.1,
    batch_size: int = 32,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
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
    network = load_network(
        path_or_id,
        "embedding",
        batch_size=batch_size,
        device=device,
        revision=revision,
        max_tokens=max_tokens,
        model_id=model_id,
    )
    return EmbeddingJudge(network, threshold, band, _pooling(network))


def _pooling(network: Network) -> str:
    """Return 'cls' or 'mean', as the folder says; the mean where it says nothing."""
    path = network.folder / "1_Pooling" / "config.json"
    said = read_settings(path)
    chosen = sorted(
        name.removeprefix("pooling_mode_") for name in said if name.startswith("pooling_mode_") and said[name]
    )
    chosen = chosen or [str(said.get("pooling_mode", "mean"))]
    known = {"cls": "cls", "cls_token": "cls", "mean": "mean", "mean_tokens": "mean"}
    if len(chosen) > 1 or chosen[0] not in known:
        raise InputError(f"`path_or_id` must pool by the mean or the first token. Got {', '.join(chosen)} in {path}.")
    return known[chosen[0]]
