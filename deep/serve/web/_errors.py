"""The one shape of every error that a server of deep answers with."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deep.exceptions import DeepError, MissingDependencyError, printable

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request
    from starlette.responses import Response


class WebError(Exception):
    """A request that is refused.

    Parameters
    ----------
    status : int
        Of HTTP: 4xx where the client can mend it, 503 where it can come again.
    code : str
        A word for programs, such as ``too_large``.
    message : str
        One line for people, without any text of the request.
    headers : mapping of str to str, optional
    more : mapping, optional
        JSON values beside `code` and `message`.

    Examples
    --------
    >>> from deep.serve.web import WebError, error_body
    >>> error_body(WebError(413, "too_large", "The body must have at most 10 bytes."))
    b'{"error":{"code":"too_large","message":"The body must have at most 10 bytes."}}'
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, printable(message)
        self.headers, self.more = dict(headers or {}), dict(more or {})


def error_body(error: WebError) -> bytes:
    """Return the JSON of an error: ``{"error": {"code": ..., "message": ..., ...}}``."""
    said = {"code": error.code, "message": error.message, **error.more}
    return json.dumps({"error": said}, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


CODES = {404: "not_found", 405: "method_not_allowed", 422: "invalid"}
"""The codes of the statuses that the router itself answers with."""


BROKEN = "The server broke on this request, which is a bug of deep."


def install_errors(app: "FastAPI") -> None:
    """Let an application answer every error in the one shape: a :class:`WebError`, deep's own, and the router's."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    def respond(error: WebError) -> "Response":
        return Response(error_body(error), error.status, error.headers, media_type="application/json")

    async def web(_: "Request", error: Exception) -> "Response":
        assert isinstance(error, WebError)
        return respond(error)

    async def routed(_: "Request", error: Exception) -> "Response":
        assert isinstance(error, HTTPException)
        code = CODES.get(error.status_code, "refused")
        return respond(WebError(error.status_code, code, str(error.detail), headers=error.headers))

    async def ours(_: "Request", error: Exception) -> "Response":
        return respond(WebError(422, "invalid", str(error)))

    async def broken(_: "Request", __: Exception) -> "Response":
        return respond(WebError(500, "broken", BROKEN))

    app.add_exception_handler(Exception, broken)
    app.add_exception_handler(WebError, web)
    app.add_exception_handler(HTTPException, routed)
    app.add_exception_handler(DeepError, ours)


@contextmanager
def need_serve() -> Iterator[None]:
    """Say in one line which extra to install where a library of servers is missing.

    Raises
    ------
    MissingDependencyError
        FastAPI or uvicorn cannot be imported.
    """
    try:
        yield
    except ImportError as error:
        raise MissingDependencyError(
            f"A server needs a library that is not installed ({error}). Run: pip install 'deep-judges[serve]'."
        ) from None
