"""`deep cognibench`: find hallucinated sentences, factual and cognitive, and measure whoever looks for them."""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from deep import console
from deep._util.options import option
from deep.exceptions import ExitStatus
from deep.experiments.cognibench._turns import add_split
from deep.experiments.tiered import CRITERIA

AGREEMENT = "measure the agreement of annotators by protocol, and of protocols with one another"

LABEL_EXAMPLES = """\
examples:
  deep cognibench label --data cognibench --judge auto --llm gpt-4o-mini --out labeled --budget 5
      all turns, published labels or not: a classifier of types, then two prompts in five samples
  deep cognibench label --data responses.jsonl --judge tiered --llm gpt-4o-mini --out labeled
      your own: source and claim, as wanted document_id (the dialogue) and model (which wrote it)
"""

AGREEMENT_EXAMPLES = """\
examples:
  deep cognibench agreement annotations.csv
      a CSV file of item_id,protocol,annotator,label
"""

EXPORT_EXAMPLES = """\
examples:
  deep cognibench export-sft --labels labeled --out detector.jsonl
      source and response, and the list of hallucinated sentences as the answer, in chats of JSON lines
  deep cognibench export-sft --labels labeled --sizes 10 30 100 --out detector.jsonl
      detector-10.jsonl to detector-100.jsonl, the smaller within the larger, for Figure 12
  deep cognibench export-sft --data examples.csv --votes votes.parquet --out detector.jsonl
      the labels that `deep votes --judge tiered` left beside its votes
  deep cognibench export-sft --data cognibench --split train --out detector.jsonl
      the published labels of four dialogues in five
"""

SENTENCES = "write the published sentences as examples, for any judge"

SENTENCES_EXAMPLES = """\
examples:
  deep cognibench export-sentences --data cognibench --out sentences.jsonl
  deep votes sentences.jsonl --pool deep-9 --llm gpt-4o-mini --out sentences.parquet
  deep panel sentences.parquet
      the card of each judge on them
"""

CURVE_EXAMPLES = """\
examples:
  deep cognibench curve tuned-10=runs/t10 tuned-30=runs/t30 tuned-100=runs/t100 --out runs/curve
      each the folder of a tuned model and that of its run of `deep cognibench --judge listed`
"""


run = console.run_subcommand


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        console.Subcommand("evaluate", "measure who finds hallucinated sentences", _add_evaluate, _evaluate),
        console.Subcommand("label", "label sentences by a judge, for training", _add_label, _label, LABEL_EXAMPLES),
        console.Subcommand(
            "export-sft", "write training data of a detector, as chats", _add_export, _export, EXPORT_EXAMPLES
        ),
        console.Subcommand("export-sentences", SENTENCES, _add_sentences, _sentences, SENTENCES_EXAMPLES),
        console.Subcommand("curve", "draw F1 by training size (Figure 12)", _add_curve, _curve, CURVE_EXAMPLES),
        console.Subcommand("agreement", AGREEMENT, _add_agreement, _agreement, AGREEMENT_EXAMPLES),
        standard="evaluate",
    )


@dataclass(frozen=True)
class _Judges:
    """Options of the command.

    Parameters
    ----------
    judge : tuple of str
        Of listed (direct prompting), tiered (the annotators' protocol), auto (the pipeline); default: the first
        two.
    prompt : tuple of str
        Also the paper's own prompt, as `deep prompts import --paper cognibench` wrote it.
    samples : int, default=5
        Replies to each question of tiered, auto and --prompt.
    threshold : tuple of str
        Samples that must object; default: the majority.
    no_tiers : bool, default=False
        Tiered does not ask above the level; saves a quarter of its calls.
    classifier : str, default='published'
        Who types sentences for auto: the published types of other dialogues, or the LLM.
    examples : str, optional
        TOML of contrastive examples, in place of those that come with deep.
    ablation : bool, default=False
        Also one sample, and no examples and no tags: the rows of Table 5.
    """

    judge: tuple[str, ...] = option((), "NAME", default=["listed", "tiered"])
    prompt: tuple[str, ...] = option((), "FILE")
    samples: int = option(5, "N")
    threshold: tuple[str, ...] = option((), "N", rare=True)
    no_tiers: bool = option(False, rare=True)
    classifier: str = option("published", rare=True, choices=("published", "llm"))
    examples: str | None = option(None, "FILE", rare=True)
    ablation: bool = option(False, rare=True)


