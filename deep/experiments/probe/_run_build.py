"""Building the benchmark: the samples of every article, their split, and the files."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from shlex import quote
from typing import TypeVar

import pandas as pd

from deep._util.files import JsonObject, check_replaceable, read_toml
from deep._util.names import check_name
from deep.asking import Entry, ProgramId
from deep.console import ask_programs, check_least, check_models, named, plain_tables
from deep.evaluate import DatasetVerdict, markdown, records
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.printed import PrintedSteps, load_steps, reworded
from deep.experiments.probe import _content, _records
from deep.judges import Program

T = TypeVar("T")

TABLE_1 = "table1-statistics"

JUDGE_STEPS = {"decompose": ("response",), "find": ("claim", "source"), "evaluate": ("claim", "context", "excerpt")}

BUILDER_STEPS = {
    "summarize": ("source",),
    "ask": ("source",),
    "answer": ("question", "source"),
    **{f"restyle-{style}": ("source",) for style in ("blog", "faq", "lecture_notes", "textbook")},
    "invent": ("count", "source"),
}
"""Those of the builder that can be asked in the paper's words.

The printed prompt of insertion asks for no tags, so that nobody would know what was inserted; deep's own is asked.
"""


def read_printed(paths: Sequence[str], known: Mapping[str, Sequence[str]]) -> PrintedSteps | None:
    """Return the printed prompts of the steps that are known; None where no file is given.

    Raises
    ------
    InputError
        A file cannot be read, or holds no step that is known, or lacks a placeholder of one.
    """
    if not paths:
        return None
    files = [load_steps(path, _held(path, known)) for path in paths]
    steps = {name: step for file in files for name, step in file.steps.items()}
    names = (" and ".join(getattr(file, name) for file in files) for name in ("id", "follows", "hash"))
    return PrintedSteps(next(names), next(names), steps, next(names))


def _held(path: str, known: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the known steps that a file has a table of."""
    tables = read_toml(path, "prompt")
    held = {step: names for step, names in known.items() if step in tables}
    if not held:
        raise InputError(f"`prompt` must hold one of the steps {', '.join(known)}. Got none in {path!r}.")
    return held


def in_print(program: Program[T], printed: PrintedSteps | None) -> Program[T]:
    """Return a program that asks in the printed words, where some are given."""
    return program if printed is None else reworded(program, printed)


def plan_programs(
    articles: Sequence[_records.Article],
    dealt: _content.Dealt,
    recipe: _content.BuildOptions,
    seed: int,
    printed: PrintedSteps | None = None,
) -> Callable[[], Iterator[Entry]]:
    """Return a function that yields the program of every sample."""
    styles = _content.deal_styles(articles, dealt, seed)

    def programs() -> Iterator[Entry]:
        for article in articles:
            for task, complexity in product(dealt[article.article_id], _records.COMPLEXITIES):
                identity = ProgramId("probe-build", f"probe-{task}", f"{article.article_id}/{complexity}")
                program = _content.build_sample(article, task, styles[article.article_id], complexity, recipe)
                yield identity, recipe.writer, in_print(program, printed)

    return programs


def build(args: argparse.Namespace) -> int:
    """Run ``deep probe build``."""
    _check(args)
    with named("articles"):
        articles = _records.read_articles(args.articles)
    recipe = read_roles(args)
    check_replaceable(args.out)
    dealt = _content.deal_tasks(
        articles, [task for task in _records.TASKS if task in args.tasks], args.articles_by, args.seed
    )
    printed = read_printed(args.prompt, {**BUILDER_STEPS, **JUDGE_STEPS})
    values = ask_programs(args, plan_programs(articles, dealt, recipe, args.seed, printed))
    _write(args, articles, dealt, list(values.values()), recipe)
    return ExitStatus.DONE


def _check(args: argparse.Namespace) -> None:
    for name in ("consensus", "evaluation_share"):
        value = getattr(args, name)
        if not 0 < value <= 1:
            raise InputError(f"`{name}` must lie in (0, 1]. Got {value!r}.")
    check_least(args, attempts=1, evaluation_size=1)
    wrong = [task for task in args.tasks if task not in _records.TASKS]
    if wrong:
        raise InputError(f"`tasks` must be one of {', '.join(sorted(_records.TASKS))}. Got {wrong[0]!r}.")


