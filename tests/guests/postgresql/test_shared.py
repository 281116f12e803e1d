"""The ledger in PostgreSQL, against a real server that the test starts: sharing, crashes, passwords."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy

from deep.exceptions import InputError
from deep.llm import CallError, History, Ledger, LedgerError, Reply, RetryPolicy, _runner, describe_ledger
from deep.records import Judgment
from tests.fault_server import FaultServer
from tests.llm.calls import question, questions, run

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed; it comes with deep-judges[postgresql]")


def _find(program):
    """Return the path of one of PostgreSQL's programs; Debian keeps them out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
    return str(places[0]) if places else shutil.which(program)


class Database:
    """A PostgreSQL server of the tests, which can be stopped as by a crash and started again."""

    def __init__(self, words, options, url):
        self._words, self._options, self.url = words, options, url
        self.start()

    def start(self):
        """Start it, and return at once."""
        self._process = subprocess.Popen(self._words, **self._options)

    def crash(self):
        """End it as `pg_ctl stop -m immediate` does."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(60)


@pytest.fixture(scope="module")
def server_url(database):
    """Return the URL of PostgreSQL, without the name of a database."""
    return database.url


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Start PostgreSQL in a temporary folder; skip where it is not installed or will not start."""
    initdb, postgres = _find("initdb"), _find("postgres")
    if initdb is None or postgres is None:
        pytest.skip("PostgreSQL is not installed (initdb and postgres not found)")
    account = {}
    folder = tmp_path_factory.mktemp("postgresql")
    if os.geteuid() == 0:
        account = {"user": "postgres", "group": "postgres"}
        folder = Path("/tmp") / f"deep-postgresql-{os.getpid()}"
        folder.mkdir()
    (folder / "password").write_text("s3cret-word")
    for path in (folder, folder / "password") if account else ():
        shutil.chown(path, **account)  # whatever umask root has
    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **account}
    init = [initdb, "-D", data, "-U", "deep", "-A", "scram-sha-256", f"--pwfile={folder / 'password'}"]
    try:
        subprocess.run([*init, "-E", "UTF8", "--locale=C"], check=True, **quiet)
        words = [postgres, "-D", data, "-p", str(port), "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
        result = Database(words, quiet, f"postgresql+psycopg://deep:s3cret-word@127.0.0.1:{port}")
    except (OSError, KeyError, PermissionError, subprocess.CalledProcessError) as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    try:
        _wait_until_up(result.url)
        yield result
    finally:
        result.crash()
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_up(url):
    for _ in range(1200):
        try:
            psycopg.connect(f"{url.replace('+psycopg', '')}/postgres").close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    pytest.skip("PostgreSQL did not come up within two minutes")


@pytest.fixture
def ledger(server_url, request):
    """Return the URL of a fresh database."""
    name = f"d{abs(hash(request.node.nodeid)) % 10**12}"
    engine = sqlalchemy.create_engine(f"{server_url}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return f"{server_url}/{name}"


def query(url, text):
    """Return all rows of a query."""
    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        return connection.execute(sqlalchemy.text(text)).all()


def test_it_holds_what_sqlite_holds(ledger, tmp_path):
    """Faults, resuming, votes, attempts and effective bodies are the same in both."""
    faults = {"rate_limited": 0.1, "server_error": 0.05, "dropped": 0.05, "no_verdict": 0.1}
    with FaultServer(faults=faults, unsupported={"temperature": "unsupported_value"}) as server:
        run(server.url, ledger, questions(60, temperature=0.0))
        asked = server.count
        again = run(server.url, ledger, questions(60, temperature=0.0))
        assert (server.count, again.tally.found) == (asked, 60)
        assert query(ledger, "SELECT count(*) FROM attempts") == [(asked,)]
        run(server.url, tmp_path / "l", questions(60, temperature=0.0))
    assert query(ledger, "SELECT count(*) FROM requests WHERE effective_body LIKE '%temperature%'") == [(0,)]
    with History(ledger) as ours, History(str(tmp_path / "l")) as sqlite:
        kept = ("voter", "asked", "votes", "supported", "reasons", "failures", "waiting", "unknown")
        both = [[{name: getattr(row, name) for name in kept} for row in h.report()] for h in (ours, sqlite)]
    assert both[0] == both[1]


def test_nul_and_surrogates_fit(ledger):
    """PostgreSQL has no NUL in text; JSON escapes it."""
    with FaultServer() as server:
        run(server.url, ledger, questions(1, user="a\x00b\ud800"))
    assert query(ledger, "SELECT state FROM requests") == [("done",)]


def test_two_machines_share_the_work(ledger):
    """Two runs at once over the same requests ask each once, and both end with all of them settled."""
    with FaultServer(latency=0.2) as server:  # so slow that the second is there before the first has asked all
        rans = []
        threads = [
            threading.Thread(target=lambda: rans.append(run(server.url, ledger, questions(120), workers=8)))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert server.count == 120
        assert server.duplicates == 0
    assert query(ledger, "SELECT count(*) FROM requests WHERE state = 'done'") == [(120,)]
    assert all(ran.tally.answered for ran in rans)


def test_what_is_settled_is_looked_at_and_not_written(ledger):
    """Going through a plan that others have settled changes no row, so that machines do not wait for each other."""
    with FaultServer() as server:
        run(server.url, ledger, questions(70))
        before = query(ledger, "SELECT key, xmin::text, xmax::text FROM items ORDER BY 1")
        assert run(server.url, ledger, questions(70)).tally.found == 70
        assert query(ledger, "SELECT key, xmin::text, xmax::text FROM items ORDER BY 1") == before


@pytest.mark.slow
def test_what_a_killed_machine_had_in_flight_is_asked_again(ledger):
    """Its lock dies with it; the requests it had sent are unknown, and are counted aloud."""
    with FaultServer(script=["ok", *["hang"] * 6]) as server:
        code = f"from tests.llm.calls import *; run({server.url!r}, {ledger!r}, questions(7), workers=6, timeout=60)"
        process = subprocess.Popen([sys.executable, "-c", code])
        while server.in_flight < 6:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        again = run(server.url, ledger, questions(7))
        assert server.count == 13
    assert again.unknown <= 6
    assert query(ledger, "SELECT outcome, count(*) FROM attempts GROUP BY 1 ORDER BY 1") == [
        ("answered", 7),
        ("unknown", 6),
    ]


def test_a_machine_that_lost_its_lease_sends_nothing_and_undoes_nothing(ledger):
    """Another has taken over what it was asking: an answer stays, and an attempt that it announces late is refused."""

    async def both():
        async with Ledger(ledger) as one:
            first, second, third = (await one.lease([question(1), question(2), question(3)])).jobs
            await one.start(first)
            _terminate(ledger)
            async with Ledger(ledger) as two:
                assert two.unknown == 1
                for job in (await two.lease([question(1), question(2)])).jobs:
                    await two.start(job)
                    await two.answer(job, Reply("VERDICT: SUPPORTED"), Judgment(1))
                for late in (one.start(second), one.start(third)):
                    with pytest.raises(LedgerError, match="The run stops; answers in flight are saved"):
                        await late
                await one.fail(first, CallError("timeout", "no answer"), "queued")
                with pytest.raises(LedgerError, match="The run stops"):
                    one.start(second)

    asyncio.run(both())
    states = query(ledger, "SELECT state, attempts, vote FROM requests ORDER BY attempts")
    # The third was never sent, and nobody took it over: it is in no doubt.
    assert states == [("queued", 0, None), ("done", 1, 1), ("done", 2, 1)]
    assert query(ledger, "SELECT count(*) FROM attempts") == [(3,)]


def test_a_live_machine_is_waited_for(ledger):
    """What another run is asking is not asked here, but this run ends only when it is settled."""
    with FaultServer(latency=1.0) as server:
        other = threading.Thread(target=run, args=(server.url, ledger, questions(1)))
        other.start()
        while server.in_flight < 1:
            time.sleep(0.02)
        ran = run(server.url, ledger, questions(1))
        other.join()
        assert server.count == 1
    assert ran.tally.attempts == 0
    assert query(ledger, "SELECT state FROM requests") == [("done",)]


def test_a_budget_counts_what_other_machines_spend(ledger, monkeypatch):
    """Both look at the ledger while they run, so together they stay within what one of them may spend."""
    monkeypatch.setattr(_runner, "REFRESH_SECONDS", -1.0)
    rans = []
    with FaultServer(latency=0.02) as server:
        threads = [
            threading.Thread(
                target=lambda n=n: rans.append(run(server.url, ledger, questions(n), workers=4, budget=0.03))
            )
            for n in (600, 601)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [ran.stopped for ran in rans] == ["budget", "budget"]
    assert query(ledger, "SELECT sum(cost) FROM attempts")[0][0] <= 0.03 + 128 * 1e-4


def test_a_database_that_is_lost_at_the_end_of_a_round_trip_stops_the_run(ledger, monkeypatch):
    """The driver's own word is one line too: SQLAlchemy knows nothing of the pipeline's end."""

    @contextmanager
    def broken(_):
        yield
        raise psycopg.OperationalError("cannot exit pipeline mode while busy")

    def breaks(_):
        monkeypatch.setattr(psycopg.Connection, "pipeline", broken)

    with (
        FaultServer(latency=0.05) as server,
        pytest.raises(LedgerError, match=r"cannot be written: cannot exit pipeline mode while busy. The run stops"),
    ):
        run(server.url, ledger, questions(500), workers=4, started=breaks)


READ = """
from deep.llm import History, LedgerError
from tests.guests.postgresql.test_shared import _terminate
try:
    with History({ledger!r}) as history:
        history.rows(["none"])
        _terminate({ledger!r})
        history.rows(["none"])
except LedgerError as error:
    print(error)
"""
WRITE = """
import threading
from deep.llm import LedgerError
from tests.llm.calls import questions, run
from tests.guests.postgresql.test_shared import _terminate
def cut(_):
    threading.Timer(0.6, _terminate, [{ledger!r}]).start()
try:
    run({url!r}, {ledger!r}, questions(5000), workers=4, started=cut)
except LedgerError as error:
    print(error)
"""
HELD = """
from deep.llm import History
from tests.guests.postgresql.test_shared import _terminate
with History({ledger!r}) as history:
    history.rows(["none"])
    _terminate({ledger!r})
print("`ledger` cannot be read or written: not asked")
"""


@pytest.mark.parametrize("code", [READ, WRITE, HELD], ids=["read", "write", "held"])
def test_a_terminated_backend_is_told_in_one_line(ledger, code):
    """No traceback of a library's pool or driver stands before it."""
    with FaultServer(latency=0.05) as server:
        run(server.url, ledger, questions(1))
        done = subprocess.run(
            [sys.executable, "-c", code.format(url=server.url, ledger=ledger)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[3],
            check=False,
        )
    assert re.fullmatch(r"`ledger` .*cannot be (read|read or written|written): .*\n", done.stdout), done.stdout
    assert done.stderr == ""


def _terminate(url):
    database = url.rpartition("/")[2]
    engine = sqlalchemy.create_engine(f"{url.rpartition('/')[0]}/postgres", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        connection.execute(sqlalchemy.text(kill), {"name": database})
    engine.dispose()


def test_no_password_is_shown(server_url):
    """A database that cannot be opened is named without its password."""
    with pytest.raises(LedgerError, match="cannot be opened") as caught:
        History(f"{server_url}/nowhere")
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in describe_ledger(server_url)


def test_a_database_without_a_ledger_is_no_ledger(ledger):
    """Reports do not make tables."""
    with pytest.raises(InputError, match="`ledger` must be a ledger of deep"):
        History(ledger)


@pytest.mark.slow
def test_at_most_once_over_a_crash(ledger):
    """What a dead machine had in flight stays without a vote."""
    with FaultServer(script=["hang"]) as server:
        code = f"from tests.llm.calls import *; run({server.url!r}, {ledger!r}, questions(1), timeout=60)"
        process = subprocess.Popen([sys.executable, "-c", code])
        while server.in_flight < 1:
            time.sleep(0.05)
        process.kill()
        process.wait()
        run(server.url, ledger, questions(1), retry=RetryPolicy(at_most_once=True))
        assert server.count == 1
    assert query(ledger, "SELECT state FROM requests WHERE key = '" + question(0).key + "'") == [("unknown",)]


def test_a_lost_database_stops_the_run(ledger):
    """When the connection goes, nothing more is asked."""
    with FaultServer(latency=0.05) as server:

        def cut(_):
            threading.Timer(0.6, _terminate, args=(ledger,)).start()

        with pytest.raises(LedgerError, match="cannot be written"):
            run(server.url, ledger, questions(5000), workers=4, started=cut)
        assert server.count < 1000
