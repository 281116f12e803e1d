"""A log of labels that others changed: what is done about it while it is open, and what the next start makes of it."""

import errno
import json
import os
import random
import sqlite3
from contextlib import closing
from dataclasses import asdict
from hashlib import sha256

import pytest

from deep.exceptions import InputError
from deep.integrations.labeling import LabelEvent, label_log_files, open_label_log, read_label_log

LOG, COPY = "labels.log.sqlite", "labels.log.sqlite.copy"


def label(item, value=1, person="Ann", do="label"):
    """Return a label of an item."""
    return LabelEvent(do, "news", item, person, value)


EVENTS = [LabelEvent("queue", "news", item) for item in "abcdef"]
EVENTS += [label("a"), label("a", do="undo"), label("a", 0), label("b", person="Bob"), label("c", 0), label("d", -1)]
LABELS = {("Ann", "a"): 0, ("Bob", "b"): 1, ("Ann", "c"): 0, ("Ann", "d"): -1}


def given(path):
    """Return the labels of a log by person and item."""
    return {
        (who, item[1]): one.label for who, own in read_label_log(path)[0].answers.items() for item, one in own.items()
    }


def written(folder):
    """Return the place of a log of some labels, with a copy beside it."""
    path = folder / LOG
    with open_label_log(path) as log:
        for event in EVENTS:
            log.add(event)
    return path


def put(path, data):
    """Put another file in the place of one."""
    scratch = path.with_name("scratch")
    scratch.write_bytes(data)
    scratch.replace(path)


def change(path, statement):
    """Run SQL on a log, as a person may."""
    with closing(sqlite3.connect(path)) as log, log:
        log.execute(statement)


