"""The chapter on the panel: people among themselves, and each judge against people, itself and the others."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deep import evaluate
from deep._util.names import short_names, shortened
from deep.datasets import read_usage
from deep.evaluate import DataTable, in_percent, shown
from deep.exceptions import InputError
from deep.model import RECIPES, training_set
from deep.records import VoteMatrix
from deep.report._page import Chapter, Picture, inline_svg
from deep.report._sources import ReportMaterial

TITLE = "The panel"

MOST_WHOLE = 12
"""Judges of which the report also drops one after the other: the panels to fit grow with their square."""

MOST_DRAWN = 40
MOST_PAIRS = 200
MOST_WORST = 5
"""Disagreements of each judge in a table; the item browser has all."""

LONGEST = 32
N_BOOT = 500

ADDED = "What each judge adds: the log loss of the panel without it, less that of the whole, over datasets left out"
ERRORS = (
    "Correlation of the judges' errors: 1 errs on the same items, 0 on unrelated ones; empty where two err together on "
    f"fewer than {evaluate.FEWEST_JOINT_ERRORS} items"
)

HELD_OUT = (
    "The panel's balanced accuracy by the model of `deep fit`, less that of the best judge, each part of the data held "
    "out from the fit and from the choice of that judge"
)
UNMEASURED = (
    "What each judge adds was not measured: it takes labels 1 and 0 of one dataset, which is cut into folds, or of "
    "three and more."
)

Parts = list[DataTable | Picture]


def panel_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    scored = material.scored
    if scored is not None and not material.is_own_decision:
        return Chapter("panel", TITLE, *_of_card(_card(material, scored.votes), scored.votes))
    if material.runs:
        return Chapter("panel", TITLE, *_of_run(material.runs[0]))
    if material.model is not None:
        names = ", ".join(short_names(material.model.voter_names).values())
        return Chapter("panel", TITLE, [f"Judges of the model: {names}. Give votes to see them at work."])
    return Chapter("panel", TITLE, ["There are no votes of judges."])


def _card(material: ReportMaterial, votes: VoteMatrix) -> evaluate.PanelCard:
    usage = read_usage(material.tables, votes)
    whole = votes.shape[1] <= MOST_WHOLE
    return evaluate.panel_card(
        votes,
        material.people,
        failures=material.failures,
        usage=usage,
        limit=MOST_WORST,
        n_boot=N_BOOT,
        worth=whole,
        by_dataset=False,
    )


def _of_card(card: evaluate.PanelCard, votes: VoteMatrix) -> tuple[list[str], Parts]:
    says, parts = list(_people(card)), _tables(card)
    if card.error_correlation is not None and len(card.judges) > 1:
        says.append(evaluate.effective_words(len(card.judges), card.effective_votes))
        parts.append(_correlation([e.judge for e in card.judges], card.error_correlation, card.joint_errors))
    said, added = _added(card, votes)
    return [*says, *evaluate.cost_words(card), *said], [*parts, *added]


def _people(card: evaluate.PanelCard) -> Iterator[str]:
    yield evaluate.people_words(card)
    if card.n_labeled:
        by = "item" if card.n_documents is None else "document"
        yield (
            f"Intervals of rates are 95 %, clustered by {by}. TPR is the share of consistent items that a judge calls "
            "consistent, TNR that of inconsistent ones that it calls so; leniency is how much more often than people "
            "it says consistent. Kappa falls as the base rate nears 0 or 1, though a judge errs no more often."
        )


def _tables(card: evaluate.PanelCard) -> Parts:
    agreement = [
        {
            "measure": row["name"],
            "items": f"{row['items']:,}",
            "value": shown(row["value"]),
            "95 % interval": shown([row["low"], row["high"]]),
        }
        for row in card.people_agreement
    ]
    by_person = [
        {"judge": each.judge, **{name: shown(kappa) for name, kappa in each.by_person.items()}}
        for each in card.judges
        if each.by_person
    ]
    worst = [
        {
            "judge": each.judge,
            "item": row["item_id"],
            "dataset": row["dataset"],
            "vote": str(row["vote"]),
            "label": str(row["label"]),
            "severity": shown(row["severity"]),
        }
        for each in card.judges
        for row in each.disagreements
    ]
    doubtful = [
        {
            "item": row["item_id"],
            "dataset": row["dataset"],
            "label": str(row["label"]),
            "votes against": f"{row['against']} of {row['votes']}",
        }
        for row in card.doubtful_labels
    ]
    tables = [
        DataTable("People among themselves", agreement),
        DataTable("Each judge, the best first (accuracy: balanced; adds: to the log loss)", evaluate.judge_rows(card)),
        *evaluate.card_tables(card),
        DataTable("Kappa of each judge with each person", by_person, folded=True),
        DataTable("Disagreements of each judge with people, the worst first", worst, folded=True),
        DataTable("Labels that most judges are against", doubtful, folded=True),
    ]
    return [table for table in tables if table.rows]


def _added(card: evaluate.PanelCard, votes: VoteMatrix) -> tuple[list[str], Parts]:
    """Return the worth of each judge and of the panel, in sentences and a table."""
    if card.worth is None:
        return _values_alone(card, votes)
    found = card.worth
    gain = f"{in_percent(found.gain, '+')} points (90 % interval {in_percent(found.gain_ci, '+')})"
    best = short_names(each.judge for each in card.judges)[found.best_judge]
    says = [f"{HELD_OUT}: {gain}. The best on all parts is {best}."]
    if found.one_judge:
        says.append(f"For decisions alone one judge, {best}, would do.")
    rows = [row | {"verdict": "keep" if row["judge"] in found.keep else "drop"} for row in _values(found.value)]
    return says, [DataTable(ADDED, rows)]


def _values_alone(card: evaluate.PanelCard, votes: VoteMatrix) -> tuple[list[str], Parts]:
    """Return the worth of each judge, where dropping one after the other takes too long."""
    if not card.n_labeled:
        return ["What each judge adds was not measured: no item is labeled."], []
    if len(card.judges) <= MOST_WHOLE:
        return [f"What each judge adds was not measured. {card.worth_missing}"], []
    try:
        training = training_set(votes.rows(votes.labels >= 0), RECIPES["deep"])
        rows = list(_values(evaluate.judge_values(training)))
    except InputError:
        return [UNMEASURED], []
    return ["Which judges to keep: `deep panel` drops one after the other."], [DataTable(ADDED, rows)]


def _values(value: dict[str, tuple[float, float, float]]) -> Iterator[dict[str, str]]:
    for name, (rise, low, high) in sorted(value.items(), key=lambda item: -item[1][0]):
        yield {"judge": name, "log loss without it": f"{rise:+.4f}", "90 % interval": shown([low, high], "+.4f")}


def _of_run(run: dict[str, Any]) -> tuple[list[str], Parts]:
    """Return the voters of a run that kept no votes, as its results describe them."""
    says = [f"On the rows that were trained on where {run['test']} was held out."]
    if run["effective_votes"] is not None:
        says.append(evaluate.effective_words(len(run["voters"]), run["effective_votes"]))
    heads = {"coverage": "coverage, %", "polarity": "calls consistent, %", "tpr": "TPR, %", "tnr": "TNR, %"}
    rows = [
        {"judge": voter["name"], **{head: in_percent(voter.get(key)) for key, head in heads.items()}}
        for voter in run["voters"]
    ]
    names = [voter["name"] for voter in run["voters"]]
    return says, [DataTable("Each judge", rows), _correlation(names, run["error_correlation"])]


def _correlation(
    names: Sequence[str], values: npt.ArrayLike, joint: npt.ArrayLike | None = None
) -> DataTable | Picture:
    """Return the correlations of errors by pair, the most alike first; of two judges that seldom err together none."""
    known, short = np.array(values, dtype=np.float64), list(short_names(names).values())
    counts = None if joint is None else np.asarray(joint)
    if counts is not None:
        known[(counts < evaluate.FEWEST_JOINT_ERRORS) & ~np.eye(len(known), dtype=bool)] = np.nan
    first, second = np.tril_indices(len(names), -1)
    order = np.argsort(-np.nan_to_num(known[first, second], nan=-2.0), kind="stable")[:MOST_PAIRS]
    rows = [
        {
            "judges": f"{short[i]} and {short[j]}",
            "correlation": shown(known[i, j]),
            "joint errors": "" if counts is None else f"{counts[i, j]:,}",
        }
        for i, j in zip(second[order], first[order], strict=True)
    ]
    table = DataTable(ERRORS, rows, folded=True)
    if len(names) > MOST_DRAWN:
        return table
    figure = evaluate.draw_error_correlation([shortened(name, LONGEST) for name in short], known)
    return Picture(inline_svg(figure, "errors", ERRORS), ERRORS, [table])
