"""Judges that say the same of every claim: whatever command meets them says so, and sends nobody to label in vain."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest

from deep.cli import main
from deep.evaluate import NO_JUDGE_DISTINGUISHES, DecisionCounts, constant_words, suspect_words

N = 40
IN_VAIN = re.compile(r"some 30|lowest|label \d+|independent ones|[Kk]eep these|would do")


def write(path, *, labels, votes):
    """Write a table of votes of one dataset; `votes` are functions of the row's number."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(["dataset", "item_id", "label", *votes])
        for i in range(N):
            table.writerow(["d", i, i % 2 if labels else "", *(vote(i) for vote in votes.values())])
    return str(path)


SAME = {"yes-a": lambda i: 1, "yes-b": lambda i: 1, "no-c": lambda i: 0}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder of its own."""
    monkeypatch.chdir(tmp_path)


def said(capsys, *words):
    """Run a command; return what it printed."""
    assert main(list(words)) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize("labels", [False, True])
def test_a_panel_that_distinguishes_nothing_is_told_everywhere(capsys, labels):
    """By `fit`, `panel` and `score`, with labels or without; no advice to label, no list of the lowest of equals."""
    table = write("v.csv", labels=labels, votes=SAME)
    fitted = said(capsys, "fit", table, "--out", "m.json")
    assert "yes-a, yes-b always say 1: they tell nothing about which claims are consistent." in fitted
    assert "no-c always says 0: it tells nothing about which claims are consistent." in fitted
    scored = said(capsys, "score", "m.json", table, "--out", "s.csv")
    panel = said(capsys, "panel", table)
    for text in (fitted, scored, panel):
        assert NO_JUDGE_DISTINGUISHES in " ".join(text.split())
    assert not IN_VAIN.search(scored + panel.partition("no-c always says")[2])


def test_a_report_of_such_a_panel_asks_for_other_judges(capsys):
    """And not for labels, nor to look at the lowest of equals."""
    table = write("v.csv", labels=False, votes=SAME)
    said(capsys, "fit", table, "--out", "m.json")
    said(capsys, "report", "m.json", table, "--out", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert NO_JUDGE_DISTINGUISHES in page
    assert "add different judges" in page
    assert "lowest below" not in page


def test_the_run_that_asks_them_ends_with_it(capsys, monkeypatch, tmp_path):
    """A function that says yes to everything: `deep ask` says so, on screen and in JSON."""
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("always_yes.py").write_text("def yes(source, claim):\n    return 1\n", encoding="utf-8")
    rows = "".join(f"d,{i},It rained.,It rained {i} times.\n" for i in range(N))
    Path("c.csv").write_text(f"dataset,example_id,source,claim\n{rows}", encoding="utf-8")
    asked = ["votes", "c.csv", "--judge", "always_yes:yes", "--out", "v.parquet"]
    assert f"always says 1: it tells nothing about which claims are consistent.\n{NO_JUDGE_DISTINGUISHES}" in said(
        capsys, *asked
    )
    assert json.loads(said(capsys, *asked, "--json"))["constant_judges"][-1] == NO_JUDGE_DISTINGUISHES


@pytest.mark.parametrize(("grade", "told"), [("0.8", "always says 0.8:"), ("(len(claim) % 7) / 10 + 0.2", None)])
def test_a_function_that_grades_is_told_by_its_grades(capsys, monkeypatch, tmp_path, grade, told):
    """One that gives every claim .8 says so, not 1; one whose grades differ says nothing of the kind."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"grader_{len(grade)}"
    Path(f"{name}.py").write_text(f"def grade(source, claim):\n    return {grade}\n", encoding="utf-8")
    rows = "".join(f"d,{i},It rained.,It rained{'!' * i}\n" for i in range(N))
    Path("c.csv").write_text(f"dataset,example_id,source,claim\n{rows}", encoding="utf-8")
    out = said(capsys, "ask", "c.csv", "--judge", f"{name}:grade", "--out", "v.parquet")
    assert "always says 1" not in out
    assert told in out if told else "always says" not in out


