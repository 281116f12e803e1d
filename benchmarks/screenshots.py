"""Write the pictures of the docs: a report of lexical judges on the invented claims of examples/claims.csv.

    python benchmarks/screenshots.py [--out docs/images]

Needs Chromium and the extra `browser`; `make screenshots` calls it.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
SIZE = {"width": 1180, "height": 860}
COLORS = 128
"""Of a picture: few are enough for text and charts, and keep it small."""


def write(folder: Path) -> Path:
    """Write the report, and return its place."""
    votes, out = folder / "votes.parquet", folder / "report.html"
    claims = ROOT / "examples" / "claims.csv"
    for words in (["votes", claims, "--lexical", "all", "--out", votes], ["report", votes, "--out", out]):
        subprocess.run([sys.executable, "-m", "deep", *map(str, words)], check=True, stdout=subprocess.DEVNULL)
    return out


def take(page: Page, path: Path) -> None:
    """Write what a page shows now as a small PNG."""
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLORS).save(path, optimize=True)


def opened(browser: Browser, report: Path, scheme: str) -> Page:
    """Return a page with a report."""
    page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page.goto(report.as_uri())
    return page


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = write(Path(folder))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = opened(browser, report, "light")
        page.get_by_role("button", name="likely label errors").click()
        page.locator("#browser tbody th button").first.click()
        page.locator("#browser form").evaluate("form => form.scrollIntoView()")
        take(page, out / "report.png")
        page.locator("#panel").evaluate("chapter => chapter.scrollIntoView()")
        take(page, out / "report-panel.png")
        take(opened(browser, report, "dark"), out / "report-dark.png")
        browser.close()
    for path in sorted(out.glob("report*.png")):
        sys.stdout.write(f"{path}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
