"""The tests of a gate, and its folder: ``junit.xml``, ``summary.md``, ``history.jsonl`` and its chart."""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from deep import __version__, console, datasets, evaluate, model
from deep._util.figures import BLUE, RED, save_figure
from deep._util.files import atomic_files, read_bytes
from deep.exceptions import DeepError, ExitStatus, InputError, printable
from deep.model import VoteRates
from deep.records import VoteMatrix

# The file of all runs, and how many of them the chart shows.
HISTORY_FILE, MAX_RUNS_SHOWN = "history.jsonl", 30

# Outcomes of a case; JUnit's words for them follow.
PASSED, FAILED, BROKEN, SKIPPED = "passed", "failed", "error", "skipped"

# The element of JUnit XML for each outcome but a pass.
JUNIT_TAGS = {FAILED: "failure", BROKEN: "error", SKIPPED: "skipped"}

CHANGED_JUDGE_REMEDY = "its prompt, settings or LLM changed, so P may be wrong. Fit again, or use the judges of the fit"


class GateCase(NamedTuple):
    """One test of a gate.

    Parameters
    ----------
    group : {'versions', 'answers', 'votes', 'labels', 'input'}
        Versions of judges, usable answers, how judges vote, labels against P, or that the input can be used.
    name : str
        A judge, or the dataset of labels.
    outcome : {'passed', 'failed', 'error', 'skipped'}
        'error': the input cannot be used. 'skipped': there was nothing to test.
    says : str
        The reason, where it has not passed.
    """

    group: str
    name: str
    outcome: str = PASSED
    says: str = ""


@dataclass(frozen=True)
class GateRun:
    """One run of a gate, as its history keeps it.

    Parameters
    ----------
    time : str
        UTC, by ISO 8601.
    passed : bool
        Whether no test has failed or ended in an error.
    model : str
        Checksum of the model.
    judges : list of str
        The columns that the model was fitted on, whose names hold the versions of the judges.
    n : int
        Items.
    share : list of float, optional
        Estimated share of consistent items with the bounds of its 90 % interval, of one dataset.
    cases : list of list of str
        As :class:`GateCase`.
    deep : str
        Version.
    rates : mapping, optional
        As of :func:`deep.evaluate.stream_rates`; None where the model was fitted on all of the votes, or of older runs.
    """

    time: str
    passed: bool
    model: str
    judges: list[str]
    n: int
    share: list[float] | None
    cases: list[list[str]]
    deep: str = __version__
    rates: VoteRates | None = None

    def __post_init__(self) -> None:
        texts = (self.time, self.model, self.deep, *self.judges)
        share = (0.0, 0.0, 0.0) if self.share is None else self.share
        lists = (self.judges, self.cases, *self.cases)
        if not all(isinstance(one, str) for one in texts) or not all(isinstance(one, list) for one in lists):
            raise TypeError("texts and lists of texts are something else")
        if type(self.n) is not int or len(share) != 3 or not all(isinstance(one, int | float) for one in share):
            raise TypeError("numbers are something else")
        by_statistic = [] if self.rates is None else list(dict(self.rates).values())
        pairs = [pair for rates in by_statistic for pair in dict(rates).values()]
        if not all(isinstance(one, int | float) for rate, n in pairs for one in (rate, n)):
            raise TypeError("rates are something else")


