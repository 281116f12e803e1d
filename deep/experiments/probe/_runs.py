"""Runs of PROBE: the benchmark is built, models are measured on it step by step, and training data are written."""

import argparse
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import product
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.files import JsonObject, atomic_file, check_out, check_replaceable, write_json_lines
from deep._util.names import check_name
from deep.asking import ProgramEntry, ProgramId
from deep.console import SCHEMA, check_minimum, check_models, check_not_in, naming_option, plain_tables, print_result
from deep.datasets import read_votes
from deep.evaluate import DatasetVerdict, Row, as_frame, frame_records, markdown
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.printed import PrintedSteps, load_steps, reworded
from deep.experiments.probe import _content, _probe_measures
from deep.experiments.probe._records import (
    COMPLEXITIES,
    TASKS,
    Article,
    Sample,
    chats,
    read_articles,
    read_samples,
    statistics,
)
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TABLE_1 = "table1-statistics"

JUDGE_STEPS = {"decompose": ("response",), "find": ("claim", "source"), "evaluate": ("claim", "context", "excerpt")}

# Those of the builder that can be asked in the paper's words.
# The printed prompt of insertion asks for no tags, so that nobody would know what was inserted; deep's own is asked.
BUILDER_STEPS = {
    "summarize": ("source",),
    "ask": ("source",),
    "answer": ("question", "source"),
    **{f"restyle-{style}": ("source",) for style in ("blog", "faq", "lecture_notes", "textbook")},
    "invent": ("count", "source"),
}


def read_printed(paths: Sequence[str], known: Mapping[str, Sequence[str]]) -> PrintedSteps:
    """Return the printed prompts of the steps that are known, as far as files of them are given.

    Raises
    ------
    InputError
        A file cannot be read, or holds no step that is known, or lacks a placeholder of one.
    """
    files = [load_steps(path, known, some=True) for path in paths]
    steps = {name: step for file in files for name, step in file.steps.items()}
    names = (" and ".join(getattr(file, name) for file in files) for name in ("id", "follows", "hash"))
    return PrintedSteps(next(names), next(names), steps, next(names))


def build(args: argparse.Namespace) -> int:
    """Run ``deep probe build``."""
    for name in ("consensus", "evaluation_share"):
        value = getattr(args, name)
        if not 0 < value <= 1:
            raise InputError(f"`{name}` must lie in (0, 1]. Got {value!r}.")
    check_minimum(args, attempts=1, evaluation_size=1)
    wrong = [task for task in args.tasks if task not in TASKS]
    if wrong:
        raise InputError(f"`tasks` must be one of {', '.join(sorted(TASKS))}. Got {wrong[0]!r}.")
    with naming_option("articles"):
        articles = read_articles(args.articles)
    recipe = read_roles(args)
    check_replaceable(args.out)
    dealt = _content.deal_tasks(articles, [task for task in TASKS if task in args.tasks], args.articles_by, args.seed)
    printed = read_printed(args.prompt, {**BUILDER_STEPS, **JUDGE_STEPS})
    styles = _content.deal_styles(articles, dealt, args.seed)

    def programs() -> Iterator[ProgramEntry]:
        for article in articles:
            for task, complexity in product(dealt[article.article_id], COMPLEXITIES):
                identity = ProgramId("probe-build", f"probe-{task}", f"{article.article_id}/{complexity}")
                program = _content.build_sample(article, task, styles[article.article_id], complexity, recipe)
                yield identity, recipe.writer, reworded(program, printed)

    _write(args, articles, dealt, list(study.ask_programs(args, programs).values()), recipe)
    return ExitStatus.DONE


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


