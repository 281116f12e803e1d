"""The answers of judges, by level of their scale, and by the LLM that wrote the text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from typing import Annotated

import numpy as np

from deep._util.checks import Floats, Mask, Positions
from deep._util.names import listed, short_names
from deep._util.scales import BINARY, MOST_LEVELS, Scale
from deep.evaluate._annotators import clustered_share
from deep.evaluate._measured import DataTable, Measured, Row, TableCell, in_percent, shown
from deep.evaluate._verdict import NO_JUDGE_DISTINGUISHES
from deep.judges import parse_voter
from deep.model import estimate_share
from deep.records import ABSTAIN, VoteMatrix

# Families of LLMs, looked for anywhere in a name; of another LLM it is the first word of its name.
FAMILIES = ("claude", "command", "deepseek", "gemini", "gemma", "gpt", "grok", "llama", "mistral", "phi", "qwen")

# Families of LLMs whose names say another word.
OTHER_WORDS = {"davinci": "gpt", "mixtral": "mistral", "ministral": "mistral", "codestral": "mistral", "palm": "gemini"}
# OpenAI's o1 and its like, whose names say no family.
REASONERS = re.compile(r"(?:^|[^a-z0-9])o[1-9](?![a-z0-9])")

# The level of all intervals here, and half their width in standard deviations.
LEVEL, Z_95 = 0.95, 1.96
# The bias is told where either side has so many labels.
MIN_LABELS = 5


def family_of_llm(name: str) -> str:
    """Return the family of an LLM, by its name.

    Examples
    --------
    >>> [family_of_llm(name) for name in ("openai/gpt-4o", "o3-mini", "Meta-Llama-3.1-8B", "acme/falcon-7b")]
    ['gpt', 'gpt', 'llama', 'falcon']
    """
    model = name.lower().rpartition("/")[2]
    words = {**{word: word for word in FAMILIES}, **OTHER_WORDS}
    family_name = next((family for word, family in words.items() if word in model), None)
    if family_name is None and REASONERS.search(model):
        return "gpt"
    return family_name or re.split(r"[^a-z]", model.lstrip("0123456789_-. "))[0] or model


def own_votes(votes: VoteMatrix, writers: Sequence[str]) -> Mask:
    """Return which votes are of a judge on a text of its own family, shape (n_examples, n_voters)."""
    of_writer = np.array([family_of_llm(name) if name else "" for name in writers], dtype=object)
    voters = (parse_voter(name) for name in votes.voter_names)
    of_judge = np.array([family_of_llm(voter.model or voter.name) for voter in voters], dtype=object)
    return np.asarray(of_writer[:, None] == of_judge)


def without_own_votes(votes: VoteMatrix, writers: Sequence[str]) -> VoteMatrix:
    """Return the votes without those of judges on texts of their own family."""
    return replace(votes, votes=np.where(own_votes(votes, writers), ABSTAIN, votes.votes).astype(np.int8))


@dataclass(frozen=True, kw_only=True)
class OwnFamily(Measured):
    """How a judge treats the texts of its own family of LLMs.

    Parameters
    ----------
    judge, family : str
    n_own, n_others : int
        Items that it voted on: of its family, and of others.
    n_labels : int
        Of them labeled.
    says_own, says_others : float
        Share of its votes that are 1.
    bias : float
        How much more often it says 1 of its own family's texts than of others that are as consistent; NaN where there
        are fewer than `MIN_LABELS` labels of either.
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
    own, has_writer = own_votes(votes, writers), np.array(writers) != ""
    shares = (votes.votes == 1).sum(axis=1) / np.maximum((votes.votes >= 0).sum(axis=1), 1)
    for column, name in enumerate(votes.voter_names):
        voted = (votes.votes[:, column] >= 0) & has_writer
        sides = [np.flatnonzero(voted & own[:, column]), np.flatnonzero(voted & ~own[:, column])]
        if not all(map(len, sides)):
            continue
        says = [float((votes.votes[side, column] == 1).mean()) for side in sides]
        labels = [int((votes.labels[side] >= 0).sum()) for side in sides]
        bias, ends = float("nan"), (float("nan"), float("nan"))
        if min(labels) >= MIN_LABELS:
            bias, ends = _bias(votes, shares, column, sides)
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


