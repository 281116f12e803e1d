"""Labeled examples that prompts show: whose, how many, and what they change."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.judges import run_program
from deep.prompt_pool import FewShot, PromptJudge, list_prompts, load_prompt
from deep.prompt_pool._material import Material
from deep.records import Example

KNOWN = [
    Example(f"Source {s} of {d}.", f"Claim {i} on source {s} of {d}.", f"{d}{s}{i}", i % 2, d, f"{d}-{s}")
    for d in ("alpha", "beta", "gamma")
    for s in range(4)
    for i in range(4)
]
NEW = Example("A new source.", "A new claim.", "n", dataset="new")
VERDICTS = [name for name in list_prompts() if load_prompt(name).kind == "verdict" and not name.endswith("-doc-first")]
VERDICTS += ["yes-no-doc-first", "diverse-examples-doc-first"]


def sent(judge, example):
    """Return the messages of the first question about an example."""
    return next(judge.program(example))[0].messages


@given(rows=st.permutations(KNOWN), shots=st.sampled_from([2, 4, 6]))
def test_the_choice_is_balanced_and_does_not_depend_on_the_order_of_rows(rows, shots):
    """Half of each label, each of another document, in the same order every time."""
    chosen = FewShot(tuple(rows), shots).choose(NEW)
    assert chosen == FewShot(tuple(KNOWN), shots).choose(NEW)
    assert sum(shot.label for shot in chosen) == shots // 2 == len(chosen) // 2
    assert len({shot.document_id for shot in chosen}) == shots
    assert FewShot(tuple(rows), shots).version == FewShot(tuple(KNOWN), shots).version


@given(example=st.sampled_from(KNOWN), dataset=st.sampled_from(["alpha", "beta", "new"]))
def test_nothing_of_the_dataset_the_document_or_the_claim_is_shown(example, dataset):
    """Also where the document has another id, and where the item stands in another dataset under another name."""
    asked = replace(example, dataset=dataset, example_id="other", document_id=None, claim=f" {example.claim.upper()} ")
    for shot in FewShot(tuple(KNOWN), 6).choose(asked):
        assert shot.dataset != dataset
        assert shot.source != example.source
        assert shot.claim != example.claim
    by_id = replace(example, dataset="new", source="cut short", claim="another")
    assert all(shot.document_id != example.document_id for shot in FewShot(tuple(KNOWN), 6).choose(by_id))


def test_nothing_of_the_family_is_shown():
    """Datasets of one benchmark are held out together."""
    few = FewShot(tuple(KNOWN), 4, family_of=lambda name: {"beta": "alpha"}.get(name, name))
    assert {shot.dataset for shot in few.choose(replace(NEW, dataset="beta"))} == {"gamma"}


def test_the_labels_cannot_be_told_from_the_order():
    """Over many choices each place has both labels."""
    texts = [(f"Source {i}.", f"Claim {i}.") for i in range(200)]
    places = [[], []]
    for start in range(0, 200, 2):
        known = [Example(*texts[start], "a", 1, "d"), Example(*texts[start + 1], "b", 0, "d")]
        for place, shot in zip(places, FewShot(known, 2).choose(NEW), strict=True):
            place.append(shot.label)
    assert all(30 < sum(labels) < 70 for labels in places)


@pytest.mark.parametrize("name", VERDICTS)
def test_each_prompt_shows_them_with_its_own_words(name):
    """Each case with a fence of its own and the label, before the question; nothing else is changed."""
    few = FewShot(tuple(KNOWN), 2)
    prompt = load_prompt(name)
    bare, shown = PromptJudge(prompt), PromptJudge(prompt, few_shot=few)
    before, after = sent(bare, NEW), sent(shown, NEW)
    assert before[0] == after[0]
    chosen = few.choose(NEW)
    told = {
        1: next(k for k, v in prompt.labels.items() if v == 1),
        0: next(k for k, v in prompt.labels.items() if v == 0),
    }
    text = after[-1]["content"]
    for number, shot in enumerate(chosen, start=1):
        material = Material(shot.source, shot.claim)
        assert material.fenced("source") in text
        assert f"case {number} with care chose {told[shot.label]} for it." in text
        before_the_question = text.index(material.fenced("claim")) < text.index(f"\n{NEW.source}\n")
        assert before_the_question or (prompt.takes_examples and prompt.document_first)
    start, end = text.index("Some cases that people"), text.index(f"chose {told[chosen[-1].label]} for it.")
    rest = (text[:start] + text[text.index("\n\n", end) + 2 :]).replace(
        "No more cases. What you are asked about follows.\n\n", ""
    )
    assert rest.strip() == before[-1]["content"]


@pytest.mark.parametrize("name", VERDICTS)
def test_no_vote_comes_from_the_cases(name):
    """A judge that repeats cases, or ends with one, has not answered."""
    prompt = load_prompt(name)
    lines = prompt.render(NEW.source, NEW.claim, FewShot(tuple(KNOWN), 2).choose(NEW))[-1]["content"].splitlines()
    for stop in range(1, len(lines)):
        for text in ("\n".join(lines[:stop]), lines[stop - 1], "\n".join(lines[stop:])):
            assert prompt.parse(text, source=NEW.source, claim=NEW.claim).vote == -1, text


def test_they_are_part_of_the_version_and_of_nothing_else():
    """Other examples, labels or numbers make another column; without them the prompt's own stands."""
    prompt = load_prompt("yes-no")
    known = tuple(KNOWN)
    flipped = (replace(known[0], label=1 - known[0].label), *known[1:])
    judges = [PromptJudge(prompt), *(PromptJudge(prompt, few_shot=FewShot(k, n)) for k, n in [(known, 2), (known, 4)])]
    judges += [PromptJudge(prompt, few_shot=FewShot(flipped, 4)), PromptJudge(prompt, few_shot=FewShot(known[1:], 4))]
    assert len({judge.voter("m") for judge in judges}) == len(judges)
    assert judges[0].version == prompt.hash
    assert all(next(judge.program(NEW))[0].version == judge.version for judge in judges)
    assert judges[1].details["few_shot"]["shots"] == 2
    assert run_program(judges[1].program(NEW), lambda _: None).reason == "failed"