def gate_cases(
    fitted: "model.Model",
    votes: VoteMatrix,
    failures: Sequence[datasets.Failures] = (),
    target: "evaluate.Target | None" = None,
    *,
    history: Sequence[GateRun] = (),
    reference: VoteMatrix | None = None,
    alpha: float = 0.05,
) -> Iterator[GateCase]:
    """Yield the tests: versions of judges, their answers, how they vote, and labels against P.

    A gate without any change fails with a chance of at most `alpha` by each of the last three, however often it is
    run: answers and labels have `alpha` / (t (t + 1)) at run t, which sums to `alpha`, and so has the comparison with
    the training datasets at the first run. From then on votes are compared with all earlier runs, by an e-process.

    Parameters
    ----------
    fitted : Model
        The model whose judges have voted.
    votes : VoteMatrix
        The votes of this run.
    failures : sequence of Failures
        Why votes are missing.
    target : Target, optional
        The dataset with labels of a random sample.
    history : sequence of GateRun
        Earlier runs. The gate is bound to the judges of the first one: those of a model fitted again may be others.
    reference : VoteMatrix, optional
        As in :func:`deep.evaluate.drift_report`; it goes before the runs.
    alpha : float
        The largest chance of a false alarm over all runs, for answers, votes and labels each; default 0.05.
    """
    bound, look = history[0].judges if history else None, len(history) + 1
    spent = alpha / (look * (look + 1))
    report = evaluate.drift_report(fitted, votes, failures, alpha=spent, reference=reference)
    for judge in fitted.voter_names:
        now = report.other_version_or_model.get(judge, judge)
        text = "" if now == judge else f"{judge} was fitted and {now} has voted: {CHANGED_JUDGE_REMEDY}."
        if bound is not None and judge not in bound:
            text = f"{judge} is not a judge of this gate ({', '.join(bound)}). Name a new folder for it."
        yield GateCase("versions", judge, FAILED if text else PASSED, text)
        rate = report.failing.get(now)
        if rate is not None:
            risen = "more often than when the model was fitted"
            yield GateCase("answers", judge, FAILED, f"{now} gave no usable answer to {100 * rate:.1f} %, {risen}.")
        elif now in report.untested:
            yield GateCase("answers", judge, SKIPPED, f"Votes of {now} are missing, and no file says why.")
        else:
            yield GateCase("answers", judge)
    reasons: dict[str, list[str]] = {row.judge: [] for row in report.statistics}
    for judge, text in _judges_that_drifted(fitted, votes, report, history, reference, alpha):
        reasons.setdefault(judge, []).append(text)
    for judge, text in ((judge, "; ".join(rows)) for judge, rows in reasons.items()):
        if report.is_training:
            yield GateCase("votes", judge, SKIPPED, "The model was fitted on these votes, so there is nothing to test.")
        else:
            yield GateCase("votes", judge, FAILED if text else PASSED, text)
    yield _of_labels(fitted, target, spent, comparable=not report.other_version_or_model)


def _judges_that_drifted(
    fitted: "model.Model",
    votes: VoteMatrix,
    report: "evaluate.DriftReport",
    history: Sequence[GateRun],
    reference: VoteMatrix | None,
    alpha: float,
) -> Iterator[tuple[str, str]]:
    """Yield judges that vote otherwise, or all together, and how: than in training, or than before."""
    earlier = evaluate.earlier_votes(fitted, votes, reference)
    runs = [run for run in history if run.rates is not None]
    stream = [] if earlier is None else [earlier.rates]
    stream += [run.rates for run in runs if run.rates is not None]
    if not stream:
        for row in report.statistics:
            if row.moved:
                what = model.STATISTICS[row.statistic]
                yield row.judge, f"{what}: {row.now:.3f}, expected {row.low:.3f} to {row.high:.3f}"
        return
    # Votes unlike those of the training datasets at the first run are no news later, and no better.
    if runs and runs[0].model == fitted.document()["checksum"]:
        yield from ((case[1], case[3]) for case in runs[0].cases if case[0] == "votes" and case[2] == FAILED)
    now, n = evaluate.stream_rates(fitted, votes), len(runs)
    since = f"{n} earlier run{'s' * (n > 1)}" if earlier is None else earlier.of
    for judge, statistic in model.changed_rates([*stream, now], alpha=alpha / 2):
        first = next(rates for rates in stream if judge in rates[statistic])[statistic][judge][0]
        yield judge, f"{model.STATISTICS[statistic]}: {now[statistic][judge][0]:.3f}, before {first:.3f}; since {since}"


