"""`deep ask` from its command line: the files it writes, what it refuses, and what it survives."""

import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter

import pandas as pd
import pyarrow.parquet as pq
import pytest

from deep.asking import AskProgress, live_text
from deep.console import live_progress
from deep.datasets import read_reasons, read_votes, worst_failures
from deep.llm import Tally
from deep.records import Judgment
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer
from tests.llm.calls import KEY, rows
from tests.llm.crash import PROMPTS, kill_and_resume, write_examples

pytestmark = pytest.mark.usefixtures("own_key")

LONG = bool(os.environ.get("DEEP_LONG"))
"""Set DEEP_LONG=1 for the runs at full size."""

TRANSPORT = {"rate_limited": 0.1, "server_error": 0.05, "hang": 0.01, "dropped": 0.02, "broken_json": 0.03}


@pytest.fixture
def examples(tmp_path):
    """Return a file of 30 examples."""
    return write_examples(tmp_path / "news.csv", 30)


def arguments(examples, url, *more, prompts=PROMPTS[:2]):
    """Return a command line that is quick about its retries."""
    out = examples.with_name("votes.parquet")
    common = ["--prompt", *prompts, "--llm", "tiny", "--base-url", url, "--out", str(out)]
    return [str(examples), *common, "--backoff", "0.02", "--timeout", "5", *map(str, more)]


def outputs(examples):
    """Return votes and reasons as frames."""
    out = examples.with_name("votes.parquet")
    return pd.read_parquet(out), pd.read_parquet(out.with_name("votes.reasons.parquet"))


def test_the_votes_are_a_wide_table(examples, capsys):
    """One row an example in its order, one column a voter, int8 with nulls, and metadata on how it came to be."""
    with FaultServer() as server:
        assert main(arguments(examples, server.url)) == 0
    votes, reasons = outputs(examples)
    assert list(votes.columns[:4]) == ["dataset", "item_id", "label", "document_id"]
    assert votes["item_id"].tolist() == [f"e{i}" for i in range(30)]
    assert [name.split("@")[0] for name in votes.columns[4:]] == PROMPTS[:2]
    assert all(name.endswith("/tiny") and len(name.split("@")[1].split("/")[0]) == 8 for name in votes.columns[4:])
    assert set(votes.iloc[:, 4].unique()) == {0, 1}
    assert reasons.empty
    schema = pq.read_schema(examples.with_name("votes.parquet"))
    assert str(schema.field(4).type) == "int8"
    metadata = json.loads(schema.metadata[b"deep"])
    assert (metadata["base_url"], metadata["samples"]) == (server.url, 1)
    assert metadata["voters"][votes.columns[4]]["parameters"]["temperature"] == 0.0
    assert not examples.with_name("votes.soft.parquet").exists()
    assert "30 votes" in capsys.readouterr().out


