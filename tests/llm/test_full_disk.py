"""A ledger whose disk is full: what is in flight is written down with the room that was kept for it."""

import os
import subprocess
import sys

import pytest

from deep.llm import LedgerError, _ledger
from deep.llm._database import RESERVE_BYTES, Reserve
from tests.fault_server import FaultServer
from tests.llm.calls import KEY, outcomes, questions, run, states
from tests.llm.crash import write_examples


def fill(monkeypatch, spare=60):
    """Let the ledger grow by so many pages more, and without bound once its reserve is released."""
    connections = []

    def limit(pages):
        connections[0].execute(f"PRAGMA max_page_count = {pages}")

    class Kept:
        def __init__(self, _):
            self.kept = True

        def release(self):
            kept, self.kept = self.kept, False
            if kept and connections:
                limit(1 << 30)
            return kept

    def started(runner):
        connections.append(runner._caller.ledger._writer._connection.connection.driver_connection)
        limit(connections[0].execute("PRAGMA page_count").fetchone()[0] + spare)

    monkeypatch.setattr(_ledger._database, "Reserve", Kept)
    return started


def test_what_is_in_flight_is_written_down(tmp_path, monkeypatch):
    """The run stops with one line, nothing is in doubt, and the next run asks only the rest."""
    with FaultServer(latency=0.02) as server:
        with pytest.raises(LedgerError, match=r"is full\..*answers in flight are saved"):
            run(server.url, tmp_path / "l", questions(500), workers=8, started=fill(monkeypatch))
        asked = server.count
        assert 0 < asked < 500
        assert (states(tmp_path / "l")["done"], set(states(tmp_path / "l"))) == (asked, {"done", "queued"})
        assert outcomes(tmp_path / "l") == {"answered": asked}
        monkeypatch.undo()
        assert run(server.url, tmp_path / "l", questions(500)).unknown == 0
        assert server.count == 500


def test_the_reserve_takes_room_and_leaves_no_name(tmp_path):
    """It is released once; where it cannot be had there is none."""
    reserve = Reserve(str(tmp_path / "l"))
    assert os.fstat(reserve._file.fileno()).st_blocks * 512 >= RESERVE_BYTES
    assert list(tmp_path.iterdir()) == []
    assert [reserve.release(), reserve.release()] == [True, False]
    assert not Reserve(str(tmp_path / "none" / "l")).release()


def test_without_any_room_what_was_in_flight_is_told(tmp_path):
    """Where files may not grow, the reserve is no help: one line, exit 2, and the next run tells what is in doubt."""
    resource = pytest.importorskip("resource")
    examples, ledger = write_examples(tmp_path / "news.csv", 350), tmp_path / "l"
    with FaultServer(latency=0.02) as server:
        out = ["--out", str(tmp_path / "votes.parquet")]
        where = ["--llm", "tiny", "--base-url", server.url, "--ledger", str(ledger), "--concurrency", "8"]
        command = [sys.executable, "-m", "deep", "ask", str(examples), "--prompt", "deep-strict-steps", *where, *out]
        options = {"capture_output": True, "text": True, "env": {**os.environ, "OPENAI_API_KEY": KEY}}
        small = (RESERVE_BYTES >> 2,) * 2
        full = subprocess.run(command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, small), **options)
        # What a run in a pipe is doing stands before the error where the machine is so busy that two seconds pass.
        notes = (" requests/s ", " replies/s: ", "First vote: ", "No answer for ")
        told = [line for line in full.stderr.splitlines() if not any(note in line for note in notes)]
        assert (full.returncode, full.stdout, len(told)) == (2, "", 1)
        assert told[0].startswith(f"error: `ledger` {ledger} cannot be written: ")
        result = states(ledger)
        done, lost = result.get("done", 0), result["sent"]
        assert done < server.count <= done + lost
        server.latency = 0.0
        again = subprocess.run(command, **options)
        assert again.returncode == 0
        assert f"{lost} requests were in flight when an earlier run ended" in again.stderr
        assert server.count <= 350 + lost
