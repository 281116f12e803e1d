"""The methods that look for hallucinated sentences: constant, encoders, direct prompting, and the tiered judge."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deep._files import JsonObject
from deep.experiments.cognibench._metric import Found
from deep.experiments.cognibench._turns import LabeledTurn
from deep.prompt_pool import Contrast, ListJudge, SentenceVerdict, TieredJudge, TurnReading
from deep.records import Example, Judgment

if TYPE_CHECKING:
    from deep.asking import AskOptions, Entry, ProgressCallback, RunOutcome


Judge = ListJudge | TieredJudge

VERDICT_OF_VOTE = {1: False, 0: True, -1: None}


@dataclass(frozen=True, slots=True)
class Method:
    """A method and its findings.

    Parameters
    ----------
    group : {'constant', 'NLI', 'direct', 'tiered'}
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

    judge: Judge
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


def read_encoder(
    name: str, turns: Sequence[LabeledTurn], label_many: Callable[[Sequence[Example]], Sequence[Judgment]]
) -> Method:
    """Return the findings of an encoder that reads each sentence beside the knowledge: hallucinated if not entailed."""
    examples = [
        Example(turn.knowledge, text, f"{turn.turn_id}.{i}") for turn in turns for i, text in enumerate(turn.texts)
    ]
    votes = iter(label_many(examples))
    found = [[VERDICT_OF_VOTE[next(votes).vote] for _ in turn.sentences] for turn in turns]
    return Method("NLI", "Pairwise NLI", name, found)


def asked_judges(
    models: Sequence[str],
    *,
    level: str,
    samples: int,
    thresholds: Sequence[int],
    contrasts: tuple[Contrast, ...] | None,
    tiers: bool,
    ablation: bool,
) -> list[AskedJudge]:
    """Return every judge of a run, each once."""
    tiered: JsonObject = {"level": level, "contrasts": contrasts, "tiers": tiers}
    asked = []
    for model in models:
        asked.append(AskedJudge(ListJudge(), model, "direct", "Direct prompting"))
        for threshold in thresholds:
            name = f"Tiered (threshold = {threshold})"
            judge = TieredJudge(samples=samples, threshold=threshold, **tiered)
            asked.append(AskedJudge(judge, model, "tiered", name, name))
        if ablation:
            alone = TieredJudge(samples=1, **tiered)
            listed = ListJudge(samples=samples, threshold=thresholds[0])
            asked.append(AskedJudge(alone, model, "tiered", "Tiered, one sample", "- Sampling"))
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
) -> tuple["RunOutcome", list[Method]]:
    """Ask all judges about all turns; no method where the run was stopped."""
    from deep.asking import ProgramId, run_programs

    def programs() -> "Iterator[Entry]":
        for one in asked:
            for turn in turns:
                identity = ProgramId(one.judge.voter(one.model), "cognibench", turn.turn_id)
                yield identity, one.model, one.judge.read(turn.source, turn.response, turn.texts)

    outcome, values = run_programs(programs, options, endpoint=endpoint, progress=progress)
    if outcome.stopped is not None:
        return outcome, []
    methods = []
    for one in asked:
        readings = [values[ProgramId(one.judge.voter(one.model), "cognibench", turn.turn_id)] for turn in turns]
        methods.append(_method(one, turns, readings))
    return outcome, methods


def _method(asked: AskedJudge, turns: Sequence[LabeledTurn], readings: Sequence[TurnReading]) -> Method:
    verdicts = [reading.sentences for reading in readings]
    found = [[_found(sentence) for sentence in sentences] for sentences in verdicts]
    unaligned = [f"{turn.turn_id}, {text}" for turn, r in zip(turns, readings, strict=True) for text in r.unaligned]
    shown = verdicts if asked.group == "tiered" else None
    return Method(asked.group, asked.name, asked.model, found, shown, tuple(unaligned), asked.ablation)


def _found(sentence: SentenceVerdict) -> bool | None:
    """Return whether a sentence is hallucinated; one that the judge holds to be irrelevant is not."""
    if sentence.kind == "irrelevant":
        return False
    return None if sentence.consistent is None else not sentence.consistent
