"""`deep fit` for every user: the regime is chosen by what is given, and said."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from deep.datasets import read_labels, read_scores, read_votes
from deep.evaluate._selective import UNLABELED_METHOD_NAMES
from deep.exceptions import InputError
from deep.model import fit as fit_model
from deep.model import load
from deep.report import GivenShare, verdict
from deep.report._sources import read_material
from deep.report._verdict import find_drift, methods_of, verdict_of
from tests.commands.model_case import frame_of, refused
from tests.deep_commands import adapt, check, estimate, fit, report, score
from tests.model.fitted import small_votes
from tests.report.test_report import items

ROWS = 120


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder: votes and soft scores on five datasets, of which four are labeled, and labels of the fifth."""
    folder = tmp_path_factory.mktemp("fit")
    table = frame_of(small_votes(("a", "b", "c", "d", "mine"), n_voters=4))
    table.query("dataset != 'mine'").to_csv(folder / "others.csv", index=False)
    mine = table.query("dataset == 'mine'")
    mine.to_csv(folder / "labeled.csv", index=False)
    mine.drop(columns="label").to_csv(folder / "mine.csv", index=False)
    for n in (6, 60):
        mine[["dataset", "item_id", "label"]].head(n).to_csv(folder / f"{n}.csv", index=False)
    rng = np.random.default_rng(1)
    soft = table[["dataset", "item_id"]].assign(grade=table["label"].astype(int) + rng.normal(0, 0.6, len(table)))
    soft.to_csv(folder / "scores.csv", index=False)
    return folder


