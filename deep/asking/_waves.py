"""Programs of many calls, asked side by side in waves, and what they come to."""

from collections.abc import Callable, Iterable
from typing import Any

from deep.asking._replay import Entry, ProgramId, Replay
from deep.asking._run import Outcome, Settings, ask
from deep.llm import History

__all__ = ["ProgramId", "run_programs"]


def run_programs(
    programs: Callable[[], Iterable[Entry]], settings: Settings, *, endpoint: str | None = None
) -> tuple[Outcome, dict[ProgramId, Any]]:
    """Ask whatever programs want to know and the ledger lacks, and return what each comes to.

    A wave asks all questions that can be asked now, side by side; the answers lead to the next wave. Questions that
    are the same, of whatever program, are one request. Nothing is held but the ledger, so that a run that was
    stopped, killed or out of budget goes on where it was when it is called again.

    Parameters
    ----------
    programs : callable
        Returns, fresh and the same ones every time, what each program works for, the model that it asks, and the
        program.
    settings : Settings
    endpoint : str, optional
        The endpoint's name in the ledger; its address where none is given.

    Returns
    -------
    outcome : Outcome
        With what was asked and paid; `stopped` says why the run ended before its end.
    values : dict
        What each program returns, by what it works for; empty where the run was stopped.

    Raises
    ------
    Exception
        Whatever a program raises.
    """
    name = settings.base_url if endpoint is None else endpoint
    outcome = ask(settings, endpoint=name, programs=programs)
    if outcome.stopped is not None:
        return outcome, {}
    values = {}
    with History(settings.ledger) as history:
        for identity, value in Replay(programs, name, history).values():
            if isinstance(value, Exception):
                raise value
            values[identity] = value
    return outcome, values
