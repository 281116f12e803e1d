"""Pages in headless Chromium, and what they must never do; for tests marked slow."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the path: apt-get install chromium"),
]
"""Of every module that opens pages."""

PATIENCE = 240_000
"""Milliseconds after which a page is taken to be stuck, on a busy machine too."""

SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=alert(1)>"
PHONE = {"width": 390, "height": 800}


@contextmanager
def launched() -> Iterator[Any]:
    """Yield a browser."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield browser
        browser.close()


class Opened:
    """A page of the browser, what it complained of or asked of others, and the answers to what it sent (`sent`).

    Parameters
    ----------
    browser : Browser
    address : str
        Of a file, which may ask for nothing but itself; or of a server, which may be asked for anything.
    expected : sequence of str
        Parts of complaints that are none: a refusal that a test wants is on the console too.
    **options
        Of the browser's page.
    """

    def __init__(self, browser: Any, address: str, *, expected: tuple[str, ...] = (), **options: Any) -> None:
        self.page = browser.new_page(**options)
        self.page.set_default_timeout(PATIENCE)
        self._address, self._expected, self._said = address, expected, list[str]()
        self.page.on("console", lambda message: self._said.append(message.text))
        self.page.on("pageerror", lambda error: self._said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self._said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self._is_ours(request.url) or self._said.append(request.url))
        self.sent: list[Any] = []
        self.page.on("response", lambda answer: answer.request.method == "POST" and self.sent.append(answer))
        self.page.goto(address)

    def _is_ours(self, url: str) -> bool:
        own, asked = urlsplit(self._address), urlsplit(url)
        if own.scheme == "file":
            return url.split("#")[0] == self._address
        return asked.scheme in ("blob", "data") or (own.scheme, own.netloc) == (asked.scheme, asked.netloc)

    @property
    def complaints(self) -> list[str]:
        """Return the complaints so far."""
        return [message for message in self._said if not any(part in message for part in self._expected)]

    def texts(self, selector: str) -> list[str]:
        """Return the texts of all elements that a selector finds."""
        return list(self.page.locator(selector).all_inner_texts())

    def close(self) -> None:
        """Close the page, which has complained of nothing."""
        self.page.close()
        assert self.complaints == [], self.complaints


def violations(page: Any) -> list[tuple[str, str]]:
    """Return what axe finds on a page as it is now, of any level: each with its first element."""
    return [(each["id"], each["nodes"][0]["html"]) for each in axe.Axe().run(page).response["violations"]]


def is_narrow(page: Any) -> bool:
    """Return whether a page is no wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1"))


SMALL = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, holder = text.parentElement;
    if (!text.data.trim() || holder.closest("script, style, noscript")) continue;
    const box = document.createRange();
    box.selectNodeContents(text);
    if (!box.getBoundingClientRect().width) continue;
    const svg = holder.closest("svg");
    const size = parseFloat(getComputedStyle(holder).fontSize) * (svg ? svg.getScreenCTM().a : 1);
    if (size < 10.99) found.push(`${size.toFixed(1)} ${text.data.trim().slice(0, 40)}`);
  }
  const shrunk = [...document.images].filter(({ clientWidth: w, naturalWidth: drawn }) => w && w < 0.92 * drawn);
  return [...found, ...shrunk.map((image) => `${image.clientWidth}: ${image.alt}`)].slice(0, 10);
}"""
"""Texts below 11 pixels, and pictures that are shown smaller than their letters were drawn for."""

BROKEN = """() => [...document.querySelectorAll("td.number bdi, .figures dd, .share strong")].filter((cell) => {
  const box = document.createRange();
  box.selectNodeContents(cell);
  return new Set([...box.getClientRects()].map((line) => Math.round(line.top))).size > 1;
}).map((cell) => cell.textContent).slice(0, 10)"""
"""Numbers on two lines."""

SPLIT = r"""() => [...document.querySelectorAll(".items button bdi, .items td:not(.claim) bdi")].filter((cell) => {
  const words = [...(cell.firstChild?.data ?? "").matchAll(/(?<![^\s-])\w{1,12}(?![^\s-])/g)];
  return words.some(({ 0: word, index }) => {
    const box = document.createRange();
    box.setStart(cell.firstChild, index);
    box.setEnd(cell.firstChild, index + word.length);
    return box.getClientRects().length > 1;
  });
}).map((cell) => `split: ${cell.textContent}`).slice(0, 10)"""
"""Short words of the lists of items on two lines."""

CUT = """() => [...document.querySelectorAll("body *:not(svg *)")].filter((box) => {
  const style = getComputedStyle(box);
  const hides = ["hidden", "clip"].includes(style.overflowX) && style.position !== "absolute";
  return hides && box.scrollWidth > box.clientWidth + 1;
}).map((box) => box.outerHTML.slice(0, 80)).slice(0, 10)"""
"""Boxes that hide a part of a line."""


def faults(page: Any) -> list[str]:
    """Return what is cut, too small, or broken (a number, a word) on a page as it is now."""
    wide = [] if is_narrow(page) else ["wider than its window"]
    return [*wide, *(result for script in (SMALL, BROKEN, SPLIT, CUT) for result in page.evaluate(script))]
