"""Names, quotations, negation, modality, opposites and overlap: what each check sees and what it leaves alone."""

import hashlib
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.features.lexical import LEXICAL, _base
from deep.features.lexical._base import (
    LONGEST_CLAIM,
    LONGEST_SOURCE,
    MAX_PAIRS_ONE_BY_ONE,
    WORD,
    Pair,
    TokenizedText,
    _TextCache,
    stem,
    words_with_stems,
)
from deep.features.lexical._facts import MAX_QUOTATIONS
from deep.records import Example
from tests.features.lexical_cases import judged, vote

NEWS = (
    "The Bank of Japan said on Wednesday that it would buy bonds. Shares of Toyota rose sharply. "
    "Governor Kuroda did not say when. Analysts in Tokyo may revise their forecasts. "
    'He told reporters: "We didn\'t expect so many small buyers."'
)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("It was said that Kuroda and Toyota agreed.", 1),
        ("It was said that Kuroda and Honda agreed.", 0),
        ("Yesterday the BOJ bought bonds.", 1),
        ("Yesterday the ECB bought bonds.", 0),
        ("Honda Motor sold cars.", 0),
        ("Later, Toyota sold cars.", 1),
        ("They all bought bonds.", -1),
        ("A Japanese bank bought bonds.", 1),
        ("HONDA BUYS BONDS FROM ECB", -1),
        ("They met on Monday and I left.", -1),
    ],
)
def test_entities(claim, expected):
    """Capitals inside a sentence are names; weekdays, sentence starts and headlines are not."""
    assert vote("entities", NEWS.replace("Japan ", "Japan and the Japanese press "), claim) == expected
    # What the source shortens, the claim may spell out.
    assert vote("entities", "The BOJ bought bonds.", "Bonds were bought by the Bank of Japan.") == 1


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ('He said they "did not expect so many" of them.', 1),
        ("He said they “didn't expect so many” of them.", 1),
        ('He said they "expected many more small buyers".', 0),
        ("He said ``so many small buyers'' came.", 1),
        ('He called it "small".', -1),
        ("He said nothing.", -1),
    ],
)
def test_quotes(claim, expected):
    """A quotation of two words or more must stand in the source, whatever the quotation marks."""
    assert vote("quotes", NEWS, claim) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Governor Kuroda did not say when.", 1),
        ("Shares of Toyota never rose sharply.", -1 + 1),
        ("Kuroda said when.", -1),
        ("Elephants cannot fly.", -1),
    ],
)
def test_negation(claim, expected):
    """A negation must be among the best matching sentences; a sentence that matches none tells nothing."""
    source = NEWS + " Bonds were bought. Shares of Toyota are widely held. Shares of Toyota opened in Nagoya."
    assert vote("negation", source, claim) == expected


def test_a_restriction_must_be_in_the_source():
    """Only is a claim of its own."""
    source = "The plan covers homes. It is only for members of the club."
    assert vote("restriction", source, "The plan is only for members.") == 1
    assert vote("restriction", "The plan covers homes.", "The plan covers homes only.") == 0
    assert vote("restriction", source, "The plan covers homes.") == -1


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Analysts may revise forecasts.", 1),
        ("Analysts will revise forecasts.", 0),
        ("Analysts might revise forecasts.", 1),
        ("Analysts must revise forecasts.", 0),
        ("Analysts will knit pullovers.", -1),
        ("Analysts revise forecasts.", -1),
    ],
)
def test_modality(claim, expected):
    """What the source calls possible is not certain; what it does not speak of tells nothing."""
    assert vote("modality", NEWS, claim) == expected


@pytest.mark.parametrize(
    ("claim", "expected", "evidence"),
    [
        ("Shares of Toyota fell sharply.", 0, ("fell: rose",)),
        ("Shares of Toyota increased sharply.", 1, ("increased",)),
        ("Shares of Toyota rose or fell.", -1, ()),
        ("Shares of Toyota moved.", -1, ()),
    ],
)
def test_opposites(claim, expected, evidence):
    """Another word for the same is fine, the opposite is not, and both sides at once tell nothing."""
    judgment = judged("opposites", NEWS, claim)
    assert (judgment.vote, judgment.evidence) == (expected, evidence)


