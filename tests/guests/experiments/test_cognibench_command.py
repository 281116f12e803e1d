"""`deep cognibench` against a scripted LLM, with every figure worked out by hand; and on the published release."""

import json
import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from deep.experiments.cognibench._cognibench_tables import score_turns
from deep.experiments.cognibench._methods import constants
from deep.experiments.cognibench._turns import read_turns
from deep.experiments.tiered import ListJudge
from tests.deep_commands import cognibench as main
from tests.deep_commands import votes as votes_main
from tests.guests.experiments.cognibench_case import (
    COAL,
    CORN,
    HELLO,
    LONG,
    LOVED,
    MATTERED,
    MILL,
    NOBODY,
    VERDICTS,
    script,
    write_case,
)
from tests.prompt_pool.tiered_script import task_of
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

RUN = ["--llm", "tiny", "--threshold", "2", "3", "5", "--ablation"]


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Run the whole command once; return its folder, the requests and the results."""
    home = tmp_path_factory.mktemp("cognibench")
    data = write_case(home / "data")
    with pytest.MonkeyPatch.context() as patch, ScriptedLLM(script) as server:
        patch.setenv("OPENAI_API_KEY", "sk-test")
        command = ["--data", str(data), *RUN, *options(server.url), "--out", str(home / "run")]
        assert main(command) == 0
        asked, count = list(server.asked), server.count
        assert main(command) == 0
        again = server.count - count
    return {"home": home, "data": data, "run": home / "run", "asked": asked, "count": count, "again": again}


def options(url):
    """Return where to ask; one request at a time, so that samples come in order."""
    return ["--base-url", url, "--endpoint-name", "here", "--backoff", "0.01", "--concurrency", "1"]


def table(case, name):
    """Return a table of the run."""
    return pd.read_csv(case["run"] / f"{name}.csv")


def row(case, name, method):
    """Return the row of a method."""
    frame = table(case, name)
    (result,) = frame[frame["method"] == method].to_dict("records")
    return result


def same(value, expected):
    """Tell whether a cell is exactly a value; an empty cell is None."""
    return value == expected if expected is not None else value != value


# Words: factual 5 + 6 + 3 = 14, of which invented 6; cognitive 5 + 7 + 4 + 6 = 22, of which hallucinated 7 + 6 = 13.
# Threshold 3 finds LOVED, MATTERED and NOBODY (17 words, 13 right); 2 finds COAL too (6, right); 5 finds LOVED and
# NOBODY (13, right), the latter because the criterion after the one that it slipped through stops it.
MEASURES = {
    "always faithful": {"overall": (None, 0, 0), "factual": (None, 0, 0), "cognitive": (None, 0, 0)},
    "always hallucinated": {
        "overall": (19 / 36, 1, 38 / 55),
        "factual": (6 / 14, 1, 12 / 20),
        "cognitive": (13 / 22, 1, 26 / 35),
    },
    "Direct prompting (tiny)": {"overall": (6 / 10, 6 / 19, 12 / 29), "factual": (1, 1, 1), "cognitive": (0, 0, 0)},
    "Tiered (threshold = 2) (tiny)": {
        "overall": (19 / 23, 1, 38 / 42),
        "factual": (1, 1, 1),
        "cognitive": (13 / 17, 1, 26 / 30),
    },
    "Tiered (threshold = 3) (tiny)": {
        "overall": (13 / 17, 13 / 19, 26 / 36),
        "factual": (None, 0, 0),
        "cognitive": (13 / 17, 1, 26 / 30),
    },
    "Tiered (threshold = 5) (tiny)": {
        "overall": (1, 13 / 19, 26 / 32),
        "factual": (None, 0, 0),
        "cognitive": (1, 1, 1),
    },
}
MEASURES["Tiered, one sample (tiny)"] = MEASURES["Tiered (threshold = 3) (tiny)"]
MEASURES["Direct prompting, 5 samples (tiny)"] = MEASURES["Direct prompting (tiny)"]


@pytest.mark.parametrize("method", MEASURES)
def test_every_measure_is_what_the_words_say(case, method):
    """Precision, recall and F1, overall, factual and cognitive."""
    frame = table(case, "metrics")
    for part, expected in MEASURES[method].items():
        (result,) = frame[(frame["method"] == method) & (frame["part"] == part) & (frame["by"] == "words")].to_dict(
            "records"
        )
        for name, value in zip(("precision", "recall", "f1"), expected, strict=True):
            assert same(result[name], value), (part, name, result[name])
        assert (result["coverage"], result["open"]) == (1, 0)
    assert set(frame["method"]) == set(MEASURES)


def test_by_sentences_each_weighs_the_same(case):
    """Seven sentences, three of them hallucinated; threshold 3 finds three, two of them rightly."""
    frame = table(case, "metrics")
    frame = frame[(frame["by"] == "sentences") & (frame["part"] == "overall")].set_index("method")
    names = ["decided", "labeled", "detected", "right", "precision", "recall", "f1"]
    assert frame.loc["always hallucinated", names].tolist() == [7, 3, 7, 3, 3 / 7, 1, 6 / 10]
    assert frame.loc["Tiered (threshold = 3) (tiny)", names].tolist() == [7, 3, 3, 2, 2 / 3, 2 / 3, 2 / 3]


def test_table_5(case):
    """Recall and precision by threshold, and without samples, examples and tags."""
    rows = {
        "Tiered (threshold = 2) (tiny)": "Tiered (threshold = 2) (tiny)",
        "Tiered (threshold = 3) (tiny)": "Tiered (threshold = 3) (tiny)",
        "Tiered (threshold = 5) (tiny)": "Tiered (threshold = 5) (tiny)",
        "'- Sampling (tiny)": "Tiered, one sample (tiny)",
        "'- CFP (tiny)": "Direct prompting, 5 samples (tiny)",
    }
    assert list(table(case, "table5-ablation")["method"]) == list(rows)
    for name, method in rows.items():
        result = row(case, "table5-ablation", name)
        for part, (precision, recall, _) in MEASURES[method].items():
            assert same(result[f"{part} precision"], precision)
            assert same(result[f"{part} recall"], recall)


def test_table_2(case):
    """Counts, and the span and the mean of words."""
    (result,) = table(case, "table2-statistics").to_dict("records")
    names = ["dataset", "responses", "conversations", "labeled sentences", "context words", "words per response"]
    values = ["CogniBench", 2, 1, 7, "11-11 (11.00)", "18-20 (19.00)"]
    assert result == dict(zip(names, values, strict=True))


def test_tiers(case):
    """The judge's verdict beside the published one."""
    frame = table(case, "tiers")
    result = {
        (r["published"], r["judged"]): r["sentences"]
        for r in frame[frame["method"] == "Tiered (threshold = 3) (tiny)"].to_dict("records")
    }
    assert result == {
        ("faithful", "faithful"): 2,
        ("invented", "faithful"): 1,
        ("irrefutable", "irrefutable"): 1,
        ("irrelevant", "irrelevant"): 1,
        ("misleading", "misleading"): 1,
        ("reliable", "speculative"): 1,
        ("speculative", "speculative"): 1,
    }
    strict = frame[frame["method"] == "Tiered (threshold = 5) (tiny)"]
    assert list(strict[strict["published"] == "misleading"]["judged"]) == ["speculative"]