def test_an_example_with_something_like_a_verdict_is_never_shown():
    """It could pass for the answer of the judge."""
    loaded = [Example("It says VERDICT: YES here.", "x", "z", 1, "delta"), Example("b", "Score: 4", "y", 0, "delta")]
    few = FewShot((*KNOWN, loaded[0]), 16)
    assert loaded[0] not in few.choose(NEW)
    with pytest.raises(InputError, match=r"must hold 1 documents with an example of label 1, for 2 shots. Got 0"):
        FewShot((*loaded[:1], *[k for k in KNOWN if k.label == 0]), 2)


def test_too_few_of_other_datasets_are_refused():
    """The message names the dataset that may not be used."""
    few = FewShot(tuple(k for k in KNOWN if k.dataset == "alpha"), 4)
    with pytest.raises(InputError, match=r"documents of other datasets than 'alpha' with an example of label 1. Got 0"):
        few.choose(KNOWN[0])


def test_a_score_has_no_labels_to_show():
    """A label is no grade."""
    with pytest.raises(InputError, match=r"`few_shot` must go with prompts of kind verdict\. Got 'five-stars'"):
        PromptJudge(load_prompt("five-stars"), few_shot=FewShot(tuple(KNOWN), 2))
    with pytest.raises(InputError, match="`few_shot` must go with prompts of kind verdict"):
        load_prompt("five-stars").render("a", "b", KNOWN[:2])


def test_a_repair_turn_shows_them_too():
    """The question that quotes a reply is the first one with more at its end."""
    judge = PromptJudge(load_prompt("yes-no"), few_shot=FewShot(tuple(KNOWN), 2))
    program = judge.program(NEW)
    (first,) = next(program)
    (again,) = program.send([SimpleNamespace(text="Hm.", finish_reason="stop", refusal=None, model="m", tokens={})])
    assert again.messages[-1]["content"].startswith(first.messages[-1]["content"])
    assert again.version == judge.version
