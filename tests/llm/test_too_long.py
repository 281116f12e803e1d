"""Texts that are too long for a server, in the words of each: a matter of those items alone."""

import json

import pytest

from deep.llm import CallError
from deep.llm._client import reply_error
from deep.llm._errors import says_too_long
from deep.llm._messages import received_reply
from deep.llm._spending import may_end_later
from tests.attack.odd_replies import completion, http
from tests.fault_server import FaultServer
from tests.llm.calls import outcomes, question, rows, run

CONTEXT = 2048
"""Tokens of the server, about four characters each."""

LLAMA_CPP = {
    "error": {
        "code": 400,
        "type": "exceed_context_size_error",
        "message": "request (25001 tokens) exceeds the available context size (2048 tokens), try increasing it",
    }
}
OLLAMA = {"error": {"message": "the input length exceeds the context length", "type": "invalid_request_error"}}
VLLM = {
    "object": "error",
    "message": "The decoder prompt (length 25001) is longer than the maximum model length of 2048.",
    "type": "BadRequestError",
    "code": 400,
}
LM_STUDIO = {"error": "Cannot truncate prompt with n_keep (25001) >= n_ctx (2048)"}
TGI = {
    "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 25001 `inputs` tokens",
    "error_type": "validation",
}
SERVERS = {
    "llama.cpp": ("400 Bad Request", LLAMA_CPP),
    "llama.cpp in mid-reply": (
        "500 Internal Server Error",
        {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}},
    ),
    "Ollama": ("400 Bad Request", OLLAMA),
    "vLLM": ("400 Bad Request", VLLM),
    "LM Studio": ("400 Bad Request", LM_STUDIO),
    "LM Studio with status 200": ("200 OK", {"error": "Context size has been exceeded."}),
    "TGI": ("422 Unprocessable Entity", TGI),
}
UNKNOWN = {"error": {"message": "More tokens than this server can hold: invalid response_format or prompt."}}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "v", "schema": {"properties": {"v": {"enum": ["NO", "YES"]}}}}}


def refusing(status, error):
    """Return what a server says that has room for few tokens."""
    return lambda body: [http(error, status=status)] if len(json.dumps(body)) > 4 * CONTEXT else None


def asked(*long):
    """Return questions of which some are long, all with a schema."""
    for i in range(6):
        text = f"<source>{'It rained. ' * (2000 if i in long else 1)}</source><claim>{i}</claim> NO or YES"
        yield question(i, messages=[{"role": "user", "content": text}], response_format=SCHEMA)


@pytest.mark.parametrize("name", SERVERS)
def test_rows_that_are_too_long_are_told_so_and_the_others_have_their_votes(name, tmp_path):
    """Though they come first. The schema stays, nothing is learned of the server, and none is asked again."""
    with FaultServer(raw=refusing(*SERVERS[name])) as server:
        server.keep_bodies = True
        ran = run(server.url, tmp_path / "l", lambda: asked(0, 1, 2, 3), parse=by_json)
        assert server.count == 6
        assert all("response_format" in body for body in server.bodies)
    failures = rows(tmp_path / "l", "SELECT DISTINCT state, failure FROM requests WHERE failure IS NOT NULL")
    assert failures == [("failed", "too_long")]
    assert (ran.tally.too_long, ran.tally.by_voter["p@0a/tiny"]["votes"]) == (4, 2)
    assert rows(tmp_path / "l", "SELECT * FROM quirks") == []


def by_json(_, reply):
    """Read a reply that keeps to the schema."""
    from deep.records import Judgment

    return Judgment(int(json.loads(reply.text)["v"] == "YES"))


def test_first_rows_refused_in_other_words_decide_neither_of_a_field_nor_of_all(tmp_path):
    """A field that the words name is sent again: the request without it was refused with the same words."""
    with FaultServer(raw=refusing("400 Bad Request", UNKNOWN)) as server:
        server.keep_bodies = True
        ran = run(server.url, tmp_path / "l", lambda: asked(0, 1, 2, 3), parse=by_json)
        short = [body for body in server.bodies if len(str(body)) < CONTEXT]
        assert [*map(len, (short, [body for body in short if "response_format" in body]))] == [2, 2]
    assert (ran.tally.failed, ran.tally.by_voter["p@0a/tiny"]["votes"]) == (4, 2)
    assert rows(tmp_path / "l", "SELECT * FROM quirks") == []
    assert set(outcomes(tmp_path / "l")) == {"answered", "rejected"}


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "max_tokens is too large: 5000. This model supports at most 4096 completion tokens"),
        (422, "temperature: Input should be less than or equal to 2"),
        (408, "the request took too long"),
        (503, "queue too long: try again"),
        (500, "internal error in `The context length of a prompt`"),
    ],
)
def test_other_complaints_of_size_are_none_of_the_text(status, message):
    """Of a setting, a wait, or words that the server quotes from the request."""
    quoted = json.dumps({"model": "tiny", "messages": [{"content": "The context length of a prompt is long."}]})
    assert reply_error(status, json.dumps({"error": message}), request=quoted).kind != "too_long"


def test_an_error_beside_an_answer_is_no_refusal():
    """Such a reply can be read in two ways, and is asked for again."""
    with pytest.raises(CallError, match="broken"):
        received_reply(json.dumps(completion(error={"message": "Context size has been exceeded."})))


@pytest.mark.parametrize(
    ("text", "temperature", "n_output", "again"),
    [
        ("First, the source says that", 0, 50, True),
        ("First, the source says that", 0, 31, False),
        ("The claim is not in the source. " * 6 + "The cl", 0, 50, False),
        ("The claim is not in the source. " * 6 + "The cl", 1.0, 50, True),
        ("\n" * 80, 0, 50, False),
        ("No. No. No.", 0, 50, True),
    ],
)
def test_a_reply_is_asked_again_with_more_where_more_may_help(tmp_path, text, temperature, n_output, again):
    """Not where the context cut it off, below the limit of 50; nor a loop that has no end at temperature 0."""
    usage = {"prompt_tokens": 10, "completion_tokens": n_output, "total_tokens": 10 + n_output}

    def raw(body):
        return [http(completion(text, "length", usage=usage))] if body["max_tokens"] == 50 else None

    with FaultServer(raw=raw) as server:
        ran = run(server.url, tmp_path / "l", lambda: [question(1, temperature=temperature)])
        assert server.count == 1 + again
    assert ran.tally.longer == again
    assert ran.tally.full == (n_output < 50)
    assert ran.tally.by_voter["p@0a/tiny"]["truncated"] == 1 - again


def test_without_a_count_of_tokens_a_cut_reply_is_asked_again():
    """Nothing shows then that its limit was not reached."""
    reply = received_reply(json.dumps(completion("First", "length", usage=None)))
    assert may_end_later({"max_tokens": 50}, reply)
    assert says_too_long("too many tokens")
