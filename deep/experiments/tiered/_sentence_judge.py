"""What judges of a reply's sentences share: several samples of each question, and a vote on the reply."""

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from deep.experiments.tiered._reading import TurnReading, check_samples, majority_of
from deep.judge import LLMJudge, Program
from deep.records import Example, Judgment


@dataclass(frozen=True, kw_only=True)
class SentenceJudge(LLMJudge):
    """A judge that labels a reply sentence by sentence; a subclass has `name`, `read`, `most_calls` and `_content`.

    Parameters
    ----------
    samples : int, default=5
        Replies to a question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so. Default: the majority.

    Raises
    ------
    InputError
        A parameter is out of range.
    """

    samples: int = 5
    threshold: int | None = None

    def __post_init__(self) -> None:
        check_samples(self.samples, self.threshold)

    @property
    @abstractmethod
    def name(self) -> str:
        """The beginning of the name of its column."""

    @property
    @abstractmethod
    def _content(self) -> Mapping[str, object]:
        """All but the samples that decides what is asked and how it is read."""

    @cached_property
    def version(self) -> str:
        """SHA-256 of all that decides what is asked and how it is read."""
        content = {**self._content, "samples": self.samples, "threshold": self._threshold}
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    @property
    def _threshold(self) -> int:
        return majority_of(self.samples) if self.threshold is None else self.threshold

    @abstractmethod
    def most_calls(self, example: Example) -> int:
        """Return the most calls that one example can take."""

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""
        reading = yield from self.read(example.source, example.claim)
        return reading.judgment()

    @abstractmethod
    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence.

        Parameters
        ----------
        source : str
            The material that the reply was written from.
        claim : str
            The reply.
        sentences : sequence of str, optional
            Its sentences; default: those that its text is split into.
        """
