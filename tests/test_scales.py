"""Scales of answers: how they are said, recognised at fit, and read; a stray value in a column of votes is a fault."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

import deep
from deep._util.frames import table_defaults
from deep._util.scales import MIN_GRADES, Scale, infer_scales, scale_sentence
from deep.datasets import read_votes
from deep.exceptions import DeepWarning, InputError
from deep.records import VoteMatrix
from tests.datasets.tables import fault, write_rows

VOTES_OF_20 = [1, 0, 1, 1] * 5


@pytest.mark.parametrize(
    ("text", "shown", "levels"),
    [
        ("binary", "binary", 2),
        ("unit", "unit", None),
        ("1-5", "1-5", 5),
        ("5-1", "5-1", 5),
        ("0-100", "0-100", None),
        ("-3.5..0", "-3.5..0", None),
        ("-3..0", "-3..0", 4),
        ("-8..-1", "-8..-1", 8),
        ("3:-3", "3..-3", 7),
        ("~-4.656..-0.2", "~-4.656..-0.2", None),
        ("A-C", "A<B<C", 3),
        ("C-A", "C<B<A", 3),
        ("bad < fair<good", "bad<fair<good", 3),
        ("1e-3-2.5", "0.001-2.5", None),
        ("~2-7.5", "~2-7.5", None),
    ],
)
def test_a_scale_is_said_and_read_again(text, shown, levels):
    """What is shown is what `parse` reads."""
    scale = Scale.parse(text)
    assert (str(scale), scale.n_levels) == (shown, levels)
    assert Scale.parse(shown) == scale


@pytest.mark.parametrize("text", ["", "1", "1-1", "1..", "nan-1", "0-inf", "1e999-2", "a<a", "a<", "<", 5, None, "-"])
def test_no_scale(text):
    """The error lists the forms."""
    assert fault(Scale.parse, text, " for 'x'").startswith("`scale` must be one of binary, unit, LOW-HIGH as 1-5")


def test_what_lies_outside_a_scale_is_no_answer():
    """But for rounding; a scale with open ends holds it at them."""
    numbers = np.array([0, 1, 1.5, 5, 5 + 1e-10, 6, np.nan, np.inf, -np.inf, 1e308])
    assert np.isnan(Scale.parse("1-5").places(numbers)).tolist() == [True] + [False] * 4 + [True] * 5
    assert Scale.parse("5-1").places(numbers)[1:4].tolist() == [1, 0.875, 0]
    assert Scale.parse("~1-5").places(numbers)[[0, 5]].tolist() == [0, 1]
    assert np.isnan(Scale.parse("binary").places(np.array([0.5]))).all()


def column(*pairs):
    """Return values, each so many times."""
    return np.repeat([value for value, _ in pairs], [n for _, n in pairs]).astype(float)


GRADER = column((1, 5), (2, 5), (3, 5), (5, 5))


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (column((0, 10), (1, 10)), "binary"),
        (column((0, 10), (1, 10), (2, 1)), "binary"),
        (column((0, 10), (1, 10), (7, 2)), "binary"),
        (column((0, 10), (1, 10), (0.5, 2)), "binary"),
        (column((0, 100), (1, 100), (3, 19)), "binary"),
        (column((0, 10), (1, 10), (-1, 10)), "binary"),
        (column((2, 1)), "binary"),
        (column((2, 9)), "binary"),
        (column((-1, 1)), "binary"),
        (column((0, 100), (1, 100), (2, 25)), "0-2"),
        (column((0, 10), (0.5, 5), (1, 10)), "unit"),
        (column((0.1, 1), (0.2, 1), (0.3, 1)), "unit"),
        (GRADER, "1-5"),
        (column((1, 9), (2, 1), (1.5, 1), (2.5, 1)), "1-3"),
        (column((1, 90), (2, 2), (3, 2), (5, 2)), "binary"),
        (column((0, 5), (55, 3), (100, 5)), "0-100"),
    ],
)
def test_the_scale_of_a_column(values, scale):
    """A few answers that are no votes are mistakes: fewer than three, or than a tenth; or any below 0 beside votes."""
    assert str(infer_scales({"a": values})["a"]) == scale


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        (column((1, 90), (2, 2), (3, 2), (5, 2)), "1-5"),
        (column((1, 90), (5, 1)), "1-5"),
        (column((3, 50)), "1-5"),
        (column((0, 45), (1, 45), (5, 1)), "binary"),
        (column((1, 90), (7, 1)), "binary"),
        (column((1, 5), (7, 5), (10, 5)), "1-10"),
        (column(), "binary"),
        (column((0, 45), (1, 45)), "binary"),
    ],
)
def test_a_column_beside_a_grader(values, scale):
    """One that mostly says 1 is a grader too; one that says 0, or lies beyond the others' range, is of votes."""
    assert {name: str(one) for name, one in infer_scales({"a": values, "b": GRADER}).items()} == {
        "a": scale,
        "b": "1-5",
    }


