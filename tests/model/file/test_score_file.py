"""Tables scored in two passes, a piece at a time, against `Model.score` on all rows at once."""

import numpy as np
import pandas as pd
import pytest

from deep.datasets import _tables, join_scores, read_votes
from deep.exceptions import InputError
from deep.model import ScoreOptions, _files, score_file
from tests.model.file.models import MAKERS, model_of, new_rows

PLAIN = ScoreOptions()


def tables(votes, soft, folder, suffix, score_names=()):
    """Write votes, their rows mixed, and soft scores beside them; return the paths of both."""
    order = np.random.default_rng(0).permutation(len(votes.labels))
    keys = {"dataset": votes.datasets[order], "item_id": votes.item_ids[order], "label": votes.labels[order]}
    frame = pd.DataFrame(keys).assign(label=lambda f: f["label"].astype("Int8"))
    for position, name in enumerate(votes.voter_names):
        frame[name] = pd.array(
            np.where(votes.votes[order, position] == -1, np.nan, votes.votes[order, position]), "Int8"
        )
    paths = [folder / f"votes{suffix}"]
    frames = [frame]
    if soft is not None:
        scores = pd.DataFrame(keys | {name: soft[order, j] for j, name in enumerate(score_names)})
        frames.append(scores.iloc[::-1])
        paths.append(folder / f"scores{suffix}")
    for path, one in zip(paths, frames, strict=True):
        one.to_csv(path, index=False) if suffix == ".csv" else one.to_parquet(path, index=False)
    return [str(path) for path in paths]


def scored(path):
    """Return the written scores by dataset and item."""
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame.set_index(["dataset", "item_id"])


@pytest.fixture
def in_small_pieces(monkeypatch):
    """Read 7 rows of a table at a time."""
    read = _files.iter_votes
    monkeypatch.setattr(_files, "iter_votes", lambda *args, **given: read(*args, size=7, **given))


def expected(model, votes, soft, **options):
    """Return the scores of all rows at once, in the order of the votes."""
    result = {"p_consistent": model.score(votes, scores=soft, **options)}
    result["p_low"], result["p_high"] = model.intervals(votes, scores=soft, **options).T
    uniform = np.empty(len(votes.labels))
    for name in votes.dataset_names:
        of = votes.datasets == name
        uniform[of] = model.scores_of(votes.rows(of), scores=None if soft is None else soft[of]).p_uniform
    return pd.DataFrame(
        result | {"p_uniform": uniform, "n_votes": (model.beside(votes, soft).votes != -1).sum(axis=1)}
    ).set_index(pd.MultiIndex.from_arrays([votes.datasets, votes.item_ids], names=["dataset", "item_id"]))


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_two_passes_say_what_one_does(kind, suffix, tmp_path):
    """For every kind of model, each dataset at its own prior, whatever pieces its rows lie in."""
    model = model_of(kind)
    votes, soft = new_rows(model)
    paths = tables(votes, soft, tmp_path, suffix, model.score_names)
    out = tmp_path / f"out{suffix}"
    result = score_file(model, paths[:1], out, PLAIN, paths[1:])
    assert result.n == len(votes.labels)
    rows, want = scored(out), expected(model, votes, soft)
    for name in want:
        np.testing.assert_allclose(rows[name].loc[want.index].to_numpy(float), want[name], rtol=0, atol=1e-12)
    assert (rows["label"].loc[want.index].to_numpy() == votes.labels).all()
    assert list(result.priors) == sorted(result.priors, key=list(rows.index.get_level_values(0)).index)
    for name, prior in result.priors.items():
        of = votes.datasets == name
        told = model.estimate_prior(votes.rows(of), scores=None if soft is None else soft[of])
        assert (prior.estimate, prior.low, prior.high) == pytest.approx((told.estimate, told.low, told.high), abs=1e-12)
        elsewhere = f"The model was adapted to {model.target}: P uses the prior and context of that dataset."
        assert prior.warning == (told.warning if model.target is None else elsewhere)


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize("kind", ["chain", "stack", "stack with scores", "average of two"])
def test_a_given_prior_is_that_of_all_datasets(kind, tmp_path):
    """And is what the file was scored at."""
    model = model_of(kind)
    votes, soft = new_rows(model)
    paths = tables(votes, soft, tmp_path, ".parquet", model.score_names)
    out = tmp_path / "out.parquet"
    result = score_file(model, paths[:1], out, ScoreOptions(prior=0.3), paths[1:])
    assert {prior.estimate for prior in result.priors.values()} == {0.3}
    rows = scored(out)
    want = expected(model, votes, soft, prior=0.3)
    np.testing.assert_allclose(rows["p_consistent"].loc[want.index], want["p_consistent"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_of_datasets_stand_on_one_line(suffix, tmp_path):
    """Those of a table that is read in pieces too."""
    model = model_of("stack")
    (path,) = tables(new_rows(model)[0], None, tmp_path, suffix)
    frame = (pd.read_csv(path) if suffix == ".csv" else pd.read_parquet(path)).assign(dataset="bad\x1b[31m")
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    with pytest.raises(InputError, match=r"`dataset` must be printable text on one line\. Got the control character"):
        score_file(model, [path], tmp_path / "out.csv", ScoreOptions())
    assert not (tmp_path / "out.csv").exists()


def test_missing_and_unlike_voters(tmp_path):
    """A voter without a column counts as no vote where that is allowed, and is refused where it is not."""
    model = model_of("stack")
    votes, _ = new_rows(model)
    (path,) = tables(votes, None, tmp_path, ".csv")
    frame = pd.read_csv(path)
    frame.drop(columns="judge-1").assign(other="text").to_csv(path, index=False)
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match="Got none named 'judge-1'"):
        score_file(model, [path], out, PLAIN)
    assert not out.exists()
    score_file(model, [path], out, ScoreOptions(allow_missing=True))
    blank = votes.votes.copy()
    blank[:, 1] = -1
    some = read_votes([path], ignore=["other"])
    want = model.score(some, allow_missing=True)
    keys = pd.MultiIndex.from_arrays([some.datasets, some.item_ids])
    np.testing.assert_allclose(scored(out)["p_consistent"].loc[keys], want, rtol=0, atol=1e-12)


def test_scores_are_given_where_the_fit_had_them(tmp_path):
    """No more and no fewer; all of their columns."""
    model, plain = model_of("stack with scores"), model_of("stack")
    votes, soft = new_rows(model)
    paths = tables(votes, soft, tmp_path, ".csv", model.score_names)
    out = tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"^`scores` must have the columns odds, margin, .*none named 'odds'"):
        score_file(model, paths[:1], out, PLAIN)
    with pytest.raises(InputError, match=r"^`scores` must not be given with a model of votes\. Got '.*scores.csv'"):
        score_file(plain, paths[:1], out, PLAIN, paths[1:])
    pd.read_csv(paths[1]).drop(columns="margin").to_csv(paths[1], index=False)
    with pytest.raises(InputError, match=r"^`scores` must have the columns odds, .*none named 'margin'"):
        score_file(model, paths[:1], out, PLAIN, paths[1:])
    assert not out.exists()


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_without_rows_is_refused(suffix, tmp_path):
    """And nothing is written."""
    model = model_of("stack")
    nothing = new_rows(model)[0]
    (path,) = tables(nothing.rows(np.zeros(len(nothing.labels), dtype=bool)), None, tmp_path, suffix)
    out = tmp_path / f"out{suffix}"
    with pytest.raises(InputError, match=r"^`paths` must name files with at least one row"):
        score_file(model, [path], out, PLAIN)
    assert not out.exists()


