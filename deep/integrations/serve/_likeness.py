"""The votes on one item beside those on the rows that a model was fitted on: how usual they are."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from deep._util.checks import Floats, Votes, check_votes
from deep.exceptions import InputError
from deep.model import Model

# Votes are called unusual where fewer of the training rows are like them.
UNUSUAL = 0.05


ONLY_LABELS = "The model sees votes, not texts. Only labels show whether it holds for new kinds of text."


@dataclass(frozen=True)
class Likeness:
    """The votes on one item beside those on the training rows.

    Parameters
    ----------
    rows, datasets : int
        That the model was fitted on.
    alike : int
        Training rows with exactly these votes.
    n_voters, n_votes, n_consistent : int
        Judges, those that voted, and those that voted 1.
    as_few_votes : float
        Share of training rows with as few votes or fewer, each dataset counting the same.
    as_split : float
        Likewise, share of those on which the smaller side is as large a part of the votes, or a larger one.
    """

    rows: int
    datasets: int
    alike: int
    n_voters: int
    n_votes: int
    n_consistent: int
    as_few_votes: float
    as_split: float

    @property
    def unusual(self) -> bool:
        """Return whether hardly any training row has as few votes, or votes as split."""
        return min(self.as_few_votes, self.as_split) < UNUSUAL

    def sentences(self) -> list[str]:
        """Return sentences on it, the most telling one first."""
        says = []
        if self.as_few_votes < UNUSUAL:
            says.append("UNUSUAL: hardly any training row has as few votes.")
        if self.as_split < UNUSUAL:
            says.append("UNUSUAL: judges disagree as much on hardly any training row.")
        rows, datasets = _count(self.rows, "training row"), _count(self.datasets, "dataset")
        some, have = f"{self.alike:,}" if self.alike else "None", "has" if self.alike < 2 else "have"
        says += [
            f"{some} of the {rows} ({datasets}) {have} exactly these votes.",
            f"{self.n_votes} of {_count(self.n_voters, 'judge')} voted; as few or fewer voted on "
            f"{100 * self.as_few_votes:.0f} % of the training rows.",
        ]
        if 0 < self.n_consistent < self.n_votes:
            says.append(
                f"The votes split {self.n_consistent} to {self.n_votes - self.n_consistent}; "
                f"{100 * self.as_split:.0f} % of the training rows are split as much or more."
            )
        return [*says, ONLY_LABELS]

    def as_dict(self) -> dict[str, object]:
        """Return JSON values."""
        return {**asdict(self), "unusual": self.unusual}


def likeness(model: Model, votes: Sequence[int]) -> Likeness:
    """Compare the votes on one item with those that a model was fitted on.

    Parameters
    ----------
    model : Model
        The votes are compared with its training cells.
    votes : sequence of int
        1 consistent, 0 inconsistent, -1 no vote, in the order of the model's voters.

    Raises
    ------
    InputError
        A vote is out of range, or their number is not that of the model's voters.

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.serve._likeness import likeness
    >>> from deep.model import fit
    >>> votes = simulate_votes(0)
    >>> result = likeness(fit(votes), [1] * len(votes.voter_names))
    >>> result.unusual, result.sentences()[1]
    (False, '... of ... judges voted; as few or fewer voted on ... % of the training rows.')
    """
    row = check_votes([list(votes)], name="votes", voters=model.voter_names)
    if row.shape[1] != len(model.voters):
        raise InputError(f"`votes` must have one for each of {len(model.voters)} voters. Got {row.shape[1]}.")
    patterns, counts = model.cells.patterns, model.cells.counts.sum(axis=2)
    # Each dataset counts the same, or the largest one would say what is usual.
    weight = np.asarray((counts / np.maximum(counts.sum(axis=0), 1)).mean(axis=1))
    return Likeness(
        rows=int(counts.sum()),
        datasets=len(model.cells.groups),
        alike=int(counts[(patterns == row).all(axis=1)].sum()),
        n_voters=row.shape[1],
        n_votes=int(_cast(row)[0]),
        n_consistent=int((row == 1).sum()),
        as_few_votes=float(weight[_cast(patterns) <= _cast(row)].sum()),
        as_split=float(weight[_split(patterns) >= _split(row)].sum()),
    )


def _cast(patterns: Votes) -> Floats:
    return np.asarray((patterns >= 0).sum(axis=1), dtype=np.float64)


def _split(patterns: Votes) -> Floats:
    """Return the part of the smaller side among the votes of each row; 0 without a vote."""
    ones, zeros = (patterns == 1).sum(axis=1), (patterns == 0).sum(axis=1)
    return np.asarray(np.minimum(ones, zeros) / np.maximum(ones + zeros, 1), dtype=np.float64)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
