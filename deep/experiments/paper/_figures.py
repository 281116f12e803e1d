"""The DEEP paper's Figures 1, 2 and 4 from a run's own votes and scores."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deep._files import JsonObject
from deep.calibration import plot_reliability
from deep.datasets import ScoreTable
from deep.evaluate import TestCells, draw_optimal_thresholds, draw_threshold_transfer, hold_out, optimal_thresholds
from deep.model import RECIPES, choose_subsets, fit_candidates, training_set
from deep.records import VoteMatrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_PROMPTS = 9


def paper_figures(
    votes: VoteMatrix, scores: ScoreTable | None, runs: Sequence[JsonObject], dataset: str, random_state: int
) -> dict[str, "Figure"]:
    """Return Figure 4, and Figures 1 and 2 where there are encoder scores, by their file names.

    Figure 4 is the paper's example: LabelModel on nine prompts (or as many as there are), fitted on the other
    datasets and tested on `dataset`, before and after Platt scaling.
    """
    figures = {}
    if scores is not None:
        figures["figure1-optimal-thresholds"] = draw_optimal_thresholds(optimal_thresholds(votes, scores))
        figures["figure2-threshold-transfer"] = draw_threshold_transfer(runs)
    return {**figures, "figure4-reliability": _reliability(votes, dataset, random_state)}


def _reliability(votes: VoteMatrix, dataset: str, random_state: int) -> "Figure":
    recipe = RECIPES["paper"]
    split = hold_out(votes, dataset)
    target = TestCells.from_votes(split.test)
    training = training_set(split.train, recipe, random_state=random_state)
    (subset,) = choose_subsets(training, [min(MOST_PROMPTS, votes.shape[1])], criterion=recipe.subset_criterion)
    before, after = fit_candidates(
        "LabelModel",
        subset,
        training,
        target.patterns,
        calibrators=("platt",),
        recipe=recipe,
        random_state=random_state,
    )
    labeled = split.test.labels >= 0
    patterns = target.row_pattern[labeled]
    return plot_reliability(
        split.test.labels[labeled],
        before=before.p[patterns],
        after=after.p[patterns],
        title=f"{dataset}: LabelModel on {len(subset.columns)} prompts, before and after Platt scaling",
    )
