"""Measuring whoever looks for hallucinated sentences."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from deep._util.columns import plain_frame
from deep._util.files import JsonObject, check_replaceable, read_bytes
from deep.console import check_draws, check_models, check_not_in, study_lines
from deep.evaluate import DatasetVerdict, markdown, records
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.cognibench import _cognibench_tables as build
from deep.experiments.cognibench import _methods
from deep.experiments.cognibench._cognibench_measures import PARTS
from deep.experiments.cognibench._turns import JUDGES, LabeledTurn, accuracy_of, classified, read_turns, turns_of_split
from deep.experiments.tiered import load_contrasts
from deep.records import Example


def evaluate(args: argparse.Namespace) -> int:
    """Run ``deep cognibench``."""
    published = read_turns(args.data)
    turns = turns_of_split(published, args)
    asked = _asked(args)
    if args.dry_run:
        return _dry_run(turns, asked)
    check_replaceable(args.out)
    kinds = _kinds(args, turns, published)
    spans = [method for given in args.spans for method in _methods.read_spans(given, turns)]
    methods = [
        *_methods.constants(turns),
        *spans,
        *_encoders(args, turns),
        *_methods.ask_judges(args, turns, asked, kinds),
    ]
    _write(args, turns, methods, None if kinds is None else accuracy_of(kinds, turns))
    return ExitStatus.DONE


def thresholds_of(args: argparse.Namespace) -> list[int]:
    """Return the numbers of samples that must object; by default the majority."""
    check_draws(args, "samples")
    wrong = [word for word in args.threshold if not word.isdecimal() or not 1 <= int(word) <= args.samples]
    if wrong:
        raise InputError(f"`threshold` must be a whole number from 1 to {args.samples}. Got {wrong[0]!r}.")
    return [int(word) for word in args.threshold] or [args.samples // 2 + 1]


def _asked(args: argparse.Namespace) -> list[_methods.AskedJudge]:
    """Return the judges to ask; none without an LLM."""
    wrong = [name for name in args.judge if name not in JUDGES]
    if wrong:
        raise InputError(f"`judge` must be of {', '.join(sorted(JUDGES))}. Got {wrong[0]!r}.")
    return _methods.asked_judges(
        check_models(args) if args.llm else (),
        judges=args.judge,
        level=args.level,
        samples=args.samples,
        thresholds=thresholds_of(args),
        contrasts=None if args.examples is None else load_contrasts(args.examples),
        tiers=not args.no_tiers,
        ablation=args.ablation,
        prompts=args.prompt,
    )


def _dry_run(turns: Sequence[LabeledTurn], asked: Sequence[_methods.AskedJudge]) -> int:
    calls = {one: sum(one.judge.most_calls(Example(t.source, t.response, t.turn_id)) for t in turns) for one in asked}
    width = max((len(f"{one.name} ({one.model})") for one in asked), default=0)
    lines = [f"{f'{one.name} ({one.model})':<{width}}  at most {n:,} calls" for one, n in calls.items()]
    lines.append(f"{sum(calls.values()):,} calls at most; questions that judges share are asked once. Nothing was sent")
    sys.stdout.write("\n".join([*lines, ""]))
    return ExitStatus.DONE


def _kinds(
    args: argparse.Namespace, turns: Sequence[LabeledTurn], published: Sequence[LabeledTurn]
) -> list[list[str]] | None:
    """Return the types of all sentences by the classifier; None where the LLM is to say them, or nobody asks."""
    if not args.llm or "auto" not in args.judge or args.classifier == "llm":
        return None
    return classified([(turn.dialogue_id, turn.texts) for turn in turns], published)


def _encoders(args: argparse.Namespace, turns: Sequence[LabeledTurn]) -> list[_methods.Method]:
    if not args.encoder:
        return []
    from deep.integrations.encoders import load_encoder

    label = args.entailment_label
    label = int(label) if label is not None and label.isdecimal() else label
    encoders = [load_encoder(name, entailment_label=label) for name in args.encoder]
    return [method for encoder in encoders for method in _methods.read_encoder(encoder, turns, args.neutral)]


def _write(
    args: argparse.Namespace, turns: Sequence[LabeledTurn], methods: Sequence[_methods.Method], accuracy: float | None
) -> None:
    """Write tables, figures and every sentence, and print the summary."""
    scored = build.scores_of(turns, methods, args.level)
    frames = build.tables(turns, scored, args.level)
    split = {"split": args.split, "test_share": args.test_share, "seed": args.split_seed}
    results = {**build.results_of(turns, scored), "level": args.level, "samples": args.samples, "split": split}
    verdict = build.verdict_of(results, turns)
    results |= {"verdict": verdict.as_dict(), "classifier": {"mean_accuracy": accuracy}}
    sentences = plain_frame(build.sentences(turns, methods, args.level))
    study.publish(
        args,
        results,
        study_lines(verdict, build.summary_text(results, frames, args.out)),
        tables=frames,
        titles=build.TITLES,
        shown=study.percentages,
        paper="cognibench",
        figures=build.draw_figures(frames, build.verdict_shares(turns)),
        more=lambda folder: sentences.to_csv(folder / "sentences.csv", index=False, lineterminator="\n"),
    )


NAME, TITLE = "figure12-training-size", "Figure 12: F1 of the tuned detector by training size, in percent"


def curve(args: argparse.Namespace) -> int:
    """Run ``deep cognibench curve``."""
    check_replaceable(args.out)
    points = sorted((_point(given, args.method) for given in args.points), key=lambda row: row["training chats"])
    for given in args.points:
        check_not_in(args.out, Path(given.partition("=")[2]), "points")
    table = pd.DataFrame(points)
    fits = {part: fit for part in PARTS if (fit := _fit(points, part)) is not None}
    slopes = {part: {"intercept": low, "per_tenfold": slope} for part, (low, slope) in fits.items()}
    verdict = _curve_verdict(points, fits)
    results = {"schema_version": 1, "verdict": verdict.as_dict(), "points": records(table), "fits": slopes}
    lines = [*study_lines(verdict, "\n".join([TITLE, "", *markdown(study.percentages(table)), ""]))]
    lines += [f"{part}: {100 * slope:+.2f} points a tenfold of chats" for part, (_, slope) in fits.items()]
    study.publish(
        args,
        results,
        [*lines, f"written to {args.out}"],
        tables={NAME: table},
        titles={NAME: TITLE},
        shown=study.percentages,
        figures={NAME: build.draw_curve(table, fits)},
    )
    return ExitStatus.DONE


def _curve_verdict(points: Sequence[JsonObject], fits: Mapping[str, tuple[float, float]]) -> DatasetVerdict:
    """Return the answer of a curve: the best point, and what ten times the chats bring."""
    best, (_, slope) = max(points, key=lambda row: row["overall"] or 0.0), fits.get("overall", (0.0, float("nan")))
    suspect = f"F1 is highest with {best['training chats']:,} chats, {100 * (best['overall'] or 0.0):.1f} %."
    trust = f"Ten times the chats bring {100 * slope:+.1f} points, by a line through {len(points)} sizes."
    return DatasetVerdict(f"{len(points)} tuned detectors.", suspect, trust, "tune on as many as pay", picture=NAME)


def _point(given: str, method: str | None) -> JsonObject:
    """Return a row of the curve from SIZE=RUN."""
    left, equals, right = given.partition("=")
    if not (equals and left.isdecimal() and int(left)):
        raise InputError(f"`points` must be SIZE=RUN, SIZE a number of training chats. Got {given!r}.")
    size = int(left)
    try:
        return {"training chats": size, **_measured(right, method)}
    except (KeyError, TypeError):
        raise InputError(f"`points` must be runs of `deep cognibench`. Got another kind in {right!r}.") from None


def _measured(run: str, method: str | None) -> JsonObject:
    """Return F1 of one method of a run."""
    methods = _results(Path(run)).get("methods", [])
    chosen = [m for m in methods if (m["group"] == "direct" if method is None else m["method"] == method)]
    if len(chosen) != 1:
        known = ", ".join(m["method"] for m in methods) or "none"
        raise InputError(f"`method` must be one method of {run!r}: {known}. Got {method!r}.")
    parts = chosen[0]["parts"]
    found = {part: parts[part]["f1"] for part in PARTS} | {"macro mean": chosen[0]["macro_f1"]}
    if not all(value is None or 0 <= value <= 1 for value in found.values()):
        raise TypeError(found)
    return {"method": chosen[0]["method"], **found}


def _results(folder: Path) -> JsonObject:
    try:
        told = json.loads(read_bytes(folder / "results.json", "points"))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`points` must be folders of runs. Got {str(folder)!r}: {reason}.") from None
    return told if isinstance(told, dict) else {}


def _fit(points: Sequence[JsonObject], part: str) -> tuple[float, float] | None:
    """Return the intercept and the slope of F1 on the logarithm of the size, by least squares; None of one size."""
    known = [row for row in points if row[part] is not None]
    if len({row["training chats"] for row in known}) < 2:
        return None
    sizes = np.log10([float(row["training chats"]) for row in known])
    slope, low = np.polyfit(sizes, [float(row[part]) for row in known], 1)
    return float(low), float(slope)
