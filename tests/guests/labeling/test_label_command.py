"""`deep label`: the page begins and ends, its tables are said, and what cannot be labeled is refused in one line."""

import json
import socket
from urllib.request import Request, urlopen

import pytest

from deep.integrations.labeling import LabelEvent, open_label_log
from deep.integrations.serve import ServerOptions, serving
from tests.deep_commands import label, votes
from tests.guests.serve.label_case import CLAIMS, DATASET


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a table of votes."""
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "numbers", "dates", "--out", str(path)]) == 0
    return path


@pytest.fixture
def at_work(monkeypatch):
    """Let the server live while one person labels one item; return the requests' answers."""
    answers = []

    def run_server(app, options, **_):
        assert options.host == "127.0.0.1"
        with serving(app, ServerOptions(port=0)) as address:

            def post(path, **fields):
                request = Request(address + path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
                with urlopen(request, timeout=300) as answer:
                    return json.load(answer)

            person = post("/start")["person"]
            state = post("/state", person=person)
            item = state["item"]["item_id"]
            answers.append(post("/answer", person=person, item_id=item, label="1", note=""))
            answers.append(post("/reveal", person=person, item_id=item))

    monkeypatch.setattr("deep.integrations.serve.run_server", run_server)
    return answers


def test_the_page_begins_and_ends(table, tmp_path, at_work, capsys):
    """It says how many items there are, and where the labels went; again, it goes on."""
    words = [str(table), "--examples", str(CLAIMS), "--n", "3", "--person", "Ann", "--out", str(tmp_path / "l.csv")]
    assert label(words) == 0
    out = capsys.readouterr().out
    assert f"{DATASET}: 3 items to label, 0 of them are done" in out
    assert "1 of 3 items are done; labels by Ann 1" in out
    assert f"labels of 1 item: {tmp_path / 'l.csv'}" in out
    assert f"log: {tmp_path / 'l.log.sqlite'}" in out
    (tmp_path / "l.log.sqlite").write_bytes(b"hello")
    assert label(words) == 0
    out = capsys.readouterr().out
    assert (
        "l.log.sqlite' is not a complete log (file is not a database). It was written anew with all labels"
        in " ".join(out.split())
    )
    assert "3 items to label, 1 of them is done" in out
    assert [len(answer["people"]) for answer in at_work[1::2]] == [1, 1]


def test_export(tmp_path, capsys):
    """Of several people the majority; ties and labels after a look are told."""
    with open_label_log(tmp_path / "labels.jsonl") as log:
        for item, given in {"a": (1, 1, 0), "b": (1, 0), "c": (-1,)}.items():
            log.add(LabelEvent("queue", "news", item))
            for who, value in zip(("Ann", "Bob", "Zoe"), given, strict=False):
                log.add(LabelEvent("label", "news", item, who, value))
        log.add(LabelEvent("reveal", "news", "a", "Zoe"), LabelEvent("label", "news", "a", "Zoe", 0))
    assert label(["export", str(tmp_path / "labels.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "3 of 3 items are done; labels by Ann 3, Bob 2, Zoe 1" in out
    assert "on 1 item people are tied" in out
    assert "1 label was given after looking" in out
    assert (tmp_path / "labels.csv").read_text() == "dataset,item_id,label\nnews,a,1\n"
    assert label(["export", str(tmp_path / "labels.jsonl"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"] == 3
    assert label(["export", str(tmp_path / "others.csv")]) == 2
    assert "`labels` must be a log that `deep label` wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--n", "201"], "`n` must be a whole number from 1 to 200"),
        (["--n", "0"], "`n` must be 1 or more. Got 0"),
        (["--double", "31"], "`double` must be from 0 to 30"),
        (["--dataset", "talk"], f"`dataset` must be one of {DATASET}. Got 'talk'"),
        (["--person", "A\nB"], "`person` must be printable text on one line"),
        (["--port", "70000"], "`port` must be from 0 to 65535"),
        (["--out", "labels.txt"], "`out` must end in .csv"),
        (["--examples", "none.csv"], "`examples` must be"),
        (["--model", "none.json"], "none.json"),
    ],
)
def test_what_cannot_be_labeled(table, tmp_path, monkeypatch, capsys, words, said):
    """Is refused before a file is written."""
    monkeypatch.chdir(tmp_path)
    assert label([str(table), "--examples", str(CLAIMS), *words]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_port_in_use_is_refused_before_a_file_is_written(table, tmp_path, monkeypatch, capsys):
    """Nor does it draw items that the next start would keep."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert label([str(table), "--examples", str(CLAIMS), "--port", str(port)]) == 2
    assert f"`port` must be free at an address of this machine. Got {port}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_help_lists_what_else_there_is(capsys):
    """Behind the options of the page."""
    with pytest.raises(SystemExit) as caught:
        label(["--help"])
    assert caught.value.code == 0
    out = capsys.readouterr().out
    for name in ("list", "agreement", "export", "guideline"):
        assert f"deep label {name}: " in out
