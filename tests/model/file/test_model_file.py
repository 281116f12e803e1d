"""The model file: what is read is what was written, and nothing else is believed."""

import json
import pickle
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logit

from deep.exceptions import InputError
from deep.model import _document, checksum, fit, load
from tests.model.file.models import MAKERS, model_of, new_rows
from tests.model.fitted import QUICK, small_votes, table_of


@pytest.fixture(scope="module")
def model():
    """Return a model of three voters."""
    details = {"judge-0": {"prompt": "strict", "prompt_hash": "ff", "model": "tiny"}}
    provenance = {"voters": details, "licences": {"a": "CC BY 4.0"}, "votes": ["votes.csv"]}
    return fit(small_votes(), provenance=provenance, **QUICK)


def written(model, folder):
    """Return the path of a model's file."""
    path = folder / "model.json"
    model.save(path)
    return path


def changed(model, folder, **values):
    """Return the path of a file with some keys changed and a checksum that fits."""
    content = {**model.document(), **values}
    content = {name: value for name, value in content.items() if value is not ...}
    content["checksum"] = checksum(content)
    path = folder / "model.json"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_read_is_what_was_written(kind, tmp_path):
    """To the last bit: P and intervals of whole datasets and of single rows, the prior, and all that is known."""
    model = model_of(kind)
    read = load(written(model, tmp_path))
    votes, soft = new_rows(model)
    for options in ({}, {"streamed": True}) if model.correction else ({}, {"streamed": True}, {"prior": 0.3}):
        assert np.array_equal(read.score(votes, scores=soft, **options), model.score(votes, scores=soft, **options))
        bounds = (one.intervals(votes, scores=soft, **options) for one in (read, model))
        assert np.array_equal(*bounds)
    one = votes.rows(votes.datasets == "new")
    of_one = None if soft is None else soft[votes.datasets == "new"]
    assert read.estimate_prior(one, scores=of_one) == model.estimate_prior(one, scores=of_one)
    assert read.document() == model.document()
    assert (read.voters, read.method, read.prior) == (model.voters, model.method, model.prior)
    assert np.array_equal(read.cells.counts, model.cells.counts)
    assert read.has_table == model.has_table == (len(model.voters) <= 10 and not model.score_names)
    assert not model.has_table or np.array_equal(table_of(read), table_of(model))
    assert load(written(read, tmp_path)).document() == model.document()


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if "adapted" not in kind and kind != "own labels"])
def test_every_model_can_be_adapted_and_read_again(kind, tmp_path):
    """With a few labels of the dataset and without; a corrected one takes no prior on top."""
    plain = model_of(kind)
    votes, soft = new_rows(plain, datasets=("new",))
    labels = np.where(np.arange(40) < 25, 1 - votes.labels, -1)
    for given in (None, np.full(40, -1), labels):
        mine = plain.adapted(votes, given, scores=soft, target="new")
        read = load(written(mine, tmp_path))
        p = mine.score(votes, scores=soft)
        assert np.array_equal(read.score(votes, scores=soft), p)
        assert read.target == "new"
        assert (read.correction is None) == (given is not labels)
        low, high = mine.intervals(votes, scores=soft).T
        assert ((low <= p) & (p <= high)).all()
        if given is labels:
            with pytest.raises(InputError, match="corrected by labels of its target"):
                read.score(votes, scores=soft, prior=0.3)
            assert abs(p - plain.score(votes, scores=soft)).max() > 0.05
        else:
            np.testing.assert_allclose(p, plain.score(votes, scores=soft), rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["chain", "chain of more voters than a table has", "stack", "average of two"])
def test_another_prior_moves_log_odds_once(kind):
    """Until the mean P is the prior, P and bounds alike, with a table and without."""
    model = model_of(kind)
    votes, _ = new_rows(model)
    half, moved = model.score(votes, prior=0.5), model.score(votes, prior=0.8)
    inside = (half > 1e-3) & (moved < 1 - 1e-3)
    assert inside.any()
    shifts = (logit(moved) - logit(half))[inside]
    for name in votes.dataset_names:
        of = votes.datasets == name
        assert np.ptp(shifts[of[inside]]) < 1e-6
        assert (half[of].mean(), moved[of].mean()) == pytest.approx((0.5, 0.8), abs=0.01)
    low, high = model.intervals(votes, prior=0.8).T
    assert ((low <= moved) & (moved <= high)).all()


def test_a_model_of_one_dataset_is_not_adapted_to_another():
    """Neither one of own labels nor one that was adapted."""
    votes, _ = new_rows(model_of("own labels"), datasets=("new",))
    for kind in ("own labels", "adapted with labels"):
        with pytest.raises(InputError, match=r"`model` must be one for any dataset\. Got one for '[ac]'"):
            model_of(kind).adapted(votes, votes.labels)


