"""Functions as judges: what they take and return, what is kept of them, and what becomes of one that raises."""

import asyncio
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import deep
from deep import ABSTAIN, Example, Judgment
from deep.asking import AskOptions, FunctionJudge, ask, ledger_report
from deep.asking._functions import judgment_from_json, judgment_of, judgment_to_json
from deep.cli import main
from deep.datasets import read_votes
from deep.exceptions import InputError, StoppedError
from deep.llm import History, LedgerError
from tests.llm.crash import write_examples
from tests.scripted_llm import ScriptedLLM

EXAMPLES = [Example(f"It rained for {n} days.", f"claim {n}", f"e{n}", label=n % 2, dataset="news") for n in range(40)]


def is_odd(source, claim):
    """Judge by the number of a claim."""
    assert source.startswith("It rained")
    return int(claim.split()[-1]) % 2 == 1


def counted(**options):
    """Return a judge by the number of a claim, and the claims that it is called with."""
    seen = []

    @deep.judge(name="counted", **{"version": "1", **options})
    def judged(claim, source):
        seen.append(claim)
        return is_odd(source, claim)

    return judged, seen


async def is_odd_slowly(claim, source):
    """Judge after a while, its parameters in another order."""
    await asyncio.sleep(0)
    return is_odd(source, claim)


class Odd:
    """A judge that is an object with a method."""

    def __call__(self, document, statement):
        """Judge by parameters of names of their own."""
        return is_odd(document, statement)


def of_example(example: Example) -> Judgment:
    """Judge a whole example."""
    return Judgment(int(is_odd(example.source, example.claim)))


def by_place(source, claim, /):
    """Judge by parameters without names."""
    return is_odd(source, claim)


def of_three(question, source, claim):
    """Judge with a question, which these examples lack."""
    assert question is None
    return is_odd(source, claim)


def makes_awaitable(source, claim):
    """Return what must be awaited, without being async itself."""
    return is_odd_slowly(claim, source)


@pytest.mark.parametrize(
    "function",
    [is_odd, is_odd_slowly, Odd(), of_example, by_place, of_three, makes_awaitable, deep.judge(is_odd)],
    ids=lambda function: getattr(function, "__name__", "object"),
)
def test_a_function_is_a_judge_whatever_it_takes(function):
    """Parameters are given by their names where these are known, else in the order source, claim."""
    votes = ask(EXAMPLES, function)
    assert votes.votes[:, 0].tolist() == [n % 2 for n in range(40)]


@pytest.mark.parametrize(
    ("said", "vote", "reason", "score"),
    [
        (True, 1, None, None),
        (np.False_, 0, None, None),
        (1, 1, None, None),
        (None, ABSTAIN, "abstained", None),
        (ABSTAIN, ABSTAIN, "abstained", None),
        (0.25, 0, None, 0.25),
        (np.float32(0.5), 1, None, 0.5),
        (1.0, 1, None, 1.0),
        ({"vote": 0.75}, 1, None, 0.75),
        ({"vote": None, "reason": "refused"}, ABSTAIN, "refused", None),
        (Judgment(ABSTAIN, "truncated"), ABSTAIN, "truncated", None),
        (Judgment(0, score=0.0, cost=0.0, seconds=0.0), 0, None, 0.0),
        (Judgment(1, evidence=("a",), samples=(1, 0), repaired=True), 1, None, None),
    ],
)
def test_returned_values_are_judgments(said, vote, reason, score):
    """No value becomes 0 that does not say so; each survives the file of answers."""
    judgment = judgment_of(said)
    assert (judgment.vote, judgment.reason, judgment.score) == (vote, reason, score)
    assert judgment_from_json(judgment_to_json(judgment)) == judgment
    assert judgment_of((said, "because")).rationale == "because"


