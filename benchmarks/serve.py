"""What `deep serve` costs beside the work itself, and whether it stays quick, right and small.

::

    python benchmarks/serve.py                                # 50,000 pairs of 125 words, 64 clients, one worker
    python benchmarks/serve.py --pairs 5000 --out serve.json  # fewer, on a machine with other work

In one run, in rounds that take turns: the served model, fitted on examples/claims.csv with all lexical checks; a bare
FastAPI route that parses the same body with pydantic and answers with a constant; and the same checks with a look-up of
their votes in a table of P, in a plain loop. Processor time is that of the server's process (user and system), the
client's own is printed apart. Memory is the server's resident set (RSS) after a fifth of the pairs and after all. Then
pairs that are asked again, which the cache answers. Linux only: figures come from /proc.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from lexical import sentences, vocabulary  # noqa: E402

SOURCE_WORDS, CLAIM_WORDS = 108, 17
MOST_RATIO, MOST_P99_RATIO, MOST_GROWTH = 1.5, 10.0, 20.0
ROUNDS = 5
TICKS = os.sysconf("SC_CLK_TCK")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def made(start: int, n: int) -> Iterator[dict[str, str]]:
    """Yield pairs of 125 words, each of its own seed; the claim has words of its source and a few others."""
    words, weights = vocabulary(random.Random(0))
    for number in range(start, start + n):
        draw = random.Random(number)
        document = sentences(draw, words, weights, SOURCE_WORDS)
        begun = draw.choice(document).rstrip(".").split()[: CLAIM_WORDS - 4]
        claim = " ".join([*begun, *draw.choices(words, cum_weights=weights, k=CLAIM_WORDS - len(begun))])
        yield {"source": " ".join(document), "claim": f"{claim}.", "id": str(number)}


class Client(asyncio.Protocol):
    """One connection that sends its requests one after the other."""

    def __init__(self, bodies: Iterator[bytes], port: int, seconds: list[float], wrong: list[str]) -> None:
        self._bodies, self._seconds, self._wrong = bodies, seconds, wrong
        self._head = f"POST /v1/check HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        self._read, self._begun = b"", 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        self._transport = transport
        self._send()

    def _send(self) -> None:
        body = next(self._bodies, None)
        if body is None:
            self._transport.close()
            self.done.set_result(None)
            return
        self._begun = time.perf_counter()
        self._transport.write(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def data_received(self, data: bytes) -> None:
        """Send the next request once the answer is whole."""
        self._read += data
        head, gap, body = self._read.partition(b"\r\n\r\n")
        if gap and len(body) == int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]):
            self._seconds.append(time.perf_counter() - self._begun)
            if not head.startswith(b"HTTP/1.1 200"):
                self._wrong.append((head.split(b"\r\n")[0] + body[:200]).decode())
            self._read = b""
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        """Count a connection that was closed too early."""
        if not self.done.done():
            self._wrong.append(f"closed: {error}")
            self.done.set_result(None)


async def send_all(port: int, start: int, n: int, clients: int) -> dict[str, object]:
    """Return the seconds of each request, what went wrong, and the client's own processor time."""
    bodies = [json.dumps(pair).encode() for pair in made(start, n)]
    seconds, wrong, waiting = list[float](), list[str](), iter(bodies)
    loop = asyncio.get_running_loop()
    before, begun = time.process_time(), time.perf_counter()
    result = [
        await loop.create_connection(lambda: Client(waiting, port, seconds, wrong), "127.0.0.1", port)
        for _ in range(clients)
    ]
    await asyncio.gather(*(client.done for _, client in result))
    cpu, wall = time.process_time() - before, time.perf_counter() - begun
    return {"seconds": seconds, "wrong": wrong[:5], "n_wrong": len(wrong), "cpu": cpu, "wall": wall}


def client(port: int, start: int, n: int, clients: int) -> dict[str, object]:
    """Run the clients in a process of their own."""
    words = [sys.executable, __file__, "--client", *map(str, (port, start, n, clients))]
    return json.loads(subprocess.run(words, capture_output=True, check=True).stdout)


def bare(port: int) -> None:
    """Serve the bare route."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    class Body(BaseModel):
        """A pair."""

        source: str
        claim: str
        id: str | None = None

    app = FastAPI()

    @app.post("/v1/check")
    async def check(body: Body) -> dict[str, float]:
        return {"p_consistent": 0.5 if body.claim else 0.0}

    uvicorn.run(app, port=port, http="h11", log_level="critical", access_log=False)


def loop_seconds(model_file: str, start: int, n: int) -> float:
    """Return the processor seconds of the checks and a look-up in a table, in a plain loop."""
    from deep.asking import Finder
    from deep.datasets import examples_from_dataset
    from deep.model import load
    from deep.records import Example

    model = load(model_file)
    judges = [column.judge for column in Finder().plan(model, examples_from_dataset([]), str).columns]
    examples = [Example(pair["source"], pair["claim"], pair["id"]) for pair in made(start, n)]
    known: dict[tuple[int, ...], float] = {}
    patterns = {tuple(judge.label(example).vote for judge in judges) for example in examples}
    for pattern in patterns:
        known[pattern] = float(model.score([list(pattern)], streamed=True)[0])
    fresh = [Example(example.source + " ", example.claim, example.example_id) for example in examples]
    before = time.process_time()
    for example in fresh:
        known[tuple(judge.label(example).vote for judge in judges)]
    return time.process_time() - before


def plain_loop(model_file: str, start: int, n: int) -> float:
    """Run the plain loop in a process of its own."""
    words = [sys.executable, __file__, "--loop", model_file, str(start), str(n)]
    return float(subprocess.run(words, capture_output=True, check=True).stdout)


def cpu_of(process: int) -> float:
    """Return the processor seconds of a process, user and system."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(process: int) -> float:
    """Return the resident set of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


@contextmanager
def running(words: Sequence[str], port: int | None) -> Iterator[tuple[int, int]]:
    """Yield the id of a server's process and its port."""
    process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        if port is None:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("127.0.0.1:")[1].split("/")[0])
        else:
            time.sleep(3)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait()


