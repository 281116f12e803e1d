"""The desk of labels and its application: who gets which item, what is sent, what is kept, and what is refused."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_labels
from deep.exceptions import InputError
from deep.integrations.labeling import (
    export_labels,
    label_app,
    open_label_desk,
    read_annotations,
    read_label_log,
    read_label_subject,
)
from deep.integrations.serve import serving
from deep.model import fit
from tests.deep_commands import adapt, check, label, votes
from tests.deep_commands import fit as fit_command
from tests.guests.serve.label_case import CLAIMS, DATASET
from tests.guests.serve.serving_case import ask


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a table of votes, which remembers its examples."""
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "all", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def subject(table):
    """Return what is to be labeled, by the votes alone."""
    return read_label_subject([str(table)])


def item_of(state):
    """Return the id of the item that a state shows."""
    return state["item"]["item_id"]


def label_all(desk, person, choose):
    """Label until nothing is left; return the items, in order."""
    seen, state = [], desk.state(person)
    while state["item"]:
        seen.append(item_of(state))
        state = desk.answer(person, seen[-1], choose(seen[-1]))
    return seen


def test_every_item_once_and_some_twice(subject, tmp_path):
    """Two people share the work; those for two are given to both, and to a third only by mistake."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=12, double=4) as desk:
        states = {who: desk.state(who) for who in ("Ann", "Bob")}
        assert item_of(states["Ann"]) == item_of(states["Bob"])  # the first of those for two
        given = {"Ann": [], "Bob": []}
        while any(state["item"] for state in states.values()):
            for who, state in states.items():
                if state["item"]:
                    given[who].append(item_of(state))
                    states[who] = desk.answer(who, item_of(state), len(given[who]) % 2)
        queue = [item for _, item in desk.log.book.queue]
        assert set(given["Ann"]) | set(given["Bob"]) == set(queue)
        both = set(given["Ann"]) & set(given["Bob"])
        assert both >= set(queue[:4])
        assert len(both) <= 5  # the last item, which one of them held as nothing else was left for the other
        assert desk.state("Zoe")["item"] is None
        result = desk.enough()
        assert result["agreement"]["items"] == len(both)
        names = [row["name"] for row in result["agreement"]["measures"]]
        assert names == ["Cohen's kappa, Ann and Bob", "Fleiss' kappa", "Krippendorff's alpha"]
        assert desk.state("Ann")["progress"]["complete"] == 12


def test_two_people_hold_different_items(subject, tmp_path):
    """And one alone is given what somebody else holds and does not label."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=2) as desk:
        assert item_of(desk.state("Ann")) == item_of(desk.state("Ann"))
        first, second = item_of(desk.state("Ann")), item_of(desk.state("Bob"))
        assert first != second
    with open_label_desk(subject, tmp_path / "labels.csv", n=2) as desk:  # after a restart too
        assert item_of(desk.state("Bob")) == second
        assert item_of(desk.answer("Bob", second, 1)) == first


def test_nothing_but_texts_is_sent_before_a_label(subject, tmp_path):
    """No vote, no P, no label of anybody else; after a label, on request, and that is kept."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=3, double=3) as desk:
        shown = desk.state("Bob")
        first = item_of(shown)
        desk.answer("Ann", first, 0, "Ann's note")
        assert desk.state("Bob")["item"] == shown["item"]
        assert desk.state("Bob")["last"] is None
        assert set(shown) == {"person", "item", "last", "progress", "expected", "problem"}
        assert set(shown["item"]) == {"item_id", "claim", "source", "question", "sentences", "revealed"}
        with pytest.raises(InputError, match="`item_id` must be an item that you have labeled"):
            desk.reveal("Bob", first)
        desk.answer("Bob", first, 1)
        result = desk.reveal("Bob", first)
        assert [(each["person"], each["label"], each["note"]) for each in result["people"]] == [
            ("Ann", 0, "Ann's note"),
            ("Bob", 1, ""),
        ]
        assert len(result["item"]["votes"]) == len(result["item"]["voters"]) == subject.target.votes.shape[1]
        row = subject.target.votes.item_ids.tolist().index(first)
        assert result["item"]["p"] == subject.scores.p_consistent[row]
        desk.reveal("Bob", first)
        state = desk.undo("Bob")
        assert (item_of(state), state["item"]["revealed"]) == (first, True)
        desk.answer("Bob", first, 0)
        summary = desk.summary()
        assert summary["after_reveal"] == 1
    with closing(sqlite3.connect(tmp_path / "labels.log.sqlite")) as log:
        deeds = [json.loads(event)["do"] for (event,) in log.execute("SELECT event FROM events ORDER BY number")]
    assert deeds.count("reveal") == 1
    rows = pd.read_csv(tmp_path / "labels.annotations.csv")
    assert rows[["annotator", "after_reveal"]].to_numpy().tolist() == [["Ann", 0], ["Bob", 1]]


def test_skipped_and_undone(subject, tmp_path):
    """A skipped item goes to others, and comes again on request; undo goes back one by one."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=2) as desk:
        first = item_of(desk.state("Ann"))
        second = item_of(desk.answer("Ann", first, None))
        state = desk.answer("Ann", second, -1)
        assert state["item"] is None
        names = ("items", "complete", "wanted", "given", "labeled", "skipped", "left", "waiting")
        assert state["progress"] == dict(zip(names, (2, 1, 2, 1, 1, 1, 0, 0), strict=True))
        assert item_of(desk.state("Bob")) == first
        assert item_of(desk.again("Ann")) == first
        assert item_of(desk.undo("Ann")) == second
        assert desk.undo("Ann")["last"] is None
        assert desk.log.book.majority() == {}