@pytest.mark.parametrize(
    ("scale", "answers", "numbers"),
    [
        ("1-5", [1, 5.0, 2.5, np.int64(4), (3, "so so"), {"vote": 2}, None, -1], [1, 5, 2.5, 4, 3, 2, None, None]),
        ("5-1", [1, 5], [1, 5]),
        ("bad<good", ["bad", "good"], [0, 1]),
        ("-3..0", [-1, -3], [-1, -3]),
    ],
)
def test_a_function_gives_grades_on_its_scale(scale, answers, numbers, tmp_path):
    """The matrix holds them as given, for a fit that keeps the scale; a second run reads them from the ledger."""
    called = []

    @deep.judge(version="1", scale=scale)
    def grade(source, claim):
        called.append(claim)
        return answers[int(claim)]

    examples = [deep.Example("It rained.", str(n), str(n)) for n in range(len(answers))]
    for _ in range(2):
        votes = ask(examples, [grade, "numbers"], ledger=tmp_path / "l")
        assert [str(one) for one in votes.scales] == [scale, "binary"]
        places = votes.scales[0].places(np.array(numbers, dtype=float))
        np.testing.assert_array_equal(votes.answers[:, 0], places)
        assert votes.votes[:, 0].tolist() == np.where(np.isnan(places), ABSTAIN, places >= 0.5).tolist()
    assert len(called) == len(answers)