def _bias(
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
        np.concatenate([values[known] - values[known].mean() for values, known in zip(both, labeled, strict=True)])
        for both in (own_answers, [votes.labels[side].astype(float) for side in sides])
    )
    spread = max(float(y @ y), 1e-12)
    # How much more often it says 1 of a consistent text: a probability, whatever few labels make of it.
    slope = min(max(float(off @ y) / spread, 0.0), 1.0)
    # Less an intercept a side and the slope.
    noise = float(((off - slope * y) ** 2).sum()) / max(len(y) - len(sides) - 1, 1)
    own, others = (
        estimate_share(
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
        yield f"Testing whether judges favour their own LLM family needs {MIN_LABELS} labels of each side."
    elif measured and all(low <= 0 <= high for low, high in (one.bias_ci for one in measured)):
        yield f"None of {len(measured)} judges clearly favours texts by LLMs of the same family."


# The parts of equal width in which scores, which have no levels, are counted.
N_BINS = 10


def level_rows(votes: VoteMatrix) -> Iterator[Row]:
    """Yield by judge that gives grades or scores, and by level from the worst, how often it is given and is right.

    `answer` is the level as the judge gives it, `items` how many have it, `labeled` how many of these have a label,
    `consistent` which share of them is 1, and `low` and `high` its 95 % interval, clustered by document.
    """
    for j, scale in enumerate(votes.scales or ()):
        if scale.binary or votes.answers is None:
            continue
        answered = np.flatnonzero(~np.isnan(votes.answers[:, j]))
        names, level = _levels(votes.answers[answered, j], scale)
        for code, name in enumerate(names):
            rows = answered[level == code]
            labeled = rows[votes.labels[rows] >= 0]
            documents = None if votes.document_ids is None else votes.document_ids[labeled]
            hits = votes.labels[labeled] == 1
            low, high = clustered_share(hits, documents)
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


def _levels(places: Floats, scale: Scale) -> tuple[list[str], Positions]:
    """Return the names of the levels of a scale, or of its parts where they are too many, and that of each answer."""
    steps = np.linspace(0.0, 1.0, scale.n_levels) if scale.n_levels else np.empty(0)
    # 0.1 + 0.2 and 0.3 are one level.
    levels = np.unique(np.round(np.concatenate([places, steps]), 9))
    if len(levels) <= MOST_LEVELS:
        return [scale.answer(place) for place in levels], np.searchsorted(levels, np.round(places, 9))
    ends = [scale.answer(end) for end in np.linspace(0.0, 1.0, N_BINS + 1)]
    names = [f"{low} to {high}" for low, high in pairwise(ends)]
    return names, np.minimum((places * N_BINS).astype(np.intp), N_BINS - 1)


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
            rows.append({"judge": judge, **{answer: _cell(own.get(answer)) for answer in answers}})
            if agreement is not None and len(judges) > 1:
                others = np.delete(agreement[judges.index(judge)], judges.index(judge))
                rows[-1]["ranks alike"] = shown(float(np.nanmean(others)) if not np.isnan(others).all() else None)
        what = "items, % of them consistent by their labels; ranks alike: mean rank correlation with the others"
        yield DataTable(f"Answers on the scale {scale} ({what})", rows)


def _cell(row: Row | None) -> str:
    if row is None or not row["items"]:
        return ""
    return f"{row['items']:,}" + (f" ({shown(row['consistent'], '.0%')})" if row["labeled"] else "")


# A judge that always says the same is told from so many votes on.
# A judge that says 1 of 4 items in 5 says it of 5 in a row in 33 of 100 cases, of 10 in 11.
MIN_CONSTANT_VOTES = 10

# The share of votes of the other sign up to which a judge says nearly always the same: 2 of 100.
MAX_OTHER_VOTES = 0.02

# A judge is called constant only if it votes on so many of the items. A rule that votes 1 or not at all says something
# by where it votes, and so do the many that vote 0 alone.
MIN_COVERAGE = 0.9


def constant_words(judges: Mapping[str, tuple[str, int, int, int]]) -> list[str]:
    """Return sentences on judges that say the same of every item, or of nearly every one.

    Parameters
    ----------
    judges : mapping of str to (str, int, int, int)
        Of each judge its most frequent answer, how many of its answers are that one, how many it gave, and of how many
        items.

    Returns
    -------
    list of str
        One for all judges that always say the same, one for each that nearly does; at last that no judge distinguishes
        the items, where none does.

    Examples
    --------
    >>> from deep.evaluate import constant_words
    >>> judges = {"yes-no": ("1", 100, 100, 100), "rule": ("1", 40, 40, 100), "grader": ("4", 99, 100, 100)}
    >>> for line in constant_words(judges):
    ...     print(line)
    yes-no always says 1: it tells nothing about which claims are consistent.
    grader says 4 for 99 of its 100 claims: that says little about which claims are consistent.
    """
    many = {name: each for name, each in judges.items() if each[2] >= max(MIN_CONSTANT_VOTES, MIN_COVERAGE * each[3])}
    lines = []
    for answer in dict.fromkeys(answer for answer, same, n, _ in many.values() if same == n):
        names = [name for name, (own, same, n, _) in many.items() if (own, same) == (answer, n)]
        say, it_tells = ("says", "it tells") if len(names) == 1 else ("say", "they tell")
        lines.append(f"{listed(names)} always {say} {answer}: {it_tells} nothing about which claims are consistent.")
    for name, (answer, same, n, _) in many.items():
        if 0 < n - same <= MAX_OTHER_VOTES * n:
            alike = f"{answer} for {same:,} of its {n:,} claims"
            lines.append(f"{name} says {alike}: that says little about which claims are consistent.")
    if many and all(same == n == items for _, same, n, items in judges.values()):
        lines.append(NO_JUDGE_DISTINGUISHES)
    return lines


def constant_judges(votes: VoteMatrix) -> list[str]:
    """Return the sentences of :func:`constant_words` on the judges of a table, whose grades are told as given."""
    judges = {}
    columns = zip(short_names(votes.voter_names).values(), votes.answers_or_votes.T, strict=True)
    for (name, column), scale in zip(columns, votes.scales or repeat(BINARY), strict=False):
        own, counts = np.unique(column[column >= 0], return_counts=True)
        same, place = max(zip(counts.tolist(), own.tolist(), strict=True), default=(0, 0.0))
        judges[name] = (scale.answer(place), same, int(counts.sum()), len(column))
    return constant_words(judges)
