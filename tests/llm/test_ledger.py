"""The ledger file: what it refuses, how it commits, and what a report reads from it."""

import asyncio
import sqlite3
import threading
from unittest.mock import Mock

import pytest
from sqlalchemy import text

from deep.exceptions import InputError, MissingDependencyError
from deep.llm import CallError, History, Ledger, LedgerError, Reply, RetryPolicy
from deep.llm._database import FileLock
from deep.records import Judgment
from tests.fault_server import FaultServer
from tests.llm.calls import question, questions, rows, run


def use(path, work, **options):
    """Run `work(ledger)` on an open ledger, and return its result."""

    async def session():
        async with Ledger(str(path), **options) as ledger:
            return await work(ledger)

    return asyncio.run(session())


async def ask_one(ledger):
    """Claim one request, and write that it was sent."""
    lease = await ledger.lease([question(1)])
    await ledger.start(lease.jobs[0], worst_case=0.01)
    return lease.jobs[0]


def test_sent_is_on_disk_before_the_request(tmp_path):
    """Another connection sees the row as sent as soon as the write is done."""

    async def work(ledger):
        await ask_one(ledger)
        return rows(tmp_path / "l", "SELECT state, attempts FROM requests"), rows(
            tmp_path / "l", "SELECT outcome FROM attempts"
        )

    assert use(tmp_path / "l", work) == ([("sent", 1)], [(None,)])


def test_commits_survive_a_power_cut(tmp_path):
    """WAL with a flush at every commit."""

    async def work(ledger):
        return await ledger.call(
            lambda c: (c.execute(text("PRAGMA journal_mode")).scalar(), c.execute(text("PRAGMA synchronous")).scalar())
        )

    assert use(tmp_path / "l", work) == ("wal", 2)


def test_many_writes_share_a_commit(tmp_path):
    """Group commit: a hundred answers cost a handful of flushes."""
    commits = []

    async def work(ledger):
        ledger._writer._connection.connection.driver_connection.set_trace_callback(
            lambda statement: commits.append(statement) if statement == "COMMIT" else None
        )
        lease = await ledger.lease([question(i) for i in range(100)])
        await asyncio.gather(*(ledger.start(job) for job in lease.jobs))

    use(tmp_path / "l", work)
    assert len(commits) < 20


def test_what_was_in_flight_is_unknown_in_the_next_run(tmp_path):
    """The attempt is closed as unknown, the request is handed out again, and the number is told."""
    use(tmp_path / "l", ask_one)

    async def again(ledger):
        lease = await ledger.lease([question(1)])
        return ledger.unknown, len(lease.jobs), lease.jobs[0].number

    assert use(tmp_path / "l", again) == (1, 1, 2)
    assert rows(tmp_path / "l", "SELECT outcome FROM attempts") == [("unknown",)]


def test_at_most_once_leaves_it_alone(tmp_path):
    """The request is settled as far as this run is concerned."""
    use(tmp_path / "l", ask_one)

    async def again(ledger):
        lease = await ledger.lease([question(1)])
        return len(lease.jobs), lease.settled[0][1]["state"]

    assert use(tmp_path / "l", again, at_most_once=True) == (0, "unknown")


def test_dollars_of_earlier_runs_count(tmp_path):
    """Answers at their price, lost answers at their worst case, refusals not at all."""

    async def spend(ledger):
        lease = await ledger.lease([question(i) for i in range(4)])
        for job in lease.jobs:
            await ledger.start(job, worst_case=1.0)
        await ledger.answer(lease.jobs[0], Reply("x", cost=0.25), Judgment(1))
        await ledger.fail(lease.jobs[1], CallError("timeout", "x"), state="failed")
        await ledger.fail(lease.jobs[2], CallError("rate_limited", "x"), state="failed")
        return await ledger.spent_by_others()

    async def look(ledger):
        return await ledger.spent_by_others()

    assert use(tmp_path / "l", spend) == 0.0
    assert use(tmp_path / "l", look) == 0.25 + 1.0 + 1.0


def test_a_ledger_is_for_one_process(tmp_path):
    """The second to open it is told how to share."""

    async def twice(_):
        async with Ledger(str(tmp_path / "l")):
            pass

    with pytest.raises(InputError, match=r"`ledger` must not be in use by another process.*postgresql\+psycopg"):
        use(tmp_path / "l", twice)


