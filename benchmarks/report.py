"""How large a report is, how long it takes to write, and how long a browser takes to open it; medians of three.

    python benchmarks/report.py [SOURCE ...] [--repeats 3]

Without sources: the votes on the eleven datasets of LLM-AggreFact, in DEEP_DATA_HOME. Writing is a process of its own,
so that importing and reading are in the time. Opening, in a browser that runs already, ends when the first items are
drawn.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

DATA_HOME = Path(os.environ.get("DEEP_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))
ELEVEN = DATA_HOME / "llm_aggrefact" / "votes.parquet"


def seconds_to_write(sources: list[str], out: Path) -> float:
    """Return the time that `deep report` takes."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "deep", "report", *sources, "--out", str(out)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


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
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        out = Path(folder, "report.html")
        written = statistics.median(seconds_to_write(args.sources, out) for _ in range(args.repeats))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        opened = statistics.median(seconds_to_open(browser, out) for _ in range(args.repeats))
        browser.close()
        size = out.stat().st_size / 1e6
    sys.stdout.write(f"{size:.2f} MB, {written:.1f} s to write, {opened:.2f} s to open (medians of {args.repeats})\n")


if __name__ == "__main__":
    main()
