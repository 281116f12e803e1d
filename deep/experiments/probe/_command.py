"""`deep probe`: build the benchmark PROBE, measure a model step by step on it, and export training data.

docs/probe.md says what is built and measured, and what it costs.
"""

import argparse
from pathlib import Path

from deep.console import CommandParser, Subcommand, Values, add_call_options, add_options, run_subcommand
from deep.experiments.probe._measures import MATCHES, SIMILAR
from deep.experiments.probe._observe import STAGES
from deep.experiments.probe._records import TASKS

BUILD = """\
examples:
  deep probe build --articles articles.jsonl --out bench --llm writer judge-2 judge-3 judge-4 --budget 20
      12 responses an article (3 tasks, 4 complexities) with claims, evidence and spans
  deep probe build --articles articles.jsonl --out bench --llm writer --tasks summarization
      one task, and a single model that finds evidence and votes on it
"""

EVAL = """\
examples:
  deep probe eval --data bench --llm gpt-4o-mini --out bench-eval
      every step of the model's own pipeline, and the direct prompt beside it
  deep probe eval --data bench --llm gpt-4o-mini --stage find --out bench-find
      evidence finding alone, on the claims of the benchmark
  deep probe eval --data bench --llm a b --match-llm c --out bench-eval
      claims that say the same in other words are the same in the eyes of a third LLM, in place of an encoder
  deep votes bench/evaluation.jsonl --judge stepwise --pool deep-9 --llm gpt-4o-mini --out votes.parquet
  deep probe eval --data bench --votes votes.parquet --out bench-voters
      any judge of deep, by task and complexity
"""

EXPORT = """\
examples:
  deep probe export-sft --data bench --out sft.jsonl
"""


run = run_subcommand


def add_arguments(parser: CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        Subcommand("build", "build the benchmark from articles", _build_options, _build, BUILD),
        Subcommand("eval", "measure models on it, step by step", _eval_options, _eval, EVAL),
        Subcommand("export-sft", "write chats to train a model on", _export_options, _export, EXPORT),
    )


def _build(args: argparse.Namespace) -> int:
    from deep.experiments.probe._run_build import build

    return build(args)


def _eval(args: argparse.Namespace) -> int:
    from deep.experiments.probe._run_eval import evaluate, evaluate_votes

    return evaluate(args) if args.votes is None else evaluate_votes(args)


def _export(args: argparse.Namespace) -> int:
    from deep.experiments.probe._run_export import export

    return export(args)


def _build_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--articles", type=Path, required=True, metavar="FILE", help="with a column text, and as wanted article_id")
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier build")
    tasks = f"default: all of {', '.join(TASKS)}"
    add("--tasks", action=Values, nargs="+", default=list(TASKS), metavar="TASK", help=tasks)
    share = "share of the models that must pass evidence"
    add("--consensus", type=float, default=0.75, metavar="SHARE", help=share)
    attempts = "answers asked of a step before its sample is given up"
    add("--attempts", type=int, default=5, metavar="N", help=attempts)
    add("--evaluation-share", type=float, default=0.2, metavar="SHARE", help="articles kept for evaluation")
    add("--seed", type=int, default=0, metavar="N", help="orders articles for split and styles")
    add_options(parser, "json", json={"help": "print results.json and nothing else"})
    add_call_options(parser)


def _eval_options(parser: CommandParser) -> None:
    add = parser.add_argument
    data = "a build (its evaluation.jsonl), or one file of it"
    add("--data", type=Path, required=True, metavar="DIR|FILE", help=data)
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier evaluation")
    add("--votes", metavar="FILE", help="measure the voters of this vote file instead of asking anything")
    add("--stage", choices=STAGES, default="all", help="one step on gold input, or all on the model's own")
    add("--match", choices=MATCHES, default="semantic", help="when two claims are the same")
    add("--match-encoder", metavar="NAME", help="compares claims: a hub id or folder (default: the installed one)")
    add("--match-similarity", type=float, default=SIMILAR, metavar="COSINE", help="least of claims that say the same")
    add("--match-llm", metavar="NAME", help="compares claims (default without an encoder: the LLM that is measured)")
    add_options(parser, "json", json={"help": "print results.json and nothing else"})
    add_call_options(parser)


def _export_options(parser: CommandParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR|FILE", help="a build (its train.jsonl), or one file of it")
    add("--out", type=Path, required=True, metavar="FILE", help="the chats, JSONL")
