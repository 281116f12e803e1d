"""Versions of prompts whose every answer carries a code: no reply to another question passes for one to this."""

import json
import re
from types import SimpleNamespace

import pytest

from deep.exceptions import InputError
from deep.judges import run_program
from deep.prompt_pool import PromptJudge, list_prompts, load_pool, load_prompt
from deep.records import Example

SOURCE = "The bridge fell in 1903. Nobody was hurt."
ONE, OTHER = Example(SOURCE, "The bridge fell.", "1"), Example(SOURCE, "A ferry sank.", "2")
PROMPTS = list_prompts()


def code_of(example, question=None):
    """Return the code that the answer to a prompt must carry."""
    asked = load_prompt("yes-no@coded").render(example.source, example.claim, question=question)[-1]["content"]
    return re.search("VERDICT-([0-9a-f]{8}):", asked)[1]


def answer(prompt, code):
    """Return the answer that speaks for the claim, with a code or, where it is empty, without one."""
    message = f"{prompt.scale[1]:g}" if prompt.scale else prompt.told_labels[0]
    name = f"{prompt.kind}-{code}" if code else prompt.kind
    if prompt.output == "json":
        return json.dumps({"reasoning": "It is so.", name: float(message) if prompt.scale else message})
    return f"<{name}>{message}</{name}>" if prompt.output == "xml" else f"It is so.\n{name.upper()}: {message}"


def test_an_answer_to_another_claim_of_the_source_is_none():
    """Only the code of the question counts: none, that of another claim and the fence's own are unparsable."""
    for name in PROMPTS:
        prompt = load_prompt(f"{name}@coded")
        asked = "\n".join(message["content"] for message in prompt.render(ONE.source, ONE.claim))
        assert code_of(ONE) in asked
        fence = re.search("<source-([0-9a-f]{8})>", asked)[1]
        assert prompt.parse(answer(prompt, code_of(ONE)), source=ONE.source, claim=ONE.claim).vote == 1
        for other in ("", code_of(OTHER), fence):
            judgment = prompt.parse(answer(prompt, other), source=ONE.source, claim=ONE.claim)
            assert (judgment.vote, judgment.reason) == (-1, "unparsable"), other


def test_the_code_is_made_of_all_texts_and_the_fence_of_the_source():
    """So claims and questions differ in the code, and still share a provider's cached prefix."""
    prompt = load_prompt("yes-no-question-doc-first@coded")
    asked = [prompt.render(SOURCE, claim, question=q)[-1]["content"] for claim in "ab" for q in ("Who?", "When?")]
    assert len({re.search("VERDICT-([0-9a-f]{8}):", text)[1] for text in asked}) == 4
    assert len({text[: text.index("</source-")] for text in asked}) == 1


def test_the_schema_of_a_json_answer_holds_the_code():
    """The key is the question's; a prompt without codes has one schema for all."""
    judge = PromptJudge(load_prompt("fect-basic-direct-json@coded"))
    questions = [next(judge.program(example))[0] for example in (ONE, OTHER)]
    keys = [q.parameters["response_format"]["json_schema"]["schema"]["required"] for q in questions]
    assert keys == [[f"verdict-{code_of(example)}"] for example in (ONE, OTHER)]


def test_late_replies_count_for_nothing_also_in_the_repair_turn():
    """A server that answers every question with the answer to another: no vote."""
    for name in ("yes-no", "fect-basic-direct-json", "fect-basic-direct-xml", "direct-assessment"):
        prompt = load_prompt(f"{name}@coded")
        late = SimpleNamespace(
            text=answer(prompt, code_of(OTHER)), finish_reason="stop", refusal=None, model="m", tokens={}
        )
        judgment = run_program(PromptJudge(prompt).program(ONE), lambda question, late=late: late)
        assert (judgment.vote, judgment.reason) == (-1, "unparsable")


def test_versions_are_named_by_their_hash():
    """The id alone is the version that there was, with its column; each version is had by its hash."""
    plain, coded = load_prompt("yes-no"), load_prompt("yes-no@coded")
    assert plain.hash != coded.hash
    assert plain.id == coded.id
    assert load_prompt(f"yes-no@{plain.hash[:8]}") == plain
    assert load_prompt(f"yes-no@{coded.hash}") == coded
    assert [prompt.coded for prompt in load_pool("deep-9@coded")] == [True] * 9
    with pytest.raises(InputError, match="`id` must have coded or its own hash after the @"):
        load_prompt("yes-no@0000")
