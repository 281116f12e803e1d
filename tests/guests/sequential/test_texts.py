"""`deep score --sequential`: the decisions of the whole panel by fewer questions, and nothing bought twice."""

import hashlib
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest

from deep._util.odds import shift_prior
from deep.asking import load_judge
from deep.features.lexical import LEXICAL
from deep.integrations.sequential import AskingPolicy, check_sequential, training_patterns
from deep.model import exported_columns, load, pattern_grid
from deep.prompt_pool import PromptJudge, load_prompt
from tests.commands.model_case import QUICK, frame_of, refused
from tests.deep_commands import fit, score, votes
from tests.llm.calls import rows
from tests.llm.crash import write_examples
from tests.model.fitted import small_votes, table_of
from tests.prompt_pool.tiered_script import answer as tiered
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

PROMPTS = ["deep-strict-steps", "yes-no", "deep-key-points", "fect-basic-direct-xml"]
VOTERS = [PromptJudge(load_prompt(name)).voter("tiny") for name in PROMPTS]
CHECKS = [LEXICAL[name]().voter() for name in ("numbers", "coverage")]
STAGED = load_judge("tiered").voter("tiny")
QUESTIONS = "SELECT count(*) FROM requests WHERE prompt NOT LIKE '%#repair'"
"""Repair turns are more requests to a judge that was asked already."""

COMMON = ["--backoff", "0.01", "--max-attempts", "2", "--constrain", "none"]


@cache
def model_text(names, datasets):
    """Return a model file whose voters have these names."""
    renamed = {f"judge-{i}": name for i, name in enumerate(names)}
    table = frame_of(small_votes(datasets, n_voters=len(names), seed=len(names))).rename(columns=renamed)
    with TemporaryDirectory() as folder:
        table.to_parquet(f"{folder}/train.parquet")
        words = ["--out", f"{folder}/model.json", "--sizes", "all", *QUICK[2:]]
        assert fit([f"{folder}/train.parquet", *words]) == 0
        return Path(f"{folder}/model.json").read_bytes()


def model_of(folder, names, datasets=("a", "b", "c", "d")):
    """Write a model whose voters have these names, and return it."""
    (folder / "model.json").write_bytes(model_text(tuple(names), tuple(datasets)))
    return load(folder / "model.json")


def at_random(seed):
    """Return a script that draws each answer, refusals, abstentions and failures among them, from the question."""

    def script(asked):
        draw = int(hashlib.sha256(f"{seed}{asked.text}".encode()).hexdigest()[:8], 16) / 2**32
        if draw < 0.25:
            return Fault(("refused", "no_verdict", "truncated", "filtered", "server_error")[int(draw * 20)])
        return ScriptedLLM(at_random(seed)).reply(asked.body)

    return script


