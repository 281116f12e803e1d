"""A ledger that other programs replace, remove, shorten or write to in mid-run: told, and no paid answer is lost."""

import dataclasses
import json
import os
import shutil
import sqlite3
import time

import pytest

from deep.exceptions import InputError
from deep.llm import LedgerError, json_text, with_longer_limit
from deep.llm._errors import CallError
from deep.llm._messages import read_reply
from deep.records import Judgment
from tests.attack.odd_replies import completion
from tests.fault_server import FaultServer
from tests.llm.calls import answers, outcomes, question, questions, rows, run, states
from tests.llm.test_ledger import ask_one, use

N = 60


def earlier(folder, server):
    """Return a copy of the ledger from a third of the way."""
    run(server.url, folder / "l", questions(N // 3))
    shutil.copy(folder / "l", folder / "old")
    return folder / "old"


def replace(ledger, old):
    """As `git checkout`, editors and file synchronisation do."""
    old.rename(ledger)


def copy_over(ledger, old):
    """As `cp` does: the same file with other content."""
    shutil.copyfile(old, ledger)


def rewrite_with_text(ledger, old):
    """As `>` in a shell does."""
    ledger.write_text("something else altogether\n" * 1000)


def restore_with_log(ledger, old):
    """As a copy of all three files does."""
    for ending in ("-wal", "-shm"):
        ledger.with_name(f"l{ending}").unlink()
    old.rename(ledger)
    ledger.with_name("l-wal").write_bytes(b"")


DISTURBANCES = {
    "replaced": (replace, "It was replaced by another program"),
    "copied over": (copy_over, "It was written to by another program"),
    "rewritten": (rewrite_with_text, "It was written to by another program"),
    "emptied": (lambda ledger, old: os.truncate(ledger, 0), "It was written to by another program"),
    "cut": (lambda ledger, old: os.truncate(ledger, 4096), "It was written to by another program"),
    "removed": (lambda ledger, old: ledger.unlink(), "It was removed by another program"),
    "moved": (lambda ledger, old: ledger.rename(ledger.with_name("m")), "It was removed by another program"),
    "log removed": (lambda ledger, old: ledger.with_name("l-wal").unlink(), "It lost its -wal file"),
    "restored": (restore_with_log, "It was replaced by another program"),
}


def disturbed(server, ledger, disturb, after=N // 2):
    """Return what disturbs a ledger once the server has had some requests, which wait for it."""
    import threading

    def work():
        while server.count < after:
            time.sleep(0.002)
        server.held = True
        time.sleep(0.05)
        disturb()
        server.held = False

    return lambda _: threading.Thread(target=work).start()


@pytest.mark.parametrize("name", DISTURBANCES)
def test_disturbed(tmp_path, name):
    """One line, and the next run has every answer that was paid since the copy, and asks the rest alone."""
    disturb, message = DISTURBANCES[name]
    ledger = tmp_path / "l"
    with FaultServer(latency=0.01) as server:
        old = earlier(tmp_path, server)
        start = disturbed(server, ledger, lambda: disturb(ledger, old))
        with pytest.raises(LedgerError, match=rf"{message}.* The run stops; all answers are in .*l\.kept-1") as error:
            run(server.url, ledger, questions(N), workers=4, started=start)
        assert "\n" not in str(error.value)
        paid = answers(tmp_path / "l.kept-1")
        asked = server.count
        assert asked < N
        if name in ("cut", "rewritten"):  # it is no ledger now, and is refused before anything is asked
            with pytest.raises(LedgerError, match=r"file is not a database|is malformed"):
                run(server.url, ledger, questions(N))
            ledger.unlink()
        again = run(server.url, ledger, questions(N))
        assert paid.items() <= answers(ledger).items()
        assert states(ledger) == {"done": N}
        overwritten = name in ("copied over", "rewritten", "emptied", "cut")
        assert len(paid) >= (asked - N // 3 if overwritten else asked)
        assert server.count <= (N + asked if overwritten else N)
        assert again.unknown == 0 or overwritten
        assert not (tmp_path / "l.kept-1").exists()
        assert (tmp_path / "l.kept-1.entered").exists()
    assert rows(ledger, "PRAGMA integrity_check") == [("ok",)]


def test_what_is_in_flight_is_kept_where_nothing_can_be_copied(tmp_path):
    """Overwritten by what is no database, the ledger's copy is new, and holds at least the answers in flight."""
    ledger = tmp_path / "l"
    with FaultServer() as server:
        disturb = disturbed(server, ledger, lambda: rewrite_with_text(ledger, None), after=8)
        with pytest.raises(LedgerError, match="was written to"):
            run(server.url, ledger, questions(N), workers=4, started=disturb)
        kept = answers(tmp_path / "l.kept-1")
        assert len(kept) >= 1
        ledger.unlink()
        before = server.count
        run(server.url, ledger, questions(N))
        assert server.count == before + N - len(kept)
    assert kept.items() <= answers(ledger).items()


def test_what_was_cut_off_is_kept_with_its_own_question(tmp_path):
    """The row of a request that is in flight with a longer limit has the limit that it was asked for with."""
    ledger = tmp_path / "l"

    async def work(opened):
        job = await ask_one(opened)
        body = json.dumps(completion("First, the source says", "length"))
        await opened.answer(job, read_reply(body), Judgment(-1, reason="truncated"), again=True)
        longer = dataclasses.replace(job.with_longer_limit(), number=job.number + 1)
        await opened.start(longer)
        rows(ledger, "PRAGMA wal_checkpoint(TRUNCATE)")  # so that no row can be read back from the log
        rewrite_with_text(ledger, None)
        await opened.fail(longer, CallError("timeout", "no answer"), "failed")
        return job

    with pytest.raises(LedgerError, match="was written to"):
        use(ledger, work)
    asked = json_text(question(1).body)
    result = rows(tmp_path / "l.kept-1", "SELECT key, requested_body, changed_body, attempts, reason FROM requests")
    assert result == [(question(1).key, asked, json_text(with_longer_limit(question(1).body)), 2, "truncated")]


def test_a_lock_that_is_removed_ends_the_run(tmp_path):
    """The ledger is whole, and takes what is in flight; another process could have opened it."""
    ledger = tmp_path / "l"
    with FaultServer() as server:
        start = disturbed(server, ledger, lambda: (tmp_path / "l.lock").unlink())
        with pytest.raises(LedgerError, match=r"must keep its lock.*Run it again"):
            run(server.url, ledger, questions(N), workers=4, started=start)
        assert run(server.url, ledger, questions(N)).unknown == 0
        assert server.count == N
    assert outcomes(ledger) == {"answered": N}


def test_a_folder_that_is_moved_away_takes_its_ledger_along(tmp_path):
    """No copy can be made beside it; the file that was opened has all answers."""
    folder = tmp_path / "work"
    folder.mkdir()
    with FaultServer() as server:
        start = disturbed(server, folder, lambda: folder.rename(tmp_path / "moved"))
        with pytest.raises(LedgerError, match="are in the file that was opened"):
            run(server.url, folder / "l", questions(N), workers=4, started=start)
        assert run(server.url, tmp_path / "moved" / "l", questions(N)).unknown == 0
        assert server.count == N


def test_reading_and_a_removed_index_disturb_nothing(tmp_path):
    """Another process that reads, and -shm, which SQLite makes again."""
    ledger = tmp_path / "l"

    def disturb():
        assert rows(ledger, "SELECT count(*) FROM runs") == [(1,)]
        os.utime(tmp_path / "l.lock")
        (tmp_path / "l-shm").unlink()

    with FaultServer() as server:
        run(server.url, ledger, questions(N), workers=4, started=disturbed(server, ledger, disturb))
        assert server.count == N
    assert states(ledger) == {"done": N}


def test_two_answers_to_one_request_are_both_kept(tmp_path):
    """The ledger's own counts; what is kept beside it has a number below 0, once."""
    with FaultServer() as server:
        run(server.url, tmp_path / "l", questions(2))
        shutil.copy(tmp_path / "l", tmp_path / "l.kept-1")
        with sqlite3.connect(tmp_path / "l.kept-1") as connection:
            connection.execute("UPDATE attempts SET reply = reply || ' '")
        connection.close()
        shutil.copy(tmp_path / "l.kept-1", tmp_path / "l.kept-2")
        assert run(server.url, tmp_path / "l", questions(2)).tally.found == 2
        assert server.count == 2
    beside = rows(tmp_path / "l", "SELECT number, reply LIKE '% ' FROM attempts ORDER BY number")
    assert beside == [(-1, 1), (-1, 1), (1, 0), (1, 0)]


def test_a_kept_file_that_cannot_be_read_is_named(tmp_path):
    """Nothing is asked before its answers are there, and it stays."""
    (tmp_path / "l.kept-1").write_text("nothing of deep's" * 100)
    with pytest.raises(LedgerError, match=r"must be able to take what .*l\.kept-1 keeps.* Move that file away"):
        use(tmp_path / "l", ask_one)
    assert (tmp_path / "l.kept-1").exists()


def test_a_second_run_on_a_ledger_is_told(tmp_path):
    """While the first goes on, which ends as if nothing had been."""
    ledger = tmp_path / "l"
    refused = []
    with FaultServer() as server:

        def second():
            with pytest.raises(InputError, match="`ledger` must not be in use by another process") as error:
                run(server.url, ledger, questions(N))
            refused.append(str(error.value))

        run(server.url, ledger, questions(N), workers=4, started=disturbed(server, ledger, second))
        assert server.count == N
    assert len(refused) == 1