def test_faults_change_nothing(tmp_path):
    """With every transport fault there is a vote or a reason everywhere, as without; no request goes uncounted."""
    n = 2000 if LONG else 100
    workers = "64" if LONG else "32"
    calm = write_examples(tmp_path / "news.csv", n)
    (tmp_path / "storm").mkdir()
    storm = write_examples(tmp_path / "storm" / "news.csv", n)
    always = {"no_verdict": 0.02, "truncated": 0.06, "refused": 0.01}
    options = ["--concurrency", workers, "--max-failure-rate", "0.2", "--endpoint-name", "here"]
    options += ["--constrain", "none"]  # a constraint is dropped when the first reply ignores it, in either order
    with FaultServer(faults={**TRANSPORT, **always}) as server:
        assert main(arguments(storm, server.url, *options, "--timeout", "1.5", prompts=PROMPTS)) == 0
        ledger = tmp_path / "storm" / "votes.ledger.sqlite"
        attempts, late = rows(ledger, "SELECT count(*), sum(outcome IN ('timeout', 'unreachable')) FROM attempts")[0]
        hung = sum(fault == "hang" for *_, fault in server.log)
        assert 0 <= attempts - server.count <= late - hung  # equal, but for what a busy server had no time to read
        assert server.count > 1.15 * 5 * n
        sys.stderr.write(f"{server.count} requests for {5 * n} answers: {Counter(f for *_, f in server.log)}\n")
    with FaultServer(faults=always) as server:
        assert main(arguments(calm, server.url, *options, prompts=PROMPTS)) == 0
        repairs = sum(rows(ledger, "SELECT count(*) FROM items WHERE voter LIKE '%#repair'")[0])
        bought = rows(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'answered'")[0][0]
        assert server.count == bought > 5 * n + repairs  # what was cut off is asked again
    for ours, theirs in zip(outputs(storm), outputs(calm), strict=True):
        pd.testing.assert_frame_equal(ours, theirs)
    votes, reasons = outputs(storm)
    assert votes.iloc[:, 4:].isna().sum().sum() == len(reasons)
    assert set(reasons["reason"]) == {"truncated", "refused"}
    assert repairs > 0
    assert rows(ledger, "SELECT count(*) FROM requests WHERE state != 'done'") == [(0,)]


def test_the_same_command_again_costs_nothing(examples, capsys):
    """Resuming is the default, and gives the same file, but for the id of its run."""
    with FaultServer() as server:
        main(arguments(examples, server.url))
        first = pq.read_table(examples.with_name("votes.parquet"))
        capsys.readouterr()
        main(arguments(examples, server.url, "--json"))
        assert server.count == 60
    summary = json.loads(capsys.readouterr().out)
    assert (summary["found"], summary["attempts"], summary["stopped"]) == (60, 0, None)
    again = pq.read_table(examples.with_name("votes.parquet"))
    assert again.equals(first)
    told, before = (json.loads(table.schema.metadata[b"deep"]) for table in (again, first))
    assert told | {"run": ""} == before | {"run": ""}


def test_another_port_buys_nothing_under_the_same_name(examples):
    """`--endpoint-name` keeps the answers when the address changes; without it the address is the name."""
    with FaultServer() as first:
        main(arguments(examples, first.url, "--endpoint-name", "mine"))
    with FaultServer() as second:
        main(arguments(examples, second.url, "--endpoint-name", "mine"))
        assert second.count == 0
        main(arguments(examples, second.url))
        assert second.count == 60


def test_a_dry_run_sends_nothing(examples, capsys, tmp_path):
    """Calls, tokens and cost are told before anything is sent; an unknown price is unknown."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 2.0\n")
    with FaultServer() as server:
        assert main(arguments(examples, "https://gateway.example/v1", "--dry-run")) == 0
        assert "60 calls" in (message := capsys.readouterr().out)
        assert "\ncost: unknown\n" in message
        assert main(arguments(examples, server.url, "--dry-run")) == 0
        assert "\ncost: about $0.00, at most $0.00\n" in capsys.readouterr().out
        assert not examples.with_name("votes.ledger.sqlite").exists()
        assert server.count == 0
        main(arguments(examples, server.url, "--prices", prices))
        capsys.readouterr()
        main(arguments(examples, server.url, "--prices", prices, "--dry-run", "--json", "--samples", "2"))
        assert server.count == 60
    estimate = json.loads(capsys.readouterr().out)
    assert estimate["calls"] == 120
    assert 0 < estimate["dollars"] < estimate["dollars_at_most"]


def test_a_dry_run_knows_what_is_settled(examples, capsys):
    """What the ledger holds is not counted again."""
    with FaultServer() as server:
        main(arguments(examples, server.url))
        capsys.readouterr()
        main(arguments(examples, server.url, "--dry-run", prompts=PROMPTS[:3]))
    assert "30 calls to make, 60 answered already" in capsys.readouterr().out


def test_a_budget_ends_the_run_with_the_votes_so_far(examples, capsys, tmp_path):
    """Status 3, what was paid is written, the rest is `not_asked`, and the same command with more money finishes."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 2.0\n")
    with FaultServer() as server:
        more = ("--prices", prices, "--max-tokens", "100")
        assert main(arguments(examples, server.url, *more, "--budget", "0.01")) == 3
        n, message = server.count, capsys.readouterr().out
        assert f"Stopped by its budget of $0.0100: {n} of 60 judgments are made. They are in" in message
        votes, reasons = outputs(examples)
        assert votes.iloc[:, 4:].notna().sum().sum() == n < 60
        assert reasons["reason"].tolist() == ["not_asked"] * (60 - n)
        table = examples.with_name("votes.parquet")
        worst = worst_failures(read_reasons([table], read_votes(table)))
        assert [each.rate for each in worst.values()] == [0.0] * len(worst)  # no fit leaves such a judge out
        assert main(arguments(examples, server.url, *more, "--budget", "1")) == 0
        assert server.count == 60
    assert outputs(examples)[1].empty


