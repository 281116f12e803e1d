"""The page of labels in a real browser: by keyboard alone, after a reload and kill -9, by two people, hostile texts."""

import random
import signal
import time

import pandas as pd
import pytest

from deep.integrations.labeling import read_label_log
from tests.browsing import IMAGE, MARKS, PATIENCE, PHONE, SCRIPT, Opened, is_narrow, sync_api, violations
from tests.deep_commands import votes
from tests.guests.serve.label_case import CLAIMS, label_server

pytestmark = MARKS
KEPT = "kept."
GONE = ("net::ERR_",)
"""What the console says of a server that is gone."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return votes on the invented claims."""
    path = tmp_path_factory.mktemp("votes") / "votes.parquet"
    assert votes([str(CLAIMS), "--lexical", "all", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return votes on claims whose names and texts try to be markup."""
    folder = tmp_path_factory.mktemp("hostile")
    frame = pd.DataFrame({"dataset": SCRIPT, "example_id": [f"{i} {IMAGE}" for i in range(30)]})
    frame["source"] = [f"{SCRIPT} \u05d0\u05d1 {'x' * 400} {i}. {IMAGE} \u202ekcab." for i in range(30)]
    frame["claim"] = [f"{IMAGE} </script>{SCRIPT} {i}" for i in range(30)]
    frame.to_csv(folder / "claims.csv", index=False)
    rows = {SCRIPT: [1, 0] * 15, IMAGE: [1, 1, 0] * 10, "y" * 300: [0, 1] * 15}
    named = frame.rename(columns={"example_id": "item_id"})[["dataset", "item_id"]].assign(**rows)
    named.to_csv(folder / "votes.csv", index=False)
    return folder


class Tab(Opened):
    """A tab of a person."""

    def answers(self, n):
        """Wait until n answers came, which the browser tells when it gets to it, and return their texts."""
        end = time.monotonic() + PATIENCE / 1000
        while len(self.sent) < n and time.monotonic() < end:
            self.page.wait_for_timeout(20)
        return [answer.text() for answer in self.sent]

    def text(self, selector):
        """Return the text of an element."""
        return self.page.locator(selector).inner_text()

    def says(self, selector, text=""):
        """Wait until an element is there and says something."""
        sync_api.expect(self.page.locator(selector)).to_contain_text(text, timeout=PATIENCE)

    def sign_in(self, name):
        """Write a name and begin, by keyboard."""
        self.says("#name:focus")
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        self.page.locator("#work, #done").locator("visible=true").first.wait_for()

    def press(self, key, said=KEPT):
        """Press a key, and wait until the page says so."""
        self.page.evaluate("document.getElementById('status').textContent = ''")
        self.page.keyboard.press(key)
        self.says("#status", said)


@pytest.fixture
def open_tab(chromium):
    """Return a function that opens a tab of its own; no tab complains or asks for anything elsewhere."""
    opened = []

    def opener(address, **options):
        opened.append(Tab(chromium, address, **options))
        return opened[-1]

    yield opener
    for tab in opened:
        if not tab.page.is_closed():
            tab.close()


def given(folder):
    """Return the labels on disk by person and item."""
    book, torn = read_label_log(folder / "labels.log.sqlite")
    assert torn == ""
    return {(who, item[1]): answer for who, own in book.answers.items() for item, answer in own.items()}


def test_by_keyboard_alone(open_tab, table, tmp_path):
    """From the name to the end: each key does its work, a note goes with its label, undo brings both back."""
    with label_server(tmp_path, table, "--n", 6, "--port", 0) as server:
        tab = open_tab(server.address)
        tab.sign_in("Ann")
        page, claims = tab.page, [tab.text("#claim")]
        tab.press("1")
        claims.append(tab.text("#claim"))
        page.keyboard.press("m")
        page.keyboard.type("1 a note, not 0 keys")
        page.keyboard.press("Escape")
        tab.press("n")
        claims.append(tab.text("#claim"))
        tab.press("u", "Taken back")
        assert tab.text("#claim") == claims[1]
        assert page.locator("#note").input_value() == "1 a note, not 0 keys"
        tab.press("0")
        assert tab.text("#claim") == claims[2]
        assert page.locator("#note").input_value() == ""
        for key in "asy0":
            tab.press(key)
        assert tab.text("#outcome") == "You labeled 5 and skipped 1."
        tab.press("g", "skipped items are shown again")
        tab.press("y")
        assert tab.text("#progress").startswith("6 of 6 items done. You: 6 labeled, 0 skipped, 0 left")
        page.keyboard.press("?")
        assert page.evaluate("document.activeElement.closest('dialog').id") == "help"
        page.keyboard.press("1")  # a dialog is open
        page.keyboard.press("Escape")
        assert page.locator("dialog[open]").count() == 0
        result = given(tmp_path)
        assert sorted(answer.label for answer in result.values()) == [-1, 0, 0, 1, 1, 1]
        assert [answer.note for answer in result.values() if answer.note] == ["1 a note, not 0 keys"]
        status, message = server.stop(signal.SIGTERM)
    assert status == 0
    assert "6 of 6 items are done; labels by Ann 6" in message
    assert "labels of 5 items: labels.csv\nannotations: labels.annotations.csv\nlog: labels.log.sqlite\n" in message


def test_a_long_source_is_read_by_keyboard(open_tab, tmp_path):
    """Space and PageDown go on by a screen, which is counted; / finds, w marks the claim's words."""
    text = " ".join(f"Sentence {i} speaks of the harbour wall." for i in range(900)) + " The bell cost 4,120 francs."
    rows = {"dataset": "long", "example_id": [f"i{i}" for i in range(12)], "source": text}
    pd.DataFrame(rows | {"claim": "The bell cost 4,120 francs."}).to_csv(tmp_path / "claims.csv", index=False)
    cast = {"dataset": "long", "item_id": rows["example_id"], "a": [0, 1] * 6, "b": [0, 1, 1] * 4, "c": [1, 1, 0] * 4}
    pd.DataFrame(cast).to_csv(tmp_path / "votes.csv", index=False)
    words = [tmp_path / "votes.csv", "--examples", tmp_path / "claims.csv", "--n", 4, "--person", "Ann", "--port", 0]
    with label_server(tmp_path, *words) as server:
        tab = open_tab(server.address, viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
        tab.page.locator("#work").wait_for()
        tab.says("#where", "screen 1 of ")
        tab.page.keyboard.press("Space")
        tab.says("#where", "screen 2 of ")
        tab.page.keyboard.press("PageDown")
        tab.says("#where", "screen 3 of ")
        tab.page.keyboard.press("PageUp")
        tab.says("#where", "screen 2 of ")
        tab.page.keyboard.press("/")
        tab.page.keyboard.type("4,120 FRANCS")
        tab.says("#hits", "1 place")
        tab.page.keyboard.press("Enter")
        tab.says("#hits", "1 of 1 place")
        assert tab.page.locator("#source").evaluate(
            "box => box.scrollTop > 0.8 * (box.scrollHeight - box.clientHeight)"
        )
        tab.page.keyboard.press("Escape")
        assert tab.page.locator("#source mark").count() == 0
        tab.page.keyboard.press("w")
        assert {"bell", "4,120", "francs"} <= set(tab.page.locator("#source mark").all_inner_texts())
        tab.page.keyboard.press("w")
        assert tab.page.locator("#source mark").count() == 0
        assert given(tmp_path) == {}
        for _ in range(4):
            tab.press("1")
        tab.says("#end", "deep fit ")
        tab.says("#end", "--labels labels.csv")


def test_blind_until_asked(open_tab, table, tmp_path):
    """No answer of the server holds a vote, a P or another person's label; after a label, on request, all of it."""
    with label_server(tmp_path, table, "--n", 3, "--double", 3, "--port", 0) as server:
        ann, bob = open_tab(server.address), open_tab(server.address)
        ann.sign_in("Ann")
        ann.page.locator("#note").fill("Ann thinks so")
        ann.page.locator("#claim-title").focus()
        ann.press("0")
        bob.sign_in("Bob")
        assert bob.page.locator("[data-key=r]").is_disabled()
        bob.page.keyboard.press("r")
        bob.press("1")
        sent = bob.answers(3)
        assert len(sent) == 3
        assert not [text for text in sent if "lexical" in text or "thinks" in text or '"p"' in text]
        bob.page.keyboard.press("r")
        bob.page.locator("dialog#reveal[open]").wait_for()
        people = bob.page.locator("#revealed > ul > li").all_inner_texts()
        assert people == ["Ann: not consistent\nAnn thinks so", "Bob: consistent"]
        assert bob.page.locator("#revealed tbody tr").count() == 12
        assert bob.page.locator("#revealed .gauge svg").get_attribute("aria-label").startswith("P(consistent) ")
        bob.page.keyboard.press("Escape")
        bob.press("u", "Taken back")
        assert bob.page.locator("#seen").is_visible()
        bob.press("0")
        bob.page.keyboard.press("e")
        bob.page.locator("dialog#enough[open]").wait_for()
        assert "Krippendorff's alpha" in bob.text("#verdict")
        assert "If the model is right, labels this far from it occur in " in bob.text("#verdict")
        assert "canary" not in bob.text("#verdict")
        assert " percentage points on average" in bob.text("#expected")
        bob.page.keyboard.press("Escape")
    assert [(who, answer.label, answer.after_reveal) for (who, _), answer in given(tmp_path).items()] == [
        ("Ann", 0, False),
        ("Bob", 0, True),
    ]


def test_reload_and_kill_lose_nothing(open_tab, table, tmp_path):
    """Of 200 labels by two people, with reloads, and kill -9 while a label is on its way: all that were called kept."""
    kept, kills, rng = {}, 0, random.Random(0)
    with label_server(tmp_path, table, "--n", 200, "--port", 0) as first:
        server = first
        tabs = {who: open_tab(server.address, expected=GONE) for who in ("Ann", "Bob")}
        for who, tab in tabs.items():
            tab.sign_in(who)
        for turn in range(200):
            who = ("Ann", "Bob")[turn % 2]
            tab = tabs[who]
            if not tab.page.locator("#work").is_visible():
                continue
            if turn % 25 == 12:
                tab.page.keyboard.press("1")
                time.sleep(rng.random() * 0.05)
                server.kill()
                kills += 1
                assert kept.items() <= labeled(tmp_path).items()
                server = type(first)(tmp_path, table, "--n", 200, "--port", first.port)
            if turn % 25 == 12 or turn % 9 == 5:
                tab.page.reload()
                tab.page.locator("#work, #done").locator("visible=true").first.wait_for()
                assert tab.text("#person") == who
            if tab.page.locator("#work").is_visible():
                claim = tab.text("#claim")
                tab.press("1" if turn % 3 else "0")
                kept[who, claim] = int(turn % 3 > 0)
        status, message = server.stop(signal.SIGINT)
    assert (status, kills) == (0, 8)
    assert "200 of 200 items are done" in message
    assert kept.items() <= labeled(tmp_path).items()
    assert len(kept) >= 192


def labeled(folder):
    """Return the labels on disk by person and claim."""
    claims = pd.read_csv(CLAIMS).set_index("example_id")["claim"]
    return {(who, claims[item]): answer.label for (who, item), answer in given(folder).items()}


def test_a_server_that_is_gone_is_told(open_tab, table, tmp_path):
    """Nothing moves on; when it is there again, the same key does it, and the note is still there."""
    with label_server(tmp_path, table, "--n", 3, "--person", "Ann", "--port", 0) as server:
        tab = open_tab(server.address, expected=GONE)
        tab.page.locator("#work").wait_for()
        claim = tab.text("#claim")
        tab.page.locator("#note").fill("a note")
        tab.page.locator("#claim-title").focus()
        server.kill()
        tab.page.keyboard.press("1")
        tab.says("#alert", "does not answer")
        assert tab.text("#claim") == claim
        with label_server(tmp_path, table, "--n", 3, "--port", server.port):
            tab.press("1")
            assert tab.text("#alert") == ""
            assert [(answer.label, answer.note) for answer in given(tmp_path).values()] == [(1, "a note")]


def test_hostile_names_and_texts_do_nothing(open_tab, hostile, tmp_path):
    """They are shown as they are, in every part of the page."""
    words = [hostile / "votes.csv", "--examples", hostile / "claims.csv", "--n", 2, "--double", 2, "--port", 0]
    with label_server(tmp_path, *words) as server:
        tab = open_tab(server.address, viewport=PHONE)
        tab.sign_in(IMAGE)
        assert tab.page.title() == "Label claims"
        assert tab.text("#person") == IMAGE
        assert tab.text("#claim").startswith(IMAGE)
        tab.page.locator("#note").fill(SCRIPT)
        tab.page.locator("#claim-title").focus()
        tab.press("1")
        tab.page.keyboard.press("r")
        tab.page.locator("dialog#reveal[open]").wait_for()
        assert sorted(tab.page.locator("#revealed tbody th").all_inner_texts()) == sorted([SCRIPT, IMAGE, "y" * 300])
        assert tab.page.locator("#revealed > ul").inner_text() == f"{IMAGE}: consistent\n{SCRIPT}"
        tab.page.keyboard.press("Escape")
        assert tab.page.locator("img, main script, dialog script").count() == 0
        assert is_narrow(tab.page)
        tab.page.reload()
        tab.page.locator("#work").wait_for()
        assert tab.page.title() == "Label claims"


@pytest.mark.parametrize("size", [PHONE, {"width": 1280, "height": 800}], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_accessible(open_tab, table, tmp_path, scheme, size):
    """No violation of any level: the names, an item, each dialog, and the end."""
    with label_server(tmp_path, table, "--n", 2, "--double", 2, "--port", 0) as server:
        tab = open_tab(server.address, color_scheme=scheme, viewport=size, reduced_motion="reduce")
        page = tab.page
        tab.says("#name:focus")
        assert violations(page) == []
        tab.sign_in("Ann")
        page.keyboard.press("j")
        assert tab.page.locator(".sentence.current").count() == 1
        assert violations(page) == []
        tab.press("1")
        for key, name in (("?", "help"), ("r", "reveal"), ("e", "enough")):
            page.keyboard.press(key)
            page.locator(f"dialog#{name}[open]").wait_for()
            assert violations(page) == []
            page.keyboard.press("Escape")
        tab.press("s")
        page.locator("#done").wait_for()
        assert violations(page) == []
        assert is_narrow(page)
        tab.close()  # it asks the server from time to time, which ends before the fixture does


def test_single_keys_can_be_turned_off(open_tab, table, tmp_path):
    """For people who speak to their machine; the buttons still work."""
    with label_server(tmp_path, table, "--n", 2, "--person", "Ann", "--port", 0) as server:
        tab = open_tab(server.address)
        tab.page.locator("#work").wait_for()
        tab.page.keyboard.press("?")
        tab.page.locator("#keys").press("Space")
        tab.page.keyboard.press("Escape")
        claim = tab.text("#claim")
        tab.page.keyboard.press("1")
        assert tab.text("#claim") == claim
        tab.page.locator("[data-key='1']").click()
        tab.says("#status", KEPT)
        assert tab.text("#claim") != claim
