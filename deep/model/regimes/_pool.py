"""Three labeled datasets or more: a pool."""

from collections.abc import Mapping

from deep._checks import Floats, Texts
from deep.model.chain import MapLike, grouped_note
from deep.model.file import Model, voters_of
from deep.model.pool import MOST_ROWS, Fits, Pool, labeled_rows, sample_note, share_fits
from deep.model.regimes._report import report_of
from deep.model.regimes._training import training_cells
from deep.records import VoteMatrix


def fit_pool(
    votes: VoteMatrix,
    scores: Floats | None,
    score_names: tuple[str, ...],
    groups: Texts,
    provenance: Mapping[str, object],
    *,
    random_state: int,
    fits: Fits | None,
    run: MapLike,
) -> Model:
    """Fit the pool on labeled rows, and draw up its model."""
    rows, names = labeled_rows(votes.votes, votes.labels, groups, None, scores)
    if fits is None:
        fits = share_fits(rows, names, random_state=random_state, run=run).without()
    pool = Pool(random_state=random_state).fit_rows(rows, names, fits)
    cells = training_cells(votes)
    inner = {"log_loss": pool.inner_log_loss_, "balanced_accuracy": pool.inner_balanced_accuracy_}
    chosen = {"ensembler": "Pool", "weights": pool.weights_, "inner": inner}
    report = report_of(
        chosen,
        cells,
        pool.left_out_,
        pool.prior_.left_out_.tolist(),
        provenance,
        notes=_notes(len(votes.dataset_names), 0 if scores is None else len(scores)),
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=score_names,
        method="pool",
        blend=pool.blend_,
        prior_rule=pool.prior_,
        misfit=pool.misfit_,
        contexts=pool.prior_.statistic_.mean(axis=0),
        cells=cells,
        left_out=pool.left_out_,
        report=report,
    )


def _notes(n_datasets: int, n_scored: int) -> list[str]:
    notes = [grouped_note(n_datasets), sample_note(n_scored) if n_scored > MOST_ROWS else None]
    return [note for note in notes if note]
