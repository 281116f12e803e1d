"""How a model is served."""

from collections.abc import Callable
from dataclasses import dataclass, field

from deep.asking import AskOptions, Finder, Scored
from deep.exceptions import InputError
from deep.model import ScoreOptions


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How a model is served; all but the last three as `deep score` has them.

    Parameters
    ----------
    score : ScoreOptions, optional
        The prior, and whether judges of another version may stand in.
    finder : Finder, optional
        Where the model's judges are looked for.
    ask : AskOptions, optional
        The ledger, limits and budget of judges that ask LLMs; needed where there are some.
    endpoint : str, optional
        The endpoint's name in the ledger, if its address may change.
    dataset : str, default='served'
        The dataset of the pairs in the ledger; it is no part of what is asked.
    most_pairs : int, default=1000
        Pairs in one request.
    cache_bytes : int, default=8 MiB
        Answers to repeated pairs that are kept in memory; 0: none.
    no_text : bool, default=False
        Keep no text once a request is answered, neither in memory nor on disk; judges that ask LLMs are refused, for
        their ledger keeps what was asked.
    on_scored : callable, optional
        Called, from a thread, with each :class:`deep.asking.Scored` pair that the judges have read.

    Raises
    ------
    InputError
        A limit is out of range.
    """

    score: ScoreOptions = field(default_factory=ScoreOptions)
    finder: Finder = field(default_factory=Finder)
    ask: AskOptions | None = None
    endpoint: str | None = None
    dataset: str = "served"
    most_pairs: int = 1000
    cache_bytes: int = 1 << 23
    no_text: bool = False
    on_scored: Callable[[Scored], object] | None = None

    def __post_init__(self) -> None:
        if self.most_pairs < 1:
            raise InputError(f"`most_pairs` must be 1 or more. Got {self.most_pairs!r}.")
        if self.cache_bytes < 0:
            raise InputError(f"`cache_bytes` must be 0 or more. Got {self.cache_bytes!r}.")
