"""Files of other tools: each kind from the file to a report in two commands, and what is said where that fails."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from deep import read_votes
from deep.datasets import read_examples
from deep.exceptions import InputError
from deep.integrations.foreign import ForeignOptions, read_foreign
from tests.deep_commands import data, report
from tests.guests.integrations.foreign_files import FILES, OPTIONS, RIGHT, TEXTS, write

WITHOUT_TEXTS = {"scores.csv", "batch_output.jsonl"}
OTHER_TEXTS = {
    "results.json": [*TEXTS[:3], (TEXTS[3][0], "")],
    "samples_rain_2026-11-01T00-00-00.1.jsonl": [(source, "yes") for source, _ in TEXTS],
}


def votes_of(path):
    """Return the votes of a table by judge."""
    result = read_votes([path])
    return {voter: column.tolist() for voter, column in zip(result.voter_names, result.votes.T, strict=True)}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_recognised(name, tmp_path, capsys):
    """Votes of every judge, and the texts where the file has them; each failure has its reason beside."""
    _, title, votes = FILES[name]
    out = tmp_path / "v.parquet"
    assert data(["from", str(write(tmp_path, name)), "--out", str(out), "--json", *OPTIONS.get(name, [])]) == 0
    message = json.loads(capsys.readouterr().out)
    assert title in message["kinds"][0]
    assert votes_of(out) == votes
    reasons = pd.read_parquet(tmp_path / "v.reasons.parquet")
    assert message["reasons"] == reasons.reason.value_counts().to_dict()
    texts = tmp_path / "v.examples.jsonl"
    assert texts.exists() == (name not in WITHOUT_TEXTS)
    if texts.exists():
        result = [(one.source.partition("\n\nAnother")[0], one.claim) for one in read_examples(texts)]
        assert result == OTHER_TEXTS.get(name, TEXTS)


@pytest.mark.parametrize("name", ["results.json", "scores.csv", "batch_output.jsonl", "mine.csv"])
def test_the_second_command_writes_a_report(name, tmp_path, capsys, monkeypatch):
    """It is the one that the first one names."""
    monkeypatch.chdir(tmp_path)
    assert data(["from", str(write(tmp_path, name)), "--json"]) == 0
    words = json.loads(capsys.readouterr().out)["next"].split()
    assert words[:2] == ["deep", "report"]
    assert report(words[2:]) == 0
    assert (tmp_path / words[-1]).stat().st_size > 10_000


def test_numbers_beside_a_verdict_stand_beside_the_votes(tmp_path):
    """The tool's own verdict is the vote; its number lies in a file of soft votes."""
    result = read_foreign([write(tmp_path, ".latest_test_run.json")])
    assert (result.soft, dict(result.scales)) == (("Faithfulness",), {})
    assert [row["Faithfulness"].score for row in result.judgments] == [0.75, 0.5, 0.75, 0.5]
    result.write(tmp_path / "v.parquet")
    assert pd.read_parquet(tmp_path / "v.soft.parquet").Faithfulness.tolist() == [0.75, 0.5, 0.75, 0.5]


