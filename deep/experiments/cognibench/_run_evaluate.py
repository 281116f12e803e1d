"""Measuring whoever looks for hallucinated sentences."""

import argparse
import sys
from collections.abc import Sequence

from deep._figures import save_figures
from deep._files import check_replaceable, write_results
from deep._plain_cells import plain_frame
from deep.console import ask_options, check_draws, check_models, endpoint_of, live_progress, print_result
from deep.evaluate import write_table
from deep.exceptions import ExitStatus, InputError, StoppedError
from deep.experiments.cognibench import _tables as build
from deep.experiments.cognibench._figures import draw_figures
from deep.experiments.cognibench._kinds import accuracy_of, classified
from deep.experiments.cognibench._methods import (
    JUDGES,
    AskedJudge,
    Method,
    ask_judges,
    asked_judges,
    constants,
    read_encoder,
)
from deep.experiments.cognibench._spans import read_spans
from deep.experiments.cognibench._split import turns_of_split
from deep.experiments.cognibench._turns import LabeledTurn, read_turns
from deep.experiments.printed import write_printed
from deep.experiments.tiered import load_contrasts
from deep.records import Example
from deep.report import report_line, reported_folder


def evaluate(args: argparse.Namespace) -> int:
    """Run ``deep cognibench``."""
    published = read_turns(args.data)
    turns = turns_of_split(published, args)
    asked = _asked(args)
    if args.dry_run:
        return _dry_run(turns, asked)
    check_replaceable(args.out)
    kinds = _kinds(args, turns, published)
    spans = [method for given in args.spans for method in read_spans(given, turns)]
    methods = [*constants(turns), *spans, *_encoders(args, turns), *_ask(args, turns, asked, kinds)]
    _write(args, turns, methods, None if kinds is None else accuracy_of(kinds, turns))
    return ExitStatus.DONE


def thresholds_of(args: argparse.Namespace) -> list[int]:
    """Return the numbers of samples that must object; by default the majority."""
    check_draws(args, "samples")
    wrong = [word for word in args.threshold if not word.isdecimal() or not 1 <= int(word) <= args.samples]
    if wrong:
        raise InputError(f"`threshold` must be a whole number from 1 to {args.samples}. Got {wrong[0]!r}.")
    return [int(word) for word in args.threshold] or [args.samples // 2 + 1]


def _asked(args: argparse.Namespace) -> list[AskedJudge]:
    """Return the judges to ask; none without an LLM."""
    wrong = [name for name in args.judge if name not in JUDGES]
    if wrong:
        raise InputError(f"`judge` must be of {', '.join(sorted(JUDGES))}. Got {wrong[0]!r}.")
    return asked_judges(
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


def _dry_run(turns: Sequence[LabeledTurn], asked: Sequence[AskedJudge]) -> int:
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


def _encoders(args: argparse.Namespace, turns: Sequence[LabeledTurn]) -> list[Method]:
    if not args.encoder:
        return []
    from deep.features.encoders import load_encoder

    label = args.entailment_label
    label = int(label) if label is not None and label.isdecimal() else label
    encoders = [load_encoder(name, entailment_label=label) for name in args.encoder]
    return [method for encoder in encoders for method in read_encoder(encoder, turns, args.neutral)]


def _ask(
    args: argparse.Namespace,
    turns: Sequence[LabeledTurn],
    asked: Sequence[AskedJudge],
    kinds: Sequence[Sequence[str]] | None,
) -> list[Method]:
    if not asked:
        return []
    settings = ask_options(args, args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with live_progress() as progress:
        outcome, methods = ask_judges(turns, asked, settings, endpoint_of(args), progress, kinds)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return methods


def _write(
    args: argparse.Namespace, turns: Sequence[LabeledTurn], methods: Sequence[Method], accuracy: float | None
) -> None:
    """Write tables, figures and every sentence, and print what matters."""
    scored = build.scores_of(turns, methods, args.level)
    frames = build.tables(turns, scored, args.level)
    split = {"split": args.split, "test_share": args.test_share, "seed": args.split_seed}
    results = {**build.results_of(turns, scored), "level": args.level, "samples": args.samples, "split": split}
    results["classifier"] = {"mean_accuracy": accuracy}
    drawn = draw_figures(frames, build.verdict_shares(turns))
    with reported_folder(args.out) as folder:
        write_results(folder, results)
        sentences = plain_frame(build.sentences(turns, methods, args.level))
        sentences.to_csv(folder / "sentences.csv", index=False, lineterminator="\n")
        for name, frame in frames.items():
            write_table(folder, name, frame, build.TITLES[name], shown=build.percentages(frame))
        write_printed(folder, "cognibench", [*frames, *drawn])
        save_figures(drawn, folder)
    text = build.summary_text(results, frames, args.out)
    print_result(results, [text, report_line(args.out)], as_json=args.json)
