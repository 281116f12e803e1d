"""The application: the routes of a served model."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from deep import __version__
from deep.model import Model
from deep.serve.check._answers import model_answer
from deep.serve.check._checker import Checker, PairText
from deep.serve.check._contract import CHECK, HEALTH, MODEL
from deep.serve.check._options import CheckOptions
from deep.serve.check._page import install_page
from deep.serve.check._requests import read_pairs
from deep.serve.web import WebError, install_errors, json_bytes, need_serve, read_json

if TYPE_CHECKING:
    from fastapi import FastAPI

JSON = "application/json"


def create_app(model: Model, options: CheckOptions | None = None) -> "FastAPI":
    """Return the application that serves a model: ``POST /v1/check``, ``GET /v1/model``, ``/healthz``, OpenAPI.

    At ``/`` is a page for people. The application is to be run behind a :class:`deep.serve.web.Guard`, as
    :func:`deep.serve.run_server` does.

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
    with need_serve():
        from fastapi import FastAPI, Request, Response
    checker = Checker(model, options)

    @asynccontextmanager
    async def lifespan(_: "FastAPI") -> AsyncIterator[None]:
        await checker.open()
        yield
        checker.close()

    about = json_bytes(model_answer(model, checker.plan, checker.options.score))
    app = FastAPI(title="deep", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    install_errors(app)

    async def check(request: Request) -> Response:
        pairs, several = read_pairs(read_json(await request.body()), checker.options.most_pairs)
        return Response(await _checked(checker, pairs, several=several), media_type=JSON)

    async def describe() -> Response:
        return Response(about, media_type=JSON)

    async def healthz() -> Response:
        return Response(b'{"status":"ok"}', media_type=JSON)

    route: dict[str, Any] = {"response_model": None}
    # FastAPI's own route is for OpenAPI alone: there are no dependencies and no models to look for in each request.
    app.router.add_route("/v1/check", check, methods=["POST"])
    app.add_api_route("/v1/check", check, methods=["POST"], **CHECK, **route)
    app.add_api_route("/v1/model", describe, methods=["GET"], **MODEL, **route)
    app.openapi = partial(_contract, app)  # type: ignore[method-assign]
    app.add_api_route("/healthz", healthz, methods=["GET"], **HEALTH, **route)
    install_page(app, model)
    return app


def _contract(app: "FastAPI") -> dict[str, Any]:
    """Return FastAPI's description of the routes with the answers' examples whole: it leaves out what is null."""
    found = type(app).openapi(app)
    answers = found["paths"]["/v1/check"]["post"]["responses"]
    answers["200"]["content"] = CHECK["responses"][200]["content"]
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