def test_one_judge_that_differs_is_enough(capsys):
    """Then only the constant ones are told."""
    table = write("v.csv", labels=True, votes={**SAME, "good": lambda i: i % 2})
    fitted = said(capsys, "fit", table, "--out", "m.json")
    assert "no-c always says 0" in fitted
    assert NO_JUDGE_DISTINGUISHES not in fitted
    assert NO_JUDGE_DISTINGUISHES not in said(capsys, "score", "m.json", table, "--out", "s.csv")


def test_grades_on_one_side_of_the_middle_are_no_constant(capsys):
    """Grades of 4 and 5 are all votes of 1, and tell the claims apart; a grader that says 4 of all claims does not."""
    table = write("v.csv", labels=False, votes={"varied": lambda i: 4 + i % 2, "flat": lambda i: 4, "low": lambda i: 1})
    scales = ["--scale", "varied=1-5", "flat=1-5", "low=1-5"]
    fitted = said(capsys, "fit", table, *scales, "--out", "m.json")
    assert "varied always" not in fitted
    assert "flat always says 4: it tells nothing" in fitted
    assert "low always says 1: it tells nothing" in fitted
    assert NO_JUDGE_DISTINGUISHES not in fitted
    panel = said(capsys, "panel", table, *scales)
    assert "varied always" not in panel
    assert "flat always says 4: it tells nothing" in panel
    assert NO_JUDGE_DISTINGUISHES not in panel


def test_few_votes_are_alike_by_chance():
    """Nine votes are not told; nor is a judge that has none."""
    assert constant_words({"a": ("1", 9, 9, 9), "b": ("0", 9, 9, 9)}) == []
    assert constant_words({"a": ("0", 38, 40, 40), "b": ("1", 20, 40, 40)}) == []
    assert constant_words({"a": ("0", 98, 100, 100), "b": ("1", 50, 100, 100)}) == [
        "a says 0 for 98 of its 100 claims: that says little about which claims are consistent."
    ]


def test_rules_that_vote_one_class_or_not_at_all_are_told_of_nothing():
    """Where they vote says what they know; P differs by that, so nobody says that no judge distinguishes the items."""
    against = ("0", 60, 60, 100)
    assert constant_words({"for": ("1", 40, 40, 100), "against": against}) == []
    assert NO_JUDGE_DISTINGUISHES not in constant_words({"yes": ("1", 100, 100, 100), "against": against})
    assert NO_JUDGE_DISTINGUISHES not in constant_words({"yes": ("1", 95, 95, 100)})


def test_one_item_or_none_is_no_panel_of_equals():
    """P of a single item is the P of all items, and says nothing of judges."""
    one = dict.fromkeys(("p_consistent", "p_low", "p_high"), np.array([0.4]))
    one |= dict.fromkeys(("decision", "sure", "n_votes"), np.array([1]))
    counts = DecisionCounts()
    assert not counts.alike
    counts.add(["d"], ["1"], one)
    assert not counts.alike
    counts.add(["d"], ["2"], one)
    assert NO_JUDGE_DISTINGUISHES in suspect_words(counts)


def test_items_of_both_ends_are_of_neither(capsys):
    """Where most items have one P, the lowest and the highest end before it, and no tenth of P is spoken of."""
    seldom = {f"j{k}": lambda i, k=k: int(i in (k, k + 20)) for k in range(3)}
    table = write("v.csv", labels=False, votes=seldom)
    said(capsys, "fit", table, "--out", "m.json")
    scored = said(capsys, "score", "m.json", table, "--out", "s.csv")
    low, _, high = scored.partition("The highest P")
    listed = [set(re.findall(r"undecided +(\d+) of d", part)) for part in (low, high)]
    assert not listed[0] & listed[1]
    assert f"The other {N - len(listed[0] | listed[1])} have the same P, " in scored
    assert "tenth of P" not in scored
