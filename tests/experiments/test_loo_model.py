"""`deep loo` is `deep fit --exclude` and `deep score`; what is asked is what is recommended, and all of it is shown."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from deep.datasets import join_scores, read_scores, read_votes
from deep.exceptions import InputError
from deep.experiments.loo import LooOptions, leave_one_dataset_out, run_all
from deep.experiments.loo._command import _output_lines
from deep.experiments.loo._run import _StageClock, held_out_together
from deep.model import fit, fit_shared, load
from tests.deep_commands import fit as deep_fit
from tests.deep_commands import loo as main
from tests.deep_commands import score as deep_score
from tests.model.fitted import small_votes

FEW = ("BernoulliNB", "LDA", "LogisticRegression")

LDA = {"sizes": [3], "ensembler": ["LDA"], "calibrator": ["beta"]}

CASES = {
    "stack": ("stack", {}),
    "stack-with-scores": ("stack", {}),
    "stack-by-name": ("stack", {"ensembler": ["Stack"]}),
    "average": ("average", {}),
    "average-by-name": ("average", {"ensembler": ["Average"]}),
    "chain": ("chain", LDA),
    "chain-of-twelve": ("chain", {**LDA, "sizes": ["all"]}),
    "uncalibrated": ("chain", {**LDA, "calibrator": ["none"]}),
    "selector": ("chain", {"sizes": [2], "ensembler": ["LDA", "BernoulliNB"], "selector": "mrmr"}),
    "weighting": ("chain", {**LDA, "weighting": "uniform"}),
    "paper": ("chain", {"sizes": [3, 4], "ensembler": ["LDA", "LogisticRegression"], "recipe": "paper"}),
}
"""The expected kind of model and what is asked for, by a name that says which data it is asked of."""


@pytest.fixture
def few_ensemblers(monkeypatch):
    """Let the table hold few ensemblers where none is named: it is not what is looked at."""
    monkeypatch.setattr("deep.ensembles.default_ensemblers", lambda recipe="deep": FEW)
    monkeypatch.setattr("deep.ensembles.guest_ensemblers", lambda: ())


@pytest.fixture
def loo(tmp_path, undrawn):
    """Return a function that runs the command without figures and returns its folder."""

    def run(*words):
        assert main([*words, "--n-boot", "200", "--jobs", "1", "--out", str(tmp_path / "loo")]) == 0
        return tmp_path / "loo"

    return run


@pytest.fixture
def shared(monkeypatch):
    """Return a list of the targets of every call that fits members."""
    asked = []

    def counted(*args, **options):
        asked.append(options.get("targets"))
        return fit_shared(*args, **options)

    monkeypatch.setattr("deep.model.fit_shared", counted)
    return asked


def write(folder, case):
    """Write the tables of one case; return their paths by option."""
    names = ("a", "b", "c") if case == "average" else tuple("abcde")
    votes = small_votes(names, n_voters=12 if case == "chain-of-twelve" else 4)
    index = pd.DataFrame({"dataset": votes.datasets, "item_id": votes.item_ids, "label": votes.labels})
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names)).astype("Int64").replace(-1, pd.NA)
    pd.concat([index, frame], axis=1).to_csv(folder / "votes.csv", index=False)
    given = {"votes": str(folder / "votes.csv")}
    if case == "stack-with-scores":
        noise = np.random.default_rng(7).normal(size=(len(index), 2))
        soft = pd.DataFrame(votes.labels[:, None] + noise, columns=["s", "t"])
        pd.concat([index, soft], axis=1).to_csv(folder / "scores.csv", index=False)
        given["scores"] = str(folder / "scores.csv")
    return given


def read(given):
    """Return the votes of the tables, and the scores in the order of their rows."""
    votes = read_votes([given["votes"]])
    return votes, join_scores(votes, read_scores([given["scores"]])) if "scores" in given else None


def files(given):
    """Return the words of a command that give these tables."""
    return [word for name, path in given.items() for word in (f"--{name}", path)]


def words(asked):
    """Return the words of a command that ask for the same."""
    return [word for name, value in asked.items() for word in (f"--{name}", *map(str, np.atleast_1d(value)))]


@pytest.mark.parametrize("case", CASES)
def test_loo_is_fit_and_score(tmp_path, loo, few_ensemblers, case):
    """A model fitted without the held-out dataset, written and read again, gives loo's P."""
    given, (method, asked) = write(tmp_path, case), CASES[case]
    folder = loo("--test", "b", "--brief", *files(given), *words(asked))
    ours = pd.read_parquet(folder / "scores.parquet")
    votes, scores = read(given)
    held = votes.datasets == "b"
    soft, names = (None, ()) if scores is None else (scores.scores, scores.score_names)
    fit(votes.rows(~held), scores=None if soft is None else soft[~held], score_names=names, **asked).save(
        tmp_path / "model.json"
    )
    model = load(tmp_path / "model.json")
    target, new = votes.rows(held), {} if soft is None else {"scores": soft[held]}
    near = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(model.score(target, **new), ours["p_consistent"], **near)
    np.testing.assert_allclose(model.scores_of(target, **new).p_uniform, ours["p_uniform"], **near)
    np.testing.assert_allclose(model.intervals(target, **new), ours[["p_low", "p_high"]], **near)
    row = json.loads((folder / "results.json").read_text())["recommended"]
    assert row["method"] == model.method == method
    assert row["prior"]["estimate"] == model.estimate_prior(target, **new).estimate
    assert row["brier"] == pytest.approx(((ours["p_consistent"] - ours["label"]) ** 2).mean())


