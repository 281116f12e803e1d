"""Programs of many calls, asked side by side in waves, and their values."""

from collections.abc import Callable, Iterable
from typing import Any

from deep.asking._options import AskOptions
from deep.asking._progress import ProgressCallback
from deep.asking._replay import Entry, ProgramId, Replay
from deep.asking._run import RunOutcome, ask_requests
from deep.llm import History


def run_programs(
    programs: Callable[[], Iterable[Entry]],
    options: AskOptions,
    *,
    endpoint: str | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[RunOutcome, dict[ProgramId, Any]]:
    """Ask the questions of programs that the ledger lacks, and return the value of each program.

    A wave asks all questions that can be asked now, side by side; the answers lead to the next wave. Questions that
    are the same, of whatever program, are one request. Nothing is held but the ledger, so that a run that was
    stopped, killed or out of budget goes on where it was when it is called again.

    Parameters
    ----------
    programs : callable
        Returns, fresh and the same ones every time, the identity of each program, the LLM that it asks, and the
        program.
    options : AskOptions
    endpoint : str, optional
        The endpoint's name in the ledger; its address where none is given.

    Returns
    -------
    outcome : RunOutcome
        The counts of the run; `stopped` says why it ended before its end.
    values : dict
        The value of each program by its identity; empty where the run was stopped.

    Raises
    ------
    Exception
        Whatever a program raises.
    """
    name = options.public_url if endpoint is None else endpoint
    outcome = ask_requests(options, endpoint=name, programs=programs, progress=progress)
    if outcome.stopped is not None:
        return outcome, {}
    values = {}
    with History(options.ledger) as history:
        for identity, value in Replay(programs, name, history).values():
            if isinstance(value, Exception):
                raise value
            values[identity] = value
    return outcome, values
