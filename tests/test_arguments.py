"""What is given to a function of deep in Python and is of another kind than it takes: one line that names it."""

import re

import numpy as np
import pandas as pd
import pytest

import deep
from deep.datasets import simulate_votes
from deep.exceptions import InputError

NO_TEXT = (3, 1.5, None, [3], {"a": 1}, object(), b"x", np.array([1, 2]), ValueError)
NO_NUMBER = ("nonsense", [], object(), {"a": 1}, b"x", np.array([1, 2]), ValueError)
NO_WHOLE = (1.5, "nonsense", [], object(), float("nan"), np.array([1, 2]))


class Own:
    """An ensembler of a user's own, which has no name here."""

    def __repr__(self):
        return "Own(\n  n=1)"


@pytest.fixture(scope="module")
def votes():
    """Return some votes on each of four datasets."""
    return simulate_votes(0).to_frame().groupby("dataset").head(30)


@pytest.fixture(scope="module")
def model(votes):
    """Return their model."""
    return deep.fit(votes)


def refused(call, name, value):
    """Assert that a call raises one line on a parameter."""
    with pytest.raises(InputError) as caught:
        call(value)
    assert re.match(rf"`{name}` must .*\. Got .+", str(caught.value)), caught.value
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("ensembler", (Own(), Own, [Own()], 3, [3])),
        ("calibrator", (Own(), 3, [None])),
        ("sizes", (3, "all", Own(), 1.5, {3})),
        ("share", (0.7, 70, ["60-80%"], True)),
        ("decide", (0.7, ["accuracy"], b"accuracy", np.array([1]))),
        ("labels", (3, 1.5)),
        ("scores", (3, "nonsense", Own(), [["a"]])),
        ("random_state", (*NO_WHOLE, -1)),
    ],
)
def test_fit(votes, name, values):
    """An estimator in place of its name, one number in place of a list, a share in place of two."""
    for value in values:
        refused(lambda given: deep.fit(votes, **{name: given}), name, value)


def test_a_model(votes, model):
    """Priors, shares, rules, labels and scores given to its methods."""
    new = votes[votes["dataset"] == votes["dataset"].iloc[0]].drop(columns="label")
    for value in NO_NUMBER:
        refused(lambda given: model.score(new, prior=given), "prior", value)
        refused(lambda given: deep.estimate(model, new, level=given), "level", value)
    for value in (0.7, [1], Own()):
        refused(model.believing, "share", value)
        refused(model.deciding, "decide", value)
    for value in (3, "nonsense", Own()):
        refused(lambda given: model.score(new, scores=given), "scores", value)
        refused(lambda given: model.adapted(new, given), "labels", value)


def test_columns_of_votes():
    """Whatever is no list."""
    whole = {"votes": [[1], [0]], "item_ids": ["a", "b"], "voter_names": ["x"], "datasets": ["d", "d"]}
    whole |= {"labels": [1, 0], "document_ids": ["e", "f"]}
    for name in ("item_ids", "voter_names", "datasets", "document_ids"):
        for value in (3, Own()):
            refused(lambda given, name=name: deep.VoteMatrix(**whole | {name: given}), name, value)
    refused(lambda given: deep.VoteMatrix(**whole, families=given), "families", ["d"])


def test_paths():
    """Whatever is no path, where a file is read."""
    for value in NO_TEXT:
        refused(deep.load, "path", value)
    for value in (3, 1.5, [3], Own(), [b"x"]):
        refused(deep.read_votes, "paths", value)
        refused(deep.read_scores, "paths", value)
    for value in (3, [3], Own()):
        refused(deep.read_examples, "examples", value)


def test_asking(tmp_path):
    """Judges, LLMs, ledger and workers."""
    examples = pd.DataFrame({"source": ["It rained."], "claim": ["It rained."]})
    judge = deep.judge(lambda source, claim: source == claim, name="same")
    for value in (3, "nonsense", Own()):
        refused(deep.judge, "function", value)
    for value in (3, [3], Own()):
        refused(lambda given: deep.ask(examples, [judge], llm=given), "llm", value)
    for value in (*NO_WHOLE, 0, -1):
        refused(lambda given: deep.ask(examples, [judge], workers=given), "workers", value)
    for value in (3, "", ".", [], Own()):
        refused(lambda given: deep.ask(examples, [judge], ledger=given), "ledger", value)
    ledger = tmp_path / "answers.sqlite"
    assert deep.ask(examples, [judge], ledger=ledger).votes.tolist() == [[1]]
    assert ledger.exists()
    refused(lambda given: deep.ask(examples, [judge], options=given), "options", {"ledger": "answers.sqlite"})
