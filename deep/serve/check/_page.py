"""The page of a served model: its files, and what it asks besides P: the pairs of a file, how familiar votes are."""

import asyncio
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING

from deep import datasets, evaluate
from deep.model import Model
from deep.records import ABSTAIN, VoteMatrix
from deep.report import page_asset
from deep.serve.web import WebError, json_bytes, read_json

if TYPE_CHECKING:
    from fastapi import FastAPI, Response

JsonObject = dict[str, object]

TYPES = {".css": "text/css", ".html": "text/html", ".js": "text/javascript"}
SHARED = ("parts.js", "report.css")
OWN = ("check.css", "check.js")


def install_page(app: "FastAPI", model: Model) -> None:
    """Add the page at `/`, its files, and the two routes that it asks.

    Parameters
    ----------
    app : FastAPI
    model : Model
    """
    contents = {name: page_asset(name) for name in SHARED} | {name: _own(name) for name in OWN}
    app.add_api_route("/", _file("check.html", _own("check.html")), include_in_schema=False)
    for name, content in contents.items():
        app.add_api_route(f"/page/{name}", _file(name, content), include_in_schema=False)
    app.add_api_route("/page/file", _work(pairs_of_file), methods=["POST"], include_in_schema=False)
    app.add_api_route("/page/watch", _work(lambda body: watch(model, body)), methods=["POST"], include_in_schema=False)


def _own(name: str) -> str:
    return (files("deep.serve.check") / "templates" / name).read_text(encoding="utf-8")


def _file(name: str, content: str) -> Callable[[], "Response"]:
    from fastapi import Response

    kind, body = TYPES[name[name.rindex(".") :]], content.encode()

    def send() -> Response:
        return Response(body, media_type=kind)

    return send


def _work(answer: Callable[[object], JsonObject]) -> Callable[..., object]:
    """Return a route that answers JSON with JSON, worked out in a thread."""
    from fastapi import Request, Response

    async def respond(request: Request) -> Response:
        body = read_json(await request.body())
        return Response(json_bytes(await asyncio.to_thread(answer, body)), media_type="application/json")

    return respond


def pairs_of_file(body: object) -> JsonObject:
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
    >>> from deep.serve.check._page import pairs_of_file
    >>> pairs_of_file({"name": "new.csv", "text": "source,claim\nIt rained.,It was wet.\n"})
    {'pairs': [{'source': 'It rained.', 'claim': 'It was wet.', 'id': '1'}]}
    """
    if not (isinstance(body, Mapping) and all(isinstance(body.get(key), str) for key in ("name", "text"))):
        raise WebError(422, "invalid", "The body must be an object with the texts name and text.")
    examples = datasets.examples_from_text(body["text"].encode("utf-8", "surrogatepass"), body["name"])
    examples.check()
    return {"pairs": [{"source": each.source, "claim": each.claim, "id": each.example_id[:200]} for each in examples]}


def watch(model: Model, body: object) -> JsonObject:
    """Compare the votes on one item, or on several, with those of the training data, in figures and sentences.

    Parameters
    ----------
    model : Model
    body : mapping
        `votes`: a list of items, each a list of 1, 0 or null in the order of the model's judges.

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
    return {"n": n, "unusual": drift.stale, "says": drift.sentences(), "drift": drift.as_dict()}


def _rows(body: object, n_voters: int) -> list[list[int]]:
    votes = body.get("votes") if isinstance(body, Mapping) else None
    if not isinstance(votes, list) or not votes or not all(_is_row(row, n_voters) for row in votes):
        raise WebError(422, "invalid", f"`votes` must be a list of lists of {n_voters} votes: 1, 0 or null.")
    return [[ABSTAIN if vote is None else vote for vote in row] for row in votes]


def _is_row(row: object, n_voters: int) -> bool:
    votes = row if isinstance(row, list) else ()
    return len(votes) == n_voters and all(vote is None or (type(vote) is int and vote in (0, 1)) for vote in votes)