def test_the_file_is_json_that_says_what_it_is(model, tmp_path):
    """Voters with their hashes, datasets with sizes, priors and licences, and a line for each plain entry."""
    text = written(model, tmp_path).read_text()
    content = json.loads(text)
    assert content["voters"][0]["details"]["prompt_hash"] == "ff"
    assert content["training_datasets"]["a"]["licence"] == "CC BY 4.0"
    assert content["provenance"].keys() == {"training_rows", "votes"}
    assert content["provenance"]["votes"] == ["votes.csv"]
    assert content["provenance"]["training_rows"].keys() == content["training_datasets"].keys()
    assert content["chosen"]["calibrator_map"]["fitted"].keys() == {"slope_", "intercept_"}
    assert content["schema_version"] == 6
    assert len(content["parts"][0]["scorer"]["table"]["p"]) == 27
    assert '\n "method": "chain",\n' in text


def test_a_file_that_cannot_be_written_leaves_the_old_one(model, tmp_path):
    """And nothing beside it."""
    with pytest.raises(InputError, match="must be a file in an existing folder"):
        model.save(tmp_path / "none" / "model.json")
    with pytest.raises(InputError, match="must be a file in an existing folder"):
        model.save(tmp_path)
    assert list(tmp_path.iterdir()) == []


class Trap:
    """Says so when it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "nothing in it"),
        (b" \n", "nothing in it"),
        (pickle.dumps(Trap()), "a pickle in place of JSON"),
        (b"\x00\x01", "JSON that breaks off"),
        (b"PK\x03\x04\xff", "byte 0xff at 4, not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        ("é".encode("latin-1"), "byte 0xe9 at 0"),
        (b"[1, 2]", "a JSON list in place of an object"),
        (b"{}", "no 'deep model' in its key 'format'"),
        (b'{"format": "deep model"}', "schema_version None"),
        (b'{"format": "deep model", "schema_version": true}', "schema_version True"),
        (b'{"format": "deep model", "schema_version": 7}', "schema_version 7, and this deep knows 6. Update deep"),
        (b'{"format": "deep model", "schema_version": 3}', "schema_version 3, of an earlier deep. Fit again"),
        (b'{"format": "deep model", "schema_version": 0}', "schema_version 0"),
        (b'{"format": "deep model", "schema_version": "3"}', "schema_version '3'"),
        (b'{"format": "deep model", "schema_version": 4}', "a checksum that does not fit"),
        (b'{"p": NaN}', "NaN is no number"),
        (b'{"format": "deep model", "schema_version": 4, "p": 1e999}', "JSON that no model has"),
        (b'{"a": 1, "a": 2}', "a key comes twice"),
        (b"[" * 100_000, "JSON that"),
        (b"9" * 5000, "JSON that"),
    ],
)
def test_other_files_are_refused_in_one_line(raw, message, tmp_path):
    """With the reason."""
    path = tmp_path / "model.json"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder_are_refused(tmp_path):
    """As such."""
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.json")
    with pytest.raises(InputError, match="Got the folder"):
        load(tmp_path)


def test_a_truncated_file_is_refused(model, tmp_path):
    """Wherever it was cut."""
    path = written(model, tmp_path)
    raw = path.read_bytes()
    for share in np.linspace(0, 0.999, 25):
        path.write_bytes(raw[: int(share * len(raw))])
        with pytest.raises(InputError, match="`model` must be"):
            load(path)


def test_a_file_edited_by_hand_is_refused(model, tmp_path):
    """One digit is enough."""
    path = written(model, tmp_path)
    path.write_text(path.read_text().replace('"n": 120', '"n": 121', 1))
    with pytest.raises(InputError, match="changed after it was written"):
        load(path)


def test_a_chain_that_is_fitted_again_must_give_its_probabilities(tmp_path):
    """Else the libraries whose versions differ are named."""
    wide = model_of("chain of more voters than a table has")
    for change, message in (
        (lambda p: [0.99 * value for value in p], r"differ by 0.0\d* when fitted again, with scikit-learn 0.1 \(here"),
        (lambda p: None, "no usable probabilities"),
        (lambda p: p[:1], "no usable probabilities .*cells.p must have"),
        (lambda p: list(map(str, p)), "no usable probabilities .*cells.p must hold numbers"),
    ):
        content = wide.document()
        (part,) = content["parts"]
        cells = {**part["scorer"]["cells"], "p": change(part["scorer"]["cells"]["p"])}
        parts = [{**part, "scorer": {**part["scorer"], "cells": cells}}]
        versions = {**content["versions"], "scikit-learn": "0.1"}
        with pytest.raises(InputError, match=message):
            load(changed(wide, tmp_path, parts=parts, versions=versions))


def test_a_voter_with_a_line_break_is_refused(model, tmp_path):
    """Its name would be executed where it ends the comment of an SQL script."""
    first, *others = model.document()["voters"]
    voters = [first | {"name": "a\n; DROP TABLE votes; --"}, *others]
    with pytest.raises(
        InputError, match=r"`voters.name` must be printable text on one line. Got the control character"
    ):
        load(changed(model, tmp_path, voters=voters))


@pytest.mark.parametrize("kind", ["average of one", "average of two", "adapted without labels"])
def test_a_file_of_schema_4_decides_as_it_did(kind, tmp_path):
    """At even odds, with the same P; today's models of few datasets decide nearer to the mean P."""
    model = model_of(kind)
    assert model.context_weight == 0.75
    old = load(changed(model, tmp_path, schema_version=4, context_weight=..., answer_map=..., score_names=[]))
    rows = model.cells.patterns
    before, now = old.scores_of(rows), model.scores_of(rows)
    assert before.threshold == pytest.approx(1 / (1 + np.exp(-before.prior.threshold)), abs=1e-8)
    assert before.threshold != now.threshold
    assert np.array_equal(before.p_consistent, now.p_consistent)


