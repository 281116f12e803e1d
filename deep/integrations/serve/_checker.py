"""A model at work on pairs that come one by one: its judges found once, repeated pairs from memory, answers as JSON."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from deep import __version__, asking
from deep._util.checks import Floats, Votes, check_votes
from deep._util.files import read_asset
from deep._util.options import option
from deep.asking import AskOptions, Finder, PassageFinder, Plan, Scored, TextScorer
from deep.datasets import Passage
from deep.exceptions import InputError
from deep.integrations.serve._exchange import WebError, json_bytes
from deep.integrations.serve._live import LiveAsker
from deep.llm import EndpointError, History, LedgerError
from deep.model import SCORE_COLUMNS, ItemColumn, Model, ScoreOptions, exported_columns
from deep.records import ABSTAIN, Example, Judgment

JsonReply = dict[str, object]


def answers_of(plan: Plan, scored: Sequence[Scored]) -> Iterator[bytes]:
    """Yield P, its interval, the decision, each judge's judgment and the cost of each pair as JSON."""
    free = frozenset(column.name for column in plan.offline)
    for one in scored:
        places = PassageFinder(one.example)
        judges = []
        for name, judgment in one.judgments.items():
            evidence = asking.locate_evidence(judgment, places, claim_first=name in plan.claim_first)
            # `asdict` takes several times as long.
            passages = [{field: getattr(each, field) for field in Passage.__slots__} for each in evidence]
            judges.append(_judge(name, judgment, passages, free=name in free))
        columns = {name: one.columns[name] for name in SCORE_COLUMNS}
        yield json_bytes({**columns, "judges": judges, "cost": _cost(one.judgments, free)})


def _cost(judgments: Mapping[str, Judgment], free: Collection[str]) -> float | None:
    """Return the dollars of all answers; None where the price of one is not known."""
    costs = [asking.cost_of(judgment, free=name in free) for name, judgment in judgments.items()]
    return None if None in costs else float(sum(cost for cost in costs if cost is not None))


def _judge(name: str, judgment: Judgment, evidence: Sequence[JsonReply], *, free: bool) -> JsonReply:
    return {
        "judge": name,
        "vote": None if judgment.vote == ABSTAIN else judgment.vote,
        "reason": judgment.reason,
        "score": judgment.score,
        "rationale": judgment.rationale,
        "evidence": evidence,
        "model": judgment.model,
        "cost": asking.cost_of(judgment, free=free),
        "seconds": judgment.seconds,
        "samples": list(judgment.samples),
    }