def rates_of(case, name, labels="published labels"):
    """Return (statements, hallucinated) of each kind by place."""
    frame = table(case, name)
    frame = frame[frame["labels"] == labels]
    kinds = ("factual", "cognitive")
    return {r[frame.columns[1]]: tuple((r[k], r[f"{k} hallucinated"]) for k in kinds) for r in frame.to_dict("records")}


def test_rates(case):
    """By turn, and by the fifth of the turn that a sentence's middle lies in."""
    assert rates_of(case, "rates-by-turn") == {0: ((2, 1), (1, 0)), 1: ((1, 0), (3, 2))}
    assert rates_of(case, "rates-by-position") == {
        0: ((1, 0), (1, 1)),
        1: ((1, 1), (1, 0)),
        2: ((0, 0), (0, 0)),
        3: ((0, 0), (2, 1)),
        4: ((1, 0), (0, 0)),
    }
    judged = "Tiered (threshold = 3) (tiny)"
    assert rates_of(case, "rates-by-turn", judged) == {0: ((2, 0), (1, 0)), 1: ((1, 0), (3, 3))}
    first, second = table(case, "rates-by-turn")[:2].to_dict("records")
    assert (first["factual per turn"], first["factual hallucination rate"]) == (2, 1 / 2)
    assert (second["turns"], second["cognitive hallucination rate"]) == (1, 2 / 3)
    middle = table(case, "rates-by-position").iloc[2]
    assert middle["turns"] == 2
    assert pd.isna(middle["factual hallucination rate"])