def _write(
    args: argparse.Namespace,
    articles: Sequence[Article],
    dealt: _content.TasksByArticle,
    measures: Sequence[_content.BuiltSample],
    recipe: _content.BuildOptions,
) -> None:
    """Write both splits, Table 1 and the results, and print them."""
    samples = [result.sample for result in measures if result.sample is not None]
    rejected = Counter(f"{each.step}: {each.why}" for result in measures for each in result.rejected)
    if not samples:
        raise InputError(f"`llm` must give usable answers. Got none; {_count_text(rejected)}.")
    options = {"size": args.evaluation_size, "share": args.evaluation_share, "seed": args.seed}
    splits = _content.split_articles(articles, dealt, samples, **options)
    by_split = {name: [s for s in samples if splits[s.article_id] == name] for name in _content.SPLITS}
    left_out = sum((result.counts for result in measures), Counter[str]())
    table = statistics(samples)
    poisoned = sum(sample.complexity > 0 for sample in samples)
    verdict = DatasetVerdict(
        f"{len(samples):,} responses of {len(articles):,} articles; {len(measures) - len(samples):,} were given up.",
        f"{poisoned:,} of {len(samples):,} responses hold hallucinated claims, which were inserted.",
        "The labels follow from the insertion: read some before you rely on them.",
        "measure an LLM on them",
        f"deep probe eval --data {quote(str(args.out))} --llm NAME",
    )
    served = Counter(task for tasks in dealt.values() for task in tasks)
    settings = {
        **asdict(recipe),
        "tasks": [task for task in TASKS if task in args.tasks],
        "articles": len(articles),
        "articles_by": "task" if all(len(tasks) < 2 for tasks in dealt.values()) else "all",
        "articles_of": dict(sorted(served.items())),
        **{name: getattr(args, name) for name in ("evaluation_size", "evaluation_share", "seed")},
        "prompts": args.prompt,
    }
    results = {
        "settings": settings,
        "samples": len(samples),
        "given_up": len(measures) - len(samples),
        "splits": {name: _split_counts(some) for name, some in by_split.items()},
        "rejected_answers": dict(sorted(rejected.items())),
        "left_out": dict(sorted(left_out.items())),
        "table1": frame_records(table),
    }

    def write_splits(folder: Path) -> None:
        for name, some in by_split.items():
            write_json_lines(folder / f"{name}.jsonl", (sample.to_row() for sample in some))

    study.publish(
        args,
        verdict,
        results,
        lines=_lines(results),
        tables={TABLE_1: table},
        titles={TABLE_1: "Table 1: what the benchmark holds"},
        paper="probe",
        more=write_splits,
    )


def _split_counts(samples: Sequence[Sample]) -> JsonObject:
    by_task = dict(sorted(Counter(sample.task for sample in samples).items()))
    return {"articles": len({s.article_id for s in samples}), "samples": len(samples), "by_task": by_task}


def _count_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items())) or "nothing"


def _lines(results: JsonObject) -> Iterator[str]:
    settings = results["settings"]
    serve = "one task" if settings["articles_by"] == "task" else f"{len(settings['tasks'])} tasks"
    splits = ", ".join(f"{name} {c['samples']} of {c['articles']} articles" for name, c in results["splits"].items())
    yield from plain_tables("\n".join([*markdown(pd.DataFrame(results["table1"])), ""]))
    yield from plain_tables("\n".join(study.printed_text("probe", [TABLE_1])))
    yield f"{results['samples']} samples ({splits}), {results['given_up']} given up"
    yield (
        f"{settings['articles']} articles, each for {serve}; for evaluation "
        f"{_count_text(results['splits']['evaluation']['by_task'])} (requested: {settings['evaluation_size']} per task)"
    )
    yield f"rejected answers, by number of samples: {_count_text(results['rejected_answers'])}"
    yield f"left out: {_count_text(results['left_out'])}"


in_percent = partial(study.percentages, decimals=1, missing="")
"""Shares as the paper prints them."""


def data_file(data: Path, split: str) -> Path:
    """Return the file of a split where `data` is a build, else `data` itself."""
    path = data / f"{split}.jsonl" if data.is_dir() else data
    if not path.is_file():
        raise InputError(f"`data` must be a folder that `deep probe build` wrote, or a file of it. Got {str(data)!r}.")
    return path


def split_samples(data: Path, split: str) -> list[Sample]:
    """Return the samples of that file."""
    with naming_option("data"):
        return read_samples(data_file(data, split))


def evaluate(args: argparse.Namespace) -> int:
    """Run ``deep probe eval``."""
    samples = split_samples(args.data, "evaluation")
    llms = check_models(args)
    check_replaceable(args.out)
    check_not_in(args.out, Path(args.data), "data")
    matcher = _probe_measures.choose_matcher(args, llms)
    observed = _observe(args, samples, llms)
    if matcher.encoder is not None:
        observed = _probe_measures.with_alike(observed, samples, matcher.encoder, args.match_similarity)
    elif matcher.asks:
        observed = _ask_equivalence(args, samples, observed)
    result = {
        llm: _probe_measures.measure(list(zip(samples, of_llm, strict=True)), args.stage, args.match)
        for llm, of_llm in observed.items()
    }
    tables = build_tables(result)
    study.publish(
        args,
        verdict_of(result, samples, tables),
        {
            "settings": {"stage": args.stage, "match": args.match, "matched_by": matcher.name, "prompts": args.prompt},
            "samples": len(samples),
            "claims": sum(len(sample.claims) for sample in samples),
            "models": {model: [m.row() for m in measures] for model, measures in result.items()},
        },
        _text(tables, matcher),
        tables=tables,
        titles=TITLES,
        shown=in_percent,
        note="Shares in percent.",
        paper="probe",
        figures={name: _bars(tables[name], panels, TITLES[name]) for name, panels in FIGURES.items() if name in tables},
    )
    return ExitStatus.DONE


