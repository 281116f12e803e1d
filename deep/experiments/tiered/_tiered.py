"""The tiered judge of CogniBench: sentence by sentence, first typed, then checked against rising criteria."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from deep._checks import check_choice
from deep.experiments.tiered._reading import CRITERIA, LabelTally, TurnReading
from deep.experiments.tiered._reviewed_turn import CHECKED, ReviewedTurn
from deep.experiments.tiered._sentence_judge import SentenceJudge
from deep.experiments.tiered._wording import LABELS, UNMARKED, Contrast, own_contrasts, wording
from deep.judge import Program
from deep.records import Example

READING = 1
"""Raised when the same replies come to mean something else."""

_OUTCOMES = {"grounded": ("grounded", "ungrounded"), "irrefutable": ("irrefutable", "debatable")}


@dataclass(frozen=True, kw_only=True)
class TieredJudge(SentenceJudge):
    """Judges a reply sentence by sentence, in up to four tasks that each label all sentences in one call.

    Each sentence is typed irrelevant, factual or cognitive; a factual one is then faithful or invented, and a
    cognitive one is held against three criteria, of which a later one is never asked where an earlier one failed:
    rational, grounded, irrefutable. By the number that it meets it is misleading, speculative, reliable or
    irrefutable. Strategy after [1]_; the wording is deep's own.

    Parameters
    ----------
    level : {'grounded', 'irrefutable', 'rational'}, default='grounded'
        The criterion that cognitive statements must meet for the reply to be consistent.
    samples : int, default=5
        Replies to each question; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so: the lower, the more is found, the higher, the surer it is.
        Default: the majority.
    tiers : bool, default=True
        Ask for the criteria above `level` too, which tells all four tiers apart.
    contrasts : tuple of Contrast, optional
        Examples to show; default: those that come with deep.

    Attributes
    ----------
    name : str
        ``tiered:`` and the level.
    version : str
        SHA-256 of all that decides what is asked and how it is read, 64 hexadecimal digits.

    Raises
    ------
    InputError
        A parameter is out of range.

    References
    ----------
    .. [1] "CogniBench: a legal-inspired framework and dataset for assessing cognitive faithfulness of large language
       models", 2025. https://arxiv.org/abs/2505.20767

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from deep import Example
    >>> from deep.judge import run_program
    >>> from deep.experiments.tiered import TieredJudge
    >>> said = {"type": "factual", "check": "invented"}
    >>> def ask(question):
    ...     label = said[question.step]
    ...     return SimpleNamespace(text=f"<{label}>It snowed.</{label}>", finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> judgment = run_program(TieredJudge().program(Example("It rained.", "It snowed.", "1")), ask)
    >>> judgment.vote, judgment.evidence
    (0, ('invented: It snowed.',))
    """

    level: str = "grounded"
    tiers: bool = True
    contrasts: tuple[Contrast, ...] | None = None

    def __post_init__(self) -> None:
        check_choice(self.level, CRITERIA, "level")
        super().__post_init__()

    @property
    def name(self) -> str:
        """``tiered:`` and the level."""
        return f"tiered:{self.level}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {
            "reading": READING,
            "labels": LABELS,
            "level": self.level,
            "tiers": self.tiers,
            "texts": {name: text for name, text in wording().items() if name != "examples"},
            "contrasts": [asdict(contrast) for contrast in self._contrasts],
        }

    @property
    def _contrasts(self) -> tuple[Contrast, ...]:
        return own_contrasts() if self.contrasts is None else self.contrasts

    @property
    def _criteria(self) -> tuple[str, ...]:
        """The criteria that are asked about."""
        return CRITERIA if self.tiers else CRITERIA[: CRITERIA.index(self.level) + 1]

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return self.samples * (1 + len(self._criteria))

    def read(self, source: str, claim: str, sentences: Sequence[str] | None = None) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence."""
        turn = ReviewedTurn.of(source, claim, sentences, LABELS)

        def label(task: str, names: Mapping[int, str]) -> Program[dict[int, LabelTally]]:
            return turn.label(task, names, self._contrasts, self.samples)

        typed = yield from label("type", dict.fromkeys(range(len(turn.spans)), UNMARKED))
        kinds = {i: tally.kind() for i, tally in typed.items()}
        checked = yield from label("check", {i: k for i, k in kinds.items() if k in CHECKED and k})
        met: dict[int, list[bool | None]] = {
            i: [tally.passes(*CHECKED[str(kinds[i])], self._threshold)] for i, tally in checked.items()
        }
        for criterion in self._criteria[1:]:
            # All criteria so far, and only cognitive statements have more than the first.
            live = [i for i, passed in met.items() if kinds[i] == "cognitive" and all(passed)]
            answered = yield from label(criterion, dict.fromkeys(live, UNMARKED))
            for i, tally in answered.items():
                met[i].append(tally.passes(*_OUTCOMES[criterion], self._threshold))
        verdicts = (turn.verdict(i, kinds.get(i), met.get(i, []), self.level) for i in range(len(turn.spans)))
        return TurnReading(tuple(verdicts), tuple(turn.unaligned), tuple(turn.replies))


tiered_irrefutable = partial(TieredJudge, level="irrefutable")
tiered_rational = partial(TieredJudge, level="rational")
