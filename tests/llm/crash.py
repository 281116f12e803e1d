"""Killing `deep ask` at random moments, and counting what that costs."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fault_server import FaultServer, digest_of

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november".split()  # noqa: SIM905
PROMPTS = ["deep-strict-steps", "deep-key-points", "yes-no", "fect-3d-direct-json", "fect-basic-direct-xml"]

Fetch = Callable[[str], Sequence[Any]]

_STARTER = """
import json, os, sys
import openai, pyarrow.parquet, sqlalchemy
from deep.cli import main
from deep.commands import ask
import deep.asking._run, deep.asking._summary
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.argv[1:] += json.loads(line)
        os._exit(main(command="ask"))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def write_examples(path: Path, n: int, *, claims: int = 1) -> Path:
    """Write `n` examples in three datasets, `claims` a document."""
    draw = random.Random(n)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["source", "claim", "label", "dataset", "document_id", "example_id"])
        for i in range(n):
            words = random.Random(i // claims).choices(WORDS, k=12)
            label = draw.random() < 0.5
            claim = draw.choices(words if label else ["zulu", "yankee", "xray"], k=4)
            name = f"doc{i // claims}"
            table.writerow([f"{name}: {' '.join(words)}", " ".join(claim), int(label), f"set{i % 3}", name, f"e{i}"])
    return path


class Restarts:
    """Starts the command again and again, from a process that has everything imported, since that is quicker."""

    def __init__(self, options: Sequence[str], errors: Path) -> None:
        with errors.open("w") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _STARTER, *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )

    def start(self, *more: str) -> int:
        """Start the command, with more words, and return its process id."""
        self.process.stdin.write(f"{json.dumps(more)}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def status(self) -> int:
        """Wait for the command to end, and return its status; negative where a signal killed it."""
        return int(self.process.stdout.readline())

    def close(self) -> None:
        """End the process that starts the others."""
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(120)


@dataclass
class Toll:
    """What the kills cost.

    `lost`: answers that were on disk at a kill and are not there, or differ, after it. `bought_again`: requests
    for answers that were on disk. `duplicates`: requests beyond the first of a body. `told`: how many the tool
    said may be paid twice, summed over its restarts. `unknown`: the same from the ledger.
    """

    status: int
    lost: int
    bought_again: int
    duplicates: int
    told: int
    unknown: int


def kill_and_resume(
    options: Sequence[str], folder: Path, server: FaultServer, fetch: Fetch, *, kills: int = 20
) -> Toll:
    """Kill the command at random moments, resume it each time, let it end, and count."""
    command, draw = Restarts(options, folder / "errors"), random.Random(7)
    done: dict[str, Any] = {}
    lost = bought_again = 0
    for number in range(kills + 1):
        before, settled = len(server.log), _bodies(fetch, done)
        pid = command.start()
        if number < kills:
            _wait_a_moment(server, before, draw)
            done |= _done(fetch)
            os.kill(pid, signal.SIGKILL)
        status = command.status()
        assert status == (-signal.SIGKILL if number < kills else 0), "the run was over before the last kill"
        now = _done(fetch)
        lost += len(done.items() - now.items())
        bought_again += sum(digest in settled for _, digest, _ in server.log[before:])
        done = now
    command.close()
    lines = (folder / "errors").read_text().splitlines()
    told = sum(int(line.split()[0]) for line in lines if "in flight" in line)
    unknown = fetch("SELECT count(*) FROM attempts WHERE outcome = 'unknown'")[0][0]
    return Toll(status, lost, bought_again, server.duplicates, told, unknown)


def _wait_a_moment(server: FaultServer, before: int, draw: random.Random) -> None:
    """Wait for a random time, mostly counted from the run's first request."""
    if draw.random() < 0.7:
        deadline = time.monotonic() + 300
        while len(server.log) == before and time.monotonic() < deadline:
            time.sleep(0.002)
    time.sleep(draw.uniform(0.0, 0.25))


def _done(fetch: Fetch) -> dict[str, Any]:
    return dict(fetch("SELECT key, vote FROM requests WHERE state = 'done'"))


def _bodies(fetch: Fetch, done: dict[str, Any]) -> set[str]:
    """Return the names that the server gives to the bodies of settled requests."""
    result = fetch("SELECT key, effective_body FROM requests WHERE state = 'done'") if done else []
    return {digest_of(json.loads(body)) for key, body in result if key in done}
