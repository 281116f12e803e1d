"""One table of judges by stage."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from deep._checks import Floats, Labels
from deep._plain_cells import plain_frame
from deep.datasets import read_votes
from deep.evaluate import ensemble_votes, markdown, model_votes, records
from deep.exceptions import InputError
from deep.experiments.stages._stages import Counts, NotMeasured, StageMeasure, counts_of, stage_measures
from deep.model import Model, load
from deep.records import VoteMatrix

LEAST_COVERAGE = 0.5
"""Share of a measure's items with a vote, below which a figure is of other items than those of its neighbors."""

LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class StageTable:
    """Judges by stage.

    Parameters
    ----------
    figures : DataFrame
        A row a judge and measure: ``judge, stage, part, metric, value, low, high, items, coverage``; value and 95 %
        interval, a bootstrap over documents, in [0, 1].
    not_measured : tuple of NotMeasured
    """

    figures: pd.DataFrame
    not_measured: tuple[NotMeasured, ...]

    def lines(self) -> Iterator[str]:
        """Yield the table as Markdown, and what has no figure, with the reason."""
        yield from markdown(self.wide().reset_index()) if len(self.figures) else ["Nothing can be measured."]
        if self.not_measured:
            yield from ("", "Not measured:", "", *(f"- {one.what}: {one.why}" for one in self.not_measured))
        yield ""

    def write(self, folder: Path, title: str) -> None:
        """Write the figures, the table and the report."""
        plain_frame(self.figures).to_csv(folder / "figures.csv", index=False, lineterminator="\n")
        plain_frame(self.wide()).to_csv(folder / "judges-by-stage.csv", lineterminator="\n")
        (folder / "report.md").write_text("\n".join([f"# {title}", "", *self.lines()]), encoding="utf-8")

    def as_dict(self) -> dict[str, object]:
        """Return figures and reasons as JSON values."""
        return {"figures": records(self.figures), "not_measured": [asdict(one) for one in self.not_measured]}

    def wide(self) -> pd.DataFrame:
        """Return a row a judge and a column a measure, in percent; a dash where there is no figure.

        The share of items with a vote stands behind a figure where it is below `LEAST_COVERAGE`.
        """
        if self.figures.empty:
            return pd.DataFrame()
        both = zip(self.figures["value"], self.figures["coverage"], strict=True)
        shown = [_cell(value, share) for value, share in both]
        parts = self.figures[["stage", "part", "metric"]].itertuples(index=False)
        titles = [" ".join(filter(None, row)) for row in parts]
        wide = self.figures.assign(title=titles, shown=shown).pivot(index="judge", columns="title", values="shown")
        return wide.loc[list(dict.fromkeys(self.figures["judge"])), list(dict.fromkeys(titles))].fillna("-")


def _cell(value: float, share: float) -> str:
    if np.isnan(value):
        return "-"
    return f"{100 * value:.1f}" + (f" ({100 * share:.0f} % of items)" if share < LEAST_COVERAGE else "")


def stage_table(
    paths: Sequence[str | Path],
    verdicts: Mapping[str, str] | None = None,
    *,
    ensemblers: Sequence[str] = (),
    n_boot: int = 2000,
    random_state: int = 0,
) -> StageTable:
    """Measure the voters of vote files, and models on those votes, at every stage that the votes allow.

    Parameters
    ----------
    paths : sequence of path
        Vote files, and model files that end in ``.json``. A model is measured by what it makes of the votes, at 0.5
        and at its estimated prior; on a dataset that it was trained on it is not measured.
    verdicts : mapping of str to str, optional
        CogniBench's verdict by item.
    ensemblers : sequence of str, optional
        Ensembles that learn from no label, of all voters, fitted to each dataset by itself.
    n_boot : int, default=2000
    random_state : int, default=0

    Raises
    ------
    InputError
        There is no vote file, or a file cannot be read.
    """
    files = [str(path) for path in paths if not str(path).endswith(".json")]
    if not files:
        raise InputError("`files` must hold at least one table of votes; models are measured on them. Got none.")
    votes = read_votes(files)
    measures, missing = stage_measures(votes, verdicts)
    rng = np.random.default_rng(random_state)
    rows: list[dict[str, object]] = []
    models = [str(path) for path in paths if str(path).endswith(".json")]
    for judge, column, trained in _judges(votes, models, ensemblers, missing):
        for measure in measures:
            if any(name.startswith(measure.dataset) for name in trained):
                missing.append(NotMeasured(f"{judge} at {measure.title}", "the model was trained on that dataset"))
            else:
                rows.append({"judge": judge, **_figure(votes, column, measure, n_boot, rng)})
                missing += _without_figure(judge, measure, rows[-1])
    return StageTable(pd.DataFrame(rows), tuple(dict.fromkeys(missing)))