def test_a_metric_whose_lower_numbers_are_better_is_turned(tmp_path):
    """On its own scale."""
    rows = [
        {"question": "?", "contexts": ["It rained."], "answer": "Rain.", "noise_sensitivity(mode=relevant)": x}
        for x in (0.1, 0.9, 0.25)
    ]
    (tmp_path / "r.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = read_foreign([tmp_path / "r.jsonl"]).votes()
    assert result.answers.T.tolist() == [[0.9, pytest.approx(0.1), 0.75]]
    assert result.votes.T.tolist() == [[1, 0, 1]]


def test_grades_stay_grades_until_a_cut_is_given(tmp_path):
    """They stand in the table, on the scale that its readers see; labels are no grades, so they need the cut."""
    path, out = tmp_path / "grades.csv", tmp_path / "v.parquet"
    path.write_text("id,claim,source,helpful,strict\na,c,s,5,yes\nb,d,t,2,no\ne,f,u,4,yes\n")
    result = read_foreign([path])
    assert {name: str(scale) for name, scale in result.scales.items()} == {"helpful": "1-5"}
    assert "Scales of answers: 1-5 (by their values): helpful. `--scale NAME=...` declares another." in result.notes
    assert result.write(out)[0] == out
    assert not (tmp_path / "v.soft.parquet").exists()
    table = read_votes([out])
    assert (table.voter_names, [str(scale) for scale in table.scales]) == (("helpful", "strict"), ["1-5", "binary"])
    assert table.answers.T.tolist() == result.votes().answers.T.tolist() == [[1.0, 0.25, 0.75], [1.0, 0.0, 1.0]]
    result = read_foreign([path], ForeignOptions(from_grade=5))
    assert (dict(result.scales), result.soft) == ({}, ("helpful",))
    assert [row["helpful"].vote for row in result.judgments] == [1, 0, 0]
    with pytest.raises(InputError, match=r"Got 'helpful': no label\. Of grades, say the lowest that counts"):
        read_foreign([path], ForeignOptions(label="helpful"))
    result = read_foreign([path], ForeignOptions(label="helpful", from_grade=4))
    assert [one.label for one in result.examples] == [1, 0, 1]


def test_numbers_on_no_usual_scale_need_a_cut(tmp_path):
    """They are left out beside others, and are no judge unless they are named as one: they may be ids or amounts."""
    path = tmp_path / "grades.csv"
    path.write_text("id,claim,source,margin,strict\na,c,s,50,yes\nb,d,t,-20,no\ne,f,u,400,yes\n")
    result = read_foreign([path])
    assert result.voters == ("strict",)
    assert "Not used: 'margin'." in result.notes
    result = read_foreign([path], ForeignOptions(judges=("margin", "strict")))
    assert result.voters == ("strict",)
    assert "Left out: margin (grades from -20 to 400); declare its --scale, or set --from-grade." in result.notes


def test_a_declared_scale_makes_a_column_a_grader(tmp_path):
    """Whichever its name and its range, also turned round; what lies outside is no answer, and is counted."""
    path, out = tmp_path / "metrics.csv", tmp_path / "v.parquet"
    path.write_text("id,is_factual,rouge,bart,wrong\na,1,31.5,-1,0.1\nb,0,20,-4,0.9\nc,1,44,-9,0.4\n")
    scales = "rou*=0-100", "bart=-5..0", "wrong=1..0"
    result = read_foreign([path], ForeignOptions(scale=scales))
    told = {name: str(scale) for name, scale in result.scales.items()}
    assert told == {"bart": "-5..0", "rouge": "0-100", "wrong": "1-0"}
    grades = [[0.8, 0.2, math.nan], [0.315, 0.2, 0.44], [0.9, 0.1, 0.6]]
    assert pytest.approx(np.array(grades), nan_ok=True) == result.votes().answers.T
    assert [row["bart"].reason for row in result.judgments] == [None, None, "unparsable"]
    result.write(out)
    table = read_votes([out], scales=dict(scale.split("=") for scale in scales))
    assert table.answers.tolist() == pytest.approx(result.votes().answers, nan_ok=True)
    with pytest.raises(InputError, match=r"`scale` must name judges of the table: 'bart', .* Got 'bert'\."):
        read_foreign([path], ForeignOptions(scale=("bert=0-1", *scales)))


def test_words_without_a_meaning_are_asked_for(tmp_path):
    """With how often each is said; words of verdicts are known, in any case, without a tool's marks."""
    asked = r"^`yes` and `no` must say .* Got 'holds' \(4\), 'does not hold' \(3\)\. Name"
    with pytest.raises(InputError, match=asked):
        read_foreign([write(tmp_path, "project.json")])
    path = tmp_path / "words.csv"
    path.write_text("item_id,a,b\n1,SUPPORTED,faithful\n2,NOT SUPPORTED,unfaithful\n3,UNSUPPORTED,\n")
    assert read_foreign([path]).votes().votes.T.tolist() == [[1, 0, 0], [1, 0, -1]]


def test_the_judge_who_is_right_gives_the_labels(tmp_path):
    """He is then no voter; a name that nothing has is refused with those that there are."""
    path = write(tmp_path, "log.json")
    result = read_foreign([path], ForeignOptions(label="human"))
    assert (result.voters, [one.label for one in result.examples]) == (("strict",), RIGHT)
    assert [one.dataset for one in result.examples] == ["weather"] * 4
    with pytest.raises(
        InputError, match=r"^`label` must be a judge \(human, strict\) or a column of 0 and 1\. Got 'gold'"
    ):
        read_foreign([path], ForeignOptions(label="gold"))


def test_a_table_is_read_by_the_names_of_its_columns(tmp_path):
    """What was taken for what is told; named columns go first, and one that is not there is refused."""
    path = write(tmp_path, "mine.csv")
    result = read_foreign([path])
    assert [one.label for one in result.examples] == RIGHT
    assert "source is 'article', claim is 'summary', label is 'human_passed'" in result.notes[0]
    assert "Not used: 'cost'." in result.notes
    # Two claims on one source are of one document.
    assert len({one.document_id for one in result.examples}) == 2
    swapped = read_foreign([path], ForeignOptions(label="judge_passed", judges=("human_passed",), claim="article"))
    assert (swapped.voters, swapped.examples[0].claim) == (("human_passed",), TEXTS[0][0])
    with pytest.raises(InputError, match=r"^`claim` must be a column: id, article, .*\. Got 'text'\."):
        read_foreign([path], ForeignOptions(claim="text"))


def test_one_question_of_several_is_chosen(tmp_path):
    """As people answer more than one."""
    rows = json.loads(FILES["records.json"][0]())
    for row in rows:
        row["responses"]["tone"] = [{"value": "yes", "user_id": "u1"}]
    path = tmp_path / "records.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(InputError, match=r"^`answer` must name the question .* one of 'tone', 'verdict'\. Got None\."):
        read_foreign([path])
    assert read_foreign([path], ForeignOptions(answer="tone")).votes().votes.T.tolist() == [[1, 1, 1, 1]]


def test_one_more_file_of_people_adds_to_the_same_items(tmp_path):
    """Each file is one person's where it does not say whose it is."""
    for person in ("ann", "bob"):
        (tmp_path / f"{person}.jsonl").write_text(FILES["admin.jsonl"][0]())
    result = read_foreign([tmp_path / "ann.jsonl", tmp_path / "bob.jsonl"])
    assert (result.voters, len(result.examples)) == (("ann", "bob"), 4)


def test_texts_alone_lead_to_judges(tmp_path, capsys, monkeypatch):
    """A data set of Hugging Face: classes are words, and the labels are those that yes and no name."""
    import pyarrow as pa
    from pyarrow import parquet

    monkeypatch.chdir(tmp_path)
    features = {"label": {"names": ["entailment", "neutral", "contradiction"], "_type": "ClassLabel"}}
    source, claim = zip(*TEXTS, strict=True)
    table = pa.table({"premise": source, "hypothesis": claim, "label": [0, 2, 0, 1]})
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(table.replace_schema_metadata(about), "train.parquet")
    words = ["--yes", "entailment", "--no", "contradiction", "neutral"]
    assert data(["from", "train.parquet", *words, "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert (message["voters"], message["labels"]) == ([], 4)
    assert message["next"].startswith("deep ask train.votes.examples.jsonl --lexical all --out ")
    assert [one.label for one in read_examples("train.votes.examples.jsonl")] == RIGHT


def test_what_is_none_of_them_is_refused_in_one_line(tmp_path, capsys):
    """It says what was looked for, and how to map columns; what lm-eval writes beside its samples holds no items."""
    looked = r"; Mechanical Turk batch \(CSV\); .* or a table .* with 'alpha', 'beta'\. Say"
    other = r"^`files` must be files that end in \.eval, \.csv, .*\. Got '.*x\.txt', another kind of file\."
    results = json.dumps({"results": {"acc": 0.6}, "pretty_env_info": "x" * 300})
    for name, content, message in (
        ("x.csv", "alpha,beta\nsome words of a text,others\n", looked),
        ("x.json", '{"a": {"b": 1}}', r"Got '.*x\.json' with 'a'\. That is one object\. Give a file"),
        ("x.json", results, r"That is one object. Give a file with a record for each item \(lm-eval: samples_"),
        ("x.txt", "words", other),
        ("x.json", "{broken", r"`files` must hold a JSON object a line"),
    ):
        path = tmp_path / name
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            read_foreign([path])
        assert data(["from", str(path), "--out", str(tmp_path / "v.parquet")]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "v.parquet").exists()


def test_the_likeliest_choice_is_the_claim(tmp_path):
    """lm-eval keeps a log-likelihood a choice where a task is of multiple choice, and no text of an answer."""
    words = {f"gen_args_{at}": {"arg_0": "Did it rain?", "arg_1": f" {word}"} for at, word in enumerate(("no", "yes"))}
    row = {"doc": {"passage": "It rained.", "label": 1}, "target": "1", "arguments": words, "filter": "none"}
    row["resps"] = [[["-0.9", "False"]], [["-0.2", "False"]]]
    kept = [[-0.1, True], [-2.5, False]], [["-0.9", "False"], ["-0.2", "False"]]
    rows = [row | {"doc_id": n, "filtered_resps": kept[n], "acc": float(n)} for n in range(2)]
    path = tmp_path / "samples_rain_2026-11-29T06-36-42.955934.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert [one.claim for one in read_foreign([path]).examples] == ["no", "yes"]
    with pytest.raises(InputError, match=r"`out` must end in \.parquet"):
        read_foreign([path]).write(tmp_path / "x.csv")
    assert list(tmp_path.iterdir()) == [path]
