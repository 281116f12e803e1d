"""Measuring models on the benchmark."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd

from deep._util.files import JsonObject, check_out, check_replaceable, whole_file, write_json_lines
from deep.asking import Entry, ProgramId
from deep.console import ask_programs, check_models, check_not_in, named, study_lines
from deep.evaluate import markdown
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.probe import _probe_measures
from deep.experiments.probe._content import SPLITS
from deep.experiments.probe._probe_report import TITLES, build_tables, draw_measures, measure_votes, verdict_of
from deep.experiments.probe._records import FoundExcerpt, GoldClaim, Sample, read_samples
from deep.experiments.probe._run_build import JUDGE_STEPS, in_print, read_printed
from deep.experiments.stepwise import evaluation_question, finding_question
from deep.judges import Question

in_percent = partial(study.percentages, decimals=1, missing="")
"""Shares as the paper prints them."""


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
    matcher = _probe_measures.choose_matcher(args, llms)
    observed = _matched(args, matcher, samples, _observe(args, samples, llms))
    found = {
        llm: _probe_measures.measure(list(zip(samples, of_llm, strict=True)), args.stage, args.match)
        for llm, of_llm in observed.items()
    }
    tables = build_tables(found)
    verdict = verdict_of(found, samples, tables)
    results = _results(args, matcher, samples, found) | {"verdict": verdict.as_dict()}
    study.publish(
        args,
        results,
        [*study_lines(verdict, _text(tables, matcher)), f"written to {args.out}"],
        tables=tables,
        titles=TITLES,
        shown=in_percent,
        note="Shares in percent.",
        paper="probe",
        figures=draw_measures(tables),
    )
    return ExitStatus.DONE


def evaluate_votes(args: argparse.Namespace) -> int:
    """Run ``deep probe eval --votes``."""
    return measure_votes(args, split_samples(args.data, "evaluation"))


def _identity(step: str, llm: str, sample: Sample) -> ProgramId:
    return ProgramId(f"probe-{step}/{llm}", f"probe-{sample.task}", sample.example_id)


def _observe(
    args: argparse.Namespace, samples: Sequence[Sample], llms: Sequence[str]
) -> dict[str, list[_probe_measures.Observed]]:
    printed = read_printed(args.prompt, JUDGE_STEPS)

    def programs() -> Iterator[Entry]:
        for sample in samples:
            for llm in llms:
                yield (
                    _identity(args.stage, llm, sample),
                    llm,
                    in_print(_probe_measures.stage_program(args.stage, sample), printed),
                )
                if args.stage == "all":
                    yield _identity("direct", llm, sample), llm, _probe_measures.direct_program(sample)

    values = ask_programs(args, programs)
    observed = {llm: [values[_identity(args.stage, llm, sample)] for sample in samples] for llm in llms}
    if args.stage == "all":
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                one.direct = values[_identity("direct", llm, sample)]
    return observed


def _matched(
    args: argparse.Namespace,
    matcher: _probe_measures.Matcher,
    samples: Sequence[Sample],
    observed: dict[str, list[_probe_measures.Observed]],
) -> dict[str, list[_probe_measures.Observed]]:
    """Return the observations, with the claims that say the same in other words where the matcher looks for them."""
    if matcher.encoder is not None:
        return _probe_measures.with_alike(observed, samples, matcher.encoder, args.match_similarity)
    return _asked(args, samples, observed) if matcher.asks else observed


def _asked(
    args: argparse.Namespace, samples: Sequence[Sample], observed: Mapping[str, Sequence[_probe_measures.Observed]]
) -> dict[str, list[_probe_measures.Observed]]:
    """Ask an LLM, none of those that are measured, which predicted claims restate which of the benchmark's."""

    def programs() -> Iterator[Entry]:
        for llm, of_llm in observed.items():
            for sample, one in zip(samples, of_llm, strict=True):
                yield _identity("match", llm, sample), args.match_llm, _probe_measures.equivalence_program(one, sample)

    values = ask_programs(args, programs)
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


def _results(
    args: argparse.Namespace,
    matcher: _probe_measures.Matcher,
    samples: Sequence[Sample],
    found: Mapping[str, Sequence[_probe_measures.Measure]],
) -> JsonObject:
    return {
        "schema_version": 1,
        "settings": {"stage": args.stage, "match": args.match, "matched_by": matcher.name, "prompts": args.prompt},
        "samples": len(samples),
        "claims": sum(len(sample.claims) for sample in samples),
        "models": {model: [m.row() for m in measures] for model, measures in found.items()},
    }


def _text(tables: Mapping[str, pd.DataFrame], matcher: _probe_measures.Matcher) -> str:
    lines: list[str] = []
    shown = {name: table for name, table in tables.items() if name != "steps"} or tables
    for name, table in shown.items():
        lines += [f"{TITLES[name]}, in percent", "", *markdown(in_percent(table)), ""]
    lines += study.printed_text("probe", tables)
    lines += [f"claims compared by {matcher.name}"] if matcher.name else []
    return "\n".join(lines)


def chats(samples: Iterable[Sample]) -> Iterator[JsonObject]:
    """Yield evidence-finding and evidence-evaluation examples, each distinct one once.

    Finding: the accepted excerpts of each truth claim. Evaluation: PASS for those; FAIL for excerpts of truth claims
    that no model let pass, and for every excerpt found for hallucinated claims. The user's turn is the question of the
    stepwise judge, so that a tuned model can be asked the same way.
    """
    seen: set[str] = set()
    for sample in samples:
        for claim in sample.labeled("truth", "hallucinated"):
            for chat in _of_claim(sample.source, claim):
                key = json.dumps(chat, sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    yield chat


def _of_claim(source: str, claim: GoldClaim) -> Iterator[JsonObject]:
    if claim.label == "truth":
        quoted = [excerpt.text for excerpt in claim.evidence]
        reasoning = f"{len(quoted)} passage{'' if len(quoted) == 1 else 's'} of the source speak to the claim."
        yield _chat("find", finding_question(source, claim.text), {"reasoning": reasoning, "evidence": quoted})
    for candidate in claim.candidates:
        verdict = _verdict(claim, candidate)
        if verdict is not None:
            reasoning = f"The excerpt {'establishes' if verdict == 'PASS' else 'does not establish'} the whole claim."
            question = evaluation_question(source, claim.text, candidate.excerpt)
            yield _chat("evaluate", question, {"reasoning": reasoning, "verdict": verdict})


def _verdict(claim: GoldClaim, candidate: FoundExcerpt) -> str | None:
    """Return the right answer; None where the models disagreed too much to know it."""
    if claim.label == "hallucinated":
        return "FAIL"
    if candidate.accepted:
        return "PASS"
    return "FAIL" if candidate.passes == 0 else None


def _chat(step: str, question: Question, answer: JsonObject) -> JsonObject:
    reply = {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}
    return {"messages": [*question.messages, reply], "step": step}


def export(args: argparse.Namespace) -> int:
    """Run ``deep probe export-sft``."""
    out, data = check_out(args.out, [".jsonl"]), data_file(args.data, "train")
    if out.resolve() in (data.resolve(), *(data.resolve().with_name(f"{split}.jsonl") for split in SPLITS)):
        raise InputError(f"`out` must leave the benchmark as it is. Got {str(out)!r}. Give another name.")
    written = list(chats(split_samples(args.data, "train")))
    with whole_file(out) as scratch:
        write_json_lines(scratch, written)
    counts = Counter(chat["step"] for chat in written)
    sys.stdout.write(f"{counts['find']} finding and {counts['evaluate']} evaluation examples written to {out}\n")
    return ExitStatus.DONE
