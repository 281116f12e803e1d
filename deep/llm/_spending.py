"""A hard limit on spending: work is let in only where even its worst case fits."""

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.files import read_toml
from deep.exceptions import InputError
from deep.judges import REPAIR
from deep.llm._errors import CallError
from deep.llm._messages import Body, Reply
from deep.llm._providers import is_loopback
from deep.records import ABSTAIN, FAILURE_REASONS, Judgment

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

    from deep.llm.schema import RequestRow


_KINDS = {"input", "cached", "output"}
# Prices are in dollars per million tokens.
_MILLION = 1_000_000


class PriceBook:
    """US dollars by model and usage, from the user's own file first and from genai-prices else.

    A server on this machine costs nothing, unless the file names its model. Elsewhere, a model that neither knows has
    an unknown price (None), never 0. genai-prices is asked with the endpoint's URL.

    Parameters
    ----------
    base_url : str
        The endpoint, which decides whose price it is.
    overrides : mapping of str to mapping, optional
        Model name to dollars per million tokens: ``input`` and ``output``, and ``cached`` (default: as `input`).
    urls : mapping of str to str, optional
        Model name to the endpoint that it is asked at, where that is another.

    Examples
    --------
    >>> from deep.llm import PriceBook
    >>> prices = PriceBook("http://localhost:8000/v1", {"mine": {"input": 1.0, "output": 4.0}})
    >>> prices.cost(["mine"], {"input": 1_000_000, "output": 500_000})
    3.0
    >>> prices.cost(["gpt-4o-mini"], {"input": 10, "output": 1})
    0.0
    >>> PriceBook("https://llm.example/v1").cost(["mine"], {"input": 10, "output": 1}) is None
    True
    """

    def __init__(
        self,
        base_url: str,
        overrides: Mapping[str, Mapping[str, float]] | None = None,
        urls: Mapping[str, str] | None = None,
    ) -> None:
        self._base_url, self._urls = base_url, urls or {}
        self._overrides = dict(overrides or {})
        self._rates = lru_cache(maxsize=256)(self._lookup)

    @classmethod
    def from_file(cls, base_url: str, path: str | Path | None, urls: Mapping[str, str] | None = None) -> "PriceBook":
        """Read overrides from a TOML file: a table a model, dollars per million tokens.

        Raises
        ------
        InputError
            The file is no such TOML; the message names the model.
        """
        if path is None:
            return cls(base_url, urls=urls)
        tables = read_toml(path, "prices")
        allowed = "a table with input, output and, if it differs, cached: dollars per million tokens"
        for model, rates in tables.items():
            if not isinstance(rates, dict) or not {"input", "output"} <= set(rates) <= _KINDS:
                raise InputError(
                    f"`prices` must hold, for each model, {allowed}. Got {rates!r} for {model!r} in {str(path)!r}."
                )
            for kind, value in rates.items():
                if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                    got = f"{value!r} for {model!r}.{kind} in {str(path)!r}"
                    raise InputError(f"`prices` must be numbers >= 0. Got {got}.")
        return cls(base_url, tables, urls)

    def cost(self, models: Iterable[str | None], tokens: Mapping[str, int], *, batch: bool = False) -> float | None:
        """Return the dollars for one call, by the first of `models` with a known price.

        Parameters
        ----------
        models : iterable of str or None
            The model that answered, where the endpoint named it, then the model that was asked.
        tokens : mapping of str to int
            Usage: ``input`` (all of it), ``cached`` (the part of it read from a cache), ``output``.
        batch : bool
            By the batch rate, where one is published; by the full rate else, which is then an upper bound.

        Returns
        -------
        float or None
            None where no price or no usage is known.
        """
        names = [*filter(None, models)]
        # The last name is that of the model which was asked: where it was asked decides whether the call is free.
        url = self._urls.get(names[-1], self._base_url) if names else ""
        if is_loopback(url) and self._overrides.keys().isdisjoint(names):
            return 0.0
        if "input" not in tokens or "output" not in tokens:
            return None
        for model in names:
            rate = self._overrides.get(model)
            if rate is None:
                dollars = self._published(model, tokens, batch)
            else:
                n_cached = min(tokens.get("cached", 0), tokens["input"])
                dollars = (tokens["input"] - n_cached) * rate["input"] + n_cached * rate.get("cached", rate["input"])
                dollars = (dollars + tokens["output"] * rate["output"]) / _MILLION
            if dollars is not None:
                return dollars
        return None

    def _published(self, model: str, tokens: Mapping[str, int], batch: bool) -> float | None:
        calculate = self._rates(model)
        if calculate is None:
            return None
        from genai_prices.types import Usage

        # genai-prices raises an error where more tokens are cached than there are.
        cached = min(tokens.get("cached", 0), tokens["input"])
        usage = Usage(input_tokens=tokens["input"], cache_read_tokens=cached, output_tokens=tokens["output"])
        context = {"processing": "batch"} if batch else None
        return float(calculate(usage, price_context=context).total_price)

    def _lookup(self, model: str) -> "partial[PriceCalculation] | None":
        from genai_prices import calc_price
        from genai_prices.types import Usage

        calculate = partial(calc_price, model_ref=model, provider_api_url=self._urls.get(model, self._base_url))
        try:
            # Tried with one token: only by an error does genai-prices say that it does not know a model.
            calculate(Usage(input_tokens=1, output_tokens=1))
        except LookupError:
            return None
        return calculate


