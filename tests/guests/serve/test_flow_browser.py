"""The first screen of the README, from its first command to its last, in a real browser and without a key."""

import csv
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys

import pytest

from deep.integrations.labeling import read_label_log
from tests.browsing import IMAGE, MARKS, SCRIPT, Opened, violations
from tests.guests.serve.label_case import LabelServer
from tests.guests.serve.served import ROOT, UNLABELED
from tests.guests.serve.serving_case import command
from tests.guests.serve.truth import CONSISTENT

pytestmark = MARKS

GONE = "ERR_CONNECTION"
"""Part of the complaint of a browser whose server was killed."""


def commands():
    """Return the words of each command of the README's first block, by its name."""
    (block,) = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    lines = re.findall(r"^\$ deep (.*)$", block, re.MULTILINE)
    return {words[0]: words[1:] for words in (shlex.split(line, comments=True) for line in lines)}


def deep(folder, name, *words):
    """Run a command."""
    done = subprocess.run(
        [sys.executable, "-m", "deep", name, *map(str, words)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Person(Opened):
    """Somebody at the page of labels, with the keyboard alone."""

    def __init__(self, browser, address, name):
        super().__init__(browser, address, expected=(GONE,))
        self.name, self.given = name, {}
        self.page.locator("#name:focus").wait_for()
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        self.page.locator("#work").wait_for()

    def label(self, truth):
        """Label the item that is shown as a reader does; return its claim."""
        claim = self.page.locator("#claim").inner_text()
        self.page.evaluate("document.getElementById('status').textContent = ''")
        self.page.keyboard.press("1" if truth[claim] else "0")
        self.page.locator("#status").filter(has_text="kept.").wait_for()
        self.given[claim] = truth[claim]

    def reload(self):
        """Load the page anew, which knows who it is."""
        self.page.reload()
        self.page.locator("#work").wait_for()
        assert self.page.locator("#person").inner_text() == self.name


@pytest.fixture(scope="module")
def examples():
    """Return the rows of the examples."""
    with UNLABELED.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the examples and the votes on them."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "examples").mkdir()
    shutil.copy(UNLABELED, folder / "examples")
    assert "deep ask" in deep(folder, "doctor", *commands()["doctor"])
    assert "no LLM was asked" in deep(folder, "ask", *commands()["ask"])
    return folder


def labeled_by_two(chromium, folder, examples):
    """Let two people label all 200 claims, with reloads and a server that is killed; return each one's labels."""
    truth = {row["claim"]: int(row["example_id"] in CONSISTENT) for row in examples}
    words = [*commands()["label"], "--n", "200"]
    server = LabelServer(folder, *words, "--port", 0)
    try:
        people = [Person(chromium, server.address, name) for name in ("Ann", "Bob")]
        for turn in range(200):
            person = people[turn % 2]
            if turn % 50 == 25:
                server.kill()
                person.page.keyboard.press("1")
                person.page.locator("#alert").filter(has_text="does not answer").wait_for()
                server = LabelServer(folder, *words, "--port", server.port)
            if turn % 40 == 15:
                person.reload()
            person.label(truth)
        assert [violations(person.page) for person in people] == [[], []]
        status, message = server.stop(signal.SIGINT)
    finally:
        if server.process.poll() is None:
            server.kill()
    assert status == 0
    assert "200 of 200 items are done; labels by Ann 100, Bob 100" in message
    for person in people:
        person.close()
    return {person.name: person.given for person in people}


@pytest.fixture(scope="module")
def labels(chromium, folder, examples):
    """Return the labels that two people gave."""
    return labeled_by_two(chromium, folder, examples)


@pytest.fixture(scope="module")
def model(folder, labels):
    """Return what `deep fit` said of the labels."""
    return deep(folder, "fit", *commands()["fit"])


def test_the_commands_of_the_first_screen():
    """In this order."""
    assert list(commands()) == ["doctor", "ask", "label", "fit", "report", "serve"]


def test_no_label_is_lost(folder, labels, examples):
    """Of 200, by two people, over reloads and four times kill -9."""
    claims = {row["example_id"]: row["claim"] for row in examples}
    book, torn = read_label_log(folder / "labels.log.sqlite")
    kept = {who: {claims[item[1]]: answer.label for item, answer in own.items()} for who, own in book.answers.items()}
    assert torn == ""
    assert kept == labels
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as file:
        assert sum(1 for _ in csv.DictReader(file)) == 200


def test_the_labels_fit_a_model(folder, model):
    """Of one dataset with labels of its own."""
    assert "town-notices" in model
    assert "200 rows" in model
    assert "balanced accuracy 63." in model  # as the README says
    assert (folder / "model.json").exists()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report(chromium, folder, model, scheme):
    """Opens from the disk, asks for nothing, and axe finds nothing with an item open."""
    out = folder / "report.html"
    if not out.exists():
        deep(folder, "report", *commands()["report"])
    opened = Opened(chromium, out.as_uri(), color_scheme=scheme, reduced_motion="reduce")
    opened.page.locator("#browser tbody th button").first.click()
    assert opened.page.locator("#browser .gauge").count() == 1
    assert violations(opened.page) == []
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_served_model(chromium, folder, model, examples, scheme):
    """A pair, hostile texts, a file dropped on the page, and its table downloaded: the same P as `deep score` gives."""
    with command(*commands()["serve"], cwd=folder) as (process, address):
        opened = Opened(chromium, address, color_scheme=scheme, reduced_motion="reduce")
        page = opened.page
        page.get_by_label("Source", exact=True).fill(examples[0]["source"])
        page.get_by_label("Claim", exact=True).fill(examples[0]["claim"])
        page.keyboard.press("Control+Enter")
        page.locator("#result .gauge").wait_for()
        page.get_by_label("Source", exact=True).fill(f"{SCRIPT} {IMAGE} It rained 14 times.")
        page.get_by_label("Claim", exact=True).fill(f"{IMAGE} It rained 41 times {SCRIPT}.")
        page.keyboard.press("Control+Enter")
        page.locator("#result mark").first.wait_for()
        assert page.locator("#result img, #result script").count() == 0
        page.get_by_label("or drop it on this page").set_input_files(folder / "examples" / "unlabeled.csv")
        page.get_by_role("button", name="Download as CSV").wait_for()
        page.locator("#table tbody th button").first.click()
        page.locator("[id^=claim-]:visible .gauge").wait_for()
        assert violations(page) == []
        with page.expect_download() as download:
            page.get_by_role("button", name="Download as CSV").click()
        table = download.value.path().read_text(encoding="utf-8-sig")
        opened.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(600) == 130
    deep(folder, "score", "model.json", "--input", "examples/unlabeled.csv", "--out", "scored.csv")
    with (folder / "scored.csv").open(encoding="utf-8", newline="") as file:
        scored = {row["item_id"]: float(row["p_consistent"]) for row in csv.DictReader(file)}
    served = {row["example_id"]: float(row["p_consistent"]) for row in csv.DictReader(io.StringIO(table))}
    assert served == pytest.approx(scored, abs=1e-12)