def test_a_prompt_that_fails_too_often_is_called_out(examples, capsys):
    """The files are written, the status is 1, and the prompt is named."""
    with FaultServer(faults={"no_verdict": 0.3}) as server:
        assert main(arguments(examples, server.url, "--no-repair")) == 1
    message = capsys.readouterr().out
    assert "above the limit of `deep fit`" in message
    assert message.count("`deep ask --retry-failed unparsable` asks again") == 1
    votes, reasons = outputs(examples)
    assert len(votes) == 30
    assert set(reasons["reason"]) == {"unparsable"}


def test_samples_make_soft_votes(examples):
    """Three answers a question: the majority votes, the mean is kept beside it, and the temperature is not 0."""

    def moody(_):
        return "VERDICT: SUPPORTED" if next(moods) else "VERDICT: NOT SUPPORTED"

    moods = iter([True, True, False] * 1000)
    with FaultServer(reply=moody) as server:
        server.keep_bodies = True
        more = ("--samples", "3", "--concurrency", "1")
        assert main(arguments(examples, server.url, *more, prompts=PROMPTS[:1])) == 0
        assert server.count == 90
        assert {body["temperature"] for body in server.bodies} == {1.0}
    assert set(outputs(examples)[0].iloc[:, 4]) == {1}
    soft = pd.read_parquet(examples.with_name("votes.soft.parquet"))
    assert soft.iloc[:, 4].tolist() == pytest.approx([2 / 3] * 30)


def test_an_endpoint_without_log_probabilities_is_reported(examples, capsys):
    """What is ignored is noticed: no soft votes, and the report says why."""
    with FaultServer(ignored=["logprobs"]) as server:
        main(arguments(examples, server.url, "--soft", prompts=["yes-no"]))
    assert pd.read_parquet(examples.with_name("votes.soft.parquet")).iloc[:, 4].isna().all()
    capsys.readouterr()
    assert main(["report", str(examples.with_name("votes.ledger.sqlite"))]) == 0
    assert "logprobs ignored" in capsys.readouterr().out


def test_stale_soft_votes_do_not_stay(examples):
    """A run that asks for none removes those of an earlier one."""
    with FaultServer() as server:
        main(arguments(examples, server.url, "--soft"))
        main(arguments(examples, server.url))
    assert not examples.with_name("votes.soft.parquet").exists()


def test_the_prompts_of_one_document_go_together(tmp_path):
    """In a pool that puts the document first, its first request goes alone, and the others come next."""
    examples = write_examples(tmp_path / "news.csv", 12, claims=2)
    with FaultServer(latency=0.05) as server:
        server.keep_bodies = True
        more = ("--pool", "deep-3-doc-first", "--llm", "tiny", "--base-url", server.url, "--concurrency", "4")
        assert main([str(examples), *more, "--out", str(tmp_path / "votes.parquet")]) == 0
        documents = [_document(body) for body in server.bodies]
        times = [at for at, _, _ in server.log]
    for document in set(documents):
        places = [i for i, name in enumerate(documents) if name == document]
        assert len(places) == 6
        assert times[places[1]] - times[places[0]] >= 0.05


