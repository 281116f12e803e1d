"""The embedded default: votes simulated from the paper's published operating points. No LLM is called."""

from numbers import Integral

import numpy as np
import numpy.typing as npt

from deep._checks import Floats, Positions
from deep.datasets._published import (
    PublishedDataset,
    VoteCorrelations,
    published_datasets,
    published_points,
    recover_counts,
)
from deep.datasets._registry import family_of
from deep.exceptions import InputError
from deep.records import VoteMatrix

OVERSAMPLING = 16
"""Items drawn for each one that is kept."""


def simulate_votes(random_state: int = 0) -> VoteMatrix:
    """Simulate the votes of the paper's ten voters on its four test sets.

    How many consistent and how many inconsistent items each voter accepts is the whole count behind its
    published figures, the same for every seed; which items they are is drawn, with the dependence between
    voters that comes closest to Table 2: the balanced accuracy of LabelModel and of the majority vote.

    Parameters
    ----------
    random_state : int, default=0
        Not negative. The global generators are neither read nor written.

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
    Within a dataset and class, voters' latent values are jointly normal with the correlations of
    `PublishedDataset.correlations`: a part that all prompts share, each to its own degree, one that the two
    models asked with one prompt share, and one that the prompts asked of one model share. The votes for
    consistent of a voter are the items with its highest latent values, as many as its count says.

    The paper's rows are those of one sample, so the items are a systematic sample of a larger draw, in the
    order of their votes: how often each pattern of votes occurs varies less over seeds than over samples of
    items. The spread of figures over seeds is therefore no standard error; bootstrap the items for that.

    References
    ----------
    .. [1] Chandler, Surve and Su (2024), Tables 1 and 2. https://arxiv.org/abs/2406.13009

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
    datasets, voters = published_datasets(), _voters()
    drawn = [
        _simulate_dataset(dataset, voters, np.random.default_rng([int(random_state), position]))
        for position, dataset in enumerate(datasets)
    ]
    return VoteMatrix(
        votes=np.concatenate([votes for votes, _ in drawn]),
        example_ids=[f"{dataset.name}-{i:04d}" for dataset in datasets for i in range(1, dataset.n_items + 1)],
        voter_names=voters,
        datasets=np.repeat([dataset.name for dataset in datasets], [dataset.n_items for dataset in datasets]),
        labels=np.concatenate([labels for _, labels in drawn]),
        families={dataset.name: family_of(dataset.name) for dataset in datasets},
    )


def _voters() -> tuple[str, ...]:
    """Return the voters' names: GPT-4 first, as in the paper's sets of five, then by prompt."""
    names = {(point.model != "gpt-4", point.prompt): point.voter for point in published_points()}
    return tuple(names[key] for key in sorted(names))


def _simulate_dataset(
    dataset: PublishedDataset, voters: tuple[str, ...], rng: np.random.Generator
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8]]:
    """Draw the votes and labels of one dataset, its rows shuffled so that their order tells nothing."""
    points = {point.voter: point for point in published_points() if point.dataset == dataset.name}
    counts = [recover_counts(points[voter], dataset) for voter in voters]
    shared = dataset.correlations
    consistent = _draw_class(
        dataset.n_consistent,
        np.array([c.true_positives for c in counts]),
        _loadings(voters, shared.consistent, shared),
        rng,
    )
    inconsistent = _draw_class(
        dataset.n_inconsistent,
        np.array([c.false_positives for c in counts]),
        _loadings(voters, shared.inconsistent, shared),
        rng,
    )
    labels = np.repeat(np.array([1, 0], dtype=np.int8), [dataset.n_consistent, dataset.n_inconsistent])
    order = rng.permutation(dataset.n_items)
    return np.concatenate([consistent, inconsistent])[order], labels[order]


def _loadings(voters: tuple[str, ...], general: tuple[float, ...], shared: VoteCorrelations) -> Floats:
    """Return the loading of each voter on each factor, shape (n_factors, n_voters); squares of a column sum to 1."""
    prompts, models = np.array([voter.split("/") for voter in voters]).T
    by_prompt = prompts == np.unique(prompts)[:, None]
    by_model = models == np.unique(models)[:, None]
    common = np.array(general) @ by_prompt
    own = np.diag(1.0 - common - shared.same_prompt - shared.same_model)
    squares = np.vstack([common, shared.same_prompt * by_prompt, shared.same_model * by_model, own])
    return np.asarray(np.sqrt(squares))


def _draw_class(
    n_items: int, n_positive: Positions, loadings: Floats, rng: np.random.Generator
) -> npt.NDArray[np.int8]:
    """Draw votes of one class, shape (n_items, n_voters), with exactly `n_positive` ones in each column."""
    latent = rng.standard_normal((OVERSAMPLING * n_items, len(loadings))) @ loadings
    by_pattern = np.lexsort(_highest(latent, OVERSAMPLING * n_positive).T[::-1])
    return _highest(latent[by_pattern[rng.integers(OVERSAMPLING) :: OVERSAMPLING]], n_positive)


def _highest(latent: Floats, n_positive: Positions) -> npt.NDArray[np.int8]:
    """Return 1 for the `n_positive[j]` highest values of each column j, at least one, else 0."""
    least = np.sort(latent, axis=0)[len(latent) - n_positive, np.arange(len(n_positive))]
    return (latent >= least).astype(np.int8)
