"""Moments: counted in parts, merged in any order, they give the model of the whole; and row-wise scores by it."""

import json
import pickle
from collections import Counter
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.integrations.engines import (
    BatchScorer,
    Moments,
    adapt_by_moments,
    moments_from,
    moments_of_batch,
    moments_of_votes,
    moments_values,
    read_moments,
    save_moments,
)
from deep.records import VoteMatrix
from tests.model.file.models import MAKERS, model_of, new_rows

ANY_DATASET = [kind for kind in MAKERS if not kind.startswith(("adapted", "own"))]
TWO_KINDS = ("stack", "stack with scores")


def batch_of(votes: VoteMatrix, scores=None, model=None):
    """Return rows as an engine hands them over: nulls for no vote and no score."""
    columns = {"dataset": votes.datasets.tolist(), "item_id": list(votes.item_ids)}
    columns |= {
        name: pa.array(column, pa.int8(), mask=column < 0)
        for name, column in zip(votes.voter_names, votes.votes.T, strict=True)
    }
    if scores is not None:
        columns |= {n: pa.array(c, from_pandas=True) for n, c in zip(model.score_names, scores.T, strict=True)}
    return pa.record_batch(columns)


def whole_of(model, votes, scores, **matching):
    """Return the moments of rows, counted at once."""
    return moments_of_votes(model, model.select(beside(model, votes, scores)), datasets=votes.datasets)


def beside(model, votes, scores):
    """Return votes with the scores of a model's judges."""
    return model.beside(votes, scores)


@pytest.mark.parametrize("kind", ANY_DATASET)
def test_row_wise_scores_of_an_adapted_model_are_those_of_the_whole_target(kind):
    """To 1e-12, P and its bounds, for every kind of model that a file holds; from batches of any size."""
    model = model_of(kind)
    votes, scores = new_rows(model)
    moments = moments_of_batch(model, batch_of(votes, scores, model))
    for name in votes.dataset_names:
        rows = np.flatnonzero(votes.datasets == name)
        soft = None if scores is None else scores[rows]
        whole = model.scores_of(votes.rows(rows), scores=soft)
        adapted = adapt_by_moments(model, moments, name)
        score = pickle.loads(pickle.dumps(BatchScorer(adapted)))
        batch = batch_of(votes.rows(rows), soft, model)
        parts = [score(batch.slice(start, 7)) for start in range(0, len(rows), 7)]
        result = pa.Table.from_batches(parts)
        assert adapted.target == name
        assert vars(adapted.prior) == pytest.approx(vars(whole.prior), abs=1e-12)
        np.testing.assert_allclose(result["p_consistent"], whole.p_consistent, rtol=0, atol=1e-12)
        np.testing.assert_allclose([result["p_low"], result["p_high"]], whole.interval(), rtol=0, atol=1e-12)
        assert result["item_id"].to_pylist() == list(votes.rows(rows).item_ids)
        assert result["n_votes"].to_pylist() == (beside(model, votes, scores).votes[rows] >= 0).sum(axis=1).tolist()


@pytest.mark.parametrize("kind", TWO_KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_any_split_merged_in_any_order_is_the_whole(kind, data):
    """Bit for bit, empty parts among them: merging is associative and commutative, and has a neutral element."""
    model = model_of(kind)
    votes, scores = new_rows(model)
    n = len(votes.votes)
    part_of = np.array(data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)))
    parts = []
    for part in data.draw(st.permutations(range(5))):
        rows = np.flatnonzero(part_of == part)
        parts.append(whole_of(model, votes.rows(rows), None if scores is None else scores[rows]))
    whole, split = whole_of(model, votes, scores), data.draw(st.integers(0, 5))
    left = reduce(Moments.merge, parts[:split], Moments.empty(model))
    right = reduce(Moments.merge, reversed(parts[split:]), Moments.empty(model))
    assert moments_values(left.merge(right)) == moments_values(whole)
    assert right.merge(left) == Moments.empty(model).merge(*parts) == whole
    assert moments_from(json.loads(json.dumps(moments_values(whole)))) == whole


