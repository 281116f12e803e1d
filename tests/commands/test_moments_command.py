"""`deep data moments` and `deep adapt --moments`: two passes over rows that lie in parts, in files or in a database."""

import errno
import json
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from tests.commands.model_case import fit_here, frame_of, refused, scored
from tests.deep_commands import adapt, fit, moments, score
from tests.model.file.models import soft_scores
from tests.model.fitted import small_votes


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder with a model, votes, and these in two parts."""
    folder = fit_here(tmp_path_factory.mktemp("moments"))
    table = frame_of(small_votes(("new", "newer"), n_voters=5, seed=3))
    table.to_parquet(folder / "new.parquet")
    for part in range(2):
        table[part::2].to_parquet(folder / f"part-{part}.parquet")
    return folder


def count(here, *words, out="moments.json"):
    """Return the file that `deep data moments` writes."""
    assert moments([str(here / "model.json"), *map(str, words), "--out", str(here / out)]) == 0
    return here / out


def test_parts_counted_apart_give_the_scores_of_the_whole(here, capsys):
    """Each part by itself, merged, adapted, scored row by row: to 1e-12 what scoring the whole gives."""
    parts = [count(here, "--votes", here / f"part-{part}.parquet", out=f"m{part}.json") for part in range(2)]
    merged = count(here, "--moments", *parts)
    message = capsys.readouterr().out
    assert message.endswith(f"new: 120 rows\nnewer: 120 rows\nmoments: {merged}\n")
    assert merged.read_text() == count(here, "--votes", here / "new.parquet", out="whole.json").read_text()
    whole = scored(here, "--votes", here / "new.parquet").set_index("item_id")
    model = here / "mine.json"
    words = [str(here / "model.json"), "--moments", str(merged), "--out", str(model), "--dataset"]
    for name in ("new", "newer"):
        assert adapt([*words, name]) == 0
        assert capsys.readouterr().out.endswith(f"120 items counted; model: {model}\n")
        for part in range(2):
            rows = pd.read_parquet(here / f"part-{part}.parquet").query("dataset == @name")
            rows.to_parquet(here / "rows.parquet")
            assert score([str(model), "--votes", str(here / "rows.parquet"), "--out", str(here / "s.parquet")]) == 0
            result = pd.read_parquet(here / "s.parquet").set_index("item_id")
            np.testing.assert_allclose(
                result["p_consistent"], whole.loc[result.index, "p_consistent"], rtol=0, atol=1e-12
            )


def test_sql_counts_what_files_do(here, capsys):
    """In DuckDB, from a table of votes with nulls, to Parquet and to CSV."""
    assert moments([str(here / "model.json"), "--to", "sql"]) == 0
    text = capsys.readouterr().out
    out = here / "count.sql"
    assert moments([str(here / "model.json"), "--to", "sql", "--out", str(out)]) == 0
    assert out.read_text() == text
    with duckdb.connect() as database:
        database.execute(f"CREATE VIEW votes AS SELECT * FROM '{here / 'new.parquet'}'")
        for ending in ("parquet", "csv"):
            database.execute(f"COPY ({text.rstrip().rstrip(';')}) TO '{here / f'cells.{ending}'}'")
    whole = count(here, "--votes", here / "new.parquet", out="whole.json").read_text()
    for ending in ("parquet", "csv"):
        assert count(here, "--cells", here / f"cells.{ending}", out="cells.json").read_text() == whole
    parts = ["--cells", here / "cells.csv", "--moments", here / "cells.json", "--votes", here / "new.parquet"]
    assert json.loads(count(here, *parts).read_text())["datasets"]["new"]["n"] == 3 * 120


def test_sql_is_written_whole_or_not_at_all(here, tmp_path, monkeypatch, capsys):
    """Where there is no room, what was there is left."""
    out = tmp_path / "moments.sql"
    out.write_text("before")
    write = Path.write_text

    def full(path, text, **options):
        write(path, text[:5], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert moments([str(here / "model.json"), "--to", "sql", "--out", str(out)]) == 2
    assert capsys.readouterr().err.startswith(f"error: `out` must be writable. Got {str(out)!r}: No ")
    assert out.read_text() == "before"


def test_models_with_scores_are_counted_from_files(tmp_path, capsys):
    """Sums of P by part; they belong to this model alone."""
    votes = small_votes()
    frame = frame_of(votes)
    frame.to_parquet(tmp_path / "votes.parquet")
    soft = pd.DataFrame(soft_scores(votes), columns=["odds", "margin"])
    frame[["dataset", "item_id"]].join(soft).to_parquet(tmp_path / "scores.parquet")
    given = ["--scores", tmp_path / "scores.parquet"]
    words = [tmp_path / "votes.parquet", *given, "--exclude", "d", "--out", tmp_path / "model.json", "--jobs", 1]
    assert fit(list(map(str, words))) == 0
    result = json.loads(count(tmp_path, "--votes", tmp_path / "votes.parquet", *given).read_text())
    assert (result["datasets"]["d"]["n"], result["datasets"]["d"]["cells"]) == (120, {})
    assert len(result["model"]) == 64
    whole = scored(tmp_path, "--votes", tmp_path / "votes.parquet", *given).query("dataset == 'd'")
    model = tmp_path / "mine.json"
    assert (
        adapt(
            [str(tmp_path / n) for n in ("model.json",)]
            + ["--moments", str(tmp_path / "moments.json")]
            + ["--dataset", "d", "--out", str(model)]
        )
        == 0
    )
    frame.query("dataset == 'd'").to_parquet(tmp_path / "d.parquet")
    words = [model, "--votes", tmp_path / "d.parquet", *given, "--out", tmp_path / "d-scores.parquet"]
    assert score(list(map(str, words))) == 0
    alone = pd.read_parquet(tmp_path / "d-scores.parquet")
    np.testing.assert_allclose(alone["p_consistent"], whole["p_consistent"], rtol=0, atol=1e-12)
    capsys.readouterr()
    assert "`model` must be one of votes alone to be counted in SQL. Got one with soft scores, 'odds'" in refused(
        capsys, moments, tmp_path / "model.json", "--to", "sql"
    )
    assert "`cells` must not be given with a model of soft scores" in refused(
        capsys, moments, tmp_path / "model.json", "--cells", "x.csv", "--out", tmp_path / "m.json"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "`to`, or `votes`, `cells` or `moments`, must be given. Got none."),
        (["--to", "sql", "--votes", "v.csv"], "must be given. Got both."),
        (["--votes", "v.csv"], "`out` must be given"),
        (["--cells", "new.parquet", "--out", "m.json"], "`cells` must have a column named 'n'. Got none in"),
        (["--cells", "half.csv", "--out", "m.json"], "`cells` must have counts that are whole and above 0. Got '1.5'"),
        (["--to", "sql", "--table", "a\x1b"], "`table` must"),
        (["--moments", "model.json", "--out", "m.json"], "`moments` must be a file that `deep data moments` wrote"),
    ],
)
def test_refusals(here, capsys, monkeypatch, words, said):
    """On one line each."""
    monkeypatch.chdir(here)
    counted = pd.read_parquet("new.parquet").drop(columns=["item_id", "label"]).head(1).assign(n=1.5)
    counted.to_csv("half.csv", index=False)
    assert said in refused(capsys, moments, "model.json", *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "`votes` or `moments` must be given. Got none."),
        (["--votes", "v.csv", "--moments", "m.json"], "`votes` or `moments` must be given. Got both."),
        (["--moments", "m.json", "--labels", "l.csv"], "`labels` must be given with `votes`."),
    ],
)
def test_refusals_of_adapt(here, capsys, words, said):
    """Of combinations that make no sense."""
    assert said in refused(capsys, adapt, here / "model.json", *words, "--out", here / "a.json")


def test_files_of_moments_that_others_spoilt(here, capsys):
    """Changed, cut off, of another model, or given twice: one line each; a copy of one is told."""
    part = count(here, "--votes", here / "part-0.parquet", out="part.json")
    text, spoilt, words = part.read_text(), here / "spoilt.json", [here / "model.json", "--out", here / "m.json"]
    values = json.loads(text)
    cells = values["datasets"]["new"]["cells"]
    capsys.readouterr()
    first, second = list(cells)[:2]
    cells[first], cells[second] = cells[first] + 1, cells[second] - 1  # the sum is right
    for content, message in (
        (json.dumps(values), "`moments` must not have been changed. Got"),
        (text[: len(text) // 2], "`moments` must be JSON. Got"),
        (text.replace(json.dumps(values["voters"][0]), '"other"'), "whose checksum differs. Count again."),
    ):
        spoilt.write_text(content)
        assert message in refused(capsys, moments, *words, "--moments", spoilt)
        assert message in refused(capsys, adapt, here / "model.json", "--moments", spoilt, "--out", here / "a.json")
    values = json.loads(text)
    del values["checksum"]  # as an older deep wrote it
    spoilt.write_text(json.dumps(values | {"voters": ["other", *values["voters"][1:]]}))
    assert "`moments` must be of one model" in refused(capsys, moments, *words, "--moments", part, spoilt)
    assert "whose rows would count twice" in refused(capsys, moments, *words, "--moments", part, here / "." / part.name)
    spoilt.write_text(json.dumps(values))
    count(here, "--moments", part, spoilt)
    assert f"{spoilt} holds the same counts as {part}: if the rows are" in capsys.readouterr().out