def test_votes_of_one_are_asked_about_beside_grades():
    """It may be the lowest grade."""
    message = fault(infer_scales, {"a": column((1, 9)), "b": GRADER})
    assert "Got 1 in 'a', alone, beside judges that give grades: a vote, or the lowest grade?" in message
    assert "`--scale a=LOW..HIGH`" in message


@pytest.mark.parametrize("values", [column((-3, 3), (-2.5, 3)), column((3, 5), (250, 5)), column((1e308, 3), (2, 3))])
def test_no_usual_scale(values):
    """The column and the option are named."""
    message = fault(infer_scales, {"a": values})
    assert "which is on no usual scale. Say its scale with `--scale a=LOW..HIGH` (`scales`)" in message


def table(tmp_path, suffix="csv", **columns):
    """Write a wide table."""
    n = len(next(iter(columns.values())))
    rows = zip(["news"] * n, [f"i{j}" for j in range(n)], *columns.values(), strict=True)
    return write_rows(tmp_path / f"t.{suffix}", ["dataset", "item_id", *columns], rows)


REMEDY = (
    "Leave a cell empty for no vote; leave a column that holds no votes out with `--ignore` (`ignore`). Of a judge "
    "that gives grades or shares, say the scale: `--scale v=1-5` (`scales`)."
)


@pytest.mark.parametrize(("suffix", "place"), [("csv", "row 7 (line 8)"), ("parquet", "row 7")])
@pytest.mark.parametrize("cell", [2, 7, -1, 0.5])
def test_a_stray_value_among_votes_is_told_with_its_place(tmp_path, suffix, place, cell):
    """Alone, and beside a grader, whose grades are none of its business."""
    votes = [float(vote) for vote in VOTES_OF_20]
    votes[6] = float(cell)
    shown = repr(str(float(cell)) if suffix == "csv" else float(cell))
    for beside in ({}, {"g": list(GRADER)}):
        path = table(tmp_path, suffix, **beside, v=votes)
        assert fault(read_votes, path) == (
            f"`votes` must be 0, 1 or empty. Got {shown} at {path}, column 'v', {place}. {REMEDY}"
        )


@pytest.mark.parametrize("names", [("item_id", "voter", "vote"), ("task", "worker", "label")])
def test_a_stray_value_of_a_long_table_is_told_with_its_line(tmp_path, names):
    """The line is that of the long table, also where another judge grades; of a frame, its row from 0."""
    rows = [[f"i{j}", "g", grade] for j, grade in enumerate(GRADER)]
    rows += [[f"i{j}", "v", 7 if j == 6 else vote] for j, vote in enumerate(VOTES_OF_20)]
    path = write_rows(tmp_path / "long.csv", names, rows)
    message = fault(read_votes, path, dataset="news")
    assert message == (
        f"`votes` must be 0, 1 or empty. Got '7' at {path}, column {names[2]!r}, row 27 (line 28). {REMEDY}"
    )
    frame = pd.DataFrame({"item_id": range(20), "v": VOTES_OF_20})
    frame.loc[6, "v"] = 7
    message = fault(VoteMatrix.from_frame, frame, dataset="news")
    assert message == f"`votes` must be 0, 1 or empty. Got 7 at row 6 (from 0), column 'v'. {REMEDY}"


@pytest.mark.parametrize("cell", ["nan", "1e0", "01"])
def test_cells_of_votes_are_spelled_as_ever_beside_a_grader(tmp_path, cell):
    """As where all judges vote."""
    path = table(tmp_path, g=list(GRADER), v=[cell, *VOTES_OF_20[1:]])
    assert fault(read_votes, path) == (
        f"`votes` must be 0, 1 or empty. Got {cell!r} at {path}, column 'v', row 1 (line 2). "
        "Leave a cell empty for no vote; leave a column that holds no votes out with `--ignore` (`ignore`)."
    )