def test_rows_that_count_several_times():
    """As the same rows that often; so many that floats would lose them."""
    for kind in TWO_KINDS:
        model = model_of(kind)
        votes, scores = new_rows(model, datasets=("new",))
        selected, n = model.select(beside(model, votes, scores)), np.arange(len(votes.votes)) % 3 + 1
        counted = moments_of_votes(model, selected, datasets=votes.datasets, counts=n)
        rows = np.repeat(np.arange(len(n)), n)
        repeated = whole_of(model, votes.rows(rows), None if scores is None else scores[rows])
        assert counted == repeated
        huge = moments_of_votes(model, selected, datasets=votes.datasets, counts=n * 10**14)
        assert huge.datasets["new"].n == repeated.datasets["new"].n * 10**14
        assert huge.datasets["new"].p_sums == tuple(x * 10**14 for x in repeated.datasets["new"].p_sums)
        result = [adapt_by_moments(model, one) for one in (huge, repeated)]
        np.testing.assert_allclose(result[0].contexts, result[1].contexts, rtol=0, atol=1e-12)


def test_many_rows_are_counted_as_few_are():
    """More rows than there are patterns, of which each is a count; in any order of datasets, seen once or often."""
    model = model_of(TWO_KINDS[0])
    votes = np.random.default_rng(0).integers(-1, 2, (60_000, len(model.voters))).astype(np.int8)
    names = np.array(["b", "a", "b"], dtype=object)[np.arange(len(votes)) % 3]
    many = moments_of_votes(model, votes, datasets=names)
    assert len(votes) // 3 >= 3 ** len(model.voters)
    for name, one in many.datasets.items():
        rows = ["".join("-01"[vote + 1] for vote in row) for row in votes[names == name].tolist()]
        assert one.cells == Counter(rows)
        assert list(one.cells) == sorted(one.cells)
    pieces = (moments_of_votes(model, votes[at : at + 7], datasets=names[at : at + 7]) for at in range(0, 700, 7))
    assert reduce(Moments.merge, pieces) == moments_of_votes(model, votes[:700], datasets=names[:700])


def test_moments_of_another_model_are_refused(tmp_path):
    """Cells fit any model of the same voters; sums fit the one that made them."""
    stack, chain, soft = model_of("stack"), model_of("chain"), model_of("stack with scores")
    votes, _ = new_rows(soft)
    mine = moments_of_votes(stack, votes.votes, datasets=votes.datasets)
    assert adapt_by_moments(chain, mine, "new").prior != adapt_by_moments(stack, mine, "new").prior
    for use in (lambda: adapt_by_moments(soft, mine, "new"), lambda: mine.merge(Moments.empty(soft))):
        with pytest.raises(InputError, match=r"`moments` must be of one model\. Got .* beside"):
            use()
    with pytest.raises(InputError, match=r"`dataset` must be one that was counted: 'new', 'newer'\. Got None"):
        adapt_by_moments(stack, mine)
    with pytest.raises(InputError, match=r"`dataset` must be one that was counted: none\. Got 'x'"):
        adapt_by_moments(stack, Moments.empty(stack), "x")
    with pytest.raises(InputError, match=r"`model` must be one for any dataset\. Got one for 'new'"):
        adapt_by_moments(adapt_by_moments(stack, mine, "new"), mine, "new")
    with pytest.raises(InputError, match=r"`votes` must be places|`votes` must have 5 columns"):
        moments_of_votes(soft, votes.votes, datasets=votes.datasets)
    with pytest.raises(InputError, match=r"`votes` must have 3 columns"):
        moments_of_votes(stack, votes.votes[:, :2], datasets=votes.datasets)
    path = tmp_path / "m.json"
    save_moments(mine, path)
    assert read_moments(path) == mine


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda v: v.pop("datasets"), "datasets"),
        (lambda v: v["datasets"]["new"].update(n=39), "cells do not add up to n"),
        (lambda v: v["datasets"]["new"].update(n=True), "n is not 1 or more"),
        (lambda v: v["datasets"]["new"]["cells"].update({"11": 1}), "a cell is not a pattern"),
        (lambda v: v["datasets"]["new"]["cells"].update({"111": 0.5}), "a cell counts no rows"),
        (lambda v: v["datasets"]["new"].update(p_sums=["1"]), "p_sums are not one a part"),
        (lambda v: v["datasets"].update({"a\x1b": v["datasets"]["new"]}), "datasets"),
        (lambda v: v.update(model=3), "model is not a checksum"),
        (lambda v: v.update(model="3"), "parts and model go together"),
        (lambda v: v.update(voters=3), "not iterable"),
    ],
)
def test_a_document_that_was_tampered_with_is_refused(change, said):
    """With the reason, on one line."""
    model = model_of("stack")
    votes, _ = new_rows(model)
    values = moments_values(moments_of_votes(model, votes.votes, datasets=votes.datasets))
    change(values)
    with pytest.raises(InputError, match=f"(?s)^(?!.*\n).*{said}"):
        moments_from(values)