class Panel:
    """A folder with a model, examples, and a server whose answers are drawn."""

    def __init__(self, folder, names, *, n=40, script=None, **fitted):
        self.folder = folder
        self.model = model_of(folder, names, **fitted)
        self.examples = write_examples(folder / "news.csv", n)
        self.server = ScriptedLLM(script or at_random(1))

    def score(self, *words, out, status=0):
        """Score the examples; return the number of requests that it took."""
        before = self.server.count
        given = ["--input", str(self.examples), "--out", str(self.folder / out), "--base-url", self.server.url]
        assert score([str(self.folder / "model.json"), *given, *COMMON, *map(str, words)]) == status
        return self.server.count - before

    def read(self, out):
        """Return the rows of a JSONL file."""
        return [json.loads(line) for line in (self.folder / out).read_text(encoding="utf-8").splitlines()]

    def matrix(self, out):
        """Return the votes of a JSONL file of the whole panel."""
        result = [{j["judge"]: j["vote"] for j in row["judges"]} for row in self.read(out)]
        votes = [[row[name] for name in self.model.voter_names] for row in result]
        return np.array([[-1 if vote is None else vote for vote in row] for row in votes])

    def policy(self, **options):
        """Return the policy of the model at a price of 1 a prompt."""
        return AskingPolicy.learn(table_of(self.model), *training_patterns(self.model), **options)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_decisions_are_those_of_the_whole_panel(tmp_path, seed):
    """Whatever is said, refused or failed: as many questions as simulated, shared with a full run before or after."""
    panel = Panel(tmp_path, VOTERS, script=at_random(seed))
    with panel.server:
        asked = panel.score("--sequential", out="few.jsonl")
        attempts = panel.score(out="whole.jsonl")
        assert panel.score("--sequential", "--ledger", tmp_path / "whole.jsonl.ledger.sqlite", out="again.jsonl") == 0
    few, whole, true = panel.read("few.jsonl"), panel.read("whole.jsonl"), panel.matrix("whole.jsonl")
    assert (true == -1).any()
    expected = panel.policy().simulate(true, table_of(panel.model))
    requests = rows(tmp_path / "few.jsonl.ledger.sqlite", QUESTIONS)[0][0]
    assert requests == expected.calls.sum() == sum(row["n_asked"] for row in few)
    assert requests < 4 * len(few)
    assert asked < attempts
    assert [row["n_asked"] for row in few] == expected.calls.tolist()
    assert [row["decision"] for row in few] == [int(row["p_uniform"] >= 0.5) for row in whole]
    rising = expected.p[np.argsort([row["p_consistent"] for row in few], kind="stable")]
    assert (np.diff(rising) > -1e-12).all()
    assert panel.read("again.jsonl") == few
    for row, full in zip(few, whole, strict=True):
        message = {judge["judge"]: judge for judge in full["judges"]}
        assert all(judge == message[judge["judge"]] for judge in row["judges"])
        assert sorted([*row["not_asked"], *(judge["judge"] for judge in row["judges"])]) == sorted(VOTERS)
        complete = row["n_asked"] == 4
        assert (row["p_low"], row["p_high"]) == ((full["p_low"], full["p_high"]) if complete else (None, None))
        if complete:
            assert row["p_consistent"] == pytest.approx(full["p_consistent"])
        assert row["n_votes"] == sum(judge["vote"] is not None for judge in row["judges"])
    assert len({row["n_asked"] for row in few}) > 1


def test_a_full_run_later_buys_the_rest_only(tmp_path):
    """With the same ledger the whole panel is asked for what is left, and `deep ask` for nothing."""
    panel = Panel(tmp_path, VOTERS)
    ledger = ["--ledger", tmp_path / "here.sqlite"]
    with panel.server:
        panel.score("--sequential", *ledger, out="few.csv")
        first = rows(tmp_path / "here.sqlite", QUESTIONS)[0][0]
        panel.score(*ledger, out="whole.jsonl")
        assert rows(tmp_path / "here.sqlite", QUESTIONS)[0][0] == 160
        assert 0 < first < 160
        again, cut = rows(
            tmp_path / "here.sqlite", "SELECT sum(attempts - 1), sum(reason = 'truncated') FROM requests"
        )[0]
        assert panel.server.duplicates == again - cut  # a reply that was cut off is asked with a longer limit
        assert cut > 0
        count = panel.server.count
        words = ["--prompt", *PROMPTS, "--llm", "tiny", "--base-url", panel.server.url, *map(str, ledger), *COMMON]
        table = tmp_path / "votes.parquet"
        assert votes([str(panel.examples), *words, "--out", str(table), "--max-failure-rate", "1"]) == 0
        assert panel.server.count == count
    result = pd.read_parquet(table)[VOTERS].fillna(-1).to_numpy(dtype=int)
    assert result.tolist() == panel.matrix("whole.jsonl").tolist()
    few = pd.read_csv(tmp_path / "few.csv")
    of_p = [name for name in exported_columns() if name != "n_votes"]
    assert list(few) == ["dataset", "item_id", "label", *of_p, "n_asked", "n_votes"]
    assert few["p_low"].isna().tolist() == (few["n_asked"] < 4).tolist()


