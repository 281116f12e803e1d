"""What the ledger costs: the call layer beside a bare loop over the same client and beside Inspect, in one run.

::

    python benchmarks/call_layer.py            # speed: three rounds of each, in turn
    python benchmarks/call_layer.py --memory   # growth over 100,000 calls
    python benchmarks/call_layer.py --functions --calls 10000   # `deep.ask` of functions of 50 ms, and a slow server

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
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

DOCUMENT = "The council met on Tuesday and voted on the budget for roads and schools. " * 60
WORKERS = 64
CALLS = 16
"""Calls of a function side by side where nobody says how many."""
SLOTS, TURN, SETTLING = 10, 0.2, 10.0
"""A slow server works on so many replies at once, for so many seconds each; its first seconds are left out."""


def body_of(number: int, words: str = DOCUMENT) -> dict[str, Any]:
    """Return one request about an 800-word document."""
    system = {"role": "system", "content": "Check the claim against the source."}
    return {"model": "tiny", "messages": [system, {"role": "user", "content": f"{number} {words}"}], "temperature": 0}


def serve(port: int, latency: float, slots: int | None = None) -> None:
    """Answer every request after `latency` seconds, as many at once as there are slots; tell when at `/times`."""
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
    text, free, times = json.dumps(answer), asyncio.Semaphore(slots or 1_000_000), list[float]()

    async def reply(request: web.Request) -> web.Response:
        await request.read()
        async with free:
            await asyncio.sleep(latency)
        times.append(time.monotonic())
        return web.Response(text=text, content_type="application/json")

    async def told(_: web.Request) -> web.Response:
        latest = times.copy()
        times.clear()
        return web.json_response(latest)

    app = web.Application(client_max_size=2**30)
    app.router.add_post("/v1/chat/completions", reply)
    app.router.add_get("/times", told)
    web.run_app(app, host="127.0.0.1", port=port, access_log=None, print=None, backlog=1024)


async def bare(url: str, n: int, workers: int = WORKERS) -> float:
    """Return the requests a second of a loop that keeps nothing."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:
        numbers = iter(range(n))

        async def work() -> None:
            for number in numbers:
                completion = await client.chat.completions.create(**body_of(number))
                assert completion.choices[0].message.content

        start = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(workers)))
        return n / (time.perf_counter() - start)


async def ours(
    url: str, n: int, ledger: str, words: str = DOCUMENT, growth: list[float] | None = None, concurrency: str = ""
) -> float:
    """Return the requests a second of the call layer, every answer on disk."""
    from deep.llm import Caller, Client, ConcurrencyLimit, Ledger, ModelGate, PriceBook, Request, Runner, Tally, Terms
    from deep.records import Judgment

    row = {"endpoint": "bench", "prompt": "p", "prompt_hash": "0", "voter": "p@0/tiny", "dataset": "d"}

    def requests() -> Iterator[Request]:
        for number in range(n):
            if growth is not None and number % 1000 == 0:
                growth.append(resident())
            yield Request(body=body_of(number, words), item=str(number), **row)

    limit = ConcurrencyLimit.parse(concurrency or str(WORKERS))
    client, tally = Client(url, max_connections=limit.maximum), Tally(n)
    async with Ledger(ledger) as book:
        caller = Caller(book, client, lambda *_: Judgment(1), Terms(PriceBook(url), limit), ModelGate(), tally)
        start = time.perf_counter()
        await Runner(caller, workers=limit.maximum).run(requests)
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
    result = json.loads(done.stdout.strip().splitlines()[-1])
    return result["per_s"], result["version"]


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
    result = {"calls": n, "workers": WORKERS, "rounds": rates, "median_ratio": ratio_to("bare", rates), "inspect": None}
    if with_inspect:
        result["inspect"] = {"version": version, "median_ratio": ratio_to("inspect", rates)}
        say(f"median ratio to Inspect {version}: {result['inspect']['median_ratio']:.2f}")
    median = result["median_ratio"]
    say(f"median ratio to the bare loop: {median:.2f} over {rounds} rounds of {n:,} calls, {WORKERS} workers")
    return result


def ratio_to(rival: str, rates: list[dict[str, float]]) -> float:
    """Return how many times as fast as a rival ours is, the median of the rounds."""
    return statistics.median(one["deep_per_s"] / one[f"{rival}_per_s"] for one in rates)


async def waits(source: str, claim: str) -> bool:
    """Judge after 50 ms."""
    await asyncio.sleep(0.05)
    return len(claim) < len(source)


def raises(source: str, claim: str) -> bool:
    """Judge after 50 ms in a thread, or raise on a tenth of the claims."""
    time.sleep(0.05)
    if claim.endswith("1 days."):
        raise ValueError(claim)
    return len(claim) < len(source)


