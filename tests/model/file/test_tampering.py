"""Model files that were tampered with, their checksum made right again: refused by key, or harmless."""

import copy
import json
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.model import checksum, load
from tests.model.file.models import model_of, new_rows


@cache
def document(kind):
    """Return the content of the file of one kind of model."""
    return json.loads(json.dumps(model_of(kind).document()))


def part(kind, name):
    """Return the dotted key of the part of a name."""
    position = [one["name"] for one in document(kind)["parts"]].index(name)
    return f"parts.{position}"


def changed(kind, changes, folder):
    """Return the path of a file with other values at some dotted keys; ... takes the key away."""
    content = copy.deepcopy(document(kind))
    for key, value in changes.items():
        *path, last = (int(name) if name.isdigit() else name for name in key.split("."))
        place = content
        for name in path:
            place = place[name]
        if value is ...:
            del place[last]
        else:
            place[last] = value
    content["checksum"] = checksum(content)
    path = folder / "model.json"
    path.write_text(json.dumps(content))
    return path


def refuse(kind, key, value, message, folder):
    """Assert that a change is refused in one line with a message."""
    with pytest.raises(InputError, match=message) as caught:
        load(changed(kind, {key: value}, folder))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("`model` must be a model file of deep. Got ")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parts", ..., "no key 'parts'"),
        ("parts", [], "parts must not be empty"),
        ("parts", 3, "'parts' is wrong"),
        ("parts", [3], "'parts' is wrong"),
        ("voters", ..., "no key 'voters'"),
        ("voters", [], "voters must be named once each"),
        ("voters", 3, "'voters' is wrong"),
        ("voters.1.name", "judge-0", "voters must be named once each"),
        ("voters.1.name", 7, "voters.name must be text"),
        ("voters.1.details", 7, "'voters' is wrong"),
        ("versions", ..., "no key 'versions'"),
        ("created", 3, "created must be a str"),
        ("notes", {}, "notes must be a list"),
        ("method", "mine", "method must be known, not 'mine'"),
        ("method", ["stack"], "method must be known"),
        ("method", "chain", "parts must fit the method"),
        ("target", 7, "target must be text"),
        ("target", "a\nb", r"`target` must be printable"),
        ("contexts", [0.0], "contexts must have 29 entries"),
        ("contexts", ["0"] * 29, "contexts must hold numbers"),
        ("contexts", [0.0] * 28 + [1e300], "contexts must lie within"),
        ("misfit", ..., "no key 'misfit'"),
        ("misfit.mean", [0.0], "misfit.mean must have 2 entries"),
        ("misfit.mean", [True, 1.0], "misfit.mean must hold numbers"),
        ("misfit.covariance", [[1.0, 0.0]], "covariance must be two by two"),
        ("misfit.covariance", [[1.0, 0.5], [0.0, 1.0]], "covariance must be symmetric"),
        ("misfit.covariance", [[-1.0, 0.0], [0.0, 1.0]], "no variance below 0"),
        ("misfit.covariance", [[1.0, 2.0], [2.0, 1.0]], "no variance below 0"),
        ("misfit.n_datasets", 2.5, "misfit.n_datasets must be whole numbers"),
        ("misfit.n_datasets", -1, "misfit.n_datasets is out of range"),
        ("misfit.cell_spread", -0.1, "misfit.cell_spread must be 0 or more"),
        ("misfit.worst", [1.0], "misfit.worst must have 2 entries"),
        ("misfit.cell_spread", ..., "no key 'cell_spread' in 'misfit'"),
        ("left_out", [], "'left_out' is wrong"),
        ("left_out.a.ones", [1.0], "left_out.ones must have"),
        ("left_out.a", {"log_odds": [0.0], "ones": [1.0], "zeros": [-1.0]}, "weights of 0 or more"),
        ("left_out.a", {"log_odds": [0.0], "ones": [1.0], "zeros": [0.0]}, "left_out must hold both labels"),
        ("left_out.a", {"log_odds": [], "ones": [], "zeros": []}, "left_out must hold both labels"),
        ("left_out.a.log_odds", "abc", "left_out.log_odds must hold numbers"),
        ("training_cells", -1, "'training_cells' is wrong"),
        ("prior.rule", "mine", "rule must be known"),
        ("prior.priors", [0.1, 0.2, 0.3, 1.5], "prior.priors must lie between 0 and 1"),
        ("prior.priors", [0.1, 0.2, 0.3], "prior.profiles must be one a prior"),
        ("prior.profiles", [[0.0] * 3] * 4, "prior.profiles must have 25 entries"),
        ("prior.profiles", [list(range(25, 0, -1))] * 4, "prior.profiles must not fall"),
        ("prior.profiles", 3, "'prior' is wrong"),
        ("prior", {"rule": "learned", "profiles": [], "priors": []}, "prior.profiles must be one a prior"),
        ("correction", {}, "no key 'prior' in 'correction'"),
    ],
)
def test_content_that_no_stack_has_is_refused(key, value, message, tmp_path):
    """With the name of the key."""
    refuse("stack", key, value, message, tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("scorer.kind", "mine", "kind must be known"),
        ("scorer.kind", ..., "no key 'kind' in 'parts'"),
        ("slope", "1", "parts.slope must hold numbers"),
        ("slope", True, "parts.slope must hold numbers"),
        ("intercept", None, "parts.intercept must hold numbers"),
        ("context", 1e13, "parts.context must lie within"),
        ("scorer.ones", [1.0, 2.0], "scorer.ones must have 3 entries"),
        ("scorer.zeros", [1.0, 2.0, "3"], "scorer.zeros must hold numbers"),
        ("scorer.intercept", [0.0], "scorer.intercept must hold numbers"),
    ],
)
def test_sums_of_votes_that_no_stack_has_are_refused(key, value, message, tmp_path):
    """In the part of the majority."""
    refuse("stack", f"{part('stack', 'majority')}.{key}", value, message, tmp_path)


