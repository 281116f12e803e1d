"""DeepEval: `deepeval.evaluate` with deep's metric; skipped and failed test cases have no score."""

import asyncio

import pytest

from deep.asking import TextScorer
from deep.exceptions import DeepError
from tests.fault_server import FaultServer
from tests.guests.integrations.case import QUIET, asking_scorer, lexical_model, numbers_model, texts
from tests.llm.calls import KEY

pytestmark = pytest.mark.filterwarnings("ignore")  # those of DeepEval's own libraries


@pytest.fixture(scope="module")
def deepeval(tmp_path_factory):
    """Return DeepEval, which tells nobody of what it does, in a folder of its own."""
    patch = pytest.MonkeyPatch()
    patch.chdir(tmp_path_factory.mktemp("deepeval"))
    for name in ("DEEPEVAL_TELEMETRY_OPT_OUT", "DEEPEVAL_NO_INSPECT_PROMPT", "ERROR_REPORTING_OPT_OUT"):
        patch.setenv(name, "1")
    yield pytest.importorskip("deepeval", reason="deepeval is not installed: pip install '.[deepeval]'")
    patch.undo()


@pytest.fixture
def metric_class(deepeval):
    """Return deep's metric."""
    from deep.integrations.deepeval import ConsistencyMetric

    return ConsistencyMetric


@pytest.fixture
def case(deepeval):
    """Return a function that makes a test case."""
    from deepeval.test_case import LLMTestCase

    return lambda source, claim: LLMTestCase(
        input="?", actual_output=claim, retrieval_context=None if source is None else [source]
    )


@pytest.fixture
def evaluate(deepeval):
    """Return a function that evaluates test cases, and gives DeepEval's metric data of each."""
    from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig

    def run(cases, metric, *, run_async, ignore_errors=True):
        outcome = deepeval.evaluate(
            cases,
            [metric],
            async_config=AsyncConfig(run_async=run_async),
            display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
            error_config=ErrorConfig(ignore_errors=ignore_errors, skip_on_missing_params=True),
            cache_config=CacheConfig(write_cache=False),
        )
        return {result.input: result.metrics_data or [] for result in outcome.test_results}

    return run


@pytest.mark.parametrize("run_async", [True, False])
def test_evaluate_scores_what_can_be_scored(evaluate, metric_class, case, run_async):
    """P as its score, passed as deep decides; a test case without a context is skipped."""
    cases = [case(pair.source, pair.claim) for pair in texts()[:4]] + [case(None, "It rained.")]
    for number, one in enumerate(cases):
        one.input = str(number)
    result = evaluate(cases, metric_class(lexical_model()), run_async=run_async)
    scorer = TextScorer(lexical_model())
    for number, pair in enumerate(texts()[:4]):
        (data,) = result[str(number)]
        columns = scorer.score(pair.source, pair.claim).columns
        assert (data.score, data.success, data.error) == (columns["p_consistent"], bool(columns["decision"]), None)
        assert data.reason.startswith("P(consistent) = 0.")
        assert (data.name, data.evaluation_model) == ("Consistency", f"deep {scorer.digest}")
    assert result["4"] == []


@pytest.mark.parametrize("run_async", [True, False])
def test_no_vote_is_no_score(evaluate, metric_class, case, run_async):
    """DeepEval leaves a skipped metric out when it runs at once, and shows it without score or verdict when in turn."""
    (data,) = evaluate(
        [case("It rained for 3 days.", QUIET)], metric_class(numbers_model()), run_async=run_async
    ).values()
    assert [(one.score, one.success, one.error) for one in data] == ([] if run_async else [(None, None, None)])


@pytest.mark.parametrize("run_async", [True, False])
def test_a_failed_judge_is_an_error_and_no_score(evaluate, metric_class, case, run_async, tmp_path, monkeypatch):
    """Of that test case alone; the other is scored."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer(script=["server_error"]) as server:
        metric = metric_class(asking_scorer(server.url, tmp_path / "ledger.sqlite"))
        (failed,) = evaluate([case("It rained for 3 days.", "It rained.")], metric, run_async=run_async).values()
        (scored,) = evaluate([case("It rained for 5 days.", "It rained.")], metric, run_async=run_async).values()
    assert (failed[0].score, failed[0].success) == (None, False)
    assert "No answer from deep-strict-steps@" in failed[0].error
    assert 0 < scored[0].score < 1
    assert scored[0].error is None


def test_measured_by_hand(metric_class, case):
    """`measure` and `a_measure` give P; of no vote nothing, and the metric says that it is skipped."""
    metric, pair = metric_class(lexical_model(), threshold=0.9, name="Faithful to source"), texts()[0]
    p = metric.measure(case(pair.source, pair.claim))
    assert p == TextScorer(lexical_model()).score(pair.source, pair.claim).columns["p_consistent"] < 0.9
    assert (metric.is_successful(), metric.skipped, metric.error) == (False, False, None)
    assert asyncio.run(metric.a_measure(case(pair.source, pair.claim))) == p
    assert metric.__name__ == "Faithful to source"
    quiet = metric_class(numbers_model())
    assert quiet.measure(case("It rained for 3 days.", QUIET)) is None
    assert (quiet.skipped, quiet.score, quiet.is_successful()) == (True, None, None)
    assert quiet.measure(case("It rained for 3 days.", "It rained for 3 days.")) > 0.5
    assert (quiet.skipped, quiet.is_successful()) == (False, True)


def test_errors_are_raised(metric_class, case):
    """As DeepEval's own metrics do: what cannot be judged, and a context that is not there."""
    from deepeval.errors import MissingTestCaseParamsError

    metric = metric_class(lexical_model())
    with pytest.raises(DeepError, match=r"^`source` must be text\. Got nothing\.$"):
        metric.measure(case(" ", "It rained."))
    assert (metric.error, metric.score, metric.is_successful()) == ("`source` must be text. Got nothing.", None, False)
    with pytest.raises(MissingTestCaseParamsError, match="retrieval_context"):
        metric.measure(case(None, "It rained."))


def test_the_threshold_is_that_of_the_model(metric_class):
    """The P from which on `deep score` decides for consistent."""
    assert metric_class(lexical_model()).threshold == pytest.approx(lexical_model().threshold())
