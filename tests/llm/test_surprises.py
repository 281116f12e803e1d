"""Answers that cost more than their worst case: the estimate is raised at once, and the budget is not passed again."""

import asyncio

import pytest

from deep.llm import Budget
from deep.llm._spending import BudgetReachedError
from tests.fault_server import FaultServer
from tests.llm.calls import questions, rows, run

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
ANSWER = 5000 * 10.0 / 1e6
"""Dollars of an answer whose hidden tokens are billed, without its input."""


def spent(ledger):
    """Return the dollars of all answers."""
    return rows(ledger, "SELECT sum(cost) FROM attempts")[0][0]


def test_the_canary_request_shows_it_and_the_budget_holds(tmp_path):
    """Whoever bills 5,000 tokens from the first request on never gets past the budget, at 100 workers."""
    with FaultServer(latency=0.02, billed=lambda _: 5000) as server:
        ran = run(server.url, tmp_path / "l", questions(600), workers=100, budget=0.30, prices=PRICES)
        assert ran.stopped == "budget"
        assert server.count == 5
    assert 0.25 < spent(tmp_path / "l") <= 0.30


def test_at_most_one_wave_above(tmp_path):
    """Where bills rise later, what is in flight at the first surprise cannot be called back; nothing follows it."""
    with FaultServer(latency=0.1, billed=lambda number: 5000 if number > 150 else None) as server:
        ran = run(server.url, tmp_path / "l", questions(2000), workers=100, budget=0.30, prices=PRICES)
        assert ran.stopped == "budget"
        dear = rows(tmp_path / "l", "SELECT count(*) FROM attempts WHERE output_tokens = 5000")[0][0]
        assert 6 <= dear <= 100
    assert spent(tmp_path / "l") <= 0.30 + 100 * (ANSWER + 0.001)


def test_a_restart_counts_what_the_surprise_has_cost(tmp_path):
    """The ledger's total is above the budget, so that nothing more is asked."""
    with FaultServer(billed=lambda n: 50_000 if n > 1 else None) as server:
        run(server.url, tmp_path / "l", questions(50), workers=4, budget=0.30, prices=PRICES)
        before = server.count
        again = run(server.url, tmp_path / "l", questions(50), workers=4, budget=0.30, prices=PRICES)
        assert (again.stopped, server.count) == ("budget", before)


def test_what_is_in_flight_counts_at_the_raised_estimate():
    """One answer says it of all requests to that LLM, once, and of no other LLM."""

    async def surprise():
        surprises = []
        budget = Budget(10.0, 0.0, lambda *what: surprises.append(what))
        for _ in range(3):
            await budget.admit(0.1, "dear")
        await budget.admit(0.1, "honest")
        budget.settle(0.1, 1.1, "dear")
        assert budget.left == pytest.approx(10.0 - 1.1 - 2 * 1.1 - 0.1)
        assert (budget.estimate(0.5, "dear"), budget.estimate(0.5, "honest")) == (1.5, 0.5)
        budget.settle(0.1, 2.1, "dear")
        assert budget.left == pytest.approx(10.0 - 3.2 - 2.1 - 0.1)
        assert surprises == [("dear", 1.1, 0.1)]
        with pytest.raises(BudgetReachedError):
            budget.settle(0.1, 0.1, "honest")
            budget.settle(0.1, 0.1, "dear")
            await budget.admit(7.0, "dear")

    asyncio.run(surprise())