def test_what_asks_nobody_is_heard_first(tmp_path):
    """Checks cost nothing: all are heard, and questions are counted from there."""
    panel = Panel(tmp_path, [VOTERS[0], CHECKS[0], VOTERS[1], CHECKS[1], VOTERS[2]])
    with panel.server:
        panel.score("--sequential", out="few.jsonl")
        panel.score(out="whole.jsonl")
    few, true = panel.read("few.jsonl"), panel.matrix("whole.jsonl")
    policy = panel.policy(prices=[1, 0, 1, 0, 1])
    expected = policy.simulate(true, table_of(panel.model), heard=[1, 3])
    assert [row["n_asked"] for row in few] == expected.calls.tolist()
    assert min(expected.calls) < 3
    assert all({judge["judge"] for judge in row["judges"]} >= set(CHECKS) for row in few)
    decided = [row["p_uniform"] >= 0.5 for row in panel.read("whole.jsonl")]
    assert [bool(row["decision"]) for row in few] == decided
    requests = rows(tmp_path / "few.jsonl.ledger.sqlite", QUESTIONS)[0][0]
    assert requests == expected.calls.sum()


def test_a_staged_judge_is_one_of_them(tmp_path, capsys):
    """It takes as many calls as it may need, is asked by its own questions, and shares them with a full run."""
    claim = "It rained for 3 days."

    def script(asked):
        return "VERDICT: NOT SUPPORTED" if "VERDICT" in asked.user else tiered(asked.user, {claim: "faithful"})

    names = [STAGED, PromptJudge(load_prompt("deep-numbers")).voter("tiny"), CHECKS[0]]
    model_of(tmp_path, names)
    here = ["--source-text", claim, "--claim-text", claim, "--ledger", str(tmp_path / "l.sqlite"), "--json"]
    capsys.readouterr()
    with ScriptedLLM(script) as server:
        words = [str(tmp_path / "model.json"), *here, "--base-url", server.url]
        assert score([*words, "--sequential"]) == 0
        message = json.loads(capsys.readouterr().out)
        first = server.count
        assert score(words) == 0
        assert server.count == first
        whole = json.loads(capsys.readouterr().out)
    assert message["training"]["prices"] == {
        names[0]: load_judge("tiered").most_calls(None),
        names[1]: 1.0,
        names[2]: 0.0,
    }
    assert message["n_asked"] == 2
    assert message["judges"] == whole["judges"]
    assert rows(tmp_path / "l.sqlite", f"SELECT count(*) FROM items WHERE voter LIKE '{STAGED}#%'")[0][0] > 0
    assert rows(tmp_path / "l.sqlite", "SELECT count(*) FROM items WHERE voter LIKE 'panel%'") == [(0,)]


def test_a_run_out_of_budget_goes_on(tmp_path, capsys):
    """Stopped between two judges it writes nothing, and the next run buys only what is missing."""
    panel = Panel(tmp_path, VOTERS, script=lambda asked: "VERDICT: YES")
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1000.0\noutput = 0.0\n")
    words = ["--sequential", "--prices", prices, "--concurrency", "4", "--no-repair"]
    words += ["--ledger", tmp_path / "l.sqlite"]
    with panel.server:
        first = panel.score(*words, "--budget", "20", out="few.jsonl", status=3)
        err = capsys.readouterr().err
        assert "stopped: the budget is reached" in err
        assert "% of the dollars saved" in err
        assert not (tmp_path / "few.jsonl").exists()
        second = panel.score(*words, out="few.jsonl")
        assert panel.score(*words, out="few.jsonl") == 0
        assert panel.server.duplicates == 0
    assert first > 40
    assert second > 0
    assert first + second == sum(row["n_asked"] for row in panel.read("few.jsonl"))


