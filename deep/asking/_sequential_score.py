"""Score text by asking the judges of a model one by one, until the decision is known."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy.special import expit, logit

from deep._odds import DECISION
from deep.asking._plan import Estimate, Plan, read_answer
from deep.asking._replay import Asking, Entry, ProgramId, Replay, as_requests
from deep.asking._score_text import Scored
from deep.asking._sequential_policy import Prices, learn_policy, training_report
from deep.asking._vote_files import chunks
from deep.llm import History, PriceBook
from deep.model import STOP, AskingPolicy, Model, ScoreOptions, match_columns
from deep.prompt_pool import StagedJudge, pool_judgments
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    from deep.asking._registry import Panel
    from deep.asking._run import Settings
    from deep.datasets import Examples

__all__ = ["COLUMNS", "OneByOne", "sequential_schema"]

PROBED = 100
"""Examples whose questions tell what each judge costs."""

PANEL = "panel"
"""The voter of the program that asks for all; its requests bear the names of their judges."""

COLUMNS = ("dataset", "item_id", "label", "p_consistent", "decision", "n_asked", "n_votes", "p_low", "p_high")


def sequential_schema() -> Any:
    """Return the columns of scores by judges that were asked one by one."""
    import pyarrow as pa

    text, few, many, real = pa.string(), pa.int8(), pa.int64(), pa.float64()
    return pa.schema(list(zip(COLUMNS, (text, text, few, real, few, many, many, real, real), strict=True)))


@dataclass(frozen=True)
class _Judge:
    """A judge that is asked.

    Parameters
    ----------
    program : callable
        Takes an example; returns the program that asks about it.
    most_calls : callable or None
        Takes an example; None where the judge asks everything at once.
    """

    program: Callable[[Example], Asking[Judgment]]
    most_calls: Callable[[Example], int] | None = None


@dataclass(frozen=True, kw_only=True)
class OneByOne:
    """The judges of a model, to be asked one by one about some examples.

    Parameters
    ----------
    model : Model
    names : tuple of str
        The judges' own names, by voter of the model.
    judges : mapping of int to _Judge
        Those that are asked, by column.
    prices : Prices
    policy : AskingPolicy
    error_cost : float or None
    examples : Examples
    panel : Panel
    endpoint : str
    options : ScoreOptions
    """

    model: Model
    names: tuple[str, ...]
    judges: Mapping[int, _Judge]
    prices: Prices
    policy: AskingPolicy
    error_cost: float | None
    examples: "Examples"
    panel: "Panel"
    endpoint: str
    options: ScoreOptions

    @classmethod
    def prepare(
        cls,
        model: Model,
        panel: "Panel",
        plans: Sequence[Plan],
        settings: "Settings",
        options: ScoreOptions,
        error_cost: float | None,
    ) -> Self:
        """Find the order of asking.

        Parameters
        ----------
        plans : sequence of Plan
            What the whole panel would ask, at least one.
        error_cost : float or None
            Price of a wrong decision; None: lossless.
        """
        model.score(np.full((1, len(model.voters)), ABSTAIN, dtype=np.int8), prior=options.prior)  # or refuse the prior
        asked = {name: judge for plan in plans for name, judge in _judges(plan)}
        known = [*asked, *panel.offline.voters]
        columns = match_columns(model.voters, known, allow_mismatch=options.allow_mismatch)
        names = tuple(known[column] for column in columns if column is not None)
        judges = {column: asked[name] for column, name in enumerate(names) if name in asked}
        examples = plans[0].examples
        prices = _prices(judges, len(names), list(islice(examples, PROBED)), settings.prices, batch=settings.batch)
        return cls(
            model=model,
            names=names,
            judges=judges,
            prices=prices,
            policy=learn_policy(model, prices, error_cost),
            error_cost=error_cost,
            examples=examples,
            panel=panel,
            endpoint=plans[0].endpoint,
            options=options,
        )

    def training(self) -> dict[str, Any]:
        """Return the saving and the loss on the training data."""
        return training_report(self.model, self.prices, self.error_cost)

    def run(self, settings: "Settings") -> "str | Iterator[list[Scored]]":
        """Ask what the ledger lacks; return why it stopped, or scored examples, some at a time."""
        from deep.asking._run import ask

        known = self._offline()
        outcome = ask(settings, endpoint=self.endpoint, programs=lambda: self._programs(self.examples, known))
        return self._scored(settings.ledger, known) if outcome.stopped is None else outcome.stopped

    def _offline(self) -> list[dict[int, Judgment]]:
        """Return what the judges that ask nobody say, by column, of every example."""
        if not self.prices.free:
            return [{} for _ in self.examples]
        offline = self.panel.offline
        judged = (row for some in chunks(self.examples) for row in offline.judge(some))
        return [{column: row[self.names[column]] for column in self.prices.free} for row in judged]

    def _programs(
        self, examples: "Examples | Sequence[Example]", known: Sequence[dict[int, Judgment]]
    ) -> Iterator[Entry]:
        for example, heard in zip(examples, known, strict=True):
            identity = ProgramId(PANEL, str(example.dataset), example.example_id)
            yield identity, "", self._program(example, heard)  # every request names its own model

    def _program(self, example: Example, known: Mapping[int, Judgment]) -> Asking[dict[int, Judgment]]:
        """Ask one judge after the other about an example; return what was said, by column."""
        said = dict(known)
        while (column := self.policy.next(_votes(said))) != STOP:
            said[column] = yield from self.judges[column].program(example)
        return said

    def _scored(self, ledger: str, known: Sequence[dict[int, Judgment]]) -> Iterator[list[Scored]]:
        with ExitStack() as stack:
            history = stack.enter_context(History(ledger))
            start = 0
            for some in chunks(self.examples):
                heard = known[start : start + len(some)]
                start += len(some)
                replay = Replay(partial(self._programs, some, heard), self.endpoint, history)
                said = {(identity.dataset, identity.item): value for identity, value in replay.values()}
                yield [self._score(example, said[str(example.dataset), example.example_id]) for example in some]

    def _score(self, example: Example, said: Mapping[int, Judgment]) -> Scored:
        votes = _votes(said)
        p = self.policy.probability(votes)
        low, high = self._interval(votes)
        missing = [name for column, name in enumerate(self.names) if column not in said]
        row = (
            str(example.dataset),
            example.example_id,
            example.label,
            p if self.options.prior is None else float(expit(logit(p) + logit(self.options.prior))),
            int(p >= DECISION),
            len(said) - len(self.prices.free),
            sum(vote != ABSTAIN for vote in votes.values()),
            low,
            high,
        )
        judgments = {name: said[column] for column, name in enumerate(self.names) if column in said}
        return Scored(example, judgments, dict(zip(COLUMNS, row, strict=True)), missing)

    def _interval(self, votes: Mapping[int, int]) -> tuple[float | None, float | None]:
        """Return the interval of P where all judges were asked."""
        if len(votes) < len(self.names):
            return None, None
        pattern = np.array([[votes[column] for column in range(len(self.names))]], dtype=np.int8)
        low, high = self.model.intervals(pattern, prior=self.options.prior)[0].tolist()
        return (None, None) if np.isnan(low) else (low, high)


def _votes(said: Mapping[int, Judgment]) -> dict[int, int]:
    return {column: judgment.vote for column, judgment in said.items()}


def _judges(plan: Plan) -> Iterator[tuple[str, _Judge]]:
    """Yield what a plan's prompts and staged judges ask about one example, by voter."""
    (model,) = plan.models
    for prompt in plan.prompts:
        alone = replace(plan, prompts=(prompt,), judges=())
        yield prompt.voter(model), _Judge(partial(_ask_prompt, alone))
    for judge in plan.judges:
        program = partial(_ask_staged, judge, model, plan.endpoint)
        yield judge.voter(model), _Judge(program, getattr(judge, "most_calls", None))