def fitted(here, capsys, tmp_path, *words):
    """Return what the command says, and its model."""
    names = [str(here / word) if str(word).endswith(".csv") else str(word) for word in words]
    out = tmp_path / "model.json"
    assert fit([*names, "--out", str(out), "--jobs", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out), load(out)


REGIMES = {
    "stack": (["others.csv"], "stack", None, "between 4 labeled datasets"),
    "average": (
        ["others.csv", "--only", "a,b"],
        "average",
        None,
        "because 2 labeled datasets cannot show which one is best",
    ),
    "one": (["others.csv", "--only", "a"], "average", None, "because 1 labeled dataset cannot show which one is best"),
    "own": (["mine.csv", "--labels", "60.csv"], "own-labels", "mine", "labels of one dataset"),
    "few": (["mine.csv", "--labels", "6.csv"], "votes", "mine", "too few labels to learn from"),
    "none": (["mine.csv"], "votes", None, "no labels: learned from agreement alone"),
    "both": (["others.csv", "mine.csv", "--labels", "60.csv"], "stack", "mine", "between 4 labeled datasets"),
    "asked": (["others.csv", "--ensembler", "Average"], "average", None, "because 4 labeled datasets"),
}


@pytest.mark.parametrize("name", REGIMES)
def test_the_regime_is_chosen_by_what_is_given_and_said(here, capsys, tmp_path, name):
    """And the model is one that every other command takes."""
    words, method, target, why = REGIMES[name]
    message, model = fitted(here, capsys, tmp_path, *words)
    assert (message["method"], message["target"]) == (method, target) == (model.method, model.target)
    assert why in message["why"]
    prior = message["prior"]
    assert 0 < prior["low"] < prior["estimate"] < prior["high"] < 1
    file, mine = str(tmp_path / "model.json"), str(here / "mine.csv")
    labels = ["--labels", str(here / "60.csv")]
    out = tmp_path / "scores.parquet"
    assert score([file, "--votes", mine, "--out", str(out)]) == 0
    np.testing.assert_allclose(pd.read_parquet(out)["p_consistent"], model.score(read_votes(mine)), atol=1e-12)
    assert estimate([file, "--votes", mine, *labels]) == 0
    assert check([file, "--votes", mine, *labels]) in (0, 1)
    assert adapt([file, "--votes", mine, *labels, "--out", str(tmp_path / "m.json")]) == (0 if target is None else 2)


@pytest.mark.parametrize("name", ["stack", "average", "own", "none", "both"])
def test_what_is_said_is_printed(here, capsys, tmp_path, name):
    """The kind of model and why in the first line, then members and notes."""
    message, _ = fitted(here, capsys, tmp_path, *REGIMES[name][0])
    names = [str(here / word) if word.endswith(".csv") else word for word in REGIMES[name][0]]
    assert fit([*names, "--out", str(tmp_path / "model.json"), "--jobs", "1"]) == 0
    lines = capsys.readouterr().out
    assert lines.startswith(f"{message['what']}: {message['why']}\n")
    assert all(line in " ".join(lines.split()) for line in (*message["members"], *message["notes"], *message["said"]))


def test_the_stack_says_its_weights(here, capsys, tmp_path):
    """They sum to one; members of no weight have no line."""
    message, model = fitted(here, capsys, tmp_path, "others.csv")
    assert sum(message["chosen"]["weights"].values()) == pytest.approx(1)
    assert sum("weight" in line for line in message["members"]) == sum(
        w >= 0.005 for w in message["chosen"]["weights"].values()
    )
    assert set(message["left_out_scores"]["datasets"]) == set(message["training_datasets"]) == {"a", "b", "c", "d"}
    assert message["left_out_scores"]["mean"]["ece_floor"] > 0
    assert model.fit_report["provenance"]["votes"] == ["others.csv"]


def test_labels_of_the_target_correct_the_model_of_the_others(here, capsys, tmp_path):
    """As in Python; labels beside the votes of the target are not used, and those of others are."""
    words = ["others.csv", "mine.csv", "--labels", "60.csv"]
    message, model = fitted(here, capsys, tmp_path, *words)
    assert message["correction"]["n"] == 60
    assert any("corrected by 60 labels of mine" in line for line in message["said"])
    other, same = fitted(here, capsys, tmp_path, "others.csv", "labeled.csv", "--labels", "60.csv")
    assert other["correction"] == message["correction"]
    votes = read_votes([here / "others.csv", here / "mine.csv"])
    table = read_labels(here / "60.csv")
    known = dict(zip(table.item_ids, table.labels, strict=True))
    own = votes.datasets == "mine"
    votes.labels[own] = [known.get(item, -1) for item in votes.item_ids[own]]
    expected = fit_model(votes, target="mine")
    mine = votes.rows(own)
    for result in (model, same):
        np.testing.assert_allclose(result.score(mine), expected.score(mine), atol=1e-12)


def test_a_belief_about_the_share_stays_with_the_model(here, capsys, tmp_path):
    """Every score by the file of `deep fit --share` is at the share joined to it; nonsense is refused."""
    words = "others.csv", "--only", "a", "b"
    _, plain = fitted(here, capsys, tmp_path, *words)
    _, believed = fitted(here, capsys, tmp_path, *words, "--share", "90-95%")
    mine = read_votes([here / "mine.csv"])
    result, without = believed.scores_of(mine), plain.scores_of(mine)
    assert result.prior.estimate > without.prior.estimate
    assert "joined to the belief of 90 to 95 %" in result.prior.warning
    out = tmp_path / "s.parquet"
    assert score([str(tmp_path / "model.json"), "--votes", str(here / "mine.csv"), "--out", str(out)]) == 0
    np.testing.assert_allclose(pd.read_parquet(out)["p_consistent"], result.p_consistent, atol=1e-12)
    capsys.readouterr()
    told = refused(capsys, fit, str(here / "others.csv"), "--share", "95-90%", "--out", str(tmp_path / "m.json"))
    assert "`share` must be two shares that ascend between 0 and 1" in told


def test_soft_scores_are_learned_from_and_scored(here, capsys, tmp_path):
    """With the target's labels too, and from one dataset; a model of scores wants scores."""
    words = ["others.csv", "mine.csv", "--scores", "scores.csv", "--labels", "60.csv"]
    message, model = fitted(here, capsys, tmp_path, *words)
    assert message["scores"] == ["grade"]
    assert model.score_names == ("grade",)
    file, mine, soft = str(tmp_path / "model.json"), str(here / "mine.csv"), str(here / "scores.csv")
    out = tmp_path / "s.parquet"
    assert score([file, "--votes", mine, "--scores", soft, "--out", str(out)]) == 0
    grades = read_scores(soft)
    expected = model.score(read_votes(mine), scores=grades.scores[grades.datasets == "mine"])
    np.testing.assert_allclose(pd.read_parquet(out)["p_consistent"], expected, atol=1e-12)
    words = [file, "--votes", mine, "--labels", str(here / "60.csv")]
    assert estimate([*words, "--scores", soft]) == 0
    capsys.readouterr()
    assert "`scores` must have the columns grade, or `votes`." in refused(capsys, estimate, *words)
    message, model = fitted(here, capsys, tmp_path, "others.csv", "--only", "a", "--scores", "scores.csv")
    assert message["scores"] == ["grade"]


@pytest.mark.parametrize("more", [[], ["--prior", "0.8"]])
def test_a_report_shows_the_p_that_is_scored(here, capsys, tmp_path, more):
    """By soft scores and at a known share as well, in Python too; without the scores it says what is missing."""
    _, model = fitted(here, capsys, tmp_path, "others.csv", "--scores", "scores.csv")
    file, mine, soft, page = (str(tmp_path / "model.json"), str(here / "mine.csv"), str(here / "scores.csv"), "r.html")
    assert score([file, "--votes", mine, "--scores", soft, *more, "--out", str(tmp_path / "s.csv")]) == 0
    scored = pd.read_csv(tmp_path / "s.csv", dtype={"item_id": str}).set_index("item_id")
    assert report([file, mine, "--scores", soft, *more, "--out", str(tmp_path / page)]) == 0
    shown = items(tmp_path / page)
    np.testing.assert_allclose(shown["p"], scored["p_consistent"][shown["id"]], atol=1e-4)  # four digits
    assert shown["decided"] == scored["decision"][shown["id"]].tolist()
    grades = read_scores(soft)
    given = grades.scores[grades.datasets == "mine"]
    told = verdict(model, mine, prior=float(more[1]) if more else None, scores=given)
    assert told.suspect.split("\n")[0] in re.sub("<[^>]*>", "", (tmp_path / page).read_text()).replace("\u00a0", " ")
    known = GivenShare(float(more[1]) if more else None, [soft])
    material = read_material([file, mine], known=known)
    following = verdict_of(material, methods_of(material), find_drift(material)).command
    assert following == f"deep label {mine} --model {file} --scores {soft} --n 30"
    assert report([file, mine, "--out", str(tmp_path / page)]) == 0  # of the other judges alone
    assert items(tmp_path / page)["p"] != shown["p"]
    with pytest.raises(InputError, match="`scores` must"):
        verdict(model, mine, scores=given[1:])


def test_a_report_without_a_model_and_votes_takes_neither_share_nor_scores(here, capsys, tmp_path):
    """Each is refused in a line."""
    mine, out = str(here / "mine.csv"), ["--out", str(tmp_path / "r.html")]
    assert "`prior` must be given with a model and votes" in refused(capsys, report, mine, "--prior", "0.5", *out)
    assert "`scores` must be given with a model and votes" in refused(capsys, report, mine, "--scores", mine, *out)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "`VOTES` or `simulated` must be given. Got neither."),
        (["others.csv", "--simulated"], "`VOTES` or `simulated` must be given. Got both."),
        (["mine.csv", "--sizes", "3"], "`votes` must have labeled rows of other datasets for the options given"),
        (["others.csv", "--labels", "60.csv"], "`labels` must share items with `votes`"),
        (["others.csv", "--labels", "others.csv"], "`labels` must be of one dataset, your own. Got a, b, c, d."),
        (["others.csv", "--ensembler", "Stack", "--sizes", "3"], "`ensembler` must be 'Stack' alone"),
    ],
)
def test_what_does_not_fit_is_refused(here, capsys, tmp_path, words, message):
    """One line, status 2, nothing written."""
    given = [str(here / word) if word.endswith(".csv") else word for word in words]
    assert message in refused(capsys, fit, *given, "--out", tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_without_labels_it_says_by_which_label_model(here, capsys, tmp_path):
    """In the names of the models, not in a code word."""
    message, _ = fitted(here, capsys, tmp_path, "mine.csv")
    assert message["members"][0] in {f"by {name}" for name in UNLABELED_METHOD_NAMES.values()}


@pytest.mark.parametrize(
    "limit", [[], ["--max-failure-rate", "0.1"], ["--strict"]], ids=["default", "raised", "strict"]
)
def test_a_judge_that_fails_often_does_not_end_a_fit(tmp_path, capsys, limit):
    """It is left out with a warning that names the ways out; `--strict` ends there, and a higher limit takes it."""
    table = frame_of(small_votes(("a",), n_voters=3))
    voter, n = list(table)[-1], len(table)
    lost = table.index[: n // 15]
    ids = table["item_id"][lost]
    table.astype({voter: "Int8"}).assign(
        **{voter: table[voter].astype("Int8").mask(table.index.isin(lost))}
    ).to_parquet(tmp_path / "v.parquet")
    reasons = pd.DataFrame({"dataset": "a", "item_id": ids, "voter": voter, "reason": "refused"})
    reasons.to_parquet(tmp_path / "v.reasons.parquet")
    words = [str(tmp_path / "v.parquet"), "--out", str(tmp_path / "model.json"), "--jobs", "1", *limit]
    assert fit(words) == (2 if "--strict" in limit else 0)
    out, err = capsys.readouterr()
    share = 100 * len(lost) / n
    says = f"{voter!r} has no usable answer to {share:.3g} % of dataset 'a' ({len(lost)} refused of {n} items)"
    if "--strict" in limit:
        (line,) = err.splitlines()
        seldom = "error: `votes` must come from voters that seldom fail. Got one that fails more often"
        assert line.startswith(f"{seldom}: {says}")
    elif limit:
        assert (voter in load(tmp_path / "model.json").voter_names, err) == (True, "")
        assert "3 voters: " in out
    else:
        assert err.startswith(f"warning: left out: {says}, above the limit of 5 %.")
        assert "--max-failure-rate 0.07" in err
        assert voter not in load(tmp_path / "model.json").voter_names
        assert "2 voters: " in out


def test_the_voters_are_printed(here, capsys, tmp_path):
    """Many as a count and the first; all of them in the JSON."""
    message, model = fitted(here, capsys, tmp_path, "others.csv", "--only", "a,b")
    assert message["voters"] == list(model.voter_names)
    wide = frame_of(small_votes(("a",), n_voters=9))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    assert fit([str(tmp_path / "wide.csv"), "--out", str(tmp_path / "wide.json"), "--jobs", "1"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("9 voters: ")]
    assert line.endswith(" and 3 others")
