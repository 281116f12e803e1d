"""Measuring models on the benchmark."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from deep._files import JsonObject, check_replaceable, write_results
from deep.asking import Entry, ProgramId
from deep.console import check_models, check_not_in, named, print_result
from deep.evaluate import markdown
from deep.exceptions import ExitStatus, InputError
from deep.experiments.printed import printed_text
from deep.experiments.probe._ask import ask
from deep.experiments.probe._match_encoder import with_alike
from deep.experiments.probe._match_llm import equivalence_program
from deep.experiments.probe._matcher import Matcher, choose_matcher
from deep.experiments.probe._measures import Measure, measure
from deep.experiments.probe._observe import Observed, direct_program, stage_program
from deep.experiments.probe._printed import JUDGE_STEPS, in_print, read_printed
from deep.experiments.probe._records import Sample, read_samples
from deep.experiments.probe._report import TITLES, build_tables, write_report
from deep.experiments.probe._run_votes import measure_votes
from deep.report import report_line, reported_folder


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
    samples = split_samples(args.data, "evaluation")
    llms = check_models(args)
    check_replaceable(args.out)
    check_not_in(args.out, Path(args.data), "data")
    matcher = choose_matcher(args)
    observed = _matched(args, matcher, samples, _observe(args, samples, llms))
    found = {
        llm: measure(list(zip(samples, of_llm, strict=True)), args.stage, args.match)
        for llm, of_llm in observed.items()
    }
    results = _results(args, matcher, samples, found)
    tables = build_tables(found)
    with reported_folder(args.out) as folder:
        write_report(tables, folder)
        write_results(folder, results)
    print_result(results, [_text(tables, matcher, args.out)], as_json=args.json)
    return ExitStatus.DONE


def evaluate_votes(args: argparse.Namespace) -> int:
    """Run ``deep probe eval --votes``."""
    return measure_votes(args, split_samples(args.data, "evaluation"))


def _identity(step: str, llm: str, sample: Sample) -> ProgramId:
    return ProgramId(f"probe-{step}/{llm}", f"probe-{sample.task}", sample.example_id)


def _observe(args: argparse.Namespace, samples: Sequence[Sample], llms: Sequence[str]) -> dict[str, list[Observed]]:
    printed = read_printed(args.prompt, JUDGE_STEPS)

    def programs() -> Iterator[Entry]:
        for sample in samples:
            for llm in llms:
                yield _identity(args.stage, llm, sample), llm, in_print(stage_program(args.stage, sample), printed)
                if args.stage == "all":
                    yield _identity("direct", llm, sample), llm, direct_program(sample)

    values = ask(args, programs)
    observed = {llm: [values[_identity(args.stage, llm, sample)] for sample in samples] for llm in llms}
    if args.stage == "all":
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                one.direct = values[_identity("direct", llm, sample)]
    return observed


def _matched(
    args: argparse.Namespace, matcher: Matcher, samples: Sequence[Sample], observed: dict[str, list[Observed]]
) -> dict[str, list[Observed]]:
    """Return the observations, with the claims that say the same in other words where the matcher looks for them."""
    if matcher.encoder is not None:
        return with_alike(observed, samples, matcher.encoder, args.match_similarity)
    return _asked(args, samples, observed) if matcher.asks else observed


def _asked(
    args: argparse.Namespace, samples: Sequence[Sample], observed: Mapping[str, Sequence[Observed]]
) -> dict[str, list[Observed]]:
    """Ask an LLM, by default the one that is measured, which predicted claims restate which of the benchmark's."""

    def programs() -> Iterator[Entry]:
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                yield _identity("match", llm, sample), args.match_llm or llm, equivalence_program(one, sample)

    values = ask(args, programs)
    matched = {llm: [values[_identity("match", llm, sample)] for sample in samples] for llm in observed}
    for llm, of_llm in matched.items():
        n, failed = sum(one.match_asked for one in of_llm), sum(one.match_failed for one in of_llm)
        if n and failed == n:
            raise InputError(
                f"`match` must be answered by the LLM that compares claims. Got no usable answer of "
                f"{args.match_llm or llm!r} to {n} questions. Name another with --match-llm or an encoder with "
                f"--match-encoder, or compare by form with --match normalised."
            )
    return matched


def _results(
    args: argparse.Namespace, matcher: Matcher, samples: Sequence[Sample], found: Mapping[str, Sequence[Measure]]
) -> JsonObject:
    return {
        "schema_version": 1,
        "settings": {"stage": args.stage, "match": args.match, "matched_by": matcher.name, "prompts": args.prompt},
        "samples": len(samples),
        "claims": sum(len(sample.claims) for sample in samples),
        "models": {model: [m.row() for m in measures] for model, measures in found.items()},
    }


def _text(tables: Mapping[str, pd.DataFrame], matcher: Matcher, out: Path) -> str:
    lines: list[str] = []
    shown = {name: table for name, table in tables.items() if name != "steps"} or tables
    for name, table in shown.items():
        lines += [TITLES[name], "", *markdown(table), ""]
    lines += printed_text("probe", tables)
    lines += [f"claims compared by {matcher.name}"] if matcher.name else []
    return "\n".join([*lines, f"written to {out}", report_line(out), ""])
