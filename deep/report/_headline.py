"""The first chapter: the headline with its interval, and what it rests on."""

from collections.abc import Iterator, Sequence

from deep._files import JsonObject
from deep.evaluate import fit_report
from deep.report._material import ReportMaterial, dataset_rows
from deep.report._methods import MeasuredMethod, ours
from deep.report._page import Chapter, DataTable, between, decimal, percent

SIMULATED = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. They show "
    "how a report looks, and nothing about any LLM."
)


def headline_chapter(material: ReportMaterial, methods: Sequence[MeasuredMethod]) -> Chapter:
    """Return the chapter."""
    method = ours(methods)
    figures = [] if method is None else list(_figures(method))
    if not figures and material.scored is not None:
        figures = [(f"{percent(float(material.scored.p.mean()))} %", "mean P(consistent); nothing here has a label")]
    says = [*([SIMULATED] if material.simulated else []), *_rests_on(material)]
    remarks = list(_remarks(material.runs)) if len(material.runs) > 1 else []
    tables = [
        DataTable("By dataset", list(_by_dataset(material, method))),
        DataTable("Remarks on single datasets", remarks, folded=True),
    ]
    parts = [table for table in tables if table.rows]
    return Chapter("headline", "The headline", says, parts, figures)


def _figures(method: MeasuredMethod) -> Iterator[tuple[str, str]]:
    n = len(method.by_dataset)
    over = f"mean over {n} datasets" if n > 1 else f"on {next(iter(method.by_dataset))}"
    interval = "" if method.interval is None else f", 95 % interval {between(method.interval)}"
    yield f"{percent(method.mean('balanced_accuracy'))} %", f"balanced accuracy, {over}{interval}"
    ece, floor = method.mean("ece"), method.mean("ece_floor")
    if ece is not None:
        yield f"{percent(ece)} %", f"calibration error (ECE); a perfect P would show {percent(floor)} % by chance"
    if (loss := method.mean("log_loss")) is not None:
        yield decimal(loss), "log loss; 0.693 is that of a coin"


def _rests_on(material: ReportMaterial) -> Iterator[str]:
    if material.runs:
        yield from _of_runs(material.runs)
    elif material.model is not None:
        yield from _of_model(material)
    if material.scored is not None:
        votes = material.scored.votes
        n, k, labels = len(votes.labels), votes.shape[1], int(material.scored.labeled.sum())
        sets = len(votes.dataset_names)
        if votes.document_ids is not None and not material.runs and labels:
            yield "Intervals on one dataset are bootstraps over its documents; a mean has Student's t over datasets."
        yield (
            f"{n:,} items of {sets} dataset{'s' * (sets > 1)}, votes of {k} judge{'s' * (k > 1)}, {labels:,} labels. "
            f"{material.scored.how}"
        )
    if material.learned_from:
        yield (
            f"The model has seen the labels of {', '.join(material.learned_from)}: what is measured here is measured "
            "on the other datasets, or by fits that left each out."
        )


def _of_runs(runs: Sequence[JsonObject]) -> Iterator[str]:
    first = runs[0]
    if len(runs) > 1:
        yield (
            f"Each of {len(runs)} datasets was held out in turn: all was chosen, fitted and calibrated on the others. "
            "The interval is that of a mean over datasets, by Student's t."
        )
    else:
        train = ", ".join(f"{name} ({n:,})" for name, n in first["train"].items())
        yield (
            f"{first['test']} was held out ({first['n_test']:,} items): all was chosen, fitted and calibrated on the "
            f"rows of {train}. The interval is a bootstrap over its items."
        )
    chosen = first["recommended"]
    if len(runs) == 1:
        yield f"Recommended: {chosen['ensembler']} on {chosen['n_prompts']} judges, calibrator {chosen['calibrator']}."
        yield from [*first["warnings"], *first["notes"]]


def _remarks(runs: Sequence[JsonObject]) -> Iterator[dict[str, str]]:
    for run in runs:
        for sentence in [*run["warnings"], *run["notes"]]:
            yield {"dataset": run["test"], "remark": sentence}


def _of_model(material: ReportMaterial) -> Iterator[str]:
    assert material.model is not None  # the caller's branch
    found = fit_report(material.model)
    yield f"The model is {found['what']}: {found['why']}."
    notes, said, members = found["notes"], found["said"], found["members"]
    assert isinstance(notes, list)  # as fit_report builds them
    assert isinstance(said, list)
    assert isinstance(members, list)
    yield f"It holds: {'; '.join(member.strip() for member in members)}."
    if material.model.score_names:
        yield "It knows soft scores too, of which a report has none: P here rests on the votes alone."
    yield from [*said, *notes]


def _by_dataset(material: ReportMaterial, method: MeasuredMethod | None) -> Iterator[dict[str, str]]:
    sizes = {run["test"]: run["n_test"] for run in material.runs}
    if not sizes and material.scored is not None:
        sizes = {name: len(rows) for name, rows in dataset_rows(material.scored.votes)}
    if not sizes and material.model is not None:
        training = material.model.report["training_datasets"]
        assert isinstance(training, dict)  # as every fit writes it
        sizes = {name: row["n"] for name, row in training.items()}
    for name, n in sizes.items():
        row = {} if method is None else method.by_dataset.get(name, {})
        yield {
            "dataset": name,
            "items": f"{n:,}",
            "balanced accuracy, %": percent(row.get("balanced_accuracy")),
            "95 % interval": between(row.get("balanced_accuracy_ci")),
            "ECE, %": percent(row.get("ece")),
            "noise floor, %": percent(row.get("ece_floor")),
            "log loss": decimal(row.get("log_loss")),
        }
