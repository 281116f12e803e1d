"""A log of labels that others changed: what is known of it before each line, and what the next start makes of it."""

import errno
import json
import os
import random
from dataclasses import asdict

import pytest

from deep.exceptions import InputError
from deep.integrations.labeling import LabelEvent, LabelLogLostError, label_log_files, open_label_log, read_label_log
from deep.integrations.labeling import _label_log as module

BOM = b"\xef\xbb\xbf"


def label(item, value=1, person="Ann", do="label"):
    """Return a label of an item."""
    return LabelEvent(do, "news", item, person, value)


EVENTS = [LabelEvent("queue", "news", item) for item in "abcdef"]
EVENTS += [label("a"), label("a", do="undo"), label("a", 0), label("b", person="Bob"), label("c", 0), label("d", -1)]


def given(path):
    """Return the labels of a log by person and item."""
    return {
        (who, item[1]): one.label for who, own in read_label_log(path)[0].answers.items() for item, one in own.items()
    }


def written(folder):
    """Return the place of a log of some labels, with a copy beside it, and the labels."""
    path = folder / "labels.jsonl"
    with open_label_log(path) as log:
        for event in EVENTS:
            log.add(event)
    return path, given(path)


def edited(data):
    """Return a log in which one label was changed by hand."""
    lines = data.splitlines(keepends=True)
    lines[8] = lines[8].replace(b'"label": 0', b'"label": 1')
    return b"".join(lines)


def reordered(data):
    """Return the lines of a log in any order."""
    return b"".join(random.Random(0).sample(lines := data.splitlines(keepends=True), len(lines)))


def written_anew(data):
    """Return a log as another program writes the same JSON."""
    return b"".join(json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n" for line in data.splitlines())


WHOLE = {
    "CRLF": lambda data: data.replace(b"\n", b"\r\n"),
    "BOM": lambda data: BOM + data,
    "no last line end": lambda data: data[:-1],
    "blank lines": lambda data: data.replace(b"\n", b"\n\n") + b"\n",
    "reordered": reordered,
    "doubled": lambda data: data + data,
    "each line twice": lambda data: b"".join(line * 2 for line in data.splitlines(keepends=True)),
    "conflict of a synchronisation": lambda data: b"".join(data.splitlines(keepends=True)[:8]) + data,
    "joined without a line end": lambda data: data[:-1] + data,
    "NULs": lambda data: data + b"\0" * 40,
    "NULs before": lambda data: b"\0" * 40 + data,
    "written anew": written_anew,
}
"""By name: changes after which a log alone still has every line."""

LOSSES = {
    "emptied": lambda data: b"",
    "cut": lambda data: data[: len(data) // 2],
    "older": lambda data: b"".join(data.splitlines(keepends=True)[:-3]),
    "edited": edited,
    "a line removed": lambda data: b"".join(data.splitlines(keepends=True)[:7] + data.splitlines(keepends=True)[8:]),
    "NULs within": lambda data: data[:500] + b"\0" * 300 + data[800:],
    "another file": lambda data: b"hello\nworld\n",
}
"""By name: changes after which the log lacks lines."""


@pytest.mark.parametrize("change", WHOLE)
def test_a_log_alone_is_read_whole(tmp_path, change):
    """What editors and file synchronisation do to lines loses none; it is told, and the file is mended."""
    path, before = written(tmp_path)
    data = path.read_bytes()
    label_log_files(path)[1].unlink()
    path.write_bytes(WHOLE[change](data))
    assert given(path) == before
    with open_label_log(path) as log:
        assert log.told
        log.add(label("e"))
    assert path.read_bytes().startswith(data)
    assert given(path) == before | {("Ann", "e"): 1}
    assert not (tmp_path / "labels.jsonl.broken").exists()


@pytest.mark.parametrize("change", LOSSES)
def test_the_copy_has_what_the_log_lacks(tmp_path, change):
    """Both are mended; what is no line is set aside; and it is told."""
    path, before = written(tmp_path)
    data = path.read_bytes()
    path.write_bytes(LOSSES[change](data))
    assert given(path) == before
    with open_label_log(path) as log:
        assert "lines that it lacked were taken from the copy beside it" in log.told
        assert ("set aside in 'labels.jsonl.broken'" in log.told) == (tmp_path / "labels.jsonl.broken").exists()
    assert path.read_bytes() == data
    assert [file.read_bytes() for file in label_log_files(path)] == [data, data]
    with open_label_log(path) as log:
        assert log.told == ""


def test_a_log_that_is_gone_comes_from_its_copy(tmp_path):
    """Whole."""
    path, before = written(tmp_path)
    data = path.read_bytes()
    path.unlink()
    assert given(path) == before
    with open_label_log(path) as log:
        assert log.told.startswith(f"{len(EVENTS)} lines that it lacked")
    assert path.read_bytes() == data


def test_without_a_copy_the_loss_is_told(tmp_path):
    """By the place of the gap; the lines around it hold."""
    path, before = written(tmp_path)
    label_log_files(path)[1].unlink()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:9] + lines[10:]))
    with open_label_log(path) as log:
        assert log.told == "lines are missing before line 10"
    assert given(path) == {key: value for key, value in before.items() if key != ("Bob", "b")}


