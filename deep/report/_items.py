"""The items of the browser: the most telling ones and a stratified sample, small enough for a page."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from deep import llm
from deep._util.checks import Floats, Positions
from deep._util.files import JsonObject
from deep.datasets import FoundTexts, Item, Passage, read_item_reasons, read_judgments, read_texts
from deep.records import Example, VoteMatrix
from deep.report._sources import ReportMaterial, ScoredVotes, vote_share

# The most items that a page holds. More make the page slow to open.
MAX_ITEMS = 12_000

# The items of each kind that a page holds for certain: where judges disagree most, where P and label disagree most.
N_INFORMATIVE_ITEMS = 200


# The least P, and the least 1 - P, that a page holds.
# P is rounded to four decimals, and a rounded 0 or 1 would claim certainty.
MIN_P = 0.0001


def sample_sentence(shown: int, n: int) -> str:
    """Return a sentence on how the items of a page were chosen."""
    if shown == n:
        return f"All {n:,} items are here."
    return (
        f"This page holds a SAMPLE: {shown:,} of {n:,} items. It has the items where judges, or P and label, "
        "disagree most. The others are drawn at random within each dataset, label and decision. Shares here differ "
        "from the shares of all items."
    )


def vote_disagreement(scored: ScoredVotes) -> Floats:
    """Return the share of the smaller side among the votes on each item, between 0 and a half."""
    share = vote_share(scored.votes.votes)
    return np.where(scored.voted, np.minimum(share, 1 - share), 0.0)


def label_contradiction(scored: ScoredVotes) -> Floats:
    """Return how far P lies from the label of each item; 0 without a label."""
    return np.where(scored.labeled, np.abs(scored.p - scored.votes.labels), 0.0)


def order_items(scored: ScoredVotes) -> Positions:
    """Return all items, the telling ones first and then those of a stratified sample of any size."""
    n = len(scored.p)
    shuffled = np.random.default_rng(0).permutation(n)
    telling = [_top_items(vote_disagreement(scored), shuffled), _top_items(label_contradiction(scored), shuffled)]
    _, dataset = np.unique(scored.votes.datasets.astype(str), return_inverse=True)
    # Labels are -1, 0 and 1, decisions 0 and 1: six strata a dataset.
    strata = (dataset * 6 + (scored.votes.labels + 1) * 2 + scored.decided)[shuffled]
    by_stratum = np.argsort(strata, kind="stable")
    _, size = np.unique(strata, return_counts=True)
    share = np.empty(n)
    # Sorted by its place in its stratum, as a share, any first part of the sample has each stratum in proportion.
    share[by_stratum] = np.concatenate([np.arange(count) / count for count in size]) if n else []
    sample = shuffled[np.argsort(share, kind="stable")]
    every = np.concatenate([*telling, sample])
    # An item may be telling in two ways, and in the sample as well: it stands once, at its first place.
    _, first = np.unique(every, return_index=True)
    return every[np.sort(first)]


def _top_items(values: Floats, shuffled: Positions) -> Positions:
    """Return the items of the largest positive values, ties in the order of `shuffled`."""
    order = shuffled[np.argsort(-values[shuffled], kind="stable")][:N_INFORMATIVE_ITEMS]
    return order[values[order] > 0]


def item_columns(scored: ScoredVotes, rows: Positions) -> dict[str, object]:
    """Return the items as columns of JSON values: ids, datasets, labels, P with its bounds, and votes as a string."""
    votes = scored.votes.rows(rows)
    names = list(votes.dataset_names)
    at = {name: i for i, name in enumerate(names)}
    has_votes = scored.voted[rows]
    marks = np.array(["-", "0", "1"])[votes.votes + 1]  # a character a judge, - where there is no vote
    return {
        "voters": list(votes.voter_names),
        "datasets": names,
        "id": votes.item_ids.tolist(),
        "dataset": [at[name] for name in votes.datasets],
        "label": votes.labels.tolist(),
        "p": _round_probabilities(scored.p[rows]),
        "low": _round_probabilities(scored.low[rows]),
        "high": _round_probabilities(scored.high[rows]),
        "decided": [int(yes) if cast else None for yes, cast in zip(scored.decided[rows], has_votes, strict=True)],
        "sure": scored.sure[rows].astype(int).tolist(),
        "limit": _round_values(scored.threshold[rows]),
        "split": _round_values(vote_disagreement(scored)[rows]),
        "votes": ["".join(row) for row in marks.tolist()],
    }


def _round_values(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 4) for value in values]


def _round_probabilities(values: Floats) -> list[float | None]:
    """Return probabilities that rounding makes neither 0 nor 1."""
    return _round_values(np.clip(values, MIN_P, 1 - MIN_P))


# Bytes of texts, rationales and evidence in a page; the other items of it are left out.
MAX_TEXT_BYTES = 1_500_000

# A source or a claim of so many characters stands in the transcript of a judge by name.
MIN_CHARACTERS_TO_NAME = 60

# Characters of a source or a claim; what is beyond is cut, and said to be.
MAX_TEXT_CHARACTERS = 20_000

# What a report says where texts were left out on request.
NO_TEXT_SENTENCE = "Texts in this file: none (--no-text); ids replace them."


@dataclass
class TextColumns:
    """Texts of items as JSON values, in the order of the items.

    Parameters
    ----------
    sources : dict of str to int
        Each source once, with its number.
    claim, source, question : list
        A claim, the number of its source, and what it answers; None where there is no text.
    said : dict of str to dict
        By position of the item and number of the judge: reason, rationale and passages.
    size : int
        Bytes so far.
    """

    sources: dict[str, int] = field(default_factory=dict)
    claim: list[str | None] = field(default_factory=list)
    source: list[int | None] = field(default_factory=list)
    question: list[str | None] = field(default_factory=list)
    said: dict[str, dict[str, JsonObject]] = field(default_factory=dict)
    size: int = 0

    def add(self, example: Example | None, details: Mapping[str, JsonObject]) -> bool:
        """Add the texts of the next item, and return whether there was room."""
        texts = (None, None, None) if example is None else (example.claim, example.source, example.question)
        claim, source, question = (None if text is None else _shorten_text(text) for text in texts)
        new = [text for text in (claim, source, question) if text is not None and text not in self.sources]
        size = len(json.dumps([*new, details], ensure_ascii=False).encode("utf-8", "replace"))
        if self.claim and self.size + size > MAX_TEXT_BYTES:
            return False
        self.size += size
        if details:
            self.said[str(len(self.claim))] = dict(details)
        self.claim.append(claim)
        self.question.append(question)
        self.source.append(None if source is None else self.sources.setdefault(source, len(self.sources)))
        return True

    def values(self) -> dict[str, object]:
        """Return the columns; none where no item has a text."""
        texts = {"claim": self.claim, "source": self.source, "sources": list(self.sources)}
        has_claims = any(claim is not None for claim in self.claim)
        questions = {"question": self.question} if any(self.question) else {}
        return {**(texts if has_claims else {}), **questions, **({"said": self.said} if self.said else {})}


@dataclass(frozen=True)
class TextChoice:
    """Where the texts of a report come from.

    Parameters
    ----------
    examples : str or Path, optional
        A benchmark or a file, in place of what the votes remember.
    columns : mapping of str to str, optional
        Field to column of it.
    wanted : bool, default=True
        False for a report without sources, claims, rationales and evidence.
    ledger : str, optional
        The ledger that holds the prompts and replies of the judges, to show them too.
    """

    examples: str | Path | None = None
    columns: Mapping[str, str] | None = None
    wanted: bool = True
    ledger: str | None = None


def items_with_texts(
    material: ReportMaterial, order: Positions, choice: TextChoice
) -> tuple[Positions, JsonObject, list[str]]:
    """Return the items that the page holds, their columns with texts, and sentences on the texts that are in it.

    Parameters
    ----------
    material : ReportMaterial
        With scored votes.
    order : ndarray of int
        The items, those to be shown for certain first.
    choice : TextChoice
        Whether texts are shown, and where they come from.
    """
    scored = material.scored
    assert scored is not None  # the caller's branch
    rows = order[:MAX_ITEMS]
    keys = [(str(scored.votes.datasets[row]), str(scored.votes.item_ids[row])) for row in rows]
    result = FoundTexts()
    if choice.wanted and (material.tables or choice.examples):
        result = read_texts(material.tables, keys, examples=choice.examples, columns=choice.columns)
    names = scored.votes.voter_names
    details = read_judge_texts(material.tables, keys, names, result.examples, choice.ledger) if choice.wanted else {}
    for key, row in zip(keys, rows, strict=True):
        for voter, grade in _answers_of_graders(scored.votes, row).items():
            details.setdefault(key, {}).setdefault(voter, {})["grade"] = grade
    texts = TextColumns()
    for key in keys:
        if not texts.add(result.examples.get(key), details.get(key, {})):
            break
    rows = rows[: len(texts.claim)]
    columns = item_columns(scored, rows) | texts.values()
    return rows, columns, list(_sentences_on_texts(texts, result, choice))


def _answers_of_graders(votes: VoteMatrix, row: int) -> dict[str, str]:
    """Return the answers on an item by graders, by number of the judge, with their scale."""
    if votes.answers is None or votes.scales is None:
        return {}
    answers = zip(votes.answers[row], votes.scales, strict=True)
    grades = {str(n): (at, scale) for n, (at, scale) in enumerate(answers) if not (scale.binary or np.isnan(at))}
    return {judge: f"{scale.answer(at)} ({scale})" for judge, (at, scale) in grades.items()}


def _sentences_on_texts(texts: TextColumns, result: FoundTexts, choice: TextChoice) -> Iterator[str]:
    """Yield sentences on which texts the file holds, which it lacks, and why."""
    if not choice.wanted:
        yield NO_TEXT_SENTENCE
        return
    n = sum(claim is not None for claim in texts.claim)
    count = sum(any(set(entry) - {"reason", "grade"} for entry in details.values()) for details in texts.said.values())
    if n:
        yield f"Texts in this file: {n:,} claims with their sources ({len(texts.sources):,} distinct)."
    else:
        yield "Texts in this file: no source and no claim; ids replace them."
    if count:
        yield f"It has rationales or evidence of judges on {count:,} items."
    yield from result.notes


def read_judge_texts(
    tables: Sequence[str],
    keys: Sequence[Item],
    voters: Sequence[str],
    examples: Mapping[Item, Example],
    ledger: str | None = None,
) -> dict[Item, dict[str, JsonObject]]:
    """Return why there is no vote, the rationale and the passages, as the script of a page reads them.

    Parameters
    ----------
    tables : sequence of str
        Tables of votes, beside which judgments and reasons stand.
    keys : sequence of (dataset, item_id)
        The items that the page holds.
    voters : sequence of str
        By item, the numbers of those among them that said something are the keys of what is returned.
    examples : mapping of (dataset, item_id) to Example
        Their texts, in which passages have their places, in units of UTF-16.
    ledger : str, optional
        Holds the transcripts: the messages to each judge and its replies, as pairs of role and text.
    """
    at = {name: str(i) for i, name in enumerate(voters)}
    details: dict[Item, dict[str, JsonObject]] = {}
    for detail in read_judgments(tables, items=keys):
        key = detail.dataset, detail.item_id
        rationale = {"rationale": _shorten_text(detail.rationale)} if detail.rationale else {}
        passages = [_passage_values(passage, examples.get(key)) for passage in detail.passages]
        entry = {**rationale, **({"passages": passages} if passages else {})}
        if entry and detail.voter in at:
            details.setdefault(key, {})[at[detail.voter]] = entry
    for key, voter, reason in read_item_reasons(tables, items=keys):
        if voter in at:
            details.setdefault(key, {}).setdefault(at[voter], {})["reason"] = reason
    if ledger is not None:
        with llm.History(ledger) as history:
            transcripts = history.transcripts(keys)
        for key, by_voter in transcripts.items():
            for voter in by_voter.keys() & at.keys():
                turns = [[turn.role, _with_names(turn.role, turn.text, examples.get(key))] for turn in by_voter[voter]]
                details.setdefault(key, {}).setdefault(at[voter], {})["transcript"] = turns
    return details


def _with_names(role: str, text: str, example: Example | None) -> str:
    """Return the text of a message with the names of the source and the claim in their places."""
    # They stand in the item already: in each prompt they would leave room for few items. A short one is left, for the
    # prompt may hold its words elsewhere; and a reply is shown to the letter.
    if example is not None and role != "assistant":
        for own, name in ((example.source, "[the source]"), (example.claim, "[the claim]")):
            text = text.replace(own, name) if len(own) >= MIN_CHARACTERS_TO_NAME else text
    return _shorten_text(text)


def _passage_values(passage: Passage, example: Example | None) -> JsonObject:
    """Return a passage; where the text is known, its place in units of UTF-16, as scripts count."""
    values = {"text": _shorten_text(passage.text), "verdict": passage.verdict, "about": passage.about}
    fields = {name: value for name, value in values.items() if value}
    text = None if example is None or passage.where is None else getattr(example, passage.where)
    if text is None or passage.start is None or passage.end is None:
        return fields
    if not 0 <= passage.start < passage.end <= min(len(text), MAX_TEXT_CHARACTERS):
        return fields
    places = (passage.start, passage.end)
    start, end = (len(text[:at].encode("utf-16-le", "surrogatepass")) // 2 for at in places)
    fields.pop("text", None)
    return fields | {"where": passage.where, "start": start, "end": end}


def _shorten_text(text: str) -> str:
    beyond = len(text) - MAX_TEXT_CHARACTERS
    return text if beyond <= 0 else f"{text[:MAX_TEXT_CHARACTERS]}\n[cut here: {beyond:,} characters more]"
