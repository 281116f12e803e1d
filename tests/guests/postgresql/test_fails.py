"""PostgreSQL that fails under load: backends ended every 200 ms, immediate restarts, a pause, a read-only standby."""

import asyncio
import re
import threading
import time

import psycopg
import pytest
import sqlalchemy

from deep.llm import LedgerError
from tests.fault_server import FaultServer, honest_reply
from tests.guests.postgresql.test_shared import (  # noqa: F401  fixtures
    _terminate,
    _wait_until_up,
    database,
    ledger,
    query,
    server_url,
)
from tests.llm.calls import KEY, questions, run
from tests.llm.crash import Restarts, write_examples

N = 240


def one_line(errors):
    """Assert that each run that failed said so in one line, without a traceback, beside how far it had come."""
    assert "Traceback" not in errors, errors[-3000:]
    for line in re.sub(rf"^\d+/{N} .* left\n", "", errors, flags=re.MULTILINE).splitlines():
        assert line.startswith(("error: ", "First vote: ")) or " requests were in flight " in line, line


def restarted_until_done(tmp_path, monkeypatch, url, server, disturb, *, least):
    """Start the command again and again while its database is disturbed, then let it end; return its failures."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    examples = write_examples(tmp_path / "news.csv", N)
    words = [str(examples), "--prompt", "yes-no", "--llm", "tiny", "--base-url", server.url, "--no-repair"]
    command = Restarts([*words, "--ledger", url, "--concurrency", "8"], tmp_path / "errors")
    over, failures = threading.Event(), 0
    thread = threading.Thread(target=disturb, args=(over,))
    thread.start()
    status = None
    while status != 0:
        command.start("--out", str(tmp_path / "votes.parquet"))
        status = command.status()
        assert status in (0, 2)
        failures += status == 2
        if failures >= least:
            over.set()
    over.set()
    thread.join()
    command.close()
    return failures


def nothing_lost(url, server, errors):
    """Assert that every answer is there, and that each request sent twice was told."""
    assert query(url, "SELECT state, count(*) FROM requests GROUP BY 1") == [("done", N)]
    assert query(url, "SELECT count(*) FROM attempts WHERE outcome = 'answered'") == [(N,)]
    assert query(url, "SELECT count(*) FROM attempts WHERE outcome IS NULL") == [(0,)]
    unknown = query(url, "SELECT count(*) FROM attempts WHERE outcome = 'unknown'")[0][0]
    told = sum(int(n) for n in re.findall(r"(\d+) requests were in flight when an earlier run ended", errors))
    assert server.duplicates <= unknown <= told
    return unknown


@pytest.mark.slow
def test_backends_are_ended_every_200_ms(ledger, tmp_path, monkeypatch):  # noqa: F811
    """Each run ends with one line; together they ask everything."""

    def disturb(over):
        while not over.wait(0.2):
            _terminate(ledger)

    with FaultServer(latency=0.02) as server:
        failures = restarted_until_done(tmp_path, monkeypatch, ledger, server, disturb, least=5)
        errors = (tmp_path / "errors").read_text()
        one_line(errors)
        nothing_lost(ledger, server, errors)
    assert failures >= 1


def test_where_the_server_crashes_what_is_in_flight_is_kept(database, ledger):  # noqa: F811
    """The answers that come while it is gone are written when it is back; the run ends with one line, and asks no more.

    The next run finds them all: nothing is asked twice, and nothing is in doubt.
    """

    def reply(body):
        if server.count >= 20 and not threads[0].ident:  # by the server itself: this thread may get no turn in time
            server.held = True
            threads[0].start()
        return honest_reply(body)

    def crash():
        while server.in_flight < 8:  # a start that is being written down as the database goes would be in doubt
            time.sleep(0.001)
        database.crash()
        server.held = False
        time.sleep(1.0)  # all answers come to a ledger that is gone
        database.start()

    threads = [threading.Thread(target=crash)]
    with FaultServer(latency=0.02, reply=reply) as server:
        with pytest.raises(LedgerError, match=r"cannot be written.*answers in flight are saved\. Run") as error:
            run(server.url, ledger, questions(N), workers=8, timeout=60.0)
        threads[0].join()
        _wait_until_up(database.url)
        assert "\n" not in str(error.value)
        assert query(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'answered'") == [(server.count,)]
        assert server.count < N
        again = run(server.url, ledger, questions(N))
        assert (again.unknown, server.count, server.duplicates) == (0, N, 0)
    assert query(ledger, "SELECT state, count(*) FROM requests GROUP BY 1") == [("done", N)]


@pytest.mark.slow
def test_it_crashes_again_and_again_and_is_gone_for_ten_seconds(database, ledger, tmp_path, monkeypatch):  # noqa: F811
    """`restart -m immediate` under load, once with ten seconds between: one line a run, nothing lost or asked twice."""

    def disturb(over):
        for gone in (0.0, 10.0, 0.0, 0.0, 0.0):
            over.wait(1.0)
            database.crash()
            time.sleep(gone)
            database.start()
            _wait_until_up(database.url)

    with FaultServer(latency=0.1) as server:
        assert restarted_until_done(tmp_path, monkeypatch, ledger, server, disturb, least=99) >= 1
        errors = (tmp_path / "errors").read_text()
        one_line(errors)
        nothing_lost(ledger, server, errors)
        assert server.duplicates == 0


def test_a_read_only_standby_is_told(ledger):  # noqa: F811
    """In one line; nothing is sent."""
    name = ledger.rpartition("/")[2]
    with FaultServer() as server:
        run(server.url, ledger, questions(3))
        engine = sqlalchemy.create_engine(ledger, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sqlalchemy.text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
        engine.dispose()
        with pytest.raises(LedgerError, match=r"`ledger` .*read-only transaction") as error:
            run(server.url, ledger, questions(9))
        assert "\n" not in str(error.value)
        assert server.count == 3


def test_a_ledger_that_becomes_read_only_keeps_what_it_has(ledger):  # noqa: F811
    """As after a failover to a standby: the run ends with one line, and the next one tells what was in flight."""
    name = ledger.rpartition("/")[2]

    def demote(_):
        def work():
            while server.count < 20:
                time.sleep(0.005)
            engine = sqlalchemy.create_engine(ledger, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text(f"ALTER DATABASE {name} SET default_transaction_read_only = on"))
            engine.dispose()
            _terminate(ledger)

        threading.Thread(target=work).start()

    with FaultServer(latency=0.05) as server:
        with pytest.raises(LedgerError, match="cannot be written"):
            run(server.url, ledger, questions(N), workers=4, started=demote)
        with pytest.raises(LedgerError, match="read-only transaction"):
            run(server.url, ledger, questions(N))
        sent = server.count
        with psycopg.connect(ledger.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        done = query(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'answered'")[0][0]
        again = run(server.url, ledger, questions(N))
        assert again.tally.found == done
        assert server.count - N <= again.unknown
        assert sent - done <= again.unknown
    assert query(ledger, "SELECT count(*) FROM requests WHERE state = 'done'") == [(N,)]


def test_locks_held_by_others_are_waited_for(ledger):  # noqa: F811
    """A transaction that holds rows and the table for a while: the run goes on behind it."""
    with FaultServer() as server:
        run(server.url, ledger, questions(3))
        held, free = threading.Event(), threading.Event()

        def hold():
            with psycopg.connect(ledger.replace("+psycopg", "")) as connection:
                connection.execute("LOCK TABLE requests, attempts IN ACCESS EXCLUSIVE MODE")
                held.set()
                free.wait(30)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        threading.Timer(1.0, free.set).start()
        assert run(server.url, ledger, questions(9)).tally.answered == 6
        thread.join()
        assert server.count == 9


def test_a_deadlock_undoes_nothing(ledger):  # noqa: F811
    """Another transaction takes the same rows the other way round: what the database undoes is done again."""
    stop, broken = threading.Event(), []

    def cross():
        url = ledger.replace("+psycopg", "")
        while not stop.is_set():
            with psycopg.connect(url) as connection:
                try:
                    connection.execute("SET LOCAL deadlock_timeout = '1min'")  # the other one is undone
                    connection.execute("SELECT 1 FROM requests WHERE state = 'sent' FOR UPDATE")
                    time.sleep(0.2)
                    connection.execute("SELECT 1 FROM attempts WHERE outcome IS NULL FOR UPDATE")
                except psycopg.errors.DeadlockDetected as error:
                    broken.append(error)

    def undone():
        query(ledger, "SELECT pg_stat_clear_snapshot()")
        return query(ledger, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0]

    with FaultServer(latency=0.01) as server:
        run(server.url, ledger, questions(3))
        thread = threading.Thread(target=cross)
        thread.start()
        try:
            n = 60
            while undone() <= len(broken):  # until a transaction of the run was undone
                assert run(server.url, ledger, questions(n), workers=8).unknown == 0
                n += 60
                assert n < 3000
        finally:
            stop.set()
            thread.join()
        assert server.duplicates == 0
    assert query(ledger, "SELECT state, count(*) FROM requests GROUP BY 1") == [("done", n - 60)]


def test_a_batch_of_a_live_machine_is_left_to_it(ledger):  # noqa: F811
    """A second machine neither releases what the first is still uploading nor collects it, and ends when it is done."""
    uploaded, go_on = threading.Event(), threading.Event()

    async def at_step(step):
        if step == "uploaded" and not uploaded.is_set():
            uploaded.set()
            while not go_on.is_set():
                await asyncio.sleep(0.02)

    rans = []
    with FaultServer(at_step=at_step) as server:
        first = threading.Thread(target=lambda: rans.append(run(server.url, ledger, questions(9), batch=True)))
        first.start()
        uploaded.wait(60)
        second = threading.Thread(target=lambda: rans.append(run(server.url, ledger, questions(12), batch=True)))
        second.start()
        while server.count < 3:  # it asks what the first one does not
            time.sleep(0.02)
        go_on.set()
        first.join()
        second.join()
        assert (len(server.batches), server.count, server.duplicates) == (2, 12, 0)
    assert sorted(ran.tally.answered for ran in rans) == [3, 9]
    assert query(ledger, "SELECT state, count(*) FROM requests GROUP BY 1") == [("done", 12)]
