"""Every prompt ties its answers to the task, shows the last line, and says why a grade becomes a vote where it does."""

import re
from pathlib import Path

import pytest

import deep.experiments.stepwise
from deep.prompt_pool import list_prompts, load_prompt
from deep.prompt_pool._prompt import first_labels
from tests.prompt_pool.reply_corpus import CLAIM, SOURCE

STAGED = Path(deep.experiments.stepwise.__file__).parent / "prompts.toml"
PROMPTS = [load_prompt(name) for name in list_prompts()]
VERDICTS = [prompt for prompt in PROMPTS if prompt.kind == "verdict"]
GRADES = [prompt for prompt in PROMPTS if prompt.kind == "score"]


def shown_line(prompt, label):
    """Return the last line of a reply that gives a label, as the prompt writes it."""
    forms = {
        "text": f'"{{{{verdict}}}} {label}"',
        "xml": f"<{{{{verdict}}}}>{label}</{{{{verdict}}}}>",
        "json": f'"{{{{verdict}}}}": "{label}"',
    }
    return forms[prompt.output]


def test_every_label_is_explained_and_shown():
    """The prompt says for each label when it is right, and shows the line that it makes."""
    for prompt in VERDICTS:
        for label in first_labels(prompt.labels):
            assert re.search(rf"(?<![A-Z] ){label}(?: only)? if [a-z]", prompt.user), label
            assert shown_line(prompt, label) in prompt.user, label
        assert "comes after it" in prompt.user


def test_a_line_as_shown_is_read():
    """What the prompt shows as the last line gives the vote of its label."""
    for prompt in VERDICTS:
        marker = {"text": "VERDICT:", "xml": "verdict", "json": "verdict"}[prompt.output]
        for label in first_labels(prompt.labels):
            line = shown_line(prompt, label).replace("{{verdict}}", marker)
            reply = f"{{{line}}}" if prompt.output == "json" else line.strip('"')
            assert prompt.parse(reply, source=SOURCE, claim=CLAIM).vote == prompt.labels[label]


@pytest.mark.parametrize("prompt", GRADES, ids=lambda prompt: prompt.id)
def test_grades_have_a_threshold_with_its_reason(prompt):
    """The file says from which grade the vote is 1 and why; the prompt says what that grade means and shows a line."""
    low, high = prompt.scale
    least = low + prompt.threshold * (high - low)
    assert prompt.threshold_reason.split()[0] in (f"{least:g}", {4: "four"}.get(least))
    assert "inconsistent" in prompt.threshold_reason
    assert len(re.findall(r'"\{\{verdict\}\} \d+"', prompt.user)) == 2
    assert prompt.parse(f"SCORE: {least:g}").vote == 1
    assert prompt.parse(f"SCORE: {least - 1:g}").vote == 0


def test_sentences_can_be_read_once():
    """None of the turns of phrase that a reader has to go back for."""
    for prompt in PROMPTS:
        text = f"{prompt.system} {prompt.user}"
        for turn in (
            "behind it",
            "write nothing further",
            "of which you keep",
            "decides against",
            "brings down",
            "stands or falls",
        ):
            assert turn not in text
        assert not re.search(r"\bclaim (?:passes|fails)\b", text)
        longest = max(len(sentence.split()) for sentence in re.split(r"(?<=[.:;?])\s|\n", text))
        assert longest <= 60


def test_the_staged_verdict_is_explained_and_shown():
    """The step that decides ties PASS and FAIL to its task and shows both objects."""
    text = " ".join(STAGED.read_text(encoding="utf-8").split())
    for label in ("PASS", "FAIL"):
        assert re.search(rf"{label} if the excerpt", text)
        assert f'"verdict": "{label}"}}' in text
