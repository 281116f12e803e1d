"""Votes of a run that was stopped, those of a ledger alone, and files of two runs beside each other."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from deep.datasets import Failures, file_beside, read_judgments, read_reasons, read_scores, read_votes
from deep.evaluate._cards import against_itself
from deep.exceptions import InputError
from tests.commands.test_votes_command import arguments, examples, outputs  # noqa: F401
from tests.deep_commands import votes as main
from tests.fault_server import FaultServer
from tests.llm.crash import PROMPTS, write_examples

pytestmark = pytest.mark.usefixtures("own_key")


def test_a_stopped_run_takes_no_finished_run_away(examples, capsys, tmp_path):  # noqa: F811
    """Its votes lie beside those of a run that came to its end, which may be of other judges."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 2.0\n")
    with FaultServer() as server:
        more = ("--prices", prices, "--max-tokens", "100", "--budget", "0.02")
        assert main(arguments(examples, server.url, "--ledger", tmp_path / "one", prompts=PROMPTS[:1])) == 0
        before = {path.name: path.read_bytes() for path in tmp_path.glob("votes.*parquet")}
        for _ in range(2):
            assert main(arguments(examples, server.url, *more)) == 3
    assert before == {name: (tmp_path / name).read_bytes() for name in before}
    assert pd.read_parquet(tmp_path / "votes.partial.parquet").shape == (30, 6)
    assert (tmp_path / "votes.partial.reasons.parquet").exists()
    assert "They are in " + str(tmp_path / "votes.partial.parquet") in capsys.readouterr().out


def test_votes_are_had_from_a_ledger_alone(examples, capsys, monkeypatch):  # noqa: F811
    """A lost output, an old ledger: nothing is asked, no key is needed, and what was never asked says so."""
    with FaultServer() as server:
        assert main(arguments(examples, server.url)) == 0
        n, whole = server.count, outputs(examples)[0]
        ledger = examples.with_name("votes.ledger.sqlite")
        for path in examples.parent.glob("votes.*parquet"):
            path.unlink()
        monkeypatch.delenv("OPENAI_API_KEY")
        words = arguments(examples, server.url, "--from-ledger", ledger, prompts=PROMPTS[:3])
        assert main(words) == 0
        message = capsys.readouterr().out
        assert "60 of 90 judgments are made; the others were never asked." in message
        votes, reasons = outputs(examples)
        pd.testing.assert_frame_equal(votes[whole.columns], whole)
        assert reasons["reason"].tolist() == ["not_asked"] * 30
        assert main(arguments(examples, server.url, "--from-ledger", ledger, prompts=PROMPTS[3:4])) == 2
        assert "`from_ledger` must hold answers to these questions. Got none. Give" in capsys.readouterr().err
        assert main([str(examples), "--lexical", "numbers", "--from-ledger", str(ledger)]) == 2
        assert "`ledger` must be given where LLMs are asked." in capsys.readouterr().err
        assert main(arguments(examples, server.url, "--from-ledger", examples.with_name("none"))) == 2
        pd.testing.assert_frame_equal(outputs(examples)[0], votes)
        assert server.count == n


BESIDE = ("judgments", "reasons", "soft")


@pytest.mark.parametrize("kind", BESIDE)
def test_files_of_two_runs_are_not_read_together(tmp_path, kind):
    """Two ids are refused with the remedy; a file without one, as an older deep or another tool wrote it, is read."""
    news = write_examples(tmp_path / "news.csv", 30)
    table = tmp_path / "votes.parquet"
    readers = {
        "judgments": lambda: list(read_judgments(table)),
        "reasons": lambda: read_reasons([table], read_votes(table)),
        "soft": lambda: read_scores(file_beside(table, "soft")),
    }
    other = file_beside(table, kind)
    for _ in range(2):
        old = other.read_bytes() if other.exists() else b""
        assert main([str(news), "--lexical", "all", "--out", str(table)]) == 0
        readers[kind]()
    other.write_bytes(old)
    with pytest.raises(
        InputError, match=rf"of the same run. Got '.*votes.parquet' and '.*{kind}.parquet', of two runs."
    ):
        readers[kind]()
    pq.write_table(pq.read_table(other).replace_schema_metadata(None), other)
    readers[kind]()


@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_kill_between_two_renames_is_noticed(tmp_path, killed_after):
    """Of a table, and the files beside it, half of which are new, no reader makes anything; the rest is found."""
    news, table = write_examples(tmp_path / "news.csv", 30), tmp_path / "votes.parquet"
    words = [str(news), "--lexical", "all", "--out", str(table)]
    assert main(words) == 0
    code = f"""
import os; from pathlib import Path; from deep.cli import main
moved, replace = [], Path.replace
def dying(path, place):
    if len(moved) == {killed_after}:
        os.kill(os.getpid(), 9)
    moved.append(replace(path, place))
Path.replace = dying
main(["ask", *{words!r}])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == -9
    (part,) = tmp_path.glob(".deep-*.part")
    votes = read_votes(table)
    with pytest.raises(InputError, match=rf"of two runs. To mend it, move the files of '.*{part.name}/whole' here, or"):
        [read_reasons([table], votes), list(read_judgments(table)), read_scores(file_beside(table, "soft"))]
    for path in (part / "whole").iterdir():
        path.rename(tmp_path / path.name)
    assert read_reasons([table], votes)
    assert len(list(read_judgments(table))) == 30 * votes.shape[1]
    assert main(words) == 0


def test_what_was_not_asked_is_no_failure():
    """Neither a judge's failure, nor among the items that its share of failures is counted on."""
    reasons = {"abstained": 2, "failed": 1, "no_source": 1, "not_asked": 5}
    assert Failures("a", "news", 10, reasons).rate == 0.25
    votes = np.array([1] + [-1] * 9, dtype=np.int8)
    assert against_itself(votes, reasons, None).failure_rate == 0.25
    assert Failures("a", "news", 10, {"not_asked": 10}).rate == 0.0


def slow(source, claim):
    """Judge for two cents, and interrupt the run at the third claim."""
    if "e2" in claim:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
    return 1


def test_ctrl_c_waits_for_no_judge_that_was_not_asked(tmp_path, capsys):
    """Answers of functions that are kept are written; no function is called, and no check made, for the rest."""
    news = tmp_path / "news.csv"
    news.write_text("source,claim\n" + "".join(f"Rain fell.,Rain fell e{i}.\n" for i in range(9)))
    words = [
        str(news),
        "--judge",
        "tests.commands.test_partial_votes:slow",
        "--lexical",
        "numbers",
        "--concurrency",
        "1",
    ]
    assert main([*words, "--out", str(tmp_path / "votes.parquet")]) == 130
    message = capsys.readouterr().out
    votes = pd.read_parquet(tmp_path / "votes.parquet").iloc[:, 3:]
    assert 0 < votes.iloc[:, 0].notna().sum() < 9
    assert votes.iloc[:, 1].isna().all()
    assert f"{votes.notna().sum().sum()} of 18 judgments are made. They are in" in message
