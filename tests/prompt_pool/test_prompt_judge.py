"""Judges made of prompts, pooled judgments, and soft votes."""

import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.judges import run_program
from deep.prompt_pool import PromptJudge, load_prompt, pool_judgments
from deep.prompt_pool._answer_form import soft_vote
from deep.records import Example, Judgment

EXAMPLE = Example("It rained all night.", "It rained.", "1")
PROMPT = load_prompt("yes-no")
TOP = [("YES", 0.6), ("NO", 0.3), ("Y", 0.06), ("Maybe", 0.03), (" ", 0.01)]


def reply(text="VERDICT: YES", **given):
    """Return what a call layer hands back."""
    usual = {"finish_reason": "stop", "refusal": None, "model": "tiny", "tokens": {"input": 9, "output": 3}}
    return SimpleNamespace(text=text, **usual | given)


def tokens(*texts, top=TOP, at=-1):
    """Return log-probabilities as chat completions give them; elsewhere than `at` the alternatives say NO."""
    message = [{"token": text, "logprob": -0.5, "top_logprobs": [{"token": "NO", "logprob": 0.0}]} for text in texts]
    message[at]["top_logprobs"] = alternatives(top)
    return message


def alternatives(top):
    """Return tokens with their log-probabilities as chat completions list them."""
    return [{"token": token, "logprob": math.log(p)} for token, p in top]


def label(judge, ask, example=EXAMPLE):
    """Return the judgment of one example, where `ask` answers each question."""
    return run_program(judge.program(example), ask)


def test_one_reply():
    """The judge asks with the prompt's messages and parameters, and its judgment carries the reply's usage."""
    asked = []

    def ask(question):
        asked.append((question.messages, question.schema, question.parameters, question.version))
        return reply(cost=0.001, seconds=0.2)

    judge = PromptJudge(PROMPT)
    judgment = label(judge, ask)
    assert (judge.name, judge.version) == ("yes-no", PROMPT.hash)
    parameters = {"temperature": 0.0, "max_tokens": 64}
    assert asked == [(PROMPT.render(EXAMPLE.source, EXAMPLE.claim), None, parameters, PROMPT.hash)]
    assert (judgment.vote, judgment.model, judgment.tokens) == (1, "tiny", {"input": 9, "output": 3})
    assert (judgment.cost, judgment.seconds, judgment.score) == (0.001, 0.2, None)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "failed"),
        (reply("VERDICT: perhaps"), "unparsable"),
        (reply("", finish_reason="length"), "truncated"),
        (reply(None, refusal="No."), "refused"),
    ],
    ids=["failed", "unparsable", "truncated", "refused"],
)
def test_no_vote_has_its_reason(answer, reason):
    """A call that failed for good is told apart from a reply that is no vote."""
    assert label(PromptJudge(PROMPT), lambda _: answer).reason == reason


def test_an_error_of_the_call_layer_is_passed_on():
    """A bug must not become a missing vote."""

    def ask(*_):
        raise KeyError("bug")

    with pytest.raises(KeyError):
        label(PromptJudge(PROMPT), ask)


@pytest.mark.parametrize(
    ("texts", "vote", "reason", "score"),
    [
        (["YES", "YES", "NO"], 1, None, 2 / 3),
        (["NO", "NO", "YES"], 0, None, 1 / 3),
        (["YES", "NO"], -1, "abstained", 0.5),
        (["YES", "perhaps", None], 1, None, 1.0),
        (["perhaps", "perhaps", None], -1, "unparsable", None),
        ([None, "perhaps"], -1, "failed", None),
    ],
    ids=str,
)
def test_samples(texts, vote, reason, score):
    """The majority's vote, the mean as its score, a tie abstains, and no votes have the commonest reason."""
    message = []

    def ask(question):
        message.append((question.parameters["temperature"], question.sample))
        text = texts[question.sample]
        return None if text is None else reply(f"VERDICT: {text}")

    judgment = label(PromptJudge(PROMPT, len(texts), 0.8, repair=False), ask)
    assert (judgment.vote, judgment.reason) == (vote, reason)
    assert judgment.score == (None if score is None else pytest.approx(score))
    assert message == [(0.8, i) for i in range(len(texts))]


def test_samples_of_a_score():
    """For a prompt that asks for a score, the mean of the scores, beside the majority of their votes."""
    scores = ["90", "45", "40"]
    judge = PromptJudge(load_prompt("direct-assessment"), 3)
    judgment = label(judge, lambda question: reply(f"SCORE: {scores[question.sample]}"))
    assert (judgment.vote, judgment.score) == (0, pytest.approx(0.5833333))


