"""Places of evidence: each different piece is looked for once, and no more of them than somebody reads."""

import pytest

from deep.asking._write import MAX_SOUGHT_LENGTH, PassageFinder, locate_evidence
from deep.prompt_pool import SearchableText
from deep.records import Example, Judgment


@pytest.fixture
def sought(monkeypatch):
    """Return the quotations that were looked for in a text."""
    asked, find = [], SearchableText.find

    def counted(self, quotation, start=0):
        asked.append(quotation)
        return find(self, quotation, start)

    monkeypatch.setattr(SearchableText, "find", counted)
    return asked


def test_a_piece_that_comes_often_is_looked_for_once(sought):
    """A thousand times the same number of a claim is one search, and has one place."""
    judgment = Judgment(0, evidence=("1902", "1903") * 1000)
    result = locate_evidence(judgment, PassageFinder(Example("In 1902.", "Built in 1903.", "1")), claim_first=True)
    assert {(piece.text, piece.where, piece.start) for piece in result} == {("1902", "source", 3), ("1903", "claim", 9)}
    assert len(result) == 2000
    assert sought == ["1902", "1902", "1903"]


def test_of_very_many_pieces_the_first_have_places(sought):
    """Numbers inside words are nowhere as words, and to look for one takes the whole text."""
    claim = " ".join(f"{i}" for i in range(5000))
    result = locate_evidence(
        Judgment(0, evidence=tuple(claim.split())), PassageFinder(Example("", claim, "1")), claim_first=True
    )
    assert [piece.text for piece in result] == claim.split()
    assert [piece.where for piece in result] == ["claim"] * MAX_SOUGHT_LENGTH + [None] * (5000 - MAX_SOUGHT_LENGTH)
    assert len(sought) == MAX_SOUGHT_LENGTH


def test_claim_and_source_are_kept_apart():
    """The same words sought first in the one and then in the other have two places."""
    places = PassageFinder(Example("It rained.", "So it rained.", "1"))
    assert places.find("rained", claim_first=True) == ("claim", 6, 12)
    assert places.find("rained", claim_first=False) == ("source", 3, 9)