def _of_labels(fitted: "model.Model", target: "evaluate.Target | None", alpha: float, *, comparable: bool) -> GateCase:
    """Return the test of labels against P; skipped without any, and where other judges have voted."""
    if target is None or not comparable:
        why = "No labels, so it is unknown whether P holds here." if comparable else "Other judges have voted."
        return GateCase("labels", "labels agree with P", SKIPPED, why)
    result = evaluate.canary_report(fitted, target, alpha=alpha)
    text = f"{result['n_labels']} labels of {result['dataset']} DISAGREE with the model, p = {result['p_value']:.2g}."
    return GateCase(
        "labels", "labels agree with P", FAILED if result["flagged"] else PASSED, text * bool(result["flagged"])
    )


def run_gate(fitted: "model.Model", args: argparse.Namespace) -> int:
    """Run the tests of `deep check --gate`, write its folder, and return the exit status."""
    folder = args.gate
    history = read_history(folder)
    votes, cases, broken = None, list[GateCase](), None
    try:
        votes = evaluate.read_votes_for_model(fitted, args.votes)
        target = _target(fitted, args, votes)
        failures = datasets.read_reasons(args.votes, votes)
        reference = evaluate.read_votes_for_model(fitted, args.reference) if args.reference else None
        result = gate_cases(fitted, votes, failures, target, history=history, reference=reference, alpha=args.alpha)
        cases = list(result)
    except DeepError as error:
        broken, votes, cases = error, None, [GateCase("input", "input can be used", BROKEN, str(error))]
    run = _run(fitted, votes, cases)
    write_gate(folder, [*history, run])
    if broken is not None:
        raise broken
    console.print_result(console.SCHEMA | asdict(run) | {"folder": str(folder)}, _lines(run, folder), as_json=args.json)
    return ExitStatus.DONE if run.passed else ExitStatus.FOUND


def _target(fitted: "model.Model", args: argparse.Namespace, votes: VoteMatrix) -> "evaluate.Target | None":
    """Return the dataset with labels; None where there are none, or other judges have voted."""
    if not args.labels or not set(fitted.voter_names) <= set(votes.voter_names):
        return None
    return evaluate.read_target(fitted, args.votes, args.labels, args.scores)


def _run(fitted: "model.Model", votes: VoteMatrix | None, cases: Sequence[GateCase]) -> GateRun:
    """Return the run of a gate: its tests, the share of consistent items, and the rates of votes."""
    share = None
    if votes is not None and len(votes.dataset_names) == 1 and not fitted.score_names:
        prior = fitted.estimate_prior(votes, allow_mismatch=True)
        share = [float(value) for value in (prior.estimate, prior.low, prior.high)]
    rates = None
    if votes is not None and any(case.group == "votes" and case.outcome != SKIPPED for case in cases):
        rates = evaluate.stream_rates(fitted, votes)
    return GateRun(
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        passed=not {FAILED, BROKEN} & {case.outcome for case in cases},
        model=str(fitted.document()["checksum"]),
        judges=list(fitted.voter_names),
        n=0 if votes is None else len(votes.votes),
        share=share,
        cases=[list(case) for case in cases],
        rates=rates,
    )


def read_history(folder: Path) -> list[GateRun]:
    """Return the runs of a gate so far.

    Raises
    ------
    InputError
        The folder holds other files and no history, or its history cannot be read.
    """
    path = folder / HISTORY_FILE
    if not path.exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                f"`gate` must be a new folder or an earlier gate's. Got {str(folder)!r}, which is neither."
            )
        return []
    result = []
    for number, line in enumerate(read_bytes(path, "gate").decode("utf-8", "replace").splitlines(), 1):
        try:
            result.append(GateRun(**json.loads(line)))
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                f"`gate` must hold a history that deep wrote. Got something else at line {number} of {str(path)!r}. "
                "Take that line out, or name a new folder."
            ) from None
    return result


