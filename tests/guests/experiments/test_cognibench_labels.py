"""From labels of a judge to training data and a tuned detector; spans of others; Figures 8 and 12."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep.datasets import read_examples
from deep.exceptions import InputError
from deep.experiments.cognibench._methods import read_spans
from deep.experiments.cognibench._turns import accuracy_of, classify_sentences, in_split, read_labels, read_turns
from deep.experiments.tiered import TIERS, AutoLabelJudge
from deep.judges import run_program
from tests.deep_commands import cognibench as main
from tests.deep_commands import votes as votes_main
from tests.guests.experiments.cognibench_case import COAL, CORN, LOVED, MATTERED, MILL, NOBODY, VERDICTS, write_case
from tests.guests.experiments.tiny_models import save_causal
from tests.model_server import serving
from tests.prompt_pool.tiered_script import answer, asker, marked_in, task_of
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

ROOT = Path(__file__).resolve().parents[3]


def script(asked):
    """Label every sentence as published."""
    return answer(asked.user, VERDICTS)


def lists_of(path):
    """Return the answers of a file of chats."""
    chats = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [json.loads(chat["messages"][-1]["content"])["hallucinated"] for chat in chats]


def test_the_pipeline_asks_two_prompts_five_times(tmp_path):
    """Types once, or not at all where a classifier gave them; tiers of cognitive sentences alone; verdicts by level."""
    asked = []
    judge = AutoLabelJudge()
    reading = run_program(judge.read("A mill.", "", list(VERDICTS)), asker(VERDICTS, asked))
    assert [s.verdict for s in reading.sentences] == list(VERDICTS.values())
    samples = [(step, sample) for step in ("support", "tier") for sample in range(5)]
    assert [(q.step, q.sample) for q in asked] == [("type", 0), *samples]
    assert "irrelevant" in asked[0].messages[1]["content"]
    assert marked_in(asked[6].messages[1]["content"]) == [t for t in VERDICTS if VERDICTS[t] in TIERS]
    kinds = ["factual" if VERDICTS[t] in ("faithful", "invented") else "cognitive" for t in VERDICTS]
    asked.clear()
    again = run_program(judge.read("A mill.", "", list(VERDICTS), kinds), asker(VERDICTS, asked))
    assert {question.step for question in asked} == {"support", "tier"}
    assert [s.verdict for s in again.sentences] == list(VERDICTS.values()), "the first prompt finds the greeting too"
    bad = {level: [s.text for s in reading.sentences if s.hallucinated(level)] for level in ("rational", "grounded")}
    assert bad == {"rational": [COAL, NOBODY], "grounded": [COAL, LOVED, NOBODY]}


def test_a_tier_is_failed_where_enough_samples_are_below_it():
    """By the threshold: the highest tier that fewer samples than that are below."""
    letters = {"m": "misleading", "s": "speculative", "r": "reliable", "i": "irrefutable"}
    for samples, threshold, verdict in (
        ("sriii", 3, "irrefutable"),
        ("sriii", 2, "reliable"),
        ("mssii", 3, "speculative"),
        ("mssii", 1, "misleading"),
        ("mmmii", 4, "irrefutable"),
    ):
        judge = AutoLabelJudge(threshold=threshold)
        tables = [{LOVED: letters[sample]} for sample in samples]
        reading = run_program(judge.read("A mill.", "", [LOVED], ["cognitive"]), asker(tables))
        assert reading.sentences[0].verdict == verdict


def test_a_missing_answer_never_decides():
    """Two of five samples cut off: what the other three say stands only where those two could not turn it."""

    def ask(question):
        whole = asker(VERDICTS)(question)
        whole.finish_reason = "content_filter" if question.sample > 2 else "stop"
        return whole

    reading = run_program(AutoLabelJudge().read("A mill.", "", [MILL, COAL], ["factual", "factual"]), ask)
    assert [s.verdict for s in reading.sentences] == ["faithful", "invented"]
    strict = AutoLabelJudge(threshold=4)
    reading = run_program(strict.read("A mill.", "", [MILL, COAL], ["factual", "factual"]), ask)
    assert [(s.verdict, s.reason) for s in reading.sentences] == [("faithful", None), (None, "refused")]


def test_auto_stands_beside_the_annotators_protocol(tmp_path, capsys):
    """Rows by threshold in Tables 3 and 5; the printed tables beside, with their source."""
    data = write_case(tmp_path / "data")
    with ScriptedLLM(script) as server:
        words = ["--llm", "tiny", "--judge", "auto", "tiered", "--threshold", "2", "3", "--concurrency", "8"]
        words += ["--base-url", server.url, "--out", str(tmp_path / "run")]
        assert main(["--data", str(data), *words]) == 0
        assert {task_of(asked.user) for asked in server.asked} >= {"type", "support", "tier", "check", "grounded"}
    f1 = pd.read_csv(tmp_path / "run" / "table3-detection.csv").set_index("method")
    for name in ("Auto (threshold = 2) (tiny)", "Auto (threshold = 3) (tiny)", "Tiered (threshold = 3) (tiny)"):
        assert f1.loc[name, ["overall", "factual", "cognitive"]].tolist() == [1, 1, 1]
    assert "Direct prompting (tiny)" not in f1.index
    printed = pd.read_csv(tmp_path / "run" / "table3-detection-printed.csv").set_index("method")
    assert printed.loc["CogniDet 8B", "cognitive"] == 73.8
    assert "Printed: CogniBench, ACL 2025" in capsys.readouterr().out


def test_labels_become_training_data(tmp_path, capsys):
    """The lists are the hallucinated sentences, by level; the file of labels is a file of examples too."""
    data, out = write_case(tmp_path / "data"), tmp_path / "sft.jsonl"
    with ScriptedLLM(script) as server:
        words = ["label", "--data", str(data), "--llm", "tiny", "--out", str(tmp_path / "labeled"), "--base-url"]
        assert main([*words, server.url, "--dry-run"]) == 0
        assert capsys.readouterr().out == "at most 22 calls for 2 turns. Nothing was sent\n"
        assert server.count == 0
        assert main([*words, server.url]) == 0
        assert "2 turns labeled by auto:grounded@" in capsys.readouterr().out
        count = server.count
        assert main([*words, server.url]) == 0
        assert server.count == count, "a second run asks nothing"
    for level, expected in (
        ("grounded", [[COAL], [LOVED, NOBODY]]),
        ("irrefutable", [[COAL], [LOVED, MATTERED, NOBODY]]),
    ):
        export = ["export-sft", "--labels", str(tmp_path / "labeled"), "--level", level, "--out", str(out)]
        assert main(export) == 0
        assert lists_of(out) == expected
    examples = list(read_examples(tmp_path / "labeled" / "labels.jsonl"))
    assert [(e.example_id, e.document_id) for e in examples] == [("7_en_0", "7_en"), ("7_en_1", "7_en")]
    assert not list((tmp_path / "labeled").glob("figure8*"))


def test_a_turn_with_an_open_sentence_teaches_nothing(tmp_path, capsys):
    """It is left out whole and counted, since a list without one of its sentences would say that it is faithful."""
    data = write_case(tmp_path / "data")
    cut = lambda asked: Fault("refused") if CORN in asked.user else script(asked)  # noqa: E731
    with ScriptedLLM(cut) as server:
        out = ["--llm", "tiny", "--out", str(tmp_path / "labeled"), "--base-url", server.url]
        assert main(["label", "--data", str(data), "--judge", "tiered", *out]) == 0
    capsys.readouterr()
    assert main(["export-sft", "--labels", str(tmp_path / "labeled"), "--out", str(tmp_path / "sft.jsonl")]) == 0
    assert lists_of(tmp_path / "sft.jsonl") == [[COAL]]
    assert "1 turns left out, with a sentence that the judge left undecided" in capsys.readouterr().out


def test_votes_become_training_data(tmp_path, capsys):
    """The labels that `deep ask --judge` leaves beside its votes; with two judges of sentences one must be named."""
    message = [MILL, COAL, LOVED]
    (tmp_path / "news.csv").write_text(
        f'source,claim,example_id\nA mill.,"{" ".join(message)}",7\nA mill.,{NOBODY},8\n'
    )
    with ScriptedLLM(script) as server:
        words = ["--judge", "auto", "tiered", "--llm", "tiny", "--base-url", server.url]
        assert votes_main([str(tmp_path / "news.csv"), *words, "--out", str(tmp_path / "v.parquet")]) == 0
    given = ["--data", str(tmp_path / "news.csv"), "--votes", str(tmp_path / "v.parquet"), "--split", "all"]
    capsys.readouterr()
    assert main(["export-sft", *given, "--out", str(tmp_path / "sft.jsonl")]) == 2
    known = capsys.readouterr().err
    assert "`voter` must be one judge of sentences (auto, tiered, listed)" in known
    for voter in [column for column in pd.read_parquet(tmp_path / "v.parquet").columns if "@" in column]:
        assert voter in known
        assert main(["export-sft", *given, "--voter", voter, "--out", str(tmp_path / "sft.jsonl")]) == 0
        assert lists_of(tmp_path / "sft.jsonl") == [[COAL, LOVED], [NOBODY]]


@pytest.mark.figures
def test_figure_8_is_by_the_llm_that_wrote(tmp_path, capsys):
    """Where rows name their model: types and hallucinations by it, in the labels and in a run on published ones."""
    data = write_case(tmp_path / "data")
    dialogues = json.loads((data / "dialogues.json").read_text())
    for row, model in zip(dialogues, ("gpt", "gemini"), strict=True):
        row["model"] = model
    (data / "dialogues.json").write_text(json.dumps(dialogues))
    with ScriptedLLM(script) as server:
        out = ["--llm", "tiny", "--out", str(tmp_path / "labeled"), "--base-url", server.url]
        assert main(["label", "--data", str(data), *out]) == 0
    rows = pd.read_csv(tmp_path / "labeled" / "figure8-models.csv").set_index("labels")
    assert rows.loc["gemini", ["factual", "cognitive", "cognitive hallucinated"]].tolist() == [1, 3, 2]
    assert rows.loc["gpt", "factual share"] == 2 / 3
    assert (tmp_path / "labeled" / "figure8-models.png").is_file()
    assert main(["--data", str(data), "--out", str(tmp_path / "run")]) == 0
    rows = pd.read_csv(tmp_path / "run" / "figure8-models.csv").set_index("labels")
    assert rows.loc["gemini: published labels", "cognitive hallucinated"] == 2
    text = capsys.readouterr().out
    assert re.search(r"8 +GPT-4-1106-preview +factual share +66\.3", text)


@given(st.text("0123456789_en", min_size=1, max_size=8), st.floats(0.01, 0.99), st.integers(0, 9))
def test_a_dialogue_is_in_one_split(name, share, seed):
    """In train or in test, whatever file it is in; the splits move with the seed."""
    assert in_split(name, "all", share, seed)
    assert in_split(name, "train", share, seed) != in_split(name, "test", share, seed)
    assert in_split(name, "test", 0.999999, seed)


def test_the_split_of_the_release(data_home, tmp_path, capsys):
    """Train and test share no dialogue, leave nothing out, and hold about four and one in five."""
    folder = str(data_home / "cognibench")
    turns = read_turns(folder)
    test = {turn.turn_id for turn in turns if in_split(turn.dialogue_id, "test", 0.2, 0)}
    assert 0.1 < len(test) / len(turns) < 0.3
    assert main(["export-sft", "--data", folder, "--out", str(tmp_path / "train.jsonl")]) == 0
    assert f"{len(test)} turns of other dialogues are left for --split test" in capsys.readouterr().out
    assert main(["--data", folder, "--split", "test", "--out", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["turns"] == len(test)
    assert len(lists_of(tmp_path / "train.jsonl")) == len(turns) - len(test)


def test_sizes_are_nested(data_home, tmp_path):
    """The chats of a smaller file are among those of a larger one."""
    words = ["export-sft", "--data", str(data_home / "cognibench"), "--sizes", "5", "20"]
    assert main([*words, "--out", str(tmp_path / "d.jsonl")]) == 0
    small, large = ((tmp_path / f"d-{n}.jsonl").read_text().splitlines() for n in (5, 20))
    assert (len(small), len(large)) == (5, 20)
    assert large[:5] == small


def test_the_classifier_has_not_seen_the_dialogue(data_home):
    """Types of the release by a classifier of other dialogues: far from chance, and far from those that it learned."""
    turns = read_turns(str(data_home / "cognibench"))[:70]
    kinds = classify_sentences(turns, turns)
    assert 0.6 < accuracy_of(kinds, turns) < 0.85
    strangers = classify_sentences([replace(turn, dialogue_id=f"other {turn.dialogue_id}") for turn in turns], turns)
    assert accuracy_of(strangers, turns) > 0.9, "under another name the very sentences were learned"
    alone = [turn for turn in turns if turn.dialogue_id == turns[0].dialogue_id]
    assert classify_sentences(alone, alone) is None


def spans_of(tmp_path, content, name="spans.jsonl"):
    """Return what a file of spans says of the two turns of the case."""
    turns = read_turns(str(write_case(tmp_path / "data")))
    (tmp_path / name).write_text(content, encoding="utf-8")
    (method,) = read_spans(f"other={tmp_path / name}", turns)
    return method


def test_spans_become_sentences(tmp_path):
    """A sentence that a span touches is hallucinated; offsets, texts, pairs and lists; a turn without a row is open."""
    response = f"{MILL} {COAL} "
    row = {"turn_id": "7_en_0", "spans": [[len(MILL) - 2, len(response) - 3]]}
    method = spans_of(tmp_path, json.dumps(row))
    assert method.title == "other"
    assert method.found == [[True, True, False, False], [None] * 4]
    rows = [
        {"turn_id": "7_en_0", "spans": []},
        {"item_id": "7_en_1", "spans": ["the OLD mill", {"text": "no such words"}]},
    ]
    (tmp_path / "again").mkdir()
    method = spans_of(tmp_path / "again", "\n".join(map(json.dumps, rows)))
    assert method.found == [[False] * 4, [True, False, False, False]]
    assert method.unaligned == ("7_en_1, {'text': 'no such words'}",)


def test_spans_of_a_table_reach_the_tables(tmp_path, capsys):
    """CSV of a span a row; the detector stands in Table 3 beside the others."""
    data = write_case(tmp_path / "data")
    (tmp_path / "fava.csv").write_text("turn_id,start,end\n7_en_0,25,30\n7_en_1,,\n9_en_0,1,2\n")
    words = ["--spans", str(tmp_path / "fava.csv"), "--out", str(tmp_path / "run"), "--json"]
    assert main(["--data", str(data), *words]) == 0
    (result,) = [m for m in json.loads(capsys.readouterr().out)["methods"] if m["group"] == "spans"]
    overall = result["parts"]["overall"]
    assert (result["method"], overall["precision"], overall["coverage"]) == ("fava", 1, 1)
    assert overall["recall"] == 6 / 19


def test_the_evidence_of_any_judge_is_spans(tmp_path, capsys):
    """Votes of `listed` on the same turns give the row that asking it here gives; a voter without spans gives none."""
    data = write_case(tmp_path / "data")
    rows = [{"source": t.source, "claim": t.response, "example_id": t.turn_id} for t in read_turns(str(data))]
    (tmp_path / "turns.jsonl").write_text("\n".join(map(json.dumps, rows)))
    refuse = lambda asked: Fault("refused") if "Question 1" in asked.user else script(asked)  # noqa: E731
    with ScriptedLLM(refuse) as server:
        words = ["--judge", "listed", "--llm", "tiny", "--base-url", server.url, "--out", str(tmp_path / "v.parquet")]
        votes_main([str(tmp_path / "turns.jsonl"), *words])
        ask = ["--llm", "tiny", "--judge", "listed", "--base-url", server.url, "--out", str(tmp_path / "run"), "--json"]
        capsys.readouterr()
        assert main(["--data", str(data), *ask, "--spans", f"mine={tmp_path / 'v.parquet'}"]) == 0
    methods = {m["group"]: m for m in json.loads(capsys.readouterr().out)["methods"]}
    assert methods["spans"]["method"].startswith("mine (listed@")
    assert methods["spans"]["parts"] == methods["direct"]["parts"]
    assert 0 < methods["spans"]["parts"]["overall"]["coverage"] < 1
    assert votes_main([str(tmp_path / "turns.jsonl"), "--lexical", "quotes", "--out", str(tmp_path / "q.parquet")]) == 0
    assert main(["--data", str(data), "--spans", str(tmp_path / "q.parquet"), "--out", str(tmp_path / "x")]) == 2
    assert "`spans` must have a voter that points at parts of a response" in capsys.readouterr().err


def test_wrong_spans(tmp_path):
    """One line that names the place; and so where labels are not what `label` wrote."""
    for number, (spans, message) in enumerate(
        (
            ({"turn_id": "7_en_0", "spans": [[5, 900]]}, r"from 0 to \d+. Got \[5, 900\] in row 1"),
            ({"turn_id": "7_en_0", "spans": [[5, 5]]}, "must lie in the response"),
            ({"turn_id": "7_en_0", "spans": 3}, "must be a list. Got 3 in row 1"),
            ({"spans": []}, "must name a turn_id in every row. Got none in row 1"),
            ({"turn_id": "nobody", "spans": []}, "must have rows of the turns that are measured"),
        )
    ):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(InputError, match=message) as error:
            spans_of(tmp_path / str(number), json.dumps(spans))
        assert "\n" not in str(error.value)
    fine = {"sentences": [{"text": "x", "kind": None, "verdict": "fine", "votes": {}}]}
    for row, message in (({}, "KeyError 'sentences' in row 1"), (fine, "KeyError 'fine' in row 1")):
        (tmp_path / "labels.jsonl").write_text(json.dumps(row) + "\n")
        with pytest.raises(InputError, match=message):
            read_labels(tmp_path)


def run_folder(folder, f1, group="direct"):
    """Write the part of results.json that the curve reads."""
    folder.mkdir()
    method = {"group": group, "method": "Direct prompting (t)", "macro_f1": f1, "parts": {p: {"f1": f1} for p in PARTS}}
    (folder / "results.json").write_text(json.dumps({"methods": [method]}))
    return folder


PARTS = ("overall", "factual", "cognitive")


@pytest.mark.figures
def test_figure_12(tmp_path, capsys):
    """F1 by training size; points a tenfold by least squares."""
    runs = [run_folder(tmp_path / f"r{i}", f1) for i, f1 in enumerate((0.2, 0.3, 0.4))]
    points = [f"100={runs[1]}", f"10={runs[0]}", f"1000={runs[2]}"]
    assert main(["curve", *points, "--out", str(tmp_path / "curve")]) == 0
    message = capsys.readouterr().out
    assert "overall: +10.00 points by ten times as many chats" in message
    assert "Ten times the chats change F1 by +10.0 points, by a line through 3 sizes." in message
    table = pd.read_csv(tmp_path / "curve" / "figure12-training-size.csv")
    assert table["training chats"].tolist() == [10, 100, 1000]
    assert table["overall"].tolist() == [0.2, 0.3, 0.4]
    assert (tmp_path / "curve" / "figure12-training-size.svg").is_file()
    assert main(["curve", f"10={run_folder(tmp_path / 'x', 0.5, 'auto')}", "--out", str(tmp_path / "c")]) == 2
    assert "`method` must be one method of" in capsys.readouterr().err


SNOW, RAIN = "Snow fell.", "Rain fell."


def write_weather(folder, n=40):
    """Write dialogues about the weather, one turn each, in the published layout: snow is invented in every other."""
    folder.mkdir()
    dialogues, labels = [], {}
    empty = ("cognitive", "irrelevant", "misleading", "speculative", "realiable", "unequivocal")
    for i in range(n):
        message = [RAIN, SNOW] if i % 2 else [RAIN]
        turn = f"<user> Day {i}? \n\n<assistant> {' '.join(message)}"
        row = {"id": f"{i}_en_0", "dialogue": turn, "current_turn": turn, "turn_index": 0, "reference": RAIN}
        dialogues.append(row)
        lists = {"factual_list": message, "factual_hallu_list": message[1:], "hallu_list": message[1:]}
        labels[f"{i}_en_0"] = {f"{name}_list": [] for name in empty} | lists | {"sentence_label_dict": {}}
    (folder / "dialogues.json").write_text(json.dumps(dialogues))
    (folder / "labels.json").write_text(json.dumps(labels))
    return folder


@pytest.mark.slow
def test_label_train_detect(tmp_path, capsys):
    """A scripted LLM labels, a tiny model learns from its labels, and finds what is invented in dialogues kept back."""
    data = write_weather(tmp_path / "data")
    verdicts = {RAIN: "faithful", SNOW: "invented"}
    with ScriptedLLM(lambda asked: answer(asked.user, verdicts)) as server:
        words = ["--llm", "big", "--base-url", server.url, "--out", str(tmp_path / "labeled")]
        assert main(["label", "--data", str(data), *words]) == 0
    chats = tmp_path / "sft.jsonl"
    assert main(["export-sft", "--labels", str(tmp_path / "labeled"), "--out", str(chats)]) == 0
    answers = [f'{{"hallucinated": {printed}}}' for printed in ("[]", f'["{SNOW}"]')]
    prompt = json.loads(chats.read_text().splitlines()[0])["messages"][:2]
    words = {word for message in prompt for word in message["content"].split() if len(word) > 3 and word.isalpha()}
    save_causal(tmp_path / "base", words=[SNOW, RAIN, *answers, *sorted(words)])
    script = (ROOT / "examples" / "training" / "train.py").read_text(encoding="utf-8")
    # A model of one layer needs more and larger steps than the script's.
    script = script.replace("5e-5", "0.01").replace("num_train_epochs=3", "num_train_epochs=10")
    (tmp_path / "train.py").write_text(script)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub"), "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True)
    capsys.readouterr()
    f1 = {}
    for name in ("base", "tuned"):
        with serving(tmp_path / name) as url:
            words = ["--llm", "tuned", "--judge", "listed", "--split", "test", "--base-url", url, "--json"]
            assert main(["--data", str(data), *words, "--out", str(tmp_path / f"run-{name}")]) == 0
        (result,) = [m for m in json.loads(capsys.readouterr().out)["methods"] if m["group"] == "direct"]
        f1[name] = (result["parts"]["overall"]["f1"], result["parts"]["overall"]["coverage"])
    assert f1["tuned"] == (1, 1)
    assert f1["base"] == (None, 0)
    trained = len(chats.read_text().splitlines())
    assert main(["curve", f"{trained}={tmp_path / 'run-tuned'}", "--out", str(tmp_path / "curve")]) == 0
    assert pd.read_csv(tmp_path / "curve" / "figure12-training-size.csv")["training chats"].tolist() == [trained]