def test_a_table_of_votes_keeps_grades_and_their_scale(tmp_path, monkeypatch):
    """A file that holds the worst grade alone is read by the scale that its judge declared, not by its values."""
    (tmp_path / "graders.py").write_text(
        "import deep\n\n\n"
        "@deep.judge(version='1', scale='5-1')\ndef risk(source, claim):\n    return 1 if claim else None\n\n\n"
        "@deep.judge(version='1', scale='bad<fair<good')\ndef tone(source, claim):\n    return 'good'\n\n\n"
        "@deep.judge(version='1')\ndef vote(source, claim):\n    return 1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    examples, out = write_examples(tmp_path / "news.csv", 6), tmp_path / "votes.parquet"
    functions = [f"graders:{name}" for name in ("risk", "tone", "vote")]
    assert main(["ask", str(examples), "--judge", *functions, "--out", str(out)]) == 0
    votes = read_votes(out)
    assert [str(one) for one in votes.scales] == ["5-1", "bad<fair<good", "binary"]
    assert pd.read_parquet(out).iloc[0, -2:].tolist() == ["good", 1]
    assert votes.answers.tolist() == [[1.0, 1.0, 1.0]] * 6
    assert str(read_votes(out, scales={"risk*": "1-5"}).scales[0]) == "1-5"
    # Without a column that the file tells of; and beside grades of others, where a column of 1s still is one of votes.
    table = pq.read_table(out)
    pq.write_table(table.drop_columns(votes.voter_names[0]), out)
    people = pd.DataFrame({"dataset": votes.datasets, "item_id": votes.item_ids, "person": [1, 2, 3, 4, 5, 5]})
    people.to_csv(tmp_path / "people.csv", index=False)
    both = read_votes([out, tmp_path / "people.csv"])
    assert [str(one) for one in both.scales] == ["bad<fair<good", "binary", "1-5"]


def test_what_lies_outside_its_scale_is_no_answer(capsys):
    """True is no grade, nor is a judgment without one; no other item loses its answer."""
    answers = [
        True,
        7,
        "good",
        float("nan"),
        Judgment(1),
        Judgment(1, score=9.0),
        {"vote": 4, "score": 9},
        {"vote": 4, "score": 3},
        {"vote": None, "score": 5},
        Judgment(ABSTAIN, "unparsable", score=5.0),
        (9, "why"),
        5,
    ]
    grade = FunctionJudge(lambda source, claim: answers[int(claim)], name="grade", version="1", scale="1-5")
    examples = [deep.Example("It rained.", str(n), str(n)) for n in range(len(answers))]
    votes = ask(examples, [grade, "numbers"])
    assert votes.votes[:, 0].tolist() == [ABSTAIN] * 11 + [1]
    assert np.isnan(votes.answers[:-1, 0]).all()
    assert "returned True; its scale is 1-5" in capsys.readouterr().err
    votes = FunctionJudge(lambda source, claim: True, name="voter", version="1", scale="binary")
    assert ask(examples, votes).scales is None
    versions = {FunctionJudge(is_odd, version="1", scale=scale).version for scale in (None, "1-5", "5-1")}
    assert len(versions) == 3, "an answer on one scale is none on another"


@pytest.mark.parametrize(
    "said",
    [
        "yes",
        7,
        -0.1,
        float("nan"),
        -2,
        {"verdict": 1},
        {"votes": 1, "vote": 1},
        [1],
        (1, 2, 3),
        {"vote": 1, "tokens": object()},
        {"vote": 1, "cost": float("nan")},
        {"vote": 1, "cost": -0.01},
        {"vote": 1, "cost": 10**400},
        {"vote": 1, "seconds": "long"},
        {"vote": 1, "score": float("nan")},
        {"vote": 1, "rationale": 5},
        {"vote": 1, "model": 5},
        {"vote": 1, "tokens": {"input": 10**30}},
        {"vote": 1, "evidence": ["text", 5]},
        {"vote": 1, "samples": ["x"]},
        {"vote": 1, "repaired": "no"},
    ],
)
def test_other_values_are_failures(said, capsys):
    """They are told, and nothing that no table can hold costs the votes of others."""
    votes = ask(EXAMPLES[:2], ["numbers", FunctionJudge(lambda source, claim: said, name="odd")])
    assert votes.votes[:, 1].tolist() == [ABSTAIN, ABSTAIN]
    assert "odd@" in (told := capsys.readouterr().err)
    assert "TypeError: " in told or "InputError: `" in told


def fails_on_tenths(source, claim):
    """Raise on each tenth claim but the first."""
    if claim.endswith("0") and claim != "claim 0":
        raise ValueError("a tenth")
    return is_odd(source, claim)


def test_one_that_raises_has_failed_there(capsys):
    """The others are judged, and the first failure of a kind is told, once."""
    votes = ask(EXAMPLES, fails_on_tenths)
    assert votes.votes[:, 0].tolist() == [ABSTAIN if n in (10, 20, 30) else n % 2 for n in range(40)]
    told = capsys.readouterr().err
    assert told.count("ValueError: a tenth") == 1
    assert "fails_on_tenths" in told.splitlines()[-1]
    assert "3 of 40 failed" in told.splitlines()[-1]


def test_many_failures_are_no_silence_of_a_server(capsys):
    """A count of attempts without an answer would say nothing that the first failure and the end do not."""

    @deep.judge(version="1")
    def fails_later(source, claim):
        if claim != "claim 0":
            raise ValueError("later")
        return True

    ask(EXAMPLES, fails_later)
    told = capsys.readouterr().err
    assert "39 of 40 failed" in told
    assert "got no answer" not in told


class WordlessError(Exception):
    """An error whose words are broken themselves."""

    def __str__(self):
        raise ValueError("no words")


class BareError(BaseException):
    """An error that no handler of exceptions catches, as those that skip or fail a test."""


@pytest.mark.parametrize(
    ("error", "is_async"),
    [
        *((kind("none"), False) for kind in (StopIteration, GeneratorExit, WordlessError)),
        *(
            (kind("none"), is_async)
            for kind in (KeyboardInterrupt, SystemExit, asyncio.CancelledError, BareError)
            for is_async in (False, True)
        ),
    ],
)
def test_no_error_of_a_function_ends_the_loop_or_is_waited_for_for_ever(error, is_async, capsys):
    """Of `next`, of what a function calls, of `sys.exit`: it has failed there like any other, and functions go on."""

    def odd(source, claim):
        if claim == "claim 3":
            raise error
        return is_odd(source, claim)

    async def later(source, claim):
        return odd(source, claim)

    votes = ask(EXAMPLES[:6], later if is_async else odd)
    assert votes.votes[:, 0].tolist() == [0, 1, 0, ABSTAIN, 0, 1]
    words = "(without words)" if isinstance(error, WordlessError) else "none"
    assert f"{type(error).__name__}: {words}" in capsys.readouterr().err


def test_the_first_item_fails_for_all(tmp_path):
    """Nothing more is asked where no judge votes on it; one judge that does lets all go on."""
    seen = []

    def broken(source, claim):
        seen.append(claim)
        raise KeyError("no such field")

    with pytest.raises(InputError, match=r"`judges` must judge the first item.* 'e0' of 'news': broken.*KeyError"):
        ask(EXAMPLES, [broken, FunctionJudge(broken, name="other")])
    assert seen == ["claim 0"] * 2
    votes = ask(EXAMPLES, [broken, is_odd])
    assert votes.votes[:, 0].tolist() == [ABSTAIN] * 40


def test_an_offline_judge_that_raises_has_failed_there(capsys):
    """A class of one's own ends no run either."""

    class Mine(deep.judges.OfflineJudge):
        name, version = "mine", "0" * 64

        def label(self, example):
            return Judgment(int(fails_on_tenths(example.source, example.claim)))

    assert ask(EXAMPLES, Mine()).votes[10:12, 0].tolist() == [ABSTAIN, 1]
    assert "ValueError" in capsys.readouterr().err


def test_answers_are_kept_by_name_version_and_texts(tmp_path):
    """What was answered is not asked again, whatever the item's id; a failure is, and so is another version."""
    ledger = str(tmp_path / "l.sqlite")
    judged, seen = counted()
    twice = [*EXAMPLES, *(Example(e.source, e.claim, f"again {e.example_id}") for e in EXAMPLES)]
    first = ask(twice, judged, ledger=ledger)
    assert sorted(seen) == sorted(e.claim for e in EXAMPLES)
    assert ask(EXAMPLES, judged, ledger=ledger).votes.tolist() == first.votes[:40].tolist()
    assert len(seen) == 40
    other, seen = counted(version="2")
    ask(EXAMPLES, other, ledger=ledger)
    assert len(seen) == 40
    never, seen = counted(version=None)
    assert ask(EXAMPLES, never, ledger=ledger).voter_names == ("counted",)
    again, seen_again = counted(version=None)
    assert ask(EXAMPLES, again, ledger=ledger).voter_names == ("counted",)
    assert len(seen) == len(seen_again) == 40
    failing = [False]

    @deep.judge(version="1")
    def flaky(source, claim):
        if failing[0] and claim == "claim 3":
            raise TimeoutError
        return is_odd(source, claim)

    failing[0] = True
    assert ask(EXAMPLES, flaky, ledger=ledger).votes[3, 0] == ABSTAIN
    failing[0] = False
    assert ask(EXAMPLES, flaky, ledger=ledger).votes[3, 0] == 1


def test_a_version_follows_the_text_of_the_function():
    """So an edited function fills another column; a lambda needs a name, and what has no text is not kept."""
    assert FunctionJudge(is_odd).version == deep.judge(is_odd).version != FunctionJudge(by_place).version
    assert FunctionJudge(is_odd, version="1").voter() == "is_odd@" + FunctionJudge(is_odd, version="1").version[:8]
    assert FunctionJudge(partial(is_odd), name="partly", version=None).voter() == "partly"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FunctionJudge(lambda: True, name="mine"), "must be functions of .* Got mine, which takes nothing"),
        (lambda: FunctionJudge(lambda a, b, c, d: True, name="mine"), "Got mine, which takes a, b, c, d"),
        (lambda: FunctionJudge(lambda claim, a, b, c: True, name="mine"), "Got mine, which takes claim, a, b, c"),
        (lambda: FunctionJudge(is_odd, cost=-1), "`cost` must be 0 or more"),
        (lambda: FunctionJudge(is_odd, workers=0), "`workers` must be 1 or more"),
        (lambda: FunctionJudge(is_odd, scale="up to five"), "`scale` must be one of"),
        (lambda: deep.judge(lambda source, claim: True), "`name` must be letters.* Got '<lambda>'"),
        (lambda: ask(EXAMPLES, Odd), "`judges` must hold .* Got the class Odd. Make one"),
    ],
)
def test_what_is_no_judge_is_refused(make, message):
    """One line each; that of a function says what it takes."""
    with pytest.raises(InputError, match=message):
        make()


