"""`deep ask --batch-out` and `--batch-in`: requests and results as files, in whatever state they come back."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from deep._util import entry_points
from tests.asking.toy_judge import with_toy
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer, honest_reply
from tests.llm.calls import outcomes, rows, states
from tests.llm.crash import PROMPTS, write_examples

pytestmark = pytest.mark.usefixtures("own_key")

URL = "http://127.0.0.1:9/v1"
"""Where nobody listens: files need no endpoint."""


@pytest.fixture
def examples(tmp_path):
    """Return a file of 30 examples."""
    return write_examples(tmp_path / "news.csv", 30)


def words_of(examples, *more, url=URL, llms=("tiny",)):
    """Return a command line."""
    out = examples.with_name("votes.parquet")
    common = ["--prompt", *PROMPTS[:2], "--llm", *llms, "--base-url", url, "--out", out, "--endpoint-name", "e"]
    return [str(examples), *map(str, [*common, *more])]


def ledger_of(examples):
    """Return the ledger."""
    return examples.with_name("votes.ledger.sqlite")


def said(capsys, *words):
    """Run a command that ends well, and return the JSON that it prints."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def requests_in(folder):
    """Return the requests in the shards of a folder, in their order."""
    return [json.loads(line) for path in sorted(Path(folder).glob("*.jsonl")) for line in path.read_text().splitlines()]


def completion(body, text=None, number=0):
    """Return a chat completion, as vLLM gives it."""
    message = {"role": "assistant", "content": honest_reply(body) if text is None else text}
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"id": f"chat-{number}", "model": body["model"], "choices": choices, "usage": usage}


def result(request, text=None, number=0):
    """Return the line of an answer."""
    body = completion(request["body"], text, number)
    line = {"id": f"line-{number}", "custom_id": request["custom_id"], "error": None}
    return {**line, "response": {"status_code": 200, "request_id": f"r{number}", "body": body}}


def failure(request, status=500, message="out of memory"):
    """Return the line of an error."""
    response = {"status_code": status, "body": {"error": {"message": message}}}
    return {"id": "line", "custom_id": request["custom_id"], "error": None, "response": response}


def write(folder, lines, name="out.jsonl"):
    """Write result lines to a file of a folder."""
    Path(folder).mkdir(exist_ok=True)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (Path(folder) / name).write_text(text)


def whole_run(tmp_path, n=30, **options):
    """Return the votes of a run that asks a server, on the same examples."""
    other = tmp_path / "whole"
    other.mkdir()
    examples = write_examples(other / "news.csv", n)
    with FaultServer() as server:
        assert main(words_of(examples, url=server.url, **options)) == 0
    return pd.read_parquet(other / "votes.parquet")


def test_out_and_in_give_the_votes_of_a_run_that_asks(examples, tmp_path, capsys):
    """Shards of one LLM each and of limited length, in the order of documents; results shuffled and all at once."""
    out, back = tmp_path / "out", tmp_path / "back"
    words = words_of(examples, llms=("tiny", "org/other"))
    outcome = said(capsys, *words, "--batch-out", out, "--shard-requests", 25)
    assert (outcome["requests"], len(outcome["shards"])) == (120, 6)
    assert states(ledger_of(examples)) == {"sent": 120}
    assert sorted(path.name for path in out.iterdir()) == sorted(Path(path).name for path in outcome["shards"])
    for path in out.iterdir():
        asked = list(map(json.loads, path.read_text().splitlines()))
        assert len({request["body"]["model"] for request in asked}) == 1
        assert len(asked) <= 25
        assert {(r["method"], r["url"]) for r in asked} == {("POST", "/v1/chat/completions")}
    lines = [result(request, number=i) for i, request in enumerate(requests_in(out))]
    random.Random(0).shuffle(lines)
    write(back, lines)
    entered = said(capsys, *words, "--batch-in", back)
    assert (entered["entered"], entered["complete"], entered["waiting"], entered["open"]) == (120, True, 0, 0)
    votes = pd.read_parquet(examples.with_name("votes.parquet"))
    pd.testing.assert_frame_equal(votes, whole_run(tmp_path, llms=("tiny", "org/other")))
    again = said(capsys, *words, "--batch-in", back)
    assert (again["entered"], again["before"], again["complete"]) == (0, 120, True)
    assert outcomes(ledger_of(examples)) == {"answered": 120}


