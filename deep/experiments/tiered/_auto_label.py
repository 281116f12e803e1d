"""The automatic labels of CogniBench: sentences typed first, then two prompts, each in several samples."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from deep._checks import check_choice
from deep.experiments.tiered._reading import CRITERIA, TIERS, LabelTally, TurnReading
from deep.experiments.tiered._reviewed_turn import ReviewedTurn
from deep.experiments.tiered._sentence_judge import SentenceJudge
from deep.experiments.tiered._wording import AUTO_LABELS, LABELS, UNMARKED, Contrast, auto_contrasts, task_text, wording
from deep.judge import Program
from deep.records import Example

ASKED: Mapping[str, tuple[str, ...]] = {"type": LABELS["type"], **AUTO_LABELS}


@dataclass(frozen=True, kw_only=True)
class AutoLabelJudge(SentenceJudge):
    """Labels a reply sentence by sentence as the pipeline of CogniBench-L does: a classifier, then two prompts.

    Each sentence is typed factual or cognitive once. One prompt then asks of all sentences whether they are faithful,
    hallucinated or irrelevant, and decides on the factual ones; another asks for the tier of the cognitive ones, which
    decides on these. Both prompts are asked several times. Strategy after [1]_; the wording is deep's own. The
    annotators' protocol, with a question for each criterion, is :class:`TieredJudge`.

    Parameters
    ----------
    level : {'grounded', 'irrefutable', 'rational'}, default='grounded'
        The criterion that cognitive statements must meet for the reply to be consistent.
    samples : int, default=5
        Replies to each of the two prompts; above 1 they are drawn at temperature 1.
    threshold : int, optional
        A sentence fails where so many samples say so. Default: the majority.
    contrasts : tuple of Contrast, optional
        Examples to show; default: those that come with deep.

    Attributes
    ----------
    name : str
        ``auto:`` and the level.
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
    >>> from deep.experiments.tiered import AutoLabelJudge
    >>> said = {"type": "cognitive", "support": "hallucinated", "tier": "speculative"}
    >>> def ask(question):
    ...     label = said[question.step]
    ...     return SimpleNamespace(text=f"<{label}>Skiers will be glad.</{label}>", finish_reason="stop", refusal=None,
    ...                            model="tiny", tokens={})
    >>> judgment = run_program(AutoLabelJudge().program(Example("It snowed.", "Skiers will be glad.", "1")), ask)
    >>> judgment.vote, judgment.evidence
    (0, ('speculative: Skiers will be glad.',))
    """

    level: str = "grounded"
    contrasts: tuple[Contrast, ...] | None = None

    def __post_init__(self) -> None:
        check_choice(self.level, CRITERIA, "level")
        super().__post_init__()

    @property
    def name(self) -> str:
        """``auto:`` and the level."""
        return f"auto:{self.level}"

    @property
    def _content(self) -> Mapping[str, object]:
        return {
            "reading": 1,
            "labels": ASKED,
            "level": self.level,
            "texts": [wording()["system"], wording()["form"], *map(task_text, ASKED)],
            "contrasts": [asdict(contrast) for contrast in self._contrasts],
        }

    @property
    def _contrasts(self) -> tuple[Contrast, ...]:
        return auto_contrasts() if self.contrasts is None else self.contrasts

    def most_calls(self, example: Example) -> int:  # noqa: ARG002  the bound holds for every example
        """Return the most calls that one example can take."""
        return 1 + 2 * self.samples

    def read(
        self,
        source: str,
        claim: str,
        sentences: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
    ) -> Program[TurnReading]:
        """Return the questions about one reply, as a program that ends with a verdict for each sentence.

        Parameters
        ----------
        source : str
            The material that the reply was written from.
        claim : str
            The reply. Not used where `sentences` are given.
        sentences : sequence of str, optional
            The sentences that the reply consists of; default: those that its text is split into.
        kinds : sequence of str, optional
            Their types, factual or cognitive, as a classifier gave them; default: the LLM is asked, once.
        """
        turn = ReviewedTurn.of(source, claim, sentences, ASKED)
        every = dict.fromkeys(range(len(turn.spans)), UNMARKED)
        if kinds is None:
            typed = yield from turn.label("type", every, self._contrasts, 1)
            known = {i: tally.kind() for i, tally in typed.items()}
        else:
            known = dict(enumerate(kinds))
        relevant = {i: UNMARKED for i in every if known[i] != "irrelevant"}
        support = yield from turn.label("support", relevant, self._contrasts, self.samples)
        for i, tally in support.items():
            known[i] = "irrelevant" if 2 * tally.labels["irrelevant"] > self.samples else known[i]
        cognitive = {i: UNMARKED for i in every if known[i] == "cognitive"}
        tiers = yield from turn.label("tier", cognitive, self._contrasts, self.samples)
        met = {i: [self._supported(tally)] for i, tally in support.items()} | {
            i: self._met(t) for i, t in tiers.items()
        }
        verdicts = (turn.verdict(i, known[i], met.get(i, []), self.level) for i in every)
        return TurnReading(tuple(verdicts), tuple(turn.unaligned), tuple(turn.replies))

    def _supported(self, tally: LabelTally) -> bool | None:
        """Return whether a factual sentence is faithful; a sample that calls it irrelevant does not object."""
        good = {"good": tally.labels["faithful"] + tally.labels["irrelevant"], "bad": tally.labels["hallucinated"]}
        return tally.relabeled(good).passes("good", "bad", self._threshold)

    def _met(self, tally: LabelTally) -> list[bool | None]:
        """Return the criteria that a cognitive sentence meets; none is looked at behind one that it fails."""
        met: list[bool | None] = []
        for below in range(1, len(TIERS)):
            bad = sum(tally.labels[tier] for tier in TIERS[:below])
            counts = {"good": tally.labels.total() - bad, "bad": bad}
            met.append(tally.relabeled(counts).passes("good", "bad", self._threshold))
            if not met[-1]:
                break
        return met


auto_irrefutable = partial(AutoLabelJudge, level="irrefutable")
auto_rational = partial(AutoLabelJudge, level="rational")
