"""Files and texts that others made, spoilt at random: read, or refused by one line; never a traceback.

`make fuzz` runs each test on thousands of cases (the Hypothesis profile ``fuzz``), `make test` on forty. Inputs that
once broke something stand in ``corpus/``, by what reads them, and are run first every time. A file ``*.patch`` there
is a change of a sound model file: dotted keys and the JSON values put in their place.
"""

import io
import json
import os
import resource
import tempfile
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep import Example
from deep._util.names import check_name, file_name
from deep.datasets import read_examples, read_scores, read_votes, simulate_votes
from deep.evaluate import labels_seen
from deep.exceptions import DeepError
from deep.integrations.batch import BatchRunner, FileResults
from deep.llm import CallError, Job, PriceBook, Redactor, Tally
from deep.model import checksum, fit, load
from deep.prompt_pool import load_pool, load_prompt
from tests.llm.calls import KEY, PRICES, question, read

CORPUS = Path(__file__).parent / "corpus"

TOKENS = [
    b"",
    b",",
    b"\n",
    b"\r",
    b'"',
    b"'",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"-1",
    b"2",
    b"1e999",
    b"NaN",
    b"inf",
    b"null",
    b"true",
]
TOKENS += [
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"=",
    b"=cmd|'/C calc'!A0",
    b"label",
    b"dataset",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xae",
    b"\x1b[31m",
]
TOKENS += [
    b"A" * 5000,
    b"9" * 400,
    b"SUPPORTED",
    b"NOT SUPPORTED",
    b"VERDICT:",
    b"</claim>",
    b"{{claim}}",
    b"<think>",
    b"```",
]

VOTES = b"dataset,item_id,label,document_id,v0,v1\na,1,1,x,1,0\na,2,0,x,0,0\nb,1,1,y,1,\nb,2,0,y,0,1\n"
SCORES = b"dataset,item_id,label,s0,s1\na,1,1,0.9,0.2\na,2,0,0.1,0.3\nb,1,1,0.7,\nb,2,0,1e-3,0.5\n"
EXAMPLES = b'source,claim,label\n"Rain, then sun.",It rained.,1\nSun.,It rained.,0\n'


@st.composite
def spoilt(draw, text):
    """Return bytes with a few places cut out, doubled or replaced."""
    made = bytes(text)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(made)))
        stop = min(len(made), start + draw(st.sampled_from([0, 0, 1, 2, 5, 40, 10_000])))
        piece = draw(st.sampled_from(TOKENS) | st.binary(max_size=6) | st.just(made[start:stop] * 2))
        made = made[:start] + piece + made[stop:]
    return made


