"""Numbers, units and dates: what counts as the same, and when there is nothing to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.features.lexical_cases import judged, vote
from tests.processor_time import growth


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("It cost 1,000 pounds.", "It cost 1000 pounds."),
        ("It cost one thousand pounds.", "It cost 1,000 pounds."),
        ("It cost 1000 pounds.", "It cost a thousand pounds."),
        ("Some 25 people came.", "Twenty-five people came."),
        ("Two hundred and fifty came.", "250 came."),
        ("About 2.3 million were sold.", "Two million three hundred thousand were sold."),
        ("It rose 5%.", "It rose 5 percent."),
        ("It is worth $25k.", "It is worth 25,000 dollars."),
        ("He may lose 5 mln bucks.", "He may lose 5 million dollars."),
        ("Revenue was $1,823 million.", "Revenue was $1.8 billion."),
        ("There were 312 people.", "About 300 people were there."),
        ("There were 28 of them.", "Some thirty of them were there."),
        ("In the third quarter.", "In Q3."),
        ("The 2nd and the 4th.", "The fourth."),
        ("10,00,000 rupees", "1,000,000 rupees"),
        ("Three dozen eggs", "36 eggs"),
    ],
)
def test_one_number_in_two_notations(source, claim):
    """Notation, magnitude and rounding to the claim's precision make no other number."""
    assert vote("numbers", source, claim) == 1


@pytest.mark.parametrize(
    ("source", "claim", "missing"),
    [
        ("It rose 17%.", "It rose 19%.", ("19%",)),
        ("Revenue was $1,823 million.", "Revenue was $1.9 billion.", ("$1.9 billion",)),
        ("There were 312 people.", "There were 300 people.", ("300",)),
        ("There were 312 people.", "About 400 people were there.", ("400",)),
        ("It was 1,600,000.", "It was 2 million.", ("2 million",)),
        ("Thirty came.", "Thirty-one came.", ("thirty one",)),
    ],
)
def test_another_number_is_named(source, claim, missing):
    """A number that the source has in no notation makes a 0, and is the evidence."""
    judgment = judged("numbers", source, claim)
    assert (judgment.vote, judgment.evidence) == (0, missing)
    assert missing[0] in judgment.rationale
    assert judged("numbers", "It rose 5 to 17.", "It rose 6 to 17.").score == 0.5


@pytest.mark.parametrize(
    "claim",
    [
        "One of the two came second.",
        "Nothing is counted here.",
        "3) The council met.",
        "COVID-19 spread.",
        "Version 1.2.3 and 9:30:10",
        "9" * 400,
    ],
)
def test_what_is_no_number_to_look_for(claim):
    """Pronouns, the writer's own count, list items, names, and what is no number at all are passed over."""
    assert vote("numbers", "There is 7.", claim) == -1


@given(st.integers(0, 10**12))
def test_any_whole_number_is_found_with_and_without_commas(value):
    """Grouping changes nothing."""
    assert vote("numbers", f"There were {value} of them.", f"They counted {value:,} of them.") == 1
    assert vote("numbers", f"There were {value + 1} of them.", f"They counted {value:,} of them.") == 0


@pytest.mark.parametrize(
    ("source", "claim", "expected"),
    [
        ("It took 5 days.", "It took 5 days.", 1),
        ("It took 5 days.", "It took 5 weeks.", 0),
        ("It cost $5.", "It cost €5.", 0),
        ("It cost $5 million.", "It cost 5 million dollars.", 1),
        ("It rose 5 percent.", "It rose $5.", 0),
        ("It rose 5 per cent.", "It rose 5%.", 1),
        ("It took 5.", "It took 5 days.", -1),
        ("It took 6 days.", "It took 5 days.", -1),
        ("It took 5 days.", "It took 5.", -1),
        ("On 5 days and for 5 weeks.", "It took 5 weeks.", 1),
    ],
)
def test_units(source, claim, expected):
    """Only a number that the source has with other units, and never with this one, makes a 0."""
    assert vote("units", source, claim) == expected
    assert judged("units", "It took 5 days.", "It took 5 weeks.").evidence == ("5 week",)


@pytest.mark.parametrize(
    ("source", "claim", "expected"),
    [
        ("On Tuesday, 3 May 2019.", "It was in May 2019, on a Tuesday.", 1),
        ("On Tuesday.", "On Wednesday.", 0),
        ("In 2019.", "In 2020.", 0),
        ("In Sept. 2019.", "In September 2019.", 1),
        ("See you Sat at 7!", "They meet on Saturday at 7 pm.", 1),
        ("At 15:00.", "At 3 pm.", 1),
        ("At 15:00.", "At 4:30.", 0),
        ("In the fourth quarter.", "In Q4.", 1),
        ("In 4Q.", "In the fourth quarter.", 1),
        ("In the first quarter.", "In Q2.", 0),
        ("At midnight.", "At noon.", 1),
        ("It may rain.", "It may rain, and they march.", -1),
        ("It rained.", "It rained in May.", 0),
        ("It rained in the summer.", "It rained in winter.", 0),
        ("Nothing.", "Nothing is dated.", -1),
    ],
)
def test_dates(source, claim, expected):
    """Years, quarters, months, weekdays, seasons and times of day, in whatever notation."""
    assert vote("dates", source, claim) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("The Boeing-747 landed; no Boeing 747 did.", -1),
        ("A Boeing-747. The Boeing 748.", 0),
        ("The (Boeing-747), a Boeing\n747", -1),
        ("A Rise-5 %. Rise 5 %.", -1),
    ],
)
def test_a_number_that_is_somewhere_part_of_a_name_is_one_everywhere(claim, expected):
    """With a hyphen or, once it was written with one, without."""
    assert vote("numbers", "There is 7.", claim) == expected


@pytest.mark.parametrize(
    ("check", "text", "n"),
    [
        ("units", "{0} km and", 6_000),
        ("units", "about {0}000 pounds", 6_000),
        ("numbers", "Rise {0} by", 100_000),
        ("numbers", "Covid-{0} and", 100_000),
    ],
)
def test_many_numbers_take_time_by_their_number(check, text, n):
    """Neither is each compared with each of the source, nor the whole claim searched for each."""

    def compare(n):
        many = " ".join(text.format(i) for i in range(n))
        judged(check, f"{many} it was.", many)

    assert growth(compare, n // 10, n) < 30
