"""`deep cognibench`: find hallucinated sentences, factual and cognitive, and measure whoever looks for them."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deep import report
from deep._files import check_out, check_replaceable, whole_file, write_json_lines, write_results
from deep.console import (
    LEVELS,
    SEVERAL,
    CommandParser,
    Subcommand,
    add_call_options,
    add_options,
    ask_options,
    check_least,
    check_models,
    endpoint_of,
    live_progress,
    print_result,
    run_subcommand,
)
from deep.exceptions import ExitStatus, InputError, StoppedError

if TYPE_CHECKING:
    from deep.experiments.cognibench._methods import AskedJudge, Method
    from deep.experiments.cognibench._turns import LabeledTurn


AGREEMENT = "measure the agreement of annotators by protocol, and of protocols with one another"

AGREEMENT_EXAMPLES = """\
examples:
  deep cognibench agreement annotations.csv
      a CSV file of item_id,protocol,annotator,label
"""

EXPORT_EXAMPLES = """\
examples:
  deep cognibench export-sft --data cognibench --out detector.jsonl
      knowledge, dialogue and response, and the list of hallucinated sentences as the answer, in chats of JSON lines
"""


run = run_subcommand


def add_arguments(parser: CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        Subcommand("evaluate", "measure who finds hallucinated sentences", _add_evaluate, _evaluate),
        Subcommand("agreement", AGREEMENT, _add_agreement, _agreement, AGREEMENT_EXAMPLES),
        Subcommand("export-sft", "write training data of a detector, as chats", _add_export, _export, EXPORT_EXAMPLES),
        standard="evaluate",
    )


def _add_evaluate(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|cognibench", help="folder of dialogues.json and labels.json")
    add("--samples", type=int, default=5, metavar="N", help="replies to each question of the tiered judge")
    add("--threshold", **SEVERAL, metavar="N", help="samples that must object; default: the majority")
    add("--level", choices=LEVELS, default="grounded", help="below it a cognitive statement is a hallucination")
    add("--no-tiers", action="store_true", help="do not ask for criteria above the level; saves a quarter of the calls")
    add("--examples", metavar="FILE", help="TOML of contrastive examples, in place of those that come with deep")
    add("--ablation", action="store_true", help="also one sample, and no examples and no tags: the rows of Table 5")
    add("--encoder", **SEVERAL, metavar="NAME", help="inference models by hub id or folder, as baselines")
    add("--entailment-label", metavar="LABEL", help="what says consistent, where a model's labels do not tell")
    add("--out", type=Path, default=Path("runs/cognibench"), metavar="DIR", help="folder for the results")
    add("--dry-run", action="store_true", help="print the most calls it can take, and send nothing")
    add_options(parser, "json", json={"help": "print results.json in place of the tables"})
    add_call_options(parser)


def _evaluate(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._methods import constants
    from deep.experiments.cognibench._turns import read_turns

    turns = read_turns(args.data)
    asked = _asked(args)
    if args.dry_run:
        return _dry_run(turns, asked)
    check_replaceable(args.out)
    methods = [*constants(turns), *_encoders(args, turns), *_ask(args, turns, asked)]
    _write(args, turns, methods)
    return ExitStatus.DONE


def _asked(args: argparse.Namespace) -> "list[AskedJudge]":
    """Return the judges to ask; none without a model."""
    from deep.experiments.cognibench._methods import asked_judges
    from deep.prompt_pool import load_contrasts

    check_least(args, samples=1)
    wrong = [word for word in args.threshold if not word.isdecimal() or not 1 <= int(word) <= args.samples]
    if wrong:
        raise InputError(f"`threshold` must be a whole number from 1 to {args.samples}. Got {wrong[0]!r}.")
    thresholds = [int(word) for word in args.threshold] or [args.samples // 2 + 1]
    contrasts = None if args.examples is None else load_contrasts(args.examples)
    return asked_judges(
        check_models(args) if args.llm else (),
        level=args.level,
        samples=args.samples,
        thresholds=thresholds,
        contrasts=contrasts,
        tiers=not args.no_tiers,
        ablation=args.ablation,
    )


def _dry_run(turns: "Sequence[LabeledTurn]", asked: "Sequence[AskedJudge]") -> int:
    from deep.records import Example

    calls = {one: sum(one.judge.most_calls(Example(t.source, t.response, t.turn_id)) for t in turns) for one in asked}
    width = max((len(f"{one.name} ({one.model})") for one in asked), default=0)
    lines = [f"{f'{one.name} ({one.model})':<{width}}  at most {n:,} calls" for one, n in calls.items()]
    lines.append(f"{sum(calls.values()):,} calls at most; questions that judges share are asked once. Nothing was sent")
    sys.stdout.write("\n".join([*lines, ""]))
    return ExitStatus.DONE


def _encoders(args: argparse.Namespace, turns: "Sequence[LabeledTurn]") -> "list[Method]":
    if not args.encoder:
        return []
    from deep.experiments.cognibench._methods import read_encoder
    from deep.features.encoders import load_encoder

    label = args.entailment_label
    label = int(label) if label is not None and label.isdecimal() else label
    encoders = [load_encoder(name, entailment_label=label) for name in args.encoder]
    return [read_encoder(encoder.voter(), turns, encoder.label_many) for encoder in encoders]


def _ask(args: argparse.Namespace, turns: "Sequence[LabeledTurn]", asked: "Sequence[AskedJudge]") -> "list[Method]":
    if not asked:
        return []
    from deep.experiments.cognibench._methods import ask_judges

    settings = ask_options(args, args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with live_progress() as progress:
        outcome, methods = ask_judges(turns, asked, settings, endpoint_of(args), progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    return methods


def _write(args: argparse.Namespace, turns: "Sequence[LabeledTurn]", methods: "Sequence[Method]") -> None:
    """Write tables, figures and every sentence, and print what matters."""
    from deep._figures import save_figures
    from deep.evaluate import write_table
    from deep.experiments.cognibench import _tables as build
    from deep.experiments.cognibench._figures import draw_figures

    scored = build.scores_of(turns, methods, args.level)
    frames = build.tables(turns, scored, args.level)
    results = {**build.results_of(turns, scored), "level": args.level, "samples": args.samples}
    drawn = draw_figures(
        frames["rates-by-turn"],
        frames["rates-by-position"],
        build.verdict_shares(turns),
        frames["figure8-shares"],
    )
    with report.reported_folder(args.out) as folder:
        write_results(folder, results)
        build.sentences(turns, methods, args.level).to_csv(folder / "sentences.csv", index=False, lineterminator="\n")
        for name, frame in frames.items():
            write_table(folder, name, frame, build.TITLES[name], shown=build.percentages(frame))
        save_figures(drawn, folder)
    print_result(
        results, [build.summary_text(results, frames, args.out), report.report_line(args.out)], as_json=args.json
    )


def _add_export(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|cognibench", help="folder of the published files")
    add("--level", choices=LEVELS, default="grounded", help="below it a cognitive one is hallucinated")
    add("--out", type=Path, required=True, metavar="FILE", help="ends in .jsonl")


def _export(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._sft import chats
    from deep.experiments.cognibench._turns import read_turns

    out = check_out(args.out, [".jsonl"])
    written = list(chats(read_turns(args.data), args.level))
    with whole_file(out) as scratch:
        write_json_lines(scratch, written)
    sys.stdout.write(f"{len(written):,} chats: in {out}\n")
    return ExitStatus.DONE


def _add_agreement(parser: CommandParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV of item_id, protocol, annotator and label")
    add_options(parser, "n-boot", "seed", "json", n_boot={"default": 2000})


def _agreement(args: argparse.Namespace) -> int:
    from deep.evaluate import markdown
    from deep.experiments.cognibench._agreement import agreement_tables, read_annotations

    check_least(args, n_boot=1, seed=0)
    found = agreement_tables(read_annotations(args.file), n_boot=args.n_boot, random_state=args.seed)
    texts = ["\n".join(markdown(frame)) for frame in found.values() if not frame.empty]
    results = {name: json.loads(frame.to_json(orient="records")) for name, frame in found.items()}
    print_result(results, ["\n\n".join(texts)], as_json=args.json)
    return ExitStatus.DONE
