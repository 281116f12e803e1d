"""The model file: what is read is what was written, and nothing else is believed."""

import json
import pickle
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit

from deep.exceptions import InputError
from deep.model import fit, load
from deep.model.file._document import checksum
from tests.model.fitted import QUICK, small_votes


@pytest.fixture(scope="module")
def model():
    """Return a model of three voters."""
    details = {"judge-0": {"prompt": "strict", "prompt_hash": "ff", "model": "tiny"}}
    provenance = {"voters": details, "licences": {"a": "CC BY 4.0"}, "votes": ["votes.csv"]}
    return fit(small_votes(), provenance=provenance, **QUICK)


@pytest.fixture(scope="module")
def wide():
    """Return a model of more voters than a table takes."""
    return fit(small_votes(n_voters=11), **{**QUICK, "sizes": [11]})


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


@pytest.mark.parametrize("which", ["model", "wide"])
def test_what_is_read_is_what_was_written(which, request, tmp_path):
    """To the last bit, intervals too."""
    model = request.getfixturevalue(which)
    read = load(written(model, tmp_path))
    votes = small_votes(n_voters=len(model.voters), seed=5)
    assert np.array_equal(read.score(votes), model.score(votes))
    assert np.array_equal(read.intervals(votes), model.intervals(votes))
    assert np.array_equal(read.cells.counts, model.cells.counts)
    assert read.document() == model.document()
    assert (read.spec, read.transfer, read.voters) == (model.spec, model.transfer, model.voters)


@pytest.mark.parametrize("which", ["model", "wide"])
def test_a_corrected_model_is_read_as_it_was(which, request, tmp_path):
    """Scores and intervals are the corrected ones, with a table and without; no prior can be given on top."""
    plain = request.getfixturevalue(which)
    votes = small_votes(("new",), n_voters=len(plain.voters), n=60, seed=6)
    mine = plain.calibrated(votes, 1 - votes.labels)
    read = load(written(mine, tmp_path))
    p = mine.score(votes)
    assert np.array_equal(read.score(votes), p)
    assert np.array_equal(read.intervals(votes), mine.intervals(votes))
    np.testing.assert_allclose(p, mine.correction.apply(plain.score(votes)), rtol=0, atol=1e-12)
    assert abs(p - plain.score(votes)).max() > 0.05
    low, high = mine.intervals(votes).T
    assert ((low <= p) & (p <= high)).all()
    with pytest.raises(InputError, match="calibrated on labels"):
        read.score(votes, prior=0.3)


@pytest.mark.parametrize("which", ["model", "wide"])
def test_another_prior_moves_log_odds_once(which, request):
    """By its own log-odds, P and bounds alike, with a table and without."""
    model = request.getfixturevalue(which)
    votes = small_votes(n_voters=len(model.voters), n=20, seed=7)
    low, high = model.intervals(votes, prior=0.8).T
    for moved, plain in (
        (model.score(votes, prior=0.8), model.score(votes)),
        *zip((low, high), model.intervals(votes).T, strict=True),
    ):
        inside = (plain > 1e-3) & (plain < 1 - 1e-3)
        assert inside.any()
        np.testing.assert_allclose(logit(moved[inside]) - logit(plain[inside]), np.log(4), atol=1e-9)


def test_the_file_is_json_that_says_what_it_is(model, tmp_path):
    """Voters with their hashes, datasets with sizes, priors and licences, and a line for each plain entry."""
    text = written(model, tmp_path).read_text()
    content = json.loads(text)
    assert content["voters"][0]["details"]["prompt_hash"] == "ff"
    assert content["training_datasets"]["a"]["licence"] == "CC BY 4.0"
    assert len(content["table"]["p"]) == 27
    assert content["provenance"] == {"votes": ["votes.csv"]}
    assert content["calibrator"]["map"]["fitted"].keys() == {"slope_", "intercept_"}
    assert '\n "prior": 0.5,\n' in text


FREE_NAMES = ("contexts", "datasets", "details", "fitted", "params", "priors", "shifts", "versions")


