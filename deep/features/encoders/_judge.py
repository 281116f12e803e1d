"""What all judges made of a network share: their names, and one example as a batch of one."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from deep.features.encoders._network import Network
from deep.records import Example, Judgment


class NetworkJudge(ABC):
    """A labeling function whose subclass judges batches, and has `network`, `name` and `version`."""

    network: Network
    name: str
    version: str

    @property
    def model_id(self) -> str:
        """Return the hub id of the model, or the name of its folder."""
        return self.network.model_id

    @property
    def voter(self) -> str:
        """Return the name of its column."""
        return f"{self.name}@{self.version[:8]}/{self.network.model_id}"

    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""
        return self.label_many([example])[0]

    @abstractmethod
    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples, in their order."""