def _judges(
    votes: VoteMatrix, models: Sequence[str], ensemblers: Sequence[str], missing: list[NotMeasured]
) -> Iterator[tuple[str, Labels, tuple[str, ...]]]:
    """Yield the name, the votes and the training datasets of each judge; note the models without their voters."""
    for table in [votes, *([ensemble_votes(votes, ensemblers)] if ensemblers else [])]:
        for name, column in zip(table.voter_names, table.votes.T, strict=True):
            yield name, column, ()
    for path in models:
        model, stem = load(path), Path(path).stem
        lacking = [voter for voter in model.voter_names if voter not in votes.voter_names]
        if lacking:
            why = f"{len(lacking)} of its {len(model.voter_names)} voters are in no vote file, {lacking[0]!r} first"
            missing.append(NotMeasured(stem, why))
            continue
        decided = model_votes(model, votes)
        for rule, column in zip(decided.voter_names, decided.votes.T, strict=True):
            yield f"{stem} ({rule})", column, _trained_on(model)


def _without_figure(judge: str, measure: StageMeasure, row: Mapping[str, object]) -> Iterator[NotMeasured]:
    """Yield the reason where a measure is undefined for a judge."""
    if row["value"] != row["value"]:
        why = "no vote on its items" if row["coverage"] == 0 else "undefined on the items that it votes on"
        yield NotMeasured(f"{judge} at {measure.title}", why)


def _trained_on(model: Model) -> tuple[str, ...]:
    return model.cells.groups if model.target is None else (*model.cells.groups, model.target)


def _figure(
    votes: VoteMatrix, column: Labels, measure: StageMeasure, n_boot: int, rng: np.random.Generator
) -> dict[str, object]:
    counts = counts_of(column[measure.rows], measure.truth)
    documents = None if votes.document_ids is None else votes.document_ids[measure.rows]
    voted = bool((counts[:, -1] == 0).any())
    low, high = _interval(counts, documents, measure, n_boot, rng) if voted else (np.nan, np.nan)
    return {
        "stage": measure.stage,
        "part": measure.part,
        "metric": measure.metric,
        "value": float(measure.formula(counts.sum(axis=0))) if voted else np.nan,
        "low": low,
        "high": high,
        "items": len(counts),
        "coverage": float(1 - counts[:, -1].mean()),
    }


def _interval(
    counts: Counts, documents: "np.ndarray | None", measure: StageMeasure, n_boot: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return the percentile interval over resampled documents; missing where a resample has no figure too often."""
    if documents is not None:
        places = np.unique(documents, return_inverse=True)[1]
        by_document = np.zeros((places.max() + 1, counts.shape[1]))
        np.add.at(by_document, places, counts)
        counts = by_document
    n = len(counts)
    draws: Floats = measure.formula(rng.multinomial(n, np.full(n, 1 / n), size=n_boot) @ counts)
    if np.isnan(draws).mean() > (1 - LEVEL) / 2:
        return float("nan"), float("nan")
    low, high = np.nanquantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
