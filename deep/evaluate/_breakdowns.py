"""How far raters agree, and the answers of judges by level of their scale and by the LLM that wrote the text.

The agreement of annotators, with and without items that they call ambiguous: arXiv:2508.00889, section 2.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Annotated

import numpy as np
import numpy.typing as npt

from deep import evaluate, model  # by the room: the page of labels needs no card of a judge
from deep._util.checks import Floats, Mask, Positions
from deep._util.scales import MOST_LEVELS, Scale
from deep.evaluate._measured import DataTable, Measured, Row, TableCell, in_percent, shown
from deep.features import Ratings, agreement_interval, cohen_kappa, fleiss_kappa, krippendorff_alpha
from deep.judges import parse_voter
from deep.records import ABSTAIN, VoteMatrix

# The most raters of whom every pair is compared (66 pairs); of more, only measures of all together are taken.
MAX_RATERS_PAIRED = 12


def agreement_measures(
    ratings: Ratings,
    names: Sequence[str],
    *,
    documents: npt.ArrayLike | None = None,
    n_boot: int = 2000,
    random_state: int = 0,
) -> list[dict[str, object]]:
    """Measure how far raters agree, each measure with its 95 % interval over resampled documents.

    Parameters
    ----------
    ratings : ndarray of int, shape (n_items, n_raters)
        1, 0, or -1 where a rater gave no label.
    names : sequence of str, length n_raters
        Of the raters, in the order of the columns.
    documents : array-like of shape (n_items,), optional
        Default: every item is a document of its own.
    n_boot : int, default=2000
        Resamples of documents behind each interval.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    list of dict
        `name`, `items`, `value`, `low` and `high` of Cohen's kappa of each pair, Fleiss' kappa and Krippendorff's
        alpha; empty where there are no items. Of more than `MAX_RATERS_PAIRED` raters, no pairs.
    """
    if not len(ratings):
        return []
    raters = range(len(names)) if len(names) <= MAX_RATERS_PAIRED else ()
    measures: list[tuple[str, Callable[[npt.ArrayLike], float], Ratings]] = [
        *(
            (f"Cohen's kappa, {names[i]} and {names[j]}", cohen_kappa, ratings[:, [i, j]])
            for i, j in combinations(raters, 2)
        ),
        ("Fleiss' kappa", fleiss_kappa, ratings),
        ("Krippendorff's alpha", krippendorff_alpha, ratings),
    ]
    result: list[dict[str, object]] = []
    for name, measure, of in measures:
        n_ratings = (of >= 0).sum(axis=1)
        # Only Krippendorff's alpha can use an item that some annotators left out.
        comparable = n_ratings > 1 if measure is krippendorff_alpha else n_ratings == of.shape[1]
        low, high = agreement_interval(measure, of, documents=documents, n_boot=n_boot, random_state=random_state)
        values = {"value": measure(of), "low": low, "high": high}
        numbers = {key: None if np.isnan(value) else value for key, value in values.items()}
        result.append({"name": name, "items": int(comparable.sum()), **numbers})
    return result


# Families of LLMs, looked for anywhere in a name; of another LLM it is the first word of its name.
LLM_FAMILIES = ("claude", "command", "deepseek", "gemini", "gemma", "gpt", "grok", "llama", "mistral", "phi", "qwen")

# Families of LLMs whose names say another word.
OTHER_WORDS = {"davinci": "gpt", "mixtral": "mistral", "ministral": "mistral", "codestral": "mistral", "palm": "gemini"}
# OpenAI's o1 and its like, whose names say no family.
REASONING_MODEL_PATTERN = re.compile(r"(?:^|[^a-z0-9])o[1-9](?![a-z0-9])")

# The level of all intervals here, and half their width in standard deviations.
LEVEL, Z_95 = 0.95, 1.96
# The bias is told where either side has so many labels. Of fewer a mean says little. Chosen; no measurement is known.
MIN_LABELS_FOR_BIAS = 5


def family_of_llm(name: str) -> str:
    """Return the family of an LLM, by its name.

    Examples
    --------
    >>> [family_of_llm(name) for name in ("openai/gpt-4o", "o3-mini", "Meta-Llama-3.1-8B", "acme/falcon-7b")]
    ['gpt', 'gpt', 'llama', 'falcon']
    """
    model = name.lower().rpartition("/")[2]
    words = {**{word: word for word in LLM_FAMILIES}, **OTHER_WORDS}
    family_name = next((family for word, family in words.items() if word in model), None)
    if family_name is None and REASONING_MODEL_PATTERN.search(model):
        return "gpt"
    return family_name or re.split(r"[^a-z]", model.lstrip("0123456789_-. "))[0] or model


def own_family_vote_mask(votes: VoteMatrix, writers: Sequence[str]) -> Mask:
    """Return which votes are of a judge on a text of its own family, shape (n_examples, n_voters)."""
    of_writer = np.array([family_of_llm(name) if name else "" for name in writers], dtype=object)
    voters = (parse_voter(name) for name in votes.voter_names)
    of_judge = np.array([family_of_llm(voter.model or voter.name) for voter in voters], dtype=object)
    return np.asarray(of_writer[:, None] == of_judge)


def without_own_family_votes(votes: VoteMatrix, writers: Sequence[str]) -> VoteMatrix:
    """Return the votes without those of judges on texts of their own family."""
    return replace(votes, votes=np.where(own_family_vote_mask(votes, writers), ABSTAIN, votes.votes).astype(np.int8))


@dataclass(frozen=True, kw_only=True)
class OwnFamily(Measured):
    """How a judge treats the texts of its own family of LLMs.

    Parameters
    ----------
    judge, family : str
        The judge as the votes name it, and the family of its LLM (:func:`family_of_llm`).
    n_own, n_others : int
        Items that it voted on: of its family, and of others.
    n_labels : int
        Of them labeled.
    says_own, says_others : float
        Share of its votes that are 1.
    bias : float
        How much more often it says 1 of its own family's texts than of others that are as consistent; NaN where there
        are fewer than `MIN_LABELS_FOR_BIAS` labels of either.
    bias_ci : (float, float)
        Its 95 % interval.
    """

    judge: str
    family: str
    n_own: Annotated[int, TableCell("own texts", ",")]
    n_others: Annotated[int, TableCell("others", ",")]
    n_labels: Annotated[int, TableCell("labels", ",")]
    says_own: Annotated[float, TableCell("says 1 of own, %", ".1%")]
    says_others: Annotated[float, TableCell("of others, %", ".1%")]
    bias: Annotated[float, TableCell("bias, points", "+.1%")]
    bias_ci: Annotated[tuple[float, float], TableCell("bias, 95 %", "+.1%")]


def own_families(votes: VoteMatrix, writers: Sequence[str]) -> Iterator[OwnFamily]:
    """Yield how each judge treats its own family, of judges whose family wrote some of the items and not all."""
    own, has_writer = own_family_vote_mask(votes, writers), np.array(writers) != ""
    shares = (votes.votes == 1).sum(axis=1) / np.maximum((votes.votes >= 0).sum(axis=1), 1)
    for column, name in enumerate(votes.voter_names):
        has_vote = (votes.votes[:, column] >= 0) & has_writer
        sides = [np.flatnonzero(has_vote & own[:, column]), np.flatnonzero(has_vote & ~own[:, column])]
        if not all(map(len, sides)):
            continue
        says = [float((votes.votes[side, column] == 1).mean()) for side in sides]
        labels = [int((votes.labels[side] >= 0).sum()) for side in sides]
        bias, ends = float("nan"), (float("nan"), float("nan"))
        if min(labels) >= MIN_LABELS_FOR_BIAS:
            bias, ends = _own_family_bias(votes, shares, column, sides)
        voter = parse_voter(name)
        yield OwnFamily(
            judge=name,
            family=family_of_llm(voter.model or voter.name),
            n_own=len(sides[0]),
            n_others=len(sides[1]),
            n_labels=sum(labels),
            says_own=says[0],
            says_others=says[1],
            bias=bias,
            bias_ci=ends,
        )


def _own_family_bias(
    votes: VoteMatrix, shares: Floats, column: int, sides: Sequence[Positions]
) -> tuple[float, tuple[float, float]]:
    """Return how much more often a judge says 1 on one side than on the other, where as much is true, and its bounds.

    The regression of its votes on the labels, with an intercept for each side: the slope from labeled items, the rest
    from all items, whose share of label 1 is estimated from labels and votes.
    """
    own_answers = [votes.votes[side, column].astype(float) for side in sides]
    labeled = [votes.labels[side] >= 0 for side in sides]
    # Votes and labels less their mean on each side: that is the regression with an intercept a side.
    off, y = (
        np.concatenate([values[mask] - values[mask].mean() for values, mask in zip(both, labeled, strict=True)])
        for both in (own_answers, [votes.labels[side].astype(float) for side in sides])
    )
    spread = max(float(y @ y), 1e-12)
    # How much more often it says 1 of a consistent text: a probability, whatever few labels make of it.
    slope = min(max(float(off @ y) / spread, 0.0), 1.0)
    # Less an intercept a side and the slope.
    noise = float(((off - slope * y) ** 2).sum()) / max(len(y) - len(sides) - 1, 1)
    own, others = (
        model.estimate_share(
            shares[side],
            votes.labels[side],
            documents=None if votes.document_ids is None else votes.document_ids[side],
            level=LEVEL,
        )[0]
        for side in sides
    )
    apart = own.estimate - others.estimate
    bias = float(own_answers[0].mean() - own_answers[1].mean() - slope * apart)
    # Two intervals make one of their difference (Zou and Donner 2008, doi:10.1002/sim.3095).
    rest = Z_95 * np.sqrt(noise * (apart**2 / spread + sum(1 / len(side) for side in sides)))
    down = np.hypot(slope * np.hypot(own.high - own.estimate, others.estimate - others.low), rest)
    up = np.hypot(slope * np.hypot(own.estimate - own.low, others.high - others.estimate), rest)
    return bias, (float(bias - down), float(bias + up))


def writer_table(votes: VoteMatrix, writers: Sequence[str]) -> DataTable:
    """Return how often each judge says 1 of the texts of each LLM, less how often that is true where labels tell."""
    rows = []
    names = sorted({*writers} - {""})
    for column, judge in enumerate(votes.voter_names):
        own, row = votes.votes[:, column], {"judge": judge}
        for name in names:
            at = (np.array(writers) == name) & (own >= 0)
            labeled = at & (votes.labels >= 0)
            more = float((own[labeled] - votes.labels[labeled]).mean()) if labeled.any() else float("nan")
            cell = shown(float(own[at].mean()) if at.any() else float("nan"), ".1%")
            row[name] = cell if np.isnan(more) else f"{cell} ({in_percent(more, '+')})"
        rows.append(row)
    return DataTable("Judge by writer: % of votes for 1 (less the share of label 1, points)", rows, folded=True)


def own_family_words(families: Sequence[OwnFamily]) -> Iterator[str]:
    """Yield a sentence on each judge that favours its own family beyond chance, or that none is known to."""
    measured = [one for one in families if not np.isnan(one.bias)]
    for one in measured:
        if one.bias_ci[0] > 0 or one.bias_ci[1] < 0:
            treats = "favours" if one.bias > 0 else "is harder on"
            yield (
                f"{one.judge} {treats} texts of the same LLM family, {one.family}: {in_percent(one.bias, '+')} "
                "points (95 % "
                f"interval {in_percent(one.bias_ci, '+')}). `--exclude-own` leaves these votes out."
            )
    if families and not measured:
        yield f"Testing whether judges favour their own LLM family needs {MIN_LABELS_FOR_BIAS} labels of each side."
    elif measured and all(low <= 0 <= high for low, high in (one.bias_ci for one in measured)):
        yield f"None of {len(measured)} judges clearly favours texts by LLMs of the same family."


# The parts of equal width in which scores, which have no levels, are counted. Ten can be read; each still holds some
# scores. Chosen; no measurement is known.
N_SCORE_BINS = 10


def level_rows(votes: VoteMatrix) -> Iterator[Row]:
    """Yield by judge that gives grades or scores, and by level from the worst, how often it is given and is right.

    `answer` is the level as the judge gives it, `items` how many have it, `labeled` how many of these have a label,
    `consistent` which share of them is 1, and `low` and `high` its 95 % interval, clustered by document.
    """
    for j, scale in enumerate(votes.scales or ()):
        if scale.binary or votes.answers is None:
            continue
        answer_rows = np.flatnonzero(~np.isnan(votes.answers[:, j]))
        names, level = _levels_of_answers(votes.answers[answer_rows, j], scale)
        for code, name in enumerate(names):
            rows = answer_rows[level == code]
            labeled = rows[votes.labels[rows] >= 0]
            documents = None if votes.document_ids is None else votes.document_ids[labeled]
            hits = votes.labels[labeled] == 1
            low, high = evaluate.clustered_share(hits, documents)
            yield {
                "judge": votes.voter_names[j],
                "scale": str(scale),
                "answer": name,
                "items": len(rows),
                "labeled": len(labeled),
                "consistent": float(hits.mean()) if len(labeled) else float("nan"),
                "low": low,
                "high": high,
            }


def _levels_of_answers(places: Floats, scale: Scale) -> tuple[list[str], Positions]:
    """Return the names of the levels of a scale, or of its parts where they are too many, and that of each answer."""
    steps = np.linspace(0.0, 1.0, scale.n_levels) if scale.n_levels else np.empty(0)
    # 0.1 + 0.2 and 0.3 are one level.
    levels = np.unique(np.round(np.concatenate([places, steps]), 9))
    if len(levels) <= MOST_LEVELS:
        return [scale.answer(place) for place in levels], np.searchsorted(levels, np.round(places, 9))
    ends = [scale.answer(end) for end in np.linspace(0.0, 1.0, N_SCORE_BINS + 1)]
    names = [f"{low} to {high}" for low, high in pairwise(ends)]
    return names, np.minimum((places * N_SCORE_BINS).astype(np.intp), N_SCORE_BINS - 1)


def rank_agreement(votes: VoteMatrix) -> Floats | None:
    """Return Spearman's correlation of the answers of each two judges, shape (n_judges, n_judges).

    NaN where two have no two items in common or one of them says the same of all; None where all judges vote.
    """
    from scipy.stats import rankdata

    if votes.answers is None:
        return None
    k = votes.shape[1]
    result = np.eye(k)
    for i in range(k):
        for j in range(i):
            both = votes.answers[~np.isnan(votes.answers[:, [i, j]]).any(axis=1)][:, [i, j]]
            varies = len(both) > 1 and (np.ptp(both, axis=0) > 0).all()
            rho = np.corrcoef(rankdata(both, axis=0).T)[0, 1] if varies else np.nan
            result[i, j] = result[j, i] = rho
    return result


def level_tables(levels: Sequence[Row], judges: Sequence[str], agreement: Floats | None) -> Iterator[DataTable]:
    """Yield for each scale a table of its judges: items by level, share of 1 there, and how alike the others rank."""
    for scale in dict.fromkeys(row["scale"] for row in levels):
        of_scale = [row for row in levels if row["scale"] == scale]
        answers = sorted({row["answer"] for row in of_scale}, key=[row["answer"] for row in of_scale].index)
        rows = []
        for judge in dict.fromkeys(row["judge"] for row in of_scale):
            own = {row["answer"]: row for row in of_scale if row["judge"] == judge}
            rows.append({"judge": judge, **{answer: _level_cell(own.get(answer)) for answer in answers}})
            if agreement is not None and len(judges) > 1:
                others = np.delete(agreement[judges.index(judge)], judges.index(judge))
                rows[-1]["ranks alike"] = shown(float(np.nanmean(others)) if not np.isnan(others).all() else None)
        what = "items, % of them consistent by their labels; ranks alike: mean rank correlation with the others"
        yield DataTable(f"Answers on the scale {scale} ({what})", rows)


def _level_cell(row: Row | None) -> str:
    if row is None or not row["items"]:
        return ""
    return f"{row['items']:,}" + (f" ({shown(row['consistent'], '.0%')})" if row["labeled"] else "")
