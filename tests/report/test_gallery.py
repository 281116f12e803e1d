"""Every page that people look at, in Chromium: nothing cut, small, or found by axe; the answer on the first screen."""

import io
import re
import sys
from pathlib import Path
from unicodedata import normalize
from unittest.mock import patch

import pytest
from pypdf import PdfReader

from tests.browsing import MARKS, PHONE, Opened, faults, violations

pytestmark = MARKS
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))

DESKTOP = {"width": 1280, "height": 900}
REPORTS = ("report-unlabeled", "report-labeled", "report-sixty", "report-compare", "study-loo")
STUDIES = ("study-cognibench", "study-fect", "study-paper", "study-probe")
LIVE = ("label-end", "label-first", "label-long", "serve-error", "serve-file", "serve-pair")
LOOKS = [(scheme, size) for scheme in ("light", "dark") for size in (DESKTOP, PHONE)]


LETTERS = []
"""Sizes of the letters of all pictures that studies save, in points."""


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """Return every page by its name; the servers run until the end."""
    import gallery
    from matplotlib.text import Text

    from deep._util import figures

    def measured(figure, path, save=figures.save_figure):
        LETTERS.extend(text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip())
        return save(figure, path)

    def narrowed(figure, narrow=figures.fit_to_phone):
        done = narrow(figure)
        LETTERS.extend(text.get_fontsize() for text in figure.findobj(Text) if text.get_text().strip())
        return done

    patched = patch.multiple(figures, save_figure=measured, narrowed=narrowed)
    with patched, gallery.pages(tmp_path_factory.mktemp("gallery")) as made:
        yield {view.name: view for view in made}


@pytest.fixture
def open_view(chromium, views):
    """Return a function that opens a page and does there what comes before a look; no page complains."""
    opened = []

    def opener(name, size=DESKTOP, scheme="light"):
        message = ("422",) if name == "serve-error" else ()
        options = {"viewport": size, "color_scheme": scheme, "reduced_motion": "reduce"}
        opened.append(Opened(chromium, views[name].address, expected=message, **options))
        views[name].reach(opened[-1].page)
        return opened[-1].page

    yield opener
    for each in opened:
        each.close()


def test_every_page_is_measured(views):
    """No page is in the gallery alone."""
    assert sorted(views) == sorted((*REPORTS, *STUDIES, *LIVE))


def test_letters_of_pictures(views):
    """Eleven pixels or more: a picture of a study is an image, whose letters a browser does not know."""
    assert len(LETTERS) > 100
    assert min(LETTERS) >= 8.25


@pytest.mark.parametrize(("scheme", "size"), LOOKS)
@pytest.mark.parametrize("name", [*REPORTS, *STUDIES, *LIVE])
def test_nothing_is_cut_small_or_hard_to_read(open_view, name, scheme, size):
    """As wide as the window, no text below 11 pixels, no number on two lines, and axe finds nothing of any level."""
    page = open_view(name, size, scheme)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert faults(page) == []
    assert violations(page) == []


@pytest.mark.parametrize("name", [*REPORTS, *STUDIES])
def test_the_first_screen_answers(open_view, name):
    """How many are suspect, can P be trusted here, what to do next: whole within the first 900 pixels."""
    page = open_view(name)
    message = {}
    for kind in ("suspect", "trust", "then"):
        sentence = page.locator(f"#verdict .{kind}")
        box = sentence.bounding_box()
        assert box["y"] + box["height"] <= 900
        message[kind] = sentence.inner_text()
    assert re.search(r"\d+ (of|printed|hallucinated|inconsistent)\b|With \d", message["suspect"]), message
    assert re.search(r"\bP\b|SIMULATED", message["trust"]), message
    assert re.match(r"Next: \w+", message["then"]), message
    assert page.locator("#verdict figure").first.bounding_box()["y"] < 900, "with its chart"


