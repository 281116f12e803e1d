"""How many questions are saved where judges are asked one by one, measured on datasets held out in turn.

python -m deep.commands.sequential --votes votes.parquet --sizes 3,5,9
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from deep._files import to_json
from deep._odds import DECISION
from deep.asking import training_patterns
from deep.console import HelpFormatter, Values, guarded, progress_bars
from deep.datasets import read_votes, simulate_votes
from deep.ensembles import ENSEMBLERS
from deep.evaluate import hold_out
from deep.exceptions import InputError
from deep.experiments.loo import NOTICE
from deep.model import AskingPolicy, Model, Simulation, fit
from deep.records import VoteMatrix

__all__ = ["main"]

EXAMPLES = """\
examples:
  python -m deep.commands.sequential
      with 3, 5 and 9 judges of the embedded, simulated votes: no decision changes, fewer calls
  python -m deep.commands.sequential --votes votes.parquet --sizes 5 --error-cost 20
      stop as soon as asking on costs more than the errors it spares; a wrong decision costs 20 questions
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="python -m deep.commands.sequential",
        description="Hold out each dataset, learn a chain and an order of asking on the others, and count questions.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+"}
    p.add_argument("--votes", metavar="FILE", default=[], **several, help="labeled tables of votes; default: simulated")
    p.add_argument("--ignore", metavar="COLUMN", default=[], **several, help="columns that are no voters")
    p.add_argument("--sizes", metavar="N", default=["3", "5", "9"], **several, help="numbers of judges")
    p.add_argument(
        "--ensembler",
        metavar="NAME",
        default=["LogisticRegression"],
        **several,
        help="the chain is the best of these on training data",
    )
    p.add_argument(
        "--error-cost", type=float, metavar="N", help="price of a wrong decision, in questions; default: lossless"
    )
    p.add_argument("--seed", type=int, default=0, metavar="N", help="of everything that draws")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    return p


def held_out_rows(
    votes: VoteMatrix, sizes: Sequence[int], ensemblers: Sequence[str], error_cost: float | None, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield what asking one by one does to each dataset, by a chain and a policy learned on the others."""
    with progress_bars() as progress:
        step = progress("datasets", len(votes.dataset_names) * len(sizes))
        for size in sizes:
            for name in votes.dataset_names:
                split = hold_out(votes, name)
                model = fit(
                    split.train, sizes=[size], ensembler=list(ensemblers), calibrator="platt", random_state=seed
                )
                assert model.table is not None  # sizes are checked
                policy = AskingPolicy.learn(model.table.p, *training_patterns(model), error_cost=error_cost)
                found = policy.simulate(model.select(split.test), model.table.p)
                yield {"test": name, "judges": len(model.voters), **_figures(found, model, split.test)}
                step()


def _figures(found: Simulation, model: Model, test: VoteMatrix) -> dict[str, Any]:
    labeled = test.labels >= 0
    whole = model.score(test) >= DECISION
    return {
        "ensembler": model.spec.ensembler,
        "calls": float(found.calls.mean()),
        "saved": float(1 - found.calls.mean() / len(model.voters)),
        "changed": int(found.changed.sum()),
        "n": len(found.calls),
        "balanced_accuracy_panel": _balanced(whole[labeled], test.labels[labeled]),
        "balanced_accuracy_sequential": _balanced((found.p >= DECISION)[labeled], test.labels[labeled]),
    }


def _balanced(decisions: Any, labels: Any) -> float | None:
    if len(np.unique(labels)) < 2:
        return None
    return float((decisions[labels == 1].mean() + (~decisions[labels == 0]).mean()) / 2)


def means(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the mean over datasets for each number of judges; changed decisions are summed."""
    found = []
    for judges in dict.fromkeys(row["judges"] for row in rows):
        chosen = [row for row in rows if row["judges"] == judges]
        averaged = ("calls", "saved", "balanced_accuracy_panel", "balanced_accuracy_sequential")
        summed = {name: sum(row[name] for row in chosen) for name in ("changed", "n")}
        found.append({"judges": judges, **{name: _mean([row[name] for row in chosen]) for name in averaged}, **summed})
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def lines(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield a line a dataset, and a mean a number of judges."""
    yield f"{'held out':<26} judges  calls  saved  changed  balanced accuracy: panel, one by one"
    for row in rows:
        yield _line(row["test"], row)
    for mean in means(rows):
        yield _line("mean", mean)


def _line(name: str, row: dict[str, Any]) -> str:
    pair = (row["balanced_accuracy_panel"], row["balanced_accuracy_sequential"])
    accuracy = "  ".join("-" if value is None else f"{100 * value:.1f}" for value in pair)
    return (
        f"{name:<26} {row['judges']:>6} {row['calls']:>6.2f} {100 * row['saved']:>5.1f}% "
        f"{row['changed']:>5}/{row['n']:<6} {accuracy}"
    )


def run(argv: Sequence[str] | None) -> int:
    """Read the options, hold out, and report."""
    args = parser().parse_args(argv)
    votes = read_votes(args.votes, ignore=args.ignore) if args.votes else simulate_votes(args.seed)
    sizes = [_size(text, votes.shape[1]) for text in args.sizes]
    unknown = [name for name in args.ensembler if name not in ENSEMBLERS]
    if unknown:
        raise InputError(f"`ensembler` must be one of {', '.join(sorted(ENSEMBLERS))}. Got {unknown[0]!r}.")
    rows = list(held_out_rows(votes, sizes, args.ensembler, args.error_cost, args.seed))
    if args.json:
        origin = args.votes or "simulated"
        sys.stdout.write(to_json({"schema_version": 1, "votes": origin, "rows": rows, "means": means(rows)}))
    else:
        notice = [] if args.votes else [NOTICE]
        sys.stdout.write("\n".join([*lines(rows), *notice, ""]))
    return 0


def _size(text: str, n_voters: int) -> int:
    most = min(10, n_voters)
    if not text.isdecimal() or not 2 <= int(text) <= most:
        raise InputError(f"`sizes` must be whole numbers from 2 to {most}. Got {text!r}.")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
