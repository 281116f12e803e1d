"""Long sources in windows: where they are cut, what is asked, and how the judgments become one."""

import json
from dataclasses import replace
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep._util.names import sentence_spans
from deep.asking import load_judge
from deep.exceptions import InputError
from deep.judges import run_program
from deep.prompt_pool import ChunkedJudge, Chunking, PromptJudge, combine_windows, load_prompt
from deep.records import Example, Judgment

SENTENCES = [f"Sentence number {i} tells of thing {i * 7 % 13} and of no other thing." for i in range(40)]
LONG = Example(" ".join(SENTENCES), "Thing 5 is told of.", "1", dataset="d")
CHUNK = Chunking(300, 80)
TEXTS = st.one_of(
    st.text(max_size=900),
    st.lists(st.sampled_from([*SENTENCES, "x" * 700, "\n\n", "Why?"]), max_size=12).map(" ".join),
)


def reply(text, finish="stop"):
    """Return what an LLM said."""
    return SimpleNamespace(text=text, finish_reason=finish, refusal=None, model="tiny", tokens={"output": 2}, cost=0.5)


@settings(max_examples=40, deadline=None)
@given(source=TEXTS, size=st.integers(200, 700), share=st.floats(0, 0.5))
def test_windows_cover_the_source_and_keep_their_size(source, size, share):
    """Every character that is not white space is in a window; none is too long, each goes on, overlaps are bounded."""
    chunk = Chunking(size, int(size * share))
    spans = chunk.spans(source)
    covered = {position for start, end in spans for position in range(start, end)}
    assert all(source[i].isspace() for i in range(len(source)) if i not in covered)
    assert all(end - start <= size for start, end in spans)
    for (start, end), (following, stop) in pairwise(spans):
        assert start < following
        assert end < stop
        assert end - following <= chunk.overlap
    assert len(source) > size or spans == [(0, len(source))]


def test_windows_are_cut_at_sentences():
    """Each begins and ends where a sentence does, and repeats whole sentences of the one before."""
    spans, sentences = CHUNK.spans(LONG.source), sentence_spans(LONG.source)
    assert {start for start, _ in spans} <= {start for start, _ in sentences}
    assert {end for _, end in spans} <= {end for _, end in sentences}
    assert all(following < end for (_, end), (following, _) in pairwise(spans))


def test_white_space_alone_is_one_window():
    """A judge can be asked about anything."""
    assert Chunking(200).spans(" \n" * 500) == [(0, 200)]


@pytest.mark.parametrize("text", ["", "8000:", "8k", "-1", "8000:5000", "199", "8000:4001", ":5", "1e4"])
def test_what_is_no_chunking_is_refused(text):
    """In one line that says what a chunking is."""
    with pytest.raises(InputError, match=r"`chunk` must be SIZE"):
        Chunking.parse(text)


@pytest.mark.parametrize("name", ["yes-no", "diverse-clash", "deep-numbers-doc-first"])
def test_a_source_that_fits_is_asked_as_before(name):
    """The same question, part for part; and the judge has the same name and version."""
    short = replace(LONG, source=LONG.source[:290])
    usual, cut = PromptJudge(load_prompt(name)), PromptJudge(load_prompt(name), chunk=CHUNK)
    one, other = next(usual.program(short)), next(cut.program(short))
    assert [vars(replace(q, read=len, repair=None)) for q in one] == [
        vars(replace(q, read=len, repair=None)) for q in other
    ]
    assert (usual.voter("m"), usual.version) == (cut.voter("m"), cut.version)
    assert cut.details["chunk"] == "300:80"
    assert usual.most_calls(short) == cut.most_calls(short)


def test_each_window_is_a_question_of_its_own():
    """All at once, each with its text alone, its number, and all its samples."""
    judge = PromptJudge(load_prompt("yes-no"), samples=2, chunk=CHUNK)
    spans = CHUNK.spans(LONG.source)
    questions = next(judge.program(LONG))
    assert [(q.part, q.sample) for q in questions] == [
        (f"window {i + 1}", s) for i in range(len(spans)) for s in (0, 1)
    ]
    for question, (start, end) in zip(questions[::2], spans, strict=True):
        assert f">\n{LONG.source[start:end]}\n<" in question.messages[-1]["content"]
    assert len(questions) == 2 * len(spans) <= judge.most_calls(LONG)


OUTCOMES = [
    Judgment(vote=1),
    Judgment(vote=0),
    Judgment(vote=-1, reason="failed"),
    Judgment(vote=-1, reason="truncated"),
]


