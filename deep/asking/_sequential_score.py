"""Score text by asking the judges of a model one by one, until the decision is known."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deep._util.odds import DECISION, expit, logit
from deep.asking._estimate import Estimate
from deep.asking._options import AskOptions, ProgressCallback
from deep.asking._plan import Plan, PlannedVoter
from deep.asking._replay import Entry, ProgramId, Replay, RequestProgram
from deep.asking._run import ask_requests
from deep.asking._score_text import Scored, judge_offline
from deep.asking._sequential_policy import Prices, Step, learn_policy, training_report
from deep.asking._vote_files import chunks
from deep.judge import LLMJudge
from deep.llm import History
from deep.model import STOP, AskingPolicy, Model, ScoreOptions, match_columns, schema_of
from deep.prompt_pool import PromptJudge
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    import pyarrow as pa

PROBED = 100
"""Examples whose questions tell what each judge costs."""

PANEL = "panel"
"""The voter of the program that asks for all; its requests bear the names of their judges."""

COLUMNS = {
    "dataset": "string",
    "item_id": "string",
    "label": "int8",
    "p_consistent": "double",
    "decision": "int8",
    "n_asked": "int64",
    "n_votes": "int64",
    "p_low": "double",
    "p_high": "double",
}
"""The columns of scores by judges that were asked one by one, with their types in Arrow."""


def sequential_schema() -> "pa.Schema":
    """Return these columns."""
    return schema_of(COLUMNS)


@dataclass(frozen=True, kw_only=True)
class OneByOne:
    """The judges of a model, to be asked one by one about some examples.

    Parameters
    ----------
    model : Model
    plan : Plan
        The requests of the whole panel.
    columns : tuple of PlannedVoter
        One for each voter of the model, in its order.
    prices : Prices
    policy : AskingPolicy
    error_cost : float or None
    options : ScoreOptions
    """

    model: Model
    plan: Plan
    columns: tuple[PlannedVoter, ...]
    prices: Prices
    policy: AskingPolicy
    error_cost: float | None
    options: ScoreOptions

    @classmethod
    def prepare(
        cls, model: Model, plan: Plan, ask: AskOptions, options: ScoreOptions, error_cost: float | None
    ) -> Self:
        """Find the order of asking.

        Parameters
        ----------
        error_cost : float or None
            Price of a wrong decision; None: lossless.
        """
        unasked = np.full((1, len(model.voters)), ABSTAIN, dtype=np.int8)
        model.score(unasked, prior=options.prior, streamed=True)  # or refuse the prior
        matched = match_columns(model.voters, plan.voters, allow_mismatch=options.allow_mismatch)
        columns = tuple(plan.columns[position] for position in matched if position is not None)
        prices = _prices(plan, columns, ask)
        policy = learn_policy(model, prices, error_cost)
        return cls(
            model=model,
            plan=plan,
            columns=columns,
            prices=prices,
            policy=policy,
            error_cost=error_cost,
            options=options,
        )

    def training(self, step: Step) -> dict[str, Any]:
        """Return the saving and the loss on the training data; `step` is called after each of their datasets."""
        return training_report(self.model, self.prices, self.error_cost, step)

    def run(self, ask: AskOptions, progress: ProgressCallback | None = None) -> "str | Iterator[list[Scored]]":
        """Ask what the ledger lacks; return why it stopped, or scored examples, a chunk at a time."""
        known = self._offline()
        outcome = ask_requests(
            ask,
            endpoint=self.plan.endpoint,
            programs=lambda: self._programs(self.plan.examples, known),
            progress=progress,
        )
        return self._scored(ask.ledger, known) if outcome.stopped is None else outcome.stopped

    def _offline(self) -> list[dict[int, Judgment]]:
        """Return the judgments of the judges that need no LLM, by column, of every example."""
        free = {column: self.columns[column] for column in self.prices.free}
        judged = (row for batch in chunks(self.plan.examples) for row in judge_offline(list(free.values()), batch))
        return [{column: row[voter.name] for column, voter in free.items()} for row in judged]

    def _programs(
        self, examples: Iterable[Example], known: Sequence[dict[int, Judgment]], *, tell: bool = False
    ) -> Iterator[Entry]:
        for example, heard in zip(examples, known, strict=True):
            identity = ProgramId(PANEL, str(example.dataset), example.example_id)
            yield identity, "", self._program(example, heard, tell)  # every request names its own model

    def _program(
        self, example: Example, known: Mapping[int, Judgment], tell: bool
    ) -> RequestProgram[dict[int, Judgment]]:
        """Ask one judge after the other about an example; return the judgments by column.

        The requests are those of the whole panel, so that either finds the other's answers.
        """
        judged = dict(known)
        while (column := self.policy.next(_votes(judged))) != STOP:
            judged[column] = yield from self.plan.program(self.columns[column], example, tell=tell)
        return judged

    def _scored(self, ledger: str, known: Sequence[dict[int, Judgment]]) -> Iterator[list[Scored]]:
        with ExitStack() as stack:
            history = stack.enter_context(History(ledger))
            start = 0
            for examples in chunks(self.plan.examples):
                heard = known[start : start + len(examples)]
                start += len(examples)
                programs = partial(self._programs, examples, heard, tell=True)
                judged = (value for _, value in Replay(programs, self.plan.endpoint, history).values())
                yield [self._score(example, row) for example, row in zip(examples, judged, strict=True)]

    def _score(self, example: Example, judged: Mapping[int, Judgment]) -> Scored:
        votes = _votes(judged)
        p = self.policy.probability(votes)
        low, high = self._interval(votes)
        missing = [voter.name for column, voter in enumerate(self.columns) if column not in judged]
        row = (
            str(example.dataset),
            example.example_id,
            example.label,
            self._at_prior(p),
            int(p >= DECISION),
            len(judged) - len(self.prices.free),
            sum(vote != ABSTAIN for vote in votes.values()),
            low,
            high,
        )
        judgments = {voter.name: judged[column] for column, voter in enumerate(self.columns) if column in judged}
        return Scored(example, judgments, dict(zip(COLUMNS, row, strict=True)), missing)

    def _at_prior(self, p: float) -> float:
        """Return P at the prior that was given, or at the model's own, from P of which 0.5 decides."""
        prior = self.options.prior
        return float(expit(logit(p) + (self.model.decision_log_odds if prior is None else logit(prior))))

    def _interval(self, votes: Mapping[int, int]) -> tuple[float | None, float | None]:
        """Return the interval of P where all judges were asked."""
        if len(votes) < len(self.columns):
            return None, None
        pattern = np.array([[votes[column] for column in range(len(self.columns))]], dtype=np.int8)
        low, high = self.model.intervals(pattern, prior=self.options.prior, streamed=True)[0].tolist()
        return low, high


