"""Run the benchmarks in one go, write the figures as JSON by machine, and render them: what `make bench` does.

    python benchmarks/bench.py [--size medium]   # up to 10^7 rows, 15 minutes on two idle cores; medium up to 10^6
    python benchmarks/bench.py --size quick      # shows that all of it runs; writes below build/
    python benchmarks/bench.py --render          # only the pages and the picture, from benchmarks/results/*.json

Each part is a script of this folder that measures deep and its rival in the same run. Two of the parts that need one
core run at a time; those that need two (a server and its clients) come after them, alone.
The JSON holds the commit, cores, memory and Python of the run, and how many cores others kept busy meanwhile.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench_page import render
from measuring import measure

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
ONE_CORE = {
    "growth": "scores_at_scale.py --sizes 10000 100000 1000000 10000000",
    "cells": "cells.py --limit 15",
    "scoring": "scoring.py --rows 10000000 --rows-wise 500000 --file-rows 1000000 --repeats 3",
    "netcal": "netcal_maps.py",
}
"""The first keeps one core busy for about as long as the others do the second."""
TWO_CORES = {
    "calls": "call_layer.py --rounds 3 --calls 2000",
    "serve": "serve.py --pairs 10000",
    "scale": "scale.py --rows 300000 --calls 4000",
    "ledger": "ledger.py --processes 4 16 --rate 40 --seconds 30",
}
MEDIUM = {
    "growth": "scores_at_scale.py --sizes 10000 100000 1000000",
    "cells": "cells.py --sizes 10000 100000 1000000 --limit 4",
    "scoring": "scoring.py --rows 4000000 --rows-wise 200000 --file-rows 500000 --repeats 3",
    "calls": "call_layer.py --rounds 3 --calls 1000",
    "serve": "serve.py --pairs 2500",
    "scale": "scale.py --rows 131072 --calls 2000",
    "ledger": "ledger.py --processes 4 16 --rate 20 --seconds 15",
}
QUICK = {
    "growth": "scores_at_scale.py --sizes 1000 10000",
    "cells": "cells.py --sizes 1000 10000 --limit 1",
    "scoring": "scoring.py --rows 200000 --rows-wise 20000 --file-rows 20000 --repeats 1",
    "calls": "call_layer.py --rounds 1 --calls 300",
    "serve": "serve.py --pairs 500",
    "scale": "scale.py --rows 65536 --calls 200",
    "ledger": "ledger.py --processes 2 --rate 40 --seconds 3",
}


def run(words: str) -> tuple[Any, str, float]:
    """Run a script of this folder; return what it wrote, or None, the command, and its processor seconds."""
    script, *rest = words.split()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out.json")
        command = [sys.executable, str(HERE / script), *rest, "--out", str(out)]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(HERE.parent)}
        used = measure(command, env=environment, keep=True)
        sys.stdout.write(f"{used.wall_s:5.0f} s, {used.processor_s:5.0f} processor seconds  {words}\n")
        sys.stdout.flush()
        if not out.exists():
            message = used.stderr or ""
            sys.stderr.write(message[-2000:])
            why = message.strip().rpartition("\n")[2] or used.status
            return None, f"{words}: no result, {why}", used.processor_s
        return json.loads(out.read_text(encoding="utf-8")), words, used.processor_s


def busy_seconds() -> float | None:
    """Return the processor seconds of the whole machine, idle ones left out; None where the system does not tell."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    fields = [int(field) for field in stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", "-C", HERE, *words], capture_output=True, text=True, check=True).stdout.strip()


def machine() -> dict[str, Any]:
    """Return what figures depend on, and nothing that names the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def measured(size: str) -> dict[str, Any]:
    """Run all parts; return their results, and what was true of the run."""
    commit = git("rev-parse", "--short=12", "HEAD")
    changed = bool(git("status", "--porcelain", "--untracked-files=no"))
    chosen = {"full": {}, "medium": MEDIUM, "quick": QUICK}[size]
    busy, started = busy_seconds(), time.perf_counter()
    with ProcessPoolExecutor(2) as lanes:  # a process waits for all its children: one part at a time in each
        outcome = dict(zip(ONE_CORE, lanes.map(run, [chosen.get(n, w) for n, w in ONE_CORE.items()]), strict=True))
        outcome |= {name: lanes.submit(run, chosen.get(name, words)).result() for name, words in TWO_CORES.items()}
    seconds, after = time.perf_counter() - started, busy_seconds()
    own = sum(used for _, _, used in outcome.values())
    others = None if busy is None or after is None else max(after - busy - own, 0.0) / seconds
    return {
        "machine": machine(),
        "size": size,
        "commit": commit + (", with changes" if changed else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "minutes": round(seconds / 60, 1),
        "cores_busy_with_others": None if others is None else round(others, 2),
        "commands": {name: words for name, (_, words, _) in outcome.items()},
        "processor_s": {name: round(used, 1) for name, (_, _, used) in outcome.items()},
        **{name: result for name, (result, _, _) in outcome.items()},
    }


def short(value: Any, figures: int = 4) -> Any:
    """Return a value with its floats cut to a few figures."""
    if isinstance(value, float):
        return float(f"{value:.{figures}g}")
    if isinstance(value, dict):
        return {key: short(each, figures) for key, each in value.items()}
    return [short(each, figures) for each in value] if isinstance(value, list) else value


def main() -> int:
    """Run, write, render."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", choices=["full", "medium", "quick"], default="full")
    parser.add_argument("--render", action="store_true", help="run nothing")
    parser.add_argument("--name", help="of the JSON; default: processor, cores and memory")
    parser.add_argument(
        "--folder", type=Path, help="where it goes; default: benchmarks/results, quick: build/benchmarks"
    )
    args = parser.parse_args()
    folder, status = args.folder or (HERE.parent / "build/benchmarks" if args.size == "quick" else RESULTS), 0
    if not args.render:
        result = short(measured(args.size))
        about = result["machine"]
        name = args.name or f"{about['processor']}-{about['cores']}-cores-{about['memory_gib']}-gib"
        folder.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items())
        (folder / f"{name}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        missing = [words for part, words in result["commands"].items() if result[part] is None]
        sys.stdout.write("\n".join([f"{result['minutes']} minutes", *missing, ""]))
        status = int(any("not installed" not in words for words in missing))
    render(folder)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
