"""Prompts that are to err in their own way: they differ where they should, and say what they are for."""

import tomllib
from collections import Counter
from pathlib import Path

import pytest

import deep.prompt_pool
from deep.prompt_pool import Prompt, load_prompt
from deep.prompt_pool._prompt import PURPOSE_WORDS

FILES = sorted((Path(deep.prompt_pool.__file__).parent / "prompts").glob("diverse-*.toml"))
TOML = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in FILES}
TEXTS = ("It rained.", "It was wet.")


def form_of(values):
    """Return the form of the answer that a file asks for."""
    told = sorted(label for label in values.get("labels", {}) if f" {label} if " in values["user"])
    return values["kind"], values["output"], values["reasons_first"], tuple(values.get("parts", ())), tuple(told)


def test_no_two_agree():
    """Neither in the system turn nor in the form of the answer."""
    for message in ([tuple(values["system"].split()) for values in TOML.values()], [*map(form_of, TOML.values())]):
        assert len(set(message)) == len(message)


def test_no_system_turn_is_a_variation_of_another():
    """No two system turns share a run of eight words."""
    runs = Counter()
    for values in TOML.values():
        words = values["system"].casefold().split()
        runs.update({tuple(words[i : i + 8]) for i in range(len(words) - 7)})
    assert max(runs.values()) == 1


@pytest.mark.parametrize("name", TOML)
def test_each_says_which_error_it_is_not_to_share(name):
    """In one line, another one each time, with all that is expected; the words of each answer are tied to the task."""
    values = TOML[name]
    assert 20 < len(values["unshared_error"]) < 110
    assert "\n" not in values["unshared_error"].strip()
    assert all(values[name] in words for name, words in PURPOSE_WORDS.items())
    assert [values["unshared_error"] for values in TOML.values()].count(values["unshared_error"]) == 1
    for label in Prompt(**values).labels:
        assert label not in values["user"] or f" {label} if " in values["user"], label


def test_the_purpose_is_no_part_of_the_identity():
    """What it is meant for may be put better without buying an answer again."""
    changed = TOML["diverse-terse"] | {"unshared_error": "another", "expected_tpr": "same", "strictness": "even"}
    assert Prompt(**changed).hash == load_prompt("diverse-terse").hash


def test_the_rule_for_windows_is_part_of_the_identity_where_it_is_not_the_usual_one():
    """A prompt without it keeps its hash."""
    values = TOML["diverse-terse"]
    usual = Prompt(**values)
    assert usual.hash == Prompt(**values | {"windows": "any"}).hash != Prompt(**values | {"windows": "all"}).hash


@pytest.mark.parametrize(
    ("name", "reply", "vote"),
    [
        ("diverse-entailment", "VERDICT: NEUTRAL", 0),
        ("diverse-entailment", "VERDICT: ENTAILMENT", 1),
        ("diverse-odds-words", "<verdict>HIGHLY PROBABLE</verdict>", 1),
        ("diverse-odds-words", "<verdict>HIGHLY IMPROBABLE</verdict>", 0),
        ("diverse-odds-words", "<verdict>IMPROBABLE</verdict>", 0),
        ("diverse-odds-number", "It rained, so it was wet.\nSCORE: 50", 1),
        ("diverse-odds-number", "SCORE: 49", 0),
        ("diverse-lenient", "Wet means rain.\nVERDICT: ACCEPTABLE", 1),
        ("diverse-clash", '{"reasoning": "none", "verdict": "COMPATIBLE"}', 1),
        ("diverse-editor", "VERDICT: CORRECTION DUE", 0),
    ],
)
def test_answers_are_read_as_the_prompt_tells_them(name, reply, vote):
    """Among them those that are not the first of their polarity."""
    assert load_prompt(name).parse(reply, source=TEXTS[0], claim=TEXTS[1]).vote == vote


@pytest.mark.parametrize("name", ["diverse-entailment", "diverse-odds-words", "diverse-terse"])
def test_a_constrained_answer_may_be_any_that_the_prompt_tells(name):
    """Not the first of each polarity alone; and each is read."""
    prompt = load_prompt(name)
    number = {"diverse-entailment": 3, "diverse-odds-words": 4, "diverse-terse": 2}[name]
    schema, lines = (prompt.choice(*TEXTS, how).answers for how in ("schema", "vllm"))
    assert len(schema) == len(lines) == len(prompt.told_labels) == number
    assert {prompt.parse(answer, source=TEXTS[0], claim=TEXTS[1]).vote for answer in schema} == {0, 1}


def test_parts_become_evidence():
    """The questions and their answers, the statements and the whole."""
    reply = '{"questions": ["Was it wet?"], "answers": ["yes"], "reasoning": "same", "verdict": "MATCH"}'
    assert load_prompt("diverse-questions").parse(reply).evidence == ("questions: Was it wet?", "answers: yes")
    reply = "<statements>\n- It was wet: holds\n</statements><together>One event.</together><verdict>SOUND</verdict>"
    assert load_prompt("diverse-each-then-all").parse(reply).evidence[0] == "statements: It was wet: holds"
