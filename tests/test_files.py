"""Results are written whole or not at all, and never over something else."""

import errno
import gzip
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tracemalloc
from collections import deque
from pathlib import Path

import pytest

from deep._util.files import atomic_file, atomic_files, atomic_folder, check_out, check_replaceable, read_bytes, to_json
from deep.datasets import read_examples, read_scores, read_votes
from deep.exceptions import InputError
from deep.integrations.labeling._label_book import read_annotations
from deep.llm import PriceBook
from deep.model import load
from deep.prompt_pool import load_prompt


def test_failure_leaves_the_old_run_untouched(tmp_path):
    """An exception leaves the earlier folder as it was and no trace of the new one; nothing of it is in the next."""
    out = tmp_path / "runs" / "x"
    with atomic_folder(out) as folder:
        (folder / "results.json").write_text("old")
        (folder / "first").write_text("")
    with pytest.raises(KeyboardInterrupt), atomic_folder(out) as folder:
        (folder / "results.json").write_text("half")
        raise KeyboardInterrupt
    assert (out / "results.json").read_text() == "old"
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["x"]
    with atomic_folder(out) as folder:
        (folder / "results.json").write_text("new")
    assert [(path.name, path.read_text()) for path in out.iterdir()] == [("results.json", "new")]


def test_folders_of_others_are_never_replaced(tmp_path, monkeypatch):
    """A folder with files but no results.json, or a file, is refused before anything runs."""
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"`out` must be a new folder or an earlier run"):
        check_replaceable(tmp_path)
    with pytest.raises(InputError, match=r"`out` must be a folder. Got the file"):
        check_replaceable(tmp_path / "thesis.tex")
    check_replaceable(tmp_path / "new" / "deeper")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(InputError, match="must be a folder with a name"):
        check_replaceable(Path())  # nothing can take the place of the folder that one is in


def test_json():
    """A name that is no UTF-8 is escaped, any language stays as it is, and a NaN is a bug, not a value."""
    assert to_json({"out": "caf\udce9"}).encode() == b'{\n "out": "caf\\udce9"\n}\n'
    assert to_json({"out": "café"}) == '{\n "out": "café"\n}\n'
    assert json.loads(to_json({"a": None})) == {"a": None}
    with pytest.raises(ValueError, match=r"JSON compliant"):
        to_json({"a": float("nan")})


