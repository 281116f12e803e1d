"""A ledger is one file to people, who move, copy and restore it: whatever lies in its -wal, nothing paid is deleted."""

import json
import os
import random
import shutil
import signal
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

import deep
from deep._util import sqlite_log
from deep.exceptions import InputError
from deep.llm import History
from deep.llm._messages import read_reply
from deep.records import Judgment
from tests.attack.odd_replies import completion
from tests.fault_server import FaultServer, digest_of
from tests.llm.calls import KEY, answers, question, questions, rows, run
from tests.llm.crash import Restarts, write_examples
from tests.llm.test_ledger import use

WORKERS = 12
DONE = "SELECT key FROM requests WHERE state = 'done'"
DIGESTS = "SELECT effective_body FROM requests WHERE state = 'done'"


def alone(path, statement=DONE):
    """Return what the file holds without its -wal."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        try:
            return {row[0] for row in connection.execute(statement)}
        except sqlite3.DatabaseError:
            return set()  # killed before its tables were in the file, or as the -wal was moved into it


def with_log(path, log, folder, statement=DONE):
    """Return what the file holds with a -wal, both copied, as whoever opens them would see them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / "copy")
    if log.exists():
        shutil.copy(log, folder / "copy-wal")
    try:
        return {row[0] for row in rows(folder / "copy", statement)}
    except sqlite3.OperationalError:
        return set()


def killed(path, at, *items, n_before=0):
    """Leave what `kill -9` leaves of a run that had answers about `items`: copies of its files, made while it lives."""

    async def work(ledger):
        for item in items:
            job = (await ledger.lease([question(item)])).jobs[0]
            await ledger.start(job)
            await ledger.answer(job, read_reply(json.dumps(completion("SUPPORTED"))), Judgment(1))
        at.mkdir(exist_ok=True)
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", at / f"l{ending}")

    use(path, work)
    return at / "l"


@pytest.fixture
def crashed(tmp_path):
    """Return a ledger whose run was killed: two answers in the file, three in the -wal alone."""
    use(tmp_path / "l", lambda _: _nothing())
    killed(tmp_path / "l", tmp_path / "first", 1, 2)
    path = killed(tmp_path / "l", tmp_path / "crash", 3, 4, 5)
    assert (len(alone(path)), len(with_log(path, sqlite_log.wal_path(path), tmp_path / "peek"))) == (2, 5)
    return path


async def _nothing():
    return None


def test_answers_do_not_stay_in_the_log(tmp_path):
    """The file has them while the run goes on, also where nothing more is written."""

    async def work(ledger):
        job = (await ledger.lease([question(1)])).jobs[0]
        await ledger.start(job)
        await ledger.answer(job, read_reply(json.dumps(completion("SUPPORTED"))), Judgment(1))
        while not alone(tmp_path / "l"):
            time.sleep(0.05)

    use(tmp_path / "l", work)
    assert not (tmp_path / "l-wal").exists()


def test_a_reader_keeps_no_answer_out_of_the_file_for_long(tmp_path):
    """What stood in a reader's way is moved once it is gone, though nothing more is written."""

    async def work(ledger):
        reader = sqlite3.connect(tmp_path / "l")
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM runs").fetchall()
        job = (await ledger.lease([question(1)])).jobs[0]
        await ledger.start(job)
        await ledger.answer(job, read_reply(json.dumps(completion("SUPPORTED"))), Judgment(1))
        time.sleep(2 * sqlite_log.SECONDS_OUTSIDE)
        reader.close()
        while not alone(tmp_path / "l"):
            time.sleep(0.05)

    use(tmp_path / "l", work)


def test_its_own_log_is_opened(crashed, capsys):
    """As after any crash; also copied, through a link, under another folder's name, or when it was read before."""
    log = sqlite_log.wal_path(crashed)
    other = crashed.parent.with_name("other")
    shutil.copytree(crashed.parent, other)
    renamed = other.rename(other.with_name("renamed"))
    (renamed / "link").symlink_to(renamed / "l")
    before = crashed.read_bytes(), log.read_bytes()
    with History(str(crashed)) as history:
        assert len(history.rows([question(n).key for n in range(6)])) == 5
    assert (crashed.read_bytes(), log.read_bytes()) == before
    for path in (crashed, renamed / "link"):
        with FaultServer() as server:
            assert run(server.url, path, questions(6)).tally.found == 5
            assert server.count == 1
    assert capsys.readouterr().err == ""
    assert not list(crashed.parent.parent.glob("*/*aside*"))


