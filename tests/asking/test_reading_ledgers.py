"""Ledgers that can only be read, or that are damaged; and what report and summary say of who answered."""

import json
import os
import sqlite3
from contextlib import closing

import pytest

from deep.cli import main
from deep.llm import History, LedgerError, _database
from tests.fault_server import FaultServer
from tests.llm.crash import write_examples


@pytest.fixture
def asked(tmp_path, capsys):
    """Return the arguments of a run that has been done, its ledger and its server."""
    examples, ledger = write_examples(tmp_path / "news.csv", 6), tmp_path / "ledger" / "l.sqlite"
    ledger.parent.mkdir()
    with FaultServer() as server:
        where = ["--llm", "tiny", "--base-url", server.url, "--ledger", str(ledger)]
        words = [str(examples), "--prompt", "deep-numbers", *where, "--out", str(tmp_path / "votes.parquet")]
        assert main(words, command="votes") == 0
        capsys.readouterr()
        yield words, ledger, server


def test_an_estimate_closes_the_ledger(asked, opened_ledgers):
    """A connection that is left to the garbage collector may find its database closed before it."""
    assert main([*asked[0], "--dry-run"], command="votes") == 0
    assert len(opened_ledgers) == 1


@pytest.fixture
def read_only(monkeypatch, asked):
    """Let nothing be written in the ledger's folder, as on a read-only medium; root may write anywhere else."""
    folder = asked[1].parent
    access = os.access
    refuse = lambda path, mode: folder not in (path, path.parent) and access(path, mode)  # noqa: E731
    monkeypatch.setattr(_database.os, "access", refuse)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    yield
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.usefixtures("read_only")
def test_a_read_only_ledger_is_read(asked, capsys):
    """The report is printed, and a run that finds every answer writes its votes; the medium stays as it is."""
    words, ledger, server = asked
    assert main(["report", str(ledger)], command="votes") == 0
    assert "deep-numbers" in capsys.readouterr().out
    assert main([*words, "--json"], command="votes") == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["found"], result["attempts"], server.count) == (6, 0, 6)


@pytest.mark.usefixtures("read_only")
def test_a_read_only_ledger_without_an_answer_is_one_line(asked, capsys):
    """Nothing can be asked without writing it down."""
    words, _, server = asked
    assert main([*words, "--prompt", "yes-no"], command="votes") == 2
    message = capsys.readouterr().err
    assert "`ledger` must be writable where answers are missing. Got " in message
    assert (message.count("\n"), server.count) == (1, 6)


@pytest.mark.parametrize("step", [1024, 4096])
def test_a_damaged_ledger_is_one_line(asked, capsys, step):
    """Some bytes of every page are overwritten; report and run say so, with status 2."""
    words, ledger, _ = asked
    content = bytearray(ledger.read_bytes())
    for at in range(8192, len(content), step):
        content[at : at + 60] = b"\xff" * 60
    ledger.write_bytes(content)
    for arguments in (["report", str(ledger)], words):
        assert main(arguments, command="votes") == 2
        message = capsys.readouterr().err
        assert message.startswith("error: `ledger` ")
        assert message.count("\n") == 1


@pytest.mark.parametrize("table_and_column", ["requests.model", "attempts.answered_by", "attempts.seconds"])
@pytest.mark.parametrize("value", ["x'ff'", "1e999"])
def test_a_cell_of_another_type_is_one_line(asked, capsys, table_and_column, value):
    """SQLite holds bytes and infinity in any column; neither comes out of a report or a run."""
    words, ledger, _ = asked
    table, _, column = table_and_column.partition(".")
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = {value}")
    for arguments in (["report", str(ledger)], words):
        status = main(arguments, command="votes")
        message = capsys.readouterr()
        assert status in (0, 2)
        assert "inf" not in message.out.split()
        if status == 2:
            assert message.err.startswith("error: `ledger` ")
            assert (message.err.count("\n"), "should" in message.err) == (1, True)


def test_a_schema_that_is_no_text_is_one_line(asked, capsys):
    """SQLite's own message about it is then none either."""
    words, ledger, _ = asked
    content = ledger.read_bytes()
    ledger.write_bytes(content.replace(b"CREATE TABLE", b"CREAT\x97 TABLE"[:12]))
    for arguments in (["report", str(ledger)], words):
        assert main(arguments, command="votes") == 2
        message = capsys.readouterr().err
        assert message.startswith("error: `ledger` ")
        assert message.count("\n") == 1


def test_a_damaged_reply_is_one_line(asked):
    """What stands in a cell need not be what a run has written."""
    _, ledger, _ = asked
    with closing(sqlite3.connect(ledger)) as connection, connection:
        connection.execute("UPDATE attempts SET reply = '{'")
        keys = [row[0] for row in connection.execute("SELECT key FROM requests")]
    with History(str(ledger)) as history, pytest.raises(LedgerError, match="cannot be read: broken: the reply is not"):
        history.answers(keys)


def test_answers_by_another_model_are_counted(asked, capsys, tmp_path):
    """In the summary of the run that got them, and in the report of the ledger."""
    words, _, server = asked
    server.suffix = "\x1b[31mx"
    words = [*words, "--prompt", "yes-no", "--ledger", str(tmp_path / "new.sqlite")]
    assert main(words, command="votes") == 0
    assert r"'tiny' was asked and 'tiny\x1b[31mx' answered: 12 answers" in capsys.readouterr().out
    assert main(["report", str(tmp_path / "new.sqlite"), "--json"], command="votes") == 0
    counts = json.loads(capsys.readouterr().out)["answered_by_another"]
    assert counts == [{"asked": "tiny", "answered": "tiny\x1b[31mx", "answers": 12}]


def test_a_secret_in_the_path_reaches_no_file(asked, capsys, tmp_path):
    """Neither the ledger nor the votes nor the words on the screen hold it, though the server repeats it."""
    words, _, server = asked
    url = server.url.replace("/v1", "/S3CRET-word-0123/v1")
    ledger = tmp_path / "new.sqlite"
    main([*words, "--ledger", str(ledger), "--base-url", url, "--max-attempts", "1"], command="votes")
    message = capsys.readouterr()
    assert "S3CRET" not in message.out + message.err
    assert not any(b"S3CRET" in path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
