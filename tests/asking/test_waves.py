"""Judges of several stages in `deep ask`: asked in waves, shared, resumed, and a reason where they fail."""

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pandas as pd
import pytest

from deep._util import entry_points
from deep._util.entry_points import JUDGE_GROUP, find_entry_points
from deep.asking import AskOptions
from deep.asking._replay import ProgramId
from deep.asking._write import run_programs
from deep.llm import PriceBook
from deep.records import Judgment
from tests.asking.toy_judge import ToyJudge, answer, ask, with_toy
from tests.deep_commands import votes as main
from tests.llm.calls import rows
from tests.scripted_llm import Fault, ScriptedLLM

VOTER = ToyJudge().voter("tiny")
CLAIMS = {
    "cats sat": 1,
    "cats sat and dogs ran": 1,
    "cats sat and birds sang": 0,
    "birds sang": 0,
}
SOURCE = "cats sat while dogs ran"


@pytest.fixture(autouse=True)
def _toy(monkeypatch):
    """Register the toy judge."""
    monkeypatch.setattr(entry_points, "_installed_entries", with_toy)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def write(path, claims, source=SOURCE):
    """Write one example a claim, in two datasets."""
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["source", "claim", "label", "dataset", "example_id"])
        table.writerows([source, claim, i % 2, f"set{i % 2}", f"e{i}"] for i, claim in enumerate(claims))
    return path


def command(examples, url, *more):
    """Return a command line that is quick about its retries."""
    out = examples.with_name("votes.parquet")
    common = ["--judge", "toy", "--llm", "tiny", "--base-url", url, "--out", str(out), "--backoff", "0.01"]
    return [str(examples), *common, "--endpoint-name", "here", *map(str, more)]


def votes_of(examples):
    """Return votes and reasons of the toy judge, by item."""
    votes = pd.read_parquet(examples.with_name("votes.parquet")).set_index("item_id")[VOTER]
    reasons = pd.read_parquet(examples.with_name("votes.reasons.parquet")).set_index("item_id")
    reasons = reasons[reasons["voter"] == VOTER]["reason"]
    return votes, reasons


def settings(ledger, url, **options):
    """Return the options of a run from Python."""
    prices = options.pop("prices", PriceBook(url, {}))
    chosen = AskOptions(base_url=url, ledger=str(ledger), backoff=0.01, **options)
    vars(chosen)["price_book"] = prices
    return chosen