def test_several_samples_are_one_judge(tmp_path, capsys):
    """A voter of two samples is asked both at once, at twice the price."""
    examples = write_examples(tmp_path / "news.csv", 60)
    with ScriptedLLM(at_random(3)) as server:
        words = ["--base-url", server.url, "--ledger", str(tmp_path / "l.sqlite"), *COMMON]
        sampled = ["--prompt", *PROMPTS[:3], "--llm", "tiny", "--samples", "2", "--out", str(tmp_path / "v.parquet")]
        assert votes([str(examples), *sampled, *words, "--max-failure-rate", "1"]) == 0
        count = server.count
        fitted = ["--out", str(tmp_path / "model.json"), "--sizes", "all", "--max-failure-rate", "1", *QUICK[2:]]
        assert fit([str(tmp_path / "v.parquet"), *fitted]) == 0
        out = tmp_path / "s.jsonl"
        chosen = ["--input", str(examples), "--out", str(out), "--sequential"]
        capsys.readouterr()
        assert score([str(tmp_path / "model.json"), *chosen, *words, "--json"]) == 0
        assert server.count == count
    assert set(json.loads(capsys.readouterr().out)["training"]["prices"].values()) == {2.0}
    model = load(tmp_path / "model.json")
    matrix = pd.read_parquet(tmp_path / "v.parquet")[list(model.voter_names)].fillna(-1).to_numpy(dtype=int)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["decision"] for row in lines] == (
        model.scores_of(matrix.astype(np.int8), streamed=True).p_uniform >= 0.5
    ).astype(int).tolist()


def test_a_dry_run_says_what_it_saves_and_sends_nothing(tmp_path, capsys):
    """The figures are of each training dataset by the policy of the others."""
    panel = Panel(tmp_path, VOTERS)
    capsys.readouterr()
    with panel.server:
        assert panel.score("--sequential", "--dry-run", "--json", out="few.csv") == 0
        message = json.loads(capsys.readouterr().out)
        assert panel.score("--sequential", "--dry-run", out="few.csv") == 0
    assert not list(tmp_path.glob("few*"))
    report = message["training"]
    assert message["dry_run"] is True
    assert (report["unit"], report["judges"], report["held_out"]) == ("calls", 4, True)
    cells, table = panel.model.cells, table_of(panel.model)
    weights = np.delete(cells.counts.sum(axis=2), 2, axis=1)
    policy = AskingPolicy.learn(table, cells.patterns, (weights / weights.sum(axis=0)).sum(axis=1))
    votes_of_c = np.repeat(cells.patterns, cells.counts[:, 2].sum(axis=1), axis=0)
    result = policy.simulate(votes_of_c, table)
    row = report["datasets"][2]
    assert (row["dataset"], row["n"], row["changed"]) == ("c", 120, 0)
    assert row["asked"] == pytest.approx(result.calls.mean())
    assert row["calls_saved"] == pytest.approx(1 - result.calls.mean() / 4) == row["price_saved"]
    assert report["mean"]["changed"] == 0
    assert report["mean"]["n"] == 480
    assert report["mean"]["balanced_accuracy_panel"] == report["mean"]["balanced_accuracy_sequential"] > 0.7
    out, err = capsys.readouterr()
    assert out == "nothing was sent\n"
    assert "0 of 480 decisions changed" in err
    assert f"{100 * report['mean']['calls_saved']:.1f} % fewer" in err


def test_cheap_errors_save_more(tmp_path, capsys):
    """With errors that are worth two questions some are made, as the report says before and the decisions show."""
    panel = Panel(tmp_path, VOTERS)
    with panel.server:
        lossless = panel.score("--sequential", out="few.jsonl")
        capsys.readouterr()
        cheap = panel.score("--sequential", "--error-cost", "6", "--ledger", tmp_path / "x.sqlite", out="fewer.jsonl")
        assert "a wrong decision: 6 calls" in capsys.readouterr().err
        assert panel.score("--sequential", "--error-cost", "0.01", out="none.jsonl") == 0
        capsys.readouterr()
        panel.score("--sequential", "--error-cost", "6", "--dry-run", "--json", out="few.csv")
    assert 0 < cheap < lossless
    report = json.loads(capsys.readouterr().out)["training"]["mean"]
    assert 0 < report["changed"] < report["n"]
    assert report["balanced_accuracy_sequential"] != report["balanced_accuracy_panel"]
    assert all(row["n_asked"] == 0 for row in panel.read("none.jsonl"))
    policy = panel.policy(error_cost=6)
    assert sum(row["n_asked"] for row in panel.read("fewer.jsonl")) < 4 * 40
    first = policy.next({})
    assert all(
        panel.model.voter_names[first] in {j["judge"] for j in row["judges"]} for row in panel.read("fewer.jsonl")
    )


