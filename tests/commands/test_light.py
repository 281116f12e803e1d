"""What scoring one text by lexical checks loads, and what not: a look-up in a table needs no library of models."""

import json
import subprocess
import sys
from pathlib import Path

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


def test_importing_loads_no_library_of_models():
    """Nor does using what the rooms of checks and records export."""
    code = (
        "import deep\nfrom deep import records\nfrom deep.features import lexical\n"
        "[getattr(room, public) for room in (records, lexical) for public in room.__all__]"
    )
    assert loaded(code) == ("", [])


def test_a_model_that_is_not_there_is_refused_before_what_would_run_it_loads(tmp_path):
    """Importing it takes seconds, and nothing is to be run."""
    (tmp_path / "c.csv").write_text("source,claim\nIt rained.,It rained.\n")
    words = ["votes", str(tmp_path / "c.csv"), "--out", str(tmp_path / "v.csv"), "--encoder"]
    encoders = ["./none", "hhem:./none", "minicheck:./none", "summac-zs:owner/none"]
    code = (
        "import os\nos.environ['HF_HUB_OFFLINE'] = '1'\nfrom deep.cli import main\n"
        f"assert [main([*{words!r}, name]) for name in {encoders!r}] == [2] * 4"
    )
    assert "torch" not in loaded(code)[1]


FITTERS = (
    "accelerate",
    "catboost",
    "lightgbm",
    "netcal",
    "numba",
    "snorkel",
    "torch",
    "transformers",
    "xgboost",
)
"""Libraries that one ensembler, calibrator or judge needs, and nothing else."""

CLAIMS = Path(__file__).parents[2] / "examples" / "claims.csv"


def loaded_by(*commands):
    """Return which libraries of fitting a fresh Python has loaded after some commands, by the command's name."""
    code = (
        "import json, sys\nfrom deep.cli import main\nfound = {}\n"
        f"for words in {[[str(word) for word in words] for words in commands]!r}:\n"
        "    assert main(words) == 0, words\n"
        f"    found[words[0]] = [m for m in {FITTERS!r} if m in sys.modules]\n"
        "print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_fitting_loads_no_library_that_it_does_not_use(tmp_path):
    """From text to a stack and its scores: no torch, snorkel, catboost, xgboost or lightgbm."""
    votes, model = tmp_path / "votes.parquet", tmp_path / "model.json"
    result = loaded_by(
        ["votes", CLAIMS, "--lexical", "all", "--out", votes],
        ["fit", votes, "--exclude", "weather", "--ensembler", "Average", "--out", model],
        ["score", model, "--votes", votes, "--out", tmp_path / "scores.parquet"],
    )
    assert result == {"votes": [], "fit": [], "score": []}


@pytest.mark.slow
def test_pages_and_panels_load_no_library_that_they_do_not_use(tmp_path):
    """Nor does a chain of one ensembler, nor a report."""
    votes, model = tmp_path / "votes.parquet", tmp_path / "model.json"
    fit_chain = ["fit", votes, "--sizes", "3", "--ensembler", "DawidSkene,LogisticRegression", "--out", model]
    result = loaded_by(
        ["votes", CLAIMS, "--lexical", "all", "--out", votes],
        fit_chain,
        ["panel", votes],
        ["report", model, votes, "--out", tmp_path / "report.html"],
        ["fit", votes, "--out", model],
        ["estimate", model, "--votes", votes],
    )
    assert not any(result.values())


@pytest.mark.slow
def test_what_an_ensembler_needs_is_loaded():
    """What the other tests look for is seen where it is loaded."""
    code = (
        "import sys, numpy as np\nfrom deep.ensembles import CatBoost\n"
        "votes = np.random.default_rng(0).integers(0, 2, (50, 3))\nCatBoost().fit(votes, votes[:, 0])\n"
        "assert 'catboost' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_items_to_label_are_drawn_without_libraries_of_models(tmp_path):
    """What the page of labels does before it opens: votes read, a model of them alone, items proposed."""
    (tmp_path / "v.csv").write_text(
        "dataset,item_id,a,b,c\n" + "".join(f"d,{i},{i % 2},{i % 3 % 2},1\n" for i in range(60))
    )
    code = (
        "from deep.integrations.labeling import open_label_desk, read_label_subject\n"
        f"subject = read_label_subject([{str(tmp_path / 'v.csv')!r}])\n"
        "print(len(subject.propose(5, taken={}, random_state=0)))"
    )
    printed, modules = loaded(code)
    assert printed == "5"
    assert not {"sklearn", "matplotlib", "torch", "xgboost"} & set(modules)