def test_a_staged_judge_votes_beside_prompts(tmp_path, capsys):
    """One run fills one file; a question asked twice is one request; the answers of steps are no votes."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    steps = ("SPLIT", "CHECK")
    with ScriptedLLM(lambda asked: answer(asked) if asked.user[:5] in steps else "VERDICT: SUPPORTED") as server:
        assert main(command(examples, server.url, "--prompt", "deep-numbers", "--json")) == 0
        questions = [asked.user for asked in server.asked if asked.user[:5] in steps]
    parts = ("cats sat", "dogs ran", "birds sang")
    expected = [*(f"SPLIT {claim}" for claim in CLAIMS), *(f"CHECK {part} IN {SOURCE}" for part in parts)]
    assert sorted(questions) == sorted(expected)
    votes, reasons = votes_of(examples)
    assert votes.tolist() == list(CLAIMS.values())
    assert reasons.empty
    frame = pd.read_parquet(examples.with_name("votes.parquet"))
    assert [name.split("@")[0] for name in frame.columns[3:]] == ["deep-numbers", "toy"]
    summary = json.loads(capsys.readouterr().out)
    counted = {voter["voter"]: (voter["done"], voter["votes"], voter["answers"]) for voter in summary["voters"]}
    assert counted[VOTER] == (4, 4, 0)
    assert counted[f"{VOTER}#split"] == (4, 0, 4)
    ledger = tmp_path / "votes.ledger.sqlite"
    assert rows(ledger, "SELECT count(*) FROM requests WHERE vote IS NULL AND reason IS NULL") == [(7,)]
    assert main(["report", str(ledger), "--json"]) == 0
    report = {(row["voter"], row["dataset"]): row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert report[f"{VOTER}#check", "set0"]["answers"] == 3
    assert report[f"{VOTER}#split", "set1"]["failure_rate"] == 0.0
    assert main(["report", str(ledger)]) == 0
    assert "3 answers" in capsys.readouterr().out


def test_the_same_command_again_costs_nothing(tmp_path, capsys):
    """A second run, and one over more examples, buys only what is new."""
    examples = write(tmp_path / "pets.csv", list(CLAIMS)[:2])
    with ScriptedLLM(answer) as server:
        main(command(examples, server.url))
        first = server.count
        main(command(examples, server.url, "--json"))
        assert server.count == first == 4
        capsys.readouterr()
        write(examples, CLAIMS)
        main(command(examples, server.url))
        assert server.count == 7
    assert votes_of(examples)[0].tolist() == list(CLAIMS.values())


def test_a_dry_run_tells_what_it_cannot_know(tmp_path, capsys):
    """The first wave is counted; what follows is bounded where the judge can."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    with ScriptedLLM(answer) as server:
        assert main(command(examples, server.url, "--dry-run")) == 0
        message = capsys.readouterr().out
        assert "4 calls to make, 0 answered" in message
        assert "at most 18 calls in all" in message
        main(command(examples, server.url))
        assert server.count == 7
        capsys.readouterr()
        assert main(command(examples, server.url, "--dry-run", "--json")) == 0
    estimate = json.loads(capsys.readouterr().out)
    assert (estimate["calls"], estimate["settled"], estimate["more_follow"]) == (0, 7, False)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("refused", "refused"), ("truncated", "truncated"), ("filtered", "refused"), ("server_error", "failed")],
)
@pytest.mark.parametrize("step", ["SPLIT", "CHECK"])
def test_a_failure_at_any_step_is_a_reason(tmp_path, fault, reason, step):
    """Only the examples that need the answer are without a vote, and the failure can be asked again."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    broken = [True]

    def script(asked):
        return Fault(fault) if broken and asked.user.startswith(f"{step} birds") else answer(asked)

    with ScriptedLLM(script) as server:
        options = ["--max-attempts", "2", "--max-failure-rate", "1"]
        assert main(command(examples, server.url, *options)) == 0
        votes, reasons = votes_of(examples)
        lost = ["e3"] if step == "SPLIT" else ["e2", "e3"]
        assert reasons.to_dict() == dict.fromkeys(lost, reason)
        assert votes.drop(lost).tolist() == list(CLAIMS.values())[: 4 - len(lost)]
        broken.clear()
        count = server.count
        assert main(command(examples, server.url, *options)) == 0
        assert server.count == count
        kind = "server_error" if reason == "failed" else reason
        assert main(command(examples, server.url, *options, "--retry-failed", kind)) == 0
        assert server.count == count + 1
    assert votes_of(examples)[0].tolist() == list(CLAIMS.values())


def test_what_cannot_be_read_is_unparsable(tmp_path, capsys):
    """An empty list, words that are no verdict, and a judge that breaks: reasons, and the others keep their votes."""
    examples = write(tmp_path / "pets.csv", ["nothing", "cats sat", "odd", "explode"])
    odd = {"SPLIT nothing": "", "SPLIT explode": "boom", f"CHECK odd IN {SOURCE}": "perhaps"}
    with ScriptedLLM(lambda asked: odd.get(asked.user, answer(asked))) as server:
        assert main(command(examples, server.url)) == 1
    votes, reasons = votes_of(examples)
    assert reasons.to_dict() == dict.fromkeys(["e0", "e2", "e3"], "unparsable")
    assert votes["e1"] == 1
    assert "broke on 'e3' of 'set1': KeyError('boom')" in capsys.readouterr().err


def test_faults_change_nothing(tmp_path):
    """Under rate limits, errors, cuts and broken replies the votes are those of a calm run."""
    claims = [f"cats sat and cat{i} ran" for i in range(40)]
    source = " ".join(f"cat{i} ran" for i in range(0, 40, 2)) + " cats sat"
    calm, storm = (write(make(tmp_path / name) / "pets.csv", claims, source) for name in ("calm", "storm"))
    with ScriptedLLM(answer) as server:
        assert main(command(calm, server.url)) == 0
        assert server.count == 40 + 41
    faults = {"rate_limited": 0.1, "server_error": 0.05, "dropped": 0.05, "cut": 0.02, "broken_json": 0.05}
    with ScriptedLLM(answer, faults=faults) as server:
        assert main(command(storm, server.url)) == 0
        assert server.count > 85
    assert votes_of(calm)[0].tolist() == [1 - i % 2 for i in range(40)]
    pd.testing.assert_series_equal(votes_of(storm)[0], votes_of(calm)[0])


def make(folder):
    """Return a folder, made."""
    folder.mkdir()
    return folder


_CHILD = """
import sys
from tests.deep_commands import votes as main
from deep._util import entry_points
from tests.asking.toy_judge import with_toy
entry_points._installed_entries = with_toy
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_killed_between_its_stages_it_buys_nothing_twice(tmp_path):
    """Kill -9 in every stage: what is on disk is never asked again, and the votes are those of an unbroken run."""
    claims = [f"cat{i} ran and cats sat" for i in range(40)]
    examples = write(tmp_path / "pets.csv", claims, " ".join(f"cat{i} ran" for i in range(20)) + " cats sat")
    ledger = tmp_path / "votes.ledger.sqlite"
    with ScriptedLLM(answer, latency=0.02) as server:
        words = [sys.executable, "-c", _CHILD, *command(examples, server.url, "--concurrency", "4")]
        for stop in (15, 50):
            with subprocess.Popen(words, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
                wait_for(lambda stop=stop: settled(ledger) >= stop)
                os.kill(child.pid, signal.SIGKILL)
            on_disk = settled(ledger)
            assert stop <= on_disk < 81
        # Where both kills met the same requests, a third attempt is a user's to ask for; of many, the status tells.
        for asked in ([], ["--retry-failed", "unknown"]):
            done = subprocess.run([*words, *asked], check=False, capture_output=True)
            twice = votes_of(examples)[1]
            assert set(twice) <= {"failed"}
            assert done.returncode == (1 if len(twice) > 0.05 * 40 else 0)
        assert len(twice) == 0
        assert rows(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'answered'") == [(81,)]
        lost = rows(ledger, "SELECT count(*) FROM attempts WHERE outcome = 'unknown'")[0][0]
        assert server.duplicates <= lost <= 2 * 4
    assert votes_of(examples)[0].tolist() == [1] * 20 + [0] * 20


def settled(ledger):
    """Return the number of requests that are done."""
    try:
        with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM requests WHERE state = 'done'").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def wait_for(condition):
    """Wait until something is so."""
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_the_budget_stops_it_between_waves(tmp_path):
    """The status and the reasons say so, and more money goes on where it was."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1000.0\noutput = 0.0\n")
    with ScriptedLLM(answer) as server:
        assert main(command(examples, server.url, "--prices", prices, "--budget", "0.15", "--concurrency", "1")) == 3
        assert 0 < server.count < 7
        votes, reasons = votes_of(examples)
        assert (votes.notna().sum(), reasons.tolist()) == (0, ["not_asked"] * len(CLAIMS))
        assert main(command(examples, server.url, "--prices", prices, "--budget", "10")) == 0
        assert server.count == 7
    assert votes_of(examples)[0].tolist() == list(CLAIMS.values())


def test_the_batch_api_takes_a_wave_at_a_time(tmp_path):
    """Each wave is a batch."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    with ScriptedLLM(answer) as server:
        assert main(command(examples, server.url, "--batch", "--poll", "0.02")) == 0
        assert len(server.batches) == 2
        assert server.count == 7
    assert votes_of(examples)[0].tolist() == list(CLAIMS.values())


def test_an_unknown_judge_is_one_line(tmp_path, capsys):
    """The names are told."""
    examples = write(tmp_path / "pets.csv", CLAIMS)
    assert main([str(examples), "--judge", "twin", "--llm", "tiny"]) == 2
    known = ", ".join(sorted(find_entry_points(JUDGE_GROUP).usable))
    assert capsys.readouterr().err == f"error: `judge` must be one of {known}, or MODULE:FUNCTION. Got 'twin'.\n"


def test_programs_of_any_kind_run_to_their_value(tmp_path):
    """Builders ask several models, samples and schemas, wait for nothing, and come back with any value."""

    def build(n):
        ((first,), (second,)) = ((yield [ask("write", f"Write {n}")]), (yield [ask("write", f"Write {n}", sample=1)]))
        nothing = yield []
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        (other,) = yield [ask("check", f"{first.text}{second.text}", schema=schema, parameters={"model": "large"})]
        return {"n": n, "said": other.text, "by": other.model, "nothing": list(nothing), "cost": other.cost}

    def programs():
        yield from ((ProgramId("builder@0a", "articles", str(n)), "tiny", build(n)) for n in range(70))

    def script(asked):
        return {"n": len(asked.user)} if asked.properties else f"text of {asked.user[6:]}."

    with ScriptedLLM(script) as server:
        chosen = settings(tmp_path / "ledger.sqlite", server.url)
        outcome, values = run_programs(programs, chosen, endpoint="here")
        assert (outcome.stopped, len(values), server.count) == (None, 70, 210)
        assert {asked.model for asked in server.asked if asked.properties} == {"large"}
        again, same = run_programs(programs, chosen, endpoint="here")
    assert same == values
    assert (again.tally.attempts, again.tally.found) == (0, 210)
    assert values[ProgramId("builder@0a", "articles", "7")] == {
        "n": 7,
        "said": json.dumps({"n": 20}),
        "by": "large-2026",
        "nothing": [],
        "cost": 0.0,  # the server is on this machine
    }


def test_a_program_that_breaks_is_not_hidden_from_python(tmp_path):
    """A builder's mistake is raised, with all answers in the ledger."""

    def broken():
        yield [ask("step", "?")]
        raise ZeroDivisionError

    ledger = tmp_path / "l.sqlite"
    with ScriptedLLM(lambda _: "!") as server, pytest.raises(ZeroDivisionError):
        run_programs(lambda: [(ProgramId("b", "d", "1"), "tiny", broken())], settings(ledger, server.url))
    assert rows(ledger, "SELECT state FROM requests") == [("done",)]


def test_a_program_that_asks_nothing_has_its_value(tmp_path):
    """A judge may know without asking."""

    def knows():
        return Judgment(vote=1)
        yield

    with ScriptedLLM(lambda _: "!") as server:
        run = settings(tmp_path / "l.sqlite", server.url)
        _, values = run_programs(lambda: [(ProgramId("b", "d", "1"), "tiny", knows())], run)
    assert values == {ProgramId("b", "d", "1"): Judgment(vote=1)}
    assert server.count == 0
