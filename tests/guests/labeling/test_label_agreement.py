"""`deep label agreement`, `guideline`: agreement worked out by hand, who differs where, ambiguous items apart."""

import csv
import json
import random

import pytest

from deep.integrations.labeling._label_book import STEPS, read_annotations
from tests.deep_commands import label as main
from tests.processor_time import growth

COLUMNS = ["item_id", "annotator", "label", *STEPS, "ambiguous"]

ROWS = """\
1 ann 1 1 1 . 1 .
1 bob 1 1 1 . 1 .
2 ann 0 0 . . 1 .
2 bob 0 0 . . 1 .
3 ann 1 1 . 1 1 .
3 bob 0 1 . 0 1 sentiment
4 ann 1 1 . 1 1 .
4 bob 0 1 . 1 0 relation
5 ann 1 1 1 1 1 .
5 bob 1 1 0 1 1 .
6 ann 0 0 . . . .
6 bob 1 . . . . .
7 ann 1 1 . . . .
8 ann . 1 . . . .
8 bob 1 1 . . . .
"""
"""Eight items; a dot is an empty cell."""


@pytest.fixture
def file(tmp_path):
    """Return a file of annotations."""
    return write(tmp_path / "annotations.csv", ROWS)


def write(path, text, columns=COLUMNS):
    """Write rows given as words."""
    with path.open("w", newline="", encoding="utf-8") as opened:
        table = csv.writer(opened)
        table.writerow(columns)
        table.writerows([word.replace(".", "") for word in line.split()] for line in text.splitlines())
    return path


def results(capsys, *words):
    """Run the command for JSON."""
    assert main([*map(str, words), "--json", "--n-boot", "50"]) == 0
    return json.loads(capsys.readouterr().out)


def values(found, key):
    """Return the measures by their first word."""
    return {one["name"].split("'")[0]: (one["items"], one["value"]) for one in found[key]["measures"]}


def test_agreement_is_the_one_worked_out_by_hand(file, capsys):
    """Items 1 to 6 have both labels: 3 of 6 alike; ann says factual 4 times, bob 3."""
    result = results(capsys, "agreement", file)
    everything = values(result, "all")
    assert result["all"]["items"] == 8
    expected = (4 / 6) * (3 / 6) + (2 / 6) * (3 / 6)
    assert everything["Cohen"] == (6, pytest.approx((3 / 6 - expected) / (1 - expected)))
    share = 7 / 12
    chance = share**2 + (1 - share) ** 2
    assert everything["Fleiss"] == (6, pytest.approx((3 / 6 - chance) / (1 - chance)))
    assert everything["Krippendorff"] == (6, pytest.approx(1 - (6 / 12) / (2 * 7 * 5 / (12 * 11))))
    clear = values(result, "without_ambiguous")
    assert result["without_ambiguous"]["items"] == 6
    assert clear["Cohen"] == (4, pytest.approx((3 / 4 - 1 / 2) / (1 / 2)))


def test_table_1_counts_what_is_agreed_and_what_is_ambiguous(file, capsys):
    """Items 3 and 4 leave; item 6 is tied, so it is neither."""
    counts = results(capsys, "agreement", file)["table_1"]
    assert counts == {"factual": 4, "non_factual": 1, "undecided": 1, "total": 6, "sentiment": 1, "relation": 1}
    counts = results(capsys, "agreement", file, "--min-marks", "2")["table_1"]
    assert counts == {"factual": 4, "non_factual": 1, "undecided": 3, "total": 8, "sentiment": 0, "relation": 0}


def test_disagreements_name_the_step(file, capsys):
    """A mark against no mark is no disagreement; the label alone may differ, or a step alone."""
    result = results(capsys, "agreement", file)["disagreements"]
    assert [(d["item"], d["on_label"], d["steps"]) for d in result] == [
        ("3", True, ["interpretive"]),
        ("4", True, ["relation"]),
        ("5", False, ["descriptive"]),
        ("6", True, []),
    ]
    assert result[0]["labels"] == {"ann": 1, "bob": 0}


def test_the_text_says_the_same(file, capsys):
    """For people."""
    assert main(["agreement", str(file), "--n-boot", "20"]) == 0
    message = capsys.readouterr().out
    assert "agreement, all items (8)" in message
    assert "3: the label and interpretive (ann 1, bob 0)" in message
    assert "5: descriptive (ann 1, bob 1)" in message
    assert "  sentiment: 1" in message


def test_the_ambiguous_go_into_a_file_apart(file, tmp_path, capsys):
    """Every row, as it came, is in exactly one of the two files, and the rest can be read again."""
    out = tmp_path / "ambiguous.csv"
    result = results(capsys, "agreement", file, "--filter-ambiguous", out)
    assert result["files"] == {"ambiguous": str(out), "rest": str(tmp_path / "ambiguous.rest.csv")}
    assert read_annotations(out).items == ["3", "4"]
    assert read_annotations(result["files"]["rest"]).items == ["1", "2", "5", "6", "7", "8"]
    apart, rest = (read_annotations(path) for path in result["files"].values())
    assert apart.columns == COLUMNS
    assert len(apart.rows) + len(rest.rows) == len(ROWS.splitlines())
    again = results(capsys, "agreement", result["files"]["rest"])
    assert values(again, "all") == values(result, "without_ambiguous")
    assert {path.name for path in tmp_path.iterdir()} == {out.name, "ambiguous.rest.csv", file.name}


