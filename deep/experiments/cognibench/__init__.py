"""CogniBench: who finds hallucinated sentences, factual and cognitive; tables, figures and training data.

The same command again asks only the missing questions. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep cognibench --data cognibench --out runs/cognibench
      the published labels alone: statistics, rates, figures, and the judges that always say the same; no calls
  deep cognibench --data cognibench --llm gpt-4o-mini --out runs/cognibench --dry-run
      the most calls that the judges of a model can take; nothing is sent
  deep cognibench --data cognibench --llm gpt-4o-mini --threshold 2 3 --ablation --out runs/cognibench
      Tables 2, 3 and 5 and Figures 5 to 8; again, it asks only the missing questions
  deep cognibench --data cognibench --encoder models/nli --out runs/cognibench
      an encoder reads every sentence beside its knowledge, as a baseline
"""

import argparse
import json
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console
from deep._util.options import argument, option
from deep.exceptions import ExitStatus
from deep.experiments.cognibench._turns import Split
from deep.experiments.tiered import CRITERIA

run = console.run_subcommand


@dataclass(frozen=True)
class _DialogueArgs:
    """The benchmark.

    Parameters
    ----------
    data : str
        Folder of dialogues.json and labels.json.
    """

    data: str = option(MISSING, "DIR|cognibench")


@dataclass(frozen=True)
class _CogniBenchJudgeArgs:
    """Options of the command.

    Parameters
    ----------
    judge : tuple of str
        listed (direct prompting), tiered (the annotators' protocol) or auto (the pipeline); default: listed
        two.
    prompt : tuple of str
        Also the paper's own prompt, as `deep prompts import --paper cognibench` wrote it.
    samples : int, default=5
        Replies to each question of tiered, auto and --prompt.
    threshold : tuple of str
        How many samples must object; default: the majority.
    no_tiers : bool, default=False
        Tiered asks no tier above the level, which saves a quarter of its calls.
    classifier : str, default='published'
        How auto assigns types of sentences: from other dialogues' published types, or by the LLM.
    examples : str, optional
        TOML of contrastive examples, instead of deep's own.
    ablation : bool, default=False
        Also run with one sample, without examples and without tags: the rows of Table 5.
    """

    judge: tuple[str, ...] = option((), "NAME", default=["listed", "tiered"])
    prompt: tuple[str, ...] = option((), "FILE")
    samples: int = option(5, "N")
    threshold: tuple[str, ...] = option((), "N", rare=True)
    no_tiers: bool = option(False, rare=True)
    classifier: str = option("published", rare=True, choices=("published", "llm"))
    examples: str | None = option(None, "FILE", rare=True)
    ablation: bool = option(False, rare=True)


@dataclass(frozen=True)
class _Evaluate:
    """Options of `deep cognibench evaluate`.

    Parameters
    ----------
    level : str, default='grounded'
        A cognitive statement below this tier is a hallucination.
    encoder : tuple of str
        Inference models by hub id or folder, as baselines.
    entailment_label : str, optional
        The label that means consistent, if the model does not say.
    neutral : str, default='both'
        How to count their neutral sentences; both: one row for each.
    spans : tuple of str
        Spans that other detectors found, mapped to sentences.
    """

    level: str = option("grounded", choices=CRITERIA)
    encoder: tuple[str, ...] = option((), "NAME")
    entailment_label: str | None = option(None, "LABEL")
    neutral: str = option("both", choices=("both", "faithful", "hallucinated"))
    spans: tuple[str, ...] = option((), "NAME=FILE")


@dataclass(frozen=True)
class _Results:
    """Where the results go.

    Parameters
    ----------
    out : Path, default=Path('runs/cognibench')
        Folder for the results.
    dry_run : bool, default=False
        Print the most calls it can take, and send nothing.
    """

    out: Path = option(Path("runs/cognibench"), "DIR")
    dry_run: bool = option(False)