def test_workers_are_the_most_calls_side_by_side():
    """Of a run, and fewer where the judge says so."""
    now, most = [0], [0]

    async def busy(source, claim):
        now[0] += 1
        most[0] = max(most[0], now[0])
        await asyncio.sleep(0.01)
        now[0] -= 1
        return True

    ask(EXAMPLES, busy, workers=8)
    assert most == [8]
    most[0] = 0
    ask(EXAMPLES, deep.judge(workers=3)(busy), workers=8)
    assert most == [3]


def test_the_budget_holds(tmp_path):
    """No call is begun that it has no room for; a larger one goes on. Without a cost there is no budget."""
    ledger = str(tmp_path / "l.sqlite")
    judged, seen = counted(cost=0.5)
    with pytest.raises(StoppedError, match="the budget is reached"):
        ask(EXAMPLES, judged, ledger=ledger, budget=5.0)
    assert len(seen) == 10
    ask(EXAMPLES, judged, ledger=ledger, budget=20.0)
    assert len(seen) == 40
    with pytest.raises(InputError, match=r"`budget` needs the `cost` of every function. Got 'is_odd@"):
        ask(EXAMPLES, is_odd, budget=1.0)


EARLIER = """
CREATE TABLE answers (key TEXT PRIMARY KEY, voter TEXT, judgment TEXT, cost REAL) WITHOUT ROWID;
PRAGMA journal_mode = WAL;
"""
"""The file of its own in which functions once kept their answers: `l.functions.sqlite` beside `l.sqlite`."""


