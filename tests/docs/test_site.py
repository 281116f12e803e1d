"""The built site: every link leads somewhere, and pages open in a real browser without a complaint, light and dark."""

import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install '.[browser]'")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SITE = Path(os.environ.get("DEEP_SITE", "/nowhere"))
pytestmark = [pytest.mark.slow, pytest.mark.skipif("DEEP_SITE" not in os.environ, reason="no site: make docs")]

OPENED = [
    "index",
    "start",
    "choose",
    "which-fit",
    "gallery/index",
    "reference/commands/fit",
    "reference/python/deep.calibration",
]
VIEWS = {
    "desktop": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "desktop, dark": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "phone, dark": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}


class Anchors(HTMLParser):
    """The links of a page, and the places within it that a link can lead to."""

    def __init__(self):
        super().__init__()
        self.links, self.places = [], set()

    def handle_starttag(self, tag, attributes):
        """Take what an element says of itself."""
        result = dict(attributes)
        self.places |= {result[name] for name in ("id", "name") if result.get(name)}
        self.links += [result[name] for name in ("href", "src") if result.get(name)]


@pytest.fixture(scope="module")
def pages():
    """Return the links and places of every page."""
    result = {}
    for path in sorted(SITE.rglob("*.html")):
        result[path] = Anchors()
        result[path].feed(path.read_text(encoding="utf-8"))
    assert len(result) > 50
    return result


def test_no_link_is_dead(pages):
    """Every link within the site names a file that is there, and a place in it."""
    dead = []
    for page, anchors in pages.items():
        for link in anchors.links:
            parts = urlsplit(link)
            if not parts.scheme and not parts.netloc:
                target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
                target = target / "index.html" if target.is_dir() else target
                lost = target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].places
                if not target.exists() or lost:
                    dead.append((page.relative_to(SITE).as_posix(), link))
    assert dead == []


def test_pages_for_machines():
    """llms.txt lists the pages."""
    listed = re.findall(r"\((/[^)]*)\)", (SITE / "llms.txt").read_text(encoding="utf-8"))
    assert len(listed) > 50
    assert [path for path in listed if not (SITE / path.lstrip("/")).exists()] == []


@pytest.fixture(scope="module")
def chromium():
    """Return a browser."""
    assert CHROMIUM is not None, "apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize("view", VIEWS)
def test_pages_open(chromium, view):
    """No error, no request off the site, nothing that axe calls serious, nothing wider than the window."""
    page, complaints = chromium.new_page(**VIEWS[view]), []
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    root = SITE.resolve().as_uri()
    page.on("request", lambda r: r.url.startswith((root, "data:")) or complaints.append(r.url))
    for name in OPENED:
        page.goto(f"{root}/{name}.html")
        result = axe.Axe().run(page, options={"preload": False}).response["violations"]
        serious = [
            (name, each["id"], node["target"])
            for each in result
            for node in each["nodes"]
            if each["impact"] in ("serious", "critical")
        ]
        assert (complaints, serious) == ([], [])
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    page.close()


def test_search_finds_a_page_offline(chromium):
    """Search works from the files alone."""
    page = chromium.new_page()
    page.goto(f"{SITE.resolve().as_uri()}/search.html?q=ledger")
    page.wait_for_selector("ul.search li a")
    assert page.locator("ul.search li a").count() > 3
    page.close()
