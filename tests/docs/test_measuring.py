"""What benchmarks measure a command with counts what nobody waits for."""

import subprocess
import sys
from pathlib import Path

import pytest

# `make docs` runs what looks at pages and at the programs that fill them.
pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

FORK_SERVER = """
import multiprocessing, sys, time

def burn(told):
    while time.process_time() < 0.5:
        pass
    told.put(time.process_time())

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    told = context.Queue()
    worker = context.Process(target=burn, args=(told,))
    worker.start()
    print(told.get())
    worker.join()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands children of children over")
def test_workers_of_a_fork_server_are_counted(tmp_path):
    """Their processor time is the command's, though the fork server is not waited for by it."""
    (tmp_path / "work.py").write_text(FORK_SERVER, encoding="utf-8")
    code = (
        "import sys; from measuring import measure;"
        "used = measure([sys.executable, sys.argv[1]], keep=True); print(used.stdout.strip(), used.processor_s)"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "work.py")]
    done = subprocess.run(words, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    worker, all_of_it = (float(number) for number in done.stdout.split())
    assert all_of_it >= worker >= 0.5