def earlier_file(folder, judge, examples, judgments, name="l.functions.sqlite"):
    """Write answers as they were once kept: by the hash of version and texts, as JSON without the defaults."""
    with closing(sqlite3.connect(folder / name)) as book, book:
        book.executescript(EARLIER)
        for example, judgment in zip(examples, judgments, strict=True):
            texts = json.dumps([judge.version, *(getattr(example, text) for text in ("source", "claim"))])
            key = hashlib.sha256(texts.encode()).hexdigest()
            cost = json.loads(judgment)["cost"] if '"cost"' in judgment else None
            book.execute("INSERT INTO answers VALUES (?, ?, ?, ?)", (key, judge.voter(), judgment, cost))
    return folder / name


def test_answers_of_an_earlier_file_are_taken_over(tmp_path, capsys):
    """Nothing is called again, what they cost counts, and the file gets another name; the ledger has it all."""
    judged, seen = counted(cost=0.5)
    message = [
        json.dumps({"vote": n % 2, "rationale": f"because {n}", "cost": 0.25, "seconds": 1.5}) for n in range(30)
    ]
    file = earlier_file(tmp_path, judged, EXAMPLES, message + [json.dumps({"vote": -1, "reason": "abstained"})] * 10)
    votes = ask(EXAMPLES, judged, ledger=tmp_path / "l.sqlite")
    assert votes.votes[:, 0].tolist() == [n % 2 if n < 30 else ABSTAIN for n in range(40)]
    assert not seen
    assert "40 answers of functions that were kept in" in capsys.readouterr().err
    assert not file.exists()
    assert file.with_name("l.functions.sqlite.entered").exists()
    with pytest.raises(StoppedError, match="the budget is reached"):
        ask([Example("It rained.", "claim 99", "x")], judged, ledger=tmp_path / "l.sqlite", budget=7.75)
    assert not seen
    ask([Example("It rained.", "claim 99", "x")], judged, ledger=tmp_path / "l.sqlite", budget=8.0)
    assert seen == ["claim 99"]
    (report,) = (row for row in ledger_report(str(tmp_path / "l.sqlite"))["rows"] if row["dataset"] == "news")
    assert (report["votes"], report["reasons"], report["cost"]) == (30, {"abstained": 10}, 7.5)