def test_a_link_to_a_ledger_is_that_ledger(tmp_path):
    """Or two processes would hold a lock each, and take the requests in flight of the other for lost ones."""
    (tmp_path / "link").symlink_to("l")

    async def twice(_):
        async with Ledger(str(tmp_path / "link")):
            pass

    with pytest.raises(InputError, match="`ledger` must not be in use by another process"):
        use(tmp_path / "l", twice)


def test_a_ledger_is_a_file_whatever_its_name(tmp_path, monkeypatch):
    """SQLite takes this name for memory, where paid answers would end with the run."""
    monkeypatch.chdir(tmp_path)

    async def nothing(_):
        pass

    use(":memory:", nothing)
    assert (tmp_path / ":memory:").stat().st_size


def test_a_disk_without_room_is_no_other_process(tmp_path, monkeypatch):
    """What the database says of the lock is told as it is."""
    full = sqlite3.OperationalError("database or disk is full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    monkeypatch.setattr(sqlite3, "connect", Mock(return_value=Mock(execute=Mock(side_effect=full))))
    with pytest.raises(LedgerError, match=r"`ledger` .*ledger\.sqlite cannot be opened: database or disk is full"):
        FileLock(str(tmp_path / "ledger.sqlite"))


def test_a_report_may_be_read_while_a_run_writes(tmp_path):
    """Readers are not locked out."""

    async def work(ledger):
        await ask_one(ledger)
        with History(str(tmp_path / "l")) as history:
            return history.report()[0].waiting

    assert use(tmp_path / "l", work) == 1


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be looked at" * 30, b"PAR1"])
def test_another_kind_of_file_is_refused(tmp_path, content):
    """And left as it is."""
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(LedgerError, match="cannot be opened: file is not a database"):
        use(tmp_path / "l", ask_one)
    assert (tmp_path / "l").read_bytes() == content


def test_another_database_is_refused(tmp_path):
    """A SQLite file of somebody else is not made into a ledger."""
    rows(tmp_path / "l", "CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="`ledger` must be a ledger of deep"):
        use(tmp_path / "l", ask_one)


def test_a_newer_ledger_is_refused(tmp_path):
    """A schema that this version does not know is not touched."""
    use(tmp_path / "l", ask_one)
    with sqlite3.connect(tmp_path / "l") as connection:
        connection.execute("UPDATE deep_meta SET version = 99")
    connection.close()
    with pytest.raises(InputError, match=r"must have schema version 1\. Got 99"):
        use(tmp_path / "l", ask_one)


def test_a_cell_that_no_run_has_written(tmp_path):
    """The ledger's report says in one line that it cannot be read."""
    use(tmp_path / "l", ask_one)
    with sqlite3.connect(tmp_path / "l") as connection:
        connection.execute("UPDATE attempts SET outcome = 'answered', seconds = 'many'")
    connection.close()
    with History(str(tmp_path / "l")) as history, pytest.raises(LedgerError, match="cannot be read: "):
        history.report()


def test_a_folder_that_is_not_there(tmp_path):
    """One line, and no traceback."""
    with pytest.raises(LedgerError, match="cannot be opened: unable to open database file"):
        use(tmp_path / "nowhere" / "l", ask_one)


def test_a_report_needs_a_ledger(tmp_path):
    """Reading does not make a file."""
    with pytest.raises(InputError, match="`ledger` must be an existing ledger"):
        History(str(tmp_path / "l"))
    assert not (tmp_path / "l").exists()


@pytest.mark.parametrize("target", ["mysql://u:s3cret@h/d", "sqlite:///x", "postgresql+psycopg://u:s3cret@h:port/d"])
def test_other_databases_are_refused_without_their_password(target):
    """The scheme is named, the password is not."""
    with pytest.raises(InputError, match="`ledger` must be a file or a") as caught:
        use(target, ask_one)
    assert "s3cret" not in str(caught.value)


def test_a_missing_driver_is_named(monkeypatch):
    """PostgreSQL needs psycopg, which is an extra."""
    import sys

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependencyError, match=r"Install deep-judges\[postgresql\]") as caught:
        use("postgresql+psycopg://u:s3cret@127.0.0.1:1/d", ask_one)
    assert "s3cret" not in str(caught.value)


def test_the_options_of_each_run_are_kept(tmp_path):
    """For the record, as JSON."""
    use(tmp_path / "l", ask_one, options={"rpm": 60})
    assert rows(tmp_path / "l", "SELECT options FROM runs") == [('{"rpm":60}',)]
    assert rows(tmp_path / "l", "SELECT count(*) FROM runs WHERE ended > started") == [(1,)]


def test_everything_in_the_ledger_is_text_or_numbers(tmp_path):
    """Nothing has to be unpickled to read it."""
    with FaultServer(faults={"server_error": 0.3}) as server:
        run(server.url, tmp_path / "l", questions(20))
    for (table,) in rows(tmp_path / "l", "SELECT name FROM sqlite_master WHERE type = 'table'"):
        for row in rows(tmp_path / "l", f"SELECT * FROM {table}"):
            assert all(isinstance(value, str | int | float | None) for value in row)


def test_a_report_adds_up(tmp_path):
    """States, reasons, classes, attempts and dollars of all requests, and no request twice."""
    faults = {"no_verdict": 0.1, "truncated": 0.1, "refused": 0.1}
    with FaultServer(faults=faults, script=["ok", "broken_json", "server_error"]) as server:
        run(server.url, tmp_path / "l", questions(60))
        run(server.url, tmp_path / "l", questions(60, dataset="other"))
    with History(str(tmp_path / "l")) as history:
        first, second = history.report()
        dollars, unpriced = history.cost()
        assert history.lost() == 1  # the broken reply is on the bill
    assert (first.dataset, second.dataset) == ("d", "other")
    for row in (first, second):
        assert row.votes + sum(row.reasons.values()) == row.asked == 60
        assert set(row.reasons) == {"unparsable", "truncated", "refused"}
        assert row.failure_rate == pytest.approx(sum(row.reasons.values()) / 60)
        assert 0 < row.seconds_median <= row.seconds_p95
        assert row.cost == pytest.approx(dollars)
    cut = sum(fault == "truncated" for *_, fault in server.log)  # asked again, save those that were cut off twice
    assert 0 < first.reasons["truncated"] < cut
    assert server.count == first.attempts == 62 + cut - first.reasons["truncated"]
    assert unpriced == 0


def test_replies_come_back_by_key(tmp_path):
    """Judgments are made of these: replies as they were sent, refusals that have no reply, and nothing unasked."""
    asked = [question(1, sample=i) for i in range(3)]
    with FaultServer(script=["ok", "filtered", "dropped"]) as server:
        run(server.url, tmp_path / "l", lambda: asked, workers=1, retry=RetryPolicy(attempts=1))
    with History(str(tmp_path / "l")) as history:
        keys = [request.key for request in asked]
        result = history.answers([*keys, question(2).key])
        assert {key: row["state"] for key, row in history.rows(keys).items()} == dict(
            zip(keys, ["done", "done", "failed"], strict=True)
        )
    first, second, third = (result.pop(key) for key in keys)
    assert result == {}
    assert (first.reply.finish_reason, first.failure) == ("stop", None)
    assert first.reply.cost > 0
    assert (second.reply.text, second.reply.finish_reason, second.failure) == ("", "content_filter", "refused")
    assert second.reply.refusal
    assert (third.state, third.reply, third.failure) == ("failed", None, "dropped")


def test_the_writer_leaves_no_thread(tmp_path):
    """Opening and closing many ledgers leaves nothing behind."""
    before = threading.active_count()
    for i in range(3):
        use(tmp_path / str(i), ask_one)
    assert threading.active_count() == before


def test_a_lease_takes_no_more_than_is_wanted(tmp_path):
    """About so many are taken, a group never cut in two; what is left can be leased later, and nothing comes twice."""

    async def work(ledger):
        leases, left = [], [question(i, group=f"g{i // 3}") for i in range(12)]
        while left:
            leases.append(await ledger.lease(left, most=4))
            left = leases[-1].left
        return leases

    leases = use(tmp_path / "l", work)
    assert [len(lease.jobs) for lease in leases] == [6, 6]
    keys = [job.key for lease in leases for job in lease.jobs]
    assert sorted(keys) == sorted(question(i, group=f"g{i // 3}").key for i in range(12))
    assert [len(lease.left) for lease in leases] == [6, 0]
    assert all(len({job.request.group for job in lease.jobs}) == 2 for lease in leases)
    assert rows(tmp_path / "l", "SELECT count(*), count(DISTINCT key) FROM items") == [(12, 12)]
