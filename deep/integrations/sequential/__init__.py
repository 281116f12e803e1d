"""Judges of a model asked one by one until the decision is known: their order and prices, the effect, texts scored."""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from deep import asking, console
from deep._util.checks import Floats, Mask
from deep._util.odds import DECISION_P, expit, logit
from deep.exceptions import ExitStatus, InputError, StoppedError
from deep.integrations.sequential._policy import STOP_ASKING as STOP_ASKING
from deep.integrations.sequential._policy import AskingPolicy as AskingPolicy
from deep.integrations.sequential._policy import Simulation as Simulation
from deep.judges import LLMJudge
from deep.llm import History
from deep.model import (
    ITEM_COLUMNS,
    MAX_TABLE_VOTERS,
    ItemColumn,
    Model,
    ScoreOptions,
    columns_by_name,
    exported_columns,
    match_columns,
    records_of,
    sure_mask,
)
from deep.prompt_pool import PromptJudge
from deep.records import ABSTAIN, Example, Judgment

# A report as JSON values, by the names of its figures.
Figures = dict[str, Any]


@dataclass(frozen=True)
class Prices:
    """The price of one question to each judge.

    Parameters
    ----------
    values : tuple of float
        By voter of the model; 0 for a judge that needs no LLM.
    llm_columns : tuple of int
        The columns of the judges that are asked.
    unit : {'calls', 'dollars'}
        Dollars where the price of every judge is known.
    """

    values: tuple[float, ...]
    llm_columns: tuple[int, ...]
    unit: str

    @property
    def free(self) -> tuple[int, ...]:
        """Return the columns of the judges that need no LLM, which are all heard first."""
        return tuple(column for column in range(len(self.values)) if column not in self.llm_columns)


