"""The papers' own prompts in `deep probe` and `deep cognibench`: their words are asked, their forms are read."""

import json
import re

import pandas as pd
import pytest

from deep.experiments.printed import load_steps, load_tag_judge, reworded
from deep.experiments.probe._records import read_samples
from deep.experiments.probe._runs import BUILDER_STEPS, JUDGE_STEPS
from deep.experiments.stepwise import StepwiseJudge, check_claims, decompose
from deep.judges import run_program
from deep.records import Example
from tests.deep_commands import cognibench, probe
from tests.deep_commands import prompts as prompts_main
from tests.guests.experiments.cognibench_case import COAL, HELLO, LOVED, MILL, NOBODY, VERDICTS, write_case
from tests.guests.experiments.probe_world import answer, parts, step_of, write_articles
from tests.guests.experiments.test_probe_measures import ANSWERS, samples, write_samples
from tests.prompt_pool.tiered_script import reply_of
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

JUDGE = """
id = "mine"
[decompose]
reply = "segments"
system = "Take apart."
user = "APART\\n{{response}}"
[find]
reply = "final-output"
user = "LOOK\\n{{claim}}\\nUP\\n{{source}}"
[evaluate]
reply = "verdict"
user = "WEIGH\\n{{claim}}\\nBY\\n{{excerpt}}\\nIN\\n{{context}}"
"""

FORMS = {
    "decompose": re.compile(r"APART\n(?P<response>.*)", re.DOTALL),
    "find": re.compile(r"LOOK\n(?P<claim>.*)\nUP\n(?P<source>.*)", re.DOTALL),
    "evaluate": re.compile(r"WEIGH\n(?P<claim>.*)\nBY\n(?P<excerpt>.*)\nIN\n(?P<context>.*)", re.DOTALL),
}
WRITTEN = {
    "decompose": lambda said: "Here:\n" + "\n".join(f"> {c['segment']}\n- {c['claim']}" for c in said["claims"]),
    "find": lambda said: (
        "Thinking: none yet.\n**FINAL OUTPUT:**\n"
        + ("\n".join(f'Segment #{i}: "{e}"' for i, e in enumerate(said["evidence"], 1)) or "None")
    ),
    "evaluate": lambda said: f"REASONING: I looked.\n\nVERDICT: {said['verdict']}",
}


def printed(asked):
    """Answer in the printed forms what the script of the measures answers in JSON."""
    for step, form in FORMS.items():
        result = form.fullmatch(asked.user)
        if result:
            message = ANSWERS[step](result.groupdict())
            return message if isinstance(message, Fault) else WRITTEN[step](message)
    return ANSWERS[step_of(asked)](parts(asked))


def test_the_measures_do_not_depend_on_the_words(tmp_path):
    """The same answers in the printed forms and in JSON give the same figures; the direct prompt stays deep's own."""
    write_samples(tmp_path / "evaluation.jsonl", samples())
    (tmp_path / "judge.toml").write_text(JUDGE)
    tables = []
    for name, more in (("own", []), ("printed", ["--prompt", str(tmp_path / "judge.toml")])):
        with ScriptedLLM(printed) as server:
            words = ["eval", "--data", str(tmp_path), "--llm", "m", "--match", "normalised", "--base-url", server.url]
            assert probe([*words, *more, "--out", str(tmp_path / "new" / name)]) == 0
            asked = {step for step, form in FORMS.items() for one in server.asked if form.fullmatch(one.user)}
        assert asked == (set(FORMS) if more else set())
        tables.append(pd.read_csv(tmp_path / "new" / name / "steps.csv"))
    pd.testing.assert_frame_equal(*tables)


def test_lists_of_segments(tmp_path):
    """A segment without an assertion, or no segment, is no claim; each line below a segment is one."""
    (tmp_path / "judge.toml").write_text(JUDGE)
    steps = load_steps(tmp_path / "judge.toml", JUDGE_STEPS)
    for text, claims in {
        "no list at all": "unparsable",
        "> It rained.": "unparsable",
        "<think>> no</think>\n> It rained.\nIt rained.\nRain fell.": ["It rained.", "Rain fell."],
    }.items():
        result = run_program(reworded(decompose("It rained.", []), steps), lambda _, text=text: reply_of(text))
        assert (result if isinstance(result, str) else [claim.text for claim in result]) == claims


