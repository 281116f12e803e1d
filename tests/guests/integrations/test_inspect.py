"""Inspect: its own `inspect score` with deep's scores and with deep's scorer, and votes from its logs."""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep import read_votes
from deep.asking import TextScorer
from deep.evaluate import read_panel_card
from tests.deep_commands import data, fit, panel, score
from tests.fault_server import FaultServer
from tests.guests.integrations.case import QUIET, ROOT, lexical_model, model_of, numbers_model, texts
from tests.guests.integrations.inspect_logs import grader_of, pairs_named, run_task
from tests.llm.calls import KEY
from tests.scripted_llm import ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore")  # those of Inspect's own libraries


@pytest.fixture(scope="module", autouse=True)
def inspect():
    """Return Inspect."""
    return pytest.importorskip("inspect_ai", reason="inspect-ai is not installed: pip install '.[inspect]'")


@pytest.fixture(scope="module")
def log(inspect, tmp_path_factory):
    """Return a log of four samples about the weather."""
    return run_task(texts()[:4], tmp_path_factory.mktemp("logs"))


@pytest.fixture
def model_file(tmp_path):
    """Return the path of a model file."""
    lexical_model().save(tmp_path / "model.json")
    return tmp_path / "model.json"


def inspect_score(log, out, scorer, **options):
    """Run `inspect score` on a log, and return the scored samples by id."""
    from inspect_ai.log import read_eval_log

    words = [word for name, value in options.items() for word in ("-S", f"{name}={value}")]
    command = [str(Path(sys.executable).with_name("inspect")), "score", log, "--scorer", scorer, *words]
    done = subprocess.run(
        [*command, "--action", "append", "--output-file", str(out), "--display", "none"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return read_eval_log(str(out))


def test_inspect_score_attaches_what_deep_scored(log, model_file, tmp_path):
    """`deep score --to inspect` on texts; a sample without a score is unscored, not wrong."""
    rows = [{"example_id": p.example_id, "source": p.source, "claim": p.claim} for p in texts()[:3]]
    pd.DataFrame(rows).to_csv(tmp_path / "claims.csv", index=False)
    out = tmp_path / "scores.jsonl"
    assert score([str(model_file), "--input", str(tmp_path / "claims.csv"), "--to", "inspect", "--out", str(out)]) == 0
    outcome = inspect_score(log, tmp_path / "scored.eval", "precomputed_scores", scores=out)
    scorer = TextScorer(lexical_model())
    by_id = {sample.id: sample.scores.get("precomputed_scores") for sample in outcome.samples}
    for pair in texts()[:3]:
        columns = scorer.score(pair.source, pair.claim).columns
        assert by_id[pair.example_id].value == pytest.approx(columns["p_consistent"], abs=1e-12)
        assert by_id[pair.example_id].answer == ("consistent" if columns["decision"] else "inconsistent")
        assert by_id[pair.example_id].explanation.startswith("P(consistent) = 0.")
    assert by_id[texts()[3].example_id] is None
    (result,) = outcome.results.scores
    p = [by_id[pair.example_id].value for pair in texts()[:3]]
    assert (result.scored_samples, result.metrics["accuracy"].value) == (3, pytest.approx(sum(p) / 3))


def test_inspect_score_runs_a_model_file(log, model_file, tmp_path):
    """By the name that the entry point makes known; P, interval, decision and the judges' words are in the log."""
    result = inspect_score(log, tmp_path / "scored.eval", "deep/consistency", model=model_file)
    scorer = TextScorer(lexical_model())
    for sample, pair in zip(result.samples, texts()[:4], strict=True):
        columns, kept = scorer.score(pair.source, pair.claim).columns, sample.scores["consistency"]
        assert (kept.value, kept.metadata["p_low"]) == (columns["p_consistent"], columns["p_low"])
        assert kept.metadata["decision"] is bool(columns["decision"])
        assert len(kept.explanation.splitlines()) == 1 + len(lexical_model().voters)
    metrics = result.results.scores[0].metrics
    assert set(metrics) == {"mean", "stderr"}


def scores_of(scorer, pairs, folder, **options):
    """Return the scores that a scorer gives in a task."""
    from inspect_ai.log import read_eval_log

    log = read_eval_log(run_task(pairs, folder, graders=[scorer], **options))
    return [sample.scores["consistency"] for sample in log.samples]


def test_no_vote_no_output_and_a_failed_judge_are_unscored(tmp_path, monkeypatch):
    """Each with its reason, and none with a value that a mean would take."""
    from deep.features.lexical import LEXICAL
    from deep.integrations.inspect import consistency
    from deep.prompt_pool import PromptJudge, load_prompt

    numbers_model().save(tmp_path / "model.json")
    outputs = ["It rained for 3 days.", QUIET, "  "]
    result = scores_of(consistency(str(tmp_path / "model.json")), pairs_named("a", "b", "c"), tmp_path, outputs=outputs)
    assert [one.reason for one in result] == [None, "no_vote", "no_response"]
    assert result[0].value > 0.5
    assert all(math.isnan(one.value) for one in result[1:])

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    strict = PromptJudge(load_prompt("deep-strict-steps")).voter("tiny")
    model_of(strict, LEXICAL["numbers"]().voter()).save(tmp_path / "asking.json")
    with FaultServer(accept=lambda body: (400, {"message": "no"})) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        scorer = consistency(str(tmp_path / "asking.json"), ledger=str(tmp_path / "ledger.sqlite"))
        (failed,) = scores_of(scorer, pairs_named("a"), tmp_path)
    assert failed.reason == "scoring_failed"
    assert math.isnan(failed.value)
    assert "No answer from deep-strict-steps@" in failed.explanation
    assert failed.metadata["judges"][1]["vote"] == 0


def test_the_source_is_the_input_where_metadata_have_none(tmp_path):
    """Under another key nothing is found, and the input has the text as well."""
    from deep.integrations.inspect import consistency

    numbers_model().save(tmp_path / "model.json")
    scorer = consistency(str(tmp_path / "model.json"), source="context")
    (result,) = scores_of(scorer, pairs_named("a"), tmp_path, outputs=["It rained for 3 days."])
    assert result.value > 0.5


def test_graders_become_voters(tmp_path, capsys):
    """C and I, 1 and 0 are votes; all else has its reason; the grader that is right gives the labels."""
    from inspect_ai.scorer import Score

    strange = {"a": 1, "b": "P", "c": 0.5, "d": Score.unscored(reason="grader_failed"), "e": "good", "f": None}
    several = {"a": {"fluent": 1, "short": 0}, "b": {"fluent": 0, "short": 0.5}}
    graders = [
        grader_of("strict", dict(zip("abcdef", "CICICI", strict=True))),
        grader_of("strange", strange),
        grader_of("several", several),
        grader_of("human", {"a": "C", "b": "I", "c": "P", "d": 1.0, "e": 0}),
    ]
    run_task(pairs_named(*"abcdef"), tmp_path / "logs", graders=graders, wrong={"f"})
    out = tmp_path / "votes.parquet"
    assert data(["from", str(tmp_path / "logs"), "--label", "human", "--out", str(out), "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    votes = read_votes([out])
    assert votes.voter_names == ("several.fluent", "several.short", "strange", "strict")
    assert votes.votes.T.tolist() == [
        [1, 0, -1, -1, -1, -1],
        [0, -1, -1, -1, -1, -1],
        [1, -1, -1, -1, -1, -1],
        [1, 0, 1, 0, 1, -1],
    ]
    assert votes.labels.tolist() == [1, 0, -1, 1, 0, -1]
    assert (message["items"], message["votes"]) == ({"weather": 6}, 9)
    reasons = pd.read_parquet(tmp_path / "votes.reasons.parquet")
    of_strange = reasons[reasons.voter == "strange"].set_index("item_id").reason.to_dict()
    assert of_strange == dict.fromkeys("bc", "abstained") | {"d": "unparsable", "e": "unparsable", "f": "failed"}
    assert message["reasons"] == reasons.reason.value_counts().to_dict()


def test_scorers_that_grade_stay_graders(tmp_path):
    """Numbers between 0 and 1 are grades where there are several of them; one failure changes nothing."""
    from inspect_ai.scorer import Score

    grades = dict(zip("abcdef", (0.0, 0.25, 0.5, 0.75, 1.0, 0.25), strict=True))
    given = grades | {"g": Score.unscored(reason="grader_failed")}
    graders = [grader_of("graded", given), grader_of("strict", dict(zip("abcdefg", "CICICIC", strict=True)))]
    run_task(pairs_named(*"abcdefg"), tmp_path / "logs", graders=graders)
    assert data(["from", str(tmp_path / "logs"), "--out", str(tmp_path / "votes.parquet")]) == 0
    votes = read_votes([tmp_path / "votes.parquet"])
    assert votes.voter_names == ("graded", "strict")
    assert votes.answers[:6, 0].tolist() == [*grades.values()]
    assert np.isnan(votes.answers[6, 0])


def test_epochs_go_there_and_back(tmp_path, capsys):
    """Each epoch is an item of one document, and its score goes back to that epoch; a model is fitted on the table."""
    pairs = pairs_named(*(f"s{i}" for i in range(20)))
    values = {f"s{i}": "CI"[i % 2] for i in range(20)}
    graders = [grader_of("one", values), grader_of("two", values | {"s0": "I", "s1": "C"}), grader_of("human", values)]
    log = run_task(pairs, tmp_path / "logs", graders=graders, epochs=2)
    table = tmp_path / "votes.parquet"
    assert data(["from", log, "--label", "human", "--out", str(table)]) == 0
    votes = read_votes([table])
    assert votes.shape == (40, 2)
    assert set(votes.document_ids) == set(values)
    assert fit([str(table), "--out", str(tmp_path / "model.json")]) == 0
    out = tmp_path / "scores.jsonl"
    words = [str(tmp_path / "model.json"), "--votes", str(table), "--to", "inspect", "--out", str(out)]
    assert score(words) == 0
    capsys.readouterr()
    result = inspect_score(log, tmp_path / "scored.eval", "precomputed_scores", scores=out)
    p = dict(zip(votes.item_ids, [json.loads(line)["value"] for line in out.read_text().splitlines()], strict=True))
    for sample in result.samples:
        assert sample.scores["precomputed_scores"].value == p[f"{sample.id}@epoch-{sample.epoch}"]


def test_logs_of_one_task_are_told_apart(tmp_path):
    """By the model, and where that is one too by the log."""
    for folder in ("x", "y"):
        run_task(pairs_named("a"), tmp_path / folder, graders=[grader_of("strict", {"a": "C"})])
    run_task(pairs_named("a"), tmp_path / "z", graders=[grader_of("strict", {"a": "I"})], task="other")
    out = tmp_path / "votes.parquet"
    assert data(["from", str(tmp_path / "x"), str(tmp_path / "z"), "--out", str(out)]) == 0
    assert read_votes([out]).dataset_names == ("other", "weather")
    assert data(["from", str(tmp_path / "x"), str(tmp_path / "y"), "--out", str(out)]) == 0
    first, second = read_votes([out]).dataset_names
    assert first != second
    assert {name.rpartition(" ")[0] for name in (first, second)} == {"weather mockllm/model"}


def test_a_grader_of_another_task_has_not_abstained(tmp_path, capsys):
    """It has no vote and no reason there, and its card counts the items of its own task alone."""
    run_task(pairs_named(*"ab"), tmp_path, graders=[grader_of("strict", {"a": "C", "b": "P"})])
    run_task(pairs_named(*"cde"), tmp_path, graders=[grader_of("terse", dict.fromkeys("cde", "I"))], task="other")
    out = tmp_path / "votes.parquet"
    assert data(["from", str(tmp_path), "--out", str(out), "--json"]) == 0
    message = json.loads(capsys.readouterr().out)
    assert (message["votes"], message["reasons"]) == (4, {"abstained": 1})
    votes = read_votes([out])
    assert dict(zip(votes.item_ids.tolist(), votes.votes.tolist(), strict=True)) == {
        "a": [1, -1],
        "b": [-1, -1],
        **{name: [-1, 0] for name in "cde"},
    }
    strict, terse = (each.itself for each in read_panel_card([str(out)]).judges)
    assert (strict.n, strict.coverage, strict.reasons) == (2, 0.5, {"abstained": 1})
    assert (terse.n, terse.coverage, terse.reasons) == (3, 1.0, {})


def test_what_is_no_log_is_refused(tmp_path, capsys):
    """In one line, and nothing is written."""
    (tmp_path / "broken.eval").write_bytes(b"PK no zip")
    (tmp_path / "empty").mkdir()
    bare = run_task(pairs_named("a"), tmp_path / "bare")
    out = tmp_path / "votes.parquet"
    for path, message, words in [
        (tmp_path / "none.eval", "Got '", []),
        (tmp_path / "empty", "without any.", []),
        (tmp_path / "broken.eval", "error: `files` must be logs of Inspect. Got '", []),
        (
            bare,
            "error: `label` must be a judge (none) or a column of 0 and 1. Got 'human': no label.",
            ["--label", "human"],
        ),
    ]:
        assert data(["from", str(path), "--out", str(out), *words]) == 2
        printed = capsys.readouterr().err
        assert message in printed
        assert printed.count("\n") == 1
    assert not out.exists()


def run_inspect(words, **environment):
    """Run `inspect` in the repository's root, as a newcomer would."""
    command = [str(Path(sys.executable).with_name("inspect")), *words]
    given = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    done = subprocess.run(
        command, cwd=ROOT, env=given, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def graded(asked):
    """Grade as three prompts ask: by numbers alone, by words too, or by words of some length."""
    source, _, message = asked.text.partition("Claim:")
    claim = message.partition("\n")[0].strip()
    right = set(re.findall(r"\d+", claim)) <= set(re.findall(r"\d+", source))
    if "every number" not in asked.text:
        right = right and (claim[:12] in source or len(claim) % 3 > 0)
    if "careful reader" in asked.text:
        right = right and len(claim) % 4 > 0
    return "GRADE: C" if right else "GRADE: I"


def panel_of(log, folder, capsys, label="label"):
    """Return the figures that `deep panel` has of a log's graders, and the lines that it prints."""
    out = folder / "graders.parquet"
    assert data(["from", str(log), "--label", label, "--out", str(out)]) == 0
    capsys.readouterr()
    assert panel([str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert panel([str(out)]) == 0
    return {
        "effective_size": result["effective_votes"],
        "agreement": result["agreement"],
        "calibrated_accuracy": result["outer"]["balanced_accuracy"],
    }, capsys.readouterr().out


def metrics_of(log, name="committee"):
    """Return the metrics of a scorer of a log."""
    from inspect_ai.log import read_eval_log

    (result,) = (one for one in read_eval_log(str(log)).results.scores if one.name == name)
    return {key: metric.value for key, metric in result.metrics.items()}


def test_inspect_eval_and_score_measure_the_committee_as_deep_panel_does(tmp_path, capsys):
    """The example on a loopback model, then its log scored again; the lines of `deep panel` say the same."""
    with ScriptedLLM(graded) as server:
        words = [
            "--model",
            "openai-api/local/tiny",
            "--model-base-url",
            server.url,
            "--log-dir",
            str(tmp_path / "logs"),
        ]
        shown = run_inspect(["eval", "examples/inspect/committee.py", *words, "--display", "plain"], LOCAL_API_KEY=KEY)
        assert server.count == 3 * 24
    (log,) = (tmp_path / "logs").glob("*.eval")
    expected, printed = panel_of(log, tmp_path, capsys)
    assert metrics_of(log) == pytest.approx(expected, abs=1e-12)
    assert 1 < expected["effective_size"] < 3
    assert f"3 judges are worth {expected['effective_size']:.1f} independent ones." in printed
    assert f"Mean kappa between two judges: {expected['agreement']:.2f}" in printed
    assert f"balanced accuracy {100 * expected['calibrated_accuracy']:.1f}, log loss" in printed
    assert f"{expected['effective_size']:.3f}" in shown

    out = tmp_path / "again.eval"
    words = ["--scorer", "deep/committee", "-S", "label=label", "--action", "append", "--output-file", str(out)]
    run_inspect(["score", str(log), *words, "--display", "none"], LOCAL_API_KEY=KEY)
    assert metrics_of(out, "committee1") == pytest.approx(expected, abs=1e-12)
    assert panel_of(out, tmp_path, capsys)[0] == expected


def committee_log(folder, scorer, *, graders=(), epochs=1):
    """Return the log of a task whose samples have labels in no metadata."""
    pairs = pairs_named(*(f"s{number:02}" for number in range(40)))
    return run_task(pairs, folder, graders=[*graders, scorer], epochs=epochs)


def some_grades():
    """Return the grades of a person and two graders by sample."""
    right = {f"s{n:02}": "CI"[n % 2] for n in range(40)}
    wrong = {"C": "I", "I": "C"}
    first = {name: wrong[grade] if n % 5 == 0 else grade for n, (name, grade) in enumerate(right.items())}
    second = {name: wrong[grade] if n % 7 == 0 else grade for n, (name, grade) in enumerate(right.items())}
    return right, first, second | {"s03": "P"}


def test_a_person_among_the_graders_is_the_label(tmp_path, capsys):
    """Named to the committee; that grader is no member, and partial credit no vote."""
    from deep.integrations.inspect import committee

    graders = [grader_of(name, grades) for name, grades in zip(("person", "a", "b"), some_grades(), strict=True)]
    log = committee_log(tmp_path, committee(label="person"), graders=graders, epochs=2)
    expected, _ = panel_of(log, tmp_path, capsys, label="person")
    assert metrics_of(log) == pytest.approx(expected, abs=1e-12)
    from inspect_ai.log import read_eval_log

    sample = next(one for one in read_eval_log(log).samples if one.id == "s03")
    assert sample.scores["committee"].value == {"a": 0, "b": None}


@pytest.mark.parametrize("shape", ["list", "mapping"])
def test_metrics_in_a_scorer_of_ones_own(tmp_path, shape):
    """By their functions, or by name; a value is a list of grades or a mapping, the label stands in the metadata."""
    from inspect_ai.scorer import Score, scorer

    from deep.integrations.committee import measure, votes_of
    from deep.integrations.inspect import agreement, calibrated_accuracy, effective_size

    right, *both = some_grades()

    @scorer(metrics=[effective_size(label="gold"), agreement(), calibrated_accuracy(label="gold")], name="panel")
    def grader():
        async def score(state, target):
            grades = [grades[state.sample_id] for grades in both]
            value = grades if shape == "list" else dict(zip("12", grades, strict=True))
            return Score(value=value, metadata={"gold": right[state.sample_id]})

        return score

    result = metrics_of(committee_log(tmp_path, grader()), "panel")
    grades = [dict(zip("12", pair, strict=True)) for pair in zip(*(each.values() for each in both), strict=True)]
    assert result == pytest.approx(measure(votes_of(grades, [*right.values()], [*right], "samples")), abs=1e-12)


def test_a_shorter_list_of_grades_is_left_out_and_told(caplog):
    """It does not say whose grade is missing; without any score there is no figure."""
    from inspect_ai.scorer import SampleScore, Score

    from deep.integrations.inspect import agreement

    def scores(*grades):
        return [SampleScore(score=Score(value=each), sample_id=str(n)) for n, each in enumerate(grades)]

    full = [[1, 1], [0, 0], [1, 0], [0, 1]]
    with caplog.at_level("WARNING"):
        assert agreement()(scores(*full, [1])) == agreement()(scores(*full, ["N", "N"]))
    assert "left out a sample with fewer than 2 grades" in caplog.text
    assert math.isnan(agreement()([]))
    assert math.isnan(agreement()(scores(0.5, 0.25)))


def test_a_model_file_is_a_committee_too(log, model_file, tmp_path):
    """The judges of `deep/consistency`, by the metrics' names."""
    out = tmp_path / "scored.eval"
    words = ["--scorer", "deep/consistency", "-S", f"model={model_file}", "--metric", "deep/agreement"]
    run_inspect(["score", log, *words, "--action", "append", "--output-file", str(out), "--display", "none"])
    assert -1 <= metrics_of(out, "consistency")["agreement"] <= 1
