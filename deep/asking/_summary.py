"""The estimate of `--dry-run`, of what a plan takes beyond the ledger, and the summary at the end of `deep ask`."""

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from deep import llm
from deep._util.names import format_table, short_names
from deep.asking._options import AskOptions, quirk_lines, usd_text
from deep.asking._plan import Plan
from deep.asking._replay import Replay, chunks, may_repair, offers_repair, repair_request, repair_requests
from deep.asking._run import FROM_LEDGER, RunOutcome, doubt_lines, history_of
from deep.asking._write import output_paths
from deep.datasets import Failures
from deep.exceptions import InputError
from deep.judges import REPAIR, LLMJudge, VoteQuestion
from deep.prompt_pool import PromptJudge
from deep.records import UNASKED_REASONS

# About four characters of English are a token of most LLMs; an estimate needs no more.
CHARACTERS_A_TOKEN = 4

# The quotation that takes most: characters of four bytes, more of them than are quoted.
LONGEST_REPLY = "\U0001f600" * 10_000


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
        The models of the requests whose price is known, and those whose price is not.
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

    def __init__(self, plan: Plan | None = None) -> None:
        self.offline_judgments = 0 if plan is None else plan.n_complete * len(plan.offline)
        self.calls = self.settled = self.input_tokens = 0
        self.output_tokens: int | None = 0
        self.dollars: float | None = 0.0
        self.dollars_at_most: float | None = 0.0
        self.unpriced_models: set[str] = set()
        self.priced_models: set[str] = set()
        self.more_follow = False
        self.repairs_at_most = self.longer_at_most = self.unpriced_calls = 0
        self.calls_at_most: int | None = None

    def add(self, request: llm.Request, prices: llm.PriceBook, *, settled: bool, batch: bool) -> None:
        """Count one request."""
        if settled:
            self.settled += 1
            return
        text = llm.json_text(request.body)
        limit = llm.output_limit(request.body)
        self._add_longer(request, prices, batch=batch)
        n_input = len(text) // CHARACTERS_A_TOKEN + 1
        self.calls += 1
        self.input_tokens += n_input
        self.output_tokens = None if self.output_tokens is None or limit is None else self.output_tokens + limit
        # Answers seldom come near their limit: a tenth of it is the guess, the whole the bound.
        likely = {"input": n_input, **({} if limit is None else {"output": limit // 10 + 1})}
        self.dollars = _known_sum(self.dollars, prices.cost([request.model], likely, batch=batch))
        self.dollars_at_most = _known_sum(self.dollars_at_most, llm.worst_case(prices, request.body, text, batch=batch))
        if request.model not in self.priced_models | self.unpriced_models:
            unknown = prices.cost([request.model], {"input": 1, "output": 1}) is None
            (self.unpriced_models if unknown else self.priced_models).add(request.model)

    def add_calls(self, cost: float | None, requests: Iterable[llm.Request], history: llm.History | None) -> None:
        """Count the calls of a function, of which each costs so much; of the same texts it is called once."""
        seen_keys = set[str]()
        for chunk in chunks(requests):
            keys = [request.key for request in chunk]
            rows = {} if history is None else history.rows(keys)
            for key in keys:
                if key in seen_keys or (key in rows and rows[key]["state"] == "done"):
                    self.settled += 1
                    continue
                seen_keys.add(key)
                self.calls += 1
                self.unpriced_calls += cost is None
                self.dollars = _known_sum(self.dollars, cost or 0.0)
                self.dollars_at_most = _known_sum(self.dollars_at_most, cost or 0.0)

    def add_repair(self, request: llm.Request, prices: llm.PriceBook) -> None:
        """Count a repair turn that may be needed."""
        limit = llm.output_limit(request.body)
        self.repairs_at_most += 1
        self.output_tokens = None if self.output_tokens is None or limit is None else self.output_tokens + limit
        worst = llm.worst_case(prices, request.body, llm.json_text(request.body))
        self.dollars_at_most = _known_sum(self.dollars_at_most, worst)
        # A repair turn never goes in a batch.
        self._add_longer(request, prices, batch=False)

    def _add_longer(self, request: llm.Request, prices: llm.PriceBook, *, batch: bool) -> None:
        """Count the second request that is needed where the reply is cut off at its limit."""
        body = llm.with_longer_limit(request.body)
        limit = llm.output_limit(body)
        if limit is not None:
            self.longer_at_most += 1
            self.output_tokens = None if self.output_tokens is None else self.output_tokens + limit
            worst = llm.worst_case(prices, body, llm.json_text(body), batch=batch)
            self.dollars_at_most = _known_sum(self.dollars_at_most, worst)

    def as_dict(self) -> dict[str, object]:
        """Return the estimate for `--json`."""
        models = {"priced_models": sorted(self.priced_models), "unpriced_models": sorted(self.unpriced_models)}
        return {**vars(self), **models}


def _known_sum(total: float | None, amount: float | None) -> float | None:
    """Return the sum, unknown where either is."""
    return None if total is None or amount is None else total + amount


def estimate_plan(plan: Plan, options: AskOptions) -> Estimate:
    """Count the requests of a plan that are still to be sent and bound their cost, without sending anything."""
    # The prices of providers count too, though nothing is sent to them.
    options = plan.with_providers(options)
    estimate, shared, prices = Estimate(plan), set[str](), options.price_book
    with history_of(options.ledger, plan) or nullcontext() as history:
        replay = Replay(plan.programs, plan.endpoint, history)
        for chunk in chunks(chain(plan.requests(), replay.requests())):
            keys = [request.key for request in chunk]
            rows = {} if history is None else history.rows(keys)
            for key, request in zip(keys, chunk, strict=True):
                if not isinstance(request.context, VoteQuestion):
                    # Steps of programs that ask the same share one answer; each vote has a key of its own.
                    if key in shared:
                        continue
                    shared.add(key)
                is_settled = key in rows and rows[key]["state"] in ("done", "failed")
                estimate.add(request, prices, settled=is_settled, batch=options.batch)
                if options.repairs and not is_settled and offers_repair(request):
                    estimate.add_repair(repair_request(request, LONGEST_REPLY), prices)
        for request in () if history is None else _missing_repairs(plan, options, history):
            estimate.add_repair(request, prices)
        for caller in plan.functions.values():
            estimate.add_calls(caller.judge.cost, plan.calls(caller), history)
    # Only after all: `n_open` counts as the requests are read.
    estimate.more_follow = replay.n_open > 0
    estimate.calls_at_most = _most_calls(plan) if plan.staged else None
    return estimate


def _missing_repairs(plan: Plan, options: AskOptions, history: llm.History) -> Iterator[llm.Request]:
    """Yield the repair turns of replies in the ledger that are to be asked, or asked again."""
    for chunk in chunks(repair_requests(plan.requests(), history, may_repair(options, history))):
        rows = history.rows([request.key for request in chunk])
        yield from (r for r in chunk if r.key not in rows or rows[r.key]["state"] not in ("done", "failed"))


def _most_calls(plan: Plan) -> int | None:
    """Return the most calls that the staged judges can make; None where one of them cannot say."""
    judges, total = [column.judge for column in plan.staged], 0
    for example in plan.complete:
        for judge in judges:
            # One judge that cannot say leaves the whole without a bound.
            most = judge.most_calls(example) if isinstance(judge, LLMJudge) else None
            if most is None:
                return None
            total += most
    return total


def print_estimate(plan: Plan, options: AskOptions | None, *, as_json: bool) -> None:
    """Print how many calls, tokens and dollars a plan takes beyond the ledger; nothing is sent."""
    estimate = Estimate(plan) if options is None else estimate_plan(plan, options)
    if as_json:
        sys.stdout.write(json.dumps({"schema_version": 1, "dry_run": True, **estimate.as_dict()}, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join([*_estimate_lines(estimate), "nothing was sent", ""]))


def _estimate_lines(estimate: Estimate) -> Iterator[str]:
    """Yield the estimate as lines for people."""
    output = "no limit" if estimate.output_tokens is None else f"at most {estimate.output_tokens:,}"
    yield f"{estimate.calls:,} calls to make, {estimate.settled:,} answered already"
    if estimate.repairs_at_most:
        yield f"at most {estimate.repairs_at_most:,} more repair turns, for replies that cannot be read"
    if estimate.longer_at_most:
        yield f"at most {estimate.longer_at_most:,} more calls with four times the limit, for replies that are cut off"
    yield f"{estimate.input_tokens:,} input tokens (about), {output} output tokens"
    bounds = f"about {usd_text(estimate.dollars)}, at most {usd_text(estimate.dollars_at_most)}"
    yield f"cost: {'unknown' if estimate.dollars is None else bounds}"
    if estimate.offline_judgments:
        yield f"{estimate.offline_judgments:,} judgments that need no LLM, $0.00"
    if estimate.more_follow:
        most = "" if estimate.calls_at_most is None else f"; at most {estimate.calls_at_most:,} calls in all"
        yield f"staged judges then ask more, depending on these answers{most}"
    if estimate.unpriced_calls:
        yield f"{estimate.unpriced_calls:,} calls of functions have no known cost; give it with @deep.judge(cost=...)"
    for model in sorted(estimate.unpriced_models):
        yield f"no price for {model}; give one with --prices"


REASONS = ("abstained", "unparsable", "truncated", "refused", "failed")


def ledger_report(ledger: str, *, max_failure_rate: float = 0.05) -> dict[str, Any]:
    """Return the contents of a ledger as JSON values.

    Parameters
    ----------
    ledger : str
        A file, or a postgresql+psycopg:// URL.
    max_failure_rate : float, default=0.05
        Voters without a usable answer to a larger share of their requests are called failing.

    Raises
    ------
    InputError
        `max_failure_rate` is not in [0, 1], or there is no such ledger.
    """
    if not 0 <= max_failure_rate <= 1:
        raise InputError(f"`max_failure_rate` must lie in [0, 1]. Got {max_failure_rate!r}.")
    with llm.History(ledger) as history:
        rows, quirks, n_lost, (dollars, unpriced) = history.report(), history.quirks(), history.lost(), history.cost()
        others = history.other_models()
    high_rates = {voter: rate for voter, rate in _failure_rates(rows).items() if rate > max_failure_rate}
    return {
        "schema_version": 1,
        "rows": [row.as_dict() for row in rows],
        "quirks": [asdict(quirk) for quirk in quirks],
        "cost": dollars,
        "unpriced": unpriced,
        "lost_attempts": n_lost,
        "answered_by_another": other_models(others),
        "failing": high_rates,
    }


def _failure_rates(rows: Sequence[llm.ReportRow]) -> dict[str, float]:
    """Return each voter's share of settled requests without a usable answer, over all datasets.

    A repair turn with an answer makes up for the reply before it.
    """
    n_settled: Counter[str] = Counter()
    n_lost: Counter[str] = Counter()
    for row in rows:
        if row.voter.endswith(f"#{REPAIR}"):
            # Its first reply is among those without an answer.
            n_lost[row.voter.removesuffix(f"#{REPAIR}")] -= row.votes + row.reasons.get("abstained", 0)
            continue
        n_settled[row.voter] += row.settled
        n_lost[row.voter] += row.without_answer
    return {voter: n_lost[voter] / n for voter, n in sorted(n_settled.items()) if n}


def failing_voters(tally: llm.Tally, limit: float) -> dict[str, float]:
    """Return the voters that fail on a larger share of a dataset than `limit`, as ``deep fit`` counts it."""
    # A judge that fails on one dataset only is left out by `deep fit` as well, so rates are by dataset.
    failures = [Failures(voter, name, counts.total(), counts) for (voter, name), counts in tally.by_dataset.items()]
    return {one.voter: one.rate for one in sorted(failures, key=lambda one: one.rate) if one.rate > limit}


def failing_lines(rates: Mapping[str, float], classes: Iterable[str | None]) -> Iterator[str]:
    """Yield a sentence about each voter that fails too often, by its rate, and one that says what to do.

    The `classes` of failure are those that occurred.
    """
    for voter, rate in rates.items():
        share = f"{100 * rate:.1f} % of its requests"
        yield f"{voter} has no usable answer to {share}, above the limit of `deep fit`."
    if rates:
        yield (
            f"`deep ask --retry-failed {' '.join(sorted(set(filter(None, classes))))}` asks again. `deep fit` "
            "leaves such a voter out unless you raise --max-failure-rate."
        )


def other_models(counts: Mapping[tuple[str, str], int]) -> list[dict[str, Any]]:
    """Return JSON values: answers by a model of another name than the one asked."""
    return [{"asked": model, "answered": name, "answers": n} for (model, name), n in sorted(counts.items())]


def other_model_lines(counts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each name by which an LLM answered that is not its own."""
    for row in counts:
        yield f"{row['asked']!r} was asked and {row['answered']!r} answered: {row['answers']} answers"


def ledger_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield a report for people."""
    counts = ("waiting", "unknown", "attempts")
    head = ("voter", "dataset", "asked", "votes", *REASONS, *counts, "cost", "median s", "p95 s")
    yield format_table([head, *(_report_cells(row) for row in report["rows"])])
    for row in report["rows"]:
        if row["failures"]:
            failures = ", ".join(f"{name} {n}" for name, n in sorted(row["failures"].items()))
            yield f"failed, by class, {row['voter']} on {row['dataset']}: {failures}"
    yield from quirk_lines(report["quirks"])
    yield from other_model_lines(report["answered_by_another"])
    yield f"cost: {usd_text(report['cost'], report['unpriced'])}"
    if report["lost_attempts"]:
        why = "a crash, a timeout, a broken connection or reply"
        yield f"{report['lost_attempts']} attempts have no answer here ({why}) and may be on the bill"
    failing = [row for row in report["rows"] if row["voter"] in report["failing"]]
    yield from failing_lines(report["failing"], chain.from_iterable(_classes(row, row["failures"]) for row in failing))


def _classes(counts: Mapping[str, Any], failures: Iterable[str]) -> list[str]:
    """Return the classes of failure among the counts of a voter, those of what `failed` being `failures`."""
    reasons = counts.get("reasons", counts)
    # Without `abstained`, which is an answer, and `failed`, whose classes stand beside it.
    return [*(r for r in REASONS[1:-1] if reasons.get(r)), *(failures if reasons.get("failed") else ())]


def _report_cells(row: Mapping[str, Any]) -> list[str]:
    reasons = [str(row["reasons"].get(reason, 0)) for reason in REASONS]
    seconds = ["" if row[name] is None else f"{row[name]:.2f}" for name in ("seconds_median", "seconds_p95")]
    counts = [str(row[name]) for name in ("waiting", "unknown", "attempts")]
    # The number of answers without a price has no room in a column; the sum below the table has it.
    cost = usd_text(row["cost"], row["unpriced"]).partition(" ")[0]
    votes = f"{row['answers']} answers" if row["answers"] else str(row["votes"])
    return [row["voter"], row["dataset"], str(row["asked"]), votes, *reasons, *counts, cost, *seconds]


# The counts of a run that its summary has by the same name.
SUMMARY_COUNTS = (
    *("found", "answered", "failed", "attempts", "in_doubt", "unpriced", "seconds", "too_long", "saved"),
    *("lines_passed_over", "contradictions"),
)


def summary(
    outcome: RunOutcome, options: AskOptions | None, out: Path, failing: Mapping[str, float], plan: Plan
) -> dict[str, Any]:
    """Return the summary that `--json` prints."""
    from deep.evaluate import constant_words

    tally = outcome.tally
    voters = [
        {
            "voter": voter,
            **{
                kind: counts[kind]
                for kind in ("done", "votes", "answers", *REASONS, *UNASKED_REASONS, "repairs", "repaired")
            },
            "failure_rate": failing.get(voter, tally.failure_rate(voter)),
            "failing": voter in failing,
        }
        for voter, counts in sorted(tally.by_voter.items())
    ]
    by_name = {name: tally.answers[voter] for voter, name in short_names(tally.answers).items()}
    answers = {name: (*own.most_common(1)[0], own.total() - own[""], own.total()) for name, own in by_name.items()}
    paths = {kind: str(path) for kind, path in output_paths(out).items() if path.exists()}
    return {
        "schema_version": 1,
        "examples": plan.n_examples,
        "judgments": plan.n_examples * len(plan.voters),
        "requests": tally.total,
        **{name: getattr(tally, name) for name in SUMMARY_COUNTS},
        "failures": {
            kind: {"requests": messages.total(), "message": messages.most_common(1)[0][0]}
            for kind, messages in sorted(tally.failures.items())
        },
        "unknown": outcome.unknown,
        "in_doubt_twice": outcome.in_doubt_twice,
        "asked_again": 0 if options is None or options.at_most_once else outcome.unknown,
        # Where no answer has a known price, a sum of 0 would read as free.
        "cost": None if tally.unpriced and not tally.cost else tally.cost,
        "stopped": None if outcome.stopped == FROM_LEDGER else outcome.stopped,
        "budget": None if options is None else options.budget,
        "answered_by_another": other_models(tally.other_models),
        "quirks": [asdict(quirk) for quirk in outcome.quirks],
        "asked_longer": tally.longer,
        "context_full": tally.full,
        "voters": voters,
        "constant_judges": constant_words(answers),
        "forms": _voters_by_form(plan, {quirk.model for quirk in outcome.quirks if quirk.parameter in llm.CONSTRAINTS}),
        "ledger": None if options is None else llm.describe_ledger(options.ledger),
        "outputs": paths,
    }


# The ways in which replies are bound to an answer, in words.
FORM_WORDS = {"schema": "bound by a JSON schema", "vllm": "bound to a choice of lines", "none": "free"}


def _voters_by_form(plan: Plan, unbound: Collection[str]) -> dict[str, list[str]]:
    """Return the prompts' voters by how their replies are bound to an answer; those of `unbound` models are free."""
    forms: dict[str, list[str]] = {}
    for column, judge in ((column, column.judge) for column in plan.columns if isinstance(column.judge, PromptJudge)):
        has_schema = judge.prompt.coded or "response_format" in judge.parameters
        form = "schema" if has_schema else judge.constrain if judge.prompt.is_direct else "none"
        # A quirk knows an LLM by its name at the provider, a column by the user's name for it.
        form = "none" if {column.llm, column.llm.partition("/")[2]} & {*unbound} else form
        forms.setdefault(FORM_WORDS[form], []).append(column.name)
    return forms


# The sentences of a summary that stand there where their count is not 0, by the name of that.
TROUBLE_SENTENCES = {
    "in_doubt": "{in_doubt} attempts timed out or lost their connection. They may still cost money.",
    "asked_longer": "{asked_longer} replies were cut off at their length limit. A limit four times as long saved "
    "{saved} of them.",
    "context_full": "{context_full} replies were cut off because the context was full. Use a server with a larger "
    "context, or --chunk.",
    "too_long": "{too_long} requests exceed the context of their LLM. --chunk SIZE:OVERLAP cuts long sources into "
    "windows.",
    "lines_passed_over": "{lines_passed_over} lines of batches matched no request and were skipped",
    "contradictions": "{contradictions} requests have two contradictory results in a batch, so they have no vote. "
    "--retry-failed broken asks them again.",
}


def summary_text(values: dict[str, Any]) -> str:
    """Return the summary for people."""
    lines = [_voter_line(voter) for voter in values["voters"]]
    if values["ledger"] is None and not values["answered"] + values["failed"] + values["found"]:
        lines.append(f"{values['examples']} examples judged in {values['seconds']:.1f} s; no LLM was asked")
    else:
        lines.append(
            f"{values['answered']} answers ({values['found']} more from earlier runs), {values['failed']} failures; "
            f"{values['attempts']} attempts in {values['seconds']:.1f} s"
        )
    for kind, row in values["failures"].items():
        message = f", most with: {row['message']}" if row["message"] else ""
        lines.append(f"{row['requests']} failed as {kind}{message}")
    lines.append(f"cost of this run: {usd_text(values['cost'], values['unpriced'])}")
    lines += [*other_model_lines(values["answered_by_another"]), *quirk_lines(values["quirks"])]
    lines += [words.format(**values) for count, words in TROUBLE_SENTENCES.items() if values[count]]
    lines += doubt_lines(values["unknown"], values["in_doubt_twice"], asked_again=bool(values["asked_again"]))
    failing_rows = [voter for voter in values["voters"] if voter["failing"]]
    classes = chain.from_iterable(_classes(voter, values["failures"]) for voter in failing_rows)
    lines += failing_lines({voter["voter"]: voter["failure_rate"] for voter in failing_rows}, classes)
    lines += [*values["constant_judges"], *_unasked_lines(values)]
    lines += [f"replies {form}: {', '.join(voters)}" for form, voters in values["forms"].items()]
    lines += [f"{kind}: {path}" for kind, path in sorted(values["outputs"].items())]
    lines += [f"ledger: {values['ledger']}"] if values["ledger"] else []
    return "\n".join([*lines, ""])


def _unasked_lines(values: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence about what was not asked, and how to get it."""
    total, n_left = values["judgments"], sum(voter["not_asked"] for voter in values["voters"])
    # The summary names where they are, since a stopped run writes beside votes that are whole.
    progress, where = f"{total - n_left:,} of {total:,} judgments are made", values["outputs"]["votes"]
    if values["stopped"] == "budget":
        cause = f"Stopped by its budget of {usd_text(values['budget'])}"
        yield f"{cause}: {progress}. They are in {where}. Run the same command with a larger --budget to continue."
    elif values["stopped"]:
        yield f"Stopped by Ctrl-C or a signal: {progress}. They are in {where}. Run the same command again to continue."
    elif n_left:
        yield f"{progress}; the others were never asked. Use --ledger instead of --from-ledger to ask them."


def _voter_line(voter: dict[str, Any]) -> str:
    reasons = ", ".join(f"{voter[reason]} {reason}" for reason in (*REASONS, *UNASKED_REASONS) if voter[reason])
    votes = f"{voter['answers']} answers" if voter["answers"] else f"{voter['votes']} votes"
    repaired = f"{voter['repaired']} of {voter['repairs']} repair turns gave an answer" if voter["repairs"] else ""
    return f"{voter['voter']}: " + ", ".join(part for part in (votes, reasons, repaired) if part)