@pytest.mark.parametrize("whole", [atomic_file, atomic_folder])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO])
def test_no_room_is_one_line_and_leaves_nothing(tmp_path, whole, number):
    """A full disk is an error of one line that names the output; the old output stays."""
    out = tmp_path / "x"
    with whole(out) as new:
        if whole is atomic_folder:
            new = new / "results.json"
        new.write_text("old")
    message = rf"`out` must be writable. Got '.*x': {os.strerror(number)}\. .*room"
    with pytest.raises(InputError, match=message), whole(out):
        raise OSError(number, os.strerror(number))
    assert (out if out.is_file() else out / "results.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("whole", [atomic_file, atomic_folder])
def test_a_folder_removed_in_mid_run_is_one_line(tmp_path, whole):
    """As when a scratch disk is cleaned."""
    (tmp_path / "gone").mkdir()
    with pytest.raises(InputError, match="No such file"), whole(tmp_path / "gone" / "x") as new:
        (tmp_path / "gone").rename(tmp_path / "moved")
        new.write_text("") if whole is atomic_file else (new / "results.json").write_text("")


@pytest.mark.parametrize("earlier", [True, False])
def test_what_others_put_in_the_place_of_a_run_stays(tmp_path, earlier):
    """The run that was under way is kept beside it, and the error says where; an empty folder is nothing to keep."""
    out = tmp_path / "x"
    if earlier:
        with atomic_folder(out) as folder:
            (folder / "results.json").write_text("old")
    with (
        pytest.raises(InputError, match=r"another program changed meanwhile.*The new files are in '.*x\.new'"),
        atomic_folder(out) as folder,
    ):
        (folder / "results.json").write_text("new")
        if earlier:
            out.rename(tmp_path / "moved")
        out.mkdir()
        (out / "thesis.tex").write_text("theirs")
    assert (out / "thesis.tex").read_text() == "theirs"
    assert (tmp_path / "x.new" / "results.json").read_text() == "new"
    with atomic_folder(tmp_path / "y") as folder:
        (folder / "results.json").write_text("new")
        (tmp_path / "y").mkdir()
    assert (tmp_path / "y" / "results.json").read_text() == "new"


def test_a_failed_replacement_keeps_the_old_run(tmp_path, monkeypatch):
    """The old folder is moved away first, and back where the new one cannot take its place."""
    out = tmp_path / "x"
    with atomic_folder(out) as folder:
        (folder / "results.json").write_text("old")
    rename = type(out).rename

    def refuse(path, target):
        if path.name == "new":
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(type(out), "rename", refuse)
    with pytest.raises(InputError, match="Input/output error"), atomic_folder(out):
        pass
    assert (out / "results.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def part_of(folder, writer):
    """Return the folder in which a process that ran `writer` holds, or has left, what is not complete."""
    code = (
        f"import sys, time; from pathlib import Path; from deep._util.files import *; out = Path(sys.argv[1])\n{writer}"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process, next(iter(set(folder.glob(".deep-*.part"))))


WAIT = "with atomic_file(out / 'long.csv') as new:\n    new.write_text('x'); print(flush=True); time.sleep(600)"


def test_what_a_killed_process_left_goes_at_the_next_start(tmp_path):
    """Who lives is known by a lock: a process id says nothing of another container, where it may be anybody's."""
    process, part = part_of(tmp_path, WAIT)
    with process:
        moved = part.rename(part.with_name(part.name.replace(str(process.pid), "999999999")))  # no process of ours
        with atomic_file(tmp_path / "x") as new:
            new.write_text("")
        assert (moved / "part" / "0.new").read_text() == "x"
        process.kill()
        process.wait()
        with atomic_file(tmp_path / "x") as new:
            new.write_text("")
    assert list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_what_may_be_the_only_copy_stays(tmp_path):
    """A run that was being replaced, files that were taking their places, a folder of another machine or version."""
    here = f".deep-{platform.node()}-1"
    kept = [tmp_path / name for name in (f"{here}-a.part/old/x", f"{here}-b.part/whole/x", f"{here}-c.part/part/x")]
    kept.append(tmp_path / ".deep-other-1-d.part" / "part" / "x")
    for path in kept:
        path.parent.mkdir(parents=True)
        path.write_text("")
        if path != kept[2]:  # of a version without locks
            (path.parents[1] / "life").write_text("")
    with atomic_file(tmp_path / "y") as new:
        new.write_text("")
    assert all(path.exists() for path in kept)


NAMES = ("a.csv", "a.rest.csv", "b.csv")


@pytest.mark.parametrize("changed", [*NAMES, "a.old.csv"])
def test_files_of_one_run_are_kept_beside_together(tmp_path, changed):
    """Where others change one of them, or one that the run has none of, none is replaced and none is thrown away."""
    for name in (*NAMES, "a.old.csv", "a.new.rest.csv"):
        (tmp_path / name).write_text("before")
    with (
        pytest.raises(
            InputError, match=rf"Got '.*{changed}', which.*The new files are in '.*a\.new1\.csv' and the files beside"
        ),
        atomic_files({name: tmp_path / name for name in NAMES}, [tmp_path / "a.old.csv"]) as partial,
    ):
        for name in NAMES:
            partial[name].write_text(name)
        (tmp_path / changed).write_text("theirs")
    kept = ("a.new1.csv", "a.new1.rest.csv", "a.new1.b.csv")
    assert [(tmp_path / name).read_text() for name in kept] == list(NAMES)
    message = {path.name: path.read_text() for path in tmp_path.iterdir() if path.name not in kept}
    assert message == dict.fromkeys((*NAMES, "a.old.csv", "a.new.rest.csv"), "before") | {changed: "theirs"}


@pytest.mark.parametrize("killed_after", [0, 1, 2])
def test_a_kill_between_two_renames_loses_no_file(tmp_path, killed_after):
    """What has not taken its place lies in one folder, which nobody removes."""
    writer = f"""
import deep._util.files as files
moved, replace = [], Path.replace
def dying(path, place):
    if len(moved) == {killed_after}:
        print(flush=True); time.sleep(600)
    moved.append(replace(path, place))
Path.replace = dying
with atomic_files({{name: out / name for name in {NAMES!r}}}) as partial:
    for name, path in partial.items():
        path.write_text(name)
"""
    process, part = part_of(tmp_path, writer)
    with process:
        process.kill()
    with atomic_file(tmp_path / "x.csv") as new:
        new.write_text("")
    there = [*tmp_path.glob("*.csv"), *part.glob("whole/*")]
    assert {path.name: path.read_text() for path in there} == {name: name for name in NAMES} | {"x.csv": ""}
    assert len(list(part.glob("whole/*"))) == len(NAMES) - killed_after


def test_a_place_that_cannot_be_taken_loses_no_file(tmp_path, monkeypatch):
    """The new files that could not take their places are named."""
    replace = type(tmp_path).replace

    def refuse(path, target):
        if path.name == "a.csv":
            raise OSError(errno.EIO, "Input/output error")
        return replace(path, target)

    monkeypatch.setattr(type(tmp_path), "replace", refuse)
    with (
        pytest.raises(InputError, match=r"Input/output error. The new files are in '.*whole'"),
        atomic_files({name: tmp_path / name for name in NAMES}) as partial,
    ):
        for path in partial.values():
            path.write_text("new")
    assert [path.name for path in tmp_path.glob(".deep-*.part/whole/*")] == ["a.csv"]


READERS = {
    "votes.csv": read_votes,
    "votes.csv.gz": read_votes,
    "votes.parquet": read_votes,
    "scores.csv": read_scores,
    "examples.jsonl": read_examples,
    "examples.parquet": read_examples,
    "labels.csv": read_annotations,
    "model.json": load,
    "prompt.toml": load_prompt,
    "prices.toml": lambda path: PriceBook.from_file("http://x/v1", path),
}


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
@pytest.mark.parametrize("name", sorted(READERS))
def test_only_regular_files_are_read(tmp_path, monkeypatch, name, kind):
    """A pipe would wait for ever, a device has no end: one line at once."""
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    if kind == "fifo":
        os.mkfifo(name)
    elif kind == "device":
        Path(name).symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(name)
    with pytest.raises(InputError, match=r"`\w+` must be a regular file, not a pipe, socket or device. Got '.*'"):
        READERS[name](name)


def test_a_large_file_is_refused_before_it_is_read(tmp_path):
    """The limit is in the message; a sparse file costs nothing."""
    path = tmp_path / "model.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match=r"`model` must have at most 268,435,456 bytes\. Got 1,099,511,627,776 in"):
        load(path)
    with pytest.raises(InputError, match="`text` must have at most 67,108,864 bytes"):
        read_bytes(path, "text")


@pytest.mark.parametrize(
    ("read", "param", "bound"),
    [
        (read_votes, "paths", "deep.datasets._source.MOST_GZIPPED"),
        (lambda path: deque(read_examples(path), maxlen=0), "examples", "deep.datasets._rows.MAX_INFLATED_BYTES"),
    ],
)
def test_a_gzip_file_is_not_read_beyond_its_bound(tmp_path, monkeypatch, read, param, bound):
    """What it holds is counted as it is read, whatever its own size, and is not kept."""
    most = 1 << 24
    monkeypatch.setattr(bound, most)
    path, row = tmp_path / "v.csv.gz", b"d,i," + b"s" * 50_000 + b",c,1\n"
    header = gzip.compress(b"dataset,item_id,source,claim,label\n", mtime=0)
    path.write_bytes(header + gzip.compress(row * 100, mtime=0) * 40)
    (small := tmp_path / "small.csv.gz").write_bytes(header + gzip.compress(b"d,i,1,0,1\n", mtime=0))
    read(small)  # what is imported at the first reading is no memory of a file
    tracemalloc.start()
    with pytest.raises(InputError) as caught:
        read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(caught.value) == (
        f"`{param}` must name gzip files that hold at most {most:,} bytes. Got more in {str(path)!r}. "
        "Check the file, then decompress it or write it as Parquet."
    )
    assert peak < 3 * most


@pytest.mark.parametrize("change", ["write", "replace", "make"])
def test_a_file_that_others_write_in_mid_run_stays(tmp_path, change):
    """From the check at the start of a command on; the new file is kept beside it, under its ending."""
    out = tmp_path / "v.csv"
    if change != "make":
        out.write_text("earlier")
    check_out(out, [".csv"])
    if change == "replace":
        out.unlink()
    out.write_text("theirs!")
    with (
        pytest.raises(
            InputError, match=r"`out` must not change during a run.*v\.csv.*The new files are in '.*v\.new\.csv'"
        ),
        atomic_file(out) as new,
    ):
        new.write_text("ours")
    assert (out.read_text(), (tmp_path / "v.new.csv").read_text()) == ("theirs!", "ours")
    check_out(out, [".csv"])
    out.unlink()
    for text in (
        "again",
        "and again",
    ):  # a place that is empty is free, and what the process itself wrote is no other's
        with atomic_file(out) as new:
            new.write_text(text)
    assert out.read_text() == "and again"


def test_what_others_add_to_an_earlier_run_in_mid_run_stays(tmp_path):
    """A new file, and a changed one."""
    out = tmp_path / "x"
    for change in ("notes.md", "results.json"):
        with atomic_folder(out) as folder:
            (folder / "results.json").write_text("old")
        check_replaceable(out)
        (out / change).write_text("theirs")
        with pytest.raises(InputError, match=r"The new files are in '.*x\.new"), atomic_folder(out) as folder:
            (folder / "results.json").write_text("new")
        assert (out / change).read_text() == "theirs"
        shutil.rmtree(out)


@pytest.mark.parametrize("whole", [atomic_file, atomic_folder])
def test_a_link_stays_and_leads_to_what_is_new(tmp_path, whole):
    """The place that a link leads to is written, not the link."""
    link, place = tmp_path / "link", tmp_path / "disk" / "x"
    place.parent.mkdir()
    link.symlink_to(place)
    for text in ("old", "new"):
        with whole(link) as made:
            (made if whole is atomic_file else made / "results.json").write_text(text)
        assert link.is_symlink()
        assert (place if whole is atomic_file else place / "results.json").read_text() == text


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX's")
@pytest.mark.parametrize("name", ["pipe.csv", "link.csv"])
def test_no_file_takes_the_place_of_a_pipe_or_a_device(tmp_path, name):
    """Also where a link leads to it: as root, a link to /dev/null would have made a file of that."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe.csv")
    message = rf"`out` must be a file, not a pipe, socket or device\. Got '.*{name}'\. Name another\."
    with pytest.raises(InputError, match=message):
        check_out(tmp_path / name, [".csv"])
    with pytest.raises(InputError, match="not a pipe"), atomic_file(tmp_path / name) as new:
        new.write_text("x")
    assert (tmp_path / "pipe.csv").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "pipe.csv"]


@pytest.mark.parametrize("whole", [atomic_file, atomic_folder])
def test_a_place_in_a_folder_that_is_gone_is_one_line(tmp_path, monkeypatch, whole):
    """Also where one is in that folder, which has no path any more."""
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with (
        pytest.raises(InputError, match=r"`out` must be writable. Got 'x'.*No such file"),
        whole(Path("x")),
    ):
        pass
    with pytest.raises(InputError, match="`out` must"):
        check_out(Path("x.csv"), [".csv"])
