"""Texts and evidence travel with votes: what a table remembers of its examples, and what lies beside it."""

import hashlib
import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep.datasets import Passage, file_metadata, passages_of, read_judgments, read_texts
from deep.exceptions import InputError
from deep.prompt_pool import SearchableText
from deep.records import Judgment
from tests.asking.test_offline_votes import ROWS, FakeJudge, examples  # noqa: F401  a fixture
from tests.deep_commands import votes as main
from tests.scripted_llm import ScriptedLLM

CLAIMS = [
    ("Sales rose to 1,200 units in May. Staff stayed.", "Sales rose to 1,300 units."),
    ("Ms Wu did not sell her shares.", "Ms Wu kept all 12 shares."),
]


@pytest.fixture
def judged(tmp_path):
    """Return a table of lexical votes in a folder beside its examples."""
    pd.DataFrame(CLAIMS, columns=["article", "claim"]).to_csv(tmp_path / "news.csv", index=False)
    out = tmp_path / "votes.parquet"
    words = ["--source-column", "article", "--lexical", "all", "--out", str(out), "--json"]
    assert main([str(tmp_path / "news.csv"), *words]) == 0
    return out


ITEMS = [("news", "1"), ("news", "2")]


def test_votes_remember_their_examples(judged):
    """Path from the votes' own folder, SHA-256, the columns and the dataset's name."""
    record = file_metadata(judged)["examples"]
    digest = hashlib.sha256(judged.with_name("news.csv").read_bytes()).hexdigest()
    assert record == {"path": "news.csv", "sha256": digest, "columns": {"source": "article"}, "dataset": "news"}
    result = read_texts(judged, ITEMS)
    assert [(e.source, e.claim) for e in result.examples.values()] == CLAIMS
    assert (result.missing, result.notes) == (0, ())


def test_both_can_be_moved_together(judged, tmp_path):
    """To another folder, where the texts are still found."""
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for name in ("votes.parquet", "news.csv"):
        shutil.move(tmp_path / name, moved / name)
    assert read_texts(moved / "votes.parquet", ITEMS).missing == 0


def test_a_changed_file_is_said_and_not_read(judged):
    """Rows may have moved, and ids with them; `examples` reads it all the same, and says so."""
    path = judged.with_name("news.csv")
    path.write_text(path.read_text() + "More.,More.\n")
    result = read_texts(judged, ITEMS)
    assert (result.examples, result.missing) == ({}, 2)
    assert "has changed since it was judged" in result.notes[0]
    forced = read_texts(judged, ITEMS, examples=path)
    assert len(forced.examples) == 2
    assert "is not the file that was judged" in forced.notes[0]


def test_a_missing_file_is_said_and_can_be_named_anew(judged, tmp_path):
    """A copy of another name is read by the options of the first reading, without a word."""
    judged.with_name("news.csv").rename(tmp_path / "copy.csv")
    result = read_texts(judged, ITEMS)
    assert (result.missing, "is gone" in result.notes[0]) == (2, True)
    again = read_texts(judged, [*ITEMS, ("news", "9")], examples=tmp_path / "copy.csv")
    assert len(again.examples) == 2
    assert again.notes == ("1 of 3 items are not among the examples; ids stand in place of texts.",)


def test_examples_that_cannot_be_read_are_an_error_only_where_they_are_named(judged, tmp_path):
    """A user's own file is refused; one that is remembered only leaves no texts."""
    (tmp_path / "other.csv").write_text("claim\nx\n")
    with pytest.raises(InputError, match="must have the columns article and claim"):
        read_texts(judged, ITEMS, examples=tmp_path / "other.csv")


def test_votes_as_csv_remember_by_the_judgments_beside_them(judged):
    """A copy of the votes that another tool wrote has no metadata of its own."""
    copy = judged.with_suffix(".csv")
    pd.read_parquet(judged).to_csv(copy, index=False)
    assert len(read_texts(copy, ITEMS).examples) == 2
    judged.with_name("votes.judgments.parquet").unlink()
    assert "does not say which examples" in read_texts(copy, ITEMS).notes[0]