@pytest.mark.parametrize("case", ["paper", "stack-with-scores"])
def test_the_commands_fit_and_score_give_the_same(tmp_path, loo, few_ensemblers, case):
    """`deep fit --exclude` and `deep score` on the tables of a user, item by item."""
    given, (_, asked) = write(tmp_path, case), CASES[case]
    folder = loo("--test", "b", "--brief", *files(given), *words(asked))
    model, out, soft = str(tmp_path / "model.json"), str(tmp_path / "scored.parquet"), files(given)[2:]
    assert deep_fit([given["votes"], *soft, "--exclude", "b", *words(asked), "--jobs", "1", "--out", model]) == 0
    used = soft if case == "stack-with-scores" else []
    assert deep_score([model, "--votes", given["votes"], *used, "--out", out]) == 0
    scored = pd.read_parquet(out).set_index(["dataset", "item_id"])["p_consistent"]
    ours = pd.read_parquet(folder / "scores.parquet").set_index(["dataset", "item_id"])["p_consistent"]
    np.testing.assert_allclose(scored.loc[ours.index], ours, rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", ["stack", pytest.param("stack-with-scores", marks=pytest.mark.slow)])
def test_what_is_shared_changes_nothing(tmp_path, shared, case):
    """Held out all in turn or one by one: the same P, bit for bit, though the pairs are fitted once."""
    votes, scores = read(write(tmp_path, case))
    settings = LooOptions(ensembler=["Stack"], n_boot=200)
    outcome = run_all(settings, votes.dataset_names, votes, scores, ["x"], no_progress)
    assert shared[0] == votes.dataset_names  # the members on the votes alone
    assert (len(shared) == 1) == (scores is None)  # answers beside them are mapped by the rows of each fit
    for result in outcome[:3]:
        alone = leave_one_dataset_out(votes, result.results["test"], settings=settings, scores=scores)
        pd.testing.assert_frame_equal(result.scores, alone.scores, check_exact=True)
        for part in ("recommended", "parts"):
            assert result.results.get(part) == alone.results.get(part)


@pytest.mark.parametrize("asked", [{"ensembler": "Stack"}, {"sizes": [2], "ensembler": "LDA", "calibrator": "beta"}])
def test_more_than_twelve_datasets_are_held_out_in_six_groups(asked):
    """Each is scored by the fit on all that are not in its group, and the result says so."""
    votes = small_votes([f"d{i:02}" for i in range(13)], n=24)
    given = {key: value if key == "sizes" else [value] for key, value in asked.items()}
    settings = LooOptions(**given, n_boot=100)
    outcome = run_all(settings, votes.dataset_names, votes, None, ["x"], no_progress)
    assert [result.results["test"] for result in outcome] == list(votes.dataset_names)
    assert len({tuple(result.results["train"]) for result in outcome}) == 6
    for result in outcome[::6]:
        test, trained = result.results["test"], list(result.results["train"])
        assert test not in trained
        model = fit(votes.rows(np.isin(votes.datasets, trained)), **asked)
        p = model.score(votes.rows(votes.datasets == test))
        np.testing.assert_allclose(p, result.scores["p_consistent"], rtol=0, atol=1e-12)
    assert (
        "Held out together with 2 other datasets. Everything is learned on the other 10." in outcome[0].results["notes"]
    )


def test_where_patterns_are_many_seven_datasets_are_held_out_in_groups(monkeypatch):
    """Six are held out one by one."""
    monkeypatch.setattr("deep.model.has_many_patterns", lambda _votes: True)
    votes, options = small_votes([f"d{i}" for i in range(7)], n=4), LooOptions()
    assert held_out_together(votes, votes.dataset_names[:6], options) == [[f"d{i}"] for i in range(6)]
    assert held_out_together(votes, votes.dataset_names, options) == [["d0", "d6"], *([f"d{i}"] for i in range(1, 6))]


def test_twelve_datasets_are_held_out_one_by_one():
    """Nothing is said of groups then."""
    votes = small_votes([f"d{i:02}" for i in range(12)], n=24)
    outcome = run_all(LooOptions(ensembler=["Average"], n_boot=100), votes.dataset_names, votes, None, [], no_progress)
    assert all(len(result.results["train"]) == 11 for result in outcome)
    assert not any("together" in note for result in outcome for note in result.results["notes"])


def no_progress(name, steps):
    """Show nothing."""
    return lambda: None


@pytest.mark.slow
def test_the_stack_does_not_depend_on_the_number_of_jobs(tmp_path):
    """Members fitted in two processes give the same P bit for bit as those of one."""
    votes, scores = read(write(tmp_path, "stack-with-scores"))
    one, two = (
        run_all(LooOptions(ensembler=["Stack"], n_boot=200, n_jobs=n), ("a", "b"), votes, scores, ["x"], no_progress)
        for n in (1, 2)
    )
    for first, second in zip(one, two, strict=True):
        pd.testing.assert_frame_equal(first.scores, second.scores, check_exact=True)
        assert first.results["recommended"] == second.results["recommended"]


@pytest.mark.parametrize("reason", ["document", "family"])
def test_nothing_is_shared_where_rows_are_left_out_together(shared, reason):
    """Where two datasets have a document in common, or are of one family."""
    votes = small_votes(tuple("abcdef"))
    documents = [str(i) for i in range(len(votes.labels))]
    documents[-1] = "0"
    if reason == "document":
        votes = replace(votes, document_ids=np.array(documents, dtype=object))
    unit = "family" if reason == "family" else "dataset"
    settings = LooOptions(ensembler=["Stack"], n_boot=200, unit=unit)
    run_all(settings, ("a", "b"), votes, None, ["x"], no_progress)
    assert shared == [(), ()]


def test_all_chains_are_written(tmp_path, loo):
    """A row for every chain, calibrator and item, the uncalibrated ones too; the metrics can be computed from it."""
    given = write(tmp_path, "average")
    asked = ["--ensembler", "LDA", "BernoulliNB", "--sizes", "2,3", "--calibrator", "platt", "--compare-recipes"]
    folder = loo("--test", "all", *files(given), *asked, "--all-chains")
    chains = pd.read_parquet(folder / "chains.parquet")
    assert list(chains) == ["dataset", "item_id", "recipe", "ensembler", "size", "calibrator", "p"]
    assert len(chains) == 360 * 2 * 2 * 2 * 2
    labels = pd.read_csv(given["votes"]).set_index(["dataset", "item_id"])["label"]
    names = ["dataset", "recipe", "ensembler", "size", "calibrator"]
    by_chain = dict(list(chains.astype(dict.fromkeys(names, str)).groupby(names)))
    for run in json.loads((folder / "results.json").read_text())["runs"]:
        for row in run["rows"]:
            key = run["test"], row["recipe"], row["ensembler"], str(row["n_prompts"]), row["calibrator"] or "none"
            one = by_chain[key]
            y = labels.loc[list(zip(one["dataset"], one["item_id"], strict=True))].to_numpy()
            assert row["brier"] == pytest.approx(((one["p"] - y) ** 2).mean())


def test_the_stack_alone_is_the_table(tmp_path, loo):
    """`--ensembler Stack` runs no chain; beside something else it is refused."""
    folder = loo("--test", "b", *files(write(tmp_path, "stack")), "--ensembler", "Stack")
    results = json.loads((folder / "results.json").read_text())
    assert [row["ensembler"] for row in results["rows"]] == ["Stack"]
    assert results["recommended"] == results["rows"][0] | {"chosen_on": "training"}
    assert results["recommended_chain"] is None
    assert (folder / "tables" / "table3-methods.csv").exists()
    for more in (["LDA"], ["Average"]):
        with pytest.raises(InputError, match="`ensembler` must be 'Stack' alone"):
            LooOptions(ensembler=["Stack", *more])
    with pytest.raises(InputError, match="its earlier name"):
        LooOptions(ensembler=["Pool"])
    with pytest.raises(InputError, match="`ensembler` must be 'Average' alone"):
        LooOptions(ensembler=["Average"], sizes=[3])


def test_the_terminal_shows_the_work(tmp_path, loo, capsys):
    """Ensemblers by size, calibrators, judges, encoders and tests, within 100 columns; `--brief` leaves them out."""
    given = write(tmp_path, "stack-with-scores")
    asked = [*files(given), "--ensembler", "LDA", "BernoulliNB", "--sizes", "2,3", "--calibrator", "platt", "beta"]
    titles = ["Ensemblers by number", "Calibrators of the best", "Judges alone", "Encoders: ", "Recommended minus each"]
    for test, ending in (("b", "rivals"), ("all", "means of 5 datasets")):
        folder = loo("--test", test, *asked)
        whole = capsys.readouterr().out
        assert all(title in whole for title in titles)
        assert ending in whole
        assert max(len(line) for line in whole.splitlines() if str(tmp_path) not in line) <= 100
        assert "\x1b" not in whole
    brief = "\n".join(_output_lines(json.loads((folder / "results.json").read_text()), folder, brief=True))
    assert not any(title in brief for title in titles)
    assert "best judge with its context" in brief


def test_an_svm_that_is_fitted_to_draws_is_said(monkeypatch):
    """Where an SVC is in the table, and the distinct rows are more than it takes."""
    votes = small_votes()
    test, note = votes.dataset_names[-1], "SVC is fitted to 20 draws wherever its voters leave more distinct rows"
    for most, name, message in ((20, "SVC", True), (20, "LDA", False), (4_000, "SVC", False)):
        monkeypatch.setattr("deep.ensembles._classifiers.MAX_SVC_ROWS", most)
        result = leave_one_dataset_out(votes, test, settings=LooOptions(sizes=[3], ensembler=[name]))
        assert any(line.startswith(note) for line in result.results["notes"]) is message


def test_seconds_are_shared_by_the_datasets_held_out():
    """Of what is fitted once for several, each has its part."""
    clock = _StageClock(stages={"fit": 5.0, "score": 1.0}, ensemblers={"LDA": 3.0})
    assert clock.seconds(2) == {"total": 3.0, "fit": 2.5, "score": 0.5, "ensemblers": {"LDA": 1.5}}
