"""`--chunk` and `--few-shot` from the command line to the ledger and the vote files."""

import csv
import json
from itertools import groupby
from types import SimpleNamespace

import pandas as pd
import pyarrow.parquet as pq
import pytest

from deep.asking import Finder, Plan, Sampling, find_judges, planned_voters, read_few_shot
from deep.cli import main
from deep.exceptions import InputError
from deep.model import Voter
from deep.prompt_pool import POOLS, ChunkedJudge, Chunking, FewShot
from deep.records import Example
from tests.fault_server import FaultServer
from tests.llm.calls import rows
from tests.scripted_llm import Fault, ScriptedLLM

SENTENCES = [f"Sentence number {i} tells of thing {i * 7 % 13} and of no other thing." for i in range(12)]
KEY_SENTENCE = "Sentence number 9 "
FIELDS = ["example_id", "source", "claim", "label", "dataset"]


def write(path, rows_, fields=FIELDS):
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([fields, *rows_])
    return str(path)


@pytest.fixture
def claims(tmp_path):
    """Return two datasets of four claims; the first source of each is three windows of 300 characters long."""
    return write(
        tmp_path / "claims.csv",
        [
            [
                f"{dataset}{i}",
                f"{dataset} {i}: {' '.join(SENTENCES if i == 0 else SENTENCES[i : i + 1])}",
                SENTENCES[i] if i % 2 else f"Bananas ripened in room {i}.",
                i % 2,
                dataset,
            ]
            for dataset in ("news", "wiki")
            for i in range(4)
        ],
    )


@pytest.fixture
def ask(tmp_path, monkeypatch, claims, capsys):
    """Return a function that runs `deep ask` and returns its status, requests, estimate or summary, and votes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    out = tmp_path / "votes.parquet"

    def run(server, *more, to=out):
        n = server.count
        where = ["--llm", "tiny", "--base-url", server.url, "--ledger", str(tmp_path / "l.sqlite"), "--out", str(to)]
        quick = ["--max-attempts", "1", "--backoff", "0.01", "--json"]
        status = main([claims, *where, *quick, *more], command="votes")
        message, wrong = capsys.readouterr()
        return status, server.count - n, json.loads(message) if message else wrong

    run.votes = lambda to=out: pd.read_parquet(to).set_index("item_id").iloc[:, -1]
    run.ledger = tmp_path / "l.sqlite"
    return run


def support(asked):
    """Say YES where the key sentence is in sight."""
    return "VERDICT: YES" if KEY_SENTENCE in asked.user.rpartition("<claim-")[0] else "VERDICT: NO"


def test_windows_are_requests_and_the_rest_is_not_bought_again(ask, tmp_path):
    """The estimate counts every window; sources that fit have their answers already; votes are combined."""
    prompt = ["--prompt", "yes-no", "--no-repair"]
    with ScriptedLLM(support) as server:
        assert ask(server, *prompt)[:2] == (0, 8)
        estimate = ask(server, *prompt, "--chunk", "300:80", "--dry-run")[2]
        assert estimate["settled"] == 6
        assert estimate["calls"] == 2 * len(Chunking(300, 80).spans("news 0: " + " ".join(SENTENCES))) == 6
        status, n, summary = ask(server, *prompt, "--chunk", "300:80", to=tmp_path / "cut.parquet")
    assert (status, n, summary["requests"]) == (0, summary["answered"], 6 + estimate["calls"])
    assert n < estimate["calls"]  # the later windows of both long sources are the same text
    assert ask.votes(tmp_path / "cut.parquet").tolist() == [1, 0, 0, 0] * 2
    columns = [pq.read_schema(tmp_path / f"{name}.parquet") for name in ("votes", "cut")]
    assert columns[0].names == columns[1].names
    voters = [json.loads(schema.metadata[b"deep"])["voters"][schema.names[-1]] for schema in columns]
    assert [voter.get("chunk") for voter in voters] == [None, "300:80"]
    items = {item for (item,) in rows(ask.ledger, "SELECT item FROM items")}
    assert {"news0", "news0#window 1", "wiki0#window 3"} <= items


def test_windows_come_one_after_another_for_a_prefix_cache():
    """All prompts and claims about one window of a document, and then those about the next."""
    source = " ".join(SENTENCES)
    examples = [Example(source, claim, claim, dataset="d") for claim in ("One.", "Two.", "Three.")]
    judges = find_judges(["literature-doc-first"], Sampling(chunk=Chunking(300, 80)))
    plan = Plan(examples=examples, columns=planned_voters(judges, ["tiny"]), endpoint="local")
    groups = [request.group for request in plan.requests()]
    assert len(list(groupby(groups))) == len(set(groups)) == len(Chunking(300, 80).spans(source))
    assert len(groups) == 3 * len(judges) * len(set(groups))


@pytest.mark.parametrize(("seen", "expected"), [(True, 1), (False, None)])
def test_a_failed_window_never_becomes_a_vote(ask, tmp_path, seen, expected):
    """Support in another window stands; else there is no vote, and the reason says why."""

    def answer(asked):
        if "Sentence number 0 " in asked.user:
            return Fault("server_error")
        return support(asked) if seen else "VERDICT: NO"

    with ScriptedLLM(answer) as server:
        ask(server, "--prompt", "yes-no", "--chunk", "300:80")
    assert ask.votes()["news0"] == expected or (expected is None and pd.isna(ask.votes()["news0"]))
    reasons = pd.read_parquet(tmp_path / "votes.reasons.parquet")
    assert set(reasons["item_id"]) == (set() if seen else {"news0", "wiki0"})
    assert set(reasons["reason"]) <= {"failed"}


def test_what_does_not_fit_is_said_with_the_way_out(ask, tmp_path, claims, capsys, monkeypatch):
    """The summary counts it, in the run that failed and in the next one; with windows all are answered."""

    def accept(body):
        fits = len(body["messages"][-1]["content"]) < 1000
        error = {"message": "maximum context length is 250 tokens", "code": "context_length_exceeded"}
        return None if fits else (400, error)

    with ScriptedLLM(support, accept=accept) as server:
        for _ in range(2):
            assert ask(server, "--prompt", "yes-no")[2]["too_long"] == 2
        where = ["--llm", "tiny", "--base-url", server.url, "--ledger", str(ask.ledger)]
        main([claims, *where, "--prompt", "yes-no", "--out", str(tmp_path / "v.parquet")], command="votes")
        assert "2 requests exceed the context of their LLM. --chunk SIZE:OVERLAP" in capsys.readouterr().out
        status, _, summary = ask(server, "--prompt", "yes-no", "--chunk", "300:80")
    assert (status, summary["too_long"], ask.votes()["news0"]) == (0, 0, 1)


def test_a_repair_turn_belongs_to_its_window(ask):
    """A window whose reply cannot be read is asked about once more, and no other one."""

    def answer(asked):
        return "Hm." if KEY_SENTENCE in asked.user and "<reply-" not in asked.user else support(asked)

    with ScriptedLLM(answer) as server:
        status, n, summary = ask(server, "--prompt", "yes-no", "--chunk", "300:80")
    assert (status, ask.votes()["news0"]) == (0, 1)
    repairs = [item for (item,) in rows(ask.ledger, "SELECT item FROM items WHERE voter LIKE '%repair'")]
    assert sorted(repairs) == ["news0#window 3", "wiki0#window 3"]
    assert n == summary["attempts"]


def test_offsets_of_evidence_are_those_of_the_whole_source(ask, tmp_path, claims):
    """What a window's judge quotes is found where it stands in the source."""
    quote = SENTENCES[9]

    def answer(asked):
        seen = KEY_SENTENCE in asked.user
        return f'It says "{quote}"\nVERDICT: SUPPORTED' if seen else "Nothing here.\nVERDICT: NOT SUPPORTED"

    with ScriptedLLM(answer) as server:
        ask(server, "--prompt", "deep-quotes", "--chunk", "300:80")
    result = pd.read_parquet(tmp_path / "votes.judgments.parquet").set_index("item_id").loc["wiki0"]
    source = pd.read_csv(claims).set_index("example_id").loc["wiki0", "source"]
    (passage,) = result["passages"]
    assert source[passage["start"] : passage["end"]] == quote == passage["text"]
    assert passage["where"] == "source"
    assert result["rationale"].startswith("Characters ")