def trees(**changes):
    """Return two trees of one split each, with changes."""
    plain = {
        "feature": [0, -1, -1, 2, -1, -1],
        "threshold": [0.5, 0, 0, 0.5, 0, 0],
        "left": [1, 1, 2, 4, 4, 5],
        "right": [2, 1, 2, 5, 4, 5],
        "p": [0, 0.2, 0.9, 0, 0.4, 0.6],
        "roots": [0, 3],
    }
    return plain | changes


def test_sound_trees_are_taken(tmp_path):
    """Those that the next test spoils."""
    key = f"{part('stack', 'forest-votes')}.scorer.trees"
    model = load(changed("stack", {key: trees()}, tmp_path))
    assert np.isfinite(model.score(new_rows(model)[0])).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [0, 1, 2, 4, 4, 5]}, "must not turn back"),
        ({"right": [2, 1, 2, 1, 4, 5]}, "must not turn back"),
        ({"left": [1, 0, 2, 4, 4, 5]}, "trees must end in their leaves"),
        ({"right": [2, 1, 3, 5, 4, 5]}, "trees must end in their leaves"),
        ({"left": [9, 1, 2, 4, 4, 5]}, "trees.left is out of range"),
        ({"left": [-1, 1, 2, 4, 4, 5]}, "trees.left is out of range"),
        ({"left": [1, 1, 2]}, "trees.left must have 6 entries"),
        ({"right": [2.0, 1, 2, 5, 4, 5]}, "trees.right must be whole numbers"),
        ({"feature": [3, -1, -1, 2, -1, -1]}, "trees.feature is out of range"),
        ({"feature": [-2, -1, -1, 2, -1, -1]}, "trees.feature is out of range"),
        ({"feature": [0.5, -1, -1, 2, -1, -1]}, "trees.feature must be whole numbers"),
        ({"feature": [True, -1, -1, 2, -1, -1]}, "trees.feature must be whole numbers"),
        ({"feature": []}, "trees"),
        ({"threshold": [0.5] * 5}, "trees.threshold must have 6 entries"),
        ({"threshold": ["0.5"] * 6}, "trees.threshold must hold numbers"),
        ({"p": [0, 0.2, 1.9, 0, 0.4, 0.6]}, "trees.p must lie between 0 and 1"),
        ({"p": [0, False, 0.9, 0, 0.4, 0.6]}, "trees.p must hold numbers"),
        ({"roots": []}, "trees.roots must begin with 0 and ascend"),
        ({"roots": [6]}, "trees.roots is out of range"),
        ({"roots": [1, 3]}, "trees.roots must begin with 0 and ascend"),
        ({"roots": [0, 0]}, "trees.roots must begin with 0 and ascend"),
        ({"left": [4, 1, 2, 4, 4, 5]}, "trees must keep to their own nodes"),
    ],
)
def test_trees_that_no_forest_has_are_refused(changes, message, tmp_path):
    """A walk through them would not end, or end outside."""
    refuse("stack", f"{part('stack', 'forest-votes')}.scorer.trees", trees(**changes), message, tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("scales", ["1-5"], "answer_map.scales must have 5 entries"),
        ("scales.0", "1-1", "`scale` must be one of"),
        ("scales", ["binary"] * 5, "answer_map must have a judge that does not vote"),
        ("knots", [], "answer_map.knots must have 5 entries"),
        ("knots.4.places", [1.0, 0.5], "knots must ascend"),
        ("knots.4", {"places": [], "shares": []}, "knots must ascend"),
        ("knots.4", {"places": [0.0, 1.0], "shares": [0.0, 1.5]}, "knots.shares must lie between 0 and 1"),
        ("knots.4", {"places": [0.0, 1.0], "shares": [1.0, 0.0]}, "knots must not fall"),
        ("log_odds.0", 3, "answer_map.log_odds must be known"),
        ("scale", [0.0, 1.0, 1.0, 1.0, 1.0], "answer_map.scale must be above 0"),
        ("centre", [0.0], "answer_map.centre must have 5 entries"),
    ],
)
def test_maps_of_answers_that_no_model_has_are_refused(key, value, message, tmp_path):
    """From the answers of five judges, two of whom give scores."""
    refuse("stack with scores", f"answer_map.{key}", value, message, tmp_path)