def test_what_was_cut_off_is_exported_again_with_four_times_the_limit(examples, tmp_path, capsys):
    """Once; where the longer limit is refused, nothing is learned of the model, and the first reply stands."""
    words = words_of(examples)
    said(capsys, *words, "--batch-out", tmp_path / "a")
    cut = [result(request, text="First, the source says") for request in requests_in(tmp_path / "a")]
    for line in cut:
        line["response"]["body"]["choices"][0]["finish_reason"] = "length"
        line["response"]["body"]["usage"] |= {"completion_tokens": 10**5}
    write(tmp_path / "back", cut)
    assert said(capsys, *words, "--batch-in", tmp_path / "back")["open"] == 60
    assert said(capsys, *words, "--batch-out", tmp_path / "b")["requests"] == 60
    before, after = (
        {r["custom_id"][:64]: r["body"]["max_tokens"] for r in requests_in(tmp_path / name)} for name in "ab"
    )
    assert after == {key: 4 * limit for key, limit in before.items()}
    refused = {"message": "max_tokens is too large", "param": "max_tokens", "code": "invalid_value"}
    lines = [failure(request, 400) for request in requests_in(tmp_path / "b")]
    for line in lines:
        line["response"]["body"]["error"] = refused
    write(tmp_path / "back", [*cut, *lines])
    entered = said(capsys, *words, "--max-failure-rate", 1, "--batch-in", tmp_path / "back")
    assert (entered["open"], entered["waiting"], entered["complete"]) == (0, 0, True)
    assert rows(ledger_of(examples), "SELECT * FROM quirks") == []
    assert rows(ledger_of(examples), "SELECT DISTINCT state, reason FROM requests") == [("done", "truncated")]


def test_exporting_twice_says_so_and_a_run_does_not_ask(examples, tmp_path, capsys):
    """The ledger holds them as sent; only by name are they given up on, and late answers are entered then too."""
    words = words_of(examples)
    said(capsys, *words, "--batch-out", tmp_path / "a")
    twice = said(capsys, *words, "--batch-out", tmp_path / "b")
    assert (twice["requests"], twice["exported_before"], twice["shards"]) == (0, 60, [])
    assert main([*words, "--batch-out", str(tmp_path / "b")]) == 0
    assert "60 requests are in earlier exports" in capsys.readouterr().out
    for more in ([], ["--batch"]):
        assert main([*words, *more]) == 2
        assert "`batch_in` must be given: 60 requests are in exported files. Got a run" in capsys.readouterr().err
    given_up = said(capsys, *words, "--batch-out", tmp_path / "b", "--retry-failed", "exported")
    assert (given_up["requests"], given_up["released"], given_up["exported_before"]) == (60, 60, 0)
    assert {r["custom_id"][64:] for r in requests_in(tmp_path / "b")} == {".2"}
    late = [result(request) for request in requests_in(tmp_path / "a")]
    write(tmp_path / "back", [*late[:30], *(failure(request) for request in requests_in(tmp_path / "a")[30:])])
    entered = said(capsys, *words, "--batch-in", tmp_path / "back")
    assert (entered["entered"], entered["answered"], entered["failed"], entered["waiting"]) == (30, 30, 0, 30)
    with FaultServer() as server:
        assert main(words_of(examples, "--retry-failed", "exported", url=server.url)) == 0
        assert server.count == 30
    assert states(ledger_of(examples)) == {"done": 60}


def test_answers_that_nobody_exported_are_entered(examples, tmp_path, capsys):
    """A ledger that was lost is made again from the files, requests and all."""
    words = words_of(examples)
    said(capsys, *words, "--batch-out", tmp_path / "out")
    write(tmp_path / "out", [result(request) for request in requests_in(tmp_path / "out")], "results.jsonl")
    for path in examples.parent.glob("votes.ledger.sqlite*"):
        path.unlink()
    entered = said(capsys, *words, "--batch-in", tmp_path / "out")
    assert (entered["entered"], entered["complete"], entered["broken"], entered["files"]) == (60, True, 0, 1)
    assert states(ledger_of(examples)) == {"done": 60}


