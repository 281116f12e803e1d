"""Members of several stacks, each fitted once: stacks that leave the same two datasets out need the same fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy.typing as npt

from deep.exceptions import InputError
from deep.model.chain import MapLike
from deep.model.linear import LabeledRows
from deep.model.score import Scorer
from deep.model.stack._members import members_for
from deep.model.stack._stack import Fits, fit_members, labeled_rows


@dataclass(frozen=True, eq=False)
class SharedFits:
    """Fitted members by the datasets that they never saw.

    Parameters
    ----------
    names : tuple of str
        All datasets.
    fitted : mapping of frozenset of str to mapping of str to Scorer
        By the datasets left out, and by member.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(0)
    >>> shared = fit_shared(votes.votes, votes.labels, groups=votes.datasets, targets=votes.dataset_names)
    >>> len(shared.fitted)
    10
    >>> sorted(shared.without("aggrefact-xsum"), key=str)
    [None, 'halueval-summarization', 'tofueval-mediasum', 'tofueval-meetingbank']
    """

    names: tuple[str, ...]
    fitted: Mapping[frozenset[str], Mapping[str, Scorer]]

    def without(self, *target: str) -> Fits:
        """Return the members of the stack of all datasets but `target`, as :meth:`deep.model.Stack.fit` takes them."""
        left = frozenset(target)
        rest = [name for name in self.names if name not in left]
        return {None: self.fitted[left], **{name: self.fitted[left | {name}] for name in rest}}


def fit_shared(
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    groups: npt.ArrayLike,
    scores: npt.ArrayLike | None = None,
    targets: Sequence[str] = (),
    members: Sequence[str] | None = None,
    random_state: int = 0,
    run: MapLike = map,
) -> SharedFits:
    """Fit the members of the stack that leaves out each target, or of the stack of all datasets.

    A member depends on nothing but the rows that it is fitted on, so that what two stacks share is the same for both.

    Parameters
    ----------
    X, y, groups, scores
        As in :meth:`deep.model.Stack.fit`.
    targets : sequence of str
        Each is left out of a stack of its own; none: one stack of all datasets.
    members : sequence of str, optional
        Keys of `MEMBERS`; default all that the numbers of voters and scorers allow.
    random_state : int, default=0
    run : callable, optional
        Like `map`; another one may spread the fits over processes.

    Raises
    ------
    InputError
        The datasets are too few, or so many that they are not left out one by one and cannot be shared.
    """
    rows, names = labeled_rows(X, y, groups, None, scores)
    return share_fits(rows, names, targets=targets, members=members, random_state=random_state, run=run)


def share_fits(
    rows: LabeledRows,
    names: Mapping[int, str],
    *,
    targets: Sequence[str] = (),
    members: Sequence[str] | None = None,
    random_state: int = 0,
    run: MapLike = map,
) -> SharedFits:
    """Fit the members as :func:`fit_shared`, on rows that :func:`labeled_rows` has checked; names by dataset."""
    code = {name: position for position, name in names.items()}
    unknown = sorted(set(targets) - set(code))
    if unknown:
        raise InputError(f"`targets` must be datasets that are left out one by one. Got {unknown[0]!r}.")
    bases = [frozenset([target]) for target in targets] or [frozenset[str]()]
    left_out = list(dict.fromkeys([*bases, *(base | {name} for base, name in product(bases, code))]))
    members = members_for(rows.scores.shape[1]) if members is None else tuple(members)
    step = partial(_fit_without, rows=rows, members=members, random_state=random_state)
    fitted = run(step, [[code[name] for name in left] for left in left_out])
    return SharedFits(tuple(code), dict(zip(left_out, fitted, strict=True)))


def _fit_without(
    codes: Sequence[int], *, rows: LabeledRows, members: Sequence[str], random_state: int
) -> dict[str, Scorer]:
    for code in codes:
        rows = rows.without(code)
    return fit_members(rows, None, members, random_state)
