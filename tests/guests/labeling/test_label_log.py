"""The log of labels: any events in any order, one process at a time, full disks, and a killed process."""

import random
import resource
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
from deep.integrations.labeling import _label_log as module

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


def written(folder, events):
    """Return the place of a log with these events."""
    path = Path(folder, "labels.log.sqlite")
    with open_label_log(path) as log:
        log.add(*events)
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
        path = written(folder, events)
        book, told = read_label_log(path) if events else (AnswerBook(), "")
    assert told == ""
    result = {(who, item[1]): given.label for who, own in book.answers.items() for item, given in own.items()}
    assert result == replayed(events)
    for at, event in enumerate(events):
        later = [e for e in events[at + 1 :] if (e.person, e.item_id) == (event.person, event.item_id)]
        if event.do == "label" and not any(e.do in ("label", "skip", "undo") for e in later):
            before = [e for e in events[:at] if (e.person, e.item_id, e.do) == (event.person, event.item_id, "reveal")]
            given_answer = book.answers[event.person][event.item]
            assert given_answer.after_reveal == bool(before)
            assert given_answer.note == event.note


@example([LabelEvent("label", "news", "a", "Ann", 1, note="\r")])
@given(EVENTS)
def test_the_tables_say_the_same(events):
    """`labels.csv` has the label of most people, and the annotations every label that holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, events)
        book = read_label_log(path)[0] if events else AnswerBook()
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
            assert dict(zip(table.item_ids, table.labels.tolist(), strict=True)) == majority
        assert sorted(item for _, item in book.ties()) == sorted(item for item, value in balance.items() if not value)
        if decided:
            result = read_annotations(annotations)
            assert {item: result.majority(item) for item in majority} == majority
            ids = sorted({item for _, item in replayed(events)})
            votes = VoteMatrix(np.ones((len(ids), 1)), ids, ["v"], ["news"] * len(ids), [-1] * len(ids))
            people = read_people(annotations, votes)
            assert {i: label for i, label in zip(ids, people.labels.tolist(), strict=True) if label >= 0} == majority


def test_undecidable_items_are_no_labels(tmp_path):
    """They are marked as ambiguous for `deep label agreement`."""
    book, _ = read_label_log(written(tmp_path, [LabelEvent("label", "news", "a", "Ann", -1, "who is he?")]))
    write_annotations(book, tmp_path / "a.csv")
    result = read_annotations(tmp_path / "a.csv")
    assert result.ambiguity("a", at_least=1) == "relation"
    assert result.majority("a") == -1
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
    path = tmp_path / "labels.log.sqlite"
    with open_label_log(path) as log:
        log.add(LabelEvent("label", "news", "a", "Ann", 1))
        with pytest.raises(InputError, match="`out` must not be in use"), open_label_log(path):
            pass
        assert read_label_log(path)[0].majority() == {("news", "a"): 1}
    with open_label_log(path) as log:
        assert log.book.people == ("Ann",)


def test_another_file_is_no_log(tmp_path):
    """It is left as it is; where there is none, nothing is read."""
    for name in ("labels.log.sqlite", "labels.jsonl"):
        path = tmp_path / name
        with pytest.raises(InputError, match="which does not exist"):
            read_label_log(path)
        for content in (
            b"dataset,item_id,label\n",
            b'{"do": "label"}\n',
            b"SQLite format 3\0",
            b"hello" * 1000,
            b'{"schema_version": 2}\n',
        ):
            path.write_bytes(content)
            with (
                pytest.raises(InputError, match="`labels` must be a log that `deep label` wrote"),
                open_label_log(path),
            ):
                pass
            assert path.read_bytes() == content
        path.unlink()


def test_what_cannot_be_kept(tmp_path):
    """Is refused before a byte is written."""
    path = tmp_path / "labels.log.sqlite"
    for person, note, message in (
        ("", "", "`person` must be printable text on one line. Got nothing"),
        ("A\nB", "", "`person` must be printable text on one line"),
        ("Ann", "x" * 2001, "`note` must have at most 2,000 characters"),
    ):
        with open_label_log(path) as log, pytest.raises(InputError, match=message):
            log.add(LabelEvent("label", "news", "a", person, 1, note))
        assert not path.exists()


def test_a_label_is_in_the_file_before_it_holds(tmp_path, monkeypatch):
    """The log is read after it was written, and its book has the label after that."""
    seen = []
    read = module._read_file

    def watched(path):
        result = read(path)
        seen.append((len(result.rows), dict(log.book.majority())))
        return result

    with open_label_log(tmp_path / "labels.log.sqlite") as log:
        log.add(LabelEvent("label", "news", "a", "Ann", 1))
        monkeypatch.setattr(module, "_read_file", watched)
        log.add(LabelEvent("label", "news", "b", "Ann", 1))
        monkeypatch.undo()
    assert seen[0] == (2, {("news", "a"): 1})


@pytest.mark.parametrize("room", [0, 100, 5000])
def test_a_full_disk(tmp_path, room):
    """The label does not hold, nothing is told of others, and those before and after it do."""
    path, limits = tmp_path / "labels.log.sqlite", resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_label_log(path) as log:
        for item in range(100):
            log.add(LabelEvent("label", "news", str(item), "Ann", 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size - 8192 + room, limits[1]))
        try:
            with pytest.raises(OSError, match=r"disk|file"):
                log.add(*(LabelEvent("label", "news", "b", "Ann", 1, "x" * 2000) for _ in range(20)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        log.add(LabelEvent("label", "news", "c", "Ann", 0))
        assert (log.remarks, log.look()) == ([], "")
    assert len(read_label_log(path)[0].majority()) == 101
    assert ("news", "b") not in read_label_log(path)[0].majority()


ADDER = """
import sys
from deep.integrations.labeling import LabelEvent, open_label_log
with open_label_log(sys.argv[1]) as log:
    start = len(log.book.answers.get("Ann", {}))
    print("open", flush=True)
    for number in range(start, int(sys.argv[2])):
        log.add(LabelEvent("label", "news", str(number), "Ann", number % 2, "note " * 20))
        print(number, flush=True)
"""


def killed_and_resumed(path, kills, seed, n=200):
    """Label `n` items in processes that are killed at random moments; return the last that was acknowledged by each."""
    rng, last = random.Random(seed), []
    for kill in [*[True] * kills, False]:
        process = subprocess.Popen([sys.executable, "-c", ADDER, str(path), str(n)], stdout=subprocess.PIPE, text=True)
        with process:
            assert process.stdout.readline() == "open\n"
            if kill:
                time.sleep(rng.random() * 0.03)
                process.kill()
            message = [int(line) for line in process.stdout.read().split()]
        book = read_label_log(path)[0] if label_log_files(path) else AnswerBook()  # killed before the first label
        done = {item[1] for item in book.answers.get("Ann", {})}
        assert set(map(str, message)) <= done
        last.append(len(done))
    return last


def test_a_killed_process_loses_nothing(tmp_path):
    """Every label that was acknowledged is there after kill -9."""
    assert killed_and_resumed(tmp_path / "labels.log.sqlite", 2, 0, n=60)[-1] == 60


@pytest.mark.slow
def test_many_killed_processes_lose_nothing(tmp_path):
    """At random moments of 200 labels, twenty times over."""
    assert killed_and_resumed(tmp_path / "labels.log.sqlite", 20, 1)[-1] == 200