def test_labeled_examples_are_of_other_datasets_and_in_every_request(ask, claims, tmp_path):
    """A table of votes finds its texts in the examples that it remembers; the column is another one."""
    with ScriptedLLM(support) as server:
        server.keep_bodies = True
        ask(server, "--prompt", "yes-no")
        bare = pd.read_parquet(tmp_path / "votes.parquet").columns[-1]
        out = tmp_path / "shown.parquet"
        shown = ["--prompt", "yes-no", "--few-shot", str(tmp_path / "votes.parquet"), "--shots", "2"]
        estimate = ask(server, *shown, "--dry-run", to=out)[2]
        status, n, _ = ask(server, *shown, to=out)
        again = ask(server, *shown, to=out)
    assert (status, n, estimate["calls"], again[1]) == (0, 8, 8, 0)
    assert pd.read_parquet(out).columns[-1] != bare
    for asked in server.asked[-8:]:
        own = "news" if f"\n{'news'} " in asked.user.rpartition("<source-")[2] else "wiki"
        other = {"news": "wiki", "wiki": "news"}[own]
        before = asked.user.rpartition("<source-")[0]
        assert before.count(f">\n{other} ") == 2
        assert f">\n{own} " not in before
        assert sorted(word for word in ("chose YES", "chose NO") if word in before) == ["chose NO", "chose YES"]


