"""The methods that a report compares, and its verdict: suspect claims, whether P holds here, and what to do next."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from deep import evaluate, model
from deep._util.files import JsonObject
from deep._util.names import short_names, shorten
from deep.evaluate import DataTable, MeasuredMethod, in_percent
from deep.exceptions import InputError
from deep.records import ABSTAIN
from deep.report._page import Chapter, Picture, Prose, between, inline_svg, measured_cells
from deep.report._sources import ReportMaterial, ScoredVotes, ece_by_dataset, vote_share

# Resamples of an interval of balanced accuracy.
N_BOOT = 2000
# The most methods in a picture, so that it fits on a sheet: the best of them, and the two that are always wanted.
MAX_METHODS_DRAWN = 20
# The name of the majority vote among the methods of a report.
MAJORITY_NAME = "majority vote"

# The most characters of a name in a picture.
MAX_LEN = 48


def methods_of(material: ReportMaterial) -> list[MeasuredMethod]:
    """Return the methods, best first; `ours` is P(consistent) of this report."""
    measured = material.measured
    if material.runs:
        result = _methods_of_runs(material.runs)
    elif measured is not None and measured.labeled.any():
        result = _methods_of_items(measured, material.n_bins)
    else:
        left_out = {} if material.model is None else material.model.fit_report["left_out_scores"]
        assert isinstance(left_out, dict)  # as every fit writes it
        by = left_out.get("datasets")
        result = [MeasuredMethod("the model, each dataset left out", "ours", by)] if by else []
    return sorted(result, key=lambda method: -method.accuracy)


def ours(methods: Sequence[MeasuredMethod]) -> MeasuredMethod | None:
    """Return the method that a report is about."""
    return next((method for method in methods if method.kind == "ours"), None)


def _methods_of_runs(runs: Sequence[JsonObject]) -> list[MeasuredMethod]:
    """Return the methods that every labeled run has."""
    kinds: dict[str, str] = {}
    rows: dict[str, dict[str, JsonObject]] = {}
    labeled = [run for run in runs if run["prior_test"] is not None]
    for run in labeled:
        for name, row, kind in evaluate.method_rows(run):
            if row["balanced_accuracy"] is not None:
                name = "best judge on training data" if name.startswith("best on training") else name
                name = "best judge with its context" if name.endswith(", with context") else name
                kinds[name] = kind
                rows.setdefault(name, {})[run["test"]] = row
    return [MeasuredMethod(name, kinds[name], by) for name, by in rows.items() if len(by) == len(labeled)]


def _methods_of_items(scored: ScoredVotes, n_bins: int) -> list[MeasuredMethod]:
    """Return P(consistent), the majority vote and every judge alone, on each labeled dataset."""
    votes = scored.votes
    decisions = {
        "P(consistent)": (scored.decided, scored.p, "ours"),
        MAJORITY_NAME: (vote_share(votes.votes) >= 0.5, None, "test"),
    }
    for column, name in enumerate(votes.voter_names):
        decisions[name] = (votes.votes[:, column] != 0, None, "train")
    result = {name: dict[str, JsonObject]() for name in decisions}
    for dataset, rows in evaluate.dataset_rows(votes):
        for name, (decided, p, kind) in decisions.items():
            # A judge is measured on what it votes on, as the table of judges ranks it.
            at = rows[votes.votes[rows, votes.voter_names.index(name)] != ABSTAIN] if kind == "train" else rows
            labels, called, is_labeled = votes.labels[at], decided[at], votes.labels[at] != ABSTAIN
            # Balanced accuracy needs both classes.
            if len(np.unique(labels[is_labeled])) < 2:
                continue
            own = None if p is None else p[at]
            documents = None if votes.document_ids is None else votes.document_ids[at]
            row = evaluate.decision_metrics(
                labels, own, called, n_bins=n_bins, n_boot=N_BOOT, random_state=0, documents=documents
            )
            result[name][dataset] = row
    return [MeasuredMethod(name, decisions[name][2], by) for name, by in result.items() if by]


def _run_tables(runs: Sequence[JsonObject]) -> Iterator[DataTable]:
    """Yield of each run its chains by calibrator, and the tests of what is recommended against each rival."""
    for run in runs:
        chains: dict[str, dict[str, str]] = {}
        for row in run["rows"]:
            name = f"{row['ensembler']} on {row['n_prompts']}, {row['recipe']}'s recipe"
            figures = f"{in_percent(row['balanced_accuracy'])} / {in_percent(row['ece'])}"
            chains.setdefault(name, {"chain": name})[row["calibrator"] or "none"] = figures
        title = f"{run['test']}: balanced accuracy / ECE of every chain by calibrator, %"
        yield DataTable(title, list(chains.values()), folded=True)
        tests = [
            {
                "rival": test["b"].replace("_", " "),
                "difference": in_percent(test["difference"], "+"),
                "95 % interval": in_percent(test["ci"], "+"),
                "p": f"{test['p']:.2g}",
                "p, Bonferroni over rivals": f"{test['p_bonferroni']:.2g}",
            }
            for test in run["comparisons"]
        ]
        yield DataTable(f"{run['test']}: recommended minus each rival, points of balanced accuracy, paired", tests)


def methods_chapter(
    methods: Sequence[MeasuredMethod], runs: Sequence[JsonObject] = (), *, elsewhere: bool = False
) -> Chapter:
    """Return the chapter on the balanced accuracy of every method; `elsewhere` says that it is of other data."""
    title = "Every method, on held-out data" if elsewhere else "Every method"
    if not methods:
        return Chapter("methods", title, ["No labels, so no method can be measured. Give --labels."])
    has_row = [i < MAX_METHODS_DRAWN or m.kind == "ours" or m.name == MAJORITY_NAME for i, m in enumerate(methods)]
    shown = [method for method, is_wanted in zip(methods, has_row, strict=True) if is_wanted][::-1]
    rows = [
        evaluate.IntervalRow(shorten(m.name, MAX_LEN), m.accuracy, m.interval, evaluate.COLORS[m.kind]) for m in shown
    ]
    names = list(methods[0].by_dataset)
    over = f"mean over {len(names)} datasets" if len(names) > 1 else f"on {names[0]}"
    caption = f"Balanced accuracy with its 95 % interval, {over}"
    figure = evaluate.draw_intervals(rows, xlabel="balanced accuracy, 95 % interval")
    table = DataTable(caption, [{"method": method.name, **measured_cells(method.row())} for method in methods])
    says = ["Red: P(consistent) of this report. Each judge is measured on the items that it votes on."]
    if len(methods) > len(shown):
        says.append(f"The picture shows the best {len(shown)} of {len(methods)} methods; the table has all.")
    parts: list[DataTable | Picture | Prose] = [Picture(inline_svg(figure, "methods", caption), caption, [table])]
    parts += [one for one in _run_tables(runs) if one.rows]
    return Chapter("methods", title, says, parts, elsewhere=elsewhere)


# The bars of the distribution of P. Steps of 0.05 of P, which axes can name.
N_HISTOGRAM_BARS = 20
# The number of labels that the next step asks for.
N_TO_LABEL = 30


@dataclass(frozen=True)
class Watch:
    """Findings of drift, and of the labels of each dataset; a string says why there is none.

    Parameters
    ----------
    drift : DriftReport or str, optional
        Of the votes against those of the fit; None without a model or votes.
    canaries : dict of str to Canary or str
        By dataset with labels.
    """

    drift: "evaluate.DriftReport | str | None"
    canaries: "dict[str, model.Canary | str]"


def find_drift(material: ReportMaterial) -> Watch:
    """Compare the votes with those that the model was fitted on, and labels with its P."""
    if material.model is None or material.scored is None:
        return Watch(None, {})
    try:
        drift: evaluate.DriftReport | str = evaluate.drift_report(
            material.model, material.scored.votes, material.failures
        )
    except InputError as error:
        drift = f"Drift was not tested: {error}"
    return Watch(drift, dict(_canary_tests(material.model, material.scored)))


def _canary_tests(fitted: "model.Model", scored: ScoredVotes) -> "Iterator[tuple[str, model.Canary | str]]":
    """Yield for each labeled dataset the canary's result, or why there is none."""
    for name, rows in evaluate.dataset_rows(scored.votes):
        part = scored.votes.rows(rows)
        if not (part.labels >= 0).any():
            continue
        try:
            yield name, model.canary(scored.p[rows], part.labels, documents=part.document_ids, misfit=fitted.misfit)
        except InputError as error:
            yield name, str(error)


