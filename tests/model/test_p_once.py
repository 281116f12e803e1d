"""P of a row by every way that leads to it: the same to 1e-12, whatever a model scored before."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deep.datasets import simulate_votes
from deep.features import distinct_patterns
from deep.integrations.engines import BatchScorer
from deep.model import ScoreOptions, _files, fit, load, pattern_grid, score_file
from deep.model._blend import MAX_ROWS_FOR_JOINT_WALK
from deep.records import VoteMatrix
from tests.model.file.models import MAKERS, model_of, new_rows
from tests.model.fitted import table_of

COLUMNS = ["p_consistent", "p_low", "p_high", "decision", "sure", "threshold", "p_uniform", "p_uncalibrated", "n_votes"]
# The one kind of model that takes soft scores; a set made by fitting would fit all of them in every worker.
SOFT = {"stack with scores"}


def same(found, wanted):
    """Hold columns of scores against each other."""
    frames = [pd.DataFrame(one)[COLUMNS].astype(float).fillna({"decision": -1}) for one in (found, wanted)]
    np.testing.assert_allclose(*frames, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", sorted(set(MAKERS) - SOFT))
def test_rows_of_a_mean_dataset_by_every_way(kind):
    """Array, batch of an engine, and table of all patterns."""
    model = model_of(kind)
    assert not model.score_names
    votes = np.random.default_rng(0).integers(-1, 2, (200, len(model.voters)), dtype=np.int8)
    whole = model.scores_of(votes, streamed=True)
    rows = [model.scores_of(row[np.newaxis], streamed=True).records()[0] for row in votes]
    same(rows, whole.records())
    frame = pd.DataFrame(votes, columns=list(model.voter_names)).astype("Int8").replace(-1, pd.NA)
    arrow = pa.Table.from_pandas(frame)
    same(BatchScorer(model, streamed=True)(arrow).to_pandas(), whole.records())
    np.testing.assert_allclose(model.score(votes, streamed=True), whole.p_consistent, rtol=0, atol=1e-12)
    if model.has_table:
        codes = (votes.astype(int) + 1) @ 3 ** np.arange(votes.shape[1])[::-1]
        table = model.scores_at(model.contexts, evidence=model.every_pattern)
        same({name: values[codes] for name, values in table.columns().items()}, whole.records())
        np.testing.assert_allclose(
            table_of(model)[codes], model.scores_of(votes, streamed=True).p_uniform, rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("size", [30])
@pytest.mark.parametrize("kind", sorted(set(MAKERS) - SOFT))
def test_files_and_frames_give_the_same(kind, size, tmp_path, monkeypatch):
    """Whether a piece has more rows than there are patterns, fewer, or now these, now those."""
    model = model_of(kind)
    votes, _ = new_rows(model)
    frame = model.score_frame(votes)
    votes.to_frame().to_parquet(tmp_path / "votes.parquet")
    read = _files.iter_votes
    monkeypatch.setattr(_files, "iter_votes", lambda *args, **given: read(*args, size=size, **given))
    score_file(model, [str(tmp_path / "votes.parquet")], tmp_path / "scores.parquet", ScoreOptions())
    same(pd.read_parquet(tmp_path / "scores.parquet"), frame)


@pytest.mark.parametrize("kind", sorted(set(MAKERS) - SOFT))
def test_what_was_scored_before_changes_no_bit(kind, tmp_path):
    """The table of patterns may be there or not."""
    fresh, used = model_of(kind), model_of(kind)
    if fresh is used:
        fresh.save(tmp_path / "model.json")
        fresh, used = load(tmp_path / "model.json"), load(tmp_path / "model.json")
    if used.has_table:
        used.score(np.tile(pattern_grid(len(used.voters)), (2, 1)))
    votes, _ = new_rows(used)
    assert isinstance(votes, VoteMatrix)
    for rows in (range(1), range(20), range(len(votes.labels))):
        some = votes.rows(np.array(rows))
        assert np.array_equal(fresh.score(some), used.score(some))


def test_few_rows_are_scored_as_among_many():
    """By the trees of a stack, side by side or one after the other."""
    votes = simulate_votes(0)
    model = fit(votes)
    patterns = distinct_patterns(votes.votes)[0]
    assert len(patterns) > MAX_ROWS_FOR_JOINT_WALK
    whole = model.score(patterns, streamed=True)
    for at in range(0, len(patterns), 100):
        assert np.array_equal(model.score(patterns[at : at + 100], streamed=True), whole[at : at + 100])
