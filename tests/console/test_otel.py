"""Events of OpenTelemetry: asked for where the library is not installed."""

import sys
from pathlib import Path

import pytest

from deep.console import evaluation_events
from deep.exceptions import MissingDependencyError
from tests.deep_commands import votes

CLAIMS = Path(__file__).parents[2] / "examples" / "claims.csv"


@pytest.fixture
def without(monkeypatch):
    """Take the SDK away."""
    monkeypatch.delitem(sys.modules, "deep.integrations.opentelemetry", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk._logs", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http._log_exporter", None)


def test_nothing_is_loaded_where_nothing_is_wanted(without):
    """Nor missed."""
    with evaluation_events(on=False) as events:
        assert events is None


def test_a_missing_library_is_named(without):
    """With the extra that has it."""
    with (
        pytest.raises(MissingDependencyError, match=r"pip install 'deep-judges\[opentelemetry\]'"),
        evaluation_events(on=True),
    ):
        pass


def test_deep_votes_says_so_before_it_asks(without, tmp_path, capsys):
    """One line, and nothing is written."""
    out = tmp_path / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "dates", "--otel", "--out", str(out)]) == 2
    assert "deep-judges[opentelemetry]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