def test_overlap():
    """All, most and nothing of the wording in the source."""
    verbatim, foreign = (
        "Shares of Toyota rose sharply.",
        "Elephants usually drink muddy river water every single morning.",
    )
    assert [vote(check, NEWS, verbatim) for check in ("coverage", "sentence-overlap", "novel-run")] == [1, 1, 1]
    assert [vote(check, NEWS, foreign) for check in ("coverage", "sentence-overlap")] == [0, 0]
    assert vote("novel-run", NEWS, f"{foreign} Nobody else does so.") == 0
    assert vote("coverage", NEWS, "Shares of Toyota rose on elephants.") == -1
    assert judged("coverage", NEWS, "Shares of elephants").score == 0.5
    assert vote("novel-run", NEWS, "Too short") == -1


def test_the_longest_novel_run_is_the_evidence():
    """The words that are new together are shown as they were written."""
    claim = "Shares of Toyota rose after Some Nine Or Ten Quite Unheard Words Were Put Here"
    assert judged("novel-run", NEWS, claim).evidence == (claim.removeprefix("Shares of Toyota "),)


def test_short_and_long_claims_see_the_same_neighbours():
    """Pairs that are searched for one by one and pairs that are met are the same pairs."""
    claim = f"Shares of Toyota rose. It would buy bonds that analysts in Osaka may revise. {NEWS[90:]} Elephants fly."
    whole, words = Pair(TokenizedText(NEWS), TokenizedText(claim)), TokenizedText(claim).words
    assert len(set(pairwise(whole.claim.stems))) >= MAX_PAIRS_ONE_BY_ONE
    few = (Pair(TokenizedText(NEWS), TokenizedText(f"{a} {b}")).neighbours for a, b in pairwise(words))
    assert whole.neighbours == set().union(*few)
    assert 0 < len(whole.neighbours) < len(words) - 1


@given(st.text(alphabet=st.sampled_from("aé日3.,:%$€km'\u2019- \n\xa0\u1680"), max_size=60))
def test_pieces_between_blanks_hold_the_words_of_the_text(text):
    """To look up pieces finds what a search through the whole text finds, per cent signs behind a blank included."""
    result = list(words_with_stems(text))
    assert result[::2] == WORD.findall(text)
    assert result[1::2] == [stem(word) for word in result[::2]]


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from("aAİΣß3.$% '\u2019\n\ud800"), max_size=60))
def test_words_as_written_are_the_words_in_lower_case(text):
    """As many as there are in lower case, in their order, and letter for letter in the text."""
    cut = TokenizedText(text)
    assert len(cut.words) == len(cut.lower) == len(cut.stems) == cut.starts[-1]
    assert [len(word) for word in cut.words] == [len(word) for word in cut.lower]
    end = 0
    for word in cut.words:
        end = cut.text.index(word, end) + len(word)


def test_what_is_remembered_of_texts_has_a_bound(monkeypatch):
    """Neither more pieces than the limit nor long ones are kept."""
    monkeypatch.setattr(_base, "MAX_CACHED_PIECES", 2)
    known = _base._PieceCache(str.upper)
    long = "x" * (_base.MAX_CACHED_PIECE_LENGTH + 1)
    assert [known[text] for text in ("a", "b", long, "a", "c")] == ["A", "B", long.upper(), "A", "C"]
    assert dict(known) == {"c": "C"}


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from([*NEWS.split(), "1,000", "$3.5", "5%", "may", '"We', "didn't"]), min_size=1, max_size=60)
)
def test_a_source_supports_itself(words):
    """A claim that is the source has nothing that the source lacks."""
    text = " ".join(words)
    for check in ("coverage", "dates", "entities", "numbers", "quotes", "units", "novel-run", "sentence-overlap"):
        assert vote(check, text, text) != 0


