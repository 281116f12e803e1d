"""The tables and figures of an evaluation."""

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.files import check_replaceable
from deep.console import study_lines
from deep.datasets import read_votes
from deep.evaluate import DatasetVerdict, Row, framed, markdown, records
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.probe._probe_measures import Measure
from deep.experiments.probe._records import COMPLEXITIES, TASKS, Sample
from deep.records import ABSTAIN, VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Measures = Mapping[str, Sequence[Measure]]
"""By model."""

TITLES = {
    "steps": "Every measure of every step, with its counts",
    "table2-evidence": "Table 2: evidence finding, partial and complete, and evidence evaluation",
    "figure3-decomposition": "Figure 3: claim decomposition",
    "figure4a-localization": "Figure 4a: hallucination localization by claim and by character",
    "figure4b-detection": "Figure 4b: hallucination detection, direct against stepwise",
}

SCORES = ("precision", "recall", "f1")

WIDE = {
    "figure3-decomposition": ("decompose", ("precision", "recall", "no_answer")),
    "figure4a-localization": (
        "locate",
        (
            *(f"{unit}_{score}" for unit in ("claim", "character") for score in SCORES),
            "no_answer",
        ),
    ),
    "figure4b-detection": (
        "detect",
        (*(f"{m}_{k}" for k in ("recall", "response_recall", "false_alarms") for m in ("direct", "stepwise")),),
    ),
}


FIGURES: dict[str, dict[str, dict[str, str]]] = {
    "figure3-decomposition": {"matched claims": {"precision": "precision", "recall": "recall"}},
    "figure4a-localization": {
        f"by {unit}": {f"{unit}_{score}": score for score in SCORES} for unit in ("claim", "character")
    },
    "figure4b-detection": {"recall of hallucinated claims": {"direct_recall": "direct", "stepwise_recall": "stepwise"}},
}
"""By table: its panels, and in each the legend of every column that is drawn."""


def build_tables(found: Measures) -> dict[str, pd.DataFrame]:
    """Return the tables that the measures fill, by name; a share of nothing is empty."""
    steps = pd.DataFrame([{"model": model, **m.row()} for model, measures in found.items() for m in measures])
    tables = {"steps": steps, "table2-evidence": _evidence(found)}
    tables |= {name: _wide(found, step, columns) for name, (step, columns) in WIDE.items()}
    return {name: table for name, table in tables.items() if not table.empty}


def _evidence(found: Measures) -> pd.DataFrame:
    """Return a row a model and a column per measure and task."""
    names = {("find", "partial"): "partial", ("find", "complete"): "complete", ("evaluate", "accuracy"): "evaluation"}
    rows = []
    for model, measures in found.items():
        known = {(m.step, m.name, m.task): m.value for m in measures}
        cells = {f"{name}_{t}": known[*at, t] for at, name in names.items() for t in TASKS if (*at, t) in known}
        if cells:
            rows.append({"model": model, **cells})
    return pd.DataFrame(rows).astype({column: float for row in rows[:1] for column in row if column != "model"})


