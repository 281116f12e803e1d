"""The application: the routes of a served model, and tools for agents at ``/mcp``."""

import asyncio
import csv
import io
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from deep import __version__, datasets, evaluate, model
from deep._util.files import MAX_MODEL_BYTES, read_bytes
from deep._util.scales import BINARY, Scale
from deep.asking import Scored
from deep.exceptions import DeepError, InputError, needs_extra
from deep.integrations.serve._checker import (
    AGENTS,
    LONGEST_ID,
    PAIR_SCHEMA,
    Checker,
    CheckOptions,
    JsonReply,
    JsonSchema,
    contract,
    is_vote,
    likeness,
    model_answer,
    read_pairs,
    refusal,
)
from deep.integrations.serve._exchange import Message, Receive, Scope, Send, WebError, json_bytes, make_app, read_json
from deep.model import Model
from deep.records import ABSTAIN, Example, VoteMatrix
from deep.report import page_asset

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


def _page(name: str) -> str:
    return (files("deep.integrations.serve") / "templates" / name).read_text(encoding="utf-8")


def pairs_of_file(body: object) -> JsonReply:
    r"""Return the pairs of a file that was sent, as ``/v1/check`` takes them.

    Parameters
    ----------
    body : mapping
        `name` and `text` of a CSV or JSONL file.

    Raises
    ------
    WebError
        The body is something else.
    InputError
        A row of the file is not usable.

    Examples
    --------
    >>> from deep.integrations.serve._app import pairs_of_file
    >>> pairs_of_file({"name": "new.csv", "text": "source,claim\nIt rained.,It was wet.\n"})
    {'pairs': [{'source': 'It rained.', 'claim': 'It was wet.', 'id': '1'}]}
    """
    if not (isinstance(body, Mapping) and all(isinstance(body.get(key), str) for key in ("name", "text"))):
        raise WebError(422, "invalid", "The body must be an object with two texts, name and text.")
    name, text = _plain_csv(body["name"], body["text"])
    examples = datasets.examples_from_text(text.encode("utf-8", "surrogatepass"), name)
    examples.check(strict=True)
    pairs = [{"source": one.source, "claim": one.claim, "id": one.example_id[:200]} for one in examples]
    for pair, example in zip(pairs, examples, strict=True):
        if example.question is not None:
            pair["question"] = example.question
    return {"pairs": pairs}


# Endings of files that are tables of text.
SEPARATED = (".csv", ".tsv", ".txt")


def _plain_csv(name: str, text: str) -> tuple[str, str]:
    """Return a table with commas in place of semicolons or tabs; refuse in words one that lacks a column."""
    first = text.lstrip("\ufeff").partition("\n")[0]
    if not name.lower().endswith(SEPARATED) or not first.strip():
        return name, text
    heads = {mark: [cell.strip() for cell in next(csv.reader([first], delimiter=mark))] for mark in ",;\t"}
    mark = max(heads, key=lambda each: len({"source", "claim"} & set(heads[each])))
    missing = [column for column in ("source", "claim") if column not in heads[mark]]
    if missing:
        raise WebError(
            422,
            "invalid",
            f"{name} needs the columns source and claim, and lacks {' and '.join(missing)}. Its first line "
            f"has: {', '.join(heads[mark])[:300]}. Rename its columns and choose it again.",
        )
    if mark == ",":
        return f"{name}.csv" if not name.lower().endswith(".csv") else name, text
    out = io.StringIO()
    csv.writer(out).writerows(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=mark, strict=True))
    return f"{name}.csv", out.getvalue()


def watch(model: Model, body: object, prior: float | None = None) -> JsonReply:
    """Compare the votes on one item, or on several, with those of the training data, in figures and sentences.

    Several are scored as one dataset, as `deep score` does it, at the share of consistent items that their votes tell.

    Parameters
    ----------
    model : Model
        The votes are compared with its training cells, and several are scored by it.
    body : mapping
        `votes`: a list of items, each a list of 1, 0 or null in the order of the model's judges.
    prior : float, optional
        The share of consistent items, where it is known.

    Raises
    ------
    WebError
        The body is something else.
    """
    rows = _rows(body, len(model.voters))
    if len(rows) == 1:
        result = likeness(model, rows[0])
        return {"n": 1, "unusual": result.unusual, "says": result.sentences(), "likeness": result.as_dict()}
    n = len(rows)
    matrix = VoteMatrix(rows, [str(i) for i in range(n)], model.voter_names, ["file"] * n, [ABSTAIN] * n)
    drift = evaluate.drift_report(model, matrix)
    reply: dict[str, object] = {"n": n, "unusual": drift.stale, "says": drift.sentences(), "drift": drift.as_dict()}
    return reply | _scored(model, matrix, prior, drift.moved)


