"""A model at work on pairs that come one by one: its judges found once, repeated pairs answered from memory."""

from collections.abc import Sequence
from dataclasses import dataclass

from deep.asking import Plan, score_some
from deep.datasets import examples_from_dataset
from deep.exceptions import InputError
from deep.model import Model, check_scores_given
from deep.records import Example
from deep.serve.check._answers import answers_of
from deep.serve.check._bench import Workbench
from deep.serve.check._options import CheckOptions
from deep.serve.web import json_bytes


@dataclass(frozen=True, slots=True)
class PairText:
    """A source and a claim to hold against it."""

    source: str
    claim: str

    @property
    def weight(self) -> int:
        """The number of its characters."""
        return len(self.source) + len(self.claim)


class Checker:
    """Answers pairs by a model.

    Parameters
    ----------
    model : Model
    options : CheckOptions, optional

    Raises
    ------
    InputError
        A judge of the model cannot be run here, or asks an LLM where that is not allowed.
    """

    def __init__(self, model: Model, options: CheckOptions | None = None) -> None:
        self.model, self.options = model, options or CheckOptions()
        check_scores_given(model, ())
        self.plan = self._planned()
        self._bench = Workbench(self._answers, lambda pair: pair.weight)

    def _planned(self) -> Plan:
        options = self.options
        nothing = examples_from_dataset([], name=options.dataset)
        endpoint = options.endpoint or ("" if options.ask is None else options.ask.public_url)
        plan = options.finder.plan(self.model, nothing, lambda: endpoint)
        if plan.asks:
            raise InputError("`model` must have judges that ask no LLM. Got some.")
        return plan

    async def check(self, pair: PairText) -> bytes:
        """Return the answer to a pair as JSON, in braces."""
        return await self._bench.do(pair)

    def close(self) -> None:
        """End the threads."""
        self._bench.close()

    def _answers(self, pairs: Sequence[PairText]) -> Sequence[bytes]:
        """Return the answers to several pairs, worked out together."""
        name = self.options.dataset
        examples = [Example(pair.source, pair.claim, str(i), dataset=name) for i, pair in enumerate(pairs)]
        scored = score_some(self.model, self.plan, examples, None, self.options.score, tell=False)
        if self.options.on_scored is not None:
            for one in scored:
                self.options.on_scored(one)
        return [json_bytes(answer) for answer in answers_of(self.model, self.plan, scored)]