@pytest.mark.parametrize(
    ("kind", "key", "value", "message"),
    [
        ("votes", "prior.estimate", 0.0, "prior.low, estimate and high must ascend between 0 and 1"),
        ("votes", "prior.high", 1.0, "must ascend between 0 and 1"),
        ("votes", "prior.low", 0.99, "must ascend between 0 and 1"),
        ("votes", "prior.estimate", "0.5", "prior.estimate must hold numbers"),
        ("votes", "prior.warning", 5, "prior.warning must be text"),
        ("adapted with labels", "correction.prior.estimate", 1.0, "prior.low, estimate and high must ascend"),
        ("adapted with labels", "correction.prior.slope", 0.0, "prior.slope must be above 0"),
        ("adapted with labels", "correction.slope", 0.0, "correction.slope must be above 0"),
        ("adapted with labels", "correction.slope", True, "correction.slope must hold numbers"),
        ("adapted with labels", "correction.n_labels", 2.5, "correction.n_labels must be whole numbers"),
        ("adapted with labels", "correction.covariance", [[-1, 0], [0, 1]], "no variance below 0"),
        ("adapted with labels", "target", None, "correction must have a target"),
        ("chain", "parts.0.scorer.table.p", [0.5], "table.p must have 27 entries"),
        ("chain", "parts.0.scorer.table.p", ["0.5"] * 27, "table.p must hold numbers"),
        ("chain", "parts.0.scorer.table.uncalibrated", [True] * 27, "table.uncalibrated must hold numbers"),
        ("chain", "parts.0.scorer.table.p", [1.0] * 27, "table.p must not reach 0 or 1"),
        ("chain", "parts.0.scorer.recipe", "mine", "recipe must be known"),
        ("chain", "parts.0.scorer.ensembler.name", "Nothing", "ensembler.name must be known"),
        ("chain", "parts.0.scorer.ensembler.random_state", "0", "ensembler.random_state must be whole numbers"),
        ("chain", "parts.0.scorer.ensembler.params", 5, "'parts' is wrong"),
        ("chain", "parts.0.scorer.calibrator", ["platt"], "calibrator must be known"),
        ("chain", "parts.0.scorer.cells.weighting", "x", "weighting must be known"),
        ("chain", "parts.0.scorer.cells.group_by", "x", "group_by must be known"),
        ("chain", "parts.0.scorer.cells.folds", [0], "folds must be one a group"),
        ("chain", "method", "stack", "parts must fit the method"),
    ],
)
def test_content_that_no_other_model_has_is_refused(kind, key, value, message, tmp_path):
    """Priors, corrections and chains."""
    refuse(kind, key, value, message, tmp_path)


def leaves(value, path=()):
    """Yield the path to everything in a JSON value, the first and last three entries of long arrays."""
    entries = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    items = list(entries)
    for name, entry in items if len(items) < 9 else items[:3] + items[-3:]:
        yield (*path, name)
        yield from leaves(entry, (*path, name))


FUZZED = ("adapted with labels", "average of two", "chain", "own labels", "stack", "stack with scores", "votes")
OTHERS = st.sampled_from(
    [..., None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e-300, 1e12, -1e12, 1e300, 10**30, "0.5", "a", "", [], {}, [[]]]
)


def result_of(call):
    """Return what a call returns and None, or None and the line that refuses it."""
    try:
        return call(), None
    except InputError as error:
        return None, str(error)


@settings(max_examples=100)
@given(st.data(), st.sampled_from(FUZZED))
def test_any_changed_entry_gives_a_model_or_one_line(tmp_path_factory, data, kind):
    """Never another exception; a model that is taken gives probabilities, and intervals around them."""
    path = data.draw(st.sampled_from(list(leaves(document(kind)))))
    value = data.draw(OTHERS | st.floats(allow_nan=False, allow_infinity=False))
    file = changed(kind, {".".join(map(str, path)): value}, tmp_path_factory.mktemp("fuzz"))
    model, refused = result_of(lambda: load(file))
    if refused is None:
        votes, soft = new_rows(model)
        matching = {"scores": soft, "allow_mismatch": True, "allow_missing": True}
        p, refused = result_of(lambda: model.score(votes, **matching))
    if refused is not None:  # the file, or votes whose voters have other names
        assert refused.isprintable()
        return
    assert ((p > 0) & (p < 1)).all()
    low, high = model.intervals(votes, **matching).T
    assert ((low > 0) & (low <= high) & (high < 1)).all()


@settings(max_examples=60)
@given(st.data())
def test_a_changed_byte_is_refused_or_harmless(tmp_path_factory, data):
    """Harmless: the content is equal, for instance where a blank became a line's end."""
    path = tmp_path_factory.mktemp("bytes") / "model.json"
    model_of("average of two").save(path)
    raw = path.read_bytes()
    position = data.draw(st.integers(0, len(raw) - 1))
    path.write_bytes(raw[:position] + bytes([data.draw(st.integers(0, 255))]) + raw[position + 1 :])
    result, refused = result_of(lambda: load(path).document())
    assert result == model_of("average of two").document() if refused is None else refused.isprintable()