def keys_of(value):
    """Return all names of the objects within a JSON value whose names are fixed."""
    found = set(value) if isinstance(value, dict) else set()
    for name, entry in value.items() if isinstance(value, dict) else enumerate(value):
        if name not in FREE_NAMES and isinstance(entry, dict):
            found |= keys_of(entry)
        elif isinstance(entry, list) and entry and isinstance(entry[0], dict):
            found |= keys_of(entry[0])
    return found


def test_every_key_is_described(model, wide):
    """In docs/model-file.md."""
    text = (Path(__file__).parents[3] / "docs" / "model-file.md").read_text(encoding="utf-8")
    for which in (model, wide):
        content = which.document()
        content["training_datasets"] = list(content["training_datasets"].values())
        missing = [name for name in sorted(keys_of(content)) if f"`{name}`" not in text]
        assert missing == []


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
        (b'{"format": "deep model", "schema_version": 2}', "schema_version 2, and this deep knows 1. Update deep"),
        (b'{"format": "deep model", "schema_version": 1}', "a checksum that does not fit"),
        (b'{"p": NaN}', "NaN is no number"),
        (b'{"format": "deep model", "schema_version": 1, "p": 1e999}', "JSON that no model has"),
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


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("table", ..., "no key 'table'"),
        ("voters", ..., "no key 'voters'"),
        ("versions", ..., "no key 'versions'"),
        ("prior", "x", "prior must be a float"),
        ("voters", [], "voters must be named once each"),
        ("voters", 3, "content that no model has"),
        ("recipe", "mine", "recipe must be known"),
        ("ensembler", {"name": "Nothing", "params": {}, "random_state": 0}, "ensembler must be known"),
        ("calibrator", {"name": ["platt"], "map": None}, "calibrator must be known"),
        ("weighting", "x", "weighting must be known"),
        ("table", {"p": [0.5], "uncalibrated": [0.5], "low": None, "high": None}, "table.p must have 27 entries"),
        ("table", {"p": [2.0] * 27, "uncalibrated": [0.5] * 27, "low": None, "high": None}, "between 0 and 1"),
        ("table", {"p": [0.5] * 27, "uncalibrated": [0.5] * 27, "low": [0.1] * 27, "high": None}, "or neither"),
        ("table", {"p": None, "uncalibrated": None, "low": None, "high": None}, "must have p"),
        ("interval", {"level": 0.9}, "no key 'shifts'"),
    ],
)
def test_content_that_no_model_has_is_refused(model, key, value, message, tmp_path):
    """Even with a checksum that fits."""
    with pytest.raises(InputError, match=message):
        load(changed(model, tmp_path, **{key: value}))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("patterns", ["1"], "3 characters"),
        ("cell_pattern", [99], "out of range"),
        ("cell_count", [-1], "out of range"),
        ("cell_count", [0.5], "whole numbers"),
        ("cell_label", [[0]], "whole numbers"),
        ("groups", [{"dataset": 1, "fold": 0}], "text"),
        ("group_by", "x", "group_by must be known"),
        ("cell_pattern", [0], "arrays of one length"),
        ("cell_count", [True], "cell_count must be whole numbers"),
        ("groups", [{"dataset": "a\nb", "fold": 0}], r"`groups` must be printable .* U\+000A"),
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"p": ["0.5"] * 27}, "table.p must hold numbers"),
        ({"uncalibrated": [True] * 27}, "table.uncalibrated must hold numbers"),
        ({"low": [False] * 27}, "table.low must hold numbers"),
        ({"p": [0.5] * 26 + [None]}, "table.p must hold numbers"),
        ({"p": [1.0] * 27, "high": [1.0] * 27}, "table.p must not reach 0 or 1"),
        ({"uncalibrated": [0] * 27}, "table.uncalibrated must not reach 0 or 1"),
        ({"low": [0.9] * 27, "p": [0.5] * 27, "high": [0.1] * 27}, "must ascend"),
        ({"low": [0.6] * 27, "p": [0.5] * 27, "high": [0.7] * 27}, "must ascend"),
    ],
)
def test_tables_that_fit_never_writes_are_refused(model, changes, message, tmp_path):
    """Texts and booleans are no numbers, P is never 0 or 1, and lies between its bounds."""
    table = model.document()["table"] | changes
    with pytest.raises(InputError, match=message):
        load(changed(model, tmp_path, table=table))