def test_an_earlier_file_is_read_without_a_call(tmp_path, monkeypatch, capsys):
    """`--from-ledger` and `--dry-run` know it too, where there never was a ledger beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "kept_judges", raising=False)
    text = "import deep\n\n@deep.judge(version='1')\ndef never(source, claim):\n    raise AssertionError\n"
    (tmp_path / "kept_judges.py").write_text(text)
    (tmp_path / "claims.csv").write_text("source,claim\nIt rained.,It was wet.\nIt rained.,It was dry.\n")
    judge = deep.judge(lambda source, claim: None, name="never", version="1")
    examples = [Example("It rained.", claim, claim) for claim in ("It was wet.", "It was dry.")]
    earlier_file(tmp_path, judge, examples, ['{"vote": 1}', '{"vote": 0}'])
    words = ["votes", "claims.csv", "--judge", "kept_judges:never"]
    assert main([*words, "--ledger", "l.sqlite", "--dry-run"]) == 0
    assert "0 calls to make, 2 answered already" in capsys.readouterr().out
    assert main([*words, "--from-ledger", "l.sqlite"]) == 0
    assert deep.read_votes("votes.parquet").votes[:, 0].tolist() == [1, 0]


@pytest.mark.parametrize("kept", ["{bad", "[1]", '{"vote": 1, "x": 2}', '{"vote": 1, "rationale": 5}', "null"])
def test_an_earlier_answer_that_is_none_is_asked_again(tmp_path, kept):
    """As one that a former deep kept and no table can hold; the others are not asked again."""
    odd, called = counted()
    earlier_file(tmp_path, odd, EXAMPLES[:4], ['{"vote": 0}', '{"vote": 1}', '{"vote": 0}', kept])
    assert ask(EXAMPLES[:4], odd, ledger=tmp_path / "l.sqlite").votes[:, 0].tolist() == [0, 1, 0, 1]
    assert called == ["claim 3"]


def test_an_earlier_file_that_is_none_is_left_as_it_is(tmp_path):
    """One line says which file it is, and nothing is called."""
    (tmp_path / "l.functions.sqlite").write_text("my notes, which are long enough to be no database" * 20)
    judged, seen = counted()
    with pytest.raises(deep.DeepError, match=r"`ledger` must be able to take what .*functions.sqlite keeps.*database"):
        ask(EXAMPLES, judged, ledger=tmp_path / "l.sqlite")
    assert not seen
    assert (tmp_path / "l.functions.sqlite").read_text().startswith("my notes")


def test_without_a_ledger_no_file_is_left(tmp_path, monkeypatch):
    """The answers are in a file that goes with the call."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(ask(EXAMPLES, is_odd).votes) == 40
    assert not list(tmp_path.iterdir())


def test_functions_and_an_llm_share_ledger_and_budget(tmp_path):
    """A function's call and a request are paid from one budget, and what is in the ledger is not paid again."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 1.0\n")
    judged, seen = counted(cost=0.01)
    with ScriptedLLM(lambda asked: "VERDICT: SUPPORTED") as server:

        def run(budget):
            options = AskOptions(
                ledger=str(tmp_path / "l.sqlite"), base_url=server.url, prices=str(prices), budget=budget
            )
            return ask(EXAMPLES, [judged, "deep-numbers"], llm="tiny", options=options)

        with pytest.raises(StoppedError, match="the budget is reached"):
            run(0.2)
        with History(str(tmp_path / "l.sqlite")) as history:
            assert history.cost()[0] <= 0.2
        assert 0 < len(seen) <= 20
        whole = run(100.0)
        assert (whole.votes >= 0).all()
        assert (len(seen), server.count) == (40, 40)
        assert run(100.0).votes.tolist() == whole.votes.tolist()
        assert (len(seen), server.count) == (40, 40)


KILLED = """
import asyncio, sys, deep

async def slow(source, claim):
    with open("called", "a") as file:
        file.write(claim + chr(10))
    await asyncio.sleep(0.02)
    return True

