"""Benchmarks: counts of the published files, and the layouts of those that are not here."""

import csv
import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deep.datasets import describe_examples, read_examples, shared_documents
from deep.datasets.benchmarks import BENCHMARKS, benchmark_roots, checksum_state, find_benchmark, find_folder
from deep.exceptions import InputError
from deep.integrations.benchmarks import load_turns
from deep.records import Example


def lines(path, *rows):
    """Write a JSON object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def table(path, *rows):
    """Write a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


# Published files


def test_fect_has_345_factual_claims_of_410(published):
    """And every claim a conversation of its own."""
    (card,) = describe_examples(read_examples("fect"))
    assert (card.n, card.consistent, card.inconsistent, card.unlabeled, card.documents) == (410, 345, 65, 0, 410)
    assert read_examples("FECT").check() == 410


@pytest.mark.parametrize(
    ("name", "consistent", "share", "main"), [("mediasum", 151, 56.6, 178), ("meetingbank", 169, 63.3, 190)]
)
def test_tofueval_has_267_summaries_each(published, name, consistent, share, main):
    """At summary level: consistent only if every sentence is; the shares are the priors that the DEEP paper implies."""
    (card,) = describe_examples(read_examples(f"tofueval-{name}", require_source=False))
    assert (card.n, card.consistent, card.documents, card.without_source) == (267, consistent, 15, 267)
    assert round(100 * card.share_consistent, 1) == share
    examples = read_examples(name, main_only=True, require_source=False)
    assert examples.check() == main
    assert {example.dataset for example in examples} == {f"tofueval-{name}"}


def test_tofueval_sentences_are_merged_in_their_order(published):
    """Checked by eye against the published rows."""
    result = {e.example_id: e for e in read_examples("tofueval-mediasum", require_source=False)}
    summary = result["NPR-41366|Activities of Quds Force|model_A"]
    assert summary.claim.startswith("Quds Force is a branch")
    assert summary.claim.endswith("support, and fund mosques and clinics.")
    assert (summary.label, summary.document_id) == (1, "NPR-41366")
    assert result["NPR-41366|Activities of Quds Force|model_C"].label == 0


def test_tofueval_without_transcripts_cannot_be_judged(published):
    """The message says where they are and where they go."""
    examples = read_examples("tofueval-mediasum")
    with pytest.raises(InputError, match=r"none for 'NPR-41366'.*MediaSum.*writes mediasum_test_doc.csv.*Put it into"):
        list(examples)
    with pytest.raises(InputError, match=r"`source` must be text"):
        examples.check()


def test_cognibench_has_136_labeled_turns(published):
    """Of 300 published dialogues, with 1,281 keys in the sentence dictionaries."""
    turns = load_turns(published / "cognibench")
    assert (len(turns), len({turn.turn_id for turn in turns})) == (300, 300)
    assert sum(turn.labels is not None for turn in turns) == 136
    assert sum(len(turn.sentences) for turn in turns) == 1281
    assert not any("<assistant>" in turn.response or "<user>" in turn.response for turn in turns)
    assert all(turn.question.startswith("<user>") for turn in turns)
    assert all((turn.turn_index == 0) == (turn.history == "") for turn in turns)
    (card,) = describe_examples(read_examples("cognibench"))
    assert (card.n, card.consistent, card.inconsistent) == (136, 40, 96)
    assert read_examples("cognibench").check() == 136
    assert BENCHMARKS["cognibench"].count(published / "cognibench") == {
        "dialogues": 300,
        "labeled turns": 136,
        "keys in sentence dictionaries": 1281,
        "factual sentences": 783,
        "cognitive sentences": 454,
    }


def test_a_cognibench_example_is_knowledge_and_dialogue(published):
    """The response is the claim, and never stands in the source."""
    turns = {turn.turn_id: turn for turn in load_turns(published / "cognibench")}
    for example in read_examples("cognibench"):
        turn = turns[example.example_id]
        assert example.source.startswith(turn.knowledge.strip())
        assert example.source.endswith(turn.question)
        assert example.claim == turn.response
        assert example.document_id == example.example_id.rsplit("_", 1)[0]


