"""Three labeled datasets or more: a stack."""

from collections.abc import Mapping

from deep._checks import Floats, Texts
from deep.model.chain import MapLike, grouped_note
from deep.model.file import Model, voters_of
from deep.model.regimes._report import report_of
from deep.model.regimes._training import training_cells
from deep.model.stack import MOST_ROWS, Fits, Stack, labeled_rows, sample_note, share_fits
from deep.records import VoteMatrix


def fit_stack(
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
    """Fit the stack on labeled rows, and draw up its model."""
    rows, names = labeled_rows(votes.votes, votes.labels, groups, None, scores)
    if fits is None:
        fits = share_fits(rows, names, random_state=random_state, run=run).without()
    stack = Stack(random_state=random_state).fit_rows(rows, names, fits)
    cells = training_cells(votes)
    inner = {"log_loss": stack.inner_log_loss_, "balanced_accuracy": stack.inner_balanced_accuracy_}
    chosen = {"ensembler": "Stack", "weights": stack.weights_, "inner": inner}
    report = report_of(
        chosen,
        cells,
        stack.left_out_,
        stack.prior_.left_out_.tolist(),
        provenance,
        notes=_notes(len(votes.dataset_names), 0 if scores is None else len(scores)),
    )
    return Model(
        voters=voters_of(votes.voter_names, provenance),
        score_names=score_names,
        method="stack",
        blend=stack.blend_,
        prior_rule=stack.prior_,
        misfit=stack.misfit_,
        contexts=stack.prior_.statistic_.mean(axis=0),
        cells=cells,
        left_out=stack.left_out_,
        report=report,
    )


def _notes(n_datasets: int, n_scored: int) -> list[str]:
    notes = [grouped_note(n_datasets), sample_note(n_scored) if n_scored > MOST_ROWS else None]
    return [note for note in notes if note]