@dataclass(frozen=True)
class _GenerateArgs:
    """Options of `deep cognibench generate`.

    Parameters
    ----------
    texts : str
        Rows with a source (CSV, JSONL or Parquet), maybe example_id.
    turns : int, default=3
        Messages of the user, and answers.
    words : int, default=200
        Most words of an answer.
    persona : tuple of str
        Personas that ask, in turn; default: all six.
    asker : str, optional
        The LLM that plays the persona; default: the first that answers.
    out : Path
        Output .jsonl with one turn per line, which `label` reads.
    dry_run : bool, default=False
        Print the most calls it can take, and send nothing.
    """

    texts: str = option(MISSING, "FILE")
    turns: int = option(3, "N")
    words: int = option(200, "N")
    persona: tuple[str, ...] = option((), "NAME")
    asker: str | None = option(None, "LLM")
    out: Path = option(MISSING, "FILE")
    dry_run: bool = option(False)


@dataclass(frozen=True)
class _LabelArgs:
    """Options of `deep cognibench label`.

    Parameters
    ----------
    data : str
        A folder of the published layout, or a file of examples.
    judge : str, default='auto'
        The pipeline, or the annotators' protocol.
    prompt : str, optional
        The paper's own prompt in place of a judge, as `deep prompts import` wrote it.
    samples : int, default=5
        Replies to each question.
    threshold : int, optional
        How many samples must object; default: the majority.
    level : str, default='grounded'
        Tier of the shares that are shown; all tiers are written.
    classifier : str, optional
        Labeled turns that teach auto the types, or llm; default: --data.
    examples : str, optional
        TOML of contrastive examples, instead of deep's own.
    """

    data: str = option(MISSING, "DIR|cognibench|FILE")
    judge: str = option("auto", choices=("auto", "tiered"))
    prompt: str | None = option(None, "FILE")
    samples: int = option(5, "N")
    threshold: int | None = option(None, "N")
    level: str = option("grounded", choices=CRITERIA)
    classifier: str | None = option(None, "DIR|cognibench|llm")
    examples: str | None = option(None, "FILE")


@dataclass(frozen=True)
class _DetectorArgs:
    """Options of `deep cognibench export-sft`.

    Parameters
    ----------
    data : str, optional
        Published labels; with --votes the examples voted on.
    labels : Path, optional
        What `deep cognibench label` wrote.
    votes : tuple of str
        Votes of a judge of sentences, in place of published labels.
    voter : str, optional
        The judge, where several voted.
    level : str, default='grounded'
        A cognitive sentence below this tier is hallucinated.
    sizes : tuple of str
        One file for each number of chats, for a learning curve.
    """

    data: str | None = option(None, "DIR|cognibench|FILE")
    labels: Path | None = option(None, "DIR|FILE")
    votes: tuple[str, ...] = option((), "FILE")
    voter: str | None = option(None, "COLUMN")
    level: str = option("grounded", choices=CRITERIA)
    sizes: tuple[str, ...] = option((), "N")


@dataclass(frozen=True)
class _CurveArgs:
    """Options of `deep cognibench curve`.

    Parameters
    ----------
    points : tuple of str
        The number of training chats, and the evaluation of the model that learned from them.
    method : str, optional
        Which method of the evaluations, if several ask for a list.
    out : Path
        A new folder, or an earlier run.
    """

    points: tuple[str, ...] = option((), "SIZE=RUN", flags=["points"], nargs="+")
    method: str | None = option(None, "TITLE")
    out: Path = option(MISSING, "DIR")


JSONL_ARG = argument("out", "FILE", "ends in .jsonl", flags=["--out"], type=Path, required=True)
ANNOTATIONS = argument("file", "FILE", "CSV of item_id, protocol, annotator and label", type=Path)