def in_layout(layout, paths):
    """Lay tables of votes and of scores out in one file, in two of one order, or in two that have to be joined."""
    votes, scores = (pd.read_parquet(path) for path in paths)
    if layout == "one file":
        scores.drop(columns="label").merge(votes, on=["dataset", "item_id"]).to_parquet(paths[0], index=False)
        return [paths[0], paths[0]]
    if layout != "two orders":
        scores = votes[["dataset", "item_id"]].merge(scores, on=["dataset", "item_id"], validate="one_to_one")
    if layout == "three files of one order":
        third = paths[1].replace("scores.parquet", "margin.parquet")
        scores.drop(columns="odds").to_parquet(third, index=False)
        scores.drop(columns=["margin", "label"]).to_parquet(paths[1], index=False)
        return [*paths, third]
    scores.to_parquet(paths[1], index=False)
    return paths


@pytest.mark.usefixtures("in_small_pieces")
@pytest.mark.parametrize("layout", ["one file", "two of one order", "three files of one order", "two orders"])
def test_scores_beside_votes_are_read_in_pieces(layout, tmp_path, monkeypatch):
    """Where files have the same items in the same order, nothing is joined in memory; P is the same either way."""
    model = model_of("stack with scores")
    votes, soft = new_rows(model)
    paths = in_layout(layout, tables(votes, soft, tmp_path, ".parquet", model.score_names))
    joined = []
    monkeypatch.setattr(_tables, "join_scores", lambda *args: joined.append(1) or join_scores(*args))
    out = tmp_path / "out.parquet"
    score_file(model, paths[:1], out, PLAIN, paths[1:])
    assert bool(joined) == (layout == "two orders")
    rows, want = scored(out), expected(model, votes, soft)
    for name in want:
        np.testing.assert_allclose(rows[name].loc[want.index].to_numpy(float), want[name], rtol=0, atol=1e-12)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


@pytest.mark.usefixtures("in_small_pieces")
def test_faults_of_scores_in_pieces(tmp_path):
    """A label that contradicts that of the votes, and an item that comes twice, as where they are joined."""
    model = model_of("stack with scores")
    votes, soft = new_rows(model)
    paths = in_layout("two of one order", tables(votes, soft, tmp_path, ".parquet", model.score_names))
    scores, out = pd.read_parquet(paths[1]), tmp_path / "out.parquet"
    wrong = scores.assign(label=scores["label"].where(scores.index != 9, 1 - scores["label"]))
    wrong.to_parquet(paths[1], index=False)
    with pytest.raises(InputError, match=r"^`label` must be the same in votes and scores\. Got . in votes and .* item"):
        score_file(model, paths[:1], out, PLAIN, paths[1:])
    for path in paths:
        frame = pd.read_parquet(path).drop(columns="label")
        pd.concat([frame, frame.iloc[3:4]]).to_parquet(path, index=False)
    with pytest.raises(InputError, match="must be unique within a dataset"):
        score_file(model, paths[:1], out, PLAIN, paths[1:])
    assert not out.exists()
