"""MiniCheck: a classifier or a generator of pairs of texts, on chunks of the source."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.special import softmax

from deep._checks import Floats
from deep.exceptions import InputError
from deep.features.encoders._checker import CheckerJudge, Pair
from deep.features.encoders._chunks import chunk_spans
from deep.features.encoders._locate import model_folder
from deep.features.encoders._network import Kind, load_network, read_settings

GENERATOR_TOKENS, GENERATOR_WORDS, CLASSIFIER_TOKENS = 2048, 500, 400
"""The most tokens that a generator is given, and the sizes of chunks."""

PREFIX = "predict: "
SAYS_NO, SAYS_YES = 3, 209
"""The first tokens of T5's "0" and "1"."""


@dataclass(frozen=True)
class MiniCheckJudge(CheckerJudge):
    """MiniCheck [1]_ as published; made by :func:`load_minicheck`. The best chunk of the source decides.

    References
    ----------
    .. [1] Tang, Laban and Durrett, EMNLP 2024. https://arxiv.org/abs/2404.10774
    """

    kind: Kind = "classifier"
    name: str = field(init=False, default="minicheck")

    @property
    def _separator(self) -> str:
        tokenizer = self.network.tokenizer
        return str(tokenizer.eos_token or tokenizer.sep_token)

    def _input(self, pair: Pair) -> str:
        return (PREFIX if self.kind == "generator" else "") + self._separator.join(pair)

    def _tokens_beside(self, claim: str) -> int:
        return self.network.count([self._input(("", claim))])[0] + self.network.special_tokens(pair=False)

    def _cut(self, source: str, room: int) -> tuple[str, ...]:
        by_words, size = self.kind == "generator", GENERATOR_WORDS if self.kind == "generator" else CLASSIFIER_TOKENS
        count = (lambda texts: [len(text.split()) for text in texts]) if by_words else self.network.count
        chunks = [source[start:end] for start, end in chunk_spans(source, count, size)]
        fitting = [chunk[a:b] for chunk in chunks for a, b in chunk_spans(chunk, self.network.count, room)]
        return tuple(dict.fromkeys(fitting))

    def _measure(self, pairs: list[Pair]) -> list[Floats]:
        logits = np.empty((len(pairs), 2))
        for at, output, _ in self.network.batches([self._input(pair) for pair in pairs]):
            found = output.logits.float().cpu().numpy()
            logits[at] = found[:, 0, [SAYS_NO, SAYS_YES]] if self.kind == "generator" else found
        return list(softmax(logits, axis=1)[:, 1:])


def load_minicheck(
    id_or_path: str | Path,
    *,
    threshold: float = 0.5,
    batch_size: int = 16,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
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
    built = read_settings(model_folder(id_or_path, revision) / "config.json").get("architectures") or []
    kind: Kind = "generator" if any(str(name).endswith("ForConditionalGeneration") for name in built) else "classifier"
    network = load_network(
        id_or_path,
        kind,
        batch_size=batch_size,
        device=device,
        revision=revision,
        max_tokens=max_tokens,
        model_id=model_id,
        reads=GENERATOR_TOKENS if kind == "generator" else None,
    )
    if kind == "classifier" and network.model.config.num_labels != 2:
        raise InputError(
            f"`id_or_path` must hold a model of two labels, unsupported and supported. Got "
            f"{network.model.config.num_labels} in {network.model_id!r}."
        )
    return MiniCheckJudge(network, threshold, kind=kind)
