"""Tests against real, installed libraries: skipped without them, but `make integrations` has all of them."""

import os
from collections.abc import Iterator

import pytest

SKIPPED: list[str] = []


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that is skipped as a whole."""
    if report.skipped:
        SKIPPED.append(report.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a test that is skipped."""
    if report.skipped:
        SKIPPED.append(report.nodeid)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Fail where `make integrations` has skipped anything."""
    yield
    if os.environ.get("DEEP_INTEGRATIONS") and SKIPPED:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what must not be skipped."""
    if os.environ.get("DEEP_INTEGRATIONS") and SKIPPED:
        terminalreporter.write_sep("=", "`make integrations` must skip nothing")
        for name in SKIPPED:
            terminalreporter.write_line(name)