def _document(body):
    return next(w for w in body["messages"][-1]["content"].split() if w.startswith("doc"))


def test_the_report_counts_everything(examples, capsys):
    """Per prompt, dataset and model: votes, reasons, failure classes, cost, latency."""
    faults = {"no_verdict": 0.1}
    with FaultServer(faults=faults, script=["ok", "broken_json"], latency=0.05) as server:
        main(arguments(examples, server.url, "--max-attempts", "1", prompts=PROMPTS[:1]))
    capsys.readouterr()
    assert main(["report", str(examples.with_name("votes.ledger.sqlite")), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["dataset"] for row in result["rows"]] == ["set0", "set1", "set2"]
    assert sum(row["asked"] for row in result["rows"]) == 30
    assert sum(row["failures"].get("broken", 0) for row in result["rows"]) == 1
    assert sum(row["votes"] + sum(row["reasons"].values()) for row in result["rows"]) == 30
    assert all(row["seconds_median"] >= 0.05 for row in result["rows"])
    assert (result["unpriced"], result["cost"]) == (0, 0.0)
    assert main(["report", str(examples.with_name("votes.ledger.sqlite")), "--max-failure-rate", "0.01"]) == 0
    text = capsys.readouterr().out
    assert "failed, by class" in text
    assert "cost: $0.00" in text
    assert "above the limit of `deep fit`" in text


def test_a_budget_for_a_server_on_this_machine_is_told_to_hold_nothing_back(examples, capsys):
    """In one line; it neither refuses nor calls any price unknown."""
    with FaultServer() as server:
        assert main(arguments(examples, server.url, "--budget", "1", prompts=PROMPTS[:1])) == 0
    told = capsys.readouterr()
    line = f"--budget does not hold back {server.url}: a server on this machine costs nothing without --prices.\n"
    assert told.err.count(line) == 1
    assert "unknown" not in told.out + told.err
    assert "cost of this run: $0.00\n" in told.out


def test_what_may_be_on_the_bill_without_an_answer_is_told(examples, capsys):
    """By the run that met it, and by its ledger; no other run says it again."""
    with FaultServer(script=["ok", "cut", "broken_json", "server_error"]) as server:
        assert main(arguments(examples, server.url, "--timeout", 120)) == 0
        told = "2 attempts timed out or lost their connection."
        assert told in capsys.readouterr().out
        assert main(arguments(examples, server.url)) == 0
        assert "may still cost" not in capsys.readouterr().out
        assert server.count == 63
    assert main(["report", str(examples.with_name("votes.ledger.sqlite"))]) == 0
    assert "2 attempts have no answer here" in capsys.readouterr().out


def test_no_key_is_shown_or_written(examples, capsys, tmp_path):
    """Not in the ledger, the output, the summary, the report or an error, though the server repeats it."""
    with FaultServer(script=["ok", "echo_key"]) as server:
        main(arguments(examples, server.url, "--json"))
        main(["report", str(examples.with_name("votes.ledger.sqlite")), "--json"])
        server.script.append("unauthorized")
        assert main(arguments(examples, server.url, "--samples", "2")) == 2
    shown = "".join(capsys.readouterr())
    assert "wrong key" in shown
    assert KEY not in shown
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--concurrency", "0"], "`concurrency` must be auto or a whole number"),
        (["--lexical", "x" * 300], "`lexical` must be one of all, coverage"),
        (["--retry-failed", "bad"], "`retry_failed` must be one of broken"),
        (["--retry-failed", "unknown", "--at-most-once"], "`retry_failed` must not name 'unknown'"),
        (["--budget", "-1"], "`budget` must be 0 or more"),
        (["--rpm", "0"], "`rpm` must be above 0. Got 0.0"),
        (["--tpm", "nan"], "`tpm` must be above 0. Got nan"),
        (["--max-attempts", "0"], "`max_attempts` must be above 0"),
        (["--timeout", "-1"], "`timeout` must be above 0"),
        (["--backoff", "-1"], "`backoff` must be 0 or more"),
        (["--max-failure-rate", "1.1"], "`max_failure_rate` must be 0 or more, up to 1"),
        (["--samples", "1" + "0" * 30], "`samples` must be at most 10,000. Got 1000"),
        (["--shard-mb", "nan"], "`shard_mb` must be given with `batch_out`"),
        (["--prices", "no-such-file"], "`prices` must be a readable TOML file"),
        (["--prompt", "deep-strict-steps"], "must name each voter once"),
        (["--llm", "m\udc80"], "`llm` must be printable text on one line"),
        (["--out", "votes.csv"], "`out` must end in .parquet"),
        (["--out", "nowhere/votes.parquet"], "`out` must lie in a writable folder"),
        (["--ledger", "mysql://u:s3cret@h/d"], "`ledger` must be a file or a postgresql"),
        (["--base-url", ""], "`base_url` must be an address. Got ''. Leave it out"),
        (["--base-url", "ftp://x"], "`base_url` must be an http(s) URL"),
        (["--base-url", "http://user:s3cret@x/v1"], "keys come from the environment only"),
        (["--base-url", "http://x/v1?api-key=s3cret"], "keys come from the environment only"),
        (["--api-key-env", "sk-s3cret"], "`api_key_env` must be the name of an environment variable"),
    ],
)
def test_a_bad_option_is_one_clear_line(examples, capsys, more, complaint):
    """The option is named, the status is 2, nothing is sent, and no secret is repeated."""
    with FaultServer() as server:
        assert main(arguments(examples, server.url, *more)) == 2
        assert server.count == 0
    message = capsys.readouterr().err
    assert complaint in message
    assert "s3cret" not in message
    assert message.count("\n") == 1
    assert not examples.with_name("votes.ledger.sqlite").exists()


