"""The contract of the routes as OpenAPI says it, and the answer about a pair, as JSON values."""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from deep import __version__
from deep._util.files import LARGEST_MODEL, packaged, read_bytes
from deep.asking import AskOptions, Finder, Places, Plan, Scored, located, prior_of_texts
from deep.datasets import Passage
from deep.exceptions import InputError
from deep.integrations.serve._exchange import json_bytes
from deep.model import SCORE_COLUMNS, ItemColumn, Model, ScoreOptions, exported_columns
from deep.records import ABSTAIN, Judgment, Reason

JsonReply = dict[str, object]

_values = attrgetter(*Passage.__slots__)
"""The fields of a passage, which `asdict` takes several times as long to read."""


class Answers:
    """Tells scored pairs as JSON.

    Parameters
    ----------
    plan : Plan
    most_kept : int, default=2048
        Judgments of free judges without evidence whose JSON is kept, for most pairs have the same few of them.
    """

    def __init__(self, plan: Plan, most_kept: int = 2048) -> None:
        self._claim_first = plan.claim_first
        self._free = frozenset(column.name for column in plan.offline)
        self._plain = lru_cache(most_kept, typed=True)(_plain)

    def tell(self, scored: Sequence[Scored]) -> Iterator[bytes]:
        """Yield P, its interval, the decision, each judge's judgment and the cost of each pair."""
        for one in scored:
            columns, places = one.columns, Places(one.example)
            head = json_bytes({name: columns[name] for name in SCORE_COLUMNS})
            judges = b",".join(self._judge(name, judgment, places) for name, judgment in one.judgments.items())
            cost = json_bytes(_cost(one.judgments, self._free))
            yield b'%b,"judges":[%b],"cost":%b}' % (head[:-1], judges, cost)

    def _judge(self, name: str, judgment: Judgment, places: Places) -> bytes:
        free = name in self._free
        if free and not judgment.evidence and (judgment.model, judgment.seconds, judgment.samples) == (None, None, ()):
            return self._plain(name, judgment.vote, judgment.reason, judgment.score, judgment.rationale)
        found = located(judgment, places, claim_first=name in self._claim_first)
        evidence = [dict(zip(Passage.__slots__, _values(each), strict=True)) for each in found]
        return json_bytes(_judge(name, judgment, evidence, free=free))


def _plain(name: str, vote: int, reason: Reason | None, score: float | None, rationale: str | None) -> bytes:
    """Return the JSON of a judgment that cost nothing and has no evidence."""
    return json_bytes(_judge(name, Judgment(vote, reason, score, rationale=rationale), [], free=True))


def _cost(judgments: Mapping[str, Judgment], free: Collection[str]) -> float | None:
    """Return the dollars of all answers; None where the price of one is not known."""
    costs = [judgment.cost for name, judgment in judgments.items() if name not in free and not _unanswered(judgment)]
    return None if None in costs else float(sum(cost for cost in costs if cost is not None))


def _unanswered(judgment: Judgment) -> bool:
    return judgment.reason == "failed" and judgment.cost is None and not judgment.tokens


def _judge(name: str, judgment: Judgment, evidence: Sequence[JsonReply], *, free: bool) -> JsonReply:
    return {
        "judge": name,
        "vote": None if judgment.vote == ABSTAIN else judgment.vote,
        "reason": judgment.reason,
        "score": judgment.score,
        "rationale": judgment.rationale,
        "evidence": evidence,
        "model": judgment.model,
        "cost": 0.0 if free else judgment.cost,
        "seconds": judgment.seconds,
        "samples": list(judgment.samples),
    }


def model_answer(model: Model, plan: Plan, options: ScoreOptions) -> JsonReply:
    """Return the judges of a model, how it was fitted and on what, its prior and its threshold."""
    report, threshold = model.report, model.threshold(options.prior)
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
        "prior": prior_of_texts(model, options),
        "decision": {"threshold": threshold, "rule": model.rule.sentence(threshold), **model.rule.values()},
        "columns": {name: column.meaning for name, column in exported_columns().items()},
        "created": report["created"],
        "notes": report["notes"],
        "versions": {"deep": __version__, "fitted_with": report["versions"]},
    }


