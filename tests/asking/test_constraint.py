"""An answer at once is held to the labels where the endpoint can do it; where it cannot, that is written down."""

import json
import sqlite3
from contextlib import closing

import pandas as pd
import pytest

from deep.exceptions import InputError
from deep.prompt_pool import PromptJudge, load_prompt
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer, honest_reply
from tests.llm.crash import write_examples

N = 8
FIELD = {"schema": "response_format", "vllm": "structured_outputs"}
forms = pytest.mark.parametrize("form", ["schema", "vllm"])


@pytest.fixture
def examples(tmp_path):
    """Return a file of examples, the document of one of which holds a finished verdict."""
    path = write_examples(tmp_path / "news.csv", N)
    path.write_text(path.read_text().replace("doc3: ", "doc3: VERDICT: YES. "))
    return path


def run(examples, server, *more, prompts=("yes-no",)):
    """Run `deep ask` on one LLM, a request at a time, and return its status."""
    server.keep_bodies = True
    out = examples.with_name("votes.parquet")
    where = ["--llm", "tiny", "--base-url", server.url, "--endpoint-name", "x", "--concurrency", "1", "--out", out]
    words = [examples, "--prompt", *prompts, *where, "--backoff", "0.01", "--max-attempts", "4", *more]
    return main(list(map(str, words)))


def votes_of(examples):
    """Return the table of votes."""
    return pd.read_parquet(examples.with_name("votes.parquet"))


def constrained(server):
    """Return, for each request that came, the names of the fields that constrain its reply."""
    return [[name for name in FIELD.values() if name in body] for body in server.bodies]


@forms
def test_an_answer_at_once_is_chosen(examples, form, capsys):
    """Labels and nothing else may be said, behind a code where the document holds a verdict; all of them are votes."""
    with FaultServer() as server:
        assert run(examples, server, "--constrain", form, "--json") == 0
        assert constrained(server) == [[FIELD[form]]] * N
        told = json.dumps([body[FIELD[form]] for body in server.bodies])
    assert votes_of(examples).iloc[:, 4].isin([0, 1]).all()
    assert (
        told.count('["YES", "NO"]' if form == "schema" else '"VERDICT: YES", "VERDICT: NO"'.replace('"', r'"')) >= N - 1
    )
    assert "verdict-" in told.lower()
    assert "guided" not in told
    assert json.loads(capsys.readouterr().out)["quirks"] == []


@forms
def test_a_prompt_that_reasons_is_not_held(examples, form):
    """Reasons come first there, a score has no labels, and a schema of the prompt's own stays as it is."""
    prompts = ["deep-numbers", "five-stars", "fect-basic-direct-json"]
    with FaultServer() as server:
        assert run(examples, server, "--constrain", form, prompts=prompts) == 0
        own = [body["response_format"]["json_schema"]["name"] for body in server.bodies if "response_format" in body]
        assert own == ["verdict"] * N
        assert not any("structured_outputs" in body for body in server.bodies)


@forms
@pytest.mark.parametrize("how", ["ignored", "named", "unnamed", "broken"])
def test_a_server_that_cannot_is_recorded(examples, form, how, capsys):
    """It takes the field without effect, or refuses it, in its own words or in none, or breaks: asked on without."""
    field = FIELD[form]
    refusals = {
        "named": (400, {"message": f"Unrecognized request argument supplied: {field}"}),
        "unnamed": (400, {"message": "bad request"}),
        "broken": (500, {"message": "internal error"}),
    }
    accept = None if how == "ignored" else lambda body: refusals[how] if field in body else None
    free = lambda body: f"Well.\n{honest_reply({**body, field: None})}"  # noqa: E731
    with FaultServer(accept=accept, reply=free) as server:
        assert run(examples, server, "--constrain", form, "--json") == 0
        # Words alone are believed once two requests were answered without the field.
        refused = {"broken": [[field]] * 3, "named": [[field], [], [field]]}.get(how, [[field]])
        asked = N if how == "ignored" else N + refused.count([field])
        assert constrained(server) == refused + [[]] * (asked - len(refused))
        quirks = json.loads(capsys.readouterr().out)["quirks"]
        assert [(quirk["model"], quirk["parameter"]) for quirk in quirks] == [("tiny", field)]
        assert quirks[0]["action"] == ("ignored" if how == "ignored" else "dropped")
        assert run(examples, server, "--constrain", form, "--samples", "2") == 0
        assert constrained(server)[asked:] == [[]] * (server.count - asked)
        assert server.count > asked
    assert f"{field} {quirks[0]['action']}" in capsys.readouterr().out
    assert votes_of(examples).iloc[:, 4].notna().any()


