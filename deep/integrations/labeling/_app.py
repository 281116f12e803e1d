"""The page on which people label, and what it asks of the desk."""

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING

from deep._util.files import JsonObject
from deep.exceptions import InputError, needs_extra
from deep.integrations.labeling._desk import LabelDesk
from deep.integrations.serve import WebError, add_call, add_text, install_errors
from deep.report import page_asset

if TYPE_CHECKING:
    from fastapi import FastAPI

LABELS = {"1": 1, "0": 0, "undecided": -1, "skip": None}
"""What a page may answer."""

LONGEST_NAME = 100
"""Characters of a person's name."""


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
    with needs_extra("serve", what="A server"):
        from fastapi import FastAPI
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    install_errors(app)

    add_text(app, "/", _asset("label.html"))
    add_text(app, "/label.css", page_asset("report.css") + _asset("label.css"))
    add_text(app, "/parts.js", page_asset("parts.js"))
    add_text(app, "/label.js", _asset("label.js"))
    calls: dict[str, Callable[[JsonObject], JsonObject]] = {
        "/start": lambda _: desk.start() | {"person": person},
        "/state": lambda asked: desk.state(_name(asked)),
        "/answer": lambda asked: desk.answer(
            _name(asked), _text(asked, "item_id"), _label(asked), _text(asked, "note")
        ),
        "/undo": lambda asked: desk.undo(_name(asked)),
        "/again": lambda asked: desk.again(_name(asked)),
        "/reveal": lambda asked: desk.reveal(_name(asked), _text(asked, "item_id")),
        "/enough": lambda _: desk.enough(),
    }
    for path, call in calls.items():
        add_call(app, path, partial(_kept, call))
    return app


def _kept(call: Callable[[JsonObject], JsonObject], asked: object) -> JsonObject:
    """Return the answer of a call; a disk that takes nothing is no bug."""
    if not isinstance(asked, dict):
        raise InputError("`body` must be a JSON object. Got another value.")
    try:
        return call(asked)
    except OSError as error:
        why = error.strerror or type(error).__name__
        said = f"This could not be written: {why}. Nothing was changed; make room, and answer again."
        raise WebError(507, "not_kept", said) from None


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