@pytest.mark.parametrize(
    ("option", "complaint"),
    [
        (["--llm", "tiny"], "`llm` must be given where LLMs are asked. Got it with judges that need no LLM."),
        (
            ["--base-url", "http://user:s3cret@x/v1"],
            "`base_url` must be given where LLMs are asked. Got it with judges",
        ),
        (["--chunk", "900:100"], "`chunk` must be given where LLMs are asked. Got it with judges"),
    ],
)
def test_options_of_asking_are_refused_where_nothing_is_asked(examples, capsys, option, complaint):
    """Rather than passed over, as if an LLM had been asked."""
    assert main([str(examples), "--lexical", "numbers", *option, "--out", str(examples.with_name("v.parquet"))]) == 2
    message = capsys.readouterr().err
    assert complaint in message
    assert "s3cret" not in message
    assert message.count("\n") == 1
    assert not examples.with_name("v.parquet").exists()


def test_a_bad_table_is_one_clear_line(tmp_path, capsys):
    """File, row and column are named, the status is 2, and nothing is sent or written."""
    path = tmp_path / "bad.csv"
    path.write_text("source,claim,label\na,b,2\n")
    with FaultServer() as server:
        assert main(arguments(path, server.url)) == 2
        assert server.count == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert "`label` must be 0, 1 or empty. Got '2' in row 1" in line
    assert str(path) in line
    assert [p.name for p in tmp_path.iterdir()] == ["bad.csv"]


def test_ids_are_the_numbers_of_rows_where_there_are_none(tmp_path):
    """And the dataset is named after the file; labels may be missing."""
    path = tmp_path / "weather.jsonl"
    path.write_text(
        '{"source": "It rained.", "claim": "wet", "label": 1}\n{"source": "It snowed.", "claim": "white"}\n'
    )
    with FaultServer() as server:
        assert main(arguments(path, server.url)) == 0
    votes, _ = outputs(path)
    assert votes[["dataset", "item_id"]].to_numpy().tolist() == [["weather", "1"], ["weather", "2"]]
    assert votes["label"].fillna(-1).tolist() == [1, -1]
    assert "document_id" not in votes