def test_evidence_below_the_final_output(tmp_path):
    """None named is evidence that was not found; no such heading is no answer."""
    (tmp_path / "judge.toml").write_text(JUDGE)
    steps = load_steps(tmp_path / "judge.toml", JUDGE_STEPS)
    for said, vote in {
        "FINAL OUTPUT:\n- It rained.": 1,
        "Thinking.\nFinal Output: It rained.": 1,
        "FINAL OUTPUT:\nNo relevant segments found.": 0,
        "I found nothing.": -1,
    }.items():
        replies = {"decompose": "> It rained.\nIt rained.", "find": said, "evaluate": "VERDICT: PASS"}
        program = StepwiseJudge().program(Example("It rained. It hailed.", "It rained.", "1"))
        judgment = run_program(reworded(program, steps), lambda asked, told=replies: reply_of(told[asked.step]))
        assert judgment.vote == vote


def test_a_list_that_is_cut_off_is_not_taken_for_whole(tmp_path):
    """Nothing is known of the claim, rather than that evidence was not found."""
    (tmp_path / "judge.toml").write_text(JUDGE)
    steps = load_steps(tmp_path / "judge.toml", JUDGE_STEPS)
    claims = run_program(
        decompose("It rained.", []), lambda q: reply_of('{"claims": [{"segment": "It rained.", "claim": "x"}]}')
    )
    cut = lambda question: reply_of("FINAL OUTPUT:\nIt hailed.", finish_reason="length")  # noqa: E731
    checked, result, _ = run_program(reworded(check_claims("It hailed.", claims, []), steps), cut)
    assert (checked[0].state, result) == ("undecided", {"x": "truncated"})


def test_the_builder_in_printed_words(tmp_path):
    """Base content and facts are asked for in the file's words, the insertion in deep's, since it needs tags."""
    write_articles(tmp_path / "articles.jsonl", 2)
    known = {step: " ".join(f"{{{{{name}}}}}" for name in names) for step, names in BUILDER_STEPS.items()}
    tables = [f'[{step}]\nreply = "lines"\nuser = "MINE {step} {texts}"' for step, texts in known.items()]
    (tmp_path / "builder.toml").write_text("\n".join(tables).replace('reply = "lines"', 'reply = "text"', 7))

    def script(asked):
        step = re.match(r"MINE (\S+) (\d)?", asked.user)
        if step is None:
            return answer(asked)
        if step[1] == "invent":
            return "\n".join(f"{i}. The town holds fair number {i} in March." for i in range(1, int(step[2]) + 1))
        return "It was built long ago. It is very high. A storm hit it once."

    with ScriptedLLM(script) as server:
        words = ["--articles", str(tmp_path / "articles.jsonl"), "--llm", "writer", "--base-url", server.url]
        given = ["--prompt", str(tmp_path / "builder.toml"), "--articles-by", "all", "--out", str(tmp_path / "bench")]
        assert probe(["build", *words, *given]) == 0
    mine = {asked.user.split()[1] for asked in server.asked if asked.user.startswith("MINE")}
    assert mine == {"summarize", "ask", "answer", "invent"} | {name for name in mine if name.startswith("restyle-")}
    assert len(mine) >= 5
    every = [s for name in ("train", "evaluation") for s in read_samples(tmp_path / "bench" / f"{name}.jsonl")]
    assert len(every) == 24
    assert all(i.fact.startswith("The town holds fair number") for s in every for i in s.insertions)


