"""The log of labels: any events in any order, torn tails, one process at a time, full disks, and a killed process."""

import errno
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deep import VoteMatrix
from deep.datasets import read_labels, read_people
from deep.exceptions import InputError
from deep.integrations.labeling import (
    AnswerBook,
    LabelEvent,
    label_log_files,
    open_label_log,
    read_annotations,
    read_label_log,
    write_annotations,
    write_labels,
)
from deep.integrations.labeling import _held_file as module

ITEMS = st.sampled_from(["a", "b", "007", 'q"u,o\nte', "ü"])
NOTES = st.text(max_size=8) | st.just("line\r\nnext \u2028 \ud800")
EVENTS = st.lists(
    st.builds(
        LabelEvent,
        do=st.sampled_from(["label", "label", "label", "skip", "undo", "reveal", "show"]),
        dataset=st.just("news"),
        item_id=ITEMS,
        person=st.sampled_from(["Ann", "Bob", "Çem"]),
        label=st.sampled_from([1, 0, -1]),
        note=NOTES,
    ),
    max_size=25,
)


NO_COPY = "no copy beside it had all of its lines; there is a new one"


def written(folder, events):
    """Return the place of a log with these events, and no copy beside it."""
    path = Path(folder, "labels.jsonl")
    with open_label_log(path) as log:
        for event in events:
            log.add(event)
    for copy in label_log_files(path)[1:]:
        copy.unlink()
    return path


def replayed(events):
    """Return what holds after events by the plainest reading of them: the last word of a person on an item."""
    last = {}
    for event in events:
        if event.do in ("label", "skip"):
            last[event.person, event.item_id] = event.label if event.do == "label" else None
        elif event.do == "undo":
            last.pop((event.person, event.item_id), None)
    return last


@given(EVENTS)
def test_what_was_added_is_read_again(events):
    """Whatever the order, and with undo; a label after a look at the others' is marked."""
    with tempfile.TemporaryDirectory() as folder:
        book, torn = read_label_log(written(folder, events))
    assert torn == ""
    found = {(who, item[1]): given.label for who, own in book.answers.items() for item, given in own.items()}
    assert found == replayed(events)
    for at, event in enumerate(events):
        later = [e for e in events[at + 1 :] if (e.person, e.item_id) == (event.person, event.item_id)]
        if event.do == "label" and not any(e.do in ("label", "skip", "undo") for e in later):
            before = [e for e in events[:at] if (e.person, e.item_id, e.do) == (event.person, event.item_id, "reveal")]
            given_answer = book.answers[event.person][event.item]
            assert given_answer.after_reveal == bool(before)
            assert given_answer.note == event.note