def _votes(judged: Mapping[int, Judgment]) -> dict[int, int]:
    return {column: judgment.vote for column, judgment in judged.items()}


def _prices(plan: Plan, columns: Sequence[PlannedVoter], ask: AskOptions) -> Prices:
    """Return the expected cost of each judge, from the examples alone, so that a resumed run asks in the same order."""
    examples = list(islice(plan.examples, PROBED))
    calls, dollars = np.zeros(len(columns)), np.zeros(len(columns))
    asked = [column for column, voter in enumerate(columns) if voter.judge.needs_llm]
    for column in asked:
        each = [_price(plan, columns[column], example, ask) for example in examples]
        calls[column], dollars[column] = np.mean(each, axis=0)
    known = bool((dollars[asked] > 0).all())
    return Prices(tuple((dollars if known else calls).tolist()), tuple(asked), "dollars" if known else "calls")


def _price(plan: Plan, voter: PlannedVoter, example: Example, ask: AskOptions) -> tuple[float, float]:
    """Return calls and dollars of one judge about one example, a staged one at most; dollars NaN where not known."""
    program = plan.program(voter, example)
    first = next(program, [])
    program.close()
    estimate = Estimate()
    for request in first:
        estimate.add(request, ask.price_book, settled=False, batch=ask.batch)
    judge = voter.judge
    # A prompt's repair turns are rare; a staged judge takes what it may.
    is_staged = not isinstance(judge, PromptJudge)
    bound = judge.most_calls(example) if is_staged and isinstance(judge, LLMJudge) else None
    most = len(first) if bound is None else max(bound, 1)
    return most, np.nan if estimate.dollars is None else estimate.dollars * most / max(len(first), 1)
