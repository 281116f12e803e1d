"""Langfuse: scores as the real client sends them to a server on loopback, and the file that runs inside Langfuse."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from deep.asking import TextScorer
from deep.exceptions import InputError
from deep.features.lexical import LEXICAL
from deep.integrations._verdict import Verdict
from deep.integrations.python_program import export_evaluator
from deep.model import fit
from deep.records import VoteMatrix
from tests.deep_commands import export
from tests.model.fitted import small_votes

SOURCE = "Rain fell on Monday. The river rose by 14 centimetres."
TRACE = "0af7651916cd43dd8448eb211c80319c"


def checks_model(names=("coverage", "dates", "numbers"), other=()):
    """Return a stack of lexical checks."""
    made = [*(LEXICAL[name]().voter() for name in names), *other]
    votes = small_votes(n_voters=len(made))
    return fit(VoteMatrix(votes.votes, votes.example_ids, made, votes.datasets, votes.labels), ensembler="Stack")


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
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    server.seen = []
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_port}"
    # Clients of one key are one client.
    client = langfuse.Langfuse(public_key=f"pk-lf-{server.server_port}", secret_key="sk-lf-1", base_url=address)

    def scores():
        client.flush()
        assert {path for path, *_ in server.seen} == {"/api/public/scores"}
        return [score for _, _, body in server.seen for score in body]

    yield SimpleNamespace(client=client, scores=scores)
    client.shutdown()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_scored_item_has_p_and_a_decision(sent):
    """A numeric and a categorical score of the same observation, with interval and rationale."""
    from deep.integrations.langfuse import score_items

    model = checks_model()
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
    (broken,) = score_items(sent.client, checks_model(), [{"source": "", "claim": "x", "trace_id": TRACE}])
    assert broken.status == "error"
    assert [(s["name"], s["value"]) for s in sent.scores()] == [("consistency-decision", "no vote")]


@pytest.mark.parametrize("where", [{}, {"observation_id": "a"}, {"trace": "a"}])
def test_a_score_belongs_somewhere(sent, where):
    """An observation alone is not enough for Langfuse."""
    from deep.integrations.langfuse import send_verdict

    with pytest.raises(TypeError, match="`where` must name a trace, session or dataset run"):
        send_verdict(sent.client, Verdict("error", ""), **where)


@dataclass
class Score:
    """Langfuse's own, as documented."""

    name: str
    value: Any
    data_type: str
    comment: str | None = None
    config_id: str | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class EvaluationResult:
    """Langfuse's own, as documented."""

    scores: list[Score]


@dataclass
class Observation:
    """Langfuse's own, as documented."""

    input: Any = None
    output: Any = None
    metadata: Any = None
    tool_calls: list[Any] = field(default_factory=list)


def evaluator(model, folder):
    """Return the function `evaluate` of a written file, in a world that has only Langfuse's classes."""
    export_evaluator(model, folder / "evaluator.py")
    world = {"__name__": "evaluator", "Score": Score, "EvaluationResult": EvaluationResult}
    # Something stands before it, as where Langfuse puts its classes there.
    exec(compile("import json\n" + (folder / "evaluator.py").read_text(encoding="utf-8"), "evaluator", "exec"), world)
    return lambda **fields: (
        world["evaluate"](SimpleNamespace(observation=Observation(**fields), experiment=None)).scores
    )


CLAIM = "The river rose by 41 centimetres."
GIVEN = {
    "source in metadata": {"input": "Sum it up.", "output": CLAIM, "metadata": {"source": [SOURCE]}},
    "source as input": {"input": SOURCE, "output": CLAIM},
    "objects": {"input": {"question": "?", "context": SOURCE}, "output": {"answer": CLAIM}},
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_the_evaluator_gives_what_deep_gives(given, tmp_path):
    """Wherever the texts stand."""
    model = checks_model()
    columns = TextScorer(model).score(SOURCE, CLAIM).columns
    numeric, decision = evaluator(model, tmp_path)(**given)
    assert (numeric.name, numeric.data_type, decision.data_type) == ("consistency", "NUMERIC", "CATEGORICAL")
    assert numeric.value == pytest.approx(columns["p_consistent"], abs=1e-12)
    assert decision.value == ("consistent" if columns["decision"] else "inconsistent")
    assert "The source lacks numbers of the claim: 41." in numeric.comment
    assert numeric.metadata["p_low"] == pytest.approx(columns["p_low"], abs=1e-12)


def test_the_evaluator_takes_votes_of_other_judges(tmp_path):
    """From the observation's metadata; texts are refused."""
    model = checks_model(("numbers",), ("strict@0a1b2c3d/small", "other"))
    evaluate = evaluator(model, tmp_path)
    numeric, _ = evaluate(metadata={"votes": {"other": 1, "strict@0a1b2c3d/small": 0}})
    assert numeric.value == model.score([[-1, 0, 1]], streamed=True)[0]
    with pytest.raises(ValueError, match="takes votes"):
        evaluate(input=SOURCE, output=CLAIM)
    with pytest.raises(ValueError, match="no voter 'nobody'"):
        evaluate(metadata={"votes": {"nobody": 1}})


def test_without_a_vote_there_is_no_number(tmp_path):
    """And without a text an error."""
    evaluate = evaluator(checks_model(("dates", "numbers", "quotes")), tmp_path)
    (decision,) = evaluate(input=SOURCE, output="It was a calm day.")
    assert (decision.data_type, decision.value) == ("CATEGORICAL", "no vote")
    with pytest.raises(ValueError, match="the claim must be text"):
        evaluate(input=SOURCE)


def test_twelve_checks_fit_in_and_ten_voters_do_not(tmp_path):
    """256 KB of source code is the most that Langfuse takes."""
    export_evaluator(checks_model(tuple(LEXICAL)), tmp_path / "twelve.py")
    assert (tmp_path / "twelve.py").stat().st_size < 256_000
    with pytest.raises(InputError, match="`model` must be at most 256,000 bytes"):
        export_evaluator(checks_model(tuple(LEXICAL)[:10]), tmp_path / "ten.py")
    assert not (tmp_path / "ten.py").exists()


def test_the_command_writes_an_evaluator(tmp_path, capsys):
    """Code that starts without site packages and waits for no input."""
    checks_model().save(tmp_path / "model.json")
    out = tmp_path / "evaluator.py"
    assert export([str(tmp_path / "model.json"), "--to", "langfuse", "--out", str(out)]) == 0
    assert "or texts" in capsys.readouterr().out
    words = [sys.executable, "-I", "-S", str(out)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True, env=os.environ)
    assert (done.stdout, done.stderr) == (b"", b"")
