"""What the scoring page is made of, and what it asks its server."""

import re
from urllib.request import urlopen

import numpy as np
import pytest

from deep.evaluate import share_words
from deep.integrations.serve import CheckOptions, create_app, serving
from deep.model import ScoreOptions
from deep.records import VoteMatrix
from deep.report import verdict as report_verdict
from tests.guests.serve.served import UNLABELED, lexical_model
from tests.guests.serve.serving_case import ask

PAGE = ("check.css", "check.js", "parts.js", "report.css")


@pytest.fixture(scope="module")
def address():
    """Return the address of a served model."""
    with serving(create_app(lexical_model())) as address:
        yield address


def test_the_page_loads_from_its_own_server_alone(address):
    """Its policy allows nothing else, and it names nothing else."""
    with urlopen(address) as answer:
        policy, html = answer.headers["content-security-policy"], answer.read().decode()
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    named = re.findall(r'(?:href|src)="([^"#][^"]*)"', html)
    assert sorted(named) == ["data:,", *(f"page/{name}" for name in PAGE)]
    assert not re.search(r"<script>|<style|style=|onclick|onload|http", html)


def test_files_of_the_page(address):
    """Each has the type that browsers want; none writes markup, runs text or asks another machine."""
    for name in PAGE:
        with urlopen(f"{address}/page/{name}") as answer:
            kind, text = answer.headers["content-type"], answer.read().decode()
        assert kind == f"text/{'css' if name.endswith('css') else 'javascript'}; charset=utf-8"
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", text)
        assert set(re.findall(r"https?://[^\"' ]+", text)) <= {"http://www.w3.org/2000/svg"}


def test_a_file_becomes_pairs(address):
    """All rows of the examples, in order, as /v1/check takes them."""
    status, outcome, _ = ask(
        address, "/page/file", body={"name": "unlabeled.csv", "text": UNLABELED.read_text("utf-8")}
    )
    assert status == 200
    assert len(outcome["pairs"]) == 200
    assert outcome["pairs"][1] == {
        "source": outcome["pairs"][0]["source"],
        "claim": "The island's school asked for the earlier departure.",
        "id": "ferry-1-b",
    }
    status, results, _ = ask(address, "/v1/check", body=outcome["pairs"][:3])
    assert [result["id"] for result in results["results"]] == ["ferry-1-a", "ferry-1-b", "ferry-1-c"]


def test_semicolons_and_tabs_are_read(address):
    """As spreadsheets of other countries write them, with quoted cells and a mark of the byte order."""
    for mark in ";\t":
        rows = [["source", "claim"], [f'It rained{mark} "hard", all day.', "It was wet."], ["Two\nlines.", "One."]]
        quoted = [[f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in row] for row in rows]
        text = "\ufeff" + "\r\n".join(map(mark.join, quoted))
        status, result, _ = ask(address, "/page/file", body={"name": "x.csv", "text": text})
        assert status == 200
        assert [[pair["source"], pair["claim"]] for pair in result["pairs"]] == rows[1:]


def test_a_bad_file_is_refused_in_words(address):
    """With the line of deep's own reader."""
    lacks = r"x.csv needs the columns source and claim, and lacks claim. Its first line has: source\."
    two = "an object with two texts, name and text"
    for body, said in (
        ({"name": "x.csv", "text": "source\na\n"}, lacks),
        ({"name": "x.csv", "text": ""}, "must hold at least one row"),
        ({"name": "x.jsonl", "text": "[1]\n"}, "must hold a JSON object a line. Got line 1"),
        ({"name": "x.csv", "text": 'source,claim\n"a,b\n'}, "must be CSV"),
        ({"name": "x.csv", "text": "source,claim\n\ud800,b\n"}, "must be UTF-8"),
        ({"name": "x.xlsx", "text": "PK"}, "ends in one of .csv, .json, .jsonl, .ndjson. Got 'x.xlsx'"),
        ({"name": "../../etc/passwd", "text": "source,claim\na,b\n"}, "ends in one of"),
        ({"name": "x.csv"}, two),
        (["x.csv"], two),
        ({"name": 1, "text": "a"}, two),
    ):
        status, result, _ = ask(address, "/page/file", body=body)
        assert status == 422
        assert re.search(said, result["error"]["message"])


