"""The order in which the judges of a model are asked, their prices, and the effect on training data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._util.checks import Floats, Labels
from deep._util.odds import DECISION
from deep.ensembles import ENSEMBLERS
from deep.evaluate import hold_out
from deep.exceptions import InputError
from deep.model import MAX_TABLE_VOTERS, AskingPolicy, Model, Simulation, fit
from deep.records import VoteMatrix

Step = Callable[[], None]


@dataclass(frozen=True)
class Prices:
    """The price of one question to each judge.

    Parameters
    ----------
    values : tuple of float
        By voter of the model; 0 for a judge that needs no LLM.
    asked : tuple of int
        The columns of the judges that are asked.
    unit : {'calls', 'dollars'}
        Dollars where the price of every judge is known.
    """

    values: tuple[float, ...]
    asked: tuple[int, ...]
    unit: str

    @property
    def free(self) -> tuple[int, ...]:
        """Return the columns of the judges that need no LLM, which are all heard first."""
        return tuple(column for column in range(len(self.values)) if column not in self.asked)


def training_patterns(model: Model) -> tuple[npt.NDArray[np.int8], Floats]:
    """Return the vote patterns that a model was fitted on, and their weights: every dataset counts the same."""
    return model.cells.patterns, _weights(model.cells.counts)


def _weights(counts: npt.NDArray[np.int64]) -> Floats:
    """Return the weight of each pattern, from counts of shape (n_patterns, n_datasets, 2)."""
    rows = counts.sum(axis=2)
    return np.asarray((rows / rows.sum(axis=0)).sum(axis=1))


def check_sequential(model: Model) -> Floats:
    """Return the table that a model decides by; its judges can be asked one by one only where it has one."""
    if model.decision_table is None:
        scores = f" and {len(model.score_names)} soft scores" if model.score_names else ""
        raise InputError(
            f"`sequential` must be given with a model of at most {MAX_TABLE_VOTERS} voters and no soft scores. "
            f"Got {len(model.voters)} voters{scores}. Fit with fewer of them, or score without it."
        )
    return model.decision_table


def learn_policy(model: Model, prices: Prices, error_cost: float | None) -> AskingPolicy:
    """Return the order of asking for vote patterns like those of the training data."""
    table, (patterns, weights) = check_sequential(model), training_patterns(model)
    return AskingPolicy.learn(table, patterns, weights, prices=prices.values, error_cost=error_cost)


def training_report(model: Model, prices: Prices, error_cost: float | None, step: Step) -> dict[str, Any]:
    """Return the calls saved and the decisions changed by asking one by one on the training data, as JSON values.

    Each training dataset is met by the policy that the patterns of the others teach; a single one by its own.
    `step` is called after each of them.
    """
    rows = []
    table, cells = check_sequential(model), model.cells
    for position, name in enumerate(cells.groups):
        others = [other for other in range(len(cells.groups)) if other != position] or [position]
        weights = _weights(cells.counts[:, others])
        policy = AskingPolicy.learn(table, cells.patterns, weights, prices=prices.values, error_cost=error_cost)
        found = policy.simulate(cells.patterns, table, heard=prices.free)
        rows.append({"dataset": name, **_figures(found, cells.counts[:, position], prices)})
        step()
    return {
        "judges": len(prices.asked),
        "prices": dict(zip(model.voter_names, prices.values, strict=True)),
        "unit": prices.unit,
        "error_cost": error_cost,
        "held_out": len(rows) > 1,
        "datasets": rows,
        "mean": _mean(rows),
    }


def _figures(found: Simulation, counts: npt.NDArray[np.int64], prices: Prices) -> dict[str, Any]:
    rows = counts.sum(axis=1)
    asked = float(np.average(found.calls, weights=rows))
    sequential = found.p >= DECISION
    return {
        "n": int(rows.sum()),
        "asked": asked,
        "calls_saved": 1 - asked / len(prices.asked),
        "price_saved": 1 - float(np.average(found.cost, weights=rows)) / sum(prices.values),
        "changed": int(rows[found.changed].sum()),
        "balanced_accuracy_panel": _balanced(sequential ^ found.changed, counts),
        "balanced_accuracy_sequential": _balanced(sequential, counts),
    }


def _balanced(decisions: npt.NDArray[np.bool_], counts: npt.NDArray[np.int64]) -> float | None:
    """Return the balanced accuracy of decisions by pattern; None where the rows have one label only."""
    if not counts.sum(axis=0).all():
        return None
    right = np.where(decisions, counts[:, 1], 0).sum() / counts[:, 1].sum()
    return float(right + np.where(decisions, 0, counts[:, 0]).sum() / counts[:, 0].sum()) / 2


def _mean(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean over datasets; rows and changed decisions are summed."""
    found: dict[str, Any] = {name: sum(row[name] for row in rows) for name in ("n", "changed")}
    for name in ("asked", "calls_saved", "price_saved", "balanced_accuracy_panel", "balanced_accuracy_sequential"):
        known = [row[name] for row in rows if row[name] is not None]
        found[name] = float(np.mean(known)) if known else None
    return found


def training_lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the lines for people about the training data."""
    mean, unit, cost = report["mean"], report["unit"], report["error_cost"]
    yield (
        "asking one by one, lossless: until no answer of the others can change the decision"
        if cost is None
        else f"asking one by one, until it costs more than the errors it spares; a wrong decision: {cost:g} {unit}"
    )
    yield f"prices: {_listed(report)}"
    yield (
        "on the training data, each dataset in the order that the others teach:"
        if report["held_out"]
        else "on the one training dataset, in the order that it taught itself:"
    )
    yield (
        f"  {mean['asked']:.2f} of {report['judges']} judges asked, {100 * mean['calls_saved']:.1f} % fewer; "
        f"{100 * mean['price_saved']:.1f} % of the {unit} saved"
    )
    pair = (mean["balanced_accuracy_sequential"], mean["balanced_accuracy_panel"])
    one, whole = ("unknown" if value is None else f"{100 * value:.1f}" for value in pair)
    yield f"  {mean['changed']:,} of {mean['n']:,} decisions changed; balanced accuracy {one}, whole panel {whole}"


def _listed(report: dict[str, Any]) -> str:
    """Return the prices in words."""
    asked = {name: price for name, price in report["prices"].items() if price > 0}
    said = [f"{name} {price:.3g}" for name, price in asked.items()]
    if len(set(asked.values())) == 1:
        said = [f"{next(iter(asked.values())):.3g} each"]
    why = "" if report["unit"] == "dollars" else ", since dollars are not known for all judges"
    return f"{', '.join(said)} (in {report['unit']}{why})"


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
            rows.append({"test": name, "judges": len(model.voters), **_savings_figures(found, model, split.test)})
            step()
    return rows


def _savings_figures(found: Simulation, model: Model, test: VoteMatrix) -> Figures:
    whole, labels = model.predict(model.select(test)) >= DECISION, test.labels
    chosen = model.report["chosen"]
    assert isinstance(chosen, dict)  # as every fit writes it
    return {
        "ensembler": chosen["ensembler"],
        "calls": float(found.calls.mean()),
        "saved": float(1 - found.calls.mean() / len(model.voters)),
        "changed": int(found.changed.sum()),
        "n": len(found.calls),
        "balanced_accuracy_panel": _balanced_savings(whole, labels),
        "balanced_accuracy_sequential": _balanced_savings(found.p >= DECISION, labels),
    }


def _balanced_savings(decisions: npt.NDArray[np.bool_], labels: Labels) -> float | None:
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