def test_it_goes_on_where_it_ended(subject, tmp_path):
    """With the same items, whatever the seed; more are added, and a later desk may double some."""
    out = tmp_path / "labels.csv"
    with open_label_desk(subject, out, n=4) as desk:
        queue = list(desk.log.book.queue)
        done = item_of(desk.state("Ann"))
        desk.answer("Ann", done, 1)
    with open_label_desk(subject, out, n=4, random_state=7) as desk:
        assert list(desk.log.book.queue) == queue
        assert item_of(desk.state("Ann")) != done
    with open_label_desk(subject, out, n=6, double=1) as desk:
        assert list(desk.log.book.queue)[:4] == queue
        assert list(desk.log.book.queue.values()) == [2, 1, 1, 1, 1, 1]
        assert desk.state("Bob")["progress"]["items"] == 6
    with open_label_desk(subject, out, n=2) as desk:
        assert len(desk.log.book.queue) == 6


def test_labels_are_read_by_the_other_commands(table, subject, tmp_path, capsys):
    """`deep fit --labels`, `deep adapt`, `deep check` and `deep label agreement` take them as they are."""
    out, rng = tmp_path / "labels.csv", np.random.default_rng(0)
    with open_label_desk(subject, out, n=60, double=20) as desk:
        for who in ("Ann", "Bob"):
            label_all(desk, who, lambda _: int(rng.random() < 0.6))
        ties = desk.summary()["ties"]
    assert ties > 0
    assert len(read_labels(out).labels) == 60 - ties
    assert len(read_annotations(tmp_path / "labels.annotations.csv").annotators) == 2
    model = str(tmp_path / "model.json")
    fit(replace(subject.target.votes, labels=np.full(200, -1))).save(model)
    mine = ["--votes", str(table), "--labels", str(out)]
    assert fit_command([str(table), "--labels", str(out), "--out", str(tmp_path / "fitted.json")]) == 0
    assert adapt([model, *mine, "--out", str(tmp_path / "adapted.json")]) == 0
    assert check([model, *mine]) in (0, 1)
    assert label(["agreement", str(tmp_path / "labels.annotations.csv"), "--n-boot", "50"]) == 0
    assert "Cohen's kappa, Ann and Bob: " in capsys.readouterr().out


def test_enough_is_told_by_error_and_canary(subject, tmp_path):
    """The expected error falls as labels come; labels against the model are found, labels drawn by its P are not."""
    rng = np.random.default_rng(0)
    p = dict(zip(subject.target.votes.item_ids, subject.scores.p_consistent, strict=True))
    for name, wrong in (("right", False), ("wrong", True)):
        with open_label_desk(subject, tmp_path / f"{name}.csv", n=40) as desk:
            before = desk.enough()
            assert before["canary"] is None
            label_all(desk, "Ann", lambda item, wrong=wrong: int((rng.random() < p[item]) != wrong))
            after = desk.enough()
        assert after["expected"]["now"] == pytest.approx(after["expected"]["then"])
        assert after["expected"]["now"] == pytest.approx(before["expected"]["then"])
        assert after["expected"]["now"] < before["expected"]["now"]
        assert after["canary"]["flagged"] == wrong
        assert after["canary"]["n_labels"] == 40