def test_a_key_of_a_later_schema_has_its_default_in_earlier_files(model, tmp_path, monkeypatch):
    """A field of the table is written, read, required from its schema on, and its default before."""
    earlier = json.loads(written(model, tmp_path).read_text())
    (notes,) = (field for field in _document.FILE_FIELDS if field.key == "notes")
    version = _document.SCHEMA_VERSION + 1
    field = replace(notes, key="remarks", since=version, default=["none"])
    monkeypatch.setattr(_document, "FILE_FIELDS", (*_document.FILE_FIELDS, field))
    for module in ("_document", "_files"):
        monkeypatch.setattr(f"deep.model.{module}.SCHEMA_VERSION", version)
    (tmp_path / "model.json").write_text(json.dumps(earlier))
    old = load(tmp_path / "model.json")
    assert old.fit_report["remarks"] == ["none"]
    new = load(written(replace(old, fit_report={**old.fit_report, "remarks": ["said"]}), tmp_path))
    assert new.fit_report["remarks"] == ["said"]
    assert new.document()["schema_version"] == version
    with pytest.raises(InputError, match="no key 'remarks'"):
        load(changed(new, tmp_path, remarks=...))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("patterns", ["1"], "3 characters"),
        ("cell_pattern", [99], "out of range"),
        ("cell_count", [-1], "out of range"),
        ("cell_count", [0.5], "whole numbers"),
        ("cell_label", [[0]], "whole numbers"),
        ("groups", [{"dataset": 1}], "text"),
        ("cell_pattern", [0], "cell_group must have 1 entries"),
        ("cell_count", [True], "cell_count must be whole numbers"),
        ("groups", ["a\nb"], r"`groups` must be printable .* U\+000A"),
    ],
)
def test_cells_that_no_model_has_are_refused(model, key, value, message, tmp_path):
    """Even with a checksum that fits."""
    cells = {**model.document()["training_cells"], key: value}
    with pytest.raises(InputError, match=message):
        load(changed(model, tmp_path, training_cells=cells))


def test_unused_patterns_and_repeated_cells_are_refused(model, tmp_path):
    """`deep fit` writes the patterns that its rows have, and each cell once."""
    cells = model.document()["training_cells"]
    free = sorted({"".join(p) for p in product("-01", repeat=3)} - set(cells["patterns"]))
    for more, message in ((free, "must have rows in every pattern"), (cells["patterns"][:1], "come once each")):
        patterns = [*cells["patterns"], *more]
        if more:
            with pytest.raises(InputError, match=message):
                load(changed(model, tmp_path, training_cells={**cells, "patterns": patterns}))
    again = {name: [*cells[name], cells[name][0]] for name in cells if name.startswith("cell_")}
    with pytest.raises(InputError, match="cells must come once each"):
        load(changed(model, tmp_path, training_cells={**cells, **again}))


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb", "a\u202eb"])
def test_names_of_datasets_stand_on_one_line(model, name, tmp_path):
    """Those of the training datasets, and those beneath the scores of what was left out."""
    row = next(iter(model.document()["training_datasets"].values()))
    with pytest.raises(InputError, match=r"`training_datasets` must be printable text on one line\. Got the "):
        load(changed(model, tmp_path, training_datasets={name: row}))
    scores = {"datasets": {"a": {name: 1.0}}, "mean": {}}
    with pytest.raises(InputError, match=r"`left_out_scores` must be printable text on one line"):
        load(changed(model, tmp_path, left_out_scores=scores))


FREE_NAMES = ("datasets", "details", "fitted", "left_out", "log_loss", "params", "provenance", "training_datasets")
FREE_NAMES += ("versions", "weights")


def keys_of(value):
    """Return all names of the objects within a JSON value whose names are fixed."""
    result = set(value) if isinstance(value, dict) else set()
    for name, entry in value.items() if isinstance(value, dict) else enumerate(value):
        if name not in FREE_NAMES and isinstance(entry, dict):
            result |= keys_of(entry)
        elif isinstance(entry, list) and entry and isinstance(entry[0], dict):
            result |= set().union(*map(keys_of, entry))
    return result


@pytest.mark.parametrize("kind", MAKERS)
def test_every_key_is_described(kind):
    """In docs/model-file.md."""
    text = (Path(__file__).parents[3] / "docs" / "model-file.md").read_text(encoding="utf-8")
    missing = [name for name in sorted(keys_of(model_of(kind).document())) if f"`{name}`" not in text]
    assert missing == []
