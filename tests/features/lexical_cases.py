"""How the tests of the lexical checks ask them."""

from deep.features.lexical import LEXICAL
from deep.records import Example, Judgment


def judged(check: str, source: str, claim: str) -> Judgment:
    """Return what a check says of a claim."""
    return LEXICAL[check]().label(Example(source, claim, "1"))


def vote(check: str, source: str, claim: str) -> int:
    """Return its vote."""
    return judged(check, source, claim).vote
