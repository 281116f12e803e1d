"""What the ledger costs: the call layer beside a bare loop over the same client and beside Inspect, in one run.

::

    python benchmarks/call_layer.py            # speed: three rounds of each, in turn
    python benchmarks/call_layer.py --memory   # growth over 100,000 calls
    python benchmarks/call_layer.py --functions --calls 10000   # `deep.ask` of an async function of 50 ms

A server with 50 ms latency runs in a process of its own. The bare loop is 64 workers that call
``client.chat.completions.create`` and read the text: no ledger, no retries, no resuming. Inspect (`inspect_calls.py`)
runs in the environment that `make integrations` makes; where that is missing it is left out.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

DOCUMENT = "The council met on Tuesday and voted on the budget for roads and schools. " * 60
WORKERS = 64


def body_of(number: int, words: str = DOCUMENT) -> dict[str, Any]:
    """Return one request about an 800-word document."""
    system = {"role": "system", "content": "Check the claim against the source."}
    return {"model": "tiny", "messages": [system, {"role": "user", "content": f"{number} {words}"}], "temperature": 0}


def serve(port: int, latency: float) -> None:
    """Answer every request after `latency` seconds."""
    from aiohttp import web

    message = {"role": "assistant", "content": "VERDICT: SUPPORTED"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 5, "total_tokens": 1005}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    answer = {
        "id": "x",
        "object": "chat.completion",
        "created": 1,
        "model": "tiny",
        "choices": [choice],
        "usage": usage,
    }
    text = json.dumps(answer)

    async def reply(request: web.Request) -> web.Response:
        await request.read()
        await asyncio.sleep(latency)
        return web.Response(text=text, content_type="application/json")

    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", reply)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, backlog=1024)


async def bare(url: str, n: int) -> float:
    """Return the requests a second of a loop that keeps nothing."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        numbers = iter(range(n))

        async def work() -> None:
            for number in numbers:
                completion = await client.chat.completions.create(**body_of(number))
                assert completion.choices[0].message.content

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(WORKERS)))
        return n / (time.perf_counter() - start)


async def ours(url: str, n: int, ledger: str, words: str = DOCUMENT, growth: list[float] | None = None) -> float:
    """Return the requests a second of the call layer, every answer on disk."""
    from deep.llm import Caller, Client, ConcurrencyLimit, Ledger, ModelGate, PriceBook, Request, Runner, Tally, Terms
    from deep.records import Judgment

    row = {"endpoint": "bench", "prompt": "p", "prompt_hash": "0", "voter": "p@0/tiny", "dataset": "d"}

    def requests() -> Iterator[Request]:
        for number in range(n):
            if growth is not None and number % 1000 == 0:
                growth.append(resident())
            yield Request(body=body_of(number, words), item=str(number), **row)

    client, tally = Client(url, max_connections=WORKERS), Tally(n)
    limit = ConcurrencyLimit(WORKERS, WORKERS, WORKERS)
    async with Ledger(ledger) as book:
        caller = Caller(book, client, lambda *_: Judgment(1), Terms(PriceBook(url), limit), ModelGate(), tally)
        start = time.perf_counter()
        await Runner(book, caller, tally, workers=WORKERS).run(requests)
        seconds = time.perf_counter() - start
    await client.close()
    assert tally.answered == n
    return n / seconds