async def side_by_side(pairs: list[tuple[str, str]], call: Callable[[str, str], Awaitable[object]]) -> None:
    """Call about each pair, so many at once, and keep nothing."""
    left = iter(pairs)

    async def work() -> None:
        for pair in left:
            with suppress(ValueError):
                await call(*pair)

    await asyncio.gather(*(work() for _ in range(CALLS)))


def functions(n: int, rounds: int, folder: Path, url: str) -> None:
    """Print the rates of whole calls of `deep.ask`, every answer on disk, beside loops that keep nothing."""
    import deep
    from deep.asking import AskOptions

    examples = [deep.Example(f"It rained for {i % 17} days.", f"It rained {i} days.", str(i)) for i in range(n)]

    pairs = [(example.source, example.claim) for example in examples]

    async def in_threads() -> None:
        with ThreadPoolExecutor(CALLS) as pool:
            loop = asyncio.get_running_loop()
            await side_by_side(pairs, partial(loop.run_in_executor, pool, raises))

    async def beside_an_llm() -> None:
        await asyncio.gather(side_by_side(pairs, waits), bare(url, n, CALLS))

    prices = folder / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 1.0\n", encoding="utf-8")
    mixed = {"base_url": url, "prices": str(prices), "budget": 1000.0, "concurrency": str(CALLS), "repair": False}
    cases: list[tuple[str, Callable[[], Any], Callable[[str], Any]]] = [
        (
            "async function",
            partial(side_by_side, pairs, waits),
            lambda ledger: deep.ask(examples, deep.judge(version="1")(waits), ledger=ledger),
        ),
        (
            "plain function that raises on a tenth",
            in_threads,
            lambda ledger: deep.ask(examples, deep.judge(version="1")(raises), ledger=ledger),
        ),
        (
            "async function and an LLM, one budget",
            beside_an_llm,
            lambda ledger: deep.ask(
                examples,
                [deep.judge(version="1", cost=0.001)(waits), "deep-numbers"],
                llm="tiny",
                options=AskOptions(ledger=ledger, **mixed),
            ),
        ),
    ]
    os.environ.setdefault("OPENAI_API_KEY", "none")
    deep.ask(examples[:CALLS], deep.judge(version="0")(waits))  # what is imported once
    for name, loop, ask in cases:
        rates: list[dict[str, float]] = []
        for i in range(rounds):
            start = time.perf_counter()
            asyncio.run(loop())
            between = time.perf_counter()
            ask(str(folder / f"{name}-{i}.sqlite"))
            rates.append({"bare_per_s": n / (between - start), "deep_per_s": n / (time.perf_counter() - between)})
        each = ", ".join(f"{one['deep_per_s']:.0f} beside {one['bare_per_s']:.0f} items/s" for one in rates)
        say(f"{name}, {n:,} items: {ratio_to('bare', rates):.2f} of the bare loop ({each})")


def slow_server(url: str, n: int, rounds: int, folder: Path) -> None:
    """Print the replies a second of a slow server whose first seconds are left out, by its own clock."""
    from urllib.request import urlopen

    def rate() -> float:
        with urlopen(f"{url.removesuffix('/v1')}/times") as reply:
            times = json.load(reply)
        later = [at for at in times if at > times[0] + SETTLING]
        return (len(later) - 1) / (later[-1] - later[0])

    rates: list[dict[str, float]] = []
    for i in range(rounds):
        asyncio.run(bare(url, n, 2 * SLOTS))  # so that none of its slots is ever idle
        rates.append({"bare_per_s": rate()})
        asyncio.run(ours(url, n, str(folder / f"slow-{i}.sqlite"), concurrency="auto"))
        rates[-1]["deep_per_s"] = rate()
    each = ", ".join(f"{one['deep_per_s']:.1f} beside {one['bare_per_s']:.1f} replies/s" for one in rates)
    name = f"server of {SLOTS / TURN:g} replies/s, {n:,} requests, first {SETTLING:g} s left out"
    say(f"{name}: {ratio_to('bare', rates):.2f} of the bare loop ({each})")


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
    parser.add_argument("--functions", action="store_true", help="measure functions and a slow server instead")
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

    def started(latency: float, slots: int | None = None) -> tuple[str, Any]:
        port = free_port()
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(port, latency, slots), daemon=True)
        process.start()
        time.sleep(3)
        return f"http://127.0.0.1:{port}/v1", process

    url, server = started(0.0 if args.memory else 0.05)
    say(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}")
    with tempfile.TemporaryDirectory() as folder:
        if args.functions:
            n = args.calls or 3000
            functions(n, args.rounds, Path(folder), url)
            slow, other = started(TURN, SLOTS)
            slow_server(slow, max(n // 2, 1000), args.rounds, Path(folder))
            other.terminate()
        elif args.memory:
            memory(url, args.calls or 100_000, Path(folder))
        else:
            result = speed(url, args.calls or 3000, args.rounds, Path(folder), args.inspect)
            if args.out:
                args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")
    server.terminate()


if __name__ == "__main__":
    main()
