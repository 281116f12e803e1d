"""The estimate of `--dry-run`: the calls, tokens and dollars that a plan takes beyond the ledger."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path

from deep.asking._options import AskOptions, money
from deep.asking._plan import Plan
from deep.asking._replay import Replay, offers_repair, repair_request
from deep.asking._run import LONGEST_REPLY, may_repair, repair_requests
from deep.asking._vote_files import chunks
from deep.judges import LLMJudge, VoteQuestion
from deep.llm import History, PriceBook, Request, json_text, output_limit, with_longer_limit, worst_case

CHARACTERS_A_TOKEN = 4


class Estimate:
    """The calls, tokens and dollars of requests that are still to be sent.

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
        Judgments that need no LLM and cost nothing.
    calls_at_most : int or None
        The most calls of the staged judges in all, those settled already included, where they can say.
    repairs_at_most, longer_at_most : int
        Repair turns, where every reply needs one, and requests with four times the output limit, where every reply is
        cut off; only `output_tokens` and `dollars_at_most` count them too.
    unpriced_calls : int
        Calls of functions that do not say what they cost.
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
        self.repairs_at_most = self.longer_at_most = self.unpriced_calls = 0
        self.calls_at_most: int | None = None

    def add(self, request: Request, prices: PriceBook, *, settled: bool, batch: bool) -> None:
        """Count one request."""
        if settled:
            self.settled += 1
            return
        text = json_text(request.body)
        limit = output_limit(request.body)
        self._add_longer(request, prices, batch=batch)
        n_input = len(text) // CHARACTERS_A_TOKEN + 1
        self.calls += 1
        self.input_tokens += n_input
        self.output_tokens = None if self.output_tokens is None or limit is None else self.output_tokens + limit
        likely = None if limit is None else {"input": n_input, "output": limit // 10 + 1}
        dollars = None if likely is None else prices.cost([request.model], likely, batch=batch)
        self.dollars = _plus(self.dollars, dollars)
        self.dollars_at_most = _plus(self.dollars_at_most, worst_case(prices, request.body, text, batch=batch))
        if request.model not in self.priced_models | self.unpriced_models:
            unknown = prices.cost([request.model], {"input": 1, "output": 1}) is None
            (self.unpriced_models if unknown else self.priced_models).add(request.model)

    def add_functions(self, plan: Plan) -> None:
        """Count the calls of functions."""
        total = self.calls + self.settled + plan.n_examples * len(plan.functions)
        for cost in plan.calls.left(plan.functions, plan.examples):
            self.calls += 1
            self.unpriced_calls += cost is None
            self.dollars = _plus(self.dollars, cost or 0.0)
            self.dollars_at_most = _plus(self.dollars_at_most, cost or 0.0)
        self.settled = total - self.calls

    def add_repair(self, request: Request, prices: PriceBook) -> None:
        """Count a repair turn that may be needed."""
        limit = output_limit(request.body)
        self.repairs_at_most += 1
        self.output_tokens = None if self.output_tokens is None or limit is None else self.output_tokens + limit
        worst = worst_case(prices, request.body, json_text(request.body))
        self.dollars_at_most = _plus(self.dollars_at_most, worst)
        self._add_longer(request, prices, batch=False)

    def _add_longer(self, request: Request, prices: PriceBook, *, batch: bool) -> None:
        """Count the second request that is needed where the reply is cut off at its limit."""
        body = with_longer_limit(request.body)
        limit = output_limit(body)
        if limit is not None:
            self.longer_at_most += 1
            self.output_tokens = None if self.output_tokens is None else self.output_tokens + limit
            self.dollars_at_most = _plus(self.dollars_at_most, worst_case(prices, body, json_text(body), batch=batch))

    def as_dict(self) -> dict[str, object]:
        """Return the estimate for `--json`."""
        models = {"priced_models": sorted(self.priced_models), "unpriced_models": sorted(self.unpriced_models)}
        return {**vars(self), **models}


def _plus(total: float | None, amount: float | None) -> float | None:
    """Return the sum, unknown where either is."""
    return None if total is None or amount is None else total + amount


def estimate_plan(plan: Plan, options: AskOptions) -> Estimate:
    """Count the requests of a plan that are still to be sent and bound their cost, without sending anything."""
    options = plan.with_providers(options)
    exists = "://" in options.ledger or Path(options.ledger).is_file()
    with ExitStack() as stack:
        history = stack.enter_context(History(options.ledger)) if exists else None
        estimate = _estimate(plan, options, history)
    estimate.calls_at_most = _most_calls(plan) if plan.staged else None
    return estimate


def _estimate(plan: Plan, options: AskOptions, history: History | None) -> Estimate:
    estimate, shared = Estimate(plan.n_offline), set[str]()
    replay = Replay(plan.programs, plan.endpoint, history)
    for chunk in chunks(chain(plan.requests(), replay.requests())):
        keys = [request.key for request in chunk]
        rows = {} if history is None else history.rows(keys)
        for key, request in zip(keys, chunk, strict=True):
            if not isinstance(request.context, VoteQuestion):
                if key in shared:
                    continue
                shared.add(key)
            settled = key in rows and rows[key]["state"] in ("done", "failed")
            estimate.add(request, options.price_book, settled=settled, batch=options.batch)
            if options.repairs and not settled and offers_repair(request):
                estimate.add_repair(repair_request(request, LONGEST_REPLY), options.price_book)
    if history is not None:
        _add_missing_repairs(estimate, plan, options, history)
    estimate.more_follow = replay.n_open > 0
    return estimate


def _add_missing_repairs(estimate: Estimate, plan: Plan, options: AskOptions, history: History) -> None:
    """Count the repair turns of replies in the ledger that are to be asked, or asked again."""
    for chunk in chunks(repair_requests(plan.requests(), history, may_repair(options, history))):
        rows = history.rows([request.key for request in chunk])
        for request in chunk:
            if request.key not in rows or rows[request.key]["state"] not in ("done", "failed"):
                estimate.add_repair(request, options.price_book)


def _most_calls(plan: Plan) -> int | None:
    """Return the most calls that the staged judges can make; None where one of them cannot say."""
    total = 0
    judges = [column.judge for column in plan.staged]
    for example in plan.examples:
        bounds = [judge.most_calls(example) if isinstance(judge, LLMJudge) else None for judge in judges]
        known = [bound for bound in bounds if bound is not None]
        if len(known) < len(bounds):
            return None
        total += sum(known)
    return total


def print_estimate(plan: Plan, options: AskOptions | None, *, as_json: bool) -> None:
    """Print how many calls, tokens and dollars a plan takes beyond the ledger; nothing is sent."""
    estimate = Estimate(plan.n_offline) if options is None else estimate_plan(plan, options)
    estimate.add_functions(plan)
    if as_json:
        sys.stdout.write(json.dumps({"schema_version": 1, "dry_run": True, **estimate.as_dict()}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join([*_lines(estimate), "nothing was sent", ""]))


def _lines(estimate: Estimate) -> Iterator[str]:
    output = "no limit" if estimate.output_tokens is None else f"at most {estimate.output_tokens:,}"
    yield f"{estimate.calls:,} calls to make, {estimate.settled:,} settled already"
    if estimate.repairs_at_most:
        yield f"at most {estimate.repairs_at_most:,} repair turns more, where a reply cannot be read"
    if estimate.longer_at_most:
        yield f"at most {estimate.longer_at_most:,} calls more with four times the limit, where replies are cut off"
    yield f"{estimate.input_tokens:,} input tokens (about), {output} output tokens"
    yield f"cost: about {money(estimate.dollars)}, at most {money(estimate.dollars_at_most)}"
    if estimate.offline_judgments:
        yield f"{estimate.offline_judgments:,} judgments that need no LLM, $0.00"
    if estimate.more_follow:
        most = "" if estimate.calls_at_most is None else f"; at most {estimate.calls_at_most:,} calls of theirs in all"
        yield f"the staged judges then ask what depends on these answers, which cannot be counted before{most}"
    if estimate.unpriced_calls:
        yield f"{estimate.unpriced_calls:,} calls of functions have no known cost; give it with @deep.judge(cost=...)"
    for model in sorted(estimate.unpriced_models):
        yield f"no price is known for {model}; give one with --prices"
