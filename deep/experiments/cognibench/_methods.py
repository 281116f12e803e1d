"""The methods that look for hallucinated sentences: constant, encoders, direct prompting, and the tiered judge."""

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, product
from pathlib import Path
from typing import TYPE_CHECKING

from deep._util.files import JsonObject
from deep.asking import ProgramEntry, ProgramId
from deep.console import check_draws, check_models
from deep.datasets import file_beside, read_judgments, read_rows, read_votes
from deep.exceptions import InputError
from deep.experiments import study, tiered
from deep.experiments.cognibench._turns import JUDGES, SentenceFlags, Turn, letters_of, place_of
from deep.experiments.printed import load_tag_judge
from deep.prompt_pool import Span
from deep.records import ABSTAIN, Example

if TYPE_CHECKING:
    from deep.integrations.encoders import EncoderJudge


# Whether a sentence is hallucinated, by the vote on it: 1, consistent, is not; without a vote that is left open.
HALLUCINATED_BY_VOTE = {1: False, 0: True, -1: None}


@dataclass(frozen=True, slots=True)
class Method:
    """A method and its findings.

    Parameters
    ----------
    group : {'constant', 'NLI', 'spans', 'direct', 'tiered', 'auto', 'printed prompt'}
        What kind of method it is: the column ``group`` of the tables.
    name : str
        As a table's row calls it.
    model : str
        Empty for a constant.
    found : sequence of sequence of (bool or None)
        Whether it calls each sentence hallucinated, a row a turn; None where it leaves that open.
    verdicts : sequence of sequence of SentenceVerdict, optional
        Where the method says more than hallucinated or not.
    unaligned : tuple of str
        The labels that its replies gave to text outside the sentences.
    ablation : str
        The row of Table 5 that it fills; empty where it fills none.
    """

    group: str
    name: str
    model: str
    found: SentenceFlags
    verdicts: Sequence[Sequence[tiered.SentenceVerdict]] | None = None
    unaligned: tuple[str, ...] = ()
    ablation: str = ""

    @property
    def title(self) -> str:
        """Name and model."""
        return f"{self.name} ({self.model})" if self.model else self.name


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """A judge, the model that it asks, and the row that it fills.

    Parameters
    ----------
    judge : SentenceJudge
        It looks for hallucinated sentences.
    model : str
        The LLM that it asks.
    group, name, ablation : str
        As of :class:`Method`.
    """

    judge: tiered.SentenceJudge
    model: str
    group: str
    name: str
    ablation: str = ""


def constants(turns: Sequence[Turn]) -> list[Method]:
    """Return the two methods that look at nothing."""
    return [
        Method("constant", name, "", [[answer] * len(turn.sentences) for turn in turns])
        for name, answer in (("always faithful", False), ("always hallucinated", True))
    ]


def read_encoder(encoder: "EncoderJudge", turns: Sequence[Turn], neutral: str) -> list[Method]:
    """Return the findings of an encoder that reads each sentence beside the knowledge.

    `neutral` says what a sentence is that the knowledge neither entails nor contradicts. Where it is 'hallucinated', a
    sentence that is not entailed counts as hallucinated. Where it is 'faithful', as in the paper, only one does that
    some part of the knowledge contradicts and none entails; a model without a label for contradictions has no such
    row. 'both' gives both rows.
    """
    examples = [
        Example(turn.knowledge, text, f"{turn.turn_id}.{i}") for turn in turns for i, text in enumerate(turn.texts)
    ]
    entailed, name = encoder.label_many(examples), encoder.voter()
    methods = []
    if neutral != "faithful":
        result = _split_by_turn([HALLUCINATED_BY_VOTE[judgment.vote] for judgment in entailed], turns)
        methods.append(Method("NLI", "Pairwise NLI, not entailed", name, result))
    contradiction = encoder.contradiction()
    if neutral != "hallucinated" and contradiction is not None:
        against = contradiction.label_many(examples)
        # The first vote is 1 where some part entails, the second where some part contradicts.
        pairs = zip(entailed, against, strict=True)
        bad = [None if -1 in (e.vote, c.vote) else (e.vote, c.vote) == (0, 1) for e, c in pairs]
        methods.append(Method("NLI", "Pairwise NLI, contradicted", name, _split_by_turn(bad, turns)))
    return methods


