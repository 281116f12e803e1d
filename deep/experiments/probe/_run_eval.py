"""Measuring models on the benchmark."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from deep._files import JsonObject, check_replaceable, whole_folder, write_results
from deep.asking import Entry, ProgramId
from deep.console import check_models, named, print_result
from deep.evaluate import markdown
from deep.exceptions import ExitStatus, InputError
from deep.experiments.probe._ask import ask
from deep.experiments.probe._measures import Measure, measure
from deep.experiments.probe._observe import Observed, direct_program, equivalence_program, stage_program
from deep.experiments.probe._records import Sample, read_samples
from deep.experiments.probe._report import TITLES, build_tables, write_report
from deep.experiments.probe._run_votes import measure_votes


def data_file(data: Path, split: str) -> Path:
    """Return the file of a split where `data` is a build, else `data` itself."""
    path = data / f"{split}.jsonl" if data.is_dir() else data
    if not path.is_file():
        raise InputError(f"`data` must be what `deep probe build` wrote, or a file of it. Got {str(data)!r}.")
    return path


def split_samples(data: Path, split: str) -> list[Sample]:
    """Return the samples of that file."""
    with named("data"):
        return read_samples(data_file(data, split))


def evaluate(args: argparse.Namespace) -> int:
    """Run ``deep probe eval``."""
    if (args.match == "semantic") != (args.match_llm is not None):
        raise InputError(f"`match_llm` must be given exactly where `match` is semantic. Got {args.match_llm!r}.")
    samples = split_samples(args.data, "evaluation")
    models = check_models(args)
    check_replaceable(args.out)
    observed = _observe(args, samples, models)
    found = {
        model: measure([(s, observed[_identity(args.stage, model, s)]) for s in samples], args.stage, args.match)
        for model in models
    }
    results = _results(args, samples, found)
    tables = build_tables(found)
    with whole_folder(args.out) as folder:
        write_report(tables, folder)
        write_results(folder, results)
    print_result(results, [_text(tables, args.out)], as_json=args.json)
    return ExitStatus.DONE


def evaluate_votes(args: argparse.Namespace) -> int:
    """Run ``deep probe eval --votes``."""
    if args.llm:
        raise InputError(f"`votes` must be given without `llm`. Got {args.llm[0]!r} too.")
    return measure_votes(args, split_samples(args.data, "evaluation"))


def _identity(step: str, model: str, sample: Sample) -> ProgramId:
    return ProgramId(f"probe-{step}/{model}", f"probe-{sample.task}", sample.example_id)


def _observe(args: argparse.Namespace, samples: Sequence[Sample], models: Sequence[str]) -> dict[ProgramId, Observed]:
    def programs() -> Iterator[Entry]:
        for sample in samples:
            for model in models:
                yield _identity(args.stage, model, sample), model, stage_program(args.stage, sample)
                if args.stage == "all":
                    yield _identity("direct", model, sample), model, direct_program(sample)

    values = ask(args, programs)
    if args.stage == "all":
        for sample in samples:
            for model in models:
                values[_identity("all", model, sample)].direct = values.pop(_identity("direct", model, sample))
    if args.match == "semantic" and args.stage in ("decompose", "all"):
        return _with_equivalents(args, samples, models, values)
    return values


def _with_equivalents(
    args: argparse.Namespace, samples: Sequence[Sample], models: Sequence[str], values: Mapping[ProgramId, Observed]
) -> dict[ProgramId, Observed]:
    """Ask the match model which predicted claims restate which of the benchmark's."""

    def programs() -> Iterator[Entry]:
        for sample in samples:
            for model in models:
                observed = values[_identity(args.stage, model, sample)]
                yield _identity("match", model, sample), args.match_llm, equivalence_program(observed, sample)

    matched = ask(args, programs)
    return {
        _identity(args.stage, model, sample): matched[_identity("match", model, sample)]
        for sample in samples
        for model in models
    }


def _results(args: argparse.Namespace, samples: Sequence[Sample], found: Mapping[str, Sequence[Measure]]) -> JsonObject:
    return {
        "schema_version": 1,
        "settings": {"stage": args.stage, "match": args.match, "match_model": args.match_llm},
        "samples": len(samples),
        "claims": sum(len(sample.claims) for sample in samples),
        "models": {model: [m.row() for m in measures] for model, measures in found.items()},
    }


def _text(tables: Mapping[str, pd.DataFrame], out: Path) -> str:
    lines: list[str] = []
    shown = {name: table for name, table in tables.items() if name != "steps"} or tables
    for name, table in shown.items():
        lines += [TITLES[name], "", *markdown(table), ""]
    return "\n".join([*lines, f"written to {out}", ""])