# The next step where all items have one P.
OTHER_JUDGES_STEP = (
    "add different judges: another LLM, other prompts, lexical checks",
    "deep ask claims.csv --lexical all --out more.parquet",
)


# The answer of a run with datasets held out, by the outcome of its test against the best judge.
RIVAL_ANSWERS = {
    "ok": "deep beats the best judge.\n",
    "warn": "deep is not clearly better than the best judge.\n",
    "fail": "deep is worse than the best judge.\n",
}


def verdict_of(
    material: ReportMaterial, methods: Sequence[MeasuredMethod], watch: Watch
) -> evaluate.DatasetVerdict | None:
    """Return the verdict; None where there is no item."""
    scored = material.scored
    if scored is None:
        return None
    tally, votes = evaluate.DecisionCounts(), scored.votes
    tally.add(votes.datasets, votes.item_ids, scored.columns())
    n_labels = 0 if material.measured is None else int(material.measured.labeled.sum())
    badges = tuple(_verdict_badges(material, methods, watch, n_labels))
    then, command = OTHER_JUDGES_STEP if tally.alike else _next_step(material, badges, n_labels)
    training_names = () if watch.drift is None or isinstance(watch.drift, str) else watch.drift.training_votes
    # Where no label counts, the model has seen those that there are: here, or as it was fitted on these very votes.
    learned = bool(scored.labeled.any() or {*training_names} & {*material.learned_from})
    elsewhere = () if n_labels else tuple(_training_figures(methods, learned=learned or bool(material.learned_from)))
    n, k, sets = len(scored.p), votes.shape[1], len(votes.dataset_names)
    by = "" if material.is_own_decision else f", judged by {k} judge{'s' * (k > 1)}"
    labels = f"{int(scored.labeled.sum()):,} labels" if scored.labeled.any() else "NO LABELS here"
    labels = "the model has labels of them" if learned and not scored.labeled.any() else labels
    answer = next((RIVAL_ANSWERS[badge.level] for badge in badges if material.runs and badge.chapter == "methods"), "")
    says = (
        f"{n:,} claims of {sets} dataset{'s' * (sets > 1)}{by}; {labels}.",
        answer + evaluate.suspect_words(tally, labeled=learned),
        evaluate.trust_words(badges, n_labels, learned=learned),
        then,
        command,
    )
    priors = list(scored.priors.values())
    share = priors[0] if len(priors) == 1 else None
    return evaluate.DatasetVerdict(*says, badges, share, elsewhere, tally)