def _identity(step: str, llm: str, sample: Sample) -> ProgramId:
    """Return the id, in the ledger, of the program that asks an LLM for a step on a sample."""
    return ProgramId(f"probe-{step}/{llm}", f"probe-{sample.task}", sample.example_id)


def _observe(
    args: argparse.Namespace, samples: Sequence[Sample], llms: Sequence[str]
) -> dict[str, list[_probe_measures.Observed]]:
    printed = read_printed(args.prompt, JUDGE_STEPS)

    def programs() -> Iterator[ProgramEntry]:
        for sample in samples:
            for llm in llms:
                program = _probe_measures.stage_program(args.stage, sample)
                yield _identity(args.stage, llm, sample), llm, reworded(program, printed)
                if args.stage == "all":
                    yield _identity("direct", llm, sample), llm, _probe_measures.direct_program(sample)

    values = study.ask_programs(args, programs)
    observed = {llm: [values[_identity(args.stage, llm, sample)] for sample in samples] for llm in llms}
    if args.stage == "all":
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                one.direct = values[_identity("direct", llm, sample)]
    return observed


def _ask_equivalence(
    args: argparse.Namespace, samples: Sequence[Sample], observed: Mapping[str, Sequence[_probe_measures.Observed]]
) -> dict[str, list[_probe_measures.Observed]]:
    """Ask an LLM, none of those that are measured, which predicted claims restate which of the benchmark's."""

    def programs() -> Iterator[ProgramEntry]:
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                yield _identity("match", llm, sample), args.match_llm, _probe_measures.equivalence_program(one, sample)

    values = study.ask_programs(args, programs)
    matched = {llm: [values[_identity("match", llm, sample)] for sample in samples] for llm in observed}
    for of_llm in matched.values():
        n, failed = sum(one.match_asked for one in of_llm), sum(one.match_failed for one in of_llm)
        if n and failed == n:
            raise InputError(
                f"`match` must be answered by the LLM that compares claims. Got no usable answer of "
                f"{args.match_llm!r} to {n} questions. Name another with --match-llm or an encoder with "
                f"--match-encoder, or compare by form with --match normalised."
            )
    return matched


def _text(tables: Mapping[str, pd.DataFrame], matcher: _probe_measures.Matcher) -> str:
    lines: list[str] = []
    shown = {name: table for name, table in tables.items() if name != "steps"} or tables
    for name, table in shown.items():
        lines += [f"{TITLES[name]}, in percent", "", *markdown(in_percent(table)), ""]
    lines += study.printed_text("probe", tables)
    lines += [f"claims compared by {matcher.name}"] if matcher.name else []
    return "\n".join(lines)


def export(args: argparse.Namespace) -> int:
    """Run ``deep probe export-sft``."""
    out, data = check_out(args.out, [".jsonl"]), data_file(args.data, "train")
    if out.resolve() in (data.resolve(), *(data.resolve().with_name(f"{split}.jsonl") for split in _content.SPLITS)):
        raise InputError(f"`out` must not overwrite the benchmark. Got {str(out)!r}. Give another name.")
    rows = list(chats(split_samples(args.data, "train")))
    with atomic_file(out) as scratch:
        write_json_lines(scratch, rows)
    counts = Counter(chat["step"] for chat in rows)
    line = f"{counts['find']} finding and {counts['evaluate']} evaluation examples written to {out}"
    print_result(SCHEMA | {name: counts[name] for name in ("find", "evaluate")}, [line], as_json=args.json)
    return ExitStatus.DONE


# What was measured on the samples, by model.
Measures = Mapping[str, Sequence[_probe_measures.Measure]]