def flipped(path):
    """Damage a page in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[4096:8192] = bytes(byte ^ 0x5A for byte in data[4096:8192])
    path.write_bytes(data)


def replaced_by(make):
    """Return a change that puts something in the place of the file."""
    return lambda path: (path.unlink(), make(path))


CHANGES = {
    "removed": lambda path: path.unlink(),
    "emptied": lambda path: os.truncate(path, 0),
    "cut": lambda path: os.truncate(path, 5000),
    "another file": lambda path: path.write_bytes(b"hello\nworld\n"),
    "another file put": lambda path: put(path, b"hello\nworld\n" * 1000),
    "a page damaged": flipped,
    "older": lambda path: change(path, "DELETE FROM events WHERE number > 8"),
    "a row removed": lambda path: change(path, "DELETE FROM events WHERE number = 9"),
    "edited": lambda path: change(path, """UPDATE events SET event = replace(event, '"label": 0', '"label": 1')"""),
    "reordered": lambda path: change(path, "UPDATE events SET number = 20 - number"),
    "table removed": lambda path: change(path, "DROP TABLE events"),
    "a folder": replaced_by(os.mkdir),
    "a pipe": replaced_by(getattr(os, "mkfifo", os.mkdir)),
    "a circular link": replaced_by(lambda path: path.symlink_to(path.name)),
}
"""By name: what others do to a file so that it is not what it was."""

FOREIGN = ("cut", "another file", "another file put", "a page damaged", "edited", "reordered", "table removed")
FOREIGN += ("a folder", "a pipe", "a circular link")


@pytest.mark.parametrize("name", [LOG, COPY])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_others_changed_is_written_anew(tmp_path, kind, name):
    """With all labels, before the next one is acknowledged; it is told once; what is no log of ours is kept."""
    path = written(tmp_path)
    with open_label_log(path) as log:
        CHANGES[kind](tmp_path / name)
        log.add(label("e"))
        log.add(label("f"))
        (remark,) = log.remarks
        assert repr(str(tmp_path / name)) in remark
        assert "It was written anew with all labels" in remark
        assert log.look() == ""
        for file in (LOG, COPY):
            single = tmp_path / f"alone-{kind}-{file}"
            single.mkdir()
            (single / LOG).write_bytes((tmp_path / file).read_bytes())
            assert given(single / LOG) == LABELS | {("Ann", "e"): 1, ("Ann", "f"): 1}
    assert os.path.lexists(tmp_path / f"{name}.broken") == (kind in FOREIGN)
    with open_label_log(path) as log:
        assert log.told == ""


@pytest.mark.parametrize("name", [LOG, COPY])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_others_changed_between_two_starts(tmp_path, kind, name):
    """Is mended from the other one, and told by a reader and by the next start, once."""
    path = written(tmp_path)
    CHANGES[kind](tmp_path / name)
    book, told = read_label_log(path)
    assert {(who, item[1]): one.label for who, own in book.answers.items() for item, one in own.items()} == LABELS
    assert told or kind in ("older", "a row removed")
    with open_label_log(path) as log:
        assert f"{name!r}"[1:-1] in log.told
        assert "It was written anew with all labels" in log.told
    with open_label_log(path) as log:
        assert log.told == ""
    assert given(path) == LABELS


@pytest.mark.parametrize("kind", ["the same anew", "hard link", "mode", "time", "link", "vacuum"])
def test_what_changes_nothing_in_it_is_no_loss(tmp_path, kind):
    """The content of the log decides, not its numbers."""
    path = written(tmp_path)
    with open_label_log(path) as log:
        if kind == "the same anew":
            put(path, path.read_bytes())
        elif kind == "hard link":
            os.link(path, tmp_path / "other")
        elif kind == "mode":
            path.chmod(0o600)
        elif kind == "time":
            os.utime(path, (0, 0))
        elif kind == "vacuum":
            with closing(sqlite3.connect(path)) as other:
                other.execute("VACUUM")
        else:
            path.rename(tmp_path / "moved")
            path.symlink_to("moved")
        log.add(label("e"))
        assert (log.look(), log.remarks) == ("", [])
    assert path.is_symlink() == (kind == "link")
    assert given(path) == LABELS | {("Ann", "e"): 1}


def test_a_change_while_a_label_is_written_is_seen(tmp_path, monkeypatch):
    """The file is read after each write: no label is acknowledged by a file that somebody cut in between."""
    path = written(tmp_path)
    with open_label_log(path) as log:
        connect = sqlite3.connect  # the next file that is opened is cut once it is closed

        class Cut(sqlite3.Connection):
            def close(self):
                super().close()
                os.truncate(path, 5000)

        opened = iter([Cut])

        def opening(*args, **options):
            return connect(*args, factory=next(opened, sqlite3.Connection), **options)

        monkeypatch.setattr(sqlite3, "connect", opening)
        log.add(label("e"))
        monkeypatch.undo()
        assert "It was written anew with all labels" in log.remarks[0]
    assert given(path) == LABELS | {("Ann", "e"): 1}


def test_a_log_that_another_program_holds(tmp_path, monkeypatch):
    """Takes no label, and none is lost or acknowledged; the file stays as it is."""
    monkeypatch.setattr("deep.integrations.labeling._label_log.BUSY_SECONDS", 0.01)
    path = written(tmp_path)
    with open_label_log(path) as log:
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(OSError, match="locked"):
                log.add(label("e"))
        assert log.remarks == []
        log.add(label("f"))
    assert given(path) == LABELS | {("Ann", "f"): 1}
    assert not list(tmp_path.glob("*.broken"))


def test_a_copy_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    """The log has the label even so."""
    monkeypatch.setattr("deep.integrations.labeling._label_log.BUSY_SECONDS", 0.01)
    path = written(tmp_path)
    with open_label_log(path) as log:
        with closing(sqlite3.connect(tmp_path / COPY)) as other:
            other.execute("BEGIN EXCLUSIVE")
            log.add(label("e"))
            assert log.problem == f"{str(tmp_path / COPY)!r} cannot be written: database is locked."
        assert log.look() == ""
    assert given(path) == LABELS | {("Ann", "e"): 1}


def test_two_that_write_at_once_lose_nothing(tmp_path):
    """As where all files were removed, so that another could begin anew: the next start has the labels of both."""
    path = written(tmp_path)
    with open_label_log(path) as first:
        for file in tmp_path.iterdir():
            file.unlink()
        with open_label_log(path) as second:
            second.add(label("x", person="Zoe"))
            first.add(label("e"))
            second.add(label("y", person="Zoe"))
            first.add(label("f"))
        assert any("Another program added" in remark for remark in first.remarks)
    assert given(path) == LABELS | {("Ann", "e"): 1, ("Ann", "f"): 1, ("Zoe", "x"): 1, ("Zoe", "y"): 1}


def test_a_newer_log_is_refused(tmp_path):
    """And left as it is."""
    path = written(tmp_path)
    change(path, "PRAGMA user_version = 9")
    data = path.read_bytes()
    with pytest.raises(InputError, match=r"`labels` must be a log of schema version 3 at most.*Use the newer deep"):
        read_label_log(path)
    with pytest.raises(InputError, match="schema version"), open_label_log(path):
        pass
    assert path.read_bytes() == data


def old_lines(events, version=2):
    """Return the lines of a log as deep wrote them before 2026-11-28 (2), and before they had checksums (1)."""
    if version == 1:
        return [json.dumps({"schema_version": 1} | asdict(event)).encode() + b"\n" for event in events]
    lines, before = [], ""
    for event in events:
        body = json.dumps({"schema_version": 2, **asdict(event), "before": before})[:-1]
        before = sha256(body.encode()).hexdigest()[:16]
        lines.append(f'{body}, "check": "{before}"}}\n'.encode())
    return lines


SHUFFLED = random.Random(0).sample(range(len(EVENTS)), len(EVENTS))
WHOLE = {
    "as it was": lambda lines: lines,
    "CRLF": lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
    "BOM": lambda lines: [b"\xef\xbb\xbf", *lines],
    "no last line end": lambda lines: [*lines[:-1], lines[-1][:-1]],
    "joined without a line end": lambda lines: [*lines[:-1], lines[-1][:-1], *lines],
    "blank lines": lambda lines: [line + b"\n" for line in lines],
    "reordered": lambda lines: [lines[at] for at in SHUFFLED],
    "doubled": lambda lines: lines + lines,
    "NULs": lambda lines: [b"\0" * 40, *lines, b"\0" * 40],
    "written anew": lambda lines: [
        json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n" for line in lines
    ],
}


@pytest.mark.parametrize("kind", WHOLE)
def test_old_lines_are_taken_over_whole(tmp_path, kind):
    """Whatever editors did to them; they stay as they are, and are taken once."""
    lines = tmp_path / "labels.jsonl"
    data = b"".join(WHOLE[kind](old_lines(EVENTS)))
    lines.write_bytes(data)
    assert given(lines) == LABELS
    for path in (tmp_path / "labels.csv", lines):
        with open_label_log(path) as log:
            told = f"{len(EVENTS)} events were taken over from 'labels.jsonl'" if path != lines else ""
            assert log.told == told
            assert log.path.name == LOG
    with open_label_log(lines) as log:
        log.add(label("a", do="undo"))
    assert lines.read_bytes() == data
    assert given(lines) == {key: value for key, value in LABELS.items() if key != ("Ann", "a")}


@pytest.mark.parametrize("kept", [slice(0, 0), slice(0, 5), slice(7, None)])
def test_old_lines_that_the_log_lacks_come_from_its_copy(tmp_path, kept):
    """As an earlier deep left them, where the log was changed."""
    lines = old_lines(EVENTS)
    (tmp_path / "labels.jsonl").write_bytes(b"".join(lines[kept]))
    (tmp_path / "labels.jsonl.copy").write_bytes(b"".join(lines))
    assert given(tmp_path / "labels.jsonl") == LABELS


def test_old_lines_without_checksums(tmp_path):
    """With everything in them: labels given twice, times, notes; two spellings of a name are one."""
    events = [*EVENTS, label("a"), label("a", do="undo"), label("a")]
    events = [LabelEvent(**asdict(event) | {"time": "2026-11-22T10:00:00", "note": "é\ud800"}) for event in events]
    spelled = [label("f", 0, "A\u0301nn"), label("e", 0, "\u00c1nn")]
    (tmp_path / "labels.jsonl").write_bytes(b"".join(old_lines([*events, *spelled], 1)))
    with open_label_log(tmp_path / "labels.csv") as log:
        assert log.book.people == ("Ann", "Bob", "\u00c1nn")
        assert list(log.book.answers["Ann"]) == [("news", item) for item in "cda"]
        assert log.book.answers["Ann"]["news", "c"].note == "é\ud800"
        log.add(label("e"))
    assert given(tmp_path / "labels.csv")["Ann", "e"] == 1


def test_one_broken_old_line_is_named(tmp_path):
    """By its number, whatever is wrong with it; the others hold."""
    changes = {"do": "lable", "label": 2, "note": None, "people": "1", "schema_version": 9}
    for at, (key, value) in enumerate([*changes.items(), ("label", True)]):
        where, folder = at % 3, tmp_path / str(at)
        folder.mkdir()
        lines = old_lines([label(item) for item in "abc"])
        lines[where] = json.dumps(json.loads(lines[where]) | {key: value}).encode() + b"\n"
        (folder / "labels.jsonl").write_bytes(b"".join(lines))
        with open_label_log(folder / "labels.csv") as log:
            assert f"line {where + 1} of 'labels.jsonl' is incomplete and was skipped" in log.told
        assert {item for _, item in given(folder / "labels.csv")} == set("abc") - {"abc"[where]}


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_is_one_line(tmp_path, monkeypatch, code):
    """As on a network file system without its lock service; nothing is written there."""
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=rf"`out` must be in a folder where files can be locked\..*{os.strerror(code)}"),
        open_label_log(tmp_path / LOG),
    ):
        pass
    assert label_log_files(tmp_path / LOG) == []