def _add_evaluate(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|cognibench", help="folder of dialogues.json and labels.json")
    console.add_options(parser, _Judges)
    add("--level", choices=CRITERIA, default="grounded", help="below it a cognitive statement is a hallucination")
    add("--encoder", **console.SEVERAL, metavar="NAME", help="inference models by hub id or folder, as baselines")
    add("--entailment-label", metavar="LABEL", help="what says consistent, where a model's labels do not tell")
    neutral = "what their neutral sentences are; both: a row each"
    add("--neutral", choices=("both", "faithful", "hallucinated"), default="both", help=neutral)
    add("--spans", **console.SEVERAL, metavar="NAME=FILE", help="spans that other detectors found, mapped to sentences")
    add_split(parser, "all")
    add("--out", type=Path, default=Path("runs/cognibench"), metavar="DIR", help="folder for the results")
    add("--dry-run", action="store_true", help="print the most calls it can take, and send nothing")
    console.add_options(parser, "json", json={"help": "print results.json in place of the tables"})
    console.add_options(parser, *console.CALL_TOPICS)


def _evaluate(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._runs import evaluate

    if not args.llm:
        console.check_nothing_asked(args, "without `llm`", _Judges)
    return evaluate(args)


def _add_label(parser: console.CommandParser) -> None:
    add = parser.add_argument
    data = "a folder of the published layout, or a file of examples"
    add("--data", required=True, metavar="DIR|cognibench|FILE", help=data)
    add("--judge", choices=("auto", "tiered"), default="auto", help="the pipeline, or the annotators' protocol")
    printed = "the paper's own prompt in place of a judge, as `deep prompts import` wrote it"
    add("--prompt", metavar="FILE", help=printed)
    add("--samples", type=int, default=5, metavar="N", help="replies to each question")
    add("--threshold", type=int, metavar="N", help="samples that must object; default: the majority")
    add("--level", choices=CRITERIA, default="grounded", help="of the shares that are shown; all tiers are written")
    classifier = "labeled turns that auto learns types from, or llm; default: those of --data"
    add("--classifier", metavar="DIR|cognibench|llm", help=classifier)
    add("--examples", metavar="FILE", help="TOML of contrastive examples, in place of those that come with deep")
    add_split(parser, "all")
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier run")
    add("--dry-run", action="store_true", help="print the most calls it can take, and send nothing")
    console.add_options(parser, "json", json={"help": "print results.json and nothing else"})
    console.add_options(parser, *console.CALL_TOPICS)


def _label(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._runs import label

    return label(args)


def _add_export(parser: console.CommandParser) -> None:
    add = parser.add_argument
    data = "published labels; with --votes the examples voted on"
    add("--data", metavar="DIR|cognibench|FILE", help=data)
    add("--labels", type=Path, metavar="DIR|FILE", help="what `deep cognibench label` wrote")
    add(
        "--votes", **console.SEVERAL, metavar="FILE", help="votes of a judge of sentences, in place of published labels"
    )
    add("--voter", metavar="COLUMN", help="the judge, where several voted")
    add("--level", choices=CRITERIA, default="grounded", help="below it a cognitive one is hallucinated")
    add("--sizes", **console.SEVERAL, metavar="N", help="files of so many chats each, for a learning curve")
    add_split(parser, "train")
    add("--out", type=Path, required=True, metavar="FILE", help="ends in .jsonl")


def _export(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._runs import export

    return export(args)


def _add_sentences(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add("--data", required=True, metavar="DIR|cognibench", help="folder of dialogues.json and labels.json")
    add("--level", choices=CRITERIA, default="grounded", help="below it the label of a cognitive one is 0")
    add("--out", type=Path, required=True, metavar="FILE", help="ends in .jsonl")


def _sentences(args: argparse.Namespace) -> int:
    from deep._util.files import check_out, whole_file, write_json_lines
    from deep.experiments.cognibench._turns import read_turns, sentence_rows

    out = check_out(args.out, [".jsonl"])
    rows = list(sentence_rows(read_turns(args.data), args.level))
    with whole_file(out) as scratch:
        write_json_lines(scratch, rows)
    console.print_result({"sentences": len(rows), "out": str(out)}, [f"{len(rows):,} sentences: {out}"], as_json=False)
    return ExitStatus.DONE


def _add_curve(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add(
        "points",
        nargs="+",
        metavar="SIZE=RUN",
        help="the number of training chats, and the evaluation of the model that learned from them",
    )
    add("--method", metavar="TITLE", help="the row of the evaluations, where several ask a list")
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier run")
    console.add_options(parser, "json")


def _curve(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._runs import curve

    return curve(args)


def _add_agreement(parser: console.CommandParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="CSV of item_id, protocol, annotator and label")
    console.add_options(parser, "n-boot", "seed", "json", n_boot={"default": 2000})


def _agreement(args: argparse.Namespace) -> int:
    from deep.evaluate import markdown
    from deep.experiments.cognibench._cognibench_tables import agreement_tables, read_annotations
    from deep.experiments.study import printed_text

    console.check_least(args, n_boot=1, seed=0)
    found = agreement_tables(read_annotations(args.file), n_boot=args.n_boot, random_state=args.seed)
    texts = ["\n".join(markdown(frame)) for frame in found.values() if not frame.empty]
    texts.append("\n".join(printed_text("cognibench", ["table1-agreement"])))
    results = {name: json.loads(frame.to_json(orient="records")) for name, frame in found.items()}
    console.print_result(results, ["\n\n".join(texts)], as_json=args.json)
    return ExitStatus.DONE