def test_one_row_of_votes_is_held_beside_the_training_rows(address):
    """It is told how many had the same votes."""
    n = len(ask(address, "/v1/model")[1]["judges"])
    status, result, _ = ask(address, "/page/watch", body={"votes": [[None] * n]})
    assert status == 200
    assert result["likeness"]["n_votes"] == 0
    assert result["says"][-1].startswith("The model sees votes, not texts")


def test_the_votes_of_a_file_are_tested_for_drift(address):
    """Judges that all say 1 have moved; those of the training data themselves have not."""
    model = lexical_model()
    n = len(model.voters)
    status, result, _ = ask(address, "/page/watch", body={"votes": [[1] * n] * 100})
    assert (status, result["n"], result["unusual"]) == (200, 100, True)
    assert result["says"][0].startswith(
        "The judges vote on these 100 claims otherwise than on the 5 training datasets: "
    )
    assert "@" not in result["says"][0]
    assert "(panel)" not in result["says"][0]
    counts = model.cells.counts.sum(axis=(1, 2))
    rows = [
        [None if vote < 0 else int(vote) for vote in pattern]
        for pattern, count in zip(model.cells.patterns, counts, strict=True)
        for _ in range(count)
    ]
    assert ask(address, "/page/watch", body={"votes": rows})[1]["unusual"] is False


@pytest.mark.parametrize("prior", [None, 0.2])
def test_a_file_has_the_scores_and_the_verdict_of_its_report(prior):
    """P, interval and decision of every claim as a dataset, and so the same counts; none where no judge voted."""
    model = lexical_model()
    rows = np.random.default_rng(0).integers(-1, 2, (60, len(model.voters)))
    rows[0] = -1
    body = {"votes": [[None if vote < 0 else int(vote) for vote in row] for row in rows]}
    ids = [str(number) for number in range(60)]
    votes = VoteMatrix(rows, ids, model.voter_names, ["mine"] * 60, [-1] * 60)
    with serving(create_app(model, CheckOptions(score=ScoreOptions(prior=prior)))) as address:
        status, result, _ = ask(address, "/page/watch", body=body)
    frame = model.score_frame(votes, prior=prior)
    assert status == 200
    for name in ("p_consistent", "p_low", "p_high", "sure", "threshold"):
        assert [row[name] for row in result["scores"]] == frame[name].tolist()
    decided = [row["decision"] for row in result["scores"]]
    assert decided[0] is None
    assert decided == frame["decision"].astype(object).where(frame["decision"].notna(), None).tolist()
    message = result["verdict"]
    assert message[2].startswith("P is unverified here: none of these claims has a label")
    assert message[3].startswith("Next: ")
    if prior is None:
        expected = report_verdict(model, votes)
        assert message[:2] == [expected.suspect, share_words(expected.share)]
    else:
        assert message[1] == "Share of consistent claims, as given: 20.0 %."


@pytest.mark.parametrize(
    "votes", [None, [], "1", [[1]], [[1, 0, None, 2]], [[1, 0, True, 0]], [[1, 0, 1.0, 0]], [["1", 0, 0, 0]], [1]]
)
def test_votes_that_are_none_are_refused(address, votes):
    """In words."""
    status, result, _ = ask(address, "/page/watch", body={"votes": votes})
    assert status == 422
    assert "must be a list of lists of 4 votes: 1, 0 or null" in result["error"]["message"]


def test_the_model_says_what_it_reached(address):
    """On data that were left out."""
    left_out = ask(address, "/v1/model")[1]["left_out"]
    assert left_out["balanced_accuracy"] > 0.6