examples = [deep.Example("It rained.", f"claim {n}", str(n)) for n in range(1500)]
print(len(deep.ask(examples, slow, workers=64, ledger="l.sqlite").votes))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without it")
def test_a_killed_run_asks_no_recorded_answer_again(tmp_path):
    """At most as many items are asked twice as there were calls in flight."""
    (tmp_path / "run.py").write_text(KILLED)
    command = [sys.executable, "run.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(deep.__file__).parents[1])}
    run = subprocess.Popen(command, cwd=tmp_path, env=environment)
    while not (tmp_path / "called").exists() or len((tmp_path / "called").read_text().split()) < 600:
        assert run.poll() is None
    run.kill()
    run.wait()
    before = (tmp_path / "called").read_text().splitlines()
    with closing(sqlite3.connect(tmp_path / "l.sqlite")) as book:
        kept = book.execute("SELECT count(*) FROM attempts WHERE outcome = 'answered'").fetchone()[0]
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    called = (tmp_path / "called").read_text().splitlines()
    again = len(called) - len(set(called))
    assert len(set(called)) == 1500
    assert again == len(before) - kept <= 64
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "called").read_text().splitlines() == called


FATAL = """
import os, signal, deep

async def fatal(source, claim):
    with open("called", "a") as file:
        file.write(claim + chr(10))
    os.kill(os.getpid(), signal.SIGKILL)

print(deep.ask([deep.Example("It rained.", "It was wet.", "a")], fatal, ledger="l.sqlite").votes.tolist())
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="a system without it")
def test_a_call_that_kills_its_process_at_once_is_known(tmp_path):
    """No flush is waited for, and yet the start outlives the process; after two deaths the item is left alone."""
    (tmp_path / "run.py").write_text(FATAL)
    command = [sys.executable, "run.py"]
    options = {"cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(Path(deep.__file__).parents[1])}, "text": True}
    first, second, third = (subprocess.run(command, capture_output=True, **options) for _ in range(3))
    assert [run.returncode for run in (first, second, third)] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert "1 requests were in flight when an earlier run ended" in second.stderr
    assert "1 requests were in flight when two runs ended" in third.stderr
    assert third.stdout == "[[-1]]\n"
    assert (tmp_path / "called").read_text().split(".") == ["It was wet", "\nIt was wet", "\n"]


@pytest.mark.parametrize("fails", [False, True])
def test_calls_do_not_wait_for_the_disk(tmp_path, monkeypatch, fails):
    """Calls one after the other need fewer flushes than there are calls, whether they return or raise."""
    flushes = []

    def flush(number):
        flushes.append(number)
        time.sleep(0.05)

    async def quick(source, claim):
        if fails and claim != "claim 0":
            raise ValueError(claim)
        return True

    for name in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, name, flush, raising=False)
    votes = ask(EXAMPLES, quick, ledger=tmp_path / "l", workers=1)
    assert 0 < len(flushes) < len(EXAMPLES)
    assert votes.votes[:, 0].tolist() == [1] + [-1 if fails else 1] * 39


def test_an_answer_is_counted_once_it_is_on_disk(tmp_path, monkeypatch):
    """Where the disk fails, the run stops, and no answer is counted that is not there."""
    seen = []

    def broken(number):
        raise OSError(5, "Input/output error")

    for name in ("fdatasync", "fsync"):
        monkeypatch.setattr(os, name, broken, raising=False)
    with pytest.raises(LedgerError, match=r"cannot be written: \[Errno 5\] Input/output error\. The run stops"):
        ask(EXAMPLES, is_odd, ledger=tmp_path / "l", progress=lambda progress: seen.append(progress.tally.answered))
    assert not any(seen)


def test_a_client_that_a_function_keeps_stays_in_its_loop():
    """Async functions of all runs share one event loop."""
    loops = []

    async def asked(source, claim):
        loops.append(asyncio.get_running_loop())
        return True

    ask(EXAMPLES, asked)
    ask(EXAMPLES, asked)
    assert len(set(loops)) == 1
    assert deep.judge(is_odd_slowly).label(EXAMPLES[1]).vote == 1