def test_partial_broken_repeated_and_strange_lines(examples, tmp_path, capsys):
    """Each is counted; what is good is entered, and nothing else becomes a vote."""
    words, back = words_of(examples), tmp_path / "back"
    said(capsys, *words, "--batch-out", tmp_path / "out")
    asked = requests_in(tmp_path / "out")
    good = [result(request, number=i) for i, request in enumerate(asked[:20])]
    broken = ["{", "[]", "null", '{"custom_id": 3}', '{"custom_id": "x", "response": []}', "\x00\xff"]
    broken += [json.dumps({"custom_id": asked[40]["custom_id"], "response": None, "error": None})]
    stranger = {**good[0], "custom_id": "nobody\x1b[31m"}
    write(back, [*good, *good[:5], *broken, stranger])
    (back / "deeper").mkdir()
    errors = [failure(asked[20]), failure(asked[21], 400, "no such field"), failure(asked[22], 429, "slow down")]
    no_completion = result(asked[23])
    no_completion["response"]["body"] = {"what": 1}
    write(back / "deeper", [*errors, no_completion])
    outcome = said(capsys, *words, "--batch-in", back)
    names = ("entered", "answered", "broken", "repeated", "strange", "files")
    assert [outcome[name] for name in names] == [24, 20, 7, 5, 1, 2]
    assert outcome["strange_ids"] == [ascii("nobody\x1b[31m")]
    assert (outcome["waiting"], outcome["open"], outcome["failed"], outcome["complete"]) == (36, 3, 1, False)
    assert not examples.with_name("votes.parquet").exists()
    assert states(ledger_of(examples)) == {"done": 20, "failed": 1, "queued": 3, "sent": 36}
    assert main([*words, "--batch-in", str(back)]) == 0
    text = capsys.readouterr().out
    assert "0 results entered of 30 in 2 files: 0 answers, 0 failures; 21 requests were entered before" in text
    assert "36 requests have no result yet" in text
    assert "3 requests can be asked now" in text
    assert "no votes were written yet" in text
    more = said(capsys, *words, "--batch-out", tmp_path / "more")
    assert (more["requests"], more["exported_before"], more["settled_before"]) == (3, 36, 21)
    assert [r["custom_id"][64:] for r in requests_in(tmp_path / "more")] == [".2"] * 3
    stale = said(capsys, *words, "--batch-in", back)  # the errors of the first attempt say nothing of the second
    assert (stale["entered"], stale["waiting"], stale["open"]) == (0, 39, 0)
    write(back, [result(request) for request in [*requests_in(tmp_path / "more"), *asked[24:]]], "rest.jsonl")
    assert said(capsys, *words, "--batch-in", back)["complete"]
    assert states(ledger_of(examples)) == {"done": 59, "failed": 1}


def test_contradictions_keep_every_answer_and_make_no_vote(examples, tmp_path, capsys):
    """Two in the files: neither; one against the ledger: the ledger's. All that was paid is in the ledger, once."""
    words, back = words_of(examples), tmp_path / "back"
    said(capsys, *words, "--batch-out", tmp_path / "out")
    asked = requests_in(tmp_path / "out")
    lines = [result(request) for request in asked]
    write(back, [*lines, result(asked[0], "something else", 7)])
    outcome = said(capsys, *words, "--batch-in", back)
    assert (outcome["contradictions"], outcome["complete"], outcome["failed"]) == (1, True, 1)
    assert states(ledger_of(examples)) == {"done": 59, "failed": 1}
    key = asked[0]["custom_id"]
    kept = "SELECT number FROM attempts WHERE outcome = 'answered' AND key = ? ORDER BY number"
    assert rows(ledger_of(examples), kept, key) == [(-2,), (-1,)]
    write(back, [result(asked[1], "another thing", 8)], "late.jsonl")
    votes = pd.read_parquet(examples.with_name("votes.parquet"))
    for contradictions in (1, 0):
        later = said(capsys, *words, "--batch-in", back)
        assert (later["contradictions"], later["entered"], later["complete"]) == (contradictions, 0, True)
    assert rows(ledger_of(examples), kept, asked[1]["custom_id"]) == [(-1,), (1,)]
    pd.testing.assert_frame_equal(pd.read_parquet(examples.with_name("votes.parquet")), votes)
    answer_beside_an_error = [failure(asked[2]), result(asked[2])]
    write(back, answer_beside_an_error, "errors.jsonl")
    assert said(capsys, *words, "--batch-in", back)["contradictions"] == 0