def training_patterns(model: Model) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the vote patterns that a model was fitted on, and their weights: every dataset counts the same."""
    return model.cells.patterns, _weights(model.cells.counts)


def _weights(counts: npt.NDArray[np.int64]) -> Floats:
    """Return the weight of each pattern, from counts of shape (n_patterns, n_datasets, 2)."""
    rows = counts.sum(axis=2)
    return np.asarray((rows / rows.sum(axis=0)).sum(axis=1))


def check_sequential(model: Model, prior: float | None = None) -> Floats:
    """Return P of every pattern of votes, moved so that the model's rule decides at 0.5.

    Raises
    ------
    InputError
        The model has too many voters for a table, so that its judges cannot be asked one by one.
    """
    if not model.has_table:
        scores = f", {len(model.score_names)} with grades or scores" if model.score_names else ""
        raise InputError(
            f"`sequential` must be given with a model of at most {MAX_TABLE_VOTERS} voters, who all vote. "
            f"Got {len(model.voters)} voters{scores}. Fit with fewer of them, or score without it."
        )
    result = model.scores_at(model.contexts, prior, model.every_pattern)
    return expit(logit(result.p_consistent) - logit(result.threshold))


def _figures(simulation: Simulation, counts: npt.NDArray[np.int64], prices: Prices) -> Figures:
    """Return the questions asked of a row, the shares saved, the decisions changed, and the balanced accuracies.

    Parameters
    ----------
    simulation : Simulation
        Of each pattern.
    counts : ndarray of int, shape (n_patterns, 2)
        Its rows with label 0 and 1.
    prices : Prices
        Of one question to each judge, from which the shares saved are counted.
    """
    weights, one_by_one = counts.sum(axis=1), simulation.p >= DECISION_P
    calls, paid = (float(np.average(values, weights=weights)) for values in (simulation.calls, simulation.cost))
    return {
        "asked": calls,
        "calls_saved": 1 - calls / len(prices.llm_columns),
        "price_saved": 1 - paid / sum(prices.values),
        "changed": int(weights[simulation.changed].sum()),
        "n": int(weights.sum()),
        "balanced_accuracy_panel": _balanced(one_by_one ^ simulation.changed, counts),
        "balanced_accuracy_sequential": _balanced(one_by_one, counts),
    }


def _balanced(decisions: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> float | None:
    """Return the balanced accuracy of decisions by pattern; None where the rows have one label only."""
    if not counts.sum(axis=0).all():
        return None
    right = np.where(decisions, counts[:, 1], 0).sum() / counts[:, 1].sum()
    return float(right + np.where(decisions, 0, counts[:, 0]).sum() / counts[:, 0].sum()) / 2


# Figures whose mean over the datasets is told; the others are counts, which are summed.
AVERAGED_FIGURES = ("asked", "calls_saved", "price_saved", "balanced_accuracy_panel", "balanced_accuracy_sequential")


def _mean(rows: Sequence[Figures]) -> Figures:
    """Return the mean of some figures over datasets; rows and changed decisions are summed."""
    by_name = {name: [row[name] for row in rows if row[name] is not None] for name in AVERAGED_FIGURES}
    means = {name: float(np.mean(values)) if values else None for name, values in by_name.items()}
    return {**means, **{name: sum(row[name] for row in rows) for name in ("changed", "n")}}


def training_lines(report: Figures) -> Iterator[str]:
    """Yield the lines for people about the training data."""
    mean, unit, cost = report["mean"], report["unit"], report["error_cost"]
    yield (
        "asking one by one, lossless: stops when the other judges cannot change the decision"
        if cost is None
        else f"asking one by one, while it saves more than it costs; cost of a wrong decision: {cost:g} {unit}"
    )
    yield f"prices: {_listed(report)}"
    yield (
        "on each training dataset, in the order learned from the others:"
        if report["held_out"]
        else "on the only training dataset, in the order learned from itself:"
    )
    yield (
        f"  {mean['asked']:.2f} of {report['judges']} judges asked, {100 * mean['calls_saved']:.1f} % fewer; "
        f"{100 * mean['price_saved']:.1f} % of the {unit} saved"
    )
    pair = (mean["balanced_accuracy_sequential"], mean["balanced_accuracy_panel"])
    one, whole = ("unknown" if value is None else f"{100 * value:.1f}" for value in pair)
    yield f"  {mean['changed']:,} of {mean['n']:,} decisions changed; balanced accuracy {one}, whole panel {whole}"


def _listed(report: Figures) -> str:
    """Return the prices in words."""
    by_name = {name: price for name, price in report["prices"].items() if price > 0}
    prices = [f"{name} {price:.3g}" for name, price in by_name.items()]
    if len(set(by_name.values())) == 1:
        prices = [f"{next(iter(by_name.values())):.3g} each"]
    why = "" if report["unit"] == "dollars" else ", because some judges have no price"
    return f"{', '.join(prices)} (in {report['unit']}{why})"


# Examples whose questions tell what each judge costs: more give a steadier mean, and take longer before the first call.
N_PROBED_EXAMPLES = 100

PANEL_PROGRAM = "panel"
"""The voter of the program that asks for all; its requests bear the names of their judges."""

N_ASKED = ItemColumn("n_asked", "int64", "judges that were asked; judges without an LLM are not counted", 2, high=None)

# How columns differ from those of the same name where the whole panel is asked.
CHANGED_COLUMNS: dict[str, dict[str, Any]] = {
    "p_consistent": {"meaning": "P(consistent) from the answers so far"},
    "p_low": {"meaning": "its 90 % interval if all judges were asked, else null"},
    "p_high": {"meaning": "its 90 % interval if all judges were asked, else null"},
    "sure": {
        "meaning": (
            "1 if the decision's chance is at least 2 in 3 over the whole interval, else 0; null without an interval"
        ),
        "nullable": True,
        "of": lambda heard: np.where(np.isnan(heard.bounds[0]), ABSTAIN, heard.voted & heard.sure),
    },
    "n_votes": {"meaning": "votes of 1 or 0 so far"},
}


def _columns() -> Iterator[ItemColumn]:
    for name, column in exported_columns().items():
        if name == "n_votes":
            yield N_ASKED
        yield replace(column, **CHANGED_COLUMNS.get(name, {}))


COLUMNS = columns_by_name(*_columns())
"""The columns of scores by judges that were asked one by one."""


@dataclass(frozen=True)
class _ItemSoFar:
    """The facts on one item that columns are made of, named as :class:`deep.model.Scores` has them; no bound is NaN."""

    p_consistent: Floats
    bounds: tuple[Floats, Floats]
    threshold: float
    decisions: Mask
    n_votes: npt.NDArray[np.intp]
    n_asked: npt.NDArray[np.intp]

    @property
    def voted(self) -> Mask:
        return np.asarray(self.n_votes > 0)

    @property
    def sure(self) -> Mask:
        return sure_mask(*self.bounds, self.threshold)


@dataclass(frozen=True, kw_only=True)
class OneByOne:
    """The judges of a model, to be asked one by one about some examples.

    Parameters
    ----------
    model : Model
        It gives P of every pattern of votes; its voters are the judges.
    plan : Plan
        The requests of the whole panel.
    columns : tuple of PlannedVoter
        One for each voter of the model, in its order.
    prices : Prices
        Of one question to each voter, in dollars or, where those are not known, in calls.
    policy : AskingPolicy
        Says which judge to ask next, and when to stop.
    error_cost : float or None
        Price of a wrong decision, in the unit of `prices`; None: asking stops where no vote could change the decision.
    options : ScoreOptions
        The share of consistent items, and whether judges of another version or model are taken.
    """

    model: Model
    plan: asking.Plan
    columns: tuple[asking.PlannedVoter, ...]
    prices: Prices
    policy: AskingPolicy
    error_cost: float | None
    options: ScoreOptions

    @classmethod
    def prepare(
        cls, model: Model, plan: asking.Plan, ask: asking.AskOptions, options: ScoreOptions, error_cost: float | None
    ) -> Self:
        """Find the order of asking.

        Parameters
        ----------
        error_cost : float or None
            Price of a wrong decision; None: lossless.
        """
        if plan.functions:
            raise InputError(
                "`sequential` must be given with prompts, staged judges and checks. "
                f"Got the function {next(iter(plan.functions))!r}. Score without."
            )
        unasked = np.full((1, len(model.voters)), ABSTAIN, dtype=np.int8)
        model.score(unasked, prior=options.prior, streamed=True)  # or refuse the prior
        ask = plan.with_providers(ask)
        matched = match_columns(model.voters, plan.voters, allow_mismatch=options.allow_mismatch)
        columns = tuple(plan.columns[position] for position in matched if position is not None)
        prices = _prices(plan, columns, ask)
        table, like = check_sequential(model, options.prior), training_patterns(model)
        policy = AskingPolicy.learn(table, *like, prices=prices.values, error_cost=error_cost)
        return cls(
            model=model,
            plan=plan,
            columns=columns,
            prices=prices,
            policy=policy,
            error_cost=error_cost,
            options=options,
        )

    def training(self, step: Callable[[], None]) -> Figures:
        """Return the calls saved and the decisions changed by asking one by one on the training data, as JSON values.

        Each training dataset is met by the policy that the patterns of the others teach; a single one by its own.
        `step` is called after each of them.
        """
        rows, prices = [], self.prices
        table, cells = check_sequential(self.model), self.model.cells
        for position, name in enumerate(cells.groups):
            others = [other for other in range(len(cells.groups)) if other != position] or [position]
            weights = _weights(cells.counts[:, others])
            policy = AskingPolicy.learn(
                table, cells.patterns, weights, prices=prices.values, error_cost=self.error_cost
            )
            result = policy.simulate(cells.patterns, table, heard=prices.free)
            rows.append({"dataset": name, **_figures(result, cells.counts[:, position], prices)})
            step()
        return {
            "judges": len(prices.llm_columns),
            "prices": dict(zip(self.model.voter_names, prices.values, strict=True)),
            "unit": prices.unit,
            "error_cost": self.error_cost,
            "held_out": len(rows) > 1,
            "datasets": rows,
            "mean": _mean(rows),
        }

    def run(
        self, ask: asking.AskOptions, progress: asking.ProgressCallback | None = None
    ) -> "str | Iterator[list[asking.Scored]]":
        """Ask what the ledger lacks; return why it stopped, or scored examples, a chunk at a time."""
        offline = self._offline()
        outcome = asking.ask_requests(
            self.plan.with_providers(ask),
            endpoint=self.plan.endpoint,
            default=self.plan.asks_default,
            programs=lambda: self._programs(self.plan.examples, offline),
            progress=progress,
        )
        return self._scored(ask.ledger, offline) if outcome.stopped is None else outcome.stopped

    def _offline(self) -> list[dict[int, Judgment]]:
        """Return the judgments of the judges that need no LLM, by column, of every example."""
        free = {column: self.columns[column] for column in self.prices.free}
        answers = (
            row
            for batch in asking.chunks(self.plan.examples)
            for row in asking.judge_offline(list(free.values()), batch)
        )
        return [{column: row[voter.name] for column, voter in free.items()} for row in answers]

    def _programs(
        self, examples: Iterable[Example], offline: Sequence[dict[int, Judgment]], *, tell: bool = False
    ) -> Iterator[asking.ProgramEntry]:
        for example, heard in zip(examples, offline, strict=True):
            identity = asking.ProgramId(PANEL_PROGRAM, str(example.dataset), example.example_id)
            yield identity, "", self._program(example, heard, tell)  # every request names its own model

    def _program(
        self, example: Example, offline: Mapping[int, Judgment], tell: bool
    ) -> asking.RequestProgram[dict[int, Judgment]]:
        """Ask one judge after the other about an example; return the judgments by column.

        The requests are those of the whole panel, so that either finds the other's answers.
        """
        judgments = dict(offline)
        while (column := self.policy.next(_votes(judgments))) != STOP_ASKING:
            judgments[column] = yield from self.plan.program(self.columns[column], example, tell=tell)
        return judgments

    def _scored(self, ledger: str, offline: Sequence[dict[int, Judgment]]) -> Iterator[list[asking.Scored]]:
        with ExitStack() as stack:
            history = stack.enter_context(History(ledger))
            start = 0
            for examples in asking.chunks(self.plan.examples):
                heard = offline[start : start + len(examples)]
                start += len(examples)
                programs = partial(self._programs, examples, heard, tell=True)
                rows = (value for _, value in asking.Replay(programs, self.plan.endpoint, history).values())
                yield [self._score(example, row) for example, row in zip(examples, rows, strict=True)]

    def _score(self, example: Example, by_column: Mapping[int, Judgment]) -> asking.Scored:
        votes = _votes(by_column)
        p, threshold = self.policy.probability(votes), self.model.threshold(self.options.prior)
        heard = _ItemSoFar(
            p_consistent=expit(logit(np.array([p])) + logit(threshold)),
            bounds=self._interval(votes),
            threshold=threshold,
            decisions=np.array([p >= DECISION_P]),
            n_votes=np.array([sum(vote != ABSTAIN for vote in votes.values())]),
            n_asked=np.array([len(by_column) - len(self.prices.free)]),
        )
        item = {"dataset": str(example.dataset), "item_id": example.example_id, "label": example.label}
        judgments = {voter.name: by_column[column] for column, voter in enumerate(self.columns) if column in by_column}
        missing = [voter.name for column, voter in enumerate(self.columns) if column not in by_column]
        return asking.Scored(example, judgments, item | records_of(COLUMNS, heard)[0], missing)

    def _interval(self, votes: Mapping[int, int]) -> tuple[Floats, Floats]:
        """Return the interval of P where all judges were asked."""
        if len(votes) < len(self.columns):
            return np.array([np.nan]), np.array([np.nan])
        pattern = np.array([[votes[column] for column in range(len(self.columns))]], dtype=np.int8)
        low, high = self.model.intervals(pattern, prior=self.options.prior, streamed=True).T
        return low, high


def _votes(by_column: Mapping[int, Judgment]) -> dict[int, int]:
    return {column: judgment.vote for column, judgment in by_column.items()}


def _prices(plan: asking.Plan, columns: Sequence[asking.PlannedVoter], ask: asking.AskOptions) -> Prices:
    """Return the expected cost of each judge, from the examples alone, so that a resumed run asks in the same order."""
    examples = list(islice(plan.examples, N_PROBED_EXAMPLES))
    calls, dollars = np.zeros(len(columns)), np.zeros(len(columns))
    llm_columns = [column for column, voter in enumerate(columns) if voter.judge.needs_llm]
    for column in llm_columns:
        each = [_price(plan, columns[column], example, ask) for example in examples]
        calls[column], dollars[column] = np.mean(each, axis=0)
    in_usd = bool((dollars[llm_columns] > 0).all())
    return Prices(tuple((dollars if in_usd else calls).tolist()), tuple(llm_columns), "dollars" if in_usd else "calls")


def _price(
    plan: asking.Plan, voter: asking.PlannedVoter, example: Example, ask: asking.AskOptions
) -> tuple[float, float]:
    """Return calls and dollars of one judge about one example, a staged one at most; dollars NaN where not known."""
    program = plan.program(voter, example)
    first = next(program, [])
    program.close()
    estimate = asking.Estimate()
    for request in first:
        estimate.add(request, ask.price_book, settled=False, batch=ask.batch)
    judge = voter.judge
    # A prompt's repair turns are rare; a staged judge takes what it may.
    is_staged = not isinstance(judge, PromptJudge)
    bound = judge.most_calls(example) if is_staged and isinstance(judge, LLMJudge) else None
    most = len(first) if bound is None else max(bound, 1)
    return most, np.nan if estimate.dollars is None else estimate.dollars * most / max(len(first), 1)


def score_one_by_one(
    fitted: Model, args: argparse.Namespace, plan: asking.Plan, ask: asking.AskOptions | None, options: ScoreOptions
) -> int:
    """Score text by asking its judges one by one; print first what that would have done to the training data."""
    if ask is None:
        raise InputError("`sequential` must be given with a model of judges that are asked. Got none. Score without.")
    work = OneByOne.prepare(fitted, plan, ask, options, args.error_cost)
    with console.progress_bars() as bars:
        training = work.training(bars("training datasets", len(fitted.cells.groups)))
    if not args.json:
        sys.stderr.write("\n".join([*training_lines(training), ""]))
    if args.dry_run:
        console.print_result(
            console.SCHEMA | {"dry_run": True, "training": training}, ["nothing was sent"], as_json=args.json
        )
        return ExitStatus.DONE
    with console.live_progress() as progress:
        result = work.run(ask, progress)
    if isinstance(result, str):
        raise StoppedError(result)
    more = {"training": training, **console.prior_and_rule_of_texts(fitted, options)}
    console.print_scored(args, result, ITEM_COLUMNS | COLUMNS, more)
    return ExitStatus.DONE