# Titles of the tables and figures, by the names of their files.
TITLES = {
    "steps": "Every measure of every step, with its counts",
    "table2-evidence": "Table 2: evidence finding, partial and complete, and evidence evaluation",
    "figure3-decomposition": "Figure 3: claim decomposition",
    "figure4a-localization": "Figure 4a: hallucination localization by claim and by character",
    "figure4b-detection": "Figure 4b: hallucination detection, direct against stepwise",
}

# Shares that are told of claims and of characters.
SCORES = ("precision", "recall", "f1")

# By figure: the step that it is of, and which of its measures are columns.
MEASURE_COLUMNS = {
    "figure3-decomposition": ("decompose", ("precision", "recall", "no_answer")),
    "figure4a-localization": (
        "locate",
        (*(f"{unit}_{score}" for unit in ("claim", "character") for score in SCORES), "no_answer"),
    ),
    "figure4b-detection": (
        "detect",
        (*(f"{m}_{k}" for k in ("recall", "response_recall", "false_alarms") for m in ("direct", "stepwise")),),
    ),
}


# By table: its panels, and in each the legend of every column that is drawn.
FIGURES: dict[str, dict[str, dict[str, str]]] = {
    "figure3-decomposition": {"matched claims": {"precision": "precision", "recall": "recall"}},
    "figure4a-localization": {
        f"by {unit}": {f"{unit}_{score}": score for score in SCORES} for unit in ("claim", "character")
    },
    "figure4b-detection": {"recall of hallucinated claims": {"direct_recall": "direct", "stepwise_recall": "stepwise"}},
}


def build_tables(found: Measures) -> dict[str, pd.DataFrame]:
    """Return the tables that the measures fill, by name; a share of nothing is empty."""
    steps = pd.DataFrame([{"model": model, **m.row()} for model, measures in found.items() for m in measures])
    tables = {"steps": steps, "table2-evidence": _evidence(found)}
    tables |= {name: _wide(found, step, columns) for name, (step, columns) in MEASURE_COLUMNS.items()}
    return {name: table for name, table in tables.items() if not table.empty}


def _evidence(by_model: Measures) -> pd.DataFrame:
    """Return a row a model and a column per measure and task."""
    names = {("find", "partial"): "partial", ("find", "complete"): "complete", ("evaluate", "accuracy"): "evaluation"}
    rows = []
    for model, measures in by_model.items():
        values = {(m.step, m.name, m.task): m.value for m in measures}
        cells = {f"{name}_{t}": values[*at, t] for at, name in names.items() for t in TASKS if (*at, t) in values}
        if cells:
            rows.append({"model": model, **cells})
    return pd.DataFrame(rows).astype({column: float for row in rows[:1] for column in row if column != "model"})