def test_the_rules():
    """One decisive window decides; the other vote needs every window, so that a lost one never makes a vote."""
    for judgments in product(OUTCOMES, repeat=3):
        votes = [judgment.vote for judgment in judgments]
        spans = [(0, 9), (9, 18), (18, 27)]
        any_of, all_of = (combine_windows(judgments, spans, rule) for rule in ("any", "all"))
        assert any_of.vote == (1 if 1 in votes else 0 if set(votes) == {0} else -1)
        assert all_of.vote == (0 if 0 in votes else 1 if set(votes) == {1} else -1)
        for result in (any_of, all_of):
            reasons = {None} if result.vote >= 0 else {judgment.reason for judgment in judgments}
            assert result.reason in reasons


@pytest.mark.parametrize("span", ['["a"]', "5", '{"a": 1}', "[[1]]"])
def test_json_that_is_quoted_of_a_document_costs_no_vote(span):
    """It has no place that could be counted from the beginning of the source."""
    entry = f'{{"claim": "c", "evidence": [{{"excerpt": "e", "span": {span}}}]}}'
    assert combine_windows([Judgment(1, evidence=(entry,)), Judgment(0)], [(0, 5), (5, 9)], "any").evidence == (entry,)


def test_scores_rationale_evidence_and_costs():
    """The highest or the lowest score; what the deciding windows say, with their places; the costs of all."""
    parts = [
        Judgment(vote=0, score=0.1, rationale="No.", evidence=("a b",), tokens={"input": 5}, cost=1.0, raw_text="x"),
        Judgment(vote=1, score=0.8, rationale="Yes.", evidence=("c d", "c d"), tokens={"input": 7}, cost=2.0),
    ]
    any_of, all_of = (combine_windows(parts, [(0, 50), (40, 90)], rule) for rule in ("any", "all"))
    assert (any_of.score, any_of.rationale, any_of.evidence) == (0.8, "Characters 40 to 90: Yes.", ("c d",))
    assert (all_of.score, all_of.rationale, all_of.evidence) == (0.1, "Characters 0 to 50: No.", ("a b",))
    assert (any_of.tokens, any_of.cost, any_of.raw_text) == ({"input": 12}, 3.0, '["x", null]')
    assert combine_windows([parts[0], OUTCOMES[2]], [(0, 50), (40, 90)], "any").score is None


@pytest.mark.parametrize(
    ("name", "yes", "no", "vote"),
    [
        ("yes-no", "VERDICT: YES", "VERDICT: NO", 1),
        ("direct-assessment", "SCORE: 95", "SCORE: 5", 1),
        ("diverse-clash", '{"verdict": "CONTRADICTED"}', '{"verdict": "COMPATIBLE"}', 0),
    ],
)
def test_one_window_that_decides_is_found(name, yes, no, vote):
    """Support in one window is support; a contradiction in one window is one. Without it, every window must answer."""
    judge = PromptJudge(load_prompt(name), chunk=CHUNK)
    target = "Sentence number 20 "
    decides = lambda q: reply(yes if target in q.messages[-1]["content"] else no)  # noqa: E731
    assert run_program(judge.program(LONG), decides).vote == vote
    assert run_program(judge.program(LONG), lambda _: reply(no)).vote == 1 - vote
    lost = lambda q: None if target in q.messages[-1]["content"] else reply(no)  # noqa: E731
    assert run_program(judge.program(LONG), lost).vote == -1


def test_a_staged_judge_goes_through_the_windows_and_counts_from_the_beginning():
    """The steps of all windows go side by side; the offsets of its evidence are those of the whole source."""
    judge = load_judge("stepwise")
    cut = ChunkedJudge(judge, CHUNK)
    target = SENTENCES[25]

    def ask(question):
        text = question.messages[-1]["content"]
        properties = json.dumps(question.schema)
        if '"claims"' in properties:
            return reply(json.dumps({"claims": [{"segment": LONG.claim, "claim": LONG.claim}]}))
        result = target in text
        answer = {"reasoning": "", "evidence": [target] if result else [], "excerpts": [target] if result else []}
        return reply(json.dumps({**answer, "verdict": "PASS" if result else "FAIL", "unsupported": []}))

    judgment = run_program(cut.program(LONG), ask)
    assert judgment.vote == 1
    spans = [e["span"] for entry in judgment.evidence for e in json.loads(entry)["evidence"] if e.get("span")]
    assert spans
    assert all(LONG.source[start:end] == target for start, end in spans)
    assert (cut.name, cut.version, cut.details["chunk"]) == (judge.name, judge.version, "300:80")


def test_the_bound_of_a_staged_judge_is_that_of_all_windows():
    """What it asks of each window, added up."""
    listed, spans = load_judge("listed"), CHUNK.spans(LONG.source)
    assert ChunkedJudge(listed, CHUNK).most_calls(LONG) == len(spans) * listed.most_calls(LONG)