def _split_by_turn(flags: Sequence[bool | None], turns: Sequence[Turn]) -> SentenceFlags:
    """Return the flags of all sentences in a row each turn."""
    values = iter(flags)
    return [[next(values) for _ in turn.sentences] for turn in turns]


def asked_judges(args: argparse.Namespace) -> list[AskedJudge]:
    """Return every judge that the options of a run name, each once; none without an LLM."""
    wrong = [name for name in args.judge if name not in JUDGES]
    if wrong:
        raise InputError(f"`judge` must be of {', '.join(sorted(JUDGES))}. Got {wrong[0]!r}.")
    models, thresholds = check_models(args) if args.llm else (), _thresholds(args)
    contrasts = None if args.examples is None else tiered.load_contrasts(args.examples)
    staged: dict[str, Callable[..., tiered.SentenceJudge]] = {
        "tiered": partial(tiered.TieredJudge, level=args.level, contrasts=contrasts, tiers=not args.no_tiers),
        "auto": partial(tiered.AutoLabelJudge, level=args.level, contrasts=contrasts),
    }
    several = {"samples": args.samples}
    judges = []
    for model in models:
        if "listed" in args.judge:
            judges.append(AskedJudge(tiered.ListJudge(), model, "direct", "Direct prompting"))
        for group in [group for group in staged if group in args.judge]:
            for threshold in thresholds:
                name = f"{group.capitalize()} (threshold = {threshold})"
                judges.append(AskedJudge(staged[group](threshold=threshold, **several), model, group, name, name))
            if args.ablation:
                name = "- Sampling" if group == "tiered" else f"- Sampling, {group}"
                alone = f"{group.capitalize()}, one sample"
                judges.append(AskedJudge(staged[group](samples=1), model, group, alone, name))
        for path, threshold in product(args.prompt, thresholds):
            printed = load_tag_judge(path, threshold=threshold, **several)
            name = f"{printed.printed.id} (threshold = {threshold})"
            judges.append(AskedJudge(printed, model, "printed prompt", name, name))
        if args.ablation:
            listed = tiered.ListJudge(threshold=thresholds[0], **several)
            # The row of Table 5 without CFP: direct prompting, with as many samples as the others have.
            judges.append(AskedJudge(listed, model, "direct", f"Direct prompting, {args.samples} samples", "- CFP"))
    unique: dict[str, AskedJudge] = {}
    for one in judges:
        unique.setdefault(one.judge.voter(one.model), one)
    return list(unique.values())


