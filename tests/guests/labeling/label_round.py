"""A round of labels under attack: three people at a real `deep label`, what it acknowledged, and what it told them."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from deep.integrations.labeling import read_annotations, read_label_log
from tests.guests.serve.label_case import CLAIMS

PEOPLE = ("Ann", "Bob", "Çem")
FOURTH = "Dee"
"""Answers while the others are disturbed."""

ALL = (*PEOPLE, FOURTH)
ANSWERS = {"1": 1, "0": 0, "undecided": -1, "skip": None}
NOTES = ("", "", "=1+1", "line\nnext", "\u200b@x")
GONE = object()
FREE = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


class Zygote:
    """A process that becomes `deep label` as often as it is asked to, with everything loaded.

    Parameters
    ----------
    folder : Path
    votes : Path
    environment : dict, optional
    """

    def __init__(self, folder, votes, environment=None):
        self.votes = votes
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("label_zygote.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**(environment or os.environ), "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        self._ask({"votes": str(votes), "examples": str(CLAIMS), "out": str(folder / "warm.csv")})

    def start(self, folder, out):
        """Start the command in a folder, its output in a file; return its process."""
        words = [str(self.votes), "--examples", str(CLAIMS), "--n", "200", "--double", "60", "--port", "0"]
        return int(self._ask({"cwd": str(folder), "out": str(out), "words": [*words, "--out", "labels.csv"]}))

    def end(self):
        """End it."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def _ask(self, asked):
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()


class Round:
    """Labels of three people in one folder, through any number of servers.

    Parameters
    ----------
    folder : Path
        Of the labels, and of what servers say.
    zygote : Zygote
    rng : Random
    """

    def __init__(self, folder, zygote, rng):
        self.folder, self.zygote, self.rng = folder / "labels", zygote, rng
        self.folder.mkdir()
        self.log = self.folder / "labels.log.sqlite"
        self.truth = {}
        self.maybe = {}
        self.heard = []
        self._out = folder / "out"
        self.start()

    @property
    def copy(self):
        """Return the copy of the log."""
        return self.log.with_name(f"{self.log.name}.copy")

    def start(self):
        """Start a server, and hear what it says of the log."""
        self.folder.mkdir(exist_ok=True)
        self.server, result = self.launched(self._out)
        assert result is not None, self._out.read_text()
        self.address, self._read = result, len(self.heard[-1])

    def launched(self, out):
        """Return the process of a server and its address, None where it ends instead; what it says is heard."""
        out.unlink(missing_ok=True)
        process = self.zygote.start(self.folder, out)
        while is_alive(process):
            if result := re.search(r"serving (\S+?)/? ", out.read_text() if out.exists() else ""):
                self.heard.append(out.read_text())
                return process, result[1]
            time.sleep(0.005)
        self.heard.append(out.read_text())
        return process, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)

    def stop(self, number):
        """End the server by a signal, and hear what it says at its end, not again what it said at its start."""
        if is_alive(self.server):
            os.kill(self.server, number)
        while is_alive(self.server):
            time.sleep(0.005)
        self.heard.append(self._out.read_text()[self._read :])

    def post(self, path, **fields):
        """Return the status and the JSON of an answer, and hear what it says is wrong."""
        request = Request(self.address + path, json.dumps(fields).encode(), {"Content-Type": "application/json"})
        try:
            with urlopen(request, timeout=300) as answer:
                result = json.load(answer)
                self.heard.append(result.get("problem", ""))
                return 200, result
        except HTTPError as error:
            with error:
                message = json.load(error)["error"]["message"]
            self.heard.append(message)
            return error.code, message

    def label(self, times, disturb):
        """Let each person do something so many times, all at once, and disturb them at a random moment."""
        failed = []

        def work(person, seed):
            try:
                for _ in range(times):
                    self.act(person, type(self.rng)(seed + str(_)))
            except (URLError, ConnectionError, TimeoutError, json.JSONDecodeError, OSError) as error:
                self.heard.append(f"the server does not answer: {error}")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(who, f"{self.rng.random()}")) for who in PEOPLE]
        for thread in threads:
            thread.start()
        time.sleep(self.rng.random() * 0.3)
        disturb()
        for thread in threads:
            thread.join()
        assert failed == []

    def act(self, person, rng):
        """Let a person answer, skip or undo; keep what the page acknowledges."""
        _, state = self.post("/state", person=person)
        last, item = state["last"], state["item"]
        undo = last is not None and (item is None or rng.random() < 0.1)
        if item is None and not undo:
            return
        answer = rng.choice(list(ANSWERS) + ["1", "0"] * 3)
        key = person, last["item_id"] if undo else item["item_id"]
        new = GONE if undo else ANSWERS[answer]
        self.maybe[key] = {self.truth.get(key, GONE), new}  # until it is acknowledged or refused
        if undo:
            status, message = self.post("/undo", person=person)
        else:
            status, message = self.post("/answer", person=person, item_id=key[1], label=answer, note=rng.choice(NOTES))
        del self.maybe[key]
        if status == 200:
            self.truth[key] = new
        assert status in (200, 507), message

    def differences(self):
        """Return the answers that the log and its tables do not have as they were acknowledged."""
        book, _ = read_label_log(self.log)
        result = {(who, item[1]): given.label for who in ALL for item, given in book.answers.get(who, {}).items()}
        for key, allowed in self.maybe.items():
            if result.get(key, GONE) in allowed:
                self.truth[key] = result.get(key, GONE)
        self.maybe.clear()
        wrong = [key for key in result.keys() | self.truth if result.get(key, GONE) != self.truth.get(key, GONE)]
        table = self.folder / "labels.annotations.csv"
        marks = read_annotations(table).marks if any(label is not None for label in result.values()) else {}
        given = {key: label for key, label in result.items() if label is not None}
        rows = {(who, item): mark["label"] for (item, who), mark in marks.items() if who in ALL}
        return wrong + [key for key in given.keys() | rows if given.get(key) != rows.get(key)]

    def fill_disk(self):
        """Let the server write no file beyond half of what the log has, for a while."""
        size = self.log.stat().st_size // 2 + self.rng.randrange(200)
        resource.prlimit(self.server, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        time.sleep(self.rng.random() * 0.3)
        for _ in range(2):
            self.act(FOURTH, self.rng)
        resource.prlimit(self.server, resource.RLIMIT_FSIZE, FREE)

    def start_another(self):
        """Start a second server where the first one is at work; its lock may be taken away, and both write."""
        (self.folder / ".labels.log.sqlite.lock").unlink(missing_ok=True)
        process, _ = self.launched(self._out.with_name("second"))
        if is_alive(process):
            os.kill(process, signal.SIGKILL)


def is_alive(process):
    """Return whether a process is there."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
