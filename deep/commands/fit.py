"""Learn how to turn votes into P(consistent) from whatever labels there are, and write the model file.

Three labeled datasets or more: the stack of many ways to add up votes. One or two: an average in which nothing is
chosen. Labels of your own dataset alone: simple ways, compared on rows left out. No label: from the votes alone. With
options that name a chain (recipe, sizes, ensembler, calibrator, selector): the best chain among those asked for.

For instance:

  deep fit votes.parquet --out model.json
      learn from every labeled dataset, and say how and why
  deep fit votes.parquet --share 60-80% --out model.json
      the same, for datasets of which you believe that nine in ten are 60 to 80 % consistent
  deep fit labeled.parquet mine.parquet --labels mine.csv --out mine.json
      the same, corrected by labels of a random sample of your own dataset
  deep fit votes.parquet --scores scores.parquet --exclude mine --out model.json
      from votes and soft scores of all datasets but one
  deep fit votes.csv --out model.json --ensembler LogisticRegression --calibrator platt --sizes 3,5
      a chain that you name; the best subset of voters is still searched for
"""

import argparse
from collections.abc import Iterator

from deep import console, evaluate, model
from deep._util.files import check_out
from deep._util.names import listed, short_names
from deep._util.options import topic_values

# The most voters that are named in print; `--json` names all. They fit on a line or two. Chosen; no measurement is
# known.
MAX_VOTERS = 6

# The most training datasets that have a line in print. More lines than a screen has would push the result away. Chosen;
# no measurement is known.
MAX_LISTED = 50


add_arguments = console.adder(
    console.FitOptions,
    *("labels", "dataset", "scale", "scores", "recipe", "sizes", "ensembler", "calibrator", "selector", "ignore"),
    "decide",
    *("share", "max-failure-rate", "strict", "seed", "jobs", "json"),
    labels={"help": "labels of a random sample of your own dataset: dataset, item_id, label"},
    scores={"help": "tables of soft scores, in any unit"},
    sizes={"help": "numbers of voters of a chain, or 'all'; default: 3 5 9"},
    recipe={"rare": True},
    selector={"rare": True},
)


def run(args: argparse.Namespace) -> None:
    """Fit, write and report."""
    # Before anything is read: a fit of an hour must not end in a folder that cannot be written to.
    out, n_jobs = check_out(args.out, [".json"]), console.check_jobs(args.jobs)
    votes, target, provenance = console.read_fit_data(args)
    console.note_run(args, votes.voter_names)
    with console.progress_bars() as progress:
        fitted = model.fit(
            votes,
            target=target,
            **topic_values(model.ChainOptions, args)
            | {"sizes": console.numbers_of_voters(args.sizes, votes.shape[1]) or None},
            share=args.share,
            decide=args.decide,
            random_state=args.seed,
            provenance=provenance,
            run=console.parallel_map(n_jobs, progress, "fit"),
        )
    results = console.SCHEMA | evaluate.fit_report(fitted) | {"model": str(out)}
    results["constant_judges"] = evaluate.constant_judges(votes)
    del votes  # the rows take the memory that writing the model needs
    fitted.save(out)
    notice = ["These votes are SIMULATED; no LLM was called. Give your own."] if args.simulated else []
    console.print_result(results, [*_lines(results), *notice], as_json=args.json)


def _lines(results: console.Results) -> Iterator[str]:
    yield f"{results['what']}: {results['why']}"
    yield from (f"  {line}" for line in results["members"])
    voters = [*short_names(results["voters"]).values()]
    yield f"{len(voters)} voter{'' if len(voters) == 1 else 's'}: {listed(voters, MAX_VOTERS)}"
    scores, training = results["left_out_scores"], results["training_datasets"]
    yield f"trained on {len(training)} dataset{'' if len(training) == 1 else 's'}:"
    width = max(map(len, training))
    for name, row in list(training.items())[:MAX_LISTED]:
        share = "no labels" if row["prior"] is None else f"{console.percent(row['prior'])} consistent"
        left_out = f"   left out: {_scores(scores['datasets'][name])}" if name in scores["datasets"] else ""
        yield f"  {name:<{width}}  {row['n']:>6} rows, {share}{left_out}"
    if rest := list(training)[MAX_LISTED:]:
        yield f"  and {len(rest):,} others, all in the model file"
    if scores["mean"]:
        yield f"mean over held-out data: {_scores(scores['mean'])}"
    yield from results["said"]
    yield from sorted({f"licence: {row['licence']}" for row in training.values() if row["licence"]})
    yield from results["notes"]
    yield from results["constant_judges"]
    yield f"model: {results['model']}"


def _scores(row: console.Results) -> str:
    accuracy, error, floor = (console.percent(row[name]) for name in ("balanced_accuracy", "ece", "ece_floor"))
    return f"balanced accuracy {accuracy}, ECE {error} (noise floor {floor})"