@pytest.mark.parametrize(
    ("key", "name", "value"),
    [("interval", "level", "0.9"), ("interval", "spread", True), ("ensembler", "random_state", "0")],
)
def test_texts_and_booleans_are_no_numbers(model, key, name, value, tmp_path):
    """The error has the key's name."""
    with pytest.raises(InputError, match=f"{key}.{name} must"):
        load(changed(model, tmp_path, **{key: model.document()[key] | {name: value}}))


def test_bounds_never_reach_0_or_1(model, tmp_path):
    """Also where an earlier version rounded them so, or the prior is next to 0 or 1."""
    table = model.document()["table"] | {"low": [0] * 27, "high": [1.0] * 27}
    old = load(changed(model, tmp_path, table=table))
    bounds = old.intervals([[1, 1, 1]])
    assert ((bounds > 0) & (bounds < 1)).all()
    for prior in (1e-300, 1 - 1e-16):
        p = old.score([[1, 1, 1], [0, 0, 0]], prior=prior)
        assert ((p > 0) & (p < 1)).all()


def test_a_voter_with_a_line_break_is_refused(model, tmp_path):
    """Its name would be executed where it ends the comment of an SQL script."""
    first, *others = model.document()["voters"]
    voters = [first | {"name": "a\n; DROP TABLE votes; --"}, *others]
    with pytest.raises(InputError, match=r"`voters` must be printable text on one line. Got the control character"):
        load(changed(model, tmp_path, voters=voters))


def test_a_chain_that_is_fitted_again_must_give_its_probabilities(wide, tmp_path):
    """Else the libraries whose versions differ are named."""
    content = wide.document()
    cells = {**content["training_cells"], "p": [p * 0.99 for p in content["training_cells"]["p"]]}
    versions = {**content["versions"], "scikit-learn": "0.1"}
    with pytest.raises(InputError, match=r"differ by 0.0\d* when fitted again, with scikit-learn 0.1 \(here"):
        load(changed(wide, tmp_path, training_cells=cells, versions=versions))
    del cells["p"]
    with pytest.raises(InputError, match="no usable probabilities"):
        load(changed(wide, tmp_path, training_cells=cells))


@pytest.fixture(scope="module")
def file_and_content(model, tmp_path_factory):
    """Return a model's file, its bytes and its content."""
    path = written(model, tmp_path_factory.mktemp("fuzz"))
    return path, path.read_bytes(), model.document()


def loaded_or_refusal(path):
    """Return the content of the model in a file, or the sentence that refuses it."""
    try:
        return load(path).document()
    except InputError as error:
        return str(error)


@settings(max_examples=150)
@given(st.data())
def test_a_changed_byte_is_refused_or_harmless(file_and_content, data):
    """Harmless: the content is equal, for instance where a blank became a line's end."""
    path, raw, content = file_and_content
    position = data.draw(st.integers(0, len(raw) - 1))
    path.write_bytes(raw[:position] + bytes([data.draw(st.integers(0, 255))]) + raw[position + 1 :])
    found = loaded_or_refusal(path)
    assert found == content or (isinstance(found, str) and "\n" not in found)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DECISIVE = ("calibrator", "ensembler", "prior", "recipe", "training_cells", "voters", "weighting")


@settings(max_examples=50)
@given(ANY_JSON, st.sampled_from(DECISIVE))
def test_any_other_value_is_refused_in_one_line(model, tmp_path_factory, value, key):
    """Whatever JSON stands there."""
    found = loaded_or_refusal(changed(model, tmp_path_factory.mktemp("any"), **{key: value}))
    assert isinstance(found, str)
    assert "\n" not in found