def test_a_shard_is_limited_in_bytes(examples, tmp_path, capsys):
    """A request that is larger has a file of its own."""
    result = said(capsys, *words_of(examples), "--batch-out", tmp_path / "out", "--shard-mb", 0.005)
    sizes = [Path(path).stat().st_size for path in result["shards"]]
    assert len(sizes) > 3
    assert max(sizes) <= 5243
    tiny = tmp_path / "tiny"
    again = said(capsys, *words_of(examples, "--retry-failed", "exported"), "--batch-out", tiny, "--shard-mb", 1e-6)
    assert (len(again["shards"]), again["requests"]) == (60, 60)


def test_the_budget_holds_for_files(examples, tmp_path, capsys):
    """Its room is for the worst case of all that is in them; what comes back makes room."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1000\noutput = 1000\n")
    words = [*words_of(examples), "--prices", str(prices), "--budget", "8"]
    assert main([*words, "--batch-out", str(tmp_path / "out")]) == 3
    assert "stopped: the budget does not cover" in capsys.readouterr().out
    first = len(requests_in(tmp_path / "out"))
    assert 0 < first < 60
    assert main([*words, "--batch-out", str(tmp_path / "more")]) == 3
    assert "0 requests in 0 files" in capsys.readouterr().out
    write(tmp_path / "back", [result(request) for request in requests_in(tmp_path / "out")])
    assert main([*words, "--batch-in", str(tmp_path / "back")]) == 0
    assert "cost of these answers: $" in capsys.readouterr().out
    assert main([*words, "--batch-out", str(tmp_path / "more")]) == 3
    assert len(requests_in(tmp_path / "more")) > 0


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (["--batch-out", "a", "--batch-in", "b"], "`batch_in` and `batch_out` must be given one at a time."),
        (["--batch-out", "a", "--batch"], "`batch` must not be given with batch files."),
        (["--batch-in", "a", "--dry-run"], "`dry_run` must not be given with batch files."),
        (["--batch-in", "a", "--shard-mb", "1"], "`shard_mb` must be given with `batch_out`."),
        (["--batch-out", "a", "--shard-requests", "0"], "`shard_requests` and `shard_mb` must be above 0."),
        (["--batch-in", "nowhere"], "`batch_in` must be a folder of results. Got 'nowhere', which is none."),
        (["--batch-out", "news.csv"], "`batch_out` must be a folder. Got the file 'news.csv'."),
        (["--batch-out", "a", "--repair"], "`repair` must not be given with `batch`."),
    ],
)
def test_refusals(examples, monkeypatch, capsys, more, text):
    """On one line each."""
    monkeypatch.chdir(examples.parent)
    assert main([*words_of(examples), *more]) == 2
    assert text in capsys.readouterr().err


def test_judges_without_an_llm_have_no_files(examples, capsys):
    """Nothing is asked."""
    assert (
        main([str(examples), "--lexical", "numbers", "--batch-out", "a", "--out", str(examples.with_name("v.parquet"))])
        == 2
    )
    assert "`batch_in` and `batch_out` must be given with judges that ask an LLM. Got none." in capsys.readouterr().err


def test_staged_judges_go_wave_by_wave(tmp_path, capsys, monkeypatch):
    """An export has what can be asked now; the answers lead to the next one, and in the end to votes."""
    monkeypatch.setattr(entry_points, "_installed_entries", with_toy)
    table = {
        "source": ["cats sat and dogs ran", "birds flew"],
        "claim": ["cats sat and dogs ran", "birds sat and flew"],
    }
    path = tmp_path / "claims.csv"
    pd.DataFrame(table | {"example_id": ["1", "2"]}).to_csv(path, index=False)
    words = [path, "--judge", "toy", "--llm", "tiny", "--base-url", URL, "--out", tmp_path / "votes.parquet"]
    first = said(capsys, *words, "--batch-out", tmp_path / "1")
    assert (first["requests"], first["stages_follow"]) == (2, True)
    second = said(capsys, *words, "--batch-out", tmp_path / "2")
    assert (second["requests"], second["exported_before"]) == (0, 2)

    def answered(folder):
        asked = requests_in(tmp_path / folder)
        texts = [request["body"]["messages"][0]["content"] for request in asked]
        write(
            tmp_path / "back",
            [result(*pair) for pair in zip(asked, map(toy_reply, texts), strict=True)],
            f"{folder}.jsonl",
        )
        return said(capsys, *words, "--batch-in", tmp_path / "back")

    outcome = answered("1")
    assert (outcome["entered"], outcome["open"], outcome["complete"]) == (2, 4, False)
    third = said(capsys, *words, "--batch-out", tmp_path / "3")
    assert third["requests"] == 4
    assert answered("3")["complete"]
    votes = pd.read_parquet(tmp_path / "votes.parquet")
    assert votes.iloc[:, -1].tolist() == [1, 0]
    whole = tmp_path / "again.parquet"  # all stages in one import, from a new ledger
    outcome = said(capsys, *words[:-1], whole, "--batch-in", tmp_path / "back")
    assert (outcome["entered"], outcome["complete"]) == (6, True)
    assert pd.read_parquet(whole).equals(votes)


def toy_reply(text):
    """Answer the toy judge truthfully."""
    word, _, rest = text.partition(" ")
    if word == "SPLIT":
        return " | ".join(rest.split(" and "))
    part, _, source = rest.partition(" IN ")
    return "yes" if part in source else "no"


SLOW_IMPORT = """
import sys, time
from deep.integrations.batch import _files as _batch_files
from tests.deep_commands import votes
carry_out = _batch_files.BatchImporter._carry_out
_batch_files.CHUNK = 5
async def slowly(self, changes, now):
    await carry_out(self, changes, now)
    print("entered", flush=True)
    time.sleep(0.2)
