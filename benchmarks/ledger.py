"""Several processes on one PostgreSQL ledger, each with a rate limit of its own: what they reach together.

    python benchmarks/ledger.py [--processes 4 16] [--rate 40] [--seconds 30] [--out results.json]

Starts PostgreSQL in a temporary folder, a fault server that answers after 0.3 seconds, refuses a twentieth of the
requests and fails another one, and processes that may ask `rate / processes` requests a second (``--rpm``): first each
on a ledger of its own with its share of the requests, then all on one ledger, each with all requests.
Printed: the rate reached as a share of the sum of what was allowed, and of the sum of what the processes reach on
ledgers of their own, bound by the same processor, disk and server; and how many answers were bought twice.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from deep.llm import Request
from tests.fault_server import FaultServer, honest_reply
from tests.llm.calls import question, questions, run

FAULTS = {"rate_limited": 0.05, "server_error": 0.05}
LATENCY = 0.3
"""Seconds of an answer: about what a short answer of a hosted LLM takes."""
WORKERS = 8
PATIENCE = 120.0
"""Seconds: a busy machine is no reason to ask again."""


def program(name: str) -> str:
    """Return the path of one of PostgreSQL's programs; Debian keeps them out of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    result = str(places[0]) if places else shutil.which(name)
    if result is None:
        sys.exit(f"PostgreSQL is not installed: {name} not found")
    return result


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


def part_of(n: int, place: int, processes: int) -> Callable[[], Iterator[Request]]:
    """Return a factory of one process's share of the requests."""
    return lambda: (question(i) for i in range(place, n, processes))


def work(url: str, ledger: str, requests: tuple[int, int, int], rpm: float, start: Any, told: Any) -> None:
    """Ask requests, as one of several processes."""
    run(url, ledger, questions(1), prices={})  # the first request is settled: this loads libraries and connects
    begun = 0.0

    def begin(_: object) -> None:
        nonlocal begun
        start.wait()
        begun = time.process_time()

    ran = run(url, ledger, part_of(*requests), rpm=rpm, workers=WORKERS, timeout=PATIENCE, prices={}, started=begin)
    told.put((time.monotonic(), ran.tally.answered, time.process_time() - begun))


def asked(ledgers: list[str], rate: float, seconds: float) -> dict[str, float]:
    """Return what one process for each of the ledgers named reaches; those with the same ledger share the requests."""
    processes, shared = len(ledgers), len(set(ledgers)) == 1
    n = int(rate * seconds)
    bought: Counter[bytes] = Counter()

    def reply(body: dict[str, Any]) -> str:
        bought[sha256(json.dumps(body, sort_keys=True).encode()).digest()] += 1
        return honest_reply(body)

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.llm.calls", "openai", "sqlalchemy.dialects.postgresql", "psycopg"])
    start, told = context.Barrier(processes + 1), context.Queue()
    with FaultServer(faults=FAULTS, latency=LATENCY, reply=reply, retry_after=None) as server:
        for ledger in dict.fromkeys(ledgers):
            run(server.url, ledger, questions(1), prices={})  # makes the tables
        workers = []
        for place, ledger in enumerate(ledgers):
            share = (n, 0, 1) if shared else (n, place, processes)
            given = (server.url, ledger, share, 60 * rate / processes, start, told)
            workers.append(context.Process(target=work, args=given))
            workers[-1].start()
        start.wait()
        bought.clear()
        begun, before, commits = time.monotonic(), server.count, committed(ledgers[0])
        ends = [told.get(timeout=20 * seconds + 120) for _ in workers]
        for worker in workers:
            worker.join()
        took, attempts = max(end for end, _, _ in ends) - begun, server.count - before
        return {
            "requests": n,
            "seconds": took,
            "attempts_per_second": attempts / took,
            "share_of_allowed": attempts / took / rate,
            "answers_bought_twice": sum(times > 1 for times in bought.values()),
            "answered": sum(answered for _, answered, _ in ends),
            "processor_ms_per_request": 1000 * sum(spent for _, _, spent in ends) / n,
            "transactions_per_request": (committed(ledgers[0]) - commits) / n,
        }


def committed(url: str) -> int:
    """Return the transactions of a server so far."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute("SELECT sum(xact_commit) FROM pg_stat_database").fetchone()
        return int(row[0]) if row else 0


def measure(n_processes: int, rate: float, seconds: float) -> dict[str, Any]:
    """Return what so many processes reach, each on a ledger of its own, and then all on one."""
    import psycopg

    with postgresql() as url:
        names = [f"own_{place}" for place in range(n_processes)]
        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
            for name in (*names, "shared"):
                connection.execute(f"CREATE DATABASE {name}".encode())
        where = url.rpartition("/")[0]
        own = asked([f"{where}/{name}" for name in names], rate, seconds)
        shared = asked([f"{where}/shared"] * n_processes, rate, seconds)
    ratio = shared["attempts_per_second"] / own["attempts_per_second"]
    return {"processes": n_processes, **shared, "own_ledgers": own, "share_of_sum": ratio}


def main() -> None:
    """Print what each number of processes reaches."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[4, 16])
    parser.add_argument("--rate", type=float, default=40.0, help="requests a second of all processes together")
    parser.add_argument("--seconds", type=float, default=30.0, help="about how long each run takes")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = []
    for n in args.processes:
        result.append(one := measure(n, args.rate, args.seconds))
        for what, ran in (("a ledger each", one["own_ledgers"]), ("one ledger", one)):
            sys.stdout.write(
                f"{n} processes, {what}, {ran['requests']} requests: {ran['attempts_per_second']:.1f} attempts/s, "
                f"{ran['share_of_allowed']:.2f} of the allowed {args.rate:g}/s; {ran['answers_bought_twice']} bought "
                f"twice; {ran['processor_ms_per_request']:.1f} processor ms and {ran['transactions_per_request']:.1f} "
                "transactions each\n"
            )
        sys.stdout.write(f"{n} processes: one ledger reaches {one['share_of_sum']:.2f} of the sum of their own\n")
        sys.stdout.flush()
    if args.out:
        results = {"machine": platform.platform(), "cores": os.cpu_count(), "rate": args.rate, "runs": result}
        args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