def test_files_that_are_no_steps(tmp_path, capsys):
    """One line each."""
    write_samples(tmp_path / "evaluation.jsonl", samples())
    words = ["eval", "--data", str(tmp_path), "--llm", "m", "--out", str(tmp_path / "out"), "--prompt"]
    cases = {
        "": "`prompt` must hold one of the steps decompose, find, evaluate",
        "x = ": "`prompt` must be a readable TOML file",
        '[find]\nreply = "lines"\nuser = "{{claim}}"': "must hold the placeholders claim, source in [find]",
    }
    for content, message in cases.items():
        (tmp_path / "p.toml").write_text(content)
        assert probe([*words, str(tmp_path / "p.toml")]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1
    assert probe([*words, "absent.toml"]) == 2
    assert "absent.toml" in capsys.readouterr().err


TAGS = 'id = "tags"\n[tag]\nreply = "tags"\nsystem = "Tag."\nuser = "FROM {{source}} TAG {{claims}}"\n'
MARKED = re.compile(r"<>(.*?)</>")
TAG_OF = {"faithful": "faithful", "reliable": "faithful", "irrefutable": "faithful", "irrelevant": "irrelevant"}


def tagged(text):
    """Return the marked sentences with the tags that their published verdicts ask for."""
    return MARKED.sub(lambda m: "<{0}>{1}</{0}>".format(TAG_OF.get(VERDICTS[m[1]], "hallu"), m[1]), text)


def test_the_printed_tags_decide_on_each_sentence(tmp_path, capsys):
    """Five samples a turn; the row stands in Tables 3 and 5; its labels become training data too."""
    data = write_case(tmp_path / "data")
    (tmp_path / "tags.toml").write_text(TAGS)

    def script(asked):
        claims = asked.user.partition(" TAG ")[2]
        message = tagged(claims)
        return message.replace(f"<hallu>{COAL}</hallu>", f"<faithful>{COAL}</faithful>") if asked.times < 3 else message

    given = ["--prompt", str(tmp_path / "tags.toml"), "--concurrency", "1"]
    with ScriptedLLM(script) as server:
        ask = ["--llm", "m", *given, "--base-url", server.url]
        words = ["--judge", "listed", "--threshold", "2", "3", "--out", str(tmp_path / "run")]
        assert cognibench(["--data", str(data), *ask, *words]) == 0
        assert sum("TAG" in asked.user for asked in server.asked) == 10, "both thresholds share their five samples"
    f1 = pd.read_csv(tmp_path / "run" / "table3-detection.csv").set_index("method")
    assert f1.loc["tags (threshold = 2) (m)", ["factual", "cognitive"]].tolist() == [1, 1]
    assert f1.loc["tags (threshold = 3) (m)", ["factual", "cognitive"]].tolist() == [0, 1]
    with ScriptedLLM(lambda asked: tagged(asked.user.partition(" TAG ")[2])) as server:
        words = ["--llm", "m", *given, "--base-url", server.url, "--out", str(tmp_path / "labeled")]
        assert cognibench(["label", "--data", str(data), *words]) == 0
    assert "2 turns labeled by printed:tags@" in capsys.readouterr().out
    assert cognibench(["export-sft", "--labels", str(tmp_path / "labeled"), "--out", str(tmp_path / "s.jsonl")]) == 0
    lists = [
        json.loads(json.loads(line)["messages"][-1]["content"])
        for line in (tmp_path / "s.jsonl").read_text().splitlines()
    ]
    assert [result["hallucinated"] for result in lists] == [[COAL], [LOVED, NOBODY]]


def test_a_tag_that_is_missing_leaves_its_sentence_open(tmp_path):
    """Most samples say irrelevant; one sentence has no tag in too many samples."""
    (tmp_path / "tags.toml").write_text(TAGS)
    judge = load_tag_judge(tmp_path / "tags.toml")
    program = judge.read("A mill.", "", [MILL, HELLO, LOVED])
    reading = run_program(
        program, lambda question: reply_of(f"<faithful>{MILL}</faithful> <irrelevant>{HELLO}</irrelevant>")
    )
    assert [(s.verdict, s.reason) for s in reading.sentences] == [
        ("consistent", None),
        ("irrelevant", None),
        (None, "unparsable"),
    ]


def test_what_the_papers_print_is_taken(data_home, tmp_path):
    """The files that the importer makes of the papers hold every step that these commands ask for."""
    papers = data_home.parent / "papers"
    if not papers.is_dir():
        pytest.skip(f"the texts of the papers are not in {papers}")
    for paper in ("probe", "cognibench"):
        words = ["import", "--paper", paper, "--text", str(papers / f"{paper}.txt"), "--out", str(tmp_path)]
        assert prompts_main(words) == 0
    assert set(load_steps(tmp_path / "probe-printed-judge.toml", JUDGE_STEPS).steps) == set(JUDGE_STEPS)
    assert set(load_steps(tmp_path / "probe-printed-builder.toml", BUILDER_STEPS).steps) == set(BUILDER_STEPS)
    judge = load_tag_judge(tmp_path / "cognibench-printed.toml")
    (question, *_) = next(judge.read("A mill.", "", [MILL]))
    assert question.messages[1]["content"].endswith(f"Reference: A mill.\nClaims: <>{MILL}</>")
    assert question.parameters["max_tokens"] == 512 + len(f"<>{MILL}</>") // 2, "a token for two letters that come back"
