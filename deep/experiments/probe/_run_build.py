"""Building the benchmark: the samples of every article, their split, and the files."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from deep._files import JsonObject, check_replaceable, whole_folder, write_results
from deep.asking import Entry, ProgramId
from deep.console import check_least, check_models, named, print_result
from deep.evaluate import markdown, records, write_table
from deep.exceptions import ExitStatus, InputError
from deep.experiments.probe._ask import ask
from deep.experiments.probe._build import BuildOptions, BuiltSample, build_sample
from deep.experiments.probe._content import STYLES
from deep.experiments.probe._records import COMPLEXITIES, TASKS, Article, Sample, read_articles, write_samples
from deep.experiments.probe._statistics import statistics

SPLITS = ("train", "evaluation")


def ordered(articles: Sequence[Article], seed: int) -> list[Article]:
    """Return the articles in an order that only their ids and the seed decide."""
    return sorted(articles, key=lambda article: sha256(f"{seed} {article.article_id}".encode()).digest())


def split_articles(articles: Sequence[Article], share: float, seed: int) -> dict[str, str]:
    """Return the split of each article by id; with two articles or more neither split is empty."""
    n = min(max(1, round(share * len(articles))), max(1, len(articles) - 1))
    names = [article.article_id for article in ordered(articles, seed)]
    return {name: "evaluation" if i < n else "train" for i, name in enumerate(names)}


def plan_programs(
    articles: Sequence[Article], tasks: Sequence[str], recipe: BuildOptions, seed: int
) -> Callable[[], Iterator[Entry]]:
    """Return a function that yields the program of every sample; the four styles rotate over the shuffled articles."""
    turns = {article.article_id: i for i, article in enumerate(ordered(articles, seed))}

    def programs() -> Iterator[Entry]:
        for article in articles:
            style = STYLES[turns[article.article_id] % len(STYLES)]
            for task in tasks:
                for complexity in COMPLEXITIES:
                    identity = ProgramId("probe-build", f"probe-{task}", f"{article.article_id}/{complexity}")
                    yield identity, recipe.models[0], build_sample(article, task, style, complexity, recipe)

    return programs


def build(args: argparse.Namespace) -> int:
    """Run ``deep probe build``."""
    _check(args)
    with named("articles"):
        articles = read_articles(args.articles)
    recipe = BuildOptions(models=check_models(args), consensus=args.consensus, attempts=args.attempts)
    check_replaceable(args.out)
    tasks = [task for task in TASKS if task in args.tasks]
    programs = plan_programs(articles, tasks, recipe, args.seed)
    values = ask(args, programs)
    splits = split_articles(articles, args.evaluation_share, args.seed)
    results = _write(args.out, list(values.values()), splits, _settings(args, recipe, tasks, len(articles)))
    print_result(results, [_text(results, args.out)], as_json=args.json)
    return ExitStatus.DONE


def _check(args: argparse.Namespace) -> None:
    for name in ("consensus", "evaluation_share"):
        value = getattr(args, name)
        if not 0 < value <= 1:
            raise InputError(f"`{name}` must lie in (0, 1]. Got {value!r}.")
    check_least(args, attempts=1)
    wrong = [task for task in args.tasks if task not in TASKS]
    if wrong:
        raise InputError(f"`tasks` must be one of {', '.join(sorted(TASKS))}. Got {wrong[0]!r}.")


def _settings(args: argparse.Namespace, recipe: BuildOptions, tasks: Sequence[str], n_articles: int) -> JsonObject:
    return {
        **asdict(recipe),
        "models": list(recipe.models),
        "tasks": list(tasks),
        "evaluation_share": args.evaluation_share,
        "seed": args.seed,
        "articles": n_articles,
    }


def _write(out: Path, found: Sequence[BuiltSample], splits: Mapping[str, str], settings: JsonObject) -> JsonObject:
    """Write both splits, Table 1 and the results, and return these."""
    samples = [result.sample for result in found if result.sample is not None]
    rejected = Counter(f"{each.step}: {each.why}" for result in found for each in result.rejected)
    if not samples:
        raise InputError(f"`llm` must give usable answers. Got none; {_counted(rejected)}.")
    by_split = {name: [s for s in samples if splits[s.article_id] == name] for name in SPLITS}
    left_out = sum((result.counts for result in found), Counter[str]())
    table = statistics(samples)
    results = {
        "schema_version": 1,
        "settings": dict(settings),
        "samples": len(samples),
        "given_up": len(found) - len(samples),
        "splits": {name: _split_counts(some) for name, some in by_split.items()},
        "rejected_answers": dict(sorted(rejected.items())),
        "left_out": dict(sorted(left_out.items())),
        "table1": records(table),
    }
    with whole_folder(out) as folder:
        for name, some in by_split.items():
            write_samples(folder / f"{name}.jsonl", some)
        write_table(folder, "table1-statistics", table, "Table 1: what the benchmark holds")
        write_results(folder, results)
    return results


def _split_counts(samples: Sequence[Sample]) -> dict[str, int]:
    return {"articles": len({sample.article_id for sample in samples}), "samples": len(samples)}


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "nothing"


def _text(results: JsonObject, out: Path) -> str:
    import pandas as pd

    splits = ", ".join(f"{name} {c['samples']} of {c['articles']} articles" for name, c in results["splits"].items())
    lines = [
        *markdown(pd.DataFrame(results["table1"])),
        "",
        f"{results['samples']} samples ({splits}), {results['given_up']} given up",
        f"answers rejected, by the samples that met them: {_counted(results['rejected_answers'])}",
        f"left out: {_counted(results['left_out'])}",
        f"written to {out}",
    ]
    return "\n".join([*lines, ""])
