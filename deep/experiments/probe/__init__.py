"""PROBE: the builder of the benchmark, the measures of every step of a detector, and training data of both.

The same command again asks only the missing questions. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep probe build --articles articles.jsonl --out bench --writer a --decomposer b --verifier b c d e
  deep probe eval --data bench --llm gpt-4o-mini --out bench-eval
  deep probe export-sft --data bench --out sft.jsonl
"""

import argparse
from dataclasses import MISSING, dataclass
from pathlib import Path

from deep import console
from deep._util.options import option
from deep.experiments.probe._content import ARTICLES_BY
from deep.experiments.probe._probe_measures import MATCHES, MIN_SIMILARITY, STAGES
from deep.experiments.probe._records import TASKS

PRINTED = "the paper's own prompts, as `deep prompts import --paper probe` wrote them"


run = console.run_subcommand


@dataclass(frozen=True)
class _Build:
    """Options of `deep probe build`.

    Parameters
    ----------
    articles : Path
        With a column text; article_id is optional.
    out : Path
        A new folder, or an earlier build.
    articles_by : str, default='task'
        One task per article as in the paper (a column task can name it), or all.
    writer : str, optional
        LLM that writes, invents and inserts (default: the first of --llm).
    decomposer : str, optional
        LLM that splits responses into claims (default: the first of --llm).
    verifier : tuple of str
        LLMs that find evidence and vote on it (default: all of --llm).
    consensus : float, default=0.75
        Share of the verifiers that must pass evidence.
    attempts : int, default=5
        Attempts at a step before its sample is dropped.
    evaluation_size : int, default=100
        Responses per task for evaluation.
    evaluation_share : float, default=0.2
        Most articles per task for evaluation.
    seed : int, default=0
        Seed for the order of articles, the split and the styles.
    """

    articles: Path = option(MISSING, "FILE")
    out: Path = option(MISSING, "DIR")
    tasks: tuple[str, ...] = option((), "TASK", default=list(TASKS), help=f"default: all of {', '.join(TASKS)}")
    articles_by: str = option("task", choices=ARTICLES_BY)
    writer: str | None = option(None, "NAME")
    decomposer: str | None = option(None, "NAME")
    verifier: tuple[str, ...] = option((), "NAME")
    consensus: float = option(0.75, "SHARE")
    prompt: tuple[str, ...] = option((), "FILE", help=PRINTED)
    attempts: int = option(5, "N")
    evaluation_size: int = option(100, "N")
    evaluation_share: float = option(0.2, "SHARE")
    seed: int = option(0, "N")


@dataclass(frozen=True)
class _Eval:
    """Options of `deep probe eval`.

    Parameters
    ----------
    data : Path
        A build (its evaluation.jsonl), or one file of it.
    out : Path
        A new folder, or an earlier evaluation.
    votes : str, optional
        Measure the voters of this vote file instead of asking anything.
    """

    data: Path = option(MISSING, "DIR|FILE")
    out: Path = option(MISSING, "DIR")
    votes: str | None = option(None, "FILE")


@dataclass(frozen=True)
class _Steps:
    """How models are asked and claims compared.

    Parameters
    ----------
    stage : str, default='all'
        One step on the correct input, or all steps on the model's own.
    match : str, default='semantic'
        When two claims are the same.
    match_encoder : str, optional
        Encoder that compares claims: a hub id or folder (default: the installed one).
    match_similarity : float, default=SIMILAR
        Lowest similarity of equal claims.
    match_llm : str, optional
        LLM that compares claims, not one of those measured; needed without an encoder.
    """

    stage: str = option("all", choices=STAGES)
    prompt: tuple[str, ...] = option((), "FILE", help=PRINTED)
    match: str = option("semantic", choices=MATCHES)
    match_encoder: str | None = option(None, "NAME")
    match_similarity: float = option(MIN_SIMILARITY, "COSINE")
    match_llm: str | None = option(None, "NAME")


@dataclass(frozen=True)
class _Chats:
    """Options of `deep probe export-sft`.

    Parameters
    ----------
    data : Path
        A build (its train.jsonl), or one file of it.
    out : Path
        The chats, JSONL.
    """

    data: Path = option(MISSING, "DIR|FILE")
    out: Path = option(MISSING, "FILE")


def add_arguments(parser: console.CommandParser) -> None:
    """Add the sub-commands."""
    json = {"help": "print results.json and nothing else"}
    of_build = console.adder(_Build, "json", *console.CALL_TOPICS, json=json)
    of_eval = console.adder(_Eval, _Steps, "json", *console.CALL_TOPICS, json=json)
    parser.add_subcommands(
        console.Subcommand.of("build", _build, of_build),
        console.Subcommand.of("eval", _eval, of_eval),
        console.Subcommand.of("export-sft", _export, console.adder(_Chats, "json")),
    )


def _build(args: argparse.Namespace) -> int:
    """Build the benchmark from articles.

    For instance:

      deep probe build --articles articles.jsonl --out bench --writer a --decomposer b --verifier b c d e --budget 20
          4 responses per article (one task, 4 complexities) with claims, evidence and spans
      deep probe build --articles articles.jsonl --out bench --llm a b c d --articles-by all
          12 responses per article (3 tasks); the first LLM writes and decomposes, all four verify
      deep probe build --articles articles.jsonl --out bench --llm writer --tasks summarization
          one task, and a single LLM in all roles
    """
    from deep.experiments.probe._runs import build

    return build(args)


def _eval(args: argparse.Namespace) -> int:
    """Measure models on it, step by step.

    For instance:

      deep probe eval --data bench --llm gpt-4o-mini --out bench-eval
          every step of the model's own pipeline, and the direct prompt beside it
      deep probe eval --data bench --llm gpt-4o-mini --stage find --out bench-find
          evidence finding alone, on the claims of the benchmark
      deep probe eval --data bench --llm a b --match-llm c --out bench-eval
          a third LLM, not an encoder, decides whether two claims say the same
      deep ask bench/evaluation.jsonl --judge stepwise --pool deep-9 --llm gpt-4o-mini --out votes.parquet
      deep probe eval --data bench --votes votes.parquet --out bench-voters
          any judge of deep, by task and complexity
    """
    from deep.experiments.probe._runs import evaluate, evaluate_votes

    if args.votes is None:
        return evaluate(args)
    console.check_nothing_asked(args, "with votes", _Steps)
    return evaluate_votes(args)


def _export(args: argparse.Namespace) -> int:
    """Write chats for training.

    For instance:

      deep probe export-sft --data bench --out sft.jsonl
    """
    from deep.experiments.probe._runs import export

    return export(args)
