"""A verdict is a score, a skip or an error, and never a number that stands for one of the others."""

from types import SimpleNamespace

import pytest

from deep.exceptions import InputError, MissingDependencyError, StoppedError, needs_extra
from deep.integrations.committee import Verdict, text_of, text_scorer
from tests.fault_server import FaultServer
from tests.guests.integrations.case import QUIET, asking_scorer, lexical_model, numbers_model, texts
from tests.llm.calls import KEY


def raising(error):
    """Return a scorer that raises an error."""

    def score(source, claim):
        raise error

    return SimpleNamespace(score=score)


def test_a_scored_pair_has_everything():
    """P and its interval as `deep score` gives them, the decision, and each judge's words."""
    scorer, pair = text_scorer(lexical_model()), texts()[0]
    scored = scorer.score(pair.source, pair.claim)
    verdict = Verdict.of(scored)
    assert (verdict.status, verdict.p, verdict.cost) == ("scored", scored.columns["p_consistent"], 0.0)
    assert verdict.interval == (scored.columns["p_low"], scored.columns["p_high"])
    assert verdict.decision is bool(verdict.p >= scorer.threshold)
    assert verdict.rationale.startswith(f"P(consistent) = {verdict.p:.3f}, 90 % interval ")
    assert len(verdict.rationale.splitlines()) == 1 + len(lexical_model().voters)
    assert verdict.metadata()["p_low"] == verdict.interval[0]


def test_no_vote_is_a_skip():
    """P would be the prior, and say nothing of the pair."""
    verdict = Verdict.of(text_scorer(numbers_model()).score("It rained for 3 days.", QUIET))
    assert (verdict.status, verdict.p, verdict.decision) == ("skipped", None, None)
    assert verdict.rationale.startswith("No judge gave a vote.\nlexical-numbers@")
    assert [row["reason"] for row in verdict.judges] == ["abstained", "abstained"]


def test_a_failed_judge_is_an_error_though_others_voted(tmp_path, monkeypatch):
    """The vote that is there is kept beside it, but nothing is made of it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with FaultServer(faults={"server_error": 1.0}) as server:
        scorer = asking_scorer(server.url, tmp_path / "ledger.sqlite")
        verdict = Verdict.of(scorer.score("It rained for 3 days.", "It rained for 4 days."))
    assert (verdict.status, verdict.p) == ("error", None)
    assert verdict.rationale.startswith("No answer from deep-strict-steps@")
    assert [(row["vote"], row["reason"]) for row in verdict.judges] == [(None, "failed"), (0, None)]


@pytest.mark.parametrize("error", [InputError("`claim` must be text. Got nothing."), StoppedError("budget")])
def test_what_cannot_be_judged_is_an_error(error):
    """With the error's own line."""
    verdict = Verdict.on(raising(error), "It rained.", QUIET)
    assert (verdict.status, verdict.rationale, verdict.judges) == ("error", str(error), ())


def test_a_bug_is_no_verdict():
    """It is raised."""
    with pytest.raises(ZeroDivisionError):
        Verdict.on(raising(ZeroDivisionError()), "It rained.", QUIET)


def test_texts_and_passages():
    """Anything else is no text, and so refused by the scorer."""
    assert text_of(("a", "b")) == "a\n\nb"
    assert [text_of(value) for value in (None, 3, ["a", None], {"a": 1}, b"a")] == [""] * 5


def test_a_scorer_goes_through_and_a_ledger_is_passed_on(tmp_path):
    """So that a scorer with limits of one's own can be given wherever a model file can."""
    scorer = text_scorer(lexical_model())
    assert text_scorer(scorer) is scorer
    lexical_model().save(tmp_path / "model.json")
    assert text_scorer(tmp_path / "model.json", str(tmp_path / "ledger.sqlite")).digest == scorer.digest


def test_a_missing_library_is_one_line():
    """Also where the import is deeper, and where it is an error of deep already."""
    line = r"^This integration needs a library that is not installed \(No module named 'nowhere'\)\. "
    remedy = r"Run: pip install 'deep-judges\[inspect\]'\.$"
    with pytest.raises(MissingDependencyError, match=line + remedy), needs_extra("inspect"):
        import nowhere  # noqa: F401
    with pytest.raises(MissingDependencyError, match=r"^another$"), needs_extra("inspect"):
        raise MissingDependencyError("another")
