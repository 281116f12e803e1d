"""Four worlds with known truth, built from the paper's operating points: our reconstruction, no real votes.

Each voter's rates on each dataset are the published ones; how voters depend on each other is assumed. With five
voters there are 32 vote patterns, so that every metric is computed on the exact distribution, without noise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from deep._util.checks import Floats, Votes
from deep.calibration import Platt, balanced_accuracy, expected_calibration_error, log_loss
from deep.datasets import PublishedDataset, published_datasets, published_points
from deep.ensembles import LabelModel, LogisticRegression
from deep.evaluate import Row
from deep.model import Stack
from deep.records import VoteMatrix

N_VOTERS = 5
N_NODES = 21

PATTERNS: Votes = np.array(list(product((0, 1), repeat=N_VOTERS)), dtype=np.int8)
"""Every pattern of five votes."""

EQUAL_LOADINGS = (0.5**0.5,) * N_VOTERS
UNEQUAL_LOADINGS = (0.9, 0.8, 0.7, 0.5, 0.3)

AMBIGUOUS = (0.15, 0.35, 0.5, 0.25)
"""Share of ambiguous items in each dataset of the out-of-family worlds: dependence differs by dataset."""

FOLLOWED = 0.92
"""P(a voter follows the apparent label of an ambiguous item)."""

RATE_CLIP = 0.02

Dependence = Callable[[Floats, int], Floats]
"""From five voters' rates P(vote 1) on one class, and the dataset's position, to the probability of each pattern."""


@dataclass(frozen=True)
class World:
    """One simulated setting: whose published operating points, and how the voters depend on each other.

    Parameters
    ----------
    title : str
    model : {'gpt-4', 'gpt-3.5'}
    dependence : callable
    """

    title: str
    model: str
    dependence: Dependence


def one_factor(loadings: tuple[float, ...]) -> Dependence:
    """Return voters who share a Gaussian factor in so far as their loadings say."""
    load = np.array(loadings)

    def dependence(rates: Floats, dataset: int) -> Floats:  # noqa: ARG001 - the same in every dataset
        nodes, weights = np.polynomial.hermite_e.hermegauss(N_NODES)
        z = (norm.ppf(rates) + load * nodes[:, None]) / np.sqrt(1 - load**2)
        return np.asarray((weights / weights.sum()) @ _independent(norm.cdf(z)))

    return dependence


def ambiguous_items(rates: Floats, dataset: int) -> Floats:
    """Return voters who follow one appearance on ambiguous items and are independent on the others.

    What an ambiguous item seems to be does not depend on its label; the voters' rates on the clear ones are
    such that their rates on all are the given ones, as far as rates within [0.02, 0.98] allow.
    """
    share, seems = AMBIGUOUS[dataset], float(rates.mean())
    on_ambiguous = seems * FOLLOWED + (1 - seems) * (1 - FOLLOWED)
    clear = np.clip((rates - share * on_ambiguous) / (1 - share), RATE_CLIP, 1 - RATE_CLIP)
    alike = _independent(np.array([[FOLLOWED] * N_VOTERS, [1 - FOLLOWED] * N_VOTERS]))
    return np.asarray((1 - share) * _independent(clear[None])[0] + share * np.array([seems, 1 - seems]) @ alike)


def _independent(p: Floats) -> Floats:
    """Return the probability of each pattern of independent votes, shape (n_rows, n_patterns)."""
    return np.asarray(np.prod(np.where(PATTERNS == 1, p[:, None, :], 1 - p[:, None, :]), axis=2))


WORLDS = {
    "equal": World("GPT-4, equal correlation 0.5", "gpt-4", one_factor(EQUAL_LOADINGS)),
    "unequal": World("GPT-4, unequal loadings", "gpt-4", one_factor(UNEQUAL_LOADINGS)),
    "ambiguous": World("GPT-4, ambiguous items", "gpt-4", ambiguous_items),
    "ambiguous-3.5": World("GPT-3.5, ambiguous items", "gpt-3.5", ambiguous_items),
}
"""The worlds by name."""


def true_tables(world: World) -> dict[str, Floats]:
    """Return by dataset the joint probability of each pattern with label 0 and 1, shape (n_patterns, 2)."""
    result = {}
    for position, dataset in enumerate(published_datasets()):
        points = [p for p in published_points() if p.model == world.model and p.dataset == dataset.name]
        points = sorted(points, key=lambda point: point.prompt)
        prior = dataset.n_consistent / dataset.n_items
        fpr, tpr = np.array([1 - p.tnr for p in points]), np.array([p.tpr for p in points])
        rates = np.clip([fpr, tpr], RATE_CLIP, 1 - RATE_CLIP)
        classes = [world.dependence(rates[c], position) for c in (0, 1)]
        result[dataset.name] = np.column_stack([(1 - prior) * classes[0], prior * classes[1]])
    return result


def simulate_world(world: World, random_state: int) -> VoteMatrix:
    """Draw the votes and labels of every dataset, at its real size and numbers of labels."""
    tables = true_tables(world)
    rows, labels, names = [], [], []
    for position, dataset in enumerate(published_datasets()):
        rng = np.random.default_rng([random_state, position])
        for label, n in enumerate((dataset.n_inconsistent, dataset.n_consistent)):
            p = tables[dataset.name][:, label]
            rows.append(PATTERNS[rng.choice(len(PATTERNS), n, p=p / p.sum())])
            labels += [label] * n
        names += [dataset.name] * dataset.n_items
    return VoteMatrix(
        votes=np.concatenate(rows),
        item_ids=list(range(len(labels))),
        voter_names=[f"prompt-{i + 1}" for i in range(N_VOTERS)],
        datasets=names,
        labels=labels,
    )


def transfer_in(name: str, random_state: int) -> list[Row]:
    """Hold out each dataset of one draw of a world; return the exact metrics of every method on it."""
    world = WORLDS[name]
    votes, tables = simulate_world(world, random_state), true_tables(world)
    return [
        {"world": name, "draw": random_state, "dataset": dataset.name, "methods": _methods(votes, dataset, tables)}
        for dataset in published_datasets()
    ]


def _methods(votes: VoteMatrix, dataset: PublishedDataset, tables: dict[str, Floats]) -> dict[str, dict[str, float]]:
    truth = tables[dataset.name]
    train, test = votes.rows(votes.datasets != dataset.name), votes.rows(votes.datasets == dataset.name)
    bayes = truth[:, 1] / truth.sum(axis=1)
    prior = truth[:, 1].sum()
    pooled = LogisticRegression().fit(train.votes, train.labels).predict_proba(PATTERNS)[:, 1]
    label_model = _label_model_with_platt(train)
    stack = Stack().fit(train.votes, train.labels, groups=train.datasets)
    codes = test.votes @ (2 ** np.arange(N_VOTERS)[::-1])
    counts = np.bincount(codes, minlength=len(PATTERNS)).astype(float)
    result = stack.score(PATTERNS, sample_weight=counts)
    return {
        "pooled_logistic_regression": _exact(truth, pooled, pooled >= 0.5),
        "label_model_platt": _exact(truth, label_model[1], label_model[0] >= 0.5),
        "deep": _exact(truth, result.p_consistent, result.decisions),
        "bayes": _exact(truth, bayes, bayes >= prior),
    }


def _label_model_with_platt(train: VoteMatrix) -> tuple[Floats, Floats]:
    """Return P of each pattern by the label model on the training votes, before and after Platt."""
    model = LabelModel().fit(train.votes)
    raw = model.predict_proba(PATTERNS)[:, 1]
    platt = Platt().fit(model.predict_proba(train.votes)[:, 1], train.labels)
    return raw, platt.transform(raw)


def _exact(truth: Floats, p: Floats, decisions: npt.NDArray[np.bool_]) -> dict[str, float]:
    """Return metrics on the true distribution."""
    labels = np.tile([0, 1], len(PATTERNS))
    weights = truth.ravel()
    prob = np.repeat(p, 2)
    return {
        "balanced_accuracy": balanced_accuracy(labels, np.repeat(decisions, 2), sample_weight=weights),
        "ece": expected_calibration_error(labels, prob, sample_weight=weights),
        "log_loss": log_loss(labels, prob, sample_weight=weights),
    }