def test_a_moved_ledger_leaves_its_log(crashed, capsys):
    """A new ledger of its name is not opened with it, and does not delete it; the moved one names it."""
    log = sqlite_log.wal_path(crashed)
    held = log.read_bytes()
    moved = crashed.rename(crashed.with_name("moved"))
    run_all(crashed, found=0)
    aside = log.with_name("l-wal.aside-1")
    assert aside.read_bytes() == held
    assert f"{log} does not belong to {crashed}" in capsys.readouterr().err
    assert len(with_log(moved, aside, crashed.with_name("peek"))) == 5
    run_all(moved, found=2)
    assert f"A run was open on {moved} when it was copied or killed. The last seconds may be in {aside}." in (
        capsys.readouterr().err
    )


def test_a_restored_backup_is_opened_without_the_log(crashed, tmp_path, capsys):
    """With all its answers, by readers and by the next run."""
    log = sqlite_log.wal_path(crashed)
    held = log.read_bytes()
    backup = tmp_path / "backup"
    with FaultServer() as server:
        run(server.url, backup, questions(4))
    shutil.copyfile(backup, crashed)
    with History(str(crashed)) as history:
        assert len(history.rows([question(n).key for n in range(6)])) == 4
    assert log.read_bytes() == held
    assert f"{log} does not belong to {crashed}, which is read without it" in capsys.readouterr().err
    run_all(crashed, found=4)
    assert rows(crashed, "PRAGMA integrity_check") == [("ok",)]
    assert log.with_name("l-wal.aside-1").read_bytes() == held


def test_an_earlier_state_of_the_same_ledger_is_restored(crashed, tmp_path):
    """A copy from before the last time that the -wal was moved into the file is another state."""
    shutil.copyfile(tmp_path / "first" / "l", crashed)
    assert sqlite_log.has_foreign_log(str(crashed))
    run_all(crashed, found=0)


def run_all(path, *, found):
    """Ask six questions, of which some are answered."""
    with FaultServer() as server:
        assert run(server.url, path, questions(6)).tally.found == found
        assert server.count == 6 - found
    assert len(answers(path)) == 6