def _wide(found: Measures, step: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return a row per model and task, and a column a measure."""
    rows = []
    for model, measures in found.items():
        known = {(m.task, m.name): m.value for m in measures if m.step == step}
        tasks = dict.fromkeys(task for task, _ in known)
        rows += [{"model": model, "task": t} | {name: known.get((t, name)) for name in columns} for t in tasks]
    return pd.DataFrame(rows).astype({name: float for name in columns if rows})


def draw_measures(tables: Mapping[str, pd.DataFrame]) -> dict[str, "Figure"]:
    """Return the figures of the tables that have one."""
    return {name: _bars(tables[name], panels, TITLES[name]) for name, panels in FIGURES.items() if name in tables}


def _bars(table: pd.DataFrame, panels: Mapping[str, Mapping[str, str]], title: str) -> "Figure":
    names = [f"{row.model}, {str(row.task).replace('_', ' ')}" for row in table.itertuples()]
    drawn = {panel: {label: list(table[name]) for name, label in of.items()} for panel, of in panels.items()}
    return study.draw_bars(names, drawn, title)


def verdict_of(found: Measures, samples: Sequence[Sample], drawn: Collection[str]) -> DatasetVerdict:
    """Return the answer of a run: how many hallucinated claims are found stepwise, and the false alarms."""
    known = {
        model: {m.name: m for m in measures if m.task == "overall" and m.total} for model, measures in found.items()
    }
    claims = sum(claim.label == "hallucinated" for sample in samples for claim in sample.claims)
    judged = f"Responses: {len(samples):,}; hallucinated claims: {claims:,}; LLMs: {len(found)}."
    then = "label responses of your own, and let a model join these judges with others to one P"
    picture = next((name for name in reversed(FIGURES) if name in drawn), "")
    recalls = {model: of["stepwise_recall"] for model, of in known.items() if "stepwise_recall" in of}
    if not recalls:
        suspect = f"{claims:,} claims are hallucinated by label; this run measures single steps, none finds them."
        return DatasetVerdict(judged, suspect, "No P was asked for: these are shares of steps.", then, picture=picture)
    model = max(recalls, key=lambda name: recalls[name].value or 0.0)
    direct, alarms = known[model].get("direct_recall"), known[model].get("stepwise_false_alarms")
    asked = "" if direct is None else f"; asked directly, {direct.hits:,}"
    best = recalls[model]
    suspect = f"{model} finds {best.hits:,} of {best.total:,} hallucinated claims stepwise{asked}."
    trust = "These are verdicts without a P"
    trust += "." if alarms is None else f"; {alarms.hits:,} of {alarms.total:,} clean responses raise a false alarm."
    return DatasetVerdict(judged, suspect, trust, then, picture=picture)


def verdict_of_voters(table: pd.DataFrame, n: int) -> DatasetVerdict:
    """Return the answer of votes: the voter that best tells responses with a hallucination from clean ones."""
    rates = voter_rates(table)
    best = rates.iloc[int((rates["recall"] - rates["false alarms"].fillna(0.0)).argmax())]
    suspect = (
        f"{best['model']} tells best: it calls {100 * best['recall']:.0f} % of the hallucinated responses inconsistent."
    )
    alarms = "no response is clean, so that false alarms are not known"
    if best["false alarms"] == best["false alarms"]:
        alarms = f"{100 * best['false alarms']:.0f} % of the clean responses raise a false alarm"
    then = "fit one model on the votes of all judges, which weighs them and gives P"
    judged = f"Responses: {n:,}; judges: {len(rates)}."
    return DatasetVerdict(judged, suspect, f"These are votes without a P; {alarms}.", then, picture="voters")


def voter_rates(table: pd.DataFrame) -> pd.DataFrame:
    """Return by voter the share of hallucinated and of clean responses that it calls inconsistent, over all tasks."""
    overall = table[table["task"] == "overall"].assign(hits=lambda t: t["called"] * t["responses"])
    kind = np.where(overall["complexity"] == 0, "false alarms", "recall")
    sums = overall.groupby(["voter", kind])[["hits", "responses"]].sum()
    rates = (sums["hits"] / sums["responses"]).unstack().reindex(columns=["recall", "false alarms"])
    return rates.fillna({"recall": 0.0}).reset_index(names="model").assign(task="overall")


TITLE = "Responses that each voter calls inconsistent, by task and complexity"


def measure_votes(args: argparse.Namespace, samples: Sequence[Sample]) -> int:
    """Run ``deep probe eval --votes``."""
    check_replaceable(args.out)
    table = voter_table(read_votes(args.votes), samples)
    verdict = verdict_of_voters(table, len(samples))
    results = {
        "schema_version": 1,
        "verdict": verdict.as_dict(),
        "samples": len(samples),
        "voters": records(table),
    }
    panels = {"called inconsistent, over all tasks": {"recall": "hallucinated", "false alarms": "clean"}}
    study.publish(
        args,
        results,
        [*study_lines(verdict, "\n".join([TITLE, "", *markdown(table), ""])), f"written to {args.out}"],
        tables={"voters": table},
        titles={"voters": TITLE},
        figures={"voters": _bars(voter_rates(table), panels, TITLE)},
    )
    return ExitStatus.DONE


@framed
def voter_table(votes: VoteMatrix, samples: Sequence[Sample]) -> Iterator[Row]:
    """Return a row per voter, task and complexity: responses, those without a vote, and the share called inconsistent.

    At complexity 0 that share is of false alarms, above it is the recall; a response without a vote is not called.

    Raises
    ------
    InputError
        A sample has no row.
    """
    row_of = {item: row for row, item in enumerate(zip(votes.datasets, votes.example_ids, strict=True))}
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