def test_grades_of_a_table_are_read_as_places(tmp_path):
    """Beside votes and shares; empty cells are no answers; the sentence says the scales."""
    share = [round(0.04 * j, 2) for j in range(20)]
    path = table(tmp_path, g=[*GRADER[:-1], ""], mostly_one=[1] * 19 + [4], s=share, v=VOTES_OF_20)
    result = read_votes(path)
    assert [str(scale) for scale in result.scales] == ["1-5", "1-5", "unit", "binary"]
    assert result.answers[5].tolist() == [0.25, 0.0, 0.2, 0.0]
    assert np.isnan(result.answers[-1, 0])
    assert result.votes[-1].tolist() == [-1, 1, 1, 1]
    assert scale_sentence(result.voter_names, result.scales) == (
        "Scales of answers: 1-5 (by their values): g, mostly_one; unit (by their values): s. "
        "`--scale NAME=...` declares another."
    )
    assert len(infer_scales({"a": GRADER[-MIN_GRADES:]})) == 1


def test_a_declared_scale_is_read_by(tmp_path):
    """By name or pattern: turned round, in words, in any unit; what lies outside is none, with its place."""
    path = table(tmp_path, risk=[1, 5, 3, 9], tone=["good", "bad", "", "fine"], bart=[-8, -0.5, 0, -4])
    scales = {"r*": "5-1", "tone": "bad<fair<good", "bart": "-8..0"}
    with pytest.warns(DeepWarning, match="outside the scale") as told:
        result = read_votes(path, scales=scales)
    np.testing.assert_array_equal(result.answers, [[1, 1, 0], [0, 0, 0.9375], [0.5, np.nan, 1], [np.nan, np.nan, 0.5]])
    assert [str(one.message) for one in told] == [
        f"1 answer outside the scale 5-1: none each. The first is '9' at {path}, column 'risk', row 4 (line 5).",
        f"1 answer outside the scale bad<fair<good: none each. The first is 'fine' at {path}, column 'tone', row 4 "
        "(line 5).",
    ]
    assert "`scale` must name judges of the table: 'risk', 'tone', 'bart'. Got 'x'." in fault(
        read_votes, path, scales={"x": "1-5"}
    )
    path = table(tmp_path, g=[3, 5, 4, 1], tone=["good", "bad", "", "fine"])
    assert "Say its answers from the worst to the best, as `--scale 'tone=bad<good'`" in fault(read_votes, path)


def test_a_matrix_of_grades_needs_its_scales():
    """Numbers that are no votes are the old error; with scales those outside are refused."""
    arguments = [["a", "b"], ["x", "y"], ["news"] * 2, [1, 0]]
    assert "Got 4.0 at row 0, column 0 ('x')" in fault(VoteMatrix, [[4, 1], [2, 0]], *arguments)
    result = VoteMatrix([[4, 1], [2, np.nan]], *arguments, scales=["1-5", "binary"])
    assert result.votes.tolist() == [[1, 1], [0, -1]]
    message = fault(VoteMatrix, [[4, 1], [9, 0]], *arguments, scales=["1-5", "binary"])
    assert "Got 9 at row 1, column 0 ('x'), whose scale is 1-5." in message
    assert "`scales` must be one a column of `votes`" in fault(VoteMatrix, [[4, 1]] * 2, *arguments, scales=["1-5"])


def test_whole_numbers_are_votes_of_whatever_width():
    """Floats alone are evidence: a sum over votes as int64 is that over votes as int8."""
    from deep.features import Linear

    linear = Linear(0.25, np.array([1.0, 2.0, 4.0]), np.array([-0.5, -0.125, -8.0]))
    votes = np.array([[1, 0, -1], [0, -1, 1]])
    expected = linear.log_odds(votes.astype(np.int8))
    assert expected.tolist() == [1.125, 3.75]
    for kind in (np.int64, np.int32, np.int16):
        assert linear.log_odds(votes.astype(kind)).tolist() == expected.tolist()