ODD = {
    "version": ("UPDATE deep_meta SET version = 99", "must have schema version 1. Got 99"),
    "column": ("ALTER TABLE attempts RENAME COLUMN cost TO price", "table attempts lacks cost"),
    "table": ("ALTER TABLE attempts RENAME TO tries", "table attempts lacks answered_by, cached_tokens"),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("has_log", [False, True])
def test_another_version_is_refused_before_it_is_written_to(crashed, name, has_log):
    """By runs and by readers; every byte stays, in the -wal too, and nothing is asked."""
    statement, message = ODD[name]
    with closing(sqlite3.connect(crashed)) as connection, connection:
        connection.execute(statement)
        connection.commit()
        held = {path: path.read_bytes() for path in map(crashed.with_name, ("l", "l-wal"))}
    if has_log:
        for path, content in held.items():
            path.write_bytes(content)
    held = {path: path.read_bytes() for path in crashed.parent.iterdir() if not path.name.endswith("-shm")}
    with FaultServer() as server:
        with pytest.raises(InputError, match=message):
            run(server.url, crashed, questions(1))
        with pytest.raises(InputError, match=message):
            History(str(crashed))
        assert server.count == 0
    left = {path: path.read_bytes() for path in held}
    assert left == held


def test_an_earlier_file_of_functions_is_taken_over_without_the_log_of_another(tmp_path):
    """A -wal that belongs to another file is set aside, and what the file itself has is entered."""
    called = []
    examples = [deep.Example("It rained.", f"claim {n}", str(n)) for n in range(4)]

    @deep.judge(version="1")
    def kept(source, claim):
        called.append(claim)
        return True

    (tmp_path / "live").mkdir()
    table = "CREATE TABLE answers (key TEXT PRIMARY KEY, voter TEXT, judgment TEXT, cost REAL) WITHOUT ROWID"

    def opened(path):
        book = sqlite3.connect(path, isolation_level=None)
        book.executescript(f"PRAGMA journal_mode = WAL; {table}")
        return closing(book)

    with opened(tmp_path / "live" / "l.functions.sqlite") as book:
        with sqlite_log.transaction(book):
            rows = [(kept.key(example), kept.voter(), '{"vote": 1}') for example in examples]
            book.executemany("INSERT INTO answers VALUES (?, ?, ?, NULL)", rows)
        shutil.copytree(tmp_path / "live", tmp_path / "crash")  # as a kill leaves it, with its -wal
    file = tmp_path / "crash" / "l.functions.sqlite"
    held = sqlite_log.wal_path(file).read_bytes()
    assert held
    with opened(tmp_path / "other") as other, sqlite_log.transaction(other):
        pass
    shutil.move(tmp_path / "other", file)
    deep.ask(examples, kept, ledger=str(tmp_path / "crash" / "l.sqlite"))
    assert len(called) == 4
    assert file.with_name(f"{file.name}-wal.aside-1").read_bytes() == held
    shutil.copytree(tmp_path / "live", tmp_path / "whole")
    deep.ask(examples, kept, ledger=str(tmp_path / "whole" / "l.sqlite"))
    assert len(called) == 4


# What people do to a ledger between two runs; `shelf` is where they put things.


def leave(ledger, shelf, draw):
    """Leave it alone."""


def move(ledger, shelf, draw):
    """Rename the file that they know."""
    ledger.rename(shelf / f"moved-{len(list(shelf.iterdir()))}")


def restore(ledger, shelf, draw):
    """Keep the file, and copy an earlier one over it."""
    shutil.copy(ledger, shelf / f"kept-{len(list(shelf.iterdir()))}")
    shutil.copyfile(draw.choice(sorted(shelf.iterdir())), ledger)


def copy_all(ledger, shelf, draw):
    """Rename the folder's files and copy all of them back."""
    for ending in ("", "-wal"):
        path = ledger.with_name(f"{ledger.name}{ending}")
        if path.exists():
            path.rename(path.with_name("other"))
            shutil.copy(path.with_name("other"), path)
            path.with_name("other").unlink()


def read(ledger, shelf, draw):
    """Look at the report."""
    with suppress(InputError):  # killed before it had tables
        History(str(ledger)).__exit__()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without it")
@pytest.mark.parametrize("kills", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_killed_with_files_moved_restored_and_copied(tmp_path, monkeypatch, kills):
    """Nothing that the file had is asked again, no answer is deleted from the disk, and old ones are in the file."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("PYTHONPATH", str(Path.cwd()))
    shelf, ledger, draw = tmp_path / "shelf", tmp_path / "votes.sqlite", random.Random(7)
    shelf.mkdir()
    log, peek = sqlite_log.wal_path(ledger), tmp_path / "peek"
    examples = write_examples(tmp_path / "news.csv", 40 * kills)
    had, again, old = set(), 0, []
    with FaultServer(latency=0.2) as server:
        where = ["--llm", "tiny", "--base-url", server.url, "--ledger", str(ledger), "--concurrency", str(WORKERS)]
        words = [str(examples), "--prompt", "yes-no", *where, "--out", str(tmp_path / "votes.parquet")]
        command = Restarts(words, tmp_path / "errors")
        for number in range(kills):
            known = set()
            if ledger.exists():
                own = not sqlite_log.has_foreign_log(str(ledger))
                known = bodies(with_log(ledger, log, peek, DIGESTS) if own else alone(ledger, DIGESTS))
            before, pid = len(server.log), command.start()
            while len(server.log) == before:
                time.sleep(0.002)
            time.sleep(draw.uniform(0.0, 4.0))
            os.kill(pid, signal.SIGKILL)
            at = time.time()
            command.status()
            again += sum(digest in known for _, digest, _ in server.log[before:])
            on_disk = bodies(with_log(ledger, log, peek, DIGESTS))
            in_file = bodies(alone(ledger, DIGESTS))
            old += [at - when for when, digest, _ in server.log[before:] if digest in on_disk - in_file]
            lost = {digest for _, digest, _ in server.log[before:]} - on_disk
            assert len(lost) <= WORKERS, "more than were in flight"
            had |= on_disk
            act = draw.choice([leave, move, restore, copy_all, read]) if number else move
            act(ledger, shelf, draw)
        command.close()
    files = [ledger, *shelf.iterdir()] if ledger.exists() else list(shelf.iterdir())
    logs = [log, *tmp_path.glob("*aside*")]
    left = set()
    for file in files:
        left |= bodies(alone(file, DIGESTS))
        for other in logs:
            shutil.rmtree(peek, ignore_errors=True)
            peek.mkdir()
            shutil.copy(file, peek / "copy")
            if other.exists():
                shutil.copy(other, peek / "copy-wal")
            if not sqlite_log.has_foreign_log(str(peek / "copy")):
                left |= bodies(row[0] for row in rows(peek / "copy", DIGESTS))
    figures = f"{kills} kills, {server.count} requests, {len(had)} answers on disk, {len(had - left)} deleted, {again} "
    figures += f"asked again, {len(logs) - 1} -wal set aside; {len(old)} answers in the -wal alone"
    print(f"{figures}, the oldest asked {max(old, default=0.0):.1f} s before the kill")  # noqa: T201
    assert (len(had - left), again) == (0, 0)
    assert "Traceback" not in (tmp_path / "errors").read_text()


def bodies(texts):
    """Return the server's names of requests."""
    return {digest_of(json.loads(text)) for text in texts}
