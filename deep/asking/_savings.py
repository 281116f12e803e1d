"""How many questions are saved where judges are asked one by one, measured on datasets held out in turn."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._checks import Labels
from deep._odds import DECISION
from deep.asking._sequential_policy import training_patterns
from deep.ensembles import ENSEMBLERS
from deep.evaluate import hold_out
from deep.exceptions import InputError
from deep.model import AskingPolicy, Model, Simulation, fit
from deep.records import VoteMatrix

Figures = dict[str, Any]

AVERAGED = ("calls", "saved", "balanced_accuracy_panel", "balanced_accuracy_sequential")
SUMMED = ("changed", "n")


def sequential_savings(
    votes: VoteMatrix,
    sizes: Sequence[int] = (3, 5, 9),
    ensemblers: Sequence[str] = ("LogisticRegression",),
    *,
    error_cost: float | None = None,
    random_state: int = 0,
    progress: Callable[[str, int], Callable[[], None]] = lambda _name, _steps: lambda: None,
) -> list[Figures]:
    """Ask the judges of each dataset one by one, by a chain and a policy learned on the other datasets.

    Parameters
    ----------
    votes : VoteMatrix
        Labeled.
    sizes : sequence of int, default=(3, 5, 9)
        Numbers of judges, from 2 to 10.
    ensemblers : sequence of str, default=('LogisticRegression',)
        The chain is the best of these on the training data.
    error_cost : float, optional
        Price of a wrong decision, in questions; default: no decision of the whole panel may change.
    random_state : int, default=0
    progress : callable, optional
        Takes a name and a number of steps, and returns what is called after each step.

    Returns
    -------
    list of dict
        A row for each size and dataset: questions asked of each item, share saved, decisions changed, and the
        balanced accuracies of panel and sequence; None where the dataset has labels of one class only.

    Raises
    ------
    InputError
        There is one voter only, or a size or an ensembler cannot be used.
    """
    most = min(10, votes.shape[1])
    if most < 2:
        raise InputError("`votes` must have at least two voters, or there is no order to ask them in. Got one.")
    wrong = [size for size in sizes if not 2 <= size <= most]
    if wrong:
        raise InputError(f"`sizes` must be whole numbers from 2 to {most}. Got {wrong[0]!r}.")
    unknown = [name for name in ensemblers if name not in ENSEMBLERS]
    if unknown:
        raise InputError(f"`ensembler` must be one of {', '.join(sorted(ENSEMBLERS))}. Got {unknown[0]!r}.")
    step = progress("datasets", len(votes.dataset_names) * len(sizes))
    rows = []
    for size in sizes:
        for name in votes.dataset_names:
            split = hold_out(votes, name)
            model = fit(
                split.train, sizes=[size], ensembler=list(ensemblers), calibrator="platt", random_state=random_state
            )
            assert model.table is not None  # sizes are checked
            policy = AskingPolicy.learn(model.table, *training_patterns(model), error_cost=error_cost)
            found = policy.simulate(model.select(split.test), model.table)
            rows.append({"test": name, "judges": len(model.voters), **_figures(found, model, split.test)})
            step()
    return rows


def _figures(found: Simulation, model: Model, test: VoteMatrix) -> Figures:
    whole, labels = model.predict(model.select(test)) >= DECISION, test.labels
    chosen = model.report["chosen"]
    assert isinstance(chosen, dict)  # as every fit writes it
    return {
        "ensembler": chosen["ensembler"],
        "calls": float(found.calls.mean()),
        "saved": float(1 - found.calls.mean() / len(model.voters)),
        "changed": int(found.changed.sum()),
        "n": len(found.calls),
        "balanced_accuracy_panel": _balanced(whole, labels),
        "balanced_accuracy_sequential": _balanced(found.p >= DECISION, labels),
    }


def _balanced(decisions: npt.NDArray[np.bool_], labels: Labels) -> float | None:
    """Return the balanced accuracy on the labeled rows; None where they have one label only."""
    right = [np.mean(decisions[labels == label] == label) for label in (0, 1) if (labels == label).any()]
    return float(np.mean(right)) if len(right) == 2 else None


def mean_savings(rows: Sequence[Figures]) -> list[Figures]:
    """Return the mean over datasets for each number of judges; changed decisions and rows are summed."""
    found = []
    for judges in dict.fromkeys(row["judges"] for row in rows):
        chosen = [row for row in rows if row["judges"] == judges]
        values = {name: [row[name] for row in chosen if row[name] is not None] for name in (*AVERAGED, *SUMMED)}
        means = {name: float(np.mean(values[name])) if values[name] else None for name in AVERAGED}
        found.append({"judges": judges, **means, **{name: sum(values[name]) for name in SUMMED}})
    return found
