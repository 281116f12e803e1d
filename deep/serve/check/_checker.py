"""A model at work on pairs that come one by one: its judges found once, repeated pairs answered from memory."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import blake2b

from deep.asking import LiveAsker, PatternScores, Plan, Scored, score_some
from deep.datasets import examples_from_dataset
from deep.exceptions import InputError
from deep.llm import EndpointError, History, LedgerError
from deep.model import Model, check_scores_given
from deep.records import Example
from deep.serve.check._answers import Answers
from deep.serve.check._asking_thread import AskingThread
from deep.serve.check._bench import WEIGHT_OF_TURN, QuickBench, Workbench
from deep.serve.check._cache import AnswerCache
from deep.serve.check._options import CheckOptions
from deep.serve.web import WebError


@dataclass(frozen=True)
class PairText:
    """A source and a claim to hold against it."""

    source: str
    claim: str

    @property
    def weight(self) -> int:
        """The number of its characters."""
        return len(self.source) + len(self.claim)

    @cached_property
    def key(self) -> bytes:
        """The digest that stands for it where no text is kept."""
        digest = blake2b(digest_size=16)
        for text in (self.source, self.claim):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(b"%d " % len(raw))
            digest.update(raw)
        return digest.digest()


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """The answer to a pair as JSON, and whether the budget had room for all that it takes."""

    body: bytes
    within_budget: bool = True
    is_lasting: bool = True


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
        self._closing = ExitStack()
        self._scores = PatternScores(model, self.options.score)
        self._told = Answers(model, self.plan, *([0] if self.options.no_text else []))
        self._asking = self._asker()
        self._bench: Workbench[PairText, PairAnswer] = Workbench(self._answers, lambda pair: pair.weight)
        self._cache = AnswerCache(0 if self.options.no_text else self.options.cache_bytes)
        self._quick: QuickBench[PairText, PairAnswer] = QuickBench(self._answers, lambda pair: pair.weight)
        self._is_quick = all(column.judge.details.get("kind") == "lexical" for column in self.plan.columns)
        self._flights: dict[bytes, asyncio.Future[PairAnswer]] = {}

    def _planned(self) -> Plan:
        options = self.options
        nothing = examples_from_dataset([], name=options.dataset)
        endpoint = options.endpoint or ("" if options.ask is None else options.ask.public_url)
        plan = options.finder.plan(self.model, nothing, lambda: endpoint)
        asking = next((column.name for column in plan.columns if column.judge.needs_llm), None)
        if asking is not None and options.no_text:
            raise InputError(
                "`no_text` must be given with judges that ask no LLM, for a ledger keeps what was asked and answered, "
                f"or an answer that was paid would be lost. Got {asking!r}. Leave it out."
            )
        if plan.asks and options.ask is None:
            raise InputError("`ask` must be given with judges that ask an LLM: where, for how much, by which ledger.")
        return plan

    def _asker(self) -> AskingThread | None:
        if not self.plan.asks:
            return None
        assert self.options.ask is not None  # or `_planned` has raised
        return AskingThread(LiveAsker(self.plan, self.options.ask))

    @property
    def at_once(self) -> int:
        """The number of pairs of one request that are worked on side by side."""
        return self.options.most_pairs if self.plan.asks else 32

    async def check(self, pair: PairText) -> PairAnswer:
        """Return the answer to a pair; one that is being worked on, or was lately, is not worked on again.

        Raises
        ------
        WebError
            The endpoint refuses every request, or the ledger cannot be written.
        """
        key = pair.key
        known = self._cache.get(key)
        if known is not None:
            return PairAnswer(known)
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = self._begin(pair)
            flight.add_done_callback(partial(self._land, key))
        return await asyncio.shield(flight)

    def _begin(self, pair: PairText) -> "asyncio.Future[PairAnswer]":
        if self._asking is not None:
            return asyncio.create_task(self._asked(self._asking, pair))
        bench = self._quick if self._is_quick and pair.weight <= WEIGHT_OF_TURN else self._bench
        return bench.do(pair)

    def _land(self, key: bytes, flight: "asyncio.Future[PairAnswer]") -> None:
        """Keep an answer that would be the same again."""
        del self._flights[key]
        if not flight.cancelled() and flight.exception() is None and flight.result().is_lasting:
            self._cache.put(key, flight.result().body)

    async def _asked(self, asking: AskingThread, pair: PairText) -> PairAnswer:
        try:
            within = await asking.ask(self._example(pair))
        except EndpointError as error:
            raise WebError(502, "endpoint", str(error)) from None
        except LedgerError as error:
            raise WebError(503, "ledger", str(error)) from None
        answer = await self._bench.do(pair)
        return answer if within else PairAnswer(answer.body, within_budget=False, is_lasting=False)

    def _example(self, pair: PairText) -> Example:
        return Example(pair.source, pair.claim, pair.key.hex(), dataset=self.options.dataset)

    async def open(self) -> None:
        """Open the ledger now, and not with the first question.

        Raises
        ------
        InputError
            Another process writes to it.
        LedgerError
            It cannot be opened.
        """
        if self._asking is not None:
            try:
                await self._asking.open()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """End the threads, and close the ledger."""
        if self._asking is not None:
            self._asking.close()
        self._bench.close()
        self._closing.close()

    @cached_property
    def _history(self) -> History | None:
        """The ledger, opened by the thread that reads it."""
        if self.options.ask is None or not self.plan.asks:
            return None
        return self._closing.enter_context(History(self.options.ask.ledger))

    def _answers(self, pairs: Sequence[PairText]) -> Sequence[PairAnswer]:
        """Return the answers to several pairs, worked out together."""
        examples = {pair.key: self._example(pair) for pair in pairs}
        given = list(examples.values())
        options = self.options.score
        found = score_some(self.model, self.plan, given, self._history, options, tell=False, rows=self._scores)
        if self.options.on_scored is not None:
            for one in found:
                self.options.on_scored(one)
        told = self._told.tell(found)
        answers = {
            key: PairAnswer(answer, is_lasting=_is_lasting(one))
            for key, one, answer in zip(examples, found, told, strict=True)
        }
        return [answers[pair.key] for pair in pairs]


def _is_lasting(scored: Scored) -> bool:
    """Return whether the same pair would be answered the same: no judge has failed."""
    return all(judgment.reason != "failed" for judgment in scored.judgments.values())