def test_a_model_gives_p(table, subject, tmp_path):
    """In place of the votes alone; one that labels have corrected proposes nothing."""
    unlabeled = replace(subject.target.votes, labels=np.full(200, -1))
    fit(unlabeled).save(tmp_path / "model.json")
    result = read_label_subject([str(table)], model=tmp_path / "model.json")
    np.testing.assert_allclose(result.scores.p_consistent, subject.scores.p_consistent)
    labels = np.arange(200) % 2
    fit(unlabeled).adapted(unlabeled, labels, target=DATASET).save(tmp_path / "adapted.json")
    adapted = read_label_subject([str(table)], model=tmp_path / "adapted.json")
    with pytest.raises(InputError, match="`model` must not have been corrected by labels"):
        adapted.propose(3)


def test_labels_of_elsewhere_are_passed_over(table, subject, tmp_path):
    """They count for the canary; the items are not proposed."""
    rows = pd.DataFrame({"dataset": DATASET, "item_id": subject.target.votes.item_ids[:150], "label": 1})
    rows.to_csv(tmp_path / "before.csv", index=False)
    more = read_label_subject([str(table)], labels=[str(tmp_path / "before.csv")])
    with open_label_desk(more, tmp_path / "labels.csv", n=50) as desk:
        assert not {item for _, item in desk.log.book.queue} & set(rows["item_id"])
        assert desk.enough()["canary"]["n_labels"] == 150
    with open_label_desk(subject, tmp_path / "begun.csv", n=190):
        pass
    for which, out, counts, message in (
        (more, "other", {"n": 51}, "`n` must be a whole number from 1 to 50"),
        (subject, "begun", {"n": 201}, "`n` must be at most 200, the 190 items of .* and the 10 others.*Got 201"),
        (subject, "new", {"n": 3, "double": -1}, "`double` must be from 0 to 3, the number of items to label. Got -1"),
        (subject, "new", {"n": 3, "double": 4}, "`double` must be from 0 to 3, the number of items to label. Got 4"),
    ):
        with pytest.raises(InputError, match=message), open_label_desk(which, tmp_path / f"{out}.csv", **counts):
            pass


def test_labels_beside_the_votes_are_passed_over(table, tmp_path):
    """And used for nothing; if nothing is left to label, it is said in one line, and no range without a number."""
    frame = pd.read_parquet(table)
    frame["label"] = [1] * 190 + [None] * 10
    frame.to_csv(tmp_path / "votes.csv", index=False)
    result = read_label_subject([str(tmp_path / "votes.csv")], examples=CLAIMS)
    assert result.target.n_labels == 0
    assert {item for _, item in result.propose(10)} == set(frame["item_id"][190:])
    frame.assign(label=1).to_csv(tmp_path / "votes.csv", index=False)
    result = read_label_subject([str(tmp_path / "votes.csv")], examples=CLAIMS)
    with pytest.raises(InputError, match=r"`votes` must hold an item without a label. Got 200 items, all with one"):
        result.propose(3)


def test_one_dataset_is_chosen(table, tmp_path):
    """By name, where votes are of several."""
    frame = pd.read_parquet(table)
    pd.concat([frame, frame.assign(dataset="other")]).to_csv(tmp_path / "two.csv", index=False)
    with pytest.raises(
        InputError, match=f"`dataset` must be given where votes are of several. Got none of other, {DATASET}"
    ):
        read_label_subject([str(tmp_path / "two.csv")])
    result = read_label_subject([str(tmp_path / "two.csv")], dataset="other")
    assert result.target.name == "other"
    with pytest.raises(InputError, match="`examples` must hold the texts of all 3 items to label"):
        result.texts(result.propose(3))


def test_no_table_of_others_is_lost(subject, tmp_path):
    """Labels without a log are somebody else's; a log of other votes is no place for these."""
    out = tmp_path / "labels.csv"
    out.write_text("dataset,item_id,label\nnews,a,1\n")
    new = "`out` must be a new file, or one that `deep label` wrote"
    for empty in (False, True):  # what a start on a full disk may have left, if it was killed
        if empty:
            out.with_suffix(".log.sqlite").touch()
        with pytest.raises(InputError, match=new), open_label_desk(subject, out):
            pass
        assert out.read_text().endswith("news,a,1\n")
    other = replace(subject, target=replace(subject.target, votes=subject.target.votes.rows(np.arange(100))))
    out = tmp_path / "all.csv"
    with open_label_desk(subject, out, n=200):
        pass
    same = "`out` must be new, or belong to the same votes"
    with pytest.raises(InputError, match=same), open_label_desk(other, out):
        pass