def test_a_benchmark_is_remembered_by_name(tmp_path, monkeypatch):
    """With the SHA-256 of its files; one that has changed is said."""
    home = tmp_path / "home"
    (home / "fect").mkdir(parents=True)
    rows = [("Agent: Hello.", "The agent said hello.", "TRUE"), ("Agent: Bye.", "The agent sang.", "FALSE")]
    table = home / "fect" / "fect_benchmark.csv"
    pd.DataFrame(rows, columns=["conversation", "claim", "claim_is_factual"]).to_csv(table, index=False)
    monkeypatch.setenv("DEEP_DATA_HOME", str(home))
    out = tmp_path / "votes.parquet"
    assert main(["fect", "--lexical", "numbers", "--out", str(out), "--json"]) == 0
    items = [("fect", item) for item in pd.read_parquet(out)["item_id"]]
    assert [example.claim for example in read_texts(out, items).examples.values()] == [row[1] for row in rows]
    table.write_text(table.read_text() + "\n")
    assert "has changed" in read_texts(out, items).notes[0]
    table.unlink()
    assert "is not here" in read_texts(out, items).notes[0]


def test_lexical_evidence_is_found_where_it_stands(judged):
    """Words of the claim, with offsets; every rationale is there."""
    result = {(d.item_id, d.voter.partition("@")[0]): d for d in read_judgments(judged)}
    number = result["1", "lexical-numbers"].passages[0]
    assert (number.where, CLAIMS[0][1][number.start : number.end]) == ("claim", number.text)
    assert "1,300" in number.text
    assert result["2", "lexical-quotes"].rationale
    texts = {"claim": 1, "source": 0}
    for (item, _), detail in result.items():
        for p in detail.passages:
            message = CLAIMS[int(item) - 1][texts[p.where]][p.start : p.end] if p.where else p.text
            assert SearchableText(message).find(p.text) is not None


def test_evidence_of_an_encoder_is_in_the_source(tmp_path, examples, monkeypatch):  # noqa: F811
    """A chunk of the source has its offsets there."""
    from deep.integrations import encoders

    judgment = Judgment(1, score=0.9, rationale="least supported: x", evidence=("1,200 units in May.",))
    monkeypatch.setattr(encoders, "load_named_encoder", lambda *_, **__: FakeJudge("nli-max", "tiny", judgment))
    out = tmp_path / "v.parquet"
    assert main([str(examples), "--encoder", "tiny", "--out", str(out), "--json"]) == 0
    detail = next(read_judgments(out, items=[("news", "1")]))
    assert [(p.where, p.start, p.end) for p in detail.passages] == [("source", 14, 33)]