@pytest.mark.parametrize("key", [None, "sk-abcdefgh\tijkl", "sk-abcdefghé"])
def test_a_key_that_no_header_can_carry_is_not_repeated(examples, capsys, monkeypatch, key):
    """The complaint names the variable only; without a key nothing is sent to the default endpoint."""
    words = arguments(examples, "http://127.0.0.1:9/v1")
    if key is None:
        monkeypatch.delenv("OPENAI_API_KEY")
        words = [str(examples), "--pool", "deep-3", "--llm", "m", "--out", str(examples.with_name("v.parquet"))]
    else:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    assert main(words) == 2
    message = capsys.readouterr().err
    assert f"`OPENAI_API_KEY` must hold {'the API key' if key is None else 'a key of printable ASCII'}" in message
    assert "abcdefgh" not in message


@pytest.mark.parametrize(
    "number", [signal.SIGINT, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGTERM, signal.SIGHUP))]
)
def test_an_interrupted_run_is_resumed(examples, number):
    """Ctrl-C, a plain kill, a lost terminal: a clean end, status 130, nothing in doubt, nothing asked twice."""
    with FaultServer(latency=0.1) as server:
        options = arguments(examples, server.url, "--concurrency", "4", prompts=PROMPTS)
        command = [sys.executable, "-m", "deep", "ask", *options]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while server.count < 12:
                time.sleep(0.02)
            process.send_signal(number)
            message, errors = process.communicate(timeout=60)
        assert process.returncode == 130
        lines = r"\d+/150 .* left|First vote: .*|Waiting for \d+ answers?, .*"
        assert re.fullmatch(rf"(({lines})\n)*", errors)  # where the machine is slow
        n = server.count
        assert f"Stopped by Ctrl-C or a signal: {n} of 150 judgments are made. They are in" in message
        votes, reasons = outputs(examples)
        assert votes.iloc[:, 4:].notna().sum().sum() == n < 150
        assert set(reasons["reason"]) == {"not_asked"}
        server.latency = 0.0
        assert main(options) == 0
        assert server.count == 150


def test_a_sample_is_judged_alone_and_the_rest_later(examples, capsys):
    """By the names of the items: a larger sample holds a smaller one, and nothing of it is asked again."""
    with FaultServer() as server:
        items = []
        for sample, asked in (("5", 5), ("12", 12), (None, 30)):
            more = [] if sample is None else ["--sample", sample]
            assert main(arguments(examples, server.url, *more, prompts=PROMPTS[:1])) == 0
            assert server.count == asked
            items.append(set(outputs(examples)[0]["item_id"]))
        assert items[0] < items[1] < items[2]
        assert [*map(len, items)] == [5, 12, 30]
        assert "of 30 judgments" not in capsys.readouterr().out
        assert main(arguments(examples, server.url, "--sample", "0")) == 2
        assert capsys.readouterr().err == "error: `sample` must be 1 or more examples. Got 0.\n"


def test_a_slow_run_says_its_pace_and_a_sample_and_what_the_server_lacks(examples, capsys, monkeypatch):
    """Each once, in a line: when five answers are there, not one a reply."""
    monkeypatch.setattr("deep.asking._run.WORTH_SAYING", 0.0)
    monkeypatch.setattr("deep.asking._options.SHORT_RUN_SECONDS", 3.0)  # 12 replies, fewer on a busy machine
    with FaultServer(latency=0.25, slots=1, ignored=["logprobs", "response_format", "usage"]) as server:
        main(arguments(examples, server.url, "--soft", "--concurrency", "1", prompts=["yes-no"]))
    told = capsys.readouterr().err.splitlines()
    pace = r"[\d.]+ replies/s: \d+ more questions take about \d+ seconds; `--sample \d+` takes about \d+ seconds\."
    assert len([line for line in told if re.fullmatch(pace, line)]) == 1
    lacks = rf"tiny at {server.url}: logprobs ignored \(.*\), usage ignored \(.*\), response_format ignored \(.*\)"
    assert len([line for line in told if re.fullmatch(lacks, line)]) == 1