def test_each_person_is_told_of_what_was_mended(subject, tmp_path):
    """Once, whoever's answer met it, and the terminal at the end: a new copy in place of one that was removed."""
    mended = "labels.log.sqlite.copy' is gone. It was written anew with all labels"
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        first = {who: item_of(desk.state(who)) for who in ("Ann", "Bob")}
        (tmp_path / "labels.log.sqlite.copy").unlink()
        assert mended in desk.answer("Ann", first["Ann"], 1)["problem"]
        assert mended not in desk.state("Ann")["problem"]
        assert mended in desk.state("Bob")["problem"]
        assert mended not in desk.answer("Bob", first["Bob"], 1)["problem"]
        assert desk.summary()["problem"].count(mended) == 1


def test_a_folder_that_is_gone_is_made_again(subject, tmp_path, monkeypatch):
    """With the log in it, and that is told; also where the server was started in it."""
    folder = tmp_path / "labels"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with open_label_desk(subject, folder / "labels.csv", n=3) as desk:
        first = item_of(desk.state("Ann"))
        shutil.rmtree(folder)
        assert "is gone. It was written anew with all labels" in desk.answer("Ann", first, 1)["problem"]
    book, told = read_label_log(folder / "labels.csv")
    assert (book.majority(), told) == ({(DATASET, first): 1}, "")
    assert len(read_labels(folder / "labels.csv").labels) == 1


def test_a_full_disk_keeps_the_item(subject, tmp_path, monkeypatch):
    """Nothing has changed, and the next try succeeds; tables that cannot be written are told, the log goes on."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        first = item_of(desk.state("Ann"))
        with monkeypatch.context() as patched:
            patched.setattr("deep.integrations.labeling._label_log._insert", _no_space)
            with pytest.raises(OSError, match="disk is full"):
                desk.answer("Ann", first, 1)
        assert item_of(desk.state("Ann")) == first
        with monkeypatch.context() as patched:
            patched.setattr("deep.integrations.labeling._desk.write_labels", _refused)
            assert "No room" in desk.answer("Ann", first, 1)["problem"]
        assert desk.answer("Ann", item_of(desk.state("Ann")), 1)["problem"] == ""
    assert len(read_labels(tmp_path / "labels.csv").labels) == 2


def test_a_full_disk_at_the_start_leaves_no_log(subject, tmp_path, monkeypatch):
    """One line tells of it, no file is left that looks like a round of labels, and the next start works."""
    with monkeypatch.context() as patched:
        patched.setattr("deep.integrations.labeling._label_log._insert", _no_space)
        with pytest.raises(OSError, match="disk is full"), open_label_desk(subject, tmp_path / "labels.csv", n=3):
            pass
    assert not list(tmp_path.glob("labels*"))
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        assert (desk.log.told, len(desk.log.book.queue)) == ("", 3)


def _no_space(*_):
    raise sqlite3.OperationalError("database or disk is full")


def _refused(*_):
    raise InputError("`out` must be writable. Got No room.")


@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", os.mkdir)])
def test_a_folder_or_a_pipe_in_the_place_of_a_table_is_told(subject, tmp_path, make):
    """No answer waits for it or is refused: the log has it."""
    table = tmp_path / "labels.csv"
    with open_label_desk(subject, table, n=3) as desk:
        desk.answer("Ann", item_of(desk.state("Ann")), 1)
        table.unlink()
        make(table)
        assert str(table) in desk.answer("Ann", item_of(desk.state("Ann")), 0)["problem"]
        table.rmdir() if table.is_dir() else table.unlink()
        assert desk.answer("Ann", item_of(desk.state("Ann")), 1)["problem"] == ""
    assert len(read_labels(table).labels) == 3


def test_labels_of_others_in_the_tables_are_kept(subject, tmp_path):
    """Beside, and told which; labels that were taken back are none of them."""
    out = tmp_path / "labels.csv"
    with open_label_desk(subject, out, n=3) as desk:
        first = item_of(desk.state("Ann"))
        desk.answer("Ann", first, 1)
        desk.undo("Ann")
        desk.answer("Ann", first, 0)
        out.write_text(out.read_text() + f"{DATASET},by-hand,1\n")
        message = desk.answer("Ann", item_of(desk.state("Ann")), 1)["problem"]
        assert "held 1 rows that are not in the log (by-hand 1). It was renamed to 'labels.csv.old'." in message
        assert desk.answer("Ann", item_of(desk.state("Ann")), 1)["problem"] == ""
    assert (tmp_path / "labels.csv.old").read_text().endswith("by-hand,1\n")
    for file in tmp_path.glob("labels.log.sqlite*"):  # the log and its copy of another day come back
        with closing(sqlite3.connect(file)) as log, log:
            log.execute("DELETE FROM events WHERE number > (SELECT max(number) - 4 FROM events)")
    with open_label_desk(subject, out, n=3) as desk:
        assert "It was renamed to 'labels.csv.old1'" in desk.summary()["problem"]
        assert "It was renamed to 'labels.annotations.csv.old'" in desk.summary()["problem"]
    assert len((tmp_path / "labels.csv.old1").read_text().splitlines()) == 4


def test_two_spellings_of_a_name_are_one_person(subject, tmp_path):
    """Composed and decomposed letters look alike."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        desk.answer("\u00c1nn", item_of(desk.state("\u00c1nn")), 1)
        state = desk.state(" A\u0301nn ")
        assert (state["person"], state["progress"]["labeled"]) == ("\u00c1nn", 1)
        desk.answer("A\u0301nn", item_of(state), 1)
        assert desk.start()["people"] == ["\u00c1nn"]
        assert desk.undo("A\u0301\u200dn\u3164n  ")["progress"]["labeled"] == 1