def test_sums_out_of_range_are_refused():
    """A mean P lies between 0 and 1."""
    model = model_of("stack with scores")
    votes, scores = new_rows(model)
    values = moments_values(whole_of(model, votes, scores))
    values["datasets"]["new"]["p_sums"][0] = "-1"
    with pytest.raises(InputError, match="p_sums are out of range"):
        moments_from(values)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "`moments` must be JSON"),
        ("[1]", "`moments` must be a file that `deep data moments` wrote"),
        ('{"format": "deep moments", "schema_version": 1}', "schema_version 2. Got 1"),
        ('{"format": "deep moments", "schema_version": 3}', "schema_version 2. Got 3"),
        ('{"format": "deep model"}', "`moments` must be a file that `deep data moments` wrote"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, text, said):
    """By name."""
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_moments(path)
    with pytest.raises(InputError, match=r"`moments` must be a readable file\. Got .*: No such file"):
        read_moments(tmp_path / "none.json")


def test_a_scorer_needs_a_dataset_and_its_columns():
    """Or is told to take rows as of any dataset; what is missing or wrong is named."""
    model = model_of("stack")
    votes, _ = new_rows(model, datasets=("new",))
    with pytest.raises(InputError, match="`model` must be adapted to the dataset of the rows"):
        BatchScorer(model)
    score = BatchScorer(model, streamed=True)
    batch = batch_of(votes)
    result = score(batch)
    assert result.schema == score.schema(batch.schema)
    np.testing.assert_allclose(result["p_consistent"], model.score(votes, streamed=True), rtol=0, atol=1e-12)
    table = pa.Table.from_batches([batch, batch])
    assert score(table)["p_consistent"].to_pylist() == result["p_consistent"].to_pylist() * 2
    assert score(batch.slice(0, 0)).num_rows == 0
    with pytest.raises(InputError, match=r"must have a column for every voter .* Got none named .*`--allow-missing`"):
        score(batch.drop_columns(["judge-1"]))
    fewer = BatchScorer(model, streamed=True, allow_missing=True)(batch.drop_columns(["judge-1"]))
    assert fewer["n_votes"].to_pylist() == (votes.votes[:, [0, 2]] >= 0).sum(axis=1).tolist()
    with pytest.raises(InputError, match=r"`votes` must be 0, 1 or empty\. Got 7 at the batch, column 'judge-0', row"):
        score(batch.set_column(2, "judge-0", pa.array([1, 7, *[0] * 38], pa.int64())))
    with pytest.raises(InputError, match="`batch` must not have a column named 'p_low'"):
        score(batch.append_column("p_low", pa.array([0.5] * 40)))
    with pytest.raises(InputError, match=r"`batch` must have one column named 'dataset'\. Got 0"):
        moments_of_batch(model, batch.drop_columns(["dataset"]))
    assert list(moments_of_batch(model, batch.drop_columns(["dataset"]), dataset="x").datasets) == ["x"]