def write_gate(folder: Path, history: Sequence[GateRun]) -> None:
    """Add the last run to the history of a gate, and write JUnit, the summary and the chart anew.

    Parameters
    ----------
    folder : Path
        The gate's, which holds its history; made where there is none.
    history : sequence of GateRun
        All runs, the last of which is new.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / HISTORY_FILE
    # An editor may have taken the end of the last line away.
    torn = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write("\n" * torn + json.dumps(asdict(history[-1]), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    texts = {"junit.xml": junit(history[-1]), "summary.md": summary(history)}
    with atomic_files({name: folder / name for name in texts}) as partial:
        for name, text in texts.items():
            partial[name].write_text(text, encoding="utf-8")
    rows = [
        evaluate.IntervalRow(f"{run.time} {_outcome(run)}", share, bounds, BLUE if run.passed else RED)
        for run in reversed(history[-MAX_RUNS_SHOWN:])
        for share, *bounds in [run.share or [float("nan")] * 3]
    ]
    figure = evaluate.draw_intervals(rows, xlabel="share of consistent items, with its 90 % interval", title="History")
    save_figure(figure, folder / "history")


def junit(run: GateRun) -> str:
    """Return a run as JUnit XML."""
    cases = [GateCase(*map(printable, case)) for case in run.cases]
    counts = {name: sum(case.outcome == outcome for case in cases) for name, outcome in JUNIT_COUNTS.items()}
    attributes = {"name": "deep check", "tests": str(len(cases)), "timestamp": run.time.removesuffix("+00:00")}
    suites = Element("testsuites")
    suite = SubElement(suites, "testsuite", attributes | {name: str(count) for name, count in counts.items()})
    properties = SubElement(suite, "properties")
    for name, value in [("deep", run.deep), ("model", run.model), *(("judge", judge) for judge in run.judges)]:
        SubElement(properties, "property", {"name": name, "value": printable(value)})
    for case in cases:
        element = SubElement(suite, "testcase", {"classname": f"deep.check.{case.group}", "name": case.name})
        if case.outcome != PASSED:
            SubElement(element, JUNIT_TAGS[case.outcome], {"message": case.says})
    indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{tostring(suites, encoding="unicode")}\n'


JUNIT_COUNTS = {"failures": FAILED, "errors": BROKEN, "skipped": SKIPPED}


def summary(history: Sequence[GateRun]) -> str:
    """Return the last run, and those before it, as Markdown for a page of a CI."""
    run = history[-1]
    rows = [{"test": f"{case[0]}: {case[1]}", "outcome": case[2], "reason": case[3]} for case in run.cases]
    rows.sort(key=lambda row: row["outcome"] == PASSED)
    runs = [
        {"run": each.time, "outcome": _outcome(each), "items": f"{each.n:,}", "consistent": _share(each)}
        for each in reversed(history[-MAX_RUNS_SHOWN:])
    ]
    head = f"# deep check: {_outcome(run)}"
    about = f"{run.n:,} items, {len(run.judges)} judges, model `{run.model[:12]}`, deep {run.deep}, {run.time}."
    chart = "![Share of consistent items, run by run](history.svg)"
    return "\n\n".join([head, about, _table(rows), "## Runs", chart, _table(runs)]) + "\n"


def _outcome(run: GateRun) -> str:
    return "passed" if run.passed else "FAILED"


def _share(run: GateRun) -> str:
    return "" if run.share is None else "{:.0f} % ({:.0f} to {:.0f})".format(*(100 * share for share in run.share))


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [list(rows[0]), ["---"] * len(rows[0])]
    cells += [
        [printable(str(value)).replace("|", "\\|").replace("<", "&lt;") for value in row.values()] for row in rows
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def _lines(run: GateRun, folder: Path) -> Iterator[str]:
    yield f"gate: {_outcome(run)}, {len(run.cases)} tests on {run.n:,} items"
    yield from (f"  {case[2]}: {case[0]}, {case[1]}. {case[3]}" for case in run.cases if case[2] != PASSED)
    yield f"{folder}: junit.xml, summary.md, {HISTORY_FILE}, history.svg"