def _scored(model: Model, matrix: VoteMatrix, prior: float | None, suspects: Sequence[str]) -> JsonReply:
    """Return the scores of the items of one dataset, and the verdict on them in the words of all pages."""
    result = model.scores_of(matrix, prior=prior)
    counts = evaluate.DecisionCounts()
    counts.add(matrix.datasets, matrix.item_ids, result.columns())
    trust = evaluate.trust_words([evaluate.drift_badge(suspects)], 0)
    then = "Next: ask other judges." if counts.alike else "Next: look at the lowest P, and label 30 of these claims."
    return {
        "scores": result.records(),
        "verdict": [evaluate.suspect_words(counts), evaluate.share_words(result.share), trust, then],
    }


def _rows(body: object, n_voters: int) -> list[list[int]]:
    votes = body.get("votes") if isinstance(body, Mapping) else None
    rows = votes if isinstance(votes, list) else []
    fits = all(isinstance(row, list) and len(row) == n_voters and all(map(is_vote, row)) for row in rows)
    if not rows or not fits:
        raise WebError(422, "invalid", f"`votes` must be a list of lists of {n_voters} votes: 1, 0 or null.")
    return [[ABSTAIN if vote is None else vote for vote in row] for row in rows]


class ServedFile:
    """The file of a model that is served, known again by its checksum.

    Parameters
    ----------
    model : Model
        As it was read; a file of another checksum counts as changed.
    path : Path
        Where it was read, and is looked at again.
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
            self._marks, self._same = marks, self._holds_served_model()
        return not self._same

    def _holds_served_model(self) -> bool:
        try:
            result = json.loads(read_bytes(self._path, "model", MAX_MODEL_BYTES))
        except (InputError, OSError, RecursionError, ValueError):
            return False
        return isinstance(result, dict) and result.get("checksum") == self._checksum


class Meter:
    """Counts of what the server has answered since its start."""

    def __init__(self) -> None:
        self.ready = False
        self._counts: Counter[str] = Counter()
        self._p = self._seconds = self._dollars = 0.0
        self._lock = Lock()  # long pairs are scored in threads

    async def answered(self, reply: "Awaitable[Response]") -> "Response":
        """Count a request to ``/v1/check`` by its status, and return its answer."""
        began, status = monotonic(), 500
        try:
            answer = await reply
            status = answer.status_code
        except WebError as error:
            status = error.status
            raise
        finally:
            with self._lock:
                self._counts[f'deep_requests_total{{status="{status}"}}'] += 1
                self._seconds += monotonic() - began
        return answer

    def scored(self, one: Scored) -> None:
        """Count a pair that was scored, which an answer from memory is not."""
        decision = one.columns["decision"]
        with self._lock:
            self._counts[f'deep_pairs_total{{decision="{"none" if decision is None else decision}"}}'] += 1
            self._p += one.columns["p_consistent"] or 0.0
            self._dollars += sum(judgment.cost or 0.0 for judgment in one.judgments.values())

    async def metrics(self, _: "Request") -> "Response":
        """Answer ``/metrics``: the counts in Prometheus' text form."""
        from starlette.responses import Response

        with self._lock:
            lines = [f"{name} {n}" for name, n in sorted(self._counts.items())]
            sums = {"deep_p_consistent": self._p, "deep_request_seconds": self._seconds, "deep_dollars": self._dollars}
        kinds = [f"# TYPE {name} counter" for name in ("deep_requests_total", "deep_pairs_total")]
        lines = [*kinds, *lines, *(f"{name}_sum {value!r}" for name, value in sums.items()), ""]
        return Response("\n".join(lines), media_type="text/plain; version=0.0.4")

    async def readyz(self, _: "Request") -> "Response":
        """Answer ``/readyz``: 200 while requests are taken, else 503."""
        from starlette.responses import Response

        return Response(json_bytes({"ready": self.ready}), 200 if self.ready else 503, media_type=JSON)


