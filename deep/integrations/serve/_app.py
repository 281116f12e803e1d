"""The application: the routes of a served model."""

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from deep import __version__, datasets, evaluate
from deep.exceptions import needs_extra
from deep.integrations.serve import _answers
from deep.integrations.serve._checker import Checker, PairText, is_vote, read_pairs
from deep.integrations.serve._exchange import WebError, add_call, add_text, install_errors, json_bytes, read_json
from deep.integrations.serve._mcp import AgentDoor
from deep.model import Model
from deep.records import ABSTAIN, VoteMatrix
from deep.report import page_asset

if TYPE_CHECKING:
    from fastapi import FastAPI


SHARED = ("parts.js", "report.css")
OWN = ("check.css", "check.js")


def install_page(app: "FastAPI", model: Model, prior: float | None) -> None:
    """Add the page at `/`, its files, and the two routes that it asks.

    Parameters
    ----------
    app : FastAPI
    model : Model
    prior : float, optional
        Share of consistent items, where it is known.
    """
    add_text(app, "/", _own("check.html"))
    for name in SHARED:
        add_text(app, f"/page/{name}", page_asset(name))
    for name in OWN:
        add_text(app, f"/page/{name}", _own(name))
    add_call(app, "/page/file", pairs_of_file)
    add_call(app, "/page/watch", lambda body: watch(model, body, prior))


def _own(name: str) -> str:
    return (files("deep.integrations.serve") / "templates" / name).read_text(encoding="utf-8")


def pairs_of_file(body: object) -> _answers.JsonReply:
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
        raise WebError(422, "invalid", "The body must be an object with the texts name and text.")
    name, text = _plain_csv(body["name"], body["text"])
    examples = datasets.examples_from_text(text.encode("utf-8", "surrogatepass"), name)
    examples.check(strict=True)
    pairs = [{"source": one.source, "claim": one.claim, "id": one.example_id[:200]} for one in examples]
    for pair, example in zip(pairs, examples, strict=True):
        if example.question is not None:
            pair["question"] = example.question
    return {"pairs": pairs}


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


