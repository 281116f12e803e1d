"""What every labeling function that asks nobody has in common; those that come with deep are listed once."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.features.lexical import LEXICAL
from deep.records import ABSTAIN, Example, LabelingFunction

JUDGES = {f"lexical-{name}": check for name, check in LEXICAL.items()}
"""How to make each labeling function, by what its column's name starts with."""

SOURCE = "Dr. Wu paid $3.5 million in May 2019. She did not sell. “We may grow,” said Acme, up 12%."

ODD = [
    "",
    " \n\t ",
    "?!…—",
    "1" * 5000,
    "9.9.9:9,9 $ € 1e9 ٣٤ ½ ² \uff15",
    "hundred " * 400,
    "twenty million and " * 200,
    "İstanbul ǅ ẞ \u212a ﬁ",
    "\ud800 lone \udfff surrogates",
    "a\0b",
    "👩‍👩‍👧 e\u0301 \u202e right to left \u200b",
    "合計は千二百円です。明日も。",
    '"' * 3000 + "“" * 3000 + "``" * 3000,
    "A" * 5_000,
    "The Of A " * 1000,
    "It rose. " * 600,
]

TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(
        st.sampled_from([*SOURCE.split(), "about", "1,000", "Monday", "3pm", "7:30", "%", '"', "."]), max_size=30
    ).map(" ".join),
)


def example(source, claim):
    """Return an example."""
    return Example(source, claim, "1")


@pytest.fixture(params=JUDGES)
def judge(request):
    """Return a labeling function."""
    return JUDGES[request.param]()


def test_it_is_a_labeling_function_with_a_lasting_name(judge, request):
    """The column's name is the kind and eight digits of a hash, and the same each time it is made."""
    again = JUDGES[request.node.callspec.params["judge"]]()
    assert isinstance(judge, LabelingFunction)
    assert re.fullmatch(r"[0-9a-f]{64}", judge.version)
    assert (judge.name, judge.version, judge.voter) == (again.name, again.version, again.voter)
    assert judge.voter.startswith(f"{request.node.callspec.params['judge']}@{judge.version[:8]}")


def test_the_columns_differ():
    """No two share a name or a version."""
    made = [make() for make in JUDGES.values()]
    assert len({judge.voter for judge in made}) == len({judge.version for judge in made}) == len(made)


@settings(max_examples=25)
@given(source=TEXTS, claims=st.lists(TEXTS, max_size=3))
@pytest.mark.parametrize("name", JUDGES)
def test_any_text_has_a_vote_or_a_reason(name, source, claims):
    """It never raises; one by one and together, once and again, it says the same, and says why it does not vote."""
    judge = JUDGES[name]()
    examples = [example(source, claim) for claim in claims]
    judged = judge.label_many(examples)
    assert judged == [JUDGES[name]().label(one) for one in examples]
    for judgment in judged:
        assert (judgment.vote == ABSTAIN) == (judgment.reason is not None)
        assert judgment.score is None or -1.0 <= judgment.score <= 1.0


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_odd_and_long_text(judge, odd):
    """Nothing written can make it fail."""
    for one in (example(odd, odd), example(SOURCE, odd), example(odd, SOURCE)):
        assert judge.label(one) == judge.label(one)


def test_an_empty_claim_has_no_vote(judge):
    """Where there is nothing to judge, it abstains, and that is no failure."""
    judgment = judge.label(example(SOURCE, ""))
    assert (judgment.vote, judgment.reason) == (ABSTAIN, "abstained")
    assert judge.label_many([]) == []


def test_a_vote_says_why(judge):
    """A vote comes with a sentence for people, and evidence that is text."""
    judgment = judge.label(example(SOURCE, "Acme sold 7 shops for €3.5 million in June, but only “in secret places”."))
    assert judgment.rationale
    assert all(isinstance(piece, str) and piece for piece in judgment.evidence)