JSON = "application/json"

# The header of answers by a model that its file does not hold any more.
STALE_HEADER = {"Deep-Model-File": "changed"}

# The note in the description of the model once its file is another.
OTHER_FILE_NOTE = "The model file has changed or is gone. Restart the server to use the new one."


def create_app(model: Model, options: CheckOptions | None = None) -> "Starlette":
    """Return the application that serves a model: ``POST /v1/check``, ``GET /v1/model``, ``/healthz``, OpenAPI.

    At ``/`` is a page for people. The application is to be run behind a :class:`deep.integrations.serve.Guard`, as
    :func:`deep.integrations.serve.run_server` does.

    Parameters
    ----------
    model : Model
        Gives every claim its P.
    options : CheckOptions, optional
        Prior, judges and limits; by default a model whose judges ask an LLM is refused.

    Raises
    ------
    InputError
        A judge of the model cannot be run here.
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    with needs_extra("serve", what="A server"):
        from starlette.requests import Request
        from starlette.responses import Response
    meter, setup = Meter(), options or CheckOptions()
    checker = Checker(model, replace(setup, on_scored=call_both(meter.scored, setup.on_scored)))
    door = McpEndpoint(model, checker) if checker.options.mcp else None

    @asynccontextmanager
    async def lifespan(_: "Starlette") -> AsyncIterator[None]:
        await checker.open()
        async with nullcontext() if door is None else door.open():
            meter.ready = True
            yield
            meter.ready = False
        checker.close()

    about = model_answer(model, checker.plan, checker.options.score)
    notes = model.fit_report["notes"]
    assert isinstance(notes, list)  # as every fit writes them
    file = None if checker.options.model_file is None else ServedFile(model, checker.options.model_file)
    described = json_bytes(contract())

    async def check(request: Request) -> Response:
        return await meter.answered(checked(request))

    async def checked(request: Request) -> Response:
        pairs, several = read_pairs(read_json(await request.body()), checker.options)
        stale = STALE_HEADER if file is not None and file.changed() else None
        return Response(await _answer_body(checker, pairs, several=several), media_type=JSON, headers=stale)

    async def describe(_: Request) -> Response:
        changes = [OTHER_FILE_NOTE] if file is not None and file.changed() else []
        return Response(json_bytes({**about, "notes": [*changes, *notes]}), media_type=JSON)

    async def openapi(_: Request) -> Response:
        return Response(described, media_type=JSON)

    async def healthz(_: Request) -> Response:
        extra = {"model_file": "changed"} if file is not None and file.changed() else {}
        return Response(json_bytes({"status": "ok", **extra}), media_type=JSON)

    texts = {"/": _page("check.html")}
    texts |= {f"/page/{name}": page_asset(name) for name in ("parts.js", "report.css")}
    texts |= {f"/page/{name}": _page(name) for name in ("check.css", "check.js")}
    watched = partial(watch, model, prior=checker.options.score.prior)
    app = make_app(texts, {"/page/file": pairs_of_file, "/page/watch": watched}, lifespan=lifespan)
    app.add_route("/v1/check", check, methods=["POST"])
    routes = {"/v1/model": describe, "/openapi.json": openapi, "/metrics": meter.metrics}
    for path, answer in (routes | {"/healthz": healthz, "/readyz": meter.readyz}).items():
        app.add_route(path, answer, methods=["GET"])
    if door is not None:
        for path in ("/mcp", "/mcp/"):  # many clients follow no redirect
            app.router.add_route(path, door, methods=["POST"])  # type: ignore[arg-type]  # an application
    return app


def call_both(first: Callable[[Scored], object], then: Callable[[Scored], object] | None) -> Callable[[Scored], object]:
    """Return a function that calls one, and the other if there is one."""
    return first if then is None else lambda one: (first(one), then(one))


async def _answer_body(checker: Checker, pairs: Sequence[tuple[str | None, Example]], *, several: bool) -> bytes:
    """Return the body of the answer to one request.

    Raises
    ------
    WebError
        The budget has no room for all that the judges would ask; what there is, is told.
    """
    answers = await checker.check([pair for _, pair in pairs])
    bodies = [_named(name, answer.body) for (name, _), answer in zip(pairs, answers, strict=True)]
    lacking = sum(not answer.within_budget for answer in answers)
    if lacking:
        message = f"The budget must allow the judges' requests. It did not for {lacking} of {len(bodies)} pairs. "
        message += "`results` has the others; a judge that was not asked counts as failed."
        raise WebError(402, "budget", message, more={"results": [json.loads(answer) for answer in bodies]})
    return b'{"results":[' + b",".join(bodies) + b"]}" if several else bodies[0]


def _named(name: str | None, answer: bytes) -> bytes:
    """Return an answer with the id of its pair put first."""
    return b'{"id":' + json_bytes(name) + b"," + answer[1:]


VOTE_SCHEMA: JsonSchema = {"enum": [1, 0, None]}


class McpEndpoint:
    """Answers agents that call tools: check a claim, score votes, the verdict of a dataset.

    Parameters
    ----------
    served : Model
        The model by which the tools score; the checker's own.
    checker : Checker
        What answers ``/v1/check``: its budget, ledger and bounds are those of the tools.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[mcp]`` is not installed.
    """

    def __init__(self, served: "model.Model", checker: Checker) -> None:
        with needs_extra("mcp", what="`mcp`"):
            from mcp.server import Server
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
        self._model, self._checker, self._most = served, checker, checker.options.most_pairs
        self._tools = {
            "check_claim": (PAIR_SCHEMA, self._check),
            "score_votes": (self._schema(), self._score),
            "dataset_verdict": (self._schema(), self._verdict),
        }
        logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # its lines may hold what clients sent
        server = Server(
            "deep",
            version=__version__,
            instructions=AGENTS["instructions"],
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        # The guard in front has bounded the body, and knows the hosts that may ask.
        self._sessions = StreamableHTTPSessionManager(
            server, json_response=True, stateless=True, max_request_body_size=1 << 40
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the door open."""
        async with self._sessions.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one POST, as an application of its own, whose body is read by the rules of all routes."""
        from starlette.requests import Request

        body = await Request(scope, receive).body()
        read_json(body)
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return unread.pop() if unread else await receive()

        await self._sessions.handle_request(scope, receive_again, send)

    def _schema(self) -> JsonSchema:
        votes = _schema_of({name: _answers(self._model.scales.get(name, BINARY)) for name in self._model.voter_names})
        item = {"id": {"type": "string", "maxLength": LONGEST_ID}, "votes": votes, "label": VOTE_SCHEMA}
        listed = {"type": "array", "minItems": 1, "maxItems": self._most, "items": _schema_of(item, "votes")}
        return _schema_of({"items": listed}, "items")

    async def _list(self, _: object, __: object) -> Any:
        from mcp_types import ListToolsResult, Tool, ToolAnnotations

        hints = ToolAnnotations(read_only_hint=True, open_world_hint=self._checker.scorer.asks)
        tools = [
            Tool(name=name, description=AGENTS["tools"][name], input_schema=schema, annotations=hints)
            for name, (schema, _) in self._tools.items()
        ]
        return ListToolsResult(tools=tools)

    async def _call(self, _: object, params: Any) -> "CallToolResult":
        """Return the answer of a tool, or the one error in its place."""
        from mcp_types import CallToolResult, TextContent

        try:
            if params.name not in self._tools:
                raise refusal(f"`name` must be one of {', '.join(self._tools)}. Got another tool.")
            result = await self._tools[params.name][1](params.arguments or {})
        except WebError as error:
            result = {"error": {"code": error.code, "message": error.message, **error.more}}
        except DeepError as error:
            result = {"error": {"code": "invalid", "message": str(error)}}
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
        return CallToolResult(
            content=[TextContent(type="text", text=text)], structured_content=result, is_error="error" in result
        )

    async def _check(self, arguments: JsonReply) -> JsonReply:
        """Answer as ``/v1/check`` does."""
        pairs, _ = read_pairs(arguments, self._checker.options)
        (answer,) = await self._checker.check([pair for _, pair in pairs])
        result: JsonReply = {"id": pairs[0][0], **json.loads(answer.body)}
        if not answer.within_budget:
            message = "The budget must allow the judges' requests. It did not; `result` has the answers so far."
            raise WebError(402, "budget", message, more={"result": result})
        return result

    async def _score(self, arguments: JsonReply) -> JsonReply:
        votes = self._matrix(arguments)
        prior = self._checker.options.score.prior
        scores = await asyncio.to_thread(self._model.scores_of, votes, prior=prior, streamed=True)
        return {
            "results": [{"id": str(name), **row} for name, row in zip(votes.item_ids, scores.records(), strict=True)]
        }

    async def _verdict(self, arguments: JsonReply) -> JsonReply:
        from deep.report import verdict  # which loads all that reports are made of

        votes, prior = self._matrix(arguments), self._checker.options.score.prior
        result = await asyncio.to_thread(verdict, self._model, votes, prior=prior)
        tally = result.tally.as_dict()
        lowest: Any = tally["lowest"]  # NaN, where there is no interval, is null in JSON
        return {
            "says": list(result.lines()),
            "share": None
            if result.share is None
            else {name: getattr(result.share, name) for name in ("estimate", "low", "high")},
            "tests": [{"name": badge.name, "level": badge.level, "says": badge.says} for badge in result.badges],
            **tally,
            "lowest": [{key: None if value != value else value for key, value in item.items()} for item in lowest],
        }

    def _matrix(self, arguments: JsonReply) -> VoteMatrix:
        """Return the votes of a list of items; a judge that is not named has none."""
        items = arguments.get("items")
        if arguments.keys() != {"items"} or not isinstance(items, list) or not 1 <= len(items) <= self._most:
            raise refusal(f"`items` must be a list of 1 to {self._most:,} objects, and the one argument. Got another.")
        names = self._model.voter_names
        scales = [self._model.scales.get(name, BINARY) for name in names]
        rows = [_item(item, names, scales, f" in item {number}") for number, item in enumerate(items)]
        ids = [str(number) if item.get("id") is None else item["id"] for number, item in enumerate(items)]
        *votes, labels = zip(*rows, strict=True)
        datasets = np.full(len(ids), self._checker.options.dataset, dtype=object)
        answers = np.array(votes, dtype=np.float64).T
        if self._model.scales:
            return VoteMatrix(answers, ids, names, datasets, labels, scales=scales)
        return VoteMatrix(np.nan_to_num(answers, nan=ABSTAIN).astype(np.int8), ids, names, datasets, labels)


def _schema_of(properties: JsonSchema, *required: str) -> JsonSchema:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def _answers(scale: Scale) -> JsonSchema:
    """Return the schema of a judge's answers: votes, words, or numbers of its scale."""
    if scale.binary or scale.words:
        return VOTE_SCHEMA if scale.binary else {"enum": [*scale.words, None]}
    low, high = sorted((scale.low, scale.high))
    return {"type": ["number", "null"], "minimum": low, "maximum": high}


