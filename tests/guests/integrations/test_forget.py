"""`deep data forget`: what is deleted is gone from the file, and everything else is as it was."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from tests.deep_commands import data, votes
from tests.scripted_llm import ScriptedLLM

SECRET = "walrus-of-Tromso"
"""A word of one customer's texts, which the replies quote."""


def asked(url, rows):
    """Ask about claims, and return the command's status."""
    pd.DataFrame(rows).to_csv("claims.csv", index=False)
    words = ["claims.csv", "--prompt", "deep-strict-steps", "--llm", "tiny", "--base-url", url]
    return votes([*words, "--out", "votes.parquet"])


def claims(secret):
    """Return claims of two customers."""
    texts = {"smith": secret, "jones": "Something"}
    return [
        {"source": f"{text} sleeps {i}.", "claim": f"It sleeps {i}.", "item_id": f"{who}-{i}"}
        for who, text in texts.items()
        for i in range(3)
    ]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve replies that quote the source."""
    monkeypatch.chdir(tmp_path)
    with ScriptedLLM(lambda ask: f"{ask.user * 9}\nVERDICT: SUPPORTED") as server:
        yield server


def bytes_beside():
    """Return all bytes of the ledger and its log."""
    return b"".join(path.read_bytes() for path in Path().glob("votes.ledger.sqlite*"))


def test_what_is_forgotten_is_gone_and_alone_asked_again(server, capsys):
    """Earlier texts of changed items go, too; the other customer's answers stay, and are not asked for again."""
    assert asked(server.url, claims(f"An old {SECRET}")) == 0
    assert asked(server.url, claims(f"The {SECRET}")) == 0
    assert bytes_beside().count(SECRET.encode()) > 10
    paid = len(server.asked)

    assert data(["forget", "votes.ledger.sqlite", "--item", "smith-*", "--dry-run", "--json"]) == 0
    out = capsys.readouterr().out
    told = json.loads(out[out.index("{\n") :])
    assert (told["items"], told["requests"], told["deleted"]) == (3, 6, False)
    assert SECRET.encode() in bytes_beside()

    assert data(["forget", "votes.ledger.sqlite", "--item", "smith-*"]) == 0
    out = capsys.readouterr().out
    assert "3 items, 6 requests deleted" in out
    assert "votes.judgments.parquet" in out
    assert SECRET.encode() not in bytes_beside()
    with closing(sqlite3.connect("votes.ledger.sqlite")) as connection:
        # Some builds of SQLite leave deleted bytes in free pages.
        assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)

    assert asked(server.url, claims(f"The {SECRET}")) == 0
    assert len(server.asked) - paid == 3


def test_what_is_not_there_is_said(server, capsys):
    """Nothing is deleted."""
    assert asked(server.url, claims(SECRET)) == 0
    held = len(bytes_beside())
    for words in (["--item", "nobody"], ["--item", "smith-1", "--dataset", "other"]):
        assert data(["forget", "votes.ledger.sqlite", *words]) == 2
        assert f"`item` must match items of the ledger. Got '{words[1]}'" in capsys.readouterr().err
        assert len(bytes_beside()) == held