def fitted(folder: Path) -> str:
    """Fit the model that is served, and return its file."""
    votes, model = str(folder / "votes.parquet"), str(folder / "model.json")
    for words in (
        ["votes", str(ROOT / "examples/claims.csv"), "--lexical", "all", "--out", votes],
        ["fit", votes, "--out", model],
    ):
        subprocess.run([sys.executable, "-m", "deep", *words], check=True, capture_output=True, cwd=ROOT)
    return model


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of values."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def measured(args: argparse.Namespace, folder: Path) -> dict[str, float]:
    """Return all figures of a run."""
    model, size = fitted(folder), args.pairs // ROUNDS
    total = {"served": 0.0, "bare": 0.0, "loop": 0.0, "client": 0.0, "wall": 0.0}
    seconds: dict[str, list[float]] = {"served": [], "bare": []}
    n_wrong, memory = 0, list[float]()
    serve = ["-m", "deep", "serve", model, "--port", "0"]
    with running(serve, None) as served, running([__file__, "--bare", "18431"], 18431) as route:
        servers = {"served": served, "bare": route}
        for _, port in servers.values():  # warm
            client(port, -1000, 1000, args.clients)
        for number in range(ROUNDS):
            for name, (process, port) in servers.items():
                before = cpu_of(process)
                result = client(port, number * size, size, args.clients)
                total[name] += cpu_of(process) - before
                seconds[name] += result["seconds"]
                n_wrong += result["n_wrong"]
                for each in result["wrong"]:
                    say(f"{name}: {each}")
                if name == "served":
                    total["client"] += result["cpu"]
                    total["wall"] += result["wall"]
                    memory.append(memory_of(process))
            total["loop"] += plain_loop(model, number * size, size)
            say(f"round {number + 1} of {ROUNDS}: memory {memory[-1]:.1f} MB")
        n_again = min(size, 1000)
        client(served[1], 0, n_again, args.clients)
        before = cpu_of(served[0])
        again = client(served[1], 0, n_again, args.clients)
        cached = (cpu_of(served[0]) - before) / n_again
    n = size * ROUNDS
    return {
        "pairs": n,
        **{f"{name}_ms": 1000 * value / n for name, value in total.items() if name != "wall"},
        "requests_a_second": n / total["wall"],
        "ratio": total["served"] / (total["bare"] + total["loop"]),
        **{f"{name}_p50_ms": 1000 * quantile(values, 0.5) for name, values in seconds.items()},
        **{f"{name}_p99_ms": 1000 * quantile(values, 0.99) for name, values in seconds.items()},
        "p99_ratio": quantile(seconds["served"], 0.99) / quantile(seconds["bare"], 0.99),
        "errors": n_wrong,
        "memory_mb": memory[-1],
        "memory_growth_mb": memory[-1] - memory[0],
        "cached_ms": 1000 * cached,
        "cached_p50_ms": 1000 * quantile(again["seconds"], 0.5),
    }


def report(found: dict[str, float]) -> bool:
    """Print the figures and each limit; return whether all are met."""
    say(f"{found['pairs']:,} pairs, {found['requests_a_second']:.0f} a second; processor time a request:")
    for name in ("served", "bare", "loop", "cached", "client"):
        say(f"  {name:<7} {found[f'{name}_ms']:.3f} ms")
    say(f"p50 {found['served_p50_ms']:.1f} ms (bare {found['bare_p50_ms']:.1f}), memory {found['memory_mb']:.0f} MB")
    limits = [
        ("processor time / (bare + loop)", found["ratio"], MOST_RATIO),
        ("p99 / bare p99", found["p99_ratio"], MOST_P99_RATIO),
        ("errors", found["errors"], 0),
        ("MB more after the first fifth", found["memory_growth_mb"], MOST_GROWTH),
    ]
    for name, value, most in limits:
        say(f"{'met   ' if value <= most else 'MISSED'} {name}: {value:.2f} (at most {most:g})")
    return all(value <= most for _, value, most in limits)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="What `deep serve` costs beside the work itself.")
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--out", type=Path, help="the figures as JSON")
    parser.add_argument("--client", nargs=4, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--bare", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--loop", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.client:
        say(json.dumps(asyncio.run(send_all(*args.client))))
        return 0
    if args.bare:
        bare(args.bare)
        return 0
    if args.loop:
        say(str(loop_seconds(args.loop[0], int(args.loop[1]), int(args.loop[2]))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        result = measured(args, Path(folder))
    if args.out:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if report(result) else 1


if __name__ == "__main__":
    raise SystemExit(main())