SPREAD = "Distribution of P, by decision"


def histogram_picture(scored: ScoredVotes) -> Picture:
    """Return a histogram of P by state, without the items that no judge voted on."""
    state = np.where(scored.sure, np.where(scored.decided, evaluate.STATES[0], evaluate.STATES[1]), evaluate.STATES[2])
    p, state = scored.p[scored.voted], state[scored.voted]
    counts = {name: np.histogram(p[state == name], N_HISTOGRAM_BARS, (0.0, 1.0))[0] for name in evaluate.STATES}
    rows = [
        {"P from": f"{at / N_HISTOGRAM_BARS:.2f} to {(at + 1) / N_HISTOGRAM_BARS:.2f}"}
        | {name: f"{counts[name][at]:,}" for name in evaluate.STATES}
        for at in range(N_HISTOGRAM_BARS)
    ]
    return Picture(inline_svg(evaluate.draw_histogram(counts), "spread", SPREAD), SPREAD, [DataTable(SPREAD, rows)])


def _verdict_badges(
    material: ReportMaterial, methods: Sequence[MeasuredMethod], watch: Watch, n_labels: int
) -> Iterator[evaluate.Badge]:
    """Yield the tests: of labels against P, of P on labels, of the judges, and of where the votes are from."""
    tested = {name: result for name, result in watch.canaries.items() if not isinstance(result, str)}
    names = set(material.learned_from)
    worst = min((result for name, result in tested.items() if name not in names), key=lambda f: f.p_value, default=None)
    if worst is not None:
        # The worst of several datasets is looked at, so each is tested at its part of the level (Bonferroni).
        alpha = model.SIGNIFICANCE / max(1, len(tested.keys() - names))
        yield evaluate.canary_badge(worst.n_labels, worst.p_value, alpha)
    method = ours(methods)
    if n_labels and method is not None:
        judges = set(() if material.scored is None else material.scored.votes.voter_names)
        single = [other for other in methods if other.kind == "judge" or other.name in judges]
        best = max(single, key=lambda other: other.accuracy, default=None)
        if best is not None:
            best = replace(best, name=short_names(other.name for other in single)[best.name])
        paired = None
        if material.runs:  # as the terminal has it
            best, paired = evaluate.chosen_judge([run for run in material.runs if run["prior_test"] is not None])
        ece_before, measured = None, material.measured
        if measured is not None and (material.model is not None or material.runs):  # else P is no calibrated score
            ece_before = float(np.mean([before for _, _, before, _ in ece_by_dataset(measured, material.n_bins)]))
        yield from evaluate.label_badges(method, best, ece_before, paired)
    if watch.drift and not isinstance(watch.drift, str) and not watch.drift.is_training:
        limits = [] if watch.drift.moved else watch.drift.least_words()
        yield evaluate.drift_badge(watch.drift.moved, [*watch.drift.not_tested(), *limits])
    if material.simulated:
        yield evaluate.SIMULATED_BADGE


