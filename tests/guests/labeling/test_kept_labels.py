"""Labels while others change, replace and remove the files, processes are killed, disks fill and clocks jump."""

import os
import random
import re
import shutil
import signal
import sqlite3
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.deep_commands import votes
from tests.guests.labeling.label_round import Round, Zygote
from tests.guests.labeling.test_label_mend import put
from tests.guests.serve.label_case import CLAIMS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of another process are Linux's")
DAY = 86400


def change(case, statement):
    """Run SQL on the log, as a person may; not where it was removed or locked just then."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"{case.log.as_uri()}?mode=rw", uri=True)) as log, log:
        log.execute(statement)


def rewrite(case, data):
    """Write other bytes into the same file, or put another in its place."""
    (put if case.rng.random() < 0.5 else Path.write_bytes)(case.log, data)


def edit(case):
    """Change a byte in place."""
    data = bytearray(case.log.read_bytes())
    data[case.rng.randrange(len(data))] ^= 0x55
    rewrite(case, bytes(data))


def older(case):
    """Put an older state of the log in its place."""
    copy = case.folder / "older"
    with closing(sqlite3.connect(case.log)) as log, closing(sqlite3.connect(copy)) as other:
        log.backup(other)
        with other:
            other.execute("DELETE FROM events WHERE number > (SELECT max(number) - 4 FROM events)")
    copy.replace(case.log)


def link(case):
    """Move the log, and leave a link to it."""
    place = case.log.rename(case.folder / f"moved-{case.rng.random()}")
    case.log.symlink_to(place)


def relabel(case):
    """Add a label to the table by hand; again where the server put a new table in its place just then."""
    name = f"by-hand-{case.rng.random()}"
    while not any(name in path.read_text() for path in case.folder.glob("labels*.csv*")):
        with (case.folder / "labels.csv").open("a") as file:
            file.write(f"town-notices,{name},1\n")


def cut(case, path):
    """Cut a file anywhere."""
    os.truncate(path, case.rng.randrange(path.stat().st_size))


LOST = r"written anew with all labels"
"""What is told of a log that is not as it was left: by the server that left it, or by the next start."""

EITHER = r""
"""What may have changed nothing in it, as a byte of no event."""

EDITED = """UPDATE events SET event = replace(event, '"label": 0', '"label": 1')"""

NO_FOLDER = ("folder moved", "folder removed")
DISTURBANCES = {
    "rename, older": (older, LOST),
    "rename, text": (lambda case: put(case.log, b"hello\n" * 500), LOST),
    "truncate": (lambda case: cut(case, case.log), LOST),
    "empty": (lambda case: os.truncate(case.log, 0), LOST),
    "lengthen": (lambda case: os.truncate(case.log, case.log.stat().st_size + 100), EITHER),
    "edit": (edit, EITHER),
    "label edited": (
        lambda case: change(case, "UPDATE events SET event = replace(event, 'label\": 0', 'label\": 1')"),
        EITHER,
    ),
    "row removed": (lambda case: change(case, "DELETE FROM events WHERE number = 5"), LOST),
    "reordered": (lambda case: change(case, "UPDATE events SET number = 1000 - number"), LOST),
    "table removed": (lambda case: change(case, "DROP TABLE events"), LOST),
    "CRLF": (lambda case: rewrite(case, case.log.read_bytes().replace(b"\n", b"\r\n")), EITHER),
    "BOM": (lambda case: rewrite(case, b"\xef\xbb\xbf" + case.log.read_bytes()), LOST),
    "removed": (lambda case: case.log.unlink(), LOST),
    "link": (link, None),
    "the same file anew": (lambda case: put(case.log, case.log.read_bytes()), None),
    "hard link": (lambda case: os.link(case.log, case.folder / f"{case.rng.random()}"), None),
    "copy removed": (lambda case: case.copy.unlink(missing_ok=True), LOST),
    "copy cut": (lambda case: cut(case, case.copy), LOST),
    "table edited": (relabel, r"renamed to 'labels\.csv\.old"),
    "folder moved": (lambda case: case.folder.rename(f"{case.folder}-{case.rng.random()}"), LOST),
    "folder removed": (lambda case: shutil.rmtree(case.folder, ignore_errors=True), LOST),
    "kill -9": (lambda case: os.kill(case.server, signal.SIGKILL), r"server does not answer"),
    "full disk": (Round.fill_disk, r"could not be written|can be written"),
    "two processes": (Round.start_another, EITHER),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return votes on the invented claims."""
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "all", "--out", str(path)]) == 0
    return path