_batch_files.BatchImporter._carry_out = slowly
sys.exit(votes(sys.argv[1:]))
"""

SLOW_EXPORT = """
import sys, time
from deep.integrations.batch import _files as _batch_files
from tests.deep_commands import votes
_batch_files.CHUNK = 5
add = _batch_files.BatchExporter._add
async def slowly(self, job):
    print("exported", flush=True)
    time.sleep(0.02)
    return await add(self, job)
_batch_files.BatchExporter._add = slowly
sys.exit(votes(sys.argv[1:]))
"""


def killed(program, words, line, after):
    """Run a program until it has printed a line so many times, and kill it."""
    process = subprocess.Popen([sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True)
    with process.stdout as out:
        for _ in range(after):
            assert out.readline() == f"{line}\n"
        process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 4])
def test_a_kill_while_results_are_entered_loses_nothing(examples, tmp_path, capsys, after):
    """What was entered is there, and the same command enters the rest; no answer is there twice."""
    words = words_of(examples)
    said(capsys, *words, "--batch-out", tmp_path / "out")
    write(tmp_path / "back", [result(request) for request in requests_in(tmp_path / "out")])
    killed(SLOW_IMPORT, [*words, "--batch-in", str(tmp_path / "back")], "entered", after)
    done = states(ledger_of(examples))["done"]
    assert 5 * after <= done < 60
    outcome = said(capsys, *words, "--batch-in", tmp_path / "back")
    assert (outcome["entered"], outcome["before"], outcome["complete"]) == (60 - done, done, True)
    assert outcomes(ledger_of(examples)) == {"answered": 60}


@pytest.mark.slow
def test_a_kill_while_requests_are_exported_asks_none_twice(examples, tmp_path, capsys):
    """A shard without its name was run by nobody: its requests are exported anew; those with a name are not."""
    words, out = words_of(examples), tmp_path / "out"
    killed(SLOW_EXPORT, [*words, "--shard-requests", "20", "--batch-out", str(out)], "exported", 30)
    named = requests_in(out)
    assert len(named) == 20
    assert len(list(out.glob("*.part"))) == 1
    outcome = said(capsys, *words, "--batch-out", out)
    assert (outcome["requests"], outcome["exported_before"]) == (40, 20)
    assert list(out.glob("*.part")) == []
    asked = requests_in(out)
    assert len({request["custom_id"][:64] for request in asked}) == len(asked) == 60
    write(tmp_path / "back", [result(request) for request in asked])
    assert said(capsys, *words, "--batch-in", tmp_path / "back")["complete"]


def test_a_shard_that_the_ledger_knows_gets_its_name(examples, tmp_path, capsys):
    """The run died between the ledger and the name."""
    words, out = words_of(examples), tmp_path / "out"
    said(capsys, *words, "--batch-out", out)
    (shard,) = out.iterdir()
    shard.rename(shard.with_name(f"{shard.name}.part"))
    said(capsys, *words, "--batch-out", out)
    assert list(out.iterdir()) == [shard]