def test_a_context_that_is_full_is_told(examples, capsys):
    """Of the replies that it cut off; none of them is asked again."""
    with FaultServer(faults={"truncated": 0.3}, billed=lambda _: 40) as server:
        main(arguments(examples, server.url, "--max-failure-rate", "1", prompts=PROMPTS[:1]))
        assert server.count == 30
    cut = re.search(r"(\d+) truncated", told := capsys.readouterr().out)[1]
    assert f"\n{cut} replies were cut off because the context was full. Use a server with" in told


def test_the_live_line_tells_all(monkeypatch):
    """Done, failed and abstained per prompt; rate, cost and time left; on a terminal only."""
    tally = Tally(3)
    tally.answer("p@0a/tiny", Judgment(1), 0.5)
    tally.answer("p@0a/tiny", Judgment(-1, reason="abstained"), None)
    text = live_text(AskProgress(tally))
    assert "p@0a/tiny  2 done  0 failed  1 abstained" in text
    assert "2/3" in text
    assert "requests/s" in text
    assert "$0.5000 (+ 1 unpriced) so far" in text
    assert text.endswith("0:00:00 left")
    terminal = io.StringIO()
    monkeypatch.setattr(sys, "stderr", terminal)
    with live_progress() as progress:
        tally._started = time.monotonic()
        progress(AskProgress(tally))
        assert terminal.getvalue() == ""
        tally._started -= 2
        progress(AskProgress(tally))
        progress(AskProgress(tally))
        assert re.fullmatch(r"2/3 .* left\n", terminal.getvalue())
    terminal.truncate(0)
    terminal.isatty = lambda: True
    with live_progress() as progress:
        progress(AskProgress(tally))
    assert "2 done" in terminal.getvalue()
    assert live_text(AskProgress(tally, 7, 9)).splitlines()[-1].startswith("judging 7/9  ")


def test_killed_at_random_moments(tmp_path):
    """No acknowledged answer is lost, none is bought again, and duplicates stay below the number that is told."""
    n, kills = 60, 3
    examples, ledger = write_examples(tmp_path / "news.csv", n), tmp_path / "votes.ledger.sqlite"

    def fetch(query):
        try:
            return rows(ledger, query) if ledger.exists() else []
        except sqlite3.OperationalError:
            return []  # killed before it had made its tables

    with FaultServer(latency=0.05) as server:
        options = arguments(examples, server.url, "--concurrency", "16", prompts=PROMPTS)
        toll = kill_and_resume(options, tmp_path, server, fetch, kills=kills)
    sys.stderr.write(f"{toll}\n")
    assert (toll.lost, toll.bought_again) == (0, 0)
    assert toll.duplicates <= toll.unknown <= min(toll.told, kills * 16)
    assert len(outputs(examples)[0]) == n
    assert rows(ledger, "PRAGMA integrity_check") == [("ok",)]


def test_a_table_of_others_is_not_replaced(examples, capsys):
    """Its votes stand nowhere else; those of an earlier run are replaced, resaved by another program too."""
    out = examples.with_name("votes.parquet")
    others = pd.DataFrame({"dataset": ["news"], "item_id": ["e1"], "person": [1]})
    others.to_parquet(out)
    words = [str(examples), "--lexical", "numbers", "--out", str(out)]
    assert main(words) == 2
    assert f"Got '{out}', a table of others." in capsys.readouterr().err
    pd.testing.assert_frame_equal(pd.read_parquet(out), others)
    out.unlink()
    assert main(words) == 0
    pd.read_parquet(out).head(3).to_parquet(out)
    assert main(words) == 0
    assert len(pd.read_parquet(out)) == 30
    for path in (out, out.with_name("votes.reasons.parquet")):
        pd.read_parquet(path).assign(person="Anna").to_parquet(path)
        assert main(words) == 2
        assert f"Got '{path}', a table of others." in capsys.readouterr().err
        assert "person" in pd.read_parquet(path)
        path.unlink()
