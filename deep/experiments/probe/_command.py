"""`deep probe`: build the benchmark PROBE, measure a model step by step on it, and export training data.

docs/probe.md says what is built and measured, and what it costs.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

from deep import console
from deep._util.options import option
from deep.experiments.probe._content import ARTICLES_BY
from deep.experiments.probe._probe_measures import MATCHES, SIMILAR, STAGES
from deep.experiments.probe._records import TASKS

BUILD = """\
examples:
  deep probe build --articles articles.jsonl --out bench --writer a --decomposer b --verifier b c d e --budget 20
      4 responses an article (one task each, 4 complexities) with claims, evidence and spans
  deep probe build --articles articles.jsonl --out bench --llm a b c d --articles-by all
      12 responses an article (3 tasks); the first LLM writes and decomposes, all four verify
  deep probe build --articles articles.jsonl --out bench --llm writer --tasks summarization
      one task, and a single LLM in all roles
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

PRINTED = "the paper's own prompts, as `deep prompts import --paper probe` wrote them"


run = console.run_subcommand


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    parser.add_subcommands(
        console.Subcommand("build", "build the benchmark from articles", _build_options, _build, BUILD),
        console.Subcommand("eval", "measure models on it, step by step", _eval_options, _eval, EVAL),
        console.Subcommand("export-sft", "write chats to train a model on", _export_options, _export, EXPORT),
    )


def _build(args: argparse.Namespace) -> int:
    from deep.experiments.probe._runs import build

    return build(args)


def _eval(args: argparse.Namespace) -> int:
    from deep.experiments.probe._runs import evaluate, evaluate_votes

    if args.votes is None:
        return evaluate(args)
    console.check_nothing_asked(args, "with votes", _Steps)
    return evaluate_votes(args)


def _export(args: argparse.Namespace) -> int:
    from deep.experiments.probe._runs import export

    return export(args)


def _build_options(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add("--articles", type=Path, required=True, metavar="FILE", help="with a column text, and as wanted article_id")
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier build")
    tasks = f"default: all of {', '.join(TASKS)}"
    add("--tasks", action=console.Values, nargs="+", default=list(TASKS), metavar="TASK", help=tasks)
    by = "one task an article as in the paper, unless its column task says which, or all"
    add("--articles-by", choices=ARTICLES_BY, default="task", help=by)
    add("--writer", metavar="NAME", help="LLM that writes, invents and inserts (default: the first of --llm)")
    add("--decomposer", metavar="NAME", help="LLM that takes responses apart (default: the first of --llm)")
    verifiers = "LLMs that find evidence and vote on it (default: all of --llm)"
    add("--verifier", **{**console.SEVERAL, "metavar": "NAME"}, help=verifiers)
    share = "share of the verifiers that must pass evidence"
    add("--consensus", type=float, default=0.75, metavar="SHARE", help=share)
    add("--prompt", **{**console.SEVERAL, "metavar": "FILE"}, help=PRINTED)
    attempts = "answers asked of a step before its sample is given up"
    add("--attempts", type=int, default=5, metavar="N", help=attempts)
    add("--evaluation-size", type=int, default=100, metavar="N", help="responses a task kept for evaluation")
    most = "most articles of a task that are kept for it"
    add("--evaluation-share", type=float, default=0.2, metavar="SHARE", help=most)
    add("--seed", type=int, default=0, metavar="N", help="orders articles for split and styles")
    console.add_options(parser, "json", json={"help": "print results.json and nothing else"})
    console.add_options(parser, *console.CALL_TOPICS)


@dataclass(frozen=True)
class _Steps:
    """Options of the command.

    Parameters
    ----------
    stage : str, default='all'
        One step on gold input, or all on the model's own.
    match : str, default='semantic'
        When two claims are the same.
    match_encoder : str, optional
        Compares claims: a hub id or folder (default: the installed one).
    match_similarity : float, default=SIMILAR
        Least of claims that say the same.
    match_llm : str, optional
        Compares claims, none of those measured; needed without an encoder.
    """

    stage: str = option("all", choices=STAGES)
    prompt: tuple[str, ...] = option((), "FILE", help=PRINTED)
    match: str = option("semantic", choices=MATCHES)
    match_encoder: str | None = option(None, "NAME")
    match_similarity: float = option(SIMILAR, "COSINE")
    match_llm: str | None = option(None, "NAME")


def _eval_options(parser: console.CommandParser) -> None:
    add = parser.add_argument
    data = "a build (its evaluation.jsonl), or one file of it"
    add("--data", type=Path, required=True, metavar="DIR|FILE", help=data)
    add("--out", type=Path, required=True, metavar="DIR", help="a new folder, or an earlier evaluation")
    add("--votes", metavar="FILE", help="measure the voters of this vote file instead of asking anything")
    console.add_options(parser, _Steps)
    console.add_options(parser, "json", json={"help": "print results.json and nothing else"})
    console.add_options(parser, *console.CALL_TOPICS)


def _export_options(parser: console.CommandParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, metavar="DIR|FILE", help="a build (its train.jsonl), or one file of it")
    add("--out", type=Path, required=True, metavar="FILE", help="the chats, JSONL")
