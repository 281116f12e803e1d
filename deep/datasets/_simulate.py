"""The figures that the DEEP paper prints, and the whole counts behind them.

The data file beside this module holds Table 1 in percent, as printed; here they are fractions in [0, 1].
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from numbers import Integral

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Votes
from deep._util.files import JsonObject, read_asset
from deep._util.names import family_of
from deep._util.scales import Scale
from deep.exceptions import InputError
from deep.records import VoteMatrix


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One cell of the paper's Table 1: one prompt, asked of one model, on one dataset.

    Parameters
    ----------
    prompt : str
        For example ``"prompt-1"``.
    model : str
        ``"gpt-4"`` or ``"gpt-3.5"``.
    dataset : str
        For example ``"aggrefact-xsum"``.
    balanced_accuracy, precision, recall : float
        Fractions in [0, 1]; consistent is the positive class.

    References
    ----------
    .. [1] Chandler, Surve and Su (2024), Table 1. https://arxiv.org/abs/2406.13009

    Examples
    --------
    >>> from deep.datasets import OperatingPoint
    >>> point = OperatingPoint("prompt-1", "gpt-4", "aggrefact-xsum", 0.691, 0.659, 0.828)
    >>> point.voter, round(point.tnr, 3), round(point.prior, 3)
    ('prompt-1/gpt-4', 0.554, 0.51)
    """

    prompt: str
    model: str
    dataset: str
    balanced_accuracy: float
    precision: float
    recall: float

    @property
    def voter(self) -> str:
        """Return the name of the voter: prompt and model."""
        return f"{self.prompt}/{self.model}"

    @property
    def tpr(self) -> float:
        """Return the share of consistent items that are voted consistent: the recall."""
        return self.recall

    @property
    def tnr(self) -> float:
        """Return the share of inconsistent items that are voted inconsistent."""
        # Balanced accuracy is the mean of recall and of the rate that is asked for.
        return 2.0 * self.balanced_accuracy - self.recall

    @property
    def prior(self) -> float:
        """Return the share of consistent items that the three figures imply."""
        # precision = tpr q / (tpr q + (1 - tnr)(1 - q)), solved for the share of consistent items q.
        false_alarms = self.precision * (1.0 - self.tnr)
        return false_alarms / (false_alarms + self.tpr * (1.0 - self.precision))


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """A test set of the paper.

    Parameters
    ----------
    name : str
        In lower case with hyphens, for example ``"aggrefact-xsum"``.
    title : str
        As the paper's tables head it.
    n_consistent, n_inconsistent : int
        Items by gold label, recovered from Table 1.
    """

    name: str
    title: str
    n_consistent: int
    n_inconsistent: int

    @property
    def n_items(self) -> int:
        """Return the number of items."""
        return self.n_consistent + self.n_inconsistent


@cache
def published_datasets() -> tuple[PublishedDataset, ...]:
    """Return the paper's four test sets, in its order.

    Examples
    --------
    >>> from deep.datasets import published_datasets
    >>> [(d.n_consistent, d.n_inconsistent) for d in published_datasets()]
    [(285, 273), (1500, 1500), (151, 116), (169, 98)]
    """
    rows = read_asset("deep.datasets", "operating_points.json")["datasets"]
    return tuple(PublishedDataset(row["name"], row["title"], row["consistent"], row["inconsistent"]) for row in rows)


def _cells(rows: list[JsonObject]) -> Iterator[tuple[JsonObject, str, list[float]]]:
    """Walk rows that hold a list of percentages under the name of each dataset."""
    for row in rows:
        for dataset in published_datasets():
            yield row, dataset.name, [round(figure / 100.0, 6) for figure in row[dataset.name]]


@cache
def published_points() -> tuple[OperatingPoint, ...]:
    """Return the 40 cells of Table 1: five prompts, two models, four datasets.

    Examples
    --------
    >>> from deep.datasets import published_points
    >>> len(published_points()), published_points()[0].voter
    (40, 'prompt-1/gpt-3.5')
    """
    cells = _cells(read_asset("deep.datasets", "operating_points.json")["prompts"]["rows"])
    return tuple(OperatingPoint(row["prompt"], row["model"], dataset, *figures) for row, dataset, figures in cells)


# Patterns of votes, shape (n_patterns, 10), and how many inconsistent and consistent items have each.
SimulatedCells = tuple[Votes, npt.NDArray[np.int64]]


@cache
def fitted_cells() -> dict[str, SimulatedCells]:
    """Return the fitted votes by dataset."""
    document = read_asset("deep.datasets", "simulated_votes.json")
    return {
        name: (
            np.array([list(map(int, pattern)) for pattern in row], dtype=np.int8),
            np.array(list(row.values()))[:, ::-1],
        )
        for name, row in document.items()
    }