def test_scoring_reads_by_the_scale_of_the_model(tmp_path):
    """A batch of 1s alone is one of the worst grade, in a file, a frame, a matrix of other scales and a row."""
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    grades = {f"g{j}": np.clip(np.round(2 + 2 * y + rng.normal(0, 1, 120)), 1, 5) for j in range(3)}
    train = pd.DataFrame({"dataset": "news", "item_id": range(120), "label": y, **grades})
    model = deep.fit(train)
    ones = pd.DataFrame({"dataset": "new", "item_id": range(4), **dict.fromkeys(grades, 1)})
    path = tmp_path / "ones.csv"
    ones.to_csv(path, index=False)
    worst = model.score(np.zeros((4, 3)), streamed=True)
    best = model.score(np.ones((4, 3)), streamed=True)
    assert worst.max() < 0.2 < 0.8 < best.min()
    for given in (ones, path, VoteMatrix([[1] * 3] * 4, range(4), list(grades), ["new"] * 4, [-1] * 4)):
        np.testing.assert_allclose(model.score(given, streamed=True), worst, rtol=0, atol=1e-12)
    with pytest.raises(InputError, match=r"`votes` must hold answers of 'g0' on its scale 1-5\. Got a vote of 0"):
        model.score(VoteMatrix([[0] * 3] * 4, range(4), list(grades), ["new"] * 4, [-1] * 4))


N = 120
Y = np.arange(N) % 2


def hostile(name):
    """Return a column that may stand beside two graders."""
    rng = np.random.default_rng(1)
    return {
        "empty": np.full(N, np.nan),
        "constant": np.full(N, 3.0),
        "one level or none": np.where(Y == 1, 4, np.nan),
        "a gap": np.where(rng.random(N) < 0.7, np.where(Y == 1, 10, 1), 3),
        "hardly any spread": rng.random(N) * 1e-300,
        "infinite": np.where(np.arange(N) == 5, np.inf, 3),
        "huge": rng.random(N) * 1e308,
        "any unit": rng.normal(0, 1000, N),
        "in words": np.where(Y == 1, "good", "bad"),
        "turned round": 5 - 3 * Y + rng.integers(-1, 1, N),
    }[name]


@pytest.mark.parametrize("labels", [None, np.where(np.arange(N) < 60, Y, -1)], ids=["no label", "60 labels"])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, None) for name in ("empty", "constant", "one level or none", "a gap", "hardly any spread")),
        ("infinite", r"must lie between -1e15 and 1e15\. Got inf at row 5 .*`--ignore`"),
        ("huge", r"must lie between -1e15 and 1e15\. Got \d.* at row 0 .*`--ignore`"),
        ("any unit", r"Got -\d+.* in 'x', which is on no usual scale\. Say its scale with `--scale x=LOW\.\.HIGH`"),
        ("in words", r"Got 'bad' at row 0 .*`--scale 'x=bad<good'`"),
        ("turned round", r"`scale` must name the better end for 'x': its high answers go with .*`--scale x=5-1`"),
    ],
)
def test_hostile_columns_are_fitted_or_told_in_one_line(name, message, labels, tmp_path):
    """P is finite, and that of the file; only the one judge at fault is named."""
    rng = np.random.default_rng(0)
    graders = {f"g{j}": np.clip(np.round(2 + 2 * Y + rng.normal(0, 1, N)), 1, 5) for j in range(2)}
    frame = pd.DataFrame({"dataset": "mine", "item_id": range(N), **graders, "x": hostile(name)})
    if message is not None:
        with pytest.raises(InputError, match=message):
            deep.fit(frame, labels=labels)
        return
    model = deep.fit(frame, labels=labels)
    p = model.score(frame)
    assert np.isfinite(p).all()
    assert np.mean(p[Y == 1][:, None] > p[Y == 0]) > 0.85
    model.save(tmp_path / "m.json")
    np.testing.assert_array_equal(deep.load(tmp_path / "m.json").score(frame), p)


