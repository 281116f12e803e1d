"""What scoring one text by lexical checks loads, and what not: a look-up in a table needs no library of models."""

import json
import subprocess
import sys

import numpy as np
import pytest

from deep import VoteMatrix
from deep.features.lexical import LEXICAL
from deep.model import fit

HEAVY = (
    "catboost",
    "joblib",
    "lightgbm",
    "matplotlib",
    "openai",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "rich",
    "scipy",
    "sklearn",
    "snorkel",
    "sqlalchemy",
    "torch",
    "xgboost",
)
"""Libraries that a table of probabilities does not need."""


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """Return the file of a model of three lexical checks, fitted on votes at random."""
    rng = np.random.default_rng(0)
    n, checks = 400, [LEXICAL[name]() for name in ("coverage", "dates", "numbers")]
    labels = rng.integers(0, 2, n)
    votes = np.where(rng.random((n, 3)) < 0.7, labels[:, None], 1 - labels[:, None])
    datasets = np.array(["news", "sport", "talk", "weather"])[np.arange(n) % 4]
    matrix = VoteMatrix(votes, range(n), [check.voter() for check in checks], datasets, labels)
    path = tmp_path_factory.mktemp("light") / "model.json"
    fit(matrix, sizes=[3], ensembler="LogisticRegression").save(path)
    return path


def loaded(code):
    """Return what a fresh Python printed, and which of the heavy libraries it had loaded in the end."""
    report = f"import json, sys; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True)
    *printed, modules = done.stdout.splitlines()
    return "\n".join(printed), json.loads(modules)


def test_one_text_is_scored_without_libraries_of_models(model_file):
    """Neither pandas nor scipy nor scikit-learn is loaded, nor what only asking needs."""
    words = ["score", str(model_file), "--source-text", "It rained on 3 May.", "--claim-text", "It rained.", "--json"]
    printed, modules = loaded(f"from deep.cli import main\nassert main({words!r}) == 0")
    assert 0 < json.loads(printed)["p_consistent"] < 1
    assert modules == []


@pytest.mark.parametrize("name", ["deep", "deep.features.lexical", "deep.records"])
def test_importing_loads_no_library_of_models(name):
    """Nor does using what it exports."""
    code = f"import {name} as room\n[getattr(room, public) for public in room.__all__ if {name != 'deep'}]"
    assert loaded(code) == ("", [])