def _training_figures(methods: Sequence[MeasuredMethod], *, learned: bool) -> Iterator[str]:
    """Yield the figures of the training datasets, some of which these claims are of where the model has `learned`."""
    method = ours(methods)
    if method is None:
        return
    n, kind = len(method.by_dataset), "training" if learned else "OTHER"
    loss, interval = method.mean("log_loss"), between(method.interval)
    parts = "each" if n > 1 else "parts of it"
    yield (
        f"On {n} {kind} dataset{'s' * (n > 1)}, with labels, {parts} left out in turn: balanced accuracy "
        f"{in_percent(method.mean('balanced_accuracy'))} %"
        + (f" (95 % interval {interval})" if interval else "")
        + ("" if loss is None else f", log loss {loss:.3f} (a coin's is 0.693)")
        + ("." if learned else ". None of this was measured on these claims.")
    )


def _next_step(material: ReportMaterial, badges: Sequence[evaluate.Badge], n_labels: int) -> tuple[str, str]:
    """Return the next step, in words and as a command."""
    tables = " ".join(quote(table) for table in material.tables) or "votes.parquet"
    model = quote(material.path) if material.path else "model.json"
    soft = f" --scores {' '.join(map(quote, material.soft_tables))}" if material.soft_tables else ""
    failed = any(badge.level == "fail" for badge in badges)
    if material.runs:
        worse = "do not use this panel: check the judges below, and fit again"
        return (
            worse if failed else "fit a model on all of these datasets, and score claims of your own",
            f"deep fit {tables} --out model.json",
        )
    if not n_labels and material.all_learned:
        others = " --scores new-scores.parquet" if soft else ""
        return (
            f"score claims that the model was not trained on, and label {N_TO_LABEL} of them to see whether P holds",
            f"deep label new.parquet --model {model}{others} --n {N_TO_LABEL}",
        )
    if not n_labels:
        by_model = f" --model {model}{soft}" if material.model is not None else ""
        return (
            f"read the lowest below, and label {N_TO_LABEL} random claims to see whether P holds",
            f"deep label {tables}{by_model} --n {N_TO_LABEL}",
        )
    beside = material.people is None
    if material.model is None:
        labels = "" if beside else " --labels labels.csv"
        return "fit a model on these votes and labels", f"deep fit {tables}{labels} --out model.json"
    if failed:
        return (
            "correct P by these labels, and make this report again",
            f"deep adapt {model} --votes {tables}{soft} --labels {tables if beside else 'labels.csv'} --out mine.json",
        )
    return (
        "read the lowest below first, and score new claims by this model",
        f"deep score {model} --votes {tables}{soft} --out scores.csv",
    )
