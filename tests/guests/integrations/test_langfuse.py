"""Langfuse: scores as the real client sends them to a server on loopback, each known again by its id."""

import json
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import pytest

from deep.asking import TextScorer
from deep.integrations.committee import Verdict
from tests.guests.integrations.case import collecting, lexical_model

SOURCE = "Rain fell on Monday. The river rose by 14 centimetres."
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Recorder(BaseHTTPRequestHandler):
    """Keeps what is sent, and answers as Langfuse does."""

    def do_POST(self):
        """Keep a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers["Authorization"], body))
        answer = json.dumps({"accepted": len(body), "rejected": 0, "errors": []}).encode()
        self.send_response(207)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def sent():
    """Return Langfuse's client, and a function that waits and returns the scores that it has sent."""
    langfuse = pytest.importorskip("langfuse", reason="langfuse is not installed: pip install '.[langfuse]'")
    with collecting(Recorder) as server:
        address = f"http://127.0.0.1:{server.server_port}"
        # Clients of one key are one client.
        client = langfuse.Langfuse(public_key=f"pk-lf-{server.server_port}", secret_key="sk-lf-1", base_url=address)

        def scores():
            client.flush()
            assert {path for path, *_ in server.seen} == {"/api/public/scores"}
            return [score for _, _, body in server.seen for score in body]

        yield SimpleNamespace(client=client, scores=scores)
        client.shutdown()


def test_a_scored_item_has_p_and_a_decision(sent):
    """A numeric and a categorical score of the same observation, with interval and rationale."""
    from deep.integrations.langfuse import score_items

    model = lexical_model()
    items = [
        {
            "source": SOURCE,
            "claim": "The river rose by 41 centimetres.",
            "trace_id": TRACE,
            "observation_id": "b7ad6b71",
        },
        {"source": [SOURCE], "claim": "Rain fell on Monday.", "trace_id": "1" * 32},
    ]
    verdicts = score_items(sent.client, model, items)
    expected = [TextScorer(model).score(SOURCE, item["claim"]).columns for item in items]
    scores = sent.scores()
    assert [(s["name"], s["dataType"], s["traceId"], s.get("observationId")) for s in scores] == [
        ("consistency", "NUMERIC", TRACE, "b7ad6b71"),
        ("consistency-decision", "CATEGORICAL", TRACE, "b7ad6b71"),
        ("consistency", "NUMERIC", "1" * 32, None),
        ("consistency-decision", "CATEGORICAL", "1" * 32, None),
    ]
    assert [scores[0]["value"], scores[2]["value"]] == [columns["p_consistent"] for columns in expected]
    called = ["consistent" if columns["decision"] else "inconsistent" for columns in expected]
    assert [scores[1]["value"], scores[3]["value"]] == called
    assert scores[0]["comment"] == verdicts[0].rationale
    assert "90 % interval" in scores[0]["comment"]
    assert "The source lacks numbers of the claim: 41." in scores[0]["comment"]
    assert scores[0]["metadata"]["p_low"] == expected[0]["p_low"]


def test_what_is_sent_again_has_the_same_ids(sent):
    """So that Langfuse keeps one score of a name and place; other names and places have others."""
    from deep.integrations.langfuse import send_verdict

    verdict = Verdict("scored", "said", p=0.5, interval=(0.25, 0.75), decision=True)
    for where in ({"trace_id": TRACE}, {"trace_id": TRACE}, {"trace_id": TRACE, "observation_id": "a"}):
        send_verdict(sent.client, verdict, **where)
    send_verdict(sent.client, verdict, name="other", session_id="s")
    ids = [score["id"] for score in sent.scores()]
    assert ids[:2] == ids[2:4]
    assert len({*ids}) == 6


def test_no_vote_is_no_number_and_an_error_is_not_sent(sent):
    """Three things that are never one number."""
    from deep.integrations.langfuse import score_items, send_verdict

    send_verdict(sent.client, Verdict("error", "No answer"), trace_id=TRACE)
    send_verdict(sent.client, Verdict("skipped", "No judge gave a vote."), trace_id=TRACE)
    (broken,) = score_items(sent.client, lexical_model(), [{"source": "", "claim": "x", "trace_id": TRACE}])
    assert broken.status == "error"
    assert [(s["name"], s["value"]) for s in sent.scores()] == [("consistency-decision", "no vote")]


@pytest.mark.parametrize("where", [{}, {"observation_id": "a"}, {"trace": "a"}])
def test_a_score_belongs_somewhere(sent, where):
    """An observation alone is not enough for Langfuse."""
    from deep.integrations.langfuse import send_verdict

    with pytest.raises(TypeError, match="`where` must name a trace, session or dataset run"):
        send_verdict(sent.client, Verdict("error", ""), **where)
