"""Judges that need several calls for one example, by name."""

from collections.abc import Callable, Mapping
from functools import partial

from deep.exceptions import InputError
from deep.judge import Judge
from deep.prompt_pool._auto_label import AutoLabelJudge
from deep.prompt_pool._tiered import TieredJudge
from deep.prompt_pool._tiered_list import ListJudge
from deep.prompt_pool.stepwise import DirectJudge, StepwiseJudge

JUDGES: Mapping[str, Callable[[], Judge]] = {
    "auto": AutoLabelJudge,
    "auto:grounded": AutoLabelJudge,
    "auto:irrefutable": partial(AutoLabelJudge, level="irrefutable"),
    "auto:rational": partial(AutoLabelJudge, level="rational"),
    "direct": DirectJudge,
    "listed": ListJudge,
    "stepwise": StepwiseJudge,
    "tiered": TieredJudge,
    "tiered:grounded": TieredJudge,
    "tiered:irrefutable": partial(TieredJudge, level="irrefutable"),
    "tiered:rational": partial(TieredJudge, level="rational"),
}
"""Constructors of the staged judges, by the name that `deep votes --judge` takes."""


def load_judge(name: str) -> Judge:
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
    deep.exceptions.InputError: `judge` must be one of auto, ... Got 'one-shot'.
    """
    if name not in JUDGES:
        raise InputError(f"`judge` must be one of {', '.join(sorted(JUDGES))}. Got {name!r}.")
    return JUDGES[name]()
