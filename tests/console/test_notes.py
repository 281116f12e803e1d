"""What deep says and sends beside its results: the logger `deep`, `--quiet`, `--verbose`, OpenTelemetry."""

import logging
import sys
from pathlib import Path

import pytest

from deep.cli import main
from deep.console import evaluation_events
from deep.exceptions import LOG, note
from tests.deep_commands import votes

CLAIMS = Path(__file__).parents[2] / "examples" / "claims.csv"


def test_a_note_is_a_record_of_the_logger_deep(capsys):
    """By default it is a line on standard error; level and handlers are the user's."""
    note("two\nlines")
    assert capsys.readouterr().err == "two\\nlines\n"
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    LOG.addHandler(handler)
    try:
        LOG.setLevel("ERROR")
        note("nothing")
        LOG.setLevel("WARNING")
        note("one")
    finally:
        LOG.removeHandler(handler)
        LOG.setLevel(logging.NOTSET)
    assert [(record.name, record.getMessage()) for record in records] == [("deep", "one")]
    assert capsys.readouterr().err == "one\n"


def test_quiet_leaves_results_and_errors(tmp_path, capsys, monkeypatch):
    """Notes and warnings are left out; an error is not, nor is its status."""
    monkeypatch.chdir(tmp_path)
    words = ["fit", "v.csv", "--out", "m.json"]
    monkeypatch.setattr("deep.commands.fit.run", lambda _: note("a note"))
    main(words)
    assert "a note\n" in capsys.readouterr().err
    main([*words, "--quiet"])
    assert capsys.readouterr().err == ""
    assert main(["data", "check", "absent.csv", "--quiet"]) == 2
    assert capsys.readouterr().err.startswith("error: `")


def test_verbose_adds_the_time_and_the_traceback_of_an_error(tmp_path, capsys, monkeypatch):
    """Behind them stands the same error line; the next command is as before."""
    monkeypatch.chdir(tmp_path)
    assert main(["data", "check", "absent.csv", "--verbose"]) == 2
    first, *middle, last = capsys.readouterr().err.splitlines()
    assert first.startswith("deep data check, Python 3")
    assert "Traceback (most recent call last):" in middle
    assert any(line.endswith(" s") for line in middle)
    assert last.startswith("error: `")
    assert main(["data", "check", "absent.csv"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.fixture
def without(monkeypatch):
    """Take the SDK of OpenTelemetry away."""
    monkeypatch.delitem(sys.modules, "deep.integrations.opentelemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http._log_exporter", None)


def test_nothing_is_loaded_where_nothing_is_wanted(without):
    """Nor missed."""
    with evaluation_events(on=False) as events:
        assert events is None


def test_deep_votes_says_so_before_it_asks(without, tmp_path, capsys):
    """One line, and nothing is written."""
    out = tmp_path / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "dates", "--otel", "--out", str(out)]) == 2
    assert "deep-judges[opentelemetry]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