def test_the_cell_at_fault_is_told_and_not_a_grade_beside_it(tmp_path):
    """Of grades with a stray word the word is told; a column of words alone is told how to declare them."""
    items = pd.DataFrame({"dataset": "d", "item_id": [f"i{i}" for i in range(6)], "b": [1, 5, 3, 2, 4, 1]})
    path = tmp_path / "v.csv"
    items.assign(a=["5", "1", "n/a", "3", "", "yes"]).to_csv(path, index=False)
    assert "Got 'n/a' at" in fault(read_votes, path)
    items.assign(a=["good", "bad", "", "good", "bad", "bad"]).to_csv(path, index=False)
    assert "Say its answers from the worst to the best, as `--scale 'a=bad<good'`" in fault(read_votes, path)
    items.assign(a=["yes", "no", "", "maybe", "no", "yes"]).to_csv(path, index=False)
    assert "Got 'maybe' at" in fault(read_votes, path)


@pytest.mark.parametrize("cells", [["True", "False", "", "True"], [True, False, None, True]])
def test_a_yes_is_not_the_worst_grade_of_a_declared_scale(tmp_path, cells):
    """`true` is the number 1 to many readers; on a scale from 1 to 5 it is no answer, and on a share it is 1."""
    path = tmp_path / "v.parquet"
    pd.DataFrame({"dataset": "d", "item_id": list("wxyz"), "a": cells, "b": [1, 5, 3, 2]}).to_parquet(path)
    with table_defaults(None, ["a=1-5"]):
        assert "`votes` must be numbers or empty. Got " in fault(read_votes, path)
    with table_defaults(None, ["a=unit"]):
        assert read_votes(path).answers[:, 0].tolist()[:2] == [1.0, 0.0]


def test_a_long_table_holds_yes_and_no_beside_grades(tmp_path):
    """As the wide one does, also in another file: what one judge says decides nothing about another."""
    rows = [("grader", f"i{i}", str(1 + i % 5)) for i in range(20)]
    rows += [("sayer", f"i{i}", "yes" if i % 2 else "no") for i in range(20)]
    frame = pd.DataFrame(rows, columns=["judge", "item", "vote"])
    votes = VoteMatrix.from_frame(frame, dataset="d")
    assert [str(scale) for scale in votes.scales] == ["1-5", "binary"]
    assert votes.answers[:2].tolist() == [[0.0, 0.0], [0.25, 1.0]]
    frame.loc[25, "vote"] = "maybe"
    assert "Got 'maybe' at row 25" in fault(partial(VoteMatrix.from_frame, dataset="d"), frame)
    (tmp_path / "wide.csv").write_text("dataset,item_id,a\nd,1,5\nd,2,1\nd,3,4\nd,4,2\n")
    (tmp_path / "long.csv").write_text("dataset,item_id,judge,vote\nd,1,b,1\nd,2,b,0\nd,3,b,1\nd,4,b,1\n")
    votes = read_votes([tmp_path / "wide.csv", tmp_path / "long.csv"])
    assert [str(one) for one in votes.scales] == ["1-5", "binary"]
    assert votes.votes.tolist() == [[1, 1], [0, 0], [1, 1], [0, 1]]


def test_scores_below_zero_are_kept_in_the_model(tmp_path):
    """Log-likelihoods, none of which is above 0: the scale of the fit is read again from the file."""
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 60)
    votes = VoteMatrix(labels[:, None] ^ (rng.random((120, 1)) < 0.2), range(120), ["a"], ["d"] * 120, labels)
    both = votes.with_answers((-3 + labels + rng.normal(0, 0.7, 120)).clip(-8, -0.2)[:, None], ["likelihood"])
    model = deep.fit(both)
    model.save(tmp_path / "model.json")
    assert deep.load(tmp_path / "model.json").score(both) == pytest.approx(model.score(both), abs=1e-12)
    rest = model.explain({"a": 1})
    assert np.isnan(rest[1].vote), "a judge that is not named has no answer, though -1 is on its scale"
    assert model.explain({"a": 1, "likelihood": -1})[1].vote == -1


def test_a_judge_without_any_score_keeps_its_votes():
    """As a function that only votes, whose column of soft votes is empty; one that is new has no answer."""
    votes = VoteMatrix([[1], [0], [1]], range(3), ["a"], ["d"] * 3, [1, 0, 1])
    both = votes.with_answers(np.array([[np.nan, np.nan, 0.2]] * 3), ["a", "b", "c"])
    assert both.votes.tolist() == [[1, -1, 0], [0, -1, 0], [1, -1, 0]]
    assert both.scales[0].binary
