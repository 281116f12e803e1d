"""Repair turns: the requests that ask once more for the answers that replies to prompts lack."""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from deep.asking._options import AskOptions
from deep.asking._replay import offers_repair, repair_request
from deep.asking._vote_files import chunks

if TYPE_CHECKING:
    from deep.llm import History, Request

LONGEST_REPLY = "\U0001f600" * 10_000
"""The quotation that takes most: characters of four bytes, more of them than are quoted."""


def may_repair(options: AskOptions, history: "History | None", run: int | None = None) -> Callable[[int], bool]:
    """Return whether repair turns may be asked about the replies that a run has bought, for every run.

    Replies of a run without repair turns are read as they are, unless they are asked for by name: an older ledger is
    written out without a call.
    """
    if not options.repairs:
        return lambda _: False
    if options.repair:
        return lambda _: True
    repairing = {run, *(() if history is None else history.runs_with("repairs"))}
    return lambda owner: owner in repairing


def repair_requests(
    requests: "Iterable[Request]", history: "History", may: Callable[[int], bool]
) -> "Iterator[Request]":
    """Yield the repair turns of those of `requests` whose reply is unparsable.

    Parameters
    ----------
    requests : iterable of Request
        Questions of prompts.
    history : History
    may : callable
        Whether the replies that a run has bought may be repaired; a repair turn in the ledger is yielded in any case.
    """
    for chunk in chunks(requests):
        found = list(_offered(chunk, history))
        begun = history.rows([request.key for _, request in found])
        yield from (request for owner, request in found if may(owner) or request.key in begun)


def _offered(requests: "Iterable[Request]", history: "History") -> "Iterator[tuple[int, Request]]":
    """Yield the repair turn of each unparsable reply with the run that bought the reply."""
    asked = [(request.key, request) for request in requests if offers_repair(request)]
    rows = history.rows([key for key, _ in asked])
    unread = [(key, request) for key, request in asked if key in rows and rows[key]["reason"] == "unparsable"]
    answers = history.answers([key for key, _ in unread])
    for key, request in unread:
        reply = answers[key].reply
        # It was unparsable when it came; the reader may have learned to read it.
        if reply is not None and request.context.read(reply).reason == "unparsable":
            yield answers[key].owner, repair_request(request, reply.text)