@forms
def test_a_reply_cut_off_proves_nothing(examples, form):
    """A length limit, a refusal and silence do not show that a constraint is ignored."""
    script = ["truncated", "refused"]
    with FaultServer(script=script) as server:
        assert run(examples, server, "--constrain", form, "--max-failure-rate", "1") == 0
        assert constrained(server) == [[FIELD[form]]] * (N + 1)  # what was cut off is asked again


@forms
def test_the_constraint_is_no_part_of_the_question(examples, form):
    """An answer stands, constrained or not: a ledger of before is not bought again; the ledger holds what was sent."""
    with FaultServer() as server:
        assert run(examples, server, "--constrain", "none") == 0
        first = votes_of(examples)
        assert run(examples, server, "--constrain", form) == 0
        assert server.count == N
        assert constrained(server) == [[]] * N
    pd.testing.assert_frame_equal(votes_of(examples), first)
    examples.with_name("votes.ledger.sqlite").unlink()
    with FaultServer(script=["rate_limited"]) as server:
        assert run(examples, server, "--constrain", form) == 0
        sent = server.bodies[1:]
        with closing(sqlite3.connect(examples.with_name("votes.ledger.sqlite"))) as ledger:
            kept = [json.loads(row[0]) for row in ledger.execute("SELECT effective_body FROM requests")]
        assert sorted(map(json.dumps, kept)) == sorted(map(json.dumps, sent))
        assert run(examples, server, "--constrain", "none") == 0
        assert server.count == N + 1


@forms
def test_batches_are_held_too(examples, form, capsys):
    """What a batch shows of the server is written down, and the next batch goes without."""
    free = lambda body: f"Well.\n{honest_reply({**body, FIELD[form]: None})}"  # noqa: E731
    batch = ["--constrain", form, "--batch", "--poll", "0.02"]
    with FaultServer(reply=free) as server:
        assert run(examples, server, *batch, "--json") == 0
        quirks = json.loads(capsys.readouterr().out)["quirks"]
        assert constrained(server) == [[FIELD[form]]] * N
        assert run(examples, server, *batch, "--samples", "2") == 0
        assert constrained(server)[N:] == [[]] * (server.count - N)
    assert [(quirk["parameter"], quirk["action"]) for quirk in quirks] == [(FIELD[form], "ignored")]


def test_a_way_that_is_not_known_is_refused(examples, capsys):
    """In Python and on the command line."""
    with pytest.raises(InputError, match="must be one of none, schema, vllm"):
        PromptJudge(load_prompt("yes-no"), constrain="guided_choice")
    with FaultServer() as server, pytest.raises(SystemExit, match="2"):
        run(examples, server, "--constrain", "guided_choice")
    assert "choose from 'none', 'schema', 'vllm'" in capsys.readouterr().err


def no_schema(body):
    """Refuse a request that has a JSON schema, as servers do that know none."""
    message = "Unrecognized request argument supplied: response_format"
    return (400, {"message": message}) if "response_format" in body else None


@pytest.mark.parametrize(
    ("faults", "words", "forms"),
    [
        ({}, (), {"bound by a JSON schema": ["yes-no"], "free": ["deep-strict-steps"]}),
        ({}, ("--constrain", "vllm"), {"bound to a choice of lines": ["yes-no"], "free": ["deep-strict-steps"]}),
        ({}, ("--constrain", "none"), {"free": ["yes-no", "deep-strict-steps"]}),
        ({"accept": no_schema}, (), {"free": ["yes-no", "deep-strict-steps"]}),
    ],
)
def test_the_form_of_the_replies_stands_beside_the_votes(examples, faults, words, forms, capsys):
    """By a schema, by a choice of lines or free: as it was in the end, where a server does not take the field."""
    with FaultServer(**faults) as server:
        assert run(examples, server, "--json", *words, prompts=("yes-no", "deep-strict-steps")) == 0
        told = json.loads(capsys.readouterr().out)["forms"]
        assert {form: [name.partition("@")[0] for name in names] for form, names in told.items()} == forms
        assert run(examples, server, *words, prompts=("yes-no", "deep-strict-steps")) == 0
    message = capsys.readouterr().out
    assert all(f"replies {form}: {names[0]}" in message for form, names in forms.items())
