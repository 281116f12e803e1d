"""Several processes on one PostgreSQL ledger, each with a rate limit of its own: what they reach together.

    python benchmarks/ledger.py [--processes 4 16] [--rate 80] [--seconds 60] [--out results.json]

Starts PostgreSQL in a temporary folder, a fault server that refuses a twentieth of the requests and fails another one,
and processes that all go through the same requests. Each may ask `rate / processes` requests a second (``--rpm``).
Printed: the rate reached as a share of the sum of what was allowed, and how many answers were bought twice.
"""

import argparse
import json
import multiprocessing
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fault_server import FaultServer, honest_reply
from tests.llm.calls import questions, run

FAULTS = {"rate_limited": 0.05, "server_error": 0.05}


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs; Debian keeps them out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    found = str(places[0]) if places else shutil.which(name)
    if found is None:
        sys.exit(f"PostgreSQL is not installed: {name} not found")
    return found


@contextmanager
def postgresql() -> Iterator[str]:
    """Start a server in a temporary folder, and yield the URL of an empty database."""
    import psycopg

    with tempfile.TemporaryDirectory(dir="/tmp") as name, socket.socket() as free:
        folder = Path(name)
        account: dict[str, Any] = {}
        if os.geteuid() == 0:
            folder.chmod(0o755)
            shutil.chown(folder, "postgres", "postgres")
            account = {"user": "postgres", "group": "postgres"}
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **account}
        init = [program("initdb"), "-D", folder / "data", "-U", "deep", "-A", "trust", "-E", "UTF8", "--locale=C"]
        subprocess.run(init, check=True, **quiet)
        words = [program("postgres"), "-D", folder / "data", "-p", str(port), "-c", f"unix_socket_directories={folder}"]
        process = subprocess.Popen(words, **quiet)
        url = f"postgresql://deep@127.0.0.1:{port}/postgres"
        try:
            for _ in range(300):
                try:
                    psycopg.connect(url).close()
                    break
                except psycopg.OperationalError:
                    time.sleep(0.1)
            yield url.replace("postgresql:", "postgresql+psycopg:")
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait(20)


def work(url: str, ledger: str, n: int, rpm: float, start: Any, told: Any) -> None:
    """Ask all requests, as one of several processes."""
    run(url, ledger, questions(1), prices={})  # the first request is settled: this loads libraries and connects
    start.wait()
    before = time.process_time()
    ran = run(url, ledger, questions(n), rpm=rpm, workers=4, prices={})
    told.put((time.monotonic(), ran.tally.answered, time.process_time() - before))


def measure(n_processes: int, rate: float, seconds: float) -> dict[str, float]:
    """Return what so many processes reach on one ledger."""
    n = int(rate * seconds)
    bought: Counter[bytes] = Counter()

    def reply(body: dict[str, Any]) -> str:
        bought[sha256(json.dumps(body, sort_keys=True).encode()).digest()] += 1
        return honest_reply(body)

    context = multiprocessing.get_context("spawn")
    start, told = context.Barrier(n_processes + 1), context.Queue()
    with postgresql() as ledger, FaultServer(faults=FAULTS, latency=0.05, reply=reply, retry_after=None) as server:
        run(server.url, ledger, questions(1), prices={})  # makes the tables
        given = (server.url, ledger, n, 60 * rate / n_processes, start, told)
        processes = [context.Process(target=work, args=given) for _ in range(n_processes)]
        for process in processes:
            process.start()
        start.wait()
        begun = time.monotonic()
        ends = [told.get(timeout=20 * seconds + 120) for _ in processes]
        for process in processes:
            process.join()
        took = max(end for end, _, _ in ends) - begun
        return {
            "processes": n_processes,
            "requests": n,
            "seconds": took,
            "attempts_per_second": server.count / took,
            "share_of_allowed": server.count / took / rate,
            "answers_bought_twice": sum(times > 1 for times in bought.values()),
            "answered": len(bought),
            "processor_ms_per_request": 1000 * sum(spent for _, _, spent in ends) / n,
        }


def main() -> None:
    """Print what each number of processes reaches."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--rate", type=float, default=80.0, help="requests a second of all processes together")
    parser.add_argument("--seconds", type=float, default=60.0, help="about how long each run takes")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    found = []
    for n in args.processes:
        found.append(one := measure(n, args.rate, args.seconds))
        sys.stdout.write(
            f"{n} processes, {one['requests']} requests: {one['attempts_per_second']:.1f} attempts/s, "
            f"{one['share_of_allowed']:.2f} of the allowed {args.rate:g}/s; "
            f"{one['answers_bought_twice']} bought twice; {one['processor_ms_per_request']:.1f} processor ms each\n"
        )
    if args.out:
        results = {"machine": platform.platform(), "cores": os.cpu_count(), "rate": args.rate, "runs": found}
        args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