def read_roles(args: argparse.Namespace) -> _content.BuildOptions:
    """Return the LLM of each role; of those in `--llm` the first writes and decomposes, and all verify.

    Raises
    ------
    InputError
        A role is left without an LLM, or a verifier is named twice.
    """
    llms = check_models(args) if args.llm or not (args.writer and args.verifier) else ()
    verifiers = tuple(args.verifier) or llms
    twice = [name for name in verifiers if verifiers.count(name) > 1]
    if twice:
        raise InputError(f"`verifier` must name each LLM once. Got {twice[0]!r} twice.")
    writer = args.writer or llms[0]
    decomposer = args.decomposer or (llms[0] if llms else writer)
    for name in (writer, decomposer, *verifiers):
        check_name(name, "llm")
    return _content.BuildOptions(
        writer=writer, decomposer=decomposer, verifiers=verifiers, consensus=args.consensus, attempts=args.attempts
    )


def _settings(
    args: argparse.Namespace, articles: Sequence[_records.Article], dealt: _content.Dealt, recipe: _content.BuildOptions
) -> JsonObject:
    served = Counter(task for tasks in dealt.values() for task in tasks)
    return {
        **asdict(recipe),
        "verifiers": list(recipe.verifiers),
        "tasks": [task for task in _records.TASKS if task in args.tasks],
        "articles": len(articles),
        "articles_by": "task" if all(len(tasks) < 2 for tasks in dealt.values()) else "all",
        "articles_of": dict(sorted(served.items())),
        **{name: getattr(args, name) for name in ("evaluation_size", "evaluation_share", "seed")},
        "prompts": args.prompt,
    }


def _write(
    args: argparse.Namespace,
    articles: Sequence[_records.Article],
    dealt: _content.Dealt,
    found: Sequence[_content.BuiltSample],
    recipe: _content.BuildOptions,
) -> None:
    """Write both splits, Table 1 and the results, and print them."""
    samples = [result.sample for result in found if result.sample is not None]
    rejected = Counter(f"{each.step}: {each.why}" for result in found for each in result.rejected)
    if not samples:
        raise InputError(f"`llm` must give usable answers. Got none; {_counted(rejected)}.")
    wanted = {"size": args.evaluation_size, "share": args.evaluation_share, "seed": args.seed}
    splits = _content.split_articles(articles, dealt, samples, **wanted)
    by_split = {name: [s for s in samples if splits[s.article_id] == name] for name in _content.SPLITS}
    left_out = sum((result.counts for result in found), Counter[str]())
    table = _records.statistics(samples)
    poisoned = sum(sample.complexity > 0 for sample in samples)
    verdict = DatasetVerdict(
        f"{len(samples):,} responses of {len(articles):,} articles; {len(found) - len(samples):,} were given up.",
        f"{poisoned:,} of {len(samples):,} responses hold hallucinated claims, put there on purpose.",
        "The labels are by construction: read some before you trust a figure on them.",
        "measure an LLM on them",
        f"deep probe eval --data {quote(str(args.out))} --llm NAME",
    )
    results = {
        "schema_version": 1,
        "verdict": verdict.as_dict(),
        "settings": _settings(args, articles, dealt, recipe),
        "samples": len(samples),
        "given_up": len(found) - len(samples),
        "splits": {name: _split_counts(some) for name, some in by_split.items()},
        "rejected_answers": dict(sorted(rejected.items())),
        "left_out": dict(sorted(left_out.items())),
        "table1": records(table),
    }

    def write_splits(folder: Path) -> None:
        for name, some in by_split.items():
            _records.write_samples(folder / f"{name}.jsonl", some)

    study.publish(
        args,
        results,
        _lines(results, args.out),
        tables={TABLE_1: table},
        titles={TABLE_1: "Table 1: what the benchmark holds"},
        paper="probe",
        more=write_splits,
    )


def _split_counts(samples: Sequence[_records.Sample]) -> JsonObject:
    by_task = dict(sorted(Counter(sample.task for sample in samples).items()))
    return {"articles": len({s.article_id for s in samples}), "samples": len(samples), "by_task": by_task}


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "nothing"


def _lines(results: JsonObject, out: Path) -> Iterator[str]:
    settings = results["settings"]
    serve = "one task" if settings["articles_by"] == "task" else f"{len(settings['tasks'])} tasks"
    splits = ", ".join(f"{name} {c['samples']} of {c['articles']} articles" for name, c in results["splits"].items())
    yield from (results["verdict"][name] for name in ("judged", "suspect", "trust"))
    yield ""
    yield from plain_tables("\n".join([*markdown(pd.DataFrame(results["table1"])), ""]))
    yield from plain_tables("\n".join(study.printed_text("probe", [TABLE_1])))
    yield f"{results['samples']} samples ({splits}), {results['given_up']} given up"
    yield (
        f"{settings['articles']} articles, of which each serves {serve}; for evaluation "
        f"{_counted(results['splits']['evaluation']['by_task'])}, of {settings['evaluation_size']} a task wanted"
    )
    yield f"answers rejected, by the samples that met them: {_counted(results['rejected_answers'])}"
    yield f"left out: {_counted(results['left_out'])}"
    yield f"written to {out}"
