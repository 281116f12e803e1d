"""Judges that need several calls for one example, by name."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from deep.exceptions import InputError
from deep.prompt_pool._program import Program
from deep.prompt_pool._tiered import TieredJudge
from deep.prompt_pool._tiered_list import ListJudge
from deep.prompt_pool.stepwise import DirectJudge, StepwiseJudge
from deep.records import Example, Judgment

__all__ = ["JUDGES", "StagedJudge", "load_judge"]


class StagedJudge(Protocol):
    """A judge whose questions depend on the answers before.

    A judge that can bound its calls also has ``most_calls(example) -> int``, for the estimate of a dry run.
    """

    @property
    def name(self) -> str:
        """What it is called in `JUDGES`."""

    @property
    def version(self) -> str:
        """SHA-256 of all that decides what it asks and how it reads the answers, 64 hexadecimal digits."""

    def voter(self, model: str) -> str:
        """Return the name of the column that this judge and `model` fill: name, 8 digits of the version, model."""

    def program(self, example: Example) -> Program[Judgment]:
        """Return the questions about one example, as a program that ends with a judgment."""


JUDGES: Mapping[str, Callable[[], StagedJudge]] = {
    "direct": DirectJudge,
    "listed": ListJudge,
    "stepwise": StepwiseJudge,
    "tiered": TieredJudge,
    "tiered:grounded": TieredJudge,
    "tiered:irrefutable": partial(TieredJudge, level="irrefutable"),
    "tiered:rational": partial(TieredJudge, level="rational"),
}
"""What makes each judge, by the name that `deep votes --judge` takes."""


def load_judge(name: str) -> StagedJudge:
    """Return a judge by its name.

    Raises
    ------
    InputError
        There is no such judge.

    Examples
    --------
    >>> from deep.prompt_pool import load_judge
    >>> load_judge("one-shot")
    Traceback (most recent call last):
    deep.exceptions.InputError: `judge` must be one of direct, ... Got 'one-shot'.
    """
    if name not in JUDGES:
        raise InputError(f"`judge` must be one of {', '.join(sorted(JUDGES))}. Got {name!r}.")
    return JUDGES[name]()