def test_shares_by_whose_labels_they_are(case):
    """Types and hallucinations; Figure 8 is by the LLM that wrote the responses, which these data do not say."""
    assert not list(case["run"].glob("figure8*"))
    rows = {r["labels"]: r for r in table(case, "shares-by-labels").to_dict("records")}
    assert rows["published labels"]["factual share"] == 3 / 7
    result = {name: (r["factual hallucinated"], r["cognitive hallucinated"]) for name, r in rows.items()}
    assert result["published labels"] == (1, 2)
    assert result["Tiered (threshold = 2) (tiny)"] == (1, 3)
    assert result["Tiered (threshold = 3) (tiny)"] == (0, 3)
    assert len(result) == 5


def test_sentences(case):
    """Every sentence in its place, with what is published and what each method found."""
    frame = table(case, "sentences")
    assert list(frame["text"]) == [MILL, COAL, LONG, HELLO, LOVED, MATTERED, NOBODY, CORN]
    assert list(frame["verdict"]) == list(VERDICTS.values())
    assert list(frame["hallucinated"]) == [0, 1, 0, 0, 1, 0, 1, 0]
    assert list(frame["Tiered (threshold = 2) (tiny)"]) == [0, 1, 0, 0, 1, 1, 1, 0]
    assert list(frame["Direct prompting (tiny)"]) == [0, 1, 0, 0, 0, 1, 0, 0]


def test_calls(case):
    """Each question once, whichever judges share it, and nothing more in a second run."""
    assert case["again"] == 0
    tasks = Counter(task_of(asked.user) for asked in case["asked"])
    # One sample adds two questions of each of the first three tasks, and one of the last.
    assert tasks == {"type": 10 + 2, "check": 10 + 2, "grounded": 15 + 2, "irrefutable": 10 + 1, "list": 2 + 10}
    assert case["count"] == 64


def test_counts_and_texts(case):
    """results.json holds the counts; the Markdown tables show percentages, and a dash where there is no number."""
    counts = json.loads((case["run"] / "results.json").read_text(encoding="utf-8"))["counts"]
    kinds = dict.fromkeys(["invented", "misleading", "speculative", "reliable", "irrefutable", "irrelevant"], 1)
    assert counts == {"turns": 2, "keys": 9, "factual": 3, "cognitive": 4, "faithful": 2, "untyped": 1, **kinds}
    text = (case["run"] / "table3-detection.md").read_text(encoding="utf-8")
    assert "| constant | always hallucinated | 69.09 | 60.00 | 74.29 | 67.14 | 100.00 |" in text
    text = (case["run"] / "table5-ablation.md").read_text(encoding="utf-8")
    assert "| Tiered (threshold = 3) (tiny) | 68.42 | 76.47 | 0.00 | - | 100.00 | 76.47 |" in text