def test_what_samples_cost_is_summed():
    """Tokens, cost and seconds add up; a single unknown cost makes the sum unknown; every reply is kept."""
    one = Judgment(vote=1, model="a", tokens={"output": 2}, cost=0.1, seconds=1.0, raw_text="x", rationale="why")
    two = Judgment(vote=1, model="b", tokens={"output": 3, "input": 1}, cost=0.2, seconds=2.0, raw_text="y")
    both = pool_judgments([one, two])
    assert (both.tokens, both.seconds) == ({"output": 5, "input": 1}, 3.0)
    assert both.cost == pytest.approx(0.3)
    assert (both.model, both.raw_text, both.rationale) == ("a, b", '["x", "y"]', "why")
    assert pool_judgments([one, Judgment(vote=1, cost=None)]).cost is None
    failed = pool_judgments([one, Judgment(vote=-1, reason="failed")])
    assert (failed.cost, failed.seconds, failed.samples) == (0.1, 1.0, (1, -1))


@given(votes=st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=9))
def test_pooling_is_fair(votes):
    """Swapping the classes swaps the vote and mirrors the score; the order of the samples does not matter."""

    def pooled(values):
        judgments = [Judgment(vote=v, reason=None if v >= 0 else "unparsable") for v in values]
        judgment = pool_judgments(judgments)
        return judgment.vote, judgment.reason, judgment.score

    vote, reason, score = pooled(votes)
    assert pooled(votes[::-1]) == (vote, reason, score)
    mirrored = pooled([1 - v if v >= 0 else v for v in votes])
    assert mirrored[:2] == (1 - vote if vote >= 0 else vote, reason)
    assert mirrored[2] == (None if score is None else pytest.approx(1 - score))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": 0}, "`samples` must be 1 or more. Got 0"),
        ({"temperature": -0.1}, "`temperature` must be a number of at least 0. Got -0.1"),
        ({"temperature": math.inf}, "`temperature` must be a number of at least 0. Got inf"),
        ({"max_tokens": 0}, "`max_tokens` must be at least 1. Got 0"),
    ],
)
def test_parameters_are_in_range(given, message):
    """A parameter out of range is refused when the judge is made."""
    with pytest.raises(InputError, match=message):
        PromptJudge(PROMPT, **given)


def test_a_single_sample_is_taken_as_it_is():
    """It has no soft vote where the reply has none, and the prompt's own temperature; several are drawn at 1."""
    assert PromptJudge(PROMPT).parameters["temperature"] == 0
    assert PromptJudge(PROMPT, 2).parameters["temperature"] == 1
    assert label(PromptJudge(PROMPT), lambda _: reply()).score is None


def test_a_document_first_prompt_names_the_group_of_its_document():
    """Questions that begin with the same document share a group, whatever the claim."""
    judge = PromptJudge(load_prompt("yes-no-doc-first"))
    claims = [Example(source, claim, "1") for source, claim in (("a", "x"), ("a", "y"), ("b", "x"))]
    one, same, other = (next(judge.program(example))[0].group for example in claims)
    assert one == same != other
    assert next(PromptJudge(PROMPT).program(EXAMPLE))[0].group is None


def soft(text, logprobs, prompt=PROMPT):
    """Return the soft vote of one reply."""
    return prompt.parse(text, logprobs=logprobs).score


def test_soft_vote():
    """The share of consistent at the answer's first token: 0.66 of 0.96, since Maybe begins no label."""
    judgment = PROMPT.parse("VERDICT: YES", logprobs=tokens("VER", "DICT:", " YES"))
    assert (judgment.vote, judgment.score) == (1, pytest.approx(0.66 / 0.96))


@pytest.mark.parametrize(
    ("prompt", "parts", "at", "top", "expected"),
    [
        ("yes-no", ["NO", " wonder.", "\nVERDICT:", " NO"], 3, [(" NO", 0.9), (" YES", 0.1)], 0.1),
        ("yes-no", ["VERDICT", ": YES"], 1, [(": YES", 0.8), (": NO", 0.2)], 0.8),
        ("yes-no", ["VERDICT: **", "YES", "**"], 1, [("YES", 0.8), ("NO", 0.2)], 0.8),
        ("deep-numbers", ["VERDICT:", " NOT", " SUPPORTED"], 1, [(" NOT", 0.6), (" SUPP", 0.2)], 0.25),
        ("deep-numbers", ["VERDICT:", " SUPPORTED"], 1, [(" SUPPORTED", 0.5), (" CANNOT", 0.5)], 1.0),
        ("deep-numbers", ["VERDICT:", " UNSUPPORTED"], 1, [(" UN", 0.5), (" S", 0.5)], 0.5),
        ("fect-basic-direct-json", ['{"verdict', '": "', "TRUE", '"}'], 2, [("TRUE", 0.7), ("F", 0.3)], 0.7),
        ("fect-basic-direct-json", ['{"verdict": ', "true", "}"], 1, [("true", 0.7), ("false", 0.3)], 0.7),
        ("fect-basic-direct-xml", ["<verdict", ">TRUE", "</verdict>"], 1, [(">TRUE", 0.7), (">F", 0.3)], 0.7),
    ],
)
def test_soft_vote_of_every_form(prompt, parts, at, top, expected):
    """The answer's first token is found in every form of reply, also where the label occurs before it."""
    logprobs = tokens(*parts, top=top, at=at)
    assert soft("".join(parts), logprobs, load_prompt(prompt)) == pytest.approx(expected)


