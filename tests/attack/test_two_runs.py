"""Two runs to one output at the same time, and others who write there: nothing is lost without a word."""

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from deep.asking import _write
from tests.deep_commands import votes

ROWS = "source,claim\n" + "".join(f"the sky is blue {n},the sky is blue {n}\n" for n in range(5))
KINDS = ("votes", "judgments", "reasons")


@pytest.fixture
def words(tmp_path, monkeypatch):
    """Return the words of a command that votes on five claims."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "claims.csv").write_text(ROWS)
    return ["claims.csv", "--lexical", "coverage", "--out", "v.parquet"]


@pytest.mark.parametrize("late", [False, True])
def test_two_runs_to_one_output(tmp_path, words, monkeypatch, capsys, late):
    """The second to end leaves all files of the first, whether that ended before it or while it wrote."""
    write = _write.write_judgments

    def other():
        run = [sys.executable, "-m", "deep", "ask", *words, "--lexical", "numbers"]
        subprocess.run(run, check=True, capture_output=True)
        kept.update({path.name: path.read_bytes() for path in tmp_path.glob("v.*")})

    def first(rows, *words, **options):
        if not late:
            other()
        write(after(rows, other) if late else rows, *words, **options)

    def after(rows, then):
        yield from rows
        then()

    kept = {}
    monkeypatch.setattr(_write, "write_judgments", first)
    assert votes(words) == 2
    message = capsys.readouterr().err
    assert "`out` must not change during a run" in message
    assert "Traceback" not in message
    assert len(kept) >= len(KINDS)
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
    assert "lexical-numbers" in " ".join(pq.read_schema("v.parquet").names)