@settings(max_examples=60)
@given(st.data())
def test_a_copied_sentence_is_never_contradicted(data):
    """A sentence of the source lacks nothing of it, and is its own best match."""
    sentences = data.draw(st.lists(st.sampled_from(NEWS.split(". ")), min_size=1, max_size=6))
    source = ". ".join(sentences)
    claim = data.draw(st.sampled_from(sentences))
    for check in LEXICAL:
        assert vote(check, source, claim) != 0


def test_capitals_that_have_two_letters_in_lower_case():
    """Positions stay right where lower case would make a text longer."""
    text = TokenizedText("İİİ Istanbul rose. Then Ankara.")
    assert text.words == ["İİİ", "Istanbul", "rose", "Then", "Ankara"]
    assert text.starts == [0, 3, 5]


def test_alignment_prefers_rare_words():
    """The sentence with the rarer shared words comes first."""
    source = TokenizedText("The shop sold bread. The shop sold milk. The shop sold marzipan.")
    (share, best), *_ = Pair(source, TokenizedText("The shop had marzipan.")).aligned
    assert best[0] == 2
    assert 0 < share <= 1
    assert Pair(source, TokenizedText("Elephants fly.")).aligned == [(0.0, [])]


def test_the_shelf_holds_what_fits():
    """What was cut up lately is not cut up again, and the shelf never holds more than it may but one text."""
    shelf = _TextCache(10)
    first = shelf.text("one two")
    assert shelf.text("one two") is first
    shelf.text("three four five six")
    assert shelf.text("one two") is not first


def test_stems_join_forms_and_not_words():
    """Endings go; words of another sense stay apart."""
    assert len({stem(word) for word in ("increase", "increases", "increased", "increasing")}) == 1
    assert len({stem(word) for word in ("include", "exclude", "conclude")}) == 3
    assert stem("news") == stem("news")
    assert [stem(word) for word in ("bus", "is", "this", "thing", "red")] == ["bus", "is", "this", "thing", "red"]


@pytest.mark.parametrize("check", sorted(LEXICAL))
def test_longer_texts_than_checks_read_get_no_vote(check):
    """The reason is ``truncated``, as of a model whose input is too short; up to the limit a text is read whole."""
    within = judged(check, "Rain. ".ljust(LONGEST_SOURCE), "It rained. ".ljust(LONGEST_CLAIM))
    assert within == judged(check, "Rain. ", "It rained. ")
    long_claim = judged(check, "It rained.", "It rained. ".ljust(LONGEST_CLAIM + 1))
    long_source = judged(check, "It rained. ".ljust(LONGEST_SOURCE + 1), "It rained.")
    for one, name, most in ((long_claim, "claim", "50,000"), (long_source, "source", "1,000,000")):
        assert (one.vote, one.reason) == (-1, "truncated")
        assert one.rationale.startswith(f"The {name} has ")
        assert one.rationale.endswith(f"; a check reads at most {most}.")


def test_more_quotations_than_are_looked_for_get_no_vote():
    """Each would be looked for in the whole source."""
    quoted = [f'"one two {number}"' for number in range(MAX_QUOTATIONS + 1)]
    source = " ".join(quoted)
    assert vote("quotes", source, " ".join(quoted[:-1])) == 1
    more = judged("quotes", source, source)
    assert (more.vote, more.reason) == (-1, "truncated")
    assert more.rationale == "The claim has 201 quoted spans; at most 200 are looked for."


GOLDEN = "87399309fae4c0fb"
"""Of all judgments of the texts below. Where it changes, a vote may have: raise a `revision`, or ANALYSIS."""


def test_what_checks_say_changes_only_with_their_version():
    """The same votes, scores, evidence and words under the same column names."""
    checks = [make() for make in LEXICAL.values()]
    claims = [
        "Toyota fell 5% to $3.5 million on Tuesday, but only in Osaka.",
        "Kuroda “did not expect” it, and analysts will revise 1,200 forecasts in Q3.",
        NEWS,
    ]
    message = [[check.label(Example(NEWS, claim, claim)) for check in checks] for claim in claims]
    told = repr(
        [
            (c.voter(), j.vote, j.score, j.rationale, j.evidence)
            for row in message
            for c, j in zip(checks, row, strict=True)
        ]
    )
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == GOLDEN
