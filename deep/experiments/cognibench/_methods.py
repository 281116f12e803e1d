"""The methods that look for hallucinated sentences: constant, encoders, direct prompting, and the tiered judge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

from deep.experiments.cognibench._metric import Found
from deep.experiments.cognibench._turns import LabeledTurn
from deep.experiments.printed import load_tag_judge
from deep.experiments.tiered import (
    AutoLabelJudge,
    Contrast,
    ListJudge,
    SentenceJudge,
    SentenceVerdict,
    TieredJudge,
    TurnReading,
)
from deep.judge import Program
from deep.records import Example

if TYPE_CHECKING:
    from deep.asking import AskOptions, Entry, ProgressCallback, RunOutcome
    from deep.features.encoders import EncoderJudge


JUDGES = ("listed", "tiered", "auto")
"""Direct prompting, the annotators' protocol, and the automatic pipeline."""

NEUTRAL = ("both", "faithful", "hallucinated")
"""What a sentence is that an inference model neither entails nor contradicts; both are two rows."""

VERDICT_OF_VOTE = {1: False, 0: True, -1: None}


@dataclass(frozen=True, slots=True)
class Method:
    """A method and its findings.

    Parameters
    ----------
    group : {'constant', 'NLI', 'spans', 'direct', 'tiered', 'auto', 'printed prompt'}
    name : str
        As a table's row calls it.
    model : str
        Empty for a constant.
    found : sequence of sequence of (bool or None)
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
    found: Found
    verdicts: Sequence[Sequence[SentenceVerdict]] | None = None
    unaligned: tuple[str, ...] = ()
    ablation: str = ""

    @property
    def title(self) -> str:
        """Name and model."""
        return f"{self.name} ({self.model})" if self.model else self.name


@dataclass(frozen=True, slots=True)
class AskedJudge:
    """A judge, the model that it asks, and the row that it fills."""

    judge: SentenceJudge
    model: str
    group: str
    name: str
    ablation: str = ""


def constants(turns: Sequence[LabeledTurn]) -> list[Method]:
    """Return the two methods that look at nothing."""
    return [
        Method("constant", name, "", [[answer] * len(turn.sentences) for turn in turns])
        for name, answer in (("always faithful", False), ("always hallucinated", True))
    ]


def read_encoder(encoder: "EncoderJudge", turns: Sequence[LabeledTurn], neutral: str) -> list[Method]:
    """Return the findings of an encoder that reads each sentence beside the knowledge.

    Where neutral is hallucinated, every sentence is that is not entailed. Where it is faithful, as in the paper, only
    those are that some part of the knowledge contradicts and none entails, and a model without a label for
    contradictions has no such row.
    """
    examples = [
        Example(turn.knowledge, text, f"{turn.turn_id}.{i}") for turn in turns for i, text in enumerate(turn.texts)
    ]
    entailed, name = encoder.label_many(examples), encoder.voter()
    methods = []
    if neutral != "faithful":
        found = _by_turn([VERDICT_OF_VOTE[judgment.vote] for judgment in entailed], turns)
        methods.append(Method("NLI", "Pairwise NLI, not entailed", name, found))
    contradiction = encoder.contradiction()
    if neutral != "hallucinated" and contradiction is not None:
        against = contradiction.label_many(examples)
        pairs = zip(entailed, against, strict=True)
        bad = [None if -1 in (e.vote, c.vote) else (e.vote, c.vote) == (0, 1) for e, c in pairs]
        methods.append(Method("NLI", "Pairwise NLI, contradicted", name, _by_turn(bad, turns)))
    return methods


def _by_turn(found: Sequence[bool | None], turns: Sequence[LabeledTurn]) -> Found:
    values = iter(found)
    return [[next(values) for _ in turn.sentences] for turn in turns]


def asked_judges(
    models: Sequence[str],
    *,
    judges: Sequence[str],
    level: str,
    samples: int,
    thresholds: Sequence[int],
    contrasts: tuple[Contrast, ...] | None,
    tiers: bool,
    ablation: bool,
    prompts: Sequence[str] = (),
) -> list[AskedJudge]:
    """Return every judge of a run, each once."""
    staged: dict[str, Callable[..., SentenceJudge]] = {
        "tiered": partial(TieredJudge, level=level, contrasts=contrasts, tiers=tiers),
        "auto": partial(AutoLabelJudge, level=level, contrasts=contrasts),
    }
    asked = []
    for model in models:
        asked += [AskedJudge(ListJudge(), model, "direct", "Direct prompting")] if "listed" in judges else []
        for group in [group for group in staged if group in judges]:
            for threshold in thresholds:
                name = f"{group.capitalize()} (threshold = {threshold})"
                judge = staged[group](samples=samples, threshold=threshold)
                asked.append(AskedJudge(judge, model, group, name, name))
            if ablation:
                name = "- Sampling" if group == "tiered" else f"- Sampling, {group}"
                alone = f"{group.capitalize()}, one sample"
                asked.append(AskedJudge(staged[group](samples=1), model, group, alone, name))
        for path, threshold in product(prompts, thresholds):
            printed = load_tag_judge(path, samples=samples, threshold=threshold)
            name = f"{printed.printed.id} (threshold = {threshold})"
            asked.append(AskedJudge(printed, model, "printed prompt", name, name))
        if ablation:
            listed = ListJudge(samples=samples, threshold=thresholds[0])
            asked.append(AskedJudge(listed, model, "direct", f"Direct prompting, {samples} samples", "- CFP"))
    unique: dict[str, AskedJudge] = {}
    for one in asked:
        unique.setdefault(one.judge.voter(one.model), one)
    return list(unique.values())


def ask_judges(
    turns: Sequence[LabeledTurn],
    asked: Sequence[AskedJudge],
    options: "AskOptions",
    endpoint: str,
    progress: "ProgressCallback | None" = None,
    kinds: Sequence[Sequence[str]] | None = None,
) -> tuple["RunOutcome", list[Method]]:
    """Ask all judges about all turns; no method where the run was stopped.

    `kinds` are the types of the sentences for the automatic pipeline, which asks for them where there are none.
    """
    from deep.asking import ProgramId, run_programs

    def programs() -> "Iterator[Entry]":
        for one in asked:
            for i, turn in enumerate(turns):
                identity = ProgramId(one.judge.voter(one.model), "cognibench", turn.turn_id)
                yield identity, one.model, _reading(one.judge, turn, None if kinds is None else kinds[i])

    outcome, values = run_programs(programs, options, endpoint=endpoint, progress=progress)
    if outcome.stopped is not None:
        return outcome, []
    methods = []
    for one in asked:
        readings = [values[ProgramId(one.judge.voter(one.model), "cognibench", turn.turn_id)] for turn in turns]
        methods.append(_method(one, turns, readings))
    return outcome, methods


def _reading(judge: SentenceJudge, turn: LabeledTurn, kinds: Sequence[str] | None) -> Program[TurnReading]:
    if isinstance(judge, AutoLabelJudge):
        return judge.read(turn.source, turn.response, turn.texts, kinds)
    return judge.read(turn.source, turn.response, turn.texts)


def _method(asked: AskedJudge, turns: Sequence[LabeledTurn], readings: Sequence[TurnReading]) -> Method:
    verdicts = [reading.sentences for reading in readings]
    found = [[_found(sentence) for sentence in sentences] for sentences in verdicts]
    unaligned = [f"{turn.turn_id}, {text}" for turn, r in zip(turns, readings, strict=True) for text in r.unaligned]
    shown = verdicts if asked.group in ("auto", "tiered") else None
    return Method(asked.group, asked.name, asked.model, found, shown, tuple(unaligned), asked.ablation)


def _found(sentence: SentenceVerdict) -> bool | None:
    """Return whether a sentence is hallucinated; one that the judge holds to be irrelevant is not."""
    if sentence.kind == "irrelevant":
        return False
    return None if sentence.consistent is None else not sentence.consistent