@pytest.mark.parametrize("name", [*REPORTS, *STUDIES])
def test_pictures_fit_a_phone(open_view, name):
    """Each is drawn for it, or anew for it: nothing scrolls in its box."""
    page = open_view(name, PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    boxes = "[...document.querySelectorAll('figure .wide')].filter((box) => box.querySelector('picture, svg'))"
    assert page.evaluate(f"{boxes}.length") >= 2
    wider = f"{boxes}.filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.innerText)"
    assert page.evaluate(wider) == []


@pytest.mark.parametrize("name", ["report-unlabeled", "report-compare"])
def test_figures_of_other_data_stand_in_their_box(open_view, name):
    """No accuracy of other datasets outside a box that says so, of claims without labels."""
    page = open_view(name)
    page.evaluate("document.querySelectorAll('.elsewhere').forEach((box) => box.remove())")
    assert not re.search(r"balanced accuracy[^.]*\d\d\.\d", page.locator("main").inner_text())


def test_the_end_of_labeling_does_not_contradict_itself(open_view):
    """Labels that disagree with the model are enough to say so, and what it expects of itself is not said."""
    message = open_view("label-end").locator("main").inner_text()
    assert "they show that the model is wrong here" in message
    assert "Not yet" not in message
    assert "percentage points on average" not in message


def test_one_count_of_the_same_claims(open_view):
    """The report of the votes on claims, and the page that the file of the claims was given to."""
    report = open_view("report-unlabeled").locator("#verdict .suspect").inner_text()
    assert open_view("serve-file").locator("#file-sum .suspect").inner_text() == report


def test_sixty_judges_fit(open_view):
    """At most three screens before the items."""
    page = open_view("report-sixty")
    assert page.locator("#items").bounding_box()["y"] <= 3 * DESKTOP["height"]


@pytest.mark.parametrize("name", [*REPORTS, *STUDIES])
def test_paper_has_no_empty_page(open_view, name):
    """Printed to PDF, folded and unfolded, every sheet has words or a picture, and no table is cut."""
    page = open_view(name)
    for unfold in ("", "document.querySelectorAll('details').forEach((fold) => { fold.open = true; })"):
        page.evaluate(unfold)
        drawn = [sheet.get_contents().get_data() for sheet in sheets_of(page)]
        assert drawn
        assert all(re.search(rb"\bT[jJ]\b|\bDo\b", sheet) for sheet in drawn)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 1032, "height": 703})  # a sheet in landscape, less its margins
    cut = "[...document.querySelectorAll('.wide, .text')].filter((box) => box.scrollWidth > box.clientWidth + 1)"
    assert page.evaluate(f"{cut}.map((box) => box.textContent.slice(0, 80))") == []
    heads = "[...document.querySelectorAll('.prose thead th')].filter((head) => /\\w/.test(head.textContent))"
    longest = "Math.max(...head.textContent.split(/[^\\w]+/).map((word) => word.length))"
    narrow = f"(head) => Math.max(head.clientWidth, head.clientHeight) < 5 * {longest}"
    assert page.evaluate(f"{heads}.filter({narrow}).map((head) => head.textContent)") == []


def sheets_of(page):
    """Return the sheets that a page is printed on."""
    return PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True))).pages


def words_on(sheet):
    """Return the words of a sheet, without ligatures."""
    return normalize("NFKC", sheet.extract_text())


def test_sixty_judges_on_paper(open_view):
    """Verdict, charts, ten items and fifteen judges, and how many more; no number ends a line before its %."""
    sheets = [words_on(sheet) for sheet in sheets_of(open_view("report-sixty"))]
    assert len(sheets) <= 8
    message = "\n".join(sheets)
    for words in ("Next: ", "45 more judges are in the file.", "590 more items are in the file, with the texts"):
        assert words in message
    assert len(re.findall(r" \d+ of \d+\n", message.split("votes for it", 1)[1].split("The headline")[0])) == 10
    assert not re.search("Show all|a head sorts|numbers of this picture", message)
    assert not re.search(r"\d\n%", message)


def test_heads_that_sort_are_printed_on_each_sheet(open_view):
    """As text: a button would stand on the first sheet alone."""
    page = open_view("report-labeled")
    page.add_style_tag(content="#browser tbody td { height: 50mm; }")
    sheets = [
        message
        for message in map(words_on, sheets_of(page))
        if re.search(r"consistent \d of \d$", message, re.MULTILINE)
    ]
    assert len(sheets) >= 3
    assert [sheet for sheet in sheets if "item claim P, % called dataset label votes for it\n" not in sheet] == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_fits(tmp_path, width):
    """No line of any command is wider than the terminal; sixty judges are at most forty lines."""
    import gallery

    gallery.write_inputs(tmp_path)
    for name, wide, text in gallery.terminals(tmp_path):
        if wide == width:
            lines = [line for line in text.splitlines() if "deep " not in line and str(tmp_path) not in line]
            assert [line for line in lines if len(line) > width] == [], name
            assert name != "panel" or len(text.splitlines()) <= 40