@pytest.fixture
def folder(tmp_path):
    """Return a folder in memory where the system has one: a thousand waits for a disk are the most of the time else."""
    memory = Path("/dev/shm")
    place = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=place, ignore_cleanup_errors=True) as made:
        yield Path(made)


def set_clock(clock, day):
    """Return a disturbance that puts the clock of every server some days ahead, or back."""

    def jump(case):
        now = int(clock.read_text())
        clock.write_text(f"{now + day * DAY:+d}")

    return jump, EITHER


def attack(folder, zygote, disturbances, rng):
    """Disturb a round of labels, one thing after the other; return the lost labels, and what nobody was told of."""
    wrong, untold = [], []
    with Round(folder, zygote, rng) as case:
        for name, (disturb, told) in disturbances:
            case.heard.clear()
            if told is None:  # while a line is being written it is not known to be harmless
                case.label(3, lambda: None)
                disturb(case)
            else:
                case.label(3, lambda disturb=disturb: disturb(case))
            gentle = name in NO_FOLDER or rng.random() < 0.6
            if gentle or told in (None, EITHER) or name == "kill -9":
                case.label(1, lambda: None)
            case.stop(signal.SIGINT if gentle else signal.SIGKILL)
            case.start()
            wrong += [(name, key) for key in case.differences()]
            message = "\n".join(case.heard)
            if bool(re.search(LOST if told is None else told, message)) is (
                told is None
            ):  # of what changes nothing, nothing is told
                untold.append((name, message))
        return wrong, untold, len(case.truth)


def attacks(folder, table, names, seed, *, clock=None, environment=None):
    """Attack in rounds of ten disturbances each; return what was lost, what was not told, and the answers kept."""
    rng = random.Random(seed)
    kinds = DISTURBANCES | (
        {} if clock is None else {"a day ahead": set_clock(clock, 1), "a day back": set_clock(clock, -1)}
    )
    zygote = Zygote(folder, table, environment)
    try:
        wrong, untold, kept = [], [], 0
        for at in range(0, len(names), 10):
            place = folder / f"round-{at}"
            place.mkdir()
            result = attack(place, zygote, [(name, kinds[name]) for name in names[at : at + 10]], rng)
            for name, message in result[1]:
                sys.stderr.write(f"not told of {name!r}: {message!r}\n")
            wrong, untold, kept = wrong + result[0], untold + result[1], kept + result[2]
            done = f"{min(at + 10, len(names))} disturbances, {kept} answers kept"
            sys.stderr.write(f"{done}, {len(wrong)} lost or changed, {len(untold)} not told\n")
    finally:
        zygote.end()
    return wrong, untold, kept


QUICK = (
    ["rename, older", "truncate", "row removed", "edit", "kill -9", "full disk"],
    ["two processes", "removed", "copy removed", "table edited", "folder removed", "reordered"],
)


@pytest.mark.parametrize("names", QUICK)
def test_a_few_disturbances(folder, table, names):
    """Of each sort that was reported: nothing that was acknowledged is lost, and each is told."""
    wrong, untold, kept = attacks(folder, table, names, 0)
    assert (wrong, untold) == ([], [])
    assert kept > 10


@pytest.mark.slow
def test_two_hundred_disturbances(folder, table):
    """Of all sorts, in any order, with kill -9 behind two of five: 0 acknowledged labels lost or changed, each told."""
    clock, environment = preload(folder)
    every = [*DISTURBANCES, "a day ahead", "a day back"]
    names = (every * 8)[:200]
    random.Random(1).shuffle(names)
    wrong, untold, _ = attacks(folder, table, names, 1, clock=clock, environment=environment)
    assert (wrong, untold) == ([], [])


def preload(folder):
    """Return a file that sets the clock, and the environment in which it does; skip where there is no faketime."""
    result = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    if not result:
        pytest.skip("faketime is not installed (Debian's package faketime)")
    clock = folder / "clock"
    clock.write_text("+0")
    fake = {"LD_PRELOAD": str(result[-1]), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1"}
    quiet = {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1"}
    quiet["FAKETIME_FORCE_MONOTONIC_FIX"] = "0"  # else each wait for the interpreter's lock ends at once, and spins
    return clock, {**os.environ, **fake, **quiet}
