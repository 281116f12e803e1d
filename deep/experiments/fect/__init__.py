"""FECT: judges of interpretive claims under four prompts and repeated runs.

The same command again asks only the missing questions. Exit status: 0 done, 2 an error, 3 the budget is reached,
130 interrupted.

For instance:

  deep fect --data fect --llm gpt-4o --runs 10 --dry-run
      how many calls and dollars it would take; nothing is sent
  deep fect --data fect --llm gpt-4o o1 --reasoning o1 --budget 50 --out fect
      Tables 2, 4 and 5, Figures 5, 7 and 8, and self-consistency over ten runs
  deep fect --data claims.csv --llm tiny --prompt 3d-ttc --runs 3 --output xml
      one prompt on claims of your own, each with a label
  deep fect --data fect --llm o1 --prompt printed/fect-printed-3d-ttc.toml
      the paper's own prompt, which `deep prompts import` cuts out of your copy of the paper
  deep fect --data fect --votes votes.parquet --model-file model.json --encoder NAME --lexical all
      a row for every voter, for the model's P(consistent), and for judges that need no LLM
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from deep import console
from deep._util.columns import escape_frame
from deep._util.files import check_replaceable, read_asset
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError, StoppedError

if TYPE_CHECKING:
    import pandas as pd

    from deep.asking import AskOptions, Plan


# The authors' own file, and below what they call its columns.
PUBLISHED = "fect_benchmark.csv"

PUBLISHED_COLUMNS = {"source_column": "conversation", "label_column": "claim_is_factual"}

# The paper's four prompts, and ours that follow their strategies; ttc: test-time compute, reasoning first.
PROMPTS = {"basic": "basic-direct", "basic-ttc": "basic-reasoned", "3d": "3d-direct", "3d-ttc": "3d-reasoned"}

# What the tables call our prompts, by id; any other prompt goes by its own.
NAMES = {f"fect-{ours}-{form}": name for name, ours in PROMPTS.items() for form in ("json", "xml")}


@dataclass(frozen=True)
class _Answers:
    """Options of the command.

    Parameters
    ----------
    runs : int, default=10
        Answers to every question.
    output : str, default='json'
        The form of the answers.
    temperature : float, optional
        Default: 1 where runs are repeated, else 0.
    """

    runs: int = option(10, "N")
    output: str = option("json", choices=("json", "xml"))
    temperature: float | None = option(None, "T")


@dataclass(frozen=True)
class _ClaimsAndJudges:
    """Claims, and those who judge them.

    Parameters
    ----------
    data : str
        The benchmark, or a file of labeled examples.
    prompt : tuple of str
        Those that are asked; empty: all four of the paper.
    votes : tuple of str
        Vote files on the same claims; several with one voter are its runs.
    model_file : tuple of str
        Models of `deep fit`, on the votes given or made here.
    """

    data: str = option(MISSING, "NAME|FILE", help="fect, or labeled examples of your own")
    prompt: tuple[str, ...] = option(
        (), "NAME|FILE", help=f"of: {', '.join(PROMPTS)}; or TOML files; default: all four"
    )
    votes: tuple[str, ...] = option((), "FILE")
    model_file: tuple[str, ...] = option((), "FILE")


@dataclass(frozen=True)
class _Study:
    """The report of the study.

    Parameters
    ----------
    reasoning : tuple of str
        Models shown separately, as in the paper.
    out : Path, default=Path('fect')
        A new folder, or an earlier run's.
    dry_run : bool, default=False
        Print calls, tokens and cost, and send nothing.
    ensembler : tuple of str
        Ensembles without labels, of all voters of a vote file: DawidSkene, LabelModel and others.
    """

    reasoning: tuple[str, ...] = option((), "MODEL")
    out: Path = option(Path("fect"), "FOLDER")
    dry_run: bool = option(False)
    ensembler: tuple[str, ...] = option((), "NAME")


add_arguments = console.adder(
    _ClaimsAndJudges, _Answers, _Study, "json", console.OfflineJudges, *console.CALL_TOPICS, console.ExampleColumns
)


@console.naming_option("data")
def run(args: argparse.Namespace) -> int:
    """Ask, measure, write and report."""
    import pandas as pd

    from deep.asking import print_estimate, run_plan

    plan = _plan(args)
    options = console.ask_options(args, args.out) if plan.asks else None
    if args.dry_run:
        print_estimate(plan, options, as_json=args.json)
        return ExitStatus.DONE
    check_replaceable(args.out)
    counts, verdicts = _counts(plan), _given_verdicts(args, plan)
    args.out.absolute().parent.mkdir(parents=True, exist_ok=True)
    with console.live_progress() as progress:
        outcome = run_plan(plan, options, progress)
    if outcome.stopped is not None:
        raise StoppedError(outcome.stopped)
    _write(args, pd.DataFrame([*_asked_verdicts(plan, options), *verdicts]), counts)
    return ExitStatus.DONE


def _plan(args: argparse.Namespace) -> "Plan":
    from deep.asking import Plan, Sampling, judges_of, planned_voters

    console.check_draws(args, "runs")
    sources = args.votes or args.model_file or args.lexical or args.encoder or args.embedding
    models = console.check_models(args) if args.llm or args.prompt or not sources else ()
    if not models:
        console.check_nothing_asked(args, "without `llm`", _Answers)
    apart = [name for name in args.reasoning if name not in models]
    if apart and not args.votes:
        raise InputError(f"`reasoning` must be among `llm`. Got {apart[0]!r}.")
    if args.ensembler and not (args.votes or args.lexical or args.encoder or args.embedding):
        raise InputError(
            f"`ensembler` must be given with `votes` or judges that need no key. Got {args.ensembler[0]!r} alone."
        )
    sampling = Sampling(args.runs, args.temperature, repair=False, constrain="none")
    prompts = judges_of("prompt", _prompts(args), sampling) if models else []
    # The file that the authors publish is read as it is.
    published = Path(args.data).name == PUBLISHED and not console.column_map(args)
    arguments = argparse.Namespace(**vars(args) | PUBLISHED_COLUMNS) if published else args
    return Plan(
        examples=console.examples_from(arguments, args.data),
        columns=planned_voters(prompts, models),
        endpoint=console.endpoint_of(args) if models else "",
    )


def _prompts(args: argparse.Namespace) -> list[str]:
    """Return the ids or files of the prompts to ask."""
    names = args.prompt or list(PROMPTS)
    unknown = [name for name in names if name not in PROMPTS and not name.endswith(".toml")]
    if unknown:
        allowed = ", ".join(sorted(PROMPTS))
        raise InputError(f"`prompt` must be one of {allowed}, or a .toml file. Got {unknown[0]!r}.")
    return [f"fect-{PROMPTS[name]}-{args.output}" if name in PROMPTS else name for name in names]


def _counts(plan: "Plan") -> dict[str, int]:
    """Return the number of claims by label."""
    labels = [example.label for example in plan.examples]
    if None in labels:
        raise InputError(
            f"`data` must have a label, 0 or 1, in every row. Got {labels.count(None)} rows without. Leave them out."
        )
    return {"items": len(labels), "factual": labels.count(1), "nonfactual": labels.count(0)}


def _given_verdicts(args: argparse.Namespace, plan: "Plan") -> list[dict[str, object]]:
    """Return the verdicts that are not asked for, read before anything is paid for; none of a voter that is asked."""
    from deep.experiments.fect._fect_report import given_verdicts

    judges = console.offline_judges(args)
    options = {"votes": args.votes, "models": args.model_file, "ensemblers": args.ensembler}
    verdicts = list(given_verdicts(plan.examples, NAMES, judges=judges, **options))
    voters = {(column.llm, NAMES.get(judge.name, judge.name)) for judge, column in plan.prompts}
    both = voters & {(row["model"], row["prompt"]) for row in verdicts}
    if both:
        model, prompt = min(both)
        raise InputError(
            f"`votes` must hold no voter that is asked too. Got {prompt!r} of {model!r}. Ask it, or give its votes."
        )
    return verdicts


def _asked_verdicts(plan: "Plan", options: "AskOptions | None") -> Iterator[dict[str, object]]:
    """Yield the verdicts of a plan from the ledger, with what the judge lists in support."""
    from deep.asking import chunks, read_samples
    from deep.experiments.fect._fect_report import verdict_row
    from deep.llm import History

    if options is None:
        return
    with History(options.ledger) as history:
        for examples in chunks(plan.examples):
            labels = {(str(example.dataset), example.example_id): example.label for example in examples}
            for request, judgment in read_samples(plan, examples, history):
                place = request.dataset, request.item, labels[request.dataset, request.item]
                judge = request.model, NAMES.get(request.prompt, request.prompt), request.sample + 1
                evidence = json.dumps(judgment.evidence, ensure_ascii=False) if judgment.evidence else ""
                yield verdict_row(*place, *judge, judgment.vote, reason=judgment.reason, evidence=evidence)


def _write(args: argparse.Namespace, verdicts: "pd.DataFrame", counts: dict[str, int]) -> None:
    from deep.evaluate import frame_records
    from deep.experiments import study
    from deep.experiments.fect import _fect_report

    runs, repeats = _fect_report.score_runs(verdicts), _fect_report.consistency(verdicts)
    summary = _fect_report.summarise(runs)
    # The printed tables stand beside those of the benchmark itself, and its reasoning models are drawn apart there.
    published = read_asset(__package__, "published.json")
    printed = _fect_report.printed_summary() if counts == published["counts"] else None
    verdict = _fect_report.verdict_of(summary, counts, args.votes)
    results = {
        "data": args.data,
        "runs": args.runs,
        "output": args.output,
        "counts": counts,
        "summary": frame_records(summary),
        "consistency": frame_records(repeats),
        "scores": frame_records(runs),
        "printed": [] if printed is None else frame_records(printed),
    }
    text = _fect_report.report(summary, runs, repeats, counts, printed)
    frames = {"scores": runs, "consistency": repeats, "verdicts": verdicts.drop(columns="item")}
    pictures = _fect_report.draw(summary, args.reasoning)
    if printed is not None:
        figures = _fect_report.draw(printed, published["reasoning"])
        pictures |= {f"{name}-printed": figure for name, figure in figures.items()}

    def write_frames(folder: Path) -> None:
        for name, frame in (frames | _fect_report.frames_of(summary, printed)).items():
            escape_frame(frame).to_csv(folder / f"{name}.csv", index=name.startswith("table"), lineterminator="\n")
        (folder / "report.md").write_text(text, encoding="utf-8")

    study.publish(args, verdict, results, text, figures=pictures, more=write_frames)