def test_summedits_has_4681_pairs_of_162_documents(published):
    """In eight domains, each a dataset; one text stands under two ids, and is one document."""
    cards = describe_examples(read_examples("summedits"))
    assert {card.dataset.removeprefix("summedits-"): card.n for card in cards} == {
        "ectsum": 668,
        "news": 819,
        "podcast": 500,
        "qmsumm": 431,
        "sales-call": 520,
        "sales-email": 613,
        "samsum": 664,
        "scitldr": 466,
    }
    assert (sum(card.n for card in cards), sum(card.documents for card in cards)) == (4681, 162)
    assert sum(card.consistent for card in cards) == 1648
    assert read_examples("SummEdits-Sales_Call").check() == 520
    assert read_examples("summedits").check() == 4681
    assert shared_documents(read_examples("summedits")) == []


@pytest.mark.parametrize("name", ["cognibench", "fect", "tofueval-mediasum", "tofueval-meetingbank"])
def test_the_checksums_are_those_of_the_published_files(published, name):
    """The files that tests read are, byte for byte, those that `fetch` asks for."""
    benchmark = BENCHMARKS[name]
    states = {checksum_state(file, published / benchmark.folder) for file in benchmark.files if file.url}
    assert states == {"verified"}


# The layouts of those that are not here


def test_aggrefact_takes_the_test_cut_of_state_of_the_art_models(home):
    """From either of the two published tables; ids tell repeated summaries apart."""
    row = {
        "dataset": "CLIFF", "origin": "xsum", "id": "7", "doc": "It rained.", "summary": "Wet.", "model_name": "BART",
        "label": "1", "cut": "test", "DAE_score": "0.1", "DAE_label": "1",
    }  # fmt: skip
    others = [{"cut": "val"}, {"origin": "cnndm", "summary": "Dry.", "label": "0"}, {"model_name": "PtGen"}]
    table(home / "aggrefact/aggre_fact_final.csv", row, row, *({**row, **other} for other in others))
    assert list(read_examples("xsum")) == [
        Example("It rained.", "Wet.", "CLIFF|7|BART", 1, "aggrefact-xsum", "7"),
        Example("It rained.", "Wet.", "CLIFF|7|BART|2", 1, "aggrefact-xsum", "7"),
    ]
    assert [(e.claim, e.label) for e in read_examples("AggreFact-CNN-FTSOTA")] == [("Dry.", 0)]
    table(home / "aggrefact/aggre_fact_sota.csv", row)
    assert read_examples("aggrefact").check() == 1
    table(home / "aggrefact/aggre_fact_sota.csv", {**row, "label": "2"})
    with pytest.raises(InputError, match=r"in the layout that the authors of 'aggrefact-xsum' publish. Got KeyError"):
        read_examples("aggrefact").check()


def test_halueval_is_a_balanced_sample(home):
    """One summary of each of 3,000 documents, half of them right, the same whenever it is drawn."""
    rows = [{"document": f"d{i}", "right_summary": f"r{i}", "hallucinated_summary": f"h{i}"} for i in range(1, 10_001)]
    lines(home / "halueval/summarization_data.json", *rows)
    result = list(read_examples("halueval"))
    assert Counter(example.label for example in result) == {0: 1500, 1: 1500}
    assert len({example.document_id for example in result}) == 3000
    assert all(example.claim == f"{'hr'[example.label]}{example.document_id}" for example in result)
    assert all(example.source == f"d{example.document_id}" for example in result)
    assert result == list(read_examples("halueval"))
    assert [example.example_id for example in result[:3]] == ["4|hallucinated", "7|hallucinated", "15|right"]
    thirds = Counter(int(example.document_id) * 3 // 10_001 for example in result)
    assert all(900 < n < 1100 for n in thirds.values())


def test_ragtruth_takes_good_responses_of_the_test_split(home):
    """The source is an article, passages, or data as JSON; a span makes a response inconsistent."""
    response = {"id": "1", "source_id": "10", "model": "m", "labels": [], "split": "test", "quality": "good"}
    lines(
        home / "ragtruth/response.jsonl",
        {**response, "response": "Wet."},
        {**response, "id": "2", "source_id": "11", "labels": [{"text": "Dry"}], "response": "Dry."},
        {**response, "id": "3", "source_id": "12", "response": "A bar."},
        {**response, "id": "4", "split": "train", "response": "no"},
        {**response, "id": "5", "quality": "truncated", "response": "no"},
    )
    lines(
        home / "ragtruth/source_info.jsonl",
        {"source_id": "10", "task_type": "Summary", "source_info": "It rained."},
        {"source_id": "11", "task_type": "QA", "source_info": {"question": "Wet?", "passages": "passage 1: Wet."}},
        {"source_id": "12", "task_type": "Data2txt", "source_info": {"name": "Café"}},
    )
    assert list(read_examples("ragtruth")) == [
        Example("It rained.", "Wet.", "1", 1, "ragtruth", "10"),
        Example("passage 1: Wet.", "Dry.", "2", 0, "ragtruth", "11"),
        Example('{"name": "Café"}', "A bar.", "3", 1, "ragtruth", "12"),
    ]


def test_llm_aggrefact_names_its_datasets_as_scores_do(home):
    """Names as deep spells them; ids count within a dataset, from 0; one text is one document."""
    path = home / "llm_aggrefact/data/test-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    columns = {
        "dataset": ["AggreFact-CNN", "TofuEval-MediaS", "AggreFact-CNN"],
        "doc": ["a", "b", "a"],
        "claim": ["x", "y", "z"],
        "label": [1, 0, 0],
        "contamination_identifier": ["", "", ""],
    }
    pq.write_table(pa.table(columns), path)
    assert list(read_examples("llm-aggrefact")) == [
        Example("a", "x", "AggreFact-CNN-0", 1, "aggrefact-cnn", "AggreFact-CNN-0"),
        Example("b", "y", "TofuEval-MediaS-0", 0, "tofueval-mediasum", "TofuEval-MediaS-0"),
        Example("a", "z", "AggreFact-CNN-1", 0, "aggrefact-cnn", "AggreFact-CNN-0"),
    ]
    assert find_benchmark("wice") == (BENCHMARKS["llm-aggrefact"], "wice")
    assert find_benchmark("ragtruth") == (BENCHMARKS["ragtruth"], None)