def _wide(by_model: Measures, step: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return a row per model and task, and a column a measure."""
    rows = []
    for model, measures in by_model.items():
        values = {(m.task, m.name): m.value for m in measures if m.step == step}
        tasks = dict.fromkeys(task for task, _ in values)
        rows += [{"model": model, "task": t} | {name: values.get((t, name)) for name in columns} for t in tasks]
    return pd.DataFrame(rows).astype({name: float for name in columns if rows})


def _bars(table: pd.DataFrame, panels: Mapping[str, Mapping[str, str]], title: str) -> "Figure":
    names = [f"{row.model}, {str(row.task).replace('_', ' ')}" for row in table.itertuples()]
    bars = {panel: {label: list(table[name]) for name, label in of.items()} for panel, of in panels.items()}
    return study.draw_bars(names, bars, title)


def verdict_of(found: Measures, samples: Sequence[Sample], drawn: Collection[str]) -> DatasetVerdict:
    """Return the answer of a run: how many hallucinated claims are found stepwise, and the false alarms."""
    by_model = {
        model: {m.name: m for m in measures if m.task == "overall" and m.total} for model, measures in found.items()
    }
    claims = sum(claim.label == "hallucinated" for sample in samples for claim in sample.claims)
    basis = f"Responses: {len(samples):,}; hallucinated claims: {claims:,}; LLMs: {len(found)}."
    then = "label responses of your own, and let a model join these judges with others to one P"
    picture = next((name for name in reversed(FIGURES) if name in drawn), "")
    recalls = {model: of["stepwise_recall"] for model, of in by_model.items() if "stepwise_recall" in of}
    if not recalls:
        suspect = f"{claims:,} claims are hallucinated by label; this run measures single steps only."
        return DatasetVerdict(basis, suspect, "These are shares of steps, without a P.", then, picture=picture)
    model = max(recalls, key=lambda name: recalls[name].value or 0.0)
    direct, alarms = by_model[model].get("direct_recall"), by_model[model].get("stepwise_false_alarms")
    aside = "" if direct is None else f"; asked directly, {direct.hits:,}"
    best = recalls[model]
    suspect = f"{model} finds {best.hits:,} of {best.total:,} hallucinated claims stepwise{aside}."
    trust = "These are verdicts without a P"
    trust += "." if alarms is None else f"; {alarms.hits:,} of {alarms.total:,} clean responses raise a false alarm."
    return DatasetVerdict(basis, suspect, trust, then, picture=picture)


def verdict_of_voters(table: pd.DataFrame, n: int) -> DatasetVerdict:
    """Return the answer of votes: the voter that best tells responses with a hallucination from clean ones."""
    rates = voter_rates(table)
    best = rates.iloc[int((rates["recall"] - rates["false alarms"].fillna(0.0)).argmax())]
    suspect = (
        f"{best['model']} is best: it calls {100 * best['recall']:.0f} % of the hallucinated responses inconsistent."
    )
    alarms = "no response is clean, so false alarms are unknown"
    if best["false alarms"] == best["false alarms"]:
        alarms = f"{100 * best['false alarms']:.0f} % of the clean responses raise a false alarm"
    then = "fit one model on the votes of all judges, which weighs them and gives P"
    basis = f"Responses: {n:,}; judges: {len(rates)}."
    return DatasetVerdict(basis, suspect, f"These are votes without a P; {alarms}.", then, picture="voters")


def voter_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Return by voter the share of hallucinated and of clean responses that it calls inconsistent, over all tasks."""
    overall = table[table["task"] == "overall"].assign(hits=lambda t: t["called"] * t["responses"])
    kind = np.where(overall["complexity"] == 0, "false alarms", "recall")
    sums = overall.groupby(["voter", kind])[["hits", "responses"]].sum()
    rates = (sums["hits"] / sums["responses"]).unstack().reindex(columns=["recall", "false alarms"])
    return rates.fillna({"recall": 0.0}).reset_index(names="model").assign(task="overall")


TITLE = "Responses that each voter calls inconsistent, by task and complexity"


def evaluate_votes(args: argparse.Namespace) -> int:
    """Run ``deep probe eval --votes``."""
    samples = split_samples(args.data, "evaluation")
    check_replaceable(args.out)
    table = voter_table(read_votes(args.votes), samples)
    verdict = verdict_of_voters(table, len(samples))
    results = {"samples": len(samples), "voters": frame_records(table)}
    panels = {"called inconsistent, over all tasks": {"recall": "hallucinated", "false alarms": "clean"}}
    study.publish(
        args,
        verdict,
        results,
        "\n".join([TITLE, "", *markdown(table), ""]),
        tables={"voters": table},
        titles={"voters": TITLE},
        figures={"voters": _bars(voter_rates(table), panels, TITLE)},
    )
    return ExitStatus.DONE


@as_frame
def voter_table(votes: VoteMatrix, samples: Sequence[Sample]) -> Iterator[Row]:
    """Return a row per voter, task and complexity: responses, those without a vote, and the share called inconsistent.

    At complexity 0 that share is of false alarms, above it is the recall; a response without a vote is not called.

    Raises
    ------
    InputError
        A sample has no row.
    """
    row_of = {item: row for row, item in enumerate(zip(votes.datasets, votes.item_ids, strict=True))}
    items = [(f"probe-{sample.task}", sample.example_id) for sample in samples]
    missing = next((item for item in items if item not in row_of), None)
    if missing is not None:
        raise InputError(f"`votes` must have a row for every sample. Got none for {missing[1]!r} of {missing[0]!r}.")
    of_samples = votes.votes[[row_of[item] for item in items]]
    for voter, column in zip(votes.voter_names, of_samples.T.tolist(), strict=True):
        for task in (*TASKS, "overall"):
            for complexity in COMPLEXITIES:
                cast = [
                    vote
                    for vote, sample in zip(column, samples, strict=True)
                    if task in (sample.task, "overall") and sample.complexity == complexity
                ]
                if cast:
                    counts = {
                        "responses": len(cast),
                        "no_vote": cast.count(ABSTAIN),
                        "called": cast.count(0) / len(cast),
                    }
                    yield {"voter": voter, "task": task, "complexity": complexity, **counts}