@given(EVENTS.filter(bool), st.data())
def test_a_torn_tail_loses_nothing_before_it(events, data):
    """Cut anywhere in the last line: the others are there, the log goes on, and a reader is told."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, events)
        whole = path.read_bytes()
        start = whole[:-1].rfind(b"\n") + 1
        cut = data.draw(st.integers(start, len(whole)))
        path.write_bytes(whole[:cut])
        kept = events if cut >= len(whole) - 1 else events[:-1]
        torn = start < cut < len(whole)
        assert bool(read_label_log(path)[1]) == torn
        more = LabelEvent("label", "news", "z", "Zoe", 1)
        with open_label_log(path) as log:
            assert (log.told not in ("", NO_COPY)) == torn
            log.add(more)
        book, torn_now = read_label_log(path)
    assert torn_now == ""
    found = {(who, item[1]): given.label for who, own in book.answers.items() for item, given in own.items()}
    assert found == replayed([*kept, more])


@example([LabelEvent("label", "news", "a", "Ann", 1, note="\r")])
@given(EVENTS)
def test_the_tables_say_the_same(events):
    """`labels.csv` has the label of most people, and the annotations every label that holds."""
    with tempfile.TemporaryDirectory() as folder:
        book, _ = read_label_log(written(folder, events))
        labels, annotations = Path(folder, "labels.csv"), Path(folder, "labels.annotations.csv")
        write_labels(book, labels)
        write_annotations(book, annotations)
        decided = {key: label for key, label in replayed(events).items() if label in (0, 1)}
        balance = {}
        for (_, item), label in decided.items():
            balance[item] = balance.get(item, 0) + (1 if label else -1)
        majority = {item: int(value > 0) for item, value in balance.items() if value}
        if majority:
            table = read_labels(labels)
            assert dict(zip(table.example_ids, table.labels.tolist(), strict=True)) == majority
        assert sorted(item for _, item in book.ties()) == sorted(item for item, value in balance.items() if not value)
        if decided:
            found = read_annotations(annotations)
            assert {item: found.majority(item) for item in majority} == majority
            ids = sorted({item for _, item in replayed(events)})
            votes = VoteMatrix(np.ones((len(ids), 1)), ids, ["v"], ["news"] * len(ids), [-1] * len(ids))
            people = read_people(annotations, votes)
            assert {i: label for i, label in zip(ids, people.labels.tolist(), strict=True) if label >= 0} == majority


def test_undecidable_items_are_no_labels(tmp_path):
    """They are marked as ambiguous for `deep label agreement`."""
    book, _ = read_label_log(written(tmp_path, [LabelEvent("label", "news", "a", "Ann", -1, "who is he?")]))
    write_annotations(book, tmp_path / "a.csv")
    found = read_annotations(tmp_path / "a.csv")
    assert found.ambiguity("a", at_least=1) == "relation"
    assert found.majority("a") == -1
    assert book.annotations().ambiguity("a", at_least=1) == "relation"
    assert book.majority() == {}


def test_items_of_two_datasets_cannot_be_told_apart():
    """In annotations, which have one column for the item."""
    book = AnswerBook()
    for dataset in ("news", "talk"):
        book.add(LabelEvent("label", dataset, "a", "Ann", 1))
    with pytest.raises(InputError, match="`labels` must be of one dataset"):
        book.annotations()
    assert book.annotations([("news", "a")]).items == ["a"]


def test_one_process_at_a_time(tmp_path):
    """A second one is told so; a killed one leaves no lock."""
    path = tmp_path / "labels.jsonl"
    with open_label_log(path) as log:
        log.add(LabelEvent("label", "news", "a", "Ann", 1))
        with pytest.raises(InputError, match="`out` must not be in use"), open_label_log(path):
            pass
        assert read_label_log(path)[0].majority() == {("news", "a"): 1}
    with open_label_log(path) as log:
        assert log.book.people == ("Ann",)


@pytest.mark.parametrize(
    "content",
    [b"dataset,item_id,label\n", b'{"do": "label"}\n', b"[1]\n", b"hello", b"\xff\xfe\n", b'{"schema_version": 2}\n'],
)
def test_another_file_is_no_log(tmp_path, content):
    """It is left as it is."""
    path = tmp_path / "labels.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match="`labels` must be a log that `deep label` wrote"), open_label_log(path):
        pass
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "value"),
    [("do", "lable"), ("label", 2), ("label", True), ("note", None), ("people", "1"), ("schema_version", 9)],
)
def test_a_broken_line_is_named(tmp_path, change, value):
    """By its number, and set aside, whatever is wrong with it; the others hold, and the log goes on."""
    path = written(tmp_path, [LabelEvent("label", "news", item, "Ann", 1) for item in "abc"])
    lines = path.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | {change: value})
    path.write_text("\n".join(lines) + "\n")
    book, told = read_label_log(path)
    assert told == "lines are missing before line 2; line 2 is not whole and is passed over"
    assert sorted(item for _, item in book.majority()) == ["a", "c"]
    with open_label_log(path) as log:
        assert log.told.endswith("line 2 is not whole and is set aside in 'labels.jsonl.broken'")
        log.add(LabelEvent("label", "news", "d", "Ann", 1))
    assert (tmp_path / "labels.jsonl.broken").read_text() == lines[1] + "\n"
    assert sorted(item for _, item in read_label_log(path)[0].majority()) == ["a", "c", "d"]


def test_there_must_be_a_log(tmp_path):
    """To be read."""
    with pytest.raises(InputError, match="where there is no file"):
        read_label_log(tmp_path / "labels.jsonl")


@pytest.mark.parametrize(
    ("event", "match"),
    [
        (LabelEvent("label", "news", "a", "", 1), "`person` must be printable text on one line. Got nothing"),
        (LabelEvent("label", "news", "a", "A\nB", 1), "`person` must be printable text on one line"),
        (LabelEvent("label", "news", "a", "Ann", 1, "x" * 2001), "`note` must have at most 2,000 characters"),
    ],
)
def test_what_cannot_be_kept(tmp_path, event, match):
    """Is refused before a byte is written."""
    path = tmp_path / "labels.jsonl"
    with open_label_log(path) as log, pytest.raises(InputError, match=match):
        log.add(event)
    assert path.read_bytes() == b""


def test_a_label_is_on_disk_before_it_holds(tmp_path, monkeypatch):
    """The log waits for the disk after the last byte, and adds to its book after that."""
    synced, sync = [], os.fsync

    def watched(file):
        synced.append((os.fstat(file).st_size, dict(log.book.majority())))
        sync(file)

    with open_label_log(tmp_path / "labels.jsonl") as log:
        monkeypatch.setattr(module.os, "fsync", watched)
        log.add(LabelEvent("label", "news", "a", "Ann", 1))
        size = (tmp_path / "labels.jsonl").stat().st_size
        monkeypatch.undo()
    assert synced[0] == (size, {})
    assert not any(book for _, book in synced)


@pytest.mark.parametrize("part", [0, 20])
@pytest.mark.parametrize("mended", [True, False])
def test_a_full_disk(tmp_path, monkeypatch, part, mended):
    """The label does not hold, and those before and after it do."""
    path, write = tmp_path / "labels.jsonl", os.write

    def full(file, data):
        if part and not full.done:
            full.done = True
            return write(file, data[:part])
        raise OSError(errno.ENOSPC, "No space left on device")

    full.done = False
    with open_label_log(path) as log:
        log.add(LabelEvent("label", "news", "a", "Ann", 1))
        before = path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(module.os, "write", full)
            if not mended:
                patched.setattr(module.os, "ftruncate", lambda *_: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
            with pytest.raises(OSError, match="No space left"):
                log.add(LabelEvent("label", "news", "b", "Ann", 1))
        assert (path.read_bytes() == before) is (mended or not part)
        log.add(LabelEvent("label", "news", "c", "Ann", 0))
        assert log.book.majority() == {("news", "a"): 1, ("news", "c"): 0}
    assert read_label_log(path)[0].majority() == {("news", "a"): 1, ("news", "c"): 0}


ADDER = """
import sys
from deep.integrations.labeling import LabelEvent, open_label_log
with open_label_log(sys.argv[1]) as log:
    start = len(log.book.answers.get("Ann", {}))
    print("open", flush=True)
    for number in range(start, 200):
        log.add(LabelEvent("label", "news", str(number), "Ann", number % 2, "note " * 20))
        print(number, flush=True)
"""


def killed_and_resumed(path, kills, seed):
    """Label 200 items in processes that are killed at random moments; return the last that was acknowledged by each."""
    rng, last = random.Random(seed), []
    for kill in [*[True] * kills, False]:
        process = subprocess.Popen([sys.executable, "-c", ADDER, str(path)], stdout=subprocess.PIPE, text=True)
        with process:
            assert process.stdout.readline() == "open\n"
            if kill:
                time.sleep(rng.random() * 0.03)
                process.kill()
            said = [int(line) for line in process.stdout.read().split()]
        done = {item[1] for item in read_label_log(path)[0].answers.get("Ann", {})}
        assert set(map(str, said)) <= done
        last.append(len(done))
    return last


def test_a_killed_process_loses_nothing(tmp_path):
    """Every label that was acknowledged is there after kill -9."""
    assert killed_and_resumed(tmp_path / "labels.jsonl", 2, 0)[-1] == 200


@pytest.mark.slow
def test_many_killed_processes_lose_nothing(tmp_path):
    """At random moments of 200 labels, twenty times over."""
    assert killed_and_resumed(tmp_path / "labels.jsonl", 20, 1)[-1] == 200
