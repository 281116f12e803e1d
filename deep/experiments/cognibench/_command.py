"""CogniBench: find hallucinated sentences, factual and cognitive, and measure whoever looks for them.

::

    deep cognibench --data cognibench --model gpt-4o-mini --out runs/cognibench --budget 5.00
    deep cognibench agreement annotations.csv
    deep cognibench export-sft --data cognibench --out detector.jsonl

Exit status: 0 done, 2 an error, 3 the budget is reached, 130 interrupted.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._files import check_out, check_replaceable, to_json, whole_file, whole_folder
from deep.console import (
    LEVELS,
    HelpFormatter,
    StoppedError,
    Values,
    add_call_options,
    call_settings,
    check_least,
    check_models,
    endpoint_of,
    guarded,
)
from deep.exceptions import InputError

if TYPE_CHECKING:
    from deep.experiments.cognibench._methods import AskedJudge, Method
    from deep.experiments.cognibench._turns import LabeledTurn

__all__ = ["main"]

EXAMPLES = """\
examples:
  deep cognibench --data cognibench --out runs/cognibench
      the published labels alone: statistics, rates, figures, and the judges that always say the same; no calls
  deep cognibench --data cognibench --model gpt-4o-mini --out runs/cognibench --dry-run
      the most calls that the judges of a model can take; nothing is sent
  deep cognibench --data cognibench --model gpt-4o-mini --threshold 2 3 --ablation --out runs/cognibench
      Tables 2, 3 and 5 and Figures 5 to 8; again, it asks only what is missing
  deep cognibench --data cognibench --encoder models/nli --out runs/cognibench
      an encoder reads every sentence beside its knowledge, as a baseline

other commands:
  deep cognibench agreement FILE     agreement of annotators by protocol, and of protocols with one another
  deep cognibench export-sft ...     training data of a detector, as chats
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    commands = {"agreement": _agreement, "export-sft": _export}
    if words and words[0] in commands:
        return guarded(commands[words[0]], words[1:])
    return guarded(_evaluate, words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="deep cognibench",
        description="Measure who finds the hallucinated sentences of CogniBench, by words, factual and cognitive.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: Any = {"action": Values, "nargs": "+", "default": []}
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|cognibench", help="folder of dialogues.json and labels.json")
    add("--samples", type=int, default=5, metavar="N", help="replies to each question of the tiered judge")
    add("--threshold", **several, metavar="N", help="samples that must object; default: the majority")
    add("--level", choices=LEVELS, default="grounded", help="below it a cognitive statement is a hallucination")
    add("--no-tiers", action="store_true", help="do not ask for criteria above the level; saves a quarter of the calls")
    add("--examples", metavar="FILE", help="TOML of contrastive examples, in place of those that come with deep")
    add("--ablation", action="store_true", help="also one sample, and no examples and no tags: the rows of Table 5")
    add("--encoder", **several, metavar="NAME", help="inference models by hub id or folder, as baselines")
    add("--entailment-label", metavar="LABEL", help="what says consistent, where a model's labels do not tell")
    add("--out", type=Path, default=Path("runs/cognibench"), metavar="DIR", help="folder for the results")
    add("--dry-run", action="store_true", help="print the most calls it can take, and send nothing")
    add("--json", action="store_true", help="print results.json in place of the tables")
    add_call_options(parser)
    return parser


def _evaluate(words: Sequence[str] | None) -> int:
    from deep.experiments.cognibench._methods import constants
    from deep.experiments.cognibench._turns import read_turns

    args = _parser().parse_args(words)
    turns = read_turns(args.data)
    asked = _asked(args)
    if args.dry_run:
        return _dry_run(turns, asked)
    check_replaceable(args.out)
    methods = [*constants(turns), *_encoders(args, turns), *_ask(args, turns, asked)]
    _write(args, turns, methods)
    return 0


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
        check_models(args) if args.model else (),
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
    return 0


def _encoders(args: argparse.Namespace, turns: "Sequence[LabeledTurn]") -> "list[Method]":
    if not args.encoder:
        return []
    from deep.experiments.cognibench._methods import read_encoder
    from deep.features.encoders import load_encoder

    label = args.entailment_label
    label = int(label) if label is not None and label.isdecimal() else label
    encoders = [load_encoder(name, entailment_label=label) for name in args.encoder]
    return [read_encoder(encoder.voter, turns, encoder.label_many) for encoder in encoders]


def _ask(args: argparse.Namespace, turns: "Sequence[LabeledTurn]", asked: "Sequence[AskedJudge]") -> "list[Method]":
    if not asked:
        return []
    from deep.experiments.cognibench._methods import ask_judges

    settings = call_settings(args, args.out)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    outcome, methods = ask_judges(turns, asked, settings, endpoint_of(args))
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
    with whole_folder(args.out) as folder:
        (folder / "results.json").write_text(to_json(results), encoding="utf-8")
        build.sentences(turns, methods, args.level).to_csv(folder / "sentences.csv", index=False, lineterminator="\n")
        for name, frame in frames.items():
            write_table(folder, name, frame, build.TITLES[name], shown=build.percentages(frame))
        save_figures(drawn, folder)
    sys.stdout.write(to_json(results) if args.json else build.summary_text(results, frames, args.out))


def _export(words: Sequence[str] | None) -> int:
    from deep.experiments.cognibench._sft import chats
    from deep.experiments.cognibench._turns import read_turns

    parser = argparse.ArgumentParser(
        prog="deep cognibench export-sft",
        description="Write training data of a detector: knowledge, dialogue and response, and the list of hallucinated "
        "sentences as the answer, in chats of JSON lines.",
        epilog="examples:\n  deep cognibench export-sft --data cognibench --out detector.jsonl\n",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--data", required=True, metavar="DIR|cognibench", help="folder of the published files")
    parser.add_argument("--level", choices=LEVELS, default="grounded", help="below it a cognitive one is hallucinated")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="ends in .jsonl")
    args = parser.parse_args(words)
    out = check_out(args.out, [".jsonl"])
    lines = [json.dumps(chat, ensure_ascii=False) for chat in chats(read_turns(args.data), args.level)]
    with whole_file(out) as scratch:
        scratch.write_text("\n".join([*lines, ""]), encoding="utf-8")
    sys.stdout.write(f"{len(lines):,} chats: in {out}\n")
    return 0


def _agreement(words: Sequence[str] | None) -> int:
    from deep.evaluate import markdown
    from deep.experiments.cognibench._agreement import agreement_tables, read_annotations

    parser = argparse.ArgumentParser(
        prog="deep cognibench agreement",
        description="Agreement of annotators under each protocol, and of the protocols with one another.",
        epilog="examples:\n  deep cognibench agreement annotations.csv\n"
        "      a CSV file of item_id,protocol,annotator,label\n",
        formatter_class=HelpFormatter,
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV of item_id, protocol, annotator and label")
    parser.add_argument("--n-boot", type=int, default=2000, metavar="N", help="resamples of every interval")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the resampling")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    args = parser.parse_args(words)
    check_least(args, n_boot=1, seed=0)
    found = agreement_tables(read_annotations(args.file), n_boot=args.n_boot, random_state=args.seed)
    if args.json:
        sys.stdout.write(to_json({name: json.loads(frame.to_json(orient="records")) for name, frame in found.items()}))
        return 0
    texts = ["\n".join(markdown(frame)) for frame in found.values() if not frame.empty]
    sys.stdout.write("\n\n".join(texts) + "\n")
    return 0
