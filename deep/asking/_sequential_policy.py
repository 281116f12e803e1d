"""The order in which the judges of a model are asked, their prices, and the effect on training data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from deep._checks import Floats
from deep._odds import DECISION
from deep.exceptions import InputError
from deep.model import MAX_TABLE_VOTERS, AskingPolicy, Model, Simulation

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
