"""`deep check`: the canary by labels, the comparison of votes without; statuses, and how it refuses."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from deep.model import canary, fit, load
from tests.deep_commands import check as main
from tests.deep_commands import fit as fit_command
from tests.guests.experiments.simulated_panel import NEW, simulated, table

CHAIN = {"sizes": [5], "ensembler": "LogisticRegression", "calibrator": "platt"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder with a model of five simulated judges, and votes on a dataset it was not fitted on."""
    folder = tmp_path_factory.mktemp("drift")
    votes = simulated()
    new = votes.datasets == NEW
    model = fit(votes.rows(~new), **CHAIN)
    model.save(folder / "model.json")
    table(votes.rows(new), folder / "new.csv")
    labels_of(votes.rows(new), 0, 40).to_csv(folder / "forty.csv", index=False)
    return folder


def labels_of(votes, start, stop, *, flipped=False):
    """Return labels of some rows as a table of their own."""
    rows = slice(start, stop)
    label = 1 - votes.labels[rows] if flipped else votes.labels[rows]
    return pd.DataFrame({"dataset": votes.datasets[rows], "item_id": votes.item_ids[rows], "label": label})


def said(capsys, status, *words):
    """Return what the command says as JSON."""
    assert main([*map(str, words), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_votes_like_the_old_ones(home, capsys):
    """Status 0, and an honest word on what this cannot see."""
    assert main([str(home / "model.json"), "--votes", str(home / "new.csv")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("not stale: 267 new rows\n")
    assert "ten labels by `--labels`" in out.splitlines()[-1]


def test_a_broken_judge_is_named(home, tmp_path, capsys):
    """A judge that says consistent to everything: status 1, named first."""
    votes = simulated()
    votes = votes.rows(votes.datasets == NEW)
    name = json.loads((home / "model.json").read_text())["voters"][0]["name"]
    votes.votes[:, votes.voter_names.index(name)] = 1
    table(votes, tmp_path / "new.csv")
    assert main([str(home / "model.json"), "--votes", str(tmp_path / "new.csv"), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["stale"]
    assert result["moved"][0] == name
    assert result["n"] == 267


def test_a_change_of_all_judges_shows_beside_a_reference(home, tmp_path, capsys):
    """Not beside other datasets, of which the least change that would show is printed; no word says who changed."""
    votes = simulated()
    before, after = (votes.rows((votes.datasets == NEW) & (np.arange(len(votes.labels)) % 2 == i)) for i in (0, 1))
    table(before, tmp_path / "before.csv")
    after.votes[(after.votes == 0) & (np.random.default_rng(0).random(after.votes.shape) < 0.4)] = 1
    table(after, tmp_path / "after.csv")
    words = [
        str(home / "model.json"),
        "--votes",
        str(tmp_path / "after.csv"),
        "--reference",
        str(tmp_path / "before.csv"),
    ]
    result = said(capsys, 1, *words)
    assert (result["moved"][0], result["reference"]) == ("(panel)", "the reference")
    alone = said(capsys, 0, *words[:3])
    assert alone["reference"] is None
    assert alone["least_shift"] > 2 * result["least_shift"]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert "Votes cannot tell whether the judges or the items changed." in out
    assert "The judges vote on these 133 claims otherwise than on the reference: the panel as a whole." in out
    assert main(words[:3]) == 0
    assert (
        "`deep check --reference` with earlier votes of the same stream detects smaller ones."
        in capsys.readouterr().out
    )


FAILS = "j2@20000000/m"


def failing(folder, name, *, start, share, reasons=True):
    """Write votes of six judges on one dataset, of which one fails on some items, and why beside them."""
    rng, n = np.random.default_rng(start), 296
    label = rng.random(n) < 0.57
    votes = {f"j{j}@{j}0000000/m": np.where(rng.random(n) < 0.2, ~label, label) * 1.0 for j in range(6)}
    frame = pd.DataFrame(
        {"dataset": "rag", "item_id": [f"i{start + k}" for k in range(n)], "label": label * 1, **votes}
    )
    lost = rng.permutation(n)[: round(share * n)]
    frame.loc[lost, FAILS] = np.nan
    frame.to_parquet(folder / f"{name}.parquet")
    if reasons:
        ids = frame["item_id"][lost]
        why = pd.DataFrame({"dataset": "rag", "item_id": ids, "voter": FAILS, "reason": "refused"})
        why.to_parquet(folder / f"{name}.reasons.parquet")
    return str(folder / f"{name}.parquet")


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """Return a folder with a model of six judges, one of which had no answer to 15 of 296 items."""
    folder = tmp_path_factory.mktemp("failing")
    table = failing(folder, "old", start=4000, share=15 / 296)  # a draw in which 55 % are consistent, as in the others
    assert fit_command([table, "--out", str(folder / "model.json"), "--max-failure-rate", "0.1"]) == 0
    return folder


def test_a_model_is_not_stale_on_its_own_training_votes(failed, tmp_path, capsys):
    """Whatever their order, with the reasons beside them or without; what was not tested is said, and skipped."""
    assert not said(capsys, 0, failed / "model.json", "--votes", failed / "old.parquet")["stale"]
    frame = pd.read_parquet(failed / "old.parquet")
    frame.iloc[::-1].to_parquet(tmp_path / "alone.parquet")
    result = said(capsys, 0, failed / "model.json", "--votes", tmp_path / "alone.parquet")
    assert (result["stale"], result["n"], result["training_votes"], result["untested"]) == (False, 0, ["rag"], [FAILS])
    assert main([str(failed / "model.json"), "--votes", str(tmp_path / "alone.parquet")]) == 0
    out = capsys.readouterr().out
    assert "The model was fitted on these votes of rag: nothing is new." in out
    assert "Skipped: the share of failures of j2/m" in out or "Skipped: the share of failures of j2" in out
    run = said(capsys, 0, failed / "model.json", "--votes", tmp_path / "alone.parquet", "--gate", tmp_path / "gate")
    by_test = {(group, name): outcome for group, name, outcome, _ in run["cases"]}
    assert by_test["answers", FAILS] == "skipped"
    assert {by_test[group, name] for group, name in by_test if group == "votes"} == {"skipped"}
    frame.loc[0, "j0@00000000/m"] = 1 - frame.loc[0, "j0@00000000/m"]
    frame.to_parquet(tmp_path / "alone.parquet")
    assert said(capsys, 0, failed / "model.json", "--votes", tmp_path / "alone.parquet")["n"] == 296


def test_failing_as_often_as_at_the_fit_is_no_move(failed, tmp_path, capsys):
    """Only a rise beyond chance is; a file of an older deep holds no share, and takes 5 % for it."""
    same = failing(tmp_path, "same", start=1000, share=16 / 296)
    more = failing(tmp_path, "more", start=2000, share=60 / 296)
    assert said(capsys, 0, failed / "model.json", "--votes", same)["failing"] == {}
    result = said(capsys, 1, failed / "model.json", "--votes", more)
    assert result["failing"] == {FAILS: pytest.approx(60 / 296)}
    assert result["moved"][0] == FAILS
    model = load(failed / "model.json")
    assert model.fit_report["provenance"]["failures"][FAILS] == [pytest.approx(15 / 296), 296]
    replace(model, fit_report={**model.fit_report, "provenance": {}}).save(tmp_path / "older.json")
    assert said(capsys, 0, tmp_path / "older.json", "--votes", same)["failing"] == {}
    assert said(capsys, 1, tmp_path / "older.json", "--votes", more)["failing"] == result["failing"]


def test_labels_that_agree(home, capsys):
    """Status 0; the p-value is the canary's on P at the estimated prior; it says what finding more would take."""
    words = home / "model.json", "--votes", home / "new.csv", "--labels", home / "forty.csv"
    result = said(capsys, 0, *words)
    votes = simulated()
    votes = votes.rows(votes.datasets == NEW)
    model = load(home / "model.json")
    labels = np.where(np.arange(len(votes.labels)) < 40, votes.labels, -1)
    expected = canary(model.score(votes), labels, misfit=model.misfit)
    assert (result["n_labels"], result["flagged"], result["enough"]) == (40, False, False)
    assert result["p_value"] == expected.p_value
    assert main([*map(str, words)]) == 0
    out = capsys.readouterr().out
    assert "40 labels do not disagree with the model, p = " in out
    assert "Labels needed to detect an error as large as the worst in training" in out


def test_labels_that_disagree(home, tmp_path, capsys):
    """Labels turned round: status 1, and what to do; with fifty of them that they correct P."""
    votes = simulated()
    votes = votes.rows(votes.datasets == NEW)
    words = home / "model.json", "--votes", home / "new.csv", "--labels", tmp_path / "labels.csv"
    for n in (20, 60):
        labels_of(votes, 0, n, flipped=True).to_csv(tmp_path / "labels.csv", index=False)
        result = said(capsys, 1, *words)
        assert result["flagged"]
        assert result["p_value"] < 0.01
        assert main([*map(str, words)]) == 1
        out = capsys.readouterr().out
        assert f"{n} labels DISAGREE with the model" in out
        assert "Do not use P or its interval" in out
        assert ("helps more than a test" in out) == (n == 60)
        assert "`deep adapt`" in out


def test_labels_of_one_document_count_less(home, tmp_path, capsys):
    """The same disagreement of labels that share documents is less of a surprise."""
    votes = simulated()
    votes = votes.rows(votes.datasets == NEW)
    given = pd.concat([labels_of(votes, 0, 8, flipped=True), labels_of(votes, 8, 30)])
    alone = tmp_path / "alone.csv"
    given.to_csv(alone, index=False)
    given.assign(document_id=[f"d{i // 5}" for i in range(30)]).to_csv(tmp_path / "shared.csv", index=False)
    p = []
    for name, documents in (("alone", None), ("shared", 6)):
        words = home / "model.json", "--votes", home / "new.csv", "--labels", tmp_path / f"{name}.csv"
        assert main([*map(str, words), "--json"]) in (0, 1)
        result = json.loads(capsys.readouterr().out)
        assert result["documents"] == documents
        p.append(result["p_value"])
    assert p[0] < p[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["new.csv", "--scores", "new.csv"], r"`scores` must be given with `labels`"),
        (["new.csv", "--labels", "elsewhere.csv"], r"`labels` must share items with `votes`"),
        (
            ["new.csv", "--max-failure-rate", "0.1"],
            r"`max_failure_rate` must be given to `deep fit`, which leaves",
        ),
        # Named are the judges that it wants, and those that are there.
        (["other.csv"], r"the columns of the model's voters, 'prompt-1/gpt-4'.* and 1 more.*'terse', 'wordy' in"),
    ],
)
def test_what_cannot_be_checked(home, tmp_path, monkeypatch, capsys, words, message):
    """One line, exit 2."""
    pd.read_csv(home / "forty.csv").assign(dataset="other").to_csv(tmp_path / "elsewhere.csv", index=False)
    (tmp_path / "new.csv").write_bytes((home / "new.csv").read_bytes())
    (tmp_path / "other.csv").write_text("dataset,item_id,terse,wordy\nnew,a,1,0\n")
    monkeypatch.chdir(tmp_path)
    assert main([str(home / "model.json"), "--votes", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: `")
    assert re.search(message, line), line


def test_labels_that_the_model_may_have_seen_are_warned_of(home, tmp_path, capsys):
    """A model that was fitted on this dataset's labels, or corrected by them, cannot be tested by them; others can."""
    words = ["--votes", str(home / "new.csv"), "--labels", str(home / "forty.csv")]
    votes = simulated()
    own = votes.rows(votes.datasets == NEW)
    labeled = labels_of(own, 0, 40)
    kept = np.where(np.arange(len(own.labels)) < len(labeled), own.labels, -1)
    fit(replace(own, labels=kept)).save(tmp_path / "own.json")
    load(home / "model.json").adapted(own, kept, target=NEW).save(tmp_path / "corrected.json")
    fit(replace(own, labels=np.full(len(kept), -1))).save(tmp_path / "unlabeled.json")
    warning = "The model was trained on labels of this dataset"
    for model in (tmp_path / "own.json", tmp_path / "corrected.json"):
        main([str(model), *words])
        assert warning in capsys.readouterr().out
    for model in (home / "model.json", tmp_path / "unlabeled.json"):
        main([str(model), *words])
        assert warning not in capsys.readouterr().out


def test_grades_that_the_model_was_fitted_on_are_known_again(tmp_path, monkeypatch, capsys):
    """By the answers, as they stand on their scales, and not by the votes that are cut from them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    grades = pd.DataFrame(rng.integers(1, 6, size=(60, 3)), columns=["a", "b", "c"])
    grades.insert(0, "dataset", "mine")
    grades.insert(1, "item_id", [f"i{n}" for n in range(60)])
    grades.to_csv("grades.csv", index=False)
    assert fit_command(["grades.csv", "--out", "model.json"]) == 0
    assert main(["model.json", "--votes", "grades.csv"]) == 0
    assert "The model was fitted on these votes of mine: nothing is new." in capsys.readouterr().out
