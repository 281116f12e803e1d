"""What a `deep votes` command is going to ask: every prompt of every model about every example."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import chain, groupby, islice, product
from typing import Any

from deep.asking._offline import OfflineJudges
from deep.asking._replay import STEP, Entry, ProgramId, Replay
from deep.asking._vote_files import chunks
from deep.datasets import Examples
from deep.exceptions import InputError
from deep.llm import History, PriceBook, Reply, Request, json_text, output_limit, worst_case
from deep.prompt_pool import Prompt, StagedJudge, why_unusable
from deep.records import Example, Judgment

__all__ = ["Estimate", "Plan", "read_answer", "read_verdict"]

LOGPROBS = {"logprobs": True, "top_logprobs": 5}
"""Five alternatives are what every server that has log-probabilities allows."""

CLAIMS_AT_ONCE = 50
"""Claims about one document that are asked about together, so that no document fills the memory."""

CHARACTERS_A_TOKEN = 4


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All requests of a command.

    Parameters
    ----------
    examples : Examples
    prompts : tuple of Prompt
    models : tuple of str
    endpoint : str
        The endpoint's name in the ledger.
    samples : int
        Answers to every question; above 1 they are drawn at `temperature`, 1.0 where none is given.
    soft : bool
        Ask for the log-probabilities of the verdict.
    temperature : float, optional
    max_tokens : int, optional
        In place of the prompts' own.
    judges : tuple of StagedJudge
        Judges that need several calls; `samples`, `soft`, `temperature` and `max_tokens` are not for them, since
        how often and how freely each step is asked is part of the judge.
    offline : OfflineJudges
        Judges that ask nobody; where there are no others, `models` and `endpoint` are empty.
    """

    examples: Examples
    prompts: tuple[Prompt, ...]
    models: tuple[str, ...]
    endpoint: str
    samples: int = 1
    soft: bool = False
    temperature: float | None = None
    max_tokens: int | None = None
    judges: tuple[StagedJudge, ...] = ()
    offline: OfflineJudges = field(default_factory=OfflineJudges)

    def __post_init__(self) -> None:
        repeated = next((v for i, v in enumerate(self.voters) if v in self.voters[:i]), None)
        if repeated is not None:
            raise InputError(f"`prompt` and `model` must name each voter once. Got {repeated!r} twice.")
        if self.temperature is not None and not 0 <= self.temperature < math.inf:
            raise InputError(f"`temperature` must be a number of at least 0. Got {self.temperature!r}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InputError(f"`max_tokens` must be at least 1. Got {self.max_tokens}.")

    @property
    def voters(self) -> list[str]:
        """The columns of the vote matrix: prompts, staged judges, judges that ask nobody."""
        staged = [judge.voter(model) for judge in self.judges for model in self.models]
        return [*self.prompt_voters, *staged, *self.offline.voters]

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask an endpoint."""
        return bool(self.prompts or self.judges)

    @property
    def prompt_voters(self) -> list[str]:
        """The columns that single prompts fill."""
        return [prompt.voter(model) for prompt in self.prompts for model in self.models]

    @property
    def soft_voters(self) -> list[str]:
        """The voters that give more than a vote."""
        everyone = self.soft or self.samples > 1
        asked = [p.voter(model) for p in self.prompts for model in self.models if everyone or p.kind == "score"]
        return [*asked, *self.offline.voters]

    @cached_property
    def n_examples(self) -> int:
        """The number of examples; the file is read once to check it."""
        return self.examples.check()

    @property
    def n_requests(self) -> int:
        """The number of requests in all, those of staged judges left out: nobody knows it."""
        return self.n_examples * len(self.prompt_voters) * self.samples

    @property
    def n_offline(self) -> int:
        """The number of judgments that ask nobody."""
        return self.n_examples * len(self.offline.voters)

    def parameters(self, prompt: Prompt) -> dict[str, Any]:
        """Return what goes along with a prompt's messages."""
        temperature = 1.0 if self.samples > 1 and self.temperature is None else self.temperature
        own = {"temperature": temperature, "max_tokens": self.max_tokens}
        chosen = {**prompt.parameters, **{name: value for name, value in own.items() if value is not None}}
        schema = prompt.schema()
        if schema is not None:
            layout = {"name": prompt.kind, "strict": True, "schema": schema}
            chosen["response_format"] = {"type": "json_schema", "json_schema": layout}
        return {**chosen, **(LOGPROBS if self.soft else {})}

    def requests(self) -> Iterator[Request]:
        """Yield all requests, all that concern one document together, without holding more than that document."""
        parameters = {prompt.id: self.parameters(prompt) for prompt in self.prompts}
        for _, examples in groupby(self.examples, key=lambda example: example.source):
            while some := list(islice(examples, CLAIMS_AT_ONCE)):
                yield from self._of_document(some, parameters)

    def _of_document(
        self, examples: Sequence[Example], parameters: Mapping[str, Mapping[str, Any]]
    ) -> Iterator[Request]:
        document = sha256(examples[0].source.encode(errors="replace")).hexdigest()[:16]
        for model, first in product(self.models, (True, False)):
            prompts = [prompt for prompt in self.prompts if prompt.document_first is first]
            for example, prompt in product(examples, prompts):
                yield from self._samples(prompt, example, model, parameters[prompt.id], document)

    def _samples(
        self, prompt: Prompt, example: Example, model: str, parameters: Mapping[str, Any], document: str
    ) -> Iterator[Request]:
        messages = prompt.render(example.source, example.claim)
        for sample in range(self.samples):
            yield Request(
                body={"model": model, "messages": messages, **parameters},
                endpoint=self.endpoint,
                prompt=prompt.id,
                prompt_hash=prompt.hash,
                voter=prompt.voter(model),
                dataset=str(example.dataset),
                item=example.example_id,
                sample=sample,
                group=f"{model} {document}" if prompt.document_first else None,
                context=(prompt, example),
            )

    def programs(self, examples: Iterable[Example] | None = None) -> Iterator[Entry]:
        """Yield the program of every staged judge of every model about every example, or about some examples."""
        for example in self.examples if examples is None else examples:
            for judge, model in product(self.judges, self.models):
                identity = ProgramId(judge.voter(model), str(example.dataset), example.example_id)
                yield identity, model, judge.program(example)

    def metadata(self, base_url: str | None) -> dict[str, Any]:
        """Return what the vote files say about how they came to be."""
        voters = {
            prompt.voter(model): {
                "kind": "prompt",
                "prompt": prompt.id,
                "prompt_hash": prompt.hash,
                "model": model,
                "parameters": self.parameters(prompt),
            }
            for prompt in self.prompts
            for model in self.models
        }
        for judge, model in product(self.judges, self.models):
            said = {"kind": "staged", "judge": judge.name, "judge_hash": judge.version}
            voters[judge.voter(model)] = {**said, "model": model}
        voters |= self.offline.metadata()
        common = {"schema_version": 1, "base_url": base_url, "endpoint": self.endpoint, "samples": self.samples}
        return {**common, "soft": self.soft, "voters": voters}

    def estimate(self, prices: PriceBook, history: History | None, *, batch: bool = False) -> "Estimate":
        """Count what is still to be asked and bound what it costs, without sending anything."""
        estimate = Estimate(self.n_offline)
        replay = Replay(self.programs, self.endpoint, history)
        asked: set[str] = set()
        for chunk in chunks(chain(self.requests(), replay.requests())):
            keys = [request.key for request in chunk]
            states = {} if history is None else history.states(keys)
            for key, request in zip(keys, chunk, strict=True):
                if request.context is STEP and key in asked:
                    continue
                if request.context is STEP:
                    asked.add(key)
                estimate.add(request, prices, settled=states.get(key) in ("done", "failed"), batch=batch)
        estimate.more_follow = replay.n_open > 0
        estimate.calls_at_most = self._most_calls() if self.judges else None
        return estimate

    def _most_calls(self) -> int | None:
        """Return the most calls that the staged judges can make; None where one of them cannot say."""
        bounds: list[Callable[[Example], int]] = [j.most_calls for j in self.judges if hasattr(j, "most_calls")]
        if len(bounds) < len(self.judges):
            return None
        return len(self.models) * sum(bound(example) for example in self.examples for bound in bounds)


def read_answer(request: Request, reply: Reply) -> Judgment | None:
    """Return what a reply says, read by the prompt that asked for it; None for a step that makes no vote alone."""
    if request.context is STEP:
        reason = why_unusable(reply)
        return None if reason is None else Judgment(vote=-1, reason=reason)
    return read_verdict(request, reply)


def read_verdict(request: Request, reply: Reply) -> Judgment:
    """Return what the reply to a single prompt says."""
    prompt, example = request.context
    judgment: Judgment = prompt.parse(
        reply.text,
        finish_reason=reply.finish_reason,
        refusal=reply.refusal,
        source=example.source,
        claim=example.claim,
        logprobs=reply.logprobs,
    )
    return judgment


class Estimate:
    """What a command would ask and pay.

    Attributes
    ----------
    calls, settled : int
        Requests to send, and those that the ledger has settled already.
    input_tokens : int
        About four characters a token.
    output_tokens : int or None
        The most that the answers may have; None where a request sets no limit.
    dollars, dollars_at_most : float or None
        With answers of a tenth of their limit, and the most that it can be; None where a price is not known.
    priced_models, unpriced_models : set of str
    more_follow : bool
        Whether staged judges go on to ask what depends on these answers, so that all figures are of their next
        questions only.
    offline_judgments : int
        Judgments that ask nobody and cost nothing.
    calls_at_most : int or None
        The most calls of the staged judges in all, those settled already included, where they can say.
    """

    def __init__(self, offline_judgments: int = 0) -> None:
        self.offline_judgments = offline_judgments
        self.calls = self.settled = self.input_tokens = 0
        self.output_tokens: int | None = 0
        self.dollars: float | None = 0.0
        self.dollars_at_most: float | None = 0.0
        self.unpriced_models: set[str] = set()
        self.priced_models: set[str] = set()
        self.more_follow = False
        self.calls_at_most: int | None = None

    def add(self, request: Request, prices: PriceBook, *, settled: bool, batch: bool) -> None:
        """Count one request."""
        if settled:
            self.settled += 1
            return
        text = json_text(request.body)
        limit = output_limit(request.body)
        n_input = len(text) // CHARACTERS_A_TOKEN + 1
        self.calls += 1
        self.input_tokens += n_input
        self.output_tokens = _plus(self.output_tokens, limit)
        likely = None if limit is None else {"input": n_input, "output": limit // 10 + 1}
        dollars = None if likely is None else prices.cost([request.model], likely, batch=batch)
        self.dollars = _plus(self.dollars, dollars)
        self.dollars_at_most = _plus(self.dollars_at_most, worst_case(prices, request.body, text, batch=batch))
        if request.model not in self.priced_models | self.unpriced_models:
            unknown = prices.cost([request.model], {"input": 1, "output": 1}) is None
            (self.unpriced_models if unknown else self.priced_models).add(request.model)

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate for `--json`."""
        models = {"priced_models": sorted(self.priced_models), "unpriced_models": sorted(self.unpriced_models)}
        return {**vars(self), **models}


def _plus(total: Any, amount: Any) -> Any:
    """Return the sum, unknown where either is."""
    return None if total is None or amount is None else total + amount
