"""OpenTelemetry: events of scores and votes, seen by the SDK's in-memory exporter and by a collector on loopback."""

from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from deep.asking import Scored, TextScorer
from deep.features.lexical import LEXICAL
from deep.records import Example, Judgment
from tests.deep_commands import votes as deep_votes
from tests.guests.integrations.case import collecting, lexical_model

CLAIMS = Path(__file__).parents[3] / "examples" / "claims.csv"
SOURCE = "Rain fell on Monday. The river rose by 14 centimetres."
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def memory():
    """Return a provider of the SDK that keeps events, and a function that returns them."""
    sdk = pytest.importorskip("opentelemetry.sdk._logs", reason="opentelemetry-sdk is not installed")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="the OTLP exporter is not installed")
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

    exporter, provider = InMemoryLogRecordExporter(), sdk.LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    yield provider, lambda: [data.log_record for data in exporter.get_finished_logs()]
    provider.shutdown()


def attributes(record):
    """Return the attributes of the conventions, without their common beginning."""
    return {name.removeprefix("gen_ai.evaluation."): value for name, value in dict(record.attributes).items()}


def test_a_score_is_one_event(memory):
    """Name, value, label and explanation; the judged span is its parent."""
    from deep.integrations.opentelemetry import EvaluationEvents

    provider, seen = memory
    scored = TextScorer(lexical_model()).score(SOURCE, "The river rose by 41 centimetres.")
    EvaluationEvents(provider)(scored, TRACEPARENT)
    (record,) = seen()
    result = attributes(record)
    assert record.event_name == "gen_ai.evaluation.result"
    assert (result["name"], result["score.value"]) == ("consistency", scored.columns["p_consistent"])
    assert result["score.label"] == ("consistent" if scored.columns["decision"] else "inconsistent")
    assert "The source lacks numbers of the claim: 41." in result["explanation"]
    assert "error.type" not in result
    assert f"{record.trace_id:032x}-{record.span_id:016x}" == TRACEPARENT[3:-3]


def test_the_current_span_is_the_parent_where_none_is_given(memory):
    """Or a span's context that is given."""
    from opentelemetry import trace

    from deep.integrations.opentelemetry import EvaluationEvents

    provider, seen = memory
    events, scored = EvaluationEvents(provider), TextScorer(lexical_model()).score(SOURCE, "Rain fell on Monday.")
    judged, other = (trace.SpanContext(n, n, is_remote=False) for n in (7, 8))
    with trace.use_span(trace.NonRecordingSpan(other)):
        events(scored)
        events(scored, judged)
    events(scored)
    assert [record.span_id for record in seen()] == [8, 7, 0]


@pytest.mark.parametrize(
    ("judgment", "expected"),
    [(Judgment(-1, "failed"), {"error.type": "failed"}), (Judgment(-1, "abstained"), {"score.label": "no_vote"})],
)
def test_no_score_is_no_number(memory, judgment, expected):
    """An error and a pair without votes have no value."""
    from deep.integrations.opentelemetry import EvaluationEvents

    provider, seen = memory
    columns = {"p_consistent": 0.5, "p_low": 0.25, "p_high": 0.75, "decision": 1}
    EvaluationEvents(provider)(Scored(Example("a", "b", "1", dataset="d"), {"x": judgment}, columns))
    result = attributes(seen()[0])
    assert {key: result[key] for key in result if key in ("score.value", "score.label", "error.type")} == expected
    assert (result["deep.dataset"], result["deep.item_id"]) == ("d", "1")


def test_each_vote_is_an_event(memory):
    """A reason that is no abstention is an error, and never a value."""
    from deep.integrations.opentelemetry import EvaluationEvents

    provider, seen = memory
    judgments = {
        "yes": Judgment(1, rationale="It does."),
        "no": Judgment(0),
        "none": Judgment(-1, "abstained", rationale="No numbers."),
        "broken": Judgment(-1, "unparsable"),
    }
    EvaluationEvents(provider).judged(Example("a", "b", "1"), judgments)
    result = [attributes(record) for record in seen()]
    assert [one["name"] for one in result] == list(judgments)
    assert [one.get("score.value") for one in result] == [1.0, 0.0, None, None]
    assert [one.get("score.label") for one in result] == ["consistent", "inconsistent", "abstained", None]
    assert [one.get("error.type") for one in result] == [None, None, None, "unparsable"]
    assert result[2]["explanation"] == "No numbers."


class Collector(BaseHTTPRequestHandler):
    """Keeps what is sent to it by OTLP."""

    def do_POST(self):
        """Keep a request."""
        self.server.seen.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(307 if self.server.elsewhere else 200)
        if self.server.elsewhere:
            self.send_header("Location", self.server.elsewhere)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def collector(memory, monkeypatch):
    """Return a collector on loopback, to which the environment points."""
    with collecting(Collector, elsewhere=None) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "none")
        yield server


def test_deep_votes_sends_its_votes(collector, tmp_path):
    """An event for each vote, by OTLP, before the command ends."""
    words = [str(CLAIMS), "--lexical", "numbers,dates", "--otel", "--out", str(tmp_path / "votes.parquet")]
    assert deep_votes(words) == 0
    assert {path for path, _ in collector.seen} == {"/v1/logs"}
    sent = b"".join(body for _, body in collector.seen)
    assert sent.count(LEXICAL["numbers"]().voter().encode()) == 120
    assert sent.count(b"weather-00-a") == 2
    assert b"gen_ai.evaluation.result" in sent


def test_no_redirect_is_followed(collector, tmp_path):
    """Events quote texts: a collector that redirects gets them, and nobody else."""
    with collecting(Collector, "127.0.0.2", elsewhere=None) as other:
        collector.elsewhere = f"http://127.0.0.2:{other.server_port}/v1/logs"
        words = [str(CLAIMS), "--lexical", "numbers", "--otel", "--out", str(tmp_path / "votes.parquet")]
        assert deep_votes(words) == 0
    assert collector.seen
    assert other.seen == []


def test_deep_votes_is_silent_without_the_option(collector, tmp_path):
    """Nothing is sent, whatever the environment says."""
    assert deep_votes([str(CLAIMS), "--lexical", "numbers", "--out", str(tmp_path / "votes.parquet")]) == 0
    assert collector.seen == []


def test_a_served_model_sends_its_scores(memory):
    """By the hook of `deep serve`."""
    pytest.importorskip("starlette", reason="starlette is not installed: pip install '.[serve]'")
    from starlette.testclient import TestClient

    from deep.integrations.opentelemetry import EvaluationEvents
    from deep.integrations.serve import CheckOptions, create_app

    provider, seen = memory
    app = create_app(lexical_model(), CheckOptions(on_scored=EvaluationEvents(provider)))
    with TestClient(app) as client:
        answer = client.post("/v1/check", json={"source": SOURCE, "claim": "Rain fell on Monday."}).json()
    (record,) = seen()
    assert attributes(record)["score.value"] == answer["p_consistent"]