def test_a_pool_with_a_place_for_examples_shows_them_there_alone(claims, tmp_path):
    """Of a pool like diverse one judge is another for it; of any other pool all are."""
    more = write(
        tmp_path / "old.csv", [["a", "It rained.", "It was wet.", 1, "old"], ["b", "Ann won.", "Bob won.", 0, "old"]]
    )
    few = read_few_shot(more, 2)

    for pool, changed in (("diverse", {"diverse-examples"}), ("deep-3", {*POOLS["deep-3"]})):
        bare = {judge.name: judge.version for judge in find_judges([pool])}
        shown = {judge.name: judge.version for judge in find_judges([pool], Sampling(few_shot=few))}
        assert {name for name in bare if bare[name] != shown[name]} == changed


def test_every_prompt_of_the_pool_is_answered(ask, tmp_path):
    """By a server that reads what the prompts ask for, with examples and windows, each judge votes on everything."""
    with FaultServer() as server:
        shown = ["--few-shot", str(tmp_path / "claims.csv"), "--shots", "2", "--chunk", "300:80"]
        status, _, summary = ask(server, "--pool", "diverse", *shown, "--no-repair")
    table = pd.read_parquet(tmp_path / "votes.parquet").set_index("item_id")
    votes = table[[name for name in table if "@" in name]]
    assert (status, summary["failed"], votes.shape) == (0, 0, (8, 11))
    assert not votes.isna().any(axis=None)
    assert (votes.nunique() == 2).sum() >= 6


def test_the_own_dataset_alone_is_refused_before_anything_is_asked(ask, tmp_path):
    """In one line that says which dataset it is."""
    old = write(tmp_path / "old.csv", [["a", "Rain.", "Wet.", 1, "news"], ["b", "Sun.", "Cold.", 0, "news"]])
    with ScriptedLLM(support) as server:
        status, n, message = ask(server, "--prompt", "yes-no", "--few-shot", old, "--shots", "2")
    assert (status, n, message.count("\n")) == (2, 0, 1)
    assert message.startswith("error: `few_shot` must hold 1 documents of other datasets than 'news'")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--shots", "4"], "`shots` must be given with `few_shot`. Got 4 without."),
        (["--few-shot", "none.csv"], "`few_shot` must be a file"),
        (["--few-shot", "CLAIMS", "--shots", "3"], "`shots` must be an even number from 2, half for each label. Got 3"),
        (["--few-shot", "CLAIMS", "--prompt", "five-stars"], "`few_shot` must go with prompts of kind verdict"),
        (["--chunk", "12"], "`chunk` must be SIZE:OVERLAP characters"),
        (["--chunk", "large"], "`chunk` must be SIZE or SIZE:OVERLAP in characters, as in 8000:500"),
    ],
)
def test_options_that_do_not_fit_are_one_line(ask, claims, more, message):
    """Nothing is asked."""
    with ScriptedLLM(support) as server:
        status, n, printed = ask(server, "--prompt", "yes-no", *(claims if word == "CLAIMS" else word for word in more))
    assert (status, n, printed.count("\n")) == (2, 0, 1)
    assert message in printed


def test_labels_without_texts_are_found_among_the_examples(claims, tmp_path):
    """Those that are found nowhere are left out."""
    table = [["news", f"news{i}", i % 2] for i in range(4)] + [["news", "gone", 1]]
    labels = write(tmp_path / "labels.csv", table, ["dataset", "item_id", "label"])
    few = read_few_shot(labels, 4, examples=claims)
    assert isinstance(few, FewShot)
    assert {shot.example_id for shot in few.examples} == {f"news{i}" for i in range(4)}
    with pytest.raises(InputError, match="`few_shot` must hold 2 documents with an example of label 1"):
        read_few_shot(labels)


def test_staged_judges_are_cut_by_their_names():
    """Judges that need no LLM stay as they are."""
    cut, plain = find_judges(["stepwise", "numbers"], Sampling(chunk=Chunking(400)))
    assert isinstance(cut, ChunkedJudge)
    assert not isinstance(plain, ChunkedJudge)


def test_a_model_file_asks_as_its_votes_were_made(tmp_path):
    """Windows come from the voter's details unless they are given; examples must be those of then."""
    few = read_few_shot(
        write(tmp_path / "old.csv", [["a", "Rain.", "Wet.", 1, "old"], ["b", "Sun.", "Cold.", 0, "old"]]), 2
    )
    asked = Sampling(few_shot=few, chunk=Chunking(900, 90))
    columns = planned_voters([*find_judges(["yes-no", "stepwise"], asked)], ["tiny"])
    voters = [Voter(column.name, details=json.loads(json.dumps(column.metadata()))) for column in columns]
    model = SimpleNamespace(voters=voters, score_names=())
    plan = Finder(sampling=Sampling(few_shot=few)).plan(model, (), lambda: "local")
    assert plan.voters == [voter.name for voter in voters]
    assert [column.judge.chunk for column in plan.columns] == [Chunking(900, 90)] * 2
    given = Finder(sampling=Sampling(few_shot=few, chunk=Chunking(400))).plan(model, (), lambda: "local")
    assert [column.judge.chunk for column in given.columns] == [Chunking(400)] * 2
    with pytest.raises(InputError, match="of another version"):
        Finder().plan(model, (), lambda: "local")