def test_a_quote_of_a_prompt_is_in_the_source(tmp_path, examples, monkeypatch):  # noqa: F811
    """Whatever its case, quotes and white space; one that is in neither text has no place."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    message = 'It says "SALES rose  to 1,200" and "nothing else".\nVERDICT: SUPPORTED'
    out = tmp_path / "v.parquet"
    with ScriptedLLM(lambda _: message) as server:
        words = ["--prompt", "deep-strict-steps", "--llm", "tiny", "--base-url", server.url, "--out", str(out)]
        assert main([str(examples), *words, "--json"]) == 0
    detail = next(read_judgments(out, items=[("news", "1")]))
    assert detail.rationale == message.partition("\n")[0]
    quoted, absent = detail.passages
    assert ROWS[0][0][quoted.start : quoted.end] == "Sales rose to 1,200"
    assert (quoted.where, absent.where, absent.text) == ("source", None, "nothing else")
    assert detail.tokens > 0


def test_text_that_no_file_can_hold(tmp_path, examples, monkeypatch):  # noqa: F811
    """A lone surrogate becomes a question mark."""
    from deep.integrations import encoders

    judgment = Judgment(1, score=0.9, rationale="so \ud800", evidence=("a \udfff",))
    monkeypatch.setattr(encoders, "load_named_encoder", lambda *_, **__: FakeJudge("nli-max", "tiny", judgment))
    out = tmp_path / "v.parquet"
    assert main([str(examples), "--encoder", "tiny", "--out", str(out), "--json"]) == 0
    detail = next(read_judgments(out))
    assert (detail.rationale, detail.passages[0].text) == ("so ?", "a ?")


def test_files_of_an_earlier_version_still_open(tmp_path):
    """The evidence of staged judges, as it was kept: claims that were checked, and verdicts before sentences."""
    checked = {
        "claim": "It rained.",
        "span": [0, 10],
        "state": "supported",
        "evidence": [{"excerpt": "rain fell", "span": [4, 13], "found": "verbatim", "verdict": "PASS"}],
    }
    rows = [("d", "1", "stepwise@1/m", [json.dumps(checked)]), ("d", "1", "tiered@1/m", ["hallucinated: It sang."])]
    frame = pd.DataFrame(rows, columns=["dataset", "item_id", "voter", "evidence"])
    frame.to_parquet(tmp_path / "v.evidence.parquet")
    stepwise, tiered = read_judgments(tmp_path / "v.parquet")
    assert [(p.text, p.where, p.verdict, p.about) for p in stepwise.passages] == [
        ("It rained.", "claim", "supported", None),
        ("rain fell", "source", "PASS", "It rained."),
    ]
    assert tiered.passages[0].text == "hallucinated: It sang."
    assert list(read_judgments(tmp_path / "none.parquet")) == []


def test_a_file_that_is_none_is_refused(tmp_path):
    """In one line, whatever is wrong with it."""
    (tmp_path / "v.judgments.parquet").write_text("no")
    with pytest.raises(InputError, match="`judgments` must name readable Parquet files"):
        list(read_judgments(tmp_path / "v.parquet"))
    pd.DataFrame({"dataset": ["d"]}).to_parquet(tmp_path / "v.judgments.parquet")
    with pytest.raises(InputError, match="`judgments` must have a column item_id"):
        list(read_judgments(tmp_path / "v.parquet"))


@pytest.mark.parametrize(
    "entry",
    [
        *("{", "{}", '{"claim": 3}', "[1]", "no colon", "a: b", "", '{"claim": "c", "state": 5}'),
        *(f'{{"claim": "c", "evidence": {result}}}' for result in ("5", "null", '["photo"]', '[{"excerpt": 5}]')),
        *(f'{{"claim": "c", "span": {span}}}' for span in ("[1]", '"ab"', "[2, 1]", "[0, 9999999999]", "[true, 2]")),
        '{"claim": "c", "evidence": ' + "[" * 100_000,
    ],
    ids=range(18),
)
def test_any_evidence_is_a_passage(entry):
    """Text that is no record of a checked claim is kept as it is."""
    assert [passage.text for passage in passages_of([entry])] == [entry]


def test_a_record_in_a_document_is_text():
    """A claim of an insurance, say: what a judge quotes of it says nothing of what the judge has checked."""
    text = '{"claim": "It hailed.", "state": "supported", "evidence": []}'
    assert passages_of([text], lambda _: ("source", 0, 9)) == (Passage(text, "source", 0, 9),)


def test_metadata_of_other_files_are_nothing(tmp_path):
    """A table that deep did not write, and a file that is no Parquet."""
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_text("no")
    assert pq.read_schema(tmp_path / "a.parquet").names == ["a"]
    assert [file_metadata(tmp_path / name) for name in ("a.parquet", "b.parquet", "c.csv")] == [{}, {}, {}]


@pytest.mark.parametrize(
    "kept", ["[" * 100_000, '{"examples": {"path": "/etc/passwd"}}', '{"examples": {"benchmark": 1}}']
)
def test_metadata_of_another_shape_are_nothing(tmp_path, kept):
    """Nested too deeply, or a record of examples without its checksum: the texts are not found, and no more."""
    path = tmp_path / "votes.parquet"
    table = pa.table({"dataset": ["d"], "item_id": ["i"], "a": [1]})
    pq.write_table(table.replace_schema_metadata({"deep": kept}), path)
    result = read_texts([path], [("d", "i")])
    assert result.examples == {}
    assert "does not say which examples it is of" in result.notes[0]