def test_what_precedes_the_answer_in_its_own_token_does_not_count():
    """A tokenizer may join the answer with the quote before it, or with more of what precedes it."""
    for key, before in (('{"verdict"', ':"'), ('{"', 'verdict":"')):
        top = alternatives([(f'{before}YES"}}', 0.6), (f'{before}NO"}}', 0.4)])
        logprobs = [{"token": key}, {"token": f'{before}YES"}}', "logprob": -0.5, "top_logprobs": top}]
        assert load_prompt("yes-no").parse('{"verdict":"YES"}', logprobs=logprobs).score == pytest.approx(0.6)


def test_soft_vote_of_labels_that_begin_alike():
    """The first token that tells the two sides apart decides, and nothing behind the answer's own tokens."""
    # Of F with 0.8, half is FACTUAL and half FALSE; the N of NOT FACTUAL has the rest.
    first = {"token": " F", "logprob": math.log(0.8), "top_logprobs": alternatives([(" F", 0.8), (" N", 0.2)])}
    second = {"token": "ACT", "logprob": math.log(0.5), "top_logprobs": alternatives([("ACT", 0.5), ("ALSE", 0.5)])}
    logprobs = [{"token": "VERDICT:"}, first, second, {"token": "UAL"}]
    assert soft_vote("FACTUAL", logprobs, {"FACTUAL": 1, "FALSE": 0, "NOT FACTUAL": 0}) == pytest.approx(0.4)
    answer, behind = [("YES", 0.6), ("NO", 0.4)], [(" No", 0.9), (" Yes", 0.1)]
    logprobs = tokens("YES", top=answer, at=0) + tokens(" No", top=behind, at=0)
    assert soft_vote("YES", logprobs, {"YES": 1, "NO": 0}) == pytest.approx(0.6)
    # TRU may become TRUE or TRUTHLESS, and says nothing.
    top = [("TRU", 0.5), ("TRUE", 0.3), ("TRUT", 0.2)]
    assert soft_vote("TRUE", tokens("TRU", "E", top=top, at=0), {"TRUE": 1, "TRUTHLESS": 0}) == pytest.approx(0.6)


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        tokens("something", " else"),
        [{"token": "VERDICT:"}, {"token": " YES"}],
        [{"token": "VERDICT:"}, {"token": " YES", "logprob": float("nan")}],
        [{"token": "VERDICT: YES", "top_logprobs": [{"token": "Maybe", "logprob": -0.1}]}],
        [{"token": None}, "VERDICT", 3, {"bytes": [1]}],
        3,
    ],
    ids=str,
)
def test_an_endpoint_that_sends_no_log_probabilities(logprobs):
    """Missing, foreign or broken log-probabilities give no soft vote and leave the hard one alone."""
    judgment = PROMPT.parse("VERDICT: YES", logprobs=logprobs)
    assert (judgment.vote, judgment.score) == (1, None)


def test_soft_vote_without_alternatives():
    """Where only the chosen token is told, the rest may be the other side's."""
    logprobs = [{"token": "VERDICT:"}, {"token": " YES", "logprob": math.log(0.8)}]
    assert soft("VERDICT: YES", logprobs) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        ([("VER", 0.5), ("ver", 0.2), (" YES", 0.08), ("The", 0.05), ("I", 0.02)], 0.08 / 0.1),
        ([(" YES", 0.9), ("The", 0.06), ("I", 0.03)], 0.9 / 0.91),
        ([(" YES", 0.6), ("The", 0.4)], 1.0),
        ([("VER", 0.5), (" NO", 0.08), ("I", 0.02)], 0.02 / 0.1),
        ([("VER", 0.5), ("I", 0.02)], None),
    ],
)
def test_a_label_that_is_not_listed_has_the_most_that_it_can(top, expected):
    """Servers list a few tokens, some of them before their grammar: half the evidence makes no P of 1."""
    message = "NO" if any(token == " NO" for token, _ in top) else "YES"
    result = soft(f"VERDICT: {message}", tokens("VERDICT:", f" {message}", top=top, at=1))
    assert result == (None if expected is None else pytest.approx(expected))


def test_scores_and_abstentions_have_no_soft_vote():
    """A score is its own soft vote; an abstention has none where its token begins no vote."""
    assert load_prompt("five-stars").parse("SCORE: 4", logprobs=tokens("SCORE:", " 4")).score == 0.75
    top = [(" CANNOT", 1.0)]
    judgment = load_prompt("deep-numbers").parse(
        "VERDICT: CANNOT TELL", logprobs=tokens("VERDICT:", " CANNOT", top=top)
    )
    assert (judgment.reason, judgment.score) == ("abstained", None)
