"""What a server says of limits: a Retry-After of any kind, and allowances that are far too small."""

import asyncio
import math

import pytest

from deep.llm import EndpointError, RetryPolicy, Throttle
from deep.llm._client import retry_after
from deep.llm._errors import LONGEST_WAIT
from tests.fault_server import FaultServer
from tests.llm.calls import questions, rows, run, states

WAITS = [
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Fri, 31 Dec 9999 23:59:59 -2359",
    "Mon, 01 Jan 0001 00:00:00 +2359",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Fri, 99 Dec 99999 99:99:99 GMT",
    "9" * 400,
    "1e400",
    "-1e400",
    "nan",
    "-5",
    "-0",
    "0x10",
    "1_000_000_000",
    "\u0661\u0662",
    "5, 7",
    "soon",
    "1\t",
    "[]",
]


@pytest.mark.parametrize("value", WAITS)
def test_no_retry_after_makes_a_wait_beyond_the_cap(value, tmp_path):
    """It is a number of seconds or as if it were not there; the run waits up to its cap, or ends and says so."""
    for headers in ({"retry-after": value}, {"retry-after-ms": value, "retry-after": "1"}):
        seconds = retry_after(headers)
        assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
        assert 0 <= RetryPolicy().wait(1, seconds) <= 601
    policy = RetryPolicy(wait_initial=0.01, wait_max=0.02, jitter=0.01, retry_after_cap=0.02)
    with FaultServer(script=["slow_down"], retry_after=value) as server:
        if (retry_after({"retry-after": value}) or 0) > LONGEST_WAIT:
            with pytest.raises(EndpointError, match=r"The endpoint asks to wait .* (days|hours): slow down\."):
                run(server.url, tmp_path / "l", questions(2), retry=policy)
            assert server.count == 1
        run(server.url, tmp_path / "l", questions(2), retry=policy)
        assert server.count == 3
    assert states(tmp_path / "l") == {"done": 2}
    kept = rows(tmp_path / "l", "SELECT retry_after FROM attempts WHERE outcome <> 'answered'")[0][0]
    assert kept is None or math.isfinite(kept)


def test_a_run_that_waits_for_years_can_be_stopped(tmp_path):
    """One request in a century: Ctrl-C ends it at once, nothing is in flight, and the next run goes on."""
    runners = []

    def stop_soon(runner):
        runners.append(runner)
        asyncio.get_running_loop().call_later(1.0, runner.stop, "interrupted")

    with FaultServer() as server:
        ran = run(server.url, tmp_path / "l", questions(5), rpm=1e-8, started=stop_soon)
        assert (ran.stopped, server.count) == ("interrupted", 1)
        assert set(states(tmp_path / "l")) == {"done", "queued"}
        run(server.url, tmp_path / "l", questions(5))
        assert server.count == 5


def test_one_request_above_the_minute_s_allowance_goes_out():
    """After its own share of time, of which the first has none; not refused for ever."""

    async def waits():
        throttle = Throttle(600_000)
        begun = asyncio.get_running_loop().time()
        for tokens in (1_000, 2_000):
            await throttle.wait(tokens)
        return asyncio.get_running_loop().time() - begun

    assert asyncio.run(waits()) >= 0.1
