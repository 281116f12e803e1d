"""The base of judges that are used as they were published: pairs of texts, one way to read each model."""

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

import numpy as np

from deep._checks import Floats
from deep.exceptions import InputError
from deep.features.encoders._judge import NetworkJudge
from deep.features.encoders._network import Network
from deep.features.encoders._windows import in_windows
from deep.records import ABSTAIN, Example, Judgment

_SOURCE_SHARE = 4
"""A claim must leave at least one part in this many of the input to the source."""

Pair = tuple[str, str]
"""A part of a source, and a claim."""

Cut = Callable[[str, int], tuple[str, ...]]


@dataclass(frozen=True)
class CheckerJudge(NetworkJudge):
    """Sets a claim against each part of its source; a subclass cuts the source and reads the network.

    Parameters
    ----------
    network : Network
    threshold : float, default=0.5
        In [0, 1].

    Attributes
    ----------
    name, version : str
        The version is a hash of the settings and of the model's files.
    """

    network: Network
    threshold: float = 0.5
    name: str = field(init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise InputError(f"`threshold` must lie in [0, 1]. Got {self.threshold!r}.")
        told = {"kind": self.name, "model": self.network.fingerprint, **self.settings}
        object.__setattr__(self, "version", sha256(json.dumps(told, sort_keys=True).encode()).hexdigest())

    @property
    def settings(self) -> dict[str, object]:
        """Return the options of the loader that make this judge again."""
        return {"threshold": self.threshold, "max_tokens": self.network.max_tokens}

    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples in batches; a pair that several of them share is scored once.

        Returns
        -------
        list of Judgment
            In the order of `examples`. `score` is P(consistent). No vote where a text has no words (``abstained``), the
            claim leaves the source less than a quarter of the model's input (``truncated``), or the model gives no
            finite number (``failed``).
        """
        return in_windows(examples, self._judge)

    def _judge(self, examples: list[Example]) -> list[Judgment]:
        cut = lru_cache(maxsize=None)(self._cut)
        read = [self._pairs(example, cut) for example in examples]
        pairs = list(dict.fromkeys(pair for part in read if isinstance(part, list) for pair in part))
        found = dict(zip(pairs, self._measure(pairs), strict=True)) if pairs else {}
        return [self._checked(part, found) if isinstance(part, list) else part for part in read]

    def _pairs(self, example: Example, cut: Cut) -> list[Pair] | Judgment:
        if not example.source.strip() or not example.claim.strip():
            return Judgment(vote=ABSTAIN, reason="abstained", model=self.model_id)
        room = self.network.max_tokens - self._tokens_beside(example.claim)
        parts = cut(example.source, room) if room * _SOURCE_SHARE >= self.network.max_tokens else ()
        if not parts:
            return Judgment(vote=ABSTAIN, reason="truncated", model=self.model_id)
        return [(part, example.claim) for part in parts]

    def _checked(self, pairs: list[Pair], found: dict[Pair, Floats]) -> Judgment:
        values = [found[pair] for pair in pairs]
        if not all(np.isfinite(value).all() for value in values):
            return Judgment(vote=ABSTAIN, reason="failed", model=self.model_id)
        return self._verdict(pairs, values)

    def _verdict(self, pairs: list[Pair], values: list[Floats]) -> Judgment:
        """Return the judgment of one claim: the best part of the source decides."""
        best = int(np.argmax([value[0] for value in values]))
        score = float(values[best][0])
        evidence = (pairs[best][0],)
        return Judgment(vote=int(score >= self.threshold), score=score, model=self.model_id, evidence=evidence)

    @abstractmethod
    def _tokens_beside(self, claim: str) -> int:
        """Return how many tokens of the input are not the source's."""

    @abstractmethod
    def _cut(self, source: str, room: int) -> tuple[str, ...]:
        """Return the parts of a source, each of at most `room` tokens."""

    @abstractmethod
    def _measure(self, pairs: list[Pair]) -> list[Floats]:
        """Return the answer of the network to each pair: one P(consistent), where `_verdict` is the one here."""