def test_summedits_reads_the_json_of_every_domain_there_is(home, data_home):
    """The authors' layout; where both are there, theirs comes before the table."""
    path = home / "summedits/summedits_sales_call.json"
    path.parent.mkdir(parents=True)
    pair = {"doc": "It rained.", "original_summary": "Wet.", "edit_types": []}
    ids = ("d1_og", "d1_0", "d2_0")
    path.write_text(json.dumps([{**pair, "id": i, "summary": f"s{i}", "label": int(i == "d1_og")} for i in ids]))
    (home / "summedits/texts.csv.gz").write_bytes((data_home / "summedits/texts.csv.gz").read_bytes())
    assert list(read_examples("summedits")) == [
        Example("It rained.", "sd1_og", "d1_og", 1, "summedits-sales-call", "d1"),
        Example("It rained.", "sd1_0", "d1_0", 0, "summedits-sales-call", "d1"),
        Example("It rained.", "sd2_0", "d2_0", 0, "summedits-sales-call", "d1"),
    ]


def test_tofueval_takes_the_transcripts_that_its_readme_writes(home, data_home):
    """With them, its summaries can be judged."""
    for name in (
        "factual_consistency/meetingbank_factual_eval_test.csv",
        "topic_category/meetingbank_topic_category.json",
    ):
        (home / "tofueval" / name).parent.mkdir(parents=True)
        (home / "tofueval" / name).write_bytes((data_home / "tofueval" / name).read_bytes())
    documents = {e.document_id for e in read_examples("tofueval-meetingbank", require_source=False)}
    transcripts = [{"meeting_id": document, "source": f"Minutes of {document}."} for document in sorted(documents)]
    table(home / "tofueval/meetingbank_test_doc.csv", *transcripts)
    assert read_examples("tofueval-meetingbank").check() == 267
    assert all(e.source == f"Minutes of {e.document_id}." for e in read_examples("tofueval-meetingbank"))


@pytest.mark.parametrize(
    ("name", "path", "content", "complaint"),
    [
        (
            "fect",
            "fect/fect_benchmark.csv",
            b"a,b\n1,2\n",
            "`conversation` must be a column of .*Download the file again",
        ),
        ("fect", "fect/fect_benchmark.csv", b"conversation,claim,claim_is_factual\na,b,maybe\n", "KeyError 'maybe'"),
        ("fect", "fect/fect_benchmark.csv", b"\xff\xff", "must be UTF-8"),
        ("fect", "fect/fect_benchmark.csv", b"", "must hold at least one row"),
        ("halueval", "halueval/summarization_data.json", b'{"document": "a"\n', "a JSON object a line. Got line 1"),
        (
            "halueval",
            "halueval/summarization_data.json",
            b'{"document": "a"}\n',
            "`hallucinated_summary` must be a column",
        ),
        ("summedits", "summedits/summedits_news.json", b"{}x", "must be JSON. Got .*summedits_news.json"),
        ("summedits", "summedits/summedits_news.json", b'[{"id": 1}]', "KeyError 'doc'"),
        ("summedits", "summedits/summedits_news.json", b"[" * 100_000, "must be JSON.*nested too deeply"),
        ("llm-aggrefact", "llm_aggrefact/data/test-00000-of-00001.parquet", b"PAR1", "readable Parquet files"),
    ],
)
def test_a_damaged_file_is_one_clear_line(home, name, path, content, complaint):
    """Whatever is in it, there is no traceback."""
    (home / path).parent.mkdir(parents=True)
    (home / path).write_bytes(content)
    with pytest.raises(InputError, match=complaint) as caught:
        read_examples(name).check()
    assert "\n" not in str(caught.value)


