"""Labels that a judge writes around sentences, however its tags come back."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from deep.experiments.tiered._wording import closest_sentence, mark_spans, read_tags

LABELS = ("good", "bad", "neither")

WORDS = ("rain", "snow", "wind", "fell", "blew", "melted", "early", "late", "often", "north", "south", "harbour")

sentence = st.lists(st.sampled_from(WORDS), min_size=2, max_size=8).map(" ".join).map("{}.".format)
labeled = st.lists(st.tuples(sentence, st.sampled_from(LABELS)), min_size=1, max_size=8, unique_by=lambda pair: pair[0])


def tags_of(pairs):
    """Return the parts of a perfect reply: opening tag, text and closing tag of each sentence."""
    return [part for text, label in pairs for part in (f"<{label}>", text, f"</{label}>", " ")]


def is_alone(text, pairs):
    """Tell whether no other sentence ends or begins like this one, so that its place in a text is certain."""
    others = [other for other, _ in pairs if other != text]
    return not any(a.startswith(b) or a.endswith(b) for other in others for a, b in ((text, other), (other, text)))


def read(reply, pairs, **options):
    """Return the labels of the sentences of some pairs."""
    return read_tags(reply, [text for text, _ in pairs], LABELS, **options)


@given(st.text(max_size=300), st.lists(st.text(max_size=40), max_size=5))
def test_anything_can_be_read(reply, sentences):
    """No reply and no sentences raise, and there is one label or none for each sentence."""
    reading = read_tags(reply, sentences, LABELS)
    assert len(reading.labels) == len(sentences)
    assert set(reading.labels) <= {*LABELS, None}


@given(
    st.lists(
        st.sampled_from(["<good>", "</good>", "<bad>", "</bad >", "< neither x='1'>", "<", ">", "rain.", " ", "\n"])
    )
)
def test_any_heap_of_tags_can_be_read(parts):
    """Tags without order or text are read to the end."""
    reading = read_tags("".join(parts), ["rain.", "rain.", "snow."], LABELS)
    assert reading.labels[2] is None


@given(labeled)
def test_a_perfect_reply_comes_back_whole(pairs):
    """Every sentence has its label, and nothing is left over."""
    reading = read("".join(tags_of(pairs)), pairs)
    assert reading.labels == tuple(label for _, label in pairs)
    assert reading.unaligned == ()


@given(labeled, st.lists(st.sampled_from(LABELS), min_size=8, max_size=8))
def test_sentences_alike_keep_their_order(pairs, labels):
    """The first of two equal sentences gets the first label."""
    twice = [(text, label) for (text, _), label in zip([*pairs, *pairs], labels, strict=False)]
    assert read("".join(tags_of(twice)), twice).labels == tuple(label for _, label in twice)


@given(labeled, st.randoms(use_true_random=False))
def test_order_does_not_matter(pairs, rng):
    """Sentences that come back in another order keep their labels."""
    shuffled = pairs.copy()
    rng.shuffle(shuffled)
    assert read("".join(tags_of(shuffled)), pairs).labels == tuple(label for _, label in pairs)


@given(labeled, st.data())
def test_lost_tags_cost_no_other_label(pairs, data):
    """Whichever tags are lost, no sentence gets a wrong label, and one with a tag left at its edge keeps its own."""
    parts = tags_of(pairs)
    lost = data.draw(st.sets(st.integers(0, len(parts) - 1)))
    lost = {i for i in lost if parts[i].startswith("<")}
    reading = read("".join("" if i in lost else part for i, part in enumerate(parts)), pairs)
    for i, (text, label) in enumerate(pairs):
        left = {4 * i, 4 * i + 2} - lost
        if is_alone(text, pairs):
            assert reading.labels[i] == (label if left else None)


@given(labeled, st.sampled_from(LABELS))
def test_a_tag_around_everything_changes_only_its_ends(pairs, outer):
    """Nested tags: the sentences inside keep their labels, and those that two tags contradict have none."""
    reading = read(f"<{outer}>{''.join(tags_of(pairs))}</{outer}>", pairs)
    for i, (_, label) in enumerate(pairs):
        at_end = i in (0, len(pairs) - 1)
        assert reading.labels[i] == (None if at_end and label != outer else label)


@pytest.mark.parametrize(
    ("reply", "labels"),
    [
        ("<good>It rained all night.</good><bad>The river rose.</bad>", ("good", "bad")),
        ("<GOOD>It rained all night.</Good>\n\n< bad >The river rose.</ bad >", ("good", "bad")),
        ("<good why='rain'>It rained all night.<bad>The river rose.", ("good", "bad")),
        ("It rained all night.</good> The river rose.</bad>", ("good", "bad")),
        ("<good>It rained all night. The river rose.</bad>", ("good", "bad")),
        ("<good>It rained all night. The river rose.</good>", ("good", "good")),
        ("<bad><good>It rained all night.</good> The river rose.</bad>", (None, "bad")),
        ("<good>It rained all night.</bad> <bad>The river rose.</bad>", (None, "bad")),
        ("<good>All the night long it rained.</good> <bad>The river then rose.</bad>", (None, "bad")),
        ("<good>It rained nearly all night!</good> <bad>the  RIVER\nrose</bad>", ("good", "bad")),
        ("<bad>It rained all night.</bad> Or: <good>It rained all night.</good>", (None, None)),
        ("<good>It rained all night.</good> Again: <good>It rained all night.</good>", ("good", None)),
        ("<good></good>It rained all night. <bad>  </bad> The river rose.", (None, None)),
        ("<think><bad>It rained all night.</bad></think><good>It rained all night.</good>", ("good", None)),
        ("It rained all night. The river rose.", (None, None)),
        ("<better>It rained all night.</better>", (None, None)),
        ("", (None, None)),
    ],
)
def test_replies_as_they_come(reply, labels):
    """Lost, nested, empty, contradictory and reworded tags."""
    assert read_tags(reply, ["It rained all night.", "The river rose."], LABELS).labels == labels


def test_what_is_not_aligned_is_told():
    """A tag on text that is none of the sentences is reported, once."""
    reading = read_tags("<bad>Nobody was\nhurt.</bad> <good>It rained.</good>", ["It rained."], LABELS)
    assert reading.labels == ("good",)
    assert reading.unaligned == ("bad: Nobody was hurt.",)


def test_contradictions_are_told():
    """The sentence that got two labels has neither."""
    assert read_tags("<bad>It rained.</good>", ["It rained."], LABELS).labels == (None,)


def test_of_equal_sentences_one_tagged_is_none_tagged():
    """Which of them was meant cannot be told."""
    assert read_tags("<bad>It rained.</bad>", ["It rained.", "It rained."], LABELS).labels == (None, None)


def test_what_the_question_left_over_says_nothing():
    """A mark that the judge did not replace parts the text and gives no label."""
    reply = "<?>It rained.</?> <good>It rained hard.</good>"
    assert read_tags(reply, ["It rained.", "It rained hard."], LABELS, marks=["?"]).labels == (None, "good")


def test_quoted_tags_count_for_nothing():
    """Where the texts hold such tags, ours carry a code."""
    reply = "<bad-0a1b2c3d>He wrote <good>fine</good> on it.</bad-0a1b2c3d>"
    assert read_tags(reply, ["He wrote <good>fine</good> on it."], LABELS, code="0a1b2c3d").labels == ("bad",)


def test_a_flood_of_tags_is_cut_off():
    """A reply of very many tags takes no more work than a reply of many."""
    flood = "<good>snow.</good>" * 100_000
    assert read_tags(flood + "<bad>It rained.</bad>", ["It rained."], LABELS).labels == (None,)


def test_marks_go_around_spans():
    """The text between them stays as it is."""
    text = "One.  Two.\nThree."
    assert mark_spans(text, {(11, 17): "?", (0, 4): "?"}) == "<?>One.</?>  Two.\n<?>Three.</?>"
    assert mark_spans(text, {}) == text


@given(st.lists(sentence, min_size=1, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_a_few_changed_words_do_not_hide_a_sentence(sentences, rng):
    """A long sentence with one word more is still found."""
    number = rng.randrange(len(sentences))
    long = f"{sentences[number][:-1]} while children were playing outside of the village."
    texts = [*sentences[:number], long, *sentences[number + 1 :]]
    # A sentence all of whose words are in the long one is in it too.
    known = set(long.rstrip(".").split())
    assume(not any(set(text.rstrip(".").split()) <= known for text in texts if text != long))
    words = long.split()
    words.insert(random.Random(len(words)).randrange(1, len(words)), "indeed")
    assert closest_sentence(" ".join(words), texts) == number
