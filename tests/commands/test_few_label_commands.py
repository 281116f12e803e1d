"""`deep adapt`, `estimate`, `label list`, `select` and `score`: from a new dataset to a decision."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_votes
from deep.model import SHARE_METHODS, fit, load, pattern_grid
from tests.deep_commands import adapt, estimate, export, label_list, score, select
from tests.guests.experiments.simulated_panel import NEW, simulated, table

CHAIN = {"sizes": [5], "ensembler": "LogisticRegression", "calibrator": "platt"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a folder: a chain, a stack, votes on a new dataset, and labels of half of it."""
    folder = tmp_path_factory.mktemp("few")
    votes = simulated()
    new = votes.datasets == NEW
    train, fresh = votes.rows(~new), votes.rows(new)
    fit(train, **CHAIN).save(folder / "model.json")
    fit(train).save(folder / "stack.json")
    table(fresh, folder / "new.csv")
    table(votes, folder / "all.csv", labels=True)
    half = np.arange(len(fresh.labels)) % 2 == 0
    table(fresh.rows(half), folder / "half.csv", labels=True)
    return folder


def run(command, capsys, *words):
    """Run a command with --json, and return what it says."""
    assert command([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def scored(folder, capsys, model, *words):
    """Return the scores of the new dataset."""
    run(score, capsys, model, *words, "--out", folder / "scores.parquet")
    return pd.read_parquet(folder / "scores.parquet")


@pytest.mark.parametrize("name", ["model", "stack"])
def test_each_dataset_is_scored_at_its_estimated_prior(home, tmp_path, capsys, name):
    """The same P whether the dataset stands alone or among others; a prior that is given is the mean P."""
    model = home / f"{name}.json"
    result = run(score, capsys, model, "--votes", home / "all.csv", "--out", tmp_path / "all.csv")
    prior = result["priors"][NEW]
    assert len(result["priors"]) == 12
    assert prior["low"] < prior["estimate"] < prior["high"]
    among = pd.read_csv(tmp_path / "all.csv").query("dataset == @NEW")
    alone = scored(tmp_path, capsys, model, "--votes", home / "new.csv")
    np.testing.assert_allclose(alone["p_consistent"], among["p_consistent"], atol=1e-12)
    given = scored(tmp_path, capsys, model, "--votes", home / "new.csv", "--prior", prior["estimate"])
    assert given["p_consistent"].mean() == pytest.approx(prior["estimate"], abs=0.005)
    half = scored(tmp_path, capsys, model, "--votes", home / "new.csv", "--prior", 0.5)
    assert half["p_consistent"].mean() == pytest.approx(0.5, abs=0.005)
    assert ((alone["p_low"] < alone["p_consistent"]) & (alone["p_consistent"] < alone["p_high"])).all()
    assert score([str(model), "--votes", str(home / "new.csv"), "--out", str(tmp_path / "x.csv")]) == 0
    assert f"\n{NEW}: {100 * prior['estimate']:.1f} % consistent, 90 % interval " in capsys.readouterr().out


def test_label_list_proposes_what_has_no_label(home, tmp_path, capsys):
    """As many items as asked for, none twice, none that has a label; fewer points off with them than without."""
    words = home / "model.json", "--votes", home / "new.csv", "--n", 30
    result = run(label_list, capsys, *words, "--out", tmp_path / "next.csv")
    assert len({item["item_id"] for item in result["items"]}) == 30
    assert result["expected_error_after"] < result["expected_error_before"]
    assert pd.read_csv(tmp_path / "next.csv")["label"].isna().all()


def test_label_list_says_how_many_labels_the_canary_needs(home, capsys):
    """The more, the surer one wants to be; a number that all items do not reach is said to be that."""
    result = run(label_list, capsys, home / "model.json", "--votes", home / "new.csv")
    needed = [result["labels_needed"][power] or np.inf for power in ("0.5", "0.8", "0.9")]
    assert 2 <= needed[0] <= needed[1] <= needed[2]
    assert label_list([str(home / "model.json"), "--votes", str(home / "new.csv")]) == 0
    message = capsys.readouterr().out
    assert f"by chance of detection: {needed[0]} for 50 %, " in message


@pytest.mark.parametrize("name", ["model", "stack"])
def test_adapt_without_labels_keeps_what_the_votes_say(home, tmp_path, capsys, name):
    """Votes on the dataset are scored as before; a single row is scored as one of it; the change is said."""
    model = home / f"{name}.json"
    result = run(adapt, capsys, model, "--votes", home / "new.csv", "--out", tmp_path / "mine.json")
    assert (result["dataset"], result["n"], result["correction"]) == (NEW, 267, None)
    before = scored(tmp_path, capsys, model, "--votes", home / "new.csv")
    after = scored(tmp_path, capsys, tmp_path / "mine.json", "--votes", home / "new.csv")
    pd.testing.assert_frame_equal(before, after)
    mine = load(tmp_path / "mine.json")
    rows = mine.select(read_votes(home / "new.csv"))[:7]
    np.testing.assert_allclose(mine.score(rows, streamed=True), after["p_consistent"][:7], atol=1e-12)
    assert result["p_mean"]["adapted"] == pytest.approx(after["p_consistent"].mean())
    streamed = load(model).score(load(model).select(read_votes(home / "new.csv")), streamed=True)
    assert result["p_change"] == pytest.approx(np.abs(streamed - after["p_consistent"]).mean())


def test_an_adapted_stack_is_a_table(home, tmp_path, capsys):
    """Every pattern of up to ten voters, with the P that the adapted model gives it."""
    five = simulated()
    names = five.voter_names[:5]
    votes = pd.read_csv(home / "all.csv")[["dataset", "item_id", "label", *names]]
    (votes.query("dataset != @NEW")).to_csv(tmp_path / "train.csv", index=False)
    fit(read_votes(tmp_path / "train.csv")).save(tmp_path / "stack.json")
    words = "--votes", home / "new.csv", "--labels", home / "half.csv"
    result = run(adapt, capsys, tmp_path / "stack.json", *words, "--out", tmp_path / "mine.json")
    assert result["table"]
    words = ["--to", "csv", "--out", str(tmp_path / "table.csv")]
    assert export([str(tmp_path / "mine.json"), *words]) == 0
    capsys.readouterr()
    exported = pd.read_csv(tmp_path / "table.csv").fillna(-1).astype(dict.fromkeys(names, int))
    assert np.array_equal(exported[list(names)], pattern_grid(5))
    after = scored(tmp_path, capsys, tmp_path / "mine.json", "--votes", home / "new.csv")
    joined = pd.read_csv(home / "new.csv").merge(exported, on=list(names), how="left")
    np.testing.assert_allclose(joined["p_consistent"], after["p_consistent"], atol=1e-12)


def test_adapt_moves_the_model_to_the_labels(home, tmp_path, capsys):
    """The corrected model is a model like any other, without a prior of its own to give, and adapted once."""
    words = home / "model.json", "--labels", home / "half.csv", "--votes", home / "new.csv"
    result = run(adapt, capsys, *words, "--out", tmp_path / "mine.json")
    correction = result["correction"]
    assert correction["n_labels"] == result["labels"]["n"] == 134
    model, mine = load(home / "model.json"), load(tmp_path / "mine.json")
    votes = read_votes(home / "new.csv")
    p = model.score(votes)
    moved = correction["intercept"] + correction["slope"] * np.log(p / (1 - p))
    np.testing.assert_allclose(mine.score(votes), 1 / (1 + np.exp(-moved)), atol=1e-9)
    low, high = mine.intervals(votes).T
    assert ((low <= mine.score(votes)) & (mine.score(votes) <= high)).all()
    assert result["interval_width"]["after"] < result["interval_width"]["before"]
    assert result["prior"]["estimate"] == pytest.approx(mine.prior.estimate)
    words = [tmp_path / "mine.json", "--votes", home / "new.csv", "--out", tmp_path / "x.csv"]
    assert score([*map(str, words), "--prior", "0.3"]) == 2
    assert "`prior` must not be given: the model was corrected by labels" in capsys.readouterr().err
    words = [tmp_path / "mine.json", "--votes", home / "new.csv", "--out", tmp_path / "again.json"]
    assert adapt([*map(str, words)]) == 2
    assert f"`model` must be one for any dataset. Got one for {NEW!r}" in capsys.readouterr().err
    assert label_list([str(tmp_path / "mine.json"), "--votes", str(home / "new.csv")]) == 2
    assert "Got one corrected by 134" in capsys.readouterr().err


def test_labels_beside_the_votes_are_not_used(home, tmp_path, capsys):
    """Of a table of several datasets the one is adapted to that the labels are of, and by no other labels."""
    models = []
    for i, votes in enumerate(("new.csv", "all.csv")):
        words = home / "model.json", "--votes", home / votes, "--labels", home / "half.csv"
        result = run(adapt, capsys, *words, "--out", tmp_path / f"{i}.json")
        models.append({**result, "out": None})
    assert models[0] == models[1]


def test_a_model_of_another_dataset_is_said_to_be_one(home, tmp_path, capsys):
    """Scores of other datasets stand at the target's prior, with a warning."""
    run(adapt, capsys, home / "model.json", "--votes", home / "new.csv", "--out", tmp_path / "mine.json")
    result = run(score, capsys, tmp_path / "mine.json", "--votes", home / "all.csv", "--out", tmp_path / "s.csv")
    warned = {name for name, prior in result["priors"].items() if prior["warning"]}
    assert warned == set(result["priors"]) - {NEW}


def test_estimate_from_votes_and_with_labels(home, capsys):
    """Without labels the prior of each dataset; with them every method, best first, and an interval around each."""
    words = home / "model.json", "--votes", home / "all.csv"
    every = run(estimate, capsys, *words)["datasets"]
    assert len(every) == 12
    assert {share["method"] for row in every for share in row["shares"]} == {"model"}
    (one,) = run(estimate, capsys, *words, "--labels", home / "half.csv")["datasets"]
    assert (one["dataset"], one["n"], one["labels"]) == (NEW, 267, 134)
    methods = [share["method"] for share in one["shares"]]
    assert methods == [name for name in SHARE_METHODS if name != "model"]
    assert all(share["low"] <= share["estimate"] <= share["high"] for share in one["shares"])
    truth = simulated()
    share = truth.labels[truth.datasets == NEW].mean()
    assert abs(one["shares"][0]["estimate"] - share) < 0.1
    labels = pd.read_csv(home / "half.csv")["label"]
    assert one["shares"][2]["estimate"] == pytest.approx(labels.mean())
    assert estimate([*map(str, words), "--labels", str(home / "half.csv")]) == 0
    assert "267 items, 134 of them labeled" in capsys.readouterr().out


def test_estimate_of_a_corrected_model_is_what_its_labels_told(home, tmp_path, capsys):
    """The prior in its file, and not the one from before the labels."""
    words = "--votes", home / "new.csv", "--labels", home / "half.csv"
    run(adapt, capsys, home / "model.json", *words, "--out", tmp_path / "mine.json")
    (with_labels,) = run(estimate, capsys, home / "model.json", *words, "--of", "items")["datasets"]
    own = tmp_path / "mine.json", "--votes", home / "new.csv", "--of", "items"
    (alone,) = run(estimate, capsys, *own)["datasets"]
    expected = with_labels["shares"][0]
    assert [alone["shares"][0][key] for key in ("estimate", "low", "high")] == pytest.approx(
        [expected[key] for key in ("estimate", "low", "high")]
    )
    assert "trained on" in alone["shares"][0]["how"]


def test_select_says_whether_it_guarantees(home, tmp_path, capsys):
    """With labels a guarantee, without them none; an easy target decides more than a hard one."""
    words = home / "model.json", "--votes", home / "new.csv", "--out", tmp_path / "d.csv"
    easy = run(select, capsys, *words, "--labels", home / "half.csv", "--accuracy", "0.55")
    assert easy["guaranteed"]
    assert easy["labels"] == 134
    assert pd.read_csv(tmp_path / "d.csv")["decision"].notna().sum() == easy["decided"]
    hard = run(select, capsys, *words, "--labels", home / "half.csv", "--accuracy", "0.99")
    assert hard["confidence"] is None
    assert pd.read_csv(tmp_path / "d.csv")["decision"].isna().all()
    none = run(select, capsys, *words, "--accuracy", "0.65")
    assert not none["guaranteed"]
    assert 0 < none["datasets_held"] <= none["datasets"] == 11
    assert select([str(word) for word in words] + ["--accuracy", "0.65"]) == 0
    assert "NOT guaranteed under shift" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        (adapt, ["--votes", "new.csv", "--labels", "new.csv", "--out", "x.json"], "`labels` must have a column label"),
        (adapt, ["--votes", "all.csv", "--out", "x.json"], "`votes` must be of one dataset"),
        (adapt, ["--votes", "all.csv", "--labels", "all.csv", "--out", "x.json"], "`labels` must be of one dataset"),
        (adapt, ["--votes", "new.csv", "--labels", "half.csv", "--out", "x.txt"], "`out` must end in .json"),
        (adapt, ["--votes", "new.csv", "--scores", "new.csv", "--out", "x.json"], "`scores` must not be given"),
        (estimate, ["--votes", "new.csv", "--labels", "new.csv"], "`labels` must have a column label"),
        (label_list, ["--votes", "new.csv", "--n", "1000"], "`n` must be a whole number from 1 to 267"),
        (label_list, ["--votes", "new.csv", "--seed", "-1"], "`seed` must be 0 or more. Got -1"),
        (select, ["--votes", "new.csv", "--accuracy", "1.5"], "`accuracy` must lie strictly"),
        (score, ["--votes", "new.csv", "--scores", "new.csv", "--out", "x.csv"], "`scores` must not be given"),
        (score, ["--votes", "new.csv", "--prior", "1.5", "--out", "x.csv"], "`prior` must lie strictly"),
    ],
)
def test_bad_input(command, words, message, home, monkeypatch, capsys):
    """One line, exit 2, nothing written."""
    monkeypatch.chdir(home)
    before = sorted(path.name for path in home.iterdir())
    assert command(["model.json", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")
    assert sorted(path.name for path in home.iterdir()) == before


@pytest.mark.parametrize("command", [adapt, estimate, select])
def test_votes_by_place_are_those_by_name(command, home, tmp_path, capsys):
    """As `fit`, `score` and `report` take them; both at once are refused."""
    model, votes = str(home / "stack.json"), str(home / "new.csv")
    more = {adapt: ["--out", str(tmp_path / "m.json")], estimate: [], select: ["--accuracy", "0.9"]}[command]
    message = []
    for words in ([votes], ["--votes", votes]):
        assert command([model, *words, *more, "--json"]) == 0
        message.append(json.loads(capsys.readouterr().out))
    assert message[0] == message[1]
    with pytest.raises(SystemExit):
        command([model, votes, "--votes", votes, *more])
    assert "not allowed with argument" in capsys.readouterr().err


def test_estimate_takes_level_share_and_whose_share(home, capsys):
    """A higher level and the system's share widen the interval; a belief moves it, and is shown beside the votes."""
    words = home / "stack.json", "--votes", home / "new.csv"
    (items,), (system,), (wide,) = (
        run(estimate, capsys, *words, "--labels", home / "half.csv", *more)["datasets"]
        for more in (("--of", "items"), (), ("--level", "0.99"))
    )
    widths = [result["shares"][0]["high"] - result["shares"][0]["low"] for result in (items, system, wide)]
    assert widths == sorted(widths)
    assert (items["of"], system["of"], wide["level"]) == ("items", "system", 0.99)
    (believed,) = run(estimate, capsys, *words, "--share", "90-95%")["datasets"]
    assert believed["prior"]["estimate"] > run(estimate, capsys, *words)["datasets"][0]["prior"]["estimate"]
    assert "joined to the belief of 90 to 95 %" in believed["prior"]["warning"]
    for more, message in (
        (("--share", "nix"), "`share` must be two shares"),
        (("--level", "1"), "`level` must lie strictly between 0 and 1. Got 1.0"),
        (("--level", "0.9999999999999999"), "`level` must lie strictly between 0 and 1. Got 0.9999999999999999"),
        (("--tell", "0.1"), "`tell` must be given with `compare`. Got 0.1 without"),
        (("--labels", str(home / "half.csv"), "--share", "97-99%"), "`share` must not be far from what labels say"),
    ):
        assert estimate([*map(str, words), *more]) == 2
        assert message in capsys.readouterr().err


def test_labels_are_not_used_twice(home, tmp_path, capsys):
    """A model corrected by labels gives its own figure with the same labels, and says why."""
    words = "--votes", home / "new.csv", "--labels", home / "half.csv"
    run(adapt, capsys, home / "model.json", *words, "--out", tmp_path / "mine.json")
    (again,) = run(estimate, capsys, tmp_path / "mine.json", *words)["datasets"]
    (alone,) = run(estimate, capsys, tmp_path / "mine.json", "--votes", home / "new.csv")["datasets"]
    assert again["shares"] == alone["shares"]
    assert again["labels"] == 0
    assert again["note"].startswith("No independent estimate: the model was trained on these labels")


def test_systems_are_compared_by_column_and_by_file(home, tmp_path, capsys):
    """Two tables are two systems, and so are two values of a column: the same figures."""
    frame = pd.read_csv(home / "new.csv")
    frame["writer"] = np.where(np.arange(len(frame)) % 2, "a", "b")
    frame.to_csv(tmp_path / "both.csv", index=False)
    for name, part in frame.groupby("writer"):
        part.drop(columns="writer").to_csv(tmp_path / f"{name}.csv", index=False)
    labels = "--labels", home / "half.csv"
    column = run(
        estimate, capsys, home / "stack.json", "--votes", tmp_path / "both.csv", *labels, "--compare", "writer"
    )
    files = tmp_path / "a.csv", tmp_path / "b.csv"
    by_file = run(estimate, capsys, home / "stack.json", "--votes", *files, *labels, "--compare", "file")
    assert [one["system"] for one in column["systems"]] == [one["system"] for one in by_file["systems"]]
    assert column["pairs"][0]["p_value"] == pytest.approx(by_file["pairs"][0]["p_value"])
    assert estimate([str(home / "stack.json"), "--votes", str(tmp_path / "both.csv"), "--compare", "writer"]) == 0
    assert "From votes alone: a judge that favours one system's style" in capsys.readouterr().out