CHANGES = {
    "replaced": lambda path, data: put(path, b"".join(data.splitlines(keepends=True)[:-3])),
    "cut": lambda path, _: os.truncate(path, 100),
    "emptied": lambda path, _: os.truncate(path, 0),
    "lengthened": lambda path, data: os.truncate(path, len(data) + 100),
    "added to": lambda path, data: path.write_bytes(data + b"hello\n"),
    "edited": lambda path, data: path.write_bytes(edited(data)),
    "removed": lambda path, _: path.unlink(),
    "a link": lambda path, data: (put(path.with_name("other"), data[:-50]), path.unlink(), path.symlink_to("other")),
}


def put(path, data):
    """Put another file in the place of one."""
    scratch = path.with_name("scratch")
    scratch.write_bytes(data)
    scratch.replace(path)


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_is_added_to_a_log_that_others_changed(tmp_path, change):
    """Nor is it cut or lengthened: answers are set aside for the next start, which takes everything up."""
    path, before = written(tmp_path)
    with open_label_log(path) as log:
        CHANGES[change](path, path.read_bytes())
        left = path.read_bytes() if path.exists() else None
        for value in (1, 0):  # answered again: the last one holds
            with pytest.raises(LabelLogLostError, match=r"start it again.*Until then this answer is set aside in"):
                log.add(label("e", value))
        with pytest.raises(LabelLogLostError, match=r"start it again: it takes everything up\.$"):
            log.add(LabelEvent("show", "news", "f", "Ann"))
        with pytest.raises(LabelLogLostError, match="set aside"):
            log.add(label("c", do="undo"))
        assert ("Ann", ("news", "e")) not in {(who, item) for who, own in log.book.answers.items() for item in own}
        assert "Nothing more is written to it" in log.look()
        assert (path.read_bytes() if path.exists() else None) == left
    with open_label_log(path) as log:
        assert log.told
        log.add(label("f"))
    after = before | {("Ann", "e"): 0, ("Ann", "f"): 1}
    del after["Ann", "c"]
    assert given(path) == after


def test_a_folder_that_is_gone(tmp_path):
    """It is made again for the copy."""
    folder = tmp_path / "labels"
    folder.mkdir()
    path, before = written(folder)
    with open_label_log(path) as log:
        folder.rename(tmp_path / "moved")
        with pytest.raises(LabelLogLostError, match=r"is gone.*set aside"):
            log.add(label("e"))
    assert given(path) == before | {("Ann", "e"): 1}


@pytest.mark.parametrize("change", ["the same anew", "hard link", "mode", "time", "link"])
def test_what_changes_nothing_in_it_is_no_loss(tmp_path, change):
    """The content of the log decides, not its numbers."""
    path, before = written(tmp_path)
    with open_label_log(path) as log:
        if change == "the same anew":
            put(path, path.read_bytes())
        elif change == "hard link":
            os.link(path, tmp_path / "other")
        elif change == "mode":
            path.chmod(0o600)
        elif change == "time":
            os.utime(path, (0, 0))
        else:
            path.rename(tmp_path / "moved")
            path.symlink_to("moved")
        log.add(label("e"))
        assert log.look() == ""
    assert given(path) == before | {("Ann", "e"): 1}


def test_the_lock_is_the_log_itself(tmp_path):
    """Whatever becomes of the lock's file, and by another name of the log too; a copy holds it as well."""
    path, _ = written(tmp_path)
    with open_label_log(path) as log:
        (tmp_path / ".labels.jsonl.lock").unlink()
        os.link(path, tmp_path / "other.jsonl")
        for name in ("labels.jsonl", "other.jsonl"):
            with pytest.raises(InputError, match="`out` must not be in use"), open_label_log(tmp_path / name):
                pass
        for gone in (tmp_path / "other.jsonl", tmp_path / ".labels.jsonl.lock", path):
            gone.unlink(missing_ok=True)
        with pytest.raises(InputError, match="`out` must not be in use"), open_label_log(path):
            pass
        with pytest.raises(LabelLogLostError, match="is gone"):
            log.add(label("e"))


