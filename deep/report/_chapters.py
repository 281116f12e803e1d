"""The chapters of a report, from the headline to the panel, their order, and the report in a run's own folder."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deep import datasets, evaluate, model  # by the room: a run of `deep loo` needs nothing of drift and canaries
from deep._util.checks import Floats, Labels
from deep._util.files import JsonObject, atomic_folder
from deep._util.names import short_names, shorten
from deep._util.odds import expit
from deep.calibration import ReliabilityDisplay, ece_noise_floor, plot_reliability
from deep.evaluate import DataTable, MeasuredMethod, in_percent, shown
from deep.report._items import TextChoice, items_with_texts, order_items, sample_sentence
from deep.report._page import Chapter, Page, Picture, between, inline_svg, measured_cells, page_html, study_parts
from deep.report._sources import P_AT_GIVEN_SHARE_NOTE, ReportMaterial, ece_by_dataset, read_material, round_values
from deep.report._verdict import Watch, find_drift, histogram_picture, methods_chapter, methods_of, ours, verdict_of

# The first sentence of a report on simulated votes.
SIMULATED_WARNING = (
    "These votes are SIMULATED from the operating points that the DEEP paper publishes; no LLM was called. They show "
    "how a report looks, and nothing about any LLM."
)


def headline_chapter(material: ReportMaterial, methods: Sequence[MeasuredMethod]) -> Chapter:
    """Return the chapter."""
    method = ours(methods)
    elsewhere = material.is_elsewhere
    figures = [] if method is None or elsewhere else list(_headline_figures(method))
    says = [*([SIMULATED_WARNING] if material.simulated else []), *_evidence_sentences(material)]
    remarks = [
        {"dataset": run["test"], "remark": sentence}
        for run in (material.runs if len(material.runs) > 1 else ())
        for sentence in [*run["warnings"], *run["notes"]]
    ]
    tables = [
        DataTable("By held-out training dataset" if elsewhere else "By dataset", list(_by_dataset(material, method))),
        DataTable("Remarks on single datasets", remarks, folded=True),
    ]
    parts = [table for table in tables if table.rows]
    title = "Model and evidence, with figures of held-out data" if elsewhere else "The headline"
    return Chapter("headline", title, says, parts, figures, elsewhere)


def _headline_figures(method: MeasuredMethod) -> Iterator[tuple[str, str]]:
    """Yield the main figures of a method, each with its meaning."""
    n = len(method.by_dataset)
    over = f"mean over {n} datasets" if n > 1 else f"on {next(iter(method.by_dataset))}"
    interval = "" if method.interval is None else f", 95 % interval {between(method.interval)}"
    yield f"{in_percent(method.mean('balanced_accuracy'))} %", f"balanced accuracy, {over}{interval}"
    ece, floor = method.mean("ece"), method.mean("ece_floor")
    if ece is not None:
        yield f"{in_percent(ece)} %", f"calibration error (ECE); a perfect P has {in_percent(floor)} % by chance"
    if (loss := method.mean("log_loss")) is not None:
        yield f"{loss:.3f}", "log loss (a coin: 0.693)"


def _evidence_sentences(material: ReportMaterial) -> Iterator[str]:
    """Yield sentences on the data that the figures rest on."""
    if material.runs:
        yield from _sentences_on_runs(material.runs)
    elif material.model is not None:
        yield from _sentences_on_model(material)
    if material.scored is not None:
        votes = material.scored.votes
        n, k, labels = len(votes.labels), votes.shape[1], int(material.scored.labeled.sum())
        sets = len(votes.dataset_names)
        if votes.document_ids is not None and not material.runs and labels:
            yield "Intervals: on one dataset a bootstrap over its documents; of a mean, Student's t over datasets."
        yield (
            f"{n:,} items of {sets} dataset{'s' * (sets > 1)}, votes of {k} judge{'s' * (k > 1)}, {labels:,} labels. "
            f"{material.scored.how}"
        )
    if material.learned_from:
        yield (
            f"The model was trained on the labels of {', '.join(material.learned_from)}. Figures come from the other "
            "datasets, or from fits that left each out."
        )


def _sentences_on_runs(runs: Sequence[JsonObject]) -> Iterator[str]:
    """Yield sentences on runs: which datasets were held out, and what was trained on."""
    first = runs[0]
    if len(runs) > 1:
        yield (
            f"Each of {len(runs)} datasets was held out in turn; everything was chosen, fitted and calibrated on the "
            "others. The interval of the mean is by Student's t over datasets."
        )
    else:
        train = ", ".join(f"{name} ({n:,})" for name, n in first["train"].items())
        yield (
            f"{first['test']} was held out ({first['n_test']:,} items); everything was chosen, fitted and calibrated "
            f"on the rows of {train}. The interval is a bootstrap over its items."
        )
    recipe = first["recommended"]
    if len(runs) == 1:
        yield f"Recommended: {recipe['ensembler']} on {recipe['n_prompts']} judges, calibrator {recipe['calibrator']}."
        yield from [*first["warnings"], *first["notes"]]


def _sentences_on_model(material: ReportMaterial) -> Iterator[str]:
    """Yield sentences on a model: how it was fitted, and on what."""
    assert material.model is not None  # the caller's branch
    result = evaluate.fit_report(material.model)
    yield f"The model is {result['what']}: {result['why']}."
    notes, outlook, members = result["notes"], result["said"], result["members"]
    assert isinstance(notes, list)  # as evaluate.fit_report builds them
    assert isinstance(outlook, list)
    assert isinstance(members, list)
    yield f"It holds: {'; '.join(member.strip() for member in members)}."
    yield from [*outlook, *notes]


def _by_dataset(material: ReportMaterial, method: MeasuredMethod | None) -> Iterator[dict[str, str]]:
    sizes = {run["test"]: run["n_test"] for run in material.runs}
    if not sizes and material.scored is not None and not material.is_elsewhere:
        sizes = {name: len(rows) for name, rows in evaluate.dataset_rows(material.scored.votes)}
    if not sizes and material.model is not None:
        training = material.model.fit_report["training_datasets"]
        assert isinstance(training, dict)  # as every fit writes it
        sizes = {name: row["n"] for name, row in training.items()}
    for name, n in sizes.items():
        row = {} if method is None else method.by_dataset.get(name, {})
        yield {"dataset": name, "items": f"{n:,}", **measured_cells(row)}


# The notes on where the estimate of a share comes from, one by kind of model.
LEARNED_SHARE_NOTE = (
    "The model estimates the share of consistent items from the votes. It learned how, and the 90 % interval, from "
    "the training datasets."
)
SHARE_BY_VOTES_NOTE = (
    "This share comes from how the votes agree, without labels, so its error is unknown. "
    "A model (`deep fit`) learns it from labeled datasets."
)
FIXED_SHARE_NOTE = "The share of the model's own dataset, from its votes and labels."
HELD_OUT_SHARE_NOTE = (
    "A model of the other datasets estimates the share of each held-out dataset from its votes. The table has the "
    "share by labels too."
)
PRIOR_TITLE = "The share of consistent items"
PRIOR_CAPTION = "Estimated share of consistent items with its 90 % interval"
# The most datasets in a picture of shares; the table has all.
MAX_DATASETS_DRAWN = 60
# The most characters of a dataset's name in a picture.
MAX_NAME = 48


def prior_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    priors = {} if material.scored is None else material.scored.priors
    says = [_share_note(material)]
    parts: list[DataTable | Picture] = []
    if material.model is not None:
        prior = material.model.prior
        of = "a dataset not known" if material.model.target is None else material.model.target
        interval = between([prior.low, prior.high])
        says.append(f"Expected of {of}: {in_percent(prior.estimate)} % consistent (90 % interval {interval}).")
        if isinstance(material.model.prior_rule, model.LearnedPrior):
            rows = []
            for name, one in material.model.left_out.items():
                n = one.ones + one.zeros
                estimate = in_percent(float(n @ expit(one.score) / n.sum()))
                rows.append({"dataset": name, "consistent, %": in_percent(one.prior), "told without it, %": estimate})
            parts += [DataTable("The training datasets, each estimated from the others", rows)] if rows else []
    if not priors:
        return Chapter("prior", PRIOR_TITLE, ["This run stored no share."] if material.runs else says, parts)
    assert material.scored is not None  # its priors are there
    votes = material.scored.votes
    labels = {name: votes.labels[rows] for name, rows in evaluate.dataset_rows(votes)}
    shares = {name: float(y[y >= 0].mean()) for name, y in labels.items() if (y >= 0).any()}
    table = DataTable(
        PRIOR_CAPTION,
        [
            {
                "dataset": name,
                "estimated, %": in_percent(prior.estimate),
                "90 % interval": between([prior.low, prior.high]),
                "of the labeled items, %": in_percent(shares.get(name)),
                "remark": prior.warning or "",
            }
            for name, prior in priors.items()
        ],
    )
    # Turned round, for a picture's first line is its lowest.
    bars = list(priors.items())[:MAX_DATASETS_DRAWN][::-1]
    lines = [evaluate.IntervalRow(name[:MAX_NAME], prior.estimate, [prior.low, prior.high]) for name, prior in bars]
    figure = evaluate.draw_intervals(lines, xlabel="share of consistent items, 90 % interval")
    return Chapter(
        "prior",
        PRIOR_TITLE,
        says,
        [*parts, Picture(inline_svg(figure, "prior", PRIOR_CAPTION), PRIOR_CAPTION, [table])],
    )


def _share_note(material: ReportMaterial) -> str:
    """Return a sentence on how the share is learned."""
    if material.scored is not None and material.scored.how == P_AT_GIVEN_SHARE_NOTE:
        return "The share was given, not estimated from the votes."
    if material.runs:
        if any(run["recommended"].get("calibrator") != "learned-prior" for run in material.runs):
            return HELD_OUT_SHARE_NOTE
        return LEARNED_SHARE_NOTE
    if material.model is None:
        return SHARE_BY_VOTES_NOTE
    return LEARNED_SHARE_NOTE if isinstance(material.model.prior_rule, model.LearnedPrior) else FIXED_SHARE_NOTE


PAIR_DIFFERENCES_CAPTION = "Differences of the shares of consistent items, by pair of systems"


def compare_chapter(result: "evaluate.SystemComparison") -> Chapter:
    """Return the chapter on systems that are compared."""
    systems, pairs = result.tables()
    picture = Picture(inline_svg(result.draw(), "compare", PAIR_DIFFERENCES_CAPTION), PAIR_DIFFERENCES_CAPTION, [pairs])
    return Chapter("compare", "Systems compared", result.notes, [systems, picture])


RELIABILITY_TITLE = "Reliability"
RELIABILITY_CAPTION = "Share of consistent items by P, before and after calibration"


def reliability_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    scored = material.measured
    if scored is None or not scored.labeled.any():
        reason = "The model has seen every label here. Give votes on another dataset."
        why = "Reliability needs items with a P and a label, and there are none. Give votes and labels."
        return Chapter("reliability", RELIABILITY_TITLE, [reason if material.learned_from else why])
    labeled = scored.labeled
    y = scored.votes.labels[labeled]
    before, after = (round_values(p[labeled]) for p in (scored.before, scored.p))
    figure = plot_reliability(y, before, after, n_bins=material.n_bins)
    tables = [_bin_table(y, p, name, material.n_bins) for name, p in (("before", before), ("after", after))]
    says = [
        "Each item counts once here, so large datasets dominate; the table by dataset shows each. ECE has a noise "
        "floor: the ECE of a perfect P with this many items."
    ]
    if any(run["recommended"]["calibrator"] == "learned-prior" for run in material.runs):
        says.append(
            "No calibrator was fitted here. Before: P at equal shares of both classes. After: P at the estimated "
            "share of consistent items."
        )
    rows = []
    for name, at, *eces in ece_by_dataset(scored, material.n_bins):
        row = {"dataset": name, "labels": f"{len(at):,}"}
        for when, ece, p in zip(("before", "after"), eces, (scored.before, scored.p), strict=True):
            floor = ece_noise_floor(round_values(p[at]), n_bins=material.n_bins, n_draws=0).mean
            row |= {when: in_percent(ece), f"floor {when}": in_percent(floor)}
        rows.append(row)
    parts: list[DataTable | Picture] = [
        DataTable("Calibration error (ECE) by dataset, in percent", rows),
        Picture(inline_svg(figure, "reliability", RELIABILITY_CAPTION), RELIABILITY_CAPTION, tables),
    ]
    return Chapter("reliability", RELIABILITY_TITLE, says, parts)


def _bin_table(y: Labels, p: Floats, name: str, n_bins: int) -> DataTable:
    """Return the table behind a reliability diagram: the items, mean P and share of each bin."""
    bins = ReliabilityDisplay.from_predictions(y, p, n_bins=n_bins)
    rows = [
        {
            "P from": f"{bins.edges[i]:.3f} to {bins.edges[i + 1]:.3f}",
            "items": f"{bins.count[i]:.0f}",
            "mean P, %": in_percent(bins.mean_prob[i]),
            "consistent, %": in_percent(bins.share[i]),
            "95 % interval": between([bins.low[i], bins.high[i]]),
        }
        for i in np.flatnonzero(bins.count)
    ]
    return DataTable(f"{name.capitalize()} calibration", rows)


TRUST_TITLE = "Drift and canary"
DRIFT_AND_CANARY_NOTE = (
    "Drift compares the votes with the training votes; the canary tests labels against P. `deep report model.json "
    "votes.parquet --labels labels.csv` shows both."
)


def drift_chapter(watch: Watch) -> Chapter:
    """Return the chapter."""
    if watch.drift is None:
        return Chapter("watch", TRUST_TITLE, [DRIFT_AND_CANARY_NOTE])
    if isinstance(watch.drift, str):
        says, parts = [watch.drift], []
    else:
        says, parts = watch.drift.sentences(), list(watch.drift.tables())
    rows = [_canary_row(name, result) for name, result in watch.canaries.items()]
    if rows:
        parts.append(DataTable("Canary: do labels agree with the model's P?", rows))
    else:
        says.append("No labels for the canary.")
    return Chapter("watch", TRUST_TITLE, says, parts)


def _canary_row(name: str, result: "model.Canary | str") -> dict[str, str]:
    """Return the row of one dataset in the table of the canary; its result is a sentence where there was no test."""
    if isinstance(result, str):
        return {"dataset": name, "the labels": result}
    return {
        "dataset": name,
        "the labels": "DISAGREE with the model" if result.p_value < model.SIGNIFICANCE else "do not disagree",
        "labels": f"{result.n_labels:,}",
        "consistent, %": in_percent(result.observed),
        "expected, %": in_percent(result.expected),
        "p": f"{result.p_value:.2g}",
    }


PANEL_TITLE = "The panel"

# The most judges that a report also drops one after the other: the panels to fit grow with their square.
MAX_JUDGES_TO_DROP = 12

# The most judges in a picture of correlations; of more there is a table alone.
MAX_JUDGES_DRAWN = 40
# The most pairs of judges in a table, those with the highest correlation of errors.
MAX_PAIRS_LISTED = 200
# The disagreements of each judge in a table; the item browser has all.
N_DISAGREEMENTS_LISTED = 5

# The most characters of a judge's name beside a picture.
MAX_JUDGE_NAME = 32
# Resamples of each interval of kappa.
N_BOOT = 500

ERROR_CORRELATION_CAPTION = (
    "Correlation of the judges' errors: 1 is the same errors, 0 unrelated ones. Empty: common errors on fewer than "
    f"{evaluate.MIN_JOINT_ERRORS} items"
)

ChapterParts = list[DataTable | Picture]


def panel_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    scored = material.scored
    if scored is not None and not material.is_own_decision:
        card = evaluate.panel_card(
            scored.votes,
            material.people,
            failures=material.failures,
            usage=datasets.read_usage(material.tables, scored.votes),
            limit=N_DISAGREEMENTS_LISTED,
            n_boot=N_BOOT,
            worth=scored.votes.shape[1] <= MAX_JUDGES_TO_DROP,
            by_dataset=False,
            writers=datasets.read_writers(material.tables, scored.votes),
        )
        return Chapter("panel", PANEL_TITLE, *_panel_parts_of_card(card))
    if material.runs:
        return Chapter("panel", PANEL_TITLE, *_panel_parts_of_run(material.runs[0]))
    if material.model is not None:
        names = ", ".join(short_names(material.model.voter_names).values())
        return Chapter("panel", PANEL_TITLE, [f"Judges of the model: {names}. Give votes to measure them."])
    return Chapter("panel", PANEL_TITLE, ["No votes of judges."])


def _panel_parts_of_card(card: evaluate.PanelCard) -> tuple[list[str], ChapterParts]:
    """Return the sentences and the parts that show a card."""
    says = [*evaluate.worth_words(card), evaluate.people_words(card)]
    if card.n_labeled:
        by = "item" if card.n_documents is None else "document"
        says.append(
            f"Intervals of rates are 95 %, clustered by {by}. TPR: share of consistent items that a judge calls "
            "consistent. TNR: share of inconsistent items that it calls inconsistent. Leniency: how much more often "
            "than people it says consistent. At equal error rates, kappa falls as the base rate nears 0 or 1."
        )
    parts: ChapterParts = [*evaluate.card_tables(card, N_DISAGREEMENTS_LISTED)]
    if card.error_correlation is not None and len(card.judges) > 1:
        parts.append(_error_correlation_part([e.judge for e in card.judges], card.error_correlation, card.joint_errors))
    return [*says, *evaluate.panel_words(card)], parts


def _panel_parts_of_run(run: dict[str, Any]) -> tuple[list[str], ChapterParts]:
    """Return the voters of a run that kept no votes, as its results describe them."""
    says = [f"On the training rows, with {run['test']} held out."]
    if run["effective_votes"] is not None:
        says.append(evaluate.effective_words(len(run["voters"]), run["effective_votes"]))
    heads = {"coverage": "coverage, %", "polarity": "calls consistent, %", "tpr": "TPR, %", "tnr": "TNR, %"}
    rows = [
        {"judge": voter["name"], **{head: in_percent(voter.get(key)) for key, head in heads.items()}}
        for voter in run["voters"]
    ]
    names = [voter["name"] for voter in run["voters"]]
    return says, [DataTable("Each judge", rows), _error_correlation_part(names, run["error_correlation"])]


def _error_correlation_part(
    names: Sequence[str], values: npt.ArrayLike, joint: npt.ArrayLike | None = None
) -> DataTable | Picture:
    """Return the correlations of errors by pair, the most alike first; of two judges that seldom err together none."""
    correlations, short = np.array(values, dtype=np.float64), list(short_names(names).values())
    counts = None if joint is None else np.asarray(joint)
    if counts is not None:
        # A correlation on a handful of items is noise, and would lead the list of the most alike.
        correlations[(counts < evaluate.MIN_JOINT_ERRORS) & ~np.eye(len(correlations), dtype=bool)] = np.nan
    first, second = np.tril_indices(len(names), -1)
    order = np.argsort(-np.nan_to_num(correlations[first, second], nan=-2.0), kind="stable")[:MAX_PAIRS_LISTED]
    rows = [
        {
            "judges": f"{short[i]} and {short[j]}",
            "correlation": shown(correlations[i, j]),
            "joint errors": "" if counts is None else f"{counts[i, j]:,}",
        }
        for i, j in zip(second[order], first[order], strict=True)
    ]
    table = DataTable(ERROR_CORRELATION_CAPTION, rows, folded=True)
    if len(names) > MAX_JUDGES_DRAWN:
        return table
    figure = evaluate.draw_error_correlation([shorten(name, MAX_JUDGE_NAME) for name in short], correlations)
    return Picture(inline_svg(figure, "errors", ERROR_CORRELATION_CAPTION), ERROR_CORRELATION_CAPTION, [table])


def build_page(material: ReportMaterial, choice: TextChoice) -> Page:
    """Return the report of some material; of a study that is no hold-out, its own tables and pictures alone."""
    first = "" if material.study is None else material.study.picture
    answer, own = (None, []) if material.folder is None else study_parts(material.folder, first)
    if material.folder is not None and not material.runs:
        about = [SIMULATED_WARNING] if material.simulated else []
        about.append("Texts in this file: only the tables and pictures of the study.")
        return Page(material.title, about, own, verdict=material.study, spread=answer)
    if material.study is not None and material.scored is not None:
        says = [material.study.judged, material.study.suspect, material.study.trust, f"Next: {material.study.then}."]
        own.insert(0, Chapter("study", "The study beside the run", says, [] if answer is None else [answer]))
    methods, watch = methods_of(material), find_drift(material)
    verdict = verdict_of(material, methods, watch)
    chapters = [
        headline_chapter(material, methods),
        reliability_chapter(material),
        methods_chapter(methods, material.runs, elsewhere=material.is_elsewhere),
        panel_chapter(material),
        prior_chapter(material),
        *([] if material.compared is None else [compare_chapter(material.compared)]),
        drift_chapter(watch),
        *own,
    ]
    if material.scored is None:
        says = ["No items: give votes, or a run that stored its scores."]
        chapters.append(Chapter("items", "Items", says))
        return Page(material.title, ["Texts in this file: none."], chapters, verdict=material.study, spread=answer)
    order = order_items(material.scored)
    rows, items, texts = items_with_texts(material, order, choice)
    chapter = Chapter("items", "Items", [sample_sentence(len(rows), len(order)), *texts])
    return Page(material.title, [], [chapter, *chapters], items, verdict, histogram_picture(material.scored))


REPORT_FILE_NAME = "report.html"
"""The name of a run's report in its folder."""


@contextmanager
def open_folder_with_report(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` if nothing goes wrong, with a report of what is in it."""
    with atomic_folder(folder) as scratch:
        yield scratch
        material = replace(read_material([scratch]), title=f"Run: {folder.name}")
        (scratch / REPORT_FILE_NAME).write_bytes(page_html(build_page(material, TextChoice())))


def report_line(folder: Path) -> str:
    """Return the last line of a study.

    Examples
    --------
    >>> from deep.report import report_line
    >>> print(report_line(Path("runs/fect")))
    report: open runs/fect/report.html
    """
    return f"report: open {(folder / REPORT_FILE_NAME).as_posix()}"
