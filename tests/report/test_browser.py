"""Reports in a real browser: chapters, the item browser, hostile texts, accessibility, in light and in dark."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep.cli import main
from deep.report import write_report
from tests.browsing import IMAGE, MARKS, SCRIPT, Opened, is_narrow, violations
from tests.fault_server import FaultServer
from tests.llm.calls import KEY
from tests.llm.crash import PROMPTS, write_examples

pytestmark = MARKS

CHAPTERS = ["verdict", "items", "headline", "reliability", "methods", "panel", "prior", "watch"]
CLAIMS = Path(__file__).parents[2] / "examples" / "claims.csv"
ROWS = "#browser table.items > tbody > tr:not([id])"


class Report(Opened):
    """A report in the browser."""

    def column(self, number):
        """Return the texts of a column of the items that are shown."""
        return self.texts(f"{ROWS} > :nth-child({number})")


@pytest.fixture
def open_page(chromium):
    """Return a function that opens a report; no page complains or asks for anything."""
    opened = []

    def opener(path, **options):
        opened.append(Report(chromium, path.resolve().as_uri(), **options))
        return opened[-1]

    yield opener
    for each in opened:
        each.close()


@pytest.fixture(scope="module")
def lexical(tmp_path_factory):
    """Return the report of the lexical judges on the example claims, with texts and evidence."""
    folder = tmp_path_factory.mktemp("lexical")
    votes, out = folder / "votes.parquet", folder / "report.html"
    assert main(["ask", str(CLAIMS), "--lexical", "all", "--out", str(votes)]) == 0
    assert main(["report", str(votes), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def real(tmp_path_factory, data_home):
    """Return the report of a model on votes of real judges that it was not fitted on."""
    folder = tmp_path_factory.mktemp("real")
    table, model, out = data_home / "umass_triviaqa" / "votes.parquet", folder / "model.json", folder / "report.html"
    frame = pd.read_parquet(table)
    last = frame["dataset"] == sorted(frame["dataset"].unique())[-1]
    frame[~last].to_parquet(folder / "train.parquet", index=False)
    frame[last].to_parquet(folder / "new.parquet", index=False)
    assert main(["fit", str(folder / "train.parquet"), "--out", str(model)]) == 0
    assert main(["report", str(model), str(folder / "new.parquet"), "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def eleven(tmp_path_factory, data_home):
    """Return the report of the votes on the eleven datasets."""
    out = tmp_path_factory.mktemp("eleven") / "report.html"
    return write_report([data_home / "llm_aggrefact" / "votes.parquet"], out)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Return the report of a hold-out on the simulated votes."""
    folder = tmp_path_factory.mktemp("study") / "loo"
    options = ["--sizes", "3", "--ensembler", "LogisticRegression", "--calibrator", "platt", "--n-boot", "200"]
    assert main(["loo", "--test", "aggrefact", *options, "--jobs", "1", "--out", str(folder), "--brief"]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the report of votes whose names and texts try to be markup, in both directions of writing."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    items = [f"{i} {IMAGE}" for i in range(30)]
    claims = [f"{IMAGE} \u202ekcab {SCRIPT}" if i else f"</script>{SCRIPT}" for i in range(30)]
    texts = {"source": [f"{SCRIPT} \u05d0\u05d1 {'x' * 300} {i}" for i in range(30)], "claim": claims}
    pd.DataFrame({"dataset": SCRIPT, "example_id": items, **texts}).to_csv(folder / "claims.csv", index=False)
    votes = {name: np.where(rng.random(30) < 0.8, labels, 1 - labels) for name in (SCRIPT, IMAGE, "y" * 300)}
    frame = pd.DataFrame({"dataset": SCRIPT, "item_id": items, "label": labels, **votes})
    frame.to_csv(folder / "votes.csv", index=False)
    return write_report([folder / "votes.csv"], folder / "report.html", examples=folder / "claims.csv")


@pytest.mark.parametrize("name", ["lexical", "real", "eleven", "study"])
def test_every_chapter_is_there(open_page, request, name):
    """Each has a heading, says something, and every picture has a table of its numbers."""
    opened = open_page(request.getfixturevalue(name))
    assert [section.get_attribute("id") for section in opened.page.locator("main > section").all()] == CHAPTERS
    for chapter in CHAPTERS:
        assert opened.page.locator(f"#{chapter} > :is(p, dl, figure, div)").count() > 0
    figures = opened.page.locator("figure:not(.gauge)")
    assert figures.count() >= 3
    for figure in figures.all():
        assert figure.locator("details table tbody tr").count() > 0
        assert figure.locator("svg").first.get_attribute("aria-label")


def test_drift_and_canary_speak(open_page, real):
    """Of a model with labeled votes of another dataset."""
    opened = open_page(real)
    assert "claims as on the 7 training datasets: " in opened.page.locator("#watch").inner_text()
    assert opened.page.locator("#watch caption").all_inner_texts()[-1].startswith("Canary")


def test_sorting(open_page, eleven):
    """A head sorts by its column, and again the other way round; a reader of the screen is told."""
    opened = open_page(eleven)
    head = opened.page.get_by_role("button", name="P, %", exact=True)
    head.click()
    first = [float(text) for text in opened.column(2)]
    assert first == sorted(first, reverse=True)
    assert opened.page.locator("th[aria-sort=descending]").inner_text() == "P, %"
    head.click()
    second = [float(text) for text in opened.column(2)]
    assert second == sorted(second)
    assert max(second) < min(first)


def test_views(open_page, eleven):
    """Likely label errors first: those in which P and label lie furthest apart."""
    opened = open_page(eleven)
    opened.page.get_by_role("button", name="likely label errors").click()
    p = [float(text.strip("<>")) for text in opened.column(2)]
    apart = [abs(one - 100 * (label == "consistent")) for one, label in zip(p, opened.column(5), strict=True)]
    assert apart == sorted(apart, reverse=True)
    assert min(apart) > 80


def test_filtering(open_page, eleven):
    """By dataset, label, decision and one judge's vote; the number of items found is said."""
    opened = open_page(eleven)
    form = opened.page.locator("#browser form")
    form.get_by_label("dataset").select_option("lfqa")
    form.get_by_label("label").select_option("inconsistent")
    form.get_by_label("called").select_option("undecided")
    assert set(opened.column(4)) == {"lfqa"}
    assert set(opened.column(3)) == {"undecided"}
    assert set(opened.column(5)) == {"inconsistent"}
    status = opened.page.get_by_role("status")
    before = int(status.inner_text().split(" of ")[0])
    form.get_by_label("judge", exact=True).select_option("base")
    form.get_by_label("that judge's vote").select_option("consistent")
    assert 0 < int(status.inner_text().split(" of ")[0]) < before
    opened.page.locator("#browser tbody th button").first.click()
    assert opened.page.locator("#reader .called").inner_text().count("undecided, leaning ") == 1
    row = opened.page.locator("#reader tbody tr", has_text="base").first
    assert row.locator("td").first.inner_text() == "consistent"


def test_searching(open_page, lexical):
    """In claims and sources; more are shown on demand."""
    opened = open_page(lexical)
    assert len(opened.column(1)) == 50
    opened.page.get_by_role("button", name="Show 50 more").click()
    assert len(opened.column(1)) == 100
    opened.page.get_by_label("search").fill("old bridge was CLOSED")
    wanted = pd.read_csv(CLAIMS).set_index("example_id")["source"].str.contains("old bridge was closed")
    assert set(opened.column(1)) == set(wanted[wanted].index)


def test_opening_items_by_keyboard_and_marking_evidence(open_page, lexical):
    """The first is open; arrow keys go on, Enter opens, and a judge's button marks its words alone."""
    opened = open_page(lexical)
    page = opened.page
    page.get_by_label("search").fill("lexical-none-such")
    assert page.locator(ROWS).count() == 0
    assert page.locator("#reader h3").count() == 0
    page.get_by_label("search").fill("")
    reader, first = page.locator("#reader"), page.locator(f"{ROWS} button").first
    assert reader.locator("h3").first.inner_text().startswith(first.inner_text())
    first.focus()
    page.keyboard.press("ArrowDown")
    assert page.locator(f"{ROWS}[aria-current=true] th").inner_text() == opened.column(1)[1]
    assert reader.locator("h3").first.inner_text().startswith(opened.column(1)[1])
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    assert reader.locator("h3").first.inner_text().startswith(opened.column(1)[0])
    while not reader.locator("mark").count():
        page.keyboard.press("ArrowDown")
    assert reader.locator("h3").all_inner_texts()[1:] == ["Claim", "Source", "Votes"]
    assert reader.locator("mark.for, mark.against").count() > 0
    every = reader.locator("mark").count()
    press = reader.get_by_role("button", name="mark the evidence of").first
    press.focus()
    page.keyboard.press("Space")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert 0 < reader.locator("mark").count() <= every
    quoted = reader.locator("tr", has=page.locator("[aria-pressed=true]")).locator("li").first.inner_text()
    assert any(text in quoted for text in reader.locator("mark").all_inner_texts())


def test_the_lowest_of_the_verdict_open_in_the_reader(open_page, lexical):
    """A link of the verdict shows that item."""
    opened = open_page(lexical)
    link = opened.page.locator("#verdict a[data-item]").nth(3)
    link.click()
    assert opened.page.locator("#reader h3").first.inner_text().startswith(link.inner_text())


def test_a_judges_prompt_and_reply_open_below_its_vote(open_page, tmp_path, monkeypatch):
    """One fold a judge, by its short name; what they hold is text, and wraps on a phone."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    out, page = tmp_path / "votes.parquet", tmp_path / "r.html"
    with FaultServer() as server:
        words = ["--prompt", *PROMPTS[:2], "--llm", "tiny", "--base-url", server.url, "--out", str(out)]
        assert main(["ask", str(write_examples(tmp_path / "news.csv", 12)), *words]) == 0
    assert main(["report", str(out), "--ledger", str(out.with_suffix(".ledger.sqlite")), "--out", str(page)]) == 0
    opened = open_page(page, viewport={"width": 390, "height": 844})
    folds = opened.page.locator("#reader summary", has_text="Prompt and reply of")
    assert folds.all_inner_texts() == [f"Prompt and reply of {name}/tiny" for name in PROMPTS[:2]]
    folds.first.click()
    assert opened.texts("#reader details[open] dt") == ["system", "user", "assistant"]
    assert "[the source]" in opened.page.locator("#reader details[open]").inner_text()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_bar_of_the_histogram_lists_its_claims(open_page, lexical):
    """A click takes one bar, a drag several; the fields hold the range, and can be emptied."""
    report = open_page(lexical)
    page = report.page
    box = page.locator("#verdict [id$='-plane']").bounding_box()

    def across(bar):
        return box["x"] + box["width"] * (bar + 0.5) / 20, box["y"] + 10

    bar = int(float(report.column(3)[0]) // 5)
    page.mouse.click(*across(bar))
    assert [page.input_value("#by-from"), page.input_value("#by-to")] == [str(5 * bar), str(5 * bar + 5)]
    values = [float(text) for text in report.column(3)]
    assert values
    assert 5 * bar <= min(values) <= max(values) <= 5 * bar + 5
    page.evaluate("scrollTo(0, 0)")
    page.mouse.move(*across(0))
    page.mouse.down()
    page.mouse.move(*across(9))
    page.mouse.up()
    assert [page.input_value("#by-from"), page.input_value("#by-to")] == ["0", "50"]
    page.fill("#by-to", "")
    page.fill("#by-from", "")
    assert page.locator("[role=status]").inner_text().startswith("120 of 120 items")


def test_hostile_names_and_texts_do_nothing(open_page, hostile):
    """They are shown as they are."""
    opened = open_page(hostile)
    assert opened.page.title() == "Votes: votes.csv"
    assert opened.page.locator("#browser img, main img").count() == 0
    opened.page.get_by_label("search").fill("</script>")
    opened.page.locator("#browser tbody th button").first.click()
    detail = opened.page.locator("#reader")
    assert detail.locator(".claim").inner_text().startswith(("</script>", IMAGE))
    assert set(detail.locator("tbody th").all_inner_texts()) == {SCRIPT, IMAGE, "y" * 300}
    assert is_narrow(opened.page)


def test_no_text_holds_no_text(open_page, lexical, tmp_path):
    """Neither claims nor sources nor what quotes them."""
    out = tmp_path / "report.html"
    write_report([lexical.parent / "votes.parquet"], out, texts=False)
    assert "The old bridge" not in out.read_text(encoding="utf-8")
    assert "The old bridge" in lexical.read_text(encoding="utf-8")
    opened = open_page(out)
    assert any(message.startswith("Texts in this file: none") for message in opened.texts("#items > p"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_page, hostile, scheme):
    """No violation of any level, with everything unfolded and an item open; test_gallery.py has other reports."""
    page = open_page(hostile, color_scheme=scheme, reduced_motion="reduce").page
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    page.locator("#browser tbody th button").first.click()
    assert violations(page) == []
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_prints_what_is_unfolded(open_page, lexical):
    """Paper has what a reader unfolded, and nothing to press."""
    page = open_page(lexical).page
    page.emulate_media(media="print")
    assert page.locator("details[open]").count() == 0
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    assert page.locator(":is(form, summary, thead button, #reader)").locator("visible=true").count() == 0
