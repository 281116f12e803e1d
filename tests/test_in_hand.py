"""Frames, tables of Arrow and paths go in, frames come out, and a notebook shows little."""

import copy
import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import deep
from deep.exceptions import InputError
from deep.model import score_file
from tests.model.fitted import small_votes

HAND = ["matrix", "pandas", "polars", "arrow", "path", "paths"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder with labeled votes of three datasets, and unlabeled ones of a fourth."""
    folder, votes = tmp_path_factory.mktemp("hand"), small_votes(("a", "b", "c", "mine"))
    votes.rows(votes.datasets != "mine").to_frame().to_parquet(folder / "votes.parquet")
    votes.rows(votes.datasets == "mine").to_frame().to_parquet(folder / "mine.parquet")
    return folder


def in_hand(path, kind):
    """Return a table as people have it."""
    frame = pd.read_parquet(path)
    made = {
        "matrix": lambda: deep.read_votes(str(path)),
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pa.Table.from_pandas(frame),
        "path": lambda: path,
        "paths": lambda: [str(path)],
    }
    return made[kind]()


@pytest.fixture(scope="module")
def expected(here):
    """Return the model of a matrix of the votes, and a matrix of the fourth dataset's."""
    return deep.fit(deep.read_votes(str(here / "votes.parquet"))), deep.read_votes(str(here / "mine.parquet"))


@pytest.mark.parametrize("kind", HAND)
def test_fit_and_score_take_what_people_have(here, expected, kind):
    """They give the same as of a matrix of votes."""
    votes, mine = in_hand(here / "votes.parquet", kind), in_hand(here / "mine.parquet", kind)
    model, (of_matrix, plain) = deep.fit(votes), expected
    np.testing.assert_array_equal(model.score(mine), of_matrix.score(plain))
    np.testing.assert_array_equal(model.intervals(mine), of_matrix.intervals(plain))
    np.testing.assert_array_equal(model.predict_proba(mine), of_matrix.predict_proba(plain))
    assert model.estimate_prior(mine) == of_matrix.estimate_prior(plain)


def test_every_later_step_takes_what_people_have(here, expected, tmp_path):
    """Adapt, check, estimate and report."""
    mine, (model, plain) = in_hand(here / "mine.parquet", "polars"), expected
    few = np.where(np.arange(len(plain.labels)) < 30, plain.labels, -1)
    adapted = deep.adapt(model, mine, few, decide="accuracy")
    assert (adapted.target, adapted.correction.n_labels, adapted.rule.decide) == ("mine", 30, "accuracy")
    by_labels, by_votes = deep.check(model, mine, few), deep.check(model, mine)
    assert (by_labels["n_labels"], by_votes["n"]) == (30, len(few))
    assert repr(by_labels).startswith("mine: 30 labels")
    assert f"STALE: {len(few)} new rows" in repr(by_votes).upper().replace("NEW ROWS", "new rows")
    assert copy.deepcopy(by_votes) == by_votes == json.loads(json.dumps(by_votes))
    assert deep.estimate(model, mine, few).equals(deep.estimate(model, plain, few))
    page = deep.report(model, [str(here / "mine.parquet")])
    assert page._repr_html_().startswith("<iframe srcdoc=")
    assert repr(page).splitlines() == list(page.verdict.lines())
    shown = re.sub("<[^>]*>", "", page.html)  # its counts are strong
    assert page.verdict.suspect.replace(" %", "\u00a0%") in shown
    assert "</html>" in page.save(tmp_path / "report.html").read_text(encoding="utf-8")


def test_labels_are_what_people_have(here, tmp_path):
    """A frame or a file with item_id and label, beside an array."""
    model, mine = deep.fit(str(here / "votes.parquet")), deep.read_votes(str(here / "mine.parquet"))
    rows = pd.DataFrame({"dataset": "mine", "item_id": mine.item_ids[:30], "label": mine.labels[:30]})
    rows.to_csv(tmp_path / "labels.csv", index=False)
    bare = rows.drop(columns="dataset")
    few = np.where(np.arange(len(mine.labels)) < 30, mine.labels, -1)
    expected, own = deep.adapt(model, mine, few), deep.fit(mine.with_columns(labels=few)).score(mine)
    for labels in (bare, pl.from_pandas(bare), tmp_path / "labels.csv"):
        assert deep.adapt(model, mine, labels).correction.intercept == expected.correction.intercept
        np.testing.assert_array_equal(deep.fit(here / "mine.parquet", labels).score(mine), own)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_scores_has_what_the_file_has(here, tmp_path, library):
    """All columns of `deep score`, each dataset at its own share, and why."""
    votes = small_votes(("a", "b", "c", "mine"))
    model = deep.fit(votes.rows(votes.datasets != "mine"))
    votes.to_frame().to_parquet(tmp_path / "votes.parquet")
    from deep.model import ScoreOptions

    score_file(model, [str(tmp_path / "votes.parquet")], tmp_path / "scores.parquet", ScoreOptions())
    written = pd.read_parquet(tmp_path / "scores.parquet")
    result = model.score_frame(votes, library=library)
    assert type(result).__module__.startswith(library)
    result = result if library == "pandas" else result.to_pandas()
    assert list(result) == [*written, "why"]
    for name in written:
        left, right = result[name].to_numpy(object, na_value=None), written[name].to_numpy(object, na_value=None)
        if written[name].dtype == float:
            np.testing.assert_allclose(left.astype(float), right.astype(float), rtol=0, atol=1e-12)
        else:
            assert [*left] == [*right]


def test_why_names_the_votes_that_move_p_most():
    """With the log-odds that each adds; of a row without votes it says so."""
    votes = small_votes(("a", "b", "c"))
    model = deep.fit(votes)
    row = [1, 0, *[-1] * (len(model.voters) - 2)]
    result = model.score_frame([row, [-1] * len(row)])
    added = {one.voter: one.without for one in model.explain(row) if one.vote >= 0}
    first, second = sorted(added, key=lambda name: -abs(added[name]))
    votes_of = dict(zip(model.voter_names, row, strict=True))
    message = ", ".join(f"{name} {votes_of[name]} ({added[name]:+.1f})" for name in (first, second))
    assert result["why"].tolist() == [message, "no vote"]
    assert result["decision"].isna().tolist() == [False, True]


def test_deeps_own_frame_and_other_columns_are_read():
    """Int8 with empty cells, -1 as in arrays, booleans; columns that the model does not name need hold no votes."""
    votes = small_votes(("a", "b", "c"))
    model = deep.fit(votes)
    names = list(model.voter_names)
    frame = votes.to_frame()[names]
    expected = model.score(votes.votes)
    np.testing.assert_array_equal(model.score(frame), expected)
    np.testing.assert_array_equal(model.score(pd.DataFrame(votes.votes, columns=names).assign(note="x")), expected)
    yes = frame.astype("boolean")
    np.testing.assert_array_equal(model.score(yes), expected)
    with pytest.raises(InputError, match=r"`votes` must have the columns of the model's voters, .* in 'the frame'"):
        model.score(pd.DataFrame({"other": [1]}))


def test_a_frame_may_be_long():
    """A row an item and judge, by the names that files have, with a dataset or without."""
    wide = small_votes(("a", "b", "c")).to_frame()
    long = wide.melt(["dataset", "item_id", "label"], var_name="judge", value_name="vote").dropna(subset="vote")
    long = long.rename(columns={"item_id": "item"})
    model = deep.fit(wide)
    expected = model.score_frame(wide).set_index(["dataset", "item_id"])["p_consistent"]
    bare = long[long["dataset"] == "a"].drop(columns="dataset")
    for made in (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas):
        assert repr(deep.fit(made(long))) == repr(model)
        scored = model.score_frame(made(long)).set_index(["dataset", "item_id"])["p_consistent"]
        pd.testing.assert_series_equal(scored.sort_index(), expected.loc[scored.index].sort_index())
    assert deep.fit(pl.from_pandas(bare)).voter_names == model.voter_names


def test_texts_are_asked_about_as_people_have_them(tmp_path):
    """With the columns of a file of examples."""
    rows = {"source": ["It rained for 3 days."] * 2, "claim": ["It rained for 3 days.", "It rained for 4 days."]}
    frame = pd.DataFrame(rows | {"label": [1, 0], "example_id": ["a", "b"]})
    frame.to_csv(tmp_path / "claims.csv", index=False)
    for given in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame), tmp_path / "claims.csv"):
        votes = deep.ask(given, ["numbers"])
        assert (votes.votes.tolist(), votes.labels.tolist()) == ([[1], [0]], [1, 0])
        assert votes.item_ids.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: deep.fit(3), "`votes` must be a VoteMatrix, a data frame .* or a path. Got int."),
        (lambda: deep.fit([]), "`votes` must be a VoteMatrix, a data frame .* or a path. Got list."),
        (lambda: deep.ask(3, ["numbers"]), "`examples` must hold Examples, or be a data frame or a path. Got int."),
        (lambda: deep.ask(["a"], ["numbers"]), "`examples` must hold Examples, .* Got str."),
        (lambda: deep.ask(None, ["numbers"]), "`examples` must hold Examples, .* Got NoneType."),
        (lambda: deep.fit(small_votes(("a",))).score(None), "`votes` must be a VoteMatrix, .* Got NoneType."),
        (lambda: deep.check("model.json", "votes.csv"), r"`model` must be a Model. Got str. .*deep\.load\(path\)"),
        (lambda: deep.report("model.json", "votes.csv"), "`model` must be a Model. Got str"),
        (
            lambda: deep.ask(pd.DataFrame({"claim": ["a"]}), ["numbers"]),
            "`examples` .* 'source' .* Rename the column that holds it to 'source'",
        ),
        (
            lambda: deep.fit(pd.DataFrame({"strict": [1]})),
            "`frame` must have a column item_id.* Rename the column that holds it",
        ),
        (
            lambda: deep.check(deep.fit(small_votes(("a",))), small_votes(("b", "c"))),
            r"Got b, c\. Give the rows of one",
        ),
        (lambda: deep.adapt(deep.fit(small_votes(("a",))), [[1, 0, 1]]), "`votes` must be a VoteMatrix, a data frame"),
    ],
)
def test_the_wrong_type_is_one_line_that_says_what_fits(call, message):
    """Not an AttributeError from within."""
    with pytest.raises(InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_what_a_notebook_shows_is_short():
    """At most 12 lines of text, and a table of a few rows."""
    votes = small_votes(tuple(f"d{i}" for i in range(12)), n_voters=60)
    for shown in (votes, deep.fit(votes, ensembler="Average")):
        assert len(repr(shown).splitlines()) <= 12
        assert max(map(len, repr(shown).splitlines())) < 200
        html = shown._repr_html_()
        assert html.count("<tr>") <= 10
        assert "and 4 more" in html or "and 52 more" in html
    hostile = deep.VoteMatrix([[1]], ["a"], ["<b>"], ["d"], [1])
    assert "<b>" not in hostile._repr_html_()


def test_the_report_is_a_package_and_a_function():
    """Whichever is used first."""
    code = "import deep; a = deep.report; from deep.report import write_report; import deep.report as r; "
    code += "assert callable(a) and callable(deep.report) and r.write_report is write_report"
    subprocess.run([sys.executable, "-c", code], check=True)
    subprocess.run([sys.executable, "-c", "import deep.report, deep; assert callable(deep.report)"], check=True)


def test_predict_is_refused_and_earlier_names_warn(here):
    """`predict` was P at equal class weights, and people expect decisions; `report` was what the fit says of itself."""
    votes = deep.read_votes(str(here / "votes.parquet"))
    model = deep.fit(votes)
    with pytest.raises(InputError, match=r"score_frame\(votes\).*predict_proba") as caught:
        model.predict(votes)
    assert "\n" not in str(caught.value)
    with pytest.warns(FutureWarning, match="fit_report"):
        assert model.report == model.fit_report
    with pytest.warns(FutureWarning, match="item_ids"):
        assert votes.example_ids is votes.item_ids
    p = model.predict_proba(votes)
    np.testing.assert_array_equal(p[:, 1], model.score(votes))
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-15)
    with pytest.raises(InputError, match="prior"):
        model.predict_proba(votes, prior=2)