def test_two_that_write_at_once_lose_nothing(tmp_path):
    """As where all files were removed, so that another could begin anew: the next start has the labels of both."""
    path, before = written(tmp_path)
    with open_label_log(path) as first:
        for file in tmp_path.iterdir():
            file.unlink()
        with open_label_log(path) as second:
            second.add(label("x", person="Zoe"))
            with pytest.raises(LabelLogLostError, match="set aside"):
                first.add(label("e"))
            second.add(label("y", person="Zoe"))
    assert given(path) == before | {("Ann", "e"): 1, ("Zoe", "x"): 1, ("Zoe", "y"): 1}


@pytest.mark.parametrize("change", ["removed", "cut", "edited"])
def test_the_copy_is_written_anew(tmp_path, change):
    """And that is told, once."""
    path, before = written(tmp_path)
    with open_label_log(path) as log:
        copy = label_log_files(path)[1]
        copy.unlink() if change == "removed" else copy.write_bytes(
            copy.read_bytes()[:300] + b"x" * (change == "edited")
        )
        log.add(label("e"))
        log.add(label("f"))
        assert (len(log.remarks), log.problem) == (1, "")
        assert "all labels are in a new copy" in log.remarks[0]
        newest = label_log_files(path)[-1]
        assert newest.read_bytes() == path.read_bytes()
    assert given(path) == before | {("Ann", "e"): 1, ("Ann", "f"): 1}


@pytest.mark.parametrize("size", [None, 0, 700])
def test_a_copy_that_was_removed_or_cut_between_two_starts_is_told(tmp_path, size):
    """At the next start, once; the log has all."""
    path, before = written(tmp_path)
    copy = label_log_files(path)[1]
    whole = copy.read_bytes()
    copy.unlink() if size is None else copy.write_bytes(whole[: whole.rindex(b"\n", 0, size) + 1 if size else 0])
    with open_label_log(path) as log:
        assert log.told == "no copy beside it had all of its lines; there is a new one"
    assert label_log_files(path)[1].read_bytes() == whole
    with open_label_log(path) as log:
        assert log.told == ""
    assert given(path) == before


def test_a_copy_that_cannot_be_written(tmp_path, monkeypatch):
    """Is told; the log has the labels even so. Where the log is lost too, the page alone has an answer."""
    path, before = written(tmp_path)

    class Full(module.HeldFile):
        def __init__(self, path, content, *, new=False):
            if new:
                raise OSError(28, "No space left on device")
            super().__init__(path, content)

    with open_label_log(path) as log:
        monkeypatch.setattr(module, "HeldFile", Full)
        label_log_files(path)[1].unlink()
        log.add(label("e"))
        assert log.problem == "No copy of 'labels.jsonl' can be written: No space left on device."
        path.write_bytes(b"x")
        with pytest.raises(LabelLogLostError, match=r"in this process alone.*could not be written beside it either"):
            log.add(label("f"))
        monkeypatch.undo()
        assert "Nothing more is written" in log.look()
    assert given(path) == before | {("Ann", "e"): 1, ("Ann", "f"): 1}


def old_log(events):
    """Return a log as deep wrote it before lines had checksums."""
    return b"".join(json.dumps({"schema_version": 1} | asdict(event)).encode() + b"\n" for event in events)


def test_logs_without_checksums_are_gone_on_with(tmp_path):
    """With everything in them: labels given twice, times, notes; two spellings of a name are one."""
    path = tmp_path / "labels.jsonl"
    events = [*EVENTS, label("a"), label("a", do="undo"), label("a")]
    events = [LabelEvent(**asdict(event) | {"time": "2026-11-22T10:00:00", "note": "é\ud800"}) for event in events]
    path.write_bytes(old_log(events) + old_log([label("f", 0, "A\u0301nn"), label("e", 0, "\u00c1nn")]))
    before, told = read_label_log(path)
    assert told == ""
    with open_label_log(path) as log:
        assert (log.told, log.book) == ("", before)
        log.add(label("e"))
    book, told = read_label_log(path)
    assert told == ""
    assert book.people == ("Ann", "Bob", "\u00c1nn")
    assert book.answers["Ann"]["news", "c"] == before.answers["Ann"]["news", "c"]
    assert list(book.answers["Ann"].values())[:-1] == list(before.answers["Ann"].values())


