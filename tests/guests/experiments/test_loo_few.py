"""`deep loo --test all --few`: few training datasets, and few labels of the one held out."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.deep_commands import loo

QUICK = ["--ensembler", "Average", "--n-boot", "100", "--jobs", "1", "--json"]


@pytest.fixture
def votes(tmp_path, monkeypatch):
    """Return a table of four labeled datasets by three judges; the slow parts of the study are few."""
    monkeypatch.setattr("deep.experiments.few_datasets.PAPER_ENSEMBLERS", ("LogisticRegression",))
    monkeypatch.setattr("deep.experiments.few_datasets.LABEL_DRAWS", 3)
    monkeypatch.setattr("deep.experiments.few_datasets.DATASET_DRAWS", 4)
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 240)
    right = rng.random((240, 3)) < [0.85, 0.75, 0.65]
    frame = pd.DataFrame(np.where(right, label[:, None], 1 - label[:, None]), columns=["a", "b", "c"])
    frame.insert(0, "dataset", np.repeat(["d0", "d1", "d2", "d3"], 60))
    frame.insert(1, "item_id", np.arange(240))
    frame.insert(2, "label", label)
    frame.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv"


def test_the_study_stands_beside_the_usual_run(votes, tmp_path, capsys, undrawn):
    """What is not asked for costs and says nothing: all else in the results is the same, number by number."""
    result = {}
    for name, more in (("usual", []), ("few", ["--few", "1", "3"])):
        assert loo(["--test", "all", "--votes", str(votes), *QUICK, *more, "--out", str(tmp_path / name)]) == 0
        result[name] = json.loads(capsys.readouterr().out)
    study, answer = result["few"].pop("few"), result["few"].pop("verdict")
    assert answer["suspect"].startswith("Trained on 1 of the datasets, deep has a log loss of ")
    assert "P is off by " in answer["trust"]
    assert {path.name for path in (tmp_path / "few").glob("few-*")} == {
        f"few-{name}.{suffix}" for name in ("datasets", "labels") for suffix in ("csv", "png", "svg")
    }
    for results in result.values():
        results.pop("seconds")
        for run in results["runs"]:
            run.pop("seconds")
    assert result["usual"] == result["few"]
    assert [cell["training_datasets"] for cell in study["cells"]] == [1, 3]
    rivals = study["cells"][1]["rivals"]
    assert {"deep", "best judge", "majority", "the paper's recipe", "training prior"} <= set(rivals)
    assert rivals["deep"]["deep_less"]["log_loss"] == [0.0, 0.0]
    assert rivals["deep"]["balanced_accuracy"] > 0.7 > rivals["training prior"]["balanced_accuracy"] == 0.5
    assert [target["dataset"] for target in study["labels"]["targets"]] == ["d0", "d1", "d2", "d3"]
    twenty = study["labels"]["summary"]["20"]
    assert twenty["n_datasets"] == 4
    assert any(name.endswith(": covered") for name in twenty), "shares are estimated too"
    assert study["labels"]["summary"]["50"]["n_datasets"] == 0  # more than half of a dataset


def test_the_tables_are_printed_with_one_to_three_training_datasets(votes, tmp_path, capsys, undrawn):
    """Where no number is given."""
    words = ["--test", "all", "--votes", str(votes), *QUICK[:-1], "--few", "--out", str(tmp_path / "out")]
    assert loo(words) == 0
    message = capsys.readouterr().out
    for n in (1, 2, 3):
        assert f"\nvotes, {n} training datasets (4 draws of 4 held-out datasets)" in message
    assert "After labels: balanced accuracy" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--test", "d1", "--few"], "`few` must be given with --test all. Got --test d1."),
        (["--test", "all", "--few", "none"], "`few` must be numbers of at least 1, or 'all'. Got 'none'."),
        (["--test", "all", "--few", "9"], "`few` must be 'all', or at most 3 with these panels. Got 9."),
    ],
)
def test_faults_are_one_line(votes, tmp_path, capsys, words, message):
    """Nothing is written."""
    assert loo([*words, "--votes", str(votes), *QUICK, "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"error: {message}")
    assert printed.count("\n") == 1
    assert not (tmp_path / "out").exists()