def model_answer(model: Model, plan: Plan, options: ScoreOptions) -> JsonReply:
    """Return the judges of a model, how it was fitted and on what, its prior and its threshold."""
    report, threshold = model.fit_report, model.threshold(options.prior)
    left_out = report["left_out_scores"]
    return {
        "method": model.method,
        "judges": [
            {"judge": column.name, "kind": column.judge.details.get("kind"), "llm": column.llm or None}
            for column in plan.columns
        ],
        "training_datasets": report["training_datasets"],
        "left_out": left_out.get("mean") if isinstance(left_out, dict) else None,  # null where nothing was left out
        "target": model.target,
        "prior": asking.prior_of_texts(model, options),
        "decision": {"threshold": threshold, "rule": model.rule.sentence(threshold), **model.rule.values()},
        "columns": {name: column.meaning for name, column in exported_columns().items()},
        "created": report["created"],
        "notes": report["notes"],
        "versions": {"deep": __version__, "fitted_with": report["versions"]},
    }


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How a model is served; all but the last four as `deep score` has them.

    Parameters
    ----------
    score : ScoreOptions, optional
        The prior, and whether judges of another version are allowed.
    finder : Finder, optional
        Where to look for the model's judges.
    ask : AskOptions, optional
        Ledger, limits and budget of judges that ask LLMs; required for such judges.
    endpoint : str, optional
        Ledger name of the endpoint, if its URL can change.
    dataset : str, default='served'
        The dataset name of the pairs in the ledger; it is not sent.
    most_pairs : int, default=1000
        Pairs in one request.
    cache_bytes : int, default=8 MiB
        Memory for answers to repeated pairs; 0: none.
    no_text : bool, default=False
        Keep no text after a request is answered. Judges that ask LLMs are refused, because their ledger keeps texts.
    on_scored : callable, optional
        Called, from a thread, with each :class:`deep.asking.Scored` pair that the judges have read.
    model_file : Path, optional
        The model's file: if it changes later, answers say so.
    mcp : bool, default=False
        Tools for agents at /mcp (Model Context Protocol).

    Raises
    ------
    InputError
        A limit is out of range.
    """

    heading: ClassVar[str] = "what is served"

    score: ScoreOptions = field(default_factory=ScoreOptions)
    finder: Finder = field(default_factory=Finder)
    ask: AskOptions | None = None
    endpoint: str | None = None
    dataset: str = "served"
    most_pairs: int = option(1000, "N", rare=True, flags=["--max-pairs"])
    cache_bytes: int = option(1 << 23, "BYTES", rare=True)
    no_text: bool = option(False)
    on_scored: Callable[[Scored], object] | None = None
    model_file: Path | None = None
    mcp: bool = option(False)

    def __post_init__(self) -> None:
        if self.most_pairs < 1:
            raise InputError(f"`most_pairs` must be 1 or more. Got {self.most_pairs!r}.")
        if self.cache_bytes < 0:
            raise InputError(f"`cache_bytes` must be 0 or more. Got {self.cache_bytes!r}.")


JsonSchema = dict[str, Any]


def _of_column(column: ItemColumn) -> JsonSchema:
    """Return the schema of a value of a column."""
    kind: JsonSchema = {"type": "number" if column.type == "double" else "integer"}
    if column.type == "int8":
        kind = {"enum": [0, 1]}
    elif column.high is not None:
        kind |= {"minimum": 0, "maximum": column.high}
    return {**({"anyOf": [kind, {"type": "null"}]} if column.nullable else kind), "description": column.meaning}


_CONTRACT = read_asset(__package__, "templates/contract.json")
PAIR_SCHEMA: JsonSchema = _CONTRACT["pair"]

# What agents are told of the server and of each tool.
AGENTS: JsonSchema = _CONTRACT["agents"]


def contract() -> JsonSchema:
    """Return the description of the routes, as OpenAPI has it: ``contract.json``, and the columns of scores in it."""
    parts, answer = _CONTRACT["result"], _CONTRACT["answered"]
    # The columns of scores stand between the id of a pair, which keeps its place, and the rest.
    parts = {"id": parts["id"], **{name: _of_column(column) for name, column in SCORE_COLUMNS.items()}, **parts}
    schemas: dict[str, JsonSchema] = {
        **_CONTRACT,
        "error": {"application/json": {"schema": _CONTRACT["error"]}},
        "result": {"type": "object", "properties": parts, "required": list(parts)},
        "answered": {"id": answer["id"], **{name: c.example for name, c in SCORE_COLUMNS.items()}, **answer},
    }

    def filled(value: Any) -> Any:
        """Put what is said once in the places that name it."""
        if isinstance(value, list):
            return [*map(filled, value)]
        if not isinstance(value, dict):
            return value
        return schemas[value["part"]] if "part" in value else {name: filled(inner) for name, inner in value.items()}

    about = {"title": "deep", "version": __version__}
    return {"openapi": "3.1.0", "info": about, "paths": filled(_CONTRACT["paths"])}


# Pairs that are scored together; what all have in common is then done once.
AT_ONCE = 32

# Characters of one turn of the event loop: some 5 ms of lexical checks. Heavier pairs go to a thread.
WEIGHT_OF_TURN = 20_000

# Characters from which on a pair waits for other long ones, and no other for it.
WEIGHT_OF_LONG = 200_000

# Characters of a claim from which on checks may take long whatever the source.
LONGEST_QUICK_CLAIM = 2_000

# Bytes that an answer takes in memory besides itself.
ENTRY_OVERHEAD = 256


# By the id of a pair, its answer as JSON, and whether the same pair would be answered the same.
_Bodies = dict[str, tuple[bytes, bool]]


def served_pair(source: str, claim: str, question: str | None = None, dataset: str = "served") -> Example:
    """Return a pair as an example, whose id is the digest that stands for its texts where none is kept."""
    digest = blake2b(digest_size=16)
    for text in (source, claim, *([] if question is None else [question])):
        raw = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d " % len(raw))
        digest.update(raw)
    return Example(source, claim, digest.hexdigest(), dataset=dataset, question=question)


def weight_of(pair: Example) -> int:
    """Return the number of characters of a pair."""
    return len(pair.source) + len(pair.claim) + len(pair.question or "")


@dataclass(frozen=True, slots=True)
class PairAnswer:
    """The answer to a pair as JSON, and whether the budget had room for all that it takes."""

    body: bytes
    within_budget: bool = True


class Checker:
    """Answers pairs by a model.

    Parameters
    ----------
    model : Model
        Gives every pair its P.
    options : CheckOptions, optional
        Prior, judges and limits; by default a model whose judges ask an LLM is refused.

    Raises
    ------
    InputError
        A judge of the model cannot be run here, or asks an LLM where that is not allowed.
    """

    def __init__(self, model: Model, options: CheckOptions | None = None) -> None:
        self.options = setup = options or CheckOptions()
        self.scorer = TextScorer(
            model, setup.ask, finder=setup.finder, options=setup.score, endpoint=setup.endpoint, dataset=setup.dataset
        )
        self.model, self.plan = model, self.scorer.plan
        judge = next((column.name for column in self.plan.columns if column.judge.needs_llm or column.caller), None)
        if judge is not None and setup.no_text:
            raise InputError(
                f"`no_text` must be given with judges that need no ledger, since a ledger keeps texts. Got {judge!r}. "
                "Leave it out."
            )
        self._recent: dict[str, bytes] = {}
        self._recent_bytes = 0
        self._is_quick = all(column.judge.details.get("kind") == "lexical" for column in self.plan.columns)
        self._waiting: deque[tuple[Sequence[Example], int, asyncio.Future[_Bodies]]] = deque()
        self._closing = ExitStack()
        self._threads = [self._closing.enter_context(ThreadPoolExecutor(1, f"deep-{name}")) for name in ("one", "long")]
        self._ask_options = self.scorer.ask if self.plan.keeps_answers else None
        self._asking = None if self._ask_options is None else LiveAsker(self.plan, self._ask_options)

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
            asking.run_in_loop(self._asking.end()).result()
        self._closing.close()

    async def check(self, pairs: Sequence[Example]) -> list[PairAnswer]:
        """Return the answers to pairs; one that was answered lately is not worked on again.

        Raises
        ------
        WebError
            The endpoint refuses every request, or the ledger cannot be written.
        """
        by_id = {pair.example_id: pair for pair in pairs}
        result = {key: PairAnswer(self._recent[key]) for key in by_id if key in self._recent}
        new = [pair for key, pair in by_id.items() if key not in result]
        lacking = set[str]() if self._asking is None else await self._ask(self._asking, new)
        for some in _portions(new):
            answers = await self._answers(some)
            for key, (body, lasts) in ((pair.example_id, answers[pair.example_id]) for pair in some):
                result[key] = PairAnswer(body, key not in lacking)
                if lasts and key not in lacking:
                    self._keep(key, body)
        return [result[pair.example_id] for pair in pairs]

    async def _ask(self, asker: "LiveAsker", pairs: Sequence[Example]) -> set[str]:
        """Ask LLMs and functions about pairs, and return those for which the budget had no room."""
        try:
            within = await asyncio.gather(*(asker.ask(pair) for pair in pairs))
        except EndpointError as error:
            raise WebError(502, "endpoint", str(error)) from None
        except LedgerError as error:
            raise WebError(503, "ledger", str(error)) from None
        return {pair.example_id for pair, fits in zip(pairs, within, strict=True) if not fits}

    async def _answers(self, pairs: Sequence[Example]) -> _Bodies:
        """Return answers, worked out in the event loop where that is quick: threads hand the interpreter to and fro."""
        loop, weight = asyncio.get_running_loop(), sum(map(weight_of, pairs))
        longest = max(len(pair.claim) for pair in pairs)
        if self._is_quick and weight <= WEIGHT_OF_TURN and longest <= LONGEST_QUICK_CLAIM:
            if not self._waiting:
                loop.call_soon(self._score_some, loop)
            future: asyncio.Future[_Bodies] = loop.create_future()
            self._waiting.append((pairs, weight, future))
            return await future
        is_long = self._asking is None and weight > WEIGHT_OF_LONG  # the ledger is read by one thread
        return await loop.run_in_executor(self._threads[is_long], self._compute_answers, pairs)

    def _score_some(self, loop: asyncio.AbstractEventLoop) -> None:
        """Score some of the waiting pairs, and let others have the loop before the rest."""
        batch = [self._waiting.popleft()]
        n, weight = len(batch[0][0]), batch[0][1]
        while self._waiting and n < AT_ONCE and weight + self._waiting[0][1] <= WEIGHT_OF_TURN:
            batch.append(self._waiting.popleft())
            n, weight = n + len(batch[-1][0]), weight + batch[-1][1]
        if self._waiting:
            loop.call_soon(self._score_some, loop)
        self._finish([(pairs, future) for pairs, _, future in batch if not future.cancelled()])

    def _finish(self, batch: "Sequence[tuple[Sequence[Example], asyncio.Future[_Bodies]]]") -> None:
        """Answer several requests together, or one by one where that breaks, so that none suffers for another."""
        try:
            result = self._compute_answers([pair for pairs, _ in batch for pair in pairs])
        except Exception as error:
            for entry in batch if len(batch) > 1 else ():
                self._finish([entry])
            if len(batch) == 1:
                batch[0][1].set_exception(error)
            return
        for _, future in batch:
            future.set_result(result)

    def _compute_answers(self, pairs: Sequence[Example]) -> _Bodies:
        scored = self.scorer.read(list({p.example_id: p for p in pairs}.values()), self._history, tell=False)
        if self.options.on_scored is not None:
            for one in scored:
                self.options.on_scored(one)
        # The same pair would be answered the same only where no judge has failed.
        lasts = [all(judgment.reason != "failed" for judgment in one.judgments.values()) for one in scored]
        answers = zip(scored, answers_of(self.plan, scored), lasts, strict=True)
        return {one.example.example_id: (body, lasting) for one, body, lasting in answers}

    @cached_property
    def _history(self) -> History | None:
        """The ledger, opened by the thread that reads it."""
        if self._ask_options is None:
            return None
        history = History(self._ask_options.ledger)
        self._closing.callback(history.__exit__, None, None, None)
        return history.__enter__()

    def _keep(self, key: str, body: bytes) -> None:
        """Keep an answer in memory, in place of those that are there longest."""
        most = 0 if self.options.no_text else self.options.cache_bytes
        if key in self._recent or len(body) + ENTRY_OVERHEAD > most:
            return
        self._recent[key] = body
        self._recent_bytes += len(body) + ENTRY_OVERHEAD
        while self._recent_bytes > most:
            self._recent_bytes -= len(self._recent.pop(next(iter(self._recent)))) + ENTRY_OVERHEAD


def _portions(pairs: Sequence[Example]) -> Iterator[list[Example]]:
    """Yield pairs some at a time, so that other requests have their turn between."""
    some: list[Example] = []
    weight = 0
    for pair in pairs:
        if some and (len(some) == AT_ONCE or weight + weight_of(pair) > WEIGHT_OF_TURN):
            yield some
            some, weight = [], 0
        some.append(pair)
        weight += weight_of(pair)
    if some:
        yield some


# The most characters of an id, which comes back in the answer.
LONGEST_ID = 200
# What a request about one text may hold; any other field is refused.
PAIR_FIELDS = frozenset({"claim", "id", "question", "source"})


def read_pairs(value: object, options: CheckOptions) -> tuple[list[tuple[str | None, Example]], bool]:
    """Return the pairs of a body with their ids, and whether it was a list.

    Parameters
    ----------
    value : object
        A JSON value.
    options : CheckOptions
        How many pairs one request may have, and of which dataset they are.

    Raises
    ------
    WebError
        With status 422: it is something else, or a pair of it lacks a text.

    Examples
    --------
    >>> from deep.integrations.serve import CheckOptions
    >>> from deep.integrations.serve._checker import read_pairs
    >>> [(name, pair)], is_list = read_pairs({"source": "It rained.", "claim": "It was wet."}, CheckOptions())
    >>> name, pair.claim, is_list
    (None, 'It was wet.', False)
    """
    if isinstance(value, dict):
        return [_pair(value, options.dataset, "")], False
    if not isinstance(value, list):
        raise refusal(f"The body must be an object with source and claim, or a list of them. Got {_kind(value)}.")
    if not 1 <= len(value) <= options.most_pairs:
        raise refusal(f"The list must have 1 to {options.most_pairs:,} pairs. Got {len(value):,}.")
    return [_pair(each, options.dataset, f" in pair {number}") for number, each in enumerate(value)], True


def _pair(value: object, dataset: str, where: str) -> tuple[str | None, Example]:
    """Return the id and the example of one pair of a body; refuse what is none."""
    if not isinstance(value, dict):
        raise refusal(f"A pair must be an object with source and claim. Got {_kind(value)}{where}.")
    if not value.keys() <= PAIR_FIELDS:
        raise refusal(f"A pair must have the keys source, claim and, if wanted, id and question. Got another{where}.")
    name, entry = value.get("id"), value.get("question")
    is_empty = isinstance(entry, str) and not entry.strip()  # a field of a form that was left empty
    question = None if entry is None or is_empty else _text(value, "question", where)
    if name is not None and (not isinstance(name, str) or len(name) > LONGEST_ID):
        got = "a longer one" if isinstance(name, str) else _kind(name)
        raise refusal(f"`id` must be text of at most {LONGEST_ID} characters. Got {got}{where}.")
    return name, served_pair(_text(value, "source", where), _text(value, "claim", where), question, dataset)


def _text(pair: dict[str, Any], name: str, where: str) -> str:
    text = pair.get(name)
    if not isinstance(text, str):
        raise refusal(f"`{name}` must be text. Got {_kind(text) if name in pair else 'nothing'}{where}.")
    if not text.strip() or "\0" in text:
        raise refusal(f"`{name}` must be text. Got {'a NUL character' if text.strip() else 'a blank one'}{where}.")
    return text


def is_vote(value: object) -> bool:
    """Return whether a JSON value is 1, 0 or null, as votes and labels are; true and 1.0 are none of them."""
    return value is None or (type(value) is int and value in (0, 1))


def refusal(message: str) -> WebError:
    """Return the error of a body that is no pair or list of what is asked for."""
    return WebError(422, "invalid", message)


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", dict: "an object", float: "a number", int: "a number", list: "a list", str: "text"}
    return kinds.get(type(value), "null")


# Votes are called unusual where fewer of the training rows are like them.
UNUSUAL_SHARE = 0.05


ONLY_LABELS = "The model sees votes, not texts. Only labels show whether it holds for new kinds of text."


@dataclass(frozen=True)
class Likeness:
    """The votes on one item beside those on the training rows.

    Parameters
    ----------
    rows, datasets : int
        That the model was fitted on.
    alike : int
        Training rows with exactly these votes.
    n_voters, n_votes, n_consistent : int
        Judges, those that voted, and those that voted 1.
    as_few_votes : float
        Share of training rows with as few votes or fewer, each dataset counting the same.
    as_split : float
        Likewise, share of those on which the smaller side is as large a part of the votes, or a larger one.
    """

    rows: int
    datasets: int
    alike: int
    n_voters: int
    n_votes: int
    n_consistent: int
    as_few_votes: float
    as_split: float

    @property
    def unusual(self) -> bool:
        """Return whether hardly any training row has as few votes, or votes as split."""
        return min(self.as_few_votes, self.as_split) < UNUSUAL_SHARE

    def sentences(self) -> list[str]:
        """Return sentences on it, the most telling one first."""
        says = []
        if self.as_few_votes < UNUSUAL_SHARE:
            says.append("UNUSUAL: hardly any training row has as few votes.")
        if self.as_split < UNUSUAL_SHARE:
            says.append("UNUSUAL: judges disagree as much on hardly any training row.")
        rows, datasets = _counted(self.rows, "training row"), _counted(self.datasets, "dataset")
        some, have = f"{self.alike:,}" if self.alike else "None", "has" if self.alike < 2 else "have"
        says += [
            f"{some} of the {rows} ({datasets}) {have} exactly these votes.",
            f"{self.n_votes} of {_counted(self.n_voters, 'judge')} voted; as few or fewer voted on "
            f"{100 * self.as_few_votes:.0f} % of the training rows.",
        ]
        if 0 < self.n_consistent < self.n_votes:
            says.append(
                f"The votes split {self.n_consistent} to {self.n_votes - self.n_consistent}; "
                f"{100 * self.as_split:.0f} % of the training rows are split as much or more."
            )
        return [*says, ONLY_LABELS]

    def as_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return {**asdict(self), "unusual": self.unusual}


def likeness(model: Model, votes: Sequence[int]) -> Likeness:
    """Compare the votes on one item with those that a model was fitted on.

    Parameters
    ----------
    model : Model
        The votes are compared with its training cells.
    votes : sequence of int
        1 consistent, 0 inconsistent, -1 no vote, in the order of the model's voters.

    Raises
    ------
    InputError
        A vote is out of range, or their number is not that of the model's voters.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.serve._checker import likeness
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> result = likeness(fit(votes), [1] * len(votes.voter_names))
    >>> result.unusual, result.sentences()[1]
    (False, '... of ... judges voted; as few or fewer voted on ... % of the training rows.')
    """
    row = check_votes([list(votes)], name="votes", voters=model.voter_names)
    if row.shape[1] != len(model.voters):
        raise InputError(f"`votes` must have one for each of {len(model.voters)} voters. Got {row.shape[1]}.")
    patterns, counts = model.cells.patterns, model.cells.counts.sum(axis=2)
    # Each dataset counts the same, or the largest one would say what is usual.
    weight = np.asarray((counts / np.maximum(counts.sum(axis=0), 1)).mean(axis=1))
    return Likeness(
        rows=int(counts.sum()),
        datasets=len(model.cells.groups),
        alike=int(counts[(patterns == row).all(axis=1)].sum()),
        n_voters=row.shape[1],
        n_votes=int(_n_votes(row)[0]),
        n_consistent=int((row == 1).sum()),
        as_few_votes=float(weight[_n_votes(patterns) <= _n_votes(row)].sum()),
        as_split=float(weight[_split(patterns) >= _split(row)].sum()),
    )


def _n_votes(patterns: Votes) -> Floats:
    return np.asarray((patterns >= 0).sum(axis=1), dtype=np.float64)


def _split(patterns: Votes) -> Floats:
    """Return the part of the smaller side among the votes of each row; 0 without a vote."""
    ones, zeros = (patterns == 1).sum(axis=1), (patterns == 0).sum(axis=1)
    return np.asarray(np.minimum(ones, zeros) / np.maximum(ones + zeros, 1), dtype=np.float64)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
