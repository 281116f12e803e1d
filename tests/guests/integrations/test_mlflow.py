"""MLflow: `mlflow.genai.evaluate` with deep's scorer, on a tracking store of its own in a file."""

import json
import os

import pytest

from deep.asking import TextScorer
from deep.exceptions import InputError
from tests.deep_commands import panel
from tests.fault_server import FaultServer
from tests.guests.integrations.case import QUIET, asking_scorer, lexical_model, numbers_model, texts
from tests.guests.integrations.test_committee import grades_of_three
from tests.llm.calls import KEY

pytestmark = pytest.mark.filterwarnings("ignore")  # those of MLflow's own libraries


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory):
    """Return MLflow, which keeps all it is told in SQLite, and tells nobody."""
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    result = pytest.importorskip("mlflow", reason="mlflow is not installed: pip install '.[mlflow]'")
    folder = tmp_path_factory.mktemp("mlflow")
    patch.chdir(folder)
    before = result.get_tracking_uri()
    result.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    result.create_experiment("claims", artifact_location=str(folder / "artifacts"))
    result.set_experiment("claims")
    yield result
    result.set_tracking_uri(before)
    os.environ.pop("MLFLOW_EXPERIMENT_ID", None)  # `set_experiment` sets it for every process to come
    patch.undo()


@pytest.fixture
def scorer_class(mlflow):
    """Return deep's scorer."""
    from deep.integrations.mlflow import ConsistencyScorer

    return ConsistencyScorer


def row(pair):
    """Return a row of data that MLflow evaluates."""
    return {"inputs": {"question": "What was it like?", "source": pair.source}, "outputs": pair.claim}


def test_evaluate_keeps_p_with_its_rationale(mlflow, scorer_class):
    """Every row has deep's P as its value; what has no source has an error, and the run its mean without it."""
    pairs, texts_alone = texts()[:4], TextScorer(lexical_model())
    data = [*map(row, pairs), {"inputs": {"question": "?"}, "outputs": "It rained."}]
    result = mlflow.genai.evaluate(data=data, scorers=[scorer_class(lexical_model())])
    outcome = {r["response"]: r for r in result.result_df.to_dict("records")}
    expected = {pair.claim: texts_alone.score(pair.source, pair.claim).columns for pair in pairs}
    assert {claim: outcome[claim]["consistency/value"] for claim in expected} == pytest.approx(
        {claim: columns["p_consistent"] for claim, columns in expected.items()}, abs=1e-12
    )
    mean = sum(columns["p_consistent"] for columns in expected.values()) / len(pairs)
    assert result.metrics["consistency/mean"] == pytest.approx(mean, abs=1e-12)
    assert outcome["It rained."]["consistency/error_message"] == "`source` must be text. Got nothing."
    (kept,) = outcome[pairs[0].claim]["assessments"]
    assert kept["rationale"].startswith("P(consistent) = 0.")
    assert kept["source"]["source_type"] == "CODE"
    assert json.loads(kept["metadata"]["p_low"]) == expected[pairs[0].claim]["p_low"]
    assert json.loads(kept["metadata"]["decision"]) == bool(expected[pairs[0].claim]["decision"])
    assert len(json.loads(kept["metadata"]["judges"])) == len(lexical_model().voters)


def test_no_vote_is_an_error_and_no_value(mlflow, scorer_class):
    """Of another code than a failure."""
    feedback = scorer_class(numbers_model())(inputs={"source": "It rained for 3 days."}, outputs=QUIET)
    assert feedback.value is None
    assert feedback.error.error_code == "NO_VOTE"
    assert feedback.metadata["status"] == "skipped"


def test_a_failed_judge_is_an_error_and_no_value(mlflow, scorer_class, tmp_path, monkeypatch):
    """The judge that answered is kept in the metadata; an LLM is named as the source."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer(faults={"server_error": 1.0}) as server:
        scorer = scorer_class(asking_scorer(server.url, tmp_path / "ledger.sqlite"), name="mine", timeout=0)
        data = [{"inputs": {"source": "It rained for 3 days."}, "outputs": "It rained for 4 days."}]
        (result,) = mlflow.genai.evaluate(data=data, scorers=[scorer]).result_df["assessments"][0]
    assert result["assessment_name"] == "mine"
    assert result["feedback"]["value"] is None
    assert result["feedback"]["error"]["error_code"] == "NOT_JUDGED"
    assert result["source"]["source_type"] == "LLM_JUDGE"
    assert [judge["vote"] for judge in json.loads(result["metadata"]["judges"])] == [None, 0]


def test_where_source_and_claim_are(mlflow, scorer_class):
    """Passages are joined; the source may be an expectation, and the claim a key of the outputs."""
    scorer = scorer_class(lexical_model(), source="context", claim="answer")
    pair = texts()[0]
    value = TextScorer(lexical_model()).score(pair.source, pair.claim).columns["p_consistent"]
    assert scorer(inputs={"context": [pair.source]}, outputs={"answer": pair.claim}).value == value
    assert scorer(expectations={"context": pair.source}, outputs=pair.claim).value == value
    assert scorer(inputs={"context": pair.source}, outputs={"text": pair.claim}).error is not None


def test_a_model_that_cannot_be_read_is_refused_at_once(mlflow, scorer_class):
    """Not in the middle of an evaluation."""
    with pytest.raises(InputError, match=r"^`model` must be a readable file\. Got 'none\.json'"):
        scorer_class("none.json")


def test_the_evaluator_is_found_by_name_and_measures_as_deep_panel_does(mlflow, tmp_path, capsys):
    """`mlflow.models.evaluate` logs the figures of a committee; `deep panel` prints them of the same table."""
    table = grades_of_three().to_frame()
    table.to_csv(tmp_path / "votes.csv", index=False)
    assert panel([str(tmp_path / "votes.csv"), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    with mlflow.start_run() as run:
        result = mlflow.models.evaluate(data=table, targets="label", model_type="committee", evaluators="deep")
    expected = {
        "effective_size": printed["effective_votes"],
        "agreement": printed["agreement"],
        "calibrated_accuracy": printed["outer"]["balanced_accuracy"],
    }
    assert result.metrics == expected
    assert mlflow.get_run(run.info.run_id).data.metrics == pytest.approx(expected)


def test_the_evaluator_leaves_out_what_it_cannot_measure(mlflow):
    """Without labels agreement alone; a cell that is no vote is refused; other kinds of models are others' work."""
    table = grades_of_three().to_frame().drop(columns="label")
    settings = {"model_type": "committee", "evaluators": "deep"}
    assert set(mlflow.models.evaluate(data=table, **settings).metrics) == {"agreement"}
    with pytest.raises(InputError, match="Got 'maybe'"):
        mlflow.models.evaluate(data=table.assign(a="maybe"), **settings)
    with pytest.raises(mlflow.exceptions.MlflowException, match="could not be evaluated by any"):
        mlflow.models.evaluate(data=table, model_type="question-answering", evaluators="deep")
