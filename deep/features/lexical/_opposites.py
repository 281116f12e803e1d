"""Opposites: the claim says up where the matching sentence of the source says down."""

from collections.abc import Iterable
from typing import ClassVar

from deep.features.lexical._analysis import Pair, Text
from deep.features.lexical._base import LexicalCheck, abstained
from deep.features.lexical._words import stem
from deep.records import Judgment

__all__ = ["Opposites"]

AXES = tuple(
    (tuple(one.split()), tuple(other.split()))
    for one, other in (
        (
            "accelerate boost climb escalate expand expansion gain grew grow growth higher highest improve improvement "
            "increase jump raise rise risen rose soar surge upward",
            "cut decline decrease diminish downward drop dwindle fall fell lower lowest plunge reduce reduction shrank "
            "shrink slow slump weaken worsen",
        ),
        (
            "big considerable dramatic enormous extensive huge immense large major massive significant substantial",
            "insignificant limited little marginal minimal minor modest negligible slight small tiny trivial",
        ),
        ("exceed more most", "fewer fewest least less"),
        (
            "advantage beneficial benefit best better effective efficient excellent favorable favourable good positive "
            "promising success successful superior useful valuable",
            "bad damaging detrimental disadvantage disappointing failure harm harmful ineffective inefficient inferior "
            "negative poor unfavorable unfavourable unsuccessful useless worse worst worthless",
        ),
        (
            "confident delighted enjoy glad happy love optimistic pleased praise satisfied",
            "angry criticise criticize disappointed dislike displeased dissatisfied hate pessimistic sad unhappy upset",
        ),
        ("after following later subsequent", "before earlier preceding previous prior"),
        ("next upcoming", "last previous"),
        (
            "accept agree agreement allow approval approve enable endorse permit support",
            "against ban deny disagree disagreement disapprove forbid forbidden oppose opposition prevent prohibit "
            "refuse reject",
        ),
        ("able can capable possible", "can't cannot couldn't impossible incapable unable"),
        ("advise encourage promote recommend", "deter discourage dissuade warn"),
        ("include including", "exclude excluding"),
        ("succeed victory win winning won", "defeat fail lose losing lost"),
        ("acquire bought buy buying purchase", "sale sell selling sold"),
        ("easier easy effortless simple simpler straightforward", "challenging complex complicated difficult harder"),
        ("fast faster fastest quick rapid", "slow slower slowest"),
        ("powerful robust strength strong stronger", "fragile weak weaker weakness"),
        ("costly expensive", "affordable cheap cheaper inexpensive"),
        ("latest modern new newer newest young younger", "ancient old older oldest outdated"),
        ("compulsory mandatory obligatory required", "optional unnecessary voluntary"),
        ("certain confirmed definite proven sure", "doubtful uncertain unclear unconfirmed unproven unsure"),
        ("all always entire every everyone everything", "never nobody none nothing partial"),
        ("identical same similar", "different dissimilar distinct unlike"),
        ("accurate correct true", "false inaccurate incorrect untrue wrong"),
        ("public", "confidential private secret"),
        ("domestic indoor inner inside internal local", "external foreign international outdoor outer outside"),
        ("alive surviving survive survivor", "dead death deceased die killed"),
        ("convicted guilty", "acquitted cleared innocent"),
        ("appoint employ hire", "dismiss resign sack"),
        ("hot warm", "cold cool"),
        ("long longer longest", "brief short shorter shortest"),
        ("safe secure", "dangerous hazardous insecure risky unsafe"),
        ("assist help", "hamper hinder impede"),
        ("legal lawful", "illegal unlawful"),
        ("automated automatic", "manual"),
        ("maximum most", "least minimum"),
        ("remain retain stay", "abandon leave quit"),
        ("north northern", "south southern"),
        ("east eastern", "west western"),
    )
)
"""Two poles each. A word of one denies those of the other; words with a second, unrelated sense are left out."""


def _poles() -> dict[str, tuple[int, ...]]:
    """Return the poles of every stem: an axis and, by its sign, a side of it."""
    poles: dict[str, tuple[int, ...]] = {}
    for axis, sides in enumerate(AXES, 1):
        for sign, words in zip((1, -1), sides, strict=True):
            for s in sorted({stem(word) for word in words}):
                poles[s] = (*poles.get(s, ()), sign * axis)
    return poles


POLES = _poles()


class Opposites(LexicalCheck):
    """Votes 0 where a word of the claim has its opposite, and not itself, in the best matching sentences, 1 where not.

    Only words of :data:`AXES` count, and a sentence of the claim with both sides of an axis says nothing of it.
    """

    name: ClassVar[str] = "opposites"
    look: ClassVar[str] = "words of which the 3 best source sentences have only the opposite: rise, fall; more, less"
    silent: ClassVar[str] = "the claim has no such word; the source's sentences have neither it nor its opposite"

    def _judge(self, pair: Pair) -> Judgment:
        same, opposite = [], []
        for number, (_, best) in enumerate(pair.aligned):
            claimed = _poles_in(pair.claim, [number])
            said = _poles_in(pair.source, best) if claimed else {}
            for pole, word in claimed.items():
                if -pole in claimed:
                    continue
                if pole in said:
                    same.append(word)
                elif -pole in said:
                    opposite.append(f"{word}: {said[-pole]}")
        if opposite:
            rationale = f"Where the source says otherwise (claim: source): {', '.join(opposite)}."
            score = len(same) / len(same + opposite)
            return Judgment(0, score=score, rationale=rationale, evidence=tuple(opposite))
        if same:
            said_too = ", ".join(same)
            return Judgment(1, score=1.0, rationale=f"The source says so too: {said_too}.", evidence=tuple(same))
        return abstained("The claim has no word whose opposite is known and that the source touches.")


def _poles_in(text: Text, sentences: Iterable[int]) -> dict[int, str]:
    """Return the poles that some sentences name, each with the first word that does."""
    found: dict[int, str] = {}
    for number in sentences:
        for word, s in zip(text.sentence(number), text.sentence_stems(number), strict=True):
            for pole in POLES.get(s, ()):
                found.setdefault(pole, word)
    return found