class ServedFile:
    """The file of a model that is served, known again by its checksum.

    Parameters
    ----------
    model : Model
    path : Path
    """

    def __init__(self, model: Model, path: Path) -> None:
        self._path, self._checksum = path, model.document()["checksum"]
        self._marks: object = ()
        self._same = True

    def changed(self) -> bool:
        """Return whether the file holds another model by now, or none; it is read again only where it looks changed."""
        try:
            status = self._path.stat()
            marks = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
        except OSError:
            return True
        if marks != self._marks:
            self._marks, self._same = marks, self._holds()
        return not self._same

    def _holds(self) -> bool:
        try:
            found = json.loads(read_bytes(self._path, "model", LARGEST_MODEL))
        except (InputError, OSError, RecursionError, ValueError):
            return False
        return isinstance(found, dict) and found.get("checksum") == self._checksum


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How a model is served; all but the last four as `deep score` has them.

    Parameters
    ----------
    score : ScoreOptions, optional
        The prior, and whether judges of another version may stand in.
    finder : Finder, optional
        Where the model's judges are looked for.
    ask : AskOptions, optional
        The ledger, limits and budget of judges that ask LLMs; needed where there are some.
    endpoint : str, optional
        The endpoint's name in the ledger, if its address may change.
    dataset : str, default='served'
        The dataset of the pairs in the ledger; it is no part of what is asked.
    most_pairs : int, default=1000
        Pairs in one request.
    cache_bytes : int, default=8 MiB
        Answers to repeated pairs that are kept in memory; 0: none.
    no_text : bool, default=False
        Keep no text once a request is answered, neither in memory nor on disk; judges that ask LLMs are refused, for
        their ledger keeps what was asked.
    on_scored : callable, optional
        Called, from a thread, with each :class:`deep.asking.Scored` pair that the judges have read.
    model_file : Path, optional
        The file that the model was read from: where it holds another one later, answers say so.
    mcp : bool, default=False
        Answer agents at ``/mcp`` too, as the Model Context Protocol has it.

    Raises
    ------
    InputError
        A limit is out of range.
    """

    score: ScoreOptions = field(default_factory=ScoreOptions)
    finder: Finder = field(default_factory=Finder)
    ask: AskOptions | None = None
    endpoint: str | None = None
    dataset: str = "served"
    most_pairs: int = 1000
    cache_bytes: int = 1 << 23
    no_text: bool = False
    on_scored: Callable[[Scored], object] | None = None
    model_file: Path | None = None
    mcp: bool = False

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


_CONTRACT = packaged(__package__, "templates/contract.json")
PAIR, ERROR, ASKED, PARTS, ANSWERED = (_CONTRACT[name] for name in ("pair", "error", "asked", "result", "answered"))
# The columns of scores stand between the id of a pair, which keeps its place, and the rest.
PARTS = {"id": PARTS["id"], **{name: _of_column(column) for name, column in SCORE_COLUMNS.items()}, **PARTS}
ANSWERED = {"id": ANSWERED["id"], **{name: column.example for name, column in SCORE_COLUMNS.items()}, **ANSWERED}
RESULT = {"type": "object", "properties": PARTS, "required": list(PARTS)}
LIST = {"type": "array", "items": RESULT}
RESULTS = {"type": "object", "properties": {"results": LIST}, "required": ["results"]}


def _json(schema: JsonSchema, **examples: object) -> JsonSchema:
    shown = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": {"schema": schema, **({"examples": shown} if shown else {})}}


def _refusals(route: str) -> JsonSchema:
    said = _CONTRACT["refusals"][route]
    return {code: {"description": text, "content": _json(ERROR)} for code, text in said.items()}


def contract() -> JsonSchema:
    """Return the description of the routes, as OpenAPI has it."""
    everywhere = _refusals("everywhere")
    check: JsonSchema = {
        "summary": "P(consistent) of one pair, or of a list of them",
        "requestBody": {
            "required": True,
            "content": _json({"anyOf": [PAIR, {"type": "array", "items": PAIR}]}, one=ASKED, several=[ASKED]),
        },
        "responses": {
            "200": {
                "description": "one result, or a list of them in `results`",
                "content": _json({"anyOf": [RESULT, RESULTS]}, one=ANSWERED, several={"results": [ANSWERED]}),
            },
            **_refusals("check"),
            **everywhere,
        },
    }
    described = {"description": "the model", "content": _json({"type": "object"})}
    about = "The judges, how the model was fitted and on what, its prior and its threshold"
    up = {"description": "it is", "content": _json({"type": "object"})}
    return {
        "openapi": "3.1.0",
        "info": {"title": "deep", "version": __version__},
        "paths": {
            "/v1/check": {"post": check},
            "/v1/model": {"get": {"summary": about, "responses": {"200": described, **everywhere}}},
            "/healthz": {"get": {"summary": "Whether the server is up; needs no token", "responses": {"200": up}}},
        },
    }
