"""Fixtures and hypothesis settings shared by the whole suite."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from deep._util.files import atomic_folder
from deep.console import _options

# The same draws on every machine, so that a fresh clone meets what its authors met; `make fuzz` draws anew.
settings.register_profile(
    "quick", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "fuzz",
    settings.get_profile("quick"),
    derandomize=False,
    max_examples=int(os.environ.get("DEEP_CASES", "3000")),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell's script starts a job in the background with Ctrl-C ignored, and every process of the tests inherits that.
    signal.signal(signal.SIGINT, signal.default_int_handler)

if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    # So does nohup with the loss of the terminal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE") if hasattr(signal, name)]

MAY_HANG = ("asking", "attack", "labeling", "llm")
"""Folders of tests that would hang, and not fail, where an answer is lost on its way."""

HUNG = 900.0
"""Seconds, many times what the slowest of these tests takes on a machine that is busy with others."""

DATA_HOME = Path(os.environ.get("DEEP_DATA_HOME", Path(__file__).resolve().parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Return the folder of real data, or skip where it is absent."""
    if not DATA_HOME.is_dir():
        pytest.skip(f"real data not found in {DATA_HOME}; set DEEP_DATA_HOME")
    return DATA_HOME


@pytest.fixture
def published(data_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Look for benchmarks in the folder of real data, and return it."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    return data_home


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Look for benchmarks in an empty folder, and return it."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "home"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Return a browser, for a module whose marks are those of `tests/browsing.py`."""
    from tests.browsing import launched

    with launched() as browser:
        yield browser


@pytest.fixture(autouse=True)
def _signals_as_found() -> Iterator[None]:
    """See that every test, and what it runs, leaves the handlers of signals as it found them."""
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


@pytest.fixture(autouse=True)
def _fails_where_it_hangs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test of what waits, for an answer or for the disk, where it would wait for ever.

    Every minute after the first time, so that what is tidied up may hang as well.
    """
    if not hasattr(signal, "setitimer") or request.path.parent.name not in MAY_HANG:
        yield
        return

    def fail(*_: object) -> None:
        pytest.fail(f"it waits for what does not come: {HUNG:g} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, HUNG, 60.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session", autouse=True)
def most_jobs() -> Iterator[int]:
    """Let a command that is not told how many processes to take work in this one: each loads every library again.

    Returns how many it takes at most elsewhere.
    """
    with pytest.MonkeyPatch.context() as patch:
        most = _options.MOST_JOBS
        patch.setattr(_options, "MOST_JOBS", 1)
        yield most


@pytest.fixture
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every command the tests' key, and nothing else of the caller's environment."""
    from tests.llm.calls import KEY

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let studies write neither figures nor a report, which take longer than a small study; others look at those."""
    monkeypatch.setattr("deep.experiments.loo.write_figures", lambda *args, **kwargs: None)
    monkeypatch.setattr("deep.report.open_folder_with_report", atomic_folder)


@pytest.fixture
def opened_ledgers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Return the connections that are opened to read ledgers; they must be closed at the end."""
    from deep.llm import _history

    connections, connect = list[Any](), _history.connect
    monkeypatch.setattr(_history, "connect", lambda *args: connections.append(connect(*args)) or connections[-1])
    yield connections
    assert connections
    assert all(connection.closed for connection in connections)