def inspect_rate(python: Path, url: str, n: int, folder: Path) -> tuple[float, str]:
    """Return the requests a second of Inspect, every answer in its log, and its version."""
    script = Path(__file__).with_name("inspect_calls.py").resolve()
    words = ["--url", url, "--calls", str(n), "--workers", str(WORKERS), "--document", DOCUMENT]
    done = subprocess.run([python, script, *words], capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode:
        sys.exit(f"Inspect: {(done.stdout + done.stderr)[-600:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return found["per_s"], found["version"]


def has_inspect(python: Path) -> bool:
    """Return whether a Python has Inspect."""
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('inspect_ai') is None)"
    return python.exists() and subprocess.run([python, "-c", look], check=False).returncode == 0


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def resident() -> float:
    """Return the memory in use, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def speed(url: str, n: int, rounds: int, folder: Path, inspect: Path) -> dict[str, Any]:
    """Print the rates in turn, and the median of their ratios; return them."""
    asyncio.run(bare(url, 200))
    asyncio.run(ours(url, 200, str(folder / "warm-up")))
    with_inspect, version = has_inspect(inspect), None
    if not with_inspect:
        say("Inspect is not installed: `make integrations` installs it; measured without")
    rates: list[dict[str, float]] = []
    for i in range(rounds):
        rates.append({"bare_per_s": asyncio.run(bare(url, n))})
        rates[-1]["deep_per_s"] = asyncio.run(ours(url, n, str(folder / f"ledger-{i}")))
        if with_inspect:
            rates[-1]["inspect_per_s"], version = inspect_rate(inspect, url, n, folder)
        say("   ".join(f"{name.removesuffix('_per_s')} {rate:6.1f}/s" for name, rate in rates[-1].items()))
    found = {"calls": n, "workers": WORKERS, "rounds": rates, "median_ratio": ratio_to("bare", rates), "inspect": None}
    if with_inspect:
        found["inspect"] = {"version": version, "median_ratio": ratio_to("inspect", rates)}
        say(f"median ratio to Inspect {version}: {found['inspect']['median_ratio']:.2f}")
    median = found["median_ratio"]
    say(f"median ratio to the bare loop: {median:.2f} over {rounds} rounds of {n:,} calls, {WORKERS} workers")
    return found


def ratio_to(rival: str, rates: list[dict[str, float]]) -> float:
    """Return how many times as fast as a rival ours is, the median of the rounds."""
    return statistics.median(one["deep_per_s"] / one[f"{rival}_per_s"] for one in rates)


def functions(n: int, rounds: int, folder: Path) -> None:
    """Print the rate of a whole `deep.ask` of one function, every answer on disk, beside a loop that keeps nothing."""
    import deep

    examples = [deep.Example(f"It rained for {i % 17} days.", f"It rained {i} days.", str(i)) for i in range(n)]

    async def judge(source: str, claim: str) -> bool:
        await asyncio.sleep(0.05)
        return len(claim) < len(source)

    async def loop() -> None:
        left = iter(examples)

        async def work() -> None:
            for example in left:
                await judge(example.source, example.claim)

        await asyncio.gather(*(work() for _ in range(WORKERS)))

    own = deep.judge(version="1", workers=WORKERS)(judge)
    deep.ask(examples[:WORKERS], own)  # what is imported and opened once
    rates: list[dict[str, float]] = []
    for i in range(rounds):
        start = time.perf_counter()
        asyncio.run(loop())
        between = time.perf_counter()
        deep.ask(examples, own, ledger=str(folder / f"own-{i}.sqlite"))
        rates.append({"bare_per_s": n / (between - start), "deep_per_s": n / (time.perf_counter() - between)})
        say("   ".join(f"{name.removesuffix('_per_s')} {rate:6.1f}/s" for name, rate in rates[-1].items()))
    say(f"median ratio to the bare loop: {ratio_to('bare', rates):.2f} over {rounds} rounds of {n:,} calls")


def memory(url: str, n: int, folder: Path) -> None:
    """Print how much memory the call layer takes from the two thousandth call to the last."""
    growth: list[float] = []
    rate = asyncio.run(ours(url, n, str(folder / "ledger"), "a short document", growth))
    say(f"{n:,} calls at {rate:.0f}/s: {growth[2]:.0f} MB after 2,000 calls, {growth[-1]:.0f} MB at the end")
    say(f"growth {growth[-1] - growth[2]:+.1f} MB, at most {max(growth) - growth[2]:+.1f} MB")


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--memory", action="store_true", help="measure memory instead of speed")
    parser.add_argument("--functions", action="store_true", help="measure `deep.ask` of a function instead")
    parser.add_argument("--calls", type=int, help="default 3,000, or 100,000 with --memory")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--inspect",
        type=Path,
        default=Path(f"{sys.prefix}-integrations/bin/python"),
        help="a Python that has Inspect; default: that of `make integrations`",
    )
    parser.add_argument("--out", type=Path, help="also write the rates here, as JSON")
    args = parser.parse_args()
    if args.functions:
        with tempfile.TemporaryDirectory() as folder:
            functions(args.calls or 3000, args.rounds, Path(folder))
        return
    latency, port = 0.0 if args.memory else 0.05, free_port()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(port, latency), daemon=True)
    server.start()
    time.sleep(3)
    say(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}")
    url = f"http://127.0.0.1:{port}/v1"
    with tempfile.TemporaryDirectory() as folder:
        if args.memory:
            memory(url, args.calls or 100_000, Path(folder))
        else:
            found = speed(url, args.calls or 3000, args.rounds, Path(folder), args.inspect)
            if args.out:
                args.out.write_text(json.dumps(found) + "\n", encoding="utf-8")
    server.terminate()


if __name__ == "__main__":
    main()