def _thresholds(args: argparse.Namespace) -> list[int]:
    """Return the numbers of samples that must object; by default the majority."""
    check_draws(args, "samples")
    wrong = [word for word in args.threshold if not word.isdecimal() or not 1 <= int(word) <= args.samples]
    if wrong:
        raise InputError(f"`threshold` must be a whole number from 1 to {args.samples}. Got {wrong[0]!r}.")
    return [int(word) for word in args.threshold] or [args.samples // 2 + 1]


def ask_judges(
    args: argparse.Namespace, turns: Sequence[Turn], judges: Sequence[AskedJudge], kinds: Sequence[Sequence[str]] | None
) -> Iterator[Method]:
    """Ask all judges about all turns, and yield what each found; `kinds` as in :func:`ask_about`."""
    if not judges:
        return
    result = ask_about(args, [(one.judge, one.model) for one in judges], turns, kinds, dataset="cognibench")
    for judge, readings in zip(judges, result, strict=True):
        verdicts = [reading.sentences for reading in readings]
        flags = [[_is_hallucinated(sentence) for sentence in sentences] for sentences in verdicts]
        unaligned = [f"{turn.turn_id}, {text}" for turn, r in zip(turns, readings, strict=True) for text in r.unaligned]
        shown = verdicts if judge.group in ("auto", "tiered") else None
        yield Method(judge.group, judge.name, judge.model, flags, shown, tuple(unaligned), judge.ablation)


def ask_about(
    args: argparse.Namespace,
    judges: Sequence[tuple[tiered.SentenceJudge, str]],
    turns: Sequence[Turn],
    kinds: Sequence[Sequence[str]] | None,
    *,
    dataset: str,
) -> list[list[tiered.TurnReading]]:
    """Ask judges, each by its LLM, about all turns, and return what each says of them.

    `kinds` are the types of the sentences for the automatic pipeline, which asks for them where there are none;
    `dataset` is what the ledger calls the turns.
    """

    def programs() -> Iterator[ProgramEntry]:
        for judge, llm in judges:
            for i, turn in enumerate(turns):
                identity = ProgramId(judge.voter(llm), dataset, turn.turn_id)
                if kinds is not None and isinstance(judge, tiered.AutoLabelJudge):
                    yield identity, llm, judge.read(turn.source, turn.response, turn.texts, kinds[i])
                else:
                    yield identity, llm, judge.read(turn.source, turn.response, turn.texts)

    values = study.ask_programs(args, programs)
    return [[values[ProgramId(judge.voter(llm), dataset, turn.turn_id)] for turn in turns] for judge, llm in judges]


def _is_hallucinated(sentence: tiered.SentenceVerdict) -> bool | None:
    """Return whether a sentence is hallucinated; one that the judge holds to be irrelevant is not."""
    if sentence.kind == "irrelevant":
        return False
    return None if sentence.consistent is None else not sentence.consistent


# Columns of a file of spans; no row has all.
COLUMNS = ("turn_id", "item_id", "start", "end", "text", "spans")

# Verdicts of judges on the part of a response that they found wanting.
BAD_VERDICTS = ("FAIL", "hallucinated", "invented", "misleading", "speculative", "unsupported")


def read_spans(entry: str, turns: Sequence[Turn]) -> list[Method]:
    """Return the findings of other detectors: a sentence is hallucinated where one of their spans touches it.

    Parameters
    ----------
    entry : str
        ``NAME=FILE``, or a file that is named after itself. CSV, JSONL or Parquet, a span a row: `turn_id` (or
        `item_id`), and `start` and `end` in characters of the response, or its `text`; a row without either says
        that the turn was read and nothing found. In JSON Lines a row may have a list `spans` of such objects, of
        pairs, or of texts. Or a table of votes on the turns: each voter whose evidence lies in the response.
    turns : sequence of Turn
        Those without a row are left open.

    Raises
    ------
    InputError
        The file cannot be read, no row is of these turns, or a span is none of the response.
    """
    name, _, place = entry.rpartition("=")
    path = Path(place)
    if file_beside(path, "judgments").exists():
        return _methods_of_voters(name, place, turns)
    responses = {turn.turn_id: turn.response for turn in turns}
    result: dict[str, list[Span]] = {}
    unaligned = []
    for number, (_, row) in enumerate(read_rows(path, COLUMNS, param="spans"), start=1):
        turn_id, at = str(row.get("turn_id") or row.get("item_id") or ""), f"in row {number} of {place!r}"
        if not turn_id:
            raise InputError(f"`spans` must name a turn_id in every row. Got none {at}.")
        if turn_id in responses:
            letters = result.setdefault(turn_id, [])
            for span in _spans_of(row, at):
                placed = _letters_between(responses[turn_id], span, at)
                letters += [placed] if placed else []
                unaligned += [] if placed else [f"{turn_id}, {span!r}"]
    if not result:
        raise InputError(f"`spans` must have rows of the turns that are measured. Got none in {place!r}.")
    flags = [_sentences_touched(turn, result.get(turn.turn_id)) for turn in turns]
    return [Method("spans", name or path.stem, "", flags, unaligned=tuple(unaligned))]


def _methods_of_voters(name: str, place: str, turns: Sequence[Turn]) -> list[Method]:
    """Return the findings of the voters that pointed at parts of a response; a turn without a vote is left open."""
    votes = read_votes(place)
    row_of = {item: row for row, item in enumerate(votes.item_ids)}
    spans: dict[str, dict[str, list[Span]]] = {}
    responses = {turn.turn_id: turn.response for turn in turns}
    for detail in read_judgments(place):
        if detail.item_id in responses:
            result = spans.setdefault(detail.voter, {}).setdefault(detail.item_id, [])
            for passage in detail.passages:
                if passage.where == "claim" and passage.verdict in BAD_VERDICTS and passage.start != passage.end:
                    at = f"of {detail.voter!r} in {place!r}"
                    span = _letters_between(responses[detail.item_id], [passage.start, passage.end], at)
                    result += [span] if span else []
    methods = []
    for voter, of_turns in spans.items():
        if any(of_turns.values()):
            cast = votes.votes[:, votes.voter_names.index(voter)]
            with_vote = {turn: some for turn, some in of_turns.items() if cast[row_of[turn]] != ABSTAIN}
            flags = [_sentences_touched(turn, with_vote.get(turn.turn_id)) for turn in turns]
            # NAME of NAME=FILE names the row, and the voter stands where models do; without it the voter names the row.
            methods.append(Method("spans", name or voter, voter if name else "", flags))
    if not methods:
        raise InputError(
            f"`spans` must have a voter that points at parts of a response. Got none in {place!r}. "
            "Judges such as stepwise, direct, listed and tiered do."
        )
    return methods


def _spans_of(row: Mapping[str, object], at: str) -> Iterable[object]:
    """Return the spans of a row, as they are written there."""
    listed = row.get("spans")
    if listed not in (None, ""):
        if not isinstance(listed, list):
            raise InputError(f"`spans` must be a list. Got {listed!r} {at}.")
        return listed
    empty = row.get("start") in (None, "") and row.get("text") in (None, "")
    return [] if empty else [{name: row.get(name) for name in ("start", "end", "text")}]


def _letters_between(response: str, span: object, at: str) -> Span | None:
    """Return the place of a span among the letters and digits of a response; None where its text is not in it."""
    fields: JsonObject = span if isinstance(span, dict) else {"text": span}
    if isinstance(span, list | tuple) and len(span) == 2:
        fields = {"start": span[0], "end": span[1]}
    start, end = (_whole(fields.get(name)) for name in ("start", "end"))
    if start is not None and end is not None and 0 <= start < end <= len(response):
        before = list(accumulate((len(letters_of(character)) for character in response), initial=0))
        return before[start], before[end]
    text = fields.get("text")
    if start is None and isinstance(text, str) and letters_of(text):
        place = letters_of(response).find(letters_of(text))
        return (place, place + len(letters_of(text))) if place >= 0 else None
    raise InputError(f"`spans` must lie in the response, from 0 to {len(response)}. Got {span!r} {at}.")


def _whole(value: object) -> int | None:
    # `type` and not `isinstance`: True is no place.
    return int(value) if type(value) is int or (isinstance(value, str) and re.fullmatch(r"\d+", value)) else None


def _sentences_touched(turn: Turn, spans: Sequence[Span] | None) -> list[bool | None]:
    if spans is None:
        return [None] * len(turn.sentences)
    whole, at = letters_of(turn.response), 0
    touched: list[bool | None] = []
    for text in map(letters_of, turn.texts):
        start = place_of(text, whole, at)
        if start is None:
            # A sentence that is not in the response is touched by no span if there is none; else that stays open.
            touched.append(None if spans else False)
            continue
        end = at = min(start + len(text), len(whole))
        touched.append(any(first < end and last > start for first, last in spans))
    return touched