def test_batches_hold_a_judge_each(tmp_path):
    """With the Batch API every wave is a batch, and the scores are the same."""
    panel = Panel(tmp_path, VOTERS[:3], script=lambda asked: "VERDICT: YES")
    with panel.server:
        panel.score("--sequential", out="one.jsonl")
        panel.score("--sequential", "--batch", "--poll", "0.02", "--ledger", tmp_path / "b.sqlite", out="two.jsonl")
        assert 2 <= len(panel.server.batches) <= 3
    assert panel.read("one.jsonl") == panel.read("two.jsonl")


def test_one_pair_is_explained(tmp_path, capsys):
    """P, the decision, what was said, and who was not asked; at another prior P moves and the decision stays."""
    model_of(tmp_path, VOTERS, datasets=("a",))
    capsys.readouterr()
    pair = ["--source-text", "Cats sat.", "--claim-text", "Cats sat.", "--sequential"]
    with ScriptedLLM(lambda asked: ScriptedLLM(lambda _: "").reply(asked.body)) as server:
        words = [str(tmp_path / "model.json"), *pair, "--base-url", server.url]
        assert score(words) == 0
        out, err = capsys.readouterr()
        assert score([*words, "--prior", "0.05", "--json"]) == 0
        moved = json.loads(capsys.readouterr().out)
    lines = out.splitlines()
    assert lines[0].startswith("P(consistent) = 0.")
    assert lines[1].startswith("P assumes that ")
    assert lines[2].startswith(("decision: consistent", "decision: undecided, leaning consistent"))
    assert sum(line.endswith(": not asked") for line in lines) == 4 - moved["n_asked"] > 0
    assert "on the only training dataset, in the order learned from itself" in err
    assert (moved["decision"], moved["training"]["held_out"]) == (1, False)
    assert moved["p_consistent"] < float(lines[0].split()[2])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--votes", "train.parquet", "--sequential", "--out", "s.csv"], "`sequential` must be given with text"),
        (["--error-cost", "2"], "`error_cost` must be given with `sequential`"),
        (["--dry-run"], "`dry_run` must be given with `sequential`"),
        (["--sequential", "--error-cost", "0"], "`error_cost` must be above 0. Got 0.0"),
        (["--sequential", "--error-cost", "inf"], "`error_cost` must be above 0. Got inf"),
        (["--sequential"], "`sequential` must be given with a model of judges that are asked"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, capsys, monkeypatch, words, reason):
    """One line, exit status 2, nothing written."""
    monkeypatch.chdir(tmp_path)
    model_of(tmp_path, [*CHECKS, LEXICAL["negation"]().voter()])
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    pair = [] if "--votes" in words else ["--source-text", "a", "--claim-text", "b"]
    assert reason in refused(capsys, score, "model.json", *pair, *words)
    assert sorted(tmp_path.iterdir()) == before


def test_a_model_of_many_voters_is_refused(tmp_path, capsys):
    """Above 10 there is no table to look ahead in."""
    model_of(tmp_path, [f"judge{i}" for i in range(11)])
    capsys.readouterr()
    words = ["--source-text", "a", "--claim-text", "b", "--sequential"]
    err = refused(capsys, score, tmp_path / "model.json", *words)
    assert "`sequential` must be given with a model of at most 10 voters, who all vote. Got 11 voters" in err


def test_a_model_that_labels_corrected_decides_as_they_say(tmp_path):
    """Whatever the slope and the intercept: the table that decides is that of the corrected decisions."""
    model, mine = model_of(tmp_path, VOTERS), small_votes(("mine",), n_voters=4)
    labels = np.where(mine.votes[:, 1] == 1, 1, np.where(np.arange(120) % 3 == 0, 1, 0))
    adapted = model.adapted(mine.votes, labels)
    grid = pattern_grid(4)
    assert adapted.correction.intercept != 0
    assert ((check_sequential(adapted) >= 0.5) == adapted.scores_of(grid).decisions).all()
    assert ((table_of(adapted) >= 0.5) != adapted.scores_of(grid).decisions).any()
    p = shift_prior(check_sequential(adapted), adapted.threshold())
    np.testing.assert_allclose(p, adapted.score(grid), atol=1e-9)
