"""The page on which people label, and what it asks of the desk."""

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING

from deep._util.files import JsonObject
from deep.exceptions import InputError
from deep.integrations.labeling._desk import LabelDesk
from deep.integrations.labeling._label_log import LabelLogLostError
from deep.integrations.serve.web import WebError, install_errors, json_bytes, need_serve, read_json
from deep.report import page_asset

if TYPE_CHECKING:
    from fastapi import FastAPI

LABELS = {"1": 1, "0": 0, "undecided": -1, "skip": None}
"""What a page may answer."""

LONGEST_NAME = 100
"""Characters of a person's name."""

SCRIPT, STYLE = "text/javascript; charset=utf-8", "text/css; charset=utf-8"


def label_app(desk: LabelDesk, *, person: str | None = None) -> "FastAPI":
    """Return the application of a desk: a page, and JSON that it alone asks for.

    Parameters
    ----------
    desk : LabelDesk
    person : str, optional
        The name with which the page begins.

    Raises
    ------
    MissingDependencyError
        ``deep-judges[serve]`` is not installed.
    """
    with need_serve():
        from fastapi import FastAPI
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import Request
        from starlette.responses import Response
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    install_errors(app)

    def serve_text(path: str, text: str, media_type: str) -> None:
        async def give(_: Request) -> Response:
            return Response(text, media_type=media_type)

        app.add_route(path, give, methods=["GET"])

    def serve_call(path: str, call: Callable[[JsonObject], JsonObject]) -> None:
        async def respond(request: Request) -> Response:
            asked = _fields(await request.body())
            return Response(json_bytes(await run_in_threadpool(_kept, call, asked)), media_type="application/json")

        app.add_route(path, respond, methods=["POST"])

    serve_text("/", _asset("label.html"), "text/html; charset=utf-8")
    serve_text("/label.css", page_asset("report.css") + _asset("label.css"), STYLE)
    serve_text("/parts.js", page_asset("parts.js"), SCRIPT)
    serve_text("/label.js", _asset("label.js"), SCRIPT)
    serve_call("/start", lambda _: desk.start() | {"person": person})
    serve_call("/state", lambda asked: desk.state(_name(asked)))
    serve_call(
        "/answer", lambda asked: desk.answer(_name(asked), _text(asked, "item_id"), _label(asked), _text(asked, "note"))
    )
    serve_call("/undo", lambda asked: desk.undo(_name(asked)))
    serve_call("/again", lambda asked: desk.again(_name(asked)))
    serve_call("/reveal", lambda asked: desk.reveal(_name(asked), _text(asked, "item_id")))
    serve_call("/enough", lambda _: desk.enough())
    return app


def _kept(call: Callable[[JsonObject], JsonObject], asked: JsonObject) -> JsonObject:
    """Return the answer of a call; a disk that takes nothing, or a log that others wrote to, is no bug."""
    try:
        return call(asked)
    except LabelLogLostError as error:
        raise WebError(507, "log_lost", str(error)) from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        said = f"This could not be written: {why}. Nothing was changed; make room, and answer again."
        raise WebError(507, "not_kept", said) from None


def _fields(body: bytes) -> JsonObject:
    found = read_json(body)
    if not isinstance(found, dict):
        raise InputError("`body` must be a JSON object. Got another value.")
    return found


def _text(asked: JsonObject, name: str) -> str:
    value = asked.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"`{name}` must be text. Got another value.")
    return value


def _name(asked: JsonObject) -> str:
    name = _text(asked, "person").strip()  # the desk takes it in one spelling
    if len(name) > LONGEST_NAME:
        raise InputError(f"`person` must have at most {LONGEST_NAME} characters. Got {len(name):,}.")
    return name


def _label(asked: JsonObject) -> int | None:
    name = _text(asked, "label")
    if name not in LABELS:
        raise InputError(f"`label` must be one of {', '.join(sorted(LABELS))}. Got {name[:60]!r}.")
    return LABELS[name]


def _asset(name: str) -> str:
    return (files("deep.integrations.labeling") / "templates" / name).read_text(encoding="utf-8")
