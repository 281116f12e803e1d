"""How large a report is, the processor time of writing it, and how long a browser takes to open it; medians of three.

    python benchmarks/report.py [SOURCE ...] [--repeats 3]
    python benchmarks/report.py --made 60 5000 --against ../tree-of-another-commit

`--made` takes invented votes of so many judges on so many items; `--against` another checkout, which writes in turns
with this one, and the ratio of the times is printed.

Without sources: the votes on the eleven datasets of LLM-AggreFact, in DEEP_DATA_HOME. Writing is a process of its own,
so that importing and reading are in the time. Opening, in a browser that runs already, ends when the first items are
drawn.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
DATA_HOME = Path(os.environ.get("DEEP_DATA_HOME", ROOT.parent / "shared" / "data"))
ELEVEN = DATA_HOME / "llm_aggrefact" / "votes.parquet"


def seconds_to_write(sources: list[str], out: Path, tree: Path = ROOT) -> float:
    """Return the processor time that `deep report` of a checkout takes: other work on the machine adds little."""
    command = [sys.executable, "-m", "deep", "report", *sources, "--out", str(out)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def made(judges: int, items: int, folder: Path) -> str:
    """Write invented votes of judges of accuracy 0.65 on two datasets, a fifth of them abstentions."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, items)
    right = rng.random((items, judges)) < 0.65
    votes = np.where(right, label[:, None], 1 - label[:, None]).astype(float)
    votes[rng.random((items, judges)) < 0.2] = np.nan
    frame = pd.DataFrame(votes, columns=[f"j{j}" for j in range(judges)]).astype("Int8")
    frame.insert(0, "label", label)
    frame.insert(0, "item_id", [f"i{i}" for i in range(items)])
    frame.insert(0, "dataset", np.where(np.arange(items) % 2, "news", "talks"))
    frame.to_parquet(folder / "made.parquet", index=False)
    return str(folder / "made.parquet")


def seconds_to_open(browser: Browser, report: Path) -> float:
    """Return the time until the items of a report are drawn."""
    page = browser.new_page()
    start = time.perf_counter()
    page.goto(report.as_uri())
    page.locator("#browser tbody tr").first.wait_for()
    found = time.perf_counter() - start
    page.close()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", default=[str(ELEVEN)])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--made", type=int, nargs=2, metavar=("JUDGES", "ITEMS"), help="invented votes in place of sources"
    )
    parser.add_argument("--against", type=Path, metavar="TREE", help="another checkout of deep")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        out = Path(folder, "report.html")
        sources = [made(*args.made, Path(folder))] if args.made else args.sources
        trees = [ROOT, *([args.against.resolve()] if args.against else [])]
        turns = [[seconds_to_write(sources, out, tree) for tree in reversed(trees)] for _ in range(args.repeats)]
        *others, written = (statistics.median(times) for times in zip(*turns, strict=True))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = statistics.median(seconds_to_open(browser, out) for _ in range(args.repeats))
        browser.close()
        size = out.stat().st_size / 1e6
    sys.stdout.write(f"{size:.2f} MB, {written:.1f} s to write, {opened:.2f} s to open (medians of {args.repeats})\n")
    for other in others:
        sys.stdout.write(f"the other checkout: {other:.1f} s to write; ratio {written / other:.2f}\n")


if __name__ == "__main__":
    main()
