"""Rows without a source or a claim, as a retrieval that found nothing leaves them: no judge is asked, no run ends."""

import json

import pandas as pd
import pyarrow as pa
import pytest

import deep
from deep.cli import main
from deep.datasets import ExampleFile, read_reasons
from deep.exceptions import DeepWarning, InputError
from tests.asking.toy_judge import ToyJudge, answer
from tests.scripted_llm import ScriptedLLM

ROWS = [
    {"source": "It rained.", "claim": "It rained.", "label": 1},
    {"source": "", "claim": "It snowed.", "label": 0},
    {"source": "It rained.", "claim": "It snowed.", "label": 0},
    {"source": "It rained.", "claim": " "},
    {"claim": "It hailed."},
]
LACKING = [1, 3, 4]


def written(path, rows=ROWS):
    """Write rows as the ending says; rows of JSON lack what is empty."""
    if path.suffix == ".csv":
        pd.DataFrame(rows).to_csv(path, index=False)
    elif path.suffix == ".parquet":
        pd.DataFrame(rows).to_parquet(path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows, indent=1))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_each_format_has_such_rows(tmp_path, ending):
    """They are counted and named; with `strict` they are an error, and so they are where all rows are so."""
    file = ExampleFile(written(tmp_path / f"x.{ending}"))
    with pytest.warns(DeepWarning, match=r"^3 of 5 rows .* no_source.* in row 2 of .*, and in 2 more rows \(4, 5\)\.$"):
        assert file.check() == 5
    assert [n for n, example in enumerate(file) if not example.has_texts] == LACKING
    with pytest.raises(InputError, match=r"in every row\. Got none in row 2 of .*, and in 2 more rows \(4, 5\)"):
        file.check(strict=True)
    with pytest.raises(InputError, match=r"in every row\. Got none in row 1"):
        ExampleFile(written(tmp_path / f"y.{ending}", [ROWS[3], ROWS[3]])).check()


def test_a_first_row_that_lacks_a_field(tmp_path):
    """Where others have it, that is one row's fault; where none has, the column is missing."""
    file = ExampleFile(written(tmp_path / "x.jsonl", ROWS[::-1]))
    assert [example.has_texts for example in file] == [False, False, True, False, True]
    with pytest.raises(InputError, match="Got none named 'source' in row 1"):
        ExampleFile(written(tmp_path / "y.jsonl", [{"context": "a", "claim": "b"}] * 3)).check()


def script(asked):
    """Answer the toy judge, and support every claim otherwise."""
    assert "It hailed" not in asked.text, "asked about a row without a source"
    return answer(asked) if asked.user[:5] in ("SPLIT", "CHECK") else "VERDICT: SUPPORTED"


def test_judges_of_every_kind_are_not_asked(tmp_path, monkeypatch):
    """Prompts, staged judges, functions and checks: no vote, with the reason no_source; all others have theirs."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    calls = []

    @deep.judge(name="mine", version="1")
    def mine(source, claim):
        calls.append((source, claim))
        return source == claim

    frame = pd.DataFrame(ROWS[::-1])
    judges = ["deep-numbers", ToyJudge(), mine, "quotes", "numbers"]
    with ScriptedLLM(script) as server:
        options = {"llm": "tiny", "ledger": str(tmp_path / "l.sqlite"), "base_url": server.url}
        with pytest.warns(DeepWarning, match="3 of 5 rows have no source or no claim"):
            votes = deep.ask(frame, judges, **options)
        count = server.count
    assert votes.votes.shape == (5, 5)
    assert (votes.votes[[0, 1, 3]] == -1).all()
    assert votes.votes[:, 0].tolist() == [-1, -1, 1, -1, 1]
    assert sorted(calls) == [("It rained.", "It rained."), ("It rained.", "It snowed.")]
    assert count > 0


def test_the_command_writes_the_reason_and_says_how_many(tmp_path, capsys, monkeypatch):
    """The rows are in the table; their reason is no failure of a judge."""
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "x.csv")
    words = ["votes", str(path), "--lexical", "numbers", "quotes", "--out", "v.parquet"]
    assert main([*words, "--strict"]) == 2
    assert "and in 2 more rows (4, 5). Fill it in." in capsys.readouterr().err
    assert main(words) == 0
    error = capsys.readouterr().err
    assert error.count("3 of 5 rows have no source or no claim") == 1
    reasons = pd.read_parquet("v.reasons.parquet")
    assert (reasons["reason"] == "no_source").sum() == 2 * len(LACKING)
    assert sorted(set(reasons.loc[reasons["reason"] == "no_source", "item_id"])) == ["2", "4", "5"]
    votes = deep.read_votes("v.parquet")
    assert len(votes.votes) == 5
    assert {reason for each in read_reasons(["v.parquet"], votes) for reason in each.reasons} <= {
        "abstained",
        "no_source",
    }
    assert main(["data", "check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("3 rows have no source or no claim\n")
    assert main(["data", "check", str(path), "--strict"]) == 2


def test_all_rows_that_are_not_usable_are_named(tmp_path):
    """A label that is none, a text that is none, a name that is none: the first, and the numbers of the others."""
    rows = [{"source": "a", "claim": "b", "label": label} for label in ("1", "maybe", "0", "x", "", "y")]
    with pytest.raises(InputError, match=r"Got 'maybe' in row 2 .*\. Not usable either: 2 more rows \(4, 6\)\.$"):
        ExampleFile(written(tmp_path / "x.jsonl", rows)).check()


@pytest.mark.parametrize("name", ["Label", "label ", "gold", "TARGET", "y", "Question", "Document_ID", "dataset "])
def test_a_column_that_seems_to_be_a_field(tmp_path, name):
    """It is refused with both names, and taken where it is mapped; else labels would be passed over in silence."""
    meant = name.strip().casefold() if name.strip().casefold() in ("question", "document_id", "dataset") else "label"
    path = written(tmp_path / "x.csv", [{"source": "a", "claim": "b", name: 1}])
    with pytest.raises(InputError, match=f"Got {name!r} in row 1 .* may be the column {meant!r}. Rename it, or map it"):
        ExampleFile(path).check()
    (example,) = ExampleFile(path, columns={meant: name})
    assert str(getattr(example, meant)) == "1"


def test_a_target_of_texts_is_no_label(tmp_path):
    """Nor is any such column where there is a column label."""
    rows = [{"source": "a", "claim": "b", "target": "a summary"}]
    assert ExampleFile(written(tmp_path / "x.csv", rows)).check() == 1
    rows = [{"source": "a", "claim": "b", "label": 1, "gold": 0}]
    assert [example.label for example in ExampleFile(written(tmp_path / "y.csv", rows))] == [1]


@pytest.mark.parametrize("content", ["[1]", "[", '[{"a": 1}, 2]', "[" * 5000, '{"data": []}', "[]"])
def test_json_that_holds_no_records(tmp_path, content):
    """It is refused in one line."""
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(InputError, match=r"^`examples` must .*$"):
        ExampleFile(path).check()


def test_examples_of_arrow_lack_what_is_empty():
    """A frame's empty cells are no text."""
    table = pa.table({"source": ["a", None], "claim": ["a", "b"]})
    with pytest.warns(DeepWarning, match="1 of 2 rows"):
        assert deep.ask(table, "numbers").votes.shape == (2, 1)
