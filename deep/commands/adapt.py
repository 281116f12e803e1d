"""Make a model that of one dataset: its votes give the prior and the context, and labels, if any, correct P.

Labels are those of `--labels`, of items drawn at random; labels beside the votes are not used.

For instance:

  deep adapt model.json --votes recent.parquet --out mine.json
      a model for this dataset that scores a single text as one of it, and a table to export
  deep adapt model.json --moments moments.json --out mine.json
      the same of rows that `deep data moments` has counted where they are: no row is read here
  deep adapt model.json --votes recent.parquet --share 60-80% --out mine.json
      joined to what you believe: nine times in ten such a dataset is 60 to 80 % consistent
  deep label list model.json --votes mine.parquet --n 50 --out to-label.csv
      which items to label
  deep adapt model.json --votes mine.parquet --labels to-label.csv --out mine.json
      the same with slope and intercept by the labels, shrunk towards what the training datasets show
"""

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from deep import console, evaluate, model
from deep._util.entry_points import load_part
from deep._util.files import check_out
from deep.exceptions import InputError

add_target = partial(console.add_target_options, required=False)
add_arguments = console.adder(console.MODEL_ARG, add_target, console.AdaptOptions, "decide", "share", "json")


def run(args: argparse.Namespace) -> None:
    """Adapt the model, write and report."""
    # Before anything is read: what is found must not be lost to a folder that cannot be written to.
    out = check_out(args.out, [".json"])
    if bool(args.votes) == (args.moments is not None):
        number = "both" if args.votes else "none"
        raise InputError(f"`votes` or `moments` must be given. Got {number}.")
    other = next((name for name in ("labels", "scores") if getattr(args, name)), None)
    # Moments are counts: no label or score can be matched to an item.
    if args.moments is not None and other is not None:
        raise InputError(f"`{other}` must be given with `votes`. Got them with moments, which name no items.")
    fitted = model.load(args.model).believing(args.share)
    console.note_run(args, [voter.name for voter in fitted.voters])
    if args.moments is not None:
        _adapt_by_moments(fitted, args, out)
        return
    target = evaluate.read_target(fitted, args.votes, args.labels, args.scores)
    adapted, report = evaluate.adapt_model(fitted, target, decide=args.decide)
    adapted.save(out)
    results = console.SCHEMA | report | {"out": str(out)}
    console.print_result(results, _lines(results), as_json=args.json)


def _adapt_by_moments(fitted: "model.Model", args: argparse.Namespace, out: Path) -> None:
    """Adapt the model by a file of counts in place of votes, write and report."""
    adapted, n = load_part("adapt-moments")(fitted, args.moments, args.dataset)
    # The rule of the model stays unless another is given.
    adapted = adapted if args.decide is None else adapted.deciding(args.decide)
    adapted.save(out)
    result = {"dataset": adapted.target, "n": n, "prior": vars(adapted.prior)}
    result["rule"] = adapted.rule.sentence(adapted.threshold())
    lines = [
        *model.prior_lines({str(adapted.target): adapted.prior}),
        str(result["rule"]),
        f"{result['n']} items counted; model: {out}",
    ]
    console.print_result(console.SCHEMA | result | {"out": str(out)}, lines, as_json=args.json)


def _lines(results: console.Results) -> Iterator[str]:
    mean, width, prior = results["p_mean"], results["interval_width"], results["prior"]
    share, low, high = (console.percent(prior[name]) for name in ("estimate", "low", "high"))
    warning = f" ({prior['warning']})" if prior["warning"] else ""
    yield f"{results['dataset']}: {results['n']} items, {share} consistent ({low} to {high}){warning}"
    yield (
        f"mean P: {console.percent(mean['streamed'])} before, {console.percent(mean['adapted'])} adapted; P changes "
        f"by {evaluate.in_percent(results['p_change'])} points on average"
    )
    correction = results["correction"]
    if correction is None:
        yield "no labels: only the context and the prior of this dataset correct P"
    else:
        labels = results["labels"]
        yield (
            f"{labels['n']} labels, {labels['consistent']} of them consistent, worth {correction['n_effective']:.0f} "
            f"independent ones: log-odds are then shifted by {correction['intercept']:+.2f} and multiplied by "
            f"{correction['slope']:.2f}"
        )
        floors = {when: console.percent(labels[f"ece_floor_{when}"]) for when in ("before", "after")}
        before, after = (
            f"{console.percent(labels[f'ece_{when}'])} {when} (noise floor {floor})" for when, floor in floors.items()
        )
        # A correction looks better on the labels that it was learned from than it is.
        flattered = "the second is optimistic: the correction was learned from these labels"
        yield f"ECE on these labels: {before}, {after}; {flattered}"
        before, after = evaluate.in_percent(width["before"]), evaluate.in_percent(width["after"])
        yield f"mean width of the 90 % interval: {before} points, {after} with labels"
    if results["table"]:
        yield f"`deep export {results['out']}` writes P of every vote pattern as a table"
    yield results["rule"]
    yield f"model: {results['out']}"
