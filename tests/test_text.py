"""Sentences and their places."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep._util.names import sentence_spans


@given(st.text(alphabet=st.sampled_from('aB3.!?。 \n\r\t\xa0\x85\u2028"”)İ'), max_size=80))
def test_sentences_hold_all_but_white_space(text):
    """Spans are in order, apart, without white space at their ends, and leave nothing else out."""
    spans = sentence_spans(text)
    places = [0, *(place for span in spans for place in span), len(text)]
    assert places == sorted(places)
    assert all(start < end and text[start:end] == text[start:end].strip() for start, end in spans)
    left_out = [text[end:start] for end, start in zip(places[::2], places[1::2], strict=True)]
    assert not "".join(left_out).strip()


@pytest.mark.parametrize("text", ["It is plan B\xa0.", "A\u2009.\nB \u3000.", "B\xa0\xa0. So it is."])
def test_wide_white_space_behind_an_initial_is_no_error(text):
    """Such texts are cut up like those with a plain blank in its place."""
    plain = re.sub(r"\s", " ", text)
    assert sentence_spans(text) == sentence_spans(plain)


def test_white_space_that_is_cut_up_otherwise_moves_no_place():
    """Blank lines at the end and between paragraphs count as they stand."""
    text = " One here. \n\n Two there.\n\n"
    assert [text[start:end] for start, end in sentence_spans(text)] == ["One here.", "Two there."]