def test_what_stays_open_leaves_the_metric(tmp_path, capsys):
    """A turn whose replies are cut off is neither faithful nor hallucinated: the coverage says how much is left."""
    data = write_case(tmp_path / "data")
    out = tmp_path / "run"
    second = lambda asked: Fault("truncated") if LOVED in asked.user else script(asked)  # noqa: E731
    with ScriptedLLM(second) as server:
        assert main(["--data", str(data), "--llm", "tiny", *options(server.url), "--out", str(out), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    parts = {m["method"]: m["parts"] for m in results["methods"]}
    for method in ("Direct prompting (tiny)", "Tiered (threshold = 3) (tiny)"):
        overall = parts[method]["overall"]
        assert (overall["decided"], overall["open"], overall["labeled"]) == (16, 20, 6)
        assert overall["coverage"] == 16 / 36
    assert parts["Direct prompting (tiny)"]["overall"]["f1"] == 1
    assert results == json.loads((out / "results.json").read_text(encoding="utf-8"))
    frame = pd.read_csv(out / "sentences.csv")
    assert frame["Direct prompting (tiny)"].isna().tolist() == [False] * 4 + [True] * 4


@pytest.mark.parametrize(
    ("level", "bad"),
    [
        ("rational", {COAL, NOBODY}),
        ("grounded", {COAL, NOBODY, LOVED}),
        ("irrefutable", {COAL, NOBODY, LOVED, MATTERED}),
    ],
)
def test_the_level_says_what_a_hallucination_is(tmp_path, level, bad):
    """In the labels of the metric and in the exported training data alike."""
    data = write_case(tmp_path / "data")
    turns = read_turns(str(data))
    overall = score_turns(turns, constants(turns)[1].found, level)["overall"]
    assert (overall.labeled, overall.decided) == (sum(len(text.split()) for text in bad), 36)
    out = tmp_path / "sft.jsonl"
    assert main(["export-sft", "--data", str(data), "--level", level, "--out", str(out)]) == 0
    listed = [json.loads(json.loads(line)["messages"][-1]["content"]) for line in out.read_text().splitlines()]
    assert {text for answer in listed for text in answer["hallucinated"]} == bad


def test_exported_chats_are_what_the_list_judge_asks(tmp_path, capsys):
    """Knowledge, dialogue and response go in, the list of hallucinated sentences comes out."""
    data = write_case(tmp_path / "data")
    out = tmp_path / "sft.jsonl"
    assert main(["export-sft", "--data", str(data), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"2 chats: in {out}\n"
    chats = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [[message["role"] for message in chat["messages"]] for chat in chats] == [
        ["system", "user", "assistant"]
    ] * 2
    second = chats[1]["messages"][1]["content"]
    assert all(text in second for text in ("ground corn for the town", "Question 0?", MILL, "Question 1?", NOBODY))
    assert chats[1]["messages"][2]["content"] == json.dumps({"hallucinated": [LOVED, NOBODY]})
    turns = read_turns(str(data))
    asked = [next(ListJudge().read(turn.source, turn.response))[0].messages for turn in turns]
    assert [chat["messages"][:2] for chat in chats] == asked


@pytest.mark.parametrize(
    ("neutral", "rows"),
    [("both", ["not entailed", "contradicted"]), ("hallucinated", ["not entailed"]), ("faithful", ["contradicted"])],
)
def test_an_encoder_is_a_baseline(tmp_path, capsys, neutral, rows):
    """Each sentence is paired with the knowledge; neutral ones are hallucinated, or as in the paper they are not."""
    from tests.features.tiny_encoders import save_classifier

    data = write_case(tmp_path / "data")
    model = save_classifier(tmp_path / "nli")
    words = ["--encoder", str(model), "--neutral", neutral, "--out", str(tmp_path / "run"), "--json"]
    assert main(["--data", str(data), *words]) == 0
    result = [m for m in json.loads(capsys.readouterr().out)["methods"] if m["group"] == "NLI"]
    for method, name in zip(result, rows, strict=True):
        assert re.fullmatch(rf"Pairwise NLI, {name} \(nli-max@[0-9a-f]{{8}}/nli\)", method["method"])
        assert method["parts"]["overall"]["coverage"] == 1


def test_a_dry_run_sends_nothing(tmp_path, capsys):
    """The most calls by judge, and their sum."""
    data = write_case(tmp_path / "data")
    assert main(["--data", str(data), *RUN, "--dry-run", "--out", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().out
    assert "Tiered (threshold = 2) (tiny)       at most 40 calls" in text
    assert "140 calls at most" in text
    assert not (tmp_path / "run").exists()


def test_the_budget_stops_it(tmp_path, capsys):
    """Nothing is written; with more money it goes on."""
    data = write_case(tmp_path / "data")
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1000.0\noutput = 0.0\n")
    with ScriptedLLM(script) as server:
        more = ["--llm", "tiny", *options(server.url), "--prices", str(prices), "--out", str(tmp_path / "run")]
        assert main(["--data", str(data), *more, "--budget", "3"]) == 3
        assert "stopped: the budget is reached. Nothing was written" in capsys.readouterr().err
        assert not (tmp_path / "run").exists()
        assert main(["--data", str(data), *more, "--budget", "1000"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--data no-such-folder", "`data` must be a folder or cognibench. Got 'no-such-folder'."),
        ("--data EMPTY", "`data` must be JSON. Got"),
        ("--data DATA --llm a a", "`llm` must name each LLM once. Got 'a' twice."),
        ("--data DATA --llm a --samples 10001", "`samples` must be at most 10,000. Got 10001."),
        ("--data DATA --llm a --threshold two", "`threshold` must be a whole number from 1 to 5. Got 'two'."),
        ("--data DATA --llm a --judge mine", "`judge` must be of auto, listed, tiered. Got 'mine'."),
        ("--data DATA --budget 5", "`budget` must be given where LLMs are asked. Got it without `llm`."),
        ("--data DATA --split test", "`split` must have at least one turn. Got none in 'test'."),
        ("--data DATA --test-share 1", "`test_share` must lie in (0, 1). Got 1.0."),
        ("--data DATA --spans a=b.txt", "`spans` must be a CSV, JSON, JSONL or Parquet file. Got 'b.txt'."),
        ("label --data DATA --llm a b", "`llm` must be one LLM. Got 'b' too."),
        ("label --data DATA --llm a --threshold 9", "`threshold` must be a whole number from 1 to 5"),
        ("export-sft --out x.jsonl", "`data` or `labels` must be given, and not both. Got neither."),
        ("export-sft --data DATA --votes . --out x.jsonl", "`voter` must be one judge"),
        ("export-sft --data DATA --sizes 3 --out x.jsonl", "`sizes` must be whole numbers from 1 to 2"),
        ("export-sft --labels EMPTY --out x.jsonl", "labels.jsonl"),
        ("curve FOREIGN=FOREIGN", "`points` must be SIZE=RUN, SIZE a number of training chats. Got"),
        ("curve 10=FOREIGN", "`points` must be runs of `deep cognibench`. Got another kind in"),
        ("curve 10=EMPTY", "`points` must be folders of runs. Got 'EMPTY'"),
        ("--data DATA --llm a --examples absent.toml", "`examples` must be a readable TOML file. Got 'absent.toml'"),
        ("--data DATA --encoder no/such/model", "no/such/model"),
        ("--data DATA --out EMPTY/..", "`out` must be"),
        ("export-sft --data DATA --out x.csv", "`out` must end in .jsonl. Got 'x.csv'."),
        ("agreement absent.csv", "`file` must be readable. Got 'absent.csv'"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, capsys, words, message):
    """Exit status 2, and nothing is written."""
    (tmp_path / "empty").mkdir()
    places = {"DATA": str(write_case(tmp_path / "data")), "EMPTY": str(tmp_path / "empty")}
    places["EMPTY/.."] = str(tmp_path)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "results.json").write_text('{"methods": [{"method": "m"}], "replies": 3}')
    words = [places.get(word, word).replace("FOREIGN", str(tmp_path / "foreign")) for word in words.split()]
    if "--out" not in words and words[0] != "agreement":
        words += ["--out", str(tmp_path / "run")]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert error.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.pop("speculative_list"), "KeyError"),
        (lambda record: record["speculative_list"].clear(), "0 tiers for"),
        (lambda record: record["misleading_list"].append(LOVED), "2 tiers for"),
        (lambda record: record.update(factual_list=None), "TypeError"),
    ],
)
def test_labels_in_another_layout(tmp_path, capsys, change, message):
    """The turn is named."""
    data = write_case(tmp_path / "data")
    labels = json.loads((data / "labels.json").read_text(encoding="utf-8"))
    change(labels["7_en_1"])
    (data / "labels.json").write_text(json.dumps(labels), encoding="utf-8")
    assert main(["--data", str(data), "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "turn '7_en_1'" in error
    (data / "labels.json").write_text("{}", encoding="utf-8")
    assert main(["--data", str(data), "--out", str(tmp_path / "run")]) == 2
    assert "at least one labeled turn" in capsys.readouterr().err


def test_as_a_voter(tmp_path):
    """`deep ask --judge tiered:LEVEL`: a response is consistent if every sentence meets the level."""
    data = write_case(tmp_path / "data")
    examples = tmp_path / "turns.jsonl"
    lines = [
        {"source": turn.source, "claim": turn.response, "example_id": turn.turn_id} for turn in read_turns(str(data))
    ]
    lines.append({"source": "A mill.", "claim": f"{MILL} {MATTERED} {LONG}", "example_id": "good"})
    lines.append({"source": "A mill.", "claim": f"{MILL} {LONG}", "example_id": "best"})
    examples.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    honest = lambda asked: script(asked).replace("ungrounded", "grounded")  # noqa: E731
    judges = ["--judge", "tiered", "tiered:rational", "tiered:irrefutable", "--llm", "tiny"]
    with ScriptedLLM(honest) as server:
        out = tmp_path / "votes.parquet"
        assert votes_main([str(examples), *judges, *options(server.url), "--out", str(out)]) == 0
        n_calls = server.count
        frame = pd.read_parquet(out).set_index("item_id")
        common = [str(examples), "--llm", "tiny", *options(server.url), "--out", str(out)]
        assert votes_main([*common, "--judge", "tiered:irrefutable"]) == 0
        assert server.count == n_calls
        alone = pd.read_parquet(out).columns[-1]
    columns = {name.split("@")[0]: frame[name] for name in frame.columns[2:]}
    assert columns["tiered:rational"].to_dict() == {"7_en_0": 1, "7_en_1": 0, "good": 1, "best": 1}
    assert columns["tiered:grounded"].to_dict() == {"7_en_0": 1, "7_en_1": 0, "good": 1, "best": 1}
    assert columns["tiered:irrefutable"].to_dict() == {"7_en_0": 1, "7_en_1": 0, "good": 0, "best": 1}
    assert n_calls == 4 * 20  # the three levels ask the same
    assert alone == frame.columns[-1]


def test_the_published_release(data_home, tmp_path, capsys):
    """Its counts are those of the release; judges that look at nothing get what its words imply."""
    folder = data_home / "cognibench"
    assert main(["--data", str(folder), "--out", str(tmp_path / "run"), "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    counts = {"turns": 136, "keys": 1281, "factual": 783, "cognitive": 454, "faithful": 783 - 136, "invented": 136}
    counts |= {"misleading": 10, "speculative": 255, "reliable": 146, "irrefutable": 43, "irrelevant": 4, "untyped": 33}
    assert results["counts"] == counts
    labels = json.loads((folder / "labels.json").read_text(encoding="utf-8")).values()
    words = Counter()
    for record in labels:
        for name in ("factual_list", "factual_hallu_list", "cognitive_list", "cognitive_hallu_list"):
            words[name] += sum(len(text.split()) for text in record[name])
    expected = {
        "factual": (words["factual_list"], words["factual_hallu_list"]),
        "cognitive": (words["cognitive_list"], words["cognitive_hallu_list"]),
    }
    expected["overall"] = tuple(map(sum, zip(*expected.values(), strict=True)))
    sentences = {"factual": (783, 136), "cognitive": (454, 265), "overall": (1237, 401)}
    for name, sizes in (("parts", expected), ("parts_by_sentences", sentences)):
        faithful, hallucinated = (method[name] for method in results["methods"])
        for part, (every, bad) in sizes.items():
            assert [faithful[part][measure] for measure in ("precision", "recall", "f1")] == [None, 0, 0]
            result = [hallucinated[part][measure] for measure in ("precision", "recall", "f1")]
            assert result == pytest.approx([bad / every, 1, 2 * bad / (every + bad)], abs=1e-15)


def test_the_guide_shows_what_is_printed(data_home, tmp_path, capsys):
    """Every line about the release in docs/cognibench.md is the command's own."""
    folder = data_home / "cognibench"
    assert main(["--data", str(folder), "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out.splitlines()
    guide = (Path(__file__).parents[3] / "docs" / "cognibench.md").read_text(encoding="utf-8")
    for line in printed[:10]:
        assert line in guide
    assert main(["--data", str(folder), "--llm", "m", "--dry-run"]) == 0
    calls = re.findall(r"at most ([\d,]+) calls", capsys.readouterr().out)
    assert calls == ["136", "2,720"]
    assert "at most 2,720 calls" in guide
    for name in ("table2-statistics", "table3-detection", "metrics", "rates-by-turn", "shares-by-labels"):
        assert f"`{name}`" in guide
        assert (tmp_path / "run" / f"{name}.csv").is_file()
