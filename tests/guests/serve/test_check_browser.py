"""The scoring page in a real browser: a pair, a file, errors, hostile texts, keyboard, accessibility."""

import csv
import io
import json
import re

import pytest

from deep.evaluate import DecisionCounts, suspect_words
from deep.integrations.serve import ServerOptions, create_app, serving
from deep.model import exported_columns
from tests.browsing import IMAGE, MARKS, PHONE, SCRIPT, Opened, is_narrow, violations
from tests.guests.serve.served import UNLABELED, lexical_model

pytestmark = MARKS

SOURCE = "Rain \U0001f327 fell on Monday. The river \U0001f30a rose by 14 centimetres."
CLAIM = "The river \U0001f30a rose by 41 centimetres."
REFUSED = "Failed to load resource"


@pytest.fixture(scope="module")
def address():
    """Return the address of a served model."""
    with serving(create_app(lexical_model())) as address:
        yield address


@pytest.fixture
def open_page(chromium, address):
    """Return a function that opens the page; none complains or asks another machine."""
    opened = []

    def opener(**options):
        opened.append(Opened(chromium, f"{address}/", **options))
        opened[-1].page.locator("#model dl").wait_for()
        return opened[-1]

    yield opener
    for each in opened:
        each.close()


def check(page, source=SOURCE, claim=CLAIM):
    """Type a pair and ask."""
    page.get_by_label("Source", exact=True).fill(source)
    page.get_by_label("Claim", exact=True).fill(claim)
    page.get_by_role("button", name="Check").click()
    page.locator("#result .gauge").wait_for()


def drop(page, name, content):
    """Drop a file on the page, as a person does with the mouse."""
    transfer = page.evaluate_handle(
        """([name, content]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([content], name));
            return transfer;
        }""",
        [name, content],
    )
    page.dispatch_event("body", "dragover", {"dataTransfer": transfer})
    page.dispatch_event("body", "drop", {"dataTransfer": transfer})


def choose(page, name, content):
    """Choose a file."""
    page.get_by_label("or drop it on this page").set_input_files({"name": name, "mimeType": "", "buffer": content})