def test_the_papers_table_1(tmp_path, capsys):
    """345 factual, 65 not, 31 undecidable over sentiment and 53 over relation, of five annotators."""
    lines = [f"f{i} a{j} 1 ." for i in range(345) for j in range(5)]
    lines += [f"n{i} a{j} 0 ." for i in range(65) for j in range(5)]
    lines += [f"s{i} a{j} {j % 2} {'sentiment' if j == 4 else '.'}" for i in range(31) for j in range(5)]
    lines += [f"r{i} a{j} {j % 2} {'relation' if j == 2 else '.'}" for i in range(53) for j in range(5)]
    random.Random(3).shuffle(lines)
    file = write(tmp_path / "a.csv", "\n".join(lines), ["item_id", "annotator", "label", "ambiguous"])
    result = results(capsys, "agreement", file)
    counts = {"factual": 345, "non_factual": 65, "undecided": 0, "total": 410, "sentiment": 31, "relation": 53}
    assert result["table_1"] == counts
    assert values(result, "without_ambiguous")["Fleiss"] == (410, pytest.approx(1.0))
    assert len([one for one in result["all"]["measures"] if "Cohen" in one["name"]]) == 10


def test_what_is_undefined_is_said_to_be(tmp_path, capsys):
    """One label alone allows no kappa."""
    file = write(tmp_path / "a.csv", "1 ann 1\n1 bob 1\n2 ann 1\n2 bob 1", ["item_id", "annotator", "label"])
    assert {value for _, value in values(results(capsys, "agreement", file), "all").values()} == {None}
    assert main(["agreement", str(file), "--n-boot", "5"]) == 0
    assert "Fleiss' kappa: undefined on 2 items" in capsys.readouterr().out


def test_the_worksheet_holds_the_three_steps_and_the_columns(capsys):
    """What it asks for is what the file is read for."""
    assert main(["guideline"]) == 0
    message = capsys.readouterr().out
    for word in ("Decompose", "Decouple", "Detach", "sentiment", ", ".join(COLUMNS)):
        assert word in message


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("item_id,annotator\n1,a\n", "no column 'label'"),
        ("item_id,annotator,label\n", "Got no row"),
        ("item_id,annotator,label\n1,a,2\n", "`label` must be 0, 1 or empty. Got '2' in row 1"),
        ("item_id,annotator,label,relation\n1,a,1,yes\n", "`relation` must be 0, 1 or empty. Got 'yes' in row 1"),
        ("item_id,annotator,label,ambiguous\n1,a,1,odd\n", "must be empty, relation or sentiment. Got 'odd'"),
        ("item_id,annotator,label\n1,a,1\n1,a,0\n", "one row for each item_id, annotator. Got 1, a again in row 2"),
        ("item_id,annotator,label\n,a,1\n", "`item_id` must not be empty"),
        ("item_id,annotator,label\n1,,1\n", "`annotator` must not be empty"),
        ("item_id,annotator,label\n1,a,1\n2,a,0\n", "two annotators or more. Got 'a' alone"),
        ("item_id,annotator,label\n1,a,1,7\n", "as many cells as columns. Got row 1 (line 2)"),
        ('item_id,annotator,label\n1,a,"1\n', "`file` must be CSV. Got"),
        ("", "no row"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, capsys, content, complaint):
    """With the column and the row."""
    file = tmp_path / "a.csv"
    file.write_text(content, encoding="utf-8")
    assert main(["agreement", str(file)]) == 2
    message = capsys.readouterr().err
    assert complaint in message
    assert message.startswith("error: ")
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--min-marks", "0"],
        ["--n-boot", "0"],
        ["--seed", "-1"],
        ["--filter-ambiguous", "x.txt"],
        ["--filter-ambiguous", "no-such-folder/x.csv"],
    ],
)
def test_bad_options_write_nothing(file, capsys, words):
    """Status 2."""
    assert main(["agreement", str(file), *words]) == 2
    assert capsys.readouterr().err.startswith("error: `")
    assert list(file.parent.iterdir()) == [file]


def test_the_annotations_are_never_overwritten(file, tmp_path, capsys):
    """Neither of the two files may be the one that is read."""
    before = file.read_bytes()
    rest = file.rename(tmp_path / "a.rest.csv")
    for out in (rest, tmp_path / "a.csv"):
        assert main(["agreement", str(rest), "--filter-ambiguous", str(out)]) == 2
        assert "`filter_ambiguous` must differ from `file`" in capsys.readouterr().err
    assert rest.read_bytes() == before
    assert list(tmp_path.iterdir()) == [rest]


def test_many_items_take_time_by_their_number(tmp_path, capsys):
    """Ten times the items of three people take at most thirty times as long."""

    def agree(n):
        text = "".join(f"{i} {'abc'[k]} {(i + k) % 2}\n" for i in range(n) for k in range(3))
        path = write(tmp_path / "many.csv", text, ["item_id", "annotator", "label"])
        assert main(["agreement", str(path), "--n-boot", "10", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["all"]["items"] == n

    agree(10)  # loads the libraries
    assert growth(agree, 1_000, 10_000) < 30


def test_more_people_than_a_table_holds_is_one_line(tmp_path, capsys):
    """Each item labeled by somebody else is no table of items and annotators."""
    path = write(
        tmp_path / "crowd.csv", "".join(f"{i} a{i} 1\n" for i in range(4_500)), ["item_id", "annotator", "label"]
    )
    assert main(["agreement", str(path)]) == 2
    assert "Got 4,500 items and 4,500 annotators. Measure parts of it." in capsys.readouterr().err