def test_items_are_laid_out_as_people_come_to_them(subject, tmp_path, monkeypatch):
    """All are labeled in the end, also after a new start; the log holds no more than it needs."""
    monkeypatch.setattr("deep.integrations.labeling._desk.N_LAID_OUT", 4)
    out = tmp_path / "labels.csv"
    with open_label_desk(subject, out, n=30, double=2) as desk:
        assert (len(desk.log.book.queue), desk.summary()["items"]) == (4, 30)
        progress = desk.state("Ann")["progress"]
        assert (progress["items"], progress["wanted"], progress["left"]) == (30, 32, 30)
        for _ in range(6):
            desk.answer("Ann", item_of(desk.state("Ann")), 1)
        assert len(desk.log.book.queue) == 8
    with open_label_desk(subject, out, n=30, double=2) as desk:
        assert desk.state("Ann")["progress"]["left"] == 24
        for who in ("Ann", "Bob"):
            label_all(desk, who, lambda _: 1)
        assert desk.summary()["complete"] == desk.summary()["items"] == 30
    assert len(read_labels(out).labels) == 30


def test_items_without_texts_further_on_are_left_out(subject, tmp_path, monkeypatch):
    """And that is told; the others come."""
    monkeypatch.setattr("deep.integrations.labeling._desk.N_LAID_OUT", 4)
    with open_label_desk(subject, tmp_path / "labels.csv", n=12) as desk:
        result = type(subject).found_texts
        monkeypatch.setattr(type(subject), "found_texts", lambda self, items: result(self, items[:1]))
        for _ in range(4):
            state = desk.answer("Ann", item_of(desk.state("Ann")), 1)
        assert state["problem"] == "3 of the next items have no text, and are left out."
        label_all(desk, "Ann", lambda _: 1)
        assert desk.summary()["items"] == 6


def test_export(subject, tmp_path):
    """The tables of a log are written again, there or elsewhere; what is amiss is told."""
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        label_all(desk, "Ann", lambda _: 1)
    before = (tmp_path / "labels.csv").read_text()
    (tmp_path / "labels.csv").unlink()
    log = tmp_path / "labels.log.sqlite"
    log.unlink()
    result = export_labels(log)
    assert (result["labels"], result["people"]) == (3, {"Ann": 3})
    assert result["problem"] == "'labels.log.sqlite' is gone"
    assert (tmp_path / "labels.csv").read_text() == before
    export_labels(log, tmp_path / "more.csv")
    assert (tmp_path / "more.annotations.csv").read_text() == (tmp_path / "labels.annotations.csv").read_text()
    with pytest.raises(InputError, match=r"`out` must end in \.csv"):
        export_labels(log, tmp_path / "more.txt")


def post(address, path, fields, **headers):
    """Return the status and the JSON that a request is answered with."""
    return ask(address, path, body=fields, **headers)[:2]