def watch(model: Model, body: object, prior: float | None = None) -> _answers.JsonReply:
    """Compare the votes on one item, or on several, with those of the training data, in figures and sentences.

    Several are scored as one dataset, as `deep score` does it, at the share of consistent items that their votes tell.

    Parameters
    ----------
    model : Model
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
        found = evaluate.likeness(model, rows[0])
        return {"n": 1, "unusual": found.unusual, "says": found.sentences(), "likeness": found.as_dict()}
    n = len(rows)
    matrix = VoteMatrix(rows, [str(i) for i in range(n)], model.voter_names, ["file"] * n, [ABSTAIN] * n)
    drift = evaluate.drift_report(model, matrix)
    told: dict[str, object] = {"n": n, "unusual": drift.stale, "says": drift.sentences(), "drift": drift.as_dict()}
    return told | _scored(model, matrix, prior, drift.moved)


def _scored(model: Model, matrix: VoteMatrix, prior: float | None, moved: Sequence[str]) -> _answers.JsonReply:
    """Return the scores of the items of one dataset, and the verdict on them in the words of all pages."""
    found = model.scores_of(matrix, prior=prior)
    counts = evaluate.DecisionCounts()
    counts.add(matrix.datasets, matrix.example_ids, found.columns())
    share = found.prior.estimate, found.prior.low, found.prior.high
    trust = evaluate.trust_words([evaluate.drift_badge(moved)], 0)
    then = "Next: look at the lowest P, and label 30 of these claims."
    return {
        "scores": found.records(),
        "verdict": [evaluate.suspect_words(counts), evaluate.share_words(share), trust, then],
    }


def _rows(body: object, n_voters: int) -> list[list[int]]:
    votes = body.get("votes") if isinstance(body, Mapping) else None
    rows = votes if isinstance(votes, list) else []
    fits = all(isinstance(row, list) and len(row) == n_voters and all(map(is_vote, row)) for row in rows)
    if not rows or not fits:
        raise WebError(422, "invalid", f"`votes` must be a list of lists of {n_voters} votes: 1, 0 or null.")
    return [[ABSTAIN if vote is None else vote for vote in row] for row in rows]


JSON = "application/json"

STALE = {"Deep-Model-File": "changed"}
"""The header of answers by a model that its file does not hold any more."""

OTHER_FILE = "The model file was changed or removed since it was read: start again to serve what it holds now."


def create_app(model: Model, options: _answers.CheckOptions | None = None) -> "FastAPI":
    """Return the application that serves a model: ``POST /v1/check``, ``GET /v1/model``, ``/healthz``, OpenAPI.

    At ``/`` is a page for people. The application is to be run behind a :class:`deep.integrations.serve.Guard`, as
    :func:`deep.integrations.serve.run_server` does.

    Parameters
    ----------
    model : Model
    options : CheckOptions, optional

    Raises
    ------
    InputError
        A judge of the model cannot be run here.
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    with needs_extra("serve", what="A server"):
        from fastapi import FastAPI, Request, Response
    checker = Checker(model, options)
    door = AgentDoor(model, checker) if checker.options.mcp else None

    @asynccontextmanager
    async def lifespan(_: "FastAPI") -> AsyncIterator[None]:
        await checker.open()
        async with nullcontext() if door is None else door.open():
            yield
        checker.close()

    about = _answers.model_answer(model, checker.plan, checker.options.score)
    notes = model.report["notes"]
    assert isinstance(notes, list)  # as every fit writes them
    file = None if checker.options.model_file is None else _answers.ServedFile(model, checker.options.model_file)
    app = FastAPI(title="deep", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    install_errors(app)

    async def check(request: Request) -> Response:
        pairs, several = read_pairs(read_json(await request.body()), checker.options.most_pairs)
        stale = STALE if file is not None and file.changed() else None
        return Response(await _checked(checker, pairs, several=several), media_type=JSON, headers=stale)

    async def describe() -> Response:
        told = [OTHER_FILE] if file is not None and file.changed() else []
        return Response(json_bytes({**about, "notes": [*told, *notes]}), media_type=JSON)

    async def healthz() -> Response:
        told = {"model_file": "changed"} if file is not None and file.changed() else {}
        return Response(json_bytes({"status": "ok", **told}), media_type=JSON)

    route: dict[str, Any] = {"response_model": None}
    # FastAPI's own route is for OpenAPI alone: there are no dependencies and no models to look for in each request.
    app.router.add_route("/v1/check", check, methods=["POST"])
    app.add_api_route("/v1/check", check, methods=["POST"], **_answers.CHECK, **route)
    app.add_api_route("/v1/model", describe, methods=["GET"], **_answers.MODEL, **route)
    app.openapi = partial(_contract, app)  # type: ignore[method-assign]
    if door is not None:
        for path in ("/mcp", "/mcp/"):  # many clients follow no redirect
            app.router.add_route(path, door, methods=["POST"])  # type: ignore[arg-type]  # an application
    app.add_api_route("/healthz", healthz, methods=["GET"], **_answers.HEALTH, **route)
    install_page(app, model, checker.options.score.prior)
    return app


def _contract(app: "FastAPI") -> dict[str, Any]:
    """Return FastAPI's description of the routes with the answers' examples whole: it leaves out what is null."""
    found = type(app).openapi(app)
    answers = found["paths"]["/v1/check"]["post"]["responses"]
    answers["200"]["content"] = _answers.CHECK["responses"][200]["content"]
    return found


async def _checked(checker: Checker, pairs: Sequence[tuple[str | None, PairText]], *, several: bool) -> bytes:
    """Return the body of the answer to one request.

    Raises
    ------
    WebError
        The budget has no room for all that the judges would ask; what there is, is told.
    """
    answers = await checker.check([pair for _, pair in pairs])
    told = [_named(name, answer.body) for (name, _), answer in zip(pairs, answers, strict=True)]
    lacking = sum(not answer.within_budget for answer in answers)
    if lacking:
        said = f"The budget must have room for what the judges ask. It had none for {lacking} of {len(told)} pairs; "
        said += "`results` has what there is, a judge that was not asked as failed."
        raise WebError(402, "budget", said, more={"results": [json.loads(answer) for answer in told]})
    return b'{"results":[' + b",".join(told) + b"]}" if several else told[0]


def _named(name: str | None, answer: bytes) -> bytes:
    """Return an answer with the id of its pair put first."""
    return b'{"id":' + json_bytes(name) + b"," + answer[1:]