def _item(item: object, names: tuple[str, ...], scales: Sequence[Scale], where: str) -> list[float]:
    """Return the answers on an item in the judges' order, NaN for none, and its label."""
    if not isinstance(item, dict) or not {"votes"} <= item.keys() <= {"id", "label", "votes"}:
        raise refusal(f"An item must be an object with votes and, if wanted, id and label. Got another{where}.")
    votes, name = item["votes"], item.get("id")
    if not isinstance(votes, dict) or not votes.keys() <= set(names):
        raise refusal(f"`votes` must have keys of the model's judges: {', '.join(names)}. Got another{where}.")
    if name is not None and (not isinstance(name, str) or not name.strip() or len(name) > LONGEST_ID):
        raise refusal(f"`id` must be text of at most {LONGEST_ID} characters. Got another{where}.")
    label = item.get("label")
    if not (is_vote(label) and all(is_vote(votes.get(j)) for j, s in zip(names, scales, strict=True) if s.binary)):
        raise refusal(f"A vote and a label must be 1, 0 or null. Got another{where}.")
    answers = [np.nan if votes.get(j) is None else s.read(votes[j]) for j, s in zip(names, scales, strict=True)]
    off = [j for j, answer in zip(names, answers, strict=True) if votes.get(j) is not None and np.isnan(answer)]
    if off:
        raise refusal(f"A grade must be on its judge's scale, {scales[names.index(off[0])]}. Got another{where}.")
    return [*answers, ABSTAIN if label is None else label]
