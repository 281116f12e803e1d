"""Write the pictures of the docs: a report, the page of labels and the scoring page, on invented claims.

    python benchmarks/screenshots.py [--out docs/images] [--every build/screens]

`--every` takes each page of `gallery.py` too, light and dark, 1280 and 390 pixels wide, and printed, and terminals.
The report is of lexical judges on examples/claims.csv; the labels are of examples/unlabeled.csv, and the model that
scores is fitted on claims.csv. Needs Chromium and the extras `browser` and `serve`; `make screenshots` calls it.
"""

import argparse
import csv
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import gallery
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.text import Text

from deep import model
from deep.integrations.labeling import label_app, open_label_desk, read_label_subject
from deep.integrations.serve import create_app, serving

ROOT = Path(__file__).resolve().parents[1]
SIZE = {"width": 1280, "height": 860}
COLORS = 128
"""Of a picture: few are enough for text and charts, and keep it small."""


EXAMPLES = ROOT / "examples"
SHOWN = "museum-8-e"
"""The claim of the scoring page: a number that is not that of its source."""


def write(folder: Path) -> None:
    """Write votes, a model and the report, by names without a folder: the pages show the commands to copy."""
    for line in (
        f"votes {EXAMPLES / 'claims.csv'} --lexical all --out votes.parquet",
        f"votes {EXAMPLES / 'unlabeled.csv'} --lexical all --out new.parquet",
        "report votes.parquet --out report.html",
        "fit votes.parquet --out model.json",
        "report model.json new.parquet --out verdict.html",
    ):
        words = [sys.executable, "-m", "deep", *shlex.split(line)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=folder)


def take(page: Page, path: Path) -> None:
    """Write what a page shows now as a small PNG."""
    page.screenshot(path=path)
    Image.open(path).convert("RGB").quantize(COLORS).save(path, optimize=True)


def opened(browser: Browser, address: str, scheme: str) -> Page:
    """Return a page."""
    page = browser.new_page(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    page.goto(address)
    return page


def take_report(browser: Browser, folder: Path, out: Path) -> None:
    """Take the verdict in light and dark, an item in the reader, and the panel."""
    for scheme, name in (("light", "verdict.png"), ("dark", "verdict-dark.png")):
        take(opened(browser, (folder / "verdict.html").as_uri(), scheme), out / name)
    page = opened(browser, (folder / "report.html").as_uri(), "light")
    page.get_by_role("button", name="likely label errors").click()
    page.locator("#browser form").evaluate("form => form.scrollIntoView()")
    take(page, out / "report.png")
    page.locator("#panel").evaluate("chapter => chapter.scrollIntoView()")
    take(page, out / "report-panel.png")


def take_labels(browser: Browser, folder: Path, out: Path) -> None:
    """Take an item that is being labeled."""
    subject = read_label_subject([folder / "new.parquet"])
    desk = open_label_desk(subject, folder / "labels.csv", n=30)
    with desk as opened_desk, serving(label_app(opened_desk, person="Ann")) as address:
        page = opened(browser, address, "light")
        for key in "110s":
            page.locator("#work").wait_for()
            page.evaluate("document.getElementById('status').textContent = ''")
            page.keyboard.press(key)
            page.locator("#status").filter(has_text="kept.").wait_for()
        page.keyboard.press("j")
        page.keyboard.press("j")
        take(page, out / "label.png")


def take_check(browser: Browser, folder: Path, out: Path) -> None:
    """Take a pair, and a file of claims."""
    with (EXAMPLES / "unlabeled.csv").open(encoding="utf-8", newline="") as file:
        pair = next(row for row in csv.DictReader(file) if row["example_id"] == SHOWN)
    with serving(create_app(model.load(folder / "model.json"))) as address:
        page = opened(browser, address, "light")
        page.set_viewport_size({"width": SIZE["width"], "height": 1080})
        page.get_by_label("Source", exact=True).fill(pair["source"])
        page.get_by_label("Claim", exact=True).fill(pair["claim"])
        page.get_by_role("button", name="Check").click()
        page.locator("#result > ul li").last.wait_for()
        page.evaluate("window.scrollTo(0, 0)")
        take(page, out / "check.png")
        page.get_by_label("or drop it on this page").set_input_files(EXAMPLES / "unlabeled.csv")
        page.get_by_role("button", name="Download as CSV").wait_for()
        page.locator("#file-watch li").last.wait_for()
        page.locator("#file-title").evaluate("title => title.scrollIntoView()")
        take(page, out / "check-file.png")


def take_every(browser: Browser, folder: Path, out: Path) -> None:
    """Take every page in light and dark, wide and narrow, and printed; and every command in two widths."""
    out.mkdir(parents=True, exist_ok=True)
    with gallery.pages(folder) as views:
        for view in views:
            for scheme, width in product(("light", "dark"), (1280, 390)):
                page = opened(browser, view.address, scheme)
                page.set_viewport_size({"width": width, "height": 900})
                view.reach(page)
                page.screenshot(path=out / f"{view.name}-{width}-{scheme}.png", full_page=True)
                if (scheme, width) == ("light", 1280):
                    page.pdf(path=out / f"{view.name}.pdf", prefer_css_page_size=True)
                page.close()
        for name, width, text in gallery.terminals(folder):
            (out / f"terminal-{name}-{width}.svg").write_text(terminal_svg(name, width, text), encoding="utf-8")


def terminal_svg(name: str, width: int, text: str) -> str:
    """Return what a command prints as a picture, which loads no font."""
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Text(text))
    return re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=f"deep {name}"), flags=re.DOTALL)


def main() -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--every", type=Path, help="a folder for every page, light and dark, wide and narrow, printed")
    args = parser.parse_args()
    out = args.out
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONPATH", str(ROOT))
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        take_report(browser, folder, out)
        take_labels(browser, folder, out)
        take_check(browser, folder, out)
        if args.every is not None:
            take_every(browser, folder / "every", args.every)
        browser.close()
    for path in sorted(out.glob("*.png")):
        sys.stdout.write(f"{path}: {path.stat().st_size / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