def downloaded(page):
    """Return the rows of the table that the page gives."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click()
    text = download.value.path().read_text(encoding="utf-8-sig")
    return download.value.suggested_filename, list(csv.DictReader(io.StringIO(text)))


def test_a_pair_by_keyboard_alone(open_page):
    """P as a gauge, the decision, each judge, its evidence marked by offsets, and how familiar the votes are."""
    page = open_page().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.insert_text(SOURCE)
    page.keyboard.press("Tab")
    page.keyboard.insert_text(CLAIM)
    page.keyboard.press("Control+Enter")
    page.locator("#result .gauge").wait_for()
    assert page.locator("#result .gauge svg").get_attribute("aria-label").startswith("P(consistent) ")
    assert re.fullmatch(r"[\d.]+ % \([<>\d.]+ to [<>\d.]+\): .*inconsistent", page.locator(".called").inner_text())
    assert "inconsistent" in page.locator("#pair-status").inner_text()
    assert page.locator("#result details").evaluate("fold => fold.open") is False
    page.locator("#result summary").click()
    assert "41" in page.locator("#result .claim mark").all_inner_texts()
    names = [text.partition("@")[0] for text in page.locator("#result tbody th").all_inner_texts()]
    votes = page.locator("#result tbody td:nth-child(2)").all_inner_texts()
    assert votes[names.index("lexical-numbers")] == "inconsistent"
    assert votes == sorted(votes, key=lambda vote: vote.startswith("no vote"))
    familiar = page.locator("#result > ul li")
    familiar.first.wait_for()
    assert familiar.last.inner_text().startswith("The model sees votes, not texts")


def test_what_answers(open_page):
    """What the model was fitted on, what it reached, its prior, its judges."""
    text = open_page().page.locator("#model").inner_text()
    assert "weather: 24 rows, 50.0 % consistent" in text
    assert "mean balanced accuracy" in text
    assert "lexical-numbers@" in text
    assert "the mean of the training datasets" in text


def test_a_file_is_dropped_checked_and_downloaded(open_page):
    """All 200 rows come out, in order, with the P that the table shows."""
    page = open_page().page
    drop(page, "unlabeled.csv", UNLABELED.read_text(encoding="utf-8"))
    page.get_by_role("button", name="Download as CSV").wait_for()
    assert page.locator("#file-status").inner_text() == "All 200 claims of unlabeled.csv are checked."
    name, rows = downloaded(page)
    with UNLABELED.open(encoding="utf-8", newline="") as file:
        given = list(csv.DictReader(file))
    assert name == "unlabeled.scored.csv"
    first = ["example_id", "claim", *exported_columns()]
    assert list(rows[0])[: len(first)] == first
    assert all(name.startswith("lexical-") for name in list(rows[0])[len(first) :])
    assert [(row["example_id"], row["claim"]) for row in rows] == [(row["example_id"], row["claim"]) for row in given]
    table = page.locator("#table tbody > tr:not([id])")
    assert table.count() == 100
    page.get_by_role("button", name="Show 100 more").click()
    assert table.count() == 200
    shown = page.locator("#table tbody > tr:not([id]) > td:nth-child(3)").all_inner_texts()
    assert sorted(shown) == sorted(f"{100 * float(row['p_consistent']):.1f}" for row in rows)
    states = [(row["decision"], row["sure"]) if row["decision"] else None for row in rows]
    counts = DecisionCounts(
        n=200,
        consistent=states.count(("1", "1")),
        inconsistent=states.count(("0", "1")),
        undecided=states.count(("0", "0")) + states.count(("1", "0")),
        leaning=states.count(("0", "0")),
        unvoted=states.count(None),
    )
    told = page.locator("#file-sum .suspect").inner_text().replace("\xa0", " ")
    assert told.split("\n") == [line.strip() for line in suspect_words(counts).split("\n")]
    assert page.locator("#file-sum .share").inner_text().startswith("Estimated share of consistent claims: ")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    ordered = [float(text) for text in page.locator("#table tbody > tr:not([id]) > td:nth-child(3)").all_inner_texts()]
    assert ordered == sorted(ordered)
    assert page.locator("#file-watch li").first.inner_text().startswith("The judges vote on these 200 claims ")


def test_an_item_of_the_table_opens(open_page):
    """By keyboard, and closes again; JSONL is read too."""
    page = open_page().page
    line = json.dumps({"source": SOURCE, "claim": CLAIM, "example_id": "a"})
    choose(page, "one.jsonl", line.encode())
    item = page.locator("#table tbody th button")
    item.wait_for()
    item.focus()
    page.keyboard.press("Enter")
    assert item.get_attribute("aria-expanded") == "true"
    assert "41" in page.locator("#claim-0 .claim mark").all_inner_texts()
    page.keyboard.press("Enter")
    assert not page.locator("#claim-0").is_visible()


HOSTILE = [
    SCRIPT,
    IMAGE,
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    " =1+1",
    '"quoted", and\nbroken',
    "\u202egnp.exe",
    "</td></tr></table>",
]


def test_hostile_files_do_nothing(open_page):
    """Texts are shown as they are; in the table that is downloaded no cell begins a formula."""
    opened = open_page()
    page = opened.page
    buffer = io.StringIO()
    table = csv.writer(buffer)
    table.writerow(["example_id", "source", "claim"])
    table.writerows(
        [f"{text}{i}".strip() or "x", f"{SCRIPT} It rained. {text}", text] for i, text in enumerate(HOSTILE)
    )
    drop(page, f"{IMAGE}.csv", buffer.getvalue())
    page.get_by_role("button", name="Download as CSV").wait_for()
    for button in page.locator("#table tbody th button").all():
        button.click()
    assert page.locator("#table img, #table script, #file-status img").count() == 0
    assert page.title() == "deep: is the claim consistent?"
    _, rows = downloaded(page)
    assert len(rows) == len(HOSTILE)
    for row, text in zip(rows, HOSTILE, strict=True):
        assert row["claim"] in (text, f"'{text}")
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())
    assert is_narrow(page)


def test_errors_of_files_are_shown_in_words(open_page):
    """And the page goes on; bytes that are no text are told apart before they are sent."""
    for name, content, said in (
        ("x.csv", "source\na\n", "and lacks claim"),
        ("x.exe", "MZ", "must be a file that ends in one of"),
        ("large.csv", "source,claim\n" + "a,b\n" * 1_500_000, "must have at most 4,194,304 bytes"),
    ):
        page = open_page(expected=(REFUSED,)).page
        drop(page, name, content)
        error = page.locator("#file-error")
        error.filter(has_text=said).wait_for()
        drop(page, "good.csv", "source,claim\nIt rained 14 times.,It rained 41 times.\n")
        page.get_by_role("button", name="Download as CSV").wait_for()
        assert error.inner_text() == ""
        drop(page, name, content)
        error.filter(has_text=said).wait_for()
        assert page.locator("#table tbody > tr:not([id])").count() == 1
        assert page.locator("#file-status").inner_text() == "Still shown below: good.csv."
    choose(page, "x.csv", b"source,claim\n\xff,b\n")
    error.filter(has_text="x.csv must be UTF-8 text").wait_for()


def test_errors_of_a_pair_are_shown_in_words(chromium):
    """What is missing is said, and gets the focus; what the server refuses is said in its words."""
    with serving(create_app(lexical_model()), ServerOptions(port=0, largest_body=2000)) as address:
        opened = Opened(chromium, f"{address}/", expected=(REFUSED,))
        page = opened.page
        page.get_by_role("button", name="Check").click()
        assert page.locator("#pair-error").inner_text() == "The source must be filled in."
        assert page.evaluate("document.activeElement.id") == "source"
        page.get_by_label("Source", exact=True).fill("It rained. " * 200)
        page.get_by_label("Claim", exact=True).fill("It was wet.")
        page.get_by_role("button", name="Check").click()
        page.locator("#pair-error").filter(has_text="at most 2,000 bytes").wait_for()
        check(page)
        assert page.locator("#pair-error").inner_text() == ""
        opened.close()


def test_a_server_that_ends_in_mid_work(chromium):
    """The rows that are there stay, are downloaded, and the rest comes once there is a server again."""
    app = create_app(lexical_model())
    with serving(app) as address:
        port = int(address.rpartition(":")[2])
        opened = Opened(chromium, f"{address}/", expected=(REFUSED, "net::ERR"))
        page = opened.page
        page.route(
            "**/v1/check", lambda route: route.abort() if len(asked) == 2 else (asked.append(1), route.continue_())
        )
        asked: list[int] = []
        page.locator("#model dl").wait_for()
        drop(page, "unlabeled.csv", UNLABELED.read_text(encoding="utf-8"))
        page.locator("#file-error").filter(has_text="The server does not answer. Is it still running?").wait_for()
        assert page.locator("#file-status").inner_text() == "Checked 50 of 200 claims of unlabeled.csv."
        assert len(downloaded(page)[1]) == 50
    page.unroute("**/v1/check")
    with serving(create_app(lexical_model()), ServerOptions(port=port)):
        page.get_by_role("button", name="Go on").click()
        page.locator("#file-status").filter(has_text="All 200 claims").wait_for()
        assert len(downloaded(page)[1]) == 200
        opened.close()


def test_a_budget_that_ends_leaves_no_half_answers(open_page):
    """What the judges that were paid say is in no row; Go on asks again."""
    opened = open_page(expected=(REFUSED,))
    page = opened.page
    refusal = {"error": {"code": "budget", "message": "The budget must have room.", "results": [{"judges": []}]}}
    page.route("**/v1/check", lambda route: route.fulfill(status=402, json=refusal))
    drop(page, "one.csv", "source,claim\nIt rained 14 times.,It rained 41 times.\n")
    page.locator("#file-error").filter(has_text="The budget must have room.").wait_for()
    assert page.locator("#table tbody tr").count() == 0
    assert not page.get_by_role("button", name="Download as CSV").is_visible()
    page.unroute("**/v1/check")
    page.get_by_role("button", name="Go on").click()
    page.get_by_role("button", name="Download as CSV").wait_for()
    assert len(downloaded(page)[1]) == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [{"width": 1180, "height": 860}, PHONE], ids=["desktop", "phone"])
def test_accessible(open_page, scheme, size):
    """No violation of any level, as it opens and with everything shown; no wider than a phone."""
    page = open_page(color_scheme=scheme, viewport=size, reduced_motion="reduce").page
    assert violations(page) == []
    check(page)
    page.locator("#result > ul li").last.wait_for()
    drop(page, "three.csv", "source,claim\nIt rained 14 times.,It rained 41 times.\nIt was dry.,It was wet.\n")
    page.get_by_role("button", name="Download as CSV").wait_for()
    page.locator("#table tbody th button").first.click()
    assert violations(page) == []
    assert is_narrow(page)


def test_a_hostile_pair_does_nothing(open_page):
    """Nor does it as evidence or rationale."""
    page = open_page().page
    check(page, f"{SCRIPT} {IMAGE} It rained 14 times.", f"{IMAGE} It rained {SCRIPT} 41 times. {'x' * 400}")
    assert page.locator("#result img, #result script").count() == 0
    assert page.title() == "deep: is the claim consistent?"
    assert is_narrow(page)
