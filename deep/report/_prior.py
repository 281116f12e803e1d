"""The chapter on the share of consistent items: what it is believed to be, and how that was learned."""

from collections.abc import Iterator

from deep._odds import expit
from deep.evaluate import IntervalRow, draw_intervals
from deep.model import MIN_DATASETS, LearnedPrior, Model, PriorEstimate, ShiftedPrior
from deep.report._material import ReportMaterial, dataset_rows
from deep.report._page import Chapter, DataTable, Picture, between, percent
from deep.report._svg import inline_svg

LEARNED = (
    "The share of consistent items of a dataset without labels is told by lines, learned across the training datasets, "
    "from the mean of the uncalibrated P to the share. Each training dataset was scored by fits without it; the 90 % "
    "interval comes from how far the lines were off on datasets left out."
)
BY_VOTES = (
    "No labeled dataset taught this share: it follows from how the votes agree, and nothing shows how far off it is. "
    "A model (`deep fit`) learns it from labeled datasets."
)
SHIFTED = (
    "There are too few training datasets to learn a line from the votes to the share: it is the mean of their shares, "
    "moved towards what the votes imply as far as that can be believed."
)
FIXED = "The share is that of the dataset that the model is for, by its votes and its labels."
BY_RUNS = (
    "The share of each dataset that was held out is told from its votes by a model of the other datasets, without its "
    "labels; those stand beside it."
)
TITLE = "The share of consistent items"
CAPTION = "Estimated share of consistent items with its 90 % interval"
MOST_DRAWN = 60
LONGEST = 48


def prior_chapter(material: ReportMaterial) -> Chapter:
    """Return the chapter."""
    priors = {} if material.scored is None else material.scored.priors
    says = [_how(material)]
    parts: list[DataTable | Picture] = []
    if material.model is not None:
        says += list(_of_model(material.model))
        rows = list(_training(material.model))
        parts += [DataTable("The training datasets, each by lines through the others", rows)] if rows else []
    if not priors:
        return Chapter("prior", TITLE, says, parts)
    shares = _labeled_shares(material)
    table = DataTable(CAPTION, list(_rows(priors, shares)))
    shown = list(priors.items())[:MOST_DRAWN][::-1]
    lines = [IntervalRow(name[:LONGEST], prior.estimate, [prior.low, prior.high]) for name, prior in shown]
    figure = draw_intervals(lines, xlabel="share of consistent items, 90 % interval")
    return Chapter("prior", TITLE, says, [*parts, Picture(inline_svg(figure, "prior", CAPTION), CAPTION, [table])])


def _how(material: ReportMaterial) -> str:
    """Return a sentence on how the share is learned."""
    if material.runs:
        if any(run["recommended"].get("calibrator") != "learned-prior" for run in material.runs):
            return BY_RUNS
        return LEARNED if all(len(run["train"]) > MIN_DATASETS for run in material.runs) else SHIFTED
    if material.model is None:
        return BY_VOTES
    rule = material.model.prior_rule
    return LEARNED if isinstance(rule, LearnedPrior) else SHIFTED if isinstance(rule, ShiftedPrior) else FIXED


def _of_model(model: Model) -> Iterator[str]:
    prior = model.prior
    of = "a dataset not known" if model.target is None else model.target
    yield (
        f"Expected of {of}: {percent(prior.estimate)} % consistent (90 % interval {between([prior.low, prior.high])})."
    )


def _training(model: Model) -> Iterator[dict[str, str]]:
    rule = model.prior_rule
    if isinstance(rule, LearnedPrior):
        for name, share, told in zip(model.left_out, rule.priors_, expit(rule.left_out_), strict=False):
            yield {"dataset": name, "consistent, %": percent(float(share)), "told without it, %": percent(float(told))}


def _labeled_shares(material: ReportMaterial) -> dict[str, float]:
    assert material.scored is not None  # the caller's branch
    votes = material.scored.votes
    known = {name: votes.labels[rows] for name, rows in dataset_rows(votes)}
    return {name: float((y == 1).sum() / (y >= 0).sum()) for name, y in known.items() if (y >= 0).any()}


def _rows(priors: dict[str, PriorEstimate], shares: dict[str, float]) -> Iterator[dict[str, str]]:
    for name, prior in priors.items():
        yield {
            "dataset": name,
            "estimated, %": percent(prior.estimate),
            "90 % interval": between([prior.low, prior.high]),
            "of the labeled items, %": percent(shares.get(name)),
            "remark": prior.warning or "",
        }
