"""`deep data`: what it prints, in words and as JSON, and what it refuses."""

import gzip
import json
from pathlib import Path

import pytest

from deep.cli import main as deep_main
from deep.datasets import benchmarks
from tests.datasets.downloads import BODY, served, server
from tests.deep_commands import data as main

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = "source,claim,label,dataset,document_id\n"


def run(capsys, *words, status=0):
    """Return what the command printed on stdout."""
    assert main([*map(str, words)]) == status
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys, *words):
    """Return the one line that a command that cannot do its work prints on stderr."""
    assert main([*map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_info_prints_the_counts_of_the_published_files(published, capsys):
    """Beside the rows, which the page has: the licence in plain words, and the state of every checksum."""
    message = run(capsys, "info", "fect", "tofueval-mediasum", "meetingbank", "cognibench", "summedits")
    lines = [" ".join(line.split()) for line in message.splitlines()]
    assert "licence CC-BY-NC-4.0 (NON-COMMERCIAL use only)" in lines
    assert "267 examples have no source here: they can be counted, not judged" in lines
    for count in ("300 dialogues", "136 labeled turns", "783 factual sentences", "454 cognitive sentences"):
        assert f"count {count}" in lines
    assert "count 1,281 keys in sentence dictionaries" in lines
    assert "all 4,681 1,648 3,033 0 35.2 % 162" in lines
    assert "file fect_benchmark.csv: here; its SHA-256 matches the published file" in lines
    assert "file mediasum_test_doc.csv: not here" in lines
    assert "file texts.csv.gz: here; no checksum of the published file is known" in lines


def test_the_table_in_the_documentation_is_what_info_prints(published, capsys):
    """Row by row; the spaces differ, since there it is one table."""
    message = run(capsys, "info", "cognibench", "fect", "summedits", "mediasum", "meetingbank")
    printed = {" ".join(line.split()) for line in message.splitlines()}
    text = (ROOT / "docs/datasets.md").read_text(encoding="utf-8")
    rows = [" ".join(line.split()) for line in text.split("```text\nDATASET ")[1].split("```")[0].splitlines()[1:]]
    assert len(rows) == 12
    assert set(rows) <= printed


@pytest.mark.parametrize(("name", "n"), [("mediasum", 178), ("meetingbank", 190)])
def test_main_topics_alone_are_fewer(published, capsys, name, n):
    """TofuEval without the marginal topics, by a flag; the JSON holds what is printed."""
    (about,) = json.loads(run(capsys, "info", name, "--main-only", "--json"))["sets"]
    assert [card["n"] for card in about["datasets"]] == [n]
    assert about["commercial"] is True


def test_info_of_a_file_with_other_columns(home, tmp_path, capsys):
    """A file has a card as a benchmark does."""
    path = tmp_path / "mine.csv.gz"
    path.write_bytes(gzip.compress(b"article,summary,ok\nIt rained.,Wet.,1\nIt snowed.,Green.,0\nIt blew.,Loud.,\n"))
    columns = ("--source-column", "article", "--claim-column", "summary", "--label-column", "ok")
    (about,) = json.loads(run(capsys, "info", path, *columns, "--json"))["sets"]
    (card,) = about["datasets"]
    assert (card["dataset"], card["n"], card["unlabeled"], card["share_consistent"]) == ("mine", 3, 1, 0.5)
    assert str(path) in run(capsys, "info", path, *columns)
    assert "Got none named 'source' in row 1 (line 2)" in refused(capsys, "info", path)
    path.write_bytes(b"")
    assert "at least one row" in refused(capsys, "info", path)


def test_list_says_what_is_here_and_how_to_get_the_rest(published, capsys):
    """Every benchmark, its licence, and a way to get it."""
    message = run(capsys, "list")
    rows = {line.split()[0]: line for line in message.split("\n\n")[0].splitlines()}
    assert set(rows) == {"NAME", *benchmarks.BENCHMARKS}
    assert " yes   CC-BY-NC-4.0     NO " in rows["fect"]
    assert " no    CC-BY-ND-4.0 " in rows["llm-aggrefact"]
    assert "llm-aggrefact: Sign in to Hugging Face" in message
    listed = json.loads(run(capsys, "list", "--json"))["benchmarks"]
    assert [row["name"] for row in listed] == list(benchmarks.BENCHMARKS)
    assert {row["name"] for row in listed if row["folder"]} >= {"cognibench", "fect", "summedits"}


def test_fetch_prints_the_checksum_of_what_came(home, capsys, monkeypatch):
    """And `path` then says where it is."""
    with server({"/fect.csv": BODY}) as (url, _):
        monkeypatch.setitem(benchmarks.BENCHMARKS, "fect", served(url, None))
        assert "Add --allow-unverified" in refused(capsys, "fetch", "fect")
        assert "Got 'fect'. Run `deep data fetch fect --allow-unverified`" in refused(capsys, "path", "fect")
        assert not home.exists()
        message = run(capsys, "fetch", "fect", "--allow-unverified")
    sha256, path = message.split()
    assert sha256 == served(url).files[0].sha256
    assert path == str(home / "fect/fect_benchmark.csv")
    assert run(capsys, "path", "fect") == f"{home / 'fect'}\n"
    assert run(capsys, "path").splitlines()[0] == str(home)
    assert json.loads(run(capsys, "path", "--json"))["folders"][0] == str(home)


def test_check_finds_nothing_or_says_what(tmp_path, capsys):
    """Several files at once; the first that is wrong ends it."""
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.csv"
    good.write_text('{"source": "It rained.", "claim": "Wet."}\n')
    bad.write_text(f"{COLUMNS}a,b,maybe,x,1\n")
    assert run(capsys, "check", good) == f"{good}: 1 examples, 0 labeled, in good\nnothing is wrong\n"
    assert "`label` must be 0, 1 or empty. Got 'maybe' in row 1 (line 2)" in refused(capsys, "check", good, bad)


@pytest.mark.parametrize("command", ["check", "info", "leakage"])
def test_files_that_hold_nothing_or_an_id_twice_are_refused(tmp_path, capsys, command):
    """By every command that reads examples: no card of none, no all-clear for an empty file."""
    empty, head, twice = (tmp_path / f"{name}.csv" for name in ("empty", "head", "twice"))
    empty.write_text("")
    head.write_text("source,claim\n")
    twice.write_text("source,claim,example_id\na,b,7\nc,d,7\n")
    for path in (empty, head):
        assert "`examples` must hold at least one row" in refused(capsys, command, path)
    assert "`example_id` must be unique within a dataset. Got '7' twice" in refused(capsys, command, twice)


def test_leakage_between_training_and_test_is_found(tmp_path, capsys):
    """Status 1, each document with its places; 0 where there is none."""
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text(f"{COLUMNS}It rained.,Wet.,1,news,1\nIt snowed.,White.,1,news,2\n")
    test.write_text(f"{COLUMNS}it  RAINED.,Dry.,0,news,9\n")
    message = run(capsys, "leakage", train, test, status=1)
    assert "in several datasets or files: 1 documents; in one dataset under several document ids or none" in message
    assert f"'It rained.' (same text): {train}: news (1), {test}: news (1)" in " ".join(message.split())
    (result,) = json.loads(run(capsys, "leakage", train, test, "--json", status=1))["shared"]
    assert result["places"] == {f"{train}: news": 1, f"{test}: news": 1}
    assert run(capsys, "leakage", train) == "no document is in several places\n"
    votes = tmp_path / "votes.csv"
    votes.write_text("dataset,item_id,label,document_id,v\na,1,1,d,1\nb,1,0,d,0\n")
    assert "'d' (same id, which may be chance): a (1), b (1)" in run(capsys, "leakage", "--votes", votes, status=1)
    assert "Got neither" in refused(capsys, "leakage")


def test_many_findings_are_cut_short(tmp_path, capsys):
    """JSON has them all."""
    path = tmp_path / "x.csv"
    rows = "".join(f"text {i},c,1,{dataset},{i}\n" for i in range(30) for dataset in "ab")
    path.write_text(COLUMNS + rows)
    assert run(capsys, "leakage", path, status=1).endswith("and 10 more; --json prints all\n")
    assert len(json.loads(run(capsys, "leakage", path, "--json", status=1))["shared"]) == 30


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("info", "nonsense"), "or one of aggrefact-cnn"),
        (("info", "ragtruth"), "Run `deep data fetch ragtruth --allow-unverified`"),
        (("fetch", "nonsense"), "`name` must be one of aggrefact-cnn"),
        (("fetch", "llm-aggrefact"), "accept the conditions"),
        (("path", "wice"), "Got 'llm-aggrefact'. Sign in"),
        (("check", "absent.csv"), "Got 'absent.csv', which is not there"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(home, capsys, words, complaint):
    """Status 2, nothing on stdout."""
    assert complaint in refused(capsys, *words)


def test_votes_takes_a_benchmark_by_name_and_columns_by_flags(published, tmp_path, capsys):
    """As many calls as examples; nothing is sent."""
    asked = ("--prompt", "deep-strict-steps", "--llm", "m", "--base-url", "http://127.0.0.1:9/v1")
    common = (*asked, "--dry-run", "--json", "--out", str(tmp_path / "votes.parquet"))
    assert deep_main(["ask", "fect", *common]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 410
    path = tmp_path / "mine.jsonl"
    path.write_text('{"article": "It rained.", "claim": "Wet."}\n')
    assert deep_main(["ask", str(path), "--source-column", "article", *common]) == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 1
    assert deep_main(["ask", "mediasum", *common]) == 2
    assert "writes mediasum_test_doc.csv" in capsys.readouterr().err
    assert "writes mediasum_test_doc.csv" in refused(capsys, "check", "tofueval-mediasum")
