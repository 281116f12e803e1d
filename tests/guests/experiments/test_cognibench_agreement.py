"""Agreement of annotators by protocol, and of protocols with one another."""

import json
import math

import pytest

from tests.deep_commands import cognibench as main

HEADER = "item_id,protocol,annotator,label"

# Under "steps", a and b agree on three of four items; of the eight labels five are x and three y, so that
# alpha = 1 - 7 * 2 / 30. Under "classes" three annotators give 2 of 4, 3 of 3 and 1 of 3 equal pairs.
ROWS = [
    "1,steps,a,x", "1,steps,b,x",
    "2,steps,a,x", "2,steps,b,x",
    "3,steps,a,y", "3,steps,b,y",
    "4,steps,a,x", "4,steps,b,y",
    "1,classes,c,x", "1,classes,d,x", "1,classes,e,x",
    "2,classes,c,x", "2,classes,d,y", "2,classes,e,y",
    "3,classes,c,y", "3,classes,d,y",
    "4,classes,c,x", "4,classes,d,x", "4,classes,e,y",
]  # fmt: skip


def lines(row, n):
    """Return a file of so many rows."""
    return "\n".join([HEADER, *(row.format(i) for i in range(n))])


def run(tmp_path, capsys, lines, *more):
    """Return what the command prints as JSON."""
    path = tmp_path / "annotations.csv"
    path.write_text("\n".join([HEADER, *lines]), encoding="utf-8")
    assert main(["agreement", str(path), "--json", "--n-boot", "100", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_protocols(tmp_path, capsys):
    """Shares of equal pairs and alpha within, shares and kappa between, all by hand."""
    result = run(tmp_path, capsys, ROWS)
    classes, steps = result["within"]
    assert (steps["protocol"], steps["items"], steps["annotators"], steps["agreement"]) == ("steps", 4, 2, 3 / 4)
    assert steps["alpha"] == pytest.approx(1 - 7 * 2 / 30)
    assert steps["alpha low"] <= steps["alpha"] <= steps["alpha high"]
    # Pairs: 3 of 3, 1 of 3, 1 of 1, 1 of 3.
    assert (classes["items"], classes["annotators"], classes["agreement"]) == (4, 3, 6 / 10)
    # Item 4 has no commonest label under steps; of items 1, 2 and 3 the commonest are x x y and x y y.
    (between,) = result["between"]
    assert (between["protocols"], between["items"]) == ("classes / steps", 3)
    assert between["agreement"] == pytest.approx(2 / 3)
    assert between["kappa"] == pytest.approx((2 / 3 - 4 / 9) / (1 - 4 / 9))


def test_one_protocol(tmp_path, capsys):
    """Nothing to compare it with; perfect agreement on one label leaves alpha undefined."""
    result = run(tmp_path, capsys, ["1,steps,a,x", "1,steps,b,x"])
    assert result["between"] == []
    assert (result["within"][0]["agreement"], result["within"][0]["alpha"]) == (1, None)


def test_protocols_without_a_common_item(tmp_path, capsys):
    """There is no agreement to tell."""
    result = run(tmp_path, capsys, ["1,steps,a,x", "2,classes,a,x"])
    assert result["between"] == [{"protocols": "classes / steps", "items": 0, "agreement": None, "kappa": None}]
    assert all(row["agreement"] is None for row in result["within"])


def test_tables(tmp_path, capsys):
    """Without --json, a Markdown table within protocols and one between them."""
    path = tmp_path / "annotations.csv"
    path.write_text("\n".join([HEADER, *ROWS]), encoding="utf-8")
    assert main(["agreement", str(path), "--n-boot", "10"]) == 0
    text = capsys.readouterr().out
    assert "| steps | 4 | 2 | 0.7500 |" in text
    assert "| classes / steps | 3 | 0.6667 |" in text
    assert not math.isnan(float(text.split("|")[-2]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,protocol,annotator\n1,steps,a", "no column 'label'"),
        (HEADER, "Got no row"),
        (f"{HEADER}\n1,steps,a,x\n1,,b,x", "`protocol` must not be empty. Got '' in row 2"),
        (f"{HEADER}\n1,steps,a,x\n1,steps,a,y", "Got 1, steps, a again in row 2"),
        ("", "no row"),
        (f"{HEADER}\n1,steps,a, \n", "`label` must be given at least once"),
        (lines("{0},steps,a,text {0}", 1_001), "`label` must have at most 1,000 different values. Got 1,001 in"),
        (lines("1,p{0},a,x", 101), "`protocol` must have at most 100 different values. Got 101 in"),
        (lines("{0},steps,a{0},x", 4_500), "at most 20,000,000 pairs of an item and an annotator, labeled or not"),
    ],
)
def test_wrong_files(tmp_path, capsys, text, message):
    """One line, exit status 2."""
    path = tmp_path / "annotations.csv"
    path.write_text(text, encoding="utf-8")
    assert main(["agreement", str(path)]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_label_stays_missing(tmp_path, capsys):
    """An empty cell is no answer: neither a label nor a disagreement."""
    without = [line for line in ROWS if line != "4,steps,b,y"]
    blank = [line.replace("4,steps,b,y", "4,steps,b,") for line in ROWS]
    assert run(tmp_path, capsys, blank) == run(tmp_path, capsys, without)
