"""Replies of an old ledger read by the reader of today, and the votes that this changes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from deep.asking._options import AskOptions
from deep.asking._plan import Plan
from deep.asking._write import write_votes
from deep.exceptions import InputError
from deep.llm import Tally

KEYS = ["dataset", "item_id"]
SHOWN = 5
"""Items that are named of each change."""


@dataclass(frozen=True)
class Reread:
    """The votes that a reading changed.

    Parameters
    ----------
    changes : mapping of (str, str) to list of str
        By voter and change, such as ``none -> 1``: the items.
    n_items : int
    """

    changes: Mapping[tuple[str, str], list[str]]
    n_items: int

    def results(self) -> dict[str, object]:
        """Return the changes as values of JSON."""
        listed = [{"voter": voter, "change": change, "items": items} for (voter, change), items in self.changes.items()]
        return {"items": self.n_items, "changed": sum(map(len, self.changes.values())), "changes": listed}

    def told(self) -> tuple[dict[str, object], Iterator[str]]:
        """Return the changes for a program and for a person."""
        return self.results(), self.lines()

    def lines(self) -> Iterator[str]:
        """Yield a line of how many votes changed, and one a voter and change."""
        changed = Counter({voter: 0 for voter, _ in self.changes})
        for (voter, _), items in self.changes.items():
            changed[voter] += len(items)
        yield f"{changed.total():,} votes of {self.n_items:,} items changed; nothing was asked"
        for (voter, change), items in sorted(self.changes.items()):
            more = f", and {len(items) - SHOWN:,} more" if len(items) > SHOWN else ""
            yield f"  {voter}: {len(items):,} {change} ({', '.join(items[:SHOWN])}{more})"


def reread(plan: Plan, options: AskOptions | None, out: Path) -> Reread:
    """Read the replies of a ledger again, write the votes, and return which differ from those that were there.

    Raises
    ------
    InputError
        No LLM is asked, or there is no ledger or no table of votes of an earlier run.
    """
    if options is None:
        raise InputError("`reread` must be given with judges that ask an LLM. Got none of them. Leave it out.")
    if not out.is_file():
        raise InputError(f"`out` must be the votes of an earlier run with `reread`. Got no file at {str(out)!r}.")
    before = pd.read_parquet(out).set_index(KEYS)
    write_votes(plan, options, out, Tally(0))
    after = pd.read_parquet(out).set_index(KEYS)
    changes: dict[tuple[str, str], list[str]] = {}
    for voter in plan.voters:
        was = before[voter].reindex(after.index) if voter in before else pd.Series(index=after.index, dtype="float64")
        for item, old, new in zip(after.index, was, after[voter], strict=True):
            said = f"{_vote(old)} -> {_vote(new)}"
            if _vote(old) != _vote(new):
                changes.setdefault((voter, said), []).append("/".join(map(str, item)))
    return Reread(changes, len(after))


def _vote(value: object) -> str:
    return "none" if pd.isna(value) else str(int(value))  # type: ignore[call-overload]
