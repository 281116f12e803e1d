"""The base of judges made of a network: their names, and one example as a batch of one."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from deep.features.encoders._network import Network
from deep.judge import OfflineJudge, voter_name
from deep.records import Example, Judgment


class NetworkJudge(OfflineJudge):
    """A judge whose subclass judges batches, and has `network`, `name` and `version`."""

    network: Network
    name: str
    version: str

    @property
    def model_id(self) -> str:
        """Return the hub id of the model, or the name of its folder."""
        return self.network.model_id

    @property
    @abstractmethod
    def settings(self) -> Mapping[str, object]:
        """Return the options that make this judge again."""

    @property
    def details(self) -> Mapping[str, object]:
        """See :class:`deep.judge.Judge`."""
        known = {"kind": self.name.partition("-")[0], "judge": self.name, "version": self.version}
        return {**known, "model": self.model_id, "settings": dict(self.settings)}

    def voter(self, llm: str = "") -> str:  # noqa: ARG002  no LLM is asked
        """Return the name of its column."""
        return voter_name(self.name, self.version, self.model_id)

    def label(self, example: Example, /) -> Judgment:
        """Judge one example."""
        return self.label_many([example])[0]

    @abstractmethod
    def label_many(self, examples: Sequence[Example]) -> list[Judgment]:
        """Judge examples, in their order."""