def refused_or(work, raw, suffix):
    """Run `work` on a file of these bytes; None where it was refused, in one printable line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"file{suffix}"
        path.write_bytes(raw)
        try:
            return work(path)
        except DeepError as error:
            assert_one_line(error)
            return None


def assert_one_line(error):
    """Raise unless an error is one line without control characters."""
    assert str(error)
    assert str(error).isprintable(), repr(str(error))


def check_votes(path):
    """Only 1, 0 and -1 come out, whatever went in."""
    votes = read_votes([str(path)])
    assert np.isin(votes.votes, (1, 0, -1)).all()
    assert np.isin(votes.labels, (1, 0, -1)).all()
    for name in (*votes.voter_names, *votes.dataset_names):
        assert check_name(name, "name") == name


def check_scores(path):
    """Scores are finite or missing."""
    assert not np.isinf(read_scores([str(path)]).scores).any()


def check_examples(path):
    """Every example has a source, a claim, and a label of 1, 0 or none."""
    for example in read_examples(str(path)):
        assert isinstance(example, Example)


def check_model(path):
    """Assert that a model which is believed gives no probability of 0 or 1, and tells what it has learned from."""
    model = load(path)
    labels_seen(model)
    votes = simulate_votes(0)
    p = model.score(votes.rows(np.arange(200)), allow_mismatch=True, allow_missing=True)
    assert ((p > 0) & (p < 1)).all()


def check_prompt(path):
    """Assert that a prompt which is taken renders, and reads a reply as a vote or a reason."""
    prompt = load_prompt(str(path))
    prompt.render("The rain fell.", "It rained.")
    assert prompt.parse("VERDICT: SUPPORTED", finish_reason="stop").vote in (1, 0, -1)


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory):
    """Return a sound model file."""
    path = tmp_path_factory.mktemp("model") / "model.json"
    fit(simulate_votes(0), sizes=[3], ensembler="BernoulliNB", calibrator="platt").save(path)
    return path.read_bytes()


@given(spoilt(VOTES))
def test_tables_of_votes(raw):
    """CSV."""
    refused_or(check_votes, raw, ".csv")


@given(spoilt(SCORES))
def test_tables_of_scores(raw):
    """CSV."""
    refused_or(check_scores, raw, ".csv")


@given(spoilt(EXAMPLES), st.sampled_from([".csv", ".jsonl"]))
def test_files_of_examples(raw, suffix):
    """CSV and JSON lines."""
    refused_or(check_examples, raw, suffix)


@pytest.fixture(scope="session")
def stack_bytes(tmp_path_factory):
    """Return the file of a stack, whose forest has few trees enough to be read often."""
    path = tmp_path_factory.mktemp("stack") / "model.json"
    votes = simulate_votes(0)
    fit(votes.rows(np.arange(len(votes.labels)) % 9 == 0), ensembler="Stack").save(path)
    return path.read_bytes()


@given(data=st.data())
def test_model_files(data, model_bytes, stack_bytes):
    """Spoilt anywhere; the checksum is made right again in half of the cases."""
    raw = data.draw(spoilt(data.draw(st.sampled_from([model_bytes, stack_bytes]))))
    if data.draw(st.booleans()):
        raw = with_right_checksum(raw)
    refused_or(check_model, raw, ".json")


def with_right_checksum(raw):
    """Return a model file whose checksum fits what it holds, as an attacker would."""
    try:
        document = json.loads(raw)
        document["checksum"] = checksum(document)
        return json.dumps(document).encode()
    except (AttributeError, RecursionError, TypeError, ValueError):
        return raw


@given(data=st.data())
def test_prompts(data):
    """TOML."""
    name = data.draw(st.sampled_from(sorted(PROMPTS)))
    refused_or(check_prompt, data.draw(spoilt(PROMPTS[name])), ".toml")


PROMPTS = {
    path.name: path.read_bytes()
    for path in (Path(__file__).parents[2] / "deep" / "prompt_pool" / "prompts").glob("*.toml")
}


def check_reply(text, prompt, finish_reason="stop"):
    """Any text is read as a vote or as a reason for none."""
    judgment = prompt.parse(text, finish_reason=finish_reason)
    assert judgment.vote in (1, 0, -1)
    assert (judgment.vote == -1) == (judgment.reason is not None)


@given(data=st.data())
def test_replies(data):
    """By every prompt of the pool."""
    reply = b"I looked at the document.\nVERDICT: NOT SUPPORTED\n"
    text = data.draw(spoilt(reply) | spoilt(b'{"verdict": "SUPPORTED", "score": 4}')).decode("utf-8", "replace")
    reasons = st.sampled_from(["stop", "length", "content_filter", None])
    check_reply(text, data.draw(st.sampled_from(POOL)), data.draw(reasons))


POOL = list(load_pool("deep-9"))

LINE = {
    "id": "r1",
    "custom_id": "k1",
    "response": {
        "status_code": 200,
        "body": {
            "model": "tiny",
            "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "VERDICT: SUPPORTED"}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 5},
        },
    },
    "error": None,
}
FAILED = {"custom_id": "k2", "response": {"status_code": 429, "body": {"error": {"message": "slow"}}}, "error": None}
BATCH = f"{json.dumps(LINE)}\n{json.dumps(FAILED)}\n".encode()


def check_batch(path):
    """Each request has a judgment or an error of its own, whatever stands in the other lines."""
    runner = SimpleNamespace(
        terms=SimpleNamespace(prices=PriceBook("http://127.0.0.1:1/v1", PRICES)),
        read=lambda request, reply: (read(request, reply), None),
        ledger=SimpleNamespace(answer=lambda job, reply, judgment, message, quirks, again: judgment),
        tally=Tally(),
        gate=SimpleNamespace(take=lambda endpoint, body: []),
        _settle=lambda job, cost: None,
        body_of=lambda request: {},
        ignored=lambda request, body, reply: [],
        is_cut=lambda job, judgment, reply: BatchRunner.is_cut(runner, job, judgment, reply),
        count_answer=lambda job, *counted, again: BatchRunner.count_answer(runner, job, *counted, again=again),
        enter_answer=lambda job, *found, again: BatchRunner.enter_answer(runner, job, *found, again=again),
    )
    with FileResults([io.BytesIO(path.read_bytes())], Redactor(KEY)) as lines:
        for key, last in product({"k1", "k2"} | lines.keys(), (False, True)):
            try:
                job = Job(question(0), key, "", 1)
                assert BatchRunner._answer(runner, job, lines.get(key), last=last).vote in (1, 0, -1)
            except CallError as error:
                assert_one_line(error)


@given(spoilt(BATCH))
def test_batch_files(raw):
    """Files of results that an endpoint has made."""
    refused_or(check_batch, raw, ".jsonl")


def take_name(name):
    """Refused in one line, or taken; any name makes the name of a file."""
    try:
        check_name(name, "voter")
    except DeepError as error:
        assert_one_line(error)
    assert file_name(name).isascii()


@given(st.text(max_size=60))
def test_names(name):
    """Of voters, datasets, tables and prompts."""
    take_name(name)


def patched(raw, changes):
    """Return a model file with other values at some dotted keys, and the checksum that fits."""
    document = json.loads(raw)
    for key, value in changes.items():
        *path, last = key.split(".")
        place = document
        for name in path:
            place = place[int(name) if isinstance(place, list) else name]
        place[last] = value
    return with_right_checksum(json.dumps(document).encode())


CHECKS = {"batches": check_batch, "examples": check_examples, "prompts": check_prompt, "scores": check_scores}
CHECKS |= {"models": check_model, "votes": check_votes}


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_broke(path, model_bytes):
    """Each input of the corpus."""
    raw, reader = path.read_bytes(), path.parent.name
    if reader == "names":
        return take_name(raw.decode("utf-8", "surrogatepass"))
    if reader == "replies":
        return [check_reply(raw.decode("utf-8", "surrogatepass"), prompt) for prompt in POOL] and None
    if path.suffix == ".patch":
        assert refused_or(check_model, patched(model_bytes, json.loads(raw)), ".json") is None
        return None
    return refused_or(CHECKS[reader], raw, path.suffix)


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE") != "fuzz", reason="other tests need memory too; make fuzz")
def test_memory_stayed_small():
    """All cases together never took a gigabyte."""
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000