def test_damaged_cognibench_is_one_clear_line(tmp_path):
    """Both files must be in the published layout."""
    (tmp_path / "dialogues.json").write_text('[{"id": "1_en_0", "current_turn": "no marker", "dialogue": "no marker"}]')
    with pytest.raises(InputError, match=r"must be JSON. Got .*labels.json.*No such file"):
        load_turns(tmp_path)
    (tmp_path / "labels.json").write_text("{}")
    with pytest.raises(InputError, match=r"`folder` must hold dialogues.json and labels.json as their authors publish"):
        load_turns(tmp_path)


# Names and options


def test_names_are_sorted_unique_and_described():
    """Every benchmark says what it is, under which terms, and where it is published."""
    assert list(BENCHMARKS) == sorted(BENCHMARKS)
    for benchmark in BENCHMARKS.values():
        assert benchmark.citation.startswith("arXiv:")
        assert benchmark.url.startswith("https://")
        assert benchmark.title
        assert all(file.url or file.by_hand for file in benchmark.files)
        for file in benchmark.files:
            commit = file.url.split("/")[5] if file.url else "0" * 40
            assert len(commit) == 40
            assert int(commit, 16) >= 0
    assert "NON-COMMERCIAL" in BENCHMARKS["fect"].terms
    assert "not stated" in BENCHMARKS["cognibench"].terms


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("nonsense", {}, "must be a file that ends in one of .csv.*or one of aggrefact-cnn, .*Got 'nonsense'"),
        ("tofueval", {}, "could be any of tofueval-mediasum, tofueval-meetingbank"),
        ("fect", {"columns": {"source": "x"}}, "`columns` must be given with a file. Got it with 'fect'"),
        ("fect", {"dataset": "x"}, "`dataset` must be given with a file"),
        ("fect", {"main_only": True}, "`main_only` must be given for a benchmark with main and marginal topics"),
        ("x.csv", {"main_only": True}, "`main_only` must be given with the name of a benchmark"),
    ],
)
def test_a_name_or_option_that_does_not_fit_is_refused(published, name, options, complaint):
    """One line each."""
    with pytest.raises(InputError, match=complaint):
        read_examples(name, **options)


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("fect", "without 'fect_benchmark.csv'. Run `deep data fetch fect`, or put the files of .*into .*home/fect"),
        ("ragtruth", "Run `deep data fetch ragtruth --allow-unverified`"),
        ("summedits", "Run `deep data fetch summedits --allow-unverified`"),
        ("llm-aggrefact", "Sign in to Hugging Face, accept the conditions .*to .*llm_aggrefact/data/test-00000"),
    ],
)
def test_a_benchmark_that_is_not_here_says_what_to_do(home, name, complaint):
    """Download it, or get it by hand and put it there."""
    with pytest.raises(InputError, match=complaint):
        read_examples(name)


def test_a_folder_of_that_name_hides_no_benchmark(published, monkeypatch):
    """As where the command runs in the data home itself."""
    monkeypatch.chdir(published)
    assert read_examples("fect").check() == 410


def test_the_cache_is_looked_at_after_the_data_home(home, monkeypatch):
    """And is where downloads go where no data home is set."""
    cache = benchmark_roots()[1]
    (cache / "fect").mkdir(parents=True)
    (cache / "fect/fect_benchmark.csv").write_text("conversation,claim,claim_is_factual\na,b,TRUE\n")
    assert find_folder(BENCHMARKS["fect"]) == cache / "fect"
    assert read_examples("fect").check() == 1
    monkeypatch.delenv("DEEP_DATA_HOME")
    assert benchmark_roots() == [cache]
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setattr("sys.platform", "win32")
    assert benchmark_roots() == [Path.home() / "AppData" / "Local" / "deep" / "deep" / "Cache"]
