"""A case for the page of labels: votes of lexical judges on invented claims, and a process that serves the page."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

CLAIMS = Path(__file__).parents[3] / "examples" / "unlabeled.csv"
DATASET = "town-notices"


class LabelServer:
    """A process of `deep label`.

    Parameters
    ----------
    folder : Path
        Where the labels go.
    *words : str
        Of the command.
    """

    def __init__(self, folder, *words):
        command = [sys.executable, "-m", "deep", "label", *map(str, words), "--out", "labels.csv"]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("serving "):
                break
        else:
            raise AssertionError(self.process.stderr.read())
        self.address = self.said[-1].split()[1]
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])

    def kill(self):
        """End it as kill -9 does."""
        self.process.kill()
        self.process.communicate()

    def stop(self, number):
        """End it by a signal, and return its status and what it said after that."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=600)
        assert err == ""
        return self.process.returncode, out


@contextmanager
def label_server(folder, *words):
    """Serve a page until the end of the block."""
    server = LabelServer(folder, *words)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()