def _ask_prompt(plan: Plan, example: Example) -> Asking[Judgment]:
    """Ask a prompt as the whole panel would, by the same requests, so that either finds the other's answers."""
    requests = list(replace(plan, examples=[example]).requests())  # type: ignore[arg-type]
    replies = yield requests
    judgments = [
        (None if reply is None else read_answer(request, reply)) or Judgment(vote=ABSTAIN, reason="failed")
        for request, reply in zip(requests, replies, strict=True)
    ]
    return judgments[0] if len(judgments) == 1 else pool_judgments(judgments)


def _ask_staged(judge: StagedJudge, model: str, endpoint: str, example: Example) -> Asking[Judgment]:
    identity = ProgramId(judge.voter(model), str(example.dataset), example.example_id)
    try:
        return (yield from as_requests(judge.program(example), identity, model, endpoint))
    except Exception:
        return Judgment(vote=ABSTAIN, reason="unparsable")  # as the whole panel takes a judge that breaks


def _prices(
    judges: Mapping[int, _Judge], n_voters: int, examples: Sequence[Example], book: PriceBook, *, batch: bool
) -> Prices:
    """Return what each judge is likely to cost, told from the examples alone, so that a run resumed asks alike."""
    calls, dollars = np.zeros(n_voters), np.zeros(n_voters)
    for column, judge in judges.items():
        calls[column], dollars[column] = np.mean([_price(judge, example, book, batch) for example in examples], axis=0)
    known = bool((dollars[list(judges)] > 0).all())
    return Prices(tuple((dollars if known else calls).tolist()), tuple(judges), "dollars" if known else "calls")


def _price(judge: _Judge, example: Example, book: PriceBook, batch: bool) -> tuple[float, float]:
    """Return calls and dollars of one judge about one example, a staged one at most; dollars NaN where not known."""
    program = judge.program(example)
    first = next(program, [])
    program.close()
    estimate = Estimate()
    for request in first:
        estimate.add(request, book, settled=False, batch=batch)  # type: ignore[arg-type]
    most = len(first) if judge.most_calls is None else max(judge.most_calls(example), 1)
    return most, np.nan if estimate.dollars is None else estimate.dollars * most / max(len(first), 1)
