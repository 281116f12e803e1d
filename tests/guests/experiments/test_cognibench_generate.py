"""Dialogues about texts: two parts played turn by turn, through ledger and budget, and read by `label`."""

import json

import pytest

from tests.deep_commands import cognibench as main
from tests.fault_server import FaultServer

TEXTS = {"mill": "A mill opened in 1871 and ground corn.", "dam": "The dam broke on Monday. Nobody was hurt."}


@pytest.fixture
def texts(tmp_path):
    """Return the file of two texts."""
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"example_id": k, "source": v}) + "\n" for k, v in TEXTS.items()))
    return path


def play(body):
    """Answer as the part that is asked for, with what was said so far counted."""
    system, user = (message["content"] for message in body["messages"])
    n = user.count("<user>") + user.count("<assistant>")
    who = "asks" if "You play a person" in system else "answers"
    text = next(name for name, source in TEXTS.items() if source in user)
    return f"{body['model']} {who} {n} of {text}."


def written(path):
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_dialogue_is_asked_turn_by_turn_and_once(texts, tmp_path, capsys):
    """Each message sees all before it; the asker asks; faults are met; the same command again asks nothing."""
    out = tmp_path / "dialogues.jsonl"
    words = ["generate", "--texts", str(texts), "--turns", "2", "--asker", "guest", "--out", str(out)]
    prices = tmp_path / "prices.toml"
    prices.write_text("[big]\ninput = 1000.0\noutput = 1000.0\n[guest]\ninput = 1000.0\noutput = 1000.0\n")
    assert main([*words, "--llm", "big", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("at most 8 calls for 2 dialogues.")
    with FaultServer(reply=play, script=["dropped", "server_error", "ok", "rate_limited"]) as server:
        server.keep_bodies = True
        asked = [*words, "--llm", "big", "--base-url", server.url]
        assert main([*asked, "--prices", str(prices), "--budget", "3"]) == 3
        assert not out.exists()
        assert 0 < server.count < 8
        assert main(asked) == 0
        sent, bodies = server.count, list(server.bodies)
        assert main(asked) == 0
        assert server.count == sent
    assert "2 dialogues, 4 turns: " in capsys.readouterr().out
    rows = written(out)
    assert [row["example_id"] for row in rows] == ["mill_0", "mill_1", "dam_0", "dam_1"]
    assert rows[1]["source"] == (
        f"{TEXTS['mill']}\n\n<user> guest asks 0 of mill.\n\n<assistant> big answers 1 of mill.\n\n"
        "<user> guest asks 2 of mill."
    )
    assert rows[1]["claim"] == "big answers 3 of mill."
    assert {(row["model"], row["document_id"]) for row in rows} == {("big", "mill"), ("big", "dam")}
    assert rows[0]["persona"] != rows[2]["persona"]
    message = [body["messages"][1]["content"] for body in bodies if body["model"] == "guest"]
    assert any("message 1 of 2: begin with" in text for text in message)
    assert any("message 2 of 2: ask for an opinion" in text for text in message)
    assert main(["label", "--data", str(out), "--llm", "big", "--out", str(tmp_path / "l"), "--dry-run"]) == 0
    assert "calls for 4 turns" in capsys.readouterr().out


def test_what_did_not_come_ends_a_dialogue_and_is_told(texts, tmp_path, capsys):
    """An empty answer leaves the turns before it; of several LLMs each has dialogues of its own."""

    def answer(body):
        message = play(body)
        return "" if message == "two answers 3 of dam." else message

    out = tmp_path / "dialogues.jsonl"
    words = ["--turns", "2", "--asker", "guest", "--persona", "skeptic", "--json", "--out", str(out)]
    with FaultServer(reply=answer) as server:
        given = ["--texts", str(texts), "--llm", "one", "two", "--base-url", server.url]
        assert main(["generate", *given, *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["dialogues"], result["turns"], result["ended_early"]) == (4, 7, {"unparsable": 1})
    names = [row["example_id"] for row in written(out)]
    assert names == ["mill/one_0", "mill/one_1", "mill/two_0", "mill/two_1", "dam/one_0", "dam/one_1", "dam/two_0"]
    assert {row["persona"] for row in written(out)} == {"skeptic"}


def test_wrong_texts_and_options(texts, tmp_path, capsys):
    """Each is one line, before anything is asked."""
    good = texts.read_text()
    words = ["--llm", "big", "--base-url", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "o.jsonl")]
    for row, options, message in (
        ({"source": " "}, [], "`texts` must have a `source` in each row"),
        ({"source": "Rain.", "example_id": "mill"}, [], "`example_id`s must be unique. Got 'mill'"),
        (None, ["--persona", "pirate"], "`persona` must be one of"),
        (None, ["--turns", "0"], "`turns` must be 1 or more. Got 0."),
    ):
        texts.write_text(good + ("" if row is None else json.dumps(row) + "\n"))
        assert main(["generate", "--texts", str(texts), *words, *options]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert err.count("\n") == 1