# A request whose reply was cut off at its output limit is asked again with this many times the limit. A smaller one may
# be too short again, and each try is paid for. Chosen; no measurement is known.
LONGER_LIMIT_FACTOR = 4

ROUNDING_DOLLARS = 1e-12
"""Sums of floats, in dollars, that should be zero stay below it."""


class BudgetReachedError(Exception):
    """Nothing more can be asked within the budget."""


@dataclass(slots=True)
class _Account:
    """The requests to one LLM in flight, and what answers have cost beyond their worst case.

    An endpoint that bills hidden tokens adds them to the limit, or bills a fixed sum whatever the limit is: `excess`
    is the most that was added, `most` the largest bill of an answer that cost too much.
    """

    n: int = 0
    worst: float = 0.0
    excess: float = 0.0
    most: float = 0.0

    def bound(self, n: int, worst: float) -> float:
        """Return the most that `n` requests can cost, as far as answers have shown."""
        return max(worst + n * self.excess, n * self.most)


@dataclass(eq=False, repr=False)
class Budget:
    """Dollars that may be spent, those in flight included at their worst case.

    Where an answer costs more than its worst case, all requests to that LLM, those in flight too, count that much more.

    Parameters
    ----------
    limit : float, optional
        None for no limit.
    spent_before : float
        Dollars that earlier runs, and runs elsewhere, may have cost.
    on_overrun : callable, optional
        Called with an LLM, the dollars of its answer and its worst case when one first costs more than that.

    Examples
    --------
    >>> import asyncio
    >>> from deep.llm import Budget
    >>> async def two_calls():
    ...     budget = Budget(1.0)
    ...     await budget.admit(0.6)
    ...     budget.settle(0.6, 0.1)
    ...     await budget.admit(0.6)
    ...     return round(budget.left, 2)
    >>> asyncio.run(two_calls())
    0.3
    """

    limit: float | None = None
    spent_before: float = 0.0
    on_overrun: Callable[[str, float, float], object] | None = None
    _dollars: float = field(default=0.0, init=False)
    _accounts: dict[str, _Account] = field(default_factory=dict, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def __post_init__(self) -> None:
        if self.limit is not None and not 0 <= self.limit < float("inf"):
            raise InputError(f"`budget` must be 0 or more dollars. Got {self.limit!r}.")

    @property
    def left(self) -> float:
        """Dollars that new work may still reserve; below 0 where answers cost more than their worst case."""
        limit = float("inf") if self.limit is None else self.limit
        reserved = sum(account.bound(account.n, account.worst) for account in self._accounts.values())
        return limit - self.spent_before - self._dollars - reserved

    async def admit(self, worst: float | None, model: str = "") -> None:
        """Reserve `worst` dollars for a request to `model`, once enough requests in flight have turned out cheaper.

        Raises
        ------
        BudgetReachedError
            It does not fit, and nothing is in flight that could free any.
        InputError
            There is a budget and the worst case is not known.
        """
        while not self.fits(worst, model):
            if not any(account.n for account in self._accounts.values()):
                # Nothing in flight can turn out cheaper and free any money.
                raise BudgetReachedError
            self._changed.clear()
            await self._changed.wait()
        account = self._accounts.setdefault(model, _Account())
        account.n += 1
        account.worst += worst or 0.0

    def fits(self, worst: float | None, model: str = "") -> bool:
        """Return whether `worst` dollars for a request to `model` could be reserved now."""
        if self.limit is None:
            return True
        if worst is None:
            raise InputError(
                "`budget` needs a known price and an output limit for every LLM. "
                f"Got {model!r} without one of them at this endpoint. Name a file of prices "
                "(`prices`, --prices; docs/votes.md#money shows one), and an output limit (`max_tokens`, --max-tokens)."
            )
        return self.estimate(worst, model) <= self.left

    def estimate(self, worst: float, model: str = "") -> float:
        """Return the most that a request to `model` can cost, as far as its answers have shown."""
        return self._accounts.get(model, _Account()).bound(1, worst)

    def settle(self, worst: float | None, cost: float | None, model: str = "", beyond: float = 0.0) -> None:
        """Give back a reservation, of which `cost` dollars are spent, `beyond` of them for tokens over the limits."""
        account = self._accounts.setdefault(model, _Account())
        if account.n:
            account.n -= 1
            # Exactly 0 once nothing is in flight, so that rounding does not add up over a run.
            account.worst = account.worst - (worst or 0.0) if account.n else 0.0
            self._dollars += cost or 0.0
        else:  # an earlier run's, in a batch: `spent_before` has its worst case
            self._dollars += (cost or 0.0) - (worst or 0.0)
        self.learn(worst, cost, model, beyond)
        self._changed.set()

    def learn(self, worst: float | None, cost: float | None, model: str = "", beyond: float = 0.0) -> None:
        """Raise the estimate for `model` where an answer has cost more than that."""
        if worst is None or cost is None or cost <= self.estimate(worst, model) + ROUNDING_DOLLARS:
            return
        account = self._accounts.setdefault(model, _Account())
        # Once for each LLM: its later answers cost as much, and a line for each would fill the screen.
        if self.on_overrun is not None and not account.most:
            self.on_overrun(model, cost, worst)
        account.excess = max(account.excess, cost - worst, beyond)
        account.most = max(account.most, cost)


def worst_case(prices: PriceBook, body: Body, text: str, *, batch: bool = False) -> float | None:
    """Return the most dollars that one attempt can cost; None where no price or no output limit is known.

    A token is at least one byte of UTF-8, so the body's length bounds the input.

    Examples
    --------
    >>> from deep.llm import PriceBook, worst_case
    >>> prices = PriceBook("http://localhost/v1", {"m": {"input": 1.0, "output": 2.0}})
    >>> worst_case(prices, {"model": "m", "max_tokens": 500_000}, "x" * 1_000_000)
    2.0
    """
    # Without a limit of the output there is no worst case: `cost` then knows no price either.
    limit = output_limit(body)
    tokens = {"input": len(text.encode()), **({} if limit is None else {"output": limit})}
    return prices.cost([str(body["model"])], tokens, batch=batch)


def output_limit(body: Body) -> int | None:
    """Return the most tokens that the answer may have, where the request says so."""
    return next(iter(_limits(body).values()), None)


def with_longer_limit(body: Body) -> Body:
    """Return a request that lets the answer be four times as long; the same where it sets no limit.

    Examples
    --------
    >>> from deep.llm import with_longer_limit
    >>> with_longer_limit({"model": "m", "max_tokens": 500})
    {'model': 'm', 'max_tokens': 2000}
    """
    return {**body, **{name: LONGER_LIMIT_FACTOR * limit for name, limit in _limits(body).items()}}


def ends_early(body: Body, reply: Reply) -> bool:
    """Return whether a reply has fewer tokens than it may: one that was cut off then has met the end of the context."""
    # An empty reply was spent on hidden reasoning, of whose tokens servers count some or none.
    return bool(reply.text) and reply.tokens.get("output", math.inf) < (output_limit(body) or 0)


# A loop must fill at least so many characters at the end of a reply; no more than so many are looked at.
SHORTEST_LOOP, LONGEST_LOOP = 60, 6000


def may_end_later(body: Body, reply: Reply) -> bool:
    """Return whether a reply that was cut off may come whole with a longer limit.

    It may not where it was cut off before its limit, since the context was full; nor where it repeats itself at a
    temperature of 0, and would do so for ever.

    Examples
    --------
    >>> from deep.llm import Reply
    >>> from deep.llm._spending import may_end_later
    >>> body = {"model": "m", "max_tokens": 500, "temperature": 0}
    >>> [may_end_later(body, Reply("Step 1: the", tokens={"output": n})) for n in (500, 9)]
    [True, False]
    >>> may_end_later(body, Reply("", tokens={"output": 9}))
    True
    >>> may_end_later(body, Reply("It rained. " * 9, tokens={"output": 500}))
    False
    """
    if ends_early(body, reply):
        return False
    text = reply.text[-LONGEST_LOOP:]
    tails = ((period, text[-max(3 * period, SHORTEST_LOOP) :]) for period in range(1, len(text) // 3 + 1))
    loops = len(text) >= SHORTEST_LOOP and any(tail[period:] == tail[:-period] for period, tail in tails)
    return not (loops and body.get("temperature") == 0)


def _limits(body: Body) -> dict[str, int]:
    limits = {name: body.get(name) for name in ("max_completion_tokens", "max_tokens")}
    return {name: n for name, n in limits.items() if isinstance(n, int) and not isinstance(n, bool)}


# The class of failure of a request that does not fit into the context of its LLM.
TOO_LONG = "too_long"


class Tally:
    """Counts by voter, and the cost of the run.

    Parameters
    ----------
    total : int, optional
        Requests in all, where that is known.

    Attributes
    ----------
    by_voter : dict of str to Counter
        Per voter: ``done`` (settled now or before), ``votes``, ``answers`` that are no votes, each reason without
        a vote, and ``failed``; ``repairs`` are repair turns, and ``repaired`` those of them that turned an unparsable
        reply into a vote or an abstention.
    by_dataset : dict of (str, str) to Counter
        By voter and dataset the judgments that were written, by reason or ``votes``.
    answers : dict of str to Counter
        By voter how many of them are each answer: the grade to three digits, or the vote of a voter without grades, or
        empty where there is none.
    answered, failed, attempts : int
        Of this run: requests answered and given up; attempts in all.
    in_doubt : int
        Attempts of this run that ended without an answer which the endpoint may have given, and may bill.
    found : int
        Requests that were settled before, or were asked already about another item.
    cost : float
        Dollars of the answers of this run with a known price.
    unpriced : int
        Answers of this run without one.
    other_models : Counter of (str, str)
        Answers of this run by a model of another name: the one asked and the one that answered.
    too_long : int
        Requests, of this run or found, that did not fit into the context of their LLM.
    longer, saved : int
        Replies of this run that were cut off at their length limit and asked for again with a longer one, and those of
        them that then came whole and gave a vote, or an answer that is none by itself.
    full : int
        Replies of this run that were cut off before their length limit, where the context was full.
    failures : dict of str to Counter
        The messages of requests that were given up, of this run or found, by class of failure.
    lines_passed_over, contradictions : int
        Lines of batch files that are no result of a request, and requests with two results that contradict each other.
    """

    def __init__(self, total: int | None = None) -> None:
        self.total = total
        self.by_voter: dict[str, Counter[str]] = {}
        self.by_dataset: dict[tuple[str, str], Counter[str]] = {}
        self.answers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.answered = self.failed = self.attempts = self.in_doubt = self.found = self.unpriced = 0
        self.cost = 0.0
        self.other_models: Counter[tuple[str, str]] = Counter()
        self.too_long = self.lines_passed_over = self.contradictions = 0
        self.longer = self.saved = self.full = 0
        self.failures: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since the tally began."""
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Settled requests a second in this run."""
        return (self.answered + self.failed) / max(self.seconds, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """Seconds to go at this rate; None where that cannot be said."""
        n_settled = self.answered + self.failed
        if self.total is None or not n_settled:
            return None
        return max(self.total - self.found - n_settled, 0) / self.rate

    def find(self, voter: str, row: "RequestRow") -> None:
        """Count a request that the ledger has settled already."""
        self.found += 1
        self.too_long += row.get("failure") == TOO_LONG
        if row["state"] != "done":
            self.failures[row.get("failure") or "unknown"][row.get("message") or ""] += 1
            self._count(voter, "failed")
        else:
            self._count(voter, "answers" if row["vote"] is None else row["reason"])

    def answer(
        self, voter: str, judgment: Judgment | None, cost: float | None, *, again: bool = False, longer: bool = False
    ) -> None:
        """Count an answer; its judgment is None where it has no vote of its own.

        With `again` it was cut off, and is asked for with a `longer` limit: what it has cost is all that counts.
        """
        self.cost += cost or 0.0
        # An answer without a known price may still cost: it is never counted as 0 in silence.
        self.unpriced += cost is None
        if again:
            return
        self.answered += 1
        self._count(voter, "answers" if judgment is None else judgment.reason)
        self.longer += longer
        self.saved += longer and (judgment is None or judgment.vote != ABSTAIN)

    def name(self, model: str, answered: str | None) -> None:
        """Count an answer by the name of the model that gave it, where that is not the one asked."""
        if answered is not None and answered != model:
            self.other_models[model, answered] += 1

    def judge(self, voter: str, judgment: Judgment) -> None:
        """Count a judgment that was made of several answers, each counted already."""
        self._count(voter, judgment.reason)

    def fail(self, voter: str, error: CallError | None = None) -> None:
        """Count a request that was given up for an error, or a call of a function, which says itself why."""
        self.failed += 1
        if error is not None:
            self.too_long += error.kind == TOO_LONG
            self.failures[error.kind][error.message] += 1
        self._count(voter, "failed")

    def _count(self, voter: str, reason: str | None) -> None:
        is_repair = voter.endswith(f"#{REPAIR}")
        counts = self.by_voter.setdefault(voter.removesuffix(f"#{REPAIR}"), Counter())
        counts["repairs" if is_repair else "done"] += 1
        if not is_repair:
            counts[reason or "votes"] += 1
        elif reason in (None, "abstained"):
            # The reply that it repairs was counted as unparsable.
            counts["repaired"] += 1
            counts["unparsable"] -= 1
            counts[reason or "votes"] += 1

    def failure_rate(self, voter: str) -> float:
        """Return the share of a voter's requests without a usable answer; an abstention is usable."""
        counts = self.by_voter[voter]
        return sum(counts[kind] for kind in FAILURE_REASONS) / max(counts["done"], 1)
