"""LettuceDetect: a classifier of the claim's tokens, which says where the claim leaves its source."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.special import softmax

from deep._checks import Floats
from deep.exceptions import InputError
from deep.features.encoders._checker import CheckerJudge, Pair
from deep.features.encoders._chunks import chunk_spans
from deep.features.encoders._network import load_network
from deep.records import Judgment

MOST_TOKENS = 4096

BEFORE, AFTER = "Summarize the following text:\npassage 1: ", "\noutput:"
"""How its training data put a text to be summarized."""


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

    def _tokens_beside(self, claim: str) -> int:
        around = sum(self.network.count([f"{BEFORE}{AFTER}", claim]))
        return around + self.network.special_tokens(pair=True)

    def _cut(self, source: str, room: int) -> tuple[str, ...]:
        return tuple(dict.fromkeys(source[a:b] for a, b in chunk_spans(source, self.network.count, room)))

    def _measure(self, pairs: list[Pair]) -> list[Floats]:
        """Return P(unsupported) of each token of the claim, by pair."""
        prompts, claims = [f"{BEFORE}{part}{AFTER}" for part, _ in pairs], [claim for _, claim in pairs]
        n_tokens = self.network.count(claims)
        found: dict[int, Floats] = {}
        for at, output, mask in self.network.batches(prompts, claims):
            unsupported = softmax(output.logits.double().cpu().numpy(), axis=2)[:, :, 1]
            for row, i in enumerate(at):
                end = int(mask[row].sum()) - 1  # the claim ends before the last separator
                found[i] = unsupported[row, end - n_tokens[i] : end]
        return [found[i] for i in range(len(pairs))]

    def _verdict(self, pairs: list[Pair], values: list[Floats]) -> Judgment:
        tokens, claim = np.max(values, axis=0), pairs[0][1]
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
    id_or_path: str | Path,
    *,
    threshold: float = 0.5,
    batch_size: int = 8,
    device: str | None = None,
    revision: str | None = None,
    max_tokens: int | None = None,
    model_id: str | None = None,
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
    network = load_network(
        id_or_path,
        "tagger",
        batch_size=batch_size,
        device=device,
        revision=revision,
        max_tokens=max_tokens,
        model_id=model_id,
        reads=MOST_TOKENS,
    )
    if network.model.config.num_labels != 2:
        raise InputError(
            f"`id_or_path` must hold a model of two labels a token, supported and not. Got "
            f"{network.model.config.num_labels} in {network.model_id!r}."
        )
    return LettuceDetectJudge(network, threshold)