EVALUATE = console.adder(
    *(_DialogueArgs, _CogniBenchJudgeArgs, _Evaluate, Split, _Results, "json", *console.CALL_TOPICS),
    json={"help": "print results.json in place of the tables"},
)
LABEL = console.adder(
    *(_LabelArgs, Split, _Results, "json", *console.CALL_TOPICS),
    out={"default": None, "help": "a new folder, or an earlier run", "required": True},
    json={"help": "print results.json and nothing else"},
)
EXPORT = console.adder(
    _DetectorArgs, Split, JSONL_ARG, split={"default": "train", "help": "dialogues to take (default: train)"}
)
AGREE = console.adder(ANNOTATIONS, "n-boot", "seed", "json", n_boot={"default": 2000})


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        console.Subcommand("evaluate", "measure methods that find hallucinated sentences", EVALUATE, _evaluate),
        console.Subcommand.of("generate", _generate, console.adder(_GenerateArgs, "json", *console.CALL_TOPICS)),
        console.Subcommand.of("label", _label, LABEL),
        console.Subcommand.of("export-sft", _export, EXPORT),
        console.Subcommand.of("curve", _curve, console.adder(_CurveArgs, "json")),
        console.Subcommand.of("agreement", _agreement, AGREE),
        standard="evaluate",
    )


def _evaluate(args: argparse.Namespace) -> int:
    from deep.experiments.cognibench._runs import evaluate

    if not args.llm:
        console.check_nothing_asked(args, "without `llm`", _CogniBenchJudgeArgs)
    return evaluate(args)


def _generate(args: argparse.Namespace) -> int:
    """Let LLMs talk about texts, for labeling.

    For instance:

      deep cognibench generate --texts texts.jsonl --llm gpt-4o-mini --out dialogues.jsonl --budget 5
          three turns about the `source` of each row, each asked for by one of six personas
      deep cognibench label --data dialogues.jsonl --judge auto --llm gpt-4o-mini --out labeled --budget 5
          and the sentences of the answers labeled
    """
    from deep.experiments.cognibench._runs import generate

    return generate(args)


def _label(args: argparse.Namespace) -> int:
    """Label sentences by a judge, for training.

    For instance:

      deep cognibench label --data cognibench --judge auto --llm gpt-4o-mini --out labeled --budget 5
          all turns, published labels or not: a classifier of types, then two prompts in five samples
      deep cognibench label --data responses.jsonl --judge tiered --llm gpt-4o-mini --out labeled
          your own: source and claim; optional document_id (the dialogue) and model (the writer)
    """
    from deep.experiments.cognibench._runs import label

    return label(args)


def _export(args: argparse.Namespace) -> int:
    """Write training data of a detector, as chats.

    For instance:

      deep cognibench export-sft --labels labeled --out detector.jsonl
          source and response, and the list of hallucinated sentences as the answer, in chats of JSON lines
      deep cognibench export-sft --labels labeled --sizes 10 30 100 --out detector.jsonl
          detector-10.jsonl to detector-100.jsonl, each within the next, for Figure 12
      deep cognibench export-sft --data examples.csv --votes votes.parquet --out detector.jsonl
          the labels that `deep ask --judge tiered` left beside its votes
      deep cognibench export-sft --data cognibench --split train --out detector.jsonl
          the published labels of four dialogues in five
    """
    from deep.experiments.cognibench._runs import export

    return export(args)


def _curve(args: argparse.Namespace) -> int:
    """Draw F1 by training size (Figure 12).

    For instance:

      deep cognibench curve tuned-10=runs/t10 tuned-30=runs/t30 tuned-100=runs/t100 --out runs/curve
          SIZE=RUN: training chats, and the run of `deep cognibench --judge listed` with that model
    """
    from deep.experiments.cognibench._runs import curve

    return curve(args)


def _agreement(args: argparse.Namespace) -> int:
    """Measure the agreement of annotators by protocol, and of protocols with one another.

    For instance:

      deep cognibench agreement annotations.csv
          a CSV file of item_id,protocol,annotator,label
    """
    from deep.evaluate import markdown
    from deep.experiments.cognibench._cognibench_tables import agreement_tables, read_annotations
    from deep.experiments.study import printed_text

    console.check_minimum(args, n_boot=1, seed=0)
    result = agreement_tables(read_annotations(args.file), n_boot=args.n_boot, random_state=args.seed)
    texts = ["\n".join(markdown(frame)) for frame in result.values() if not frame.empty]
    texts.append("\n".join(printed_text("cognibench", ["table1-agreement"])))
    results = {name: json.loads(frame.to_json(orient="records")) for name, frame in result.items()}
    console.print_result(results, ["\n\n".join(texts)], as_json=args.json)
    return ExitStatus.DONE
