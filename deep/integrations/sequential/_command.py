"""Hold out each dataset, learn a chain and an order of asking on the others, and count the questions saved.

For instance:

  deep panel sequential
      with 3, 5 and 9 judges of the embedded, simulated votes: no decision changes, fewer calls
  deep panel sequential --votes votes.parquet --sizes 5 --error-cost 20
      stop as soon as asking on costs more than the errors it spares; a wrong decision costs 20 questions
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from deep import asking, console, evaluate, model
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError, StoppedError
from deep.integrations import sequential


@dataclass(frozen=True)
class _Sequential:
    """Options of the command.

    Parameters
    ----------
    error_cost : float, optional
        Cost of a wrong decision, in questions; default: same decisions as all judges.
    """

    error_cost: float | None = option(None, "N")


add_arguments = console.adder(
    *("votes", "ignore", "sizes", "ensembler", _Sequential, "seed", "json"),
    votes={"help": "labeled tables of votes; default: simulated"},
    sizes={"default": ["3", "5", "9"], "help": "numbers of judges"},
    ensembler={"default": ["LogisticRegression"], "help": "the chain is the best of these on training data"},
)


def run(args: argparse.Namespace) -> int:
    """Hold out, and report."""
    votes = console.read_training_votes(args)
    sizes = console.numbers_of_voters(args.sizes, votes.shape[1])
    options = {"error_cost": args.error_cost, "random_state": args.seed}
    with console.progress_bars() as progress:
        rows = sequential.sequential_savings(votes, sizes, args.ensembler, **options, progress=progress)
    results = console.SCHEMA | {"votes": console.origin_of(args), "rows": rows, "means": sequential.mean_savings(rows)}
    console.print_result(results, [*_lines(results), *([] if args.votes else [console.NOTICE])], as_json=args.json)
    return ExitStatus.DONE


def _lines(found: console.Results) -> Iterator[str]:
    yield f"{'held out':<26} judges  calls  saved  changed  balanced accuracy: panel, one by one"
    for row in [*found["rows"], *({"test": "mean"} | mean for mean in found["means"])]:
        pair = (row["balanced_accuracy_panel"], row["balanced_accuracy_sequential"])
        accuracy = "  ".join(evaluate.in_percent(value) or "-" for value in pair)
        yield (
            f"{row['test']:<26} {row['judges']:>6} {row['calls']:>6.2f} {console.percent(row['saved']):>7} "
            f"{row['changed']:>5}/{row['n']:<6} {accuracy}"
        )


def score_one_by_one(
    fitted: "model.Model",
    args: argparse.Namespace,
    plan: "asking.Plan",
    ask: "asking.AskOptions | None",
    options: "model.ScoreOptions",
) -> int:
    """Score text by asking its judges one by one; print first what that would have done to the training data."""
    if ask is None:
        raise InputError("`sequential` must be given with a model of judges that are asked. Got none. Score without.")
    work = sequential.OneByOne.prepare(fitted, plan, ask, options, args.error_cost)
    with console.progress_bars() as bars:
        training = work.training(bars("training datasets", len(fitted.cells.groups)))
    if not args.json:
        sys.stderr.write("\n".join([*sequential.training_lines(training), ""]))
    if args.dry_run:
        console.print_result(
            console.SCHEMA | {"dry_run": True, "training": training}, ["nothing was sent"], as_json=args.json
        )
        return ExitStatus.DONE
    with console.live_progress() as progress:
        found = work.run(ask, progress)
    if isinstance(found, str):
        raise StoppedError(found)
    more = {"training": training, **console.told_of_texts(fitted, options)}
    console.print_scored(args, found, model.ITEM_COLUMNS | sequential.COLUMNS, more)
    return ExitStatus.DONE