def test_the_application(subject, tmp_path, monkeypatch):
    """Serves the page and its calls; whatever cannot be meant is refused, and nothing is kept of it."""
    with (
        open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk,
        serving(label_app(desk, person="Ann")) as address,
    ):
        for path, word in (("/", "<h1>"), ("/label.css", "#pair"), ("/parts.js", "gauge("), ("/label.js", "reveal(")):
            with urlopen(f"{address}{path}", timeout=300) as answer:
                assert word in answer.read().decode()
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert post(address, "/start", {}) == (200, {"dataset": DATASET, "people": [], "person": "Ann"})
        status, state = post(address, "/state", {"person": " Ann "})
        assert (status, state["person"]) == (200, "Ann")
        item = item_of(state)
        bad = [
            ({"person": ""}, "`person` must be printable text"),
            ({"person": "A\u202eB"}, "`person` must be printable text"),
            ({"person": "A" * 101}, "`person` must have at most 100 characters"),
            ({"person": 3}, "`person` must be text"),
            ({"item_id": "none"}, "`item_id` must be one of the items to label"),
            ({"label": 1}, "`label` must be text"),
            ({"label": "maybe"}, "`label` must be one of 0, 1, skip, undecided"),
            ({"note": "x" * 2001}, "`note` must have at most 2,000 characters"),
            ([], "`body` must be a JSON object"),
        ]
        right = {"person": "Ann", "item_id": item, "label": "1", "note": ""}
        for fields, message in bad:
            status, result = post(address, "/answer", right | fields if isinstance(fields, dict) else fields)
            assert status == 422
            assert message in result["error"]["message"]
        assert post(address, "/answer", b"{")[0] == 400
        assert post(address, "/answer", right, Origin="http://evil.example")[0] == 403
        assert post(address, "/answer", right, Host="evil.example")[0] == 421
        assert post(address, "/answer", right, Content_Type="text/plain")[0] == 415
        assert read_label_log(tmp_path / "labels.log.sqlite")[0].answers == {"Ann": {}}
        with monkeypatch.context() as patched:
            patched.setattr("deep.integrations.labeling._label_log._insert", _no_space)
            status, result = post(address, "/answer", right)
        assert (status, result["error"]["code"]) == (507, "not_kept")
        assert post(address, "/answer", right)[0] == 200
        assert post(address, "/answer", right)[0] == 422
        assert post(address, "/reveal", {"person": "Ann", "item_id": item})[1]["item"]["id"] == item
        assert post(address, "/enough", {})[1]["canary"]["n_labels"] == 1
        assert item_of(post(address, "/undo", {"person": "Ann"})[1]) == item
        assert post(address, "/answer", right | {"label": "skip"})[0] == 200
        assert item_of(post(address, "/again", {"person": "Ann"})[1])


def test_positions_are_those_of_scripts(table, tmp_path):
    """Sentences stand where JavaScript counts them, also after characters of two units."""
    frame = pd.read_csv(CLAIMS)
    frame["source"] = "\U0001f600 One \U0001f600 smile. Two smiles."
    frame.to_csv(tmp_path / "claims.csv", index=False)
    subject = read_label_subject([str(table)], examples=Path(tmp_path, "claims.csv"))
    with open_label_desk(subject, tmp_path / "labels.csv", n=1) as desk:
        shown = desk.state("Ann")["item"]
    units = shown["source"].encode("utf-16-le")
    result = [units[2 * start : 2 * end].decode("utf-16-le") for start, end in shown["sentences"]]
    assert result == ["\U0001f600 One \U0001f600 smile.", "Two smiles."]


def test_the_page_says_that_the_log_was_changed(subject, tmp_path):
    """Once, and the answer is in the log that was written anew."""
    with (
        open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk,
        serving(label_app(desk)) as address,
    ):
        item = item_of(post(address, "/state", {"person": "Ann"})[1])
        log = tmp_path / "labels.log.sqlite"
        log.write_bytes(b"x" * 5000)
        answer = {"person": "Ann", "item_id": item, "label": "1", "note": "kept"}
        status, result = post(address, "/answer", answer)
        assert status == 200
        assert "is not a complete log (file is not a database). It was written anew" in result["problem"]
        assert "what stood there is in 'labels.log.sqlite.broken'" in result["problem"]
        assert post(address, "/state", {"person": "Ann"})[1]["problem"] == ""
    assert (tmp_path / "labels.log.sqlite.broken").read_bytes() == b"x" * 5000
    with open_label_desk(subject, tmp_path / "labels.csv", n=3) as desk:
        assert desk.log.told == ""
        assert desk.log.book.answers["Ann"][DATASET, item].note == "kept"