def simulate_votes(random_state: int = 0) -> VoteMatrix:
    """Simulate the votes of the paper's ten voters on its four test sets.

    Parameters
    ----------
    random_state : int, default=0
        0: the fitted votes, of which each voter accepts as many consistent and as many inconsistent items as its
        published figures say. Any other, not negative: an independent draw, as many items of each class drawn from
        them with replacement. The global generators are neither read nor written.

    Returns
    -------
    VoteMatrix
        4,092 items of four datasets, in random order within each; ten voters, the five prompts asked of
        GPT-4 and then of GPT-3.5, named like ``"prompt-1/gpt-4"``; every label known, no vote missing.

    Raises
    ------
    InputError
        `random_state` is not a whole number from 0 up.

    Notes
    -----
    Table 1 fixes how often each voter is right, not which items it is right on. How often each pattern of votes occurs
    is fitted to half of the cells of Tables 2, 4 and 5 (``benchmarks/fit_votes.py``); `deep paper` marks these, and
    only its other cells can agree with the paper. Fitted votes are those of one sample, so the spread over independent
    draws is about what other items would do to a figure.

    References
    ----------
    .. [1] Chandler, Surve and Su (2024), Tables 1, 2, 4 and 5. https://arxiv.org/abs/2406.13009

    Examples
    --------
    >>> from deep.datasets import simulate_votes
    >>> votes = simulate_votes(random_state=0)
    >>> votes.shape, votes.dataset_names[0], votes.voter_names[0]
    ((4092, 10), 'aggrefact-xsum', 'prompt-1/gpt-4')
    >>> xsum = votes.rows(votes.datasets == "aggrefact-xsum")
    >>> int(xsum.votes[xsum.labels == 1, 0].sum())  # recall 82.8 % of 285
    236
    """
    if isinstance(random_state, bool) or not isinstance(random_state, Integral) or random_state < 0:
        raise InputError(f"`random_state` must be a whole number from 0 up. Got {random_state!r}.")
    return draw_votes(fitted_cells(), int(random_state))


def draw_votes(cells: Mapping[str, SimulatedCells], random_state: int) -> VoteMatrix:
    """Return the votes of cells as they are (0), or of as many items of each class drawn from them with replacement."""
    datasets, parts = published_datasets(), []
    for position, dataset in enumerate(datasets):
        # A stream a dataset: what is drawn for one does not depend on how many rows another has.
        rng = np.random.default_rng([random_state, position])
        patterns, counts = cells[dataset.name]
        # Seed 0 is the fitted counts themselves; another is an independent draw from them (decision 27).
        if random_state:
            counts = np.column_stack(
                [rng.multinomial(n, of_class / n) for of_class, n in zip(counts.T, counts.sum(axis=0), strict=True)]
            )
        rows = np.repeat(np.arange(counts.size), counts.ravel())
        rng.shuffle(rows)
        parts.append((patterns[rows // 2], (rows % 2).astype(np.int8)))
    return VoteMatrix(
        votes=np.concatenate([votes for votes, _ in parts]),
        item_ids=[f"{dataset.name}-{i:04d}" for dataset in datasets for i in range(1, dataset.n_items + 1)],
        voter_names=voters(),
        datasets=np.repeat([dataset.name for dataset in datasets], [dataset.n_items for dataset in datasets]),
        labels=np.concatenate([labels for _, labels in parts]),
        families={dataset.name: family_of(dataset.name) for dataset in datasets},
    )


def voters() -> tuple[str, ...]:
    """Return the voters' names: GPT-4 first, as in the paper's sets of five, then by prompt."""
    names = {(point.model != "gpt-4", point.prompt): point.voter for point in published_points()}
    return tuple(names[key] for key in sorted(names))


Range = tuple[float, float]


PUBLISHED_RANGES: Mapping[str, Range] = {
    "alignscore": (0.0, 1.0),
    "qafacteval": (0.0, 5.0),
    "questeval": (0.0, 1.0),
    "summacconv": (0.0, 1.0),
    "summaccv": (0.0, 1.0),
    "summaczs": (-1.0, 1.0),
}
"""Letters and digits of a scorer's name, and the range that the DEEP paper states for it (footnote 2)."""


def score_ranges(names: Iterable[str], scores: Floats, scales: Mapping[str, Scale]) -> dict[str, Range]:
    """Return the ranges of scorers that are known: of their scales, else the published ones of their names.

    Parameters
    ----------
    names : sequence of str
        Of the scorers, in the order of their columns.
    scores : ndarray of float, shape (n_examples, n_scorers)
        A published range that does not hold all scores of its scorer is another scorer's, and left out.
    scales : mapping of str to Scale
        Those that are declared.

    Raises
    ------
    InputError
        A declared scale does not hold all scores, or its numbers fall.
    """
    result: dict[str, Range] = {}
    for name, column in zip(names, scores.T, strict=True):
        # Names are compared without version, case and punctuation: "SummaC-Conv@1" is "summacconv".
        plain = "".join(letter for letter in name.partition("@")[0].casefold() if letter.isalnum())
        scale = scales.get(name)
        bounds = PUBLISHED_RANGES.get(plain) if scale is None else (scale.low, scale.high)
        outside = column[(column < bounds[0]) | (column > bounds[1])] if bounds else column
        if bounds and not outside.size:
            result[name] = bounds
        elif scale is not None:
            raise InputError(
                f"`scale` must hold every score of {name!r}, low to high. Got {outside[0].item()!r}, not in {scale}."
            )
    return result