@pytest.mark.parametrize("where", range(3))
def test_one_broken_line_of_an_old_log(tmp_path, where):
    """Is set aside, and the log gone on with."""
    path = tmp_path / "labels.jsonl"
    lines = old_log([label(item) for item in "abc"]).splitlines(keepends=True)
    lines[where] = lines[where][:20] + b"\n"
    path.write_bytes(b"".join(lines))
    with open_label_log(path) as log:
        assert f"line {where + 1} is not whole and is set aside in 'labels.jsonl.broken'" in log.told
        log.add(label("d"))
    assert {item for _, item in given(path)} == set("abcd") - {"abc"[where]}


def test_a_newer_log_is_refused(tmp_path):
    """And left as it is."""
    path, _ = written(tmp_path)
    data = path.read_bytes() + json.dumps({"schema_version": 3, "do": "praise"}).encode() + b"\n"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"`labels` must be a log of schema version 2 at most.*Use the newer deep"):
        read_label_log(path)
    with pytest.raises(InputError, match="schema version"), open_label_log(path):
        pass
    assert path.read_bytes() == data


def test_a_clock_that_jumps_is_told(tmp_path, monkeypatch):
    """Once; the order of labels does not come of it."""
    path, now = tmp_path / "labels.jsonl", module._clock_ahead
    with open_label_log(path) as log:
        log.add(label("a", 1))
        assert log.remarks == []
        monkeypatch.setattr(module, "_clock_ahead", lambda: now() - 86400)
        log.add(LabelEvent("label", "news", "a", "Ann", 0, time="1999-01-01T00:00:00"))
        log.add(label("b", 1))
        assert len(log.remarks) == 1
        assert "was put back by 1 day, 0:00:00" in log.remarks[0]
    assert given(path) == {("Ann", "a"): 0, ("Ann", "b"): 1}


def test_a_loop_of_links_is_mended_from_the_copy(tmp_path):
    """No traceback at the start, and no label is lost."""
    path = tmp_path / "labels.jsonl"
    with open_label_log(path) as log:
        log.add(label("a", 1))
    path.unlink()
    path.symlink_to("moved.jsonl")
    (tmp_path / "moved.jsonl").symlink_to("labels.jsonl")
    with open_label_log(path) as log:
        log.add(label("b", 0))
    assert given(path) == {("Ann", "a"): 1, ("Ann", "b"): 0}


def test_a_loop_of_links_in_mid_run_loses_nothing(tmp_path):
    """What is said meanwhile is set aside, and the next start takes it up."""
    path = tmp_path / "labels.jsonl"
    with open_label_log(path) as log:
        log.add(label("a", 1))
        path.unlink()
        path.symlink_to(path.name)
        with pytest.raises(LabelLogLostError, match=r"is a loop of links.*this answer is set aside"):
            log.add(label("b", 0))
    with open_label_log(path):
        pass
    assert given(path) == {("Ann", "a"): 1, ("Ann", "b"): 0}


@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", os.mkdir)])
def test_a_folder_or_a_pipe_in_mid_run_loses_nothing(tmp_path, make):
    """In place of the copy, then of the log: nothing waits for the pipe, and the next start takes all up."""
    path = tmp_path / "labels.jsonl"
    with open_label_log(path) as log:
        log.add(label("a", 1))
        log.path.with_name("labels.jsonl.copy").unlink()
        make(log.path.with_name("labels.jsonl.copy"))
        log.add(label("b", 0))
        assert "is a folder, a pipe or a device now, to be taken away; all labels are in a new copy" in log.remarks[0]
        path.unlink()
        make(path)
        with pytest.raises(LabelLogLostError, match=r"a folder, a pipe or a device now.*this answer is set aside"):
            log.add(label("c", 1))
    with pytest.raises(InputError, match=r"`out` must be"), open_label_log(path):
        pass
    path.rmdir() if path.is_dir() else path.unlink()
    with open_label_log(path):
        pass
    assert given(path) == {("Ann", "a"): 1, ("Ann", "b"): 0, ("Ann", "c"): 1}


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_where_nothing_can_be_locked_is_one_line(tmp_path, monkeypatch, code):
    """As on a network file system without its lock service; nothing is written there."""
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(InputError, match=rf"`out` must be where files can be locked\..*{os.strerror(code)}"),
        open_label_log(tmp_path / "labels.jsonl"),
    ):
        pass
    assert label_log_files(tmp_path / "labels.jsonl") == []
